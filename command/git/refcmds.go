package git

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

func (r *repo) cmdTag(args []string) int {
	var del, list, annotate, force, verify bool
	var messages []string
	b := branchOptions{}
	file, cleanup, lines := "", "strip", -1
	o := r.options("tag", args)
	for o.next() {
		switch o.name {
		case "-d", "--delete":
			del = true
		case "-l", "--list":
			list = true
		case "-a", "--annotate":
			annotate = true
		case "-s", "--sign", "-u", "--local-user":
			r.fatal("signing needs gpg, which isn't here")
		case "-v", "--verify":
			verify = true
		case "-f", "--force":
			force = true
		case "-m", "--message":
			messages, annotate = append(messages, o.arg()), true
		case "-F", "--file":
			file, annotate = o.arg(), true
		case "--cleanup":
			cleanup = o.arg()
		case "-n":
			list, lines = true, 1
			if v := o.optional(); v != "" {
				lines, _ = strconv.Atoi(v)
			}
		case "--no-sign", "--create-reflog", "-e", "--edit":
		default:
			if !b.option(o) && !b.filter(o) {
				o.unknown()
			}
		}
	}
	rest := o.operands()
	switch {
	case del:
		return r.deleteTags(rest)
	case verify:
		r.fatal("verifying needs gpg, which isn't here")
	case list || len(rest) == 0 || b.filtered() || b.format != "":
		return r.listTags(&b, rest, lines)
	case len(rest) > 2:
		r.fatal("too many arguments")
	}
	target := "HEAD"
	if len(rest) == 2 {
		target = rest[1]
	}
	id, err := r.rev(target)
	if err != nil {
		r.fatal("Failed to resolve '%s' as a valid ref.", target)
	}
	name := rest[0]
	full := "refs/tags/" + name
	if !validRef(full) || strings.HasPrefix(name, "-") {
		r.fatal("'%s' is not a valid tag name.", name)
	}
	_, old, exists := r.resolveRef(full)
	if exists && !force {
		r.fatal("tag '%s' already exists", name)
	}
	made := id
	if annotate {
		made = r.annotate(name, id, messages, file, cleanup)
	}
	r.checkRefSpace(full)
	r.setRef(full, made)
	if exists && old != made {
		r.printf("Updated tag '%s' (was %s)\n", name, r.abbrev(old))
	}
	return 0
}

// annotate writes a tag object.
func (r *repo) annotate(name string, id oid, messages []string, file, cleanup string) oid {
	text := strings.Join(messages, "\n\n")
	if file != "" {
		b, err := r.t.ReadFile(file, maxSmall)
		if err != nil {
			r.fatal("could not open or read '%s': %s", file, strerror(err))
		}
		text = string(b)
	} else if messages == nil {
		msg := r.dir + "/TAG_EDITMSG"
		r.must(r.overwrite(msg, "\n#\n# Write a message for tag:\n#   "+name+"\n# Lines starting with '#' will be ignored.\n"))
		if !r.edit(r.relGit(msg)) {
			r.say("Please supply the message using either -m or -F option.")
			r.t.Exit(1)
		}
		b, err := r.t.ReadFile(msg, maxSmall)
		r.must(err)
		text = string(b)
	}
	if cleanup != "verbatim" {
		text = stripspace(text, cleanup == "strip")
	}
	if text == "" && messages == nil {
		r.fatal("no tag message?")
	}
	k, _, err := r.readObject(id)
	if err != nil {
		r.fatal("bad object type.")
	}
	return r.writeObject(tagObj, []byte(fmt.Sprintf("object %s\ntype %s\ntag %s\ntagger %s\n\n%s", id, k, name, r.who("COMMITTER"), text)))
}

func (r *repo) deleteTags(names []string) int {
	status := 0
	for _, n := range names {
		_, id, ok := r.readRef("refs/tags/" + n)
		if !ok {
			r.say("error: tag '%s' not found.", n)
			status = 1
			continue
		}
		r.deleteRef("refs/tags/" + n)
		r.printf("Deleted tag '%s' (was %s)\n", n, r.abbrev(id))
	}
	return status
}

