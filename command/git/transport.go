package git

import (
	"errors"
	"fmt"
	"path"
	"sort"
	"strings"
	"syscall"
)

// advert is what a repository offers: its references, and the branch that HEAD is.
type advert struct {
	refs []ref // HEAD first if there is one; "^{}" lines of tags follow the tag
	head string
	caps map[string]string
}

func (a *advert) find(name string) (oid, bool) {
	for _, f := range a.refs {
		if f.name == name {
			return f.id, true
		}
	}
	return oid{}, false
}

// refUpdate is one reference that a push changes.
type refUpdate struct {
	name     string // on the other side
	src      string // here, as shown
	old, id  oid
	force    bool
	delete   bool
	rejected string // reason
	remote   bool   // rejected by the other side
}

// transport reaches another repository.
type transport interface {
	advertise(push bool) (*advert, error)
	// fetch brings the objects that wanted ones lead to. depth 0 is everything; it returns where history was cut off.
	fetch(want []oid, depth int) (shallow, unshallow []oid, err error)
	// push sends objects and has references updated; refusals are noted in the updates.
	push(updates []*refUpdate) error
}

// dialRemote finds the transport for a URL.
func (r *repo) dialRemote(url string) transport {
	if s, ok := strings.CutPrefix(url, "file://"); ok {
		return &localTransport{r: r, path: s, url: url, file: true}
	}
	if strings.HasPrefix(url, "http://") || strings.HasPrefix(url, "https://") {
		return &httpTransport{r: r, base: strings.TrimSuffix(url, "/")}
	}
	if scheme, _, ok := strings.Cut(url, "://"); ok {
		switch scheme {
		case "ssh", "git+ssh":
			r.fatal("ssh isn't available here: use https")
		case "git":
			r.fatal("the git protocol isn't available here: use https")
		}
		r.fatal("Unable to find remote helper for '%s'", scheme)
	}
	if i := strings.IndexByte(url, ':'); i > 0 && !strings.Contains(url[:i], "/") {
		r.fatal("ssh isn't available here: use https")
	}
	return &localTransport{r: r, path: url, url: url}
}

// localTransport is a repository in the sandbox's own files.
type localTransport struct {
	r         *repo
	path, url string
	file      bool
	other     *repo
}

// openAt opens the repository at a path, which may be a work tree or a repository's folder.
func (r *repo) openAt(p string) *repo {
	for _, d := range []string{p + "/.git", p, p + ".git/.git", p + ".git"} {
		o := &repo{t: r.t}
		if o.dir = o.dotGit(d); o.dir == "" {
			if !o.isGitDir(d) {
				continue
			}
			o.dir = d
		}
		o.setCommon()
		if o.bare = o.config().bool("core.bare", false); !o.bare && path.Base(o.dir) == ".git" {
			o.root = path.Dir(o.dir)
		}
		return o
	}
	return nil
}

func (l *localTransport) open() error {
	if l.other != nil {
		return nil
	}
	if l.other = l.r.openAt(l.r.abs(l.path)); l.other == nil {
		return fmt.Errorf("'%s' does not appear to be a git repository", l.path)
	}
	return nil
}

func (l *localTransport) advertise(push bool) (*advert, error) {
	if err := l.open(); err != nil {
		return nil, err
	}
	o := l.other
	a := &advert{}
	branch, head := o.head()
	a.head = branch
	if !head.isZero() && !push {
		a.refs = append(a.refs, ref{"HEAD", head})
	}
	for _, f := range o.refs("refs/") {
		a.refs = append(a.refs, f)
		if p, err := o.peel(f.id, 0); err == nil && p != f.id {
			a.refs = append(a.refs, ref{f.name + "^{}", p})
		}
	}
	return a, nil
}

func (l *localTransport) fetch(want []oid, depth int) (shallow, unshallow []oid, err error) {
	var stop map[oid]bool
	if depth > 0 && l.file {
		stop, shallow = l.other.cutOff(want, depth)
	} else {
		for id := range l.other.shallow() {
			shallow = append(shallow, id)
		}
	}
	have := l.r.hasObject
	if depth > 0 {
		// Commits that are here may lack their parents.
		have = func(id oid) bool {
			if !l.r.hasObject(id) {
				return false
			}
			k, _, err := l.other.readObject(id)
			return err == nil && (k == treeObj || k == blobObj)
		}
	}
	ids := l.other.missing(want, have, stop)
	return shallow, nil, l.r.copyObjects(l.other, ids)
}

// cutOff finds the commits where a history of a depth ends, and those behind it.
func (r *repo) cutOff(tips []oid, depth int) (stop map[oid]bool, edge []oid) {
	stop = map[oid]bool{}
	level := map[oid]bool{}
	for _, id := range tips {
		if c, err := r.peel(id, commitObj); err == nil {
			level[c] = true
		}
	}
	inside := map[oid]bool{}
	for d := 1; len(level) > 0; d++ {
		next := map[oid]bool{}
		for id := range level {
			inside[id] = true
			c := r.readCommit(id)
			for _, p := range r.parents(c) {
				if !inside[p] {
					next[p] = true
				}
			}
			if d == depth && len(c.parents) > 0 {
				edge = append(edge, id)
			}
		}
		if d == depth {
			for id := range next {
				if !inside[id] {
					stop[id] = true
				}
			}
			break
		}
		level = next
	}
	sort.Slice(edge, func(i, j int) bool { return edge[i].String() < edge[j].String() })
	return stop, edge
}

