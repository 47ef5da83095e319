package coreutils

import (
	"fmt"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/posixre"
	"agentrun.dev/command/tool"
)

var nlSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]..."},
	About: "Write each FILE to standard output, with line numbers added.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'b', Long: "body-numbering", Arg: getopt.Required, Name: "STYLE", Help: "use STYLE for numbering body lines: a all, t nonempty, n none, pBRE matching"},
		{Short: 'd', Long: "section-delimiter", Arg: getopt.Required, Name: "CC", Help: "use CC for logical page delimiters"},
		{Short: 'f', Long: "footer-numbering", Arg: getopt.Required, Name: "STYLE", Help: "use STYLE for numbering footer lines"},
		{Short: 'h', Long: "header-numbering", Arg: getopt.Required, Name: "STYLE", Help: "use STYLE for numbering header lines"},
		{Short: 'i', Long: "line-increment", Arg: getopt.Required, Name: "NUMBER", Help: "line number increment at each line"},
		{Short: 'l', Long: "join-blank-lines", Arg: getopt.Required, Name: "NUMBER", Help: "group of NUMBER empty lines counted as one"},
		{Short: 'n', Long: "number-format", Arg: getopt.Required, Name: "FORMAT", Help: "insert line numbers according to FORMAT: ln, rn, rz"},
		{Short: 'p', Long: "no-renumber", Help: "do not reset line numbers for each section"},
		{Short: 's', Long: "number-separator", Arg: getopt.Required, Name: "STRING", Help: "add STRING after (possible) line number"},
		{Short: 'v', Long: "starting-line-number", Arg: getopt.Required, Name: "NUMBER", Help: "first line number for each section"},
		{Short: 'w', Long: "number-width", Arg: getopt.Required, Name: "NUMBER", Help: "use NUMBER columns for line numbers"},
	},
	Package: tool.Coreutils,
}

// nlStyle says which lines get a number.
type nlStyle struct {
	kind byte
	re   *posixre.Regexp
}

// Nl numbers lines.
func Nl(t *tool.T) int {
	opts, files := t.Parse(&nlSpec)
	styles := map[string]nlStyle{"header": {kind: 'n'}, "body": {kind: 't'}, "footer": {kind: 'n'}}
	delim, format, sep := `\:`, "rn", "\t"
	start, step, width, join, renumber := int64(1), int64(1), 6, int64(1), true
	number := func(o getopt.Opt, what string, least int64) int64 {
		n, err := strconv.ParseInt(o.Arg, 10, 64)
		if err != nil {
			t.Fatal(1, "invalid %s: %s", what, tool.Quote(o.Arg))
		}
		if n < least {
			t.Fatal(1, "invalid %s: %s: Numerical result out of range", what, tool.Quote(o.Arg))
		}
		return n
	}
	for _, o := range opts {
		switch o.Key {
		case 'b':
			styles["body"] = parseNlStyle(t, o.Arg, "body")
		case 'h':
			styles["header"] = parseNlStyle(t, o.Arg, "header")
		case 'f':
			styles["footer"] = parseNlStyle(t, o.Arg, "footer")
		case 'd':
			if delim = o.Arg; len(delim) == 1 {
				delim += ":"
			}
		case 'i':
			step = number(o, "line number increment", -1<<62)
		case 'l':
			join = number(o, "line number of blank lines", 1)
		case 'n':
			if format = o.Arg; format != "ln" && format != "rn" && format != "rz" {
				t.UsageError(1, "invalid line numbering format: %s", tool.Quote(format))
			}
		case 'p':
			renumber = false
		case 's':
			sep = o.Arg
		case 'v':
			start = number(o, "starting line number", -1<<62)
		case 'w':
			width = int(min(number(o, "line number field width", 1), 1<<16))
		}
	}
	section, n, blanks := "body", start, int64(0)
	return t.Inputs(files, func(in *tool.Input) error {
		l := tool.NewLines(in, '\n')
		for {
			b, ok := l.Next()
			if !ok {
				return l.Err
			}
			line := string(b)
			if delim != "" && strings.HasPrefix(line, delim) {
				next := map[string]string{strings.Repeat(delim, 3): "header", strings.Repeat(delim, 2): "body", delim: "footer"}[line]
				if next != "" {
					if section = next; renumber {
						n = start
					}
					t.Out.WriteByte('\n')
					continue
				}
			}
			if !nlNumbers(t, styles[section], line, join, &blanks) {
				t.Out.WriteString(strings.Repeat(" ", width+len(sep)) + line + "\n")
				continue
			}
			switch format {
			case "ln":
				fmt.Fprintf(t.Out, "%-*d", width, n)
			case "rz":
				fmt.Fprintf(t.Out, "%0*d", width, n)
			default:
				fmt.Fprintf(t.Out, "%*d", width, n)
			}
			t.Out.WriteString(sep + line + "\n")
			n += step
		}
	})
}

func parseNlStyle(t *tool.T, s, section string) nlStyle {
	switch {
	case s == "a" || s == "t" || s == "n":
		return nlStyle{kind: s[0]}
	case strings.HasPrefix(s, "p"):
		re, err := posixre.Compile(s[1:], posixre.Options{})
		if err != nil {
			t.Fatal(1, "%s", err)
		}
		return nlStyle{'p', re}
	}
	t.UsageError(1, "invalid %s numbering style: %s", section, tool.Quote(s))
	return nlStyle{}
}

// nlNumbers reports whether a line gets a number; with -l only every so many empty lines do.
func nlNumbers(t *tool.T, style nlStyle, line string, join int64, blanks *int64) bool {
	switch style.kind {
	case 'a':
		if join > 1 && line == "" {
			if *blanks++; *blanks < join {
				return false
			}
		}
		*blanks = 0
		return true
	case 't':
		return line != ""
	case 'p':
		ok, err := style.re.Match([]byte(line))
		if err != nil {
			t.Fatal(1, "%s", err)
		}
		return ok
	}
	return false
}
