package git

import (
	"errors"
	"path"
	"sort"
	"strings"
	"syscall"

	"agentrun.dev/vfs"
)

// workData returns a file of the work tree as a blob would hold it.
func (r *repo) workData(p string, a vfs.Attr) ([]byte, error) {
	if a.Mode.IsSymlink() {
		s, err := r.t.Readlink(r.file(p))
		return []byte(s), err
	}
	r.need(2*cacheLimit + 2*a.Size)
	b, err := r.t.ReadFile(r.file(p), maxObject)
	if err != nil {
		return nil, err
	}
	return r.toBlob(p, b), nil
}

// sameStat reports whether a file is surely as it was when it was put into the index.
func (x *index) sameStat(e *entry, a vfs.Attr) bool {
	return e.size == uint32(a.Size) && e.mtime == stamp(a.Mtime) && e.ino == uint32(a.Ino) && e.ctime == stamp(a.Ctime) && e.mtime < x.mtime
}

// hiddenByLink reports whether a folder on the way to a path is a symbolic link or no folder, so that the path isn't in
// the work tree.
func (r *repo) hiddenByLink(p string) bool {
	for i := 0; i < len(p); i++ {
		if p[i] == '/' {
			if a, err := r.t.Lstat(r.file(p[:i])); err != nil || !a.Mode.IsDir() {
				return true
			}
		}
	}
	return false
}

// workChange compares an entry with its file; ok is false if they are the same.
func (r *repo) workChange(e *entry) (c change, ok bool) {
	r.step(1)
	old := treeEntry{e.mode, e.path, e.id}
	if e.skip() {
		return c, false
	}
	a, err := r.t.Lstat(r.file(e.path))
	if err != nil || r.hiddenByLink(e.path) || a.Mode.IsDir() && e.mode != modeGitlink {
		return change{status: 'D', old: old}, true
	}
	if e.mode == modeGitlink {
		return c, false // what is in a submodule isn't looked at
	}
	mode := r.fileMode(a, e.mode)
	if mode == e.mode && !e.intent() && r.index().sameStat(e, a) {
		return c, false
	}
	c = change{status: 'M', old: old, new: treeEntry{mode: mode, name: e.path}}
	if e.intent() {
		c.status, c.old = 'A', treeEntry{}
	}
	data, err := r.workData(e.path, a)
	if err != nil {
		r.say("error: open(\"%s\"): %s", e.path, strerror(err))
		r.fatal("cannot hash %s", e.path)
	}
	c.new.id = hashObject(blobObj, data)
	if mode == e.mode && c.new.id == e.id && !e.intent() {
		// Only the time changed: remember, so that the file needn't be read again.
		statEntry(e, a)
		r.index().changed = true
		return c, false
	}
	c.data[1] = content{true, data}
	if c.status == 'M' {
		c.status = modified(e.mode, mode)
	}
	return c, true
}

// workChanges lists the differences between the index and the work tree. Unmerged paths come as 'U'.
func (r *repo) workChanges(match func(string) bool) (list []change) {
	x := r.index()
	for i := range x.entries {
		e := &x.entries[i]
		if match != nil && !match(e.path) {
			continue
		}
		if e.stage() != 0 {
			if n := len(list); n == 0 || list[n-1].status != 'U' || list[n-1].new.name != e.path {
				list = append(list, change{status: 'U', new: treeEntry{mode: e.mode, name: e.path}})
			}
			continue
		}
		if c, ok := r.workChange(e); ok {
			list = append(list, c)
		}
	}
	return list
}

