package tool

import (
	"errors"
	"strings"

	"agentrun.dev/vfs"
)

// FormatMode renders a mode as ls -l does: "-rw-r--r--".
func FormatMode(m vfs.Mode) string {
	b := []byte("?rwxrwxrwx")
	switch m & vfs.ModeType {
	case vfs.ModeRegular:
		b[0] = '-'
	case vfs.ModeDir:
		b[0] = 'd'
	case vfs.ModeSymlink:
		b[0] = 'l'
	case vfs.ModeFIFO:
		b[0] = 'p'
	case vfs.ModeSocket:
		b[0] = 's'
	case vfs.ModeChar:
		b[0] = 'c'
	case vfs.ModeBlock:
		b[0] = 'b'
	}
	for i := range 9 {
		if m&(1<<(8-i)) == 0 {
			b[i+1] = '-'
		}
	}
	special := func(bit vfs.Mode, at int, with byte) {
		if m&bit == 0 {
			return
		}
		if b[at] == '-' {
			with -= 'a' - 'A'
		}
		b[at] = with
	}
	special(0o4000, 3, 's')
	special(0o2000, 6, 's')
	special(0o1000, 9, 't')
	return string(b)
}

// ErrMode says that a mode isn't one.
var ErrMode = errors.New("invalid mode")

// ModeChange is a parsed mode, octal or symbolic, that can be applied to many files.
type ModeChange struct{ clauses []modeClause }

// modeClause is one operation: affected bits, operator and value, or bits copied from a class.
type modeClause struct {
	op       byte     // + - =
	who      vfs.Mode // bits of the classes named; 0 means all of them, under the umask
	bits     vfs.Mode
	copyFrom byte // u, g, o or 0
	xIf      bool // X: execute only for directories and what is executable
	octal    bool
	mention  vfs.Mode // for octal: which set-id bits of directories change
}

// ParseMode reads a mode such as 755, u+x,go-w or a=rX.
func ParseMode(s string) (*ModeChange, error) {
	if s == "" {
		return nil, ErrMode
	}
	if s[0] >= '0' && s[0] <= '7' {
		return parseOctalMode(s)
	}
	mc := &ModeChange{}
	for _, part := range strings.Split(s, ",") {
		if err := mc.parseClause(part); err != nil {
			return nil, err
		}
	}
	return mc, nil
}

func parseOctalMode(s string) (*ModeChange, error) {
	var v vfs.Mode
	for _, c := range []byte(s) {
		if c < '0' || c > '7' {
			return nil, ErrMode
		}
		if v = v*8 + vfs.Mode(c-'0'); v > 0o7777 {
			return nil, ErrMode
		}
	}
	// As GNU does: up to four digits leave a directory's set-id bits alone unless they are set.
	mention := v&0o6000 | 0o1777
	if len(s) >= 5 {
		mention = 0o7777
	}
	return &ModeChange{[]modeClause{{op: '=', bits: v, octal: true, mention: mention}}}, nil
}

// parseClause reads one comma-separated part: [ugoa]*([-+=]([rwxXst]*|[ugo]|[0-7]+))+.
func (mc *ModeChange) parseClause(s string) error {
	var who vfs.Mode
	i := 0
	for ; i < len(s); i++ {
		switch s[i] {
		case 'u':
			who |= 0o4700
		case 'g':
			who |= 0o2070
		case 'o':
			who |= 0o1007
		case 'a':
			who |= 0o7777
		default:
			goto operators
		}
	}
operators:
	if i == len(s) {
		return ErrMode
	}
	for i < len(s) {
		c := modeClause{op: s[i], who: who}
		if strings.IndexByte("+-=", c.op) < 0 {
			return ErrMode
		}
		i++
		start := i
		for i < len(s) && strings.IndexByte("+-=", s[i]) < 0 {
			i++
		}
		if err := c.parseValue(s[start:i], who); err != nil {
			return err
		}
		mc.clauses = append(mc.clauses, c)
	}
	return nil
}

func (c *modeClause) parseValue(s string, who vfs.Mode) error {
	if s == "u" || s == "g" || s == "o" {
		c.copyFrom = s[0]
		return nil
	}
	if s != "" && s[0] >= '0' && s[0] <= '7' {
		o, err := parseOctalMode(s)
		if err != nil || who != 0 {
			return ErrMode
		}
		c.bits, c.octal, c.mention = o.clauses[0].bits, true, 0o7777
		return nil
	}
	for _, r := range []byte(s) {
		switch r {
		case 'r':
			c.bits |= 0o444
		case 'w':
			c.bits |= 0o222
		case 'x':
			c.bits |= 0o111
		case 'X':
			c.xIf = true
		case 's':
			c.bits |= 0o6000
		case 't':
			c.bits |= 0o1000
		default:
			return ErrMode
		}
	}
	return nil
}

// Apply returns the permission bits that a file of the given mode gets under a umask.
func (mc *ModeChange) Apply(m vfs.Mode, umask vfs.Mode) vfs.Mode {
	dir := m.IsDir()
	m &= vfs.ModePerm
	for i := range mc.clauses {
		m = mc.clauses[i].apply(m, umask, dir)
	}
	return m
}

func (c *modeClause) apply(m, umask vfs.Mode, dir bool) vfs.Mode {
	bits := c.bits
	affected := c.who
	if c.octal {
		affected = 0o7777
		if dir {
			affected = c.mention
		}
	} else {
		switch c.copyFrom {
		case 'u':
			bits = (m >> 6 & 7) * 0o111
		case 'g':
			bits = (m >> 3 & 7) * 0o111
		case 'o':
			bits = (m & 7) * 0o111
		}
		if c.xIf && (dir || m&0o111 != 0) {
			bits |= 0o111
		}
		if affected == 0 {
			bits &^= umask & 0o777
			affected = 0o7777
			if c.op == '=' {
				affected &^= umask & 0o777
			}
		}
		bits &= affected
		if c.op == '=' && dir && c.bits&0o6000 == 0 {
			affected &^= 0o6000 // a directory keeps its set-id bits unless they are mentioned
		}
	}
	switch c.op {
	case '+':
		return m | bits
	case '-':
		return m &^ bits
	}
	return m&^affected | bits
}
