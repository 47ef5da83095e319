package git

import (
	"fmt"
	"strings"
)

// report is a line of what fetch or push did.
type report struct {
	flag               byte
	summary, from, to  string
	note               string
	failed, unimported bool
}

// lines renders reports in columns.
func renderReports(list []report, arrow bool) []string {
	width := 10
	for _, x := range list {
		if n := displayWidth(x.from); 21+n+4+displayWidth(x.to) < 80 {
			width = max(width, n)
		}
	}
	out := make([]string, 0, len(list))
	for _, x := range list {
		s := fmt.Sprintf(" %c %-17s ", x.flag, x.summary)
		if arrow {
			s += x.from + strings.Repeat(" ", max(0, width-displayWidth(x.from))) + " -> " + x.to
		} else {
			s += x.from + " -> " + x.to
			if x.from == "" {
				s = fmt.Sprintf(" %c %-17s %s", x.flag, x.summary, x.to)
			}
		}
		if x.note != "" {
			s += "  (" + x.note + ")"
			if !arrow {
				s = strings.Replace(s, "  (", " (", 1)
			}
		}
		out = append(out, s)
	}
	return out
}

// prettyRemote is a reference of the other side as reports have it.
func prettyRemote(name string) string { return shortRef(name) }

// storeFetched updates references and FETCH_HEAD, and reports.
func (r *repo) storeFetched(f *fetchOptions, list []fetched, ad *advert, name, url string, specs, configured []string) ([]fetched, int) {
	status := 0
	var reports []report
	var pruned []report
	if f.prune || r.config().bool("fetch.prune", false) || r.config().bool("remote."+name+".prune", false) {
		pruned = r.prune(f, ad, configured, f.pruneTags)
	}
	var heads strings.Builder
	for pass := range 2 {
		for _, x := range list {
			if x.merge != (pass == 0) {
				continue
			}
			if !x.extra {
				heads.WriteString(r.fetchHead(&x, url))
			}
		}
	}
	seen := map[string]bool{}
	for i := range list {
		x := &list[i]
		if x.local == "" {
			reports = append(reports, report{flag: '*', summary: kindOfRef(x.name), from: prettyRemote(x.name), to: "FETCH_HEAD"})
			continue
		}
		if seen[x.local] {
			continue
		}
		seen[x.local] = true
		rep, ok := r.storeOne(f, x)
		if rep.flag != 0 {
			reports = append(reports, rep)
		}
		if !ok {
			status = 1
		}
	}
	if !f.dry {
		if f.append {
			old, _ := r.t.ReadFile(r.dir+"/FETCH_HEAD", maxSmall)
			r.must(r.overwrite(r.dir+"/FETCH_HEAD", string(old)+heads.String()))
		} else {
			r.must(r.overwrite(r.dir+"/FETCH_HEAD", heads.String()))
		}
	}
	if len(reports)+len(pruned) > 0 && !f.quiet {
		r.say("From %s", fromURL(url))
		for _, line := range append(renderReports(pruned, true), renderReports(reports, true)...) {
			r.say("%s", line)
		}
	}
	var merge []fetched
	for _, x := range list {
		if x.merge {
			merge = append(merge, x)
		}
	}
	return merge, status
}

func kindOfRef(name string) string {
	switch {
	case strings.HasPrefix(name, "refs/heads/"):
		return "branch"
	case strings.HasPrefix(name, "refs/tags/"):
		return "tag"
	case name == "HEAD":
		return "branch"
	}
	return "ref"
}

// fetchHead is a line of FETCH_HEAD.
func (r *repo) fetchHead(x *fetched, url string) string {
	not := "not-for-merge"
	if x.merge {
		not = ""
	}
	what := ""
	switch {
	case x.name == "HEAD":
	case strings.HasPrefix(x.name, "refs/heads/"):
		what = "branch '" + strings.TrimPrefix(x.name, "refs/heads/") + "' of "
	case strings.HasPrefix(x.name, "refs/tags/"):
		what = "tag '" + strings.TrimPrefix(x.name, "refs/tags/") + "' of "
	default:
		what = "'" + x.name + "' of "
	}
	return x.id.String() + "\t" + not + "\t" + what + fromURL(url) + "\n"
}

