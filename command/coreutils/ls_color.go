package coreutils

import (
	"strings"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// colorTerminals are patterns of TERM of terminals with colors, in case LS_COLORS doesn't say.
var colorTerminals = []string{"Eterm", "ansi", "*color*", "con[0-9]*x[0-9]*", "cons25", "console", "cygwin", "*direct*", "dtterm", "gnome", "hurd", "jfbterm", "konsole",
	"kterm", "linux", "linux-c", "mlterm", "putty", "rxvt*", "screen*", "st", "terminator", "tmux*", "vt100", "xterm*"}

// colors are those of LS_COLORS, else the built-in ones if the terminal is known to have colors, else none.
func (l *lister) colors() *colors {
	env := l.t.Getenv("LS_COLORS")
	if env == "" && l.t.Getenv("COLORTERM") == "" {
		term := l.t.Getenv("TERM")
		for _, p := range colorTerminals {
			if tool.Glob(p, term, 0) {
				return parseColors("")
			}
		}
		return nil
	}
	for _, item := range strings.Split(env, ":") {
		if key, _, ok := strings.Cut(item, "="); item != "" && (!ok || len(key) != 2 && key[:min(1, len(key))] != "*") {
			l.t.Warn("unparsable value for LS_COLORS environment variable")
			return nil
		}
	}
	return parseColors(env)
}

// checksLinks reports whether the colors depend on whether links' targets exist, or on what these are.
func (c *colors) checksLinks() bool {
	return c.byKey["or"] != "" || c.byKey["mi"] != "" || c.byKey["ln"] == "target"
}

// colors are the codes of LS_COLORS.
type colors struct {
	byKey map[string]string
	bySuf [][2]string
	used  bool
}

func parseColors(env string) *colors {
	c := &colors{byKey: map[string]string{"rs": "0", "di": "01;34", "ln": "01;36", "pi": "33", "so": "01;35", "bd": "01;33", "cd": "01;33",
		"ex": "01;32", "su": "37;41", "sg": "30;43", "st": "37;44", "ow": "34;42", "tw": "30;42", "do": "01;35"}}
	for _, item := range strings.Split(env, ":") {
		key, code, ok := strings.Cut(item, "=")
		if !ok || strings.Trim(code, "0123456789;") != "" && code != "target" {
			continue
		}
		if suffix, ok := strings.CutPrefix(key, "*"); ok {
			c.bySuf = append(c.bySuf, [2]string{suffix, code})
		} else if len(key) == 2 {
			c.byKey[key] = code
		}
	}
	return c
}

// of returns an entry's code.
func (c *colors) of(e *lsEntry) string {
	m := e.attr.Mode
	key := ""
	switch m & vfs.ModeType {
	case vfs.ModeDir:
		key = "di"
		switch {
		case m&0o1002 == 0o1002 && c.byKey["tw"] != "":
			key = "tw"
		case m&0o002 != 0 && c.byKey["ow"] != "":
			key = "ow"
		case m&0o1000 != 0 && c.byKey["st"] != "":
			key = "st"
		}
	case vfs.ModeSymlink:
		key = "ln"
		if !e.linkOK && c.byKey["or"] != "" {
			key = "or"
		} else if c.byKey["ln"] == "target" && e.linkOK {
			return c.of(&lsEntry{name: e.name, attr: e.linked})
		} else if c.byKey["ln"] == "target" {
			return ""
		}
	case vfs.ModeFIFO:
		key = "pi"
	case vfs.ModeSocket:
		key = "so"
	case vfs.ModeBlock:
		key = "bd"
	case vfs.ModeChar:
		key = "cd"
	default:
		key = c.regular(e)
		if key == "" {
			return c.suffix(e.name)
		}
	}
	return c.byKey[key]
}

func (c *colors) regular(e *lsEntry) string {
	m := e.attr.Mode
	switch {
	case m&0o4000 != 0 && c.byKey["su"] != "":
		return "su"
	case m&0o2000 != 0 && c.byKey["sg"] != "":
		return "sg"
	case m&0o111 != 0 && c.byKey["ex"] != "":
		return "ex"
	case e.attr.Nlink > 1 && c.byKey["mh"] != "":
		return "mh"
	}
	return ""
}

func (c *colors) suffix(name string) string {
	for i := len(c.bySuf) - 1; i >= 0; i-- {
		if s := c.bySuf[i]; strings.HasSuffix(strings.ToLower(name), strings.ToLower(s[0])) {
			return s[1]
		}
	}
	return c.byKey["fi"]
}

// write writes a text in a color; the first color is preceded by a reset.
func (c *colors) write(w interface{ WriteString(string) (int, error) }, code, s string) {
	if code == "" {
		w.WriteString(s)
		return
	}
	reset := "\x1b[" + c.byKey["rs"] + "m"
	if !c.used {
		w.WriteString(reset)
		c.used = true
	}
	w.WriteString("\x1b[" + code + "m" + s + reset)
}
