package awk

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"agentrun.dev/command/posixre"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// reader splits a stream into records.
type reader struct {
	in    *interp
	r     io.Reader
	close func() int
	buf   []byte
	pos   int
	eof   bool
}

// sink is a file or command that print writes to.
type sink struct {
	w     *bufio.Writer
	close func() int
}

// streams are the program's input and output.
type streams struct {
	in      *interp
	cur     *reader
	argi    int
	used    bool // a file of the command line was read
	done    bool
	readers map[string]*reader
	sinks   map[string]*sink
}

func (s *streams) init(in *interp) {
	s.in, s.argi = in, 1
	s.readers, s.sinks = map[string]*reader{}, map[string]*sink{}
}

func (s *streams) closeAll() {
	if s.cur != nil {
		s.cur.close()
	}
	for _, r := range s.readers {
		r.close()
	}
	s.in.t.Out.Flush()
	for _, k := range s.sinks {
		k.w.Flush()
		k.close()
	}
}

// openFile opens a file for reading; "-" and /dev/stdin are standard input.
func (s *streams) openFile(name string) (*reader, error) {
	if name == "/dev/stdin" {
		name = "-"
	}
	in, err := s.in.t.Open(name)
	if err != nil {
		return nil, err
	}
	return &reader{in: s.in, r: in, close: func() int {
		in.Close()
		return 0
	}}, nil
}

// nextFile opens the next file of the command line, making assignments on the way.
func (s *streams) nextFile() bool {
	for {
		argc := s.in.globals[vARGC].v
		if s.argi >= int(argc.number()) {
			if s.used || s.done {
				return false
			}
			s.used = true
			s.cur, _ = s.openFile("-")
			return true
		}
		key := strconv.Itoa(s.argi)
		s.argi++
		c := s.in.globals[vARGV].arr.m[key]
		if c == nil {
			continue
		}
		name := c.v.text(s.in.convfmt)
		if name == "" || s.in.assignArg(name) {
			continue
		}
		s.used = true
		r, err := s.openFile(name)
		if err != nil {
			s.in.t.Warn("cannot open %s (%s)", name, tool.Strerror(err))
			s.in.status = 2
			continue
		}
		s.cur = r
		s.in.globals[vFILENAME].v = input(name)
		s.in.globals[vFNR].v = num(0)
		return true
	}
}

func (s *streams) skipFile() {
	if s.cur != nil {
		s.cur.close()
		s.cur = nil
	}
}

// read returns the next record of the files.
func (s *streams) read() (string, bool) {
	for {
		if s.cur == nil && !s.nextFile() {
			s.done = true
			return "", false
		}
		if rec, ok := s.cur.record(); ok {
			s.in.bump(vNR)
			s.in.bump(vFNR)
			return rec, true
		}
		s.skipFile()
	}
}

func (s *streams) nextRecord() bool {
	rec, ok := s.read()
	if ok {
		s.in.setRecord(rec)
	}
	return ok
}

func (in *interp) bump(i int) { in.globals[i].v = num(in.globals[i].v.number() + 1) }

// fill reads more; it returns false at the end.
func (r *reader) fill() bool {
	if r.eof {
		return false
	}
	if r.pos > 0 {
		r.buf = append(r.buf[:0], r.buf[r.pos:]...)
		r.pos = 0
	}
	if len(r.buf) > tool.MaxLine {
		r.in.fail("input record is too long")
	}
	n := len(r.buf)
	r.buf = append(r.buf, make([]byte, max(16<<10, n))...)
	k, err := r.r.Read(r.buf[n:])
	r.buf = r.buf[:n+k]
	if err != nil {
		r.eof = true
		if !errors.Is(err, io.EOF) {
			r.in.t.Warn("read error: %s", tool.Strerror(err))
			r.in.status = 2
		}
	}
	return true
}

// record returns the next record as RS says.
func (r *reader) record() (string, bool) {
	rs := r.in.special(vRS)
	switch {
	case rs == "":
		return r.paragraph()
	case len(rs) == 1:
		return r.until(func(b []byte) (int, int) {
			i := bytes.IndexByte(b, rs[0])
			return i, i + 1
		})
	}
	re := r.in.dynamic(rs)
	return r.until(func(b []byte) (int, int) {
		loc, err := re.Find(b)
		if err != nil {
			r.in.fail("%s", err)
		}
		// A match at the very end of what has been read may grow.
		if loc == nil || loc[1] == loc[0] || loc[1] == len(b) && !r.eof {
			return -1, 0
		}
		return loc[0], loc[1]
	})
}

