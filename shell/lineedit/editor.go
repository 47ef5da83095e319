// Package lineedit edits a line on a terminal, as GNU readline does in bash.
//
// An Editor is data and nothing else: it waits for nobody, opens nothing and starts no goroutine. Whoever owns it feeds it
// the bytes that were typed, one at a time, and writes what it leaves in Out to the terminal, which is in raw mode but for
// signals. So the one who waits can be captured between any two keys, with the editor, and go on as a copy.
//
// A key is a sequence of bytes that is bound to a command, such as "\x01" to beginning-of-line; point is the place before
// which characters are inserted, mark another that a command keeps. Killed text can be yanked again. Widths are columns.
package lineedit

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits: more is refused with a bell.
const (
	maxLine  = 1 << 20 // characters
	maxUndo  = 1000
	maxKills = 10
	maxKeys  = 64
	maxMacro = 1 << 16 // keys that one key stands for
)

// Event is what the owner has to do after a key.
type Event uint8

const (
	None     Event = iota
	Accept         // the line is complete: Text
	EOF            // the end of input was typed on an empty line
	Complete       // complete the word before point
	Show           // list the completions of the word before point
	All            // insert all completions
	Expand         // do to the line what Arg says: history-expand-line, shell-expand-line, tilde-expand, alias-expand-line
	Run            // run the command Arg, bound with bind -x, and then Redraw
	Edit           // have an editor change the line, and run it
)

// Config is how an editor behaves. Its slices and maps are shared, and never changed.
type Config struct {
	Vi      bool
	Lines   []string          // the history, oldest first
	Kills   []string          // texts that were killed, oldest first
	Keys    map[string]string // a key to a command, "\x00" and a text to insert, or "\x01" and a command to run; "" unbinds
	ViKeys  map[string]string // those of vi's command mode
	Columns int               // of the terminal, 0 for 80
	Paste   bool              // the terminal is asked to bracket pasted text
	Silent  bool              // no bell
	Comment string            // of insert-comment
	Query   int               // more completions than this are shown only after a question; 0 for never
}

// Editor edits one line.
type Editor struct {
	Out []byte // to be written to the terminal
	Arg string // of the last event

	cfg    Config
	buf    []rune
	point  int
	mark   int
	prompt prompt
	row    int // of the cursor, from the prompt's last line
	shown  bool

	seq    []byte // a key that isn't complete
	seqKey string // the key that was looked up last
	fresh  bool   // a minus sign was typed, and no digit yet
	char   []byte // a character that isn't complete
	feed   []byte // keys of a macro that are still to be taken
	macro  []byte
	rec    bool // a macro is recorded

	command, last string // the command that runs, and the one before it
	arg           int
	argSign       int
	hasArg        bool

	undo    []snapshot
	kills   []string
	yanked  int // what yank-pop replaces: the length of the text,
	ring    int // and which one it is
	lastArg lastArg

	at     int            // the place in the history; len(Lines) is the line itself
	edited map[int]string // lines of the history that were changed
	search search
	want   want
	query  *query
	over   bool // overwrite mode
	paste  []byte
	inWrap bool // within a bracketed paste

	vi viState
}

type snapshot struct {
	text  []rune
	point int
	typed bool // by self-insert: joined with what is typed next
}

// want says what the next character is for.
type want struct {
	kind byte // 'q' insert it, 'f' search for it, 'r' replace by it …
	back bool
	n    int
}

type lastArg struct {
	at, length int // of yank-last-arg: the line that it took, and how long it was
}

// query is a list of completions that waits for y or n.
type query struct{ items []string }

// New begins a line after a prompt, in which \x01 and \x02 enclose what takes no room.
func New(text string, cfg Config) *Editor {
	e := &Editor{cfg: cfg, kills: slices.Clone(cfg.Kills), at: len(cfg.Lines)}
	if e.cfg.Columns <= 0 {
		e.cfg.Columns = 80
	}
	e.vi.insert = true
	e.setPrompt(text)
	if cfg.Paste {
		e.put("\x1b[?2004h")
	}
	e.redraw()
	return e
}

