package git

import (
	"errors"
	"fmt"
	"path"
	"sort"
	"strings"
	"syscall"
)

// gitFile is where a reference or pseudo-reference lives.
func (r *repo) gitFile(name string) string {
	if strings.HasPrefix(name, "refs/") {
		return r.common + "/" + name
	}
	return r.dir + "/" + name
}

// validRef reports whether a full name may be one.
func validRef(name string) bool {
	if name == "" || name == "@" || strings.HasSuffix(name, "/") || strings.HasSuffix(name, ".") || strings.Contains(name, "..") || strings.Contains(name, "@{") ||
		strings.Contains(name, "//") || len(name) > 1000 {
		return false
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c == 0x7f || strings.IndexByte("~^:?*[\\", c) >= 0 {
			return false
		}
	}
	for _, part := range strings.Split(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

// validBranch reports whether a short name may be a branch's.
func validBranch(name string) bool {
	return name != "HEAD" && !strings.HasPrefix(name, "-") && validRef("refs/heads/"+name)
}

// readRef returns what a reference says: another reference or an object.
func (r *repo) readRef(name string) (target string, id oid, ok bool) {
	b, err := r.t.ReadFile(r.gitFile(name), maxSmall)
	if err == nil {
		s := strings.TrimSpace(string(b))
		if t, sym := strings.CutPrefix(s, "ref:"); sym {
			return strings.TrimSpace(t), id, true
		}
		if len(s) > 40 && (s[40] == ' ' || s[40] == '\t' || s[40] == '\n') {
			s = s[:40]
		}
		id, ok = parseOID(s)
		return "", id, ok
	}
	id, ok = r.packedRefs()[name]
	return "", id, ok
}

// resolveRef follows symbolic references. full is the last name, which may not exist yet.
func (r *repo) resolveRef(name string) (full string, id oid, ok bool) {
	for range 5 {
		target, id, ok := r.readRef(name)
		if !ok || target == "" {
			return name, id, ok
		}
		if !validRef(target) {
			return target, oid{}, false
		}
		name = target
	}
	return name, oid{}, false
}

func (r *repo) packedRefs() map[string]oid {
	if r.packed != nil {
		return r.packed
	}
	r.packed = map[string]oid{}
	b, err := r.t.ReadFile(r.common+"/packed-refs", maxIndexFile)
	if err != nil {
		return r.packed
	}
	for _, line := range strings.Split(string(b), "\n") {
		if len(line) > 41 && line[0] != '#' && line[0] != '^' {
			if id, ok := parseOID(line[:40]); ok && validRef(line[41:]) {
				r.packed[line[41:]] = id
			}
		}
	}
	return r.packed
}

// ref is a reference with its value.
type ref struct {
	name string
	id   oid
}

// refs lists all references below a prefix such as "refs/heads/", by name.
func (r *repo) refs(prefix string) []ref {
	found := map[string]oid{}
	for name, id := range r.packedRefs() {
		if strings.HasPrefix(name, prefix) {
			found[name] = id
		}
	}
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		list, err := r.t.ReadDir(r.common + "/" + dir)
		if err != nil || depth > 64 {
			return
		}
		for _, e := range list {
			name := dir + "/" + e.Name
			if e.Mode.IsDir() {
				walk(name, depth+1)
			} else if strings.HasPrefix(name, prefix) && validRef(name) {
				if _, id, ok := r.resolveRef(name); ok {
					found[name] = id
				}
			}
		}
	}
	walk(strings.TrimSuffix(path.Dir(prefix+"x"), "/"), 0)
	list := make([]ref, 0, len(found))
	for name, id := range found {
		list = append(list, ref{name, id})
	}
	sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	return list
}

// updateRef sets a reference (following a symbolic one) and notes it in its log and in HEAD's.
func (r *repo) updateRef(name string, id oid, reason string) {
	full, old, _ := r.resolveRef(name)
	r.setRef(full, id)
	r.logRef(full, old, id, reason)
	if head, _, ok := r.readRef("HEAD"); ok && head == full && full != "HEAD" {
		r.logRef("HEAD", old, id, reason)
	}
}

// setRef writes a reference without a log.
func (r *repo) setRef(full string, id oid) {
	file := r.gitFile(full)
	r.mkdirAll(path.Dir(file))
	if err := r.writeFile(file, []byte(id.String()+"\n"), 0o666); err != nil {
		r.fatal("cannot lock ref '%s': %s", full, strerror(err))
	}
}

// setHead makes HEAD a branch (full name), or detaches it.
func (r *repo) setHead(branch string, id oid, reason string) {
	_, old, _ := r.resolveRef("HEAD")
	text := id.String() + "\n"
	if branch != "" {
		text = "ref: " + branch + "\n"
	}
	if err := r.writeFile(r.dir+"/HEAD", []byte(text), 0o666); err != nil {
		r.fatal("cannot lock ref 'HEAD': %s", strerror(err))
	}
	if reason != "" {
		r.logRef("HEAD", old, id, reason)
	}
}

func (r *repo) deleteRef(full string) {
	err := r.t.Unlink(r.gitFile(full))
	if err != nil && !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ENOTDIR) {
		r.fatal("cannot lock ref '%s': %s", full, strerror(err))
	}
	if _, ok := r.packedRefs()[full]; ok {
		b, _ := r.t.ReadFile(r.common+"/packed-refs", maxIndexFile)
		var out strings.Builder
		skip := false
		for _, line := range strings.SplitAfter(string(b), "\n") {
			if !strings.HasPrefix(line, "^") {
				skip = len(line) > 41 && strings.TrimRight(line[41:], "\n") == full
			}
			if !skip {
				out.WriteString(line)
			}
		}
		if err := r.writeFile(r.common+"/packed-refs", []byte(out.String()), 0o666); err != nil {
			r.fatal("cannot rewrite packed-refs: %s", strerror(err))
		}
		r.packed = nil
	}
	r.t.Unlink(r.common + "/logs/" + full)
	for dir := path.Dir(full); strings.Count(dir, "/") > 1; dir = path.Dir(dir) {
		r.t.Rmdir(r.common + "/" + dir)
		r.t.Rmdir(r.common + "/logs/" + dir)
	}
}

