package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

// The user that sandboxes have where the node's options name none.
const defaultUID = 1000

// startDir is where relative paths begin when the spec names none.
const startDir = "/workspace"

// files implements Files over a namespace, in the name of the sandbox's user. Paths are cleaned before anything is looked up:
// ".." is the directory that the text names, whatever symbolic links there are. Links are resolved inside of the namespace,
// which nothing leaves.
type files struct {
	s    *Sandbox
	ns   *vfs.Namespace
	cred vfs.Cred
	dir  string
	user vfs.Cred     // the sandbox's
	who  string       // as As was told
	give *vfs.SetAttr // what is made gets it; nil: it belongs to cred
}

// Files returns the sandbox's files; errs.Unsupported where the engine doesn't show them.
func (s *Sandbox) Files() (Files, error) {
	ns := s.Namespace()
	if ns == nil {
		return nil, errs.Msg(errs.Unsupported, "files", s.id, "this engine doesn't show the files of its sandboxes")
	}
	f := &files{s: s, ns: ns, cred: vfs.Cred{UID: s.n.o.UID, GID: s.n.o.GID}, dir: s.spec.Dir}
	if f.cred.UID == 0 {
		f.cred.UID, f.cred.GID = defaultUID, defaultUID
	}
	f.user = f.cred
	if f.dir == "" {
		f.dir = startDir
	}
	return f, nil
}

// Files implements Host.
func (l *local) Files(_ context.Context, id string) (Files, error) {
	s, err := l.hosted(id)
	if err != nil {
		return nil, err
	}
	return s.Files()
}

// path makes a path absolute.
func (f *files) path(op, p string) (string, error) {
	switch {
	case strings.IndexByte(p, 0) >= 0:
		return "", errs.Msg(errs.Invalid, op, "path", "it has a NUL byte")
	case !utf8.ValidString(p):
		return "", errs.Msg(errs.Invalid, op, "path", "it isn't UTF-8")
	case len(p) >= vfs.MaxPath:
		return "", errs.Msg(errs.Invalid, op, "path", fmt.Sprintf("a path has at most %d bytes", vfs.MaxPath-1))
	}
	for name := range strings.SplitSeq(p, "/") {
		if len(name) > vfs.MaxName {
			return "", errs.Msg(errs.Invalid, op, "path", fmt.Sprintf("a name has at most %d bytes", vfs.MaxName))
		}
	}
	if !strings.HasPrefix(p, "/") {
		p = f.dir + "/" + p
	}
	if p = path.Clean(p); len(p) >= vfs.MaxPath {
		return "", errs.Msg(errs.Invalid, op, "path", fmt.Sprintf("a path has at most %d bytes", vfs.MaxPath-1))
	}
	return p, nil
}

// begin checks a path, and counts as use of the sandbox.
func (f *files) begin(ctx context.Context, op, p string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", errs.New(errs.Canceled, op, p, err)
	}
	if err := f.known(op); err != nil {
		return "", err
	}
	p, err := f.path(op, p)
	if err != nil {
		return "", err
	}
	select {
	case <-f.s.done:
		return "", errs.Msg(errs.Unavailable, op, f.s.id, "the sandbox has ended")
	default:
	}
	f.s.Touch()
	return p, nil
}

// fail is the error of a call of the namespace.
func fail(op, p string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return errs.New(errs.Canceled, op, p, err)
	}
	kind := errs.Other
	switch vfs.Errno(err) {
	case syscall.ENOENT, syscall.ESTALE:
		kind = errs.NotFound
	case syscall.EEXIST:
		kind = errs.Exists
	case syscall.ENOTEMPTY:
		kind = errs.NotEmpty
	case syscall.EACCES, syscall.EPERM, syscall.EROFS:
		kind = errs.Denied
	case syscall.EBUSY:
		kind = errs.Conflict
	case syscall.ENOTDIR, syscall.EISDIR, syscall.EINVAL, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.ESPIPE, syscall.ENXIO:
		kind = errs.Invalid
	case syscall.EFBIG:
		kind = errs.TooLarge
	case syscall.ENOSPC, syscall.EDQUOT:
		kind = errs.NoSpace
	case syscall.EINTR:
		kind = errs.Canceled
	case syscall.EAGAIN, syscall.ETIMEDOUT: // of an engine that can't reach the files now, and says why
		return errs.New(errs.Unavailable, op, p, err)
	}
	return errs.Msg(kind, op, p, strings.ToLower(vfs.Strerror(err)))
}

// info describes a file; a link isn't followed.
func (f *files) info(ctx context.Context, p string) (*api.FileInfo, error) {
	a, err := f.ns.Lstat(ctx, f.cred, "", p)
	if err != nil {
		return nil, err
	}
	i := infoOf(p, a)
	if i.Type == "symlink" {
		if i.Target, err = f.ns.Readlink(ctx, f.cred, "", p); err != nil {
			return nil, err
		}
		i.Target = strings.ToValidUTF8(i.Target, "\ufffd")
	}
	return i, nil
}

func infoOf(p string, a vfs.Attr) *api.FileInfo {
	i := &api.FileInfo{Path: p, Name: path.Base(p), Type: "other", Size: a.Size, Mode: uint32(a.Mode & vfs.ModePerm), UID: a.UID, GID: a.GID, Modified: a.Mtime.UTC()}
	switch {
	case a.Mode.IsDir():
		i.Type, i.Size = "directory", 0
	case a.Mode.IsRegular():
		i.Type = "file"
	case a.Mode.IsSymlink():
		i.Type = "symlink"
	}
	return i
}

