package calc

import (
	"math/big"
)

// The functions of bc's library are computed with digits to spare and then cut off at the scale.

// fixed is arithmetic on integers that stand for multiples of 1/unit.
type fixed struct {
	unit  *big.Int
	check func() // called in loops; may end the calculator
}

func newFixed(digits int, check func()) fixed { return fixed{pow10(digits), check} }

func (f fixed) of(n number) *big.Int {
	v := new(big.Int).Mul(n.v, f.unit)
	return v.Quo(v, pow10(n.scale))
}

func (f fixed) mul(a, b *big.Int) *big.Int {
	v := new(big.Int).Mul(a, b)
	return v.Quo(v, f.unit)
}

func (f fixed) div(a, b *big.Int) *big.Int {
	v := new(big.Int).Mul(a, f.unit)
	return v.Quo(v, b)
}

func (f fixed) sqrt(a *big.Int) *big.Int {
	v := new(big.Int).Mul(a, f.unit)
	return v.Sqrt(v)
}

// atanInverse is atan(1/n).
func (f fixed) atanInverse(n int64) *big.Int {
	sum, term := new(big.Int), new(big.Int).Quo(f.unit, big.NewInt(n))
	square := big.NewInt(n * n)
	for k := int64(1); term.Sign() != 0; k += 2 {
		f.check()
		t := new(big.Int).Quo(term, big.NewInt(k))
		if k%4 == 1 {
			sum.Add(sum, t)
		} else {
			sum.Sub(sum, t)
		}
		term.Quo(term, square)
	}
	return sum
}

// pi is Machin's.
func (f fixed) pi() *big.Int {
	v := new(big.Int).Mul(f.atanInverse(5), big.NewInt(16))
	return v.Sub(v, new(big.Int).Mul(f.atanInverse(239), big.NewInt(4)))
}

// exp is e^x for |x| < 1 or so.
func (f fixed) exp(x *big.Int) *big.Int {
	const halvings = 16
	x = new(big.Int).Rsh(x, halvings)
	sum, term := new(big.Int).Set(f.unit), new(big.Int).Set(f.unit)
	for k := int64(1); term.Sign() != 0; k++ {
		f.check()
		term = f.mul(term, x)
		term.Quo(term, big.NewInt(k))
		sum.Add(sum, term)
	}
	for range halvings {
		sum = f.mul(sum, sum)
	}
	return sum
}

// sine of any x whose multiples of pi have been taken away.
func (f fixed) sine(x *big.Int) *big.Int {
	sum, term, square := new(big.Int).Set(x), new(big.Int).Set(x), f.mul(x, x)
	for k := int64(2); term.Sign() != 0; k += 2 {
		f.check()
		term = f.mul(term, square)
		term.Quo(term, big.NewInt(-k*(k+1)))
		sum.Add(sum, term)
	}
	return sum
}

// atan of any x.
func (f fixed) atan(x *big.Int) *big.Int {
	if x.Sign() < 0 {
		return new(big.Int).Neg(f.atan(new(big.Int).Neg(x)))
	}
	if x.Cmp(f.unit) > 0 {
		half := new(big.Int).Rsh(f.pi(), 1)
		return half.Sub(half, f.atan(f.div(f.unit, x)))
	}
	const halvings = 8
	for range halvings {
		root := f.sqrt(new(big.Int).Add(f.unit, f.mul(x, x)))
		x = f.div(x, root.Add(root, f.unit))
	}
	sum, term, square := new(big.Int), new(big.Int).Set(x), f.mul(x, x)
	for k := int64(1); term.Sign() != 0; k += 2 {
		f.check()
		t := new(big.Int).Quo(term, big.NewInt(k))
		if k%4 == 1 {
			sum.Add(sum, t)
		} else {
			sum.Sub(sum, t)
		}
		term = f.mul(term, square)
	}
	return sum.Lsh(sum, halvings)
}

// log is the natural logarithm of x > 0.
func (f fixed) log(x *big.Int) *big.Int {
	shift := x.BitLen() - f.unit.BitLen()
	m := new(big.Int).Set(x)
	if shift > 0 {
		m.Rsh(m, uint(shift))
	} else {
		m.Lsh(m, uint(-shift))
	}
	result := f.atanh2(m)
	two := f.atanh2(new(big.Int).Lsh(f.unit, 1))
	return result.Add(result, two.Mul(two, big.NewInt(int64(shift))))
}

