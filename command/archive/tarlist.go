package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

func (a *tar) list() {
	in := a.openInput()
	defer in.close()
	in.each(func(h *tarHeader) bool {
		n, ok := a.wanted(h.name)
		if !ok || a.excluded(h.name) {
			return !a.sated()
		}
		_ = n
		stored := h.name
		if !a.resolve(h) {
			return true
		}
		if a.newer != nil && h.mtime.Before(*a.newer) {
			return true
		}
		if !a.showNames {
			h.name = stored
		}
		a.show(h, false, in.start/blockSize)
		return true
	})
	a.missing()
}

// sated reports whether all that was asked for has been found, with --occurrence.
func (a *tar) sated() bool {
	if a.occurrence == 0 {
		return false
	}
	for _, n := range a.names {
		if n.found < a.occurrence {
			return false
		}
	}
	return a.names != nil
}

// resolve gives a member the name under which it is extracted; false if none is left.
func (a *tar) resolve(h *tarHeader) bool {
	dir := h.isDir()
	name := a.safeName(h.name, false)
	if name = a.rename(name, 'r'); name == "" {
		return false
	}
	if h.name = name; dir && !strings.HasSuffix(name, "/") {
		h.name += "/"
	}
	switch h.typ {
	case typeLink:
		link := a.safeName(h.link, true)
		h.link = a.rename(link, 'h')
	case typeSymlink:
		h.link = a.rename(h.link, 's')
	}
	return true
}

// typeLetter is the first letter of a line of -tv.
func (h *tarHeader) typeLetter() byte {
	switch h.typ {
	case typeLink:
		return 'h'
	case typeSymlink:
		return 'l'
	case typeChar:
		return 'c'
	case typeBlock:
		return 'b'
	case typeFIFO:
		return 'p'
	case typeCont:
		return 'C'
	case typeVolume:
		return 'V'
	case typeMulti:
		return 'M'
	}
	if h.isDir() {
		return 'd'
	}
	return '-'
}

// show writes a member's line: its name, or with -vv (-tv) all about it.
func (a *tar) show(h *tarHeader, toStderr bool, block int64) {
	var b strings.Builder
	if a.blockNumbers && block >= 0 {
		fmt.Fprintf(&b, "block %d: ", block)
	}
	long := a.verbose > 1 || a.verbose == 1 && (a.op == 't')
	if long {
		mode := []byte(tool.FormatMode(vfs.Mode(h.mode) | vfs.ModeRegular))
		mode[0] = h.typeLetter()
		owner, group := h.uname, h.gname
		if owner == "" || a.numeric {
			owner = itoa(h.uid)
		}
		if group == "" || a.numeric {
			group = itoa(h.gid)
		}
		size := itoa(h.real)
		if h.typ == typeChar || h.typ == typeBlock {
			size = itoa(h.major) + "," + itoa(h.minor)
		}
		at := a.zone(h.mtime)
		when := at.Format("2006-01-02 15:04")
		if a.fullTime {
			when = at.Format("2006-01-02 15:04:05")
			if ns := at.Nanosecond(); ns != 0 {
				when += strings.TrimRight(fmt.Sprintf(".%09d", ns), "0")
			}
		}
		a.width = max(a.width, len(owner)+1+len(group)+1+len(size))
		a.dateWidth = max(a.dateWidth, len(when))
		fmt.Fprintf(&b, "%s %s/%s %*s %-*s ", mode, tarQuote(owner), tarQuote(group), a.width-len(owner)-len(group)-2, size, a.dateWidth, when)
	}
	b.WriteString(a.quote(h.name))
	if long {
		switch h.typ {
		case typeLink:
			b.WriteString(" link to " + a.quote(h.link))
		case typeSymlink:
			b.WriteString(" -> " + a.quote(h.link))
		}
	}
	b.WriteByte('\n')
	switch {
	case a.indexFile != nil:
		a.indexFile.WriteString(b.String())
		a.indexFile.Flush()
	case toStderr:
		a.t.Out.Flush()
		a.t.Stderr().Write([]byte(b.String()))
	default:
		a.t.Out.WriteString(b.String())
	}
}

