package dump

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/command/tool"
)

const xxdUsage = `Usage:
       xxd [options] [infile [outfile]]
    or
       xxd -r [-s [-]offset] [-c cols] [-ps] [infile [outfile]]
Options:
    -a          toggle autoskip: a single '*' replaces lines of zeros.
    -b          binary digits instead of hexadecimal ones.
    -C          capitalize variable names in C include file style (-i).
    -c cols     format <cols> octets per line. Default 16 (-i: 12, -ps: 30).
    -d          show offset in decimal instead of hex.
    -E          show characters in EBCDIC.
    -e          little-endian dump.
    -g bytes    number of octets per group in normal output. Default 2 (-e: 4).
    -h          print this summary.
    -i          output in C include file style.
    -l len      stop after <len> octets.
    -n name     set the variable name used in C include output (-i).
    -o off      add <off> to the displayed file position.
    -ps         output in postscript plain hexdump style.
    -r          reverse operation: convert (or patch) hexdump into binary.
    -r -s off   revert with <off> added to file positions found in hexdump.
    -s [+][-]seek  start at <seek> bytes abs. (or +: rel.) infile offset.
    -u          use upper case hex letters.
    -v          show version.
`

// ebcdic is what bytes from 64 on are in EBCDIC, as far as they can be printed.
const ebcdic = "" +
	" ...........<(+|&.........!$*);~-/.........,%_>?.........`:#@'=\"" +
	".abcdefghi.......jklmnopqr^.......stuvwxyz...[...............].." +
	"{ABCDEFGHI......}JKLMNOPQR......\\.STUVWXYZ......0123456789......"

// xxdMaxCols bounds the octets in a line.
const xxdMaxCols = 256

// xxd is a run of the command.
type xxd struct {
	t                                               *tool.T
	autoskip, bits, capital, decimal, ebcdic        bool
	little, include, plain, reverse, upper, colsSet bool
	cols, group                                     int
	limit                                           int64 // -1 without
	display, seek                                   int64
	fromEnd                                         bool
	name                                            string
	out                                             *bufio.Writer
	zeros                                           int    // lines of zeros in a row, for autoskip
	held                                            string // the second of them
}

// usage ends the command after a mistake.
func (x *xxd) usage() {
	io.WriteString(x.t.Stderr(), xxdUsage)
	x.t.Exit(1)
}

// options reads the options, whose first letter tells them apart, and returns the operands.
func (x *xxd) options(args []string) []string {
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		a = strings.TrimPrefix(a, "-")
		if len(a) > 1 && a[0] == '-' {
			a = a[1:]
		}
		if x.flag(a) {
			continue
		}
		value := a[1:]
		long, takes := map[byte]string{'c': "ols", 'g': "roup", 'o': "ffset", 's': "eek", 'l': "en", 'n': "ame"}[a[0]]
		if !takes {
			x.usage()
		}
		if value == "" || strings.HasPrefix(value, long) || a[0] == 's' && strings.HasPrefix(value, "kip") {
			if len(args) == 0 {
				x.usage()
			}
			value, args = args[0], args[1:]
		}
		x.value(a[0], value)
	}
	return args
}

// flag takes an option without a value.
func (x *xxd) flag(a string) bool {
	switch a[0] {
	case 'a':
		x.autoskip = !x.autoskip
	case 'b':
		x.bits = true
	case 'e':
		x.little = true
	case 'u':
		x.upper = true
	case 'p':
		x.plain = true
	case 'i':
		x.include = true
	case 'C':
		x.capital = true
	case 'd':
		x.decimal = true
	case 'r':
		x.reverse = true
	case 'E':
		x.ebcdic = true
	case 'h':
		x.usage()
	case 'v':
		io.WriteString(x.t.Stderr(), "xxd 2022-01-14 (AgentRun's own)\n")
		x.t.Exit(0)
	case 'c':
		if !strings.HasPrefix(a[1:], "apitalize") {
			return false
		}
		x.capital = true
	default:
		return false
	}
	return true
}

// value takes an option with a value.
func (x *xxd) value(letter byte, v string) {
	if letter == 'n' {
		x.name = v
		return
	}
	n := xxdNumber(strings.TrimPrefix(v, "+"))
	switch letter {
	case 'c':
		x.cols, x.colsSet = int(min(max(n, 0), maxBlock)), true
	case 'g':
		x.group = int(min(max(n, -1), maxBlock))
	case 'o':
		x.display = n
	case 'l':
		x.limit = max(n, 0)
	case 's':
		x.seek = n
		x.fromEnd = n < 0
	}
}

// xxdNumber reads as much of a number as there is, as strtol does.
func xxdNumber(s string) int64 {
	for end := len(s); end > 0; end-- {
		if n, err := strconv.ParseInt(s[:end], 0, 64); err == nil && s[end-1] != '_' {
			return n
		}
	}
	return 0
}

