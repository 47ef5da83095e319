package proc

import (
	"context"
	"errors"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/vfs"
)

// Paths are relative to Getwd. Errors are syscall.Errno (errors.Is, errors.As work), without the path.

// at returns what every call on files needs.
func (p *Process) at() (context.Context, vfs.Cred, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.cred
	c.Umask = p.umask
	return p.ctx, c, p.cwd
}

// Getwd returns the working directory: absolute, without symbolic links.
func (p *Process) Getwd() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cwd
}

// Chdir changes the working directory: ENOENT, ENOTDIR, EACCES.
func (p *Process) Chdir(dir string) error {
	ctx, c, cwd := p.at()
	real, err := p.sb.ns.Realpath(ctx, c, cwd, dir)
	if err != nil {
		return err
	}
	a, err := p.sb.ns.Stat(ctx, c, "", real)
	switch {
	case err != nil:
		return err
	case !a.Mode.IsDir():
		return syscall.ENOTDIR
	}
	if err := p.sb.ns.Access(ctx, c, "", real, 1); err != nil {
		return err
	}
	p.mu.Lock()
	p.cwd = real
	p.mu.Unlock()
	return nil
}

// Open opens a file, at the lowest free descriptor from 3 on, closed on exec. flags are those of the syscall package.
func (p *Process) Open(name string, flags int, perm vfs.Mode) (vfs.File, error) {
	d, err := p.open(name, flags, perm)
	if err != nil {
		return nil, err
	}
	fd, err := p.fds.add(d, 3, true)
	if err != nil {
		return nil, err
	}
	return p.handle(fd, d), nil
}

// OpenAt opens a file as a given descriptor, which stays open on exec, closing what it was.
func (p *Process) OpenAt(fd int, name string, flags int, perm vfs.Mode) error {
	d, err := p.open(name, flags, perm)
	if err != nil {
		return err
	}
	return p.fds.set(fd, d, false)
}

func (p *Process) open(name string, flags int, perm vfs.Mode) (*description, error) {
	if err := p.gate(); err != nil {
		return nil, err
	}
	ctx, c, cwd := p.at()
	f, err := p.sb.ns.Open(ctx, c, cwd, name, flags, perm&^c.Umask)
	if err != nil {
		return nil, err
	}
	if h, ok := f.(*handle); ok { // one of /proc/PID/fd: a reference of its own, taken in its opening
		return h.d, nil
	}
	d := newDescription(f)
	d.path = name
	if !path.IsAbs(name) {
		d.path = path.Join(cwd, name)
	}
	return d, nil
}

// Stat returns a file's attributes, of what a symbolic link leads to.
func (p *Process) Stat(name string) (vfs.Attr, error) {
	ctx, c, cwd := p.at()
	return p.sb.ns.Stat(ctx, c, cwd, name)
}

// Lstat returns a file's attributes, a symbolic link's own.
func (p *Process) Lstat(name string) (vfs.Attr, error) {
	ctx, c, cwd := p.at()
	return p.sb.ns.Lstat(ctx, c, cwd, name)
}

// Access checks permissions: R_OK 4, W_OK 2, X_OK 1, or 0 for existence.
func (p *Process) Access(name string, mode int) error {
	ctx, c, cwd := p.at()
	return p.sb.ns.Access(ctx, c, cwd, name, vfs.Mode(mode))
}

// ReadDir lists a directory in the filesystem's order, without "." and "..".
func (p *Process) ReadDir(name string) ([]vfs.DirEntry, error) {
	if err := p.gate(); err != nil {
		return nil, err
	}
	ctx, c, cwd := p.at()
	return p.sb.ns.ReadDir(ctx, c, cwd, name)
}

// Readlink returns a symbolic link's target: EINVAL for what isn't one.
func (p *Process) Readlink(name string) (string, error) {
	ctx, c, cwd := p.at()
	target, err := p.sb.ns.Readlink(ctx, c, cwd, name)
	if errors.Is(err, syscall.EINVAL) {
		if d := p.descriptorAt(name); d != nil {
			return d.target(), nil
		}
	}
	return target, err
}

