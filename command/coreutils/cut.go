package coreutils

import (
	"bytes"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const (
	keyComplement = tool.KeyOwn + iota
	keyOutputDelimiter
)

var cutSpec = tool.Spec{
	Usage: []string{"OPTION... [FILE]..."},
	About: "Print selected parts of lines from each FILE to standard output.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'b', Long: "bytes", Arg: getopt.Required, Name: "LIST", Help: "select only these bytes"},
		{Short: 'c', Long: "characters", Arg: getopt.Required, Name: "LIST", Help: "select only these characters"},
		{Short: 'd', Long: "delimiter", Arg: getopt.Required, Name: "DELIM", Help: "use DELIM instead of TAB for field delimiter"},
		{Short: 'f', Long: "fields", Arg: getopt.Required, Name: "LIST", Help: "select only these fields; also print any line that contains no delimiter character, unless the -s option is specified"},
		{Short: 'n', Help: "(ignored)"},
		{Long: "complement", Key: keyComplement, Help: "complement the set of selected bytes, characters or fields"},
		{Short: 's', Long: "only-delimited", Help: "do not print lines not containing delimiters"},
		{Long: "output-delimiter", Key: keyOutputDelimiter, Arg: getopt.Required, Name: "STRING", Help: "use STRING as the output delimiter; the default is to use the input delimiter"},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
	},
	Notes:   "Use one, and only one of -b, -c or -f.  Each LIST is made up of one range, or many ranges separated by commas.",
	Package: tool.Coreutils,
}

type cutter struct {
	t        *tool.T
	spans    []span
	fields   bool
	delim    byte
	outDelim []byte
	hasOut   bool
	only     bool
	eol      byte
}

// Cut prints parts of lines.
func Cut(t *tool.T) int {
	c := cutter{t: t, delim: '\t', eol: '\n'}
	opts, files := t.Parse(&cutSpec)
	list, mode, complement, hasDelim := "", rune(0), false, false
	for _, o := range opts {
		switch o.Key {
		case 'b', 'c', 'f':
			if mode != 0 {
				t.UsageError(1, "only one list may be specified")
			}
			mode, list = o.Key, o.Arg
		case 'd':
			if len(o.Arg) > 1 {
				t.UsageError(1, "the delimiter must be a single character")
			}
			c.delim, hasDelim = 0, true
			if o.Arg != "" {
				c.delim = o.Arg[0]
			}
		case keyComplement:
			complement = true
		case keyOutputDelimiter:
			c.hasOut, c.outDelim = true, []byte(o.Arg)
			if o.Arg == "" {
				c.outDelim = []byte{0}
			}
		case 's':
			c.only = true
		case 'z':
			c.eol = 0
		}
	}
	c.fields = mode == 'f'
	switch {
	case mode == 0:
		t.UsageError(1, "you must specify a list of bytes, characters, or fields")
	case hasDelim && !c.fields:
		t.UsageError(1, "an input delimiter may be specified only when operating on fields")
	case c.only && !c.fields:
		t.UsageError(1, "suppressing non-delimited lines makes sense\n\tonly when operating on fields")
	}
	var bad string
	if c.spans, bad = parseSpans(list, c.fields, complement); bad != "" {
		t.UsageError(1, "%s", bad)
	}
	if c.fields && !c.hasOut {
		c.outDelim = []byte{c.delim}
	}
	return t.Inputs(files, c.file)
}

func (c *cutter) file(in *tool.Input) error {
	if c.fields && c.delim == c.eol {
		return c.wholeFile(in)
	}
	l := tool.NewLines(in, c.eol)
	for {
		line, ok := l.Next()
		if !ok {
			return l.Err
		}
		if c.fields {
			if !c.cutFields(line, c.delim) {
				continue
			}
		} else {
			c.cutBytes(line)
		}
		c.t.Out.WriteByte(c.eol)
	}
}

// wholeFile is for a field delimiter that also ends lines: then the lines are the fields, and there is one record.
func (c *cutter) wholeFile(in *tool.Input) error {
	l := tool.NewLines(in, c.eol)
	n, at, printed := uint64(0), 0, false
	var first []byte
	for {
		line, ok := l.Next()
		if !ok {
			break
		}
		if n++; n == 1 {
			first = append(first, line...)
		}
		for at < len(c.spans) && c.spans[at].hi < n {
			at++
		}
		if at < len(c.spans) && n >= c.spans[at].lo {
			if printed {
				c.t.Out.Write(c.outDelim)
			}
			c.t.Out.Write(line)
			printed = true
		}
	}
	if n == 1 && !printed && !c.only {
		c.t.Out.Write(first)
	}
	if n > 0 {
		c.t.Out.WriteByte(c.eol)
	}
	return l.Err
}

// cutFields prints the selected fields; it returns false for a line that isn't printed at all.
func (c *cutter) cutFields(line []byte, delim byte) bool {
	i := bytes.IndexByte(line, delim)
	if i < 0 {
		if !c.only {
			c.t.Out.Write(line)
		}
		return !c.only
	}
	printed := false
	at := 0
	for n := uint64(1); ; n++ {
		field := line
		if i >= 0 {
			field = line[:i]
		}
		for at < len(c.spans) && c.spans[at].hi < n {
			at++
		}
		if at == len(c.spans) {
			break
		}
		if n >= c.spans[at].lo {
			if printed {
				c.t.Out.Write(c.outDelim)
			}
			c.t.Out.Write(field)
			printed = true
		}
		if i < 0 {
			break
		}
		line = line[i+1:]
		i = bytes.IndexByte(line, delim)
	}
	return true
}

func (c *cutter) cutBytes(line []byte) {
	printed := false
	for _, s := range c.spans {
		if s.lo > uint64(len(line)) {
			break
		}
		if printed && c.hasOut {
			c.t.Out.Write(c.outDelim)
		}
		c.t.Out.Write(line[s.lo-1 : min(s.hi, uint64(len(line)))])
		printed = true
	}
}
