package main

import (
	"bytes"
	"fmt"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/node"
)

// neighbours measures how long a command takes in one sandbox while others of the same process do their worst.
func neighbours(b *bench) error {
	n := node.New(node.Options{Engine: userspace.NewEngine(userspace.EngineOptions{}), UID: userspace.UID, GID: userspace.GID})
	defer func() { _ = n.Close(b.ctx) }()
	quiet, err := n.Create(b.ctx, node.Spec{})
	if err != nil {
		return err
	}
	command := func(int) error {
		var out bytes.Buffer
		p, err := quiet.Exec(b.ctx, engine.Cmd{Args: []string{"bash", "-c", "for i in 1 2 3 4 5; do echo $i | cat; done > /tmp/f; wc -l < /tmp/f"}, Stdout: &out})
		if err != nil {
			return err
		}
		if status, err := p.Wait(b.ctx); err != nil || status != 0 || out.String() != "5\n" {
			return fmt.Errorf("status %d, %w, %q", status, err, out.String())
		}
		return nil
	}
	alone, err := measure(2000, command)
	if err != nil {
		return err
	}
	for _, hog := range []struct{ name, script string }{
		{"an endless loop", "while :; do :; done"},
		{"eight endless loops", "for i in 1 2 3 4 5 6 7 8; do while :; do :; done & done; wait"},
		{"awk, sort and grep without end", "awk 'BEGIN { while (1) i++ }' & yes | sort | head & yes | grep -c n & yes abc | tr a-z A-Z > /dev/null & wait"},
		{"a fork bomb", "b() { b | b & b; }; while :; do b; done 2>/dev/null"},
		{"variables that grow", "while :; do x=aaaaaaaaaaaaaaaa; while [ ${#x} -lt 20000000 ]; do x=$x$x; done; done"},
	} {
		s, err := n.Create(b.ctx, node.Spec{})
		if err != nil {
			return err
		}
		if _, err := s.Exec(b.ctx, engine.Cmd{Args: []string{"bash", "-c", hog.script}, Keep: true}); err != nil {
			return err
		}
		time.Sleep(300 * time.Millisecond)
		with, err := measure(2000, command)
		if err != nil {
			return err
		}
		if err := s.End(b.ctx); err != nil {
			return err
		}
		r := ratio(with.p50(), alone.p50())
		b.add(row{Name: "a pipeline of ten processes beside " + hog.name, Ours: with.String(), Other: "alone " + alone.String(), Ratio: r, Target: "≤ 2", Met: r <= 2})
	}
	return nil
}
