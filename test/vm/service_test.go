package vm

import (
	"bytes"
	"context"
	"encoding/xml"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentrun.dev/test/harness"
)

// Ports of the service's bench.
const (
	servicePort, controlPort, sshPort = 8080, 8090, 8022
)

// TestService runs the real `agentrun up` with microVMs in the bench; its clients are this machine's: the SDK for Python, the CLI.
func TestService(t *testing.T) {
	t.Parallel()
	python := harness.Tool(t, "sdk-python")
	files := engineFiles(t)
	files["/bench/agentrun"] = Build(t, "agentrun.dev/cmd/agentrun", false)
	for _, unused := range []string{"/microvm/agent", "/microvm/vmm"} { // agentrun has them in it
		delete(files, unused)
	}
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost\n10.0.2.15 site.test other.test\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	files["/etc/hosts"] = hosts
	key := "AKIAAGENTRUNTEST.a-secret-of-forty-letters-as-tests-have."
	id, secret, _ := strings.Cut(key, ".")
	b := Start(t, Program{
		Path: Build(t, "agentrun.dev/test/vm/service", false),
		Args: []string{"-data", "/data", "/bench/agentrun", "up", "--data", "/data/store", "--microvm-kernel", "/microvm/kernel", "--microvm-modules", "/microvm/modules", "--microvm-images", "/images/names", "--microvm-store", "/images",
			"--microvm-memory", "256Mi", "--microvm-slow", "--build-network", "10.0.2.15:8081",
			"--ssh-listen", "127.0.0.1:7022", "--ssh-template", "python-agent"},
		Env:   []string{"AGENTRUN_ACCESS_KEY_ID=" + id, "AGENTRUN_SECRET_ACCESS_KEY=" + secret},
		Files: files, Disks: []string{imagesDisk(t)}, Modules: []string{"crc32c_generic", "erofs"}, Memory: 6144, Timeout: 20 * time.Minute, Ports: []int{servicePort, controlPort, sshPort},
	})
	control := "http://" + b.Addr(controlPort)
	post := func(path string) string {
		r, err := http.Post(control+path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s %v", path, r.Status, text, err)
		}
		return string(text)
	}
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if r, err := http.Get(control + "/log"); err == nil {
			r.Body.Close()
			break
		} else if time.Now().After(end) {
			b.cancel()
			r, err := b.wait()
			t.Fatalf("the bench doesn't answer: %v %s", err, r.Console)
		}
	}
	post("/up")
	home := t.TempDir()
	env := append(harness.Environ(home), "AGENTRUN_ENDPOINT=http://"+b.Addr(servicePort), "AGENTRUN_API_KEY="+key, "CONTROL="+control, "SSH="+b.Addr(sshPort),
		"AGENTRUN="+harness.Binary(t), "SEED="+filepath.Join(harness.Root(), "test", "sdk", "testdata", "forkable-sandboxes.md"),
		"PYTHONPATH="+filepath.Join(harness.Root(), "sdk", "python", "src"), "PYTHONDONTWRITEBYTECODE=1")
	if hold := os.Getenv("AGENTRUN_VM_HOLD"); hold != "" { // a file: for who looks at it by hand, until it is deleted
		_ = os.WriteFile(hold, []byte(strings.Join(env, "\n")), 0o644)
		for _, err := os.Stat(hold); err == nil; _, err = os.Stat(hold) {
			time.Sleep(time.Second)
		}
	}
	runPytest(t, python, filepath.Join(harness.Root(), "test", "vm", "service"), env)
	post("/end")
	r := b.Wait(t)
	t.Logf("up in %v, all in %v", r.Booted, r.Took)
	if r.Status != 0 {
		t.Errorf("status %d", r.Status)
	}
	if t.Failed() {
		t.Logf("the server said:\n%s\nconsole:\n%s", r.Output, tail(r.Console))
	}
}

// runPytest runs a folder of tests, each as a subtest. AGENTRUN_VM_SERVICE_TESTS says which, if not all but the restarts, which take minutes.
func runPytest(t *testing.T, python, dir string, env []string) {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.xml")
	args := []string{"-m", "pytest", "-p", "no:cacheprovider", "--junitxml", report, "--tb", "short", "--color", "no", "--durations", "0", dir}
	switch only := os.Getenv("AGENTRUN_VM_SERVICE_TESTS"); {
	case only != "":
		args = append(args, "-k", only)
	case os.Getenv("AGENTRUN_VM_LONG") == "":
		t.Log("NOT TESTED HERE: test_restart, which make soak runs")
		args = append(args, "-k", "not test_restart")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 18*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = t.TempDir(), env, 10*time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	b, readErr := os.ReadFile(report)
	if readErr != nil {
		t.Errorf("pytest: %v\n%s", err, out.Bytes())
		return
	}
	var r struct {
		Cases []struct {
			Name    string   `xml:"name,attr"`
			Time    string   `xml:"time,attr"`
			Failure []string `xml:"failure"`
			Error   []string `xml:"error"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal(b, &r); err != nil {
		t.Error(err)
	}
	for _, c := range r.Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Log(c.Time, "s")
			for _, text := range append(c.Failure, c.Error...) {
				t.Error(text)
			}
		})
	}
	if (err != nil && !t.Failed()) || len(r.Cases) == 0 {
		t.Errorf("pytest: %v\n%s", err, out.Bytes())
	}
}