// atanh2 is 2·atanh((m-1)/(m+1)), the logarithm of an m near 1.
func (f fixed) atanh2(m *big.Int) *big.Int {
	z := f.div(new(big.Int).Sub(m, f.unit), new(big.Int).Add(m, f.unit))
	sum, term, square := new(big.Int), new(big.Int).Set(z), f.mul(z, z)
	for k := int64(1); term.Sign() != 0; k += 2 {
		f.check()
		sum.Add(sum, new(big.Int).Quo(term, big.NewInt(k)))
		term = f.mul(term, square)
	}
	return sum.Lsh(sum, 1)
}

// guard are digits that are computed beyond those asked for.
const guard = 25

func wholeDigits(n number) int { return max(n.digits()-n.scale, 0) }

// library computes a function of bc's library: s, c, a, l, e.
func library(name byte, x number, scale int, check func()) (number, error) {
	if wholeDigits(x) > 100 && name != 'l' && name != 'a' {
		if name == 'e' && x.v.Sign() < 0 {
			return number{new(big.Int), scale}, nil
		}
		return zero, errTooBig
	}
	digits := scale + guard
	switch name {
	case 'e':
		return expOf(x, scale, check)
	case 's', 'c':
		if x.isZero() && name == 's' {
			return zero, nil
		}
		digits += wholeDigits(x)
		f := newFixed(digits, check)
		v, pi := f.of(x), f.pi()
		if name == 'c' {
			v.Add(v, new(big.Int).Rsh(pi, 1))
		}
		turns := new(big.Int).Quo(v, pi)
		v.Sub(v, new(big.Int).Mul(turns, pi))
		v = f.sine(v)
		if turns.Bit(0) == 1 {
			v.Neg(v)
		}
		return number{v, digits}.at(scale), nil
	case 'a':
		if x.isZero() {
			return zero, nil
		}
		f := newFixed(digits, check)
		return number{f.atan(f.of(x)), digits}.at(scale), nil
	}
	if x.v.Sign() <= 0 {
		return one.sub(number{pow10(scale), 0}).at(scale), nil
	}
	if x.cmp(one) == 0 {
		return zero, nil
	}
	digits += x.scale
	f := newFixed(digits, check)
	return number{f.log(f.of(x)), digits}.at(scale), nil
}

func expOf(x number, scale int, check func()) (number, error) {
	// e^x = e^(x-k·ln2) · 2^k
	whole := x.at(0).v
	if !whole.IsInt64() || whole.Int64() > maxDigits*2 {
		return zero, errTooBig
	}
	if whole.Int64() < -maxDigits {
		return number{new(big.Int), scale}, nil
	}
	digits := scale + guard + int(max(whole.Int64(), 0))/2 + 10
	f := newFixed(digits, check)
	v := f.of(x)
	ln2 := f.atanh2(new(big.Int).Lsh(f.unit, 1))
	k := new(big.Int).Quo(v, ln2).Int64()
	v = f.exp(v.Sub(v, new(big.Int).Mul(ln2, big.NewInt(k))))
	if k >= 0 {
		v.Lsh(v, uint(k))
	} else {
		v.Rsh(v, uint(-k))
	}
	return number{v, digits}.at(scale), nil
}

// bessel is j(n, x).
func bessel(n int64, x number, scale int, check func()) (number, error) {
	if wholeDigits(x) > 5 || n > 100000 || n < -100000 {
		return zero, errTooBig
	}
	negate := n < 0 && n%2 != 0
	if n < 0 {
		n = -n
	}
	size := new(big.Int).Abs(x.at(0).v).Int64()
	digits := scale + guard + int(size) + int(n)/4
	f := newFixed(digits, check)
	half := f.of(x)
	half.Rsh(half, 1)
	term := new(big.Int).Set(f.unit)
	for k := int64(1); k <= n; k++ {
		check()
		term = f.mul(term, half)
		term.Quo(term, big.NewInt(k))
	}
	sum, square := new(big.Int).Set(term), f.mul(half, half)
	for k := int64(1); term.Sign() != 0; k++ {
		check()
		term = f.mul(term, square)
		term.Quo(term, big.NewInt(-k))
		term.Quo(term, big.NewInt(n+k))
		sum.Add(sum, term)
	}
	if negate {
		sum.Neg(sum)
	}
	return number{sum, digits}.at(scale), nil
}
