package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"agentrun.dev/vmm"
)

// pythonVMs measures sandboxes with a stock kernel and a Python in them: in the bench of test/vm, which emulates the hardware, so that the
// figures compare among themselves only, or on this machine's own KVM.
func pythonVMs(b *bench) error {
	where := "in the emulated bench: "
	if b.kvm == onHost {
		where = "on this host's KVM: "
		for _, f := range vmm.Examine() {
			if f.Slow {
				return fmt.Errorf("NOT MEASURED HERE: sandboxes with a stock kernel: %s %s (%s)", f.Name, f.Text, f.Hint)
			}
		}
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
	measured := false
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
		measured = true
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w\n%s", err, rest.String())
	}
	if err := lines.Err(); err != nil || measured {
		return err
	}
	return fmt.Errorf("NOT MEASURED HERE: sandboxes with a stock kernel:\n%s", rest.String())
}

// onHost is the value of -kvm that asks for this host's own.
const onHost = "host"

// ableHost says what this host can do for VMs, and fails if that is nothing: then whoever has asked for it gets no figure at all.
func ableHost() error {
	var missing error
	for _, f := range vmm.Examine() {
		text := f.Name + ": " + f.Text
		if f.Hint != "" {
			text += " (" + f.Hint + ")"
		}
		fmt.Fprintln(os.Stderr, "bench:", text)
		if f.Need && !f.OK && missing == nil {
			missing = fmt.Errorf("NOT MEASURED HERE: VMs: this host can't run any: %s", text)
		}
	}
	return missing
}
