package vm

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"agentrun.dev/errs"
	"agentrun.dev/guest"
	"agentrun.dev/guest/image"
	"agentrun.dev/guest/initramfs"
	"agentrun.dev/guest/machine"
	"agentrun.dev/guest/wire"
	"agentrun.dev/test/harness"
)

// rootImage makes the filesystem of an OCI image with a small system, busybox, as the product does: pulled from a registry, written once.
func rootImage(t *testing.T) string {
	t.Helper()
	busybox, err := os.ReadFile(harness.Tool(t, "busybox"))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	put := func(h tar.Header, content []byte) {
		h.Size = int64(len(content))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"root", "tmp", "home/user", "workspace"} {
		put(tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755}, nil)
	}
	put(tar.Header{Name: "etc/passwd", Mode: 0o644}, []byte("root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:User:/home/user:/bin/sh\n"))
	put(tar.Header{Name: "etc/group", Mode: 0o644}, []byte("root:x:0:\nuser:x:1000:\nstaff:x:50:user\n"))
	put(tar.Header{Name: "bin/busybox", Mode: 0o755}, busybox)
	for _, name := range busyboxApplets(t) {
		switch name {
		case "cat":
			put(tar.Header{Typeflag: tar.TypeLink, Name: "bin/cat", Linkname: "bin/busybox"}, nil)
		default:
			put(tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + name, Linkname: "busybox"}, nil)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	ref := strings.TrimPrefix(server.URL, "http://") + "/busybox:1"
	tag, err := name.NewTag(ref)
	if err == nil {
		err = remote.Write(tag, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	store, err := image.NewStore(t.TempDir(), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	file, _, err := store.Root(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// busyboxApplets are the programs that busybox is, beside its own name.
func busyboxApplets(t *testing.T) []string {
	t.Helper()
	list, err := exec.Command(harness.Tool(t, "busybox"), "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Fields(string(list)), func(name string) bool { return name == "busybox" })
}

// guestArchive is what a VM with the agent boots from.
func guestArchive(t *testing.T, c machine.Config, modules ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "guest.cpio")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found, err := initramfs.Modules(filepath.Join(filepath.Dir(harness.Tool(t, "kernel-cloud")), "modules"), modules...)
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	w := initramfs.NewWriter(f)
	if err := errors.Join(w.AddModules(found), add(w, "/init", Build(t, "agentrun.dev/cmd/agentrun-guest", false)), w.Bytes(machine.ConfigFile, 0o644, string(config)),
		w.Char("/dev/console", 0o600, 5, 1), w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return file
}

// emulated is a VM that QEMU runs by itself, with the agent behind a virtio port.
type emulated struct {
	console string
	ended   chan error
	*guest.Client
}

// emulate boots the stock cloud kernel with the agent and a disk.
func emulate(t *testing.T) *emulated {
	t.Helper()
	dir := t.TempDir()
	archive := guestArchive(t, machine.Config{Device: "/dev/vport0p1", Hostname: "first", User: "user", Dir: "/workspace", Env: []string{"A=template"},
		Lower: []wire.Mount{{Type: "erofs", Source: "/dev/vda"}}},
		"virtio_pci", "virtio_console", "virtio_blk", "erofs", "overlay")
	e := &emulated{console: filepath.Join(dir, "console"), ended: make(chan error, 1)}
	socket := filepath.Join(dir, "agent")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, harness.Tool(t, "qemu-system-x86_64"),
		"-machine", "q35", "-accel", "tcg", "-cpu", "EPYC", "-m", "256", "-smp", "1", "-nodefaults", "-display", "none", "-no-reboot",
		"-serial", "file:"+e.console,
		"-device", "virtio-serial-pci,addr=2", "-chardev", "socket,id=agent,server=on,wait=off,path="+socket, "-device", "virtserialport,chardev=agent,name=agent",
		"-drive", "if=none,id=root,format=raw,readonly=on,file="+rootImage(t), "-device", "virtio-blk-pci,addr=3,drive=root",
		"-kernel", harness.Tool(t, "kernel-cloud"), "-initrd", archive, "-append", "console=ttyS0 panic=-1 quiet random.trust_cpu=on no_timer_check")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		e.ended <- cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	for !strings.Contains(e.messages(), "agentrun-guest: ready") {
		select {
		case <-ended:
			t.Fatalf("it ended before it was ready\n%s\n%s", stderr.Bytes(), e.messages())
		case <-time.After(20 * time.Millisecond):
		}
	}
	nc, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	if e.Client, err = guest.New(nc); err != nil {
		t.Fatalf("%v\n%s", err, e.messages())
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func (e *emulated) messages() string {
	b, _ := os.ReadFile(e.console)
	return string(tail(b))
}

// run executes a script and returns its output.
func (e *emulated) run(t *testing.T, cmd guest.Cmd) string {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := e.Exec(t.Context(), cmd)
	if err != nil {
		t.Fatalf("%v\n%s", err, e.messages())
	}
	if status, err := p.Wait(t.Context()); status != 0 || err != nil {
		t.Fatalf("%v: status %d, %v\n%s", cmd.Args, status, err, out.Bytes())
	}
	return out.String()
}

func sh(script string) guest.Cmd { return guest.Cmd{Args: []string{"sh", "-c", script}} }

// TestMachine boots the stock cloud kernel with the agent as its first process: what can only be tried where one may do anything.
func TestMachine(t *testing.T) {
	t.Parallel()
	e := emulate(t)
	root := func(script string) guest.Cmd { c := sh(script); c.User = "root"; return c }
	t.Run("root", func(t *testing.T) {
		if got := e.run(t, sh("id -u; id -G; pwd; hostname; echo $HOME $A")); got != "1000\n1000 50\n/workspace\nfirst\n/home/user template\n" {
			t.Errorf("%q", got)
		}
		if got := e.run(t, root("grep -c overlay /proc/mounts; touch /new && rm /bin/vi && ls /bin/vi 2>&1 | wc -l; ls /modules /init 2>&1 | grep -c 'No such'")); got != "1\n1\n2\n" {
			t.Errorf("%q", got)
		}
	})
	t.Run("image", func(t *testing.T) { // what the kernel reads is what was written
		want, err := os.ReadFile(harness.Tool(t, "busybox"))
		if err != nil {
			t.Fatal(err)
		}
		f, err := e.Open(t.Context(), "/bin/busybox", 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, want) {
			t.Errorf("busybox has %d bytes, %v; want %d", len(got), err, len(want))
		}
		if got := e.run(t, sh("readlink /bin/ls; stat -c '%a %u %h' /bin/cat; ls /bin | wc -l | tr -d ' '; cat /etc/group | wc -l")); !strings.HasPrefix(got, "busybox\n755 0 2\n") || !strings.HasSuffix(got, "\n3\n") {
			t.Errorf("%q", got)
		}
	})
	t.Run("terminal", func(t *testing.T) {
		cmd := sh("tty; stty size")
		cmd.TTY = &wire.Size{Cols: 99, Rows: 33}
		if got := e.run(t, cmd); got != "/dev/pts/0\r\n33 99\r\n" {
			t.Errorf("%q", got)
		}
	})
	t.Run("orphans are reaped and background processes end", func(t *testing.T) {
		e.run(t, sh("for i in 1 2 3 4 5; do (setsid sleep 1000 &) ; done; (true &)"))
		if got := e.run(t, root(`ps -o stat,comm | grep -c -e '^Z' -e sleep || true`)); got != "1\n" && got != "0\n" { // grep may see itself
			t.Errorf("%q", e.run(t, root("ps")))
		}
	})
	t.Run("stats", func(t *testing.T) {
		st, err := e.Stats(t.Context())
		if err != nil || st.CPU <= 0 || st.Memory <= 0 || st.MemoryTotal < 128<<20 || st.Count != 0 {
			t.Errorf("%+v, %v", st, err)
		}
	})
	t.Run("freeze and thaw", func(t *testing.T) { e.freeze(t) })
	t.Run("renew", func(t *testing.T) { e.renew(t) })
	t.Run("mount", func(t *testing.T) {
		if err := e.Mount(t.Context(), wire.Mount{Type: "tmpfs", Source: "x", Path: "/mnt/x", Options: "size=1m"}); err != nil {
			t.Fatal(err)
		}
		if got := e.run(t, sh("df -k /mnt/x | tail -n 1 | awk '{print $2}'")); got != "1024\n" {
			t.Errorf("%q", got)
		}
		if err := e.Unmount(t.Context(), "/mnt/x"); err != nil {
			t.Error(err)
		}
		if err := e.Unmount(t.Context(), "/mnt/x"); err == nil {
			t.Error("unmounted twice")
		}
		if err := e.Mount(t.Context(), wire.Mount{Type: "nonesuch", Source: "x", Path: "/mnt/x"}); err == nil {
			t.Error("a filesystem that there isn't is mounted")
		}
	})
	t.Run("off", func(t *testing.T) {
		if err := e.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-e.ended; err != nil {
			t.Errorf("QEMU ended with %v\n%s", err, e.messages())
		}
	})
}

// freeze holds a workload that counts in a file.
func (e *emulated) freeze(t *testing.T) {
	p, err := e.Exec(t.Context(), sh("while :; do echo >>/tmp/ticks; done"))
	if err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		i, err := e.Stat(t.Context(), "/tmp/ticks", true)
		if err != nil && errs.KindOf(err) != errs.NotFound {
			t.Fatal(err)
		}
		return i.Size
	}
	moves := func() {
		t.Helper()
		for from, end := size(), time.Now().Add(time.Minute); size() == from; {
			if time.Now().After(end) {
				t.Fatal("the workload doesn't run")
			}
		}
	}
	moves()
	token, err := e.Freeze(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	from := size()
	time.Sleep(500 * time.Millisecond)
	if now := size(); now != from {
		t.Errorf("a frozen workload has run: %d bytes more", now-from)
	}
	if err := e.Thaw(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	moves()
	if err := p.Signal(15); err != nil {
		t.Error(err)
	}
	if status, err := p.Wait(t.Context()); status != 143 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
}

// renew makes it another machine.
func (e *emulated) renew(t *testing.T) {
	token, err := e.Freeze(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	id := strings.Repeat("0123456789abcdef", 2)
	if err := e.Renew(t.Context(), wire.Renew{Token: token, Time: at, Hostname: "second", MachineID: wire.Text(id), Env: []wire.Text{"A=fork", "B=new"}, DNS: []wire.Text{"10.0.0.1"},
		Links: []wire.Interface{{Name: "lo", Address: "127.0.0.5/8"}}}); err != nil {
		t.Fatal(err)
	}
	got := e.run(t, sh("hostname; cat /etc/machine-id /etc/resolv.conf; echo $A $B; date -u +%Y-%m-%d; ip -o -4 addr show lo | awk '{print $4}'; grep -c second /etc/hosts"))
	if got != "second\n"+id+"\nnameserver 10.0.0.1\nfork new\n2031-02-03\n127.0.0.5/8\n1\n" {
		t.Errorf("%q", got)
	}
	if token, err = e.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Fail closed: a step that fails leaves the workload frozen.
	if err := e.Renew(t.Context(), wire.Renew{Token: token, Time: at, Links: []wire.Interface{{Name: "eth7"}}}); err == nil {
		t.Error("an interface that there isn't is set")
	}
	if _, err := e.Exec(t.Context(), sh("true")); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("a command in a machine that wasn't renewed: %v", err)
	}
	if err := e.Thaw(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	e.run(t, sh("true"))
}

// TestMicro boots the stock cloud kernel with the agent in our own VMM, and forks it while a shell with state runs in it.
func TestMicro(t *testing.T) {
	t.Parallel()
	archive := guestArchive(t, machine.Config{Hostname: "parent", User: "user", Dir: "/workspace", Lower: []wire.Mount{{Type: "erofs", Source: "/dev/vda"}}},
		"virtio_mmio", "vmw_vsock_virtio_transport", "virtio_rng", "virtio_blk", "erofs", "overlay")
	r := Run(t, Program{
		Path:    Build(t, "agentrun.dev/test/vm/micro", false),
		Args:    []string{"-timeout", "3m"},
		Files:   map[string]string{"/kernel": harness.Tool(t, "kernel-cloud"), "/initrd": archive, "/disk": rootImage(t)},
		Timeout: 5 * time.Minute,
	})
	for line := range strings.Lines(string(r.Output)) {
		if strings.HasPrefix(line, "micro: ") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if r.Status != 0 || !bytes.Contains(r.Output, []byte("forks ok")) {
		t.Errorf("status %d, output:\n%s", r.Status, r.Output)
	}
}
