package git

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"sort"
	"strings"
	"time"
)

// reachable lists all objects that references, logs and the index lead to.
func (r *repo) reachable() []oid {
	var tips []oid
	add := func(id oid) {
		if !id.isZero() && r.hasObject(id) {
			tips = append(tips, id)
		}
	}
	names := []string{"HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "FETCH_HEAD"}
	for _, f := range r.refs("refs/") {
		add(f.id)
		names = append(names, f.name)
	}
	for _, n := range names {
		if _, id, ok := r.resolveRef(n); ok {
			add(id)
		}
		for _, e := range r.reflog(n) {
			add(e.old)
			add(e.id)
		}
	}
	if !r.bare {
		for _, e := range r.index().entries {
			if e.mode != modeGitlink {
				add(e.id)
			}
		}
	}
	return r.missing(tips, func(oid) bool { return false }, r.shallowParents())
}

// shallowParents are the commits that a shallow repository doesn't have.
func (r *repo) shallowParents() map[oid]bool {
	stop := map[oid]bool{}
	for id := range r.shallow() {
		if k, _, err := r.readObject(id); err == nil && k == commitObj {
			for _, p := range r.readCommit(id).parents {
				stop[p] = !r.hasObject(p)
			}
		}
	}
	return stop
}

func (r *repo) cmdGC(args []string) int {
	o := r.options("gc", args)
	prune := 14 * 24 * time.Hour
	for o.next() {
		switch o.name {
		case "--prune":
			if o.value == "now" || o.value == "all" {
				prune = 0
			}
		case "--no-prune":
			prune = -1
		case "-q", "--quiet", "--aggressive", "--auto", "--force", "--keep-largest-pack", "--no-cruft", "--cruft", "-a", "-d", "-A", "-f", "-F", "-l":
		default:
			o.unknown()
		}
	}
	r.packRefs()
	r.repack(prune)
	return 0
}

// repack puts everything that is reachable into one pack, and removes what that replaces. Unreachable loose objects go when they
// are older than prune; negative keeps them.
func (r *repo) repack(prune time.Duration) {
	ids := r.reachable()
	dir := r.common + "/objects"
	old, _ := r.t.ReadDir(dir + "/pack")
	if len(ids) > 0 {
		if err := r.copyAsPack(r, ids); err != nil {
			r.fatal("failed to run repack: %s", err)
		}
	}
	kept := map[oid]bool{}
	for _, id := range ids {
		kept[id] = true
	}
	r.packs, r.packsLoaded = nil, false
	r.loadPacks()
	// The objects of old packs that nothing leads to become loose, so that they are kept a while.
	var drop []*pack
	for _, p := range r.packs {
		base := path.Base(p.path)
		for _, e := range old {
			if e.Name == base && strings.HasPrefix(p.path, dir+"/") && !(p.n == len(ids) && r.samePack(p, kept)) {
				drop = append(drop, p)
			}
		}
	}
	for _, p := range drop {
		keepFile := strings.TrimSuffix(p.path, ".pack") + ".keep"
		if _, err := r.t.Lstat(keepFile); err == nil {
			continue
		}
		for i := range p.n {
			if id := oid(p.name(i)); !kept[id] && prune != 0 {
				if off, ok := p.find(id); ok {
					if k, data, err := r.packEntry(p, off, 0); err == nil {
						r.storeLoose(id, k, data)
					}
				}
			}
		}
		base := strings.TrimSuffix(p.path, ".pack")
		for _, ext := range []string{".pack", ".idx", ".rev", ".bitmap"} {
			r.t.Unlink(base + ext)
		}
	}
	r.packs, r.packsLoaded = nil, false
	r.pruneLoose(kept, prune, false)
}

// samePack reports whether a pack holds just these objects.
func (r *repo) samePack(p *pack, ids map[oid]bool) bool {
	for i := range p.n {
		if !ids[oid(p.name(i))] {
			return false
		}
	}
	return true
}

// copyAsPack writes objects of a repository, which may be r itself, as a new pack of r.
func (r *repo) copyAsPack(from *repo, ids []oid) error {
	dir := r.common + "/objects/pack"
	if err := r.mkdirAll(dir); err != nil {
		return err
	}
	name, f, err := r.t.TempFile(dir, "tmp_send_", 0o600)
	if err != nil {
		return err
	}
	defer func() {
		f.Close()
		r.t.Unlink(name)
	}()
	if err := from.writePack(f, ids); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = r.receivePack(f)
	return err
}

// pruneLoose removes loose objects that are packed, and unreachable ones older than an age.
func (r *repo) pruneLoose(kept map[oid]bool, age time.Duration, dry bool) {
	dir := r.common + "/objects"
	for i := range 256 {
		sub := fmt.Sprintf("%02x", i)
		list, err := r.t.ReadDir(dir + "/" + sub)
		if err != nil {
			continue
		}
		for _, e := range list {
			id, ok := parseOID(sub + e.Name)
			if !ok {
				continue
			}
			name := dir + "/" + sub + "/" + e.Name
			remove := kept[id] && r.inPack(id)
			if !kept[id] && age >= 0 {
				a, err := r.t.Lstat(name)
				remove = err == nil && (age == 0 || r.t.Now().Sub(a.Mtime) > age)
				if remove && dry {
					if k, _, err := r.readObject(id); err == nil {
						r.printf("%s %s\n", id, k)
					}
				}
			}
			if remove && !dry {
				r.t.Unlink(name)
			}
		}
		if !dry {
			r.t.Rmdir(dir + "/" + sub)
		}
	}
}

func (r *repo) cmdPrune(args []string) int {
	o := r.options("prune", args)
	dry := false
	for o.next() {
		switch o.name {
		case "-n", "--dry-run":
			dry = true
		case "-v", "--verbose", "--progress", "--expire":
			o.optional()
		default:
			o.unknown()
		}
	}
	kept := map[oid]bool{}
	for _, id := range r.reachable() {
		kept[id] = true
	}
	r.pruneLoose(kept, 0, dry)
	return 0
}

// packRefs puts all references into one file.
func (r *repo) packRefs() {
	var b strings.Builder
	b.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	refs := r.refs("refs/")
	var loose []string
	for _, f := range refs {
		if t, _, _ := r.readRef(f.name); t != "" {
			continue
		}
		b.WriteString(f.id.String() + " " + f.name + "\n")
		if p, err := r.peel(f.id, 0); err == nil && p != f.id {
			b.WriteString("^" + p.String() + "\n")
		}
		loose = append(loose, f.name)
	}
	if len(loose) == 0 {
		return
	}
	r.must(r.writeFile(r.common+"/packed-refs", []byte(b.String()), 0o666))
	for _, n := range loose {
		r.t.Unlink(r.common + "/" + n)
		for d := path.Dir(n); strings.Count(d, "/") > 1; d = path.Dir(d) {
			r.t.Rmdir(r.common + "/" + d)
		}
	}
	r.packed = nil
}

func (r *repo) cmdPackRefs(args []string) int {
	r.packRefs()
	return 0
}

func (r *repo) cmdCountObjects(args []string) int {
	verbose := false
	for _, a := range args {
		verbose = verbose || a == "-v" || a == "--verbose" || a == "-vH"
	}
	count, size := 0, int64(0)
	for i := range 256 {
		sub := fmt.Sprintf("%s/objects/%02x", r.common, i)
		list, err := r.t.ReadDir(sub)
		if err != nil {
			continue
		}
		for _, e := range list {
			if a, err := r.t.Lstat(sub + "/" + e.Name); err == nil && len(e.Name) == 38 {
				count++
				size += max(a.Blocks*512, (a.Size+4095)&^4095)
			}
		}
	}
	if !verbose {
		r.printf("%d objects, %d kilobytes\n", count, size/1024)
		return 0
	}
	r.loadPacks()
	packed, bytes := 0, int64(0)
	for _, p := range r.packs {
		packed += p.n
		if a, err := r.t.Lstat(p.path); err == nil {
			bytes += a.Size + int64(len(p.idx))
		}
	}
	r.printf("count: %d\nsize: %d\nin-pack: %d\npacks: %d\nsize-pack: %d\nprune-packable: 0\ngarbage: 0\nsize-garbage: 0\n", count, size/1024, packed, len(r.packs), bytes/1024)
	return 0
}

func (r *repo) cmdFsck(args []string) int {
	var full, unreachable, noDangling, strict, lost bool
	o := r.options("fsck", args)
	for o.next() {
		switch o.name {
		case "--full":
			full = true
		case "--strict":
			strict = true
		case "--unreachable":
			unreachable = true
		case "--no-dangling":
			noDangling = true
		case "--lost-found":
			lost = true
		case "--no-full", "--progress", "--no-progress", "--cache", "--connectivity-only", "--verbose", "-v", "--name-objects", "--no-reflogs", "--root", "--tags", "--dangling":
		default:
			o.unknown()
		}
	}
	_, _, _ = full, strict, lost
	f := &checker{r: r, all: map[oid]kind{}, linked: map[oid]bool{}}
	for _, s := range r.allObjects() {
		id, _ := parseOID(s)
		f.check(id)
	}
	f.roots()
	var ids []oid
	for id := range f.all {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i].String() < ids[j].String() })
	reach := map[oid]bool{}
	if unreachable {
		for _, id := range r.reachable() {
			reach[id] = true
		}
	}
	for _, id := range ids {
		switch {
		case unreachable && !reach[id]:
			r.printf("unreachable %s %s\n", f.all[id], id)
		case !unreachable && !noDangling && !f.linked[id]:
			r.printf("dangling %s %s\n", f.all[id], id)
		}
	}
	return f.status
}

