package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"

	"agentrun.dev"
	"agentrun.dev/errs"
)

// View is a consistent read-only state of a bucket. Close it when done: it keeps what it shows from being collected.
// It may be used concurrently; its cursors may not.
type View struct {
	s      *Store
	st     *snap
	rec    *refRecord
	closed atomic.Bool
}

// View opens a bucket as it is (at 0), or was at a snapshot or any version within the history window.
func (s *Store) View(ctx context.Context, name string, at agentrun.Version) (*View, error) {
	b, err := s.Bucket(ctx, name)
	if err != nil {
		return nil, err
	}
	if at == 0 {
		return b.View(ctx)
	}
	return b.ViewAt(ctx, at)
}

// View opens the bucket as it is now; O(1).
func (b *Bucket) View(ctx context.Context) (*View, error) {
	r, err := b.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer b.s.release(r)
	return &View{s: b.s, st: r.snapshot(), rec: r.record()}, nil
}

// ViewAt opens the bucket as it was at a snapshot or any version within the history window; others are errs.NotFound.
func (b *Bucket) ViewAt(ctx context.Context, at agentrun.Version) (*View, error) {
	r, err := b.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer b.s.release(r)
	st, err := b.s.stateAt(ctx, r, at)
	if err != nil {
		return nil, err
	}
	return &View{s: b.s, st: st, rec: r.record()}, nil
}

// record returns the ref's present record, which isn't to be changed.
func (r *ref) record() *refRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recover()
	return r.rec
}

// Close ends the view. Readers that it opened go on.
func (v *View) Close() {
	if !v.closed.Swap(true) {
		v.st.base.release()
	}
}

// Info describes the bucket; Objects, Bytes and Version are those of this view.
func (v *View) Info() *Info {
	i := v.rec.info()
	i.Objects, i.Bytes, i.Version = uint64(v.st.objects), uint64(v.st.bytes), v.Version()
	return i
}

// Version is the last write that the view shows.
func (v *View) Version() agentrun.Version { return agentrun.Version(v.st.seq) }

// Get returns a key's current object, or errs.NotFound.
func (v *View) Get(ctx context.Context, key string) (*Object, error) {
	if len(key) > MaxKey {
		return nil, CheckKey(key)
	}
	o, err := v.st.getObject(ctx, key)
	if err == nil && o == nil {
		err = notFound("object", strconv.Quote(clip(key)), "no such key")
	}
	return o, err
}

// GetVersion finds one version of a key: the current one, a noncurrent one or a marker. With null it finds the version
// "null", whatever at is.
func (v *View) GetVersion(ctx context.Context, key string, at agentrun.Version, null bool) (*Object, error) {
	cur, err := v.st.getObject(ctx, key)
	if err != nil {
		return nil, err
	}
	if cur != nil && (null && cur.Null || !null && cur.Version == at) {
		cur.Latest = true
		return cur, nil
	}
	p := versionPrefix(key)
	if !null {
		rec, err := v.st.lookup(ctx, versionKey(key, at))
		if err != nil {
			return nil, err
		}
		if rec.val != nil {
			return v.st.object(ctx, key, rec)
		}
		return nil, notFound("version", strconv.Quote(clip(key)), "no such version")
	}
	c := v.st.scan(p, stringEnd(p))
	for n := 0; c.next(ctx); n++ {
		o, err := v.st.object(ctx, key, c.rec)
		if err != nil {
			return nil, err
		}
		if o.Null {
			o.Latest = cur == nil && n == 0
			return o, nil
		}
	}
	if c.err != nil {
		return nil, c.err
	}
	return nil, notFound("version", strconv.Quote(clip(key)), "no version \"null\"")
}

