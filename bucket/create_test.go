package bucket

import (
	"sync"
	"testing"

	"agentrun.dev/errs"
)

// TestCreateAtOnce creates a bucket from several sides: one makes it, and for the others it exists when they are told so.
func TestCreateAtOnce(t *testing.T) {
	s := newRig(t, Options{}).s
	var all sync.WaitGroup
	for i := range 50 {
		name := "b" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		for range 4 {
			all.Go(func() {
				if _, err := s.Create(t.Context(), name, CreateOptions{}); err != nil && !errs.Is(err, errs.Exists) {
					t.Error(err)
				}
				if _, err := s.Bucket(t.Context(), name); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
}
