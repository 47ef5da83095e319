package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLineEnds(t *testing.T) {
	_, b := script(t, `
		init -q -b main
		w .gitattributes *.txt text\n*.bat eol=crlf\n*.bin binary\n* text=auto\n
		w a.txt one\r\ntwo\r\n
		w b.bat one\r\ntwo\r\n
		w c one\r\ntwo\r\n
		w d.bin one\r\n\0\r\n
		w e.bat one\ntwo\n
		add .
		ls-files -s
		commit -qm x
		status
		d a.txt
		d b.bat
		d e.bat
		checkout .
		r a.txt
		r b.bat
		r e.bat
		status
		a b.bat three\r\n
		diff
		check-attr -a d.bin
		check-attr text a.txt c
		diff --stat
		config core.autocrlf input
		w z one\r\n
		add z
	`)
	fsck(t, b, "/task")
}

func TestConflictStyles(t *testing.T) {
	script(t, setupMerge+`
		w f 1\n2\nours\n4\n5\n6\n7\n8\n9\n10\n
		commit -qam ours
		checkout -q topic
		w f 1\n2\ntheirs\n4\n5\n6\n7\n8\n9\n10\n
		commit -qam theirs
		checkout -q main
		-c merge.conflictstyle=diff3 merge topic
		r f
		merge --abort
		merge -X ours topic -m o
		r f
		reset -q --hard HEAD~1
		merge -X theirs topic
		r f
		reset -q --hard HEAD~1
		merge -s ours topic
		r f
		reset -q --hard HEAD~1
		merge --no-commit -X theirs topic
		status
		commit -m "no commit"
		show -s
		reset -q --hard HEAD~1
		w g local\n
		merge topic
		merge --abort
		w f local\n
		merge topic
		checkout topic
		checkout -f topic
		merge --squash main
		status
		reset -q --hard
		merge -q -m quiet main -X ours
		w g staged\n
		add g
		merge main~1
		cherry-pick main
		rebase main
		pull
		fetch
		push
		remote update
		branch -d main
	`)
}

// TestImported reads a repository that the machine's git packed, with an index of version 4.
func TestImported(t *testing.T) {
	h, b := newWorlds(t)
	n := 0
	host := func(args ...string) {
		t.Helper()
		n++
		if _, e, s := h.git(args, baseEnv(n), "", ""); s != 0 {
			t.Fatalf("git %q: %s", args, e)
		}
	}
	host("init", "-q", "-b", "main")
	for i := range 40 {
		h.file('m', "dir/sub", "")
		h.file('w', "dir/sub/file", strings.Repeat("line\n", 50+i)+strings.Repeat("x", i))
		h.file('w', "f"+string(rune('a'+i%7)), strings.Repeat("y\n", i))
		host("add", ".")
		host("commit", "-qm", "commit "+itoa(i))
		if i%10 == 5 {
			host("tag", "-a", "v"+itoa(i), "-m", "version")
			host("branch", "b"+itoa(i))
		}
	}
	host("config", "index.version", "4")
	host("gc", "-q")
	host("repack", "-adfq", "--depth=50", "--window=50")
	host("update-index", "--index-version", "4")
	root := filepath.Join(h.dir, "task")
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		if d.IsDir() {
			b.file('m', rel, "")
			return nil
		}
		c, err := os.ReadFile(p)
		b.file('w', rel, string(c))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"status", "log --oneline --decorate", "log --stat -5", "log -p -3", "fsck", "ls-files -s", "branch -v", "tag -n", "describe", "rev-list --objects HEAD~3..",
		"show v15", "diff v5 v35 --stat", "cat-file -p HEAD:dir/sub/file", "blame dir/sub/file", "for-each-ref", "rev-parse v5^{}", "log --oneline -- dir", "shortlog -sn HEAD"} {
		args := strings.Fields(line)
		wo, we, ws := h.git(args, baseEnv(99), "", "")
		o, e, s := b.git(args, baseEnv(99), "", "")
		if wo != o || we != e || ws != s {
			t.Errorf("git %s\n%s", line, firstDifference(o, wo, e, we, s, ws))
		}
	}
}
