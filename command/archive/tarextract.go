package archive

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// extractor takes members out of an archive.
type extractor struct {
	a       *tar
	in      *input
	umask   vfs.Mode
	dirs    []delayedDir
	symbs   []*delayedLink
	byInode map[[2]uint64]*delayedLink
}

// delayedDir is a directory whose mode and times are set at the end, when nothing is written into it any more.
type delayedDir struct {
	p string
	h tarHeader
}

// delayedLink is a symbolic link that leads elsewhere. Until all members are extracted an empty file stands for it, so
// that no member is written through it.
type delayedLink struct {
	id      [2]uint64
	sources []string
	h       tarHeader
}

func (a *tar) extract() {
	in := a.openInput()
	defer in.close()
	old := a.t.Umask(0)
	a.t.Umask(old)
	x := &extractor{a: a, in: in, umask: old, byInode: map[[2]uint64]*delayedLink{}}
	in.each(func(h *tarHeader) bool {
		a.t.Check()
		n, ok := a.wanted(h.name)
		if !ok || a.excluded(h.name) {
			return !a.sated()
		}
		dir := a.dir
		if n != nil {
			dir = n.dir
		}
		x.member(h, dir)
		return !a.sated()
	})
	x.finish()
	a.missing()
}

// member extracts one member below a directory.
func (x *extractor) member(h *tarHeader, dir string) {
	a := x.a
	stored := h.name
	if !a.resolve(h) {
		return
	}
	if !a.absolute && hasDotDot(stored) {
		a.fail("%s: Member name contains '..'", tarQuote(stored))
		return
	}
	if a.newer != nil && h.mtime.Before(*a.newer) {
		return
	}
	p := joinDir(dir, h.name)
	if a.keepNewer && !a.stdout && !h.isDir() {
		if at, err := a.t.Lstat(p); err == nil && !at.Mtime.Before(h.mtime) {
			a.t.Warn("Current %s is newer or same age", tool.Quote(h.name))
			return
		}
	}
	if a.verbose > 0 {
		shown := *h
		if !a.showNames {
			shown.name = stored
		}
		a.show(&shown, a.stdout, x.in.start/blockSize)
	}
	if a.stdout || a.toCommand != "" {
		if h.isRegular() {
			x.data(h)
		}
		return
	}
	if a.unlink && !h.isDir() {
		x.clear(p)
	}
	x.place(h, dir, strings.TrimRight(p, "/"), stored)
}

// data writes a member's contents to standard output or into a command.
func (x *extractor) data(h *tarHeader) {
	t := x.a.t
	if x.a.toCommand == "" {
		if err := x.sparseCopy(t.Out, h); err != nil {
			x.a.fatal("Unexpected EOF in archive")
		}
		return
	}
	t.Out.Flush()
	r, w, err := t.Pipe()
	if err != nil {
		x.a.fatal("%s", tool.Strerror(err))
	}
	env := append(t.Environ(), "TAR_FILENAME="+h.name, "TAR_REALNAME="+h.name, "TAR_FILETYPE=f", fmt.Sprintf("TAR_SIZE=%d", h.real), fmt.Sprintf("TAR_MODE=%o", h.mode),
		"TAR_UNAME="+h.uname, "TAR_GNAME="+h.gname, "TAR_UID="+itoa(h.uid), "TAR_GID="+itoa(h.gid), "TAR_MTIME="+itoa(h.mtime.Unix()), "TAR_ARCHIVE="+x.a.archive)
	child, err := t.Spawn(proc.Spawn{Args: []string{"sh", "-c", x.a.toCommand}, Env: env, Files: map[int]vfs.File{0: r}})
	r.Close()
	if err != nil {
		w.Close()
		x.a.fatal("%s: Cannot exec: %s", x.a.toCommand, tool.Strerror(err))
	}
	if old, err := t.SetSignal(proc.SIGPIPE, proc.Ignore); err == nil {
		defer t.SetSignal(proc.SIGPIPE, old)
	}
	x.sparseCopy(w, h)
	w.Close()
	if status, err := t.Wait(child); err == nil && status != 0 {
		x.a.fail("%d: Child returned status %d", child.Pid(), status)
	}
}

