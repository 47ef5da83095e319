// Package calc holds the calculators bc and dc, of arbitrary precision.
//
// A number is an integer and a scale: how many of its digits are behind the point. Results are cut off, never rounded,
// at the scale that the operation's rule gives. Numbers are bounded: what has more than maxDigits ends the calculator
// as if memory were exhausted.
package calc

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
)

// maxDigits bounds the digits of a number, before and behind the point together.
const maxDigits = 4 << 20

// errTooBig says that a number would be larger than maxDigits.
var errTooBig = errors.New("out of memory")

// number is v / 10^scale. v is never changed once it is in a number.
type number struct {
	v     *big.Int
	scale int
}

var (
	zero  = number{new(big.Int), 0}
	one   = number{big.NewInt(1), 0}
	tenth = big.NewInt(10)
)

func integer(n int64) number { return number{big.NewInt(n), 0} }

func pow10(n int) *big.Int { return new(big.Int).Exp(tenth, big.NewInt(int64(n)), nil) }

// at returns the number with another scale; digits that don't fit are cut off.
func (n number) at(scale int) number {
	switch {
	case scale == n.scale:
		return n
	case scale > n.scale:
		return number{new(big.Int).Mul(n.v, pow10(scale-n.scale)), scale}
	}
	return number{new(big.Int).Quo(n.v, pow10(n.scale-scale)), scale}
}

// aligned brings two numbers to the larger of their scales.
func aligned(a, b number) (number, number) {
	s := max(a.scale, b.scale)
	return a.at(s), b.at(s)
}

func (n number) add(m number) number {
	a, b := aligned(n, m)
	return number{new(big.Int).Add(a.v, b.v), a.scale}
}

func (n number) sub(m number) number {
	a, b := aligned(n, m)
	return number{new(big.Int).Sub(a.v, b.v), a.scale}
}

func (n number) neg() number { return number{new(big.Int).Neg(n.v), n.scale} }

func (n number) cmp(m number) int {
	a, b := aligned(n, m)
	return a.v.Cmp(b.v)
}

func (n number) isZero() bool { return n.v.Sign() == 0 }

// mul multiplies; the result has at most scale digits behind the point, unless a factor has more.
func (n number) mul(m number, scale int) number {
	full := number{new(big.Int).Mul(n.v, m.v), n.scale + m.scale}
	return full.at(min(full.scale, max(scale, n.scale, m.scale)))
}

// div divides; m isn't zero.
func (n number) div(m number, scale int) number {
	// n.v/10^a / (m.v/10^b) = n.v * 10^(scale+b-a) / m.v, to scale digits.
	num, den := n.v, m.v
	if shift := scale + m.scale - n.scale; shift >= 0 {
		num = new(big.Int).Mul(num, pow10(shift))
	} else {
		den = new(big.Int).Mul(den, pow10(-shift))
	}
	return number{new(big.Int).Quo(num, den), scale}
}

// mod is what division leaves over.
func (n number) mod(m number, scale int) number {
	rscale := max(n.scale, m.scale+scale)
	q := n.div(m, scale)
	return n.sub(number{new(big.Int).Mul(q.v, m.v), q.scale + m.scale}).at(rscale)
}

// pow raises to an integer power.
func (n number) pow(m number, scale int) (number, error) {
	e := m.at(0).v
	if !e.IsInt64() {
		if n.isZero() || n.cmp(one) == 0 {
			return n, nil
		}
		return zero, errTooBig
	}
	exp := e.Int64()
	if exp == 0 {
		return one, nil
	}
	times := exp
	if exp < 0 {
		times = -exp
	}
	digits := int64(len(n.v.Text(16)))*5/4 + 1
	if times > maxDigits || digits*times > 2*maxDigits || int64(n.scale)*times > maxDigits {
		if n.v.IsInt64() && (n.v.Int64() == 0 || n.v.Int64() == 1 && n.scale == 0) {
			return n, nil
		}
		return zero, errTooBig
	}
	full := number{new(big.Int).Exp(n.v, big.NewInt(times), nil), n.scale * int(times)}
	if exp > 0 {
		return full.at(min(full.scale, max(scale, n.scale))), nil
	}
	if full.isZero() {
		return zero, errDivide
	}
	return one.div(full, scale), nil
}

