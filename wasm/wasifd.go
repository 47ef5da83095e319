package wasm

import (
	"encoding/binary"
	"errors"
	"io"
	"syscall"
	"time"

	"agentrun.dev/vfs"
)

func wasiFdFunctions() []hostFunc {
	return []hostFunc{
		{"fd_advise", "iIIi", "i", func(in *Instance, s []uint64) error { _, err := in.p.File(fd(s[0])); return err }, nil},
		{"fd_allocate", "iII", "i", fdAllocate, nil},
		{"fd_close", "i", "i", fdClose, nil},
		{"fd_datasync", "i", "i", fdSync, nil},
		{"fd_fdstat_get", "ii", "i", fdStat, nil},
		{"fd_fdstat_set_flags", "ii", "i", fdSetFlags, nil},
		{"fd_fdstat_set_rights", "iII", "i", func(in *Instance, s []uint64) error {
			if _, err := in.p.File(fd(s[0])); err != nil {
				return err
			}
			return syscall.ENOTSUP
		}, nil},
		{"fd_filestat_get", "ii", "i", func(in *Instance, s []uint64) error {
			f, err := in.p.File(fd(s[0]))
			if err != nil {
				return err
			}
			a, err := f.Attr()
			if err != nil {
				return err
			}
			return in.putFilestat(s[1], a)
		}, nil},
		{"fd_filestat_set_size", "iI", "i", func(in *Instance, s []uint64) error {
			size := int64(s[1])
			return in.setAttr(fd(s[0]), vfs.SetAttr{Size: &size})
		}, nil},
		{"fd_filestat_set_times", "iIIi", "i", func(in *Instance, s []uint64) error {
			set, err := setTimes(s[1], s[2], s[3])
			if err != nil {
				return err
			}
			return in.setAttr(fd(s[0]), set)
		}, nil},
		{"fd_pread", "iiiIi", "i", func(in *Instance, s []uint64) error { return in.readv(s, int64(s[3]), s[4]) }, nil},
		{"fd_prestat_get", "ii", "i", prestatGet, nil},
		{"fd_prestat_dir_name", "iii", "i", prestatName, nil},
		{"fd_pwrite", "iiiIi", "i", func(in *Instance, s []uint64) error { return in.writev(s, int64(s[3]), s[4]) }, nil},
		{"fd_read", "iiii", "i", func(in *Instance, s []uint64) error { return in.readv(s, -1, s[3]) }, nil},
		{"fd_readdir", "iiiIi", "i", fdReaddir, nil},
		{"fd_renumber", "ii", "i", fdRenumber, nil},
		{"fd_seek", "iIii", "i", fdSeek, nil},
		{"fd_sync", "i", "i", fdSync, nil},
		{"fd_tell", "ii", "i", func(in *Instance, s []uint64) error { return in.seek(fd(s[0]), 0, io.SeekCurrent, s[1]) }, nil},
		{"fd_write", "iiii", "i", func(in *Instance, s []uint64) error { return in.writev(s, -1, s[3]) }, nil},
	}
}

func (in *Instance) setAttr(fd int, set vfs.SetAttr) error {
	f, err := in.p.File(fd)
	if err != nil {
		return err
	}
	return f.SetAttr(set)
}

// fdAllocate makes a file at least as long as asked for. Space isn't reserved.
func fdAllocate(in *Instance, s []uint64) error {
	f, err := in.p.File(fd(s[0]))
	if err != nil {
		return err
	}
	a, err := f.Attr()
	end := s[1] + s[2]
	switch {
	case err != nil:
		return err
	case !a.Mode.IsRegular():
		return syscall.ENODEV
	case f.Flags()&syscall.O_ACCMODE == syscall.O_RDONLY:
		return syscall.EBADF
	case s[2] == 0 || end < s[1] || int64(end) < 0:
		return syscall.EINVAL
	case int64(end) <= a.Size:
		return nil
	}
	size := int64(end)
	return f.SetAttr(vfs.SetAttr{Size: &size})
}

func fdClose(in *Instance, s []uint64) error {
	n := fd(s[0])
	in.closing(n)
	in.host.closed(int32(n))
	return in.p.CloseFd(n)
}

// fdSync syncs. Pipes and terminals have nothing to sync: EINVAL, as Linux says.
func fdSync(in *Instance, s []uint64) error {
	f, err := in.p.File(fd(s[0]))
	if err != nil {
		return err
	}
	return in.waits(f.Sync)
}

// File types of WASI.
func fileType(m vfs.Mode) byte {
	switch m & vfs.ModeType {
	case vfs.ModeBlock:
		return 1
	case vfs.ModeChar:
		return 2
	case vfs.ModeDir:
		return 3
	case vfs.ModeRegular:
		return 4
	case vfs.ModeSocket:
		return 6
	case vfs.ModeSymlink:
		return 7
	}
	return 0 // unknown: pipes
}

