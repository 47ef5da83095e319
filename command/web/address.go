package web

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// address is a parsed URL.
type address struct {
	scheme, user, host, port string
	path, query              string // as they are sent
	hasQuery, hasUser        bool
	fragment                 string
}

var defaultPorts = map[string]string{"http": "80", "https": "443"}

// parseAddress reads a URL as curl does; one without a scheme is http.
func parseAddress(s, scheme string, asIs bool) (address, error) {
	bad := &curlError{3, "URL using bad/illegal format or missing URL"}
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return address{}, &curlError{3, "URL using bad/illegal format or missing URL"}
	}
	a := address{scheme: scheme}
	rest := s
	if i := strings.Index(s, "://"); i > 0 && isScheme(s[:i]) {
		a.scheme, rest = strings.ToLower(s[:i]), s[i+3:]
	} else if a.scheme == "" {
		a.scheme = "http"
	}
	rest, a.fragment, _ = strings.Cut(rest, "#")
	end := strings.IndexAny(rest, "/?")
	authority, tail := rest, ""
	if end >= 0 {
		authority, tail = rest[:end], rest[end:]
	}
	a.path, a.query, a.hasQuery = strings.Cut(tail, "?")
	if a.path == "" {
		a.path = "/"
	}
	if a.scheme == "file" {
		if authority != "" && authority != "localhost" && authority != "127.0.0.1" {
			return a, &curlError{3, "Bad file:// URL"}
		}
		return a, nil
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		a.user, a.hasUser, authority = unescapeURL(authority[:i]), true, authority[i+1:]
	}
	if !a.setHost(authority) {
		return a, bad
	}
	if !asIs {
		a.path = removeDots(a.path)
	}
	return a, nil
}

func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if !(c >= 'a' && c <= 'z' || i > 0 && (s[i] >= '0' && s[i] <= '9' || strings.IndexByte("+-.", s[i]) >= 0)) {
			return false
		}
	}
	return true
}

func (a *address) setHost(authority string) bool {
	host, port := authority, ""
	if strings.HasPrefix(authority, "[") {
		end := strings.IndexByte(authority, ']')
		if end < 0 {
			return false
		}
		host, port = authority[1:end], strings.TrimPrefix(authority[end+1:], ":")
	} else if i := strings.LastIndexByte(authority, ':'); i >= 0 {
		host, port = authority[:i], authority[i+1:]
	}
	if port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
			return false
		}
	} else {
		port = defaultPorts[a.scheme]
	}
	a.host, a.port = strings.ToLower(host), port
	return host != "" && !strings.ContainsAny(host, "\\\"<>^`{|}")
}

