package lineedit

import (
	"maps"
	"slices"
	"unicode"
)

// viState is vi's part of an editor.
type viState struct {
	insert bool
	op     byte // an operator that waits for its motion: d, c or y
	find   rune // of f, F, t and T
	findBy byte
	marks  map[rune]int
}

func (v viState) pending() bool { return v.op != 0 }

func (v viState) clone() viState {
	v.marks = maps.Clone(v.marks)
	return v
}

func (e *Editor) isBig() bool { return len(e.seqKey) == 1 && e.seqKey[0] >= 'A' && e.seqKey[0] <= 'Z' }

func viClass(r rune, big bool) int {
	switch {
	case isBlank(r):
		return 0
	case big || unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
		return 1
	}
	return 2
}

func (e *Editor) viNext(at int, big bool) int {
	if at < len(e.buf) {
		c := viClass(e.buf[at], big)
		for at < len(e.buf) && c != 0 && viClass(e.buf[at], big) == c {
			at++
		}
	}
	for at < len(e.buf) && isBlank(e.buf[at]) {
		at++
	}
	return at
}

func (e *Editor) viPrev(at int, big bool) int {
	for at > 0 && isBlank(e.buf[at-1]) {
		at--
	}
	if at > 0 {
		c := viClass(e.buf[at-1], big)
		for at > 0 && viClass(e.buf[at-1], big) == c {
			at--
		}
	}
	return at
}

func (e *Editor) viEnd(at int, big bool) int {
	at++
	for at < len(e.buf) && isBlank(e.buf[at]) {
		at++
	}
	if at < len(e.buf) {
		c := viClass(e.buf[at], big)
		for at+1 < len(e.buf) && viClass(e.buf[at+1], big) == c {
			at++
		}
	}
	return min(at, max(0, len(e.buf)-1))
}

// motion returns where a command would move to; whole tells that the character there belongs to what an operator takes.
func (e *Editor) motion(fn string) (to int, whole, ok bool) {
	n := max(1, e.count())
	at := e.point
	step := func(f func(int, bool) int) {
		for range n {
			at = f(at, e.isBig())
		}
	}
	switch fn {
	case "backward-char":
		at -= n
	case "forward-char":
		at += n
	case "beginning-of-line":
		at = 0
	case "end-of-line":
		at = len(e.buf)
	case "vi-first-print":
		for at = 0; at < len(e.buf) && isBlank(e.buf[at]); at++ {
		}
	case "vi-next-word":
		if e.vi.op == 'c' && at < len(e.buf) && !isBlank(e.buf[at]) {
			at--
			step(e.viEnd)
			return at + 1, false, true
		}
		step(e.viNext)
	case "vi-prev-word":
		step(e.viPrev)
	case "vi-end-word":
		step(e.viEnd)
		whole = true
	case "vi-column":
		at = n - 1
	case "vi-match":
		at, ok = e.viMatch()
		return at, true, ok
	default:
		return 0, false, false
	}
	return max(0, min(at, len(e.buf))), whole, true
}

func (e *Editor) viMatch() (int, bool) {
	const open, shut = "([{", ")]}"
	for i := e.point; i < len(e.buf); i++ {
		for k := range open {
			step, mine, other := 1, rune(open[k]), rune(shut[k])
			if e.buf[i] == other {
				step, mine, other = -1, other, mine
			} else if e.buf[i] != mine {
				continue
			}
			depth := 0
			for j := i; j >= 0 && j < len(e.buf); j += step {
				switch e.buf[j] {
				case mine:
					depth++
				case other:
					if depth--; depth == 0 {
						return j, true
					}
				}
			}
			return 0, false
		}
	}
	return 0, false
}

// apply lets the operator that waits act up to a place.
func (e *Editor) apply(to int, whole bool) {
	op := e.vi.op
	e.vi.op = 0
	from := e.point
	if from > to {
		from, to = to, from
	}
	if whole {
		to = min(to+1, len(e.buf))
	}
	switch op {
	case 'y':
		e.pushKill(string(e.buf[from:to]))
		e.point = from
		e.redraw()
	default:
		e.kill(from, to)
		if e.vi.insert = op == 'c'; !e.vi.insert {
			e.viRest()
		}
	}
	e.end()
}

// viRest keeps the cursor on a character, as it is in command mode.
func (e *Editor) viRest() {
	if n := len(e.buf); e.point >= n && n > 0 {
		e.move(n - 1)
	}
}

