package coreutils_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestEcho(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Lines: []string{"echo", "echo a b", "echo -n a", "echo -e 'a\\tb\\n\\x41\\0101\\101\\e\\c x' y", "echo -E '\\t'",
		"echo -neE '\\t'", "echo -x", "echo -- a", "echo -e '\\'", "echo -e '\\q\\x\\xg'", "echo --help x", "true x", "false --nope"}})
}

func TestCat(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f a one\ntwo\n", "f b no newline", "d dir", "f ctl \x00\x01\t\x7f\x80\xff\r\n\n\n\nx\r", "f e "}, Stdin: "in\n",
		Lines: []string{"cat a b", "cat b a -", "cat", "cat -", "cat nope a", "cat dir a", "cat -n b a", "cat -b ctl a", "cat -A ctl", "cat -e ctl", "cat -t ctl", "cat -v ctl", "cat -E ctl",
			"cat -T ctl", "cat -s ctl", "cat -sn ctl", "cat -snb ctl b ctl", "cat -z", "cat --nope", "cat --show-n", "cat --numb a", "cat 'a b'", "cat $'x\\ny' \"it's\" a:b '' '~x'", "cat -u e"},
	})
}

func TestHeadTail(t *testing.T) {
	setup := []string{"f a 1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "f b x\ny", "f e ", "d dir", "f z a\x00b\x00c\x00"}
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: setup, Stdin: "i1\ni2\ni3\ni4\n", Lines: []string{
		"head a", "head -n 3 a", "head -n3 a b", "head -3 a", "head -n -10 a", "head -c 5 a", "head -c -20 a", "head -c 1K a", "head -q a b", "head -v a", "head nope a", "head dir", "head -n x a",
		"head -n 0 a", "head -z -n 2 z", "head -2", "head -n 1 - a", "head -c -2", "head -n -2", "head -5c a", "head -n 1x a", "head -c", "head -1v a", "head e b", "head -n 99999999999999999999 b",
		"tail a", "tail -n 3 a", "tail -n3 a b", "tail -3 a", "tail -n +10 a", "tail -c 5 a", "tail -c +20 a", "tail -q a b", "tail -v a", "tail nope a", "tail dir a", "tail -n x a", "tail -n 0 a",
		"tail -z -n 2 z", "tail -2", "tail -n +2", "tail -c 3", "tail -c +3", "tail +11 a", "tail -n 1 - a", "tail -n +0 a", "tail -1 b", "tail e", "tail -n 100 a", "tail -n1", "tail -c 1x a"}})
}

func TestWc(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"f a one two\nthree\n", "f b é\t日本\x01\n\xff x", "d dir", "f list a\x00b\x00"}, Stdin: "in put\n", Lines: []string{
		"wc a", "wc a b", "wc", "wc -", "wc -l a", "wc -l", "wc -w a b", "wc -c a", "wc -m b", "wc -L a b", "wc -lwcmL b", "wc nope a", "wc dir", "wc --files0-from=list", "wc -l < a", "wc -x", "wc --files0-from=list a"}})
}

func TestCut(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"f a a:b:c\nd:e\nnone\n\n:x:\n", "f t 1\t2\t3\n", "f n last"}, Lines: []string{
		"cut -d: -f1 a", "cut -d: -f2- a", "cut -d: -f-2 a", "cut -d: -f1,3 a", "cut -d: -f3,1 a", "cut -s -d: -f2 a", "cut -d: --complement -f2 a", "cut -d: -f1,2 --output-delimiter=-- a",
		"cut -c1-2 a", "cut -b2- a", "cut -c 1,3 --output-delimiter=/ a", "cut -f2 t", "cut -c1 n", "cut", "cut -f1 -c1 a", "cut -d:: -f1 a", "cut -f0 a", "cut -f3-2 a", "cut -fx a", "cut -c0 a", "cut -b a a",
		"cut -d: a", "cut -s -c1 a", "cut -d: -c1 a", "cut -f- a", "cut -f '1 2' -d: a", "cut -z -d: -f1 a", "cut -f1 nope", "cut -d '' -f1 a", "cut -c --complement", "cut --complement -c2 a", "cut -d $'\\n' -f2,3 a", "cut -f , a"}})
}