func unescapeURL(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

// removeDots resolves "." and ".." in a path.
func removeDots(path string) string {
	if !strings.Contains(path, "/.") {
		return path
	}
	var out []string
	parts := strings.Split(path, "/")
	for i, p := range parts[1:] {
		last := i == len(parts)-2
		switch p {
		case ".":
			if last {
				out = append(out, "")
			}
		case "..":
			if len(out) > 0 {
				out = out[:len(out)-1]
			}
			if last {
				out = append(out, "")
			}
		default:
			out = append(out, p)
		}
	}
	return "/" + strings.Join(out, "/")
}

// hostField is the value of the Host field.
func (a *address) hostField() string {
	h := a.host
	if strings.Contains(h, ":") {
		h = "[" + h + "]"
	}
	if a.port != defaultPorts[a.scheme] {
		h += ":" + a.port
	}
	return h
}

// target is what the request line names.
func (a *address) target() string {
	if a.hasQuery {
		return a.path + "?" + a.query
	}
	return a.path
}

// String renders the URL without its user.
func (a *address) String() string {
	s := a.scheme + "://" + a.hostField() + a.target()
	if a.fragment != "" {
		s += "#" + a.fragment
	}
	return s
}

// follow resolves a Location against the URL that sent it.
func (a *address) follow(location string, asIs bool) (address, error) {
	location = strings.ReplaceAll(location, " ", "%20")
	base, err := url.Parse(a.scheme + "://" + a.hostField() + a.target())
	if err != nil {
		return address{}, &curlError{3, "URL using bad/illegal format or missing URL"}
	}
	ref, err := url.Parse(location)
	if err != nil {
		return address{}, &curlError{3, "URL using bad/illegal format or missing URL"}
	}
	return parseAddress(base.ResolveReference(ref).String(), "", asIs)
}

// globbed is one URL of a pattern, with what each of its sets stood for.
type globbed struct {
	url   string
	parts []string
}

// maxGlob bounds how many URLs a pattern makes.
const maxGlob = 100000

// expandGlob expands {a,b} and [1-9:2] in a URL.
func expandGlob(pattern string) ([]globbed, error) {
	result := []globbed{{}}
	for i := 0; i < len(pattern); {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern) && strings.IndexByte("{}[]", pattern[i+1]) >= 0:
			appendAll(result, pattern[i+1:i+2])
			i += 2
		case c == '{':
			end := strings.IndexByte(pattern[i:], '}')
			if end < 0 {
				return nil, fmt.Errorf("unmatched brace in URL position %d:\n%s\n%*s^", i+1, pattern, i, "")
			}
			result = product(result, strings.Split(pattern[i+1:i+end], ","))
			i += end + 1
		case c == '[':
			end := strings.IndexByte(pattern[i:], ']')
			if end > 0 && strings.Contains(pattern[i:i+end], ":") && strings.Count(pattern[i:i+end], ":") > 1 {
				appendAll(result, pattern[i:i+end+1]) // an IPv6 address
				i += end + 1
				continue
			}
			var values []string
			ok := end > 0
			if ok {
				values, ok = globRange(pattern[i+1 : i+end])
			}
			if !ok {
				return nil, fmt.Errorf("bad range in URL position %d:\n%s\n%*s^", i+max(end, 0)+2, pattern, i+max(end, 0)+1, "")
			}
			result = product(result, values)
			i += end + 1
		case c == ']' || c == '}':
			return nil, fmt.Errorf("unmatched close brace/bracket in URL position %d:\n%s\n%*s^", i+1, pattern, i, "")
		default:
			appendAll(result, pattern[i:i+1])
			i++
		}
		if len(result) > maxGlob {
			return nil, fmt.Errorf("range overflow in URL position %d", i)
		}
	}
	return result, nil
}

func appendAll(list []globbed, s string) {
	for i := range list {
		list[i].url += s
	}
}

func product(list []globbed, values []string) []globbed {
	var out []globbed
	for _, g := range list {
		for _, v := range values {
			if len(out) > maxGlob {
				return out
			}
			out = append(out, globbed{g.url + v, append(append([]string(nil), g.parts...), v)})
		}
	}
	return out
}

// globRange lists "1-9", "01-10:3" or "a-z".
func globRange(s string) ([]string, bool) {
	s, stepText, stepped := strings.Cut(s, ":")
	step := 1
	if stepped {
		n, err := strconv.Atoi(stepText)
		if err != nil || n <= 0 {
			return nil, false
		}
		step = n
	}
	from, to, ok := strings.Cut(s, "-")
	if !ok {
		return nil, false
	}
	var list []string
	if len(from) == 1 && len(to) == 1 && (from[0] > '9' || to[0] > '9') {
		for c := int(from[0]); c <= int(to[0]); c += step {
			list = append(list, string(rune(c)))
		}
		return list, len(list) > 0
	}
	lo, err1 := strconv.Atoi(from)
	hi, err2 := strconv.Atoi(to)
	if err1 != nil || err2 != nil || lo > hi || (hi-lo)/step > maxGlob {
		return nil, false
	}
	width := 0
	if strings.HasPrefix(from, "0") {
		width = len(from)
	}
	for v := lo; v <= hi; v += step {
		list = append(list, fmt.Sprintf("%0*d", width, v))
	}
	return list, true
}