func (r *repo) listTags(b *branchOptions, patterns []string, lines int) int {
	refs := r.refs("refs/tags/")
	key := b.sort
	if key == "" {
		key, _ = r.config().get("tag.sort")
	}
	r.sortRefs(refs, key)
	for _, f := range refs {
		name := strings.TrimPrefix(f.name, "refs/tags/")
		ok := len(patterns) == 0
		for _, p := range patterns {
			ok = ok || globSlash(p, name)
		}
		if !ok {
			continue
		}
		if b.filtered() {
			id, err := r.peel(f.id, commitObj)
			only := *b
			only.pointsAt = nil
			if len(b.pointsAt) > 0 {
				want, err := r.rev(b.pointsAt[0])
				if err != nil {
					r.die(129, "error: malformed object name '%s'", b.pointsAt[0])
				}
				if p, err := r.peel(f.id, 0); want != f.id && (err != nil || want != p) {
					continue
				}
			}
			if err != nil || !r.passes(&only, id) {
				continue
			}
		}
		switch {
		case b.format != "":
			r.printf("%s\n", r.refFormat(b.format, f))
		case lines >= 0:
			text := strings.Split(strings.TrimRight(r.messageOf(f.id), "\n"), "\n")
			text = text[:min(len(text), max(lines, 1))]
			r.printf("%-15s %s\n", name, strings.Join(text, "\n    "))
		default:
			r.printf("%s\n", name)
		}
	}
	return 0
}

// messageOf is the message of a tag or commit.
func (r *repo) messageOf(id oid) string {
	k, data, err := r.readObject(id)
	if err != nil || k != tagObj && k != commitObj {
		return ""
	}
	_, m, _ := strings.Cut(string(data), "\n\n")
	return m
}

// refFormat expands %(field) in a format of for-each-ref.
func (r *repo) refFormat(format string, f ref) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		switch {
		case format[i+1] == '%':
			b.WriteByte('%')
			i++
		case format[i+1] == '(':
			end := closing(format[i+2:])
			if end < 0 {
				r.fatal("malformed format string %s", format[i:])
			}
			field := format[i+2 : i+2+end]
			i += 2 + end
			if what, ok := strings.CutPrefix(field, "if"); ok && (what == "" || what[0] == ':') {
				n, text := r.refIf(what, format[i+1:], f)
				b.WriteString(text)
				i += n
				continue
			}
			b.WriteString(r.refField(f, field))
		default:
			if i+2 < len(format) {
				if v, err := strconv.ParseUint(format[i+1:i+3], 16, 8); err == nil {
					b.WriteByte(byte(v))
					i += 2
					continue
				}
			}
			b.WriteByte('%')
		}
	}
	return b.String()
}

func closing(s string) int { return strings.IndexByte(s, ')') }

// refIf expands %(if)X%(then)Y%(else)Z%(end); it returns how much of the format that took.
func (r *repo) refIf(what, rest string, f ref) (int, string) {
	end := strings.Index(rest, "%(end)")
	if end < 0 {
		r.fatal("format: %%(if) atom used without a %%(end) atom")
	}
	cond, branch, _ := strings.Cut(rest[:end], "%(then)")
	yes, no, _ := strings.Cut(branch, "%(else)")
	v := r.refFormat(cond, f)
	ok := strings.TrimSpace(v) != ""
	if want, eq := strings.CutPrefix(what, ":equals="); eq {
		ok = v == want
	} else if want, ne := strings.CutPrefix(what, ":notequals="); ne {
		ok = v != want
	}
	if !ok {
		yes = no
	}
	return end + len("%(end)"), r.refFormat(yes, f)
}

// refDate is a field that is a date, in seconds.
func (r *repo) refDate(f ref, field string) int64 {
	n, _ := strconv.ParseInt(r.refField(f, strings.TrimSuffix(field, ":raw")+":unix"), 10, 64)
	return n
}

