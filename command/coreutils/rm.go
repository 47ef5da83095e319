package coreutils

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	keyInteractive = tool.KeyOwn + iota
	keyNoPreserveRoot
	keyPreserveRoot
	keyOneFS
)

var rmSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]..."},
	About: "Remove (unlink) the FILE(s).",
	Options: []getopt.Option{
		{Short: 'f', Long: "force", Help: "ignore nonexistent files and arguments, never prompt"},
		{Short: 'i', Help: "prompt before every removal"},
		{Short: 'I', Help: "prompt once before removing more than three files, or when removing recursively"},
		{Long: "interactive", Key: keyInteractive, Arg: getopt.Optional, Name: "WHEN", Help: "prompt according to WHEN: never, once (-I), or always (-i)"},
		{Long: "one-file-system", Key: keyOneFS, Help: "when removing a hierarchy recursively, skip directories on other file systems"},
		{Long: "no-preserve-root", Key: keyNoPreserveRoot, Help: "do not treat '/' specially"},
		{Long: "preserve-root", Key: keyPreserveRoot, Arg: getopt.Optional, Name: "all", Help: "do not remove '/' (default)"},
		{Short: 'r', Long: "recursive", Help: "remove directories and their contents recursively"},
		{Short: 'R', Key: 'r'},
		{Short: 'd', Long: "dir", Help: "remove empty directories"},
		{Short: 'v', Long: "verbose", Help: "explain what is being done"},
	},
	Package: tool.Coreutils,
}

type remover struct {
	t                              *tool.T
	force, always, once, recursive bool
	dirs, verbose, oneFS           bool
	preserveRoot                   bool
	failed                         bool
	answers                        *bufio.Reader
	tty                            bool
}

// Rm removes files.
func Rm(t *tool.T) int {
	r := remover{t: t, preserveRoot: true, tty: t.IsTerminal(0)}
	opts, files := t.Parse(&rmSpec)
	for _, o := range opts {
		r.option(o)
	}
	if len(files) == 0 {
		if r.force {
			return 0
		}
		t.Missing(1)
	}
	if r.once && (r.recursive || len(files) > 3) {
		noun := "arguments"
		if len(files) == 1 {
			noun = "argument"
		}
		how := ""
		if r.recursive {
			how = " recursively"
		}
		if !r.ask(fmt.Sprintf("remove %d %s%s? ", len(files), noun, how)) {
			return 0
		}
	}
	for _, f := range files {
		r.operand(f)
	}
	return status(r.failed)
}

func (r *remover) option(o getopt.Opt) {
	switch o.Key {
	case 'f':
		r.force, r.always, r.once = true, false, false
	case 'i':
		r.force, r.always, r.once = false, true, false
	case 'I':
		r.force, r.always, r.once = false, false, true
	case keyInteractive:
		when := 2
		if o.Has {
			when = r.t.Choice(1, "--interactive", o.Arg, [][]string{{"never", "no", "none"}, {"once"}, {"always", "yes"}})
		}
		r.always, r.once = when == 2, when == 1
		if when > 0 {
			r.force = false
		}
	case keyNoPreserveRoot:
		if o.As != "--no-preserve-root" {
			r.t.Fatal(1, "you may not abbreviate the --no-preserve-root option")
		}
		r.preserveRoot = false
	case keyPreserveRoot:
		if o.Has && o.Arg != "all" {
			r.t.UsageError(1, "unrecognized --preserve-root argument: %s", tool.QuoteAF(o.Arg))
		}
		r.preserveRoot = true
	case keyOneFS:
		r.oneFS = true
	case 'r':
		r.recursive = true
	case 'd':
		r.dirs = true
	case 'v':
		r.verbose = true
	}
}

func (r *remover) operand(f string) {
	trimmed := strings.TrimRight(f, "/")
	base := trimmed[strings.LastIndexByte(trimmed, '/')+1:]
	if base == "." || base == ".." {
		if a, err := r.t.Lstat(f); r.recursive && err == nil && a.Mode.IsDir() {
			r.fail("refusing to remove '.' or '..' directory: skipping %s", tool.QuoteAF(f))
			return
		}
	}
	a, err := r.t.Lstat(f)
	if err != nil {
		if !(r.force && tool.IsNotExist(err)) {
			r.cannot(f, err)
		}
		return
	}
	if r.recursive && r.preserveRoot && a.Mode.IsDir() {
		if root, err := r.t.Lstat("/"); err == nil && root.Ino == a.Ino && root.Dev == a.Dev {
			what := tool.QuoteAF(f)
			if f != "/" {
				what += " (same as '/')"
			}
			r.fail("it is dangerous to operate recursively on %s", what)
			r.t.Warn("use --no-preserve-root to override this failsafe")
			return
		}
	}
	r.remove(f, a, a.Dev)
}

