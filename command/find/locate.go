package find

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/posixre"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	// database is where updatedb writes if it may, else in the user's own folder.
	database     = "/var/cache/locate/locatedb"
	ownDatabase  = ".cache/locatedb"
	magic        = "\x00LOCATE02\x00"
	defaultPrune = "/proc /dev /sys /tmp /var/tmp /var/cache/locate"
	maxPath      = 1 << 16
)

const (
	keyOutput = tool.KeyOwn + 300 + iota
	keyLocalPaths
	keyPrunePaths
	keyPruneNames
	keyIgnored
)

var updatedbSpec = tool.Spec{
	Usage: []string{"[OPTION]..."},
	About: "Write a database of the names of files, for locate.",
	Options: []getopt.Option{
		{Short: 'o', Long: "output", Key: keyOutput, Arg: getopt.Required, Name: "FILE", Help: "the database to write"},
		{Short: 'U', Long: "localpaths", Key: keyLocalPaths, Arg: getopt.Required, Name: "DIRS", Help: "directories to put into it (/)"},
		{Long: "database-root", Key: keyLocalPaths, Arg: getopt.Required, Hidden: true},
		{Short: 'e', Long: "prunepaths", Key: keyPrunePaths, Arg: getopt.Required, Name: "DIRS", Help: "directories to leave out"},
		{Short: 'n', Long: "prunenames", Key: keyPruneNames, Arg: getopt.Required, Name: "NAMES", Help: "names of directories to leave out"},
		{Long: "findoptions", Key: keyIgnored, Arg: getopt.Required}, {Long: "netpaths", Key: keyIgnored, Arg: getopt.Required}, {Long: "prunefs", Key: keyIgnored, Arg: getopt.Required},
		{Long: "netuser", Key: keyIgnored, Arg: getopt.Required}, {Long: "localuser", Key: keyIgnored, Arg: getopt.Required}, {Long: "dbformat", Key: keyIgnored, Arg: getopt.Required},
		{Short: 'l', Long: "require-visibility", Key: keyIgnored, Arg: getopt.Required, Hidden: true}, {Short: 'v', Long: "verbose", Help: "print the names, too"},
	},
	Package: tool.Findutils,
}

// Updatedb writes a database of the names of files that the user can see.
func Updatedb(t *tool.T) int {
	opts, operands := t.Parse(&updatedbSpec)
	if len(operands) > 0 {
		t.Extra(1, operands[0])
	}
	output, roots, prune, names, verbose := "", []string{"/"}, strings.Fields(defaultPrune), []string(nil), false
	for _, o := range opts {
		switch o.Key {
		case keyOutput:
			output = o.Arg
		case keyLocalPaths:
			roots = strings.Fields(o.Arg)
		case keyPrunePaths:
			prune = strings.Fields(o.Arg)
		case keyPruneNames:
			names = strings.Fields(o.Arg)
		case 'v':
			verbose = true
		}
	}
	if output == "" {
		output = chooseDatabase(t)
	}
	dir, base := path.Split(output)
	temp, f, err := t.TempFile(strings.TrimSuffix(dir, "/"), base+".", 0o644)
	if err != nil {
		t.Fatal(1, "cannot open %s: %s", output, tool.Strerror(err))
	}
	defer t.Unlink(temp) // nothing once it has been renamed
	w := &databaseWriter{out: tool.NewFileWriter(f)}
	w.out.WriteString(magic)
	for _, root := range roots {
		walkNames(t, root, prune, names, func(name string) bool {
			if verbose {
				t.Out.WriteString(name + "\n")
			}
			return w.add(name) == nil
		})
	}
	err = w.out.Flush()
	f.Close()
	if err == nil {
		err = t.Rename(temp, output, 0)
	}
	if err != nil {
		t.Fatal(1, "cannot write %s: %s", output, tool.Strerror(err))
	}
	return 0
}

// chooseDatabase is the first place for a database that can be written.
func chooseDatabase(t *tool.T) string {
	dir := path.Dir(database)
	for _, d := range []string{path.Dir(dir), dir} {
		t.Mkdir(d, 0o755)
	}
	if t.Access(dir, 2) == nil {
		return database
	}
	home := t.Getenv("HOME")
	if home == "" {
		home = "/tmp"
	}
	own := path.Join(home, ownDatabase)
	t.Mkdir(path.Dir(own), 0o700)
	return own
}

