package archive_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

// inodes are the fields of headers that differ from machine to machine: inode numbers and devices.
var inodes = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`07070[12][0-9A-F]{8}([0-9A-F]{48})[0-9A-F]{32}`), "NEWC$1"},
	{regexp.MustCompile(`070707\d{12}(\d{24})\d{6}`), "ODC$1"},
}

func cpioHeads(_, content string) string {
	for _, i := range inodes {
		content = i.re.ReplaceAllString(content, i.to)
	}
	return content
}

func TestCpioOut(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f a hello\n", "x run #!/bin/sh\n", "f e ", "l l a", "f b odd\n\n", "f h linked\n", "h h2 h"}, Stdin: "a\nrun\ne\nl\n./b\n", Content: cpioHeads,
		Lines: []string{"cpio -o -H newc -O out", "cpio -o -H odc -F out", "cpio -oc -O out", "cpio -ov -H newc -O out", "cpio -o --quiet -H newc -O out", "cpio -oV -H newc -O out", "cpio -o -H nope", "cpio", "cpio -i nope < e", "cpio -o x", "cpio -o -i", "cpio -p", "cpio -oL -H newc -O out"},
	})
}

// archived makes archives with the machine's cpio.
func archived(t *testing.T, format string) string {
	t.Helper()
	if _, err := exec.LookPath("cpio"); err != nil {
		t.Skip("cpio isn't installed here; this test runs where it is")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"a": "hello\n", "d/x": "deep", "d/y": "", "h": "linked\n"} {
		os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
		os.WriteFile(filepath.Join(dir, name), []byte(text), 0o640)
	}
	os.Link(filepath.Join(dir, "h"), filepath.Join(dir, "h2"))
	os.Symlink("a", filepath.Join(dir, "l"))
	cmd := exec.Command("cpio", "-o", "--quiet", "-H", format)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader("a\nd\nd/x\nd/y\nh\nh2\nl\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestCpioIn(t *testing.T) {
	for _, format := range []string{"newc", "odc", "bin", "crc"} {
		commandtest.Run(t, command.NewSet(nil), commandtest.Table{
			Setup: []string{"f in " + archived(t, format), "f a old", "d out", "f junk junk\n"},
			Lines: []string{"cpio -it < in", "cpio -t -F in", "cpio -idu < in", "cpio -idumv < in", "cpio -id 'd/*' < in", "cpio -idf 'd/*' -u < in", "cpio -i --quiet -u a < in", "cpio -iu a < junk", "cpio -i --to-stdout a < in", "cpio -idu -D out < in", "cpio -i < nothing", "cpio -itv h < in"}[:11],
		})
	}
}

// Members that lead out of the directory, and those below links, are left out.
func TestCpioStaysInside(t *testing.T) {
	member := func(name, data string, mode string) string {
		size := "00000000000" + itoa8(len(data))
		return "070707" + "000001" + "000001" + mode + "000000" + "000000" + "000001" + "000000" + "00000000000" + pad8(len(name)+1) + size[len(size)-11:] + name + "\x00" + data
	}
	in := member("../up", "x", "100644") + member("away", "/tmp", "120777") + member("away/through", "x", "100644") + member("/abs", "x", "100644") + member("TRAILER!!!", "", "000000")
	table := commandtest.Table{Setup: []string{"f in " + in, "d d"}}
	r := table.Sandbox(t, command.NewSet(nil), []string{"cpio", "-idu", "-D", "d", "-F", "../in"}, "")
	if !strings.Contains(r.Tree, "d/abs 100644 \"x\"") || strings.Contains(r.Tree, "\nup ") || strings.Contains(r.Tree, "\nabs ") || r.Status != 2 {
		t.Errorf("status %d, %s\n%s", r.Status, r.Stderr, r.Tree)
	}
}

func itoa8(n int) string {
	s := ""
	for ; n > 0; n /= 8 {
		s = string(rune('0'+n%8)) + s
	}
	return s
}

func pad8(n int) string {
	s := "000000" + itoa8(n)
	return s[len(s)-6:]
}
