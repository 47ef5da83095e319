package shell

import (
	"strings"
	"syscall"

	"agentrun.dev/proc"
	"mvdan.cc/sh/v3/syntax"
)

// external runs a command that is a file.
func (sh *Shell) external(c *syntax.CallExpr, redirs []*syntax.Redirect, mark int, args []string, tail bool) {
	var temp bool
	if len(c.Assigns) > 0 {
		temp = true
		sh.pushTemp(c.Assigns)
		if sh.opts.xtrace {
			sh.traceArgs(args)
		}
	}
	if tail && len(sh.traps) == 0 && len(sh.jobs) == 0 && sh.subshellTail() {
		st, ended := sh.become(redirs, args)
		if ended {
			sh.exitTrap = true
			sh.exitNow(st)
			return
		}
		if temp {
			sh.popScope()
		}
		sh.closeProcFds(mark)
		sh.done(st)
		return
	}
	child, pgid, st := sh.spawn(redirs, args)
	if temp {
		sh.popScope()
	}
	if child == nil {
		sh.closeProcFds(mark)
		sh.done(st)
		return
	}
	sh.waitFor(child, pgid, afterCommand, mark)
}

// subshellTail tells whether nothing waits for this process's own work after the command.
func (sh *Shell) subshellTail() bool { return sh.noerr == 0 || sh.subshell > 0 }

// become runs a file in place of this shell. ended is false when it couldn't be.
func (sh *Shell) become(redirs []*syntax.Redirect, args []string) (status int, ended bool) {
	sh.reap()
	env := sh.environ()
	if _, ok := sh.redirect(redirs, false); !ok {
		return 1, false
	}
	prog, argv, st := sh.program(sh.p, args)
	if prog == nil {
		return sh.notFound(args, st), false
	}
	sh.p.SetEnviron(env)
	return sh.p.Become(prog, argv), true
}

// spawn starts a file in a child. Without one it returns the status.
func (sh *Shell) spawn(redirs []*syntax.Redirect, args []string) (child *proc.Process, pgid, status int) {
	sh.reap()
	env := sh.environ()
	child, err := sh.p.Fork()
	if err != nil {
		sh.errorf("fork: %s", forkError(err))
		return nil, 0, 254
	}
	child.SetEnviron(env)
	prog, argv, st := sh.prepare(child, redirs, args)
	if prog == nil {
		child.Abandon(st)
		sh.p.Wait(child)
		return nil, 0, st
	}
	child.SetArgs(argv)
	sh.join(child, &pgid, true)
	child.Start(execProgram{prog})
	return child, pgid, 0
}

// prepare redirects a child's descriptors and finds what it is to run. The words of redirections are expanded here, but
// in the child's name: so the shell can't be captured meanwhile.
func (sh *Shell) prepare(child *proc.Process, redirs []*syntax.Redirect, args []string) (prog proc.Program, argv []string, st int) {
	parent := sh.p
	sh.touch()
	sh.pinned++
	defer func() {
		sh.pinned--
		sh.p = parent
	}()
	sh.p = child
	if _, ok := sh.redirect(redirs, false); !ok {
		return nil, nil, 1
	}
	if prog, argv, st = sh.program(child, args); prog == nil {
		st = sh.notFound(args, st)
	}
	return prog, argv, st
}

// execProgram is a program that starts as after exec.
type execProgram struct{ prog proc.Program }

func (e execProgram) Run(p *proc.Process) int { return p.Become(e.prog, p.Args()) }

func forkError(err error) string {
	if err == syscall.EAGAIN {
		return "retry: Resource temporarily unavailable"
	}
	return strerror(err)
}

