package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"agentrun.dev/api"
)

// sdkTarget is how much longer a call may take through E2B's SDK than through our own.
const sdkTarget = 1.3

// sdkCalls are what is timed, and what rows call it.
var sdkCalls = []struct{ key, name string }{{"create", "a sandbox is made"}, {"exec", "exec of true"}, {"write", "1 MB written"}, {"read", "1 MB read"}}

// sdks measures what agents do most through E2B's SDK for Python and through our own, at one server; and both once more at a server that
// answers at once with the same bytes, which is what the SDKs themselves take. All four take turns, round by round, so that a busy moment is
// everybody's; ratios are the medians of those of each round.
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
	still, err := newStill()
	if err != nil {
		return err
	}
	defer still.close()
	var clients []*sdkClient
	defer func() {
		for _, cl := range clients {
			if e := cl.close(); err == nil {
				err = e
			}
		}
	}()
	for _, at := range []string{c.Endpoint(), still.endpoint()} {
		for _, which := range []struct{ name, python string }{{"e2b", b.e2b}, {"native", b.native}} {
			cl, err := b.sdkClient(which.python, which.name, at, key.APIKey)
			if err != nil {
				return err
			}
			clients = append(clients, cl)
		}
	}
	rounds, often := 60, 4
	if b.quick {
		rounds, often = 4, 2
	}
	for i := -2; i < rounds; i++ { // two for connections, and for code that runs for the first time
		for k := range clients {
			cl := clients[(k+i+len(clients))%len(clients)]
			if err := cl.round(often, i >= 0); err != nil {
				return err
			}
		}
	}
	for _, call := range sdkCalls {
		b.sdkRows(call.key, call.name, clients)
	}
	return nil
}

// sdkRows adds what was found about a call: of the SDKs at a server, of themselves, and of the server under each.
func (b *bench) sdkRows(key, name string, c []*sdkClient) {
	e2b, native, e2bAlone, nativeAlone := c[0].found[key], c[1].found[key], c[2].found[key], c[3].found[key]
	by := paired(e2b, native)
	b.add(row{"E2B's SDK for Python: " + name + " (other: our own SDK)", all(e2b).String(), all(native).String(), by, fmt.Sprintf("≤ %.1f", sdkTarget), by <= sdkTarget})
	b.add(row{"– of that the SDK itself: a server that answers at once", all(e2bAlone).String(), all(nativeAlone).String(), paired(e2bAlone, nativeAlone), "-", true})
	ours, other := all(e2b).p50()-all(e2bAlone).p50(), all(native).p50()-all(nativeAlone).p50()
	b.add(row{"– the rest: what the server takes", short(ours), short(other), ratio(ours, other), "-", true})
}

// paired is the median of the ratios of rounds.
func paired(a, b []times) float64 {
	r := make([]float64, len(a))
	for i := range a {
		r[i] = ratio(a[i].p50(), b[i].p50())
	}
	slices.Sort(r)
	return r[len(r)/2]
}

// all are the times of all rounds.
func all(rounds []times) times { return slices.Concat(rounds...) }

// sdkClient is a Python that uses one of the SDKs when it is told to.
type sdkClient struct {
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	found map[string][]times // by call, then by round
}

func (b *bench) sdkClient(python, name, endpoint, e2bKey string) (*sdkClient, error) {
	cmd := exec.CommandContext(b.ctx, python, "test/bench/sdks.py", name)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=sdk/python/src", "E2B_API_URL="+endpoint, "E2B_SANDBOX_URL="+endpoint,
		"E2B_API_KEY="+e2bKey, "AGENTRUN_ENDPOINT="+endpoint, "AGENTRUN_API_KEY=AKIAAGENTRUNBENCH0.bench-secret-bench-secret-bench")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &sdkClient{name: name, cmd: cmd, in: in, out: bufio.NewReader(out), found: map[string][]times{}}, nil
}

// round has everything done once, and what takes part in a sandbox that often.
func (c *sdkClient) round(often int, keep bool) error {
	if _, err := fmt.Fprintln(c.in, often); err != nil {
		return fmt.Errorf("sdks.py %s: %w", c.name, err)
	}
	line, err := c.out.ReadBytes('\n')
	var ms map[string][]float64
	if err == nil {
		err = json.Unmarshal(line, &ms)
	}
	if err != nil {
		return fmt.Errorf("sdks.py %s: %w", c.name, err)
	}
	for what, list := range ms {
		if !keep {
			break
		}
		t := make(times, len(list))
		for i, v := range list {
			t[i] = time.Duration(v * 1e6)
		}
		c.found[what] = append(c.found[what], t)
	}
	return nil
}

func (c *sdkClient) close() error {
	_ = c.in.Close()
	return c.cmd.Wait()
}
