package hostfs

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// A kernel that has the folder mounted knows every inode that it has ever looked at, for as long as it has memory. Of those that nobody
// works with at the moment only so many keep their descriptor; the others are parked, and found again by their directory and their
// name there, if that is the same inode still. Else it is ESTALE, upon which a kernel looks for the name itself.

// take makes sure of a node's descriptor, and keeps it until leave. mu is held.
func (f *FS) take(n *node, depth int) error {
	if n.elem != nil {
		f.idle.Remove(n.elem)
		n.elem = nil
	}
	if n.fd < 0 {
		if n.up == nil || depth > maxDepth {
			return syscall.ESTALE
		}
		if err := f.take(n.up, depth+1); err != nil {
			return err
		}
		fd, err := unix.Openat(n.up.fd, n.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		f.leave(n.up)
		if err != nil {
			return stale(err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || (file{st.Dev, st.Ino}) != n.id {
			unix.Close(fd)
			return syscall.ESTALE
		}
		n.fd = fd
	}
	n.busy++
	return nil
}

// maxDepth bounds directories within each other.
const maxDepth = 2048

// stale makes a name that doesn't lead to its inode any more a reason to look again.
func stale(err error) error {
	switch err {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP, syscall.EACCES:
		return syscall.ESTALE
	}
	return err
}

// leave ends what take began. mu is held.
func (f *FS) leave(n *node) {
	if n.busy--; n.busy == 0 {
		f.rest(n)
	}
}

// rest parks nodes beyond the limit, the one that rests longest first. Those that have no name, or are open, keep their descriptor.
func (f *FS) rest(n *node) {
	if n.fd < 0 || n.busy > 0 || n.opens > 0 || n.up == nil || n.elem != nil || f.inos[n.ino] != n {
		return
	}
	n.elem = f.idle.PushBack(n)
	for f.idle.Len() > f.opt.Descriptors {
		old := f.idle.Remove(f.idle.Front()).(*node)
		old.elem = nil
		old.close()
	}
}

// named notes a name that led to a node. mu is held.
func (f *FS) named(n, dir *node, name string) {
	if n == f.root || n.up == dir && n.name == name {
		return
	}
	for d := dir; d != nil; d = d.up {
		if d == n { // it was moved above itself meanwhile, and what lies between wasn't looked up since
			return
		}
	}
	old := n.up
	dir.refs++
	n.up, n.name = dir, name
	if old != nil {
		f.forget(old, 1)
	}
}

// forget gives references back. mu is held.
func (f *FS) forget(n *node, count uint64) {
	for n != nil && (n != f.root || count < n.refs) {
		if n.refs -= min(count, n.refs); n.refs > 0 {
			return
		}
		delete(f.inos, n.ino)
		delete(f.files, n.id)
		if n.elem != nil {
			f.idle.Remove(n.elem)
			n.elem = nil
		}
		n.close()
		up := n.up
		n.up = nil
		n, count = up, 1
	}
}

// release is leave.
func (f *FS) release(n *node) {
	f.mu.Lock()
	f.leave(n)
	f.mu.Unlock()
}

// closed notes that a file isn't open any more.
func (f *FS) closed(n *node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opens--
	n.opens--
	f.rest(n)
	f.forget(n, 1)
}

// moved looks a name up that a rename has given to an inode, so that it is found there. What can't be is found again by the kernel.
func (f *FS) moved(d *node, name string) {
	if n, _, err := f.find(d, name); err == nil {
		f.release(n)
		f.Forget(n.ino, 1)
	}
}
