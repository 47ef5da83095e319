package archive

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	keyCpioQuiet = tool.KeyOwn + 400 + iota
	keyCpioNoAbs
	keyCpioAbs
	keyCpioSparse
	keyCpioToStdout
	keyCpioNoPreserve
)

var cpioSpec = tool.Spec{
	Usage: []string{"-o [OPTION...] < name-list [> archive]", "-i [OPTION...] [pattern...] [< archive]", "-p [OPTION...] destination-directory < name-list"},
	About: "Copy files to and from archives.",
	Options: []getopt.Option{
		{Short: 'o', Long: "create", Help: "Create the archive"}, {Short: 'i', Long: "extract", Help: "Extract files from an archive"}, {Short: 'p', Long: "pass-through", Help: "Run in copy-pass mode"}, {Short: 't', Long: "list", Help: "Print a table of contents of the input"},
		{Short: '0', Long: "null", Help: "Filenames in the list are delimited by null characters instead of newlines"}, {Short: 'a', Long: "reset-access-time"}, {Short: 'A', Long: "append"}, {Short: 'B'}, {Short: 'b', Long: "swap"}, {Short: 'c', Help: "Use the old portable (ASCII) archive format"},
		{Short: 'C', Long: "io-size", Arg: getopt.Required}, {Short: 'd', Long: "make-directories", Help: "Create leading directories where needed"}, {Short: 'D', Long: "directory", Arg: getopt.Required, Name: "DIR", Help: "Change to directory DIR"}, {Short: 'E', Long: "pattern-file", Arg: getopt.Required, Name: "FILE", Help: "Read additional patterns from FILE"},
		{Short: 'f', Long: "nonmatching", Help: "Only copy files that do not match any of the given patterns"}, {Short: 'F', Long: "file", Arg: getopt.Required, Name: "FILE", Help: "Use this FILE instead of standard input or output"}, {Short: 'O', Arg: getopt.Required}, {Short: 'I', Arg: getopt.Required},
		{Short: 'H', Long: "format", Arg: getopt.Required, Name: "FORMAT", Help: "Use given archive FORMAT: newc, odc, bin or crc"}, {Short: 'k'}, {Short: 'l', Long: "link", Help: "Link files instead of copying them, when possible"}, {Short: 'L', Long: "dereference", Help: "Dereference symbolic links"}, {Short: 'm', Long: "preserve-modification-time", Help: "Retain previous file modification times when creating files"},
		{Short: 'M', Long: "message", Arg: getopt.Required}, {Short: 'n', Long: "numeric-uid-gid", Help: "In the verbose table of contents listing, show numeric UID and GID"}, {Short: 'R', Long: "owner", Arg: getopt.Required}, {Short: 's', Long: "swap-bytes"}, {Short: 'S', Long: "swap-halfwords"},
		{Short: 'u', Long: "unconditional", Help: "Replace all files unconditionally"}, {Short: 'v', Long: "verbose", Help: "Verbosely list the files processed"}, {Short: 'V', Long: "dot", Help: "Print a \".\" for each file processed"},
		{Long: "quiet", Key: keyCpioQuiet, Help: "Do not print the number of blocks copied"}, {Long: "no-absolute-filenames", Key: keyCpioNoAbs}, {Long: "absolute-filenames", Key: keyCpioAbs}, {Long: "sparse", Key: keyCpioSparse}, {Long: "to-stdout", Key: keyCpioToStdout, Help: "Extract files to standard output"}, {Long: "no-preserve-owner", Key: keyCpioNoPreserve},
	},
	Package: "GNU cpio) 2.13", Fail: 2,
}

// cpio is a running cpio.
type cpio struct {
	t                                       *tool.T
	mode                                    byte // o, i, p
	list, null, dirs, follow, times, linked bool
	replace, verbose, dots, quiet, not      bool
	numeric, toOut                          bool
	format, file                            string
	patterns                                []string
	out                                     io.Writer
	written                                 int64
	read                                    int64
	status                                  int
	inodes                                  map[[2]uint64]uint32 // numbers given to files, which tell links
	held                                    map[[2]uint64][]cpioEntry
	named                                   []string            // what to archive, instead of the list on standard input
	rename                                  func(string) string // what names become
	made                                    map[string]string   // where the data of files with several links was extracted
}