// checker looks for damage.
type checker struct {
	r      *repo
	all    map[oid]kind
	linked map[oid]bool
	status int
}

func (f *checker) fail(status int, format string, args ...any) {
	f.r.say(format, args...)
	f.status |= status
}

// check reads an object and what it leads to.
func (f *checker) check(id oid) {
	r := f.r
	r.step(1)
	k, data, err := r.readObject(id)
	if err != nil {
		f.fail(1, "error: %s: object corrupt or missing: %v", id, err)
		return
	}
	f.all[id] = k
	link := func(to oid, want kind) {
		f.linked[to] = true
		if !r.hasObject(to) {
			if want == commitObj && k == commitObj && r.shallow()[id] {
				return
			}
			r.printf("broken link from %7s %s\n              to %7s %s\n", k, id, want, to)
			f.status |= 2
		}
	}
	switch k {
	case commitObj:
		c, err := parseCommit(id, data)
		if err != nil {
			f.fail(1, "error in commit %s: %v", id, err)
			return
		}
		link(c.tree, treeObj)
		for _, p := range c.parents {
			link(p, commitObj)
		}
	case treeObj:
		list, err := parseTree(data)
		if err != nil {
			f.fail(1, "error in tree %s: %v", id, err)
			return
		}
		for _, e := range list {
			if !safePath(e.name) {
				f.fail(1, "error in tree %s: hasDotgit: contains '%s'", id, e.name)
			}
			switch {
			case e.isTree():
				link(e.id, treeObj)
			case e.mode != modeGitlink:
				link(e.id, blobObj)
			}
		}
	case tagObj:
		t, err := parseTag(data)
		if err != nil {
			f.fail(1, "error in tag %s: %v", id, err)
			return
		}
		link(t.object, t.kind)
	}
}