// outcome is what became of a removal.
type outcome uint8

const (
	removed outcome = iota
	declined
	undone // after a message
)

// remove removes a file or, if asked, a tree.
func (r *remover) remove(path string, a vfs.Attr, dev uint64) outcome {
	r.t.Check()
	if a.Mode.IsDir() {
		return r.removeDir(path, a, dev)
	}
	if !r.mayRemove(path, a) {
		return declined
	}
	if err := r.t.Unlink(path); err != nil {
		if r.force && tool.IsNotExist(err) {
			return removed
		}
		return r.cannot(path, err)
	}
	if r.verbose {
		r.t.Out.WriteString("removed " + tool.QuoteAF(path) + "\n")
	}
	return removed
}

func (r *remover) removeDir(path string, a vfs.Attr, dev uint64) outcome {
	if !r.recursive && !r.dirs {
		return r.cannot(path, syscall.EISDIR)
	}
	if r.oneFS && a.Dev != dev {
		r.fail("skipping %s, since it's on a different device", tool.QuoteAF(path))
		return undone
	}
	entries, err := r.t.ReadDir(path)
	if err != nil && r.recursive && !errors.Is(err, syscall.EACCES) {
		return r.cannot(path, err)
	}
	if len(entries) > 0 && !r.recursive {
		return r.cannot(path, syscall.ENOTEMPTY)
	}
	prompted := false
	if len(entries) > 0 {
		if prompted = r.prompts(a, path); prompted && !r.ask(r.question("descend into", a, path)) {
			return declined
		}
	}
	complete := true
	for _, e := range entries {
		child := strings.TrimRight(path, "/") + "/" + e.Name
		ca, err := r.t.Lstat(child)
		if err != nil {
			if !tool.IsNotExist(err) {
				r.cannot(child, err)
				complete = false
			}
			continue
		}
		complete = r.remove(child, ca, dev) != undone && complete
	}
	if !complete {
		return undone
	}
	if (r.always || !prompted) && !r.mayRemove(path, a) {
		return declined
	}
	if err := r.t.Rmdir(path); err != nil {
		return r.cannot(path, err)
	}
	if r.verbose {
		r.t.Out.WriteString("removed directory " + tool.QuoteAF(path) + "\n")
	}
	return removed
}

// prompts reports whether a removal must be confirmed: always with -i, else for write-protected files on a terminal.
func (r *remover) prompts(a vfs.Attr, path string) bool {
	if r.always {
		return true
	}
	return !r.force && r.tty && !a.Mode.IsSymlink() && r.t.Access(path, 2) != nil
}

func (r *remover) mayRemove(path string, a vfs.Attr) bool {
	return !r.prompts(a, path) || r.ask(r.question("remove", a, path))
}

func (r *remover) question(verb string, a vfs.Attr, path string) string {
	protected := ""
	if !a.Mode.IsSymlink() && r.t.Access(path, 2) != nil {
		protected = "write-protected "
	}
	return verb + " " + protected + fileType(a) + " " + tool.QuoteAF(path) + "? "
}

// ask prints a question and reads the answer; yes begins with y or Y.
func (r *remover) ask(question string) bool {
	if r.answers == nil {
		r.answers = bufio.NewReader(r.t.Stdin())
	}
	return askYes(r.t, r.answers, question)
}

func askYes(t *tool.T, answers *bufio.Reader, question string) bool {
	t.Out.Flush()
	fmt.Fprintf(t.Stderr(), "%s: %s", t.Name, question)
	line, _ := answers.ReadString('\n')
	return line != "" && (line[0] == 'y' || line[0] == 'Y')
}

func (r *remover) fail(format string, args ...any) {
	r.t.Warn(format, args...)
	r.failed = true
}

func (r *remover) cannot(path string, err error) outcome {
	r.fail("cannot remove %s: %s", tool.QuoteAF(path), tool.Strerror(err))
	return undone
}

// fileType names a file's type as stat and rm do.
func fileType(a vfs.Attr) string {
	switch a.Mode & vfs.ModeType {
	case vfs.ModeRegular:
		if a.Size == 0 {
			return "regular empty file"
		}
		return "regular file"
	case vfs.ModeDir:
		return "directory"
	case vfs.ModeSymlink:
		return "symbolic link"
	case vfs.ModeFIFO:
		return "fifo"
	case vfs.ModeSocket:
		return "socket"
	case vfs.ModeChar:
		return "character special file"
	case vfs.ModeBlock:
		return "block special file"
	}
	return "weird file"
}
