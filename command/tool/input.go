package tool

import (
	"bytes"
	"errors"
	"io"
	"syscall"

	"agentrun.dev/vfs"
)

// Input is an open input file or standard input. Reads unwind when the process is killed.
type Input struct {
	Name string // as the user wrote it; "-" is standard input
	File vfs.File
	t    *T
	std  bool
}

// stdin is descriptor 0. What is in Out is written before each read, so that whoever feeds the command sees its
// answer first.
type stdin struct{ t *T }

func (s *stdin) Read(p []byte) (int, error) {
	s.t.Check()
	if s.t.Out.Buffered() > 0 {
		s.t.Out.Flush()
	}
	return s.t.Process.Stdin().Read(p)
}

// Stdin returns standard input.
func (t *T) Stdin() io.Reader {
	if t.in == nil {
		t.in = &stdin{t}
	}
	return t.in
}

// Open opens a file to read; "-" is standard input.
func (t *T) Open(name string) (*Input, error) {
	if name == "-" {
		in := &Input{Name: name, t: t, std: true}
		in.File, _ = t.Process.File(0)
		return in, nil
	}
	return t.OpenFile(name)
}

// OpenFile opens a file to read; "-" has no special meaning.
func (t *T) OpenFile(name string) (*Input, error) {
	f, err := t.Process.Open(name, syscall.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return &Input{Name: name, File: f, t: t}, nil
}

// InputAt returns what is open as a descriptor as an input of that name, as Open had returned it.
func (t *T) InputAt(name string, fd int) *Input {
	in := &Input{Name: name, t: t, std: name == "-" && fd == 0}
	in.File, _ = t.Process.File(fd)
	return in
}

// Read implements io.Reader.
func (in *Input) Read(p []byte) (int, error) {
	if in.std {
		return in.t.Stdin().Read(p)
	}
	in.t.Check()
	return in.File.Read(p)
}

// Close closes the file; standard input stays open.
func (in *Input) Close() error {
	if in.std {
		return nil
	}
	return in.File.Close()
}

// IsStdin reports whether this is standard input.
func (in *Input) IsStdin() bool { return in.std }

// Attr returns the file's attributes.
func (in *Input) Attr() (vfs.Attr, error) {
	if in.File == nil {
		return vfs.Attr{}, syscall.EBADF
	}
	return in.File.Attr()
}

// MaxLine bounds a line in memory. A longer one is ENOMEM, as if memory were exhausted.
const MaxLine = 256 << 20

// Lines splits a reader into lines.
type Lines struct {
	r          io.Reader
	buf        []byte
	start, end int
	eof        bool
	delim      byte
	Terminated bool  // the line last returned ended with the delimiter
	Err        error // what ended the reading, nil at the end of the file
}

// NewLines returns a splitter; delim is usually '\n' or 0.
func NewLines(r io.Reader, delim byte) *Lines { return &Lines{r: r, delim: delim} }

// Next returns the next line without its delimiter, valid until the next call; ok is false at the end. The last line
// may lack its delimiter, see Terminated.
func (l *Lines) Next() (line []byte, ok bool) {
	scanned := 0
	for {
		if i := bytes.IndexByte(l.buf[l.start+scanned:l.end], l.delim); i >= 0 {
			line = l.buf[l.start : l.start+scanned+i]
			l.start += scanned + i + 1
			l.Terminated = true
			return line, true
		}
		scanned = l.end - l.start
		if l.eof {
			if scanned == 0 {
				return nil, false
			}
			line = l.buf[l.start:l.end]
			l.start, l.Terminated = l.end, false
			return line, true
		}
		l.fill()
	}
}

// fill reads more, moving and growing the buffer as needed.
func (l *Lines) fill() {
	if l.start > 0 {
		copy(l.buf, l.buf[l.start:l.end])
		l.start, l.end = 0, l.end-l.start
	}
	if l.end == len(l.buf) {
		if len(l.buf) >= MaxLine {
			l.eof, l.Err = true, syscall.ENOMEM
			return
		}
		grown := make([]byte, max(2*len(l.buf), 16<<10))
		copy(grown, l.buf[:l.end])
		l.buf = grown
	}
	n, err := l.r.Read(l.buf[l.end:])
	l.end += n
	if err != nil {
		l.eof = true
		if !errors.Is(err, io.EOF) {
			l.Err = err
		}
	}
}

// Rest returns what was read and not yet returned, then whatever the reader still holds.
func (l *Lines) Rest() io.Reader {
	b := l.buf[l.start:l.end]
	l.start = l.end
	return io.MultiReader(bytes.NewReader(b), l.r)
}

// Buffered returns how many bytes were read but not yet returned as lines.
func (l *Lines) Buffered() int { return l.end - l.start }

// Inputs calls f for each named file in turn, standard input if there is none, and reports those that can't be opened.
// f's error is reported with the file's name. It returns 0, or 1 if anything failed.
func (t *T) Inputs(names []string, f func(in *Input) error) (status int) {
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		in, err := t.Open(name)
		if err == nil {
			err = f(in)
			in.Close()
		}
		if err != nil {
			t.WarnFile(name, err)
			status = 1
		}
	}
	return status
}

// Copy copies r to Out in large pieces.
func (t *T) Copy(r io.Reader) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			t.Out.Write(buf[:n])
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
