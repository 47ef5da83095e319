package proc

import (
	"cmp"
	"context"
	"io"
	"slices"
	"syscall"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

// StartOptions say in what an image goes on. Namespace and Commands are required.
type StartOptions struct {
	Namespace *vfs.Namespace // a clone of the frozen one
	Commands  Commands
	Services  any
	Load      func(p *Process, file string, head []byte) (Program, bool)
	Hostname  string           // the image's when empty
	Clock     func() time.Time // time.Now when nil
	Rand      io.Reader        // the system's generator when nil
	// Prepare is called before anything runs, such as to mount the sandbox's /proc. Its error is Start's. May be nil.
	Prepare func(*Sandbox) error
}

// startGrace is how long Start waits for programs that began when another one can't.
const startGrace = 10 * time.Second

// Start makes a running sandbox of an image: every program goes on where it rested. It may be called any number of times,
// concurrently. Memory stays charged to the processes as it was. A file that the namespace doesn't know any more reads
// and writes ESTALE. Errors: errs.Invalid, errs.Unavailable for a closed image, or that of a program that can't go on.
func (im *Image) Start(o StartOptions) (*Sandbox, error) {
	im.mu.RLock()
	defer im.mu.RUnlock()
	if im.closed {
		return nil, errs.Msg(errs.Unavailable, "start", "", "the image is closed")
	}
	if o.Hostname == "" {
		o.Hostname = im.Hostname
	}
	s, err := New(Options{Namespace: o.Namespace, Commands: o.Commands, Limits: im.Limits, Hostname: o.Hostname, Clock: o.Clock, Rand: o.Rand, Services: o.Services, Load: o.Load})
	if err != nil {
		return nil, err
	}
	s.booted, s.nextPid = im.Booted, im.NextPid
	s.bootID = cmp.Or(im.BootID, s.bootID)
	s.pipeIDs.Store(im.NextPipe)
	s.output.Store(im.Output)
	s.written.Store(im.Written)
	s.steps.Store(im.Steps)
	s.cpu.Store(im.CPU)
	s.memoryPeak.Store(im.MemoryPeak)
	if im.Exceeded != "" {
		s.exceed(im.Exceeded)
	}
	st := &starter{im: im, s: s, files: make([]*description, len(im.Files)), pipes: make([]*pipe, len(im.Pipes)), streams: make([]vfs.File, len(im.Streams)),
		sockets: make([]*socket, len(im.Sockets)), links: make(map[int]*link)}
	st.terminals()
	if o.Prepare != nil {
		err = o.Prepare(s)
	}
	var programs []Program
	if err == nil {
		programs, err = st.processes()
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.Background(), startGrace)
		defer cancel()
		s.Close(ctx)
		return nil, err
	}
	for i, prog := range programs {
		if prog != nil {
			st.procs[i].launch(prog)
		}
	}
	return s, nil
}

// starter builds a sandbox of an image.
type starter struct {
	im      *Image
	s       *Sandbox
	procs   []*Process
	files   []*description // made when they are first referred to, as the following
	pipes   []*pipe
	streams []vfs.File
	ttys    []*TTY
	sockets []*socket
	links   map[int]*link
}

// terminals makes all terminals. They have no client yet.
func (st *starter) terminals() {
	s := st.s
	for i := range st.im.TTYs {
		ti := &st.im.TTYs[i]
		t := &TTY{sb: s, n: ti.N, born: ti.Born, termios: ti.Termios, size: ti.Size, uid: ti.UID, sid: ti.Sid, pgrp: ti.Pgrp, hungUp: ti.HungUp, lost: ti.Lost, detached: true}
		t.ttyInput = ttyInput{line: slices.Clone(ti.Line), lineFrom: ti.LineFrom, ready: slices.Clone(ti.Ready), segments: slices.Clone(ti.Segments), literal: ti.Literal}
		t.ttyOutput = ttyOutput{out: slices.Clone(ti.Out), column: ti.Column, stopped: ti.Stopped}
		st.ttys = append(st.ttys, t)
		if !t.hungUp {
			if s.ttys == nil {
				s.ttys = make(map[int]*TTY)
			}
			s.ttys[t.n] = t
		}
	}
}

// processes makes all processes, then the programs: they may look for each other.
func (st *starter) processes() ([]Program, error) {
	s := st.s
	for i := range st.im.Procs {
		p := st.process(&st.im.Procs[i])
		st.procs = append(st.procs, p)
		s.procs[p.pid] = p
	}
	for i := range st.im.Procs {
		if parent := s.procs[st.im.Procs[i].Parent]; parent != nil {
			p := st.procs[i]
			p.parent = parent
			if parent.children == nil {
				parent.children = make(map[int]*Process)
			}
			parent.children[p.pid] = p
		}
	}
	for i := range st.im.Procs {
		pi, p := &st.im.Procs[i], st.procs[i]
		for fd, n := range pi.Stdio {
			if n >= 0 && fd < len(p.stdio) {
				p.stdio[fd] = st.files[n]
			}
		}
		if pi.Fresh && p.parent != nil {
			p.parent.post(SIGCHLD)
		}
	}
	return st.programs()
}