// cpioEntry is a file with its place in the tree.
type cpioEntry struct {
	name string
	at   vfs.Attr
	size int64
	ino  uint32
	link string // target of a symbolic link
	id   [2]uint64
}

// Cpio copies files to and from archives.
func Cpio(t *tool.T) int {
	c := &cpio{t: t, format: "bin", inodes: map[[2]uint64]uint32{}, held: map[[2]uint64][]cpioEntry{}, made: map[string]string{}}
	t.FailStatus(2)
	opts, operands := t.Parse(&cpioSpec)
	dir := ""
	for _, o := range opts {
		switch o.Key {
		case 'D':
			dir = o.Arg
		case 'H':
			c.format = strings.ToLower(o.Arg)
		case 'E':
			text, err := t.ReadFile(o.Arg, 16<<20)
			if err != nil {
				t.Fatal(2, "%s: %s", o.Arg, tool.Strerror(err))
			}
			c.patterns = append(c.patterns, strings.Fields(string(text))...)
		default:
			c.option(o)
		}
	}
	if c.mode == 0 && c.list {
		c.mode = 'i'
	}
	switch c.format {
	case "bin", "odc", "newc", "crc":
	case "ustar", "tar":
		t.Fatal(2, "archive format %s: use tar", tool.Quote(c.format))
	default:
		c.usage("invalid archive format `%s'; valid formats are:\ncrc newc odc bin ustar tar (all-caps also recognized)", c.format)
	}
	if c.mode == 0 {
		c.usage("You must specify one of -oipt options.")
	}
	if dir != "" {
		if err := t.Chdir(dir); err != nil {
			t.Fatal(2, "cannot change to directory %s: %s", tool.QuoteAF(dir), tool.Strerror(err))
		}
	}
	switch c.mode {
	case 'o':
		if len(operands) > 0 {
			c.usage("Too many arguments")
		}
		c.create()
	case 'p':
		if len(operands) == 0 {
			c.usage("Not enough arguments")
		}
		c.pass(operands[0])
	default:
		c.patterns = append(c.patterns, operands...)
		c.extract()
	}
	return c.status
}

func (c *cpio) option(o getopt.Opt) {
	switch o.Key {
	case 'o', 'i', 'p':
		if c.mode != 0 && c.mode != byte(o.Key) {
			c.usage("Mode already defined")
		}
		c.mode = byte(o.Key)
	case 't':
		c.list = true
	case '0':
		c.null = true
	case 'c':
		c.format = "odc"
	case 'd':
		c.dirs = true
	case 'f':
		c.not = true
	case 'F', 'O', 'I':
		c.file = o.Arg
	case 'l':
		c.linked = true
	case 'L':
		c.follow = true
	case 'm':
		c.times = true
	case 'n':
		c.numeric = true
	case 'u':
		c.replace = true
	case 'v':
		c.verbose = true
	case 'V':
		c.dots = true
	case keyCpioQuiet:
		c.quiet = true
	case keyCpioToStdout:
		c.toOut = true
	}
}

// usage ends the command after a mistake in its arguments.
func (c *cpio) usage(format string, args ...any) {
	c.t.Warn(format, args...)
	fmt.Fprintf(c.t.Stderr(), "Try '%s --help' or '%s --usage' for more information.\n", c.t.Name, c.t.Name)
	c.t.Exit(2)
}

// names calls f for each name of the list on standard input.
func (c *cpio) names(f func(string)) {
	for _, name := range c.named {
		f(name)
	}
	if c.named != nil {
		return
	}
	delim := byte('\n')
	if c.null {
		delim = 0
	}
	l := tool.NewLines(c.t.Stdin(), delim)
	for line, ok := l.Next(); ok; line, ok = l.Next() {
		c.t.Check()
		if len(line) > 0 {
			f(string(line))
		}
	}
}

func (c *cpio) warn(format string, args ...any) {
	c.t.Warn(format, args...)
	c.status = 2
}

// say names a file that was processed.
func (c *cpio) say(name string) {
	if c.verbose {
		fmt.Fprintln(c.t.Stderr(), name)
	} else if c.dots {
		io.WriteString(c.t.Stderr(), ".")
	}
}