// Clone copies the editor. Both sides share what never changes.
func (e *Editor) Clone() *Editor {
	c := *e
	c.Out = slices.Clone(e.Out)
	c.buf = slices.Clone(e.buf)
	c.seq, c.char, c.feed = slices.Clone(e.seq), slices.Clone(e.char), slices.Clone(e.feed)
	c.macro, c.paste = slices.Clone(e.macro), slices.Clone(e.paste)
	c.undo, c.kills = slices.Clone(e.undo), slices.Clone(e.kills)
	c.edited = maps.Clone(e.edited)
	c.search.pattern = slices.Clone(e.search.pattern)
	c.search.saved = slices.Clone(e.search.saved)
	c.vi = e.vi.clone()
	return &c
}

// Text returns the line.
func (e *Editor) Text() string { return string(e.buf) }

// Point returns the place in Text, in bytes, before which the cursor stands.
func (e *Editor) Point() int { return len(string(e.buf[:e.point])) }

// Kills returns the texts that were killed, for the next line's Config.
func (e *Editor) Kills() []string { return e.kills }

// History returns the place in the history: operate-and-get-next begins the next line at the one after it.
func (e *Editor) History() int { return e.at }

// Set replaces the line; point is in bytes.
func (e *Editor) Set(text string, point int) {
	e.save(false)
	e.buf = []rune(text)
	e.point = utf8.RuneCountInString(text[:min(max(point, 0), len(text))])
	e.redraw()
}

// Start puts the editor on a line of the history.
func (e *Editor) Start(at int) {
	if at >= 0 && at < len(e.cfg.Lines) {
		e.visit(at)
		e.redraw()
	}
}

// Resize tells of the terminal's new width.
func (e *Editor) Resize(columns int) {
	if columns > 0 && columns != e.cfg.Columns {
		e.cfg.Columns = columns
		e.redraw()
	}
}

// Feed takes a byte that was typed.
func (e *Editor) Feed(b byte) Event {
	ev := e.take(b)
	for n := 0; ev == None && len(e.feed) > 0; n++ {
		if n > maxMacro { // one that calls itself
			e.feed = nil
			e.Ding()
			break
		}
		b, e.feed = e.feed[0], e.feed[1:]
		ev = e.take(b)
	}
	return ev
}

func (e *Editor) take(b byte) Event {
	if e.rec && len(e.macro) < maxLine {
		e.macro = append(e.macro, b)
	}
	switch {
	case e.inWrap:
		e.pasted(b)
		return None
	case e.query != nil:
		return e.answer(b)
	case e.search.on && e.search.kind == 'i' && len(e.seq) == 0 && e.want.kind == 0:
		if ev, done := e.searchKey(b); done {
			return ev
		}
	}
	if e.want.kind != 0 && len(e.seq) == 0 || len(e.char) > 0 {
		if r, ok := e.rune(b); ok {
			return e.character(r)
		}
		return None
	}
	e.seq = append(e.seq, b)
	fn, prefix := e.lookup(string(e.seq))
	switch {
	case prefix && len(e.seq) < maxKeys:
		return None
	case fn != "":
		e.seq = e.seq[:0]
		return e.bound(fn)
	}
	return e.unbound()
}

// unbound handles a key that means nothing: a character inserts itself, an unknown escape sequence is skipped whole.
func (e *Editor) unbound() Event {
	seq := e.seq
	switch {
	case len(seq) > 1 && seq[0] == 0x1b && (seq[1] == '[' || seq[1] == 'O'):
		if c := seq[len(seq)-1]; len(seq) > 2 && c >= 0x40 && c < 0x7f || len(seq) >= maxKeys {
			e.seq = e.seq[:0]
		}
		return None
	case e.cfg.Vi && len(seq) > 1 && seq[0] == 0x1b:
		rest := slices.Clone(seq[1:])
		e.seq = e.seq[:0]
		e.bound("vi-movement-mode")
		e.feed = append(rest, e.feed...)
		return None
	case len(seq) > 1 || seq[0] < 0x20 || seq[0] == 0x7f || e.cfg.Vi && !e.vi.insert:
		e.seq = e.seq[:0]
		e.Ding()
		return None
	}
	b := seq[0]
	e.seq = e.seq[:0]
	if r, ok := e.rune(b); ok {
		return e.character(r)
	}
	return None
}