// roots marks what references, logs and the index lead to.
func (f *checker) roots() {
	r := f.r
	names := []string{"HEAD"}
	for _, x := range r.refs("refs/") {
		names = append(names, x.name)
		if !r.hasObject(x.id) {
			f.fail(2, "error: %s: invalid sha1 pointer %s", x.name, x.id)
		}
		f.linked[x.id] = true
	}
	for _, n := range names {
		if _, id, ok := r.resolveRef(n); ok {
			f.linked[id] = true
		}
		for _, e := range r.reflog(n) {
			f.linked[e.old], f.linked[e.id] = true, true
		}
	}
	if branch, id := r.head(); id.isZero() && branch != "" {
		r.say("notice: HEAD points to an unborn branch (%s)", shortRef(branch))
		if len(r.refs("refs/")) == 0 {
			r.say("notice: No default references")
		}
	}
	if !r.bare {
		for _, e := range r.index().entries {
			f.linked[e.id] = true
		}
	}
}

func (r *repo) cmdArchive(args []string) int {
	format, prefix, output, level := "", "", "", -1
	o := r.options("archive", args)
	for o.next() {
		switch o.name {
		case "--format":
			format = o.arg()
		case "--prefix":
			prefix = o.arg()
		case "-o", "--output":
			output = o.arg()
		case "-l", "--list":
			r.printf("tar\ntgz\ntar.gz\nzip\n")
			return 0
		case "-v", "--verbose", "--worktree-attributes":
		case "--remote", "--exec", "--add-file":
			r.fatal("%s isn't done here", o.name)
		default:
			if len(o.name) == 2 && o.name[1] >= '0' && o.name[1] <= '9' {
				level = int(o.name[1] - '0')
				continue
			}
			o.unknown()
		}
	}
	rest := o.operands()
	if len(rest) == 0 {
		r.die(129, "fatal: must specify tree-ish")
	}
	if format == "" {
		switch {
		case strings.HasSuffix(output, ".zip"):
			format = "zip"
		case strings.HasSuffix(output, ".tgz") || strings.HasSuffix(output, ".tar.gz"):
			format = "tar.gz"
		default:
			format = "tar"
		}
	}
	id, err := r.rev(rest[0])
	if err != nil {
		r.fatal("not a valid object name: %s", rest[0])
	}
	a := &archiver{r: r, prefix: prefix, when: r.t.Now(), spec: r.pathspec(rest[1:])}
	if c, err := r.peel(id, commitObj); err == nil {
		a.when, a.comment = r.readCommit(c).committer.when, c.String()
	}
	if id, err = r.peel(id, treeObj); err != nil {
		r.fatal("not a tree object: %s", rest[0])
	}
	for i, p := range rest[1:] {
		found := false
		for q := range r.flatten(id) {
			found = found || (&pathspec{items: a.spec.items[i : i+1]}).match(q)
		}
		if !found {
			r.fatal("pathspec '%s' did not match any files", p)
		}
	}
	var w io.Writer = r.t.Out
	if output != "" {
		f, err := r.t.Create(output)
		if err != nil {
			r.fatal("could not create archive file '%s': %s", output, strerror(err))
		}
		defer f.Close()
		w = f
	}
	switch format {
	case "zip":
		err = a.zip(w, id)
	case "tar.gz", "tgz":
		if level < 0 {
			level = 6
		}
		z, _ := gzip.NewWriterLevel(w, level)
		if err = a.tar(z, id); err == nil {
			err = z.Close()
		}
	case "tar":
		err = a.tar(w, id)
	default:
		r.fatal("Unknown archive format '%s'", format)
	}
	r.must(err)
	return 0
}

