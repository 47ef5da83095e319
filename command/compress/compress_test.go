package compress_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/codec"
	"agentrun.dev/command/commandtest"
)

// pack compresses a text as the named format.
func pack(t testing.TB, f codec.Format, text string) string {
	t.Helper()
	var b bytes.Buffer
	w, err := codec.NewWriter(f, &b, -1)
	if err == nil {
		if _, err = w.Write([]byte(text)); err == nil {
			err = w.Close()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var text = strings.Repeat("the quick brown fox\n", 100)

func TestGzip(t *testing.T) {
	gz := pack(t, codec.Gzip, text)
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"f a hello\n", "f b " + text, "f e.gz " + pack(t, codec.Gzip, ""), "f c.gz " + gz, "f d.tgz " + gz, "f two.gz " + gz + gz,
		"f junk.gz " + gz + "junk", "f zeros.gz " + gz + "\x00\x00\x00", "f cut.gz " + gz[:len(gz)-5], "f crc.gz " + gz[:len(gz)-8] + "xxxx" + gz[len(gz)-4:], "f len.gz " + gz[:len(gz)-4] + "xxxx",
		"f bad.gz " + gz[:20] + "\xff\xff\xff\xff" + gz[24:], "f plain.gz plain\n", "f un.foo " + gz, "f bz.gz " + pack(t, codec.Bzip2, text), "d dir", "f dir/x one\n", "f dir/y two\n", "l link a", "f h1 hard\n", "h h2 h1", "f taken taken\n", "f taken.gz " + gz},
		Stdin: text, Lines: []string{
			"gzip a", "gzip -k a", "gzip -v a b", "gzip -kv b", "gzip -9 b", "gzip -1 b", "gzip -n a", "gzip -c a", "gzip -cv a", "gzip -nc b", "gzip < b", "gzip -f taken", "gzip taken", "gzip -q taken", "gzip nope", "gzip nope a",
			"gzip c.gz", "gzip -q c.gz", "gzip dir", "gzip -q dir", "gzip -r dir", "gzip -rk dir", "gzip -S .zz a", "gzip -S zz -c a", "gzip link", "gzip -f link", "gzip -c link", "gzip h1", "gzip -f h1", "gzip -",
			"gzip -d c.gz", "gunzip c.gz", "gunzip c", "gunzip -k c.gz", "gunzip -kv c.gz", "gunzip d.tgz", "gunzip -c two.gz", "zcat two.gz", "zcat c.gz e.gz two.gz", "gunzip -c junk.gz", "gunzip -qc junk.gz", "gunzip junk.gz", "gunzip -c zeros.gz",
			"gunzip -c crc.gz", "gunzip -c len.gz", "gunzip crc.gz", "gunzip -c plain.gz", "zcat -f plain.gz", "gunzip un.foo", "gunzip -c un.foo", "gunzip -q un.foo", "gunzip -S .foo un.foo", "gunzip nope", "gunzip nope.gz", "gunzip taken.gz", "gunzip -f taken.gz", "gunzip dir",
			"gzip -t c.gz", "gzip -tv c.gz", "gzip -t crc.gz", "gzip -t c.gz plain.gz", "gzip -l c.gz", "gzip -l plain.gz", "gzip -lq c.gz", "gzip -l d.tgz", "zcat < c.gz", "gunzip < a", "gunzip < plain.gz", "gzip -dc < two.gz", "gzip -l < c.gz", "zcat nope",
		}, Differs: map[string]commandtest.Deviation{
			"gzip -l two.gz": {Want: "         compressed        uncompressed  ratio uncompressed_name\n                114                4000  98.0% two\n", Reason: "all members count; gzip shows the last one's size"},
			"gzip --badopt":  {Want: "gzip: unrecognized option '--badopt'\nTry 'gzip --help' for more information.\n", Reason: "quotes as all other commands have them"},
		}})
}

