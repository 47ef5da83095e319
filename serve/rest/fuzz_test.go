package rest

import (
	"encoding/json"
	"strings"
	"testing"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// FuzzDecode feeds the decoder of requests: it never panics, says where something is wrong, and takes only what the
// standard library would take.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{}`, `{"name":"abc"}`, `{"name":5}`, `{"name":"abc"}x`, "{\n\"at\":", `[]`, `null`, ` `, `{"x":1}`, `{"name":"\ud800"}`, "{\"name\":\"\xff\"}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var v api.CreateBucket
		err := new(shapes).decode(b, &v)
		if err == nil {
			if !json.Valid(b) {
				t.Errorf("%q was taken", b)
			}
			return
		}
		if !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%q: %v", b, err)
		}
	})
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"base", "bsae", 2}, {"base", "base", 0}, {"kitten", "sitting", 3}, {"abc", "xyzw", 4}} {
		if got := distance(c.a, c.b, 10); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if c.want > 1 && distance(c.a, c.b, 1) <= 1 {
			t.Errorf("distance(%q, %q) within 1", c.a, c.b)
		}
	}
}
