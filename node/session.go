package node

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/volume"
)

// A session is an interpreter that runs in the sandbox as any command does, so that it is frozen, forked and saved with it. What
// drives it is a program that the interpreter is given first, over its standard input; requests follow there. The driver moves
// that input out of its program's sight. What the program and its children write to standard output and error is the calls'
// output; a call ends with a line on each of both that begins with a marker, which is random and new for each call.
//
// Sessions are found by their arguments: those that a fork has from its parent, or a sandbox that woke up, are in no table. They
// are attached to at their first call, which waits until the driver answers: a text that was running when the sandbox was copied
// runs to its end in the copy, too, and nobody is told.

// Bounds of sessions.
const (
	maxSessions    = 32 // of one sandbox
	maxSessionName = 64
	maxText        = 16 << 20 // bytes of a text, and of its standard input
	maxAnswer      = 16 << 20 // bytes of a driver's line
	interruptTime  = time.Second
	sendTime       = 10 * time.Second // that a driver takes to read a request, once it may
	beginTime      = time.Minute      // that an interpreter takes to begin, or what its engine takes to freeze if that is longer; so with sendTime
)

// The drivers.
var (
	//go:embed drivers/python.py
	pythonDriver string
	//go:embed drivers/rich.py
	pythonRich string
	//go:embed drivers/node.js
	nodeDriver string
	//go:embed drivers/bash.sh
	bashDriver string
)

// sessionMark is the argument after which a session's language and name stand.
const sessionMark = "agentrun-session"

// sessionKey names a session of a sandbox.
type sessionKey struct{ language, name string }

// command is what begins a session, and what it is given first.
func (k sessionKey) command() (args []string, driver string) {
	switch k.language {
	case api.Python:
		// Read byte by byte: a request may follow at once.
		args = []string{"python3", "-c", `exec("import os\nh = b''\nwhile h[-1:] != b'\\n': h += os.read(0, 1)\nn, d = int(h), b''\n` +
			`while len(d) < n: d += os.read(0, n - len(d))\nexec(d, {'__name__': 'agentrun'})", {})`}
		text := "exec(compile(" + quotePython("RICH = "+quotePython(pythonRich)+"\n"+pythonDriver) + `, "<agentrun>", "exec"), {"__name__": "agentrun"})`
		driver = fmt.Sprintf("%d\n%s", len(text), text)
	case api.JavaScript:
		args = []string{"bash", "-c", `t=$(mktemp) && exec 3<&0 0<>"$t" && rm -f "$t" && exec node -e "$0" "$@"`,
			`{ const fs = require("fs"), b = Buffer.alloc(1); let h = "", n = 0; while (fs.readSync(3, b, 0, 1, null) && b[0] !== 10) h += b;
const d = Buffer.alloc(+h); while (n < d.length) n += fs.readSync(3, d, n, d.length - n, null); require("vm").runInThisContext(d.toString(), "agentrun"); }`}
		driver = fmt.Sprintf("%d\n%s", len(nodeDriver), nodeDriver)
	default:
		args, driver = []string{"bash", "-c", `IFS= read -r -d "" REPLY; eval "$REPLY"`, "bash"}, bashDriver+"\x00"
	}
	return append(args, sessionMark, k.language, k.name), driver
}

// quotePython writes a text as Python's literal. JSON's strings are ones.
func quotePython(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string
	return strings.TrimSpace(b.String())
}

// sessionOf returns which session a command is, nil for others.
func sessionOf(r engine.Running) *sessionKey {
	n := len(r.Args)
	if n < 4 || r.Args[n-3] != sessionMark {
		return nil
	}
	return &sessionKey{r.Args[n-2], r.Args[n-1]}
}

// sessions are those of a sandbox. A fork's begin empty.
type sessions struct {
	mu   sync.Mutex
	list map[sessionKey]*session

	// sending is held for reading until a request was read: a copy of the sandbox must not have half of one.
	sending sync.RWMutex
	waiting sync.WaitGroup // for interpreters' ends
}

// session is an interpreter. One call at a time has its turn.
type session struct {
	s    *Sandbox
	key  sessionKey
	turn chan struct{} // holds one value while a call runs
	sent *[]string     // the claim's variables that it has

	p        engine.Process
	in       *feed
	out, err *markedWriter
	ended    chan struct{} // closed when the interpreter has ended, nil while none has begun
	status   int
}

