package vmm_test

import (
	"testing"

	"agentrun.dev/vmm"
	"agentrun.dev/vmm/vmmtest"
)

// What is found here is what the other tests show: VMs run.
func TestExamine(t *testing.T) {
	vmmtest.Host(t)
	for _, f := range vmm.Examine() {
		t.Logf("%+v", f)
		if f.Name == "" || f.Text == "" || f.Need && !f.OK {
			t.Errorf("%+v", f)
		}
	}
}
