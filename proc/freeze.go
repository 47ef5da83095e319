package proc

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

// FreezeOptions say what happens to processes that can't rest in time.
type FreezeOptions struct {
	// Kill leaves them out of the image, where their parents see status 137; here they go on. Without it Freeze fails with
	// a *BusyError, and nothing has changed.
	Kill bool
}

// BusyError names the processes that couldn't rest in time. It is of the kind errs.Unavailable.
type BusyError struct {
	Pids  []int
	Names []string // of the commands, in the order of Pids
}

func (e *BusyError) Error() string {
	var b strings.Builder
	for i, pid := range e.Pids {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d (%s)", pid, e.Names[i])
	}
	return "freeze: processes can't rest: " + b.String()
}

// Unwrap makes errs.KindOf tell errs.Unavailable.
func (e *BusyError) Unwrap() error {
	return errs.Msg(errs.Unavailable, "freeze", "", "processes can't rest")
}

// Frozen is a sandbox in which nothing moves.
type Frozen struct{ s *Sandbox }

// Freeze stops the sandbox with every process at rest. ctx's deadline bounds how long it waits for that.
func (s *Sandbox) Freeze(ctx context.Context, o FreezeOptions) (*Frozen, error) {
	return nil, errs.New(errs.Unsupported, "freeze", "", nil)
}

// Capture copies processes, descriptors, the bytes in pipes, terminals, signals, offsets and used-up limits.
func (f *Frozen) Capture() (*Image, error) {
	return nil, errs.New(errs.Unsupported, "capture", "", nil)
}

// Thaw lets the sandbox go on.
func (f *Frozen) Thaw() {}

// Image is what a sandbox was at a moment, without its files. It never changes: any number of sandboxes start from it.
type Image struct{}

// StartOptions say in what an image goes on. Namespace and Commands are required.
type StartOptions struct {
	Namespace *vfs.Namespace // a clone of the frozen one
	Commands  Commands
	Services  any
	Load      func(p *Process, file string, head []byte) (Program, bool)
	Hostname  string           // the image's when empty
	Clock     func() time.Time // time.Now when nil
	Rand      io.Reader        // the system's generator when nil
}

// Start makes a running sandbox of an image. It may be called any number of times, concurrently.
func (im *Image) Start(o StartOptions) (*Sandbox, error) {
	return nil, errs.New(errs.Unsupported, "start", "", nil)
}

// Save writes the image; errs.Unsupported if a program's state is no Saver.
func (im *Image) Save(w io.Writer) error { return errs.New(errs.Unsupported, "save image", "", nil) }

// LoadImage reads what Save wrote; restore makes a program's state of what its Saver saved.
func LoadImage(r io.Reader, restore func(kind string, data []byte) (State, error)) (*Image, error) {
	return nil, errs.New(errs.Unsupported, "load image", "", nil)
}

// Close lets go of the states of programs.
func (im *Image) Close() error { return nil }
