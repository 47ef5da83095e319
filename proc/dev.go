package proc

import (
	"context"
	"io"
	"strconv"
	"syscall"
	"time"

	"agentrun.dev/vfs"
)

// Device numbers, as Linux has them: major<<8 | minor.
const (
	rdevNull    = 1<<8 | 3
	rdevZero    = 1<<8 | 5
	rdevFull    = 1<<8 | 7
	rdevRandom  = 1<<8 | 8
	rdevURandom = 1<<8 | 9
	rdevTTY     = 5 << 8
	ptsInos     = 1 << 16 // inode of /dev/pts/0
)

type devNode struct {
	name   string
	mode   vfs.Mode
	rdev   uint64
	target string
}

func devNodes() []devNode {
	const ch, ln = vfs.ModeChar | 0o666, vfs.ModeSymlink | 0o777
	return []devNode{
		{"fd", ln, 0, "/proc/self/fd"}, {"full", ch, rdevFull, ""}, {"null", ch, rdevNull, ""}, {"random", ch, rdevRandom, ""},
		{"pts", vfs.ModeDir | 0o755, 0, ""}, {"shm", vfs.ModeDir | 0o1777, 0, ""},
		{"stderr", ln, 0, "/proc/self/fd/2"}, {"stdin", ln, 0, "/proc/self/fd/0"}, {"stdout", ln, 0, "/proc/self/fd/1"},
		{"tty", ch, rdevTTY, ""}, {"urandom", ch, rdevURandom, ""}, {"zero", ch, rdevZero, ""},
	}
}

// devFS is /dev. One value serves any number of sandboxes: devices and terminals are those of the process that looks.
type devFS struct {
	readOnly
	nodes []devNode
	born  time.Time
}

// NewDev returns the filesystem for /dev.
func NewDev() vfs.FS { return &devFS{nodes: devNodes(), born: time.Now()} }

func ptsIno(n int) vfs.Ino { return vfs.Ino(ptsInos + n) }

// ttyAt returns the terminal behind an inode, for the process that looks.
func ttyAt(ctx context.Context, ino vfs.Ino) *TTY {
	p := FromContext(ctx)
	if p == nil || ino < ptsInos || ino >= ptsInos+maxTTYs {
		return nil
	}
	p.sb.mu.Lock()
	defer p.sb.mu.Unlock()
	return p.sb.ttys[int(ino-ptsInos)]
}

func (d *devFS) isPts(ino vfs.Ino) bool {
	return ino >= 2 && int(ino) < len(d.nodes)+2 && d.nodes[ino-2].name == "pts"
}

func (d *devFS) GetAttr(ctx context.Context, ino vfs.Ino) (vfs.Attr, error) {
	if ino >= ptsInos {
		if t := ttyAt(ctx, ino); t != nil {
			return t.attr(), nil
		}
		return vfs.Attr{}, syscall.ESTALE
	}
	a := vfs.Attr{Ino: ino, Nlink: 1, Atime: d.born, Mtime: d.born, Ctime: d.born}
	switch i := int(ino) - 2; {
	case ino == 1:
		a.Mode, a.Nlink = vfs.ModeDir|0o755, 2
	case i >= 0 && i < len(d.nodes):
		a.Mode, a.Rdev, a.Size = d.nodes[i].mode, d.nodes[i].rdev, int64(len(d.nodes[i].target))
	default:
		return vfs.Attr{}, syscall.ESTALE
	}
	return a, nil
}

func (d *devFS) Lookup(ctx context.Context, dir vfs.Ino, name string) (vfs.Attr, error) {
	if dir == 1 {
		for i := range d.nodes {
			if d.nodes[i].name == name {
				return d.GetAttr(ctx, vfs.Ino(i+2))
			}
		}
	}
	if n, err := strconv.Atoi(name); err == nil && d.isPts(dir) && strconv.Itoa(n) == name {
		if t := ttyAt(ctx, ptsIno(n)); t != nil {
			return t.attr(), nil
		}
	}
	return vfs.Attr{}, syscall.ENOENT
}

func (d *devFS) Readlink(_ context.Context, ino vfs.Ino) (string, error) {
	if i := int(ino) - 2; i >= 0 && i < len(d.nodes) && d.nodes[i].target != "" {
		return d.nodes[i].target, nil
	}
	return "", syscall.EINVAL
}

