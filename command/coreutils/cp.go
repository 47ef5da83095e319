package coreutils

import (
	"path"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	keyAttributesOnly = tool.KeyOwn + iota
	keyBackup
	keyNoPreserve
	keyParents
	keyPreserve
	keyReflink
	keyRemoveDest
	keySparse
	keyStripSlashes
	keyContext
)

// backupOptions are those that cp, mv, ln and install share.
var backupOptions = []getopt.Option{
	{Long: "backup", Key: keyBackup, Arg: getopt.Optional, Name: "CONTROL", Help: "make a backup of each existing destination file: none, off, numbered, t, existing, nil, simple, never"},
	{Short: 'b', Help: "like --backup but does not accept an argument"},
	{Short: 'S', Long: "suffix", Arg: getopt.Required, Name: "SUFFIX", Help: "override the usual backup suffix"},
}

var targetOptions = []getopt.Option{
	{Short: 't', Long: "target-directory", Arg: getopt.Required, Name: "DIRECTORY", Help: "copy all SOURCE arguments into DIRECTORY"},
	{Short: 'T', Long: "no-target-directory", Help: "treat DEST as a normal file"},
	{Short: 'v', Long: "verbose", Help: "explain what is being done"},
}

var cpSpec = tool.Spec{
	Usage: []string{"[OPTION]... [-T] SOURCE DEST", "[OPTION]... SOURCE... DIRECTORY", "[OPTION]... -t DIRECTORY SOURCE..."},
	About: "Copy SOURCE to DEST, or multiple SOURCE(s) to DIRECTORY.",
	Options: append([]getopt.Option{
		{Short: 'a', Long: "archive", Help: "same as -dR --preserve=all"},
		{Long: "attributes-only", Key: keyAttributesOnly, Help: "don't copy the file data, just the attributes"},
		{Short: 'd', Help: "same as --no-dereference --preserve=links"},
		{Short: 'f', Long: "force", Help: "if an existing destination file cannot be opened, remove it and try again"},
		{Short: 'i', Long: "interactive", Help: "prompt before overwrite (overrides a previous -n option)"},
		{Short: 'H', Help: "follow command-line symbolic links in SOURCE"},
		{Short: 'l', Long: "link", Help: "hard link files instead of copying"},
		{Short: 'L', Long: "dereference", Help: "always follow symbolic links in SOURCE"},
		{Short: 'n', Long: "no-clobber", Help: "do not overwrite an existing file (overrides a previous -i option)"},
		{Short: 'P', Long: "no-dereference", Help: "never follow symbolic links in SOURCE"},
		{Short: 'p', Help: "same as --preserve=mode,ownership,timestamps"},
		{Long: "preserve", Key: keyPreserve, Arg: getopt.Optional, Name: "ATTR_LIST", Help: "preserve the specified attributes: mode,ownership,timestamps (default), links, all"},
		{Long: "no-preserve", Key: keyNoPreserve, Arg: getopt.Required, Name: "ATTR_LIST", Help: "don't preserve the specified attributes"},
		{Long: "parents", Key: keyParents, Help: "use full source file name under DIRECTORY"},
		{Short: 'R', Long: "recursive", Key: 'r', Help: "copy directories recursively"},
		{Short: 'r'},
		{Long: "reflink", Key: keyReflink, Arg: getopt.Optional, Name: "WHEN", Help: "(accepted; the filesystem shares data by itself)"},
		{Long: "remove-destination", Key: keyRemoveDest, Help: "remove each existing destination file before attempting to open it"},
		{Long: "sparse", Key: keySparse, Arg: getopt.Required, Name: "WHEN", Help: "(accepted; holes take no space anyway)"},
		{Long: "strip-trailing-slashes", Key: keyStripSlashes, Help: "remove any trailing slashes from each SOURCE argument"},
		{Short: 's', Long: "symbolic-link", Help: "make symbolic links instead of copying"},
		{Short: 'u', Long: "update", Help: "copy only when the SOURCE file is newer than the destination file or when the destination file is missing"},
		{Short: 'x', Long: "one-file-system", Help: "stay on this file system"},
		{Short: 'Z', Help: "(ignored: there are no security contexts)"},
		{Long: "context", Key: 'Z', Arg: getopt.Optional, Name: "CTX"},
	}, append(backupOptions, targetOptions...)...),
	Package: tool.Coreutils,
}

