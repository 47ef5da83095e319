package microvm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/guest"
	"agentrun.dev/guest/machine"
	"agentrun.dev/guest/wire"
	"agentrun.dev/vmm/jail"
)

// Bounds of what is kept for sandboxes to come.
const (
	maxBases  = 8
	basesIdle = time.Hour
)

// bases are the snapshots that Boot starts from, one for each kind.
type bases struct {
	e      *Engine
	making sync.WaitGroup

	mu   sync.Mutex
	list map[kind]*base
}

// base is a machine that has booted, with nothing in it but the agent.
type base struct {
	ready chan struct{} // closed when it is made, or can't be
	image *Image
	err   error
	used  time.Time
}

// get returns the base of a kind in use, which the caller ends (unuse): it is made for the first one who asks, and others wait for that. One that
// can't be made isn't kept.
func (b *bases) get(ctx context.Context, k kind, r *root) (*Image, error) {
	for {
		one, err := b.find(k, r)
		if err != nil {
			return nil, err
		}
		select {
		case <-one.ready:
		case <-ctx.Done():
			return nil, errs.New(errs.Canceled, "boot", r.ref, context.Cause(ctx))
		}
		if one.err != nil {
			return nil, one.err
		}
		if err = one.image.use("boot"); err == nil {
			return one.image, nil
		}
		if b.e.ctx.Err() != nil {
			return nil, err
		} // else it was dropped just now
	}
}

// find returns a base that is made, or being made.
func (b *bases) find(k kind, r *root) (*base, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.e.ctx.Err() != nil {
		return nil, errs.Msg(errs.Unavailable, "boot", "", "the engine is closed")
	}
	if one := b.list[k]; one != nil {
		one.used = time.Now()
		return one, nil
	}
	b.trim()
	one := &base{ready: make(chan struct{}), used: time.Now()}
	if b.list == nil {
		b.list = make(map[kind]*base)
	}
	b.list[k] = one
	b.making.Go(func() {
		defer close(one.ready)
		start := time.Now()
		one.image, one.err = b.e.bootBase(k, r)
		if errs.Is(one.err, errs.Unavailable) && b.e.ctx.Err() == nil { // a kernel that hung once needn't do so again
			b.e.o.Log.Warn("microvm: a machine didn't come up, and is booted once more", "image", r.ref, "error", one.err)
			one.image, one.err = b.e.bootBase(k, r)
		}
		if one.err != nil {
			b.e.o.Log.Error("microvm: a machine didn't come up", "image", r.ref, "error", one.err)
			b.mu.Lock()
			delete(b.list, k)
			b.mu.Unlock()
			return
		}
		b.e.o.Log.Info("microvm: a machine has booted, of which others are forks", "image", r.ref, "memory", k.Memory, "took", time.Since(start))
	})
	return one, nil
}

// trim drops what hasn't been used for long, and makes room for one more. mu is held.
func (b *bases) trim() {
	for {
		var oldest kind
		var found *base
		for k, one := range b.list {
			select {
			case <-one.ready:
				if found == nil || one.used.Before(found.used) {
					oldest, found = k, one
				}
			default: // it is being made
			}
		}
		if found == nil || (len(b.list) < maxBases && time.Since(found.used) < basesIdle) {
			return
		}
		delete(b.list, oldest)
		if err := found.image.Close(); err != nil {
			b.e.o.Log.Warn("microvm: the end of a base", "error", err)
		}
	}
}

// close drops all of them.
func (b *bases) close() error {
	b.making.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	var err error
	for k, one := range b.list {
		err = errors.Join(err, one.image.Close())
		delete(b.list, k)
	}
	return err
}

