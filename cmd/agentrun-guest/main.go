// Command agentrun-guest is the first process of a VM: it makes a machine of what the kernel has started, and then serves the host. Called by
// the name of one of machine.Tools it is a command that has the host do what it is told to, as fork does.
//
// Its standard streams are the console. Whatever goes wrong before it serves is a line there, and the machine goes off; should it die
// itself, the kernel panics, which the command line panic=-1 makes a reset.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/guest/agent"
	"agentrun.dev/guest/machine"
)

func main() {
	if name := filepath.Base(os.Args[0]); slices.Contains(machine.Tools[:], name) {
		dir, _ := os.Getwd() // of paths that are relative; without it there are none
		os.Exit(agent.Ask(machine.Asks, append([]string{name}, os.Args[1:]...), dir, os.Stdout, os.Stderr))
	}
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "agentrun-guest: it is the first process of a VM, and does nothing elsewhere")
		os.Exit(2)
	}
	defer func() {
		if v := recover(); v != nil {
			log("panic: %v\n%s", v, debug.Stack())
		}
		machine.PowerOff()
	}()
	if err := serve(); err != nil {
		log("%v", err)
	}
}

func log(format string, a ...any) {
	fmt.Fprintf(os.Stderr, "agentrun-guest: "+format+"\n", a...)
}

// serve doesn't return while the machine is of use.
func serve() error {
	unix.Umask(0o022)
	// Signals that would end it are taken and dropped. Ignored they would be so in all commands, too.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGPIPE)
	c, err := machine.Boot(log)
	if err != nil {
		return err
	}
	workload, err := agent.NewCgroup(machine.Workload)
	if err != nil {
		return err
	}
	a := agent.New(agent.Options{Machine: machine.Machine{}, Workload: workload, Init: true, User: c.User, Dir: c.Dir, Env: c.Env, Log: log})
	asks, err := machine.ListenAsks()
	if err != nil {
		return err
	}
	go func() { log("asks: %v", a.ServeAsks(asks)) }()
	if c.Device != "" {
		return device(a, c.Device)
	}
	port := c.Port
	if port == 0 {
		port = 1024
	}
	l, err := machine.Listen(port)
	if err != nil {
		return err
	}
	log("ready")
	return a.Serve(l)
}

// device serves one connection after another over a device.
func device(a *agent.Agent, path string) error {
	log("ready")
	for ; ; time.Sleep(50 * time.Millisecond) {
		nc, err := machine.OpenDevice(path)
		if err != nil {
			return err
		}
		_ = a.ServeConn(nc) // nobody is at the other end yet, or not any more
	}
}
