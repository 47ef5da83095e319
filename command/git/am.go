package git

import (
	"fmt"
	"strconv"
	"strings"
)

func (r *repo) cmdAm(args []string) int {
	r.needTree()
	action := ""
	three, signOff, keep, quiet := false, false, false, false
	o := r.options("am", args)
	for o.next() {
		switch o.name {
		case "--continue", "-r", "--resolved":
			action = "continue"
		case "--abort", "--skip", "--quit":
			action = o.name[2:]
		case "--show-current-patch":
			action = "show"
		case "-3", "--3way":
			three = true
		case "-s", "--signoff":
			signOff = true
		case "-k", "--keep", "--keep-non-patch":
			keep = true
		case "-q", "--quiet":
			quiet = true
		case "--no-3way", "-u", "--utf8", "--no-utf8", "--keep-cr", "--no-keep-cr", "--committer-date-is-author-date", "--ignore-date", "--ignore-space-change", "--ignore-whitespace", "-c", "--scissors", "--no-scissors", "-b":
		case "--whitespace", "-C", "-p", "--directory", "--patch-format":
			o.arg()
		default:
			o.unknown()
		}
	}
	dir := r.dir + "/rebase-apply"
	running := r.gitFileExists("rebase-apply/applying")
	if action != "" {
		if !running {
			r.fatal("Resolve operation not in progress, we are not resuming.")
		}
		return r.amAction(action)
	}
	if running {
		r.fatal("previous rebase directory %s still exists but mbox given.", r.relGit(dir))
	}
	if r.gitFileExists("rebase-merge") {
		r.fatal("It looks like 'git am' is in progress. Cannot rebase.")
	}
	files := o.operands()
	if len(files) == 0 {
		files = []string{"-"}
	}
	var mails []string
	for _, f := range files {
		b, err := r.t.ReadFile(f, maxObject)
		if err != nil {
			r.fatal("could not open '%s' for reading: %s", f, strerror(err))
		}
		mails = append(mails, splitMbox(strings.ReplaceAll(string(b), "\r\n", "\n"))...)
	}
	r.must(r.mkdirAll(dir))
	put := func(name, text string) { r.must(r.overwrite(dir+"/"+name, text)) }
	put("applying", "")
	for i, m := range mails {
		put(fmt.Sprintf("%04d", i+1), m)
	}
	flag := func(b bool) string { return map[bool]string{true: "t\n", false: "f\n"}[b] }
	put("next", "1\n")
	put("last", itoa(len(mails))+"\n")
	put("threeway", flag(three))
	put("sign", flag(signOff))
	put("keep", flag(keep))
	put("quiet", flag(quiet))
	if _, head := r.head(); !head.isZero() {
		put("abort-safety", head.String()+"\n")
		r.must(r.writeFile(r.dir+"/ORIG_HEAD", []byte(head.String()+"\n"), 0o666))
	}
	return r.amRun()
}

func (r *repo) amRead(name string) string {
	b, _ := r.t.ReadFile(r.dir+"/rebase-apply/"+name, maxObject)
	return strings.TrimSpace(string(b))
}

