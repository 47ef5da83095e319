package userspace_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"agentrun.dev/command"
	"agentrun.dev/command/tool"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/proc"
	"agentrun.dev/shell"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/hostfs"
)

// A sandbox in memory: a shell and its tools, which see nothing of this machine.
func Example() {
	ctx := context.Background()
	sb, err := userspace.New(ctx, userspace.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer sb.Stop(ctx)

	var out strings.Builder
	status, err := sb.Run(ctx, userspace.Cmd{
		Args:   []string{"bash", "-c", `for n in 1 2 3; do echo $((n * n)); done | paste -sd+ | bc; exit 3`},
		Stdout: &out,
	})
	fmt.Print(out.String())
	fmt.Println("status", status, err)
	// Output:
	// 14
	// status 3 <nil>
}

// A sandbox on a folder of this machine, which is all that it can reach.
func Example_folder() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("a TODO\ndone\n"), 0o644); err != nil {
		log.Fatal(err)
	}

	folder, err := hostfs.New(dir, hostfs.Options{UID: userspace.UID, GID: userspace.GID})
	if err != nil {
		log.Fatal(err)
	}
	defer folder.Close()
	sb, err := userspace.New(ctx, userspace.Options{
		Volumes: []vfs.Mount{{Path: userspace.Workspace, FS: folder, Source: "host", Type: "hostfs"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sb.Stop(ctx)

	_, err = sb.Run(ctx, userspace.Cmd{
		Args:   []string{"sh", "-c", "grep -c TODO notes.txt | tee count.txt; ls ..; cat ../../../../etc/hostname"},
		Stdout: os.Stdout,
	})
	if err != nil {
		log.Fatal(err)
	}
	count, err := os.ReadFile(filepath.Join(dir, "count.txt"))
	fmt.Printf("on the host: %q %v\n", count, err)
	// Output:
	// 1
	// bin
	// dev
	// etc
	// home
	// proc
	// root
	// sbin
	// tmp
	// usr
	// var
	// workspace
	// sandbox
	// on the host: "1\n" <nil>
}

// Commands in Go beside the others. They are found by their names, in pipelines and scripts, and see only their process.
func Example_ownCommand() {
	ctx := context.Background()
	shout := tool.Func(func(t *tool.T) int {
		text, err := t.ReadFile("/dev/stdin", 1<<20)
		if err != nil {
			t.Fatal(1, "%v", err)
		}
		fmt.Fprint(t.Out, strings.ToUpper(string(text)))
		return len(t.Args()) - 1
	})
	sb, err := userspace.New(ctx, userspace.Options{
		Commands: command.NewSet(map[string]proc.Program{"bash": shell.New(false), "sh": shell.New(true), "shout": shout}),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sb.Stop(ctx)

	if _, err := sb.Run(ctx, userspace.Cmd{
		Args:   []string{"sh", "-c", "echo hello | shout | rev; echo | shout x y >&2; echo $?; command -v shout"},
		Stdout: os.Stdout,
	}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// OLLEH
	// 2
	// /usr/bin/shout
}

// Programs for WASI, from a folder of this machine: whatever lies in PATH and is a WebAssembly module runs. Guests run them,
// and python3 where it was built.
func Example_wasmTools() {
	ctx := context.Background()
	guests := userspace.NewGuests(userspace.GuestOptions{})
	defer guests.Close()
	tools, err := hostfs.New("testdata/tools", hostfs.Options{ReadOnly: true})
	if err != nil {
		log.Fatal(err)
	}
	defer tools.Close()
	sb, err := userspace.New(ctx, userspace.Options{
		Commands: guests,
		Volumes:  []vfs.Mount{{Path: "/usr/local/bin", FS: tools, Source: "host", Type: "hostfs", ReadOnly: true}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sb.Stop(ctx)

	if _, err := sb.Run(ctx, userspace.Cmd{Args: []string{"sh", "-c", "hello | tr a-z A-Z"}, Stdout: os.Stdout}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// HELLO FROM WEBASSEMBLY
}
