package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestGrepAndMore(t *testing.T) {
	_, b := script(t, setupMerge+`
		w src.c int main(void)\n{\n\treturn foo + bar;\n}\nint foo;\nfoobar\n
		w bin a\0foo\n
		add .
		commit -qm more
		grep foo
		grep -n foo
		grep -i FOO -- *.c
		grep -l foo
		grep -L foo
		grep -c foo
		grep -w foo
		grep -o fo.
		grep -e foo -e main
		grep --all-match -e foo -e main
		grep -h foo src.c
		grep -A1 main
		grep -C1 return
		grep -v o src.c
		grep -E 'f(o+)b'
		grep -F 'foo +'
		grep foo HEAD
		grep foo HEAD -- src.c
		grep -q foo
		grep nothing
		grep
		w untracked foo\n
		grep --untracked foo
		grep --cached foo
		grep -n --column foo
		diff-tree HEAD
		diff-tree -r HEAD~1 HEAD
		diff-tree --no-commit-id --name-only -r HEAD
		diff-index HEAD
		w src.c changed\n
		diff-index HEAD
		diff-index --cached HEAD
		diff-files
		diff-files --name-only
		update-index --refresh
		update-index --add untracked
		ls-files -s untracked
		cherry topic
		cherry -v topic
		check-ref-format refs/heads/x
		check-ref-format --branch a..b
		count-objects
		fsck
		gc
		log --oneline
		fsck
		count-objects
		archive HEAD --prefix=x/ -o ../a.tar
		stripspace <<< a  \n\n\n\nb\n\n
		submodule
		whatchanged --oneline
		frob
		stats
	`)
	fsck(t, b, "/task")
}

func TestArchive(t *testing.T) {
	h, b := script(t, setupMerge+`
		w run #!/bin/sh\n
		x run
		l link f
		add .
		commit -qm more
	`)
	_ = h
	out, _, _ := b.git([]string{"archive", "--format=tar.gz", "HEAD"}, baseEnv(1), "", "")
	dir := t.TempDir()
	file := filepath.Join(dir, "a.tar.gz")
	if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
		t.Fatal(err)
	}
	if o, err := exec.Command("tar", "-C", dir, "-xzf", file).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, o)
	}
	if c, err := os.ReadFile(filepath.Join(dir, "d/x")); err != nil || string(c) != "x\nxx\nxxx\nxxxx\n" {
		t.Errorf("d/x: %q, %v", c, err)
	}
}
