package pager

import (
	"bytes"
	"io"
	"path"
	"slices"
	"strings"

	"agentrun.dev/command/codec"
	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

const (
	maxPage     = 16 << 20 // bytes of a manual page
	manPath     = "/usr/local/share/man:/usr/share/man"
	manSections = "1 n l 8 3 0 2 5 4 9 6 7"
	noPage      = 16 // the status when there is no such page
)

var manSpec = tool.Spec{
	Usage: []string{"[OPTION...] [SECTION] PAGE..."},
	About: "Show manual pages.  A command without one is shown with its --help.",
	Options: []getopt.Option{
		{Short: 'M', Long: "manpath", Arg: getopt.Required, Name: "PATH", Help: "set search path for manual pages to PATH"},
		{Short: 'a', Long: "all", Help: "find all matching manual pages"},
		{Short: 'f', Long: "whatis", Help: "show the names of pages that are called so"},
		{Short: 'k', Long: "apropos", Help: "show the names of pages that have the word in them"},
		{Short: 'l', Long: "local-file", Help: "interpret PAGE argument(s) as local filename(s)"},
		{Short: 's', Long: "sections", Arg: getopt.Required, Name: "LIST", Help: "use colon separated section list"},
		{Short: 'S', Key: 's', Arg: getopt.Required, Hidden: true},
		{Short: 'w', Long: "where", Help: "print physical location of man page(s)"},
		{Long: "path", Key: 'w', Hidden: true}, {Long: "location", Key: 'w', Hidden: true},
		{Short: 'P', Long: "pager", Arg: getopt.Required, Name: "PAGER", Help: "use program PAGER to display output"},
	},
	Package: "AgentRun) 2.11.2", Fail: 1,
}

// manual is a run of man.
type manual struct {
	t        *tool.T
	dirs     []string
	sections []string
	all      bool
	where    bool
	pager    string
}

// Apropos is man -k.
func Apropos(t *tool.T) int { return man(t, "-k") }

// Whatis is man -f.
func Whatis(t *tool.T) int { return man(t, "-f") }

// Man shows manual pages.
func Man(t *tool.T) int { return man(t) }

func man(t *tool.T, before ...string) int {
	opts, names := t.ParseArgs(&manSpec, append(before, t.Args()[1:]...))
	m := &manual{t: t, sections: strings.Fields(manSections), pager: t.Getenv("MANPAGER")}
	dirs, local, list := t.Getenv("MANPATH"), false, rune(0)
	for _, o := range opts {
		switch o.Key {
		case 'M':
			dirs = o.Arg
		case 'a':
			m.all = true
		case 'f', 'k':
			list = o.Key
		case 'l':
			local = true
		case 's':
			m.sections = strings.FieldsFunc(o.Arg, func(r rune) bool { return r == ':' || r == ',' })
		case 'w':
			m.where = true
		case 'P':
			m.pager = o.Arg
		}
	}
	if dirs == "" {
		if dirs = manPath; t.Getenv("HOME") != "" {
			dirs = t.Getenv("HOME") + "/.local/share/man:" + dirs
		}
	}
	m.dirs = strings.Split(dirs, ":")
	if m.pager == "" {
		if m.pager = t.Getenv("PAGER"); m.pager == "" {
			m.pager = "less"
		}
	}
	if len(names) == 0 {
		if m.where {
			t.Out.WriteString(dirs + "\n")
			return 0
		}
		t.Out.WriteString("What manual page do you want?\nFor example, try 'man man'.\n")
		return 1
	}
	if list != 0 {
		return m.list(names, list == 'f')
	}
	if len(names) > 1 && !local && (len(names[0]) == 1 && names[0] >= "0" && names[0] <= "9" || names[0] == "n" || names[0] == "l") {
		m.sections, names = names[:1], names[1:]
	}
	status := 0
	for _, n := range names {
		if local || strings.Contains(n, "/") {
			if !m.page(n) {
				status = noPage
			}
			continue
		}
		if s := m.show(n); s != 0 {
			status = s
		}
	}
	return status
}

// show shows the page of a name.
func (m *manual) show(name string) int {
	found := m.find(name)
	if !m.all && len(found) > 1 {
		found = found[:1]
	}
	for _, f := range found {
		if m.where {
			m.t.Out.WriteString(f + "\n")
		} else {
			m.page(f)
		}
	}
	switch {
	case len(found) > 0:
		return 0
	case !m.where && m.help(name):
		return 0
	}
	m.t.Out.Flush()
	io.WriteString(m.t.Stderr(), "No manual entry for "+name+"\n")
	return noPage
}

// find lists the files of pages of a name, in the order of sections.
func (m *manual) find(name string) []string {
	var out []string
	for _, s := range m.sections {
		for _, d := range m.dirs {
			dir := path.Join(d, "man"+s[:1])
			if !path.IsAbs(d) {
				dir = strings.TrimPrefix(d+"/man"+s[:1], "./")
			}
			entries, err := m.t.ReadDir(dir)
			if err != nil {
				continue
			}
			for _, e := range entries {
				if rest, ok := strings.CutPrefix(e.Name, name+"."+s); ok && (rest == "" || rest[0] == '.' || len(s) == 1 && !strings.Contains(strings.TrimSuffix(rest, ".gz"), ".")) {
					out = append(out, dir+"/"+e.Name)
				}
			}
		}
	}
	return out
}

// list prints the names of pages and commands that are or have one of some words.
func (m *manual) list(words []string, exact bool) int {
	status := noPage
	seen := map[string]bool{}
	check := func(name, section string) {
		for _, w := range words {
			if key := name + " (" + section + ")"; !seen[key] && (name == w || !exact && strings.Contains(strings.ToLower(name), strings.ToLower(w))) {
				seen[key] = true
				m.t.Out.WriteString(key + "\n")
				status = 0
			}
		}
	}
	for _, s := range m.sections {
		for _, d := range m.dirs {
			entries, _ := m.t.ReadDir(d + "/man" + s)
			for _, e := range entries {
				if base, _, ok := strings.Cut(e.Name, "."+s); ok {
					check(base, s)
				}
			}
		}
	}
	entries, _ := m.t.ReadDir("/bin")
	slices.SortFunc(entries, func(a, b vfs.DirEntry) int { return strings.Compare(a.Name, b.Name) })
	for _, e := range entries {
		if !seen[e.Name+" (1)"] {
			check(e.Name, "1")
		}
	}
	if status != 0 {
		m.t.Out.Flush()
		for _, w := range words {
			io.WriteString(m.t.Stderr(), w+": nothing appropriate.\n")
		}
	}
	return status
}

// page shows a file.
func (m *manual) page(name string) bool {
	t := m.t
	b, err := t.ReadFile(name, maxPage)
	if err == nil {
		if format := codec.Detect(b); format != codec.None {
			var z io.ReadCloser
			if z, err = codec.NewReader(format, codec.NewCounter(bytes.NewReader(b))); err == nil {
				b, err = io.ReadAll(io.LimitReader(z, maxPage))
				z.Close()
			}
		}
	}
	if err != nil {
		t.Warn("%s: %s", name, tool.Strerror(err))
		return false
	}
	r := newRoff(t, m.width())
	m.display(r.format(string(b)))
	for _, w := range r.warnings {
		t.Out.Flush()
		io.WriteString(t.Stderr(), "<standard input>:"+w+"\n")
	}
	return true
}

// width is how wide lines may be.
func (m *manual) width() int {
	for _, name := range []string{"MANWIDTH", "COLUMNS"} {
		n := 0
		for _, c := range m.t.Getenv(name) {
			if c < '0' || c > '9' || n > 1000 {
				n = 0
				break
			}
			n = n*10 + int(c-'0')
		}
		if n >= 20 {
			return n - 2
		}
	}
	if s, err := m.t.WindowSize(1); err == nil && s.Cols >= 20 {
		return int(s.Cols) - 2
	}
	return 78
}

// display writes a text, through the pager on a terminal.
func (m *manual) display(text string) {
	t := m.t
	t.Out.Flush()
	words := strings.Fields(m.pager)
	if !t.IsTerminal(1) || len(words) == 0 {
		t.Out.WriteString(text)
		return
	}
	f, err := t.MemFile([]byte(text))
	if err == nil {
		var child *proc.Process
		if child, err = t.Spawn(proc.Spawn{Args: words, Files: map[int]vfs.File{0: f}}); err == nil {
			t.WaitQuiet(child)
		}
		f.Close()
	}
	if err != nil {
		t.Out.WriteString(text)
	}
}

// help shows what a command says of itself.
func (m *manual) help(name string) bool {
	if _, err := m.t.Find(name, m.t.Getenv("PATH")); err != nil {
		return false
	}
	m.t.Out.Flush()
	out, status, err := m.t.Output(maxPage, name, "--help")
	if err != nil || status != 0 || len(out) == 0 {
		return false
	}
	m.display(string(out))
	return true
}
