package archive

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"syscall"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// maxLinkTarget bounds what a symbolic link may point to.
const maxLinkTarget = 4096

// prepareDir makes the directory that -d names.
func (u *unzip) prepareDir() {
	if u.op != 'x' || u.dir == "" {
		return
	}
	u.base = u.dir
	if err := u.t.Mkdir(u.dir, 0o777); err != nil && !errors.Is(err, syscall.EEXIST) {
		u.warn("checkdir:  cannot create extraction directory: %s\n           %s\n", u.dir, tool.Strerror(err))
		u.t.Exit(2)
	}
}

// parents makes the directories above a path. It fails if what is there leads out of the directory to extract into.
func (u *unzip) parents(p string) error {
	dir := path.Dir(p)
	if dir == "." || dir == path.Clean(u.base) || dir == "/" {
		return nil
	}
	at, err := u.t.Lstat(dir)
	switch {
	case err == nil && at.Mode.IsDir():
		return u.parents(dir)
	case err == nil && at.Mode.IsSymlink():
		if !u.inside(dir) {
			return syscall.ELOOP
		}
		return nil
	case err == nil:
		return syscall.ENOTDIR
	}
	if err := u.parents(dir); err != nil {
		return err
	}
	return u.t.Mkdir(dir, 0o777)
}

// inside reports whether a path, links followed, is a directory below the one to extract into.
func (u *unzip) inside(p string) bool {
	base := u.base
	if base == "" {
		base = "."
	}
	root, err := u.t.Realpath(base)
	if err != nil {
		return false
	}
	real, err := u.t.Realpath(p)
	if err != nil {
		return false
	}
	at, err := u.t.Stat(p)
	return err == nil && at.Mode.IsDir() && (root == "/" || real == root || strings.HasPrefix(real, root+"/"))
}

// directory makes a member's directory.
func (u *unzip) directory(f *zip.File, p string) {
	if u.junk || u.freshen {
		return
	}
	if err := u.parents(p); err != nil {
		u.cannotCreate(p, err)
		return
	}
	at, err := u.t.Lstat(p)
	if err == nil && (at.Mode.IsDir() || at.Mode.IsSymlink() && u.inside(p)) {
		return // what exists keeps its mode and time
	}
	if err := u.t.Mkdir(p, 0o777); err != nil {
		u.cannotCreate(p, err)
		return
	}
	if u.quiet == 0 {
		fmt.Fprintf(u.t.Out, "%11s: %s/\n", "creating", printableName(p))
	}
	u.dirs = append(u.dirs, zipDir{p, f})
}

func (u *unzip) cannotCreate(p string, err error) {
	if errors.Is(err, syscall.ENOTDIR) {
		u.warn("checkdir error:  %s exists but is not directory\n                 unable to process %s.\n", path.Dir(p), p)
	} else {
		u.warn("error:  cannot create %s\n        %s\n", p, tool.Strerror(err))
	}
	u.status = max(u.status, 2)
}

// replace asks, or knows from the options, whether a member takes the place of an existing file; p is the name to use.
func (u *unzip) replace(p string) (string, bool) {
	for {
		if u.overwrite {
			return p, true
		}
		if u.never {
			return p, false
		}
		u.warn("replace %s? [y]es, [n]o, [A]ll, [N]one, [r]ename: ", p)
		line, err := u.answers.ReadSlice('\n')
		if err != nil && len(line) == 0 {
			u.warn(" NULL\n(EOF or read error, treating as \"[N]one\" ...)\n")
			u.never = true
			u.status = max(u.status, 1)
			return p, false
		}
		switch answer := strings.TrimRight(string(line), "\n"); {
		case strings.HasPrefix(answer, "y"), strings.HasPrefix(answer, "Y"):
			return p, true
		case strings.HasPrefix(answer, "n"):
			return p, false
		case strings.HasPrefix(answer, "A"):
			u.overwrite = true
		case strings.HasPrefix(answer, "N"):
			u.never = true
		case strings.HasPrefix(answer, "r"):
			u.warn("new name: ")
			line, err := u.answers.ReadSlice('\n')
			name, ok := u.safeName(&zip.File{FileHeader: zip.FileHeader{Name: strings.TrimRight(string(line), "\n")}})
			if err != nil && len(line) == 0 {
				u.never = true
			}
			if !ok {
				continue
			}
			p = path.Join(u.base, name)
			if _, err := u.t.Lstat(p); err != nil {
				return p, true
			}
		default:
			u.warn("error:  invalid response [%s]\n", answer)
		}
	}
}