var errDivide = errors.New("divide by zero")

// sqrt is the square root of what isn't negative.
func (n number) sqrt(scale int) number {
	s := max(scale, n.scale)
	return number{new(big.Int).Sqrt(n.at(2 * s).v), s}
}

// digits counts the significant digits, as bc's length does.
func (n number) digits() int {
	if n.v.Sign() == 0 {
		return max(n.scale, 1)
	}
	return max(len(new(big.Int).Abs(n.v).String()), n.scale)
}

// digitValue is a digit's value: 0 to 9, A to Z.
func digitValue(c byte) int {
	if c >= '0' && c <= '9' {
		return int(c - '0')
	}
	return int(c-'A') + 10
}

// parseNumber reads digits with at most one point in a base. Digits beyond the base count as its largest one, except
// when there is but one.
func parseNumber(s string, base int) number {
	whole, frac, _ := strings.Cut(s, ".")
	decimal := base == 10
	for i := 0; i < len(s) && decimal; i++ {
		decimal = s[i] == '.' || s[i] >= '0' && s[i] <= '9'
	}
	if decimal {
		v, ok := new(big.Int).SetString("0"+whole+frac, 10)
		if !ok {
			return zero
		}
		return number{v, len(frac)}
	}
	if len(whole) == 1 && frac == "" {
		return integer(int64(digitValue(whole[0])))
	}
	b := big.NewInt(int64(base))
	v := new(big.Int)
	for i := 0; i < len(whole); i++ {
		v.Mul(v, b).Add(v, big.NewInt(int64(min(digitValue(whole[i]), base-1))))
	}
	result := number{v, 0}
	if frac != "" {
		f, d := new(big.Int), big.NewInt(1)
		for i := 0; i < len(frac); i++ {
			f.Mul(f, b).Add(f, big.NewInt(int64(min(digitValue(frac[i]), base-1))))
			d.Mul(d, b)
		}
		result = result.add(number{f, 0}.div(number{d, 0}, len(frac)))
	}
	return result
}

// text renders a number in a base. Whole parts that are zero aren't written, unless leading is set.
func (n number) text(base int, leading bool) string {
	if n.isZero() {
		return "0"
	}
	var b strings.Builder
	if n.v.Sign() < 0 {
		b.WriteByte('-')
	}
	abs := new(big.Int).Abs(n.v)
	unit := pow10(n.scale)
	whole, frac := new(big.Int).QuoRem(abs, unit, new(big.Int))
	if base <= 16 {
		if whole.Sign() != 0 || leading {
			b.WriteString(strings.ToUpper(whole.Text(base)))
		}
	} else if whole.Sign() != 0 || leading {
		b.WriteString(bigDigits(whole, base))
	}
	if n.scale == 0 {
		return b.String()
	}
	b.WriteByte('.')
	if base == 10 {
		f := frac.String()
		b.WriteString(strings.Repeat("0", n.scale-len(f)) + f)
		return b.String()
	}
	// As many digits as are needed to tell the fraction's decimal digits.
	width := len(strconv.Itoa(base - 1))
	bb, reach, digit := big.NewInt(int64(base)), big.NewInt(1), new(big.Int)
	for first := true; reach.Cmp(unit) < 0; first = false {
		frac.Mul(frac, bb)
		digit.QuoRem(frac, unit, frac)
		reach.Mul(reach, bb)
		if base <= 16 {
			b.WriteByte("0123456789ABCDEF"[digit.Int64()])
			continue
		}
		if !first {
			b.WriteByte(' ')
		}
		d := digit.String()
		b.WriteString(strings.Repeat("0", width-len(d)) + d)
	}
	return b.String()
}

// bigDigits writes digits of a base over 16 as decimal numbers with a blank before each.
func bigDigits(n *big.Int, base int) string {
	width := len(strconv.Itoa(base - 1))
	var digits []string
	bb, rest, d := big.NewInt(int64(base)), new(big.Int).Set(n), new(big.Int)
	for rest.Sign() > 0 {
		rest.QuoRem(rest, bb, d)
		s := d.String()
		digits = append(digits, strings.Repeat("0", width-len(s))+s)
	}
	var b strings.Builder
	for i := len(digits) - 1; i >= 0; i-- {
		b.WriteString(" " + digits[i])
	}
	return b.String()
}
