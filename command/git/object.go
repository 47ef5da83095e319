package git

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/klauspost/compress/zlib"

	"agentrun.dev/vfs"
)

// oid is an object's SHA-1.
type oid [20]byte

func (id oid) String() string     { return hex.EncodeToString(id[:]) }
func (id oid) isZero() bool       { return id == oid{} }
func (id oid) short(n int) string { return id.String()[:n] }

// parseOID reads 40 hexadecimal digits.
func parseOID(s string) (id oid, ok bool) {
	if len(s) != 40 {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(s))
	return id, err == nil
}

// kind is an object's type, numbered as in packs.
type kind uint8

const (
	commitObj kind = 1
	treeObj   kind = 2
	blobObj   kind = 3
	tagObj    kind = 4
)

var kindNames = [...]string{"", "commit", "tree", "blob", "tag"}

func (k kind) String() string { return kindNames[k] }

func parseKind(s string) (kind, bool) {
	for i := commitObj; i <= tagObj; i++ {
		if kindNames[i] == s {
			return i, true
		}
	}
	return 0, false
}

// maxObject bounds one object in memory, and maxSmall files such as references and configurations.
const (
	maxObject = 256 << 20
	maxSmall  = 16 << 20
)

// maxNested bounds how often a delta's base may be in yet another pack.
const maxNested = 64

var errMissing = errors.New("object not found")

func hashObject(k kind, data []byte) (id oid) {
	h := sha1.New()
	fmt.Fprintf(h, "%s %d\x00", k, len(data))
	h.Write(data)
	h.Sum(id[:0])
	return id
}

// readObject returns an object. What is damaged or too large is an error.
func (r *repo) readObject(id oid) (kind, []byte, error) {
	r.step(1)
	if id == emptyTree {
		return treeObj, nil, nil
	}
	if k, data, ok := r.cache.get(id); ok {
		return k, data, nil
	}
	// A delta's base may be in another pack, and so on: chains over packs have a limit, too.
	if r.nested++; r.nested > maxNested {
		return 0, nil, fmt.Errorf("%w: delta chain too long", errPack)
	}
	defer func() { r.nested-- }()
	k, data, err := r.readLoose(id)
	if errors.Is(err, errMissing) {
		k, data, err = r.readPacked(id)
	}
	if err == nil {
		r.cache.put(id, k, data)
	}
	return k, data, err
}

// emptyTree exists in every repository.
var emptyTree = hashObject(treeObj, nil)

// read returns an object of a kind; it ends the command if there is none.
func (r *repo) read(id oid, want kind) []byte {
	k, data, err := r.readObject(id)
	if err != nil {
		r.fatal("unable to read %s", id)
	}
	if k != want {
		r.fatal("object %s is a %s, not a %s", id, k, want)
	}
	return data
}

func (r *repo) readLoose(id oid) (kind, []byte, error) {
	s := id.String()
	for _, dir := range r.objectDirs() {
		f, err := r.t.OpenFile(dir + "/" + s[:2] + "/" + s[2:])
		if err != nil {
			continue
		}
		k, data, err := inflateLoose(f, r.need)
		f.Close()
		if err == nil && hashObject(k, data) != id {
			err = fmt.Errorf("hash mismatch %s", s)
		}
		return k, data, err
	}
	return 0, nil, errMissing
}

// inflateLoose reads "type size\0data", deflated.
func inflateLoose(f io.Reader, need func(int64)) (kind, []byte, error) {
	z, err := zlib.NewReader(f)
	if err != nil {
		return 0, nil, err
	}
	var head [32]byte
	n := 0
	for {
		if n == len(head) {
			return 0, nil, errors.New("loose object has no header")
		}
		if _, err := io.ReadFull(z, head[n:n+1]); err != nil {
			return 0, nil, err
		}
		if head[n] == 0 {
			break
		}
		n++
	}
	name, size, _ := strings.Cut(string(head[:n]), " ")
	k, ok := parseKind(name)
	want, err := strconv.ParseInt(size, 10, 64)
	if !ok || err != nil || want < 0 || want > maxObject {
		return 0, nil, errors.New("loose object has a bad header")
	}
	need(cacheLimit + 2*want)
	data, err := readExactly(z, want)
	return k, data, err
}

// readExactly reads what is promised, growing with what arrives, and that nothing follows.
func readExactly(z io.Reader, want int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(min(want+bytes.MinRead, 1<<20)))
	n, err := io.Copy(&b, io.LimitReader(z, want+1))
	if err == nil && n != want {
		err = io.ErrUnexpectedEOF
	}
	return b.Bytes(), err
}

