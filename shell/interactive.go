package shell

import (
	"strconv"
	"strings"

	"agentrun.dev/proc"
	"agentrun.dev/shell/lineedit"
)

// input is an interactive shell's way of asking for a line: the prompt, and the editor where the terminal can be asked for
// single keys. It is part of the state of a shell that waits: a copy goes on with the same line.
type asking struct {
	asked  bool             // the prompt is shown
	ed     *lineedit.Editor // nil where the terminal edits lines itself
	saved  proc.Termios     // how the terminal was set before
	nextAt int              // the place in the history that the next line begins with, from 1; 0 for none
	eofs   int              // ends of input in a row, for ignoreeof
}

// beInteractive sets what only interactive shells have.
func (sh *Shell) beInteractive() {
	sh.opts.interactive, sh.opts.monitor = true, true
	sh.shopts.set("expand_aliases", true)
	sh.opts.history, sh.opts.histexpand = !sh.posix, !sh.posix
	sh.opts.emacs = !sh.noEditing
	def := func(name, value string) {
		if _, ok := sh.get(name); !ok {
			sh.set(name, value)
		}
	}
	def("PS1", `\s-\v\$ `)
	def("PS2", "> ")
	if !sh.posix {
		def("HISTFILE", strings.TrimSuffix(sh.str("HOME"), "/")+"/.bash_history")
		def("HISTSIZE", "500")
		def("HISTFILESIZE", "500")
	}
	for _, sig := range []int{proc.SIGINT, proc.SIGTERM, proc.SIGQUIT, proc.SIGTSTP, proc.SIGTTIN, proc.SIGTTOU, proc.SIGWINCH} {
		sh.p.SetSignal(sig, proc.Handle)
	}
	if sh.p.TTY() == nil {
		sh.stderr(sh.name + ": cannot set terminal process group (-1): Inappropriate ioctl for device\n" + sh.name + ": no job control in this shell\n")
		sh.opts.monitor = false
	}
	sh.windowSize()
}

// windowSize sets LINES and COLUMNS to the terminal's, as checkwinsize asks for.
func (sh *Shell) windowSize() {
	for fd := range 3 {
		if size, err := sh.p.WindowSize(fd); err == nil && size.Cols > 0 {
			sh.set("LINES", strconv.Itoa(int(size.Rows)))
			sh.set("COLUMNS", strconv.Itoa(int(size.Cols)))
			return
		}
	}
}

// edits tells whether lines are edited here.
func (sh *Shell) edits() bool {
	term := sh.str("TERM")
	return (sh.opts.emacs || sh.opts.vi) && term != "" && term != "dumb" && sh.p.IsTerminal(0) && sh.p.IsTerminal(2)
}

// promptText expands PS1 or another prompt.
func (sh *Shell) promptText(name string) string {
	sh.line = max(1, sh.line)
	return sh.prompt(sh.str(name))
}

// say writes to the terminal what belongs to the line that is asked for. It isn't part of what is begun again in a copy.
func (sh *Shell) say(s []byte) {
	if f, err := sh.p.File(2); err == nil && len(s) > 0 {
		sh.writeAll(f, s)
	}
}

// ask shows the prompt, once.
func (r *textReader) ask() {
	if r.asked {
		return
	}
	sh := r.sh
	name := "PS1"
	if r.fed != "" || r.text != "" {
		name = "PS2"
	}
	if name == "PS1" {
		sh.notify()
		sh.exitAsked = max(0, sh.exitAsked-1)
	}
	text := sh.promptText(name)
	r.asked = true
	if sh.edits() {
		r.edit(text)
	} else {
		sh.say([]byte(plainPrompt(text)))
	}
	// From here on the prompt is state; a copy must not expand it again.
	if sh.pinned == 0 && sh.try.on {
		sh.attemptAt(attemptStep)
	}
}

// edit begins an edited line.
func (r *textReader) edit(prompt string) {
	sh := r.sh
	set, err := sh.p.Termios(0)
	if err != nil {
		sh.say([]byte(plainPrompt(prompt)))
		return
	}
	r.saved = set
	set.Lflag &^= proc.ICANON | proc.ECHO | proc.IEXTEN
	set.Iflag &^= proc.ICRNL | proc.INLCR | proc.IXON
	set.Cc[proc.VMIN], set.Cc[proc.VTIME] = 1, 0
	if sh.p.SetTermios(0, set, proc.SetDrain) != nil {
		sh.say([]byte(plainPrompt(prompt)))
		return
	}
	lines := make([]string, len(sh.hist.list))
	for i, e := range sh.hist.list {
		lines[i] = e.text
	}
	columns := 80
	if size, err := sh.p.WindowSize(0); err == nil && size.Cols > 0 {
		columns = int(size.Cols)
	}
	rl := &sh.readline
	query := 100
	if n, err := strconv.Atoi(rl.get("completion-query-items")); err == nil {
		query = n
	}
	r.ed = lineedit.New(prompt, lineedit.Config{Vi: sh.opts.vi, Lines: lines, Kills: sh.kills, Keys: rl.keysOf(sh.opts.vi), ViKeys: rl.keys["vi"], Columns: columns,
		Paste: rl.get("enable-bracketed-paste") == "on", Silent: rl.get("bell-style") == "none", Comment: rl.get("comment-begin"), Query: query})
	if r.nextAt > 0 {
		r.ed.Start(r.nextAt - 1)
		r.nextAt = 0
	}
	r.flushEditor()
}