// amRun applies the mails that are left.
func (r *repo) amRun() int {
	dir := r.dir + "/rebase-apply"
	next, _ := strconv.Atoi(r.amRead("next"))
	last, _ := strconv.Atoi(r.amRead("last"))
	for ; next <= last; next++ {
		r.must(r.overwrite(dir+"/next", itoa(next)+"\n"))
		b, _ := r.t.ReadFile(fmt.Sprintf("%s/%04d", dir, next), maxObject)
		m, ok := parseMail(string(b), r.amRead("keep") == "t")
		if !ok || !isPatch([]byte(m.patch)) {
			if !ok {
				r.removeAll(dir)
				r.say("Patch format detection failed.")
				return 128
			}
			r.printf("Patch is empty.\n")
			r.say("hint: When you have resolved this problem, run \"git am --continue\".\nhint: If you prefer to skip this patch, run \"git am --skip\" instead.\nhint: To record the empty patch as an empty commit, run \"git am --allow-empty\".\nhint: To restore the original branch and stop patching, run \"git am --abort\".")
			return 128
		}
		message := stripspace(m.subject+"\n\n"+m.body, false)
		if r.amRead("sign") == "t" {
			message = r.signOff(message, r.who("COMMITTER"))
		}
		subject, _ := splitMessage(message)
		if r.amRead("quiet") != "t" {
			r.printf("Applying: %s\n", subject)
		}
		a := applyOptions{strip: 1, context: -1, index: true}
		list, err := parsePatch(m.patch, 1)
		ok = err == nil
		var out map[string]*applied
		if ok {
			out, ok = r.applyAll(&a, list)
		}
		if !ok && err == nil && r.amRead("threeway") == "t" {
			r.printf("Using index info to reconstruct a base tree...\nFalling back to patching base and 3-way merge...\n")
			a.three = true
			out, ok = r.applyAll(&a, list)
		}
		status := 1
		if ok {
			status = r.applyWrite(&a, list, out)
			r.writeIndex()
		}
		if status != 0 {
			r.must(r.overwrite(dir+"/final-commit", message))
			r.must(r.overwrite(dir+"/patch", m.patch))
			r.printf("Patch failed at %04d %s\n", next, subject)
			r.say("hint: Use 'git am --show-current-patch=diff' to see the failed patch")
			r.printf("When you have resolved this problem, run \"git am --continue\".\nIf you prefer to skip this patch, run \"git am --skip\" instead.\nTo restore the original branch and stop patching, run \"git am --abort\".\n")
			return 128
		}
		r.amCommit(&m, message)
	}
	r.removeAll(dir)
	return 0
}

func (r *repo) amCommit(m *mail, message string) {
	_, head := r.head()
	n := &commit{tree: r.treeFromIndex(), committer: r.who("COMMITTER"), message: message}
	if !head.isZero() {
		n.parents = []oid{head}
	}
	n.author = ident{crud(m.from), crud(m.email), n.committer.when}
	if t, ok := r.parseDate(m.date); ok {
		n.author.when = t
	}
	id := r.writeObject(commitObj, n.encode())
	r.updateRef("HEAD", id, "am: "+n.subject())
}

func (r *repo) amAction(action string) int {
	dir := r.dir + "/rebase-apply"
	next, _ := strconv.Atoi(r.amRead("next"))
	_, head := r.head()
	switch action {
	case "quit":
		r.removeAll(dir)
		return 0
	case "show":
		b, _ := r.t.ReadFile(fmt.Sprintf("%s/%04d", dir, next), maxObject)
		r.t.Out.Write(b)
		return 0
	case "abort":
		if id, ok := parseOID(r.amRead("abort-safety")); ok {
			r.resetTo(id.String(), "merge", true)
		}
		r.removeAll(dir)
		return 0
	case "skip":
		if !head.isZero() {
			r.resetHard(r.readCommit(head).tree)
			r.writeIndex()
		}
	case "continue":
		b, _ := r.t.ReadFile(fmt.Sprintf("%s/%04d", dir, next), maxObject)
		m, _ := parseMail(string(b), r.amRead("keep") == "t")
		message := stripspace(m.subject+"\n\n"+m.body, false)
		subject, _ := splitMessage(message)
		r.printf("Applying: %s\n", subject)
		if r.index().unmerged() {
			r.printf("You still have unmerged paths in your index.\nYou should 'git add' each file with resolved conflicts to mark them as such.\nYou might run `git rm` on a file to accept \"deleted by them\" for it.\n")
			return 128
		}
		if !head.isZero() && r.treeFromIndex() == r.readCommit(head).tree {
			r.printf("No changes - did you forget to use 'git add'?\nIf there is nothing left to stage, chances are that something else\nalready introduced the same changes; you might want to skip this patch.\n")
			return 128
		}
		r.amCommit(&m, message)
	}
	r.must(r.overwrite(dir+"/next", itoa(next+1)+"\n"))
	return r.amRun()
}