// descriptorAt returns what a path such as /proc/self/fd/0 stands for. In /proc those aren't links, since one that was followed
// by its text wouldn't lead to the open file; for Readlink they are.
func (p *Process) descriptorAt(name string) *description {
	dir, base := path.Split(name)
	if dir == "" {
		dir = "."
	}
	n, err := strconv.Atoi(base)
	if err != nil {
		return nil
	}
	real, err := p.Realpath(dir)
	var pid int
	if err != nil || !strings.HasPrefix(real, "/proc/") || path.Base(real) != "fd" {
		return nil
	}
	if pid, err = strconv.Atoi(path.Base(path.Dir(real))); err != nil {
		return nil
	}
	q := p.sb.Lookup(pid)
	if q == nil || p.Cred().UID != 0 && p.Cred().UID != q.Cred().UID {
		return nil
	}
	d, err := q.fds.get(n)
	if err != nil {
		return nil
	}
	return d
}

// Realpath resolves all symbolic links; the file must exist.
func (p *Process) Realpath(name string) (string, error) {
	ctx, c, cwd := p.at()
	return p.sb.ns.Realpath(ctx, c, cwd, name)
}

// Mkdir makes a directory; the umask applies to perm, as in all calls that make files.
func (p *Process) Mkdir(name string, perm vfs.Mode) error {
	ctx, c, cwd := p.at()
	return p.sb.ns.Mkdir(ctx, c, cwd, name, perm&^c.Umask)
}

// Unlink removes a name that isn't a directory.
func (p *Process) Unlink(name string) error {
	if err := p.gate(); err != nil {
		return err
	}
	ctx, c, cwd := p.at()
	return p.sb.ns.Unlink(ctx, c, cwd, name)
}

// Rmdir removes an empty directory.
func (p *Process) Rmdir(name string) error {
	ctx, c, cwd := p.at()
	return p.sb.ns.Rmdir(ctx, c, cwd, name)
}

// Rename moves a file; flags are vfs.RenameNoReplace and vfs.RenameExchange.
func (p *Process) Rename(from, to string, flags uint32) error {
	ctx, c, cwd := p.at()
	return p.sb.ns.Rename(ctx, c, cwd, from, to, flags)
}

// Symlink makes a symbolic link at name.
func (p *Process) Symlink(target, name string) error {
	ctx, c, cwd := p.at()
	return p.sb.ns.Symlink(ctx, c, cwd, target, name)
}

// Link makes a second name for a file.
func (p *Process) Link(from, to string) error {
	ctx, c, cwd := p.at()
	return p.sb.ns.Link(ctx, c, cwd, from, to)
}

// Mknod makes a FIFO, a socket's name, a device or an empty file.
func (p *Process) Mknod(name string, mode vfs.Mode, rdev uint64) error {
	ctx, c, cwd := p.at()
	return p.sb.ns.Mknod(ctx, c, cwd, name, mode&vfs.ModeType|mode&vfs.ModePerm&^c.Umask, rdev)
}

// SetAttr changes attributes: chmod, chown, utimensat, truncate. follow is about a symbolic link at the end.
func (p *Process) SetAttr(name string, s vfs.SetAttr, follow bool) error {
	if err := p.mayTruncate(s.Size); err != nil {
		return err
	}
	ctx, c, cwd := p.at()
	return p.sb.ns.SetAttr(ctx, c, cwd, name, s, follow)
}

// StatFS returns the numbers of the filesystem that a path is on.
func (p *Process) StatFS(name string) (vfs.StatFS, error) {
	ctx, c, cwd := p.at()
	return p.sb.ns.StatFS(ctx, c, cwd, name)
}

// Location returns the zone that TZ names, see Zone; files of the sandbox aren't asked.
func (p *Process) Location() *time.Location { return ParseTZ(p.Getenv("TZ")) }
