package diff

import (
	"fmt"
	"path"
	"strings"
	"syscall"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// finish writes the result, what was rejected, and says so.
func (w *patching) finish() {
	f := w.f
	to := after
	if w.reverse {
		to = before
	}
	if !w.skip && w.output == "" && !w.nothing {
		w.result(to)
	} else if !w.skip && w.output != "" {
		if !w.dry {
			w.more(w.output, strings.Join(w.done, ""))
		}
	}
	if w.failures == 0 {
		return
	}
	w.failed = true
	word := "FAILED"
	if w.skip {
		word = "ignored"
	}
	w.say("%d out of %d hunk%s %s", w.failures, len(f.hunks), plural(len(f.hunks)), word)
	if !w.unsaved && !w.dry && w.rejects != "-" {
		name := w.rejects
		if name == "" {
			if name = w.out + ".rej"; w.output != "" {
				name = w.output + ".rej"
			}
		}
		w.say(" -- saving rejects to file %s", tool.QuoteF(name))
		text := w.rejectHead() + w.rejected.String()
		if w.rejects != "" {
			w.more(name, text)
		} else {
			w.write(name, text, 0)
		}
	}
	w.say("\n")
}

// result puts the result in the file's place, or removes the file.
func (w *patching) result(to int) {
	empty := len(w.done) == 0
	gone := empty && (w.removeEmpty || w.f.missing[to] == 2 && !w.posix)
	backup := w.backup || w.mismatchBackup && (w.mismatch || w.failures > 0)
	changed := w.failures < len(w.f.hunks) || w.f.format == 'e' || w.f.rename || w.f.copy || len(w.f.hunks) == 0
	if !gone && !empty && w.f.missing[to] == 2 && !w.posix {
		w.failed, w.mismatch = true, true
		w.tell("Not deleting file %s as content differs from patch\n", tool.QuoteF(w.out))
	}
	if w.dry {
		return
	}
	if backup && w.exists && w.in == w.out && !w.outputs[w.out] {
		w.saveOriginal()
	} else if w.backup && !w.exists {
		w.write(w.backupName(w.out), "", 0o666)
	}
	switch {
	case !changed:
		return
	case gone && w.exists:
		w.remove(w.out)
	case gone:
	default:
		w.put(to)
	}
	w.outputs[w.out] = true
	if w.in != w.out && w.f.rename {
		w.remove(w.in)
	}
}

// put writes the file, or makes the link, that the patch leads to.
func (w *patching) put(to int) {
	text := strings.Join(w.done, "")
	mode := w.f.modes[to]
	w.parents(w.out)
	if mode.IsSymlink() || w.at.Mode.IsSymlink() && mode == 0 {
		w.t.Unlink(w.out)
		if err := w.t.Symlink(text, w.out); err != nil {
			w.fatal("Can't create symbolic link %s : %s", tool.QuoteF(w.out), tool.Strerror(err))
		}
		return
	}
	perm := w.mode
	if !w.exists {
		perm = 0
	}
	if mode != 0 && w.f.git {
		perm = mode & 0o777
		if w.exists && w.f.modes[before] == w.f.modes[after] {
			perm = w.mode
		}
	}
	if w.exists && w.at.Mode&0o222 == 0 && w.readOnly != "ignore" {
		w.tell("File %s is read-only; trying to patch anyway\n", tool.QuoteF(w.out))
	}
	w.write(w.out, text, perm)
}

// parents makes the directories above a name.
func (w *patching) parents(name string) {
	dir := path.Dir(name)
	if dir == "." || dir == "/" {
		return
	}
	if _, err := w.t.Stat(dir); err != nil {
		w.parents(dir)
		w.t.Mkdir(dir, 0o777)
	}
}

// remove removes a file, and the directories above it that become empty.
func (w *patching) remove(name string) {
	if err := w.t.Unlink(name); err != nil {
		w.fatal("Can't remove file %s : %s", tool.QuoteF(name), tool.Strerror(err))
	}
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if w.t.Rmdir(dir) != nil {
			return
		}
	}
}

// write makes a file anew with a mode; mode 0 is that of a new file.
func (w *patching) write(name, text string, mode vfs.Mode) {
	perm := mode
	if perm == 0 {
		perm = 0o666
	}
	tmp, f, err := w.t.TempFile(path.Dir(name), ".patch", perm)
	if err == nil {
		_, err = f.Write([]byte(text))
		if err == nil && mode != 0 {
			err = f.SetAttr(vfs.SetAttr{Mode: &mode})
		}
		if e := f.Close(); err == nil {
			err = e
		}
		if err == nil {
			err = w.t.Rename(tmp, name, 0)
		}
		if err != nil {
			w.t.Unlink(tmp)
		}
	}
	if err != nil {
		w.fatal("Can't create file %s : %s", tool.QuoteF(name), tool.Strerror(err))
	}
}

