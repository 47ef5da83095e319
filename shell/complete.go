package shell

import (
	"slices"
	"strings"

	"agentrun.dev/proc"
)

// compSpec says how the arguments of a command are completed. It is replaced, not changed.
type compSpec struct {
	opts    []string // -o, sorted
	actions []string // -A, in bash's order
	given   string   // the letters of those of the following that are set
	glob    string   // -G
	words   string   // -W
	prefix  string   // -P
	suffix  string   // -S
	filter  string   // -X
	command string   // -C
	fn      string   // -F
}

func (c *compSpec) has(opt string) bool { return slices.Contains(c.opts, opt) }

// compOptions are those of -o.
var compOptions = [...]string{"bashdefault", "default", "dirnames", "filenames", "noquote", "nosort", "nospace", "plusdirs"}

// compActions are those of -A, in the order in which they generate, with their short options.
var compActions = [...]struct {
	name   string
	letter byte
}{
	{"alias", 'a'}, {"arrayvar", 0}, {"binding", 0}, {"builtin", 'b'}, {"disabled", 0}, {"enabled", 0}, {"export", 'e'}, {"function", 0}, {"helptopic", 0},
	{"hostname", 0}, {"job", 'j'}, {"keyword", 'k'}, {"running", 0}, {"setopt", 0}, {"shopt", 0}, {"signal", 0}, {"stopped", 0}, {"variable", 'v'}, {"command", 'c'},
	{"file", 'f'}, {"user", 'u'}, {"group", 'g'}, {"service", 's'}, {"directory", 'd'},
}

// The names of completions that aren't commands'.
const (
	compEmpty   = "_EmptycmD_"
	compDefault = "_DefaultCmD_"
	compInitial = "_InitialWorD_"
)

const (
	completeUsage = "complete [-abcdefgjksuv] [-pr] [-DEI] [-o option] [-A action] [-G globpat] [-W wordlist] [-F function] [-C command] [-X filterpat] [-P prefix] [-S suffix] [name ...]"
	compgenUsage  = "compgen [-abcdefgjksuv] [-o option] [-A action] [-G globpat] [-W wordlist] [-F function] [-C command] [-X filterpat] [-P prefix] [-S suffix] [word]"
	compoptUsage  = "compopt [-o|+o option] [-DEI] [name ...]"
)

// compArgs are the arguments of complete and compgen.
type compArgs struct {
	spec          compSpec
	print, remove bool
	names         []string // -D, -E and -I
	rest          []string
}

func (sh *Shell) parseComp(name, usage string, args []string) (c compArgs, st int) {
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		opt := args[0]
		args = args[1:]
		if opt == "--" {
			break
		}
		for i := 1; i < len(opt); i++ {
			ch := opt[i]
			if k := slices.IndexFunc(compActions[:], func(a struct {
				name   string
				letter byte
			}) bool {
				return a.letter == ch && ch != 0
			}); k >= 0 {
				c.spec.actions = append(c.spec.actions, compActions[k].name)
				continue
			}
			if name == "complete" {
				switch ch {
				case 'p':
					c.print = true
					continue
				case 'r':
					c.remove = true
					continue
				case 'D':
					c.names = append(c.names, compDefault)
					continue
				case 'E':
					c.names = append(c.names, compEmpty)
					continue
				case 'I':
					c.names = append(c.names, compInitial)
					continue
				}
			}
			if strings.IndexByte("oAGWPSXCF", ch) < 0 {
				return c, sh.badOption(name, "-"+string(ch), usage)
			}
			val := opt[i+1:]
			if val == "" {
				if len(args) == 0 {
					sh.errorf("%s: -%c: option requires an argument", name, ch)
					return c, sh.usage(usage)
				}
				val, args = args[0], args[1:]
			}
			if st := sh.compOption(name, &c.spec, ch, val); st != 0 {
				return c, st
			}
			break
		}
	}
	slices.Sort(c.spec.opts)
	c.spec.opts = slices.Compact(c.spec.opts)
	c.rest = args
	return c, 0
}

