package python_test

import (
	"bytes"
	"strings"
	"testing"

	"agentrun.dev/proc"
)

// within runs f as a process with output.
func within(t testing.TB, s *proc.Sandbox, f func(p *proc.Process)) string {
	t.Helper()
	var out bytes.Buffer
	p, err := s.NewProcess(rootOf(s, &out, &out, "", "session"))
	if err != nil {
		t.Fatal(err)
	}
	p.Start(proc.Func(func(p *proc.Process) int { f(p); return 0 }))
	<-p.Done()
	return out.String()
}

// A session keeps its names, and copies of it go apart.
func TestSession(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	out := within(t, s, func(p *proc.Process) {
		one, err := interpreter().Session(p, "argument")
		if err != nil {
			t.Error(err)
			return
		}
		defer one.Close()
		exec := func(code string, want int) {
			t.Helper()
			if st, err := one.Exec(p.Context(), code); st != want || err != nil {
				t.Errorf("%s: status %d, %v", code, st, err)
			}
		}
		exec("import sys, random; x = [1]", 0)
		exec("x.append(2)\nx", 0)
		exec("sys.argv", 0)
		exec("\n  (\n1)  ", 0)
		exec("sys.exit(3)", 3)
		exec("1/0", 1)
		exec("import os; f = open('file', 'w'); f.write('a'); os._exit(7)", 7)
		exec("x x", 1)
		exec("raise SystemExit('bye')", 1)
		exec("raise SystemExit(5)", 5)
		im, err := one.Image()
		if err != nil {
			t.Error(err)
			return
		}
		defer im.Close()
		if memory, own := im.Size(); own <= 0 || own > memory/2 {
			t.Errorf("%d bytes of %d are its own", own, memory)
		}
		exec("x.append(3); x, None", 0)
		for range 3 {
			c, err := im.Start(p)
			if err != nil {
				t.Error(err)
				return
			}
			c.Exec(p.Context(), "x.append(4); print('copy', x, f.name, random.random())")
			c.Close()
		}
	})
	lines := strings.Split(out, "\n")
	seen := map[string]bool{}
	for _, line := range lines {
		if strings.HasPrefix(line, "copy") {
			if !strings.HasPrefix(line, "copy [1, 2, 4] file 0.") || seen[line] {
				t.Errorf("%q", line)
			}
			seen[line] = true
		}
	}
	for _, want := range []string{"[1, 2]\n['argument']\n", "in <module>\nZeroDivisionError: division by zero\n", "SyntaxError", "bye\n", "([1, 2, 3], None)\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if len(seen) != 3 {
		t.Errorf("%d copies\n%s", len(seen), out)
	}
}
