package find

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

func printAction(end string) func(*finder, *entry) bool {
	return func(f *finder, e *entry) bool {
		f.t.Out.WriteString(e.path)
		f.t.Out.WriteString(end)
		return true
	}
}

// actionNode parses an action.
func (p *parser) actionNode(a string) node {
	f := p.f
	switch a {
	case "-prune":
		return test(func(f *finder, e *entry) bool {
			e.prune = true
			return true
		})
	case "-quit":
		p.action = true
		return test(func(f *finder, e *entry) bool {
			f.quit = true
			return true
		})
	}
	p.action = true
	switch a {
	case "-print":
		return test(printAction("\n"))
	case "-print0":
		return test(printAction("\x00"))
	case "-fprint", "-fprint0":
		w := f.fileWriter(p.arg(a))
		end := byte('\n')
		if a == "-fprint0" {
			end = 0
		}
		return test(func(f *finder, e *entry) bool {
			w.WriteString(e.path)
			w.WriteByte(end)
			return true
		})
	case "-printf":
		format := p.format(p.arg(a))
		return test(func(f *finder, e *entry) bool {
			format.write(f, e, f.t.Out)
			return true
		})
	case "-fprintf":
		w := f.fileWriter(p.arg(a))
		format := p.format(p.arg(a))
		return test(func(f *finder, e *entry) bool {
			format.write(f, e, w.Writer)
			return true
		})
	case "-ls":
		return test(func(f *finder, e *entry) bool {
			f.ls(e, f.t.Out)
			return true
		})
	case "-fls":
		w := f.fileWriter(p.arg(a))
		return test(func(f *finder, e *entry) bool {
			f.ls(e, w.Writer)
			return true
		})
	case "-delete":
		f.depth = true
		return test(remove)
	case "-exec", "-execdir", "-ok", "-okdir":
		return p.exec(a)
	}
	p.action = false
	return nil
}

func remove(f *finder, e *entry) bool {
	if e.path == "." {
		return true // the present directory stays
	}
	var err error
	if f.stat(e).Mode.IsDir() && e.kind == vfs.ModeDir {
		err = f.t.Rmdir(e.path)
	} else {
		err = f.t.Unlink(e.path)
	}
	if err != nil {
		f.fail("cannot delete %s: %s", tool.Quote(e.path), tool.Strerror(err))
		return false
	}
	return true
}

// ls writes a line as ls -dils does.
func (f *finder) ls(e *entry, w *bufio.Writer) {
	a := f.stat(e)
	size := fmt.Sprintf("%8d", a.Size)
	if k := a.Mode & vfs.ModeType; k == vfs.ModeChar || k == vfs.ModeBlock {
		size = fmt.Sprintf("%3d, %3d", a.Rdev>>8&0xfff, a.Rdev&0xff)
	}
	format := "%b %e  %Y"
	if at := a.Mtime; at.After(f.start.AddDate(0, 0, -182)) && !at.After(f.start.Add(3600e9)) {
		format = "%b %e %H:%M"
	}
	fmt.Fprintf(w, "%9d %6d %s %3d %-8s %-8s %s %s %s", a.Ino, (a.Blocks+1)/2, tool.FormatMode(a.Mode), a.Nlink,
		f.users().UserName(a.UID), f.users().GroupName(a.GID), size, formatTime(format, a.Mtime.In(f.start.Location())), escapeName(e.path))
	if a.Mode.IsSymlink() {
		if target, err := f.t.Readlink(e.path); err == nil {
			w.WriteString(" -> " + escapeName(target))
		}
	}
	w.WriteByte('\n')
}

func escapeName(s string) string { return tool.EscapeC(s, " \"") }

// execAction is -exec and its kin.
type execAction struct {
	args   []string
	before []string // for +: what stands before the files
	dir    bool
	ask    bool
	batch  bool
	files  []string
	size   int
	in     string // directory of the files collected, for -execdir
}

