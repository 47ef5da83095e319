package archive

import (
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"strings"
	"syscall"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// unzip is a running unzip. Options end at the archive's name; after it come members, -x and -d.
type unzip struct {
	t                      *tool.T
	op                     byte // 'x', or l v t p c z 1
	quiet                  int
	overwrite, never, junk bool
	freshen, update, fold  bool
	keepBits               bool
	archive, dir, base     string
	members, excluded      []string
	found                  []bool
	foundExcluded          []bool
	links                  []zipLink
	dirs                   []zipDir
	answers                *bufio.Reader
	status                 int
	tested                 int
	crc                    uint32 // of what was copied last
}

// zipLink is a symbolic link that is made when all else is extracted.
type zipLink struct{ path, target string }

// zipDir is a directory whose mode and time are set at the end.
type zipDir struct {
	path string
	f    *zip.File
}

const unzipUsage = `UnZip 6.00 of 20 April 2009, by AgentRun. After Info-ZIP.

Usage: unzip [-opts[modifiers]] file[.zip] [list] [-x xlist] [-d exdir]
  Default action is to extract files in list, except those in xlist, to exdir.

  -p  extract files to pipe, no messages     -l  list files (short format)
  -f  freshen existing files, create none    -t  test compressed archive data
  -u  update files, create if necessary      -z  display archive comment only
  -v  list verbosely                         -Z1 list names only
  -x  exclude files that follow (in xlist)   -d  extract files into exdir
modifiers:
  -n  never overwrite existing files         -q  quiet mode (-qq => quieter)
  -o  overwrite files WITHOUT prompting      -j  junk paths (do not make directories)
  -C  match filenames case-insensitively     -K  keep setuid/setgid/tacky permissions
`

// Unzip lists, tests and extracts zip archives.
func Unzip(t *tool.T) int {
	u := &unzip{t: t, op: 'x', answers: bufio.NewReader(t.Stdin())}
	if len(t.Args()) == 1 {
		t.Out.WriteString(unzipUsage)
		return 0
	}
	if !u.arguments(t.Args()[1:]) {
		t.Out.Flush()
		io.WriteString(t.Stderr(), unzipUsage)
		return 10
	}
	z := openZip(t, u.archive)
	if z == nil {
		return 9
	}
	defer z.close()
	if u.op != 'p' && u.op != '1' && u.quiet == 0 {
		fmt.Fprintf(t.Out, "Archive:  %s\n", z.name)
	}
	if z.err != nil {
		u.broken(z)
		return u.status
	}
	u.run(z)
	return u.status
}

// arguments reads the command line; false if it is wrong.
func (u *unzip) arguments(args []string) bool {
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case len(a) > 1 && a[0] == '-' && u.archive != "" && a[1] == 'x':
			for len(args) > 0 && !strings.HasPrefix(args[0], "-") {
				u.excluded = append(u.excluded, args[0])
				args = args[1:]
			}
		case len(a) > 1 && a[0] == '-' && (u.archive == "" || a[1] == 'd'):
			var ok bool
			if args, ok = u.cluster(a[1:], args); !ok {
				return false
			}
		case u.archive == "":
			u.archive = a
		default:
			u.members = append(u.members, a)
		}
	}
	u.found, u.foundExcluded = make([]bool, len(u.members)), make([]bool, len(u.excluded))
	return u.archive != ""
}

func (u *unzip) cluster(letters string, rest []string) ([]string, bool) {
	for i := 0; i < len(letters); i++ {
		switch c := letters[i]; c {
		case 'l', 'v', 't', 'p', 'c', 'z':
			u.op = c
		case 'Z':
			if letters[i+1:] != "1" {
				return rest, false
			}
			u.op = '1'
			return rest, true
		case 'f':
			u.freshen = true
		case 'u':
			u.update = true
		case 'o':
			u.overwrite, u.never = true, false
		case 'n':
			u.never, u.overwrite = true, false
		case 'j':
			u.junk = true
		case 'q':
			u.quiet++
		case 'C':
			u.fold = true
		case 'K':
			u.keepBits = true
		case 'U', 'X', 'D', 'B':
		case 'd':
			if u.dir = letters[i+1:]; u.dir == "" {
				if len(rest) == 0 {
					return rest, false
				}
				u.dir, rest = rest[0], rest[1:]
			}
			return rest, true
		default:
			return rest, false
		}
	}
	return rest, true
}

