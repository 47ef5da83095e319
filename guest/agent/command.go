package agent

import (
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
)

// grace is how long processes that a command leaves may take to end, unless they are kept.
const grace = 250 * time.Millisecond

// command is one that Exec started.
type command struct {
	a     *Agent
	pid   int
	args  []string
	tty   bool
	keep  bool
	group Group
	log   *log

	mu     sync.Mutex
	input  *os.File // nil when closed; the terminal's own file isn't
	master *os.File
	output []source

	killed   sync.Once
	finished chan struct{} // closed when exit counts
	exit     wire.Exit
}

// source is a file that the command's output comes out of.
type source struct {
	channel uint8
	file    *os.File
}

// open makes the command's streams. It returns the ends that the command gets, which the caller closes.
func (c *command) open(e wire.Exec, who account) ([]uintptr, error) {
	if e.TTY != nil {
		master, slave, err := openTerminal(*e.TTY, e.Modes, who.uid)
		if err != nil {
			return nil, err
		}
		c.master, c.output = master, []source{{wire.Output, master}}
		return []uintptr{slave, slave, slave}[:3:3], nil
	}
	var files []uintptr
	for i := range 3 {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			return files, errs.New(errs.Limit, "exec", "", err)
		}
		mine, its := fds[0], fds[1]
		if i == 0 {
			mine, its = its, mine
		}
		files = append(files, uintptr(its))
		_ = unix.Fchown(its, int(who.uid), int(who.gid)) // so that it can open /dev/stdout once more; without the right to, it is its own
		_ = unix.SetNonblock(mine, true)                 // so that Go waits for it without a thread
		f := os.NewFile(uintptr(mine), "pipe")
		if i == 0 {
			c.input = f
		} else {
			c.output = append(c.output, source{uint8(i), f})
		}
	}
	return files, nil
}

// close closes the agent's ends of the streams.
func (c *command) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.input != nil {
		c.input.Close()
		c.input = nil
	}
	for _, s := range c.output {
		s.file.Close()
	}
	return nil
}

// write writes input; it waits until the command reads it.
func (c *command) write(b []byte) error {
	c.mu.Lock()
	f := c.input
	if c.tty {
		f = c.master
	}
	c.mu.Unlock()
	if f == nil {
		return unix.EPIPE
	}
	_, err := f.Write(b)
	return err
}

// closeInput ends the input: on a terminal that is its end-of-file character, which counts where lines are edited.
func (c *command) closeInput() {
	if c.tty {
		_, _ = c.master.Write([]byte{4})
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.input != nil {
		c.input.Close()
		c.input = nil
	}
}

// pumps tell how far a command's output was read.
type pumps struct {
	empty sync.WaitGroup // what was written before the deadline has been read
	ended sync.WaitGroup // nobody can write any more
}

// pump begins to read the command's output into its log.
func (c *command) pump() *pumps {
	p := &pumps{}
	for _, s := range c.output {
		p.empty.Add(1)
		p.ended.Add(1)
		go func() {
			defer p.ended.Done()
			once := sync.OnceFunc(p.empty.Done)
			defer once()
			buf := make([]byte, wire.MaxData)
			for {
				n, err := s.file.Read(buf)
				if n > 0 {
					c.log.append(s.channel, buf[:n])
				}
				if errors.Is(err, os.ErrDeadlineExceeded) {
					_ = s.file.SetReadDeadline(time.Time{})
					err = c.drain(s, buf)
					once()
				}
				if err != nil {
					return // EOF; of a terminal that is EIO
				}
			}
		}()
	}
	return p
}

// drain reads what is there, without waiting for more.
func (c *command) drain(s source, buf []byte) error {
	raw, err := s.file.SyscallConn()
	for err == nil {
		var n int
		var rerr error
		if err = raw.Read(func(fd uintptr) bool {
			n, rerr = unix.Read(int(fd), buf)
			return true
		}); err != nil {
			return err
		}
		switch {
		case errors.Is(rerr, unix.EINTR):
		case errors.Is(rerr, unix.EAGAIN):
			return nil
		case rerr != nil:
			return rerr
		case n == 0:
			return io.EOF
		default:
			c.log.append(s.channel, buf[:n])
		}
	}
	return err
}

// wait waits for the command's end, and sees to what it leaves.
func (c *command) wait(ended <-chan syscall.WaitStatus, p *pumps) {
	ws := <-ended
	for _, s := range c.output {
		_ = s.file.SetReadDeadline(time.Unix(1, 0))
	}
	if !c.keep {
		for end := time.Now().Add(grace); !c.group.Empty() && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
		c.kill()
	}
	p.empty.Wait()
	if !c.keep {
		// All that could write is gone, but for what has left the session where there are no cgroups: that isn't waited for.
		late := time.AfterFunc(time.Second, func() { _ = c.close() })
		p.ended.Wait()
		late.Stop()
	}
	c.exit.Status = ws.ExitStatus()
	if ws.Signaled() {
		c.exit.Signal = int(ws.Signal())
		c.exit.Status = 128 + c.exit.Signal
	}
	c.closeInputAtEnd()
	c.log.close()
	c.a.finish(c)
	// Processes that were kept may write on: somebody has to read that, or they would be held up.
	p.ended.Wait()
	_ = c.close()
	_ = c.group.Close()
}

// closeInputAtEnd lets writers go that wait for a command which has ended.
func (c *command) closeInputAtEnd() {
	if !c.tty {
		c.closeInput()
	}
}

// finish makes the end known. Commands whose end nobody is told of are kept a while for Attach.
func (a *Agent) finish(c *command) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.commands, c.pid)
	close(c.finished)
	a.ended = append(a.ended, c)
	if len(a.ended) > maxEnded {
		a.ended = slices.Delete(a.ended, 0, 1)
	}
}

