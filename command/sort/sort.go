// Package sort is sort, as GNU coreutils 9.1.
//
// Lines are compared by keys, each a part of the line with its own way of ordering. What doesn't fit into memory is
// sorted in runs, which are kept in temporary files of the sandbox and merged (runs.go).
package sort

import (
	"crypto/md5"
	"errors"
	"io"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const (
	keyBatch = tool.KeyOwn + iota
	keyCompress
	keyDebug
	keyFiles0
	keyParallel
	keyRandomSource
	keySort
)

var spec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]...", "[OPTION]... --files0-from=F"},
	About: "Write sorted concatenation of all FILE(s) to standard output.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'b', Long: "ignore-leading-blanks", Help: "ignore leading blanks"},
		{Short: 'd', Long: "dictionary-order", Help: "consider only blanks and alphanumeric characters"},
		{Short: 'f', Long: "ignore-case", Help: "fold lower case to upper case characters"},
		{Short: 'g', Long: "general-numeric-sort", Help: "compare according to general numerical value"},
		{Short: 'i', Long: "ignore-nonprinting", Help: "consider only printable characters"},
		{Short: 'M', Long: "month-sort", Help: "compare (unknown) < 'JAN' < ... < 'DEC'"},
		{Short: 'h', Long: "human-numeric-sort", Help: "compare human readable numbers (e.g., 2K 1G)"},
		{Short: 'n', Long: "numeric-sort", Help: "compare according to string numerical value"},
		{Short: 'R', Long: "random-sort", Help: "shuffle, but group identical keys.  See shuf(1)"},
		{Long: "random-source", Key: keyRandomSource, Arg: getopt.Required, Name: "FILE", Help: "get random bytes from FILE"},
		{Short: 'r', Long: "reverse", Help: "reverse the result of comparisons"},
		{Long: "sort", Key: keySort, Arg: getopt.Required, Name: "WORD", Help: "sort according to WORD: general-numeric -g, human-numeric -h, month -M, numeric -n, random -R, version -V"},
		{Short: 'V', Long: "version-sort", Help: "natural sort of (version) numbers within text"},
		{Long: "batch-size", Key: keyBatch, Arg: getopt.Required, Name: "NMERGE", Help: "(accepted; at most 64 inputs are merged at once)"},
		{Short: 'c', Help: "check for sorted input; do not sort"},
		{Long: "check", Key: 'c', Arg: getopt.Optional, Name: "diagnose-first", Help: "likewise; =quiet or =silent is -C"},
		{Short: 'C', Help: "like -c, but do not report first bad line"},
		{Long: "compress-program", Key: keyCompress, Arg: getopt.Required, Name: "PROG", Help: "(accepted; temporaries aren't compressed)"},
		{Long: "debug", Key: keyDebug, Help: "(accepted, without annotations)"},
		{Long: "files0-from", Key: keyFiles0, Arg: getopt.Required, Name: "F", Help: "read input from the files specified by NUL-terminated names in file F"},
		{Short: 'k', Long: "key", Arg: getopt.Required, Name: "KEYDEF", Help: "sort via a key; KEYDEF gives location and type"},
		{Short: 'm', Long: "merge", Help: "merge already sorted files; do not sort"},
		{Short: 'o', Long: "output", Arg: getopt.Required, Name: "FILE", Help: "write result to FILE instead of standard output"},
		{Short: 's', Long: "stable", Help: "stabilize sort by disabling last-resort comparison"},
		{Short: 'S', Long: "buffer-size", Arg: getopt.Required, Name: "SIZE", Help: "use SIZE for main memory buffer"},
		{Short: 't', Long: "field-separator", Arg: getopt.Required, Name: "SEP", Help: "use SEP instead of non-blank to blank transition"},
		{Short: 'T', Long: "temporary-directory", Arg: getopt.Required, Name: "DIR", Help: "use DIR for temporaries, not $TMPDIR or /tmp"},
		{Long: "parallel", Key: keyParallel, Arg: getopt.Required, Name: "N", Help: "(accepted; one thread is used)"},
		{Short: 'u', Long: "unique", Help: "with -c, check for strict ordering; without -c, output only the first of an equal run"},
		{Short: 'y', Arg: getopt.Optional},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
	},
	Notes:   "KEYDEF is F[.C][OPTS][,F[.C][OPTS]] for start and stop position, where F is a\nfield number and C a character position in the field; both are origin 1, and\nthe stop position defaults to the line's end.",
	Package: tool.Coreutils, Fail: 2,
}

