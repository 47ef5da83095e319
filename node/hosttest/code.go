package hosttest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/node"
	"agentrun.dev/volume"
)

// said is how a text ended.
type said struct{ out, err, result, language string }

// code runs a text.
func (t *tester) code(id string, c node.Code) (said, int) {
	t.Helper()
	var out, wrong bytes.Buffer
	c.Stdout, c.Stderr = &out, &wrong
	short, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r, err := t.Host.Code(short, id, c)
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", c.Text, err, out.String(), wrong.String())
	}
	return said{out.String(), wrong.String(), r.Result, r.Language}, r.Status
}

// py and js run a text of a sandbox of that language, and want what it writes.
func (t *tester) py(id, text, want string) {
	t.Helper()
	t.run(id, node.Code{Text: text, Default: api.Python}, want, 0)
}

func (t *tester) js(id, text, want string) {
	t.Helper()
	t.run(id, node.Code{Text: text, Default: api.JavaScript}, want, 0)
}

func (t *tester) run(id string, c node.Code, want string, status int) said {
	t.Helper()
	got, n := t.code(id, c)
	if got.out != want || n != status {
		t.Errorf("%s: status %d, want %d; got\n%s%s\nwant\n%s", c.Text, n, status, got.out, got.err, want)
	}
	return got
}

// need skips the test where an interpreter is missing.
func (t *tester) need(language string) {
	if !slices.Contains(t.c.Languages, language) {
		t.t.Skip("this host has no " + language)
	}
}

func testShell(t *tester) {
	id := t.start(t.build(node.Build{}))
	sh := func(text, want string, status int) said {
		t.Helper()
		return t.run(id, node.Code{Text: text}, want, status)
	}
	if got := sh("x=1; echo $x; pwd", "1\n/workspace\n", 0); got.language != api.Shell {
		t.Errorf("%+v", got)
	}
	sh("echo ${x-none}; exit 3", "none\n", 3)
	sh("print('hello')", "", 2)
	sh("cat; echo $A", "\n", 0)
	t.run(id, node.Code{Text: "cat; echo $A; pwd", Stdin: strings.NewReader("in\n"), Env: []string{"A=b"}, Dir: "/tmp"}, "in\nb\n/tmp\n", 0)
	sh("sleep 1000 >/dev/null & echo $! > pid", "", 0)
	sh("kill -0 $(cat pid) && kill $(cat pid) && echo lives", "lives\n", 0)
	got, status := t.code(id, node.Code{Text: "def f(:", Default: api.Shell})
	if status != 2 || !strings.Contains(got.err, "syntax error") {
		t.Errorf("%d %+v", status, got)
	}

	// A session keeps its state.
	in := func(text, want string, status int) {
		t.Helper()
		t.run(id, node.Code{Text: text, Session: "s"}, want, status)
	}
	in("x=5; f() { echo $((x + $1)); }; cd /tmp; shopt -s extglob", "", 0)
	in("f 2; pwd; false", "7\n/tmp\n", 1)
	in("cat <<'E'\nhere ' \" \\\nE\n# end", "here ' \" \\\n", 0)
	in("read -r l; echo \"[$l]\"", "[]\n", 0)
	t.run(id, node.Code{Text: "cat; echo $B$0$#", Session: "s", Stdin: strings.NewReader("a\n\nb"), Env: []string{"B=it's"}}, "a\n\nbit'sbash0\n", 0)
	in("echo ${B-gone}; exec >/dev/null; echo lost", "gone\n", 0)
	in("echo back; exit 4", "back\n", 4)
	in("echo ${x-new}; kill -9 $$", "new\n", 137)
	in("echo again", "again\n", 0)
	t.run(id, node.Code{Text: "echo ${x-other}", Session: "other"}, "other\n", 0)
	_, err := t.Host.Code(ctx, id, node.Code{Text: "true", Language: "cobol"})
	t.kind("a language", err, errs.Invalid)
	_, err = t.Host.Code(ctx, id, node.Code{Text: "true\x00"})
	t.kind("a NUL", err, errs.Invalid)
	_, err = t.Host.Code(ctx, id, node.Code{Text: "true", Session: strings.Repeat("x", 1000)})
	t.kind("a session's name", err, errs.Invalid)
}

