package text

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"golang.org/x/text/unicode/norm"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

// charset is an encoding with its names; the first is the one that -l shows first.
type charset struct {
	names []string
	enc   encoding.Encoding // nil: UTF-8, or ASCII if it is so named
}

func charsets() []charset {
	list := []charset{
		{[]string{"UTF-8", "UTF8", "ISO-10646/UTF-8"}, nil}, {[]string{"ASCII", "US-ASCII", "ANSI_X3.4-1968", "ISO646-US", "646", "C"}, nil},
		{[]string{"UTF-16", "UTF16"}, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)}, {[]string{"UTF-16LE", "UTF16LE", "UCS-2LE"}, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)}, {[]string{"UTF-16BE", "UTF16BE", "UCS-2BE"}, unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
		{[]string{"UTF-32", "UTF32"}, utf32.UTF32(utf32.LittleEndian, utf32.UseBOM)}, {[]string{"UTF-32LE", "UTF32LE", "UCS-4LE"}, utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)}, {[]string{"UTF-32BE", "UTF32BE", "UCS-4BE", "UCS-4", "UCS4"}, utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)},
		{[]string{"UCS-2", "UCS2", "ISO-10646-UCS-2"}, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)},
		{[]string{"EUC-JP", "EUCJP"}, japanese.EUCJP}, {[]string{"SHIFT_JIS", "SHIFT-JIS", "SJIS", "CP932", "WINDOWS-31J", "MS_KANJI"}, japanese.ShiftJIS}, {[]string{"ISO-2022-JP"}, japanese.ISO2022JP},
		{[]string{"EUC-KR", "EUCKR", "CP949", "UHC"}, korean.EUCKR}, {[]string{"GBK", "CP936", "GB2312", "EUC-CN"}, simplifiedchinese.GBK}, {[]string{"GB18030"}, simplifiedchinese.GB18030}, {[]string{"HZ-GB-2312", "HZ"}, simplifiedchinese.HZGB2312}, {[]string{"BIG5", "BIG-5", "CP950"}, traditionalchinese.Big5},
		{[]string{"KOI8-R"}, charmap.KOI8R}, {[]string{"KOI8-U"}, charmap.KOI8U}, {[]string{"MACINTOSH", "MAC"}, charmap.Macintosh}, {[]string{"MAC-CYRILLIC"}, charmap.MacintoshCyrillic},
		{[]string{"CP437", "IBM437", "437"}, charmap.CodePage437}, {[]string{"CP850", "IBM850", "850"}, charmap.CodePage850}, {[]string{"CP852", "IBM852", "852"}, charmap.CodePage852}, {[]string{"CP855", "IBM855"}, charmap.CodePage855}, {[]string{"CP858", "IBM858"}, charmap.CodePage858}, {[]string{"CP860", "IBM860"}, charmap.CodePage860}, {[]string{"CP862", "IBM862"}, charmap.CodePage862}, {[]string{"CP863", "IBM863"}, charmap.CodePage863}, {[]string{"CP865", "IBM865"}, charmap.CodePage865}, {[]string{"CP866", "IBM866"}, charmap.CodePage866},
		{[]string{"CP037", "IBM037", "EBCDIC-CP-US"}, charmap.CodePage037}, {[]string{"CP1047", "IBM1047"}, charmap.CodePage1047}, {[]string{"CP1140", "IBM1140"}, charmap.CodePage1140}, {[]string{"WINDOWS-874", "CP874"}, charmap.Windows874}, {[]string{"TIS-620", "TIS620"}, charmap.Windows874},
	}
	for i, e := range []*charmap.Charmap{charmap.ISO8859_1, charmap.ISO8859_2, charmap.ISO8859_3, charmap.ISO8859_4, charmap.ISO8859_5, charmap.ISO8859_6, charmap.ISO8859_7, charmap.ISO8859_8, charmap.ISO8859_9, charmap.ISO8859_10, nil, nil, charmap.ISO8859_13, charmap.ISO8859_14, charmap.ISO8859_15, charmap.ISO8859_16} {
		if e == nil {
			continue
		}
		names := []string{fmt.Sprintf("ISO-8859-%d", i+1), fmt.Sprintf("ISO8859-%d", i+1), fmt.Sprintf("ISO_8859-%d", i+1), fmt.Sprintf("8859_%d", i+1), fmt.Sprintf("ISO88591%d", i+1)}
		if latin := map[int]string{1: "LATIN1", 2: "LATIN2", 3: "LATIN3", 4: "LATIN4", 9: "LATIN5", 10: "LATIN6", 13: "LATIN7", 14: "LATIN8", 15: "LATIN-9", 16: "LATIN10"}[i+1]; latin != "" {
			names = append(names, latin)
		}
		if i == 0 {
			names = append(names, "L1", "CP819", "IBM819", "ISO88591")
		}
		list = append(list, charset{names, e})
	}
	for i, e := range []*charmap.Charmap{charmap.Windows1250, charmap.Windows1251, charmap.Windows1252, charmap.Windows1253, charmap.Windows1254, charmap.Windows1255, charmap.Windows1256, charmap.Windows1257, charmap.Windows1258} {
		list = append(list, charset{[]string{fmt.Sprintf("WINDOWS-125%d", i), fmt.Sprintf("CP125%d", i), fmt.Sprintf("MS125%d", i)}, e})
	}
	return list
}

