package agent

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
)

// maxWatches is how many folders one watch may cover.
const maxWatches = 8192

const watched = unix.IN_CREATE | unix.IN_CLOSE_WRITE | unix.IN_MODIFY | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

// watcher tells of changes below a path by inotify(7).
type watcher struct {
	s     *wire.Stream
	file  *os.File
	fd    int
	all   bool
	paths map[int32]string
	part  wire.Events
	room  int
}

// watch tells of changes until the host gives up.
func watch(s *wire.Stream, path string, all bool) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return errs.New(errs.Limit, "watch", path, err)
	}
	w := &watcher{s: s, file: os.NewFile(uintptr(fd), "inotify"), fd: fd, all: all, paths: make(map[int32]string), room: wire.MaxMessage}
	defer w.file.Close()
	if err := w.add(path, false); err != nil {
		return err
	}
	if err := s.Message(struct{}{}); err != nil {
		return err
	}
	over := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-s.Done():
		case <-over:
		}
		w.file.Close()
	}()
	defer func() { close(over); <-ended }()
	buf := make([]byte, 64<<10)
	for {
		n, err := w.file.Read(buf)
		if err != nil {
			if stopped := s.Stopped(); stopped != nil {
				return stopped
			}
			return err
		}
		if err := w.events(buf[:n]); err != nil {
			return err
		}
		if len(w.paths) == 0 { // what was watched is gone
			return nil
		}
	}
}

// add watches a path, and the folders below it if all are wanted. found says that what is in them already is new.
func (w *watcher) add(path string, found bool) error {
	wd, err := unix.InotifyAddWatch(w.fd, path, watched)
	if err != nil {
		if errors.Is(err, unix.ENOSPC) {
			return errs.New(errs.Limit, "watch", path, err)
		}
		return err
	}
	w.paths[int32(wd)] = path
	if len(w.paths) > maxWatches {
		return errs.Msg(errs.Limit, "watch", path, "more than 8192 folders")
	}
	if !w.all {
		return nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil // no folder, or gone
	}
	for _, e := range entries {
		sub := filepath.Join(path, e.Name())
		if found {
			if err := w.tell("create", sub); err != nil {
				return err
			}
		}
		if !e.IsDir() {
			continue
		}
		if err := w.add(sub, found); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// events decodes what inotify says: wd, mask, cookie and length of the name, 32 bits each.
func (w *watcher) events(b []byte) error {
	for len(b) >= unix.SizeofInotifyEvent {
		wd, mask, size := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:]), int(binary.NativeEndian.Uint32(b[12:]))
		name := strings.TrimRight(string(b[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+size]), "\x00")
		b = b[unix.SizeofInotifyEvent+size:]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			if err := w.tell("overflow", "/"); err != nil {
				return err
			}
			continue
		}
		dir, ok := w.paths[wd]
		if !ok {
			continue
		}
		if mask&unix.IN_IGNORED != 0 {
			delete(w.paths, wd)
			continue
		}
		path := filepath.Join(dir, name)
		for _, op := range []struct {
			mask uint32
			name string
		}{{unix.IN_CREATE | unix.IN_MOVED_TO, "create"}, {unix.IN_MODIFY | unix.IN_CLOSE_WRITE, "write"}, {unix.IN_DELETE | unix.IN_DELETE_SELF, "remove"},
			{unix.IN_MOVED_FROM | unix.IN_MOVE_SELF, "rename"}, {unix.IN_ATTRIB, "chmod"}} {
			if mask&op.mask != 0 {
				if err := w.tell(op.name, path); err != nil {
					return err
				}
			}
		}
		if w.all && mask&unix.IN_ISDIR != 0 && mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0 {
			if err := w.add(path, mask&unix.IN_CREATE != 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return w.flush()
}

func (w *watcher) tell(op, path string) error {
	size := 50 + 6*len(path)
	if size > w.room {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.room -= size
	w.part.Events = append(w.part.Events, wire.Event{Op: op, Path: wire.Text(path)})
	return nil
}

func (w *watcher) flush() error {
	if len(w.part.Events) == 0 {
		return nil
	}
	err := w.s.Message(w.part)
	w.part, w.room = wire.Events{}, wire.MaxMessage
	return err
}
