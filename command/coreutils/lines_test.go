package coreutils_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestExpand(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f a a\tb\tc\n\tx\n  \ty\tz\n", "f b no\tnewline", "f bs ab\b\tc\n", "f sp         eight\n    four  two one x       y\n \t mixed\n", "d d"}, Stdin: "in\tput\n",
		Lines: []string{"expand a", "expand", "expand -t4 a", "expand -t 4 b a", "expand -i a", "expand -t2,5,10 a", "expand -t 2,5,/4 a", "expand -t 2,5,+4 a", "expand -4 a", "expand -2,5 a", "expand -t 0 a", "expand -t 5,2 a", "expand -t x a", "expand -t 4x a", "expand -t 1/2 a",
			"expand bs", "expand nope a", "expand d", "expand -t '2 5' a", "expand -t /4,8 a", "expand --tabs=3 a", "expand --initial sp",
			"unexpand sp", "unexpand -a sp", "unexpand -t4 sp", "unexpand -t 4 --first-only sp", "unexpand -a -t 2,5 sp", "unexpand a", "unexpand -a a", "unexpand -t2,6,/3 sp", "unexpand -4 sp", "unexpand bs -a", "unexpand nope", "unexpand -t 0 a", "unexpand -t 3 < sp"},
	})
}

func TestFmt(t *testing.T) {
	long := "The quick brown fox jumps over the lazy dog. It was a dark and stormy night;  the rain fell in torrents (except at occasional intervals, when it was checked by a violent gust of wind which swept up the streets). For it is in London that our scene lies.\n"
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f a " + long + "\nSecond paragraph.\n  indented line here\n  and more\n", "f b   first line indented quite a bit more than the second one is, really so\nsecond line without indentation\nthird line\n", "f p > quoted text that is rather long and needs to be filled again\n> more of it\nnot quoted\n> again\n", "f t \ttab\tseparated  words.  And\tmore\n", "f e \n\n\n", "f n no newline", "f w " + "averyveryverylongwordthatdoesnotfitintotheline short averyveryverylongwordthatdoesnotfitintotheline\n"},
		Stdin: long,
		Lines: []string{"fmt a", "fmt", "fmt -w 40 a", "fmt -40 a", "fmt -w 20 a b", "fmt -c b", "fmt -t b", "fmt -s a", "fmt -u t", "fmt t", "fmt -w 30 t", "fmt -p '>' p", "fmt -p '> ' -w 20 p", "fmt -g 30 a", "fmt -w 40 -g 20 a", "fmt e", "fmt n", "fmt -w 20 w", "fmt -w 0 n", "fmt -w x n", "fmt -w 9999 n", "fmt nope", "fmt -s -w 30 b", "fmt -u -w 50 a", "fmt -w 1 n"},
	})
}

func TestJoin(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f a 1 apple red\n2 banana yellow\n3 cherry dark red\n", "f b 1 uno\n3 tres\n4 quatro\n", "f c a,b,c\nd,e,f\n", "f d a,1\nd,2\nd,3\n", "f u b 1\na 2\n", "f h id name\n1 x\n", "f h2 id val\n1 y\n2 z\n", "f e ", "f dup k 1\nk 2\n", "f dup2 k a\nk b\n", "f up A 1\nb 2\n", "f lo a x\nB y\n", "f z 1 a\x002 b\x00", "f sp   1   x  \n"},
		Stdin: "1 stdin\n",
		Lines: []string{"join a b", "join -a1 a b", "join -a 2 a b", "join -a1 -a2 a b", "join -v1 a b", "join -v 2 a b", "join -v1 -v2 a b", "join -t, c d", "join -o 1.1,2.2 a b", "join -o '1.2 0 2.1' a b", "join -a1 -e NONE -o 0,1.2,2.2 a b", "join -a1 -a2 -e - -o auto a b", "join -1 2 -2 1 a b", "join -j 1 a b", "join -j1 1 -j2 1 a b", "join --header h h2", "join --header -a2 h h2", "join u a", "join a u", "join --check-order u a", "join --nocheck-order u a", "join e a", "join a e", "join -a2 e a", "join dup dup2", "join -i up lo", "join - a", "join a -", "join - -", "join a", "join", "join a b c", "join nope a", "join -t ab a b", "join -1 0 a b", "join -a 3 a b", "join -o 3.1 a b", "join -o 1 a b", "join -z z z", "join sp a", "join -t '' a a", "join -t ' ' sp a", "join -o 1.2 -o 2.2 a b", "join -o 1.2 2.2 a b", "join --header e h", "join -e x -t, -a1 c d", "join -1 9 a b"},
	})
}

