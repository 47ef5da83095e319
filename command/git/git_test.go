package git

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"agentrun.dev/command/commandtest"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// A script is steps that run in the sandbox and on the host with the machine's own git; what each prints and its status must
// be the same. A step is a git command, or one of: "w PATH CONTENT" (write, Go escapes), "a PATH CONTENT" (append), "x PATH"
// (make executable), "d PATH" (remove), "m PATH" (folder), "l PATH TARGET" (link), "cd PATH", "r PATH" (read: compare),
// "e NAME=VALUE" (environment from here on). "? " before a git command compares only the status and standard output.

type commands struct{}

func (commands) Lookup(name string) (proc.Program, bool) {
	if name == "git" {
		return tool.Func(Git), true
	}
	return nil, false
}

func (commands) Names() []string { return []string{"git"} }

// world runs steps on one side.
type world interface {
	git(args, env []string, dir, stdin string) (out, errout string, status int)
	file(kind byte, path, content string) string
}

func unescape(s string) string {
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\0`, "\x00", `\\`, `\`).Replace(s)
}

func baseEnv(step int) []string {
	at := fmt.Sprintf("%d +0100", 1700000000+step*60)
	return []string{"PATH=/usr/bin:/bin", "HOME=/home", "LC_ALL=C.UTF-8", "TZ=UTC0", "GIT_AUTHOR_NAME=A U Thor", "GIT_AUTHOR_EMAIL=author@example.com",
		"GIT_COMMITTER_NAME=C O Mitter", "GIT_COMMITTER_EMAIL=committer@example.com", "GIT_AUTHOR_DATE=" + at, "GIT_COMMITTER_DATE=" + at,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_MERGE_AUTOEDIT=no"}
}

type hostWorld struct {
	t   *testing.T
	dir string
}

func (h hostWorld) git(args, env []string, dir, stdin string) (string, string, int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	args = append([]string(nil), args...)
	for i, a := range args {
		args[i] = strings.Replace(a, "file:///task", "file://"+h.dir+"/task", 1)
	}
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = filepath.Join(h.dir, "task", dir)
	for i, e := range env {
		if e == "HOME=/home" {
			env[i] = "HOME=" + h.dir + "/home"
		}
	}
	cmd.Env = env
	var out, errout bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errout
	cmd.Run()
	clean := func(b []byte) string { return strings.ReplaceAll(string(b), h.dir, "") }
	return clean(out.Bytes()), clean(errout.Bytes()), cmd.ProcessState.ExitCode()
}

func (h hostWorld) file(kind byte, path, content string) string {
	p := filepath.Join(h.dir, "task", path)
	var err error
	switch kind {
	case 'w':
		err = os.WriteFile(p, []byte(content), 0o644)
	case 'a':
		var f *os.File
		if f, err = os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0); err == nil {
			f.WriteString(content)
			err = f.Close()
		}
	case 'x':
		err = os.Chmod(p, 0o755)
	case 'd':
		err = os.RemoveAll(p)
	case 'm':
		err = os.MkdirAll(p, 0o755)
	case 'l':
		err = os.Symlink(content, p)
	case 'r':
		b, err := os.ReadFile(p)
		if err != nil {
			return "none"
		}
		return string(b)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return ""
}

type boxWorld struct {
	t *testing.T
	s *proc.Sandbox
}

func (b boxWorld) run(dir string, args, env []string, stdin string, out, errout io.Writer, f proc.Program) int {
	p, err := b.s.NewProcess(proc.Root{Args: args, Env: env, Dir: dir, Cred: vfs.Cred{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Umask: 0o022},
		Files: map[int]vfs.File{0: proc.NewInput(strings.NewReader(stdin), false), 1: b.s.NewOutput(out, false), 2: b.s.NewOutput(errout, false)}})
	if err != nil {
		b.t.Fatal(err)
	}
	p.Start(f)
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		b.t.Fatalf("%q doesn't end", args)
	}
	return p.Status()
}

func (b boxWorld) git(args, env []string, dir, stdin string) (string, string, int) {
	var out, errout bytes.Buffer
	status := b.run(filepath.Join("/task", dir), append([]string{"git"}, args...), env, stdin, &out, &errout, tool.Func(Git))
	return out.String(), errout.String(), status
}

func (b boxWorld) file(kind byte, path, content string) (text string) {
	b.run("/task", []string{"file"}, nil, "", io.Discard, io.Discard, tool.Func(func(t *tool.T) int {
		p := filepath.Join("/task", path)
		var err error
		r := &repo{t: t}
		switch kind {
		case 'w':
			err = r.overwrite(p, content)
		case 'a':
			var f vfs.File
			if f, err = t.Append(p); err == nil {
				f.Write([]byte(content))
				err = f.Close()
			}
		case 'x':
			m := vfs.Mode(0o755)
			err = t.SetAttr(p, vfs.SetAttr{Mode: &m}, true)
		case 'd':
			r.removeAll(p)
		case 'm':
			err = r.mkdirAll(p)
		case 'l':
			err = t.Symlink(content, p)
		case 'r':
			c, e := t.ReadFile(p, 1<<20)
			if text = string(c); e != nil {
				text = "none"
			}
		}
		if err != nil {
			b.t.Errorf("%c %s: %v", kind, path, err)
		}
		return 0
	}))
	return text
}

func newWorlds(t *testing.T) (hostWorld, boxWorld) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git isn't installed here; this case runs where it is")
	}
	h := hostWorld{t, t.TempDir()}
	b := boxWorld{t, commandtest.NewSandbox(t, commands{})}
	b.run("/", []string{"setup"}, nil, "", io.Discard, io.Discard, tool.Func(func(t *tool.T) int {
		for _, d := range []string{"/task", "/home", "/tmp"} {
			t.Mkdir(d, 0o755)
		}
		return 0
	}))
	os.Mkdir(h.dir+"/task", 0o755)
	os.Mkdir(h.dir+"/home", 0o755)
	return h, b
}

// script runs steps on both sides and compares.
func script(t *testing.T, text string) (hostWorld, boxWorld) {
	t.Helper()
	h, b := newWorlds(t)
	dir, n, bad := "", 0, 0
	var env []string
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		n++
		if len(line) > 1 && line[1] == ' ' && strings.IndexByte("waxdmlr", line[0]) >= 0 {
			path, content, _ := strings.Cut(line[2:], " ")
			path = filepath.Join(dir, path)
			want, got := h.file(line[0], path, unescape(content)), b.file(line[0], path, unescape(content))
			if want != got {
				t.Errorf("step %d: %s\n got %q\nwant %q", n, line, got, want)
				bad++
			}
			continue
		}
		if rest, ok := strings.CutPrefix(line, "cd "); ok {
			dir = rest
			continue
		}
		if rest, ok := strings.CutPrefix(line, "e "); ok {
			env = append(env, unescape(rest))
			continue
		}
		stdin := ""
		if l, in, ok := strings.Cut(line, " <<< "); ok {
			line, stdin = l, unescape(in)
		}
		loose := strings.HasPrefix(line, "? ")
		words, err := commandtest.Split(strings.TrimPrefix(line, "? "))
		if err != nil {
			t.Fatal(err)
		}
		wo, we, ws := h.git(words, append(baseEnv(n), env...), dir, stdin)
		o, e, s := b.git(words, append(baseEnv(n), env...), dir, stdin)
		if wo != o || we != e && !loose || ws != s {
			t.Errorf("step %d: git %s\n%s", n, line, firstDifference(o, wo, e, we, s, ws))
			if bad++; bad > 25 {
				t.FailNow()
			}
		}
	}
	return h, b
}

func firstDifference(o, wo, e, we string, s, ws int) string {
	var b strings.Builder
	if s != ws {
		fmt.Fprintf(&b, "status %d, want %d\n", s, ws)
	}
	if o != wo {
		b.WriteString("--- stdout " + clip(o, wo))
	}
	if e != we {
		b.WriteString("--- stderr " + clip(e, we))
	}
	return b.String()
}

// clip shows where two texts begin to differ.
func clip(got, want string) string {
	g, w := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	n := 0
	for n < len(g) && n < len(w) && g[n] == w[n] {
		n++
	}
	from := max(0, n-2)
	part := func(l []string) string {
		return fmt.Sprintf("%q", strings.Join(l[min(from, len(l)):min(n+5, len(l))], ""))
	}
	return fmt.Sprintf("line %d\n got %s\nwant %s\n", n+1, part(g), part(w))
}

// export copies a folder of the sandbox to the host.
func export(t *testing.T, b boxWorld, from, to string) {
	t.Helper()
	b.run("/", []string{"export"}, nil, "", io.Discard, io.Discard, tool.Func(func(tt *tool.T) int {
		var walk func(from, to string)
		walk = func(from, to string) {
			list, err := tt.ReadDir(from)
			if err != nil {
				t.Error(err)
				return
			}
			os.MkdirAll(to, 0o755)
			sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
			for _, e := range list {
				p, q := from+"/"+e.Name, to+"/"+e.Name
				a, err := tt.Lstat(p)
				if err != nil {
					t.Error(err)
					continue
				}
				switch {
				case a.Mode.IsDir():
					walk(p, q)
				case a.Mode.IsSymlink():
					target, _ := tt.Readlink(p)
					os.Symlink(target, q)
				default:
					c, err := tt.ReadFile(p, 1<<30)
					if err != nil {
						t.Error(err)
					}
					os.WriteFile(q, c, os.FileMode(a.Mode&0o777)|0o200)
				}
			}
		}
		walk(from, to)
		return 0
	}))
}

// fsck has the machine's git check a repository of the sandbox.
func fsck(t *testing.T, b boxWorld, dir string) {
	t.Helper()
	to := t.TempDir()
	export(t, b, dir, to)
	cmd := exec.Command("git", "-C", to, "fsck", "--full", "--strict")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME=/nonexistent", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "error") || strings.Contains(string(out), "warning") {
		t.Errorf("git fsck: %v\n%s", err, out)
	}
}
