package git

import (
	"fmt"
	"io"
	neturl "net/url"
	"strings"
	"syscall"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// credential is what git and its helpers tell each other: lines of name=value (git-credential(1)).
type credential struct {
	protocol, host, path, username, password string
	hasHost                                  bool // a host may be empty, and still be said
	quit                                     bool // a helper wants nobody else to be asked
}

const (
	maxCredential = 32 << 10 // bytes of a description
	maxHelpers    = 32
)

// set takes up one line; url sets several. Names that aren't known are passed over, as the format demands.
func (c *credential) set(r *repo, name, value string) {
	switch name {
	case "protocol":
		c.protocol = value
	case "host":
		c.host, c.hasHost = value, true
	case "path":
		c.path = value
	case "username":
		c.username = value
	case "password":
		c.password = value
	case "quit":
		c.quit, _ = parseBool(value)
	case "url":
		if !c.setURL(value) {
			r.fatal("credential url cannot be parsed: %s", value)
		}
	}
}

// setURL takes a URL apart. A value with a line's end in it would be another line to a helper, and is refused.
func (c *credential) setURL(text string) bool {
	protocol, rest, ok := strings.Cut(text, "://")
	if !ok || protocol == "" {
		return false
	}
	authority, path, _ := strings.Cut(rest, "/")
	*c = credential{protocol: protocol, hasHost: true}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, password, _ := strings.Cut(authority[:at], ":")
		c.username, c.password = unescapeURL(user), unescapeURL(password)
		authority = authority[at+1:]
	}
	c.host, c.path = unescapeURL(authority), strings.Trim(unescapeURL(path), "/")
	return !strings.ContainsAny(c.protocol+c.host+c.path+c.username+c.password, "\n\x00")
}

func unescapeURL(s string) string {
	if u, err := neturl.PathUnescape(s); err == nil {
		return u
	}
	return s
}

// readCredential reads a description until an empty line or the end.
func (r *repo) readCredential(in io.Reader, c *credential) {
	b, err := io.ReadAll(io.LimitReader(in, maxCredential+1))
	if err != nil || len(b) > maxCredential {
		r.fatal("unable to read credential from stdin")
	}
	r.parseCredential(string(b), c)
}

func (r *repo) parseCredential(text string, c *credential) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			return
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			r.say("warning: invalid credential line: %s", line)
			r.fatal("unable to read credential from stdin")
		}
		c.set(r, name, value)
	}
}

// lines is the description as helpers read it.
func (c *credential) lines() string {
	var b strings.Builder
	for _, l := range [][2]string{{"protocol", c.protocol}, {"host", c.host}, {"path", c.path}, {"username", c.username}, {"password", c.password}} {
		if l[1] != "" || l[0] == "host" && c.hasHost {
			b.WriteString(l[0] + "=" + l[1] + "\n")
		}
	}
	return b.String()
}

// where names what the credential is for, as prompts do.
func (c *credential) where(user bool) string {
	s := c.protocol + "://"
	if user && c.username != "" {
		s += escapeURL(c.username, false) + "@"
	}
	s += c.host
	if c.path != "" {
		s += "/" + escapeURL(c.path, true)
	}
	return s
}

// escapeURL escapes what RFC 3986 doesn't leave as it is; reserved characters stay if they may.
func escapeURL(s string, reserved bool) string {
	var b strings.Builder
	for i := range len(s) {
		ch := s[i]
		switch {
		case ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z' || ch >= '0' && ch <= '9' || strings.IndexByte("-_.~", ch) >= 0,
			reserved && strings.IndexByte("!*'();:@&=+$,/?#[]", ch) >= 0:
			b.WriteByte(ch)
		default:
			fmt.Fprintf(&b, "%%%02x", ch)
		}
	}
	return b.String()
}

