package coreutils

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const (
	keyAuthor = tool.KeyOwn + iota
	keyBlockSize
	keyClassify
	keyColor
	keyDerefToDir
	keyFileType
	keyFormat
	keyFullTime
	keyGroupDirs
	keyHide
	keyHyperlink
	keyIndicator
	keyQuotingStyle
	keyShowControl
	keySI
	keySort
	keyLsTime
	keyTimeStyle
	keyZero
)

var lsSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]..."},
	About: "List information about the FILEs (the current directory by default).\nSort entries alphabetically if none of -cftuvSUX nor --sort is specified.",
	Options: []getopt.Option{
		{Short: 'a', Long: "all", Help: "do not ignore entries starting with ."},
		{Short: 'A', Long: "almost-all", Help: "do not list implied . and .."},
		{Long: "author", Key: keyAuthor, Help: "with -l, print the author of each file"},
		{Short: 'b', Long: "escape", Help: "print C-style escapes for nongraphic characters"},
		{Long: "block-size", Key: keyBlockSize, Arg: getopt.Required, Name: "SIZE", Help: "with -l, scale sizes by SIZE when printing them"},
		{Short: 'B', Long: "ignore-backups", Help: "do not list implied entries ending with ~"},
		{Short: 'c', Help: "with -lt: sort by, and show, ctime; with -l: show ctime and sort by name; otherwise: sort by ctime, newest first"},
		{Short: 'C', Help: "list entries by columns"},
		{Long: "color", Key: keyColor, Arg: getopt.Optional, Name: "WHEN", Help: "color the output WHEN: always, auto, never"},
		{Short: 'd', Long: "directory", Help: "list directories themselves, not their contents"},
		{Short: 'D', Long: "dired", Help: "(accepted, without the byte offsets)"},
		{Short: 'f', Help: "list all entries in directory order"},
		{Short: 'F', Help: "append indicator (one of */=>@|) to entries"},
		{Long: "classify", Key: keyClassify, Arg: getopt.Optional, Name: "WHEN", Help: "append indicator (one of */=>@|) to entries WHEN: always, auto, never"},
		{Long: "file-type", Key: keyFileType, Help: "likewise, except do not append '*'"},
		{Long: "format", Key: keyFormat, Arg: getopt.Required, Name: "WORD", Help: "across -x, commas -m, horizontal -x, long -l, single-column -1, verbose -l, vertical -C"},
		{Long: "full-time", Key: keyFullTime, Help: "like -l --time-style=full-iso"},
		{Short: 'g', Help: "like -l, but do not list owner"},
		{Long: "group-directories-first", Key: keyGroupDirs, Help: "group directories before files"},
		{Short: 'G', Long: "no-group", Help: "in a long listing, don't print group names"},
		{Short: 'h', Long: "human-readable", Help: "with -l and -s, print sizes like 1K 234M 2G etc."},
		{Long: "si", Key: keySI, Help: "likewise, but use powers of 1000 not 1024"},
		{Short: 'H', Long: "dereference-command-line", Help: "follow symbolic links listed on the command line"},
		{Long: "dereference-command-line-symlink-to-dir", Key: keyDerefToDir, Help: "follow each command line symbolic link that points to a directory"},
		{Long: "hide", Key: keyHide, Arg: getopt.Required, Name: "PATTERN", Help: "do not list implied entries matching shell PATTERN (overridden by -a or -A)"},
		{Long: "hyperlink", Key: keyHyperlink, Arg: getopt.Optional, Name: "WHEN", Help: "(accepted, without links)"},
		{Long: "indicator-style", Key: keyIndicator, Arg: getopt.Required, Name: "WORD", Help: "append indicator with style WORD to entry names: none (default), slash (-p), file-type, classify (-F)"},
		{Short: 'i', Long: "inode", Help: "print the index number of each file"},
		{Short: 'I', Long: "ignore", Arg: getopt.Required, Name: "PATTERN", Help: "do not list implied entries matching shell PATTERN"},
		{Short: 'k', Long: "kibibytes", Help: "default to 1024-byte blocks for disk usage"},
		{Short: 'l', Help: "use a long listing format"},
		{Short: 'L', Long: "dereference", Help: "when showing file information for a symbolic link, show information for the file the link references"},
		{Short: 'm', Help: "fill width with a comma separated list of entries"},
		{Short: 'n', Long: "numeric-uid-gid", Help: "like -l, but list numeric user and group IDs"},
		{Short: 'N', Long: "literal", Help: "print entry names without quoting"},
		{Short: 'o', Help: "like -l, but do not list group information"},
		{Short: 'p', Help: "append / indicator to directories"},
		{Short: 'q', Long: "hide-control-chars", Help: "print ? instead of nongraphic characters"},
		{Long: "show-control-chars", Key: keyShowControl, Help: "show nongraphic characters as-is"},
		{Short: 'Q', Long: "quote-name", Help: "enclose entry names in double quotes"},
		{Long: "quoting-style", Key: keyQuotingStyle, Arg: getopt.Required, Name: "WORD", Help: "use quoting style WORD for entry names: literal, locale, shell, shell-always, shell-escape, shell-escape-always, c, escape"},
		{Short: 'r', Long: "reverse", Help: "reverse order while sorting"},
		{Short: 'R', Long: "recursive", Help: "list subdirectories recursively"},
		{Short: 's', Long: "size", Help: "print the allocated size of each file, in blocks"},
		{Short: 'S', Help: "sort by file size, largest first"},
		{Long: "sort", Key: keySort, Arg: getopt.Required, Name: "WORD", Help: "sort by WORD instead of name: none (-U), size (-S), time (-t), version (-v), extension (-X), width"},
		{Long: "time", Key: keyLsTime, Arg: getopt.Required, Name: "WORD", Help: "change the default of using modification times; access, atime, use; change, ctime, status; birth, creation; mtime, modification"},
		{Long: "time-style", Key: keyTimeStyle, Arg: getopt.Required, Name: "TIME_STYLE", Help: "time/date format with -l: full-iso, long-iso, iso, locale, or +FORMAT"},
		{Short: 't', Help: "sort by time, newest first"},
		{Short: 'T', Long: "tabsize", Arg: getopt.Required, Name: "COLS", Help: "assume tab stops at each COLS instead of 8"},
		{Short: 'u', Help: "with -lt: sort by, and show, access time; with -l: show access time and sort by name; otherwise: sort by access time, newest first"},
		{Short: 'U', Help: "do not sort; list entries in directory order"},
		{Short: 'v', Help: "natural sort of (version) numbers within text"},
		{Short: 'w', Long: "width", Arg: getopt.Required, Name: "COLS", Help: "set output width to COLS.  0 means no limit"},
		{Short: 'x', Help: "list entries by lines instead of by columns"},
		{Short: 'X', Help: "sort alphabetically by entry extension"},
		{Short: 'Z', Long: "context", Help: "print any security context of each file"},
		{Long: "zero", Key: keyZero, Help: "end each output line with NUL, not newline"},
		{Short: '1', Help: "list one file per line"},
	},
	Package: tool.Coreutils, Fail: 2,
}

