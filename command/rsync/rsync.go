// Package rsync is `rsync`: copies within a sandbox, and the server's side of a copy over a remote shell, which a real
// rsync 3 starts as "rsync --server".
//
// It speaks protocol 30 without incremental recursion: the whole file list goes first, sorted by both sides into the same
// order, and files are named by their index in it. Vocabulary: the sender has the files; the receiver's generator compares
// the list with what is there and asks for what differs, with checksums of the blocks that it has; the sender answers with
// literal data and references to those blocks. A copy within the sandbox runs both sides, joined by two pipes in memory.
//
// Names that lead out of the destination are refused, and so are symbolic links among the directories above a file that is
// written. There are no daemons, and no remote shells from inside of a sandbox.
package rsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func strerror(err error) string { return tool.Strerror(err) }

// maxFile bounds files of rules and names.
const maxFile = 64 << 20

const helpText = `rsync  version 3.2.7  protocol version 30

Usage: rsync [OPTION]... SRC [SRC]... DEST

Copies files within the sandbox. Options:
 -v, -q, -i, --stats, --out-format=FORMAT, -n, --list-only, --progress
 -a (-rlptgoD), -r, -d, -R, -l, -L, -p, -t, -o, -g, -D, -O, -E, -H, -K, -m, -x, --chmod is not there
 -c, -u, -I, --size-only, --existing, --ignore-existing, -W, --inplace, --modify-window=N
 --delete, --delete-after, --delete-excluded, --max-delete=N, --force, --ignore-errors
 --exclude=PATTERN, --include=PATTERN, --exclude-from=FILE, --include-from=FILE, -f RULE, -C
 --files-from=FILE, --from0, --max-size=SIZE, --min-size=SIZE, --remove-source-files
 -b, --backup-dir=DIR, --suffix=SUFFIX, --partial, --partial-dir=DIR, -z, --mkpath
`

const versionText = `rsync  version 3.2.7  protocol version 30
Capabilities:
    64-bit files, 64-bit inums, 64-bit timestamps, 64-bit long ints,
    symlinks, hardlinks, hardlink-specials, batchfiles, inplace, append
Checksum list:
    md5
Compress list:
    zlibx zlib none
`

// Rsync is the command.
func Rsync(t *tool.T) int {
	o := &options{}
	args := t.Args()[1:]
	for _, a := range args {
		switch a {
		case "--help":
			t.Out.WriteString(helpText)
			return 0
		case "--version", "-V":
			t.Out.WriteString(versionText)
			return 0
		case "--daemon":
			return fail(t, o, &failure{codeSyntax, "there are no daemons in a sandbox"})
		}
		o.server = o.server || a == "--server"
	}
	readFile := func(name string) (string, error) {
		b, err := t.ReadFile(name, maxFile)
		if err != nil {
			return "", errors.New(strerror(err) + " (" + errno(err) + ")")
		}
		return string(b), nil
	}
	rest, err := o.parse(args, readFile)
	if err == nil && o.server && o.protect && len(rest) == 0 {
		rest, err = secluded(t, o, readFile)
	}
	if err != nil {
		return fail(t, o, err)
	}
	o.settle()
	if o.server {
		return serve(t, o, rest)
	}
	return local(t, o, rest, readFile)
}

// secluded reads arguments that come over standard input (-s).
func secluded(t *tool.T, o *options, readFile func(string) (string, error)) ([]string, error) {
	var args []string
	var word []byte
	one := make([]byte, 1)
	for total := 0; total < 1<<20; total++ {
		if _, err := io.ReadFull(t.Stdin(), one); err != nil {
			return nil, &failure{codeStream, "connection unexpectedly closed"}
		}
		if one[0] != 0 {
			word = append(word, one[0])
			continue
		}
		if len(word) == 0 {
			if len(args) > 0 && args[0] == "rsync" {
				args = args[1:]
			}
			return o.parse(args, readFile)
		}
		args = append(args, string(word))
		word = word[:0]
	}
	return nil, &failure{codeProtocol, "too many arguments"}
}