// untracked lists what the index doesn't know. all lists files instead of whole folders; with ignored, ignored ones are
// collected in the second list.
func (r *repo) untracked(all, ignored bool, match func(string) bool) (list, ign []string) {
	x := r.index()
	tracked := make(map[string]bool, len(x.entries))
	dirs := make(map[string]bool)
	for i := range x.entries {
		p := x.entries[i].path
		tracked[p] = true
		for j := strings.LastIndexByte(p, '/'); j > 0 && !dirs[p[:j]]; j = strings.LastIndexByte(p[:j], '/') {
			dirs[p[:j]] = true
		}
	}
	u := untracking{r: r, tracked: tracked, dirs: dirs, all: all, ignored: ignored, match: match}
	u.walk("", 0)
	sort.Strings(u.list)
	sort.Strings(u.ign)
	return u.list, u.ign
}

type untracking struct {
	r             *repo
	tracked, dirs map[string]bool
	all, ignored  bool
	match         func(string) bool
	list, ign     []string
}

func (u *untracking) walk(dir string, depth int) {
	if depth > maxDepth {
		return
	}
	entries, err := u.r.t.ReadDir(u.r.file(dir))
	if err != nil {
		if dir != "" {
			u.r.say("warning: could not open directory '%s': %s", dir, strerror(err))
		}
		return
	}
	for _, e := range entries {
		u.r.step(1)
		p := dir + e.Name
		if strings.EqualFold(e.Name, ".git") || u.tracked[p] {
			continue
		}
		isDir := e.Mode.IsDir()
		if !isDir && !e.Mode.IsRegular() && !e.Mode.IsSymlink() {
			continue
		}
		if isDir && u.dirs[p] {
			u.walk(p+"/", depth+1)
			continue
		}
		shown := p
		if isDir {
			shown += "/"
		}
		if _, ig := u.r.ignoredHere(p, isDir); ig {
			if u.ignored && (u.match == nil || u.match(shown)) {
				u.ign = append(u.ign, shown)
			}
			continue
		}
		switch {
		case !isDir:
			if u.match == nil || u.match(p) {
				u.list = append(u.list, p)
			}
		case u.nested(p):
			if u.match == nil || u.match(shown) {
				u.list = append(u.list, shown)
			}
		case u.all:
			u.walk(p+"/", depth+1)
		default:
			u.folder(shown, depth)
		}
	}
}

// nested reports whether a folder is a repository of its own.
func (u *untracking) nested(p string) bool { return u.r.dotGit(u.r.file(p)+"/.git") != "" }

// folder adds a folder without tracked files as one, if it holds anything to track. What is ignored in it is collected.
func (u *untracking) folder(dir string, depth int) {
	sub := *u
	sub.all, sub.list, sub.ign = true, nil, nil
	sub.walk(dir, depth+1)
	if len(sub.list) > 0 {
		whole := true
		if u.match != nil && !u.match(dir) {
			whole = false
			u.list = append(u.list, sub.list...)
		}
		if whole {
			u.list = append(u.list, dir)
		}
		u.ign = append(u.ign, sub.ign...)
	} else if len(sub.ign) > 0 {
		u.ign = append(u.ign, dir)
	}
}

// clearWay makes the folders for a path, removing what isn't one but is tracked as a file, or is a link.
func (r *repo) clearWay(p string) error {
	for i := 0; i < len(p); i++ {
		if p[i] != '/' {
			continue
		}
		dir := r.file(p[:i])
		a, err := r.t.Lstat(dir)
		if err == nil && !a.Mode.IsDir() {
			if err = r.t.Unlink(dir); err != nil {
				return err
			}
			a.Mode = 0
		}
		if !a.Mode.IsDir() {
			if err := r.t.Mkdir(dir, 0o777); err != nil && !errors.Is(err, syscall.EEXIST) {
				return err
			}
		}
	}
	return nil
}

