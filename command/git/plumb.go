package git

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"sort"
	"strings"
)

func (r *repo) cmdCatFile(args []string) int {
	mode, batch, format := "", "", ""
	o := r.options("cat-file", args)
	for o.next() {
		switch o.name {
		case "-t", "-s", "-e", "-p":
			mode = o.name
		case "--batch", "--batch-check":
			batch, format = o.name, o.value
		case "--textconv", "--filters":
			mode = "-p"
		case "--allow-unknown-type", "--buffer", "--unordered", "--follow-symlinks":
		case "--batch-all-objects":
			batch = s2(batch, "--batch-check")
			o.args = append(o.args, "--all-objects")
		case "--all-objects":
			return r.catBatch(batch, format, r.allObjects())
		default:
			o.unknown()
		}
	}
	rest := o.operands()
	if batch != "" {
		b, err := io.ReadAll(io.LimitReader(r.t.Stdin(), maxSmall))
		r.must(err)
		return r.catBatch(batch, format, strings.Split(strings.TrimSuffix(string(b), "\n"), "\n"))
	}
	want := kind(0)
	if mode == "" && len(rest) == 2 {
		k, ok := parseKind(rest[0])
		if !ok {
			r.fatal("invalid object type \"%s\"", rest[0])
		}
		want, rest = k, rest[1:]
	}
	if len(rest) != 1 {
		r.die(129, "usage: git cat-file <type> <object>\n   or: git cat-file (-e | -p) <object>\n   or: git cat-file (-t | -s) [--allow-unknown-type] <object>\n")
	}
	id, err := r.rev(rest[0])
	if err != nil {
		r.fatal("Not a valid object name %s", rest[0])
	}
	if want != 0 {
		if p, err := r.peel(id, want); err == nil {
			id = p
		}
	}
	k, data, err := r.readObject(id)
	if mode == "-e" {
		if err != nil {
			return 1
		}
		return 0
	}
	if err != nil {
		if mode == "-p" {
			r.fatal("Not a valid object name %s", rest[0])
		}
		r.fatal("git cat-file: could not get object info")
	}
	switch {
	case mode == "-t":
		r.printf("%s\n", k)
	case mode == "-s":
		r.printf("%d\n", len(data))
	case want != 0 && k != want:
		r.fatal("git cat-file %s: bad file", rest[0])
	case mode == "-p" && k == treeObj:
		r.printTree(id, "", &treeOptions{})
	default:
		r.t.Out.Write(data)
	}
	return 0
}

func (r *repo) catBatch(batch, format string, names []string) int {
	if format == "" {
		format = "%(objectname) %(objecttype) %(objectsize)"
	}
	for _, name := range names {
		given, rest := name, ""
		if strings.Contains(format, "%(rest)") {
			given, rest, _ = strings.Cut(name, " ")
		}
		id, err := r.rev(given)
		var k kind
		var data []byte
		if err == nil {
			k, data, err = r.readObject(id)
		}
		if err != nil {
			if strings.Contains(err.Error(), "is ambiguous") {
				r.printf("%s ambiguous\n", given)
				continue
			}
			r.printf("%s missing\n", given)
			continue
		}
		r.printf("%s\n", strings.NewReplacer("%(objectname)", id.String(), "%(objecttype)", k.String(), "%(objectsize)", itoa(len(data)), "%(objectsize:disk)", itoa(len(data)),
			"%(deltabase)", oid{}.String(), "%(rest)", rest).Replace(format))
		if batch == "--batch" {
			r.t.Out.Write(data)
			r.printf("\n")
		}
	}
	return 0
}

// allObjects are the names of all objects, sorted.
func (r *repo) allObjects() []string {
	set := map[string]bool{}
	for _, dir := range r.objectDirs() {
		for i := range 256 {
			sub := fmt.Sprintf("%02x", i)
			list, err := r.t.ReadDir(dir + "/" + sub)
			if err != nil {
				continue
			}
			for _, e := range list {
				if len(e.Name) == 38 {
					set[sub+e.Name] = true
				}
			}
		}
	}
	r.loadPacks()
	for _, p := range r.packs {
		for i := range p.n {
			set[oid(p.name(i)).String()] = true
		}
	}
	out := make([]string, 0, len(set))
	for s := range set {
		out = append(out, s)
	}
	sort.Strings(out)
	return out
}

