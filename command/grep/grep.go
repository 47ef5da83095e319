// Package grep is grep, egrep and fgrep, as GNU grep 3.8.
//
// A line is selected if any pattern matches it (or none, with -v). The matcher finds matches in a line; the scanner cuts
// files into lines and skips quickly to those that contain a string which every match must contain; the printer writes
// lines with their prefixes, context and colors.
package grep

import (
	"errors"
	"io"
	"path"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	keyBinaryFiles = tool.KeyOwn + iota
	keyColor
	keyExclude
	keyExcludeFrom
	keyExcludeDir
	keyGroupSeparator
	keyInclude
	keyLabel
	keyLineBuffered
	keyNoGroupSeparator
	keyNoIgnoreCase
)

var spec = tool.Spec{
	Usage: []string{"[OPTION]... PATTERNS [FILE]..."},
	About: "Search for PATTERNS in each FILE.\nExample: grep -i 'hello world' menu.h main.c\nPATTERNS can contain multiple patterns separated by newlines.",
	Options: []getopt.Option{
		{Short: 'E', Long: "extended-regexp", Help: "PATTERNS are extended regular expressions"},
		{Short: 'F', Long: "fixed-strings", Help: "PATTERNS are strings"},
		{Short: 'G', Long: "basic-regexp", Help: "PATTERNS are basic regular expressions"},
		{Short: 'P', Long: "perl-regexp", Help: "PATTERNS are Perl regular expressions"},
		{Short: 'X', Arg: getopt.Required},
		{Short: 'e', Long: "regexp", Arg: getopt.Required, Name: "PATTERNS", Help: "use PATTERNS for matching"},
		{Short: 'f', Long: "file", Arg: getopt.Required, Name: "FILE", Help: "take PATTERNS from FILE"},
		{Short: 'i', Long: "ignore-case", Help: "ignore case distinctions in patterns and data"},
		{Short: 'y', Key: 'i'},
		{Long: "no-ignore-case", Key: keyNoIgnoreCase, Help: "do not ignore case distinctions (default)"},
		{Short: 'w', Long: "word-regexp", Help: "match only whole words"},
		{Short: 'x', Long: "line-regexp", Help: "match only whole lines"},
		{Short: 'z', Long: "null-data", Help: "a data line ends in 0 byte, not newline"},
		{Short: 's', Long: "no-messages", Help: "suppress error messages"},
		{Short: 'v', Long: "invert-match", Help: "select non-matching lines"},
		{Short: 'V', Help: "display version information and exit"},
		{Short: 'm', Long: "max-count", Arg: getopt.Required, Name: "NUM", Help: "stop after NUM selected lines"},
		{Short: 'b', Long: "byte-offset", Help: "print the byte offset with output lines"},
		{Short: 'n', Long: "line-number", Help: "print line number with output lines"},
		{Long: "line-buffered", Key: keyLineBuffered, Help: "flush output on every line"},
		{Short: 'H', Long: "with-filename", Help: "print file name with output lines"},
		{Short: 'h', Long: "no-filename", Help: "suppress the file name prefix on output"},
		{Long: "label", Key: keyLabel, Arg: getopt.Required, Name: "LABEL", Help: "use LABEL as the standard input file name prefix"},
		{Short: 'o', Long: "only-matching", Help: "show only nonempty parts of lines that match"},
		{Short: 'q', Long: "quiet", Help: "suppress all normal output"},
		{Long: "silent", Key: 'q'},
		{Long: "binary-files", Key: keyBinaryFiles, Arg: getopt.Required, Name: "TYPE", Help: "assume that binary files are TYPE; TYPE is 'binary', 'text', or 'without-match'"},
		{Short: 'a', Long: "text", Help: "equivalent to --binary-files=text"},
		{Short: 'I', Help: "equivalent to --binary-files=without-match"},
		{Short: 'd', Long: "directories", Arg: getopt.Required, Name: "ACTION", Help: "how to handle directories; ACTION is 'read', 'recurse', or 'skip'"},
		{Short: 'D', Long: "devices", Arg: getopt.Required, Name: "ACTION", Help: "how to handle devices, FIFOs and sockets; ACTION is 'read' or 'skip'"},
		{Short: 'r', Long: "recursive", Help: "like --directories=recurse"},
		{Short: 'R', Long: "dereference-recursive", Help: "likewise, but follow all symlinks"},
		{Long: "include", Key: keyInclude, Arg: getopt.Required, Name: "GLOB", Help: "search only files that match GLOB (a file pattern)"},
		{Long: "exclude", Key: keyExclude, Arg: getopt.Required, Name: "GLOB", Help: "skip files that match GLOB"},
		{Long: "exclude-from", Key: keyExcludeFrom, Arg: getopt.Required, Name: "FILE", Help: "skip files that match any file pattern from FILE"},
		{Long: "exclude-dir", Key: keyExcludeDir, Arg: getopt.Required, Name: "GLOB", Help: "skip directories that match GLOB"},
		{Short: 'L', Long: "files-without-match", Help: "print only names of FILEs with no selected lines"},
		{Short: 'l', Long: "files-with-matches", Help: "print only names of FILEs with selected lines"},
		{Short: 'c', Long: "count", Help: "print only a count of selected lines per FILE"},
		{Short: 'T', Long: "initial-tab", Help: "make tabs line up (if needed)"},
		{Short: 'Z', Long: "null", Help: "print 0 byte after FILE name"},
		{Short: 'B', Long: "before-context", Arg: getopt.Required, Name: "NUM", Help: "print NUM lines of leading context"},
		{Short: 'A', Long: "after-context", Arg: getopt.Required, Name: "NUM", Help: "print NUM lines of trailing context"},
		{Short: 'C', Long: "context", Arg: getopt.Required, Name: "NUM", Help: "print NUM lines of output context"},
		{Long: "group-separator", Key: keyGroupSeparator, Arg: getopt.Required, Name: "SEP", Help: "print SEP on line between matches with context"},
		{Long: "no-group-separator", Key: keyNoGroupSeparator, Help: "do not print separator for matches with context"},
		{Long: "color", Key: keyColor, Arg: getopt.Optional, Name: "WHEN", Help: "use markers to highlight the matching strings; WHEN is 'always', 'never', or 'auto'"},
		{Long: "colour", Key: keyColor, Arg: getopt.Optional},
		{Short: 'U', Long: "binary", Help: "do not strip CR characters at EOL (MSDOS/Windows)"},
		{Short: 'u', Long: "unix-byte-offsets"},
	},
	Notes:   "When FILE is '-', read standard input.  With no FILE, read '.' if recursive,\nelse read standard input.  With fewer than two FILEs, assume -h.\nExit status is 0 if any line is selected, 1 otherwise; if any error occurs and -q is not given, the exit status is 2.",
	Package: tool.Grep, Fail: 2, Terse: true,
}