// writeWork writes a file of the work tree. An empty folder in its place gives way.
func (r *repo) writeWork(p string, mode uint32, data []byte) (a vfs.Attr, err error) {
	if !safePath(p) || mode == modeLink && strings.EqualFold(path.Base(p), ".gitmodules") {
		r.fatal("invalid path '%s'", p)
	}
	r.step(1 + len(data)>>16)
	if err = r.clearWay(p); err != nil {
		return a, err
	}
	name := r.file(p)
	if a, err := r.t.Lstat(name); err == nil {
		if a.Mode.IsDir() {
			if mode == modeGitlink {
				return a, nil
			}
			r.removeEmpty(name)
		} else {
			r.t.Unlink(name)
		}
	}
	switch mode {
	case modeGitlink:
		err = r.t.Mkdir(name, 0o777)
	case modeLink:
		if len(data) > 4095 || len(data) == 0 {
			return a, syscall.ENAMETOOLONG
		}
		err = r.t.Symlink(string(data), name)
	default:
		perm := vfs.Mode(0o666)
		if mode == modeExec {
			perm = 0o777
		}
		data = r.toWork(p, data)
		var f vfs.File
		f, err = r.t.Process.Open(name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_NOFOLLOW, perm)
		if err != nil {
			return a, err
		}
		_, err = f.Write(data)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		return a, err
	}
	return r.t.Lstat(name)
}

// removeEmpty removes a folder that holds only empty folders.
func (r *repo) removeEmpty(dir string) {
	list, err := r.t.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range list {
		if e.Mode.IsDir() {
			r.removeEmpty(dir + "/" + e.Name)
		}
	}
	r.t.Rmdir(dir)
}

// removeWork removes a file of the work tree, and the folders that it leaves empty.
func (r *repo) removeWork(p string) {
	if !safePath(p) || r.hiddenByLink(p) {
		return
	}
	name := r.file(p)
	if a, err := r.t.Lstat(name); err != nil || a.Mode.IsDir() && r.t.Rmdir(name) != nil {
		return
	} else if !a.Mode.IsDir() && r.t.Unlink(name) != nil {
		return
	}
	wd := r.t.Getwd()
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if full := r.file(dir); full == wd || r.t.Rmdir(full) != nil {
			return
		}
	}
}

// checkOut writes a blob into the work tree and its entry into the index.
func (r *repo) checkOut(e treeEntry) {
	var data []byte
	if e.mode != modeGitlink {
		data = r.read(e.id, blobObj)
	}
	a, err := r.writeWork(e.name, e.mode, data)
	if err != nil {
		r.say("error: unable to create file %s: %s", e.name, strerror(err))
		return
	}
	n := entry{mode: e.mode, id: e.id, path: e.name}
	statEntry(&n, a)
	r.index().put(n)
}

// conflictsOf lists what would be lost if the work tree went from one list of files to another: changed files, and
// untracked ones in the way.
func (r *repo) conflictsOf(from, to flat) (changed, inWay []string) {
	x := r.index()
	for _, c := range compareFlat(from, to) {
		p := c.path()
		e := x.find(p)
		if e == nil {
			if i, _ := x.search(p, 0); i < len(x.entries) && x.entries[i].path == p {
				changed = append(changed, p)
			} else if c.new.mode != 0 {
				if a, err := r.t.Lstat(r.file(p)); err == nil && !r.hiddenByLink(p) {
					if r.untrackedDiffers(c.new, a) {
						inWay = append(inWay, p)
					}
				}
			}
			continue
		}
		if c.new.mode != 0 && e.id == c.new.id && e.mode == c.new.mode {
			continue // is there already
		}
		if c.old.mode == 0 || e.id != c.old.id || e.mode != c.old.mode {
			changed = append(changed, p)
			continue
		}
		if w, differs := r.workChange(e); differs && !(w.status == 'D') {
			changed = append(changed, p)
		}
	}
	return changed, inWay
}

// untrackedDiffers reports whether a file that isn't tracked would be lost: it isn't ignored and not the same.
func (r *repo) untrackedDiffers(want treeEntry, a vfs.Attr) bool {
	if a.Mode.IsDir() {
		list, _ := r.untrackedIn(want.name)
		return len(list) > 0
	}
	if _, ig := r.ignored(want.name, false); ig {
		return false
	}
	data, err := r.workData(want.name, a)
	return err != nil || hashObject(blobObj, data) != want.id || r.fileMode(a, 0) != want.mode
}

