package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"agentrun.dev/engine"
)

// box is a sandbox.
type box struct {
	engine.Instance
	name string
}

// run executes a command and returns what it writes.
func (b *box) run(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	p, err := b.Exec(ctx, engine.Cmd{Args: args, Root: true, Stdout: &out, Stderr: &out})
	if err != nil {
		return "", fmt.Errorf("%s: %q: %w", b.name, args, err)
	}
	if status, err := p.Wait(ctx); status != 0 || err != nil {
		return "", fmt.Errorf("%s: %q: status %d, %w: %s", b.name, args, status, err, out.Bytes())
	}
	return out.String(), nil
}

// capture makes an image of a running sandbox; paused is how long it stood still.
func (b *box) capture(ctx context.Context) (im engine.Image, paused time.Duration, err error) {
	start := time.Now()
	f, err := b.Freeze(ctx, engine.FreezeOptions{})
	if err != nil {
		return nil, 0, err
	}
	im, err = f.Capture(ctx)
	err = errors.Join(err, f.Thaw())
	return im, time.Since(start), err
}

// start makes a sandbox of an image.
func (t *trial) start(ctx context.Context, im engine.Image, name string) (*box, error) {
	in, err := im.Start(ctx, engine.Identity{ID: name, Hostname: name}, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &box{in, name}, nil
}

// save writes an image to the disk, and closes it.
func (t *trial) save(ctx context.Context, im engine.Image) (size int64, err error) {
	f, err := os.Create(t.file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	err = errors.Join(im.Save(ctx, f, nil), f.Sync(), im.Close())
	if err != nil {
		return 0, err
	}
	return f.Seek(0, io.SeekEnd)
}

// load reads it.
func (t *trial) load(ctx context.Context) (engine.Image, error) {
	f, err := os.Open(t.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return t.engine.Load(ctx, f)
}

// startPython starts the program with so many MiB written to, and a thread that does something every so many seconds.
func startPython(ctx context.Context, b *box, dirty int, tick float64) (*python, error) {
	py := &python{b: b}
	err := py.streams(ctx, func(c engine.Cmd) (engine.Process, error) {
		c.Args, c.Root = []string{"python3", "-c", fmt.Sprintf(program, tick, dirty)}, true
		return b.Exec(ctx, c)
	})
	if err == nil {
		err = py.answers("ready 3.0")
	}
	return py, err
}

// in is the same Python in a fork.
func (py *python) in(ctx context.Context, b *box) (*python, error) {
	c := &python{b: b}
	err := c.streams(ctx, func(cmd engine.Cmd) (engine.Process, error) {
		return b.Instance.(engine.Attacher).Attach(ctx, py.pid, cmd)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.name, err)
	}
	// What it said before the fork comes first.
	mark := fmt.Sprintf("'here I am at %d'", time.Now().UnixNano())
	line, err := c.ask(mark)
	for err == nil && line != mark {
		line, err = c.line()
	}
	return c, err
}

// streams connects to a command's streams.
func (py *python) streams(ctx context.Context, start func(engine.Cmd) (engine.Process, error)) error {
	in, feed := io.Pipe()
	out, answers := io.Pipe()
	p, err := start(engine.Cmd{Stdin: in, Stdout: answers, Stderr: answers})
	if err != nil {
		return err
	}
	py.use(p.Pid(), feed, out)
	context.AfterFunc(ctx, func() { _ = answers.CloseWithError(context.Cause(ctx)) }) // a machine that is silent
	go func() {                                                                       // it has ended, or its machine has
		status, err := p.Wait(ctx)
		_ = answers.CloseWithError(fmt.Errorf("it ended with %d, %w", status, err))
	}()
	return nil
}

func trim(s string) string { return strings.TrimSuffix(s, "\n") }