// refField is one field of a reference.
func (r *repo) refField(f ref, field string) string {
	field, star := strings.CutPrefix(field, "*")
	id := f.id
	if star {
		p, err := r.peel(id, 0)
		if err != nil || p == id {
			return ""
		}
		id = p
	}
	name, mod, _ := strings.Cut(field, ":")
	switch name {
	case "refname":
		return r.refNameMod(f.name, mod)
	case "HEAD":
		if b, _ := r.head(); b == f.name {
			return "*"
		}
		return " "
	case "symref":
		t, _, _ := r.readRef(f.name)
		return r.refNameMod(t, mod)
	case "upstream", "push":
		return r.upstreamField(f, mod)
	case "color", "align", "end":
		return ""
	case "worktreepath":
		if b, _ := r.head(); b == f.name {
			return r.root
		}
		return ""
	}
	k, data, err := r.readObject(id)
	if err != nil {
		r.fatal("missing object %s for %s", id, f.name)
	}
	switch name {
	case "objectname":
		if n, ok := strings.CutPrefix(mod, "short"); ok {
			if w, err := strconv.Atoi(strings.TrimPrefix(n, "=")); err == nil {
				return r.abbrevN(id, w)
			}
			return r.abbrev(id)
		}
		return id.String()
	case "objecttype":
		return k.String()
	case "objectsize":
		return itoa(len(data))
	}
	return r.objectField(f, k, id, data, name, mod)
}

func (r *repo) refNameMod(full, mod string) string {
	kind, arg, _ := strings.Cut(mod, "=")
	n, _ := strconv.Atoi(arg)
	parts := strings.Split(full, "/")
	switch kind {
	case "short":
		return r.shortestRef(full)
	case "lstrip", "strip":
		if n < 0 {
			n = max(0, len(parts)+n)
		}
		return strings.Join(parts[min(n, len(parts)):], "/")
	case "rstrip":
		if n < 0 {
			n = max(0, len(parts)+n)
		}
		return strings.Join(parts[:max(0, len(parts)-n)], "/")
	}
	return full
}

// shortestRef is the short name that isn't ambiguous.
func (r *repo) shortestRef(full string) string {
	s := shortRef(full)
	if got, _, ok := r.expandRef(s); ok && got != full && strings.HasPrefix(full, "refs/") {
		parts := strings.SplitN(full, "/", 2)
		return parts[1]
	}
	return s
}

func (r *repo) upstreamField(f ref, mod string) string {
	up := r.upstream(f.name)
	if up == "" {
		return ""
	}
	kind, _, _ := strings.Cut(mod, ",")
	switch kind {
	case "track":
		t := r.trackBrief(f.name, f.id, 1)
		t = strings.TrimSuffix(t, " ")
		if strings.Contains(mod, "nobracket") {
			t = strings.Trim(t, "[]")
		}
		return t
	case "trackshort":
		_, id, ok := r.resolveRef(up)
		if !ok {
			return ""
		}
		switch a, b := r.aheadBehind(f.id, id); {
		case a > 0 && b > 0:
			return "<>"
		case a > 0:
			return ">"
		case b > 0:
			return "<"
		}
		return "="
	case "remotename":
		v, _ := r.config().get("branch." + shortRef(f.name) + ".remote")
		return v
	case "remoteref":
		v, _ := r.config().get("branch." + shortRef(f.name) + ".merge")
		return v
	}
	return r.refNameMod(up, mod)
}

