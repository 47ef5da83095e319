package coreutils

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const (
	keyNfDebug = tool.KeyOwn + 700 + iota
	keyNfField
	keyNfFormat
	keyNfFrom
	keyNfFromUnit
	keyNfGrouping
	keyNfHeader
	keyNfInvalid
	keyNfPadding
	keyNfRound
	keyNfSuffix
	keyNfTo
	keyNfToUnit
)

var numfmtSpec = tool.Spec{
	Usage: []string{"[OPTION]... [NUMBER]..."},
	About: "Reformat NUMBER(s), or the numbers from standard input if none are specified.",
	Options: []getopt.Option{
		{Long: "debug", Key: keyNfDebug, Help: "print warnings about invalid input"},
		{Short: 'd', Long: "delimiter", Arg: getopt.Required, Name: "X", Help: "use X instead of whitespace for field delimiter"},
		{Long: "field", Key: keyNfField, Arg: getopt.Required, Name: "FIELDS", Help: "replace the numbers in these input fields (default=1)"},
		{Long: "format", Key: keyNfFormat, Arg: getopt.Required, Name: "FORMAT", Help: "use printf style floating-point FORMAT"},
		{Long: "from", Key: keyNfFrom, Arg: getopt.Required, Name: "UNIT", Help: "auto-scale input numbers to UNITs; default is 'none'"},
		{Long: "from-unit", Key: keyNfFromUnit, Arg: getopt.Required, Name: "N", Help: "specify the input unit size (instead of the default 1)"},
		{Long: "grouping", Key: keyNfGrouping, Help: "use locale-defined grouping of digits, e.g. 1,000,000"},
		{Long: "header", Key: keyNfHeader, Arg: getopt.Optional, Name: "N", Help: "print (without converting) the first N header lines; N defaults to 1 if not specified"},
		{Long: "invalid", Key: keyNfInvalid, Arg: getopt.Required, Name: "MODE", Help: "failure mode for invalid numbers: MODE can be: abort (default), fail, warn, ignore"},
		{Long: "padding", Key: keyNfPadding, Arg: getopt.Required, Name: "N", Help: "pad the output to N characters; positive N will right-align; negative N will left-align"},
		{Long: "round", Key: keyNfRound, Arg: getopt.Required, Name: "METHOD", Help: "use METHOD for rounding when scaling; METHOD can be: up, down, from-zero (default), towards-zero, nearest"},
		{Long: "suffix", Key: keyNfSuffix, Arg: getopt.Required, Name: "SUFFIX", Help: "add SUFFIX to output numbers, and accept optional SUFFIX in input numbers"},
		{Long: "to", Key: keyNfTo, Arg: getopt.Required, Name: "UNIT", Help: "auto-scale output numbers to UNITs"},
		{Long: "to-unit", Key: keyNfToUnit, Arg: getopt.Required, Name: "N", Help: "the output unit size (instead of the default 1)"},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
	},
	Notes:   "UNIT options: none, auto, si, iec, iec-i.  FIELDS supports cut(1) style field ranges.\nExit status is 0 if all input numbers were successfully converted.",
	Package: tool.Coreutils,
}

// Scales of numfmt.
const (
	scaleNone = iota
	scaleAuto
	scaleSI
	scaleIEC
	scaleIECI
)

// numfmt is a running numfmt.
type numfmt struct {
	t                       *tool.T
	from, to                int
	fromUnit, toUnit        *big.Float
	delim                   byte
	hasDelim                bool
	eol                     byte
	fields                  []nfRange
	padding                 int
	left, auto, zeros       bool
	precision               int // -1: none was given
	before, after           string
	round, invalid          string
	suffix                  string
	header                  int
	debug, grouping, format bool
	status                  int
}

type nfRange struct{ low, high int }

// float has the precision of a long double.
func float() *big.Float { return new(big.Float).SetPrec(64) }

