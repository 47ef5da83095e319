package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/engine/microvm"
	"agentrun.dev/errs"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
	"agentrun.dev/volume"
)

// sh runs a script in an instance and returns what it writes.
func sh(t *testing.T, in engine.Instance, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var out bytes.Buffer
	p, err := in.Exec(ctx, engine.Cmd{Args: []string{"sh", "-c", script}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	if status, err := p.Wait(ctx); status != 0 || err != nil {
		t.Fatalf("%s: status %d, %v: %s", script, status, err, out.String())
	}
	return out.String()
}

func boot(t *testing.T, e *microvm.Engine, s engine.Spec) engine.Instance {
	t.Helper()
	in, err := e.Boot(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, in) })
	return in
}

func stop(t *testing.T, in engine.Instance) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := in.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func id(name string) engine.Identity { return engine.Identity{ID: name} }

// vmms are the numbers of the VMM processes that run.
func vmms(t *testing.T) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if b, _ := os.ReadFile(f); strings.TrimSpace(string(b)) == "agentrun-vmm" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestMachines is what machines do besides what every engine's sandboxes do.
func TestMachines(t *testing.T) {
	e := newEngine(t)
	t.Run("volumes come and go", func(t *testing.T) { testMounts(t, e) })
	t.Run("sync", func(t *testing.T) { testSync(t, e) })
	t.Run("sync of a machine that is forked", func(t *testing.T) { testFrozenSync(t, e) })
	t.Run("replaced files", func(t *testing.T) { testReplaced(t, e) })
	t.Run("files as a kernel has them", func(t *testing.T) { testKernelFiles(t, e) })
	t.Run("files from outside", func(t *testing.T) { testFiles(t, e) })
	t.Run("what nobody serves", func(t *testing.T) { testUnserved(t, e) })
	t.Run("memory that isn't needed any more", func(t *testing.T) { testFreed(t, e) })
	t.Run("memory of a fork", func(t *testing.T) { testOwnPages(t, e) })
	t.Run("limits", func(t *testing.T) { testLimits(t, e) })
	t.Run("a machine that ends", func(t *testing.T) { testEnd(t, e) })
	t.Run("forks that fail leave nothing", func(t *testing.T) { testFailedForks(t, e) })
}

// ownPages is how much of its guest's RAM each VMM process has for itself, in bytes; shells aren't there.
func ownPages(t *testing.T) map[int]int {
	own := make(map[int]int)
	for _, pid := range vmms(t) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid)) // it may have ended
		ram := false
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			switch {
			case len(f) < 2:
			case !strings.HasSuffix(f[0], ":"):
				if ram = strings.Contains(line, "memfd:agentrun-ram"); ram {
					own[pid] += 0
				}
			case ram && f[0] == "Anonymous:":
				kib, _ := strconv.Atoi(f[1])
				own[pid] += kib << 10
			}
		}
	}
	return own
}

// What a fork may have of its own pages once it runs, and when its first command has ended. It is 1.6 to 2.3 MB and 3.5 to 3.9 MB, by how many
// threads a busy host lets come to run; most is what any kernel writes to when it goes on: its processor's data, page tables, and of each thread a
// stack and a state.
const (
	mostStarted = 3_500_000
	mostUsed    = 6_000_000
)

