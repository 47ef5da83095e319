package bucketfs

import (
	"context"
	"fmt"
	"syscall"

	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

// Rename implements vfs.FS.
func (f *FS) Rename(ctx context.Context, dir vfs.Ino, name string, newDir vfs.Ino, newName string, flags uint32) error {
	if err := f.flushNamed(ctx, dir, name); err != nil {
		return err
	}
	if flags&vfs.RenameExchange != 0 {
		if err := f.flushNamed(ctx, newDir, newName); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	d, n, err := f.victim(ctx, dir, name)
	if err != nil {
		return err
	}
	nd, err := f.getDir(newDir)
	if err != nil {
		return err
	}
	target, err := f.child(ctx, nd, newName)
	if err != nil && err != syscall.ENOENT {
		return err
	}
	if err := f.mayRename(d, n, nd, target, flags); err != nil || target == n {
		return err
	}
	m := move{n: n, from: d, name: name, to: nd, newName: newName, part: n.partIn(d, name)}
	if target != nil && flags&vfs.RenameExchange != 0 {
		return f.exchange(ctx, m, target)
	}
	dec, ok := decode(nd.begun, newName)
	switch {
	case !ok || dec.chunk:
		return syscall.EINVAL
	case dec.shadowed && (target == nil || n.dir):
		return syscall.EINVAL
	}
	m.newPart, m.shadowed = dec.part, dec.shadowed
	if n.dir {
		return f.moveDir(ctx, m, target)
	}
	return f.moveFile(ctx, m, target)
}

// move is a rename under way.
type move struct {
	n             *node
	from, to      *node
	name, newName string
	part, newPart string
	shadowed      bool
}

func (m *move) oldKey() string { return m.from.base() + m.part }
func (m *move) newKey() string { return m.to.base() + m.newPart }

// flushNamed writes a file out that isn't in the bucket yet, so that it can be renamed there.
func (f *FS) flushNamed(ctx context.Context, dir vfs.Ino, name string) error {
	f.mu.Lock()
	var n *node
	if d := f.inos[dir]; d != nil {
		n = d.kids[name]
	}
	fresh := n != nil && n.fresh
	f.mu.Unlock()
	if !fresh {
		return nil
	}
	return f.flushNode(ctx, n, true)
}

// mayRename checks what only the filesystem can know.
func (f *FS) mayRename(d, n, nd, target *node, flags uint32) error {
	switch {
	case n.begun != "" || target != nil && target.begun != "":
		return syscall.EBUSY // a directory for long parts is only a way to show them
	case target == n:
		return nil
	case target != nil && flags&vfs.RenameNoReplace != 0:
		return syscall.EEXIST
	case target == nil && flags&vfs.RenameExchange != 0:
		return syscall.ENOENT
	case n.dir && nd.within(n):
		return syscall.EINVAL
	case target != nil && target.dir && d.within(target):
		if flags&vfs.RenameExchange != 0 {
			return syscall.EINVAL
		}
		return syscall.ENOTEMPTY
	case target == nil || flags&vfs.RenameExchange != 0:
		return nil
	case n.dir && !target.dir:
		return syscall.ENOTDIR
	case !n.dir && target.dir:
		return syscall.EISDIR
	}
	return nil
}

// within reports whether a directory is top or lies beneath it.
func (n *node) within(top *node) bool {
	for ; n != top; n = n.names[0].parent {
		if len(n.names) == 0 {
			return false
		}
	}
	return true
}

// moveFile renames an object, which replaces the one that is there.
func (f *FS) moveFile(ctx context.Context, m move, target *node) error {
	ops := []bucket.Op{{Kind: bucket.OpRename, Key: m.oldKey(), To: m.newKey()}}
	if m.from != m.to || m.from.begun != "" {
		var err error
		if ops, err = f.keepDir(ctx, m.from, m.oldKey(), ops); err != nil {
			return err
		}
	}
	left := f.leave(ctx, target)
	if _, err := f.apply(ctx, ops...); err != nil {
		if left != nil {
			left.base.release()
		}
		return err
	}
	if target != nil {
		target.px.Change = f.opt.Now().UnixNano()
		f.detach(target, m.to, m.newName)
		f.keepLeft(target, left)
	}
	f.renamed(m)
	if o, err := f.view.Get(ctx, m.newKey()); err == nil {
		f.setObject(m.n, o)
	}
	return nil
}

// renamed gives a node its new name.
func (f *FS) renamed(m move) {
	f.unname(m.n, m.from, m.name)
	f.attach(m.n, m.to, m.newName, m.newPart, m.shadowed)
	m.n.px.Change = f.opt.Now().UnixNano()
	f.touch(m.from)
	f.touch(m.to)
}

// moveDir renames a directory. One operation moves all keys, and so it must stand alone if they are many; what else there
// is to do comes before, and does no harm if it remains.
func (f *FS) moveDir(ctx context.Context, m move, target *node) error {
	from, to := m.oldKey()+"/", m.newKey()+"/"
	if len(to) > bucket.MaxKey {
		return syscall.ENAMETOOLONG
	}
	var ops []bucket.Op
	if target != nil {
		if err := f.empty(ctx, target); err != nil {
			return err
		}
		if _, err := f.view.Get(ctx, to); err == nil {
			ops = append(ops, bucket.Op{Kind: bucket.OpDelete, Key: to})
		} else if !errs.Is(err, errs.NotFound) {
			return wrap(err)
		}
	}
	if m.n.rec == nil { // its own record replaces the target's, and keeps its inode number
		ops = append(ops, putDir(from, m.n.px, m.n.mtime))
	}
	if m.from != m.to {
		var err error
		if ops, err = f.keepDir(ctx, m.from, from, ops); err != nil {
			return err
		}
	}
	if len(ops) > 0 {
		if _, err := f.apply(ctx, ops...); err != nil {
			return err
		}
	}
	if _, err := f.apply(ctx, bucket.Op{Kind: bucket.OpRenameDir, Key: from, To: to}); err != nil {
		return err
	}
	if target != nil {
		f.detach(target, m.to, m.newName)
	}
	f.renamed(m)
	if rec, err := f.view.Dir(ctx, to); err == nil {
		moved, change := m.n.moved, m.n.px.Change
		f.setDir(m.n, rec)
		m.n.moved, m.n.px.Change = moved, change
	}
	return nil
}

// exchange swaps two names in one change, by way of a third that nobody sees.
func (f *FS) exchange(ctx context.Context, m move, target *node) error {
	m.newPart = target.partIn(m.to, m.newName)
	a, b := m.oldKey(), m.newKey()
	f.temp++
	aside := fmt.Sprintf("%s%%=exchange-%x-%x", m.from.base(), f.opt.Now().UnixNano(), f.temp)
	step := func(dir bool, from, to string) bucket.Op {
		if dir {
			return bucket.Op{Kind: bucket.OpRenameDir, Key: from + "/", To: to + "/"}
		}
		return bucket.Op{Kind: bucket.OpRename, Key: from, To: to}
	}
	var ops []bucket.Op
	for _, side := range []struct {
		n   *node
		key string
	}{{m.n, a}, {target, b}} {
		if side.n.dir && side.n.rec == nil {
			ops = append(ops, putDir(side.key+"/", side.n.px, side.n.mtime))
		}
	}
	ops = append(ops, step(m.n.dir, a, aside), step(target.dir, b, a), step(m.n.dir, aside, b))
	if _, err := f.apply(ctx, ops...); err != nil {
		return err
	}
	f.unname(target, m.to, m.newName) // first both names go, so that neither takes the other's place
	f.renamed(m)
	f.attach(target, m.from, m.name, m.part, false)
	target.px.Change = m.n.px.Change
	return nil
}
