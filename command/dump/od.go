package dump

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const (
	keyEndian = tool.KeyOwn + iota
	keyTraditional
)

var odSpecs = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]...", "[-abcdfilosx]... [FILE] [[+]OFFSET[.][b]]", "--traditional [OPTION]... [FILE] [[+]OFFSET[.][b] [+][LABEL][.][b]]"},
	About: "Write an unambiguous representation, octal bytes by default,\nof FILE to standard output.  With more than one FILE argument,\nconcatenate them in the listed order to form the input.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'A', Long: "address-radix", Arg: getopt.Required, Name: "RADIX", Help: "output format for file offsets; one of [doxn]"},
		{Long: "endian", Key: keyEndian, Arg: getopt.Required, Name: "{big|little}", Help: "swap input bytes according the specified order"},
		{Short: 'j', Long: "skip-bytes", Arg: getopt.Required, Name: "BYTES", Help: "skip BYTES input bytes first"},
		{Short: 'N', Long: "read-bytes", Arg: getopt.Required, Name: "BYTES", Help: "limit dump to BYTES input bytes"},
		{Short: 'S', Long: "strings", Arg: getopt.Required, Name: "BYTES", Help: "output strings of at least BYTES graphic chars"},
		{Short: 't', Long: "format", Arg: getopt.Required, Name: "TYPE", Help: "select output format or formats"},
		{Short: 'v', Long: "output-duplicates", Help: "do not use * to mark line suppression"},
		{Short: 'w', Long: "width", Arg: getopt.Optional, Name: "BYTES", Help: "output BYTES bytes per output line; 32 if not given"},
		{Long: "traditional", Key: keyTraditional, Help: "accept arguments in third form above"},
		{Short: 'a', Help: "same as -t a"}, {Short: 'b', Help: "same as -t o1"}, {Short: 'c', Help: "same as -t c"},
		{Short: 'd', Help: "same as -t u2"}, {Short: 'f', Help: "same as -t fF"}, {Short: 'i', Help: "same as -t dI"},
		{Short: 'l', Help: "same as -t dL"}, {Short: 'o', Help: "same as -t o2"}, {Short: 's', Help: "same as -t d2"},
		{Short: 'x', Help: "same as -t x2"}, {Short: 'B'}, {Short: 'D'}, {Short: 'e'}, {Short: 'F'}, {Short: 'H'},
		{Short: 'h'}, {Short: 'I'}, {Short: 'L'}, {Short: 'O'}, {Short: 'X'},
	},
	Package: tool.Coreutils,
}

// odLetters are the types that options of one letter stand for.
var odLetters = map[rune]string{'a': "a", 'b': "o1", 'c': "c", 'd': "u2", 'f': "fF", 'i': "dI", 'l': "dL", 'o': "o2", 's': "d2", 'x': "x2",
	'B': "o2", 'D': "u4", 'e': "fD", 'F': "fD", 'H': "x4", 'h': "x2", 'I': "dL", 'L': "dL", 'O': "o4", 'X': "x4"}

// odDump is a run of od.
type odDump struct {
	t           *tool.T
	specs       []odSpec
	radix       byte
	order       binary.ByteOrder
	skip, limit int64 // limit is -1 without
	minimum     int64 // of -S, zero without
	all         bool
	width       int64 // as asked for: -1 is not at all
	block, unit int   // bytes in a line, and what they must be a multiple of
	label       int64 // added to a second address; -1 is none
	traditional bool
	modern      bool
}

// Od shows files in octal and other formats.
func Od(t *tool.T) int {
	opts, files := t.Parse(&odSpecs)
	d := &odDump{t: t, radix: 'o', order: binary.LittleEndian, limit: -1, width: -1, label: -1}
	for _, o := range opts {
		d.option(o)
	}
	if d.minimum > 0 && len(d.specs) > 0 {
		t.Fatal(1, "no type may be specified when dumping strings")
	}
	files = d.oldOffset(files)
	if len(d.specs) == 0 {
		d.specs = parseODType(t, "o2")
	}
	d.layout()
	r, state := newConcat(t, files)
	if d.skip > 0 && skip(r, d.skip) < d.skip {
		if !state.fail {
			t.Warn("cannot skip past end of combined input")
		}
		return 1
	}
	if d.minimum > 0 {
		d.strings(r)
	} else {
		d.run(r)
	}
	if state.fail {
		return 1
	}
	return 0
}

