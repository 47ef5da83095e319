package diff

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/posixre"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	keyNormal = tool.KeyOwn + iota
	keySuppressCommon
	keyLeftColumn
	keyLabel
	keyTabSize
	keySuppressEmpty
	keyNoDereference
	keyIgnoreNameCase
	keyNoIgnoreNameCase
	keyFromFile
	keyToFile
	keyStripCR
	keyLineFormat
	keyUnchangedLine
	keyOldLine
	keyNewLine
	keyUnchangedGroup
	keyOldGroup
	keyNewGroup
	keyChangedGroup
	keyHorizon
	keySpeed
	keyColor
	keyPalette
	keyBinary
	keyOldContext
)

var spec = tool.Spec{
	Usage: []string{"[OPTION]... FILES"},
	About: "Compare FILES line by line.",
	Options: []getopt.Option{
		{Long: "normal", Key: keyNormal, Help: "output a normal diff (the default)"},
		{Short: 'q', Long: "brief", Help: "report only when files differ"},
		{Short: 's', Long: "report-identical-files", Help: "report when two files are the same"},
		{Short: 'c', Key: 'c', Help: "output 3 lines of copied context"},
		{Short: 'C', Key: 'C', Arg: getopt.Required, Name: "NUM", Hidden: true},
		{Long: "context", Key: 'C', Arg: getopt.Optional, Name: "NUM", Help: "output NUM (default 3) lines of copied context"},
		{Short: 'u', Key: 'u', Help: "output 3 lines of unified context"},
		{Short: 'U', Key: 'U', Arg: getopt.Required, Name: "NUM", Hidden: true},
		{Long: "unified", Key: 'U', Arg: getopt.Optional, Name: "NUM", Help: "output NUM (default 3) lines of unified context"},
		{Short: 'e', Long: "ed", Help: "output an ed script"},
		{Short: 'f', Long: "forward-ed", Help: "output an ed script in forward order"},
		{Short: 'n', Long: "rcs", Help: "output an RCS format diff"},
		{Short: 'y', Long: "side-by-side", Help: "output in two columns"},
		{Short: 'W', Long: "width", Arg: getopt.Required, Name: "NUM", Help: "output at most NUM (default 130) print columns"},
		{Long: "left-column", Key: keyLeftColumn, Help: "output only the left column of common lines"},
		{Long: "suppress-common-lines", Key: keySuppressCommon, Help: "do not output common lines"},
		{Short: 'p', Long: "show-c-function", Help: "show which C function each change is in"},
		{Short: 'F', Long: "show-function-line", Arg: getopt.Required, Name: "RE", Help: "show the most recent line matching RE"},
		{Short: 'L', Long: "label", Key: keyLabel, Arg: getopt.Required, Name: "LABEL", Help: "use LABEL instead of file name and timestamp (can be repeated)"},
		{Short: 't', Long: "expand-tabs", Help: "expand tabs to spaces in output"},
		{Short: 'T', Long: "initial-tab", Help: "make tabs line up by prepending a tab"},
		{Long: "tabsize", Key: keyTabSize, Arg: getopt.Required, Name: "NUM", Help: "tab stops every NUM (default 8) print columns"},
		{Long: "suppress-blank-empty", Key: keySuppressEmpty, Help: "suppress space or tab before empty output lines"},
		{Short: 'l', Long: "paginate", Help: "(accepted)"},
		{Short: 'r', Long: "recursive", Help: "recursively compare any subdirectories found"},
		{Long: "no-dereference", Key: keyNoDereference, Help: "don't follow symbolic links"},
		{Short: 'N', Long: "new-file", Help: "treat absent files as empty"},
		{Short: 'P', Long: "unidirectional-new-file", Help: "treat absent first files as empty"},
		{Long: "ignore-file-name-case", Key: keyIgnoreNameCase, Help: "ignore case when comparing file names"},
		{Long: "no-ignore-file-name-case", Key: keyNoIgnoreNameCase, Help: "consider case when comparing file names"},
		{Short: 'x', Long: "exclude", Arg: getopt.Required, Name: "PAT", Help: "exclude files that match PAT"},
		{Short: 'X', Long: "exclude-from", Arg: getopt.Required, Name: "FILE", Help: "exclude files that match any pattern in FILE"},
		{Short: 'S', Long: "starting-file", Arg: getopt.Required, Name: "FILE", Help: "start with FILE when comparing directories"},
		{Long: "from-file", Key: keyFromFile, Arg: getopt.Required, Name: "FILE1", Help: "compare FILE1 to all operands; FILE1 can be a directory"},
		{Long: "to-file", Key: keyToFile, Arg: getopt.Required, Name: "FILE2", Help: "compare all operands to FILE2; FILE2 can be a directory"},
		{Short: 'i', Long: "ignore-case", Help: "ignore case differences in file contents"},
		{Short: 'E', Long: "ignore-tab-expansion", Help: "ignore changes due to tab expansion"},
		{Short: 'Z', Long: "ignore-trailing-space", Help: "ignore white space at line end"},
		{Short: 'b', Long: "ignore-space-change", Help: "ignore changes in the amount of white space"},
		{Short: 'w', Long: "ignore-all-space", Help: "ignore all white space"},
		{Short: 'B', Long: "ignore-blank-lines", Help: "ignore changes where lines are all blank"},
		{Short: 'I', Long: "ignore-matching-lines", Arg: getopt.Required, Name: "RE", Help: "ignore changes where all lines match RE"},
		{Short: 'a', Long: "text", Help: "treat all files as text"},
		{Long: "strip-trailing-cr", Key: keyStripCR, Help: "strip trailing carriage return on input"},
		{Long: "binary", Key: keyBinary, Help: "(accepted)"},
		{Short: 'D', Long: "ifdef", Arg: getopt.Required, Name: "NAME", Help: "output merged file with '#ifdef NAME' diffs"},
		{Long: "line-format", Key: keyLineFormat, Arg: getopt.Required, Name: "LFMT", Help: "format all input lines with LFMT"},
		{Long: "unchanged-line-format", Key: keyUnchangedLine, Arg: getopt.Required, Name: "LFMT", Help: "format unchanged input lines with LFMT"},
		{Long: "old-line-format", Key: keyOldLine, Arg: getopt.Required, Name: "LFMT", Help: "format old input lines with LFMT"},
		{Long: "new-line-format", Key: keyNewLine, Arg: getopt.Required, Name: "LFMT", Help: "format new input lines with LFMT"},
		{Long: "unchanged-group-format", Key: keyUnchangedGroup, Arg: getopt.Required, Name: "GFMT", Help: "format unchanged groups with GFMT"},
		{Long: "old-group-format", Key: keyOldGroup, Arg: getopt.Required, Name: "GFMT", Help: "format old groups with GFMT"},
		{Long: "new-group-format", Key: keyNewGroup, Arg: getopt.Required, Name: "GFMT", Help: "format new groups with GFMT"},
		{Long: "changed-group-format", Key: keyChangedGroup, Arg: getopt.Required, Name: "GFMT", Help: "format changed groups with GFMT"},
		{Short: 'd', Long: "minimal", Help: "try hard to find a smaller set of changes"},
		{Long: "horizon-lines", Key: keyHorizon, Arg: getopt.Required, Name: "NUM", Help: "keep NUM lines of the common prefix and suffix"},
		{Long: "speed-large-files", Key: keySpeed, Short: 'H', Help: "(accepted)"},
		{Long: "color", Key: keyColor, Arg: getopt.Optional, Name: "WHEN", Help: "color output; WHEN is 'never', 'always', or 'auto' (the default)"},
		{Long: "palette", Key: keyPalette, Arg: getopt.Required, Name: "PALETTE", Help: "the colors to use when --color is active"},
		{Short: 'h', Hidden: true},
		{Long: "-context", Key: keyOldContext, Arg: getopt.Required, Hidden: true},
	},
	Notes:   "FILES are 'FILE1 FILE2' or 'DIR1 DIR2' or 'DIR FILE' or 'FILE DIR'.\nIf a FILE is '-', read standard input.\nExit status is 0 if inputs are the same, 1 if different, 2 if trouble.",
	Package: tool.Diffutils, Fail: 2,
}