func TestSplit(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f a 1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", "f b abcdefghijklmnop", "f n one\ntwo\nthree", "f l longlonglongline\nx\ny\n", "f e ", "f z a\x00b\x00c"}, Stdin: "s1\ns2\ns3\n",
		Lines: []string{"split a", "split -l 3 a", "split -3 a", "split -l3 a p", "split -b 4 b", "split -b 1K a", "split -C 6 a", "split -C 5 l", "split -n 3 a", "split -n 3 b q", "split -n 2/3 b", "split -n l/3 a", "split -n l/2/3 a", "split -n r/3 a", "split -n r/2/3 a", "split -d -l 4 a", "split --numeric-suffixes=5 -l 4 a", "split -x -l 1 a", "split --hex-suffixes=9 -l 4 a", "split -a 3 -l 4 a", "split --additional-suffix=.txt -l 4 a", "split -l 4 --verbose a", "split -n 20 b", "split -n 20 -e b", "split -n l/12 a", "split -n l/12 -e a", "split -t 5 -l 1 a", "split -t '\\0' -l 1 z", "split -l 1", "split -l 2 - p.", "split -l 0 a", "split -l x a", "split -b 2 -l 2 a", "split nope", "split a b c", "split -a 1 -l 1 a", "split -n 0 a", "split -n 4/3 a", "split e", "split -n 3 e", "split -n 3 -e e", "split -a 1 -b 1 b", "split -a 1 -d -l 1 -b 1 n", "split --additional-suffix=a/b a", "split -l 1 n", "split -n r/2 n", "split -C 3 n", "split -b 5 n", "split -n 1 a", "split -n 100 -a 1 b", "split -n l/3 l"},
	})
}

func TestCsplit(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f a 1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", "f s h1\na\nb\nh2\nc\nh3\nd", "f e "}, Stdin: "x\ny\nz\n",
		Lines: []string{"csplit a 5", "csplit a 3 7", "csplit a /5/", "csplit a /5/ /8/", "csplit a %5%", "csplit a %5% /8/", "csplit a 3 '{1}'", "csplit a 3 '{*}'", "csplit a 2 '{*}'", "csplit s /h/ '{*}'", "csplit -z s /h/ '{*}'", "csplit -s s /h/ '{*}'", "csplit -f p -b %03x s /h2/", "csplit -n 3 s /h2/", "csplit --suppress-matched s /h/ '{*}'", "csplit a /5/+1", "csplit a /5/-2", "csplit a 20", "csplit -k a 20", "csplit a /nope/", "csplit -k a /5/ /nope/", "csplit a 5 3", "csplit a 5 5", "csplit - 2", "csplit a", "csplit", "csplit nope 1", "csplit a x", "csplit a 0", "csplit a /5", "csplit a '/5/x'", "csplit a /5/ '{1}'", "csplit a 3 '{5}'", "csplit a 5 '{x}'", "csplit -b %s a 5", "csplit -b x a 5", "csplit -b %d%d a 5", "csplit e 1", "csplit a /1/ '{*}'", "csplit -b 'x%-5dy' a 2", "csplit a '/[/'", "csplit a 10", "csplit a 11", "csplit -k a /2/ /3/ '%8%' 10"},
	})
}

