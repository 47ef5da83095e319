package diff

import (
	"bytes"
	"fmt"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const keyDiffProgram = tool.KeyOwn + 100

var diff3Spec = tool.Spec{
	Usage: []string{"[OPTION]... MYFILE OLDFILE YOURFILE"},
	About: "Compare three files line by line.",
	Options: []getopt.Option{
		{Short: 'A', Long: "show-all", Help: "output all changes, bracketing conflicts"},
		{Short: 'e', Long: "ed", Help: "output ed script incorporating changes from OLDFILE to YOURFILE into MYFILE"},
		{Short: 'E', Long: "show-overlap", Help: "like -e, but bracket conflicts"},
		{Short: '3', Long: "easy-only", Help: "like -e, but incorporate only nonoverlapping changes"},
		{Short: 'x', Long: "overlap-only", Help: "like -e, but incorporate only overlapping changes"},
		{Short: 'X', Help: "like -x, but bracket conflicts"},
		{Short: 'i', Help: "append 'w' and 'q' commands to ed scripts"},
		{Short: 'm', Long: "merge", Help: "output actual merged file, according to -A if no other options are given"},
		{Short: 'a', Long: "text", Help: "treat all files as text"},
		{Long: "strip-trailing-cr", Key: keyStripCR, Help: "strip trailing carriage return on input"},
		{Short: 'T', Long: "initial-tab", Help: "make tabs line up by prepending a tab"},
		{Long: "diff-program", Key: keyDiffProgram, Arg: getopt.Required, Name: "PROGRAM", Help: "(accepted)"},
		{Short: 'L', Long: "label", Arg: getopt.Required, Name: "LABEL", Help: "use LABEL instead of file name (can be repeated up to three times)"},
		{Short: 'v', Hidden: true},
	},
	Notes:   "If a FILE is '-', read standard input.\nExit status is 0 if successful, 1 if conflicts, 2 if trouble.",
	Package: tool.Diffutils, Fail: 2,
}

// comparison3 is a run of diff3.
type comparison3 struct {
	t                                  *tool.T
	texts                              [3]*text
	names                              [3]string
	flag, old, overlapOnly, simpleOnly bool // bracket conflicts, show OLDFILE's lines, choose blocks
	prefix                             string
	blocks                             []block3
	conflicts, whole                   bool // whole: all lines end with a newline in the output
}

// block3 is a place where the files aren't all alike: in each of them some lines, perhaps none.
type block3 struct {
	lo, n [3]int
	odd   int // the file that differs from the two others, 3 if all differ
}

// Diff3 compares three files, or merges two that come from the third.
func Diff3(t *tool.T) int {
	t.FailStatus(2)
	opts, files := t.Parse(&diff3Spec)
	c := &comparison3{t: t, prefix: "  "}
	var labels []string
	ways, script, merge, final, strip, asText := 0, false, false, false, false, false
	for _, o := range opts {
		switch o.Key {
		case 'A', 'e', 'E', '3', 'x', 'X':
			ways, script = ways+1, true
			c.flag = c.flag || o.Key == 'A' || o.Key == 'E' // X says so too, but GNU's brackets nothing
			c.old = c.old || o.Key == 'A'
			c.overlapOnly = c.overlapOnly || o.Key == 'x' || o.Key == 'X'
			c.simpleOnly = c.simpleOnly || o.Key == '3'
		case 'i':
			final = true
		case 'm':
			merge = true
		case 'a':
			asText = true
		case keyStripCR:
			strip = true
		case 'T':
			c.prefix = "\t"
		case 'L':
			if labels = append(labels, o.Arg); len(labels) > 3 {
				t.UsageError(2, "too many file label options")
			}
		case 'v':
			t.Version(&diff3Spec)
			return 0
		}
	}
	if merge && ways == 0 {
		c.flag, c.old = true, true
	}
	switch {
	case ways > 1 || final && merge || len(labels) > 0 && !c.flag:
		t.UsageError(2, "incompatible options")
	case len(files) < 3:
		last := t.Args()[len(t.Args())-1]
		if len(files) > 0 {
			last = files[len(files)-1]
		}
		t.UsageError(2, "missing operand after '%s'", last)
	case len(files) > 3:
		t.UsageError(2, "extra operand '%s'", files[3])
	}
	c.names = [3]string(files)
	copy(c.names[:], labels)
	common := 2
	if script || merge {
		common = 1
	}
	if files[common] == "-" {
		if common = 3 - common; files[0] == "-" || files[common] == "-" {
			t.Fatal(2, "'-' specified for more than one input file")
		}
	}
	c.whole = script && !merge
	c.read([3]string(files), strip, asText)
	c.compare(common)
	switch {
	case merge:
		c.merge()
	case script:
		c.script()
		if final {
			t.Out.WriteString("w\nq\n")
		}
	default:
		c.show()
	}
	if c.conflicts {
		return 1
	}
	return 0
}

func (c *comparison3) read(files [3]string, strip, asText bool) {
	for i, name := range files {
		var b []byte
		in, err := c.t.Open(name)
		if err == nil {
			b, err = readAll(in)
			in.Close()
		}
		if err != nil {
			c.t.Fatal(2, "%s: %s", name, tool.Strerror(err))
		}
		if strip {
			b = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
		}
		if !asText && bytes.IndexByte(b[:min(len(b), 32<<10)], 0) >= 0 {
			c.t.Fatal(2, "%s: binary file; use -a to compare it as text", name)
		}
		c.texts[i] = newText(b)
	}
}

// compare finds the blocks, through the differences of two files from a third, the common one.
func (c *comparison3) compare(common int) {
	other := [2]int{0, 3 - common}
	var lists [2][]change
	for i, f := range other {
		lists[i] = script(c.texts[f], c.texts[common], &ignoring{}, false, 100, c.t.Check)
	}
	if c.whole {
		c.complete(lists, other, common)
	}
	var shift [2]int // line in the file minus line in the common one, after what has been seen
	for len(lists[0])+len(lists[1]) > 0 {
		c.t.Check()
		first := 0
		if len(lists[0]) == 0 || len(lists[1]) > 0 && lists[1][0].b < lists[0][0].b {
			first = 1
		}
		lo, hi := lists[first][0].b, lists[first][0].b // of the common file, hi is behind the end
		var used [2][]change
		for again := true; again; {
			again = false
			for i := range lists {
				for len(lists[i]) > 0 && lists[i][0].b <= hi {
					ch := lists[i][0]
					hi = max(hi, ch.b+ch.inserted)
					used[i], lists[i] = append(used[i], ch), lists[i][1:]
					again = true
				}
			}
		}
		var b block3
		b.lo[common], b.n[common] = lo, hi-lo
		for i, f := range other {
			b.lo[f] = lo + shift[i]
			for _, ch := range used[i] {
				shift[i] += ch.deleted - ch.inserted
			}
			b.n[f] = hi + shift[i] - b.lo[f]
		}
		switch {
		case len(used[1]) == 0:
			b.odd = other[0]
		case len(used[0]) == 0:
			b.odd = other[1]
		case c.same(&b, other[0], other[1]):
			b.odd = common
		default:
			b.odd = 3
		}
		c.blocks = append(c.blocks, b)
	}
}

// same reports whether a block is the same in two files.
func (c *comparison3) same(b *block3, x, y int) bool {
	if b.n[x] != b.n[y] {
		return false
	}
	for i := range b.n[x] {
		p, q := b.lo[x]+i, b.lo[y]+i
		if !bytes.Equal(c.texts[x].lines[p], c.texts[y].lines[q]) || c.texts[x].complete(p) != c.texts[y].complete(q) {
			return false
		}
	}
	return true
}

// lines writes lines of a file, each after a prefix.
func (c *comparison3) lines(f, lo, n int, prefix string) {
	for i := lo; i < lo+n; i++ {
		c.t.Out.WriteString(prefix)
		c.t.Out.Write(c.texts[f].lines[i])
		if c.whole || c.texts[f].complete(i) {
			c.t.Out.WriteByte('\n')
		}
	}
}

// complete says of each line without a newline that ed will give it one.
func (c *comparison3) complete(lists [2][]change, other [2]int, common int) {
	for i, list := range lists {
		for _, ch := range list {
			if x := c.texts[other[i]]; ch.deleted > 0 && !x.complete(ch.a+ch.deleted-1) {
				c.t.Warn("No newline at end of file")
			}
			if x := c.texts[common]; ch.inserted > 0 && !x.complete(ch.b+ch.inserted-1) {
				c.t.Warn("No newline at end of file")
			}
		}
	}
}

// show writes the blocks for people.
func (c *comparison3) show() {
	out := c.t.Out
	for i := range c.blocks {
		b := &c.blocks[i]
		mark, order, silent := "", [3]int{0, 1, 2}, 3 // the text that two files share is written once
		if b.odd < 3 {
			mark, silent = string(rune('1'+b.odd)), 0
		}
		switch b.odd {
		case 0:
			silent = 1
		case 1:
			order = [3]int{0, 2, 1}
		}
		fmt.Fprintf(out, "====%s\n", mark)
		for _, f := range order {
			lo, hi := b.lo[f]+1, b.lo[f]+b.n[f]
			switch b.n[f] {
			case 0:
				fmt.Fprintf(out, "%d:%da\n", f+1, lo-1)
			case 1:
				fmt.Fprintf(out, "%d:%dc\n", f+1, lo)
			default:
				fmt.Fprintf(out, "%d:%d,%dc\n", f+1, lo, hi)
			}
			if f == silent || b.n[f] == 0 {
				continue
			}
			c.lines(f, b.lo[f], b.n[f], c.prefix)
			if !c.texts[f].complete(hi - 1) {
				out.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
}

// chosen reports whether a block is to be output, and whether it is a conflict.
func (c *comparison3) chosen(b *block3) (ok, conflict bool) {
	switch b.odd {
	case 1:
		return c.old, c.old
	case 2:
		return !c.overlapOnly, false
	case 3:
		return !c.simpleOnly, c.flag
	}
	return false, false
}

// merge writes MYFILE with the changes.
func (c *comparison3) merge() {
	out, at := c.t.Out, 0
	for i := range c.blocks {
		b := &c.blocks[i]
		ok, conflict := c.chosen(b)
		if !ok {
			continue
		}
		c.lines(0, at, b.lo[0]-at, "")
		if conflict {
			c.conflicts = true
			mark := "<<<<<<< "
			if b.odd == 3 {
				out.WriteString("<<<<<<< " + c.names[0] + "\n")
				c.lines(0, b.lo[0], b.n[0], "")
				mark = "||||||| "
			}
			if c.old {
				out.WriteString(mark + c.names[1] + "\n")
				c.lines(1, b.lo[1], b.n[1], "")
			}
			out.WriteString("=======\n")
		}
		c.lines(2, b.lo[2], b.n[2], "")
		if conflict {
			out.WriteString(">>>>>>> " + c.names[2] + "\n")
		}
		at = b.lo[0] + b.n[0]
	}
	c.lines(0, at, len(c.texts[0].lines)-at, "")
}

// script writes commands for ed, from the last change to the first.
func (c *comparison3) script() {
	out := c.t.Out
	for i := len(c.blocks) - 1; i >= 0; i-- {
		b := &c.blocks[i]
		ok, conflict := c.chosen(b)
		if !ok {
			continue
		}
		lo, hi := b.lo[0]+1, b.lo[0]+b.n[0]
		switch {
		case conflict:
			c.scriptConflict(b, lo, hi)
		case b.n[2] == 0 && lo == hi:
			fmt.Fprintf(out, "%dd\n", lo)
		case b.n[2] == 0:
			fmt.Fprintf(out, "%d,%dd\n", lo, hi)
		default:
			switch hi - lo {
			case -1:
				fmt.Fprintf(out, "%da\n", hi)
			case 0:
				fmt.Fprintf(out, "%dc\n", hi)
			default:
				fmt.Fprintf(out, "%d,%dc\n", lo, hi)
			}
			c.endText(c.dotted(b, 2), lo, b.n[2])
		}
	}
}

func (c *comparison3) scriptConflict(b *block3, lo, hi int) {
	out := c.t.Out
	c.conflicts = true
	fmt.Fprintf(out, "%da\n", hi)
	dots := false
	if b.odd == 3 {
		if c.old {
			out.WriteString("||||||| " + c.names[1] + "\n")
			dots = c.dotted(b, 1)
		}
		out.WriteString("=======\n")
		dots = c.dotted(b, 2) || dots
	}
	out.WriteString(">>>>>>> " + c.names[2] + "\n")
	c.endText(dots, hi+2, b.n[1]+b.n[2]+1)
	name := c.names[1]
	if b.odd == 3 {
		name = c.names[0]
	}
	fmt.Fprintf(out, "%da\n<<<<<<< %s\n", lo-1, name)
	dots = false
	if b.odd == 1 {
		dots = c.dotted(b, 1)
		out.WriteString("=======\n")
	}
	c.endText(dots, lo+1, b.n[1])
}

// dotted writes lines for ed, with a dot before those that begin with one, and reports whether there are any.
func (c *comparison3) dotted(b *block3, f int) (any bool) {
	for i := b.lo[f]; i < b.lo[f]+b.n[f]; i++ {
		if bytes.HasPrefix(c.texts[f].lines[i], []byte(".")) {
			any = true
			c.t.Out.WriteByte('.')
		}
		c.lines(f, i, 1, "")
	}
	return any
}

// endText ends a text for ed, and takes the dots off again.
func (c *comparison3) endText(dots bool, lo, n int) {
	c.t.Out.WriteString(".\n")
	switch {
	case dots && n == 1:
		fmt.Fprintf(c.t.Out, "%ds/^\\.//\n", lo)
	case dots:
		fmt.Fprintf(c.t.Out, "%d,%ds/^\\.//\n", lo, lo+n-1)
	}
}
