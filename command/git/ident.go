package git

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/datetime"
)

// ident is who did something and when.
type ident struct {
	name, email string
	when        time.Time
}

// String is the form in objects: "Name <email> seconds zone".
func (i ident) String() string {
	return fmt.Sprintf("%s <%s> %d %s", i.name, i.email, i.when.Unix(), i.when.Format("-0700"))
}

func parseIdent(s string) (i ident) {
	lt, gt := strings.IndexByte(s, '<'), strings.LastIndexByte(s, '>')
	i.when = time.Unix(0, 0).UTC()
	if lt < 0 || gt < lt {
		i.name = s
		return i
	}
	i.name, i.email = strings.TrimSpace(s[:lt]), s[lt+1:gt]
	if t, ok := rawDate(strings.TrimSpace(s[gt+1:])); ok {
		i.when = t
	}
	return i
}

// rawDate reads "seconds zone".
func rawDate(s string) (time.Time, bool) {
	secs, zone, _ := strings.Cut(s, " ")
	n, err := strconv.ParseInt(strings.TrimPrefix(secs, "@"), 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	loc := time.UTC
	if len(zone) == 5 && (zone[0] == '+' || zone[0] == '-') {
		if z, err := strconv.Atoi(zone[1:]); err == nil {
			off := z/100*3600 + z%100*60
			if zone[0] == '-' {
				off = -off
			}
			loc = time.FixedZone("", off)
		}
	}
	return time.Unix(n, 0).In(loc), true
}

// parseDate reads a date as commits get it: raw, RFC 2822, ISO 8601 or whatever GNU date takes.
func (r *repo) parseDate(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if fields := strings.Fields(s); len(fields) > 0 && len(fields) <= 2 && (s[0] == '@' || len(fields[0]) >= 9 && len(fields) <= 2) {
		if t, ok := rawDate(s); ok {
			if len(fields) == 1 {
				t = t.In(r.t.Location())
			}
			return t, true
		}
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05-0700", "2006-01-02 15:04:05 -0700", "Mon, 2 Jan 2006 15:04:05 -0700", "Mon Jan 2 15:04:05 2006 -0700"} {
		if t, err := time.Parse(layout, s); err == nil {
			_, off := t.Zone()
			return t.In(time.FixedZone("", off)), true
		}
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", "Mon Jan 2 15:04:05 2006"} {
		if t, err := time.ParseInLocation(layout, s, r.t.Location()); err == nil {
			return t, true
		}
	}
	now := r.t.Now()
	// A day without a time is that day at the present time, as git has it.
	for _, layout := range []string{"2006-01-02", "2006/01/02", "2 Jan 2006", "Jan 2 2006"} {
		if t, err := time.ParseInLocation(layout, s, r.t.Location()); err == nil {
			return time.Date(t.Year(), t.Month(), t.Day(), now.Hour(), now.Minute(), now.Second(), 0, r.t.Location()), true
		}
	}
	words := strings.ReplaceAll(s, ".", " ") // "2.weeks.ago"
	if t, err := datetime.Parse(words, now, r.t.Zone); err == nil {
		return t, true
	}
	return now, false
}

// who returns the identity for a role, "AUTHOR" or "COMMITTER".
func (r *repo) who(role string) ident {
	name, hasName := r.t.LookupEnv("GIT_" + role + "_NAME")
	email, hasEmail := r.t.LookupEnv("GIT_" + role + "_EMAIL")
	section := strings.ToLower(role)
	for _, s := range []string{section, "user"} {
		if v, ok := r.config().get(s + ".name"); ok && !hasName && v != "" {
			name, hasName = v, true
		}
		if v, ok := r.config().get(s + ".email"); ok && !hasEmail {
			email, hasEmail = v, true
		}
	}
	if !hasEmail {
		email, hasEmail = r.t.LookupEnv("EMAIL")
	}
	if !hasEmail || !hasName {
		what := "Author"
		if role == "COMMITTER" {
			what = "Committer"
		}
		user := "user"
		if u := r.t.Getenv("USER"); u != "" {
			user = u
		}
		r.t.Out.Flush()
		fmt.Fprintf(r.t.Stderr(), "%s identity unknown\n\n*** Please tell me who you are.\n\nRun\n\n  git config --global user.email \"you@example.com\"\n"+
			"  git config --global user.name \"Your Name\"\n\nto set your account's default identity.\nOmit --global to set the identity only in this repository.\n\n", what)
		if !hasEmail {
			r.fatal("unable to auto-detect email address (got '%s@%s.(none)')", user, r.t.Sandbox().Hostname())
		}
		r.fatal("no name was given and auto-detection is disabled")
	}
	id := ident{crud(name), crud(email), r.t.Now().Truncate(time.Second)}
	if id.name == "" {
		r.fatal("empty ident name (for <%s>) not allowed", id.email)
	}
	if d := r.t.Getenv("GIT_" + role + "_DATE"); d != "" {
		t, ok := r.parseDate(d)
		if !ok {
			r.fatal("invalid date format: %s", d)
		}
		id.when = t
	}
	return id
}

// crud takes away what may not stand in an identity.
func crud(s string) string {
	s = strings.Map(func(c rune) rune {
		if c == '<' || c == '>' || c == '\n' || c == 0 {
			return -1
		}
		return c
	}, s)
	return strings.Trim(s, " .,:;\"\\'")
}

// formatDate words a time as --date=MODE does.
func (r *repo) formatDate(t time.Time, mode string) string {
	switch mode {
	case "iso", "iso8601":
		return t.Format("2006-01-02 15:04:05 -0700")
	case "iso-strict", "iso8601-strict":
		s := t.Format("2006-01-02T15:04:05-07:00")
		if _, off := t.Zone(); off == 0 {
			s = t.Format("2006-01-02T15:04:05") + "+00:00"
		}
		return s
	case "rfc", "rfc2822":
		return t.Format("Mon, 2 Jan 2006 15:04:05 -0700")
	case "short":
		return t.Format("2006-01-02")
	case "raw":
		return fmt.Sprintf("%d %s", t.Unix(), t.Format("-0700"))
	case "unix":
		return strconv.FormatInt(t.Unix(), 10)
	case "relative":
		return relative(r.t.Now().Sub(t))
	case "local":
		return t.In(r.t.Location()).Format("Mon Jan 2 15:04:05 2006")
	}
	if f, ok := strings.CutPrefix(mode, "format:"); ok {
		return strftime(t, f)
	}
	return t.Format("Mon Jan 2 15:04:05 2006 -0700")
}

// strftime knows the conversions that are usual in log formats.
func strftime(t time.Time, f string) string {
	layouts := map[byte]string{'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'b': "Jan", 'B': "January", 'a': "Mon",
		'A': "Monday", 'e': "_2", 'I': "03", 'p': "PM", 'z': "-0700", 'F': "2006-01-02", 'T': "15:04:05", 'R': "15:04", 'D': "01/02/06", 'j': "002", 'c': "Mon Jan _2 15:04:05 2006"}
	var b strings.Builder
	for i := 0; i < len(f); i++ {
		if f[i] != '%' || i+1 == len(f) {
			b.WriteByte(f[i])
			continue
		}
		i++
		switch l, ok := layouts[f[i]]; {
		case ok:
			b.WriteString(t.Format(l))
		case f[i] == 's':
			fmt.Fprint(&b, t.Unix())
		case f[i] == '%':
			b.WriteByte('%')
		default:
			b.WriteString(f[i-1 : i+1])
		}
	}
	return b.String()
}

// relative words an age as git does.
func relative(d time.Duration) string {
	n := int64(d / time.Second)
	if n < 0 {
		return "in the future"
	}
	plural := func(n int64, unit string) string {
		if n == 1 {
			return "1 " + unit + " ago"
		}
		return fmt.Sprintf("%d %ss ago", n, unit)
	}
	if n < 90 {
		return plural(n, "second")
	}
	if n = (n + 30) / 60; n < 90 {
		return plural(n, "minute")
	}
	if n = (n + 30) / 60; n < 36 {
		return plural(n, "hour")
	}
	if n = (n + 12) / 24; n < 14 {
		return plural(n, "day")
	}
	if n < 70 {
		return plural((n+3)/7, "week")
	}
	if n < 365 {
		return plural((n+15)/30, "month")
	}
	if n < 1825 {
		months := (n*12*2 + 365) / (365 * 2)
		years, rest := months/12, months%12
		if rest == 0 {
			return plural(years, "year")
		}
		s := strings.TrimSuffix(plural(years, "year"), " ago")
		return s + ", " + plural(rest, "month")
	}
	return plural((n+183)/365, "year")
}
