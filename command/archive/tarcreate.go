package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command/codec"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// writer adds files to an archive.
type writer struct {
	above   [][2]uint64 // the directories that are being added, with -h
	a       *tar
	out     io.Writer
	id      [2]uint64 // of the archive itself
	links   map[[2]uint64]string
	have    map[string]time.Time // for -u: members and their times
	buf     []byte
	removed []string
}

func (a *tar) newWriter(out io.Writer, id [2]uint64) *writer {
	w := &writer{a: a, out: out, id: id, links: map[[2]uint64]string{}, buf: make([]byte, 64<<10)}
	if a.enc.globals != "" && a.format == formatPax {
		h := &tarHeader{name: "GlobalHead", mtime: a.t.Now()}
		p := a.enc
		p.paxName = "/tmp/GlobalHead.%p.1"
		out.Write(p.paxHeader(h, a.enc.globals, typePaxAll))
	}
	return w
}

func (a *tar) create() {
	o := a.openOutput()
	w := a.newWriter(o, o.id)
	start := a.t.Now()
	w.addAll()
	o.finish()
	w.removeAll()
	if a.totals {
		a.reportTotals(o.n, a.t.Now().Sub(start))
	}
}

func (a *tar) reportTotals(n int64, d time.Duration) {
	rate := int64(float64(n) / max(d.Seconds(), 1e-6))
	a.t.Out.Flush()
	fmt.Fprintf(a.t.Stderr(), "Total bytes written: %d (%siB, %siB/s)\n", n, tool.Human(uint64(n), 1024), tool.Human(uint64(rate), 1024))
}

func (w *writer) addAll() {
	for _, n := range w.a.names {
		w.add(n.dir, n.name, n.recurse, true, 0)
	}
}

// removeAll is --remove-files: directories are removed after what is in them.
func (w *writer) removeAll() {
	for i := len(w.removed) - 1; i >= 0; i-- {
		p := w.removed[i]
		at, err := w.a.t.Lstat(p)
		if err != nil {
			continue
		}
		if at.Mode.IsDir() {
			err = w.a.t.Rmdir(p)
		} else {
			err = w.a.t.Unlink(p)
		}
		if err != nil {
			w.a.failFile(p, "Cannot unlink", err)
		}
	}
}

// add adds a file and what is below it. dev is that of the directory above, 0 at the top.
func (w *writer) add(dir, name string, recurse, top bool, dev uint64) {
	a, t := w.a, w.a.t
	t.Check()
	if a.excluded(name) {
		return
	}
	p := joinDir(dir, name)
	at, err := t.Lstat(p)
	if err == nil && a.follow && at.Mode.IsSymlink() {
		at, err = t.Stat(p)
	}
	if err != nil {
		if !top && tool.IsNotExist(err) {
			t.Warn("%s: File removed before we read it", tarQuote(p))
			a.status = max(a.status, 1)
			return
		}
		if a.ignoreFailed {
			t.Warn("%s: Warning: Cannot stat: %s", tarQuote(name), tool.Strerror(err))
			return
		}
		a.failFile(name, "Cannot stat", err)
		return
	}
	isDir := at.Mode.IsDir()
	if isDir && slices.Contains(w.above, [2]uint64{at.Dev, uint64(at.Ino)}) {
		// GNU goes on until the system refuses so many links, with ever longer names.
		t.Warn("%s: leads back to a directory that it is in; not dumped", tarQuote(name))
		a.status = max(a.status, 1)
		return
	}
	if a.oneFS && dev != 0 && at.Dev != dev {
		return
	}
	if a.newer != nil && !isDir {
		when := at.Mtime
		if !a.newerMtime && at.Ctime.After(when) {
			when = at.Ctime
		}
		if when.Before(*a.newer) {
			if top {
				t.Warn("%s: file is unchanged; not dumped", tarQuote(name))
			}
			return
		}
	}
	if id := [2]uint64{at.Dev, uint64(at.Ino)}; w.id != [2]uint64{} && id == w.id && at.Mode.IsRegular() {
		t.Warn("%s: file is the archive; not dumped", tarQuote(name))
		return
	}
	member := a.rename(a.safeName(name, false), 'r')
	if isDir {
		member = withSlash(member)
	}
	if member == "" || member == "/" && !a.absolute {
		if isDir && recurse {
			w.children(dir, name, at)
		}
		return
	}
	if w.have != nil {
		if old, ok := w.have[strings.TrimRight(member, "/")]; ok && !at.Mtime.Truncate(time.Second).After(old) {
			if isDir && recurse {
				w.children(dir, name, at)
			}
			return
		}
	}
	w.member(p, name, member, at)
	if isDir && recurse {
		w.children(dir, name, at)
	}
}