// rune collects the bytes of a character.
func (e *Editor) rune(b byte) (rune, bool) {
	e.char = append(e.char, b)
	if !utf8.FullRune(e.char) && len(e.char) < utf8.UTFMax {
		return 0, false
	}
	r, n := utf8.DecodeRune(e.char)
	rest := slices.Clone(e.char[n:])
	e.char = e.char[:0]
	if len(rest) > 0 {
		e.feed = append(rest, e.feed...)
	}
	return r, true
}

// character takes one that isn't bound: it is inserted, or is what a command waits for.
func (e *Editor) character(r rune) Event {
	if e.want.kind != 0 {
		w := e.want
		e.want = want{}
		return e.wanted(w, r)
	}
	e.begin("self-insert")
	e.selfInsert(r, e.count())
	e.end()
	return None
}

// bound runs what a key is bound to.
func (e *Editor) bound(fn string) Event {
	switch fn[0] {
	case 0:
		e.feed = append([]byte(fn[1:]), e.feed...)
		if len(e.feed) > maxLine {
			e.feed = nil
		}
		return None
	case 1:
		e.Arg = fn[1:]
		return Run
	}
	e.begin(fn)
	ev := e.run(fn)
	if fn != "digit-argument" && fn != "universal-argument" && fn != "vi-arg-digit" && !e.vi.pending() {
		e.end()
	}
	return ev
}

func (e *Editor) begin(fn string) { e.command = fn }

func (e *Editor) end() {
	e.last = e.command
	e.arg, e.argSign, e.hasArg = 0, 0, false
}

// count is the numeric argument, 1 without one.
func (e *Editor) count() int {
	n := 1
	if e.hasArg {
		n = min(e.arg, 10000)
	}
	if e.argSign < 0 {
		return -n
	}
	return n
}

// Ding rings the bell.
func (e *Editor) Ding() {
	if !e.cfg.Silent {
		e.put("\a")
	}
}

func (e *Editor) put(s string) { e.Out = append(e.Out, s...) }

// save keeps the line for undo.
func (e *Editor) save(typed bool) {
	if n := len(e.undo); typed && n > 0 && e.undo[n-1].typed && e.last == "self-insert" && len(e.buf)-len(e.undo[n-1].text) < 20 {
		return
	}
	if len(e.undo) >= maxUndo {
		e.undo = e.undo[1:]
	}
	e.undo = append(e.undo, snapshot{slices.Clone(e.buf), e.point, typed})
}

// pasted takes a byte of a bracketed paste, up to the sequence that ends it.
func (e *Editor) pasted(b byte) {
	const end = "\x1b[201~"
	e.paste = append(e.paste, b)
	if len(e.paste) > 4*maxLine {
		e.paste = e.paste[:0]
		e.Ding()
	}
	if !strings.HasSuffix(string(e.paste[max(0, len(e.paste)-len(end)):]), end) {
		return
	}
	text := string(e.paste[:len(e.paste)-len(end)])
	e.inWrap, e.paste = false, nil
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	e.save(false)
	e.insert([]rune(text))
	e.redraw()
}

// Abort ends the line as an interrupt does: what was typed stays on the screen.
func (e *Editor) Abort() {
	e.search.on, e.query = false, nil
	e.point = len(e.buf)
	e.redraw()
	e.put("^C\r\n")
	e.unpaste()
}

func (e *Editor) unpaste() {
	if e.cfg.Paste {
		e.put("\x1b[?2004l\r")
	}
}
