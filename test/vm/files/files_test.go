package files

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"agentrun.dev/vfs"
	"agentrun.dev/vfs/vfstest"
)

var (
	volume  = flag.String("volume", "", "an empty directory of the volume")
	entries = flag.Int("entries", 1000, "of a large directory")
	devices = flag.Bool("devices", false, "the volume keeps device nodes")
)

func needVolume(t *testing.T) {
	if *volume == "" {
		t.Skip("IT RUNS IN THE BENCH ONLY: make vm")
	}
}

func TestMounted(t *testing.T) {
	needVolume(t)
	vfstest.Mounted(t, *volume, *entries)
}

// TestDifferential does random operations on the volume and in the machine's own filesystem, below TMPDIR.
func TestDifferential(t *testing.T) {
	needVolume(t)
	n := 0
	vfstest.DifferentialMounted(t, vfstest.Config{NoDevices: !*devices, New: func(testing.TB) vfs.FS { return nil }}, func(t testing.TB, _ vfs.FS) string {
		n++
		dir := filepath.Join(*volume, fmt.Sprint(n))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		})
		return dir
	})
}
