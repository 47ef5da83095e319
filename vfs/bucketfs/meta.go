package bucketfs

import (
	"context"
	"syscall"
	"time"

	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

// maxMeta bounds an inode's extended attributes together, below what an object's metadata may have.
const maxMeta = bucket.MaxMeta - 4<<10

// vacant finds the directory for a new name and the key's part that it stands for; EEXIST.
func (f *FS) vacant(ctx context.Context, dir vfs.Ino, name string) (d *node, part string, err error) {
	if d, err = f.getDir(dir); err != nil {
		return nil, "", err
	}
	if f.b == nil {
		return nil, "", syscall.EROFS
	}
	if err := f.refresh(ctx); err != nil {
		return nil, "", err
	}
	if _, err := f.child(ctx, d, name); err == nil {
		return nil, "", syscall.EEXIST
	} else if err != syscall.ENOENT {
		return nil, "", err
	}
	dec, ok := decode(d.begun, name)
	if !ok || dec.chunk || dec.shadowed {
		return nil, "", syscall.EINVAL // the name is kept for escapes
	}
	if len(d.base())+len(dec.part) > bucket.MaxKey {
		return nil, "", syscall.ENAMETOOLONG
	}
	return d, dec.part, nil
}

// posix returns the attributes of a new inode.
func (f *FS) posix(mode vfs.Mode, c vfs.Cred) bucket.Posix {
	now := f.opt.Now().UnixNano()
	return bucket.Posix{Mode: uint32(mode), UID: c.UID, GID: c.GID, Access: now, Change: now}
}

// Create implements vfs.FS. The file is in the bucket when it is first closed.
func (f *FS) Create(ctx context.Context, dir vfs.Ino, name string, mode vfs.Mode, c vfs.Cred) (vfs.Attr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, part, err := f.vacant(ctx, dir, name)
	if err != nil {
		return vfs.Attr{}, err
	}
	n := &node{fresh: true, px: f.posix(vfs.ModeRegular|mode&vfs.ModePerm, c)}
	n.mtime = time.Unix(0, n.px.Change)
	n.data.loaded.Store(true)
	f.temp++
	f.number(n, vfs.Ino(1<<62|f.temp))
	f.attach(n, d, name, part, false)
	f.touch(d)
	return f.refer(n), nil
}

// put makes an object that isn't a regular file, in the bucket at once.
func (f *FS) put(ctx context.Context, dir vfs.Ino, name string, px bucket.Posix) (vfs.Attr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, part, err := f.vacant(ctx, dir, name)
	if err != nil {
		return vfs.Attr{}, err
	}
	op := bucket.Op{Kind: bucket.OpPut, Key: d.base() + part, Object: &bucket.Object{Posix: &px, Modified: time.Unix(0, px.Change)}, Cond: &bucket.Condition{IfNoneMatch: []string{"*"}}}
	if _, err := f.apply(ctx, op); err != nil {
		return vfs.Attr{}, exists(err)
	}
	return f.added(ctx, d, name)
}

// exists is the error of a creation that somebody else's preceded.
func exists(err error) error {
	if errs.Is(err, errs.Precondition) || errs.Is(err, errs.Exists) {
		return syscall.EEXIST
	}
	return err
}

// added looks up what was just made.
func (f *FS) added(ctx context.Context, d *node, name string) (vfs.Attr, error) {
	f.touch(d)
	n, err := f.child(ctx, d, name)
	if err != nil {
		return vfs.Attr{}, err
	}
	return f.refer(n), nil
}

// Mknod implements vfs.FS.
func (f *FS) Mknod(ctx context.Context, dir vfs.Ino, name string, mode vfs.Mode, rdev uint64, c vfs.Cred) (vfs.Attr, error) {
	px := f.posix(mode, c)
	px.Rdev = rdev
	return f.put(ctx, dir, name, px)
}

// Symlink implements vfs.FS.
func (f *FS) Symlink(ctx context.Context, dir vfs.Ino, name, target string, c vfs.Cred) (vfs.Attr, error) {
	px := f.posix(vfs.ModeSymlink|0o777, c)
	px.Link = target
	return f.put(ctx, dir, name, px)
}

// Readlink implements vfs.FS.
func (f *FS) Readlink(_ context.Context, ino vfs.Ino) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.get(ino)
	if err == nil && !vfs.Mode(n.px.Mode).IsSymlink() {
		err = syscall.EINVAL
	}
	if err != nil {
		return "", err
	}
	return n.px.Link, nil
}

