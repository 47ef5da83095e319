package vm

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
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

// TestProcessors shows that benches spread over the processors that they may use.
func TestProcessors(t *testing.T) {
	t.Parallel()
	var allowed unix.CPUSet
	allowed.Set(3)
	allowed.Set(70)
	var p processors
	a, b := p.take(&allowed), p.take(&allowed)
	if a == b || a+b != 73 {
		t.Fatalf("of processors 3 and 70 two benches have %d and %d", a, b)
	}
	p.take(&allowed)
	p.take(&allowed)
	p.release(b)
	if c := p.take(&allowed); c != b {
		t.Errorf("with a place on %d, a bench is put on %d", b, c)
	}
}
