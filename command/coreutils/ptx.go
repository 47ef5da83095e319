package coreutils

import (
	"bytes"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/posixre"
	"agentrun.dev/command/tool"
)

// maxPtx bounds the text that an index is made of.
const maxPtx = 64 << 20

const keyPtxFormat = tool.KeyOwn

var ptxSpec = tool.Spec{
	Usage: []string{"[OPTION]... [INPUT]...   (without -G)", "-G [OPTION]... [INPUT [OUTPUT]]"},
	About: "Output a permuted index, including context, of the words in the input files.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'A', Long: "auto-reference", Help: "output automatically generated references"},
		{Short: 'G', Long: "traditional", Help: "behave more like System V 'ptx'"},
		{Short: 'F', Long: "flag-truncation", Arg: getopt.Required, Name: "STRING", Help: "use STRING for flagging line truncations. The default is '/'"},
		{Short: 'M', Long: "macro-name", Arg: getopt.Required, Name: "STRING", Help: "macro name to use instead of 'xx'"},
		{Short: 'O', Help: "generate output as roff directives"},
		{Short: 'R', Long: "right-side-refs", Help: "put references at right, not counted in -w"},
		{Short: 'S', Long: "sentence-regexp", Arg: getopt.Required, Name: "REGEXP", Help: "for end of lines or end of sentences"},
		{Short: 'T', Help: "generate output as TeX directives"},
		{Long: "format", Key: keyPtxFormat, Arg: getopt.Required, Name: "FORMAT", Help: "roff, as -O, or tex, as -T"},
		{Short: 'W', Long: "word-regexp", Arg: getopt.Required, Name: "REGEXP", Help: "use REGEXP to match each keyword"},
		{Short: 'b', Long: "break-file", Arg: getopt.Required, Name: "FILE", Help: "word break characters in this FILE"},
		{Short: 'f', Long: "ignore-case", Help: "fold lower case to upper case for sorting"},
		{Short: 'g', Long: "gap-size", Arg: getopt.Required, Name: "NUMBER", Help: "gap size in columns between output fields"},
		{Short: 'i', Long: "ignore-file", Arg: getopt.Required, Name: "FILE", Help: "read ignore word list from FILE"},
		{Short: 'o', Long: "only-file", Arg: getopt.Required, Name: "FILE", Help: "read only word list from this FILE"},
		{Short: 'r', Long: "references", Help: "first field of each line is a reference"},
		{Short: 't', Long: "typeset-mode", Help: "- not implemented -"},
		{Short: 'w', Long: "width", Arg: getopt.Required, Name: "NUMBER", Help: "output width in columns, reference excluded"},
	},
	Package: tool.Coreutils,
}

// occurrence is a word in a text, with the context that it stands in.
type occurrence struct {
	text       *ptxText
	start, end int // of the word
	from, to   int // of the context
	line       int // where the line of the word starts, for -r; its number from 0, for -A
}

// ptxText is one input.
type ptxText struct {
	name  string
	b     []byte
	lines int
}

// ptxSpan is a part of a text.
type ptxSpan struct{ start, end int }

func (s ptxSpan) len() int { return s.end - s.start }

// indexer is a run of ptx.
type indexer struct {
	t                                 *tool.T
	auto, gnu, right, fold, refs      bool
	format                            byte // d dumb, O roff, T TeX
	flag, macro                       string
	gap, width, half                  int
	sentence, word                    *posixre.Regexp
	source                            string // of sentence
	inWord                            [256]bool
	ignored, only                     map[string]bool
	found                             []occurrence
	maxWord, maxRef                   int
	maxBefore, maxAfter               int
	tail, before, after, head         ptxSpan
	tailCut, beforeCut, afterCut, cut bool
	ref                               string
}

