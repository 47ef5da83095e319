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
	"runtime"
	"runtime/debug"
	"runtime/metrics"
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
	collectSeldom()
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

// leastHeap is how much the agent allocates at least until it looks for what it doesn't need any more.
const leastHeap = 4 << 20

// collectSeldom has garbage collected only when the heap has grown to twice what was in use, as by default, but never because of the time:
// a collection writes to most of the heap's pages, which every fork would have for itself after two minutes, however idle it is.
func collectSeldom() {
	debug.SetGCPercent(-1)
	limit := func() {
		s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
			{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
		metrics.Read(s)
		n := func(i int) int64 { return int64(s[i].Value.Uint64()) }
		debug.SetMemoryLimit(n(0) - n(1) - n(2) - n(3) + max(leastHeap, 2*n(4))) // all but the heap, and the heap
	}
	limit()
	afterCollection(limit)
}

// afterCollection calls f after every collection of garbage.
func afterCollection(f func()) {
	type sign struct{ _ *byte }
	runtime.AddCleanup(&sign{}, func(f func()) {
		f()
		afterCollection(f)
	}, f)
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