// Numfmt converts numbers to and from human-readable ones.
func Numfmt(t *tool.T) int {
	t.FailStatus(2)
	n := &numfmt{t: t, fromUnit: float().SetInt64(1), toUnit: float().SetInt64(1), eol: '\n', auto: true, precision: -1, round: "from-zero", invalid: "abort", fields: []nfRange{{1, 1}}}
	opts, numbers := t.Parse(&numfmtSpec)
	for _, o := range opts {
		n.option(o)
	}
	n.settle()
	if len(numbers) > 0 {
		if n.header > 0 && n.debug {
			t.Warn("--header ignored with command-line input")
		}
		for _, s := range numbers {
			n.line(s)
			t.Out.WriteByte(n.eol)
		}
		return n.status
	}
	l := tool.NewLines(t.Stdin(), n.eol)
	for line, ok := l.Next(); ok; line, ok = l.Next() {
		if n.header > 0 {
			n.header--
			t.Out.Write(line)
		} else {
			n.line(string(line))
		}
		if l.Terminated {
			t.Out.WriteByte(n.eol)
		}
	}
	if l.Err != nil {
		t.Fatal(1, "error reading input: %s", tool.Strerror(l.Err))
	}
	return n.status
}

// settle checks options against each other.
func (n *numfmt) settle() {
	if n.format && n.grouping {
		n.t.Fatal(1, "--grouping cannot be combined with --format")
	}
	if n.grouping && n.to != scaleNone {
		n.t.Fatal(1, "grouping cannot be combined with --to")
	}
	if n.debug && n.from == scaleNone && n.to == scaleNone && !n.grouping && n.padding == 0 && !n.format {
		n.t.Warn("no conversion option specified")
	}
	n.auto = n.padding == 0 && !n.hasDelim
}

func (n *numfmt) option(o getopt.Opt) {
	t := n.t
	unit := func() *big.Float {
		s := o.Arg
		v, err := tool.ParseSize(strings.TrimSuffix(s, "i"), "KMGTPEZY")
		if err == nil && !strings.HasSuffix(s, "i") && s != "" && (s[len(s)-1] < '0' || s[len(s)-1] > '9') {
			v, err = tool.ParseSize(s+"B", "KMGTPEZY") // without an i it is a power of 1000
		}
		if err != nil || v == 0 {
			t.Fatal(1, "invalid unit size: %s", tool.Quote(o.Arg))
		}
		return float().SetUint64(v)
	}
	switch o.Key {
	case keyNfDebug:
		n.debug = true
	case 'd':
		if len(o.Arg) > 1 {
			t.Fatal(1, "the delimiter must be a single character")
		}
		n.hasDelim = true
		if o.Arg != "" {
			n.delim = o.Arg[0]
		}
	case keyNfField:
		n.fieldList(o.Arg)
	case keyNfFormat:
		n.parseFormat(o.Arg)
	case keyNfFrom:
		n.from = t.Choice(1, "--from", o.Arg, [][]string{{"none"}, {"auto"}, {"si"}, {"iec"}, {"iec-i"}})
	case keyNfTo:
		n.to = []int{scaleNone, scaleSI, scaleIEC, scaleIECI}[t.Choice(1, "--to", o.Arg, [][]string{{"none"}, {"si"}, {"iec"}, {"iec-i"}})]
	case keyNfFromUnit:
		n.fromUnit = unit()
	case keyNfToUnit:
		n.toUnit = unit()
	case keyNfGrouping:
		n.grouping = true
	case keyNfHeader:
		n.header = 1
		if o.Has {
			v, err := strconv.Atoi(o.Arg)
			if err != nil || v < 1 {
				t.Fatal(1, "invalid header value %s", tool.Quote(o.Arg))
			}
			n.header = v
		}
	case keyNfInvalid:
		n.invalid = []string{"abort", "fail", "warn", "ignore"}[t.Choice(1, "--invalid", o.Arg, [][]string{{"abort"}, {"fail"}, {"warn"}, {"ignore"}})]
	case keyNfPadding:
		v, err := strconv.Atoi(o.Arg)
		if err != nil || v == 0 || v > 1<<20 || v < -1<<20 {
			t.Fatal(1, "invalid padding value %s", tool.Quote(o.Arg))
		}
		if n.left = v < 0; n.left {
			v = -v
		}
		n.padding = v
	case keyNfRound:
		names := []string{"up", "down", "from-zero", "towards-zero", "nearest"}
		n.round = names[t.Choice(1, "--round", o.Arg, [][]string{{"up"}, {"down"}, {"from-zero"}, {"towards-zero"}, {"nearest"}})]
	case keyNfSuffix:
		n.suffix = o.Arg
	case 'z':
		n.eol = 0
	}
}

