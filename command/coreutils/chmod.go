package coreutils

import (
	"fmt"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	keyReference = tool.KeyOwn + iota
	keyChNoPreserve
	keyChPreserve
	keyDereference
	keyFrom
)

var chmodSpec = tool.Spec{
	Usage: []string{"[OPTION]... MODE[,MODE]... FILE...", "[OPTION]... OCTAL-MODE FILE...", "[OPTION]... --reference=RFILE FILE..."},
	About: "Change the mode of each FILE to MODE.\nWith --reference, change the mode of each FILE to that of RFILE.",
	Options: []getopt.Option{
		{Short: 'c', Long: "changes", Help: "like verbose but report only when a change is made"},
		{Short: 'f', Long: "silent", Help: "suppress most error messages"},
		{Long: "quiet", Key: 'f'},
		{Short: 'v', Long: "verbose", Help: "output a diagnostic for every file processed"},
		{Long: "no-preserve-root", Key: keyChNoPreserve, Help: "do not treat '/' specially (the default)"},
		{Long: "preserve-root", Key: keyChPreserve, Help: "fail to operate recursively on '/'"},
		{Long: "reference", Key: keyReference, Arg: getopt.Required, Name: "RFILE", Help: "use RFILE's mode instead of specifying MODE values"},
		{Short: 'R', Long: "recursive", Help: "change files and directories recursively"},
	},
	Notes:   "Each MODE is of the form '[ugoa]*([-+=]([rwxXst]*|[ugo]))+|[-+=][0-7]+'.",
	Package: tool.Coreutils,
}

type chmodder struct {
	t                                  *tool.T
	change                             *tool.ModeChange
	umask                              vfs.Mode
	quiet, verbose, changes, recursive bool
	preserveRoot, failed               bool
}

// Chmod changes modes.
func Chmod(t *tool.T) int {
	c := chmodder{t: t}
	args, mode := modeArgument(t.Args()[1:])
	opts, files := t.ParseArgs(&chmodSpec, args)
	ref := ""
	for _, o := range opts {
		switch o.Key {
		case 'c':
			c.changes = true
		case 'f':
			c.quiet = true
		case 'v':
			c.verbose = true
		case keyChPreserve:
			c.preserveRoot = true
		case keyChNoPreserve:
			c.preserveRoot = false
		case keyReference:
			ref = o.Arg
		case 'R':
			c.recursive = true
		}
	}
	switch {
	case ref != "":
		a, err := t.Stat(ref)
		if err != nil {
			t.Fatal(1, "failed to get attributes of %s: %s", tool.QuoteAF(ref), tool.Strerror(err))
		}
		mode = fmt.Sprintf("%05o", a.Mode&vfs.ModePerm)
	case mode == "":
		if len(files) == 0 {
			t.Missing(1)
		}
		mode, files = files[0], files[1:]
		if len(files) == 0 {
			t.UsageError(1, "missing operand after %s", tool.Quote(mode))
		}
	}
	if len(files) == 0 {
		if ref != "" {
			t.Missing(1)
		}
		t.UsageError(1, "missing operand after %s", tool.Quote(mode))
	}
	var err error
	if c.change, err = tool.ParseMode(mode); err != nil {
		t.UsageError(1, "invalid mode: %s", tool.Quote(mode))
	}
	c.umask = t.Umask(0)
	t.Umask(c.umask)
	for _, f := range files {
		c.operand(f)
	}
	return status(c.failed)
}

// modeArgument takes modes that look like options, such as -x or -w,+r, out of the arguments.
func modeArgument(args []string) (rest []string, mode string) {
	for i, a := range args {
		if a == "--" {
			return append(rest, args[i:]...), mode
		}
		if len(a) > 1 && a[0] == '-' && strings.IndexByte("rwxXstugo0123456789,+=", a[1]) >= 0 && a[1] != '-' {
			if mode != "" {
				mode += ","
			}
			mode += a
			continue
		}
		rest = append(rest, a)
	}
	return rest, mode
}

func (c *chmodder) fail(format string, args ...any) {
	c.failed = true
	if !c.quiet {
		c.t.Warn(format, args...)
	}
}

func (c *chmodder) operand(name string) {
	a, err := c.t.Stat(name)
	if err != nil {
		if l, lerr := c.t.Lstat(name); lerr == nil && l.Mode.IsSymlink() {
			c.fail("cannot operate on dangling symlink %s", tool.QuoteAF(name))
		} else {
			c.fail("cannot access %s: %s", tool.QuoteAF(name), tool.Strerror(err))
		}
		if c.verbose {
			fmt.Fprintf(c.t.Out, "failed to change mode of %s from 0000 (---------) to %04o (%s)\n", tool.QuoteAF(name), 0, "---------")
		}
		return
	}
	if root, err := c.t.Stat("/"); c.recursive && c.preserveRoot && err == nil && root.Ino == a.Ino && root.Dev == a.Dev {
		c.fail("it is dangerous to operate recursively on %s", tool.QuoteAF(name))
		c.fail("use --no-preserve-root to override this failsafe")
		return
	}
	c.set(name, a)
}

func (c *chmodder) set(name string, a vfs.Attr) {
	c.t.Check()
	old := a.Mode & vfs.ModePerm
	mode := c.change.Apply(a.Mode, c.umask)
	err := c.t.SetAttr(name, vfs.SetAttr{Mode: &mode}, true)
	if err != nil {
		c.fail("changing permissions of %s: %s", tool.QuoteAF(name), tool.Strerror(err))
	}
	switch {
	case err != nil && c.verbose:
		fmt.Fprintf(c.t.Out, "failed to change mode of %s from %04o (%s) to %04o (%s)\n", tool.QuoteAF(name), old, tool.FormatMode(old)[1:], mode, tool.FormatMode(mode)[1:])
	case err != nil:
	case old != mode && (c.verbose || c.changes):
		fmt.Fprintf(c.t.Out, "mode of %s changed from %04o (%s) to %04o (%s)\n", tool.QuoteAF(name), old, tool.FormatMode(old)[1:], mode, tool.FormatMode(mode)[1:])
	case c.verbose:
		fmt.Fprintf(c.t.Out, "mode of %s retained as %04o (%s)\n", tool.QuoteAF(name), mode, tool.FormatMode(mode)[1:])
	}
	if !c.recursive || !a.Mode.IsDir() {
		return
	}
	entries, err := c.t.ReadDir(name)
	if err != nil {
		c.fail("cannot read directory %s: %s", tool.QuoteAF(name), tool.Strerror(err))
		return
	}
	for _, e := range entries {
		child := joinPath(name, e.Name)
		ca, err := c.t.Lstat(child)
		if err != nil {
			c.fail("cannot access %s: %s", tool.QuoteAF(child), tool.Strerror(err))
		} else if !ca.Mode.IsSymlink() {
			c.set(child, ca)
		}
	}
}