// walkNames calls f for every file below a directory, until it returns false.
func walkNames(t *tool.T, root string, prune, names []string, f func(string) bool) bool {
	if root != "/" {
		root = strings.TrimRight(root, "/")
	}
	if slices.Contains(prune, root) {
		return true
	}
	if !f(root) {
		return false
	}
	return walkBelow(t, root, prune, names, f, 0)
}

func walkBelow(t *tool.T, dir string, prune, names []string, f func(string) bool, depth int) bool {
	if t.Step(1) != nil {
		t.Check()
	}
	list, err := t.ReadDir(dir)
	if err != nil || depth > maxNesting {
		return true
	}
	slices.SortFunc(list, func(a, b vfs.DirEntry) int { return strings.Compare(a.Name, b.Name) })
	for _, e := range list {
		name := join(dir, e.Name)
		if e.Name == "." || e.Name == ".." || slices.Contains(prune, name) || e.Mode.IsDir() && slices.Contains(names, e.Name) {
			continue
		}
		if !f(name) || e.Mode.IsDir() && !walkBelow(t, name, prune, names, f, depth+1) {
			return false
		}
	}
	return true
}

// databaseWriter writes names, each by how much it shares with the one before.
type databaseWriter struct {
	out  *tool.FileWriter
	last string
	same int
}

func (w *databaseWriter) add(name string) error {
	n := 0
	for n < len(name) && n < len(w.last) && name[n] == w.last[n] && n < 1<<15-1 {
		n++
	}
	d := n - w.same
	if d > -128 && d < 128 {
		w.out.WriteByte(byte(d))
	} else {
		w.out.Write([]byte{0x80, byte(d >> 8), byte(d)})
	}
	w.out.WriteString(name[n:])
	w.last, w.same = name, n
	return w.out.WriteByte(0)
}

var errDatabase = errors.New("not a database of locate's")

// readDatabase calls f for each name in a database, until it returns false.
func readDatabase(r *bufio.Reader, f func(string) bool) error {
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(r, head); err != nil || string(head) != magic {
		return errDatabase
	}
	last, same := "", 0
	for {
		c, err := r.ReadByte()
		if err != nil {
			return nil
		}
		d := int(int8(c))
		if c == 0x80 {
			var b [2]byte
			if _, err := io.ReadFull(r, b[:]); err != nil {
				return errDatabase
			}
			d = int(int16(uint16(b[0])<<8 | uint16(b[1])))
		}
		if same += d; same < 0 || same > len(last) {
			return errDatabase
		}
		var rest []byte
		for {
			c, err := r.ReadByte()
			if err != nil || len(rest) > maxPath {
				return errDatabase
			}
			if c == 0 {
				break
			}
			rest = append(rest, c)
		}
		if last = last[:same] + string(rest); !f(last) {
			return nil
		}
	}
}

var locateSpec = tool.Spec{
	Usage: []string{"[OPTION]... PATTERN..."},
	About: "Find files by their names.  Without a database of updatedb's, the filesystem itself is searched.",
	Options: []getopt.Option{
		{Short: 'A', Long: "all", Help: "print only names that match all patterns"},
		{Short: 'b', Long: "basename", Help: "match the last component only"},
		{Short: 'c', Long: "count", Help: "print the number of matches"},
		{Short: 'd', Long: "database", Arg: getopt.Required, Name: "FILE", Help: "databases to read, with colons between"},
		{Short: 'e', Long: "existing", Help: "print only names of files that exist"},
		{Short: 'E', Long: "non-existing", Help: "print only names of files that don't"},
		{Short: 'i', Long: "ignore-case", Help: "ignore case"},
		{Short: 'l', Long: "limit", Arg: getopt.Required, Name: "N", Help: "print at most N names"}, {Short: 'n', Key: 'l', Arg: getopt.Required, Hidden: true},
		{Short: 'r', Long: "regex", Help: "patterns are regular expressions"}, {Long: "regexp", Key: 'r', Hidden: true},
		{Short: '0', Long: "null", Help: "a NUL follows each name"},
		{Short: 'w', Long: "wholename", Help: "match the whole name (default)"},
		{Short: 'q', Long: "quiet", Help: "don't complain about databases"}, {Short: 'S', Long: "statistics", Help: "print numbers about the databases"},
		{Short: 'P', Long: "nofollow", Help: "(accepted)"}, {Short: 'H', Hidden: true, Key: 'P'}, {Short: 'L', Long: "follow", Help: "(accepted)"}, {Short: 's', Long: "stdio", Hidden: true}, {Short: 'm', Long: "mmap", Hidden: true},
	},
	Package: tool.Findutils,
}