// lister is ls: its options and what it has found.
type lister struct {
	t                                    *tool.T
	name                                 string // "ls", "dir" or "vdir"
	format                               byte   // 1 C x m l
	all, almost                          bool
	backups, dirSelf, recursive, reverse bool
	owner, group, author, numeric        bool
	inode, blocks, context, groupDirs    bool
	indicator                            byte // 0, p, f (file type), F
	sort                                 byte // n name, S, t, v, X, U, w
	time                                 byte // m, c, u
	explicitTime                         bool
	follow                               byte // 0 (symlinks to directories of the command line), H, L, d (to directories), P
	quoting                              string
	hideControl, controlSet              bool
	color                                *colors
	blockSize                            sizeFormat // of blocks
	fileSize                             sizeFormat
	width, tab                           int
	hide, ignore                         []string
	recent, old                          string  // time formats
	timeStyle                            *string // asked for by an option; looked at only by the long format
	eol                                  byte
	tty                                  bool
	now                                  time.Time
	accounts                             *tool.Accounts
	status                               int
	printed                              bool // something was listed, so a header is preceded by an empty line
	anyQuoted                            bool
	stack                                []inode // directories being listed, to find loops
}

// sizeFormat is how sizes are shown: scaled by a unit, or human-readable with a base.
type sizeFormat struct {
	unit   uint64
	human  uint64
	suffix string
}

