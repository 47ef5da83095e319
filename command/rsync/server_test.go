package rsync_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/hostfs"
	"agentrun.dev/vfs/memfs"
)

// TestMain is also the remote shell of the tests: a real rsync starts this binary instead of ssh, and it runs what ssh would
// have run, in a sandbox on one folder.
func TestMain(m *testing.M) {
	if dir := os.Getenv("RSYNC_TEST_SANDBOX"); dir != "" {
		os.Exit(remote(dir, os.Args[1:]))
	}
	os.Exit(m.Run())
}

func remote(dir string, args []string) int {
	for i, a := range args {
		if a == "rsync" {
			args = args[i:]
			break
		}
	}
	fs, err := hostfs.New(dir, hostfs.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	ns := vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{})})
	s, err := proc.New(proc.Options{Namespace: ns, Commands: commands})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	p, err := s.NewProcess(proc.Root{Args: args, Dir: "/", Cred: vfs.Cred{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Umask: 0o022},
		Files: map[int]vfs.File{0: proc.NewInput(os.Stdin, false), 1: s.NewOutput(os.Stdout, false), 2: s.NewOutput(os.Stderr, false)}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	p.Start(proc.Func(func(p *proc.Process) int {
		if err := p.Mkdir("/remote", 0o755); err != nil {
			return 98
		}
		if err := ns.Mount(p.Context(), vfs.Mount{Path: "/remote", FS: fs}); err != nil {
			return 97
		}
		if err := p.Chdir("/remote"); err != nil {
			return 96
		}
		prog, _ := commands.Lookup("rsync")
		return prog.Run(p)
	}))
	<-p.Done()
	return p.Status()
}

// tree makes files to copy.
func tree(t *testing.T, dir string, seed byte) {
	t.Helper()
	big := make([]byte, 900_000)
	x := uint32(seed) + 1
	for i := range big {
		x = x*1664525 + 1013904223
		big[i] = byte(x >> 24)
	}
	for name, content := range map[string]string{"a.txt": "alpha\n", "sub/b.c": "int main;\n", "sub/deep/c.o": strings.Repeat("object\n", 1000), "big": string(big), "empty": "", "name with space": "x",
		"ünï": "y", "sub/" + strings.Repeat("long", 50): "z"} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	os.Symlink("a.txt", filepath.Join(dir, "link"))
	os.Link(filepath.Join(dir, "a.txt"), filepath.Join(dir, "sub/hard"))
	os.Mkdir(filepath.Join(dir, "hollow"), 0o700)
	stamp(t, dir, 1_700_000_000)
}

// stamp gives all that is newer a fixed time.
func stamp(t *testing.T, dir string, at int64) {
	t.Helper()
	filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if info, ierr := d.Info(); err == nil && ierr == nil && info.Mode()&os.ModeSymlink == 0 && info.ModTime().Unix() > 1_700_000_000 {
			defer os.Chtimes(p, time.Unix(at, 0), time.Unix(at, 0))
		}
		return err
	})
}

// listing describes a folder: names, types, permissions, times and contents.
func listing(t *testing.T, dir string, times bool) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if rel == "." {
			return nil
		}
		content := ""
		switch {
		case info.Mode()&os.ModeSymlink != 0:
			content, _ = os.Readlink(p)
		case info.Mode().IsRegular():
			c, _ := os.ReadFile(p)
			content = fmt.Sprintf("%d %x", len(c), bytes.NewBuffer(c).String()[:min(len(c), 20)])
			if len(c) > 20 {
				content += fmt.Sprintf(" %x", sum(c))
			}
		}
		at := ""
		if times && info.Mode()&os.ModeSymlink == 0 {
			at = fmt.Sprint(info.ModTime().Unix())
			if time.Since(info.ModTime()).Abs() < time.Hour {
				at = "now" // not of the same second in two runs
			}
		}
		fmt.Fprintf(&b, "%s %s %s %s\n", rel, info.Mode(), at, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func sum(b []byte) (h uint64) {
	for _, c := range b {
		h = h*1099511628211 + uint64(c)
	}
	return h
}

// client runs the real rsync against a sandbox on a folder.
func client(t *testing.T, folder, dir string, args ...string) (string, error) {
	t.Helper()
	real, err := exec.LookPath("rsync")
	if err != nil {
		t.Skip("rsync isn't installed here; this test runs where it is")
	}
	shell := filepath.Join(t.TempDir(), "shell")
	if err := os.WriteFile(shell, []byte(fmt.Sprintf("#!/bin/sh\nRSYNC_TEST_SANDBOX=%s exec %s \"$@\"\n", folder, os.Args[0])), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(real, append([]string{"-e", shell, "--timeout=30"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestServer has a real rsync push to and pull from a sandbox, with many options, and compares what is there with what a
// copy by two real ones leaves.
func TestServer(t *testing.T) {
	for _, options := range []string{"-a", "-r", "-rlt", "-av", "-avi", "-az", "-az --new-compress", "-aH", "-ac", "-a --delete", "-a --delete-after -v", "-a --delete --exclude *.o", "-a --exclude sub/deep", "-aW", "-a -I", "-az -I", "-a --inplace",
		"-a --numeric-ids", "-an --delete -v", "-au", "-a --size-only", "-a --existing", "-a --ignore-existing", "-ab", "-rR", "-am", "-a --partial", "-a --no-inc-recursive", "-a --stats", "-aO", "-a --checksum-choice=md5", "-aL", "-a --max-size=1k", "-aHAX --no-A --no-X", "-a -s", "-a --delete-excluded --exclude *.txt", "-aii", "-avv", "-a --out-format=%i:%n"} {
		for _, push := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s push=%v", options, push), func(t *testing.T) {
				src, ours, theirs := t.TempDir(), t.TempDir(), t.TempDir()
				tree(t, src, 1)
				for _, d := range []string{ours, theirs} {
					tree(t, d, 1)
					edit(t, d)
				}
				args := strings.Fields(options)
				var out string
				var err error
				if push {
					out, err = client(t, ours, src, append(args, "./", "host:/remote/")...)
				} else {
					out, err = client(t, src, ours, append(args, "host:/remote/", "./")...)
				}
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				from := "./"
				if !push && strings.Contains(options, "R") {
					return // the name of the folder differs
				}
				cmd := exec.Command("rsync", append(args, from, theirs+"/")...)
				cmd.Dir = src
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				times := strings.Contains(options, "a") || strings.Contains(options, "t")
				if got, want := listing(t, ours, times && !strings.Contains(options, "-n")), listing(t, theirs, times && !strings.Contains(options, "-n")); got != want {
					t.Errorf("%s\ngot\n%s\nwant\n%s", out, got, want)
				}
			})
		}
	}
}

// edit changes a copy, so that there is something to do.
func edit(t *testing.T, dir string) {
	t.Helper()
	big, err := os.ReadFile(filepath.Join(dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	big = append(append(append([]byte("inserted at the front"), big[:300_000]...), "and in the middle"...), big[310_000:]...)
	for name, content := range map[string]string{"big": string(big), "extra.txt": "extra", "gone/x": "x", "gone/y.o": "y", "sub/deep/c.o": strings.Repeat("object\n", 999) + "changed\n", "a.txt": "alphA\n"} {
		p := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(p), 0o755)
		if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	os.Remove(filepath.Join(dir, "link"))
	os.Symlink("elsewhere", filepath.Join(dir, "link"))
	stamp(t, dir, 1_699_999_900)
}