// withSlash ends a directory's name in one slash.
func withSlash(name string) string {
	if name == "" {
		return ""
	}
	trimmed := strings.TrimRight(name, "/")
	if trimmed == "" {
		return name
	}
	return trimmed + "/"
}

// header fills in what an archive says about a file.
func (w *writer) header(member string, at vfs.Attr) *tarHeader {
	a := w.a
	h := &tarHeader{name: member, mode: int64(at.Mode & 0o7777), uid: int64(at.UID), gid: int64(at.GID), mtime: at.Mtime, typ: typeRegular}
	if a.format == formatPax {
		h.atime, h.ctime = at.Atime, at.Ctime
	} else {
		h.mtime = at.Mtime.Truncate(time.Second)
		if h.mtime.After(at.Mtime) {
			h.mtime = h.mtime.Add(-time.Second)
		}
	}
	if a.mtime != nil && (!a.clamp || at.Mtime.After(*a.mtime)) {
		h.mtime = *a.mtime
		if a.format != formatPax {
			h.mtime = time.Unix(a.mtime.Unix(), 0)
		}
	}
	if a.mode != nil {
		h.mode = int64(a.mode.Apply(at.Mode, 0) & 0o7777)
	}
	if !a.numeric {
		h.uname, h.gname = a.userName(at.UID), a.groupName(at.GID)
	}
	if o := a.owner; o != nil {
		if o.id >= 0 {
			h.uid = o.id
		}
		if h.uname = o.name; o.name == "" && !a.numeric {
			h.uname = a.userName(uint32(h.uid))
		}
	}
	if o := a.group; o != nil {
		if o.id >= 0 {
			h.gid = o.id
		}
		if h.gname = o.name; o.name == "" && !a.numeric {
			h.gname = a.groupName(uint32(h.gid))
		}
	}
	if a.numeric {
		h.uname, h.gname = "", ""
	}
	return h
}

// member writes one member. p is where the file is, name how the user calls it.
func (w *writer) member(p, name, member string, at vfs.Attr) {
	a, t := w.a, w.a.t
	h := w.header(member, at)
	id := [2]uint64{at.Dev, uint64(at.Ino)}
	linked := at.Nlink > 1 && !at.Mode.IsDir() && !a.hardDeref
	if linked {
		if first, ok := w.links[id]; ok {
			h.typ = typeLink
			h.link = a.rename(a.safeName(first, true), 'h')
			w.put(h, name, at)
			w.done(p)
			return
		}
	}
	ok := true
	switch at.Mode & vfs.ModeType {
	case vfs.ModeDir:
		h.typ = typeDir
		w.put(h, name, at)
	case vfs.ModeSymlink:
		target, err := t.Readlink(p)
		if err != nil {
			a.failFile(name, "Cannot readlink", err)
			return
		}
		h.typ, h.link = typeSymlink, a.rename(target, 's')
		ok = w.put(h, name, at)
	case vfs.ModeRegular:
		ok = w.regular(p, name, h, at)
	case vfs.ModeFIFO:
		h.typ = typeFIFO
		w.put(h, name, at)
	case vfs.ModeChar, vfs.ModeBlock:
		h.typ = typeChar
		if at.Mode&vfs.ModeType == vfs.ModeBlock {
			h.typ = typeBlock
		}
		h.major, h.minor = int64(at.Rdev>>8&0xfff|at.Rdev>>32&^0xfff), int64(at.Rdev&0xff|at.Rdev>>12&^0xff)
		w.put(h, name, at)
	default:
		t.Warn("%s: socket ignored", tarQuote(name))
		return
	}
	if linked && ok && len(w.links) < maxNames {
		w.links[id] = name
	}
	if ok {
		w.done(p)
	}
}

