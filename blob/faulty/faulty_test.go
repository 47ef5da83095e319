package faulty_test

import (
	"testing"

	"agentrun.dev/blob"
	"agentrun.dev/blob/blobtest"
	"agentrun.dev/blob/faulty"
)

func TestConformance(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store {
		s, err := faulty.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
