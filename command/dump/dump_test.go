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
