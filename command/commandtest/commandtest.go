// Package commandtest runs a command twice, in a sandbox of memory and as the machine's own GNU tool, and compares.
//
// A line is a command with its arguments: words separated by blanks, 'quoted', "quoted" or $'with escapes', and at the end perhaps
// "< FILE". Standard output, standard error, exit status and the files left behind must be the same.
package commandtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// Table is a set of lines that run on the same files.
type Table struct {
	Setup []string // "f PATH CONTENT", "x PATH CONTENT" (executable), "d PATH", "l PATH TARGET", "h PATH OTHER"; Go escapes
	Stdin string
	Lines []string
	// Sorted compares the lines of the output in their order by bytes, for tools that list directories as they come.
	Sorted bool
	// Loose compares standard error only for being empty or not.
	Loose bool
	// Content, if there is one, says what is compared of a file that was left: tools may write what differs from run to run.
	Content func(name, content string) string
	// Services are those of the sandbox; see proc.Options.
	Services any
	// Differs are lines in which the commands differ on purpose: what ours shall print (stdout, then stderr), and why.
	Differs map[string]Deviation
}

// Deviation is an expected difference.
type Deviation struct{ Want, Reason string }

// Result is what a run left.
type Result struct {
	Stdout, Stderr string
	Status         int
	Tree           string
}

// epoch is when the first file of a setup was changed; each next one is a minute younger.
var epoch = time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)

// workDir is the sandbox's directory; in the output of the machine's tools their directory is replaced by it.
const workDir = "/task"

// Run runs a table.
func Run(t *testing.T, commands proc.Commands, tables ...Table) {
	t.Helper()
	for _, table := range tables {
		for _, line := range table.Lines {
			t.Run(line, func(t *testing.T) { table.compare(t, commands, line) })
		}
		for line, d := range table.Differs {
			t.Run(line, func(t *testing.T) {
				words, stdin := table.parse(t, line)
				got := table.Sandbox(t, commands, words, stdin)
				if s := got.Stdout + got.Stderr; s != d.Want {
					t.Errorf("got %q, want %q (%s)", s, d.Want, d.Reason)
				}
			})
		}
	}
}

func (table *Table) compare(t *testing.T, commands proc.Commands, line string) {
	words, stdin := table.parse(t, line)
	path, err := exec.LookPath(words[0])
	if err != nil {
		t.Skipf("%s isn't installed here; this case runs where it is", words[0])
	}
	want := table.host(t, path, words, stdin)
	got := table.Sandbox(t, commands, words, stdin)
	if table.Sorted {
		got.Stdout, want.Stdout = sorted(got.Stdout), sorted(want.Stdout)
		got.Stderr, want.Stderr = sorted(got.Stderr), sorted(want.Stderr)
	}
	if got.Stdout != want.Stdout {
		t.Errorf("stdout\n got %q\nwant %q", got.Stdout, want.Stdout)
	}
	if table.Loose {
		if (got.Stderr == "") != (want.Stderr == "") {
			t.Errorf("stderr\n got %q\nwant %q", got.Stderr, want.Stderr)
		}
	} else if got.Stderr != want.Stderr {
		t.Errorf("stderr\n got %q\nwant %q", got.Stderr, want.Stderr)
	}
	if got.Status != want.Status {
		t.Errorf("status %d, want %d", got.Status, want.Status)
	}
	if got.Tree != want.Tree {
		ours, theirs := apart(got.Tree, want.Tree)
		t.Errorf("files\n got %s\nwant %s", ours, theirs)
	}
}

// apart leaves the lines out that are in both.
func apart(a, b string) (onlyA, onlyB string) {
	only := func(a, b string) string {
		var lines []string
		for _, l := range strings.SplitAfter(a, "\n") {
			if !strings.Contains("\n"+b, "\n"+l) {
				lines = append(lines, l)
			}
		}
		return strings.Join(lines, "")
	}
	return only(a, b), only(b, a)
}

func sorted(s string) string {
	lines := strings.SplitAfter(s, "\n")
	sort.Strings(lines)
	return strings.Join(lines, "")
}

// parse splits a line into words and finds its standard input.
func (table *Table) parse(t *testing.T, line string) (words []string, stdin string) {
	t.Helper()
	words, err := Split(line)
	if err != nil {
		t.Fatal(err)
	}
	stdin = table.Stdin
	if n := len(words); n > 2 && words[n-2] == "<" {
		for _, s := range table.Setup {
			if e := parseEntry(s); e.path == words[n-1] {
				stdin = e.content
			}
		}
		words = words[:n-2]
	}
	return words, stdin
}