// until cuts a record off at the separator that find locates.
func (r *reader) until(find func([]byte) (int, int)) (string, bool) {
	for {
		b := r.buf[r.pos:]
		if i, end := find(b); i >= 0 {
			rec := string(b[:i])
			r.in.globals[vRT].v = str(string(b[i:end]))
			r.pos += end
			return rec, true
		}
		if !r.fill() {
			b := r.buf[r.pos:]
			r.pos = len(r.buf)
			if len(b) == 0 {
				return "", false
			}
			r.in.globals[vRT].v = str("")
			return string(b), true
		}
	}
}

// paragraph returns text up to empty lines.
func (r *reader) paragraph() (string, bool) {
	for {
		for r.pos < len(r.buf) && r.buf[r.pos] == '\n' {
			r.pos++
		}
		if r.pos < len(r.buf) || !r.fill() {
			break
		}
	}
	rec, ok := r.until(func(b []byte) (int, int) {
		i := bytes.Index(b, []byte("\n\n"))
		return i, i + 2
	})
	return strings.TrimSuffix(rec, "\n"), ok
}

// getline implements all forms; it returns 1, 0 at the end, or -1 on failure.
func (s *streams) getline(g *getline) value {
	if g.kind == 0 {
		rec, ok := s.read()
		if !ok {
			return num(0)
		}
		if g.to == nil {
			s.in.setRecord(rec)
		} else {
			s.in.store(g.to, input(rec))
		}
		return num(1)
	}
	name := s.in.text(g.src)
	key := string(g.kind) + name
	r := s.readers[key]
	if r == nil {
		var err error
		if g.kind == '<' {
			r, err = s.openFile(name)
		} else {
			r, err = s.command(name)
		}
		if err != nil {
			return num(-1)
		}
		s.readers[key] = r
	}
	rec, ok := r.record()
	if !ok {
		return num(0)
	}
	if g.kind == '|' {
		s.in.bump(vNR)
	}
	if g.to == nil {
		s.in.setRecord(rec)
	} else {
		s.in.store(g.to, input(rec))
	}
	return num(1)
}

// flush writes what is buffered, before a command runs.
func (s *streams) flush() {
	s.in.t.Out.Flush()
	for _, k := range s.sinks {
		k.w.Flush()
	}
}

// command runs a command whose output is read.
func (s *streams) command(line string) (*reader, error) {
	s.flush()
	t := s.in.t
	r, w, err := t.Pipe()
	if err != nil {
		return nil, err
	}
	child, err := t.Spawn(proc.Spawn{Args: []string{"sh", "-c", line}, Files: map[int]vfs.File{1: w}})
	w.Close()
	if err != nil {
		r.Close()
		return nil, err
	}
	return &reader{in: s.in, r: r, close: func() int {
		r.Close()
		status, _ := t.Wait(child)
		return status
	}}, nil
}

// pipe runs a command that reads what print writes.
func (s *streams) pipe(line string) (*sink, error) {
	s.flush()
	t := s.in.t
	r, w, err := t.Pipe()
	if err != nil {
		return nil, err
	}
	child, err := t.Spawn(proc.Spawn{Args: []string{"sh", "-c", line}, Files: map[int]vfs.File{0: r}})
	r.Close()
	if err != nil {
		w.Close()
		return nil, err
	}
	return &sink{w: bufio.NewWriterSize(w, 32<<10), close: func() int {
		w.Close()
		status, _ := t.Wait(child)
		return status
	}}, nil
}

// sink opens the destination of a print.
func (s *streams) sink(redir, name string) *sink {
	if k := s.sinks[name]; k != nil {
		return k
	}
	t := s.in.t
	var k *sink
	var err error
	switch {
	case redir == "|":
		k, err = s.pipe(name)
	case name == "/dev/stdout" || name == "-":
		return &sink{w: t.Out, close: func() int { return 0 }}
	case name == "/dev/stderr":
		k = &sink{w: bufio.NewWriterSize(t.Stderr(), 512), close: func() int { return 0 }}
	default:
		var f vfs.File
		if redir == ">>" {
			f, err = t.Append(name)
		} else {
			f, err = t.Create(name)
		}
		if err == nil {
			k = &sink{w: bufio.NewWriterSize(f, 32<<10), close: func() int {
				if f.Close() != nil {
					return -1
				}
				return 0
			}}
		}
	}
	if err != nil {
		s.in.fail("cannot open %q for output (%s)", name, tool.Strerror(err))
	}
	s.sinks[name] = k
	return k
}

