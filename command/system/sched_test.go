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
	"agentrun.dev/shell"
	"agentrun.dev/vfs"
)

func TestSchedulers(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Lines: []string{"taskset", "taskset 1", "taskset zz echo", "taskset -c zz echo", "taskset 1 echo a", "taskset -p 999999", "taskset -p abc", "taskset -c 0 echo hi", "taskset -c 0-1,3:2 echo", "taskset 1 nope", "taskset -p 1 999999", "taskset 0x1 echo b", "taskset ,1 echo hi", "taskset 00000000,00000001 echo hi",
			"taskset -c 0-4:2 echo x", "taskset -c 3-1 echo", "taskset -Z", "taskset 1 false", "taskset " + strings.Repeat("0", 5000) + "f echo x",
			"chrt", "chrt -m", "chrt -o 0 echo hi", "chrt -i 0 echo x", "chrt -b 0 echo x", "chrt -o 5 echo", "chrt -p 999999", "chrt -r 200 echo", "chrt -r", "chrt x echo", "chrt -o 0 nope", "chrt -o 0 false",
			"ionice -c 2 -n 3 echo hi", "ionice -c 3 echo hi", "ionice -c idle echo x", "ionice -c 3 -n 2 echo y", "ionice -p 999999", "ionice -c2", "ionice nope", "ionice echo", "ionice -c foo echo", "ionice -p abc", "ionice -c 1 -n x echo", "ionice -P 999999", "ionice -c 9 echo"},
		Differs: map[string]commandtest.Deviation{
			"taskset -pc 0 2":     {Want: "taskset: failed to get pid 2's affinity: No such process\n", Reason: "pids are the sandbox's"},
			"chrt -f 10 echo hi":  {Want: "chrt: failed to set pid 0's policy: Operation not permitted\n", Reason: "nobody has the right"},
			"taskset -c 1 echo x": {Want: "taskset: failed to set pid 3's affinity: Invalid argument\n", Reason: "there is one processor"},
		},
	})
	for line, want := range map[string]string{"taskset -p 2": "pid 2's current affinity mask: 1\n", "taskset -pc 0 2": "pid 2's current affinity list: 0\npid 2's new affinity list: 0\n", "chrt -p 2": "pid 2's current scheduling policy: SCHED_OTHER\npid 2's current scheduling priority: 0\n", "ionice -p 2": "none: prio 0\n"} {
		if got, status := output(t, strings.Fields(line)...); got != want || status != 0 {
			t.Errorf("%s: got %q (%d), want %q", line, got, status, want)
		}
	}
}

func TestFallocate(t *testing.T) {
	blocks := strings.Repeat("a", 4096) + strings.Repeat("b", 4096) + strings.Repeat("c", 4096) + "tail"
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f f 0123456789", "f big " + blocks, "d d"}, Loose: true,
		Lines: []string{"fallocate", "fallocate f", "fallocate -l 10 new", "fallocate -l 0 f", "fallocate -l x f", "fallocate -l 10", "fallocate -l 1KiB a b", "fallocate -v -l 1K f", "fallocate -v -p -o 2 -l 3 f", "fallocate -v -z -o 5 -l 2k f", "fallocate -v -z -n -l 4k f", "fallocate -v -d nope", "fallocate -c -l 100 f", "fallocate -p -l 4 nope",
			"fallocate -d -p -l 3 f", "fallocate -o -4 -l 3 f", "fallocate -x -l 3k f", "fallocate -v -n -l 10k f", "fallocate -n -l 10 g", "fallocate -l 10 d", "fallocate -l 10 nope/x", "fallocate -l 99999P f", "fallocate -c f", "fallocate -l 1.5k h", "fallocate -l 1KB k", "fallocate -o 200 -l 12 f",
			"fallocate -v -c -o 4096 -l 4096 big", "fallocate -c -o 4096 -l 81920 big", "fallocate -i -o 4096 -l 8192 big", "fallocate -i -o 8192 -l 4096 big", "fallocate -i -o 81920 -l 4096 big", "fallocate -c -o 0 -l 8192 big", "fallocate -Z"},
	})
}

// script gives what it runs a terminal, and keeps what is shown there.
func TestScript(t *testing.T) {
	stamp := regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00:00`)
	table := commandtest.Table{Setup: []string{"f old kept\n"}}
	for _, c := range []struct{ line, stdin, out, file string }{
		{`script -qc 'echo hi' out`, "", "hi\r\n", "Script started on T [COMMAND=\"echo hi\" <not executed on terminal>]\nhi\r\n\nScript done on T [COMMAND_EXIT_CODE=\"0\"]\n"},
		{`script -c 'echo hi; exit 3' out`, "", "Script started, output log file is 'out'.\nhi\r\nScript done.\n", "Script started on T [COMMAND=\"echo hi; exit 3\" <not executed on terminal>]\nhi\r\n\nScript done on T [COMMAND_EXIT_CODE=\"3\"]\n"},
		{`script -qec 'exit 3' /dev/null`, "", "#3", ""},
		{`script -qec 'test -t 0 && test -t 1 && tty' /dev/null`, "", "/dev/pts/0\r\n", ""},
		{`script -qc cat /dev/null`, "typed\n", "typed\r\n", ""},
		{`script -qec 'kill -9 $$' /dev/null`, "", "#137", ""},
		{`script a b`, "", "script: unexpected number of arguments\nTry 'script --help' for more information.\n#1", ""},
		{`script -qc 'sleep 100 & echo gone' /dev/null`, "", "gone\r\n", ""},
		{`script -o 100 -qc yes /dev/null`, "", "script: output limit reached\n", ""},
	} {
		words, err := commandtest.Split(c.line)
		if err != nil {
			t.Fatal(err)
		}
		r := table.Sandbox(t, withShell(), words, c.stdin)
		got := r.Stdout + r.Stderr
		if r.Status != 0 {
			got += "#" + string(rune('0'+r.Status%10))
			if r.Status == 137 {
				got = got[:len(got)-1] + "137"
			}
		}
		if strings.Contains(c.line, "yes") {
			got = r.Stderr
		}
		if got != c.out {
			t.Errorf("%s: got %q, want %q", c.line, got, c.out)
		}
		if c.file != "" && !strings.Contains(stamp.ReplaceAllString(r.Tree, "T"), strings.Trim(quoted(c.file), `"`)) {
			t.Errorf("%s: left %q", c.line, r.Tree)
		}
	}
}

func withShell() *command.Set {
	return command.NewSet(map[string]proc.Program{"sh": shell.New(true)})
}

func quoted(s string) string {
	return strings.NewReplacer("\r", `\r`, "\n", `\n`, `"`, `\"`).Replace(s)
}

// A script that is killed leaves nothing running.
func TestScriptKilled(t *testing.T) {
	set := withShell()
	s := commandtest.NewSandbox(t, set)
	var out bytes.Buffer
	p, err := s.NewProcess(proc.Root{Args: []string{"script", "-qc", "echo up; sleep 1000", "/dev/null"}, Env: []string{"PATH=/bin"}, Files: map[int]vfs.File{0: proc.NewInput(nil, false), 1: s.NewOutput(&out, false), 2: s.NewOutput(&out, false)}})
	if err != nil {
		t.Fatal(err)
	}
	prog, _ := set.Lookup("script")
	p.Start(prog)
	for deadline := time.Now().Add(10 * time.Second); len(s.Processes()) < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing has started: " + out.String())
		}
	}
	p.Post(proc.SIGTERM)
	select {
	case <-p.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("still running")
	}
}