// Mkdir implements vfs.FS.
func (f *FS) Mkdir(ctx context.Context, dir vfs.Ino, name string, mode vfs.Mode, c vfs.Cred) (vfs.Attr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, part, err := f.vacant(ctx, dir, name)
	if err != nil {
		return vfs.Attr{}, err
	}
	if len(d.base())+len(part) >= bucket.MaxKey {
		return vfs.Attr{}, syscall.ENAMETOOLONG
	}
	px := f.posix(vfs.ModeDir|mode&vfs.ModePerm, c)
	if _, err := f.apply(ctx, putDir(d.base()+part+"/", px, time.Unix(0, px.Change))); err != nil {
		return vfs.Attr{}, err
	}
	return f.added(ctx, d, name)
}

func putDir(path string, px bucket.Posix, mtime time.Time) bucket.Op {
	return bucket.Op{Kind: bucket.OpPutDir, Key: path, Dir: &bucket.Dir{Path: path, Posix: px, Modified: mtime}}
}

// Link implements vfs.FS.
func (f *FS) Link(ctx context.Context, ino, dir vfs.Ino, name string) (vfs.Attr, error) {
	f.mu.Lock()
	n, err := f.get(ino)
	f.mu.Unlock()
	if err != nil {
		return vfs.Attr{}, err
	}
	if err := f.flushNode(ctx, n, true); err != nil { // the bucket can't name twice what it doesn't have
		return vfs.Attr{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	d, part, err := f.vacant(ctx, dir, name)
	if err != nil {
		return vfs.Attr{}, err
	}
	if n.dir {
		return vfs.Attr{}, syscall.EPERM
	}
	o, err := f.object(ctx, n)
	if err != nil {
		return vfs.Attr{}, err
	}
	if o == nil || n.gone {
		return vfs.Attr{}, syscall.ENOENT
	}
	to := d.base() + part
	if _, err := f.apply(ctx, bucket.Op{Kind: bucket.OpLink, Key: o.Key, To: to}); err != nil {
		if errs.Is(err, errs.Limit) {
			return vfs.Attr{}, syscall.EMLINK
		}
		return vfs.Attr{}, exists(err)
	}
	f.attach(n, d, name, part, false)
	if o, err := f.view.Get(ctx, to); err == nil {
		f.setObject(n, o)
	}
	n.px.Change = f.opt.Now().UnixNano()
	f.touch(d)
	return f.refer(n), nil
}

// Unlink implements vfs.FS.
func (f *FS) Unlink(ctx context.Context, dir vfs.Ino, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, n, err := f.victim(ctx, dir, name)
	if err != nil {
		return err
	}
	if n.dir {
		return syscall.EISDIR
	}
	if !n.fresh {
		key := d.base() + n.partIn(d, name)
		ops := []bucket.Op{{Kind: bucket.OpDelete, Key: key}}
		if ops, err = f.keepDir(ctx, d, key, ops); err != nil {
			return err
		}
		if _, err := f.apply(ctx, ops...); err != nil {
			return err
		}
	}
	n.px.Change = f.opt.Now().UnixNano()
	f.detach(n, d, name)
	f.touch(d)
	return nil
}

// victim resolves a name that is to go.
func (f *FS) victim(ctx context.Context, dir vfs.Ino, name string) (d, n *node, err error) {
	if d, err = f.getDir(dir); err != nil {
		return nil, nil, err
	}
	if f.b == nil {
		return nil, nil, syscall.EROFS
	}
	if err = f.refresh(ctx); err != nil {
		return nil, nil, err
	}
	n, err = f.child(ctx, d, name)
	return d, n, err
}

// partIn returns the part of a key that a node's name stands for.
func (n *node) partIn(d *node, name string) string {
	for _, e := range n.names {
		if e.parent == d && e.name == name {
			return e.part
		}
	}
	return name
}

// keepDir adds to operations that take a key, or all keys below it if it ends in a slash, out of a directory what keeps
// the directory in being, if only that key implied it.
func (f *FS) keepDir(ctx context.Context, d *node, key string, ops []bucket.Op) ([]bucket.Op, error) {
	for d.begun != "" {
		d = d.names[0].parent
	}
	if d == f.root {
		return ops, nil
	}
	prefix := d.prefix()
	rec, err := f.record(ctx, prefix)
	if rec != nil || err != nil {
		return ops, err
	}
	c := f.view.Scan(bucket.Scan{Prefix: prefix, Dirs: true})
	for range 2 {
		if !c.Next(ctx) {
			if err := c.Err(); err != nil {
				return nil, wrap(err)
			}
			break
		}
		if k := c.Key(); k != key && (key[len(key)-1] != '/' || len(k) < len(key) || k[:len(key)] != key) {
			return ops, nil // something else is there
		}
		if key[len(key)-1] == '/' {
			c.Seek(key[:len(key)-1] + "0")
		}
	}
	return append(ops, putDir(prefix, d.px, d.mtime)), nil
}

// Rmdir implements vfs.FS.
func (f *FS) Rmdir(ctx context.Context, dir vfs.Ino, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, n, err := f.victim(ctx, dir, name)
	if err != nil {
		return err
	}
	if !n.dir {
		return syscall.ENOTDIR
	}
	if err := f.empty(ctx, n); err != nil {
		return err
	}
	ops, err := f.removeDir(ctx, n, nil)
	if err != nil {
		return err
	}
	if ops, err = f.keepDir(ctx, d, n.prefix(), ops); err != nil {
		return err
	}
	if _, err := f.apply(ctx, ops...); err != nil {
		return err
	}
	f.detach(n, d, name)
	f.touch(d)
	return nil
}

// empty checks that a directory holds nothing; ENOTEMPTY.
func (f *FS) empty(ctx context.Context, n *node) error {
	if n.begun != "" || n.below > 0 {
		return syscall.ENOTEMPTY
	}
	prefix := n.prefix()
	c := f.view.Scan(bucket.Scan{Prefix: prefix, Dirs: true})
	for c.Next(ctx) {
		if c.Key() != prefix {
			return syscall.ENOTEMPTY
		}
		if o := c.Object(); o == nil || o.Size > 0 {
			return syscall.ENOTEMPTY // a marker with contents shows as a file
		}
	}
	return wrap(c.Err())
}

// removeDir adds what removes an empty directory: its record and its marker.
func (f *FS) removeDir(ctx context.Context, n *node, ops []bucket.Op) ([]bucket.Op, error) {
	prefix := n.prefix()
	ops = append(ops, bucket.Op{Kind: bucket.OpDeleteDir, Key: prefix})
	if _, err := f.view.Get(ctx, prefix); err == nil {
		ops = append(ops, bucket.Op{Kind: bucket.OpDelete, Key: prefix})
	} else if !errs.Is(err, errs.NotFound) {
		return nil, wrap(err)
	}
	return ops, nil
}

// SetAttr implements vfs.FS.
func (f *FS) SetAttr(ctx context.Context, ino vfs.Ino, s vfs.SetAttr) (vfs.Attr, error) {
	if f.b == nil {
		return vfs.Attr{}, syscall.EROFS
	}
	if s.Size != nil {
		h, err := f.Open(ctx, ino, vfs.O_WRONLY)
		if err != nil {
			return vfs.Attr{}, err
		}
		err = h.Truncate(*s.Size)
		if cerr := h.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return vfs.Attr{}, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.get(ino)
	if err == nil {
		err = f.current(ctx, n)
	}
	if err != nil {
		return vfs.Attr{}, err
	}
	if s.Size = nil; s == (vfs.SetAttr{}) {
		return f.attr(n), nil
	}
	return f.change(ctx, n, func(px *bucket.Posix, mtime *time.Time) { setAttr(px, mtime, s, f.opt.Now()) })
}

func setAttr(px *bucket.Posix, mtime *time.Time, s vfs.SetAttr, now time.Time) {
	if s.Mode != nil {
		px.Mode = px.Mode&uint32(vfs.ModeType) | uint32(*s.Mode&vfs.ModePerm)
	}
	if s.UID != nil {
		px.UID = *s.UID
	}
	if s.GID != nil {
		px.GID = *s.GID
	}
	if s.AtimeNow {
		px.Access = now.UnixNano()
	}
	if s.Atime != nil {
		px.Access = s.Atime.UnixNano()
	}
	if s.MtimeNow {
		*mtime = now
	}
	if s.Mtime != nil {
		*mtime = *s.Mtime
	}
}

// change edits a node's attributes and stores them. The caller holds mu.
func (f *FS) change(ctx context.Context, n *node, edit func(px *bucket.Posix, mtime *time.Time)) (vfs.Attr, error) {
	a := f.attr(n)
	px, mtime := n.px, a.Mtime
	edit(&px, &mtime)
	px.Change = f.opt.Now().UnixNano()
	switch {
	case n.dir && !n.gone:
		prefix := n.prefix()
		if n.begun != "" {
			return a, syscall.EPERM // a directory for long parts is only a way to show them
		}
		if _, err := f.apply(ctx, putDir(prefix, px, mtime)); err != nil && !(n == f.root && errs.Is(err, errs.Invalid)) {
			return a, err
		}
		if rec, err := f.view.Dir(ctx, prefix); err == nil {
			f.setDir(n, rec)
			if n == f.root {
				f.seen = f.age
			} else {
				f.saw(n, n.names[0].parent, n.names[0].name)
			}
		}
	case !n.dir && !n.fresh && !n.gone:
		o, err := f.object(ctx, n)
		if err != nil {
			return a, err
		}
		if o == nil {
			break // replaced meanwhile: only this file remembers
		}
		meta := &bucket.Object{Headers: o.Headers, Meta: o.Meta, Tags: o.Tags, Posix: &px, Modified: mtime}
		if _, err := f.apply(ctx, bucket.Op{Kind: bucket.OpSetMeta, Key: o.Key, Object: meta}); err != nil {
			return a, err
		}
		if now, err := f.view.Get(ctx, o.Key); err == nil {
			f.setObject(n, now)
			f.sawKey(n, o.Key)
		}
	}
	n.px, n.mtime, n.moved = px, mtime, time.Time{}
	if n.data.mtime.Load() != 0 { // writes since don't change a time that was set
		n.data.mtime.Store(mtime.UnixNano())
	}
	return f.attr(n), nil
}

// StatFS implements vfs.FS.
func (f *FS) StatFS(ctx context.Context) (vfs.StatFS, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.refresh(ctx); err != nil {
		return vfs.StatFS{}, err
	}
	i := f.view.Info()
	const magic = 0x61677274
	blocks := uint64(1 << 40) // no limit of its own: 4 PiB
	if f.opt.Bytes > 0 {
		blocks = uint64(f.opt.Bytes) / 4096
	}
	used := (i.Bytes + uint64(max(f.grown, 0)) + 4095) / 4096
	return vfs.StatFS{Type: magic, BlockSize: 4096, Blocks: blocks, Free: blocks - min(used, blocks), Files: 1 << 40, FFree: 1<<40 - min(i.Objects, 1<<40)}, nil
}
