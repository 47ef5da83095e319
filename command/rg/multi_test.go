package rg_test

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestMultiline(t *testing.T) {
	table := commandtest.Table{Setup: []string{"f a.txt foo\nbar\nbaz foo\nbar x\nend\nfoo bar\n", "f b.txt one\ntwo foo\n", "f e ", "f cut x\nfoo\nbar", "f long aaaaaaaaaaaaaaaaaaaa foo\nb foo\n", "f gaps foo\nbar\n1\n2\n3\n4\nfoo\nbar\n5\n"}, Loose: true, Stdin: "foo\nbar\n",
		Lines: []string{`rg -U foo\nbar a.txt`, `rg -Un foo\nbar a.txt`, `rg -Uon foo\nbar a.txt`, `rg -Uc foo\nbar a.txt`, `rg -U --count-matches foo\nbar a.txt`, `rg -U foo.*end a.txt`, `rg -U --multiline-dotall foo.*?end a.txt`, `rg -Un --column foo\nbar a.txt b.txt`, `rg -Un -A1 'z foo\nbar' a.txt b.txt`, `rg foo\nbar a.txt`, `rg -U -v foo\nbar a.txt`, `rg -Ul foo\n --sort path`, `rg -Uob foo\s+bar a.txt`,
			`rg -U ^foo$ a.txt`, `rg --vimgrep -U foo\nbar a.txt`, `rg -Uq foo\nbar`, `rg -U foo\nbar cut`, `rg -Un foo$ cut`, `rg -U zz a.txt`, `rg -Un -C1 foo\nbar gaps`, `rg -UnB2 foo\nbar gaps`, `rg -U foo\nbar -`, `rg -Ui FOO\nB a.txt`, `rg -UF foo a.txt`, `rg -U x e`, `rg -Uw foo a.txt`, `rg --multiline -n bar\n+end a.txt`, `rg -Uc foo a.txt b.txt --sort path`,
			`rg --trim -n ' *bar' a.txt`, `rg --passthru zz b.txt`, `rg --passthru -n foo b.txt`, `rg -M 10 foo long`, `rg --heading -n foo a.txt b.txt --sort path`, `rg --heading foo a.txt`, `rg --include-zero -c zz a.txt`, `rg --no-messages foo nope a.txt`, `rg --context-separator XX -A1 foo gaps`, `rg --max-filesize 20 -c foo --sort path`, `rg --no-config --line-buffered -p --color never foo a.txt`, `rg -B 100000 -n end a.txt`, `rg --passthru -Un foo\nbar gaps`}}
	commandtest.Run(t, command.NewSet(nil), table)
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"d d", "f d/x foo\n", "l d/loop ..", "l d/self .", "l out d/x"}, Loose: true, Sorted: true, Lines: []string{"rg -L --sort path foo", "rg -L --sort path foo .", "rg -L foo d --sort path", "rg -L --files --sort path", "rg foo --sort path"}})
}

// The events and numbers are the machine's, but for times.
func TestEvents(t *testing.T) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		t.Skip("rg isn't installed here; this runs where it is")
	}
	elapsed := regexp.MustCompile(`("elapsed(_total)?":)\{[^}]*\}|[0-9.]+ seconds|[0-9.]+s`)
	printed := regexp.MustCompile(`"bytes_printed":[0-9]+`)
	table := commandtest.Table{Setup: []string{"f a.txt foo\nbar\nbaz foo <&>\nbar x\nend\nfoo bar\n", "f b.txt one\ntwo foo\n", "f bad a\xffb foo\n", "f quote \"foo\\ \t\x01\u2028é\n"}}
	for _, line := range []string{"rg --json foo a.txt b.txt", "rg --json -A1 -v foo b.txt", `rg --json -U foo\nbar a.txt`, "rg --json nope a.txt", "rg --json -C1 foo a.txt", "rg --json foo bad", "rg --json foo quote", "rg --json -q foo a.txt", "rg --json -m1 foo a.txt", "rg --json -r X foo b.txt", "rg --json -o foo b.txt", "rg --json -i FOO --sort path .",
		"rg --stats foo a.txt b.txt", "rg --stats -c zz a.txt", "rg --stats -v foo a.txt", "rg --stats -l foo a.txt b.txt", "rg --stats -n foo a.txt", `rg --stats -U foo\nbar a.txt`} {
		words, _ := commandtest.Split(line)
		dir := t.TempDir()
		for _, f := range table.Setup {
			name, text, _ := bytes.Cut([]byte(f[2:]), []byte(" "))
			write(t, dir+"/"+string(name), text)
		}
		cmd := exec.Command(rg, append([]string{"-j1"}, words[1:]...)...) // several threads print in any order
		cmd.Dir = dir
		out, _ := cmd.Output()
		mask := func(s string) string {
			return printed.ReplaceAllString(elapsed.ReplaceAllString(s, "$1 T"), "P")
		}
		got := table.Sandbox(t, command.NewSet(nil), words, "")
		if g, w := mask(got.Stdout), mask(string(out)); g != w {
			t.Errorf("%s\n got %s\nwant %s", line, g, w)
		}
		if got.Status != cmd.ProcessState.ExitCode() {
			t.Errorf("%s: status %d", line, got.Status)
		}
	}
}

func write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
