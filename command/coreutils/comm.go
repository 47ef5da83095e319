package coreutils

import (
	"bytes"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var commSpec = tool.Spec{
	Usage: []string{"[OPTION]... FILE1 FILE2"},
	About: "Compare sorted files FILE1 and FILE2 line by line.\n\nWhen FILE1 or FILE2 (not both) is -, read standard input.",
	Options: []getopt.Option{
		{Short: '1', Help: "suppress column 1 (lines unique to FILE1)"},
		{Short: '2', Help: "suppress column 2 (lines unique to FILE2)"},
		{Short: '3', Help: "suppress column 3 (lines that appear in both files)"},
		{Long: "check-order", Key: tool.KeyOwn, Help: "check that the input is correctly sorted"},
		{Long: "nocheck-order", Key: tool.KeyOwn + 1, Help: "do not check that the input is correctly sorted"},
		{Long: "output-delimiter", Key: tool.KeyOwn + 2, Arg: getopt.Required, Name: "STR", Help: "separate columns with STR"},
		{Long: "total", Key: tool.KeyOwn + 3, Help: "output a summary"},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
	},
	Package: tool.Coreutils,
}

// Comm compares two sorted files.
func Comm(t *tool.T) int {
	opts, files := t.Parse(&commSpec)
	hide, delim, sep, check, total := [3]bool{}, byte('\n'), "\t", 0, false
	for _, o := range opts {
		switch o.Key {
		case '1', '2', '3':
			hide[o.Key-'1'] = true
		case tool.KeyOwn:
			check = 1
		case tool.KeyOwn + 1:
			check = -1
		case tool.KeyOwn + 2:
			sep = o.Arg
		case tool.KeyOwn + 3:
			total = true
		case 'z':
			delim = 0
		}
	}
	if len(files) == 0 {
		t.Missing(1)
	}
	if len(files) == 1 {
		t.UsageError(1, "missing operand after %s", tool.Quote(files[0]))
	}
	if len(files) > 2 {
		t.Extra(1, files[2])
	}
	c := commState{t: t, hide: hide, sep: sep, delim: delim, check: check}
	for i, f := range files {
		in, err := t.Open(f)
		if err != nil {
			t.Fatal(1, "%s: %s", tool.QuoteF(f), tool.Strerror(err))
		}
		defer in.Close()
		c.lines[i] = tool.NewLines(in, delim)
	}
	c.run()
	if total {
		t.Out.WriteString(joinCounts(c.counts, sep) + "total")
		t.Out.WriteByte(delim)
	}
	if c.disorder {
		t.Fatal(1, "input is not in sorted order")
	}
	return 0
}

type commState struct {
	t          *tool.T
	lines      [2]*tool.Lines
	cur        [2][]byte
	ok         [2]bool
	hide       [3]bool
	sep        string
	delim      byte
	check      int
	counts     [3]int
	unpairable bool
	warned     [2]bool
	disorder   bool
}

func joinCounts(counts [3]int, sep string) string {
	var b bytes.Buffer
	for _, n := range counts {
		b.WriteString(itoa(n) + sep)
	}
	return b.String()
}

func (c *commState) next(i int) {
	prev := append([]byte(nil), c.cur[i]...)
	had := c.ok[i]
	line, ok := c.lines[i].Next()
	c.ok[i] = ok
	if !ok {
		return
	}
	c.cur[i] = append(c.cur[i][:0], line...)
	if had && bytes.Compare(prev, c.cur[i]) > 0 && !c.warned[i] && c.check >= 0 && (c.check > 0 || c.unpairable) {
		c.t.Warn("file %d is not in sorted order", i+1)
		c.warned[i], c.disorder = true, true
		if c.check > 0 {
			c.t.Exit(1)
		}
	}
}

func (c *commState) run() {
	c.next(0)
	c.next(1)
	for c.ok[0] || c.ok[1] {
		order := 0
		switch {
		case !c.ok[1]:
			order = -1
		case !c.ok[0]:
			order = 1
		default:
			order = bytes.Compare(c.cur[0], c.cur[1])
		}
		col := 2
		if order < 0 {
			col, c.unpairable = 0, true
		} else if order > 0 {
			col, c.unpairable = 1, true
		}
		c.put(col, c.cur[min(col, 1)%2])
		if order <= 0 {
			c.next(0)
		}
		if order >= 0 {
			c.next(1)
		}
	}
}

func (c *commState) put(col int, line []byte) {
	c.counts[col]++
	if c.hide[col] {
		return
	}
	for i := range col {
		if !c.hide[i] {
			c.t.Out.WriteString(c.sep)
		}
	}
	c.t.Out.Write(line)
	c.t.Out.WriteByte(c.delim)
}
