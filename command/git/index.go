package git

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"sort"
	"strings"
	"time"

	"agentrun.dev/vfs"
)

// entry is a file in the index.
type entry struct {
	ctime, mtime   uint64 // seconds << 32 | nanoseconds
	dev, ino       uint32
	mode           uint32
	uid, gid, size uint32
	id             oid
	flags, flags2  uint16
	path           string
}

func (e *entry) stage() int { return int(e.flags >> 12 & 3) }

// intent is set by `add -N`: the path is known, the content isn't there yet.
func (e *entry) intent() bool { return e.flags2&0x2000 != 0 }

// skip is set for files outside of a sparse checkout; valid for those assumed to be unchanged.
func (e *entry) skip() bool { return e.flags2&0x4000 != 0 || e.flags&0x8000 != 0 }

// index is the list of the next commit's files, by path and stage.
type index struct {
	entries []entry
	mtime   uint64 // of the index file, 0 if there was none
	changed bool
}

var errIndex = errors.New("index file corrupt")

// index reads the index, once.
func (r *repo) index() *index {
	if r.idx != nil {
		return r.idx
	}
	r.idx = &index{}
	name := r.indexFile()
	in, err := r.t.OpenFile(name)
	if err != nil {
		return r.idx
	}
	a, _ := in.Attr()
	in.Close()
	b, err := r.t.ReadFile(name, maxIndexFile)
	if err == nil {
		r.need(2*cacheLimit + 3*int64(len(b)))
		err = r.idx.parse(b)
	}
	if err != nil {
		r.say("error: bad index file")
		r.fatal("index file corrupt")
	}
	r.idx.mtime = stamp(a.Mtime)
	return r.idx
}

func (r *repo) indexFile() string {
	if f := r.t.Getenv("GIT_INDEX_FILE"); f != "" {
		return r.abs(f)
	}
	return r.dir + "/index"
}

func stamp(t time.Time) uint64 { return uint64(t.Unix())<<32 | uint64(uint32(t.Nanosecond())) }

func (x *index) parse(b []byte) error {
	if len(b) < 32 || string(b[:4]) != "DIRC" {
		return errIndex
	}
	sum := sha1.Sum(b[:len(b)-20])
	if tail := b[len(b)-20:]; !bytes.Equal(sum[:], tail) && !bytes.Equal(tail, make([]byte, 20)) {
		return errIndex
	}
	version, n := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	if version < 2 || version > 4 || int64(n)*62 > int64(len(b)) {
		return errIndex
	}
	end := len(b) - 20
	x.entries = make([]entry, 0, n)
	at, previous := 12, ""
	for range n {
		if at+63 > end {
			return errIndex
		}
		u := func(i int) uint32 { return binary.BigEndian.Uint32(b[at+i:]) }
		e := entry{ctime: uint64(u(0))<<32 | uint64(u(4)), mtime: uint64(u(8))<<32 | uint64(u(12)), dev: u(16), ino: u(20), mode: u(24), uid: u(28), gid: u(32), size: u(36)}
		copy(e.id[:], b[at+40:])
		e.flags = binary.BigEndian.Uint16(b[at+60:])
		start := at + 62
		if e.flags&0x4000 != 0 {
			if version < 3 || start+2 > end {
				return errIndex
			}
			e.flags2 = binary.BigEndian.Uint16(b[start:])
			start += 2
		}
		strip := 0
		if version == 4 {
			for i := 0; ; i++ {
				if start >= end || i > 5 {
					return errIndex
				}
				c := b[start]
				start++
				strip = strip<<7 | int(c&0x7f)
				if c&0x80 == 0 {
					break
				}
				strip++
			}
			if strip > len(previous) {
				return errIndex
			}
		}
		n := bytes.IndexByte(b[start:end], 0)
		if n < 0 {
			return errIndex
		}
		e.path = string(b[start : start+n])
		if version == 4 {
			e.path = previous[:len(previous)-strip] + e.path
			at = start + n + 1
		} else {
			at += (start + n - at + 8) &^ 7
		}
		previous = e.path
		x.entries = append(x.entries, e)
	}
	return nil
}

