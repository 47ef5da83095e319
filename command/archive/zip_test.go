package archive_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

// zipped makes an archive of members "NAME CONTENT"; a name that begins with @ is a symbolic link.
func zipped(members ...string) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range members {
		name, content, _ := strings.Cut(m, " ")
		h := &zip.FileHeader{Method: zip.Deflate, Modified: time.Unix(1e9, 0).UTC()}
		mode := fs.FileMode(0o640)
		switch {
		case strings.HasPrefix(name, "@"):
			name, mode = name[1:], fs.ModeSymlink|0o777
		case strings.HasSuffix(name, "/"):
			mode = fs.ModeDir | 0o750
		}
		if len(content) < 20 {
			h.Method = zip.Store
		}
		h.SetMode(mode)
		h.Name = name
		f, _ := w.CreateHeader(h)
		io.WriteString(f, content)
	}
	w.Close()
	return b.String()
}

// plainZip is zipped without compression, and with sizes before the data.
func plainZip(members ...string) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range members {
		name, content, _ := strings.Cut(m, " ")
		h := &zip.FileHeader{Name: name, Modified: time.Unix(1e9, 0).UTC(), UncompressedSize64: uint64(len(content)), CompressedSize64: uint64(len(content)), CRC32: crc32.ChecksumIEEE([]byte(content))}
		h.ModifiedDate, h.ModifiedTime = 0x2b29, 0x0dd4
		h.SetMode(0o640)
		f, _ := w.CreateRaw(h)
		io.WriteString(f, content)
	}
	w.Close()
	return b.String()
}

func TestUnzip(t *testing.T) {
	text := strings.Repeat("some text\n", 100)
	good := zipped("a hello\n", "d/", "d/b two\n", "d/s/n "+text, "e", "@l a")
	broken := strings.Replace(good, "hello", "hullo", 1)
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"f o.zip " + good, "f bad.zip " + broken, "f junk.zip junk", "f none.zip " + zipped(), "f a2.zip " + zipped("ä hello", "x/y/z deep"), "f evil.zip " + zipped("/abs x", "fine x", "@up ../..", "up/through x"), "d have", "f have/a old", "f in y\nn\n", "f all A\n", "f no N\n", "f odd maybe\ny\n", "d dir.zip"},
		Lines: []string{
			"unzip -l o.zip", "unzip -v o.zip", "unzip -l o", "unzip -ql o.zip", "unzip -qql o.zip", "unzip -l o.zip 'd/*'", "unzip -l o.zip a", "unzip -l o.zip nope", "unzip -l o.zip -x 'd/*'", "unzip -l o.zip -x nope", "unzip -Z1 o.zip", "unzip -v o.zip a", "unzip -z o.zip",
			"unzip -t o.zip", "unzip -tq o.zip", "unzip -tqq o.zip", "unzip -t o.zip a", "unzip o.zip", "unzip -d out o.zip", "unzip o.zip -d out", "unzip -q o.zip", "unzip -qq o.zip", "unzip -o o.zip -d have", "unzip -n o.zip -d have", "unzip o.zip -d have < in", "unzip o.zip -d have < all", "unzip o.zip -d have < no", "unzip o.zip -d have < odd", "unzip o.zip -d have", "unzip -f o.zip -d have", "unzip -uo o.zip -d have",
			"unzip -p o.zip a", "unzip -p o.zip", "unzip -p o.zip nope", "unzip -c o.zip a e", "unzip -j o.zip", "unzip -jo o.zip -x l", "unzip o.zip -x 'd/*' l", "unzip o.zip a nope", "unzip o.zip nope", "unzip a2.zip", "unzip -l a2.zip", "unzip nope", "unzip none.zip", "unzip -t none.zip", "unzip -l none.zip",
			"unzip evil.zip fine", "unzip -C o.zip A", "unzip -t bad.zip",
		}})
}

// Members that lead out of the directory are kept inside, and none is written through a link.
func TestUnzipStaysInside(t *testing.T) {
	table := commandtest.Table{Setup: []string{"f evil.zip " + zipped("../up x", "a/../../up2 x", "/tmp/abs x", "@out /tmp", "out/through x", "fine x"), "d d", "d d/sub", "l d/sub/away ../..", "f through.zip " + zipped("away/x x"), "f file.zip " + zipped("leaf new"), "f target old", "l d/leaf ../target"}}
	r := table.Sandbox(t, command.NewSet(nil), []string{"unzip", "-o", "evil.zip", "-d", "d"}, "")
	for _, want := range []string{"d/up 100", "d/a/up2 100", "d/tmp/abs 100", "d/fine 100", "d/out 120"} {
		if !strings.Contains(r.Tree, want) {
			t.Errorf("%s is missing in\n%s", want, r.Tree)
		}
	}
	if strings.Contains(r.Tree, "through 100") || strings.Contains(r.Tree, "\nup ") || r.Status == 0 {
		t.Errorf("status %d, %s\n%s", r.Status, r.Stderr, r.Tree)
	}
	r = table.Sandbox(t, command.NewSet(nil), []string{"unzip", "-o", "through.zip", "-d", "d/sub"}, "")
	if strings.Contains(r.Tree, "\nx ") || r.Status != 2 {
		t.Errorf("written through a link: status %d\n%s", r.Status, r.Tree)
	}
	r = table.Sandbox(t, command.NewSet(nil), []string{"unzip", "-o", "file.zip", "-d", "d"}, "")
	if !strings.Contains(r.Tree, "target 100644 \"old\"") || !strings.Contains(r.Tree, "d/leaf 100640 \"new\"") {
		t.Errorf("a link was written through\n%s", r.Tree)
	}
}

