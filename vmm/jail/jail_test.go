package jail_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/jail"
	"agentrun.dev/vmm/vmmtest"
)

const mib = 1 << 20

// TestMain is the VMM process when it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "be-a-vmm" {
		if err := jail.Serve(nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == "be-another-vmm" { // of another version: it answers this to whatever comes
		buf := make([]byte, 64<<10)
		if _, err := unix.Read(jail.SocketFD, buf); err == nil {
			_, _ = unix.Write(jail.SocketFD, []byte(os.Args[2]))
		}
		_, _ = unix.Read(jail.SocketFD, buf)
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == "be-a-parent" {
		beParent(os.Args[2])
	}
	os.Exit(m.Run())
}

// beParent starts a process, as a user or in a user namespace, says its number, and waits for its own end.
func beParent(user string) {
	uid, _ := strconv.Atoi(user)
	p, err := jail.Start(context.Background(), options(nil, uid))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.PID())
	select {}
}

// kernel is a vmlinux of a few instructions: it counts at 16 MiB+4 KiB for ever, after it wrote "up" to its console; when a key
// is typed, it writes the low byte of the count's page (0x5a) and switches itself off.
func kernel(t *testing.T) *os.File {
	t.Helper()
	code := []byte{
		0xba, 0xf8, 0x03, 0x00, 0x00, // mov edx, 0x3f8
		0xb0, 'u', 0xee, 0xb0, 'p', 0xee, 0xb0, '\n', 0xee,
		0xc7, 0x04, 0x25, 0x00, 0x20, 0x00, 0x01, 0x5a, 0x00, 0x00, 0x00, // mov dword [0x1002000], 0x5a
		// l: inc dword [0x1001000]
		0xff, 0x04, 0x25, 0x00, 0x10, 0x00, 0x01,
		0xba, 0xfd, 0x03, 0x00, 0x00, 0xec, 0xa8, 0x01, 0x74, 0xef, // mov edx,0x3fd; in al,dx; test al,1; jz l
		0xba, 0xf8, 0x03, 0x00, 0x00, 0xec, // mov edx,0x3f8; in al,dx
		0x8a, 0x04, 0x25, 0x00, 0x20, 0x00, 0x01, 0xee, // mov al,[0x1002000]; out dx,al
		0xba, 0x00, 0x06, 0x00, 0x00, 0xb0, 0x34, 0xee, 0xeb, 0xfe, // mov edx,0x600; mov al,0x34; out dx,al
	}
	return elf(t, code)
}

// elf is a vmlinux with code at 16 MiB.
func elf(t *testing.T, code []byte) *os.File {
	t.Helper()
	b := make([]byte, 64+56, 64+56+len(code))
	le := binary.LittleEndian
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[18:], 62)
	le.PutUint64(b[24:], 16*mib)
	le.PutUint64(b[32:], 64)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 1)
	h := b[64:]
	le.PutUint32(h, 1)
	le.PutUint64(h[8:], uint64(len(b)))
	le.PutUint64(h[24:], 16*mib)
	le.PutUint64(h[32:], uint64(len(code)))
	le.PutUint64(h[40:], 3*4096)
	f, err := os.CreateTemp(t.TempDir(), "kernel")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(append(b, code...)); err != nil {
		t.Fatal(err)
	}
	return f
}

// users are the ways in which a process can be confined here.
func users() map[string]int {
	if os.Getuid() == 0 {
		return map[string]int{"a user of its own": 61234, "a user namespace": 0}
	}
	return map[string]int{"a user namespace": 0}
}

func options(console *os.File, uid int) jail.Options {
	return jail.Options{Config: vmm.Config{Memory: 32 * mib}, Path: "/proc/self/exe", Args: []string{"be-a-vmm"}, Console: console, UID: uid, GID: uid}
}