func (r *textReader) flushEditor() {
	out := r.ed.Out
	r.ed.Out = nil
	r.sh.say(out)
}

// unedit puts the terminal back.
func (r *textReader) unedit() {
	if r.ed == nil {
		return
	}
	r.sh.kills = r.ed.Kills()
	r.ed = nil
	r.sh.p.SetTermios(0, r.saved, proc.SetDrain)
}

// readEdited reads a line by the editor into part.
func (r *textReader) readEdited() {
	sh := r.sh
	in, err := sh.p.File(0)
	if err != nil {
		r.unedit()
		r.eof = true
		return
	}
	one := make([]byte, 1)
	n := 0
	read := func() (err error) {
		n, err = in.Read(one)
		return err
	}
	for r.ed != nil {
		n = 0
		err := sh.rest(read)
		switch {
		case n > 0:
			r.key(one[0])
		case err != nil && errIntr(err) && sh.p.Killed() == 0:
			r.interrupted()
		default:
			r.unedit()
			r.eof = true
		}
	}
}

// key feeds the editor.
func (r *textReader) key(b byte) {
	ed, sh := r.ed, r.sh
	ev := ed.Feed(b)
	r.flushEditor()
	switch ev {
	case lineedit.None:
	case lineedit.Accept:
		if ed.Arg == "operate-and-get-next" {
			r.nextAt = ed.History() + 2
		}
		r.part = append(r.part, ed.Text()...)
		r.part = append(r.part, '\n')
		r.unedit()
	case lineedit.EOF:
		r.unedit()
		r.eof = true
	case lineedit.Edit:
		text := ed.Text()
		r.unedit()
		r.part = append(r.part, "fc -e \"${VISUAL:-${EDITOR:-vi}}\"\n"...)
		sh.hist.add(text, sh.historyTime())
	default:
		sh.editorEvent(ed, ev)
		r.flushEditor()
		if sh.pinned == 0 && sh.try.on {
			sh.attemptAt(attemptStep)
		}
	}
}

// interrupted takes the signals that came while a line was being typed. An interrupt gives the line up.
func (r *textReader) interrupted() {
	sh := r.sh
	sh.takeSignals()
	var rest []int
	abort := false
	for _, sig := range sh.pending {
		switch {
		case sig == proc.SIGWINCH:
			sh.windowSize()
			if size, err := sh.p.WindowSize(0); err == nil && r.ed != nil {
				r.ed.Resize(int(size.Cols))
				r.flushEditor()
			}
			if sh.hasTrap(sig) {
				rest = append(rest, sig)
			}
		case sig == proc.SIGINT:
			abort = true
			if sh.hasTrap(sig) {
				rest = append(rest, sig)
			}
		case sh.hasTrap(sig):
			rest = append(rest, sig)
		}
	}
	sh.pending = rest
	if abort {
		if r.ed != nil {
			r.ed.Abort()
			r.flushEditor()
			r.unedit()
		} else {
			sh.say([]byte("\n"))
		}
		r.part, r.quit = r.part[:0], true
		sh.status = 130
	}
	if len(rest) > 0 {
		sh.runTraps()
		if r.ed != nil {
			r.ed.Redraw()
			r.flushEditor()
		}
	}
	if sh.pinned == 0 && sh.try.on {
		sh.attemptAt(attemptStep)
	}
}

// atEOF is the end of an interactive shell's input: false means that it goes on, as ignoreeof asks for.
func (r *textReader) atEOF() bool {
	sh := r.sh
	limit := -1
	if s, ok := sh.get("IGNOREEOF"); ok {
		limit = 10
		if n, err := strconv.Atoi(s); err == nil && n >= 0 {
			limit = n
		}
	} else if sh.opts.ignoreeof {
		limit = 10
	}
	if r.eofs++; limit >= 0 && r.eofs <= limit && sh.p.IsTerminal(0) {
		what := "exit"
		if sh.shopts.get("login_shell") {
			what = "logout"
		}
		sh.say([]byte("\nUse \"" + what + "\" to leave the shell.\n"))
		r.eof, r.asked = false, false
		return false
	}
	what := "exit\n"
	if sh.shopts.get("login_shell") {
		what = "logout\n"
	}
	if r.ed == nil && sh.p.IsTerminal(0) && !sh.edits() {
		what = "\n" + what
	}
	sh.say([]byte(what))
	return true
}

// promptFrame runs PROMPT_COMMAND; the status stays.
type promptFrame struct {
	cmds   []string
	i      int
	status int
	pipes  []int
	begun  bool
}

func (f *promptFrame) clone() frame {
	c := *f
	return &c
}

func (f *promptFrame) step(sh *Shell) {
	if f.i == len(f.cmds) {
		sh.pop()
		return
	}
	sh.status = f.status
	f.i++
	sh.push(sh.trapText(f.cmds[f.i-1]))
}

func (f *promptFrame) leave(sh *Shell) {
	if sh.ctl == ctlNone {
		sh.status, sh.pipestatus = f.status, f.pipes
	}
}

// beforePrompt starts PROMPT_COMMAND; true when it has.
func (sh *Shell) beforePrompt() bool {
	var cmds []string
	if v := sh.lookup("PROMPT_COMMAND"); v != nil {
		if v.isArray() {
			cmds, _ = elements(v)
		} else if s, ok := v.scalar(); ok && s != "" {
			cmds = []string{s}
		}
	}
	if len(cmds) == 0 {
		return false
	}
	sh.push(&promptFrame{cmds: cmds, status: sh.status, pipes: sh.pipestatus})
	return true
}