// transfer is what cp, mv and install have in common: several sources, one destination.
type transfer struct {
	target       string
	hasTarget    bool
	noTarget     bool
	stripSlashes bool
	parents      bool
	warnTwice    bool // a source named twice is copied once
	backupKind   string
	backup       bool
	suffix       string
}

// option takes an option that several commands share.
func (x *transfer) option(t *tool.T, o getopt.Opt) {
	switch o.Key {
	case keyBackup:
		x.backup = true
		if o.Has {
			x.backupKind = backupKind(t, "backup type", o.Arg)
		}
	case 'b':
		x.backup = true
	case 'S':
		x.backup, x.suffix = true, o.Arg
	case 't':
		if x.hasTarget {
			t.Fatal(1, "multiple target directories specified")
		}
		a, err := t.Stat(o.Arg)
		if err == nil && !a.Mode.IsDir() {
			t.Fatal(1, "target directory %s: Not a directory", tool.QuoteAF(o.Arg))
		} else if err != nil {
			t.Fatal(1, "target directory %s: %s", tool.QuoteAF(o.Arg), tool.Strerror(err))
		}
		x.target, x.hasTarget = o.Arg, true
	case 'T':
		x.noTarget = true
	case keyStripSlashes:
		x.stripSlashes = true
	}
}

func backupKind(t *tool.T, what, arg string) string {
	i := t.Choice(1, what, arg, [][]string{{"none", "off"}, {"simple", "never"}, {"existing", "nil"}, {"numbered", "t"}})
	return []string{"none", "simple", "existing", "numbered"}[i]
}

// backups returns the kind of backup and the suffix.
func (x *transfer) backups(t *tool.T) (kind, suffix string) {
	if suffix = x.suffix; suffix == "" {
		suffix = t.Getenv("SIMPLE_BACKUP_SUFFIX")
	}
	if suffix == "" || strings.Contains(suffix, "/") {
		suffix = "~"
	}
	if !x.backup {
		return "none", suffix
	}
	if kind = x.backupKind; kind == "" {
		if v := t.Getenv("VERSION_CONTROL"); v != "" {
			return backupKind(t, "$VERSION_CONTROL", v), suffix
		}
		kind = "existing"
	}
	return kind, suffix
}

// run calls f for every source with its destination.
func (x *transfer) run(t *tool.T, files []string, f func(src, dst string)) {
	if len(files) == 0 {
		t.UsageError(1, "missing file operand")
	}
	if len(files) == 1 && !x.hasTarget {
		t.UsageError(1, "missing destination file operand after %s", tool.QuoteAF(files[0]))
	}
	if x.noTarget {
		if x.hasTarget {
			t.Fatal(1, "cannot combine --target-directory (-t) and --no-target-directory (-T)")
		}
		if len(files) > 2 {
			t.UsageError(1, "extra operand %s", tool.QuoteAF(files[2]))
		}
		f(x.strip(files[0]), files[1])
		return
	}
	target := x.target
	if !x.hasTarget {
		last := files[len(files)-1]
		a, err := t.Stat(last)
		isDir := err == nil && a.Mode.IsDir()
		if !isDir && len(files) > 2 {
			text := "Not a directory"
			if err != nil {
				text = tool.Strerror(err)
			}
			t.Fatal(1, "target %s: %s", tool.QuoteAF(last), text)
		}
		if !isDir && x.parents {
			t.UsageError(1, "with --parents, the destination must be a directory")
		}
		files = files[:len(files)-1]
		if !isDir {
			f(x.strip(files[0]), last)
			return
		}
		target = last
	}
	seen := map[string]bool{}
	for _, src := range files {
		src = x.strip(src)
		if seen[src] && x.warnTwice {
			a, err := t.Lstat(src)
			kind := "file"
			if err == nil && a.Mode.IsDir() {
				kind = "directory"
			}
			t.Warn("warning: source %s %s specified more than once", kind, tool.QuoteAF(src))
			continue
		}
		seen[src] = true
		name := path.Base(strings.TrimRight(src, "/"))
		if x.parents {
			name = strings.Trim(src, "/")
		} else if name == ".." || src == "" || strings.Trim(src, "/") == "" {
			name = ""
		}
		dst := joinPath(target, name)
		if name == "." || name == "" {
			dst = strings.TrimSuffix(target, "/") + "/."
		}
		f(src, dst)
	}
}

func (x *transfer) strip(src string) string {
	if x.stripSlashes {
		if s := strings.TrimRight(src, "/"); s != "" {
			return s
		}
	}
	return src
}

