// Package file is file, which tells what a file is from its first bytes, worded as file 5.44.
//
// A kind is a description and a MIME type. Formats with a signature are in magic.go, machine code in program.go, text in
// text.go; what is left is data.
package file

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"agentrun.dev/command/codec"
	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	headSize     = 1 << 20 // how much of a file is looked at
	keyMime      = tool.KeyOwn
	keyCharset   = tool.KeyOwn + 1
	keyExtension = tool.KeyOwn + 2
)

var spec = tool.Spec{
	Usage: []string{"[OPTION...] [FILE...]"},
	About: "Determine type of FILEs.",
	Options: []getopt.Option{
		{Short: 'b', Long: "brief", Help: "do not prepend filenames to output lines"},
		{Short: 'i', Long: "mime", Help: "output MIME type strings"},
		{Long: "mime-type", Key: keyMime, Help: "output the MIME type"},
		{Short: 'L', Long: "dereference", Help: "follow symlinks"},
		{Short: 'h', Long: "no-dereference", Help: "don't follow symlinks (default)"},
		{Short: 'f', Long: "files-from", Arg: getopt.Required, Name: "FILE", Help: "read the filenames to be examined from FILE"},
		{Long: "mime-encoding", Key: keyCharset, Help: "output the MIME encoding"},
		{Short: 'z', Long: "uncompress", Help: "try to look inside compressed files"},
		{Short: 'Z', Long: "uncompress-noreport", Help: "only print the contents of compressed files"},
		{Short: '0', Long: "print0", Help: "terminate filenames with ASCII NUL"},
		{Short: 'N', Long: "no-pad", Help: "do not pad output"},
		{Short: 'E', Help: "treat files that can't be examined as errors"},
		{Short: 'k', Long: "keep-going", Help: "(accepted)"}, {Short: 'n', Long: "no-buffer", Help: "(accepted)"}, {Short: 'p', Long: "preserve-date", Help: "(accepted)"}, {Short: 'r', Long: "raw", Help: "(accepted)"}, {Short: 's', Long: "special-files", Help: "(accepted)"}, {Short: 'S', Long: "no-sandbox", Hidden: true},
		{Short: 'e', Long: "exclude", Arg: getopt.Required, Name: "TEST", Help: "(accepted)"}, {Short: 'm', Long: "magic-file", Arg: getopt.Required, Name: "LIST", Help: "(accepted)"}, {Short: 'P', Long: "parameter", Arg: getopt.Required, Hidden: true},
		{Short: 'v', Long: "version", Help: "output version information and exit"},
		{Short: 'F', Long: "separator", Arg: getopt.Required, Name: "STRING", Help: "use string as separator instead of ':'"},
	},
	Package: "AgentRun) 5.44",
}

// kind is what a file is; charset is that of its MIME type.
type kind struct{ text, mime, charset string }

type teller struct {
	t                             *tool.T
	brief, mime, mimeType, follow bool
	charset, inside, quiet, nul   bool
	noPad, strict                 bool
	failed                        bool
	sep                           string
}

