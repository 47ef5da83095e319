package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"

	"agentrun.dev/api"
)

// sdkTarget is how much longer a call may take through E2B's SDK than through our own.
const sdkTarget = 1.3

// sdks measures what agents do most through E2B's SDK for Python and through our own, at one server.
func sdks(b *bench) (err error) {
	if b.e2b == "" || b.native == "" {
		b.add(row{Name: "E2B's SDK beside our own: they aren't installed (test/setup.sh e2b sdk-python)", Ours: "-", Other: "-", Target: "-", Met: true})
		return nil
	}
	c, stop, err := b.serve()
	if err != nil {
		return err
	}
	defer func() {
		if e := stop(); err == nil {
			err = e
		}
	}()
	key, err := c.CreateKey(b.ctx, api.CreateKey{E2B: true, Root: true})
	if err != nil {
		return err
	}
	env := append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=sdk/python/src", "E2B_API_URL="+c.Endpoint(), "E2B_SANDBOX_URL="+c.Endpoint(),
		"E2B_API_KEY="+key.APIKey, "AGENTRUN_ENDPOINT="+c.Endpoint(), "AGENTRUN_API_KEY=AKIAAGENTRUNBENCH0.bench-secret-bench-secret-bench")
	rounds := "10"
	if b.quick {
		rounds = "3"
	}
	found := map[string]map[string]times{"e2b": {}, "native": {}}
	for range 2 { // in turn, so that a busy moment is both's
		for which, python := range map[string]string{"e2b": b.e2b, "native": b.native} {
			cmd := exec.CommandContext(b.ctx, python, "test/bench/sdks.py", which, rounds)
			cmd.Env, cmd.Stderr = env, os.Stderr
			out, err := cmd.Output()
			var ms map[string][]float64
			if err == nil {
				err = json.Unmarshal(out, &ms)
			}
			if err != nil {
				return fmt.Errorf("sdks.py %s: %w", which, err)
			}
			for what, list := range ms {
				for _, t := range list {
					found[which][what] = append(found[which][what], time.Duration(t*1e6))
				}
			}
		}
	}
	for _, x := range []struct{ key, name string }{{"create", "a sandbox is made"}, {"exec", "exec of true"}, {"write", "1 MB written"}, {"read", "1 MB read"}} {
		e, n := found["e2b"][x.key], found["native"][x.key]
		by := ratio(e.p50(), n.p50())
		b.add(row{"E2B's SDK for Python: " + x.name + " (other: our own SDK)", e.String(), n.String(), by, fmt.Sprintf("≤ %.1f", sdkTarget), by <= sdkTarget})
	}
	return nil
}
