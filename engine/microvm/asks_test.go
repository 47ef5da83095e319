package microvm

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"agentrun.dev/command/services"
	"agentrun.dev/guest/wire"
)

// family is the control of a sandbox that is the second child.
type family struct {
	services.Control
	forked services.ForkOptions
	wait   bool // until the context ends
}

func (f *family) Fork(ctx context.Context, o services.ForkOptions) ([]services.Forked, error) {
	if f.wait {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	f.forked = o
	return []services.Forked{{Index: 1, ID: "one"}, {Index: 2, ID: "two"}}, nil
}

func (f *family) Self(context.Context) (*services.Forked, error) {
	return &services.Forked{Index: 2}, nil
}

func TestPerform(t *testing.T) {
	for _, c := range []struct {
		name  string
		ask   wire.Ask
		child bool
		s     *services.Services
		want  string // of output and errors
		code  int
	}{
		{"a fork", wire.Ask{Args: wire.Texts([]string{"fork", "-n", "2"})}, true, &services.Services{Control: new(family)}, "one\ntwo\n", 0},
		{"in a child", wire.Ask{Args: wire.Texts([]string{"fork", "-n", "2"}), Again: true}, true, &services.Services{Control: new(family)}, "child 2\n", 0},
		{"told again by the same machine", wire.Ask{Args: wire.Texts([]string{"fork"}), Again: true}, false, &services.Services{Control: new(family)}, "interrupted", 1},
		{"a merge in a child", wire.Ask{Args: wire.Texts([]string{"merge", "x"}), Again: true}, true, &services.Services{Control: new(family)}, "interrupted", 1},
		{"without services", wire.Ask{Args: wire.Texts([]string{"snapshot", "take"})}, true, nil, "not available here", 5},
		{"misused", wire.Ask{Args: wire.Texts([]string{"fork", "-n", "none"})}, true, &services.Services{Control: new(family)}, "invalid count", 2},
		{"another command", wire.Ask{Args: wire.Texts([]string{"sh", "-c", "true"})}, true, nil, "no such command", 127},
		{"bytes that aren't text", wire.Ask{Args: wire.Texts([]string{"\xff\x00"}), Dir: "\xff/../.."}, true, nil, "no such command", 127},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errout bytes.Buffer
			code := perform(t.Context(), c.s, c.ask, program(c.ask, c.child), &out, &errout)
			if got := out.String() + errout.String(); code != c.code || !strings.Contains(got, c.want) {
				t.Errorf("status %d, %q; want %d, %q", code, got, c.code, c.want)
			}
		})
	}
}

// TestPerformCanceled gives up on a fork that doesn't end.
func TestPerformCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &family{wait: true}
	q := wire.Ask{Args: []wire.Text{"fork"}}
	done := make(chan int)
	go func() {
		var out, errout bytes.Buffer
		done <- perform(ctx, &services.Services{Control: f}, q, program(q, false), &out, &errout)
	}()
	cancel()
	if code := <-done; code == 0 {
		t.Error("it says that it was done")
	}
}
