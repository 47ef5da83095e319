package wasm

import (
	"encoding/binary"
	"math"
	"strings"
	"syscall"

	"agentrun.dev/vfs"
)

func wasiPathFunctions() []hostFunc {
	return []hostFunc{
		{"path_create_directory", "iii", "i", func(in *Instance, s []uint64) error {
			name, err := in.path(s[0], s[1], s[2], true)
			if err != nil {
				return err
			}
			return in.p.Mkdir(name, 0o777)
		}, nil},
		{"path_filestat_get", "iiiii", "i", func(in *Instance, s []uint64) error {
			name, err := in.path(s[0], s[2], s[3], false)
			if err != nil {
				return err
			}
			stat := in.p.Lstat
			if s[1]&1 != 0 {
				stat = in.p.Stat
			}
			a, err := stat(name)
			if err != nil {
				return err
			}
			return in.putFilestat(s[4], a)
		}, nil},
		{"path_filestat_set_times", "iiiiIIi", "i", func(in *Instance, s []uint64) error {
			name, err := in.path(s[0], s[2], s[3], false)
			if err != nil {
				return err
			}
			set, err := setTimes(s[4], s[5], s[6])
			if err != nil {
				return err
			}
			return in.p.SetAttr(name, set, s[1]&1 != 0)
		}, nil},
		{"path_link", "iiiiiii", "i", func(in *Instance, s []uint64) error {
			from, err := in.path(s[0], s[2], s[3], false)
			if err != nil {
				return err
			}
			to, err := in.path(s[4], s[5], s[6], true)
			if err == nil && s[1]&1 != 0 {
				from, err = in.p.Realpath(from)
			}
			if err != nil {
				return err
			}
			return in.p.Link(from, to)
		}, nil},
		{"path_open", "iiiiiIIii", "i", pathOpen, nil},
		{"path_readlink", "iiiiii", "i", func(in *Instance, s []uint64) error {
			name, err := in.path(s[0], s[1], s[2], false)
			if err != nil {
				return err
			}
			target, err := in.p.Readlink(name)
			if err != nil {
				return err
			}
			b, err := in.bytes(s[3], uint64(min(uint32(s[4]), uint32(len(target)))))
			if err != nil {
				return err
			}
			return in.put32(s[5], uint32(copy(b, target)))
		}, nil},
		{"path_remove_directory", "iii", "i", func(in *Instance, s []uint64) error {
			name, err := in.path(s[0], s[1], s[2], false)
			if err != nil {
				return err
			}
			return in.p.Rmdir(name)
		}, nil},
		{"path_rename", "iiiiii", "i", func(in *Instance, s []uint64) error {
			from, err := in.path(s[0], s[1], s[2], false)
			if err != nil {
				return err
			}
			to, err := in.path(s[3], s[4], s[5], true)
			if err != nil {
				return err
			}
			return in.p.Rename(from, to, 0)
		}, nil},
		{"path_symlink", "iiiii", "i", func(in *Instance, s []uint64) error {
			target, err := in.text(s[0], s[1])
			if err != nil {
				return err
			}
			name, err := in.path(s[2], s[3], s[4], true)
			if err != nil {
				return err
			}
			return in.p.Symlink(target, name)
		}, nil},
		{"path_unlink_file", "iii", "i", func(in *Instance, s []uint64) error {
			name, err := in.path(s[0], s[1], s[2], false)
			if err != nil {
				return err
			}
			return in.p.Unlink(name)
		}, nil},
	}
}

// Flags of path_open.
const (
	openCreate    = 1
	openDirectory = 2
	openExclusive = 4
	openTruncate  = 8
)

func pathOpen(in *Instance, s []uint64) error {
	follow, oflags, rights, fdflags := s[1]&1 != 0, uint32(s[4]), s[5], uint32(s[7])
	name, err := in.path(s[0], s[2], s[3], oflags&openCreate != 0)
	if err != nil {
		return err
	}
	flags := 0
	switch w := rights&(rightWrite|rightAllocate|rightSetSize) != 0; {
	case !w:
	case rights&rightRead != 0:
		flags = syscall.O_RDWR
	default:
		flags = syscall.O_WRONLY
	}
	for _, f := range []struct {
		set  bool
		flag int
	}{
		{oflags&openCreate != 0, syscall.O_CREAT}, {oflags&openExclusive != 0, syscall.O_EXCL}, {oflags&openTruncate != 0, syscall.O_TRUNC},
		{fdflags&flagAppend != 0, syscall.O_APPEND}, {fdflags&flagNonblock != 0, syscall.O_NONBLOCK}, {!follow, syscall.O_NOFOLLOW},
	} {
		if f.set {
			flags |= f.flag
		}
	}
	if oflags&openDirectory != 0 {
		flags = flags&^syscall.O_ACCMODE | syscall.O_DIRECTORY // whatever rights are asked for
	}
	n, err := in.open(name, flags, 0o666, rootFd+1)
	if err != nil {
		return err
	}
	if fdflags&flagNonblock != 0 {
		fdSetFlags(in, []uint64{uint64(n), uint64(fdflags & (flagAppend | flagNonblock))})
	}
	return in.put32(s[8], uint32(n))
}

