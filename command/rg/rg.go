// Package rg is fd, and rg, as ripgrep 13 without colors, encodings and PCRE.
//
// A level is a directory's ignore files (ignore.go); the walk goes through directories by name, so that the output is the
// one of --sort path. Lines are matched by Go's regexp, whose syntax is that of the original but for a few classes.
package rg

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	keyHidden = tool.KeyOwn + iota
	keyNoIgnore
	keyFiles
	keyMaxDepth
	keyVimgrep
	keyColumn
	keySort
	keyNoHeading
	keyColor
	keyWithout
	keyCountMatches
	keyIglob
	keyDotall
	keyJSON
	keyStats
	keyNoMessages
	keyTrim
	keyPassthru
	keyHeading
	keyMaxFilesize
	keyTypeList
	keySeparator
	keyIncludeZero
	keyNoVCS
	keyAccepted
)

var spec = tool.Spec{
	Usage: []string{"[OPTIONS] PATTERN [PATH ...]", "[OPTIONS] --files [PATH ...]"},
	About: "Search directories for lines that match a regular expression.",
	Options: []getopt.Option{
		{Short: 'i', Long: "ignore-case", Help: "ignore case"},
		{Short: 's', Long: "case-sensitive", Help: "mind case (default)"},
		{Short: 'S', Long: "smart-case", Help: "ignore case if the patterns are all lowercase"},
		{Short: 'w', Long: "word-regexp", Help: "match only whole words"},
		{Short: 'x', Long: "line-regexp", Help: "match only whole lines"},
		{Short: 'v', Long: "invert-match", Help: "select lines that don't match"},
		{Short: 'c', Long: "count", Help: "print the number of lines for each file"},
		{Long: "count-matches", Key: keyCountMatches, Help: "print the number of matches for each file"},
		{Short: 'l', Long: "files-with-matches", Help: "print names of files with matches"},
		{Long: "files-without-match", Key: keyWithout, Help: "print names of files without matches"},
		{Short: 'o', Long: "only-matching", Help: "print only the matches"},
		{Short: 'n', Long: "line-number", Help: "print line numbers"},
		{Short: 'N', Long: "no-line-number", Help: "print no line numbers"},
		{Short: 'H', Long: "with-filename", Help: "print file names"},
		{Short: 'I', Long: "no-filename", Help: "print no file names"},
		{Short: 'A', Long: "after-context", Arg: getopt.Required, Name: "NUM", Help: "show lines after a match"},
		{Short: 'B', Long: "before-context", Arg: getopt.Required, Name: "NUM", Help: "show lines before a match"},
		{Short: 'C', Long: "context", Arg: getopt.Required, Name: "NUM", Help: "show lines around a match"},
		{Short: 'e', Long: "regexp", Arg: getopt.Required, Name: "PATTERN", Help: "a pattern"},
		{Short: 'f', Long: "file", Arg: getopt.Required, Name: "FILE", Help: "take patterns from a file"},
		{Short: 'F', Long: "fixed-strings", Help: "patterns are strings"},
		{Short: 'g', Long: "glob", Arg: getopt.Required, Name: "GLOB", Help: "search files that match, or with ! those that don't"},
		{Long: "iglob", Key: keyIglob, Arg: getopt.Required, Name: "GLOB", Help: "as -g, ignoring case"},
		{Short: 't', Long: "type", Arg: getopt.Required, Name: "TYPE", Help: "search files of a type"},
		{Short: 'T', Long: "type-not", Arg: getopt.Required, Name: "TYPE", Help: "leave out files of a type"},
		{Short: 'r', Long: "replace", Arg: getopt.Required, Name: "TEXT", Help: "print matches as a text; $1 is a group"},
		{Short: 'q', Long: "quiet", Help: "print nothing"},
		{Long: "files", Key: keyFiles, Help: "print the files that would be searched"},
		{Short: 'm', Long: "max-count", Arg: getopt.Required, Name: "NUM", Help: "stop a file after lines"},
		{Long: "max-depth", Key: keyMaxDepth, Arg: getopt.Required, Name: "NUM", Help: "descend at most so deep"},
		{Long: "vimgrep", Key: keyVimgrep, Help: "a line for each match, with line and column"},
		{Long: "column", Key: keyColumn, Help: "print column numbers"},
		{Short: '0', Long: "null", Help: "a NUL follows file names"},
		{Short: 'a', Long: "text", Help: "search binary files as text"},
		{Short: '.', Long: "hidden", Key: keyHidden, Help: "search hidden files"},
		{Long: "no-ignore", Key: keyNoIgnore, Help: "heed no ignore files"},
		{Short: 'u', Long: "unrestricted", Help: "-u heeds no ignore files, -uu searches hidden files too, -uuu binary ones"},
		{Short: 'b', Long: "byte-offset", Help: "print offsets"},
		{Short: 'L', Long: "follow", Help: "follow symbolic links"},
		{Short: 'j', Long: "threads", Arg: getopt.Required, Name: "NUM", Help: "ignored"},
		{Long: "sort", Key: keySort, Arg: getopt.Required, Name: "BY", Help: "path, which is always the order, or none"},
		{Long: "no-heading", Key: keyNoHeading, Help: "names stand before lines (default)"},
		{Short: 'V', Long: "version", Help: "print the version"},
		{Short: 'U', Long: "multiline", Help: "matches may go over several lines"},
		{Long: "multiline-dotall", Key: keyDotall, Help: "with -U, the dot matches newlines too"},
		{Long: "json", Key: keyJSON, Help: "print events as lines of JSON"},
		{Long: "stats", Key: keyStats, Help: "print numbers about the search at the end"},
		{Long: "no-messages", Key: keyNoMessages, Help: "don't complain about files"},
		{Long: "trim", Key: keyTrim, Help: "leave out blanks at the start of lines"},
		{Long: "passthru", Key: keyPassthru, Help: "print all lines"},
		{Long: "passthrough", Key: keyPassthru, Hidden: true},
		{Long: "heading", Key: keyHeading, Help: "names stand above the lines of a file"},
		{Short: 'p', Long: "pretty", Help: "--heading and -n"},
		{Short: 'M', Long: "max-columns", Arg: getopt.Required, Name: "NUM", Help: "leave out lines that are longer"},
		{Long: "max-filesize", Key: keyMaxFilesize, Arg: getopt.Required, Name: "NUM", Help: "leave out files that are larger"},
		{Long: "type-list", Key: keyTypeList, Help: "print the types of files"},
		{Long: "context-separator", Key: keySeparator, Arg: getopt.Required, Name: "TEXT", Help: "stands between lines that don't follow each other"},
		{Long: "include-zero", Key: keyIncludeZero, Help: "with -c, print counts of zero"},
		{Long: "no-ignore-vcs", Key: keyNoVCS, Help: "heed no .gitignore"},
		{Long: "no-config", Key: keyAccepted}, {Long: "line-buffered", Key: keyAccepted}, {Long: "block-buffered", Key: keyAccepted}, {Long: "mmap", Key: keyAccepted}, {Long: "no-mmap", Key: keyAccepted},
		{Long: "crlf", Key: keyAccepted}, {Long: "no-unicode", Key: keyAccepted}, {Long: "unicode", Key: keyAccepted}, {Long: "no-ignore-global", Key: keyAccepted}, {Long: "no-ignore-messages", Key: keyAccepted},
		{Long: "no-require-git", Key: keyAccepted}, {Long: "one-file-system", Key: keyAccepted}, {Long: "no-pcre2", Key: keyAccepted}, {Long: "no-multiline", Key: keyAccepted}, {Long: "colors", Key: keyAccepted, Arg: getopt.Required}, {Long: "regex-size-limit", Key: keyAccepted, Arg: getopt.Required}, {Long: "dfa-size-limit", Key: keyAccepted, Arg: getopt.Required},
		{Long: "color", Key: keyColor, Arg: getopt.Required, Name: "WHEN", Help: "never"},
	},
	Package: "AgentRun) 13.0.0", Fail: 2,
}