// findCharset finds one by any name, in any case.
func findCharset(name string) (charset, bool) {
	name = strings.ToUpper(name)
	for _, c := range charsets() {
		if slices.Contains(c.names, name) {
			return c, true
		}
	}
	return charset{}, false
}

// iconv is a running iconv.
type iconv struct {
	t              *tool.T
	from, to       charset
	omit, translit bool
	ignore         bool
	out            io.Writer
	bom, illegal   bool
	status         int
}

// Iconv converts text from one encoding to another.
func Iconv(t *tool.T) int {
	const keyVerbose, keyVersion = tool.KeyOwn + 20, tool.KeyOwn + 21
	spec := tool.Spec{Usage: []string{"[OPTION...] [FILE...]"}, About: "Convert encoding of given files from one encoding to another.", Package: "Debian GLIBC 2.36-9) 2.36", Options: []getopt.Option{
		{Short: 'f', Long: "from-code", Arg: getopt.Required, Name: "NAME", Help: "encoding of original text"}, {Short: 't', Long: "to-code", Arg: getopt.Required, Name: "NAME", Help: "encoding for output"}, {Short: 'l', Long: "list", Help: "list all known coded character sets"},
		{Short: 'c', Help: "omit invalid characters from output"}, {Short: 'o', Long: "output", Arg: getopt.Required, Name: "FILE", Help: "output file"}, {Short: 's', Long: "silent", Help: "suppress warnings"}, {Long: "verbose", Key: keyVerbose, Help: "print progress information"}, {Short: 'V', Key: keyVersion}}}
	opts, files := t.Parse(&spec)
	from, to, output := "UTF-8", "UTF-8", ""
	c := &iconv{t: t, out: t.Out}
	for _, o := range opts {
		switch o.Key {
		case 'f':
			from = o.Arg
		case 't':
			to = o.Arg
		case 'l':
			for _, cs := range charsets() {
				t.Out.WriteString(strings.Join(cs.names, "// ") + "//\n")
			}
			return 0
		case 'c':
			c.omit = true
		case 'o':
			output = o.Arg
		case keyVersion:
			t.Version(&spec)
			return 0
		}
	}
	from = strings.Split(from, "//")[0]
	to, suffix, _ := strings.Cut(to, "//")
	c.translit, c.ignore = strings.Contains(strings.ToUpper(suffix), "TRANSLIT"), strings.Contains(strings.ToUpper(suffix), "IGNORE")
	c.names(from, to)
	if output != "" && output != "-" {
		f, err := t.Create(output)
		if err != nil {
			t.Fatal(1, "unable to open output file: %s", tool.Strerror(err))
		}
		defer f.Close()
		c.out = f
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, name := range files {
		text, err := t.ReadFile(name, maxText)
		if err != nil {
			t.Warn("cannot open input file `%s': %s", name, tool.Strerror(err))
			c.status = 1
			continue
		}
		if !c.convert(text) {
			return 1
		}
	}
	return c.status
}

func (c *iconv) names(from, to string) {
	pick := func(s string) (charset, bool) {
		if s == "" || strings.EqualFold(s, "CHAR") {
			s = "UTF-8"
		}
		return findCharset(s)
	}
	var okFrom, okTo bool
	c.from, okFrom = pick(from)
	c.to, okTo = pick(to)
	if !okFrom || !okTo {
		c.t.Fatal(1, "failed to start conversion processing: No such file or directory")
	}
}

func (c charset) ascii() bool { return c.names[0] == "ASCII" }

// convert converts a text; false ends the command.
func (c *iconv) convert(text []byte) bool {
	encoder := (*encoding.Encoder)(nil)
	if c.to.enc != nil {
		enc := c.to.enc
		if c.bom { // only the first file begins with a mark
			switch c.to.names[0] {
			case "UTF-16":
				enc = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
			case "UTF-32":
				enc = utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)
			}
		}
		c.bom = true
		encoder = enc.NewEncoder()
	}
	decoded, bad := c.decode(text)
	var plain strings.Builder
	flush := func() bool {
		s := plain.String()
		plain.Reset()
		if encoder != nil {
			out, err := encoder.String(s)
			if err != nil {
				return false
			}
			s = out
		}
		io.WriteString(c.out, s)
		return true
	}
	for _, r := range decoded {
		if c.t.Step(1) != nil {
			c.t.Check()
		}
		s, ok := c.fit(r)
		if !ok {
			if c.omit || c.ignore {
				c.illegal = c.illegal || c.ignore
				continue
			}
			flush()
			c.t.Warn("cannot convert")
			c.t.Out.Flush()
			c.t.Exit(1)
		}
		plain.WriteString(s)
	}
	flush()
	if bad >= 0 {
		if c.omit || c.ignore {
			c.illegal = c.illegal || c.ignore
			bad = -1
		}
	}
	if c.illegal {
		c.t.Warn("illegal input sequence at position %d", len(text))
		return false
	}
	if bad >= 0 {
		if bad < len(text) && incomplete(text[bad:]) && c.from.enc == nil {
			c.t.Warn("incomplete character or shift sequence at end of buffer")
		} else {
			c.t.Warn("illegal input sequence at position %d", bad)
		}
		return false
	}
	return true
}

