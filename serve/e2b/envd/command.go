package envd

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	processpb "agentrun.dev/api/gen/e2b/process"
	"agentrun.dev/control"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
)

// Limits of commands.
const (
	maxFollowers = 64       // of a command
	maxFollowing = 512      // streams of a sandbox's commands
	maxEnded     = 4096     // commands that ended and are remembered
	maxChunk     = 32 << 10 // bytes of output in one event
	maxQueue     = 32       // events that a follower is behind, at most
	checkTime    = 5 * time.Second
)

// commands are those of all sandboxes that were begun or taken up here.
type commands struct {
	kept  time.Duration
	mu    sync.Mutex
	boxes map[string]map[int]*command // by sandbox and number
	open  map[string]int              // streams, by sandbox
	ended []*command                  // oldest first; those that were replaced or forgotten too
}

// command is one of them.
type command struct {
	sandbox string
	pid     int
	tag     *string
	config  *processpb.ProcessConfig
	tty     bool
	in      *input // nil: it has none
	p       engine.Process
	out     followers
	sent    atomic.Int32  // the signal that was sent last
	done    chan struct{} // closed when the ones below are set
	end     *processpb.ProcessEvent_EndEvent
	late    bool // its time was over
	at      time.Time
}

// followers are the streams that are told of a command.
type followers struct {
	mu       sync.Mutex
	set      map[*follower]bool
	patience time.Duration
}

// follower is one of them.
type follower struct {
	events chan *processpb.ProcessEvent_DataEvent
	cut    chan struct{} // closed when it was given up: it doesn't take what it is told
	once   sync.Once
}

func (f *followers) add() (*follower, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.set) >= maxFollowers {
		return nil, errs.Msg(errs.Limit, "follow command", "", fmt.Sprintf("it has %d followers already", maxFollowers))
	}
	if f.set == nil {
		f.set = map[*follower]bool{}
	}
	n := &follower{events: make(chan *processpb.ProcessEvent_DataEvent, maxQueue), cut: make(chan struct{})}
	f.set[n] = true
	return n, nil
}

func (f *followers) remove(n *follower) {
	f.mu.Lock()
	delete(f.set, n)
	f.mu.Unlock()
	n.once.Do(func() { close(n.cut) }) // whoever waits for it
}

// tell hands an event to all. One that doesn't take it holds up the command for a while, and is given up then.
func (f *followers) tell(e *processpb.ProcessEvent_DataEvent) {
	f.mu.Lock()
	all := make([]*follower, 0, len(f.set))
	for n := range f.set {
		all = append(all, n)
	}
	f.mu.Unlock()
	for _, n := range all {
		select {
		case n.events <- e:
			continue
		default:
		}
		timer := time.NewTimer(f.patience)
		select {
		case n.events <- e:
		case <-n.cut:
		case <-timer.C:
			f.remove(n)
		}
		timer.Stop()
	}
}

// output takes one of a command's streams.
type output struct {
	to   *followers
	wrap func(b []byte) *processpb.ProcessEvent_DataEvent
}

func (o output) Write(b []byte) (int, error) {
	for at := 0; at < len(b); at += maxChunk {
		o.to.tell(o.wrap(append([]byte(nil), b[at:min(len(b), at+maxChunk)]...)))
	}
	return len(b), nil
}

func stdoutOf(b []byte) *processpb.ProcessEvent_DataEvent {
	return &processpb.ProcessEvent_DataEvent{Output: &processpb.ProcessEvent_DataEvent_Stdout{Stdout: b}}
}

func stderrOf(b []byte) *processpb.ProcessEvent_DataEvent {
	return &processpb.ProcessEvent_DataEvent{Output: &processpb.ProcessEvent_DataEvent_Stderr{Stderr: b}}
}

func ptyOf(b []byte) *processpb.ProcessEvent_DataEvent {
	return &processpb.ProcessEvent_DataEvent{Output: &processpb.ProcessEvent_DataEvent_Pty{Pty: b}}
}

// streams connects what runs with the command.
func (c *command) streams(cmd *engine.Cmd) {
	if c.in != nil {
		cmd.Stdin = c.in
	}
	if c.tty {
		cmd.Stdout = output{&c.out, ptyOf}
		return
	}
	cmd.Stdout, cmd.Stderr = output{&c.out, stdoutOf}, output{&c.out, stderrOf}
}

// run starts a command by a function and keeps it until it has ended, at the latest when a time is over; 0 is never. first is its first
// follower.
func (k *commands) run(ctx context.Context, s *control.Session, c *command, limit time.Duration, start func() (engine.Process, error)) (first *follower, err error) {
	c.sandbox, c.done = s.Sandbox.ID, make(chan struct{})
	if first, err = c.out.add(); err != nil {
		return nil, err
	}
	if c.p, err = start(); err != nil {
		if c.in != nil {
			_ = c.in.Close()
		}
		return nil, err
	}
	c.pid = c.p.Pid()
	k.put(c)
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if limit > 0 {
		life, cancel = context.WithTimeout(context.WithoutCancel(ctx), limit)
	}
	go func() { // it ends with the command, which ends by itself, when its time is over, or with its sandbox
		defer cancel()
		status, err := c.p.Wait(life)
		c.ended(life, s, status, err)
		if c.in != nil {
			_ = c.in.Close()
		}
		c.at = time.Now()
		k.over(c)
		close(c.done)
	}()
	return first, nil
}

