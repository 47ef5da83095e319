package shell

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// printfState is a printf in progress.
type printfState struct {
	sh    *Shell
	args  []string
	used  bool // an argument was consumed
	out   strings.Builder
	fail  bool
	stop  bool // \c
	fatal bool
}

func builtinPrintf(sh *Shell, args []string) int {
	const usage = "printf [-v var] format [arguments]"
	args = args[1:]
	varName := ""
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		opt := args[0]
		if opt == "--" {
			args = args[1:]
			break
		}
		if !strings.HasPrefix(opt, "-v") {
			return sh.badOption("printf", opt[:2], usage)
		}
		if len(opt) > 2 {
			varName, args = opt[2:], args[1:]
		} else if len(args) < 2 {
			sh.errorf("printf: -v: option requires an argument")
			return sh.usage(usage)
		} else {
			varName, args = args[1], args[2:]
		}
		if base, _, _ := splitRef(varName); !validName(base) {
			sh.errorf("printf: `%s': not a valid identifier", varName)
			return 2
		}
	}
	if len(args) == 0 {
		return sh.usage(usage)
	}
	st := &printfState{sh: sh, args: args[1:]}
	for {
		st.used = false
		st.format(args[0])
		if len(st.args) == 0 || !st.used || st.stop || st.fatal || sh.p.Killed() != 0 {
			break
		}
		if varName == "" && st.out.Len() > maxBuiltinOut {
			sh.print(st.out.String())
			st.out.Reset()
			if sh.flush() != nil {
				return 1
			}
		}
	}
	if varName != "" {
		if n, sub, ok := splitRef(varName); ok {
			target, _ := sh.resolve(n)
			if !sh.assignElement(target, sh.expandSubText(target, sub), st.out.String(), false) {
				return 1
			}
		} else if !sh.set(varName, st.out.String()) {
			return 1
		}
	} else {
		sh.print(st.out.String())
	}
	return int(b2i(st.fail))
}

// next takes an argument, "" when there are none left.
func (st *printfState) next() (string, bool) {
	st.used = true
	if len(st.args) == 0 {
		return "", false
	}
	s := st.args[0]
	st.args = st.args[1:]
	return s, true
}

func (st *printfState) format(f string) {
	for i := 0; i < len(f) && !st.stop && !st.fatal; {
		switch f[i] {
		case '\\':
			j := escapeEnd(f, i)
			s, stop := escapes(f[i:j], escPrintf)
			st.out.WriteString(s)
			st.stop = stop
			i = j
		case '%':
			i = st.directive(f, i)
		default:
			j := strings.IndexAny(f[i:], "\\%")
			if j < 0 {
				j = len(f) - i
			}
			st.out.WriteString(f[i : i+j])
			i += j
		}
	}
}

// escapeEnd returns where the escape at s[i] ends.
func escapeEnd(s string, i int) int {
	j := i + 2
	if j > len(s) {
		return len(s)
	}
	limit := 0
	switch c := s[i+1]; {
	case c == 'x':
		limit = 2
	case c == 'u':
		limit = 4
	case c == 'U':
		limit = 8
	case c >= '0' && c <= '7':
		for n := 1; n < 3 && j < len(s) && s[j] >= '0' && s[j] <= '7'; n++ {
			j++
		}
		return j
	}
	for n := 0; n < limit && j < len(s) && isHex(s[j]); n++ {
		j++
	}
	return j
}

// spec is a conversion's flags, width and precision.
type spec struct {
	minus, plus, space, zero, alt, quote bool
	width, prec                          int
	hasPrec                              bool
}

// maxWidth bounds a field's width and precision.
const maxWidth = 1 << 20

func (st *printfState) number(f string, i int) (n, next int) {
	if i < len(f) && f[i] == '*' {
		s, _ := st.next()
		v, _ := st.integer(s)
		return int(max(-maxWidth, min(maxWidth, v))), i + 1
	}
	for i < len(f) && f[i] >= '0' && f[i] <= '9' {
		n = min(n*10+int(f[i]-'0'), maxWidth)
		i++
	}
	return n, i
}