// searcher is a running grep.
type searcher struct {
	t        *tool.T
	patterns []string
	given    bool // a pattern was given by -e or -f
	kind     rune // E F G P
	fold     bool
	words    bool
	lines    bool
	delim    byte
	quietErr bool
	invert   bool
	max      int64 // selected lines per file; negative is unlimited
	offsets  bool
	numbers  bool
	names    int // -1 never, 1 always
	label    string
	only     bool
	quiet    bool
	binary   string // binary, text, without-match
	dirs     string // read, recurse, skip
	devices  string // "", read, skip
	follow   bool
	rules    []rule
	dirRules []rule
	list     byte // l, L
	count    bool
	tab      bool
	null     bool
	before   int
	after    int
	context  bool // asked for, if only of no lines
	sep      *string
	color    *palette
	flush    bool

	m           matcher
	withName    bool
	errored     bool
	outID       [2]uint64 // of standard output, if it is a regular file
	outRegular  bool
	anyOutput   bool
	interrupted bool
	stack       [][2]uint64
}

// rule is a file pattern of --include or --exclude.
type rule struct {
	glob    string
	include bool
}

// Grep searches files for patterns.
func Grep(t *tool.T) int { return run(t, 'G') }

// Egrep is grep -E.
func Egrep(t *tool.T) int { return run(t, 'E') }

// Fgrep is grep -F.
func Fgrep(t *tool.T) int { return run(t, 'F') }

// Rgrep is grep -r.
func Rgrep(t *tool.T) int { return run(t, 'G', "-r") }

func run(t *tool.T, kind rune, before ...string) int {
	t.FailStatus(2)
	sep := "--"
	s := &searcher{t: t, kind: kind, delim: '\n', max: -1, label: "(standard input)", binary: "binary", dirs: "read", before: -1, after: -1, sep: &sep}
	opts, operands := t.ParseArgs(&spec, digitOptions(append(before, t.Args()[1:]...)))
	context := -1
	for _, o := range opts {
		if o.Key == 'C' {
			context = s.number(o.Arg)
			continue
		}
		s.option(o)
	}
	s.context = context >= 0 || s.before >= 0 || s.after >= 0
	if s.before < 0 {
		s.before = max(context, 0)
	}
	if s.after < 0 {
		s.after = max(context, 0)
	}
	if !s.given {
		if len(operands) == 0 {
			t.Misused(&spec)
		}
		s.addPatterns(operands[0])
		operands = operands[1:]
	}
	s.settle(operands)
	if s.max == 0 && s.list != 'L' || len(s.patterns) == 0 && !s.invert && s.list != 'L' {
		return 1
	}
	return s.searchAll(operands)
}