func (sh *Shell) compOption(name string, c *compSpec, ch byte, val string) int {
	switch ch {
	case 'o':
		if !slices.Contains(compOptions[:], val) {
			sh.errorf("%s: %s: invalid option name", name, val)
			return 2
		}
		c.opts = append(c.opts, val)
		return 0
	case 'A':
		for _, a := range compActions {
			if a.name == val {
				c.actions = append(c.actions, val)
				return 0
			}
		}
		sh.errorf("%s: %s: invalid action name", name, val)
		return 2
	case 'G':
		c.glob = val
	case 'W':
		c.words = val
	case 'P':
		c.prefix = val
	case 'S':
		c.suffix = val
	case 'X':
		c.filter = val
	case 'C':
		c.command = val
	case 'F':
		if strings.ContainsAny(val, " \t\n|&;()<>") {
			sh.errorf("%s: `%s': not a valid identifier", name, val)
			return 2
		}
		c.fn = val
	}
	c.given += string(ch)
	return 0
}

// setComp sets or, with nil, removes what a name is completed by.
func (sh *Shell) setComp(name string, c *compSpec) {
	m := make(map[string]*compSpec, len(sh.comps)+1)
	for k, v := range sh.comps {
		if k != name {
			m[k] = v
		}
	}
	if c != nil {
		m[name] = c
	}
	sh.comps = m
}

func builtinComplete(sh *Shell, args []string) int {
	bare := len(args) == 1
	c, st := sh.parseComp("complete", completeUsage, args[1:])
	if st != 0 {
		return st
	}
	names := append(c.names, c.rest...)
	if len(c.names) > 0 {
		names = c.names
	}
	switch {
	case c.remove:
		if len(names) == 0 {
			sh.comps = nil
		}
		for _, n := range names {
			if sh.comps[n] == nil {
				sh.errorf("complete: %s: no completion specification", n)
				st = 1
				continue
			}
			sh.setComp(n, nil)
		}
	case c.print || bare:
		if len(names) == 0 {
			names = sortedKeys(sh.comps)
		}
		for _, n := range names {
			if sh.comps[n] == nil {
				sh.errorf("complete: %s: no completion specification", n)
				st = 1
				continue
			}
			sh.print(sh.comps[n].line(n) + "\n")
		}
	case len(names) == 0:
		return sh.usage(completeUsage)
	default:
		for _, n := range names {
			spec := c.spec
			sh.setComp(n, &spec)
		}
	}
	return st
}

// line writes a specification as complete -p does.
func (c *compSpec) line(name string) string {
	var b strings.Builder
	b.WriteString("complete ")
	for _, o := range c.opts {
		b.WriteString("-o " + o + " ")
	}
	for pass := range 2 {
		order := compActions[:]
		if pass == 0 {
			order = slices.Clone(order)
			slices.SortFunc(order, func(x, y struct {
				name   string
				letter byte
			}) int {
				return int(x.letter) - int(y.letter)
			})
		}
		for _, a := range order {
			switch {
			case !slices.Contains(c.actions, a.name):
			case a.letter != 0 && pass == 0:
				b.WriteString("-" + string(a.letter) + " ")
			case a.letter == 0 && pass == 1:
				b.WriteString("-A " + a.name + " ")
			}
		}
	}
	for _, f := range []struct {
		letter byte
		value  string
		quote  bool
	}{{'G', c.glob, true}, {'W', c.words, true}, {'P', c.prefix, true}, {'S', c.suffix, true}, {'X', c.filter, true}, {'C', c.command, true}, {'F', c.fn, false}} {
		if strings.IndexByte(c.given, f.letter) < 0 {
			continue
		}
		v := f.value
		if f.quote {
			v = quoteSingle(v)
		}
		b.WriteString("-" + string(f.letter) + " " + v + " ")
	}
	switch name {
	case compEmpty:
		name = "-E"
	case compDefault:
		name = "-D"
	case compInitial:
		name = "-I"
	case "":
		name = "''"
	default:
		name = quoteSet(name)
	}
	return b.String() + name
}

