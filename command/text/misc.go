package text

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

// Colrm removes columns of text.
func Colrm(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[startcol [endcol]]"}, About: "\nFilter out the specified columns.", Package: utilLinux}
	_, args := t.Parse(&spec)
	number := func(i int) int {
		if i >= len(args) {
			return 0
		}
		n, err := strconv.ParseUint(args[i], 10, 31)
		if err != nil {
			t.Fatal(1, "%s argument: '%s'", [2]string{"first", "second"}[i], args[i])
		}
		return int(n)
	}
	first, last := number(0), number(1)
	l := tool.NewLines(t.Stdin(), '\n')
	for line, ok := l.Next(); ok; line, ok = l.Next() {
		col := 0
		for len(line) > 0 {
			r, n := decode(line)
			switch r {
			case '\t':
				from := col
				if col = (col + 8) &^ 7; first > 0 && col >= first && (last == 0 || from < last) {
					for at := from + 1; at <= col; at++ { // what is left of it are blanks
						if at < first || last > 0 && at > last {
							t.Out.WriteByte(' ')
						}
					}
					line = line[n:]
					continue
				}
			case '\b':
				col = max(col-1, 0)
			default:
				col += max(tool.RuneWidth(r), 0)
			}
			if first == 0 || col < first || last > 0 && col > last {
				t.Out.Write(line[:n])
			}
			line = line[n:]
		}
		if l.Terminated {
			t.Out.WriteByte('\n')
		}
	}
	return 0
}

func decode(b []byte) (rune, int) {
	r := []rune(string(b[:min(4, len(b))]))
	if r[0] == 0xfffd {
		return r[0], 1
	}
	return r[0], len(string(r[0]))
}

// Look shows the lines of a sorted file that begin with a string.
func Look(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[options] <string> [<file>...]"}, About: "\nDisplay lines beginning with a specified string.", Package: utilLinux, Options: []getopt.Option{
		{Short: 'a', Long: "alternative", Help: "use the alternative dictionary"}, {Short: 'd', Long: "alphanum", Help: "compare only blanks and alphanumeric characters"}, {Short: 'f', Long: "ignore-case", Help: "ignore case differences when comparing"},
		{Short: 't', Long: "terminate", Arg: getopt.Required, Name: "char", Help: "define the string-termination character"}}}
	opts, args := t.Parse(&spec)
	alnum, fold, stop := false, false, ""
	for _, o := range opts {
		switch o.Key {
		case 'd':
			alnum = true
		case 'f':
			fold = true
		case 't':
			stop = o.Arg
		}
	}
	file := "/usr/share/dict/words"
	switch len(args) {
	case 1:
		alnum, fold = true, true
		if w := t.Getenv("WORDLIST"); w != "" {
			file = w
		}
	case 2:
		file = args[1]
	default:
		t.Warn("bad usage")
		t.Try(1)
	}
	key := func(s string, upTo bool) string {
		if i := strings.Index(s, stop); upTo && stop != "" && i >= 0 {
			s = s[:i+1]
		}
		if alnum {
			s = strings.Map(func(r rune) rune {
				if r == ' ' || r == '\t' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' {
					return r
				}
				return -1
			}, s)
		}
		if fold {
			s = strings.ToLower(s)
		}
		return s
	}
	in, err := t.OpenFile(file)
	if err != nil {
		t.Fatal(1, "%s: %s", file, tool.Strerror(err))
	}
	defer in.Close()
	want, status := key(args[0], true), 1
	l := tool.NewLines(in, '\n')
	for line, ok := l.Next(); ok; line, ok = l.Next() {
		if strings.HasPrefix(key(string(line), false), want) {
			fmt.Fprintf(t.Out, "%s\n", line)
			status = 0
		}
	}
	return status
}

