package proc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// node is a Cloner: a part of a pipeline, or what starts one. What it does next is in its state alone.
type node struct {
	St nodeState
}

type nodeState struct {
	Kind           string // "source", "filter", "sink", "boss", "sleeper"
	Seed           uint64
	Left           int    // bytes that a source still makes
	Out            []byte // bytes that wait to be written
	Count          int64
	Sum            uint64
	EOF            bool
	Kids, Statuses []int
	Until          time.Time
}

// results collects what sinks found, by pid: a sandbox's services.
type results struct {
	mu  sync.Mutex
	got map[int]string
}

func (r *results) put(pid int, s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.got == nil {
		r.got = make(map[int]string)
	}
	r.got[pid] += s
}

func (n *node) Capture() (proc.State, error) {
	data, err := json.Marshal(n.St)
	return nodeSaved(data), err
}

type nodeSaved []byte

func (s nodeSaved) Resume(*proc.Process) (proc.Program, error) {
	n := &node{}
	return n, json.Unmarshal(s, &n.St)
}
func (s nodeSaved) Close() error                  { return nil }
func (s nodeSaved) Save() (string, []byte, error) { return "node", s, nil }

func restoreNode(kind string, data []byte) (proc.State, error) {
	if kind != "node" || !json.Valid(data) {
		return nil, errs.Msg(errs.Invalid, "restore", kind, "not a node")
	}
	return nodeSaved(data), nil
}

func (n *node) Run(p *proc.Process) int {
	switch n.St.Kind {
	case "source":
		return n.source(p)
	case "filter", "sink":
		return n.filter(p)
	case "boss":
		return n.boss(p)
	}
	return status(p.Rest(func() error { return p.SleepUntil(n.St.Until) }))
}

func (n *node) source(p *proc.Process) int {
	for {
		if err := p.WriteAll(p.Stdout(), &n.St.Out); err != nil {
			return 1
		}
		if n.St.Left == 0 {
			return 0
		}
		r := rand.New(rand.NewPCG(n.St.Seed, uint64(n.St.Left)))
		n.St.Out = make([]byte, min(n.St.Left, 1+r.IntN(20000)))
		for i := range n.St.Out {
			n.St.Out[i] = byte(r.Uint32())
		}
		n.St.Left -= len(n.St.Out)
	}
}

func (n *node) filter(p *proc.Process) int {
	buf := make([]byte, 8192)
	for {
		if n.St.Kind == "filter" {
			if err := p.WriteAll(p.Stdout(), &n.St.Out); err != nil {
				return 1
			}
		}
		if n.St.EOF {
			break
		}
		err := p.Rest(func() error {
			k, err := p.Stdin().Read(buf)
			n.take(buf[:k])
			n.St.EOF = err == io.EOF
			return err
		})
		if err != nil && err != io.EOF {
			return 1
		}
	}
	if r, ok := p.Sandbox().Services().(*results); ok && n.St.Kind == "sink" {
		r.put(p.Pid(), fmt.Sprintf("%d:%x;", n.St.Count, n.St.Sum))
	}
	return 0
}

func (n *node) take(b []byte) {
	n.St.Count += int64(len(b))
	for _, c := range b {
		n.St.Sum = n.St.Sum*1099511628211 + uint64(c) + 1
	}
	if n.St.Kind == "filter" {
		for _, c := range b {
			n.St.Out = append(n.St.Out, c^0x55)
		}
	}
}

// boss waits for its children, whose statuses it writes to the results in the end.
func (n *node) boss(p *proc.Process) int {
	for len(n.St.Kids) > 0 {
		err := p.Rest(func() error {
			kid := p.Child(n.St.Kids[0])
			if kid == nil {
				return syscall.ECHILD
			}
			st, err := p.Wait(kid)
			if err == nil {
				n.St.Kids, n.St.Statuses = n.St.Kids[1:], append(n.St.Statuses, st)
			}
			return err
		})
		if err != nil {
			return 1
		}
	}
	if r, ok := p.Sandbox().Services().(*results); ok {
		r.put(p.Pid(), fmt.Sprint(n.St.Statuses))
	}
	return 0
}

// expect returns what a sink finds that gets the bytes of a source through some filters.
func expect(seed uint64, bytes, filters int) string {
	src, sink := &node{nodeState{Kind: "source", Seed: seed, Left: bytes}}, &node{nodeState{Kind: "sink"}}
	for src.St.Left > 0 {
		r := rand.New(rand.NewPCG(seed, uint64(src.St.Left)))
		b := make([]byte, min(src.St.Left, 1+r.IntN(20000)))
		for i := range b {
			b[i] = byte(r.Uint32())
			if filters%2 == 1 {
				b[i] ^= 0x55
			}
		}
		sink.take(b)
		src.St.Left -= len(b)
	}
	return fmt.Sprintf("%d:%x;", sink.St.Count, sink.St.Sum)
}

