package shell

import (
	"io"
	"math"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type readOpts struct {
	fd            int
	raw, array    bool
	delim         byte
	chars         int // -1: no limit
	exact         bool
	timeout       time.Duration
	hasTimeout    bool
	prompt        string
	names         []string
	arrayName     string
	noDelimSplits bool
	silent        bool
}

func builtinRead(sh *Shell, args []string) int {
	o := readOpts{delim: '\n', chars: -1}
	args = args[1:]
	if tmout := sh.str("TMOUT"); tmout != "" {
		if f, err := strconv.ParseFloat(tmout, 64); err == nil && f > 0 {
			o.timeout, o.hasTimeout = time.Duration(f*float64(time.Second)), true
		}
	}
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		opt := args[0]
		args = args[1:]
		if opt == "--" {
			break
		}
		for i := 1; i < len(opt); i++ {
			c := opt[i]
			switch c {
			case 'r':
				o.raw = true
				continue
			case 's':
				o.silent = true
				continue
			case 'e':
				continue
			}
			if strings.IndexByte("adinNptu", c) < 0 {
				return sh.badOption("read", "-"+string(c), "read [-ers] [-a array] [-d delim] [-i text] [-n nchars] [-N nchars] [-p prompt] [-t timeout] [-u fd] [name ...]")
			}
			val := opt[i+1:]
			if val == "" {
				if len(args) == 0 {
					sh.errorf("read: -%c: option requires an argument", c)
					return sh.usage("read [-ers] [-a array] [-d delim] [-i text] [-n nchars] [-N nchars] [-p prompt] [-t timeout] [-u fd] [name ...]")
				}
				val, args = args[0], args[1:]
			}
			if st := sh.readOption(&o, c, val); st != 0 {
				return st
			}
			break
		}
	}
	o.names = args
	for _, n := range o.names {
		if base, _, _ := splitRef(n); !validName(base) {
			sh.errorf("read: `%s': not a valid identifier", n)
			return 1
		}
	}
	return sh.read(&o)
}

func (sh *Shell) readOption(o *readOpts, c byte, val string) int {
	switch c {
	case 'a':
		o.array, o.arrayName = true, val
		if !validName(val) {
			sh.errorf("read: `%s': not a valid identifier", val)
			return 1
		}
	case 'd':
		o.delim = 0
		if val != "" {
			o.delim = val[0]
		}
	case 'n', 'N':
		n, err := strconv.Atoi(val)
		if err != nil || n < 0 {
			sh.errorf("read: %s: invalid number", val)
			return 1
		}
		o.chars, o.exact = n, c == 'N'
	case 'p':
		o.prompt = val
	case 't':
		f, err := strconv.ParseFloat(val, 64)
		if err != nil || f < 0 || math.IsNaN(f) || f > 1e9 {
			sh.errorf("read: %s: invalid timeout specification", val)
			return 1
		}
		o.timeout, o.hasTimeout = time.Duration(f*float64(time.Second)), true
	case 'u':
		n, err := strconv.Atoi(val)
		if err != nil || n < 0 {
			sh.errorf("read: %s: invalid file descriptor specification", val)
			return 1
		}
		o.fd = n
		if _, err := sh.p.File(n); err != nil {
			sh.errorf("read: %d: invalid file descriptor: %s", n, strerror(err))
			return 1
		}
	}
	return 0
}

// input reads a descriptor byte by byte, or in blocks where what is left can be put back by seeking.
type input struct {
	sh   *Shell
	f    io.Reader
	seek io.Seeker
	fd   int
	buf  []byte
	i    int
}

func (sh *Shell) newInput(fd int) (*input, error) {
	f, err := sh.p.File(fd)
	if err != nil {
		return nil, err
	}
	in := &input{sh: sh, f: f, fd: fd}
	if _, err := f.Seek(0, io.SeekCurrent); err == nil {
		if a, err := f.Attr(); err == nil && a.Mode.IsRegular() {
			in.seek = f
		}
	}
	return in, nil
}

func (in *input) next() (byte, error) {
	if in.i < len(in.buf) {
		in.i++
		return in.buf[in.i-1], nil
	}
	size := 1
	if in.seek != nil {
		size = 512
	}
	if cap(in.buf) < size {
		in.buf = make([]byte, size)
	}
	for {
		n, err := in.f.Read(in.buf[:size])
		if n > 0 {
			in.buf, in.i = in.buf[:n], 1
			return in.buf[0], nil
		}
		if err == syscall.EINTR && in.sh.interrupted() {
			continue
		}
		if err == nil {
			err = io.EOF
		}
		in.buf, in.i = in.buf[:0], 0
		return 0, err
	}
}