// differ is one run of diff: its options.
type differ struct {
	t                *tool.T
	style            byte // n normal, c, u, e, f, r (rcs), y, D (formats)
	brief, identical bool
	context, horizon int
	ignoring
	blank                          bool // -B
	ignoreRE                       []*posixre.Regexp
	function                       []*posixre.Regexp
	labels                         []string
	expandTabs, initialTab         bool
	suppressEmpty, asText, stripCR bool
	minimal                        bool
	width                          int
	leftColumn, suppressCommon     bool
	recursive, newFile, oneWay     bool
	noDereference, foldNames       bool
	exclude                        []string
	starting                       string
	group                          [4]*string // formats of unchanged, old, new, changed groups
	line                           [3]*string // of unchanged, old, new lines
	switches                       string     // the options as they were given, for headers of directories
	color                          bool
	palette                        palette
	stdin                          []byte
	stdinRead                      bool
	ancestors                      [2][]vfs.Attr // the directories being compared, to find loops
}

// Diff compares files line by line.
func Diff(t *tool.T) int {
	t.FailStatus(2)
	d := &differ{t: t, context: -1, width: 130, palette: defaultPalette()}
	d.tabSize = 8
	args := obsoleteContext(t.Args()[1:])
	opts, files := t.ParseArgs(&spec, args)
	from, to := "", ""
	context, old, explicit := -1, -1, false
	for _, o := range opts {
		switch o.Key {
		case keyFromFile:
			from = o.Arg
		case keyToFile:
			to = o.Arg
		case 'c', 'u', 'C', 'U':
			n := 3
			if o.Has {
				n, explicit = d.number(o.Arg, "context length"), true
			}
			d.setStyle(byte(o.Key) | 0x20)
			context = max(context, n)
		case keyOldContext:
			old = d.number(o.Arg, "context length")
		default:
			d.option(o)
		}
	}
	if old >= 0 && context >= 0 && (old > context || !explicit) {
		context = old
	}
	d.settle(files, context)
	switch {
	case from != "" && to != "":
		t.Fatal(2, "--from-file and --to-file both specified")
	case from != "" || to != "":
		status := 0
		for _, f := range files {
			x, y := from, f
			if to != "" {
				x, y = f, to
			}
			status = max(status, d.operands(x, y))
		}
		return status
	case len(files) < 2:
		if len(files) == 0 {
			t.UsageError(2, "missing operand after %s", tool.QuoteAF(t.Args()[len(t.Args())-1]))
		}
		t.UsageError(2, "missing operand after %s", tool.QuoteAF(files[len(files)-1]))
	case len(files) > 2:
		t.UsageError(2, "extra operand %s", tool.QuoteAF(files[2]))
	}
	return d.operands(files[0], files[1])
}

