package git

import (
	"errors"
	"path"
	"sort"
	"strings"
	"syscall"

	"agentrun.dev/vfs"
)

type addOptions struct {
	all, update, force, dry, verbose, intent, noRemove, ignoreErrors, renorm, refresh bool
	chmod                                                                             string
}

func (r *repo) cmdAdd(args []string) int {
	r.needTree()
	var a addOptions
	o := r.options("add", args)
	specFile := ""
	for o.next() {
		switch o.name {
		case "-A", "--all", "--no-ignore-removal":
			a.all = true
		case "--no-all", "--ignore-removal":
			a.noRemove = true
		case "-u", "--update":
			a.update = true
		case "-f", "--force":
			a.force = true
		case "-n", "--dry-run":
			a.dry = true
		case "-v", "--verbose":
			a.verbose = true
		case "-N", "--intent-to-add":
			a.intent = true
		case "--chmod":
			if a.chmod = o.arg(); a.chmod != "+x" && a.chmod != "-x" {
				r.fatal("--chmod param '%s' must be either -x or +x", a.chmod)
			}
		case "--ignore-errors":
			a.ignoreErrors = true
		case "--refresh":
			a.refresh = true
		case "--renormalize":
			a.renorm, a.update = true, true
		case "--pathspec-from-file":
			specFile = o.arg()
		case "-p", "--patch", "-i", "--interactive", "-e", "--edit":
			r.fatal("%s needs a person at a terminal: it isn't done here", o.name)
		case "--sparse", "--ignore-missing":
		default:
			o.unknown()
		}
	}
	paths := o.operands()
	if specFile != "" {
		paths = append(paths, r.fileLines(specFile)...)
	}
	if len(paths) == 0 && !a.all && !a.update {
		r.say("Nothing specified, nothing added.")
		if r.config().bool("advice.addemptypathspec", true) {
			r.say("hint: Maybe you wanted to say 'git add .'?\nhint: Turn this message off by running\nhint: \"git config advice.addEmptyPathspec false\"")
		}
		return 0
	}
	status := r.add(&a, paths)
	if !a.dry {
		r.writeIndex()
	}
	return status
}

