package coreutils

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"syscall"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// copier copies and moves files for cp, mv and install.
type copier struct {
	t                                     *tool.T
	move                                  bool
	recursive, force, interactive, noClob bool
	update, verbose, attributesOnly       bool
	hardLink, symLink, removeDest         bool
	mode, owner, times, links             bool // what to preserve
	explicitNoMode                        bool
	follow                                byte // L always, H operands only, P never
	oneFS                                 bool
	backup                                string // none, simple, existing, numbered
	suffix                                string
	failed                                bool
	answers                               *bufio.Reader
	seen                                  map[inode]string // where a source with several links was copied to
	made                                  map[inode]bool   // destinations made by this run
	above                                 []vfs.Attr       // the directories being copied, outermost first
}

type inode struct {
	dev uint64
	ino vfs.Ino
}

func (c *copier) fail(format string, args ...any) bool {
	c.t.Warn(format, args...)
	c.failed = true
	return false
}

// copy copies or moves one file or tree. top says that src is an operand.
func (c *copier) copy(src, dst string, top bool) bool {
	c.t.Check()
	stat := c.t.Lstat
	if c.follow == 'L' || c.follow == 'H' && top {
		stat = c.t.Stat
	}
	a, err := stat(src)
	if err != nil {
		return c.fail("cannot stat %s: %s", tool.QuoteAF(src), tool.Strerror(err))
	}
	if a.Mode.IsDir() && !c.recursive && !c.move {
		return c.fail("-r not specified; omitting directory %s", tool.QuoteAF(src))
	}
	d, derr := c.t.Lstat(dst)
	exists := derr == nil
	if exists && d.Mode.IsSymlink() && !c.move && !(a.Mode.IsSymlink() || a.Mode.IsDir() || c.symLink || c.hardLink || c.removeDest || c.backup != "none") {
		if target, err := c.t.Stat(dst); err == nil {
			d = target // cp writes through a symbolic link
		} else {
			return c.fail("not writing through dangling symlink %s", tool.QuoteAF(dst))
		}
	}
	if exists {
		proceed, done := c.replace(src, dst, a, d)
		if !proceed {
			return done
		}
		if c.removeDest || c.backup != "none" {
			_, derr = c.t.Lstat(dst)
			exists = derr == nil
		}
	}
	if c.move {
		return c.rename(src, dst, a, exists)
	}
	return c.copyNode(src, dst, a, exists)
}

// replace checks what stands at the destination, and makes way for the copy. done is the result if it shall not proceed.
func (c *copier) replace(src, dst string, a, d vfs.Attr) (proceed, done bool) {
	same := a.Ino == d.Ino && a.Dev == d.Dev
	if same && !c.mayOverwriteSelf(src, dst) {
		if c.hardLink {
			return false, true
		}
		return false, c.fail("%s and %s are the same file", tool.QuoteAF(src), tool.QuoteAF(dst))
	}
	switch {
	case d.Mode.IsDir() && !a.Mode.IsDir():
		return false, c.fail("cannot overwrite directory %s with non-directory", tool.QuoteAF(dst))
	case !d.Mode.IsDir() && a.Mode.IsDir() && !(c.move && c.backup != "none"):
		if c.noClob {
			return false, true
		}
		return false, c.fail("cannot overwrite non-directory %s with directory %s", tool.QuoteAF(dst), tool.QuoteAF(src))
	}
	if a.Mode.IsDir() && !c.move {
		return true, true
	}
	if c.made[inode{d.Dev, d.Ino}] && !a.Mode.IsDir() {
		return false, c.fail("will not overwrite just-created %s with %s", tool.QuoteAF(dst), tool.QuoteAF(src))
	}
	if c.update && !a.Mode.IsDir() && !a.Mtime.After(d.Mtime) {
		return false, true
	}
	if c.noClob {
		return false, true
	}
	if !c.confirm(dst, d) {
		return false, true
	}
	if c.backup != "none" && !d.Mode.IsDir() {
		if err := c.backUp(dst); err != nil {
			return false, c.fail("cannot backup %s: %s", tool.QuoteAF(dst), tool.Strerror(err))
		}
	} else if c.removeDest && !c.move {
		if err := c.t.Unlink(dst); err != nil {
			return false, c.fail("cannot remove %s: %s", tool.QuoteAF(dst), tool.Strerror(err))
		}
		if c.verbose {
			fmt.Fprintf(c.t.Out, "removed %s\n", tool.QuoteAF(dst))
		}
	}
	return true, true
}