func (c *cpio) done(bytes int64) {
	if c.dots {
		io.WriteString(c.t.Stderr(), "\n")
	}
	if !c.quiet {
		n := (bytes + 511) / 512
		s := "s"
		if n == 1 {
			s = ""
		}
		fmt.Fprintf(c.t.Stderr(), "%d block%s\n", n, s)
	}
}

// Write counts what the archive gets.
func (c *cpio) Write(b []byte) (int, error) {
	n, err := c.out.Write(b)
	c.written += int64(n)
	return n, err
}

// create is -o.
func (c *cpio) create() {
	t := c.t
	c.out = t.Out
	if c.file != "" {
		f, err := t.Create(c.file)
		if err != nil {
			t.Fatal(2, "%s: Cannot open: %s", c.file, tool.Strerror(err))
		}
		w := tool.NewFileWriter(f)
		defer func() {
			w.Flush()
			f.Close()
		}()
		c.out = w
	}
	c.names(c.addName)
	for _, list := range c.held { // links whose others weren't named
		c.addLinks(list)
	}
	c.header(cpioEntry{name: "TRAILER!!!", at: vfs.Attr{Nlink: 1}})
	c.Write(make([]byte, (512-c.written%512)%512))
	c.done(c.written)
}

func (c *cpio) look(name string) (vfs.Attr, error) {
	if c.follow {
		return c.t.Stat(name)
	}
	return c.t.Lstat(name)
}

// addName adds a file. In the newer formats the data of a file with several links is with the last of them.
func (c *cpio) addName(name string) {
	at, err := c.look(name)
	if err != nil {
		c.warn("%s: Cannot stat: %s", name, tool.Strerror(err))
		return
	}
	e := cpioEntry{name: name, at: at, id: [2]uint64{at.Dev, uint64(at.Ino)}}
	for strings.HasPrefix(e.name, "./") {
		e.name = strings.TrimLeft(e.name[2:], "/")
	}
	if e.name == "" {
		e.name = "."
	}
	if c.rename != nil {
		if e.name = c.rename(e.name); e.name == "" {
			return
		}
	}
	if at.Mode.IsSymlink() {
		if e.link, err = c.t.Readlink(name); err != nil {
			c.warn("%s: Cannot readlink: %s", name, tool.Strerror(err))
			return
		}
	}
	if at.Mode.IsRegular() && at.Nlink > 1 && (c.format == "newc" || c.format == "crc") {
		list := append(c.held[e.id], e)
		if c.held[e.id] = list; len(list) < int(at.Nlink) {
			return
		}
		c.addLinks(list)
		delete(c.held, e.id)
		return
	}
	c.add(e, name)
}

func (c *cpio) addLinks(list []cpioEntry) {
	for i, e := range list {
		if i < len(list)-1 {
			e.ino = c.number(e.id)
			c.header(e)
			c.say(e.name)
			continue
		}
		c.add(e, e.name)
	}
}

func (c *cpio) number(id [2]uint64) uint32 {
	n, ok := c.inodes[id]
	if !ok {
		n = uint32(len(c.inodes) + 1)
		c.inodes[id] = n
	}
	return n
}

// add writes a file's header and data.
func (c *cpio) add(e cpioEntry, file string) {
	e.ino = c.number(e.id)
	switch {
	case e.at.Mode.IsSymlink():
		e.size = int64(len(e.link))
		c.header(e)
		io.WriteString(c, e.link)
	case e.at.Mode.IsRegular():
		in, err := c.t.OpenFile(file)
		if err != nil {
			c.warn("%s: Cannot open: %s", file, tool.Strerror(err))
			return
		}
		defer in.Close()
		if e.size = e.at.Size; e.size > 1<<33-1 {
			c.warn("%s: file too large for this format", file)
			return
		}
		c.header(e)
		n, _ := io.Copy(c, io.LimitReader(in, e.size))
		if n < e.size {
			c.warn("File %s shrunk by %d bytes, padding with zeros", file, e.size-n)
			io.CopyN(c, zeroes{}, e.size-n)
		}
	default:
		c.header(e)
	}
	c.align(e.size)
	c.say(file)
}