// sparseCopy writes a member's contents, holes as zeros.
func (x *extractor) sparseCopy(w io.Writer, h *tarHeader) error {
	if !h.isSparse {
		return copyExact(x.a.t, w, x.in.tarReader, h.size)
	}
	at := int64(0)
	zero := make([]byte, 32<<10)
	fill := func(to int64) error {
		for at < to {
			x.a.t.Check()
			n, err := w.Write(zero[:min(to-at, int64(len(zero)))])
			at += int64(n)
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, s := range h.sparse {
		if err := fill(s.off); err != nil {
			return err
		}
		if err := copyExact(x.a.t, w, x.in.tarReader, s.n); err != nil {
			return err
		}
		at += s.n
	}
	return fill(h.real)
}

// copyExact copies n bytes; io.ErrUnexpectedEOF if there are fewer.
func copyExact(t *tool.T, w io.Writer, r io.Reader, n int64) error {
	m, err := io.CopyBuffer(struct{ io.Writer }{w}, io.LimitReader(r, n), make([]byte, 64<<10))
	if err == nil && m < n {
		err = io.ErrUnexpectedEOF
	}
	t.Check()
	return err
}

// clear removes what is in the way, as far as the options allow.
func (x *extractor) clear(p string) bool {
	at, err := x.a.t.Lstat(p)
	if err != nil {
		return false
	}
	if !at.Mode.IsDir() {
		return x.a.t.Unlink(p) == nil
	}
	if x.a.recursiveUnlink {
		x.removeTree(p, 0)
	}
	return x.a.t.Rmdir(p) == nil
}

func (x *extractor) removeTree(p string, depth int) {
	list, err := x.a.t.ReadDir(p)
	if err != nil || depth > 2000 {
		return
	}
	for _, e := range list {
		x.a.t.Check()
		child := p + "/" + e.Name
		if e.Mode.IsDir() {
			x.removeTree(child, depth+1)
			x.a.t.Rmdir(child)
		} else {
			x.a.t.Unlink(child)
		}
	}
}

// retry runs a call that makes a file, after making directories or removing what is in the way if these are what it
// fails for.
func (x *extractor) retry(p string, call func() error) (skip bool, err error) {
	dirs := false
	for range 4 {
		err = call()
		switch {
		case errors.Is(err, syscall.EEXIST), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTEMPTY):
			if x.a.skipOld {
				return true, nil
			}
			if x.a.keepOld || !x.clear(p) {
				return false, syscall.EEXIST
			}
		case errors.Is(err, syscall.ENOENT) && !dirs:
			dirs = true
			if !x.parents(p) {
				return false, err
			}
		default:
			return false, err
		}
	}
	return false, err
}

// parents makes the directories above a path.
func (x *extractor) parents(p string) bool {
	dir := path.Dir(p)
	if dir == "." || dir == "/" || dir == p {
		return false
	}
	err := x.a.t.Mkdir(dir, 0o777)
	if errors.Is(err, syscall.ENOENT) && x.parents(dir) {
		err = x.a.t.Mkdir(dir, 0o777)
	}
	if err == nil && x.a.verbose > 1 {
		fmt.Fprintf(x.a.t.Out, "drwxr-xr-x %*s %s\n", x.a.width+1+x.a.dateWidth, "Creating directory:", tarQuote(dir))
	}
	return err == nil || errors.Is(err, syscall.EEXIST)
}

// place makes the file of a member.
func (x *extractor) place(h *tarHeader, dir, p, stored string) {
	a, t := x.a, x.a.t
	if p == "" {
		p = "/"
	}
	var err error
	skip, what := false, "Cannot open"
	switch {
	case h.isDir():
		x.directory(h, p)
		return
	case h.isRegular():
		x.file(h, p)
		return
	case h.typ == typeLink:
		target := joinDir(dir, h.link)
		skip, err = x.retry(p, func() error {
			if h.link == "" {
				return syscall.ENOENT
			}
			err := t.Link(target, p)
			if errors.Is(err, syscall.EEXIST) && x.same(target, p) {
				return nil
			}
			return err
		})
		what = "Cannot hard link to " + tool.Quote(h.link)
		if err == nil && !skip {
			x.joinPlaceholder(target, p)
			return
		}
	case h.typ == typeSymlink:
		if !a.absolute && (strings.HasPrefix(h.link, "/") || hasDotDot(h.link)) {
			x.placeholder(h, p)
			return
		}
		skip, err = x.retry(p, func() error { return t.Symlink(h.link, p) })
		what = "Cannot create symlink to " + tool.Quote(h.link)
	case h.typ == typeFIFO:
		skip, err = x.retry(p, func() error { return t.Mknod(p, vfs.ModeFIFO|vfs.Mode(h.mode)&0o777, 0) })
		what = "Cannot mkfifo"
	case h.typ == typeChar || h.typ == typeBlock:
		kind := vfs.ModeChar
		if h.typ == typeBlock {
			kind = vfs.ModeBlock
		}
		skip, err = x.retry(p, func() error {
			return t.Mknod(p, kind|vfs.Mode(h.mode)&0o777, uint64(h.major&0xfff)<<8|uint64(h.minor&0xff)|uint64(h.minor&^0xff)<<12)
		})
		what = "Cannot mknod"
	case h.typ == typeVolume || h.typ == typeMulti:
		return
	default:
		t.Warn("%s: Unknown file type '%c', extracted as normal file", tarQuote(stored), h.typ)
		x.file(h, p)
		return
	}
	if err != nil {
		a.failFile(h.name, what, err)
		return
	}
	if !skip {
		x.attributes(h, p)
	}
}

func (x *extractor) same(a, b string) bool {
	s, err1 := x.a.t.Lstat(a)
	r, err2 := x.a.t.Lstat(b)
	return err1 == nil && err2 == nil && s.Dev == r.Dev && s.Ino == r.Ino
}

func (x *extractor) directory(h *tarHeader, p string) {
	t := x.a.t
	mode := vfs.Mode(h.mode) & 0o777
	if t.Cred().UID != 0 {
		mode |= 0o300 // so that members can be put into it
	}
	existed := false
	skip, err := x.retry(p, func() error {
		err := t.Mkdir(p, mode)
		if errors.Is(err, syscall.EEXIST) {
			at, lerr := t.Lstat(p)
			if lerr == nil && at.Mode.IsSymlink() && x.a.keepDirLink {
				at, lerr = t.Stat(p)
			}
			if lerr == nil && at.Mode.IsDir() {
				existed = true
				return nil
			}
		}
		return err
	})
	switch {
	case err != nil:
		x.a.failFile(h.name, "Cannot mkdir", err)
	case skip, existed && (x.a.keepOld || x.a.skipOld || x.a.noOverwriteDir):
	case len(x.dirs) < maxNames:
		x.dirs = append(x.dirs, delayedDir{p, *h})
	}
}

func (x *extractor) file(h *tarHeader, p string) {
	t := x.a.t
	flags := syscall.O_WRONLY | syscall.O_CREAT | syscall.O_EXCL
	if x.a.overwrite {
		flags = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_TRUNC
	}
	var f vfs.File
	skip, err := x.retry(p, func() (err error) {
		f, err = t.Process.Open(p, flags, vfs.Mode(h.mode)&0o777&^0o077|0o600)
		return err
	})
	if err != nil {
		x.a.failFile(h.name, "Cannot open", err)
		return
	}
	if skip {
		return
	}
	if err = x.fill(f, h); err != nil {
		f.Close()
		if errors.Is(err, io.ErrUnexpectedEOF) {
			x.finish()
			x.a.fatal("Unexpected EOF in archive")
		}
		x.a.failFile(h.name, fmt.Sprintf("Wrote only %d of %d bytes", 0, h.size), err)
		if vfs.Errno(err) == syscall.EFBIG {
			x.a.fatal("%s: Cannot write: %s", tarQuote(h.name), tool.Strerror(err))
		}
		return
	}
	x.owner(h, func(s vfs.SetAttr) error { return f.SetAttr(s) })
	mode := x.mode(h)
	if err := f.SetAttr(vfs.SetAttr{Mode: &mode}); err != nil {
		x.a.failFile(h.name, fmt.Sprintf("Cannot change mode to %s", tool.FormatMode(mode)[1:]), err)
	}
	if !x.a.touch {
		at, mt := x.times(h)
		f.SetAttr(vfs.SetAttr{Atime: &at, Mtime: &mt})
	}
	if err := f.Close(); err != nil {
		x.a.failFile(h.name, "Cannot close", err)
	}
}

// times returns what access and modification time become.
func (x *extractor) times(h *tarHeader) (at, mt time.Time) {
	if at = h.atime; at.IsZero() {
		at = x.a.t.Now()
	}
	return at, h.mtime
}

// fill writes a member's data into a file, leaving holes.
func (x *extractor) fill(f vfs.File, h *tarHeader) error {
	if !h.isSparse {
		return copyExact(x.a.t, f, x.in.tarReader, h.size)
	}
	for _, s := range h.sparse {
		if _, err := f.Seek(s.off, io.SeekStart); err != nil {
			return err
		}
		if err := copyExact(x.a.t, f, x.in.tarReader, s.n); err != nil {
			return err
		}
	}
	return f.SetAttr(vfs.SetAttr{Size: &h.real})
}

func (x *extractor) mode(h *tarHeader) vfs.Mode {
	m := vfs.Mode(h.mode) & 0o7777
	if !x.a.samePerm {
		m &= 0o777 &^ x.umask
	}
	return m
}

// owner changes the owner, if that is asked for.
func (x *extractor) owner(h *tarHeader, set func(vfs.SetAttr) error) {
	if !x.a.sameOwner {
		return
	}
	uid, gid := uint32(h.uid), uint32(h.gid)
	if !x.a.numeric {
		if u := x.a.account().UserByName(h.uname); u != nil && h.uname != "" {
			uid = u.UID
		}
		for i := range x.a.account().Groups {
			if g := &x.a.account().Groups[i]; g.Name == h.gname && h.gname != "" {
				gid = g.GID
			}
		}
	}
	if err := set(vfs.SetAttr{UID: &uid, GID: &gid}); err != nil {
		x.a.failFile(h.name, fmt.Sprintf("Cannot change ownership to uid %d, gid %d", uid, gid), err)
	}
}

// attributes sets those of what isn't a plain file.
func (x *extractor) attributes(h *tarHeader, p string) {
	t := x.a.t
	x.owner(h, func(s vfs.SetAttr) error { return t.SetAttr(p, s, false) })
	if h.typ != typeSymlink {
		mode := x.mode(h)
		t.SetAttr(p, vfs.SetAttr{Mode: &mode}, false)
	}
	if !x.a.touch {
		at, mt := x.times(h)
		t.SetAttr(p, vfs.SetAttr{Atime: &at, Mtime: &mt}, false)
	}
}

// placeholder makes the empty file that stands for a symbolic link.
func (x *extractor) placeholder(h *tarHeader, p string) {
	t := x.a.t
	var f vfs.File
	skip, err := x.retry(p, func() (err error) {
		f, err = t.Process.Open(p, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, 0)
		return err
	})
	if err != nil {
		x.a.failFile(h.name, "Cannot open", err)
		return
	}
	if skip {
		return
	}
	at, err := f.Attr()
	f.Close()
	if err != nil || len(x.symbs) >= maxNames {
		x.a.failFile(h.name, "Cannot stat", err)
		return
	}
	d := &delayedLink{id: [2]uint64{at.Dev, uint64(at.Ino)}, sources: []string{p}, h: *h}
	x.symbs = append(x.symbs, d)
	x.byInode[d.id] = d
}

// joinPlaceholder notes that a hard link was made to a placeholder.
func (x *extractor) joinPlaceholder(target, p string) {
	if len(x.byInode) == 0 {
		return
	}
	if at, err := x.a.t.Lstat(p); err == nil {
		if d := x.byInode[[2]uint64{at.Dev, uint64(at.Ino)}]; d != nil && len(d.sources) < maxNames {
			d.sources = append(d.sources, p)
		}
	}
}

// finish makes the delayed links, and sets the directories' attributes, the deepest first.
func (x *extractor) finish() {
	t := x.a.t
	for _, d := range x.symbs {
		first := ""
		for _, p := range d.sources {
			at, err := t.Lstat(p)
			if err != nil || !at.Mode.IsRegular() || [2]uint64{at.Dev, uint64(at.Ino)} != d.id {
				continue // something else came to its place
			}
			if err := t.Unlink(p); err != nil {
				x.a.failFile(p, "Cannot unlink", err)
				continue
			}
			if first != "" && t.Link(first, p) == nil {
				continue
			}
			if err := t.Symlink(d.h.link, p); err != nil {
				x.a.failFile(p, "Cannot create symlink to "+tool.Quote(d.h.link), err)
				continue
			}
			if first == "" {
				first = p
			}
			x.attributes(&d.h, p)
		}
	}
	x.symbs = nil
	for i := len(x.dirs) - 1; i >= 0; i-- {
		d := &x.dirs[i]
		if at, err := t.Lstat(d.p); err != nil || !at.Mode.IsDir() && !(x.a.keepDirLink && at.Mode.IsSymlink()) {
			continue
		}
		x.owner(&d.h, func(s vfs.SetAttr) error { return t.SetAttr(d.p, s, true) })
		mode := x.mode(&d.h)
		if err := t.SetAttr(d.p, vfs.SetAttr{Mode: &mode}, true); err != nil {
			x.a.failFile(d.h.name, fmt.Sprintf("Cannot change mode to %s", tool.FormatMode(mode)[1:]), err)
		}
		if !x.a.touch {
			at, mt := x.times(&d.h)
			t.SetAttr(d.p, vfs.SetAttr{Atime: &at, Mtime: &mt}, true)
		}
	}
	x.dirs = nil
}