// Rename replaces a part of file names, as util-linux does; perl's rename with its expressions is another program.
func Rename(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[options] <expression> <replacement> <file>..."}, About: "\nRename files.", Package: utilLinux, Order: getopt.POSIX, Options: []getopt.Option{
		{Short: 'v', Long: "verbose", Help: "explain what is being done"}, {Short: 's', Long: "symlink", Help: "act on the target of symlinks"}, {Short: 'n', Long: "no-act", Help: "do not make any changes"}, {Short: 'a', Long: "all", Help: "replace all occurrences"},
		{Short: 'l', Long: "last", Help: "replace only the last occurrence"}, {Short: 'o', Long: "no-overwrite", Help: "don't overwrite existing files"}, {Short: 'i', Long: "interactive", Help: "prompt before overwrite"}}}
	opts, args := t.Parse(&spec)
	on := map[rune]bool{}
	for _, o := range opts {
		on[o.Key] = true
	}
	if len(args) > 0 && strings.HasPrefix(args[0], "s/") && len(args) != 2 && strings.Count(args[0], "/") >= 3 {
		t.Fatal(1, "%s: this is util-linux's rename (rename FROM TO FILE...), not perl's", args[0])
	}
	if len(args) < 3 {
		t.Warn("not enough arguments")
		t.Try(1)
	}
	from, to := args[0], args[1]
	swap := func(s string) (string, bool) {
		switch {
		case !strings.Contains(s, from):
			return s, false
		case on['a'] && from != "":
			return strings.ReplaceAll(s, from, to), true
		case on['l']:
			i := strings.LastIndex(s, from)
			return s[:i] + to + s[i+len(from):], true
		}
		return strings.Replace(s, from, to, 1), true
	}
	done, failed := 0, 0
	for _, name := range args[2:] {
		subject := name
		if on['s'] {
			target, err := t.Readlink(name)
			if err != nil {
				t.Warn("%s: not a symbolic link", name)
				failed++
				continue
			}
			subject = target
		}
		dir, base := "", subject
		if i := strings.LastIndexByte(subject, '/'); i >= 0 && !strings.Contains(from+to, "/") {
			dir, base = subject[:i+1], subject[i+1:]
		}
		renamed, changed := swap(base)
		if renamed = dir + renamed; !changed || renamed == subject {
			continue
		}
		if on['v'] {
			fmt.Fprintf(t.Out, "%s\n", map[bool]string{true: fmt.Sprintf("%s: `%s' -> `%s'", name, subject, renamed), false: fmt.Sprintf("`%s' -> `%s'", name, renamed)}[on['s']])
		}
		if _, err := t.Lstat(renamed); err == nil && on['o'] && !on['s'] {
			if on['v'] {
				fmt.Fprintf(t.Out, "Skipping existing file: `%s'\n", renamed)
			}
			continue
		}
		var err error
		switch {
		case on['n']:
		case on['s']:
			if err = t.Unlink(name); err == nil {
				err = t.Symlink(renamed, name)
			}
		default:
			err = t.Process.Rename(name, renamed, 0)
		}
		if err != nil {
			t.Warn("%s: rename to %s failed: %s", name, renamed, tool.Strerror(err))
			failed++
			continue
		}
		done++
	}
	switch {
	case failed > 0 && done > 0:
		return 2
	case failed > 0:
		return 1
	case done == 0:
		return 4
	}
	return 0
}

// Dos2unix turns CR LF into LF, in place; Unix2dos the other way round.
func Dos2unix(t *tool.T) int { return convertLines(t, "dos2unix", false) }

// Unix2dos turns LF into CR LF, in place.
func Unix2dos(t *tool.T) int { return convertLines(t, "unix2dos", true) }

