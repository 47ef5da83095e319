package archive

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strings"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

var paxSpec = tool.Spec{
	Usage: []string{"[-cdnv] [-H|-L] [-f archive] [-s replstr]... [pattern...]", "-r [-cdiknuv] [-f archive] [-p string]... [-s replstr]... [pattern...]", "-w [-dituvX] [-b blocksize] [[-a] [-f archive]] [-s replstr]... [-x format] [file...]", "-r -w [-diklntuvX] [-p string]... [-s replstr]... [file...] directory"},
	About: "Read and write archives, and copy files. Archives are written and read by tar and cpio.",
	Options: []getopt.Option{
		{Short: 'r', Help: "read an archive"}, {Short: 'w', Help: "write an archive"}, {Short: 'a', Help: "append to the archive"}, {Short: 'b', Arg: getopt.Required, Name: "BLOCKSIZE", Help: "accepted"}, {Short: 'c', Help: "choose what matches no pattern"},
		{Short: 'd', Help: "directories stand for themselves, not for what is in them"}, {Short: 'f', Arg: getopt.Required, Name: "ARCHIVE", Help: "the archive's file"}, {Short: 'H', Help: "follow links that are named"}, {Short: 'L', Help: "follow all links"}, {Short: 'i', Help: "asked nobody: refused"},
		{Short: 'k', Help: "don't overwrite files"}, {Short: 'l', Help: "link instead of copying (copies)"}, {Short: 'n', Help: "only the first match of each pattern"}, {Short: 'o', Arg: getopt.Required, Name: "OPTIONS", Help: "accepted"}, {Short: 'p', Arg: getopt.Required, Name: "STRING", Help: "what to preserve: a e m o p"},
		{Short: 's', Arg: getopt.Required, Name: "REPLSTR", Help: "change names as ed's s does"}, {Short: 't', Help: "restore access times (accepted)"}, {Short: 'u', Help: "only newer files"}, {Short: 'v', Help: "name the files"}, {Short: 'x', Arg: getopt.Required, Name: "FORMAT", Help: "format: pax, ustar, cpio or sv4cpio"}, {Short: 'X', Help: "stay on one filesystem"},
	},
	Package: tool.Own,
}

// pax is a running pax.
type pax struct {
	above                          [][2]uint64 // the directories that are being walked, with -L
	t                              *tool.T
	read, write, add, other, flat  bool
	followNamed, follow, keep      bool
	once, newer, verbose, one      bool
	file, format, preserve, target string
	renames                        []string
}

// Pax is POSIX's archiver, on top of tar and cpio.
func Pax(t *tool.T) int {
	p := &pax{t: t, format: "ustar"}
	opts, operands := t.Parse(&paxSpec)
	for _, o := range opts {
		p.option(o)
	}
	switch {
	case p.read && p.write:
		if len(operands) == 0 {
			t.UsageError(1, "missing destination directory")
		}
		p.target = operands[len(operands)-1]
		return p.copy(operands[:len(operands)-1])
	case p.write:
		return p.create(operands)
	}
	return p.extract(operands)
}

func (p *pax) option(o getopt.Opt) {
	switch o.Key {
	case 'r':
		p.read = true
	case 'w':
		p.write = true
	case 'a':
		p.add = true
	case 'c':
		p.other = true
	case 'd':
		p.flat = true
	case 'f':
		p.file = o.Arg
	case 'H':
		p.followNamed = true
	case 'L':
		p.follow = true
	case 'i':
		p.t.Fatal(1, "-i: renaming by asking is not supported; use -s")
	case 'k':
		p.keep = true
	case 'n':
		p.once = true
	case 'p':
		p.preserve += o.Arg
	case 's':
		p.renames = append(p.renames, o.Arg)
	case 'u':
		p.newer = true
	case 'v':
		p.verbose = true
	case 'X':
		p.one = true
	case 'x':
		if !slices.Contains([]string{"pax", "ustar", "cpio", "sv4cpio"}, o.Arg) {
			p.t.Fatal(1, "unknown format %s", o.Arg)
		}
		p.format = o.Arg
	}
}

// names are the files to archive: the operands, or the lines of standard input, with what is in directories.
func (p *pax) names(operands []string) []string {
	if len(operands) == 0 {
		l := tool.NewLines(p.t.Stdin(), '\n')
		for line, ok := l.Next(); ok && len(operands) < maxNames; line, ok = l.Next() {
			operands = append(operands, string(line))
		}
	}
	var all []string
	for _, n := range operands {
		p.walk(n, true, &all, 0, 0)
	}
	return all
}

