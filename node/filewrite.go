package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"syscall"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

const (
	fileMode   = 0o644
	dirMode    = 0o755
	copyBuffer = 256 << 10
	maxLinks   = 40

	smallBuffer = 4 << 10 // most files are small

	// temporary begins the names of files that aren't complete yet. They aren't listed.
	temporary = ".agentrun-partial-"
)

func hidden(name string) bool { return strings.HasPrefix(name, temporary) }

// partialName returns a name for a file beside p that isn't complete yet.
func partialName(p string) string { return path.Join(path.Dir(p), temporary+rand.Text()) }

// Write implements Files: a mode of 0 is that of the file that is replaced, or 0644. A symbolic link stays: what it leads to is
// replaced.
func (f *files) Write(ctx context.Context, p string, mode uint32, r io.Reader) (*api.FileInfo, error) {
	const op = "write"
	p, err := f.begin(ctx, op, p)
	if err != nil {
		return nil, err
	}
	perm, err := permissions(op, p, mode)
	if err != nil {
		return nil, err
	}
	to, old, err := f.target(ctx, p)
	if err != nil {
		return nil, fail(op, p, err)
	}
	switch {
	case old != nil && old.Mode.IsDir():
		return nil, errs.Msg(errs.Invalid, op, p, "it is a directory")
	case old != nil && !old.Mode.IsRegular():
		return nil, errs.Msg(errs.Invalid, op, p, "it isn't a regular file")
	case mode == 0 && old != nil:
		perm = old.Mode & vfs.ModePerm
	case mode == 0:
		perm = fileMode
	}
	made, err := f.parents(ctx, op, to)
	tmp := partialName(to)
	if err == nil {
		if err = f.fill(ctx, op, p, tmp, perm, r); err != nil {
			f.drop(ctx, tmp)
		}
	}
	if err != nil {
		f.unmake(ctx, made)
		return nil, err
	}
	// Done or not at all: the client's going away is of no importance any more.
	ctx = context.WithoutCancel(ctx)
	if err := f.ns.Rename(ctx, f.cred, "", tmp, to, 0); err != nil {
		f.drop(ctx, tmp)
		f.unmake(ctx, made)
		return nil, fail(op, p, err)
	}
	i, err := f.info(ctx, to)
	if err != nil {
		return nil, fail(op, p, err)
	}
	i.Path, i.Name = p, path.Base(p)
	return i, nil
}

func permissions(op, p string, mode uint32) (vfs.Mode, error) {
	if mode&^uint32(vfs.ModePerm) != 0 {
		return 0, errs.Msg(errs.Invalid, op, p, "a mode has permission bits only")
	}
	return vfs.Mode(mode), nil
}

// target follows the symbolic links at the end of a path; old is what is there, nil for nothing.
func (f *files) target(ctx context.Context, p string) (to string, old *vfs.Attr, err error) {
	for range maxLinks {
		a, err := f.ns.Lstat(ctx, f.cred, "", p)
		switch {
		case vfs.Errno(err) == syscall.ENOENT && err != nil:
			return p, nil, nil
		case err != nil:
			return "", nil, err
		case !a.Mode.IsSymlink():
			return p, &a, nil
		}
		link, err := f.ns.Readlink(ctx, f.cred, "", p)
		if err != nil {
			return "", nil, err
		}
		dir := path.Dir(p)
		if dir, err = f.ns.Realpath(ctx, f.cred, "", dir); err != nil {
			return "", nil, err
		}
		if !path.IsAbs(link) {
			link = dir + "/" + link
		}
		// The link's own directories may be links too: what ".." is there, the namespace knows.
		last := path.Base(link)
		if last == "." || last == ".." || last == "/" || strings.HasSuffix(link, "/") {
			if p, err = f.ns.Realpath(ctx, f.cred, "", link); err != nil {
				return "", nil, err
			}
			continue
		}
		if dir, err = f.ns.Realpath(ctx, f.cred, "", link[:len(link)-len(last)]); err != nil {
			return "", nil, err
		}
		p = path.Join(dir, last)
	}
	return "", nil, syscall.ELOOP
}

// parents makes the directories above a path that are missing, and returns those that it made, the uppermost first.
func (f *files) parents(ctx context.Context, op, p string) (made []string, err error) {
	dir := path.Dir(p)
	if a, err := f.ns.Stat(ctx, f.cred, "", dir); err == nil {
		if !a.Mode.IsDir() {
			return nil, fail(op, dir, syscall.ENOTDIR)
		}
		return nil, nil
	} else if vfs.Errno(err) != syscall.ENOENT {
		return nil, fail(op, dir, err)
	}
	if made, err = f.parents(ctx, op, dir); err != nil {
		return made, err
	}
	switch err := f.ns.Mkdir(ctx, f.cred, "", dir, dirMode); {
	case err == nil:
		return append(made, dir), fail(op, dir, f.own(ctx, dir))
	case vfs.Errno(err) != syscall.EEXIST:
		return made, fail(op, dir, err)
	}
	return made, nil
}