func TestBzip2(t *testing.T) {
	bz := pack(t, codec.Bzip2, text)
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"f a hello\n", "f c.bz2 " + bz, "f d.tbz2 " + bz, "f two.bz2 " + bz + bz, "f plain.bz2 plain\n", "f un.foo " + bz, "d dir", "l link a", "l lz.bz2 c.bz2", "f h1 hard\n", "h h2 h1",
		"f crc.bz2 " + bz[:len(bz)-20] + "xxxx" + bz[len(bz)-16:], "f taken taken\n", "f taken.bz2 " + bz, "f e.bz2 " + pack(t, codec.Bzip2, "")},
		Stdin: bz, Lines: []string{
			"bzip2 nope", "bzip2 dir", "bzip2 c.bz2", "bzip2 taken", "bzip2 link", "bzip2 h1", "bzip2 -d c.bz2", "bunzip2 c.bz2", "bunzip2 -k c.bz2", "bunzip2 -kv c.bz2", "bunzip2 d.tbz2", "bzcat two.bz2", "bzcat c.bz2 two.bz2", "bzcat -", "bzcat", "bunzip2 un.foo",
			"bunzip2 -c un.foo", "bzcat plain.bz2", "bunzip2 plain.bz2", "bunzip2 -f plain.bz2", "bzip2 -dcf plain.bz2", "bunzip2 taken.bz2", "bunzip2 -f taken.bz2", "bunzip2 nope.bz2", "bzip2 -t c.bz2", "bzip2 -tv c.bz2 two.bz2", "bzip2 -t plain.bz2", "bunzip2 -c lz.bz2", "bunzip2 lz.bz2",
			"bzcat e.bz2", "bunzip2", "bunzip2 dir",
		}})
}

func TestXz(t *testing.T) {
	xz, lz := pack(t, codec.Xz, text), pack(t, codec.Lzma, text)
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"f a hello\n", "f c.xz " + xz, "f d.txz " + xz, "f two.xz " + xz + xz, "f pad.xz " + xz + "\x00\x00\x00\x00" + xz, "f l.lzma " + lz, "f plain.xz plain text that is no xz data\n", "f un.foo " + xz, "d dir", "l link a",
		"f h1 hard\n", "h h2 h1", "f cut.xz " + xz[:len(xz)-9], "f cut2.xz " + xz[:60], "f junk.xz " + xz + "junk", "f crc.xz " + xz[:len(xz)-40] + "xx" + xz[len(xz)-38:], "f taken taken\n", "f taken.xz " + xz, "f e.xz " + pack(t, codec.Xz, ""), "f empty "},
		Stdin: xz, Lines: []string{
			"xz nope", "xz dir", "xz c.xz", "xz taken", "xz link", "xz h1", "xz -d c.xz", "unxz c.xz", "unxz -k c.xz", "unxz d.txz", "xzcat two.xz", "xzcat pad.xz", "xzcat c.xz two.xz", "xzcat", "xzcat l.lzma", "lzcat l.lzma", "unlzma l.lzma", "unxz un.foo", "xzcat un.foo", "xzcat plain.xz", "xzcat -f plain.xz", "unxz plain.xz",
			"xzcat cut.xz", "xzcat junk.xz", "unxz taken.xz", "unxz -f taken.xz", "unxz nope.xz", "xz -t c.xz", "xz -t plain.xz", "xz -l c.xz", "xz -l c.xz two.xz pad.xz", "xz -l plain.xz", "xz -l empty", "xz -l a", "xz -lv pad.xz", "xz --robot -l c.xz two.xz", "xzcat e.xz", "xz -l e.xz", "xz -qd un.foo", "xz -Qd un.foo", "xzcat empty", "lzcat c.xz",
		}, Differs: map[string]commandtest.Deviation{
			"xzcat cut2.xz": {Want: "xzcat: cut2.xz: Unexpected end of input\n", Reason: "what was decoded before the break in the same chunk isn't written"},
			"xzcat crc.xz":  {Want: "xzcat: crc.xz: Unexpected end of input\n", Reason: "the decoder runs out of a broken chunk instead of comparing its sum"},
		}})
}

