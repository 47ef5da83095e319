package vm

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"agentrun.dev/guest/initramfs"
	"agentrun.dev/test/harness"
)

// initrd writes an initramfs of busybox with an init of ours, and returns where it is.
func initrd(t *testing.T, script string, modules ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "initrd")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := initramfs.NewWriter(f)
	mods, err := initramfs.Modules(filepath.Join(filepath.Dir(harness.Tool(t, "kernel-cloud")), "modules"), modules...)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(w.AddModules(mods), add(w, "/bin/busybox", harness.Tool(t, "busybox")), w.Char("/dev/console", 0o600, 5, 1),
		w.Bytes("/init", 0o755, "#!/bin/busybox sh\n"+script), w.Dir("/proc", 0o755), w.Dir("/sys", 0o755), w.Close(), f.Close())
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestBootStock boots Debian's cloud kernel in our VMM: its init runs, sees the vCPUs and memory that there are, and
// switches the machine off.
func TestBootStock(t *testing.T) {
	t.Parallel()
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

// TestForkStock boots the same kernel with devices on our bus, waits until its init is in the middle of its work, forks it
// three times and once more through a file: everybody goes on from there with what it had, and is told who it is.
func TestForkStock(t *testing.T) {
	t.Parallel()
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(disk, append([]byte("what is on the disk\n"), make([]byte, 1<<20)...), 0o600); err != nil {
		t.Fatal(err)
	}
	r := Run(t, Program{
		Path: Build(t, "agentrun.dev/test/vm/boot", false),
		Args: []string{"-initrd", "/initrd", "-cpus", "2", "-rng", "-disk", "/disk", "-fork", "3", "-at", "init: ready", "-file", "/tmp/snapshot",
			"-append", "console=ttyS0 panic=-1 quiet"},
		Files: map[string]string{"/kernel": harness.Tool(t, "kernel-cloud"), "/disk": disk, "/initrd": initrd(t, `
bb=/bin/busybox
$bb mount -t proc proc /proc
$bb mount -t sysfs sysfs /sys
$bb mount -t devtmpfs dev /dev
for m in /modules/*; do $bb insmod $m || echo "init: no $m"; done
echo "init: $($bb head -n 1 /dev/vda)"
echo "init: entropy $($bb head -c 16 /dev/hwrng | $bb wc -c)"
state=$($bb head -c 100000 /dev/urandom | $bb sha256sum)
echo "$state" > /state
echo "init: state $state"
$bb sleep 1000 &
echo "init: ready"
read who
[ "$state" = "$($bb cat /state)" ] && kill -0 $! && echo "init: $who goes on with $state"
echo "init: $who reads $($bb head -c 20 /dev/vda)"
echo "init: $who has new entropy $($bb head -c 16 /dev/hwrng | $bb sha256sum)"
$bb sleep 1 && echo "init: $who has slept"
$bb poweroff -f
`, "virtio_mmio", "virtio_blk", "virtio_rng")},
		Timeout: 8 * time.Minute,
	})
	t.Logf("up in %v, all in %v", r.Booted, r.Took)
	if r.Status != 0 {
		t.Fatalf("status %d, output:\n%s", r.Status, r.Output)
	}
	state := regexp.MustCompile(`(?m)^init: state ([0-9a-f]{64})`).FindSubmatch(r.Output)
	if state == nil {
		t.Fatalf("no state in\n%s", r.Output)
	}
	entropy := make(map[string]string)
	for who, prefix := range map[string]string{"parent": "", "child 0": "0: ", "child 1": "1: ", "child 2": "2: ", "child 3": "3: "} {
		said := prefix + "init: " + who
		for _, want := range []string{" goes on with " + string(state[1]), " reads what is on the disk", " has slept"} {
			if !bytes.Contains(r.Output, []byte(said+want)) {
				t.Errorf("the %s never said %q", who, want)
			}
		}
		drawn := regexp.MustCompile("(?m)^" + said + " has new entropy ([0-9a-f]{64})").FindSubmatch(r.Output)
		if drawn == nil {
			t.Errorf("the %s drew no entropy", who)
		} else if other, ok := entropy[string(drawn[1])]; ok {
			t.Errorf("the %s drew what the %s did", who, other)
		} else {
			entropy[string(drawn[1])] = who
		}
	}
	if t.Failed() {
		t.Logf("output:\n%s", r.Output)
	}
}
