package shell

import (
	"strconv"
	"strings"
)

// expandPrompt expands parameters and commands in a prompt.
func (sh *Shell) expandPrompt(s string) string {
	if !strings.ContainsAny(s, "$`\\") || !sh.shopts.get("promptvars") {
		return s
	}
	w := sh.textWord(s, modeHeredoc)
	if w == nil {
		return s
	}
	st := sh.status
	out := sh.heredoc(w)
	sh.status = st
	return out
}

// trimmedDir shortens a path to its last PROMPT_DIRTRIM names.
func (sh *Shell) trimmedDir(d string) string {
	n, err := strconv.Atoi(sh.str("PROMPT_DIRTRIM"))
	if err != nil || n <= 0 {
		return d
	}
	head, rest := "", d
	if strings.HasPrefix(d, "~") {
		i := strings.IndexByte(d, '/')
		if i < 0 {
			return d
		}
		head, rest = d[:i], d[i:]
	}
	names := strings.Split(strings.TrimPrefix(rest, "/"), "/")
	if len(names) <= n {
		return d
	}
	if head != "" {
		head += "/"
	}
	return head + ".../" + strings.Join(names[len(names)-n:], "/")
}

// plainPrompt takes the marks of what takes no room out.
func plainPrompt(s string) string { return strings.NewReplacer("\x01", "", "\x02", "").Replace(s) }

// prompt decodes the escapes of a prompt, then expands parameters and commands in it if promptvars says so.
func (sh *Shell) prompt(s string) string {
	if strings.IndexByte(s, '\\') >= 0 {
		s = sh.decodePrompt(s)
	}
	return sh.expandPrompt(s)
}

// quotePrompt keeps what an escape stands for from being expanded.
func (sh *Shell) quotePrompt(s string) string {
	if !sh.shopts.get("promptvars") {
		return s
	}
	return promptQuoter.Replace(s)
}

var promptQuoter = strings.NewReplacer("\\", `\\`, "$", `\$`, "`", "\\`")

// decodePrompt decodes the escapes of PS1. What takes no room stands between \x01 and \x02.
func (sh *Shell) decodePrompt(s string) string {
	var b strings.Builder
	now := sh.p.Sandbox().Now().In(sh.location())
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'u':
			if u := sh.str("USER"); u != "" {
				b.WriteString(sh.quotePrompt(u))
			} else {
				b.WriteString("user")
			}
		case 'h', 'H':
			h := sh.quotePrompt(sh.p.Sandbox().Hostname())
			if s[i] == 'h' {
				h, _, _ = strings.Cut(h, ".")
			}
			b.WriteString(h)
		case 'w':
			b.WriteString(sh.quotePrompt(sh.trimmedDir(sh.tilded(sh.str("PWD")))))
		case 'W':
			d := sh.str("PWD")
			if t := sh.tilded(d); t == "~" {
				d = t
			}
			if d != "/" {
				d = d[strings.LastIndexByte(d, '/')+1:]
			}
			b.WriteString(sh.quotePrompt(d))
		case '$':
			if sh.p.Cred().UID == 0 {
				b.WriteByte('#')
			} else {
				b.WriteString(sh.quotePrompt("$"))
			}
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'a':
			b.WriteByte(7)
		case 'e':
			b.WriteByte(27)
		case '[':
			b.WriteByte(1)
		case ']':
			b.WriteByte(2)
		case '\\':
			b.WriteString(sh.quotePrompt("\\"))
		case 's':
			b.WriteString(sh.name[strings.LastIndexByte(sh.name, '/')+1:])
		case 'v':
			b.WriteString("5.2")
		case 'V':
			b.WriteString("5.2.15")
		case 'j':
			b.WriteString(itoa(len(sh.jobs)))
		case '#':
			b.WriteString(itoa(sh.commandNo + int(b2i(sh.opts.interactive))))
		case '!':
			b.WriteString(itoa(sh.hist.number(len(sh.hist.list))))
		case 'l':
			tty := "tty"
			if t, err := sh.p.TTYName(0); err == nil {
				tty = t[strings.LastIndexByte(t, '/')+1:]
			}
			b.WriteString(tty)
		case 't':
			b.WriteString(now.Format("15:04:05"))
		case 'T':
			b.WriteString(now.Format("03:04:05"))
		case '@':
			b.WriteString(now.Format("03:04 PM"))
		case 'A':
			b.WriteString(now.Format("15:04"))
		case 'd':
			b.WriteString(now.Format("Mon Jan 02"))
		case 'D':
			if i+1 < len(s) && s[i+1] == '{' {
				if end := strings.IndexByte(s[i:], '}'); end > 0 {
					b.WriteString(strftime(now, s[i+2:i+end]))
					i += end
				}
			}
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n, j := 0, i
			for j < len(s) && j < i+3 && s[j] >= '0' && s[j] <= '7' {
				n = n<<3 | int(s[j]-'0')
				j++
			}
			b.WriteByte(byte(n))
			i = j - 1
		default:
			b.WriteString(s[i-1 : i+1])
		}
	}
	return b.String()
}
