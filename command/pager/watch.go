package pager

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// maxWatched bounds what watch takes of a command's output.
const maxWatched = 1 << 20

// Watch runs a command again and again, and shows the first page of its output.
func Watch(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[options] command"}, About: "Execute a program periodically, showing output fullscreen.", Package: "procps-ng 4.0.2", Order: getopt.POSIX, Options: []getopt.Option{
		{Short: 'b', Long: "beep", Help: "beep if command has a non-zero exit"}, {Short: 'c', Long: "color", Help: "interpret ANSI color and style sequences"}, {Short: 'C', Long: "no-color"}, {Short: 'd', Long: "differences", Arg: getopt.Optional, Name: "permanent", Help: "highlight changes between updates"},
		{Short: 'e', Long: "errexit", Help: "exit if command has a non-zero exit"}, {Short: 'g', Long: "chgexit", Help: "exit when output from command changes"}, {Short: 'q', Long: "equexit", Arg: getopt.Required, Name: "cycles", Help: "exit when output from command does not change"},
		{Short: 'n', Long: "interval", Arg: getopt.Required, Name: "secs", Help: "seconds to wait between updates"}, {Short: 'p', Long: "precise", Help: "attempt run command in precise intervals"}, {Short: 'r', Long: "no-rerun"}, {Short: 't', Long: "no-title", Help: "turn off header"}, {Short: 'w', Long: "no-wrap", Help: "turn off line wrapping"},
		{Short: 'x', Long: "exec", Help: "pass command to exec instead of \"sh -c\""}, {Short: 'v', Long: "version", Key: 'v'}, {Short: 'h', Key: 'h'}}}
	opts, args := t.Parse(&spec)
	w := watcher{t: t, interval: 2 * time.Second, title: true}
	for _, o := range opts {
		switch o.Key {
		case 'n':
			s, err := strconv.ParseFloat(strings.Replace(o.Arg, ",", ".", 1), 64)
			if err != nil || s != s {
				t.Fatal(1, "failed to parse argument: '%s'", o.Arg)
			}
			w.interval = time.Duration(min(max(s, 0.1), 2678400) * float64(time.Second))
		case 't':
			w.title = false
		case 'x':
			w.exec = true
		case 'e':
			w.onError = true
		case 'g':
			w.onChange = true
		case 'q':
			w.onSame, _ = strconv.Atoi(o.Arg)
		case 'b':
			w.beep = true
		case 'v':
			fmt.Fprintf(t.Out, "%s from procps-ng 4.0.2\n", t.Name)
			return 0
		case 'h':
			t.Help(&spec)
			return 0
		}
	}
	if len(args) == 0 {
		t.Misused(&spec)
	}
	w.args = args
	return w.run()
}

// watcher is a running watch.
type watcher struct {
	t                 *tool.T
	args              []string
	interval          time.Duration
	title, exec, beep bool
	onError, onChange bool
	onSame, same      int
	last              string
	shown             bool
}

func (w *watcher) run() int {
	for {
		w.t.Check()
		text, status := w.output()
		changed := w.shown && text != w.last
		if w.shown && !changed {
			w.same++
		} else {
			w.same = 0
		}
		w.last, w.shown = text, true
		w.show(text)
		switch {
		case status != 0 && w.onError:
			w.t.Out.WriteString("command exit with a non-zero status, press a key to exit\n")
			return 8
		case changed && w.onChange, w.onSame > 0 && w.same >= w.onSame:
			return 0
		}
		if status != 0 && w.beep {
			w.t.Out.WriteString("\a")
		}
		w.t.Out.Flush()
		if w.t.Sleep(w.interval) != nil {
			w.t.Check()
			return 0
		}
	}
}

// output runs the command, with standard error where its output goes.
func (w *watcher) output() (string, int) {
	t := w.t
	args := w.args
	if !w.exec {
		args = []string{"sh", "-c", strings.Join(w.args, " ")}
	}
	r, pipe, err := t.Pipe()
	if err != nil {
		t.Fatal(1, "%s", tool.Strerror(err))
	}
	defer r.Close()
	child, err := t.Spawn(proc.Spawn{Args: args, Files: map[int]vfs.File{1: pipe, 2: pipe}})
	pipe.Close()
	if err != nil {
		return fmt.Sprintf("watch: %s: %s\n", args[0], tool.Strerror(err)), 127
	}
	text, _ := io.ReadAll(io.LimitReader(r, maxWatched))
	r.Close()
	status, _ := t.WaitQuiet(child)
	return string(text), status
}

func (w *watcher) show(text string) {
	t := w.t
	rows, cols := 24, 80
	if size, err := t.WindowSize(1); err == nil && size.Rows > 0 && size.Cols > 0 {
		rows, cols = int(size.Rows), int(size.Cols)
	}
	t.Out.WriteString("\x1b[H\x1b[J")
	left := rows
	if w.title {
		head := fmt.Sprintf("Every %.1fs: %s", w.interval.Seconds(), strings.Join(w.args, " "))
		tail := fmt.Sprintf("%s: %s", t.Sandbox().Hostname(), t.Now().In(t.Location()).Format("Mon Jan _2 15:04:05 2006"))
		if room := cols - len(tail) - 1; len(head) > room && room > 0 {
			head = head[:room]
		}
		t.Out.WriteString(head + strings.Repeat(" ", max(cols-len(head)-len(tail), 1)) + tail + "\n\n")
		left -= 2
	}
	view := less{o: options{tab: 8, color: true}, cols: cols}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		for _, row := range view.cells(line, 0) {
			if left--; left < 0 {
				return
			}
			t.Out.WriteString(row + "\n")
		}
	}
}