// mayOverwriteSelf reports whether source and destination may be one file: with a backup, or a link that is replaced.
func (c *copier) mayOverwriteSelf(src, dst string) bool {
	if c.backup != "none" && path.Clean(src) != path.Clean(dst) {
		return true
	}
	s, err1 := c.t.Lstat(src)
	d, err2 := c.t.Lstat(dst)
	if err1 != nil || err2 != nil {
		return false
	}
	return (c.removeDest || c.move) && (s.Ino != d.Ino || s.Dev != d.Dev)
}

// confirm asks before a file is overwritten, if it has to.
func (c *copier) confirm(dst string, d vfs.Attr) bool {
	protected := !d.Mode.IsSymlink() && c.t.Access(dst, 2) != nil
	if !c.interactive && !(c.move && !c.force && protected && c.t.IsTerminal(0)) {
		return true
	}
	if c.answers == nil {
		c.answers = bufio.NewReader(c.t.Stdin())
	}
	question := "overwrite " + tool.QuoteAF(dst) + "? "
	if protected {
		verb := "unwritable "
		if c.move {
			verb = "replace "
		}
		question = fmt.Sprintf("%s%s (mode %04o, %s)? ", verb, tool.QuoteAF(dst), d.Mode&vfs.ModePerm, tool.FormatMode(d.Mode)[1:])
		if c.move {
			question = fmt.Sprintf("replace %s, overriding mode %04o (%s)? ", tool.QuoteAF(dst), d.Mode&vfs.ModePerm, tool.FormatMode(d.Mode)[1:])
		}
	}
	return askYes(c.t, c.answers, question)
}

// backupName returns the name of a file's backup.
func backupName(t *tool.T, name, kind, suffix string) string {
	if kind == "simple" {
		return name + suffix
	}
	dir, base := path.Split(name)
	if dir == "" {
		dir = "."
	}
	highest := 0
	if entries, err := t.ReadDir(dir); err == nil {
		for _, e := range entries {
			rest, ok := strings.CutPrefix(e.Name, base+".~")
			if !ok || !strings.HasSuffix(rest, "~") {
				continue
			}
			n := 0
			if _, err := fmt.Sscanf(strings.TrimSuffix(rest, "~"), "%d", &n); err == nil {
				highest = max(highest, n)
			}
		}
	}
	if highest == 0 && kind == "existing" {
		return name + suffix
	}
	return fmt.Sprintf("%s.~%d~", name, highest+1)
}

func (c *copier) backUp(dst string) error {
	return c.t.Rename(dst, backupName(c.t, dst, c.backup, c.suffix), 0)
}

func (c *copier) say(src, dst string) {
	if c.verbose {
		verb := ""
		if c.move {
			verb = "renamed "
		}
		fmt.Fprintf(c.t.Out, "%s%s -> %s\n", verb, tool.QuoteAF(src), tool.QuoteAF(dst))
	}
}

// rename moves; across filesystems it copies and removes.
func (c *copier) rename(src, dst string, a vfs.Attr, exists bool) bool {
	err := c.t.Rename(src, dst, 0)
	switch {
	case err == nil:
		c.say(src, dst)
		c.remember(dst)
		return true
	case errors.Is(err, syscall.EINVAL):
		return c.fail("cannot move %s to a subdirectory of itself, %s", tool.QuoteAF(src), tool.QuoteAF(dst))
	case !errors.Is(err, syscall.EXDEV):
		return c.fail("cannot move %s to %s: %s", tool.QuoteAF(src), tool.QuoteAF(dst), tool.Strerror(err))
	}
	if exists {
		remove := c.t.Unlink
		if a.Mode.IsDir() {
			remove = c.t.Rmdir
		}
		if err := remove(dst); err != nil {
			return c.fail("inter-device move failed: %s to %s; unable to remove target: %s", tool.QuoteAF(src), tool.QuoteAF(dst), tool.Strerror(err))
		}
	}
	full := *c
	full.move, full.recursive, full.follow = false, true, 'P'
	full.mode, full.owner, full.times, full.links = true, true, true, true
	full.verbose = false
	if full.seen == nil {
		full.seen = map[inode]string{}
	}
	if !full.copyNode(src, dst, a, false) {
		c.failed = true
		return false
	}
	c.say(src, dst)
	r := remover{t: c.t, force: true, recursive: true}
	if r.remove(src, a, a.Dev) != removed {
		c.failed = true
		return false
	}
	return true
}

