package access

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"agentrun.dev/api"
)

// reference makes the canonical form by way of encoding/json, whose maps are sorted.
func reference(t interface{ Fatal(...any) }, e *api.AuditEntry) string {
	wire, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(wire, &m); err != nil {
		t.Fatal(err)
	}
	delete(m, "hash")
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		t.Fatal(err)
	}
	// What encoding/json escapes beyond need. A backslash before it would be one of a pair.
	s := strings.TrimSuffix(b.String(), "\n")
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], `\u2028`):
			out.WriteString("\u2028")
			i += 5
		case strings.HasPrefix(s[i:], `\u2029`):
			out.WriteString("\u2029")
			i += 5
		case s[i] == '\\':
			out.WriteString(s[i : i+2])
			i++
		default:
			out.WriteByte(s[i])
		}
	}
	return out.String()
}

func checkCanonical(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, e *api.AuditEntry) {
	got := appendCanonical([]byte{entryFormat}, e)
	if want := reference(t, e); string(got[1:]) != want {
		t.Fatalf("%s\nwant\n%s", got[1:], want)
	}
	back, err := decodeEntry(entryKey(e.Seq), got)
	if err != nil {
		t.Fatal(err)
	}
	if back.Hash != hashOf(got[1:]) {
		t.Fatal("another hash")
	}
	back.Hash = e.Hash
	if len(e.Data) == 0 {
		back.Data, e.Data = nil, nil
	}
	if !reflect.DeepEqual(back, e) {
		t.Fatalf("%+v\nwant\n%+v", back, e)
	}
}

func TestCanonical(t *testing.T) {
	text := rapid.Custom(func(t *rapid.T) string {
		if s := rapid.String().Draw(t, "s"); rapid.Bool().Draw(t, "plain") {
			return s
		}
		return rapid.StringOf(rapid.SampledFrom([]rune("\"\\\b\f\n\r\t\x00\x1f\x7f\u0080\u2028\u2029\ufeff\uffff<>&'/é🙂"))).Draw(t, "odd")
	})
	rapid.Check(t, func(t *rapid.T) {
		checkCanonical(t, &api.AuditEntry{
			Seq: rapid.Uint64().Draw(t, "seq"), Time: time.Unix(rapid.Int64Range(0, 1<<37).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC(),
			Principal: text.Draw(t, "principal"), Key: text.Draw(t, "key"), Remote: text.Draw(t, "remote"), Request: text.Draw(t, "request"),
			Action: text.Draw(t, "action"), Thing: text.Draw(t, "thing"), Allowed: rapid.Bool().Draw(t, "allowed"), Rule: text.Draw(t, "rule"),
			Data: rapid.MapOf(text, text).Draw(t, "data"), Previous: text.Draw(t, "previous"), Hash: text.Draw(t, "hash"),
		})
	})
}

// FuzzDecodeEntry gives the decoder what may stand in a store. What it takes is in the canonical form.
func FuzzDecodeEntry(f *testing.F) {
	e := &api.AuditEntry{Seq: 1, Time: time.Unix(1, 5).UTC(), Action: "a", Rule: "r", Data: map[string]string{"b": "\"", "a": "\n"}, Previous: firstPrevious}
	f.Add(appendCanonical([]byte{entryFormat}, e))
	f.Add([]byte{entryFormat})
	f.Add([]byte("\x01{}"))
	f.Add([]byte("\x01null"))
	f.Add([]byte(`` + "\x01" + `{"seq":"1","action":"\ud800","action":"x"}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		e, err := decodeEntry(entryKey(1), value)
		if err != nil {
			return
		}
		if utf8.Valid(value[1:]) {
			checkCanonical(t, e)
		}
	})
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "a\x00b", "\xff\xfeé", "AR." + strings.Repeat("a", 40), strings.Repeat("é", 300)} {
		f.Add(s, 16)
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = min(max(n, 0), 512)
		got := clean(nil, s, n)
		if len(got) > n || !utf8.ValidString(got) || strings.ContainsFunc(got, unprintable) || clean(nil, got, n) != got {
			t.Errorf("%q", got)
		}
	})
}