// fieldList reads ranges as cut's -f has them; "-" is all.
func (n *numfmt) fieldList(arg string) {
	n.fields = nil
	for _, w := range strings.FieldsFunc(arg, func(r rune) bool { return r == ',' || r == ' ' }) {
		low, high, isRange := strings.Cut(w, "-")
		r := nfRange{1, 1 << 30}
		var err error
		if low != "" {
			r.low, err = strconv.Atoi(low)
		}
		if err == nil && high != "" {
			r.high, err = strconv.Atoi(high)
		}
		if !isRange {
			r.high = r.low
		}
		switch {
		case err != nil:
			n.t.UsageError(1, "invalid field value %s", tool.Quote(w))
		case r.low < 1 || r.high < 1:
			n.t.UsageError(1, "fields are numbered from 1")
		case r.high < r.low:
			n.t.UsageError(1, "invalid decreasing range")
		}
		n.fields = append(n.fields, r)
	}
}

// parseFormat reads text, one %[0]['][-][N][.N]f, and text.
func (n *numfmt) parseFormat(f string) {
	n.format = true
	bad := func(what string) { n.t.Fatal(1, what, tool.Quote(f)) }
	at := 0
	for at < len(f) && (f[at] != '%' || at+1 < len(f) && f[at+1] == '%') {
		if f[at] == '%' {
			at++
		}
		at++
	}
	if at >= len(f) {
		bad("format %s has no %% directive")
	}
	n.before = strings.ReplaceAll(f[:at], "%%", "%")
	i := at + 1
	for i < len(f) && strings.IndexByte("0' -", f[i]) >= 0 {
		switch f[i] {
		case '0':
			n.zeros = true
		case '\'':
			n.grouping = true
		case '-':
			n.left = true
		}
		i++
	}
	start := i
	for i < len(f) && f[i] >= '0' && f[i] <= '9' {
		i++
	}
	if i > start {
		w, err := strconv.Atoi(f[start:i])
		if err != nil || w > 1<<20 {
			bad("invalid format %s (width overflow)")
		}
		n.padding = w
	}
	if i < len(f) && f[i] == '.' {
		start = i + 1
		for i++; i < len(f) && f[i] >= '0' && f[i] <= '9'; i++ {
		}
		p, err := 0, error(nil)
		if i > start {
			p, err = strconv.Atoi(f[start:i])
		}
		if err != nil || p > 1<<12 {
			bad("invalid precision in format %s")
		}
		n.precision = p
	}
	if i >= len(f) {
		bad("format %s ends in %%")
	}
	if f[i] != 'f' {
		bad("invalid format %s, directive must be %%[0]['][-][N][.][N]f")
	}
	rest := f[i+1:]
	for k := 0; k < len(rest); k++ {
		if rest[k] == '%' {
			if k+1 >= len(rest) || rest[k+1] != '%' {
				bad("format %s has too many %% directives")
			}
			k++
		}
	}
	n.after = strings.ReplaceAll(rest, "%%", "%")
}

func (n *numfmt) chosen(field int) bool {
	for _, r := range n.fields {
		if field >= r.low && field <= r.high {
			return true
		}
	}
	return false
}

