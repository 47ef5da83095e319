package sed

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"agentrun.dev/command/posixre"
)

// chunk is one -e or -f.
type chunk struct {
	name, text string
	file       bool
}

// addrKind says how an address selects lines.
type addrKind uint8

const (
	addrNone addrKind = iota
	addrLine          // number n
	addrStep          // n~step
	addrLast          // $
	addrRegex
	addrZero     // 0, before the first line
	addrPlus     // +n lines after the first address
	addrMultiple // ~n: the next line that is a multiple
)

type address struct {
	kind    addrKind
	n, step int64
	re      *regex // nil for the empty expression: the last one used
}

// regex is an expression of the script.
type regex struct {
	re *posixre.Regexp
}

// command is one command of the script.
type command struct {
	a1, a2 address
	negate bool
	state  int // index of its range's state
	name   byte
	text   string // of a, i, c; a file name; a label
	num    int    // of q, Q, l, L
	target int    // of b, t, T, {: the index to go to
	sub    *substitution
	trans  map[rune]rune
	where  string // for errors while running
}

const maxCommands = 1 << 20

type parser struct {
	chunks []chunk
	o      options
	at     int // chunk
	pos    int // in the chunk
	cmds   []command
	blocks []int
	labels map[string]int
	ranges int
	files  []string // to be opened for writing
	silent bool     // the script begins with #n
}

func newParser(chunks []chunk, o options) *parser {
	p := &parser{chunks: chunks, o: o, labels: map[string]int{}}
	if first := chunks[0].text; first == "#n" || strings.HasPrefix(first, "#n\n") {
		p.silent = true
	}
	return p
}

const eof = -1

// next reads a character; between chunks there is a newline.
func (p *parser) next() int {
	if p.at >= len(p.chunks) {
		return eof
	}
	text := p.chunks[p.at].text
	p.pos++
	if p.pos <= len(text) {
		return int(text[p.pos-1])
	}
	if p.at+1 < len(p.chunks) {
		p.at++
		p.pos = 0
		return '\n'
	}
	return eof
}

// back undoes the last next that returned no newline between chunks.
func (p *parser) back(c int) {
	if c == eof {
		p.pos--
		return
	}
	if p.pos == 0 && p.at > 0 {
		p.at--
		p.pos = len(p.chunks[p.at].text)
		return
	}
	p.pos--
}

func (p *parser) peek() int {
	c := p.next()
	p.back(c)
	return c
}

func (p *parser) skipBlanks() int {
	c := p.next()
	for c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' {
		c = p.next()
	}
	return c
}

func (p *parser) where(char int) string {
	if p.at >= len(p.chunks) {
		return ""
	}
	c := p.chunks[p.at]
	if c.file {
		return fmt.Sprintf("file %s line %d: ", c.name, 1+strings.Count(c.text[:min(p.pos, len(c.text))], "\n"))
	}
	return fmt.Sprintf("%s, char %d: ", c.name, char)
}

func (p *parser) bad(format string, args ...any) error {
	n := 0
	if p.at < len(p.chunks) {
		n = min(p.pos, len(p.chunks[p.at].text))
	}
	return errors.New(p.where(n) + fmt.Sprintf(format, args...))
}

func (p *parser) bad0(format string, args ...any) error {
	return errors.New(p.where(0) + fmt.Sprintf(format, args...))
}

// errLabel marks an error whose exit status is another; it has no text.
var errLabel = errors.New("")

// program parses all chunks and resolves labels.
func (p *parser) program() ([]command, error) {
	for {
		done, err := p.command()
		if err != nil {
			return nil, err
		}
		if done {
			break
		}
		if len(p.cmds) > maxCommands {
			return nil, p.bad("too many commands")
		}
	}
	if len(p.blocks) > 0 {
		return nil, p.bad0("unmatched `{'")
	}
	for i := range p.cmds {
		c := &p.cmds[i]
		switch c.name {
		case 'b', 't', 'T':
			if c.text == "" {
				c.target = len(p.cmds)
				continue
			}
			target, ok := p.labels[c.text]
			if !ok {
				return nil, fmt.Errorf("can't find label for jump to `%s'%w", c.text, errLabel)
			}
			c.target = target
		}
	}
	return p.cmds, nil
}

