package rpc

import (
	"reflect"
	"testing"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/node"
	"agentrun.dev/volume"
)

// TestSpec: a spec arrives as it is, all fields of it.
func TestSpec(t *testing.T) {
	s := node.Spec{ID: "a", Name: "b", Engine: "c", Image: "d", Volumes: []volume.Spec{{Name: "e", Path: "/e", Size: 3}}, Network: []string{"f"}, Env: []string{"G=h"},
		Dir: "/i", Hostname: "j", Lease: time.Second, Limits: engine.Limits{Memory: 1, VCPUs: 2, CPU: 3, Processes: 4, Files: 5, Output: 6, Written: 7,
			Disk: engine.Rate{Bytes: 8, Ops: 9, BurstBytes: 10, BurstOps: 11}, NetworkIn: engine.Rate{Bytes: 12}, NetworkOut: engine.Rate{Ops: 13}}}
	for _, v := range []reflect.Value{reflect.ValueOf(s), reflect.ValueOf(s.Limits)} {
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("the test leaves %s out", v.Type().Field(i).Name)
			}
		}
	}
	out, err := specOut(s)
	if err != nil {
		t.Fatal(err)
	}
	if in := specIn(out); !reflect.DeepEqual(in, s) {
		t.Errorf("%+v, want %+v", in, s)
	}
}
