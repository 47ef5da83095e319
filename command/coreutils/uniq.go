package coreutils

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const keyGroup = tool.KeyOwn

var uniqSpec = tool.Spec{
	Usage: []string{"[OPTION]... [INPUT [OUTPUT]]"},
	About: "Filter adjacent matching lines from INPUT (or standard input),\nwriting to OUTPUT (or standard output).\n\nWith no options, matching lines are merged to the first occurrence.",
	Options: []getopt.Option{
		{Short: 'c', Long: "count", Help: "prefix lines by the number of occurrences"},
		{Short: 'd', Long: "repeated", Help: "only print duplicate lines, one for each group"},
		{Short: 'D', Help: "print all duplicate lines"},
		{Long: "all-repeated", Key: 'D', Arg: getopt.Optional, Name: "METHOD", Help: "like -D, but allow separating groups with an empty line: none(default), prepend, separate"},
		{Short: 'f', Long: "skip-fields", Arg: getopt.Required, Name: "N", Help: "avoid comparing the first N fields"},
		{Long: "group", Key: keyGroup, Arg: getopt.Optional, Name: "METHOD", Help: "show all items, separating groups with an empty line: separate(default), prepend, append, both"},
		{Short: 'i', Long: "ignore-case", Help: "ignore differences in case when comparing"},
		{Short: 's', Long: "skip-chars", Arg: getopt.Required, Name: "N", Help: "avoid comparing the first N characters"},
		{Short: 'u', Long: "unique", Help: "only print unique lines"},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
		{Short: 'w', Long: "check-chars", Arg: getopt.Required, Name: "N", Help: "compare no more than N characters in lines"},
	},
	Notes:   "A field is a run of blanks (usually spaces and/or TABs), then non-blank characters.  Fields are skipped before chars.",
	Package: tool.Coreutils,
}

type uniquer struct {
	t                       *tool.T
	out                     io.Writer
	count, repeated, unique bool
	all, group              string // the method; empty is off
	fold                    bool
	fields, chars, check    uint64
	delim                   byte
	shown                   bool
}

// Uniq merges adjacent equal lines.
func Uniq(t *tool.T) int {
	u := uniquer{t: t, out: t.Out, check: 1<<63 - 1, delim: '\n'}
	opts, files := t.ParseArgs(&uniqSpec, obsoleteUniq(t.Args()[1:]))
	for _, o := range opts {
		switch o.Key {
		case 'c':
			u.count = true
		case 'd':
			u.repeated = true
		case 'D':
			u.all = "none"
			if o.Has {
				u.all = []string{"none", "prepend", "separate"}[t.Choice(1, "--all-repeated", o.Arg, [][]string{{"none"}, {"prepend"}, {"separate"}})]
			}
		case keyGroup:
			u.group = "separate"
			if o.Has {
				u.group = []string{"prepend", "append", "separate", "both"}[t.Choice(1, "--group", o.Arg, [][]string{{"prepend"}, {"append"}, {"separate"}, {"both"}})]
			}
		case 'f':
			u.fields = u.number(o.Arg, "invalid number of fields to skip")
		case 's':
			u.chars = u.number(o.Arg, "invalid number of bytes to skip")
		case 'w':
			u.check = u.number(o.Arg, "invalid number of bytes to compare")
		case 'i':
			u.fold = true
		case 'u':
			u.unique = true
		case 'z':
			u.delim = 0
		}
	}
	if len(files) > 2 {
		t.Extra(1, files[2])
	}
	if u.group != "" && (u.count || u.repeated || u.unique || u.all != "") {
		t.UsageError(1, "--group is mutually exclusive with -c/-d/-D/-u")
	}
	if u.all != "" && u.count {
		t.UsageError(1, "printing all duplicated lines and repeat counts is meaningless")
	}
	return u.run(files)
}