// storeOne updates one reference. A report without a flag says nothing.
func (r *repo) storeOne(f *fetchOptions, x *fetched) (report, bool) {
	_, old, exists := r.readRef(x.local)
	rep := report{from: prettyRemote(x.name), to: shortRef(x.local)}
	if x.name == "HEAD" {
		rep.from = "HEAD"
	}
	cur, _ := r.head()
	set := func(why string) {
		if !f.dry {
			r.checkRefSpace(x.local)
			r.setRef(x.local, x.id)
			r.logRef(x.local, old, x.id, s2(f.reason, "fetch")+": "+why)
		}
	}
	switch {
	case exists && old == x.id:
		if f.verbose {
			rep.flag, rep.summary = '=', "[up to date]"
		}
	case exists && x.local == cur && !r.bare && !f.update:
		r.fatal("refusing to fetch into branch '%s' checked out at '%s'", x.local, r.root)
	case !exists:
		rep.flag = '*'
		switch {
		case strings.HasPrefix(x.name, "refs/tags/"):
			rep.summary = "[new tag]"
			set("storing tag")
		case strings.HasPrefix(x.name, "refs/heads/"):
			rep.summary = "[new branch]"
			set("storing head")
		default:
			rep.summary = "[new ref]"
			set("storing ref")
		}
	case strings.HasPrefix(x.local, "refs/tags/"):
		if !x.force {
			rep.flag, rep.summary, rep.note = '!', "[rejected]", "would clobber existing tag"
			return rep, false
		}
		rep.flag, rep.summary = 't', "[tag update]"
		set("updating tag")
	default:
		ff := false
		if a, err := r.peel(old, commitObj); err == nil {
			if b, err := r.peel(x.id, commitObj); err == nil {
				ff = r.isAncestor(a, b)
			}
		}
		switch {
		case ff:
			rep.flag, rep.summary = ' ', r.abbrev(old)+".."+r.abbrev(x.id)
			set("fast-forward")
		case x.force:
			rep.flag, rep.summary, rep.note = '+', r.abbrev(old)+"..."+r.abbrev(x.id), "forced update"
			set("forced-update")
		default:
			rep.flag, rep.summary, rep.note = '!', "[rejected]", "non-fast-forward"
			return rep, false
		}
	}
	return rep, true
}

// prune deletes remote-tracking references whose other side is gone.
func (r *repo) prune(f *fetchOptions, ad *advert, configured []string, tags bool) (reports []report) {
	if tags {
		configured = append(configured, "refs/tags/*:refs/tags/*")
	}
	for _, c := range configured {
		src, dst, ok := strings.Cut(strings.TrimPrefix(c, "+"), ":")
		if !ok {
			continue
		}
		prefix, _, _ := strings.Cut(dst, "*")
		for _, x := range r.refs(prefix) {
			if t, _, _ := r.readRef(x.name); t != "" {
				continue
			}
			back, ok := mapRef(dst+":"+src, x.name)
			if !ok {
				continue
			}
			if _, there := ad.find(back); !there {
				if !f.dry {
					r.deleteRef(x.name)
				}
				reports = append(reports, report{flag: '-', summary: "[deleted]", from: "(none)", to: shortRef(x.name)})
			}
		}
	}
	return reports
}

