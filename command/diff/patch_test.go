package diff_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

const gitPatch = `diff --git a/a b/c
similarity index 90%
rename from a
rename to c
index 1..2 100644
--- a/a
+++ b/c
@@ -1,3 +1,3 @@
 1
-2
+two
 3
diff --git a/b b/b2
copy from b
copy to b2
diff --git a/em b/em
new file mode 100755
index 0000000..e69de29
diff --git a/b b/b
old mode 100644
new mode 100755
diff --git a/zz b/zz
new file mode 120000
index 0000000..e69de29
--- /dev/null
+++ b/zz
@@ -0,0 +1 @@
+a
\ No newline at end of file
diff --git a/e b/e
deleted file mode 100644
index e69de29..0000000
`

func TestPatch(t *testing.T) {
	ten := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	setup := []string{"f a " + ten, "f b x\n", "f e ", "d d", "f d/a " + ten, "l l a", "f far 0\n0\n0\n" + ten, "f fuzzy x\n2\n3\n4\n5\n6\n7\n8\ny\n", "f crlf 1\r\n2\r\n3\r\n", "f nonl one\ntwo", "f git " + gitPatch,
		"f u --- a\t2020-01-01 00:00:00 +0000\n+++ b\t2020-01-01 00:00:00 +0000\n@@ -2,7 +2,7 @@ func\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n",
		"f two --- a\n+++ a\n@@ -1,4 +1,5 @@\n 1\n+one and a half\n 2\n 3\n 4\n@@ -7,4 +8,3 @@\n 7\n 8\n-9\n 10\n",
		"f half --- a\n+++ a\n@@ -1,4 +1,5 @@\n 1\n+one and a half\n 2\n 3\n 4\n@@ -7,4 +8,3 @@\n 7\n 8\n-nine\n 10\n",
		"f p1 --- x/a\n+++ y/a\n@@ -1,3 +1,2 @@\n 1\n-2\n 3\n", "f new --- /dev/null\n+++ b/n/m\n@@ -0,0 +1 @@\n+one\n",
		"f del --- a\t2020-01-01 00:00:00 +0000\n+++ /dev/null\t1970-01-01 00:00:00 +0000\n@@ -1,2 +0,0 @@\n-1\n-2\n", "f delb --- b\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", "f exists --- /dev/null\n+++ b\n@@ -0,0 +1 @@\n+one\n",
		"f cx *** a\t2020-01-01 00:00:00 +0000\n--- b\t2020-01-01 00:00:00 +0000\n***************\n*** 2,8 ****\n  2\n  3\n  4\n! 5\n  6\n  7\n  8\n--- 2,8 ----\n  2\n  3\n  4\n! five\n  6\n  7\n  8\n",
		"f cadd *** a\n--- b\n***************\n*** 1,3 ****\n--- 1,4 ----\n  1\n+ new\n  2\n  3\n", "f nx 5c5\n< 5\n---\n> five\n", "f nad 1d0\n< 1\n10a10,11\n> 11\n> 12\n", "f ed 9,10d\n5c\nfive\n.\n0a\nzero\n.\n",
		"f missing --- q\n+++ w\n@@ -1,3 +1,2 @@\n 1\n-2\n 3\n", "f mail Hello,\n\nhere is a patch\n\nIndex: a\n===================\n--- a\n+++ a\n@@ -1,3 +1,2 @@\n 1\n-2\n 3\n-- \nme\n",
		"f nonew --- nonl\n+++ nonl\n@@ -1,2 +1,2 @@\n one\n-two\n\\ No newline at end of file\n+TWO\n", "f short --- a\n+++ a\n@@ -1,3 +1,3 @@\n 1\nx\n", "f noend --- a\n+++ a\n@@ -1,3 +1,3 \n 1\n", "f junk x\n", "f cr --- a\r\n+++ a\r\n@@ -1,3 +1,2 @@\r\n 1\r\n-2\r\n 3\r\n",
		"f many --- a\n+++ a\n@@ -1,3 +1,2 @@\n 1\n-2\n 3\n--- b\n+++ b\n@@ -1 +1 @@\n-x\n+y\n--- a\n+++ a\n@@ -1,2 +1,2 @@\n 1\n-3\n+three\n", "f spaces --- a\n+++ a\n@@ -1,3 +1,2 @@\n 1 \n-2\t\n 3\n", "f up --- ../a\n+++ ../a\n@@ -1,3 +1,2 @@\n 1\n-2\n 3\n", "f blanks --- nb\n+++ nb\n@@ -1,3 +1,2 @@\n 1\n-2\n\n", "f nb 1\n2\n\n", "x ro --- a\n", "f link --- l\n+++ l\n@@ -1,3 +1,2 @@\n 1\n-2\n 3\n",
		"f insert --- b\n+++ b\n@@ -1,0 +2,2 @@\n+p\n+q\n"}
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: setup, Stdin: "--- a\n+++ a\n@@ -1,3 +1,2 @@\n 1\n-2\n 3\n",
		Lines: []string{
			"patch", "patch a", "patch -i u", "patch a u", "patch -i u --dry-run", "patch -s a u", "patch -b a u", "patch -b -z .bak a u", "patch -B old/ a u", "patch -b -V numbered a u", "patch -b -V t -Y x. a u", "patch b u", "patch far u", "patch fuzzy u", "patch -F0 fuzzy u", "patch -F 3 fuzzy u", "patch -F1 fuzzy u", "patch --no-backup-if-mismatch far u", "patch --no-backup-if-mismatch -r - b u", "patch -r rejects b u", "patch --reject-format=context b u", "patch -o out a u", "patch -o - a u", "patch -o out b u", "patch -R a u",
			"patch -i two", "patch -R -i two", "patch -i half", "patch -i half --dry-run", "patch -s -i half", "patch -p0 -i p1", "patch -i p1", "patch -p1 -i p1", "patch -p2 -i p1", "patch -i new", "patch -p1 -i new", "patch -p0 -i new", "patch -R -p1 -i new", "patch -i del", "patch -i delb", "patch -b -i delb", "patch -R -i delb", "patch -i exists", "patch -N -i exists", "patch -f -i exists", "patch -t -i exists",
			"patch -i cx", "patch a cx", "patch b cx", "patch far cx", "patch -R a cx", "patch -i cadd", "patch -R -i cadd", "patch a nx", "patch far nx", "patch b nx", "patch -i nx", "patch -R a nx", "patch a nad", "patch -n a nad", "patch a ed", "patch -e a ed", "patch -u a cx", "patch -c a u",
			"patch -i missing", "patch -p0 -i missing", "patch -f -i missing", "patch -t -i missing", "patch -s -i missing", "patch -i mail", "patch -i nonew", "patch -i short", "patch -i noend", "patch -i junk", "patch -i nope", "patch -i cr", "patch --binary -i cr", "patch crlf p1", "patch -i many", "patch --dry-run -i many", "patch -i spaces", "patch -l -i spaces", "patch -p0 -i up", "patch -i up", "patch -i blanks",
			"patch -D NEW -i two", "patch -D NEW a u", "patch -E -i delb", "patch -d d -i ../two", "patch -d d -i ../u", "patch -d nope -i u", "patch -i e", "patch nofile new", "patch -i link", "patch l link", "patch --follow-symlinks -i link", "patch -i insert", "patch -p1 -i git", "patch -p1 -R -i git", "patch -p1 --dry-run -i git", "patch -i git", "patch --posix -i delb", "patch -F x", "patch -p x", "patch a b c",
		},
	})
}

// A patch that is applied already is recognized; names that lead out of the directory aren't used.
func TestPatchAgain(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f a 1\n3\n4\n", "f p --- a\n+++ a\n@@ -1,4 +1,3 @@\n 1\n-2\n 3\n 4\n", "f em ", "f q --- a\n+++ a\n@@ -1,3 +1,3 @@\n 1\n-3\n+three\n 4\n"},
		Lines: []string{"patch -i p", "patch -N -i p", "patch -f -i p", "patch -t -i p", "patch -R -i p", "patch -R -i q", "patch -R -N -i q", "patch -R -t -i q", "patch -N -r - -i p", "patch -N -s -i p", "patch -f -s -i p", "patch --dry-run -i p", "patch -N --dry-run -i p"},
	})
}
