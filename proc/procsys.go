package proc

import (
	"context"
	"fmt"
	"strconv"
	"syscall"

	"agentrun.dev/vfs"
)

// sysDir is the inode of /proc/sys; then come the others of sysTree, in its order.
const sysDir = 1 << 11

// sysEntry is a directory or a file beneath /proc/sys. Nothing there can be written.
type sysEntry struct {
	in   int // index of its directory
	name string
	text func(s *Sandbox) string // nil: a directory
}

// sysTree is what there is, each after its directory; the first is /proc/sys itself.
func sysTree() []sysEntry {
	const kernel, random = 1, 2
	constant := func(text string) func(*Sandbox) string { return func(*Sandbox) string { return text + "\n" } }
	return []sysEntry{
		{-1, "sys", nil},
		{0, "kernel", nil},
		{kernel, "random", nil},
		{kernel, "hostname", func(s *Sandbox) string { return s.hostname + "\n" }},
		{kernel, "osrelease", constant("6.1.0-agentrun")},
		{kernel, "ostype", constant("Linux")},
		{kernel, "pid_max", constant(strconv.Itoa(maxPid))},
		{kernel, "version", constant("#1 SMP AgentRun")},
		// The boot that btime and uptime are of: forks, and sandboxes that slept, are of one boot with what they were, and so it is on
		// Linux in a machine that is restored from a snapshot.
		{random, "boot_id", func(s *Sandbox) string { return s.bootID + "\n" }},
		{random, "entropy_avail", constant("256")},
		{random, "poolsize", constant("256")},
		{random, "uuid", func(s *Sandbox) string { return s.randomUUID() + "\n" }},
	}
}

// randomUUID makes one of version 4, as the kernel does.
func (s *Sandbox) randomUUID() string {
	var b [16]byte
	_, _ = s.readRand(b[:]) // a generator that fails gives what it has
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// sys finds an entry by its inode.
func (f *procFS) sys(what int) (e sysEntry, ok bool) {
	tree := sysTree()
	if what < sysDir || what >= sysDir+len(tree) {
		return sysEntry{}, false
	}
	return tree[what-sysDir], true
}

// sysLookup finds a name in a directory beneath /proc/sys.
func (f *procFS) sysLookup(ctx context.Context, dir int, name string) (vfs.Attr, error) {
	for i, e := range sysTree() {
		if e.in == dir-sysDir && e.name == name {
			return f.GetAttr(ctx, vfs.Ino(sysDir+i))
		}
	}
	return vfs.Attr{}, syscall.ENOENT
}

// sysList lists a directory beneath /proc/sys.
func sysList(dir int) []vfs.DirEntry {
	var out []vfs.DirEntry
	for i, e := range sysTree() {
		if e.in == dir-sysDir {
			out = append(out, vfs.DirEntry{Name: e.name, Ino: vfs.Ino(sysDir + i), Mode: e.mode()})
		}
	}
	return out
}

func (e sysEntry) mode() vfs.Mode {
	if e.text == nil {
		return vfs.ModeDir
	}
	return vfs.ModeRegular
}