func (r *repo) cmdHashObject(args []string) int {
	k, write, stdin, paths := blobObj, false, false, false
	o := r.options("hash-object", args)
	for o.next() {
		switch o.name {
		case "-t":
			name := o.arg()
			var ok bool
			if k, ok = parseKind(name); !ok {
				r.fatal("invalid object type \"%s\"", name)
			}
		case "-w":
			write = true
		case "--stdin":
			stdin = true
		case "--stdin-paths":
			paths = true
		case "--no-filters", "--literally":
		case "--path":
			o.arg()
		default:
			o.unknown()
		}
	}
	if write && r.dir == "" {
		r.fatal("not a git repository (or any of the parent directories): .git")
	}
	hash := func(b []byte) {
		id := hashObject(k, b)
		if write {
			r.writeObject(k, b)
		}
		r.printf("%s\n", id)
	}
	names := o.operands()
	if stdin {
		b, err := io.ReadAll(io.LimitReader(r.t.Stdin(), maxObject))
		r.must(err)
		hash(b)
	}
	if paths {
		names = append(names, r.fileLines("-")...)
	}
	for _, f := range names {
		b, err := r.t.ReadFile(f, maxObject)
		if err != nil {
			r.fatal("could not open '%s' for reading: %s", f, strerror(err))
		}
		hash(b)
	}
	return 0
}

type treeOptions struct {
	recursive, trees, dirs, long, names, ids, zero, full, fullTree bool
	abbrev                                                         int
	format                                                         string
	paths                                                          []string
}

func (r *repo) cmdLsTree(args []string) int {
	var t treeOptions
	o := r.options("ls-tree", args)
	for o.next() {
		switch o.name {
		case "-r":
			t.recursive = true
		case "-t":
			t.trees = true
		case "-d":
			t.dirs = true
		case "-l", "--long":
			t.long = true
		case "--name-only", "--name-status":
			t.names = true
		case "--object-only":
			t.ids = true
		case "-z":
			t.zero = true
		case "--full-name":
			t.full = true
		case "--full-tree":
			t.full, t.fullTree = true, true
		case "--abbrev":
			t.abbrev = 7
			if o.has {
				t.abbrev = o.number()
			}
		case "--format":
			t.format = o.arg()
		default:
			o.unknown()
		}
	}
	rest := o.operands()
	if len(rest) == 0 {
		r.die(129, "usage: git ls-tree [<options>] <tree-ish> [<path>...]\n")
	}
	id, err := r.rev(rest[0])
	if err != nil {
		r.fatal("Not a valid object name %s", rest[0])
	}
	if id, err = r.peel(id, treeObj); err != nil {
		r.fatal("not a tree object")
	}
	prefix := r.prefix
	if t.fullTree {
		prefix = ""
	}
	for _, p := range rest[1:] {
		slash := strings.HasSuffix(p, "/")
		p = path.Clean(prefix + p)
		if slash {
			p += "/"
		}
		t.paths = append(t.paths, strings.TrimPrefix(p, "./"))
	}
	if len(t.paths) == 0 && prefix != "" {
		t.paths = []string{prefix}
	}
	r.printTree(id, "", &t)
	return 0
}

// wanted reports whether a path is shown, and whether its folder is entered.
func (t *treeOptions) wanted(p string, isTree bool) (show, enter bool) {
	if len(t.paths) == 0 {
		return true, t.recursive
	}
	for _, w := range t.paths {
		dir, slash := strings.CutSuffix(w, "/")
		switch {
		case dir == "." || dir == "":
			show, enter = true, enter || t.recursive
		case p == dir && slash && isTree:
			enter = true
		case p == dir:
			show, enter = true, enter || t.recursive
		case strings.HasPrefix(p, dir+"/"):
			show, enter = true, enter || t.recursive
		case isTree && strings.HasPrefix(dir, p+"/"):
			enter = true
		}
	}
	return show, enter
}