func (r *repo) untrackedIn(dir string) ([]string, []string) {
	return r.untracked(true, false, func(p string) bool { return strings.HasPrefix(p, dir+"/") })
}

// refuse ends the command if going from one list of files to another would lose something.
func (r *repo) refuse(from, to flat, verb string) {
	changed, inWay := r.conflictsOf(from, to)
	if len(changed)+len(inWay) > 0 {
		r.refusal(changed, inWay, verb)
		r.t.Exit(1)
	}
}

// refusal says what would be lost.
func (r *repo) refusal(changed, inWay []string, verb string) {
	what := map[string]string{"checkout": "switch branches", "merge": "merge", "reset": "reset", "rebase": "rebase", "cherry-pick": "cherry-pick", "revert": "revert"}[verb]
	if verb == "cherry-pick" || verb == "revert" {
		verb = "merge"
		what = "merge"
	}
	if len(changed) > 0 {
		r.say("error: Your local changes to the following files would be overwritten by %s:\n\t%s\nPlease commit your changes or stash them before you %s.",
			verb, strings.Join(changed, "\n\t"), what)
	}
	if len(inWay) > 0 {
		r.say("error: The following untracked working tree files would be overwritten by %s:\n\t%s\nPlease move or remove them before you %s.",
			verb, strings.Join(inWay, "\n\t"), what)
	}
	r.say("Aborting")
}

// goTo changes index and work tree from one list of files to another, leaving alone what they share.
func (r *repo) goTo(from, to flat) {
	x := r.index()
	changes := compareFlat(from, to)
	for _, c := range changes {
		if c.new.mode == 0 {
			x.remove(c.old.name)
			r.removeWork(c.old.name)
		}
	}
	for _, c := range changes {
		if c.new.mode != 0 {
			if e := x.find(c.new.name); e != nil && e.id == c.new.id && e.mode == c.new.mode {
				if _, differs := r.workChange(e); !differs {
					continue
				}
				if c.old.mode != 0 {
					continue // a staged or local change that agrees with the target
				}
			}
			r.checkOut(c.new)
		}
	}
}

// resetHard makes index and work tree what a tree has, whatever was there.
func (r *repo) resetHard(tree oid) {
	to := r.flatten(tree)
	x := r.index()
	old := append([]entry(nil), x.entries...)
	kept := map[string]*entry{}
	for i := range old {
		e := &old[i]
		if want, ok := to[e.path]; !ok {
			r.removeWork(e.path)
		} else if e.stage() == 0 && want.id == e.id && want.mode == e.mode {
			if _, differs := r.workChange(e); !differs {
				kept[e.path] = e
			}
		}
	}
	x.entries, x.changed = nil, true
	for _, p := range to.paths() {
		if e := kept[p]; e != nil {
			x.entries = append(x.entries, *e)
		}
	}
	for _, p := range to.paths() {
		if kept[p] == nil {
			r.checkOut(to[p])
		}
	}
}

// resetIndex makes the index what a tree has, keeping what is known about files.
func (r *repo) resetIndex(tree oid, match func(string) bool) {
	to := r.flatten(tree)
	x := r.index()
	var out []entry
	seen := map[string]bool{}
	for i := range x.entries {
		e := x.entries[i]
		if match != nil && !match(e.path) {
			out = append(out, e)
			continue
		}
		want, ok := to[e.path]
		if !ok || seen[e.path] {
			continue
		}
		seen[e.path] = true
		if e.stage() != 0 || want.id != e.id || want.mode != e.mode {
			e = entry{mode: want.mode, id: want.id, path: e.path}
		}
		out = append(out, e)
	}
	for p, want := range to {
		if !seen[p] && (match == nil || match(p)) {
			out = append(out, entry{mode: want.mode, id: want.id, path: p})
		}
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].path != out[j].path {
			return out[i].path < out[j].path
		}
		return out[i].stage() < out[j].stage()
	})
	x.entries, x.changed = out, true
}