func (r *repo) cmdPull(args []string) int {
	r.needTree()
	var f fetchOptions
	var m mergeOptions
	rebase := ""
	branch, head := r.head()
	if v, ok := r.config().get("pull.rebase"); ok {
		rebase = v
	}
	if v, ok := r.config().get("branch." + shortRef(branch) + ".rebase"); ok {
		rebase = v
	}
	ffSet := false
	if v, ok := r.config().get("pull.ff"); ok {
		m.ff, ffSet = map[string]string{"false": "no", "only": "only", "true": ""}[v], true
	}
	o := r.options("pull", args)
	for o.next() {
		switch o.name {
		case "-r", "--rebase":
			rebase = s2(o.value, "true")
		case "--no-rebase":
			rebase = "false"
		default:
			if o.name == "--ff-only" || o.name == "--no-ff" || o.name == "--ff" {
				ffSet = true
			}
			if !m.option(r, o) && !f.option(o) {
				o.unknown()
			}
		}
	}
	f.quiet = f.quiet || m.quiet
	m.pull = strings.TrimSpace("pull " + strings.Join(args, " "))
	f.reason = m.pull
	if r.index().unmerged() {
		r.say("error: Pulling is not possible because you have unmerged files.")
		r.say("hint: Fix them up in the work tree, and then use 'git add/rm <file>'\nhint: as appropriate to mark resolution and make a commit.")
		r.fatal("Exiting because of an unresolved conflict.")
	}
	rest := o.operands()
	name := r.defaultRemote()
	if len(rest) > 0 {
		name = rest[0]
	}
	var specs []string
	if len(rest) > 1 {
		specs = rest[1:]
	}
	f.update = true
	if len(rest) == 0 && !r.config().has("remote."+name+".url") {
		return r.pullNothing(branch, name, rest)
	}
	list, status := r.fetch(&f, name, specs)
	if status != 0 {
		return status
	}
	if len(list) == 0 {
		return r.pullNothing(branch, name, rest)
	}
	return r.pullMerge(&m, list, branch, head, name, rebase, ffSet)
}

// pullNothing explains why there is nothing to merge.
func (r *repo) pullNothing(branch, name string, rest []string) int {
	if branch == "" {
		r.die(1, "You are not currently on a branch.\nPlease specify which branch you want to merge with.\nSee git-pull(1) for details.\n\n    git pull <remote> <branch>\n")
	}
	b := shortRef(branch)
	merge, ok := r.config().get("branch." + b + ".merge")
	if len(rest) > 0 && !ok {
		r.die(1, "You asked to pull from the remote '%s', but did not specify\na branch. Because this is not the default configured remote\nfor your current branch, you must specify a branch on the command line.", rest[0])
	}
	if !ok {
		remote := "<remote>"
		if list := r.remotes(); len(list) == 1 {
			remote = list[0]
		}
		r.die(1, "There is no tracking information for the current branch.\nPlease specify which branch you want to merge with.\nSee git-pull(1) for details.\n\n    git pull <remote> <branch>\n\nIf you wish to set tracking information for this branch you can do so with:\n\n    git branch --set-upstream-to=%s/<branch> %s\n", remote, b)
	}
	r.die(1, "Your configuration specifies to merge with the ref '%s'\nfrom the remote, but no such ref was fetched.", merge)
	return 1
}