// Rights and flags of WASI.
const (
	rightRead     = 1 << 1
	rightSeek     = 1 << 2
	rightTell     = 1 << 5
	rightWrite    = 1 << 6
	rightAllocate = 1 << 8
	rightReaddir  = 1 << 14
	rightSetSize  = 1 << 22
	allRights     = 1<<30 - 1

	flagAppend   = 1
	flagNonblock = 4
	flagSyncs    = 2 | 8 | 16 // DSYNC, RSYNC, SYNC
)

// fdStat tells type, flags and rights: as far as a descriptor has rights they are what it was opened for. The C library knows a terminal
// by being a character device that can't seek.
func fdStat(in *Instance, s []uint64) error {
	out, err := in.bytes(s[1], 24)
	if err != nil {
		return err
	}
	n := fd(s[0])
	f, err := in.p.File(n)
	if err != nil && n != rootFd {
		return err
	}
	clear(out)
	rights, kind, flags := uint64(allRights), byte(3), uint16(0)
	if err == nil {
		a, err := f.Attr()
		if err != nil {
			return err
		}
		kind = fileType(a.Mode)
		open := f.Flags()
		switch open & syscall.O_ACCMODE {
		case syscall.O_RDONLY:
			rights &^= rightWrite | rightAllocate | rightSetSize
		case syscall.O_WRONLY:
			rights &^= rightRead
		}
		if kind == 0 || in.p.IsTerminal(n) {
			rights &^= rightSeek | rightTell
		}
		if open&syscall.O_APPEND != 0 || in.host.appends[int32(n)] {
			flags |= flagAppend
		}
		if open&syscall.O_NONBLOCK != 0 || in.host.nonblock[int32(n)] {
			flags |= flagNonblock
		}
	}
	out[0] = kind
	binary.LittleEndian.PutUint16(out[2:], flags)
	binary.LittleEndian.PutUint64(out[8:], rights)
	binary.LittleEndian.PutUint64(out[16:], allRights) // openat asks the directory for what a file in it may get
	return nil
}

// fdSetFlags sets NONBLOCK and APPEND, for this process: other holders of the open file don't see it. Writes are synchronous where they can be.
func fdSetFlags(in *Instance, s []uint64) error {
	n := int32(fd(s[0]))
	f, err := in.p.File(int(n))
	switch {
	case err != nil:
		return err
	case uint32(s[1])&^(flagAppend|flagNonblock|flagSyncs) != 0:
		return syscall.EINVAL
	case s[1]&flagAppend == 0 && f.Flags()&syscall.O_APPEND != 0:
		return syscall.ENOTSUP
	}
	set := func(m *map[int32]bool, on bool) {
		if *m == nil {
			*m = make(map[int32]bool)
		}
		if delete(*m, n); on {
			(*m)[n] = true
		}
	}
	set(&in.host.nonblock, s[1]&flagNonblock != 0)
	set(&in.host.appends, s[1]&flagAppend != 0 && f.Flags()&syscall.O_APPEND == 0)
	return nil
}

// putFilestat writes a filestat: 64 bytes.
func (in *Instance) putFilestat(ptr uint64, a vfs.Attr) error {
	b, err := in.bytes(ptr, 64)
	if err != nil {
		return err
	}
	clear(b)
	le := binary.LittleEndian
	le.PutUint64(b, a.Dev)
	le.PutUint64(b[8:], uint64(a.Ino))
	b[16] = fileType(a.Mode)
	le.PutUint64(b[24:], uint64(a.Nlink))
	le.PutUint64(b[32:], uint64(a.Size))
	le.PutUint64(b[40:], unixNano(a.Atime))
	le.PutUint64(b[48:], unixNano(a.Mtime))
	le.PutUint64(b[56:], unixNano(a.Ctime))
	return nil
}

func unixNano(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.UnixNano())
}

// setTimes reads WASI's way of saying which times to set.
func setTimes(atim, mtim, flags uint64) (s vfs.SetAttr, err error) {
	if flags&3 == 3 || flags&12 == 12 || flags > 15 {
		return s, syscall.EINVAL
	}
	if flags&1 != 0 {
		t := time.Unix(0, int64(atim))
		s.Atime = &t
	}
	if flags&4 != 0 {
		t := time.Unix(0, int64(mtim))
		s.Mtime = &t
	}
	s.AtimeNow, s.MtimeNow = flags&2 != 0, flags&8 != 0
	return s, nil
}

const (
	maxIov    = 1024
	maxAtomic = 4096     // bytes that a pipe takes as a whole
	gatherN   = 64 << 10 // bytes up to which several buffers are read or written as one
)