// unmake removes directories that were made for nothing, unless something came into them.
func (f *files) unmake(ctx context.Context, made []string) {
	for _, dir := range slices.Backward(made) {
		_ = f.ns.Rmdir(context.WithoutCancel(ctx), f.cred, "", dir)
	}
}

// fill makes a file of what comes from r. p is the name for errors.
func (f *files) fill(ctx context.Context, op, p, tmp string, perm vfs.Mode, r io.Reader) error {
	file, err := f.ns.Open(context.WithoutCancel(ctx), f.cred, "", tmp, vfs.O_WRONLY|vfs.O_CREAT|vfs.O_EXCL|vfs.O_NOFOLLOW, perm|0o200)
	if err != nil {
		return fail(op, p, err)
	}
	if f.give != nil {
		if err := file.SetAttr(*f.give); err != nil {
			return errors.Join(fail(op, p, err), file.Close())
		}
	}
	limit, total := f.s.spec.Limits.Written, int64(0)
	buf := make([]byte, smallBuffer)
	for {
		if err = ctx.Err(); err != nil {
			break
		}
		n, rerr := r.Read(buf)
		if total += int64(n); limit > 0 && total > limit {
			err = errs.Msg(errs.TooLarge, op, p, fmt.Sprintf("more than the %d bytes that the sandbox may write", limit))
			break
		}
		for b := buf[:n]; len(b) > 0 && err == nil; {
			var k int
			if k, err = file.Write(b); k == 0 && err == nil {
				err = io.ErrShortWrite
			}
			b = b[k:]
		}
		if err != nil {
			err = fail(op, p, err)
			break
		}
		f.s.Touch()
		if total > smallBuffer && len(buf) == smallBuffer {
			big := f.s.n.buffer()
			defer f.s.n.buffers.Put(big)
			buf = *big
		}
		if rerr == io.EOF {
			break
		}
		if err = rerr; err != nil {
			break
		}
	}
	if err == nil && perm&0o200 == 0 {
		err = fail(op, p, file.SetAttr(vfs.SetAttr{Mode: &perm}))
	}
	if cerr := file.Close(); err == nil && cerr != nil {
		err = fail(op, p, cerr)
	}
	var typed *errs.Error
	switch {
	case err == nil || errors.As(err, &typed):
		return err
	case ctx.Err() != nil:
		return errs.New(errs.Canceled, op, p, ctx.Err())
	}
	return errs.New(errs.Invalid, op, p, fmt.Errorf("the content was cut off: %w", err))
}

// buffer returns one of copyBuffer bytes; it is given back to n.buffers.
func (n *Node) buffer() *[]byte {
	if b, ok := n.buffers.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, copyBuffer)
	return &b
}

// drop removes what is of no use, also when ctx is done.
func (f *files) drop(ctx context.Context, p string) {
	_ = f.ns.Unlink(context.WithoutCancel(ctx), f.cred, "", p)
}

// Mkdir implements Files: directories above are made; one that is there is errs.Exists. A mode of 0 is 0755.
func (f *files) Mkdir(ctx context.Context, p string, mode uint32) error {
	const op = "make directory"
	p, err := f.begin(ctx, op, p)
	if err != nil {
		return err
	}
	perm, err := permissions(op, p, mode)
	if err != nil {
		return err
	}
	if mode == 0 {
		perm = dirMode
	}
	if p == "/" {
		return fail(op, p, syscall.EEXIST)
	}
	made, err := f.parents(ctx, op, p)
	if err == nil {
		if err = fail(op, p, f.ns.Mkdir(ctx, f.cred, "", p, perm)); err == nil {
			return fail(op, p, f.own(ctx, p))
		}
	}
	if err != nil {
		f.unmake(ctx, made)
	}
	return err
}

// Remove implements Files. It refuses the root and what a volume is mounted at or beneath; a symbolic link is removed itself.
func (f *files) Remove(ctx context.Context, p string, recursive bool) error {
	const op = "remove"
	p, err := f.begin(ctx, op, p)
	if err != nil {
		return err
	}
	if err := f.movable(op, p); err != nil {
		return err
	}
	a, err := f.ns.Lstat(ctx, f.cred, "", p)
	switch {
	case err != nil:
	case !a.Mode.IsDir():
		err = f.ns.Unlink(ctx, f.cred, "", p)
	case recursive:
		err = f.removeAll(ctx, p)
	default:
		err = f.ns.Rmdir(ctx, f.cred, "", p)
	}
	return fail(op, p, err)
}

