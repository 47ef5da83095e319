package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"agentrun.dev/guest"
)

// program is the Python that runs while its machine is forked: it imports numpy, writes to its memory, holds state that another
// thread changes all the time, and evaluates what it is told, one line each.
const program = `
import os, random, socket, sys, threading, time
import numpy as np
state = {"ticks": 0, "rng": np.random.default_rng(7)}
def tick():
    while True:
        state["ticks"] += 1
        time.sleep(0.01)
threading.Thread(target=tick, daemon=True).start()
held = np.arange(%d << 17, dtype=np.int64)
print("ready", np.mean([1, 2, 3, 4, 5]), flush=True)
for line in sys.stdin:
    try:
        print(repr(eval(line)), flush=True)
    except SyntaxError:
        exec(line)
        print("done", flush=True)
`

// python is one that runs.
type python struct {
	m    *machine
	pid  int
	feed io.WriteCloser
	out  *bufio.Reader
	p    *guest.Process
}

// startPython starts it with so many MiB written to.
func startPython(ctx context.Context, m *machine, dirty int) (*python, error) {
	in, feed := io.Pipe()
	out, answers := io.Pipe()
	p, err := m.agent.Exec(ctx, guest.Cmd{Args: []string{"python3", "-c", fmt.Sprintf(program, dirty)}, Stdin: in, Stdout: answers, Stderr: answers})
	if err != nil {
		return nil, err
	}
	py := &python{m: m, pid: p.Pid(), feed: feed, out: bufio.NewReader(out), p: p}
	go func() { // it has ended, or its connection has
		_, err := p.Wait(ctx)
		_ = answers.CloseWithError(fmt.Errorf("Python ended: %w", err))
	}()
	return py, py.answers("ready 3.0")
}

// in is the same Python in a fork.
func (py *python) in(ctx context.Context, m *machine) (*python, error) {
	in, feed := io.Pipe()
	out, answers := io.Pipe()
	p, err := m.agent.Attach(ctx, py.pid, guest.Cmd{Stdin: in, Stdout: answers, Stderr: answers})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	c := &python{m: m, pid: py.pid, feed: feed, out: bufio.NewReader(out), p: p}
	// What it said before the fork comes first.
	mark := fmt.Sprintf("'here I am at %d'", time.Now().UnixNano())
	line, err := c.ask(mark)
	for err == nil && line != mark {
		line, err = c.line()
	}
	return c, err
}

func (py *python) line() (string, error) {
	text, err := py.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s: Python: %w, after %q", py.m.name, err, text)
	}
	return strings.TrimSuffix(text, "\n"), nil
}

func (py *python) answers(want string) error {
	got, err := py.line()
	if err == nil && got != want {
		err = fmt.Errorf("%s: Python says %q, want %q", py.m.name, got, want)
	}
	return err
}

// ask evaluates an expression.
func (py *python) ask(expression string) (string, error) {
	if _, err := io.WriteString(py.feed, expression+"\n"); err != nil {
		return "", err
	}
	return py.line()
}

func (py *python) want(expression, want string) error {
	if _, err := io.WriteString(py.feed, expression+"\n"); err != nil {
		return err
	}
	if err := py.answers(want); err != nil {
		return fmt.Errorf("%s: %w", expression, err)
	}
	return nil
}
