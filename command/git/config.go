package git

import (
	"strconv"
	"strings"
)

// setting is one variable: section and name in lower case, the subsection as it is.
type setting struct {
	key   string // "section.name" or "section.Sub.name"
	value string
	bare  bool // without "=": true
	file  string
}

// settings are those of all files, the later ones stronger.
type settings struct{ list []setting }

// canonKey lowers the parts of a key that ignore case; ok is false if it isn't one.
func canonKey(key string) (string, bool) {
	first, last := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
	if first <= 0 || last == len(key)-1 {
		return key, false
	}
	name := key[last+1:]
	if !(name[0] >= 'a' && name[0] <= 'z' || name[0] >= 'A' && name[0] <= 'Z') || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return key, false
	}
	return strings.ToLower(key[:first]) + key[first:last] + strings.ToLower(key[last:]), true
}

func (s *settings) get(key string) (string, bool) {
	for i := len(s.list) - 1; i >= 0; i-- {
		if s.list[i].key == key {
			return s.list[i].value, true
		}
	}
	return "", false
}

func (s *settings) all(key string) (values []string) {
	for _, v := range s.list {
		if v.key == key {
			values = append(values, v.value)
		}
	}
	return values
}

func (s *settings) bool(key string, otherwise bool) bool {
	for i := len(s.list) - 1; i >= 0; i-- {
		if s.list[i].key == key {
			if s.list[i].bare {
				return true
			}
			if v, ok := parseBool(s.list[i].value); ok {
				return v
			}
			return otherwise
		}
	}
	return otherwise
}

func parseBool(s string) (v, ok bool) {
	switch strings.ToLower(s) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off", "":
		return false, true
	}
	n, err := strconv.Atoi(s)
	return n != 0, err == nil
}

// parseConfig reads a configuration file. line is where it is malformed, 0 if it isn't.
func parseConfig(text, file string) (list []setting, line int) {
	section := ""
	text = strings.TrimPrefix(text, "\ufeff")
	line = 1
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '\n':
			line++
			i++
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case c == '#' || c == ';':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case c == '[':
			end := i + 1
			quoted := false
			for end < len(text) && text[end] != '\n' && (quoted || text[end] != ']') {
				if text[end] == '\\' && quoted {
					end++
				} else if text[end] == '"' {
					quoted = !quoted
				}
				end++
			}
			if end >= len(text) || text[end] != ']' {
				return list, line
			}
			section = parseSection(text[i+1 : end])
			i = end + 1
		default:
			end := i
			for end < len(text) && (text[end] == '-' || text[end] >= '0' && text[end] <= '9' || text[end]|0x20 >= 'a' && text[end]|0x20 <= 'z') {
				end++
			}
			if end == i || section == "" {
				return list, line
			}
			s := setting{key: section + "." + strings.ToLower(text[i:end]), file: file}
			for end < len(text) && (text[end] == ' ' || text[end] == '\t') {
				end++
			}
			if end < len(text) && text[end] == '=' {
				var lines int
				var ok bool
				s.value, lines, i, ok = parseValue(text, end+1)
				if !ok {
					return list, line
				}
				line += lines
			} else {
				s.bare, i = true, end
				if end < len(text) && !strings.ContainsRune("\r\n#;", rune(text[end])) {
					return list, line
				}
			}
			list = append(list, s)
		}
	}
	return list, 0
}

func parseSection(s string) string {
	name, sub, has := strings.Cut(s, " ")
	if !has {
		return strings.ToLower(name)
	}
	sub = strings.Trim(sub, " \t")
	sub = strings.TrimSuffix(strings.TrimPrefix(sub, `"`), `"`)
	var b strings.Builder
	for i := 0; i < len(sub); i++ {
		if sub[i] == '\\' && i+1 < len(sub) {
			i++
		}
		b.WriteByte(sub[i])
	}
	return strings.ToLower(name) + "." + b.String()
}

// parseValue reads a value up to the end of its line: quotes, escapes, comments, continued lines.
func parseValue(text string, i int) (value string, lines, next int, ok bool) {
	var b strings.Builder
	quoted := false
	blank := 0 // trailing blanks outside of quotes
	for ; i < len(text) && (text[i] == ' ' || text[i] == '\t'); i++ {
	}
	for ; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\n':
			if quoted {
				return "", lines, i, false
			}
			return b.String()[:b.Len()-blank], lines, i, true
		case (c == '#' || c == ';') && !quoted:
			for i < len(text) && text[i] != '\n' {
				i++
			}
			return b.String()[:b.Len()-blank], lines, i, true
		case c == '"':
			quoted = !quoted
			blank = 0
		case c == '\\':
			if i++; i == len(text) {
				return "", lines, i, false
			}
			switch text[i] {
			case '\n':
				lines++
				continue
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case 'b':
				b.WriteByte('\b')
			case '\\', '"':
				b.WriteByte(text[i])
			default:
				return "", lines, i, false
			}
			blank = 0
		case c == '\r' && i+1 < len(text) && text[i+1] == '\n':
		default:
			b.WriteByte(c)
			if !quoted && (c == ' ' || c == '\t') {
				blank++
			} else {
				blank = 0
			}
		}
	}
	return b.String()[:b.Len()-blank], lines, i, !quoted
}

