package postpolicy

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"agentrun.dev/serve/s3/fault"
)

func encode(doc string) string { return base64.StdEncoding.EncodeToString([]byte(doc)) }

func TestParse(t *testing.T) {
	const exp = `"expiration":"2144-11-08T04:19:33Z"`
	for _, tc := range []struct{ doc, want string }{
		{"{" + exp + `,"conditions":[{"acl":"private"},["eq","$key","a"],["starts-with","$x",""],["content-length-range",1,10]]}`, ""},
		{`not json`, "Invalid JSON."},
		{`null`, "Invalid JSON."},
		{`{"conditions":[]}`, "missing expiration"},
		{`{"expiration":true,"conditions":[]}`, "Invalid JSON."},
		{`{"expiration":"soon","conditions":[]}`, "'soon'"},
		{"{" + exp + `}`, "missing conditions"},
		{"{" + exp + `,"conditions":{}}`, "must be a List."},
		{"{" + exp + `,"conditions":[1]}`, "List or Object"},
		{"{" + exp + `,"conditions":[],"more":1}`, `Unexpected: "more"`},
		{"{" + exp + `,"conditions":[[]]}`, "missing operation"},
		{"{" + exp + `,"conditions":[["is","$a","b"]]}`, "unknown operation 'is'"},
		{"{" + exp + `,"conditions":[["eq","$a"]]}`, "wrong number of arguments"},
		{"{" + exp + `,"conditions":[["eq",1,"b"]]}`, "Invalid JSON."},
		{"{" + exp + `,"conditions":[["content-length-range","a",3]]}`, "Invalid JSON."},
		{"{" + exp + `,"conditions":[["content-length-range",-1,3]]}`, "Invalid JSON."},
		{"{" + exp + `,"conditions":[{"a":"b","c":"d"}]}`, "exactly one property"},
		{"{" + exp + `,"conditions":[{"a":1}]}`, "must be a string"},
		{"{" + exp + `,"conditions":[` + strings.Repeat(`{"a":"b"},`, 300) + `{"a":"b"}]}`, "Too many"},
	} {
		_, err := Parse(encode(tc.doc))
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.doc, err)
		case tc.want != "" && (!errors.Is(err, fault.InvalidPolicyDocument) && !strings.Contains(err.Error(), "InvalidPolicyDocument") || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%.80s: got %v, want %s", tc.doc, err, tc.want)
		}
	}
	for _, bad := range []string{"", "!", strings.Repeat("A", MaxSize+4)} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%.10q was taken", bad)
		}
	}
}

func TestCheck(t *testing.T) {
	p, err := Parse(encode(`{"expiration":"2030-01-01T00:00:00Z","conditions":[{"bucket":"b"},["starts-with","$key","up/"],
		["starts-with","$Content-Type","text/"],["content-length-range",5,20],["content-length-range",1,10]]}`))
	if err != nil {
		t.Fatal(err)
	}
	if p.Min != 5 || p.Max != 10 {
		t.Errorf("length %d to %d", p.Min, p.Max)
	}
	before, after := time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	form := func(more ...string) map[string]string {
		f := map[string]string{"bucket": "b", "key": "up/x", "content-type": "text/plain", "policy": "…", "x-amz-signature": "…", "x-ignore-me": "1"}
		for i := 0; i < len(more); i += 2 {
			f[more[i]] = more[i+1]
		}
		return f
	}
	if err := p.Check(before, form()); err != nil {
		t.Error(err)
	}
	for _, bad := range []map[string]string{form("bucket", "c"), form("key", "down/x"), form("content-type", "text/plain, image/png"), form("x-amz-meta-a", "1"),
		form("acl", "private"), {"bucket": "b"}} {
		if err := p.Check(before, bad); !strings.Contains(err.Error(), "AccessDenied") {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if err := p.Check(after, form()); err == nil {
		t.Error("an expired policy was taken")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(encode(`{"expiration":"2144-11-08T04:19:33Z","conditions":[{"acl":"private"},["eq","$key","a"],["content-length-range",1,10]]}`))
	f.Add(encode(`{"conditions":[[[[[[]]]]]]}`))
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		// A form that nobody described is covered by no policy without conditions on all of its fields.
		if p.Check(p.Expires.Add(-time.Second), map[string]string{"bucket": "b", "\x00never": "x"}) == nil {
			t.Fatalf("%q allows an unknown field", text)
		}
		if p.Check(p.Expires, map[string]string{}) == nil {
			t.Fatalf("%q holds when it has expired", text)
		}
	})
}