// command parses one command; done says that there are no more.
func (p *parser) command() (done bool, err error) {
	c := p.skipBlanks()
	for c == ';' || c == '\n' {
		c = p.skipBlanks()
	}
	if c == eof {
		return true, nil
	}
	cmd := command{state: -1, where: p.where(0)}
	if c, err = p.addresses(&cmd, c); err != nil {
		return false, err
	}
	for c == '!' {
		if cmd.negate {
			return false, p.bad("multiple `!'s")
		}
		cmd.negate = true
		if c = p.skipBlanks(); c == '!' {
			return false, p.bad("multiple `!'s")
		}
	}
	if c == eof || c == '\n' {
		return false, p.bad("missing command")
	}
	cmd.name = byte(c)
	return false, p.body(&cmd)
}

func (p *parser) addresses(cmd *command, c int) (int, error) {
	ok, err := p.address(&cmd.a1, c)
	if err != nil || !ok {
		return c, err
	}
	if cmd.a1.kind == addrPlus || cmd.a1.kind == addrMultiple {
		return c, p.bad("invalid usage of +N or ~N as first address")
	}
	c = p.skipBlanks()
	if c == ',' {
		c = p.skipBlanks()
		ok, err := p.address(&cmd.a2, c)
		if err != nil {
			return c, err
		}
		if !ok {
			return c, p.bad("unexpected `,'")
		}
		if cmd.a2.kind == addrZero {
			cmd.a2 = address{kind: addrLine, n: 0}
		}
		c = p.skipBlanks()
		cmd.state = p.ranges
		p.ranges++
	}
	if cmd.a1.kind == addrZero && cmd.a2.kind != addrRegex {
		return c, p.bad("invalid usage of line address 0")
	}
	return c, nil
}

func (p *parser) number(c int) (n int64, _ error) {
	for c >= '0' && c <= '9' {
		n = min(n*10+int64(c-'0'), 1<<60)
		c = p.next()
	}
	p.back(c)
	return n, nil
}

// address parses an address that may begin with c.
func (p *parser) address(a *address, c int) (ok bool, err error) {
	switch {
	case c == '/' || c == '\\':
		delim := c
		if c == '\\' {
			if delim = p.next(); delim == eof || delim == '\n' {
				return false, p.bad("unterminated address regex")
			}
		}
		text, ok := p.delimited(byte(delim), true)
		if !ok {
			return false, p.bad("unterminated address regex")
		}
		var fold, multi bool
		for {
			c := p.skipBlanks()
			if c == 'I' {
				fold = true
			} else if c == 'M' {
				multi = true
			} else {
				p.back(c)
				break
			}
		}
		a.kind = addrRegex
		a.re, err = p.regex(text, fold, multi)
		return true, err
	case c >= '0' && c <= '9':
		a.n, _ = p.number(c)
		a.kind = addrLine
		if c = p.skipBlanks(); c == '~' {
			a.kind = addrStep
			c = p.skipBlanks()
			if c >= '0' && c <= '9' {
				a.step, _ = p.number(c)
			} else {
				p.back(c)
			}
			if a.step <= 0 {
				a.kind = addrLine
			}
			if a.kind == addrStep {
				return true, nil
			}
		} else {
			p.back(c)
		}
		if a.n == 0 {
			a.kind = addrZero
		}
		return true, nil
	case c == '+' || c == '~':
		a.kind = addrPlus
		if c == '~' {
			a.kind = addrMultiple
		}
		c = p.skipBlanks()
		if c < '0' || c > '9' {
			return false, p.bad("expected number") // as an incomplete address
		}
		a.n, _ = p.number(c)
		return true, nil
	case c == '$':
		a.kind = addrLast
		return true, nil
	}
	return false, nil
}

// delimited reads up to an unescaped delimiter. An escaped delimiter loses its backslash; in a regular expression an
// escaped newline becomes \n.
func (p *parser) delimited(delim byte, isRegex bool) (string, bool) {
	var b strings.Builder
	for {
		c := p.next()
		switch {
		case c == eof, c == '\n' && isRegex:
			return "", false
		case c == int(delim):
			return b.String(), true
		case c == '[' && isRegex:
			b.WriteByte('[')
			if !p.bracket(&b) {
				return "", false
			}
		case c == '\\':
			c = p.next()
			switch {
			case c == eof:
				return "", false
			case c == int(delim):
				if isRegex && strings.IndexByte("ntfvra", delim) >= 0 {
					b.WriteByte(delim)
					continue
				}
				if !isRegex && delim == '&' {
					b.WriteByte('\\')
				}
			case c == 'n' && isRegex:
				b.WriteString(`\n`)
				continue
			case c == '\n' && isRegex:
				b.WriteString(`\n`)
				continue
			default:
				b.WriteByte('\\')
			}
			b.WriteByte(byte(c))
		default:
			b.WriteByte(byte(c))
		}
	}
}

