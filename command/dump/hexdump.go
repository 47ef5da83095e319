package dump

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"agentrun.dev/command/cfmt"
	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var hexdumpOptions = []getopt.Option{
	{Short: 'b', Long: "one-byte-octal", Help: "one-byte octal display"},
	{Short: 'c', Long: "one-byte-char", Help: "one-byte character display"},
	{Short: 'C', Long: "canonical", Help: "canonical hex+ASCII display"},
	{Short: 'd', Long: "two-bytes-decimal", Help: "two-byte decimal display"},
	{Short: 'o', Long: "two-bytes-octal", Help: "two-byte octal display"},
	{Short: 'x', Long: "two-bytes-hex", Help: "two-byte hexadecimal display"},
	{Short: 'L', Long: "color", Arg: getopt.Optional, Name: "mode", Help: "interpret color formatting specifiers"},
	{Short: 'e', Long: "format", Arg: getopt.Required, Name: "format", Help: "format string to be used for displaying data"},
	{Short: 'f', Long: "format-file", Arg: getopt.Required, Name: "file", Help: "file that contains format strings"},
	{Short: 'n', Long: "length", Arg: getopt.Required, Name: "length", Help: "interpret only length bytes of input"},
	{Short: 's', Long: "skip", Arg: getopt.Required, Name: "offset", Help: "skip offset bytes from the beginning"},
	{Short: 'v', Long: "no-squeezing", Help: "output identical lines"},
	{Short: 'h', Key: 'h'}, {Short: 'V', Key: 'V'},
}

// hexUnit is a part of a format: a text with conversions, applied a number of times to that many bytes.
type hexUnit struct {
	times    int
	explicit bool // the number of times was given
	bytes    int  // taken by one application
	parts    []hexPart
}

// hexPart is literal text, or one conversion.
type hexPart struct {
	literal string
	spec    cfmt.Spec
	kind    byte // 0 literal; d u x o X i c e f g E G s; a address, A end address, C _c, p, U _u
	base    byte // of addresses
	bytes   int
	blank   string // what stands for it where there is no data
}

// hexer is a running hexdump.
type hexer struct {
	t       *tool.T
	formats [][]hexUnit
	block   int
	skip    int64
	limit   int64 // -1: none
	all     bool
	end     []hexPart // shown once after all data
}

// standardFormats are those of the options.
var standardFormats = map[rune][]string{
	'b': {`"%07.7_Ax\n"`, `"%07.7_ax " 16/1 "%03o " "\n"`},
	'c': {`"%07.7_Ax\n"`, `"%07.7_ax " 16/1 "%3_c " "\n"`},
	'C': {`"%08.8_Ax\n"`, `"%08.8_ax  " 8/1 "%02x " "  " 8/1 "%02x "`, `"  |" 16/1 "%_p" "|\n"`},
	'd': {`"%07.7_Ax\n"`, `"%07.7_ax " 8/2 "  %05u " "\n"`},
	'o': {`"%07.7_Ax\n"`, `"%07.7_ax " 8/2 " %06o " "\n"`},
	'x': {`"%07.7_Ax\n"`, `"%07.7_ax " 8/2 "   %04x " "\n"`},
	0:   {`"%07.7_Ax\n"`, `"%07.7_ax " 8/2 "%04x " "\n"`},
}

// Hexdump shows bytes as formats tell it; Hd is hexdump -C.
func Hexdump(t *tool.T) int {
	h := &hexer{t: t, limit: -1}
	spec := tool.Spec{Usage: []string{"[options] <file>..."}, About: "\nDisplay file contents in hexadecimal, decimal, octal, or ascii.", Options: hexdumpOptions, Package: "util-linux) 2.38.1"}
	opts, files := t.Parse(&spec)
	base := t.Args()[0][strings.LastIndexByte(t.Args()[0], '/')+1:]
	for _, o := range opts {
		switch o.Key {
		case 'b', 'c', 'C', 'd', 'o', 'x':
			h.add(standardFormats[o.Key])
		case 'e':
			h.format(o.Arg)
		case 'f':
			h.file(o.Arg)
		case 'n':
			h.limit = h.number(o.Arg, "length")
		case 's':
			h.skip = h.number(o.Arg, "offset")
		case 'v':
			h.all = true
		case 'h':
			t.Help(&spec)
			return 0
		case 'V':
			fmt.Fprintf(t.Out, "%s from util-linux 2.38.1\n", t.Name)
			return 0
		}
	}
	if len(h.formats) == 0 && len(h.end) == 0 {
		key := rune(0)
		if base == "hd" {
			key = 'C'
		}
		h.add(standardFormats[key])
	}
	h.settle()
	return h.run(files)
}

