// Command devices runs in the bench: a stock kernel drives every virtio device of package vmm, and the host looks at what comes of
// it; then the machine is forked, and both go on. It says what it has seen, and exits with 1 at the first thing that isn't as it should be.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/fusefs"
	"agentrun.dev/guest"
	"agentrun.dev/guest/wire"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/boot"
	"agentrun.dev/vmm/virtio"
	"agentrun.dev/vmm/virtio/block"
	"agentrun.dev/vmm/virtio/console"
	"agentrun.dev/vmm/virtio/fs"
	vnet "agentrun.dev/vmm/virtio/net"
	"agentrun.dev/vmm/virtio/rng"
	"agentrun.dev/vmm/virtio/vsock"
)

func main() {
	kernel := flag.String("kernel", "/kernel", "the kernel")
	initrd := flag.String("initrd", "/initrd", "the archive with the agent")
	disk := flag.String("disk", "/disk", "the image of the root filesystem")
	timeout := flag.Duration("timeout", 8*time.Minute, "how long all of it may take")
	flag.Parse()
	// A vCPU holds one of the scheduler's processors for a while after it has entered the guest: devices need some of their own.
	runtime.GOMAXPROCS(8)
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	if err := run(ctx, *kernel, *initrd, *disk); err != nil {
		fmt.Println("devices:", err)
		os.Exit(1)
	}
}

// machine is a VM with one of each device.
type machine struct {
	*vmm.VM
	name   string
	socket *vsock.Device
	tty    *console.Device
	root   block.Disk
	data   *block.Overlay
	files  *memfs.FS
	server *fusefs.Server
	wire   *os.File // the other end of the network card
	mac    net.HardwareAddr
	agent  *guest.Client
}

func run(ctx context.Context, kernel, initrd, disk string) error {
	l := boot.Linux{Cmdline: "console=ttyS0 panic=-1 quiet random.trust_cpu=on"}
	var err error
	if l.Kernel, err = os.ReadFile(kernel); err != nil {
		return err
	}
	if l.Initrd, err = os.ReadFile(initrd); err != nil {
		return err
	}
	host, err := vmm.NewHost()
	if err != nil {
		return err
	}
	defer host.Close()
	m := &machine{name: "parent", files: memfs.New(memfs.Options{})}
	m.server = fusefs.New(fusefs.Options{FS: m.files})
	if m.data, err = block.NewOverlay(nil, memfd(), 64<<20); err != nil {
		return err
	}
	if err := m.make(host, disk, 3, os.Stdout); err != nil {
		return err
	}
	defer m.Close()
	if err := errors.Join(m.BootLinux(&l), m.Resume()); err != nil {
		return err
	}
	if err := m.connect(ctx); err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{{"console", m.console}, {"entropy", m.entropy}, {"block", m.block}, {"net", m.net}, {"fs", m.fs}} {
		start := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w; console:\n%s", step.name, err, m.Tail())
		}
		fmt.Printf("devices: %s ok in %v\n", step.name, time.Since(start).Round(time.Millisecond))
	}
	if err := m.fork(ctx, host, disk); err != nil {
		return fmt.Errorf("fork: %w", err)
	}
	fmt.Println("devices: fork ok")
	return nil
}

func memfd() *os.File {
	fd, err := unix.MemfdCreate("layer", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), "layer")
}