// digitOptions turns -NUM into -C NUM, where it is no option's argument.
func digitOptions(args []string) []string {
	out := make([]string, 0, len(args))
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		if len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.ContainsAny(a, "0123456789") && (i == 0 || !takesArgument(args[i-1])) {
			a = digitCluster(a)
		}
		out = append(out, a)
	}
	return out
}

// digitCluster moves the digits of a cluster of letters, such as -n2, into a -C option at its place.
func digitCluster(a string) string {
	letters, digits := "", ""
	for j := 1; j < len(a); j++ {
		switch c := a[j]; {
		case c >= '0' && c <= '9':
			digits += string(c)
		case strings.IndexByte("efmdDABCX", c) >= 0:
			return a // the rest is an option's argument
		default:
			letters += string(c)
		}
	}
	if digits == "" {
		return a
	}
	return "-" + letters + "C" + digits
}

func takesArgument(prev string) bool {
	return len(prev) > 1 && prev[0] == '-' && prev[1] != '-' && strings.IndexByte("efmdDABCX", prev[len(prev)-1]) >= 0 &&
		!strings.ContainsAny(prev[1:len(prev)-1], "efmdDABCX") ||
		prev == "--regexp" || prev == "--file" || prev == "--max-count" || prev == "--label" || prev == "--include" || prev == "--exclude"
}

func (s *searcher) number(arg string) int {
	n, err := strconv.ParseUint(arg, 10, 63)
	if err != nil {
		var ne *strconv.NumError
		if errors.As(err, &ne) && errors.Is(ne.Err, strconv.ErrRange) {
			return 1<<31 - 1
		}
		s.t.Fatal(2, "%s: invalid context length argument", arg)
	}
	return int(min(n, 1<<31-1))
}

func (s *searcher) option(o getopt.Opt) {
	switch o.Key {
	case 'E', 'F', 'G', 'P':
		s.kind = o.Key
	case 'X':
		s.matcherName(o.Arg)
	case 'e':
		s.addPatterns(o.Arg)
	case 'f':
		s.patternFile(o.Arg)
	case 'i':
		s.fold = true
	case keyNoIgnoreCase:
		s.fold = false
	case 'w':
		s.words = true
	case 'x':
		s.lines = true
	case 'z':
		s.delim = 0
	case 's':
		s.quietErr = true
	case 'v':
		s.invert = true
	case 'V':
		s.t.Version(&spec)
		s.t.Exit(0)
	case 'm':
		n, err := strconv.ParseInt(o.Arg, 10, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			s.t.Fatal(2, "invalid max count")
		}
		s.max = n
	case 'b':
		s.offsets = true
	case 'n':
		s.numbers = true
	case 'H':
		s.names = 1
	case 'h':
		s.names = -1
	case 'o':
		s.only = true
	case 'q':
		s.quiet = true
	case 'a':
		s.binary = "text"
	case 'I':
		s.binary = "without-match"
	case 'r', 'R':
		s.dirs, s.follow = "recurse", o.Key == 'R'
	case 'L', 'l':
		s.list = byte(o.Key)
	case 'c':
		s.count = true
	case 'T':
		s.tab = true
	case 'Z':
		s.null = true
	case 'A':
		s.after = s.number(o.Arg)
	case 'B':
		s.before = s.number(o.Arg)
	default:
		s.longOption(o)
	}
}

func (s *searcher) matcherName(name string) {
	switch name {
	case "grep":
		s.kind = 'G'
	case "egrep", "awk", "gawk", "posixawk":
		s.kind = 'E'
	case "fgrep":
		s.kind = 'F'
	case "perl":
		s.kind = 'P'
	default:
		s.t.Fatal(2, "invalid matcher %s", name)
	}
}

