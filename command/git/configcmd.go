package git

import (
	"sort"
	"strconv"
	"strings"
)

type configOptions struct {
	file, kind, action, otherwise         string
	global, system, local                 bool
	nul, names, origin, scope, hasDefault bool
	fixed                                 bool
}

func (c *configOptions) option(o *options) bool {
	switch o.name {
	case "--global":
		c.global = true
	case "--system":
		c.system = true
	case "--local", "--worktree":
		c.local = true
	case "-f", "--file":
		c.file = o.arg()
	case "--get", "--get-all", "--get-regexp", "--add", "--unset", "--unset-all", "--replace-all", "--rename-section", "--remove-section", "--get-urlmatch":
		c.action = o.name[2:]
	case "-l", "--list":
		c.action = "list"
	case "-e", "--edit":
		c.action = "edit"
	case "--type":
		c.kind = o.arg()
	case "--bool", "--int", "--path", "--bool-or-int", "--expiry-date":
		c.kind = o.name[2:]
	case "--no-type":
		c.kind = ""
	case "-z", "--null":
		c.nul = true
	case "--name-only":
		c.names = true
	case "--show-origin":
		c.origin = true
	case "--show-scope":
		c.scope = true
	case "--default":
		c.otherwise, c.hasDefault = o.arg(), true
	case "--includes", "--no-includes":
	case "--fixed-value":
		c.fixed = true
	default:
		return false
	}
	return true
}

func (r *repo) cmdConfig(args []string) int {
	var c configOptions
	o := r.options("config", args)
	for o.next() {
		if !c.option(o) {
			o.unknown()
		}
	}
	rest := o.operands()
	file := c.file
	if file != "" {
		file = r.abs(file)
	}
	if c.local && r.dir == "" {
		r.fatal("--local can only be used inside a git repository")
	}
	switch {
	case c.global:
		file = r.globalConfig()
		if r.t.Getenv("HOME") == "" && r.t.Getenv("GIT_CONFIG_GLOBAL") == "" {
			r.fatal("$HOME not set")
		}
	case c.system:
		file = "/etc/gitconfig"
	case c.local:
		file = r.common + "/config"
	}
	if c.action == "" {
		switch len(rest) {
		case 0:
			r.die(129, "usage: git config [<options>]\n")
		case 1:
			c.action = "get"
		case 2:
			c.action = "set"
		case 3:
			c.action = "replace"
		default:
			r.die(129, "error: wrong number of arguments, should be from 1 to 2")
		}
	}
	switch c.action {
	case "list", "get", "get-all", "get-regexp", "get-urlmatch":
		return r.readSettings(&c, file, rest)
	case "edit":
		if file == "" {
			file = r.common + "/config"
		}
		if !r.edit(file) {
			return 1
		}
		return 0
	}
	if file == "" {
		if r.dir == "" {
			r.fatal("not in a git directory")
		}
		file = r.common + "/config"
	}
	return r.changeSettings(&c, file, rest)
}

