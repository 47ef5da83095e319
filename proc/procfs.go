package proc

import (
	"context"
	"strconv"
	"syscall"
	"time"

	"agentrun.dev/vfs"
)

// Inodes of /proc: 1 is the root, 2… its files; those of a process are pid<<20 | what, its descriptors pid<<20 | fdBase + n.
const (
	pidShift = 20
	netDir   = 1 << 10 // /proc/net; then come its files; for /proc/sys see sysDir
	pidDir   = 1
	pidFdDir = 2
	pidFiles = 16
	fdBase   = 1 << 16
)

type procFS struct {
	readOnly
	sb   *Sandbox
	born time.Time
}

// NewProc returns the filesystem for /proc: the sandbox's own processes, and made-up facts instead of the host's.
func NewProc(s *Sandbox) vfs.FS { return &procFS{sb: s, born: s.clock()} }

func isPidLink(what int) bool {
	n := len(pidFileList())
	return what >= pidFiles+n-pidLinks && what < pidFiles+n
}

// find decodes an inode: the process it belongs to, nil for the top, and what it is there.
func (f *procFS) find(ino vfs.Ino) (p *Process, what int, err error) {
	if ino < 1<<pidShift {
		return nil, int(ino), nil
	}
	if p = f.sb.Lookup(int(ino >> pidShift)); p == nil {
		return nil, 0, syscall.ESTALE
	}
	return p, int(ino & (1<<pidShift - 1)), nil
}

func (f *procFS) GetAttr(ctx context.Context, ino vfs.Ino) (vfs.Attr, error) {
	a := vfs.Attr{Ino: ino, Nlink: 1, Atime: f.born, Mtime: f.born, Ctime: f.born, Mode: vfs.ModeRegular | 0o444}
	p, what, err := f.find(ino)
	if err != nil {
		return vfs.Attr{}, err
	}
	if p == nil {
		if e, ok := f.sys(what); ok {
			if e.text == nil {
				a.Mode, a.Nlink = vfs.ModeDir|0o555, 2
			}
			return a, nil
		}
		switch {
		case what == 1 || what == netDir:
			a.Mode, a.Nlink = vfs.ModeDir|0o555, 2
		case what > netDir && what <= netDir+len(netFiles):
		case what >= 2 && what < 2+rootLinks:
			a.Mode = vfs.ModeSymlink | 0o777
		case what < 2 || what >= 2+len(rootFiles()):
			return vfs.Attr{}, syscall.ESTALE
		}
		return a, nil
	}
	c := p.Cred()
	a.UID, a.GID = c.UID, c.GID
	switch {
	case what == pidDir || what == pidFdDir:
		a.Mode, a.Nlink = vfs.ModeDir|0o555, 2
	case isPidLink(what):
		a.Mode = vfs.ModeSymlink | 0o777
	case what >= fdBase:
		d, err := p.fds.get(what - fdBase)
		if err != nil {
			return vfs.Attr{}, syscall.ENOENT
		}
		fa, err := d.file.Attr()
		if err != nil {
			return vfs.Attr{}, err
		}
		// The attributes are those of the open file, so that tests through /dev/fd tell what it is; anybody who may look
		// here has it open, or is allowed to by Lookup.
		fa.Ino = ino
		fa.Mode |= 0o666
		return fa, nil
	}
	return a, nil
}

func (f *procFS) Lookup(ctx context.Context, dir vfs.Ino, name string) (vfs.Attr, error) {
	p, what, err := f.find(dir)
	if err != nil {
		return vfs.Attr{}, err
	}
	if p == nil {
		switch what {
		case 1:
		case netDir:
			for i, e := range netFiles {
				if e == name {
					return f.GetAttr(ctx, vfs.Ino(netDir+1+i))
				}
			}
			return vfs.Attr{}, syscall.ENOENT
		default:
			if e, ok := f.sys(what); ok && e.text == nil {
				return f.sysLookup(ctx, what, name)
			}
			return vfs.Attr{}, syscall.ENOTDIR
		}
		switch name {
		case "net":
			return f.GetAttr(ctx, netDir)
		case "sys":
			return f.GetAttr(ctx, sysDir)
		}
		for i, e := range rootFiles() {
			if e.name == name {
				return f.GetAttr(ctx, vfs.Ino(i+2))
			}
		}
		pid, err := strconv.Atoi(name)
		if err != nil || f.sb.Lookup(pid) == nil {
			return vfs.Attr{}, syscall.ENOENT
		}
		return f.GetAttr(ctx, vfs.Ino(pid)<<pidShift|pidDir)
	}
	base := vfs.Ino(p.pid) << pidShift
	switch what {
	case pidDir:
		if name == "fd" {
			return f.GetAttr(ctx, base|pidFdDir)
		}
		for i, e := range pidFileList() {
			if e.name == name {
				return f.GetAttr(ctx, base|vfs.Ino(pidFiles+i))
			}
		}
		return vfs.Attr{}, syscall.ENOENT
	case pidFdDir:
		n, err := strconv.Atoi(name)
		if err != nil || n < 0 || n >= fdBase {
			return vfs.Attr{}, syscall.ENOENT
		}
		if me := FromContext(ctx); me != nil && me.Cred().UID != 0 && me.Cred().UID != p.Cred().UID {
			return vfs.Attr{}, syscall.EACCES
		}
		return f.GetAttr(ctx, base|vfs.Ino(fdBase+n))
	}
	return vfs.Attr{}, syscall.ENOTDIR
}

