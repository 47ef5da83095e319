package lineedit

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// insert puts text before point.
func (e *Editor) insert(text []rune) {
	if len(e.buf)+len(text) > maxLine {
		e.Ding()
		return
	}
	e.buf = slices.Insert(e.buf, e.point, text...)
	e.point += len(text)
}

// remove deletes characters; point goes along.
func (e *Editor) remove(from, to int) {
	e.buf = slices.Delete(e.buf, from, to)
	switch {
	case e.point >= to:
		e.point -= to - from
	case e.point > from:
		e.point = from
	}
	e.mark = min(e.mark, len(e.buf))
}

func (e *Editor) selfInsert(r rune, n int) {
	if n <= 0 {
		return
	}
	e.save(true)
	if e.over && e.point < len(e.buf) && e.buf[e.point] != '\n' {
		e.remove(e.point, min(len(e.buf), e.point+n))
	}
	e.insert(slices.Repeat([]rune{r}, n))
	if n == 1 {
		e.typed(r)
	} else {
		e.redraw()
	}
}

// kill cuts text out; what is killed in a row is one text.
func (e *Editor) kill(from, to int) {
	if from > to {
		from, to = to, from
	}
	if from == to {
		return
	}
	e.save(false)
	text := string(e.buf[from:to])
	back := to <= e.point && from < e.point
	switch n := len(e.kills); {
	case n > 0 && kills(e.last) && back:
		e.kills[n-1] = text + e.kills[n-1]
	case n > 0 && kills(e.last):
		e.kills[n-1] += text
	default:
		e.pushKill(text)
	}
	e.remove(from, to)
	e.redraw()
}

func (e *Editor) pushKill(text string) {
	if len(e.kills) >= maxKills {
		e.kills = e.kills[1:]
	}
	e.kills = append(e.kills, text)
}

func kills(fn string) bool { return strings.Contains(fn, "kill") || strings.HasPrefix(fn, "unix-") }

// Words.

func isWord(r rune) bool  { return unicode.IsLetter(r) || unicode.IsDigit(r) }
func isBlank(r rune) bool { return r == ' ' || r == '\t' || r == '\n' }

func (e *Editor) wordEnd(at int) int {
	for at < len(e.buf) && !isWord(e.buf[at]) {
		at++
	}
	for at < len(e.buf) && isWord(e.buf[at]) {
		at++
	}
	return at
}

func (e *Editor) wordStart(at int) int {
	for at > 0 && !isWord(e.buf[at-1]) {
		at--
	}
	for at > 0 && isWord(e.buf[at-1]) {
		at--
	}
	return at
}

func (e *Editor) blankStart(at int, stop func(rune) bool) int {
	for at > 0 && stop(e.buf[at-1]) {
		at--
	}
	for at > 0 && !stop(e.buf[at-1]) {
		at--
	}
	return at
}

func (e *Editor) blankEnd(at int) int {
	for at < len(e.buf) && isBlank(e.buf[at]) {
		at++
	}
	for at < len(e.buf) && !isBlank(e.buf[at]) {
		at++
	}
	return at
}

// repeat moves n times, in the other direction if n is negative.
func repeat(n, at int, forth, back func(int) int) int {
	for ; n > 0; n-- {
		at = forth(at)
	}
	for ; n < 0; n++ {
		at = back(at)
	}
	return at
}

func (e *Editor) move(to int) {
	if to = max(0, min(to, len(e.buf))); to == e.point {
		return
	}
	// Combining characters belong to the one before them.
	for to > 0 && to < len(e.buf) && runeWidth(e.buf[to]) == 0 {
		if to > e.point {
			to++
		} else {
			to--
		}
	}
	e.point = to
	e.redraw()
}