func (c *copier) remember(dst string) {
	if d, err := c.t.Lstat(dst); err == nil && !d.Mode.IsDir() {
		if c.made == nil {
			c.made = map[inode]bool{}
		}
		c.made[inode{d.Dev, d.Ino}] = true
	}
}

// copyNode makes the copy, the destination being free or a file to be overwritten.
func (c *copier) copyNode(src, dst string, a vfs.Attr, exists bool) bool {
	var err error
	if c.links && a.Nlink > 1 && !a.Mode.IsDir() {
		id := inode{a.Dev, a.Ino}
		if first, ok := c.seen[id]; ok {
			if exists {
				c.t.Unlink(dst)
			}
			if err := c.t.Link(first, dst); err != nil {
				return c.fail("cannot create hard link %s to %s: %s", tool.QuoteAF(dst), tool.QuoteAF(first), tool.Strerror(err))
			}
			c.say(src, dst)
			return true
		}
		if c.seen == nil {
			c.seen = map[inode]string{}
		}
		c.seen[id] = dst
	}
	switch kind := a.Mode & vfs.ModeType; {
	case kind == vfs.ModeDir:
		return c.copyDir(src, dst, a, exists)
	case c.symLink, c.hardLink:
		if err = c.linkTo(src, dst, exists); err != nil {
			return false
		}
	case kind == vfs.ModeSymlink:
		if err = c.copySymlink(src, dst, exists); err != nil {
			return c.fail("cannot create symbolic link %s: %s", tool.QuoteAF(dst), tool.Strerror(err))
		}
	case kind == vfs.ModeRegular, !c.recursive, kind == vfs.ModeChar && !c.recursive:
		if !c.copyFile(src, dst, a) {
			return false
		}
	default:
		if exists {
			c.t.Unlink(dst)
		}
		if err = c.t.Mknod(dst, a.Mode, a.Rdev); err != nil {
			return c.fail("cannot create special file %s: %s", tool.QuoteAF(dst), tool.Strerror(err))
		}
	}
	if kind := a.Mode & vfs.ModeType; kind != vfs.ModeRegular || c.symLink || c.hardLink {
		c.say(src, dst)
	}
	c.remember(dst)
	if c.symLink || c.hardLink {
		return true
	}
	return c.preserve(dst, a)
}

func (c *copier) linkTo(src, dst string, exists bool) error {
	if exists && (c.force || c.interactive) {
		c.t.Unlink(dst)
	}
	if c.hardLink {
		err := c.t.Link(src, dst)
		if err != nil {
			c.fail("cannot create hard link %s to %s: %s", tool.QuoteAF(dst), tool.QuoteAF(src), tool.Strerror(err))
		}
		return err
	}
	if !strings.HasPrefix(src, "/") && strings.Contains(strings.TrimPrefix(dst, "./"), "/") {
		c.fail("%s: can make relative symbolic links only in current directory", tool.QuoteF(dst))
		return syscall.EINVAL
	}
	err := c.t.Symlink(src, dst)
	if err != nil {
		c.fail("cannot create symbolic link %s to %s: %s", tool.QuoteAF(dst), tool.QuoteAF(src), tool.Strerror(err))
	}
	return err
}

func (c *copier) copySymlink(src, dst string, exists bool) error {
	target, err := c.t.Readlink(src)
	if err != nil {
		return err
	}
	if exists {
		if err := c.t.Unlink(dst); err != nil {
			return err
		}
	}
	return c.t.Symlink(target, dst)
}

// copyFile copies a file's bytes.
func (c *copier) copyFile(src, dst string, a vfs.Attr) bool {
	in, err := c.t.OpenFile(src)
	if err != nil {
		return c.fail("cannot open %s for reading: %s", tool.QuoteAF(src), tool.Strerror(err))
	}
	defer in.Close()
	flags := syscall.O_WRONLY | syscall.O_CREAT
	if !c.attributesOnly {
		flags |= syscall.O_TRUNC
	}
	perm := a.Mode & 0o777
	if c.explicitNoMode {
		perm = 0o666
	}
	_, staterr := c.t.Stat(dst)
	out, err := c.t.Process.Open(dst, flags, perm)
	if err != nil && c.force && staterr == nil {
		if c.t.Unlink(dst) == nil {
			if c.verbose {
				fmt.Fprintf(c.t.Out, "removed %s\n", tool.QuoteAF(dst))
			}
			out, err = c.t.Process.Open(dst, flags|syscall.O_EXCL, perm)
		}
	}
	if err != nil {
		if tool.IsNotExist(staterr) && strings.HasSuffix(dst, "/") && errors.Is(err, syscall.EISDIR) {
			err = syscall.ENOTDIR
		}
		return c.fail("cannot create regular file %s: %s", tool.QuoteAF(dst), tool.Strerror(err))
	}
	c.say(src, dst)
	if !c.attributesOnly {
		err = c.pump(in, out, src, dst)
	}
	if cerr := out.Close(); err == nil && cerr != nil {
		return c.fail("failed to close %s: %s", tool.QuoteAF(dst), tool.Strerror(cerr))
	}
	return err == nil
}

