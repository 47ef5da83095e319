package git

import (
	"strings"
)

type pushOptions struct {
	all, tags, force, del, dry, quiet, upstream, mirror, porcelain, verbose, followTags, prune bool
	lease                                                                                      bool
}

func (r *repo) cmdPush(args []string) int {
	var p pushOptions
	o := r.options("push", args)
	for o.next() {
		switch o.name {
		case "--all", "--branches":
			p.all = true
		case "--tags":
			p.tags = true
		case "--follow-tags":
			p.followTags = true
		case "-f", "--force":
			p.force = true
		case "--force-with-lease", "--force-if-includes":
			p.force, p.lease = true, true
		case "-d", "--delete":
			p.del = true
		case "-n", "--dry-run":
			p.dry = true
		case "-q", "--quiet":
			p.quiet = true
		case "-u", "--set-upstream":
			p.upstream = true
		case "--mirror":
			p.mirror = true
		case "--porcelain":
			p.porcelain = true
		case "-v", "--verbose":
			p.verbose = true
		case "--prune":
			p.prune = true
		case "--no-verify", "--verify", "--progress", "--no-progress", "--thin", "--no-thin", "--atomic", "--no-signed", "--no-recurse-submodules", "-4", "-6":
		case "--repo", "-o", "--push-option", "--receive-pack", "--recurse-submodules", "--exec":
			o.arg()
		default:
			o.unknown()
		}
	}
	rest := o.operands()
	name := r.pushRemote()
	if len(rest) > 0 {
		name, rest = rest[0], rest[1:]
	} else if _, ok := r.config().get("remote." + name + ".url"); !ok {
		r.fatal("No configured push destination.\nEither specify the URL from the command-line or configure a remote repository using\n\n    git remote add <name> <url>\n\nand then push using the remote name\n\n    git push <name>\n")
	}
	return r.push(&p, name, rest)
}

func (r *repo) pushRemote() string {
	branch, _ := r.head()
	for _, k := range []string{"branch." + shortRef(branch) + ".pushremote", "remote.pushdefault"} {
		if v, ok := r.config().get(k); ok {
			return v
		}
	}
	return r.defaultRemote()
}

func (r *repo) push(p *pushOptions, name string, specs []string) int {
	url := r.remoteURL(name, true)
	list := r.pushSpecs(p, name, specs)
	t := r.dialRemote(url)
	ad, err := t.advertise(true)
	if err != nil {
		r.remoteError(name, err)
	}
	updates := r.pushUpdates(p, ad, list, url)
	var todo, same []*refUpdate
	for _, u := range updates {
		if u.old == u.id && !u.delete {
			same = append(same, u)
			continue
		}
		todo = append(todo, u)
		r.checkPush(p, name, u)
	}
	if len(todo) == 0 {
		if !p.quiet {
			r.say("Everything up-to-date")
		}
		r.pushTracking(p, name, updates)
		return 0
	}
	if !r.prePush(name, url, todo) {
		r.die(1, "error: failed to push some refs to '%s'", showURL(url))
	}
	if !p.dry {
		if err := t.push(todo); err != nil {
			r.fatal("%s", err)
		}
	}
	return r.pushReport(p, name, url, updates, todo)
}

// prePush runs the hook that may refuse.
func (r *repo) prePush(name, url string, todo []*refUpdate) bool {
	return r.hook("pre-push", name, url)
}

// pushSpecs are the refspecs to push.
func (r *repo) pushSpecs(p *pushOptions, name string, specs []string) []string {
	var list []string
	for i := 0; i < len(specs); i++ {
		if specs[i] == "tag" && i+1 < len(specs) {
			i++
			specs[i] = "refs/tags/" + specs[i]
		}
		if p.del {
			list = append(list, ":"+specs[i])
		} else {
			list = append(list, specs[i])
		}
	}
	switch {
	case p.mirror:
		list = append(list, "+refs/*:refs/*")
	case p.all:
		list = append(list, "refs/heads/*:refs/heads/*")
	}
	if p.tags {
		list = append(list, "refs/tags/*:refs/tags/*")
	}
	if len(list) > 0 {
		return list
	}
	if v := r.config().all("remote." + name + ".push"); len(v) > 0 {
		return v
	}
	return []string{r.pushDefault(p, name)}
}