func (w *writer) done(p string) {
	if w.a.removeFiles && len(w.removed) < maxNames {
		w.removed = append(w.removed, p)
	}
}

// put writes a header, and the line of -v.
func (w *writer) put(h *tarHeader, name string, at vfs.Attr) bool {
	b, err := w.a.enc.encode(h)
	if err != nil {
		var ne *nameError
		if errors.As(err, &ne) {
			w.a.fail("%s: %s", tarQuote(ne.what), ne.text)
		} else {
			w.a.fail("%s", err)
		}
		return false
	}
	if w.a.verbose > 0 {
		shown := *h
		if !w.a.showNames {
			if shown.name = name; h.typ == typeDir {
				shown.name = withSlash(name)
			}
		}
		shown.real = at.Size
		if h.typ != typeRegular && h.typ != typeSparse {
			shown.real = 0
		}
		w.a.show(&shown, w.a.archive == "-", -1)
	}
	w.out.Write(b)
	return true
}

func (w *writer) regular(p, name string, h *tarHeader, at vfs.Attr) bool {
	a, t := w.a, w.a.t
	f, err := t.OpenFile(p)
	if err != nil {
		if a.ignoreFailed {
			t.Warn("%s: Warning: Cannot open: %s", tarQuote(name), tool.Strerror(err))
			return false
		}
		a.failFile(name, "Cannot open", err)
		return false
	}
	defer f.Close()
	h.size, h.real = at.Size, at.Size
	if a.sparse && (a.format == formatGNU || a.format == formatOldGNU) && at.Blocks*512 < at.Size {
		if list, total, ok := w.holes(f, at.Size); ok {
			h.typ, h.sparse, h.size = typeSparse, list, total
			if !w.put(h, name, at) {
				return false
			}
			for _, s := range list {
				w.copy(io.NewSectionReader(f.File, s.off, s.n), name, s.n)
			}
			w.pad(h.size)
			return true
		}
		f.File.Seek(0, io.SeekStart)
	}
	if !w.put(h, name, at) {
		return false
	}
	w.copy(f, name, h.size)
	w.pad(h.size)
	if now, err := f.Attr(); err == nil && (now.Size != at.Size || !now.Mtime.Equal(at.Mtime)) {
		t.Warn("%s: file changed as we read it", tarQuote(name))
		a.status = max(a.status, 1)
	}
	return true
}

// copy copies n bytes of data; what is missing is written as zeros.
func (w *writer) copy(r io.Reader, name string, n int64) {
	left := n
	for left > 0 {
		w.a.t.Check()
		m, err := io.ReadFull(r, w.buf[:min(int64(len(w.buf)), left)])
		if m > 0 {
			w.out.Write(w.buf[:m])
			left -= int64(m)
		}
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				w.a.t.Warn("%s: File shrank by %d bytes; padding with zeros", tarQuote(name), left)
				w.a.status = max(w.a.status, 1)
			} else {
				w.a.failFile(name, fmt.Sprintf("Read error at byte %d, while reading %d bytes", n-left, min(left, int64(len(w.buf)))), err)
			}
			clear(w.buf)
			for left > 0 {
				m := min(left, int64(len(w.buf)))
				w.out.Write(w.buf[:m])
				left -= m
			}
		}
	}
}

func (w *writer) pad(n int64) {
	if p := -n & (blockSize - 1); p > 0 {
		w.out.Write(make([]byte, p))
	}
}