// Versions calls f for the versions and markers of each key with the prefix, keys in order, each one's newest version
// first, beginning after (startKey, startVersion); a startVersion of 0 begins after all of startKey's. An error from f
// ends it and is returned; io.EOF ends it well.
func (v *View) Versions(ctx context.Context, prefix, startKey string, startVersion agentrun.Version, f func(*Object) error) error {
	cur := v.st.scan(objectKey(max(prefix, startKey)), stringEnd(objectKey(prefix)))
	old := v.st.scan("v"+escapeKey(max(prefix, startKey)), stringEnd("v"+escapeKey(prefix)))
	curOK, oldOK := cur.next(ctx), old.next(ctx)
	last := ""
	first := true
	emit := func(key string, o *Object) error {
		if key < startKey || key == startKey && (startVersion == 0 && startKey != "" || startVersion != 0 && o.Version >= startVersion) {
			last, first = key, false
			return nil
		}
		o.Latest = first || key != last
		last, first = key, false
		return f(o)
	}
	for (curOK || oldOK) && cur.err == nil && old.err == nil {
		var key string
		var rec record
		oldKey, _, ok := "", agentrun.Version(0), true
		if oldOK {
			if oldKey, _, ok = splitVersionKey(old.key); !ok {
				return errs.Msg(errs.Corrupt, "list", "versions", "malformed key")
			}
		}
		fromCur := curOK && (!oldOK || cur.key[1:] <= oldKey)
		if fromCur {
			key, rec = cur.key[1:], cur.rec
		} else {
			key, rec = oldKey, old.rec
		}
		o, err := v.st.object(ctx, key, rec)
		if err != nil {
			return err
		}
		if err := emit(key, o); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if fromCur {
			curOK = cur.next(ctx)
		} else {
			oldOK = old.next(ctx)
		}
	}
	if cur.err != nil {
		return cur.err
	}
	return old.err
}

// Dir returns the attributes of a directory ("a/b/"), or errs.NotFound if it has none of its own.
func (v *View) Dir(ctx context.Context, path string) (*Dir, error) {
	rec, err := v.st.lookup(ctx, dirKey(path))
	if err != nil {
		return nil, err
	}
	if rec.val == nil {
		return nil, notFound("directory", strconv.Quote(clip(path)), "no attributes")
	}
	return decodeDir(path, rec.val)
}