// incomplete reports whether the bytes are the beginning of a character.
func incomplete(b []byte) bool { return len(b) < 4 && !utf8.FullRune(b) }

// decode returns the text up to what is no character, and where that is, -1 if all is well. With -c it is left out.
func (c *iconv) decode(text []byte) (string, int) {
	if c.from.enc != nil {
		out, err := c.from.enc.NewDecoder().Bytes(text)
		if err != nil {
			return "", 0
		}
		if i := strings.IndexRune(string(out), utf8.RuneError); i >= 0 && !(c.omit || c.ignore) {
			if _, isMap := c.from.enc.(*charmap.Charmap); isMap {
				return string(out[:i]), utf8.RuneCount(out[:i])
			}
		}
		return string(out), -1
	}
	var b strings.Builder
	bad := -1
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 || c.from.ascii() && r >= 128 {
			if bad < 0 {
				bad = i
			}
			if !c.omit && !c.ignore {
				return b.String(), bad
			}
			i += n
			continue
		}
		b.Write(text[i : i+n])
		i += n
	}
	return b.String(), bad
}

// fit returns what stands for a character in the target encoding: itself, or with //TRANSLIT something like it.
func (c *iconv) fit(r rune) (string, bool) {
	if c.can(string(r)) {
		return string(r), true
	}
	if !c.translit {
		return "", false
	}
	if s, ok := lookalikes[r]; ok && c.can(s) {
		return s, true
	}
	base := strings.Map(func(r rune) rune {
		if r >= 0x300 && r <= 0x36f {
			return -1
		}
		return r
	}, norm.NFKD.String(string(r)))
	if base != "" && base != string(r) && c.can(base) {
		return base, true
	}
	return "?", true
}

// can reports whether the target encoding has a text.
func (c *iconv) can(s string) bool {
	if c.to.enc == nil {
		if !c.to.ascii() {
			return true
		}
		for i := range len(s) {
			if s[i] >= 128 {
				return false
			}
		}
		return true
	}
	if s != "" && s[0] < 128 && len(s) == 1 {
		return true
	}
	_, err := c.to.enc.NewEncoder().String(s)
	return err == nil
}

// lookalikes are what //TRANSLIT writes for characters that have no decomposition.
var lookalikes = map[rune]string{'“': "\"", '”': "\"", '„': ",,", '‘': "'", '’': "'", '‚': ",", '–': "-", '—': "-", '…': "...", '«': "<<", '»': ">>", '€': "EUR", '©': "(C)", '®': "(R)", '™': "(TM)", 'ß': "ss", 'æ': "ae", 'Æ': "AE", 'œ': "oe", 'Œ': "OE", 'ø': "o", 'Ø': "O", 'ł': "l", 'Ł': "L", 'đ': "d", 'Đ': "D", '×': "x", '÷': ":", '•': "o", ' ': " ", '‐': "-", '−': "-", '→': "->", '←': "<-", '£': "GBP", '¥': "JPY"}