// line converts the chosen fields of a line, and copies the others.
func (n *numfmt) line(s string) {
	for field := 1; ; field++ {
		end := 0
		if n.hasDelim {
			for end < len(s) && s[end] != n.delim {
				end++
			}
		} else {
			for end < len(s) && (s[end] == ' ' || s[end] == '\t') {
				end++
			}
			for end < len(s) && s[end] != ' ' && s[end] != '\t' {
				end++
			}
		}
		text := s[:end]
		if n.chosen(field) {
			text = n.convert(text, field)
		}
		n.t.Out.WriteString(text)
		if end >= len(s) {
			return
		}
		if n.hasDelim {
			n.t.Out.WriteByte(n.delim)
		} else {
			n.t.Out.WriteByte(' ')
		}
		s = s[end+1:]
	}
}

// reject reports what is no number, as --invalid says; the text stays as it is.
func (n *numfmt) reject(text, format string, args ...any) string {
	if n.invalid != "ignore" {
		n.t.Warn(format, args...)
	}
	switch n.invalid {
	case "abort":
		n.t.Exit(2)
	case "fail":
		n.status = 2
	}
	return text
}

// convert converts one field.
func (n *numfmt) convert(text string, field int) string {
	body := text
	if n.suffix != "" && len(body) > len(n.suffix) {
		body = strings.TrimSuffix(body, n.suffix)
	}
	trimmed := strings.TrimLeft(body, " \t")
	padding := n.padding
	if n.auto && (len(trimmed) < len(body) || field > 1) {
		padding = tool.StringWidth(text)
	}
	v, precision, complaint := n.parse(trimmed)
	if complaint != "" {
		return n.reject(text, "%s", complaint)
	}
	v.Mul(v, n.fromUnit)
	v.Quo(v, n.toUnit)
	shown, complaint := n.human(v, precision)
	if complaint != "" {
		return n.reject(text, "%s", complaint)
	}
	if n.zeros && padding > len(shown)+len(n.suffix) {
		digits := strings.TrimPrefix(shown, "-")
		shown = shown[:len(shown)-len(digits)] + strings.Repeat("0", padding-len(shown)-len(n.suffix)) + digits
	}
	shown += n.suffix
	if pad := padding - tool.StringWidth(shown); pad > 0 {
		if n.left {
			shown += strings.Repeat(" ", pad)
		} else {
			shown = strings.Repeat(" ", pad) + shown
		}
	}
	return n.before + shown + n.after
}

const nfLetters = "KMGTPEZY"

// parse reads a number with its suffix; precision is how many digits it has behind the point.
func (n *numfmt) parse(s string) (v *big.Float, precision int, complaint string) {
	i := 0
	if i < len(s) && s[i] == '-' {
		i++
	}
	start := i
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	digits := i - start
	if i+1 < len(s) && s[i] == '.' && s[i+1] >= '0' && s[i+1] <= '9' {
		point := i
		for i++; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		}
		precision = i - point - 1
	} else if i < len(s) && s[i] == '.' && digits > 0 {
		if i+1 == len(s) || s[i+1] < '0' || s[i+1] > '9' {
			what := "invalid suffix in input: %s"
			if i+1 == len(s) {
				what = "invalid number: %s"
			}
			return nil, 0, fmt.Sprintf(what, tool.Quote(s))
		}
	}
	if digits == 0 && precision == 0 {
		return nil, 0, fmt.Sprintf("invalid number: %s", tool.Quote(s))
	}
	if digits > 33 {
		return nil, 0, fmt.Sprintf("value too large to be converted: %s", tool.Quote(s))
	}
	number := s[:i]
	if strings.HasPrefix(number, "-.") || strings.HasPrefix(number, ".") {
		number = strings.Replace(number, ".", "0.", 1)
	}
	v, _, err := float().Parse(number, 10)
	if err != nil {
		return nil, 0, fmt.Sprintf("invalid number: %s", tool.Quote(s))
	}
	rest := strings.TrimLeft(s[i:], " \t")
	if rest == "" {
		return v, precision, ""
	}
	power := strings.IndexByte(nfLetters, rest[0]) + 1
	switch {
	case power == 0:
		return nil, 0, fmt.Sprintf("invalid suffix in input: %s", tool.Quote(s))
	case n.from == scaleNone:
		return nil, 0, fmt.Sprintf("rejecting suffix in input: %s (consider using --from)", tool.Quote(s))
	}
	rest = rest[1:]
	base := int64(1000)
	switch {
	case n.from == scaleIEC:
		base = 1024
	case n.from == scaleIECI:
		base = 1024
		if !strings.HasPrefix(rest, "i") {
			return nil, 0, fmt.Sprintf("missing 'i' suffix in input: %s (e.g Ki/Mi/Gi)", tool.Quote(s))
		}
		rest = rest[1:]
	case n.from == scaleAuto && strings.HasPrefix(rest, "i"):
		base, rest = 1024, rest[1:]
	}
	if rest != "" {
		return nil, 0, fmt.Sprintf("invalid suffix in input %s: %s", tool.Quote(s), tool.Quote(rest))
	}
	for range power {
		v.Mul(v, float().SetInt64(base))
	}
	return v, 0, ""
}

