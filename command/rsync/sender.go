package rsync

import (
	"encoding/binary"
	"errors"
	"io"
	"path"
	"sort"
	"strings"
	"syscall"

	"agentrun.dev/vfs"
)

// scanner makes the file list of a sender.
type scanner struct {
	s     *session
	o     *options
	list  []*entry
	links map[[2]uint64]*entry
	names *lister
	user  func(uint32) string
	group func(uint32) string
	dev   uint64
}

// scan lists what the arguments name.
func (c *scanner) scan(args []string) {
	for _, a := range args {
		c.argument(a)
	}
}

// argument lists a file or directory of the command line.
func (c *scanner) argument(arg string) {
	local, name := arg, ""
	slash := strings.HasSuffix(arg, "/") || strings.HasSuffix(arg, "/.") || arg == "." || arg == ".." || strings.HasSuffix(arg, "/..")
	switch {
	case c.o.relative:
		name = strings.TrimLeft(arg, "/")
		if _, after, ok := strings.Cut(arg, "/./"); ok {
			name = after
		}
		if name = path.Clean(name); strings.HasPrefix(name, "../") || name == ".." {
			name = "."
		}
		c.implied(arg, name)
	case slash:
		name = "."
	default:
		name = path.Base(arg)
	}
	if local == "" {
		local, name = ".", "."
	}
	a, err := c.s.p.Lstat(strings.TrimSuffix(local, "/"))
	if slash || local == "/" {
		a, err = c.s.p.Stat(local)
	}
	if err != nil {
		c.s.ioError |= 1
		c.s.say(msgXfer, "rsync: [sender] link_stat \""+absolute(c.s, local)+"\" failed: "+strerror(err)+" ("+errno(err)+")\n")
		return
	}
	c.dev = a.Dev
	c.file(local, name, a, true)
}

// implied lists the directories above a relative path.
func (c *scanner) implied(arg, name string) {
	if c.o.noImplied {
		return
	}
	base := strings.TrimSuffix(path.Clean(arg), name)
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		dir := name[:i]
		seen := false
		for _, e := range c.list {
			seen = seen || e.name == dir
		}
		if a, err := c.s.p.Stat(base + dir); err == nil && !seen && a.Mode.IsDir() {
			e := c.entry(base+dir, dir, a)
			e.noData = true
			c.list = append(c.list, e)
		}
	}
}

func absolute(s *session, name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return path.Join(s.p.Getwd(), name)
}

func (c *scanner) entry(local, name string, a vfs.Attr) *entry {
	e := &entry{name: name, local: local, mode: a.Mode & 0o177777, size: a.Size, mtime: a.Mtime.Unix(), uid: a.UID, gid: a.GID, rdev: a.Rdev}
	if !a.Mode.IsRegular() && !a.Mode.IsSymlink() {
		e.size = 0
	}
	if a.Mode.IsDir() {
		e.size = a.Size
	}
	if c.o.owner && c.names.uids[e.uid] == "" {
		c.names.uids[e.uid] = c.user(e.uid)
	}
	if c.o.group && c.names.gids[e.gid] == "" {
		c.names.gids[e.gid] = c.group(e.gid)
	}
	return e
}

// file lists a file, and what is in it if it is a directory.
func (c *scanner) file(local, name string, a vfs.Attr, top bool) {
	if a.Mode.IsSymlink() && c.o.copyLinks {
		t, err := c.s.p.Stat(local)
		if err != nil {
			c.s.ioError |= 1
			c.s.say(msgXfer, "symlink has no referent: \""+absolute(c.s, local)+"\"\n")
			return
		}
		a = t
	}
	if name != "." && c.o.filter.excluded(name, a.Mode.IsDir(), true) {
		return
	}
	e := c.entry(local, name, a)
	switch {
	case a.Mode.IsSymlink():
		if !c.o.links {
			c.skip("skipping non-regular file \"" + name + "\"\n")
			return
		}
		target, err := c.s.p.Readlink(local)
		if err != nil || target == "" {
			return
		}
		e.target = target
	case a.Mode.IsDir():
		if !c.o.recursive && !c.o.dirs {
			c.skip("skipping directory " + name + "\n")
			return
		}
		e.top = top && c.o.recursive
	case a.Mode.IsRegular():
		if c.o.maxSize > 0 && e.size > c.o.maxSize || c.o.minSize > 0 && e.size < c.o.minSize {
			return
		}
	default:
		if !c.o.device(a.Mode) {
			c.skip("skipping non-regular file \"" + name + "\"\n")
			return
		}
	}
	if c.o.hardLinks && a.Nlink > 1 && !a.Mode.IsDir() {
		c.link(e, a)
	}
	if c.o.checksum && a.Mode.IsRegular() {
		e.sum = c.s.digest(local)
	}
	c.list = append(c.list, e)
	if a.Mode.IsDir() && (c.o.recursive || c.o.dirs && name == ".") && !(c.o.oneFS && a.Dev != c.dev) {
		c.dir(e)
	}
}

func (c *scanner) skip(text string) {
	if !c.s.server || c.o.verbose > 0 {
		c.s.say(msgInfo, text)
	}
}