// make prepares the VM and attaches the devices.
func (m *machine) make(host *vmm.Host, disk string, cid uint32, out io.Writer) (err error) {
	if m.VM, err = host.New(vmm.Config{Memory: 192 << 20, VCPUs: 1, Console: out}); err != nil {
		return err
	}
	image, err := os.Open(disk)
	if err != nil {
		return err
	}
	if m.root, err = block.NewFile(image, 0, true); err != nil {
		return err
	}
	m.mac = net.HardwareAddr{2, 0, 0, 0, 0, byte(cid)}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	m.wire = os.NewFile(uintptr(pair[1]), "wire")
	card, err := vnet.New(os.NewFile(uintptr(pair[0]), "card"), vnet.Options{MAC: m.mac})
	if err != nil {
		return err
	}
	share, err := fs.New(fs.HandlerFunc(func(_ context.Context, in, out []byte) int { return m.server.Handle(in, out) }), fs.Options{Tag: "work"})
	if err != nil {
		return err
	}
	m.socket, m.tty = vsock.New(vsock.Options{CID: cid}), console.New(console.Options{})
	for _, d := range []virtio.Device{m.socket, block.New(m.root, block.Options{Serial: "root"}), block.New(m.data, block.Options{Serial: "data"}),
		rng.New(rng.Options{}), m.tty, card, share} {
		if err := m.Attach(func(s vmm.Slot) (vmm.Device, error) {
			t := virtio.NewMMIO(d, s.Memory, s.Interrupt)
			t.SetReport(func(err error) { fmt.Printf("devices: %s: fault of device %d: %v\n", m.name, d.ID(), err) })
			return t, nil
		}); err != nil {
			return err
		}
	}
	return nil
}

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
			return fmt.Errorf("the agent doesn't answer: %w; console:\n%s", err, m.Tail())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// sh runs a script as root and returns what it writes.
func (m *machine) sh(ctx context.Context, script string) (string, error) {
	var out bytes.Buffer
	p, err := m.agent.Exec(ctx, guest.Cmd{Args: []string{"sh", "-ec", script}, User: "0:0", Dir: "/", Stdout: &out, Stderr: &out})
	if err != nil {
		return "", err
	}
	if status, err := p.Wait(ctx); status != 0 || err != nil {
		return "", fmt.Errorf("%s: status %d, %w: %s", script, status, err, out.Bytes())
	}
	return out.String(), nil
}

func (m *machine) want(ctx context.Context, script, want string) error {
	got, err := m.sh(ctx, script)
	if err == nil && got != want {
		err = fmt.Errorf("%s: %q, want %q", script, got, want)
	}
	return err
}

// console: what is printed comes out, what is typed comes in.
func (m *machine) console(ctx context.Context) error {
	if _, err := m.sh(ctx, "echo to the host >/dev/hvc0"); err != nil {
		return err
	}
	if tail := m.tty.Tail(100); !bytes.Contains(tail, []byte("to the host")) {
		return fmt.Errorf("printed %q", tail)
	}
	if _, err := m.tty.Write([]byte("to the guest\n")); err != nil {
		return err
	}
	return m.want(ctx, "read line </dev/hvc0; echo $line", "to the guest\n")
}

func (m *machine) entropy(ctx context.Context) error {
	return m.want(ctx, "cat /sys/class/misc/hw_random/rng_current; head -c 5000 /dev/hwrng | wc -c", "virtio_rng.0\n5000\n")
}

// block: a disk of its own keeps what was written, from outside the page cache too; discarded blocks read as zeros.
func (m *machine) block(ctx context.Context) error {
	if err := m.want(ctx, "cat /sys/block/vdb/serial; echo; cat /sys/block/vdb/size; cat /sys/block/vda/ro", "data\n131072\n1\n"); err != nil {
		return err
	}
	sums, err := m.sh(ctx, `
dd if=/dev/urandom of=/tmp/r bs=64k count=40 2>/dev/null
dd if=/tmp/r of=/dev/vdb bs=64k seek=3 conv=fsync 2>/dev/null
echo 3 >/proc/sys/vm/drop_caches
dd if=/dev/vdb bs=64k skip=3 count=40 2>/dev/null | md5sum; md5sum </tmp/r`)
	if err != nil {
		return err
	}
	if a, b, _ := strings.Cut(strings.TrimSpace(sums), "\n"); a != b {
		return fmt.Errorf("what comes back isn't what was written: %s", sums)
	}
	if n := m.data.Written(); n < 40<<16 {
		return fmt.Errorf("the overlay holds %d bytes", n)
	}
	return m.want(ctx, `blkdiscard -o 196608 -l 1048576 /dev/vdb; echo 3 >/proc/sys/vm/drop_caches
dd if=/dev/vdb bs=64k skip=3 count=16 2>/dev/null | tr -d '\0' | wc -c
dd if=/dev/vdb bs=64k skip=19 count=1 2>/dev/null | tr -d '\0' | wc -c | cut -c1`, "0\n6\n")
}

