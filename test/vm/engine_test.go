package vm

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"agentrun.dev/guest/initramfs"
	"agentrun.dev/test/harness"
)

// TestEngine runs the engine's tests in the bench: all, or those that AGENTRUN_VM_TESTS names.
func TestEngine(t *testing.T) {
	t.Parallel()
	run := os.Getenv("AGENTRUN_VM_TESTS")
	if run == "" {
		run = "."
	}
	r := Run(t, Program{
		Path:    Build(t, "agentrun.dev/test/vm/engine", true),
		Args:    []string{"-test.v", "-test.timeout=20m", "-test.run=" + run},
		Files:   engineFiles(t),
		Memory:  3072,
		Timeout: 20 * time.Minute,
	})
	for line := range strings.Lines(string(r.Output)) {
		if strings.Contains(line, "--- ") || strings.HasPrefix(line, "engine: ") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if r.Status != 0 || !bytes.Contains(r.Output, []byte("--- PASS")) {
		t.Errorf("status %d, output:\n%s", r.Status, r.Output)
	}
}

// engineFiles are what package engine of test/vm finds in the bench.
func engineFiles(t *testing.T) map[string]string {
	t.Helper()
	kernel := harness.Tool(t, "kernel-cloud")
	files := map[string]string{"/microvm/kernel": kernel, "/microvm/agent": Build(t, "agentrun.dev/cmd/agentrun-guest", false),
		"/microvm/vmm": Build(t, "agentrun.dev/cmd/agentrun-vmm", false), "/microvm/image.tar": engineImage(t),
		"/microvm/files": Build(t, "agentrun.dev/test/vm/files", true)}
	modules, err := initramfs.Modules(filepath.Join(filepath.Dir(kernel), "modules"), "virtio_mmio", "vmw_vsock_virtio_transport", "virtio_rng", "virtio_blk",
		"virtio_net", "virtiofs", "virtio_balloon", "erofs", "overlay")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, m := range modules {
		file := filepath.Join(dir, m.Name+".ko")
		if err := os.WriteFile(file, m.Data, 0o644); err != nil {
			t.Fatal(err)
		}
		files["/microvm/modules/"+m.Name+".ko"] = file
	}
	return files
}

// What the suite runs in another way than busybox has it.
const (
	// nc -l [ADDRESS] PORT, as OpenBSD's; busybox' listens on all addresses.
	netcat = `#!/bin/sh
[ "$1" = -l ] || exec busybox nc "$@"
while [ $# -gt 1 ]; do shift; done
exec busybox nc -l -p "$1"
`
	// tail -s 0.01: busybox waits for whole seconds.
	tailing = `#!/bin/sh
[ "$1" = -s ] && shift 2 && set -- -s 1 "$@"
exec busybox tail "$@"
`
)

// engineImage makes an image of a small system, as docker save writes it: busybox and bash.
func engineImage(t *testing.T) string {
	t.Helper()
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
	for _, folder := range []string{"root", "bin", "usr/local/bin"} {
		put(tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755}, nil)
	}
	for _, tool := range []string{"busybox", "bash-static"} {
		content, err := os.ReadFile(harness.Tool(t, tool))
		if err != nil {
			t.Fatal(err)
		}
		put(tar.Header{Name: "bin/" + strings.TrimSuffix(tool, "-static"), Mode: 0o755}, content)
	}
	for _, name := range busyboxApplets(t) {
		to := "busybox"
		if name == "sh" { // busybox' own doesn't look for other programs that it has itself
			to = "bash"
		}
		put(tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + name, Linkname: to}, nil)
	}
	put(tar.Header{Name: "usr/local/bin/nc", Mode: 0o755}, []byte(netcat))
	put(tar.Header{Name: "usr/local/bin/tail", Mode: 0o755}, []byte(tailing))
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
	tag, err := name.NewTag("test/small:1")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := tarball.WriteToFile(file, tag, img); err != nil {
		t.Fatal(fmt.Errorf("image: %w", err))
	}
	return file
}