func (h *hexer) number(s, what string) int64 {
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		for i := len(s); i > 0 && err != nil; i-- {
			if v, e := strconv.ParseInt(s[:i], 0, 64); e == nil {
				u, e := tool.ParseSize(strconv.FormatInt(v, 10)+s[i:], "bkKmMGTPEZY")
				n, err = int64(u), e
				break
			}
		}
	}
	if err != nil || n < 0 {
		h.t.Fatal(1, "failed to parse %s: '%s': Invalid argument", what, s)
	}
	return n
}

func (h *hexer) add(formats []string) {
	for _, f := range formats {
		h.format(f)
	}
}

func (h *hexer) file(name string) {
	text, err := h.t.ReadFile(name, maxBlock)
	if err != nil {
		h.t.Fatal(1, "can't read %s: %s", name, tool.Strerror(err))
	}
	for _, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			h.format(line)
		}
	}
}

// format reads a format string: units of [TIMES][/BYTES]"TEXT".
func (h *hexer) format(s string) {
	bad := func() { h.t.Fatal(1, "bad format {%s}", s) }
	var units []hexUnit
	for rest := strings.TrimSpace(s); rest != ""; rest = strings.TrimSpace(rest) {
		u := hexUnit{times: 1}
		digits := func() (n int, ok bool) {
			i := 0
			for i < len(rest) && rest[i] >= '0' && rest[i] <= '9' {
				i++
			}
			if n, _ = strconv.Atoi(rest[:i]); n > maxBlock {
				bad()
			}
			ok = i > 0
			rest = rest[i:]
			return n, ok
		}
		if n, ok := digits(); ok {
			u.times, u.explicit = n, true
			rest = strings.TrimLeft(rest, " \t")
		}
		if strings.HasPrefix(rest, "/") {
			rest = strings.TrimLeft(rest[1:], " \t")
			n, ok := digits()
			if !ok {
				bad()
			}
			u.bytes = n
			rest = strings.TrimLeft(rest, " \t")
		}
		if !strings.HasPrefix(rest, `"`) {
			bad()
		}
		end := strings.IndexByte(rest[1:], '"')
		if end < 0 {
			bad()
		}
		h.unit(&u, rest[1:1+end])
		rest = rest[end+2:]
		units = append(units, u)
	}
	if len(units) == 1 && len(units[0].parts) > 0 && units[0].parts[0].kind == 'A' {
		h.end = units[0].parts
		return
	}
	h.formats = append(h.formats, units)
}

// unit reads a unit's text.
func (h *hexer) unit(u *hexUnit, text string) {
	count := u.bytes
	u.bytes = 0
	conversions := 0
	for text != "" {
		i := strings.IndexByte(text, '%')
		if i < 0 {
			i = len(text)
		}
		if i > 0 {
			u.parts = append(u.parts, hexPart{literal: unescapeHex(text[:i])})
			text = text[i:]
			continue
		}
		p, n := h.conversion(text, count)
		if p.bytes > 0 {
			if conversions++; conversions > 1 && count > 0 {
				h.t.Fatal(1, "byte count with multiple conversion characters")
			}
		}
		u.bytes += p.bytes
		u.parts = append(u.parts, p)
		text = text[n:]
	}
}

