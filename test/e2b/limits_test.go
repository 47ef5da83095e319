package e2b

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"agentrun.dev/test/harness"
)

// smallTemplate is of sandboxes with a volume that has room for a megabyte.
const smallTemplate = `apiVersion: agentrun.dev/v1alpha1
kind: SandboxTemplate
metadata:
  name: small
spec:
  volumes:
    - name: small
      mountPath: /small
      size: 1Mi
`

// limits makes what the steps of the group "limits" run into: the template "small", and for each client a key of a principal of its own, of
// which two sandboxes may run at once. It returns what each is told.
func limits(t *testing.T, s *harness.Server) [][]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "small.yaml")
	if err := os.WriteFile(file, []byte(smallTemplate), 0o644); err != nil {
		t.Fatal(err)
	}
	administer(t, s, "apply", "-f", file)
	var out [][]string
	for _, c := range clients {
		name := "limited-" + c.String()
		administer(t, s, "principals", "set", name, "--role", "user", "--sandboxes", "2")
		out = append(out, []string{"E2B_TEST_SMALL=small", "E2B_TEST_LIMITED_KEY=" + newKey(t, s, "--principal", name)})
	}
	return out
}

// administer runs a command of agentrun's against a server.
func administer(t *testing.T, s *harness.Server, args ...string) {
	t.Helper()
	cmd := exec.Command(harness.Binary(t), args...)
	cmd.Env = s.ClientEnv(t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("agentrun %q: %v\n%s", args, err, out)
	}
}
