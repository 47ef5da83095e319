package sed

import (
	"strings"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// input reads lines of all files, one line ahead, since $ must be known.
type input struct {
	t       *tool.T
	o       *options
	files   []string
	name    string // of the file that the present line is of
	line    int64
	cur     *tool.Input
	lines   *tool.Lines
	ahead   []byte
	chomped bool
	have    bool // ahead holds a line
	failed  bool
	fresh   bool // ahead is the first line of a new file
	curName string
}

func (in *input) close() {
	if in.cur != nil {
		in.cur.Close()
		in.cur = nil
	}
}

// advance makes a line ready. With separate, it stops at the end of a file if stay.
func (in *input) advance(x *executor, stay bool) bool {
	for !in.have {
		if in.cur == nil {
			if stay && x.started(in) {
				return false
			}
			if !in.open(x) {
				return false
			}
		}
		line, ok := in.lines.Next()
		if !ok {
			if in.lines.Err != nil {
				in.failed = true
				in.t.Warn("read error on %s: %s", in.curName, tool.Strerror(in.lines.Err))
			}
			in.close()
			if stay {
				return false
			}
			continue
		}
		in.ahead = append(in.ahead[:0], line...)
		in.chomped = in.lines.Terminated
		in.have = true
	}
	return true
}

// started reports whether the separate file being edited has been read to its end.
func (x *executor) started(in *input) bool { return in.o.separate && in.name != "" && !in.fresh }

// open opens the next file that can be opened.
func (in *input) open(x *executor) bool {
	for len(in.files) > 0 {
		name := in.files[0]
		in.files = in.files[1:]
		f, err := in.t.Open(name)
		var a vfs.Attr
		if err == nil {
			a, _ = f.Attr()
		}
		switch {
		case err != nil:
			in.t.Warn("can't read %s: %s", name, tool.Strerror(err))
			in.failed = true
			continue
		case a.Mode.IsDir() && in.o.inPlace:
			in.t.Warn("couldn't edit %s: not a regular file", name)
			f.Close()
			x.status = exitPanic
			continue
		case a.Mode.IsDir():
			f.Close()
			in.t.Fatal(exitPanic, "read error on %s: Is a directory", name)
		case in.o.inPlace && !a.Mode.IsRegular():
			in.t.Warn("couldn't edit %s: not a regular file", name)
			f.Close()
			x.status = exitPanic
			continue
		}
		x.finishFile()
		in.cur, in.curName = f, name
		in.lines = tool.NewLines(f, in.o.delim)
		in.fresh = true
		if in.o.separate {
			in.line = 0
		}
		if in.o.inPlace {
			x.beginInPlace(name, a)
		}
		return true
	}
	return false
}

// next returns the next line.
func (in *input) next(x *executor) (line []byte, chomped, ok bool) {
	if !in.advance(x, false) {
		return nil, false, false
	}
	in.have, in.fresh = false, false
	in.line++
	in.name = in.curName
	return in.ahead, in.chomped, true
}

// isLast reports whether the present line is the last: of its file with -s and -i, else of all.
func (in *input) isLast(x *executor) bool {
	if in.have {
		return in.fresh && in.o.separate
	}
	return !in.advance(x, in.o.separate)
}

// atEnd reports whether no file has another line.
func (in *input) atEnd() bool { return !in.have && in.cur == nil && len(in.files) == 0 }

// inPlace is a file being edited: its replacement is written beside it.
type inPlace struct {
	target, temp string
	file         vfs.File
	attr         vfs.Attr
}

func (x *executor) beginInPlace(name string, a vfs.Attr) {
	target := name
	if x.o.follow {
		if real, err := x.t.Realpath(name); err == nil {
			target = real
		}
	}
	dir, _ := splitPath(target)
	temp, f, err := x.t.TempFile(dir, "sed", 0o600)
	if err != nil {
		x.t.Fatal(exitPanic, "couldn't open temporary file %s: %s", temp, tool.Strerror(err))
	}
	x.temp = &inPlace{target: target, temp: temp, file: f, attr: a}
	x.out = &output{w: tool.NewFileWriter(f)}
}

func splitPath(name string) (dir, base string) {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return ".", name
	}
	return name[:i+1], name[i+1:]
}

// finishFile puts an edited file in its place.
func (x *executor) finishFile() {
	e := x.temp
	if e == nil {
		return
	}
	x.temp = nil
	w := x.out.w.(*tool.FileWriter)
	x.out = x.std
	perm := e.attr.Mode & vfs.ModePerm
	err := w.Flush()
	if err == nil {
		err = e.file.SetAttr(vfs.SetAttr{Mode: &perm})
	}
	if err == nil {
		e.file.SetAttr(vfs.SetAttr{UID: &e.attr.UID, GID: &e.attr.GID}) // only root can
		err = e.file.Close()
	}
	if err == nil && x.o.suffix != "" {
		err = x.t.Rename(e.target, backup(e.target, x.o.suffix), 0)
	}
	if err == nil {
		err = x.t.Rename(e.temp, e.target, 0)
	}
	if err != nil {
		x.t.Unlink(e.temp)
		x.t.Fatal(exitPanic, "cannot rename %s: %s", e.temp, tool.Strerror(err))
	}
}

func (e *inPlace) abandon(t *tool.T) {
	e.file.Close()
	t.Unlink(e.temp)
}

// backup names a backup: the suffix is added, or replaces each * in itself by the file's name; with a slash it is a path.
func backup(name, suffix string) string {
	dir, base := splitPath(name)
	if dir == "." {
		dir = ""
	}
	if !strings.Contains(suffix, "*") {
		return dir + base + suffix
	}
	b := strings.ReplaceAll(suffix, "*", base)
	if strings.Contains(b, "/") {
		return b
	}
	return dir + b
}