func (s *searcher) longOption(o getopt.Opt) {
	t := s.t
	switch o.Key {
	case keyLineBuffered:
		s.flush = true
	case keyLabel:
		s.label = o.Arg
	case keyBinaryFiles:
		switch o.Arg {
		case "binary", "text", "without-match":
			s.binary = o.Arg
		default:
			t.Fatal(2, "invalid argument %s for %s\nValid arguments are:\n  - %s\n  - %s\n  - %s", tool.Quote(o.Arg), tool.Quote("--binary-files"), tool.Quote("binary"), tool.Quote("text"), tool.Quote("without-match"))
		}
	case 'd':
		s.dirs = []string{"read", "recurse", "skip"}[t.Choice(2, "--directories", o.Arg, [][]string{{"read"}, {"recurse"}, {"skip"}})]
	case 'D':
		if o.Arg != "read" && o.Arg != "skip" {
			t.Fatal(2, "unknown devices method")
		}
		s.devices = o.Arg
	case keyInclude, keyExclude:
		s.rules = append(s.rules, rule{o.Arg, o.Key == keyInclude})
	case keyExcludeFrom:
		b, err := t.ReadFile(o.Arg, 1<<20)
		if err != nil {
			t.Fatal(2, "%s: %s", o.Arg, tool.Strerror(err))
		}
		for _, line := range strings.Split(strings.TrimRight(string(b), "\n"), "\n") {
			if line != "" {
				s.rules = append(s.rules, rule{line, false})
			}
		}
	case keyExcludeDir:
		glob := o.Arg
		if trimmed := strings.TrimRight(glob, "/"); trimmed != "" {
			glob = trimmed
		}
		s.dirRules = append(s.dirRules, rule{glob, false})
	case keyGroupSeparator:
		s.sep = &o.Arg
	case keyNoGroupSeparator:
		s.sep = nil
	case keyColor:
		when := "auto"
		if o.Has {
			when = o.Arg
		}
		switch when {
		case "always", "yes", "force":
			s.color = newPalette(t.Getenv("GREP_COLORS"))
		case "never", "no", "none":
			s.color = nil
		case "auto", "tty", "if-tty":
			s.color = nil
			if term := t.Getenv("TERM"); t.IsTerminal(1) && term != "" && term != "dumb" {
				s.color = newPalette(t.Getenv("GREP_COLORS"))
			}
		default:
			t.Help(&spec)
			t.Exit(2)
		}
	}
}

// maxPatterns bounds all patterns together.
const maxPatterns = 16 << 20

func (s *searcher) addPatterns(list string) {
	s.given = true
	s.patterns = append(s.patterns, strings.Split(list, "\n")...)
}

func (s *searcher) patternFile(name string) {
	b, err := s.t.ReadFile(name, maxPatterns)
	if err != nil {
		s.t.Fatal(2, "%s: %s", name, tool.Strerror(err))
	}
	s.given = true
	if len(b) > 0 {
		s.addPatterns(strings.TrimSuffix(string(b), "\n"))
	}
}

// settle resolves what options together mean, and compiles the patterns.
func (s *searcher) settle(operands []string) {
	s.withName = s.names > 0 || s.names == 0 && (len(operands) > 1 || s.dirs == "recurse")
	if len(operands) == 1 && s.dirs == "recurse" && s.names == 0 {
		a, err := s.t.Stat(operands[0])
		s.withName = err == nil && a.Mode.IsDir()
	}
	if f, err := s.t.File(1); err == nil {
		if a, err := f.Attr(); err == nil {
			s.outID, s.outRegular = [2]uint64{a.Dev, uint64(a.Ino)}, a.Mode.IsRegular()
			if a.Mode&vfs.ModeType == vfs.ModeChar && a.Rdev == 0x103 { // /dev/null: one match is enough
				s.quiet = s.quiet || s.max < 0 && !s.count && s.list == 0
			}
		}
	}
	s.compile()
}

func (s *searcher) searchAll(operands []string) int {
	if len(operands) == 0 {
		operands = []string{"-"}
		if s.dirs == "recurse" {
			operands = []string{""}
		}
	}
	found := false
	for _, name := range operands {
		found = s.operand(name) || found
		if found && (s.quiet || s.interrupted) {
			break
		}
	}
	switch {
	case s.errored && !(s.quiet && found):
		return 2
	case found:
		return 0
	}
	return 1
}

// excluded applies --include and --exclude to a name: the last rule that matches decides, without one files are excluded
// only if the first rule is an --include.
func excluded(rules []rule, name string, operand bool) bool {
	if len(rules) == 0 {
		return false
	}
	out := rules[0].include
	for _, r := range rules {
		base := name[strings.LastIndexByte(name, '/')+1:]
		match := tool.Glob(r.glob, base, 0)
		if !match && strings.Contains(r.glob, "/") || operand {
			match = match || tool.Glob(r.glob, name, 0)
		}
		if match {
			out = !r.include
		}
	}
	return out
}