func TestUniq(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"f a a\na\nb\nc\nc\nc\nd\n", "f b A\na\nB b\nb b\nx b", "f f 1 a\n2 a\n3 b\n", "f z a\x00a\x00b\x00"}, Lines: []string{
		"uniq a", "uniq -c a", "uniq -d a", "uniq -u a", "uniq -D a", "uniq --all-repeated=separate a", "uniq --all-repeated=prepend a", "uniq --group a", "uniq --group=both a", "uniq --group=append a",
		"uniq --group=prepend a", "uniq -i b", "uniq -ci b", "uniq -f1 f", "uniq -s2 f", "uniq -w1 b", "uniq -1 f", "uniq +2 f", "uniq -z z", "uniq a out", "uniq a b c", "uniq nope", "uniq -f x a", "uniq -cD a",
		"uniq -du a", "uniq --group -c a", "uniq --all-repeated=x a", "uniq -c < a"}})
}

func TestDirectories(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"d d", "d d/e", "f d/e/f x", "f f y", "l ln d", "d empty", "d p", "d p/q"}, Lines: []string{
		"mkdir n", "mkdir n/m", "mkdir -p n/m/o", "mkdir d", "mkdir -p d", "mkdir f", "mkdir -p f", "mkdir -p f/x", "mkdir -v n", "mkdir -pv n/m d/x/y", "mkdir -m 700 n", "mkdir -m u=rx,go= n", "mkdir", "mkdir -m z n", "mkdir -p n/", "mkdir -m 755 -p a/b", "mkdir ''",
		"rmdir empty", "rmdir d", "rmdir nope", "rmdir f", "rmdir -p p/q", "rmdir -v empty", "rmdir -pv p/q", "rmdir --ignore-fail-on-non-empty d empty", "rmdir", "rmdir ln", "rmdir ln/",
		"rm f", "rm nope", "rm -f nope", "rm d", "rm -r d", "rm -rf d f nope", "rm -d empty d", "rm -v f", "rm -rv d", "rm ln", "rm -r ln", "rm -r ln/", "rm", "rm -f", "rm -r .", "rm -rf ..", "rm -i f", "rm -z", "rm -rf d/.", "rm --interactive=never f", "rm --interactive=x f", "rm d/e/f/"}},
		commandtest.Table{Setup: []string{"d d", "f d/a x", "f f "}, Stdin: "y\nn\n", Lines: []string{"rm -i f d/a", "rm -ri d", "rm -I f f f f", "rm -rI d"}})
}

func TestTouch(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"f f x", "d d", "l ln f", "l dang nope"}, Lines: []string{"touch n", "touch f", "touch -c n", "touch no/where", "touch d", "touch -d 2020-01-01 n f", "touch -t 202001020304.05 f",
		"touch -t 99 f", "touch -d nonsense f", "touch -r f n", "touch -r nope n", "touch", "touch --time=x f", "touch -h ln", "touch dang", "touch -am f", "touch ''"},
		Differs: map[string]commandtest.Deviation{"touch f/": {Want: "touch: cannot touch 'f/': Is a directory\n", Reason: "GNU words it by the second of two failures"}}})
}

func TestCpMv(t *testing.T) {
	setup := []string{"f a A", "f b B", "x x X", "d d", "f d/f F", "d d/e", "l d/l f", "l ln a", "l dl d", "d t", "f t/a old", "h hard a", "l dang nope"}
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: setup, Sorted: true, Lines: []string{
		"cp a c", "cp a b", "cp -v a c", "cp a b t", "cp a t/", "cp a t/new", "cp nope c", "cp d c", "cp -r d c", "cp -r d t", "cp -rv d c", "cp -a d c", "cp -R dl c", "cp dl c", "cp ln c", "cp -P ln c", "cp -d ln c", "cp x c", "cp a a",
		"cp a b nope", "cp a", "cp", "cp -n a b", "cp -b a b", "cp -S.bak a b", "cp --backup=numbered a b", "cp -t t a b", "cp -T a c", "cp -T a t", "cp -l a c", "cp -s a c", "cp -u a b", "cp -u b a", "cp --parents d/f t", "cp a nope/c", "cp -f a b",
		"cp -a a hard c", "cp -a a hard t", "cp -r d a", "cp a d/e/", "cp a dang", "cp --remove-destination a ln", "cp --strip-trailing-slashes d/ c -r", "cp --attributes-only x c", "cp -p x c", "cp d/f d/e t", "cp -rL d c", "cp -rH dl c", "cp --no-preserve=mode x c", "cp -a d/. t", "cp a ./a", "cp -i a b", "cp a a t", "cp -r d/ c", "cp --preserve=nope a b", "cp -x a c", "cp a nope/",
		"mv a c", "mv a b", "mv -v a c", "mv a b t", "mv d c", "mv d t", "mv nope c", "mv a nope/c", "mv a a", "mv d d/e", "mv -n a b", "mv -b a b", "mv --backup=t a b", "mv -t t a b", "mv -T d t", "mv a d/", "mv ln c", "mv a hard", "mv -u a b", "mv -u b a", "mv a", "mv", "mv -f a b", "mv d a", "mv a d/e", "mv a b c", "mv t d", "mv -T a t", "mv -i a b", "mv a c/", "mv -v d t", "mv x/ c"},
		Differs: map[string]commandtest.Deviation{"cp -r d d/e": {Want: "cp: cannot copy a directory, 'd', into itself, 'd/e/d'\n", Reason: "GNU copies what it meets before it notices"}}})
}

