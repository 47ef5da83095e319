package coreutils

import (
	"fmt"
	"path"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const keyPrintColors = tool.KeyOwn

var dircolorsSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]"},
	About: "Output commands to set the LS_COLORS environment variable.",
	Options: []getopt.Option{
		{Short: 'b', Long: "sh", Help: "output Bourne shell code to set LS_COLORS"},
		{Long: "bourne-shell", Key: 'b', Hidden: true},
		{Short: 'c', Long: "csh", Help: "output C shell code to set LS_COLORS"},
		{Long: "c-shell", Key: 'c', Hidden: true},
		{Short: 'p', Long: "print-database", Help: "output defaults"},
		{Long: "print-ls-colors", Key: keyPrintColors, Help: "output fully escaped colors for display"},
	},
	Notes:   "If FILE is specified, read it to determine which colors to use for which\nfile types and extensions.  Otherwise, a built-in database is used.\nFor details on the format of these files, run 'dircolors --print-database'.",
	Package: tool.Coreutils,
}

// colorWords are the words of a database with the keys of LS_COLORS and what the built-in database says of them.
var colorWords = [][3]string{
	{"RESET", "rs", "0"}, {"DIR", "di", "01;34"}, {"LINK", "ln", "01;36"}, {"MULTIHARDLINK", "mh", "00"}, {"FIFO", "pi", "40;33"}, {"SOCK", "so", "01;35"},
	{"DOOR", "do", "01;35"}, {"BLK", "bd", "40;33;01"}, {"CHR", "cd", "40;33;01"}, {"ORPHAN", "or", "40;31;01"}, {"MISSING", "mi", "00"}, {"SETUID", "su", "37;41"},
	{"SETGID", "sg", "30;43"}, {"CAPABILITY", "ca", "00"}, {"STICKY_OTHER_WRITABLE", "tw", "30;42"}, {"OTHER_WRITABLE", "ow", "34;42"}, {"STICKY", "st", "37;44"}, {"EXEC", "ex", "01;32"},
	{"NORMAL", "no", ""}, {"NORM", "no", ""}, {"FILE", "fi", ""}, {"LNK", "ln", ""}, {"SYMLINK", "ln", ""}, {"PIPE", "pi", ""}, {"BLOCK", "bd", ""}, {"CHAR", "cd", ""}, {"LEFT", "lc", ""}, {"LEFTCODE", "lc", ""},
	{"RIGHT", "rc", ""}, {"RIGHTCODE", "rc", ""}, {"END", "ec", ""}, {"ENDCODE", "ec", ""}, {"CLRTOEOL", "cl", ""},
}

// colorSuffixes are the groups of names in the built-in database.
var colorSuffixes = [][3]string{
	{"archives and compressed files", "01;31", ".tar .tgz .arc .arj .taz .lha .lz4 .lzh .lzma .tlz .txz .tzo .t7z .zip .z .dz .gz .lrz .lz .lzo .xz .zst .tzst .bz2 .bz .tbz .tbz2 .tz .deb .rpm .jar .war .ear .sar .rar .alz .ace .zoo .cpio .7z .rz .cab .wim .swm .dwm .esd"},
	{"images and video", "01;35", ".avif .jpg .jpeg .mjpg .mjpeg .gif .bmp .pbm .pgm .ppm .tga .xbm .xpm .tif .tiff .png .svg .svgz .mng .pcx .mov .mpg .mpeg .m2v .mkv .webm .webp .ogm .mp4 .m4v .mp4v .vob .qt .nuv .wmv .asf .rm .rmvb .flc .avi .fli .flv .gl .dl .xcf .xwd .yuv .cgm .emf .ogv .ogx"},
	{"sound", "00;36", ".aac .au .flac .m4a .mid .midi .mka .mp3 .mpc .ogg .ra .wav .oga .opus .spx .xspf"},
	{"backups and leftovers", "00;90", "*~ *# .bak .old .orig .part .rej .swp .tmp .dpkg-dist .dpkg-old .ucf-dist .ucf-new .ucf-old .rpmnew .rpmorig .rpmsave"},
}

// colorDatabase is the built-in database.
func colorDatabase() string {
	var b strings.Builder
	b.WriteString("# Colors of ls by types of files and suffixes of names, as dircolors reads them.\n# TERM and COLORTERM lines restrict what follows to terminals that match one of them.\nCOLORTERM ?*\n")
	for _, term := range colorTerminals {
		b.WriteString("TERM " + term + "\n")
	}
	b.WriteString("# Codes are those of the terminal, joined by semicolons: 01 is bold, 04 underlined, 30 to 37 are colors of the\n# text and 40 to 47 of what is behind it.\n")
	for _, w := range colorWords {
		if w[2] != "" {
			b.WriteString(w[0] + " " + w[2] + "\n")
		}
	}
	for _, g := range colorSuffixes {
		b.WriteString("# " + g[0] + "\n")
		for _, s := range strings.Fields(g[2]) {
			b.WriteString(s + " " + g[1] + "\n")
		}
	}
	return b.String()
}

