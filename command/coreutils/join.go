package coreutils

import (
	"bytes"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const (
	keyCheckOrder = tool.KeyOwn + iota
	keyNoCheckOrder
	keyJoinHeader
)

var joinSpec = tool.Spec{
	Usage: []string{"[OPTION]... FILE1 FILE2"},
	About: "For each pair of input lines with identical join fields, write a line to\nstandard output.  The default join field is the first, delimited by blanks.\n\nWhen FILE1 or FILE2 (not both) is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'a', Arg: getopt.Required, Name: "FILENUM", Help: "also print unpairable lines from file FILENUM, where FILENUM is 1 or 2"},
		{Short: 'e', Arg: getopt.Required, Name: "STRING", Help: "replace missing (empty) input fields with STRING"},
		{Short: 'i', Long: "ignore-case", Help: "ignore differences in case when comparing fields"},
		{Short: 'j', Arg: getopt.Required, Name: "FIELD", Help: "equivalent to '-1 FIELD -2 FIELD'"},
		{Short: 'o', Arg: getopt.Required, Name: "FORMAT", Help: "obey FORMAT while constructing output line"},
		{Short: 't', Arg: getopt.Required, Name: "CHAR", Help: "use CHAR as input and output field separator"},
		{Short: 'v', Arg: getopt.Required, Name: "FILENUM", Help: "like -a FILENUM, but suppress joined output lines"},
		{Short: '1', Arg: getopt.Required, Name: "FIELD", Help: "join on this FIELD of file 1"},
		{Short: '2', Arg: getopt.Required, Name: "FIELD", Help: "join on this FIELD of file 2"},
		{Long: "check-order", Key: keyCheckOrder, Help: "check that the input is correctly sorted, even if all input lines are pairable"},
		{Long: "nocheck-order", Key: keyNoCheckOrder, Help: "do not check that the input is correctly sorted"},
		{Long: "header", Key: keyJoinHeader, Help: "treat the first line in each file as field headers, print them without trying to pair them"},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
	},
	Package: tool.Coreutils, Order: getopt.InOrder,
}

// joinField is a place of the output: a field of a file, or the join field if the file is 0. Fields count from 0.
type joinField struct{ file, field int }

type joinLine struct {
	text   []byte
	fields [][]byte
}

// joinSide is one of the files, with the line last read, for the order's check.
type joinSide struct {
	name   string
	lines  *tool.Lines
	key    int
	prev   *joinLine
	number int
	warned bool
	eof    bool
}

type joiner struct {
	t            *tool.T
	side         [2]joinSide
	unpaired     [2]bool
	pairs        bool
	empty        string
	format       []joinField
	auto         bool
	autoCount    [2]int
	sep          int // -1: blanks, -2: the whole line is one field
	fold         bool
	delim        byte
	check        int // -1 never, 0 if something can't be paired, 1 always
	header       bool
	seenUnpaired bool
}

// Join joins two sorted files on a field.
func Join(t *tool.T) int {
	j := &joiner{t: t, pairs: true, sep: -1, delim: '\n'}
	j.side[0].key, j.side[1].key = -1, -1
	opts, _ := t.ParseArgs(&joinSpec, obsoleteJoin(t.Args()[1:]))
	var files []string
	more := false // operands may go on a format
	for _, o := range opts {
		if o.Key == getopt.Operand {
			if more && joinFormatLike(o.Arg) {
				j.addFormat(o.Arg)
				continue
			}
			more = false
			files = append(files, o.Arg)
			continue
		}
		more = o.Key == 'o'
		j.option(o)
	}
	if len(files) < 2 {
		if len(files) == 0 {
			t.Missing(1)
		}
		t.UsageError(1, "missing operand after %s", tool.Quote(files[0]))
	}
	if len(files) > 2 {
		t.UsageError(1, "extra operand %s", tool.QuoteAF(files[2]))
	}
	for i := range j.side {
		j.side[i].key = max(0, j.side[i].key)
		j.side[i].name = files[i]
		if files[0] == "-" && files[1] == "-" {
			t.Fatal(1, "both files cannot be standard input: No such file or directory")
		}
		in, err := t.Open(files[i])
		if err != nil {
			t.WarnFile(files[i], err)
			return 1
		}
		defer in.Close()
		j.side[i].lines = tool.NewLines(in, j.delim)
	}
	return j.run()
}

// obsoleteJoin turns -j1 N and -j2 N into -1 N and -2 N.
func obsoleteJoin(args []string) []string {
	out := append([]string(nil), args...)
	for i, a := range out {
		if a == "--" {
			break
		}
		if (a == "-j1" || a == "-j2") && i+1 < len(out) && strings.Trim(out[i+1], "0123456789") == "" && i+4 <= len(out) {
			out[i] = "-" + a[2:]
		}
	}
	return out
}