// net: a neighbour that answers, small packets and large ones, many at a time. (The bench's kernel has no tap devices; unit tests have.)
func (m *machine) net(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- answer(m.wire) }()
	defer func() {
		_ = m.wire.SetReadDeadline(time.Now())
		<-done
		_ = m.wire.SetReadDeadline(time.Time{})
	}()
	return m.want(ctx, `ifconfig eth0 10.9.0.2 netmask 255.255.255.0 up
for size in 56 1400 20000; do ping -q -c 5 -i 0.05 -W 5 -s $size 10.9.0.1 | grep -o '[0-9]* packets received'; done
cat /sys/class/net/eth0/address /sys/class/net/eth0/carrier`,
		"5 packets received\n5 packets received\n5 packets received\n"+m.mac.String()+"\n1\n")
}

// answer is a neighbour, 10.9.0.1, that answers ARP and echoes everything else: an echo request comes back as a reply, in fragments
// if it came in fragments, since nothing of ICMP's sums changes but by the type.
func answer(wire *os.File) error {
	mac := []byte{2, 0, 0, 0, 0, 1}
	buf := make([]byte, 4096)
	for {
		n, err := wire.Read(buf)
		if err != nil {
			return err
		}
		f := bytes.Clone(buf[:n])
		if n < 42 {
			continue
		}
		copy(f[0:6], f[6:12])
		copy(f[6:12], mac)
		switch {
		case f[12] == 8 && f[13] == 6 && f[21] == 1 && bytes.Equal(f[38:42], []byte{10, 9, 0, 1}):
			asker := bytes.Clone(f[22:32])
			f[21] = 2
			copy(f[22:28], mac)
			copy(f[28:32], []byte{10, 9, 0, 1})
			copy(f[32:42], asker)
		case f[12] == 8 && f[13] == 0 && f[23] == 1:
			src := bytes.Clone(f[26:30])
			copy(f[26:30], f[30:34])
			copy(f[30:34], src)
			if f[20]&0x1f == 0 && f[21] == 0 { // the first fragment has ICMP's header
				f[34] = 0
				sum := uint32(f[36])<<8 | uint32(f[37])
				sum += 8 << 8
				sum = sum&0xffff + sum>>16
				f[36], f[37] = byte(sum>>8), byte(sum)
			}
		default:
			continue
		}
		if _, err := wire.Write(f); err != nil {
			return err
		}
	}
}

