package make

import (
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/command/tool"
)

// environ is the environment of commands.
func (m *maker) environ() []string {
	env := map[string]string{}
	for _, e := range m.t.Environ() {
		if name, value, ok := strings.Cut(e, "="); ok {
			env[name] = value
		}
	}
	names := maps.Clone(m.global)
	inherited := false
	var frames []*frame
	for f := m.top; f != nil; f = f.next {
		frames = append(frames, f)
	}
	for _, f := range frames {
		inherited = inherited || f.inherited
		for n, v := range f.vars {
			if v.origin != automatic && !(inherited && v.private) {
				if g := m.global[n]; names[n] == g || names[n] == nil {
					if g != nil && v.export == 0 && (g.export == 1 || g.origin == fromEnv || g.origin == fromCommand) {
						names[n] = &variable{name: n, export: 1}
					} else {
						names[n] = v
					}
				}
			}
		}
	}
	for _, n := range sortedKeys(names) {
		v := names[n]
		_, inEnv := env[n]
		switch {
		case v.export < 0:
			delete(env, n)
			continue
		case n == "SHELL" || n == "MAKEFLAGS" || n == "MAKELEVEL":
			continue
		case v.export > 0 || v.origin == fromCommand || v.origin == fromEnvOverride || inEnv && v.origin != fromEnv && v.origin != fromDefault:
		case m.exportAll && v.origin != fromDefault && v.origin != automatic && exportable(n):
		default:
			continue
		}
		env[n] = m.value(n)
	}
	env["MAKELEVEL"] = strconv.Itoa(m.level + 1)
	env["MAKEFLAGS"] = m.flagsText()
	if g := m.global["MAKEFLAGS"]; g != nil && g.export < 0 {
		delete(env, "MAKEFLAGS")
	}
	env["MFLAGS"] = m.mflags()
	out := make([]string, 0, len(env))
	for _, n := range sortedKeys(env) {
		out = append(out, n+"="+env[n])
	}
	return out
}

// exportable reports whether a shell could have a variable of that name.
func exportable(n string) bool {
	for i, c := range []byte(n) {
		if c != '_' && !(c|0x20 >= 'a' && c|0x20 <= 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return n != "" && n != "MAKEFILE_LIST"
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

// glob expands wildcards. With strict, a name without any is left out if there is no such file.
func (m *maker) glob(word string, strict bool) []string {
	if word == "~" || strings.HasPrefix(word, "~/") {
		word = m.t.Getenv("HOME") + word[1:]
	}
	if !strings.ContainsAny(word, "*?[") {
		if _, err := m.t.Lstat(word); strict && err != nil {
			return nil
		}
		return []string{word}
	}
	start := ""
	if strings.HasPrefix(word, "/") {
		start, word = "/", strings.TrimLeft(word, "/")
	}
	out := []string{start}
	parts := strings.Split(word, "/")
	for i, part := range parts {
		var next []string
		for _, base := range out {
			next = append(next, m.globPart(base, part, i == len(parts)-1)...)
			if len(next) > maxTargets {
				m.fatal(m.loc, "%v", errTooLarge)
			}
		}
		out = next
	}
	slices.Sort(out)
	return out
}

// globPart adds one component to a path, or those that there are.
func (m *maker) globPart(base, part string, last bool) []string {
	m.step()
	end := "/"
	if last {
		end = ""
	}
	if !strings.ContainsAny(part, "*?[") {
		name := base + part
		if part != "" {
			if _, err := m.t.Lstat(name); err != nil {
				return nil
			}
		}
		return []string{name + end}
	}
	dir := base
	if dir == "" {
		dir = "."
	}
	entries, err := m.t.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if e.Name == "." || e.Name == ".." || !tool.Glob(part, e.Name, tool.GlobPeriod) {
			continue
		}
		if !last {
			if a, err := m.t.Stat(base + e.Name); err != nil || !a.Mode.IsDir() {
				continue
			}
		}
		out = append(out, base+e.Name+end)
	}
	return out
}

func (m *maker) absolute(w string) string {
	if !strings.HasPrefix(w, "/") {
		w = m.t.Getwd() + "/" + w
	}
	return path.Clean(w)
}

func (m *maker) readStdin() ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(m.t.Stdin(), maxMakefile+1))
	if err == nil && len(text) > maxMakefile {
		err = syscall.EFBIG
	}
	return text, err
}
