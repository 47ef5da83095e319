package microvm

import (
	"context"
	"errors"
	"syscall"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/fusefs"
	"agentrun.dev/guest"
	"agentrun.dev/guest/files"
	"agentrun.dev/guest/wire"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// Mount implements engine.Mounter.
func (in *Instance) Mount(ctx context.Context, v engine.Volume) error {
	if err := checkVolume(v); err != nil {
		return err
	}
	if err := in.takeTurn(ctx, "mount"); err != nil {
		return err
	}
	defer func() { <-in.turn }()
	i, err := in.slots.take(v.Path)
	if err != nil {
		return err
	}
	in.slots.serve(i, v, fusefs.New(fusefs.Options{FS: v.FS, ReadOnly: v.ReadOnly}))
	if err := in.mountOutside(ctx, v); err != nil {
		in.slots.drop(i)
		return err
	}
	err = in.ask(ctx, "mount", func(ctx context.Context, a *guest.Client) error {
		return a.Mount(ctx, wire.Mount{Type: "virtiofs", Source: wire.Text(tag(i)), Path: wire.Text(v.Path), Read: v.ReadOnly})
	})
	if err != nil {
		in.slots.drop(i) // should it be mounted all the same, it answers with errors
		return errors.Join(err, in.Namespace().Unmount(v.Path))
	}
	return nil
}

// Unmount implements engine.Mounter. errs.Conflict: it is in use.
func (in *Instance) Unmount(ctx context.Context, path string) error {
	if err := in.takeTurn(ctx, "unmount"); err != nil {
		return err
	}
	defer func() { <-in.turn }()
	i, ok := in.slots.find(path)
	if !ok {
		return errs.Msg(errs.Invalid, "unmount", path, "no volume is mounted there")
	}
	if err := in.ask(ctx, "unmount", func(ctx context.Context, a *guest.Client) error { return a.Unmount(ctx, path) }); err != nil {
		return err
	}
	in.slots.drop(i)
	if err := in.Namespace().Unmount(path); err != nil {
		return errs.New(errs.Invalid, "unmount", path, err)
	}
	return nil
}

// Namespace implements engine.Filer: volumes as they are, and the root as the guest says it is.
func (in *Instance) Namespace() *vfs.Namespace {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.ns
}

// mountOutside mounts a volume in the tree that is seen from outside.
func (in *Instance) mountOutside(ctx context.Context, v engine.Volume) error {
	err := in.Namespace().Mount(ctx, v)
	switch {
	case errors.Is(err, syscall.EBUSY):
		return errs.New(errs.Conflict, "mount", v.Path, err)
	case err != nil:
		return errs.New(errs.Invalid, "mount", v.Path, err)
	}
	return nil
}

// emptyRoot is the root of that tree as long as nobody is connected with the agent.
func emptyRoot() *vfs.Namespace {
	return vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{}), Source: rootSource, Type: "overlay"})
}

const rootSource = "root"

// rootFiles are the guest's files, but that nobody asks it what its root directory is: the way to every volume begins there, and one can
// be worked on while the machine stands still.
type rootFiles struct {
	*files.FS
	since time.Time
}

// GetAttr tells of an inode.
func (r rootFiles) GetAttr(ctx context.Context, ino vfs.Ino) (vfs.Attr, error) {
	if ino == r.FS.Root() {
		return vfs.Attr{Ino: ino, Mode: vfs.ModeDir | 0o755, Nlink: 2, Atime: r.since, Mtime: r.since, Ctime: r.since}, nil
	}
	return r.FS.GetAttr(ctx, ino)
}

// showRoot puts the files that a connection with the agent shows into the tree. mu is held.
func (in *Instance) showRoot(a *guest.Client) error {
	root := files.New(a, files.Options{Timeout: in.e.o.Patience, Reach: in.reachable})
	ns, err := in.ns.Clone(func(m vfs.Mount) (vfs.Mount, error) {
		if m.Path == "/" {
			m.FS = rootFiles{root, in.started}
		}
		return m, nil
	})
	if err != nil {
		return errs.New(errs.Other, "microvm", in.id, err)
	}
	if in.root != nil {
		_ = in.root.Close() // its connection is broken
	}
	in.ns, in.root = ns, root
	return nil
}