// pushDefault is what a push without refspecs pushes: the current branch, where its upstream says so.
func (r *repo) pushDefault(p *pushOptions, name string) string {
	branch, _ := r.head()
	how, _ := r.config().get("push.default")
	if branch == "" {
		r.fatal("You are not currently on a branch.\nTo push the history leading to the current (detached HEAD)\nstate now, use\n\n    git push %s HEAD:<name-of-remote-branch>\n", name)
	}
	short := shortRef(branch)
	switch how {
	case "current":
		return branch + ":" + branch
	case "matching":
		return ":"
	case "nothing":
		r.fatal("You didn't specify any refspecs to push, and push.default is \"nothing\".")
	}
	if p.upstream || r.config().bool("push.autosetupremote", false) {
		if r.config().bool("push.autosetupremote", false) {
			p.upstream = true
		}
		return branch + ":" + branch
	}
	remote, _ := r.config().get("branch." + short + ".remote")
	merge, ok := r.config().get("branch." + short + ".merge")
	if remote != name && remote != "" || len(r.remotes()) > 1 && remote != name {
		return branch + ":" + branch // a triangular workflow
	}
	if !ok {
		r.fatal("The current branch %s has no upstream branch.\nTo push the current branch and set the remote as upstream, use\n\n    git push --set-upstream %s %s\n\nTo have this happen automatically for branches without a tracking\nupstream, see 'push.autoSetupRemote' in 'git help config'.\n", short, name, short)
	}
	if merge != branch && how != "upstream" {
		r.fatal("The upstream branch of your current branch does not match\nthe name of your current branch.  To push to the upstream branch\non the remote, use\n\n    git push %s HEAD:%s\n\nTo push to the branch of the same name on the remote, use\n\n    git push %s HEAD\n\nTo choose either option permanently, see push.default in 'git help config'.\n", name, shortRef(merge), name)
	}
	return branch + ":" + merge
}

// pushUpdates resolves refspecs.
func (r *repo) pushUpdates(p *pushOptions, ad *advert, specs []string, url string) (list []*refUpdate) {
	add := func(src, dst string, id oid, force, del bool) {
		old, _ := ad.find(dst)
		list = append(list, &refUpdate{name: dst, src: src, old: old, id: id, force: force || p.force, delete: del})
	}
	for _, s := range specs {
		s, force := strings.CutPrefix(s, "+")
		src, dst, two := strings.Cut(s, ":")
		switch {
		case s == ":":
			for _, f := range r.refs("refs/heads/") {
				if _, ok := ad.find(f.name); ok {
					add(f.name, f.name, f.id, force, false)
				}
			}
		case strings.Contains(src, "*"):
			prefix, _, _ := strings.Cut(src, "*")
			for _, f := range r.refs(prefix) {
				if d, ok := mapRef(src+":"+s2(dst, src), f.name); ok {
					add(f.name, d, f.id, force, false)
				}
			}
		case two && src == "":
			full, _, ok := ad.expand(dst)
			if !ok {
				r.say("error: unable to delete '%s': remote ref does not exist", dst)
				r.die(1, "error: failed to push some refs to '%s'", showURL(url))
			}
			add("", full, oid{}, force, true)
		default:
			r.pushOne(ad, src, dst, force, url, add)
		}
	}
	if p.followTags {
		for _, f := range r.refs("refs/tags/") {
			if k, _, err := r.readObject(f.id); err == nil && k == tagObj {
				if _, there := ad.find(f.name); !there {
					add(f.name, f.name, f.id, false, false)
				}
			}
		}
	}
	return list
}

