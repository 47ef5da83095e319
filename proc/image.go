package proc

import (
	"io"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

// Capture copies processes, descriptors, the bytes in pipes, terminals, signals, offsets and used-up limits.
func (f *Frozen) Capture() (*Image, error) { return nil, errs.New(errs.Unsupported, "capture", "", nil) }

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
