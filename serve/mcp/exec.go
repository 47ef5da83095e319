package mcp

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// Times that a command may take, in seconds.
const (
	defaultTimeout = 120
	maxTimeout     = 3600
)

type execInput struct {
	Command    string            `json:"command" jsonschema:"the command line, run by bash: pipes, &&, redirections and several lines are fine"`
	Cwd        string            `json:"cwd,omitempty" jsonschema:"absolute path of the directory to run it in (default the sandbox's start directory, usually /workspace)"`
	Env        map[string]string `json:"env,omitempty" jsonschema:"variables for this command only"`
	Stdin      string            `json:"stdin,omitempty" jsonschema:"all of the command's standard input (default none)"`
	Timeout    float64           `json:"timeout_seconds,omitempty" jsonschema:"end the command after so many seconds (default 120, at most 3600)"`
	Background bool              `json:"background,omitempty" jsonschema:"start it and return at once, for servers and watchers; its output goes to a file that the result names"`
	Session    string            `json:"session,omitempty" jsonschema:"name of a shell that lives on: variables, functions and the directory stay for the next command with the same name (default: a new shell each time)"`
	which
}

type codeInput struct {
	Code     string  `json:"code" jsonschema:"source text; the value of a last expression is returned, as a notebook does"`
	Language string  `json:"language" jsonschema:"python or javascript"`
	Session  string  `json:"session,omitempty" jsonschema:"name of the interpreter, where several are wanted side by side"`
	Timeout  float64 `json:"timeout_seconds,omitempty" jsonschema:"end it after so many seconds (default 120, at most 3600)"`
	which
}

type execOutput struct {
	Sandbox  string  `json:"sandbox" jsonschema:"id or name of the sandbox it ran in"`
	ExitCode int     `json:"exit_code" jsonschema:"0 is success; 124: it was ended at its timeout; 127: there is no such command"`
	Stdout   string  `json:"stdout" jsonschema:"standard output; of long output the first and the last part"`
	Stderr   string  `json:"stderr" jsonschema:"standard error; of long output the first and the last part"`
	Result   string  `json:"result,omitempty" jsonschema:"of code: the value of the last expression"`
	Seconds  float64 `json:"seconds" jsonschema:"how long it took"`
	TimedOut bool    `json:"timed_out,omitempty"`
	// StdoutFile and StderrFile are files of the sandbox.
	StdoutFile  string `json:"stdout_file,omitempty" jsonschema:"file of the sandbox with all of the standard output, where that was too long to return"`
	StderrFile  string `json:"stderr_file,omitempty" jsonschema:"file of the sandbox with all of the standard error, where that was too long to return"`
	StdoutBytes int64  `json:"stdout_bytes,omitempty" jsonschema:"how long it was, where that was too long to return"`
	StderrBytes int64  `json:"stderr_bytes,omitempty" jsonschema:"how long it was, where that was too long to return"`
	Pid         int    `json:"pid,omitempty" jsonschema:"of a background command"`
	LogFile     string `json:"log_file,omitempty" jsonschema:"file of the sandbox that a background command writes to"`
}

func addCommands(s *mcp.Server, v *conversation) {
	add(s, v, describe("exec", "Run a command", `
Run a shell command in the sandbox and return its exit code and output. This is the tool for everything that a terminal does: build, test, git,
install, start servers, inspect. Files under the start directory (/workspace) persist; each call is a new shell unless 'session' is given.
A command that fails is no error of the tool: look at exit_code. Output beyond about 20,000 bytes is cut in the middle; the result then names a
file of the sandbox that has all of it, for read_file. The network is closed unless the sandbox allows it. For something that doesn't end by
itself (a server) use background: true.`, changes, openWorld), runCommand)
	add(s, v, describe("run_code", "Run Python or JavaScript", `
Run Python or JavaScript in an interpreter that lives in the sandbox, as a notebook does: variables, imports and functions stay from one call to
the next, and the value of a last expression is returned. Better than exec for calculations and for work on data in steps. An exception is no
error of the tool: exit_code is 1 then and stderr has the traceback. Forks of the sandbox have the interpreter's state too.`, changes, openWorld), runCode)
	add(s, v, describe("list_processes", "List processes", `
List the commands that run in the sandbox now, with their pids: background commands, and what they started.`, looks), listProcesses)
	add(s, v, describe("kill_process", "Kill a process", `
Send a signal to a command that runs in the sandbox, such as one that exec started in the background. TERM asks it to end, KILL ends it.`, changes, idempotent), killProcess)
}

func timeout(seconds float64) (float64, error) {
	switch {
	case seconds == 0:
		return defaultTimeout, nil
	case seconds < 0 || seconds > maxTimeout || seconds != seconds:
		return 0, bad("timeout_seconds", fmt.Sprintf("want more than 0 and at most %d; what takes longer runs with background: true", maxTimeout))
	}
	return seconds, nil
}

