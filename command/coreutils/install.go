package coreutils

import (
	"fmt"
	"path"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const keyStripProgram = keyContext + 1

var installSpec = tool.Spec{
	Usage: []string{"[OPTION]... [-T] SOURCE DEST", "[OPTION]... SOURCE... DIRECTORY", "[OPTION]... -t DIRECTORY SOURCE...", "[OPTION]... -d DIRECTORY..."},
	About: "Copy files into destination locations you choose, with attributes set.",
	Options: append([]getopt.Option{
		{Short: 'c', Help: "(ignored)"},
		{Short: 'C', Long: "compare", Help: "compare content of source and destination files, and if no change, do not modify the destination at all"},
		{Short: 'd', Long: "directory", Help: "treat all arguments as directory names; create all components of the specified directories"},
		{Short: 'D', Help: "create all leading components of DEST except the last, or all components of --target-directory, then copy SOURCE to DEST"},
		{Short: 'g', Long: "group", Arg: getopt.Required, Name: "GROUP", Help: "set group ownership, instead of process' current group"},
		{Short: 'm', Long: "mode", Arg: getopt.Required, Name: "MODE", Help: "set permission mode (as in chmod), instead of rwxr-xr-x"},
		{Short: 'o', Long: "owner", Arg: getopt.Required, Name: "OWNER", Help: "set ownership (super-user only)"},
		{Short: 'p', Long: "preserve-timestamps", Help: "apply access/modification times of SOURCE files to corresponding destination files"},
		{Short: 's', Long: "strip", Help: "(accepted: there are no symbol tables)"},
		{Long: "strip-program", Key: keyStripProgram, Arg: getopt.Required, Name: "PROGRAM", Help: "(accepted)"},
		{Short: 'Z', Help: "(ignored: there are no security contexts)"},
		{Long: "context", Key: 'Z', Arg: getopt.Optional, Name: "CTX"},
		{Long: "preserve-context", Key: keyContext, Help: "(ignored)"},
	}, append(backupOptions, targetOptions...)...),
	Package: tool.Coreutils,
}

// installer copies files and sets their attributes.
type installer struct {
	copier
	modes    *tool.ModeChange
	uid, gid *uint32
	compare  bool
	leading  bool
	keepTime bool
}

// Install copies files and sets attributes.
func Install(t *tool.T) int {
	opts, files := t.Parse(&installSpec)
	in := &installer{copier: copier{t: t, follow: 'L', removeDest: true}}
	in.modes, _ = tool.ParseMode("755")
	var x transfer
	dirs := false
	target := ""
	acc := t.Accounts()
	for _, o := range opts {
		switch o.Key {
		case 'C':
			in.compare = true
		case 'd':
			dirs = true
		case 'D':
			in.leading = true
		case 'g', 'o':
			in.setOwner(o, acc)
		case 'm':
			m, err := tool.ParseMode(o.Arg)
			if err != nil {
				t.Fatal(1, "invalid mode %s", tool.Quote(o.Arg))
			}
			in.modes = m
		case 'p':
			in.keepTime = true
		case 'v':
			in.verbose = true
		case 't':
			if target != "" {
				t.Fatal(1, "multiple target directories specified")
			}
			target = o.Arg
		default:
			x.option(t, o)
		}
	}
	in.backup, in.suffix = x.backups(t)
	if dirs && target != "" {
		t.Fatal(1, "target directory not allowed when installing a directory")
	}
	if dirs {
		return in.directories(files)
	}
	if target != "" {
		if in.leading {
			in.makeLeading(target + "/.")
		}
		x.option(t, getopt.Opt{Key: 't', Arg: target, Has: true})
	} else if in.leading && len(files) == 2 {
		in.makeLeading(files[1])
		x.noTarget = x.noTarget || !in.isDir(files[1])
	}
	x.run(t, files, in.install)
	return status(in.failed)
}

func (in *installer) isDir(name string) bool {
	a, err := in.t.Stat(name)
	return err == nil && a.Mode.IsDir()
}

func (in *installer) setOwner(o getopt.Opt, acc *tool.Accounts) {
	if o.Key == 'o' {
		uid, ok := acc.LookupUID(o.Arg)
		if !ok {
			in.t.Fatal(1, "invalid user %s", tool.Quote(o.Arg))
		}
		in.uid = &uid
		return
	}
	gid, ok := acc.LookupGID(o.Arg)
	if !ok {
		in.t.Fatal(1, "invalid group %s", tool.Quote(o.Arg))
	}
	in.gid = &gid
}

// makeLeading makes the directories above a file.
func (in *installer) makeLeading(name string) {
	dir := path.Dir(name)
	if dir == "." || dir == "/" {
		return
	}
	if failing, err := makeAll(in.t, dir, in.madeDir); err != nil {
		in.fail("cannot create directory %s: %s", tool.QuoteAF(failing), tool.Strerror(err))
	}
}

func (in *installer) madeDir(dir string) {
	if in.verbose {
		in.t.Out.WriteString(in.t.Name + ": creating directory " + tool.QuoteAF(dir) + "\n")
	}
}

func (in *installer) directories(dirs []string) int {
	if len(dirs) == 0 {
		in.t.UsageError(1, "missing file operand")
	}
	for _, dir := range dirs {
		failing, err := makeAll(in.t, dir, in.madeDir)
		if err != nil {
			in.fail("cannot create directory %s: %s", tool.QuoteAF(failing), tool.Strerror(err))
			continue
		}
		in.attributes(dir, vfs.ModeDir)
	}
	return status(in.failed)
}

// attributes sets owner and mode; set-id bits survive since the owner is set first.
func (in *installer) attributes(name string, kind vfs.Mode) bool {
	if in.uid != nil || in.gid != nil {
		if err := in.t.SetAttr(name, vfs.SetAttr{UID: in.uid, GID: in.gid}, false); err != nil {
			return in.fail("cannot change ownership of %s: %s", tool.QuoteAF(name), tool.Strerror(err))
		}
	}
	mode := in.modes.Apply(kind, 0)
	if err := in.t.SetAttr(name, vfs.SetAttr{Mode: &mode}, true); err != nil {
		return in.fail("cannot change permissions of %s: %s", tool.QuoteAF(name), tool.Strerror(err))
	}
	return true
}

// install copies one file.
func (in *installer) install(src, dst string) {
	a, err := in.t.Stat(src)
	if err != nil {
		in.fail("cannot stat %s: %s", tool.QuoteAF(src), tool.Strerror(err))
		return
	}
	if a.Mode.IsDir() {
		in.fail("omitting directory %s", tool.QuoteAF(src))
		return
	}
	if in.compare && in.same(src, dst, a) {
		return
	}
	verbose := in.verbose
	in.verbose = false
	existed := false
	if _, err := in.t.Lstat(dst); err == nil {
		existed = true
	}
	ok := in.copy(src, dst, true)
	in.verbose = verbose
	if !ok {
		return
	}
	if verbose {
		if existed && in.backup == "none" {
			fmt.Fprintf(in.t.Out, "removed %s\n", tool.QuoteAF(dst))
		}
		fmt.Fprintf(in.t.Out, "%s -> %s\n", tool.QuoteAF(src), tool.QuoteAF(dst))
	}
	if !in.attributes(dst, 0) {
		return
	}
	if in.keepTime {
		if err := in.t.SetAttr(dst, vfs.SetAttr{Atime: &a.Atime, Mtime: &a.Mtime}, true); err != nil {
			in.fail("cannot set timestamps for %s: %s", tool.QuoteAF(dst), tool.Strerror(err))
		}
	}
}

// same reports whether the destination is already what it would become.
func (in *installer) same(src, dst string, a vfs.Attr) bool {
	d, err := in.t.Lstat(dst)
	if err != nil || !d.Mode.IsRegular() || !a.Mode.IsRegular() || a.Size != d.Size || d.Mode&vfs.ModePerm != in.modes.Apply(0, 0) {
		return false
	}
	cred := in.t.Cred()
	uid, gid := cred.UID, cred.GID
	if in.uid != nil {
		uid = *in.uid
	}
	if in.gid != nil {
		gid = *in.gid
	}
	if d.UID != uid || d.GID != gid {
		return false
	}
	x, err1 := in.t.ReadFile(src, MaxHeld)
	y, err2 := in.t.ReadFile(dst, MaxHeld)
	return err1 == nil && err2 == nil && strings.Compare(string(x), string(y)) == 0
}
