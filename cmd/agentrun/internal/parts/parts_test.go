package parts_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"agentrun.dev/cmd/agentrun/internal/parts"
	"agentrun.dev/errs"
)

// Each program can be run from memory, several times, and says that it is of no use alone; the file can't be changed.
func TestPrograms(t *testing.T) {
	for name, said := range map[string]string{parts.Agent: "first process of a VM", parts.VMM: "vmm process"} {
		p, err := parts.Open(name)
		if errs.Is(err, errs.Unsupported) {
			t.Skipf("NOT TESTED HERE: %v (%s)", err, errs.HintOf(err))
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			out, err := exec.Command(p.Path()).CombinedOutput()
			if _, ok := err.(*exec.ExitError); !ok || !strings.Contains(string(out), said) {
				t.Errorf("%s says %q, %v", name, out, err)
			}
		}
		if err := os.WriteFile(p.Path(), []byte("x"), 0o700); err == nil {
			t.Errorf("%s can be written to", name)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := parts.Open("no-such-part"); !errs.Is(err, errs.Unsupported) {
		t.Errorf("a program that isn't there: %v", err)
	}
}
