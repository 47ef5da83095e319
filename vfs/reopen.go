package vfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
)

// OpenFile describes an open file or directory of a Namespace, so that it can be opened again: in a clone of the namespace, or
// in one that was made anew from what was saved. It can be written as JSON.
type OpenFile struct {
	Mount   string // where its filesystem is mounted
	Ino     Ino
	Path    string // by which it was opened; after Lasting one that leads to it now, "" if none does
	Flags   int
	Offset  int64
	Dir     bool
	Cred    Cred
	Content []byte // of an unlinked file, see Lasting
}

// MaxContent bounds the contents of an unlinked file that Lasting keeps.
const MaxContent = 64 << 20

// Pather is implemented by filesystems that know a path of an inode, relative to their root, without a leading slash.
type Pather interface {
	PathOf(ctx context.Context, ino Ino) (path string, ok bool)
}

// Describe returns the description of an open file: EBADF for what isn't a file or directory of a Namespace.
func (ns *Namespace) Describe(f File) (OpenFile, error) {
	o, ok := f.(*file)
	if !ok || o.closed.Load() {
		return OpenFile{}, syscall.EBADF
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return OpenFile{Mount: o.m.Path, Ino: o.ino, Path: o.path, Flags: o.flags &^ (O_CREAT | O_EXCL | O_TRUNC), Offset: o.off, Dir: o.dir, Cred: o.c}, nil
}

// Lasting completes a description so that it holds for a namespace whose filesystems give their inodes other numbers: the path
// is one of now, and a file without a name comes with its content, which is EFBIG beyond MaxContent. The file must still be
// there.
func (ns *Namespace) Lasting(ctx context.Context, o OpenFile) (OpenFile, error) {
	m := ns.root.Load().mountAt(o.Mount, o.Dir)
	if m == nil {
		return o, fmt.Errorf("%s: %w", o.Mount, syscall.ESTALE)
	}
	if a, err := ns.Lstat(ctx, Cred{}, "", o.Path); err == nil && a.Dev == m.dev && a.Ino == o.Ino {
		return o, nil
	}
	if p, ok := m.FS.(Pather); ok {
		if rel, ok := p.PathOf(ctx, o.Ino); ok {
			o.Path = strings.TrimSuffix(strings.TrimSuffix(m.Path, "/")+"/"+rel, "/")
			if o.Path == "" {
				o.Path = "/"
			}
			return o, nil
		}
	}
	o.Path = ""
	if o.Dir {
		return o, nil
	}
	h, err := m.FS.Open(ctx, o.Ino, O_RDONLY)
	if err != nil {
		return o, err
	}
	defer h.Close()
	a, err := h.Attr()
	if err != nil {
		return o, err
	}
	if a.Size > MaxContent {
		return o, syscall.EFBIG
	}
	o.Content = make([]byte, a.Size)
	if n, err := h.ReadAt(o.Content, 0); err != nil && err != io.EOF {
		return o, err
	} else if n < len(o.Content) {
		o.Content = o.Content[:n]
	}
	return o, nil
}

// Reopen opens what a description names, with its offset: the inode where its filesystem knows it, else what its path leads
// to. ESTALE: neither is there.
func (ns *Namespace) Reopen(ctx context.Context, o OpenFile) (File, error) {
	root := ns.root.Load()
	m := root.mountAt(o.Mount, o.Dir)
	if m == nil || o.Offset < 0 {
		return nil, syscall.ESTALE
	}
	f := &file{m: m, t: root.at(o.Path), ino: o.Ino, c: o.Cred, flags: o.Flags &^ (O_CREAT | O_EXCL | O_TRUNC), ctx: context.WithoutCancel(ctx), path: o.Path, dir: o.Dir, off: o.Offset}
	if a, err := m.FS.GetAttr(ctx, o.Ino); err == nil && a.Mode.IsDir() == o.Dir {
		if o.Dir {
			return f, nil
		}
		if f.h, err = m.FS.Open(f.ctx, f.ino, f.flags&(O_ACCMODE|O_APPEND)); err == nil {
			f.checkSetID = f.flags&O_ACCMODE != O_RDONLY && f.c.UID != 0
			return f, nil
		}
	}
	switch {
	case o.Path != "":
		return ns.reopenPath(ctx, o)
	case o.Dir || m.ReadOnly:
		return nil, syscall.ESTALE
	}
	return ns.revive(ctx, m, f, o.Content)
}

// reopenPath opens by path. The rights were checked when it was first opened.
func (ns *Namespace) reopenPath(ctx context.Context, o OpenFile) (File, error) {
	opened, err := ns.Open(ctx, Cred{}, "", o.Path, o.Flags&(O_ACCMODE|O_APPEND), 0)
	if err != nil {
		return nil, errors.Join(syscall.ESTALE, err)
	}
	f, ok := opened.(*file)
	if !ok || f.dir != o.Dir {
		opened.Close()
		return nil, syscall.ESTALE
	}
	f.c, f.off = o.Cred, o.Offset
	return f, nil
}

// revive makes a file without a name that has the content of one. Its name exists for a moment.
func (ns *Namespace) revive(ctx context.Context, m *mount, f *file, content []byte) (File, error) {
	var a Attr
	var name string
	for i := range 1000 {
		name = fmt.Sprintf(".unlinked-%d-%d", uint64(f.ino), i)
		var err error
		if a, err = m.FS.Create(ctx, m.FS.Root(), name, 0o600, f.c); err == nil {
			break
		} else if !errors.Is(err, syscall.EEXIST) || i == 999 {
			return nil, err
		}
	}
	h, err := m.FS.Open(f.ctx, a.Ino, O_RDWR|f.flags&O_APPEND)
	if err == nil {
		if _, err = h.WriteAt(content, 0); err != nil {
			h.Close()
		}
	}
	if gone := m.FS.Unlink(ctx, m.FS.Root(), name); err == nil && gone != nil {
		h.Close()
		err = gone
	}
	if err != nil {
		m.FS.Forget(a.Ino, 1)
		return nil, err
	}
	f.ino, f.h, f.held, f.path = a.Ino, h, true, "/"+name+" (deleted)"
	return f, nil
}

// mountAt returns what is mounted at exactly a path, nil if nothing is. virtual allows for a directory that exists only because
// something is mounted beneath it.
func (p *point) mountAt(path string, virtual bool) *mount {
	switch p = p.at(path); {
	case p == nil:
		return nil
	case p.m == nil && virtual:
		return p.virtual
	}
	return p.m
}

// at returns the place of an absolute path without symbolic links, nil where nothing is mounted there or below.
func (p *point) at(path string) *point {
	for _, name := range strings.Split(strings.Trim(path, "/"), "/") {
		if name != "" {
			p = p.child(name)
		}
	}
	return p
}

// MountRecord is what of a mount can be saved.
type MountRecord struct {
	Path     string
	Source   string
	Type     string
	ReadOnly bool
}

// Table returns the mount table, parents before children, to be saved.
func (ns *Namespace) Table() []MountRecord {
	var out []MountRecord
	for _, m := range ns.Mounts() {
		out = append(out, MountRecord{m.Path, m.Source, m.Type, m.ReadOnly})
	}
	return out
}

// NamespaceOf returns a namespace with a saved mount table, for Clone to put filesystems into: until then it holds only those
// that fill sets. What isn't a mount table is EINVAL.
func NamespaceOf(table []MountRecord, fill func(Mount) Mount) (*Namespace, error) {
	if len(table) == 0 || table[0].Path != "/" {
		return nil, fmt.Errorf("mount table without a root: %w", syscall.EINVAL)
	}
	mount := func(r MountRecord) Mount {
		return fill(Mount{Path: r.Path, Source: r.Source, Type: r.Type, ReadOnly: r.ReadOnly})
	}
	ns := NewNamespace(mount(table[0]))
	for _, r := range table[1:] {
		parts := strings.Split(strings.Trim(r.Path, "/"), "/")
		if r.Path != "/"+strings.Join(parts, "/") || parts[0] == "" || len(parts) > MaxPath/2 {
			return nil, fmt.Errorf("mount at %q: %w", r.Path, syscall.EINVAL)
		}
		root, err := ns.graft(ns.root.Load(), parts, mount(r))
		if err != nil {
			return nil, fmt.Errorf("mount at %s: %w", r.Path, err)
		}
		ns.root.Store(root)
	}
	return ns, nil
}
