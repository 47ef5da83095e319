// Package scp is the far side of scp's own protocol: `scp -t` takes files, `scp -f` gives them.
//
// Clients of before OpenSSH 9, and later ones told so with -O, start it by a command line. Newer ones speak SFTP. There is
// no near side: a sandbox has no SSH of its own.
//
// The protocol is lines, each answered by one byte: 0 for good, 1 for a warning and 2 for the end, both with a line of text.
// "Cmode size name" announces a file, "Dmode 0 name" a directory that "E" ends, "Tmtime 0 atime 0" the times of the next one.
package scp

import (
	"bufio"
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
	maxLine  = 8 << 10 // bytes in a line of the protocol
	maxDepth = 1000    // directories in each other
)

var spec = tool.Spec{
	Usage: []string{"[-dprv] -t TARGET", "[-prv] -f FILE..."},
	About: "Take files (-t) or give files (-f) by scp's own protocol. Copy with cp what stays in here.",
	Options: []getopt.Option{
		{Short: 't', Help: "take files and put them at TARGET"},
		{Short: 'f', Help: "give FILEs"},
		{Short: 'd', Help: "TARGET must be a directory"},
		{Short: 'p', Help: "preserve times and modes"},
		{Short: 'r', Help: "with directories and what is in them"},
		{Short: 'v', Help: "(accepted)"},
		{Short: 'q', Help: "(accepted)"},
	},
	Order: getopt.POSIX,
}

// session is one run.
type session struct {
	t         *tool.T
	in        *bufio.Reader
	preserve  bool
	recursive bool
	failed    bool
}

// Scp is the command.
func Scp(t *tool.T) int {
	opts, operands := t.Parse(&spec)
	s := &session{t: t, in: bufio.NewReaderSize(flushing{t}, 64<<10)}
	var mode rune
	dir := false
	for _, o := range opts {
		switch o.Key {
		case 't', 'f':
			mode = o.Key
		case 'd':
			dir = true
		case 'p':
			s.preserve = true
		case 'r':
			s.recursive = true
		}
	}
	switch {
	case mode == 0:
		t.Fatal(1, "a sandbox has only the far side of scp (-t, -f); cp copies here")
	case mode == 't' && len(operands) != 1:
		t.Fatal(1, "ambiguous target")
	case len(operands) == 0:
		t.Missing(1)
	}
	if mode == 't' {
		s.take(operands[0], dir)
	} else {
		s.give(operands)
	}
	if s.failed {
		return 1
	}
	return 0
}

// flushing sends what was written before it waits.
type flushing struct{ t *tool.T }

func (f flushing) Read(b []byte) (int, error) {
	f.t.Out.Flush()
	return f.t.Stdin().Read(b)
}

// warn tells the other side, which shows it.
func (s *session) warn(name string, err error) {
	s.failed = true
	text := name + ": " + tool.Strerror(err)
	fmt.Fprintf(s.t.Out, "\x01scp: %s\n", strings.ReplaceAll(text, "\n", "?"))
}

// fatal tells the other side, and ends. OpenSSH has a byte of its own for that, and doesn't send it.
func (s *session) fatal(format string, a ...any) {
	fmt.Fprintf(s.t.Out, "\x01scp: %s\n", strings.ReplaceAll(fmt.Sprintf(format, a...), "\n", "?"))
	s.t.Exit(1)
}

func (s *session) ok() { s.t.Out.WriteByte(0) }

// line reads a line without its end. The other side may end only where one begins.
func (s *session) line(first byte) string {
	var b []byte
	for c := first; c != '\n'; {
		if b = append(b, c); len(b) > maxLine {
			s.fatal("protocol error: a line is too long")
		}
		var err error
		if c, err = s.in.ReadByte(); err != nil {
			s.fatal("protocol error: lost connection")
		}
	}
	return string(b)
}

// answer reads what the other side says of what it got; false if it won't have it.
func (s *session) answer() bool {
	b, err := s.in.ReadByte()
	if err != nil {
		s.t.Exit(1)
	}
	if b == 0 {
		return true
	}
	s.failed = true
	if b == '\n' {
		return false
	}
	s.line(b)
	if b != 1 {
		s.t.Exit(1)
	}
	return false
}

// give sends files.
func (s *session) give(names []string) {
	if !s.answer() {
		return
	}
	for _, name := range names {
		s.send(name, 0)
	}
}

