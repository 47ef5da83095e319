package vm

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"agentrun.dev/guest/machine"
	"agentrun.dev/guest/wire"
	"agentrun.dev/test/harness"
)

// TestDevices lets Debian's cloud kernel drive every virtio device of ours: console, entropy, disks, a network card, files of a
// filesystem of package vfs, sockets, which the agent uses; then the machine is forked with all of them.
func TestDevices(t *testing.T) {
	t.Parallel()
	archive := guestArchive(t, machine.Config{Hostname: "parent", User: "user", Dir: "/workspace", Lower: []wire.Mount{{Type: "erofs", Source: "/dev/vda"}}},
		"virtio_mmio", "vmw_vsock_virtio_transport", "virtio_rng", "virtio_blk", "virtio_console", "virtio_net", "virtiofs", "virtio_balloon", "erofs", "overlay")
	r := Run(t, Program{
		Path:    Build(t, "agentrun.dev/test/vm/devices", false),
		Files:   map[string]string{"/kernel": harness.Tool(t, "kernel-cloud"), "/initrd": archive, "/disk": rootImage(t)},
		Timeout: 9 * time.Minute,
	})
	for line := range strings.Lines(string(r.Output)) {
		if strings.HasPrefix(line, "devices: ") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if r.Status != 0 || !bytes.Contains(r.Output, []byte("devices: fork ok")) {
		t.Errorf("status %d, output:\n%s", r.Status, r.Output)
	}
}
