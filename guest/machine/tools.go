package machine

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
)

// What the workload finds of the agent, in memory.
const (
	own     = "/run/agentrun"
	agent   = own + "/agent" // its program, which is also a client of Asks
	Asks    = own + "/ask"   // where programs ask the host for commands
	toolDir = "/usr/local/bin"
)

// Tools are the commands that the host runs for programs of the workload.
var Tools = [...]string{"fork", "merge", "snapshot"}

// program shows the agent's own, which lies in the archive, below a root that is about to be.
func program(root string) error {
	path := filepath.Join(root, agent)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, nil, 0o555)
	}
	if err == nil {
		err = unix.Mount("/init", path, "", unix.MS_BIND, "")
	}
	if err != nil {
		return errs.New(errs.Other, "boot", path, err)
	}
	return nil
}

// tools makes the commands, as other names of the agent's program. What the image has of such a name it keeps.
func tools() error {
	if err := os.MkdirAll(toolDir, 0o755); err != nil {
		return errs.New(errs.Other, "boot", toolDir, err)
	}
	for _, name := range Tools {
		if err := os.Symlink(agent, filepath.Join(toolDir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return errs.New(errs.Other, "boot", name, err)
		}
	}
	return nil
}

// ListenAsks listens for what programs of the workload ask for, whoever they are.
func ListenAsks() (net.Listener, error) {
	l, err := net.Listen("unix", Asks)
	if err == nil {
		err = os.Chmod(Asks, 0o666)
	}
	if err != nil {
		return nil, errs.New(errs.Other, "listen", Asks, err)
	}
	return l, nil
}
