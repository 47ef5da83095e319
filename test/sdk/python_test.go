// Package sdk tests the SDKs as their users have them: built into packages, installed from those into a fresh environment, against
// a server that was just started. Their own unit tests run there, too; so do the examples of the guide, as printed.
package sdk

import (
	"bytes"
	"context"
	"encoding/pem"
	"encoding/xml"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentrun.dev/test/harness"
)

// python is the SDK for Python, being tested.
type python struct {
	t     *testing.T
	tools string // the interpreter that has the pinned tools
	dir   string // of the SDK's sources
	work  string
	user  string // the interpreter of a fresh environment, into which the wheel was installed
}

func TestPython(t *testing.T) {
	p := &python{t: t, tools: harness.Tool(t, "sdk-python"), dir: filepath.Join(harness.Root(), "sdk", "python"), work: t.TempDir()}
	t.Run("types", func(t *testing.T) {
		for _, version := range []string{"3.10", "3.13"} { // the oldest that the checker knows; 3.9 differs in nothing that it would see
			p.run(t, p.dir, nil, p.tools, "-m", "mypy", "--cache-dir", filepath.Join(p.work, "mypy"), "--python-version", version)
		}
	})
	if !t.Run("packages", p.build) {
		return
	}
	t.Run("unit", func(t *testing.T) { p.pytest(t, filepath.Join(p.dir, "tests"), nil, 100) })
	t.Run("service", func(t *testing.T) {
		s := harness.Start(t)
		endpoint, ca := behindTLS(t, s)
		p.pytest(t, filepath.Join(harness.Root(), "test", "sdk", "python"), append(s.ClientEnv(t.TempDir()), "TLS_ENDPOINT="+endpoint, "TLS_CA="+ca,
			"SEED="+filepath.Join(harness.Root(), "test", "sdk", "testdata", "forkable-sandboxes.md"), "README="+filepath.Join(p.dir, "README.md")), 40)
	})
}

// behindTLS puts a server behind TLS. It returns where it is and the file of its certificate.
func behindTLS(t *testing.T, s *harness.Server) (endpoint, ca string) {
	t.Helper()
	front := httptest.NewTLSServer(harness.Proxy(t, s.API, nil))
	t.Cleanup(front.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	b := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	if err := os.WriteFile(ca, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return front.URL, ca
}

// build makes wheel and sdist, and installs the wheel that is made of the sdist into a fresh environment, without the network.
func (p *python) build(t *testing.T) {
	dist := filepath.Join(p.work, "dist")
	p.run(t, p.dir, nil, p.tools, "-m", "hatchling", "build", "-d", dist)
	sdist := only(t, filepath.Join(dist, "*.tar.gz"))
	p.run(t, p.work, nil, "tar", "-xzf", sdist)
	again := filepath.Join(p.work, "again")
	p.run(t, strings.TrimSuffix(filepath.Join(p.work, filepath.Base(sdist)), ".tar.gz"), nil, p.tools, "-m", "hatchling", "build", "-t", "wheel", "-d", again)
	wheel, second := only(t, filepath.Join(dist, "*.whl")), only(t, filepath.Join(again, "*.whl"))
	a, b := p.list(t, wheel), p.list(t, second)
	if a != b {
		t.Errorf("the wheel that is made of the sdist is another:\n%s\n%s", a, b)
	}
	for _, want := range []string{"agent_run/py.typed", "agent_run/_sync/client.py", "agent_run/_async/client.py", "dist-info/METADATA"} {
		if !strings.Contains(a, want) {
			t.Errorf("the wheel has no %s:\n%s", want, a)
		}
	}
	if strings.Contains(a, "test") {
		t.Errorf("the wheel has tests in it:\n%s", a)
	}
	venv := filepath.Join(p.work, "venv")
	p.run(t, p.work, nil, p.tools, "-m", "venv", venv)
	p.user = filepath.Join(venv, "bin", "python")
	wheels := filepath.Join(filepath.Dir(filepath.Dir(p.tools)), "wheels")
	p.run(t, p.work, nil, p.user, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--find-links", wheels, second, "pytest", "boto3")
	// A program that uses the SDK is checked against the types that the wheel brings.
	program := filepath.Join(p.work, "program.py")
	text := "from agent_run import Sandbox\n\ns = Sandbox.create('p')\nreveal_type(s.exec('x').exit_code)\nreveal_type(s.fork(2))\nreveal_type(s.files.read('f'))\ns.exec(1)\n"
	if err := os.WriteFile(program, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, _ := p.try(p.work, nil, p.tools, "-m", "mypy", "--strict", "--cache-dir", filepath.Join(p.work, "mypy"), "--python-executable", p.user, program)
	for _, want := range []string{`"int"`, `list[agent_run._sync.sandbox.Sandbox]"`, `"str"`, "No overload variant", "Found 1 error"} {
		if !strings.Contains(strings.ReplaceAll(out, "builtins.", ""), want) {
			t.Errorf("mypy says nothing of %s:\n%s", want, out)
		}
	}
}

func (p *python) list(t *testing.T, wheel string) string {
	return p.run(t, p.work, nil, p.tools, "-m", "zipfile", "-l", wheel)
}

// suites is a report of pytest.
type suites struct {
	Cases []struct {
		Class   string `xml:"classname,attr"`
		Name    string `xml:"name,attr"`
		Failure *note  `xml:"failure"`
		Error   *note  `xml:"error"`
		Skipped *note  `xml:"skipped"`
	} `xml:"testsuite>testcase"`
}

type note struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// pytest runs a folder of tests in the fresh environment, each of them as a subtest.
func (p *python) pytest(t *testing.T, dir string, env []string, atLeast int) {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.xml")
	out, err := p.try(p.work, env, p.user, "-m", "pytest", "-p", "no:cacheprovider", "--junitxml", report, "--tb", "short", "--color", "no", dir)
	b, readErr := os.ReadFile(report)
	if readErr != nil {
		t.Fatalf("pytest: %v\n%s", err, out)
	}
	var r suites
	if err := xml.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	bad := false
	for _, c := range r.Cases {
		t.Run(strings.TrimPrefix(c.Class, "test_")+"/"+c.Name, func(t *testing.T) {
			for _, n := range []*note{c.Failure, c.Error} {
				if n != nil {
					bad = true
					t.Errorf("%s\n%s", n.Message, n.Text)
				}
			}
			if c.Skipped != nil {
				t.Skip(c.Skipped.Message)
			}
		})
	}
	if (err != nil) != bad || len(r.Cases) < atLeast {
		t.Errorf("pytest: %v after %d of at least %d tests\n%s", err, len(r.Cases), atLeast, out)
	}
}

// run runs a command that must succeed, and returns what it printed.
func (p *python) run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	out, err := p.try(dir, env, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return out
}

func (p *python) try(dir string, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	if env == nil {
		env = harness.Environ(p.work)
	}
	cmd.Dir, cmd.Env = dir, append(env, "PYTHONDONTWRITEBYTECODE=1", "PIP_NO_INPUT=1")
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// only returns the one file of a pattern.
func only(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: want one file, got %v (%v)", pattern, found, err)
	}
	return found[0]
}