func TestZstd(t *testing.T) {
	zs := pack(t, codec.Zstd, text)
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"f a hello\n", "f c.zst " + zs, "f d.tzst " + zs, "f two.zst " + zs + zs, "f plain.zst plain\n", "f un.foo " + zs, "d dir", "l link a", "f taken taken\n", "f taken.zst " + zs, "f g.gz " + pack(t, codec.Gzip, text)},
		Stdin: zs, Lines: []string{
			"zstd nope", "zstd dir", "zstd taken", "zstd -q taken", "zstd -d c.zst", "unzstd c.zst", "unzstd --rm c.zst", "unzstd d.tzst", "zstdcat two.zst", "zstdcat c.zst two.zst", "zstdcat", "unzstd un.foo", "unzstd -c un.foo", "unzstd -c plain.zst", "zstdcat plain.zst", "unzstd plain.zst", "unzstd taken.zst", "unzstd -f taken.zst", "unzstd -q c.zst", "unzstd nope.zst", "zstd -d -c g.gz",
			"zstd -t c.zst", "zstd -tq c.zst", "zstd -d c.zst -o out", "zstd -d c.zst two.zst",
		}})
}

// What is compressed comes back, with its mode and time; also what bash's test suites do with several files.
func TestRoundTrip(t *testing.T) {
	set := command.NewSet(nil)
	for _, tools := range [][3]string{{"gzip", "gunzip", ".gz"}, {"bzip2", "bunzip2", ".bz2"}, {"xz", "unxz", ".xz"}, {"lzma", "unlzma", ".lzma"}, {"zstd", "unzstd", ".zst"}} {
		for level := 1; level <= 9; level += 4 {
			table := commandtest.Table{Setup: []string{"x a " + text}, Stdin: text}
			r := table.Sandbox(t, set, []string{tools[0], "-c", fmt.Sprint("-", level), "a"}, "")
			if r.Status != 0 || r.Stderr != "" {
				t.Fatalf("%s: status %d, %s", tools[0], r.Status, r.Stderr)
			}
			table.Setup = []string{"x a" + tools[2] + " " + r.Stdout}
			r = table.Sandbox(t, set, []string{tools[1], "-q", "a" + tools[2]}, "")
			if want := fmt.Sprintf("a 100755 %q\n", text); r.Status != 0 || !strings.HasPrefix(r.Tree, want) {
				t.Errorf("%s: status %d, %s%.100s", tools[1], r.Status, r.Stderr, r.Tree)
			}
		}
	}
}

func TestZgrep(t *testing.T) {
	gz := pack(t, codec.Gzip, text+"needle\n")
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"f a.gz " + gz, "f b.gz " + gz, "f plain needle here\n"}, Stdin: gz, Lines: []string{
		"zgrep needle a.gz", "zgrep -n needle a.gz b.gz", "zgrep needle plain a.gz", "zgrep -c fox a.gz", "zgrep -h needle a.gz b.gz", "zgrep nothing a.gz", "zgrep -i NEEDLE a.gz", "zgrep -e needle -e quick -c a.gz", "zgrep needle", "zgrep -l needle a.gz b.gz", "zgrep -q needle a.gz",
	}})
}

func TestZdiff(t *testing.T) {
	gz := func(text string) string { return pack(t, codec.Gzip, text) }
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f a.gz " + gz("one\ntwo\nthree\n"), "f a one\ntwo\nthree\n", "f b.gz " + gz("one\n2\nthree\n"), "f b one\n2\nthree\n", "f c.tgz " + gz("x\n"), "f bad.gz plain\n", "f cut.gz " + gz("one\ntwo\nthree\n")[:24]}, Stdin: gz("one\n2\nthree\n"), Loose: true,
		Lines: []string{"zdiff a.gz b.gz", "zdiff a.gz", "zdiff b.gz a", "zdiff a b.gz", "zdiff a b", "zdiff -q a.gz b.gz", "zdiff -s a.gz a", "zdiff - a.gz", "zdiff -U 1 --label x --label y a.gz b.gz", "zdiff nope a", "zdiff a nope", "zdiff", "zdiff a", "zdiff a b c", "zdiff -- a.gz b.gz", "zdiff -y -W 20 a.gz b.gz",
			"zcmp a.gz b.gz", "zcmp a.gz", "zcmp b.gz a", "zcmp -l a.gz b", "zcmp -s a.gz b.gz", "zcmp nope", "zcmp a.gz a", "zdiff -W",
			"zless a.gz", "zless a.gz b.gz", "zless a b.gz", "zmore a.gz", "zmore a.gz b", "zless < a.gz"},
		Differs: map[string]commandtest.Deviation{"zdiff cut.gz a": {Want: "gzip: cut.gz: unexpected EOF\n", Reason: "what is broken isn't compared"}},
	})
}