type zeroes struct{}

func (zeroes) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// align fills up to the format's boundary after n bytes of data.
func (c *cpio) align(n int64) {
	unit := map[string]int64{"bin": 2, "newc": 4, "crc": 4, "odc": 1}[c.format]
	c.Write(make([]byte, (unit-n%unit)%unit))
}

func (c *cpio) header(e cpioEntry) {
	name := e.name + "\x00"
	mtime := max(e.at.Mtime.Unix(), 0)
	if e.at.Mtime.IsZero() {
		mtime = 0
	}
	switch c.format {
	case "newc", "crc":
		magic := "070701"
		if c.format == "crc" {
			magic = "070702"
		}
		fmt.Fprintf(c, "%s%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s", magic, e.ino, uint32(e.at.Mode), e.at.UID, e.at.GID, e.at.Nlink, uint32(mtime), uint32(e.size), 0, 0, 0, 0, len(name), 0, name)
		c.align(int64(110 + len(name)))
	case "odc":
		fmt.Fprintf(c, "070707%06o%06o%06o%06o%06o%06o%06o%011o%06o%011o%s", 1, e.ino&0o777777, uint32(e.at.Mode)&0o777777, e.at.UID&0o777777, e.at.GID&0o777777, e.at.Nlink&0o777777, 0, mtime, len(name), e.size, name)
	default:
		var b bytes.Buffer
		for _, v := range []uint32{0o70707, 1, e.ino, uint32(e.at.Mode), e.at.UID, e.at.GID, e.at.Nlink, 0, uint32(mtime) >> 16, uint32(mtime), uint32(len(name)), uint32(e.size >> 16), uint32(e.size)} {
			binary.Write(&b, binary.LittleEndian, uint16(v))
		}
		c.Write(b.Bytes())
		io.WriteString(c, name)
		c.align(int64(26 + len(name)))
	}
}

// errCpio says that an archive is broken.
var errCpio = errors.New("premature end of archive")

// reader reads an archive.
type cpioReader struct {
	r      *bufio.Reader
	format string
	n      int64
}

func (r *cpioReader) take(n int64) ([]byte, error) {
	if n < 0 || n > 1<<20 {
		return nil, errCpio
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r.r, b); err != nil {
		return nil, errCpio
	}
	r.n += n
	return b, nil
}

// next reads a header.
func (r *cpioReader) next() (e cpioEntry, err error) {
	magic, err := r.r.Peek(6)
	if err != nil && len(magic) < 2 {
		return e, errCpio
	}
	var nameSize, pad int64
	number := func(s []byte, base int) int64 {
		v, perr := strconv.ParseUint(string(s), base, 48)
		if perr != nil {
			err = errCpio
		}
		return int64(v)
	}
	switch {
	case string(magic) == "070701", string(magic) == "070702":
		h, terr := r.take(110)
		if terr != nil {
			return e, terr
		}
		r.format = "newc"
		f := func(i int) int64 { return number(h[6+8*i:14+8*i], 16) }
		e.ino, e.at.Mode, e.at.UID, e.at.GID, e.at.Nlink = uint32(f(0)), vfs.Mode(f(1)), uint32(f(2)), uint32(f(3)), uint32(f(4))
		e.at.Mtime, e.size, nameSize = time.Unix(f(5), 0), f(6), f(11)
		pad = (4 - (110+nameSize)%4) % 4
	case string(magic) == "070707":
		h, terr := r.take(76)
		if terr != nil {
			return e, terr
		}
		r.format = "odc"
		f := func(from, to int) int64 { return number(h[from:to], 8) }
		e.ino, e.at.Mode, e.at.UID, e.at.GID, e.at.Nlink = uint32(f(12, 18)), vfs.Mode(f(18, 24)), uint32(f(24, 30)), uint32(f(30, 36)), uint32(f(36, 42))
		e.at.Mtime, nameSize, e.size = time.Unix(f(48, 59), 0), f(59, 65), f(65, 76)
	case len(magic) >= 2 && (binary.LittleEndian.Uint16(magic) == 0o70707 || binary.BigEndian.Uint16(magic) == 0o70707):
		var order binary.ByteOrder = binary.LittleEndian
		if binary.BigEndian.Uint16(magic) == 0o70707 {
			order = binary.BigEndian
		}
		h, terr := r.take(26)
		if terr != nil {
			return e, terr
		}
		r.format = "bin"
		f := func(i int) uint32 { return uint32(order.Uint16(h[2*i:])) }
		e.ino, e.at.Mode, e.at.UID, e.at.GID, e.at.Nlink = f(2), vfs.Mode(f(3)), f(4), f(5), f(6)
		e.at.Mtime, nameSize, e.size = time.Unix(int64(f(8)<<16|f(9)), 0), int64(f(10)), int64(f(11)<<16|f(12))
		pad = nameSize % 2
	default:
		return e, errCpio
	}
	if err != nil || nameSize < 1 || nameSize > 4097 {
		return e, errCpio
	}
	name, err := r.take(nameSize)
	if err != nil {
		return e, err
	}
	_, err = r.take(pad)
	e.name = string(bytes.TrimRight(name, "\x00"))
	e.at.Size = e.size
	return e, err
}

