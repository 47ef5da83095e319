package coreutils

import (
	"bufio"
	"math"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var fmtSpec = tool.Spec{
	Usage: []string{"[-WIDTH] [OPTION]... [FILE]..."},
	About: "Reformat each paragraph in the FILE(s), writing to standard output.\nThe option -WIDTH is an abbreviated form of --width=DIGITS.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'c', Long: "crown-margin", Help: "preserve indentation of first two lines"},
		{Short: 'p', Long: "prefix", Arg: getopt.Required, Name: "STRING", Help: "reformat only lines beginning with STRING, reattaching the prefix to reformatted lines"},
		{Short: 's', Long: "split-only", Help: "split long lines, but do not refill"},
		{Short: 't', Long: "tagged-paragraph", Help: "indentation of first line different from second"},
		{Short: 'u', Long: "uniform-spacing", Help: "one space between words, two after sentences"},
		{Short: 'w', Long: "width", Arg: getopt.Required, Name: "WIDTH", Help: "maximum line width (default of 75 columns)"},
		{Short: 'g', Long: "goal", Arg: getopt.Required, Name: "WIDTH", Help: "goal width (default of 93% of width)"},
	},
	Package: tool.Coreutils,
}

// Limits of a paragraph that is laid out as a whole; a longer one is cut where it does least harm.
const (
	fmtMaxChars  = 5000
	fmtMaxWords  = 1000
	fmtDefIndent = 3
	fmtMaxCost   = int64(math.MaxInt64)
)

// Costs of a line's shape: the squares of what is unpleasant about it.
func fmtShort(n int) int64  { return int64(n*10) * int64(n*10) }
func fmtRagged(n int) int64 { return fmtShort(n) / 2 }

const (
	fmtLine     = 70 * 70
	fmtWidow    = 200 * 200
	fmtOrphan   = 150 * 150
	fmtSentence = 50 * 50
	fmtNoBreak  = 600 * 600
	fmtParen    = 40 * 40
	fmtPunct    = 40 * 40
	fmtCredit   = 3 * 3
)

type fmtWord struct {
	text                        []byte
	length, space               int
	paren, period, punct, final bool
	lineLength                  int   // of the best line that begins here
	bestCost                    int64 // of the paragraph from here on
	nextBreak                   int   // the first word of the next line
}

// formatter lays out paragraphs, minimizing the cost of all their lines together.
type formatter struct {
	t                                    *tool.T
	r                                    *bufio.Reader
	crown, tagged, split, uniform        bool
	prefix                               string
	prefixLead, prefixLen                int
	width, goal                          int
	in, out                              int // columns
	tabs                                 bool
	words                                []fmtWord // those of the paragraph
	chars                                int       // bytes in them
	prefixIndent, nextPrefixIndent       int
	firstIndent, otherIndent, lastLength int
	nextChar                             int // -1 at the end
}

// Fmt fills paragraphs.
func Fmt(t *tool.T) int {
	args := t.Args()[1:]
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && args[0][1] >= '0' && args[0][1] <= '9' {
		args = append([]string{"-w" + args[0][1:]}, args[1:]...)
	}
	opts, files := t.ParseArgs(&fmtSpec, args)
	f := formatter{t: t, width: 75}
	width, goal := "", ""
	for _, o := range opts {
		switch o.Key {
		case 'c':
			f.crown = true
		case 's':
			f.split = true
		case 't':
			f.tagged = true
		case 'u':
			f.uniform = true
		case 'w':
			width = o.Arg
		case 'g':
			goal = o.Arg
		case 'p':
			f.prefix = strings.TrimLeft(o.Arg, " ")
			f.prefixLead = len(o.Arg) - len(f.prefix)
			f.prefixLen = len(strings.TrimRight(f.prefix, " "))
		}
	}
	if width != "" {
		f.width = f.number(width, fmtMaxChars/2)
	}
	if goal != "" {
		limit := f.width
		if width == "" {
			limit = 75
		}
		f.goal = f.number(goal, limit)
		if width == "" {
			f.width = f.goal + 10
		}
	} else {
		f.goal = f.width * (2*(100-7) + 1) / 200
	}
	failed := false
	for _, name := range names(files) {
		in, err := t.Open(name)
		if err != nil {
			t.Warn("cannot open %s for reading: %s", tool.QuoteAF(name), tool.Strerror(err))
			failed = true
			continue
		}
		f.r = bufio.NewReaderSize(in, 32<<10)
		f.tabs, f.otherIndent = false, 0
		f.nextChar = f.getPrefix()
		for f.paragraph() {
			f.layout()
			f.put(len(f.words) - 1)
		}
		in.Close()
	}
	return status(failed)
}

