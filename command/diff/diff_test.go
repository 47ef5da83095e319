package diff_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func files() []string {
	return []string{"f a one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n", "f b one\n2\nthree\nfour\nfive\nsix\nseven\neight\nnine\nTEN\neleven\n", "f c ONE\n  two\nthree  \nfour\n\nfive\nsix\nseven\neight\nnine\nten\n", "f n1 x\ny", "f n2 x\ny\n", "f n3 x\nz", "f e ", "f bin a\x00b\n", "f bin2 a\x00c\n",
		"f f1 int main()\n{\n  a;\n  b;\n  c;\n  d;\n}\n\nint other()\n{\n  e;\n  f;\n  g;\n  h;\n}\n", "f f2 int main()\n{\n  a;\n  b;\n  c;\n  d;\n}\n\nint other()\n{\n  e;\n  f;\n  g;\n  H;\n}\n", "f dot x\n.\ny\n", "f t1 a\tb\n", "f t2 a       b\n", "f cr a\r\nb\r\n", "f lf a\nb\n", "d d1", "d d2", "d d1/sub", "d d2/sub", "f d1/x 1\n", "f d2/x 2\n", "f d1/only a\n", "f d2/new b\n", "f d1/sub/y y\n", "f d2/sub/y Y\n", "f d1/same s\n", "f d2/same s\n", "d d1/t", "f d2/t x\n", "f r1 a\nb\nc\na\nb\nb\na\n", "f r2 c\nb\na\nb\na\nc\n", "f q1 {\n a\n}\n\n{\n b\n}\n", "f q2 {\n a\n}\n\n{\n c\n}\n\n{\n b\n}\n", "f sp a b\nc\n", "f sp2 a  b\nc \n"}
}

func TestDiff(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: files(), Stdin: "one\nx\n", Lines: []string{
		"diff a b", "diff a a", "diff -u --label x --label y a b", "diff -u -L x a b -L y", "diff -u a b", "diff -c a b", "diff -U1 -L a -L b a b", "diff -U 0 a b", "diff -C1 a b", "diff -e a b", "diff -f a b", "diff -n a b", "diff -y a b", "diff -y -W 40 a b", "diff --suppress-common-lines -y a b", "diff -y --left-column -W 30 a c", "diff -q a b", "diff -q a a", "diff -s a a", "diff -i a c", "diff -b a c", "diff -w a c", "diff -wiB a c", "diff -B a c", "diff -bi a c", "diff -Z a c",
		"diff n1 n2", "diff n2 n1", "diff -u n1 n3", "diff -c n1 n2", "diff n1 n3", "diff -e n1 n3", "diff -n n1 n2", "diff -y n1 n2", "diff -b n1 n2", "diff e a", "diff a e", "diff -u e a", "diff -c a e", "diff e e", "diff bin bin2", "diff -q bin bin2", "diff -a bin bin2", "diff bin bin", "diff nope a", "diff a nope", "diff nope nope2", "diff -N nope e", "diff -N -u -L 1 -L 2 nope n1", "diff - a", "diff a -", "diff - -", "diff a d1/x", "diff d1 d2/x", "diff d1/x d2", "diff a d1",
		"diff d1 d2", "diff -r d1 d2", "diff -rq d1 d2", "diff -rs d1 d2", "diff -rN d1 d2", "diff -ruN -L x -L y d1 d2", "diff -r -x only -x new d1 d2", "diff -r --exclude=sub d1 d2", "diff -rP d1 d2", "diff -r -S same d1 d2", "diff -qr d1 d2", "diff --brief --recursive d1 d2", "diff -p -U1 f1 f2", "diff -p f1 f2", "diff -F '^int' -u f1 f2", "diff -D X a b", "diff -D FOO n2 a", "diff e dot -e", "diff -t t1 t2", "diff -E t1 t2", "diff -T t1 a", "diff --strip-trailing-cr cr lf", "diff cr lf", "diff -I '^[Tt]' a b", "diff -I two -I 2 -u a b", "diff -I x a b",
		"diff r1 r2", "diff -d r1 r2", "diff -u -L a -L b q1 q2", "diff q2 q1", "diff -y q1 q2 -W 30", "diff -b sp sp2", "diff sp sp2", "diff --unchanged-line-format= --old-line-format=D%l --new-line-format=A%l a b", "diff --line-format=%L a b", "diff --old-group-format='OLD%<' --new-group-format='NEW%>' --changed-group-format='CH%<TO%>' --unchanged-group-format='=%=' a b", "diff --unchanged-group-format='' --changed-group-format='%dn,%dN(%df-%dl)%c'x'%%' a b", "diff --old-line-format='%dn< %L' --new-line-format='%5dn> %L' --unchanged-line-format='' a b", "diff --changed-group-format='%(n=1?one:many) ' a b", "diff --changed-group-format='%<' --unchanged-group-format='' a b",
		"diff --color=always a b", "diff --color=always -u -L x -L y a b", "diff --color=always -c -L x -L y a b", "diff --color=always -r d1 d2", "diff --color=always -y -W 30 a b", "diff -1 -u -L 1 -L 2 a b", "diff -u1 -L 1 -L 2 a b", "diff -L x -L y -L z a b", "diff --from-file=a b c", "diff --to-file=a b c", "diff --suppress-blank-empty -u -L a -L b q1 q2", "diff --horizon-lines=3 q1 q2", "diff --ignore-file-name-case -r d1 d2", "diff -y n1 n3 -W 20", "diff -u --palette=ad=33 --color=always -L a -L b a b", "diff -c -p -L 1 -L 2 f1 f2"}},
		commandtest.Table{Setup: files(), Loose: true, Lines: []string{"diff -C x a b", "diff -u -c a b", "diff", "diff a", "diff a b c", "diff --nope a b", "diff -W 0 a b"}})
}
