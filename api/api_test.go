package api_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentrun.dev/api"
)

// TestWire pins the wire form: names, decimal versions, nanoseconds, and what is left out.
func TestWire(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 0, 0, 5, time.UTC)
	exit := 0
	for _, c := range []struct {
		v    any
		want string
	}{
		{api.Snapshot{Bucket: "b", Version: 1<<63 + 1, Created: at},
			`{"bucket":"b","version":"9223372036854775809","created":"2026-11-21T10:00:00.000000005Z","objects":0,"bytes":0}`},
		{api.Line[api.Change, api.DiffResult]{Item: &api.Change{Key: "a<b", Kind: "added"}}, `{"item":{"key":"a\u003cb","kind":"added"}}`},
		{api.Control{Exit: &exit}, `{"exit":0}`},
		{api.Point{Bucket: "b"}, `{"bucket":"b"}`},
		{api.CreateKey{Scopes: []api.Scope{{Bucket: "f", Role: api.ReadOnly}}}, `{"scopes":[{"bucket":"f","role":"ro"}]}`},
	} {
		got, err := json.Marshal(c.v)
		if err != nil || string(got) != c.want {
			t.Errorf("%T: %s, %v\nwant %s", c.v, got, err, c.want)
			continue
		}
		back := reflect.New(reflect.TypeOf(c.v))
		if err := json.Unmarshal(got, back.Interface()); err != nil || !reflect.DeepEqual(back.Elem().Interface(), c.v) {
			t.Errorf("%s: back %+v, %v", got, back.Elem(), err)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, bad := range []string{`"-1"`, `""`, `"18446744073709551616"`, `"0x1"`, `" 1"`, `5`} {
		var v api.Version
		if err := json.Unmarshal([]byte(bad), &v); err == nil || !strings.Contains(err.Error(), "ersion") {
			t.Errorf("%s: %v, %v", bad, v, err)
		}
	}
}
