package agentrun_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "agentrun.dev"

// levels is the table of ARCHITECTURE.md: a package may import only what stands on a lower level, and its own subtree.
// Where a folder holds neighbours that don't know each other, each is listed (see apart).
var levels = map[string]int{
	"": 0, "errs": 0, "api": 0,
	"kv": 1, "blob": 1, "client": 1, "manifest": 1,
	"bucket": 2, "access": 2,
	"vfs":  3,
	"proc": 4, "volume": 4, "fusefs": 4, "egress": 4, "vmm": 4, "guest": 4,
	"shell": 5, "command": 5, "wasm": 5,
	"engine":  6,
	"node":    7,
	"control": 8,
	"serve":   9, "operator": 9,
	"cmd":      10,
	"test":     11, // end-to-end tests and benchmarks use whatever they test
	"examples": 11,
}

// apart lists the folders whose children are subsystems of their own: serve/s3 doesn't import serve/rest.
var apart = map[string]bool{"engine": true, "serve": true, "cmd": true}

// subsystem returns the subsystem that a package belongs to, and its level.
func subsystem(pkg string) (name string, level int, err error) {
	rel := strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
	first, rest, _ := strings.Cut(rel, "/")
	level, ok := levels[first]
	if !ok {
		return "", 0, fmt.Errorf("%s stands on no level: add it to the table in levels_test.go and ARCHITECTURE.md", pkg)
	}
	if apart[first] && rest != "" {
		child, _, _ := strings.Cut(rest, "/")
		return first + "/" + child, level, nil
	}
	return first, level, nil
}

// check says what is wrong with one package importing another; nil if nothing.
func check(from, to string) error {
	a, la, err := subsystem(from)
	if err != nil {
		return err
	}
	b, lb, err := subsystem(to)
	if err != nil {
		return err
	}
	parent, _, nested := strings.Cut(a, "/")
	switch {
	case a == b, lb < la:
		return nil
	case nested && b == parent: // engine/userspace implements what engine declares
		return nil
	case lb == la:
		return fmt.Errorf("%s imports its neighbour %s (both on level %d): what they share belongs below", from, to, la)
	}
	return fmt.Errorf("%s (level %d) imports %s (level %d): imports only go down", from, la, to, lb)
}

func TestLevels(t *testing.T) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	packages := 0
	for dec := json.NewDecoder(bytes.NewReader(out)); ; packages++ {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if _, _, err := subsystem(p.ImportPath); err != nil {
			t.Error(err)
			continue
		}
		for _, to := range p.Imports {
			if to != module && !strings.HasPrefix(to, module+"/") {
				if p.ImportPath == module && strings.Contains(to, ".") {
					t.Errorf("the nouns import %s: the root package has the standard library only", to)
				}
				continue
			}
			if err := check(p.ImportPath, to); err != nil {
				t.Error(err)
			}
		}
	}
	if packages < 5 {
		t.Fatalf("go list found only %d packages", packages)
	}
}

// TestLevelRules shows the rules at work, so that the test above can't pass by a mistake in them.
func TestLevelRules(t *testing.T) {
	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{"/bucket", "/kv", true},
		{"/bucket", "/bucket/tree", true},
		{"/bucket/tree", "/bucket", true},
		{"/bucket", "", true},
		{"/kv/pebble", "/kv", true},
		{"/kv", "/bucket", false},
		{"/bucket", "/access", false},
		{"/serve/rest", "/bucket", true},
		{"/serve/rest", "/serve/s3", false},
		{"/engine/userspace", "/engine", true},
		{"/engine", "/engine/userspace", false},
		{"/engine/userspace", "/engine/oci", false},
		{"/cmd/agentrun", "/cmd/agentrun/internal/cli", true},
		{"/cmd/agentrun", "/cmd/agentrun-guest", false},
		{"/shell", "/command", false},
		{"/bucket", "/utils", false},
		{"/helpers", "/errs", false},
	} {
		if err := check(module+c.from, module+c.to); (err == nil) != c.ok {
			t.Errorf("check(%q, %q) = %v, want ok %v", c.from, c.to, err, c.ok)
		}
	}
}