// closeStream closes a file or command; it returns the command's status, -1 if nothing of that name is open.
func (s *streams) closeStream(name string) int {
	status := -1
	if k := s.sinks[name]; k != nil {
		k.w.Flush()
		status = k.close()
		delete(s.sinks, name)
	}
	for _, kind := range []string{"<", "|"} {
		if r := s.readers[kind+name]; r != nil {
			status = r.close()
			delete(s.readers, kind+name)
		}
	}
	return status
}

func (in *interp) print(s *printStmt) {
	var out string
	if s.format {
		args := make([]value, len(s.args))
		for i, a := range s.args {
			args[i] = in.eval(a)
		}
		out = sprintf(args[0].text(in.convfmt), args[1:], in.convfmt)
	} else if len(s.args) == 0 {
		out = in.line() + in.special(vORS)
	} else {
		var b strings.Builder
		ofs := in.special(vOFS)
		for i, a := range s.args {
			if i > 0 {
				b.WriteString(ofs)
			}
			v := in.eval(a)
			b.WriteString(v.text(in.ofmt))
		}
		b.WriteString(in.special(vORS))
		out = b.String()
	}
	if s.redir == "" {
		in.t.Out.WriteString(out)
		return
	}
	k := in.io.sink(s.redir, in.text(s.dest))
	k.w.WriteString(out)
	if k.w != in.t.Out && k.w.Size() == 512 {
		k.w.Flush() // standard error isn't buffered
	}
}

// setRecord sets $0.
func (in *interp) setRecord(s string) {
	in.record, in.split, in.joined = s, false, true
}

// line returns $0, rebuilt from the fields if one was assigned.
func (in *interp) line() string {
	if !in.joined {
		parts := make([]string, in.nf)
		for i := range in.nf {
			parts[i] = in.fields[i].text(in.convfmt)
		}
		in.record = strings.Join(parts, in.special(vOFS))
		in.joined = true
	}
	return in.record
}

func (in *interp) splitRecord() {
	if in.split {
		return
	}
	in.split = true
	in.fields = in.fields[:0]
	fs := in.special(vFS)
	for _, f := range in.splitText(in.record, fs, nil, in.special(vRS) == "") {
		in.fields = append(in.fields, input(f))
	}
	in.nf = len(in.fields)
}

// splitText splits by a separator: " " is runs of blanks, another single character itself, else a regular expression;
// paragraphs are also split at newlines.
func (in *interp) splitText(s, fs string, re *posixre.Regexp, paragraph bool) []string {
	switch {
	case re != nil:
	case fs == " ":
		return strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' })
	case s == "":
		return nil
	case fs == "":
		return strings.Split(s, "")
	case len(fs) == 1 && fs != `\` && !paragraph:
		return strings.Split(s, fs)
	case len(fs) == 1:
		return strings.Split(strings.ReplaceAll(s, "\n", fs), fs)
	default:
		re = in.dynamic(fs)
	}
	if s == "" {
		return nil
	}
	all, err := re.FindAll([]byte(s), -1)
	if err != nil {
		in.fail("%s", err)
	}
	var out []string
	at := 0
	for _, loc := range all {
		if loc[1] > loc[0] {
			out = append(out, s[at:loc[0]])
			at = loc[1]
		}
	}
	return append(out, s[at:])
}

func (in *interp) field(i int) value {
	if i == 0 {
		return input(in.line())
	}
	in.splitRecord()
	if i > in.nf {
		return value{}
	}
	return in.fields[i-1]
}

func (in *interp) resize(n int) {
	for len(in.fields) < n {
		in.fields = append(in.fields, value{})
	}
	for i := in.nf; i < n; i++ {
		in.fields[i] = value{}
	}
	in.nf = n
}

func (in *interp) setField(i int, v value) {
	if i == 0 {
		in.setRecord(v.text(in.convfmt))
		return
	}
	in.splitRecord()
	if i > in.nf {
		in.resize(i)
	}
	if v.kind == isNum {
		v = value{kind: wasNum, n: v.n, s: v.text(in.convfmt)}
	}
	in.fields[i-1] = v
	in.joined = false
}
