package vm

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFigures measures for test/bench: AGENTRUN_VM_FIGURES is "bench", or "host" for this machine's own KVM, which has to boot stock kernels.
func TestFigures(t *testing.T) {
	children := os.Getenv("AGENTRUN_VM_CHILDREN")
	var output []byte
	switch os.Getenv("AGENTRUN_VM_FIGURES") {
	case "bench":
		if children == "" {
			children = "100"
		}
		output = pythonBench(t, 8192, time.Hour, "-figures", "-emulated", "-children", children, "-shells", children).Output
	case "host":
		if children == "" {
			children = "100"
		}
		output = hostFigures(t, "-figures", "-children", children, "-shells", children)
	default:
		t.Skip("MEASURED BY make bench AND make bench-kvm")
	}
	if !bytes.Contains(output, []byte("figure: ")) {
		t.Fatalf("nothing was measured:\n%s", output)
	}
	for line := range strings.Lines(string(output)) {
		if strings.HasPrefix(line, "figure: ") {
			_, _ = os.Stdout.WriteString(line)
		}
	}
}

// hostFigures runs test/vm/python here.
func hostFigures(t *testing.T, args ...string) []byte {
	t.Helper()
	parts := t.TempDir()
	for name, from := range engineFiles(t) {
		to := filepath.Join(parts, strings.TrimPrefix(name, "/microvm/"))
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir, name := debianPython(t)
	cmd := exec.CommandContext(t.Context(), Build(t, "agentrun.dev/test/vm/python", false), append([]string{"-parts", parts, "-images", t.TempDir(),
		"-image", "oci:" + dir + ":" + name, "-file", filepath.Join(t.TempDir(), "machine"), "-timeout", "15m"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}