func testPython(t *tester) {
	t.need(api.Python)
	id := t.start(t.build(node.Build{}))
	py := func(text, want string) { t.Helper(); t.py(id, text, want) }
	fails := func(text string, status int, want ...string) {
		t.Helper()
		got, n := t.code(id, node.Code{Text: text, Default: api.Python})
		if n != status || strings.Contains(got.err, "agentrun") {
			t.Errorf("%s: status %d, want %d: %+v", text, n, status, got)
		}
		for _, w := range want {
			if !strings.Contains(got.err, w) {
				t.Errorf("%s: %q isn't in\n%s", text, w, got.err)
			}
		}
	}
	py("print('hello')", "hello\n")
	py("print(1 + 1)", "2\n")
	py("1 + 1", "2\n")
	py("x = 1", "")
	py("x + 1", "2\n")
	py("_ * 10", "20\n")
	py("None", "")
	py("'text'", "'text'\n")
	py("import json", "")
	py("json.dumps({'a': [1, None]})", "'{\"a\": [1, null]}'\n")
	py("def f(n):\n    return n * 2\n\nclass C:\n    def __repr__(self):\n        return 'C!'\n\nf(21)", "42\n")
	py("C()", "C!\n")
	py("open('plan_a.txt','w').write('x')", "1\n")
	py("ls", "plan_a.txt\n")
	py("cat plan_a.txt", "x")
	py("echo 'approach 0' > /workspace/result.txt", "")
	py("open('/workspace/result.txt').read()", "'approach 0\\n'\n")
	py("pwd", "/workspace\n")
	py("true", "")
	py("id -un", "user\n")
	py("", "")
	py("# nothing", "")
	py("print('größe 🎉', ascii('é'))", "größe 🎉 '\\xe9'\n")
	py("for i in range(3): print(i)", "0\n1\n2\n")
	py("import subprocess\nprint('a'); subprocess.run(['echo', 'b']); print('c')", "a\nb\nc\n")
	py("__name__", "'__main__'\n")
	py("import sys; sys.argv", "['']\n")
	py("sorted(n for n in dir() if not n.startswith('_'))", "['C', 'f', 'i', 'json', 'subprocess', 'sys', 'x']\n")
	py("import pickle; pickle.loads(pickle.dumps(C()))", "C!\n")
	py("import inspect; print(inspect.getsource(f))", "def f(n):\n    return n * 2\n\n")
	py("import asyncio\nasync def g():\n    await asyncio.sleep(0)\n    return 7\n\nawait g()", "7\n")
	if got, _ := t.code(id, node.Code{Text: "x = 3\n{'a': x}", Default: api.Python}); got.result != "{'a': 3}" || got.language != api.Python || got.out != "{'a': 3}\n" {
		t.Errorf("%+v", got)
	}
	if got, _ := t.code(id, node.Code{Text: "ls -la", Default: api.Python}); got.language != api.Shell || !strings.Contains(got.out, "plan_a.txt") {
		t.Errorf("%+v", got)
	}
	if got, n := t.code(id, node.Code{Text: "def f(:", Default: api.Python}); got.language != api.Shell || n != 2 {
		t.Errorf("%d %+v", n, got)
	}
	// Said to be Python, it isn't looked at twice.
	if got, n := t.code(id, node.Code{Text: "ls -la", Language: api.Python}); n != 1 || !strings.Contains(got.err, "NameError") {
		t.Errorf("%d %+v", n, got)
	}
	if got, n := t.code(id, node.Code{Text: "def f(:", Language: api.Python}); n != 1 || !strings.Contains(got.err, "SyntaxError") || !strings.Contains(got.err, "File \"<stdin>\", line 1\n    def f(:\n") {
		t.Errorf("%d %+v", n, got)
	}
	fails("def g():\n    return 1 / 0\n\ng()", 1, "Traceback (most recent call last):\n  File \"<stdin>\", line 4, in <module>\n", "File \"<stdin>\", line 2, in g\n", "    return 1 / 0\n", "ZeroDivisionError: division by zero\n")
	fails("import sys; sys.exit(3)", 3)
	fails("exit()", 0)
	fails("exit('bye')", 1, "bye\n")
	fails("raise SystemExit(257)", 1)
	fails("input()", 1, "EOFError")
	py("import os; os.read(0, 100)", "b''\n")
	fails("raise KeyboardInterrupt", 130, "KeyboardInterrupt")
	fails("def r(): r()\nr()", 1, "RecursionError")
	py("x", "3\n")
	t.run(id, node.Code{Text: "import sys\nprint(input(), sys.stdin.read())", Default: api.Python, Stdin: strings.NewReader("one\ntwo")}, "one two\n", 0)
	t.run(id, node.Code{Text: "import os\nprint(os.environ['A'], os.getcwd())", Default: api.Python, Env: []string{"A=b"}, Dir: "/tmp"}, "b /tmp\n", 0)
	py("print(os.environ.get('A'), os.getcwd())", "None /tmp\n")
	py("sys.stdout.close(); os.close(1)", "")
	py("print('back')", "back\n")
	if got, n := t.code(id, node.Code{Text: "print('y' * 1_000_000)\nimport sys; print('e' * 1_000_000, file=sys.stderr)", Default: api.Python}); n != 0 || len(got.out) != 1_000_001 || len(got.err) != 1_000_001 {
		t.Errorf("%d, %d and %d bytes", n, len(got.out), len(got.err))
	}
	if got, n := t.code(id, node.Code{Text: "print('last', flush=True)\nos._exit(5)", Default: api.Python}); n != 5 || got.out != "last\n" {
		t.Errorf("%d %+v", n, got)
	}
	fails("x", 1, "NameError")

	// An endless loop is interrupted, and the session goes on.
	py("n = 7", "")
	t.cancel(id, node.Code{Text: "print('begun', flush=True)\nwhile True: pass", Default: api.Python})
	py("n", "7\n")
	t.cancel(id, node.Code{Text: "import time\nprint('begun', flush=True)\ntime.sleep(1000)", Default: api.Python})
	py("n", "7\n")
	// One that doesn't let itself be interrupted is killed.
	t.cancel(id, node.Code{Text: "while True:\n    try:\n        print('begun', flush=True)\n        while True: pass\n    except KeyboardInterrupt: pass", Default: api.Python})
	fails("n", 1, "NameError")
}