// bootBase boots a kernel, waits for the agent and captures the machine.
func (e *Engine) bootBase(k kind, r *root) (*Image, error) {
	ctx, cancel := context.WithTimeout(e.ctx, 3*e.o.Patience)
	defer cancel()
	initrd, err := archive(&e.o, machineConfig(r))
	if err != nil {
		return nil, err
	}
	defer initrd.Close()
	kernel, err := os.Open(e.o.Kernel)
	if err != nil {
		return nil, errs.New(errs.Unavailable, "boot", "kernel", err)
	}
	defer kernel.Close()
	s, err := e.shells.hold(e, sort{kind: k}, r)
	if err != nil {
		return nil, err
	}
	p, err := s.start(ctx)
	if err != nil {
		return nil, errors.Join(err, s.release())
	}
	in := newInstance("base of "+r.ref, nature{hostname: "sandbox"}, s, p)
	defer in.end(stopped(in.id))
	if err := errors.Join(p.Boot(ctx, kernel, initrd, cmdline), p.Resume(ctx)); err != nil {
		return nil, err
	}
	im, err := in.asBase(ctx)
	if err != nil {
		return nil, errs.New(cmp.Or(errs.KindOf(err), errs.Unavailable), "boot", r.ref, fmt.Errorf("%w%s", err, lastWords(p)))
	}
	return im, nil
}

// lastWords is the end of what a machine wrote to its console, for an error.
func lastWords(p *jail.Process) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	b, err := p.Tail(ctx)
	b = bytes.TrimSpace(b[max(0, len(b)-600):])
	if err != nil || len(b) == 0 {
		return ""
	}
	return fmt.Sprintf("; its console ends with %q", b)
}

// asBase waits for the agent, furnishes the machine and captures it.
func (in *Instance) asBase(ctx context.Context) (*Image, error) {
	up, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(in.life, cancel)()
	a, err := connect(up, in.proc)
	if in.life.Err() != nil {
		return nil, in.why("boot")
	}
	if err != nil {
		return nil, err
	}
	in.mu.Lock()
	in.agent = a
	in.mu.Unlock()
	if err := furnish(up, a); err != nil {
		return nil, err
	}
	f, err := in.Freeze(up, engine.FreezeOptions{})
	if err != nil {
		return nil, err
	}
	return f.(*frozen).capture(up)
}

// The user of commands in images that don't name another, and where they start.
const (
	userName  = "user"
	userID    = "1000"
	home      = "/home/user"
	workspace = "/workspace"
)

// machineConfig is what a machine of an image begins with.
func machineConfig(r *root) machine.Config {
	user := r.config.User
	if name, _, _ := strings.Cut(user, ":"); name == "" || name == "root" || name == "0" {
		user = userID + ":" + userID
	}
	return machine.Config{Links: links(baseMAC), DNS: nameServers(), Lower: []wire.Mount{{Type: "erofs", Source: "/dev/vda"}}, Hostname: "sandbox", User: user, Dir: workspace,
		Env: mergeEnv([]string{"LANG=C.UTF-8"}, r.config.Env)}
}

// furnish makes what every sandbox has, unless the image has it: the user, its home, the folder where commands start.
func furnish(ctx context.Context, a *guest.Client) error {
	for _, file := range []struct{ path, line string }{
		{"/etc/passwd", userName + ":x:" + userID + ":" + userID + "::" + home + ":/bin/sh\n"}, {"/etc/group", userName + ":x:" + userID + ":\n"},
	} {
		old, err := readSmall(ctx, a, file.path)
		if err != nil {
			return err
		}
		if len(old) == 0 && file.path == "/etc/passwd" {
			old = []byte("root:x:0:0:root:/root:/bin/sh\n")
		} else if len(old) == 0 {
			old = []byte("root:x:0:\n")
		}
		if hasNumber(old, userID) {
			continue
		}
		if !bytes.HasSuffix(old, []byte("\n")) {
			old = append(old, '\n')
		}
		if _, err := a.Write(ctx, file.path, strings.NewReader(string(old)+file.line), guest.WriteOptions{Parents: true}); err != nil {
			return err
		}
	}
	for _, dir := range []string{home, workspace} {
		if err := a.Mkdir(ctx, dir, guest.MkdirOptions{Mode: 0o755, Owner: userID + ":" + userID, Parents: true}); err != nil {
			return err
		}
	}
	return nil
}

// hasNumber looks for an account in /etc/passwd or /etc/group.
func hasNumber(b []byte, id string) bool {
	for line := range strings.Lines(string(b)) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) > 2 && f[2] == id {
			return true
		}
	}
	return false
}

// maxSmall bounds what is read of an image's own files.
const maxSmall = 1 << 20

func readSmall(ctx context.Context, a *guest.Client, path string) ([]byte, error) {
	f, err := a.Open(ctx, path, 0, maxSmall)
	if errs.Is(err, errs.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