// objectField is a field of what a reference leads to.
func (r *repo) objectField(f ref, k kind, id oid, data []byte, name, mod string) string {
	var author, committer, tagger ident
	var c *commit
	message := ""
	switch k {
	case commitObj:
		c = r.readCommit(id)
		author, committer, message = c.author, c.committer, c.message
	case tagObj:
		t, err := parseTag(data)
		if err != nil {
			return ""
		}
		tagger, message = t.tagger, t.message
		switch name {
		case "tag":
			return t.name
		case "type":
			return t.kind.String()
		case "object":
			return t.object.String()
		}
	}
	creator := committer
	if k == tagObj {
		creator = tagger
	}
	for prefix, who := range map[string]ident{"author": author, "committer": committer, "tagger": tagger, "creator": creator} {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok || who.name == "" && who.email == "" && who.when.IsZero() {
			continue
		}
		switch rest {
		case "":
			return who.String()
		case "name":
			return who.name
		case "email":
			switch mod {
			case "trim":
				return who.email
			case "localpart":
				l, _, _ := strings.Cut(who.email, "@")
				return l
			}
			return "<" + who.email + ">"
		case "date":
			return r.formatDate(who.when, mod)
		}
	}
	subject, body := splitMessage(message)
	switch name {
	case "subject":
		if mod == "sanitize" {
			return fileSubject(subject)
		}
		return subject
	case "body":
		return body
	case "contents":
		switch mod {
		case "subject":
			return subject
		case "body":
			return body
		case "size":
			return itoa(len(message))
		}
		if n, ok := strings.CutPrefix(mod, "lines="); ok {
			w, _ := strconv.Atoi(n)
			l := strings.Split(strings.TrimRight(message, "\n"), "\n")
			return strings.Join(l[:min(w, len(l))], "\n    ")
		}
		return message
	case "tree":
		if c != nil {
			if strings.HasPrefix(mod, "short") {
				return r.abbrev(c.tree)
			}
			return c.tree.String()
		}
	case "parent":
		if c != nil {
			var l []string
			for _, p := range c.parents {
				if strings.HasPrefix(mod, "short") {
					l = append(l, r.abbrev(p))
				} else {
					l = append(l, p.String())
				}
			}
			return strings.Join(l, " ")
		}
	case "numparent":
		if c != nil {
			return itoa(len(c.parents))
		}
	case "author", "authorname", "authoremail", "authordate", "committer", "committername", "committeremail", "committerdate",
		"tagger", "taggername", "taggeremail", "taggerdate", "creator", "creatordate", "tag", "type", "object", "trailers":
	default:
		r.fatal("unknown field name: %s", name)
	}
	return ""
}

func (r *repo) cmdForEachRef(args []string) int {
	b := branchOptions{format: "%(objectname) %(objecttype)\t%(refname)"}
	count := -1
	o := r.options("for-each-ref", args)
	for o.next() {
		switch o.name {
		case "--count":
			count = o.number()
		case "--shell", "--perl", "--python", "--tcl", "-s", "-p":
		default:
			if !b.filter(o) {
				o.unknown()
			}
		}
	}
	patterns := o.operands()
	refs := r.refs("refs/")
	r.sortRefs(refs, b.sort)
	for _, f := range refs {
		ok := len(patterns) == 0
		for _, p := range patterns {
			p = strings.TrimSuffix(p, "/")
			ok = ok || f.name == p || strings.HasPrefix(f.name, p+"/") || wildmatch(p, f.name, false)
		}
		if !ok {
			continue
		}
		if b.filtered() {
			id, err := r.peel(f.id, commitObj)
			only := b
			if len(b.pointsAt) > 0 {
				if want, err := r.rev(b.pointsAt[0]); err != nil || want != f.id && want != id {
					continue
				}
				only.pointsAt = nil
			}
			if err != nil || !r.passes(&only, id) {
				continue
			}
		}
		if count == 0 {
			break
		}
		count--
		r.printf("%s\n", r.refFormat(b.format, f))
	}
	return 0
}

// otherTree is another work tree of the repository.
type otherTree struct{ path, branch string }

// otherTrees lists the linked work trees but this one.
func (r *repo) otherTrees() (list []otherTree) {
	entries, err := r.t.ReadDir(r.common + "/worktrees")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		dir := r.common + "/worktrees/" + e.Name
		if dir == r.dir {
			continue
		}
		head, _ := r.t.ReadFile(dir+"/HEAD", maxSmall)
		link, _ := r.t.ReadFile(dir+"/gitdir", maxSmall)
		b, _ := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: ")
		list = append(list, otherTree{path.Dir(strings.TrimSpace(string(link))), b})
	}
	return list
}

// rebaseOnto is the commit that a rebase in progress builds on, shortened; "" if there is none.
func (r *repo) rebaseOnto() string {
	for _, d := range []string{"rebase-merge", "rebase-apply"} {
		if b, err := r.t.ReadFile(r.dir+"/"+d+"/onto", maxSmall); err == nil {
			if id, ok := parseOID(strings.TrimSpace(string(b))); ok {
				return r.abbrev(id)
			}
		}
	}
	return ""
}

// rebaseBranch is the branch that is being rebased, "" if none is.
func (r *repo) rebaseBranch() string {
	b, err := r.t.ReadFile(r.dir+"/rebase-merge/head-name", maxSmall)
	if err != nil {
		return ""
	}
	return shortRef(strings.TrimSpace(string(b)))
}