// session finds a sandbox's session, or makes one that hasn't begun.
func (s *Sandbox) session(k sessionKey) (*session, error) {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	if x := s.calls.list[k]; x != nil {
		return x, nil
	}
	if len(s.calls.list) >= maxSessions {
		maps.DeleteFunc(s.calls.list, func(_ sessionKey, x *session) bool { return x.over() })
	}
	if len(s.calls.list) >= maxSessions {
		return nil, errs.Msg(errs.Limit, "run", k.name, fmt.Sprintf("a sandbox has %d sessions at most", maxSessions))
	}
	if s.calls.list == nil {
		s.calls.list = map[sessionKey]*session{}
	}
	x := &session{s: s, key: k, turn: make(chan struct{}, 1)}
	s.calls.list[k] = x
	return x, nil
}

// take waits for the session's turn.
func (x *session) take(ctx context.Context) (give func(), err error) {
	select {
	case x.turn <- struct{}{}:
		return func() { <-x.turn }, nil
	case <-ctx.Done():
		return nil, errs.New(errs.Canceled, "run", x.key.language, ctx.Err())
	}
}

// over tells whether the interpreter has ended and nobody uses the session.
func (x *session) over() bool {
	select {
	case x.turn <- struct{}{}:
		defer func() { <-x.turn }()
		return x.ended != nil && !x.alive()
	default:
		return false
	}
}

// alive tells whether the interpreter runs.
func (x *session) alive() bool {
	if x.ended == nil {
		return false
	}
	select {
	case <-x.ended:
		return false
	default:
		return true
	}
}

// begin sees to it that the interpreter runs and listens: it is attached to, or started.
func (x *session) begin(ctx context.Context) error {
	if x.alive() {
		return nil
	}
	if x.ended == nil {
		if done, err := x.attach(ctx); done || err != nil {
			return err
		}
	}
	return x.start(ctx)
}

// connect makes the streams of the interpreter.
func (x *session) connect() (c engine.Cmd) {
	x.in, x.out, x.err, x.ended, x.sent = newFeed(), &markedWriter{}, &markedWriter{}, make(chan struct{}), nil
	return engine.Cmd{Stdin: x.in, Stdout: x.out, Stderr: x.err, Keep: true}
}

// follow waits for the end of the interpreter.
func (x *session) follow(p engine.Process) {
	x.p = p
	ended, in := x.ended, x.in
	x.s.calls.waiting.Go(func() {
		status, err := p.Wait(context.Background())
		if err != nil && status == 0 {
			status = 1
		}
		x.status = status
		in.close()
		close(ended)
	})
}

// attach takes up the session of the image that the sandbox came from, if it has one.
func (x *session) attach(ctx context.Context) (done bool, err error) {
	a, ok := x.s.in.(engine.Attacher)
	if !ok {
		return false, nil
	}
	list := a.Running()
	i := slices.IndexFunc(list, func(r engine.Running) bool { k := sessionOf(r); return k != nil && *k == x.key })
	if i < 0 {
		return false, nil
	}
	c := x.connect()
	p, err := a.Attach(ctx, list[i].Pid, c)
	if err != nil {
		x.ended = nil
		if errs.Is(err, errs.NotFound) {
			return false, nil
		}
		return false, err
	}
	x.follow(p)
	err = x.sync(ctx, true)
	if err != nil && !x.alive() && ctx.Err() == nil {
		return false, nil // it ended meanwhile
	}
	return true, err
}

// start begins a new interpreter.
func (x *session) start(ctx context.Context) error {
	args, driver := x.key.command()
	c := x.connect()
	c.Args = args
	// The environment of a claim comes with the first call, so that it can be taken back.
	p, err := x.s.in.Exec(ctx, c)
	if err != nil {
		x.ended = nil
		return err
	}
	x.follow(p)
	short, cancel := context.WithTimeout(ctx, max(beginTime, x.s.freezeTimeout()))
	defer cancel()
	x.in.write([]byte(driver))
	if _, err = x.do(short, request{begins: true}, nil, nil); err == nil {
		return nil
	}
	x.kill()
	if x.status == 127 || x.status == 126 {
		return errs.Msg(errs.Unsupported, "run", x.key.language, "there is no interpreter of this language in the sandbox")
	}
	if ctx.Err() != nil {
		return errs.New(errs.Canceled, "run", x.key.language, ctx.Err())
	}
	return errs.Msg(errs.Unavailable, "run", x.key.language, fmt.Sprintf("the interpreter didn't begin (status %d)", x.status))
}