func runCommand(ctx context.Context, c *call, in execInput) (*done[*execOutput], error) {
	if strings.TrimSpace(in.Command) == "" {
		return nil, bad("command", "it is empty")
	}
	if len(in.Command)+len(in.Stdin) > api.MaxBody-(64<<10) {
		return nil, errs.Msg(errs.TooLarge, "exec", "command", fmt.Sprintf("command and stdin have %d bytes together, %d are the most", len(in.Command)+len(in.Stdin), api.MaxBody-(64<<10))).
			WithHint("put it into a file with write_file, and let the command read that")
	}
	secs, err := timeout(in.Timeout)
	if err != nil {
		return nil, err
	}
	run := api.Run{Code: in.Command, Language: api.Shell, Dir: in.Cwd, Env: in.Env, Stdin: in.Stdin, Timeout: secs, Session: in.Session}
	if in.Background {
		if in.Session != "" {
			return nil, bad("background", "a command of a session can't be in the background: leave out one of the two")
		}
		return inBackground(ctx, c, in.Sandbox, run)
	}
	return runIn(ctx, c, in.Sandbox, run)
}

func runCode(ctx context.Context, c *call, in codeInput) (*done[*execOutput], error) {
	language := map[string]string{"python": api.Python, "python3": api.Python, "py": api.Python,
		"javascript": api.JavaScript, "js": api.JavaScript, "node": api.JavaScript}[strings.ToLower(in.Language)]
	switch {
	case language == "":
		return nil, bad("language", "want python or javascript; for shell there is exec")
	case strings.TrimSpace(in.Code) == "":
		return nil, bad("code", "it is empty")
	case len(in.Code) > api.MaxBody-(64<<10):
		return nil, errs.Msg(errs.TooLarge, "run code", "", fmt.Sprintf("it has %d bytes, %d are the most", len(in.Code), api.MaxBody-(64<<10))).
			WithHint("put it into a file with write_file, and import that")
	}
	secs, err := timeout(in.Timeout)
	if err != nil {
		return nil, err
	}
	return runIn(ctx, c, in.Sandbox, api.Run{Code: in.Code, Language: language, Session: in.Session, Timeout: secs})
}

// runIn runs something to its end, with progress on the way.
func runIn(ctx context.Context, c *call, sandbox string, run api.Run) (*done[*execOutput], error) {
	id, err := c.in(ctx, sandbox)
	if err != nil {
		return nil, err
	}
	var stdout, stderr capture
	p := c.progress(ctx)
	res, err := c.c.RunStream(ctx, id, run, func(e *api.RunEvent) error {
		switch e.Type {
		case "stdout":
			stdout.add(e.Data)
		case "stderr":
			stderr.add(e.Data)
		}
		p.add(e.Data)
		return nil
	})
	p.end()
	if err != nil {
		return nil, err
	}
	out := &execOutput{Sandbox: id, ExitCode: res.ExitCode, Result: clipped(res.Result), Seconds: round(res.Duration), TimedOut: res.TimedOut}
	name := "/tmp/agentrun-mcp/" + strings.ToLower(rand.Text()[:10])
	var b strings.Builder
	out.Stdout, out.StdoutFile, out.StdoutBytes = c.shown(ctx, id, &stdout, name+".stdout", mostStdout)
	out.Stderr, out.StderrFile, out.StderrBytes = c.shown(ctx, id, &stderr, name+".stderr", mostStderr)
	b.WriteString(out.Stdout)
	if out.Stderr != "" {
		line(&b)
		b.WriteString("[stderr]\n" + out.Stderr)
	}
	line(&b)
	switch {
	case res.TimedOut:
		fmt.Fprintf(&b, "[ended at its timeout of %v s; exit code %d. Give a larger timeout_seconds, or background: true]", run.Timeout, res.ExitCode)
	default:
		fmt.Fprintf(&b, "[exit code %d, %v s]", res.ExitCode, out.Seconds)
	}
	return &done[*execOutput]{text: b.String(), out: out}, nil
}

// inBackground starts a command and returns.
func inBackground(ctx context.Context, c *call, sandbox string, run api.Run) (*done[*execOutput], error) {
	id, err := c.in(ctx, sandbox)
	if err != nil {
		return nil, err
	}
	run.Background, run.Timeout = true, 0
	run.Log = "/tmp/agentrun-mcp/" + strings.ToLower(rand.Text()[:10]) + ".log"
	if _, err := c.c.MakeDirectory(ctx, id, "/tmp/agentrun-mcp"); err != nil && !errs.Is(err, errs.Exists) {
		return nil, err
	}
	res, err := c.c.Run(ctx, id, run)
	if err != nil {
		return nil, err
	}
	return &done[*execOutput]{out: &execOutput{Sandbox: id, Pid: res.Pid, LogFile: run.Log},
		text: fmt.Sprintf("Started in the background as pid %d. Its output goes to %s (read_file shows it); kill_process ends it.", res.Pid, run.Log)}, nil
}

// line begins a new line, unless there is one.
func line(b *strings.Builder) {
	if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
		b.WriteByte('\n')
	}
}

func round(seconds float64) float64 { return float64(int64(seconds*1000+0.5)) / 1000 }

