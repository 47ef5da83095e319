package coreutils

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"syscall"
	"time"

	"agentrun.dev/command/tool"
	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// Commands that wait for long can go on in a copy of their process: what they need for that is a value of its own, which
// is written as JSON and read again. These are the kinds of such states.
const (
	SleepKind   = "sleep"
	CatKind     = "cat"
	TailKind    = "tail"
	TimeoutKind = "timeout"
)

// atRest makes the program behind a kind of state.
func atRest(kind string) proc.Program {
	switch kind {
	case SleepKind:
		return &sleeping{}
	case CatKind:
		return &catting{}
	case TailKind:
		return &tailing{}
	case TimeoutKind:
		return &timing{}
	}
	return nil
}

// restState is a captured command.
type restState struct {
	kind string
	data []byte
}

func capture(kind string, program proc.Program) (proc.State, error) {
	data, err := json.Marshal(program)
	return restState{kind, data}, err
}

// Restore makes a state of what Save wrote; errs.Unsupported for a kind that isn't one of this package.
func Restore(kind string, data []byte) (proc.State, error) {
	p := atRest(kind)
	if p == nil {
		return nil, errs.Msg(errs.Unsupported, "restore", kind, "no such command")
	}
	if err := json.Unmarshal(data, p); err != nil {
		return nil, errs.New(errs.Corrupt, "restore", kind, err)
	}
	return restState{kind, data}, nil
}

// Resume implements proc.State.
func (s restState) Resume(*proc.Process) (proc.Program, error) {
	p := atRest(s.kind)
	return p, json.Unmarshal(s.data, p)
}

// Close implements proc.State.
func (s restState) Close() error { return nil }

// Save implements proc.Saver.
func (s restState) Save() (string, []byte, error) { return s.kind, s.data, nil }

// sleeping is sleep once it knows for how long.
type sleeping struct{ Until time.Time }

func (s *sleeping) Capture() (proc.State, error) { return capture(SleepKind, s) }

func (s *sleeping) Run(p *proc.Process) int {
	if err := p.Rest(func() error { return p.SleepUntil(s.Until) }); err != nil {
		return 1
	}
	return 0
}

// catting is cat without options that change lines.
type catting struct {
	Names  []string // that are left; the first is being copied if Open
	Open   bool
	Fd     int
	Out    []byte // read and not yet written
	Status int
}

func (c *catting) Capture() (proc.State, error) { return capture(CatKind, c) }

func (c *catting) Run(p *proc.Process) int { return tool.Func(c.run).Run(p) }

func (c *catting) run(t *tool.T) int {
	buf := make([]byte, 4<<10)
	for len(c.Names) > 0 {
		if !c.Open {
			if err := c.open(t); err != nil {
				c.next(t, err)
				continue
			}
		}
		c.next(t, c.copy(t, &buf))
	}
	return c.Status
}

func (c *catting) open(t *tool.T) error {
	in, err := t.Open(c.Names[0])
	if err != nil {
		return err
	}
	if in.File == nil {
		return syscall.EBADF
	}
	c.Fd, c.Open = t.Fd(in.File), true
	if out, err := t.File(1); err == nil && sameFile(in, out) {
		return errSameFile
	}
	return nil
}

// copy copies a file up to its end. The buffer grows when reads fill it: most files are small.
func (c *catting) copy(t *tool.T, buf *[]byte) error {
	f, err := t.File(c.Fd)
	if err != nil {
		return err
	}
	for {
		if err := t.WriteAll(t.Stdout(), &c.Out); err != nil {
			t.WriteFailed(err)
		}
		err := t.Rest(func() error {
			n, err := f.Read(*buf)
			c.Out = (*buf)[:n]
			return err
		})
		if n := len(*buf); len(c.Out) == n && n < 64<<10 {
			*buf = make([]byte, 4*n) // c.Out keeps the former one until it is written
		}
		switch {
		case errors.Is(err, io.EOF) && len(c.Out) == 0:
			return nil
		case err != nil && len(c.Out) == 0:
			t.Check()
			return err
		}
	}
}

// next goes on to the next file.
func (c *catting) next(t *tool.T, err error) {
	if err != nil {
		t.WarnFile(c.Names[0], err)
		c.Status = 1
	}
	if c.Open && c.Fd != 0 {
		t.CloseFd(c.Fd)
	}
	c.Names, c.Open = c.Names[1:], false
}

// tailing is tail -f once it has printed what there was.
type tailing struct {
	Headers, First, ByName, Retry bool
	Interval                      time.Duration
	Pid, Last                     int // Last: whose output came last, -1 for none
	Files                         []tailingFile
	Until                         time.Time // of the sleep
}

type tailingFile struct {
	Name string
	Fd   int // -1 when it isn't open
	Dev  uint64
	Ino  uint64
	Mode uint32
	Gone bool
}

func (f *tailing) Capture() (proc.State, error) { return capture(TailKind, f) }

func (f *tailing) Run(p *proc.Process) int { return tool.Func(f.run).Run(p) }

func (f *tailing) run(t *tool.T) int {
	x := &tailer{t: t, headers: f.Headers, first: f.First, byName: f.ByName, retry: f.Retry, interval: f.Interval, pid: f.Pid}
	files := make([]*tailed, len(f.Files))
	for i, s := range f.Files {
		files[i] = s.tailed(t)
		if i == f.Last {
			x.last = files[i]
		}
	}
	for {
		if f.Until.IsZero() {
			if !x.round(files) {
				return 0
			}
			f.Until = t.Sandbox().Now().Add(f.Interval)
			f.note(x, files)
		}
		if err := t.Rest(func() error { return t.SleepUntil(f.Until) }); err != nil {
			t.Check()
			return 0
		}
		f.Until = time.Time{}
	}
}

// tailed opens nothing: the descriptor is open.
func (s *tailingFile) tailed(t *tool.T) *tailed {
	file := &tailed{name: s.Name, gone: s.Gone}
	file.attr.Dev, file.attr.Ino, file.attr.Mode = s.Dev, vfs.Ino(s.Ino), vfs.Mode(s.Mode)
	if s.Fd >= 0 {
		file.in = t.InputAt(s.Name, s.Fd)
	}
	return file
}

// note keeps what the last round has changed.
func (f *tailing) note(x *tailer, files []*tailed) {
	f.First, f.Last = x.first, slices.Index(files, x.last)
	f.Files = f.Files[:0]
	for _, file := range files {
		s := tailingFile{Name: file.name, Fd: -1, Dev: file.attr.Dev, Ino: uint64(file.attr.Ino), Mode: uint32(file.attr.Mode), Gone: file.gone}
		if file.in != nil && file.in.File != nil {
			s.Fd = x.t.Fd(file.in.File)
		}
		f.Files = append(f.Files, s)
	}
}

// timing is timeout once the command runs.
type timing struct {
	Child                         int
	Name                          string
	Sig                           int
	Foreground, Preserve, Verbose bool
	TimedOut                      bool
	Deadline                      time.Time // zero: none any more
	KillAfter                     time.Duration
}

func (x *timing) Capture() (proc.State, error) { return capture(TimeoutKind, x) }

func (x *timing) Run(p *proc.Process) int { return tool.Func(x.run).Run(p) }
