package main

import (
	"bufio"
	"fmt"
	"io"
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
        time.sleep(%g)
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
	b    *box
	pid  int
	feed io.Writer
	out  *bufio.Reader
}

func (py *python) use(pid int, feed io.Writer, out io.Reader) {
	py.pid, py.feed, py.out = pid, feed, bufio.NewReader(out)
}

func (py *python) line() (string, error) {
	text, err := py.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s: Python: %w, after %q", py.b.name, err, text)
	}
	return trim(text), nil
}

func (py *python) answers(want string) error {
	got, err := py.line()
	if err == nil && got != want {
		err = fmt.Errorf("%s: Python says %q, want %q", py.b.name, got, want)
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