// sync waits until the driver answers, which may still be busy. What comes before belongs to nobody.
func (x *session) sync(ctx context.Context, busy bool) error {
	_, err := x.do(ctx, request{busy: busy}, nil, nil)
	return err
}

// kill ends the interpreter and waits for that.
func (x *session) kill() {
	if !x.alive() {
		return
	}
	if err := x.p.Signal(9); err != nil {
		x.s.n.o.Log.Error("kill session", "sandbox", x.s.id, "err", err)
	}
	<-x.ended
}

// endOf ends a session's interpreter, which may be busy. The next text begins anew.
func (c *sessions) endOf(ctx context.Context, s *Sandbox, k sessionKey) error {
	if a, ok := s.in.(engine.Attacher); ok {
		for _, r := range a.Running() {
			if o := sessionOf(r); o != nil && *o == k {
				if err := a.Signal(r.Pid, 9); err != nil && !errs.Is(err, errs.NotFound) {
					return err
				}
			}
		}
	}
	x, err := s.session(k)
	if err != nil {
		return err
	}
	give, err := x.take(ctx)
	if err != nil {
		return err
	}
	defer give()
	x.kill()
	return nil
}

// request is a call.
type request struct {
	Marker string
	Text   *string // nil: only to be answered
	Auto   bool    // only if it is of the language for sure
	busy   bool    // the driver may not read at once
	rich   func(b []byte)
	begins bool // the interpreter is being started, which may take beginTime: its code may have to be compiled first
	extra
}

// extra is what most calls don't have.
type extra struct {
	Dir   string            `json:"dir,omitempty"`
	Env   map[string]string `json:"env,omitempty"` // of this call
	Claim map[string]string `json:"claim"`         // if not nil, in place of those of an earlier one
	Rich  bool              `json:"rich,omitempty"`
	Stdin []byte            `json:"stdin,omitempty"`
}

// answer is what a driver says at the end of a call.
type answer struct {
	Status int    `json:"status"`
	Result string `json:"result"`
	Other  bool   `json:"other"` // it isn't of the language
	Word   string `json:"word"`  // it might be a command of this name
}

// encode returns what is written to the driver of a language.
func (r *request) encode(language string) []byte {
	if r.Text == nil && language == api.Shell {
		return []byte(r.Marker + "\x00sync\x00")
	}
	if language != api.Shell {
		return r.fields()
	}
	setup, after := shellSetup(r)
	var b bytes.Buffer
	for _, field := range []string{r.Marker, "run", setup, after, string(r.Stdin), *r.Text} {
		b.WriteString(strings.ReplaceAll(field, "\x00", ""))
		b.WriteByte(0)
	}
	return b.Bytes()
}

