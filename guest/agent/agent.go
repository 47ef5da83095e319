// Package agent is what serves the host inside a VM: it starts the workload's commands, works on files, and makes a forked machine another one.
//
// The workload is everything that commands start; the agent isn't part of it. Before the host captures the machine's memory, it has the
// agent freeze the workload under a token. A machine that was started from the captured memory begins frozen, therefore, and the workload
// goes on only when the host has told the agent what is new there (Renew: entropy, time, names, addresses) and all of it has been
// done. A host that is never heard of, or a step that fails, leaves it frozen for good.
//
// What the agent does to the machine, and how it holds the workload, are the interfaces Machine and Workload: the agent itself runs
// in any process, such as a test's.
package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
	"agentrun.dev/vfs"
)

// Machine is what the agent may do to the machine as a whole.
type Machine interface {
	// Renew sets entropy, time, names and network. Its error says what couldn't be set.
	Renew(r wire.Renew) error
	// Sync writes what filesystems hold back.
	Sync()
	Mount(m wire.Mount) error
	Unmount(path string) error
	// Off turns the machine off; it may return before that has happened.
	Off() error
}

// Options of an agent. The zero ones work where nothing is done to the machine.
type Options struct {
	Machine  Machine  // nil: whatever would need it is errs.Unsupported
	Workload Workload // nil: sessions, without limits
	// Init says that the agent is the machine's first process, to which orphans fall: it takes up all children that end.
	Init bool
	User string   // who commands run as unless they say: a name, UID or UID:GID; the agent's own user when empty
	Dir  string   // where they start; / when empty, or when it isn't there
	Env  []string // NAME=VALUE of every command
	Log  func(format string, a ...any)
	// Files opens what a tree shows: nil is the root of this process, as it is. The tree closes it if it is an io.Closer.
	Files func() (vfs.FS, error)
}

// Agent serves any number of connections. Its methods may be called concurrently.
type Agent struct {
	o    Options
	reap *reaper

	// starting is held for reading while a command is being started, so that none starts in a frozen workload.
	starting sync.RWMutex
	token    string // that the workload is frozen with; empty: it isn't
	identity []string

	mu       sync.Mutex
	commands map[int]*command
	ended    []*command // whose end nobody was told of, the oldest first
	conns    map[net.Conn]struct{}
	trees    map[uint64]*tree
	lastTree uint64
	asks     asks
	closed   bool
	running  sync.WaitGroup
}

// Limits of an agent.
const (
	maxConns    = 16
	maxCommands = 1000 // at once
	maxEnded    = 128  // that are kept for Attach
)

// New returns an agent. Close ends it.
func New(o Options) *Agent {
	if o.Workload == nil {
		o.Workload = NewSessions()
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	a := &Agent{o: o, commands: make(map[int]*command), conns: make(map[net.Conn]struct{}), trees: make(map[uint64]*tree)}
	a.reap = newReaper(o.Init)
	return a
}

// Serve serves the connections that a listener accepts, until that fails.
func (a *Agent) Serve(l net.Listener) error {
	for {
		nc, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			// One that broke is nothing to tell of: in each fork one does, and a console is slow.
			if err := a.ServeConn(nc); err != nil && !errs.Is(err, errs.Unavailable) {
				a.o.Log("connection: %v", err)
			}
		}()
	}
}

// ServeConn serves one connection until it ends. Commands that were started over it go on.
func (a *Agent) ServeConn(nc net.Conn) error {
	a.mu.Lock()
	if a.closed || len(a.conns) >= maxConns {
		a.mu.Unlock()
		nc.Close()
		return errs.Msg(errs.Limit, "agent", "", "too many connections")
	}
	a.conns[nc] = struct{}{}
	a.running.Add(1)
	a.mu.Unlock()
	defer a.running.Done()
	err := wire.Guest(nc, a.handle)
	a.mu.Lock()
	delete(a.conns, nc)
	a.mu.Unlock()
	return err
}

