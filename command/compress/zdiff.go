package compress

import (
	"io"
	"strconv"
	"strings"

	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// Zcmp compares files byte by byte, as they are when decompressed.
func Zcmp(t *tool.T) int { return zdiff(t, "cmp") }

// Zdiff compares files line by line, as they are when decompressed.
func Zdiff(t *tool.T) int { return zdiff(t, "diff") }

// zdiff splits the arguments into those of the command and files, as the script zdiff does.
func zdiff(t *tool.T, command string) int {
	t.FailStatus(2)
	args, files, option, only := []string{command}, []string(nil), "", false
	for _, a := range t.Args()[1:] {
		switch {
		case only || option == "" && (a == "-" || a == "" || a[0] != '-'):
			if a == "" {
				t.Fatal(2, "empty file name")
			}
			if len(files) == 2 {
				t.Fatal(2, "extra operand '%s'", a)
			}
			files = append(files, a)
		case option != "":
			args, option = append(args, option, a), ""
		case strings.HasPrefix(a, "--h"):
			t.Out.WriteString("Usage: " + base(t.Name) + " [OPTION]... FILE1 [FILE2]\nCompare FILE1 to FILE2, using their uncompressed contents if they are\ncompressed.  If FILE2 is omitted, compare FILE1 to the uncompressed\ncontents of FILE1.gz.  Do comparisons like '" + command + "' does.\n\nOPTIONs are the same as for '" + command + "'.\n")
			return 0
		case strings.HasPrefix(a, "--v"):
			t.Out.WriteString(base(t.Name) + " (gzip) 1.12\n")
			return 0
		case a == "--":
			only = true
		case len(a) == 2 && strings.IndexByte("CDFISUWXx", a[1]) >= 0:
			option = a
		default:
			args = append(args, a)
		}
	}
	switch {
	case option != "":
		t.Fatal(2, ": option requires an argument -- '%s'", option)
	case len(files) == 0:
		t.Fatal(2, "missing operand")
	}
	for _, f := range files {
		if f == "-" {
			continue
		}
		if err := t.Access(f, 4); err != nil {
			t.Fatal(2, "%s: %s", f, tool.Strerror(err))
		}
	}
	if len(files) == 1 {
		plain, ok := withoutSuffix(files[0])
		if !ok {
			t.Fatal(2, "%s: unknown compressed file extension", files[0])
		}
		return compare(t, args, [2]string{files[0], plain}, [2]bool{true, false})
	}
	return compare(t, args, [2]string(files), [2]bool{compressed(files[0]), compressed(files[1])})
}

// compressed reports whether a name says that the file is compressed; standard input may be.
func compressed(name string) bool {
	_, ok := withoutSuffix(name)
	return ok || name == "-"
}

// withoutSuffix returns the name of a compressed file without what says so.
func withoutSuffix(name string) (string, bool) {
	for _, s := range []string{".gz", "-gz", ".z", "-z", ".Z", "-Z", ".bz2", ".xz", ".lzma", ".zst"} {
		if rest, ok := strings.CutSuffix(name, s); ok {
			return rest, true
		}
	}
	for _, s := range []string{".tgz", ".taz"} {
		if rest, ok := strings.CutSuffix(name, s); ok {
			return rest + ".tar", true
		}
	}
	return name, false
}

// compare runs the command on two files, of which those to be decompressed are descriptors.
func compare(t *tool.T, args []string, names [2]string, packed [2]bool) int {
	args = append(args, "--")
	files := map[int]vfs.File{}
	if names == [2]string{"-", "-"} {
		packed[1] = false
	}
	for i, name := range names {
		if !packed[i] {
			args = append(args, name)
			continue
		}
		f := expand(t, name)
		if f == nil {
			return 2
		}
		defer f.Close()
		if i == 0 && packed[1] {
			files[5] = f
			args = append(args, "/dev/fd/5")
		} else {
			files[0] = f
			args = append(args, "-")
		}
	}
	return runWith(t, args, files)
}

// runWith runs a command with some descriptors, and returns its status.
func runWith(t *tool.T, args []string, files map[int]vfs.File) int {
	t.Out.Flush()
	child, err := t.Spawn(proc.Spawn{Args: args, Files: files})
	if err != nil {
		t.Fatal(2, "%s: %s", args[0], tool.Strerror(err))
	}
	status, err := t.WaitQuiet(child)
	if err != nil {
		return 2
	}
	return status
}

// expand returns what some files hold when they are decompressed, as a file that has no name any more. With several, each
// has a head with its name. A failure has been reported when it is nil.
func expand(t *tool.T, names ...string) vfs.File {
	dir := t.Getenv("TMPDIR")
	if dir == "" {
		dir = "/tmp"
	}
	temp, f, err := t.TempFile(dir, "zdiff", 0o600)
	if err != nil {
		t.Fatal(2, "%s: %s", temp, tool.Strerror(err))
	}
	t.Unlink(temp)
	w := tool.NewFileWriter(f)
	for _, name := range names {
		if len(names) > 1 {
			w.WriteString("::::::::::::::\n" + name + "\n::::::::::::::\n")
		}
		if err := expandTo(t, w, name); err != nil {
			t.Out.Flush()
			io.WriteString(t.Stderr(), "gzip: "+name+": "+tool.Strerror(err)+"\n")
			if len(names) == 1 {
				f.Close()
				return nil
			}
		}
	}
	if err = w.Flush(); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		t.Fatal(2, "%s: %s", temp, tool.Strerror(err))
	}
	return f
}

func expandTo(t *tool.T, w io.Writer, name string) error {
	in, err := t.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	z, _, err := sniff(in)
	if err != nil {
		return err
	}
	defer z.Close()
	_, err = pump(t, w, z)
	return err
}

// Zless shows files with less, as they are when decompressed.
func Zless(t *tool.T) int { return zpage(t, "less") }

// Zmore shows files with more, as they are when decompressed.
func Zmore(t *tool.T) int { return zpage(t, "more") }

func zpage(t *tool.T, pager string) int {
	args, files := []string{pager}, map[int]vfs.File{}
	only, operands := false, []string(nil)
	for _, a := range t.Args()[1:] {
		switch {
		case !only && strings.HasPrefix(a, "--h"):
			t.Out.WriteString("Usage: " + base(t.Name) + " [OPTION]... [FILE]...\nLike '" + pager + "', but operate on the uncompressed contents of any compressed FILEs.\n\nOptions are the same as for '" + pager + "'.\n")
			return 0
		case !only && strings.HasPrefix(a, "--v"):
			t.Out.WriteString(base(t.Name) + " (gzip) 1.12\n")
			return 0
		case !only && a == "--":
			only = true
		case !only && a != "-" && a != "" && (a[0] == '-' || a[0] == '+'):
			args = append(args, a)
		default:
			operands = append(operands, a)
		}
	}
	if pager == "more" && len(operands) > 0 {
		if files[0] = expand(t, operands...); files[0] == nil {
			return 1
		}
		defer files[0].Close()
		return runWith(t, args, files)
	}
	for _, name := range operands {
		f := expand(t, name)
		if f == nil {
			return 1
		}
		defer f.Close()
		fd := 5 + len(files)
		files[fd] = f
		args = append(args, "/dev/fd/"+strconv.Itoa(fd))
	}
	if len(operands) == 0 {
		if t.IsTerminal(0) {
			t.Fatal(1, "missing operands; try '%s --help' for help", t.Name)
		}
		f := expand(t, "-")
		if f == nil {
			return 1
		}
		defer f.Close()
		files[0] = f
	}
	return runWith(t, args, files)
}