// fields is the form that the drivers of Python and JavaScript read: a line with the number of bytes that follow, eight digits, then
// what sort of request it is, the marker, what it has extra, in JSON, and the text, each but the last with a NUL byte at its end.
func (r *request) fields() []byte {
	kind, text := "run", ""
	switch {
	case r.Text == nil:
		kind = "sync"
	case r.Auto:
		kind, text = "auto", *r.Text
	default:
		text = *r.Text
	}
	var more []byte
	if r.Dir != "" || len(r.Env) > 0 || r.Claim != nil || len(r.Stdin) > 0 || r.Rich {
		more, _ = json.Marshal(r.extra) // of strings
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	n := len(kind) + len(r.Marker) + len(more) + len(text) + 3
	return fmt.Appendf(make([]byte, 0, n+9), "%08d\n%s\x00%s\x00%s\x00%s", n, kind, r.Marker, more, text)
}

// shellSetup is what a shell runs before a text and after it.
func shellSetup(r *request) (setup, after string) {
	var a, b strings.Builder
	if r.Claim != nil {
		a.WriteString("for REPLY in \"${__agentrun_given[@]}\"; do unset \"$REPLY\"; done; __agentrun_given=(); ")
		for _, k := range sortedKeys(r.Claim) {
			fmt.Fprintf(&a, "export %s=%s; __agentrun_given+=(%s); ", k, quoteShell(r.Claim[k]), k)
		}
	}
	for _, k := range sortedKeys(r.Env) {
		fmt.Fprintf(&a, "__agentrun_was_%s=${%s-}; __agentrun_set_%s=${%s+x}; export %s=%s; ", k, k, k, k, k, quoteShell(r.Env[k]))
		fmt.Fprintf(&b, "if [ -n \"$__agentrun_set_%s\" ]; then export %s=\"$__agentrun_was_%s\"; else unset %s; fi; unset __agentrun_was_%s __agentrun_set_%s; ", k, k, k, k, k, k)
	}
	if r.Dir != "" && r.Rich {
		fmt.Fprintf(&a, "[ -n \"$__agentrun_begun\" ] || cd -- %s && __agentrun_begun=1", quoteShell(r.Dir))
	} else if r.Dir != "" {
		fmt.Fprintf(&a, "cd -- %s", quoteShell(r.Dir))
	} else {
		a.WriteString(":")
	}
	return a.String(), b.String()
}

func sortedKeys(m map[string]string) []string {
	var out []string
	for k := range m {
		if isName(k) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// isName tells whether a shell can have a variable of this name.
func isName(s string) bool {
	for i, c := range []byte(s) {
		if c != '_' && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}

func quoteShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// errDied says that the interpreter ended during a call.
var errDied = errors.New("the interpreter has ended")

// do has the driver do a request, and waits for its answer. Output goes to the writers meanwhile; nil ones discard. When ctx is
// done the program is interrupted and, if that doesn't help, killed.
func (x *session) do(ctx context.Context, r request, stdout, stderr io.Writer) (answer, error) {
	var random [16]byte
	rand.Read(random[:])
	r.Marker = "\x01agentrun:" + hex.EncodeToString(random[:]) + ":"
	marker := []byte(r.Marker)
	onOut, onErr := x.out.expect(marker, stdout, true, r.rich), x.err.expect(marker, stderr, false, nil)
	defer x.out.forget()
	defer x.err.forget()
	unread := func() {}
	var slow <-chan time.Time
	if !r.busy { // which reads at once: until it says that it did, the sandbox isn't copied
		x.s.calls.sending.RLock()
		unread = sync.OnceFunc(x.s.calls.sending.RUnlock)
		defer unread()
		slow = time.After(max(sendTime, x.s.freezeTimeout()))
		if r.begins {
			slow = nil // the context ends it
		}
	}
	x.in.write(r.encode(x.key.language))
	var a answer
	done, late := ctx.Done(), (<-chan time.Time)(nil)
	for first, left := true, 2; left > 0; {
		select {
		case line := <-onOut:
			if first {
				first, slow = false, nil
				unread()
				continue
			}
			if err := json.Unmarshal(line, &a); err != nil {
				x.kill()
				return a, errs.New(errs.Corrupt, "run", x.key.language, err)
			}
			left--
		case <-onErr:
			left--
		case <-x.ended:
			return a, errDied
		case <-slow:
			x.kill()
			return a, errDied
		case <-done:
			done = nil
			if err := x.p.Signal(2); err != nil {
				return a, err
			}
			late = time.After(interruptTime)
		case <-late:
			x.kill()
			return a, errs.New(errs.Canceled, "run", x.key.language, ctx.Err())
		}
	}
	if done == nil && ctx.Err() != nil {
		return a, errs.New(errs.Canceled, "run", x.key.language, ctx.Err())
	}
	return a, nil
}

// end waits for the ends of all interpreters, which the sandbox's end has killed.
func (c *sessions) end() { c.waiting.Wait() }

// feed is what an interpreter reads from. Writing never waits.
type feed struct {
	mu     sync.Mutex
	more   sync.Cond
	data   []byte
	closed bool
}

func newFeed() *feed {
	f := &feed{}
	f.more.L = &f.mu
	return f
}

func (f *feed) write(b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.data = append(f.data, b...)
	f.more.Broadcast()
}

// close ends the reader's wait.
func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.more.Broadcast()
}

func (f *feed) Read(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.data) == 0 {
		if f.closed {
			return 0, io.EOF
		}
		f.more.Wait()
	}
	n := copy(b, f.data)
	if f.data = f.data[n:]; len(f.data) == 0 {
		f.data = nil
	}
	return n, nil
}

// markedWriter is a stream of an interpreter. What comes between two lines that begin with a call's marker goes to the call's
// writer, or, of a stream that has only the second of them, what comes before it.
type markedWriter struct {
	mu     sync.Mutex
	to     io.Writer
	marker []byte // nil: nobody waits
	begun  bool   // the first line came, or there is none
	held   []byte // may be the beginning of a marker, or is the line after one
	found  bool   // held is a line
	lines  chan []byte
	rich   func(b []byte) // gets lines within a call: what it shows besides its output
}

// richLine is how a line begins that isn't a call's first or last.
var richLine = []byte(`{"rich":`)

// expect sends output to a writer from one marker to the next, or without first from now on. The lines after the markers go to the
// channel.
func (m *markedWriter) expect(marker []byte, to io.Writer, first bool, rich func(b []byte)) <-chan []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rich = rich
	m.to, m.marker, m.begun, m.held, m.found, m.lines = to, marker, !first, nil, false, make(chan []byte, 2)
	return m.lines
}

// forget drops what comes from now on. What the writer is being given is given when it returns.
func (m *markedWriter) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.to, m.marker, m.held, m.rich = nil, nil, nil, nil
}