func TestPrintf(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Lines: []string{
		"printf x", "printf '%s\\n' a b c", "printf '%d %5d|%-5d|%05d|%+d\\n' 1 2 3 4 5", "printf '%x %X %#x %o %#o %u\\n' 255 255 255 8 8 -1", "printf '%c%c' abc d", "printf '%5s|%-5s|%.2s\\n' a b cde", "printf '%b' 'a\\tb\\n\\0101\\101'", "printf '%q %q' 'a b' $'x\\ny'",
		"printf '%f %.2f %e %g %G %a\\n' 1.5 2.345 12345.678 0.0001 1e20 1", "printf '%d' abc", "printf '%d' 3x", "printf '%d' 0x1f", "printf '%d' 010", "printf '%d' \"'a\"", "printf '%d' ''", "printf '%s %s\\n' a", "printf '%*d|%-*d|%.*f' 5 1 5 2 2 3.14159", "printf '%%'", "printf '%z' 1", "printf '%'", "printf 'a\\x41\\101\\u00e9\\n'",
		"printf '\\c' x", "printf 'a\\cb'", "printf x y z", "printf", "printf '%d %d\\n' 1 2 3", "printf '%i' 99999999999999999999", "printf '%s' -- a", "printf -- '%s' a", "printf '%10.3e|%-10.1f|%+.0f|%#.0f\\n' 1234.5 2.25 2.5 3", "printf '%g %g %g %g\\n' 100000 1000000 1e-5 0", "printf '%.20f' 0.1", "printf '%f %f' inf nan", "printf '%b|' 'x\\cy' z",
		"printf '%5c|%-3c|' a b", "printf '%.3d' 5", "printf '%+i % d' 3 4", "printf '%ld %lld %hd' 1 2 3", "printf '%d' 1.5", "printf '%x' -1", "printf '\\x'", "printf '\\1234 \\08'", "printf '%a %.2a %A' 3.14 1.999 255", "printf '%s\\0' a b", "printf '\\\"\\q'", "printf '%.0d|' 0", "printf \"%d\\n\" '\"é'", "printf '%f' 1e400", "printf '%5%'", "printf '%e' 0", "printf '%#g %#x' 1 0"}})
}

func TestTest(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"f a x", "f e ", "d d", "l l a", "x x x", "f new x", "h h a", "l dang nope"}, Lines: []string{
		"test", "test a", "test ''", "test -n a", "test -z a", "test -z ''", "test a = a", "test a != a", "test a == a", "test 1 -eq 1", "test 1 -lt 2", "test 10 -gt 9", "test -1 -ge 0", "test 1 -eq x", "test x -eq 1", "test ! a", "test ! ''", "test ! a = a", "test a -a b", "test a -a ''", "test '' -o b", "test ( a )",
		"test ( a = a )", "test ! ( a )", "test -f a", "test -f d", "test -d d", "test -e nope", "test -L l", "test -h l", "test -s a", "test -s e", "test -x x", "test -x a", "test -r a", "test -w a", "test a -nt new", "test new -nt a", "test a -ot new", "test a -ef h", "test a -ef new", "test -p a", "test -S a", "test -b a", "test -c a", "test -u a", "test -g a",
		"test -k a", "test -O a", "test -G a", "test -e dang", "test -L dang", "test a b", "test a b c", "test -q a", "test a = a -a b = b", "test a = b -o b = b", "test 1 -eq 1 -a ! 2 -eq 3", "test ( a = a -a b = b ) -o c", "test a =", "test -f", "test !", "test = = =", "test -n", "test ( a", "test a b c d", "test -l abc -eq 3", "test 1 -eq", "test 99999999999999999999 -gt 1", "test ' 1 ' -eq 1", "test +1 -eq 1",
		"[ a ]", "[ a", "[ ]", "[", "[ 1 -eq 2 ]", "test -t 0", "test -t x", "test a -a", "test ( )", "test ( ( a ) )", "test ! ! a", "test -a a", "test x -a y -o z"}})
}
