package git

import (
	"fmt"
	"sort"
	"strings"
)

// remoteURL is where a remote is; a name that is no remote is a URL or path itself.
func (r *repo) remoteURL(name string, push bool) string {
	url := name
	if v, ok := r.config().get("remote." + name + ".url"); ok {
		url = v
	}
	if v, ok := r.config().get("remote." + name + ".pushurl"); ok && push {
		url = v
	}
	best := ""
	for _, s := range r.config().list {
		if rest, ok := strings.CutPrefix(s.key, "url."); ok && strings.HasSuffix(rest, ".insteadof") && strings.HasPrefix(url, s.value) && len(s.value) > len(best) {
			best = s.value
			url = strings.TrimSuffix(rest, ".insteadof") + url[len(s.value):]
		}
	}
	return url
}

// showURL is a URL without what isn't for display.
func showURL(url string) string {
	if i := strings.Index(url, "://"); i > 0 {
		host, p, ok := strings.Cut(url[i+3:], "/")
		if j := strings.LastIndexByte(host, '@'); j >= 0 {
			user, _, has := strings.Cut(host[:j], ":")
			if has {
				user += ":<redacted>"
			}
			host = user + host[j:]
			_ = user
		}
		url = url[:i+3] + host
		if ok {
			url += "/" + p
		}
	}
	return url
}

// fromURL is a URL as fetch and push head their reports with it.
func fromURL(url string) string {
	return strings.TrimSuffix(strings.TrimRight(showURL(url), "/"), ".git")
}

type cloneOptions struct {
	bare, mirror, noCheckout, quiet, single, noSingle, noTags, shared bool
	branch, origin                                                    string
	depth                                                             int
	config                                                            []string
}

func (r *repo) cmdClone(args []string) int {
	c := cloneOptions{origin: "origin"}
	o := r.options("clone", args)
	for o.next() {
		switch o.name {
		case "--bare":
			c.bare = true
		case "--mirror":
			c.bare, c.mirror = true, true
		case "-n", "--no-checkout":
			c.noCheckout = true
		case "-q", "--quiet":
			c.quiet = true
		case "-b", "--branch":
			c.branch = o.arg()
		case "-o", "--origin":
			c.origin = o.arg()
		case "--depth":
			if c.depth = o.number(); c.depth < 1 {
				r.fatal("depth %d is not a positive number", c.depth)
			}
		case "--single-branch":
			c.single = true
		case "--no-single-branch":
			c.noSingle = true
		case "--no-tags":
			c.noTags = true
		case "-c", "--config":
			c.config = append(c.config, o.arg())
		case "--recurse-submodules", "--recursive", "--shallow-submodules", "--remote-submodules", "--no-shallow-submodules", "--progress", "-v", "--verbose", "-l", "--local",
			"--no-local", "--no-hardlinks", "--tags", "--no-progress", "-s", "--shared", "--dissociate", "--reject-shallow", "--no-reject-shallow", "--sparse", "--also-filter-submodules":
		case "--template", "-j", "--jobs", "--reference", "--reference-if-able", "-u", "--upload-pack", "--filter", "--server-option", "--shallow-since", "--shallow-exclude", "--separate-git-dir":
			o.arg()
		default:
			o.unknown()
		}
	}
	rest := o.operands()
	if len(rest) == 0 {
		r.fatal("You must specify a repository to clone.\n\nusage: git clone [<options>] [--] <repo> [<dir>]\n")
	}
	if len(rest) > 2 {
		r.fatal("Too many arguments.\n\nusage: git clone [<options>] [--] <repo> [<dir>]\n")
	}
	url := rest[0]
	local := !strings.Contains(url, "://") && r.openAt(r.abs(url)) != nil
	if !local && !strings.Contains(url, ":") {
		if _, err := r.t.Stat(url); err != nil || true {
			r.fatal("repository '%s' does not exist", url)
		}
	}
	dir := guessDir(url, c.bare)
	if len(rest) == 2 {
		dir = rest[1]
	}
	abs := r.abs(dir)
	if list, err := r.t.ReadDir(abs); err == nil && len(list) > 0 {
		r.fatal("destination path '%s' already exists and is not an empty directory.", dir)
	} else if _, err := r.t.Lstat(abs); err == nil && list == nil {
		if a, _ := r.t.Stat(abs); !a.Mode.IsDir() {
			r.fatal("destination path '%s' already exists and is not an empty directory.", dir)
		}
	}
	if !c.quiet {
		if c.bare {
			r.say("Cloning into bare repository '%s'...", dir)
		} else {
			r.say("Cloning into '%s'...", dir)
		}
	}
	if local {
		if c.depth > 0 {
			r.say("warning: --depth is ignored in local clones; use file:// instead.")
			c.depth = 0
		}
		url = r.abs(url)
	}
	if c.depth > 0 && !c.noSingle {
		c.single = true
	}
	return r.clone(&c, url, abs, local)
}