func (s *searcher) fail(name string, err error) bool {
	if !s.quietErr {
		s.t.Warn("%s: %s", name, tool.Strerror(err))
	}
	s.errored = true
	return false
}

// operand searches a file or, with -r, a tree.
func (s *searcher) operand(name string) bool {
	if name == "-" {
		if excluded(s.rules, "-", true) {
			return false
		}
		in, _ := s.t.Open("-")
		a, err := in.Attr()
		return s.open(in, s.label, a, err == nil)
	}
	path := name
	if name == "" {
		path = "."
	}
	a, err := s.t.Stat(path)
	if err != nil {
		return s.fail(name, err)
	}
	if a.Mode.IsDir() && s.dirs != "read" {
		trimmed := strings.TrimRight(name, "/")
		if s.dirs == "skip" || name != "" && excluded(s.dirRules, trimmed, true) {
			return false
		}
		return s.tree(name, a)
	}
	if !a.Mode.IsDir() && excluded(s.rules, name, true) {
		return false
	}
	return s.file(name, a, true)
}

// tree searches a directory; its name is empty for the present one.
func (s *searcher) tree(dir string, a vfs.Attr) bool {
	s.t.Check()
	id := [2]uint64{a.Dev, uint64(a.Ino)}
	for _, above := range s.stack {
		if above == id {
			if !s.quietErr {
				s.t.Warn("%s: warning: recursive directory loop", dir)
			}
			s.errored = true
			return false
		}
	}
	s.stack = append(s.stack, id)
	defer func() { s.stack = s.stack[:len(s.stack)-1] }()
	open := dir
	if open == "" {
		open = "."
	}
	entries, err := s.t.ReadDir(open)
	if err != nil {
		return s.fail(open, err)
	}
	found := false
	for _, e := range entries {
		child := e.Name
		if dir != "" {
			child = strings.TrimSuffix(dir, "/") + "/" + e.Name
		}
		found = s.entry(child, e) || found
		if found && s.quiet {
			break
		}
	}
	return found
}

func (s *searcher) entry(name string, e vfs.DirEntry) bool {
	if e.Mode.IsSymlink() && !s.follow {
		return false
	}
	kind := e.Mode & vfs.ModeType
	if kind != vfs.ModeDir && kind != vfs.ModeSymlink && excluded(s.rules, name, false) {
		return false
	}
	if kind == vfs.ModeRegular {
		return s.file(name, vfs.Attr{Mode: vfs.ModeRegular}, false)
	}
	a, err := s.t.Stat(name)
	if err != nil {
		return s.fail(name, err)
	}
	if a.Mode.IsDir() {
		if excluded(s.dirRules, path.Base(name), false) {
			return false
		}
		return s.tree(name, a)
	}
	if kind == vfs.ModeSymlink && excluded(s.rules, name, false) {
		return false
	}
	return s.file(name, a, false)
}

// file opens and searches a file. Devices are skipped below directories unless asked for.
func (s *searcher) file(name string, a vfs.Attr, operand bool) bool {
	switch a.Mode & vfs.ModeType {
	case vfs.ModeChar, vfs.ModeBlock, vfs.ModeFIFO, vfs.ModeSocket:
		if s.devices == "skip" || s.devices == "" && !operand {
			return false
		}
	}
	in, err := s.t.OpenFile(name)
	if err != nil {
		return s.fail(name, err)
	}
	defer in.Close()
	if a, err = in.Attr(); err != nil {
		return s.fail(name, err)
	}
	return s.open(in, name, a, true)
}

// open searches an open file, unless it is what grep writes to.
func (s *searcher) open(in *tool.Input, name string, a vfs.Attr, known bool) bool {
	if known && a.Mode.IsDir() {
		if s.dirs == "skip" {
			return false
		}
		if !s.quietErr {
			s.t.Warn("%s: Is a directory", name)
		}
		s.errored = true
		return false
	}
	if known && s.outRegular && a.Mode.IsRegular() && !s.quiet && s.list == 0 && s.max != 0 && s.outID == [2]uint64{a.Dev, uint64(a.Ino)} {
		if !s.quietErr {
			s.t.Warn("%s: input file is also the output", name)
		}
		s.errored = true
		return false
	}
	sc := scanner{s: s, name: name, in: in, left: s.max}
	if s.tab && known && a.Mode.IsRegular() {
		sc.width = len(strconv.FormatInt(a.Size, 10))
	}
	err := sc.scan()
	if err != nil && !errors.Is(err, io.EOF) {
		s.fail(name, err)
	}
	return sc.finish()
}
