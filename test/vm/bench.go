// Package vm runs what needs a real KVM in the bench: a Debian machine that QEMU emulates in software, AMD's hardware virtualization
// included, so that /dev/kvm in it runs stock kernels, wherever the tests run. It is slow (an emulated instruction costs tens of
// real ones, a nested one more), so figures measured in it compare among themselves only.
//
// A bench lives as long as one program that runs in it: its disk is the archive that it starts from. The program's output comes out of
// a serial port of its own, so that the kernel's messages aren't mixed with it, and its exit status out of another.
package vm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/guest/initramfs"
	"agentrun.dev/test/harness"
)

// Program is what a bench runs.
type Program struct {
	Path  string            // a static executable of this machine
	Args  []string          // after the program's name
	Env   []string          // NAME=VALUE, beside PATH, HOME and TMPDIR
	Files map[string]string // path in the bench → file of this machine
	Disks []string          // files of this machine that the bench reads as /dev/vda, /dev/vdb…
	// Memory is in MiB, 2048 unless told. CPUs is 1 unless told: more take turns on the one processor that QEMU is bound to.
	Memory, CPUs int
	// Ports of the bench that this machine reaches, at Bench.Addr. The bench's own address is 10.0.2.15; it reaches nothing outside.
	Ports []int
	// Timeout bounds the whole run, 4 minutes unless told.
	Timeout time.Duration
	// NoKVM leaves the modules of KVM out: a machine that has none.
	NoKVM bool
	// Modules of the bench's kernel that are loaded beside those of KVM.
	Modules []string
}

// Result is what came of it.
type Result struct {
	Status  int    // the program's exit status; 128+n if signal n ended it
	Output  []byte // stdout and stderr
	Console []byte // the kernel's messages
	Booted  time.Duration
	Took    time.Duration
}

// invocation is what the bench's init reads; package main of test/vm/init has its like.
type invocation struct {
	Args []string
	Env  []string
	Card bool // there is a network card
}

// Build compiles a package of the module into a static program for the bench; tests become a test binary.
func Build(t testing.TB, pkg string, tests bool) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), path.Base(pkg))
	args := []string{"build", "-trimpath", "-ldflags=-s -w", "-o", out, pkg}
	if tests {
		args = []string{"test", "-c", "-trimpath", "-ldflags=-s -w", "-o", out, pkg}
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = harness.Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, b)
	}
	return out
}

// benchCmdline is the bench's kernel's. It counts ten ticks of its timer when it starts and gives up without them, which a loaded machine
// may not have given to QEMU in time: no_timer_check.
const benchCmdline = "console=ttyS0 panic=-1 loglevel=5 random.trust_cpu=on no_timer_check"

// Run starts a bench, runs a program in it and waits for its end. A bench that fails fails the test, with the console's end; the
// program's own failure is the caller's to judge.
func Run(t testing.TB, p Program) *Result {
	t.Helper()
	dir := t.TempDir()
	archive := filepath.Join(dir, "bench.cpio")
	if err := p.archive(t, archive); err != nil {
		t.Fatal(err)
	}
	r, err := p.run(t, archive, dir)
	if err != nil {
		t.Fatalf("bench: %v\nconsole:\n%s\noutput:\n%s", err, tail(r.Console), tail(r.Output))
	}
	return r
}

// errReset is the end of an emulated machine that nobody has turned off.
var errReset = errors.New("it ended without the program's exit status")

// run runs the program in one bench.
func (p *Program) run(t testing.TB, archive, dir string) (*Result, error) {
	t.Helper()
	b, err := p.start(t, archive, dir)
	if err != nil {
		return &Result{}, err
	}
	return b.wait()
}

// Bench is a machine in which a program runs.
type Bench struct {
	cmd             *exec.Cmd
	ctx             context.Context
	cancel          context.CancelFunc
	output, stderr  bytes.Buffer
	console, status string // files
	addrs           map[int]string
	file            *os.File // nil, or where the output is, too
	started         time.Time
	cpu             int // that it is bound to

	once   sync.Once
	result *Result
	err    error
}