// Split splits a line into words: blanks separate, '…' and "…" quote, $'…' has Go's escapes.
func Split(line string) (words []string, err error) {
	var b strings.Builder
	in := false
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == ' ':
			if in {
				words = append(words, b.String())
				b.Reset()
			}
			in = false
			continue
		case line[i] == '"':
			end := strings.IndexByte(line[i+1:], '"')
			if end < 0 {
				return nil, fmt.Errorf("split: %s: unterminated quote", line)
			}
			b.WriteString(line[i+1 : i+1+end])
			i += end + 1
		case line[i] == '\'' || strings.HasPrefix(line[i:], "$'"):
			escapes := line[i] == '$'
			if escapes {
				i++
			}
			start := i + 1
			for i++; i < len(line) && line[i] != '\''; i++ {
				if escapes && line[i] == '\\' {
					i++
				}
			}
			if i >= len(line) {
				return nil, fmt.Errorf("split: %s: unterminated quote", line)
			}
			s := line[start:i]
			if escapes {
				if s, err = strconv.Unquote(`"` + strings.ReplaceAll(strings.ReplaceAll(s, `\'`, `'`), `"`, `\"`) + `"`); err != nil {
					return nil, fmt.Errorf("split: %s: %w", line, err)
				}
			}
			b.WriteString(s)
		default:
			b.WriteByte(line[i])
		}
		in = true
	}
	if in {
		words = append(words, b.String())
	}
	return words, nil
}

type entry struct {
	kind          byte
	path, content string
}

func parseEntry(s string) entry {
	parts := strings.SplitN(s, " ", 3)
	e := entry{kind: parts[0][0], path: parts[1]}
	if len(parts) == 3 {
		e.content = parts[2]
	}
	return e
}

