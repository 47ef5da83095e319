package shell

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
)

const fcUsage = "fc [-e ename] [-lnr] [first] [last] or fc -s [pat=rep] [command]"

// fcOpts are what fc was asked for.
type fcOpts struct {
	list, plain, reverse, again bool
	editor                      string
	args                        []string
}

func (sh *Shell) fcOptions(args []string) (o fcOpts, st int) {
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		opt := args[0]
		if _, err := strconv.Atoi(opt); err == nil {
			break
		}
		args = args[1:]
		if opt == "--" {
			break
		}
		for i := 1; i < len(opt); i++ {
			switch c := opt[i]; c {
			case 'l':
				o.list = true
			case 'n':
				o.plain = true
			case 'r':
				o.reverse = true
			case 's':
				o.again = true
			case 'e':
				if o.editor = opt[i+1:]; o.editor == "" {
					if len(args) == 0 {
						sh.errorf("fc: -e: option requires an argument")
						return o, sh.usage(fcUsage)
					}
					o.editor, args = args[0], args[1:]
				}
				i = len(opt)
			default:
				return o, sh.badOption("fc", "-"+string(c), fcUsage)
			}
		}
	}
	o.again = o.again || o.editor == "-"
	o.args = args
	return o, 0
}

// builtinFc lists entries of the history, or edits and runs them again.
func builtinFc(sh *Shell, args []string) int {
	o, st := sh.fcOptions(args[1:])
	if st != 0 {
		return st
	}
	h := &sh.hist
	list := h.list
	if h.kept && len(list) > 0 {
		list = list[:len(list)-1] // fc itself
	}
	if o.again {
		return sh.fcAgain(list, o.args)
	}
	if len(list) == 0 {
		return 0
	}
	from, to := len(list)-1, len(list)-1
	if o.list {
		from = max(0, len(list)-16)
	}
	ok := true
	if len(o.args) > 0 {
		from, ok = sh.fcPlace(list, o.args[0], o.list)
		if to = from; o.list {
			to = len(list) - 1
		}
	}
	if ok && len(o.args) > 1 {
		to, ok = sh.fcPlace(list, o.args[1], o.list)
	}
	if !ok {
		sh.errorf("fc: no command found")
		return 1
	}
	if from > to {
		from, to, o.reverse = to, from, !o.reverse
	}
	if o.list {
		sh.fcList(list, from, to, o)
		return 0
	}
	return sh.fcEdit(list[from:to+1], o)
}

func (sh *Shell) fcList(list []historyEntry, from, to int, o fcOpts) {
	show := func(i int) {
		if !o.plain {
			sh.printf("%d", sh.hist.number(i))
		}
		sh.print("\t " + list[i].text + "\n")
	}
	if o.reverse {
		for i := to; i >= from; i-- {
			show(i)
		}
		return
	}
	for i := from; i <= to; i++ {
		show(i)
	}
}

// fcPlace finds the entry that a number or the beginning of a line means.
func (sh *Shell) fcPlace(list []historyEntry, s string, listing bool) (int, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		switch {
		case n < 0:
			n += len(list)
		case n == 0:
			n = len(list) - 1
			if listing {
				n = len(list)
			}
		default:
			n -= sh.hist.number(0)
		}
		return max(0, min(n, len(list)-1)), len(list) > 0
	}
	for i := len(list) - 1; i >= 0; i-- {
		if strings.HasPrefix(list[i].text, s) {
			return i, true
		}
	}
	return 0, false
}

// fcAgain is fc -s: a line is run once more, changed.
func (sh *Shell) fcAgain(list []historyEntry, args []string) int {
	type change struct{ old, new string }
	var changes []change
	for len(args) > 0 {
		old, repl, ok := strings.Cut(args[0], "=")
		if !ok {
			break
		}
		changes = append(changes, change{old, repl})
		args = args[1:]
	}
	i, ok := len(list)-1, len(list) > 0
	if len(args) > 0 {
		i, ok = sh.fcPlace(list, args[0], false)
	}
	if !ok {
		sh.errorf("fc: no command found")
		return 1
	}
	text := list[i].text
	for _, c := range changes {
		if c.old != "" {
			text = strings.ReplaceAll(text, c.old, c.new)
		}
	}
	return sh.fcRun(text)
}

// fcRun shows a line, puts it into the place of fc, and runs it.
func (sh *Shell) fcRun(text string) int {
	sh.stderr(text + "\n")
	if n := len(sh.hist.list); n > 0 {
		sh.hist.remove(n-1, n)
	}
	sh.hist.kept = false
	sh.storeHistory(text, true)
	if !sh.deeper("fc") {
		return 1
	}
	sh.push(sh.evalFrame(text))
	return pushed
}

// fcEdit has an editor change lines, and runs what is left.
func (sh *Shell) fcEdit(list []historyEntry, o fcOpts) int {
	editor := o.editor
	for _, v := range []string{"FCEDIT", "EDITOR"} {
		if editor == "" {
			editor = sh.str(v)
		}
	}
	if editor == "" {
		editor = "vi"
		if sh.opts.posix {
			editor = "ed"
		}
	}
	dir := sh.str("TMPDIR")
	if dir == "" {
		dir = "/tmp"
	}
	file := fmt.Sprintf("%s/bash-fc.%d", dir, sh.p.Sandbox().Now().UnixNano())
	f, err := sh.p.Open(file, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, 0o600)
	if err != nil {
		sh.errorf("fc: cannot open temporary file: %s: %s", file, strerror(err))
		return 1
	}
	var lines []byte
	for i := range list {
		e := list[i]
		if o.reverse {
			e = list[len(list)-1-i]
		}
		lines = append(append(lines, e.text...), '\n')
	}
	err = sh.writeAll(f, lines)
	f.Close()
	if err != nil || !sh.deeper("fc") {
		return 1
	}
	sh.push(&fcFrame{file: file})
	sh.push(sh.evalFrame(editor + " " + quoteWord(file)))
	return pushed
}

// fcFrame runs what an editor has left in a file.
type fcFrame struct {
	file string
	done bool
}

func (f *fcFrame) clone() frame {
	c := *f
	return &c
}

func (f *fcFrame) step(sh *Shell) {
	if f.done || sh.status != 0 {
		sh.pop()
		return
	}
	f.done = true
	data, err := sh.readFile(f.file, maxScript)
	if err != nil {
		sh.errorf("fc: %s: %s", f.file, strerror(err))
		sh.status = 1
		return
	}
	sh.status = 0
	text := strings.TrimRight(string(data), "\n")
	if text == "" {
		return
	}
	sh.fcRun(text)
}

func (f *fcFrame) leave(sh *Shell) { sh.p.Unlink(f.file) }
