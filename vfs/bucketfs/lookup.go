package bucketfs

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"syscall"

	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

// found is what the bucket has at a part of a key.
type found struct {
	obj   *bucket.Object
	rec   *bucket.Dir
	isDir bool
	below string // a key that proves the directory
}

// probe looks at a key: as an object, and as a directory. A directory that is known to have a record is looked for as one
// first, which is cheap; an object beside it matters to nobody then. below is a key that proved the directory before: the
// search begins there, or every look-up during an 'rm -r' would go through all that was deleted already.
func (f *FS) probe(ctx context.Context, key string, recorded bool, below string) (p found, err error) {
	if len(key) > bucket.MaxKey {
		return p, syscall.ENAMETOOLONG
	}
	if recorded {
		if p.rec, err = f.record(ctx, key+"/"); err != nil || p.rec != nil {
			p.isDir = p.rec != nil
			return p, err
		}
	}
	if p.obj, err = f.view.Get(ctx, key); err != nil && !errs.Is(err, errs.NotFound) {
		return p, wrap(err)
	}
	if key == "" || strings.HasSuffix(key, "/") && p.obj != nil && p.obj.Size == 0 {
		p.obj = nil // a marker of the directory itself
	}
	c := f.view.Scan(bucket.Scan{Prefix: key + "/", Start: below, Dirs: true})
	if !c.Next(ctx) {
		if below == "" || c.Err() != nil {
			return p, wrap(c.Err())
		}
		if c = f.view.Scan(bucket.Scan{Prefix: key + "/", Dirs: true}); !c.Next(ctx) {
			return p, wrap(c.Err())
		}
	}
	p.isDir, p.below = true, c.Key()
	p.rec, err = f.record(ctx, key+"/")
	return p, err
}

// record returns a directory's own record, or nil.
func (f *FS) record(ctx context.Context, prefix string) (*bucket.Dir, error) {
	rec, err := f.view.Dir(ctx, prefix)
	if errs.Is(err, errs.NotFound) {
		return nil, nil
	}
	return rec, wrap(err)
}

// child resolves a name in a directory; ENOENT. The caller holds mu and has refreshed the view.
func (f *FS) child(ctx context.Context, d *node, name string) (*node, error) {
	n := d.kids[name]
	if n != nil && (n.fresh || f.isCurrent(n, d, name)) {
		if n.elem != nil {
			f.idle.MoveToBack(n.elem)
		}
		return n, nil
	}
	if len(name) > vfs.MaxName {
		return nil, syscall.ENAMETOOLONG
	}
	dec, ok := decode(d.begun, name)
	if !ok || d.missed == f.age && d.miss == name {
		return nil, syscall.ENOENT
	}
	if dec.chunk {
		return f.chunk(ctx, d, name, dec)
	}
	proof := ""
	if n != nil {
		proof = n.proof
	}
	p, err := f.probe(ctx, d.base()+dec.part, n != nil && n.rec != nil, proof)
	if err != nil {
		return nil, err
	}
	p.isDir = p.isDir || n != nil && n.below > 0
	asDir := p.isDir && !dec.shadowed
	switch chain := encode(dec.part, dec.shadowed); {
	case !asDir && (p.obj == nil || dec.shadowed != p.isDir), chain[len(chain)-1] != name:
		if n != nil {
			f.lose(n, d, name)
		}
		d.miss, d.missed = name, f.age
		return nil, syscall.ENOENT
	case asDir:
		n = f.foundDir(n, d, name, dec.part, p.rec)
		n.proof = p.below
		return n, nil
	}
	return f.foundFile(n, d, name, dec, p.obj), nil
}

// foundDir makes or updates the node of a directory; n is what the name meant before.
func (f *FS) foundDir(n, d *node, name, part string, rec *bucket.Dir) *node {
	if n != nil && !n.sameDir(rec) {
		f.lose(n, d, name)
		n = nil
	}
	if n == nil {
		if n = f.byID(rec, d); n == nil {
			n = &node{}
			f.number(n, f.dirIno(d.base()+part+"/", rec))
		} else if len(n.names) > 0 { // another mount renamed it
			f.unname(n, n.names[0].parent, n.names[0].name)
		}
		f.attach(n, d, name, part, false)
	}
	f.setDir(n, rec)
	f.saw(n, d, name)
	f.settle(n)
	return n
}

// byID finds the node that a directory's record in d has under another name. Not one above d: when others have moved both, and nobody has looked
// from the top since, the bucket may have them the other way round, and the tree here has to remain one.
func (f *FS) byID(rec *bucket.Dir, d *node) *node {
	if rec == nil {
		return nil
	}
	if n := f.ids[rec.ID]; n != nil && n.dir && !n.gone && n != f.root && !d.within(n) {
		return n
	}
	return nil
}

