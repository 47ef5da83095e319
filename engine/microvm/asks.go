package microvm

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"time"

	"agentrun.dev/command/services"
	"agentrun.dev/command/tool"
	"agentrun.dev/command/world"
	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// What programs of the machine ask the host for are the commands of a sandbox's world: `fork`, `merge` and `snapshot`. They run here, as processes of
// a sandbox without files that has the machine's services and nothing else; inside, the agent stands in for them.

// maxAsks bounds those that run at once for one machine. Others wait.
const maxAsks = 16

// hear runs what the machine's programs ask for, until it ends. What it tells first of all it was asked in the machine that this one was captured
// as: forks that were under way there go on as children.
func (in *Instance) hear(s *services.Services) {
	child := true
	var running sync.WaitGroup
	defer running.Wait()
	places := make(chan struct{}, maxAsks)
	for wait := time.Millisecond; in.life.Err() == nil; wait = min(2*wait, time.Second) {
		a, err := in.client(in.life)
		if err == nil {
			err = a.Asks(in.life, func(q wire.Ask) {
				select {
				case places <- struct{}{}:
				case <-in.life.Done():
					return
				}
				run := program(q, child) // here, where child is what it was when this was told
				running.Go(func() {
					defer func() { <-places }()
					err := a.Reply(in.life, q.ID, func(ctx context.Context, out, errors io.Writer) int { return perform(ctx, s, q, run, out, errors) })
					if err != nil {
						in.e.o.Log.Debug("microvm: a command of the sandbox's world", "id", in.id, "error", err)
					}
				})
			})
			child = false // what is told again from now on, this machine itself began
		}
		in.e.o.Log.Debug("microvm: asks", "id", in.id, "error", err)
		select {
		case <-time.After(wait):
		case <-in.life.Done():
		}
	}
}

// program is what runs for an ask.
func program(q wire.Ask, child bool) proc.Program {
	name := strings.ToValidUTF8(string(q.Args[0]), "?")
	switch {
	case q.Again && child && name == "fork":
		return tool.Func(world.Forked)
	case q.Again:
		return tool.Func(func(t *tool.T) int {
			t.Warn("it was interrupted: whether it was done isn't known")
			return 1
		})
	case name == "fork":
		return tool.Func(world.Fork)
	case name == "merge":
		return tool.Func(world.Merge)
	case name == "snapshot":
		return tool.Func(world.Snapshot)
	}
	return tool.Func(func(t *tool.T) int {
		t.Warn("the host has no such command")
		return 127
	})
}

// perform runs a program for the machine, and returns its exit status.
func perform(ctx context.Context, s *services.Services, q wire.Ask, run proc.Program, out, errors io.Writer) int {
	dir := path.Join("/", string(q.Dir))
	status, err := func() (int, error) {
		files := memfs.New(memfs.Options{})
		sb, err := proc.New(proc.Options{Namespace: vfs.NewNamespace(vfs.Mount{FS: files}), Commands: none{}, Services: s})
		if err != nil {
			return 1, err
		}
		defer context.AfterFunc(ctx, func() { _ = sb.Close(context.WithoutCancel(ctx)) })()
		p, err := sb.NewProcess(proc.Root{Args: wire.Strings(q.Args), Dir: dir, Files: map[int]vfs.File{1: sb.NewOutput(out, false), 2: sb.NewOutput(errors, false)}})
		if err != nil {
			return 1, err
		}
		p.Start(run)
		<-p.Done()
		return p.Status(), nil
	}()
	if err != nil {
		fmt.Fprintf(errors, "%s: %s\n", q.Args[0], errs.New(errs.KindOf(err), "run", "", err))
	}
	return status
}

// none are the commands that such a process can start.
type none struct{}

func (none) Lookup(string) (proc.Program, bool) { return nil, false }
func (none) Names() []string                    { return nil }
