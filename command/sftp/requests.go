package sftp

import (
	"errors"
	"io"
	"path"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/vfs"
)

// Flags of OPEN.
const (
	openRead   = 1
	openWrite  = 2
	openAppend = 4
	openCreate = 8
	openTrunc  = 16
	openExcl   = 32
)

// answer makes the answer to one packet in s.out. False means that this isn't SFTP.
func (s *server) answer(packet []byte) bool {
	typ, r := packet[0], &request{b: packet[1:]}
	if !s.version {
		if typ != fxpInit {
			return false
		}
		s.version = true
		s.hello()
		return true
	}
	id := r.uint32()
	if r.bad {
		return false
	}
	if err := s.serve(typ, id, r); err != nil || len(s.out) == 0 {
		s.status(id, err)
	}
	return true
}

// hello answers INIT with the extensions.
func (s *server) hello() {
	s.begin(fxpVersion, 3)
	for _, e := range extensions {
		s.string(e.name)
		s.string(e.version)
	}
}

// serve does what a request asks for, and answers it unless that is only how it went.
func (s *server) serve(typ byte, id uint32, r *request) error {
	s.out = s.out[:0]
	switch typ {
	case fxpOpen:
		return s.openFile(id, r)
	case fxpClose:
		return s.close(r)
	case fxpRead:
		return s.read(id, r)
	case fxpWrite:
		return s.write(r)
	case fxpLstat:
		return s.stat(id, r, s.t.Lstat)
	case fxpStat:
		return s.stat(id, r, s.t.Stat)
	case fxpFstat:
		return s.fstat(id, r)
	case fxpSetstat:
		return s.setstat(r, true)
	case fxpFsetstat:
		return s.fsetstat(r)
	case fxpOpendir:
		return s.opendir(id, r)
	case fxpReaddir:
		return s.readdir(id, r)
	case fxpRealpath:
		return s.realpath(id, r, func(p string) string { return p })
	case fxpReadlink:
		return s.readlink(id, r)
	case fxpExtended:
		return s.extended(id, r)
	}
	return s.change(typ, r)
}

// change serves the requests that change names.
func (s *server) change(typ byte, r *request) error {
	name, other, a := r.string(), "", attrs{}
	switch typ {
	case fxpMkdir:
		a = r.attrs()
	case fxpRename, fxpSymlink:
		other = r.string()
	case fxpRemove, fxpRmdir:
	default:
		return errUnsupported
	}
	if r.bad {
		return errShort
	}
	if s.readOnly {
		return errReadOnly
	}
	switch typ {
	case fxpMkdir:
		return s.t.Mkdir(name, a.perm(0o777))
	case fxpRename: // version 3 replaces nothing; there is an extension for that
		return s.t.Rename(name, other, vfs.RenameNoReplace)
	case fxpSymlink: // OpenSSH has the target first, the draft has it last: clients do as OpenSSH
		return s.t.Symlink(name, other)
	case fxpRemove:
		return s.t.Unlink(name)
	}
	return s.t.Rmdir(name)
}

func (s *server) openFile(id uint32, r *request) error {
	name, asked, a := r.string(), r.uint32(), r.attrs()
	if r.bad {
		return errShort
	}
	var flags int
	switch asked & (openRead | openWrite) {
	case openRead | openWrite:
		flags = syscall.O_RDWR
	case openWrite:
		flags = syscall.O_WRONLY
	}
	for _, f := range [][2]int{{openAppend, syscall.O_APPEND}, {openCreate, syscall.O_CREAT}, {openTrunc, syscall.O_TRUNC}, {openExcl, syscall.O_EXCL}} {
		if asked&uint32(f[0]) != 0 {
			flags |= f[1]
		}
	}
	if s.readOnly && flags != syscall.O_RDONLY {
		return errReadOnly
	}
	if err := s.full(); err != nil {
		return err
	}
	f, err := s.t.Process.Open(name, flags, a.perm(0o666))
	if err != nil {
		return err
	}
	s.open(id, &handle{name: name, file: f, flags: flags})
	return nil
}

func (s *server) close(r *request) error {
	b := r.string()
	h, err := s.handle(b)
	if err != nil {
		return err
	}
	for n, other := range s.handles {
		if other == h {
			delete(s.handles, n)
		}
	}
	return h.file.Close()
}

func (s *server) read(id uint32, r *request) error {
	b, off, n := r.string(), r.uint64(), r.uint32()
	if r.bad {
		return errShort
	}
	h, err := s.fileHandle(b)
	if err != nil {
		return err
	}
	if off > 1<<62 {
		return io.EOF
	}
	s.begin(fxpData, id)
	at := len(s.out) + 4
	need := at + int(min(n, maxData))
	if cap(s.out) < need {
		s.out = append(make([]byte, 0, maxPacket+64), s.out...)
	}
	buf := s.out[at:need]
	got, err := h.file.ReadAt(buf, int64(off))
	if errors.Is(err, syscall.ESPIPE) { // a FIFO or a device
		got, err = h.file.Read(buf)
	}
	if got == 0 && len(buf) > 0 {
		if err == nil {
			err = io.EOF
		}
		return s.undo(err)
	}
	s.uint32(uint32(got))
	s.out = s.out[:at+got]
	return nil
}

// undo takes back an answer that was begun.
func (s *server) undo(err error) error {
	s.out = s.out[:0]
	return err
}

