package python_test

import (
	"fmt"
	"testing"

	"agentrun.dev/proc"
)

// A capture holds what was written since the last one, however many there were.
func TestCaptures(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	within(t, s, func(p *proc.Process) {
		one, err := interpreter().Session(p)
		if err != nil {
			t.Error(err)
			return
		}
		defer one.Close()
		one.Exec(p.Context(), "blob = bytearray(16 << 20)")
		for i := range 30 {
			one.Exec(p.Context(), fmt.Sprintf("for k in range(0, 1 << 20, 4096): blob[k] = %d", i))
			im, err := one.Image()
			if err != nil {
				t.Error(err)
				return
			}
			if memory, own := im.Size(); i > 0 && i%8 != 0 && own > 4<<20 {
				t.Errorf("capture %d holds %d bytes of %d", i, own, memory)
			}
			im.Close()
		}
	})
}