// holes finds the pieces of a file that aren't zero, in units of blocks.
func (w *writer) holes(f *tool.Input, size int64) (list []segment, total int64, ok bool) {
	var zero, b [blockSize]byte
	cur := segment{}
	off := int64(0)
	for {
		n, err := io.ReadFull(f, b[:])
		if n > 0 {
			if bytes.Equal(b[:n], zero[:n]) {
				if cur.n > 0 {
					list = append(list, cur)
					cur.n = 0
				}
			} else {
				if cur.n == 0 {
					cur.off = off
				}
				cur.n += int64(n)
				total += int64(n)
			}
			off += int64(n)
		}
		if err != nil || len(list) > maxSegments {
			break
		}
	}
	if cur.n == 0 {
		cur.off = off
	}
	return append(list, cur), total, off == size && total < size && len(list) < maxSegments
}

// children adds what is in a directory.
func (w *writer) children(dir, name string, at vfs.Attr) {
	a, t := w.a, w.a.t
	p := joinDir(dir, name)
	if a.follow {
		w.above = append(w.above, [2]uint64{at.Dev, uint64(at.Ino)})
		defer func() { w.above = w.above[:len(w.above)-1] }()
	}
	list, err := t.ReadDir(p)
	if err != nil {
		a.failFile(name, "Cannot open", err)
		return
	}
	tag := w.tag(p)
	if tag != "" {
		t.Warn("%s: contains a cache directory tag %s; contents not dumped", tarQuote(withSlash(name)), tag)
	}
	switch a.sortBy {
	case "name":
		slices.SortFunc(list, func(x, y vfs.DirEntry) int { return strings.Compare(x.Name, y.Name) })
	case "inode":
		slices.SortFunc(list, func(x, y vfs.DirEntry) int {
			if x.Ino < y.Ino {
				return -1
			}
			return 1
		})
	}
	prefix := name
	if !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	if strings.Count(prefix, "/") > 2000 {
		a.failFile(name, "Cannot open", syscall.ENAMETOOLONG)
		return
	}
	for _, e := range list {
		if tag != "" && e.Name != tag {
			continue
		}
		w.add(dir, prefix+e.Name, true, false, at.Dev)
	}
}

// tag returns the file that says a directory's contents needn't be kept.
func (w *writer) tag(p string) string {
	if w.a.caches {
		if b, err := w.a.t.ReadFile(joinDir(p, "CACHEDIR.TAG"), maxMeta); err == nil && bytes.HasPrefix(b, []byte("Signature: 8a477f597d28d172789f06886806bc55")) {
			return "CACHEDIR.TAG"
		}
	}
	for _, name := range w.a.tags {
		if _, err := w.a.t.Lstat(joinDir(p, name)); err == nil {
			return name
		}
	}
	return ""
}

// openUpdate opens an archive to change it in place.
func (a *tar) openUpdate() (f vfs.File, in *input) {
	t := a.t
	if a.archive == "-" {
		a.fatal("Options '-Aru' are incompatible with '-f -'")
	}
	if a.compression != codec.None || a.program != "" {
		t.Warn("Cannot update compressed archives")
		a.usage()
	}
	flags := syscall.O_RDWR
	if a.op == 'r' || a.op == 'u' || a.op == 'A' {
		flags |= syscall.O_CREAT
	}
	f, err := t.Process.Open(a.archive, flags, 0o666)
	if err != nil {
		a.fatal("%s: Cannot open: %s", tarQuote(a.archive), tool.Strerror(err))
	}
	head := make([]byte, codec.HeadSize)
	n, _ := f.ReadAt(head, 0)
	if c := codec.Detect(head[:n]); c != codec.None && c != codec.Lzma {
		a.fatal("Cannot update compressed archives")
	}
	at, err := f.Attr()
	if err != nil {
		a.fatal("%s: Cannot stat: %s", tarQuote(a.archive), tool.Strerror(err))
	}
	r := io.NewSectionReader(f, 0, at.Size)
	return f, &input{a: a, tarReader: &tarReader{r: &metered{t, r}, ignore: a.ignoreZeros}}
}

