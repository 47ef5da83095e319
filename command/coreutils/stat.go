package coreutils

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/datetime"
	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

var statSpec = tool.Spec{
	Usage: []string{"[OPTION]... FILE..."},
	About: "Display file or file system status.",
	Options: []getopt.Option{
		{Short: 'L', Long: "dereference", Help: "follow links"},
		{Short: 'f', Long: "file-system", Help: "display file system status instead of file status"},
		{Short: 'c', Long: "format", Arg: getopt.Required, Name: "FORMAT", Help: "use the specified FORMAT instead of the default; output a newline after each use of FORMAT"},
		{Long: "printf", Key: tool.KeyOwn, Arg: getopt.Required, Name: "FORMAT", Help: "like --format, but interpret backslash escapes, and do not output a mandatory trailing newline"},
		{Long: "cached", Key: tool.KeyOwn + 1, Arg: getopt.Required, Name: "MODE", Help: "(accepted)"},
		{Short: 't', Long: "terse", Help: "print the information in terse form"},
	},
	Notes:   "The valid format sequences for files: %a %A %b %B %d %D %f %F %g %G %h %i %m %n %N %o %r %R %s %t %T %u %U %w %W %x %X %y %Y %z %Z\nFor file systems: %a %b %c %d %f %i %l %n %s %S %t %T",
	Package: tool.Coreutils,
}

const (
	statTerse   = "%n %s %b %f %u %g %D %i %h %t %T %X %Y %Z %W %o"
	fsTerse     = "%n %i %l %t %s %S %b %f %a %c %d"
	fsDefault   = "  File: \"%n\"\n    ID: %-8i Namelen: %-7l Type: %T\nBlock size: %-10s Fundamental block size: %S\nBlocks: Total: %-10b Free: %-10f Available: %a\nInodes: Total: %-10c Free: %d"
	statTimes   = "\nAccess: %x\nModify: %y\nChange: %z\n Birth: %w"
	statAccess  = "\nAccess: (%04a/%10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)"
	statDefault = "  File: %N\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\nDevice: %Hd,%Ld\tInode: %-11i Links: %h" + statAccess + statTimes
	statDevice  = "  File: %N\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\nDevice: %Hd,%Ld\tInode: %-11i Links: %-5h Device type: %Hr,%Lr" + statAccess + statTimes
)

type statter struct {
	t        *tool.T
	follow   bool
	accounts *tool.Accounts
}

// Stat prints files' attributes.
func Stat(t *tool.T) int {
	opts, files := t.Parse(&statSpec)
	s := statter{t: t}
	format, escapes, fs, terse, given := "", false, false, false, false
	for _, o := range opts {
		switch o.Key {
		case 'L':
			s.follow = true
		case 'f':
			fs = true
		case 'c':
			format, escapes, given = o.Arg, false, true
		case tool.KeyOwn:
			format, escapes, given = o.Arg, true, true
		case 't':
			terse = true
		}
	}
	if len(files) == 0 {
		t.Missing(1)
	}
	s.accounts = t.Accounts()
	failed := false
	for _, f := range files {
		var field func(c, mod byte) (string, bool)
		use := format
		if fs {
			st, err := t.StatFS(f)
			if err != nil {
				t.Warn("cannot read file system information for %s: %s", tool.QuoteAF(f), tool.Strerror(err))
				failed = true
				continue
			}
			field = func(c, _ byte) (string, bool) { return fsField(f, st, c) }
			if !given {
				use = fsDefault
				if terse {
					use = fsTerse
				}
			}
		} else {
			a, err := s.look(f)
			if err != nil {
				t.Warn("cannot statx %s: %s", tool.QuoteAF(f), tool.Strerror(err))
				failed = true
				continue
			}
			field = func(c, mod byte) (string, bool) { return s.field(f, a, c, mod) }
			if !given {
				use = statDefault
				if k := a.Mode & vfs.ModeType; terse {
					use = statTerse
				} else if k == vfs.ModeChar || k == vfs.ModeBlock {
					use = statDevice
				}
			}
		}
		s.print(use, escapes, field)
		if !escapes {
			t.Out.WriteByte('\n')
		}
	}
	return status(failed)
}

func (s *statter) look(name string) (vfs.Attr, error) {
	if name == "-" {
		f, err := s.t.File(0)
		if err != nil {
			return vfs.Attr{}, err
		}
		return f.Attr()
	}
	if s.follow {
		return s.t.Stat(name)
	}
	return s.t.Lstat(name)
}