// Xxd makes a hexadecimal dump, or makes a file of one.
func Xxd(t *tool.T) int {
	x := &xxd{t: t, group: -1, limit: -1, out: t.Out}
	files := x.options(t.Args()[1:])
	if len(files) > 2 {
		x.usage()
	}
	x.defaults()
	name := "-"
	if len(files) > 0 {
		name = files[0]
	}
	in, err := t.Open(name)
	if err != nil {
		t.Fatal(2, "%s: %s", name, tool.Strerror(err))
	}
	defer in.Close()
	var file *xxdFile
	if len(files) > 1 && files[1] != "-" {
		flags := syscall.O_WRONLY | syscall.O_CREAT
		if !x.reverse {
			flags |= syscall.O_TRUNC
		}
		f, err := t.Process.Open(files[1], flags, 0o666)
		if err != nil {
			t.Fatal(3, "%s: %s", files[1], tool.Strerror(err))
		}
		defer f.Close()
		file = &xxdFile{f: f}
		x.out = bufio.NewWriterSize(file, 32<<10)
	}
	r := bufio.NewReaderSize(in, 32<<10)
	if x.reverse {
		x.revert(r, file)
	} else {
		x.start(in, r)
		x.dump(r, name)
	}
	if file != nil {
		if err := x.out.Flush(); err != nil {
			t.Fatal(3, "%s: %s", files[1], tool.Strerror(err))
		}
	}
	return 0
}

// defaults fills in what wasn't asked for, and refuses what can't be.
func (x *xxd) defaults() {
	t := x.t
	if !x.colsSet || x.cols == 0 && !x.plain {
		x.cols = 16
		switch {
		case x.plain:
			x.cols = 30
		case x.include:
			x.cols = 12
		case x.bits:
			x.cols = 6
		}
	}
	if x.group < 0 {
		x.group = 2
		switch {
		case x.bits:
			x.group = 1
		case x.little:
			x.group = 4
		}
	}
	if !x.plain && x.cols > xxdMaxCols {
		t.Fatal(1, "invalid number of columns (max. 256).")
	}
	if x.group == 0 || x.group > x.cols {
		x.group = max(x.cols, 1)
	}
	if x.little && x.group&(x.group-1) != 0 {
		t.Fatal(1, "number of octets per group must be a power of 2 with -e.")
	}
	if x.reverse && (x.bits || x.include || x.little) {
		t.Fatal(255, "Sorry, cannot revert this type of hexdump")
	}
}

// start skips to where the dump begins.
func (x *xxd) start(in *tool.Input, r *bufio.Reader) {
	if x.fromEnd {
		attr, err := in.Attr()
		if err != nil || attr.Size+x.seek < 0 {
			x.t.Fatal(4, "Sorry, cannot seek.")
		}
		x.seek += attr.Size
	}
	if x.seek > 0 && skip(r, x.seek) < x.seek {
		x.t.Exit(0) // what lies behind the end is empty
	}
}

func (x *xxd) dump(r *bufio.Reader, name string) {
	src := io.Reader(r)
	if x.limit >= 0 {
		src = io.LimitReader(r, x.limit)
	}
	switch {
	case x.include:
		if x.name != "" {
			name = x.name
		}
		x.dumpC(src, name)
		return
	case x.plain:
		x.dumpPlain(src)
		return
	}
	b := make([]byte, x.cols)
	line := ""
	for off := x.seek; ; off += int64(x.cols) {
		n, err := io.ReadFull(src, b)
		if n == x.cols {
			zero := true
			for _, c := range b {
				zero = zero && c == 0
			}
			line = x.line(off, b)
			x.emit(line, zero && x.autoskip, false)
		} else if n > 0 {
			x.emit(x.line(off, b[:n]), false, false)
			return
		}
		if err != nil {
			if x.autoskip {
				x.emit(line, false, true)
			}
			return
		}
	}
}

// emit writes a line. The second of several lines of zeros is held back, since only a third makes it an asterisk; last
// ends the dump after line, which was already given.
func (x *xxd) emit(line string, zero, last bool) {
	if zero && x.zeros == 1 {
		x.held = line
	}
	if zero {
		x.zeros++
		if x.zeros > 1 {
			return
		}
		x.out.WriteString(line)
		return
	}
	if last {
		x.zeros--
	}
	if x.zeros == 2 {
		x.out.WriteString(x.held)
	} else if x.zeros > 2 {
		x.out.WriteString("*\n")
	}
	if !last || x.zeros > 0 {
		x.out.WriteString(line)
	}
	x.zeros = 0
}

// line renders a line of the normal dump.
func (x *xxd) line(off int64, b []byte) string {
	address := fmt.Sprintf("%08x:", uint64(off+x.display))
	if x.decimal {
		address = fmt.Sprintf("%08d:", off+x.display)
	}
	digits := "0123456789abcdef"
	if x.upper {
		digits = "0123456789ABCDEF"
	}
	wide := 2*x.group + 1
	if x.bits {
		wide = 8*x.group + 1
	}
	text := len(address) + 3 + (wide*x.cols-1)/x.group
	room := len(address) + 3 + wide*(x.cols/x.group+1) // a little-endian group may stand out behind the text's place
	out := []byte(strings.Repeat(" ", max(room, text+len(b))))
	copy(out, address)
	for i, c := range b {
		at := i
		if x.little && !x.bits {
			at = i ^ (x.group - 1)
		}
		p := len(address) + 1 + wide*at/x.group
		if x.bits {
			for bit := range 8 {
				out[p+bit] = '0' + c>>(7-bit)&1
			}
		} else {
			out[p], out[p+1] = digits[c>>4], digits[c&15]
		}
	}
	for i, c := range b {
		if x.ebcdic {
			if c >= 64 && int(c)-64 < len(ebcdic) {
				c = ebcdic[c-64]
			} else {
				c = '.'
			}
		}
		if c < ' ' || c >= 0x7f {
			c = '.'
		}
		out[text+i] = c
	}
	return string(out[:text+len(b)]) + "\n"
}

