package git

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zlib"

	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// inBox runs f on a new repository of a sandbox.
func inBox(t *testing.T, b boxWorld, dir string, f func(r *repo)) int {
	t.Helper()
	return b.run("/task/"+dir, []string{"git"}, baseEnv(1), "", io.Discard, io.Discard, tool.Func(func(tt *tool.T) int {
		r := &repo{t: tt}
		if !r.open() {
			t.Error("no repository")
		}
		f(r)
		return 0
	}))
}

func newBox(t *testing.T) boxWorld {
	_, b := newWorlds(t)
	b.file('m', "h", "")
	if _, e, s := b.git([]string{"init", "-q", "-b", "main"}, baseEnv(1), "h", ""); s != 0 {
		t.Fatal(e)
	}
	return b
}

func (b boxWorld) refused(t *testing.T, want string, args ...string) {
	t.Helper()
	o, e, status := b.git(args, baseEnv(2), "h", "")
	if status == 0 || status > 129 || !strings.Contains(e, want) {
		t.Errorf("git %q: status %d, %q %q; want %q", args, status, o, e, want)
	}
}

// commitTree makes a tree with one entry HEAD's.
func commitTree(r *repo, mode uint32, name, content string) {
	blob := r.writeObject(blobObj, []byte(content))
	tree := r.writeObject(treeObj, encodeTree([]treeEntry{{mode, name, blob}}))
	c := &commit{tree: tree, author: r.who("AUTHOR"), committer: r.who("COMMITTER"), message: "x\n"}
	r.setRef("refs/heads/bad", r.writeObject(commitObj, c.encode()))
}

func TestHostilePaths(t *testing.T) {
	for _, name := range []string{"..", ".", ".git", ".GIT", ".git ", ".git.", "git~1", ".g\u200cit", "a\\..\\b", ".git::$INDEX_ALLOCATION"} {
		b := newBox(t)
		inBox(t, b, "h", func(r *repo) { commitTree(r, modeFile, name, "evil") })
		if name == ".." || name == "." || strings.Contains(strings.ToLower(name), "git") || strings.Contains(name, "\\") {
			b.refused(t, "invalid path", "checkout", "bad")
		}
	}
	// A link as .gitmodules, and a file through a link.
	b := newBox(t)
	inBox(t, b, "h", func(r *repo) { commitTree(r, modeLink, ".gitmodules", "/etc/passwd") })
	b.refused(t, "invalid path", "checkout", "bad")
	b = newBox(t)
	inBox(t, b, "h", func(r *repo) {
		blob, link := r.writeObject(blobObj, []byte("evil")), r.writeObject(blobObj, []byte("/home"))
		sub := r.writeObject(treeObj, encodeTree([]treeEntry{{modeFile, "x", blob}}))
		tree := r.writeObject(treeObj, encodeTree([]treeEntry{{modeLink, "a", link}, {modeTree, "a", sub}}))
		c := &commit{tree: tree, author: r.who("AUTHOR"), committer: r.who("COMMITTER"), message: "x\n"}
		r.setRef("refs/heads/bad", r.writeObject(commitObj, c.encode()))
	})
	b.git([]string{"checkout", "bad"}, baseEnv(2), "h", "")
	if got := b.file('r', "../home/x", ""); got != "none" {
		t.Errorf("a file was written through a link: %q", got)
	}
}

// TestTreeBomb has a tree that stands for 10^10 files.
func TestTreeBomb(t *testing.T) {
	s, err := proc.New(proc.Options{Namespace: vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{})}), Commands: commands{}, Limits: proc.Limits{SandboxMemory: 80 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	b := boxWorld{t, s}
	b.run("/", []string{"setup"}, nil, "", io.Discard, io.Discard, tool.Func(func(t *tool.T) int {
		t.Mkdir("/task", 0o755)
		t.Mkdir("/task/h", 0o755)
		return 0
	}))
	b.git([]string{"init", "-q", "-b", "main"}, baseEnv(1), "h", "")
	inBox(t, b, "h", func(r *repo) {
		id, mode := r.writeObject(blobObj, []byte("x")), uint32(modeFile)
		for range 10 {
			var list []treeEntry
			for i := range 10 {
				list = append(list, treeEntry{mode, fmt.Sprintf("f%d", i), id})
			}
			id, mode = r.writeObject(treeObj, encodeTree(list)), modeTree
		}
		c := &commit{tree: id, author: r.who("AUTHOR"), committer: r.who("COMMITTER"), message: "x\n"}
		r.setRef("refs/heads/bad", r.writeObject(commitObj, c.encode()))
	})
	o, e, status := b.git([]string{"checkout", "bad"}, baseEnv(2), "h", "")
	if status != 128 || !strings.Contains(e, "files") && !strings.Contains(e, "memory") {
		t.Errorf("status %d, %q %q", status, o, e)
	}
}

func deflated(b []byte) []byte {
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}

