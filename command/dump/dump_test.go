package dump_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

// files are shown by every command's test.
var files = []string{"f a hello\x00\x01\x02\xff\nabcdefgh\t\b", "f z " + "0000000000000000000000000000000000000000000000000000000000000000\x00abc", "f e ", "f s some text\x00xy\x01longer text\there\nab\x00\xe9tude", "d d"}

func TestOd(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: files, Stdin: "standard input\n",
		Lines: []string{"od a", "od", "od -c a", "od -a a", "od -b a", "od -x a", "od -d a", "od -f a", "od -i a", "od -l a", "od -o a", "od -s a", "od -t fD a", "od -t fL a", "od -t x1z a", "od -t x1z -w5 a", "od -t d2x1 a", "od -t u4 -t d8 -c a",
			"od -An -tx1 a", "od -Ax -tx1 a", "od -Ad a", "od -Az a", "od -j 3 -N 4 -An -c a", "od -j100 a", "od -N 0 a", "od -N x a", "od -N 1q a", "od -j 0x4 a", "od -j 04 a", "od z", "od -v z", "od -w a", "od -w0 a", "od -w3 -tx2 a", "od -w3 -tx1 a", "od -S 4 s", "od -S3 s", "od -S s", "od -S4 -tx1 s", "od -t x3 a", "od -t q a", "od -tc3 a",
			"od -t x --endian=big a", "od --endian=little -tx2 a", "od a z", "od nope a", "od d", "od e", "od a +2", "od a 2", "od --traditional a 2 5", "od -An -to1 -v z", "od -t a a", "od -tfF -tx1 z", "od -h a", "od -A", "od -X a"},
	})
}

func TestXxd(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: append(files, "f r 00000000: 7468 6973 2069  thi\n00000010: 740a   t.\n", "f p 746869\n73 20zz", "f 1x.y ab", "f nul \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), Stdin: "00: 6162 63\n", Loose: true,
		Lines: []string{"xxd a", "xxd", "xxd -b a", "xxd -e a", "xxd -e -g 8 s", "xxd -i a", "xxd -i 1x.y", "xxd -i", "xxd -i e", "xxd -i -C a", "xxd -i -n foo a", "xxd -p a", "xxd -ps -c 10 s", "xxd -p -c 0 s", "xxd -u -s 5 -l 20 s", "xxd -s -5 s", "xxd -s -500 s", "xxd -g 0 s", "xxd -g 1 s", "xxd -g 3 s", "xxd -c 8 -g 4 s", "xxd -c 5 s", "xxd -c5 s", "xxd -cols 5 s", "xxd -o 0x80 s", "xxd -d -l 40 s", "xxd -a z", "xxd -a nul", "xxd -a -c 4 nul", "xxd -a -c 8 nul",
			"xxd -r r", "xxd -r", "xxd -r -p p", "xxd -r -p p out", "xxd -r r z", "xxd -r -s 4 r", "xxd -r -b r", "xxd nope", "xxd a out", "xxd -E s", "xxd -len 3 a", "xxd -q a", "xxd -c 257 a", "xxd -e -g 3 a", "xxd -u -i s", "xxd -l 0 a", "xxd -b -c 5 s", "xxd -p -u a", "xxd e", "xxd -s 100 e"},
	})
}

func TestStrings(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: append(files, "f w a\x00b\x00c\x00d\x00e\x00\x01\x00x\x00y\x00z\x00q\x00"), Stdin: "\x01standard\x00input\x02ab", Loose: true,
		Lines: []string{"strings s", "strings", "strings -f s a", "strings -o s", "strings -t x s", "strings -t d s", "strings -n 2 s", "strings -2 s", "strings -n 12 s", "strings -w s", "strings -e l w", "strings -e S s", "strings -e b w", "strings -e L w", "strings -s , s", "strings nope s", "strings -a s", "strings -n 0 s", "strings e", "strings -t q s"},
	})
}