func (s *session) send(name string, depth int) {
	s.t.Check()
	a, err := s.t.Stat(name)
	if err != nil {
		s.warn(name, err)
		return
	}
	switch {
	case a.Mode.IsDir() && !s.recursive:
		s.failed = true
		fmt.Fprintf(s.t.Out, "\x01scp: %s: not a regular file\n", name)
	case a.Mode.IsDir():
		s.sendDir(name, a, depth)
	case a.Mode.IsRegular():
		s.sendFile(name, a)
	default:
		s.failed = true
		fmt.Fprintf(s.t.Out, "\x01scp: %s: not a regular file\n", name)
	}
}

// base is the last component of a path, as the other side will call it. Such as "." and "/" it takes no name from.
func base(name string) string {
	b := path.Base(name)
	if b == "/" {
		b = "."
	}
	return strings.NewReplacer("\n", "\\^J").Replace(b)
}

// times sends the times of what comes next.
func (s *session) times(a vfs.Attr) bool {
	if !s.preserve {
		return true
	}
	fmt.Fprintf(s.t.Out, "T%d 0 %d 0\n", max(a.Mtime.Unix(), 0), max(a.Atime.Unix(), 0))
	return s.answer()
}

func (s *session) sendDir(name string, a vfs.Attr, depth int) {
	if depth > maxDepth {
		s.warn(name, syscall.ELOOP)
		return
	}
	list, err := s.t.Process.ReadDir(name)
	if err != nil {
		s.warn(name, err)
		return
	}
	if !s.times(a) {
		return
	}
	fmt.Fprintf(s.t.Out, "D%04o 0 %s\n", a.Mode&vfs.ModePerm, base(name))
	if !s.answer() {
		return
	}
	for _, e := range list {
		s.send(strings.TrimRight(name, "/")+"/"+e.Name, depth+1)
	}
	fmt.Fprint(s.t.Out, "E\n")
	s.answer()
}

func (s *session) sendFile(name string, a vfs.Attr) {
	f, err := s.t.Process.Open(name, syscall.O_RDONLY, 0)
	if err != nil {
		s.warn(name, err)
		return
	}
	defer f.Close()
	if !s.times(a) {
		return
	}
	fmt.Fprintf(s.t.Out, "C%04o %d %s\n", a.Mode&vfs.ModePerm, a.Size, base(name))
	if !s.answer() {
		return
	}
	// As many bytes as were announced follow, whatever becomes of the file meanwhile.
	n, err := io.CopyN(s.t.Out, f, a.Size)
	if n < a.Size {
		if err == io.EOF {
			err = syscall.EIO
		}
		zero := make([]byte, 32<<10)
		for left := a.Size - n; left > 0; left -= int64(len(zero)) {
			s.t.Check()
			s.t.Out.Write(zero[:min(int64(len(zero)), left)])
		}
		s.warn(name, err)
	} else {
		s.ok()
	}
	s.answer()
}

// stamps are the times that the other side gave for what comes next.
type stamps struct{ mtime, atime time.Time }

// take receives files.
func (s *session) take(target string, mustDir bool) {
	if target == "" {
		target = "."
	}
	if a, err := s.t.Stat(target); mustDir && (err != nil || !a.Mode.IsDir()) {
		if err == nil {
			err = syscall.ENOTDIR
		}
		s.fatal("%s: %s", target, tool.Strerror(err))
	}
	s.ok()
	s.receive(target, 0)
}

// receive takes what is announced until the end: that of the directory, or of the input.
func (s *session) receive(target string, depth int) {
	var at *stamps
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return
		}
		line := s.line(c)
		switch c {
		case 1, 2:
			s.failed = true
			if c == 2 {
				s.t.Exit(1)
			}
		case 'E':
			s.ok()
			return
		case 'T':
			at = s.parseTimes(line)
			s.ok()
		case 'C', 'D':
			s.announced(line, target, at, depth)
			at = nil
		case '\n':
			s.fatal("protocol error: unexpected <newline>")
		default:
			s.fatal("protocol error: expected control record")
		}
	}
}

func (s *session) parseTimes(line string) *stamps {
	var m, mu, a, au int64
	if n, err := fmt.Sscanf(line, "T%d %d %d %d", &m, &mu, &a, &au); n != 4 || err != nil || m < 0 || a < 0 || mu < 0 || mu > 999999 || au < 0 || au > 999999 {
		s.fatal("protocol error: mtime.sec not present")
	}
	return &stamps{time.Unix(m, mu*1000), time.Unix(a, au*1000)}
}