func (d *odDump) option(o getopt.Opt) {
	t := d.t
	switch o.Key {
	case 'A':
		if len(o.Arg) == 0 || !strings.Contains("doxn", o.Arg[:1]) {
			t.Fatal(1, "invalid output address radix '%s'; it must be one character from [doxn]", o.Arg)
		}
		d.radix, d.modern = o.Arg[0], true
	case keyEndian:
		d.order = []binary.ByteOrder{binary.LittleEndian, binary.BigEndian}[t.Choice(1, "--endian", o.Arg, [][]string{{"little"}, {"big"}})]
	case 'j':
		d.skip, d.modern = d.number(o), true
	case 'N':
		d.limit, d.modern = d.number(o), true
	case 'S':
		d.minimum, d.modern = max(d.number(o), 1), true
	case 't':
		d.specs, d.modern = append(d.specs, parseODType(t, o.Arg)...), true
	case 'v':
		d.all, d.modern = true, true
	case 'w':
		d.width, d.modern = 32, true
		if o.Has {
			if d.width = d.number(o); d.width > maxBlock {
				t.Fatal(1, "%s is too large", o.Arg)
			}
		}
	case keyTraditional:
		d.traditional = true
	default:
		d.specs = append(d.specs, parseODType(t, odLetters[o.Key])...)
	}
}

// number reads a number of bytes, which may be octal or hexadecimal.
func (d *odDump) number(o getopt.Opt) int64 {
	arg := o.Arg
	if len(arg) > 1 && arg[0] == '0' {
		end, base, start := 1, 8, 1
		if arg[1] == 'x' || arg[1] == 'X' {
			base, start, end = 16, 2, 2
		}
		for end < len(arg) && strings.IndexByte("0123456789abcdefABCDEF"[:map[int]int{8: 8, 16: 22}[base]], arg[end]) >= 0 {
			end++
		}
		if n, err := strconv.ParseUint(arg[start:end], base, 63); err == nil {
			arg = strconv.FormatUint(n, 10) + arg[end:]
		}
	}
	n, err := tool.ParseSize(arg, tool.SizeSuffixes)
	switch {
	case err == nil && n <= math.MaxInt64:
		return int64(n)
	case errors.Is(err, tool.ErrSuffix):
		d.t.Fatal(1, "invalid suffix in %s argument '%s'", o.As, o.Arg)
	case errors.Is(err, tool.ErrNotNumber):
		d.t.Fatal(1, "invalid %s argument '%s'", o.As, o.Arg)
	}
	d.t.Fatal(1, "%s argument '%s' too large", o.As, o.Arg)
	return 0
}

// parseOld reads an offset as od took it before there was -j.
func parseOld(s string) (int64, bool) {
	s = strings.TrimPrefix(s, "+")
	factor, base := int64(1), 8
	if n := len(s); n > 0 && (s[n-1] == 'b' || s[n-1] == 'B') && !strings.HasPrefix(s, "0x") {
		s, factor = s[:n-1], 512
	}
	if strings.HasSuffix(s, ".") {
		s, base = s[:len(s)-1], 10
	} else if strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X") {
		s, base = s[2:], 16
	}
	n, err := strconv.ParseUint(s, base, 53)
	return int64(n) * factor, err == nil
}

// oldOffset takes an offset, and with --traditional a label too, off the operands.
func (d *odDump) oldOffset(files []string) []string {
	if d.modern && !d.traditional {
		return files
	}
	n := len(files)
	if d.traditional && n > 3 {
		d.t.Extra(1, files[3])
	}
	switch {
	case n == 1 && (d.traditional || strings.HasPrefix(files[0], "+")):
		if off, ok := parseOld(files[0]); ok {
			d.skip = off
			return nil
		}
	case n == 2 && files[1] != "" && (d.traditional || files[1][0] == '+' || files[1][0] >= '0' && files[1][0] <= '9'):
		second, ok := parseOld(files[1])
		if !ok {
			break
		}
		if first, ok := parseOld(files[0]); ok && d.traditional {
			d.skip, d.label = first, second-first
			return nil
		}
		d.skip = second
		return files[:1]
	case n == 3 && d.traditional:
		first, ok1 := parseOld(files[1])
		label, ok2 := parseOld(files[2])
		if ok1 && ok2 {
			d.skip, d.label = first, label-first
			return files[:1]
		}
	}
	if d.traditional && n > 1 {
		d.t.Extra(1, files[1])
	}
	return files
}

