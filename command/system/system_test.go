package system_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

func TestAgainstMachine(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f a x\n", "d d", "x d/x y", "l l d/x", "f pid 2 2\n"},
		Lines: []string{"kill", "kill -l", "kill -l 9", "kill -l TERM", "kill -l SIGHUP", "kill -l 137", "kill -L", "kill --list=15", "kill -l foo", "kill abc", "kill -s foo 1", "kill 999999", "kill -9 999999 999998", "kill -0 999999", "kill -TERM 999999", "kill -s INT 999999", "kill --version",
			"pgrep", "pgrep -x", "pgrep nosuchprocess", "pgrep a b", "pgrep -c nosuchprocess", "pkill nosuchprocess", "pkill", "pkill -9 nosuchprocess", "pidof nosuchprocess", "killall nosuchprocess", "killall -q nosuchprocess", "killall -s FOO x", "ps -o nope", "ps -C nosuchprocess -o pid=,comm=", "ps -o pid= -p 999999",
			"setsid", "setsid -w true", "flock", "flock a echo hi", "flock -n a true", "flock -c", "flock nodir/x true", "flock d echo in", "flock -x -c", "renice", "renice 5", "renice x -p 1", "getconf", "getconf nope", "getconf PATH", "getconf ARG_MAX", "getconf PAGE_SIZE", "getconf PATH_MAX .", "getconf NAME_MAX .", "getconf LONG_BIT", "getconf PATH_MAX", "getconf LINE_MAX", "getconf _POSIX_VERSION", "getconf CHAR_BIT", "getconf PATH_MAX nope", "getent", "getent nope x", "getent hosts nosuchhost.invalid", "getent passwd nosuchuser",
			"namei d/x", "namei l", "namei -m d/x", "namei nope", "namei d/nope/x", "namei -n l", "namei", "time -p true", "time -f %x true", "time -f %C echo a b", "stty", "stty -a", "stty size", "tput -T xterm bold", "tput -T xterm setaf 1", "tput -T xterm-256color setaf 1", "tput -T xterm-256color setaf 12", "tput -T xterm-256color setaf 200", "tput -T xterm-256color setab 9", "tput -T xterm-256color setaf", "tput -T xterm cup 3 4", "tput -T xterm-256color colors", "tput -T xterm colors", "tput -T dumb bold", "tput -T dumb colors", "tput -T vt100 colors", "tput -T zz bold", "tput bold", "tput -T xterm nope", "tput -T xterm clear", "tput -T xterm am", "tput -T xterm hc", "tput -T xterm longname", "tput", "clear", "clear -T xterm", "clear -x -T xterm", "ipcs", "mesg", "locale", "locale -a", "locale charmap", "locale nope"},
	})
}

// output runs a command in a sandbox with a sleeping process beside it.
func output(t *testing.T, args ...string) (string, int) {
	t.Helper()
	set := command.NewSet(nil)
	s := commandtest.NewSandbox(t, set)
	var out bytes.Buffer
	root := func(args []string) *proc.Process {
		p, err := s.NewProcess(proc.Root{Args: args, Env: []string{"PATH=/bin", "LC_ALL=C.UTF-8"}, Files: map[int]vfs.File{0: proc.NewInput(nil, false), 1: s.NewOutput(&out, false), 2: s.NewOutput(&out, false)}})
		if err != nil {
			t.Fatal(err)
		}
		prog, ok := set.Lookup(args[0])
		if !ok {
			t.Fatal(args[0])
		}
		p.Start(prog)
		return p
	}
	sleeper := root([]string{"sleep", "50"})
	p := root(args)
	<-p.Done()
	sleeper.Post(proc.SIGKILL)
	return out.String(), p.Status()
}