func (st *printfState) directive(f string, start int) int {
	i := start + 1
	if i < len(f) && f[i] == '%' {
		st.out.WriteByte('%')
		return i + 1
	}
	sp := spec{}
flags:
	for ; i < len(f); i++ {
		switch f[i] {
		case '-':
			sp.minus = true
		case '+':
			sp.plus = true
		case ' ':
			sp.space = true
		case '0':
			sp.zero = true
		case '#':
			sp.alt = true
		case '\'':
			sp.quote = true
		default:
			break flags
		}
	}
	sp.width, i = st.number(f, i)
	if sp.width < 0 {
		sp.minus, sp.width = true, -sp.width
	}
	if i < len(f) && f[i] == '.' {
		sp.hasPrec = true
		if sp.prec, i = st.number(f, i+1); sp.prec < 0 {
			sp.hasPrec, sp.prec = false, 0
		}
	}
	if i < len(f) && f[i] == '(' {
		if end := strings.IndexByte(f[i:], ')'); end > 0 && i+end+1 < len(f) && f[i+end+1] == 'T' {
			st.time(sp, f[i+1:i+end])
			return i + end + 2
		}
	}
	for i < len(f) && strings.IndexByte("hlLqjzt", f[i]) >= 0 && !(f[i] == 'q') {
		i++
	}
	if i >= len(f) {
		st.sh.errorf("printf: `%s': missing format character", f[start:])
		st.fail, st.fatal = true, true
		return i
	}
	st.convert(f[i], sp, f[start:i+1])
	return i + 1
}

func (st *printfState) convert(c byte, sp spec, text string) {
	switch c {
	case 's':
		s, _ := st.next()
		st.pad(truncate(s, sp), sp)
	case 'b':
		s, _ := st.next()
		out, stop := escapes(s, escB)
		st.pad(truncate(out, sp), sp)
		st.stop = stop
	case 'q', 'Q':
		s, _ := st.next()
		if c == 'Q' {
			s = truncate(s, sp)
			sp.hasPrec = false
		}
		st.pad(truncate(quoteBackslash(s), sp), sp)
	case 'c':
		s, _ := st.next()
		if s == "" {
			s = "\x00"
		}
		st.pad(s[:1], sp)
	case 'd', 'i':
		s, _ := st.next()
		n, _ := st.integer(s)
		sign := ""
		switch {
		case n < 0:
			sign = "-"
		case sp.plus:
			sign = "+"
		case sp.space:
			sign = " "
		}
		u := uint64(n)
		if n < 0 {
			u = -u
		}
		st.digits(sign, strconv.FormatUint(u, 10), sp)
	case 'u':
		s, _ := st.next()
		st.digits("", strconv.FormatUint(st.unsigned(s), 10), sp)
	case 'o':
		s, _ := st.next()
		n := st.unsigned(s)
		d := strconv.FormatUint(uint64(n), 8)
		if sp.alt && d[0] != '0' {
			d = "0" + d
		}
		st.digits("", d, sp)
	case 'x', 'X':
		s, _ := st.next()
		n := st.unsigned(s)
		d, pre := strconv.FormatUint(uint64(n), 16), ""
		if sp.alt && n != 0 {
			pre = "0x"
		}
		if c == 'X' {
			d, pre = strings.ToUpper(d), strings.ToUpper(pre)
		}
		st.digits(pre, d, sp)
	case 'e', 'E', 'f', 'F', 'g', 'G', 'a', 'A':
		s, _ := st.next()
		st.float(c, st.floatArg(s), sp)
	case 'n':
		s, _ := st.next()
		if validName(s) {
			st.sh.set(s, strconv.Itoa(st.out.Len()))
		}
	default:
		st.sh.errorf("printf: `%c': invalid format character", c)
		st.fail, st.fatal = true, true
	}
	_ = text
}

func truncate(s string, sp spec) string {
	if sp.hasPrec && sp.prec < len(s) {
		return s[:sp.prec]
	}
	return s
}

func (st *printfState) pad(s string, sp spec) {
	n := sp.width - len(s)
	if n > 0 && !sp.minus {
		st.out.WriteString(strings.Repeat(" ", n))
	}
	st.out.WriteString(s)
	if n > 0 && sp.minus {
		st.out.WriteString(strings.Repeat(" ", n))
	}
}

// digits writes a number's digits with precision, sign and padding.
func (st *printfState) digits(sign, d string, sp spec) {
	if sp.hasPrec {
		if sp.prec == 0 && d == "0" {
			d = ""
		}
		if n := sp.prec - len(d); n > 0 {
			d = strings.Repeat("0", n) + d
		}
	} else if sp.zero && !sp.minus {
		if n := sp.width - len(d) - len(sign); n > 0 {
			d = strings.Repeat("0", n) + d
		}
	}
	st.pad(sign+d, sp)
}