func TestBombs(t *testing.T) {
	b := newBox(t)
	id := strings.Repeat("ab", 20)
	b.file('m', "h/.git/objects/ab", "")
	for head, want := range map[string]string{"blob 99999999999999\x00": "", "blob 10\x00": "", "blob -1\x00": "", strings.Repeat("x", 100): ""} {
		b.file('w', "h/.git/objects/ab/"+id[2:], string(deflated(append([]byte(head), make([]byte, 1<<20)...))))
		b.refused(t, want, "cat-file", "-p", id)
	}
}

// packOf makes a pack of raw entries, each header and data.
func packOf(n int, entries []byte) []byte {
	var p bytes.Buffer
	p.WriteString("PACK\x00\x00\x00\x02")
	p.Write(binary.BigEndian.AppendUint32(nil, uint32(n)))
	p.Write(entries)
	sum := sha1.Sum(p.Bytes())
	p.Write(sum[:])
	return p.Bytes()
}

// TestDeltaLoop has packs whose deltas rest on each other.
func TestDeltaLoop(t *testing.T) {
	b := newBox(t)
	x, y := oid{1}, oid{2}
	delta := func(base oid) []byte {
		d := []byte{4, 4, 0x90, 4}
		return append(append(entryHead(refDelta, len(d)), base[:]...), deflated(d)...)
	}
	inBox(t, b, "h", func(r *repo) {
		r.mkdirAll(r.common + "/objects/pack")
		for i, pair := range [][2]oid{{x, y}, {y, x}, {oid{3}, oid{3}}} {
			body := packOf(1, delta(pair[1]))
			base := fmt.Sprintf("%s/objects/pack/pack-%040d", r.common, i)
			r.overwrite(base+".pack", string(body))
			idx := encodePackIndex([]packedEntry{{id: pair[0], offset: 12, done: true}}, body[len(body)-20:])
			r.overwrite(base+".idx", string(idx))
		}
	})
	for _, id := range []oid{x, y, {3}} {
		b.refused(t, "", "cat-file", "-p", id.String())
	}
	o, _, status := b.git([]string{"fsck"}, baseEnv(2), "h", "")
	if status == 0 || status > 128 {
		t.Errorf("fsck: %d %s", status, o)
	}
}

// TestBadPack receives packs that are damaged.
func TestBadPack(t *testing.T) {
	good := packOf(1, append(entryHead(blobObj, 5), deflated([]byte("hello"))...))
	cases := [][]byte{good[:10], good[:20], packOf(1<<30, nil), packOf(2, good[12:len(good)-20]), append(append([]byte{}, good[:len(good)-1]...), 'x'),
		packOf(1, append(entryHead(blobObj, 1<<40), deflated([]byte("hello"))...)), packOf(1, append(entryHead(blobObj, 4), deflated([]byte("hello"))...)),
		packOf(1, append(append(entryHead(ofsDelta, 5), offsetBytes(100)...), deflated([]byte("hello"))...)),
		packOf(1, append(append(entryHead(refDelta, 5), make([]byte, 20)...), deflated([]byte("hello"))...))}
	b := newBox(t)
	inBox(t, b, "h", func(r *repo) {
		if n, err := r.receivePack(bytes.NewReader(good)); n != 1 || err != nil {
			t.Errorf("a good pack: %d %v", n, err)
		}
		for i, p := range cases {
			if _, err := r.receivePack(bytes.NewReader(p)); err == nil {
				t.Errorf("case %d was taken", i)
			}
		}
	})
}

func FuzzParsers(f *testing.F) {
	f.Add([]byte("tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor a <b> 1 +0000\ncommitter a <b> 1 +0000\n\nx"))
	f.Add([]byte("[core]\n\tx = \"a\\n\" ; c\n[a \"b\\\"c\"]\n\ty\n"))
	f.Add([]byte("diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1,2 +1 @@\n a\n-b\n\\ No newline at end of file\n"))
	f.Add([]byte("From x Mon Sep 17 00:00:00 2001\nFrom: a <b>\nSubject: =?UTF-8?q?x=20y?=\n z\n\nbody\n---\n"))
	f.Add([]byte("*.o\n!/a/**/b[!x-z]\\ \n"))
	f.Add([]byte("100644 a\x00aaaaaaaaaaaaaaaaaaaa"))
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01" + strings.Repeat("x", 90)))
	f.Fuzz(func(t *testing.T, b []byte) {
		parseCommit(oid{}, b)
		parseTag(b)
		parseTree(b)
		parseConfig(string(b), "f")
		if list, err := parsePatch(string(b), 1); err == nil {
			for i := range list {
				list[i].turn()
				patchLines(b, list[i].hunks, &applyOptions{context: -1})
			}
		}
		parseMail(string(b), false)
		splitMbox(string(b))
		for _, g := range parseIgnore(string(b), "", "f") {
			g.match("a/b/c.o", false)
		}
		(&index{}).parse(b)
		parseAdvert(bytes.NewReader(b), true)
		applyDelta([]byte("base"), b)
		unquotePath(string(b))
		parseIdent(string(b))
		editConfig(string(b), "a.b", nil, true, false)
		merge3([]byte("a\nb\n"), b, []byte("a\nc\n"), [3]string{}, true, "", func(int) {})
		quotePath(string(b), true)
		fileSubject(string(b))
		splitMessage(string(b))
	})
}