// run performs a command.
func (e *Editor) run(fn string) Event {
	if e.cfg.Vi && !e.vi.insert {
		if _, _, ok := e.motion(fn); ok || e.vi.op != 0 {
			return e.viCommand(fn)
		}
	}
	n := e.count()
	switch fn {
	case "backward-char":
		e.move(e.point - n)
	case "forward-char":
		e.move(e.point + n)
	case "beginning-of-line":
		e.move(0)
	case "end-of-line":
		e.move(len(e.buf))
	case "forward-word":
		e.move(repeat(n, e.point, e.wordEnd, e.wordStart))
	case "backward-word":
		e.move(repeat(n, e.point, e.wordStart, e.wordEnd))
	case "shell-forward-word":
		e.move(repeat(n, e.point, e.blankEnd, func(i int) int { return e.blankStart(i, isBlank) }))
	case "shell-backward-word":
		e.move(repeat(n, e.point, func(i int) int { return e.blankStart(i, isBlank) }, e.blankEnd))
	case "delete-char":
		if len(e.buf) == 0 && e.last != "delete-char" {
			e.put("\r\n")
			e.unpaste()
			return EOF
		}
		e.deleteForward(n)
	case "backward-delete-char":
		e.deleteForward(-n)
	case "delete-char-or-list":
		if e.point == len(e.buf) && e.point > 0 {
			return Show
		}
		e.deleteForward(n)
	case "kill-line":
		e.kill(e.point, len(e.buf))
	case "backward-kill-line", "unix-line-discard":
		e.kill(0, e.point)
	case "kill-whole-line":
		e.kill(0, len(e.buf))
	case "kill-word":
		e.kill(e.point, repeat(n, e.point, e.wordEnd, e.wordStart))
	case "backward-kill-word":
		e.kill(e.point, repeat(n, e.point, e.wordStart, e.wordEnd))
	case "shell-kill-word":
		e.kill(e.point, e.blankEnd(e.point))
	case "unix-word-rubout", "shell-backward-kill-word", "vi-unix-word-rubout":
		e.kill(e.blankStart(e.point, isBlank), e.point)
	case "unix-filename-rubout":
		e.kill(e.blankStart(e.point, func(r rune) bool { return isBlank(r) || r == '/' }), e.point)
	case "kill-region":
		e.kill(e.mark, e.point)
	case "copy-region-as-kill":
		lo, hi := min(e.mark, e.point), max(e.mark, e.point)
		e.pushKill(string(e.buf[lo:hi]))
	case "delete-horizontal-space":
		e.deleteSpace()
	default:
		return e.runMore(fn, n)
	}
	return None
}

func (e *Editor) runMore(fn string, n int) Event {
	switch fn {
	case "accept-line", "operate-and-get-next":
		e.leave()
		return Accept
	case "abort":
		e.seq = e.seq[:0]
		e.Ding()
	case "self-insert":
	case "tab-insert":
		e.selfInsert('\t', n)
	case "set-mark":
		e.mark = e.point
	case "exchange-point-and-mark":
		e.mark, e.point = e.point, min(e.mark, len(e.buf))
		e.redraw()
	case "yank", "yank-pop", "yank-last-arg", "insert-last-argument", "yank-nth-arg":
		e.yank(fn)
	case "undo", "vi-undo":
		e.undoOne()
	case "revert-line":
		if len(e.undo) > 0 {
			e.undo = e.undo[:1]
			e.undoOne()
		}
	case "transpose-chars":
		e.transpose()
	case "transpose-words":
		e.transposeWords()
	case "upcase-word", "downcase-word", "capitalize-word":
		e.changeCase(fn, n)
	case "quoted-insert":
		e.want = want{kind: 'q', n: n}
	case "character-search":
		e.want = want{kind: 'f', n: n}
	case "character-search-backward":
		e.want = want{kind: 'f', n: n, back: true}
	case "digit-argument", "universal-argument":
		e.digit()
	case "overwrite-mode":
		e.over = !e.over
	case "clear-screen", "clear-display":
		e.put("\x1b[H\x1b[2J")
		e.Redraw()
	case "redraw-current-line":
		e.redraw()
	case "bracketed-paste-begin":
		e.inWrap, e.paste = true, nil
	case "insert-comment":
		e.comment()
		e.leave()
		return Accept
	case "complete", "complete-command", "complete-filename", "complete-variable", "complete-username", "complete-hostname", "menu-complete", "menu-complete-backward", "vi-complete", "dynamic-complete-history":
		e.Arg = fn
		return Complete
	case "possible-completions", "possible-filename-completions", "possible-command-completions", "possible-variable-completions":
		e.Arg = fn
		return Show
	case "insert-completions":
		return All
	case "history-expand-line", "shell-expand-line", "tilde-expand", "alias-expand-line", "history-and-alias-expand-line", "glob-expand-word", "vi-tilde-expand", "magic-space":
		e.Arg = fn
		return Expand
	case "edit-and-execute-command", "vi-edit-and-execute-command":
		e.leave()
		return Edit
	case "start-kbd-macro":
		e.rec, e.macro = true, nil
	case "end-kbd-macro":
		e.rec = false
		e.macro = e.macro[:max(0, len(e.macro)-2)]
	case "call-last-kbd-macro":
		if !e.rec {
			e.feed = append(slices.Clone(e.macro), e.feed...)
		}
	case "emacs-editing-mode":
		e.cfg.Vi = false
	case "vi-editing-mode":
		e.cfg.Vi, e.vi.insert = true, true
	default:
		if e.historyCommand(fn, n) {
			return None
		}
		if strings.HasPrefix(fn, "vi-") {
			return e.viCommand(fn)
		}
		e.Ding()
	}
	return None
}

