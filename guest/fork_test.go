package guest_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/guest"
	"agentrun.dev/guest/agent"
	"agentrun.dev/guest/wire"
)

// ticker is a command that counts in a file.
func ticker(t *testing.T, c *guest.Client) (count func() int64) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ticks")
	if _, err := c.Exec(within(t), sh("while :; do printf x >>"+file+"; sleep 0.001; done")); err != nil {
		t.Fatal(err)
	}
	count = func() int64 {
		fi, err := os.Stat(file)
		if err != nil {
			return 0
		}
		return fi.Size()
	}
	moves(t, count)
	return count
}

// moves waits until the workload does something.
func moves(t *testing.T, count func() int64) {
	t.Helper()
	ctx := within(t)
	for from := count(); count() == from; time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatal("the workload doesn't run")
		}
	}
}

// still shows that the workload does nothing: not even when it has time for hundreds of rounds.
func still(t *testing.T, count func() int64) {
	t.Helper()
	from := count()
	time.Sleep(300 * time.Millisecond)
	if now := count(); now != from {
		t.Errorf("the workload has run: %d more ticks", now-from)
	}
}

func TestFreezeThaw(t *testing.T) {
	h := start(t, agent.Options{})
	c := h.dial(t)
	count := ticker(t, c)
	token, err := c.Freeze(within(t))
	if err != nil {
		t.Fatal(err)
	}
	still(t, count)
	if _, err := c.Exec(within(t), sh("true")); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("a command in a frozen workload: %v", err)
	}
	if _, err := c.Freeze(within(t)); errs.KindOf(err) != errs.Conflict {
		t.Errorf("frozen twice: %v", err)
	}
	if err := c.Thaw(within(t), strings.Repeat("0", 32)); errs.KindOf(err) != errs.Denied {
		t.Errorf("thawed with a wrong token: %v", err)
	}
	if err := c.Flush(within(t), strings.Repeat("0", 32)); errs.KindOf(err) != errs.Denied {
		t.Errorf("flushed with a wrong token: %v", err)
	}
	if err := c.Flush(within(t), token); err != nil || h.machine.synced != 1 {
		t.Errorf("synced %d times, %v", h.machine.synced, err)
	}
	// The connection breaks, as in a fork: nothing runs until somebody has the token.
	c.Close()
	still(t, count)
	c = h.dial(t)
	if err := c.Thaw(within(t), token); err != nil {
		t.Fatal(err)
	}
	moves(t, count)
	if err := c.Thaw(within(t), token); errs.KindOf(err) != errs.Conflict {
		t.Errorf("thawed twice: %v", err)
	}
	if err := c.Flush(within(t), token); errs.KindOf(err) != errs.Conflict {
		t.Errorf("flushed while it runs: %v", err)
	}
}

// TestRenew: the workload of a fork runs only when everything about it has been renewed.
func TestRenew(t *testing.T) {
	h := start(t, agent.Options{Env: []string{"A=template", "B=template"}})
	c := h.dial(t)
	count := ticker(t, c)
	token, err := c.Freeze(within(t))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for name, k := range map[string]struct {
		renew wire.Renew
		kind  errs.Kind
	}{
		"another token": {wire.Renew{Token: "0123456789abcdef", Time: now}, errs.Denied},
		"no time":       {wire.Renew{Token: token}, errs.Invalid},
		"a limit":       {wire.Renew{Token: token, Time: now, Processes: 10}, errs.Unsupported}, // without control groups
		"no entropy":    {wire.Renew{Token: token, Time: now, Entropy: []byte("little")}, errs.Invalid},
	} {
		if err := c.Renew(within(t), k.renew); errs.KindOf(err) != k.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
	h.machine.mu.Lock()
	h.machine.fail = errors.New("no network")
	h.machine.mu.Unlock()
	if err := c.Renew(within(t), wire.Renew{Token: token, Time: now}); err == nil || !strings.Contains(err.Error(), "no network") {
		t.Errorf("a step that fails: %v", err)
	}
	still(t, count)
	h.machine.mu.Lock()
	h.machine.fail, h.machine.renewed = nil, nil
	h.machine.mu.Unlock()
	if err := c.Renew(within(t), wire.Renew{Token: token, Time: now, Hostname: "child", Env: []wire.Text{"A=child"}}); err != nil {
		t.Fatal(err)
	}
	moves(t, count)
	if r := h.machine.renewed; len(r) != 1 || r[0].Hostname != "child" || len(r[0].Entropy) < 32 || !r[0].Time.Equal(now) {
		t.Errorf("renewed: %+v", r)
	}
	if _, out, _ := run(t, c, sh("echo $A $B")); out != "child template\n" {
		t.Errorf("variables: %q", out)
	}
}

// TestForgotten: who takes up a command in a fork gets what it has written there, not what others have read already.
func TestForgotten(t *testing.T) {
	h := start(t, agent.Options{})
	c := h.dial(t)
	in, typed := io.Pipe()
	defer typed.Close()
	out, written := io.Pipe()
	p, err := c.Exec(within(t), guest.Cmd{Args: []string{"sh", "-c", "echo before; read x; echo $x; kill -9 $$"}, Stdin: in, Stdout: written})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("before\n"))); err != nil {
		t.Fatal(err)
	}
	token, err := c.Freeze(within(t))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	c = h.dial(t)
	if err := c.Renew(within(t), wire.Renew{Token: token, Time: time.Now()}); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	taken, err := c.Attach(within(t), p.Pid(), guest.Cmd{Stdin: strings.NewReader("after\n"), Stdout: &got})
	if err != nil {
		t.Fatal(err)
	}
	if status, err := taken.Wait(within(t)); status != 137 || taken.Signaled() != 9 || err != nil || got.String() != "after\n" {
		t.Errorf("status %d, signal %d, %v, output %q", status, taken.Signaled(), err, got.String())
	}
}

// TestNoMachine: an agent that can't renew says so, and stays frozen.
func TestNoMachine(t *testing.T) {
	a := agent.New(agent.Options{})
	t.Cleanup(func() { a.Close() })
	h := &host{Agent: a}
	c := h.dial(t)
	token, err := c.Freeze(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Renew(within(t), wire.Renew{Token: token, Time: time.Now()}); errs.KindOf(err) != errs.Unsupported {
		t.Errorf("renew: %v", err)
	}
	if err := c.Shutdown(within(t)); errs.KindOf(err) != errs.Unsupported {
		t.Errorf("shutdown: %v", err)
	}
	if err := c.Thaw(within(t), token); err != nil {
		t.Error(err)
	}
}
