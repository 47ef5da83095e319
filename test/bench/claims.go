package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/node"
	"agentrun.dev/volume"
)

// claims measures what control asks of a node of this process, over a store on the disk: sandboxes of an image with Python, whose
// interpreter runs in the image already, or with a shell only.
func claims(b *bench) error {
	st, err := b.open("claims")
	if err != nil {
		return err
	}
	defer st.close()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = b.dir
	}
	guests := userspace.NewGuests(userspace.GuestOptions{CacheDir: filepath.Join(cache, "agentrun", "wasm")})
	defer guests.Close()
	n := node.New(node.Options{Engine: userspace.NewEngine(userspace.EngineOptions{Commands: guests}), Store: st.Store, UID: userspace.UID, GID: userspace.GID,
		Dir: filepath.Join(b.dir, "claims", "node")})
	defer n.Close(context.WithoutCancel(b.ctx))
	c := &claimer{b: b, h: node.Local(n, "bench", "bench")}
	for _, f := range []func() error{c.build, c.starts, c.claims, c.codes, c.forks, c.sleeps} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// claimer is one run of the group.
type claimer struct {
	b   *bench
	h   node.Host
	ids int
}

func (c *claimer) build() error {
	spec := node.Spec{Volumes: []volume.Spec{{Name: "workspace", Empty: true}}}
	for _, language := range []string{"", api.Python} {
		if err := c.h.Build(c.b.ctx, node.Build{Image: "bench-" + language + "@1", Spec: spec, Language: language, Init: []string{"echo hello > note"}}, io.Discard); err != nil {
			return err
		}
	}
	return nil
}

// start starts a sandbox that waits.
func (c *claimer) start(language string, claim *node.Claim) (string, error) {
	c.ids++
	id := fmt.Sprintf("bench-%d", c.ids)
	_, err := c.h.Start(c.b.ctx, node.Start{ID: id, Epoch: 1, Image: "bench-" + language + "@1", Claim: claim})
	return id, err
}

