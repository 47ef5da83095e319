package grep_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestGrep(t *testing.T) {
	setup := []string{"f a foo bar\nbar baz\nfoo.bar\n\nFOO\nfoobar foo\nend", "f b one\ntwo foo\nthree\nfour\nfive foo\nsix\n", "f bin x\x00foo\ny\n", "f inv ok foo\n\xff foo\nz foo\n", "d d", "f d/x.c foo c\n", "f d/y.h foo h\n", "d d/sub", "f d/sub/z.c foo z\n", "l d/ln x.c", "f pats foo\nbaz\n", "f e ", "f z foo\x00bar\x00",
		"f u é à foo\nÉ\nword_x wordx\n", "f dup abab\nabba\naa\n"}
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: setup, Stdin: "in foo\nbar\n", Sorted: true, Lines: []string{
		"grep foo a", "grep -i foo a", "grep -v foo a", "grep -c foo a b", "grep -n foo a", "grep -b foo a", "grep -o foo a", "grep -ob foo a", "grep -on fo* a", "grep -l foo a b e", "grep -L foo a b e", "grep -H foo a", "grep -h foo a b", "grep -q foo a", "grep -q nope a", "grep nope a", "grep foo nope", "grep -s foo nope", "grep -q foo nope a", "grep foo nope a",
		"grep -w foo a", "grep -x foo a", "grep -xi foo a", "grep -wo foo a", "grep -F foo.bar a", "grep foo.bar a", "grep -E 'foo|baz' a", "grep 'foo\\|baz' a", "grep -e foo -e baz a", "grep -f pats a", "grep -F -f pats a", "grep -f e a", "grep -c -f e a", "grep -c -f e a b", "grep -cv -f e a", "grep -v -f e a", "grep -L -f e a", "grep -l -f e a", "grep -qv -f e a", "grep -cw -f e a", "grep -cx -f e a", "grep -cvx -f e a", "grep -ov -f e a", "grep -c -f e -e foo a", "grep -cF -f e a", "grep -cE -f e a", "grep -c -f e nope", "grep -f nope a", "grep -m1 foo a", "grep -m 2 -c foo a", "grep -m1 -A1 foo b", "grep -A1 foo b", "grep -B1 foo b", "grep -C1 foo b", "grep -1 foo b", "grep -nA1 foo b", "grep -A1 foo a b", "grep --group-separator=XX -A0 foo b", "grep --no-group-separator -A1 foo b", "grep -c foo", "grep foo -", "grep --label=L -H foo -", "grep -H foo",
		"grep foo bin", "grep -a foo bin", "grep -I foo bin", "grep -c foo bin", "grep --binary-files=text foo bin", "grep foo inv", "grep -o foo inv", "grep -a foo inv", "grep -z foo z", "grep -zc foo z", "grep -r foo d", "grep -rn foo d", "grep -R foo d", "grep -r foo", "grep -rl foo .", "grep -rh foo d", "grep -rc foo d", "grep -r --include=*.c foo d", "grep -r --include='*.c' --include='*.h' foo d", "grep -r --exclude=*.c foo d", "grep -r --exclude-dir=sub foo d", "grep -r --exclude-dir=d foo .", "grep -r --exclude-dir=d foo d", "grep foo d", "grep -d skip foo d a", "grep -d recurse foo d", "grep foo d/", "grep -r foo a", "grep -rL foo d a e", "grep --include=*.c foo a d/x.c",
		"grep --color=always foo a", "grep --color=always -n foo a b", "grep --color=always -o foo a", "grep --color=always -A1 -n foo b", "grep --color=always -v foo b", "grep --color=always -i FOO a", "grep --color=always -l foo a", "grep --color=always -c foo a b", "grep --color=never foo a", "grep --color=always -C1 foo b", "grep --color=always -Hb foo a", "grep --color=always '' a", "grep -Z -l foo a b", "grep -Zn foo a b", "grep -T foo a", "grep -nT foo a b", "grep -nbT foo a",
		"grep '' a", "grep -c '' a e", "grep -w '' a", "grep -x '' a", "grep -E '' a", "grep -F '' a", "grep -v '' a", "grep -o '' a", "grep $'foo\\nbaz' a", "grep -e '' -e x b", "grep '^foo' a", "grep 'foo$' a", "grep '^$' a", "grep -n '^' a", "grep '^foo\\>' a", "grep '\\<bar' a", "grep 'o\\b' a", "grep '[[:upper:]]' a", "grep -E '[0-9]{2}|o{2}' a", "grep 'o\\{2\\}' a", "grep -E '(ab)\\1' dup", "grep '\\(a\\)\\1' dup", "grep -E '(.)(.)\\2\\1' dup", "grep -w '\\(a\\)\\1' dup", "grep -E -e '(a)\\1' -e '(b)b' dup",
		"grep -P 'fo+(?= bar)' a", "grep -oP 'foo\\K.*' a", "grep -oP '(?<=foo )\\w+' a", "grep -P '\\d' a", "grep -P '^\\w+$' a", "grep -Pc 'f.o' a", "grep -oP '\\bba[rz]\\b' a", "grep -P 'foo|baz' a", "grep -i É u", "grep -o '[[:alpha:]]*' u", "grep -w wordx u", "grep -o . u", "grep 'é.à' u",
		"grep", "grep -E", "grep -z", "grep --nope foo", "grep -A x foo a", "grep -m x foo a", "grep '[' a", "grep '\\(' a", "grep -E '(' a", "grep -E ')' a", "grep -E 'a)' a", "grep -E '*foo' a", "grep -E '{1}foo' a", "grep '*foo' a", "grep 'a\\{1' a", "grep '[[:foo:]]' a", "grep '[z-a]' a", "grep '\\' a", "grep -e", "grep -P '(' a", "grep '[:space:]' a",
		"grep -vc foo a", "grep -vn foo a", "grep -vo foo a", "grep -lv foo a b", "grep -ic FOO a b", "grep -A1 -B1 -n two b", "grep -vA1 foo b", "grep -nv '' e", "grep foo a -n", "grep -- -n a", "grep -y FOO a", "grep -m0 foo a", "grep -A 99999999999999999999 two b", "grep -c $'x\\n' b", "grep foo < b", "grep -on 'o' b", "grep -5 two b", "grep -n1 two b", "egrep 'one|two' b", "fgrep . a", "grep -E 'a{,2}b' a", "grep -x -F foo a", "grep -w -F foo a", "grep -if pats a", "grep --no-ignore-case -i foo a", "grep -e foo -f pats a b", "grep -hn foo a b", "grep -L nope a", "grep --max-count=1 --with-filename foo a b", "grep -E 'foo$|^bar' a", "grep -E '^(foo|bar)' a", "grep 'a\\?b' a", "grep -ob '' a", "grep -U foo a"}})
}

// -i finds a literal in any case, also where a letter is in a form beyond ASCII.
func TestFoldedLiteral(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f f Hello Word99\nhELLO\nworld\nKelvin\nmaſs\nMASS\nqQzZ\n12ab34\nÄb\näB\nk\n"},
		Lines: []string{"grep -i hello f", "grep -i WORD f", "grep -i kelvin f", "grep -i mass f", "grep -i S f", "grep -ic k f", "grep -iv l f", "grep -iw hello f", "grep -ix hello f", "grep -io l f", "grep -i 'w.*9' f", "grep -iE 'h(e|x)llo' f", "grep -i äb f", "grep -iF 'QqZ' f", "grep -in 12AB f", "grep -i -e hello -e mass f", "grep -i '' f", "grep -iA1 world f", "grep -i zz f", "grep -iE 'z+' f"},
	})
}
