package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/proc"
	"agentrun.dev/wasm"
	"agentrun.dev/wasm/python"
)

// Targets of interpreters.
const (
	forkTarget    = 15 * time.Microsecond
	printTarget   = 500 * time.Microsecond
	privateTarget = 300 << 10
)

// interpreters measures python3: as a program of sandboxes, and as a live interpreter that is forked.
func interpreters(b *bench) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	guests := userspace.NewGuests(userspace.GuestOptions{CacheDir: filepath.Join(cache, "agentrun", "wasm")})
	defer guests.Close()
	s, err := userspace.New(b.ctx, userspace.Options{ID: "bench", Commands: guests})
	if err != nil {
		return err
	}
	defer s.Stop(b.ctx)
	if err := b.startPython(s); err != nil {
		return err
	}
	if err := b.forkScript(s, guests); err != nil {
		return err
	}
	r, err := wasm.New(wasm.Options{CacheDir: filepath.Join(cache, "agentrun", "wasm")})
	if err != nil {
		return err
	}
	defer r.Close()
	in := python.New(python.Options{Runtime: func() (*wasm.Runtime, error) { return r, nil }})
	defer in.Close()
	var failed error
	own := ownProgram{guests, func(p *proc.Process) int {
		failed = b.sessionsOf(in, p)
		return 0
	}}
	o, err := userspace.New(b.ctx, userspace.Options{ID: "live", Commands: own})
	if err != nil {
		return err
	}
	defer o.Stop(b.ctx)
	status, err := o.Run(b.ctx, userspace.Cmd{Args: []string{"bench"}, Stdout: io.Discard, Stderr: os.Stderr})
	return errors.Join(failed, err, statusError(status))
}

// ownProgram is a command of ours beside those of guests.
type ownProgram struct {
	*userspace.Guests
	run proc.Func
}

func (o ownProgram) Lookup(name string) (proc.Program, bool) {
	if name == "bench" {
		return o.run, true
	}
	return o.Guests.Lookup(name)
}

func (o ownProgram) Names() []string { return append(o.Guests.Names(), "bench") }

func statusError(status int) error {
	if status != 0 {
		return fmt.Errorf("status %d", status)
	}
	return nil
}

// startPython compares a whole run of one line with that of the machine's own python3.
func (b *bench) startPython(s *userspace.Sandbox) error {
	ours := func(int) error {
		var out bytes.Buffer
		status, err := s.Run(b.ctx, userspace.Cmd{Args: []string{"python3", "-c", "print(1)"}, Stdout: &out, Stderr: os.Stderr})
		if err == nil && out.String() != "1\n" {
			err = fmt.Errorf("status %d, %q", status, out.String())
		}
		return err
	}
	if _, err := measure(20, ours); err != nil { // warm: once per host process
		return err
	}
	time.Sleep(time.Second) // modules are loaded in the background
	one, err := measure(300, ours)
	if err != nil {
		return err
	}
	native, err := measure(30, func(int) error { return exec.Command("python3", "-c", "print(1)").Run() })
	if err != nil {
		return err
	}
	b.add(row{Name: "`python3 -c 'print(1)'` in a sandbox, against the machine's python3", Ours: one.String(), Other: native.String(), Ratio: ratio(one.p50(), native.p50()), Target: "≤ 1", Met: one.p50() <= native.p50()})
	return nil
}

// forkScript forks a sandbox in which a script computes.
func (b *bench) forkScript(s *userspace.Sandbox, guests *userspace.Guests) error {
	p, err := s.Exec(b.ctx, engine.Cmd{Args: []string{"python3", "-c", "import json, re\nx = {}\nwhile True:\n    for i in range(1000): x[i] = str(i)"}, Keep: true})
	if err != nil {
		return err
	}
	defer p.Signal(9)
	time.Sleep(300 * time.Millisecond)
	one, err := measure(100, func(int) error {
		f, err := s.Freeze(b.ctx, engine.FreezeOptions{})
		if err != nil {
			return err
		}
		defer f.Thaw()
		im, err := f.Capture(b.ctx)
		if err != nil {
			return err
		}
		defer im.Close()
		c, err := im.Start(b.ctx, engine.Identity{ID: "copy"}, nil)
		if err != nil {
			return err
		}
		return c.Stop(b.ctx)
	})
	if err != nil {
		return err
	}
	b.add(row{Name: "fork of a sandbox in which a Python script computes: frozen, captured, started, ended", Ours: one.String(), Other: "target 20 ms", Ratio: ratio(one.p50(), 20*time.Millisecond), Target: "≤ 1", Met: one.p50() <= 20*time.Millisecond})
	return nil
}