// Limits of one command line that + builds.
const (
	maxBatch     = 4096
	maxBatchSize = 128 << 10
)

func (p *parser) exec(a string) node {
	x := &execAction{dir: strings.HasSuffix(a, "dir"), ask: strings.HasPrefix(a, "-ok")}
	start := p.pos
	for ; ; p.pos++ {
		if !p.more() {
			p.f.t.Fatal(1, "missing argument to `%s'", a)
		}
		arg := p.args[p.pos]
		if arg == ";" {
			break
		}
		if arg == "+" && p.pos > start && p.args[p.pos-1] == "{}" && !x.ask {
			x.batch = true
			break
		}
	}
	x.args = p.args[start:p.pos]
	p.pos++
	if len(x.args) == 0 {
		p.f.t.Fatal(1, "invalid argument `;' to `%s'", a)
	}
	if !x.batch {
		return test(func(f *finder, e *entry) bool { return x.one(f, e) })
	}
	x.before = x.args[:len(x.args)-1]
	for _, b := range x.before {
		if strings.Contains(b, "{}") {
			p.f.t.Fatal(1, "Only one instance of {} is supported with %s ... +", a)
		}
	}
	p.f.batches = append(p.f.batches, x)
	return test(func(f *finder, e *entry) bool {
		x.add(f, e)
		return true
	})
}

// name is how the command gets a file: for -execdir relative to its directory.
func (x *execAction) name(e *entry) (dir, name string) {
	if !x.dir {
		return "", e.path
	}
	base := e.base()
	if base == "/" {
		return "/", "/"
	}
	d := dirOf(e.path)
	if d == "" {
		d = "/"
	}
	return d, "./" + base
}

func (x *execAction) one(f *finder, e *entry) bool {
	dir, name := x.name(e)
	args := make([]string, len(x.args))
	for i, a := range x.args {
		args[i] = strings.ReplaceAll(a, "{}", name)
	}
	if x.ask {
		f.t.Out.Flush()
		fmt.Fprintf(f.t.Stderr(), "< %s ... %s > ? ", args[0], e.path)
		if !answer(f.t) {
			return false
		}
	}
	return f.command(args, dir) == 0
}

// answer reads a line; yes begins with y or Y.
func answer(t *tool.T) bool {
	var line []byte
	b := make([]byte, 1)
	for {
		n, err := t.Stdin().Read(b)
		if n == 0 || err != nil || b[0] == '\n' {
			break
		}
		line = append(line, b[0])
	}
	return len(line) > 0 && (line[0] == 'y' || line[0] == 'Y')
}

func (x *execAction) add(f *finder, e *entry) {
	dir, name := x.name(e)
	if len(x.files) > 0 && (x.dir && dir != x.in || len(x.files) >= maxBatch || x.size+len(name) > maxBatchSize) {
		x.flush(f)
	}
	x.in = dir
	x.files = append(x.files, name)
	x.size += len(name) + 1
}

// flush runs the command on the files collected.
func (x *execAction) flush(f *finder) {
	if len(x.files) == 0 {
		return
	}
	args := append(append([]string{}, x.before...), x.files...)
	x.files, x.size = nil, 0
	if f.command(args, x.in) != 0 {
		f.status = 1
	}
}

// command runs a command and waits for it.
func (f *finder) command(args []string, dir string) int {
	f.t.Out.Flush()
	for _, w := range f.files {
		w.Flush()
	}
	child, err := f.t.Spawn(proc.Spawn{Args: args, Dir: dir})
	if err != nil {
		if errors.Is(err, syscall.EAGAIN) {
			f.t.Fatal(1, "cannot fork: %s", tool.Strerror(err))
		}
		f.t.Warn("%s: %s", tool.Quote(args[0]), tool.Strerror(err))
		return 1
	}
	status, err := f.t.Wait(child)
	f.t.Check()
	if err != nil {
		return 1
	}
	return status
}