func start(t *testing.T, o jail.Options) *jail.Process {
	t.Helper()
	p, err := jail.Start(limit(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func limit(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// console is a pipe, and what came out of it up to a text.
func console(t *testing.T) (*os.File, func(text string)) {
	t.Helper()
	r, w, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { r.Close(); w.Close() })
	return w, func(text string) {
		t.Helper()
		must(t, r.SetReadDeadline(time.Now().Add(time.Minute)))
		var got []byte
		for b := make([]byte, 1); !bytes.Contains(got, []byte(text)); {
			if _, err := r.Read(b); err != nil {
				t.Fatalf("the console said %q and then %v", got, err)
			}
			got = append(got, b[0])
		}
	}
}

// A kernel boots in a process of its own, is forked into others, each of which goes on and ends by itself.
func TestFork(t *testing.T) {
	vmmtest.Host(t)
	for name, uid := range users() {
		t.Run(name, func(t *testing.T) {
			w, until := console(t)
			p := start(t, options(w, uid))
			ctx := limit(t)
			must(t, p.Boot(ctx, kernel(t), nil, "quiet"))
			must(t, p.Resume(ctx))
			until("up")
			s, err := p.Capture(ctx)
			must(t, err)
			im, err := jail.NewImage(s)
			must(t, err)
			must(t, s.Close())
			defer im.Close()
			var children []*jail.Process
			for i := range 3 {
				c := start(t, options(nil, uid))
				if i == 0 {
					must(t, c.Restore(ctx, im))
					must(t, c.Resume(ctx))
				} else {
					must(t, c.Run(ctx, im))
				}
				children = append(children, c)
			}
			if err := p.Resume(ctx); err != nil {
				t.Fatal(err)
			}
			again, err := children[0].CaptureImage(ctx)
			must(t, err)
			must(t, children[0].Thaw(ctx))
			c := start(t, options(nil, uid))
			must(t, c.Run(ctx, again))
			children = append(children, c)
			read, err := again.Snapshot()
			must(t, err)
			// The line that "up" is in may not have been at its end.
			if read.Machine != s.Machine || !bytes.HasPrefix(read.Console, s.Console) || len(read.CPUs) != 1 {
				t.Errorf("the image of a child is read as %+v", read)
			}
			must(t, read.Close())
			must(t, again.Close())
			for _, c := range append(children, p) {
				must(t, c.Input(ctx, []byte("x")))
				must(t, c.Wait(ctx))
				if err := c.Resume(ctx); errs.KindOf(err) != errs.Unavailable {
					t.Errorf("resuming an ended VM: %v", err)
				}
			}
		})
	}
}

// status reads a line of /proc/PID/status.
func status(t *testing.T, pid int, name string) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	for line := range strings.Lines(string(b)) {
		if k, v, _ := strings.Cut(line, ":"); k == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// A process has nothing: no files, no network, no capabilities, its own user.
func TestConfined(t *testing.T) {
	vmmtest.Host(t)
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED HERE: only root can look into a confined process; CI runs this as root")
	}
	p := start(t, options(nil, 61234))
	for name, want := range map[string]string{"Uid": "61234\t61234\t61234\t61234", "Gid": "61234\t61234\t61234\t61234", "Groups": "", "CapEff": "0000000000000000",
		"CapPrm": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2"} {
		if got := status(t, p.PID(), name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/root/", p.PID()))
	if err != nil || len(files) != 0 {
		t.Errorf("its root has %v, %v", files, err)
	}
	for _, ns := range []string{"mnt", "net", "ipc", "uts", "pid", "cgroup"} {
		a, err := os.Readlink("/proc/self/ns/" + ns)
		must(t, err)
		b, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", p.PID(), ns))
		must(t, err)
		if a == b {
			t.Errorf("it has our %s namespace", ns)
		}
	}
}

// Each process is a user of its own, whom it gives back, and dies before who has started it when the host's memory ends.
func TestOwnUsers(t *testing.T) {
	vmmtest.Host(t)
	users, err := jail.NewUsers(jail.FirstUser, 2)
	if err != nil {
		t.Skipf("NOT TESTED HERE: %v; CI runs this as root", err)
	}
	defer users.Close()
	o := options(nil, 0)
	o.Users = users
	a, b := start(t, o), start(t, o)
	seen := make(map[string]bool)
	for _, p := range []*jail.Process{a, b} {
		uid, _, _ := strings.Cut(status(t, p.PID(), "Uid"), "\t")
		if n, err := strconv.Atoi(uid); err != nil || n < jail.FirstUser || n > jail.FirstUser+1 || seen[uid] || status(t, p.PID(), "Gid") != strings.Repeat(uid+"\t", 3)+uid {
			t.Errorf("users %q, groups %q", status(t, p.PID(), "Uid"), status(t, p.PID(), "Gid"))
		}
		seen[uid] = true
		score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", p.PID()))
		must(t, err)
		if strings.TrimSpace(string(score)) != "900" {
			t.Errorf("its score is %s", score)
		}
	}
	if p, err := jail.Start(limit(t), o); !errs.Is(err, errs.Limit) {
		t.Errorf("a third of two: %v, %v", p, err)
	}
	must(t, a.Close())
	start(t, o)
	o.Path = "/no/such/program"
	must(t, b.Close())
	if _, err := jail.Start(limit(t), o); err == nil || users.InUse() != 1 {
		t.Errorf("a program that isn't there: %v, %d users", err, users.InUse())
	}
}

// A process doesn't outlive who started it, whatever it does: this one can't even see that its socket is closed.
func TestParentKilled(t *testing.T) {
	vmmtest.Host(t)
	for name, uid := range users() {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe", "be-a-parent", strconv.Itoa(uid))
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			defer cmd.Wait()
			defer cmd.Process.Kill()
			line, err := bufio.NewReader(out).ReadString('\n')
			must(t, err)
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(line)
			}
			must(t, unix.Kill(pid, unix.SIGSTOP))
			must(t, cmd.Process.Kill())
			lives := func() bool {
				b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				return err == nil && !bytes.Contains(b, []byte(") Z ")) && bytes.Contains(b, []byte("(agentrun-vmm)"))
			}
			for end := time.Now().Add(time.Minute); lives(); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					_ = unix.Kill(pid, unix.SIGKILL)
					t.Fatal("it lives on")
				}
			}
		})
	}
}