func convertLines(t *tool.T, name string, toDOS bool) int {
	const keyVersion = tool.KeyOwn
	spec := tool.Spec{Usage: []string{"[options] [file ...] [-n infile outfile ...]"}, About: "Convert the ends of lines.", Package: "dos2unix) 7.4.3", Order: getopt.InOrder, Options: []getopt.Option{
		{Short: 'k', Long: "keepdate", Help: "keep output file date"}, {Short: 'q', Long: "quiet", Help: "quiet mode, suppress all warnings"}, {Short: 'n', Long: "newfile", Help: "write to new file"}, {Short: 'o', Long: "oldfile", Help: "write to old file (default)"},
		{Short: 'f', Long: "force", Help: "force conversion of binary files"}, {Short: 's', Long: "safe", Help: "skip binary files (default)"}, {Short: 'b', Long: "keep-bom", Help: "keep Byte Order Mark"}, {Short: 'r', Long: "remove-bom", Help: "remove Byte Order Mark"}, {Short: 'm', Long: "add-bom", Help: "add Byte Order Mark (default UTF-8)"},
		{Short: 'l', Long: "newline", Help: "add additional newline"}, {Short: 'i', Long: "info", Arg: getopt.Optional, Name: "FLAGS", Help: "display file information"}, {Short: 'O', Long: "to-stdout", Help: "write to standard output"}, {Short: 'c', Long: "convmode", Arg: getopt.Required, Name: "MODE", Help: "conversion mode: ascii or mac"},
		{Short: 'v', Long: "verbose", Help: "verbose operation"}, {Short: 'V', Key: keyVersion}, {Long: "allow-chown", Key: 'A'}, {Long: "follow-symlink", Short: 'F'}, {Long: "replace-symlink", Short: 'R'}, {Long: "skip-symlink", Short: 'S'}}}
	opts, _ := t.Parse(&spec)
	c := lineConverter{t: t, toDOS: toDOS}
	var pending string
	have := false
	files := 0
	for _, o := range opts {
		switch o.Key {
		case getopt.Operand:
			files++
			switch {
			case !c.newFile:
				c.file(o.Arg, o.Arg)
			case have:
				c.file(pending, o.Arg)
				have = false
			default:
				pending, have = o.Arg, true
			}
		case 'n':
			c.newFile = true
		case 'o':
			c.newFile = false
		case keyVersion:
			fmt.Fprintf(t.Out, "%s 7.4.3 (2022-06-05)\n", name)
			return 0
		case 'c':
			c.mac = strings.EqualFold(o.Arg, "mac")
		case 'i':
			c.info = true
		default:
			c.option(o.Key)
		}
	}
	if have {
		t.Warn("target of file %s not specified in new-file mode", pending)
		return 1
	}
	if files == 0 {
		text, err := io.ReadAll(io.LimitReader(t.Stdin(), maxText))
		if err != nil {
			t.Fatal(1, "%s", tool.Strerror(err))
		}
		out, _ := c.convert(text)
		t.Out.Write(out)
	}
	return c.status
}

// lineConverter is a running dos2unix or unix2dos.
type lineConverter struct {
	t                                *tool.T
	toDOS, mac, newFile, keep, quiet bool
	force, double, stdout, info      bool
	keepBOM, removeBOM, addBOM       bool
	status                           int
}

func (c *lineConverter) option(key rune) {
	switch key {
	case 'k':
		c.keep = true
	case 'q':
		c.quiet = true
	case 'f':
		c.force = true
	case 'l':
		c.double = true
	case 'O':
		c.stdout = true
	case 'b':
		c.keepBOM = true
	case 'r':
		c.removeBOM = true
	case 'm':
		c.addBOM = true
	}
}

var bom = []byte("\xef\xbb\xbf")

// convert changes the ends of lines; ok is false for what isn't text.
func (c *lineConverter) convert(text []byte) (out []byte, ok bool) {
	ok = true
	had := bytes.HasPrefix(text, bom)
	body := bytes.TrimPrefix(text, bom)
	for _, b := range body {
		if b < 32 && b != '\n' && b != '\r' && b != '\t' && b != '\f' {
			ok = false
		}
	}
	if c.addBOM || had && !c.removeBOM && (c.keepBOM || c.toDOS) {
		out = append(out, bom...)
	}
	for i := 0; i < len(body); i++ {
		b := body[i]
		next := byte(0)
		if i+1 < len(body) {
			next = body[i+1]
		}
		end := ""
		switch {
		case c.mac && !c.toDOS && b == '\r' && next != '\n':
			end = "\n"
		case c.mac && c.toDOS && b == '\n' && (i == 0 || body[i-1] != '\r'):
			end = "\r"
		case c.mac:
		case !c.toDOS && b == '\r' && next == '\n':
			i, end = i+1, "\n"
		case c.toDOS && b == '\n' && (i == 0 || body[i-1] != '\r'):
			end = "\r\n"
		}
		if end == "" {
			out = append(out, b)
			continue
		}
		if out = append(out, end...); c.double {
			out = append(out, end...)
		}
	}
	return out, ok
}

func (c *lineConverter) say(format string, args ...any) {
	if !c.quiet {
		c.t.Warn(format, args...)
	}
}