// data copies an entry's data, and goes over what fills it up.
func (r *cpioReader) data(e cpioEntry, w io.Writer) error {
	n, err := io.CopyN(w, r.r, e.size)
	r.n += n
	if err != nil && n < e.size {
		if errors.Is(err, io.EOF) {
			return errCpio
		}
		io.CopyN(io.Discard, r.r, e.size-n)
	}
	unit := map[string]int64{"bin": 2, "newc": 4, "odc": 1}[r.format]
	_, perr := r.take((unit - e.size%unit) % unit)
	if err == nil {
		err = perr
	}
	return err
}

// extract is -i, and -t.
func (c *cpio) extract() {
	t := c.t
	var in io.Reader = t.Stdin()
	if c.file != "" {
		f, err := t.OpenFile(c.file)
		if err != nil {
			t.Fatal(2, "%s: Cannot open: %s", c.file, tool.Strerror(err))
		}
		defer f.Close()
		in = f
	}
	r := &cpioReader{r: bufio.NewReaderSize(in, 32<<10)}
	var links []cpioEntry
	for {
		t.Check()
		e, err := r.next()
		if err != nil {
			t.Fatal(2, "%s", err)
		}
		if e.name == "TRAILER!!!" {
			break
		}
		w := io.Discard
		if !c.wanted(e.name) {
			if err := r.data(e, w); err != nil {
				t.Fatal(2, "%s", err)
			}
			continue
		}
		if e.at.Mode.IsSymlink() {
			var target bytes.Buffer
			if e.size > maxLinkTarget {
				t.Fatal(2, "%s", errCpio)
			}
			if err := r.data(e, &target); err != nil {
				t.Fatal(2, "%s", err)
			}
			if e.link = target.String(); !c.list {
				links = append(links, e)
				continue
			}
		}
		if c.list {
			c.show(e)
			if !e.at.Mode.IsSymlink() {
				if err := r.data(e, w); err != nil {
					t.Fatal(2, "%s", err)
				}
			}
			continue
		}
		c.place(r, e)
	}
	for _, e := range links { // at the end, so that nothing is written through them
		c.makeLink(e)
	}
	c.done((r.n + 511) / 512 * 512)
}

func (c *cpio) wanted(name string) bool {
	if len(c.patterns) == 0 {
		return true
	}
	for _, p := range c.patterns {
		if tool.Glob(p, name, 0) {
			return !c.not
		}
	}
	return c.not
}

func (c *cpio) show(e cpioEntry) {
	if !c.verbose {
		fmt.Fprintln(c.t.Out, e.name)
		return
	}
	user, group := strconv.Itoa(int(e.at.UID)), strconv.Itoa(int(e.at.GID))
	if !c.numeric {
		a := c.t.Accounts()
		user, group = a.UserName(e.at.UID), a.GroupName(e.at.GID)
	}
	when := e.at.Mtime.In(c.t.Location())
	text := when.Format("Jan _2 15:04")
	if age := c.t.Now().Sub(e.at.Mtime); age > 182*24*time.Hour || age < -time.Hour {
		text = when.Format("Jan _2  2006")
	}
	fmt.Fprintf(c.t.Out, "%s %3d %-8s %-8s %8d %s %s", tool.FormatMode(e.at.Mode)[:10], e.at.Nlink, user, group, e.size, text, e.name)
	if e.link != "" {
		fmt.Fprintf(c.t.Out, " -> %s", e.link)
	}
	c.t.Out.WriteByte('\n')
}