// Stat implements Files. A symbolic link is described itself.
func (f *files) Stat(ctx context.Context, p string) (*api.FileInfo, error) {
	const op = "stat"
	p, err := f.begin(ctx, op, p)
	if err != nil {
		return nil, err
	}
	i, err := f.info(ctx, p)
	if err != nil {
		return nil, fail(op, p, err)
	}
	return i, nil
}

// Limits of List.
const (
	maxDepth = 256
	maxList  = 10_000 // entries at once
)

// List implements Files. A directory comes right before what is in it, names in the order of their bytes. Names that aren't UTF-8
// are left out, and so is what is in directories beneath that the user may not read.
func (f *files) List(ctx context.Context, p string, depth, limit int, after string) ([]api.FileInfo, bool, error) {
	const op = "list"
	p, err := f.begin(ctx, op, p)
	if err != nil {
		return nil, false, err
	}
	if after != "" {
		if after, err = f.path(op, after); err != nil {
			return nil, false, err
		}
	}
	if limit <= 0 || limit > maxList {
		limit = maxList
	}
	l := &lister{f: f, ctx: ctx, limit: limit, after: after}
	if err := l.dir(p, min(max(depth, 1), maxDepth), true); err != nil {
		return nil, false, fail(op, p, err)
	}
	return l.out, l.more, nil
}

// lister is one call of List.
type lister struct {
	f     *files
	ctx   context.Context
	limit int
	after string
	out   []api.FileInfo
	more  bool
}

// before orders paths as List does: "a", "a/b", "a-b".
func before(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		x, y := a[i], b[i]
		switch {
		case x == y:
			continue
		case x == '/':
			return -1
		case y == '/':
			return 1
		case x < y:
			return -1
		}
		return 1
	}
	return len(a) - len(b)
}

func (l *lister) dir(dir string, depth int, top bool) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	entries, err := l.f.ns.ReadDir(l.ctx, l.f.cred, "", dir)
	if err != nil {
		if no := vfs.Errno(err); !top && (no == syscall.EACCES || no == syscall.ENOENT || no == syscall.ENOTDIR) {
			return nil
		}
		return err
	}
	slices.SortFunc(entries, func(a, b vfs.DirEntry) int { return strings.Compare(a.Name, b.Name) })
	for _, e := range entries {
		if !utf8.ValidString(e.Name) || hidden(e.Name) {
			continue
		}
		p := path.Join(dir, e.Name)
		seen := l.after != "" && before(p, l.after) <= 0
		isDir := e.Mode&vfs.ModeType == vfs.ModeDir
		if seen && !(isDir && (p == l.after || strings.HasPrefix(l.after, p+"/"))) {
			continue
		}
		if !seen {
			if len(l.out) == l.limit {
				l.more = true
				return nil
			}
			i, err := l.f.info(l.ctx, p)
			if err != nil {
				if l.ctx.Err() != nil {
					return err
				}
				continue // gone meanwhile
			}
			isDir = i.Type == "directory"
			l.out = append(l.out, *i)
		}
		if isDir && depth > 1 {
			if err := l.dir(p, depth-1, false); err != nil || l.more {
				return err
			}
		}
	}
	return nil
}

// Open implements Files. Symbolic links are followed; only regular files can be read.
func (f *files) Open(ctx context.Context, p string, offset int64) (io.ReadCloser, *api.FileInfo, error) {
	const op = "read"
	p, err := f.begin(ctx, op, p)
	if err != nil {
		return nil, nil, err
	}
	if offset < 0 {
		return nil, nil, errs.Msg(errs.Invalid, op, p, "the offset is negative")
	}
	if err := f.regular(ctx, op, p); err != nil {
		return nil, nil, err
	}
	file, err := f.ns.Open(context.WithoutCancel(ctx), f.cred, "", p, vfs.O_RDONLY|vfs.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fail(op, p, err)
	}
	a, err := file.Attr()
	if err == nil && !a.Mode.IsRegular() {
		err = syscall.EINVAL // replaced meanwhile
	}
	if err != nil {
		file.Close()
		return nil, nil, fail(op, p, err)
	}
	return &reader{f: f, ctx: ctx, file: file, path: p, at: offset}, infoOf(p, a), nil
}

// regular refuses what isn't a regular file: to open it may wait, or have an effect.
func (f *files) regular(ctx context.Context, op, p string) error {
	a, err := f.ns.Stat(ctx, f.cred, "", p)
	switch {
	case err != nil:
		return fail(op, p, err)
	case a.Mode.IsDir():
		return errs.Msg(errs.Invalid, op, p, "it is a directory")
	case !a.Mode.IsRegular():
		return errs.Msg(errs.Invalid, op, p, "it isn't a regular file")
	}
	return nil
}

// reader reads a file from a place on.
type reader struct {
	f    *files
	ctx  context.Context
	file vfs.File
	path string
	at   int64
}

func (r *reader) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if err := r.ctx.Err(); err != nil {
		return 0, errs.New(errs.Canceled, "read", r.path, err)
	}
	r.f.s.Touch()
	n, err := r.file.ReadAt(b, r.at)
	r.at += int64(n)
	switch {
	case n > 0:
		return n, nil
	case err == nil || err == io.EOF:
		return 0, io.EOF
	}
	return 0, fail("read", r.path, err)
}

func (r *reader) Close() error { return fail("read", r.path, r.file.Close()) }