// Ptx makes a permuted index.
func Ptx(t *tool.T) int {
	opts, files := t.Parse(&ptxSpec)
	x := &indexer{t: t, gnu: true, flag: "/", macro: "xx", gap: 3, width: 72}
	sentence, word, breaks := "", "", ""
	hasSentence, hasWord := false, false
	ignore, only := "", ""
	for _, o := range opts {
		switch o.Key {
		case 'A':
			x.auto = true
		case 'G':
			x.gnu = false
		case 'F':
			x.flag = ptxUnescape(o.Arg)
		case 'M':
			x.macro = o.Arg
		case 'O', 'T':
			x.format = byte(o.Key)
		case keyPtxFormat:
			x.format = "OT"[t.Choice(1, "--format", o.Arg, [][]string{{"roff"}, {"tex"}})]
		case 'R':
			x.right = true
		case 'S':
			sentence, hasSentence = ptxUnescape(o.Arg), true
		case 'W':
			word, hasWord = ptxUnescape(o.Arg), true
		case 'b':
			breaks = o.Arg
		case 'f':
			x.fold = true
		case 'g', 'w':
			n, err := strconv.ParseUint(o.Arg, 10, 31)
			if err != nil || n == 0 {
				t.Fatal(1, "invalid %s width: %s", map[rune]string{'g': "gap", 'w': "line"}[o.Key], tool.Quote(o.Arg))
			}
			if n = min(n, 1<<20); o.Key == 'g' {
				x.gap = int(n)
			} else {
				x.width = int(n)
			}
		case 'i':
			ignore = o.Arg
		case 'o':
			only = o.Arg
		case 'r':
			x.refs = true
		}
	}
	if x.format == 0 {
		if x.format = 'd'; !x.gnu {
			x.format = 'O'
		}
	}
	if !x.gnu && len(files) > 1 {
		if err := t.OpenAt(1, files[1], syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC, 0o666); err != nil {
			t.Fatal(1, "%s: %s", tool.QuoteF(files[1]), tool.Strerror(err))
		}
		if len(files) > 2 {
			t.Extra(1, files[2])
		}
		files = files[:1]
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	x.patterns(sentence, hasSentence, word, hasWord, breaks)
	x.ignored, x.only = x.list(ignore), x.list(only)
	left := maxPtx
	for _, name := range files {
		text := &ptxText{b: x.read(name, left)}
		if left -= len(text.b); name != "-" {
			text.name = name
		}
		x.scan(text)
	}
	sort.SliceStable(x.found, func(i, j int) bool { return x.key(&x.found[i]) < x.key(&x.found[j]) })
	x.measure()
	for i := range x.found {
		if t.Step(1) != nil {
			t.Check()
		}
		x.fields(&x.found[i])
		x.write(&x.found[i])
	}
	return 0
}

// ptxUnescape replaces \n, \t, \xHH and their like.
func ptxUnescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if k := strings.IndexByte("abfnrtv", s[i]); k >= 0 {
			b.WriteByte("\a\b\f\n\r\t\v"[k])
		} else if s[i] == 'x' {
			n := i + 1
			for n < len(s) && n < i+4 && strings.IndexByte("0123456789abcdefABCDEF", s[n]) >= 0 {
				n++
			}
			v, _ := strconv.ParseUint(s[i+1:n], 16, 16)
			b.WriteByte(byte(v))
			i = n - 1
		} else {
			b.WriteString(s[i-1 : i+1])
		}
	}
	return b.String()
}

// patterns prepares what ends a sentence and what a word is.
func (x *indexer) patterns(sentence string, hasSentence bool, word string, hasWord bool, breaks string) {
	compile := func(p string) *posixre.Regexp {
		re, err := posixre.Compile(p, posixre.Options{Flavor: posixre.Emacs, Multiline: true, Fold: x.fold})
		if err != nil {
			x.t.Fatal(1, "%v (for regexp %s)", err, tool.Quote(p))
		}
		return re
	}
	switch {
	case hasSentence:
		x.source = sentence
	case x.gnu && !x.refs:
		x.source = "[.?!][]\"')}]*\\($\\|\t\\|  \\)[ \t\n]*"
	default:
		x.source = "\n"
	}
	if x.source != "" {
		x.sentence = compile(x.source)
	}
	switch {
	case breaks != "":
		for i := range x.inWord {
			x.inWord[i] = true
		}
		for _, c := range x.read(breaks, maxPtx) {
			x.inWord[c] = false
		}
		if !x.gnu {
			x.inWord[' '], x.inWord['\t'], x.inWord['\n'] = false, false, false
		}
	case x.gnu:
		for c := range x.inWord {
			x.inWord[c] = c|0x20 >= 'a' && c|0x20 <= 'z' && c < 128
		}
	default:
		for c := range x.inWord {
			x.inWord[c] = c != ' ' && c != '\t' && c != '\n'
		}
	}
	if hasWord && word != "" {
		x.word = compile(word)
	}
}