// Members that share their data are refused.
func TestUnzipBomb(t *testing.T) {
	one := zipped("a " + strings.Repeat("0", 1000))
	at := strings.Index(one, "PK\x01\x02")
	end := strings.Index(one, "PK\x05\x06")
	dir := one[at:end]
	tail := []byte(one[end:])
	tail[8], tail[10] = 2, 2
	n := 2 * len(dir)
	tail[12], tail[13] = byte(n), byte(n>>8)
	table := commandtest.Table{Setup: []string{"f b.zip " + one[:at] + dir + dir + string(tail)}}
	if r := table.Sandbox(t, command.NewSet(nil), []string{"unzip", "b.zip"}, ""); r.Status != 12 || strings.Contains(r.Tree, "\na ") {
		t.Errorf("status %d, %s\n%s", r.Status, r.Stderr, r.Tree)
	}
}

// zipListing is what an archive holds, without what differs from run to run.
func zipListing(name, content string) string {
	if !strings.HasSuffix(name, ".zip") && name != "o" && name != "o.x" {
		return content
	}
	r, err := zip.NewReader(strings.NewReader(content), int64(len(content)))
	if err != nil {
		return "no archive: " + content
	}
	var lines []string
	for _, f := range r.File {
		in, err := f.Open()
		text := []byte("unreadable")
		if err == nil {
			text, _ = io.ReadAll(in)
		}
		lines = append(lines, fmt.Sprintf("%s %v %d %v %x %x %q", f.Name, f.Mode(), f.Method, f.Modified.Truncate(time.Minute).UTC().Format(time.RFC3339), f.CreatorVersion, f.Flags, text))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + r.Comment
}

func TestZip(t *testing.T) {
	text := strings.Repeat("some text\n", 100)
	old := plainZip("a hello\n", "d/b old", "gone x", "z.c zz", "s/z.c zz")
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f a hello\n", "x run #!/bin/sh\n", "d d", "f d/b two\n", "f d/n " + text, "d d/s", "f d/s/x.c int x;\n", "f d/s/y.o obj", "l l a", "f e ", "f ä umlaut", "f old.zip " + old, "f junk.zip junk", "f list a\nd/b\nnope\n", "d empty"},
		Stdin: "standard input " + text, Sorted: true, Content: zipListing,
		Lines: []string{
			"zip o.zip a", "zip o a", "zip o.zip a run e", "zip -r o.zip d", "zip -r o.zip .", "zip -r o.zip d a l", "zip -ry o.zip d a l", "zip -rq o.zip d", "zip -qr o d", "zip -rj o.zip d", "zip -j o.zip d/b d/s/x.c", "zip -rD o.zip d", "zip -r o.zip d -x '*.c'", "zip -r o.zip d -x 'd/s/*'", "zip -r o.zip d -i '*.c'", "zip -r o.zip d -x '*.c' '*.o'", "zip -r o.zip d -x '*.c' @ a", "zip -r o.zip d -i '*.c' -x 'd/s/x*'", "zip -x a b -r o.zip .",
			"zip -0 o.zip d/n", "zip -1 o.zip d/n", "zip -9 o.zip d/n", "zip -r9q o.zip d", "zip o.zip nope", "zip o.zip a nope", "zip -r o.zip nope", "zip o.zip d", "zip o.zip", "zip -r o.zip empty", "zip -q o.zip ä", "zip o.zip ä",
			"zip old.zip a", "zip old.zip run", "zip -u old.zip a run", "zip -u old.zip d/b", "zip -f old.zip a run", "zip -f old.zip", "zip -d old.zip gone", "zip -d old.zip gone a", "zip -d old.zip '*.c'", "zip -d old.zip nope", "zip -d old.zip 'd/*'", "zip -d old.zip '*'", "zip -d nope.zip a", "zip -u o.zip a", "zip -f o.zip a", "zip -m o.zip a d/b", "zip -mr o.zip d", "zip -mr o.zip d/s e",
			"zip o.zip -", "zip o.zip a -", "zip -q o.zip -", "zip -@ o.zip < list", "zip o.zip -@ < list", "zip -q o -@ < list", "zip junk.zip a", "zip o.x a", "zip d/o.zip a", "zip nodir/o.zip a", "zip o.zip a a", "zip o.zip a ./a", "zip o.zip d/../d/b ./d/../a", "zip -T o.zip a", "zip -X o.zip a", "zip -Xr o.zip d", "zip -v o.zip a", "zip -rv o.zip d",
			"zip --recurse-paths o.zip d", "zip -r o.zip d --exclude '*.c'", "zip -r o.zip d -x'*.c'", "zip -r o.zip d -x=x", "zip --nope o.zip a", "zip -Q o.zip a", "zip --quiet o.zip a", "zip -r -o o.zip d", "zip o.zip -r d", "zip -jr o.zip d a", "zip -j o.zip d/b a d/s/../b", "zip -R o.zip '*.c'", "zip -r o.zip d/", "zip -r o.zip ./d", "zip -r o.zip d/s/..", "zip -n .c:.o -r o.zip d", "zip -z o.zip a", "zip -t 01012024 o.zip a run", "zip -sf old.zip", "zip -sf o.zip a",
		},
	})
}