// integer reads an argument as C does, or a character's number after a quote.
func (st *printfState) integer(s string) (int64, bool) {
	if s == "" {
		return 0, true
	}
	if s[0] == '\'' || s[0] == '"' {
		if len(s) == 1 {
			return 0, true
		}
		r, _ := decode(s[1:])
		if r >= badByte {
			r -= badByte
		}
		return int64(r), true
	}
	t := strings.TrimLeft(s, " \t\n\r\v\f")
	end := numberEnd(t)
	n, err := strconv.ParseInt(t[:end], 0, 64)
	if err != nil && errors.Is(err, strconv.ErrRange) {
		st.sh.errorf("printf: warning: %s: Numerical result out of range", s)
		return n, false
	}
	if end < len(t) || end == 0 {
		if end == 0 {
			n = 0
		}
		why := "invalid number"
		if strings.HasPrefix(t, "0") && len(t) > 1 && t[1] >= '0' && t[1] <= '9' {
			why = "invalid octal number"
		} else if strings.HasPrefix(t, "0x") || strings.HasPrefix(t, "0X") {
			why = "invalid hex number"
		}
		st.sh.errorf("printf: %s: %s", s, why)
		st.fail = true
	}
	return n, err == nil
}

// unsigned reads an argument as C's strtoumax does: a minus sign wraps around.
func (st *printfState) unsigned(s string) uint64 {
	t := strings.TrimLeft(s, " \t\n\r\v\f")
	digits := strings.TrimLeft(t[:numberEnd(t)], "+-")
	if numberEnd(t) != len(t) || len(digits) < 19 {
		n, _ := st.integer(s)
		return uint64(n)
	}
	u, err := strconv.ParseUint(digits, 0, 64)
	if err != nil {
		st.sh.errorf("printf: warning: %s: Numerical result out of range", s)
		return math.MaxUint64
	}
	if t[0] == '-' {
		return -u
	}
	return u
}

// numberEnd returns how much of s is an integer constant of C.
func numberEnd(s string) int {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	digits := "0123456789"
	start := i
	if strings.HasPrefix(s[i:], "0x") || strings.HasPrefix(s[i:], "0X") {
		if i+2 < len(s) && isHex(s[i+2]) {
			digits, i = "0123456789abcdefABCDEF", i+2
			start = i
		}
	} else if strings.HasPrefix(s[i:], "0") {
		digits = "01234567"
	}
	for i < len(s) && strings.IndexByte(digits, s[i]) >= 0 {
		i++
	}
	if i == start {
		return 0
	}
	return i
}

// floatArg reads an argument as C's strtold does. bash computes with the 64 bits of x86's long double.
func (st *printfState) floatArg(s string) *big.Float {
	if s == "" {
		return newFloat(0)
	}
	if s[0] == '\'' || s[0] == '"' {
		n, _ := st.integer(s)
		return newFloat(float64(n))
	}
	t := strings.TrimLeft(s, " \t\n\r\v\f")
	f, n := parseFloat(t)
	if n < len(t) || n == 0 {
		st.sh.errorf("printf: %s: invalid number", s)
		st.fail = true
	}
	return f
}

// floatBits is the precision of bash's numbers; maxExponent bounds theirs.
const (
	floatBits   = 64
	maxExponent = 4932
)

func newFloat(f float64) *big.Float { return new(big.Float).SetPrec(floatBits).SetFloat64(f) }

// parseFloat reads a number at the beginning of s and returns how much of s it is. nil is not a number.
func parseFloat(s string) (*big.Float, int) {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	for _, w := range []string{"infinity", "inf", "nan"} {
		if len(s)-i >= len(w) && strings.EqualFold(s[i:i+len(w)], w) {
			if w == "nan" {
				return nil, i + len(w)
			}
			return new(big.Float).SetPrec(floatBits).SetInf(s[0] == '-'), i + len(w)
		}
	}
	hex := strings.HasPrefix(s[i:], "0x") || strings.HasPrefix(s[i:], "0X")
	isDigit, expChar := func(c byte) bool { return c >= '0' && c <= '9' }, byte('e')
	if hex {
		isDigit, expChar = isHex, 'p'
		i += 2
	}
	from, digits := i, 0
	for i < len(s) && (isDigit(s[i]) || s[i] == '.' && strings.IndexByte(s[from:i], '.') < 0) {
		if s[i] != '.' {
			digits++
		}
		i++
	}
	if digits == 0 {
		if hex {
			return newFloat(0), strings.IndexAny(s, "xX")
		}
		return newFloat(0), 0
	}
	if i < len(s) && s[i]|0x20 == expChar {
		j := i + 1
		if j < len(s) && (s[j] == '-' || s[j] == '+') {
			j++
		}
		k := j
		for k < len(s) && s[k] >= '0' && s[k] <= '9' {
			k++
		}
		if k > j {
			if x, _ := strconv.Atoi(s[i+1 : k]); !hex && (x > maxExponent || k-j > 6) {
				return new(big.Float).SetPrec(floatBits).SetInf(s[0] == '-'), k
			} else if !hex && x < -maxExponent-20 || hex && (x > 16384 || x < -16500) {
				return newFloat(0), k
			}
			i = k
		}
	}
	f, _, err := big.ParseFloat(s[:i], 0, floatBits, big.ToNearestEven)
	if err != nil {
		return newFloat(0), i
	}
	return f, i
}

