package ed_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestEd(t *testing.T) {
	scripts := []string{"p\nq\n", "1,3p\n2\n+\n-\n$\n=\n.=\nq\n", "a\nx\n.\nq\nq\n", "foo\nH\nfoo\nh\nQ\n", "1d\nw\nq\n", "g/[24]/d\n,p\nu\n,p\nQ\n", "2s/3/X/p\n,s/./&&/g\n,n\nQ\n", "9p\nQ\n", "/4/\n?2?\n//\nQ\n", "2i\nhey\n.\n1,2j\n,p\n2m0\n,p\n1t$\n,p\nQ\n", "f\nf foo\nf\nr nope\nw /nodir/x\nQ\n", "l\n2ka\n'ap\n2,3c\nz\n.\n,l\nQ\n", "v/3/s/$/!/\n,p\nQ\n", "g/2/s/2/a\\\nb/\n,p\nQ\n", "z\nQ\n", "1z2\nz\nQ\n", "wq out\n", "e n\nE n\nd\ne n\nh\nQ\n", ",d\nw\nQ\n", "1;3p\n;p\n%p\nQ\n", "s/x/y/\nh\n/zz/\nh\n1,9p\nh\n3,1p\nh\nk1\nh\nQ\n", "a\na\n\nb\n.\n,p\nQ\n", "2,3d\nu\n,p\nu\n,p\nQ\n", "0a\nfirst\n.\n$a\nlast\n.\n,n\nQ\n", "2r d\n,p\nQ\n", "1,2w part\nw\nQ\n", "W n\nQ\n", "2,4m0\n,p\n1m$\n,p\nQ\n", "g/./m0\n,p\nQ\n", "g/3/p\ng/3/n\\\nl\nQ\n", "s/1/a/\n2s//b/\nQ\n", "3s/./x&x/\np\ns/x//2\np\nQ\n", "1s/\\(.\\)/\\1\\1/p\nQ\n", "1s/1/a\\/b/p\nQ\n", "1,2s/./X/\n.p\n.=\nQ\n", "g/[135]/s/./&-/p\nQ\n", "$\n-2\n+1p\n1,$p\n.,+1p\nQ\n", "1j\n1,3j\np\nQ\n", "3y\n$x\n,p\nQ\n", "i\n.\na\n.\n,p\nQ\n", "1c\none\ntwo\n.\n,p\nQ\n", "H\n7\nfoo\n1x2\nQ\n", "P\np\nP\np\nQ\n", "#comment\n1p # no\nQ\n", "g/2/d\n.p\nQ\n", ",g/3/\nQ\n", "/nope/\n1\nQ\n", "1,3n\n1,3l\n2pn\nQ\n", "s\nh\n1s/1/2/\n2s\nh\nQ\n", ",s/[0-9]/<&>/\n,p\nw\nq\n", "d\nq\nh\nq\n", "1d\n", "1,5p\nQ", "g/1/a\\\nnew\\\nlines\n,p\nQ\n", "v/1/d\n,p\nQ\n", "2;+1p\nQ\n", "1,p\n,2p\nQ\n", "'xp\nh\nQ\n", "kz\n'zp\nd\n'zp\nh\nQ\n", "2t.\n,p\nQ\n", "w\nq\n", "2q\nh\nQ\n", "m\nh\n1,3m2\nh\nQ\n", "1,2y\n0x\n,p\nQ\n", "3p\n\n\n\nQ\n", "1s/1/&\\&/p\nQ\n", "1s,1,a/b,p\nQ\n", "g/a\nQ\n", "2s/2/%/p\n3s/3/%/p\nQ\n"}
	setup := []string{"f n 1\n2\n3\n4\n5\n", "f d data\n", "f nonl a\nb", "f e "}
	var lines []string
	for i, s := range scripts {
		name := "s" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		setup = append(setup, "f "+name+" "+s)
		lines = append(lines, "ed n < "+name, "ed -s n < "+name)
	}
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: setup, Stdin: "p\nQ\n", Lines: append(lines, "ed", "ed nope", "ed nonl", "ed e", "ed -E n", "ed -p '> ' n", "ed -q nope", "ed -v nope", "ed - n", "ed -l nope", "ed d x")})
}
