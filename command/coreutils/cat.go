package coreutils

import (
	"errors"
	"fmt"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

var catSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]..."},
	About: "Concatenate FILE(s) to standard output.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'A', Long: "show-all", Help: "equivalent to -vET"},
		{Short: 'b', Long: "number-nonblank", Help: "number nonempty output lines, overrides -n"},
		{Short: 'e', Help: "equivalent to -vE"},
		{Short: 'E', Long: "show-ends", Help: "display $ at end of each line"},
		{Short: 'n', Long: "number", Help: "number all output lines"},
		{Short: 's', Long: "squeeze-blank", Help: "suppress repeated empty output lines"},
		{Short: 't', Help: "equivalent to -vT"},
		{Short: 'T', Long: "show-tabs", Help: "display TAB characters as ^I"},
		{Short: 'u', Help: "(ignored)"},
		{Short: 'v', Long: "show-nonprinting", Help: "use ^ and M- notation, except for LFD and TAB"},
	},
	Package: tool.Coreutils,
}

type catState struct {
	t                                  *tool.T
	number, nonblank, ends, tabs, show bool
	squeeze                            bool
	line                               int
	blanks                             int  // empty lines in a row, to squeeze
	midLine                            bool // the last file ended without a newline
}

// Cat concatenates files.
func Cat(t *tool.T) int {
	c := catState{t: t}
	opts, files := t.Parse(&catSpec)
	for _, o := range opts {
		switch o.Key {
		case 'A':
			c.show, c.ends, c.tabs = true, true, true
		case 'b':
			c.number, c.nonblank = true, true
		case 'e':
			c.show, c.ends = true, true
		case 'E':
			c.ends = true
		case 'n':
			c.number = true
		case 's':
			c.squeeze = true
		case 't':
			c.show, c.tabs = true, true
		case 'T':
			c.tabs = true
		case 'v':
			c.show = true
		}
	}
	plain := !(c.number || c.ends || c.tabs || c.show || c.squeeze)
	if plain {
		return t.RunAs(&catting{Names: names(files)})
	}
	out, outErr := t.File(1)
	return t.Inputs(files, func(in *tool.Input) error {
		if outErr == nil && sameFile(in, out) {
			t.Out.Flush()
			return errSameFile
		}
		return c.copy(in)
	})
}

// copy copies line by line, with what the options add.
func (c *catState) copy(in *tool.Input) error {
	lines := tool.NewLines(in, '\n')
	for {
		line, ok := lines.Next()
		if !ok {
			return lines.Err
		}
		empty := len(line) == 0 && lines.Terminated && !c.midLine
		if empty {
			c.blanks++
		} else {
			c.blanks = 0
		}
		if c.squeeze && c.blanks > 1 {
			continue
		}
		if c.number && !c.midLine && !(c.nonblank && empty) {
			c.line++
			fmt.Fprintf(c.t.Out, "%6d\t", c.line)
		}
		cr := c.ends && !c.show && lines.Terminated && len(line) > 0 && line[len(line)-1] == '\r'
		if cr {
			line = line[:len(line)-1]
		}
		if c.show || c.tabs {
			c.write(line)
		} else {
			c.t.Out.Write(line)
		}
		if cr { // -E shows a carriage return at the end of a line
			c.t.Out.WriteString("^M")
		}
		c.midLine = !lines.Terminated
		if lines.Terminated {
			if c.ends {
				c.t.Out.WriteByte('$')
			}
			c.t.Out.WriteByte('\n')
		}
	}
}

// write shows control characters as ^X and bytes above 127 as M-X.
func (c *catState) write(line []byte) {
	w := c.t.Out
	for _, b := range line {
		if !c.show {
			if b == '\t' {
				w.WriteString("^I")
			} else {
				w.WriteByte(b)
			}
			continue
		}
		if b >= 128 {
			w.WriteString("M-")
			b -= 128
			if b == '\t' || b == '\n' { // these are shown after M- whatever the options say
				w.WriteByte('^')
				w.WriteByte(b ^ 64)
				continue
			}
		}
		switch {
		case b == '\t' && !c.tabs:
			w.WriteByte(b)
		case b < 32 || b == 127:
			w.WriteByte('^')
			w.WriteByte(b ^ 64)
		default:
			w.WriteByte(b)
		}
	}
}

// errSameFile is worded as GNU cat words it.
var errSameFile = errors.New("input file is output file")

// sameFile reports whether reading in would read what the command itself writes: the same regular file, not read from
// its very end.
func sameFile(in *tool.Input, out vfs.File) bool {
	a, err := in.Attr()
	if err != nil || !a.Mode.IsRegular() {
		return false
	}
	b, err := out.Attr()
	if err != nil || a.Dev != b.Dev || a.Ino != b.Ino {
		return false
	}
	return a.Size > 0 && (out.Flags()&syscall.O_APPEND != 0 || !in.IsStdin())
}
