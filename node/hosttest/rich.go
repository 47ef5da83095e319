package hosttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/node"
)

// rich runs a text and returns what it told, in order, with its output between.
func (t *tester) rich(id, language, session, text string) string {
	t.Helper()
	var out strings.Builder
	var wrong bytes.Buffer
	short, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err := t.Host.Code(short, id, node.Code{Text: text, Language: language, Session: session, Dir: "/tmp", Stdout: &out, Stderr: &wrong, Rich: func(m node.Rich) {
		switch {
		case m.Error != nil:
			fmt.Fprintf(&out, "[%s: %s]", m.Error.Name, m.Error.Value)
			if m.Error.Name != "SyntaxError" && language == api.Python && !strings.Contains(m.Error.Traceback, "Traceback (most recent call last)") {
				t.Errorf("%s: traceback %q", text, m.Error.Traceback)
			}
		case m.Count > 0:
			fmt.Fprintf(&out, "[%d]", m.Count)
		default:
			b, _ := json.Marshal(m.Data)
			fmt.Fprintf(&out, "[%v %s]", m.Main, b)
		}
	}})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out.String() + wrong.String()
}

// testRich looks at what texts tell besides their output.
func testRich(t *tester) {
	t.need(api.Python)
	id := t.start(t.build(node.Build{}))
	for _, c := range [][3]string{
		{"", "", ""},
		{"x = 1\nprint('a')", "", "[1]a\n"},
		{"x + 1", "", `[2][true {"text/plain":"2"}]`},
		{"x;", "", "[3]"},
		{"import os; os.getcwd()", "", `[4][true {"text/plain":"'/tmp'"}]`},
		{"os.chdir('/')", "", "[5]"},
		{"os.getcwd()", "", `[6][true {"text/plain":"'/'"}]`},
		{"print('b', end=''); display(1); print('c'); [1]", "", `[7]b[false {"text/plain":"1"}]c` + "\n" + `[true {"application/json":[1],"text/plain":"[1]"}]`},
		{"1/0", "", "[8][ZeroDivisionError: division by zero]"},
		{"def f(:", "", "[9][SyntaxError: invalid syntax (<cell 10>, line 1)]"},
		{"class H:\n def _repr_html_(self): return '<b>'\n def _repr_png_(self): return b'x'\n def __repr__(self): return 'h'\nH()", "", `[10][true {"image/png":"eA==","text/html":"\u003cb\u003e","text/plain":"h"}]`},
		{"from IPython.display import HTML, display as d\nd(HTML('<i>'))", "", `[11][false {"text/html":"\u003ci\u003e","text/plain":"\u003cIPython.core.display.HTML object\u003e"}]`},
		{"!echo from $0", "", "[12]from bash\n"},
		{"display({'text/latex': 'z'}, raw=True)", "", `[13][false {"text/latex":"z"}]`},
		{"raise SystemExit(3)", "", "[14][SystemExit: 3]"},
		{"x", "other", "[1][NameError: name 'x' is not defined]"},
	} {
		got := t.rich(id, api.Python, c[1], c[0])
		if c[0] == "raise SystemExit(3)" {
			got = strings.TrimSpace(got)
		}
		if got != c[2] {
			t.Errorf("%s: got\n%s\nwant\n%s", c[0], got, c[2])
		}
	}
	// One that is busy ends when it is told so, and begins anew.
	busy := make(chan int, 1)
	begun := make(chan bool, 1)
	go func() {
		r, err := t.Host.Code(ctx, id, node.Code{Text: "print('on')\nwhile True: pass", Language: api.Python, Stdout: signal(begun), Rich: func(node.Rich) {}})
		if err != nil {
			busy <- -1
			return
		}
		busy <- r.Status
	}()
	<-begun
	if _, err := t.Host.Code(ctx, id, node.Code{Language: api.Python, End: true}); err != nil {
		t.Error(err)
	}
	if status := <-busy; status <= 0 {
		t.Errorf("a text whose interpreter was ended has status %d", status)
	}
	if got := t.rich(id, api.Python, "", "x"); got != "[1][NameError: name 'x' is not defined]" {
		t.Errorf("after its end: %s", got)
	}
	if _, err := t.Host.Code(ctx, id, node.Code{Language: api.Python, Session: "none", End: true}); err != nil {
		t.Error(err)
	}
	t.richJS(id)
}

func (t *tester) richJS(id string) {
	t.need(api.JavaScript)
	for _, c := range [][2]string{
		{"const a = 5; console.log('a'); a * 2", `[1]a` + "\n" + `[true {"text/plain":"10"}]`},
		{"process.cwd()", `[2][true {"text/plain":"'/tmp'"}]`},
		{"throw new TypeError('bad')", "[3][TypeError: bad]"},
		{"display({ _toHtml() { return '<b>' }, x: 1 }); undefined", ""},
		{"await Promise.resolve(3)", `[5][true {"text/plain":"3"}]`},
		{"({ [Symbol.for('Jupyter.display')]() { return { 'text/markdown': '*m*', 'text/plain': 'm' } } })", `[6][true {"text/markdown":"*m*","text/plain":"m"}]`},
		{"let = 1 +", ""},
	} {
		got := t.rich(id, api.JavaScript, "", c[0])
		switch {
		case c[1] != "" && got != c[1]:
			t.Errorf("%s: got\n%s\nwant\n%s", c[0], got, c[1])
		case strings.HasPrefix(c[0], "display") && !strings.Contains(got, `"text/html":"\u003cb\u003e"`), strings.HasPrefix(c[0], "let") && !strings.Contains(got, "[SyntaxError: "):
			t.Errorf("%s: got %s", c[0], got)
		}
	}
}

// signal tells once that something was written.
type signal chan bool

func (s signal) Write(b []byte) (int, error) {
	select {
	case s <- true:
	default:
	}
	return len(b), nil
}
