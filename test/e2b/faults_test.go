package e2b

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentrun.dev/test/harness"
)

// TestRestart ends a server, as a power cut would, while a client has streams of it, and starts it again.
func TestRestart(t *testing.T) {
	s := harness.Start(t)
	key := newKey(t, s)
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	copyInto(t, dir, filepath.Join(harness.Root(), "test", "e2b", "javascript", "*.mjs"))
	if err := os.Symlink(filepath.Dir(harness.Tool(t, "e2b-js-new")), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--preserve-symlinks", "--preserve-symlinks-main", "faults.mjs")
	cmd.Dir, cmd.WaitDelay = dir, 10*time.Second
	cmd.Env = append(harness.Environ(dir), "E2B_API_KEY="+key, "E2B_API_URL="+s.API, "E2B_SANDBOX_URL="+s.API, "E2B_TEST_RESULTS="+said)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		if b, _ := os.ReadFile(said); bytes.HasPrefix(b, []byte("running\n")) {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended before its streams ran: %v\n%s", err, out.Bytes())
		case <-time.After(50 * time.Millisecond):
		}
	}
	s.Kill()
	s.Restart()
	err := <-ended
	b, _ := os.ReadFile(said)
	if err != nil || !strings.HasSuffix(string(b), "failed\ndone\n") {
		t.Errorf("%v after %q\n%s", err, b, out.Bytes())
	}
}

// TestNewest looks whether there are newer versions of the SDKs than those that the suites run, and if so tries them. It tells, and
// never fails: what others publish isn't a fault of this tree, and a machine without a network has nothing to look at.
func TestNewest(t *testing.T) {
	t.Run("npm", func(t *testing.T) { newestNpm(t) })
	t.Run("pypi", func(t *testing.T) { newestPyPI(t) })
}

// ask runs a command that may fail, for want of a network, say.
func ask(t *testing.T, dir, name string, args ...string) (string, bool) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.WaitDelay = dir, 10*time.Second
	out, err := cmd.Output()
	return string(out), err == nil
}

func newestNpm(t *testing.T) {
	modules := filepath.Dir(harness.Tool(t, "e2b-js-new"))
	dir := t.TempDir()
	var wanted []string
	for _, name := range []string{"e2b", "@e2b/code-interpreter"} {
		b, err := os.ReadFile(filepath.Join(modules, name, "package.json"))
		var have struct{ Version string }
		if err != nil || json.Unmarshal(b, &have) != nil {
			t.Fatal(err)
		}
		out, ok := ask(t, dir, "npm", "view", name, "version")
		newest := strings.TrimSpace(out)
		if !ok || newest == "" {
			t.Log("NEWEST: npm can't be asked: nothing newer was tried")
			return
		}
		if newest != have.Version {
			wanted = append(wanted, name+"@"+newest)
		}
	}
	if len(wanted) == 0 {
		t.Log("NEWEST: npm has nothing newer than what the suites run")
		return
	}
	if _, ok := ask(t, dir, "npm", append([]string{"install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "e2b@latest", "@e2b/code-interpreter@latest"}, wanted...)...); !ok {
		t.Logf("NEWEST: OPEN: %v can't be installed", wanted)
		return
	}
	try(t, client{"js", "js-new", false}, filepath.Join(dir, "node_modules", "e2b"), wanted)
}

func newestPyPI(t *testing.T) {
	python := harness.Tool(t, "e2b-python-new")
	dir := t.TempDir()
	var wanted []string
	for _, name := range []string{"e2b", "e2b-code-interpreter"} {
		have, _ := ask(t, dir, python, "-c", "import sys; from importlib.metadata import version; print(version(sys.argv[1]))", name)
		out, ok := ask(t, dir, python, "-m", "pip", "index", "versions", "--disable-pip-version-check", name)
		first, _, _ := strings.Cut(out, "\n")
		_, newest, found := strings.Cut(strings.TrimSuffix(strings.TrimSpace(first), ")"), "(")
		if !ok || !found {
			t.Log("NEWEST: PyPI can't be asked: nothing newer was tried")
			return
		}
		if newest != strings.TrimSpace(have) {
			wanted = append(wanted, name+"=="+newest)
		}
	}
	if len(wanted) == 0 {
		t.Log("NEWEST: PyPI has nothing newer than what the suites run")
		return
	}
	_, made := ask(t, dir, "python3", "-m", "venv", filepath.Join(dir, "venv"))
	interpreter := filepath.Join(dir, "venv", "bin", "python")
	if _, ok := ask(t, dir, interpreter, append([]string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check", "e2b", "e2b-code-interpreter"}, wanted...)...); !made || !ok {
		t.Logf("NEWEST: OPEN: %v can't be installed", wanted)
		return
	}
	try(t, client{"py", "python-new", false}, interpreter, wanted)
}

// try runs a suite with newer packages and tells loudly how it went.
func try(t *testing.T, c client, tool string, wanted []string) {
	s := harness.Start(t)
	r := runWith(t, c, tool, []string{"E2B_API_KEY=" + newKey(t, s), "E2B_API_URL=" + s.API, "E2B_SANDBOX_URL=" + s.API, "E2B_VOLUME_API_URL=" + s.API})
	open, bad := readOpen(t), []string{}
	for _, step := range r.Steps {
		if _, _, is := open.find(c, step.Step); !step.OK && !is {
			bad = append(bad, step.Step+": "+firstLine(step.Error))
		}
	}
	if !r.done || len(bad) > 0 {
		t.Logf("NEWEST: OPEN: THERE IS A NEWER SDK, AND IT DOESN'T PASS: %v: %d of %d steps fail: %s", wanted, len(bad), len(r.Steps), strings.Join(bad, "; "))
		return
	}
	t.Logf("NEWEST: OPEN: there is a newer SDK, which passes: %v: pin it in test/e2b/clients", wanted)
}