func joinFormatLike(s string) bool {
	return s != "" && strings.Trim(s, "0123456789., \t") == "" && strings.Contains(s, ".") || s == "0"
}

func (j *joiner) option(o getopt.Opt) {
	t := j.t
	switch o.Key {
	case 'a', 'v':
		n, err := strconv.Atoi(o.Arg)
		if err != nil || n != 1 && n != 2 {
			t.Fatal(1, "invalid field number: %s", tool.Quote(o.Arg))
		}
		j.unpaired[n-1] = true
		if o.Key == 'v' {
			j.pairs = false
		}
	case 'e':
		if j.empty != "" && j.empty != o.Arg {
			t.Fatal(1, "conflicting empty-field replacement strings")
		}
		j.empty = o.Arg
	case 'i':
		j.fold = true
	case 'j':
		j.setKey(0, o.Arg)
		j.setKey(1, o.Arg)
	case '1', '2':
		j.setKey(int(o.Key-'1'), o.Arg)
	case 'o':
		if o.Arg == "auto" {
			j.auto = true
		} else {
			j.addFormat(o.Arg)
		}
	case 't':
		j.setSeparator(o.Arg)
	case keyCheckOrder:
		j.check = 1
	case keyNoCheckOrder:
		j.check = -1
	case keyJoinHeader:
		j.header = true
	case 'z':
		j.delim = 0
	}
}

func (j *joiner) setSeparator(arg string) {
	sep := -2
	switch {
	case arg == "":
	case arg == `\0`:
		sep = 0
	case len(arg) > 1:
		j.t.Fatal(1, "multi-character tab %s", tool.Quote(arg))
	default:
		if sep = int(arg[0]); sep == '\n' {
			sep = -2
		}
	}
	if j.sep != -1 && j.sep != sep {
		j.t.Fatal(1, "incompatible tabs")
	}
	j.sep = sep
}

func (j *joiner) field(s string) int {
	n, err := strconv.ParseUint(s, 10, 62)
	if err != nil && strings.Trim(s, "0123456789") == "" && s != "" {
		return 1 << 62
	}
	if err != nil || n == 0 {
		j.t.Fatal(1, "invalid field number: %s", tool.Quote(s))
	}
	return int(n - 1)
}

func (j *joiner) setKey(i int, arg string) {
	n := j.field(arg)
	if k := j.side[i].key; k >= 0 && k != n {
		j.t.Fatal(1, "incompatible join fields %d, %d", k+1, n+1)
	}
	j.side[i].key = n
}

func (j *joiner) addFormat(list string) {
	for _, item := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		switch {
		case item == "0":
			j.format = append(j.format, joinField{})
		case item[0] == '0':
			j.t.Fatal(1, "invalid field specifier: %s", tool.Quote(item))
		case len(item) > 1 && (item[0] == '1' || item[0] == '2') && item[1] == '.':
			j.format = append(j.format, joinField{int(item[0] - '0'), j.field(item[2:])})
		case item[0] == '1' || item[0] == '2':
			j.t.Fatal(1, "invalid field specifier: %s", tool.Quote(item))
		default:
			j.t.Fatal(1, "invalid file number in field spec: %s", tool.Quote(item))
		}
	}
}

// read returns the next line of a file, nil at its end, and checks the order.
func (j *joiner) read(i int) *joinLine {
	s := &j.side[i]
	b, ok := s.lines.Next()
	if !ok {
		if err := s.lines.Err; err != nil {
			j.t.Fatal(1, "%s: read error: %s", tool.QuoteF(s.name), tool.Strerror(err))
		}
		s.eof = true
		return nil
	}
	s.number++
	l := &joinLine{text: append([]byte(nil), b...)}
	l.split(j.sep)
	if s.prev != nil {
		j.checkOrder(i, s.prev, l)
	}
	s.prev = l
	return l
}

