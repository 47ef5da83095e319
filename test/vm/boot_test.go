package vm

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentrun.dev/guest/initramfs"
	"agentrun.dev/test/harness"
)

// initrd writes an initramfs of busybox with an init of ours, and returns where it is.
func initrd(t *testing.T, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "initrd")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := initramfs.NewWriter(f)
	err = errors.Join(add(w, "/bin/busybox", harness.Tool(t, "busybox")), w.Char("/dev/console", 0o600, 5, 1),
		w.Bytes("/init", 0o755, "#!/bin/busybox sh\n"+script), w.Dir("/proc", 0o755), w.Dir("/sys", 0o755), w.Close(), f.Close())
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestBootStock boots Debian's cloud kernel in our VMM: its init runs, sees the vCPUs and memory that there are, and
// switches the machine off.
func TestBootStock(t *testing.T) {
	r := Run(t, Program{
		Path: Build(t, "agentrun.dev/test/vm/boot", false),
		Args: []string{"-initrd", "/initrd", "-cpus", "2", "-append", "console=ttyS0 panic=-1 " + os.Getenv("BENCH_APPEND")},
		Files: map[string]string{"/kernel": harness.Tool(t, "kernel-cloud"), "/initrd": initrd(t, `
bb=/bin/busybox
$bb mount -t proc proc /proc
$bb mount -t sysfs sysfs /sys
echo "init: cpus $($bb grep -c ^processor /proc/cpuinfo)"
$bb poweroff -f
`)},
		Timeout: 5 * time.Minute,
	})
	t.Logf("up in %v, all in %v", r.Booted, r.Took)
	if r.Status != 0 || !bytes.Contains(r.Output, []byte("init: cpus 2")) || !bytes.Contains(r.Output, []byte("shut down")) {
		t.Errorf("status %d, output:\n%s", r.Status, r.Output)
	}
}