// exitBad is the status of failures; disorder found by -c is 1.
const exitBad = 2

// ordering is how keys are compared.
type ordering struct {
	skipStart, skipEnd      bool // leading blanks, for the start and the end of the key
	dictionary, printable   bool
	fold, reverse           bool
	numeric, general, human bool
	month, random, version  bool
}

// key is one -k: positions from 0; endField < 0 means the end of the line, endChar 0 the end of the field.
type key struct {
	ordering
	startField, startChar int
	endField, endChar     int
	set                   bool // it has options of its own
}

// sorter is a running sort.
type sorter struct {
	t                     *tool.T
	keys                  []key
	global                ordering
	unique, stable, merge bool
	check                 byte // c or C
	sep                   int  // -1: blank to non-blank
	delim                 byte
	output                string
	hasOutput             bool
	budget                int
	tempDir               string
	salt                  []byte
	simple                bool // bytes of whole lines decide
}

// defaultBudget bounds lines in memory before a run is written to a file.
const defaultBudget = 64 << 20

// Sort sorts lines.
func Sort(t *tool.T) int {
	t.FailStatus(exitBad)
	s := &sorter{t: t, sep: -1, delim: '\n', budget: defaultBudget, tempDir: t.Getenv("TMPDIR")}
	opts, files := t.ParseArgs(&spec, obsoleteKeys(t.Args()[1:]))
	list, randomSource := "", ""
	for _, o := range opts {
		switch o.Key {
		case keyFiles0:
			list = o.Arg
		case keyRandomSource:
			randomSource = o.Arg
		default:
			s.option(o)
		}
	}
	if list != "" {
		if len(files) > 0 {
			t.Warn("extra operand %s", tool.QuoteAF(files[0]))
			t.Stderr().Write([]byte("file operands cannot be combined with --files0-from\n"))
			t.Try(exitBad)
		}
		files = s.files0(list)
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	s.settle(randomSource)
	if s.check != 0 {
		if len(files) > 1 {
			t.Fatal(exitBad, "extra operand %s not allowed with -%c", tool.QuoteAF(files[1]), s.check)
		}
		return s.checkOrder(files[0])
	}
	return s.run(files)
}

func (s *sorter) option(o getopt.Opt) {
	switch o.Key {
	case 'c':
		want := byte('c')
		if o.Has && s.t.Choice(1, "--check", o.Arg, [][]string{{"quiet", "silent"}, {"diagnose-first"}}) == 0 {
			want = 'C'
		}
		s.setCheck(want)
	case 'C':
		s.setCheck('C')
	case 'k':
		s.keys = append(s.keys, s.parseKey(o.Arg))
	case 'm':
		s.merge = true
	case 'o':
		if s.hasOutput && s.output != o.Arg {
			s.t.Fatal(exitBad, "multiple output files specified")
		}
		s.output, s.hasOutput = o.Arg, true
	case 's':
		s.stable = true
	case 'S':
		s.buffer(o.As, o.Arg)
	case 't':
		s.separator(o.Arg)
	case 'T':
		s.tempDir = o.Arg
	case 'u':
		s.unique = true
	case 'z':
		s.delim = 0
	case keySort:
		i := s.t.Choice(1, "--sort", o.Arg, [][]string{{"general-numeric"}, {"human-numeric"}, {"month"}, {"numeric"}, {"random"}, {"version"}})
		s.global.letter("ghMnRV"[i])
	case keyBatch, keyParallel:
		if n, err := strconv.ParseUint(o.Arg, 10, 64); err != nil || n == 0 {
			s.t.Fatal(exitBad, "invalid %s argument %s", o.As, tool.QuoteAF(o.Arg))
		}
	case keyCompress, keyDebug, 'y':
	default:
		s.global.letter(byte(o.Key))
	}
}

func (s *sorter) setCheck(c byte) {
	if s.check != 0 && s.check != c {
		s.t.Fatal(exitBad, "options '-cC' are incompatible")
	}
	s.check = c
}

func (s *sorter) separator(arg string) {
	switch {
	case arg == "":
		s.t.Fatal(exitBad, "empty tab")
	case arg == `\0`:
		s.sep = 0
	case len(arg) > 1:
		s.t.Fatal(exitBad, "multi-character tab %s", tool.Quote(arg))
	default:
		if s.sep >= 0 && s.sep != int(arg[0]) {
			s.t.Fatal(exitBad, "incompatible tabs")
		}
		s.sep = int(arg[0])
	}
}

// buffer sets the memory for lines: -S SIZE in KiB without a suffix, percentages of the default's double.
func (s *sorter) buffer(option, arg string) {
	if pct, ok := strings.CutSuffix(arg, "%"); ok {
		n, err := strconv.ParseFloat(pct, 64)
		if err != nil || n < 0 {
			s.t.Fatal(exitBad, "invalid %s argument %s", option, tool.QuoteAF(arg))
		}
		s.budget = int(min(n, 100) / 100 * 2 * defaultBudget)
	} else {
		if strings.Trim(arg, "0123456789") == "" {
			arg += "K"
		}
		n, err := tool.ParseSize(arg, "bEgGkKmMpPtTyYzZ")
		switch {
		case errors.Is(err, tool.ErrSuffix):
			s.t.Fatal(exitBad, "invalid suffix in %s argument %s", option, tool.QuoteAF(arg))
		case err != nil && !errors.Is(err, tool.ErrRange):
			s.t.Fatal(exitBad, "invalid %s argument %s", option, tool.QuoteAF(arg))
		}
		s.budget = int(min(n, 2*defaultBudget))
	}
	s.budget = max(s.budget, 64<<10)
}

// letter sets an ordering option.
func (o *ordering) letter(c byte) bool {
	switch c {
	case 'b':
		o.skipStart, o.skipEnd = true, true
	case 'd':
		o.dictionary = true
	case 'f':
		o.fold = true
	case 'g':
		o.general = true
	case 'h':
		o.human = true
	case 'i':
		o.printable = true
	case 'M':
		o.month = true
	case 'n':
		o.numeric = true
	case 'R':
		o.random = true
	case 'r':
		o.reverse = true
	case 'V':
		o.version = true
	default:
		return false
	}
	return true
}

// parseKey reads F[.C][OPTS][,F[.C][OPTS]].
func (s *sorter) parseKey(def string) key {
	k := key{endField: -1}
	rest := def
	bad := func(what string) {
		s.t.Fatal(exitBad, "%s: invalid field specification %s", what, tool.Quote(def))
	}
	number := func(what string) int {
		i := 0
		for i < len(rest) && rest[i] >= '0' && rest[i] <= '9' {
			i++
		}
		if i == 0 {
			s.t.Fatal(exitBad, "%s: invalid count at start of %s", what, tool.Quote(rest))
		}
		n, err := strconv.ParseInt(rest[:i], 10, 31)
		if err != nil {
			n = 1<<31 - 1
		}
		rest = rest[i:]
		return int(n)
	}
	letters := func(end bool) {
		for rest != "" && rest[0] != ',' {
			if rest[0] == 'b' {
				if end {
					k.skipEnd = true
				} else {
					k.skipStart = true
				}
			} else if !k.letter(rest[0]) {
				bad("stray character in field spec")
			}
			k.set = true
			rest = rest[1:]
		}
	}
	if k.startField = number("invalid number at field start"); k.startField == 0 {
		bad("field number is zero")
	}
	k.startField--
	if strings.HasPrefix(rest, ".") {
		rest = rest[1:]
		if k.startChar = number("invalid number after '.'"); k.startChar == 0 {
			bad("character offset is zero")
		}
		k.startChar--
	}
	letters(false)
	if strings.HasPrefix(rest, ",") {
		rest = rest[1:]
		if k.endField = number("invalid number after ','"); k.endField == 0 {
			bad("field number is zero")
		}
		k.endField--
		if strings.HasPrefix(rest, ".") {
			rest = rest[1:]
			k.endChar = number("invalid number after '.'")
		}
		letters(true)
		if rest != "" {
			bad("stray character in field spec")
		}
	}
	return k
}

// obsoleteKeys turns +POS1 [-POS2] into -k.
func obsoleteKeys(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return append(out, args[i:]...)
		}
		if len(a) < 2 || a[0] != '+' || a[1] < '0' || a[1] > '9' {
			out = append(out, a)
			continue
		}
		def, ok := obsoletePosition(a[1:], false)
		if !ok {
			out = append(out, a)
			continue
		}
		if i+1 < len(args) && len(args[i+1]) > 1 && args[i+1][0] == '-' && args[i+1][1] >= '0' && args[i+1][1] <= '9' {
			if end, ok := obsoletePosition(args[i+1][1:], true); ok {
				def += "," + end
				i++
			}
		}
		out = append(out, "-k", def)
	}
	return out
}

