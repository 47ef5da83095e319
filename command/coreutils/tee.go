package coreutils

import (
	"errors"
	"io"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var teeSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]..."},
	About: "Copy standard input to each FILE, and also to standard output.",
	Options: []getopt.Option{
		{Short: 'a', Long: "append", Help: "append to the given FILEs, do not overwrite"},
		{Short: 'i', Long: "ignore-interrupts", Help: "(accepted)"},
		{Short: 'p', Help: "diagnose errors writing to non pipes"},
		{Long: "output-error", Key: 'p', Arg: getopt.Optional, Name: "MODE", Help: "set behavior on write error: warn, warn-nopipe, exit, exit-nopipe"},
	},
	Package: tool.Coreutils,
}

// Tee copies its input to files and to its output.
func Tee(t *tool.T) int {
	opts, files := t.Parse(&teeSpec)
	flags := syscall.O_WRONLY | syscall.O_CREAT | syscall.O_TRUNC
	mode := ""
	for _, o := range opts {
		switch o.Key {
		case 'a':
			flags = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_APPEND
		case 'p':
			mode = "warn-nopipe"
			if o.Has {
				mode = []string{"warn", "warn-nopipe", "exit", "exit-nopipe"}[t.Choice(1, "--output-error", o.Arg, [][]string{{"warn"}, {"warn-nopipe"}, {"exit"}, {"exit-nopipe"}})]
			}
		}
	}
	type sink struct {
		name string
		w    io.Writer
	}
	sinks := []sink{{"standard output", t.Stdout()}}
	failed := false
	for _, name := range files {
		f, err := t.Process.Open(name, flags, 0o666)
		if err != nil {
			t.WarnFile(name, err)
			failed = true
			continue
		}
		defer f.Close()
		sinks = append(sinks, sink{name, f})
	}
	buf := make([]byte, 32<<10)
	for len(sinks) > 0 {
		n, err := t.Stdin().Read(buf)
		for i := 0; i < len(sinks) && n > 0; i++ {
			_, werr := sinks[i].w.Write(buf[:n])
			if werr == nil {
				continue
			}
			pipe := errors.Is(werr, syscall.EPIPE)
			if pipe && mode == "" {
				t.Exit(128 + int(syscall.SIGPIPE))
			}
			if !(pipe && (mode == "warn-nopipe" || mode == "exit-nopipe")) {
				t.Warn("%s: %s", tool.QuoteF(sinks[i].name), tool.Strerror(werr))
				failed = true
				if mode == "exit" || mode == "exit-nopipe" {
					t.Exit(1)
				}
			}
			sinks = append(sinks[:i], sinks[i+1:]...)
			i--
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Warn("read error: %s", tool.Strerror(err))
			failed = true
			break
		}
	}
	return status(failed)
}