// shown is what of a stream is returned. The whole of a long one is put into a file of the sandbox.
func (c *call) shown(ctx context.Context, id string, s *capture, file string, most int) (text, at string, size int64) {
	text, cut := s.shown(most)
	if !cut {
		return text, "", 0
	}
	_, err := c.c.WriteFile(ctx, id, file, 0, strings.NewReader(string(s.held)), int64(len(s.held)))
	switch {
	case err != nil:
		text = s.cut(most, "the rest couldn't be kept: "+err.Error()+"; run it again with its output in a file")
		return text, "", s.total
	case s.total > int64(len(s.held)):
		text = s.cut(most, fmt.Sprintf("the first %d of %d bytes are in %s: read_file or search_files shows them; run it again with its output in a file for all", len(s.held), s.total, file))
	default:
		text = s.cut(most, "all of it is in "+file+": read_file or search_files shows the rest")
	}
	return text, file, s.total
}

type processesOutput struct {
	Processes []process `json:"processes"`
}

type process struct {
	Pid     int    `json:"pid"`
	Command string `json:"command"`
}

func listProcesses(ctx context.Context, c *call, in which) (*done[*processesOutput], error) {
	id, err := c.in(ctx, in.Sandbox)
	if err != nil {
		return nil, err
	}
	list, err := c.c.Processes(ctx, id)
	if err != nil {
		return nil, err
	}
	out := &processesOutput{Processes: []process{}}
	var b strings.Builder
	for _, p := range list {
		q := process{p.Pid, clipTo(strings.Join(p.Args, " "), 300)}
		out.Processes = append(out.Processes, q)
		fmt.Fprintf(&b, "%d\t%s\n", q.Pid, q.Command)
	}
	if len(list) == 0 {
		b.WriteString("Nothing runs in the sandbox.")
	}
	return &done[*processesOutput]{text: b.String(), out: out}, nil
}

type killInput struct {
	Pid    int    `json:"pid" jsonschema:"the process"`
	Signal string `json:"signal,omitempty" jsonschema:"TERM (default), KILL, INT, HUP, QUIT, USR1 or USR2"`
	which
}

func killProcess(ctx context.Context, c *call, in killInput) (*done[none], error) {
	id, err := c.in(ctx, in.Sandbox)
	if err != nil {
		return nil, err
	}
	if in.Signal == "" {
		in.Signal = "TERM"
	}
	in.Signal = strings.TrimPrefix(strings.ToUpper(in.Signal), "SIG")
	if err := c.c.Signal(ctx, id, in.Pid, in.Signal); err != nil {
		return nil, err
	}
	return text("Sent %s to process %s.", in.Signal, strconv.Itoa(in.Pid)), nil
}

// progress tells a client that asked for it what a command writes, as it does.
type progress struct {
	c       *call
	ctx     context.Context
	begun   time.Time
	written chan []byte
	ended   chan struct{}
}

// Times of progress: at most one notification in an interval, and one in a while even if nothing is written.
const (
	progressEvery = 150 * time.Millisecond
	progressIdle  = 5 * time.Second
	progressMost  = 4000 // bytes of a message: the last ones
)

func (c *call) progress(ctx context.Context) *progress {
	p := &progress{c: c, ctx: ctx, begun: time.Now()}
	if c.req.Params.GetProgressToken() == nil {
		return p
	}
	p.written, p.ended = make(chan []byte, 16), make(chan struct{})
	go p.run()
	return p
}

// add takes what was written.
func (p *progress) add(b []byte) {
	if p.written != nil && len(b) > 0 {
		p.written <- b
	}
}

// end waits until everything was told.
func (p *progress) end() {
	if p.written != nil {
		close(p.written)
		<-p.ended
	}
}

func (p *progress) run() {
	defer close(p.ended)
	var held []byte
	var last time.Time
	tick := time.NewTimer(progressIdle)
	defer tick.Stop()
	tell := func(message string) {
		last = time.Now()
		held = nil
		tick.Reset(progressIdle)
		_ = p.c.req.Session.NotifyProgress(p.ctx, &mcp.ProgressNotificationParams{ProgressToken: p.c.req.Params.GetProgressToken(),
			Progress: max(time.Since(p.begun).Seconds(), 0.001), Message: message}) // a client that is gone hears nothing, and the call ends by itself
	}
	for {
		select {
		case b, ok := <-p.written:
			if !ok {
				if len(held) > 0 {
					tell(tail(held, progressMost))
				}
				return
			}
			if held = append(held, b...); len(held) > 4*progressMost {
				held = held[len(held)-2*progressMost:]
			}
			if wait := progressEvery - time.Since(last); wait <= 0 {
				tell(tail(held, progressMost))
			} else {
				tick.Reset(wait)
			}
		case <-tick.C:
			if len(held) > 0 {
				tell(tail(held, progressMost))
			} else {
				tell(fmt.Sprintf("running for %d s", int(time.Since(p.begun).Seconds())))
			}
		}
	}
}
