// Command agentrun is AgentRun in one binary: the server, and every command that speaks with it.
//
// Installed under the name tigris, it takes the storage commands as Tigris prints them.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"agentrun.dev/cmd/agentrun/internal/cli"
)

func main() {
	os.Exit(run())
}

// run is main for the tests, too: it returns the exit status.
func run() int {
	// Nothing of ours uses this logger. What a library says in it is what strangers made it say: a server in a sandbox can make
	// net/http's client write a line for each request.
	log.SetOutput(io.Discard)
	app := cli.App{
		Name:      strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"),
		Stdin:     os.Stdin,
		Stdout:    os.Stdout,
		Stderr:    os.Stderr,
		Getenv:    os.Getenv,
		ConfigDir: os.UserConfigDir,
		HomeDir:   os.UserHomeDir,
		CacheDir:  os.UserCacheDir,
	}
	return app.Run(context.Background(), os.Args[1:])
}