// writeObject stores an object, loose, unless it is there.
func (r *repo) writeObject(k kind, data []byte) oid {
	id := hashObject(k, data)
	if r.hasObject(id) {
		return id
	}
	r.storeLoose(id, k, data)
	r.cache.put(id, k, data)
	return id
}

// storeLoose writes an object's own file.
func (r *repo) storeLoose(id oid, k kind, data []byte) {
	r.step(1 + len(data)>>16)
	var b bytes.Buffer
	if r.deflater == nil {
		r.deflater, _ = zlib.NewWriterLevel(&b, zlib.BestSpeed)
	} else {
		r.deflater.Reset(&b)
	}
	z := r.deflater
	fmt.Fprintf(z, "%s %d\x00", k, len(data))
	z.Write(data)
	z.Close()
	s := id.String()
	dir := r.common + "/objects/" + s[:2]
	if err := r.t.Mkdir(dir, 0o777); err != nil && !errors.Is(err, syscall.EEXIST) {
		r.fatal("insufficient permission for adding an object to repository database %s", r.show(r.common+"/objects"))
	}
	name, f, err := r.t.TempFile(dir, "tmp_obj_", 0o444)
	if err == nil {
		_, err = f.Write(b.Bytes())
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err == nil {
			err = r.t.Rename(name, dir+"/"+s[2:], 0)
		}
		if err != nil {
			r.t.Unlink(name)
		}
	}
	if err != nil {
		r.fatal("unable to write file %s: %s", r.show(dir+"/"+s[2:]), vfs.Strerror(err))
	}
}

func (r *repo) hasObject(id oid) bool {
	if _, _, ok := r.cache.get(id); ok {
		return true
	}
	s := id.String()
	for _, dir := range r.objectDirs() {
		if _, err := r.t.Stat(dir + "/" + s[:2] + "/" + s[2:]); err == nil {
			return true
		}
	}
	return r.inPack(id)
}

// objectDirs are the object folders: the repository's own and its alternates.
func (r *repo) objectDirs() []string {
	if r.dirs == nil {
		own := r.common + "/objects"
		r.dirs = []string{own}
		if b, err := r.t.ReadFile(own+"/info/alternates", maxSmall); err == nil {
			for _, line := range strings.Split(string(b), "\n") {
				if line == "" || line[0] == '#' || len(r.dirs) > 16 {
					continue
				}
				if !path.IsAbs(line) {
					line = own + "/" + line
				}
				r.dirs = append(r.dirs, path.Clean(line))
			}
		}
	}
	return r.dirs
}

// cached keeps recently read objects, up to cacheLimit bytes.
type cached struct {
	m     map[oid]cachedObject
	bytes int
}

type cachedObject struct {
	k    kind
	data []byte
}

const cacheLimit = 32 << 20

func (c *cached) get(id oid) (kind, []byte, bool) {
	o, ok := c.m[id]
	return o.k, o.data, ok
}

func (c *cached) put(id oid, k kind, data []byte) {
	if len(data) > cacheLimit/8 {
		return
	}
	if c.m == nil || c.bytes+len(data)+100 > cacheLimit {
		c.m, c.bytes = make(map[oid]cachedObject), 0
	}
	if _, ok := c.m[id]; !ok {
		c.m[id] = cachedObject{k, data}
		c.bytes += len(data) + 100
	}
}

// File modes in trees and the index.
const (
	modeTree    = 0o040000
	modeFile    = 0o100644
	modeExec    = 0o100755
	modeLink    = 0o120000
	modeGitlink = 0o160000
)

// treeEntry is one line of a tree.
type treeEntry struct {
	mode uint32
	name string
	id   oid
}

func (e *treeEntry) isTree() bool { return e.mode == modeTree }

func (r *repo) readTree(id oid) []treeEntry {
	list, err := parseTree(r.read(id, treeObj))
	if err != nil {
		r.fatal("object %s: %s", id, err)
	}
	return list
}

func parseTree(b []byte) (list []treeEntry, err error) {
	for len(b) > 0 {
		sp, nul := bytes.IndexByte(b, ' '), bytes.IndexByte(b, 0)
		if sp < 0 || nul < sp || len(b) < nul+21 {
			return nil, errors.New("malformed tree")
		}
		mode, err := strconv.ParseUint(string(b[:sp]), 8, 32)
		e := treeEntry{mode: canonMode(uint32(mode)), name: string(b[sp+1 : nul])}
		if err != nil || e.name == "" || strings.Contains(e.name, "/") {
			return nil, errors.New("malformed tree entry")
		}
		copy(e.id[:], b[nul+1:])
		list = append(list, e)
		b = b[nul+21:]
	}
	return list, nil
}