// explanations are what exit statuses mean.
var explanations = map[int]string{codeSyntax: "syntax or usage error", codeProtocol: "protocol incompatibility", codeSelect: "errors selecting input/output files, dirs",
	4: "requested action not supported", codeStart: "error starting client-server protocol", codeFileIO: "error in file IO", codeStream: "error in rsync protocol data stream",
	14: "error in IPC code", 20: "received SIGINT, SIGTERM, or SIGHUP", codePartial: "some files/attrs were not transferred (see previous errors)", codeVanished: "some files vanished before they could be transferred",
	codeDelete: "the --max-delete limit stopped deletions"}

// fail reports why rsync ends and returns its status.
func fail(t *tool.T, o *options, err error) int {
	code, text := codeStream, ""
	var f *failure
	switch {
	case errors.As(err, &f):
		code, text = f.code, f.text
	case errors.Is(err, context.Canceled):
		return 20
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe):
		text = "connection unexpectedly closed"
	default:
		text = err.Error()
	}
	if text != "" {
		say(t, "rsync: "+text)
	}
	who := "client"
	if o.server {
		who = "server"
	}
	say(t, fmt.Sprintf("rsync error: %s (code %d) at main.c [%s=3.2.7]", explanations[code], code, who))
	return code
}

func say(t *tool.T, text string) {
	t.Out.Flush()
	fmt.Fprintf(t.Stderr(), "%s\n", text)
}

// serve is the server's side. Standard input and output are the connection.
func serve(t *tool.T, o *options, args []string) int {
	if len(args) == 0 || args[0] != "." {
		return fail(t, o, &failure{codeSyntax, "a server is started by a client only"})
	}
	s := newSession(t.Process, o, t.Stdin(), t.Process.Stdout(), true)
	err := s.greet()
	if err == nil {
		if o.sender {
			err = serveSender(t, s, args[1:])
		} else {
			err = serveReceiver(t, s, args[1:])
		}
	}
	if err != nil {
		t.Check()
		var f *failure
		if errors.As(err, &f) && f.text != "" {
			s.say(msgError, "rsync: "+f.text+"\n")
			s.w.flush()
		}
		return fail(t, o, err)
	}
	switch {
	case s.problem || s.ioError != 0:
		return codePartial
	case s.tooMany:
		return codeDelete
	}
	return 0
}

func serveSender(t *tool.T, s *session, args []string) error {
	if err := s.o.filter.receive(s.r); err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"."}
	}
	began := time.Now()
	c := s.scanner(t)
	c.scan(args)
	if s.o.pruneEmpty {
		c.list = prune(c.list)
	}
	if err := s.sendList(c); err != nil {
		return err
	}
	if len(s.list) > 0 {
		if err := s.sendFiles(); err != nil {
			return err
		}
	}
	s.w.varlong(s.r.read, 3)
	s.w.varlong(s.w.written, 3)
	s.w.varlong(s.stats.size, 3)
	s.w.varlong(time.Since(began).Milliseconds(), 3)
	s.w.varlong(0, 3)
	if err := s.w.flush(); err != nil {
		return err
	}
	return s.goodbye()
}

func serveReceiver(t *tool.T, s *session, args []string) error {
	if s.o.delete || s.o.pruneEmpty {
		if err := s.o.filter.receive(s.r); err != nil {
			return err
		}
	}
	dest := "."
	if len(args) > 0 {
		dest = args[0]
	}
	return s.receive(t.Accounts(), dest)
}

// receive is the receiving side once the filter is known.
func (s *session) receive(names *tool.Accounts, dest string) error {
	cred := s.p.Cred()
	v := &receiver{s: s, o: s.o, created: map[string]bool{}, failed: map[string]bool{}, root: cred.UID == 0, umask: cred.Umask,
		user: names.LookupUID, group: names.LookupGID}
	v.groups = func(gid uint32) bool { return cred.UID == 0 || cred.In(gid) }
	if err := v.receiveList(); err != nil {
		return err
	}
	if len(v.s.list) == 0 {
		return nil
	}
	if err := v.place(dest); err != nil {
		return err
	}
	return v.run()
}

func (s *session) scanner(t *tool.T) *scanner {
	names := t.Accounts()
	return &scanner{s: s, o: s.o, links: map[[2]uint64]*entry{}, names: &lister{o: s.o, uids: map[uint32]string{}, gids: map[uint32]string{}},
		user: names.UserName, group: names.GroupName}
}

