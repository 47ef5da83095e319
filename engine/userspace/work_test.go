package userspace_test

import (
	"bytes"
	"strings"
	"testing"

	"agentrun.dev/engine"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/errs"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// TestWork: a command works on files that are nobody's sandbox here, and sees nothing else.
func TestWork(t *testing.T) {
	e := userspace.NewEngine(userspace.EngineOptions{})
	ns := vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{Mode: 0o777}), Source: "root", Type: "memory"})
	work := func(stdin string, args ...string) string {
		t.Helper()
		var out, errOut bytes.Buffer
		p, err := e.Work(t.Context(), ns, engine.Cmd{Args: args, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errOut})
		if err != nil {
			t.Fatal(err)
		}
		if status, err := p.Wait(t.Context()); status != 0 || err != nil {
			t.Fatalf("%q: %d, %v, %s", args, status, err, errOut.Bytes())
		}
		return out.String()
	}
	work("text", "tee", "/f")
	if got := work("", "cat", "f"); got != "text" {
		t.Errorf("%q", got)
	}
	if got := work("", "ls", "/"); got != "f\n" {
		t.Errorf("it sees %q", got)
	}
	for _, c := range []engine.Cmd{{}, {Args: []string{"nosuchcommand"}}, {Args: []string{"cat"}, TTY: &engine.Size{}}} {
		if _, err := e.Work(t.Context(), ns, c); !errs.Is(err, errs.Unsupported) && !errs.Is(err, errs.Invalid) {
			t.Errorf("%q: %v", c.Args, err)
		}
	}
	if list, err := e.List(t.Context()); len(list) != 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}