func (d *devFS) ReadDir(ctx context.Context, dir vfs.Ino) ([]vfs.DirEntry, error) {
	if p := FromContext(ctx); p != nil && d.isPts(dir) {
		var out []vfs.DirEntry
		for _, t := range p.sb.TTYs() {
			out = append(out, vfs.DirEntry{Name: strconv.Itoa(t.n), Ino: ptsIno(t.n), Mode: vfs.ModeChar})
		}
		return out, nil
	}
	if dir != 1 {
		return nil, nil
	}
	out := make([]vfs.DirEntry, len(d.nodes))
	for i, n := range d.nodes {
		out[i] = vfs.DirEntry{Name: n.name, Ino: vfs.Ino(i + 2), Mode: n.mode & vfs.ModeType}
	}
	return out, nil
}

func (d *devFS) Open(context.Context, vfs.Ino, int) (vfs.Handle, error) { return nil, syscall.ENXIO }

// OpenSpecial implements vfs.Special.
func (d *devFS) OpenSpecial(ctx context.Context, ino vfs.Ino, flags int, c vfs.Cred) (vfs.File, bool, error) {
	a, err := d.GetAttr(ctx, ino)
	if err != nil {
		return nil, false, err
	}
	f, err := OpenSpecial(ctx, c, a, flags)
	return f, true, err
}

// OpenSpecial opens FIFOs and devices for a vfs.Mount, in the name of the process that ctx carries: ENXIO without one.
func OpenSpecial(ctx context.Context, _ vfs.Cred, a vfs.Attr, flags int) (vfs.File, error) {
	p := FromContext(ctx)
	if p == nil {
		return nil, syscall.ENXIO
	}
	switch a.Mode & vfs.ModeType {
	case vfs.ModeFIFO:
		return p.openFIFO(a, flags)
	case vfs.ModeChar:
		if a.Rdev == rdevTTY {
			return p.openTTY(flags)
		}
		if a.Rdev>>8&0xfff == ttyMajor {
			return p.openPts(ctx, a, flags)
		}
		switch a.Rdev {
		case rdevNull, rdevZero, rdevFull, rdevRandom, rdevURandom:
			return &device{attr: a, flags: flags, sb: p.sb}, nil
		}
	}
	return nil, syscall.ENXIO
}

// openPts opens a terminal by its name. A session's leader without a terminal gets it as the controlling one, unless it
// says O_NOCTTY.
func (p *Process) openPts(ctx context.Context, a vfs.Attr, flags int) (vfs.File, error) {
	t := ttyAt(ctx, ptsIno(int(a.Rdev&0xff|a.Rdev>>12&^0xff)))
	if t == nil {
		return nil, syscall.EIO
	}
	if flags&syscall.O_NOCTTY == 0 {
		p.control(t) // it is only tried
	}
	return t.open(flags), nil
}

// openTTY opens the controlling terminal, or whichever of the standard descriptors looks like one.
func (p *Process) openTTY(flags int) (vfs.File, error) {
	if t := p.TTY(); t != nil {
		return t.open(flags), nil
	}
	for _, fd := range []int{2, 0, 1} {
		if p.IsTerminal(fd) {
			d, err := p.fds.get(fd)
			if err != nil {
				continue
			}
			if _, other := d.file.(*ttyFile); !other {
				d.refs.Add(1)
				return &handle{p, d, fd}, nil
			}
		}
	}
	return nil, syscall.ENXIO
}

// device is an open /dev/null, zero, full, random or urandom.
type device struct {
	attr  vfs.Attr
	flags int
	sb    *Sandbox
}

func (d *device) Read(b []byte) (int, error) {
	switch d.attr.Rdev {
	case rdevNull:
		return 0, io.EOF
	case rdevRandom, rdevURandom:
		return d.sb.readRand(b)
	}
	clear(b)
	return len(b), nil
}

func (d *device) Write(b []byte) (int, error) {
	if d.attr.Rdev == rdevFull {
		return 0, syscall.ENOSPC
	}
	return len(b), nil
}
func (d *device) ReadAt(b []byte, _ int64) (int, error)  { return d.Read(b) }
func (d *device) WriteAt(b []byte, _ int64) (int, error) { return d.Write(b) }
func (d *device) Seek(int64, int) (int64, error)         { return 0, nil }
func (d *device) Close() error                           { return nil }
func (d *device) Attr() (vfs.Attr, error)                { return d.attr, nil }
func (d *device) SetAttr(vfs.SetAttr) error              { return nil }
func (d *device) ReadDir() ([]vfs.DirEntry, error)       { return nil, syscall.ENOTDIR }
func (d *device) Sync() error                            { return syscall.EINVAL }
func (d *device) Flags() int                             { return d.flags }