// obsoleteContext turns -5, also among other letters such as -u5 and -5u, into an option of its own.
func obsoleteContext(args []string) []string {
	const letters = "abBcdeEfilnNpPqrsStTuvwyZ" // those without arguments
	var out []string
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		body := strings.TrimPrefix(a, "-")
		if body == a || body == "" || strings.Trim(body, letters+"0123456789") != "" || strings.Trim(body, letters) == "" {
			out = append(out, a)
			continue
		}
		digits, rest := "", ""
		for _, c := range body {
			if c >= '0' && c <= '9' {
				digits += string(c)
			} else {
				rest += string(c)
			}
		}
		if rest != "" {
			out = append(out, "-"+rest)
		}
		out = append(out, "---context="+digits)
	}
	return out
}

func (d *differ) number(arg, what string) int {
	n, err := strconv.ParseUint(arg, 10, 62)
	if err != nil {
		d.t.UsageError(2, "invalid %s %s", what, tool.QuoteAF(arg))
	}
	return int(min(n, 1<<40))
}

func (d *differ) setStyle(style byte) {
	if d.style != 0 && d.style != style {
		d.t.UsageError(2, "conflicting output style options")
	}
	d.style = style
}

func (d *differ) option(o getopt.Opt) {
	switch o.Key {
	case keyNormal:
		d.setStyle('n')
	case 'q':
		d.brief = true
	case 's':
		d.identical = true
	case 'e', 'f', 'y':
		d.setStyle(byte(o.Key))
	case 'n':
		d.setStyle('r')
	case 'W':
		if d.width = d.number(o.Arg, "width"); d.width == 0 {
			d.t.UsageError(2, "invalid width %s", tool.QuoteAF(o.Arg))
		}
		d.width = min(d.width, 1<<20)
	case keyLeftColumn:
		d.leftColumn = true
	case keySuppressCommon:
		d.suppressCommon = true
	case 'p':
		d.function = append(d.function, d.compile("^[[:alpha:]$_]"))
	case 'F':
		d.function = append(d.function, d.compile(o.Arg))
	case keyLabel:
		if d.labels = append(d.labels, o.Arg); len(d.labels) > 2 {
			d.t.Fatal(2, "too many file label options")
		}
	case 't':
		d.expandTabs = true
	case 'T':
		d.initialTab = true
	case keyTabSize:
		if d.tabSize = d.number(o.Arg, "tabsize"); d.tabSize == 0 {
			d.t.UsageError(2, "invalid tabsize %s", tool.QuoteAF(o.Arg))
		}
		d.tabSize = min(d.tabSize, 1<<20)
	case keySuppressEmpty:
		d.suppressEmpty = true
	case 'i':
		d.fold = true
	case 'E':
		d.tabs = true
	case 'Z':
		d.trailing = true
	case 'b':
		d.change = true
	case 'w':
		d.all = true
	case 'B':
		d.blank = true
	case 'I':
		d.ignoreRE = append(d.ignoreRE, d.compile(o.Arg))
	case 'a':
		d.asText = true
	case keyStripCR:
		d.stripCR = true
	case 'd':
		d.minimal = true
	case keyHorizon:
		d.horizon = d.number(o.Arg, "horizon length")
	default:
		d.treeOption(o)
	}
}

