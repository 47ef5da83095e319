package posixre

import (
	"fmt"
	"testing"
)

func TestFind(t *testing.T) {
	for _, c := range []struct {
		flavor   Flavor
		re, text string
		want     string // offsets, or "none", or the error
	}{
		{Basic, `a*b`, "xaab", "[1 4]"},
		{Basic, `*b`, "a*b", "[1 3]"},
		{Basic, `\(*b\)`, "a*b", "[1 3 1 3]"},
		{Basic, `^*b`, "*b", "[0 2]"},
		{Basic, `a\+`, "baa", "[1 3]"},
		{Basic, `a+`, "aa+", "[1 3]"},
		{Basic, `a\|ab`, "xab", "[1 3]"},
		{Extended, `a|ab`, "xab", "[1 3]"},
		{Extended, `(a|ab)(c|bcd)(d*)`, "abcd", "[0 4 0 1 1 4 4 4]"},
		{Basic, `\(a\)\1`, "xaa", "[1 3 1 2]"},
		{Extended, `(a*)b\1`, "aabaa", "[0 5 0 2]"},
		{Basic, `a\{2,3\}`, "caaaa", "[1 4]"},
		{Extended, `a{,2}`, "aaa", "[0 2]"},
		{Extended, `a{2}{2}`, "aaaaa", "[0 4]"},
		{Extended, `a{x`, "a{x", ErrBraceBody.Error()},
		{Basic, `\<foo\>`, "a foo b", "[2 5]"},
		{Basic, `\<.o`, "a foo b", "[2 4]"},
		{Basic, `o\>.`, "foo b", "[2 4]"},
		{Basic, `\bb`, "ab b", "[3 4]"},
		{Basic, `[[:alpha:]_]*`, "éa_1", "[0 4]"},
		{Basic, `[]x]*`, "]x", "[0 2]"},
		{Basic, `[^]x]`, "]xy", "[2 3]"},
		{Basic, `[a\]`, `\`, "[0 1]"},
		{Basic, `[[.hyphen.]]`, `-`, "[0 1]"},
		{Basic, `[[=a=]b]`, `b`, "[0 1]"},
		{Basic, `[a-]`, `-`, "[0 1]"},
		{Basic, `a$b`, "a$b", "[0 3]"},
		{Basic, `a$`, "ba", "[1 2]"},
		{Basic, `a^b`, "a^b", "[0 3]"},
		{Basic, `\w\+\W`, "ab c", "[0 3]"},
		{Basic, `x.y`, "x\ny", "[0 3]"},
		{Extended, `a{1001}`, "a", "none"},
		{Extended, `()`, "a", "[0 0 0 0]"},
		{Extended, `a||b`, "b", "[0 1]"},
		{Extended, `*a`, "a", "[0 1]"},
		{Extended, `a**`, "aaa", "[0 3]"},
		{Emacs, `.*\.\(c\|h\)`, "x.c", "[0 3 2 3]"},
		{Emacs, `a+`, "aa", "[0 2]"},
		{Perl, `(?<=a)b`, "ab", "[1 2]"},
		{Perl, `a\Kb`, "ab", "[1 2]"},
		{Perl, `a++b`, "aab", "[0 3]"},
		{Perl, `\d+?`, "12", "[0 1]"},
		{Perl, `(a)\1`, "aa", "[0 2 0 1]"},
		{Basic, `[a`, "", ErrBracket.Error()},
		{Basic, `\(a`, "", ErrParen.Error()},
		{Basic, `a\)`, "", ErrRParen.Error()},
		{Extended, `(a`, "", ErrParen.Error()},
		{Basic, `a\{1`, "", ErrBrace.Error()},
		{Basic, `a\{x\}`, "", ErrBraceBody.Error()},
		{Basic, `a\{3,2\}`, "", ErrBraceBody.Error()},
		{Basic, `[z-a]`, "", ErrRange.Error()},
		{Basic, `a\`, "", ErrEscape.Error()},
		{Basic, `\1`, "", ErrBackref.Error()},
		{Basic, `[[:nope:]]`, "", ErrClass.Error()},
		{Extended, `a{99999}`, "", ErrTooBig.Error()},
	} {
		got := ""
		re, err := Compile(c.re, Options{Flavor: c.flavor})
		if err != nil {
			got = err.Error()
		} else if loc, err := re.Find([]byte(c.text)); err != nil {
			got = err.Error()
		} else if loc == nil {
			got = "none"
		} else {
			got = fmt.Sprint(loc)
		}
		if got != c.want {
			t.Errorf("%q in %q: got %s, want %s", c.re, c.text, got, c.want)
		}
	}
}

func TestLiteral(t *testing.T) {
	for _, c := range []struct {
		re, want string
		exact    bool
	}{{"abc", "abc", true}, {"a.bcd*", "bc", false}, {`\(abc\)*d`, "d", false}, {`x\(abc\)y`, "abc", false}, {`a\|b`, "", false}, {`^ab$`, "ab", false}} {
		re, err := Compile(c.re, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got, exact := re.Literal(); got != c.want || exact != c.exact {
			t.Errorf("%q: got %q %v", c.re, got, exact)
		}
	}
}

// A pattern that makes a backtracking engine explode must end by its time limit or, better, at once.
func TestBlowUp(t *testing.T) {
	re, err := Compile(`\(a*\)*b`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := re.Match([]byte("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")); m || err != nil {
		t.Error(m, err)
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{`\(a*\)\1`, `[[:alpha:]-z]`, `a\{1,2\}`, `(a|b)*{2}`, `\<\>\b\B`, "\xff[\xff]", `^*$*`, `[[.-.]-x]`} {
		for fl := range uint8(4) {
			f.Add(s, "aab", fl, fl == 1)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, text string, flavor uint8, fold bool) {
		if len(pattern) > 64 || len(text) > 64 || flavor > 3 {
			return
		}
		re, err := Compile(pattern, Options{Flavor: Flavor(flavor), Fold: fold})
		if err != nil {
			return
		}
		all, err := re.FindAll([]byte(text), -1)
		if err != nil {
			return
		}
		at := 0
		for _, loc := range all {
			if loc[0] < at || loc[1] < loc[0] || loc[1] > len(text) {
				t.Fatalf("%q in %q: %v", pattern, text, all)
			}
			at = loc[1]
		}
		if lit, _ := re.Literal(); lit != "" {
			for _, loc := range all {
				if m := text[loc[0]:loc[1]]; len(m) < len(lit) {
					t.Fatalf("%q in %q: match %q lacks %q", pattern, text, m, lit)
				}
			}
		}
	})
}
