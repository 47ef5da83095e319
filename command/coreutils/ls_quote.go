package coreutils

import (
	"strings"

	"agentrun.dev/command/tool"
)

// nameSpecial are the characters that need quoting in names since they could be taken for an indicator.
func (l *lister) nameSpecial() string {
	switch l.indicator {
	case 'f':
		return "*=>@|"
	case 'F':
		return "=>@|"
	}
	return ""
}

// quote renders a name in the quoting style; special needs quoting too. quoted says that quotes were put around it where
// others may have none.
func (l *lister) quote(name, special string) (shown string, quoted bool) {
	switch l.quoting {
	case "shell", "shell-escape":
		plain := l.quoting == "shell"
		switch {
		case strings.ContainsAny(name, special):
			shown = l.shellAlways(name, plain)
		case plain:
			if shown = name; tool.NeedsPlainQuotes(name) {
				shown = tool.QuotePlain(name)
			}
		default:
			shown = tool.QuoteShell(name)
		}
		quoted = shown != name
	case "shell-always", "shell-escape-always":
		shown = l.shellAlways(name, l.quoting == "shell-always")
	case "c":
		shown = `"` + tool.EscapeC(name, `"`+special) + `"`
	case "c-maybe":
		// A backslash alone needs no quotes.
		shown = name
		if rest := strings.ReplaceAll(name, `\`, ""); tool.EscapeC(rest, `"`+special) != rest {
			shown, quoted = `"`+tool.EscapeC(name, `"`+special)+`"`, true
		}
	case "escape":
		shown = tool.EscapeC(name, " "+special)
	case "locale", "clocale":
		shown = "‘" + tool.EscapeC(name, special) + "’"
	default:
		shown = name
	}
	if l.hideControl && (l.quoting == "literal" || l.quoting == "shell" || l.quoting == "shell-always") {
		shown = hideControl(shown)
	}
	return shown, quoted
}

func (l *lister) shellAlways(name string, plain bool) string {
	if plain {
		return tool.QuotePlain(name)
	}
	return tool.QuoteAF(name)
}

// hideControl puts a question mark for each character that can't be printed.
func hideControl(s string) string {
	return strings.Map(func(r rune) rune {
		if !tool.Printable(r) {
			return '?'
		}
		return r
	}, s)
}
