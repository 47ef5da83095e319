package e2b

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"agentrun.dev/errs"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/bucketfs"
)

// Files in volumes belong to the sandboxes' user unless something else is said.
const (
	userID        = 1000
	maxEntries    = 10_000 // in one list
	maxDepth      = 32
	maxFile       = 64 << 30 // bytes in one request
	defaultMode   = 0o644
	defaultFolder = 0o755
)

// root is in whose name files of volumes are touched: whoever may use a volume may do everything in it.
var root = vfs.Cred{}

// entryStat describes a file of a volume.
type entryStat struct {
	Name   string    `json:"name"`
	Path   string    `json:"path"`
	Type   string    `json:"type"`
	Size   int64     `json:"size"`
	Mode   uint32    `json:"mode"`
	UID    uint32    `json:"uid"`
	GID    uint32    `json:"gid"`
	Atime  time.Time `json:"atime"`
	Mtime  time.Time `json:"mtime"`
	Ctime  time.Time `json:"ctime"`
	Target string    `json:"target,omitempty"`
}

// content is the files of a volume while a request is answered.
type content struct {
	ns   *vfs.Namespace
	fs   *bucketfs.FS
	path string
}

// open finds the volume and the path that a request names, for whom its token is of.
func (h *Handler) content(r *request) (*content, error) {
	const op = "open volume"
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	if err := h.volumeCaller(r, strings.TrimSpace(token)); err != nil {
		return nil, err
	}
	v, err := h.useVolume(r)
	if err != nil {
		return nil, err
	}
	p := r.URL.Query().Get("path")
	if strings.ContainsRune(p, 0) || !utf8.ValidString(p) || len(p) > 4096 {
		return nil, errs.Msg(errs.Invalid, op, "path", "want a path of at most 4096 bytes")
	}
	b, err := h.Store.Bucket(r.Context(), v.Bucket)
	if err != nil {
		return nil, err
	}
	fs, err := bucketfs.New(r.Context(), b, bucketfs.Options{UID: userID, GID: userID, Bytes: v.Size})
	if err != nil {
		return nil, err
	}
	return &content{ns: vfs.NewNamespace(vfs.Mount{FS: fs, Source: "bucket:" + v.Bucket, Type: "bucket"}), fs: fs, path: path.Clean("/" + p)}, nil
}

func (c *content) close(ctx context.Context) { _ = c.fs.Close(context.WithoutCancel(ctx)) }

// failed words an error of the filesystem.
func (c *content) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	var known *errs.Error
	if errors.As(err, &known) {
		return err
	}
	kind := errs.Other
	switch vfs.Errno(err) {
	case syscall.ENOENT, syscall.ENOTDIR:
		kind = errs.NotFound
	case syscall.EEXIST, syscall.ENOTEMPTY:
		kind = errs.Exists
	case syscall.EISDIR, syscall.EINVAL, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.EPERM, syscall.EBUSY:
		kind = errs.Invalid
	case syscall.ENOSPC, syscall.EDQUOT:
		kind = errs.NoSpace
	case syscall.EFBIG:
		kind = errs.TooLarge
	}
	return errs.New(kind, op, clip(c.path), err)
}

