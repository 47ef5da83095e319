package system

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// scripter is a run of script: a session on a terminal of its own, of which it keeps a record.
type scripter struct {
	t                   *tool.T
	command             string
	out, in             *tool.FileWriter // what the session shows, and what was typed; nil is none
	timing              *tool.FileWriter
	advanced            bool // the timings tell streams apart
	flush, quiet, ended bool
	limit, written      int64
	last                time.Time
}

// Script makes a record of a session on a terminal, or of one command that believes to be on one.
func Script(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[options] [file]"}, About: "\nMake a typescript of a terminal session.", Package: utilLinux, Options: []getopt.Option{
		{Short: 'I', Long: "log-in", Arg: getopt.Required, Name: "file", Help: "log stdin to file"}, {Short: 'O', Long: "log-out", Arg: getopt.Required, Name: "file", Help: "log stdout to file (default)"}, {Short: 'B', Long: "log-io", Arg: getopt.Required, Name: "file", Help: "log stdin and stdout to file"},
		{Short: 'T', Long: "log-timing", Arg: getopt.Required, Name: "file", Help: "log timing information to file"}, {Short: 't', Long: "timing", Arg: getopt.Optional, Name: "file", Help: "deprecated alias to -T (default file is stderr)"}, {Short: 'm', Long: "logging-format", Arg: getopt.Required, Name: "name", Help: "force to 'classic' or 'advanced' format"},
		{Short: 'a', Long: "append", Help: "append to the log file"}, {Short: 'c', Long: "command", Arg: getopt.Required, Name: "command", Help: "run command rather than interactive shell"}, {Short: 'e', Long: "return", Help: "return exit code of the child process"},
		{Short: 'f', Long: "flush", Help: "run flush after each write"}, {Long: "force", Key: tool.KeyOwn, Help: "use output file even when it is a link"}, {Short: 'E', Long: "echo", Arg: getopt.Required, Name: "when", Help: "echo input in session (auto, always or never)"},
		{Short: 'o', Long: "output-limit", Arg: getopt.Required, Name: "size", Help: "terminate if output files exceed size"}, {Short: 'q', Long: "quiet", Help: "be quiet"}}}
	opts, args := t.Parse(&spec)
	s := &scripter{t: t, last: t.Now()}
	outName, inName, timeName, format := "", "", "", ""
	echo, status, mode, toStderr := t.IsTerminal(0), false, syscall.O_TRUNC, false
	for _, o := range opts {
		switch o.Key {
		case 'I':
			inName = o.Arg
		case 'O':
			outName = o.Arg
		case 'B':
			inName, outName = o.Arg, o.Arg
		case 'T':
			timeName = o.Arg
		case 't':
			if timeName = o.Arg; !o.Has {
				toStderr = true
			}
		case 'm':
			if format = o.Arg; format != "classic" && format != "advanced" {
				t.Fatal(1, "unsupported logging format: '%s'", o.Arg)
			}
		case 'a':
			mode = syscall.O_APPEND
		case 'c':
			s.command = o.Arg
		case 'e':
			status = true
		case 'f':
			s.flush = true
		case 'E':
			switch o.Arg {
			case "auto":
			case "always":
				echo = true
			case "never":
				echo = false
			default:
				t.Fatal(1, "unssuported echo mode: '%s'", o.Arg)
			}
		case 'o':
			n, err := tool.ParseSize(o.Arg, tool.SizeSuffixes)
			if err != nil {
				t.Fatal(1, "failed to parse output limit size: '%s'", o.Arg)
			}
			s.limit = int64(min(n, 1<<62))
		case 'q':
			s.quiet = true
		}
	}
	switch {
	case len(args) > 1:
		t.Warn("unexpected number of arguments")
		t.Try(1)
	case len(args) == 1:
		outName = args[0]
	case outName == "" && inName == "":
		outName = "typescript"
	}
	s.advanced = format == "advanced" || format == "" && inName != ""
	return s.run(outName, inName, timeName, mode, toStderr, echo, status)
}

// run opens the logs and holds the session.
func (s *scripter) run(outName, inName, timeName string, mode int, toStderr, echo, wantStatus bool) int {
	t := s.t
	var said []string
	open := func(name, what string) *tool.FileWriter {
		if name == "" {
			return nil
		}
		f, err := t.Process.Open(name, syscall.O_WRONLY|syscall.O_CREAT|mode, 0o666)
		if err != nil {
			t.Fatal(1, "cannot open %s: %s", name, tool.Strerror(err))
		}
		said = append(said, fmt.Sprintf("%s file is '%s'", what, name))
		return tool.NewFileWriter(f)
	}
	s.out = open(outName, "output log")
	if s.in = s.out; inName != outName {
		s.in = open(inName, "input log")
	}
	s.timing = open(timeName, "timing")
	if toStderr {
		s.timing = &tool.FileWriter{Writer: tool.NewFileWriter(fileOf(t, 2)).Writer}
	}
	defer s.close()
	if !s.quiet {
		fmt.Fprintf(t.Out, "Script started, %s.\n", strings.Join(said, ", "))
	}
	s.head()
	status := s.session(echo)
	s.foot(status)
	if !s.quiet {
		t.Out.WriteString("Script done.\n")
	}
	if wantStatus {
		return status
	}
	return 0
}

// fileOf is what is open as a descriptor, or nothing.
func fileOf(t *tool.T, fd int) vfs.File {
	f, err := t.File(fd)
	if err != nil {
		t.Fatal(1, "%s", tool.Strerror(err))
	}
	return f
}

func (s *scripter) logs() []*tool.FileWriter {
	var logs []*tool.FileWriter
	if s.out != nil {
		logs = append(logs, s.out)
	}
	if s.in != nil && s.in != s.out {
		logs = append(logs, s.in)
	}
	return logs
}

