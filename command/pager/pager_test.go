package pager_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

func TestAsCat(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f a one\ntwo\n", "f b three", "d d"}, Stdin: "standard input\n",
		Lines: []string{"less a", "less a b", "less", "less - a", "less -N a", "less -S -R a", "less -FX a", "less nope", "less a nope b", "less d", "less +G a", "less -p tw a", "less -x4 a", "more a", "more a b", "more nope", "more d", "more -s a", "more"},
	})
}

// press runs a command on a terminal, types keys one after the other, and returns what was shown at the end.
func press(t *testing.T, args []string, keys ...string) string {
	t.Helper()
	set := command.NewSet(nil)
	s := commandtest.NewSandbox(t, set)
	tty, err := s.NewTTY(proc.WinSize{Rows: 6, Cols: 30}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := 1; i <= 20; i++ {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	p, err := s.NewProcess(proc.Root{Args: args, Env: []string{"PATH=/bin", "TERM=xterm"}, TTY: tty})
	if err != nil {
		t.Fatal(err)
	}
	ns := s.Namespace()
	f, err := ns.Open(context.Background(), vfs.Cred{}, "/", "f", 0o101, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	f.Write([]byte(text.String()))
	f.Close()
	shown := make(chan string, 100)
	go func() {
		buf := make([]byte, 8192)
		for {
			n, err := tty.Read(buf)
			if n > 0 {
				shown <- string(buf[:n])
			}
			if err != nil {
				close(shown)
				return
			}
		}
	}()
	collect := func() string {
		var b strings.Builder
		for {
			select {
			case s, ok := <-shown:
				b.WriteString(s)
				if !ok {
					return b.String()
				}
			case <-time.After(200 * time.Millisecond):
				return b.String()
			case <-time.After(10 * time.Second):
				t.Fatal("nothing is shown")
			}
		}
	}
	prog, _ := set.Lookup(args[0])
	p.Start(prog)
	last := collect()
	for _, k := range keys {
		tty.Write([]byte(k))
		last = collect()
	}
	tty.Write([]byte("q"))
	select {
	case <-p.Done():
	case <-time.After(10 * time.Second):
		t.Errorf("%q doesn't end", args)
		p.Post(proc.SIGKILL)
	}
	tty.Close()
	return strings.NewReplacer("\x1b[m", "", "\x1b[7m", "", "\x1b[27m", "", "\x1b[H\x1b[J", "@", "\r", "").Replace(last)
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		args, keys []string
		want       string
	}{
		{[]string{"less", "f"}, nil, "@line 1\nline 2\nline 3\nline 4\nline 5\nf"},
		{[]string{"less", "f"}, []string{" "}, "@line 6\nline 7\nline 8\nline 9\nline 10\n:"},
		{[]string{"less", "f"}, []string{"G"}, "@line 16\nline 17\nline 18\nline 19\nline 20\n(END)"},
		{[]string{"less", "f"}, []string{"G", "g"}, "@line 1\nline 2\nline 3\nline 4\nline 5\nf"},
		{[]string{"less", "f"}, []string{"j", "j"}, "@line 3\nline 4\nline 5\nline 6\nline 7\n:"},
		{[]string{"less", "f"}, []string{"1", "0", "g", "k"}, "@line 9\nline 10\nline 11\nline 12\nline 13\n:"},
		{[]string{"less", "f"}, []string{"/1[57]\n", "n"}, "@line 17\nline 18\nline 19\nline 20\n~\n(END)"},
		{[]string{"less", "f"}, []string{"/nope\n"}, "@line 1\nline 2\nline 3\nline 4\nline 5\nPattern not found  (press RETU"},
		{[]string{"less", "-N", "f"}, nil, "@      1 line 1\n      2 line 2\n      3 line 3\n      4 line 4\n      5 line 5\nf"},
		{[]string{"less", "+G", "f"}, nil, "@line 16\nline 17\nline 18\nline 19\nline 20\n(END)"},
		{[]string{"more", "f"}, []string{" "}, "@line 6\nline 7\nline 8\nline 9\nline 10\n--More--"},
	} {
		got := press(t, c.args, c.keys...)
		if i := strings.LastIndexByte(got, '@'); i >= 0 {
			got = got[i:]
		}
		if got != c.want && !strings.HasPrefix(c.want, got+"U") && got != strings.TrimSuffix(c.want, "U") {
			t.Errorf("%q %q: got %q, want %q", c.args, c.keys, got, c.want)
		}
	}
}

func TestWatch(t *testing.T) {
	table := commandtest.Table{}
	set := command.NewSet(map[string]proc.Program{"sh": proc.Func(func(p *proc.Process) int { p.Stdout().Write([]byte("hello\nthere\n")); return 3 })})
	r := table.Sandbox(t, set, []string{"watch", "-e", "-n", "0.1", "x"}, "")
	if !strings.Contains(r.Stdout, "Every 0.1s: x") || !strings.Contains(r.Stdout, "\n\nhello\nthere\n") || r.Status != 8 {
		t.Errorf("status %d, %q", r.Status, r.Stdout)
	}
	if r := table.Sandbox(t, set, []string{"watch", "-t", "-q", "2", "-n", "0.1", "x"}, ""); strings.Count(r.Stdout, "hello") != 3 || r.Status != 0 {
		t.Errorf("status %d, %q", r.Status, r.Stdout)
	}
}