// Dirs calls f for each directory record whose path begins with prefix, in order. io.EOF from f ends it well.
func (v *View) Dirs(ctx context.Context, prefix string, f func(*Dir) error) error {
	c := v.st.scan(dirKey(prefix), stringEnd(dirKey(prefix)))
	for c.next(ctx) {
		d, err := decodeDir(c.key[1:], c.rec.val)
		if err == nil {
			err = f(d)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return c.err
}

// Cursor goes through a view's objects in order of key.
type Cursor struct {
	v      *View
	prefix string
	c      *cursor
	dirs   *cursor // directory records, if empty directories are asked for
	dirsOK bool
	cOK    bool
	primed bool
	from   string
	key    string
	isDir  bool
	err    error
}

// Scan returns a cursor before the first key. It ends with the view.
func (v *View) Scan(o Scan) *Cursor {
	start := max(o.Prefix, o.Start)
	c := &Cursor{v: v, prefix: o.Prefix, from: start}
	c.c = v.st.scan(objectKey(start), stringEnd(objectKey(o.Prefix)))
	if o.Dirs {
		c.dirs = v.st.scan(dirKey(start), stringEnd(dirKey(o.Prefix)))
	}
	return c
}

// Seek makes the following Next go to the first key ≥ key. It only goes forward.
func (c *Cursor) Seek(key string) {
	if key <= c.from {
		return
	}
	c.from = key
	c.c.seek(objectKey(key))
	if c.dirs != nil {
		c.dirs.seek(dirKey(key))
	}
	c.primed = false
}

// Next moves to the next object.
func (c *Cursor) Next(ctx context.Context) bool {
	if c.err != nil {
		return false
	}
	if c.dirs == nil {
		if !c.c.next(ctx) {
			c.err = c.c.err
			return false
		}
		c.key = c.c.key[1:]
		return true
	}
	if !c.primed {
		c.cOK, c.dirsOK, c.primed = c.c.next(ctx), c.dirs.next(ctx), true
	} else if c.isDir {
		c.dirsOK = c.dirs.next(ctx)
	} else {
		c.cOK = c.c.next(ctx)
	}
	return c.merge(ctx)
}

// merge picks the next of objects and empty directories.
func (c *Cursor) merge(ctx context.Context) bool {
	for {
		if c.err = c.c.err; c.err == nil {
			c.err = c.dirs.err
		}
		switch {
		case c.err != nil || !c.cOK && !c.dirsOK:
			return false
		case !c.dirsOK || c.cOK && c.c.key[1:] < c.dirs.key[1:]:
			c.key, c.isDir = c.c.key[1:], false
			return true
		case c.cOK && strings.HasPrefix(c.c.key[1:], c.dirs.key[1:]):
			c.dirsOK = c.dirs.next(ctx) // not empty, or an object of its own
		default:
			path := c.dirs.key[1:]
			below := c.v.st.scan(dirKey(path)+"\x00", stringEnd(dirKey(path)))
			if below.next(ctx) {
				c.dirsOK = c.dirs.next(ctx)
				continue
			}
			c.key, c.isDir = path, true
			return true
		}
	}
}

// Key returns the present key; it is cheaper than Object.
func (c *Cursor) Key() string { return c.key }

// Object returns the present object, or nil after an error, which Err returns.
func (c *Cursor) Object() *Object {
	if c.isDir {
		d, err := decodeDir(c.key, c.dirs.rec.val)
		if err != nil {
			c.err = err
			return nil
		}
		return &Object{Key: c.key, ID: d.ID, Modified: d.Modified, Posix: &d.Posix, ETag: "d41d8cd98f00b204e9800998ecf8427e", Null: true}
	}
	o, err := c.v.st.object(context.Background(), c.key, c.c.rec)
	if err != nil {
		c.err = err
		return nil
	}
	return o
}

// Err returns what ended the cursor early, if anything did.
func (c *Cursor) Err() error { return c.err }

// Open opens an object for reading; it must come from a view of this store that isn't closed. The reader may outlive
// the view.
func (v *View) Open(ctx context.Context, o *Object) (Reader, error) {
	st := o.data.from
	if st == nil {
		st = v.st
	}
	rd := &reader{s: v.s, ctx: ctx, o: o}
	b, ok, err := v.s.small(ctx, o)
	if err != nil {
		return nil, err
	}
	if ok {
		if int64(len(b)) != o.Size {
			return nil, errs.Msg(errs.Corrupt, "read", strconv.Quote(clip(o.Key)), fmt.Sprintf("%d bytes of %d", len(b), o.Size))
		}
		rd.small, rd.isSmall = b, true
		return rd, nil
	}
	if !st.base.tryHold() {
		return nil, errs.Msg(errs.Unavailable, "read", strconv.Quote(clip(o.Key)), "its view is closed")
	}
	rd.base = st.base
	return rd, nil
}

// reader reads one object.
type reader struct {
	s       *Store
	ctx     context.Context
	o       *Object
	base    *base
	small   []byte
	isSmall bool
	off     int64
	closed  atomic.Bool
}

// Size returns the object's length in bytes.
func (r *reader) Size() int64 { return r.o.Size }

// Close ends the reader.
func (r *reader) Close() error {
	if !r.closed.Swap(true) && r.base != nil {
		r.base.release()
	}
	return nil
}

// ReadAt reads as io.ReaderAt does.
func (r *reader) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, errs.Msg(errs.Invalid, "read", strconv.Quote(clip(r.o.Key)), "negative offset")
	}
	if off >= r.o.Size {
		return 0, io.EOF
	}
	if short := r.o.Size-off < int64(len(p)); short {
		p, err = p[:r.o.Size-off], io.EOF
	}
	if r.isSmall {
		return copy(p, r.small[off:]), err
	}
	if r.closed.Load() {
		return 0, errs.Msg(errs.Invalid, "read", strconv.Quote(clip(r.o.Key)), "the reader is closed")
	}
	end := off + int64(len(p))
	pos := off
	bad := r.s.extentsIn(r.ctx, r.o, off, end, func(at int64, x extent) error {
		lo, hi := max(off, at), min(end, at+x.n)
		if lo != pos {
			return errs.Msg(errs.Corrupt, "read", strconv.Quote(clip(r.o.Key)), "its extents leave a gap")
		}
		pos = hi
		return r.s.readExtent(r.ctx, x, p[lo-off:hi-off], lo-at)
	})
	if bad != nil {
		return 0, bad
	}
	if pos != end {
		return int(pos - off), errs.Msg(errs.Corrupt, "read", strconv.Quote(clip(r.o.Key)), "its extents end early")
	}
	return len(p), err
}

// Read reads from the present offset on.
func (r *reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := r.ReadAt(p, r.off)
	r.off += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// Seek sets the offset of the next Read.
func (r *reader) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		off += r.off
	case io.SeekEnd:
		off += r.o.Size
	}
	if off < 0 || whence < 0 || whence > io.SeekEnd {
		return r.off, errs.Msg(errs.Invalid, "seek", strconv.Quote(clip(r.o.Key)), "not an offset")
	}
	r.off = off
	return off, nil
}

// WriteTo writes what is left to w.
func (r *reader) WriteTo(w io.Writer) (total int64, err error) {
	if r.isSmall {
		n, err := w.Write(r.small[min(r.off, r.o.Size):])
		r.off += int64(n)
		return int64(n), err
	}
	buf := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(buf)
	for {
		n, err := r.Read(*buf)
		if n > 0 {
			m, err := w.Write((*buf)[:n])
			if total += int64(m); err != nil {
				return total, err
			}
		}
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}
