package proc

import (
	"bytes"
	"io"
	"strings"
	"syscall"

	"agentrun.dev/vfs"
)

// Spawn describes a child.
type Spawn struct {
	Args  []string
	Env   []string         // nil: the parent's exported environment
	Dir   string           // "": the parent's
	Files map[int]vfs.File // descriptors that differ from the parent's 0, 1, 2
	// Cred is in whose name the child acts instead of the parent's. It isn't asked whether the parent may: a command that sets it has
	// decided that, as a program with the set-user-ID bit does.
	Cred *vfs.Cred
}

// Spawn starts a command of the sandbox as a child, found through PATH unless the name has a slash: ENOENT and EACCES
// as execvp. The child has the parent's descriptors 0, 1, 2 and those of Files.
func (p *Process) Spawn(s Spawn) (*Process, error) {
	if len(s.Args) == 0 {
		return nil, syscall.EINVAL
	}
	c, err := p.Fork()
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*Process, error) {
		c.Abandon(127)
		p.Wait(c)
		return nil, err
	}
	for _, fd := range c.Fds() {
		if fd > 2 {
			c.CloseFd(fd)
		}
	}
	for fd, f := range s.Files {
		if err := c.fds.set(fd, newDescription(f), false); err != nil {
			return fail(err)
		}
	}
	if s.Cred != nil {
		c.mu.Lock()
		c.cred = *s.Cred
		c.umask = s.Cred.Umask
		c.mu.Unlock()
	}
	if s.Dir != "" {
		if err := c.Chdir(s.Dir); err != nil {
			return fail(err)
		}
	}
	if s.Env != nil {
		c.SetEnviron(s.Env)
	}
	file, err := c.Find(s.Args[0], c.Getenv("PATH"))
	if err != nil {
		return fail(err)
	}
	if err := c.StartFile(file, s.Args); err != nil {
		return fail(err)
	}
	return c, nil
}

// DefaultPath is searched when PATH isn't set.
const DefaultPath = "/usr/local/bin:/usr/bin:/bin"

// Find returns the path of a command as execvp finds it: itself if it has a slash, else the first executable file of
// that name in the directories of search. ENOENT; EACCES if what was found can't be executed.
func (p *Process) Find(name, search string) (string, error) {
	if name == "" {
		return "", syscall.ENOENT
	}
	if strings.Contains(name, "/") {
		return name, nil
	}
	if search == "" {
		search = DefaultPath
	}
	var denied error
	for _, dir := range strings.Split(search, ":") {
		file := name
		if dir != "" {
			file = strings.TrimSuffix(dir, "/") + "/" + name
		}
		a, err := p.Stat(file)
		if err != nil || a.Mode.IsDir() {
			continue
		}
		if p.Access(file, 1) == nil {
			return file, nil
		}
		denied = syscall.EACCES
	}
	if denied != nil {
		return "", denied
	}
	return "", syscall.ENOENT
}

// magic begins the files of /bin: what follows on the line is the name of a program of the sandbox. So a copy or a
// link of one works as the original does.
const magic = "#!agentrun "

// maxInterpreters bounds scripts whose interpreter is a script.
const maxInterpreters = 4

// Program finds what a file runs: a program of the sandbox, one that Options.Load knows, or the interpreter that a script's first line names, with
// the arguments that it gets. Errors: ENOENT, EACCES, ELOOP, ENOEXEC for a file without a known beginning.
func (p *Process) Program(file string, args []string) (Program, []string, error) {
	for range maxInterpreters {
		a, err := p.Stat(file)
		if err != nil {
			return nil, nil, err
		}
		if !a.Mode.IsRegular() {
			return nil, nil, syscall.EACCES
		}
		if err := p.Access(file, 1); err != nil {
			return nil, nil, err
		}
		head, err := p.head(file)
		if err != nil {
			return nil, nil, err
		}
		if !bytes.HasPrefix(head, []byte("#!")) {
			if p.sb.load != nil {
				if prog, ok := p.sb.load(p, file, head); ok {
					return prog, args, nil
				}
			}
			return nil, nil, syscall.ENOEXEC
		}
		head, _, _ = bytes.Cut(head, []byte("\n"))
		if name, ok := bytes.CutPrefix(head, []byte(magic)); ok {
			if prog, ok := p.sb.commands.Lookup(string(bytes.TrimSpace(name))); ok {
				return prog, args, nil
			}
			return nil, nil, syscall.ENOENT
		}
		interp, arg, _ := strings.Cut(strings.TrimSpace(string(head[2:])), " ")
		if interp == "" {
			return nil, nil, syscall.ENOEXEC
		}
		next := []string{interp}
		if arg = strings.TrimSpace(arg); arg != "" {
			next = append(next, arg)
		}
		next = append(next, file)
		if len(args) > 1 {
			next = append(next, args[1:]...)
		}
		file, args = interp, next
	}
	return nil, nil, syscall.ELOOP
}

// head reads how a file begins, at most 256 bytes, with the process's rights but not its permission to read.
func (p *Process) head(file string) ([]byte, error) {
	ctx, _, cwd := p.at()
	f, err := p.sb.ns.Open(ctx, vfs.Cred{}, cwd, file, syscall.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buf := make([]byte, 256)
	n, err := f.ReadAt(buf, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return buf[:n], nil
}

// StartFile executes a file in a process made by Fork. An error leaves the process as it was.
func (p *Process) StartFile(file string, args []string) error {
	prog, args, err := p.Program(file, args)
	if err != nil {
		return err
	}
	p.SetArgs(args)
	p.fds.closeOnExec()
	p.Start(prog)
	return nil
}

// Become replaces the running program by another one, as exec does, and returns its exit status, which must be the
// caller's too: descriptors that close on exec are closed and handled signals are default ones again.
func (p *Process) Become(prog Program, args []string) int {
	p.SetArgs(args)
	p.mu.Lock()
	for i, d := range p.disp {
		if d == Handle {
			p.disp[i] = Default
		}
	}
	p.mu.Unlock()
	p.TakeSignals()
	p.fds.closeOnExec()
	return p.RunAs(prog)
}