// Start starts a bench, for who talks to the program while it runs: a bench that resets itself fails the test. It ends with the test at the latest.
func Start(t testing.TB, p Program) *Bench {
	t.Helper()
	dir := t.TempDir()
	archive := filepath.Join(dir, "bench.cpio")
	if err := p.archive(t, archive); err != nil {
		t.Fatal(err)
	}
	b, err := p.start(t, archive, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.cancel()
		b.once.Do(b.end)
	})
	return b
}

// Wait waits for the program's end, as Run does.
func (b *Bench) Wait(t testing.TB) *Result {
	t.Helper()
	b.once.Do(b.end)
	if b.err != nil {
		t.Fatalf("bench: %v\nconsole:\n%s\noutput:\n%s", b.err, tail(b.result.Console), tail(b.result.Output))
	}
	return b.result
}

func (b *Bench) end() { b.result, b.err = b.wait() }

// Addr is where this machine reaches one of the bench's Ports, HOST:PORT.
func (b *Bench) Addr(port int) string { return b.addrs[port] }

// start starts QEMU.
func (p *Program) start(t testing.TB, archive, dir string) (*Bench, error) {
	t.Helper()
	b := &Bench{console: filepath.Join(dir, "console"), status: filepath.Join(dir, "status"), addrs: make(map[int]string)}
	b.ctx, b.cancel = context.WithTimeout(t.Context(), orElse(p.Timeout, 4*time.Minute))
	args := []string{
		"-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "EPYC,+svm,+npt", "-m", strconv.Itoa(orElse(p.Memory, 2048)),
		"-smp", strconv.Itoa(orElse(p.CPUs, 1)), "-nodefaults", "-display", "none", "-no-reboot",
		"-serial", "file:" + b.console, "-serial", "stdio", "-serial", "file:" + b.status,
		"-device", "virtio-rng-pci",
		"-kernel", harness.Tool(t, "kernel-bench"), "-initrd", archive, "-append", benchCmdline,
	}
	for i, disk := range p.Disks {
		args = append(args, "-drive", fmt.Sprintf("if=none,id=disk%d,format=raw,readonly=on,file=%s", i, disk), "-device", fmt.Sprintf("virtio-blk-pci,drive=disk%d", i))
	}
	if len(p.Ports) > 0 {
		net := "user,id=net,restrict=on"
		for _, port := range p.Ports {
			b.addrs[port] = harness.FreePort(t)
			net += fmt.Sprintf(",hostfwd=tcp:%s-:%d", b.addrs[port], port)
		}
		args = append(args, "-netdev", net, "-device", "virtio-net-pci,netdev=net,romfile=")
	}
	if file := os.Getenv("AGENTRUN_BENCH_MONITOR"); file != "" { // a socket, for who looks at the machine itself
		args = append(args, "-monitor", "unix:"+file+",server,nowait")
	}
	b.cmd = exec.CommandContext(b.ctx, harness.Tool(t, "qemu-system-x86_64"), args...)
	b.cmd.Stdout, b.cmd.Stderr = &b.output, &b.stderr
	if file := os.Getenv("AGENTRUN_BENCH_OUTPUT"); file != "" { // for who looks at a run as it goes
		f, err := os.Create(file)
		if err != nil {
			b.cancel()
			return nil, err
		}
		b.file = f
		b.cmd.Stdout = io.MultiWriter(&b.output, f)
	}
	b.cmd.WaitDelay = 5 * time.Second
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a test that runs out of time ends without a word
	b.started = time.Now()
	var err error
	if b.cpu, err = startOnOneCPU(b.cmd); err != nil {
		b.cancel()
		_ = b.file.Close()
		return nil, fmt.Errorf("QEMU: %w", err)
	}
	return b, nil
}

// wait waits for the program's end.
func (b *Bench) wait() (*Result, error) {
	defer b.cancel()
	defer b.file.Close() // may be nil
	err := b.cmd.Wait()
	benches.release(b.cpu)
	r := &Result{Output: bytes.ReplaceAll(b.output.Bytes(), []byte("\r\n"), []byte("\n")), Took: time.Since(b.started)}
	r.Console, _ = os.ReadFile(b.console)
	said, _ := os.ReadFile(b.status)
	switch {
	case b.ctx.Err() != nil:
		return r, fmt.Errorf("it didn't end in time: %w", context.Cause(b.ctx))
	case err != nil:
		return r, fmt.Errorf("QEMU: %w\n%s", err, b.stderr.Bytes())
	}
	return r, r.parse(said)
}