func (p *pax) walk(name string, named bool, all *[]string, dev uint64, depth int) {
	if p.t.Step(1) != nil {
		p.t.Check()
	}
	look := p.t.Lstat
	if p.follow || named && p.followNamed {
		look = p.t.Stat
	}
	at, err := look(name)
	if err != nil {
		p.t.Warn("%s: %s", name, tool.Strerror(err))
		return
	}
	if p.one && !named && at.Dev != dev {
		return
	}
	id := [2]uint64{at.Dev, uint64(at.Ino)}
	if at.Mode.IsDir() && p.follow && slices.Contains(p.above, id) {
		p.t.Warn("%s: leads back to a directory that it is in; not archived", name)
		return
	}
	*all = append(*all, name)
	if !at.Mode.IsDir() || p.flat || depth > 1000 || len(*all) > maxNames {
		return
	}
	p.above = append(p.above, id)
	defer func() { p.above = p.above[:len(p.above)-1] }()
	entries, err := p.t.ReadDir(name)
	if err != nil {
		p.t.Warn("%s: %s", name, tool.Strerror(err))
		return
	}
	slices.SortFunc(entries, func(a, b vfs.DirEntry) int { return strings.Compare(a.Name, b.Name) })
	for _, e := range entries {
		if e.Name != "." && e.Name != ".." {
			p.walk(strings.TrimSuffix(name, "/")+"/"+e.Name, false, all, at.Dev, depth+1)
		}
	}
}

// command runs a command that reads text.
func (p *pax) command(in io.Reader, files map[int]vfs.File, args ...string) int {
	r, w, err := p.t.Pipe()
	if err != nil {
		p.t.Fatal(1, "%s", tool.Strerror(err))
	}
	p.t.Out.Flush()
	if files == nil {
		files = map[int]vfs.File{}
	}
	files[0] = r
	child, err := p.t.Spawn(proc.Spawn{Args: args, Files: files})
	r.Close()
	if err != nil {
		w.Close()
		p.t.Fatal(1, "%s: %s", args[0], tool.Strerror(err))
	}
	io.Copy(w, in)
	w.Close()
	status, _ := p.t.WaitQuiet(child)
	return min(status, 1)
}

// transforms are tar's options for -s.
func (p *pax) transforms() (args []string) {
	for _, r := range p.renames {
		r = strings.TrimSuffix(r, "p")
		args = append(args, "--transform=s"+r)
	}
	return args
}

// create is -w.
func (p *pax) create(operands []string) int {
	names := p.names(operands)
	if p.format == "cpio" || p.format == "sv4cpio" {
		return p.createCpio(names)
	}
	mode := "-c"
	if p.add {
		mode = "-r"
	}
	out := p.file
	if out == "" {
		out = "-"
	}
	args := []string{"tar", mode, "--format=" + map[string]string{"ustar": "ustar", "pax": "pax"}[p.format], "--no-recursion", "--null", "-T", "-", "-f", out}
	if p.verbose {
		args = append(args, "-v")
	}
	if p.follow {
		args = append(args, "-h")
	}
	args = append(args, p.transforms()...)
	return p.command(strings.NewReader(strings.Join(names, "\x00")+"\x00"), nil, args...)
}

// createCpio writes an archive itself, since cpio can't rename.
func (p *pax) createCpio(names []string) int {
	format := "odc"
	if p.format == "sv4cpio" {
		format = "newc"
	}
	c := &cpio{t: p.t, mode: 'o', format: format, quiet: true, follow: p.follow, verbose: p.verbose, file: p.file, inodes: map[[2]uint64]uint32{}, held: map[[2]uint64][]cpioEntry{}}
	if p.add {
		p.t.Fatal(1, "-a: can't append to this format")
	}
	c.rename = p.renamed
	c.named = names
	c.create()
	return min(c.status, 1)
}

