package diff

import (
	"fmt"
	"io"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

var sdiffSpec = tool.Spec{
	Usage: []string{"[OPTION]... FILE1 FILE2"},
	About: "Side-by-side merge of differences between FILE1 and FILE2.",
	Options: []getopt.Option{
		{Short: 'o', Long: "output", Arg: getopt.Required, Name: "FILE", Help: "operate interactively, sending output to FILE"},
		{Short: 'i', Long: "ignore-case", Help: "consider upper- and lower-case to be the same"},
		{Short: 'E', Long: "ignore-tab-expansion", Help: "ignore changes due to tab expansion"},
		{Short: 'Z', Long: "ignore-trailing-space", Help: "ignore white space at line end"},
		{Short: 'b', Long: "ignore-space-change", Help: "ignore changes in the amount of white space"},
		{Short: 'W', Long: "ignore-all-space", Help: "ignore all white space"},
		{Short: 'B', Long: "ignore-blank-lines", Help: "ignore changes whose lines are all blank"},
		{Short: 'I', Long: "ignore-matching-lines", Arg: getopt.Required, Name: "RE", Help: "ignore changes all whose lines match RE"},
		{Long: "strip-trailing-cr", Key: keyStripCR, Help: "strip trailing carriage return on input"},
		{Short: 'a', Long: "text", Help: "treat all files as text"},
		{Short: 'w', Long: "width", Arg: getopt.Required, Name: "NUM", Help: "output at most NUM (default 130) print columns"},
		{Short: 'l', Long: "left-column", Help: "output only the left column of common lines"},
		{Short: 's', Long: "suppress-common-lines", Help: "do not output common lines"},
		{Short: 't', Long: "expand-tabs", Help: "expand tabs to spaces in output"},
		{Long: "tabsize", Key: keyTabSize, Arg: getopt.Required, Name: "NUM", Help: "tab stops at every NUM (default 8) print columns"},
		{Short: 'd', Long: "minimal", Help: "try hard to find a smaller set of changes"},
		{Short: 'H', Long: "speed-large-files", Help: "(accepted)"},
		{Long: "diff-program", Key: keyDiffProgram, Arg: getopt.Required, Name: "PROGRAM", Help: "(accepted)"},
		{Short: 'v', Hidden: true},
	},
	Notes:   "If a FILE is '-', read standard input.\nExit status is 0 if inputs are the same, 1 if different, 2 if trouble.",
	Package: tool.Diffutils, Fail: 2,
}

// Sdiff shows two files side by side, and merges them with -o.
func Sdiff(t *tool.T) int {
	t.FailStatus(2)
	opts, files := t.Parse(&sdiffSpec)
	args, output, interactive := []string{"diff", "-y"}, "", false
	d := &differ{t: t, style: 'y', width: 130, palette: defaultPalette(), horizon: 0}
	d.tabSize = 8
	for _, o := range opts {
		switch o.Key {
		case 'o':
			output, interactive = o.Arg, true
		case 'v':
			t.Version(&sdiffSpec)
			return 0
		case 'W':
			d.option(getopt.Opt{Key: 'w'})
			args = append(args, "-w")
		case 'w':
			d.option(getopt.Opt{Key: 'W', Arg: o.Arg})
			args = append(args, "-W", o.Arg)
		case 'l':
			d.leftColumn = true
			args = append(args, "--left-column")
		case 's':
			d.suppressCommon = true
			args = append(args, "--suppress-common-lines")
		case 'I':
			d.option(o)
			args = append(args, "-I", o.Arg)
		case keyTabSize:
			d.option(o)
			args = append(args, "--tabsize="+o.Arg)
		case keyStripCR:
			d.stripCR = true
			args = append(args, "--strip-trailing-cr")
		case 'H', keyDiffProgram:
		case 'a':
			d.asText = true
			args = append(args, "-a")
		case 'd':
			d.minimal = true
			args = append(args, "-d")
		case 't':
			d.expandTabs = true
			args = append(args, "-t")
		default:
			d.option(o)
			args = append(args, "-"+string(o.Key))
		}
	}
	switch {
	case len(files) < 2:
		last := t.Args()[len(t.Args())-1]
		if len(files) > 0 {
			last = files[len(files)-1]
		}
		t.UsageError(2, "missing operand after '%s'", last)
	case len(files) > 2:
		t.UsageError(2, "extra operand '%s'", files[2])
	}
	if !interactive {
		return child(t, append(append(args, "--"), files...), nil)
	}
	return (&merger{t: t, d: d, files: [2]string(files), output: output}).run()
}

// child runs a command and returns its status.
func child(t *tool.T, args []string, files map[int]vfs.File) int {
	t.Out.Flush()
	c, err := t.Spawn(proc.Spawn{Args: args, Files: files})
	if err != nil {
		t.Fatal(2, "%s: %s", args[0], tool.Strerror(err))
	}
	status, err := t.WaitQuiet(c)
	if err != nil {
		return 2
	}
	return status
}

// merger merges two files as it is told on standard input.
type merger struct {
	t      *tool.T
	d      *differ
	files  [2]string
	output string
	out    *tool.FileWriter
	p      *pair
}

func (m *merger) run() int {
	t := m.t
	var texts [2]*text
	for i, name := range m.files {
		if a, err := t.Stat(name); err == nil && a.Mode.IsDir() { // the other file's name in it
			other := m.files[1-i]
			name = strings.TrimRight(name, "/") + "/" + other[strings.LastIndexByte(other, '/')+1:]
		}
		in, err := t.Open(name)
		var b []byte
		if err == nil {
			b, err = readAll(in)
			in.Close()
		}
		if err != nil {
			t.Fatal(2, "%s: %s", name, tool.Strerror(err))
		}
		if m.d.stripCR {
			b = []byte(strings.ReplaceAll(string(b), "\r\n", "\n"))
		}
		texts[i] = newText(b)
	}
	f, err := t.Create(m.output)
	if err != nil {
		t.Fatal(2, "%s: %s", m.output, tool.Strerror(err))
	}
	m.out = tool.NewFileWriter(f)
	defer func() { m.out.Flush(); f.Close() }()
	m.p = &pair{d: m.d, a: texts[0], b: texts[1]}
	m.p.changes = script(texts[0], texts[1], &m.d.ignoring, m.d.minimal, 0, t.Check)
	status := m.merge()
	if err := m.out.Flush(); err != nil {
		t.Fatal(2, "%s: %s", m.output, tool.Strerror(err))
	}
	return status
}

// merge goes through the changes and asks at each.
func (m *merger) merge() int {
	p := m.p
	i, j, status := 0, 0, 0
	all := p.changes
	common := func(end int) {
		p.changes = nil
		m.copy(p.a, i, end)
		c := p.geometry()
		c.common(&i, &j, end)
	}
	for k := range all {
		ch := &all[k]
		common(ch.a)
		if ch.ignore = (m.d.blank || len(m.d.ignoreRE) > 0) && p.ignorable(ch); ch.ignore {
			c := p.geometry()
			c.hunk(ch)
			m.copy(p.a, ch.a, ch.a+ch.deleted)
		} else {
			status = 1
			c := p.geometry()
			c.hunk(ch)
			if !m.ask(ch) {
				return 2
			}
		}
		i, j = ch.a+ch.deleted, ch.b+ch.inserted
	}
	common(len(p.a.lines))
	return status
}

func (m *merger) copy(x *text, from, to int) {
	for ; from < to; from++ {
		m.out.Write(x.lines[from])
		if x.complete(from) {
			m.out.WriteByte('\n')
		}
	}
}

const mergeHelp = `ed:	Edit then use both versions, each decorated with a header.
eb:	Edit then use both versions.
el or e1:	Edit then use the left version.
er or e2:	Edit then use the right version.
e:	Discard both versions then edit a new one.
l or 1:	Use the left version.
r or 2:	Use the right version.
s:	Silently include common lines.
v:	Verbosely include common lines.
q:	Quit.
`

// ask asks what to do with a change; false is to quit.
func (m *merger) ask(ch *change) bool {
	for {
		m.t.Out.WriteByte('%')
		m.t.Out.Flush()
		line, ok := m.line()
		if !ok {
			return false
		}
		switch line {
		case "l", "1":
			m.copy(m.p.a, ch.a, ch.a+ch.deleted)
			return true
		case "r", "2":
			m.copy(m.p.b, ch.b, ch.b+ch.inserted)
			return true
		case "s":
			m.d.suppressCommon = true
		case "v":
			m.d.suppressCommon = false
		case "q":
			return false
		case "e", "ed", "eb", "el", "e1", "er", "e2", "e l", "e 1", "e r", "e 2", "e b", "e d":
			m.edit(ch, line[len(line)-1])
			return true
		default:
			m.t.Out.Flush()
			io.WriteString(m.t.Stderr(), mergeHelp)
		}
	}
}

// line reads a line of standard input byte by byte: an editor reads what follows.
func (m *merger) line() (string, bool) {
	var b []byte
	var one [1]byte
	for {
		n, err := m.t.Stdin().Read(one[:])
		if n == 0 || err != nil {
			return strings.TrimSpace(string(b)), len(b) > 0
		}
		if one[0] == '\n' {
			return strings.TrimSpace(string(b)), true
		}
		if len(b) < 1<<12 {
			b = append(b, one[0])
		}
	}
}

// edit lets the user edit some of the lines, and takes the result.
func (m *merger) edit(ch *change, what byte) {
	t := m.t
	dir := t.Getenv("TMPDIR")
	if dir == "" {
		dir = "/tmp"
	}
	name, f, err := t.TempFile(dir, "sdiff", 0o600)
	if err != nil {
		t.Fatal(2, "%s: %s", name, tool.Strerror(err))
	}
	defer t.Unlink(name)
	out := m.out
	m.out = tool.NewFileWriter(f)
	head := func(mark string, i, lo, n int) {
		if what == 'd' && n > 0 {
			span := fmt.Sprintf("%d,%d", lo+1, lo+n)
			if n == 1 {
				span = fmt.Sprint(lo + 1)
			}
			fmt.Fprintf(m.out, "%s %s %s\n", mark, m.files[i], span)
		}
	}
	if strings.IndexByte("l1bd", what) >= 0 {
		head("---", 0, ch.a, ch.deleted)
		m.copy(m.p.a, ch.a, ch.a+ch.deleted)
	}
	if strings.IndexByte("r2bd", what) >= 0 {
		head("+++", 1, ch.b, ch.inserted)
		m.copy(m.p.b, ch.b, ch.b+ch.inserted)
	}
	m.out.Flush()
	m.out = out
	f.Close()
	editor := t.Getenv("EDITOR")
	if editor == "" {
		editor = "ed"
	}
	child(t, append(strings.Fields(editor), name), nil)
	text, err := t.ReadFile(name, maxFile)
	if err != nil {
		t.Fatal(2, "%s: %s", name, tool.Strerror(err))
	}
	m.out.Write(text)
}