// conversion reads one, which begins with %; n is its length.
func (h *hexer) conversion(text string, count int) (p hexPart, n int) {
	p.spec.Prec = -1
	n = 1
	for n < len(text) && p.spec.Flag(text[n]) {
		n++
	}
	flags := text[1:n]
	digits := func() int {
		start := n
		for n < len(text) && text[n] >= '0' && text[n] <= '9' {
			n++
		}
		v, _ := strconv.Atoi(text[start:n])
		return v
	}
	p.spec.Width = digits()
	if n < len(text) && text[n] == '.' {
		n++
		p.spec.Prec = digits()
	}
	p.spec.Clamp()
	start := n
	bad := func() { h.t.Fatal(1, "bad conversion character %%%s", text[start:min(n+1, len(text))]) }
	if n >= len(text) {
		bad()
	}
	sizes := ""
	c := text[n]
	p.kind, p.spec.Verb = c, c
	switch c {
	case 'd', 'i', 'o', 'u', 'x', 'X':
		sizes = "4128"
	case 'e', 'E', 'f', 'g', 'G':
		sizes = "84"
	case 'c':
		sizes = "1"
	case 's':
		if p.bytes = count; p.bytes == 0 {
			p.bytes = p.spec.Prec
		}
		if p.bytes < 0 {
			h.t.Fatal(1, "%%s requires a precision or a byte count")
		}
	case '_':
		n++
		if n >= len(text) {
			bad()
		}
		switch c = text[n]; c {
		case 'a', 'A':
			n++
			if n >= len(text) || strings.IndexByte("dox", text[n]) < 0 {
				bad()
			}
			p.kind, p.base, p.spec.Verb = c, text[n], text[n]
			if p.base == 'd' {
				p.spec.Verb = 'u'
			}
		case 'c', 'p', 'u':
			p.kind, sizes = map[byte]byte{'c': 'C', 'p': 'p', 'u': 'U'}[c], "1"
		default:
			bad()
		}
	default:
		bad()
	}
	if sizes != "" {
		if p.bytes = int(sizes[0] - '0'); count > 0 {
			if strings.IndexByte(sizes, byte('0'+count%10)) < 0 || count > 8 {
				h.t.Fatal(1, "bad byte count for conversion character %s", text[start:n+1])
			}
			p.bytes = count
		}
	}
	blank := cfmt.Spec{Width: p.spec.Width, Prec: -1, Verb: 's'}
	if strings.Contains(flags, "-") {
		blank.Flag('-')
	}
	p.blank = blank.Text("")
	return p, n + 1
}

