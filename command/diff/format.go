package diff

import (
	"fmt"
	"strconv"
	"strings"
)

// ifdef sets the formats of -D.
func (d *differ) ifdef(name string) {
	def := func(i int, s string) {
		if d.group[i] == nil {
			d.group[i] = &s
		}
	}
	name = strings.ReplaceAll(name, "%", "%%")
	def(1, "#ifndef "+name+"\n%<#endif /* ! "+name+" */\n")
	def(2, "#ifdef "+name+"\n%>#endif /* "+name+" */\n")
	def(3, "#ifndef "+name+"\n%<#else /* "+name+" */\n%>#endif /* "+name+" */\n")
}

// Roles of lines and groups in formats.
const (
	roleSame = iota
	roleOld
	roleNew
	roleChanged
)

// formatted writes the texts by formats of groups and lines.
func (p *pair) formatted() {
	formats := [4]string{"%=", "%<", "%>", ""}
	for i, g := range p.d.group {
		switch {
		case g != nil:
			formats[i] = *g
		case i == roleChanged:
			formats[i] = formats[roleOld] + formats[roleNew]
		case i != roleSame && p.d.group[roleChanged] != nil: // it serves those that have none of their own
			formats[i] = *p.d.group[roleChanged]
		}
	}
	i, j := 0, 0
	for k := range p.changes {
		c := &p.changes[k]
		if c.ignore {
			continue
		}
		p.d.t.Check()
		p.group(formats[roleSame], i, c.a, j, c.b)
		role := roleChanged
		switch letter(c) {
		case 'd':
			role = roleOld
		case 'a':
			role = roleNew
		}
		p.group(formats[role], c.a, c.a+c.deleted, c.b, c.b+c.inserted)
		i, j = c.a+c.deleted, c.b+c.inserted
	}
	p.group(formats[roleSame], i, len(p.a.lines), j, len(p.b.lines))
}

// group writes one group of lines by its format.
func (p *pair) group(format string, a0, a1, b0, b1 int) {
	if a0 == a1 && b0 == b1 {
		return
	}
	p.groupText(format, 0, a0, a1, b0, b1, true)
}

// groupText writes a format up to one of the ends of a conditional, which it returns the place of.
func (p *pair) groupText(f string, end byte, a0, a1, b0, b1 int, show bool) int {
	out := p.d.t.Out
	for i := 0; i < len(f); i++ {
		c := f[i]
		if end != 0 && c == end {
			return i
		}
		if c != '%' || i+1 == len(f) {
			if show {
				out.WriteByte(c)
			}
			continue
		}
		i++
		switch f[i] {
		case '%':
			if show {
				out.WriteByte('%')
			}
		case '<', '>', '=':
			if !show {
				continue
			}
			switch f[i] {
			case '<':
				p.lines(p.a, roleOld, a0, a1)
			case '>':
				p.lines(p.b, roleNew, b0, b1)
			default:
				p.lines(p.a, roleSame, a0, a1)
			}
		case '(':
			n, truth, ok := p.condition(f[i+1:], a0, a1, b0, b1)
			if !ok {
				if show {
					out.WriteString("%(")
				}
				continue
			}
			i += 1 + n
			i += p.groupText(f[i:], ':', a0, a1, b0, b1, show && truth) + 1
			if i > len(f) {
				return len(f)
			}
			i += p.groupText(f[i:], ')', a0, a1, b0, b1, show && !truth)
		default:
			n, s := escape(f[i:], func(letter byte) (int, bool) { return groupNumber(letter, a0, a1, b0, b1) })
			if n == 0 {
				n, s = 1, "%"+f[i:i+1]
			}
			if show {
				out.WriteString(s)
			}
			i += n - 1
		}
	}
	return len(f)
}

// condition reads "A=B?" of a conditional.
func (p *pair) condition(f string, a0, a1, b0, b1 int) (n int, truth, ok bool) {
	eq, q := strings.IndexByte(f, '='), strings.IndexByte(f, '?')
	if eq < 0 || q < eq {
		return 0, false, false
	}
	value := func(s string) (int, bool) {
		if v, err := strconv.Atoi(s); err == nil {
			return v, true
		}
		if len(s) != 1 {
			return 0, false
		}
		return groupNumber(s[0], a0, a1, b0, b1)
	}
	x, ok1 := value(f[:eq])
	y, ok2 := value(f[eq+1 : q])
	return q + 1, x == y, ok1 && ok2
}

// groupNumber is a number about a group: lower case for the old lines, upper case for the new.
func groupNumber(letter byte, a0, a1, b0, b1 int) (int, bool) {
	from, end := a0, a1
	if letter >= 'A' && letter <= 'Z' {
		from, end = b0, b1
	}
	switch letter | 0x20 {
	case 'e':
		return from, true
	case 'f':
		return from + 1, true
	case 'l':
		return end, true
	case 'm':
		return end + 1, true
	case 'n':
		return end - from, true
	}
	return 0, false
}

// escape reads %c'C', %c'\O' or %[-]['][WIDTH][.PREC]{doxX}LETTER behind the percent sign; n is 0 if it is none.
func escape(f string, number func(letter byte) (int, bool)) (n int, s string) {
	if strings.HasPrefix(f, "c'") {
		end := strings.IndexByte(f[2:], '\'')
		if end < 0 {
			return 0, ""
		}
		body := f[2 : 2+end]
		if end == 0 && strings.HasPrefix(f, "c'''") {
			return 4, "'"
		}
		if v, err := strconv.ParseUint(strings.TrimPrefix(body, `\`), 8, 8); len(body) > 1 && body[0] == '\\' && err == nil {
			return end + 3, string([]byte{byte(v)})
		}
		if len(body) != 1 {
			return 0, ""
		}
		return end + 3, body
	}
	i := 0
	for i < len(f) && strings.IndexByte("-'0123456789.", f[i]) >= 0 {
		i++
	}
	if i+1 >= len(f) || strings.IndexByte("doxX", f[i]) < 0 || i > 12 {
		return 0, ""
	}
	v, ok := number(f[i+1])
	if !ok {
		return 0, ""
	}
	spec := "%" + strings.ReplaceAll(f[:i], "'", "") + f[i:i+1]
	if w := strings.TrimLeft(strings.TrimPrefix(f[:i], "-"), "0"); len(w) > 5 {
		return 0, ""
	}
	return i + 2, fmt.Sprintf(spec, v)
}

// lines writes lines of a group, by the line format of their role.
func (p *pair) lines(t *text, role, from, end int) {
	out := p.d.t.Out
	for i := from; i < end; i++ {
		f := p.d.line[role]
		if f == nil {
			p.d.text(t.lines[i])
			if t.complete(i) {
				out.WriteByte('\n')
			}
			continue
		}
		p.formatLine(*f, t, i)
	}
}

func (p *pair) formatLine(f string, t *text, i int) {
	out := p.d.t.Out
	for k := 0; k < len(f); k++ {
		if f[k] != '%' || k+1 == len(f) {
			out.WriteByte(f[k])
			continue
		}
		k++
		switch f[k] {
		case '%':
			out.WriteByte('%')
		case 'l', 'L':
			p.d.text(t.lines[i])
			if f[k] == 'L' && t.complete(i) {
				out.WriteByte('\n')
			}
		default:
			n, s := escape(f[k:], func(letter byte) (int, bool) { return i + 1, letter == 'n' })
			if n == 0 {
				n, s = 1, "%"+f[k:k+1]
			}
			out.WriteString(s)
			k += n - 1
		}
	}
}
