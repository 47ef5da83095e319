package server

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/bucket"
	"agentrun.dev/control"
	"agentrun.dev/node"
	"agentrun.dev/volume"
)

// victimVariable names the data directory for the process of TestKilledServer that is killed.
const victimVariable = "AGENTRUN_TEST_VICTIM"

// victim serves and works on its sandboxes until it is killed. It says what was acknowledged: only that counts.
func victim(t *testing.T, dir string) {
	conf := config(t)
	conf.Data = dir
	s, _ := start(t, conf)
	c, ctx := s.control, t.Context()
	fill(t, c, 2)
	say := func(format string, a ...any) { fmt.Fprintf(os.Stdout, "ack "+format+"\n", a...) }
	if _, err := c.Sandbox(ctx, root, "one"); err != nil {
		if _, err := c.CreateSandbox(ctx, root, api.CreateSandbox{Pool: "tools", Name: "one", Env: map[string]string{"TOKEN": "mine"}}); err != nil {
			t.Fatal(err)
		}
	}
	say("claimed")
	first, _ := strconv.Atoi(in(t, c, "one", "cat n 2>/dev/null || echo 0"))
	for n := first + 1; ; n++ {
		in(t, c, "one", fmt.Sprintf("echo %d > n && sync", n))
		say("wrote %d", n)
		name := fmt.Sprintf("f-%d", n)
		if _, err := c.ForkSandbox(ctx, root, "one", api.ForkSandbox{Count: 2, Name: name}); err != nil {
			t.Fatal(err)
		}
		say("forked %s", name)
		if _, err := c.Hibernate(ctx, root, "one"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Hibernate(ctx, root, name+"-2"); err != nil {
			t.Fatal(err)
		}
		say("slept %d", n)
		if _, err := c.EndSandbox(ctx, root, name+"-1"); err != nil {
			t.Fatal(err)
		}
		say("ended %s-1", name)
	}
}

// TestKilledServer kills a server with SIGKILL in the middle of forks, hibernations and ends, again and again. What it acknowledged holds in the
// next one, and nothing else is left.
func TestKilledServer(t *testing.T) {
	if dir := os.Getenv(victimVariable); dir != "" {
		victim(t, dir)
		return
	}
	dir := filepath.Join(t.TempDir(), "data")
	for round := range 4 {
		acks := murder(t, dir, 3+4*round)
		conf := config(t)
		conf.Data = dir
		s, end := start(t, conf)
		c := s.control
		wrote, ended := 0, map[string]bool{}
		for _, a := range acks {
			if n, ok := strings.CutPrefix(a, "wrote "); ok {
				wrote, _ = strconv.Atoi(n)
			}
			if name, ok := strings.CutPrefix(a, "ended "); ok {
				ended[name] = true
			}
		}
		got := in(t, c, "one", "cat n; echo $TOKEN")
		n, token, _ := strings.Cut(got, "\n")
		if have, _ := strconv.Atoi(n); have < wrote || token != "mine" {
			t.Errorf("round %d: it has %q, acknowledged was %d", round, got, wrote)
		}
		for _, a := range acks {
			name, ok := strings.CutPrefix(a, "forked ")
			if !ok {
				continue
			}
			for _, child := range []string{name + "-1", name + "-2"} {
				_, err := c.Sandbox(t.Context(), root, child)
				if ended[child] && err == nil {
					t.Errorf("round %d: %s has ended, and is there", round, child)
				}
				if !ended[child] && err != nil && !strings.HasSuffix(child, "-1") { // the end of a first one may have been done
					t.Errorf("round %d: %s is lost: %v", round, child, err)
				}
			}
		}
		noOrphans(t, s, round)
		if err := end(); err != nil {
			t.Errorf("round %d: the end: %v", round, err)
		}
	}
}

// murder runs a victim until it has acknowledged so many things, kills it, and returns them.
func murder(t *testing.T, dir string, after int) (acks []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKilledServer$")
	cmd.Env = append(os.Environ(), victimVariable+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var other []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if a, ok := strings.CutPrefix(lines.Text(), "ack "); ok {
			acks = append(acks, a)
		} else {
			other = append(other, lines.Text())
		}
		if len(acks) == after {
			time.AfterFunc(time.Duration(after)*time.Millisecond, func() { _ = cmd.Process.Kill() })
		}
	}
	_ = cmd.Wait()
	if len(acks) < after {
		t.Fatalf("the victim ended by itself:\n%s", strings.Join(other, "\n"))
	}
	return acks
}

// noOrphans holds sandboxes, their node and their buckets against each other, until they agree: pools are being filled meanwhile.
func noOrphans(t *testing.T, s *Server, round int) {
	t.Helper()
	var wrong []string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if wrong = disagreements(t, s); len(wrong) == 0 {
			return
		}
	}
	t.Errorf("round %d: %s", round, strings.Join(wrong, "\n"))
}

func disagreements(t *testing.T, s *Server) (wrong []string) {
	t.Helper()
	list, err := s.control.Sandboxes(t.Context(), root, control.Filter{State: "any", Page: control.Page{Limit: api.MaxPage}})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, b := range list.Sandboxes {
		if b.State != api.StateEnded && b.State != api.StateFailed {
			known[b.ID] = true
		}
	}
	there, err := node.Local(s.node, "look", "").Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, x := range there {
		has[x.ID] = true
		if !known[x.ID] {
			wrong = append(wrong, "the node has "+x.ID+", which nobody knows")
		}
	}
	for id := range known {
		if !has[id] {
			wrong = append(wrong, "the node doesn't have "+id)
		}
	}
	err = s.store.List(t.Context(), func(i *bucket.Info) error {
		if owner := i.Attributes[volume.Attribute]; len(owner) >= 36 && !has[owner[:36]] {
			wrong = append(wrong, "the bucket "+i.Name+" is "+owner+"'s, who isn't there")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return wrong
}
