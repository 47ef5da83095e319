package vm

import (
	"bytes"
	"testing"
	"time"
)

// TestJail runs the tests of VMM processes where KVM is the hardware's, as far as the guests know, and control groups can be limited.
func TestJail(t *testing.T) {
	t.Parallel()
	r := Run(t, Program{
		Path:    Build(t, "agentrun.dev/vmm/jail", true),
		Args:    []string{"-test.v", "-test.timeout=8m", "-test.run=^Test(Groups|OwnGroups|NoGroups|OwnUsers|Fork|Confined|Killed|KilledInFork|ParentKilled|NoDescriptors|NoDescriptorsInside|NoMemory|Errors|Devices|BadDevices|Attack|Pool)$"},
		Timeout: 9 * time.Minute,
	})
	t.Logf("up in %v, all in %v", r.Booted, r.Took)
	for _, name := range []string{"Fork", "Groups", "OwnGroups", "Confined", "Pool", "Devices", "Attack", "KilledInFork", "NoDescriptors"} {
		if !bytes.Contains(r.Output, []byte("--- PASS: Test"+name+" ")) {
			t.Errorf("Test%s didn't pass", name)
		}
	}
	if r.Status != 0 || t.Failed() {
		t.Errorf("status %d, output:\n%s", r.Status, r.Output)
	}
}