func (c *content) stat(ctx context.Context, p string) (*entryStat, error) {
	a, err := c.ns.Lstat(ctx, root, "/", p)
	if err != nil {
		return nil, err
	}
	e := &entryStat{Name: path.Base(p), Path: p, Type: "unknown", Size: a.Size, Mode: uint32(a.Mode & 0o7777), UID: a.UID, GID: a.GID,
		Atime: a.Atime.UTC(), Mtime: a.Mtime.UTC(), Ctime: a.Ctime.UTC()}
	switch {
	case a.Mode.IsDir():
		e.Type = "directory"
	case a.Mode.IsRegular():
		e.Type = "file"
	case a.Mode.IsSymlink():
		e.Type = "symlink"
		if e.Target, err = c.ns.Readlink(ctx, root, "/", p); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// walk adds what is beneath a directory, so many levels deep.
func (c *content) walk(ctx context.Context, dir string, depth int, out *[]entryStat) error {
	list, err := c.ns.ReadDir(ctx, root, "/", dir)
	if err != nil {
		return err
	}
	sortBy(list, func(e vfs.DirEntry) string { return e.Name })
	for _, d := range list {
		if len(*out) >= maxEntries {
			return errs.Msg(errs.Limit, "list volume", clip(dir), fmt.Sprintf("more than %d entries", maxEntries))
		}
		e, err := c.stat(ctx, path.Join(dir, d.Name))
		if vfs.Errno(err) == syscall.ENOENT && err != nil {
			continue // gone meanwhile
		}
		if err != nil {
			return err
		}
		*out = append(*out, *e)
		if e.Type == "directory" && depth > 1 {
			if err := c.walk(ctx, e.Path, depth-1, out); err != nil && vfs.Errno(err) != syscall.ENOENT {
				return err
			}
		}
	}
	return nil
}

func (h *Handler) volumeList(w http.ResponseWriter, r *request) error {
	depth, err := number(r.URL.Query(), "depth", 1, maxDepth)
	if err != nil {
		return err
	}
	c, err := h.content(r)
	if err != nil {
		return err
	}
	defer c.close(r.Context())
	out := []entryStat{}
	if err := c.walk(r.Context(), c.path, max(1, depth), &out); err != nil {
		return c.failed("list volume", err)
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// given ownership and mode of what is made or changed; nil stays.
func (c *content) attributes(r *request) (s vfs.SetAttr, force bool, err error) {
	q := r.URL.Query()
	for _, p := range []struct {
		name string
		set  func(uint32)
		most uint64
	}{{"uid", func(n uint32) { s.UID = &n }, 1<<32 - 2}, {"gid", func(n uint32) { s.GID = &n }, 1<<32 - 2}, {"mode", func(n uint32) { m := vfs.Mode(n); s.Mode = &m }, 0o7777}} {
		text := q.Get(p.name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n > p.most {
			return s, false, errs.Msg(errs.Invalid, "read request", p.name, fmt.Sprintf("want a number to %d", p.most))
		}
		p.set(uint32(n))
	}
	return s, q.Get("force") == "true", nil
}

// answer tells of a file after a change, which is durable then.
func (c *content) answer(w http.ResponseWriter, r *request, op string, status int) error {
	if err := c.fs.Flush(r.Context(), true); err != nil {
		return c.failed(op, err)
	}
	e, err := c.stat(r.Context(), c.path)
	if err != nil {
		return c.failed(op, err)
	}
	writeJSON(w, status, e)
	return nil
}

// own gives what was made to the sandboxes' user, or as was asked for.
func (c *content) own(ctx context.Context, p string, s vfs.SetAttr) error {
	id := uint32(userID)
	if s.UID == nil {
		s.UID = &id
	}
	if s.GID == nil {
		s.GID = &id
	}
	return c.ns.SetAttr(ctx, root, "/", p, s, false)
}

// parents makes the directories above a path.
func (c *content) parents(ctx context.Context, p string) error {
	dir := path.Dir(p)
	if dir == "/" {
		return nil
	}
	_, err := c.ns.Stat(ctx, root, "/", dir)
	if err == nil || vfs.Errno(err) != syscall.ENOENT {
		return err
	}
	if err := c.parents(ctx, dir); err != nil {
		return err
	}
	if err := c.ns.Mkdir(ctx, root, "/", dir, defaultFolder); err != nil && vfs.Errno(err) != syscall.EEXIST {
		return err
	}
	return c.own(ctx, dir, vfs.SetAttr{})
}

func (h *Handler) volumeMkdir(w http.ResponseWriter, r *request) error {
	const op = "make directory"
	c, err := h.content(r)
	if err != nil {
		return err
	}
	defer c.close(r.Context())
	s, force, err := c.attributes(r)
	if err != nil {
		return err
	}
	if force {
		if err := c.parents(r.Context(), c.path); err != nil {
			return c.failed(op, err)
		}
	}
	err = c.ns.Mkdir(r.Context(), root, "/", c.path, defaultFolder)
	if err != nil && !(force && vfs.Errno(err) == syscall.EEXIST) {
		return c.failed(op, err)
	}
	if err == nil {
		if err := c.own(r.Context(), c.path, s); err != nil {
			return c.failed(op, err)
		}
	}
	return c.answer(w, r, op, http.StatusCreated)
}

func (h *Handler) volumeStat(w http.ResponseWriter, r *request) error {
	c, err := h.content(r)
	if err != nil {
		return err
	}
	defer c.close(r.Context())
	e, err := c.stat(r.Context(), c.path)
	if err != nil {
		return c.failed("find file", err)
	}
	writeJSON(w, http.StatusOK, e)
	return nil
}

func (h *Handler) volumeChange(w http.ResponseWriter, r *request) error {
	const op = "change file"
	var in struct{ UID, GID, Mode *uint32 }
	if err := decode(w, r, &in); err != nil {
		return err
	}
	if in.Mode != nil && *in.Mode > 0o7777 {
		return errs.Msg(errs.Invalid, op, "mode", "want permission bits")
	}
	c, err := h.content(r)
	if err != nil {
		return err
	}
	defer c.close(r.Context())
	s := vfs.SetAttr{UID: in.UID, GID: in.GID}
	if in.Mode != nil {
		m := vfs.Mode(*in.Mode)
		s.Mode = &m
	}
	if err := c.ns.SetAttr(r.Context(), root, "/", c.path, s, false); err != nil {
		return c.failed(op, err)
	}
	return c.answer(w, r, op, http.StatusOK)
}

func (h *Handler) volumeRemove(w http.ResponseWriter, r *request) error {
	const op = "remove file"
	c, err := h.content(r)
	if err != nil {
		return err
	}
	defer c.close(r.Context())
	if c.path == "/" {
		return errs.Msg(errs.Invalid, op, "/", "the volume itself is deleted by DELETE /volumes")
	}
	if err := c.remove(r.Context(), c.path); err != nil {
		return c.failed(op, err)
	}
	if err := c.fs.Flush(r.Context(), true); err != nil {
		return c.failed(op, err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// remove removes a file, or a directory with all that is in it.
func (c *content) remove(ctx context.Context, p string) error {
	a, err := c.ns.Lstat(ctx, root, "/", p)
	if err != nil {
		return err
	}
	if !a.Mode.IsDir() {
		return c.ns.Unlink(ctx, root, "/", p)
	}
	list, err := c.ns.ReadDir(ctx, root, "/", p)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := c.remove(ctx, path.Join(p, e.Name)); err != nil && vfs.Errno(err) != syscall.ENOENT {
			return err
		}
	}
	return c.ns.Rmdir(ctx, root, "/", p)
}

func (h *Handler) volumeRead(w http.ResponseWriter, r *request) error {
	const op = "read file"
	c, err := h.content(r)
	if err != nil {
		return err
	}
	defer c.close(r.Context())
	f, err := c.ns.Open(r.Context(), root, "/", c.path, syscall.O_RDONLY, 0)
	if err != nil {
		return c.failed(op, err)
	}
	defer f.Close()
	a, err := f.Attr()
	if err == nil && !a.Mode.IsRegular() {
		return errs.Msg(errs.Invalid, op, clip(c.path), "it isn't a regular file")
	}
	if err != nil {
		return c.failed(op, err)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(a.Size, 10))
	rc := http.NewResponseController(w)
	buf := make([]byte, 64<<10)
	for left := a.Size; left > 0; {
		n, err := f.Read(buf[:min(int64(len(buf)), left)])
		if n > 0 {
			_ = rc.SetWriteDeadline(time.Now().Add(writeDeadline))
			if _, werr := w.Write(buf[:n]); werr != nil {
				return nil // the client went away
			}
			left -= int64(n)
		}
		if err != nil && left > 0 {
			panic(http.ErrAbortHandler) // it became shorter meanwhile: the answer must not look whole
		}
	}
	if a.Size == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return nil
}

// volumeWrite replaces a file once all of it has come.
func (h *Handler) volumeWrite(w http.ResponseWriter, r *request) error {
	const op = "write file"
	c, err := h.content(r)
	if err != nil {
		return err
	}
	defer c.close(r.Context())
	s, _, err := c.attributes(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	if err := c.parents(ctx, c.path); err != nil {
		return c.failed(op, err)
	}
	if a, err := c.ns.Stat(ctx, root, "/", c.path); err == nil {
		if a.Mode.IsDir() {
			return errs.Msg(errs.Invalid, op, clip(c.path), "it is a directory")
		}
		if s.Mode == nil {
			m := a.Mode & 0o7777
			s.Mode = &m
		}
		if s.UID == nil && s.GID == nil {
			s.UID, s.GID = &a.UID, &a.GID
		}
	}
	part := path.Join(path.Dir(c.path), ".e2b-partial-"+requestID())
	f, err := c.ns.Open(ctx, root, "/", part, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, defaultMode)
	if err != nil {
		return c.failed(op, err)
	}
	err = receive(w, r, f)
	if err = errors.Join(err, f.Close()); err == nil {
		err = c.own(ctx, part, s)
	}
	if err == nil {
		err = c.ns.Rename(ctx, root, "/", part, c.path, 0)
	}
	if err != nil {
		_ = c.ns.Unlink(context.WithoutCancel(ctx), root, "/", part)
		return c.failed(op, err)
	}
	return c.answer(w, r, op, http.StatusCreated)
}

// receive copies a request's body into a file, as long as bytes come.
func receive(w http.ResponseWriter, r *request, f io.Writer) error {
	rc := http.NewResponseController(w)
	body := http.MaxBytesReader(w, r.Body, maxFile)
	buf := make([]byte, 64<<10)
	for {
		_ = rc.SetReadDeadline(time.Now().Add(readDeadline))
		n, err := body.Read(buf)
		if n > 0 {
			if _, werr := f.Write(buf[:n]); werr != nil {
				return werr
			}
		}
		var tooLarge *http.MaxBytesError
		switch {
		case err == io.EOF:
			_ = rc.SetReadDeadline(time.Time{})
			return nil
		case errors.As(err, &tooLarge):
			return errs.Msg(errs.TooLarge, "write file", "", fmt.Sprintf("more than %d bytes", int64(maxFile)))
		case err != nil:
			return errs.Msg(errs.Invalid, "write file", "", "the body was cut off")
		}
	}
}
