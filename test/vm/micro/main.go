// Command micro runs in the bench: it boots a stock kernel with the agent in our VMM, executes commands in it, and forks it while a
// workload with state runs. It says what it has seen, one line each, and exits with 1 at the first thing that isn't as it should be.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/guest"
	"agentrun.dev/guest/wire"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/boot"
	"agentrun.dev/vmm/virtio"
	"agentrun.dev/vmm/virtio/block"
	"agentrun.dev/vmm/virtio/rng"
	"agentrun.dev/vmm/virtio/vsock"
)

func main() {
	kernel := flag.String("kernel", "/kernel", "the kernel")
	initrd := flag.String("initrd", "/initrd", "the archive with the agent")
	disk := flag.String("disk", "/disk", "the image of the root filesystem")
	memory := flag.Uint64("memory", 192, "MiB of memory")
	children := flag.Int("children", 3, "forks")
	timeout := flag.Duration("timeout", 4*time.Minute, "how long all of it may take")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	b := &bench{memory: *memory << 20, disk: *disk}
	err := b.run(ctx, *kernel, *initrd, *children)
	if err != nil {
		fmt.Println("micro:", err)
		os.Exit(1)
	}
}

// bench makes VMs of one kind.
type bench struct {
	host   *vmm.Host
	memory uint64
	disk   string
}

// machine is a VM with its devices and the agent in it.
type machine struct {
	*vmm.VM
	socket *vsock.Device
	agent  *guest.Client
}

