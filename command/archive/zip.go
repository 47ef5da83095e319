package archive

import (
	"archive/zip"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// maxWhole is up to what size a file is compressed in memory, to be stored if that doesn't make it smaller. Larger ones
// are always compressed, on their way.
const maxWhole = 4 << 20

// zipper is a running zip.
type zipper struct {
	above                                      [][2]uint64 // the directories that are being added
	t                                          *tool.T
	recurse, junk, quiet, move, links, noDirs  bool
	update, freshen, remove, fromStdin, verify bool
	verbose, show, comment, anywhere, bare     bool
	level                                      int
	packed                                     []string // suffixes of files that are stored as they are
	before, after                              time.Time
	sizeIn, sizeOut                            uint64
	archive                                    string
	names, exclude, include                    []string
	old                                        *zipInput
	files                                      []*zipEntry
	byName                                     map[string]*zipEntry
	w                                          *zip.Writer
	archiveID                                  [2]uint64
	newComment                                 string
	status                                     int
	matched                                    bool // a name was there, though perhaps left out by -x or -i
}

// zipEntry is a member of the archive to be; it comes from the old archive, from a file or, newer, from a file in place
// of an old member.
type zipEntry struct {
	name, path string
	old        *zip.File
	at         vfs.Attr
	fresh      bool
}

var zipLong = map[string]string{"recurse-paths": "r", "junk-paths": "j", "quiet": "q", "update": "u", "delete": "d", "move": "m", "exclude": "x", "include": "i", "names-stdin": "@", "symlinks": "y", "freshen": "f", "no-dir-entries": "D", "test": "T", "no-extra": "X", "verbose": "v", "show-files": "\x01", "archive-comment": "z", "recurse-patterns": "R",
	"suffixes": "n", "encrypt": "e", "password": "P", "from-date": "t", "before-date": "\x02", "latest-time": "o", "adjust-sfx": "A"}

// Zip makes and changes zip archives.
func Zip(t *tool.T) int {
	z := &zipper{t: t, level: 6, byName: map[string]*zipEntry{}}
	z.arguments(t.Args()[1:])
	if z.archive == "" {
		z.fail(16, "Invalid command arguments", "nothing to select from")
	}
	z.openOld()
	z.collect()
	if z.remove {
		z.removeMembers()
	} else if (z.update || z.freshen) && len(z.names) > 0 && !z.anyFresh() {
		return 12
	}
	switch {
	case z.remove, z.anyFresh(), z.show && z.old != nil:
	case len(z.exclude)+len(z.include) > 0 && z.matched:
		z.files = nil
	default:
		z.nothing()
	}
	if z.show {
		return z.showFiles()
	}
	if z.comment {
		z.readComment()
	}
	z.write()
	if z.verbose && !z.quiet && !z.remove {
		z.say("total bytes=%d, compressed=%d -> %d%% savings\n", z.sizeIn, z.sizeOut, zipRatio(z.sizeIn, z.sizeOut))
	}
	return z.status
}

// fail ends the command as zip does.
func (z *zipper) fail(status int, what, detail string) {
	z.t.Out.Flush()
	if what != "Invalid command arguments" || !strings.HasPrefix(detail, "cannot repeat") {
		fmt.Fprintln(z.messages())
	}
	fmt.Fprintf(z.messages(), "zip error: %s (%s)\n", what, detail)
	z.t.Exit(status)
}

func (z *zipper) nothing() {
	if z.recurse && len(z.names) > 0 && !z.matched && !z.remove {
		z.fail(12, "Nothing to do!", "try: zip -r "+z.archive+" . -i "+strings.Join(z.names, " "))
	}
	z.fail(12, "Nothing to do!", z.archive)
}

// messages is where zip speaks: standard output, unless the archive goes there.
func (z *zipper) messages() io.Writer {
	if z.archive == "-" {
		return z.t.Stderr()
	}
	return z.t.Out
}

func (z *zipper) say(format string, args ...any) {
	if !z.quiet {
		fmt.Fprintf(z.messages(), format, args...)
	}
}

func (z *zipper) warn(format string, args ...any) {
	fmt.Fprintf(z.messages(), "\tzip warning: "+format+"\n", args...)
}

// arguments reads the command line: options anywhere, -x and -i with lists that end at the next option or "@".
func (z *zipper) arguments(args []string) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		letters := ""
		switch {
		case a == "--":
			z.names = append(z.names, args[i+1:]...)
			i = len(args)
		case strings.HasPrefix(a, "--"):
			if letters = zipLong[a[2:]]; letters == "" {
				z.fail(16, "Invalid command arguments", fmt.Sprintf("long option '%s' not supported", a[2:]))
			}
		case len(a) > 1 && a[0] == '-':
			letters = a[1:]
		case z.archive == "":
			z.archive = a
		default:
			z.names = append(z.names, a)
		}
		if a == "-" && z.archive == "" {
			z.archive = a
		}
		for j := 0; j < len(letters); j++ {
			c := letters[j]
			if c == 's' && strings.HasPrefix(letters[j:], "sf") {
				c, j = '\x01', j+1
			} else if c == 't' && strings.HasPrefix(letters[j:], "tt") {
				c, j = '\x02', j+1
			}
			if c == 'x' || c == 'i' {
				i = z.patterns(c, letters[j+1:], args, i)
				break
			} else if strings.IndexByte("ntbP\x02", c) >= 0 {
				arg := strings.TrimPrefix(letters[j+1:], "=")
				if arg == "" {
					if i++; i >= len(args) {
						z.fail(16, "Invalid command arguments", fmt.Sprintf("option '%c' requires a value", c))
					}
					arg = args[i]
				}
				z.valued(c, arg)
				break
			} else if !z.letter(c) {
				z.fail(16, "Invalid command arguments", fmt.Sprintf("short option '%c' not supported", c))
			}
		}
	}
	if z.archive != "-" && z.archive != "" && !strings.Contains(path.Base(z.archive), ".") {
		z.archive += ".zip"
	}
	if z.fromStdin {
		lines := tool.NewLines(z.t.Stdin(), '\n')
		for line, ok := lines.Next(); ok && len(z.names) < maxNames; line, ok = lines.Next() {
			if len(line) > 0 {
				z.names = append(z.names, string(line))
			}
		}
	}
}

