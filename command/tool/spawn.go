package tool

import (
	"bufio"
	"errors"
	"io"
	"syscall"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// Output runs a command and returns what it prints, at most limit bytes: more is ENOMEM.
func (t *T) Output(limit int64, args ...string) (out []byte, status int, err error) {
	r, w, err := t.Pipe()
	if err != nil {
		return nil, 0, err
	}
	defer r.Close()
	child, err := t.Spawn(proc.Spawn{Args: args, Files: map[int]vfs.File{1: w}})
	w.Close()
	if err != nil {
		return nil, 0, err
	}
	out, err = io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(out)) > limit {
		err = syscall.ENOMEM
	}
	if err != nil {
		t.Signal(child.Pid(), int(syscall.SIGTERM))
	}
	status, werr := t.Wait(child)
	if err == nil {
		err = werr
	}
	return out, status, err
}

// TempFile makes a new file in a directory, with random letters after the prefix.
func (t *T) TempFile(dir, prefix string, perm vfs.Mode) (name string, f vfs.File, err error) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	for range 100 {
		var b [6]byte
		if _, err := io.ReadFull(t.Rand(), b[:]); err != nil {
			return name, nil, err
		}
		for i := range b {
			b[i] = letters[int(b[i])%len(letters)]
		}
		name = prefix + string(b[:])
		if dir != "" && dir != "." {
			if dir[len(dir)-1] != '/' {
				dir += "/"
			}
			name = dir + name
		}
		f, err = t.Process.Open(name, syscall.O_RDWR|syscall.O_CREAT|syscall.O_EXCL, perm)
		if !errors.Is(err, syscall.EEXIST) {
			return name, f, err
		}
	}
	return name, nil, syscall.EEXIST
}

// FileWriter buffers writes to a file. Unlike Out, it returns errors.
type FileWriter struct {
	*bufio.Writer
	File vfs.File
}

// NewFileWriter returns a writer with a buffer of 64 KiB.
func NewFileWriter(f vfs.File) *FileWriter { return &FileWriter{bufio.NewWriterSize(f, 64<<10), f} }
