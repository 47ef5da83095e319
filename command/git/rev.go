package git

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// rev resolves an expression such as HEAD~2^{tree}, main@{1}, v1.0:path, :0:path or abc1234 to an object.
func (r *repo) rev(s string) (oid, error) {
	unknown := fmt.Errorf("ambiguous argument '%s': unknown revision or path not in the working tree.\nUse '--' to separate paths from revisions, like this:\n'git <command> [<revision>...] -- [<file>...]'", s)
	if strings.HasPrefix(s, ":/") {
		return r.searchMessage(s[2:], nil, unknown)
	}
	if strings.HasPrefix(s, ":") {
		return r.indexPath(s[1:], unknown)
	}
	expr, file, hasPath := strings.Cut(s, ":")
	if i := strings.Index(s, "^{/"); i >= 0 && i < len(expr) {
		expr, file, hasPath = s, "", false
	}
	base, rest := cutBase(expr)
	id, err := r.baseRev(base, unknown)
	if err != nil {
		return id, err
	}
	if id, err = r.climb(id, rest, unknown); err != nil || !hasPath {
		return id, err
	}
	tree, err := r.peel(id, treeObj)
	if err != nil {
		return id, unknown
	}
	given := file
	file = r.fromRoot(file)
	e, ok := r.lookup(tree, file)
	if !ok {
		if _, under := r.lookup(tree, r.prefix+given); under && r.prefix != "" && given == file {
			return id, fmt.Errorf("path '%s' exists, but not '%s'\nhint: Did you mean '%s:%s' aka '%[3]s:./%[2]s'?", r.prefix+given, given, expr, r.prefix+given)
		}
		if _, err := r.t.Lstat(r.file(file)); err == nil && r.root != "" {
			if strings.HasSuffix(given, "/") {
				file += "/"
			}
			return id, fmt.Errorf("path '%s' exists on disk, but not in '%s'", file, expr)
		}
		return id, fmt.Errorf("path '%s' does not exist in '%s'", file, expr)
	}
	return e.id, nil
}