func (e *Editor) deleteForward(n int) {
	from, to := e.point, e.point+n
	if n < 0 {
		from, to = to, from
	}
	from, to = max(0, from), min(len(e.buf), to)
	if from == to {
		e.Ding()
		return
	}
	for from > 0 && n < 0 && runeWidth(e.buf[from]) == 0 {
		from--
	}
	for to < len(e.buf) && runeWidth(e.buf[to]) == 0 && n > 0 {
		to++
	}
	if e.hasArg && to-from > 1 {
		e.kill(from, to)
		return
	}
	e.save(false)
	last, end := e.buf[from], to == len(e.buf) && e.point == to
	e.remove(from, to)
	if end && to-from == 1 && last > 0x20 && last < 0x7f {
		if row, col := e.place(e.point); row == e.row && col+2 < e.cfg.Columns {
			e.put("\b\x1b[K")
			return
		}
	}
	e.redraw()
}

func (e *Editor) deleteSpace() {
	from, to := e.point, e.point
	for from > 0 && isBlank(e.buf[from-1]) {
		from--
	}
	for to < len(e.buf) && isBlank(e.buf[to]) {
		to++
	}
	if from < to {
		e.save(false)
		e.remove(from, to)
		e.redraw()
	}
}

func (e *Editor) yank(fn string) {
	switch fn {
	case "yank":
		if len(e.kills) == 0 {
			return
		}
		e.ring = len(e.kills) - 1
		e.save(false)
		e.mark = e.point
		text := []rune(e.kills[e.ring])
		e.insert(text)
		e.yanked = len(text)
	case "yank-pop":
		if e.last != "yank" && e.last != "yank-pop" || len(e.kills) == 0 || e.yanked > e.point {
			e.Ding()
			return
		}
		e.ring = (e.ring + len(e.kills) - 1) % len(e.kills)
		e.remove(e.point-e.yanked, e.point)
		text := []rune(e.kills[e.ring])
		e.insert(text)
		e.yanked = len(text)
	default:
		e.yankArg(fn)
		return
	}
	e.redraw()
}

// yankArg inserts a word of the line before; again, the same of the one before that.
func (e *Editor) yankArg(fn string) {
	again := fn != "yank-nth-arg" && (e.last == "yank-last-arg" || e.last == "insert-last-argument")
	if !again {
		e.lastArg = lastArg{at: e.at}
	}
	if e.lastArg.at--; e.lastArg.at < 0 || e.lastArg.at >= len(e.cfg.Lines) {
		e.lastArg.at++
		e.Ding()
		return
	}
	words := strings.Fields(e.cfg.Lines[e.lastArg.at])
	i := len(words) - 1
	if fn == "yank-nth-arg" {
		i = 1
		if e.hasArg {
			i = e.arg
		}
	} else if e.hasArg && !again {
		i = e.arg
	}
	word := ""
	if i >= 0 && i < len(words) {
		word = words[i]
	}
	e.save(false)
	if again && e.lastArg.length <= e.point {
		e.remove(e.point-e.lastArg.length, e.point)
	}
	e.insert([]rune(word))
	e.lastArg.length = utf8.RuneCountInString(word)
	e.redraw()
}