// bracket copies a bracket expression after its [, in which the delimiter ends nothing and a backslash
// is a plain character.
func (p *parser) bracket(b *strings.Builder) bool {
	for n := 0; ; n++ {
		c := p.next()
		switch {
		case c == eof, c == '\n':
			return false
		case c == '^' && n == 0:
			n--
			b.WriteByte('^')
			if c = p.peek(); c == ']' {
				p.next()
				b.WriteByte(']')
			}
			n = 1
			continue
		case c == ']' && n > 0:
			b.WriteByte(']')
			return true
		case c == '[' && (p.peek() == ':' || p.peek() == '.' || p.peek() == '='):
			kind := p.next()
			b.WriteByte('[')
			b.WriteByte(byte(kind))
			for last := 0; ; {
				c := p.next()
				if c == eof || c == '\n' {
					return false
				}
				b.WriteByte(byte(c))
				if last == kind && c == ']' {
					break
				}
				last = c
			}
			continue
		}
		b.WriteByte(byte(c))
	}
}

// regex compiles an expression; an empty one is nil.
func (p *parser) regex(text string, fold, multi bool) (*regex, error) {
	if text == "" {
		if fold || multi {
			return nil, p.bad("cannot specify modifiers on empty regexp")
		}
		return nil, nil
	}
	o := posixre.Options{Fold: fold, Multiline: multi}
	if p.o.extended {
		o.Flavor = posixre.Extended
	}
	re, err := posixre.Compile(unescapeRegex(text), o)
	if err != nil {
		return nil, p.bad("%s", err)
	}
	return &regex{re: re}, nil
}

// end checks that nothing but ; } # or a newline follows a command.
func (p *parser) end() error {
	switch c := p.skipBlanks(); c {
	case eof, '\n', ';':
	case '}', '#':
		p.back(c)
	default:
		return p.bad("extra characters after command")
	}
	return nil
}

// body parses what follows a command's letter, and adds the command.
func (p *parser) body(cmd *command) error {
	one := cmd.a2.kind != addrNone
	switch cmd.name {
	case '#':
		if cmd.a1.kind != addrNone {
			return p.bad("comments don't accept any addresses")
		}
		for c := p.next(); c != eof && c != '\n'; {
			c = p.next()
		}
		return nil
	case ':':
		if cmd.a1.kind != addrNone {
			return p.bad(": doesn't want any addresses")
		}
		label := p.label("")
		if label == "" {
			return p.bad("\":\" lacks a label")
		}
		p.labels[label] = len(p.cmds)
		return nil
	case '{':
		p.blocks = append(p.blocks, len(p.cmds))
		p.cmds = append(p.cmds, *cmd)
		return nil
	case '}':
		if len(p.blocks) == 0 {
			return p.bad("unexpected `}'")
		}
		if cmd.a1.kind != addrNone {
			return p.bad("} doesn't want any addresses")
		}
		p.cmds[p.blocks[len(p.blocks)-1]].target = len(p.cmds)
		p.blocks = p.blocks[:len(p.blocks)-1]
		return p.end()
	case '=', 'd', 'D', 'F', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z':
		p.cmds = append(p.cmds, *cmd)
		return p.end()
	case 'a', 'i', 'c':
		return p.textCommand(cmd)
	case 'b', 't', 'T':
		cmd.text = p.label("}")
		p.cmds = append(p.cmds, *cmd)
		return nil
	case 'q', 'Q':
		if one {
			return p.bad("command only uses one address")
		}
		fallthrough
	case 'l', 'L':
		cmd.num = -1
		c := p.skipBlanks()
		if c >= '0' && c <= '9' {
			n, _ := p.number(c)
			cmd.num = int(min(n, 1<<31-1))
		} else {
			p.back(c)
		}
		p.cmds = append(p.cmds, *cmd)
		return p.end()
	case 'e':
		if p.o.sandbox {
			return p.bad("e/r/w commands disabled in sandbox mode")
		}
		cmd.text = p.rest()
		p.cmds = append(p.cmds, *cmd)
		return nil
	case 'r', 'R', 'w', 'W':
		return p.fileCommand(cmd)
	case 's':
		return p.substitute(cmd)
	case 'v':
		label := p.label("")
		if label != "" && newer(label) {
			return p.bad("expected newer version of sed")
		}
		return nil
	case 'y':
		return p.transliterate(cmd)
	}
	return p.bad("unknown command: `%c'", cmd.name)
}