func environment() []string {
	return []string{"PATH=/usr/bin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "TZ=UTC0", "TMPDIR=/tmp"}
}

// host runs the machine's tool in a fresh directory.
func (table *Table) host(t *testing.T, path string, words []string, stdin string) Result {
	t.Helper()
	dir := t.TempDir()
	for i, s := range table.Setup {
		e := parseEntry(s)
		p := filepath.Join(dir, e.path)
		var err error
		switch e.kind {
		case 'f':
			err = os.WriteFile(p, []byte(e.content), 0o644)
		case 'x':
			err = os.WriteFile(p, []byte(e.content), 0o755)
		case 'd':
			err = os.Mkdir(p, 0o755)
		case 'l':
			err = os.Symlink(e.content, p)
		case 'h':
			err = os.Link(filepath.Join(dir, e.content), p)
		}
		if err == nil {
			at := unix.NsecToTimespec(epoch.Add(time.Duration(i) * time.Minute).UnixNano())
			err = unix.UtimesNanoAt(unix.AT_FDCWD, p, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path)
	cmd.Args, cmd.Dir, cmd.Env = words, dir, environment()
	var out, errout bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errout
	r := Result{}
	if err := cmd.Run(); err != nil {
		r.Status = cmd.ProcessState.ExitCode()
	}
	clean := func(b []byte) string { return strings.ReplaceAll(string(b), dir, workDir) }
	r.Stdout, r.Stderr = clean(out.Bytes()), clean(errout.Bytes())
	r.Tree = table.hostTree(t, dir)
	return r
}

func (table *Table) hostTree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		m := vfs.Mode(info.Sys().(*syscall.Stat_t).Mode)
		content := ""
		switch {
		case m.IsSymlink():
			content, err = os.Readlink(p)
			m &= vfs.ModeType
		case m.IsRegular():
			var c []byte
			c, err = os.ReadFile(p)
			content = table.content(rel, string(c))
		}
		fmt.Fprintf(&b, "%s %o %q\n", rel, m, strings.ReplaceAll(content, dir, workDir))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// NewSandbox makes a sandbox of memory with the directories /task and /tmp.
func NewSandbox(t testing.TB, commands proc.Commands) *proc.Sandbox {
	t.Helper()
	return newSandbox(t, commands, nil)
}

func newSandbox(t testing.TB, commands proc.Commands, services any) *proc.Sandbox {
	t.Helper()
	ns := vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{})})
	s, err := proc.New(proc.Options{Namespace: ns, Commands: commands, Services: services})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for path, fs := range map[string]vfs.FS{"/dev": proc.NewDev(), "/proc": proc.NewProc(s), "/bin": proc.NewBin(commands)} {
		if err := ns.Mount(ctx, vfs.Mount{Path: path, FS: fs}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Sandbox runs a command in a fresh sandbox.
func (table *Table) Sandbox(t testing.TB, commands proc.Commands, words []string, stdin string) Result {
	t.Helper()
	s := newSandbox(t, commands, table.Services)
	var r Result
	var setupErr error
	run(t, s, []string{"setup"}, nil, nil, nil, func(p *proc.Process) int {
		setupErr = table.prepare(p)
		return 0
	})
	if setupErr != nil {
		t.Fatal(setupErr)
	}
	prog, ok := commands.Lookup(words[0])
	if !ok {
		t.Fatalf("%s: no such command", words[0])
	}
	var out, errout bytes.Buffer
	r.Status = run(t, s, words, strings.NewReader(stdin), &out, &errout, prog.Run)
	r.Stdout, r.Stderr = out.String(), errout.String()
	run(t, s, []string{"tree"}, nil, nil, nil, func(p *proc.Process) int {
		var b strings.Builder
		table.tree(p, workDir, &b)
		r.Tree = b.String()
		return 0
	})
	return r
}

// run runs a program as a root process of the sandbox, with the test's own user, and waits for it.
func run(t testing.TB, s *proc.Sandbox, args []string, in io.Reader, out, errout io.Writer, f proc.Func) int {
	t.Helper()
	if out == nil {
		out, errout = io.Discard, io.Discard
	}
	p, err := s.NewProcess(proc.Root{Args: args, Env: environment(), Dir: "/", Cred: vfs.Cred{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Umask: 0o022},
		Files: map[int]vfs.File{0: proc.NewInput(in, false), 1: s.NewOutput(out, false), 2: s.NewOutput(errout, false)}})
	if err != nil {
		t.Fatal(err)
	}
	p.Start(proc.Func(func(p *proc.Process) int {
		if args[0] != "setup" {
			if err := p.Chdir(workDir); err != nil {
				t.Error(err)
			}
		}
		return f(p)
	}))
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		t.Fatalf("%q doesn't end", args)
	}
	return p.Status()
}

// prepare makes the files of the setup.
func (table *Table) prepare(p *proc.Process) error {
	for _, dir := range []string{workDir, "/tmp"} {
		if err := p.Mkdir(dir, 0o777); err != nil {
			return err
		}
	}
	for i, s := range table.Setup {
		e := parseEntry(s)
		path := workDir + "/" + e.path
		var err error
		switch e.kind {
		case 'f', 'x':
			perm := vfs.Mode(0o644)
			if e.kind == 'x' {
				perm = 0o755
			}
			var f vfs.File
			if f, err = p.Open(path, syscall.O_WRONLY|syscall.O_CREAT, perm); err == nil {
				if _, err = f.Write([]byte(e.content)); err == nil {
					err = f.Close()
				}
			}
		case 'd':
			err = p.Mkdir(path, 0o755)
		case 'l':
			err = p.Symlink(e.content, path)
		case 'h':
			err = p.Link(workDir+"/"+e.content, path)
		}
		if err == nil {
			at := epoch.Add(time.Duration(i) * time.Minute)
			err = p.SetAttr(path, vfs.SetAttr{Atime: &at, Mtime: &at}, false)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

func (table *Table) tree(p *proc.Process, dir string, b *strings.Builder) {
	entries, err := p.ReadDir(dir)
	if err != nil {
		fmt.Fprintf(b, "%s: %v\n", dir, err)
		return
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	for _, e := range entries {
		path := dir + "/" + e.Name
		a, err := p.Lstat(path)
		if err != nil {
			fmt.Fprintf(b, "%s: %v\n", path, err)
			continue
		}
		m, content := a.Mode, ""
		switch {
		case m.IsSymlink():
			content, _ = p.Readlink(path)
			m &= vfs.ModeType
		case m.IsRegular():
			if f, err := p.Open(path, syscall.O_RDONLY, 0); err == nil {
				c, _ := io.ReadAll(f)
				f.Close()
				content = table.content(strings.TrimPrefix(path, workDir+"/"), string(c))
			}
		}
		fmt.Fprintf(b, "%s %o %q\n", strings.TrimPrefix(path, workDir+"/"), m, content)
		if m.IsDir() {
			table.tree(p, path, b)
		}
	}
}

func (table *Table) content(name, content string) string {
	if table.Content == nil {
		return content
	}
	return table.Content(name, content)
}

// panicked is the status of a process whose program panicked.
const panicked = 128 + int(syscall.SIGABRT)

// Survives runs a command in the sandbox, on the files of the table, and fails the test if it panics or doesn't end.
func (table *Table) Survives(t testing.TB, commands proc.Commands, words ...string) {
	t.Helper()
	if r := table.Sandbox(t, commands, words, table.Stdin); r.Status == panicked {
		t.Errorf("%q panics: %s", words, r.Stderr)
	}
}