// pushOne resolves a refspec without patterns.
func (r *repo) pushOne(ad *advert, src, dst string, force bool, url string, add func(src, dst string, id oid, force, del bool)) {
	full, id, ok := r.expandRef(src)
	if ok && full == "HEAD" {
		if b, _ := r.head(); b != "" && dst == "" {
			full = b
		}
	}
	if !ok {
		var err error
		if id, err = r.rev(src); err != nil {
			r.say("error: src refspec %s does not match any", src)
			r.die(1, "error: failed to push some refs to '%s'", showURL(url))
		}
		full = ""
	}
	shown := src
	if full != "" {
		shown = full
	}
	if src == "HEAD" || src == "@" {
		shown = "HEAD"
	}
	switch {
	case dst == "" && full != "" && full != "HEAD":
		dst = full
		if shown == "HEAD" {
			shown = "HEAD"
		}
	case dst == "":
		r.die(128, "fatal: invalid refspec '%s'", src)
	case !strings.HasPrefix(dst, "refs/"):
		if f, _, ok := ad.expand(dst); ok && strings.HasPrefix(f, "refs/") {
			dst = f
		} else if strings.HasPrefix(full, "refs/tags/") {
			dst = "refs/tags/" + dst
		} else if full != "" {
			dst = "refs/heads/" + dst
		} else {
			r.say("error: The destination you provided is not a full refname (i.e.,\nstarting with \"refs/\"). We tried to guess what you meant by:\n\n- Looking for a ref that matches '%s' on the remote side.\n- Checking if the <src> being pushed ('%s')\n  is a ref in \"refs/{heads,tags}/\". If so we add a corresponding\n  refs/{heads,tags}/ prefix on the remote side.\n\nNeither worked, so we gave up. You must fully qualify the ref.", dst, src)
			if k, _, err := r.readObject(id); err == nil && k == commitObj {
				r.say("hint: The <src> part of the refspec is a commit object.\nhint: Did you mean to create a new branch by pushing to\nhint: '%s:refs/heads/%s'?", src, dst)
			}
			r.die(1, "error: failed to push some refs to '%s'", showURL(url))
		}
	}
	if !validRef(dst) {
		r.fatal("invalid refspec '%s:%s'", src, dst)
	}
	add(shown, dst, id, force, false)
}

// checkPush refuses what would lose commits of the other side.
func (r *repo) checkPush(p *pushOptions, remote string, u *refUpdate) {
	if p.lease && !u.old.isZero() {
		if track := r.trackingOf(remote, u.name); track != "" {
			if _, id, ok := r.resolveRef(track); !ok || id != u.old {
				u.rejected = "stale info"
				return
			}
		}
	}
	if u.delete || u.old.isZero() || u.force {
		return
	}
	if strings.HasPrefix(u.name, "refs/tags/") {
		u.rejected = "already exists"
		return
	}
	if !r.hasObject(u.old) {
		u.rejected = "fetch first"
		return
	}
	a, err1 := r.peel(u.old, commitObj)
	b, err2 := r.peel(u.id, commitObj)
	if err1 != nil || err2 != nil {
		u.rejected = "needs force"
		return
	}
	if !r.isAncestor(a, b) {
		u.rejected = "non-fast-forward"
	}
}

// trackingOf is the reference here that follows one of a remote.
func (r *repo) trackingOf(remote, name string) string {
	for _, spec := range r.config().all("remote." + remote + ".fetch") {
		if d, ok := mapRef(spec, name); ok {
			return d
		}
	}
	return ""
}

// pushTracking updates what follows the other side, and the upstream if that was asked for.
func (r *repo) pushTracking(p *pushOptions, name string, updates []*refUpdate) {
	for _, u := range updates {
		if u.rejected != "" || p.dry {
			continue
		}
		if track := r.trackingOf(name, u.name); track != "" {
			_, old, _ := r.resolveRef(track)
			switch {
			case u.delete:
				r.deleteRef(track)
			case old != u.id:
				r.setRef(track, u.id)
				r.logRef(track, old, u.id, "update by push")
			}
		}
		src := u.src
		if src == "HEAD" {
			src, _ = r.head()
		}
		if b, ok := strings.CutPrefix(src, "refs/heads/"); ok && p.upstream && !u.delete {
			r.writeTracking(b, name, u.name)
			up := shortRef(u.name)
			if t := r.trackingOf(name, u.name); t != "" {
				up = shortRef(t)
			}
			if !p.quiet {
				r.printf("branch '%s' set up to track '%s'.\n", b, up)
			}
		}
	}
}