// print writes a format. Between % and the letter there may be flags, width and precision.
func (s *statter) print(format string, escapes bool, field func(c, mod byte) (string, bool)) {
	w := s.t.Out
	for i := 0; i < len(format); i++ {
		switch {
		case escapes && format[i] == '\\' && i+1 < len(format):
			end := i + 2
			if format[i+1] == 'x' || format[i+1] >= '0' && format[i+1] <= '7' {
				for end < len(format) && end < i+4 && strings.IndexByte("0123456789abcdefABCDEF", format[end]) >= 0 {
					end++
				}
			}
			WriteEscaped(w, format[i:end], true)
			i = end - 1
		case format[i] != '%' || i+1 == len(format):
			w.WriteByte(format[i])
		default:
			start := i
			for i++; i < len(format) && strings.IndexByte("'-+ #0123456789.", format[i]) >= 0; i++ {
			}
			flags := format[start+1 : i]
			mod := byte(0)
			if i+1 < len(format) && (format[i] == 'H' || format[i] == 'L') && strings.IndexByte("dr", format[i+1]) >= 0 {
				mod = format[i]
				i++
			}
			if i == len(format) {
				s.t.Fatal(1, "%s: invalid directive", tool.Quote(format[start:]))
			}
			if format[i] == '%' {
				w.WriteByte('%')
				continue
			}
			v, numeric := field(format[i], mod)
			w.WriteString(statPad(flags, v, numeric))
		}
	}
}

func statPad(flags, v string, numeric bool) string {
	spec := strings.TrimLeft(flags, "'-+ #0")
	set := flags[:len(flags)-len(spec)]
	width, _, _ := strings.Cut(spec, ".")
	n, err := strconv.Atoi("0" + width)
	if err != nil || n > 1<<16 {
		n = 1 << 16
	}
	if strings.Contains(set, "#") && numeric && v != "0" {
		v = "0" + v
	}
	n -= len(v)
	switch {
	case n <= 0:
		return v
	case strings.Contains(set, "-"):
		return v + strings.Repeat(" ", n)
	case strings.Contains(set, "0") && numeric:
		return strings.Repeat("0", n) + v
	}
	return strings.Repeat(" ", n) + v
}

func (s *statter) field(name string, a vfs.Attr, c, mod byte) (string, bool) {
	num := func(n uint64) (string, bool) { return strconv.FormatUint(n, 10), true }
	when := func(t time.Time) (string, bool) {
		return datetime.Format("%Y-%m-%d %H:%M:%S.%N %z", t.In(s.t.Now().Location())), false
	}
	major := func(dev uint64) uint64 { return dev >> 8 & 0xfff }
	minor := func(dev uint64) uint64 { return dev&0xff | dev>>12&0xfff00 }
	switch c {
	case 'a':
		return strconv.FormatUint(uint64(a.Mode&vfs.ModePerm), 8), true
	case 'A':
		return tool.FormatMode(a.Mode), false
	case 'b':
		return num(uint64(a.Blocks))
	case 'B':
		return "512", true
	case 'C':
		return "?", false
	case 'd', 'D', 'r', 'R':
		dev := a.Dev
		if c|0x20 == 'r' {
			dev = a.Rdev
		}
		switch {
		case mod == 'H':
			return num(major(dev))
		case mod == 'L':
			return num(minor(dev))
		case c == 'D' || c == 'R':
			return strconv.FormatUint(dev, 16), true
		}
		return num(dev)
	case 'f':
		return strconv.FormatUint(uint64(a.Mode), 16), true
	case 'F':
		return fileType(a), false
	case 'g':
		return num(uint64(a.GID))
	case 'G':
		return s.accounts.GroupName(a.GID), false
	case 'h':
		return num(uint64(a.Nlink))
	case 'i':
		return num(uint64(a.Ino))
	case 'm':
		return "/", false
	case 'n':
		return name, false
	case 'N':
		if target, err := s.t.Readlink(name); err == nil && a.Mode.IsSymlink() {
			return tool.QuoteAF(name) + " -> " + tool.QuoteAF(target), false
		}
		return tool.QuoteAF(name), false
	case 'o':
		return "4096", true
	case 's':
		return num(uint64(a.Size))
	case 't':
		return strconv.FormatUint(major(a.Rdev), 16), true
	case 'T':
		return strconv.FormatUint(minor(a.Rdev), 16), true
	case 'u':
		return num(uint64(a.UID))
	case 'U':
		return s.accounts.UserName(a.UID), false
	case 'w':
		return "-", false
	case 'W':
		return "0", true
	case 'x':
		return when(a.Atime)
	case 'y':
		return when(a.Mtime)
	case 'z':
		return when(a.Ctime)
	case 'X':
		return strconv.FormatInt(a.Atime.Unix(), 10), true
	case 'Y':
		return strconv.FormatInt(a.Mtime.Unix(), 10), true
	case 'Z':
		return strconv.FormatInt(a.Ctime.Unix(), 10), true
	}
	return "?", false
}

func fsField(name string, st vfs.StatFS, c byte) (string, bool) {
	num := func(n uint64) (string, bool) { return strconv.FormatUint(n, 10), true }
	switch c {
	case 'a', 'f':
		return num(st.Free)
	case 'b':
		return num(st.Blocks)
	case 'c':
		return num(st.Files)
	case 'd':
		return num(st.FFree)
	case 'i':
		return "0", true
	case 'l':
		return num(vfs.MaxName)
	case 'n':
		return name, false
	case 's', 'S':
		return num(st.BlockSize)
	case 't':
		return strconv.FormatUint(uint64(st.Type), 16), true
	case 'T':
		return fmt.Sprintf("UNKNOWN (0x%x)", st.Type), false
	}
	return "?", false
}