func (c *lineConverter) file(from, to string) {
	t := c.t
	at, err := t.Stat(from)
	if err == nil && !at.Mode.IsRegular() {
		c.say("Skipping %s, not a regular file.", from)
		return
	}
	var text []byte
	if err == nil {
		text, err = t.ReadFile(from, maxText)
	}
	if err != nil {
		c.say("%s: %s", from, tool.Strerror(err))
		c.say("Skipping %s, not a regular file.", from)
		c.status = 2
		return
	}
	if c.info {
		c.showInfo(from, text)
		return
	}
	out, ok := c.convert(text)
	if !ok && !c.force {
		c.say("Skipping binary file %s", from)
		return
	}
	if c.stdout {
		t.Out.Write(out)
		return
	}
	kind := "Unix"
	if c.toDOS {
		kind = "DOS"
	}
	if c.mac {
		kind = map[bool]string{true: "Mac", false: "Unix"}[c.toDOS]
	}
	if from == to {
		c.say("converting file %s to %s format...", from, kind)
	} else {
		c.say("converting file %s to file %s in %s format...", from, to, kind)
	}
	f, err := t.Process.Open(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, at.Mode&0o777)
	if err == nil {
		if _, err = f.Write(out); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		t.Warn("%s: %s", to, tool.Strerror(err))
		c.status = 1
		return
	}
	if c.keep {
		c.touch(to, at.Atime, at.Mtime)
	}
}

func (c *lineConverter) showInfo(name string, text []byte) {
	dos := bytes.Count(text, []byte("\r\n"))
	unix, mac := bytes.Count(text, []byte("\n"))-dos, bytes.Count(text, []byte("\r"))-dos
	mark, kind := "no_bom", "text"
	if bytes.HasPrefix(text, bom) {
		mark = "UTF-8"
	}
	if _, ok := c.convert(text); !ok {
		kind = "binary"
	}
	fmt.Fprintf(c.t.Out, "%8d%8d%8d  %-8s  %-7s %s\n", dos, unix, mac, mark, kind, name)
}

// Asa prints a file whose first column are FORTRAN's carriage controls.
func Asa(t *tool.T) int {
	first := true
	_, files := t.Parse(&tool.Spec{Usage: []string{"[file...]"}, About: "Interpret carriage-control characters.", Package: tool.Own})
	status := t.Inputs(files, func(in *tool.Input) error {
		l := tool.NewLines(in, '\n')
		for line, ok := l.Next(); ok; line, ok = l.Next() {
			control := byte(' ')
			if len(line) > 0 {
				control, line = line[0], line[1:]
			}
			switch {
			case control == '+' && !first:
				t.Out.WriteByte('\r')
			case control == '1':
				if !first {
					t.Out.WriteByte('\n')
				}
				t.Out.WriteByte('\f')
			case control == '0':
				if !first {
					t.Out.WriteByte('\n')
				}
				t.Out.WriteByte('\n')
			case !first:
				t.Out.WriteByte('\n')
			}
			t.Out.Write(line)
			first = false
		}
		return l.Err
	})
	if !first {
		t.Out.WriteByte('\n')
	}
	return status
}

