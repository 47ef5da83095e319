package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// pythonVMs measures sandboxes with a stock kernel and a Python in them: in the bench of test/vm, which emulates the hardware, so that the
// figures compare among themselves only, or on this machine's own KVM.
func pythonVMs(b *bench) error {
	where := "in the emulated bench: "
	if b.kvm == "host" {
		where = "on this host's KVM: "
	}
	cmd := exec.CommandContext(b.ctx, "go", "test", "-count=1", "-timeout=90m", "-run=^TestFigures$", "-v", "./test/vm")
	cmd.Env = append(os.Environ(), "AGENTRUN_VM_FIGURES="+b.kvm)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var rest strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "figure: ")
		if !ok {
			fmt.Fprintln(&rest, lines.Text())
			continue
		}
		var r row
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		r.Name = where + r.Name
		b.add(r)
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w\n%s", err, rest.String())
	}
	return lines.Err()
}