func (st *printfState) float(c byte, v *big.Float, sp spec) {
	prec := 6
	if sp.hasPrec {
		prec = sp.prec
	}
	sign := ""
	switch {
	case v != nil && v.Signbit():
		sign, v = "-", new(big.Float).Neg(v)
	case sp.plus:
		sign = "+"
	case sp.space:
		sign = " "
	}
	var d string
	switch {
	case v == nil:
		d, sp.zero = "nan", false
	case v.IsInf():
		d, sp.zero = "inf", false
	case c == 'f' || c == 'F':
		d = v.Text('f', prec)
		if sp.alt && prec == 0 {
			d += "."
		}
	case c == 'e' || c == 'E':
		d = v.Text('e', prec)
	case c == 'a' || c == 'A':
		if !sp.hasPrec {
			prec = -1
		}
		d = hexFloat(v, prec)
	default:
		d = formatG(v, prec, sp.alt)
	}
	if c < 'a' {
		d = strings.ToUpper(d)
	}
	if n := sp.width - len(sign) - len(d); sp.zero && !sp.minus && n > 0 {
		d = strings.Repeat("0", n) + d
	}
	st.pad(sign+d, sp)
}

// hexFloat is %a: the first digit holds four bits, as x86 prints its long doubles.
func hexFloat(v *big.Float, prec int) string {
	if v.Sign() == 0 {
		if prec > 0 {
			return "0x0." + strings.Repeat("0", prec) + "p+0"
		}
		return "0x0p+0"
	}
	if prec >= 0 && prec < floatBits/4-1 {
		v = new(big.Float).SetPrec(uint(4 + 4*prec)).Set(v)
	}
	mant := new(big.Float)
	exp := v.MantExp(mant) // mant is in [0.5, 1)
	n, _ := new(big.Float).SetMantExp(mant, floatBits).Int(nil)
	digits := strings.TrimRight(n.Text(16), "0")
	d := digits[:1]
	rest := digits[1:]
	if n := prec - len(rest); n > 0 {
		rest += strings.Repeat("0", n)
	}
	if rest != "" {
		d += "." + rest
	}
	return fmt.Sprintf("0x%sp%+d", d, exp-4)
}

// formatG is C's %g.
func formatG(v *big.Float, prec int, alt bool) string {
	if prec == 0 {
		prec = 1
	}
	e := v.Text('e', prec-1)
	exp, _ := strconv.Atoi(e[strings.IndexByte(e, 'e')+1:])
	if exp < -4 || exp >= prec {
		mant, x, _ := strings.Cut(e, "e")
		if !alt && strings.Contains(mant, ".") {
			mant = strings.TrimRight(strings.TrimRight(mant, "0"), ".")
		}
		return mant + "e" + x
	}
	d := v.Text('f', prec-1-exp)
	if !alt && strings.Contains(d, ".") {
		d = strings.TrimRight(strings.TrimRight(d, "0"), ".")
	}
	return d
}

// time is %(format)T: seconds since the epoch, -1 now, -2 when the shell started.
func (st *printfState) time(sp spec, format string) {
	now := st.sh.p.Sandbox().Now()
	t := now
	if s, ok := st.next(); ok {
		n, _ := st.integer(s)
		switch n {
		case -1:
		case -2:
			t = st.sh.secondsFrom
		default:
			t = time.Unix(n, 0)
		}
	}
	if format == "" {
		format = "%X"
	}
	st.pad(truncate(strftime(t.In(st.sh.location()), format), sp), sp)
}