// interrupted runs traps after an interrupted read; true means that the read goes on.
func (sh *Shell) interrupted() bool {
	if sh.p.Killed() != 0 {
		return false
	}
	sh.takeSignals()
	sh.runTraps()
	return sh.ctl == ctlNone
}

// done puts back what was read ahead.
func (in *input) done() {
	if in.seek != nil && in.i < len(in.buf) {
		in.seek.Seek(int64(in.i-len(in.buf)), io.SeekCurrent)
		in.buf, in.i = nil, 0
	}
}

// rawByte is a byte of a line; quoted ones came after a backslash.
type rawByte struct {
	c byte
	q bool
}

// continuation tells how many bytes of UTF-8 follow a first one.
func continuation(c byte) int {
	switch {
	case c >= 0xf0 && c < 0xf8:
		return 3
	case c >= 0xe0:
		return 2
	case c >= 0xc0:
		return 1
	}
	return 0
}

func plainBytes(line []rawByte) string {
	b := make([]byte, len(line))
	for i, x := range line {
		b[i] = x.c
	}
	return string(b)
}

// assignRead splits a line at IFS and assigns the fields.
func (sh *Shell) assignRead(o *readOpts, line []rawByte) bool {
	assign := func(name, value string) bool {
		if n, sub, ok := splitRef(name); ok {
			return sh.assignElement(n, sh.expandSubText(n, sub), value, false)
		}
		return sh.set(name, value)
	}
	ifs := sh.ifs()
	if o.array {
		var vals []string
		for len(line) > 0 {
			var f []rawByte
			var ok bool
			f, line, ok = nextField(line, ifs)
			if !ok {
				break
			}
			vals = append(vals, plainBytes(f))
		}
		name, _ := sh.resolve(o.arrayName)
		if v, _ := sh.find(name); v != nil && v.attr&attrReadonly != 0 {
			sh.errorf("%s: readonly variable", name)
			return false
		}
		v := sh.own(name)
		items := make([]arrayItem, len(vals))
		for i, s := range vals {
			items[i].value = s
		}
		return sh.fillArray(name, v, items, false, false)
	}
	if len(o.names) == 0 {
		return assign("REPLY", plainBytes(line))
	}
	if o.exact {
		ok := assign(o.names[0], plainBytes(line))
		for _, n := range o.names[1:] {
			ok = assign(n, "") && ok
		}
		return ok
	}
	for i, n := range o.names {
		if i == len(o.names)-1 {
			return assign(n, plainBytes(lastField(line, ifs)))
		}
		var f []rawByte
		f, line, _ = nextField(line, ifs)
		if !assign(n, plainBytes(f)) {
			return false
		}
	}
	return true
}

func isSep(x rawByte, ifs string) bool { return !x.q && strings.IndexByte(ifs, x.c) >= 0 }

func isWhite(x rawByte, ifs string) bool { return isSep(x, ifs) && isIFSSpace(x.c) }

// nextField takes a field and its delimiter off a line.
func nextField(line []rawByte, ifs string) (field, rest []rawByte, ok bool) {
	for len(line) > 0 && isWhite(line[0], ifs) {
		line = line[1:]
	}
	if len(line) == 0 {
		return nil, nil, false
	}
	i := 0
	for i < len(line) && !isSep(line[i], ifs) {
		i++
	}
	field, rest = line[:i], line[i:]
	for len(rest) > 0 && isWhite(rest[0], ifs) {
		rest = rest[1:]
	}
	if len(rest) > 0 && isSep(rest[0], ifs) {
		rest = rest[1:]
		for len(rest) > 0 && isWhite(rest[0], ifs) {
			rest = rest[1:]
		}
	}
	return field, rest, true
}

// lastField is the rest of a line for the last name: without white space around it, and without a delimiter at the end if
// that is the only one left.
func lastField(line []rawByte, ifs string) []rawByte {
	for len(line) > 0 && isWhite(line[0], ifs) {
		line = line[1:]
	}
	if f, rest, ok := nextField(line, ifs); ok && len(rest) == 0 {
		return f
	}
	for len(line) > 0 && isWhite(line[len(line)-1], ifs) {
		line = line[:len(line)-1]
	}
	return line
}

func trimIFS(s string) string { return strings.Trim(s, " \t\n") }
