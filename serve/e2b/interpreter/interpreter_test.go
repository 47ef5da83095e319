package interpreter

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentrun.dev/access"
	"agentrun.dev/control"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// What runs texts in sandboxes is tested in test/e2b, with the SDKs; here is what needs none.

func TestLanguage(t *testing.T) {
	for name, want := range map[string]string{"": "python", "Python": "python", " js ": "javascript", "ts": "typescript", "bash": "bash"} {
		if got, err := language(name); got != want || err != nil {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	for name, kind := range map[string]errs.Kind{"r": errs.Unsupported, "java": errs.Unsupported, "cobol": errs.Invalid, "../x": errs.Invalid} {
		if _, err := language(name); !errs.Is(err, kind) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestUnindent(t *testing.T) {
	for text, want := range map[string]string{
		"x":                                    "x",
		"\n    if a:\n        b\n    c\n  d\n": "\nif a:\n    b\nc\n  d\n",
		"\tx\n\ty":                             "x\ny",
		"":                                     "",
		"  \n":                                 "  \n",
	} {
		if got := unindent(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestPlainScript(t *testing.T) {
	got, wrong := plainScript("import { a } from 'fs'\ninterface P { x: number }\nenum E { A = 2 }\nconst p = { x: E.A } as P;\nawait f<number>(p.x!)")
	if wrong != nil || strings.Contains(got, "interface") || !strings.Contains(got, "await f(p.x)") || !strings.Contains(got, `from "fs"`) {
		t.Errorf("%q, %v", got, wrong)
	}
	_, wrong = plainScript("const x: = 1")
	if wrong == nil || wrong.Name != "SyntaxError" || !strings.Contains(wrong.Traceback, "const x: = 1\n         ^") {
		t.Errorf("%+v", wrong)
	}
}

func TestResult(t *testing.T) {
	raw := func(v any) json.RawMessage { b, _ := json.Marshal(v); return b }
	got := result(node.Rich{Main: true, Data: map[string]json.RawMessage{"text/plain": raw("'a\"'"), "image/png": raw("iVBO"), "application/json": raw([]int{1}), "x/y": raw("z")}})
	b, err := json.Marshal(got)
	if want := `{"extra":{"x/y":"z"},"is_main_result":true,"json":[1],"png":"iVBO","text":"a\"","type":"result"}`; err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
	for text, want := range map[string]string{"'": "'", "''": "", "'a\"": "'a\"", "a": "a"} {
		if got := result(node.Rich{Data: map[string]json.RawMessage{"text/plain": raw(text)}})["text"]; got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// lines are those of an answer.
func lines(t *testing.T, b *bytes.Buffer) (list []map[string]any) {
	t.Helper()
	for line := range strings.Lines(b.String()) {
		for _, c := range []byte(line) {
			if c >= 0x80 {
				t.Errorf("not ASCII: %q", line)
				break
			}
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, m)
	}
	return list
}

func TestStream(t *testing.T) {
	w := httptest.NewRecorder()
	a := begin(w)
	out := a.stream("stdout")
	for _, c := range []byte("aü😀") {
		out.Write([]byte{c})
	}
	out.Write([]byte("\xffz\xe2\x82"))
	a.rich(node.Rich{Data: map[string]json.RawMessage{"text/plain": json.RawMessage(`"ü"`)}})
	a.failed(&node.CodeError{Name: "E", Value: "v", Traceback: "t"})
	a.end()
	text, kinds := "", ""
	for _, m := range lines(t, w.Body) {
		kinds += m["type"].(string)[:1]
		if m["type"] == "stdout" {
			text += m["text"].(string)
			if _, ok := m["timestamp"].(string); !ok {
				t.Error("no time")
			}
		}
	}
	if text != "aü😀\uFFFDz\uFFFD" || !strings.HasSuffix(kinds, "sree") || w.Header().Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("%q %q", text, kinds)
	}
}

func TestStreamLarge(t *testing.T) {
	w := httptest.NewRecorder()
	a := begin(w)
	want := strings.Repeat("é", 100_000)
	a.stream("stderr").Write([]byte(want))
	a.end()
	got := ""
	for _, m := range lines(t, w.Body) {
		if m["type"] == "stderr" {
			got += m["text"].(string)
		}
	}
	if got != want {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
}

// TestNoSandbox looks at what is answered when there is no sandbox to use.
func TestNoSandbox(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
	}{
		{errs.Msg(errs.NotFound, "use", "x", "gone"), 502}, {errs.Msg(errs.Unauthorized, "use", "x", "who"), 401}, {errs.Msg(errs.Denied, "use", "x", "no"), 403},
		{errs.Msg(errs.Unavailable, "use", "x", "asleep"), 502}, {errs.Msg(errs.Limit, "use", "x", "many"), 429}, {errors.New("odd"), 502},
	} {
		h := New(Options{Use: func(*http.Request, access.Verb) (*control.Session, error) { return nil, c.err }})
		for _, q := range []string{"POST /execute", "GET /contexts", "POST /contexts", "DELETE /contexts/x", "POST /contexts/x/restart"} {
			method, path, _ := strings.Cut(q, " ")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader("{}")))
			if w.Code != c.status || w.Body.Len() == 0 {
				t.Errorf("%s: %d %s, want %d", q, w.Code, w.Body, c.status)
			}
		}
	}
	h := New(Options{})
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequest("GET", "/health", nil)); w.Code != 200 {
		t.Errorf("health: %d", w.Code)
	}
	w = httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequest("OPTIONS", "/execute", nil)); w.Code != 204 || w.Header().Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("options: %d", w.Code)
	}
}

func TestDecode(t *testing.T) {
	read := func(body string) (run, error) {
		var q run
		err := decode(httptest.NewRecorder(), httptest.NewRequest("POST", "/", strings.NewReader(body)), &q)
		return q, err
	}
	if q, err := read(`{"code": "x", "newer": {"a": [1]}, "context_id": null, "env_vars": null}`); err != nil || q.Code != "x" || q.Context != nil {
		t.Errorf("%+v, %v", q, err)
	}
	if _, err := read(" "); err != nil {
		t.Error(err)
	}
	for _, body := range []string{`{"code": 1}`, `{`, `[]`} {
		if _, err := read(body); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func FuzzASCII(f *testing.F) {
	for _, s := range []string{"", "a", "ü😀\uFFFD", "\u2028"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := json.Marshal(s)
		if err != nil {
			t.Skip()
		}
		var want, got string
		if json.Unmarshal(b, &want) != nil || json.Unmarshal(ascii(b), &got) != nil || got != want {
			t.Errorf("%q: %q", s, got)
		}
	})
}