// renamed applies -s to a name: the first that matches. The syntax is sed's, which does the work.
func (p *pax) renamed(name string) string {
	for _, r := range p.renames {
		var in, out = strings.NewReader(name + "\n"), &bytes.Buffer{}
		rd, wr, err := p.t.Pipe()
		if err != nil {
			return name
		}
		rin, win, err := p.t.Pipe()
		if err != nil {
			return name
		}
		child, err := p.t.Spawn(proc.Spawn{Args: []string{"sed", "s" + strings.TrimSuffix(r, "p")}, Files: map[int]vfs.File{0: rin, 1: wr}})
		rin.Close()
		wr.Close()
		if err != nil {
			win.Close()
			return name
		}
		io.Copy(win, in)
		win.Close()
		io.Copy(out, io.LimitReader(rd, 1<<16))
		rd.Close()
		p.t.WaitQuiet(child)
		if to := strings.TrimSuffix(out.String(), "\n"); to != name {
			return to
		}
	}
	return name
}

// extract is -r, or the list of an archive.
func (p *pax) extract(patterns []string) int {
	var in io.Reader = p.t.Stdin()
	if p.file != "" {
		f, err := p.t.OpenFile(p.file)
		if err != nil {
			p.t.Fatal(1, "%s: %s", p.file, tool.Strerror(err))
		}
		defer f.Close()
		in = f
	}
	r := bufio.NewReaderSize(in, 32<<10)
	magic, _ := r.Peek(6)
	if strings.HasPrefix(string(magic), "07070") || len(magic) > 1 && (magic[0] == 0xc7 && magic[1] == 0x71 || magic[0] == 0x71 && magic[1] == 0xc7) {
		return p.extractCpio(r, patterns)
	}
	args := []string{"tar", "-t"}
	if p.read {
		args = []string{"tar", "-x"}
	}
	if p.verbose {
		args = append(args, "-v")
	}
	if p.keep {
		args = append(args, "--skip-old-files")
	}
	if p.newer {
		args = append(args, "--keep-newer-files")
	}
	if strings.ContainsAny(p.preserve, "ep") {
		args = append(args, "-p")
	}
	if strings.Contains(p.preserve, "m") {
		args = append(args, "-m")
	}
	if p.once {
		args = append(args, "--occurrence=1")
	}
	args = append(args, p.transforms()...)
	if len(p.renames) > 0 {
		args = append(args, "--show-transformed-names")
	}
	args = append(args, "-f", "-", "--wildcards")
	for _, pattern := range patterns {
		if p.other {
			pattern = "--exclude=" + pattern
		}
		args = append(args, pattern)
	}
	return p.command(r, nil, args...)
}

func (p *pax) extractCpio(r io.Reader, patterns []string) int {
	args := []string{"cpio", "-i", "--quiet", "-d"}
	if !p.read {
		args = append(args, "-t")
	} else if !p.keep && !p.newer {
		args = append(args, "-u")
	}
	if p.verbose {
		args = append(args, "-v")
	}
	if !strings.Contains(p.preserve, "m") {
		args = append(args, "-m")
	}
	if p.other {
		args = append(args, "-f")
	}
	return p.command(r, nil, append(args, patterns...)...)
}

// copy is -r -w: what tar writes, tar reads in the directory.
func (p *pax) copy(operands []string) int {
	if at, err := p.t.Stat(p.target); err != nil || !at.Mode.IsDir() {
		if err == nil {
			err = syscall.ENOTDIR
		}
		p.t.Fatal(1, "%s: %s", p.target, tool.Strerror(err))
	}
	names := p.names(operands)
	r, w, err := p.t.Pipe()
	if err != nil {
		p.t.Fatal(1, "%s", tool.Strerror(err))
	}
	args := []string{"tar", "-x", "-f", "-", "-C", p.target}
	if p.keep {
		args = append(args, "--skip-old-files")
	}
	if p.newer {
		args = append(args, "--keep-newer-files")
	}
	if p.verbose {
		args = append(args, "-v")
	}
	child, err := p.t.Spawn(proc.Spawn{Args: args, Files: map[int]vfs.File{0: r}})
	r.Close()
	if err != nil {
		w.Close()
		p.t.Fatal(1, "tar: %s", tool.Strerror(err))
	}
	out := []string{"tar", "-c", "--no-recursion", "--null", "-T", "-", "-f", "-"}
	if p.follow {
		out = append(out, "-h")
	}
	status := p.command(strings.NewReader(strings.Join(names, "\x00")+"\x00"), map[int]vfs.File{1: w}, append(out, p.transforms()...)...)
	w.Close()
	if s, _ := p.t.WaitQuiet(child); s != 0 {
		status = 1
	}
	return status
}