// viCommand runs vi's commands.
func (e *Editor) viCommand(fn string) Event {
	key := byte(0)
	if len(e.seqKey) > 0 {
		key = e.seqKey[len(e.seqKey)-1]
	}
	if e.vi.op != 0 {
		if key == e.vi.op { // dd, cc, yy
			e.point = 0
			e.apply(len(e.buf), false)
			return None
		}
	}
	if to, whole, ok := e.motion(fn); ok {
		if e.vi.op != 0 {
			e.apply(to, whole)
			return None
		}
		e.move(to)
		e.viRest()
		return None
	}
	n := max(1, e.count())
	switch fn {
	case "vi-movement-mode":
		if e.vi.insert {
			e.vi.insert = false
			e.over = false
			e.vi.op = 0
			e.move(e.point - 1)
		}
	case "vi-insertion-mode":
		e.vi.insert = true
	case "vi-append-mode":
		e.vi.insert = true
		e.move(e.point + 1)
	case "vi-append-eol":
		e.vi.insert = true
		e.move(len(e.buf))
	case "vi-insert-beg":
		e.vi.insert = true
		e.move(0)
	case "vi-replace":
		e.vi.insert, e.over = true, true
	case "vi-arg-digit":
		e.arg, e.hasArg = min(e.arg*10+int(key-'0'), 1000000), true
	case "vi-delete-to", "vi-change-to", "vi-yank-to":
		op := map[string]byte{"vi-delete-to": 'd', "vi-change-to": 'c', "vi-yank-to": 'y'}[fn]
		if e.vi.op = op; e.isBig() {
			if op == 'y' {
				e.point = 0
			}
			e.apply(len(e.buf), false)
		}
	case "vi-delete":
		e.kill(e.point, min(len(e.buf), e.point+n))
		e.viRest()
	case "vi-rubout":
		e.kill(max(0, e.point-n), e.point)
	case "vi-subst":
		if e.isBig() {
			e.kill(0, len(e.buf))
		} else {
			e.kill(e.point, min(len(e.buf), e.point+n))
		}
		e.vi.insert = true
	case "vi-put":
		e.viPut(n, e.isBig())
	case "vi-change-case":
		e.viCase(n)
	case "vi-change-char":
		e.want = want{kind: 'r', n: n}
	case "vi-char-search":
		return e.viFind(key, n)
	case "vi-set-mark":
		e.want = want{kind: 'm'}
	case "vi-goto-mark":
		e.want = want{kind: '`'}
	case "vi-search":
		e.askSearch('/', key == '?')
	case "vi-search-again":
		e.searchFor(e.search.last, e.search.forth != (key == 'N'))
		e.redraw()
	case "vi-fetch-history":
		to := 0
		if e.hasArg {
			to = e.arg - 1
		}
		e.visit(max(0, min(to, len(e.cfg.Lines))))
		e.redraw()
	case "vi-yank-arg":
		e.move(min(len(e.buf), e.point+1))
		e.save(false)
		e.insert([]rune{' '})
		e.yankArg("yank-last-arg")
		e.vi.insert = true
	case "vi-eof-maybe":
		if len(e.buf) == 0 {
			e.put("\r\n")
			e.unpaste()
			return EOF
		}
		e.leave()
		return Accept
	default:
		e.Ding()
	}
	return None
}

func (e *Editor) viPut(n int, before bool) {
	if len(e.kills) == 0 {
		e.Ding()
		return
	}
	e.save(false)
	if !before && len(e.buf) > 0 {
		e.point = min(len(e.buf), e.point+1)
	}
	text := []rune(e.kills[len(e.kills)-1])
	e.insert(slices.Repeat(text, min(n, 1000)))
	e.point = max(0, e.point-1)
	e.redraw()
}

func (e *Editor) viCase(n int) {
	e.save(false)
	for ; n > 0 && e.point < len(e.buf); n-- {
		r := e.buf[e.point]
		if unicode.IsUpper(r) {
			r = unicode.ToLower(r)
		} else {
			r = unicode.ToUpper(r)
		}
		e.buf[e.point] = r
		e.point++
	}
	e.redraw()
	e.viRest()
}

// viFind is f, F, t, T, and their repetitions ; and ,.
func (e *Editor) viFind(key byte, n int) Event {
	switch key {
	case ';', ',':
		by := e.vi.findBy
		if by == 0 {
			e.Ding()
			return None
		}
		if key == ',' {
			by ^= 0x20
		}
		e.viGo(by, e.vi.find, n)
	default:
		e.want = want{kind: key, n: n}
	}
	return None
}

func (e *Editor) viGo(by byte, r rune, n int) {
	back := by == 'F' || by == 'T'
	at := e.point
	save := at
	for range n {
		to, ok := e.find(r, back)
		if !ok {
			e.point = save
			e.vi.op = 0
			e.Ding()
			return
		}
		at, e.point = to, to
	}
	e.point = save
	switch by {
	case 't':
		at--
	case 'T':
		at++
	}
	if e.vi.op != 0 {
		e.apply(at, !back)
		return
	}
	e.move(at)
}

// viWanted takes the character that r, f, m and the like wait for.
func (e *Editor) viWanted(w want, r rune) Event {
	switch w.kind {
	case 's':
		e.askedSearch(r)
	case 'r':
		if r != 0x1b && e.point+w.n <= len(e.buf) {
			e.save(false)
			for i := range w.n {
				e.buf[e.point+i] = r
			}
			e.point += w.n - 1
			e.redraw()
		}
	case 'm':
		if e.vi.marks == nil {
			e.vi.marks = make(map[rune]int)
		}
		e.vi.marks[r] = e.point
	case '`':
		if at, ok := e.vi.marks[r]; ok {
			e.move(at)
		}
	case 'f', 'F', 't', 'T':
		e.vi.find, e.vi.findBy = r, w.kind
		e.viGo(w.kind, r, max(1, w.n))
	}
	e.end()
	return None
}
