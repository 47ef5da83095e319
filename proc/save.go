package proc

import (
	"agentrun.dev/vfs"
	"io"

	"agentrun.dev/errs"
)

// Save writes the image; errs.Unsupported if a program's state is no Saver. lasting completes the description of each open file
// so that it holds wherever the image is loaded: Lasting of a namespace of the same moment. nil leaves them as they are.
func (im *Image) Save(w io.Writer, lasting func(vfs.OpenFile) (vfs.OpenFile, error)) error {
	return errs.New(errs.Unsupported, "save image", "", nil)
}

// LoadImage reads what Save wrote; restore makes a program's state of what its Saver saved.
func LoadImage(r io.Reader, restore func(kind string, data []byte) (State, error)) (*Image, error) {
	return nil, errs.New(errs.Unsupported, "load image", "", nil)
}