// announced takes the file or directory that a line announces.
func (s *session) announced(line, target string, at *stamps, depth int) {
	modeText, rest, _ := strings.Cut(line[1:], " ")
	sizeText, name, ok := strings.Cut(rest, " ")
	mode, err := strconv.ParseUint(modeText, 8, 32)
	size, err2 := strconv.ParseInt(sizeText, 10, 64)
	switch {
	case err != nil || mode > 0o7777 || len(modeText) != 4:
		s.fatal("protocol error: bad mode")
	case err2 != nil || size < 0:
		s.fatal("protocol error: size not present")
	case !ok:
		s.fatal("protocol error: size not delimited")
	case name == "" || name == "." || name == ".." || strings.ContainsRune(name, '/'):
		s.fatal("error: unexpected filename: %s", name)
	case line[0] == 'D' && (!s.recursive || depth > maxDepth):
		s.fatal("protocol error: received directory without -r")
	}
	if a, err := s.t.Stat(target); err == nil && a.Mode.IsDir() {
		target = strings.TrimRight(target, "/") + "/" + name
	} else if depth > 0 {
		s.fatal("%s: the directory has gone", target)
	}
	if line[0] == 'D' {
		s.takeDir(target, vfs.Mode(mode), at, depth)
		return
	}
	s.takeFile(target, vfs.Mode(mode), size, at)
}

func (s *session) takeDir(name string, mode vfs.Mode, at *stamps, depth int) {
	a, err := s.t.Stat(name)
	switch {
	case err == nil && !a.Mode.IsDir():
		err = syscall.ENOTDIR
	case err == nil && s.preserve:
		s.t.SetAttr(name, vfs.SetAttr{Mode: &mode}, true)
	case err != nil:
		// Ours to write into while it is filled, whatever it will be.
		if err = s.t.Mkdir(name, mode|0o700); err == nil && mode&0o700 != 0o700 {
			defer s.t.SetAttr(name, vfs.SetAttr{Mode: &mode}, true)
		}
	}
	if err != nil {
		s.warn(name, err)
		return
	}
	s.ok()
	s.receive(name, depth+1)
	s.stamp(name, at)
}

func (s *session) stamp(name string, at *stamps) {
	if at == nil {
		return
	}
	if err := s.t.SetAttr(name, vfs.SetAttr{Mtime: &at.mtime, Atime: &at.atime}, true); err != nil {
		s.warn(name, err)
	}
}

func (s *session) takeFile(name string, mode vfs.Mode, size int64, at *stamps) {
	f, err := s.t.Process.Open(name, syscall.O_WRONLY|syscall.O_CREAT, mode|0o200)
	if err != nil {
		s.warn(name, err)
		return // the other side leaves it out
	}
	s.ok()
	failed := s.content(f, size)
	if a, err := f.Attr(); err == nil && a.Mode.IsRegular() {
		if failed == nil {
			failed = f.SetAttr(vfs.SetAttr{Size: &size}) // what was there may have been longer
		}
		if failed == nil && (s.preserve || mode&0o200 == 0) && a.Mode&vfs.ModePerm != mode {
			failed = f.SetAttr(vfs.SetAttr{Mode: &mode})
		}
	}
	if err := f.Close(); failed == nil {
		failed = err
	}
	s.answer() // the other side's own trouble, which counts as ours
	if failed != nil {
		s.warn(name, failed)
		return
	}
	if at != nil {
		if err := s.t.SetAttr(name, vfs.SetAttr{Mtime: &at.mtime, Atime: &at.atime}, true); err != nil {
			s.warn(name, err)
			return
		}
	}
	s.ok()
}

// content writes as many bytes as were announced. All are read even if they can't be written, since what follows comes after
// them.
func (s *session) content(f vfs.File, size int64) (failed error) {
	buf := make([]byte, 64<<10)
	for size > 0 {
		s.t.Check()
		n, err := s.in.Read(buf[:min(int64(len(buf)), size)])
		if n == 0 && err != nil {
			f.Close()
			s.fatal("lost connection")
		}
		size -= int64(n)
		if failed == nil {
			_, failed = f.Write(buf[:n])
		}
	}
	return failed
}
