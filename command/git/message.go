package git

import (
	"io"
	"strings"
)

// commitMessage finds a commit's message by its options, asking the editor where git would.
func (r *repo) commitMessage(n *commit, c *commitOptions, head oid) string {
	text, edit := r.givenMessage(n, c, head)
	edit = (edit || c.edit || c.editReuse) && !c.noEdit
	cleanup := c.cleanup
	if cleanup == "" {
		cleanup, _ = r.config().get("commit.cleanup")
	}
	if cleanup == "" || cleanup == "default" {
		cleanup = "whitespace"
		if edit {
			cleanup = "strip"
		}
	}
	switch cleanup {
	case "whitespace", "strip", "verbatim", "scissors":
	default:
		r.fatal("Invalid cleanup mode %s", cleanup)
	}
	if c.signed {
		text = r.signOff(text, n.committer)
	}
	for _, t := range c.trailers {
		k, v, _ := strings.Cut(t, "=")
		if kk, vv, ok := strings.Cut(t, ":"); ok && !strings.Contains(kk, "=") {
			k, v = kk, vv
		}
		text = addTrailer(text, k+": "+strings.TrimSpace(v))
	}
	if cleanup != "verbatim" {
		text = stripspace(text, false)
	}
	file := r.dir + "/COMMIT_EDITMSG"
	shown := text
	if edit {
		shown = text + "\n" + r.template(n, c, cleanup)
	}
	r.must(r.overwrite(file, shown))
	if !r.hook("prepare-commit-msg", append([]string{r.relGit(file)}, prepareSource(c)...)...) {
		r.t.Exit(1)
	}
	if edit && !r.edit(r.relGit(file)) {
		r.say("Please supply the message using either -m or -F option.")
		r.t.Exit(1)
	}
	if !c.noVerify && !r.hook("commit-msg", r.relGit(file)) {
		r.t.Exit(1)
	}
	b, err := r.t.ReadFile(file, maxSmall)
	r.must(err)
	text = string(b)
	switch cleanup {
	case "verbatim":
		return text
	case "scissors":
		if i := strings.Index("\n"+text, "\n# ------------------------ >8 ------------------------"); i >= 0 {
			text = text[:i]
		}
		return stripspace(text, false)
	}
	return stripspace(text, cleanup == "strip")
}

// relGit is a file of the repository's folder as hooks and editors get it.
func (r *repo) relGit(file string) string {
	if rest, ok := strings.CutPrefix(file, r.root+"/"); ok && r.root != "" {
		return rest
	}
	return file
}

func prepareSource(c *commitOptions) []string {
	switch {
	case c.hasMessage || c.hasFile:
		return []string{"message"}
	case c.reuse != "":
		return []string{"commit", c.reuse}
	case c.amend:
		return []string{"commit", "HEAD"}
	}
	return nil
}

// overwrite replaces a file's content.
func (r *repo) overwrite(file, text string) error {
	f, err := r.t.Create(file)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// givenMessage is the message before it is edited; edit tells whether git would open the editor.
func (r *repo) givenMessage(n *commit, c *commitOptions, head oid) (text string, edit bool) {
	read := func(name string) (string, bool) {
		b, err := r.t.ReadFile(r.dir+"/"+name, maxSmall)
		return string(b), err == nil
	}
	switch {
	case c.fixup != "":
		kind, rev, ok := strings.Cut(c.fixup, ":")
		if !ok {
			kind, rev = "fixup", c.fixup
		}
		if kind == "reword" {
			kind = "amend"
		}
		text = kind + "! " + r.readCommit(r.commitRev(rev)).subject() + "\n"
		if len(c.messages) > 0 {
			text += "\n" + strings.Join(c.messages, "\n\n") + "\n"
		}
		return text, false
	case c.squashOf != "":
		text = "squash! " + r.readCommit(r.commitRev(c.squashOf)).subject() + "\n"
		if !c.hasMessage {
			return text, true
		}
		return text + "\n" + strings.Join(c.messages, "\n\n") + "\n", false
	case c.hasMessage:
		for i, m := range c.messages {
			if i > 0 {
				text += "\n"
			}
			text += strings.TrimSuffix(m, "\n") + "\n"
		}
		return text, false
	case c.hasFile:
		if c.file == "-" {
			b, err := io.ReadAll(io.LimitReader(r.t.Stdin(), maxSmall))
			if err != nil {
				r.fatal("could not read log from standard input")
			}
			return string(b), false
		}
		b, err := r.t.ReadFile(c.file, maxSmall)
		if err != nil {
			r.fatal("could not read log file '%s': %s", c.file, strerror(err))
		}
		return string(b), false
	case c.reuse != "":
		return r.readCommit(r.commitRev(c.reuse)).message, false
	case c.amend:
		return r.readCommit(head).message, true
	}
	if m, ok := read("MERGE_MSG"); ok {
		if s, ok := read("SQUASH_MSG"); ok {
			m = s + m
		}
		return m, true
	}
	if s, ok := read("SQUASH_MSG"); ok {
		return s, true
	}
	if f, ok := r.config().get("commit.template"); ok {
		b, _ := r.t.ReadFile(r.homePath(f), maxSmall)
		return string(b), true
	}
	return "", true
}

// template is the comment that the editor shows below the message.
func (r *repo) template(n *commit, c *commitOptions, cleanup string) string {
	var b strings.Builder
	if r.gitFileExists("MERGE_HEAD") {
		b.WriteString("#\n# It looks like you may be committing a merge.\n# If this is not correct, please run\n#\tgit update-ref -d MERGE_HEAD\n# and try again.\n\n\n")
	}
	if cleanup == "strip" {
		b.WriteString("# Please enter the commit message for your changes. Lines starting\n# with '#' will be ignored, and an empty message aborts the commit.\n")
	} else {
		b.WriteString("# Please enter the commit message for your changes. Lines starting\n# with '#' will be kept; you may remove them yourself if you want to.\n# An empty message aborts the commit.\n")
	}
	if n.author.name != n.committer.name || n.author.email != n.committer.email {
		b.WriteString("#\n# Author:    " + n.author.name + " <" + n.author.email + ">\n")
	}
	if c.amend {
		b.WriteString("#\n# Date:      " + r.formatDate(n.author.when, "") + "\n")
	}
	b.WriteString("#\n")
	if c.noStatus {
		return b.String()
	}
	o := c.status
	o.format, o.template, o.amend = "long", true, c.amend
	s := r.state(&o, nil)
	hints := r.overrides
	r.overrides = append(append([]setting(nil), hints...), setting{key: "advice.statushints", value: "false"})
	r.conf = nil
	text, _ := r.longText(&o, s)
	r.overrides, r.conf = hints, nil
	for _, line := range strings.SplitAfter(text, "\n") {
		switch {
		case line == "":
		case line == "\n":
			b.WriteString("#\n")
		case line[0] == '\t':
			b.WriteString("#" + line)
		default:
			b.WriteString("# " + line)
		}
	}
	return b.String()
}

// signOff adds a Signed-off-by line unless it is the last already.
func (r *repo) signOff(text string, who ident) string {
	return addTrailer(text, "Signed-off-by: "+who.name+" <"+who.email+">")
}

// addTrailer appends a line to the trailers of a message.
func addTrailer(text, line string) string {
	text = strings.TrimRight(text, "\n")
	list := trailers(text)
	if len(list) > 0 {
		if list[len(list)-1] == line {
			return text + "\n"
		}
		return text + "\n" + line + "\n"
	}
	if text == "" {
		return "\n\n" + line + "\n"
	}
	return text + "\n\n" + line + "\n"
}