// Cp copies files.
func Cp(t *tool.T) int {
	opts, files := t.Parse(&cpSpec)
	c := copier{t: t}
	x := transfer{warnTwice: true}
	for _, o := range opts {
		cpOption(&c, &x, o)
		x.option(t, o)
	}
	if c.follow == 0 {
		c.follow = 'L'
		if c.recursive {
			c.follow = 'P'
		}
	}
	if c.hardLink && c.symLink {
		t.UsageError(1, "cannot make both hard and symbolic links")
	}
	if c.noClob && x.backup {
		t.UsageError(1, "options --backup and --no-clobber are mutually exclusive")
	}
	c.backup, c.suffix = x.backups(t)
	x.run(t, files, func(src, dst string) {
		if x.parents && !c.makeParents(src, dst) {
			return
		}
		c.copy(src, dst, true)
	})
	return status(c.failed)
}

func cpOption(c *copier, x *transfer, o getopt.Opt) {
	switch o.Key {
	case 'a':
		c.recursive, c.follow = true, 'P'
		c.mode, c.owner, c.times, c.links = true, true, true, true
	case keyAttributesOnly:
		c.attributesOnly = true
	case 'd':
		c.follow, c.links = 'P', true
	case 'f':
		c.force = true
	case 'i':
		c.interactive, c.noClob = true, false
	case 'H', 'L', 'P':
		c.follow = byte(o.Key)
	case 'l':
		c.hardLink = true
	case 'n':
		c.noClob, c.interactive = true, false
	case 'p':
		c.mode, c.owner, c.times = true, true, true
	case keyPreserve:
		if !o.Has {
			o.Arg = "mode,ownership,timestamps"
		}
		c.preserving("--preserve", o.Arg, true)
	case keyNoPreserve:
		c.preserving("--no-preserve", o.Arg, false)
	case keyParents:
		x.parents = true
	case 'r':
		c.recursive = true
	case keyRemoveDest:
		c.removeDest = true
	case keyReflink:
		if o.Has {
			c.t.Choice(1, "--reflink", o.Arg, [][]string{{"auto"}, {"always"}, {"never"}})
		}
	case keySparse:
		c.t.Choice(1, "--sparse", o.Arg, [][]string{{"never"}, {"auto"}, {"always"}})
	case 's':
		c.symLink = true
	case 'u':
		c.update = true
	case 'v':
		c.verbose = true
	case 'x':
		c.oneFS = true
	}
}

// preserving switches attributes on or off.
func (c *copier) preserving(option, list string, on bool) {
	for _, a := range strings.Split(list, ",") {
		switch c.t.Choice(1, option, a, [][]string{{"mode"}, {"timestamps"}, {"ownership"}, {"links"}, {"context"}, {"xattr"}, {"all"}}) {
		case 0:
			c.mode, c.explicitNoMode = on, !on
		case 1:
			c.times = on
		case 2:
			c.owner = on
		case 3:
			c.links = on
		case 6:
			c.mode, c.times, c.owner, c.links, c.explicitNoMode = on, on, on, on, !on
		}
	}
}

// makeParents makes the source's directories below the target, for --parents.
func (c *copier) makeParents(src, dst string) bool {
	dir := path.Dir(strings.TrimRight(src, "/"))
	if dir == "." || dir == "/" {
		return true
	}
	base := strings.TrimSuffix(dst, strings.Trim(src, "/"))
	at, from := strings.TrimSuffix(base, "/"), ""
	if strings.HasPrefix(src, "/") {
		from = "/"
	}
	for _, part := range strings.Split(strings.Trim(dir, "/"), "/") {
		at = at + "/" + part
		from = strings.TrimPrefix(joinPath(from, part), "/")
		if strings.HasPrefix(src, "/") {
			from = "/" + from
		}
		if a, err := c.t.Stat(at); err == nil {
			if !a.Mode.IsDir() {
				return c.fail("%s exists but is not a directory", tool.QuoteAF(at))
			}
			continue
		}
		perm := vfs.Mode(0o777)
		if a, err := c.t.Stat(from); err == nil {
			perm = a.Mode & 0o777
		}
		if err := c.t.Mkdir(at, perm|0o700); err != nil {
			return c.fail("cannot make directory %s: %s", tool.QuoteAF(at), tool.Strerror(err))
		}
		if c.verbose {
			c.t.Out.WriteString(from + " -> " + at + "\n")
		}
	}
	return true
}
