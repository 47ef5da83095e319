// Package sandbox runs one command in a userspace sandbox of its own: over buckets, over folders of this machine, or over
// nothing but memory.
//
// Whatever else the sandbox holds (its root, its processes) is made for the command and goes with it. What the command wrote
// to a bucket is durable when Run returns.
package sandbox

import (
	"context"
	"errors"
	"io"
	"time"

	"agentrun.dev/bucket"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/errs"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/bucketfs"
	"agentrun.dev/vfs/hostfs"
)

// Workspace is the start directory of a sandbox: its first bucket.
const Workspace = userspace.Workspace

// endTimeout bounds how long the end of a sandbox may take once its command has ended.
const endTimeout = 30 * time.Second

// Spec is what to run. Paths of the sandbox are absolute and clean.
type Spec struct {
	Args, Env      []string
	Dir            string            // "" is Workspace
	Guests         *userspace.Guests // nil: sandboxes have none
	Store          *bucket.Store
	Buckets        []Bucket
	Hosts          []Host
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Signals        <-chan int
}

// Bucket is a bucket at a path. It is mounted only if it is still the one that Info describes.
type Bucket struct {
	Info     *bucket.Info
	Path     string
	ReadOnly bool
}

// Host is a folder of this machine at a path.
type Host struct {
	Host, Path string
	ReadOnly   bool
}

// Run runs the command and returns its exit status, or an error if it couldn't run or what it wrote couldn't be kept.
func Run(ctx context.Context, s Spec) (status int, err error) {
	var mounts mounted
	defer func() {
		// The sandbox's end is no part of the command's time, and must happen even if that is over.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		if closeErr := mounts.close(end); err == nil && closeErr != nil {
			err = closeErr
		}
	}()
	for _, b := range s.Buckets {
		if err := mounts.bucket(ctx, s.Store, b); err != nil {
			return 0, err
		}
	}
	for _, h := range s.Hosts {
		if err := mounts.host(h); err != nil {
			return 0, err
		}
	}
	o := userspace.Options{Volumes: mounts.list}
	if s.Guests != nil {
		o.Commands = s.Guests
	}
	sb, err := userspace.New(ctx, o)
	if err != nil {
		return 0, err
	}
	mounts.sandbox = sb
	p, err := sb.Exec(ctx, userspace.Cmd{Args: s.Args, Env: s.Env, Dir: s.Dir, Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr})
	if err != nil {
		return 126, err
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		signals := s.Signals
		for {
			select {
			case sig, ok := <-signals:
				if !ok {
					signals = nil
					continue
				}
				p.Signal(sig)
			case <-ended:
				return
			}
		}
	}()
	return p.Wait(ctx)
}

// mounted is what must be closed at the end: first the sandbox, then its filesystems.
type mounted struct {
	sandbox *userspace.Sandbox
	list    []vfs.Mount
	ends    []func(context.Context) error
}

func (m *mounted) close(ctx context.Context) error {
	var all []error
	if m.sandbox != nil {
		all = append(all, m.sandbox.Stop(ctx))
	}
	for _, end := range m.ends {
		all = append(all, end(ctx))
	}
	return errors.Join(all...)
}

func (m *mounted) bucket(ctx context.Context, store *bucket.Store, b Bucket) error {
	living, err := store.Bucket(ctx, b.Info.Name)
	if err != nil {
		return err
	}
	if living.ID() != b.Info.ID {
		return errs.Msg(errs.NotFound, "mount", b.Info.Name, "the bucket was deleted meanwhile")
	}
	fs, err := bucketfs.New(ctx, living, bucketfs.Options{UID: userspace.UID, GID: userspace.GID})
	if err != nil {
		return err
	}
	m.ends = append(m.ends, func(ctx context.Context) error {
		err := fs.Flush(ctx, true)
		if closeErr := fs.Close(ctx); err == nil {
			err = closeErr
		}
		if errs.Is(err, errs.NotFound) {
			return nil // the bucket is gone, and with it whatever was to be kept
		}
		return err
	})
	m.list = append(m.list, vfs.Mount{Path: b.Path, FS: fs, Source: "bucket:" + b.Info.Name, Type: "bucket", ReadOnly: b.ReadOnly})
	return nil
}

func (m *mounted) host(h Host) error {
	fs, err := hostfs.New(h.Host, hostfs.Options{UID: userspace.UID, GID: userspace.GID, ReadOnly: h.ReadOnly})
	if err != nil {
		return errs.New(errs.Invalid, "mount", h.Path, err)
	}
	m.ends = append(m.ends, func(context.Context) error { return fs.Close() })
	m.list = append(m.list, vfs.Mount{Path: h.Path, FS: fs, Source: "host", Type: "hostfs", ReadOnly: h.ReadOnly})
	return nil
}
