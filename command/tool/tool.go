// Package tool is what commands are made of: a process with buffered output, GNU's messages, quoting and numbers.
//
// A command is a Func on a T. A T is the command's process plus a buffered standard output. A command ends by
// returning its exit status, or from any depth by Exit or Fatal, which unwind to the Func's Run. The streams of a T
// unwind too: when nobody reads the output any more, when it can't be written, and when the process is killed. So
// loops that read or write through a T need no checks of their own; those that only compute call Check.
package tool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"agentrun.dev/command/datetime"
	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// Func is a command; it returns the exit status.
type Func func(t *T) int

// T is a running command. It belongs to one goroutine.
type T struct {
	*proc.Process
	Name string        // as messages begin: Args()[0]
	Out  *bufio.Writer // standard output; its methods never fail, see the package comment
	fail int           // exit status after a write error
	in   *stdin
}

// outBuffer is small, since most commands write a line or two; bulk data is written in pieces of its own size.
const outBuffer = 4096

// unwind carries an exit status from Exit to Run.
type unwind struct{ status int }

// Run implements proc.Program.
func (f Func) Run(p *proc.Process) (status int) {
	args := p.Args()
	if len(args) == 0 {
		return 127 // nothing that a command could do without its name
	}
	t := &T{Process: p, Name: args[0], fail: 1}
	t.Out = bufio.NewWriterSize(stdout{t}, outBuffer)
	defer func() {
		if r := recover(); r != nil {
			u, ok := r.(unwind)
			if !ok {
				panic(r) // a defect, which proc reports
			}
			status = u.status
		}
	}()
	return t.run(f)
}

// run flushes the output after f, however f ends.
func (t *T) run(f Func) (status int) {
	func() {
		defer func() {
			if r := recover(); r != nil {
				u, ok := r.(unwind)
				if !ok {
					panic(r)
				}
				status = u.status
			}
		}()
		status = f(t)
	}()
	t.Out.Flush()
	return status
}

// stdout is what Out writes to. It unwinds instead of returning errors.
type stdout struct{ t *T }

func (s stdout) Write(p []byte) (int, error) {
	s.t.Check()
	n, err := s.t.Stdout().Write(p)
	if err != nil {
		s.t.WriteFailed(err)
	}
	return n, nil
}

// WriteFailed ends the command because standard output can't be written: quietly if nobody reads it.
func (t *T) WriteFailed(err error) {
	t.Out = bufio.NewWriterSize(io.Discard, 16) // what is buffered is lost, and must not be tried again
	if errors.Is(err, syscall.EPIPE) || t.Context().Err() != nil {
		panic(unwind{128 + int(syscall.SIGPIPE)})
	}
	fmt.Fprintf(t.Stderr(), "%s: write error: %s\n", t.Name, Strerror(err))
	panic(unwind{t.fail})
}

// FailStatus sets the exit status after a write error; it is 1 at first.
func (t *T) FailStatus(status int) { t.fail = status }

// Check unwinds when the process has been killed.
func (t *T) Check() {
	t.Share()
	if t.Context().Err() != nil {
		t.Out = bufio.NewWriterSize(io.Discard, 16)
		panic(unwind{128 + int(syscall.SIGKILL)})
	}
}

// Exit ends the command. What is in Out is written.
func (t *T) Exit(status int) { panic(unwind{status}) }

// Warn writes a message to standard error, after the command's name and what Out holds so far.
func (t *T) Warn(format string, args ...any) {
	t.Out.Flush()
	fmt.Fprintf(t.Stderr(), "%s: %s\n", t.Name, fmt.Sprintf(format, args...))
}

// WarnFile reports that a file's operation failed: "cat: nope: No such file or directory".
func (t *T) WarnFile(name string, err error) { t.Warn("%s: %s", QuoteF(name), Strerror(err)) }

// Fatal writes a message and ends the command.
func (t *T) Fatal(status int, format string, args ...any) {
	t.Warn(format, args...)
	t.Exit(status)
}

// Try ends the command after a mistake in its arguments, pointing to --help.
func (t *T) Try(status int) {
	t.Out.Flush()
	fmt.Fprintf(t.Stderr(), "Try '%s --help' for more information.\n", t.Name)
	t.Exit(status)
}

// UsageError writes a message about the arguments and ends the command.
func (t *T) UsageError(status int, format string, args ...any) {
	t.Warn(format, args...)
	t.Try(status)
}

// Strerror words an error as the C library does, without any path. What is no system error keeps its own words.
func Strerror(err error) string {
	var n syscall.Errno
	var typed *errs.Error
	switch {
	case errors.As(err, &n), errors.As(err, &typed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return vfs.Strerror(err)
	}
	return err.Error()
}

// IsNotExist reports whether a path doesn't exist, by whatever component.
func IsNotExist(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR)
}

// ReadFile reads a whole file of at most limit bytes; a larger one is EFBIG.
func (t *T) ReadFile(name string, limit int64) ([]byte, error) {
	in, err := t.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = syscall.EFBIG
	}
	return b, err
}

// Create opens a file for writing, emptied.
func (t *T) Create(name string) (vfs.File, error) {
	return t.Process.Open(name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC, 0o666)
}

// zoneLimit bounds a time zone file.
const zoneLimit = 1 << 20

// Zone returns the time zone that a TZ value names, as the sandbox has it.
func (t *T) Zone(tz string) *time.Location {
	return datetime.Location(tz, func(path string) ([]byte, error) { return t.ReadFile(path, zoneLimit) })
}

// ParseDate reads a date as GNU's parse_datetime does, relative to now.
func (t *T) ParseDate(s string, now time.Time) (time.Time, error) {
	return datetime.Parse(s, now, t.Zone)
}

// Append opens a file for writing at its end; it is made if it doesn't exist.
func (t *T) Append(name string) (vfs.File, error) {
	return t.Process.Open(name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_APPEND, 0o666)
}