func (f sizeFormat) format(n uint64) string {
	if f.human != 0 {
		return tool.Human(n, f.human)
	}
	return strconv.FormatUint(n/f.unit+min(n%f.unit, 1), 10) + f.suffix
}

// Ls lists directories.
func Ls(t *tool.T) int { return list(t, "ls", &lsSpec) }

// Dir lists directories in columns, with escapes for what can't be printed.
func Dir(t *tool.T) int { return list(t, "dir", &lsSpec) }

// Vdir lists directories in long format, with escapes for what can't be printed.
func Vdir(t *tool.T) int { return list(t, "vdir", &lsSpec) }

func list(t *tool.T, name string, spec *tool.Spec) int {
	t.FailStatus(2)
	l := &lister{t: t, name: name, sort: 'n', time: 'm', owner: true, group: true, tab: 8, eol: '\n', width: -1,
		blockSize: sizeFormat{unit: 1024}, fileSize: sizeFormat{unit: 1}, now: t.Now()}
	l.tty = t.IsTerminal(1)
	opts, files := t.Parse(spec)
	l.defaults()
	for _, o := range opts {
		l.option(o)
	}
	l.settle()
	return l.run(files)
}

func (l *lister) defaults() {
	l.format = '1'
	l.quoting = "literal"
	switch {
	case l.name == "dir":
		l.format, l.quoting = 'C', "escape"
	case l.name == "vdir":
		l.format, l.quoting = 'l', "escape"
	case l.tty:
		l.format, l.quoting = 'C', "shell-escape"
	}
	if q := l.t.Getenv("QUOTING_STYLE"); q != "" && contains(quotingStyles, q) {
		l.quoting = q
	}
	if n, err := strconv.Atoi(l.t.Getenv("TABSIZE")); err == nil && n >= 0 {
		l.tab = n
	}
	for _, name := range []string{"LS_BLOCK_SIZE", "BLOCK_SIZE"} {
		if v := l.t.Getenv(name); v != "" {
			if f, err := parseBlockSize(v); err == nil {
				l.blockSize, l.fileSize = f, f
				break
			}
		}
	}
}

var quotingStyles = []string{"literal", "shell", "shell-always", "shell-escape", "shell-escape-always", "c", "c-maybe", "escape", "locale", "clocale"}

// parseBlockSize reads a --block-size: a size, or a unit that is shown too, or human-readable, or si.
func parseBlockSize(s string) (sizeFormat, error) {
	s = strings.TrimPrefix(s, "'")
	switch s {
	case "human-readable":
		return sizeFormat{human: 1024}, nil
	case "si":
		return sizeFormat{human: 1000}, nil
	}
	n, err := tool.ParseSize(s, "eEgGkKmMpPtTyYzZ0")
	if err != nil || n == 0 {
		if err != tool.ErrRange {
			err = tool.ErrNotNumber
		}
		return sizeFormat{}, err
	}
	f := sizeFormat{unit: n}
	if s[0] < '0' || s[0] > '9' {
		f.suffix = s
		if s[0]|0x20 == 'k' { // the unit of 1000 is kB, those of 1024 are K and KiB
			f.suffix = "K" + s[1:]
			if s[1:] == "B" {
				f.suffix = "kB"
			}
		}
	}
	return f, nil
}

