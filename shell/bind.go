package shell

import (
	"slices"
	"strconv"
	"strings"

	"agentrun.dev/shell/lineedit"
)

// readlineState is what bind has changed. Its maps are replaced, not changed.
type readlineState struct {
	vars map[string]string
	keys map[string]map[string]string // by keymap: emacs, vi-insert, vi
}

// readlineDefaults are the variables, in the order in which they are listed.
const readlineDefaults = `bind-tty-special-chars on;blink-matching-paren off;byte-oriented off;colored-completion-prefix off;colored-stats off;completion-ignore-case off;` +
	`completion-map-case off;convert-meta off;disable-completion off;echo-control-characters on;enable-active-region on;enable-bracketed-paste on;enable-keypad off;` +
	`enable-meta-key on;expand-tilde off;history-preserve-point off;horizontal-scroll-mode off;input-meta on;mark-directories on;mark-modified-lines off;` +
	`mark-symlinked-directories off;match-hidden-files on;menu-complete-display-prefix off;meta-flag on;output-meta on;page-completions on;prefer-visible-bell on;` +
	`print-completions-horizontally off;revert-all-at-newline off;show-all-if-ambiguous off;show-all-if-unmodified off;show-mode-in-prompt off;skip-completed-text off;` +
	`visible-stats off;bell-style audible;comment-begin #;completion-display-width -1;completion-prefix-display-length 0;completion-query-items 100;editing-mode emacs;` +
	`emacs-mode-string @;history-size 0;keymap emacs;keyseq-timeout 500;vi-cmd-mode-string (cmd);vi-ins-mode-string (ins)`

func (rl *readlineState) get(name string) string {
	if v, ok := rl.vars[name]; ok {
		return v
	}
	for _, s := range strings.Split(readlineDefaults, ";") {
		if v, ok := strings.CutPrefix(s, name+" "); ok {
			return v
		}
	}
	return ""
}

func (rl *readlineState) known(name string) bool {
	for _, s := range strings.Split(readlineDefaults, ";") {
		if strings.HasPrefix(s, name+" ") {
			return true
		}
	}
	return false
}

func (rl *readlineState) keysOf(vi bool) map[string]string {
	if vi {
		return rl.keys["vi-insert"]
	}
	return rl.keys["emacs"]
}

// bound returns what a keymap binds: readline's own bindings, and those that were changed.
func (rl *readlineState) bound(keymap string) map[string]string {
	m := make(map[string]string)
	for k, v := range lineedit.Bindings(keymap) {
		m[k] = v
	}
	for k, v := range rl.keys[keymap] {
		if m[k] = v; v == "" {
			delete(m, k)
		}
	}
	return m
}

func (rl *readlineState) bind(keymap, key, to string) {
	all := make(map[string]map[string]string)
	for k, v := range rl.keys {
		all[k] = v
	}
	m := make(map[string]string)
	for k, v := range all[keymap] {
		m[k] = v
	}
	m[key] = to
	all[keymap] = m
	rl.keys = all
}

func (rl *readlineState) setVar(name, value string) {
	m := make(map[string]string)
	for k, v := range rl.vars {
		m[k] = v
	}
	m[name] = value
	rl.vars = m
}

func readlineCommands() []string { return lineedit.Commands() }

// keymapName folds the names of a keymap into one.
func keymapName(s string) (string, bool) {
	switch s {
	case "emacs", "emacs-standard", "emacs-meta", "emacs-ctlx":
		return "emacs", true
	case "vi", "vi-command", "vi-move":
		return "vi", true
	case "vi-insert":
		return s, true
	}
	return "", false
}

const bindUsage = "bind [-lpsvPSVX] [-m keymap] [-f filename] [-q name] [-u name] [-r keyseq] [-x keyseq:shell-command] [keyseq:readline-function or readline-command]"

// bindArgs are what bind was asked for.
type bindArgs struct {
	show                   string // letters of what is listed
	keymap                 string
	file, query, un, unkey string
	run                    string
	given                  string // letters of the options that take a value
}