// Uuencode writes a file as text that mail can carry.
func Uuencode(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[-m] [file] name"}, About: "Encode a binary file.", Package: "GNU sharutils) 4.15.2", Options: []getopt.Option{{Short: 'm', Long: "base64", Help: "convert using base64"}}}
	opts, args := t.Parse(&spec)
	if len(args) < 1 || len(args) > 2 {
		t.Fatal(1, "%s", "usage: uuencode [-m] [file] name")
	}
	name, mode := args[len(args)-1], "644"
	text, err := []byte(nil), error(nil)
	if len(args) == 2 {
		if at, serr := t.Stat(args[0]); serr == nil {
			mode = strconv.FormatUint(uint64(at.Mode&0o777), 8)
		}
		text, err = t.ReadFile(args[0], maxText)
	} else {
		text, err = io.ReadAll(io.LimitReader(t.Stdin(), maxText))
	}
	if err != nil {
		t.Fatal(1, "fopen-ing %s: %s", args[0], tool.Strerror(err))
	}
	if len(opts) > 0 {
		fmt.Fprintf(t.Out, "begin-base64 %s %s\n", mode, name)
		for len(text) > 0 {
			n := min(45, len(text))
			fmt.Fprintln(t.Out, base64Text(text[:n]))
			text = text[n:]
		}
		t.Out.WriteString("====\n")
		return 0
	}
	fmt.Fprintf(t.Out, "begin %s %s\n", mode, name)
	letter := func(b byte) byte {
		if b &= 0x3f; b == 0 {
			return '`'
		}
		return b + 32
	}
	for len(text) > 0 {
		n := min(45, len(text))
		t.Out.WriteByte(letter(byte(n)))
		for i := 0; i < n; i += 3 {
			var g [3]byte
			copy(g[:], text[i:n])
			t.Out.Write([]byte{letter(g[0] >> 2), letter(g[0]<<4 | g[1]>>4), letter(g[1]<<2 | g[2]>>6), letter(g[2])})
		}
		t.Out.WriteByte('\n')
		text = text[n:]
	}
	t.Out.WriteString("`\nend\n")
	return 0
}

// Uudecode takes back what uuencode did.
func Uudecode(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[-o outfile] [file]..."}, About: "Decode a file that uuencode made.", Package: "GNU sharutils) 4.15.2", Options: []getopt.Option{
		{Short: 'o', Long: "output-file", Arg: getopt.Required, Name: "FILE", Help: "direct output to FILE"}, {Short: 'c', Long: "ignore-chmod", Help: "ignore fchmod(3P) errors"}}}
	opts, files := t.Parse(&spec)
	out := ""
	for _, o := range opts {
		if o.Key == 'o' {
			out = o.Arg
		}
	}
	status := 0
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, name := range files {
		text, err := t.ReadFile(name, maxText)
		if err == nil {
			err = uudecode(t, string(text), out)
		}
		if err != nil {
			shown := name
			if name == "-" {
				shown = "standard input"
			}
			t.Warn("%s: %s", shown, tool.Strerror(err))
			status = 1
		}
	}
	return status
}

func uudecode(t *tool.T, text, out string) error {
	lines := strings.Split(text, "\n")
	for len(lines) > 0 && !strings.HasPrefix(lines[0], "begin ") && !strings.HasPrefix(lines[0], "begin-base64 ") {
		lines = lines[1:]
	}
	if len(lines) == 0 {
		return fmt.Errorf("No 'begin' line")
	}
	head := strings.SplitN(lines[0], " ", 3)
	mode, err := strconv.ParseUint(head[1], 8, 12)
	if len(head) < 3 || err != nil {
		return fmt.Errorf("No 'begin' line")
	}
	var data []byte
	ended := false
	for _, l := range lines[1:] {
		if head[0] == "begin-base64" {
			if strings.HasPrefix(l, "====") {
				ended = true
				break
			}
			b, err := base64Bytes(l)
			if err != nil {
				return fmt.Errorf("illegal line")
			}
			data = append(data, b...)
			continue
		}
		if l == "end" {
			ended = true
			break
		}
		if l == "" || l == "`" || l == " " {
			continue
		}
		n := int(l[0]-32) & 0x3f
		var line []byte
		for i := 1; i+3 < len(l)+4 && len(line) < n; i += 4 {
			var g [4]byte
			for k := range g {
				if i+k < len(l) {
					g[k] = (l[i+k] - 32) & 0x3f
				}
			}
			line = append(line, g[0]<<2|g[1]>>4, g[1]<<4|g[2]>>2, g[2]<<6|g[3])
		}
		data = append(data, line[:min(n, len(line))]...)
	}
	if !ended {
		return fmt.Errorf("No 'end' line")
	}
	if out == "" {
		out = path.Clean(head[2])
	}
	if out == "-" || out == "/dev/stdout" {
		t.Out.Write(data)
		return nil
	}
	f, err := t.Process.Open(out, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = f.Write(data); err != nil {
		return err
	}
	return chmod(f, uint32(mode))
}

// Cal prints a calendar, as BSD's and util-linux's do.
func Cal(t *tool.T) int { return calendar(t, t.Now().In(t.Location())) }

func weekday(year, month, day int) int { // 0 is Sunday
	return int(time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Weekday())
}