// treeOption takes the options about directories, formats and colours.
func (d *differ) treeOption(o getopt.Opt) {
	text := o.Arg
	switch o.Key {
	case 'r':
		d.recursive = true
	case 'N':
		d.newFile = true
	case 'P':
		d.oneWay = true
	case keyNoDereference:
		d.noDereference = true
	case keyIgnoreNameCase, keyNoIgnoreNameCase:
		d.foldNames = o.Key == keyIgnoreNameCase
	case 'x':
		d.exclude = append(d.exclude, o.Arg)
	case 'X':
		b, err := d.t.ReadFile(o.Arg, 1<<20)
		if err != nil {
			d.t.Fatal(2, "%s: %s", o.Arg, tool.Strerror(err))
		}
		for _, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
			if line != "" {
				d.exclude = append(d.exclude, line)
			}
		}
	case 'S':
		d.starting = o.Arg
	case 'D':
		d.setStyle('D')
		d.ifdef(o.Arg)
	case keyLineFormat:
		d.setStyle('D')
		for i := range d.line {
			d.line[i] = &text
		}
	case keyUnchangedLine, keyOldLine, keyNewLine:
		d.setStyle('D')
		d.line[o.Key-keyUnchangedLine] = &text
	case keyUnchangedGroup, keyOldGroup, keyNewGroup, keyChangedGroup:
		d.setStyle('D')
		d.group[o.Key-keyUnchangedGroup] = &text
	case keyColor:
		when := 2
		if o.Has {
			when = d.t.Choice(2, "--color", o.Arg, [][]string{{"always"}, {"never"}, {"auto"}})
		}
		d.color = when == 0 || when == 2 && d.t.IsTerminal(1)
	case keyPalette:
		d.palette.parse(o.Arg)
	}
}

func (d *differ) compile(re string) *posixre.Regexp {
	r, err := posixre.Compile(re, posixre.Options{})
	if err != nil {
		d.t.Fatal(2, "%s: %s", re, err)
	}
	return r
}

// settle fills in what follows from the options together.
func (d *differ) settle(files []string, context int) {
	if d.style == 0 {
		d.style = 'n'
		if len(d.function) > 0 {
			d.style, context = 'c', 3
		}
	}
	d.context = max(0, context)
	if d.style == 'c' || d.style == 'u' {
		if context < 0 {
			d.context = 3
		}
		d.horizon = max(d.horizon, d.context)
	}
	if d.style == 'y' {
		d.horizon = max(d.horizon, 0)
	}
	d.endings = d.all || d.change || d.trailing || d.style == 'e' || d.style == 'f'
	if d.brief || d.style == 'D' || d.style == 'y' {
		d.endings = d.all || d.change || d.trailing
	}
	var words []string
	args := d.t.Args()[1:]
	operand := map[string]int{}
	for _, f := range files {
		operand[f]++
	}
	for _, a := range args {
		if operand[a] > 0 {
			operand[a]--
			continue
		}
		words = append(words, " "+tool.QuoteShell(a))
	}
	d.switches = strings.Join(words, "")
}

// input is one of the two things that are compared.
type input struct {
	name    string
	attr    vfs.Attr
	missing bool // treated as empty: -N
	stdin   bool
	err     error
}

