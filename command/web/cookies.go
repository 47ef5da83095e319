package web

import (
	"fmt"
	"net"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"
)

// cookie is one of a jar.
type cookie struct {
	domain   string // without a leading dot
	tail     bool   // subdomains, too
	path     string
	secure   bool
	httpOnly bool
	expires  int64 // seconds since 1970; 0: with the session
	name     string
	value    string
	order    int
}

// jar keeps cookies as curl does, in its file format (Netscape's).
type jar struct {
	cookies []cookie
	next    int
}

// Limits of a jar.
const (
	maxCookies    = 3000
	maxCookieSize = 4096
)

// set stores a cookie, in place of one of the same name, domain and path.
func (j *jar) set(c cookie, now time.Time) {
	for i, old := range j.cookies {
		if old.name == c.name && old.path == c.path && strings.EqualFold(old.domain, c.domain) {
			c.order = old.order
			j.cookies[i] = c
			if c.expires != 0 && c.expires <= now.Unix() {
				j.cookies = append(j.cookies[:i], j.cookies[i+1:]...)
			}
			return
		}
	}
	if c.expires != 0 && c.expires <= now.Unix() || len(j.cookies) >= maxCookies {
		return
	}
	c.order = j.next
	j.next++
	j.cookies = append(j.cookies, c)
}

// take stores what a Set-Cookie field says.
func (j *jar) take(value, host, path string, now time.Time) {
	if len(value) > maxCookieSize {
		return
	}
	parsed, err := http.ParseSetCookie(value)
	if err != nil {
		return
	}
	c := cookie{domain: host, path: defaultPath(path), secure: parsed.Secure, httpOnly: parsed.HttpOnly, name: parsed.Name, value: parsed.Value}
	if parsed.Quoted {
		c.value = `"` + c.value + `"`
	}
	if d := strings.TrimPrefix(parsed.Domain, "."); d != "" {
		if !tailMatch(host, d) || net.ParseIP(host) != nil && d != host || !strings.Contains(d, ".") && d != "localhost" && d != host {
			return
		}
		c.domain, c.tail = d, net.ParseIP(d) == nil
	}
	if strings.HasPrefix(parsed.Path, "/") {
		c.path = parsed.Path
		if len(c.path) > 1 {
			c.path = strings.TrimSuffix(c.path, "/")
		}
	}
	switch {
	case parsed.MaxAge > 0:
		c.expires = now.Unix() + int64(parsed.MaxAge)
	case parsed.MaxAge < 0:
		c.expires = 1
	case !parsed.Expires.IsZero():
		c.expires = max(parsed.Expires.Unix(), 1)
	}
	j.set(c, now)
}

func defaultPath(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// tailMatch reports whether a host is a domain or below it.
func tailMatch(host, domain string) bool {
	host, domain = strings.ToLower(host), strings.ToLower(domain)
	return host == domain || strings.HasSuffix(host, "."+domain) && net.ParseIP(host) == nil
}

func pathMatch(path, of string) bool {
	return path == of || strings.HasPrefix(path, of) && (strings.HasSuffix(of, "/") || len(path) > len(of) && path[len(of)] == '/')
}

// header returns the value of a Cookie field for a request; "" for none.
func (j *jar) header(host, path string, secure bool, now time.Time) string {
	var match []cookie
	for _, c := range j.cookies {
		if c.expires != 0 && c.expires <= now.Unix() || c.secure && !secure && host != "localhost" && host != "127.0.0.1" {
			continue
		}
		if (c.domain == "" || strings.EqualFold(host, c.domain) || c.tail && tailMatch(host, c.domain)) && pathMatch(path, c.path) {
			match = append(match, c)
		}
	}
	sort.SliceStable(match, func(a, b int) bool {
		if len(match[a].path) != len(match[b].path) {
			return len(match[a].path) > len(match[b].path)
		}
		if len(match[a].domain) != len(match[b].domain) {
			return len(match[a].domain) > len(match[b].domain)
		}
		if len(match[a].name) != len(match[b].name) {
			return len(match[a].name) > len(match[b].name)
		}
		return match[a].order > match[b].order
	})
	parts := make([]string, len(match))
	for i, c := range match {
		parts[i] = c.name + "=" + c.value
	}
	return strings.Join(parts, "; ")
}

// load reads a cookie file, or the Set-Cookie fields of saved headers. newSession leaves out those without an end.
func (j *jar) load(text string, newSession bool, now time.Time) {
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, "\r")
		if rest, ok := cutPrefixFold(line, "set-cookie:"); ok {
			if parsed, err := http.ParseSetCookie(strings.TrimSpace(rest)); err == nil {
				j.set(cookie{domain: strings.TrimPrefix(parsed.Domain, "."), tail: true, path: orSlash(parsed.Path), name: parsed.Name, value: parsed.Value}, now)
			}
			continue
		}
		line, httpOnly := strings.CutPrefix(line, "#HttpOnly_")
		if !httpOnly && strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) == 6 {
			f = append(f, "")
		}
		if len(f) != 7 {
			continue
		}
		expires, err := strconv.ParseInt(f[4], 10, 64)
		if err != nil || expires == 0 && newSession {
			continue
		}
		j.set(cookie{domain: strings.TrimPrefix(f[0], "."), tail: f[1] == "TRUE", path: f[2], secure: f[3] == "TRUE", httpOnly: httpOnly,
			expires: expires, name: f[5], value: f[6]}, now)
	}
}

func orSlash(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
		return s[len(prefix):], true
	}
	return s, false
}

// text renders the jar as a file.
func (j *jar) text() string {
	var b strings.Builder
	b.WriteString("# Netscape HTTP Cookie File\n# https://curl.se/docs/http-cookies.html\n# This file was generated by libcurl! Edit at your own risk.\n\n")
	upper := func(v bool) string { return strings.ToUpper(strconv.FormatBool(v)) }
	for i := len(j.cookies) - 1; i >= 0; i-- {
		c := j.cookies[i]
		if c.domain == "" {
			continue
		}
		prefix, dot := "", ""
		if c.httpOnly {
			prefix = "#HttpOnly_"
		}
		if c.tail {
			dot = "."
		}
		fmt.Fprintf(&b, "%s%s%s\t%s\t%s\t%s\t%d\t%s\t%s\n", prefix, dot, c.domain, upper(c.tail), c.path, upper(c.secure), c.expires, c.name, c.value)
	}
	return b.String()
}