// safe makes a member's name one below the directory; what leads out of it is left out.
func (c *cpio) safe(name string) (string, bool) {
	clean := strings.TrimLeft(name, "/")
	if clean != name {
		c.t.Warn("Removing leading `/' from member names")
	}
	for _, part := range strings.Split(clean, "/") {
		if part == ".." {
			c.warn("%s: member name contains '..', skipped", name)
			return "", false
		}
	}
	if clean = path.Clean(clean); clean == "" {
		clean = "."
	}
	return clean, !strings.Contains(clean, "\x00")
}

// parents makes sure that the directories above a path are there, and that none is a link that leads elsewhere.
func (c *cpio) parents(p string) error {
	dir := path.Dir(p)
	if dir == "." || dir == "/" {
		return nil
	}
	if at, err := c.t.Lstat(dir); err == nil {
		if at.Mode.IsDir() {
			return c.parents(dir)
		}
		return syscall.ENOTDIR
	}
	if !c.dirs {
		return syscall.ENOENT
	}
	if err := c.parents(dir); err != nil {
		return err
	}
	return c.t.Mkdir(dir, 0o777)
}

// place extracts one member.
func (c *cpio) place(r *cpioReader, e cpioEntry) {
	skip := func() {
		if err := r.data(e, io.Discard); err != nil {
			c.t.Fatal(2, "%s", err)
		}
	}
	if c.toOut {
		if err := r.data(e, c.t.Out); err != nil {
			c.t.Fatal(2, "%s", err)
		}
		return
	}
	p, ok := c.safe(e.name)
	if !ok {
		skip()
		return
	}
	if e.at.Mode.IsDir() {
		skip()
		c.makeDir(p, e)
		return
	}
	if !c.free(p, e) {
		skip()
		return
	}
	if err := c.parents(p); err != nil {
		c.warn("%s: Cannot open: %s", e.name, tool.Strerror(err))
		skip()
		return
	}
	key := fmt.Sprint(e.ino)
	first, linked := c.made[key]
	if linked && e.at.Nlink > 1 && e.at.Mode.IsRegular() {
		if e.size > 0 { // the data comes with this one
			c.write(r, e, first)
		} else {
			skip()
		}
		if err := c.t.Link(first, p); err != nil {
			c.warn("cannot link %s to %s: %s", p, first, tool.Strerror(err))
		} else if c.verbose && r.format == "newc" {
			fmt.Fprintf(c.t.Stderr(), "cpio: %s linked to %s\n", p, first)
		} else if c.verbose {
			fmt.Fprintf(c.t.Stderr(), "cpio: %s linked to %s\n", first, p)
		}
		c.say(e.name)
		return
	}
	if c.write(r, e, p) {
		if c.say(e.name); e.at.Nlink > 1 {
			c.made[key] = p
		}
	}
}

// free reports whether a member may take its place, and makes room for it.
func (c *cpio) free(p string, e cpioEntry) bool {
	at, err := c.t.Lstat(p)
	if err != nil {
		return true
	}
	if !c.replace && !at.Mtime.Before(e.at.Mtime) {
		c.t.Warn("%s not created: newer or same age version exists", e.name)
		return false
	}
	if at.Mode.IsDir() {
		err = c.t.Rmdir(p)
	} else {
		err = c.t.Unlink(p)
	}
	if err != nil {
		c.warn("cannot remove current %s: %s", p, tool.Strerror(err))
		return false
	}
	return true
}

