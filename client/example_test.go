package client_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"strings"

	"agentrun.dev/access"
	"agentrun.dev/api"
	blobs "agentrun.dev/blob/memory"
	"agentrun.dev/bucket"
	"agentrun.dev/client"
	"agentrun.dev/control"
	"agentrun.dev/engine/userspace"
	records "agentrun.dev/kv/memory"
	"agentrun.dev/node"
	"agentrun.dev/serve/rest"
)

// serve starts a whole server in this process, with a template "tools", in place of 'agentrun up'.
func serve() (endpoint, key string, stop func()) {
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	kv := records.New()
	store, err := bucket.Open(ctx, bucket.Options{KV: kv, Blobs: blobs.New(blobs.Options{})})
	check(err)
	keys, err := access.New(access.Options{KV: kv, MasterKey: make([]byte, 32), RootID: "root", RootSecret: "secret"})
	check(err)
	guard, err := access.NewGuard(ctx, keys, access.AuditOptions{})
	check(err)
	dir, err := os.MkdirTemp("", "example")
	check(err)
	n := node.New(node.Options{Engine: userspace.NewEngine(userspace.EngineOptions{}), Store: store, Dir: dir, UID: userspace.UID, GID: userspace.GID})
	c, err := control.Open(ctx, control.Options{KV: kv, Store: store, Keys: keys, Guard: guard})
	check(err)
	check(c.Join(ctx, "local", "", node.Local(n, "local", ""), true))
	check(c.Start(ctx))
	srv := httptest.NewServer(rest.New(store, keys, rest.Options{Control: c, Guard: guard}))
	cl, err := client.New(srv.URL, "root.secret", client.Options{})
	check(err)
	_, err = cl.PutTemplate(ctx, "tools", api.TemplateSpec{Init: []string{"echo one >notes"}})
	check(err)
	check(cl.BuildLog(ctx, "tools", 0, true, func(*api.BuildLine) error { return nil }))
	cl.Close()
	return srv.URL, "root.secret", func() {
		srv.CloseClientConnections()
		srv.Close()
		_ = c.Close(ctx)
		_ = n.Close(ctx)
		_ = guard.Close(ctx)
		_ = store.Close()
		_ = os.RemoveAll(dir)
	}
}

// A sandbox is made, used, forked, compared, merged and ended.
func Example() {
	endpoint, key, stop := serve()
	defer stop()
	ctx := context.Background()
	c, err := client.New(endpoint, key, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	sb, err := c.CreateSandbox(ctx, api.CreateSandbox{Template: "tools", Name: "work"})
	if err != nil {
		log.Fatal(err)
	}
	res, err := c.Run(ctx, sb.ID, api.Run{Code: "cat notes"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("exit %d: %s", res.ExitCode, res.Stdout)

	f, err := c.ForkSandbox(ctx, "work", api.ForkSandbox{Count: 2, Name: "try"})
	if err != nil {
		log.Fatal(err)
	}
	for i, child := range f.Sandboxes {
		if _, err := c.Run(ctx, child.ID, api.Run{Code: fmt.Sprintf("echo attempt %d >>notes", i+1)}); err != nil {
			log.Fatal(err)
		}
	}
	_, err = c.SandboxDiff(ctx, "work", "try-2", "", func(ch *api.FileChange) error {
		fmt.Println(ch.Kind, ch.Path)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := c.MergeSandbox(ctx, "try-2", api.MergeSandbox{}); err != nil {
		log.Fatal(err)
	}
	res, err = c.Run(ctx, "work", api.Run{Code: "cat notes"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(res.Stdout)
	if err := c.EndSandbox(ctx, "work"); err != nil {
		log.Fatal(err)
	}
	// Output:
	// exit 0: one
	// modified /workspace/notes
	// one
	// attempt 2
}

// Output comes as it is written.
func ExampleClient_RunStream() {
	endpoint, key, stop := serve()
	defer stop()
	ctx := context.Background()
	c, err := client.New(endpoint, key, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if _, err := c.CreateSandbox(ctx, api.CreateSandbox{Template: "tools", Name: "work"}); err != nil {
		log.Fatal(err)
	}
	res, err := c.RunStream(ctx, "work", api.Run{Code: "echo begun; sleep 0.01; echo done"}, func(e *api.RunEvent) error {
		_, err := os.Stdout.Write(e.Data)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("exit", res.ExitCode)
	// Output:
	// begun
	// done
	// exit 0
}

// A command with input as it runs.
func ExampleClient_ExecIn() {
	endpoint, key, stop := serve()
	defer stop()
	ctx := context.Background()
	c, err := client.New(endpoint, key, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if _, err := c.CreateSandbox(ctx, api.CreateSandbox{Template: "tools", Name: "work"}); err != nil {
		log.Fatal(err)
	}
	status, err := c.ExecIn(ctx, "work", api.Exec{Args: []string{"tr", "a-z", "A-Z"}}, client.Streams{Stdin: strings.NewReader("hello\n"), Stdout: os.Stdout})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("exit", status)
	// Output:
	// HELLO
	// exit 0
}

// What happened is read from the beginning, and would go on, over breaks of the connection too, until the context is done or the
// function has enough.
func ExampleClient_Follow() {
	endpoint, key, stop := serve()
	defer stop()
	ctx := context.Background()
	c, err := client.New(endpoint, key, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	sb, err := c.CreateSandbox(ctx, api.CreateSandbox{Template: "tools"})
	if err != nil {
		log.Fatal(err)
	}
	if err := c.EndSandbox(ctx, sb.ID); err != nil {
		log.Fatal(err)
	}
	err = c.Follow(ctx, 0, sb.ID, "", func(e *api.Event) error {
		if e.Kind == api.EventCreated || e.Kind == api.EventEnded {
			fmt.Println(e.Kind)
		}
		if e.Kind == api.EventEnded {
			return io.EOF // enough
		}
		return nil
	})
	if err != io.EOF {
		log.Fatal(err)
	}
	// Output:
	// created
	// ended
}