// searcher is a running rg.
type searcher struct {
	t                                               *tool.T
	re                                              *regexp.Regexp
	patterns                                        []string
	given, fold, smart, words, lines, fixed, invert bool
	count, countMatches, list, without, only        bool
	numbers, column, vimgrep, quiet, files          bool
	null, text, hidden, noIgnore, offsets, follow   bool
	names                                           int // 1 always, -1 never
	withName                                        bool
	before, after, context                          int
	max                                             int64
	maxDepth, restrict                              int
	replace                                         *string
	globs                                           ruleset
	picky                                           bool // a glob of -g says what to search
	types, notTypes                                 []string
	found, failed, printed                          bool
	multiline, dotall, json, noMessages, trim       bool
	passthru, heading, includeZero, listTypes       bool
	maxColumns                                      int
	maxFilesize                                     int64
	separator                                       string
	stats                                           *stats // nil unless they are to be shown
	out                                             *counted
	ancestors                                       []ancestor // with -L
	fd, noVCS                                       bool       // the ignore files are those of fd; no .gitignore
}

// Rg searches for patterns in files.
func Rg(t *tool.T) int {
	t.FailStatus(2)
	s := &searcher{t: t, max: -1, maxDepth: 4000, before: -1, after: -1, maxFilesize: -1, separator: "--", out: &counted{w: t.Out}}
	started := t.Now()
	opts, operands := t.Parse(&spec)
	for _, o := range opts {
		if o.Key == 'V' {
			t.Out.WriteString("ripgrep 13.0.0\n")
			return 0
		}
		s.option(o)
	}
	if s.before < 0 {
		s.before = s.context
	}
	if s.after < 0 {
		s.after = s.context
	}
	if s.listTypes {
		listTypes(t)
		return 0
	}
	s.check()
	if !s.given && !s.files {
		if len(operands) == 0 {
			t.Fatal(2, "the following required arguments were not provided: <PATTERN>")
		}
		s.patterns, operands = operands[:1], operands[1:]
	}
	s.compile()
	for i := range s.globs.rules { // -g GLOB selects and -g !GLOB leaves out, the reverse of an ignore file
		r := &s.globs.rules[i]
		s.picky = s.picky || !r.keep
		r.keep = !r.keep
	}
	s.globs.base = strings.TrimSuffix(s.absolute("."), "/") + "/"
	s.all(operands)
	s.summary(started)
	switch {
	case s.found && (s.quiet || !s.failed):
		return 0
	case s.failed:
		return 2
	}
	return 1
}