func (r *repo) printTree(id oid, dir string, t *treeOptions) {
	end := "\n"
	if t.zero {
		end = "\x00"
	}
	if strings.Count(dir, "/") > maxDepth {
		r.fatal("tree %s is nested too deeply", id)
	}
	for _, e := range r.readTree(id) {
		p := dir + e.name
		show, enter := t.wanted(p, e.isTree())
		if e.isTree() && enter {
			if show && (t.trees || t.dirs) {
				r.printTreeLine(&e, p, t, end)
			}
			r.printTree(e.id, p+"/", t)
			continue
		}
		if show && (!t.dirs || e.isTree() || e.mode == modeGitlink) {
			r.printTreeLine(&e, p, t, end)
		}
	}
}

func (r *repo) printTreeLine(e *treeEntry, p string, t *treeOptions, end string) {
	k := blobObj
	switch e.mode {
	case modeTree:
		k = treeObj
	case modeGitlink:
		k = commitObj
	}
	name := p
	if !t.full {
		name = r.displayRaw(p)
	}
	if !t.zero {
		name = r.quote(name)
	}
	id := e.id.String()
	if t.abbrev > 0 {
		id = r.abbrevN(e.id, t.abbrev)
	}
	size := "-"
	if (t.long || strings.Contains(t.format, "objectsize")) && k == blobObj {
		size = itoa(len(r.read(e.id, blobObj)))
	}
	switch {
	case t.format != "":
		f := strings.NewReplacer("%(objectmode)", fmt.Sprintf("%06o", e.mode), "%(objecttype)", k.String(), "%(objectname)", id, "%(path)", name,
			"%(objectsize)", size, "%(objectsize:padded)", fmt.Sprintf("%7s", size), "%x09", "\t", "%n", "\n", "%%", "%")
		r.printf("%s%s", f.Replace(t.format), end)
	case t.names:
		r.printf("%s%s", name, end)
	case t.ids:
		r.printf("%s%s", id, end)
	case t.long:
		r.printf("%06o %s %s %7s\t%s%s", e.mode, k, id, size, name, end)
	default:
		r.printf("%06o %s %s\t%s%s", e.mode, k, id, name, end)
	}
}

