package shell_test

import (
	"strings"
	"testing"
	"time"

	"agentrun.dev/proc"
	"agentrun.dev/shell"
)

// busy waits until a command has the terminal.
func (s *session) busy() {
	s.t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if g, err := s.p.Foreground(0); err == nil && g != s.p.Pgid() {
			time.Sleep(5 * time.Millisecond) // its program begins
			return
		}
	}
	s.t.Fatalf("nothing has the terminal; the screen is\n%s", s.scr)
}

// What is typed, and what the screen then ends with, as with bash 5.2. A step that begins with ! is typed once a command has
// the terminal.
var jobTranscripts = []struct {
	name  string
	steps [][2]string
}{
	{"stop", [][2]string{{"sleep 99\r", ""}, {"!\x1a", "$ sleep 99\n^Z\n[1]+  Stopped                 sleep 99\n$"}, {"echo $?\r", "148\n$"},
		{"jobs -l | sed 's/  *[0-9][0-9]* / N /'\r", "[1]+ N Stopped                 sleep 99\n$"}, {"bg\r", "[1]+ sleep 99 &\n$"},
		{"jobs\r", "[1]+  Running                 sleep 99 &\n$"}, {"bg\r", "bash: bg: job 1 already in background\n$"}, {"fg\r", "sleep 99"},
		{"!\x03", "sleep 99\n^C\n$"}, {"echo $?\r", "130\n$"}, {"fg\r", "bash: fg: current: no such job\n$"}}},
	{"marks", [][2]string{{"sleep 9 & sleep 8 & sleep 7 &\r", "$"}, {"jobs\r", "[1]   Running                 sleep 9 &\n[2]-  Running                 sleep 8 &\n[3]+  Running                 sleep 7 &\n$"},
		{"fg %1\r", "sleep 9"}, {"!\x1a", "[1]+  Stopped                 sleep 9\n$"},
		{"jobs\r", "[1]+  Stopped                 sleep 9\n[2]   Running                 sleep 8 &\n[3]-  Running                 sleep 7 &\n$"},
		{"jobs -s; jobs -r | wc -l\r", "[1]+  Stopped                 sleep 9\n2\n$"},
		{"fg %sleep\r", "bash: fg: sleep: ambiguous job spec\n$"}, {"fg %?8\r", "sleep 8"}, {"!\x03", "^C\n$"}}},
	{"loops end", [][2]string{{"for i in 1 2; do sleep 99; echo i; done\r", ""}, {"!\x1a", "[1]+  Stopped                 sleep 99\n$"},
		{"while :; do sleep 98; done\r", ""}, {"!\x03", "^C\n$"}, {"echo $?\r", "130\n$"}}},
	{"lists go on after a stop", [][2]string{{"sleep 99; echo a$?\r", ""}, {"!\x1a", "[1]+  Stopped                 sleep 99\na148\n$"},
		{"sleep 98; echo b$?\r", ""}, {"!\x03", "^C\n$"}}},
	{"pipelines", [][2]string{{"sleep 99 | cat\r", ""}, {"!\x1a", "[1]+  Stopped                 sleep 99 | cat\n$"},
		{"jobs -l | sed 's/  *[0-9][0-9]* / N /'\r", "[1]+ N Stopped                 sleep 99\n N                       | cat\n$"},
		{"jobs -p | wc -l\r", "1\n$"}, {"fg\r", "sleep 99 | cat"}, {"!\x03", "^C\n$"}, {"echo $?\r", "130\n$"}}},
	{"subshells", [][2]string{{"(sleep 99; echo sub)\r", ""}, {"!\x1a", "[1]+  Stopped                 ( sleep 99; echo sub )\n$"},
		{"kill %1; sleep 0.3\r", "[1]+  Terminated              ( sleep 99; echo sub )\n$"}}},
	{"input in the background", [][2]string{{"cat &\r", "$"}, {"while [ -z \"$(jobs -s)\" ]; do :; done; jobs\r", "[1]+  Stopped                 cat\n$"}, {"fg\r", "cat"}, {"!hello\r", "hello\nhello"},
		{"\x04", "$"}, {"echo $?\r", "$ echo $?\n0\n$"}}},
	{"ends are told at the prompt", [][2]string{{"false & wait\r", "[1]+  Exit 1                  false\n$"},
		{"true & wait $!\r", "[1]+  Done                    true\n$"}}},
	{"stopped jobs at the end", [][2]string{{"sleep 99\r", ""}, {"!\x1a", "[1]+  Stopped                 sleep 99\n$"}, {"exit\r", "exit\nThere are stopped jobs.\n$"}, {"exit\r", "exit\nexit"}}},
	{"disown", [][2]string{{"sleep 99 & disown; jobs; disown\r", "bash: disown: current: no such job\n$"}, {"sleep 98 & sleep 97 & disown -r; jobs\r", "$"}}},
	{"waiting for what is stopped", [][2]string{{"sleep 99\r", ""}, {"!\x1a", "$"}, {"wait %1; echo $?\r", "148\n$"}, {"kill %1; wait %1; echo $?\r", "143\n[1]+  Terminated              sleep 99\n$"}}},
	{"without", [][2]string{{"set +m\r", "$"}, {"sleep 9 & fg\r", "bash: fg: no job control\n$"}}},
	{"a shell in the shell", [][2]string{{"bash --norc\r", "$ bash --norc\n$"}, {"sleep 99\r", "sleep 99"}, {"!\x1a", "[1]+  Stopped                 sleep 99\n$"}, {"suspend -f\r", "[1]+  Stopped                 bash --norc\n$"},
		{"fg\r", "bash --norc\n$"}, {"jobs\r", "[1]+  Stopped                 sleep 99\n$"}}},
}