// writeIndex stores the index if it was changed.
func (r *repo) writeIndex() {
	x := r.index()
	if !x.changed {
		return
	}
	version := uint32(2)
	for i := range x.entries {
		if x.entries[i].flags2 != 0 {
			version = 3
		}
	}
	var b bytes.Buffer
	b.WriteString("DIRC")
	u32 := func(v uint32) { b.Write(binary.BigEndian.AppendUint32(nil, v)) }
	u32(version)
	u32(uint32(len(x.entries)))
	for i := range x.entries {
		e := &x.entries[i]
		size := 62 + len(e.path)
		for _, v := range []uint32{uint32(e.ctime >> 32), uint32(e.ctime), uint32(e.mtime >> 32), uint32(e.mtime), e.dev, e.ino, e.mode, e.uid, e.gid, e.size} {
			u32(v)
		}
		b.Write(e.id[:])
		flags := e.flags&0xb000 | uint16(min(len(e.path), 0xfff))
		if e.flags2 != 0 {
			flags |= 0x4000
			size += 2
		}
		b.Write(binary.BigEndian.AppendUint16(nil, flags))
		if e.flags2 != 0 {
			b.Write(binary.BigEndian.AppendUint16(nil, e.flags2))
		}
		b.WriteString(e.path)
		b.Write(make([]byte, 8-size%8))
	}
	sum := sha1.Sum(b.Bytes())
	b.Write(sum[:])
	if err := r.writeFile(r.indexFile(), b.Bytes(), 0o666); err != nil {
		if strings.Contains(strerror(err), "exists") {
			r.fatal("Unable to create '%s.lock': File exists.\n\nAnother git process seems to be running in this repository, e.g.\nan editor opened by 'git commit'. Please make sure all processes\nare terminated then try again. If it still fails, a git process\nmay have crashed in this repository earlier:\nremove the file manually to continue.", r.indexFile())
		}
		r.fatal("Unable to write new index file")
	}
	x.changed = false
	if a, err := r.t.Lstat(r.indexFile()); err == nil {
		x.mtime = stamp(a.Mtime)
	}
}

// search returns where a path at a stage is or belongs.
func (x *index) search(p string, stage int) (int, bool) {
	i := sort.Search(len(x.entries), func(i int) bool {
		e := &x.entries[i]
		return e.path > p || e.path == p && e.stage() >= stage
	})
	return i, i < len(x.entries) && x.entries[i].path == p && x.entries[i].stage() == stage
}

// find returns the merged entry of a path, nil if there is none.
func (x *index) find(p string) *entry {
	if i, ok := x.search(p, 0); ok {
		return &x.entries[i]
	}
	return nil
}

// remove takes away all stages of a path.
func (x *index) remove(p string) bool {
	i, _ := x.search(p, 0)
	j := i
	for j < len(x.entries) && x.entries[j].path == p {
		j++
	}
	if i == j {
		return false
	}
	x.entries = append(x.entries[:i], x.entries[j:]...)
	x.changed = true
	return true
}

// put adds or replaces an entry. A merged one takes the place of the stages, and of what is a folder or file in its way.
func (x *index) put(e entry) {
	if e.stage() == 0 {
		x.removeStages(e.path)
		x.clear(e.path)
	}
	i, ok := x.search(e.path, e.stage())
	if ok {
		x.entries[i] = e
	} else {
		x.entries = append(x.entries, entry{})
		copy(x.entries[i+1:], x.entries[i:])
		x.entries[i] = e
	}
	x.changed = true
}

func (x *index) removeStages(p string) {
	i, _ := x.search(p, 1)
	j := i
	for j < len(x.entries) && x.entries[j].path == p {
		j++
	}
	x.entries = append(x.entries[:i], x.entries[j:]...)
}

// clear removes entries below p, and those that are a file where p needs a folder.
func (x *index) clear(p string) {
	lo, hi := x.below(p)
	x.entries = append(x.entries[:lo], x.entries[hi:]...)
	for i := 0; i < len(p); i++ {
		if p[i] == '/' {
			x.remove(p[:i])
		}
	}
}

// below returns the span of entries in a folder.
func (x *index) below(dir string) (lo, hi int) {
	if dir == "" {
		return 0, len(x.entries)
	}
	dir += "/"
	lo = sort.Search(len(x.entries), func(i int) bool { return x.entries[i].path >= dir })
	hi = lo
	for hi < len(x.entries) && strings.HasPrefix(x.entries[hi].path, dir) {
		hi++
	}
	return lo, hi
}