// broken says what is wrong with a file that is no archive.
func (u *unzip) broken(z *zipInput) {
	u.t.Out.Flush()
	w := u.t.Stderr()
	switch {
	case errors.Is(z.err, errManyMembers):
		fmt.Fprintf(w, "error [%s]:  %s\n", z.name, z.err)
		u.status = 3
	case errors.Is(z.err, zip.ErrFormat), errors.Is(z.err, io.ErrUnexpectedEOF):
		fmt.Fprintf(w, "  End-of-central-directory signature not found.  Either this file is not\n  a zipfile, or it constitutes one disk of a multi-part archive.  In the\n"+
			"  latter case the central directory and zipfile comment will be found on\n  the last disk(s) of this archive.\n"+
			"unzip:  cannot find zipfile directory in one of %s or\n        %s.zip, and cannot find %s.ZIP, period.\n", u.archive, u.archive, u.archive)
		u.status = 9
	default:
		fmt.Fprintf(w, "error:  cannot read %s: %s\n", z.name, tool.Strerror(z.err))
		u.status = 9
	}
}

// wanted reports whether a member is among those named, and notes which names were of use.
func (u *unzip) wanted(name string) bool {
	var flags tool.GlobFlags
	if u.fold {
		flags = tool.GlobFold
	}
	ok := len(u.members) == 0
	for i, m := range u.members {
		if m == name || tool.Glob(m, name, flags) {
			u.found[i], ok = true, true
		}
	}
	for i, m := range u.excluded {
		if ok && (m == name || tool.Glob(m, name, flags)) {
			u.foundExcluded[i], ok = true, false
		}
	}
	return ok
}

func (u *unzip) run(z *zipInput) {
	t := u.t
	if len(z.r.File) == 0 {
		u.status = 1
		if u.op == 't' {
			fmt.Fprintf(t.Out, "warning [%s]:  zipfile is empty\n", z.name)
			return
		}
		u.warn("warning [%s]:  zipfile is empty\n", z.name)
		return
	}
	if u.op != 'x' && u.op != 'p' && u.op != '1' && u.quiet == 0 && z.r.Comment != "" {
		fmt.Fprintln(t.Out, z.r.Comment)
	}
	switch u.op {
	case 'z':
		return
	case 'l', 'v', '1':
		u.list(z)
		return
	}
	if z.overlapping(t) {
		t.Out.Flush()
		fmt.Fprintln(t.Stderr(), "error: invalid zip file with overlapped components (possible zip bomb)")
		u.status = 12
		return
	}
	u.prepareDir()
	for _, f := range z.r.File {
		if t.Step(1) != nil {
			t.Check()
		}
		if u.wanted(f.Name) {
			u.member(f)
		}
	}
	u.finish()
	u.unmatched()
	if u.op == 't' && u.quiet < 2 {
		if n := u.tested; u.status == 0 && len(u.members)+len(u.excluded) > 0 {
			fmt.Fprintf(t.Out, "No errors detected in %s for the %d file%s tested.\n", z.name, n, plural(n))
		} else if u.status == 0 {
			fmt.Fprintf(t.Out, "No errors detected in compressed data of %s.\n", z.name)
		} else if u.status < 11 {
			fmt.Fprintf(t.Out, "At least one error was detected in %s.\n", z.name)
		}
	}
}

func (u *unzip) unmatched() {
	u.t.Out.Flush()
	for i, ok := range u.found {
		if !ok {
			fmt.Fprintf(u.t.Stderr(), "caution: filename not matched:  %s\n", u.members[i])
			u.status = max(u.status, 11)
		}
	}
	for i, ok := range u.foundExcluded {
		if !ok {
			fmt.Fprintf(u.t.Stderr(), "caution: excluded filename not matched:  %s\n", u.excluded[i])
		}
	}
}

// list is -l, -v and -Z1.
func (u *unzip) list(z *zipInput) {
	t := u.t
	if u.op != '1' && u.quiet < 2 {
		if u.op == 'v' {
			t.Out.WriteString(" Length   Method    Size  Cmpr    Date    Time   CRC-32   Name\n--------  ------  ------- ---- ---------- ----- --------  ----\n")
		} else {
			t.Out.WriteString("  Length      Date    Time    Name\n---------  ---------- -----   ----\n")
		}
	}
	var size, packed uint64
	n := 0
	for _, f := range z.r.File {
		if t.Step(1) != nil {
			t.Check()
		}
		if !u.wanted(f.Name) {
			continue
		}
		n++
		size += f.UncompressedSize64
		packed += f.CompressedSize64
		when := zipTime(t, f).Format("2006-01-02 15:04")
		switch u.op {
		case '1':
			fmt.Fprintln(t.Out, f.Name)
		case 'v':
			fmt.Fprintf(t.Out, "%8d  %-6s %8d %3d%% %s %08x  %s\n", f.UncompressedSize64, zipMethod(f), f.CompressedSize64, zipRatio(f.UncompressedSize64, f.CompressedSize64), when, f.CRC32, printableName(f.Name))
		default:
			fmt.Fprintf(t.Out, "%9d  %s   %s\n", f.UncompressedSize64, when, printableName(f.Name))
		}
	}
	if u.op != '1' && u.quiet < 2 {
		s := plural(n)
		if u.op == 'v' {
			fmt.Fprintf(t.Out, "--------          -------  ---                            -------\n%8d         %8d %3d%%                            %d file%s\n", size, packed, zipRatio(size, packed), n, s)
		} else {
			fmt.Fprintf(t.Out, "---------                     -------\n%9d                     %d file%s\n", size, n, s)
		}
	}
	if n == 0 {
		u.status = 11
	}
}

