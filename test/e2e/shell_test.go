package e2e

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"agentrun.dev/test/harness"
)

// TestShell sits at a terminal before `agentrun shell`: in a fork on the server, and in this machine's own process.
func TestShell(t *testing.T) {
	s := startAgentRun(t)
	bin := harness.Binary(t)
	s.Run(bin, "buckets", "create", "base")
	s.RunInput("from base\n", bin, "run", "--bucket", "base", "--", "cat > file.txt")
	forks := func(s *script) (n int) {
		return strings.Count(s.Run(bin, "buckets", "list", "--json"), `"sandbox-`)
	}
	// open starts a shell at a terminal; wait returns its exit status once the terminal is as it was.
	open := func(s *script, args ...string) (p *harness.PTY, cmd *exec.Cmd, wait func() int) {
		p = harness.NewPTY(s.t)
		before := p.Modes()
		cmd = exec.Command(bin, append([]string{"shell"}, args...)...)
		cmd.Env, cmd.Dir = append(s.Env, "TERM=xterm-test"), s.Dir
		p.Start(cmd)
		return p, cmd, func() int {
			s.t.Helper()
			_ = cmd.Wait()
			if after := p.Modes(); after != before {
				s.t.Errorf("the terminal was left otherwise: %+v, was %+v", after, before)
			}
			return cmd.ProcessState.ExitCode()
		}
	}
	resized := "until [ \"$(stty size)\" = '41 142' ]; do sleep 0.01; done; echo re''sized\r"

	s.step("on a fork", func(s *script) {
		p, _, wait := open(s, "base")
		p.Until("on a fork of base")
		p.Type("cat file.txt; echo $TERM; stty size; tty; pwd\r")
		p.Until("from base\r\nxterm-test\r\n24 80\r\n/dev/pts/0\r\n/workspace\r\n")
		p.Resize(142, 41)
		p.Type(resized)
		p.Until("resized\r\n")
		p.Type("(echo wa''iting; exec sleep 1000)\r")
		p.Until("waiting\r\n")
		p.Type("\x03echo st''atus $?\r")
		p.Until("status 130\r\n")
		p.Type("echo changed > file.txt; exit 7\r")
		equal(s, "status", wait(), 7)
		equal(s, "base", s.Run(bin, "run", "--bucket", "base", "--", "cat file.txt"), "from base\n")
		equal(s, "forks left", forks(s), 0)
	})
	s.step("kept, of a snapshot", func(s *script) {
		s.Run(bin, "snapshots", "take", "base", "v1")
		s.Run(bin, "run", "--bucket", "base", "--", "echo later > file.txt")
		p, _, wait := open(s, "base@v1", "--keep")
		p.Type("cat file.txt; echo mine > mine.txt; exit\r")
		p.Until("from base\r\n")
		p.Until("kept as bucket sandbox-")
		equal(s, "status", wait(), 0)
		equal(s, "forks left", forks(s), 1)
	})
	s.step("ended from outside", func(s *script) {
		for _, args := range [][]string{{"base"}, nil} {
			p, cmd, wait := open(s, args...)
			p.Type("echo re''ady; sleep 1000\r")
			p.Until("ready\r\n")
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				s.t.Fatal(err)
			}
			equal(s, "status", wait(), 128+15)
		}
		equal(s, "forks left", forks(s), 1)
	})
	s.step("in this process", func(s *script) {
		s.Write("mine/note", []byte("of the host\n"))
		p, _, wait := open(s, "-v", "mine:/mine")
		p.Until("in memory")
		p.Resize(142, 41)
		p.Type("cat /mine/note; echo new > /mine/new; ls -A; " + resized)
		p.Until("of the host\r\n")
		p.Until("resized\r\n")
		p.Type("exit 3\r")
		equal(s, "status", wait(), 3)
		equal(s, "written", string(s.Read("mine/new")), "new\n")
	})
	s.step("without a terminal", func(s *script) {
		equal(s, "script", s.RunInput("cat file.txt; echo x > file.txt\n", bin, "shell", "base"), "later\n")
		r := s.Exec("sh", "-c", "echo 'exit 9' | "+bin+" shell")
		equal(s, "status", r.Exit, 9)
		equal(s, "no such bucket", s.Exec(bin, "shell", "nope").Exit, 125)
		s.Fails([]string{"which bucket"}, bin, "shell", "--keep")
	})
}
