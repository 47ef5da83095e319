package vm

import (
	"bytes"
	"testing"
)

// TestBench shows that the bench is one: /dev/kvm runs a guest's instructions, output and exit status come out.
func TestBench(t *testing.T) {
	t.Parallel()
	r := Run(t, Program{Path: Build(t, "agentrun.dev/test/vm/kvmprobe", false)})
	t.Logf("kernel up in %v, all in %v", r.Booted, r.Took)
	want := "KVM API version 12\nthe guest wrote '!'\nthe guest halted\n"
	if r.Status != 0 || string(r.Output) != want {
		t.Errorf("status %d, output %q, want %q", r.Status, r.Output, want)
	}
}

// TestBenchWithoutKVM shows that a program's failure is told from the bench's.
func TestBenchWithoutKVM(t *testing.T) {
	t.Parallel()
	r := Run(t, Program{Path: Build(t, "agentrun.dev/test/vm/kvmprobe", false), NoKVM: true})
	if r.Status != 1 || !bytes.Contains(r.Output, []byte("/dev/kvm")) {
		t.Errorf("status %d, output %q", r.Status, r.Output)
	}
}
