package coreutils

import (
	"math/big"
	"strings"

	"agentrun.dev/command/cfmt"
	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var seqSpec = tool.Spec{
	Usage: []string{"[OPTION]... LAST", "[OPTION]... FIRST LAST", "[OPTION]... FIRST INCREMENT LAST"},
	About: "Print numbers from FIRST to LAST, in steps of INCREMENT.",
	Options: []getopt.Option{
		{Short: 'f', Long: "format", Arg: getopt.Required, Name: "FORMAT", Help: "use printf style floating-point FORMAT"},
		{Short: 's', Long: "separator", Arg: getopt.Required, Name: "STRING", Help: "use STRING to separate numbers (default: \\n)"},
		{Short: 'w', Long: "equal-width", Help: "equalize width by padding with leading zeroes"},
	},
	Package: tool.Coreutils, Order: getopt.POSIX,
}

// seqNumber is an operand: its value, and how it was written.
type seqNumber struct {
	v     cfmt.Float
	width int
	prec  int // digits after the point; negative if unknown
}

// Seq prints numbers.
func Seq(t *tool.T) int {
	format, sep, equal, hasFormat := "", "\n", false, false
	opts, args := t.ParseArgs(&seqSpec, guardNegative(t.Args()[1:]))
	for _, o := range opts {
		switch o.Key {
		case 'f':
			format, hasFormat = o.Arg, true
		case 's':
			sep = o.Arg
		case 'w':
			equal = true
		}
	}
	if len(args) == 0 {
		t.Missing(1)
	}
	if len(args) > 3 {
		t.Extra(1, args[3])
	}
	if hasFormat && equal {
		t.UsageError(1, "format string may not be specified when printing equal width strings")
	}
	one := seqNumber{v: cfmt.Double(1), width: 1}
	first, step, last := one, one, seqNumber{}
	switch len(args) {
	case 1:
		last = seqOperand(t, args[0])
	case 2:
		first, last = seqOperand(t, args[0]), seqOperand(t, args[1])
	case 3:
		first, step, last = seqOperand(t, args[0]), seqOperand(t, args[1]), seqOperand(t, args[2])
		if step.v.Value != nil && step.v.Value.Sign() == 0 {
			t.UsageError(1, "invalid Zero increment value: %s", tool.Quote(args[1]))
		}
	}
	prefix, suffix, spec := seqFormat(t, format, hasFormat, equal, first, step, last)
	seqPrint(t, first, step, last, sep, prefix, suffix, spec)
	return 0
}

// guardNegative lets operands such as -1 and -.5 pass as numbers.
func guardNegative(args []string) []string {
	for i, a := range args {
		if len(a) > 1 && a[0] == '-' && (a[1] >= '0' && a[1] <= '9' || a[1] == '.' || strings.HasPrefix(strings.ToLower(a), "-inf")) {
			out := append([]string{}, args[:i]...)
			return append(append(out, "--"), args[i:]...)
		}
		if a == "-f" || a == "-s" || a == "--format" || a == "--separator" {
			if i+1 < len(args) {
				rest := guardNegative(args[i+2:])
				return append(append([]string{}, args[:i+2]...), rest...)
			}
			break
		}
		if a == "--" || a == "" || a[0] != '-' {
			break
		}
	}
	return args
}

func seqOperand(t *tool.T, s string) seqNumber {
	v, rest, ok, _ := cfmt.ParseFloat(s)
	if !ok || rest != "" {
		t.UsageError(1, "invalid floating point argument: %s", tool.Quote(s))
	}
	if v.Value == nil {
		t.UsageError(1, "invalid %s argument: %s", tool.Quote("not-a-number"), tool.Quote(s))
	}
	n := seqNumber{v: v, prec: 0}
	s = strings.TrimPrefix(strings.TrimLeft(s, " \t\n"), "+")
	if strings.ContainsAny(s, "xXpPnN") {
		n.prec = -1
		return n
	}
	if digits := strings.TrimPrefix(s, "-"); digits != "" && len(digits) < 4096 && strings.Trim(digits, "0123456789") == "" {
		// An integer of any length is exact.
		if f, _, err := big.ParseFloat(s, 10, uint(max(cfmt.Mantissa, 4*len(digits)+8)), big.ToNearestEven); err == nil {
			n.v.Value = f
		}
	}
	mantissa, exp, hasExp := strings.Cut(strings.ToLower(s), "e")
	n.width = len(mantissa)
	if i := strings.IndexByte(mantissa, '.'); i >= 0 {
		n.prec = len(mantissa) - i - 1
		if n.prec == 0 {
			n.width--
		}
		if i == 0 || i == 1 && mantissa[0] == '-' {
			n.width++
		}
	}
	if hasExp {
		e := 0
		for _, c := range strings.TrimLeft(exp, "+-") {
			e = min(e*10+int(c-'0'), 10000)
		}
		if strings.HasPrefix(exp, "-") {
			n.prec += e
			n.width += e
		} else {
			n.width += max(e-n.prec, 0)
			n.prec = max(n.prec-e, 0)
		}
	}
	return n
}

// seqFormat finds how numbers are printed: the user's format, or as many digits as first and step have.
func seqFormat(t *tool.T, format string, given, equal bool, first, step, last seqNumber) (prefix, suffix string, spec cfmt.Spec) {
	if given {
		return parseSeqFormat(t, format)
	}
	prec := max(first.prec, step.prec)
	if first.prec < 0 || step.prec < 0 {
		return "", "", cfmt.Spec{Verb: 'g', Prec: -1}
	}
	spec = cfmt.Spec{Verb: 'f', Prec: prec}
	if equal && last.prec >= 0 {
		fw := first.width + prec - first.prec
		lw := last.width + prec - last.prec
		if last.prec > 0 && prec == 0 {
			lw--
		}
		if last.prec == 0 && prec > 0 {
			lw++
		}
		if first.prec == 0 && prec > 0 {
			fw++
		}
		spec.Zero, spec.Width = true, max(fw, lw)
	}
	return "", "", spec
}

func parseSeqFormat(t *tool.T, f string) (prefix, suffix string, spec cfmt.Spec) {
	literal := func(s string) (string, int) {
		var b strings.Builder
		i := 0
		for i < len(s) {
			if s[i] == '%' {
				if i+1 < len(s) && s[i+1] == '%' {
					b.WriteByte('%')
					i += 2
					continue
				}
				break
			}
			b.WriteByte(s[i])
			i++
		}
		return b.String(), i
	}
	prefix, i := literal(f)
	if i == len(f) {
		t.Fatal(1, "format %s has no %% directive", tool.Quote(f))
	}
	i++
	spec.Prec = -1
	for i < len(f) && spec.Flag(f[i]) {
		i++
	}
	number := func() int {
		n := 0
		for i < len(f) && f[i] >= '0' && f[i] <= '9' {
			n = min(n*10+int(f[i]-'0'), cfmt.MaxWidth)
			i++
		}
		return n
	}
	spec.Width = number()
	if i < len(f) && f[i] == '.' {
		i++
		spec.Prec = number()
	}
	for i < len(f) && f[i] == 'L' {
		i++
	}
	if i == len(f) {
		t.Fatal(1, "format %s ends in %%", tool.Quote(f))
	}
	if strings.IndexByte("efgaEFGA", f[i]) < 0 {
		t.Fatal(1, "format %s has unknown %%%c directive", tool.Quote(f), f[i])
	}
	spec.Verb = f[i]
	suffix, n := literal(f[i+1:])
	if i+1+n < len(f) {
		t.Fatal(1, "format %s has too many %% directives", tool.Quote(f))
	}
	return prefix, suffix, spec
}

func seqPrint(t *tool.T, first, step, last seqNumber, sep, prefix, suffix string, spec cfmt.Spec) {
	prec := max(first.v.Value.Prec(), step.v.Value.Prec(), last.v.Value.Prec(), cfmt.Mantissa)
	x := new(big.Float).SetPrec(prec).Set(first.v.Value)
	up := step.v.Value.Sign() > 0
	beyond := func(v *big.Float) bool {
		c := v.Cmp(last.v.Value)
		return up && c > 0 || !up && c < 0
	}
	lastText := ""
	if !last.v.Value.IsInf() {
		lastText = spec.Float(last.v)
	}
	previous := ""
	for n := int64(0); ; n++ {
		if n > 0 {
			// first + n*step, which doesn't accumulate errors
			k := new(big.Float).SetPrec(prec).SetInt64(n)
			x.Add(first.v.Value, k.Mul(k, step.v.Value))
		}
		text := ""
		if beyond(x) {
			// A value that only rounding put beyond the last is still printed, if it looks like the last.
			if text = spec.Float(cfmt.Float{Value: x}); n == 0 || text != lastText || text == previous {
				break
			}
		} else {
			text = spec.Float(cfmt.Float{Value: x})
		}
		if n > 0 {
			t.Out.WriteString(sep)
		}
		t.Out.WriteString(prefix + text + suffix)
		previous = text
		if x.IsInf() && first.v.Value.IsInf() && n > 1<<20 {
			t.Check()
		}
	}
	if previous != "" {
		t.Out.WriteByte('\n')
	}
}
