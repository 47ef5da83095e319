package tool

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote quotes for messages as GNU's quote does in a UTF-8 locale: ‘name’, with C escapes.
func Quote(s string) string {
	var b strings.Builder
	b.WriteString("‘")
	cEscape(&b, s, "")
	b.WriteString("’")
	return b.String()
}

// QuoteC quotes as a C string literal: "name".
func QuoteC(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	cEscape(&b, s, `"`)
	b.WriteByte('"')
	return b.String()
}

// EscapeC escapes as in a C string literal, also the characters in special, without quotes around.
func EscapeC(s, special string) string {
	var b strings.Builder
	cEscape(&b, s, special)
	return b.String()
}

func cEscape(b *strings.Builder, s, special string) {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(b, "\\%03o", s[i])
		case r == '\\' || r < 0x80 && strings.IndexByte(special, byte(r)) >= 0:
			b.WriteByte('\\')
			b.WriteByte(byte(r))
		case printable(r):
			b.WriteString(s[i : i+n])
		default:
			for _, c := range []byte(s[i : i+n]) {
				b.WriteString(cByte(c))
			}
		}
		i += n
	}
}

// cByte is a byte's C escape.
func cByte(c byte) string {
	if i := strings.IndexByte("\a\b\t\n\v\f\r", c); i >= 0 {
		return "\\" + "abtnvfr"[i:i+1]
	}
	return fmt.Sprintf("\\%03o", c)
}

func printable(r rune) bool {
	return r >= ' ' && r < 0x7f || r > 0x9f && (unicode.IsPrint(r) || unicode.In(r, unicode.Cf, unicode.Zs, unicode.Co))
}

// Printable reports whether the C library calls a character printable in a UTF-8 locale; what no character is isn't.
func Printable(r rune) bool { return r != utf8.RuneError && printable(r) }

// QuotePlain quotes for a shell, always, and leaves what can't be printed as it is.
func QuotePlain(s string) string {
	if strings.IndexByte(s, '\'') >= 0 && !strings.ContainsAny(s, "!\"$&()*;<=>[^`|\\?\n\r\t") {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// NeedsPlainQuotes reports whether a shell would take a name for something else, or split it.
func NeedsPlainQuotes(s string) bool {
	return s == "" || strings.ContainsAny(s, shellSpecial+"\n\r\t") || s[0] == '#' || s[0] == '~' || s == "{" || s == "}"
}

// shellSpecial are the characters that make GNU's shell-escape quoting put quotes around a name.
const shellSpecial = " !\"$&()*;<=>[^`|\\?'"

// QuoteF quotes a file name for a message only where it needs it, as GNU's quotef does; a colon needs it too.
func QuoteF(s string) string { return shellQuote(s, false, true) }

// QuoteAF quotes a file name for a message always: 'name'.
func QuoteAF(s string) string { return shellQuote(s, true, false) }

// QuoteShell quotes a name for a shell only where it needs it.
func QuoteShell(s string) string { return shellQuote(s, false, false) }

func shellQuote(s string, always, colon bool) string {
	if !always && !needsQuotes(s, colon) {
		return s
	}
	// A name with an apostrophe, and nothing that is special between double quotes, is put between those.
	if strings.IndexByte(s, '\'') >= 0 && !strings.ContainsAny(s, "!\"$&()*;<=>[^`|\\?") && !unprintable(s) &&
		(always || !strings.ContainsAny(s, "#~") || !strings.ContainsAny(s[:1], "#~")) {
		return `"` + s + `"`
	}
	var b strings.Builder
	b.WriteByte('\'')
	escaping := false
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		bad := r == utf8.RuneError && n == 1
		switch {
		case !bad && r == '\'':
			if escaping {
				escaping = false
			}
			b.WriteString(`'\''`)
		case !bad && printable(r):
			if escaping {
				b.WriteString("''")
				escaping = false
			}
			b.WriteString(s[i : i+n])
		default:
			if !escaping {
				b.WriteString("'$'")
				escaping = true
			}
			for _, c := range []byte(s[i : i+n]) {
				b.WriteString(cByte(c))
			}
		}
		i += n
	}
	b.WriteByte('\'')
	return b.String()
}

func needsQuotes(s string, colon bool) bool {
	return s == "" || strings.ContainsAny(s, shellSpecial) || s[0] == '#' || s[0] == '~' || s == "{" || s == "}" ||
		colon && strings.IndexByte(s, ':') >= 0 || unprintable(s)
}

func unprintable(s string) bool {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !printable(r) {
			return true
		}
		i += n
	}
	return false
}

// QuoteWith quotes a file name as findutils do in messages: ‘name’.
func QuoteWith(s string) string { return Quote(s) }

// QuoteAFIfPath quotes a command's name as env and its kin do: ‘name’.
func QuoteAFIfPath(s string) string { return Quote(s) }
