package vm

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentrun.dev/guest/erofs"
	"agentrun.dev/guest/image"
	"agentrun.dev/test/harness"
)

// pythonImage is the name under which examples ask for Python.
const pythonImage = "python:3.12-slim"

// debianPython is the folder of an OCI layout and the name of the image in it. Where that can't be made nothing of this is tested.
func debianPython(t *testing.T) (dir, name string) {
	t.Helper()
	if os.Getenv("AGENTRUN_NO_DEBIAN") != "" {
		t.Skip("NOT TESTED HERE: test/setup.sh debian-python can't make a Debian with Python on this machine")
	}
	return harness.Tool(t, "debian-python"), pythonImage
}

// pythonRoot is the filesystem of a Debian with Python and numpy, made of an OCI image as the product does it.
func pythonRoot(t *testing.T) string {
	t.Helper()
	dir, name := debianPython(t)
	store, err := image.NewStore(t.TempDir(), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	file, _, err := store.Root(t.Context(), "oci:"+dir+":"+name)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// imagesDisk is a disk with a store of images that holds Debian with Python: emulated, unpacking it would take too long. The layout
// that it was made of is beside it, in the folder names, without its layers.
func imagesDisk(t *testing.T) string {
	t.Helper()
	root := pythonRoot(t)
	dir, _ := debianPython(t)
	file := filepath.Join(t.TempDir(), "images.erofs")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := erofs.NewWriter(f, 1<<30)
	add := func(name, from string, most int64) {
		in, err := os.Open(from)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		info, err := in.Stat()
		if err == nil && info.Size() <= most {
			err = w.File(name, erofs.Meta{Perm: 0o644}, info.Size(), in)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	add(filepath.Base(root), root, 1<<30)
	add(filepath.Base(root)+".json", root+".json", 1<<20)
	add("names/python/index.json", filepath.Join(dir, "index.json"), 1<<20)
	add("names/python/oci-layout", filepath.Join(dir, "oci-layout"), 1<<20)
	blobs, err := filepath.Glob(filepath.Join(dir, "blobs", "sha256", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blobs {
		add("names/python/blobs/sha256/"+filepath.Base(b), b, 1<<20)
	}
	size, err := w.Close()
	if err := errors.Join(err, f.Truncate(size)); err != nil {
		t.Fatal(err)
	}
	return file
}

// pythonBench runs test/vm/python in the bench.
func pythonBench(t *testing.T, memory int, timeout time.Duration, args ...string) *Result {
	t.Helper()
	files := engineFiles(t)
	r := Run(t, Program{
		Path:  Build(t, "agentrun.dev/test/vm/python", false),
		Args:  append([]string{"-timeout", timeout.String(), "-clock", "-disk", "/dev/vda", "-image", "oci:/images/names/python:3.12-slim"}, args...),
		Files: files, Disks: []string{imagesDisk(t)}, Modules: []string{"crc32c_generic", "erofs"}, Memory: memory, Timeout: timeout + time.Minute,
	})
	for line := range strings.Lines(string(r.Output)) {
		if strings.HasPrefix(line, "python: ") {
			t.Log(strings.TrimSpace(line))
		}
	}
	t.Logf("up in %v, all in %v", r.Booted, r.Took)
	if r.Status != 0 {
		t.Fatalf("status %d, output:\n%s", r.Status, r.Output)
	}
	return r
}

// TestPython forks a VM while a Python with numpy and 50 MiB of its own runs in it, and lets it hibernate. `make soak` has more children, and goes
// on with each that has woken.
func TestPython(t *testing.T) {
	t.Parallel()
	memory, timeout, args := 2048, 10*time.Minute, []string(nil)
	if os.Getenv("AGENTRUN_VM_LONG") != "" { // make soak
		memory, timeout, args = 4096, 40*time.Minute, []string{"-children", "8", "-rounds", "5"}
	}
	r := pythonBench(t, memory, timeout, args...)
	for _, want := range []string{"forks ok", "hibernation ok"} {
		if !bytes.Contains(r.Output, []byte(want)) {
			t.Errorf("no %q in the output:\n%s", want, r.Output)
		}
	}
}
