package suites

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/test/harness"
)

// unprobed are operations that schemathesis can't try: WebSockets, streams that don't end, servers in sandboxes, and what makes a server of
// one node refuse new sandboxes.
const unprobed = `/ports/|/exec$|/watch$|/drain$|/events$`

// TestOpenAPI checks that the document which the server serves is OpenAPI 3.1, and, by thousands of requests that are made up from it, that
// the server does what it says: no answer of 5xx, none that the document doesn't have, nothing accepted that it doesn't allow.
func TestOpenAPI(t *testing.T) {
	s := harness.StartKind(t, harness.AgentRun, t.TempDir())
	c, err := client.New(s.API, s.AccessKey+"."+s.SecretKey, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	populate(t, c)
	resp, err := http.Get(s.API + "/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	doc := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(doc, b, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("document", func(t *testing.T) {
		if out, err := exec.Command(harness.Tool(t, "openapi-spec-validator"), doc).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("server", func(t *testing.T) { schemathesis(t, s, doc) })
}

// populate makes something for requests to find.
func populate(t *testing.T, c *client.Client) {
	t.Helper()
	ctx := t.Context()
	if _, err := c.CreateBucket(ctx, api.CreateBucket{Name: "bucket"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutTemplate(ctx, "template", api.TemplateSpec{}); err != nil {
		t.Fatal(err)
	}
	if err := c.BuildLog(ctx, "template", 0, true, func(*api.BuildLine) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutPool(ctx, "pool", api.PoolSpec{Template: "template", Replicas: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateSandbox(ctx, api.CreateSandbox{Template: "template", Name: "sandbox"}); err != nil {
		t.Fatal(err)
	}
}

func schemathesis(t *testing.T, s *harness.Server, doc string) {
	dir := t.TempDir()
	// 501 is an answer, and no failure: an engine that no node of this server has.
	config := filepath.Join(dir, "schemathesis.toml")
	if err := os.WriteFile(config, []byte("[checks.not_a_server_error]\nexpected-statuses = [\"2xx\", \"3xx\", \"4xx\", \"501\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Whether what the schemas allow is accepted isn't asked: they don't say all, such as that of two fields one is set.
	cmd := exec.CommandContext(t.Context(), harness.Tool(t, "schemathesis"), "--config-file", config, "run", doc, "--url", s.API, "--header", "Authorization: Bearer "+s.AccessKey+"."+s.SecretKey,
		"--phases", "coverage,fuzzing", "--max-examples", "5", "--seed", "1", "--exclude-checks", "positive_data_acceptance", "--exclude-path-regex", unprobed,
		"--request-timeout", "30", "--continue-on-failure", "--no-color", "--workers", "2")
	cmd.Dir = dir
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	text := string(out)
	if m := regexp.MustCompile(`(\d+) generated`).FindStringSubmatch(text); m != nil {
		t.Logf("schemathesis: %s cases", m[1])
	} else if err == nil {
		t.Errorf("nothing was tried:\n%s", text)
	}
	if err != nil {
		if i := strings.Index(text, "= FAILURES ="); i > 0 {
			text = text[i:]
		} else if i := strings.Index(text, "= ERRORS ="); i > 0 {
			text = text[i:]
		}
		t.Errorf("%v\n%.20000s", err, text)
	}
}
