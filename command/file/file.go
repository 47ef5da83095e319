// Package file is file, which tells what a file is from its first bytes, worded as file 5.44.
//
// A kind is a description and a MIME type. Formats with a signature are in magic.go; what is left is text or data.
package file

import (
	"fmt"
	"io"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	headSize = 1 << 20 // how much of a file is looked at
	keyMime  = tool.KeyOwn
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
		{Short: 'F', Long: "separator", Arg: getopt.Required, Name: "STRING", Help: "use string as separator instead of ':'"},
	},
	Package: "AgentRun) 5.44",
}

// kind is what a file is; charset is that of its MIME type.
type kind struct{ text, mime, charset string }

type teller struct {
	t                             *tool.T
	brief, mime, mimeType, follow bool
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
			fmt.Fprintf(t.Out, "%s%s%*s", label(n), l.sep, 1+width-tool.StringWidth(n), "")
		}
		l.show(l.examine(n))
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
	case l.mimeType && k.mime != "":
		k.text = k.mime
	case l.mime && k.mime != "":
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
	return identify(head)
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