func builtinCompopt(sh *Shell, args []string) int {
	args = args[1:]
	var on, off, names []string
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') {
		opt := args[0]
		args = args[1:]
		if opt == "--" {
			break
		}
		switch opt[1:] {
		case "D":
			names = append(names, compDefault)
		case "E":
			names = append(names, compEmpty)
		case "I":
			names = append(names, compInitial)
		case "o":
			if len(args) == 0 {
				sh.errorf("compopt: %s: option requires an argument", opt)
				return sh.usage(compoptUsage)
			}
			if !slices.Contains(compOptions[:], args[0]) {
				sh.errorf("compopt: %s: invalid option name", args[0])
				return 2
			}
			if opt[0] == '-' {
				on = append(on, args[0])
			} else {
				off = append(off, args[0])
			}
			args = args[1:]
		default:
			return sh.badOption("compopt", opt[:2], compoptUsage)
		}
	}
	if len(names) == 0 {
		names = args
	}
	change := func(c compSpec) *compSpec {
		opts := slices.DeleteFunc(append(slices.Clone(c.opts), on...), func(o string) bool { return slices.Contains(off, o) })
		slices.Sort(opts)
		c.opts = slices.Compact(opts)
		return &c
	}
	if len(names) == 0 {
		if sh.compNow == nil {
			sh.errorf("compopt: not currently executing completion function")
			return 1
		}
		if len(on)+len(off) == 0 {
			sh.print(compoptLine(sh.compNow, sh.compName))
			return 0
		}
		sh.compNow = change(*sh.compNow)
		return 0
	}
	st := 0
	for _, n := range names {
		c := sh.comps[n]
		switch {
		case c == nil:
			sh.errorf("compopt: %s: no completion specification", n)
			st = 1
		case len(on)+len(off) == 0:
			sh.print(compoptLine(c, n))
		default:
			sh.setComp(n, change(*c))
		}
	}
	return st
}

func compoptLine(c *compSpec, name string) string {
	var b strings.Builder
	b.WriteString("compopt ")
	for _, o := range compOptions {
		sign := "+o "
		if c.has(o) {
			sign = "-o "
		}
		b.WriteString(sign + o + " ")
	}
	switch name {
	case compEmpty:
		name = "-E"
	case compDefault:
		name = "-D"
	case compInitial:
		name = "-I"
	}
	return b.String() + name + "\n"
}

func builtinCompgen(sh *Shell, args []string) int {
	if len(args) == 1 {
		return 0
	}
	c, st := sh.parseComp("compgen", compgenUsage, args[1:])
	if st != 0 {
		return st
	}
	word := ""
	if len(c.rest) > 0 {
		word = c.rest[0]
	}
	if c.spec.fn != "" {
		sh.errorf("compgen: warning: -F option may not work as you expect")
	}
	if c.spec.command != "" {
		sh.errorf("compgen: warning: -C option may not work as you expect")
	}
	saved, name := sh.compNow, sh.compName
	list, _ := sh.generate(&c.spec, compLine{name: "compgen", word: word, cword: -1})
	sh.compNow, sh.compName = saved, name
	if len(list) == 0 && (c.spec.has("bashdefault") || c.spec.has("default")) {
		list = sh.fileCandidates(word, false)
	}
	for _, s := range list {
		sh.print(s + "\n")
	}
	return int(b2i(len(list) == 0))
}

// compLine is the line that is completed.
type compLine struct {
	name  string // the command
	word  string // what is completed
	prev  string
	line  string
	point int
	words []string
	cword int
	kind  int // COMP_TYPE
}

// generate returns what a specification makes of a word. again tells that the function has asked to begin anew (124).
func (sh *Shell) generate(c *compSpec, l compLine) (list []string, again bool) {
	for _, a := range compActions {
		if slices.Contains(c.actions, a.name) {
			list = append(list, sh.compAction(a.name, l.word)...)
		}
	}
	begins := func(s string) bool { return strings.HasPrefix(s, l.word) }
	if c.glob != "" {
		for _, s := range sh.globCandidates(c.glob) {
			if begins(s) {
				list = append(list, s)
			}
		}
	}
	if c.words != "" {
		for _, s := range sh.wordCandidates(c.words) {
			if begins(s) {
				list = append(list, s)
			}
		}
	}
	now := c
	if l.name != "compgen" {
		sh.compNow, sh.compName = c, l.name
	}
	if c.fn != "" {
		var reply []string
		if reply, again = sh.compFunction(c.fn, l); again {
			return nil, true
		}
		list = append(list, reply...)
	}
	if c.command != "" {
		list = append(list, sh.compCommand(c.command, l)...)
	}
	if c.filter != "" {
		list = sh.filterComp(list, c.filter, l.word)
	}
	if c.prefix != "" || c.suffix != "" {
		for i, s := range list {
			list[i] = c.prefix + s + c.suffix
		}
	}
	if l.name != "compgen" {
		now = sh.compNow
	}
	if len(list) == 0 && now.has("dirnames") || now.has("plusdirs") {
		list = append(list, sh.fileCandidates(l.word, true)...)
	}
	return list, false
}

