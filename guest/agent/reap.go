package agent

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// reaper takes up children that have ended. The machine's first process gets all orphans as children: there, one loop takes up all that end
// and gives the statuses of commands to who waits for them. Elsewhere it takes up only those that it started.
type reaper struct {
	all bool
	// mu is held for reading from before a child is started until it is known, and for writing while children are taken up: a
	// child can't be taken up before it is known.
	mu      sync.RWMutex
	waiting sync.Map // pid → chan syscall.WaitStatus
	signals chan os.Signal
	done    sync.WaitGroup
}

func newReaper(all bool) *reaper {
	r := &reaper{all: all, signals: make(chan os.Signal, 1)}
	if all {
		signal.Notify(r.signals, syscall.SIGCHLD)
		r.done.Add(1)
		go func() {
			defer r.done.Done()
			for range r.signals {
				r.sweep()
			}
		}()
	}
	return r
}

func (r *reaper) close() {
	if r.all {
		signal.Stop(r.signals)
		close(r.signals)
	}
	r.done.Wait()
}

// start starts a child. Its status comes out of the channel.
func (r *reaper) start(path string, args []string, attr *syscall.ProcAttr) (int, <-chan syscall.WaitStatus, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	pid, err := syscall.ForkExec(path, args, attr)
	if err != nil {
		return 0, nil, err
	}
	ended := make(chan syscall.WaitStatus, 1)
	if r.all {
		r.waiting.Store(pid, ended)
		return pid, ended, nil
	}
	r.done.Add(1)
	go func() {
		defer r.done.Done()
		var ws syscall.WaitStatus
		for {
			if _, err := syscall.Wait4(pid, &ws, 0, nil); !errors.Is(err, unix.EINTR) {
				break
			}
		}
		ended <- ws
	}()
	return pid, ended, nil
}

// sweep takes up all children that have ended.
func (r *reaper) sweep() {
	for {
		r.mu.Lock()
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		r.mu.Unlock()
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if ended, ok := r.waiting.LoadAndDelete(pid); ok {
			ended.(chan syscall.WaitStatus) <- ws
		}
	}
}
