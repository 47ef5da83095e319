package proc

import (
	"io"

	"agentrun.dev/errs"
)

// Save writes the image; errs.Unsupported if a program's state is no Saver.
func (im *Image) Save(w io.Writer) error { return errs.New(errs.Unsupported, "save image", "", nil) }

// LoadImage reads what Save wrote; restore makes a program's state of what its Saver saved.
func LoadImage(r io.Reader, restore func(kind string, data []byte) (State, error)) (*Image, error) {
	return nil, errs.New(errs.Unsupported, "load image", "", nil)
}