// archiver writes a tree as an archive.
type archiver struct {
	r               *repo
	prefix, comment string
	when            time.Time
	spec            *pathspec
}

// each calls f for all entries, folders before what is in them.
func (a *archiver) each(tree oid, f func(name string, e treeEntry, data []byte) error) error {
	if strings.HasSuffix(a.prefix, "/") {
		if err := f(a.prefix, treeEntry{mode: modeTree}, nil); err != nil {
			return err
		}
	}
	var walk func(id oid, dir string, depth int) error
	walk = func(id oid, dir string, depth int) error {
		if depth > maxDepth {
			a.r.fatal("tree %s is nested too deeply", id)
		}
		for _, e := range a.r.readTree(id) {
			p := dir + e.name
			if a.r.attributes(p)["export-ignore"] == "set" {
				continue
			}
			if e.isTree() {
				if !a.spec.mayHold(p) {
					continue
				}
				if a.spec.empty() || a.spec.match(p) {
					if err := f(a.prefix+p+"/", e, nil); err != nil {
						return err
					}
				}
				if err := walk(e.id, p+"/", depth+1); err != nil {
					return err
				}
				continue
			}
			if !a.spec.match(p) {
				continue
			}
			name := a.prefix + p
			if e.mode == modeGitlink {
				name += "/"
			}
			if err := f(name, e, a.r.blobOf(e)); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(tree, "", 0)
}

func (a *archiver) tar(w io.Writer, tree oid) error {
	t := tar.NewWriter(w)
	if a.comment != "" {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": a.comment}}); err != nil {
			return err
		}
	}
	err := a.each(tree, func(name string, e treeEntry, data []byte) error {
		h := &tar.Header{Name: name, ModTime: a.when, Uname: "root", Gname: "root", Mode: 0o664, Size: int64(len(data)), Typeflag: tar.TypeReg}
		switch e.mode {
		case modeTree, modeGitlink:
			h.Mode, h.Typeflag, h.Size = 0o775, tar.TypeDir, 0
		case modeExec:
			h.Mode = 0o775
		case modeLink:
			h.Mode, h.Typeflag, h.Linkname, h.Size = 0o777, tar.TypeSymlink, string(data), 0
		}
		if err := t.WriteHeader(h); err != nil || h.Size == 0 {
			return err
		}
		_, err := t.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	return t.Close()
}

func (a *archiver) zip(w io.Writer, tree oid) error {
	z := zip.NewWriter(w)
	if err := z.SetComment(a.comment); err != nil {
		return err
	}
	err := a.each(tree, func(name string, e treeEntry, data []byte) error {
		h := &zip.FileHeader{Name: name, Modified: a.when, Method: zip.Deflate}
		switch e.mode {
		case modeTree, modeGitlink:
			h.Method = zip.Store
		case modeExec:
			h.ExternalAttrs = 0o100755 << 16
		case modeLink:
			h.ExternalAttrs, h.Method = 0o120777<<16, zip.Store
		}
		if h.ExternalAttrs != 0 {
			h.CreatorVersion = 3 << 8
		}
		f, err := z.CreateHeader(h)
		if err != nil || e.mode == modeTree {
			return err
		}
		_, err = f.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	return z.Close()
}

func (r *repo) cmdSubmodule(args []string) int {
	if len(args) == 0 || args[0] == "status" || args[0] == "init" || args[0] == "update" || args[0] == "sync" || args[0] == "foreach" {
		any := false
		for _, e := range r.index().entries {
			any = any || e.mode == modeGitlink
		}
		if !any {
			return 0
		}
	}
	r.fatal("submodules aren't supported here: clone the repository that a submodule stands for on its own")
	return 128
}