// close writes what the logs still hold.
func (s *scripter) close() {
	for _, w := range append(s.logs(), s.timing) {
		if w == nil {
			continue
		}
		w.Flush()
		if w.File != nil {
			w.File.Close()
		}
	}
}

const stamp = "2006-01-02 15:04:05-07:00"

func (s *scripter) head() {
	now := s.t.Now().In(s.t.Location()).Format(stamp)
	where := "<not executed on terminal>"
	if s.t.IsTerminal(0) {
		name, _ := s.t.TTYName(0)
		size, _ := s.t.WindowSize(0)
		where = fmt.Sprintf("TERM=\"%s\" TTY=\"%s\" COLUMNS=\"%d\" LINES=\"%d\"", s.t.Getenv("TERM"), name, size.Cols, size.Rows)
	}
	if s.command != "" {
		where = fmt.Sprintf("COMMAND=\"%s\" %s", s.command, where)
	}
	for _, w := range s.logs() {
		fmt.Fprintf(w, "Script started on %s [%s]\n", now, where)
	}
}

func (s *scripter) foot(status int) {
	now := s.t.Now().In(s.t.Location()).Format(stamp)
	for _, w := range s.logs() {
		fmt.Fprintf(w, "\nScript done on %s [COMMAND_EXIT_CODE=\"%d\"]\n", now, status)
	}
}

// session runs the command on a terminal of its own, and passes on what is typed and shown.
func (s *scripter) session(echo bool) int {
	t := s.t
	t.Out.Flush()
	size, _ := t.WindowSize(0)
	tty, err := t.Sandbox().NewTTY(size, t.Cred().UID)
	if err != nil {
		t.Fatal(1, "failed to create pseudo-terminal: %s", tool.Strerror(err))
	}
	defer tty.Close()
	if set := tty.Settings(); !echo {
		set.Lflag &^= proc.ECHO
		tty.Configure(set)
	}
	if own, err := t.Termios(0); err == nil {
		tty.Configure(own)
		if t.SetTermios(0, own.Raw(), proc.SetNow) == nil {
			defer t.SetTermios(0, own, proc.SetNow)
		}
	}
	shown, show, err := t.Pipe()
	if err != nil {
		t.Fatal(1, "%s", tool.Strerror(err))
	}
	child := s.launch(tty)
	relayed, ended := make(chan struct{}), make(chan struct{})
	go func() { // what the terminal shows goes through a pipe, where this process can wait for it
		defer close(relayed)
		io.Copy(show, tty)
		show.Close()
	}()
	go func() {
		select {
		case <-child.Done():
		case <-ended:
		}
		tty.Close()
	}()
	typist := s.typist(tty)
	defer func() {
		close(ended)
		shown.Close()
		<-relayed
		if typist != nil {
			typist.Post(proc.SIGKILL)
			<-typist.Done()
		}
	}()
	buf := make([]byte, 32<<10)
	for {
		t.Check()
		n, err := shown.Read(buf)
		if err != nil {
			break
		}
		s.show(buf[:n])
		if s.limit > 0 && s.written >= s.limit {
			t.Warn("output limit reached")
			break
		}
	}
	child.Post(proc.SIGHUP)
	status, _ := t.WaitQuiet(child)
	return status
}

// show records what the session shows and passes it on.
func (s *scripter) show(b []byte) {
	s.t.Out.Write(b)
	s.t.Out.Flush()
	s.written += int64(len(b))
	if s.timing != nil {
		now := s.t.Now()
		stream := ""
		if s.advanced {
			stream = "O "
		}
		fmt.Fprintf(s.timing, "%s%.6f %d\n", stream, now.Sub(s.last).Seconds(), len(b))
		s.last = now
	}
	if s.out != nil {
		if _, err := s.out.Write(b); err != nil {
			s.t.Fatal(1, "%s", tool.Strerror(err))
		}
		if s.flush {
			s.out.Flush()
		}
	}
}

// launch starts the shell as the leader of a session on the terminal.
func (s *scripter) launch(tty *proc.TTY) *proc.Process {
	t := s.t
	shell := t.Getenv("SHELL")
	if shell == "" {
		shell = "/bin/sh"
	}
	args := []string{shell, "-i"}
	if s.command != "" {
		args = []string{shell, "-c", s.command}
	}
	prog, words, err := t.Program(shell, args)
	if err != nil {
		t.Fatal(1, "failed to execute %s: %s", shell, tool.Strerror(err))
	}
	child, err := t.Fork()
	if err != nil {
		t.Fatal(1, "fork failed: %s", tool.Strerror(err))
	}
	child.SetSid()
	for fd := range 3 {
		child.Install(fd, tty.File())
	}
	child.SetControllingTTY(0)
	child.SetArgs(words)
	child.Start(prog)
	return child
}

// typist starts a process that types this command's input on the terminal; nil when there is nothing to type. At the end
// of an input that is no terminal it types the end of file.
func (s *scripter) typist(tty *proc.TTY) *proc.Process {
	child, err := s.t.Fork()
	if err != nil {
		return nil
	}
	child.Start(tool.Func(func(c *tool.T) int {
		buf := make([]byte, 4<<10)
		for {
			n, err := c.Stdin().Read(buf)
			if n > 0 {
				if s.in != nil && s.in != s.out {
					s.in.Write(buf[:n])
				}
				if _, err := tty.Write(buf[:n]); err != nil {
					return 0
				}
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					tty.Write([]byte{tty.Settings().Cc[proc.VEOF]})
				}
				return 0
			}
		}
	}))
	return child
}