func obsoletePosition(s string, end bool) (string, bool) {
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.') {
		i++
	}
	f, c, hasChar := strings.Cut(s[:i], ".")
	field, err := strconv.Atoi(f)
	if err != nil {
		return "", false
	}
	char := 0
	if hasChar {
		if char, err = strconv.Atoi(c); err != nil {
			return "", false
		}
	}
	out := ""
	switch {
	case !end:
		out = strconv.Itoa(field+1) + "." + strconv.Itoa(char+1)
	case char == 0:
		out = strconv.Itoa(max(field, 1))
	default:
		out = strconv.Itoa(field+1) + "." + strconv.Itoa(char)
	}
	return out + s[i:], true
}

func (s *sorter) files0(list string) []string {
	in, err := s.t.Open(list)
	if err != nil {
		s.t.Fatal(exitBad, "cannot open: %s: %s", tool.QuoteF(list), tool.Strerror(err))
	}
	defer in.Close()
	l := tool.NewLines(in, 0)
	var files []string
	for {
		name, ok := l.Next()
		if !ok {
			break
		}
		if len(name) == 0 {
			s.t.Fatal(exitBad, "%s:%d: invalid zero-length file name", tool.QuoteF(list), len(files)+1)
		}
		files = append(files, string(name))
	}
	if len(files) == 0 {
		s.t.Fatal(exitBad, "no input from %s", tool.QuoteAF(list))
	}
	return files
}