func (r *repo) pullMerge(m *mergeOptions, list []fetched, branch string, head oid, name, rebase string, ffSet bool) int {
	id, err := r.peel(list[0].id, commitObj)
	if err != nil {
		r.fatal("%s", err)
	}
	if head.isZero() {
		r.goTo(flat{}, r.flatten(r.readCommit(id).tree))
		r.writeIndex()
		r.updateRef("HEAD", id, m.pull)
		return 0
	}
	ff := r.isAncestor(head, id)
	diverged := !ff && !r.isAncestor(id, head)
	if diverged && rebase == "" && !ffSet && m.ff == "" {
		r.say("%s", divergedHint)
		r.fatal("Need to specify how to reconcile divergent branches.")
	}
	if rebase != "" && rebase != "false" && m.ff != "only" {
		if !diverged && !ff {
			r.printf("Current branch %s is up to date.\n", shortRef(branch))
			return 0
		}
		b := rebaseOptions{quiet: m.quiet, autostash: r.config().bool("rebase.autostash", false)}
		if ff {
			return r.fastForward(m, head, id, "")
		}
		up := id.String()
		return r.rebaseStart(&b, []string{up})
	}
	if diverged && m.ff == "only" {
		if r.config().bool("advice.diverging", true) {
			r.say("hint: Diverging branches can't be fast-forwarded, you need to either:\nhint: \nhint: \tgit merge --no-ff\nhint: \nhint: or:\nhint: \nhint: \tgit rebase\nhint: \nhint: Disable this message with \"git config advice.diverging false\"")
		}
		r.fatal("Not possible to fast-forward, aborting.")
	}
	url := fromURL(r.remoteURL(name, false))
	what := "branch '" + strings.TrimPrefix(list[0].name, "refs/heads/") + "' of "
	if list[0].name == "HEAD" {
		what = ""
	} else if t, ok := strings.CutPrefix(list[0].name, "refs/tags/"); ok {
		what = "tag '" + t + "' of "
	}
	m.subject = "Merge " + what + url
	if b := shortRef(s2(branch, "HEAD")); b != "master" && b != "main" {
		m.subject += " into " + b
	}
	return r.mergeRevs(m, []string{id.String()})
}

const divergedHint = `hint: You have divergent branches and need to specify how to reconcile them.
hint: You can do so by running one of the following commands sometime before
hint: your next pull:
hint: 
hint:   git config pull.rebase false  # merge
hint:   git config pull.rebase true   # rebase
hint:   git config pull.ff only       # fast-forward only
hint: 
hint: You can replace "git config" with "git config --global" to set a default
hint: preference for all repositories. You can also pass --rebase, --no-rebase,
hint: or --ff-only on the command line to override the configured default per
hint: invocation.`

func (r *repo) cmdLsRemote(args []string) int {
	var heads, tags, refsOnly, quiet, symref, exit, getURL bool
	o := r.options("ls-remote", args)
	for o.next() {
		switch o.name {
		case "-h", "--heads":
			heads = true
		case "-t", "--tags":
			tags = true
		case "--refs":
			refsOnly = true
		case "-q", "--quiet":
			quiet = true
		case "--symref":
			symref = true
		case "--exit-code":
			exit = true
		case "--get-url":
			getURL = true
		case "--sort", "--upload-pack", "-o":
			o.arg()
		default:
			o.unknown()
		}
	}
	rest := o.operands()
	name := ""
	if len(rest) > 0 {
		name, rest = rest[0], rest[1:]
	} else if r.dir != "" {
		name = r.defaultRemote()
	} else {
		r.fatal("No remote configured to list refs from.")
	}
	url := r.remoteURL(name, false)
	if getURL {
		r.printf("%s\n", url)
		return 0
	}
	ad, err := r.dialRemote(url).advertise(false)
	if err != nil {
		r.remoteError(name, err)
	}
	if len(args) == 0 || name == r.defaultRemote() && len(o.operands()) == 0 && !quiet {
		r.say("From %s", showURL(url))
	}
	status := 0
	if exit {
		status = 2
	}
	for _, f := range ad.refs {
		if refsOnly && (!strings.HasPrefix(f.name, "refs/") || strings.HasSuffix(f.name, "^{}")) {
			continue
		}
		if (heads || tags) && !(heads && strings.HasPrefix(f.name, "refs/heads/")) && !(tags && strings.HasPrefix(f.name, "refs/tags/")) {
			continue
		}
		ok := len(rest) == 0
		for _, p := range rest {
			ok = ok || globSlash("*/"+p, "/"+f.name)
		}
		if !ok {
			continue
		}
		status = 0
		if symref && f.name == "HEAD" && ad.head != "" {
			r.printf("ref: %s\tHEAD\n", ad.head)
		}
		r.printf("%s\t%s\n", f.id, f.name)
	}
	return status
}