// dumpPlain writes digits only.
func (x *xxd) dumpPlain(src io.Reader) {
	format := "%02x"
	if x.upper {
		format = "%02X"
	}
	size := x.cols
	if size == 0 {
		size = 4096
	}
	b := make([]byte, size)
	any := false
	for {
		n, err := io.ReadFull(src, b)
		for _, c := range b[:n] {
			fmt.Fprintf(x.out, format, c)
		}
		if n > 0 && x.cols > 0 {
			x.out.WriteByte('\n')
		}
		any = any || n > 0
		if err != nil {
			if any && x.cols == 0 {
				x.out.WriteByte('\n')
			}
			return
		}
	}
}

// dumpC writes a C array, without its declaration for standard input.
func (x *xxd) dumpC(src io.Reader, name string) {
	r := bufio.NewReader(src)
	declare := name != "-"
	id := []byte(name)
	for i, c := range id {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			id[i] = '_'
		}
	}
	name = string(id)
	if name != "" && name[0] >= '0' && name[0] <= '9' {
		name = "__" + name
	}
	length := "len"
	if x.capital {
		name, length = strings.ToUpper(name), "LEN"
	}
	if declare {
		fmt.Fprintf(x.out, "unsigned char %s[] = {\n", name)
	}
	format := "%s0x%02x"
	if x.upper {
		format = "%s0X%02X"
	}
	n := 0
	for ; ; n++ {
		c, err := r.ReadByte()
		if err != nil {
			break
		}
		lead := ", "
		switch {
		case n == 0:
			lead = "  "
		case n%x.cols == 0:
			lead = ",\n  "
		}
		fmt.Fprintf(x.out, format, lead, c)
	}
	if n > 0 {
		x.out.WriteByte('\n')
	}
	if declare {
		fmt.Fprintf(x.out, "};\nunsigned int %s_%s = %d;\n", name, length, n)
	}
}

// xxdFile writes at a place of its own, so that a dump can patch a file.
type xxdFile struct {
	f interface {
		WriteAt(p []byte, off int64) (int, error)
	}
	off int64
}

func (f *xxdFile) Write(p []byte) (int, error) {
	n, err := f.f.WriteAt(p, f.off)
	f.off += int64(n)
	return n, err
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// revert makes bytes of a dump. A file is patched at the dump's offsets; a stream gets zeros in the gaps.
func (x *xxd) revert(r *bufio.Reader, file *xxdFile) {
	var have, want int64
	n1, n2, n3 := -1, 0, 0
	p, garbage := x.cols, true
	for {
		c, err := r.ReadByte()
		if err != nil {
			return
		}
		if c == '\r' || x.plain && (c == ' ' || c == '\n' || c == '\t') {
			continue
		}
		n3, n2, n1 = n2, n1, hexDigit(c)
		if n1 < 0 && garbage {
			continue
		}
		garbage = false
		if !x.plain && p >= x.cols {
			if n1 < 0 {
				p = 0
			} else {
				want = want<<4 | int64(n1)
			}
			continue
		}
		if x.seek+want != have {
			have = x.move(file, have, x.seek+want)
		}
		if n2 >= 0 && n1 >= 0 {
			x.out.WriteByte(byte(n2<<4 | n1))
			have, want, n1 = have+1, want+1, -1
			if p++; !x.plain && p >= x.cols {
				c = skipLine(r, c)
			}
		} else if n1 < 0 && n2 < 0 && n3 < 0 {
			c = skipLine(r, c)
		}
		if c == '\n' {
			if !x.plain {
				want = 0
			}
			p, garbage = x.cols, true
		}
	}
}

// skipLine reads to the end of the line in which c is, and returns the last byte read.
func skipLine(r *bufio.Reader, c byte) byte {
	for c != '\n' {
		b, err := r.ReadByte()
		if err != nil {
			break
		}
		c = b
	}
	return c
}

// move brings the output from one offset to another.
func (x *xxd) move(file *xxdFile, have, want int64) int64 {
	if want < 0 || file == nil && want < have {
		x.t.Fatal(5, "Sorry, cannot seek backwards.")
	}
	if file != nil {
		if err := x.out.Flush(); err != nil && !errors.Is(err, io.EOF) {
			x.t.Fatal(3, "%s", tool.Strerror(err))
		}
		file.off = want
		return want
	}
	for ; have < want; have++ {
		x.out.WriteByte(0)
	}
	return have
}