// settle gives keys without options the global ones, and checks which go together.
func (s *sorter) settle(randomSource string) {
	for i := range s.keys {
		if k := &s.keys[i]; !k.set {
			k.ordering = s.global
		}
		s.compatible(&s.keys[i].ordering)
	}
	if len(s.keys) == 0 && s.global != (ordering{}) && s.global != (ordering{reverse: true}) {
		s.keys = []key{{ordering: s.global, endField: -1}}
	}
	s.compatible(&s.global)
	s.simple = len(s.keys) == 0
	random := false
	for i := range s.keys {
		random = random || s.keys[i].random
	}
	if !random {
		return
	}
	s.salt = make([]byte, 16)
	var r io.Reader = s.t.Rand()
	if randomSource != "" {
		in, err := s.t.Open(randomSource)
		if err != nil {
			s.t.Fatal(exitBad, "open failed: %s: %s", tool.QuoteF(randomSource), tool.Strerror(err))
		}
		defer in.Close()
		r = in
	}
	if _, err := io.ReadFull(r, s.salt); err != nil {
		s.t.Fatal(exitBad, "%s: end of file", tool.QuoteF(randomSource))
	}
}

func (s *sorter) compatible(o *ordering) {
	letters := ""
	for _, c := range []struct {
		on     bool
		letter string
	}{{o.dictionary, "d"}, {o.general, "g"}, {o.human, "h"}, {o.printable && !o.dictionary, "i"}, {o.month, "M"}, {o.numeric, "n"}, {o.random, "R"}, {o.version, "V"}} {
		if c.on {
			letters += c.letter
		}
	}
	kinds := 0
	for _, on := range []bool{o.numeric, o.general, o.human, o.month, o.version || o.random || o.dictionary || o.printable} {
		if on {
			kinds++
		}
	}
	if kinds > 1 {
		s.t.Fatal(exitBad, "options '-%s' are incompatible", letters)
	}
}

// checkOrder is -c and -C.
func (s *sorter) checkOrder(name string) int {
	in, err := s.t.Open(name)
	if err != nil {
		s.t.Fatal(exitBad, "open failed: %s: %s", tool.QuoteF(name), tool.Strerror(err))
	}
	defer in.Close()
	l := tool.NewLines(in, s.delim)
	var prev []byte
	for n := 1; ; n++ {
		b, ok := l.Next()
		if !ok {
			break
		}
		if n > 1 {
			c := s.compare(prev, b)
			if c > 0 || c == 0 && s.unique {
				if s.check == 'c' {
					s.t.Warn("%s:%d: disorder: %s", tool.QuoteF(name), n, b)
				}
				return 1
			}
		}
		prev = append(prev[:0], b...)
	}
	if l.Err != nil {
		s.t.Fatal(exitBad, "read failed: %s: %s", tool.QuoteF(name), tool.Strerror(l.Err))
	}
	return 0
}

// hash is what -R sorts by.
func (s *sorter) hash(b []byte) [md5.Size]byte {
	return md5.Sum(append(append(make([]byte, 0, len(s.salt)+len(b)), s.salt...), b...))
}

// run sorts or merges the files.
func (s *sorter) run(files []string) int {
	out := s.writer(files)
	if s.merge {
		s.mergeFiles(files, out)
	} else {
		s.sortFiles(files, out)
	}
	out.close()
	return 0
}