func (r *repo) cmdLsFiles(args []string) int {
	var cached, deleted, modifiedOnly, others, ignored, stage, unmerged, zero, full, errUnmatch, directory, tags, killed, eol bool
	standard, debug := false, false
	abbrev := 0
	var exclude []string
	o := r.options("ls-files", args)
	for o.next() {
		switch o.name {
		case "-c", "--cached":
			cached = true
		case "-d", "--deleted":
			deleted = true
		case "-m", "--modified":
			modifiedOnly = true
		case "-o", "--others":
			others = true
		case "-i", "--ignored":
			ignored = true
		case "-s", "--stage":
			stage = true
		case "-u", "--unmerged":
			unmerged, stage = true, true
		case "-z":
			zero = true
		case "-k", "--killed":
			killed = true
		case "-t", "-v", "-f":
			tags = true
		case "--full-name":
			full = true
		case "--error-unmatch":
			errUnmatch = true
		case "--directory":
			directory = true
		case "--exclude-standard":
			standard = true
		case "-x", "--exclude":
			exclude = append(exclude, o.arg())
		case "--exclude-per-directory", "-X", "--exclude-from":
			if f := o.arg(); o.name != "--exclude-per-directory" {
				exclude = append(exclude, r.fileLines(f)...)
			} else {
				standard = true
			}
		case "--abbrev":
			if abbrev = 7; o.has {
				abbrev = o.number()
			}
		case "--eol":
			eol = true
		case "--debug":
			debug = true
		case "--no-empty-directory", "--deduplicate", "--sparse", "--recurse-submodules":
		default:
			o.unknown()
		}
	}
	_, _, _ = killed, eol, debug
	r.needTree()
	paths := o.operands()
	spec := r.pathspec(paths)
	if spec.empty() && r.prefix != "" {
		spec.items = append(spec.items, specItem{path: strings.TrimSuffix(r.prefix, "/")})
	}
	if errUnmatch {
		bad := false
		for i := range spec.items {
			if !r.anyTracked(&pathspec{items: spec.items[i : i+1]}) && i < len(paths) {
				r.say("error: pathspec '%s' did not match any file(s) known to git", paths[i])
				bad = true
			}
		}
		if bad {
			r.say("Did you forget to 'git add'?")
			return 1
		}
	}
	end := "\n"
	if zero {
		end = "\x00"
	}
	name := func(p string) string {
		if !full {
			p = r.displayRaw(p)
		}
		if zero {
			return p
		}
		return r.quote(p)
	}
	tag := func(c string) string {
		if tags {
			return c + " "
		}
		return ""
	}
	rules := parseIgnore(strings.Join(exclude, "\n"), "", "")
	excluded := func(p string, dir bool) bool {
		for i := len(rules) - 1; i >= 0; i-- {
			if rules[i].match(p, dir) {
				return !rules[i].negated
			}
		}
		if !standard {
			return false
		}
		_, ig := r.ignored(p, dir)
		return ig
	}
	if others {
		if !standard {
			r.noIgnore = true
		}
		list, ign := r.untracked(!directory, true, spec.match)
		if ignored {
			list = ign
			if !directory {
				list = r.expandIgnored(ign, spec)
			}
		}
		for _, p := range list {
			base, isDir := strings.CutSuffix(p, "/")
			if excluded(base, isDir) == ignored {
				r.printf("%s%s%s", tag("?"), name(p), end)
			}
		}
	}
	if !deleted && !modifiedOnly && !others || cached || stage {
		for _, e := range r.index().entries {
			if !spec.match(e.path) || unmerged && e.stage() == 0 || ignored && !excluded(e.path, false) {
				continue
			}
			mark := "H"
			if e.stage() > 0 {
				mark = "M"
			} else if e.flags2&0x4000 != 0 {
				mark = "S"
			}
			if stage {
				id := e.id.String()
				if abbrev > 0 {
					id = r.abbrevN(e.id, abbrev)
				}
				r.printf("%s%06o %s %d\t%s%s", tag(mark), e.mode, id, e.stage(), name(e.path), end)
			} else {
				r.printf("%s%s%s", tag(mark), name(e.path), end)
			}
		}
	}
	if deleted || modifiedOnly {
		for _, c := range r.workChanges(spec.match) {
			if c.status == 'D' && deleted {
				r.printf("%s%s%s", tag("R"), name(c.path()), end)
			}
			if modifiedOnly {
				r.printf("%s%s%s", tag("C"), name(c.path()), end)
			}
		}
	}
	return 0
}

func (r *repo) cmdShowRef(args []string) int {
	var heads, tags, headToo, verify, deref, quiet, hashOnly bool
	n := 40
	o := r.options("show-ref", args)
	for o.next() {
		switch o.name {
		case "--heads", "--branches":
			heads = true
		case "--tags":
			tags = true
		case "--head":
			headToo = true
		case "--verify":
			verify = true
		case "-d", "--dereference":
			deref = true
		case "-q", "--quiet":
			quiet = true
		case "-s", "--hash":
			hashOnly = true
			if v := o.optional(); v != "" {
				fmt.Sscan(v, &n)
			}
		case "--abbrev":
			if n = 7; o.has {
				n = o.number()
			}
		default:
			o.unknown()
		}
	}
	show := func(name string, id oid) {
		if quiet {
			return
		}
		line := func(id oid, name string) {
			if hashOnly {
				r.printf("%s\n", r.abbrevN(id, n))
			} else {
				r.printf("%s %s\n", r.abbrevN(id, n), name)
			}
		}
		line(id, name)
		if deref {
			if k, _, err := r.readObject(id); err == nil && k == tagObj {
				if p, err := r.peel(id, 0); err == nil {
					line(p, name+"^{}")
				}
			}
		}
	}
	patterns := o.operands()
	if verify {
		for _, p := range patterns {
			_, id, ok := r.resolveRef(p)
			if !ok || !strings.HasPrefix(p, "refs/") && p != "HEAD" {
				if quiet {
					return 1
				}
				r.fatal("'%s' - not a valid ref", p)
			}
			show(p, id)
		}
		return 0
	}
	status := 1
	if headToo {
		if _, id := r.head(); !id.isZero() {
			status = 0
			show("HEAD", id)
		}
	}
	for _, f := range r.refs("refs/") {
		if (heads || tags) && !(heads && strings.HasPrefix(f.name, "refs/heads/")) && !(tags && strings.HasPrefix(f.name, "refs/tags/")) {
			continue
		}
		ok := len(patterns) == 0
		for _, p := range patterns {
			ok = ok || f.name == p || strings.HasSuffix(f.name, "/"+p)
		}
		if ok {
			status = 0
			show(f.name, f.id)
		}
	}
	return status
}

