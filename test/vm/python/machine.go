package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"agentrun.dev/guest"
	"agentrun.dev/guest/wire"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/boot"
	"agentrun.dev/vmm/snapshot"
	"agentrun.dev/vmm/virtio"
	"agentrun.dev/vmm/virtio/block"
	"agentrun.dev/vmm/virtio/rng"
	"agentrun.dev/vmm/virtio/vsock"
)

// maker makes VMs of one kind.
type maker struct {
	host   *vmm.Host
	memory uint64
	disk   string
	cid    uint32
}

// machine is a VM with its devices, and the agent in it once connect has returned.
type machine struct {
	*vmm.VM
	name   string
	socket *vsock.Device
	agent  *guest.Client
}

// shell prepares a VM.
func (k *maker) shell(name string) (*machine, error) {
	v, err := k.host.New(vmm.Config{Memory: k.memory, VCPUs: 1})
	if err != nil {
		return nil, err
	}
	k.cid++
	m := &machine{VM: v, name: name, socket: vsock.New(vsock.Options{CID: 2 + k.cid})}
	f, err := os.Open(k.disk)
	if err != nil {
		return nil, err
	}
	size, err := f.Seek(0, io.SeekEnd) // of a device, too
	if err != nil {
		return nil, err
	}
	root, err := block.NewFile(f, size, true)
	if err != nil {
		return nil, err
	}
	for _, d := range []virtio.Device{m.socket, rng.New(rng.Options{}), block.New(root, block.Options{Serial: "root"})} {
		if err := v.Attach(func(s vmm.Slot) (vmm.Device, error) { return virtio.NewMMIO(d, s.Memory, s.Interrupt), nil }); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// shells prepares several.
func (k *maker) shells(n int) ([]*machine, error) {
	all := make([]*machine, n)
	for i := range all {
		var err error
		if all[i], err = k.shell(fmt.Sprintf("child%d", i)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// boot starts a kernel with the agent.
func (k *maker) boot(ctx context.Context, kernel, initrd string) (*machine, error) {
	l := boot.Linux{Cmdline: "console=ttyS0 panic=-1 quiet random.trust_cpu=on"}
	var err error
	if l.Kernel, err = os.ReadFile(kernel); err != nil {
		return nil, err
	}
	if l.Initrd, err = os.ReadFile(initrd); err != nil {
		return nil, err
	}
	m, err := k.shell("parent")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(m.BootLinux(&l), m.Resume()); err != nil {
		return nil, err
	}
	return m, m.connect(ctx)
}

// connect waits for the agent.
func (m *machine) connect(ctx context.Context) error {
	for {
		nc, err := m.socket.Dial(ctx, guest.Port)
		if err == nil {
			if m.agent, err = guest.New(nc); err == nil {
				return nil
			}
		}
		if exit := m.Exit(); exit != nil {
			return exit
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: the agent doesn't answer: %w; console:\n%s", m.name, err, m.Tail())
		case <-time.After(time.Millisecond):
		}
	}
}

// run executes a command and returns what it writes.
func (m *machine) run(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	p, err := m.agent.Exec(ctx, guest.Cmd{Args: args, Stdout: &out, Stderr: &out})
	if err != nil {
		return "", fmt.Errorf("%s: %q: %w", m.name, args, err)
	}
	if status, err := p.Wait(ctx); status != 0 || err != nil {
		return "", fmt.Errorf("%s: %q: status %d, %w: %s", m.name, args, status, err, out.Bytes())
	}
	return out.String(), nil
}

// fork makes shells into children of the running machine, that aren't renewed yet, and lets it go on.
func (m *machine) fork(ctx context.Context, children []*machine) (token string, err error) {
	if token, err = m.agent.Freeze(ctx); err != nil {
		return "", err
	}
	vms := make([]*vmm.VM, len(children))
	for i, c := range children {
		vms[i] = c.VM
	}
	failed, err := m.Fork(vms, nil)
	if err := errors.Join(append(failed, err)...); err != nil {
		return "", err
	}
	return token, m.thaw(ctx, token)
}

// thaw lets a parent's workload go on.
func (m *machine) thaw(ctx context.Context, token string) error {
	if m.agent.Err() != nil {
		if err := m.connect(ctx); err != nil {
			return err
		}
	}
	return m.agent.Thaw(ctx, token)
}

// renew makes a child a machine of its own: nothing of the workload runs in it before that.
func (m *machine) renew(ctx context.Context, token string, at time.Time) error {
	if err := m.connect(ctx); err != nil {
		return err
	}
	entropy := make([]byte, 32)
	if _, err := rand.Read(entropy); err != nil {
		return err
	}
	return m.agent.Renew(ctx, wire.Renew{Token: token, Entropy: entropy, Time: at, Hostname: wire.Text(m.name)})
}

// hibernate writes a machine to a file and ends it.
func (m *machine) hibernate(ctx context.Context, file string) (token string, err error) {
	if token, err = m.agent.Freeze(ctx); err != nil {
		return "", err
	}
	if err := m.Pause(); err != nil {
		return "", err
	}
	s, err := m.Snapshot()
	if err != nil {
		return "", err
	}
	defer s.Close()
	f, err := os.Create(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return token, errors.Join(s.Write(f), f.Sync(), f.Close(), m.Close())
}

// wake makes a shell what a file has.
func (m *machine) wake(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := snapshot.Read(f)
	if err != nil {
		return err
	}
	defer s.Close()
	return errors.Join(m.Restore(s), m.Resume())
}
