package rg

import (
	"fmt"
	"io"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

const (
	keyFdNoVCS = tool.KeyOwn + 300 + iota
	keyFdNoParent
	keyFdRegex
	keyFdAnd
	keyFdMin
	keyFdExact
	keyFdPrune
	keyFdWithin
	keyFdBefore
	keyFdBatch
	keyFdIgnoreFile
	keyFdMax
	keyFdErrors
	keyFdBase
	keyFdSeparator
	keyFdSearch
	keyFdStrip
	keyFdOneFS
	keyFdNoHidden
	keyFdIgnore
	keyFdAccept
	keyFdRelative
	keyFdNoFollow
)

var fdOptions = []getopt.Option{
	{Short: 'H', Long: "hidden", Help: "Search hidden files and directories"},
	{Long: "no-hidden", Key: keyFdNoHidden},
	{Short: 'I', Long: "no-ignore", Help: "Do not respect .(git|fd)ignore files"},
	{Long: "ignore", Key: keyFdIgnore},
	{Long: "no-ignore-vcs", Key: keyFdNoVCS, Help: "Do not respect .gitignore files"},
	{Long: "ignore-vcs", Key: keyFdAccept},
	{Long: "no-ignore-parent", Key: keyFdNoParent, Help: "Do not respect ignore files in parent directories"},
	{Long: "no-global-ignore-file", Key: keyFdAccept},
	{Short: 'u', Long: "unrestricted", Help: "Unrestricted search, alias for '--no-ignore --hidden'"},
	{Short: 's', Long: "case-sensitive", Help: "Case-sensitive search (default: smart case)"},
	{Short: 'i', Long: "ignore-case", Help: "Case-insensitive search (default: smart case)"},
	{Short: 'g', Long: "glob", Help: "Glob-based search (default: regular expression)"},
	{Long: "regex", Key: keyFdRegex, Help: "Regular-expression based search (default)"},
	{Short: 'F', Long: "fixed-strings", Help: "Treat pattern as literal string instead of regex"},
	{Long: "literal", Key: 'F'},
	{Long: "and", Key: keyFdAnd, Arg: getopt.Required, Name: "pattern", Help: "Additional search patterns that need to be matched"},
	{Short: 'a', Long: "absolute-path", Help: "Show absolute instead of relative paths"},
	{Long: "relative-path", Key: keyFdRelative},
	{Short: 'l', Long: "list-details", Help: "Use a long listing format with file metadata"},
	{Short: 'L', Long: "follow", Help: "Follow symbolic links"},
	{Long: "no-follow", Key: keyFdNoFollow},
	{Short: 'p', Long: "full-path", Help: "Search full abs. path (default: filename only)"},
	{Short: '0', Long: "print0", Help: "Separate search results by the null character"},
	{Short: 'd', Long: "max-depth", Arg: getopt.Required, Name: "depth", Help: "Set maximum search depth (default: none)"},
	{Long: "maxdepth", Key: 'd', Arg: getopt.Required},
	{Long: "min-depth", Key: keyFdMin, Arg: getopt.Required, Name: "depth", Help: "Only show search results starting at the given depth"},
	{Long: "exact-depth", Key: keyFdExact, Arg: getopt.Required, Name: "depth", Help: "Only show search results at the exact given depth"},
	{Short: 'E', Long: "exclude", Arg: getopt.Required, Name: "pattern", Help: "Exclude entries that match the given glob pattern"},
	{Long: "prune", Key: keyFdPrune, Help: "Do not traverse into matching directories"},
	{Short: 't', Long: "type", Arg: getopt.Required, Name: "filetype", Help: "Filter by type: file (f), directory (d), symlink (l), executable (x), empty (e), socket (s), pipe (p)"},
	{Short: 'e', Long: "extension", Arg: getopt.Required, Name: "ext", Help: "Filter by file extension"},
	{Short: 'S', Long: "size", Arg: getopt.Required, Name: "size", Help: "Limit results based on the size of files"},
	{Long: "changed-within", Key: keyFdWithin, Arg: getopt.Required, Name: "date|dur", Help: "Filter by file modification time (newer than)"},
	{Long: "change-newer-than", Key: keyFdWithin, Arg: getopt.Required}, {Long: "newer", Key: keyFdWithin, Arg: getopt.Required}, {Long: "changed-after", Key: keyFdWithin, Arg: getopt.Required},
	{Long: "changed-before", Key: keyFdBefore, Arg: getopt.Required, Name: "date|dur", Help: "Filter by file modification time (older than)"},
	{Long: "change-older-than", Key: keyFdBefore, Arg: getopt.Required}, {Long: "older", Key: keyFdBefore, Arg: getopt.Required},
	{Short: 'o', Long: "owner", Arg: getopt.Required, Name: "user:group", Help: "Filter by owning user and/or group"},
	{Short: 'x', Long: "exec", Arg: getopt.Required, Name: "cmd", Help: "Execute a command for each search result"},
	{Short: 'X', Long: "exec-batch", Arg: getopt.Required, Name: "cmd", Help: "Execute a command with all search results at once"},
	{Long: "batch-size", Key: keyFdBatch, Arg: getopt.Required, Name: "size", Help: "Max number of arguments to run as a batch size with -X"},
	{Long: "ignore-file", Key: keyFdIgnoreFile, Arg: getopt.Required, Name: "path", Help: "Add a custom ignore-file in '.gitignore' format"},
	{Short: 'c', Long: "color", Arg: getopt.Required, Name: "when", Help: "When to use colors [possible values: auto, always, never]"},
	{Short: 'j', Long: "threads", Arg: getopt.Required, Name: "num", Help: "Accepted; the search uses one thread"},
	{Long: "max-results", Key: keyFdMax, Arg: getopt.Required, Name: "count", Help: "Limit the number of search results"},
	{Short: '1', Help: "Limit search to a single result"},
	{Short: 'q', Long: "quiet", Help: "Print nothing, exit code 0 if match found, 1 otherwise"}, {Long: "has-results", Key: 'q'},
	{Long: "show-errors", Key: keyFdErrors, Help: "Show filesystem errors"},
	{Long: "base-directory", Key: keyFdBase, Arg: getopt.Required, Name: "path", Help: "Change current working directory"},
	{Long: "path-separator", Key: keyFdSeparator, Arg: getopt.Required, Name: "separator", Help: "Set path separator when printing file paths"},
	{Long: "search-path", Key: keyFdSearch, Arg: getopt.Required, Name: "path", Help: "Provides paths to search as an alternative to the positional <path>"},
	{Long: "strip-cwd-prefix", Key: keyFdStrip, Help: "strip './' prefix from -0/--print0 output"},
	{Long: "one-file-system", Key: keyFdOneFS, Help: "Do not descend into a different file system"}, {Long: "mount", Key: keyFdOneFS}, {Long: "xdev", Key: keyFdOneFS},
	{Short: 'h', Long: "help", Help: "Print help information"}, {Short: 'V', Long: "version", Help: "Print version information"},
}

// sizeTest is a limit of -S.
type sizeTest struct {
	sign byte // +, - or 0
	n    int64
}

// finder is a running fd.
type finder struct {
	searcher
	name                              string
	glob, literal, caseful, foldAll   bool
	fullPath, absolutePaths, noParent bool
	prune, strip, print0, errors      bool
	one                               bool // one filesystem
	and                               []string
	res                               []*regexp.Regexp
	min, depthLimit                   int
	fileTypes, extensions             []string
	excludes                          ruleset
	sizes                             []sizeTest
	within, older                     time.Time
	uid, gid                          int64 // -1: any
	notUID, notGID                    bool
	exec, batch                       []string
	batchSize, maxResults             int
	separator                         string
	results                           int
	pending                           []string
	status                            int
	dev                               uint64
	custom                            []ruleset
	loops                             map[[2]uint64]bool
}

// Fd finds files by name, as sharkdp's fd does.
func Fd(t *tool.T) int {
	f := &finder{searcher: searcher{t: t, fd: true, maxFilesize: -1, out: &counted{w: t.Out}}, name: "fd", depthLimit: 1 << 30, uid: -1, gid: -1, separator: "/", loops: map[[2]uint64]bool{}}
	args := slices.Clone(t.Args()[1:])
	for i, a := range args { // what follows -x and -X belongs to the command, up to ";"
		if a == "-x" || a == "--exec" || a == "-X" || a == "--exec-batch" {
			command, rest := args[i+1:], []string(nil)
			if end := slices.Index(command, ";"); end >= 0 {
				command, rest = command[:end], command[end+1:]
			}
			if len(command) == 0 {
				f.usage("The argument '%s <cmd>...' requires a value but none was supplied", a)
			}
			if f.exec = command; a == "-X" || a == "--exec-batch" {
				f.batch, f.exec = command, nil
			}
			args = append(slices.Clone(args[:i]), rest...)
			break
		}
	}
	opts, operands, err := getopt.Parse(fdOptions, args, getopt.Permute)
	if err != nil {
		f.usage("%s", fdWords(err.Error()))
	}
	var paths []string
	for _, o := range opts {
		switch o.Key {
		case 'h':
			fmt.Fprintf(t.Out, "A program to find entries in your filesystem\n\nUsage: %s [OPTIONS] [pattern] [path]...\n\nOptions:\n%s", t.Name, getopt.Help(fdOptions))
			return 0
		case 'V':
			fmt.Fprintf(t.Out, "%s 8.6.0\n", t.Name)
			return 0
		case keyFdSearch:
			paths = append(paths, o.Arg)
		case keyFdBase:
			if err := t.Chdir(o.Arg); err != nil {
				f.fail("The '--base-directory' path '%s' is not a directory.", o.Arg)
			}
		default:
			f.option(o)
		}
	}
	pattern := ""
	if len(operands) > 0 {
		pattern, operands = operands[0], operands[1:]
	}
	return f.run(pattern, append(paths, operands...))
}

// fdWords words a mistake as clap does.
func fdWords(s string) string {
	if i := strings.Index(s, "option '--"); i >= 0 && strings.HasPrefix(s, "unrecognized") {
		name := strings.Trim(s[i+7:], "'")
		return fmt.Sprintf("Found argument '%s' which wasn't expected, or isn't valid in this context\n\n  If you tried to supply '%s' as a value rather than a flag, use '-- %s'\n\nUsage: fdfind [OPTIONS] [pattern] [path]...", name, name, name)
	}
	if c, ok := strings.CutPrefix(s, "invalid option -- '"); ok {
		name := "-" + strings.TrimSuffix(c, "'")
		return fmt.Sprintf("Found argument '%s' which wasn't expected, or isn't valid in this context\n\n  If you tried to supply '%s' as a value rather than a flag, use '-- %s'\n\nUsage: fdfind [OPTIONS] [pattern] [path]...", name, name, name)
	}
	return s
}

func (f *finder) usage(format string, args ...any) {
	fmt.Fprintf(f.t.Stderr(), "error: "+format+"\n\nFor more information try '--help'\n", args...)
	f.t.Exit(2)
}

func (f *finder) fail(format string, args ...any) {
	f.t.Out.Flush()
	fmt.Fprintf(f.t.Stderr(), "[fd error]: "+format+"\n", args...)
	f.t.Exit(1)
}

func (f *finder) count(o getopt.Opt) int {
	n, err := strconv.Atoi(o.Arg)
	if err != nil || n < 0 {
		f.usage("Invalid value '%s' for '%s': invalid digit found in string", o.Arg, o.As)
	}
	return n
}

func (f *finder) option(o getopt.Opt) {
	switch o.Key {
	case 'H':
		f.hidden = true
	case keyFdNoHidden:
		f.hidden = false
	case 'I':
		f.noIgnore = true
	case keyFdIgnore:
		f.noIgnore = false
	case 'u':
		f.hidden, f.noIgnore = true, true
	case keyFdNoVCS:
		f.noVCS = true
	case keyFdNoParent:
		f.noParent = true
	case 's':
		f.caseful, f.foldAll = true, false
	case 'i':
		f.foldAll, f.caseful = true, false
	case 'g':
		f.glob, f.literal = true, false
	case keyFdRegex:
		f.glob, f.literal = false, false
	case 'F':
		f.literal, f.glob = true, false
	case keyFdAnd:
		f.and = append(f.and, o.Arg)
	case 'a':
		f.absolutePaths = true
	case keyFdRelative:
		f.absolutePaths = false
	case 'l':
		f.batch = []string{"ls", "-lhd", "--color=never"}
	case 'L':
		f.follow = true
	case keyFdNoFollow:
		f.follow = false
	case 'p':
		f.fullPath = true
	case '0':
		f.print0 = true
	case 'd':
		f.depthLimit = f.count(o)
	case keyFdMin:
		f.min = f.count(o)
	case keyFdExact:
		f.min = f.count(o)
		f.depthLimit = f.min
	case keyFdPrune:
		f.prune = true
	case 'q':
		f.quiet = true
	case '1':
		f.maxResults = 1
	case keyFdMax:
		f.maxResults = f.count(o)
	case keyFdBatch:
		f.batchSize = f.count(o)
	case keyFdErrors:
		f.errors = true
	case keyFdSeparator:
		f.separator = o.Arg
	case keyFdStrip:
		f.strip = true
	case keyFdOneFS:
		f.one = true
	default:
		f.filter(o)
	}
}

// filter reads the options that choose files.
func (f *finder) filter(o getopt.Opt) {
	switch o.Key {
	case 'E':
		r, ok := parseRule(o.Arg, false)
		if !ok {
			f.fail("Malformed exclude pattern: %s", o.Arg)
		}
		f.excludes.rules = append(f.excludes.rules, r)
	case 't':
		short := map[string]string{"file": "f", "directory": "d", "symlink": "l", "executable": "x", "empty": "e", "socket": "s", "pipe": "p"}
		kind := o.Arg
		if s, ok := short[kind]; ok {
			kind = s
		}
		if len(kind) != 1 || !strings.Contains("fdlxesp", kind) {
			f.usage("'%s' isn't a valid value for '--type <filetype>'\n  [possible values: file, directory, symlink, executable, empty, socket, pipe]", o.Arg)
		}
		f.fileTypes = append(f.fileTypes, kind)
	case 'e':
		f.extensions = append(f.extensions, "."+strings.ToLower(strings.TrimLeft(o.Arg, ".")))
	case 'S':
		f.size(o.Arg)
	case keyFdWithin:
		f.within = f.when(o.Arg)
	case keyFdBefore:
		f.older = f.when(o.Arg)
	case 'o':
		f.owner(o.Arg)
	case 'c':
		if o.Arg != "auto" && o.Arg != "always" && o.Arg != "never" {
			f.usage("'%s' isn't a valid value for '--color <when>'\n  [possible values: auto, always, never]", o.Arg)
		}
	case keyFdIgnoreFile:
		text, err := f.t.ReadFile(o.Arg, ignoreLimit)
		if err != nil {
			f.fail("Malformed pattern in custom ignore file. %s: %s", o.Arg, tool.Strerror(err))
		}
		set := ruleset{base: f.absolute(".") + "/"}
		for _, line := range strings.Split(string(text), "\n") {
			if r, ok := parseRule(line, false); ok {
				set.rules = append(set.rules, r)
			}
		}
		f.custom = append(f.custom, set)
	}
}

var sizeWords = regexp.MustCompile(`(?i)^([+-]?)(\d+)(b|[kmgt]i?b?)$`)

func (f *finder) size(arg string) {
	m := sizeWords.FindStringSubmatch(arg)
	if m == nil {
		f.usage("Invalid value '%s' for '--size <size>': '%s' is not a valid size constraint. See 'fd --help'.", arg, arg)
	}
	n, err := strconv.ParseInt(m[2], 10, 50)
	unit, base := strings.ToLower(m[3]), int64(1000)
	if len(unit) > 1 && unit[1] == 'i' {
		base = 1024
	}
	for range strings.IndexByte("bkmgt", unit[0]) {
		if n > 1<<52 || err != nil {
			f.usage("Invalid value '%s' for '--size <size>': too large", arg)
		}
		n *= base
	}
	s := sizeTest{n: n}
	if m[1] != "" {
		s.sign = m[1][0]
	}
	f.sizes = append(f.sizes, s)
}

var durationWords = regexp.MustCompile(`(\d+)\s*([a-zA-Z]+)`)

// when reads a point in time, or a duration before now.
func (f *finder) when(arg string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02"} {
		if at, err := time.ParseInLocation(layout, arg, f.t.Location()); err == nil {
			return at
		}
	}
	units := map[string]time.Duration{"s": time.Second, "sec": time.Second, "second": time.Second, "ms": time.Millisecond, "m": time.Minute, "min": time.Minute, "minute": time.Minute, "h": time.Hour, "hr": time.Hour, "hour": time.Hour, "d": 24 * time.Hour, "day": 24 * time.Hour, "w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour, "M": 2630016 * time.Second, "month": 2630016 * time.Second, "y": 31557600 * time.Second, "year": 31557600 * time.Second}
	var total time.Duration
	ok := strings.TrimSpace(durationWords.ReplaceAllString(arg, "")) == "" && arg != ""
	for _, m := range durationWords.FindAllStringSubmatch(arg, -1) {
		unit, known := units[m[2]]
		if !known {
			unit, known = units[strings.TrimSuffix(m[2], "s")]
		}
		n, err := strconv.ParseInt(m[1], 10, 32)
		ok = ok && known && err == nil
		total += time.Duration(n) * unit
	}
	if !ok {
		f.fail("'%s' is not a valid date or duration. See 'fd --help'.", arg)
	}
	return f.t.Now().Add(-total)
}

func (f *finder) owner(arg string) {
	user, group, _ := strings.Cut(arg, ":")
	find := func(s string, by func(string) (uint32, bool), what string) (int64, bool) {
		s, not := strings.CutPrefix(s, "!")
		if s == "" {
			return -1, false
		}
		id, ok := by(s)
		if !ok {
			f.fail("'%s' is not a recognized %s name", s, what)
		}
		return int64(id), not
	}
	f.uid, f.notUID = find(user, f.t.Accounts().LookupUID, "user")
	f.gid, f.notGID = find(group, f.t.Accounts().LookupGID, "group")
}

// compilePattern makes a regular expression of a pattern: as it is, of a glob or of a literal. Without an upper-case
// letter it ignores case.
func (f *finder) compilePattern(p string) *regexp.Regexp {
	text := p
	switch {
	case f.glob:
		text = "(?s)^(?:" + globRegexp(p) + ")$"
	case f.literal:
		text = regexp.QuoteMeta(p)
	}
	fold := f.foldAll || !f.caseful && !strings.ContainsFunc(p, func(r rune) bool { return r >= 'A' && r <= 'Z' })
	if fold {
		text = "(?i)" + text
	}
	re, err := regexp.Compile(text)
	if err != nil {
		what := err.Error()
		if e, ok := err.(*syntax.Error); ok {
			what = string(e.Code)
		}
		f.fail("regex parse error:\n    %s\n    ^\nerror: %s\n\nNote: You can use the '--fixed-strings' option to search for a literal string instead of a regular expression. Alternatively, you can also use the '--glob' option to match on a glob pattern.", p, what)
	}
	return re
}

func (f *finder) run(pattern string, paths []string) int {
	if strings.Contains(pattern, "/") && !f.fullPath {
		f.fail("The search pattern '%s' contains a path-separation character ('/') and will not lead to any search results.\n\nIf you want to search for all files inside the '%s' directory, use a match-all pattern:\n\n  fd . '%s'\n\nInstead, if you want your pattern to match the full file path, use:\n\n  fd --full-path '%s'", pattern, pattern, pattern, pattern)
	}
	for _, p := range append([]string{pattern}, f.and...) {
		f.res = append(f.res, f.compilePattern(p))
	}
	cwd := len(paths) == 0
	if cwd {
		paths = []string{"."}
	}
	valid := paths[:0:0]
	for _, p := range paths {
		if at, err := f.t.Stat(p); err != nil || !at.Mode.IsDir() {
			fmt.Fprintf(f.t.Stderr(), "[fd error]: Search path '%s' is not a directory.\n", p)
			f.status = 1
			continue
		}
		valid = append(valid, p)
	}
	if len(valid) == 0 {
		f.fail("No valid search paths given.")
	}
	for _, p := range valid {
		prefix := strings.TrimSuffix(p, "/") + "/"
		if cwd {
			if prefix = "./"; f.exec == nil && f.batch == nil && !f.print0 || f.strip {
				prefix = ""
			}
		}
		f.search(prefix, p)
	}
	if len(f.pending) > 0 {
		f.runBatch()
	}
	if f.quiet && f.results == 0 {
		return 1
	}
	return f.status
}

// search walks a directory; the ignore files above it count too.
func (f *finder) search(prefix, dir string) {
	abs := f.absolute(dir)
	if f.absolutePaths {
		prefix = strings.TrimSuffix(abs, "/") + "/"
	}
	f.excludes.base = strings.TrimSuffix(abs, "/") + "/"
	var levels []level
	git := false
	for i := 0; i <= len(abs) && !f.noParent; i++ {
		if i < len(abs) && abs[i] != '/' || i == len(abs) {
			continue
		}
		git = git || f.isRepository(abs[:i])
		levels = append(levels, f.readLevel(abs[:i], git))
	}
	if at, err := f.t.Stat(abs); err == nil {
		f.dev = at.Dev
	}
	f.walk(prefix, strings.TrimSuffix(abs, "/"), levels, git, 1)
}

// enough reports whether all results that are wanted have been found.
func (f *finder) enough() bool {
	return f.maxResults > 0 && f.results >= f.maxResults || f.quiet && f.results > 0
}

func (f *finder) walk(prefix, abs string, levels []level, git bool, depth int) {
	if depth > f.depthLimit || depth > 4000 {
		return
	}
	git = git || f.isRepository(abs)
	levels = append(levels[:len(levels):len(levels)], f.readLevel(abs, git))
	open := abs
	if open == "" {
		open = "/"
	}
	list, err := f.t.ReadDir(open)
	if err != nil {
		if f.errors {
			fmt.Fprintf(f.t.Stderr(), "[fd error]: %s: %s\n", strings.TrimSuffix(prefix, "/"), tool.Strerror(err))
		}
		return
	}
	slices.SortFunc(list, func(a, b vfs.DirEntry) int { return strings.Compare(a.Name, b.Name) })
	for _, e := range list {
		f.step(1)
		if f.enough() {
			return
		}
		if e.Name == "." || e.Name == ".." {
			continue
		}
		child, mode := abs+"/"+e.Name, e.Mode
		if a, err := f.t.Stat(child); mode.IsSymlink() && f.follow && err == nil {
			mode = a.Mode
		}
		if f.ignored(levels, child, e.Name, mode.IsDir()) || f.excludes.decide(child, mode.IsDir()) > 0 || f.customIgnored(child, mode.IsDir()) {
			continue
		}
		hit := depth >= f.min && f.matches(prefix+e.Name, child, e.Name, mode)
		if hit {
			f.result(prefix+e.Name, mode)
		}
		if mode.IsDir() && !(hit && f.prune) && f.enter(child) {
			f.walk(prefix+e.Name+"/", child, levels, git, depth+1)
		}
	}
}

func (f *finder) customIgnored(p string, dir bool) bool {
	for i := range f.custom {
		if f.custom[i].decide(p, dir) > 0 {
			return true
		}
	}
	return false
}

// enter reports whether to go into a directory: not across filesystems with --one-file-system, not twice with -L.
func (f *finder) enter(p string) bool {
	if !f.one && !f.follow {
		return true
	}
	at, err := f.t.Stat(p)
	if err != nil || f.one && at.Dev != f.dev {
		return false
	}
	id := [2]uint64{at.Dev, uint64(at.Ino)}
	if f.follow && f.loops[id] {
		return false
	}
	f.loops[id] = true
	return true
}

// matches applies the pattern and the filters.
func (f *finder) matches(shown, abs, name string, mode vfs.Mode) bool {
	subject := name
	if f.fullPath {
		subject = abs
	}
	for _, re := range f.res {
		if !re.MatchString(subject) {
			return false
		}
	}
	if len(f.extensions) > 0 {
		lower := strings.ToLower(name)
		if !slices.ContainsFunc(f.extensions, func(e string) bool { return strings.HasSuffix(lower, e) && len(lower) > len(e) }) {
			return false
		}
	}
	if len(f.fileTypes) == 0 && len(f.sizes) == 0 && f.within.IsZero() && f.older.IsZero() && f.uid < 0 && f.gid < 0 {
		return true
	}
	at, err := f.t.Lstat(abs)
	if f.follow && err == nil && at.Mode.IsSymlink() {
		if to, err := f.t.Stat(abs); err == nil {
			at = to
		}
	}
	return err == nil && f.typed(abs, at) && f.sized(at) && (f.within.IsZero() || at.Mtime.After(f.within)) && (f.older.IsZero() || at.Mtime.Before(f.older)) &&
		(f.uid < 0 || (int64(at.UID) == f.uid) != f.notUID) && (f.gid < 0 || (int64(at.GID) == f.gid) != f.notGID)
}

func (f *finder) sized(at vfs.Attr) bool {
	for _, s := range f.sizes {
		if !at.Mode.IsRegular() || s.sign == '+' && at.Size < s.n || s.sign == '-' && at.Size > s.n || s.sign == 0 && at.Size != s.n {
			return false
		}
	}
	return true
}

func (f *finder) typed(abs string, at vfs.Attr) bool {
	if len(f.fileTypes) == 0 {
		return true
	}
	has := func(k string) bool { return slices.Contains(f.fileTypes, k) }
	kinds := has("f") || has("d") || has("l") || has("s") || has("p")
	if has("x") && (!at.Mode.IsRegular() || at.Mode&0o111 == 0) {
		return false
	}
	if has("e") {
		empty := at.Mode.IsRegular() && at.Size == 0
		if at.Mode.IsDir() {
			list, err := f.t.ReadDir(abs)
			empty = err == nil && !slices.ContainsFunc(list, func(e vfs.DirEntry) bool { return e.Name != "." && e.Name != ".." })
		}
		if !empty {
			return false
		}
	}
	if !kinds {
		return true
	}
	m := at.Mode & vfs.ModeType
	return has("f") && at.Mode.IsRegular() || has("d") && at.Mode.IsDir() || has("l") && at.Mode.IsSymlink() || has("s") && m == vfs.ModeSocket || has("p") && m == vfs.ModeFIFO
}

// result shows what was found, or has a command run for it.
func (f *finder) result(p string, mode vfs.Mode) {
	f.results++
	switch {
	case f.quiet:
	case f.exec != nil:
		if f.runCommand(f.exec, []string{p}) != 0 {
			f.status = 1
		}
	case f.batch != nil:
		if f.pending = append(f.pending, p); f.batchSize > 0 && len(f.pending) >= f.batchSize || len(f.pending) >= 1<<16 {
			f.runBatch()
		}
	default:
		if mode.IsDir() {
			p += "/"
		}
		if f.separator != "/" {
			p = strings.ReplaceAll(p, "/", f.separator)
		}
		end := "\n"
		if f.print0 {
			end = "\x00"
		}
		io.WriteString(f.t.Out, p+end)
	}
}

func (f *finder) runBatch() {
	if f.runCommand(f.batch, f.pending) != 0 {
		f.status = 1
	}
	f.pending = nil
}

// placeholders of commands.
func placeholder(name, p string) string {
	switch name {
	case "{/}":
		return path.Base(p)
	case "{//}":
		return path.Dir(p)[:max(len(path.Dir(p)), 1)]
	case "{.}":
		return strings.TrimSuffix(p, path.Ext(p))
	case "{/.}":
		base := path.Base(p)
		return strings.TrimSuffix(base, path.Ext(base))
	}
	return p
}

var placeholders = regexp.MustCompile(`\{(/|//|\.|/\.)?\}`)

// runCommand runs a command with paths in place of its placeholders, or at its end.
func (f *finder) runCommand(command, paths []string) int {
	var args []string
	used := false
	for _, w := range command {
		if !placeholders.MatchString(w) {
			args = append(args, w)
			continue
		}
		used = true
		for _, p := range paths {
			args = append(args, placeholders.ReplaceAllStringFunc(w, func(s string) string {
				text := placeholder(s, p)
				if s == "{//}" && strings.HasPrefix(p, "./") && text != "." {
					text = "./" + text
				}
				if s == "{.}" && strings.HasPrefix(p, "./") {
					text = strings.TrimPrefix(text, "./")
				}
				return text
			}))
		}
	}
	if !used {
		args = append(args, paths...)
	}
	f.t.Out.Flush()
	child, err := f.t.Spawn(proc.Spawn{Args: args})
	if err != nil {
		fmt.Fprintf(f.t.Stderr(), "[fd error]: Command not found: %s\n", args[0])
		return 1
	}
	status, _ := f.t.WaitQuiet(child)
	return status
}