func (r *repo) cmdSymbolicRef(args []string) int {
	var del, short, quiet bool
	message := ""
	o := r.options("symbolic-ref", args)
	for o.next() {
		switch o.name {
		case "-d", "--delete":
			del = true
		case "--short":
			short = true
		case "-q", "--quiet":
			quiet = true
		case "-m":
			message = o.arg()
		case "--recurse", "--no-recurse":
		default:
			o.unknown()
		}
	}
	rest := o.operands()
	if len(rest) == 0 || len(rest) > 2 {
		r.die(129, "usage: git symbolic-ref [-m <reason>] <name> <ref>\n   or: git symbolic-ref [-q] [--short] [--no-recurse] <name>\n   or: git symbolic-ref --delete [-q] <name>\n")
	}
	name := rest[0]
	target, _, _ := r.readRef(name)
	switch {
	case del:
		if target == "" {
			r.fatal("Cannot delete %s, not a symbolic ref", name)
		}
		r.deleteRef(name)
	case len(rest) == 2:
		if name == "HEAD" && !strings.HasPrefix(rest[1], "refs/") {
			r.fatal("Refusing to point HEAD outside of refs/")
		}
		if !validRef(rest[1]) {
			r.fatal("Refusing to set '%s' to invalid ref '%s'", name, rest[1])
		}
		if name == "HEAD" {
			_, old := r.head()
			r.setHead(rest[1], oid{}, "")
			if _, id, ok := r.resolveRef(rest[1]); ok && message != "" {
				r.logRef("HEAD", old, id, message)
			}
			return 0
		}
		if !validRef(name) {
			r.fatal("invalid reference name '%s'", name)
		}
		r.mkdirAll(path.Dir(r.gitFile(name)))
		r.must(r.writeFile(r.gitFile(name), []byte("ref: "+rest[1]+"\n"), 0o666))
	case target == "":
		if quiet {
			return 1
		}
		r.fatal("ref %s is not a symbolic ref", name)
	case short:
		r.printf("%s\n", shortRef(target))
	default:
		r.printf("%s\n", target)
	}
	return 0
}

func (r *repo) cmdUpdateRef(args []string) int {
	var del, noDeref, stdin bool
	message := ""
	o := r.options("update-ref", args)
	for o.next() {
		switch o.name {
		case "-d":
			del = true
		case "--no-deref":
			noDeref = true
		case "--stdin":
			stdin = true
		case "-m":
			message = o.arg()
		case "--create-reflog", "-z":
		default:
			o.unknown()
		}
	}
	rest := o.operands()
	if stdin {
		for _, line := range r.fileLines("-") {
			f := strings.Fields(line)
			if len(f) == 0 {
				continue
			}
			switch {
			case f[0] == "delete" && len(f) >= 2:
				r.changeRef(true, noDeref, message, append([]string{f[1]}, f[2:]...))
			case (f[0] == "update" || f[0] == "create") && len(f) >= 3:
				if f[0] == "create" {
					f = append(f, oid{}.String())
				}
				r.changeRef(false, noDeref, message, f[1:])
			case f[0] == "start" || f[0] == "prepare" || f[0] == "commit" || f[0] == "verify" || f[0] == "option":
			default:
				r.fatal("unknown command: %s", line)
			}
		}
		return 0
	}
	if len(rest) == 0 || !del && len(rest) < 2 {
		r.die(129, "usage: git update-ref [<options>] -d <refname> [<old-val>]\n   or: git update-ref [<options>]    <refname> <new-val> [<old-val>]\n   or: git update-ref [<options>] --stdin [-z]\n")
	}
	return r.changeRef(del, noDeref, message, rest)
}