// pathspec matches paths against arguments: files, folders, patterns; ":(exclude)x", ":!x" and ":^x" take away, ":/x" is
// from the root. No arguments match everything.
type pathspec struct {
	items []specItem
	raw   []string
}

type specItem struct {
	path    string
	glob    bool
	exclude bool
	fold    bool
}

func (r *repo) pathspec(args []string) *pathspec {
	s := &pathspec{raw: args}
	for _, a := range args {
		it := specItem{}
		literal := false
		top := false
		if strings.HasPrefix(a, ":(") {
			magic, rest, ok := strings.Cut(a[2:], ")")
			if !ok {
				r.fatal("Missing ')' at the end of pathspec magic in '%s'", a)
			}
			for _, m := range strings.Split(magic, ",") {
				switch m {
				case "exclude":
					it.exclude = true
				case "top":
					top = true
				case "icase":
					it.fold = true
				case "literal":
					literal = true
				case "glob", "":
				default:
					r.fatal("Invalid pathspec magic '%s' in '%s'", m, a)
				}
			}
			a = rest
		} else if len(a) > 1 && a[0] == ':' && strings.IndexByte("!^/", a[1]) >= 0 {
			top = a[1] == '/'
			it.exclude = a[1] != '/'
			a = a[2:]
		}
		if top {
			it.path = strings.Trim(path.Clean("/"+a), "/")
		} else {
			p, ok := r.relative(a)
			if !ok {
				r.fatal("%s: '%s' is outside repository at '%s'", a, a, strings.TrimSuffix(r.root, "/."))
			}
			it.path = p
			if a == "" && !it.exclude {
				r.fatal("empty string is not a valid pathspec. please use . instead if you meant to match all paths")
			}
		}
		it.glob = !literal && strings.ContainsAny(it.path, "*?[")
		s.items = append(s.items, it)
	}
	return s
}

func (it *specItem) match(p string) bool {
	want := it.path
	if it.fold {
		want, p = strings.ToLower(want), strings.ToLower(p)
	}
	if want == "" || p == want || strings.HasPrefix(p, want+"/") || p == want+"/" {
		return true
	}
	if !it.glob {
		return false
	}
	// Outside of :(glob), * matches slashes too.
	return globSlash(want, strings.TrimSuffix(p, "/"))
}

// globSlash is wildmatch without special slashes; a match of a folder above counts.
func globSlash(pattern, p string) bool {
	swap := func(s string) string { return strings.ReplaceAll(s, "/", "\x01") }
	if wildmatch(swap(pattern), swap(p), false) {
		return true
	}
	for i := 0; i < len(p); i++ {
		if p[i] == '/' && wildmatch(swap(pattern), swap(p[:i]), false) {
			return true
		}
	}
	return false
}

// match reports whether a path is meant.
func (s *pathspec) match(p string) bool {
	in, positive := false, false
	for i := range s.items {
		it := &s.items[i]
		if it.exclude {
			if it.match(p) {
				return false
			}
			continue
		}
		positive = true
		in = in || it.match(p)
	}
	return in || !positive
}

// mayHold reports whether something in a folder could be meant.
func (s *pathspec) mayHold(dir string) bool {
	positive := false
	for i := range s.items {
		it := &s.items[i]
		if it.exclude {
			continue
		}
		positive = true
		if it.glob || it.fold || it.match(dir) || strings.HasPrefix(it.path, dir+"/") {
			return true
		}
	}
	return !positive
}

func (s *pathspec) empty() bool { return len(s.items) == 0 }

// filter keeps the changes of matching paths.
func (s *pathspec) filter(list []change) []change {
	if s.empty() {
		return list
	}
	var out []change
	for _, c := range list {
		if s.match(c.path()) {
			out = append(out, c)
		}
	}
	return out
}