func (e *Editor) undoOne() {
	n := len(e.undo)
	if n == 0 {
		e.Ding()
		return
	}
	s := e.undo[n-1]
	e.undo = e.undo[:n-1]
	e.buf, e.point = s.text, min(s.point, len(s.text))
	e.redraw()
}

func (e *Editor) transpose() {
	if e.point == 0 || len(e.buf) < 2 {
		e.Ding()
		return
	}
	e.save(false)
	at := min(e.point, len(e.buf)-1)
	e.buf[at-1], e.buf[at] = e.buf[at], e.buf[at-1]
	e.point = at + 1
	e.redraw()
}

func (e *Editor) transposeWords() {
	end := e.wordEnd(e.point)
	start := e.wordStart(end)
	firstStart := e.wordStart(start)
	firstEnd := e.wordEnd(firstStart)
	if firstStart >= start || firstEnd > start {
		e.Ding()
		return
	}
	e.save(false)
	text := slices.Concat(e.buf[start:end], e.buf[firstEnd:start], e.buf[firstStart:firstEnd])
	copy(e.buf[firstStart:end], text)
	e.point = end
	e.redraw()
}

func (e *Editor) changeCase(fn string, n int) {
	from, to := e.point, repeat(n, e.point, e.wordEnd, e.wordStart)
	if from > to {
		from, to = to, from
	}
	e.save(false)
	inWord := false
	for i := from; i < to; i++ {
		r := e.buf[i]
		switch {
		case fn == "upcase-word", fn == "capitalize-word" && !inWord:
			e.buf[i] = unicode.ToUpper(r)
		default:
			e.buf[i] = unicode.ToLower(r)
		}
		inWord = isWord(r)
	}
	e.point = max(e.point, to)
	e.redraw()
}

// digit takes a digit of the numeric argument.
func (e *Editor) digit() {
	c := byte(0)
	if len(e.seqKey) > 0 {
		c = e.seqKey[len(e.seqKey)-1]
	}
	switch {
	case c == '-':
		e.argSign, e.hasArg = -1, true
		if e.arg == 0 {
			e.arg = 1
		}
		e.fresh = true
	case c >= '0' && c <= '9':
		if e.fresh || !e.hasArg {
			e.arg = 0
		}
		e.fresh = false
		e.arg, e.hasArg = min(e.arg*10+int(c-'0'), 1000000), true
	}
}

func (e *Editor) comment() {
	c := e.cfg.Comment
	if c == "" {
		c = "#"
	}
	e.save(false)
	e.point = 0
	e.insert([]rune(c))
	e.point = len(e.buf)
	e.redraw()
}

// wanted takes the character that a command waited for.
func (e *Editor) wanted(w want, r rune) Event {
	switch w.kind {
	case 'q':
		e.begin("quoted-insert")
		e.selfInsert(r, max(1, w.n))
		e.redraw()
	case 'f':
		back := w.back != (w.n < 0)
		for range max(w.n, -w.n) {
			if to, ok := e.find(r, back); ok {
				e.move(to)
			} else {
				e.Ding()
				break
			}
		}
	default:
		return e.viWanted(w, r)
	}
	e.end()
	return None
}

func (e *Editor) find(r rune, back bool) (int, bool) {
	if back {
		for i := e.point - 1; i >= 0; i-- {
			if e.buf[i] == r {
				return i, true
			}
		}
		return 0, false
	}
	for i := e.point + 1; i < len(e.buf); i++ {
		if e.buf[i] == r {
			return i, true
		}
	}
	return 0, false
}