func builtinBind(sh *Shell, args []string) int {
	if !sh.opts.interactive {
		sh.errorf("bind: warning: line editing not enabled")
	}
	args = args[1:]
	o := bindArgs{keymap: "emacs"}
	if sh.opts.vi {
		o.keymap = "vi-insert"
	}
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		opt := args[0]
		args = args[1:]
		if opt == "--" {
			break
		}
		for i := 1; i < len(opt); i++ {
			c := opt[i]
			if strings.IndexByte("lpsvPSVX", c) >= 0 {
				o.show += string(c)
				continue
			}
			if strings.IndexByte("mfqurx", c) < 0 {
				return sh.badOption("bind", "-"+string(c), bindUsage)
			}
			val := opt[i+1:]
			if val == "" {
				if len(args) == 0 {
					sh.errorf("bind: -%c: option requires an argument", c)
					return sh.usage(bindUsage)
				}
				val, args = args[0], args[1:]
			}
			o.given += string(c)
			switch c {
			case 'm':
				name, ok := keymapName(val)
				if !ok {
					sh.errorf("bind: `%s': invalid keymap name", val)
					return 1
				}
				o.keymap = name
			case 'f':
				o.file = val
			case 'q':
				o.query = val
			case 'u':
				o.un = val
			case 'r':
				o.unkey = val
			case 'x':
				o.run = val
			}
			break
		}
	}
	return sh.bindDo(&o, args)
}

func (sh *Shell) bindDo(o *bindArgs, args []string) int {
	rl := &sh.readline
	for _, c := range o.show {
		sh.bindList(byte(c), o.keymap)
	}
	st := 0
	for _, c := range o.given {
		switch c {
		case 'f':
			data, err := sh.readFile(o.file, 1<<20)
			if err != nil {
				sh.errorf("bind: %s: cannot read: %s", o.file, strerror(err))
				return 1
			}
			for _, line := range strings.Split(string(data), "\n") {
				sh.bindLine(strings.TrimSpace(line), o.keymap)
			}
		case 'q':
			st = sh.bindQuery(o.query, o.keymap)
		case 'u':
			if !slices.Contains(lineedit.Commands(), o.un) {
				sh.errorf("bind: `%s': unknown function name", o.un)
				return 1
			}
			for k, v := range rl.bound(o.keymap) {
				if v == o.un {
					rl.bind(o.keymap, k, "")
				}
			}
		case 'r':
			rl.bind(o.keymap, decodeKey(o.unkey), "")
		case 'x':
			if key, cmd, ok := splitBinding(o.run); ok {
				if n := len(cmd); n > 1 && (cmd[0] == '"' || cmd[0] == '\'') && cmd[n-1] == cmd[0] {
					cmd = cmd[1 : n-1]
				}
				rl.bind(o.keymap, key, "\x01"+cmd)
			} else {
				sh.errorf("bind: %s: first non-whitespace character is not `\"'", o.run)
				st = 1
			}
		}
	}
	for _, a := range args {
		if !sh.bindLine(a, o.keymap) {
			st = 1
		}
	}
	return st
}

// splitBinding splits "key": what.
func splitBinding(s string) (key, what string, ok bool) {
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, `"`) {
		name, rest, found := strings.Cut(s, ":")
		return decodeKeyName(strings.TrimSpace(name)), strings.TrimSpace(rest), found
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			rest := strings.TrimSpace(s[i+1:])
			what, ok = strings.CutPrefix(rest, ":")
			return decodeKey(s[1:i]), strings.TrimSpace(what), ok
		}
	}
	return "", "", false
}

// decodeKeyName reads a key's name, such as Control-u or Meta-Rubout.
func decodeKeyName(s string) string {
	meta, control := false, false
	for {
		low := strings.ToLower(s)
		switch {
		case strings.HasPrefix(low, "control-"):
			control, s = true, s[8:]
		case strings.HasPrefix(low, "c-") && len(s) > 2:
			control, s = true, s[2:]
		case strings.HasPrefix(low, "meta-"):
			meta, s = true, s[5:]
		case strings.HasPrefix(low, "m-") && len(s) > 2:
			meta, s = true, s[2:]
		default:
			named := map[string]string{"rubout": "\x7f", "del": "\x7f", "esc": "\x1b", "escape": "\x1b", "lfd": "\n", "newline": "\n", "ret": "\r", "return": "\r", "spc": " ", "space": " ", "tab": "\t"}
			if k, ok := named[low]; ok {
				s = k
			} else if len(s) > 1 {
				s = s[:1]
			}
			if control && s != "" {
				s = controlKey(s[0])
			}
			if meta {
				s = "\x1b" + s
			}
			return s
		}
	}
}