// reportSignal tells of what a signal has ended in the foreground, as bash does.
func (sh *Shell) reportSignal(f *waitFrame, sig int) {
	if sig == 0 || sig == proc.SIGINT || sig == proc.SIGPIPE || sh.hasTrap(sig) {
		return
	}
	if what := sh.p.Sandbox().Exceeded(); what != "" && (sig == proc.SIGXCPU || sig == proc.SIGXFSZ) {
		sh.errorf("%s: limit exceeded: %s", signalText(sig), what)
		return
	}
	if sh.opts.interactive || sig == proc.SIGTERM {
		sh.stderr(signalText(sig) + "\n")
		return
	}
	j := &job{procs: f.kids, sts: f.sts, texts: f.texts(sh), done: true, status: f.sts[len(f.sts)-1], sig: sig}
	if len(j.texts) != len(j.procs) {
		j.procs, j.sts = j.procs[len(j.procs)-1:], j.sts[len(j.sts)-1:]
	}
	sh.stderr(sh.prefix() + sh.jobLines(j, true))
}

// program finds what to run; a nil program comes with the status, 127 or 126, after notFound.
func (sh *Shell) program(p *proc.Process, args []string) (proc.Program, []string, int) {
	name := args[0]
	file := name
	if !strings.Contains(name, "/") {
		var err error
		if file, err = sh.findCommand(name); err != nil {
			return nil, nil, 127
		}
	}
	prog, argv, err := p.Program(file, args)
	switch err {
	case nil:
		return prog, argv, 0
	case syscall.ENOEXEC:
		return sh.plainScript(p, file, args)
	}
	return nil, nil, errStatus(err)
}

// plainScript runs a file without #! as a script, unless it looks binary.
func (sh *Shell) plainScript(p *proc.Process, file string, args []string) (proc.Program, []string, int) {
	f, err := p.Open(file, syscall.O_RDONLY, 0)
	if err != nil {
		return nil, nil, errStatus(err)
	}
	buf := make([]byte, 80)
	n, _ := f.Read(buf)
	f.Close()
	line, _, _ := strings.Cut(string(buf[:n]), "\n")
	if strings.IndexByte(line, 0) >= 0 {
		return nil, nil, statusBinary
	}
	return New(sh.posix), append([]string{"bash", file}, args[1:]...), 0
}

func errStatus(err error) int {
	no, _ := err.(syscall.Errno)
	if no == 0 {
		no = syscall.EIO
	}
	return statusErrno + int(no)
}

func (sh *Shell) notFound(args []string, code int) int {
	name := args[0]
	switch {
	case code == 127:
		if fn := sh.funcs["command_not_found_handle"]; fn != nil {
			sh.nested(func() { sh.callFunc(fn, append([]string{"command_not_found_handle"}, args...)) })
			return sh.status
		}
		if name == "" {
			sh.errorf("command not found")
			sh.stderr("")
			return 127
		}
		sh.errorf("%s: command not found", name)
		return 127
	case code == statusBinary:
		sh.errorf("%s: cannot execute binary file: Exec format error", name)
		return 126
	}
	no := syscall.Errno(code - statusErrno)
	if a, err := sh.p.Stat(name); err == nil && a.Mode.IsDir() {
		sh.errorf("%s: Is a directory", name)
		return 126
	}
	if no == syscall.ENOENT {
		if _, err := sh.p.Stat(name); err == nil {
			sh.errorf("%s: cannot execute: required file not found", name)
			return 127
		}
		sh.errorf("%s: %s", name, strerror(no))
		return 127
	}
	sh.errorf("%s: %s", name, strerror(no))
	return 126
}

// findCommand finds a command's file in PATH.
func (sh *Shell) findCommand(name string) (string, error) {
	if e, ok := sh.hashed[name]; ok {
		if !sh.shopts.get("checkhash") && sh.opts.posix || sh.isFile(e.path) {
			e.hits++
			sh.hashTable()[name] = e
			return e.path, nil
		}
	}
	path, _ := sh.get("PATH")
	if path == "" {
		path = "."
	}
	file, err := sh.p.Find(name, path)
	if err == syscall.EACCES {
		for _, dir := range strings.Split(path, ":") {
			f := strings.TrimSuffix(dir, "/") + "/" + name
			if a, err := sh.p.Stat(f); err == nil && a.Mode.IsRegular() {
				return f, nil
			}
		}
	}
	if err != nil {
		return "", err
	}
	if sh.opts.hashall {
		sh.hashTable()[name] = hashEntry{file, 1}
	}
	return file, nil
}
