package coreutils

import (
	"bufio"
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var lnSpec = tool.Spec{
	Usage: []string{"[OPTION]... [-T] TARGET LINK_NAME", "[OPTION]... TARGET", "[OPTION]... TARGET... DIRECTORY", "[OPTION]... -t DIRECTORY TARGET..."},
	About: "Create a link to TARGET with the name LINK_NAME: hard links by default, symbolic links with --symbolic.",
	Options: append([]getopt.Option{
		{Short: 'd', Long: "directory", Help: "(accepted; directories can't be linked)"},
		{Short: 'F', Key: 'd'},
		{Short: 'f', Long: "force", Help: "remove existing destination files"},
		{Short: 'i', Long: "interactive", Help: "prompt whether to remove destinations"},
		{Short: 'L', Long: "logical", Help: "dereference TARGETs that are symbolic links"},
		{Short: 'n', Long: "no-dereference", Help: "treat LINK_NAME as a normal file if it is a symbolic link to a directory"},
		{Short: 'P', Long: "physical", Help: "make hard links directly to symbolic links"},
		{Short: 'r', Long: "relative", Help: "with -s, create links relative to link location"},
		{Short: 's', Long: "symbolic", Help: "make symbolic links instead of hard links"},
	}, append(backupOptions, targetOptions...)...),
	Package: tool.Coreutils,
}

type linker struct {
	t                                                      *tool.T
	symbolic, force, ask, logical, noDeref, relative, verb bool
	backup, suffix                                         string
	failed                                                 bool
	answers                                                *bufio.Reader
}

// Ln makes links.
func Ln(t *tool.T) int {
	opts, files := t.Parse(&lnSpec)
	l := linker{t: t}
	var x transfer
	for _, o := range opts {
		switch o.Key {
		case 'f':
			l.force, l.ask = true, false
		case 'i':
			l.force, l.ask = false, true
		case 'L':
			l.logical = true
		case 'P':
			l.logical = false
		case 'n':
			l.noDeref = true
		case 'r':
			l.relative = true
		case 's':
			l.symbolic = true
		case 'v':
			l.verb = true
		default:
			x.option(t, o)
		}
	}
	if l.relative && !l.symbolic {
		t.Fatal(1, "cannot do --relative without --symbolic")
	}
	l.backup, l.suffix = x.backups(t)
	if len(files) == 0 {
		t.UsageError(1, "missing file operand")
	}
	switch {
	case x.noTarget && !x.hasTarget:
		if len(files) == 1 {
			t.UsageError(1, "missing destination file operand after %s", tool.QuoteAF(files[0]))
		}
		if len(files) > 2 {
			t.UsageError(1, "extra operand %s", tool.QuoteAF(files[2]))
		}
		l.link(files[0], files[1])
	case x.hasTarget:
		l.into(files, x.target)
	case len(files) == 1:
		l.into(files, ".")
	default:
		last := files[len(files)-1]
		if l.isDir(last) {
			l.into(files[:len(files)-1], last)
		} else if len(files) > 2 {
			t.Fatal(1, "target %s: %s", tool.QuoteAF(last), notDirText(t, last))
		} else {
			l.link(files[0], last)
		}
	}
	return status(l.failed)
}

func notDirText(t *tool.T, name string) string {
	if _, err := t.Stat(name); err != nil {
		return tool.Strerror(err)
	}
	return "Not a directory"
}

func (l *linker) isDir(name string) bool {
	a, err := l.t.Stat(name)
	if err != nil || !a.Mode.IsDir() {
		return false
	}
	if l.noDeref && !strings.HasSuffix(name, "/") {
		if a, err := l.t.Lstat(name); err == nil && a.Mode.IsSymlink() {
			return false
		}
	}
	return true
}

func (l *linker) into(targets []string, dir string) {
	for _, target := range targets {
		name := path.Base(strings.TrimRight(target, "/"))
		if dir == "." {
			l.link(target, "./"+name)
		} else {
			l.link(target, joinPath(dir, name))
		}
	}
}

func (l *linker) fail(format string, args ...any) {
	l.t.Warn(format, args...)
	l.failed = true
}

func (l *linker) link(target, name string) {
	if !l.symbolic {
		look := l.t.Lstat
		if l.logical {
			look = l.t.Stat
		}
		a, err := look(target)
		if err != nil {
			l.fail("failed to access %s: %s", tool.QuoteAF(target), tool.Strerror(err))
			return
		}
		if a.Mode.IsDir() {
			l.fail("%s: hard link not allowed for directory", tool.QuoteF(target))
			return
		}
		if l.logical {
			if real, err := l.t.Realpath(target); err == nil {
				target = real
			}
		}
	}
	if l.relative {
		target = l.relativeTarget(target, name)
	}
	if !l.makeWay(target, name) {
		return
	}
	var err error
	if l.symbolic {
		err = l.t.Symlink(target, name)
	} else {
		err = l.t.Link(target, name)
	}
	shown := name
	if err != nil {
		kind := "hard"
		if l.symbolic {
			kind = "symbolic"
		}
		if l.symbolic || errors.Is(err, syscall.EEXIST) {
			l.fail("failed to create %s link %s: %s", kind, tool.QuoteAF(shown), tool.Strerror(err))
		} else {
			l.fail("failed to create %s link %s => %s: %s", kind, tool.QuoteAF(shown), tool.QuoteAF(target), tool.Strerror(err))
		}
		return
	}
	if l.verb {
		arrow := "=>"
		if l.symbolic {
			arrow = "->"
		}
		fmt.Fprintf(l.t.Out, "%s %s %s\n", tool.QuoteAF(shown), arrow, tool.QuoteAF(target))
	}
}

// makeWay removes or backs up what has the link's name, as far as the options allow.
func (l *linker) makeWay(target, name string) bool {
	if !l.force && !l.ask && l.backup == "none" {
		return true
	}
	d, err := l.t.Lstat(name)
	if err != nil {
		return true
	}
	if d.Mode.IsDir() {
		l.fail("%s: cannot overwrite directory", tool.QuoteF(name))
		return false
	}
	if !l.symbolic || l.backup == "none" {
		if a, err := l.t.Stat(target); err == nil && !l.symbolic && a.Ino == d.Ino && a.Dev == d.Dev {
			l.fail("%s and %s are the same file", tool.QuoteAF(target), tool.QuoteAF(name))
			return false
		}
	}
	if l.ask {
		if l.answers == nil {
			l.answers = bufio.NewReader(l.t.Stdin())
		}
		if !askYes(l.t, l.answers, "replace "+tool.QuoteAF(name)+"? ") {
			return false
		}
	}
	if l.backup != "none" {
		err = l.t.Rename(name, backupName(l.t, name, l.backup, l.suffix), 0)
	} else {
		err = l.t.Unlink(name)
	}
	if err != nil {
		l.fail("cannot remove %s: %s", tool.QuoteAF(name), tool.Strerror(err))
	}
	return err == nil
}

// relativeTarget rewrites a target as seen from the link's directory.
func (l *linker) relativeTarget(target, name string) string {
	dir, err1 := canonical(l.t, path.Dir(name), 'm')
	to, err2 := canonical(l.t, target, 'm')
	if err1 != nil || err2 != nil {
		return target
	}
	return relativePath(dir, to)
}

// relativePath returns a path to a canonical file from a canonical directory.
func relativePath(from, to string) string {
	f, t := strings.Split(strings.Trim(from, "/"), "/"), strings.Split(strings.Trim(to, "/"), "/")
	if from == "/" {
		f = nil
	}
	if to == "/" {
		t = nil
	}
	i := 0
	for i < len(f) && i < len(t) && f[i] == t[i] {
		i++
	}
	var parts []string
	for range f[i:] {
		parts = append(parts, "..")
	}
	parts = append(parts, t[i:]...)
	if len(parts) == 0 {
		return "."
	}
	return strings.Join(parts, "/")
}