func (r *repo) pushReport(p *pushOptions, name, url string, updates, todo []*refUpdate) int {
	failed, behind, behindOther, first, exists := false, false, false, false, false
	branch, _ := r.head()
	var ok, bad []report
	for _, u := range todo {
		x := report{flag: '*', from: shortRef(u.src), to: shortRef(u.name)}
		switch {
		case u.rejected != "":
			failed = true
			x.flag, x.summary, x.note = '!', "[rejected]", u.rejected
			if u.remote {
				x.summary = "[remote rejected]"
			}
			switch {
			case u.rejected == "fetch first":
				first = true
			case u.rejected == "already exists":
				exists = true
			case u.rejected == "non-fast-forward" && !u.remote && u.src != branch && u.src != "HEAD":
				behindOther = true
			case u.rejected == "non-fast-forward" && !u.remote:
				behind = true
			}
			bad = append(bad, x)
			continue
		case u.delete:
			x.flag, x.summary, x.from = '-', "[deleted]", ""
		case u.old.isZero():
			x.summary = "[new reference]"
			if strings.HasPrefix(u.name, "refs/tags/") {
				x.summary = "[new tag]"
			} else if strings.HasPrefix(u.name, "refs/heads/") {
				x.summary = "[new branch]"
			}
		case u.force && !r.pushedForward(u):
			x.flag, x.summary, x.note = '+', r.abbrev(u.old)+"..."+r.abbrev(u.id), "forced update"
		default:
			x.flag, x.summary = ' ', r.abbrev(u.old)+".."+r.abbrev(u.id)
		}
		ok = append(ok, x)
	}
	if !p.quiet || failed {
		r.say("To %s", showURL(url))
		list := append(ok, bad...)
		if p.quiet {
			list = bad
		}
		for _, line := range renderReports(list, false) {
			r.say("%s", line)
		}
	}
	r.pushTracking(p, name, updates)
	if !failed {
		return 0
	}
	r.say("error: failed to push some refs to '%s'", showURL(url))
	switch {
	case behind:
		r.say("hint: Updates were rejected because the tip of your current branch is behind\nhint: its remote counterpart. Integrate the remote changes (e.g.\nhint: 'git pull ...') before pushing again.\nhint: See the 'Note about fast-forwards' in 'git push --help' for details.")
	case behindOther:
		r.say("hint: Updates were rejected because a pushed branch tip is behind its remote\nhint: counterpart. Check out this branch and integrate the remote changes\nhint: (e.g. 'git pull ...') before pushing again.\nhint: See the 'Note about fast-forwards' in 'git push --help' for details.")
	case first:
		r.say("hint: Updates were rejected because the remote contains work that you do\nhint: not have locally. This is usually caused by another repository pushing\nhint: to the same ref. You may want to first integrate the remote changes\nhint: (e.g., 'git pull ...') before pushing again.\nhint: See the 'Note about fast-forwards' in 'git push --help' for details.")
	case exists:
		r.say("hint: Updates were rejected because the tag already exists in the remote.")
	}
	return 1
}

func (r *repo) pushedForward(u *refUpdate) bool {
	if !r.hasObject(u.old) {
		return false
	}
	a, err1 := r.peel(u.old, commitObj)
	b, err2 := r.peel(u.id, commitObj)
	return err1 == nil && err2 == nil && r.isAncestor(a, b)
}

