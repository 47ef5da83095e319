package posixre

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

var dfaPatterns = []string{``, `a`, `abc|bcd`, `^a`, `a$`, `^$`, `^a*$`, `[0-9]+-[0-9]{2,3}`, `(a|ab)(c|bcd)(d*)`, `\bab\b`, `\Bb`, `\b`, `a\b.`, `(?i)straße|ſ`, `(?i)[k-m]+é`,
	`.`, `..$`, `(?s).\z`, `(?m)^b`, `(?m)a$`, `(?m)^$`, `\Aab|b\z`, `[^a]`, `[^ab]{3}`, `\pL+`, `[^\pL]\d`, `(a*)*b`, `(a+)+$`, `x{20,40}`, `(?:a|b)*a(?:a|b){4}`, `\w+@\w+\.com`,
	`[\x{80}-\x{7ff}]`, `�`, `é|ë`, `(?i)k`, `a.c`, `(?s)a.c`, `^(?:[01]?[0-9][0-9]?\.){3}`, `(?:^|,)b(?:,|$)`, `[^\x00-\x{10FFFF}]`, `a??b*?`, `^.{5,}$`, `(?:ab|c{2,3}|d+)x?`, `(?i)ſſ`, `(|a)+b`}

// texts are made of pieces that the patterns are about.
func dfaText(r *rand.Rand) string {
	pieces := []string{"a", "b", "c", "d", "ab", " ", "\n", ",", "-", "0", "17", "é", "ë", "ſ", "K", "k", "STRASSE", "straße", "€", "😀", "\x80", "\xff", "\xe2\x82", "x", "xxxxxxxxxx", "_", ".", "a@b.com", "�", "\x00"}
	var b strings.Builder
	for range r.IntN(14) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// The automaton says what Go's engine says, also when its table is emptied now and then.
func TestDFA(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, pattern := range dfaPatterns {
		re := regexp.MustCompile(pattern)
		d := newDFA(pattern)
		if d == nil {
			t.Errorf("%q: no automaton", pattern)
			continue
		}
		for i := range 3000 {
			if i%100 == 0 {
				d.size = dfaEntries - r.IntN(100)
				d.served = 1 << 30
			}
			text := dfaText(r)
			if got, known := d.match([]byte(text)); !known || got != re.MatchString(text) {
				t.Fatalf("%q in %q: %v (known: %v), want %v", pattern, text, got, known, !got)
			}
		}
	}
}

// A pattern whose automaton is large gives it up, and is matched without.
func TestDFAGivesUp(t *testing.T) {
	pattern := `(?:a|b)*a(?:a|b){200}c`
	d, re := newDFA(pattern), regexp.MustCompile(pattern)
	r := rand.New(rand.NewPCG(5, 6))
	text := make([]byte, 1<<16)
	for i := range text {
		text[i] = "ab"[r.IntN(2)]
	}
	if found, known := d.match(text); found || known || !d.failed {
		t.Errorf("found %v, known %v, given up %v", found, known, d.failed)
	}
	c, err := Compile(`(a|b)*a(a|b){200}c`, Options{Flavor: Extended})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if ok, err := c.Match(append(text, 'c')); err != nil || ok != re.Match(append(text, 'c')) {
			t.Errorf("%v, %v", ok, err)
		}
	}
	if ok, err := c.Match([]byte("b")); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

func FuzzDFA(f *testing.F) {
	for i, pattern := range dfaPatterns {
		f.Add(pattern, dfaText(rand.New(rand.NewPCG(uint64(i), 1))))
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		re, err := regexp.Compile(pattern)
		if err != nil || len(pattern) > 100 {
			return
		}
		d := newDFA(pattern)
		if d == nil {
			return
		}
		for i := range len(text) + 1 {
			if got, known := d.match([]byte(text[i:])); known && got != re.MatchString(text[i:]) {
				t.Fatalf("%q in %q: %v", pattern, text[i:], got)
			}
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	var lines [][]byte
	for i := range 1000 {
		lines = append(lines, fmt.Appendf(nil, "2024-01-%02d host%d service[%d]: request /path/%d took %d ms", i%28+1, i%7, i, i*31, i%977))
	}
	for _, pattern := range []string{`[0-9]+x[a-z]`, `^[a-z]+$`, `(foo|bar|baz)[0-9]`} {
		re, _ := Compile(pattern, Options{Flavor: Extended})
		b.Run(pattern, func(b *testing.B) {
			b.SetBytes(int64(len(lines) * len(lines[0])))
			for b.Loop() {
				for _, l := range lines {
					re.Match(l)
				}
			}
		})
	}
}