// changeRef sets or deletes a reference if it has the value that is expected.
func (r *repo) changeRef(del, noDeref bool, message string, rest []string) int {
	name := rest[0]
	if !validRef(name) || !strings.HasPrefix(name, "refs/") && strings.ToUpper(name) != name {
		r.fatal("%s: cannot update ref '%s': refusing to update ref with bad name '%s'", "update_ref failed for ref '"+name+"'", name, name)
	}
	full := name
	if !noDeref {
		full, _, _ = r.resolveRef(name)
	}
	_, cur, _ := r.readRef(full)
	check := func(s string) {
		want := oid{}
		if s != "" {
			var err error
			if want, err = r.rev(s); err != nil {
				if v, ok := parseOID(s); ok {
					want = v
				} else {
					r.fatal("%s: not a valid SHA1", s)
				}
			}
		}
		if want != cur {
			verb := fmt.Sprintf("is at %s but expected %s", cur, want)
			switch {
			case want.isZero():
				verb = "reference already exists"
				r.fatal("update_ref failed for ref '%s': cannot lock ref '%s': %s", name, name, verb)
			case cur.isZero():
				r.fatal("update_ref failed for ref '%s': cannot lock ref '%s': unable to resolve reference '%s'", name, name, name)
			}
			r.fatal("update_ref failed for ref '%s': cannot lock ref '%s': %s", name, name, verb)
		}
	}
	if del {
		if len(rest) > 1 {
			check(rest[1])
		}
		r.deleteRef(full)
		return 0
	}
	if len(rest) > 2 {
		check(rest[2])
	}
	id, err := r.rev(rest[1])
	if err != nil {
		r.fatal("%s: not a valid SHA1", rest[1])
	}
	if k, _, err := r.readObject(id); err != nil || strings.HasPrefix(full, "refs/heads/") && k != commitObj {
		r.fatal("update_ref failed for ref '%s': cannot update ref '%s': trying to write ref '%s' with nonexistent object %s", name, name, name, id)
	}
	r.checkRefSpace(full)
	if noDeref && full == "HEAD" {
		r.setHead("", id, message)
		return 0
	}
	r.updateRef(full, id, message)
	return 0
}

func (r *repo) cmdMergeBase(args []string) int {
	var all, ancestor, octopus, independent, fork bool
	o := r.options("merge-base", args)
	for o.next() {
		switch o.name {
		case "-a", "--all":
			all = true
		case "--is-ancestor":
			ancestor = true
		case "--octopus":
			octopus = true
		case "--independent":
			independent = true
		case "--fork-point":
			fork = true
		default:
			o.unknown()
		}
	}
	var ids []oid
	for _, a := range o.operands() {
		id, err := r.commitOf(a)
		if err != nil {
			r.fatal("Not a valid object name %s", a)
		}
		ids = append(ids, id)
	}
	if len(ids) < 2 && !independent && !(fork && len(ids) == 1) {
		r.die(129, "usage: git merge-base [-a | --all] <commit> <commit>...\n")
	}
	if fork && len(ids) == 1 {
		_, h := r.head()
		ids = append(ids, h)
	}
	var out []oid
	switch {
	case ancestor:
		if r.isAncestor(ids[0], ids[1]) {
			return 0
		}
		return 1
	case independent:
		out = r.independent(ids)
		all = true
	case octopus:
		out = []oid{ids[0]}
		for _, id := range ids[1:] {
			var next []oid
			for _, b := range out {
				next = append(next, r.mergeBases(b, id)...)
			}
			out = r.independent(next)
		}
	default:
		out = r.mergeBasesMany(ids[0], ids[1:])
	}
	if len(out) == 0 {
		return 1
	}
	for _, id := range out {
		r.printf("%s\n", id)
		if !all {
			break
		}
	}
	return 0
}

