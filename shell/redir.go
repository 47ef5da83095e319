package shell

import (
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/vfs"
	"mvdan.cc/sh/v3/syntax"
)

// undoFd puts a descriptor back: saved is where it went, -1 if it was closed before.
type undoFd struct{ fd, saved int }

// minSaved is where bash keeps the descriptors that it saves.
const minSaved = 10

// redirect performs redirections in order. With save it returns how to undo them, also after a failure.
func (sh *Shell) redirect(redirs []*syntax.Redirect, save bool) (undo []undoFd, ok bool) {
	for _, r := range redirs {
		if !sh.redirectOne(r, save, &undo) {
			return undo, false
		}
		sh.touch()
	}
	return undo, true
}

// keep saves what a descriptor is.
func (sh *Shell) keep(fd int, save bool, undo *[]undoFd) {
	if !save {
		return
	}
	saved, err := sh.p.Dup(fd, minSaved, true)
	if err != nil {
		saved = -1
	}
	*undo = append(*undo, undoFd{fd, saved})
}

func (sh *Shell) restoreFds(undo []undoFd) {
	for i := len(undo) - 1; i >= 0; i-- {
		u := undo[i]
		if u.saved < 0 {
			sh.p.CloseFd(u.fd)
			continue
		}
		sh.p.Dup2(u.saved, u.fd)
		sh.p.CloseFd(u.saved)
	}
}

func defaultFd(op syntax.RedirOperator) int {
	switch op {
	case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return 0
	}
	return 1
}

func (sh *Shell) redirectOne(r *syntax.Redirect, save bool, undo *[]undoFd) bool {
	fd, varName := defaultFd(r.Op), ""
	if r.N != nil {
		if strings.HasPrefix(r.N.Value, "{") {
			varName = strings.Trim(r.N.Value, "{}")
		} else {
			n, err := strconv.Atoi(r.N.Value)
			if err != nil {
				sh.errorf("file descriptor out of range: Bad file descriptor")
				return false
			}
			fd = n
		}
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return sh.place(fd, varName, save, undo, sh.hereFile(r))
	case syntax.DplIn, syntax.DplOut:
		return sh.duplicate(r, fd, varName, save, undo)
	}
	name, ok := sh.redirName(r)
	if !ok {
		return false
	}
	both := r.Op == syntax.RdrAll || r.Op == syntax.AppAll
	f, ok := sh.openRedir(r.Op, name)
	if !ok {
		return false
	}
	if both {
		sh.keep(1, save, undo)
		sh.keep(2, save, undo)
		return sh.check(name, sh.p.Install(1, f)) && sh.check(name, sh.p.Dup2(1, 2))
	}
	return sh.place(fd, varName, save, undo, f)
}

func (sh *Shell) check(what string, err error) bool {
	if err != nil {
		sh.errorf("%s: %s", what, strerror(err))
	}
	return err == nil
}

// redirName expands a redirection's file name, which must be one word.
func (sh *Shell) redirName(r *syntax.Redirect) (string, bool) {
	names := sh.words([]*syntax.Word{r.Word})
	if len(names) != 1 {
		sh.errorf("%s: ambiguous redirect", sh.nodeText(r.Word))
		return "", false
	}
	return names[0], true
}

// openRedir opens a file as a redirection says.
func (sh *Shell) openRedir(op syntax.RedirOperator, name string) (vfs.File, bool) {
	flags := 0
	switch op {
	case syntax.RdrIn:
		flags = syscall.O_RDONLY
	case syntax.RdrInOut:
		flags = syscall.O_RDWR | syscall.O_CREAT
	case syntax.AppOut, syntax.AppAll:
		flags = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_APPEND
	default:
		flags = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_TRUNC
		if sh.opts.noclobber && op != syntax.RdrClob {
			a, err := sh.p.Stat(name)
			if err == nil && a.Mode.IsRegular() {
				sh.errorf("%s: cannot overwrite existing file", name)
				return nil, false
			}
			if err != nil {
				flags |= syscall.O_EXCL
			}
		}
	}
	if f, ours := sh.devTCP(name); ours {
		return f, f != nil
	}
	for {
		f, err := sh.p.Open(name, flags, 0o666)
		switch {
		case err == nil:
			return f, true
		case err == syscall.EINTR && sh.p.Killed() == 0:
			sh.takeSignals()
		case err == syscall.EEXIST:
			sh.errorf("%s: cannot overwrite existing file", name)
			return nil, false
		default:
			sh.errorf("%s: %s", name, strerror(err))
			return nil, false
		}
	}
}

// place puts an open file where a redirection wants it: at a number, or at a new one kept in a variable.
func (sh *Shell) place(fd int, varName string, save bool, undo *[]undoFd, f vfs.File) bool {
	if f == nil {
		return false
	}
	if varName != "" {
		src := sh.p.Fd(f)
		n, err := sh.p.Dup(src, minSaved, false)
		sh.p.CloseFd(src)
		if err != nil {
			sh.errorf("%s: %s", varName, strerror(err))
			return false
		}
		return sh.setFd(varName, n)
	}
	// The file may have come to the very descriptor that is to be saved: then that was closed before.
	if sh.p.Fd(f) == fd {
		if save {
			*undo = append(*undo, undoFd{fd, -1})
		}
		sh.p.SetCloseOnExec(fd, false)
		return true
	}
	sh.keep(fd, save, undo)
	if err := sh.p.Install(fd, f); err != nil {
		sh.errorf("%d: %s", fd, strerror(err))
		return false
	}
	return true
}

