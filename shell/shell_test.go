package shell

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// noCommands is a sandbox's empty set of commands.
type noCommands struct{}

func (noCommands) Lookup(string) (proc.Program, bool) { return nil, false }
func (noCommands) Names() []string                    { return nil }

// inShell runs f in a shell's process, where expansions work.
func inShell(t testing.TB, f func(sh *Shell)) {
	t.Helper()
	s, err := proc.New(proc.Options{Namespace: vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{Mode: 0o777}), Special: proc.OpenSpecial}), Commands: noCommands{}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.NewProcess(proc.Root{Args: []string{"bash"}})
	if err != nil {
		t.Fatal(err)
	}
	p.Start(proc.Func(func(p *proc.Process) int { f(newShell(p, false)); return 0 }))
	<-p.Done()
	if p.Status() != 0 {
		t.Errorf("the shell ended with %d", p.Status())
	}
	s.Close(context.Background())
}

// Large strings are copied and counted in parts.
func TestLargeStrings(t *testing.T) {
	inShell(t, func(sh *Shell) {
		sh.bytes = false
		pieces := []string{"a", "é", "€", "😀", "\x80", "\xbf\x80\xbf", "\xf0\x9f", "\xc3"}
		r := rand.New(rand.NewPCG(1, 2))
		for range 50 {
			var b strings.Builder
			b.WriteString(strings.Repeat("x", copyPart-r.IntN(8)))
			for range 8 + r.IntN(20) {
				b.WriteString(pieces[r.IntN(len(pieces))])
			}
			b.WriteString(strings.Repeat("é", copyPart))
			s := b.String()
			if n, want := sh.charCount(s), utf8.RuneCountInString(s); n != want {
				t.Fatalf("%d characters, want %d, around %q", n, want, s[copyPart-8:copyPart+8])
			}
			at := r.IntN(len(s))
			if sh.concat(s[:at], s[at:]) != s {
				t.Fatalf("a string of %d bytes isn't its parts up to %d and from there", len(s), at)
			}
		}
	})
}

func TestPattern(t *testing.T) {
	for _, tc := range []struct {
		pat, s string
		want   bool
	}{
		{"", "", true}, {"a", "a", true}, {"a", "b", false}, {"*", "", true}, {"a*b", "axxb", true}, {"a*b", "axx", false}, {"?", "é", true},
		{"[a-c]", "b", true}, {"[!a-c]", "b", false}, {"[]a]", "]", true}, {"[a", "[a", true}, {`\*`, "*", true}, {`\*`, "x", false},
		{"[[:digit:]]*", "1a", true}, {"*.{c}", "x.{c}", true}, {"@(a|b)", "b", true}, {"?(a)b", "b", true}, {"*(ab)", "ababab", true},
		{"+(ab)", "", false}, {"!(a|b)", "c", true}, {"!(a|b)", "a", false}, {"!(*.txt)", "a.md", true}, {"a!(b)c", "abc", false}, {"a!(b)c", "axc", true},
		{"*(*(a)|b)", "abab", true}, {"@(a", "@(a", true}, {"[[:nope:]]", "x", false}, {"[\\]]", "]", true}, {"a[", "a[", true},
	} {
		if got := compilePattern(tc.pat, true, false, false).match(tc.s); got != tc.want {
			t.Errorf("%q against %q: %v", tc.pat, tc.s, got)
		}
	}
}

// Patterns that make backtracking matchers explode take no time here.
func TestPatternIsPolynomial(t *testing.T) {
	s := strings.Repeat("a", 300)
	for _, pat := range []string{strings.Repeat("*a", 60) + "b", "*(*(*(a)))b", "+(+(+(a|aa)|aa))b", strings.Repeat("*(a)", 30) + "b"} {
		if compilePattern(pat, true, false, false).match(s) {
			t.Errorf("%q matches", pat)
		}
	}
}

func TestPatternParts(t *testing.T) {
	p := compilePattern("*o", true, false, false)
	if n := p.prefix("foo", false); n != 2 {
		t.Errorf("shortest prefix %d", n)
	}
	if n := p.prefix("foo", true); n != 3 {
		t.Errorf("longest prefix %d", n)
	}
	q := compilePattern("o*", true, false, false)
	if n := q.suffix("foo", false); n != 2 {
		t.Errorf("shortest suffix %d", n)
	}
	if n := q.suffix("foo", true); n != 1 {
		t.Errorf("longest suffix %d", n)
	}
}