// kill kills the command and all that it has started.
func (c *command) kill() { _ = c.group.Kill() }

// serve is a client's connection to a command: its output from the beginning, the client's input, its end.
func (a *Agent) serve(s *wire.Stream, c *command) error {
	out := c.log.attach()
	defer out.detach()
	if err := s.Message(wire.Progress{Pid: c.pid}); err != nil {
		return nil
	}
	var aside sync.WaitGroup
	served := make(chan struct{})
	defer aside.Wait()
	defer close(served)
	aside.Add(1)
	go func() {
		defer aside.Done()
		select {
		case <-s.Done():
			if !s.Broken() { // the host gave up: that kills. A connection that breaks, as in a fork, only detaches.
				c.kill()
			}
			out.stop()
		case <-served:
		}
	}()
	go c.take(s) // ends with the stream
	for {
		channel, b, ok := out.next()
		if !ok {
			break
		}
		if err := s.Data(channel, b); err != nil {
			return nil
		}
	}
	select {
	case <-c.finished:
	case <-s.Done():
		return s.Stopped()
	}
	if err := s.Message(wire.Progress{Exited: &c.exit}); err == nil {
		a.tell(c)
	}
	return nil
}

// tell notes that a client knows of the end.
func (a *Agent) tell(c *command) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.ended, c); i >= 0 {
		a.ended = slices.Delete(a.ended, i, i+1)
	}
}

// take takes a client's input in.
func (c *command) take(s *wire.Stream) {
	for {
		f, err := s.Recv()
		if err != nil {
			return
		}
		switch f.Type {
		case wire.Data:
			_ = c.write(f.Payload) // a command that doesn't read any more isn't an error of the client's
		case wire.Close:
			c.closeInput()
		}
	}
}

// find returns a command that runs, or that has ended untold.
func (a *Agent) find(op string, pid int) (*command, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.commands[pid]; c != nil {
		return c, nil
	}
	for _, c := range slices.Backward(a.ended) {
		if c.pid == pid {
			return c, nil
		}
	}
	return nil, errs.Msg(errs.NotFound, op, "", "there is no such command")
}

func (a *Agent) attach(s *wire.Stream, pid int) error {
	c, err := a.find("attach", pid)
	if err != nil {
		return err
	}
	return a.serve(s, c)
}

func (a *Agent) signal(pid, sig int) error {
	if sig < 0 || sig > 64 {
		return errs.Msg(errs.Invalid, "signal", "", "signals are 0 to 64")
	}
	a.mu.Lock()
	defer a.mu.Unlock() // its number isn't used again while it is in the table
	if a.commands[pid] == nil {
		return errs.Msg(errs.NotFound, "signal", "", "there is no such command")
	}
	if err := unix.Kill(-pid, unix.Signal(sig)); err != nil && !errors.Is(err, unix.ESRCH) {
		return errs.New(errs.Denied, "signal", "", err)
	}
	return nil
}

func (a *Agent) resize(pid int, size wire.Size) error {
	c, err := a.find("resize", pid)
	if err != nil {
		return err
	}
	if !c.tty {
		return errs.Msg(errs.Invalid, "resize", "", "the command has no terminal")
	}
	return setSize(c.master, size)
}

// Of a command's arguments this much is told, each of them counting one more than its bytes; JSON makes up to seven of each. So a message has
// room for a few commands.
const (
	maxListedArgs = 2048
	listedAtOnce  = 4
)

// list tells of the commands that run.
func (a *Agent) list(s *wire.Stream) error {
	a.mu.Lock()
	all := make([]wire.Command, 0, len(a.commands))
	for _, c := range a.commands {
		one := wire.Command{Pid: c.pid, TTY: c.tty}
		room := maxListedArgs
		for _, arg := range c.args {
			if room < 1 {
				break
			}
			arg = arg[:min(len(arg), room-1)]
			one.Args = append(one.Args, wire.Text(arg))
			room -= len(arg) + 1
		}
		all = append(all, one)
	}
	a.mu.Unlock()
	slices.SortFunc(all, func(x, y wire.Command) int { return x.Pid - y.Pid })
	for part := range slices.Chunk(all, listedAtOnce) {
		if err := s.Message(wire.Running{Commands: part}); err != nil {
			return err
		}
	}
	return nil
}