// Close breaks all connections, kills all commands and waits for their end.
func (a *Agent) Close() error {
	a.mu.Lock()
	a.closed = true
	for nc := range a.conns {
		nc.Close()
	}
	commands := make([]*command, 0, len(a.commands))
	for _, c := range a.commands {
		commands = append(commands, c)
	}
	a.mu.Unlock()
	a.asks.close()
	for _, c := range commands {
		c.kill()
	}
	a.running.Wait()
	a.reap.close()
	return nil
}

// handle serves one call. A defect in it ends that call, not the machine.
func (a *Agent) handle(s *wire.Stream, request []byte) (err error) {
	defer func() {
		if v := recover(); v != nil {
			a.o.Log("panic: %v\n%s", v, debug.Stack())
			err = errs.Msg(errs.Other, "agent", "", "it has a defect: see the console")
		}
	}()
	var r wire.Request
	if err := wire.Decode(request, &r); err != nil {
		return err
	}
	switch {
	case r.Exec != nil:
		return a.exec(s, *r.Exec)
	case r.Attach != nil:
		return a.attach(s, r.Attach.Pid)
	case r.Running != nil:
		return a.list(s)
	case r.Signal != nil:
		return a.signal(r.Signal.Pid, r.Signal.Signal)
	case r.Resize != nil:
		return a.resize(r.Resize.Pid, r.Resize.Size)
	case r.Dial != nil:
		return dial(s, r.Dial.Port)
	case r.Stats != nil:
		st, err := a.stats()
		if err != nil {
			return err
		}
		return s.Message(st)
	case r.Freeze != nil:
		return a.freeze(s, r.Freeze.Token)
	case r.Flush != nil:
		return a.flush(r.Flush.Token)
	case r.Thaw != nil:
		return a.thaw(r.Thaw.Token)
	case r.Renew != nil:
		return a.renew(*r.Renew)
	case r.Tree != nil:
		return a.tree(s)
	case r.Node != nil:
		return a.node(s, r.Node)
	case r.Asks != nil:
		return a.asks.tell(s)
	case r.Reply != nil:
		return a.asks.reply(s, r.Reply.ID)
	case r.Mount != nil, r.Unmount != nil, r.Shutdown != nil:
		return a.machine(r)
	}
	return a.file(s, r)
}

func (a *Agent) machine(r wire.Request) error {
	m := a.o.Machine
	switch {
	case m == nil:
		return errs.Msg(errs.Unsupported, "agent", "", "it has no machine")
	case r.Mount != nil:
		return m.Mount(*r.Mount)
	case r.Unmount != nil:
		return m.Unmount(string(r.Unmount.Path))
	}
	return m.Off()
}

// freezeTimeout is how long processes may take until they stand still: one in an uninterruptible system call can't.
const freezeTimeout = 10 * time.Second