func (f *procFS) Readlink(ctx context.Context, ino vfs.Ino) (string, error) {
	if ino >= 2 && ino < 2+rootLinks {
		return rootFiles()[ino-2].text(ctx, f.sb, nil), nil
	}
	p, what, err := f.find(ino)
	if err != nil || p == nil {
		return "", syscall.EINVAL
	}
	if me := FromContext(ctx); me != nil && me.Cred().UID != 0 && me.Cred().UID != p.Cred().UID {
		return "", syscall.EACCES
	}
	if isPidLink(what) {
		return pidFileList()[what-pidFiles].text(ctx, f.sb, p), nil
	}
	return "", syscall.EINVAL
}

func (f *procFS) ReadDir(ctx context.Context, dir vfs.Ino) ([]vfs.DirEntry, error) {
	p, what, err := f.find(dir)
	if err != nil {
		return nil, err
	}
	var out []vfs.DirEntry
	switch {
	case p == nil && what == 1:
		for _, q := range f.sb.Processes() {
			out = append(out, vfs.DirEntry{Name: strconv.Itoa(q.pid), Ino: vfs.Ino(q.pid)<<pidShift | pidDir, Mode: vfs.ModeDir})
		}
		for i, e := range rootFiles() {
			m := vfs.ModeRegular
			if i < rootLinks {
				m = vfs.ModeSymlink
			}
			out = append(out, vfs.DirEntry{Name: e.name, Ino: vfs.Ino(i + 2), Mode: m})
		}
		out = append(out, vfs.DirEntry{Name: "net", Ino: netDir, Mode: vfs.ModeDir}, vfs.DirEntry{Name: "sys", Ino: sysDir, Mode: vfs.ModeDir})
	case p == nil && what == netDir:
		for i, name := range netFiles {
			out = append(out, vfs.DirEntry{Name: name, Ino: vfs.Ino(netDir + 1 + i), Mode: vfs.ModeRegular})
		}
	case p != nil && what == pidDir:
		base := vfs.Ino(p.pid) << pidShift
		out = append(out, vfs.DirEntry{Name: "fd", Ino: base | pidFdDir, Mode: vfs.ModeDir})
		for i, e := range pidFileList() {
			m := vfs.ModeRegular
			if isPidLink(pidFiles + i) {
				m = vfs.ModeSymlink
			}
			out = append(out, vfs.DirEntry{Name: e.name, Ino: base | vfs.Ino(pidFiles+i), Mode: m})
		}
	case p != nil && what == pidFdDir:
		for _, n := range p.Fds() {
			out = append(out, vfs.DirEntry{Name: strconv.Itoa(n), Ino: vfs.Ino(p.pid)<<pidShift | vfs.Ino(fdBase+n), Mode: vfs.ModeRegular})
		}
	default:
		if e, ok := f.sys(what); p == nil && ok && e.text == nil {
			return sysList(what), nil
		}
		return nil, syscall.ENOTDIR
	}
	return out, nil
}

func (f *procFS) Open(ctx context.Context, ino vfs.Ino, flags int) (vfs.Handle, error) {
	p, what, err := f.find(ino)
	if err != nil {
		return nil, err
	}
	a, err := f.GetAttr(ctx, ino)
	if err != nil {
		return nil, err
	}
	if flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		return nil, syscall.EACCES
	}
	if e, ok := f.sys(what); p == nil && ok {
		if e.text == nil {
			return nil, syscall.EISDIR
		}
		return &textHandle{[]byte(e.text(f.sb)), a}, nil
	}
	switch {
	case p == nil && what > netDir:
		return &textHandle{[]byte(f.sb.sockets(netFiles[what-netDir-1] == "tcp6")), a}, nil
	case p == nil && what >= 2+rootLinks && what != netDir:
		return &textHandle{[]byte(rootFiles()[what-2].text(ctx, f.sb, nil)), a}, nil
	case p != nil && what >= pidFiles && what < pidFiles+len(pidFileList()):
		if me := FromContext(ctx); what == pidFiles+2 && me != nil && me.Cred().UID != 0 && me.Cred().UID != p.Cred().UID {
			return nil, syscall.EACCES
		}
		return &textHandle{[]byte(pidFileList()[what-pidFiles].text(ctx, f.sb, p)), a}, nil
	}
	return nil, syscall.EISDIR
}

// OpenSpecial implements vfs.Special: a descriptor opened by its name is the same open file description once more.
func (f *procFS) OpenSpecial(_ context.Context, ino vfs.Ino, _ int, _ vfs.Cred) (vfs.File, bool, error) {
	p, what, err := f.find(ino)
	if err != nil || p == nil || what < fdBase {
		return nil, false, err
	}
	p.fds.mu.Lock()
	defer p.fds.mu.Unlock()
	n := what - fdBase
	if n >= len(p.fds.slots) || p.fds.slots[n].d == nil {
		return nil, true, syscall.ENOENT
	}
	d := p.fds.slots[n].d
	d.refs.Add(1)
	return &handle{p, d, n}, true, nil
}