// file extracts a plain file or a symbolic link.
func (u *unzip) file(f *zip.File, p string, mode vfs.Mode) {
	t := u.t
	at, err := t.Lstat(p)
	exists := err == nil
	switch {
	case exists && at.Mode.IsDir():
		u.cannotCreate(p, syscall.EISDIR)
		return
	case !exists && u.freshen:
		return
	case exists && (u.update || u.freshen) && !zipTime(t, f).After(at.Mtime):
		return
	case exists:
		ok := false
		if p, ok = u.replace(p); !ok {
			return
		}
	}
	if err := u.parents(p); err != nil {
		u.cannotCreate(p, err)
		return
	}
	if at, err := t.Lstat(p); err == nil && !at.Mode.IsDir() {
		if err := t.Unlink(p); err != nil { // also so that nothing is written through a link
			u.cannotCreate(p, err)
			return
		}
	}
	if mode.IsSymlink() {
		u.link(f, p)
		return
	}
	u.write(f, p, mode)
}

// write makes a member's file.
func (u *unzip) write(f *zip.File, p string, mode vfs.Mode) {
	t := u.t
	out, err := t.Process.Open(p, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, 0o666)
	if err != nil {
		u.cannotCreate(p, err)
		return
	}
	if u.quiet == 0 {
		fmt.Fprintf(t.Out, "%11s: %s  ", zipVerb(f), padName(p))
	}
	err = u.copy(out, f)
	if u.quiet == 0 {
		t.Out.WriteString("\n")
	}
	if err != nil {
		u.bad(f, err)
	}
	perm, when := u.permissions(mode), zipTime(t, f)
	out.SetAttr(vfs.SetAttr{Mode: &perm})
	out.SetAttr(vfs.SetAttr{Atime: &when, Mtime: &when})
	if err := out.Close(); err != nil {
		u.bad(f, err)
	}
}

func (u *unzip) permissions(mode vfs.Mode) vfs.Mode {
	if u.keepBits {
		return mode & 0o7777
	}
	return mode & 0o777
}

// link puts an empty file where a symbolic link is to be at the end, so that no member is written through it.
func (u *unzip) link(f *zip.File, p string) {
	t := u.t
	if f.UncompressedSize64 > maxLinkTarget || len(u.links) >= maxNames {
		u.cannotCreate(p, syscall.ENAMETOOLONG)
		return
	}
	var target bytes.Buffer
	if err := u.copy(&target, f); err != nil {
		u.bad(f, err)
		return
	}
	out, err := t.Process.Open(p, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, 0o600)
	if err != nil {
		u.cannotCreate(p, err)
		return
	}
	_, err = io.WriteString(out, target.String())
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		u.cannotCreate(p, err)
		return
	}
	if u.quiet == 0 {
		fmt.Fprintf(t.Out, "%11s: %s  -> %s \n", "linking", padName(p), printableName(target.String()))
	}
	u.links = append(u.links, zipLink{p, target.String()})
}

// finish makes the symbolic links, and sets the directories' modes and times, the deepest first.
func (u *unzip) finish() {
	t := u.t
	if len(u.links) > 0 && u.quiet == 0 {
		t.Out.WriteString("finishing deferred symbolic links:\n")
	}
	for _, l := range u.links {
		if at, err := t.Lstat(l.path); err != nil || !at.Mode.IsRegular() {
			continue // something else came to its place
		}
		if err := t.Unlink(l.path); err != nil {
			u.cannotCreate(l.path, err)
			continue
		}
		if u.quiet == 0 {
			fmt.Fprintf(t.Out, "  %s -> %s\n", padName(l.path), printableName(l.target))
		}
		if err := t.Symlink(l.target, l.path); err != nil {
			u.cannotCreate(l.path, err)
		}
	}
	for i := len(u.dirs) - 1; i >= 0; i-- {
		d := u.dirs[i]
		if at, err := t.Lstat(d.path); err != nil || !at.Mode.IsDir() {
			continue
		}
		perm, when := u.permissions(zipMode(t, d.f)), zipTime(t, d.f)
		t.SetAttr(d.path, vfs.SetAttr{Mode: &perm}, false)
		t.SetAttr(d.path, vfs.SetAttr{Atime: &when, Mtime: &when}, false)
	}
}
