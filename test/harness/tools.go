package harness

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// pinned is the table of versions that test/setup.sh reads, too.
//
//go:embed tools.txt
var pinned string

// Root returns the top folder of the source tree.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// cache returns the folder that test/setup.sh installs into.
func cache(t testing.TB) string {
	if dir := os.Getenv("AGENTRUN_CACHE"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(home, ".cache", "agentrun")
}

// Version returns the pinned version of a Go tool.
func Version(t testing.TB, tool string) string {
	t.Helper()
	for line := range strings.Lines(pinned) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == tool {
			return f[1]
		}
	}
	t.Fatalf("tools.txt pins no %s", tool)
	return ""
}

// digest names a lock file's content as setup.sh does.
func digest(t testing.TB, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(Root(), file))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

// Tool returns the path of an installed program: versitygw, rclone, miniogo, aws, python, s3cmd, sdk-python, an SDK of E2B, mcp-js, mcp-python, tigris, qemu-system-x86_64, busybox,
// bash-static, kernel-bench or kernel-cloud (these two: a Linux image, with modules/ beside it), or debian-python (the folder of an OCI layout).
func Tool(t testing.TB, name string) string {
	t.Helper()
	var path, setup string
	switch name {
	case "versitygw", "rclone":
		setup, path = name, filepath.Join(name+"-"+Version(t, name), "bin", name)
	case "miniogo":
		setup, path = name, filepath.Join("miniogo-"+MinioGoVersion(t), "bin", name)
	case "aws", "python", "s3cmd":
		setup, path = "python", filepath.Join("python-"+digest(t, "test/e2e/python/requirements.txt"), "bin", name)
	case "sdk-python":
		setup, path = name, filepath.Join(name+"-"+digest(t, "test/sdk/python/requirements.txt"), "bin", "python")
	case "e2b-js-old", "e2b-js-new": // their folder of packages is one above
		which := strings.TrimPrefix(name, "e2b-")
		setup, path = "e2b", filepath.Join(name+"-"+digest(t, "test/e2b/clients/"+which+"/package-lock.json"), "node_modules", "e2b")
	case "e2b-python-old", "e2b-python-new":
		which := strings.TrimPrefix(name, "e2b-")
		setup, path = "e2b", filepath.Join(name+"-"+digest(t, "test/e2b/clients/"+which+".txt"), "bin", "python")
	case "schemathesis", "openapi-spec-validator":
		setup, path = "openapi", filepath.Join("openapi-"+digest(t, "test/suites/openapi/requirements.txt"), "bin", name)
	case "sdk-typescript": // its folder of packages is two above
		setup, path = name, filepath.Join(name+"-"+digest(t, "test/sdk/typescript/package-lock.json"), "node_modules", ".bin", "tsc")
	case "mcp-js": // its folder of packages is two above
		setup, path = name, filepath.Join(name+"-"+digest(t, "test/mcp/js/package-lock.json"), "node_modules", ".bin", "mcp-inspector")
	case "mcp-python":
		setup, path = name, filepath.Join(name+"-"+digest(t, "test/mcp/python/requirements.txt"), "bin", "python")
	case "tigris":
		setup, path = "js", filepath.Join("js-"+digest(t, "test/e2e/js/package-lock.json"), "node_modules", ".bin", name)
	case "qemu-system-x86_64":
		setup, path = "qemu", filepath.Join("qemu", "bin", name)
	case "busybox":
		setup, path = "kernels", filepath.Join("kernels", "bin", name)
	case "bash-static":
		setup, path = name, filepath.Join(name, "bin", "bash")
	case "kernel-bench", "kernel-cloud": // their modules are beside them
		setup, path = "kernels", filepath.Join("kernels", strings.TrimPrefix(name, "kernel-"), "vmlinuz")
	case "debian-python": // a layout's folder, with the image python:3.12-slim
		setup, path = name, filepath.Join(name, "layout")
	default:
		t.Fatalf("no tool is called %s", name)
	}
	path = filepath.Join(cache(t), path)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s isn't installed: run 'make setup' (or test/setup.sh %s): %v", name, setup, err)
	}
	return path
}

// NodeModules returns the folder whose packages the JavaScript tests import.
func NodeModules(t testing.TB) string {
	t.Helper()
	return filepath.Dir(filepath.Dir(Tool(t, "tigris")))
}

// MinioGoVersion returns the version of minio-go that go.mod requires, without the v.
func MinioGoVersion(t testing.TB) string {
	t.Helper()
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "github.com/minio/minio-go/v7")
	cmd.Dir = Root()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list minio-go: %v", err)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "v")
}