// sessionsOf measures forks of a live interpreter, within a process.
func (b *bench) sessionsOf(in *python.Interpreter, p *proc.Process) error {
	ctx := p.Context()
	s, err := in.Session(p)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Exec(ctx, "import json, re, collections, datetime\nx = list(range(1000))"); err != nil {
		return err
	}
	im, err := s.Image()
	if err != nil {
		return err
	}
	defer im.Close()
	if err := forkTimes(b, ctx, im, p); err != nil {
		return err
	}
	if err := private(b, ctx, im, p); err != nil {
		return err
	}
	return dirtyTimes(b, ctx, s)
}

// forkTimes measures starts of a pooled interpreter, and up to what it prints.
func forkTimes(b *bench, ctx context.Context, im *python.SessionImage, p *proc.Process) error {
	var start, print times
	for i := range 3000 {
		from := time.Now()
		c, err := im.Start(p)
		if err != nil {
			return err
		}
		made := time.Since(from)
		st, err := c.Exec(ctx, "print(x[5])")
		all := time.Since(from)
		c.Close()
		if err != nil || st != 0 {
			return errors.Join(err, statusError(st))
		}
		if i >= 500 {
			start, print = append(start, made), append(print, all)
		}
	}
	b.add(row{Name: "live Python fork, pooled", Ours: start.String(), Other: "target " + short(forkTarget), Ratio: ratio(start.p50(), forkTarget), Target: "≤ 1", Met: start.p50() <= forkTarget})
	b.add(row{Name: "live Python fork → `print`", Ours: print.String(), Other: "target " + short(printTarget), Ratio: ratio(print.p50(), printTarget), Target: "≤ 1", Met: print.p50() <= printTarget})
	return nil
}

// private measures the memory that a fork has for itself after a print.
func private(b *bench, ctx context.Context, im *python.SessionImage, p *proc.Process) error {
	const count = 100
	var live []*python.Session
	defer func() {
		for _, c := range live {
			c.Close()
		}
	}()
	for range count {
		c, err := im.Start(p)
		if err != nil {
			return err
		}
		live = append(live, c)
	}
	runtime.GC()
	before := privateDirty()
	for _, c := range live {
		if st, err := c.Exec(ctx, "print(x[5])"); err != nil || st != 0 {
			return errors.Join(err, statusError(st))
		}
	}
	each := (privateDirty() - before) / count
	b.add(row{Name: "private memory that a `print` takes in such a fork", Ours: fmt.Sprintf("%.0f KB", float64(each)/1e3), Other: "target 300 KiB", Ratio: float64(each) / privateTarget, Target: "≤ 1", Met: each <= privateTarget})
	return nil
}

// privateDirty is the memory of this process that no other mapping shares.
func privateDirty() int64 {
	text, _ := os.ReadFile("/proc/self/smaps_rollup")
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "Private_Dirty:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}

// dirtyTimes measures captures of an interpreter that has written little or much since the last one.
func dirtyTimes(b *bench, ctx context.Context, s *python.Session) error {
	if _, err := s.Exec(ctx, "blob = bytearray(32 << 20)"); err != nil {
		return err
	}
	var small, large times
	for i := range 40 {
		for _, size := range []int{1 << 20, 8 << 20} {
			if _, err := s.Exec(ctx, fmt.Sprintf("blob[:%d] = bytes([%d]) * %d", size, i+1, size)); err != nil {
				return err
			}
			from := time.Now()
			im, err := s.Image()
			if err != nil {
				return err
			}
			d := time.Since(from)
			im.Close()
			if size == 1<<20 {
				small = append(small, d)
			} else {
				large = append(large, d)
			}
		}
	}
	b.add(row{Name: "capture of an interpreter of 48 MB after 8 MiB were written, against 1 MiB", Ours: large.String(), Other: small.String(), Ratio: ratio(large.p50(), small.p50()), Target: "∝ dirty pages: ≤ 12", Met: ratio(large.p50(), small.p50()) <= 12})
	return nil
}