func testOwnPages(t *testing.T, e *microvm.Engine) {
	in := boot(t, e, engine.Spec{Identity: id("pages")})
	if _, err := in.Exec(t.Context(), engine.Cmd{Args: []string{"sleep", "1000"}}); err != nil {
		t.Fatal(err)
	}
	frozen, err := in.Freeze(t.Context(), engine.FreezeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	im, err := frozen.Capture(t.Context())
	if err := errors.Join(err, frozen.Thaw()); err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	before := ownPages(t)
	fork, err := im.Start(t.Context(), id("pages-fork"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, fork)
	check := func(what string, most int) {
		found := 0
		for pid, n := range ownPages(t) {
			if _, ok := before[pid]; ok {
				continue
			}
			found++
			fmt.Printf("engine: own pages of a fork, %s: %d kB\n", what, n/1000)
			if n == 0 || n > most {
				t.Errorf("%s, a fork has %d bytes of its own pages, %d at most are expected", what, n, most)
			}
		}
		if found != 1 {
			t.Errorf("there are %d machines that weren't there before", found)
		}
	}
	check("started", mostStarted)
	p, err := fork.Exec(t.Context(), engine.Cmd{Args: []string{"true"}}) // of the same file as sleep, which is in memory
	if err != nil {
		t.Fatal(err)
	}
	if status, err := p.Wait(t.Context()); status != 0 || err != nil {
		t.Fatal(status, err)
	}
	check("after its first command", mostUsed)
}

func testMounts(t *testing.T, e *microvm.Engine) {
	in := boot(t, e, engine.Spec{Identity: id("mounts")}).(*microvm.Instance)
	ctx := t.Context()
	shared := memfs.New(memfs.Options{})
	if err := in.Mount(ctx, engine.Volume{Path: "/data", FS: shared, Source: "shared", Type: "memory"}); err != nil {
		t.Fatal(err)
	}
	if err := in.Mount(ctx, engine.Volume{Path: "/data", FS: shared}); !errs.Is(err, errs.Conflict) {
		t.Errorf("mounted twice: %v", err)
	}
	if err := in.Mount(ctx, engine.Volume{Path: "/fixed", FS: shared, ReadOnly: true}); err != nil {
		t.Fatal(err)
	}
	p, err := in.Exec(ctx, engine.Cmd{Args: []string{"sh", "-c", "echo x >/data/f; cat /fixed/f; echo y 2>&1 >/fixed/g; ls -a /data | wc -l"}, Root: true, Stdout: os.Stdout})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(ctx); err != nil {
		t.Error(err)
	}
	if _, err := vfs.NewNamespace(vfs.Mount{FS: shared}).Stat(ctx, vfs.Cred{}, "", "/g"); err == nil {
		t.Error("a volume that is read only was written to")
	}
	if got := sh(t, in, "cat /data/f"); got != "x\n" {
		t.Errorf("%q", got)
	}
	// A fork has what was mounted, at the instant's state.
	frozen, err := in.Freeze(ctx, engine.FreezeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	clone := shared.Clone()
	im, err := frozen.Capture(ctx)
	if err := errors.Join(err, frozen.Thaw()); err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	fork, err := im.Start(ctx, id("mounts-fork"), []engine.Volume{{Path: "/data", FS: clone}, {Path: "/fixed", FS: clone, ReadOnly: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, fork)
	if got := sh(t, fork, "cat /data/f /fixed/f"); got != "x\nx\n" {
		t.Errorf("in the fork: %q", got)
	}
	for _, path := range []string{"/data", "/fixed"} {
		if err := in.Unmount(ctx, path); err != nil {
			t.Error(err)
		}
	}
	if err := in.Unmount(ctx, "/data"); !errs.Is(err, errs.Invalid) {
		t.Errorf("unmounted twice: %v", err)
	}
	if got := sh(t, in, "ls /data /fixed | grep -c f; true"); got != "2\n" && got != "1\n" { // ls names the folders
		t.Errorf("%q", got)
	}
}

// A guest may use a device that no volume is behind: it gets an error, and can be frozen, during which its files are an error, too, if it
// takes long.
func testUnserved(t *testing.T, e *microvm.Engine) {
	in := boot(t, e, engine.Spec{Identity: id("unserved"), Volumes: []engine.Volume{{Path: "/volume", FS: memfs.New(memfs.Options{})}}})
	ctx := t.Context()
	p, err := in.Exec(ctx, engine.Cmd{Args: []string{"sh", "-c", "mkdir /tmp/m; mount -t virtiofs vol7 /tmp/m; ls /tmp/m"}, Root: true})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	frozen, err := in.Freeze(ctx, engine.FreezeOptions{})
	if err != nil {
		t.Fatalf("after %v: %v", time.Since(begin), err)
	}
	ns := in.(engine.Filer).Namespace()
	if _, err := ns.Stat(ctx, vfs.Cred{}, "", "/etc"); !errors.Is(err, syscall.EAGAIN) || !errs.Is(err, errs.Unavailable) {
		t.Errorf("a file of a frozen machine: %v", err)
	}
	if _, err := ns.Stat(ctx, vfs.Cred{}, "", "/volume"); err != nil {
		t.Errorf("a volume of a frozen machine: %v", err)
	}
	if err := frozen.Thaw(); err != nil {
		t.Fatal(err)
	}
	if _, err := ns.Stat(ctx, vfs.Cred{}, "", "/etc"); err != nil {
		t.Errorf("when it runs again: %v", err)
	}
	if _, err := p.Wait(ctx); err != nil {
		t.Error(err)
	}
}

func testFiles(t *testing.T, e *microvm.Engine) {
	in := boot(t, e, engine.Spec{Identity: id("files"), Volumes: []engine.Volume{{Path: "/volume", FS: memfs.New(memfs.Options{})}}})
	ns := in.(engine.Filer).Namespace()
	ctx, user := t.Context(), vfs.Cred{UID: 1000, GID: 1000}
	for _, path := range []string{"/home/user/from-outside", "/volume/from-outside"} {
		cred := user
		if strings.HasPrefix(path, "/volume") {
			cred = vfs.Cred{}
		}
		f, err := ns.Open(ctx, cred, "", path, vfs.O_WRONLY|vfs.O_CREAT, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("hello\n")); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if got := sh(t, in, "cat "+path); got != "hello\n" {
			t.Errorf("%s: %q", path, got)
		}
	}
	sh(t, in, "echo inside >/tmp/f")
	f, err := ns.Open(ctx, user, "", "/tmp/f", vfs.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "inside\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// memory waits until a machine has as much of its own as it should.
func memory(t *testing.T, in engine.Instance, what string, ok func(int64) bool) int64 {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(250 * time.Millisecond) {
		st, err := in.(engine.Meter).Stats(t.Context())
		if err == nil && ok(st.Memory) {
			return st.Memory
		}
		if err != nil || time.Now().After(end) {
			t.Fatalf("%s: the machine has %.1f MB, %v", what, float64(st.Memory)/1e6, err)
		}
	}
}

// testFreed: a process of 64 MiB ends, and the host has them again; a fork, and what else there was, are as they should be.
func testFreed(t *testing.T, e *microvm.Engine) {
	const big = 64 << 20
	in, ctx := boot(t, e, engine.Spec{Identity: id("freed")}), t.Context()
	sum := sh(t, in, "dd if=/dev/urandom of=/tmp/keep bs=64k count=64 2>/dev/null; md5sum </tmp/keep; mkfifo /tmp/pipe")
	before := memory(t, in, "at first", func(int64) bool { return true })
	// dd reads all of it before it writes, and there it waits until the other end is closed.
	p, err := in.Exec(ctx, engine.Cmd{Args: []string{"sh", "-c", "(exec 3</tmp/pipe; until [ -e /tmp/go ]; do sleep 0.1; done) & exec dd if=/dev/zero of=/tmp/pipe bs=64M count=1"}})
	if err != nil {
		t.Fatal(err)
	}
	most := memory(t, in, "with a large process", func(n int64) bool { return n > big })
	sh(t, in, "touch /tmp/go")
	if _, err := p.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	after := memory(t, in, "after a large process", func(n int64) bool { return n < before+big/2 })
	fmt.Printf("engine: a machine of %.1f MB has %.1f MB with a process of 67.1 MB, and %.1f MB after it\n", float64(before)/1e6, float64(most)/1e6, float64(after)/1e6)
	set, err := volume.Open(ctx, volume.Options{Owner: "freed", UID: 1000, GID: 1000}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kids, err := engine.Fork(ctx, in, set, []engine.Identity{id("freed-child")}, engine.FreezeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer kids[0].End(ctx)
	for _, in := range []engine.Instance{in, kids[0].Instance} {
		if got := sh(t, in, "md5sum </tmp/keep"); got != sum {
			t.Errorf("%s: what was kept is %q, and was %q", in.ID(), got, sum)
		}
		// The memory is used again, and nothing is in it that wasn't put there.
		if got := sh(t, in, "dd if=/dev/zero bs=16M count=1 2>/dev/null | tr -d '\\0' | wc -c"); strings.TrimSpace(got) != "0" {
			t.Errorf("%s: %q", in.ID(), got)
		}
	}
}

func testLimits(t *testing.T, e *microvm.Engine) {
	in := boot(t, e, engine.Spec{Identity: id("limits"), Limits: engine.Limits{Output: 100_000}})
	p, err := in.Exec(t.Context(), engine.Cmd{Args: []string{"cat", "/dev/zero"}, Stdout: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if status, err := p.Wait(t.Context()); status != 137 || !errs.Is(err, errs.Limit) {
		t.Errorf("output without an end: status %d, %v", status, err)
	}
	st, err := in.(engine.Meter).Stats(t.Context())
	if err != nil || st.Output < 100_000 || st.CPU <= 0 || st.Memory <= 0 || st.MemoryShared <= 0 {
		t.Errorf("%+v, %v", st, err)
	}
	fmt.Printf("engine: a machine has %.1f MB of its own and shares %.1f MB\n", float64(st.Memory)/1e6, float64(st.MemoryShared)/1e6)
	few := boot(t, e, engine.Spec{Identity: id("few"), Limits: engine.Limits{Processes: 5}})
	var out bytes.Buffer
	p, err = few.Exec(t.Context(), engine.Cmd{Args: []string{"busybox", "ash", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; echo all of them"}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	if status, err := p.Wait(t.Context()); status == 0 || err != nil || !strings.Contains(out.String(), "fork") {
		t.Errorf("more processes than there may be: status %d, %v, %q", status, err, out.String())
	}
	busy := boot(t, e, engine.Spec{Identity: id("busy"), Limits: engine.Limits{CPU: 3 * time.Second}})
	p, err = busy.Exec(t.Context(), engine.Cmd{Args: []string{"sh", "-c", "while :; do :; done"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); !errs.Is(err, errs.Limit) {
		t.Errorf("a loop without an end: %v", err)
	}
}

// testEnd: a machine that switches itself off is gone, and so is one whose process is killed; their neighbours aren't.
func testEnd(t *testing.T, e *microvm.Engine) {
	neighbour := boot(t, e, engine.Spec{Identity: id("neighbour")})
	sh(t, neighbour, "true")
	off := boot(t, e, engine.Spec{Identity: id("off")})
	p, err := off.Exec(t.Context(), engine.Cmd{Args: []string{"sh", "-c", "echo o >/proc/sysrq-trigger"}, Root: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil && !errs.Is(err, errs.Unavailable) { // or it ended before
		t.Errorf("a command in a machine that was switched off: %v", err)
	}
	listed(t, e, "neighbour")
	if _, err := off.Exec(t.Context(), engine.Cmd{Args: []string{"true"}}); !errs.Is(err, errs.Unavailable) {
		t.Errorf("exec: %v", err)
	}
	if got := sh(t, neighbour, "echo lives"); got != "lives\n" {
		t.Errorf("the neighbour: %q", got)
	}
	// All processes are killed, shells among them: those aren't taken any more.
	pids := vmms(t)
	if len(pids) < 2 {
		t.Errorf("of a machine and its shell these are there: %v", pids)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	listed(t, e)
	if _, err := neighbour.Freeze(t.Context(), engine.FreezeOptions{}); !errs.Is(err, errs.Unavailable) {
		t.Errorf("freeze: %v", err)
	}
	next := boot(t, e, engine.Spec{Identity: id("next")})
	if got := sh(t, next, "echo lives"); got != "lives\n" {
		t.Errorf("the next: %q", got)
	}
}

// listed waits until there are these instances and no others.
func listed(t *testing.T, e *microvm.Engine, ids ...string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		list, err := e.List(t.Context())
		var got []string
		for _, st := range list {
			got = append(got, st.ID)
		}
		if err == nil && slices.Equal(got, ids) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%q, %v; want %q", got, err, ids)
		}
	}
}

// testFailedForks: forks of which one can't be are undone, and an image that is closed starts nothing.
func testFailedForks(t *testing.T, e *microvm.Engine) {
	in := boot(t, e, engine.Spec{Identity: id("parent"), Volumes: []engine.Volume{{Path: "/data", FS: memfs.New(memfs.Options{})}}})
	ctx := t.Context()
	f, err := in.Freeze(ctx, engine.FreezeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := in.Exec(short, engine.Cmd{Args: []string{"true"}}); !errs.Is(err, errs.Canceled) {
		t.Errorf("exec in a frozen machine: %v", err)
	}
	if _, err := in.Freeze(short, engine.FreezeOptions{}); err == nil {
		t.Error("it is frozen twice")
	}
	im, err := f.Capture(ctx)
	if err := errors.Join(err, f.Thaw()); err != nil {
		t.Fatal(err)
	}
	if _, err := im.Start(ctx, id("child"), nil); !errs.Is(err, errs.Invalid) {
		t.Errorf("without its volume: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := im.Start(ended, id("child"), []engine.Volume{{Path: "/data", FS: memfs.New(memfs.Options{})}}); err == nil {
		t.Error("a start that nobody waits for")
	}
	if err := im.Close(); err != nil {
		t.Error(err)
	}
	if _, err := im.Start(ctx, id("child"), nil); !errs.Is(err, errs.Unavailable) {
		t.Errorf("an image that is closed: %v", err)
	}
	if list, err := e.List(ctx); len(list) != 1 || err != nil {
		t.Errorf("%+v, %v", list, err)
	}
	if got := sh(t, in, "echo on"); got != "on\n" {
		t.Errorf("the parent: %q", got)
	}
}