func (r *repo) cmdRemote(args []string) int {
	verbose := false
	for len(args) > 0 && (args[0] == "-v" || args[0] == "--verbose") {
		verbose, args = true, args[1:]
	}
	if len(args) == 0 {
		for _, n := range r.remotes() {
			if !verbose {
				r.printf("%s\n", n)
				continue
			}
			r.printf("%s\t%s (fetch)\n%s\t%s (push)\n", n, r.remoteURL(n, false), n, r.remoteURL(n, true))
		}
		return 0
	}
	verb, rest := args[0], args[1:]
	need := func(n int, usage string) {
		if len(rest) < n {
			r.die(129, "usage: git remote %s\n", usage)
		}
	}
	known := func(name string) {
		if !r.config().has("remote." + name + ".url") {
			r.die(2, "error: No such remote '%s'", name)
		}
	}
	switch verb {
	case "add":
		return r.remoteAdd(rest)
	case "remove", "rm":
		need(1, "remove <name>")
		if !r.config().has("remote." + rest[0] + ".url") {
			r.die(2, "error: No such remote: '%s'", rest[0])
		}
		return r.remoteRemove(rest[0])
	case "rename":
		need(2, "rename [--[no-]progress] <old> <new>")
		known(rest[0])
		return r.remoteRename(rest[0], rest[1])
	case "get-url":
		o := r.options("remote get-url", rest)
		push := false
		for o.next() {
			push = push || o.name == "--push"
		}
		if rest = o.operands(); len(rest) == 0 {
			need(99, "get-url [--push] [--all] <name>")
		}
		known(rest[0])
		r.printf("%s\n", r.remoteURL(rest[0], push))
		return 0
	case "set-url":
		return r.remoteSetURL(rest, known)
	case "show":
		for _, n := range rest {
			if n != "-n" {
				r.remoteShow(n)
			}
		}
		return 0
	case "prune":
		for _, n := range rest {
			known(n)
			url := r.remoteURL(n, false)
			ad, err := r.dialRemote(url).advertise(false)
			if err != nil {
				r.remoteError(n, err)
			}
			if list := r.prune(&fetchOptions{}, ad, r.config().all("remote."+n+".fetch"), false); len(list) > 0 {
				r.printf("Pruning %s\nURL: %s\n", n, url)
				for _, x := range list {
					r.printf(" * [pruned] %s\n", x.to)
				}
			}
		}
		return 0
	case "update":
		return r.cmdFetch([]string{"--all"})
	case "set-head":
		return r.remoteSetHead(rest)
	case "set-branches":
		need(2, "set-branches <name> <branch>...")
		known(rest[0])
		key := "remote." + rest[0] + ".fetch"
		r.setConfig(r.common+"/config", key, nil)
		for _, b := range rest[1:] {
			v := "+refs/heads/" + b + ":refs/remotes/" + rest[0] + "/" + b
			r.editSetting(r.common+"/config", key, key, &v, true, "", &configOptions{})
		}
		return 0
	}
	r.die(129, "error: unknown subcommand: `%s'\nusage: git remote [-v | --verbose]\n", verb)
	return 129
}

func (r *repo) remoteAdd(args []string) int {
	fetch, mirror := false, ""
	var track []string
	o := r.options("remote add", args)
	for o.next() {
		switch o.name {
		case "-f", "--fetch":
			fetch = true
		case "-t", "--track":
			track = append(track, o.arg())
		case "--mirror":
			mirror = s2(o.value, "both")
		case "--tags", "--no-tags":
		case "-m", "--master":
			o.arg()
		default:
			o.unknown()
		}
	}
	rest := o.operands()
	if len(rest) != 2 {
		r.die(129, "usage: git remote add [<options>] <name> <url>\n")
	}
	name, url := rest[0], rest[1]
	if r.config().has("remote." + name + ".url") {
		r.die(3, "error: remote %s already exists.", name)
	}
	if !validRef("refs/remotes/"+name+"/x") || strings.HasPrefix(name, "-") {
		r.fatal("'%s' is not a valid remote name", name)
	}
	file := r.common + "/config"
	r.setConfig(file, "remote."+name+".url", &url)
	specs := []string{"+refs/heads/*:refs/remotes/" + name + "/*"}
	if mirror != "" {
		specs = []string{"+refs/*:refs/*"}
	}
	if track != nil {
		specs = nil
		for _, b := range track {
			specs = append(specs, "+refs/heads/"+b+":refs/remotes/"+name+"/"+b)
		}
	}
	for _, s := range specs {
		key := "remote." + name + ".fetch"
		r.editSetting(file, key, key, &s, true, "", &configOptions{})
	}
	if fetch {
		r.printf("Updating %s\n", name)
		_, status := r.fetch(&fetchOptions{reason: "fetch " + name}, name, nil)
		return status
	}
	return 0
}