// guessDir is the folder that a URL is cloned into.
func guessDir(url string, bare bool) string {
	s := url
	if i := strings.Index(s, "://"); i >= 0 {
		s = s[i+3:]
	}
	s = strings.TrimRight(s, "/")
	s = strings.TrimRight(strings.TrimSuffix(s, "/.git"), "/")
	if i := strings.LastIndexAny(s, "/:"); i >= 0 {
		s = s[i+1:]
	}
	s = strings.TrimSuffix(s, ".git")
	if bare {
		s += ".git"
	}
	return s
}

func (r *repo) clone(c *cloneOptions, url, dir string, local bool) int {
	t := r.dialRemote(url)
	ad, err := t.advertise(false)
	if err != nil {
		r.remoteError(url, err)
	}
	_, existed := r.t.Stat(dir)
	made := existed != nil
	if err := r.mkdirAll(dir); err != nil {
		r.fatal("could not create work tree dir '%s': %s", r.show(dir), strerror(err))
	}
	n := &repo{t: r.t, overrides: r.overrides}
	git := dir
	if !c.bare {
		git = dir + "/.git"
	}
	branch, tip := n.cloneHead(c, ad)
	if c.branch != "" && tip.isZero() && !branch.ok {
		if made {
			r.removeAll(dir)
		}
		r.fatal("Remote branch %s not found in upstream %s", c.branch, c.origin)
	}
	n.initAt(git, initOptions{bare: c.bare, quiet: true, branch: s2(strings.TrimPrefix(branch.name, "refs/heads/"), "")})
	n.bare = c.bare
	if !c.bare {
		n.root = dir
	}
	switch l := t.(type) {
	case *localTransport:
		l.r = n
	case *httpTransport:
		l.r = n
	}
	n.cloneConfig(c, url, branch.name)
	n.cloneFetch(c, t, ad, url, branch.name, tip, made, dir)
	if !c.bare && !c.noCheckout && !tip.isZero() {
		n.goTo(flat{}, n.flatten(n.readCommit(tip).tree))
		n.writeIndex()
		n.hook("post-checkout", oid{}.String(), tip.String(), "1")
	}
	if tip.isZero() && len(ad.refs) == 0 {
		r.say("warning: You appear to have cloned an empty repository.")
	} else if tip.isZero() && !c.bare {
		r.say("warning: remote HEAD refers to nonexistent ref, unable to checkout.\n")
	}
	if local && !c.quiet {
		r.say("done.")
	}
	return 0
}

type cloneBranch struct {
	name string // full, "" if HEAD is to be detached
	ok   bool
}

// cloneHead finds what to check out.
func (r *repo) cloneHead(c *cloneOptions, ad *advert) (b cloneBranch, tip oid) {
	if c.branch != "" {
		if id, ok := ad.find("refs/heads/" + c.branch); ok {
			return cloneBranch{"refs/heads/" + c.branch, true}, id
		}
		if id, ok := ad.find("refs/tags/" + c.branch + "^{}"); ok {
			return cloneBranch{"", true}, id
		}
		if id, ok := ad.find("refs/tags/" + c.branch); ok {
			return cloneBranch{"", true}, id
		}
		return cloneBranch{}, oid{}
	}
	id, ok := ad.find("HEAD")
	if !ok {
		return cloneBranch{ad.head, ad.head != ""}, oid{}
	}
	if ad.head != "" {
		return cloneBranch{ad.head, true}, id
	}
	for _, f := range ad.refs {
		if f.id == id && strings.HasPrefix(f.name, "refs/heads/") && ad.caps != nil {
			return cloneBranch{f.name, true}, id
		}
	}
	return cloneBranch{"", true}, id
}