func (l *lister) option(o getopt.Opt) {
	switch o.Key {
	case 'a':
		l.all, l.almost = true, false
	case 'A':
		l.all, l.almost = false, true
	case 'B':
		l.backups = true
	case 'b':
		l.quoting = "escape"
	case 'c', 'u':
		l.time, l.explicitTime = byte(o.Key), true
	case 'C', 'm', 'x', 'l':
		l.format = byte(o.Key)
	case '1':
		if l.format != 'l' {
			l.format = '1'
		}
	case 'd':
		l.dirSelf = true
	case 'f':
		l.all, l.sort, l.color = true, 'U', nil
		if l.format == 'l' {
			l.format = '1'
			if l.tty {
				l.format = 'C'
			}
		}
		l.blocks = false
	case 'F', 'p':
		l.indicator = byte(o.Key)
	case 'g':
		l.format, l.owner = 'l', false
	case 'G':
		l.group = false
	case 'h', keySI:
		base := uint64(1024)
		if o.Key == keySI {
			base = 1000
		}
		l.blockSize, l.fileSize = sizeFormat{human: base}, sizeFormat{human: base}
	case 'H', 'L':
		l.follow = byte(o.Key)
	case 'i':
		l.inode = true
	case 'I':
		l.ignore = append(l.ignore, o.Arg)
	case 'k':
		l.blockSize = sizeFormat{unit: 1024}
	case 'n':
		l.format, l.numeric = 'l', true
	case 'N':
		l.quoting = "literal"
	case 'o':
		l.format, l.group = 'l', false
	case 'q':
		l.hideControl, l.controlSet = true, true
	case 'Q':
		l.quoting = "c"
	case 'r':
		l.reverse = true
	case 'R':
		l.recursive = true
	case 's':
		l.blocks = true
	case 'S', 't', 'U', 'v', 'X':
		l.sort = byte(o.Key)
	case 'T':
		l.tab = l.columns(o.Arg, "tab size")
	case 'w':
		l.width = l.columns(o.Arg, "line width")
	case 'Z':
		l.context = true
	default:
		l.longOption(o)
	}
}

func (l *lister) columns(arg, what string) int {
	base := 10
	if digits := strings.TrimPrefix(strings.TrimPrefix(arg, "0x"), "0X"); digits != arg {
		base, arg = 16, digits
	} else if len(arg) > 1 && arg[0] == '0' {
		base = 8
	}
	n, err := strconv.ParseUint(arg, base, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) && what == "line width":
		return 0 // no limit
	case err != nil:
		l.t.Fatal(2, "invalid %s: %s", what, tool.Quote(arg))
	}
	return int(min(n, 1<<31-1))
}

var whenWords = [][]string{{"always", "yes", "force"}, {"never", "no", "none"}, {"auto", "tty", "if-tty"}}

func (l *lister) longOption(o getopt.Opt) {
	t := l.t
	switch o.Key {
	case keyAuthor:
		l.author = true
	case keyBlockSize:
		f, err := parseBlockSize(o.Arg)
		if err == tool.ErrRange {
			t.Fatal(2, "--block-size argument %s too large", tool.QuoteAF(o.Arg))
		} else if err != nil {
			t.Fatal(2, "invalid --block-size argument %s", tool.QuoteAF(o.Arg))
		}
		l.blockSize, l.fileSize = f, f
	case keyColor, keyHyperlink, keyClassify:
		when := 0
		if o.Has {
			when = t.Choice(1, o.As, o.Arg, whenWords)
		}
		on := when == 0 || when == 2 && l.tty
		switch {
		case o.Key == keyColor:
			if l.color = nil; on {
				l.color = l.colors()
			}
		case o.Key == keyClassify && on:
			l.indicator = 'F'
		}
	case keyDerefToDir:
		l.follow = 'd'
	case keyFileType:
		l.indicator = 'f'
	case keyFormat:
		l.format = "lmxC1"[t.Choice(1, "--format", o.Arg, [][]string{{"verbose", "long"}, {"commas"}, {"horizontal", "across"}, {"vertical"}, {"single-column"}})]
	case keyFullTime:
		l.format = 'l'
		style := "full-iso"
		l.timeStyle = &style
	case keyGroupDirs:
		l.groupDirs = true
	case keyHide:
		l.hide = append(l.hide, o.Arg)
	case keyIndicator:
		l.indicator = "\x00pfF"[t.Choice(1, "--indicator-style", o.Arg, [][]string{{"none"}, {"slash"}, {"file-type"}, {"classify"}})]
	case keyShowControl:
		l.hideControl, l.controlSet = false, true
	case keyQuotingStyle:
		groups := make([][]string, len(quotingStyles))
		for i, q := range quotingStyles {
			groups[i] = []string{q}
		}
		l.quoting = quotingStyles[t.Choice(1, "--quoting-style", o.Arg, groups)]
	case keySort:
		l.sort = "UtSXvw"[t.Choice(1, "--sort", o.Arg, [][]string{{"none"}, {"time"}, {"size"}, {"extension"}, {"version"}, {"width"}})]
	case keyLsTime:
		l.time = "ucmm"[t.Choice(1, "--time", o.Arg, [][]string{{"atime", "access", "use"}, {"ctime", "status"}, {"mtime", "modification"}, {"birth", "creation"}})]
		l.explicitTime = true
	case keyTimeStyle:
		style := o.Arg
		l.timeStyle = &style
	case keyZero:
		l.eol, l.color, l.quoting = 0, nil, "literal"
		l.hideControl, l.controlSet = false, true
		if l.format != 'l' {
			l.format = '1'
		}
	}
}