func TestArith(t *testing.T) {
	inShell(t, func(sh *Shell) {
		sh.set("x", "5")
		sh.set("e", "x+1")
		for expr, want := range map[string]int64{"1+2*3": 7, "(1+2)*3": 9, "2**3**2": 512, "-2**2": 4, "7/2": 3, "-7%3": -1, "1?2:3": 2, "0?1:0?2:3": 3, "x=3,x": 3,
			"e*2": 8, "0x1F": 31, "017": 15, "2#1011": 11, "64#_": 63, "!5": 0, "~0": -1, "1<<62": 1 << 62, "5&3|4^1": 5, "1&&0||1": 1, "x++ + ++x": 8, "": 0, " ": 0,
			"9223372036854775807+1": -9223372036854775808, "-9223372036854775808/-1": -9223372036854775808, "1,2,3": 3, "--x": 2, "- -3": 3} {
			sh.set("x", "3")
			got, err := sh.evalArith(expr)
			if err != nil || got != want {
				t.Errorf("%q: %d, %v; want %d", expr, got, err, want)
			}
		}
		sh.set("loop", "loop")
		for _, expr := range []string{"1+", "1 2", "1/0", "5%0", "2**-1", "08", "2#2", "1=2", "(1", "a[", "1?2", "?:", "loop", "65#1", "1..2", strings.Repeat("(", 5000), strings.Repeat("-", 5000), "a b"} {
			if n, err := sh.evalArith(expr); err == nil {
				t.Errorf("%.20q: %d", expr, n)
			}
		}
	})
}

func TestQuoting(t *testing.T) {
	for _, s := range []string{"", "a", "a b", "it's", "$x", "a\nb", "\x01", "é", "\xff", "~", "#x", "a=~b", "*", "\\"} {
		for name, q := range map[string]string{"@Q": quoteWord(s), "%q": quoteBackslash(s), "declare": quoteDouble(s)} {
			inShell(t, func(sh *Shell) {
				e := &expander{sh: sh}
				sh.rawWord(e, q)
				if got := e.joined(); got != s {
					t.Errorf("%s of %q is %q, which is %q", name, s, q, got)
				}
			})
		}
	}
}

func TestIndexed(t *testing.T) {
	a := &indexed{}
	for _, i := range []int64{0, 1, 2, 10, 5} {
		a.put(i, "v")
	}
	a.del(1)
	a.del(10)
	if got := a.indices(); len(got) != 3 || got[0] != 0 || got[1] != 2 || got[2] != 5 || a.top() != 6 {
		t.Errorf("indices %v, top %d", got, a.top())
	}
	b := a.clone()
	b.put(0, "w")
	if v, _ := a.get(0); v != "v" {
		t.Error("a clone isn't a copy")
	}
}

// A subshell copies nothing until one side changes something, and then only that side sees it.
func TestCloneSharesUntilChanged(t *testing.T) {
	inShell(t, func(sh *Shell) {
		sh.set("x", "1")
		sh.assignElement("a", "0", "p", false)
		c := sh.clone()
		c.set("x", "2")
		sh.assignElement("a", "1", "q", false)
		c.assignElement("a", "0", "r", false)
		if sh.str("x") != "1" || c.str("x") != "2" {
			t.Errorf("x is %q and %q", sh.str("x"), c.str("x"))
		}
		sa, _ := elements(sh.lookup("a"))
		ca, _ := elements(c.lookup("a"))
		if strings.Join(sa, " ") != "p q" || strings.Join(ca, " ") != "r" {
			t.Errorf("a is %q and %q", sa, ca)
		}
	})
}

// readAll reads a whole text and returns how many commands it has, or the error.
func readText(sh *Shell, text string) (int, *readError) {
	r := sh.newReader(text)
	n := 0
	for {
		stmts := r.lineOf()
		if r.err != nil || stmts == nil {
			return n, r.err
		}
		n += len(stmts)
	}
}

// Text that can't be read ends with an error, in a time that doesn't explode.
func TestReaderEnds(t *testing.T) {
	inShell(t, func(sh *Shell) {
		for _, text := range []string{"${a&}", "cat <<${a}\nx\n${a}\n", "$((1 2", "((", "echo $(( a b ) )", strings.Repeat("${a&}", 200), "${${${", "a[x y]=1", "[a b", "local FOO-BAR=1"} {
			readText(sh, text)
		}
		for _, unit := range []string{"$((", "$( (", "((", "${a[", "${x:-", "`", "\"${x:-", "a=(", "a[", "<(", "$[", "coproc a ", "case x in x) ", "[[ ( "} {
			for _, end := range []string{"", "x", ")", "x ) )"} {
				for _, n := range []int{40, 400} {
					readText(sh, "echo "+strings.Repeat(unit, n)+end)
					readText(sh, strings.Repeat(unit, n)+strings.Repeat(") )", n))
					readText(sh, strings.Repeat(unit, n)+strings.Repeat("x]x}", n))
				}
			}
		}
	})
}

func TestTooDeep(t *testing.T) {
	inShell(t, func(sh *Shell) {
		for _, unit := range []string{"(", "$(", "${x:-", "if true; then ", "$((", "{ ", "`", "! ", "[[ ( "} {
			if !tooDeep(strings.Repeat(unit, 1<<20/len(unit))) {
				t.Errorf("a megabyte of %q passes", unit)
			}
			if _, err := readText(sh, strings.Repeat(unit, freeOfNesting/len(unit)-1)); err == nil {
				t.Errorf("%q is read", unit)
			}
		}
	})
}
