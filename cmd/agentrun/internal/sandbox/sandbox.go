// Package sandbox runs one command in a sandbox of its own: over buckets, over folders of this machine, or over nothing
// but memory.
//
// Whatever else the sandbox holds (its root, its processes, forks that it made of itself) is made for the command and goes
// with it. What the command wrote to a bucket is durable when Run returns.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/engine"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/errs"
	"agentrun.dev/node"
	"agentrun.dev/volume"
)

// Workspace is the start directory of a sandbox: its first bucket.
const Workspace = userspace.Workspace

// endTimeout bounds how long the end of a sandbox may take once its command has ended.
const endTimeout = 30 * time.Second

// Spec is what to run. Paths of the sandbox are absolute and clean.
type Spec struct {
	Args, Env      []string
	Dir            string // "" is Workspace
	Buckets        []Bucket
	Hosts          []Host
	Network        []string // rules of what may be connected to; none: nothing
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Signals        <-chan int
	TTY            *engine.Size // nil: no terminal
	Resizes        <-chan api.Size
	// Kept asks for forks to outlive the sandbox, and is told their names by path; nil: they end with it.
	Kept func(names map[string]string) error
}

// Bucket is a bucket at a path. It is mounted only if it is still the one that Info describes.
type Bucket struct {
	Info     *bucket.Info
	Path     string
	ReadOnly bool
	Fork     string // BUCKET or BUCKET@SNAPSHOT: a fork of it, instead of the bucket itself
}

// Host is a folder of this machine at a path.
type Host struct {
	Host, Path string
	ReadOnly   bool
}

// NodeOptions are those of nodes with userspace sandboxes. guests may be nil: there are none then.
func NodeOptions(store *bucket.Store, guests *userspace.Guests) node.Options {
	var o userspace.EngineOptions
	if guests != nil {
		o.Commands = guests
	}
	return node.Options{Engine: userspace.NewEngine(o), Store: store, UID: userspace.UID, GID: userspace.GID}
}

// Run runs the command and returns its exit status, or an error if it couldn't run or what it wrote couldn't be kept.
func Run(ctx context.Context, n *node.Node, s Spec) (status int, err error) {
	sb, err := n.Create(ctx, node.Spec{Volumes: s.volumes(), Network: s.Network})
	if err != nil {
		return 0, err
	}
	defer func() {
		// The sandbox's end is no part of the command's time, and must happen even if that is over.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		err = errors.Join(err, sb.End(end))
	}()
	for _, b := range s.Buckets {
		if !b.is(ctx, sb.Bucket(b.Path)) {
			return 0, errs.Msg(errs.NotFound, "mount", b.Info.Name, "the bucket was deleted meanwhile")
		}
	}
	if s.Kept != nil {
		names, err := sb.Keep(ctx)
		if err == nil {
			err = s.Kept(names)
		}
		if err != nil {
			return 0, err
		}
	}
	p, err := sb.Exec(ctx, engine.Cmd{Args: s.Args, Env: s.Env, Dir: s.Dir, Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, TTY: s.TTY})
	if err != nil {
		return 126, err
	}
	ended := make(chan struct{})
	defer close(ended)
	go forward(p, &s, ended)
	return p.Wait(ctx)
}

// is reports whether what is mounted is the bucket that was asked for, or a fork of it, and not one that has its name since.
func (b Bucket) is(ctx context.Context, found *bucket.Bucket) bool {
	if found == nil || b.Fork == "" {
		return found != nil && found.ID() == b.Info.ID
	}
	info, err := found.Store().Info(ctx, found.Name())
	return err == nil && info.ID == found.ID() && info.Parent != nil && info.Parent.ID == b.Info.ID
}

// forward passes signals and sizes on until the command has ended.
func forward(p engine.Process, s *Spec, ended <-chan struct{}) {
	signals, sizes := s.Signals, s.Resizes
	for {
		select {
		case sig, ok := <-signals:
			if !ok {
				signals = nil
				continue
			}
			_ = p.Signal(sig) // it has ended, or doesn't know the signal
		case size, ok := <-sizes:
			if !ok {
				sizes = nil
				continue
			}
			_ = p.Resize(engine.Size{Cols: size.Cols, Rows: size.Rows}) // it has ended, or has no terminal
		case <-ended:
			return
		}
	}
}

func (s *Spec) volumes() []volume.Spec {
	var out []volume.Spec
	for i, b := range s.Buckets {
		v := volume.Spec{Name: fmt.Sprintf("bucket-%d", i), Path: b.Path, Bucket: b.Info.Name, ReadOnly: b.ReadOnly}
		if b.Fork != "" {
			v.Bucket, v.Base = "", b.Fork
		}
		out = append(out, v)
	}
	for i, h := range s.Hosts {
		out = append(out, volume.Spec{Name: fmt.Sprintf("host-%d", i), Path: h.Path, Host: h.Host, ReadOnly: h.ReadOnly})
	}
	return out
}