func (z *zipper) patterns(c byte, first string, args []string, i int) int {
	list := &z.exclude
	if c == 'i' {
		list = &z.include
	}
	if first = strings.TrimPrefix(first, "="); first != "" {
		*list = append(*list, first)
		return i
	}
	for i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
		i++
		if args[i] == "@" {
			break
		}
		*list = append(*list, args[i])
	}
	return i
}

func (z *zipper) letter(c byte) bool {
	switch c {
	case 'r':
		z.recurse = true
	case 'j':
		z.junk = true
	case 'q':
		z.quiet = true
	case 'u':
		z.update = true
	case 'f':
		z.freshen = true
	case 'd':
		z.remove = true
	case 'm':
		z.move = true
	case 'y':
		z.links = true
	case 'D':
		z.noDirs = true
	case 'T':
		z.verify = true
	case '@':
		z.fromStdin = true
	case 'X':
		z.bare = true
	case 'v':
		z.verbose = true
	case 'z':
		z.comment = true
	case 'R':
		z.recurse, z.anywhere = true, true
	case '\x01':
		z.show = true
	case 'e':
		z.fail(16, "Invalid command arguments", "encryption is not supported: its cipher protects nothing, use gpg or openssl")
	case 'o', 'A', 'l', 'S', 'g':
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		z.level = int(c - '0')
	default:
		return false
	}
	return true
}

// valued is an option with a value.
func (z *zipper) valued(c byte, arg string) {
	switch c {
	case 'n':
		z.packed = append(z.packed, strings.FieldsFunc(arg, func(r rune) bool { return r == ':' || r == ';' })...)
	case 'P':
		z.letter('e')
	case 't', '\x02':
		var when time.Time
		var err error
		for _, layout := range []string{"01022006", "2006-01-02"} {
			if when, err = time.ParseInLocation(layout, arg, z.t.Location()); err == nil {
				break
			}
		}
		if err != nil {
			z.fail(16, "Invalid command arguments", "invalid date entered for -t option - use mmddyyyy or yyyy-mm-dd")
		}
		if c == 't' {
			z.after = when
		} else {
			z.before = when
		}
	}
}

// readComment asks for a comment of the archive; it ends with a line that is a full stop.
func (z *zipper) readComment() {
	fmt.Fprint(z.messages(), "enter new zip file comment (end with .):\n")
	lines := tool.NewLines(z.t.Stdin(), '\n')
	var kept []string
	size := 0
	for line, ok := lines.Next(); ok && string(line) != "." && size < 60000; line, ok = lines.Next() {
		kept = append(kept, string(line))
		size += len(line) + 2
	}
	z.newComment = strings.Join(kept, "\r\n")
}