// covers reports whether a stored or configured one is for what is asked: every part that c says is the same.
func (c *credential) covers(o *credential) bool {
	same := func(want, have string) bool { return want == "" || want == have }
	return same(c.protocol, o.protocol) && (!c.hasHost || o.hasHost && c.host == o.host) && same(c.path, o.path) && same(c.username, o.username)
}

// applyConfig takes the helpers, the user and whether paths count from the settings, those for the URL included.
func (r *repo) applyConfig(c *credential) (helpers []string) {
	if c.protocol == "" {
		r.fatal("refusing to work with credential missing protocol field")
	}
	if !c.hasHost {
		r.fatal("refusing to work with credential missing host field")
	}
	usePath, user := false, ""
	best := map[string]int{}
	for _, s := range r.config().list {
		rest, ok := strings.CutPrefix(s.key, "credential.")
		if !ok {
			continue
		}
		name, pattern := rest, ""
		if dot := strings.LastIndexByte(rest, '.'); dot >= 0 {
			pattern, name = rest[:dot], rest[dot+1:]
		}
		weight, ok := c.matches(pattern)
		// Among settings for URLs a closer one stands, wherever it is.
		if !ok || weight < best[name] {
			continue
		}
		best[name] = weight
		switch name {
		case "helper":
			if helpers = append(helpers, s.value); s.value == "" {
				helpers = nil
			}
		case "username":
			user = s.value
		case "usehttppath":
			v, ok := parseBool(s.value)
			usePath = s.bare || ok && v
		}
	}
	if c.username == "" {
		c.username = user
	}
	if (c.protocol == "http" || c.protocol == "https") && !usePath {
		c.path = ""
	}
	return helpers[:min(len(helpers), maxHelpers)]
}

// matches reports whether the URL of a section credential.URL is of the credential, and how closely.
func (c *credential) matches(pattern string) (weight int, ok bool) {
	if pattern == "" {
		return 0, true
	}
	var p credential
	if !p.setURL(pattern) || p.protocol != c.protocol || p.username != "" && p.username != c.username {
		return 0, false
	}
	if stars := strings.Split(p.host, "."); strings.Contains(p.host, "*") {
		labels := strings.Split(c.host, ".")
		if len(stars) != len(labels) {
			return 0, false
		}
		for i, s := range stars {
			if s != "*" && !strings.EqualFold(s, labels[i]) {
				return 0, false
			}
		}
	} else if !strings.EqualFold(p.host, c.host) {
		return 0, false
	}
	if p.path != "" && c.path != p.path && !strings.HasPrefix(c.path, p.path+"/") {
		return 0, false
	}
	weight = len(p.host)<<16 + len(p.path)<<1 + 1
	if p.username != "" {
		weight++
	}
	return weight, true
}

// ask runs a helper of the sandbox with an operation, and returns what it says.
func (r *repo) ask(helper, operation string, c *credential) (string, bool) {
	line := "git credential-" + helper + " " + operation
	if snippet, ok := strings.CutPrefix(helper, "!"); ok {
		line = snippet + " " + operation
	} else if strings.HasPrefix(helper, "/") {
		line = helper + " " + operation
	}
	return r.exchange([]string{"/bin/sh", "-c", line}, c.lines())
}

// exchange runs a program, tells it something small and returns what it prints, at most maxCredential bytes.
func (r *repo) exchange(args []string, say string) (string, bool) {
	t := r.t
	t.Out.Flush()
	in, feed, err := t.Pipe()
	if err != nil {
		return "", false
	}
	out, print, err := t.Pipe()
	if err != nil {
		in.Close()
		feed.Close()
		return "", false
	}
	defer out.Close()
	// A pipe has room for all of it.
	_, err = io.WriteString(feed, say)
	feed.Close()
	var child *proc.Process
	if err == nil {
		child, err = t.Spawn(proc.Spawn{Args: args, Files: map[int]vfs.File{0: in, 1: print}})
	}
	in.Close()
	print.Close()
	if err != nil {
		r.say("error: cannot run %s: %s", args[0], strerror(err))
		return "", false
	}
	b, err := io.ReadAll(io.LimitReader(out, maxCredential))
	out.Close()
	status, werr := t.Wait(child)
	if err != nil || werr != nil {
		t.Check()
		return "", false
	}
	return string(b), status == 0
}