// filterComp is -X: & in the pattern is the word, ! keeps what matches.
func (sh *Shell) filterComp(list []string, filter, word string) []string {
	keep := strings.HasPrefix(filter, "!")
	filter = strings.TrimPrefix(filter, "!")
	var b strings.Builder
	for i := 0; i < len(filter); i++ {
		switch {
		case filter[i] == '\\' && i+1 < len(filter) && filter[i+1] == '&':
			b.WriteByte('&')
			i++
		case filter[i] == '&':
			b.WriteString(quoteBackslash(word))
		default:
			b.WriteByte(filter[i])
		}
	}
	pat := sh.compile(b.String(), true, sh.shopts.get("nocasematch"))
	return slices.DeleteFunc(list, func(s string) bool { return pat.match(s) != keep })
}

// compFunction calls a completion function and returns COMPREPLY.
func (sh *Shell) compFunction(name string, l compLine) (reply []string, again bool) {
	fn := sh.funcs[name]
	if fn == nil {
		sh.errorf("completion: function `%s' not found", name)
		return nil, false
	}
	sh.setCompVars(l)
	sh.nested(func() { sh.callFunc(fn, []string{name, l.name, l.word, l.prev}) })
	again = sh.status == 124
	if v := sh.lookup("COMPREPLY"); v != nil {
		if v.isArray() {
			reply, _ = elements(v)
		} else if s, ok := v.scalar(); ok {
			reply = []string{s}
		}
	}
	for _, n := range []string{"COMPREPLY", "COMP_LINE", "COMP_POINT", "COMP_WORDS", "COMP_CWORD", "COMP_TYPE", "COMP_KEY"} {
		sh.unset(n)
	}
	return slices.Clone(reply), again
}

func (sh *Shell) setCompVars(l compLine) {
	sh.set("COMP_LINE", l.line)
	sh.set("COMP_POINT", itoa(l.point))
	sh.set("COMP_TYPE", itoa(l.kind))
	sh.set("COMP_KEY", "9")
	v := sh.own("COMP_WORDS")
	v.attr, v.set, v.str, v.arr = v.attr|attrIndexed, true, "", &indexed{dense: slices.Clone(l.words)}
	sh.set("COMP_CWORD", itoa(l.cword))
}

// compCommand runs the command of -C: the lines that it writes are completions.
func (sh *Shell) compCommand(command string, l compLine) []string {
	for _, v := range [][2]string{{"COMP_LINE", l.line}, {"COMP_POINT", itoa(l.point)}, {"COMP_TYPE", itoa(l.kind)}, {"COMP_KEY", "9"}} {
		sh.set(v[0], v[1])
	}
	w := sh.textWord("$("+command+" "+quoteWord(l.name)+" "+quoteWord(l.word)+" "+quoteWord(l.prev)+")", modeHeredoc)
	if w == nil {
		return nil
	}
	st := sh.status
	out := strings.TrimRight(sh.heredoc(w), "\n")
	sh.status = st
	for _, n := range []string{"COMP_LINE", "COMP_POINT", "COMP_TYPE", "COMP_KEY"} {
		sh.unset(n)
	}
	if out == "" {
		return nil
	}
	return strings.Split(out, "\n")
}

// wordCandidates splits the list of -W as a command's arguments, at IFS; no file names are made of it.
func (sh *Shell) wordCandidates(text string) []string {
	if sh.textWord(text, modeText) == nil {
		sh.errorf("%s: bad substitution", text)
		panic(abort{kind: abortDiscard, status: 1})
	}
	noglob := sh.opts.noglob
	sh.opts.noglob = true
	defer func() { sh.opts.noglob = noglob }()
	e := &expander{sh: sh, split: true, litSplit: true}
	sh.rawSplit(e, text)
	var list []string
	for _, f := range e.fields {
		list = sh.globField(list, f)
	}
	return list
}

func (sh *Shell) globCandidates(pattern string) []string {
	e := &expander{sh: sh}
	sh.rawWord(e, pattern)
	var list []string
	for _, f := range e.fields {
		list = sh.globField(list, f)
	}
	if len(list) == 1 && list[0] == pattern {
		if _, err := sh.p.Stat(pattern); err != nil {
			return nil
		}
	}
	return list
}