// buffers returns what an array of iovecs names.
func (in *Instance) buffers(ptr, n uint64) (list [][]byte, total int, err error) {
	if uint32(n) > maxIov {
		return nil, 0, syscall.EINVAL
	}
	raw, err := in.bytes(ptr, 8*uint64(uint32(n)))
	if err != nil {
		return nil, 0, err
	}
	for ; len(raw) > 0; raw = raw[8:] {
		b, err := in.bytes(uint64(binary.LittleEndian.Uint32(raw)), uint64(binary.LittleEndian.Uint32(raw[4:])))
		if err != nil {
			return nil, 0, err
		}
		if total += len(b); total > 1<<31-1 {
			return nil, 0, syscall.EINVAL
		}
		if len(b) > 0 {
			list = append(list, b)
		}
	}
	return list, total, nil
}

// readv reads at an offset, or where the file stands if it is -1. It waits at most once.
func (in *Instance) readv(s []uint64, off int64, result uint64) error {
	n := fd(s[0])
	f, err := in.p.File(n)
	if err != nil {
		return err
	}
	list, total, err := in.buffers(s[1], s[2])
	if err != nil {
		return err
	}
	if in.host.nonblock[int32(n)] && off < 0 {
		if ok, err := in.readable(n); err != nil {
			return err
		} else if !ok {
			return syscall.EAGAIN
		}
	}
	var dst []byte
	switch {
	case len(list) == 1:
		dst = list[0]
	case len(list) > 1 && total <= gatherN:
		dst = make([]byte, total)
	case len(list) > 1:
		dst = list[0] // a short read is always allowed
		list = list[:1]
	}
	got := 0
	err = in.waits(func() (err error) {
		if off >= 0 {
			got, err = f.ReadAt(dst, off)
		} else {
			got, err = f.Read(dst)
		}
		return err
	})
	if err != nil && !errors.Is(err, io.EOF) && got == 0 {
		return err
	}
	if len(list) > 1 {
		rest := dst[:got]
		for _, b := range list {
			rest = rest[copy(b, rest):]
		}
	}
	return in.put32(result, uint32(got))
}

// writev writes at an offset, or where the file stands if it is -1.
func (in *Instance) writev(s []uint64, off int64, result uint64) error {
	n := fd(s[0])
	f, err := in.p.File(n)
	if err != nil {
		return err
	}
	list, total, err := in.buffers(s[1], s[2])
	if err != nil {
		return err
	}
	if len(list) > 1 && total <= gatherN { // one write, so that a line isn't torn
		all := make([]byte, 0, total)
		for _, b := range list {
			all = append(all, b...)
		}
		list = [][]byte{all}
	}
	if len(list) == 0 {
		list = [][]byte{nil}
	}
	if in.host.appends[int32(n)] && off < 0 {
		if _, err := f.Seek(0, io.SeekEnd); err != nil {
			return err
		}
	}
	if in.host.nonblock[int32(n)] && off < 0 {
		room, err := in.p.WriteRoom(n)
		switch {
		case err != nil:
			return err
		case room == 0 || room > 0 && room < len(list[0]) && len(list[0]) <= maxAtomic:
			return syscall.EAGAIN
		case room > 0:
			list = [][]byte{list[0][:min(room, len(list[0]))]}
		}
	}
	done := 0
	err = in.waits(func() error {
		for _, b := range list {
			var k int
			var err error
			if off >= 0 {
				k, err = f.WriteAt(b, off+int64(done))
			} else {
				k, err = f.Write(b)
			}
			if done += k; err != nil || k < len(b) {
				return err
			}
		}
		return nil
	})
	if err != nil && done == 0 {
		return err
	}
	return in.put32(result, uint32(done))
}

func fdSeek(in *Instance, s []uint64) error {
	if uint32(s[2]) > 2 {
		return syscall.EINVAL
	}
	return in.seek(fd(s[0]), int64(s[1]), int(uint32(s[2])), s[3])
}

func (in *Instance) seek(n int, off int64, whence int, result uint64) error {
	f, err := in.p.File(n)
	if err != nil {
		return err
	}
	at, err := f.Seek(off, whence)
	if err != nil {
		return err
	}
	return in.put64(result, uint64(at))
}

// fdRenumber makes to what from is, and closes from.
func fdRenumber(in *Instance, s []uint64) error {
	from, to := fd(s[0]), fd(s[1])
	if _, err := in.p.File(to); err != nil && to != rootFd {
		return err
	}
	if err := in.p.Dup2(from, to); err != nil || from == to {
		return err
	}
	in.host.closed(int32(from))
	in.host.closed(int32(to))
	return in.p.CloseFd(from)
}

// rootFd is the directory "/" for path functions of WASI, whatever descriptor 3 is for others.
const rootFd = 3

func prestatGet(in *Instance, s []uint64) error {
	if fd(s[0]) != rootFd {
		return syscall.EBADF
	}
	return in.put64(s[1], 1<<32) // a directory, with a name of one byte
}

func prestatName(in *Instance, s []uint64) error {
	if fd(s[0]) != rootFd {
		return syscall.EBADF
	}
	if uint32(s[2]) < 1 {
		return syscall.ENAMETOOLONG
	}
	b, err := in.bytes(s[1], 1)
	copy(b, "/")
	return err
}