// local copies within the sandbox.
func local(t *tool.T, o *options, args []string, readFile func(string) (string, error)) int {
	if len(args) == 0 {
		t.Stderr().Write([]byte(helpText))
		return fail(t, o, &failure{codeSyntax, ""})
	}
	for _, a := range args {
		if i := strings.IndexByte(a, ':'); i > 0 && !strings.Contains(a[:i], "/") || strings.HasPrefix(a, "rsync://") {
			return fail(t, o, &failure{codeStart, "there is no remote shell in a sandbox: " + a + " can't be reached; start rsync outside, with the sandbox as its remote side"})
		}
	}
	sources, dest := args[:len(args)-1], args[len(args)-1]
	if len(args) == 1 || o.listOnly {
		if len(sources) == 0 {
			sources = args
		}
		return listOnly(t, o, sources)
	}
	if o.filesFrom != "" {
		names, err := filesFrom(t, o, sources, readFile)
		if err != nil {
			return fail(t, o, err)
		}
		sources = names
	}
	if !o.noWhole {
		o.wholeFile = true
	}
	o.compress = false
	return (&client{t: t, o: o, began: time.Now()}).copy(sources, dest)
}

// filesFrom reads the names of --files-from; they are beneath the source directory.
func filesFrom(t *tool.T, o *options, sources []string, readFile func(string) (string, error)) ([]string, error) {
	text, err := readFile(o.filesFrom)
	if err != nil {
		return nil, &failure{codeFileIO, "failed to open files-from file " + o.filesFrom + ": " + err.Error()}
	}
	sep := "\n"
	if o.filesFromNul {
		sep = "\x00"
	}
	var names []string
	for line := range strings.SplitSeq(text, sep) {
		if line = strings.TrimRight(line, "\r"); line == "" || sep == "\n" && (line[0] == '#' || line[0] == ';') {
			continue
		}
		clean := path.Clean("/" + line)
		names = append(names, strings.TrimSuffix(sources[0], "/")+"/."+clean)
	}
	return names, nil
}

// listOnly lists what would be copied.
func listOnly(t *tool.T, o *options, sources []string) int {
	o.links = true
	if !o.recursive {
		o.dirs = true
	}
	s := newSession(t.Process, o, strings.NewReader(""), io.Discard, false)
	s.say = func(_ int, text string) { t.Out.Flush(); t.Stderr().Write([]byte(text)) }
	c := s.scanner(t)
	c.scan(sources)
	for _, e := range sorted(c.list) {
		if e.dup {
			continue
		}
		link := ""
		if e.mode.IsSymlink() {
			link = " -> " + e.target
		}
		at := time.Unix(e.mtime, 0).In(t.Location()).Format("2006/01/02 15:04:05")
		fmt.Fprintf(t.Out, "%s %14s %s %s%s\n", tool.FormatMode(e.mode), commas(e.size), at, e.name, link)
	}
	if s.ioError != 0 {
		return fail(t, o, &failure{codePartial, ""})
	}
	return 0
}

// client is the sending side of a copy within the sandbox, which tells the user what happens.
type client struct {
	t       *tool.T
	o       *options
	s       *session
	began   time.Time
	removed int
	toldDot bool
}

// copy runs both sides.
func (c *client) copy(sources []string, dest string) int {
	up, down := newPipe(), newPipe()
	abort := func() { up.close(); down.close() }
	stop := context.AfterFunc(c.t.Context(), abort)
	defer stop()
	theirs := *c.o
	theirs.info = ".LsfxC"
	server := newSession(c.t.Process, &theirs, up, down, true)
	finished := make(chan error, 1)
	names := c.t.Accounts()
	go func() {
		err := server.greet()
		if err == nil {
			err = server.receive(names, dest)
		}
		var f *failure
		if errors.As(err, &f) && f.text != "" {
			server.say(msgError, "rsync: "+f.text+"\n")
			server.w.flush()
		}
		down.end()
		up.close()
		finished <- err
	}()
	// Whatever unwinds this goroutine, the other one ends before the process does.
	waited := false
	defer func() {
		if !waited {
			abort()
			<-finished
		}
	}()
	c.s = newSession(c.t.Process, c.o, down, up, false)
	c.s.say, c.s.log, c.s.deleted = c.message, c.item, c.deleted
	err := c.send(sources)
	if err == nil {
		io.Copy(io.Discard, c.s.r) // messages that are still to come
	}
	up.end()
	if err != nil {
		io.Copy(io.Discard, c.s.r) // why the other side gave up
		abort()
	}
	theirErr := <-finished
	waited = true
	c.t.Check()
	return c.end(err, theirErr, server)
}