// A process that is killed is reported, its neighbour lives, nobody waits for ever.
func TestKilled(t *testing.T) {
	vmmtest.Host(t)
	w, until := console(t)
	uid := 0
	if os.Getuid() == 0 {
		uid = 61234
	}
	p, neighbour := start(t, options(w, uid)), start(t, options(nil, uid))
	ctx := limit(t)
	must(t, p.Boot(ctx, kernel(t), nil, ""))
	must(t, p.Resume(ctx))
	until("up")
	process, err := os.FindProcess(p.PID())
	must(t, err)
	must(t, process.Kill())
	if err := p.Wait(ctx); errs.KindOf(err) != errs.Unavailable || !strings.Contains(err.Error(), "killed") {
		t.Errorf("waiting for a killed process: %v", err)
	}
	if err := p.Pause(ctx); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("pausing a killed process: %v", err)
	}
	must(t, neighbour.Boot(ctx, kernel(t), nil, ""))
	must(t, neighbour.Close())
	must(t, p.Close())
}

// What can't be done is an error with its kind, and the process takes further orders.
func TestErrors(t *testing.T) {
	vmmtest.Host(t)
	if _, err := jail.Start(limit(t), jail.Options{Path: "/no/such/program"}); err == nil {
		t.Error("a program that isn't there")
	}
	o := options(nil, 0)
	o.Config.VCPUs = 1000
	if _, err := jail.Start(limit(t), o); errs.KindOf(err) != errs.Invalid {
		t.Errorf("too many vCPUs: %v", err)
	}
	p := start(t, options(nil, 0))
	ctx := limit(t)
	if err := p.Resume(ctx); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("resuming a shell: %v", err)
	}
	empty, err := os.CreateTemp(t.TempDir(), "empty")
	must(t, err)
	defer empty.Close()
	if err := p.Boot(ctx, empty, nil, ""); errs.KindOf(err) != errs.Invalid {
		t.Errorf("booting nothing: %v", err)
	}
	if _, err := p.Capture(ctx); err == nil {
		t.Error("a snapshot of nothing")
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if err := p.Pause(canceled); err != nil && errs.KindOf(err) != errs.Canceled && !errors.Is(err, context.Canceled) && errs.KindOf(err) != errs.Unavailable {
		t.Errorf("an order that nobody waits for: %v", err)
	}
}