// canonMode is the mode that git knows for any.
func canonMode(m uint32) uint32 {
	switch m & 0o170000 {
	case modeTree, modeLink, modeGitlink:
		return m & 0o170000
	case 0o100000:
		if m&0o100 != 0 {
			return modeExec
		}
	}
	return modeFile
}

func encodeTree(list []treeEntry) []byte {
	var b bytes.Buffer
	for i := range list {
		fmt.Fprintf(&b, "%o %s\x00", list[i].mode, list[i].name)
		b.Write(list[i].id[:])
	}
	return b.Bytes()
}

// commit is a parsed commit.
type commit struct {
	id                oid
	tree              oid
	parents           []oid
	author, committer ident
	message           string
	extra             string // other headers, as they stand
}

func (r *repo) readCommit(id oid) *commit {
	if c, ok := r.commits[id]; ok {
		return c
	}
	c, err := parseCommit(id, r.read(id, commitObj))
	if err != nil {
		r.fatal("could not parse commit %s", id)
	}
	if r.commits == nil || len(r.commits) > 20000 {
		r.commits = make(map[oid]*commit)
	}
	r.commits[id] = c
	return c
}

func parseCommit(id oid, b []byte) (*commit, error) {
	c := &commit{id: id}
	head, message, _ := strings.Cut(string(b), "\n\n")
	c.message = message
	tree := false
	lines := strings.Split(head, "\n")
	for i, line := range lines {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "tree":
			c.tree, tree = parseOID(value)
		case "parent":
			p, ok := parseOID(value)
			if !ok {
				return nil, errors.New("bad parent")
			}
			c.parents = append(c.parents, p)
		case "author":
			c.author = parseIdent(value)
		case "committer":
			c.committer = parseIdent(value)
		default:
			c.extra = strings.Join(lines[i:], "\n")
			if !tree {
				return nil, errors.New("no tree")
			}
			return c, nil
		}
	}
	if !tree {
		return nil, errors.New("no tree")
	}
	return c, nil
}

func (c *commit) encode() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", c.tree)
	for _, p := range c.parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author %s\ncommitter %s\n", c.author, c.committer)
	b.WriteString("\n" + c.message)
	return []byte(b.String())
}

// subject is the message's first paragraph in one line.
func (c *commit) subject() string { s, _ := splitMessage(c.message); return s }

// splitMessage separates the subject, its lines joined, from the body.
func splitMessage(m string) (subject, body string) {
	m = strings.TrimLeft(m, "\n")
	head, body, _ := strings.Cut(m, "\n\n")
	return strings.Join(strings.Split(strings.TrimRight(head, "\n"), "\n"), " "), strings.TrimLeft(body, "\n")
}

// tag is a parsed annotated tag.
type tag struct {
	object  oid
	kind    kind
	name    string
	tagger  ident
	message string
}

func parseTag(b []byte) (t tag, err error) {
	head, message, _ := strings.Cut(string(b), "\n\n")
	t.message = message
	ok := false
	for _, line := range strings.Split(head, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "object":
			t.object, ok = parseOID(value)
		case "type":
			t.kind, _ = parseKind(value)
		case "tag":
			t.name = value
		case "tagger":
			t.tagger = parseIdent(value)
		}
	}
	if !ok || t.kind == 0 {
		return t, errors.New("malformed tag")
	}
	return t, nil
}

// peel follows tags, and from a commit to its tree if that is wanted. 0 wants whatever isn't a tag.
func (r *repo) peel(id oid, want kind) (oid, error) {
	for range 64 {
		k, data, err := r.readObject(id)
		switch {
		case err != nil:
			return id, err
		case k == want || want == 0 && k != tagObj:
			return id, nil
		case k == tagObj:
			t, err := parseTag(data)
			if err != nil {
				return id, err
			}
			id = t.object
		case k == commitObj && want == treeObj:
			c, err := parseCommit(id, data)
			if err != nil {
				return id, err
			}
			id = c.tree
		default:
			return id, fmt.Errorf("object %s is a %s, not a %s", id, k, want)
		}
	}
	return id, errors.New("too many nested tags")
}

// need charges memory that the command needs at once to the sandbox. It only grows; what is left is given back at the end.
func (r *repo) need(bytes int64) {
	if bytes <= r.charged {
		return
	}
	if err := r.t.Charge(bytes - r.charged); err != nil {
		r.fatal("out of memory: %d bytes", bytes)
	}
	r.charged = bytes
}
