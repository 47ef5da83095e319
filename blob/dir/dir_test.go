package dir_test

import (
	"testing"

	"agentrun.dev/blob"
	"agentrun.dev/blob/blobtest"
	"agentrun.dev/blob/dir"
)

func TestConformance(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store {
		s, err := dir.Open(t.TempDir(), dir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