func (r *repo) cloneConfig(c *cloneOptions, url, branch string) {
	set := func(k, v string) { r.setConfig(r.common+"/config", k, &v) }
	for _, kv := range c.config {
		k, v, _ := strings.Cut(kv, "=")
		if key, ok := canonKey(k); ok {
			set(key, v)
		}
	}
	set("remote."+c.origin+".url", url)
	switch {
	case c.mirror:
		set("remote."+c.origin+".fetch", "+refs/*:refs/*")
		set("remote."+c.origin+".mirror", "true")
	case c.bare:
	case c.single && branch != "":
		b := strings.TrimPrefix(branch, "refs/heads/")
		set("remote."+c.origin+".fetch", fmt.Sprintf("+refs/heads/%[1]s:refs/remotes/%[2]s/%[1]s", b, c.origin))
	default:
		set("remote."+c.origin+".fetch", "+refs/heads/*:refs/remotes/"+c.origin+"/*")
	}
	if c.noTags {
		set("remote."+c.origin+".tagopt", "--no-tags")
	}
	if b, ok := strings.CutPrefix(branch, "refs/heads/"); ok && !c.bare {
		set("branch."+b+".remote", c.origin)
		set("branch."+b+".merge", branch)
	}
}

// cloneFetch brings the objects and writes the references.
func (r *repo) cloneFetch(c *cloneOptions, t transport, ad *advert, url, branch string, tip oid, made bool, dir string) {
	want := map[oid]bool{}
	var list []oid
	add := func(id oid) {
		if !want[id] {
			want[id] = true
			list = append(list, id)
		}
	}
	type pair struct {
		name string
		id   oid
	}
	var writes []pair
	tags := map[string]oid{}
	for _, f := range ad.refs {
		short, isBranch := strings.CutPrefix(f.name, "refs/heads/")
		isTag := strings.HasPrefix(f.name, "refs/tags/") && !strings.HasSuffix(f.name, "^{}")
		switch {
		case c.mirror && strings.HasPrefix(f.name, "refs/") && !strings.HasSuffix(f.name, "^{}"):
			writes = append(writes, pair{f.name, f.id})
			add(f.id)
		case isBranch && (!c.single || f.name == branch):
			name := "refs/remotes/" + c.origin + "/" + short
			if c.bare {
				name = f.name
			}
			writes = append(writes, pair{name, f.id})
			add(f.id)
		case isTag && !c.noTags:
			tags[f.name] = f.id
			if !c.single {
				writes = append(writes, pair{f.name, f.id})
				add(f.id)
			}
		}
	}
	if !tip.isZero() {
		add(tip)
	}
	if len(list) > 0 {
		shallow, _, err := t.fetch(list, c.depth)
		if err != nil {
			if made {
				r.removeAll(dir)
			}
			r.fatal("%s", err)
		}
		r.writeShallow(shallow, nil)
		r.packs, r.packsLoaded = nil, false
	}
	if c.single {
		for name, id := range tags {
			if k, _, err := r.readObject(id); err == nil && k != blobObj {
				if p, err := r.peel(id, commitObj); err == nil && r.hasObject(p) {
					writes = append(writes, pair{name, id})
				}
			}
		}
	}
	var packed strings.Builder
	packed.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	sort.Slice(writes, func(i, j int) bool { return writes[i].name < writes[j].name })
	for _, w := range writes {
		packed.WriteString(w.id.String() + " " + w.name + "\n")
		if p, err := r.peel(w.id, 0); err == nil && p != w.id {
			packed.WriteString("^" + p.String() + "\n")
		}
	}
	if len(writes) > 0 {
		r.must(r.writeFile(r.common+"/packed-refs", []byte(packed.String()), 0o666))
		r.packed = nil
	}
	reason := "clone: from " + fromURLPlain(url)
	if h := strings.TrimPrefix(ad.head, "refs/heads/"); !c.bare && ad.head != "" && !tip.isZero() {
		if _, _, ok := r.resolveRef("refs/remotes/" + c.origin + "/" + h); ok {
			r.mkdirAll(r.common + "/refs/remotes/" + c.origin)
			r.must(r.writeFile(r.common+"/refs/remotes/"+c.origin+"/HEAD", []byte("ref: refs/remotes/"+c.origin+"/"+h+"\n"), 0o666))
			r.logRef("refs/remotes/"+c.origin+"/HEAD", oid{}, tip, reason)
		}
	}
	switch {
	case branch != "" && !tip.isZero():
		if !c.bare {
			r.setRef(branch, tip)
			r.logRef(branch, oid{}, tip, reason)
		}
		r.setHead(branch, oid{}, "")
		r.logRef("HEAD", oid{}, tip, reason)
	case branch == "" && !tip.isZero():
		r.setHead("", tip, "")
		r.logRef("HEAD", oid{}, tip, reason)
		if r.config().bool("advice.detachedhead", true) && !c.quiet && !c.bare {
			r.say("Note: switching to '%s'.\n%s", tip, detachedAdvice)
		}
	}
}

func fromURLPlain(url string) string { return showURL(url) }

