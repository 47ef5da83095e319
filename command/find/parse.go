package find

import (
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/posixre"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// node is part of the expression.
type node interface {
	eval(f *finder, e *entry) bool
}

type (
	and   struct{ list []node }
	or    struct{ list []node }
	comma struct{ list []node }
	not   struct{ x node }
	test  func(f *finder, e *entry) bool
)

func (n test) eval(f *finder, e *entry) bool { return n(f, e) }
func (n not) eval(f *finder, e *entry) bool  { return !n.x.eval(f, e) }
func (n and) eval(f *finder, e *entry) bool {
	for _, x := range n.list {
		if !x.eval(f, e) || f.quit {
			return false
		}
	}
	return true
}
func (n or) eval(f *finder, e *entry) bool {
	for _, x := range n.list {
		if x.eval(f, e) || f.quit {
			return true
		}
	}
	return false
}
func (n comma) eval(f *finder, e *entry) bool {
	v := false
	for _, x := range n.list {
		if v = x.eval(f, e); f.quit {
			return v
		}
	}
	return v
}

func (f *finder) eval(n node, e *entry) { n.eval(f, e) }

// parser reads the expression.
type parser struct {
	f      *finder
	args   []string
	pos    int
	action bool // there is an action other than -prune, so -print isn't implied
	depth  int
}

// maxParens bounds nested parentheses.
const maxParens = 1000

func (f *finder) parse(args []string) {
	p := &parser{f: f, args: args}
	if len(args) == 0 {
		f.root = test(printAction("\n"))
		return
	}
	root := p.list()
	if p.pos < len(args) {
		switch args[p.pos] {
		case ")":
			f.t.Fatal(1, "invalid expression; you have too many ')'")
		}
		f.t.Fatal(1, "paths must precede expression: `%s'", args[p.pos])
	}
	if !p.action {
		root = and{[]node{root, test(printAction("\n"))}}
	}
	f.root = root
}

func (p *parser) peek() string {
	if p.pos < len(p.args) {
		return p.args[p.pos]
	}
	return ""
}

func (p *parser) more() bool { return p.pos < len(p.args) }

func (p *parser) list() node {
	list := []node{p.or()}
	for p.more() && p.peek() == "," {
		p.pos++
		p.operand(",")
		list = append(list, p.or())
	}
	if len(list) == 1 {
		return list[0]
	}
	return comma{list}
}

// operand checks that something follows an operator.
func (p *parser) operand(op string) {
	if !p.more() {
		p.f.t.Fatal(1, "expected an expression after '%s'", op)
	}
}

func (p *parser) or() node {
	list := []node{p.and()}
	for p.more() && (p.peek() == "-o" || p.peek() == "-or") {
		op := p.peek()
		p.pos++
		p.operand(op)
		list = append(list, p.and())
	}
	if len(list) == 1 {
		return list[0]
	}
	return or{list}
}

func (p *parser) and() node {
	list := []node{p.not()}
	for p.more() {
		switch op := p.peek(); op {
		case ")", ",", "-o", "-or":
			if len(list) == 1 {
				return list[0]
			}
			return and{list}
		case "-a", "-and":
			p.pos++
			p.operand(op)
		}
		list = append(list, p.not())
	}
	if len(list) == 1 {
		return list[0]
	}
	return and{list}
}

func (p *parser) not() node {
	if op := p.peek(); op == "!" || op == "-not" {
		p.pos++
		p.operand(op)
		return not{p.not()}
	}
	return p.primary()
}

func (p *parser) primary() node {
	a := p.peek()
	p.pos++
	switch a {
	case "(":
		if p.depth++; p.depth > maxParens {
			p.f.t.Fatal(1, "the expression is nested too deeply")
		}
		if p.peek() == ")" && p.more() {
			p.f.t.Fatal(1, "invalid expression; empty parentheses are not allowed.")
		}
		if !p.more() {
			p.f.t.Fatal(1, "invalid expression; expected to find a ')' but didn't see one. Perhaps you need an extra predicate after '('")
		}
		n := p.list()
		if p.peek() != ")" || !p.more() {
			p.f.t.Fatal(1, "invalid expression; I was expecting to find a ')' somewhere but did not see one.")
		}
		p.pos++
		p.depth--
		return n
	case ")":
		p.f.t.Fatal(1, "invalid expression; you have too many ')'")
	case "-o", "-or", "-a", "-and", ",":
		p.f.t.Fatal(1, "invalid expression; you have used a binary operator '%s' with nothing before it.", a)
	case "":
		p.f.t.Fatal(1, "invalid expression")
	}
	if len(a) == 0 || a[0] != '-' {
		p.f.t.Warn("paths must precede expression: `%s'", a)
		if p.pos >= 2 {
			p.f.t.Warn("possible unquoted pattern after predicate `%s'?", p.args[p.pos-2])
		}
		p.f.t.Exit(1)
	}
	return p.predicate(a)
}

// arg takes a predicate's argument.
func (p *parser) arg(pred string) string {
	if !p.more() {
		p.f.t.Fatal(1, "missing argument to `%s'", pred)
	}
	a := p.args[p.pos]
	p.pos++
	return a
}

// numberTest is +N, -N or N.
type numberTest struct {
	sign byte
	n    int64
}

func (p *parser) number(pred, s string) numberTest {
	t := numberTest{}
	digits := s
	if s != "" && (s[0] == '+' || s[0] == '-') {
		t.sign, digits = s[0], s[1:]
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || digits[0] == '-' || digits[0] == '+' {
		p.f.t.Fatal(1, "invalid argument `%s' to `%s'", s, pred)
	}
	t.n = n
	return t
}

func (t numberTest) match(n int64) bool {
	switch t.sign {
	case '+':
		return n > t.n
	case '-':
		return n < t.n
	}
	return n == t.n
}

func (p *parser) predicate(a string) node {
	f := p.f
	switch a {
	case "-help", "--help":
		f.t.Out.WriteString(help)
		f.t.Exit(0)
	case "-version", "--version":
		f.t.Version(&tool.Spec{Package: tool.Findutils})
		f.t.Exit(0)
	case "-depth", "-d":
		f.depth = true
		return always
	case "-daystart":
		f.dayStart = true
		return always
	case "-follow":
		f.follow = 'L'
		return always
	case "-maxdepth", "-mindepth":
		s := p.arg(a)
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || strings.Trim(s, "0123456789") != "" {
			f.t.Fatal(1, "Expected a positive decimal integer argument to %s, but got %s", a, tool.Quote(s))
		}
		if a == "-maxdepth" {
			f.maxDepth = n
		} else {
			f.minDepth = n
		}
		return always
	case "-mount", "-xdev":
		f.xdev = true
		return always
	case "-noleaf", "-warn", "-nowarn", "-ignore_readdir_race", "-noignore_readdir_race":
		return always
	case "-regextype":
		f.regexType = p.arg(a)
		f.flavor()
		return always
	case "-true":
		return always
	case "-false":
		return test(func(*finder, *entry) bool { return false })
	}
	if n := p.nameTest(a); n != nil {
		return n
	}
	if n := p.timeTest(a); n != nil {
		return n
	}
	if n := p.attrTest(a); n != nil {
		return n
	}
	if n := p.actionNode(a); n != nil {
		return n
	}
	f.t.Fatal(1, "unknown predicate `%s'", a)
	return nil
}

var always = test(func(*finder, *entry) bool { return true })

func (f *finder) flavor() posixre.Options {
	switch f.regexType {
	case "emacs", "findutils-default":
		return posixre.Options{Flavor: posixre.Emacs}
	case "posix-extended", "posix-egrep", "egrep", "awk", "posix-awk", "gnu-awk", "posix-minimal-basic-extended":
		return posixre.Options{Flavor: posixre.Extended, Grep: strings.HasSuffix(f.regexType, "grep")}
	case "grep", "posix-basic", "sed", "ed", "posix-minimal-basic":
		return posixre.Options{Flavor: posixre.Basic}
	}
	f.t.Fatal(1, "Unknown regular expression type %s; valid types are %s.", tool.Quote(f.regexType),
		"‘findutils-default’, ‘ed’, ‘emacs’, ‘gnu-awk’, ‘grep’, ‘posix-awk’, ‘awk’, ‘posix-basic’, ‘posix-egrep’, ‘egrep’, ‘posix-extended’, ‘posix-minimal-basic’, ‘sed’")
	return posixre.Options{}
}

func (p *parser) nameTest(a string) node {
	switch a {
	case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-lname", "-ilname":
		pattern := p.arg(a)
		var flags tool.GlobFlags
		if strings.HasPrefix(a, "-i") {
			flags = tool.GlobFold
			a = "-" + a[2:]
		}
		switch a {
		case "-name":
			return test(func(f *finder, e *entry) bool { return tool.Glob(pattern, e.base(), flags) })
		case "-lname":
			return test(func(f *finder, e *entry) bool {
				target, err := f.t.Readlink(e.path)
				return err == nil && tool.Glob(pattern, target, flags)
			})
		}
		return test(func(f *finder, e *entry) bool { return tool.Glob(pattern, e.path, flags) })
	case "-regex", "-iregex":
		o := p.f.flavor()
		o.Fold = a == "-iregex"
		o.Wrap = [2]string{`\A(?:`, `)\z`}
		re, err := posixre.Compile(p.arg(a), o)
		if err != nil {
			p.f.t.Fatal(1, "failed to compile regular expression '%s': %s", p.args[p.pos-1], err)
		}
		return test(func(f *finder, e *entry) bool {
			ok, err := re.Match([]byte(e.path))
			if err != nil {
				f.t.Fatal(1, "%s", err)
			}
			return ok
		})
	}
	return nil
}

func timeOf(a *vfs.Attr, c byte) time.Time {
	switch c {
	case 'a':
		return a.Atime
	case 'c', 'B':
		return a.Ctime
	}
	return a.Mtime
}

func (p *parser) timeTest(a string) node {
	f := p.f
	switch a {
	case "-amin", "-cmin", "-mmin", "-atime", "-ctime", "-mtime":
		s := p.arg(a)
		unit := 24 * time.Hour
		if strings.HasSuffix(a, "min") {
			unit = time.Minute
		}
		return p.age(a, s, unit)
	case "-used":
		n := p.number(a, p.arg(a))
		return test(func(f *finder, e *entry) bool {
			at := f.stat(e)
			return n.match(int64(at.Atime.Sub(at.Ctime) / (24 * time.Hour)))
		})
	case "-newer", "-anewer", "-cnewer":
		which := byte('m')
		if a != "-newer" {
			which = a[1]
		}
		return p.newer(which, 'm', p.arg(a))
	}
	if len(a) == 8 && strings.HasPrefix(a, "-newer") {
		x, y := a[6], a[7]
		if strings.IndexByte("aBcm", x) < 0 || strings.IndexByte("aBcmt", y) < 0 {
			return nil
		}
		if y == 't' {
			s := p.arg(a)
			at, err := f.t.ParseDate(s, f.start)
			if err != nil {
				f.t.Fatal(1, "I cannot figure out how to interpret %s as a date or time", tool.Quote(s))
			}
			return test(func(f *finder, e *entry) bool { return timeOf(f.stat(e), x).After(at) })
		}
		return p.newer(x, y, p.arg(a))
	}
	return nil
}

func (p *parser) newer(x, y byte, ref string) node {
	a, err := p.f.lookup(ref, 0)
	if err != nil {
		p.f.t.Fatal(1, "%s: %s", tool.Quote(ref), tool.Strerror(err))
	}
	at := timeOf(&a, y)
	return test(func(f *finder, e *entry) bool { return timeOf(f.stat(e), x).After(at) })
}

// age is -mtime and its kin: how many whole units ago.
func (p *parser) age(pred, s string, unit time.Duration) node {
	which := pred[1]
	sign, digits := byte(0), s
	if s != "" && (s[0] == '+' || s[0] == '-') {
		sign, digits = s[0], s[1:]
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || n < 0 || n > 1e9 {
		p.f.t.Fatal(1, "invalid argument `%s' to `%s'", s, pred)
	}
	origin := p.f.start
	if p.f.dayStart {
		y, m, d := origin.Date()
		origin = time.Date(y, m, d+1, 0, 0, 0, 0, origin.Location())
	}
	age := time.Duration(n * float64(unit))
	return test(func(f *finder, e *entry) bool {
		d := origin.Sub(timeOf(f.stat(e), which))
		switch sign {
		case '+':
			return d >= age+unit && unit > time.Minute || unit == time.Minute && d > age
		case '-':
			return d < age
		}
		if unit == time.Minute {
			return d > age-unit && d <= age
		}
		return d >= age && d < age+unit
	})
}

// typeLetters are -type's.
const typeLetters = "bcdpflsD"

func typeLetter(m vfs.Mode) byte {
	switch m & vfs.ModeType {
	case vfs.ModeBlock:
		return 'b'
	case vfs.ModeChar:
		return 'c'
	case vfs.ModeDir:
		return 'd'
	case vfs.ModeFIFO:
		return 'p'
	case vfs.ModeRegular:
		return 'f'
	case vfs.ModeSymlink:
		return 'l'
	case vfs.ModeSocket:
		return 's'
	}
	return 'U'
}

func (p *parser) types(pred string) string {
	s := p.arg(pred)
	if s == "" {
		p.f.t.Fatal(1, "Arguments to %s should contain at least one letter", pred)
	}
	letters := ""
	for s != "" {
		part := s[:1]
		switch {
		case !strings.Contains(typeLetters, part):
			p.f.t.Fatal(1, "Unknown argument to %s: %s", pred, part)
		case strings.Contains(letters, part):
			p.f.t.Fatal(1, "Duplicate file type '%s' in the argument list to %s.", part, pred)
		case s[1:] == ",":
			p.f.t.Fatal(1, "Last file type in list argument to %s is missing, i.e., list is ending on: ','", pred)
		case len(s) > 1 && s[1] != ',':
			p.f.t.Fatal(1, "Must separate multiple arguments to %s using: ','", pred)
		}
		letters += part
		s = s[min(2, len(s)):]
	}
	return letters
}

func (p *parser) attrTest(a string) node {
	f := p.f
	stat := func(g func(*vfs.Attr) bool) node {
		return test(func(f *finder, e *entry) bool {
			at := f.stat(e)
			return !e.bad && g(at)
		})
	}
	switch a {
	case "-type":
		letters := p.types(a)
		return test(func(f *finder, e *entry) bool {
			if e.kind == 0 {
				f.stat(e)
			}
			return strings.IndexByte(letters, typeLetter(e.kind)) >= 0
		})
	case "-xtype":
		letters := p.types(a)
		return test(func(f *finder, e *entry) bool {
			look := f.t.Stat
			if f.follow == 'L' {
				look = f.t.Lstat
			}
			at, err := look(e.path)
			if err != nil {
				at, err = f.t.Lstat(e.path)
			}
			return err == nil && strings.IndexByte(letters, typeLetter(at.Mode)) >= 0
		})
	case "-size":
		return p.size()
	case "-empty":
		return test(empty)
	case "-perm":
		return p.perm()
	case "-links":
		n := p.number(a, p.arg(a))
		return stat(func(at *vfs.Attr) bool { return n.match(int64(at.Nlink)) })
	case "-inum":
		n := p.number(a, p.arg(a))
		return stat(func(at *vfs.Attr) bool { return n.match(int64(at.Ino)) })
	case "-uid":
		n := p.number(a, p.arg(a))
		return stat(func(at *vfs.Attr) bool { return n.match(int64(at.UID)) })
	case "-gid":
		n := p.number(a, p.arg(a))
		return stat(func(at *vfs.Attr) bool { return n.match(int64(at.GID)) })
	case "-user":
		name := p.arg(a)
		uid, ok := f.users().LookupUID(name)
		if !ok {
			f.t.Fatal(1, "%s is not the name of a known user", tool.Quote(name))
		}
		return stat(func(at *vfs.Attr) bool { return at.UID == uid })
	case "-group":
		name := p.arg(a)
		gid, ok := f.users().LookupGID(name)
		if !ok {
			f.t.Fatal(1, "%s is not the name of an existing group", tool.Quote(name))
		}
		return stat(func(at *vfs.Attr) bool { return at.GID == gid })
	case "-nouser":
		return stat(func(at *vfs.Attr) bool { return f.users().UserByID(at.UID) == nil })
	case "-nogroup":
		return stat(func(at *vfs.Attr) bool {
			return f.users().GroupName(at.GID) == strconv.FormatUint(uint64(at.GID), 10)
		})
	case "-readable", "-writable", "-executable":
		mode := map[byte]int{'r': 4, 'w': 2, 'e': 1}[a[1]]
		return test(func(f *finder, e *entry) bool { return f.t.Access(e.path, mode) == nil })
	case "-samefile":
		ref := p.arg(a)
		at, err := f.lookup(ref, 0)
		if err != nil {
			f.t.Fatal(1, "%s: %s", tool.Quote(ref), tool.Strerror(err))
		}
		return stat(func(x *vfs.Attr) bool { return x.Ino == at.Ino && x.Dev == at.Dev })
	case "-fstype":
		p.arg(a)
		return test(func(*finder, *entry) bool { return false })
	}
	return nil
}

func (f *finder) users() *tool.Accounts {
	if f.accounts == nil {
		f.accounts = f.t.Accounts()
	}
	return f.accounts
}

func (p *parser) size() node {
	s := p.arg("-size")
	unit, digits := int64(512), s
	if s != "" {
		if i := strings.IndexByte("bcwkMG", s[len(s)-1]); i >= 0 {
			unit = []int64{512, 1, 2, 1024, 1 << 20, 1 << 30}[i]
			digits = s[:len(s)-1]
		} else if c := s[len(s)-1]; c < '0' || c > '9' {
			p.f.t.Fatal(1, "invalid -size type `%c'", c)
		}
	}
	if strings.Trim(digits, "+-0123456789") != "" || strings.Trim(digits, "+-") == "" {
		p.f.t.Fatal(1, "Invalid argument `%s' to -size", s)
	}
	n := p.number("-size", digits)
	return test(func(f *finder, e *entry) bool {
		a := f.stat(e)
		return n.match((a.Size + unit - 1) / unit)
	})
}

func empty(f *finder, e *entry) bool {
	a := f.stat(e)
	switch {
	case a.Mode.IsRegular():
		return a.Size == 0
	case a.Mode.IsDir():
		list, err := f.t.ReadDir(e.path)
		if err != nil {
			f.fail("%s: %s", tool.Quote(e.path), tool.Strerror(err))
			return false
		}
		return len(list) == 0
	}
	return false
}

// perm is -perm MODE, -MODE (all bits) or /MODE (any bit).
func (p *parser) perm() node {
	s := p.arg("-perm")
	kind, text := byte(0), s
	if s != "" && (s[0] == '-' || s[0] == '/') {
		kind, text = s[0], s[1:]
	}
	change, err := tool.ParseMode(text)
	if err != nil {
		p.f.t.Fatal(1, "invalid mode %s", tool.Quote(s))
	}
	want := change.Apply(0, 0)
	wantDir := change.Apply(vfs.ModeDir, 0)
	return test(func(f *finder, e *entry) bool {
		a := f.stat(e)
		w := want
		if a.Mode.IsDir() {
			w = wantDir
		}
		m := a.Mode & vfs.ModePerm
		switch kind {
		case '-':
			return m&w == w
		case '/':
			return w == 0 || m&w != 0
		}
		return m == w
	})
}
