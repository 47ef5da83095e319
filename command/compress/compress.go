// Package compress is gzip, bzip2, xz and zstd with their companions (gunzip, zcat, bunzip2, bzcat, unxz, xzcat, lzma,
// unlzma, lzcat, unzstd, zstdcat, zgrep and its kin), as gzip 1.12, bzip2 1.0.8, xz 5.4 and zstd 1.5.4.
//
// Each tool has its own words for the same work: compress or decompress each file into one with another suffix, which
// replaces it. A job is one input; a target is a file being made, which is removed again if the work fails. Data is
// streamed, in memory that doesn't depend on the input.
package compress

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"syscall"

	"agentrun.dev/command/codec"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// target is a file being made.
type target struct {
	t    *tool.T
	name string
	f    vfs.File
	w    *bufio.Writer
	n    int64
	err  error
}

// create makes a file that mustn't exist, or replaces what is there.
func create(t *tool.T, name string, force bool) (*target, error) {
	if force {
		if err := t.Unlink(name); err != nil && !tool.IsNotExist(err) {
			return nil, err
		}
	}
	f, err := t.Process.Open(name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	o := &target{t: t, name: name, f: f}
	o.w = bufio.NewWriterSize(f, 64<<10)
	return o, nil
}

// Write implements io.Writer.
func (o *target) Write(p []byte) (int, error) {
	o.t.Check()
	n, err := o.w.Write(p)
	o.n += int64(n)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

// finish gives the file the attributes of the one it was made from.
func (o *target) finish(a *vfs.Attr) error {
	err := o.w.Flush()
	if err == nil && a != nil {
		mode, uid, gid := a.Mode&0o7777, a.UID, a.GID
		if o.t.Cred().UID == 0 {
			o.f.SetAttr(vfs.SetAttr{UID: &uid, GID: &gid})
		}
		o.f.SetAttr(vfs.SetAttr{Mode: &mode})
		at, mt := a.Atime, a.Mtime
		o.f.SetAttr(vfs.SetAttr{Atime: &at, Mtime: &mt})
	}
	if cerr := o.f.Close(); err == nil {
		err = cerr
	}
	return err
}

// abandon removes the file.
func (o *target) abandon() {
	o.f.Close()
	o.t.Unlink(o.name)
}

// outWriter is standard output as a writer that counts.
type outWriter struct {
	t *tool.T
	n int64
}

func (o *outWriter) Write(p []byte) (int, error) {
	o.n += int64(len(p))
	return o.t.Out.Write(p)
}

// pump copies, charging the process for the work.
func pump(t *tool.T, w io.Writer, r io.Reader) (n int64, err error) {
	buf := make([]byte, 64<<10)
	for {
		m, err := r.Read(buf)
		if m > 0 {
			n += int64(m)
			if t.Step(1+m/256) != nil {
				t.Check()
			}
			if _, werr := w.Write(buf[:m]); werr != nil {
				return n, &writeError{werr}
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return n, nil
			}
			return n, err
		}
	}
}

// writeError tells a failed write from a failed read.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// base is a path's last component.
func base(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// program is the name that messages begin with: that of the main tool, since its companions are scripts or links.
func program(t *tool.T, name string) { t.Name = name }

// sniff opens a reader for whatever format a stream has; plain data passes.
func sniff(in io.Reader, only ...codec.Format) (io.ReadCloser, codec.Format, error) {
	c := codec.NewCounter(in)
	head, err := c.Peek(codec.HeadSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, codec.None, err
	}
	f := codec.Detect(head)
	if len(only) > 0 {
		ok := false
		for _, o := range only {
			ok = ok || f == o
		}
		if !ok {
			f = codec.None
		}
	}
	r, err := codec.NewReader(f, c)
	return r, f, err
}
