package e2e

import (
	"path/filepath"
	"testing"

	"agentrun.dev/test/harness"
)

// TestBoto3 runs python/boto3_client.py.
func TestBoto3(t *testing.T) {
	s := start(t)
	s.Set("SERVER", string(s.Server.Kind))
	s.tap(20, harness.Tool(t, "python"), filepath.Join(harness.Root(), "test", "e2e", "python", "boto3_client.py"))
}