func (u *uniquer) run(files []string) int {
	files = names(files)
	in, err := u.t.Open(files[0])
	if err != nil {
		u.t.WarnFile(files[0], err)
		return 1
	}
	defer in.Close()
	if len(files) == 2 && files[1] != "-" {
		f, err := u.t.Create(files[1])
		if err != nil {
			u.t.WarnFile(files[1], err)
			return 1
		}
		defer f.Close()
		u.out = f
	}
	if err := u.filter(in); err != nil {
		u.t.Fatal(1, "error reading %s: %s", tool.QuoteAF(files[0]), tool.Strerror(err))
	}
	return 0
}

func (u *uniquer) number(s, message string) uint64 {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		if strings.Trim(s, "0123456789") == "" && s != "" {
			return 1<<63 - 1
		}
		u.t.Fatal(1, "%s: %s", s, message)
	}
	return n
}

// obsoleteUniq turns -N into -f N, and +N into -s N.
func obsoleteUniq(args []string) []string {
	var out []string
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		if len(a) > 1 && strings.Trim(a[1:], "0123456789") == "" {
			switch a[0] {
			case '-':
				out = append(out, "-f", a[1:])
				continue
			case '+':
				out = append(out, "-s", a[1:])
				continue
			}
		}
		out = append(out, a)
	}
	return out
}

// key is the part of a line that is compared.
func (u *uniquer) key(line []byte) []byte {
	for n := uint64(0); n < u.fields && len(line) > 0; n++ {
		for len(line) > 0 && isBlank(line[0]) {
			line = line[1:]
		}
		for len(line) > 0 && !isBlank(line[0]) {
			line = line[1:]
		}
	}
	line = line[min(u.chars, uint64(len(line))):]
	return line[:min(u.check, uint64(len(line)))]
}

func isBlank(b byte) bool { return b == ' ' || b == '\t' || b == '\n' }

func (u *uniquer) equal(a, b []byte) bool {
	if u.fold {
		return bytes.EqualFold(a, b)
	}
	return bytes.Equal(a, b)
}

func (u *uniquer) filter(in io.Reader) error {
	l := tool.NewLines(in, u.delim)
	var prev []byte
	n := 0
	for {
		line, ok := l.Next()
		if ok && n > 0 && u.equal(u.key(prev), u.key(line)) {
			n++
			u.member(prev, n)
			if u.group != "" || u.all != "" {
				prev = append(prev[:0], line...) // these print every line, as it is
			}
			continue
		}
		if n > 0 {
			u.end(prev, n)
		}
		if !ok {
			if u.group == "append" || u.group == "both" {
				if u.shown {
					u.write(nil)
				}
			}
			return l.Err
		}
		prev = append(prev[:0], line...)
		n = 1
	}
}

// member is called when a group's n-th line has been seen, with the one before it.
func (u *uniquer) member(prev []byte, n int) {
	switch {
	case u.group != "":
		if n == 2 {
			u.begin()
		}
		u.write(prev)
	case u.all != "":
		if n == 2 && (u.all == "prepend" || u.all == "separate" && u.shown) {
			u.write(nil)
		}
		u.shown = true
		u.write(prev)
	}
}

// begin writes what separates groups.
func (u *uniquer) begin() {
	if u.shown || u.group == "prepend" || u.group == "both" {
		u.write(nil)
	}
	u.shown = true
}

// end finishes a group of n lines, the last of which is line.
func (u *uniquer) end(line []byte, n int) {
	switch {
	case u.group != "":
		if n == 1 {
			u.begin()
		}
		u.write(line)
	case u.all != "":
		if n > 1 && !u.unique {
			u.write(line)
		}
	case u.repeated && n == 1, u.unique && n > 1:
	default:
		if u.count {
			fmt.Fprintf(u.out, "%7d ", n)
		}
		u.write(line)
	}
}

func (u *uniquer) write(line []byte) {
	u.out.Write(line)
	u.out.Write([]byte{u.delim})
}