// setFd sets the variable of {name}> to a descriptor.
func (sh *Shell) setFd(varName string, n int) bool {
	if name, sub, ok := splitRef(varName); ok {
		return sh.assignElement(name, sub, strconv.Itoa(n), false)
	}
	return sh.set(varName, strconv.Itoa(n))
}

// duplicate does n<&m, n>&m, n>&- and n>&m-.
func (sh *Shell) duplicate(r *syntax.Redirect, fd int, varName string, save bool, undo *[]undoFd) bool {
	word := sh.string(r.Word)
	move := strings.HasSuffix(word, "-") && word != "-"
	target := strings.TrimSuffix(word, "-")
	if word == "-" {
		if varName != "" {
			value := sh.str(varName)
			if name, sub, ok := splitRef(varName); ok {
				o := sh.fetchSub(name, true, sh.expandSubText(name, sub))
				value = o.str()
			}
			n, err := strconv.Atoi(value)
			if err != nil {
				sh.errorf("%s: ambiguous redirect", varName)
				return false
			}
			sh.p.CloseFd(n)
			return true
		}
		sh.keep(fd, save, undo)
		sh.p.CloseFd(fd)
		return true
	}
	from, err := strconv.Atoi(target)
	if err != nil || from < 0 {
		if r.Op == syntax.DplOut && r.N == nil && !move {
			// >&file is &>file.
			f, ok := sh.openRedir(syntax.RdrOut, word)
			if !ok {
				return false
			}
			sh.keep(1, save, undo)
			sh.keep(2, save, undo)
			return sh.check(word, sh.p.Install(1, f)) && sh.check(word, sh.p.Dup2(1, 2))
		}
		if word == "" {
			sh.errorf("%s: %s", sh.nodeText(r.Word), "ambiguous redirect")
			return false
		}
		sh.errorf("%s: ambiguous redirect", word)
		return false
	}
	if varName != "" {
		n, err := sh.p.Dup(from, minSaved, false)
		if err != nil {
			sh.errorf("%d: %s", from, strerror(err))
			return false
		}
		if move {
			sh.p.CloseFd(from)
		}
		return sh.setFd(varName, n)
	}
	if _, err := sh.p.File(from); err != nil {
		sh.errorf("%s: %s", target, strerror(err))
		return false
	}
	if from == fd {
		return true
	}
	sh.keep(fd, save, undo)
	if err := sh.p.Dup2(from, fd); err != nil {
		sh.errorf("%d: %s", fd, strerror(err))
		return false
	}
	if move {
		sh.keep(from, save, undo)
		sh.p.CloseFd(from)
	}
	return true
}

// hereFile makes a here-document or here-string readable.
func (sh *Shell) hereFile(r *syntax.Redirect) vfs.File {
	var text string
	switch {
	case r.Op == syntax.WordHdoc:
		text = sh.string(r.Word) + "\n"
	case quotedDelimiter(r.Word):
		text = literalHeredoc(r.Hdoc)
		if r.Op == syntax.DashHdoc {
			text = stripTabs(text, true)
		}
	case r.Op == syntax.DashHdoc && r.Hdoc != nil:
		text = sh.heredoc(&syntax.Word{Parts: untabbed(r.Hdoc.Parts)})
	default:
		text = sh.heredoc(r.Hdoc)
	}
	f, err := sh.p.MemFile([]byte(text))
	if err != nil {
		sh.errorf("cannot create temp file for here-document: %s", strerror(err))
		return nil
	}
	return f
}

// untabbed removes the tabs at the beginning of the lines of <<-.
func untabbed(parts []syntax.WordPart) []syntax.WordPart {
	out := make([]syntax.WordPart, len(parts))
	start := true
	for i, p := range parts {
		out[i] = p
		if l, ok := p.(*syntax.Lit); ok {
			out[i] = &syntax.Lit{ValuePos: l.ValuePos, ValueEnd: l.ValueEnd, Value: stripTabs(l.Value, start)}
			start = strings.HasSuffix(l.Value, "\n")
			continue
		}
		start = false
	}
	return out
}

func stripTabs(s string, start bool) string {
	lines := strings.SplitAfter(s, "\n")
	for i := range lines {
		if i > 0 || start {
			lines[i] = strings.TrimLeft(lines[i], "\t")
		}
	}
	return strings.Join(lines, "")
}

func quotedDelimiter(w *syntax.Word) bool {
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if strings.Contains(p.Value, "\\") {
				return true
			}
		default:
			return true
		}
	}
	return false
}

func literalHeredoc(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	var b strings.Builder
	for _, p := range w.Parts {
		if l, ok := p.(*syntax.Lit); ok {
			b.WriteString(l.Value)
		}
	}
	return b.String()
}