func TestJobControl(t *testing.T) {
	for _, tc := range jobTranscripts {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSession(t)
			s.tty.Resize(proc.WinSize{Cols: 100, Rows: 20})
			s.scr.mu.Lock()
			s.scr.cols = 100
			s.scr.mu.Unlock()
			s.wait("$")
			for _, step := range tc.steps {
				keys := step[0]
				if keys[0] == '!' {
					s.busy()
					keys = keys[1:]
				}
				s.keys(keys, step[1])
			}
		})
	}
}

// Scripts that ask for job control, and what shells say of those that signals have ended: as bash 5.2 does.
func TestJobScripts(t *testing.T) {
	for _, tc := range []struct{ name, script, want string }{
		{"killed in the foreground", `bash -c 'kill -9 $$' a "b c"; echo $?`, "bash: line 1: PID Killed                  bash -c 'kill -9 $$' a \"b c\"\n137\n"},
		{"terminated", `bash -c 'kill $$'; echo $?`, "Terminated\n143\n"},
		{"interrupted", `bash -c 'kill -INT $$'; echo $?; bash -c 'kill -PIPE $$'; echo $?`, "130\n141\n"},
		{"in a pipeline", `true | bash -c 'kill -HUP $$'; echo ${PIPESTATUS[*]}`, "bash: line 1: PID Done                    true\n      PID Hangup                  | bash -c 'kill -HUP $$'\n0 129\n"},
		{"in a subshell", `(kill -9 $BASHPID); echo $?`, "bash: line 1: PID Killed                  ( kill -9 $BASHPID )\n137\n"},
		{"in the background", `sleep 9 & kill -9 $!; wait $!; echo $?`, "bash: line 1: PID Killed                  sleep 9\n137\n"},
		{"trapped", `trap 'echo t' HUP; bash -c 'kill -HUP $$'; echo $?`, "129\n"},
		{"groups", `set -m; sleep 9 | sleep 8 & p=$(jobs -p); ps -o pgid= -p $p,$! | tr -d ' ' | uniq | wc -l; kill %1; wait; jobs`, "1\n[1]+  Terminated              sleep 9 | sleep 8\n"},
		{"stopped", `set -m; sleep 9 & kill -STOP $!; while [ -z "$(jobs -s)" ]; do :; done; jobs; kill -CONT %1; jobs; kill -9 %1; wait %1; echo $?`,
			"[1]+  Stopped                 sleep 9\n[1]+  Running                 sleep 9 &\nbash: line 1: PID Killed                  sleep 9\n137\n"},
		{"fg", `set -m; (sleep 0.1; exit 3) & fg; echo $?; fg`, "( sleep 0.1; exit 3 )\n3\nbash: line 1: fg: current: no such job\n"},
		{"jobs -x", `sleep 9 & jobs -x echo %1 | grep -qx $! && echo same; kill $!`, "same\n"},
		{"suspend", `suspend; echo $?`, "bash: line 1: suspend: cannot suspend: no job control\n1\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			out, _ := perform(t, shell.New(false), shell.New(true), `bash -c '`+strings.ReplaceAll(tc.script, "'", `'\''`)+`' 2>&1 | sed -E 's/^( *)[0-9]+ (Done|Hangup)/\1PID \2/; s/(line [0-9]+:) *[0-9]+ /\1 PID /; s/^ +PID/      PID/'`)
			if out != tc.want {
				t.Errorf("got:\n%s\nwant:\n%s", out, tc.want)
			}
		})
	}
}