// safeName makes a member's name relative and takes out what leads upwards.
func (u *unzip) safeName(f *zip.File) (string, bool) {
	name, warned := f.Name, false
	if strings.HasPrefix(name, "/") {
		name, warned = strings.TrimLeft(name, "/"), true
		u.warn("warning:  stripped absolute path spec from %s\n", f.Name)
	}
	isDir := strings.HasSuffix(name, "/")
	parts := strings.Split(name, "/")
	kept := parts[:0]
	up := false
	for _, p := range parts {
		switch p {
		case "", ".":
		case "..":
			up = true
		default:
			kept = append(kept, p)
		}
	}
	if up {
		u.warn("warning:  skipped \"../\" path component(s) in %s\n", f.Name)
		warned = true
	}
	if warned {
		u.status = max(u.status, 1)
	}
	if len(kept) == 0 {
		return "", false
	}
	if u.junk {
		if isDir {
			return "", false
		}
		kept = kept[len(kept)-1:]
	}
	name = strings.Join(kept, "/")
	if isDir {
		name += "/"
	}
	return name, !strings.Contains(name, "\x00")
}

func (u *unzip) warn(format string, args ...any) {
	u.t.Out.Flush()
	fmt.Fprintf(u.t.Stderr(), format, args...)
}

// member tests, prints or extracts one member.
func (u *unzip) member(f *zip.File) {
	t := u.t
	mode := zipMode(t, f)
	switch u.op {
	case 't':
		if u.quiet == 0 {
			fmt.Fprintf(t.Out, "%11s: %s  ", "testing", padName(f.Name))
		}
		u.tested++
		if err := u.copy(io.Discard, f); err != nil {
			u.bad(f, err)
		} else if u.quiet == 0 {
			t.Out.WriteString(" OK\n")
		}
		return
	case 'p', 'c':
		if mode.IsDir() {
			return
		}
		if u.op == 'c' && u.quiet == 0 {
			fmt.Fprintf(t.Out, "%11s: %s  \n", zipVerb(f), padName(f.Name))
		}
		if err := u.copy(t.Out, f); err != nil {
			u.bad(f, err)
		}
		if u.op == 'c' && u.quiet == 0 {
			t.Out.WriteString("\n")
		}
		return
	}
	name, ok := u.safeName(f)
	if !ok {
		return
	}
	p := path.Join(u.base, name)
	if mode.IsDir() {
		u.directory(f, p)
		return
	}
	u.file(f, p, mode)
}

// copy writes a member's contents, no more of them than the archive's directory says there are.
func (u *unzip) copy(w io.Writer, f *zip.File) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	u.crc = 0
	buf := make([]byte, 32<<10)
	for left := f.UncompressedSize64; ; {
		n, err := r.Read(buf)
		if u.t.Step(1+n/1024) != nil {
			u.t.Check()
		}
		if uint64(n) > left {
			return zip.ErrFormat
		}
		left -= uint64(n)
		u.crc = crc32.Update(u.crc, crc32.IEEETable, buf[:n])
		if _, werr := w.Write(buf[:n]); werr != nil {
			return werr
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// bad reports a member that can't be read.
func (u *unzip) bad(f *zip.File, err error) {
	name := printableName(f.Name)
	switch {
	case errors.Is(err, zip.ErrChecksum):
		if text := fmt.Sprintf(" bad CRC %08x  (should be %08x)\n", u.crc, f.CRC32); u.op == 't' {
			u.t.Out.WriteString(text)
		} else {
			u.warn("%s", text)
		}
		u.status = max(u.status, 2)
	case errors.Is(err, zip.ErrAlgorithm):
		u.warn("   skipping: %-22s  unsupported compression method %d\n", name, f.Method)
		u.status = max(u.status, 81)
	case vfs.Errno(err) == syscall.ENOSPC || vfs.Errno(err) == syscall.EDQUOT || vfs.Errno(err) == syscall.EFBIG:
		u.warn("%s:  write error (%s).\n", name, tool.Strerror(err))
		u.t.Exit(50)
	default:
		u.warn("  error:  invalid compressed data to inflate %s\n", name)
		u.status = max(u.status, 2)
	}
}