// ended notes how the command ended: not at all, if its sandbox is gone.
func (c *command) ended(life context.Context, s *control.Session, status int, err error) {
	sig := 0
	if p, ok := c.p.(engine.Signaler); ok {
		sig = p.Signaled()
	}
	switch {
	case life.Err() != nil && err != nil:
		c.late, sig = true, 9
	case err != nil && !errs.Is(err, errs.Limit):
		return
	case sig == 9 && c.sent.Load() != 9:
		// Somebody inside did it, or the sandbox ended.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(life), checkTime)
		defer cancel()
		if _, err := s.Processes(ctx); err != nil {
			return
		}
	}
	c.end = endOf(status, sig)
	if err != nil && !c.late {
		text := err.Error()
		c.end.Error = &text
	}
}

// endOf describes an end as Go's os.ProcessState does, which E2B's clients know.
func endOf(status, sig int) *processpb.ProcessEvent_EndEvent {
	e := &processpb.ProcessEvent_EndEvent{ExitCode: int32(status), Exited: true, Status: fmt.Sprintf("exit status %d", status)}
	if sig != 0 {
		e.ExitCode, e.Exited, e.Status = -1, false, "signal: "+signalName(sig)
	}
	if sig != 0 || status != 0 {
		text := e.Status
		e.Error = &text
	}
	return e
}

// signalNames are Linux's words for signals.
var signalNames = map[int]string{1: "hangup", 2: "interrupt", 3: "quit", 4: "illegal instruction", 5: "trace/breakpoint trap", 6: "aborted", 7: "bus error",
	8: "floating point exception", 9: "killed", 10: "user defined signal 1", 11: "segmentation fault", 12: "user defined signal 2", 13: "broken pipe",
	14: "alarm clock", 15: "terminated"}

func signalName(sig int) string {
	if n := signalNames[sig]; n != "" {
		return n
	}
	return fmt.Sprintf("signal %d", sig)
}

// signal sends a signal.
func (c *command) signal(sig int) error {
	c.sent.Store(int32(sig))
	return c.p.Signal(sig)
}

// running tells whether the command hasn't ended.
func (c *command) running() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// enter takes a place among the streams of a sandbox, so that none takes all; leave gives it back.
func (k *commands) enter(sandbox string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open[sandbox] >= maxFollowing {
		return errs.Msg(errs.Limit, "follow command", sandbox, fmt.Sprintf("a sandbox has %d streams of commands at most", maxFollowing))
	}
	if k.open == nil {
		k.open = map[string]int{}
	}
	k.open[sandbox]++
	return nil
}

func (k *commands) leave(sandbox string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open[sandbox]--; k.open[sandbox] == 0 {
		delete(k.open, sandbox)
	}
}

func (k *commands) put(c *command) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.boxes == nil {
		k.boxes = map[string]map[int]*command{}
	}
	if k.boxes[c.sandbox] == nil {
		k.boxes[c.sandbox] = map[int]*command{}
	}
	k.boxes[c.sandbox][c.pid] = c
	if c.tag != nil { // it has the tag now
		for pid, other := range k.boxes[c.sandbox] {
			if other != c && other.tag != nil && *other.tag == *c.tag && !other.running() {
				delete(k.boxes[c.sandbox], pid)
			}
		}
	}
}

// over remembers a command that ended, or forgets it where its sandbox has gone. Others were remembered for long enough.
func (k *commands) over(c *command) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.end == nil {
		k.drop(c)
	} else {
		k.ended = append(k.ended, c)
	}
	k.prune()
}

// prune forgets what ended too long ago. k.mu is held.
func (k *commands) prune() {
	for len(k.ended) > 0 && (len(k.ended) > maxEnded || time.Since(k.ended[0].at) > k.kept) {
		k.drop(k.ended[0])
		k.ended[0] = nil
		k.ended = k.ended[1:]
	}
}

// drop forgets a command. k.mu is held.
func (k *commands) drop(c *command) {
	box := k.boxes[c.sandbox]
	if box[c.pid] == c {
		delete(box, c.pid)
	}
	if len(box) == 0 {
		delete(k.boxes, c.sandbox)
	}
}

// find returns a command by its number, or by its tag; nil: there is none that is known here. Of those with the tag, one that runs goes
// before those that ended.
func (k *commands) find(sandbox string, of *processpb.ProcessSelector) *command {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.prune()
	box := k.boxes[sandbox]
	if by, ok := of.GetSelector().(*processpb.ProcessSelector_Tag); ok {
		var found *command
		for _, c := range box {
			if c.tag != nil && *c.tag == by.Tag && (found == nil || c.running()) {
				found = c
			}
		}
		return found
	}
	return box[int(of.GetPid())]
}

// list returns those of a sandbox that run.
func (k *commands) list(sandbox string) map[int]*command {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := map[int]*command{}
	for pid, c := range k.boxes[sandbox] {
		if c.running() {
			out[pid] = c
		}
	}
	return out
}