// fill completes a credential by its helpers, and then by asking a program or whoever sits at the terminal.
func (r *repo) fill(c *credential) {
	if c.username != "" && c.password != "" {
		return
	}
	for _, h := range r.applyConfig(c) {
		if said, ok := r.ask(h, "get", c); ok {
			r.parseCredential(said, c)
		}
		if c.username != "" && c.password != "" {
			return
		}
		if c.quit {
			r.fatal("credential helper '%s' told us to quit", h)
		}
	}
	if c.username == "" {
		c.username = r.prompt("Username", c.where(false), true)
	}
	if c.password == "" {
		c.password = r.prompt("Password", c.where(true), false)
	}
}

// tell runs all helpers with an operation that has no answer.
func (r *repo) tell(operation string, c *credential) {
	for _, h := range r.applyConfig(c) {
		r.ask(h, operation, c)
	}
}

// prompt asks for one value.
func (r *repo) prompt(what, where string, echo bool) string {
	question := what + " for '" + where + "': "
	program := r.t.Getenv("GIT_ASKPASS")
	if program == "" {
		program, _ = r.config().get("core.askpass")
	}
	if program == "" {
		program = r.t.Getenv("SSH_ASKPASS")
	}
	if program != "" {
		if said, ok := r.exchange([]string{"/bin/sh", "-c", program + ` "$@"`, program, question}, ""); ok {
			line, _, _ := strings.Cut(said, "\n")
			return strings.TrimSuffix(line, "\r")
		}
		r.say("error: unable to read askpass response from '%s'", program)
	}
	if v := r.t.Getenv("GIT_TERMINAL_PROMPT"); v != "" {
		if on, ok := parseBool(v); ok && !on {
			r.fatal("could not read %s for '%s': terminal prompts disabled", what, where)
		}
	}
	answer, err := r.terminal(question, echo)
	if err != nil {
		r.fatal("could not read %s for '%s': %s", what, where, strerror(err))
	}
	return answer
}

// terminal asks whoever sits at the controlling terminal, and shows what is typed if echo is set.
func (r *repo) terminal(question string, echo bool) (string, error) {
	tty, err := r.t.Process.Open("/dev/tty", syscall.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer tty.Close()
	if fd := r.t.Fd(tty); !echo {
		old, err := r.t.Termios(fd)
		if err != nil {
			return "", err
		}
		quiet := old
		quiet.Lflag &^= proc.ECHO
		if err := r.t.SetTermios(fd, quiet, proc.SetNow); err != nil {
			return "", err
		}
		defer func() {
			r.t.SetTermios(fd, old, proc.SetNow)
			io.WriteString(tty, "\n")
		}()
	}
	if _, err := io.WriteString(tty, question); err != nil {
		return "", err
	}
	var b [maxCredential]byte
	n, err := tty.Read(b[:])
	if n == 0 && err != nil && err != io.EOF {
		return "", err
	}
	line, _, _ := strings.Cut(string(b[:n]), "\n")
	return line, nil
}

// cmdCredential is for programs that want a credential as git would get one.
func (r *repo) cmdCredential(args []string) int {
	if len(args) != 1 || args[0] == "-h" || args[0] == "--help" {
		r.die(129, "usage: git credential (fill|approve|reject)")
	}
	var c credential
	r.readCredential(r.t.Stdin(), &c)
	switch args[0] {
	case "fill":
		r.fill(&c)
		r.printf("%s", c.lines())
	case "approve":
		if c.username != "" && c.password != "" {
			r.tell("store", &c)
		}
	case "reject":
		r.tell("erase", &c)
	default:
		r.die(129, "usage: git credential (fill|approve|reject)")
	}
	return 0
}
