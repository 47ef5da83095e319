package tree

import (
	"bytes"

	"agentrun.dev/errs"
)

// open makes the old node that key falls into the open one, if there is any, after copying what is before it. fresh
// says that the level was in step, and nothing of that node has been copied.
func (l *level) open(key []byte) (fresh bool, err error) {
	if l.cur != nil {
		if err := l.copyBelow(key); err != nil || l.cur != nil {
			return false, err
		}
	}
	if len(l.out.ends) > 0 || l.old.done() { // the tail
		return false, nil
	}
	// The level is in step. What is beyond the last old key belongs into the last node, which nothing but the end has ended.
	k := key
	if bytes.Compare(k, l.a.maxKey) > 0 {
		k = l.a.maxKey
	}
	if err := l.old.seek(l.a.ctx, k); err != nil || l.old.done() {
		return false, err
	}
	if b, ok := l.old.before(); ok && !(l.left && bytes.Equal(b, l.done)) {
		l.begun = true // nodes are passed over, which stay
	}
	// No new node will end before key any more. A key below goneLo is a put inside a range delete: what is opened now
	// lies just behind the nodes that the range has dropped, and the deletion goes on waiting.
	if l.gone && bytes.Compare(key, l.goneLo) >= 0 {
		if err := l.flush(); err != nil {
			return false, err
		}
	}
	return true, l.load()
}

// load makes the old node under the cursor the open one.
func (l *level) load() (err error) {
	if err = l.old.descend(l.a.ctx, nil); err != nil {
		return err
	}
	l.cur, err = l.a.t.child(l.a.ctx, l.old.top().n, l.old.top().i)
	l.at = 0
	return err
}

// copyBelow copies the old entries below key into the new nodes, until it falls into step.
func (l *level) copyBelow(key []byte) error { return l.copy(key, false) }

// copy copies old entries: those below key or all.
func (l *level) copy(key []byte, all bool) error {
	for l.cur != nil {
		n := l.cur
		end := n.Len()
		if !all {
			end = n.searchFrom(l.at, key)
		}
		for l.at < end && l.cur == n {
			i := l.at
			l.at++
			var k kid
			if n.level > 0 {
				k = n.kids[i]
			}
			if err := l.add(n.Key(i), n.Value(i), k); err != nil {
				return err
			}
		}
		if l.cur == n && l.at < n.Len() {
			return nil
		}
		if err := l.settle(); err != nil {
			return err
		}
	}
	return nil
}

// settle leaves the open node once all of its entries are used, and an untouched one: then the level is in step again.
// Otherwise it opens the next, as the new node isn't complete.
func (l *level) settle() error {
	for l.cur != nil && l.at == l.cur.Len() {
		if l.cur == l.a.top {
			l.cur = nil
			return nil
		}
		l.leave(l.cur.last())
		l.cur = nil
		l.old.next()
		if len(l.out.ends) == 0 || l.old.done() {
			return nil
		}
		if err := l.load(); err != nil {
			return err
		}
	}
	if l.at == 0 && len(l.out.ends) == 0 && l.cur != l.a.top { // the cursor still stands at it
		l.cur = nil
	}
	return nil
}

// leave notes that the old nodes up to the one with this greatest key are not part of the new tree.
func (l *level) leave(key []byte) {
	if !l.gone {
		l.gone, l.goneLo = true, key
	}
	l.goneHi, l.left, l.done = key, true, key
}

// flush sends the deletion of what was left behind to the level above.
func (l *level) flush() error {
	if !l.gone {
		return nil
	}
	l.gone = false
	if bytes.Equal(l.goneLo, l.goneHi) {
		return l.parent().delete(l.goneLo)
	}
	end := append(bytes.Clone(l.goneHi), 0) // the successor of goneHi: the end is exclusive
	return l.parent().deleteRange(l.goneLo, end)
}

// add appends an entry to the new node, and completes the node if it ends here.
func (l *level) add(key, value []byte, k kid) error {
	before := l.size
	l.size += entrySize(l.out.level, key, value)
	l.out.add(key, value, k)
	if l.a.t.cut.after(l.out.level, key, before, l.size, l.out.Len()) {
		return l.close()
	}
	return nil
}

// close completes the new node: it stores it and tells the level above. If it has become what it was, the old one stays,
// and the level above hears nothing. A new node that ends at an old one's greatest key replaces its entry above, so
// that one needs no deletion.
func (l *level) close() error {
	n := &l.out
	n.hash = l.a.hash.sum(n)
	key := n.last()
	var err error
	if l.gone && bytes.Compare(key, l.goneLo) >= 0 {
		err = l.flush()
	}
	ended := l.cur != nil && l.cur != l.a.top && l.at == l.cur.Len() && bytes.Equal(key, l.cur.last())
	if err == nil && !(ended && n.hash == l.cur.hash) {
		var k kid
		if k, err = l.store(n); err == nil {
			err = l.parent().put(key, nil, k)
		}
	}
	if err == nil && ended {
		l.left, l.done, l.cur = true, l.cur.last(), nil
		l.old.next()
	}
	l.begun, l.size = true, 0
	n.data, n.ends, n.kids = n.data[:0], n.ends[:0], n.kids[:0]
	return err
}

// store puts a new node into the sink.
func (l *level) store(n *Node) (kid, error) {
	k := kid{hash: n.hash}
	if n.level > maxLevel {
		return k, errs.Msg(errs.Limit, "apply edits", "", "the tree is too high")
	}
	for i := range n.Len() {
		count, size := l.a.t.sums(n, i)
		k.count += count
		k.bytes += size
	}
	encoded, body := encode(n, l.a.t.zip, l.a.body)
	l.a.body = body
	id, err := l.a.sink.Put(encoded)
	if err == nil && id == 0 {
		err = errs.Msg(errs.Invalid, "apply edits", "", "the sink gave a node no id")
	}
	k.id, l.a.newest = id, id
	return k, err
}

// finish completes the level and those above it, and returns the root.
func (l *level) finish() (Root, error) {
	if err := l.copy(nil, true); err != nil {
		return Root{}, err
	}
	// Here the level is in step or at its tail. Without anything before or behind it, a level of one child isn't needed:
	// the child is the root. Nothing has been written above, where there have been deletions only.
	switch n := l.out.Len(); {
	case n == 1 && l.out.level > 0 && !l.begun:
		return l.out.kids[0].root(l.out.level - 1), nil
	case n > 0:
		if err := l.close(); err != nil {
			return Root{}, err
		}
	case !l.begun && l.old.done():
		return Root{}, nil
	}
	if err := l.flush(); err != nil {
		return Root{}, err
	}
	if l.up == nil { // nothing has changed
		return l.a.old, nil
	}
	return l.up.finish()
}