func (r *repo) remoteRemove(name string) int {
	for _, f := range r.refs("refs/remotes/" + name + "/") {
		r.deleteRef(f.name)
	}
	r.t.Unlink(r.common + "/refs/remotes/" + name + "/HEAD")
	r.t.Rmdir(r.common + "/refs/remotes/" + name)
	for _, s := range r.config().list {
		if b, ok := strings.CutPrefix(s.key, "branch."); ok && strings.HasSuffix(b, ".remote") && s.value == name {
			b = strings.TrimSuffix(b, ".remote")
			r.setConfig(r.common+"/config", "branch."+b+".remote", nil)
			r.setConfig(r.common+"/config", "branch."+b+".merge", nil)
		}
	}
	r.removeSection(r.common+"/config", "remote."+name)
	return 0
}

func (r *repo) remoteRename(from, to string) int {
	if r.config().has("remote." + to + ".url") {
		r.die(3, "error: remote %s already exists.", to)
	}
	if !validRef("refs/remotes/" + to + "/x") {
		r.fatal("'%s' is not a valid remote name", to)
	}
	r.renameSection("remote."+from, "remote."+to)
	key := "remote." + to + ".fetch"
	specs := r.config().all(key)
	r.setConfig(r.common+"/config", key, nil)
	for _, s := range specs {
		s = strings.Replace(s, "refs/remotes/"+from+"/", "refs/remotes/"+to+"/", 1)
		r.editSetting(r.common+"/config", key, key, &s, true, "", &configOptions{})
	}
	for _, s := range r.config().list {
		if strings.HasPrefix(s.key, "branch.") && strings.HasSuffix(s.key, ".remote") && s.value == from {
			r.setConfig(r.common+"/config", s.key, &to)
		}
	}
	for _, f := range r.refs("refs/remotes/" + from + "/") {
		name := "refs/remotes/" + to + strings.TrimPrefix(f.name, "refs/remotes/"+from)
		target, _, _ := r.readRef(f.name)
		log, _ := r.t.ReadFile(r.common+"/logs/"+f.name, maxIndexFile)
		r.deleteRef(f.name)
		if t, ok := strings.CutPrefix(target, "refs/remotes/"+from+"/"); ok {
			r.mkdirAll(r.common + "/refs/remotes/" + to)
			r.must(r.writeFile(r.common+"/"+name, []byte("ref: refs/remotes/"+to+"/"+t+"\n"), 0o666))
			continue
		}
		r.setRef(name, f.id)
		if len(log) > 0 {
			r.mkdirAll(r.common + "/logs/refs/remotes/" + to)
			r.overwrite(r.common+"/logs/"+name, string(log))
		}
		r.logRef(name, f.id, f.id, "remote: renamed "+f.name+" to "+name)
	}
	return 0
}

func (r *repo) remoteSetURL(args []string, known func(string)) int {
	push, add, del := false, false, false
	o := r.options("remote set-url", args)
	for o.next() {
		switch o.name {
		case "--push":
			push = true
		case "--add":
			add = true
		case "--delete":
			del = true
		default:
			o.unknown()
		}
	}
	rest := o.operands()
	if len(rest) < 2 {
		r.die(129, "usage: git remote set-url [--push] <name> <newurl> [<oldurl>]\n")
	}
	known(rest[0])
	key := "remote." + rest[0] + ".url"
	if push {
		key = "remote." + rest[0] + ".pushurl"
	}
	value := &rest[1]
	if del {
		value = nil
	}
	r.editSetting(r.common+"/config", key, key, value, add, "", &configOptions{})
	return 0
}