// send is the client's part of the protocol.
func (c *client) send(sources []string) error {
	if err := c.s.greet(); err != nil {
		return err
	}
	if c.o.verbose > 0 {
		c.t.Out.WriteString("sending incremental file list\n")
	}
	scan := c.s.scanner(c.t)
	scan.scan(sources)
	if c.o.pruneEmpty {
		scan.list = prune(scan.list)
	}
	if err := c.s.sendList(scan); err != nil {
		return err
	}
	if len(c.s.list) == 0 {
		return nil
	}
	if err := c.s.sendFiles(); err != nil {
		return err
	}
	return c.s.goodbye()
}

// end prints the summary and returns the exit status.
func (c *client) end(err, theirErr error, server *session) int {
	var f *failure
	if errors.As(theirErr, &f) {
		return fail(c.t, c.o, &failure{f.code, ""})
	}
	if err == nil {
		err = theirErr
	}
	if err != nil {
		return fail(c.t, c.o, err)
	}
	if c.o.stats > 0 {
		c.printStats(server)
	}
	if c.o.verbose > 0 || c.o.stats > 0 {
		sent, got := c.s.w.written, c.s.r.read
		rate := float64(sent+got) / (0.5 + time.Since(c.began).Seconds())
		dry := ""
		if c.o.dryRun {
			dry = " (DRY RUN)"
		}
		fmt.Fprintf(c.t.Out, "\nsent %s bytes  received %s bytes  %s bytes/sec\n", commas(sent), commas(got), commasFloat(rate))
		fmt.Fprintf(c.t.Out, "total size is %s  speedup is %s%s\n", commas(c.s.stats.size), commasFloat(float64(c.s.stats.size)/float64(max(sent+got, 1))), dry)
	}
	if c.s.problem || c.s.ioError != 0 || server.problem {
		return fail(c.t, c.o, &failure{codePartial, ""})
	}
	if server.tooMany {
		return fail(c.t, c.o, &failure{codeDelete, ""})
	}
	return 0
}

func (c *client) printStats(server *session) {
	n := &c.s.stats
	detail := func(parts ...any) string {
		var list []string
		for i := 0; i < len(parts); i += 2 {
			if v := parts[i+1].(int); v > 0 {
				list = append(list, fmt.Sprintf("%s: %s", parts[i], commas(int64(v))))
			}
		}
		if len(list) == 0 {
			return ""
		}
		return " (" + strings.Join(list, ", ") + ")"
	}
	fmt.Fprintf(c.t.Out, "\nNumber of files: %s%s\n", commas(int64(n.files)), detail("reg", n.regs, "dir", n.dirs, "link", n.links, "dev", n.devs, "special", n.specials))
	fmt.Fprintf(c.t.Out, "Number of created files: %s\nNumber of deleted files: %s\nNumber of regular files transferred: %s\n", commas(int64(n.created)), commas(int64(c.removed)), commas(int64(n.sent)))
	fmt.Fprintf(c.t.Out, "Total file size: %s bytes\nTotal transferred file size: %s bytes\nLiteral data: %s bytes\nMatched data: %s bytes\n", commas(n.size), commas(n.sentSize), commas(c.s.literal), commas(c.s.matched))
	fmt.Fprintf(c.t.Out, "File list size: 0\nFile list generation time: 0.001 seconds\nFile list transfer time: 0.000 seconds\nTotal bytes sent: %s\nTotal bytes received: %s\n", commas(c.s.w.written), commas(c.s.r.read))
}

// commas renders a number with commas between the thousands.
func commas(n int64) string {
	s := itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func commasFloat(f float64) string {
	s := strconv.FormatFloat(f, 'f', 2, 64)
	whole, frac, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return s
	}
	return commas(n) + "." + frac
}

// message prints what a side has to say.
func (c *client) message(tag int, text string) {
	if tag == msgInfo {
		if c.o.quiet == 0 {
			c.t.Out.WriteString(text)
		}
		return
	}
	c.t.Out.Flush()
	if tag == msgXfer || tag == msgError {
		c.s.problem = true
	}
	io.WriteString(c.t.Stderr(), text)
}