// unescapeHex reads C's escapes.
func unescapeHex(s string) string {
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\a`, "\a", `\b`, "\b", `\f`, "\f", `\r`, "\r", `\v`, "\v", `\0`, "\x00", `\\`, `\`, `\"`, `"`).Replace(s)
}

// settle finds the size of a block, and has the last units of formats repeated until they fill it.
func (h *hexer) settle() {
	size := func(units []hexUnit) (n int) {
		for _, u := range units {
			n += u.times * u.bytes
		}
		return n
	}
	for _, f := range h.formats {
		h.block = max(h.block, size(f))
	}
	if h.block > maxBlock {
		h.t.Fatal(1, "line too long")
	}
	for _, f := range h.formats {
		for i := len(f) - 1; i >= 0; i-- {
			u := &f[i]
			if u.bytes == 0 {
				continue
			}
			if !u.explicit {
				u.times += (h.block - size(f)) / u.bytes
			}
			break
		}
	}
}

func (h *hexer) run(files []string) int {
	t := h.t
	h.check(files)
	r, c := newConcat(t, files)
	total := skip(r, h.skip)
	if total < h.skip {
		h.skip = total
	}
	if h.block == 0 {
		h.finish(h.skip)
		return 0
	}
	buf, last := make([]byte, h.block), []byte(nil)
	at, starred := h.skip, false
	for {
		want := int64(h.block)
		if h.limit >= 0 {
			want = min(want, h.limit-(at-h.skip))
		}
		n, err := io.ReadFull(r, buf[:want])
		if n == 0 {
			break
		}
		clear(buf[n:])
		if n == h.block && !h.all && last != nil && bytes.Equal(buf, last) {
			if !starred {
				t.Out.WriteString("*\n")
				starred = true
			}
		} else {
			starred = false
			for _, f := range h.formats {
				h.show(f, buf, n, at)
			}
			last = append(last[:0], buf...)
		}
		at += int64(n)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
	}
	if at > h.skip || h.skip > 0 {
		h.finish(at)
	}
	if c.fail {
		return 1
	}
	return 0
}

// check ends the command if none of the files can be opened.
func (h *hexer) check(files []string) {
	if len(files) == 0 {
		return
	}
	for _, name := range files {
		if in, err := h.t.Open(name); err == nil {
			in.Close()
			return
		}
	}
	for _, name := range files {
		_, err := h.t.Open(name)
		h.t.WarnFile(name, err)
	}
	h.t.Fatal(1, "all input file arguments failed")
}

func (h *hexer) finish(at int64) {
	for _, p := range h.end {
		if p.kind == 0 {
			h.t.Out.WriteString(p.literal)
		} else {
			h.t.Out.WriteString(p.spec.Uint(uint64(at)))
		}
	}
}

// show writes a block in a format; from n on there is no data.
func (h *hexer) show(units []hexUnit, block []byte, n int, at int64) {
	pos := 0
	for _, u := range units {
		for i := range u.times {
			final := i == u.times-1 && u.times > 1
			for k, p := range u.parts {
				if p.kind == 0 {
					text := p.literal
					if final && k == len(u.parts)-1 {
						text = strings.TrimRight(text, " \t\n")
					}
					h.t.Out.WriteString(text)
					continue
				}
				if p.kind == 'a' || p.kind == 'A' {
					h.t.Out.WriteString(p.spec.Uint(uint64(at + int64(pos))))
					continue
				}
				if pos >= n || pos+p.bytes > len(block) {
					h.t.Out.WriteString(p.blank)
				} else {
					h.t.Out.WriteString(p.text(block[pos : pos+p.bytes]))
				}
				pos += p.bytes
			}
		}
	}
}

var byteNames = strings.Fields("nul soh stx etx eot enq ack bel bs ht lf vt ff cr so si dle dc1 dc2 dc3 dc4 nak syn etb can em sub esc fs gs rs us")

// text renders the bytes that a conversion takes.
func (p *hexPart) text(b []byte) string {
	spec := p.spec
	word := func(s string) string {
		w := cfmt.Spec{Width: spec.Width, Prec: -1, Verb: 's', Minus: spec.Minus}
		return w.Text(s)
	}
	switch p.kind {
	case 'c':
		return word(string(b))
	case 's':
		if i := bytes.IndexByte(b, 0); i >= 0 {
			b = b[:i]
		}
		return word(string(b))
	case 'p':
		if b[0] >= 32 && b[0] < 127 {
			return word(string(b))
		}
		return word(".")
	case 'C':
		if i := bytes.IndexByte([]byte("\x00\a\b\f\n\r\t\v"), b[0]); i >= 0 {
			return word(`\` + "0abfnrtv"[i:i+1])
		}
		if b[0] >= 32 && b[0] < 127 {
			return word(string(b))
		}
		return word(fmt.Sprintf("%03o", b[0]))
	case 'U':
		switch c := b[0]; {
		case c < 32:
			return word(byteNames[c])
		case c == 127:
			return word("del")
		case c < 127:
			return word(string(b))
		}
		return word(fmt.Sprintf("%02x", b[0]))
	}
	var wide [8]byte
	copy(wide[:], b)
	v := binary.LittleEndian.Uint64(wide[:])
	switch p.kind {
	case 'd', 'i':
		shift := 64 - 8*len(b)
		return spec.Int(int64(v<<shift) >> shift)
	case 'o', 'u', 'x', 'X':
		return spec.Uint(v)
	}
	f := math.Float64frombits(v)
	if len(b) == 4 {
		f = float64(math.Float32frombits(uint32(v)))
	}
	return spec.Float(cfmt.Double(f))
}