// newer reports whether a version is beyond 4.9.
func newer(v string) bool {
	major, minor, _ := strings.Cut(v, ".")
	minor, _, _ = strings.Cut(minor, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	if err2 != nil {
		b = 0
	}
	return err1 != nil || a > 4 || a == 4 && b > 9
}

// label reads a label, which ends at blanks, a semicolon or what else is given.
func (p *parser) label(ends string) string {
	var b strings.Builder
	c := p.skipBlanks()
	for c != eof && c != '\n' && c != ';' && c != ' ' && c != '\t' && strings.IndexByte(ends, byte(c)) < 0 {
		b.WriteByte(byte(c))
		c = p.next()
	}
	if c != eof && strings.IndexByte(ends, byte(c)) >= 0 {
		p.back(c)
	}
	if c == ' ' || c == '\t' {
		// what follows a blank is another command
		if c = p.skipBlanks(); c != ';' && c != '\n' {
			p.back(c)
		}
	}
	return b.String()
}

// rest reads to the end of the line.
func (p *parser) rest() string {
	var b strings.Builder
	for c := p.skipBlanks(); c != eof && c != '\n'; c = p.next() {
		b.WriteByte(byte(c))
	}
	return b.String()
}

func (p *parser) fileCommand(cmd *command) error {
	if p.o.sandbox {
		return p.bad("e/r/w commands disabled in sandbox mode")
	}
	cmd.text = p.rest()
	if cmd.text == "" {
		return p.bad("missing filename in r/R/w/W commands")
	}
	if cmd.name == 'w' || cmd.name == 'W' {
		p.files = append(p.files, cmd.text)
	}
	p.cmds = append(p.cmds, *cmd)
	return nil
}

// textCommand parses a, i and c: "a\" and lines, or "a text" on one line. A backslash before a newline continues the text.
func (p *parser) textCommand(cmd *command) error {
	c := p.skipBlanks()
	if c == eof {
		return p.bad("expected \\ after `a', `c' or `i'")
	}
	if c == '\\' {
		c = p.skipBlanks()
		if c == '\n' {
			c = p.next()
		} else {
			// "a\text": blanks after the backslash belong to the text if they are escaped so
			p.back(c)
			for p.pos > 0 && p.at < len(p.chunks) && p.pos <= len(p.chunks[p.at].text) && (p.chunks[p.at].text[p.pos-1] == ' ' || p.chunks[p.at].text[p.pos-1] == '\t') {
				p.pos--
			}
			c = p.next()
		}
		if c == eof {
			p.cmds = append(p.cmds, *cmd)
			return nil
		}
	}
	var b strings.Builder
	for c != eof && c != '\n' {
		if c == '\\' {
			c = p.next()
			switch {
			case c == eof:
			case c == '\n':
				b.WriteByte('\n')
			default:
				b.WriteByte('\\')
				b.WriteByte(byte(c))
			}
			if c == eof {
				break
			}
		} else {
			b.WriteByte(byte(c))
		}
		c = p.next()
	}
	cmd.text = unescapeText(b.String()) + "\n"
	p.cmds = append(p.cmds, *cmd)
	return nil
}

func (p *parser) transliterate(cmd *command) error {
	delim := p.next()
	if delim == eof || delim == '\n' || delim == '\\' {
		return p.bad("unterminated `y' command")
	}
	from, ok1 := p.delimited(byte(delim), false)
	if !ok1 {
		return p.bad("unterminated `y' command")
	}
	to, ok2 := p.delimited(byte(delim), false)
	if !ok2 {
		return p.bad("unterminated `y' command")
	}
	a, b := []rune(unescapeY(from)), []rune(unescapeY(to))
	if len(a) != len(b) {
		return p.bad("strings for `y' command are different lengths")
	}
	cmd.trans = make(map[rune]rune, len(a))
	for i, r := range a {
		if _, dup := cmd.trans[r]; !dup {
			cmd.trans[r] = b[i]
		}
	}
	p.cmds = append(p.cmds, *cmd)
	return p.end()
}
