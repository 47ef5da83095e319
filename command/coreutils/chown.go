package coreutils

import (
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

func ownerSpec(what string) tool.Spec {
	usage := []string{"[OPTION]... [OWNER][:[GROUP]] FILE...", "[OPTION]... --reference=RFILE FILE..."}
	if what == "group" {
		usage[0] = "[OPTION]... GROUP FILE..."
	}
	return tool.Spec{
		Usage: usage, About: "Change the " + what + " of each FILE.",
		Options: []getopt.Option{
			{Short: 'c', Long: "changes", Help: "like verbose but report only when a change is made"},
			{Short: 'f', Long: "silent", Help: "suppress most error messages"},
			{Long: "quiet", Key: 'f'},
			{Short: 'v', Long: "verbose", Help: "output a diagnostic for every file processed"},
			{Long: "dereference", Key: keyDereference, Help: "affect the referent of each symbolic link (this is the default)"},
			{Short: 'h', Long: "no-dereference", Help: "affect symbolic links instead of any referenced file"},
			{Long: "from", Key: keyFrom, Arg: getopt.Required, Name: "OWNER:GROUP", Help: "change only if the current owner and/or group match"},
			{Long: "no-preserve-root", Key: keyChNoPreserve, Help: "do not treat '/' specially (the default)"},
			{Long: "preserve-root", Key: keyChPreserve, Help: "fail to operate recursively on '/'"},
			{Long: "reference", Key: keyReference, Arg: getopt.Required, Name: "RFILE", Help: "use RFILE's owner and group"},
			{Short: 'R', Long: "recursive", Help: "operate on files and directories recursively"},
			{Short: 'H'}, {Short: 'L'}, {Short: 'P'},
		},
		Package: tool.Coreutils,
	}
}

type owner struct {
	t                                *tool.T
	uid, gid, fromUID, fromGID       *uint32
	text                             string
	group                            bool
	quiet, verbose, changes, recurse bool
	noFollow, failed                 bool
}

// Chown changes owners.
func Chown(t *tool.T) int { return changeOwner(t, false) }

// Chgrp changes groups.
func Chgrp(t *tool.T) int { return changeOwner(t, true) }

func changeOwner(t *tool.T, group bool) int {
	spec := ownerSpec(map[bool]string{false: "owner and/or group", true: "group"}[group])
	opts, files := t.Parse(&spec)
	c := owner{t: t, group: group}
	ref := ""
	for _, o := range opts {
		switch o.Key {
		case 'c':
			c.changes = true
		case 'f':
			c.quiet = true
		case 'v':
			c.verbose = true
		case 'h':
			c.noFollow = true
		case keyDereference:
			c.noFollow = false
		case keyFrom:
			c.fromUID, c.fromGID = ownerNames(t, o.Arg)
		case keyReference:
			ref = o.Arg
		case 'R':
			c.recurse = true
		}
	}
	if len(files) == 0 {
		t.Missing(1)
	}
	if ref != "" {
		a, err := t.Stat(ref)
		if err != nil {
			t.Fatal(1, "failed to get attributes of %s: %s", tool.QuoteAF(ref), tool.Strerror(err))
		}
		c.gid = &a.GID
		if !group {
			c.uid = &a.UID
		}
	} else {
		if len(files) == 1 {
			t.UsageError(1, "missing operand after %s", tool.Quote(files[0]))
		}
		c.text, files = files[0], files[1:]
		if group {
			c.gid = groupName(t, c.text, c.text)
		} else {
			c.uid, c.gid = ownerNames(t, c.text)
		}
	}
	for _, f := range files {
		c.change(f)
	}
	return status(c.failed)
}

// ownerNames reads OWNER[:[GROUP]].
func ownerNames(t *tool.T, s string) (uid, gid *uint32) {
	user, group, has := strings.Cut(s, ":")
	if !has {
		if u, g, dot := strings.Cut(s, "."); dot {
			if _, ok := t.Accounts().LookupUID(s); !ok {
				user, group, has = u, g, true
			}
		}
	}
	if user != "" {
		id, ok := t.Accounts().LookupUID(user)
		if !ok {
			t.Fatal(1, "invalid user: %s", tool.Quote(s))
		}
		uid = &id
		if has && group == "" {
			u := t.Accounts().UserByID(id)
			if u == nil {
				t.Fatal(1, "invalid spec: %s", tool.Quote(s))
			}
			gid = &u.GID
		}
	}
	if group != "" {
		gid = groupName(t, group, s)
	}
	return uid, gid
}

func groupName(t *tool.T, name, whole string) *uint32 {
	if name == "" {
		return nil
	}
	id, ok := t.Accounts().LookupGID(name)
	if !ok {
		t.Fatal(1, "invalid group: %s", tool.Quote(whole))
	}
	return &id
}

func (c *owner) change(name string) {
	c.t.Check()
	look := c.t.Stat
	if c.noFollow {
		look = c.t.Lstat
	}
	a, err := look(name)
	if err != nil {
		c.failed = true
		if !c.quiet {
			c.t.Warn("cannot access %s: %s", tool.QuoteAF(name), tool.Strerror(err))
		}
		return
	}
	if (c.fromUID == nil || *c.fromUID == a.UID) && (c.fromGID == nil || *c.fromGID == a.GID) {
		if err := c.t.SetAttr(name, vfs.SetAttr{UID: c.uid, GID: c.gid}, !c.noFollow); err != nil {
			c.failed = true
			if !c.quiet {
				what := "ownership"
				if c.group || c.uid == nil {
					what = "group"
				}
				c.t.Warn("changing %s of %s: %s", what, tool.QuoteAF(name), tool.Strerror(err))
			}
		} else {
			c.report(name, a)
		}
	}
	if !c.recurse || !a.Mode.IsDir() {
		return
	}
	entries, err := c.t.ReadDir(name)
	if err != nil {
		c.failed = true
		c.t.Warn("cannot read directory %s: %s", tool.QuoteAF(name), tool.Strerror(err))
		return
	}
	deep := *c
	deep.noFollow = true // below an operand links are never followed
	for _, e := range entries {
		deep.change(joinPath(name, e.Name))
	}
	c.failed = c.failed || deep.failed
}

func (c *owner) report(name string, a vfs.Attr) {
	changed := c.uid != nil && *c.uid != a.UID || c.gid != nil && *c.gid != a.GID
	if !c.verbose && !(c.changes && changed) {
		return
	}
	acc := c.t.Accounts()
	from, to, what := acc.UserName(a.UID)+":"+acc.GroupName(a.GID), "", "ownership"
	switch {
	case c.uid != nil && c.gid != nil:
		to = acc.UserName(*c.uid) + ":" + acc.GroupName(*c.gid)
	case c.uid != nil:
		from, to = acc.UserName(a.UID), acc.UserName(*c.uid)
	case c.gid != nil:
		from, to, what = acc.GroupName(a.GID), acc.GroupName(*c.gid), "group"
	}
	if changed {
		c.t.Out.WriteString("changed " + what + " of " + tool.QuoteAF(name) + " from " + from + " to " + to + "\n")
	} else {
		c.t.Out.WriteString(what + " of " + tool.QuoteAF(name) + " retained as " + from + "\n")
	}
}
