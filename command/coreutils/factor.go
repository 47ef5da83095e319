package coreutils

import (
	"bufio"
	"bytes"
	"math/big"
	"math/bits"
	"slices"
	"sort"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var factorSpec = tool.Spec{
	Usage:   []string{"[OPTION] [NUMBER]..."},
	About:   "Print the prime factors of each specified integer NUMBER.  If none\nare specified on the command line, read them from standard input.",
	Options: []getopt.Option{{Short: 'h', Long: "exponents", Help: "print repeated factors in form p^e unless e is 1"}},
	Package: tool.Coreutils,
}

// Bounds of numbers: digits, and rounds of Pollard's rho for one factor, which finds those of up to about 60 bits.
const (
	factorMaxDigits = 1000
	factorMaxRounds = 1 << 31
)

// Factor prints prime factors.
func Factor(t *tool.T) int {
	opts, args := t.Parse(&factorSpec)
	exponents := len(opts) > 0
	failed := false
	if len(args) > 0 {
		for _, a := range args {
			failed = !factorOne(t, a, exponents) || failed
		}
		return status(failed)
	}
	s := bufio.NewScanner(t.Stdin())
	s.Buffer(nil, 1<<20)
	s.Split(func(data []byte, eof bool) (int, []byte, error) {
		i := 0
		for i < len(data) && strings.IndexByte("\n\t \x00", data[i]) >= 0 {
			i++
		}
		if j := bytes.IndexAny(data[i:], "\n\t \x00"); j >= 0 {
			return i + j + 1, data[i : i+j], nil
		}
		if eof && i < len(data) {
			return len(data), data[i:], nil
		}
		return i, nil, nil
	})
	for s.Scan() {
		failed = !factorOne(t, s.Text(), exponents) || failed
	}
	return status(failed)
}

func factorOne(t *tool.T, arg string, exponents bool) bool {
	digits := strings.TrimLeft(arg, " ")
	digits = strings.TrimPrefix(digits, "+")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		t.Warn("%s is not a valid positive integer", tool.Quote(arg))
		return false
	}
	if len(digits) > factorMaxDigits {
		t.Warn("%s is too large", tool.Quote(arg))
		return false
	}
	n, _ := new(big.Int).SetString(digits, 10)
	t.Out.WriteString(n.String() + ":")
	f := factorizer{t: t}
	if n.IsUint64() {
		f.small(n.Uint64())
	} else {
		f.large(n)
	}
	f.write(exponents)
	return true
}

// factorizer collects prime factors: words, and those beyond.
type factorizer struct {
	t      *tool.T
	primes []uint64
	big    []*big.Int
}

func (f *factorizer) write(exponents bool) {
	slices.Sort(f.primes)
	sort.Slice(f.big, func(i, j int) bool { return f.big[i].Cmp(f.big[j]) < 0 })
	all := make([]string, 0, len(f.primes)+len(f.big))
	for _, p := range f.primes {
		all = append(all, new(big.Int).SetUint64(p).String())
	}
	for _, p := range f.big {
		all = append(all, p.String())
	}
	for i := 0; i < len(all); {
		n := 1
		for exponents && i+n < len(all) && all[i+n] == all[i] {
			n++
		}
		f.t.Out.WriteString(" " + all[i])
		if n > 1 {
			f.t.Out.WriteString("^" + itoa(n))
		}
		i += n
	}
	f.t.Out.WriteByte('\n')
}

// small factors a word: trial division by small numbers, then Pollard's rho.
func (f *factorizer) small(n uint64) {
	if n < 2 {
		return
	}
	for _, p := range [...]uint64{2, 3, 5} {
		for n%p == 0 {
			f.primes = append(f.primes, p)
			n /= p
		}
	}
	wheel := [...]uint64{4, 2, 4, 2, 4, 6, 2, 6} // steps over multiples of 2, 3 and 5, from 7
	for p, i := uint64(7), 0; p < 5000 && p*p <= n; p, i = p+wheel[i], (i+1)%len(wheel) {
		for n%p == 0 {
			f.primes = append(f.primes, p)
			n /= p
		}
	}
	if n > 1 {
		f.rho(n)
	}
}

func mulMod(a, b, m uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	_, r := bits.Div64(hi, lo, m)
	return r
}

func (f *factorizer) rho(n uint64) {
	if new(big.Int).SetUint64(n).ProbablyPrime(0) { // exact for words
		f.primes = append(f.primes, n)
		return
	}
	for c := uint64(1); ; c++ {
		step := func(x uint64) uint64 {
			x, carry := bits.Add64(mulMod(x, x, n), c, 0)
			if carry != 0 || x >= n {
				x -= n
			}
			return x
		}
		x, y, d := uint64(2), uint64(2), uint64(1)
		for d == 1 {
			f.t.Check()
			product, sx, sy := uint64(1), x, y
			for range 128 { // one division of Euclid for many differences
				x, y = step(x), step(step(y))
				if p := mulMod(product, max(x, y)-min(x, y), n); p != 0 {
					product = p
				}
				if x == y {
					break
				}
			}
			if d = gcd(product, n); d == 1 && x != y {
				continue
			}
			for d, x, y = 1, sx, sy; d == 1; { // which of them was it?
				x, y = step(x), step(step(y))
				d = gcd(max(x, y)-min(x, y), n)
			}
		}
		if d != n {
			f.rho(d)
			f.rho(n / d)
			return
		}
	}
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// large factors what doesn't fit in a word.
func (f *factorizer) large(n *big.Int) {
	var m, p, q big.Int
	n = new(big.Int).Set(n)
	for d := uint64(2); d < 1<<16; d++ {
		p.SetUint64(d)
		for {
			if q.QuoRem(n, &p, &m); m.Sign() != 0 {
				break
			}
			f.primes = append(f.primes, d)
			n.Set(&q)
		}
		if n.IsUint64() {
			f.small(n.Uint64())
			return
		}
	}
	f.bigRho(n)
}

func (f *factorizer) bigRho(n *big.Int) {
	if n.IsUint64() {
		f.small(n.Uint64())
		return
	}
	if n.ProbablyPrime(20) {
		f.big = append(f.big, n)
		return
	}
	one := big.NewInt(1)
	var diff big.Int
	rounds := 0
	for c := int64(1); ; c++ {
		add := big.NewInt(c)
		step := func(x *big.Int) { x.Mul(x, x).Add(x, add).Mod(x, n) }
		x, y, d := big.NewInt(2), big.NewInt(2), big.NewInt(1)
		product, sx, sy := big.NewInt(1), new(big.Int), new(big.Int)
		for d.Cmp(one) == 0 {
			f.t.Check()
			if rounds += 256; rounds > factorMaxRounds {
				f.t.Fatal(1, "%s: too large to factor", n)
			}
			sx.Set(x)
			sy.Set(y)
			product.Set(one)
			for range 256 {
				step(x)
				step(y)
				step(y)
				diff.Sub(x, y)
				product.Mul(product, diff.Abs(&diff)).Mod(product, n)
			}
			d.GCD(nil, nil, product, n)
		}
		if d.Cmp(n) == 0 {
			for d.Set(one); d.Cmp(one) == 0; {
				step(sx)
				step(sy)
				step(sy)
				d.GCD(nil, nil, diff.Abs(diff.Sub(sx, sy)), n)
			}
		}
		if d.Cmp(n) != 0 {
			f.bigRho(new(big.Int).Set(d))
			f.bigRho(new(big.Int).Quo(n, d))
			return
		}
	}
}
