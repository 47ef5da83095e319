package fusefs

import (
	"context"
	"syscall"
	"time"

	"agentrun.dev/vfs"
)

// A kernel believes names for the TTL, and opens, changes or looks at the inode that one led to. If another door has taken that
// away meanwhile the answer is ESTALE, upon which the kernel looks the whole path up again, asking for every name, and tries once
// more: it finds what is there now, or that nothing is. A file that the kernel itself has taken the name from, and one that it has open, is as
// good as any other; and what it was told of a moment ago may be gone without its being asked again, or a file that is replaced
// all the time could never be opened.

// grace is that moment.
const grace = 20 * time.Millisecond

// fileTTL is how long the kernel believes what isn't a directory, if not shorter: its name, and its size, beyond which it doesn't read. A
// program that is started right after its files were written through another door would read what they were before. A path has many
// directories, and but one file.
const fileTTL = 5 * time.Millisecond

// ttl is how long the name and the attributes of an inode are believed.
func (r *raw) ttl(m vfs.Mode) time.Duration {
	if m.IsDir() {
		return r.TTL
	}
	return min(r.TTL, fileTTL)
}

// vanished makes an inode that isn't there a reason to look its name up again.
func vanished(err error) error {
	if vfs.Errno(err) == syscall.ENOENT {
		return syscall.ESTALE
	}
	return err
}

// present tells whether the kernel may go on with a node whose attributes are these: ESTALE.
func (r *raw) present(number uint64, a vfs.Attr, err error) error {
	if err != nil || a.Nlink > 0 {
		return vanished(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.nodes[number]
	if n == nil || n.own || r.opens[a.Ino] > 0 || time.Since(n.told) < grace {
		return nil
	}
	return syscall.ESTALE
}

// below makes ENOENT of an operation in a directory ESTALE, if it is the directory that isn't there.
func (r *raw) below(ctx context.Context, dir uint64, err error) error {
	if vfs.Errno(err) != syscall.ENOENT {
		return err
	}
	ino, unknown := r.inode(dir)
	if unknown != nil {
		return unknown
	}
	a, gone := r.FS.GetAttr(ctx, ino)
	if r.present(dir, a, gone) == syscall.ESTALE {
		return syscall.ESTALE
	}
	return err
}

// removed gives back the reference to an inode that lost a name by the kernel's own doing, unless that failed.
func (r *raw) removed(ino vfs.Ino, err error) {
	if err == nil {
		r.mu.Lock()
		if n := r.nodes[r.numberOf(ino)]; n != nil && n.ino == ino {
			n.own = true
		}
		r.mu.Unlock()
	}
	r.FS.Forget(ino, 1)
}