// unmerged reports whether conflicts are left.
func (x *index) unmerged() bool {
	for i := range x.entries {
		if x.entries[i].stage() != 0 {
			return true
		}
	}
	return false
}

// statEntry fills in what tells whether a file has changed.
func statEntry(e *entry, a vfs.Attr) {
	e.ctime, e.mtime = stamp(a.Ctime), stamp(a.Mtime)
	e.dev, e.ino, e.uid, e.gid, e.size = uint32(a.Dev), uint32(a.Ino), a.UID, a.GID, uint32(a.Size)
}

// fileMode is the mode that a file has in git.
func (r *repo) fileMode(a vfs.Attr, was uint32) uint32 {
	switch {
	case a.Mode.IsSymlink():
		return modeLink
	case a.Mode.IsDir():
		return modeGitlink
	case !r.config().bool("core.filemode", true):
		if was == modeExec {
			return modeExec
		}
		return modeFile
	case a.Mode&0o100 != 0:
		return modeExec
	}
	return modeFile
}

// treeFromIndex writes the trees of all merged entries and returns the root.
func (r *repo) treeFromIndex() oid {
	x := r.index()
	list := make([]entry, 0, len(x.entries))
	for _, e := range x.entries {
		if !e.intent() {
			list = append(list, e)
		}
	}
	id, _ := r.writeTrees(list, "")
	return id
}

// writeTrees writes the tree of a folder whose entries list begins with; it returns how many it took.
func (r *repo) writeTrees(list []entry, dir string) (oid, int) {
	var tree []treeEntry
	i := 0
	for i < len(list) && strings.HasPrefix(list[i].path, dir) {
		rest := list[i].path[len(dir):]
		name, _, sub := strings.Cut(rest, "/")
		if !sub {
			tree = append(tree, treeEntry{list[i].mode, name, list[i].id})
			i++
			continue
		}
		id, n := r.writeTrees(list[i:], dir+name+"/")
		tree = append(tree, treeEntry{modeTree, name, id})
		i += n
	}
	sortTree(tree)
	return r.writeObject(treeObj, encodeTree(tree)), i
}

// sortTree sorts as trees are: a folder as if its name ended with a slash.
func sortTree(tree []treeEntry) {
	key := func(e *treeEntry) string {
		if e.isTree() {
			return e.name + "/"
		}
		return e.name
	}
	sort.Slice(tree, func(i, j int) bool { return key(&tree[i]) < key(&tree[j]) })
}

// flat is a tree's or the index's files by path.
type flat map[string]treeEntry

// flatten lists all files of a tree; the name of each is its path.
func (r *repo) flatten(tree oid) flat {
	f := flat{}
	if !tree.isZero() {
		r.flattenInto(f, tree, "", 0)
	}
	return f
}

// maxDepth bounds nested folders, and maxFiles the files of a tree.
const (
	maxDepth = 2048
	maxFiles = 1 << 20
)

func (r *repo) flattenInto(f flat, tree oid, dir string, depth int) {
	if depth > maxDepth {
		r.fatal("tree %s is nested too deeply", tree)
	}
	for _, e := range r.readTree(tree) {
		p := dir + e.name
		if e.isTree() {
			r.flattenInto(f, e.id, p+"/", depth+1)
		} else {
			e.name = p
			f[p] = e
			// A few trees that hold each other many times over can stand for any number of files.
			if len(f)&1023 == 0 {
				if len(f) > maxFiles {
					r.fatal("tree %s has more than %d files", tree, maxFiles)
				}
				r.need(2*cacheLimit + int64(len(f))*256)
			}
		}
	}
}

// flatIndex is the index's merged files.
func (r *repo) flatIndex() flat {
	f := flat{}
	for i := range r.index().entries {
		if e := &r.index().entries[i]; e.stage() == 0 && !e.intent() {
			f[e.path] = treeEntry{e.mode, e.path, e.id}
		}
	}
	return f
}

func (f flat) paths() []string {
	list := make([]string, 0, len(f))
	for p := range f {
		list = append(list, p)
	}
	sort.Strings(list)
	return list
}