// more writes a file that all patches of a run write to.
func (w *patching) more(name, text string) {
	if name == "-" {
		w.t.Out.WriteString(text)
		return
	}
	flags, perm := syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC, vfs.Mode(0o666)
	if name == w.output {
		perm = 0o600 // the original's temporary file in its place
	}
	if w.outputs[name] {
		flags = syscall.O_WRONLY | syscall.O_APPEND
	}
	w.outputs[name] = true
	f, err := w.t.Process.Open(name, flags, perm)
	if err == nil {
		_, err = f.Write([]byte(text))
		if e := f.Close(); err == nil {
			err = e
		}
	}
	if err != nil {
		w.fatal("Can't create file %s : %s", tool.QuoteF(name), tool.Strerror(err))
	}
}

func (w *patching) backupName(name string) string {
	dir, base := "", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		dir, base = name[:i+1], name[i+1:]
	}
	if w.prefix+w.base+w.suffix == "" {
		numbered := func(n int) string { return fmt.Sprintf("%s.~%d~", name, n) }
		n := 1
		for ; n < 100000; n++ {
			if _, err := w.t.Lstat(numbered(n)); err != nil {
				break
			}
		}
		if w.version == "numbered" || w.version == "existing" && n > 1 {
			return numbered(n)
		}
		return name + ".orig"
	}
	return w.prefix + dir + w.base + base + w.suffix
}

func (w *patching) saveOriginal() {
	text, err := w.t.ReadFile(w.in, maxFile)
	if err != nil {
		w.fatal("Can't open file %s : %s", tool.QuoteF(w.in), tool.Strerror(err))
	}
	name := w.backupName(w.in)
	w.parents(name)
	w.write(name, string(text), w.at.Mode&0o7777)
}

// unified reports whether rejects are written as unified diffs: as they came, or as asked for.
func (w *patching) unified() bool {
	return w.rejectFormat == "unified" || w.rejectFormat == "" && w.f.format == 'u'
}

func (w *patching) rejectHead() string {
	marks := [2]string{"*** ", "--- "}
	if w.unified() {
		marks = [2]string{"--- ", "+++ "}
	}
	var b strings.Builder
	for side, mark := range marks {
		if w.reverse {
			side = 1 - side
		}
		name, stamp := w.stripped(w.f.names[side]), w.f.stamps[side]
		if name == "" || name == "/dev/null" {
			name, stamp = "/dev/null", ""
		}
		b.WriteString(mark + name + stamp + "\n")
	}
	return b.String()
}

// reject keeps a hunk for the file of rejects.
func (w *patching) reject(h *patchHunk) {
	b := &w.rejected
	put := func(mark string, l patchLine) {
		b.WriteString(mark + l.text)
		if !strings.HasSuffix(l.text, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
	if w.unified() {
		fmt.Fprintf(b, "@@ -%s +%s @@%s\n", rejectSpan(h.first[before]+w.shift, h.count[before]), rejectSpan(h.first[after]+w.shift, h.count[after]), h.function)
		for _, l := range h.lines {
			put(string(rune(l.kind)), l)
		}
		return
	}
	fmt.Fprintf(b, "***************%s\n", h.function)
	both := make([]bool, len(h.lines)) // lines that are among others of the other kind
	for i := 0; i < len(h.lines); {
		j, kinds := i, map[byte]bool{}
		for ; j < len(h.lines) && h.lines[j].kind != ' '; j++ {
			kinds[h.lines[j].kind] = true
		}
		for k := i; k < j; k++ {
			both[k] = len(kinds) == 2 && w.f.format != 'n'
		}
		i = j + 1
	}
	for side := range 2 {
		first, last := h.first[side], h.first[side]+h.count[side]-1
		text := fmt.Sprint(first)
		if h.count[side] > 1 {
			text = fmt.Sprintf("%d,%d", first, last)
		}
		switch {
		case side == before && w.f.format == 'n':
			fmt.Fprintf(b, "*** %s\n", text)
		case side == before:
			fmt.Fprintf(b, "*** %s ****\n", text)
		case w.f.format == 'n':
			fmt.Fprintf(b, "--- %s -----\n", text)
		default:
			fmt.Fprintf(b, "--- %s ----\n", text)
		}
		own := "-+"[side]
		for i, l := range h.lines {
			if l.kind == ' ' {
				put("  ", l)
			} else if l.kind == own && both[i] {
				put("! ", l)
			} else if l.kind == own {
				put(string(rune(own))+" ", l)
			}
		}
	}
}

func rejectSpan(first, count int) string {
	if count == 1 {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d,%d", first, count)
}