// programs makes the programs that go on, and counts them as running.
func (st *starter) programs() ([]Program, error) {
	list := make([]Program, len(st.procs))
	for i, p := range st.procs {
		pi := &st.im.Procs[i]
		if pi.Zombie {
			continue
		}
		prog, err := st.im.states[pi.State].Resume(p)
		if err == nil && prog == nil {
			err = syscall.EINVAL
		}
		if err != nil {
			for _, made := range list {
				if c, ok := made.(io.Closer); ok {
					c.Close()
				}
			}
			return nil, errs.New(errs.KindOf(err), "resume", p.comm(), err)
		}
		p.setProgram(prog)
		list[i] = prog
	}
	for _, prog := range list {
		if prog != nil {
			st.s.begin()
		}
	}
	return list, nil
}

func (st *starter) process(pi *procImage) *Process {
	s := st.s
	p := &Process{sb: s, pid: pi.Pid, pgid: pi.Pgid, sid: pi.Sid, start: pi.Start, args: pi.Args, env: pi.Env, cwd: pi.Cwd, umask: pi.Umask,
		cred: pi.Cred, status: pi.Status, killedBy: pi.KilledBy, intr: make(chan struct{}), done: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.WithValue(s.ctx, processKey{}, p))
	p.cpu.Store(pi.CPU)
	p.rlimits = pi.Rlimits
	p.fds.limit = int(min(pi.Rlimits[LimitNofile].Soft, uint64(s.limits.Files)))
	p.limited.Store(p.hasLimits())
	if pi.Zombie {
		p.state = zombie
		if p.killedBy != 0 {
			p.attn.Store(attnKilled)
		}
		p.fds.closed = true
		p.cancel()
		close(p.done)
		return p
	}
	p.state, p.news = running, pi.News
	copy(p.disp[:], pi.Disp)
	if p.pending = pi.Pending; p.pending != 0 {
		p.hasSignal.Store(true)
		close(p.intr)
	}
	if pi.StopSig != 0 {
		p.stopSig, p.cont = pi.StopSig, make(chan struct{})
		p.attn.Store(attnStopped)
	}
	if pi.TTY > 0 {
		p.tty = st.ttys[pi.TTY-1]
	}
	p.memory = pi.Memory
	s.memory.Add(pi.Memory)
	for _, f := range pi.Fds {
		d := st.file(p, f.File)
		for len(p.fds.slots) <= f.Fd {
			p.fds.slots = append(p.fds.slots, slot{})
		}
		p.fds.slots[f.Fd] = slot{d, f.Cloexec}
	}
	return p
}

// file returns an open file description with one reference more.
func (st *starter) file(p *Process, i int) *description {
	if d := st.files[i]; d != nil {
		d.refs.Add(1)
		return d
	}
	fi := &st.im.Files[i]
	var f vfs.File
	switch fi.Kind {
	case fileVFS:
		f = reopen(p.ctx, st.s.ns, fi.Open)
	case fileDevice:
		f = &device{attr: *fi.Attr, flags: fi.Flags, sb: st.s}
	case filePipe:
		f = st.pipeEnd(fi)
	case fileMemory:
		f = &memFile{text: fi.Text, off: fi.Offset}
	case fileStream:
		f = st.stream(fi.Pipe)
	case fileTTY:
		f = st.ttys[fi.Pipe].open(fi.Flags)
	case fileSocket:
		f = st.socket(fi.Pipe)
	default:
		f = &deadFile{flags: fi.Flags, reset: true}
	}
	d := newDescription(f)
	d.path = fi.Path
	st.files[i] = d
	return d
}

func (st *starter) pipe(i int) *pipe {
	if st.pipes[i] == nil {
		pi := &st.im.Pipes[i]
		st.pipes[i] = &pipe{id: pi.ID, born: pi.Born, buf: pi.Data, shared: len(pi.Data) > 0}
	}
	return st.pipes[i]
}

func (st *starter) pipeEnd(fi *fileImage) vfs.File {
	pp := st.pipe(fi.Pipe)
	e := pp.open(fi.Read, fi.Write)
	if fi.Attr != nil {
		attr := *fi.Attr
		if a, err := st.s.ns.Stat(st.s.ctx, vfs.Cred{}, "", fi.Path); err == nil && a.Mode&vfs.ModeType == vfs.ModeFIFO {
			attr = a // the file may have other numbers by now
		}
		st.s.closesFIFO(e, attr)
		st.s.fifos[fifoKey{attr.Dev, attr.Ino}] = pp
	}
	return e
}

func (st *starter) stream(i int) vfs.File {
	if st.streams[i] == nil {
		si := &st.im.Streams[i]
		if si.Out {
			st.streams[i] = &Output{sb: st.s, tty: si.TTY, log: &clientLog{data: si.Data[:len(si.Data):len(si.Data)], lost: si.Lost}}
		} else {
			in := &Input{tty: si.TTY, pending: si.Data, waits: true}
			if si.EOF {
				in.err = io.EOF
			}
			st.streams[i] = in
		}
	}
	return st.streams[i]
}

// deadFile is what a file is in a copy that couldn't come along.
type deadFile struct {
	special
	flags int
	reset bool // it was a connection or the like: ECONNRESET; else ESTALE
}

func (d *deadFile) err() error {
	if d.reset {
		return syscall.ECONNRESET
	}
	return syscall.ESTALE
}

func (d *deadFile) Read([]byte) (int, error)  { return 0, d.err() }
func (d *deadFile) Write([]byte) (int, error) { return 0, d.err() }
func (d *deadFile) Flags() int                { return d.flags &^ syscall.O_CREAT }
func (d *deadFile) Attr() (vfs.Attr, error)   { return vfs.Attr{}, d.err() }