// globalConfig is where --global writes.
func (r *repo) globalConfig() string {
	if f := r.t.Getenv("GIT_CONFIG_GLOBAL"); f != "" {
		return f
	}
	return r.t.Getenv("HOME") + "/.gitconfig"
}

// config returns the settings of all files, read once.
func (r *repo) config() *settings {
	if r.conf != nil {
		return r.conf
	}
	r.conf = &settings{}
	files := []string{"/etc/gitconfig"}
	if r.t.Getenv("GIT_CONFIG_NOSYSTEM") != "" {
		files = nil
	}
	if r.t.Getenv("GIT_CONFIG_GLOBAL") == "" {
		if x := r.t.Getenv("XDG_CONFIG_HOME"); x != "" {
			files = append(files, x+"/git/config")
		} else {
			files = append(files, r.t.Getenv("HOME")+"/.config/git/config")
		}
	}
	files = append(files, r.globalConfig())
	if r.common != "" {
		files = append(files, r.common+"/config")
	}
	for _, f := range files {
		r.conf.list = append(r.conf.list, r.included(f, 0)...)
	}
	n, _ := strconv.Atoi(r.t.Getenv("GIT_CONFIG_COUNT"))
	for i := range min(n, 1000) {
		k, v := r.t.Getenv("GIT_CONFIG_KEY_"+strconv.Itoa(i)), r.t.Getenv("GIT_CONFIG_VALUE_"+strconv.Itoa(i))
		if key, ok := canonKey(k); ok {
			r.conf.list = append(r.conf.list, setting{key: key, value: v, file: "command line"})
		}
	}
	r.conf.list = append(r.conf.list, r.overrides...)
	return r.conf
}

func (r *repo) readConfig(file string) []setting {
	b, err := r.t.ReadFile(file, maxSmall)
	if err != nil {
		return nil
	}
	list, line := parseConfig(string(b), file)
	if line > 0 {
		r.fatal("bad config line %d in file %s", line, r.show(file))
	}
	return list
}

// maxIncludes bounds files that include each other.
const maxIncludes = 10

// included returns a file's settings with those of files that it includes in their places.
func (r *repo) included(file string, depth int) (out []setting) {
	if depth > maxIncludes {
		r.fatal("exceeded maximum include depth (%d) while including\n\t%s", maxIncludes, file)
	}
	for _, s := range r.readConfig(file) {
		out = append(out, s)
		cond, ok := strings.CutPrefix(s.key, "includeif.")
		if s.key != "include.path" && !(ok && strings.HasSuffix(s.key, ".path") && r.includes(strings.TrimSuffix(cond, ".path"), file)) {
			continue
		}
		p := r.homePath(s.value)
		if !strings.HasPrefix(p, "/") {
			p = file[:strings.LastIndexByte(file, '/')+1] + p
		}
		out = append(out, r.included(p, depth+1)...)
	}
	return out
}

// includes reports whether a condition of includeIf holds: gitdir:PATTERN or onbranch:PATTERN.
func (r *repo) includes(cond, file string) bool {
	kind, pattern, _ := strings.Cut(cond, ":")
	switch kind {
	case "gitdir", "gitdir/i":
		pattern = r.homePath(pattern)
		if strings.HasPrefix(pattern, "./") {
			pattern = file[:strings.LastIndexByte(file, '/')+1] + pattern[2:]
		}
		if !strings.HasPrefix(pattern, "/") {
			pattern = "**/" + pattern
		}
		if strings.HasSuffix(pattern, "/") {
			pattern += "**"
		}
		return r.dir != "" && (wildmatch(pattern, r.dir, kind == "gitdir/i") || wildmatch(pattern, r.dir+"/", kind == "gitdir/i"))
	case "onbranch":
		if r.dir == "" {
			return false
		}
		target, _, _ := r.readRef("HEAD")
		if strings.HasSuffix(pattern, "/") {
			pattern += "**"
		}
		return wildmatch(pattern, strings.TrimPrefix(target, "refs/heads/"), false)
	}
	return false
}

