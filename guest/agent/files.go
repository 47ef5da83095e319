package agent

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
)

// file serves the calls that are about files. Paths are those of the agent's own root; relative ones count from it, too.
func (a *Agent) file(s *wire.Stream, r wire.Request) error {
	switch {
	case r.Stat != nil:
		return withPath("stat", r.Stat.Path, func(path string) error { return stat(s, path, !r.Stat.All) })
	case r.List != nil:
		return withPath("list", r.List.Path, func(path string) error { return list(s, path) })
	case r.Read != nil:
		return withPath("read", r.Read.Path, func(path string) error { return read(s, path, r.Read.Offset, r.Read.Count) })
	case r.Write != nil:
		return withPath("write", r.Write.Path, func(path string) error { return a.write(s, path, *r.Write) })
	case r.Mkdir != nil:
		return withPath("mkdir", r.Mkdir.Path, func(path string) error { return a.mkdir(path, *r.Mkdir) })
	case r.Remove != nil:
		return withPath("remove", r.Remove.Path, func(path string) error { return remove(path, r.Remove.All) })
	case r.Move != nil:
		return withPath("move", r.Move.From, func(from string) error {
			return withPath("move", r.Move.To, func(to string) error { return os.Rename(from, to) })
		})
	case r.Watch != nil:
		return withPath("watch", r.Watch.Path, func(path string) error { return watch(s, path, r.Watch.All) })
	}
	return errs.Msg(errs.Unsupported, "agent", "", "no such call")
}

// withPath checks a path and gives errors their kind.
func withPath(op string, path wire.Text, do func(string) error) error {
	if path == "" || strings.ContainsRune(string(path), 0) || len(path) > 4096 {
		return errs.Msg(errs.Invalid, op, string(path), "a path has 1 to 4096 bytes, and no NUL")
	}
	err := do(filepath.Join("/", string(path)))
	if err == nil {
		return nil
	}
	var typed *errs.Error
	if errors.As(err, &typed) {
		return err
	}
	var pe *fs.PathError
	var le *os.LinkError
	cause := err
	if errors.As(err, &pe) {
		cause = pe.Err
	} else if errors.As(err, &le) {
		cause = le.Err
	}
	return errs.New(kind(cause), op, string(path), cause)
}

func kind(err error) errs.Kind {
	for _, c := range []struct {
		err  error
		kind errs.Kind
	}{
		{unix.ENOENT, errs.NotFound}, {unix.EEXIST, errs.Exists}, {unix.ENOTEMPTY, errs.NotEmpty}, {unix.EACCES, errs.Denied}, {unix.EPERM, errs.Denied},
		{unix.EROFS, errs.Denied}, {unix.ENOSPC, errs.NoSpace}, {unix.EDQUOT, errs.NoSpace}, {unix.EFBIG, errs.TooLarge}, {unix.ENAMETOOLONG, errs.Invalid},
		{unix.ENOTDIR, errs.Invalid}, {unix.EISDIR, errs.Invalid}, {unix.EINVAL, errs.Invalid}, {unix.ELOOP, errs.Invalid}, {unix.EXDEV, errs.Unsupported},
		{unix.EBUSY, errs.Conflict}, {unix.EMFILE, errs.Limit}, {unix.ENFILE, errs.Limit},
	} {
		if errors.Is(err, c.err) {
			return c.kind
		}
	}
	return errs.Other
}

// info tells of a file; target is asked for by path.
func info(path string, fi fs.FileInfo) wire.Info {
	i := wire.Info{Name: wire.Text(fi.Name()), Size: fi.Size(), MTime: fi.ModTime().UTC()}
	if y := i.MTime.Year(); y < 1 || y > 9999 { // which JSON hasn't
		i.MTime = time.Unix(0, 0).UTC()
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		i.Mode, i.UID, i.GID = st.Mode, st.Uid, st.Gid
	}
	if fi.Mode()&fs.ModeSymlink != 0 {
		if target, err := os.Readlink(path); err == nil {
			i.Target = wire.Text(target)
		}
	}
	return i
}

func stat(s *wire.Stream, path string, follow bool) error {
	get := os.Lstat
	if follow {
		get = os.Stat
	}
	fi, err := get(path)
	if err != nil {
		return err
	}
	return s.Message(info(path, fi))
}