// showFiles is -sf: what would be done.
func (z *zipper) showFiles() int {
	head := "Archive contains:"
	if len(z.names) > 0 {
		head = "Would Add/Update:"
		if z.remove {
			head = "Would Delete:"
		} else if z.freshen {
			head = "Would Freshen:"
		} else if z.update {
			head = "Would Update/Add:"
		}
	}
	fmt.Fprintln(z.messages(), head)
	n, size := 0, uint64(0)
	for _, e := range z.files {
		if len(z.names) > 0 && !e.fresh {
			continue
		}
		n++
		if e.fresh {
			size += uint64(e.at.Size)
		} else {
			size += e.old.UncompressedSize64
		}
		fmt.Fprintf(z.messages(), "  %s\n", e.name)
	}
	fmt.Fprintf(z.messages(), "Total %d entries (%d bytes)\n", n, size)
	return 0
}

// openOld reads the archive that there is.
func (z *zipper) openOld() {
	if z.archive == "-" {
		return
	}
	in, err := z.t.OpenFile(z.archive)
	if err != nil {
		if z.update || z.freshen || z.remove {
			z.warn("%s not found or empty", z.archive)
		}
		return
	}
	at, err := in.Attr()
	z.archiveID = [2]uint64{at.Dev, uint64(at.Ino)}
	z.old = &zipInput{t: z.t, name: z.archive, in: in, err: err}
	if err == nil && at.Size > 0 {
		z.old.read(at.Size)
	}
	if z.old.err != nil {
		z.warn("missing end signature--probably not a zip file (did you")
		z.warn("remember to use binary mode when you transferred it?)")
		z.warn("(if you are trying to read a damaged archive try -F)")
		z.fail(3, "Zip file structure invalid", z.archive)
	}
	if z.old.r != nil {
		for _, f := range z.old.r.File {
			z.add(&zipEntry{name: f.Name, old: f})
		}
	}
}

func (z *zipper) add(e *zipEntry) {
	z.files = append(z.files, e)
	z.byName[e.name] = e
}

func (z *zipper) anyFresh() bool {
	return slices.ContainsFunc(z.files, func(e *zipEntry) bool { return e.fresh })
}

func (z *zipper) collect() {
	if z.remove {
		return
	}
	if z.freshen && len(z.names) == 0 {
		for _, e := range z.files {
			z.names = append(z.names, e.name)
		}
	}
	if z.anywhere {
		z.include, z.names = append(z.include, z.names...), []string{"."}
	}
	for _, n := range z.names {
		z.scan(n, true, 0)
	}
}

// scan takes a file, and with -r what is below it, into the archive.
func (z *zipper) scan(p string, top bool, depth int) {
	t := z.t
	if t.Step(1) != nil {
		t.Check()
	}
	if p == "-" && top {
		z.take("-", p, vfs.Attr{Mode: 0o010600, Mtime: t.Now()})
		return
	}
	at, err := t.Lstat(p)
	if err == nil && at.Mode.IsSymlink() && !z.links {
		at, err = t.Stat(p)
	}
	if err != nil || depth > 1000 {
		if !z.freshen && !z.quiet {
			z.warn("name not matched: %s", p)
		}
		return
	}
	z.matched = true
	id := [2]uint64{at.Dev, uint64(at.Ino)}
	if at.Mode.IsDir() && slices.Contains(z.above, id) {
		z.warn("leads back to a directory that it is in: %s", p)
		return
	}
	name := memberName(p)
	if z.junk {
		name = path.Base(name)
	}
	if at.Mode.IsDir() {
		if name != "." && name != ".." && name != "" && !z.noDirs && !z.junk {
			z.take(name+"/", p, at)
		}
		if z.recurse {
			z.above = append(z.above, id)
			z.below(p, depth)
			z.above = z.above[:len(z.above)-1]
		}
		return
	}
	if at.Mode.IsRegular() && [2]uint64{at.Dev, uint64(at.Ino)} == z.archiveID || !at.Mode.IsRegular() && !at.Mode.IsSymlink() {
		return
	}
	z.take(name, p, at)
}

func (z *zipper) below(dir string, depth int) {
	list, err := z.t.ReadDir(dir)
	if err != nil {
		z.warn("could not open for reading: %s", dir)
		z.status = 18
		return
	}
	slices.SortFunc(list, func(a, b vfs.DirEntry) int { return strings.Compare(a.Name, b.Name) })
	for _, e := range list {
		z.scan(strings.TrimSuffix(dir, "/")+"/"+e.Name, false, depth+1)
	}
}

