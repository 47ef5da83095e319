package e2e

import (
	"path/filepath"
	"testing"

	"agentrun.dev/test/harness"
)

// TestTigrisSDK runs js/storage_client.cjs on the unmodified @tigrisdata/storage.
func TestTigrisSDK(t *testing.T) {
	s := startAgentRun(t)
	s.Set("NODE_MODULES", harness.NodeModules(t))
	s.Set("TIGRIS_STORAGE_ENDPOINT", s.Server.Endpoint)
	s.Set("TIGRIS_STORAGE_ACCESS_KEY_ID", s.Get("AWS_ACCESS_KEY_ID"))
	s.Set("TIGRIS_STORAGE_SECRET_ACCESS_KEY", s.Get("AWS_SECRET_ACCESS_KEY"))
	s.tap(15, "node", filepath.Join(harness.Root(), "test", "e2e", "js", "storage_client.cjs"))
}