func (f *FS) dirIno(prefix string, rec *bucket.Dir) vfs.Ino {
	if rec != nil && !rec.ID.IsZero() {
		return inoOfID(rec.ID)
	}
	return inoOfPath(prefix)
}

// foundFile makes or updates the node of a file; n is what the name meant before.
func (f *FS) foundFile(n, d *node, name string, dec decoded, o *bucket.Object) *node {
	if n != nil && !n.sameFile(o) {
		// Another object is here now.
		f.lose(n, d, name)
		n = nil
	}
	if n == nil {
		if n = f.ids[o.ID]; n == nil || n.dir {
			n = &node{}
			f.number(n, inoOfID(o.ID))
		} else if o.Posix == nil || o.Posix.Links <= 1 { // renamed by another mount
			for len(n.names) > 0 {
				f.unname(n, n.names[0].parent, n.names[0].name)
			}
		}
		f.attach(n, d, name, dec.part, dec.shadowed)
	}
	f.setObject(n, o)
	f.saw(n, d, name)
	f.settle(n)
	return n
}

// sameDir reports whether a node is the directory with that record, or without one.
func (n *node) sameDir(rec *bucket.Dir) bool {
	return n.dir && (n.rec == nil || rec == nil || n.rec.ID == rec.ID)
}

// sameFile reports whether a node is the file that the bucket has as o.
func (n *node) sameFile(o *bucket.Object) bool {
	return !n.dir && n.obj != nil && (n.obj.ID == o.ID || n.written(o))
}

// written reports whether o is what our own write made of the node's object: with versioning on, that has a new id.
func (n *node) written(o *bucket.Object) bool { return n.obj.Version == o.Version }

