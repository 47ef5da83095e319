package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/jail"
)

// vmProcess is the argument with which this program is a VMM process.
const vmProcess = "be-a-vmm"

// dots is a vmlinux of a few instructions, which writes dots to its console for ever.
func dots() []byte {
	code := []byte{0xba, 0xf8, 0x03, 0x00, 0x00, 0xb0, '.', 0xee, 0xeb, 0xfd} // mov edx,0x3f8; mov al,'.'; l: out dx,al; jmp l
	const at = 16 << 20
	b := make([]byte, 64+56)
	le := binary.LittleEndian
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[18:], 62)
	le.PutUint64(b[24:], at)
	le.PutUint64(b[32:], 64)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 1)
	h := b[64:]
	le.PutUint32(h, 1)
	le.PutUint64(h[8:], uint64(len(b)))
	le.PutUint64(h[24:], at)
	le.PutUint64(h[32:], uint64(len(code)))
	le.PutUint64(h[40:], 4096)
	return append(b, code...)
}

// jailed is a VM in a process of its own, and the end of its console that is read.
type jailed struct {
	*jail.Process
	console *os.File
}

func startJailed(ctx context.Context) (*jailed, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	o := jail.Options{Config: vmm.Config{Memory: vmMemory}, Path: "/proc/self/exe", Args: []string{vmProcess}, Console: w}
	if os.Getuid() == 0 {
		o.UID, o.GID = 61234, 61234
	}
	p, err := jail.Start(ctx, o)
	if err != nil {
		r.Close()
		return nil, err
	}
	return &jailed{p, r}, nil
}

func (j *jailed) close() {
	_ = j.Close() // it is killed: how it takes that is no matter
	j.console.Close()
}

// jails measures claims through the jail: a pooled process becomes a VM, whose guest's first byte comes out of its console.
func jails(b *bench) error {
	h, err := vmm.NewHost()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: NOT MEASURED HERE: VMs in a jail: %v (%s)\n", err, errs.HintOf(err))
		return nil
	}
	h.Close()
	file := filepath.Join(b.dir, "dots")
	if err := os.WriteFile(file, dots(), 0o600); err != nil {
		return err
	}
	kernel, err := os.Open(file)
	if err != nil {
		return err
	}
	defer kernel.Close()
	parent, err := startJailed(b.ctx)
	if err != nil {
		return err
	}
	defer parent.close()
	if err := parent.Boot(b.ctx, kernel, nil, ""); err != nil {
		return err
	}
	snap, err := parent.Capture(b.ctx)
	if err != nil {
		return err
	}
	defer snap.Close()
	im, err := jail.NewImage(snap)
	if err != nil {
		return err
	}
	defer im.Close()
	n := 200
	if b.quick {
		n = 20
	}
	var claims, starts times
	var private int64
	for i := range n + 10 {
		start := time.Now()
		c, err := startJailed(b.ctx)
		if err != nil {
			return err
		}
		pooled := time.Now()
		if err := c.Run(b.ctx, im); err != nil {
			return err
		}
		if _, err := c.console.Read(make([]byte, 1)); err != nil {
			return err
		}
		if i >= 10 { // before that it warms up
			claims, starts = append(claims, time.Since(pooled)), append(starts, pooled.Sub(start))
		}
		if i == n {
			if private, err = privateOf(fmt.Sprint(c.PID())); err != nil {
				return err
			}
		}
		c.close()
	}
	limit := 2 * time.Millisecond
	x := ratio(claims.p50(), limit)
	b.add(row{Name: "a VM of 512 MiB from a pooled, jailed process, to the first byte on its console", Ours: claims.String(),
		Other: "making the shell in advance took " + starts.String(), Ratio: x, Target: "p50 ≤ 2 ms", Met: x <= 1})
	r := float64(private) / 10e6
	b.add(row{Name: "private memory of a jailed VM, its process included", Ours: fmt.Sprintf("%.1f MB", float64(private)/1e6), Other: "the seed's 265 KB a fork",
		Ratio: r, Target: "≤ 10 MB", Met: r <= 1})
	return nil
}