// locator is a run of locate.
type locator struct {
	t                                       *tool.T
	patterns                                []string
	regexps                                 []*posixre.Regexp
	all, base, fold, existing, gone, silent bool
	count                                   bool
	limit, found                            int
	end                                     byte
}

// Locate finds files by their names.
func Locate(t *tool.T) int {
	opts, patterns := t.Parse(&locateSpec)
	l := &locator{t: t, patterns: patterns, limit: -1, end: '\n'}
	databases, regex, stats := t.Getenv("LOCATE_PATH"), false, false
	for _, o := range opts {
		switch o.Key {
		case 'A':
			l.all = true
		case 'b':
			l.base = true
		case 'w':
			l.base = false
		case 'c':
			l.count = true
		case 'd':
			databases = o.Arg
		case 'e':
			l.existing = true
		case 'E':
			l.gone = true
		case 'i':
			l.fold = true
		case 'l':
			n, err := strconv.ParseUint(o.Arg, 10, 31)
			if err != nil {
				t.Fatal(1, "argument to --limit must be a number, not %s", tool.Quote(o.Arg))
			}
			l.limit = int(n)
		case 'r':
			regex = true
		case '0':
			l.end = 0
		case 'q':
			l.silent = true
		case 'S':
			stats = true
		}
	}
	if len(patterns) == 0 && !stats {
		t.Missing(1)
	}
	if regex {
		for _, p := range patterns {
			re, err := posixre.Compile(p, posixre.Options{Flavor: posixre.Basic, Fold: l.fold})
			if err != nil {
				t.Fatal(1, "%v", err)
			}
			l.regexps = append(l.regexps, re)
		}
	}
	bytes := 0
	each := l.take
	if stats {
		each = func(name string) bool { l.found++; bytes += len(name); return true }
	}
	if !l.search(databases, each) {
		return 1
	}
	if stats {
		fmt.Fprintf(t.Out, "All Filenames: %d\nFile names have a cumulative length of %d bytes.\n", l.found, bytes)
		return 0
	}
	if l.count {
		fmt.Fprintf(t.Out, "%d\n", l.found)
	}
	if l.found == 0 {
		return 1
	}
	return 0
}

// search goes through the databases that were named, else the one that there is, else the filesystem.
func (l *locator) search(databases string, each func(string) bool) bool {
	t := l.t
	if databases == "" {
		for _, name := range []string{database, path.Join(t.Getenv("HOME"), ownDatabase)} {
			if _, err := t.Stat(name); err == nil {
				databases = name
				break
			}
		}
	}
	if databases == "" {
		walkNames(t, "/", strings.Fields(defaultPrune), nil, each)
		return true
	}
	ok := true
	for _, name := range strings.Split(databases, ":") {
		if name == "" {
			name = database
		}
		in, err := t.Open(name)
		if err == nil {
			err = readDatabase(bufio.NewReader(in), each)
			in.Close()
		}
		if err != nil {
			if ok = false; !l.silent {
				t.Warn("%s: %s", name, tool.Strerror(err))
			}
		}
	}
	return ok
}

// take handles one name; false is to stop.
func (l *locator) take(name string) bool {
	if l.t.Step(1) != nil {
		l.t.Check()
	}
	if l.limit >= 0 && l.found >= l.limit {
		return false
	}
	matched := l.all
	for i := range l.patterns {
		if m := l.matches(i, name); m != l.all {
			matched = m
			break
		}
	}
	if !matched {
		return true
	}
	if l.existing || l.gone {
		_, err := l.t.Stat(name)
		if missing := errors.Is(err, syscall.ENOENT) || tool.IsNotExist(err); missing && l.existing || !missing && l.gone {
			return true
		}
	}
	if l.found++; !l.count {
		l.t.Out.WriteString(name)
		l.t.Out.WriteByte(l.end)
	}
	return true
}

func (l *locator) matches(i int, name string) bool {
	if l.base {
		name = path.Base(name)
	}
	if l.regexps != nil {
		ok, err := l.regexps[i].Match([]byte(name))
		if err != nil {
			l.t.Fatal(1, "%s", err)
		}
		return ok
	}
	p := l.patterns[i]
	if strings.ContainsAny(p, `*?[\`) {
		flags := tool.GlobFlags(0)
		if l.fold {
			flags = tool.GlobFold
		}
		return tool.Glob(p, name, flags)
	}
	if l.fold {
		return strings.Contains(strings.ToLower(name), strings.ToLower(p))
	}
	return strings.Contains(name, p)
}
