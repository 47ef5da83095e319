package git

import (
	"fmt"
	"strings"
)

// revSet is what revisions on a command line amount to.
type revSet struct {
	include, exclude []oid
	names            []string // as include was written
	raw              []oid    // as include, before tags were peeled
	left, right      []oid    // of A...B
	given            bool     // there was at least one, even if it stands for nothing
	dots             int      // 2 or 3 if a range was given
	not              bool
	plain            []string // positive ones that are no ranges
}

// addRev adds one revision or range; the error says what is wrong with it.
func (r *repo) addRev(s *revSet, arg string) error {
	not := s.not
	if strings.HasPrefix(arg, "^") {
		not, arg = !not, arg[1:]
	}
	if i := strings.Index(arg, ".."); i >= 0 && !not && !strings.HasPrefix(arg[i:], "../") && arg != ".." && !strings.Contains(arg[:i], ":") {
		return r.addRange(s, arg, i)
	}
	if b, ok := strings.CutSuffix(arg, "^@"); ok {
		id, err := r.commitOf(b)
		if err != nil {
			return err
		}
		for _, p := range r.readCommit(id).parents {
			s.add(p, p, not, p.String())
		}
		s.given = true
		return nil
	}
	if b, ok := strings.CutSuffix(arg, "^!"); ok {
		id, err := r.commitOf(b)
		if err != nil {
			return err
		}
		s.add(id, id, not, b)
		for _, p := range r.readCommit(id).parents {
			s.add(p, p, !not, "")
		}
		s.dots = 2
		return nil
	}
	raw, err := r.rev(arg)
	if err != nil {
		return err
	}
	id, err := r.peel(raw, 0)
	if err != nil {
		return fmt.Errorf("bad object %s", arg)
	}
	s.add(id, raw, not, arg)
	if !not {
		s.plain = append(s.plain, arg)
	}
	return nil
}

func (s *revSet) add(id, raw oid, not bool, name string) {
	s.given = true
	if not {
		s.exclude = append(s.exclude, id)
		return
	}
	s.include, s.raw, s.names = append(s.include, id), append(s.raw, raw), append(s.names, name)
}

func (r *repo) addRange(s *revSet, arg string, i int) error {
	a, b := arg[:i], arg[i+2:]
	three := strings.HasPrefix(b, ".")
	if three {
		b = b[1:]
	}
	if a == "" {
		a = "HEAD"
	}
	if b == "" {
		b = "HEAD"
	}
	whole := fmt.Errorf("ambiguous argument '%s': unknown revision or path not in the working tree.\nUse '--' to separate paths from revisions, like this:\n'git <command> [<revision>...] -- [<file>...]'", arg)
	ia, err1 := r.commitOf(a)
	ib, err2 := r.commitOf(b)
	if err1 != nil || err2 != nil {
		return whole
	}
	if three {
		for _, base := range r.mergeBases(ia, ib) {
			s.add(base, base, true, "")
		}
		s.left, s.right = append(s.left, ia), append(s.right, ib)
		s.add(ia, ia, false, a)
		s.add(ib, ib, false, b)
		s.dots = 3
		return nil
	}
	s.add(ia, ia, true, "")
	s.add(ib, ib, false, b)
	s.left, s.right = append(s.left, ia), append(s.right, ib)
	s.dots = 2
	return nil
}

// commitOf resolves an expression to a commit.
func (r *repo) commitOf(s string) (oid, error) {
	id, err := r.rev(s)
	if err != nil {
		return id, err
	}
	if p, err := r.peel(id, commitObj); err == nil {
		return p, nil
	}
	return id, fmt.Errorf("bad revision '%s'", s)
}

// addRefs adds all references below a prefix, as --all, --branches, --tags and --remotes do.
func (r *repo) addRefs(s *revSet, prefix, glob string) {
	s.given = true
	if prefix == "refs/" && glob == "" {
		defer func() {
			if _, id := r.head(); !id.isZero() {
				s.add(id, id, s.not, "HEAD")
			}
		}()
	}
	for _, f := range r.refs(prefix) {
		short := strings.TrimPrefix(f.name, prefix)
		if glob != "" && !globSlash(glob, short) {
			continue
		}
		if id, err := r.peel(f.id, commitObj); err == nil {
			s.add(id, f.id, s.not, f.name)
		}
	}
}

// revOption handles the options that stand for revisions.
func (r *repo) revOption(s *revSet, o *options) bool {
	prefix := ""
	switch o.name {
	case "--all":
		prefix = "refs/"
	case "--branches":
		prefix = "refs/heads/"
	case "--tags":
		prefix = "refs/tags/"
	case "--remotes":
		prefix = "refs/remotes/"
	case "--glob":
		prefix = "refs/"
	case "--not":
		s.not = !s.not
		o.negate = s.not
		return true
	default:
		return false
	}
	glob := ""
	if o.has {
		if glob = o.value; !strings.ContainsAny(glob, "*?[") {
			glob += "/*"
		}
		if o.name == "--glob" {
			glob = strings.TrimPrefix(glob, "refs/")
		}
	}
	r.addRefs(s, prefix, glob)
	return true
}

// splitRevs tells revisions from paths among operands, as git does.
func (r *repo) splitRevs(o *options, s *revSet) (paths []string) {
	s.not = false // operands carry their own
	if o.dash {
		for _, a := range o.rest {
			if err := r.addRev(s, a); err != nil {
				r.fatal("%s", badRevision(a, err))
			}
		}
		return o.after
	}
	for i, a := range o.rest {
		err := r.addRev(s, a)
		exists := r.root != "" && r.pathExists(a)
		if err == nil {
			if exists && !strings.HasPrefix(a, "^") {
				r.fatal("ambiguous argument '%s': both revision and filename\nUse '--' to separate paths from revisions, like this:\n'git <command> [<revision>...] -- [<file>...]'", a)
			}
			continue
		}
		if !exists && !strings.ContainsAny(a, "*?[") && !strings.HasPrefix(a, ":(") && !(strings.HasPrefix(a, ":") && len(a) > 1 && strings.ContainsRune("!^/", rune(a[1]))) {
			if strings.HasPrefix(a, "^") {
				r.fatal("bad revision '%s'", a)
			}
			r.fatal("%s", err)
		}
		for _, p := range o.rest[i+1:] {
			if !r.pathExists(p) && !strings.ContainsAny(p, "*?[:") {
				r.fatal("%s: no such path in the working tree.\nUse 'git <command> -- <path>...' to specify paths that do not exist locally.", p)
			}
		}
		return o.rest[i:]
	}
	return nil
}

func badRevision(a string, err error) string {
	if strings.HasPrefix(err.Error(), "ambiguous argument") {
		return "bad revision '" + a + "'"
	}
	return err.Error()
}

// pathExists reports whether an argument names a file of the work tree.
func (r *repo) pathExists(a string) bool {
	if a == "" {
		return false
	}
	_, err := r.t.Lstat(a)
	return err == nil
}