// cutBase separates a name from the steps that follow it.
func cutBase(s string) (base, rest string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '^' || s[i] == '~' {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// fromRoot makes a path of an expression relative to the work tree's root: ./x is relative to the directory.
func (r *repo) fromRoot(p string) string {
	if strings.HasPrefix(p, "./") || strings.HasPrefix(p, "../") || p == "." {
		if rel, ok := r.relative(p); ok {
			return rel
		}
	}
	return strings.TrimSuffix(p, "/")
}

func (r *repo) indexPath(s string, unknown error) (oid, error) {
	stage := 0
	if len(s) > 2 && s[1] == ':' && s[0] >= '0' && s[0] <= '3' {
		stage, s = int(s[0]-'0'), s[2:]
	}
	p := r.fromRoot(s)
	for _, e := range r.index().entries {
		if e.path == p && e.stage() == stage {
			return e.id, nil
		}
	}
	if _, err := r.t.Lstat(r.file(p)); err == nil && r.root != "" {
		return oid{}, fmt.Errorf("path '%s' exists on disk, but not in the index", p)
	}
	return oid{}, fmt.Errorf("path '%s' does not exist (neither on disk nor in the index)", p)
}

// baseRev resolves a name without steps: a reference, with @{...}, or a hash's beginning.
func (r *repo) baseRev(s string, unknown error) (oid, error) {
	if i := strings.Index(s, "@{"); i >= 0 && strings.HasSuffix(s, "}") {
		return r.logRev(s[:i], s[i+2:len(s)-1], unknown)
	}
	if id, ok := parseOID(s); ok {
		return id, nil
	}
	if _, id, ok := r.expandRef(s); ok {
		return id, nil
	}
	// What git describe prints: tag-N-gHASH.
	if i := strings.LastIndex(s, "-g"); i > 0 && len(s)-i-2 >= 4 {
		if id, err := r.abbreviated(s[i+2:]); err == nil {
			return id, nil
		}
	}
	if id, err := r.abbreviated(s); err == nil {
		return id, nil
	} else if err == errAmbiguous {
		return id, fmt.Errorf("short object ID %s is ambiguous", s)
	}
	return oid{}, unknown
}

// logRev resolves REF@{N}, REF@{upstream} and @{-N}.
func (r *repo) logRev(name, arg string, unknown error) (oid, error) {
	switch arg {
	case "u", "upstream", "push":
		if up := r.upstream(r.branchName(name)); up != "" {
			if _, id, ok := r.resolveRef(up); ok {
				return id, nil
			}
		}
		return oid{}, fmt.Errorf("no upstream configured for branch '%s'", shortRef(r.branchName(name)))
	}
	n, err := strconv.Atoi(arg)
	if err != nil {
		t, ok := r.parseDate(arg)
		if !ok {
			return oid{}, unknown
		}
		full := r.branchName(name)
		list := r.reflog(full)
		for i := len(list) - 1; i >= 0; i-- {
			if !list[i].who.when.After(t) {
				return list[i].id, nil
			}
		}
		if len(list) > 0 {
			return list[0].id, nil
		}
		return oid{}, unknown
	}
	if n < 0 && name == "" {
		b := r.previousBranch(-n)
		if b == "" {
			return oid{}, unknown
		}
		return r.baseRev(b, unknown)
	}
	full := "HEAD"
	if name != "" {
		var ok bool
		if full, _, ok = r.expandRef(name); !ok {
			return oid{}, unknown
		}
		if name == "HEAD" {
			full = "HEAD"
		}
	} else if b, _ := r.head(); b != "" {
		full = b
	}
	list := r.reflog(full)
	switch {
	case n < 0 || n > len(list):
		return oid{}, fmt.Errorf("log for '%s' only has %d entries", s2(name, full), len(list))
	case n < len(list):
		return list[len(list)-1-n].id, nil
	case n > 0 && n == len(list) && !list[0].old.isZero():
		return list[0].old, nil
	case n == 0:
		if _, id, ok := r.resolveRef(full); ok {
			return id, nil
		}
	}
	return oid{}, fmt.Errorf("log for '%s' only has %d entries", s2(name, full), len(list))
}

func s2(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// branchName is the full name of a branch; "" and HEAD are the current one.
func (r *repo) branchName(name string) string {
	if name == "" || name == "HEAD" || name == "@" {
		b, _ := r.head()
		return b
	}
	if full, _, ok := r.expandRef(name); ok {
		return full
	}
	return "refs/heads/" + name
}

// previousBranch is the n-th branch checked out before, from HEAD's log.
func (r *repo) previousBranch(n int) string {
	list := r.reflog("HEAD")
	for i := len(list) - 1; i >= 0; i-- {
		if m, ok := strings.CutPrefix(list[i].message, "checkout: moving from "); ok {
			if n--; n == 0 {
				from, _, _ := strings.Cut(m, " to ")
				return from
			}
		}
	}
	return ""
}

var errAmbiguous = fmt.Errorf("ambiguous")

// abbreviated finds the object whose hash begins with at least 4 hexadecimal digits.
func (r *repo) abbreviated(s string) (oid, error) {
	s = strings.ToLower(s)
	if len(s) < 4 || len(s) > 40 || strings.Trim(s, "0123456789abcdef") != "" {
		return oid{}, errMissing
	}
	found := r.prefixed(s)
	if len(found) > 1 {
		// Commits win where a commit is likely meant.
		var commits []oid
		for _, id := range found {
			if k, _, err := r.readObject(id); err == nil && k == commitObj {
				commits = append(commits, id)
			}
		}
		if len(commits) == 1 {
			return commits[0], nil
		}
		return oid{}, errAmbiguous
	}
	if len(found) == 0 {
		return oid{}, errMissing
	}
	return found[0], nil
}

// prefixed lists the objects whose hashes begin with digits, sorted.
func (r *repo) prefixed(s string) []oid {
	set := map[oid]bool{}
	for _, dir := range r.objectDirs() {
		list, err := r.t.ReadDir(dir + "/" + s[:2])
		if err != nil {
			continue
		}
		for _, e := range list {
			if id, ok := parseOID(s[:2] + e.Name); ok && strings.HasPrefix(id.String(), s) {
				set[id] = true
			}
		}
	}
	first, _ := hex.DecodeString(s[:2])
	r.loadPacks()
	even, _ := hex.DecodeString(s[:len(s)&^1])
	for _, p := range r.packs {
		lo, hi := p.span(first[0])
		i := lo + sort.Search(hi-lo, func(i int) bool { return bytes.Compare(p.name(lo+i), even) >= 0 })
		for ; i < hi && strings.HasPrefix(hex.EncodeToString(p.name(i)), s); i++ {
			set[oid(p.name(i))] = true
		}
	}
	list := make([]oid, 0, len(set))
	for id := range set {
		list = append(list, id)
	}
	sort.Slice(list, func(i, j int) bool { return bytes.Compare(list[i][:], list[j][:]) < 0 })
	return list
}

// abbrev is an object's hash, shortened as far as it stays unique; 7 digits at least.
func (r *repo) abbrev(id oid) string { return r.abbrevN(id, r.minAbbrev()) }

func (r *repo) abbrevN(id oid, n int) string {
	s := id.String()
	if id.isZero() || n >= 40 {
		return s[:min(n, 40)]
	}
	for ; n < 40; n++ {
		if len(r.prefixed(s[:n])) <= 1 {
			break
		}
	}
	return s[:n]
}

// minAbbrev follows the number of packed objects, as git does: half its bits, rounded up, at least 7 digits.
func (r *repo) minAbbrev() int {
	if v, ok := r.config().get("core.abbrev"); ok {
		if n, err := strconv.Atoi(v); err == nil && n >= 4 && n <= 40 {
			return n
		}
	}
	r.loadPacks()
	count := 0
	for _, p := range r.packs {
		count += p.n
	}
	bits := 0
	for ; count > 0; count >>= 1 {
		bits++
	}
	return max(7, (bits+1)/2)
}

// climb takes the steps after a name: ~N, ^N, ^{kind}, ^{/text}.
func (r *repo) climb(id oid, steps string, unknown error) (oid, error) {
	for steps != "" {
		op := steps[0]
		steps = steps[1:]
		if op == '^' && strings.HasPrefix(steps, "{") {
			what, rest, ok := strings.Cut(steps[1:], "}")
			if !ok {
				return id, unknown
			}
			steps = rest
			var err error
			if text, search := strings.CutPrefix(what, "/"); search {
				id, err = r.searchMessage(text, &id, unknown)
			} else if what == "" {
				id, err = r.peel(id, 0)
			} else if k, ok := parseKind(what); ok {
				id, err = r.peel(id, k)
			} else if what != "object" {
				err = unknown
			}
			if err != nil {
				return id, unknown
			}
			continue
		}
		digits := len(steps) - len(strings.TrimLeft(steps, "0123456789"))
		n := 1
		if digits > 0 {
			var err error
			if n, err = strconv.Atoi(steps[:digits]); err != nil {
				return id, unknown
			}
		}
		steps = steps[digits:]
		var err error
		if id, err = r.peel(id, commitObj); err != nil {
			return id, unknown
		}
		if op == '^' {
			if n == 0 {
				continue
			}
			c := r.readCommit(id)
			if n > len(c.parents) {
				return id, unknown
			}
			id = c.parents[n-1]
			continue
		}
		for ; n > 0; n-- {
			c := r.readCommit(id)
			if len(c.parents) == 0 {
				return id, unknown
			}
			id = c.parents[0]
		}
	}
	return id, nil
}

// searchMessage finds the youngest commit whose message contains a text.
func (r *repo) searchMessage(text string, from *oid, unknown error) (oid, error) {
	var tips []oid
	if from != nil {
		id, err := r.peel(*from, commitObj)
		if err != nil {
			return id, unknown
		}
		tips = []oid{id}
	} else {
		tips = r.allTips()
	}
	w := r.walk(tips, nil)
	for c := w.next(); c != nil; c = w.next() {
		if strings.Contains(c.message, text) {
			return c.id, nil
		}
	}
	return oid{}, unknown
}

// allTips are the commits that all references and HEAD lead to.
func (r *repo) allTips() (tips []oid) {
	if _, id := r.head(); !id.isZero() {
		tips = append(tips, id)
	}
	for _, f := range r.refs("refs/") {
		if id, err := r.peel(f.id, commitObj); err == nil {
			tips = append(tips, id)
		}
	}
	return tips
}

// commitRev resolves an expression to a commit, or ends the command.
func (r *repo) commitRev(s string) oid {
	id, err := r.rev(s)
	if err == nil {
		id, err = r.peel(id, commitObj)
	}
	if err != nil {
		r.fatal("%s", err)
	}
	return id
}

// treeRev resolves an expression to a tree, or ends the command.
func (r *repo) treeRev(s string) oid {
	id, err := r.rev(s)
	if err == nil {
		id, err = r.peel(id, treeObj)
	}
	if err != nil {
		r.fatal("%s", err)
	}
	return id
}

// lookup finds a path in a tree; "" is the tree itself.
func (r *repo) lookup(tree oid, p string) (treeEntry, bool) {
	e := treeEntry{mode: modeTree, id: tree}
	if p == "" {
		return e, true
	}
	for _, part := range strings.Split(p, "/") {
		if e.mode != modeTree {
			return e, false
		}
		found := false
		for _, c := range r.readTree(e.id) {
			if c.name == part {
				e, found = c, true
				break
			}
		}
		if !found {
			return e, false
		}
	}
	return e, true
}
