// Package git is the git command: repositories in the sandbox's files, with git's formats and messages.
//
// An object is a blob, tree, commit or annotated tag, named by its SHA-1 (oid). The index is the list of files that the
// next commit will have. The work tree is the files themselves. Everything is read and written through the process, so a
// repository that real git made can be used and the other way round.
//
// Hooks, editors, credential helpers, and aliases and rebase steps that run shells are processes of the sandbox, as everything
// else in it. Settings that name other programs (core.pager, core.sshCommand, core.fsmonitor, external diffs, filters) are
// ignored. Connections are made by the sandbox's network policy alone. Paths that could reach into .git, by whatever
// spelling, are refused when files are checked out; objects, packs and chains of deltas have limits.
package git

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"

	"github.com/klauspost/compress/zlib"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// repo is a repository that a command works on.
type repo struct {
	t         *tool.T
	dir       string // the .git folder
	common    string // where objects and references are; dir, but for linked work trees
	root      string // of the work tree; "" if bare
	prefix    string // of the working directory below root: "" or "a/b/"
	bare      bool
	bareInit  bool      // --bare was given
	overrides []setting // -c
	conf      *settings

	cache       cached
	commits     map[oid]*commit
	dirs        []string
	packs       []*pack
	packsLoaded bool
	packed      map[string]oid
	idx         *index
	ignores     map[string][]ignoreRule
	attrs       map[string][]attrRule
	quotePaths  *bool
	shallowSet  map[oid]bool
	decorations map[oid][]string
	charged     int64
	nested      int // calls of readObject in progress
	deflater    *zlib.Writer
	noIgnore    bool           // nothing is ignored
	sources     map[oid]string // of --source
}

// step counts work, and unwinds when the process must end.
func (r *repo) step(n int) {
	if r.t.Step(n) != nil {
		r.t.Exit(137)
	}
}

// fatal prints a message and ends the command with git's status for failures.
func (r *repo) fatal(format string, args ...any) { r.die(128, "fatal: "+format, args...) }

// die prints a message as it stands and ends the command.
func (r *repo) die(status int, format string, args ...any) {
	r.t.Check()
	r.say(format, args...)
	r.t.Exit(status)
}

// say prints a line to standard error, after what was printed before.
func (r *repo) say(format string, args ...any) {
	r.t.Out.Flush()
	fmt.Fprintf(r.t.Stderr(), format+"\n", args...)
}

func (r *repo) printf(format string, args ...any) { fmt.Fprintf(r.t.Out, format, args...) }

func strerror(err error) string { return vfs.Strerror(err) }

// show is a path as messages have it: relative to the working directory if it is below.
func (r *repo) show(p string) string {
	if wd := r.t.Getwd(); wd != "/" && strings.HasPrefix(p, wd+"/") {
		return p[len(wd)+1:]
	}
	return p
}

// abs makes a path absolute, lexically.
func (r *repo) abs(p string) string {
	if !path.IsAbs(p) {
		p = r.t.Getwd() + "/" + p
	}
	return path.Clean(p)
}

// maxUp bounds how far the repository is looked for.
const maxUp = 256

// open finds the repository, from the environment or upwards from the working directory. It reports whether there is one.
func (r *repo) open() bool {
	if d := r.t.Getenv("GIT_DIR"); d != "" {
		r.dir = r.abs(d)
		if !r.isGitDir(r.dir) {
			r.fatal("not a git repository: '%s'", d)
		}
		r.bare = r.t.Getenv("GIT_WORK_TREE") == "" && r.config().bool("core.bare", false)
		if !r.bare {
			r.root = r.t.Getwd()
		}
	} else {
		at := r.t.Getwd()
		found := false
		for range maxUp {
			if d := r.dotGit(at + "/.git"); d != "" {
				r.dir, r.root, found = d, at, true
				break
			}
			if r.isGitDir(at) {
				r.dir, r.bare, found = at, true, true
				break
			}
			if at == "/" {
				break
			}
			at = path.Dir(at)
		}
		if !found {
			return false
		}
	}
	r.conf = nil
	r.setCommon()
	if w := r.t.Getenv("GIT_WORK_TREE"); w != "" {
		r.root, r.bare = r.abs(w), false
	} else if w, ok := r.config().get("core.worktree"); ok && !r.bare {
		if !path.IsAbs(w) {
			w = r.dir + "/" + w
		}
		r.root = path.Clean(w)
	}
	if r.root == "/" {
		r.root = ""
		if !r.bare {
			r.root = "/."
		}
	}
	r.setPrefix()
	if f, ok := r.config().get("extensions.objectformat"); ok && f != "sha1" {
		r.fatal("repositories with object format '%s' aren't supported", f)
	}
	return true
}

func (r *repo) setCommon() {
	r.common = r.dir
	if b, err := r.t.ReadFile(r.dir+"/commondir", maxSmall); err == nil {
		c := strings.TrimSpace(string(b))
		if !path.IsAbs(c) {
			c = r.dir + "/" + c
		}
		r.common = path.Clean(c)
	}
	r.conf = nil
}

func (r *repo) setPrefix() {
	wd := r.t.Getwd()
	r.prefix = ""
	if r.root != "" && strings.HasPrefix(wd, r.root+"/") {
		r.prefix = wd[len(r.root)+1:] + "/"
	}
}

// dotGit returns the git folder that .git is, or that a file of this name points to.
func (r *repo) dotGit(p string) string {
	a, err := r.t.Stat(p)
	switch {
	case err != nil:
		return ""
	case a.Mode.IsDir():
		if r.isGitDir(p) {
			return p
		}
	case a.Mode.IsRegular():
		b, err := r.t.ReadFile(p, maxSmall)
		d, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir: ")
		if err != nil || !ok {
			return ""
		}
		if !path.IsAbs(d) {
			d = path.Dir(p) + "/" + d
		}
		return path.Clean(d)
	}
	return ""
}