func (c *scanner) link(e *entry, a vfs.Attr) {
	id := [2]uint64{a.Dev, uint64(a.Ino)}
	e.linked = true
	if first := c.links[id]; first != nil {
		e.first = first
		return
	}
	c.links[id] = e
}

func (c *scanner) dir(e *entry) {
	entries, err := c.s.p.ReadDir(e.local)
	if err != nil {
		c.s.ioError |= 1
		c.s.say(msgXfer, "rsync: [sender] opendir \""+absolute(c.s, e.local)+"\" failed: "+strerror(err)+" ("+errno(err)+")\n")
		return
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	if !c.o.recursive && e.name != "." {
		return
	}
	for _, d := range entries {
		if d.Name == "." || d.Name == ".." || len(c.list) >= maxEntries {
			continue
		}
		local := strings.TrimSuffix(e.local, "/") + "/" + d.Name
		a, err := c.s.p.Lstat(local)
		if err != nil {
			continue // it has gone meanwhile
		}
		name := d.Name
		if e.name != "." {
			name = e.name + "/" + d.Name
		}
		c.file(local, name, a, false)
	}
}

// prune drops directories without files (-m).
func prune(list []*entry) []*entry {
	full := map[string]bool{}
	for _, e := range list {
		if !e.isDir() {
			for dir := path.Dir(e.name); !full[dir]; dir = path.Dir(dir) {
				full[dir] = true
				if dir == "." {
					break
				}
			}
		}
	}
	var out []*entry
	for _, e := range list {
		if !e.isDir() || full[e.name] || e.name == "." {
			out = append(out, e)
		}
	}
	return out
}

// sendList writes the file list.
func (s *session) sendList(c *scanner) error {
	for i, e := range c.list {
		e.raw = i
		s.stats.add(e)
		c.names.send(s.w, e)
	}
	s.w.byte(0)
	c.names.sendIDs(s.w)
	if s.ioError != 0 && !s.o.ignoreErrors {
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], uint32(s.ioError))
		s.w.message(msgIOError, b[:])
	}
	s.list = sorted(c.list)
	return s.w.flush()
}

// phases is how often the sides tell each other that they are done.
const phases = 2

// sendFiles answers the receiver's requests until it has no more.
func (s *session) sendFiles() error {
	for phase := 0; ; {
		if err := s.w.flush(); err != nil {
			return err
		}
		ndx, flags, xname, err := s.readItem()
		if err != nil {
			return err
		}
		if ndx == done {
			if phase++; phase > phases {
				break
			}
			s.w.ndx(done)
			continue
		}
		e := s.list[ndx]
		if flags&itemNew != 0 {
			s.stats.created++
		}
		if flags&itemTransfer == 0 {
			s.log(e, flags, xname)
			s.writeItem(ndx, flags, xname)
			continue
		}
		if phase == phases || !e.mode.IsRegular() {
			return &failure{codeProtocol, "got transfer request in phase " + itoa(int64(phase))}
		}
		if s.o.dryRun {
			s.log(e, flags, xname)
			s.writeItem(ndx, flags, xname)
			continue
		}
		if err := s.sendFile(e, flags, xname); err != nil {
			return err
		}
	}
	s.w.ndx(done)
	return s.w.flush()
}

func (s *session) sendFile(e *entry, flags int, xname string) error {
	g, err := s.receiveSums()
	if err != nil {
		return err
	}
	f, err := s.p.Open(e.local, syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err == nil && s.o.copyLinks {
		f.Close()
	}
	if err != nil && s.o.copyLinks || err == nil && s.o.copyLinks {
		f, err = s.p.Open(e.local, syscall.O_RDONLY, 0)
	}
	if err == nil {
		if a, aerr := f.Attr(); aerr != nil || !a.Mode.IsRegular() {
			f.Close()
			err = syscall.EINVAL
		}
	}
	if err != nil {
		s.ioError |= 1
		s.problem = true
		s.say(msgXfer, "rsync: [sender] send_files failed to open \""+absolute(s, e.local)+"\": "+strerror(err)+" ("+errno(err)+")\n")
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], uint32(e.ndx))
		return s.w.message(msgNoSend, b[:])
	}
	defer f.Close()
	s.writeItem(e.ndx, flags, xname)
	g.sumHead.send(s.w)
	s.stats.sent++
	s.stats.sentSize += e.size
	s.log(e, flags, xname)
	if err := s.match(f, g, s.o.tokens()); err != nil {
		if errors.Is(err, io.ErrClosedPipe) {
			return err
		}
		return err
	}
	return nil
}

// removeSources deletes what has arrived (--remove-source-files), if everything has.
func (s *session) removeSources() {
	if !s.o.removeSource || s.o.dryRun || s.problem || s.ioError != 0 {
		return
	}
	for _, e := range s.list {
		if !e.dup && !e.isDir() {
			s.p.Unlink(e.local)
		}
	}
}

// goodbye reads the receiver's last word.
func (s *session) goodbye() error {
	if n := s.r.ndx(); s.r.err == nil && n != done {
		return &failure{codeProtocol, "invalid packet at end of run"}
	}
	if s.r.err == nil {
		s.removeSources()
	}
	return s.r.err
}
