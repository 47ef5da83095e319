package node_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"strings"

	"agentrun.dev/blob/memory"
	"agentrun.dev/bucket"
	"agentrun.dev/engine"
	"agentrun.dev/engine/userspace"
	kvmemory "agentrun.dev/kv/memory"
	"agentrun.dev/node"
	"agentrun.dev/volume"
)

// open returns a node over a store in memory with the bucket "base". A store on a disk is made of kv/pebble and blob/dir.
func open(ctx context.Context) (n *node.Node, store *bucket.Store, end func()) {
	store, err := bucket.Open(ctx, bucket.Options{KV: kvmemory.New(), Blobs: memory.New(memory.Options{})})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := store.Create(ctx, "base", bucket.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
	n = node.New(node.Options{Engine: userspace.NewEngine(userspace.EngineOptions{}), Store: store, UID: userspace.UID, GID: userspace.GID})
	// What is written to a bucket itself, instead of to a fork, is there for all who fork it later.
	seed, err := n.Create(ctx, node.Spec{Volumes: []volume.Spec{{Name: "base", Path: userspace.Workspace, Bucket: "base"}}})
	if err != nil {
		log.Fatal(err)
	}
	shell(ctx, seed, "echo one > a.txt; echo two > b.txt")
	if err := seed.End(ctx); err != nil {
		log.Fatal(err)
	}
	return n, store, func() {
		n.Close(ctx)
		store.Close()
	}
}

// shell runs a script in a sandbox and returns what it prints.
func shell(ctx context.Context, s *node.Sandbox, script string) string {
	var out strings.Builder
	p, err := s.Exec(ctx, engine.Cmd{Args: []string{"bash", "-c", script}, Stdout: &out, Stderr: &out})
	if err == nil {
		_, err = p.Wait(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}
	return out.String()
}

// A sandbox on a fork of a bucket: whatever happens in it, the bucket stays as it is, and the fork goes with the sandbox.
func Example() {
	ctx := context.Background()
	n, store, end := open(ctx)
	defer end()

	sb, err := n.Create(ctx, node.Spec{Volumes: []volume.Spec{{Name: "work", Path: userspace.Workspace, Base: "base"}}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(shell(ctx, sb, "cat *.txt; rm *; echo new > c.txt; ls"))
	if err := sb.End(ctx); err != nil {
		log.Fatal(err)
	}
	err = store.List(ctx, func(i *bucket.Info) error {
		fmt.Println(i.Name, i.Objects, "objects")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// one
	// two
	// c.txt
	// base 2 objects
}

// A running sandbox is forked, its shell included; each fork goes its own way, and they are compared.
func Example_forkAndCompare() {
	ctx := context.Background()
	n, store, end := open(ctx)
	defer end()

	sb, err := n.Create(ctx, node.Spec{Volumes: []volume.Spec{{Name: "work", Path: userspace.Workspace, Base: "base"}}})
	if err != nil {
		log.Fatal(err)
	}
	// A script that waits in the middle, with a variable in memory.
	in, typed := io.Pipe()
	if _, err = sb.Exec(ctx, engine.Cmd{Args: []string{"bash", "-c", "x=$(cat a.txt); touch begun; read -r y; echo $x-$y > result.txt"}, Stdin: in}); err != nil {
		log.Fatal(err)
	}
	defer typed.Close()
	shell(ctx, sb, "until [ -e begun ]; do sleep 0.01; done")

	forks, err := sb.Fork(ctx, node.ForkOptions{Count: 2})
	if err != nil {
		log.Fatal(err)
	}
	for i, f := range forks {
		// The script waits in each fork, too: it is taken up where it was.
		at := f.Instance().(engine.Attacher)
		p, err := at.Attach(ctx, at.Running()[0].Pid, engine.Cmd{Stdin: strings.NewReader([]string{"left\n", "right\n"}[i])})
		if err == nil {
			_, err = p.Wait(ctx)
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(shell(ctx, f, "cat result.txt"))
	}
	shell(ctx, forks[1], "rm b.txt; sync")
	name := func(s *node.Sandbox) string { return s.Bucket(userspace.Workspace).Name() }
	err = store.Diff(ctx, name(forks[0]), name(forks[1]), "", func(c bucket.Change) error {
		fmt.Println(c.Kind, c.Key)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// one-left
	// one-right
	// deleted b.txt
	// modified result.txt
}