func (r *repo) cmdWriteTree(args []string) int {
	if r.index().unmerged() {
		for _, e := range r.index().entries {
			if e.stage() > 0 {
				r.say("%s: unmerged (%s)", e.path, e.id)
			}
		}
		r.fatal("git-write-tree: error building trees")
	}
	r.printf("%s\n", r.treeFromIndex())
	return 0
}

func (r *repo) cmdCommitTree(args []string) int {
	c := &commit{}
	var messages []string
	o := r.options("commit-tree", args)
	for o.next() {
		switch o.name {
		case "-p":
			c.parents = append(c.parents, r.commitRev(o.arg()))
		case "-m":
			messages = append(messages, o.arg()+"\n")
		case "-F":
			b, err := r.t.ReadFile(o.arg(), maxSmall)
			r.must(err)
			messages = append(messages, string(b))
		case "--no-gpg-sign":
		default:
			o.unknown()
		}
	}
	rest := o.operands()
	if len(rest) != 1 {
		r.die(129, "usage: git commit-tree <tree> [(-p <parent>)...]\n")
	}
	c.tree = r.treeRev(rest[0])
	if messages == nil {
		b, err := io.ReadAll(io.LimitReader(r.t.Stdin(), maxSmall))
		r.must(err)
		messages = []string{string(b)}
	}
	c.message = strings.Join(messages, "\n")
	c.author, c.committer = r.who("AUTHOR"), r.who("COMMITTER")
	r.printf("%s\n", r.writeObject(commitObj, c.encode()))
	return 0
}

func (r *repo) cmdMktag(args []string) int {
	b, err := io.ReadAll(io.LimitReader(r.t.Stdin(), maxSmall))
	r.must(err)
	if _, err := parseTag(b); err != nil || !bytes.HasPrefix(b, []byte("object ")) {
		r.fatal("tag on stdin did not pass our strict fsck check")
	}
	r.printf("%s\n", r.writeObject(tagObj, b))
	return 0
}

func (r *repo) cmdMktree(args []string) int {
	var tree []treeEntry
	for _, line := range r.fileLines("-") {
		meta, name, ok := strings.Cut(line, "\t")
		f := strings.Fields(meta)
		if !ok || len(f) != 3 {
			if line == "" {
				continue
			}
			r.fatal("input format error: %s", line)
		}
		e := treeEntry{name: name}
		fmt.Sscanf(f[0], "%o", &e.mode)
		if e.id, ok = parseOID(f[2]); !ok {
			r.fatal("input format error: %s", line)
		}
		tree = append(tree, e)
	}
	sortTree(tree)
	r.printf("%s\n", r.writeObject(treeObj, encodeTree(tree)))
	return 0
}

func (r *repo) cmdReadTree(args []string) int {
	var merge, reset, update, empty bool
	prefix := ""
	o := r.options("read-tree", args)
	for o.next() {
		switch o.name {
		case "-m":
			merge = true
		case "--reset":
			reset = true
		case "-u":
			update = true
		case "--empty":
			empty = true
		case "--prefix":
			prefix = strings.TrimSuffix(o.arg(), "/") + "/"
		case "-i", "-v", "-n", "-q", "--aggressive", "--trivial", "--dry-run":
		default:
			o.unknown()
		}
	}
	rest := o.operands()
	switch {
	case empty:
		r.index().entries, r.index().changed = nil, true
	case len(rest) != 1:
		r.fatal("read-tree of %d trees isn't done here: use merge", len(rest))
	case prefix != "":
		for p, e := range r.flatten(r.treeRev(rest[0])) {
			if r.index().find(prefix+p) != nil {
				r.die(128, "error: Entry '%s' overlaps with '%s'.  Cannot bind.", prefix+p, prefix+p)
			}
			r.index().put(entry{mode: e.mode, id: e.id, path: prefix + p})
		}
	case update && reset:
		r.resetHard(r.treeRev(rest[0]))
	case update && merge:
		from, to := r.flatIndex(), r.flatten(r.treeRev(rest[0]))
		r.refuse(from, to, "checkout")
		r.goTo(from, to)
	default:
		r.resetIndex(r.treeRev(rest[0]), nil)
	}
	r.writeIndex()
	return 0
}

