package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"

	"agentrun.dev/api"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
)

// languageOf checks a language's name.
func languageOf(name string) (string, error) {
	switch name {
	case "", api.Shell, api.Python, api.JavaScript:
		return name, nil
	}
	return "", errs.Msg(errs.Invalid, "run", name, "no language of this name; there are shell, python and javascript")
}

// check says what is wrong with a text to run.
func (c *Code) check() error {
	for _, name := range []string{c.Language, c.Default} {
		if _, err := languageOf(name); err != nil {
			return err
		}
	}
	if len(c.Session) > maxSessionName || strings.ContainsFunc(c.Session, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errs.Msg(errs.Invalid, "run", c.Session, fmt.Sprintf("a session's name has at most %d bytes, and no control characters", maxSessionName))
	}
	if len(c.Text) > maxText {
		return errs.Msg(errs.TooLarge, "run", "", fmt.Sprintf("a text has at most %d bytes", maxText))
	}
	if strings.ContainsRune(c.Text, 0) {
		return errs.Msg(errs.Invalid, "run", "", "the text has a NUL byte")
	}
	if c.Dir != "" && !path.IsAbs(c.Dir) {
		return errs.Msg(errs.Invalid, "run", c.Dir, "the directory isn't absolute")
	}
	for _, kv := range c.Env {
		if name, _, ok := strings.Cut(kv, "="); !ok || name == "" || strings.ContainsRune(kv, 0) {
			return errs.Msg(errs.Invalid, "run", name, "a variable is NAME=VALUE")
		}
	}
	return nil
}

// Code implements Host. Sessions that a copy has from its original go on as they were.
func (l *local) Code(ctx context.Context, id string, c Code) (*CodeResult, error) {
	s, err := l.hosted(id)
	if err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	s.Touch()
	defer s.Touch()
	if c.End {
		language := c.Language
		if language == "" {
			language = api.Shell
		}
		return &CodeResult{Language: language}, s.calls.endOf(ctx, s, sessionKey{language, c.Session})
	}
	out, wrong := &untilEnd{w: c.Stdout}, &untilEnd{w: c.Stderr}
	defer out.end()
	defer wrong.end()
	c.Stdout, c.Stderr = out, wrong
	if rich := c.Rich; rich != nil {
		c.Rich = func(m Rich) { out.do(func() { rich(m) }) }
	}
	r, err := s.code(ctx, c)
	if err != nil && s.living() != nil {
		err = errs.Msg(errs.Unavailable, "run", id, "the sandbox ended meanwhile")
	}
	return r, err
}

// code runs a text as what it is.
func (s *Sandbox) code(ctx context.Context, c Code) (*CodeResult, error) {
	if err := s.spent(ctx); err != nil {
		return nil, err
	}
	language, auto := c.Language, false
	if language == "" {
		language, auto = c.Default, true
	}
	if language == "" || language == api.Shell {
		return s.shell(ctx, c)
	}
	if c.Stdin != nil {
		b, err := readStdin(c.Stdin)
		if err != nil {
			return nil, err
		}
		c.Stdin = bytes.NewReader(b) // a shell may get what the interpreter doesn't
	}
	in := c.Stdin
	r, other, err := s.interpret(ctx, c, language, auto)
	if b, ok := in.(*bytes.Reader); ok {
		b.Seek(0, io.SeekStart)
	}
	if other || auto && errs.Is(err, errs.Unsupported) {
		return s.shell(ctx, c)
	}
	return r, err
}

// shell runs a text in the named session or, without a name, in a shell of its own.
func (s *Sandbox) shell(ctx context.Context, c Code) (*CodeResult, error) {
	if c.Session != "" {
		r, _, err := s.interpret(ctx, c, api.Shell, false)
		return r, err
	}
	p, err := s.Exec(ctx, engine.Cmd{Args: []string{"bash", "-c", c.Text}, Env: c.Env, Dir: c.Dir, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, Keep: true})
	if err != nil {
		return nil, err
	}
	status, err := p.Wait(ctx)
	if err == nil && status > 128 {
		err = s.spent(ctx) // what ended it
	}
	if err != nil {
		return nil, err
	}
	return &CodeResult{Language: api.Shell, Status: status}, nil
}

