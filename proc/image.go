package proc

import (
	"context"
	"slices"
	"sync"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

// Image is what a sandbox was at a moment, without its files. It never changes: any number of sandboxes start from it,
// concurrently, until Close.
type Image struct {
	mu     sync.RWMutex
	closed bool
	image
	states []State
}

// image is what Save writes of an Image beside the states of programs. References are indexes into its lists.
type image struct {
	Hostname   string
	Limits     Limits
	Exceeded   string
	Booted     time.Time
	BootID     string `json:",omitempty"` // images of former versions have none
	NextPid    int
	NextPipe   uint64
	Output     int64 // used up of the limits, as the following
	Written    int64
	Steps      int64
	CPU        int64
	MemoryPeak int64
	Procs      []procImage // parents before children
	Files      []fileImage
	Pipes      []pipeImage
	Streams    []streamImage
	TTYs       []ttyImage
	Sockets    []socketImage `json:",omitempty"`
}

// procImage is one process. Those that have ended have only the first part.
type procImage struct {
	Pid, Parent int // Parent 0: none
	Pgid, Sid   int
	Start       time.Time
	Args        []string
	Cred        vfs.Cred
	Zombie      bool
	Status      int
	KilledBy    int
	CPU         int64
	Fresh       bool // it ended by being left out: its parent hasn't heard yet

	Env     []string
	Cwd     string
	Umask   vfs.Mode
	Disp    []Disposition // by signal
	Pending uint64
	StopSig int
	News    uint8
	Memory  int64
	Rlimits [NLimits]Rlimit
	Fds     []fdImage
	TTY     int   // the controlling terminal, counted from 1; 0 for none
	Stdio   []int // the streams or terminals that a root process began with, as Files; -1 for none
	State   int
}

// fdImage is one descriptor.
type fdImage struct {
	Fd, File int
	Cloexec  bool
}

// Kinds of open file descriptions.
const (
	fileDead   = iota // what can't be captured, such as a connection
	fileVFS           // a file or directory of the namespace
	fileDevice        // /dev/null and so on
	filePipe          // an end of a pipe or FIFO
	fileMemory        // a here-document
	fileStream        // a client's stream
	fileTTY           // a terminal
	fileSocket        // a socket
)

// fileImage is an open file description.
type fileImage struct {
	Kind        int
	Path        string // for /proc
	Flags       int
	Open        vfs.OpenFile
	Attr        *vfs.Attr // of a device or FIFO
	Pipe        int       // or the stream, terminal or socket
	Read, Write bool      // what the end of a pipe is for
	Text        []byte    // of a here-document
	Offset      int64
}

// pipeImage is a pipe with the bytes that nobody has read yet.
type pipeImage struct {
	ID   uint64
	Born time.Time
	Data []byte
}

// streamImage is a stream between the sandbox and a client.
type streamImage struct {
	Out, TTY bool
	Data     []byte // of an input: read ahead; of an output without a client: its log
	Lost     int64
	EOF      bool
}

// ttyImage is a terminal.
type ttyImage struct {
	N         int
	Born      time.Time
	Termios   Termios
	Size      WinSize
	UID       uint32
	Sid, Pgrp int
	HungUp    bool
	Line      []byte
	LineFrom  int
	Ready     []byte
	Segments  []int
	Literal   bool
	Out       []byte
	Lost      int64
	Column    int
	Stopped   bool
}

// Capture copies processes, descriptors, the bytes in pipes, terminals, signals, offsets and used-up limits as they are. Streams to
// clients become logs to which a client attaches; what is open outside of the namespace is dead in the copies, as a
// connection that was reset. The error names the program that failed to capture its state.
func (f *Frozen) Capture() (*Image, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.thawed {
		return nil, errs.Msg(errs.Conflict, "capture", "", "thawed")
	}
	c := &capture{s: f.s, im: &Image{}, descs: make(map[*description]int), pipes: make(map[*pipe]int), streams: make(map[vfs.File]int), ttys: make(map[*TTY]int), sockets: make(map[*socket]int), links: make(map[*link]int)}
	if err := c.sandbox(f.busy); err != nil {
		c.im.Close()
		return nil, err
	}
	return c.im, nil
}

// Close lets go of the states of programs. Sandboxes that were started go on.
func (im *Image) Close() error {
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.closed {
		return nil
	}
	im.closed = true
	var first error
	for _, st := range im.states {
		if err := st.Close(); err != nil && first == nil {
			first = err
		}
	}
	im.states = nil
	return first
}

// Pids lists the processes of the image that have a program, ascending.
func (im *Image) Pids() []int {
	var list []int
	for i := range im.Procs {
		if !im.Procs[i].Zombie {
			list = append(list, im.Procs[i].Pid)
		}
	}
	return list
}

// capture gathers an image.
type capture struct {
	s       *Sandbox
	im      *Image
	descs   map[*description]int
	pipes   map[*pipe]int
	streams map[vfs.File]int
	ttys    map[*TTY]int
	sockets map[*socket]int
	links   map[*link]int
}

func (c *capture) sandbox(busy map[*Process]bool) error {
	s, im := c.s, c.im
	im.Hostname, im.Limits, im.Exceeded, im.Booted, im.BootID = s.hostname, s.limits, s.Exceeded(), s.booted, s.bootID
	im.NextPipe, im.Output, im.Written, im.Steps = s.pipeIDs.Load(), s.output.Load(), s.written.Load(), s.steps.Load()
	im.CPU, im.MemoryPeak = s.cpu.Load(), s.memoryPeak.Load()
	s.mu.Lock()
	procs := s.sorted()
	im.NextPid = s.nextPid
	for _, p := range procs {
		pi := procImage{Pid: p.pid, Pgid: p.pgid, Sid: p.sid, Start: p.start}
		if p.parent != nil {
			pi.Parent = p.parent.pid
		}
		im.Procs = append(im.Procs, pi)
	}
	s.mu.Unlock()
	for _, t := range s.TTYs() {
		c.tty(t)
	}
	for i, p := range procs {
		if err := c.process(p, &im.Procs[i], busy[p]); err != nil {
			return err
		}
	}
	for i, p := range procs {
		c.stdio(p, &im.Procs[i])
	}
	im.bury()
	return nil
}

// bury takes parents that have ended from their children, and drops the ends that nobody waits for.
func (im *image) bury() {
	ended := make(map[int]bool, len(im.Procs))
	for i := range im.Procs {
		ended[im.Procs[i].Pid] = im.Procs[i].Zombie
	}
	kept := im.Procs[:0]
	for _, pi := range im.Procs {
		if ended[pi.Parent] {
			pi.Parent = 0
		}
		if !pi.Zombie || pi.Parent != 0 {
			kept = append(kept, pi)
		}
	}
	im.Procs = kept
}

// process copies one process, as one that has ended if it is gone.
func (c *capture) process(p *Process, pi *procImage, gone bool) error {
	p.mu.Lock()
	pi.Args, pi.Cred, pi.CPU, pi.Status, pi.KilledBy = p.args, p.cred, p.cpu.Load(), p.status, p.killedBy
	if gone || p.state != running || p.isKilled() {
		pi.end(p.state == zombie)
		p.mu.Unlock()
		return nil
	}
	prog := p.prog
	pi.Env, pi.Cwd, pi.Umask = p.env, p.cwd, p.umask
	pi.Pending, pi.StopSig, pi.News = p.pending, p.stopSig, p.news
	pi.Disp, pi.Rlimits = slices.Clone(p.disp[:]), p.rlimits
	p.mu.Unlock()
	cl, ok := prog.(Cloner)
	if !ok {
		return errs.Msg(errs.Unavailable, "capture", p.comm(), "runs another program by now")
	}
	st, err := cl.Capture()
	if err != nil {
		return errs.New(errs.KindOf(err), "capture", p.comm(), err)
	}
	pi.State = len(c.im.states)
	c.im.states = append(c.im.states, st)
	if t := p.TTY(); t != nil {
		pi.TTY = c.tty(t) + 1
	}
	pi.Memory = p.MemoryUsed()
	c.descriptors(p, pi)
	if p.isKilled() { // from outside, just now; its descriptors are closed after that
		*pi = procImage{Pid: pi.Pid, Parent: pi.Parent, Pgid: pi.Pgid, Sid: pi.Sid, Start: pi.Start, Args: pi.Args, Cred: pi.Cred, CPU: pi.CPU, KilledBy: p.Killed()}
		pi.end(false)
	}
	return nil
}

// end makes the process one that has ended; if it hasn't in fact, by a signal.
func (pi *procImage) end(inFact bool) {
	if pi.Zombie = true; inFact {
		return
	}
	if pi.Fresh = true; pi.KilledBy == 0 {
		pi.KilledBy = SIGKILL
	}
	pi.Status = 128 + pi.KilledBy
}

// stdio notes with which of the captured files a root process began.
func (c *capture) stdio(p *Process, pi *procImage) {
	if pi.Zombie || p.stdio == [3]*description{} {
		return
	}
	for _, d := range p.stdio {
		n := -1
		if i, ok := c.descs[d]; ok {
			n = i
		}
		pi.Stdio = append(pi.Stdio, n)
	}
}

func (c *capture) descriptors(p *Process, pi *procImage) {
	p.fds.mu.Lock()
	defer p.fds.mu.Unlock()
	for fd, sl := range p.fds.slots {
		if sl.d != nil {
			pi.Fds = append(pi.Fds, fdImage{fd, c.description(sl.d), sl.cloexec})
		}
	}
}

// description enters an open file description once, whoever shares it.
func (c *capture) description(d *description) int {
	if i, ok := c.descs[d]; ok {
		return i
	}
	fi := fileImage{Path: d.path, Flags: d.file.Flags()}
	switch f := d.file.(type) {
	case *pipeEnd:
		fi.Kind, fi.Pipe, fi.Read, fi.Write, fi.Attr = filePipe, c.pipe(f), f.canRead, f.canWrite, f.attr
	case *socket:
		fi.Kind, fi.Pipe = fileSocket, c.socket(f)
	case *device:
		fi.Kind, fi.Attr = fileDevice, &f.attr
	case *memFile:
		f.mu.Lock()
		fi.Kind, fi.Text, fi.Offset = fileMemory, f.text, f.off
		f.mu.Unlock()
	case *Input:
		fi.Kind, fi.Pipe = fileStream, c.stream(f, f.image)
	case *Output:
		fi.Kind, fi.Pipe = fileStream, c.stream(f, f.image)
	case *ttyFile:
		fi.Kind, fi.Pipe = fileTTY, c.tty(f.t)
	default:
		if open, err := c.s.ns.Describe(f); err == nil {
			fi.Kind, fi.Open = fileVFS, open
		}
	}
	i := len(c.im.Files)
	c.im.Files, c.descs[d] = append(c.im.Files, fi), i
	return i
}

func (c *capture) pipe(e *pipeEnd) int {
	p := e.pipe
	if i, ok := c.pipes[p]; ok {
		return i
	}
	p.mu.Lock()
	pi := pipeImage{ID: p.id, Born: p.born, Data: slices.Clone(p.buf[p.off:])}
	p.mu.Unlock()
	i := len(c.im.Pipes)
	c.im.Pipes, c.pipes[p] = append(c.im.Pipes, pi), i
	return i
}

func (c *capture) stream(f vfs.File, image func() streamImage) int {
	if i, ok := c.streams[f]; ok {
		return i
	}
	i := len(c.im.Streams)
	c.im.Streams, c.streams[f] = append(c.im.Streams, image()), i
	return i
}

func (c *capture) tty(t *TTY) int {
	if i, ok := c.ttys[t]; ok {
		return i
	}
	t.mu.Lock()
	ti := ttyImage{N: t.n, Born: t.born, Termios: t.termios, Size: t.size, UID: t.uid, Sid: t.sid, Pgrp: t.pgrp, HungUp: t.hungUp, LineFrom: t.lineFrom,
		Line: slices.Clone(t.line), Ready: slices.Clone(t.ready), Segments: slices.Clone(t.segments), Literal: t.literal,
		Out: slices.Clone(t.out), Lost: t.lost, Column: t.column, Stopped: t.stopped}
	t.mu.Unlock()
	i := len(c.im.TTYs)
	c.im.TTYs, c.ttys[t] = append(c.im.TTYs, ti), i
	return i
}

// reopen opens a file of the namespace again; what can't be found there any more is dead.
func reopen(ctx context.Context, ns *vfs.Namespace, o vfs.OpenFile) vfs.File {
	f, err := ns.Reopen(ctx, o)
	if err != nil {
		return &deadFile{flags: o.Flags}
	}
	return f
}