// rounded rounds to a whole number, by the chosen method.
func (n *numfmt) rounded(v *big.Float) *big.Float {
	whole, acc := v.Int(nil)
	if acc == big.Exact {
		return v
	}
	away := int64(v.Sign())
	step := func(yes bool) {
		if yes {
			whole.Add(whole, big.NewInt(away))
		}
	}
	switch n.round {
	case "up":
		step(away > 0)
	case "down":
		step(away < 0)
	case "from-zero":
		step(true)
	case "nearest":
		frac := float().Sub(v, float().SetInt(whole))
		step(frac.Abs(frac).Cmp(big.NewFloat(0.5)) >= 0)
	}
	return float().SetInt(whole)
}

func tenTo(n int) *big.Float {
	return float().SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil))
}

// human renders a value in the scale asked for.
func (n *numfmt) human(v *big.Float, precision int) (shown, complaint string) {
	if n.precision >= 0 {
		precision = n.precision
	}
	abs := float().Abs(v)
	limit := tenTo(19)
	if n.to == scaleNone {
		if abs.Cmp(limit) >= 0 || precision > 18 {
			if abs.Cmp(limit) < 0 {
				return "", fmt.Sprintf("value/precision too large to be printed: '%s/%d' (consider using --to)", v.Text('g', 6), precision)
			}
			return "", fmt.Sprintf("value too large to be printed: '%s' (consider using --to)", cText(v))
		}
		scaled := n.rounded(float().Mul(v, tenTo(precision)))
		return scaled.Quo(scaled, tenTo(precision)).Text('f', precision), ""
	}
	if abs.Cmp(tenTo(27)) >= 0 {
		return "", fmt.Sprintf("value too large to be printed: '%s' (cannot handle values > 999Y)", cText(v))
	}
	base := float().SetInt64(1024)
	if n.to == scaleSI {
		base.SetInt64(1000)
	}
	v = float().Set(v)
	power := 0
	for float().Abs(v).Cmp(base) >= 0 {
		v.Quo(v, base)
		power++
	}
	ten := float().SetInt64(10)
	adjust := 0
	if n.precision >= 0 {
		adjust = min(power*3, n.precision)
	} else if float().Abs(v).Cmp(ten) < 0 {
		adjust = 1
	}
	v = n.rounded(v.Mul(v, tenTo(adjust)))
	v = float().Quo(v, tenTo(adjust))
	if float().Abs(v).Cmp(base) >= 0 {
		v.Quo(v, base)
		power++
	}
	digits := 0
	if n.precision >= 0 {
		digits = n.precision
	} else if v.Sign() != 0 && float().Abs(v).Cmp(ten) < 0 && power > 0 {
		digits = 1
	}
	shown = v.Text('f', digits)
	if power > 0 && power <= len(nfLetters) {
		if shown += nfLetters[power-1 : power]; n.to == scaleIECI {
			shown += "i"
		}
	}
	return shown, ""
}

// cText is %Lg.
func cText(v *big.Float) string {
	s := v.Text('e', 5)
	mantissa, exp, _ := strings.Cut(s, "e")
	return strings.TrimRight(strings.TrimRight(mantissa, "0"), ".") + "e" + exp
}