// shell prepares a VM.
func (b *bench) shell(cid uint32, console io.Writer) (*machine, error) {
	v, err := b.host.New(vmm.Config{Memory: b.memory, VCPUs: 1, Console: console})
	if err != nil {
		return nil, err
	}
	m := &machine{VM: v, socket: vsock.New(vsock.Options{CID: cid})}
	image, err := os.Open(b.disk)
	if err != nil {
		return nil, err
	}
	info, err := image.Stat()
	if err != nil {
		return nil, err
	}
	file, err := block.NewFile(image, info.Size(), true)
	if err != nil {
		return nil, err
	}
	for _, d := range []virtio.Device{m.socket, rng.New(rng.Options{}), block.New(file, block.Options{Serial: "root"})} {
		if err := v.Attach(func(s vmm.Slot) (vmm.Device, error) { return virtio.NewMMIO(d, s.Memory, s.Interrupt), nil }); err != nil {
			return nil, err
		}
	}
	return m, nil
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
			return fmt.Errorf("the agent doesn't answer: %w; console:\n%s", err, m.Tail())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// sh runs a script and returns what it writes.
func (m *machine) sh(ctx context.Context, script string) (string, error) {
	var out bytes.Buffer
	p, err := m.agent.Exec(ctx, guest.Cmd{Args: []string{"sh", "-c", script}, Stdout: &out, Stderr: &out})
	if err != nil {
		return "", err
	}
	if status, err := p.Wait(ctx); status != 0 || err != nil {
		return "", fmt.Errorf("%s: status %d, %w: %s", script, status, err, out.Bytes())
	}
	return out.String(), nil
}

// want runs a script that must write this.
func (m *machine) want(ctx context.Context, script, want string) error {
	got, err := m.sh(ctx, script)
	if err == nil && got != want {
		err = fmt.Errorf("%s: %q, want %q", script, got, want)
	}
	return err
}

func say(format string, a ...any) { fmt.Printf("micro: "+format+"\n", a...) }

func ms(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

func (b *bench) run(ctx context.Context, kernel, initrd string, n int) error {
	l := boot.Linux{Cmdline: "console=ttyS0 panic=-1 quiet random.trust_cpu=on"}
	var err error
	if l.Kernel, err = os.ReadFile(kernel); err != nil {
		return err
	}
	if l.Initrd, err = os.ReadFile(initrd); err != nil {
		return err
	}
	if b.host, err = vmm.NewHost(); err != nil {
		return err
	}
	defer b.host.Close()
	m, err := b.shell(3, os.Stdout)
	if err != nil {
		return err
	}
	defer m.Close()
	start := time.Now()
	if err := errors.Join(m.BootLinux(&l), m.Resume()); err != nil {
		return err
	}
	if err := m.connect(ctx); err != nil {
		return err
	}
	say("agent up after %v", ms(time.Since(start)))
	if err := m.basics(ctx); err != nil {
		return err
	}
	if err := b.fork(ctx, m, n); err != nil {
		return err
	}
	return m.off(ctx)
}

// basics: commands, files, streams larger than any window.
func (m *machine) basics(ctx context.Context) error {
	start := time.Now()
	if err := m.want(ctx, "echo hello; hostname; id -u; pwd", "hello\nparent\n1000\n/workspace\n"); err != nil {
		return err
	}
	say("exec ok in %v", ms(time.Since(start)))
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<20/16)
	start = time.Now()
	if _, err := m.agent.Write(ctx, "/tmp/a/file", bytes.NewReader(data), guest.WriteOptions{Parents: true}); err != nil {
		return err
	}
	f, err := m.agent.Open(ctx, "/tmp/a/file", 0, -1)
	if err != nil {
		return err
	}
	defer f.Close()
	if back, err := io.ReadAll(f); err != nil || !bytes.Equal(back, data) {
		return fmt.Errorf("a file comes back as %d bytes, %w", len(back), err)
	}
	say("files ok: 1 MiB there and back in %v", ms(time.Since(start)))
	return nil
}

// fork forks a machine in which a shell holds a variable, and looks at the children.
func (b *bench) fork(ctx context.Context, m *machine, n int) error {
	// The workload: an interpreter with state, fed line by line, which answers each.
	in, feed := io.Pipe()
	out, answers := io.Pipe()
	p, err := m.agent.Exec(ctx, guest.Cmd{Args: []string{"sh", "-c", "while read l; do eval \"$l\"; done"}, Stdin: in, Stdout: answers})
	if err != nil {
		return err
	}
	if err := ask(feed, out, "x=41; x=$((x+1)); echo $x", "42"); err != nil {
		return err
	}
	shells := make([]*machine, n)
	vms := make([]*vmm.VM, n)
	for i := range shells {
		if shells[i], err = b.shell(uint32(10+i), nil); err != nil {
			return err
		}
		defer shells[i].Close()
		vms[i] = shells[i].VM
	}
	start := time.Now()
	token, err := m.agent.Freeze(ctx)
	if err != nil {
		return err
	}
	frozen := time.Since(start)
	start = time.Now()
	failed, err := m.Fork(vms, nil)
	if err := errors.Join(append(failed, err)...); err != nil {
		return err
	}
	forked := time.Since(start)
	if err := m.agentAgain(ctx); err != nil {
		return fmt.Errorf("parent: %w", err)
	}
	if err := m.agent.Thaw(ctx, token); err != nil {
		return fmt.Errorf("parent: %w", err)
	}
	say("frozen in %v, forked %d times in %v", ms(frozen), n, ms(forked))
	var all sync.WaitGroup
	var mu sync.Mutex
	var random []string
	results := make([]error, n)
	for i, c := range shells {
		all.Go(func() {
			r, err := c.child(ctx, i, token, p.Pid(), start)
			mu.Lock()
			defer mu.Unlock()
			random = append(random, r)
			if err != nil {
				results[i] = fmt.Errorf("child %d: %w; console:\n%s", i, err, c.Tail())
			}
		})
	}
	all.Wait()
	if err := errors.Join(results...); err != nil {
		return err
	}
	// The parent's own state is as it was: nothing of the children shows.
	if err := ask(feed, out, "echo $x $y", "42"); err != nil {
		return fmt.Errorf("parent: %w", err)
	}
	if err := m.want(ctx, "hostname; ls /tmp", "parent\na\n"); err != nil {
		return err
	}
	own, err := m.sh(ctx, "head -c 16 /dev/urandom | hexdump -e '16/1 \"%02x\"'")
	if err != nil {
		return err
	}
	random = append(random, own)
	slices.Sort(random)
	if len(slices.Compact(slices.Clone(random))) != n+1 {
		return fmt.Errorf("machines draw the same random bytes: %q", random)
	}
	say("forks ok: state, names, files and random bytes of their own")
	feed.Close()
	if status, err := p.Wait(ctx); status != 0 || err != nil {
		return fmt.Errorf("the parent's workload ends with %d, %w", status, err)
	}
	return nil
}

// agentAgain looks whether the connection has lived through the fork, and makes another if not.
func (m *machine) agentAgain(ctx context.Context) error {
	if m.agent.Err() == nil {
		return nil
	}
	return m.connect(ctx)
}

// child renews a fork, and takes its workload up where the parent's stood.
func (m *machine) child(ctx context.Context, i int, token string, pid int, start time.Time) (random string, err error) {
	if err := m.connect(ctx); err != nil {
		return "", err
	}
	connected := time.Since(start)
	if _, err := m.agent.Exec(ctx, guest.Cmd{Args: []string{"true"}}); errs.KindOf(err) != errs.Unavailable {
		return "", fmt.Errorf("a command before the machine was renewed: %w", err)
	}
	name := fmt.Sprintf("child%d", i)
	at := time.Now().Add(time.Duration(i+1) * 1000 * time.Hour)
	if err := m.agent.Renew(ctx, wire.Renew{Token: token, Time: at, Hostname: wire.Text(name), Env: []wire.Text{wire.Text("NAME=" + name)}}); err != nil {
		return "", err
	}
	renewed := time.Since(start)
	if err := m.want(ctx, "hostname; echo $NAME", name+"\n"+name+"\n"); err != nil {
		return "", err
	}
	say("child %d: connected %v, renewed %v, first exec %v after the fork", i, ms(connected), ms(renewed), ms(time.Since(start)))
	in, feed := io.Pipe()
	out, answers := io.Pipe()
	p, err := m.agent.Attach(ctx, pid, guest.Cmd{Stdin: in, Stdout: answers})
	if err != nil {
		return "", err
	}
	if err := ask(feed, out, fmt.Sprintf("y=%d; x=$((x+y)); echo $x; echo $x >/tmp/child%d", i, i), fmt.Sprint(42+i)); err != nil {
		return "", err
	}
	feed.Close()
	if status, err := p.Wait(ctx); status != 0 || err != nil {
		return "", fmt.Errorf("the workload ends with %d, %w", status, err)
	}
	if err := m.want(ctx, "ls /tmp; cat /tmp/child*; date +%Y%m%d", fmt.Sprintf("a\nchild%d\n%d\n%s\n", i, 42+i, at.UTC().Format("20060102"))); err != nil {
		return "", err
	}
	if random, err = m.sh(ctx, "head -c 16 /dev/urandom | hexdump -e '16/1 \"%02x\"'"); err != nil {
		return "", err
	}
	return random, m.off(ctx)
}

// ask feeds a line to an interpreter and waits for its answer.
func ask(feed io.Writer, out io.Reader, line, want string) error {
	if _, err := io.WriteString(feed, line+"\n"); err != nil {
		return err
	}
	var got []byte
	one := make([]byte, 1)
	for {
		if _, err := io.ReadFull(out, one); err != nil {
			return err
		}
		if one[0] == '\n' {
			break
		}
		got = append(got, one[0])
	}
	if strings.TrimSpace(string(got)) != want {
		return fmt.Errorf("%s: %q, want %q", line, got, want)
	}
	return nil
}

// off turns a machine off, cleanly.
func (m *machine) off(ctx context.Context) error {
	if err := m.agent.Shutdown(ctx); err != nil {
		return err
	}
	if err := m.Wait(ctx); err != nil {
		return fmt.Errorf("off: %w", err)
	}
	return m.agent.Close()
}
