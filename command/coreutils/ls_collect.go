package coreutils

import (
	"errors"
	"sort"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// lsEntry is a file to list.
type lsEntry struct {
	name    string // shown
	path    string
	attr    vfs.Attr
	statErr bool // a directory's entry that can't be looked at
	target  string
	linkOK  bool     // a symbolic link's target exists
	linked  vfs.Attr // the target's attributes
	shown   string   // name, quoted
	quoted  bool
	width   int
}

func (l *lister) fail(status int) { l.status = max(l.status, status) }

// run lists the operands: files first, then directories.
func (l *lister) run(files []string) int {
	if len(files) == 0 {
		files = []string{"."}
	}
	var plain, dirs []*lsEntry
	for _, f := range files {
		e := &lsEntry{name: f, path: f}
		if err := l.stat(e, true); err != nil {
			l.t.Warn("cannot access %s: %s", tool.QuoteAF(f), tool.Strerror(err))
			l.fail(2)
			continue
		}
		if e.attr.Mode.IsDir() && !l.dirSelf {
			dirs = append(dirs, e)
		} else {
			plain = append(plain, e)
		}
	}
	l.order(plain)
	l.order(dirs)
	if len(plain) > 0 {
		l.print(plain)
		l.printed = true
	}
	headers := l.recursive || len(files) > 1
	for _, d := range dirs {
		l.directory(d.path, d.attr, headers, true)
	}
	return l.status
}

// stat fills in an entry's attributes, following a symbolic link if the options say so.
func (l *lister) stat(e *lsEntry, operand bool) error {
	var err error
	e.attr, err = l.t.Lstat(e.path)
	if err != nil {
		return err
	}
	if !e.attr.Mode.IsSymlink() {
		return nil
	}
	target, terr := l.t.Stat(e.path)
	e.linkOK, e.linked = terr == nil, target
	follow := l.follow == 'L' || operand && (l.follow == 'H' || l.follow == 'd' && terr == nil && target.Mode.IsDir())
	switch {
	case follow && terr == nil:
		e.attr = target
		return nil
	case follow:
		return terr
	case operand && l.follow == 'd' && terr != nil && !tool.IsNotExist(terr):
		return terr
	}
	e.target, _ = l.t.Readlink(e.path)
	return nil
}

// needStat reports whether names and types alone aren't enough.
func (l *lister) needStat() bool {
	return l.format == 'l' || l.inode || l.blocks || l.sort == 'S' || l.sort == 't' || l.indicator == 'F' || l.color != nil ||
		l.follow == 'L' && (l.recursive || l.indicator != 0 || l.groupDirs)
}

func (l *lister) ignored(name string) bool {
	if !l.all && !l.almost {
		if name[0] == '.' {
			return true
		}
		for _, p := range l.hide {
			if tool.Glob(p, name, tool.GlobPeriod) {
				return true
			}
		}
	}
	if !l.all && (name == "." || name == "..") {
		return true
	}
	if l.backups && strings.HasSuffix(name, "~") {
		return true
	}
	for _, p := range l.ignore {
		if tool.Glob(p, name, tool.GlobPeriod) {
			return true
		}
	}
	return false
}

// directory lists a directory, and with -R those below it.
func (l *lister) directory(dir string, a vfs.Attr, header, operand bool) {
	l.t.Check()
	id := inode{a.Dev, a.Ino}
	for _, above := range l.stack {
		if above == id {
			l.t.Warn("%s: not listing already-listed directory", tool.QuoteF(dir))
			l.fail(2)
			return
		}
	}
	list, err := l.t.ReadDir(dir)
	if err != nil {
		what := "cannot open directory %s: %s"
		l.t.Warn(what, tool.QuoteAF(dir), tool.Strerror(err))
		l.fail(1)
		if operand {
			l.fail(2)
		}
		return
	}
	entries := make([]*lsEntry, 0, len(list)+2)
	if l.all {
		for _, name := range []string{".", ".."} {
			if !l.ignored(name) {
				entries = append(entries, &lsEntry{name: name, path: joinPath(dir, name), attr: vfs.Attr{Mode: vfs.ModeDir}})
			}
		}
	}
	for _, d := range list {
		if !l.ignored(d.Name) {
			entries = append(entries, &lsEntry{name: d.Name, path: joinPath(dir, d.Name), attr: vfs.Attr{Mode: d.Mode & vfs.ModeType, Ino: d.Ino}})
		}
	}
	if l.needStat() {
		entries = l.statAll(dir, entries)
	}
	l.order(entries)
	if header {
		if l.printed {
			l.t.Out.WriteByte('\n')
		}
		shown, _ := l.quote(dir, ":")
		l.t.Out.WriteString(shown + ":\n")
	}
	l.printed = true
	if l.format == 'l' || l.blocks {
		var total uint64
		for _, e := range entries {
			total += uint64(e.attr.Blocks)
		}
		l.t.Out.WriteString("total " + l.blockSize.format(total*512))
		l.t.Out.WriteByte(l.eol)
	}
	l.print(entries)
	if !l.recursive {
		return
	}
	l.stack = append(l.stack, id)
	for _, e := range entries {
		if e.attr.Mode.IsDir() && e.name != "." && e.name != ".." {
			l.directory(e.path, e.attr, true, false)
		}
	}
	l.stack = l.stack[:len(l.stack)-1]
}

// statAll looks at every entry; those that vanished are left out, those that can't be looked at stay with a question mark.
func (l *lister) statAll(dir string, entries []*lsEntry) []*lsEntry {
	kept := entries[:0]
	for _, e := range entries {
		kind := e.attr.Mode
		if err := l.stat(e, false); err != nil {
			path := e.path
			if dir == "." {
				path = e.name
			}
			l.t.Warn("cannot access %s: %s", tool.QuoteAF(path), tool.Strerror(err))
			l.fail(1)
			if errors.Is(err, syscall.ENOENT) && !kind.IsSymlink() {
				continue
			}
			e.statErr = true
			e.attr.Mode = kind
		}
		kept = append(kept, e)
	}
	return kept
}

func (l *lister) timeOf(a *vfs.Attr) time.Time {
	switch l.time {
	case 'c':
		return a.Ctime
	case 'u':
		return a.Atime
	}
	return a.Mtime
}

func (l *lister) order(entries []*lsEntry) {
	if l.sort == 'U' { // directories aren't put first either
		return
	}
	compare := func(a, b *lsEntry) int { return strings.Compare(a.name, b.name) }
	byName := compare
	switch l.sort {
	case 'S':
		compare = func(a, b *lsEntry) int { return cmpInt(b.attr.Size, a.attr.Size) }
	case 't':
		compare = func(a, b *lsEntry) int { return l.timeOf(&b.attr).Compare(l.timeOf(&a.attr)) }
	case 'v':
		compare = func(a, b *lsEntry) int { return tool.CompareVersions(a.name, b.name) }
	case 'X':
		compare = func(a, b *lsEntry) int { return strings.Compare(extension(a.name), extension(b.name)) }
	case 'w':
		compare = func(a, b *lsEntry) int { return tool.StringWidth(a.name) - tool.StringWidth(b.name) }
	}
	sort.SliceStable(entries, func(i, j int) bool {
		c := compare(entries[i], entries[j])
		if c == 0 {
			c = byName(entries[i], entries[j])
		}
		if l.reverse {
			return c > 0
		}
		return c < 0
	})
	if l.groupDirs {
		l.dirsFirst(entries)
	}
}

func cmpInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func extension(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		return name[i:]
	}
	return ""
}

func (l *lister) dirsFirst(entries []*lsEntry) {
	isDir := func(e *lsEntry) bool {
		if e.attr.Mode.IsSymlink() {
			a, err := l.t.Stat(e.path)
			return err == nil && a.Mode.IsDir()
		}
		return e.attr.Mode.IsDir()
	}
	sort.SliceStable(entries, func(i, j int) bool { return isDir(entries[i]) && !isDir(entries[j]) })
}