func controlKey(c byte) string {
	if c == '?' {
		return "\x7f"
	}
	return string([]byte{upper(c) & 0x1f})
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - 32
	}
	return c
}

// decodeKey reads a key sequence with readline's escapes.
func decodeKey(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		rest := s[i:]
		switch c := s[i]; {
		case (strings.HasPrefix(rest, "C-") || strings.HasPrefix(rest, "M-")) && len(rest) > 2:
			meta := c == 'M'
			i += 2
			rest = s[i:]
			control := !meta
			if strings.HasPrefix(rest, `\C-`) && len(rest) > 3 {
				control = true
				i += 3
			} else if strings.HasPrefix(rest, `\M-`) && len(rest) > 3 {
				meta = true
				i += 3
			}
			key := s[i : i+1]
			if control {
				key = controlKey(s[i])
			}
			if meta {
				key = "\x1b" + key
			}
			b.WriteString(key)
		case c == 'e':
			b.WriteByte(0x1b)
		case strings.IndexByte("abdfnrtv", c) >= 0:
			b.WriteByte("\a\b\x7f\f\n\r\t\v"[strings.IndexByte("abdfnrtv", c)])
		case c >= '0' && c <= '7':
			n, j := 0, i
			for j < len(s) && j < i+3 && s[j] >= '0' && s[j] <= '7' {
				n = n<<3 | int(s[j]-'0')
				j++
			}
			b.WriteByte(byte(n))
			i = j - 1
		case c == 'x' && len(rest) > 1:
			j := i + 1
			for j < len(s) && j < i+3 && strings.IndexByte("0123456789abcdefABCDEF", s[j]) >= 0 {
				j++
			}
			if n, err := strconv.ParseUint(s[i+1:j], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i = j - 1
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// encodeKey writes a key as bind lists it.
func encodeKey(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == 0x1b:
			b.WriteString(`\e`)
		case c == 0x7f:
			b.WriteString(`\C-?`)
		case c < 0x20:
			k := c | 0x40
			if k >= 'A' && k <= 'Z' {
				k += 32
			}
			b.WriteString(`\C-` + string(k))
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// readInputrc reads INPUTRC or ~/.inputrc. Of its conditions only mode= is known; others hold for bash.
func (sh *Shell) readInputrc() {
	file := sh.str("INPUTRC")
	if file == "" {
		file = sh.str("HOME") + "/.inputrc"
	}
	data, err := sh.readFile(file, 1<<20)
	if err != nil {
		return
	}
	keymap := "emacs"
	var skip []bool // of each $if: what follows doesn't count
	for _, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		switch word, rest, _ := strings.Cut(line, " "); word {
		case "$if":
			mode, isMode := strings.CutPrefix(strings.TrimSpace(rest), "mode=")
			term := strings.HasPrefix(rest, "term=")
			skip = append(skip, isMode && (mode == "vi") != sh.opts.vi || !isMode && !term && !strings.EqualFold(strings.TrimSpace(rest), "bash"))
			continue
		case "$else":
			if n := len(skip); n > 0 {
				skip[n-1] = !skip[n-1]
			}
			continue
		case "$endif":
			skip = skip[:max(0, len(skip)-1)]
			continue
		}
		if slices.Contains(skip, true) {
			continue
		}
		if name, ok := strings.CutPrefix(line, "set keymap "); ok {
			if m, known := keymapName(strings.TrimSpace(name)); known {
				keymap = m
			}
			continue
		}
		sh.bindLine(line, keymap)
	}
}

func (sh *Shell) bindQuery(fn, keymap string) int {
	if !slices.Contains(lineedit.Commands(), fn) {
		sh.errorf("bind: `%s': unknown function name", fn)
		return 1
	}
	keys := keysFor(sh.readline.bound(keymap), fn)
	if len(keys) == 0 {
		sh.print(fn + " is not bound to any keys.\n")
		return 1
	}
	sh.print(fn + " can be invoked via " + someKeys(keys) + "\n")
	return 0
}

func keysFor(m map[string]string, fn string) []string {
	var keys []string
	for _, k := range sortedKeys(m) {
		if m[k] == fn {
			keys = append(keys, `"`+encodeKey(k)+`"`)
		}
	}
	return keys
}

// someKeys lists five.
func someKeys(keys []string) string {
	if len(keys) > 5 {
		return strings.Join(keys[:5], ", ") + ", ..."
	}
	return strings.Join(keys, ", ") + "."
}

func (sh *Shell) bindList(what byte, keymap string) {
	rl := &sh.readline
	m := rl.bound(keymap)
	switch what {
	case 'l':
		for _, n := range lineedit.Commands() {
			sh.print(n + "\n")
		}
	case 'v', 'V':
		for _, s := range strings.Split(readlineDefaults, ";") {
			name, _, _ := strings.Cut(s, " ")
			value := rl.get(name)
			switch {
			case name == "editing-mode" && sh.opts.vi:
				value = "vi"
			case name == "keymap" && sh.opts.vi:
				value = "vi-insert"
			}
			if what == 'v' {
				sh.print("set " + name + " " + value + "\n")
			} else {
				sh.print(name + " is set to `" + value + "'\n")
			}
		}
	case 'p', 'P':
		sh.print("\n")
		for _, n := range lineedit.Commands() {
			keys := keysFor(m, n)
			switch {
			case what == 'p' && len(keys) == 0:
				sh.print("# " + n + " (not bound)\n")
			case what == 'p':
				for _, k := range keys {
					sh.print(k + ": " + n + "\n")
				}
			case len(keys) == 0:
				sh.print(n + " is not bound to any keys\n")
			default:
				sh.print(n + " can be found on " + someKeys(keys) + "\n")
			}
		}
	case 's', 'S', 'X':
		for _, k := range sortedKeys(m) {
			v := m[k]
			switch {
			case v != "" && v[0] == 0 && what == 's':
				sh.print(`"` + encodeKey(k) + `": "` + encodeKey(v[1:]) + "\"\n")
			case v != "" && v[0] == 0 && what == 'S':
				sh.print(encodeKey(k) + " outputs " + encodeKey(v[1:]) + "\n")
			case v != "" && v[0] == 1 && what == 'X':
				sh.print(`"` + encodeKey(k) + `": "` + strings.ReplaceAll(v[1:], `"`, `\"`) + "\"\n")
			}
		}
	}
}

// bindLine takes a line as of inputrc: set variable value, or a binding.
func (sh *Shell) bindLine(line, keymap string) bool {
	rl := &sh.readline
	if line == "" || line[0] == '#' || line[0] == '$' {
		return true
	}
	if rest, ok := strings.CutPrefix(line, "set "); ok {
		name, value, _ := strings.Cut(strings.TrimSpace(rest), " ")
		value = strings.TrimSpace(value)
		name = strings.ToLower(name)
		switch {
		case name == "editing-mode":
			sh.opts.vi, sh.opts.emacs = value == "vi", value != "vi"
		case rl.known(name):
			if d := (&readlineState{}).get(name); d == "on" || d == "off" {
				if value == "" || value == "1" || strings.EqualFold(value, "on") {
					value = "on"
				} else {
					value = "off"
				}
			}
			rl.setVar(name, value)
		}
		return true
	}
	key, what, ok := splitBinding(line)
	if !ok || key == "" {
		return false
	}
	if n := len(what); n > 1 && (what[0] == '"' || what[0] == '\'') && what[n-1] == what[0] {
		rl.bind(keymap, key, "\x00"+decodeKey(what[1:n-1]))
		return true
	}
	what = strings.ToLower(what)
	if !slices.Contains(lineedit.Commands(), what) {
		return true // readline says nothing
	}
	rl.bind(keymap, key, what)
	return true
}
