package rest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/control"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// timedOut is the exit code of what took too long, as timeout(1) has it.
const timedOut = 124

// use begins the use of the sandbox that the path names.
func (s *server) use(r *request, verb access.Verb) (*control.Session, error) {
	u, err := s.Control.Use(r.Context(), r.caller, r.PathValue("id"), verb)
	if err == nil {
		r.sandbox = u.Sandbox.ID
	}
	return u, err
}

// runIn answers POST /v1/sandboxes/{id}/exec.
func (s *server) runIn(w http.ResponseWriter, r *request) error {
	var in api.Run
	if err := decode(w, r, &in); err != nil {
		return err
	}
	job, err := newJob(&in, s.ExecTimeout)
	if err != nil {
		return err
	}
	select {
	case s.runs <- struct{}{}:
		defer func() { <-s.runs }()
	default:
		w.Header().Set("Retry-After", "1")
		return errs.Msg(errs.Limit, "exec", "", fmt.Sprintf("%d commands are running already", cap(s.runs)))
	}
	u, err := s.use(r, access.SandboxExec)
	if err != nil {
		return err
	}
	defer u.Close()
	if in.Background {
		res, err := s.background(r.Context(), u, job)
		if err != nil {
			return err
		}
		return answer(w, r, http.StatusOK, res)
	}
	if accepts(r, api.EventStream, api.NDJSON) {
		return s.runStream(w, r, u, job)
	}
	stdout, stderr := &capture{held: &s.held}, &capture{held: &s.held}
	defer stdout.release()
	defer stderr.release()
	res, err := job.run(r.Context(), u, stdout, stderr, func(int) error { return nil })
	if err != nil {
		return err
	}
	res.Stdout, res.Stderr = stdout.text(), stderr.text()
	res.Truncated = stdout.cut() || stderr.cut()
	return answer(w, r, http.StatusOK, res)
}

// runStream tells what happens as it does.
func (s *server) runStream(w http.ResponseWriter, r *request, u *control.Session, j *job) error {
	f := newFeed(s, w, r)
	send := func(e api.RunEvent) error { return f.send("", e.Type, &e) }
	start := func(pid int) error { return send(api.RunEvent{Type: "start", Pid: pid}) }
	if j.code != nil {
		if err := start(0); err != nil {
			return f.end(nil)
		}
	}
	out := func(stream string) io.Writer {
		return writerFunc(func(b []byte) (int, error) {
			if err := send(api.RunEvent{Type: stream, Data: b}); err != nil {
				return 0, err
			}
			return len(b), nil
		})
	}
	res, err := j.run(r.Context(), u, out("stdout"), out("stderr"), start)
	switch {
	case err != nil && !f.started():
		return f.end(err)
	case err != nil:
		p := s.problem(r, err, nil)
		_ = send(api.RunEvent{Type: "error", Error: &p})
	default:
		_ = send(api.RunEvent{Type: "exit", Result: res})
	}
	return f.end(nil)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	return f(b)
}

// job is something to run in a sandbox: a text or a command.
type job struct {
	code    *node.Code // without its streams
	cmd     engine.Cmd // without its streams, where code is nil
	stdin   string
	timeout time.Duration
}

// newJob checks what is asked for.
func newJob(in *api.Run, longest time.Duration) (*job, error) {
	bad := func(thing, text string) (*job, error) { return nil, errs.Msg(errs.Invalid, "exec", clip(thing), text) }
	if (in.Code == "") == (len(in.Args) == 0) {
		return bad("", "want either code or args")
	}
	env, err := environment(in.Env)
	if err != nil {
		return nil, err
	}
	args := in.Args
	if in.Code != "" {
		args = []string{"-"}
	}
	if err := checkCommand(args, env, in.Dir); err != nil {
		return nil, err
	}
	if err := checkText(in.Code, in.Language, in.Session); err != nil {
		return nil, err
	}
	if math.IsNaN(in.Timeout) || in.Timeout < 0 || in.Timeout > 1e9 {
		return bad("timeout", "want seconds from 0 to 1e9")
	}
	if in.Log != "" && !in.Background || strings.IndexByte(in.Log, 0) >= 0 {
		return bad("log", "it is a file's name, and goes with background")
	}
	j := &job{stdin: in.Stdin, timeout: longest}
	if t := time.Duration(in.Timeout * float64(time.Second)); t > 0 && t < longest {
		j.timeout = t
	}
	switch {
	case in.Background:
		if in.Session != "" {
			return bad("session", "what runs in the background has none")
		}
		j.cmd = engine.Cmd{Args: inBackground(in), Env: env, Dir: in.Dir, Root: in.Root, Keep: true}
	case in.Code != "" && in.Root:
		// Interpreters of sessions run as the sandbox's user.
		if in.Language != "" && in.Language != api.Shell || in.Session != "" {
			return bad("root", "only commands and shell texts without a session may run as root")
		}
		j.cmd = engine.Cmd{Args: []string{"bash", "-c", in.Code}, Env: env, Dir: in.Dir, Root: true}
	case in.Code != "":
		j.code = &node.Code{Text: in.Code, Language: in.Language, Session: in.Session, Env: env, Dir: in.Dir}
	default:
		j.cmd = engine.Cmd{Args: in.Args, Env: env, Dir: in.Dir, Root: in.Root}
	}
	return j, nil
}