// missing lists the objects that wanted ones lead to and that aren't there yet, commits before their trees.
func (r *repo) missing(want []oid, have func(oid) bool, stop map[oid]bool) (list []oid) {
	seen := map[oid]bool{}
	todo := append([]oid(nil), want...)
	var trees func(id oid, depth int)
	trees = func(id oid, depth int) {
		if seen[id] || have(id) || depth > maxDepth {
			return
		}
		seen[id] = true
		list = append(list, id)
		for _, e := range r.readTree(id) {
			switch {
			case e.isTree():
				trees(e.id, depth+1)
			case e.mode != modeGitlink && !seen[e.id] && !have(e.id):
				seen[e.id] = true
				list = append(list, e.id)
			}
		}
	}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[id] || have(id) || stop[id] {
			continue
		}
		seen[id] = true
		r.step(1)
		k, data, err := r.readObject(id)
		if err != nil {
			r.fatal("unable to read %s", id)
		}
		list = append(list, id)
		switch k {
		case commitObj:
			c := r.readCommit(id)
			trees(c.tree, 0)
			todo = append(todo, r.parents(c)...)
		case tagObj:
			if t, err := parseTag(data); err == nil {
				todo = append(todo, t.object)
			}
		case treeObj:
			delete(seen, id)
			list = list[:len(list)-1]
			trees(id, 0)
		}
	}
	return list
}

// copyObjects takes objects from another repository: few as they are, many as a pack.
func (r *repo) copyObjects(from *repo, ids []oid) error {
	if len(ids) < 100 {
		for i := len(ids) - 1; i >= 0; i-- {
			k, data, err := from.readObject(ids[i])
			if err != nil {
				return err
			}
			r.writeObject(k, data)
		}
		return nil
	}
	return r.copyAsPack(from, ids)
}

func (l *localTransport) push(updates []*refUpdate) error {
	if err := l.open(); err != nil {
		return err
	}
	o := l.other
	var want []oid
	for _, u := range updates {
		if u.rejected == "" && !u.delete {
			want = append(want, u.id)
		}
	}
	if err := o.copyObjects(l.r, l.r.missing(want, o.hasObject, nil)); err != nil {
		return err
	}
	branch, _ := o.head()
	for _, u := range updates {
		if u.rejected != "" {
			continue
		}
		deny, _ := o.config().get("receive.denycurrentbranch")
		switch {
		case u.name == branch && !o.bare && (deny == "" || deny == "refuse" || deny == "true") && !u.delete:
			l.r.say("remote: error: refusing to update checked out branch: %s        ", u.name)
			for _, line := range strings.Split(denyText, "\n") {
				pad := strings.Repeat(" ", 8)
				if line == "" {
					pad = ""
				}
				l.r.say("remote: %s%s", line, pad)
			}
			u.rejected, u.remote = "branch is currently checked out", true
			continue
		case u.name == branch && !o.bare && u.delete:
			l.r.say("remote: error: By default, deleting the current branch is denied, because the next%s", strings.Repeat(" ", 8))
			u.rejected, u.remote = "deletion of the current branch prohibited", true
			continue
		case o.config().bool("receive.denynonfastforwards", false) && !u.old.isZero() && !u.delete && !o.isAncestor(u.old, u.id):
			u.rejected, u.remote = "non-fast-forward", true
			continue
		}
		if u.delete {
			o.deleteRef(u.name)
			continue
		}
		if deny == "updateInstead" && u.name == branch && !o.bare {
			from, to := o.flatten(o.readCommit(u.old).tree), o.flatten(o.readCommit(u.id).tree)
			o.goTo(from, to)
			o.writeIndex()
		}
		o.setRef(u.name, u.id)
		o.logRef(u.name, u.old, u.id, "push")
		if u.name == branch {
			o.logRef("HEAD", u.old, u.id, "push")
		}
	}
	if len(want) > 0 {
		o.hook("post-update")
	}
	return nil
}

const denyText = `error: By default, updating the current branch in a non-bare repository
is denied, because it will make the index and work tree inconsistent
with what you pushed, and will require 'git reset --hard' to match
the work tree to HEAD.

You can set the 'receive.denyCurrentBranch' configuration variable
to 'ignore' or 'warn' in the remote repository to allow pushing into
its current branch; however, this is not recommended unless you
arranged to update its work tree to match what you pushed in some
other way.

To squelch this message and still keep the default behaviour, set
'receive.denyCurrentBranch' configuration variable to 'refuse'.`

// remoteError ends the command because the other repository can't be used.
func (r *repo) remoteError(url string, err error) {
	if strings.Contains(err.Error(), "does not appear to be a git repository") {
		r.say("fatal: %s", err)
		r.say("fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.")
		r.t.Exit(128)
	}
	if errors.Is(err, syscall.ENOENT) {
		r.fatal("repository '%s' does not exist", url)
	}
	r.fatal("%s", err)
}

// writeShallow notes where history was cut off.
func (r *repo) writeShallow(add, remove []oid) {
	if len(add)+len(remove) == 0 {
		return
	}
	set := map[string]bool{}
	for id := range r.shallow() {
		set[id.String()] = true
	}
	for _, id := range add {
		set[id.String()] = true
	}
	for _, id := range remove {
		delete(set, id.String())
	}
	list := make([]string, 0, len(set))
	for s := range set {
		list = append(list, s)
	}
	sort.Strings(list)
	r.shallowSet = nil
	if len(list) == 0 {
		r.t.Unlink(r.common + "/shallow")
		return
	}
	r.must(r.writeFile(r.common+"/shallow", []byte(strings.Join(list, "\n")+"\n"), 0o666))
}