func TestTsortFactor(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f a a b\nb c\nc d\n", "f l a b\nb a\nc d\n", "f o a b c\n", "f s x x\n", "f g main parse\nmain read\nparse lex\nread buf\nlex buf\nq r\n", "f l3 a b\nb c\nc a\nd a\n"}, Stdin: "b a\nc b\n",
		Lines: []string{"tsort a", "tsort", "tsort -", "tsort l", "tsort l3", "tsort o", "tsort s", "tsort g", "tsort nope", "tsort a b",
			"factor 0 1 2 3 4", "factor 97 100 1001", "factor 10000000018", "factor 18446744073709551557", "factor 18446744073709551615", "factor 1000000016000000063", "factor 340282366920938463463374607431768211456", "factor x", "factor -5", "factor +7", "factor ''", "factor 007", "factor 99999999999999999999 5", "factor 12 x 15", "factor 4294967291 4294967296", "factor 3037000493 9223372036854775783", "factor 1.5", "factor 7fffffff"},
	}, commandtest.Table{Stdin: "12 15\n\n7\tx 9", Lines: []string{"factor"}})
}

func TestTruncate(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f a 0123456789", "f b abc", "d d"},
		Lines: []string{"truncate -s 5 a", "truncate -s 12 a", "truncate -s +3 a", "truncate -s -3 a", "truncate -s -30 a", "truncate -s '<4' a", "truncate -s '>4' a", "truncate -s '>14' a", "truncate -s /4 a", "truncate -s %4 a", "truncate -s 0 new", "truncate -c -s 0 new", "truncate -r b a", "truncate -r b -s +2 a", "truncate -r b -s 2 a", "truncate", "truncate -s 1", "truncate a", "truncate -s x a", "truncate -s 1K b", "truncate -s 1KB b", "truncate -s 1kB b", "truncate -s 5 d", "truncate -s /0 a", "truncate -s 5 nope/x", "truncate -o a", "truncate -s '<+3' a", "truncate -s 99999999999999999999 a", "truncate -r nope a", "truncate -s ' 3' a", "truncate -s 3 a b", "truncate -s 1x a", "truncate -s '< 4' a"},
	})
}

func TestSums(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f a hello\n", "f b ", "f c " + "some longer text to be summed, which has more than sixty-four bytes in all, really\n", "f md b1946ac92492d2347c6235b4d2611184  a\n", "f mdbad b1946ac92492d2347c6235b4d2611185  a\nxx\n", "f tag MD5 (a) = b1946ac92492d2347c6235b4d2611184\n", "f tags SHA1 (a) = f572d396fae9206628714fb2ce00f72e94f2258f\nMD5 (a) = b1946ac92492d2347c6235b4d2611184\nFOO (a) = 12\n", "f miss b1946ac92492d2347c6235b4d2611184  nope\n", "d d"}, Stdin: "hello\n",
		Lines: []string{"cksum a", "cksum", "cksum a b c", "cksum nope", "sum a", "sum", "sum a b", "sum -s a", "sum -s", "sum -r c", "sum -", "sum -s a c", "cksum -a bsd a", "cksum -a bsd", "cksum -a sysv a", "cksum -a sysv", "cksum -a md5 a", "cksum -a sha1 a b", "cksum -a sha256", "cksum -a sm3 a c", "cksum -a sm3 b", "cksum -a blake2b a", "cksum -a blake2b -l 128 a", "cksum -a sha512 --untagged a", "cksum -a crc a", "cksum -a nope a", "cksum -c tags", "cksum -c tag", "cksum -a md5 -c md", "cksum -a crc -c md", "cksum -l 8 a",
			"md5sum a", "md5sum -b a", "md5sum --tag a", "md5sum -c md", "md5sum -c mdbad", "md5sum -c --quiet md", "md5sum -c --status mdbad", "md5sum -c --strict mdbad", "md5sum -c -w mdbad", "md5sum -c tag", "md5sum -c miss", "md5sum -c --ignore-missing miss", "md5sum -c a", "md5sum --quiet a", "md5sum --tag -c md", "md5sum -z a", "md5sum -z -c md", "md5sum -b -c md", "md5sum --tag --text a", "sha1sum a", "sha224sum a", "sha256sum a b", "sha384sum a", "sha512sum a", "b2sum a", "b2sum -l 256 a", "b2sum -l 7 a", "b2sum --tag -l 128 a", "sha1sum -c tags", "md5sum -c < md", "md5sum -c - < md", "md5sum nope -"},
	})
}