func (d *differ) stat(name string) input {
	in := input{name: name}
	if name == "-" {
		in.stdin = true
		if f, err := d.t.File(0); err == nil {
			in.attr, _ = f.Attr()
		}
		if in.attr.Mode&vfs.ModeType == 0 {
			in.attr.Mode = vfs.ModeFIFO
		}
		if !in.attr.Mode.IsRegular() {
			in.attr.Mtime = d.t.Now()
		}
		return in
	}
	stat := d.t.Stat
	if d.noDereference {
		stat = d.t.Lstat
	}
	in.attr, in.err = stat(name)
	return in
}

// operands compares two operands; a file against a directory is compared with the file of that name in it.
func (d *differ) operands(x, y string) int {
	a, b := d.stat(x), d.stat(y)
	if a.err == nil && b.err == nil && a.attr.Mode.IsDir() != b.attr.Mode.IsDir() {
		switch {
		case a.attr.Mode.IsDir() && b.stdin || b.attr.Mode.IsDir() && a.stdin:
			d.t.Fatal(2, "cannot compare '-' to a directory")
		case a.attr.Mode.IsDir():
			a = d.stat(joinName(x, baseName(y)))
		default:
			b = d.stat(joinName(y, baseName(x)))
		}
	}
	if a.err != nil && b.err == nil && (d.newFile || d.oneWay) && tool.IsNotExist(a.err) {
		a.err, a.missing, a.attr.Mode = nil, true, b.attr.Mode
	}
	if b.err != nil && a.err == nil && d.newFile && tool.IsNotExist(b.err) {
		b.err, b.missing, b.attr.Mode = nil, true, a.attr.Mode
	}
	return d.compareInputs(a, b, false)
}

func joinName(dir, name string) string {
	if dir == "" {
		return name
	}
	return strings.TrimRight(dir, "/") + "/" + name
}

func baseName(name string) string {
	name = strings.TrimRight(name, "/")
	return name[strings.LastIndexByte(name, '/')+1:]
}

// read returns a file's bytes.
func (d *differ) read(in input) ([]byte, error) {
	if in.missing {
		return nil, nil
	}
	if in.stdin {
		if !d.stdinRead {
			b, err := readAll(d.t.Stdin())
			if err != nil {
				return nil, err
			}
			d.stdin, d.stdinRead = b, true
		}
		return d.stdin, nil
	}
	if in.attr.Mode.IsSymlink() {
		s, err := d.t.Readlink(in.name)
		return []byte(s), err
	}
	f, err := d.t.OpenFile(in.name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f)
}

// readAll reads a file of a size that can be compared.
func readAll(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = syscall.EFBIG
	}
	return b, err
}

// compareInputs compares two files or directories that were looked at. nested is true below a directory.
func (d *differ) compareInputs(a, b input, nested bool) int {
	t := d.t
	status := 0
	for _, in := range []input{a, b} {
		if in.err != nil {
			t.WarnFile(in.name, in.err)
			status = 2
		}
	}
	if status != 0 {
		return status
	}
	aDir, bDir := a.attr.Mode.IsDir(), b.attr.Mode.IsDir()
	switch {
	case aDir && bDir:
		return d.directories(a, b, nested)
	case aDir || bDir || nested && d.kinds(a, b):
		x, y := d.names(a, b)
		t.Out.WriteString("File " + x + " is a " + kindOf(a.attr.Mode) + " while file " + y + " is a " + kindOf(b.attr.Mode) + "\n")
		return 1
	case a.attr.Mode.IsSymlink() && b.attr.Mode.IsSymlink():
		x, err1 := t.Readlink(a.name)
		y, err2 := t.Readlink(b.name)
		if errors.Join(err1, err2) != nil {
			t.WarnFile(a.name, errors.Join(err1, err2))
			return 2
		}
		if x != y {
			t.Out.WriteString("Symbolic links " + d.word(a) + " and " + d.word(b) + " differ\n")
			return 1
		}
		return d.same(a, b)
	}
	if !a.missing && !b.missing && a.stdin && b.stdin {
		return d.same(a, b)
	}
	x, err := d.read(a)
	if err != nil {
		t.WarnFile(a.name, err)
		return 2
	}
	y, err := d.read(b)
	if err != nil {
		t.WarnFile(b.name, err)
		return 2
	}
	if bytes.Equal(x, y) && d.style != 'y' && d.style != 'D' {
		return d.same(a, b)
	}
	return d.contents(a, b, x, y, nested)
}