func (c *cpio) write(r *cpioReader, e cpioEntry, p string) bool {
	if m := e.at.Mode & vfs.ModeType; !e.at.Mode.IsRegular() && m != 0 {
		if err := c.t.Mknod(p, e.at.Mode, 0); err != nil {
			c.warn("%s: Cannot mknod: %s", p, tool.Strerror(err))
		}
		if err := r.data(e, io.Discard); err != nil {
			c.t.Fatal(2, "%s", err)
		}
		return true
	}
	f, err := c.t.Process.Open(p, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC, 0o600)
	if err != nil {
		c.warn("%s: Cannot open: %s", p, tool.Strerror(err))
		if err := r.data(e, io.Discard); err != nil {
			c.t.Fatal(2, "%s", err)
		}
		return false
	}
	w := tool.NewFileWriter(f)
	err = r.data(e, w)
	if ferr := w.Flush(); err == nil {
		err = ferr
	}
	c.restore(f, e)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if errors.Is(err, errCpio) {
		c.t.Fatal(2, "%s", err)
	} else if err != nil {
		c.warn("%s: Cannot write: %s", p, tool.Strerror(err))
	}
	return true
}

// restore sets a file's mode, and with -m its times.
func (c *cpio) restore(f vfs.File, e cpioEntry) {
	mode := e.at.Mode & 0o7777
	f.SetAttr(vfs.SetAttr{Mode: &mode})
	if c.times {
		f.SetAttr(vfs.SetAttr{Atime: &e.at.Mtime, Mtime: &e.at.Mtime})
	}
}

func (c *cpio) makeDir(p string, e cpioEntry) {
	mode := e.at.Mode & 0o7777
	at, err := c.t.Lstat(p)
	if err == nil && !at.Mode.IsDir() {
		c.warn("%s: Cannot mkdir: %s", p, tool.Strerror(syscall.EEXIST))
		return
	}
	if err != nil {
		if err = c.parents(p); err == nil {
			err = c.t.Mkdir(p, mode|0o700)
		}
		if err != nil {
			c.warn("%s: Cannot mkdir: %s", p, tool.Strerror(err))
			return
		}
	}
	set := vfs.SetAttr{Mode: &mode}
	c.t.SetAttr(p, set, false)
	if c.times {
		c.t.SetAttr(p, vfs.SetAttr{Atime: &e.at.Mtime, Mtime: &e.at.Mtime}, false)
	}
	c.say(e.name)
}

func (c *cpio) makeLink(e cpioEntry) {
	p, ok := c.safe(e.name)
	if !ok || !c.free(p, e) {
		return
	}
	err := c.parents(p)
	if err == nil {
		err = c.t.Symlink(e.link, p)
	}
	if err != nil {
		c.warn("%s: Cannot symlink to %s: %s", p, tool.Quote(e.link), tool.Strerror(err))
		return
	}
	c.say(e.name)
}

// pass is -p: the files of the list are copied below a directory.
func (c *cpio) pass(dir string) {
	total := int64(0)
	c.names(func(name string) {
		at, err := c.look(name)
		if err != nil {
			c.warn("%s: Cannot stat: %s", name, tool.Strerror(err))
			return
		}
		e := cpioEntry{name: path.Join(dir, name), at: at, size: at.Size}
		base := strings.TrimSuffix(dir, "/") + "/"
		if at.Mode.IsDir() {
			c.makeDir(e.name, e)
			return
		}
		if !c.free(e.name, e) {
			return
		}
		if err := c.parents(e.name); err != nil && path.Dir(e.name) != path.Clean(base) {
			c.warn("%s: Cannot open: %s", e.name, tool.Strerror(err))
			return
		}
		switch {
		case at.Mode.IsSymlink():
			e.link, _ = c.t.Readlink(name)
			c.t.Symlink(e.link, e.name)
			c.say(e.name)
		case c.linked && c.t.Link(name, e.name) == nil:
			c.say(e.name)
		default:
			total += c.copy(name, e)
		}
	})
	c.done(total)
}

func (c *cpio) copy(name string, e cpioEntry) int64 {
	in, err := c.t.OpenFile(name)
	if err != nil {
		c.warn("%s: Cannot open: %s", name, tool.Strerror(err))
		return 0
	}
	defer in.Close()
	f, err := c.t.Process.Open(e.name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC, 0o600)
	if err != nil {
		c.warn("%s: Cannot open: %s", e.name, tool.Strerror(err))
		return 0
	}
	n, err := io.Copy(f, in)
	c.restore(f, e)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		c.warn("%s: Cannot write: %s", e.name, tool.Strerror(err))
	}
	c.say(e.name)
	return n
}