// compAction lists what an action finds that begins with a word.
func (sh *Shell) compAction(kind, word string) []string {
	var all []string
	switch kind {
	case "file", "directory":
		return sh.fileCandidates(word, kind == "directory")
	case "variable":
		all = sh.allNames()
	case "arrayvar", "export":
		for _, n := range sh.allNames() {
			if v := sh.lookup(n); v != nil && (kind == "export" && v.attr&attrExport != 0 && v.set || kind == "arrayvar" && v.isArray()) {
				all = append(all, n)
			}
		}
	case "function":
		all = sortedKeys(sh.funcs)
	case "alias":
		all = sortedKeys(sh.aliases)
	case "builtin", "enabled", "disabled", "helptopic":
		for _, n := range builtinNames() {
			if off := sh.disabled[n]; off && kind == "enabled" || !off && kind == "disabled" {
				continue
			}
			all = append(all, n)
		}
	case "keyword":
		all = strings.Fields(keywordNames)
	case "command":
		all = sh.commandNames()
	case "shopt":
		all = shoptNames()
	case "setopt":
		for _, e := range optionTable() {
			all = append(all, e.name)
		}
	case "signal":
		all = append(all, "EXIT")
		for i := 1; i <= proc.MaxSignal; i++ {
			if n := proc.SignalName(i); n != "" {
				all = append(all, "SIG"+n)
			}
		}
		all = append(all, "DEBUG", "ERR", "RETURN")
	case "job", "running", "stopped":
		for _, j := range sh.jobs {
			if kind == "job" || kind == "running" && !j.done {
				name, _, _ := strings.Cut(j.text, " ")
				all = append(all, name)
			}
		}
	case "user", "group":
		all = sh.accountNames("/etc/" + map[string]string{"user": "passwd", "group": "group"}[kind])
	case "service":
		all = sh.serviceNames()
	case "hostname":
		all = sh.hostNames()
	case "binding":
		all = readlineCommands()
	}
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !strings.HasPrefix(s, word) })
}

const keywordNames = "if then else elif fi case esac for select while until do done in function time { } ! [[ ]] coproc"

// commandNames lists what can be run by its name.
func (sh *Shell) commandNames() []string {
	var out []string
	if sh.shopts.get("expand_aliases") {
		out = append(out, sortedKeys(sh.aliases)...)
	}
	out = append(out, strings.Fields(keywordNames)...)
	out = append(out, sortedKeys(sh.funcs)...)
	out = append(out, builtinNames()...)
	var files []string
	for _, dir := range strings.Split(sh.pathOr(), ":") {
		entries, _ := sh.p.ReadDir(dir)
		for _, e := range entries {
			if !e.Mode.IsDir() && sh.p.Access(strings.TrimSuffix(dir, "/")+"/"+e.Name, 1) == nil {
				files = append(files, e.Name)
			}
		}
	}
	slices.Sort(files)
	return append(out, slices.Compact(files)...)
}

func (sh *Shell) accountNames(file string) []string {
	data, _ := sh.readFile(file, 1<<20)
	var out []string
	for _, line := range strings.Split(string(data), "\n") {
		if name, _, ok := strings.Cut(line, ":"); ok && name != "" {
			out = append(out, name)
		}
	}
	return out
}

func (sh *Shell) serviceNames() []string {
	data, _ := sh.readFile("/etc/services", 1<<20)
	var out []string
	for _, line := range strings.Split(string(data), "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[0][0] != '#' {
			out = append(out, f[0])
		}
	}
	return out
}

func (sh *Shell) hostNames() []string {
	file := sh.str("HOSTFILE")
	if file == "" {
		file = "/etc/hosts"
	}
	data, _ := sh.readFile(file, 1<<20)
	var out []string
	for _, line := range strings.Split(string(data), "\n") {
		line, _, _ = strings.Cut(line, "#")
		if f := strings.Fields(line); len(f) > 1 {
			out = append(out, f[1:]...)
		}
	}
	return out
}

// fileCandidates lists the paths that begin with a word.
func (sh *Shell) fileCandidates(word string, dirs bool) []string {
	dir, base := "", word
	if i := strings.LastIndexByte(word, '/'); i >= 0 {
		dir, base = word[:i+1], word[i+1:]
	}
	where := dir
	if where == "" {
		where = "."
	}
	if strings.HasPrefix(where, "~") {
		user, rest, _ := strings.Cut(where[1:], "/")
		home, ok := sh.str("HOME"), user == ""
		if !ok {
			home, ok = sh.homeOf(user, 0)
		}
		if !ok {
			return nil
		}
		where = home + "/" + rest
	}
	entries, err := sh.p.ReadDir(where)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name, base) || e.Name[0] == '.' && base == "" {
			continue
		}
		if dirs && !e.Mode.IsDir() {
			if a, err := sh.p.Stat(strings.TrimSuffix(where, "/") + "/" + e.Name); err != nil || !a.Mode.IsDir() {
				continue
			}
		}
		out = append(out, dir+e.Name)
	}
	slices.Sort(out)
	return out
}