// open opens a file at the lowest free descriptor from lowest on.
func (in *Instance) open(name string, flags int, mode vfs.Mode, lowest int) (n int, err error) {
	var f vfs.File
	err = in.waits(func() error {
		f, err = in.p.Open(name, flags, mode)
		return err
	})
	if err != nil {
		return -1, err
	}
	n = in.p.Fd(f)
	if n < lowest {
		defer f.Close()
		if n, err = in.p.Dup(n, lowest, true); err != nil {
			return -1, err
		}
	}
	in.host.closed(int32(n))
	return n, nil
}

// path reads a path of WASI, relative to a directory's descriptor. creates tells that its last name needn't exist.
func (in *Instance) path(dir, ptr, n uint64, creates bool) (string, error) {
	name, err := in.text(ptr, n)
	switch {
	case err != nil:
		return "", err
	case strings.IndexByte(name, 0) >= 0:
		return "", syscall.EINVAL
	case name == "":
		return "", syscall.ENOENT
	}
	if fd(dir) == rootFd {
		if in.cfg.GuessPaths && name[0] != '/' {
			return in.resolve(name, ptr, creates), nil
		}
		return join("/", name), nil
	}
	return in.beneath(fd(dir), name)
}

// beneath returns a path relative to a directory's descriptor.
func (in *Instance) beneath(dir int, name string) (string, error) {
	f, err := in.p.File(dir)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(name, "/") {
		return name, nil
	}
	a, err := f.Attr()
	if err != nil {
		return "", err
	}
	if !a.Mode.IsDir() {
		return "", syscall.ENOTDIR
	}
	d, ok := f.(interface{ Path() string })
	if !ok {
		return "", syscall.ENOTDIR
	}
	return join(d.Path(), name), nil
}

// join doesn't clean: what ".." leads to depends on symbolic links.
func join(dir, name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return strings.TrimSuffix(dir, "/") + "/" + name
}

// resolve tells what a path means that the C library has looked up in its only preopened directory, "/". It takes leading slashes off first, so
// that "/etc/hosts" and "etc/hosts" arrive alike, but it passes a pointer into the program's own string: before an absolute path's first letter there
// is a slash in memory. Where the library copied the path (chdir is linked in) there isn't, and by chance there may be one before a relative path; so
// the other reading counts where the likelier one's first name doesn't exist and the other's does. A path of one name that may be created
// is taken as it looks.
func (in *Instance) resolve(name string, ptr uint64, creates bool) string {
	absolute, relative := "/"+name, name
	if in.p.Getwd() == "/" || name == "." && ptr == 0 {
		return absolute
	}
	likely, other := relative, absolute
	if b := in.mem.at(uint32(ptr)-1, 1); ptr > 0 && b != nil && b[0] == '/' {
		likely, other = absolute, relative
	}
	first, _, more := strings.Cut(name, "/")
	if !more && creates || first == "." || first == ".." {
		return likely
	}
	exists := func(path string) bool {
		if path == absolute {
			first = "/" + first
		}
		_, err := in.p.Lstat(first)
		return err == nil
	}
	head := first
	if exists(likely) {
		return likely
	}
	first = head
	if exists(other) {
		return other
	}
	return likely
}

// listing is a directory as it was when reading it began.
type listing struct {
	entries []vfs.DirEntry
}

// fdReaddir writes entries from a cookie on, which is an entry's number; the last one may be cut off.
func fdReaddir(in *Instance, s []uint64) error {
	n := int32(fd(s[0]))
	buf, err := in.bytes(s[1], s[2])
	if err != nil {
		return err
	}
	l, err := in.list(n, s[3] == 0)
	if err != nil {
		return err
	}
	used := 0
	for i := s[3]; i < uint64(len(l.entries)) && used < len(buf); i++ {
		e := l.entries[i]
		var head [24]byte
		binary.LittleEndian.PutUint64(head[:], i+1)
		binary.LittleEndian.PutUint64(head[8:], uint64(e.Ino))
		binary.LittleEndian.PutUint32(head[16:], uint32(min(len(e.Name), math.MaxInt32)))
		head[20] = fileType(e.Mode)
		used += copy(buf[used:], head[:])
		used += copy(buf[used:], e.Name)
	}
	return in.put32(s[4], uint32(used))
}

// list reads a directory, afresh or as it was.
func (in *Instance) list(n int32, fresh bool) (*listing, error) {
	f, err := in.p.File(int(n))
	if err != nil {
		return nil, err
	}
	if l := in.host.dirs[n]; l != nil && !fresh {
		return l, nil
	}
	entries, err := f.ReadDir()
	if err != nil {
		return nil, err
	}
	a, err := f.Attr()
	if err != nil {
		return nil, err
	}
	dots := []vfs.DirEntry{{Name: ".", Ino: a.Ino, Mode: vfs.ModeDir}, {Name: "..", Ino: a.Ino, Mode: vfs.ModeDir}}
	l := &listing{append(dots, entries...)}
	if in.host.dirs == nil {
		in.host.dirs = make(map[int32]*listing)
	}
	if len(in.host.dirs) >= maxListings {
		clear(in.host.dirs) // they are read again, from where the cookie says
	}
	in.host.dirs[n] = l
	return l, nil
}

const maxListings = 64