func (r *repo) isGitDir(d string) bool {
	if _, err := r.t.Lstat(d + "/HEAD"); err != nil {
		return false
	}
	if _, err := r.t.Stat(d + "/commondir"); err == nil {
		return true
	}
	for _, s := range []string{"/objects", "/refs"} {
		if a, err := r.t.Stat(d + s); err != nil || !a.Mode.IsDir() {
			return false
		}
	}
	return true
}

// needTree ends the command in a bare repository.
func (r *repo) needTree() {
	if r.bare || r.root == "" {
		r.fatal("this operation must be run in a work tree")
	}
}

// file is the absolute path of a file in the work tree.
func (r *repo) file(p string) string { return r.root + "/" + p }

// relative turns an argument into a path from the work tree's root; ok is false outside of it.
func (r *repo) relative(arg string) (string, bool) {
	p := r.abs(arg)
	if p == path.Clean(r.root) {
		return "", true
	}
	base := r.root + "/"
	if r.root == "/." {
		base = "/"
	}
	if strings.HasPrefix(p, base) {
		return p[len(base):], true
	}
	// The root may have been reached through a symbolic link.
	if real, err := r.t.Realpath(path.Dir(p)); err == nil {
		if p = path.Join(real, path.Base(p)); strings.HasPrefix(p, base) {
			return p[len(base):], true
		}
	}
	return "", false
}

// display is a path of the work tree as seen from the working directory, quoted if needed.
func (r *repo) display(p string) string { return r.quote(r.displayRaw(p)) }

func (r *repo) displayRaw(p string) string {
	if r.prefix == "" {
		return p
	}
	if rest, ok := strings.CutPrefix(p, r.prefix); ok {
		if rest == "" {
			return "./"
		}
		return rest
	}
	from := strings.Split(strings.TrimSuffix(r.prefix, "/"), "/")
	to := strings.Split(p, "/")
	n := 0
	for n < len(from) && n < len(to)-1 && from[n] == to[n] {
		n++
	}
	return strings.Repeat("../", len(from)-n) + strings.Join(to[n:], "/")
}

// quote encloses a path in quotes with C escapes if it has unusual characters; core.quotePath counts bytes above 127.
func (r *repo) quote(p string) string {
	if r.quotePaths == nil {
		q := r.config().bool("core.quotepath", true)
		r.quotePaths = &q
	}
	return quotePath(p, *r.quotePaths)
}

func quotePath(p string, high bool) string {
	need := false
	for i := 0; i < len(p) && !need; i++ {
		c := p[i]
		need = c < ' ' || c == '"' || c == '\\' || c == 0x7f || c >= 0x80 && high
	}
	if !need {
		return p
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c >= 7 && c <= 13:
			b.WriteByte('\\')
			b.WriteByte("abtnvfr"[c-7])
		case c < ' ' || c == 0x7f || c >= 0x80 && high:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// writeFile replaces a file atomically, through NAME.lock, which also keeps others out.
func (r *repo) writeFile(name string, data []byte, perm vfs.Mode) error {
	lock := name + ".lock"
	f, err := r.t.Process.Open(lock, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = r.t.Rename(lock, name, 0)
	}
	if err != nil {
		r.t.Unlink(lock)
	}
	return err
}

// mkdirAll makes a folder and those above it.
func (r *repo) mkdirAll(dir string) error {
	if a, err := r.t.Stat(dir); err == nil {
		if a.Mode.IsDir() {
			return nil
		}
		return syscall.ENOTDIR
	}
	if dir == "/" || dir == "." || dir == "" {
		return nil
	}
	if err := r.mkdirAll(path.Dir(dir)); err != nil {
		return err
	}
	if err := r.t.Mkdir(dir, 0o777); err != nil && !errors.Is(err, syscall.EEXIST) {
		return err
	}
	return nil
}

// removeAll removes a tree, at most as deep as paths can be.
func (r *repo) removeAll(p string) error {
	a, err := r.t.Lstat(p)
	if err != nil {
		return err
	}
	if !a.Mode.IsDir() {
		return r.t.Unlink(p)
	}
	list, err := r.t.ReadDir(p)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := r.removeAll(p + "/" + e.Name); err != nil {
			return err
		}
	}
	return r.t.Rmdir(p)
}

// safePath reports whether a path from outside may be checked out: no component that is ".", "..", or ".git" in any
// spelling that a filesystem of whatever system could take for it.
func safePath(p string) bool {
	if p == "" || p[0] == '/' || len(p) > 4096 || strings.IndexByte(p, 0) >= 0 {
		return false
	}
	for _, c := range strings.Split(p, "/") {
		if c == "" || c == "." || c == ".." || dotGitLike(c) || strings.Contains(c, "\\") && dotGitBackslash(c) {
			return false
		}
	}
	return true
}

// dotGitLike recognizes .git, whatever case, with what NTFS drops (trailing dots and blanks, streams), its short names, and
// with the code points that HFS+ ignores.
func dotGitLike(c string) bool {
	if len(c) < 4 {
		return false
	}
	s := strings.Map(func(x rune) rune {
		if x >= 0x200c && x <= 0x200f || x >= 0x202a && x <= 0x202e || x >= 0x206a && x <= 0x206f || x == 0xfeff {
			return -1
		}
		return x
	}, c)
	s = strings.ToLower(s)
	s, _, _ = strings.Cut(s, ":")
	s = strings.TrimRight(s, " .")
	return s == ".git" || s == "git~1"
}

func dotGitBackslash(c string) bool {
	for _, part := range strings.Split(c, "\\") {
		if part == ".." || dotGitLike(part) {
			return true
		}
	}
	return false
}