// memberName is what an archive calls a path: without what leads to the root or upwards at its beginning.
func memberName(p string) string {
	p = strings.TrimRight(p, "/")
	for {
		switch {
		case strings.HasPrefix(p, "/"):
			p = strings.TrimLeft(p, "/")
		case strings.HasPrefix(p, "./"), strings.HasPrefix(p, "../"):
			p = p[strings.IndexByte(p, '/')+1:]
		default:
			return p
		}
	}
}

// chosen applies -x and -i.
func (z *zipper) chosen(name string) bool {
	match := func(p string) bool { return p == name || tool.Glob(p, name, 0) }
	return !slices.ContainsFunc(z.exclude, match) && (len(z.include) == 0 || slices.ContainsFunc(z.include, match))
}

func (z *zipper) take(name, p string, at vfs.Attr) {
	if !z.chosen(name) || !z.after.IsZero() && at.Mtime.Before(z.after) || !z.before.IsZero() && !at.Mtime.Before(z.before) {
		return
	}
	e := z.byName[name]
	switch {
	case e == nil && z.freshen:
		return
	case e == nil:
		if len(z.files) >= maxNames {
			z.fail(4, "Out of memory", "too many names")
		}
		e = &zipEntry{name: name}
		z.add(e)
	case e.fresh:
		if e.path != p {
			first, second := e.path, p
			if !z.junk && len(first) < len(second) { // sorted by name, the longer one comes first
				first, second = second, first
			}
			z.warn("  first full name: %s\n\n                      second full name: %s\n                     name in zip file repeated: %s%s", first, second, name,
				map[bool]string{true: "\n                     this may be a result of using -j"}[z.junk])
			z.fail(16, "Invalid command arguments", "cannot repeat names in zip file")
		}
		return
	case (z.update || z.freshen) && at.Mtime.Unix() <= zipTime(z.t, e.old).Unix():
		return
	}
	e.path, e.at, e.fresh = p, at, true
}

// removeMembers is -d.
func (z *zipper) removeMembers() {
	left := z.files[:0:0]
	used := make([]bool, len(z.names))
	for _, e := range z.files {
		gone := false
		for i, n := range z.names {
			if z.t.Step(1) != nil {
				z.t.Check()
			}
			if (n == e.name || tool.Glob(n, e.name, 0)) && z.chosen(e.name) {
				used[i], gone = true, true
			}
		}
		if !gone {
			left = append(left, e)
		}
	}
	for i, ok := range used {
		if !ok && z.old != nil {
			z.warn("name not matched: %s", z.names[i])
		}
	}
	if len(left) == len(z.files) {
		z.nothing()
	}
	keep := map[*zipEntry]bool{}
	for _, e := range left {
		keep[e] = true
	}
	for _, e := range z.files {
		if !keep[e] {
			z.say("deleting: %s\n", e.name)
		}
	}
	z.files = left
}

// write makes the archive anew beside the old one, and puts it in its place.
func (z *zipper) write() {
	t := z.t
	if z.archive == "-" {
		z.members(t.Out)
		return
	}
	old := t.Umask(0)
	t.Umask(old)
	perm := 0o666 &^ old
	if z.old != nil {
		if at, err := z.old.in.Attr(); err == nil {
			perm = at.Mode & 0o777
		}
	}
	if len(z.files) == 0 {
		z.warn("zip file empty")
	}
	name, f, err := t.TempFile(path.Dir(z.archive), "zi", 0o600)
	if err != nil {
		fmt.Fprintf(z.messages(), "zip I/O error: %s", tool.Strerror(err))
		z.fail(15, "Could not create output file", z.archive)
	}
	done := false
	defer func() {
		if !done {
			t.Unlink(name)
		}
	}()
	b := tool.NewFileWriter(f)
	z.members(b)
	if err = b.Flush(); err == nil {
		f.SetAttr(vfs.SetAttr{Mode: &perm})
		err = f.Close()
	}
	if err == nil {
		err = t.Rename(name, z.archive, 0)
	}
	if err != nil {
		z.fail(14, "Output file write failure", tool.Strerror(err))
	}
	done = true
	if z.verify {
		fmt.Fprintf(t.Out, "test of %s OK\n", z.archive)
	}
	z.removeFiles()
}