type fetchOptions struct {
	all, prune, tags, noTags, quiet, force, dry, verbose, append, update bool
	unshallow, pruneTags                                                 bool
	depth                                                                int
	reason                                                               string
}

// fetched is one reference that a fetch brought.
type fetched struct {
	name  string // on the other side
	id    oid
	local string // where it goes, "" only into FETCH_HEAD
	merge bool
	force bool
	extra bool // only updates what is tracked
}

func (f *fetchOptions) option(o *options) bool {
	switch o.name {
	case "--all":
		f.all = true
	case "-p", "--prune":
		f.prune = true
	case "-P", "--prune-tags":
		f.pruneTags = true
	case "-t", "--tags":
		f.tags = true
	case "-n", "--no-tags":
		f.noTags = true
	case "-q", "--quiet":
		f.quiet = true
	case "-f", "--force":
		f.force = true
	case "--dry-run":
		f.dry = true
	case "-v", "--verbose":
		f.verbose = true
	case "-a", "--append":
		f.append = true
	case "-u", "--update-head-ok":
		f.update = true
	case "--depth", "--deepen":
		f.depth = o.number()
	case "--unshallow":
		f.unshallow, f.depth = true, 0x7fffffff
	case "--progress", "--no-progress", "--no-prune", "-k", "--keep", "--no-recurse-submodules", "--multiple", "-4", "-6", "--ipv4", "--ipv6", "--no-auto-gc", "--no-auto-maintenance",
		"--auto-maintenance", "--auto-gc", "--atomic", "--no-write-fetch-head", "--write-fetch-head", "--no-show-forced-updates", "--update-shallow", "--set-upstream", "--porcelain":
	case "--recurse-submodules":
	case "-j", "--jobs", "--upload-pack", "--refmap", "-o", "--server-option", "--negotiation-tip", "--filter", "--shallow-since", "--shallow-exclude":
		o.arg()
	default:
		return false
	}
	return true
}

func (r *repo) cmdFetch(args []string) int {
	var f fetchOptions
	o := r.options("fetch", args)
	for o.next() {
		if !f.option(o) {
			o.unknown()
		}
	}
	rest := o.operands()
	f.reason = strings.TrimSpace("fetch " + strings.Join(args, " "))
	if f.all {
		status := 0
		for _, name := range r.remotes() {
			r.printf("Fetching %s\n", name)
			_, s := r.fetch(&f, name, nil)
			status = max(status, s)
			f.append = true
		}
		return status
	}
	name := r.defaultRemote()
	if len(rest) > 0 {
		name = rest[0]
	}
	var specs []string
	if len(rest) > 1 {
		specs = rest[1:]
	}
	if len(rest) == 0 && len(r.remotes()) == 0 {
		return 0
	}
	_, status := r.fetch(&f, name, specs)
	return status
}

// defaultRemote is the current branch's remote, else the only one, else origin.
func (r *repo) defaultRemote() string {
	branch, _ := r.head()
	if v, ok := r.config().get("branch." + shortRef(branch) + ".remote"); ok {
		return v
	}
	if list := r.remotes(); len(list) == 1 {
		return list[0]
	}
	return "origin"
}

// fetch brings references from a remote. It returns what is for merging.
func (r *repo) fetch(f *fetchOptions, name string, specs []string) ([]fetched, int) {
	url := r.remoteURL(name, false)
	t := r.dialRemote(url)
	ad, err := t.advertise(false)
	if err != nil {
		r.remoteError(name, err)
	}
	configured := r.config().all("remote." + name + ".fetch")
	list := r.matchSpecs(f, ad, name, specs, configured)
	var want []oid
	seen := map[oid]bool{}
	have := func(id oid) bool { return f.depth == 0 && r.hasObject(id) }
	for _, x := range list {
		if !seen[x.id] && !have(x.id) {
			seen[x.id] = true
			want = append(want, x.id)
		}
	}
	if len(want) > 0 {
		shallow, unshallow, err := t.fetch(want, f.depth)
		if err != nil {
			r.fatal("%s", err)
		}
		if f.unshallow {
			for id := range r.shallow() {
				unshallow = append(unshallow, id)
			}
		}
		r.writeShallow(shallow, unshallow)
		r.packs, r.packsLoaded, r.commits = nil, false, nil
	}
	list = append(list, r.followTags(f, t, ad, list, name)...)
	return r.storeFetched(f, list, ad, name, url, specs, configured)
}