// cancel runs a text that says that it has begun, and gives up.
func (t *tester) cancel(id string, c node.Code) {
	t.Helper()
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	c.Stdout = writer(func(b []byte) { cancel() })
	begun := time.Now()
	if _, err := t.Host.Code(short, id, c); !errs.Is(err, errs.Canceled) {
		t.Errorf("%s: %v", c.Text, err)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("%s: it took %v", c.Text, took)
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

func testJavaScript(t *tester) {
	t.need(api.JavaScript)
	id := t.start(t.build(node.Build{}))
	js := func(text, want string) { t.Helper(); t.js(id, text, want) }
	js("console.log('hello')", "hello\n")
	js("1 + 1", "2\n")
	js("const x = 1", "")
	js("const x = 2; let y = x", "")
	js("x + y", "4\n")
	js("undefined", "")
	js("'text'", "'text'\n")
	js("({a: [1, {b: null}]})", "{ a: [ 1, { b: null } ] }\n")
	js("{a: 1}", "{ a: 1 }\n")
	js("function f(n) {\n  return n * 2;\n}\nclass C { get v() { return 5; } }\nf(21)", "42\n")
	js("new C().v", "5\n")
	js("import fs from 'fs'\nimport { join as j } from 'node:path'\nfs.writeFileSync(j('.', 'a'), 'x'); fs.readFileSync('a', 'utf8')", "'x'\n")
	js("require('os').EOL", "'\\n'\n")
	js("ls", "a\n")
	js("pwd", "/workspace\n")
	js("echo 'approach 0' > /workspace/result.txt && cat result.txt", "approach 0\n")
	js("id -un", "user\n")
	js("true", "")
	js("await new Promise((r) => setTimeout(() => r(7), 5))", "7\n")
	js("const z = await Promise.resolve(8)\nz", "8\n")
	js("z", "8\n")
	js("setTimeout(() => console.log('later'), 20); console.log('now'); undefined", "now\nlater\n")
	js("console.log('größe 🎉')", "größe 🎉\n")
	if got, n := t.code(id, node.Code{Text: "throw new TypeError('no')", Default: api.JavaScript}); n != 1 || !strings.Contains(got.err, "TypeError: no") || strings.Contains(got.err, "agentrun") {
		t.Errorf("%d %+v", n, got)
	}
	if got, n := t.code(id, node.Code{Text: "Promise.reject(new Error('later')); 1", Default: api.JavaScript}); n != 1 || !strings.Contains(got.err, "Error: later") {
		t.Errorf("%d %+v", n, got)
	}
	if got, n := t.code(id, node.Code{Text: "let = = 3", Language: api.JavaScript}); n != 1 || !strings.Contains(got.err, "SyntaxError") {
		t.Errorf("%d %+v", n, got)
	}
	if got, _ := t.code(id, node.Code{Text: "[1, 2].map((n) => n * x)", Default: api.JavaScript}); got.result != "[ 2, 4 ]" || got.language != api.JavaScript {
		t.Errorf("%+v", got)
	}
	t.run(id, node.Code{Text: "require('fs').readFileSync(0, 'utf8') + process.env.A + process.cwd()", Default: api.JavaScript, Stdin: strings.NewReader("in "), Env: []string{"A=b "}, Dir: "/tmp"}, "'in b /tmp'\n", 0)
	js("require('fs').readFileSync(0, 'utf8') + process.env.A", "'undefined'\n")
	if got, n := t.code(id, node.Code{Text: "console.log('last'); process.exit(3)", Default: api.JavaScript}); n != 3 || got.out != "last\n" {
		t.Errorf("%d %+v", n, got)
	}
	js("typeof x", "'undefined'\n")
	t.cancel(id, node.Code{Text: "console.log('begun'); for (;;);", Default: api.JavaScript})
	js("1", "1\n")
}

func testSessions(t *tester) {
	t.need(api.Python)
	id := t.id()
	_, err := t.Host.Start(ctx, node.Start{ID: id, Epoch: 1, Image: t.build(node.Build{}), Claim: &node.Claim{Env: []string{"TOKEN=one", "OLD=o"}}})
	t.ok(err)
	t.py(id, "import os, time; x = 1; os.environ['TOKEN'] + os.environ['OLD']", "'oneo'\n")
	t.run(id, node.Code{Text: "x = 2", Language: api.Python, Session: "b"}, "", 0)
	t.run(id, node.Code{Text: "y=sh; echo $TOKEN", Session: "b"}, "one\n", 0)
	t.py(id, "x", "1\n")
	if list, err := t.Host.Processes(ctx, id); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	// Calls of one session queue, others go on beside it.
	var wg sync.WaitGroup
	begun := make(chan struct{})
	wg.Go(func() {
		c := node.Code{Text: "print('begun', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)\nx = 10", Default: api.Python, Stdout: writer(func([]byte) { close(begun) })}
		if r, err := t.Host.Code(ctx, id, c); err != nil || r.Status != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	<-begun
	wg.Go(func() {
		if r, err := t.Host.Code(ctx, id, node.Code{Text: "y = x", Default: api.Python}); err != nil || r.Status != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
	// In a fork a text that ran goes on without anybody, and then the session is there.
	_, err = t.Host.Fork(ctx, id, node.Fork{IDs: []string{"child", "child2"}, Epoch: 1, Claims: []node.Claim{{Env: []string{"TOKEN=two"}}, {}}})
	t.ok(err)
	t.run(id, node.Code{Text: "x", Language: api.Python, Session: "b"}, "2\n", 0)
	t.run(id, node.Code{Text: "touch go", Language: api.Shell}, "", 0)
	wg.Wait()
	t.py(id, "x, y", "(10, 10)\n")
	t.run("child", node.Code{Text: "touch go", Language: api.Shell}, "", 0)
	t.py("child", "x, os.environ['TOKEN'], os.environ.get('OLD')", "(10, 'two', None)\n")
	t.run("child", node.Code{Text: "x", Language: api.Python, Session: "b"}, "2\n", 0)
	t.run("child", node.Code{Text: "echo $y $TOKEN ${OLD-none}", Session: "b"}, "sh two none\n", 0)
	// One that is held up in the middle of a text can be interrupted from there.
	t.cancelSoon("child2", node.Code{Text: "x = 11", Default: api.Python})
	t.py("child2", "x, os.environ.get('TOKEN')", "(1, None)\n")
	t.py("child", "x = 'c'; l = [x]; l.append(l)", "")
	t.ok(t.Host.Hibernate(ctx, "child", false))
	_, err = t.Host.Wake(ctx, "child", 2, node.Claim{Env: []string{"TOKEN=three"}})
	t.ok(err)
	t.py("child", "x, l[1][1][0], os.environ['TOKEN']", "('c', 'c', 'three')\n")
	t.run("child", node.Code{Text: "echo $y $TOKEN", Session: "b"}, "sh three\n", 0)
	for i := range 40 {
		_, err = t.Host.Code(ctx, id, node.Code{Text: "true", Session: fmt.Sprint("n", i)})
	}
	t.kind("too many sessions", err, errs.Limit)
}

// cancelSoon gives up on a text that can't begin.
func (t *tester) cancelSoon(id string, c node.Code) {
	t.Helper()
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := t.Host.Code(short, id, c); !errs.Is(err, errs.Canceled) {
		t.Errorf("%s: %v", c.Text, err)
	}
}

// testWarm: an image of a language has its interpreter running.
func testWarm(t *tester) {
	for _, language := range t.c.Languages {
		image := t.build(node.Build{Image: language + "@1", Language: language, Init: []string{"echo x > a"}})
		one, two := t.start(image), t.start(image)
		text := map[string]string{api.Python: "open('a').read(), globals().setdefault('v', 1)", api.JavaScript: "[require('fs').readFileSync('a', 'utf8'), globalThis.v ??= 1]"}[language]
		want := map[string]string{api.Python: "('x\\n', 1)\n", api.JavaScript: "[ 'x\\n', 1 ]\n"}[language]
		t.run(one, node.Code{Text: text, Default: language}, want, 0)
		t.run(one, node.Code{Text: "v = 2", Language: language}, map[string]string{api.JavaScript: "2\n"}[language], 0)
		t.run(two, node.Code{Text: text, Default: language}, want, 0)
		random := map[string]string{api.Python: "import random, os; random.random(), os.urandom(4)", api.JavaScript: "[Math.random(), require('crypto').randomBytes(4).toString('hex')]"}[language]
		a, _ := t.code(one, node.Code{Text: random, Default: language})
		b, _ := t.code(two, node.Code{Text: random, Default: language})
		if a.out == b.out {
			t.Errorf("%s: both have the same randomness: %s", language, a.out)
		}
		if list, err := t.Host.Processes(ctx, one); err != nil || len(list) != 0 {
			t.Errorf("%v, %v", list, err)
		}
		if s := t.status(two); s.MemoryShared < 1<<20 || s.Memory > s.MemoryShared || s.CPU == 0 {
			t.Errorf("%s: %+v", language, s)
		}
		// Another workspace instead of the image's.
		_, err := t.Store.Create(ctx, "other-"+language, bucketOptions)
		t.ok(err)
		three := t.id()
		_, err = t.Host.Start(ctx, node.Start{ID: three, Epoch: 1, Image: image, Claim: &node.Claim{}, Volumes: other("other-" + language)})
		t.ok(err)
		t.run(three, node.Code{Text: map[string]string{api.Python: "import os; os.listdir('.')", api.JavaScript: "require('fs').readdirSync('.')"}[language], Default: language}, "[]\n", 0)
		if t.Restart == nil {
			continue
		}
		t.Host = t.Restart()
		t.run(t.start(image), node.Code{Text: text, Default: language}, want, 0)
	}
}

var bucketOptions bucket.CreateOptions

// other replaces the workspace.
func other(name string) []volume.Spec { return []volume.Spec{{Name: "workspace", Bucket: name}} }