// timed measures f so often, and ends the sandbox that before made.
func (c *claimer) timed(often int, before func() (string, error), f func(id string) error) (all times, err error) {
	if c.b.quick {
		often = max(5, often/10)
	}
	for range often {
		id, err := before()
		if err != nil {
			return nil, err
		}
		start := time.Now()
		if err := f(id); err != nil {
			return nil, err
		}
		all = append(all, time.Since(start))
		if err := c.h.End(c.b.ctx, id); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// row adds a measurement with a target for its median; without one it is reported only.
func (c *claimer) row(name string, all times, other string, beside, target time.Duration) {
	r := row{Name: "node: " + name, Ours: all.String(), Other: other, Target: "-", Met: true}
	if beside > 0 {
		r.Ratio = ratio(all.p50(), beside)
	}
	if target > 0 {
		r.Target, r.Met = fmt.Sprintf("p50 ≤ %v", target), all.p50() <= target
	}
	c.b.add(r)
}

func (c *claimer) starts() error {
	fsync, err := fsyncTime(c.b.dir)
	if err != nil {
		return err
	}
	for _, language := range []string{"", api.Python} {
		all, err := c.timed(300, func() (string, error) { return "", nil }, func(string) error { _, err := c.start(language, nil); return err })
		if err != nil {
			return err
		}
		c.row("start from an image "+with(language)+", its fork durable (other: an fsync)", all, fsync.String(), fsync.p50(), 0)
		for i := range c.ids {
			if err := c.h.End(c.b.ctx, fmt.Sprintf("bench-%d", i+1)); err != nil {
				return err
			}
		}
	}
	return nil
}

func with(language string) string {
	if language == "" {
		return "with a shell"
	}
	return "with Python running"
}

func (c *claimer) claims() error {
	claim := node.Claim{Env: []string{"TOKEN=secret", "USER_ID=1"}, Network: []string{"example.com:443"}}
	all, err := c.timed(1000, func() (string, error) { return c.start(api.Python, nil) }, func(id string) error { return c.h.Claim(c.b.ctx, id, 1, claim) })
	if err != nil {
		return err
	}
	c.row("claim of a warm sandbox: environment, network", all, "target 1 ms", time.Millisecond, time.Millisecond)
	return nil
}

func (c *claimer) codes() error {
	first := func(language, text string) func(string) error {
		return func(id string) error { return c.code(id, language, text) }
	}
	for _, x := range []struct{ name, language, text string }{
		{"claimed sandbox to the end of its first Python text", api.Python, "print('hello')"},
		{"claimed sandbox to the end of its first shell text", "", "echo hello"},
	} {
		all, err := c.timed(300, func() (string, error) { return c.start(x.language, &node.Claim{}) }, first(x.language, x.text))
		if err != nil {
			return err
		}
		c.row(x.name, all, "-", 0, 0)
	}
	id, err := c.start(api.Python, &node.Claim{})
	if err != nil {
		return err
	}
	defer c.h.End(c.b.ctx, id)
	for _, x := range []struct{ name, text string }{{"Python text in a session that runs", "print('hello')"}, {"text that is shell, in a sandbox of Python", "ls -la"}} {
		var all times
		for range 500 {
			start := time.Now()
			if err := c.code(id, api.Python, x.text); err != nil {
				return err
			}
			all = append(all, time.Since(start))
		}
		c.row(x.name, all, "-", 0, 0)
	}
	return nil
}

// code runs a text that must go well.
func (c *claimer) code(id, language, text string) error {
	var out, wrong strings.Builder
	r, err := c.h.Code(c.b.ctx, id, node.Code{Text: text, Default: language, Stdout: &out, Stderr: &wrong})
	if err != nil {
		return err
	}
	if r.Status != 0 || out.Len() == 0 {
		return fmt.Errorf("%s: status %d: %s%s", text, r.Status, out.String(), wrong.String())
	}
	return nil
}

// forks measures a fork of a sandbox whose Python has state, up to the first result of every child.
func (c *claimer) forks() error {
	id, err := c.start(api.Python, &node.Claim{})
	if err != nil {
		return err
	}
	defer c.h.End(c.b.ctx, id)
	if _, err := c.h.Code(c.b.ctx, id, node.Code{Text: "state = list(range(100_000))", Default: api.Python}); err != nil {
		return err
	}
	for _, count := range []int{1, 10, 100} {
		var made, done times
		for range max(5, 100/count) {
			ids := make([]string, count)
			for i := range ids {
				c.ids++
				ids[i] = fmt.Sprintf("bench-%d", c.ids)
			}
			start := time.Now()
			if _, err := c.h.Fork(c.b.ctx, id, node.Fork{IDs: ids, Epoch: 1}); err != nil {
				return err
			}
			made = append(made, time.Since(start))
			failed := make(chan error, count)
			for _, child := range ids {
				go func() { failed <- c.code(child, api.Python, "len(state)") }()
			}
			for range ids {
				if err := <-failed; err != nil {
					return err
				}
			}
			done = append(done, time.Since(start))
			for _, child := range ids {
				if err := c.h.End(c.b.ctx, child); err != nil {
					return err
				}
			}
		}
		c.row(fmt.Sprintf("fork ×%d of a sandbox with Python, to every child's first result (other: to the forks)", count), done, made.String(), made.p50(), 0)
	}
	return nil
}

func (c *claimer) sleeps() error {
	for _, language := range []string{"", api.Python} {
		text := map[string]string{"": "cat note", api.Python: "print(1)"}[language]
		var sleep, wake times
		for range 30 {
			id, err := c.start(language, &node.Claim{})
			if err != nil {
				return err
			}
			if err := c.code(id, language, text); err != nil {
				return err
			}
			start := time.Now()
			if err := c.h.Hibernate(c.b.ctx, id, false); err != nil {
				return err
			}
			sleep = append(sleep, time.Since(start))
			start = time.Now()
			if _, err := c.h.Wake(c.b.ctx, id, 2, node.Claim{}); err != nil {
				return err
			}
			if err := c.code(id, language, text); err != nil {
				return err
			}
			wake = append(wake, time.Since(start))
			if err := c.h.End(c.b.ctx, id); err != nil {
				return err
			}
		}
		c.row("hibernate "+with(language)+", durable", sleep, "-", 0, 0)
		c.row("wake "+with(language)+", to the first result", wake, "-", 0, 0)
	}
	return nil
}
