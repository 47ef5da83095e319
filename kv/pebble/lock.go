package pebble

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"agentrun.dev/errs"
)

// holderName is the file that says who has the directory. It only informs: the lock itself is the
// kernel's, which drops it with its process.
const holderName = "LOCK.holder"

// holderMax bounds what is read of it, since anybody may have written there.
const holderMax = 256

// dirLock is the exclusive right to a directory. The store holds it instead of Pebble, because a poisoned Pebble can't
// be relied on to give it back; the name is the one that Pebble's own tools lock.
type dirLock struct {
	lock io.Closer
	fs   vfs.FS
	file string
}

const lockName = "LOCK"

// lockDir takes the lock or says who has it.
func lockDir(fs vfs.FS, dir string) (*dirLock, error) {
	file := fs.PathJoin(dir, holderName)
	lock, err := fs.Lock(fs.PathJoin(dir, lockName))
	if err != nil {
		// Within a process it is the file system's own table that refuses, with a text only.
		if !errors.Is(err, syscall.EAGAIN) && !strings.Contains(err.Error(), "held by current process") {
			return nil, openError(dir, err)
		}
		who := readHolder(fs, file)
		if who == "" {
			who = "another process"
		}
		return nil, errs.Msg(errs.Unavailable, "open", dir, "in use by "+who).
			WithHint("stop the process that holds it, or give another directory")
	}
	l := &dirLock{lock: lock, fs: fs, file: file}
	// A holder that can't be written costs a worse message later, not the store.
	_ = writeHolder(fs, file)
	return l, nil
}

// Close gives the lock back.
func (l *dirLock) Close() error {
	_ = l.fs.Remove(l.file) // first: afterwards the file may be another's
	return l.lock.Close()
}

func writeHolder(fs vfs.FS, file string) error {
	f, err := fs.Create(file, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "process %d (%s) since %s\n", os.Getpid(), filepath.Base(os.Args[0]), time.Now().UTC().Format(time.RFC3339))
	return errors.Join(err, f.Close())
}

func readHolder(fs vfs.FS, file string) string {
	f, err := fs.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, holderMax))
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, line)
}