func (x *indexer) read(name string, limit int) []byte {
	in, err := x.t.Open(name)
	var b []byte
	if err == nil {
		defer in.Close()
		if b, err = io.ReadAll(io.LimitReader(in, int64(limit)+1)); err == nil && len(b) > limit {
			err = syscall.EFBIG
		}
	}
	if err != nil {
		x.t.Fatal(1, "%s: %s", tool.QuoteF(name), tool.Strerror(err))
	}
	return b
}

// list reads words, one a line.
func (x *indexer) list(name string) map[string]bool {
	if name == "" {
		return nil
	}
	words := map[string]bool{}
	for _, w := range strings.Split(string(x.read(name, maxPtx)), "\n") {
		if w != "" {
			words[x.folded(w)] = true
		}
	}
	return words
}

func (x *indexer) folded(w string) string {
	if !x.fold {
		return w
	}
	b := []byte(w)
	for i, c := range b {
		if c >= 'a' && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

func (x *indexer) key(o *occurrence) string { return x.folded(string(o.text.b[o.start:o.end])) }

// find matches a pattern from an offset on; -1 is nowhere.
func (x *indexer) find(re *posixre.Regexp, b []byte, at int) (start, end int) {
	m, err := re.Find(b[at:])
	if err != nil {
		x.t.Fatal(1, "%v", err)
	}
	if m == nil {
		return -1, -1
	}
	return at + m[0], at + m[1]
}

// scan finds the words of a text.
func (x *indexer) scan(text *ptxText) {
	b := text.b
	lineStart, lineScan, lines := 0, 0, 0
	if x.refs {
		lineScan = skipOther(b, 0, len(b))
		x.maxRef = max(x.maxRef, lineScan)
	}
	for at := 0; at < len(b); {
		next := len(b)
		if x.sentence != nil {
			switch s, e := x.find(x.sentence, b, at); {
			case s < 0:
			case s == at:
				x.t.Fatal(1, "error: regular expression has a match of length zero: %s", tool.Quote(x.source))
			default:
				next = e
			}
		}
		end := backBlanks(b, next, at)
		from := at
		if x.refs {
			from = skipBlanks(b, skipOther(b, at, end), end)
		}
		for cursor := at; cursor < end; {
			if x.t.Step(1) != nil {
				x.t.Check()
			}
			start, stop := x.nextWord(b, cursor, end)
			if start < 0 {
				break
			}
			if cursor = stop; start == stop {
				cursor++
				continue
			}
			x.maxWord = max(x.maxWord, stop-start)
			for lineScan < start {
				if b[lineScan] != '\n' {
					lineScan++
					continue
				}
				lines++
				lineScan++
				lineStart = lineScan
				if x.refs {
					lineScan = skipOther(b, lineScan, len(b))
					x.maxRef = max(x.maxRef, lineScan-lineStart)
				}
			}
			if x.refs && lineScan > start {
				continue // it is in the reference
			}
			o := occurrence{text: text, start: start, end: stop, from: from, to: end, line: lineStart}
			if x.auto {
				o.line = lines
			}
			if k := x.key(&o); x.ignored[k] || x.only != nil && !x.only[k] {
				continue
			}
			if len(x.found) >= maxPtx/64 {
				x.t.Fatal(1, "%s", tool.Strerror(syscall.ENOMEM))
			}
			x.found = append(x.found, o)
		}
		at = next
	}
	text.lines = bytes.Count(b, []byte("\n"))
	if x.auto {
		x.maxRef = max(x.maxRef, len(text.name)+len(strconv.Itoa(text.lines+1)))
	}
}

func (x *indexer) nextWord(b []byte, at, end int) (start, stop int) {
	if x.word != nil {
		return x.find(x.word, b[:end], at)
	}
	for at < end && !x.inWord[b[at]] {
		at++
	}
	if at == end {
		return -1, -1
	}
	for stop = at; stop < end && x.inWord[b[stop]]; stop++ {
	}
	return at, stop
}

func blank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func skipBlanks(b []byte, at, end int) int {
	for at < end && blank(b[at]) {
		at++
	}
	return at
}

func skipOther(b []byte, at, end int) int {
	for at < end && !blank(b[at]) {
		at++
	}
	return at
}

func backBlanks(b []byte, at, start int) int {
	for at > start && blank(b[at-1]) {
		at--
	}
	return at
}

// skip goes over a word, or over a character that is in none.
func (x *indexer) skip(b []byte, at, end int) int {
	switch {
	case at >= end:
		return at
	case x.word != nil:
		if s, e := x.find(x.word, b[:end], at); s == at && e > at {
			return e
		}
		return at + 1
	case x.inWord[b[at]]:
		for at < end && x.inWord[b[at]] {
			at++
		}
		return at
	}
	return at + 1
}

// measure settles how wide the fields may be.
func (x *indexer) measure() {
	if x.auto {
		x.maxRef++
	}
	if (x.auto || x.refs) && !x.right {
		x.width = max(x.width-x.maxRef-x.gap, 0)
	}
	x.half = x.width / 2
	x.maxBefore, x.maxAfter = x.half-x.gap, x.half
	if x.gnu {
		x.maxBefore = max(x.maxBefore-2*len(x.flag), 0)
		x.maxAfter -= 2 * len(x.flag)
	} else {
		x.maxAfter -= 2*len(x.flag) + 1
	}
}

// fields divides the context of a word: what stands before it, it with what follows, and the rest of either side, which is
// shown where there is room at the other end.
func (x *indexer) fields(o *occurrence) {
	b, flag := o.text.b, x.flag != ""
	x.after = ptxSpan{o.start, o.end}
	cursor := o.end
	for cursor < o.to && cursor <= o.start+x.maxAfter {
		x.after.end = cursor
		cursor = x.skip(b, cursor, o.to)
	}
	if cursor <= o.start+x.maxAfter {
		x.after.end = cursor
	}
	x.afterCut = flag && x.after.end < o.to
	x.after.end = backBlanks(b, x.after.end, x.after.start)
	left := o.from
	if o.start-o.from > x.half+x.maxWord {
		left = x.skip(b, o.start-(x.half+x.maxWord), o.start)
	}
	left = min(left, o.start)
	x.before = ptxSpan{left, backBlanks(b, o.start, left)}
	for x.before.start+x.maxBefore < x.before.end {
		x.before.start = x.skip(b, x.before.start, x.before.end)
	}
	x.beforeCut = flag && backBlanks(b, x.before.start, 0) > o.from
	x.before.start = skipBlanks(b, x.before.start, len(b)) // perhaps past the end: GNU then counts a column less than none
	x.tail, x.tailCut = ptxSpan{}, false
	if room := x.maxBefore - x.before.len() - x.gap; room > 0 {
		start := skipBlanks(b, x.after.end, len(b))
		x.tail = ptxSpan{start, start}
		cursor := start
		for cursor < o.to && cursor < start+room {
			x.tail.end = cursor
			cursor = x.skip(b, cursor, o.to)
		}
		if cursor < start+room {
			x.tail.end = cursor
		}
		if x.tail.end > x.tail.start {
			x.afterCut = false
			x.tailCut = flag && x.tail.end < o.to
		}
		x.tail.end = backBlanks(b, x.tail.end, x.tail.start)
	}
	x.head, x.cut = ptxSpan{}, false
	if room := x.maxAfter - x.after.len() - x.gap; room > 0 {
		x.head = ptxSpan{left, backBlanks(b, x.before.start, 0)}
		for x.head.start+room < x.head.end {
			x.head.start = x.skip(b, x.head.start, x.head.end)
		}
		if x.head.end > x.head.start {
			x.beforeCut = false
			x.cut = flag && x.head.start > o.from
		}
		x.head.start = skipBlanks(b, x.head.start, x.head.end)
	}
	x.ref = ""
	if x.auto {
		x.ref = fmt.Sprintf("%s:%d", o.text.name, o.line+1)
	} else if x.refs {
		x.ref = string(b[o.line:skipOther(b, o.line, max(o.to, o.line))])
	}
}

// print writes a part of the text, on one line and safe for the format.
func (x *indexer) print(b []byte) {
	out := x.t.Out
	for _, c := range b {
		switch {
		case blank(c):
			out.WriteByte(' ')
		case x.format == 'O' && c == '"':
			out.WriteString(`""`)
		case x.format == 'T' && strings.IndexByte("$%&#_", c) >= 0:
			out.WriteString("\\" + string(c))
		case x.format == 'T' && (c == '{' || c == '}'):
			out.WriteString("$\\" + string(c) + "$")
		case x.format == 'T' && c == '\\':
			out.WriteString(`\backslash{}`)
		default:
			out.WriteByte(c)
		}
	}
}

func (x *indexer) part(o *occurrence, s ptxSpan) {
	if s.end > s.start {
		x.print(o.text.b[s.start:s.end])
	}
}

func (x *indexer) mark(on bool) int {
	if on {
		return len(x.flag)
	}
	return 0
}

func (x *indexer) flagIf(on bool) {
	if on {
		x.t.Out.WriteString(x.flag)
	}
}

func (x *indexer) spaces(n int) {
	for ; n > 0; n-- {
		x.t.Out.WriteByte(' ')
	}
}

// write writes an entry of the index.
func (x *indexer) write(o *occurrence) {
	out := x.t.Out
	switch x.format {
	case 'O':
		out.WriteString("." + x.macro + ` "`)
		x.part(o, x.tail)
		x.flagIf(x.tailCut)
		out.WriteString(`" "`)
		x.flagIf(x.beforeCut)
		x.part(o, x.before)
		out.WriteString(`" "`)
		x.part(o, x.after)
		x.flagIf(x.afterCut)
		out.WriteString(`" "`)
		x.flagIf(x.cut)
		x.part(o, x.head)
		out.WriteByte('"')
		if x.auto || x.refs {
			out.WriteString(` "`)
			x.print([]byte(x.ref))
			out.WriteByte('"')
		}
	case 'T':
		key := x.after.start
		key = x.skip(o.text.b, key, x.after.end)
		out.WriteString("\\" + x.macro + " ")
		for _, s := range []ptxSpan{x.tail, x.before, {x.after.start, key}, {key, x.after.end}, x.head} {
			out.WriteByte('{')
			x.part(o, s)
			out.WriteByte('}')
		}
		if x.auto || x.refs {
			out.WriteByte('{')
			x.print([]byte(x.ref))
			out.WriteByte('}')
		}
	default:
		x.writeLine(o)
	}
	out.WriteByte('\n')
}

// writeLine writes an entry for a terminal.
func (x *indexer) writeLine(o *occurrence) {
	right := (x.auto || x.refs) && x.right
	if !x.right {
		x.print([]byte(x.ref))
		n := x.maxRef + x.gap - len(x.ref)
		if x.auto {
			x.t.Out.WriteByte(':')
			n--
		}
		x.spaces(n)
	}
	room := x.half - x.gap - x.before.len() - x.mark(x.beforeCut)
	if x.tail.len() > 0 {
		x.part(o, x.tail)
		x.flagIf(x.tailCut)
		room -= x.tail.len() + x.mark(x.tailCut)
	}
	x.spaces(room)
	x.flagIf(x.beforeCut)
	x.part(o, x.before)
	x.spaces(x.gap)
	x.part(o, x.after)
	x.flagIf(x.afterCut)
	room = x.half - x.after.len() - x.mark(x.afterCut)
	if x.head.len() > 0 {
		x.spaces(room - x.head.len() - x.mark(x.cut))
		x.flagIf(x.cut)
		x.part(o, x.head)
	} else if right {
		x.spaces(room)
	}
	if right {
		x.spaces(x.gap)
		x.print([]byte(x.ref))
	}
}