// setTimeStyle sets the time formats; lenient says that a wrong style (of the environment) counts as none.
func (l *lister) setTimeStyle(style string, lenient bool) {
	s := strings.TrimPrefix(style, "posix-")
	if format, ok := strings.CutPrefix(s, "+"); ok {
		old, recent, both := strings.Cut(format, "\n")
		if !both {
			recent = old
		}
		if strings.Contains(recent, "\n") {
			l.t.Fatal(2, "invalid time style format %s", tool.Quote(format))
		}
		l.recent, l.old = recent, old
		return
	}
	found := ""
	for _, name := range []string{"full-iso", "long-iso", "iso", "locale"} {
		if name == s {
			found = name
			break
		}
		if strings.HasPrefix(name, s) {
			if found != "" {
				found = "ambiguous"
			} else {
				found = name
			}
		}
	}
	switch found {
	case "full-iso":
		l.recent = "%Y-%m-%d %H:%M:%S.%N %z"
		l.old = l.recent
	case "long-iso":
		l.recent = "%Y-%m-%d %H:%M"
		l.old = l.recent
	case "iso":
		l.recent, l.old = "%m-%d %H:%M", "%Y-%m-%d "
	default:
		if found == "locale" || lenient {
			l.recent, l.old = "%b %e %H:%M", "%b %e  %Y"
			return
		}
		if found == "" {
			found = "invalid"
		}
		l.t.Warn("%s argument %s for %s", found, tool.Quote(style), tool.Quote("time style"))
		l.t.Stderr().Write([]byte("Valid arguments are:\n  - [posix-]full-iso\n  - [posix-]long-iso\n  - [posix-]iso\n  - [posix-]locale\n  - +FORMAT (e.g., +%H:%M) for a 'date'-style format\n"))
		l.t.Try(2)
	}
}

// settle resolves what options together mean.
func (l *lister) settle() {
	if l.explicitTime && l.sort == 'n' && l.format != 'l' {
		l.sort = 't'
	}
	if l.follow == 0 {
		l.follow = 'd'
		if l.dirSelf || l.indicator == 'F' || l.format == 'l' {
			l.follow = 'P'
		}
	}
	if l.width < 0 {
		l.width = 80
		if n, err := strconv.Atoi(l.t.Getenv("COLUMNS")); err == nil && n >= 0 {
			l.width = n
		}
	}
	if l.format == 'l' {
		if l.timeStyle != nil {
			l.setTimeStyle(*l.timeStyle, false)
		} else {
			l.setTimeStyle(l.t.Getenv("TIME_STYLE"), true)
		}
	}
	if !l.controlSet {
		l.hideControl = l.tty && l.name == "ls"
	}
	if l.format == 'l' && !l.numeric {
		l.accounts = l.t.Accounts()
	}
}
