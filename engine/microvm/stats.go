package microvm

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/guest"
)

// usage is what the host sees of a machine: its process, what goes out of it and into volumes.
type usage struct {
	output, written atomic.Int64

	mu   sync.Mutex
	pid  int
	cpu  time.Duration // of the process before it had this guest
	last engine.Stats
}

// begin notes what a process had used as a shell.
func (u *usage) begin(pid int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pid = pid
	u.cpu, _ = cpuTime(pid)
}

// emit counts output; false: it is more than limit, unless that is zero.
func (u *usage) emit(n, limit int64) bool { return within(&u.output, n, limit) }

// write counts what is written to volumes.
func (u *usage) write(n, limit int64) bool { return within(&u.written, n, limit) }

func within(sum *atomic.Int64, n, limit int64) bool {
	return sum.Add(n) <= limit || limit <= 0
}

// stats reads what the process uses. Of one that has ended it is what was read last.
func (u *usage) stats() engine.Stats {
	u.mu.Lock()
	defer u.mu.Unlock()
	if cpu, ok := cpuTime(u.pid); ok {
		u.last.CPU = max(cpu-u.cpu, u.last.CPU)
	}
	if own, shared, ok := memoryOf(u.pid); ok {
		u.last.Memory, u.last.MemoryShared = own, shared
		u.last.MemoryPeak = max(u.last.MemoryPeak, own)
	}
	u.last.Output, u.last.Written = u.output.Load(), u.written.Load()
	return u.last
}

// userHZ is the unit of times in /proc.
const userHZ = 100

// cpuTime is what a process has used, its guest's included.
func cpuTime(pid int) (time.Duration, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 13 {
		return 0, false
	}
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * (time.Second / userHZ), true
}

// memoryOf reads what a process has for itself (the copies that it made of its image's pages, the VMM's own memory), and what it
// shares with the image.
func memoryOf(pid int) (own, shared int64, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, 0, false
	}
	for line := range strings.Lines(string(b)) {
		name, rest, _ := strings.Cut(line, ":")
		f := strings.Fields(rest)
		if len(f) != 2 {
			continue
		}
		n, _ := strconv.ParseInt(f[0], 10, 64)
		switch name {
		case "RssAnon":
			own = n << 10
		case "RssShmem":
			shared = n << 10
		}
	}
	return own, shared, true
}

// measure is what can be told without the guest.
func (in *Instance) measure() engine.Stats { return in.usage.stats() }

// statsTime is how long the guest may take to count its processes.
const statsTime = 2 * time.Second

// Stats implements engine.Meter. The guest is asked only for the number of its processes, and not when it is frozen; if it is silent, that
// is zero.
func (in *Instance) Stats(ctx context.Context) (engine.Stats, error) {
	if in.life.Err() != nil {
		return engine.Stats{}, in.why("stats")
	}
	st := in.measure()
	if in.isFrozen() {
		return st, nil
	}
	c, cancel := context.WithTimeout(ctx, statsTime)
	defer cancel()
	err := in.ask(c, "stats", func(ctx context.Context, a *guest.Client) error {
		s, err := a.Stats(ctx)
		st.Processes = max(s.Count, 0)
		return err
	})
	if err != nil && ctx.Err() != nil {
		return st, errs.New(errs.Canceled, "stats", in.id, ctx.Err())
	}
	return st, nil
}

// enforce ends the machine when it has used more of a processor than it may.
func (in *Instance) enforce() {
	limit := in.limits.CPU
	if limit <= 0 {
		return
	}
	go func() {
		for {
			left := limit - in.measure().CPU
			if left <= 0 {
				in.end(errs.Msg(errs.Limit, "microvm", in.id, "the sandbox has used more processor time than it may"))
				return
			}
			select {
			case <-in.life.Done():
				return
			case <-time.After(max(left/time.Duration(in.shells.kind.VCPUs), 10*time.Millisecond)):
			}
		}
	}()
}
