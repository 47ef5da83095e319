package git

import (
	"encoding/base64"
	"fmt"
	"io"
	"mime/quotedprintable"
	"path"
	"strings"
)

// emailWording is a commit as the head of a mail.
func (r *repo) emailWording(c *commit) string { return r.mailHead(c, "[PATCH] ") }

func (r *repo) mailHead(c *commit, tag string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "From %s Mon Sep 17 00:00:00 2001\n", c.id)
	name := c.author.name
	if !plainASCII(name) {
		name = encodedWord(name)
	} else if strings.ContainsAny(name, `.,;:()<>@"`) {
		name = `"` + strings.ReplaceAll(name, `"`, `\"`) + `"`
	}
	fmt.Fprintf(&b, "From: %s <%s>\nDate: %s\n", name, c.author.email, c.author.when.Format("Mon, 2 Jan 2006 15:04:05 -0700"))
	subject, body := splitMessage(c.message)
	subject = tag + subject
	if plainASCII(subject) {
		subject = foldHeader("Subject: " + subject)
	} else {
		subject = "Subject: " + tag + encodedWord(strings.TrimPrefix(subject, tag))
	}
	b.WriteString(subject + "\n")
	if !plainASCII(c.message) {
		b.WriteString("MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n")
	}
	b.WriteString("\n")
	if body = strings.TrimRight(body, "\n"); body != "" {
		b.WriteString(body + "\n")
	}
	return b.String()
}

func plainASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// encodedWord is a text that isn't ASCII in a header.
func encodedWord(s string) string {
	var b strings.Builder
	b.WriteString("=?UTF-8?q?")
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x80 || c == '=' || c == '?' || c == '_' || c == ' ' || c < ' ' {
			fmt.Fprintf(&b, "=%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String() + "?="
}

// foldHeader breaks a long header at blanks.
func foldHeader(s string) string {
	var b strings.Builder
	col := 0
	for i, w := range strings.Split(s, " ") {
		if i > 0 {
			if col+1+len(w) > 78 {
				b.WriteString("\n")
				col = 0
			}
			b.WriteByte(' ')
			col++
		}
		b.WriteString(w)
		col += len(w)
	}
	return b.String()
}

func (r *repo) cmdFormatPatch(args []string) int {
	l := r.newLogger()
	l.maxParents = 1
	dir, stdout, numbered, signOff, cover := "", false, "", false, false
	start, prefix, version, suffix := 1, "PATCH", "", ".patch"
	count := -1
	root := false
	var keep []string
	o := r.options("format-patch", args)
	for o.next() {
		switch o.name {
		case "-o", "--output-directory":
			dir = o.arg()
		case "--stdout":
			stdout = true
		case "-n", "--numbered":
			numbered = "yes"
		case "-N", "--no-numbered":
			numbered = "no"
		case "-s", "--signoff":
			signOff = true
		case "--cover-letter":
			cover = true
		case "--start-number":
			start = o.number()
		case "--subject-prefix":
			prefix = o.arg()
		case "--rfc":
			prefix = "RFC PATCH"
		case "-v", "--reroll-count":
			version = o.arg()
		case "--suffix":
			suffix = o.arg()
		case "--root":
			root = true
		case "-k", "--keep-subject":
			prefix = ""
		case "-q", "--quiet", "--no-signature", "--zero-commit", "--no-cover-letter", "--thread", "--no-thread", "--attach", "--inline", "--no-stat", "-p", "--no-numbered-files":
			if o.name == "-p" || o.name == "--no-stat" {
				l.always = true
			}
		case "--base", "--to", "--cc", "--in-reply-to", "--add-header", "--signature", "--from", "--notes":
			if o.name != "--from" && o.name != "--notes" {
				o.arg()
			}
		default:
			if len(o.name) == 2 && o.name[1] >= '0' && o.name[1] <= '9' {
				o.queue = o.name[1:] + o.queue
				count = o.number()
			} else if !l.option(o) && !l.option2(o) && !r.revOption(&l.revs, o) && !r.diffOption(&l.d, o) {
				o.unknown()
			}
		}
	}
	_ = keep
	if cover {
		r.fatal("--cover-letter isn't done here")
	}
	paths := r.splitRevs(o, &l.revs)
	_, head := r.head()
	if l.revs.dots == 0 && len(l.revs.exclude) == 0 && count < 0 && !root && len(l.revs.include) == 1 {
		l.revs.exclude, l.revs.include = l.revs.include, []oid{head}
		l.revs.names = []string{"HEAD"}
	} else if len(l.revs.include) == 0 {
		l.revs.add(head, head, false, "HEAD")
	}
	if len(paths) > 0 {
		l.w.paths = r.pathspec(paths)
	}
	l.w.max = count
	nodes := l.list()
	if dir != "" {
		r.must(r.mkdirAll(r.abs(dir)))
	}
	total := len(nodes)
	for i := len(nodes) - 1; i >= 0; i-- {
		n := total - i - 1 + start
		tag := "[" + prefix
		if version != "" {
			tag += " v" + version
		}
		if (total > 1 || numbered == "yes") && numbered != "no" {
			tag += fmt.Sprintf(" %0*d/%d", len(itoa(total+start-1)), n, total+start-1)
		}
		tag += "] "
		if prefix == "" {
			tag = ""
		}
		text := r.patchMail(nodes[i].commit, tag, &l.d, signOff, l.w.paths, l.always)
		if stdout {
			if n > start {
				r.printf("\n")
			}
			r.printf("%s", text)
			continue
		}
		name := fmt.Sprintf("%04d-%s", n, fileSubject(nodes[i].subject()))
		if version != "" {
			name = "v" + version + "-" + name
		}
		if limit := 64 - len(suffix) - 1; len(name) > limit {
			name = name[:limit]
		}
		name = path.Join(dir, name+suffix)
		r.must(r.overwrite(r.abs(name), text))
		r.printf("%s\n", name)
	}
	return 0
}

// patchMail is a commit as a mail with its patch.
func (r *repo) patchMail(c *commit, tag string, d *diffOptions, signOff bool, paths *pathspec, noStat bool) string {
	if signOff {
		who := r.who("COMMITTER")
		copied := *c
		copied.message = r.signOff(c.message, who)
		c = &copied
	}
	var parent oid
	if len(c.parents) > 0 {
		parent = r.readCommit(c.parents[0]).tree
	}
	o := *d
	o.patch, o.stat, o.summary, o.statWidth = true, !noStat, !noStat, 72
	if o.renames == 0 && !o.renamesSet {
		o.renames = maxScore / 2
	}
	list := r.compareTreesFor(parent, c.tree, paths)
	if paths != nil {
		list = paths.filter(list)
	}
	body := r.capture(func() { r.showChanges(r.prepare(list, &o), &o) })
	sep := "---\n"
	if noStat {
		sep = "---\n\n"
		if body == "" {
			sep = ""
		}
	}
	return r.mailHead(c, tag) + sep + body + "-- \n2.39.5\n\n"
}

// mail is a patch that was sent.
type mail struct {
	from, email, date, subject, body, patch string
}

// parseMail reads a mail as am does.
func parseMail(text string, keep bool) (m mail, ok bool) {
	head, rest, _ := strings.Cut(text, "\n\n")
	encoding := ""
	var fields []string
	for _, line := range strings.Split(head, "\n") {
		if n := len(fields); n > 0 && (strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")) {
			fields[n-1] += " " + strings.TrimSpace(line)
			continue
		}
		fields = append(fields, strings.TrimRight(line, "\r"))
	}
	for _, f := range fields {
		k, v, _ := strings.Cut(f, ":")
		v = decodeWords(strings.TrimSpace(v))
		switch strings.ToLower(k) {
		case "from":
			m.setFrom(v)
		case "date":
			m.date = v
		case "subject":
			m.subject = v
		case "content-transfer-encoding":
			encoding = strings.ToLower(v)
		}
	}
	switch encoding {
	case "quoted-printable":
		b, _ := io.ReadAll(io.LimitReader(quotedprintable.NewReader(strings.NewReader(rest)), maxObject))
		rest = string(b)
	case "base64":
		b, err := base64.StdEncoding.DecodeString(strings.NewReplacer("\n", "", "\r", "").Replace(rest))
		if err == nil {
			rest = string(b)
		}
	}
	if m.email == "" && m.subject == "" {
		return m, false
	}
	if !keep {
		m.subject = cleanSubject(m.subject)
	}
	// "From:" and such at the body's start overrule the headers.
	for {
		line, after, _ := strings.Cut(rest, "\n")
		k, v, _ := strings.Cut(line, ": ")
		switch {
		case k == "From" && strings.Contains(v, "<"):
			m.setFrom(strings.TrimSpace(v))
		case k == "Subject":
			m.subject = cleanSubject(v)
		case k == "Date":
			m.date = v
		default:
			after = rest
		}
		if after == rest {
			break
		}
		rest = strings.TrimPrefix(after, "\n")
	}
	m.body, m.patch = splitPatch(rest)
	return m, true
}

func (m *mail) setFrom(v string) {
	if lt := strings.LastIndexByte(v, '<'); lt >= 0 {
		m.from, m.email = strings.Trim(strings.TrimSpace(v[:lt]), `"`), strings.TrimSuffix(v[lt+1:], ">")
	} else {
		m.email = v
		m.from = v
	}
}

// cleanSubject takes "[PATCH 1/2] " and "Re: " away.
func cleanSubject(s string) string {
	for {
		s = strings.TrimLeft(s, " \t:")
		switch {
		case len(s) > 3 && strings.EqualFold(s[:3], "re:"):
			s = s[3:]
		case strings.HasPrefix(s, "["):
			end := strings.IndexByte(s, ']')
			if end < 0 {
				return s
			}
			s = s[end+1:]
		default:
			return strings.TrimSpace(s)
		}
	}
}

// splitPatch parts a body at "---" or where the patch begins.
func splitPatch(s string) (body, patch string) {
	lines := strings.SplitAfter(s, "\n")
	at := 0
	for _, l := range lines {
		t := strings.TrimRight(l, " \t\r\n")
		if t == "---" || strings.HasPrefix(l, "diff --git ") || strings.HasPrefix(l, "diff -") || strings.HasPrefix(l, "Index: ") {
			return s[:at], s[at:]
		}
		at += len(l)
	}
	return s, ""
}

// decodeWords decodes =?UTF-8?q?...?= in a header.
func decodeWords(s string) string {
	for {
		i := strings.Index(s, "=?")
		if i < 0 {
			return s
		}
		parts := strings.SplitN(s[i+2:], "?", 4)
		if len(parts) < 4 || !strings.HasPrefix(parts[3], "=") {
			return s
		}
		var text string
		if strings.EqualFold(parts[1], "b") {
			b, _ := base64.StdEncoding.DecodeString(parts[2])
			text = string(b)
		} else {
			b, _ := io.ReadAll(quotedprintable.NewReader(strings.NewReader(strings.ReplaceAll(parts[2], "_", " "))))
			text = string(b)
		}
		rest := parts[3][1:]
		if t := strings.TrimLeft(rest, " "); strings.HasPrefix(t, "=?") {
			rest = t
		}
		s = s[:i] + strings.ReplaceAll(text, "=?", "= ?") + rest
	}
}

// splitMbox parts mails that begin with "From " lines.
func splitMbox(text string) (list []string) {
	start := -1
	at := 0
	prevBlank := true
	for _, l := range strings.SplitAfter(text, "\n") {
		if strings.HasPrefix(l, "From ") && prevBlank && strings.Count(l, ":") >= 2 {
			if start >= 0 {
				list = append(list, text[start:at])
			}
			start = at + len(l)
		}
		prevBlank = strings.TrimSpace(l) == "" || at == 0
		at += len(l)
	}
	if start < 0 {
		return []string{text}
	}
	return append(list, text[start:])
}