func (r *repo) remoteSetHead(args []string) int {
	auto, del := false, false
	o := r.options("remote set-head", args)
	for o.next() {
		switch o.name {
		case "-a", "--auto":
			auto = true
		case "-d", "--delete":
			del = true
		default:
			o.unknown()
		}
	}
	rest := o.operands()
	if len(rest) == 0 {
		r.die(129, "usage: git remote set-head <name> (-a | --auto | -d | --delete | <branch>)\n")
	}
	name := "refs/remotes/" + rest[0] + "/HEAD"
	branch := ""
	switch {
	case del:
		r.deleteRef(name)
		return 0
	case auto:
		ad, err := r.dialRemote(r.remoteURL(rest[0], false)).advertise(false)
		if err != nil {
			r.remoteError(rest[0], err)
		}
		if branch = strings.TrimPrefix(ad.head, "refs/heads/"); branch == "" {
			r.die(1, "error: Cannot determine remote HEAD")
		}
	case len(rest) == 2:
		branch = rest[1]
	}
	full := "refs/remotes/" + rest[0] + "/" + branch
	if _, _, ok := r.resolveRef(full); !ok {
		r.die(1, "error: Not a valid ref: %s", full)
	}
	r.must(r.writeFile(r.gitFile(name), []byte("ref: "+full+"\n"), 0o666))
	if auto {
		r.printf("%s/HEAD set to %s\n", rest[0], branch)
	}
	return 0
}

func (r *repo) remoteShow(name string) {
	url := r.remoteURL(name, false)
	ad, err := r.dialRemote(url).advertise(false)
	if err != nil {
		r.remoteError(name, err)
	}
	r.printf("* remote %s\n  Fetch URL: %s\n  Push  URL: %s\n  HEAD branch: %s\n", name, url, r.remoteURL(name, true), s2(strings.TrimPrefix(ad.head, "refs/heads/"), "(unknown)"))
	var branches []string
	width := 0
	for _, f := range ad.refs {
		if b, ok := strings.CutPrefix(f.name, "refs/heads/"); ok {
			branches = append(branches, b)
			width = max(width, len(b))
		}
	}
	word := "branches"
	if len(branches) == 1 {
		word = "branch"
	}
	r.printf("  Remote %s:\n", word)
	for _, b := range branches {
		how := "tracked"
		if t := r.trackingOf(name, "refs/heads/"+b); t == "" {
			how = "new (next fetch will store in remotes/" + name + ")"
		} else if _, _, ok := r.resolveRef(t); !ok {
			how = "new (next fetch will store in remotes/" + name + ")"
		}
		r.printf("    %s%s %s\n", b, strings.Repeat(" ", width-len(b)), how)
	}
	r.remoteShowLocal(name, ad)
}

// remoteShowLocal tells what pull and push would do.
func (r *repo) remoteShowLocal(name string, ad *advert) {
	var pulls, pushes [][3]string
	wl, wp, wr := 0, 0, 0
	for _, f := range r.refs("refs/heads/") {
		b := shortRef(f.name)
		if v, _ := r.config().get("branch." + b + ".remote"); v == name {
			if m, ok := r.config().get("branch." + b + ".merge"); ok {
				verb := "merges with remote"
				if v, ok := r.config().get("branch." + b + ".rebase"); ok && v != "false" {
					verb = "rebases onto remote"
				}
				pulls = append(pulls, [3]string{b, verb, shortRef(m)})
				wl = max(wl, len(b))
			}
		}
		if id, ok := ad.find(f.name); ok {
			how := "up to date"
			switch {
			case id == f.id:
			case !r.hasObject(id):
				how = "local out of date"
			case r.isAncestor(id, f.id):
				how = "fast-forwardable"
			default:
				how = "local out of date"
			}
			pushes = append(pushes, [3]string{b, b, how})
			wp, wr = max(wp, len(b)), max(wr, len(b))
		}
	}
	if len(pulls) > 0 {
		r.printf("  Local branch%s configured for 'git pull':\n", map[bool]string{true: "es"}[len(pulls) > 1])
		for _, p := range pulls {
			r.printf("    %-*s %s %s\n", wl, p[0], p[1], p[2])
		}
	}
	if len(pushes) > 0 {
		r.printf("  Local ref%s configured for 'git push':\n", map[bool]string{true: "s"}[len(pushes) > 1])
		for _, p := range pushes {
			r.printf("    %-*s pushes to %-*s (%s)\n", wp, p[0], wr, p[1], p[2])
		}
	}
}
