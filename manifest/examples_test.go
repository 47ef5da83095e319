package manifest_test

import (
	"os"
	"path/filepath"
	"testing"

	"agentrun.dev/manifest"
)

// The examples that users begin with are read as they are.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../examples/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d examples, error %v", len(files), err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := manifest.Read(filepath.Base(name), f); err != nil {
			t.Error(err)
		}
		f.Close()
	}
}