// logRef appends to a reference's log, where git would keep one.
func (r *repo) logRef(name string, old, id oid, reason string) {
	if reason == "" || r.bare && !r.config().bool("core.logallrefupdates", false) {
		return
	}
	file := r.dir + "/logs/" + name
	if strings.HasPrefix(name, "refs/") {
		file = r.common + "/logs/" + name
	}
	if name != "HEAD" && !strings.HasPrefix(name, "refs/heads/") && !strings.HasPrefix(name, "refs/remotes/") && name != "refs/stash" {
		return
	}
	r.mkdirAll(path.Dir(file))
	f, err := r.t.Append(file)
	if err != nil {
		return
	}
	defer f.Close()
	who := r.reflogIdent()
	fmt.Fprintf(f, "%s %s %s\t%s\n", old, id, who, strings.ReplaceAll(strings.TrimSpace(reason), "\n", " "))
}

// reflogIdent is the committer, whoever that may be.
func (r *repo) reflogIdent() ident {
	if r.config().has("user.email") || r.t.Getenv("GIT_COMMITTER_EMAIL") != "" {
		if r.config().has("user.name") || r.t.Getenv("GIT_COMMITTER_NAME") != "" {
			return r.who("COMMITTER")
		}
	}
	return ident{"user", "user@" + r.t.Sandbox().Hostname(), r.t.Now()}
}

func (s *settings) has(key string) bool { _, ok := s.get(key); return ok }

// logEntry is a line of a reference's log.
type logEntry struct {
	old, id oid
	who     ident
	message string
}

// reflog returns a reference's log, oldest first.
func (r *repo) reflog(name string) (list []logEntry) {
	file := r.dir + "/logs/" + name
	if strings.HasPrefix(name, "refs/") {
		file = r.common + "/logs/" + name
	}
	b, err := r.t.ReadFile(file, maxIndexFile)
	if err != nil {
		return nil
	}
	for _, line := range strings.Split(string(b), "\n") {
		if len(line) < 82 {
			continue
		}
		var e logEntry
		var ok1, ok2 bool
		e.old, ok1 = parseOID(line[:40])
		e.id, ok2 = parseOID(line[41:81])
		who, message, _ := strings.Cut(line[82:], "\t")
		e.who, e.message = parseIdent(who), message
		if ok1 && ok2 {
			list = append(list, e)
		}
	}
	return list
}

// expandRef finds a reference by its short name, in git's order.
func (r *repo) expandRef(name string) (full string, id oid, ok bool) {
	if name == "@" {
		name = "HEAD"
	}
	for _, f := range []string{"%s", "refs/%s", "refs/tags/%s", "refs/heads/%s", "refs/remotes/%s", "refs/remotes/%s/HEAD"} {
		full := fmt.Sprintf(f, name)
		if f == "%s" && !strings.HasPrefix(name, "refs/") && strings.ToUpper(name) != name {
			continue
		}
		if !validRef(full) {
			continue
		}
		if _, id, ok := r.resolveRef(full); ok {
			return full, id, true
		}
	}
	return "", oid{}, false
}

// head returns the current branch's full name, "" when detached, and its commit, zero when unborn.
func (r *repo) head() (branch string, id oid) {
	target, id, ok := r.readRef("HEAD")
	if !ok || target == "" {
		return "", id
	}
	_, id, _ = r.resolveRef(target)
	return target, id
}

// shortRef is a reference's name as people know it.
func shortRef(full string) string {
	for _, p := range []string{"refs/heads/", "refs/tags/", "refs/remotes/"} {
		if s, ok := strings.CutPrefix(full, p); ok {
			return s
		}
	}
	return full
}