func TestProcesses(t *testing.T) {
	for line, want := range map[string]string{
		"ps -e":                       `(?m)^    PID TTY          TIME CMD\n      2 \?        00:00:00 sleep\n      3 \?        00:00:00 ps\n$`,
		"ps aux":                      `^USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n\S+ +2  0.0  0.0      0     0 \?        [RS]s   \d\d:\d\d   0:00 sleep 50\n`,
		"ps -ef":                      `^UID          PID    PPID  C STIME TTY          TIME CMD\n\S+ +2       1  0 \d\d:\d\d \?        00:00:00 sleep 50\n`,
		"ps -p 2 -o pid,ppid,comm":    "^    PID    PPID COMMAND\n      2       1 sleep\n$",
		"ps -o pid= -p 2":             "^      2\n$",
		"ps -C sleep -o args=":        "^sleep 50\n$",
		"ps -eo pid,cmd --sort=-pid":  "^    PID CMD\n      3 ps .*\n      2 sleep 50\n$",
		"pgrep sleep":                 "^2\n$",
		"pgrep -l sl":                 "^2 sleep\n$",
		"pgrep -af 'sleep'":           "^$",
		"pgrep -a -f sleep.50":        "^2 sleep 50\n$",
		"pgrep -c sleep":              "^1\n$",
		"pidof sleep":                 "^2\n$",
		"pkill -e sleep":              `^sleep killed \(pid 2\)\n$`,
		"killall -v sleep":            `^Killed sleep\(2\) with signal 15\n$`,
		"kill 2":                      "^$",
		"free":                        `^               total        used        free      shared  buff/cache   available\nMem:         2097152           0     2097152           0           0     2097152\nSwap:              0           0           0\n$`,
		"free -h":                     `Mem:           2.0Gi          0B       2.0Gi`,
		"free -m -t":                  `Total:          2048           0        2048\n$`,
		"top -b -n1":                  `(?s)^top - .*Tasks:   2 total.*PID USER      PR  NI    VIRT.* sleep\n`,
		"vmstat":                      `^procs -+memory`,
		"uuidgen":                     `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n$`,
		"uuidgen -s -n @dns -N x.org": `-5[0-9a-f]{3}-`,
		"w":                           ` up .*\nUSER     TTY      FROM             LOGIN@   IDLE   JCPU   PCPU WHAT\n$`,
		"strace true":                 `not available in this sandbox`,
	} {
		got, _ := output(t, strings.Fields(line)...)
		if ok, err := regexp.MatchString(want, got); err != nil || !ok {
			t.Errorf("%s: got %q, want %s (%v)", line, got, want, err)
		}
	}
}

// On a terminal, stty shows and changes its settings.
func TestStty(t *testing.T) {
	set := command.NewSet(nil)
	s := commandtest.NewSandbox(t, set)
	tty, err := s.NewTTY(proc.WinSize{Rows: 24, Cols: 80}, 0)
	if err != nil {
		t.Fatal(err)
	}
	run := func(line string) string {
		f := tty.File() // with the terminal open, its reader doesn't end with the process
		defer f.Close()
		p, err := s.NewProcess(proc.Root{Args: strings.Fields(line), Env: []string{"PATH=/bin"}, Files: map[int]vfs.File{0: tty.File(), 1: tty.File(), 2: tty.File()}})
		if err != nil {
			t.Fatal(err)
		}
		prog, _ := set.Lookup("stty")
		p.Start(prog)
		out := make(chan string)
		go func() {
			var b []byte
			buf := make([]byte, 4096)
			for {
				n, err := tty.Read(buf)
				b = append(b, buf[:n]...)
				if err != nil || strings.HasSuffix(string(b), "END\r\n") {
					break
				}
			}
			out <- string(b)
		}()
		<-p.Done()
		f.Write([]byte("END\n"))
		select {
		case text := <-out:
			return strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "END\n")
		case <-time.After(time.Minute):
			t.Fatal("no output")
			return ""
		}
	}
	if got := run("stty size"); got != "24 80\n" {
		t.Errorf("size: %q", got)
	}
	if got := run("stty -echo rows 30"); got != "" {
		t.Errorf("-echo: %q", got)
	}
	if got := run("stty"); got != "speed 38400 baud; line = 0;\n-brkint iutf8\n-echo\n" {
		t.Errorf("stty: %q", got)
	}
	run("stty sane")
	if got := run("stty -a"); !strings.HasPrefix(got, "speed 38400 baud; rows 30; columns 80; line = 0;\nintr = ^C; quit = ^\\; erase = ^?;") || !strings.Contains(got, "isig icanon iexten echo echoe echok -echonl") {
		t.Errorf("stty -a: %q", got)
	}
}
