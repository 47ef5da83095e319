package vfs

import (
	"context"
	"io"
	"io/fs"
	"path"
	"time"
)

// IOFS shows a directory of a Namespace as an fs.FS, to whom the credentials belong: for templates, tests and archives. Its
// file systems are read-only and also implement fs.ReadDirFS, fs.StatFS and fs.ReadLinkFS.
func IOFS(ctx context.Context, ns *Namespace, c Cred, dir string) fs.FS {
	return &ioFS{ctx, ns, c, dir}
}

type ioFS struct {
	ctx context.Context
	ns  *Namespace
	c   Cred
	dir string
}

// check gives a name of io/fs and an error of ours the form that io/fs wants.
func check(op, name string, do func() error) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	if err := do(); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

func (f *ioFS) Open(name string) (fs.File, error) {
	file := &ioFile{name: path.Base(name)}
	err := check("open", name, func() (err error) {
		file.File, err = f.ns.Open(f.ctx, f.c, f.dir, name, O_RDONLY|O_NONBLOCK, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	file.fs, file.path = f, name
	return file, nil
}

func (f *ioFS) Stat(name string) (info fs.FileInfo, err error) {
	err = check("stat", name, func() error {
		a, err := f.ns.Stat(f.ctx, f.c, f.dir, name)
		info = &ioInfo{path.Base(name), a}
		return err
	})
	return info, err
}

func (f *ioFS) Lstat(name string) (info fs.FileInfo, err error) {
	err = check("lstat", name, func() error {
		a, err := f.ns.Lstat(f.ctx, f.c, f.dir, name)
		info = &ioInfo{path.Base(name), a}
		return err
	})
	return info, err
}

func (f *ioFS) ReadLink(name string) (target string, err error) {
	err = check("readlink", name, func() (err error) {
		target, err = f.ns.Readlink(f.ctx, f.c, f.dir, name)
		return err
	})
	return target, err
}

func (f *ioFS) ReadDir(name string) (entries []fs.DirEntry, err error) {
	err = check("readdir", name, func() error {
		list, err := f.ns.ReadDir(f.ctx, f.c, f.dir, name)
		entries = f.entries(name, list)
		return err
	})
	return entries, err
}

func (f *ioFS) entries(dir string, list []DirEntry) []fs.DirEntry {
	entries := make([]fs.DirEntry, len(list))
	for i, e := range list {
		entries[i] = &ioEntry{f, path.Join(dir, e.Name), e}
	}
	return entries
}

// ioFile is an open file; a directory remembers how much of it was listed.
type ioFile struct {
	File
	fs         *ioFS
	name, path string
	rest       []fs.DirEntry
	listed     bool
}

func (f *ioFile) Stat() (fs.FileInfo, error) {
	a, err := f.Attr()
	return &ioInfo{f.name, a}, err
}

func (f *ioFile) ReadDir(n int) ([]fs.DirEntry, error) {
	if !f.listed {
		list, err := f.File.ReadDir()
		if err != nil {
			return nil, &fs.PathError{Op: "readdir", Path: f.path, Err: err}
		}
		f.rest, f.listed = f.fs.entries(f.path, list), true
	}
	if n <= 0 {
		n = len(f.rest)
	} else if len(f.rest) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(f.rest))
	head := f.rest[:n:n]
	f.rest = f.rest[n:]
	return head, nil
}

type ioEntry struct {
	fs   *ioFS
	path string
	e    DirEntry
}

func (e *ioEntry) Name() string               { return e.e.Name }
func (e *ioEntry) IsDir() bool                { return e.e.Mode.IsDir() }
func (e *ioEntry) Type() fs.FileMode          { return e.e.Mode.FileMode().Type() }
func (e *ioEntry) Info() (fs.FileInfo, error) { return e.fs.Lstat(e.path) }
func (e *ioEntry) String() string             { return fs.FormatDirEntry(e) }

type ioInfo struct {
	name string
	a    Attr
}

func (i *ioInfo) Name() string       { return i.name }
func (i *ioInfo) Size() int64        { return i.a.Size }
func (i *ioInfo) Mode() fs.FileMode  { return i.a.Mode.FileMode() }
func (i *ioInfo) ModTime() time.Time { return i.a.Mtime }
func (i *ioInfo) IsDir() bool        { return i.a.Mode.IsDir() }
func (i *ioInfo) Sys() any           { return i.a }
func (i *ioInfo) String() string     { return fs.FormatFileInfo(i) }

// FileMode is the mode as io/fs has it.
func (m Mode) FileMode() fs.FileMode {
	f := fs.FileMode(m & 0o777)
	for _, bit := range []struct {
		ours Mode
		fs   fs.FileMode
	}{{modeSUID, fs.ModeSetuid}, {modeSGID, fs.ModeSetgid}, {modeVTX, fs.ModeSticky}} {
		if m&bit.ours != 0 {
			f |= bit.fs
		}
	}
	switch m & ModeType {
	case ModeDir:
		f |= fs.ModeDir
	case ModeSymlink:
		f |= fs.ModeSymlink
	case ModeFIFO:
		f |= fs.ModeNamedPipe
	case ModeSocket:
		f |= fs.ModeSocket
	case ModeChar:
		f |= fs.ModeDevice | fs.ModeCharDevice
	case ModeBlock:
		f |= fs.ModeDevice
	}
	return f
}