// fileLines reads the lines of a file, "-" being standard input.
func (r *repo) fileLines(name string) []string {
	b, err := r.t.ReadFile(name, maxSmall)
	if err != nil {
		r.fatal("could not open '%s' for reading: %s", name, strerror(err))
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// add brings the index up to the work tree for some paths.
func (r *repo) add(a *addOptions, paths []string) int {
	spec := r.pathspec(paths)
	status := 0
	if !a.update {
		status = r.checkAddable(a, spec, paths)
	}
	if a.refresh {
		r.workChanges(spec.match)
		return status
	}
	for _, c := range r.workChanges(spec.match) {
		p := c.path()
		_, err := r.t.Lstat(r.file(p))
		gone := err != nil || r.hiddenByLink(p) || c.status == 'D'
		switch {
		case gone && (a.noRemove && !a.all):
		case gone:
			if a.verbose || a.dry {
				r.printf("remove '%s'\n", p)
			}
			if !a.dry {
				r.index().remove(p)
			}
		default:
			r.addFile(a, p)
		}
	}
	if !a.update {
		list, ignored := r.untracked(true, a.force, spec.match)
		if a.force {
			list = append(list, r.expandIgnored(ignored, spec)...)
			sort.Strings(list)
		}
		for _, p := range list {
			r.addFile(a, p)
		}
	}
	if a.chmod != "" {
		r.chmodEntries(a.chmod, spec)
	}
	return status
}

// expandIgnored lists the files in ignored folders.
func (r *repo) expandIgnored(list []string, spec *pathspec) (out []string) {
	for _, p := range list {
		dir, isDir := strings.CutSuffix(p, "/")
		if !isDir {
			out = append(out, p)
			continue
		}
		out = append(out, r.filesBelow(dir, spec, 0)...)
	}
	return out
}

func (r *repo) filesBelow(dir string, spec *pathspec, depth int) (out []string) {
	entries, err := r.t.ReadDir(r.file(dir))
	if err != nil || depth > maxDepth {
		return nil
	}
	for _, e := range entries {
		r.step(1)
		p := dir + "/" + e.Name
		if strings.EqualFold(e.Name, ".git") {
			continue
		}
		if e.Mode.IsDir() {
			out = append(out, r.filesBelow(p, spec, depth+1)...)
		} else if spec.match(p) {
			out = append(out, p)
		}
	}
	return out
}

// checkAddable ends the command for arguments that match nothing, and reports those that are ignored.
func (r *repo) checkAddable(a *addOptions, spec *pathspec, args []string) int {
	var ignored []string
	for i := range spec.items {
		it := &spec.items[i]
		if it.exclude || it.path == "" {
			continue
		}
		one := &pathspec{items: []specItem{*it}}
		if r.hiddenByLink(it.path) && !it.glob {
			if _, err := r.t.Lstat(r.file(it.path)); err == nil {
				r.fatal("pathspec '%s' is beyond a symbolic link", args[i])
			}
		}
		st, err := r.t.Lstat(r.file(it.path))
		if err == nil && !it.glob {
			g, ig := r.ignored(it.path, st.Mode.IsDir())
			if ig && !a.force && r.index().find(it.path) == nil && !r.anyTracked(one) {
				_ = g
				ignored = append(ignored, it.path)
			}
			continue
		}
		if r.anyTracked(one) {
			continue
		}
		if it.glob {
			if list, _ := r.untracked(true, false, one.match); len(list) > 0 {
				continue
			}
		}
		r.fatal("pathspec '%s' did not match any files", args[i])
	}
	if len(ignored) == 0 {
		return 0
	}
	r.say("The following paths are ignored by one of your .gitignore files:\n%s", strings.Join(ignored, "\n"))
	if r.config().bool("advice.addignoredfile", true) {
		r.say("hint: Use -f if you really want to add them.\nhint: Turn this message off by running\nhint: \"git config advice.addIgnoredFile false\"")
	}
	return 1
}

func (r *repo) anyTracked(spec *pathspec) bool {
	x := r.index()
	for i := range x.entries {
		if spec.match(x.entries[i].path) {
			return true
		}
	}
	return false
}

// addFile puts a file as it is now into the index.
func (r *repo) addFile(a *addOptions, p string) {
	st, err := r.t.Lstat(r.file(p))
	if err != nil {
		r.say("error: open(\"%s\"): %s", p, strerror(err))
		r.fatal("adding files failed")
	}
	if a.verbose || a.dry {
		r.printf("add '%s'\n", strings.TrimSuffix(p, "/"))
	}
	if a.dry {
		return
	}
	e := entry{path: p}
	if st.Mode.IsDir() {
		r.addNested(strings.TrimSuffix(p, "/"), st)
		return
	}
	was := uint32(0)
	if old := r.index().find(p); old != nil {
		was = old.mode
	}
	e.mode = r.fileMode(st, was)
	if a.intent {
		e.id, e.flags2 = emptyBlob, 0x2000
		r.index().put(e)
		return
	}
	data, err := r.workData(p, st)
	if err != nil {
		r.say("error: open(\"%s\"): %s", p, strerror(err))
		r.say("error: unable to index file '%s'", p)
		r.fatal("adding files failed")
	}
	if m := r.eol(p); e.mode != modeLink && int64(len(data)) != st.Size && !m.crlf {
		r.say("warning: in the working copy of '%s', CRLF will be replaced by LF the next time Git touches it", p)
	} else if e.mode != modeLink && int64(len(r.toWork(p, data))) != st.Size {
		r.say("warning: in the working copy of '%s', LF will be replaced by CRLF the next time Git touches it", p)
	}
	e.id = r.writeObject(blobObj, data)
	statEntry(&e, st)
	r.index().put(e)
}

// addNested adds a repository inside of this one as a link to its commit.
func (r *repo) addNested(p string, st vfs.Attr) {
	sub := &repo{t: r.t}
	d := r.dotGit(r.file(p) + "/.git")
	if d == "" {
		return
	}
	sub.dir, sub.root = d, r.file(p)
	sub.setCommon()
	_, id := sub.head()
	if id.isZero() {
		r.say("error: '%s/' does not have a commit checked out", p)
		r.fatal("adding files failed")
	}
	if e := r.index().find(p); e == nil {
		r.say("warning: adding embedded git repository: %s", p)
		r.say("%s", strings.ReplaceAll(strings.TrimSuffix(nestedHint, "\n"), "%s", p))
	}
	e := entry{path: p, mode: modeGitlink, id: id}
	statEntry(&e, st)
	r.index().put(e)
}

const nestedHint = `hint: You've added another git repository inside your current repository.
hint: Clones of the outer repository will not contain the contents of
hint: the embedded repository and will not know how to obtain it.
hint: If you meant to add a submodule, use:
hint: 
hint: 	git submodule add <url> %s
hint: 
hint: If you added this path by mistake, you can remove it from the
hint: index with:
hint: 
hint: 	git rm --cached %s
hint: 
hint: See "git help submodule" for more information.
`

func (r *repo) chmodEntries(how string, spec *pathspec) {
	x := r.index()
	for i := range x.entries {
		e := &x.entries[i]
		if !spec.match(e.path) || e.mode != modeFile && e.mode != modeExec {
			continue
		}
		e.mode = modeFile
		if how == "+x" {
			e.mode = modeExec
		}
		x.changed = true
	}
}

func (r *repo) cmdRm(args []string) int {
	r.needTree()
	var force, cached, recursive, dry, quiet, unmatch bool
	o := r.options("rm", args)
	for o.next() {
		switch o.name {
		case "-f", "--force":
			force = true
		case "--cached":
			cached = true
		case "-r":
			recursive = true
		case "-n", "--dry-run":
			dry = true
		case "-q", "--quiet":
			quiet = true
		case "--ignore-unmatch":
			unmatch = true
		case "--sparse":
		default:
			o.unknown()
		}
	}
	paths := o.operands()
	if len(paths) == 0 {
		r.fatal("No pathspec was given. Which files should I remove?")
	}
	spec := r.pathspec(paths)
	x := r.index()
	var list []string
	for i := range spec.items {
		it := &spec.items[i]
		one := &pathspec{items: []specItem{*it}}
		one.items[0].exclude = false
		found := false
		for _, e := range x.entries {
			if one.match(e.path) {
				found = true
				if e.path != it.path && !it.glob && !recursive {
					r.fatal("not removing '%s' recursively without -r", paths[i])
				}
			}
		}
		if !found && !unmatch {
			r.fatal("pathspec '%s' did not match any files", paths[i])
		}
	}
	for i := range x.entries {
		if p := x.entries[i].path; spec.match(p) && (len(list) == 0 || list[len(list)-1] != p) {
			list = append(list, p)
		}
	}
	if !force && !r.safeToRemove(list, cached) {
		return 1
	}
	for _, p := range list {
		if !quiet {
			r.printf("rm '%s'\n", p)
		}
		if dry {
			continue
		}
		link := false
		if e := x.find(p); e != nil {
			link = e.mode == modeGitlink
		}
		x.remove(p)
		if !cached && link {
			r.removeAll(r.file(p))
		} else if !cached {
			r.removeWork(p)
		}
	}
	if !dry {
		r.writeIndex()
	}
	return 0
}

// safeToRemove refuses to lose content that is nowhere else.
func (r *repo) safeToRemove(list []string, cached bool) bool {
	_, head := r.head()
	tree := flat{}
	if !head.isZero() {
		tree = r.flatten(r.readCommit(head).tree)
	}
	var both, staged, local []string
	for _, p := range list {
		e := r.index().find(p)
		if e == nil || e.mode == modeGitlink {
			continue
		}
		c, changed := r.workChange(e)
		changed = changed && c.status != 'D'
		h, ok := tree[p]
		indexed := !ok || h.id != e.id || h.mode != e.mode
		if e.intent() {
			continue
		}
		switch {
		case changed && indexed:
			both = append(both, p)
		case cached:
		case indexed:
			if _, err := r.t.Lstat(r.file(p)); err == nil {
				staged = append(staged, p)
			}
		case changed:
			local = append(local, p)
		}
	}
	report := func(list []string, one, many, hint string) {
		if len(list) == 0 {
			return
		}
		text := many
		if len(list) == 1 {
			text = one
		}
		r.say("error: %s\n    %s\n%s", text, strings.Join(list, "\n    "), hint)
	}
	report(both, "the following file has staged content different from both the\nfile and the HEAD:", "the following files have staged content different from both the\nfile and the HEAD:", "(use -f to force removal)")
	report(staged, "the following file has changes staged in the index:", "the following files have changes staged in the index:", "(use --cached to keep the file, or -f to force removal)")
	report(local, "the following file has local modifications:", "the following files have local modifications:", "(use --cached to keep the file, or -f to force removal)")
	return len(both)+len(staged)+len(local) == 0
}

func (r *repo) cmdMv(args []string) int {
	r.needTree()
	var force, dry, verbose, skip bool
	o := r.options("mv", args)
	for o.next() {
		switch o.name {
		case "-f", "--force":
			force = true
		case "-n", "--dry-run":
			dry = true
		case "-v", "--verbose":
			verbose = true
		case "-k":
			skip = true
		case "--sparse":
		default:
			o.unknown()
		}
	}
	list := o.operands()
	if len(list) < 2 {
		r.die(129, "usage: git mv [<options>] <source>... <destination>\n")
	}
	dest := list[len(list)-1]
	to, ok := r.relative(dest)
	if !ok {
		r.fatal("%s: '%s' is outside repository at '%s'", dest, dest, r.root)
	}
	st, err := r.t.Stat(r.file(to))
	intoDir := err == nil && st.Mode.IsDir()
	if !intoDir && len(list) > 2 {
		r.fatal("destination '%s' is not a directory", dest)
	}
	for _, src := range list[:len(list)-1] {
		from, ok := r.relative(src)
		if !ok {
			r.fatal("%s: '%s' is outside repository at '%s'", src, src, r.root)
		}
		target := to
		if intoDir {
			target = path.Join(to, path.Base(from))
		}
		if bad := r.cannotMove(from, target, force, strings.HasSuffix(dest, "/") && !intoDir); bad != "" {
			if skip {
				continue
			}
			r.fatal("%s, source=%s, destination=%s", bad, from, target)
		}
		if dry {
			r.printf("Checking rename of '%s' to '%s'\n", from, target)
		}
		if verbose || dry {
			r.printf("Renaming %s to %s\n", r.quote(from), r.quote(target))
		}
		if !dry {
			r.move(from, target)
		}
	}
	if !dry {
		r.writeIndex()
	}
	return 0
}

// cannotMove says what is wrong with a move, "" if nothing is.
func (r *repo) cannotMove(from, to string, force, slash bool) string {
	x := r.index()
	st, err := r.t.Lstat(r.file(from))
	if err != nil {
		return "bad source"
	}
	if st.Mode.IsDir() {
		if lo, hi := x.below(from); lo == hi && x.find(from) == nil {
			return "source directory is empty"
		}
		if to == from || strings.HasPrefix(to, from+"/") {
			return "can not move directory into itself"
		}
		if slash {
			return ""
		}
	} else if x.find(from) == nil {
		if i, _ := x.search(from, 0); i < len(x.entries) && x.entries[i].path == from {
			return "conflicted"
		}
		return "not under version control"
	}
	if slash {
		return "destination directory does not exist"
	}
	if _, err := r.t.Lstat(r.file(to)); err == nil && !force {
		return "destination exists"
	}
	if !safePath(to) {
		return "destination is invalid"
	}
	return ""
}

func (r *repo) move(from, to string) {
	if err := r.t.Rename(r.file(from), r.file(to), 0); err != nil {
		if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENOENT) {
			r.fatal("renaming '%s' failed: %s", from, strerror(err))
		}
		r.fatal("renaming '%s' failed: %s", from, strerror(err))
	}
	x := r.index()
	var moved []entry
	if e := x.find(from); e != nil {
		moved = append(moved, *e)
	}
	lo, hi := x.below(from)
	moved = append(moved, x.entries[lo:hi]...)
	for _, e := range moved {
		x.remove(e.path)
	}
	for _, e := range moved {
		e.path = to + e.path[len(from):]
		if a, err := r.t.Lstat(r.file(e.path)); err == nil {
			e.ctime, e.ino = stamp(a.Ctime), uint32(a.Ino)
		}
		x.put(e)
	}
}

func (r *repo) cmdClean(args []string) int {
	r.needTree()
	var dirs, dry, quiet, ignoredToo, ignoredOnly bool
	force := 0
	var exclude []string
	o := r.options("clean", args)
	for o.next() {
		switch o.name {
		case "-d":
			dirs = true
		case "-f", "--force":
			force++
		case "-n", "--dry-run":
			dry = true
		case "-q", "--quiet":
			quiet = true
		case "-x":
			ignoredToo = true
		case "-X":
			ignoredOnly = true
		case "-e", "--exclude":
			exclude = append(exclude, o.arg())
		case "-i", "--interactive":
			r.fatal("-i needs a person at a terminal: it isn't done here")
		default:
			o.unknown()
		}
	}
	if ignoredToo && ignoredOnly {
		r.fatal("options '-x' and '-X' cannot be used together")
	}
	if force == 0 && !dry && r.config().bool("clean.requireforce", true) {
		if _, ok := r.config().get("clean.requireforce"); ok {
			r.fatal("clean.requireForce set to true and neither -i, -n, nor -f given; refusing to clean")
		}
		r.fatal("clean.requireForce defaults to true and neither -i, -n, nor -f given; refusing to clean")
	}
	spec := r.pathspec(o.operands())
	rules := parseIgnore(strings.Join(exclude, "\n"), "", "--exclude option")
	list, ignored := r.untracked(!spec.empty() && !dirs, ignoredToo || ignoredOnly, spec.match)
	switch {
	case ignoredOnly:
		list = ignored
	case ignoredToo:
		list = append(list, ignored...)
		sort.Strings(list)
	}
	for _, p := range list {
		name, isDir := strings.CutSuffix(p, "/")
		skip := isDir && !dirs && (spec.empty() || !spec.match(name))
		for i := range rules {
			skip = skip || rules[i].match(name, isDir)
		}
		if isDir && r.dotGit(r.file(name)+"/.git") != "" && force < 2 {
			if dirs && dry {
				r.printf("Would skip repository %s\n", r.display(p))
			} else if dirs {
				r.printf("Skipping repository %s\n", r.display(p))
			}
			skip = true
		}
		if skip {
			continue
		}
		if dry {
			r.printf("Would remove %s\n", r.display(p))
			continue
		}
		if !quiet {
			r.printf("Removing %s\n", r.display(p))
		}
		if err := r.removeAll(r.file(name)); err != nil {
			r.say("warning: failed to remove %s: %s", r.display(p), strerror(err))
		}
	}
	return 0
}