func (r *repo) readSettings(c *configOptions, file string, rest []string) int {
	list := r.config().list
	if file != "" {
		if _, err := r.t.Stat(file); err != nil && (c.file != "" || c.action == "list") {
			if c.action == "list" {
				r.fatal("unable to read config file '%s': %s", r.originName(file), strerror(err))
			}
			return 1
		}
		list = r.readConfig(file)
	}
	end, eq := "\n", "="
	if c.nul {
		end, eq = "\x00", "\n"
	}
	prefix := func(s setting) string {
		p := ""
		if c.scope {
			p = r.scopeOf(s.file) + "\t"
		}
		if c.origin {
			if s.file == "command line" {
				return p + "command line:\t"
			}
			return p + "file:" + r.originName(s.file) + "\t"
		}
		return p
	}
	if c.action == "list" {
		for _, s := range list {
			switch {
			case c.names || s.bare:
				r.printf("%s%s%s", prefix(s), s.key, end)
			default:
				r.printf("%s%s%s%s%s", prefix(s), s.key, eq, s.value, end)
			}
		}
		return 0
	}
	if len(rest) == 0 {
		r.die(129, "error: wrong number of arguments, should be from 1 to 2")
	}
	if c.action == "get-regexp" {
		return r.settingsLike(c, list, rest, prefix, end)
	}
	key, ok := canonKey(rest[0])
	if !ok {
		return r.badKey(rest[0])
	}
	var value func(string) bool
	if len(rest) > 1 {
		value = r.valuePattern(c, rest[1])
	}
	var found []setting
	for _, s := range list {
		if s.key == key && (value == nil || value(s.value)) {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		if c.hasDefault {
			r.printf("%s%s", r.typed(c, key, setting{value: c.otherwise}), end)
			return 0
		}
		return 1
	}
	if c.action == "get" {
		found = found[len(found)-1:]
	}
	for _, s := range found {
		r.printf("%s%s%s", prefix(s), r.typed(c, key, s), end)
	}
	return 0
}

// originName is a file as --show-origin names it: the repository's own relative to the work tree.
func (r *repo) originName(file string) string {
	if r.root != "" {
		if rest, ok := strings.CutPrefix(file, r.root+"/"); ok && strings.HasPrefix(rest, ".git/") {
			return rest
		}
	}
	return file
}

func (r *repo) scopeOf(file string) string {
	switch {
	case file == "command line":
		return "command"
	case file == "/etc/gitconfig":
		return "system"
	case r.common != "" && file == r.common+"/config":
		return "local"
	}
	return "global"
}

func (r *repo) settingsLike(c *configOptions, list []setting, rest []string, prefix func(setting) string, end string) int {
	pattern := rest[0]
	if i := strings.LastIndexByte(pattern, '.'); i >= 0 {
		pattern = pattern[:i] + strings.ToLower(pattern[i:])
	}
	match := r.pattern(pattern, true, false, false)
	var value func(string) bool
	if len(rest) > 1 {
		value = r.valuePattern(c, rest[1])
	}
	status := 1
	for _, s := range list {
		if !match(s.key) || value != nil && !value(s.value) {
			continue
		}
		status = 0
		switch {
		case c.names || s.bare:
			r.printf("%s%s%s", prefix(s), s.key, end)
		default:
			sep := " "
			if c.nul {
				sep = "\n"
			}
			r.printf("%s%s%s%s%s", prefix(s), s.key, sep, r.typed(c, s.key, s), end)
		}
	}
	return status
}

// valuePattern compiles an expression for values; a leading ! negates it.
func (r *repo) valuePattern(c *configOptions, p string) func(string) bool {
	if c.fixed {
		return func(s string) bool { return s == p }
	}
	p, not := strings.CutPrefix(p, "!")
	m := r.pattern(p, true, false, false)
	return func(s string) bool { return m(s) != not }
}

func (r *repo) badKey(key string) int {
	switch i := strings.LastIndexByte(key, '.'); {
	case i <= 0:
		r.say("error: key does not contain a section: %s", key)
	case i == len(key)-1:
		r.say("error: key does not contain variable name: %s", key)
	default:
		r.say("error: invalid key: %s", key)
	}
	return 1
}

// typed renders a value as its type wants it.
func (r *repo) typed(c *configOptions, key string, s setting) string {
	switch c.kind {
	case "bool":
		if s.bare {
			return "true"
		}
		v, ok := parseBool(s.value)
		if !ok {
			r.fatal("bad boolean config value '%s' for '%s'", s.value, key)
		}
		return strconv.FormatBool(v)
	case "int":
		n, ok := parseSize(s.value)
		if !ok {
			r.fatal("bad numeric config value '%s' for '%s': invalid unit", s.value, key)
		}
		return strconv.FormatInt(n, 10)
	case "bool-or-int":
		if n, ok := parseSize(s.value); ok {
			return strconv.FormatInt(n, 10)
		}
		v, ok := parseBool(s.value)
		if !ok && !s.bare {
			r.fatal("bad numeric config value '%s' for '%s': invalid unit", s.value, key)
		}
		return strconv.FormatBool(v || s.bare)
	case "path":
		return r.homePath(s.value)
	}
	return s.value
}

func parseSize(s string) (int64, bool) {
	mul := int64(1)
	if s != "" {
		switch s[len(s)-1] | 0x20 {
		case 'k':
			mul = 1 << 10
		case 'm':
			mul = 1 << 20
		case 'g':
			mul = 1 << 30
		}
		if mul > 1 {
			s = s[:len(s)-1]
		}
	}
	n, err := strconv.ParseInt(s, 0, 64)
	return n * mul, err == nil
}

func (r *repo) changeSettings(c *configOptions, file string, rest []string) int {
	need := map[string]int{"set": 2, "replace": 3, "add": 2, "unset": 1, "unset-all": 1, "replace-all": 2, "rename-section": 2, "remove-section": 1}[c.action]
	if len(rest) < need {
		r.die(129, "error: wrong number of arguments, should be %d", need)
	}
	switch c.action {
	case "rename-section":
		if !r.renameSection(rest[0], rest[1]) {
			r.fatal("no such section: %s", rest[0])
		}
		return 0
	case "remove-section":
		if !r.removeSection(file, rest[0]) {
			r.fatal("no such section: %s", rest[0])
		}
		return 0
	}
	key, ok := canonKey(rest[0])
	if !ok {
		return r.badKey(rest[0])
	}
	var value *string
	if need > 1 {
		v := rest[1]
		if c.kind != "" && c.kind != "path" {
			v = r.typed(c, key, setting{value: v})
		}
		value = &v
	}
	var existing []setting
	if _, err := r.t.Stat(file); err == nil {
		for _, s := range r.readConfig(file) {
			if s.key == key {
				existing = append(existing, s)
			}
		}
	}
	matching := len(existing)
	pattern := ""
	if len(rest) > need || c.action == "replace" {
		pattern = rest[len(rest)-1]
		m := r.valuePattern(c, pattern)
		matching = 0
		for _, s := range existing {
			if m(s.value) {
				matching++
			}
		}
	}
	switch c.action {
	case "unset", "unset-all":
		if matching == 0 {
			return 5
		}
		if matching > 1 && c.action == "unset" {
			r.say("warning: %s has multiple values", rest[0])
			return 5
		}
	case "set", "replace":
		if matching > 1 {
			r.say("warning: %s has multiple values\nerror: cannot overwrite multiple values with a single value\n       Use a regexp, --add or --replace-all to change %s.", rest[0], rest[0])
			return 5
		}
	}
	r.editSetting(file, rest[0], key, value, c.action == "add", pattern, c)
	return 0
}

// editSetting changes a file. The name is written as it was given.
func (r *repo) editSetting(file, given, key string, value *string, add bool, pattern string, c *configOptions) {
	b, _ := r.t.ReadFile(file, maxSmall)
	var only func(string) bool
	if pattern != "" {
		only = r.valuePattern(c, pattern)
	}
	name := given[strings.LastIndexByte(given, '.')+1:]
	text, _ := editConfigName(string(b), key, name, value, add, only)
	if dir := strings.LastIndexByte(file, '/'); dir > 0 && file == r.globalConfig() {
		r.mkdirAll(file[:dir])
	}
	if err := r.writeFile(file, []byte(text), 0o666); err != nil {
		r.say("error: could not lock config file %s: %s", r.originName(file), strerror(err))
		r.t.Exit(255)
	}
	r.conf = nil
}

// remotes are the names of all remotes, sorted.
func (r *repo) remotes() (list []string) {
	seen := map[string]bool{}
	for _, s := range r.config().list {
		rest, ok := strings.CutPrefix(s.key, "remote.")
		if !ok {
			continue
		}
		if i := strings.LastIndexByte(rest, '.'); i > 0 && !seen[rest[:i]] {
			seen[rest[:i]] = true
			list = append(list, rest[:i])
		}
	}
	sort.Strings(list)
	return list
}