func (l *joinLine) split(sep int) {
	b := l.text
	switch {
	case len(b) == 0:
	case sep == -2:
		l.fields = [][]byte{b}
	case sep >= 0:
		l.fields = bytes.Split(b, []byte{byte(sep)})
	default:
		l.fields = bytes.FieldsFunc(b, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' })
		if n := len(b); n > 0 && len(l.fields) > 0 && (b[n-1] == ' ' || b[n-1] == '\t') {
			l.fields = append(l.fields, nil) // blanks at the end begin an empty field
		}
	}
}

func (j *joiner) checkOrder(i int, prev, cur *joinLine) {
	s := &j.side[i]
	if j.check < 0 || j.check == 0 && !j.seenUnpaired || s.warned {
		return
	}
	if j.compare(prev, cur, i, i) <= 0 {
		return
	}
	j.t.Warn("%s:%d: is not sorted: %s", s.name, s.number, cur.text)
	if j.check > 0 {
		j.t.Exit(1)
	}
	s.warned = true
}

func (l *joinLine) at(i int) []byte {
	if i < len(l.fields) {
		return l.fields[i]
	}
	return nil
}

// compare orders by the join fields of the files that the lines come from.
func (j *joiner) compare(a, b *joinLine, fileA, fileB int) int {
	x, y := a.at(j.side[fileA].key), b.at(j.side[fileB].key)
	if !j.fold {
		return bytes.Compare(x, y)
	}
	return bytes.Compare(bytes.ToUpper(x), bytes.ToUpper(y))
}

// joinMaxGroup bounds the bytes of lines with one key that are held in memory.
const joinMaxGroup = 256 << 20

// group reads on while lines have the key of the first; next is the line after them.
func (j *joiner) group(i int, first *joinLine) (group []*joinLine, next *joinLine) {
	group = []*joinLine{first}
	held := 0
	for {
		if next = j.read(i); next == nil || j.compare(first, next, i, i) != 0 {
			return group, next
		}
		group = append(group, next)
		if held += len(next.text) + 64; held > joinMaxGroup {
			j.t.Fatal(1, "memory exhausted")
		}
	}
}

func (j *joiner) run() int {
	a, b := j.read(0), j.read(1)
	if j.auto {
		if a != nil {
			j.autoCount[0] = len(a.fields)
		}
		if b != nil {
			j.autoCount[1] = len(b.fields)
		}
	}
	if j.header && (a != nil || b != nil) {
		j.print(a, b)
		j.side[0].prev, j.side[1].prev = nil, nil
		if a != nil {
			a = j.read(0)
		}
		if b != nil {
			b = j.read(1)
		}
	}
	for a != nil && b != nil {
		j.t.Check()
		c := j.compare(a, b, 0, 1)
		if c < 0 {
			j.alone(0, a)
			a = j.read(0)
			j.seenUnpaired = true
			continue
		}
		if c > 0 {
			j.alone(1, b)
			b = j.read(1)
			j.seenUnpaired = true
			continue
		}
		var as, bs []*joinLine
		as, a = j.group(0, a)
		bs, b = j.group(1, b)
		if j.pairs {
			for _, x := range as {
				for _, y := range bs {
					j.print(x, y)
				}
			}
		}
	}
	// What is left is read to the end if it is printed or its order matters.
	for i, l := range []*joinLine{a, b} {
		if l == nil || !j.unpaired[i] && j.check < 0 {
			continue
		}
		if j.side[1-i].number > 0 {
			j.seenUnpaired = true
		}
		for ; l != nil; l = j.read(i) {
			j.alone(i, l)
			if j.side[i].warned && !j.unpaired[i] {
				break
			}
		}
	}
	if j.side[0].warned || j.side[1].warned {
		j.t.Warn("input is not in sorted order")
		return 1
	}
	return 0
}

func (j *joiner) alone(i int, l *joinLine) {
	if !j.unpaired[i] {
		return
	}
	if i == 0 {
		j.print(l, nil)
	} else {
		j.print(nil, l)
	}
}

// print writes a joined line; a missing partner is nil.
func (j *joiner) print(a, b *joinLine) {
	sep := byte(' ')
	if j.sep >= 0 {
		sep = byte(j.sep)
	}
	first := true
	put := func(f []byte) {
		if !first {
			j.t.Out.WriteByte(sep)
		}
		first = false
		if len(f) == 0 {
			j.t.Out.WriteString(j.empty)
		} else {
			j.t.Out.Write(f)
		}
	}
	lines := [2]*joinLine{a, b}
	key := func() []byte {
		if a != nil {
			return a.at(j.side[0].key)
		}
		return b.at(j.side[1].key)
	}
	if len(j.format) > 0 && !j.auto {
		for _, f := range j.format {
			switch {
			case f.file == 0:
				put(key())
			case lines[f.file-1] != nil:
				put(lines[f.file-1].at(f.field))
			default:
				put(nil)
			}
		}
	} else {
		put(key())
		for i, l := range lines {
			n := j.autoCount[i]
			if l == nil && !j.auto {
				continue
			}
			if l == nil {
				l = &joinLine{}
			}
			if !j.auto {
				n = len(l.fields)
			}
			for k := range n {
				if k != j.side[i].key {
					put(l.at(k))
				}
			}
		}
	}
	j.t.Out.WriteByte(j.delim)
}
