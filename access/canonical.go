package access

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"agentrun.dev/api"
)

// appendCanonical appends the canonical form of an entry of the audit log, of which its hash is the SHA-256 in hexadecimal.
//
// It is the entry's JSON without the member hash: UTF-8, the members of each object sorted by name, no space between tokens. In strings, '"' and
// '\' are escaped by '\', control characters as \b, \f, \n, \r, \t or \u00xx, and nothing else. Members that are empty are absent, but for
// allowed, previous, rule and action. It is what Python's json.dumps makes of the entry with sort_keys, separators=(',', ':') and
// ensure_ascii=False.
func appendCanonical(b []byte, e *api.AuditEntry) []byte {
	b = append(b, `{"action":`...)
	b = appendString(b, e.Action)
	b = append(b, `,"allowed":`...)
	b = strconv.AppendBool(b, e.Allowed)
	if len(e.Data) > 0 {
		b = append(b, `,"data":{`...)
		names := make([]string, 0, len(e.Data))
		for n := range e.Data {
			names = append(names, n)
		}
		slices.Sort(names)
		for i, n := range names {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, n)
			b = append(b, ':')
			b = appendString(b, e.Data[n])
		}
		b = append(b, '}')
	}
	b = appendMember(b, `,"key":`, e.Key)
	b = append(b, `,"previous":`...)
	b = appendString(b, e.Previous)
	b = appendMember(b, `,"principal":`, e.Principal)
	b = appendMember(b, `,"remote":`, e.Remote)
	b = appendMember(b, `,"request":`, e.Request)
	b = append(b, `,"rule":`...)
	b = appendString(b, e.Rule)
	b = append(b, `,"seq":"`...)
	b = strconv.AppendUint(b, e.Seq, 10)
	b = append(b, '"')
	b = appendMember(b, `,"thing":`, e.Thing)
	b = append(b, `,"time":"`...)
	b = e.Time.AppendFormat(b, time.RFC3339Nano)
	return append(b, `"}`...)
}

func appendMember(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendString(append(b, name...), value)
}

func appendString(b []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\b':
			b = append(b, `\b`...)
		case c == '\f':
			b = append(b, `\f`...)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c < ' ':
			b = append(b, `\u00`...)
			b = append(b, hexDigits[c>>4], hexDigits[c&15])
		case c < utf8.RuneSelf:
			b = append(b, c)
		default: // what isn't UTF-8 becomes U+FFFD, as in any JSON
			r, n := utf8.DecodeRuneInString(s[i:])
			b = utf8.AppendRune(b, r)
			i += n - 1
		}
	}
	return append(b, '"')
}

// hashOf returns the hash of a canonical form.
func hashOf(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}