func (s *server) write(r *request) error {
	b, off, data := r.string(), r.uint64(), r.bytes()
	if r.bad {
		return errShort
	}
	h, err := s.fileHandle(b)
	if err != nil {
		return err
	}
	if off > 1<<62 {
		return syscall.EFBIG
	}
	if h.flags&syscall.O_APPEND == 0 {
		_, err = h.file.WriteAt(data, int64(off))
		if !errors.Is(err, syscall.ESPIPE) {
			return err
		}
	}
	_, err = h.file.Write(data)
	return err
}

func (s *server) stat(id uint32, r *request, stat func(string) (vfs.Attr, error)) error {
	name := r.string()
	if r.bad {
		return errShort
	}
	a, err := stat(name)
	if err != nil {
		return err
	}
	s.begin(fxpAttrs, id)
	s.attrs(a)
	return nil
}

func (s *server) fstat(id uint32, r *request) error {
	h, err := s.handle(r.string())
	if err != nil {
		return err
	}
	a, err := h.file.Attr()
	if err != nil {
		return err
	}
	s.begin(fxpAttrs, id)
	s.attrs(a)
	return nil
}

func (s *server) setstat(r *request, follow bool) error {
	name, a := r.string(), r.attrs()
	if r.bad {
		return errShort
	}
	return s.set(a, func(set vfs.SetAttr) error { return s.t.SetAttr(name, set, follow) })
}

func (s *server) fsetstat(r *request) error {
	b, a := r.string(), r.attrs()
	if r.bad {
		return errShort
	}
	h, err := s.handle(b)
	if err != nil {
		return err
	}
	return s.set(a, h.file.SetAttr)
}

// set sets attributes one after the other, as OpenSSH does: the last failure is told, what worked stays.
func (s *server) set(a attrs, f func(vfs.SetAttr) error) error {
	if s.readOnly {
		return errReadOnly
	}
	var failed error
	try := func(set vfs.SetAttr) {
		if err := f(set); err != nil {
			failed = err
		}
	}
	if a.flags&attrSize != 0 {
		n := int64(a.size)
		if n < 0 {
			return syscall.EINVAL
		}
		try(vfs.SetAttr{Size: &n})
	}
	if a.flags&attrMode != 0 {
		m := vfs.Mode(a.mode) & vfs.ModePerm
		try(vfs.SetAttr{Mode: &m})
	}
	if a.flags&attrTimes != 0 {
		at, mt := time.Unix(int64(a.atime), 0), time.Unix(int64(a.mtime), 0)
		try(vfs.SetAttr{Atime: &at, Mtime: &mt})
	}
	if a.flags&attrOwner != 0 {
		try(vfs.SetAttr{UID: &a.uid, GID: &a.gid})
	}
	return failed
}

func (s *server) opendir(id uint32, r *request) error {
	name := r.string()
	if r.bad {
		return errShort
	}
	if err := s.full(); err != nil {
		return err
	}
	f, err := s.t.Process.Open(name, syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	s.open(id, &handle{name: name, file: f, dir: true})
	return nil
}

// readdir answers with the next entries, "." and ".." first.
func (s *server) readdir(id uint32, r *request) error {
	h, err := s.handle(r.string())
	if err != nil || !h.dir {
		return errHandle
	}
	if !h.read {
		list, err := h.file.ReadDir()
		if err != nil {
			return err
		}
		h.list = append([]vfs.DirEntry{{Name: "."}, {Name: ".."}}, list...)
		h.read = true
	}
	s.begin(fxpName, id)
	at, n := len(s.out), uint32(0)
	s.uint32(0)
	accounts := s.t.Accounts()
	for len(h.list) > 0 && n < maxNames && len(s.out) < maxPacket/2 {
		e := h.list[0]
		h.list = h.list[1:]
		a, err := s.t.Lstat(path.Clean(h.name) + "/" + e.Name)
		if err != nil {
			continue // removed meanwhile
		}
		s.string(e.Name)
		s.string(long(s.t, accounts, e.Name, a))
		s.attrs(a)
		n++
	}
	if n == 0 {
		return s.undo(io.EOF)
	}
	for i := range 4 {
		s.out[at+i] = byte(n >> (24 - 8*i))
	}
	return nil
}

// name answers with one name and no attributes.
func (s *server) name(id uint32, name string) {
	s.begin(fxpName, id)
	s.uint32(1)
	s.string(name)
	s.string(name)
	s.uint32(0)
}

// realpath answers with the absolute path of a name whose last component needn't exist.
func (s *server) realpath(id uint32, r *request, expand func(string) string) error {
	name := r.string()
	if r.bad {
		return errShort
	}
	if name = expand(name); name == "" {
		name = "."
	}
	real, err := s.t.Realpath(name)
	if errors.Is(err, syscall.ENOENT) {
		// Not by path.Dir, which takes "a/../b" for "b" whether or not there is an a.
		dir, base := path.Split(strings.TrimRight(name, "/"))
		if base != ".." && base != "." {
			if real, err = s.t.Realpath(first(dir, ".")); err == nil {
				real = path.Join(real, base)
			}
		}
	}
	if err != nil {
		return err
	}
	s.name(id, real)
	return nil
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (s *server) readlink(id uint32, r *request) error {
	name := r.string()
	if r.bad {
		return errShort
	}
	target, err := s.t.Readlink(name)
	if err != nil {
		return err
	}
	s.name(id, target)
	return nil
}