func (f *formatter) number(s string, limit int) int {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		f.t.Fatal(1, "invalid width: %s", tool.Quote(s))
	}
	if int(n) > limit {
		f.t.Fatal(1, "invalid width: %s: Numerical result out of range", tool.Quote(s))
	}
	return int(n)
}

func (f *formatter) getc() int {
	c, err := f.r.ReadByte()
	if err != nil {
		return -1
	}
	return int(c)
}

// paragraph reads the next one into words, which end with a sentinel; what stands between is copied.
func (f *formatter) paragraph() bool {
	f.lastLength = 0
	c := f.nextChar
	for c == '\n' || c < 0 || f.nextPrefixIndent < f.prefixLead || f.in < f.nextPrefixIndent+len(f.prefix) {
		if c = f.copyRest(c); c < 0 {
			f.nextChar = -1
			return false
		}
		f.t.Out.WriteByte('\n')
		c = f.getPrefix()
	}
	f.prefixIndent, f.firstIndent = f.nextPrefixIndent, f.in
	f.words, f.chars = append(f.words[:0], fmtWord{}), 0
	c = f.line(c)
	f.setOther(f.same(c))
	switch {
	case f.split:
	case f.crown:
		if f.same(c) {
			for again := true; again; again = f.same(c) && f.in == f.otherIndent {
				c = f.line(c)
			}
		}
	case f.tagged:
		if f.same(c) && f.in != f.firstIndent {
			for again := true; again; again = f.same(c) && f.in == f.otherIndent {
				c = f.line(c)
			}
		}
	default:
		for f.same(c) && f.in == f.otherIndent {
			c = f.line(c)
		}
	}
	last := &f.words[len(f.words)-2]
	last.period, last.final = true, true
	f.nextChar = c
	return true
}

// same reports whether the line that begins with c belongs to the paragraph.
func (f *formatter) same(c int) bool {
	return f.nextPrefixIndent == f.prefixIndent && f.in >= f.nextPrefixIndent+len(f.prefix) && c != '\n' && c >= 0
}

func (f *formatter) setOther(same bool) {
	switch {
	case f.split:
		f.otherIndent = f.firstIndent
	case f.crown:
		if f.otherIndent = f.firstIndent; same {
			f.otherIndent = f.in
		}
	case f.tagged:
		if same && f.in != f.firstIndent {
			f.otherIndent = f.in
		} else if f.otherIndent == f.firstIndent {
			if f.otherIndent = 0; f.firstIndent == 0 {
				f.otherIndent = fmtDefIndent
			}
		}
	default:
		f.otherIndent = f.firstIndent
	}
}

func (f *formatter) copyRest(c int) int {
	f.out = 0
	if f.in > f.nextPrefixIndent || c != '\n' && c >= 0 {
		f.putSpace(f.nextPrefixIndent)
		for i := 0; f.out != f.in && i < len(f.prefix); i++ {
			f.t.Out.WriteByte(f.prefix[i])
			f.out++
		}
		if c >= 0 && c != '\n' {
			f.putSpace(f.in - f.out)
		}
		if c < 0 && f.in >= f.nextPrefixIndent+f.prefixLen {
			f.t.Out.WriteByte('\n')
		}
	}
	for c != '\n' && c >= 0 {
		f.t.Out.WriteByte(byte(c))
		c = f.getc()
	}
	return c
}

// line reads the words of a line that begins with c. The last entry of words is always the one being filled.
func (f *formatter) line(c int) int {
	for {
		w := &f.words[len(f.words)-1]
		w.text = nil
		for {
			if f.chars == fmtMaxChars {
				f.setOther(true)
				f.flush()
				w = &f.words[len(f.words)-1]
			}
			w.text = append(w.text, byte(c))
			f.chars++
			if c = f.getc(); c < 0 || c == ' ' || c >= '\t' && c <= '\r' {
				break
			}
		}
		w.length = len(w.text)
		f.in += w.length
		w.punctuation()
		start := f.in
		c = f.space(c)
		w.space = f.in - start
		w.final = c < 0 || w.period && (c == '\n' || w.space > 1)
		if c == '\n' || c < 0 || f.uniform {
			if w.space = 1; w.final {
				w.space = 2
			}
		}
		if len(f.words)-1 == fmtMaxWords-2 {
			f.setOther(true)
			f.flush()
		}
		f.words = append(f.words, fmtWord{})
		if c == '\n' || c < 0 {
			return f.getPrefix()
		}
	}
}