// Write takes all, also when the call's writer fails.
func (m *markedWriter) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(b)
	for len(b) > 0 && m.marker != nil {
		if m.found {
			b = m.line(b)
			continue
		}
		if len(m.held) > 0 {
			b, m.held = append(m.held, b...), nil
		}
		i := bytes.Index(b, m.marker)
		if i < 0 {
			keep := partial(b, m.marker)
			m.give(b[:len(b)-keep])
			m.held = bytes.Clone(b[len(b)-keep:])
			break
		}
		m.give(b[:i])
		m.found, b = true, b[i+len(m.marker):]
	}
	return n, nil
}

// partial is how many bytes at the end of b may begin a marker.
func partial(b, marker []byte) int {
	for k := min(len(marker)-1, len(b)); k > 0; k-- {
		if bytes.HasSuffix(b, marker[:k]) {
			return k
		}
	}
	return 0
}

func (m *markedWriter) give(b []byte) {
	if m.to == nil || !m.begun || len(b) == 0 {
		return
	}
	if _, err := m.to.Write(b); err != nil {
		m.to = nil // nobody reads any more; the program isn't held up
	}
}

// line collects the line after a marker, and returns what follows it.
func (m *markedWriter) line(b []byte) []byte {
	line, after, whole := bytes.Cut(b, []byte("\n"))
	if len(m.held)+len(line) > maxAnswer {
		line, whole = nil, true
	}
	m.held = append(m.held, line...)
	if !whole {
		return nil
	}
	if m.rich != nil && m.begun && bytes.HasPrefix(m.held, richLine) {
		m.rich(m.held)
		m.held, m.found = nil, false
		return after
	}
	m.lines <- m.held
	m.held, m.found = nil, false
	if m.begun {
		m.marker, m.to = nil, nil
	}
	m.begun = true
	return after
}

// capture is engine.Capture of the sandbox, at a moment when no session's driver has read half of a request. s.mu is held.
func (s *Sandbox) capture(ctx context.Context, cutID string, o engine.FreezeOptions) (engine.Image, *volume.Cut, error) {
	s.calls.sending.Lock()
	defer s.calls.sending.Unlock()
	return engine.Capture(ctx, s.in, s.volumes, cutID, o)
}

// captureAll is capture for one that goes on as this one was: a sandbox that goes to sleep, or of which a snapshot is taken.
func (s *Sandbox) captureAll(ctx context.Context, cutID string, o engine.FreezeOptions) (engine.Image, *volume.Cut, error) {
	s.calls.sending.Lock()
	defer s.calls.sending.Unlock()
	return engine.CaptureAll(ctx, s.in, s.volumes, cutID, o)
}