func (c *copier) pump(in io.Reader, out io.Writer, src, dst string) error {
	buf := make([]byte, 128<<10)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			if _, werr := out.Write(buf[:n]); werr != nil {
				c.fail("error writing %s: %s", tool.QuoteAF(dst), tool.Strerror(werr))
				return werr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			c.fail("error reading %s: %s", tool.QuoteAF(src), tool.Strerror(err))
			return err
		}
	}
}

func (c *copier) copyDir(src, dst string, a vfs.Attr, exists bool) bool {
	if inside(c.t, src, dst) {
		return c.fail("cannot copy a directory, %s, into itself, %s", tool.QuoteAF(src), tool.QuoteAF(dst))
	}
	for _, up := range c.above {
		if up.Dev == a.Dev && up.Ino == a.Ino {
			return c.fail("cannot copy cyclic symbolic link %s", tool.QuoteAF(src))
		}
	}
	c.above = append(c.above, a)
	defer func() { c.above = c.above[:len(c.above)-1] }()
	entries, err := c.t.ReadDir(src)
	if err != nil {
		return c.fail("cannot access %s: %s", tool.QuoteAF(src), tool.Strerror(err))
	}
	if !exists {
		if err := c.t.Mkdir(dst, a.Mode&0o777|0o700); err != nil {
			return c.fail("cannot create directory %s: %s", tool.QuoteAF(dst), tool.Strerror(err))
		}
		c.say(src, dst)
	}
	complete := true
	for _, e := range entries {
		child := joinPath(src, e.Name)
		if c.oneFS {
			if ca, err := c.t.Lstat(child); err == nil && ca.Dev != a.Dev {
				continue
			}
		}
		complete = c.copy(child, joinPath(dst, e.Name), false) && complete
	}
	if !exists && !c.mode {
		// A new directory gets the source's permissions under the umask, now that it is filled.
		mask := c.t.Umask(0)
		c.t.Umask(mask)
		perm := a.Mode & 0o777 &^ mask
		if c.explicitNoMode {
			perm = 0o777 &^ mask
		}
		if err := c.t.SetAttr(dst, vfs.SetAttr{Mode: &perm}, true); err != nil {
			return c.fail("setting permissions for %s: %s", tool.QuoteAF(dst), tool.Strerror(err))
		}
	}
	return c.preserve(dst, a) && complete
}

// inside reports whether dst is src or lies below it, by the identities of dst's parents.
func inside(t *tool.T, src, dst string) bool {
	s, err := t.Stat(src)
	if err != nil {
		return false
	}
	real, err := t.Realpath(path.Dir(path.Clean(dst)))
	if err != nil {
		return false
	}
	for {
		if a, err := t.Stat(real); err == nil && a.Ino == s.Ino && a.Dev == s.Dev {
			return true
		}
		if real == "/" || real == "." {
			return false
		}
		real = path.Dir(real)
	}
}

func joinPath(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}

// preserve sets the copied attributes.
func (c *copier) preserve(dst string, a vfs.Attr) bool {
	link := a.Mode.IsSymlink()
	if c.owner {
		// Only root may give files away; others keep theirs, as GNU cp does.
		if err := c.t.SetAttr(dst, vfs.SetAttr{UID: &a.UID, GID: &a.GID}, !link); err != nil && !errors.Is(err, syscall.EPERM) {
			return c.fail("failed to preserve ownership for %s: %s", tool.QuoteAF(dst), tool.Strerror(err))
		}
	}
	if c.mode && !link {
		perm := a.Mode & vfs.ModePerm
		if err := c.t.SetAttr(dst, vfs.SetAttr{Mode: &perm}, true); err != nil {
			return c.fail("preserving permissions for %s: %s", tool.QuoteAF(dst), tool.Strerror(err))
		}
	}
	if c.times {
		if err := c.t.SetAttr(dst, vfs.SetAttr{Atime: &a.Atime, Mtime: &a.Mtime}, !link); err != nil {
			return c.fail("preserving times for %s: %s", tool.QuoteAF(dst), tool.Strerror(err))
		}
	}
	return true
}