// File tells what files are.
func File(t *tool.T) int {
	l := &teller{t: t, sep: ":"}
	var names []string
	opts, operands := t.Parse(&spec)
	for _, o := range opts {
		switch o.Key {
		case 'b':
			l.brief = true
		case 'i':
			l.mime = true
		case keyMime:
			l.mimeType = true
		case keyCharset:
			l.charset = true
		case 'z', 'Z':
			l.inside, l.quiet = true, o.Key == 'Z'
		case '0':
			l.nul = true
		case 'N':
			l.noPad = true
		case 'E':
			l.strict = true
		case 'v':
			t.Out.WriteString("file-5.44\nmagic file from AgentRun\n")
			return 0
		case 'L', 'h':
			l.follow = o.Key == 'L'
		case 'F':
			l.sep = o.Arg
		case 'f':
			b, err := t.ReadFile(o.Arg, headSize)
			if err != nil {
				t.Fatal(1, "Cannot open `%s' (%s)", o.Arg, tool.Strerror(err))
			}
			names = append(names, strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")...)
		}
	}
	names = append(names, operands...)
	if len(names) == 0 {
		t.Misused(&spec)
	}
	width := 0
	for _, n := range names {
		width = max(width, tool.StringWidth(n))
	}
	for _, n := range names {
		if t.Step(1) != nil {
			t.Check()
		}
		if !l.brief {
			pad := 1 + width - tool.StringWidth(n)
			if l.noPad {
				pad = 1
			}
			t.Out.WriteString(label(n))
			if l.nul {
				t.Out.WriteByte(0)
			}
			fmt.Fprintf(t.Out, "%s%*s", l.sep, pad, "")
		}
		l.show(l.examine(n))
	}
	if l.failed && l.strict {
		return 1
	}
	return 0
}

func label(name string) string {
	if name == "-" {
		return "/dev/stdin"
	}
	return name
}

func (l *teller) show(k kind) {
	switch {
	case k.mime == "":
		l.failed = true
	case l.mimeType && !l.charset:
		k.text = k.mime
	case l.charset && !l.mime && !l.mimeType:
		k.text = k.charset
	case l.mime || l.mimeType:
		k.text = k.mime
		if k.charset != "" {
			k.text += "; charset=" + k.charset
		}
	}
	l.t.Out.WriteString(k.text + "\n")
}

// examine looks at a file: what it is in the filesystem, then what it holds.
func (l *teller) examine(name string) kind {
	if name != "-" {
		a, err := l.t.Lstat(name)
		if err == nil && a.Mode.IsSymlink() {
			b, berr := l.t.Stat(name)
			if !l.follow {
				target, _ := l.t.Readlink(name)
				if berr != nil {
					return kind{"broken symbolic link to " + target, "inode/symlink", ""}
				}
				return kind{"symbolic link to " + target, "inode/symlink", "binary"}
			}
			a, err = b, berr
		}
		if err != nil {
			return kind{text: fmt.Sprintf("cannot open `%s' (%s)", name, tool.Strerror(err))}
		}
		if k, ok := special(a.Mode); ok {
			return k
		}
	}
	in, err := l.t.Open(name)
	if err != nil {
		return kind{text: fmt.Sprintf("cannot open `%s' (%s)", name, tool.Strerror(err))}
	}
	defer in.Close()
	head, err := io.ReadAll(io.LimitReader(in, headSize))
	if err != nil {
		return kind{text: fmt.Sprintf("cannot read `%s' (%s)", name, tool.Strerror(err))}
	}
	f := &sample{head: head, size: -1, zone: l.t.Location()}
	if a, err := in.Attr(); err == nil && a.Mode.IsRegular() {
		f.size = a.Size
		f.at = func(off int64, n int) []byte {
			b := make([]byte, min(n, headSize))
			got, _ := in.File.ReadAt(b, off)
			return b[:got]
		}
	}
	k := identify(f)
	if l.inside {
		return l.look(k, f)
	}
	return k
}

// look says what is within compressed data.
func (l *teller) look(k kind, f *sample) kind {
	format := codec.Detect(f.head)
	if format == codec.None {
		return k
	}
	z, err := codec.NewReader(format, codec.NewCounter(bytes.NewReader(f.head)))
	if err != nil {
		return k
	}
	defer z.Close()
	head, _ := io.ReadAll(io.LimitReader(z, headSize)) // what is cut off is an error, too
	in := identify(&sample{head: head, size: -1, zone: f.zone})
	if !l.quiet {
		in.text += " (" + k.text + ")"
		in.charset += "; compressed-encoding=" + k.mime
		in.charset = strings.TrimPrefix(in.charset, "; ")
	}
	return in
}

func special(m vfs.Mode) (kind, bool) {
	switch m & vfs.ModeType {
	case vfs.ModeDir:
		return kind{"directory", "inode/directory", "binary"}, true
	case vfs.ModeFIFO:
		return kind{"fifo (named pipe)", "inode/fifo", "binary"}, true
	case vfs.ModeSocket:
		return kind{"socket", "inode/socket", "binary"}, true
	case vfs.ModeChar:
		return kind{"character special", "inode/chardevice", "binary"}, true
	case vfs.ModeBlock:
		return kind{"block special", "inode/blockdevice", "binary"}, true
	}
	return kind{}, false
}