// pipeline starts a boss with a source, filters and a sink as its children, and returns the pids of boss and sink.
func pipeline(t testing.TB, s *proc.Sandbox, seed uint64, bytes, filters int) (boss *proc.Process, sink int) {
	t.Helper()
	boss, err := s.NewProcess(proc.Root{Args: []string{"boss"}, Env: []string{"PATH=/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	b := &node{nodeState{Kind: "boss"}}
	var in vfs.File
	for i := range filters + 2 {
		st := nodeState{Kind: "filter"}
		if i == 0 {
			st = nodeState{Kind: "source", Seed: seed, Left: bytes}
		} else if i == filters+1 {
			st.Kind = "sink"
		}
		c, err := boss.Fork()
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range c.Fds() {
			c.CloseFd(fd)
		}
		if in != nil {
			c.Install(0, in)
		}
		if i <= filters {
			r, w := s.RawPipe()
			c.Install(1, w)
			in = r
		}
		c.SetArgs([]string{st.Kind})
		b.St.Kids, sink = append(b.St.Kids, c.Pid()), c.Pid()
		defer c.Start(&node{st})
	}
	boss.Start(b)
	return boss, sink
}

// clone returns a copy of a namespace that shares its filesystems.
func clone(t testing.TB, s *proc.Sandbox) *vfs.Namespace {
	t.Helper()
	ns, err := s.Namespace().Clone(func(m vfs.Mount) (vfs.Mount, error) { return m, nil })
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// freeze makes an image at this moment.
func freeze(t testing.TB, s *proc.Sandbox) *proc.Image {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	f, err := s.Freeze(ctx, proc.FreezeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Thaw()
	im, err := f.Capture()
	if err != nil {
		t.Fatal(err)
	}
	return im
}

func start(t testing.TB, im *proc.Image, ns *vfs.Namespace, services any) *proc.Sandbox {
	t.Helper()
	s, err := im.Start(proc.StartOptions{Namespace: ns, Commands: programs(), Services: services})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeSandbox(t, s) })
	return s
}

func closeSandbox(t testing.TB, s *proc.Sandbox) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

func ended(t testing.TB, s *proc.Sandbox, pid int) {
	t.Helper()
	p := s.Lookup(pid)
	if p == nil {
		return
	}
	select {
	case <-p.Done():
	case <-time.After(30 * time.Second):
		t.Fatalf("%d (%v) hangs", pid, p.Args())
	}
}

// No byte is lost or doubled, whenever pipelines are frozen: every copy, and every copy of a copy, ends as the original.
func TestConservation(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SEED"); s != "" {
		fmt.Sscan(s, &seed)
	}
	t.Logf("SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	for range rounds {
		res := &results{}
		s := sandboxWith(t, proc.Options{Services: res})
		want := make(map[int]string)
		var bosses []int
		for range 1 + rnd.IntN(3) {
			bytes, filters, src := rnd.IntN(1<<20), rnd.IntN(4), rnd.Uint64()
			boss, sink := pipeline(t, s, src, bytes, filters)
			want[sink] = expect(src, bytes, filters)
			want[boss.Pid()] = fmt.Sprint(make([]int, filters+2))
			bosses = append(bosses, boss.Pid())
		}
		type world struct {
			s    *proc.Sandbox
			res  *results
			pids []int // that were there at its beginning
		}
		all := slices.Collect(maps.Keys(want))
		worlds := []world{{s, res, all}}
		for range 3 {
			time.Sleep(time.Duration(rnd.IntN(4000)) * time.Microsecond)
			from := worlds[rnd.IntN(len(worlds))]
			im := freeze(t, from.s)
			var wg sync.WaitGroup
			made := make([]world, 3)
			for i := range made {
				wg.Add(1)
				ns := clone(t, from.s)
				go func() {
					defer wg.Done()
					made[i].res, made[i].pids = &results{}, im.Pids()
					made[i].s = start(t, im, ns, made[i].res)
				}()
			}
			wg.Wait()
			im.Close()
			worlds = append(worlds, made...)
			if t.Failed() {
				return
			}
		}
		for i, w := range worlds {
			for _, pid := range bosses {
				ended(t, w.s, pid)
			}
			w.res.mu.Lock()
			for _, pid := range w.pids {
				if w.res.got[pid] != want[pid] {
					t.Errorf("world %d, process %d: %q, want %q", i, pid, w.res.got[pid], want[pid])
				}
			}
			w.res.mu.Unlock()
			if n := len(w.s.Processes()); n != 0 {
				t.Errorf("world %d: %d processes are left", i, n)
			}
		}
	}
}

// What can't rest is named, and nothing changes by asking; or it is left out, if so wanted.
func TestBusy(t *testing.T) {
	s := sandboxWith(t, proc.Options{})
	boss, _ := s.NewProcess(proc.Root{Args: []string{"boss"}})
	hog, _ := boss.Fork()
	hog.SetArgs([]string{"/bin/hog"})
	hog.Start(proc.Func(func(p *proc.Process) int { return status(p.Sleep(time.Hour)) }))
	b := &node{nodeState{Kind: "boss", Kids: []int{hog.Pid()}}}
	boss.Start(b)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Freeze(ctx, proc.FreezeOptions{})
	var busy *proc.BusyError
	if !errors.As(err, &busy) || len(busy.Pids) != 1 || busy.Pids[0] != hog.Pid() || busy.Names[0] != "hog" || errs.KindOf(err) != errs.Unavailable {
		t.Fatalf("a sleeper without a state: %v", err)
	}
	ctx2, cancel2 := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel2()
	f, err := s.Freeze(ctx2, proc.FreezeOptions{Kill: true})
	if err != nil {
		t.Fatal(err)
	}
	im, err := f.Capture()
	if err != nil {
		t.Fatal(err)
	}
	f.Thaw()
	f.Thaw()
	if _, err := f.Capture(); errs.KindOf(err) != errs.Conflict {
		t.Errorf("a capture after the thaw: %v", err)
	}
	res := &results{}
	c := start(t, im, clone(t, s), res)
	ended(t, c, boss.Pid())
	if res.got[boss.Pid()] != "[137]" {
		t.Errorf("the parent of what was left out saw %q", res.got[boss.Pid()])
	}
	if hog.Status() != 0 || len(s.Processes()) != 2 {
		t.Error("the original has changed")
	}
	im.Close()
	if _, err := im.Start(proc.StartOptions{Namespace: clone(t, s), Commands: programs()}); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("a closed image: %v", err)
	}
}

// A program that can't be captured but ends once those at rest let it is waited for.
func TestDrain(t *testing.T) {
	res := &results{}
	s := sandboxWith(t, proc.Options{Services: res})
	boss, _ := s.NewProcess(proc.Root{Args: []string{"boss"}})
	r, w := s.RawPipe()
	src, _ := boss.Fork()
	src.Install(1, w)
	cp, _ := boss.Fork()
	cp.Install(0, r)
	cp.SetArgs([]string{"copier"})
	src.Start(&node{nodeState{Kind: "source", Seed: 1, Left: 3 << 20}})
	cp.Start(proc.Func(func(p *proc.Process) int { _, err := io.Copy(io.Discard, p.Stdin()); return status(err) }))
	boss.Start(&node{nodeState{Kind: "boss", Kids: []int{src.Pid(), cp.Pid()}}})
	im := freeze(t, s)
	defer im.Close()
	<-cp.Done() // or it would have been busy
	c := start(t, im, clone(t, s), &results{})
	ended(t, c, boss.Pid())
}

// Descriptors are shared in a copy as they were, with their offsets; files of the copy are its own.
func TestCopiedDescriptors(t *testing.T) {
	s := sandboxWith(t, proc.Options{})
	p, _ := s.NewProcess(proc.Root{Args: []string{"p"}, Env: []string{"A=1"}, Dir: "/"})
	f, err := p.Open("/f", syscall.O_RDWR|syscall.O_CREAT, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	f.Write([]byte("0123456789"))
	f.Seek(4, io.SeekStart)
	fd := p.Fd(f)
	p.Dup(fd, 20, false)
	p.Mknod("/fifo", vfs.ModeFIFO|0o600, 0)
	p.OpenAt(30, "/fifo", syscall.O_RDWR, 0)
	ff, _ := p.File(30)
	ff.Write([]byte("in the fifo"))
	m, _ := p.MemFile([]byte("here-document"))
	m.Read(make([]byte, 5))
	p.OpenAt(40, "/dev/zero", syscall.O_RDONLY, 0)
	r, w, _ := p.Pipe()
	w.Write([]byte("in the pipe"))
	w.Close()
	p.Umask(0o27)
	p.SetSignal(proc.SIGUSR1, proc.Handle)
	p.SetSignal(proc.SIGHUP, proc.Ignore)
	c, _ := p.Fork()
	c.Start(&node{nodeState{Kind: "sleeper", Until: time.Now().Add(time.Hour)}})
	c.SetPgid(0)
	p.Start(&node{nodeState{Kind: "sleeper", Until: time.Now().Add(time.Hour)}})
	fds := fmt.Sprint(p.Fds(), c.Fds())
	im := freeze(t, s)
	defer im.Close()
	for range 2 {
		s2 := start(t, im, clone(t, s), nil)
		p2, c2 := s2.Lookup(p.Pid()), s2.Lookup(c.Pid())
		if p2 == nil || c2 == nil || c2.Ppid() != p2.Pid() || p2.Child(c.Pid()) != c2 || c2.Pgid() != c2.Pid() || c2.Sid() != p2.Sid() || fmt.Sprint(p2.Fds(), c2.Fds()) != fds {
			t.Fatal("the tables differ")
		}
		read := func(p *proc.Process, fd int) string {
			f, err := p.File(fd)
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 100)
			n, err := f.Read(b)
			return fmt.Sprint(string(b[:n]), err)
		}
		g, _ := p2.File(20)
		b := make([]byte, 3)
		if io.ReadFull(g, b); string(b) != "456" {
			t.Errorf("the offset: %q", b)
		}
		if got := read(c2, fd); got != "789<nil>" {
			t.Errorf("not shared with the child: %q", got)
		}
		if at, _ := f.Seek(0, io.SeekCurrent); at != 4 {
			t.Errorf("the original's offset is %d", at)
		}
		if got := read(p2, p.Fd(m)); got != "document<nil>" {
			t.Errorf("here-document: %q", got)
		}
		if got := read(c2, p.Fd(r)); got != "in the pipe<nil>" {
			t.Errorf("pipe: %q", got)
		}
		if got := read(p2, p.Fd(r)); got != "EOF" {
			t.Errorf("pipe without writers: %q", got)
		}
		if got := read(p2, 40)[:4]; got != "\x00\x00\x00\x00" {
			t.Errorf("device: %q", got)
		}
		// A FIFO opened anew is the one that is open.
		other, _ := s2.NewProcess(proc.Root{Args: []string{"other"}})
		o, err := other.Open("/fifo", syscall.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(other, other.Fd(o)); got != "in the fifo<nil>" {
			t.Errorf("fifo: %q", got)
		}
		if p2.Getenv("A") != "1" || p2.Umask(0) != 0o27 || p2.Disposition(proc.SIGUSR1) != proc.Handle || c2.Disposition(proc.SIGHUP) != proc.Ignore {
			t.Error("attributes differ")
		}
		if other.Pid() <= c.Pid() {
			t.Errorf("a pid is used again: %d", other.Pid())
		}
		other.Abandon(0)
	}
}

// A client's streams become logs that another client attaches to.
func TestAttach(t *testing.T) {
	s := sandboxWith(t, proc.Options{})
	pr, pw := io.Pipe()
	defer pw.Close()
	var out strings.Builder
	p, _ := s.NewProcess(proc.Root{Args: []string{"filter"}, Files: map[int]vfs.File{0: proc.NewInput(pr, false), 1: s.NewOutput(&out, false)}})
	p.Start(&node{nodeState{Kind: "filter", Out: []byte("begin:")}})
	pw.Write([]byte{'a' ^ 0x55})
	im := freeze(t, s)
	defer im.Close()
	s2 := start(t, im, clone(t, s), nil)
	if _, err := s.Attach(p.Pid(), proc.Streams{Stdout: io.Discard}); err != syscall.ENOTTY {
		t.Errorf("the original: %v", err)
	}
	if _, err := s2.Attach(99, proc.Streams{}); err != syscall.ESRCH {
		t.Errorf("nobody: %v", err)
	}
	in1, w1 := io.Pipe()
	out1 := make(writes, 100)
	a, err := s2.Attach(p.Pid(), proc.Streams{Stdin: in1, Stdout: out1})
	if err != nil || a.Lost != 0 {
		t.Fatal(err, a)
	}
	w1.Write([]byte{'b' ^ 0x55})
	first := out1.until(t, "b")
	if !strings.HasSuffix("begin:ab", first) || first == "" {
		t.Errorf("the first client got %q", first)
	}
	a.Detach()
	in2, w2 := io.Pipe()
	b2, err := s2.Attach(p.Pid(), proc.Streams{Stdin: in2})
	if err != nil {
		t.Fatal(err)
	}
	w2.Write(append([]byte{'c' ^ 0x55}, make([]byte, 100)...))
	w1.Close() // the first client's end is no end any more
	for range 60 {
		w2.Write(make([]byte, 32<<10))
	}
	w2.Close()
	ended(t, s2, p.Pid())
	_ = b2
	got := make(writes, 1000)
	if _, err := s2.Attach(p.Pid(), proc.Streams{Stdout: got}); err != syscall.ESRCH {
		t.Errorf("after the end: %v", err)
	}
}

// writes is a writer that hands on what is written.
type writes chan string

func (w writes) Write(b []byte) (int, error) { w <- string(b); return len(b), nil }

func (w writes) until(t testing.TB, end string) string {
	t.Helper()
	got := ""
	for !strings.HasSuffix(got, end) {
		select {
		case s := <-w:
			got += s
		case <-time.After(20 * time.Second):
			t.Fatalf("got %q, waiting for %q", got, end)
		}
	}
	return got
}