// list sends a folder's entries in portions that fit into messages, however long names and targets are.
func list(s *wire.Stream, path string) error {
	names, err := readNames(path)
	if err != nil {
		return err
	}
	var part wire.Entries
	room := wire.MaxMessage
	for _, name := range names {
		fi, err := os.Lstat(filepath.Join(path, name))
		if err != nil {
			continue // it has just been removed
		}
		one := info(filepath.Join(path, name), fi)
		size := 200 + 6*(len(one.Name)+len(one.Target))
		if size > room {
			if err := s.Message(part); err != nil {
				return err
			}
			part, room = wire.Entries{}, wire.MaxMessage
		}
		part.Entries = append(part.Entries, one)
		room -= size
	}
	return s.Message(part)
}

func readNames(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

func read(s *wire.Stream, path string, offset, count int64) error {
	// A FIFO without a writer, or a terminal, would wait for ever.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if fi.IsDir() {
		return unix.EISDIR
	}
	if offset < 0 {
		return unix.EINVAL
	}
	if offset > 0 {
		if _, err := f.Seek(offset, io.SeekStart); err != nil {
			return err
		}
	}
	if err := s.Message(info(path, fi)); err != nil {
		return err
	}
	var r io.Reader = f
	if count >= 0 {
		r = io.LimitReader(f, count)
	}
	buf := make([]byte, wire.MaxData)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if err := s.Data(wire.Output, buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// write takes a file's content and puts it in place in one step. A link at the end is followed; a device is written to.
func (a *Agent) write(s *wire.Stream, path string, w wire.Write) error {
	owner, err := a.owner(w.Owner)
	if err != nil {
		return err
	}
	if w.Parents {
		if err := makeParents(filepath.Dir(path), owner); err != nil {
			return err
		}
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	mode := os.FileMode(0o644)
	old, err := os.Stat(path)
	switch {
	case err == nil && old.IsDir():
		return unix.EISDIR
	case err == nil && !old.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		return receive(s, f)
	case err == nil:
		mode = old.Mode().Perm()
		if st, ok := old.Sys().(*syscall.Stat_t); ok && owner == nil {
			owner = &account{uid: st.Uid, gid: st.Gid}
		}
	}
	if w.Mode != nil {
		mode = fromUnix(*w.Mode)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".agentrun-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := receive(s, f); err != nil {
		return err
	}
	if err := errors.Join(chown(f.Name(), owner), f.Chmod(mode)); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	return s.Message(info(path, fi))
}

// receive writes data until the host closes the channel.
func receive(s *wire.Stream, f io.Writer) error {
	for {
		fr, err := s.Recv()
		if err != nil {
			return err
		}
		switch fr.Type {
		case wire.Data:
			if _, err := f.Write(fr.Payload); err != nil {
				return err
			}
		case wire.Close:
			return nil
		}
	}
}

// fromUnix converts permissions with their set-id and sticky bits.
func fromUnix(mode uint32) os.FileMode {
	m := os.FileMode(mode & 0o777)
	for bit, name := range map[uint32]os.FileMode{0o4000: os.ModeSetuid, 0o2000: os.ModeSetgid, 0o1000: os.ModeSticky} {
		if mode&bit != 0 {
			m |= name
		}
	}
	return m
}

// owner is nil when none is asked for.
func (a *Agent) owner(want wire.Text) (*account, error) {
	if want == "" {
		return nil, nil
	}
	who, err := a.account(string(want))
	return &who, err
}

func chown(path string, who *account) error {
	if who == nil || os.Getuid() != 0 && int(who.uid) == os.Getuid() {
		return nil
	}
	return os.Lchown(path, int(who.uid), int(who.gid))
}

func (a *Agent) mkdir(path string, m wire.Mkdir) error {
	owner, err := a.owner(m.Owner)
	if err != nil {
		return err
	}
	if m.Parents {
		if fi, err := os.Stat(path); err == nil && fi.IsDir() {
			return nil
		}
		if err := makeParents(filepath.Dir(path), owner); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return errors.Join(chown(path, owner), os.Chmod(path, fromUnix(m.Mode)))
}

// makeParents makes the folders that are missing, which are the owner's.
func makeParents(dir string, owner *account) error {
	if fi, err := os.Stat(dir); err == nil {
		if !fi.IsDir() {
			return unix.ENOTDIR
		}
		return nil
	}
	if err := makeParents(filepath.Dir(dir), owner); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return chown(dir, owner)
}

func remove(path string, all bool) error {
	if path == "/" {
		return unix.EBUSY
	}
	if !all {
		return os.Remove(path)
	}
	if _, err := os.Lstat(path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}
