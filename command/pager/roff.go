package pager

import (
	"fmt"
	"strings"

	"agentrun.dev/command/tool"
)

// roff turns the macros of man(7), and the usual ones of mdoc(7), into text.
type roff struct {
	t        *tool.T
	width    int
	out      strings.Builder
	line     []string // words of the line that is being filled
	used     int
	indent   int
	stack    []int // indents outside of .RS, and of lists
	hang     string
	hanging  bool // the next line of text is the tag of .TP
	nofill   bool
	blank    bool // an empty line is due
	title    string
	footer   string
	name     string // of .Nm
	strings  map[string]string
	warnings []string
}

func newRoff(t *tool.T, width int) *roff {
	return &roff{t: t, width: width, strings: map[string]string{"R": "®", "Tm": "™", "lq": "“", "rq": "”"}}
}

// format renders a page.
func (r *roff) format(page string) string {
	lines := strings.Split(strings.ReplaceAll(page, "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		if r.t.Step(1) != nil {
			r.t.Check()
		}
		l := lines[i]
		for strings.HasSuffix(l, "\\") && !strings.HasSuffix(l, "\\\\") && i+1 < len(lines) {
			i++
			l = l[:len(l)-1] + lines[i]
		}
		if l == "" || l[0] != '.' && l[0] != '\'' {
			r.text(l)
			continue
		}
		args := macroArgs(l[1:])
		if len(args) == 0 {
			continue
		}
		if args[0] == "de" || args[0] == "ig" || args[0] == "am" || args[0] == "de1" {
			i = r.definition(lines, i, args)
			continue
		}
		r.macro(args)
	}
	r.flush()
	if r.title != "" {
		r.out.WriteString("\n" + r.footer + "\n")
	}
	return r.out.String()
}

// definition skips a macro's definition, and returns its last line.
func (r *roff) definition(lines []string, i int, args []string) int {
	end := ".."
	if args[0] != "ig" && len(args) > 2 {
		end = "." + args[2]
	} else if args[0] == "ig" && len(args) > 1 {
		end = "." + args[1]
	}
	for j := i + 1; j < len(lines); j++ {
		if l := strings.TrimRight(lines[j], " "); l == end || strings.HasPrefix(l, end+" ") {
			return j
		}
	}
	if len(args) > 1 {
		r.warnings = append(r.warnings, fmt.Sprintf("%d: error: end of file while defining macro '%s'", i+1, args[1]))
	}
	return len(lines)
}

// macroArgs splits a request into its name and arguments, of which those in quotes may have blanks.
func macroArgs(s string) []string {
	if i := strings.Index(s, `\"`); i >= 0 {
		s = s[:i]
	}
	var out []string
	for s = strings.TrimLeft(s, " \t"); s != ""; s = strings.TrimLeft(s, " \t") {
		if s[0] != '"' {
			n := 0
			for n < len(s) && s[n] != ' ' && s[n] != '\t' {
				if s[n] == '\\' && n+1 < len(s) {
					n++
				}
				n++
			}
			n = min(n, len(s))
			out, s = append(out, s[:n]), s[n:]
			continue
		}
		var b strings.Builder
		i := 1
		for ; i < len(s); i++ {
			if s[i] == '"' {
				if i+1 < len(s) && s[i+1] == '"' {
					i++
				} else {
					break
				}
			}
			b.WriteByte(s[i])
		}
		out, s = append(out, b.String()), s[min(i+1, len(s)):]
	}
	return out
}

// glyphs are characters by their names of two letters.
var glyphs = map[string]string{"aq": "'", "dq": "\"", "cq": "’", "oq": "‘", "lq": "“", "rq": "”", "bu": "•", "em": "—", "en": "–", "hy": "-", "mi": "-", "pl": "+", "co": "©", "rg": "®", "tm": "™", "ti": "~", "ha": "^", "ga": "`", "rs": "\\", "at": "@", "sh": "#",
	"Do": "$", "ba": "|", "or": "|", "sl": "/", "lB": "[", "rB": "]", "lC": "{", "rC": "}", "la": "<", "ra": ">", "<=": "≤", ">=": "≥", "->": "→", "<-": "←", "mu": "×", "de": "°", "+-": "±", "14": "¼", "12": "½", "34": "¾", "Fo": "«", "Fc": "»", "ss": "ß", ":a": "ä", ":o": "ö", ":u": "ü", "'e": "é", "`e": "è", "ci": "○", "sq": "□", "dg": "†"}