// fs: files of the host's in the guest, and the other way round.
func (m *machine) fs(ctx context.Context) error {
	if _, err := m.sh(ctx, `mkdir -p /tmp/place; mount -t virtiofs work /tmp/place; cd /tmp/place; mkdir a; echo from the guest >a/file; ln a/file a/hard
ln -s file a/soft
chown 1000:50 a/file; chmod 640 a/file; mv a/hard hard; dd if=/dev/urandom of=big bs=64k count=20 2>/dev/null; cp big copy; rm a/soft`); err != nil {
		return err
	}
	ns := vfs.NewNamespace(vfs.Mount{FS: m.files})
	f, err := ns.Open(ctx, vfs.Cred{}, "", "/a/file", vfs.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "from the guest\n" {
		return fmt.Errorf("the host reads %q, %w", b, err)
	}
	if a, err := f.Attr(); err != nil || a.Nlink != 2 || a.UID != 1000 || a.GID != 50 || a.Mode&vfs.ModePerm != 0o640 {
		return fmt.Errorf("the host sees %+v, %w", a, err)
	}
	if _, err := f.Write([]byte("and the host\n")); err != nil {
		return err
	}
	if err := ns.Mkdir(ctx, vfs.Cred{}, "", "/b", 0o755); err != nil {
		return err
	}
	// The guest may take a size for up to a second as it was.
	return m.want(ctx, `cd /tmp/place; until grep -q host hard; do sleep 0.1; done; cat hard; ls; echo 3 >/proc/sys/vm/drop_caches; cmp big copy && stat -c %s big; df . | tail -1 | cut -d' ' -f1
i=0; while [ $i -lt 40 ]; do echo $i >b/$i; i=$((i+1)); done; ls b | wc -l; cat b/* | wc -c; find . -type f | wc -l; rm -r b; ls`,
		"from the guest\nand the host\na\nb\nbig\ncopy\nhard\n1310720\nwork\n40\n110\n44\na\nbig\ncopy\nhard\n")
}

// fork: a child with its own disk, files and card, while a program has a file open whose name is gone.
func (m *machine) fork(ctx context.Context, host *vmm.Host, disk string) error {
	p, err := m.agent.Exec(ctx, guest.Cmd{User: "0:0", Args: []string{"sh", "-c", `
exec 3>/tmp/place/open 4</tmp/place/hard; rm /tmp/place/open /tmp/place/hard; touch /tmp/held
while [ ! -e /tmp/go ]; do sleep 0.1; done
cat <&4 >/tmp/out; echo kept >&3; stat -Lc %s /proc/self/fd/3 >>/tmp/out; mv /tmp/out /tmp/done`}})
	if err != nil {
		return err
	}
	if _, err := m.sh(ctx, "while [ ! -e /tmp/held ]; do sleep 0.1; done"); err != nil {
		return err
	}
	token, err := m.agent.Freeze(ctx)
	if err != nil {
		return err
	}
	if err := m.agent.Flush(ctx, token); err != nil {
		return err
	}
	// All that was written is with the devices, and nobody writes while the agent has the workload frozen: the disk and the files are of
	// the same instant as the memory.
	c := &machine{name: "child"}
	if c.data, err = m.data.Fork(memfd(), memfd()); err != nil {
		return err
	}
	c.files = m.files.Clone()
	if c.server, err = m.server.Clone(ctx, c.files); err != nil {
		return err
	}
	if err := c.make(host, disk, 4, nil); err != nil {
		return err
	}
	defer c.Close()
	failed, err := m.Fork([]*vmm.VM{c.VM}, nil)
	if err := errors.Join(append(failed, err)...); err != nil {
		return err
	}
	if m.agent.Err() != nil {
		if err := m.connect(ctx); err != nil {
			return err
		}
	}
	if err := m.agent.Thaw(ctx, token); err != nil {
		return err
	}
	if err := c.connect(ctx); err != nil {
		return fmt.Errorf("child: %w", err)
	}
	if err := c.renew(ctx, token); err != nil {
		return fmt.Errorf("child: %w; console:\n%s", err, c.Tail())
	}
	for _, x := range []*machine{c, m} {
		if err := x.after(ctx); err != nil {
			return fmt.Errorf("%s: %w; console:\n%s", x.name, err, x.Tail())
		}
	}
	if _, err := p.Wait(ctx); err != nil {
		return err
	}
	// Neither has seen the other's.
	for _, x := range []*machine{c, m} {
		if err := x.want(ctx, "cat /tmp/place/own; dd if=/dev/vdb bs=512 count=1 2>/dev/null | head -c 6", x.name+"\n"+fmt.Sprintf("%-6s", x.name)); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
	}
	return nil
}

// after uses everything in a machine that was forked.
func (m *machine) after(ctx context.Context) error {
	if err := m.want(ctx, "touch /tmp/go; while [ ! -e /tmp/done ]; do sleep 0.1; done; cat /tmp/done", "from the guest\nand the host\n5\n"); err != nil {
		return err
	}
	if err := m.want(ctx, "cd /tmp/place; echo "+m.name+" >own; cmp big copy; ls; ls -la . | wc -l", "a\nbig\ncopy\nown\n7\n"); err != nil {
		return err
	}
	if _, err := m.sh(ctx, fmt.Sprintf("printf '%%-512s' %s | dd of=/dev/vdb conv=fsync 2>/dev/null; echo 3 >/proc/sys/vm/drop_caches", m.name)); err != nil {
		return err
	}
	if err := m.entropy(ctx); err != nil {
		return err
	}
	return m.console(ctx)
}

// renew makes a fork a machine of its own, which it must be before anything runs in it.
func (m *machine) renew(ctx context.Context, token string) error {
	entropy := make([]byte, 32)
	if _, err := rand.Read(entropy); err != nil {
		return err
	}
	return m.agent.Renew(ctx, wire.Renew{Token: token, Entropy: entropy, Time: time.Now(), Hostname: wire.Text(m.name)})
}