// movable refuses the root, and what filesystems are mounted at or beneath.
func (f *files) movable(op, p string) error {
	if p == "/" {
		return errs.Msg(errs.Denied, op, p, "not the root")
	}
	for _, m := range f.ns.Mounts() {
		if m.Path == p || strings.HasPrefix(m.Path, p+"/") {
			return errs.Msg(errs.Denied, op, p, "a volume is mounted at "+m.Path)
		}
	}
	return nil
}

// removeAll removes a directory with all that is in it.
func (f *files) removeAll(ctx context.Context, dir string) error {
	entries, err := f.ns.ReadDir(ctx, f.cred, "", dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := path.Join(dir, e.Name)
		if e.Mode&vfs.ModeType == vfs.ModeDir {
			err = f.removeAll(ctx, p)
		} else {
			err = f.ns.Unlink(ctx, f.cred, "", p)
		}
		if err != nil && vfs.Errno(err) != syscall.ENOENT { // gone meanwhile
			return err
		}
	}
	return f.ns.Rmdir(ctx, f.cred, "", dir)
}

// Move implements Files. What is at its end is replaced if rename(2) would; between volumes it is copied, and there at once.
func (f *files) Move(ctx context.Context, from, to string) error {
	const op = "move"
	from, err := f.begin(ctx, op, from)
	if err != nil {
		return err
	}
	if to, err = f.path(op, to); err != nil {
		return err
	}
	if err := errors.Join(f.movable(op, from), f.movable(op, to)); err != nil {
		return err
	}
	err = f.ns.Rename(ctx, f.cred, "", from, to, 0)
	if err == nil || vfs.Errno(err) != syscall.EXDEV {
		if vfs.Errno(err) == syscall.ENOENT {
			if _, gone := f.ns.Lstat(ctx, f.cred, "", from); gone == nil {
				return fail(op, path.Dir(to), err)
			}
		}
		return fail(op, from, err)
	}
	tmp := partialName(to)
	if err = f.copyTree(ctx, from, tmp); err == nil {
		err = f.ns.Rename(context.WithoutCancel(ctx), f.cred, "", tmp, to, 0)
	}
	if err != nil {
		clean := context.WithoutCancel(ctx)
		if a, lerr := f.ns.Lstat(clean, f.cred, "", tmp); lerr == nil && a.Mode.IsDir() {
			_ = f.removeAll(clean, tmp)
		} else {
			f.drop(clean, tmp)
		}
		return fail(op, from, err)
	}
	clean := context.WithoutCancel(ctx)
	if a, err := f.ns.Lstat(clean, f.cred, "", from); err == nil && a.Mode.IsDir() {
		return fail(op, from, f.removeAll(clean, from))
	}
	return fail(op, from, f.ns.Unlink(clean, f.cred, "", from))
}

// copyTree copies a file, link or directory to where nothing is.
func (f *files) copyTree(ctx context.Context, from, to string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a, err := f.ns.Lstat(ctx, f.cred, "", from)
	if err != nil {
		return err
	}
	perm := a.Mode & vfs.ModePerm
	switch {
	case a.Mode.IsSymlink():
		target, err := f.ns.Readlink(ctx, f.cred, "", from)
		if err != nil {
			return err
		}
		return f.ns.Symlink(ctx, f.cred, "", target, to)
	case a.Mode.IsRegular():
		in, err := f.ns.Open(ctx, f.cred, "", from, vfs.O_RDONLY|vfs.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer in.Close()
		if err := f.fill(ctx, "move", from, to, perm, in); err != nil {
			return err
		}
	case a.Mode.IsDir():
		if err := f.ns.Mkdir(ctx, f.cred, "", to, perm|0o700); err != nil {
			return err
		}
		entries, err := f.ns.ReadDir(ctx, f.cred, "", from)
		if err != nil {
			return err
		}
		slices.SortFunc(entries, func(a, b vfs.DirEntry) int { return strings.Compare(a.Name, b.Name) })
		for _, e := range entries {
			if err := f.copyTree(ctx, path.Join(from, e.Name), path.Join(to, e.Name)); err != nil {
				return err
			}
		}
	default:
		return syscall.EINVAL
	}
	set := vfs.SetAttr{Mode: &perm, Atime: &a.Atime, Mtime: &a.Mtime}
	if f.cred.UID == 0 {
		set.UID, set.GID = &a.UID, &a.GID
	}
	return f.ns.SetAttr(ctx, f.cred, "", to, set, false)
}
