// Package tree is tree, as tree 2.1.0.
//
// A node is a file that is shown. A directory's nodes are read when it is printed, so that only those of the directories
// above are in memory; with --prune, which must look ahead, a starting point is read as a whole.
package tree

import (
	"sort"
	"strings"
	"time"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	maxDepth = 4000    // directories below each other
	maxNodes = 1 << 20 // held at once with --prune
)

// lister is a running tree.
type lister struct {
	t                                          *tool.T
	all, dirs, full, classify, human, size     bool
	perm, date, json, flat, reverse, byTime    bool
	literal, quote, dirsFirst, filesFirst      bool
	prune, report, fold                        bool
	depth                                      int
	only, ignore                               []string
	now                                        time.Time
	style                                      [4]string // more below, blank, a file, the last file
	utf8                                       bool
	dirCount, fileCount, nodes, status, indent int
}

// node is a file that is shown.
type node struct {
	name, path string
	attr       vfs.Attr
	target     string   // of a symbolic link
	targetMode vfs.Mode // of what it leads to, zero if that is nothing
	children   []*node  // if loaded
	loaded     bool
	failed     bool
}

func (n *node) isDir() bool { return n.attr.Mode.IsDir() }

// dirLike tells whether a file counts as a directory: it is one or a link to one.
func (n *node) dirLike() bool { return n.isDir() || n.targetMode.IsDir() }

// Tree lists directories as trees.
func Tree(t *tool.T) int {
	l := &lister{t: t, report: true, now: t.Now()}
	l.style = [4]string{"|   ", "    ", "|-- ", "`-- "}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(t.Getenv(name)); v != "" {
			if l.utf8 = strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8"); l.utf8 {
				l.style = [4]string{"│\u00a0\u00a0 ", "    ", "├── ", "└── "}
			}
			break
		}
	}
	roots := l.parse(t.Args()[1:])
	if len(roots) == 0 {
		roots = []string{"."}
	}
	l.prune = l.prune && !l.dirs
	if l.json {
		t.Out.WriteString("[" + l.newline())
	}
	for i, name := range roots {
		l.root(name, i)
	}
	l.end()
	return l.status
}

// root lists a starting point.
func (l *lister) root(name string, index int) {
	n := &node{name: name, path: name}
	if trimmed := strings.TrimRight(name, "/"); trimmed != "" {
		n.path = trimmed
	}
	var err error
	n.attr, err = l.t.Lstat(name)
	missing := err != nil
	if !missing {
		if n.attr.Mode.IsSymlink() {
			if a, err := l.t.Stat(name); err == nil {
				n.attr = a
			}
		}
		l.load(n, 0)
	}
	if l.json {
		l.jsonRoot(n, missing, index)
		return
	}
	l.line(n, missing)
	switch {
	case missing:
		l.status = 2
		l.t.Out.WriteString("  [error opening dir]\n")
	case n.failed || !n.isDir():
		l.t.Out.WriteString("  [error opening dir]\n")
		if !n.isDir() {
			l.fileCount++
		}
	default:
		l.t.Out.WriteByte('\n')
		if len(n.children) > 0 {
			l.dirCount++
		}
		l.below(n, "", 1)
	}
}

// below prints what a directory holds.
func (l *lister) below(n *node, prefix string, depth int) {
	for i, c := range n.children {
		branch, more := l.style[2], l.style[0]
		if i == len(n.children)-1 {
			branch, more = l.style[3], l.style[1]
		}
		if !l.flat {
			l.t.Out.WriteString(prefix + branch)
		}
		l.line(c, false)
		l.count(c)
		if c.isDir() && (l.depth == 0 || depth < l.depth) {
			l.load(c, depth)
			if c.failed {
				l.status = 2
				l.t.Out.WriteString("  [error opening dir]")
			}
		}
		l.t.Out.WriteByte('\n')
		l.below(c, prefix+more, depth+1)
		n.children[i] = nil
	}
}

func (l *lister) count(n *node) {
	if n.dirLike() {
		l.dirCount++
	} else {
		l.fileCount++
	}
}

// load reads a directory's nodes, in order. With --prune it reads all below too, and leaves out what is empty.
func (l *lister) load(n *node, depth int) {
	if n.loaded || !n.isDir() {
		return
	}
	n.loaded = true
	l.step()
	list, err := l.t.ReadDir(n.path)
	if err != nil || depth > maxDepth {
		n.failed = true
		return
	}
	for _, e := range list {
		l.step()
		c, ok := l.node(n, e.Name)
		if !ok {
			continue
		}
		if l.prune {
			if c.isDir() && (l.depth == 0 || depth+1 < l.depth) {
				l.load(c, depth+1)
			}
			if c.dirLike() && len(c.children) == 0 {
				continue
			}
			if l.nodes++; l.nodes > maxNodes {
				l.t.Fatal(1, "virtual memory exhausted.")
			}
		}
		n.children = append(n.children, c)
	}
	sort.SliceStable(n.children, func(i, j int) bool { return l.before(n.children[i], n.children[j]) })
}

func (l *lister) step() {
	if l.t.Step(1) != nil {
		l.t.Check()
	}
}

// node looks at a file; ok is false if the options leave it out or it is gone.
func (l *lister) node(parent *node, name string) (n *node, ok bool) {
	if !l.all && name[0] == '.' {
		return nil, false
	}
	n = &node{name: name, path: strings.TrimSuffix(parent.path, "/") + "/" + name}
	var err error
	if n.attr, err = l.t.Lstat(n.path); err != nil {
		return nil, false
	}
	if n.attr.Mode.IsSymlink() {
		n.target, _ = l.t.Readlink(n.path)
		if a, err := l.t.Stat(n.path); err == nil {
			n.targetMode = a.Mode
		}
	}
	if l.dirs && !n.dirLike() || len(l.only) > 0 && !n.isDir() && !l.matches(l.only, n) || l.matches(l.ignore, n) {
		return nil, false
	}
	return n, true
}

// matches applies patterns, whose alternatives are separated by bars; one that ends with a slash is for directories.
func (l *lister) matches(patterns []string, n *node) bool {
	var flags tool.GlobFlags
	if l.fold {
		flags = tool.GlobFold
	}
	for _, list := range patterns {
		for _, p := range strings.Split(list, "|") {
			if q := strings.TrimSuffix(p, "/"); q != p && !n.dirLike() {
				continue
			} else if tool.Glob(q, n.name, flags) {
				return true
			}
		}
	}
	return false
}

func (l *lister) before(a, b *node) bool {
	if (l.dirsFirst || l.filesFirst) && a.dirLike() != b.dirLike() {
		return a.dirLike() == l.dirsFirst
	}
	if l.byTime && a.attr.Mtime.Unix() != b.attr.Mtime.Unix() {
		return (a.attr.Mtime.Unix() < b.attr.Mtime.Unix()) != l.reverse
	}
	return (a.name < b.name) != l.reverse && a.name != b.name
}
