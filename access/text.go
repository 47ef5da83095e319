package access

import (
	"slices"
	"strings"
	"unicode/utf8"

	"agentrun.dev/api"
)

// Limits on the fields of an entry of the audit log, in bytes; what is longer is cut.
const (
	maxRemote  = 64
	maxRequest = 128
	maxThing   = 256
	maxRule    = 256
	maxDatum   = 256
	maxData    = 16 // members

	minSecret = 16 // of a key, that is looked for in fields
)

// newEntry begins an entry of the log about a caller.
func newEntry(who *Caller, action, thing string) api.AuditEntry {
	e := api.AuditEntry{Action: clean(who, action, 64), Thing: clean(who, thing, maxThing)}
	if who != nil {
		e.Principal = who.Principal.Name
		e.Remote, e.Request = clean(who, who.Remote, maxRemote), clean(who, who.Request, maxRequest)
		if who.Key != nil {
			e.Key = printable(who.Key.ID, maxID)
		}
	}
	return e
}

// data is what the log says of a thing, beside its name.
func (t *Thing) data(who *Caller) map[string]string {
	var owner, parent string
	if who != nil {
		parent = who.Principal.Parent
	}
	if who == nil || t.Owner != who.Principal.Name {
		owner = t.Owner
	}
	if len(t.Data) == 0 && owner == "" && parent == "" {
		return nil
	}
	data := map[string]string{}
	put := func(name, value string) {
		if name = clean(who, name, 64); value != "" && (len(data) < maxData || data[name] != "") {
			data[name] = clean(who, value, maxDatum)
		}
	}
	put("owner", owner)
	put("for", parent)
	names := make([]string, 0, len(t.Data))
	for n := range t.Data {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		if n != "owner" && n != "for" {
			put(n, t.Data[n])
		}
	}
	return data
}

// clean makes a text of an entry's out of what may come from anywhere: no control characters, no credentials, no more than n bytes.
func clean(who *Caller, s string, n int) string {
	// A root key's secret may be a short word that somebody chose: taking that out would garble what has nothing to do with it.
	if who != nil && who.Key != nil && len(who.Key.Secret) >= minSecret {
		s = strings.ReplaceAll(s, who.Key.Secret, "[secret]")
	}
	return printable(redact(s), n)
}

// redact takes out what looks like the secret of a key: secretLen or more characters of its alphabet.
func redact(s string) string {
	for begin := 0; begin < len(s); begin++ {
		end := begin
		for end < len(s) && (s[end] >= 'a' && s[end] <= 'z' || s[end] >= '2' && s[end] <= '7') {
			end++
		}
		if end-begin >= secretLen {
			const mark = "[secret]"
			s = s[:begin] + mark + s[end:]
			end = begin + len(mark)
		}
		begin = end
	}
	return s
}

// printable returns a text fit for a line: at most n bytes, whole characters, each that has no place in a line replaced by '?'.
func printable(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	if !strings.ContainsFunc(s, unprintable) { // what isn't UTF-8 reads as U+FFFD
		return s
	}
	return strings.Map(func(r rune) rune {
		if unprintable(r) {
			return '?'
		}
		return r
	}, s)
}
