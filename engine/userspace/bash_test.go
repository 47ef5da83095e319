package userspace

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"agentrun.dev/vfs"
	"agentrun.dev/vfs/hostfs"
)

var took = regexp.MustCompile(`\b0m0\.\d{3}s`)

// TestAgainstBash runs the scripts of testdata in a sandbox and in the bash of this machine, and compares what they
// write and their statuses. A file holds scripts that are separated by lines "#### name"; "#### name !reason" is a known
// deviation: it must differ, so that the note goes when the reason does.
func TestAgainstBash(t *testing.T) {
	path, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("NO BASH HERE: the comparison with bash runs where /bin/bash is installed, as on Debian")
	}
	if out, _ := exec.Command(path, "-c", "echo $BASH_VERSION").Output(); !strings.HasPrefix(string(out), "5.2") {
		t.Skipf("BASH %s HERE: the comparison is with 5.2", strings.TrimSpace(string(out)))
	}
	files, err := filepath.Glob("testdata/*.sh")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split("\n"+string(data), "\n#### ")[1:] {
			name, script, _ := strings.Cut(part, "\n")
			name, reason, deviates := strings.Cut(name, " !")
			t.Run(strings.TrimSuffix(filepath.Base(file), ".sh")+"/"+name, func(t *testing.T) {
				t.Parallel()
				compare(t, path, script, deviates, reason)
			})
		}
	}
}

func compare(t *testing.T, path, script string, deviates bool, reason string) {
	host := t.TempDir()
	real := exec.Command(path, "-c", script)
	real.Args[0] = "bash"
	real.Dir = host
	real.Env = []string{"PATH=/usr/bin:/bin", "HOME=/home/user", "LC_ALL=C.UTF-8", "TZ=UTC0"}
	var want bytes.Buffer
	real.Stdout = &want
	var complaint bytes.Buffer
	real.Stderr = &complaint
	// A parent such as nohup may have had this ignored, which bash would inherit; what Go catches its children don't.
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	real.Run()
	dir := t.TempDir()
	fs, err := hostfs.New(dir, hostfs.Options{UID: UID, GID: GID})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{Env: real.Env, Volumes: []vfs.Mount{{Path: "/task", FS: fs}}, Dir: "/task"})
	got, errOut, status, err := run(t, s, bash(script))
	if err != nil {
		t.Fatal(err)
	}
	// What time prints is never the same twice.
	same := took.ReplaceAllString(got, "0m0.000s") == took.ReplaceAllString(want.String(), "0m0.000s") && status == real.ProcessState.ExitCode()
	switch {
	case deviates && same:
		t.Errorf("no longer deviates; was said to: %s", reason)
	case !deviates && !same:
		t.Errorf("status %d, want %d\ngot:\n%s\nwant:\n%s\nerrors here:\n%s\nof bash:\n%s", status, real.ProcessState.ExitCode(), got, want.String(), errOut, complaint.String())
	}
}
