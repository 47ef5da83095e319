package proc

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/vfs"
)

// Inodes of /proc: 1 is the root, 2… its files; those of a process are pid<<20 | what, its descriptors pid<<20 | fdBase + n.
const (
	pidShift = 20
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

type procFile struct {
	name string
	text func(ctx context.Context, s *Sandbox, p *Process) string
}

// rootFiles are the files at the top; the first are symbolic links.
func rootFiles() []procFile {
	return []procFile{
		{"self", func(ctx context.Context, s *Sandbox, _ *Process) string {
			if p := FromContext(ctx); p != nil {
				return strconv.Itoa(p.pid)
			}
			return "1"
		}},
		{"mounts", func(context.Context, *Sandbox, *Process) string { return "self/mounts" }},
		{"cpuinfo", func(context.Context, *Sandbox, *Process) string {
			return "processor\t: 0\nvendor_id\t: AgentRun\nmodel name\t: AgentRun virtual processor\ncpu MHz\t\t: 1000.000\ncpu cores\t: 1\n\n"
		}},
		{"loadavg", func(_ context.Context, s *Sandbox, _ *Process) string {
			return fmt.Sprintf("0.00 0.00 0.00 1/%d %d\n", len(s.Processes()), 1)
		}},
		{"meminfo", func(context.Context, *Sandbox, *Process) string {
			return "MemTotal:        1048576 kB\nMemFree:          786432 kB\nMemAvailable:     917504 kB\nBuffers:               0 kB\nCached:           131072 kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\n"
		}},
		{"stat", func(_ context.Context, s *Sandbox, _ *Process) string {
			return fmt.Sprintf("cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\nbtime %d\nprocesses %d\nprocs_running 1\nprocs_blocked 0\n", s.booted.Unix(), len(s.Processes()))
		}},
		{"uptime", func(_ context.Context, s *Sandbox, _ *Process) string {
			up := s.Uptime().Seconds()
			return fmt.Sprintf("%.2f %.2f\n", up, up)
		}},
		{"version", func(context.Context, *Sandbox, *Process) string {
			return "Linux version 6.1.0-agentrun (agentrun) #1 SMP\n"
		}},
		{"filesystems", func(context.Context, *Sandbox, *Process) string { return "nodev\tproc\nnodev\ttmpfs\n" }},
	}
}

const rootLinks = 2

func pidFileList() []procFile {
	return []procFile{
		{"cmdline", func(_ context.Context, _ *Sandbox, p *Process) string {
			return strings.Join(p.Args(), "\x00") + "\x00"
		}},
		{"comm", func(_ context.Context, _ *Sandbox, p *Process) string { return p.comm() + "\n" }},
		{"environ", func(_ context.Context, _ *Sandbox, p *Process) string {
			if env := p.Environ(); len(env) > 0 {
				return strings.Join(env, "\x00") + "\x00"
			}
			return ""
		}},
		{"mounts", func(_ context.Context, s *Sandbox, _ *Process) string {
			var b strings.Builder
			for _, m := range s.ns.Mounts() {
				opt := "rw"
				if m.ReadOnly {
					opt = "ro"
				}
				fmt.Fprintf(&b, "%s %s %s %s 0 0\n", orDash(m.Source), m.Path, orDash(m.Type), opt)
			}
			return b.String()
		}},
		{"stat", func(_ context.Context, _ *Sandbox, p *Process) string {
			return fmt.Sprintf("%d (%s) %s %d %d %d 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0\n", p.pid, p.comm(), p.letter(), p.Ppid(), p.Pgid(), p.Sid(), p.start.Sub(p.sb.booted)/(10*time.Millisecond))
		}},
		{"status", func(_ context.Context, _ *Sandbox, p *Process) string {
			c := p.Cred()
			return fmt.Sprintf("Name:\t%s\nUmask:\t%04o\nState:\t%s\nTgid:\t%d\nPid:\t%d\nPPid:\t%d\nUid:\t%d\t%d\t%d\t%d\nGid:\t%d\t%d\t%d\t%d\nThreads:\t1\n",
				p.comm(), c.Umask, p.letter(), p.pid, p.pid, p.Ppid(), c.UID, c.UID, c.UID, c.UID, c.GID, c.GID, c.GID, c.GID)
		}},
	}
}

func orDash(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func (p *Process) comm() string {
	name := "?"
	if a := p.Args(); len(a) > 0 {
		name = a[0][strings.LastIndexByte(a[0], '/')+1:]
	}
	return name[:min(15, len(name))]
}

func (p *Process) letter() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.state == zombie:
		return "Z"
	case p.stopSig != 0:
		return "T"
	case p.phase.Load() != active:
		return "S"
	}
	return "R"
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
		switch {
		case what == 1:
			a.Mode, a.Nlink = vfs.ModeDir|0o555, 2
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
		if what != 1 {
			return vfs.Attr{}, syscall.ENOTDIR
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
	case p != nil && what == pidDir:
		base := vfs.Ino(p.pid) << pidShift
		out = append(out, vfs.DirEntry{Name: "fd", Ino: base | pidFdDir, Mode: vfs.ModeDir})
		for i, e := range pidFileList() {
			out = append(out, vfs.DirEntry{Name: e.name, Ino: base | vfs.Ino(pidFiles+i), Mode: vfs.ModeRegular})
		}
	case p != nil && what == pidFdDir:
		for _, n := range p.Fds() {
			out = append(out, vfs.DirEntry{Name: strconv.Itoa(n), Ino: vfs.Ino(p.pid)<<pidShift | vfs.Ino(fdBase+n), Mode: vfs.ModeRegular})
		}
	default:
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
	switch {
	case p == nil && what >= 2+rootLinks:
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