// appender writes behind the members of an archive.
type appender struct {
	a   *tar
	f   vfs.File
	off int64
	buf []byte
}

func (w *appender) Write(p []byte) (int, error) {
	if w.a.t.Step(1+len(p)/1024) != nil {
		w.a.t.Check()
	}
	if w.buf = append(w.buf, p...); len(w.buf) >= 64<<10 {
		w.flush()
	}
	return len(p), nil
}

func (w *appender) flush() {
	n, err := w.f.WriteAt(w.buf, w.off)
	w.off += int64(n)
	w.buf = w.buf[:0]
	if err != nil {
		w.a.writeFailed(err)
	}
}

// finish pads to a whole record, and cuts off what is behind it.
func (w *appender) finish() {
	record := int64(w.a.blocking) * blockSize
	w.flush()
	end := (w.off + 2*blockSize + record - 1) / record * record
	w.Write(make([]byte, end-w.off))
	w.flush()
	if err := w.f.SetAttr(vfs.SetAttr{Size: &w.off}); err != nil {
		w.a.writeFailed(err)
	}
	if err := w.f.Close(); err != nil {
		w.a.writeFailed(err)
	}
}

// appendTo is -r and -u.
func (a *tar) appendTo() {
	f, in := a.openUpdate()
	have := map[string]time.Time{}
	in.each(func(h *tarHeader) bool {
		if a.op == 'u' && len(have) < maxNames {
			name := strings.TrimRight(h.name, "/")
			if old, ok := have[name]; !ok || h.mtime.After(old) {
				have[name] = h.mtime
			}
		}
		return true
	})
	if a.status == 2 {
		return
	}
	id := [2]uint64{}
	if at, err := f.Attr(); err == nil {
		id = [2]uint64{at.Dev, uint64(at.Ino)}
	}
	out := &appender{a: a, f: f, off: in.start}
	w := a.newWriter(out, id)
	if a.op == 'u' {
		w.have = have
	}
	w.addAll()
	out.finish()
	w.removeAll()
}

// catenate is -A: the members of other archives go to the end of this one.
func (a *tar) catenate() {
	f, in := a.openUpdate()
	in.each(func(*tarHeader) bool { return true })
	out := &appender{a: a, f: f, off: in.start}
	target := a.archive
	for _, n := range a.names {
		a.archive = joinDir(n.dir, n.name)
		other := a.openInput()
		other.keep = true
		other.each(func(h *tarHeader) bool {
			out.Write(other.raw2())
			io.Copy(out, other.tarReader)
			if other.left == 0 {
				out.Write(make([]byte, other.pad))
			}
			return true
		})
		other.close()
	}
	a.archive = target
	out.finish()
}

// raw2 returns the headers of the current member as they are.
func (i *input) raw2() []byte { return i.tarReader.raw }

// remove is --delete: members that stay move forward in the file.
func (a *tar) remove() {
	f, in := a.openUpdate()
	to := int64(0)
	buf := make([]byte, 64<<10)
	in.each(func(h *tarHeader) bool {
		_, gone := a.wanted(h.name)
		if a.names == nil {
			gone = false
		}
		start := in.start
		if err := in.skip(); err != nil {
			a.fatal("Unexpected EOF in archive")
		}
		if gone {
			return true
		}
		for from := start; from < in.off && from != to; {
			n, err := f.ReadAt(buf[:min(int64(len(buf)), in.off-from)], from)
			if n == 0 && err != nil {
				a.fatal("%s: Cannot read: %s", tarQuote(a.archive), tool.Strerror(err))
			}
			if _, err := f.WriteAt(buf[:n], to+from-start); err != nil {
				a.writeFailed(err)
			}
			from += int64(n)
		}
		to += in.off - start
		return true
	})
	out := &appender{a: a, f: f, off: to}
	out.finish()
	a.missing()
}

// missing reports operands that weren't found in the archive.
func (a *tar) missing() {
	for _, n := range a.names {
		if n.found == 0 {
			a.fail("%s: Not found in archive", tarQuote(n.name))
		}
	}
}