// Dircolors writes shell code that sets LS_COLORS.
func Dircolors(t *tool.T) int {
	opts, files := t.Parse(&dircolorsSpec)
	syntax, printAll, printColors := rune(0), false, false
	for _, o := range opts {
		switch o.Key {
		case 'b', 'c':
			syntax = o.Key
		case 'p':
			printAll = true
		case keyPrintColors:
			printColors = true
		}
	}
	switch {
	case (printAll || printColors) && syntax != 0:
		t.UsageError(1, "the options to output non shell syntax,\nand to select a shell syntax are mutually exclusive")
	case printAll && printColors:
		t.UsageError(1, "options --print-database and --print-ls-colors are mutually exclusive")
	case printAll && len(files) > 0:
		t.UsageError(1, "extra operand %s\nfile operands cannot be combined with --print-database (-p)", tool.Quote(files[0]))
	case len(files) > 1:
		t.UsageError(1, "extra operand %s", tool.Quote(files[1]))
	case printAll:
		t.Out.WriteString(colorDatabase())
		return 0
	}
	if syntax == 0 && !printColors {
		shell := t.Getenv("SHELL")
		if shell == "" {
			t.Fatal(1, "no SHELL environment variable, and no shell type option given")
		}
		syntax = 'b'
		if base := path.Base(shell); base == "csh" || base == "tcsh" {
			syntax = 'c'
		}
	}
	d := &colorReader{t: t, term: t.Getenv("TERM"), colorTerm: t.Getenv("COLORTERM"), shown: printColors}
	if d.term == "" {
		d.term = "none"
	}
	text := colorDatabase()
	if len(files) == 1 {
		in, err := t.Open(files[0])
		if err != nil {
			t.Fatal(1, "%s: %s", tool.QuoteF(files[0]), tool.Strerror(err))
		}
		defer in.Close()
		d.name = files[0]
		l := tool.NewLines(in, '\n')
		for line, ok := l.Next(); ok; line, ok = l.Next() {
			d.line(string(line))
		}
		if l.Err != nil {
			t.Fatal(1, "%s: %s", tool.QuoteF(files[0]), tool.Strerror(l.Err))
		}
	} else {
		for _, line := range strings.Split(text, "\n") {
			d.line(line)
		}
	}
	switch {
	case d.failed:
		return 1
	case printColors:
		t.Out.WriteString(d.out.String())
	case syntax == 'b':
		fmt.Fprintf(t.Out, "LS_COLORS='%s';\nexport LS_COLORS\n", d.out.String())
	default:
		fmt.Fprintf(t.Out, "setenv LS_COLORS '%s'\n", d.out.String())
	}
	return 0
}

// colorReader turns the lines of a database into a value of LS_COLORS.
type colorReader struct {
	t                     *tool.T
	name, term, colorTerm string
	shown                 bool
	out                   strings.Builder
	n                     int
	restricted            byte // 0 before any TERM, n no match, s just matched, y matched
	failed                bool
}

func (d *colorReader) line(line string) {
	d.n++
	line = strings.TrimLeft(line, " \t\r\v\f")
	if line == "" || line[0] == '#' {
		return
	}
	key, arg := line, ""
	if i := strings.IndexAny(line, " \t\r\v\f"); i >= 0 {
		key, arg = line[:i], line[i:]
	}
	arg, _, _ = strings.Cut(arg, "#")
	if arg = strings.Trim(arg, " \t\r\v\f"); arg == "" {
		d.complain("invalid line;  missing second token", "")
		return
	}
	if term, is := map[string]string{"TERM": d.term, "COLORTERM": d.colorTerm}[strings.ToUpper(key)]; is {
		if d.restricted != 's' {
			if d.restricted = 'n'; tool.Glob(arg, term, 0) {
				d.restricted = 's'
			}
		}
		return
	}
	if d.restricted == 's' {
		d.restricted = 'y'
	}
	switch {
	case d.restricted == 'n':
	case key[0] == '.':
		d.entry("*"+key, arg)
	case key[0] == '*':
		d.entry(key, arg)
	default:
		d.word(key, arg)
	}
}

func (d *colorReader) word(key, arg string) {
	upper := strings.ToUpper(key)
	for _, w := range colorWords {
		if w[0] == upper {
			d.entry(w[1], arg)
			return
		}
	}
	if upper != "OPTIONS" && upper != "COLOR" && upper != "EIGHTBIT" && d.restricted != 0 {
		d.complain("unrecognized keyword ", key)
	}
}

func (d *colorReader) complain(what, key string) {
	name := "<internal>"
	if d.name != "" {
		name = tool.QuoteF(d.name)
	}
	d.t.Warn("%s:%d: %s%s", name, d.n, what, key)
	d.failed = true
}

// entry adds a key with its code, quoted for the shell.
func (d *colorReader) entry(key, code string) {
	if d.shown {
		fmt.Fprintf(&d.out, "\x1b[%sm%s\t%[1]s\x1b[0m\n", code, key)
		return
	}
	d.quoted(key)
	d.out.WriteByte('=')
	d.quoted(code)
	d.out.WriteByte(':')
}

func (d *colorReader) quoted(s string) {
	plain := true
	for _, c := range []byte(s) {
		switch {
		case c == '\'':
			d.out.WriteString(`'\'`)
			plain = true
		case c == '\\' || c == '^':
			plain = !plain
		case (c == ':' || c == '=') && plain:
			d.out.WriteByte('\\')
		default:
			plain = true
		}
		d.out.WriteByte(c)
	}
}