// plain removes the escapes of a text.
func (r *roff) plain(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		named := func() string { // (xx, [name] or x
			switch {
			case i+1 < len(s) && s[i+1] == '(':
				n := s[min(i+2, len(s)):min(i+4, len(s))]
				i = min(i+3, len(s)-1)
				return n
			case i+1 < len(s) && s[i+1] == '[':
				end := strings.IndexByte(s[i:], ']')
				if end < 0 {
					end = len(s) - i - 1
				}
				n := s[i+2 : max(i+end, i+2)]
				i += end
				return n
			case i+1 < len(s):
				i++
				return s[i : i+1]
			}
			return ""
		}
		switch c := s[i]; c {
		case '-':
			b.WriteByte('-')
		case 'e', '\\':
			b.WriteByte('\\')
		case '&', '|', '^', '%', ':', ')', '/', ',', 'c', 'd', 'u', '{', '}':
		case ' ', '~', '0':
			b.WriteRune('\u00a0')
		case '\'', '`', '.', '"':
			if c == '"' {
				return b.String()
			}
			b.WriteByte(c)
		case 'f', 'F', 'm', 'M':
			named()
		case '*':
			b.WriteString(r.strings[named()])
		case 'n', 'k', 'g':
			named()
		case 's':
			if i+1 < len(s) && (s[i+1] == '+' || s[i+1] == '-') {
				i++
			}
			named()
		case '(', '[':
			i--
			if g, ok := glyphs[named()]; ok {
				b.WriteString(g)
			}
		case 'h', 'v', 'w', 'z', 'o', 'l', 'L', 'D', 'x', 'b', 'N', 'Z', 'X', 'A', 'B', 'C', 'R', 'S', 'H':
			if i+1 < len(s) {
				quote := s[i+1]
				if end := strings.IndexByte(s[min(i+2, len(s)):], quote); end >= 0 {
					i += 2 + end
				}
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// text adds a line of text.
func (r *roff) text(l string) {
	if strings.TrimSpace(l) == "" {
		r.flush()
		r.blank = true
		return
	}
	s := r.plain(l)
	if r.hanging {
		r.hanging = false
		r.tag(s)
		return
	}
	if r.nofill {
		r.flush()
		r.gap()
		r.out.WriteString(strings.Repeat(" ", r.indent) + strings.TrimRight(strings.ReplaceAll(s, "\u00a0", " "), " ") + "\n")
		return
	}
	if l[0] == ' ' {
		r.flush()
	}
	r.words(s)
}

// words fills lines.
func (r *roff) words(s string) {
	for _, w := range strings.FieldsFunc(s, func(c rune) bool { return c == ' ' || c == '\t' }) {
		n := tool.StringWidth(w)
		if r.used > 0 && r.indent+r.used+1+n > r.width {
			r.flush()
		}
		r.line = append(r.line, w)
		if r.used += n; len(r.line) > 1 {
			r.used++
		}
	}
}

// gap writes the empty line that is due.
func (r *roff) gap() {
	if r.blank && r.out.Len() > 0 {
		r.out.WriteByte('\n')
	}
	r.blank = false
}

// flush ends the line that is being filled.
func (r *roff) flush() {
	if len(r.line) == 0 && r.hang == "" {
		return
	}
	r.gap()
	lead := strings.Repeat(" ", r.indent)
	if r.hang != "" {
		if pad := r.indent - tool.StringWidth(r.hang); pad > 0 && len(r.line) > 0 {
			lead = r.hang + strings.Repeat(" ", pad)
		} else {
			r.out.WriteString(r.hang + "\n")
		}
		r.hang = ""
		if len(r.line) == 0 {
			return
		}
	}
	r.out.WriteString(lead + strings.ReplaceAll(strings.Join(r.line, " "), "\u00a0", " ") + "\n")
	r.line, r.used = r.line[:0], 0
}

// tag begins a paragraph that hangs below a tag.
func (r *roff) tag(s string) {
	r.flush()
	r.hang = strings.Repeat(" ", max(r.indent-7, 0)) + strings.ReplaceAll(s, "\u00a0", " ")
	if tool.StringWidth(r.hang) >= r.indent {
		r.gap()
		r.out.WriteString(r.hang + "\n")
		r.hang = ""
	}
}

const (
	bodyIndent = 7
	maxIndents = 1000
)

// base is the indent of paragraphs.
func (r *roff) base() int {
	if len(r.stack) > 0 {
		return r.stack[len(r.stack)-1]
	}
	return bodyIndent
}

func (r *roff) section(s string, indent int) {
	r.flush()
	r.blank, r.stack = true, nil
	r.gap()
	r.out.WriteString(strings.Repeat(" ", indent) + r.plain(s) + "\n")
	r.indent = bodyIndent
}

func (r *roff) paragraph() {
	r.flush()
	r.blank = true
	r.indent = r.base()
}

// heading is a line with something at both ends and in the middle.
func (r *roff) heading(left, middle, right string) string {
	n := r.width - tool.StringWidth(left) - tool.StringWidth(right) - tool.StringWidth(middle)
	return left + strings.Repeat(" ", max(n/2, 1)) + middle + strings.Repeat(" ", max(n-n/2, 1)) + right
}

func (r *roff) macro(args []string) {
	name, args := args[0], args[1:]
	arg := func(i int) string {
		if i < len(args) {
			return r.plain(args[i])
		}
		return ""
	}
	rest := func() string { return r.plain(strings.Join(args, " ")) }
	switch name {
	case "TH", "Dt":
		r.title = strings.ToUpper(arg(0)) + "(" + arg(1) + ")"
		middle := arg(4)
		if middle == "" && strings.HasPrefix(arg(1), "1") {
			middle = "General Commands Manual"
		}
		r.out.WriteString(r.heading(r.title, middle, r.title) + "\n")
		if name == "TH" {
			r.footer = r.heading(arg(3), arg(2), r.title)
		} else if r.footer == "" {
			r.footer = r.title
		}
		r.indent = bodyIndent
	case "Dd":
		r.footer = rest()
	case "SH", "Sh":
		r.section(strings.Join(args, " "), 0)
	case "SS", "Ss":
		r.section(strings.Join(args, " "), 3)
	case "PP", "P", "LP", "Pp":
		r.paragraph()
	case "TP":
		r.paragraph()
		r.indent += 7
		r.hanging = true
	case "TQ":
		r.flush()
		r.hanging = true
	case "IP":
		r.paragraph()
		if r.indent += 7; arg(0) != "" {
			r.tag(arg(0))
		}
	case "RS", "Bl":
		r.flush()
		if len(r.stack) < maxIndents {
			r.stack = append(r.stack, min(r.base()+7, r.width/2))
		}
		r.indent = r.base()
	case "RE", "El":
		r.flush()
		if len(r.stack) > 0 {
			r.stack = r.stack[:len(r.stack)-1]
		}
		r.indent = r.base()
	case "It":
		r.flush()
		r.blank = true
		r.indent = r.base()
		r.tag(r.inline(args))
	case "br", "Sm", "ne":
		r.flush()
	case "sp":
		r.flush()
		r.blank = true
	case "nf", "EX", "Bd":
		r.flush()
		r.nofill = true
	case "fi", "EE", "Ed":
		r.flush()
		r.nofill = false
	case "B", "I", "SM", "SB", "R":
		r.styled(rest())
	case "BR", "IR", "RB", "RI", "BI", "IB":
		r.styled(r.plain(strings.Join(args, "")))
	case "UR", "MT", "ME", "UE":
		if len(args) > 0 {
			r.styled(rest())
		}
	case "ds":
		if len(args) > 0 {
			r.strings[args[0]] = r.plain(strings.Join(args[1:], " "))
		}
	case "Nm":
		if len(args) > 0 && r.name == "" {
			r.name = arg(0)
		} else if len(args) == 0 {
			args = []string{r.name}
		}
		r.styled(r.inline(args))
	case "Nd":
		r.styled("— " + rest())
	case "Fl", "Op", "Ar", "Cm", "Pa", "Xr", "Em", "Sy", "Ql", "Dq", "Sq", "Li", "Ev", "Va", "Ic", "Ns", "Oo", "Oc", "No", "Dv", "Tn", "Aq", "Pq", "Bq", "An", "Fn", "Ft", "In", "Lk", "Mt":
		r.styled(r.inline(append([]string{name}, args...)))
	}
}

// styled adds text that a macro marks.
func (r *roff) styled(s string) {
	if s != "" {
		r.text(strings.ReplaceAll(s, "\\", "\\e"))
	}
}

// inline renders the macros of mdoc that stand in a line.
func (r *roff) inline(args []string) string {
	var out []string
	join := false
	add := func(s string) {
		if join && len(out) > 0 {
			out[len(out)-1] += s
		} else {
			out = append(out, s)
		}
		join = false
	}
	for i := 0; i < len(args); i++ {
		wrap := func(open, end string) {
			add(open + r.inline(args[i+1:]) + end)
			i = len(args)
		}
		switch a := args[i]; a {
		case "Fl":
			if i+1 < len(args) && len(args[i+1]) != 2 || i+1 < len(args) && args[i+1] != "Ar" {
				i++
				add("-" + r.plain(args[i]))
			} else {
				add("-")
			}
		case "Op", "Oo":
			wrap("[", "]")
		case "Dq":
			wrap("“", "”")
		case "Sq", "Ql":
			wrap("‘", "’")
		case "Aq":
			wrap("<", ">")
		case "Pq":
			wrap("(", ")")
		case "Bq":
			wrap("[", "]")
		case "Xr":
			if i+2 < len(args) {
				add(r.plain(args[i+1]) + "(" + r.plain(args[i+2]) + ")")
				i += 2
			}
		case "Ns":
			join = true
		case "Ar":
			if i+1 == len(args) {
				add("file ...")
			}
		case "Cm", "Pa", "Em", "Sy", "Li", "Ev", "Va", "Ic", "No", "Dv", "Tn", "An", "Fn", "Ft", "In", "Lk", "Mt", "Oc":
		case "Nm":
			if i+1 == len(args) {
				add(r.name)
			}
		case ".", ",", ":", ";", ")", "]", "?", "!":
			join = true
			add(a)
		default:
			add(r.plain(a))
		}
	}
	return strings.Join(out, " ")
}