// compare is -d.
func (a *tar) compare() {
	in := a.openInput()
	defer in.close()
	in.each(func(h *tarHeader) bool {
		n, ok := a.wanted(h.name)
		if !ok || a.excluded(h.name) {
			return true
		}
		dir := a.dir
		if n != nil {
			dir = n.dir
		}
		if !a.resolve(h) {
			return true
		}
		if a.verbose > 0 {
			a.show(h, false, in.start/blockSize)
		}
		a.differ(in, h, joinDir(dir, h.name))
		return true
	})
	a.missing()
}

func (a *tar) differs(name, what string) {
	a.t.Out.WriteString(tarQuote(name) + ": " + what + "\n")
	a.status = max(a.status, 1)
}

// differ compares one member with a file.
func (a *tar) differ(in *input, h *tarHeader, p string) {
	h.name = strings.TrimRight(h.name, "/")
	at, err := a.t.Lstat(p)
	if err == nil && a.follow {
		at, err = a.t.Stat(p)
	}
	if err != nil {
		if tool.IsNotExist(err) {
			what := "stat"
			if h.typ == typeSymlink {
				what = "readlink"
			}
			a.t.Warn("%s: Warning: Cannot %s: %s", tarQuote(h.name), what, tool.Strerror(err))
			a.status = max(a.status, 1)
		} else {
			a.failFile(h.name, "Cannot stat", err)
		}
		return
	}
	kind := at.Mode & vfs.ModeType
	switch h.typ {
	case typeLink:
		other, err := a.t.Lstat(joinDir(a.dir, h.link))
		if err != nil || other.Ino != at.Ino || other.Dev != at.Dev {
			a.differs(h.name, "Not linked to "+tarQuote(h.link))
		}
		return
	case typeSymlink:
		target, err := a.t.Readlink(p)
		if err != nil {
			a.failFile(h.name, "Cannot readlink", err)
		} else if target != h.link {
			a.differs(h.name, "Symlink differs")
		}
		return
	}
	want := map[bool]vfs.Mode{true: vfs.ModeDir, false: vfs.ModeRegular}[h.isDir()]
	switch h.typ {
	case typeChar:
		want = vfs.ModeChar
	case typeBlock:
		want = vfs.ModeBlock
	case typeFIFO:
		want = vfs.ModeFIFO
	}
	if kind != want {
		a.differs(h.name, "File type differs")
		return
	}
	if int64(at.Mode&0o7777) != h.mode {
		a.differs(h.name, "Mode differs")
	}
	if want != vfs.ModeRegular {
		return
	}
	if int64(at.UID) != h.uid {
		a.differs(h.name, "Uid differs")
	}
	if int64(at.GID) != h.gid {
		a.differs(h.name, "Gid differs")
	}
	if at.Mtime.Unix() != h.mtime.Unix() {
		a.differs(h.name, "Mod time differs")
	}
	if at.Size != h.real {
		a.differs(h.name, "Size differs")
		return
	}
	if h.isSparse {
		return
	}
	f, err := a.t.OpenFile(p)
	if err != nil {
		a.failFile(h.name, "Cannot open", err)
		return
	}
	defer f.Close()
	if same, err := sameData(in, f); err != nil {
		a.failFile(h.name, "Cannot read", err)
	} else if !same {
		a.differs(h.name, "Contents differ")
	}
}

func sameData(r, s io.Reader) (bool, error) {
	x, y := make([]byte, 32<<10), make([]byte, 32<<10)
	for {
		n, err1 := io.ReadFull(r, x)
		m, err2 := io.ReadFull(s, y)
		if n != m || !bytes.Equal(x[:n], y[:m]) {
			return false, nil
		}
		for _, err := range []error{err1, err2} {
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return false, err
			}
		}
		if err1 != nil {
			return true, nil
		}
	}
}