// kinds reports whether two files are of kinds that can't be compared.
func (d *differ) kinds(a, b input) bool {
	x, y := a.attr.Mode&vfs.ModeType, b.attr.Mode&vfs.ModeType
	return x != y && (x != vfs.ModeRegular || y != vfs.ModeRegular)
}

func kindOf(m vfs.Mode) string {
	switch m & vfs.ModeType {
	case vfs.ModeDir:
		return "directory"
	case vfs.ModeSymlink:
		return "symbolic link"
	case vfs.ModeFIFO:
		return "fifo"
	case vfs.ModeChar:
		return "character special file"
	case vfs.ModeBlock:
		return "block special file"
	case vfs.ModeSocket:
		return "socket"
	}
	return "regular file"
}

func (d *differ) same(a, b input) int {
	if d.identical {
		x, y := d.names(a, b)
		d.t.Out.WriteString("Files " + x + " and " + y + " are identical\n")
	}
	return 0
}

// word is a file's name in a message.
func (d *differ) word(in input) string { return quoteName(in.name) }

func (d *differ) names(a, b input) (x, y string) {
	x, y = quoteName(a.name), quoteName(b.name)
	if len(d.labels) > 0 {
		x = d.labels[0]
	}
	if len(d.labels) > 1 {
		y = d.labels[1]
	}
	return x, y
}

// contents compares what two files hold.
func (d *differ) contents(a, b input, x, y []byte, nested bool) int {
	t := d.t
	nameA, nameB := d.names(a, b)
	const sniff = 32 << 10
	if !d.asText && (bytes.IndexByte(x[:min(len(x), sniff)], 0) >= 0 || bytes.IndexByte(y[:min(len(y), sniff)], 0) >= 0) {
		if bytes.Equal(x, y) {
			return d.same(a, b)
		}
		if d.brief {
			t.Out.WriteString("Files " + nameA + " and " + nameB + " differ\n")
		} else {
			t.Out.WriteString("Binary files " + nameA + " and " + nameB + " differ\n")
		}
		return 1
	}
	if d.brief && !d.ignoring.any() && !d.blank && len(d.ignoreRE) == 0 && !d.stripCR {
		if bytes.Equal(x, y) {
			return d.same(a, b)
		}
		t.Out.WriteString("Files " + nameA + " and " + nameB + " differ\n")
		return 1
	}
	if d.stripCR {
		x, y = bytes.ReplaceAll(x, []byte("\r\n"), []byte("\n")), bytes.ReplaceAll(y, []byte("\r\n"), []byte("\n"))
	}
	p := &pair{d: d, a: newText(x), b: newText(y), inputs: [2]input{a, b}, names: [2]string{nameA, nameB}}
	p.changes = script(p.a, p.b, &d.ignoring, d.minimal, d.horizon, t.Check)
	differ := len(p.changes) > 0
	if d.blank || len(d.ignoreRE) > 0 {
		differ = false
		for i := range p.changes {
			c := &p.changes[i]
			c.ignore = p.ignorable(c)
			differ = differ || !c.ignore
		}
	}
	if d.brief {
		if !differ {
			return d.same(a, b)
		}
		t.Out.WriteString("Files " + nameA + " and " + nameB + " differ\n")
		return 1
	}
	if !differ && d.identical {
		d.same(a, b)
	}
	if differ || d.style == 'y' || d.style == 'D' {
		if nested {
			d.header(a, b)
		}
		p.print()
		if (d.style == 'e' || d.style == 'f') && (p.a.partial || p.b.partial) {
			return 2 // the script can't tell
		}
	}
	if differ {
		return 1
	}
	return 0
}

// header is the line before a difference of two files in directories.
func (d *differ) header(a, b input) {
	x, y := d.names(a, b)
	d.t.Out.WriteString("diff" + d.switches + " " + x + " " + y + "\n")
}

// quoteName quotes a name for a header or a message only if it has to be: as a C string.
func quoteName(name string) string {
	for _, c := range []byte(name) {
		if c <= ' ' && c != ' ' || c == '"' || c == '\\' || c == 0x7f {
			return tool.QuoteC(name)
		}
	}
	return name
}

// stamp is a time as headers show it.
func (d *differ) stamp(t time.Time) string {
	return t.In(d.t.Location()).Format("2006-01-02 15:04:05.000000000 -0700")
}