func (r *repo) cmdCheckIgnore(args []string) int {
	var verbose, quiet, stdin, noIndex, nonMatching, zero bool
	o := r.options("check-ignore", args)
	for o.next() {
		switch o.name {
		case "-v", "--verbose":
			verbose = true
		case "-q", "--quiet":
			quiet = true
		case "--stdin":
			stdin = true
		case "--no-index":
			noIndex = true
		case "-n", "--non-matching":
			nonMatching = true
		case "-z":
			zero = true
		default:
			o.unknown()
		}
	}
	r.needTree()
	paths := o.operands()
	if stdin {
		paths = r.fileLines("-")
	}
	if len(paths) == 0 {
		r.fatal("no path specified")
	}
	_ = zero
	status := 1
	for _, p := range paths {
		rel, ok := r.relative(p)
		if !ok {
			r.fatal("%s: '%s' is outside repository at '%s'", p, p, r.root)
		}
		a, err := r.t.Lstat(p)
		dir := err == nil && a.Mode.IsDir() || strings.HasSuffix(p, "/")
		g, ig := r.ignored(rel, dir)
		if !noIndex && r.anyTracked(&pathspec{items: []specItem{{path: rel}}}) {
			g, ig = nil, false
		}
		switch {
		case g != nil && (ig || verbose):
			status = 0
			if quiet {
				continue
			}
			if verbose {
				r.printf("%s:%d:%s\t%s\n", g.source, g.line, g.text, p)
			} else {
				r.printf("%s\n", r.quote(p))
			}
		case nonMatching && verbose:
			r.printf("::\t%s\n", r.quote(p))
		}
	}
	return status
}

func (r *repo) cmdCheckAttr(args []string) int {
	all := false
	o := r.options("check-attr", args)
	for o.next() {
		switch o.name {
		case "-a", "--all":
			all = true
		default:
			o.unknown()
		}
	}
	names, paths := o.rest, o.after
	if !o.dash && !all && len(names) > 1 {
		names, paths = names[:1], names[1:]
	} else if all {
		paths = append(names, paths...)
		names = nil
	}
	for _, p := range paths {
		rel, _ := r.relative(p)
		set := r.attributes(rel)
		list := names
		if all {
			for n := range set {
				list = append(list, n)
			}
			sort.Strings(list)
		}
		for _, n := range list {
			r.printf("%s: %s: %s\n", r.quote(p), n, s2(set[n], "unspecified"))
		}
	}
	return 0
}

func (r *repo) cmdVar(args []string) int {
	if len(args) != 1 {
		r.die(129, "usage: git var (-l | <variable>)")
	}
	switch args[0] {
	case "GIT_AUTHOR_IDENT":
		r.printf("%s\n", r.who("AUTHOR"))
	case "GIT_COMMITTER_IDENT":
		r.printf("%s\n", r.who("COMMITTER"))
	case "GIT_EDITOR":
		e := r.editor(false)
		if e == "" {
			r.fatal("Terminal is dumb, but EDITOR unset")
		}
		r.printf("%s\n", e)
	case "GIT_PAGER":
		r.printf("%s\n", s2(r.t.Getenv("GIT_PAGER"), s2(r.t.Getenv("PAGER"), "less")))
	case "GIT_DEFAULT_BRANCH":
		r.printf("%s\n", r.defaultBranch(true))
	case "-l":
		for _, s := range r.config().list {
			r.printf("%s=%s\n", s.key, s.value)
		}
		r.printf("GIT_COMMITTER_IDENT=%s\nGIT_AUTHOR_IDENT=%s\n", r.who("COMMITTER"), r.who("AUTHOR"))
	default:
		r.die(1, "usage: git var (-l | <variable>)")
	}
	return 0
}