// layout chooses the bytes in a line and lines the specs up.
func (d *odDump) layout() {
	d.unit = 1
	for _, s := range d.specs {
		d.unit = max(d.unit, s.size) // sizes are powers of two
	}
	switch {
	case d.width < 0:
		d.block = max(16, d.unit)
	case d.width > 0 && d.width%int64(d.unit) == 0:
		d.block = int(d.width)
	default:
		d.t.Warn("warning: invalid width %d; using %d instead", d.width, d.unit)
		d.block = d.unit
	}
	widest := 0
	for _, s := range d.specs {
		widest = max(widest, (s.width+1)*(d.block/s.size))
	}
	for i := range d.specs {
		s := &d.specs[i]
		s.padding = widest - s.width*(d.block/s.size)
	}
}

// address writes an offset.
func (d *odDump) address(off int64) {
	switch d.radix {
	case 'o':
		fmt.Fprintf(d.t.Out, "%07o", off)
	case 'd':
		fmt.Fprintf(d.t.Out, "%07d", off)
	case 'x':
		fmt.Fprintf(d.t.Out, "%06x", off)
	}
	if d.label >= 0 {
		if d.radix == 'x' {
			fmt.Fprintf(d.t.Out, " (%06x)", off+d.label)
		} else if d.radix == 'd' {
			fmt.Fprintf(d.t.Out, " (%07d)", off+d.label)
		} else {
			fmt.Fprintf(d.t.Out, " (%07o)", off+d.label)
		}
	}
}

// run dumps what r holds.
func (d *odDump) run(r *bufio.Reader) {
	off := d.skip
	src := io.Reader(r)
	if d.limit >= 0 {
		src = io.LimitReader(r, d.limit)
	}
	cur, prev := make([]byte, d.block), make([]byte, d.block)
	first, starred := true, false
	for {
		n, err := io.ReadFull(src, cur)
		if n > 0 {
			if !d.all && !first && n == d.block && bytes.Equal(cur, prev) {
				if !starred {
					d.t.Out.WriteString("*\n")
				}
				starred = true
			} else {
				clear(cur[n:])
				d.line(off, cur, n)
				starred = false
			}
			off += int64(n)
			cur, prev, first = prev, cur, false
		}
		if err != nil {
			break
		}
	}
	if d.radix != 'n' || d.label >= 0 {
		d.address(off)
		d.t.Out.WriteByte('\n')
	}
}

// line shows a block, of which n bytes were read.
func (d *odDump) line(off int64, b []byte, n int) {
	out := d.t.Out
	for i := range d.specs {
		s := &d.specs[i]
		fields := d.block / s.size
		shown := (n + s.size - 1) / s.size
		switch {
		case i == 0:
			d.address(off)
		case d.radix == 'x':
			pad(out, 6)
		case d.radix != 'n':
			pad(out, 7)
		}
		column := 0
		for k := range shown {
			text := s.field(b[k*s.size:(k+1)*s.size], d.order)
			end := s.end(k+1, fields)
			pad(out, end-column-len(text))
			out.WriteString(text)
			column = end
		}
		if s.trailer {
			pad(out, s.end(fields, fields)-column)
			out.WriteString("  >")
			for _, c := range b[:n] {
				if c < ' ' || c >= 0x7f {
					c = '.'
				}
				out.WriteByte(c)
			}
			out.WriteByte('<')
		}
		out.WriteByte('\n')
	}
}

// strings shows the strings that end with a NUL. A string longer than maxBlock is cut into several.
func (d *odDump) strings(r *bufio.Reader) {
	off := d.skip
	end := int64(math.MaxInt64)
	if d.limit >= 0 {
		end = off + d.limit
	}
	var text []byte
	for off < end {
		c, err := r.ReadByte()
		if err != nil {
			return
		}
		off++
		if c >= ' ' && c < 0x7f {
			if len(text) < maxBlock {
				text = append(text, c)
			}
			continue
		}
		if c == 0 && int64(len(text)) >= d.minimum {
			if d.radix != 'n' {
				d.address(off - 1 - int64(len(text)))
				d.t.Out.WriteByte(' ')
			}
			for _, b := range text {
				d.t.Out.WriteString(odChar(b))
			}
			d.t.Out.WriteByte('\n')
		}
		text = text[:0]
	}
}