func (s *searcher) absolute(name string) string {
	if !path.IsAbs(name) {
		name = s.t.Getwd() + "/" + name
	}
	return path.Clean(name)
}

func (s *searcher) number(arg, name string) int {
	n, err := strconv.ParseUint(arg, 10, 31)
	if err != nil {
		s.t.Fatal(2, "error: Invalid value for '--%s <NUM>': invalid digit found in string", name)
	}
	return int(n)
}

func (s *searcher) option(o getopt.Opt) {
	flags := map[rune]*bool{'w': &s.words, 'x': &s.lines, 'v': &s.invert, 'c': &s.count, keyCountMatches: &s.countMatches, 'l': &s.list,
		keyWithout: &s.without, 'o': &s.only, 'n': &s.numbers, 'F': &s.fixed, 'q': &s.quiet, keyFiles: &s.files, '0': &s.null,
		'a': &s.text, keyHidden: &s.hidden, keyNoIgnore: &s.noIgnore, 'b': &s.offsets, 'L': &s.follow,
		'U': &s.multiline, keyDotall: &s.dotall, keyJSON: &s.json, keyNoMessages: &s.noMessages, keyTrim: &s.trim, keyPassthru: &s.passthru, keyHeading: &s.heading, keyIncludeZero: &s.includeZero, keyTypeList: &s.listTypes, keyNoVCS: &s.noVCS}
	if f := flags[o.Key]; f != nil {
		*f = true
		return
	}
	switch o.Key {
	case 'i', 's', 'S':
		s.fold, s.smart = o.Key == 'i', o.Key == 'S'
	case 'N':
		s.numbers = false
	case keyColumn:
		s.column, s.numbers = true, true
	case keyVimgrep:
		s.vimgrep, s.column, s.numbers, s.names = true, true, true, 1
	case 'H':
		s.names = 1
	case 'I':
		s.names = -1
	case 'A':
		s.after = s.number(o.Arg, "after-context")
	case 'B':
		s.before = s.number(o.Arg, "before-context")
	case 'C':
		s.context = s.number(o.Arg, "context")
	case 'm':
		s.max = int64(s.number(o.Arg, "max-count"))
	case 'p':
		s.heading, s.numbers = true, true
	case keyNoHeading:
		s.heading = false
	case 'M':
		s.maxColumns = s.number(o.Arg, "max-columns")
	case keyMaxFilesize:
		n, err := tool.ParseSize(o.Arg, "KMG")
		if err != nil {
			s.t.Fatal(2, "invalid value for --max-filesize: %s", o.Arg)
		}
		s.maxFilesize = int64(min(n, 1<<62))
	case keySeparator:
		s.separator = unescape(o.Arg)
	case keyStats:
		s.stats = &stats{}
	case keyMaxDepth:
		s.maxDepth = min(s.number(o.Arg, "max-depth"), 4000)
	case 'r':
		s.replace = &o.Arg
	case 'e':
		s.given, s.patterns = true, append(s.patterns, o.Arg)
	case 'f':
		b, err := s.t.ReadFile(o.Arg, 16<<20)
		if err != nil {
			s.t.Fatal(2, "%s: %s", o.Arg, tool.Strerror(err))
		}
		s.given = true
		if len(b) > 0 {
			s.patterns = append(s.patterns, strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")...)
		}
	case 'g', keyIglob:
		if r, ok := parseRule(o.Arg, o.Key == keyIglob); ok {
			s.globs.rules = append(s.globs.rules, r)
		}
	case 't', 'T':
		globs, ok := fileType(o.Arg)
		if !ok {
			s.t.Fatal(2, "unrecognized file type: %s", o.Arg)
		}
		if o.Key == 't' {
			s.types = append(s.types, globs...)
		} else {
			s.notTypes = append(s.notTypes, globs...)
		}
	case 'u':
		s.restrict++
		s.noIgnore, s.hidden, s.text = true, s.hidden || s.restrict > 1, s.text || s.restrict > 2
	}
}

// compile joins the patterns.
func (s *searcher) compile() {
	if len(s.patterns) == 0 {
		s.patterns = []string{`[^\x00-\x{10FFFF}]`}
	}
	upper := false
	list := make([]string, len(s.patterns))
	for i, p := range s.patterns {
		if !s.multiline && !s.fixed && hasNewline(p) {
			s.t.Out.Flush()
			s.t.Stderr().Write([]byte("the literal '\"\\n\"' is not allowed in a regex\n\nConsider enabling multiline mode with the --multiline flag (or -U for short).\nWhen multiline mode is enabled, new line characters can be matched.\n"))
			s.t.Exit(2)
		}
		upper = upper || strings.ContainsFunc(p, unicode.IsUpper)
		if s.fixed && s.given || s.fixed && !s.files {
			p = regexp.QuoteMeta(p)
		}
		list[i] = "(?:" + p + ")"
	}
	expr := strings.Join(list, "|")
	switch {
	case s.lines:
		expr = "^(?:" + expr + ")$"
	case s.words:
		expr = `\b(?:` + expr + `)\b`
	}
	if s.fold || s.smart && !upper {
		expr = "(?i)" + expr
	}
	switch {
	case s.multiline && s.dotall:
		expr = "(?ms)" + expr
	case s.multiline:
		expr = "(?m)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		s.t.Fatal(2, "regex parse error: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	s.re = re
}

// all searches the operands; without any, standard input if it can hold data, else the present directory.
func (s *searcher) all(operands []string) {
	shown := false
	if len(operands) == 0 {
		in, _ := s.t.Open("-")
		a, err := in.Attr()
		if kind := a.Mode & vfs.ModeType; !s.files && err == nil && (kind == vfs.ModeFIFO || kind == vfs.ModeRegular || kind == vfs.ModeSocket) {
			operands = []string{"-"}
		} else {
			operands, shown = []string{"."}, true
		}
	}
	s.withName = len(operands) > 1
	for _, name := range operands {
		if a, err := s.t.Stat(name); name != "-" && err == nil && a.Mode.IsDir() {
			s.withName = true
		}
	}
	s.withName = s.names > 0 || s.names == 0 && s.withName
	for _, name := range operands {
		if s.quiet && s.found {
			return
		}
		a, err := s.t.Stat(name)
		switch {
		case name == "-":
			s.file("<stdin>", "-", true)
		case err != nil:
			s.complain("%s: IO error for operation on %s: %s (os error 2)", name, name, tool.Strerror(err))
		case !a.Mode.IsDir():
			s.file(name, name, true)
		case shown:
			s.tree("", name)
		default:
			s.tree(strings.TrimSuffix(name, "/")+"/", name)
		}
	}
}

// tree searches a directory; prefix is what its files' names are shown with.
func (s *searcher) tree(prefix, dir string) {
	abs := s.absolute(dir)
	var levels []level
	git := false
	for i := 0; i <= len(abs); i++ { // the directories above have a say too
		if i < len(abs) && abs[i] != '/' || i == len(abs) {
			continue
		}
		git = git || s.isRepository(abs[:i])
		levels = append(levels, s.readLevel(abs[:i], git))
	}
	s.dir(prefix, strings.TrimSuffix(abs, "/"), levels, git, 1, false)
}

func (s *searcher) isRepository(dir string) bool {
	_, err := s.t.Stat(dir + "/.git")
	return err == nil
}

func (s *searcher) dir(prefix, abs string, levels []level, git bool, depth int, link bool) {
	s.step(1)
	if depth > s.maxDepth {
		return
	}
	if s.follow && !s.enter(prefix, abs, link) {
		return
	} else if s.follow {
		defer func() { s.ancestors = s.ancestors[:len(s.ancestors)-1] }()
	}
	git = git || s.isRepository(abs)
	levels = append(levels[:len(levels):len(levels)], s.readLevel(abs, git))
	open := abs
	if open == "" {
		open = "/"
	}
	list, err := s.t.ReadDir(open)
	if err != nil {
		s.complain("%s: %s", strings.TrimSuffix(prefix, "/"), tool.Strerror(err))
		return
	}
	slices.SortFunc(list, func(a, b vfs.DirEntry) int { return strings.Compare(a.Name, b.Name) })
	for _, e := range list {
		if s.quiet && s.found {
			return
		}
		s.step(1)
		child, mode := abs+"/"+e.Name, e.Mode
		if a, err := s.t.Stat(child); mode.IsSymlink() && s.follow && err == nil {
			mode = a.Mode
		}
		switch {
		case !mode.IsDir() && !mode.IsRegular() || s.ignored(levels, child, e.Name, mode.IsDir()):
		case mode.IsDir():
			s.dir(prefix+e.Name+"/", child, levels, git, depth+1, e.Mode.IsSymlink())
		default:
			s.file(prefix+e.Name, child, false)
		}
	}
}

// ancestor is a directory that is being walked.
type ancestor struct {
	dev  uint64
	ino  vfs.Ino
	name string
}

// enter goes into a directory, unless it is one that the walk is in already.
func (s *searcher) enter(prefix, abs string, link bool) bool {
	a, err := s.t.Stat(abs + "/")
	if err != nil {
		s.ancestors = append(s.ancestors, ancestor{})
		return true
	}
	name := strings.TrimSuffix(prefix, "/")
	for _, x := range s.ancestors {
		if link && x.ino == a.Ino && x.dev == a.Dev && x.ino != 0 {
			s.complain("%s: File system loop found: %s points to an ancestor %s", name, name, x.name)
			return false
		}
	}
	if name == "" {
		name = "."
	}
	s.ancestors = append(s.ancestors, ancestor{a.Dev, a.Ino, name})
	return true
}

func (s *searcher) step(n int) {
	if s.t.Step(n) != nil {
		s.t.Check()
	}
}