// freeze stops the workload. When it fails, the workload goes on.
func (a *Agent) freeze(s *wire.Stream, token string) error {
	if len(token) < 16 || len(token) > 256 {
		return errs.Msg(errs.Invalid, "freeze", "", "a token has 16 to 256 bytes")
	}
	a.starting.Lock()
	defer a.starting.Unlock()
	if a.token != "" {
		return errs.Msg(errs.Conflict, "freeze", "", "the workload is frozen already")
	}
	ctx, cancel := context.WithTimeout(context.Background(), freezeTimeout)
	defer cancel()
	go func() {
		select {
		case <-s.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	err := a.o.Workload.Freeze(ctx)
	if err == nil {
		err = s.Stopped() // the host doesn't wait for it any more, so that it wouldn't thaw
	}
	if err != nil {
		return errors.Join(err, a.o.Workload.Thaw())
	}
	a.token = token
	return nil
}

// held checks that the workload is frozen with a token; starting is held.
func (a *Agent) held(op, token string) error {
	if a.token == "" {
		return errs.Msg(errs.Conflict, op, "", "the workload isn't frozen")
	}
	if a.token != token {
		return errs.Msg(errs.Denied, op, "", "the workload was frozen with another token")
	}
	return nil
}

// flush writes what the frozen workload has written to mapped files, and whatever else the kernel holds back.
func (a *Agent) flush(token string) error {
	a.starting.Lock()
	defer a.starting.Unlock()
	if err := a.held("flush", token); err != nil {
		return err
	}
	if a.o.Machine != nil {
		a.o.Machine.Sync()
	}
	return nil
}

// thaw lets the workload of the machine itself go on.
func (a *Agent) thaw(token string) error {
	a.starting.Lock()
	defer a.starting.Unlock()
	if err := a.held("thaw", token); err != nil {
		return err
	}
	if err := a.o.Workload.Thaw(); err != nil {
		return err
	}
	a.token = ""
	return nil
}

// renew makes the machine another one and lets the workload go on, in this order.
func (a *Agent) renew(r wire.Renew) error {
	a.starting.Lock()
	defer a.starting.Unlock()
	if err := a.held("renew", r.Token); err != nil {
		return err
	}
	switch {
	case a.o.Machine == nil:
		return errs.Msg(errs.Unsupported, "renew", "", "the agent has no machine")
	case len(r.Entropy) < 32:
		return errs.Msg(errs.Invalid, "renew", "", "32 bytes of entropy at least are needed")
	case r.Time.IsZero():
		return errs.Msg(errs.Invalid, "renew", "", "the time is missing")
	}
	if err := errors.Join(a.o.Machine.Renew(r), a.o.Workload.Limit(r.Processes)); err != nil {
		return err
	}
	a.identity = slices.Clone(wire.Strings(r.Env))
	a.mu.Lock()
	for _, c := range a.commands {
		c.log.forget()
	}
	for _, c := range a.ended {
		c.log.forget()
	}
	a.mu.Unlock()
	if err := a.o.Workload.Thaw(); err != nil {
		return err
	}
	a.token = ""
	return nil
}

// dial connects to a server of the sandbox, whichever of its addresses it listens on.
func dial(s *wire.Stream, port uint16) error {
	nc, err := connect(port)
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := s.Message(struct{}{}); err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() { sent <- fromHost(s, nc) }()
	buf := make([]byte, wire.MaxData)
	for {
		n, err := nc.Read(buf)
		if n > 0 {
			if err := s.Data(wire.Output, buf[:n]); err != nil {
				nc.Close()
				<-sent
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			nc.Close()
			<-sent
			return errs.New(errs.Unavailable, "dial", strconv.Itoa(int(port)), err)
		}
	}
	// The server has ended its side. What the host still sends goes on until the host ends its own, or the server doesn't take it.
	if err := s.CloseChannel(wire.Output); err != nil {
		nc.Close()
	}
	<-sent
	return nil
}

// fromHost copies what the host sends. It closes what it writes to: one way at the end of input, both when the stream is gone.
func fromHost(s *wire.Stream, nc net.Conn) error {
	for {
		f, err := s.Recv()
		if err != nil {
			return errors.Join(err, nc.Close())
		}
		switch f.Type {
		case wire.Data:
			if _, err := nc.Write(f.Payload); err != nil {
				return errors.Join(err, nc.Close())
			}
		case wire.Close:
			half, ok := nc.(interface{ CloseWrite() error })
			if f.Channel == wire.Input && ok {
				_ = half.CloseWrite()
				continue
			}
			return nc.Close() // the host doesn't read any more, either
		}
	}
}

// connect tries loopback first, then the machine's own addresses.
func connect(port uint16) (net.Conn, error) {
	hosts := []string{"127.0.0.1", "::1"}
	if list, err := net.InterfaceAddrs(); err == nil {
		for _, addr := range list {
			if ip, ok := addr.(*net.IPNet); ok && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() {
				hosts = append(hosts, ip.IP.String())
			}
		}
	}
	var first error
	for _, host := range hosts {
		nc, err := net.DialTimeout("tcp", net.JoinHostPort(host, strconv.Itoa(int(port))), 5*time.Second)
		if err == nil {
			return nc, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, errs.New(errs.Unavailable, "dial", strconv.Itoa(int(port)), first)
}