// chunk resolves a directory for long parts: it exists if a part that begins so does.
func (f *FS) chunk(ctx context.Context, d *node, name string, dec decoded) (*node, error) {
	n := d.kids[name]
	depth := len(dec.part) / chunkBytes
	exists := false
	err := f.parts(ctx, d.base()+dec.part, d.base(), func(part string, o *bucket.Object, isDir bool) error {
		for _, shadowed := range []bool{false, true} {
			chain := encode(part, shadowed)
			exists = exists || len(chain) > depth && chain[depth-1] == name
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !exists {
		if n != nil {
			f.lose(n, d, name)
		}
		return nil, syscall.ENOENT
	}
	if n == nil {
		n = &node{begun: dec.part}
		f.number(n, inoOfPath(d.base()+dec.part))
		f.attach(n, d, name, dec.part, false)
	}
	f.setDir(n, nil)
	f.saw(n, d, name)
	f.settle(n)
	return n, nil
}

// parts calls f for each part that stands directly below base in keys with the prefix: objects, then directories that
// share their name, in order of key. A directory is told once.
func (f *FS) parts(ctx context.Context, prefix, base string, emit func(part string, o *bucket.Object, isDir bool) error) error {
	c := f.view.Scan(bucket.Scan{Prefix: prefix, Dirs: true})
	for c.Next(ctx) {
		key := c.Key()
		rest := key[len(base):]
		if part, _, below := strings.Cut(rest, "/"); below {
			if err := emit(part, nil, true); err != nil {
				return err
			}
			c.Seek(base + part + "0") // the byte after the slash
			continue
		}
		o := c.Object()
		if o == nil {
			break
		}
		if rest == "" && o.Size == 0 {
			continue // the directory's own marker
		}
		if err := emit(rest, o, false); err != nil {
			return err
		}
	}
	return wrap(c.Err())
}

// Lookup implements vfs.FS.
func (f *FS) Lookup(ctx context.Context, dir vfs.Ino, name string) (vfs.Attr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.getDir(dir)
	if err == nil {
		err = f.refresh(ctx)
	}
	if err != nil {
		return vfs.Attr{}, err
	}
	n, err := f.child(ctx, d, name)
	if err != nil {
		return vfs.Attr{}, err
	}
	return f.refer(n), nil
}

// refer counts a reference to a node.
func (f *FS) refer(n *node) vfs.Attr {
	n.refs++
	f.settle(n)
	return f.attr(n)
}

// GetAttr implements vfs.FS.
func (f *FS) GetAttr(ctx context.Context, ino vfs.Ino) (vfs.Attr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.get(ino)
	if err == nil {
		err = f.current(ctx, n)
	}
	if err != nil {
		return vfs.Attr{}, err
	}
	return f.attr(n), nil
}

// current looks a node up again if the bucket has changed. One that is gone by now keeps what was known of it.
func (f *FS) current(ctx context.Context, n *node) error {
	if err := f.refresh(ctx); err != nil {
		return err
	}
	if n == f.root {
		if f.seen == f.age {
			return nil
		}
		rec, err := f.record(ctx, "")
		if err != nil {
			return err
		}
		if rec != nil || f.seen == 0 { // without a record, what this mount was told stays
			f.setDir(n, rec)
		}
		f.seen = f.age
		return nil
	}
	if n.gone || n.fresh || len(n.names) == 0 {
		return nil
	}
	e := n.names[0]
	if _, err := f.child(ctx, e.parent, e.name); err != nil && err != syscall.ENOENT {
		return err
	}
	return nil
}

// ReadDir implements vfs.FS; names come in order.
func (f *FS) ReadDir(ctx context.Context, dir vfs.Ino) ([]vfs.DirEntry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.get(dir)
	if err == nil && !d.dir {
		err = syscall.ENOTDIR
	}
	if err == nil {
		err = f.refresh(ctx)
	}
	if err != nil || d.gone {
		return nil, err
	}
	return f.list(ctx, d)
}

// listing gathers a directory's entries.
type listing struct {
	f       *FS
	d       *node
	depth   int // of the directory within a long part
	seen    map[string]bool
	entries []vfs.DirEntry
}

// add adds a part of a key, unless its name stands elsewhere or is there already. ino numbers it, given what its name
// meant before, nil if nothing is known.
func (l *listing) add(part string, shadowed bool, mode vfs.Mode, ino func(known *node) vfs.Ino) {
	chain := encode(part, shadowed)
	if len(chain) <= l.depth {
		return // its name is short enough to stand in the directory proper
	}
	name := chain[l.depth]
	if l.seen[name] {
		return
	}
	l.seen[name] = true
	known := l.d.kids[name]
	e := vfs.DirEntry{Name: name, Mode: mode & vfs.ModeType}
	switch {
	case len(chain) > l.depth+1:
		e.Mode = vfs.ModeDir
		if known != nil {
			e.Ino = known.ino
		} else {
			e.Ino = l.f.spare(inoOfPath(l.d.base() + part[:(l.depth+1)*chunkBytes]))
		}
	case known != nil && (known.fresh || l.f.isCurrent(known, l.d, name)): // as a look-up has it
		e.Ino, e.Mode = known.ino, vfs.Mode(known.px.Mode)&vfs.ModeType
	default:
		e.Ino = ino(known)
	}
	l.entries = append(l.entries, e)
}

// addDir adds a directory.
func (l *listing) addDir(ctx context.Context, part string) error {
	prefix := l.d.base() + part + "/"
	rec, err := l.f.record(ctx, prefix)
	if err != nil {
		return err
	}
	l.add(part, false, vfs.ModeDir, func(known *node) vfs.Ino {
		if known == nil || !known.sameDir(rec) {
			known = l.f.byID(rec, l.d)
		}
		if known != nil {
			return known.ino
		}
		return l.f.spare(l.f.dirIno(prefix, rec))
	})
	return nil
}

// addObject adds a file.
func (l *listing) addObject(part string, o *bucket.Object, shadowed bool) {
	mode := vfs.ModeRegular
	if o.Posix != nil && vfs.Mode(o.Posix.Mode)&vfs.ModeType != 0 && !vfs.Mode(o.Posix.Mode).IsDir() {
		mode = vfs.Mode(o.Posix.Mode)
	}
	l.add(part, shadowed, mode, func(known *node) vfs.Ino {
		if known != nil && known.sameFile(o) {
			return known.ino
		}
		if n := l.f.ids[o.ID]; n != nil && !n.dir {
			return n.ino
		}
		return l.f.spare(inoOfID(o.ID))
	})
}

// list lists a directory: what the bucket has, and what isn't there yet.
func (f *FS) list(ctx context.Context, d *node) ([]vfs.DirEntry, error) {
	type object struct {
		part string
		o    *bucket.Object
	}
	var objects []object
	dirs := map[string]bool{}
	l := &listing{f: f, d: d, depth: len(d.begun) / chunkBytes, seen: map[string]bool{}}
	err := f.parts(ctx, d.prefix(), d.base(), func(part string, o *bucket.Object, isDir bool) error {
		if !isDir {
			objects = append(objects, object{part, o})
			return nil
		}
		dirs[part] = true
		return l.addDir(ctx, part)
	})
	if err != nil {
		return nil, err
	}
	for _, k := range objects { // only now is it known which stand beside a directory
		l.addObject(k.part, k.o, dirs[k.part])
	}
	for name, k := range d.kids {
		if !l.seen[name] && k.weight() > 0 {
			l.entries = append(l.entries, vfs.DirEntry{Name: name, Ino: k.ino, Mode: vfs.Mode(k.px.Mode) & vfs.ModeType})
		}
	}
	slices.SortFunc(l.entries, func(a, b vfs.DirEntry) int { return cmp.Compare(a.Name, b.Name) })
	return l.entries, nil
}