// formatSection is a section's header.
func formatSection(section string) string {
	name, sub, has := strings.Cut(section, ".")
	if !has {
		return "[" + name + "]\n"
	}
	return "[" + name + " \"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(sub) + "\"]\n"
}

func formatValue(v string) string {
	quote := v != strings.TrimSpace(v) || strings.ContainsAny(v, "#;")
	v = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(v)
	if quote {
		return `"` + v + `"`
	}
	return v
}

// editConfig replaces, adds or (value nil) removes a variable in a file's text. all concerns every occurrence. It returns
// how many there were.
func editConfig(text, key string, value *string, all, add bool) (string, int) {
	return editConfigName(text, key, key[strings.LastIndexByte(key, '.')+1:], value, add, nil)
}

// editConfigName is editConfig with the variable's name as it is to be written; only says which values are meant.
func editConfigName(text, key, name string, value *string, add bool, only func(string) bool) (string, int) {
	section := key[:strings.LastIndexByte(key, '.')]
	var out []string
	in, insert, found := false, -1, 0
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "[") {
			if end := strings.LastIndexByte(trimmed, ']'); end > 0 {
				in = parseSection(trimmed[1:end]) == section
				if in {
					out = append(out, line)
					insert = len(out)
					continue
				}
			}
		}
		whole := line
		for strings.HasSuffix(strings.TrimRight(whole, "\n"), "\\") && i+1 < len(lines) {
			i++
			whole += lines[i]
		}
		if in && trimmed != "" {
			n := strings.IndexAny(trimmed, " \t=")
			word := trimmed
			if n >= 0 {
				word = trimmed[:n]
			}
			if strings.EqualFold(word, name) && !add && (only == nil || only(valueOf(whole))) {
				found++
				if value != nil && found == 1 {
					out = append(out, "\t"+name+" = "+formatValue(*value)+"\n")
					insert = len(out)
				}
				continue
			}
		}
		if whole != "" {
			out = append(out, whole)
		}
		if in && trimmed != "" {
			insert = len(out)
		}
	}
	if value == nil {
		return dropEmptySections(out), found
	}
	if found == 0 {
		line := "\t" + name + " = " + formatValue(*value) + "\n"
		if insert >= 0 {
			if prev := out[insert-1]; !strings.HasSuffix(prev, "\n") {
				out[insert-1] = prev + "\n"
			}
			out = append(out[:insert:insert], append([]string{line}, out[insert:]...)...)
		} else {
			if n := len(out); n > 0 && !strings.HasSuffix(out[n-1], "\n") {
				out[n-1] += "\n"
			}
			out = append(out, formatSection(section), line)
		}
	}
	return strings.Join(out, ""), found
}

// valueOf is the value in a variable's lines.
func valueOf(lines string) string {
	_, rest, ok := strings.Cut(lines, "=")
	if !ok {
		return ""
	}
	v, _, _, _ := parseValue(rest, 0)
	return v
}

// dropEmptySections takes away the headers of sections without content.
func dropEmptySections(lines []string) string {
	var out []string
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "[") {
			next := i + 1
			for next < len(lines) && strings.TrimSpace(lines[next]) == "" {
				next++
			}
			if next == len(lines) || strings.HasPrefix(strings.TrimSpace(lines[next]), "[") {
				continue
			}
		}
		out = append(out, line)
	}
	return strings.Join(out, "")
}

// setConfig changes a variable of a file.
func (r *repo) setConfig(file, key string, value *string) int {
	b, _ := r.t.ReadFile(file, maxSmall)
	text, n := editConfig(string(b), key, value, true, false)
	if err := r.writeFile(file, []byte(text), 0o666); err != nil {
		r.fatal("could not lock config file %s: %s", r.show(file), strerror(err))
	}
	r.conf = nil
	return n
}

// removeSection takes a section away from a file.
func (r *repo) removeSection(file, section string) bool {
	b, _ := r.t.ReadFile(file, maxSmall)
	var out []string
	in, found := false, false
	for _, line := range strings.SplitAfter(string(b), "\n") {
		if t := strings.TrimSpace(line); strings.HasPrefix(t, "[") {
			if end := strings.LastIndexByte(t, ']'); end > 0 {
				in = parseSection(t[1:end]) == section
				found = found || in
			}
		}
		if !in {
			out = append(out, line)
		}
	}
	if found {
		if err := r.writeFile(file, []byte(strings.Join(out, "")), 0o666); err != nil {
			r.fatal("could not write config file %s: %s", r.show(file), strerror(err))
		}
		r.conf = nil
	}
	return found
}