// processors counts the benches on each of this machine's processors.
type processors struct {
	mu   sync.Mutex
	used map[int]int
}

var benches processors

// take takes one of those allowed that has the fewest; of several like that, processes begin with different ones.
func (p *processors) take(allowed *unix.CPUSet) int {
	var list []int
	for cpu := range len(allowed) * bits.UintSize {
		if allowed.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	first := os.Getpid() % len(list)
	best := list[first]
	for _, cpu := range append(list[first:], list[:first]...) {
		if p.used[cpu] < p.used[best] {
			best = cpu
		}
	}
	if p.used == nil {
		p.used = make(map[int]int)
	}
	p.used[best]++
	return best
}

func (p *processors) release(cpu int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used[cpu]--
}

// startOnOneCPU starts QEMU with all its threads on one processor, which the caller releases. Its emulation of VMRUN and of exits changes the
// virtual processor's word of pending interrupts with plain instructions, while another thread may be setting a bit in it: a timer's interrupt that
// is lost there is never given again, and the bench stands still. On one processor such an instruction is whole.
func startOnOneCPU(cmd *exec.Cmd) (cpu int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return 0, fmt.Errorf("the processors of this thread: %w", err)
	}
	cpu = benches.take(&all)
	defer func() {
		if err != nil {
			benches.release(cpu)
		}
	}()
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return 0, fmt.Errorf("binding QEMU to a processor: %w", err)
	}
	err = cmd.Start() // which inherits it from this thread
	if back := unix.SchedSetaffinity(0, &all); back != nil && err == nil {
		return 0, errors.Join(back, cmd.Process.Kill(), cmd.Wait())
	}
	return cpu, err
}

// parse reads the init's last words, "booted MILLISECONDS" and "exit STATUS": without them nothing is known about the program.
func (r *Result) parse(said []byte) error {
	var booted, exit = -1, -1
	for line := range strings.Lines(string(said)) {
		word, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(number)
		switch {
		case word == "error":
			return errors.New(number)
		case err != nil:
		case word == "booted":
			booted = n
		case word == "exit":
			exit = n
		}
	}
	if exit < 0 {
		return errReset
	}
	r.Status, r.Booted = exit, time.Duration(booted)*time.Millisecond
	return nil
}

// archive writes what the bench boots from.
func (p *Program) archive(t testing.TB, file string) error {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	w := initramfs.NewWriter(f)
	names := append([]string{"virtio_pci", "virtio_rng"}, p.Modules...)
	if !p.NoKVM {
		names = append(names, "irqbypass", "ccp", "kvm", "kvm_amd")
	}
	if len(p.Disks) > 0 {
		names = append(names, "virtio_blk")
	}
	if len(p.Ports) > 0 {
		names = append(names, "virtio_net")
	}
	modules, err := initramfs.Modules(filepath.Join(filepath.Dir(harness.Tool(t, "kernel-bench")), "modules"), names...)
	if err != nil {
		return err
	}
	if err := w.AddModules(modules); err != nil {
		return err
	}
	call, err := json.Marshal(invocation{Args: append([]string{"/bench/" + filepath.Base(p.Path)}, p.Args...), Env: p.Env, Card: len(p.Ports) > 0})
	if err != nil {
		return err
	}
	files := map[string]string{"/init": Build(t, "agentrun.dev/test/vm/init", false), "/bench/" + filepath.Base(p.Path): p.Path}
	for name, from := range p.Files {
		files[name] = from
	}
	for name, from := range files {
		if err := add(w, name, from); err != nil {
			return err
		}
	}
	return errors.Join(w.Bytes("/bench.json", 0o644, string(call)), w.Char("/dev/console", 0o600, 5, 1), w.Dir("/tmp", 0o1777), w.Close(), f.Close())
}

func add(w *initramfs.Writer, name, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return w.File(name, uint32(info.Mode().Perm()), info.Size(), io.LimitReader(f, info.Size()))
}

func orElse[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}

func tail(b []byte) []byte {
	const most = 4 << 10
	if len(b) > most {
		return b[len(b)-most:]
	}
	return b
}