func (w *fmtWord) punctuation() {
	b := w.text
	end := len(b) - 1
	w.paren = strings.IndexByte("(['`\"", b[0]) >= 0
	w.punct = b[end] > ' ' && b[end] < 0x7f && !isAlnum(b[end])
	for end > 0 && strings.IndexByte(")]'\"", b[end]) >= 0 {
		end--
	}
	w.period = strings.IndexByte(".?!", b[end]) >= 0
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

func (f *formatter) getPrefix() int {
	f.in = 0
	c := f.space(f.getc())
	if f.prefixLen == 0 {
		f.nextPrefixIndent = min(f.prefixLead, f.in)
		return c
	}
	f.nextPrefixIndent = f.in
	for i := 0; i < len(f.prefix); i++ {
		if c != int(f.prefix[i]) {
			return c
		}
		f.in++
		c = f.getc()
	}
	return f.space(c)
}

func (f *formatter) space(c int) int {
	for ; ; c = f.getc() {
		switch c {
		case ' ':
			f.in++
		case '\t':
			f.tabs = true
			f.in = f.in/8*8 + 8
		default:
			return c
		}
	}
}

// flush writes the first part of a paragraph that is too long to be kept.
func (f *formatter) flush() {
	limit := len(f.words) - 1
	if limit == 0 {
		f.t.Out.Write(f.words[0].text)
		f.words[0].text, f.chars = nil, 0
		return
	}
	f.layout()
	at, best := limit, fmtMaxCost
	for i := f.words[0].nextBreak; i != limit; i = f.words[i].nextBreak {
		w := &f.words[i]
		if cost := w.bestCost - f.words[w.nextBreak].bestCost; cost < best {
			at, best = i, cost
		}
		if best <= fmtMaxCost-fmtCredit {
			best += fmtCredit
		}
	}
	f.put(at)
	for _, w := range f.words[:at] {
		f.chars -= len(w.text)
	}
	f.words = append(f.words[:0], f.words[at:]...)
}

// layout chooses the line breaks, from the end backwards.
func (f *formatter) layout() {
	limit := len(f.words) - 1
	sentinel := &f.words[limit]
	saved := sentinel.length
	sentinel.bestCost, sentinel.length = 0, f.width
	for start := limit - 1; start >= 0; start-- {
		s := &f.words[start]
		best := fmtMaxCost
		length := f.otherIndent
		if start == 0 {
			length = f.firstIndent
		}
		w := start
		length += s.length
		for {
			w++
			cost := f.lineCost(w, length) + f.words[w].bestCost
			if start == 0 && f.lastLength > 0 {
				cost += fmtRagged(length - f.lastLength)
			}
			if cost < best {
				best, s.nextBreak, s.lineLength = cost, w, length
			}
			if w == limit {
				break
			}
			if length += f.words[w-1].space + f.words[w].length; length >= f.width {
				break
			}
		}
		s.bestCost = best + f.baseCost(start)
	}
	sentinel.length = saved
}

func (f *formatter) baseCost(i int) int64 {
	cost := int64(fmtLine)
	if i > 0 {
		prev := &f.words[i-1]
		switch {
		case prev.period && prev.final:
			cost -= fmtSentence
		case prev.period:
			cost += fmtNoBreak
		case prev.punct:
			cost -= fmtPunct
		case i > 1 && f.words[i-2].final:
			cost += fmtWidow / int64(prev.length+2)
		}
	}
	if w := &f.words[i]; w.paren {
		cost -= fmtParen
	} else if w.final {
		cost += fmtOrphan / int64(w.length+2)
	}
	return cost
}

func (f *formatter) lineCost(next, length int) int64 {
	limit := len(f.words) - 1
	if next == limit {
		return 0
	}
	cost := fmtShort(f.goal - length)
	if w := &f.words[next]; w.nextBreak != limit {
		cost += fmtRagged(length - w.lineLength)
	}
	return cost
}

// put writes the lines before the word at which the paragraph is cut.
func (f *formatter) put(finish int) {
	f.putLine(0, f.firstIndent)
	for i := f.words[0].nextBreak; i != finish; i = f.words[i].nextBreak {
		f.putLine(i, f.otherIndent)
	}
}

func (f *formatter) putLine(i, indent int) {
	f.out = 0
	f.putSpace(f.prefixIndent)
	f.t.Out.WriteString(f.prefix[:f.prefixLen])
	f.out += f.prefixLen
	f.putSpace(indent - f.out)
	for end := f.words[i].nextBreak - 1; ; i++ {
		w := &f.words[i]
		f.t.Out.Write(w.text)
		f.out += w.length
		if i == end {
			break
		}
		f.putSpace(w.space)
	}
	f.lastLength = f.out
	f.t.Out.WriteByte('\n')
}

func (f *formatter) putSpace(n int) {
	target := f.out + n
	if f.tabs {
		if stop := target / 8 * 8; f.out+1 < stop {
			for f.out < stop {
				f.t.Out.WriteByte('\t')
				f.out = (f.out/8 + 1) * 8
			}
		}
	}
	for ; f.out < target; f.out++ {
		f.t.Out.WriteByte(' ')
	}
}