// deleted prints a deletion.
func (c *client) deleted(name string) {
	c.removed++
	if n, ok := strings.CutSuffix(name, "\x00"); ok {
		name = n + "/"
	}
	switch {
	case c.o.itemize > 0:
		c.t.Out.WriteString("*deleting   " + name + "\n")
	case c.o.verbose > 0:
		c.t.Out.WriteString("deleting " + name + "\n")
	}
}

// item prints what became of a file.
func (c *client) item(e *entry, flags int, xname string) {
	significant := flags&^itemUnimportant != 0
	see := c.o.itemize > 0 && (significant || c.o.itemize > 1 || xname != "")
	if !see && !(c.o.verbose > 0 && (flags&itemTransfer != 0 || flags&itemLocal != 0 && significant || e.isDir() && significant || xname != "" && flags&itemLocal != 0)) {
		return
	}
	if c.o.outFormat != "" {
		c.t.Out.WriteString(c.format(c.o.outFormat, e, flags, xname) + "\n")
		return
	}
	f := "%n%L"
	if c.o.itemize > 0 {
		f = "%i %n%L"
	}
	c.t.Out.WriteString(c.format(f, e, flags, xname) + "\n")
}

// format renders an --out-format.
func (c *client) format(f string, e *entry, flags int, xname string) string {
	var b strings.Builder
	for i := 0; i < len(f); i++ {
		if f[i] != '%' || i+1 == len(f) {
			b.WriteByte(f[i])
			continue
		}
		i++
		switch f[i] {
		case 'i':
			b.WriteString(c.itemized(e, flags))
		case 'n':
			b.WriteString(e.name)
			if e.isDir() {
				b.WriteByte('/')
			}
		case 'f':
			b.WriteString(strings.TrimPrefix(e.local, "/"))
		case 'L':
			switch {
			case e.mode.IsSymlink():
				b.WriteString(" -> " + e.target)
			case xname != "":
				b.WriteString(" => " + xname)
			}
		case 'l':
			b.WriteString(itoa(e.size))
		case 'M':
			b.WriteString(time.Unix(e.mtime, 0).In(c.t.Location()).Format("2006/01/02-15:04:05"))
		case 't':
			b.WriteString(c.t.Now().In(c.t.Location()).Format("2006/01/02 15:04:05"))
		case 'o':
			b.WriteString("send")
		case 'B':
			b.WriteString(tool.FormatMode(e.mode)[1:])
		case 'U':
			b.WriteString(itoa(int64(e.uid)))
		case 'G':
			b.WriteString(itoa(int64(e.gid)))
		case 'p':
			b.WriteString(itoa(int64(c.t.Pid())))
		case '%':
			b.WriteByte('%')
		default:
			b.WriteString("%" + f[i:i+1])
		}
	}
	return b.String()
}

// itemized renders %i: what kind of change, of what kind of file, and what differs.
func (c *client) itemized(e *entry, flags int) string {
	b := []byte("...........")
	switch {
	case flags&itemLocal != 0 && flags&itemXName != 0:
		b[0] = 'h'
	case flags&itemLocal != 0:
		b[0] = 'c'
	case flags&itemTransfer != 0:
		b[0] = '>'
	}
	b[1] = map[vfs.Mode]byte{vfs.ModeRegular: 'f', vfs.ModeDir: 'd', vfs.ModeSymlink: 'L', vfs.ModeChar: 'D', vfs.ModeBlock: 'D', vfs.ModeFIFO: 'S', vfs.ModeSocket: 'S'}[e.mode&vfs.ModeType]
	set := func(i, flag int, letter byte) {
		if flags&flag != 0 {
			b[i] = letter
		}
	}
	set(2, itemChange, 'c')
	if !e.mode.IsSymlink() {
		set(3, itemSize, 's')
	}
	set(4, itemTime, 't')
	if !c.o.times && b[4] == 't' {
		b[4] = 'T'
	}
	set(5, itemPerms, 'p')
	set(6, itemOwner, 'o')
	set(7, itemGroup, 'g')
	switch {
	case flags&itemNew != 0:
		copy(b[2:], "+++++++++")
	case b[0] != '>' && strings.Trim(string(b[2:]), ".") == "":
		copy(b[2:], "         ")
	}
	return string(b)
}