// interpret runs a text in a session. With auto, other says that it is a shell's instead, and nothing was done.
func (s *Sandbox) interpret(ctx context.Context, c Code, language string, auto bool) (r *CodeResult, other bool, err error) {
	x, err := s.session(sessionKey{language, c.Session})
	if err != nil {
		return nil, false, err
	}
	q := request{Text: &c.Text, Auto: auto, extra: extra{Dir: c.Dir, Env: variables(c.Env), Rich: c.Rich != nil}, rich: c.message}
	if c.Stdin != nil {
		if q.Stdin, err = readStdin(c.Stdin); err != nil {
			return nil, false, err
		}
	}
	give, err := x.take(ctx)
	if err != nil {
		return nil, false, err
	}
	defer give()
	if err := x.begin(ctx); err != nil {
		return nil, false, err
	}
	env := s.env.Load()
	if env != x.sent {
		q.Claim = map[string]string{}
		if env != nil {
			q.Claim = variables(*env)
		}
	}
	a, err := x.do(ctx, q, c.Stdout, c.Stderr)
	if err == nil && a.Other {
		return nil, true, nil
	}
	if err == nil && a.Word != "" {
		if command, err := s.isCommand(ctx, a.Word); err != nil || command {
			return nil, err == nil, err
		}
		q.Auto = false
		a, err = x.do(ctx, q, c.Stdout, c.Stderr)
	}
	if errors.Is(err, errDied) {
		// It ended itself, as os._exit does, or was killed. The next call begins anew.
		if err := s.spent(ctx); err != nil {
			return nil, false, err
		}
		if ctx.Err() != nil {
			return nil, false, errs.New(errs.Canceled, "run", language, ctx.Err())
		}
		return &CodeResult{Language: language, Status: x.status}, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	x.sent = env
	return &CodeResult{Language: language, Status: a.Status, Result: a.Result}, false, nil
}

// begins begins the default session of a language.
func (s *Sandbox) begins(ctx context.Context, language string) error {
	if language == api.Shell {
		return nil // it has none
	}
	x, err := s.session(sessionKey{language, ""})
	if err != nil {
		return err
	}
	if err := x.begin(ctx); errs.Is(err, errs.Unsupported) {
		return nil // a build without interpreters
	} else if err != nil {
		return err
	}
	// What the first text of an interpreter sets up is set up in the image.
	text := "0"
	_, err = x.do(ctx, request{Text: &text}, nil, nil)
	return err
}

// message gives a driver's message to the caller. What can't be read comes from a program that writes like its driver: it is dropped.
func (c *Code) message(line []byte) {
	var m struct {
		Rich *Rich `json:"rich"`
	}
	if c.Rich != nil && json.Unmarshal(line, &m) == nil && m.Rich != nil {
		c.Rich(*m.Rich)
	}
}

// isCommand tells whether a shell of the sandbox would run a program or builtin of this name.
func (s *Sandbox) isCommand(ctx context.Context, word string) (bool, error) {
	var out bytes.Buffer
	p, err := s.Exec(ctx, engine.Cmd{Args: []string{"bash", "-c", `type -t -- "$1"`, "bash", word}, Stdout: &out})
	if err != nil {
		return false, err
	}
	if _, err := p.Wait(ctx); err != nil {
		return false, err
	}
	kind := strings.TrimSpace(out.String())
	return kind == "file" || kind == "builtin", nil
}

// readStdin reads what a session's text is given as its standard input.
func readStdin(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err != nil {
		return nil, errs.New(errs.Other, "read standard input", "", err)
	}
	if len(b) > maxText {
		return nil, errs.Msg(errs.TooLarge, "run", "", fmt.Sprintf("the standard input of a session's text has at most %d bytes", maxText))
	}
	return b, nil
}

// variables makes a map of NAME=VALUE.
func variables(list []string) map[string]string {
	out := make(map[string]string, len(list))
	for _, kv := range list {
		k, v, _ := strings.Cut(kv, "=")
		out[k] = v
	}
	return out
}

// untilEnd is a caller's writer until the call has ended. What processes in the background write later is dropped.
type untilEnd struct {
	mu   sync.Mutex
	w    io.Writer
	over bool
}

func (u *untilEnd) Write(b []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.w == nil {
		return len(b), nil
	}
	return u.w.Write(b)
}

// do does something until the call has ended, and not while a write goes on.
func (u *untilEnd) do(f func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.over {
		f()
	}
}

func (u *untilEnd) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.w, u.over = nil, true
}
