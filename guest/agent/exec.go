package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
)

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// exec starts a command and stays with it until its end.
func (a *Agent) exec(s *wire.Stream, e wire.Exec) error {
	if len(e.Args) == 0 || e.Args[0] == "" {
		return errs.Msg(errs.Invalid, "exec", "", "no command")
	}
	for _, list := range [][]wire.Text{e.Args, e.Env, {e.Dir, e.User}} {
		for _, t := range list {
			if strings.ContainsRune(string(t), 0) {
				return errs.Msg(errs.Invalid, "exec", "", "arguments and variables can't hold NUL")
			}
		}
	}
	c, err := a.start(e)
	var why cannot
	if errors.As(err, &why) {
		text := fmt.Sprintf("%s: %v\n", e.Args[0], why)
		channel := uint8(wire.Errors)
		if e.TTY != nil {
			channel, text = wire.Output, strings.ReplaceAll(text, "\n", "\r\n")
		}
		return errors.Join(s.Message(wire.Progress{}), s.Data(channel, []byte(text)), s.Message(wire.Progress{Exited: &wire.Exit{Status: why.status}}))
	}
	if err != nil {
		return err
	}
	if !e.Stdin {
		c.closeInput()
	}
	return a.serve(s, c)
}

// cannot is a command that can't be executed, with the status that a shell has for that.
type cannot struct {
	status int
	err    error
}

func (c cannot) Error() string { return c.err.Error() }

// start starts a command, unless the workload is frozen.
func (a *Agent) start(e wire.Exec) (*command, error) {
	a.starting.RLock()
	defer a.starting.RUnlock()
	if a.token != "" {
		return nil, errs.Msg(errs.Unavailable, "exec", "", "the workload is frozen")
	}
	who, err := a.account(string(e.User))
	if err != nil {
		return nil, err
	}
	dir, err := a.dir(string(e.Dir))
	if err != nil {
		return nil, err
	}
	env := a.env(e, who, dir)
	file, err := lookup(string(e.Args[0]), dir, env)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	full := a.closed || len(a.commands) >= maxCommands
	a.mu.Unlock()
	if full {
		return nil, errs.Msg(errs.Limit, "exec", "", fmt.Sprintf("more than %d commands at once", maxCommands))
	}
	c := &command{a: a, args: wire.Strings(e.Args), tty: e.TTY != nil, keep: e.Keep, log: newLog(), finished: make(chan struct{})}
	files, err := c.open(e, who)
	defer func() {
		for _, f := range files {
			unix.Close(int(f))
		}
	}()
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	if c.group, err = a.o.Workload.Group(); err != nil {
		return nil, errors.Join(err, c.close())
	}
	// A session of its own makes the command the leader of a process group, too, which is what signals go to.
	sys := &syscall.SysProcAttr{Setsid: true, Setctty: c.tty, Credential: who.credential()}
	c.group.Attr(sys)
	pid, ended, err := a.reap.start(file, c.args, &syscall.ProcAttr{Dir: dir, Env: env, Files: []uintptr{files[0], files[1], files[2]}, Sys: sys})
	if err != nil {
		return nil, errors.Join(failed(err), c.group.Close(), c.close())
	}
	c.pid = pid
	c.group.Started(pid)
	a.mu.Lock()
	a.commands[pid] = c
	a.running.Add(1)
	a.mu.Unlock()
	pumps := c.pump()
	go func() {
		defer a.running.Done()
		c.wait(ended, pumps)
	}()
	return c, nil
}

// failed words why a program couldn't be executed.
func failed(err error) error {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return cannot{127, err} // its interpreter isn't there
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOMEM):
		return errs.New(errs.Limit, "exec", "", err)
	case errors.Is(err, unix.EPERM):
		return errs.New(errs.Denied, "exec", "", err)
	}
	return cannot{126, err}
}

// dir returns where a command starts.
func (a *Agent) dir(want string) (string, error) {
	dir := want
	if dir == "" {
		dir = a.o.Dir
	}
	info, err := os.Stat(filepath.Join("/", dir))
	if err == nil && !info.IsDir() {
		err = unix.ENOTDIR
	}
	switch {
	case err == nil:
		return filepath.Join("/", dir), nil
	case want == "":
		return "/", nil
	}
	return "", errs.New(errs.NotFound, "exec", want, err)
}

// env puts together a command's variables: later ones win.
func (a *Agent) env(e wire.Exec, who account, dir string) []string {
	all := []string{"PATH=" + defaultPath, "HOME=" + who.home, "USER=" + who.name, "LOGNAME=" + who.name, "SHELL=" + who.shell, "PWD=" + dir}
	if e.TTY != nil {
		all = append(all, "TERM=xterm-256color")
	}
	all = append(append(append(all, a.o.Env...), a.identity...), wire.Strings(e.Env)...)
	index := make(map[string]int, len(all))
	out := all[:0:0]
	for _, v := range all {
		name, _, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			continue
		}
		if i, is := index[name]; is {
			out[i] = v
			continue
		}
		index[name] = len(out)
		out = append(out, v)
	}
	return out
}

// lookup finds a program as execvp does, through the command's own PATH.
func lookup(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, nil // whatever is wrong with it, the kernel says
	}
	path := ""
	for _, v := range env {
		if p, ok := strings.CutPrefix(v, "PATH="); ok {
			path = p
		}
	}
	denied := false
	for _, p := range filepath.SplitList(path) {
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
		}
		file := filepath.Join(p, name)
		info, err := os.Stat(file)
		if err != nil || info.IsDir() {
			continue
		}
		if info.Mode()&0o111 != 0 {
			return file, nil
		}
		denied = true
	}
	if denied {
		return "", cannot{126, errors.New("permission denied")}
	}
	return "", cannot{127, errors.New("command not found")}
}