// matchSpecs applies refspecs to what is offered.
func (r *repo) matchSpecs(f *fetchOptions, ad *advert, name string, specs, configured []string) (list []fetched) {
	branch, _ := r.head()
	mergeName, _ := r.config().get("branch." + shortRef(branch) + ".merge")
	if v, _ := r.config().get("branch." + shortRef(branch) + ".remote"); v != name {
		mergeName = ""
	}
	for i := 0; i < len(specs); i++ {
		s := specs[i]
		if s == "tag" && i+1 < len(specs) {
			i++
			s = "refs/tags/" + specs[i] + ":refs/tags/" + specs[i]
		}
		force := strings.HasPrefix(s, "+") || f.force
		src, dst, _ := strings.Cut(strings.TrimPrefix(s, "+"), ":")
		if strings.Contains(src, "*") {
			for _, o := range ad.refs {
				if d, ok := mapRef(src+":"+dst, o.name); ok && !strings.HasSuffix(o.name, "^{}") && validRef(d) {
					list = append(list, fetched{name: o.name, id: o.id, local: d, merge: true, force: force})
				}
			}
			continue
		}
		full, id, ok := ad.expand(s2(src, "HEAD"))
		if !ok {
			if v, isID := parseOID(src); isID {
				full, id = src, v
			} else {
				r.fatal("couldn't find remote ref %s", src)
			}
		}
		x := fetched{name: full, id: id, merge: true, force: force}
		if dst != "" {
			if x.local = dst; !strings.HasPrefix(dst, "refs/") {
				x.local = "refs/heads/" + dst
				if strings.HasPrefix(full, "refs/tags/") {
					x.local = "refs/tags/" + dst
				}
			}
			if !validRef(x.local) {
				r.fatal("invalid refspec '%s'", s)
			}
		}
		list = append(list, x)
		// What is tracked is updated on the way.
		for _, c := range configured {
			if d, ok := mapRef(c, full); ok && d != x.local && validRef(d) {
				list = append(list, fetched{name: full, id: id, local: d, force: strings.HasPrefix(c, "+"), extra: true})
			}
		}
	}
	if len(specs) == 0 {
		for _, c := range configured {
			for _, o := range ad.refs {
				if strings.HasSuffix(o.name, "^{}") {
					continue
				}
				if d, ok := mapRef(c, o.name); ok && validRef(d) {
					list = append(list, fetched{name: o.name, id: o.id, local: d, merge: o.name == mergeName, force: strings.HasPrefix(c, "+") || f.force})
				}
			}
		}
		if len(configured) == 0 {
			if id, ok := ad.find("HEAD"); ok {
				list = append(list, fetched{name: "HEAD", id: id, merge: true})
			} else {
				r.fatal("couldn't find remote ref HEAD")
			}
		}
	}
	if f.tags {
		for _, o := range ad.refs {
			if strings.HasPrefix(o.name, "refs/tags/") && !strings.HasSuffix(o.name, "^{}") {
				list = append(list, fetched{name: o.name, id: o.id, local: o.name, force: f.force})
			}
		}
	}
	return list
}

// expand finds a short name among what is offered.
func (a *advert) expand(name string) (string, oid, bool) {
	for _, p := range []string{"%s", "refs/%s", "refs/tags/%s", "refs/heads/%s", "refs/remotes/%s"} {
		full := fmt.Sprintf(p, name)
		if id, ok := a.find(full); ok {
			return full, id, true
		}
	}
	return "", oid{}, false
}

// followTags adds tags of what was fetched.
func (r *repo) followTags(f *fetchOptions, t transport, ad *advert, list []fetched, name string) (out []fetched) {
	if opt, _ := r.config().get("remote." + name + ".tagopt"); f.noTags || f.tags || opt == "--no-tags" || f.dry {
		return nil
	}
	tracking := false
	for _, x := range list {
		tracking = tracking || x.local != ""
	}
	if !tracking {
		return nil
	}
	var want []oid
	for i, o := range ad.refs {
		if !strings.HasPrefix(o.name, "refs/tags/") || strings.HasSuffix(o.name, "^{}") {
			continue
		}
		if _, _, ok := r.readRef(o.name); ok {
			continue
		}
		target := o.id
		if i+1 < len(ad.refs) && ad.refs[i+1].name == o.name+"^{}" {
			target = ad.refs[i+1].id
		}
		if !r.hasObject(target) {
			continue
		}
		if !r.hasObject(o.id) {
			want = append(want, o.id)
		}
		out = append(out, fetched{name: o.name, id: o.id, local: o.name})
	}
	if len(want) > 0 {
		if _, _, err := t.fetch(want, 0); err != nil {
			r.fatal("%s", err)
		}
		r.packs, r.packsLoaded = nil, false
	}
	return out
}