func TestBasenc(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f a hello world, this is a text with some length so that it wraps around at seventy-six\n", "f b \x00\xff\x80\x7f", "f c abc", "f hx 68656C6C6F0A\n", "f b64 aGVsbG8K\n", "f bad aGVs!G8K\n", "f short aGVsbG8\n", "f z xK#0@zY<mxA+]m\n"}, Stdin: "in",
		Lines: []string{"basenc --base64 a", "basenc --base64url b", "basenc --base32 a", "basenc --base32hex a", "basenc --base16 a", "basenc --base2msbf c", "basenc --base2lsbf c", "basenc --z85 b", "basenc --z85 c", "basenc --base16 -d hx", "basenc -d --base64 b64", "basenc --base64 -d bad", "basenc --base64 -di bad", "base64 -d short", "basenc --base16 -w 5 a", "basenc a", "basenc --base16 -d b64", "base64 -w0 a", "base64 -w 10 a", "base64 -w x a", "base32 a", "base64 a b", "base64 nope", "base32 -d < hx", "basenc --base16"},
	})
}

func TestLinks(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f a text\n", "f b other\n", "d d", "x x #!/bin/sh\n", "f d/g in\n"},
		Lines: []string{"link a c", "link a b", "link a", "link", "link a b c", "link nope c", "unlink a", "unlink d", "unlink nope", "unlink", "unlink a b", "mkfifo p", "mkfifo -m 600 p", "mkfifo a", "mkfifo", "mkfifo -m 1777 p", "mkfifo -m x p", "mkfifo p q", "mknod p p", "mknod p p 1 2", "mknod p", "mknod", "mknod p c", "mknod p z 1 2", "mknod -m 640 p p",
			"install a c", "install -m 644 a c", "install -m u=rw,go= a c", "install a b d", "install -t d a b", "install -d n/m/o", "install -d -m 700 n", "install -D a n/m/c", "install -D -t n/m a b", "install -v a c", "install -v a b", "install -C a c", "install -v -d n/m", "install a nope/c", "install nope c", "install d c", "install a", "install", "install -b a b", "install -S .old a b", "install -T a d", "install -m x a c", "install a b c", "install -Dv a n/m/c", "install -p a c", "install -d", "install -g nosuchgroupatall a c", "install -o nosuchuseratall a c"},
	})
}

func TestSmallOnes(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f a 1\n2\n3\n", "f one x\n", "d d", "x s echo script $1\n"}, Stdin: "in\n",
		Lines: []string{"arch", "arch x", "tty", "tty -s", "tty x", "nproc x", "nproc --ignore=x", "nproc --ignore=100000", "users", "logname x", "groups", "groups nosuchuseratall", "sync a", "sync nope", "sync -d", "sync -d -f a", "hostid x",
			"pathchk a", "pathchk -p a/b", "pathchk -p 'a b'", "pathchk -P -- -x", "pathchk -p ''", "pathchk ''", "pathchk --portability longer-than-fourteen", "pathchk", "pathchk -p aaaaaaaaaaaaaaaaaa",
			"shuf one", "shuf -e x", "shuf -i 5-5", "shuf -n 0 a", "shuf -i 1-0", "shuf -i 3-1", "shuf -i x", "shuf -e -i 1-2", "shuf -n x a", "shuf nope", "shuf a b", "shuf -i 1-2 a", "shuf -rn3 one", "shuf -o out one", "shuf -r -n 2 < d",
			"nice", "nice true", "nice -n 5 true", "nice -n x true", "nice -5 echo hi", "nice --5 echo hi", "nice -n 5", "nice nosuchcommand", "nohup echo hi", "nohup", "nohup nosuchcommand", "stdbuf -oL echo hi", "stdbuf -o0 echo hi", "stdbuf -oX echo hi", "stdbuf -iL echo hi", "stdbuf echo hi", "stdbuf", "timeout 5 echo hi", "timeout 5 false", "timeout x echo", "timeout 5", "timeout", "timeout -s NOPE 5 true", "timeout 5 nosuchcommand", "timeout .05 sleep 10", "timeout --preserve-status .05 sleep 10", "timeout -v .05 sleep 10", "timeout -k 1 .05 sleep 10", "timeout 0 echo hi", "timeout -s INT .05 sleep 10", "timeout 1d true",
			"dir -w 40", "vdir nope"},
	})
}