// checkText checks what says how a text is run.
func checkText(code, language, session string) error {
	bad := func(thing, text string) error { return errs.Msg(errs.Invalid, "exec", thing, text) }
	if code == "" && (language != "" || session != "") {
		return bad("language", "language and session go with code")
	}
	switch language {
	case "", api.Shell, api.Python, api.JavaScript:
	default:
		return bad("language", "want shell, python or javascript")
	}
	if strings.IndexByte(code, 0) >= 0 {
		return bad("code", "a NUL byte has no place in a text")
	}
	if len(session) > 63 || strings.ContainsFunc(session, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '/' }) {
		return bad("session", "want at most 63 characters, without spaces and slashes")
	}
	return nil
}

// inBackground makes a command of what is to run in the background. Text without a language is the shell's there: what is started
// so is a server, not a question.
func inBackground(in *api.Run) []string {
	args := in.Args
	switch {
	case in.Code == "":
	case in.Language == api.Python:
		args = []string{"python3", "-u", "-c", in.Code}
	case in.Language == api.JavaScript:
		args = []string{"node", "-e", in.Code}
	default:
		args = []string{"bash", "-c", in.Code}
	}
	if in.Log != "" {
		args = append([]string{"bash", "-c", `exec >"$0" 2>&1 && exec "$@"`, in.Log}, args...)
	}
	return args
}

// environment turns a map into NAME=VALUE.
func environment(m map[string]string) ([]string, error) {
	env := make([]string, 0, len(m))
	for k, v := range m {
		if k == "" || strings.ContainsAny(k, "=\x00") {
			return nil, errs.Msg(errs.Invalid, "exec", "env", "a variable's name isn't empty and has neither '=' nor NUL in it")
		}
		env = append(env, k+"="+v)
	}
	slices.Sort(env)
	return env, nil
}

// background starts a command that goes on by itself.
func (s *server) background(ctx context.Context, u *control.Session, j *job) (*api.RunResult, error) {
	c := j.cmd
	if j.stdin != "" {
		c.Stdin = strings.NewReader(j.stdin)
	}
	begun := time.Now()
	k, err := s.kept.start(&s.held, u.Sandbox.ID, nil, c, func(c engine.Cmd) (engine.Process, error) { return u.Exec(ctx, c) })
	if err != nil {
		return nil, err
	}
	return &api.RunResult{Pid: k.p.Pid(), Duration: time.Since(begun).Seconds()}, nil
}

// run runs to the end. started is told the id of a command's process. When ctx is done first, what runs is killed.
func (j *job) run(ctx context.Context, u *control.Session, stdout, stderr io.Writer, started func(pid int) error) (*api.RunResult, error) {
	limited, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	begun := time.Now()
	res := &api.RunResult{}
	var err error
	if j.code != nil {
		c := *j.code
		c.Default, c.Stdout, c.Stderr = u.Sandbox.Language, stdout, stderr
		if j.stdin != "" {
			c.Stdin = strings.NewReader(j.stdin)
		}
		res.Language = cmp.Or(c.Language, c.Default, api.Shell)
		var cr *node.CodeResult
		if cr, err = u.Code(limited, c); cr != nil {
			res.ExitCode, res.Result, res.Language = cr.Status&0xff, cr.Result, cr.Language
		}
	} else {
		res.ExitCode, res.Pid, err = j.command(limited, u, stdout, stderr, started)
	}
	res.Duration = time.Since(begun).Seconds()
	if ctx.Err() != nil {
		return nil, errs.Msg(errs.Canceled, "exec", "", "the client has gone")
	}
	if err != nil && limited.Err() != nil {
		res.ExitCode, res.TimedOut, err = timedOut, true, nil
	}
	return res, err
}

func (j *job) command(ctx context.Context, u *control.Session, stdout, stderr io.Writer, started func(pid int) error) (status, pid int, err error) {
	c := j.cmd
	c.Stdout, c.Stderr = stdout, stderr
	if j.stdin != "" {
		c.Stdin = strings.NewReader(j.stdin)
	}
	p, err := u.Exec(ctx, c)
	if err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if started(p.Pid()) != nil {
		cancel() // nobody is there any more: Wait kills it
	}
	status, err = p.Wait(ctx)
	return status & 0xff, p.Pid(), err
}

// processes lists the commands that run in a sandbox.
func (s *server) processes(_ http.ResponseWriter, r *request) (any, error) {
	u, err := s.use(r, access.SandboxRead)
	if err != nil {
		return nil, err
	}
	defer u.Close()
	list, err := u.Processes(r.Context())
	if err != nil {
		return nil, err
	}
	out := &api.Processes{Processes: make([]api.ProcessInfo, len(list))}
	for i, p := range list {
		out.Processes[i] = api.ProcessInfo{Pid: p.Pid, Args: p.Args, TTY: p.TTY}
	}
	return out, nil
}

// signal sends a signal to a command that runs in a sandbox.
func (s *server) signal(_ http.ResponseWriter, r *request) (any, error) {
	pid, err := strconv.ParseInt(r.PathValue("pid"), 10, 32)
	if err != nil || pid <= 0 {
		return nil, errs.Msg(errs.Invalid, "signal", "pid", "want the number of a process")
	}
	sig, ok := signals[strings.TrimPrefix(cmp.Or(r.text("signal"), "TERM"), "SIG")]
	if !ok {
		return nil, errs.Msg(errs.Invalid, "signal", clip(r.text("signal")), "no such signal")
	}
	u, err := s.use(r, access.SandboxExec)
	if err != nil {
		return nil, err
	}
	defer u.Close()
	return nil, u.Signal(r.Context(), int(pid), sig)
}
