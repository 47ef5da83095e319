package make

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// job is a recipe that runs.
type job struct {
	t        *target
	commands []command
	child    *proc.Process
	current  command
	env      []string
}

// command is one line for the shell.
type command struct {
	text                   string
	silent, ignore, always bool
	loc                    location
}

// automatic are the variables of a target's rule.
func (m *maker) automatic(t *target) scope {
	var all, unique, order []string
	seen := map[string]bool{}
	for _, d := range t.deps {
		if t.cyclic[d.name] {
			continue
		}
		name := d.name
		if x := m.targets[name]; x != nil && x.path != "" {
			name = x.path
		}
		if d.order {
			if !contains(order, name) {
				order = append(order, name)
			}
			continue
		}
		if all = append(all, name); !seen[name] {
			seen[name] = true
			unique = append(unique, name)
		}
	}
	order = slices.DeleteFunc(order, func(n string) bool { return seen[n] })
	var newer []string
	for _, n := range t.newer {
		if x := m.targets[n]; x != nil && x.path != "" {
			n = x.path
		}
		if !contains(newer, n) {
			newer = append(newer, n)
		}
	}
	first := ""
	if len(all) > 0 {
		first = all[0]
	}
	name := t.name
	if t.path != "" && t.exists {
		name = t.path
	}
	stem := t.stem
	if stem == "" {
		for _, s := range m.suffixes {
			if base, ok := strings.CutSuffix(t.name, s); ok && base != "" {
				stem = base
				break
			}
		}
	}
	vars := scope{}
	for key, list := range map[string][]string{"@": {name}, "<": {first}, "^": unique, "+": all, "?": newer, "|": order, "*": {stem}, "%": nil} {
		set := func(name, value string) {
			vars[name] = &variable{name: name, value: value, origin: automatic}
		}
		set(key, strings.Join(list, " "))
		var dirs, files []string
		for _, w := range list {
			if w != "" {
				d := strings.TrimSuffix(dirOf(w), "/")
				if d == "" {
					d = "/"
				}
				dirs, files = append(dirs, d), append(files, w[strings.LastIndexByte(w, '/')+1:])
			}
		}
		set(key+"D", strings.Join(dirs, " "))
		set(key+"F", strings.Join(files, " "))
	}
	return vars
}

// start begins a target's recipe. With all jobs taken it waits for one to end.
func (m *maker) start(t *target) outcome {
	for len(m.running) > 0 && len(m.running) >= m.jobs {
		m.wait()
	}
	if m.broken && !m.keepGoing {
		t.state = failed
		return failed
	}
	j := &job{t: t}
	top, loc := m.top, m.loc
	m.top = &frame{vars: m.automatic(t), next: t.vars1}
	m.loc = t.recipe.loc
	j.commands = m.commandsOf(t)
	j.env = m.environ()
	m.top, m.loc = top, loc
	if m.trace && len(j.commands) > 0 {
		m.t.Out.Flush()
		why := "target '" + t.name + "' does not exist"
		if len(t.newer) > 0 {
			why = "update target '" + t.name + "' due to: " + strings.Join(t.newer, " ")
		}
		m.t.Out.WriteString(t.recipe.loc.file + ":" + strconv.Itoa(t.recipe.loc.line) + ": " + why + "\n")
	}
	t.job = j
	if m.advance(j) {
		m.running = append(m.running, j)
	}
	for m.jobs == 1 && t.job != nil {
		m.wait()
	}
	return t.state
}

// commandsOf expands a recipe.
func (m *maker) commandsOf(t *target) []command {
	var out []command
	for _, l := range t.recipe.lines {
		m.loc = l.loc
		c := command{loc: l.loc, silent: m.silent || m.silenced[t.name], ignore: m.ignoreErrors || m.ignored[t.name]}
		text := c.flags(collapse(l.text))
		c.always = c.always || strings.Contains(text, "$(MAKE)") || strings.Contains(text, "${MAKE}")
		for i, piece := range splitRecipe(m.expand(text)) {
			each := c
			each.text = each.flags(piece)
			if m.oneShell && (len(out) > 0 || i > 0) {
				out[0].text += "\n" + each.text
				continue
			}
			if strings.TrimSpace(each.text) != "" || m.oneShell {
				out = append(out, each)
			}
		}
	}
	return out
}

// collapse makes one line of the continued lines within references; those for the shell stay as they are. As in GNU's make,
// $$( counts as the start of a reference.
func collapse(s string) string {
	if !strings.Contains(s, "\\\n") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '$' || i+1 == len(s) || s[i+1] != '(' && s[i+1] != '{' {
			b.WriteByte(s[i])
			i++
			continue
		}
		end := closing(s, i+1)
		if end < 0 {
			end = len(s) - 1
		}
		part := s[i : end+1]
		for {
			at := strings.Index(part, "\\\n")
			if at < 0 {
				break
			}
			b.WriteString(strings.TrimRight(part[:at], " \t") + " ")
			part = strings.TrimLeft(part[at+2:], " \t")
		}
		b.WriteString(part)
		i = end + 1
	}
	return b.String()
}

// flags takes @, - and + off the start of a line.
func (c *command) flags(s string) string {
	for s != "" {
		switch s[0] {
		case '@':
			c.silent = true
		case '-':
			c.ignore = true
		case '+':
			c.always = true
		case ' ', '\t', '\n':
		default:
			return s
		}
		s = s[1:]
	}
	return s
}

// splitRecipe splits at the newlines that no backslash takes away.
func splitRecipe(s string) []string {
	var out []string
	from := 0
	for i := 0; i < len(s); i++ {
		if s[i] == '\n' && !continued(s[from:i]) {
			out = append(out, s[from:i])
			from = i + 1
		}
	}
	return append(out, s[from:])
}

// recursive reports whether a recipe runs make.
func (m *maker) recursive(t *target) bool {
	for _, l := range t.recipe.lines {
		if strings.Contains(l.text, "$(MAKE)") || strings.Contains(l.text, "${MAKE}") || strings.HasPrefix(strings.TrimLeft(l.text, "@- \t"), "+") {
			return true
		}
	}
	return false
}

// advance starts a job's next command, and reports whether one runs; otherwise the job is over.
func (m *maker) advance(j *job) bool {
	for len(j.commands) > 0 {
		c := j.commands[0]
		j.commands = j.commands[1:]
		j.current = c
		m.t.Check()
		if m.question && !c.always {
			m.exit(1)
		}
		m.commands++
		if !c.silent && !m.silentAll || m.dryRun || m.trace {
			m.t.Out.WriteString(c.text + "\n")
		}
		if (m.dryRun || m.touch) && !c.always {
			continue
		}
		if m.spawn(j, c) {
			return true
		}
		if !c.ignore {
			m.fail(j, 127, 0)
			return false
		}
		m.report(j, "Error 127", true)
	}
	j.t.job = nil
	m.done(j.t)
	return false
}

// shellWords are commands that only a shell knows.
const shellWords = " . : alias bg break case cd command continue eval exec exit export fc fg for getopts hash if jobs login logout read readonly return set shift test times trap type ulimit umask unalias unset wait while until { ! "

// spawn starts a command: by itself when it is only words, else by the shell.
func (m *maker) spawn(j *job, c command) bool {
	m.t.Out.Flush()
	args := m.argv(c.text)
	child, err := m.t.Spawn(proc.Spawn{Args: args, Env: j.env})
	if err != nil {
		m.complain("%s: %s", args[0], tool.Strerror(err))
		return false
	}
	j.child = child
	return true
}

// argv is how a line is run: by itself when it is only words, else by the shell.
func (m *maker) argv(text string) []string {
	shell, flags := m.shellOf()
	if w := words(text); len(w) > 0 && !strings.ContainsAny(text, "#;\"'\\*?[]&|<>(){}$`^~!\n%") && m.plainShell(shell, flags) && !strings.Contains(w[0], "=") && !strings.Contains(shellWords, " "+w[0]+" ") {
		return w
	}
	return append(append([]string{shell}, flags...), text)
}

func (m *maker) shellOf() (string, []string) {
	shell, flags := strings.TrimSpace(m.value("SHELL")), words(m.value(".SHELLFLAGS"))
	if shell == "" {
		shell = "/bin/sh"
	}
	if len(flags) == 0 {
		flags = []string{"-c"}
	}
	return shell, flags
}

func (m *maker) plainShell(shell string, flags []string) bool {
	return shell == "/bin/sh" && len(flags) == 1 && (flags[0] == "-c" || flags[0] == "-ec")
}

// wait waits for a command to end, and goes on with its job.
func (m *maker) wait() {
	if len(m.running) == 0 {
		return
	}
	children := make([]*proc.Process, len(m.running))
	for i, j := range m.running {
		children[i] = j.child
	}
	ended, err := m.t.WaitAny(children)
	if err != nil {
		m.t.Check()
		if errors.Is(err, syscall.EINTR) {
			return
		}
		m.exit(2)
	}
	i := slices.Index(children, ended)
	j := m.running[i]
	status, err := m.t.WaitQuiet(ended)
	if err != nil {
		m.t.Check()
	}
	m.running = slices.Delete(m.running, i, i+1)
	j.child = nil
	if sig := ended.Signaled(); status != 0 && !j.current.ignore {
		m.fail(j, status, sig)
		return
	} else if status != 0 {
		m.report(j, ending(status, sig), true)
	}
	if m.advance(j) {
		m.running = append(m.running, j)
	}
}

// ending words how a command ended.
func ending(status, sig int) string {
	if sig == 0 {
		return "Error " + strconv.Itoa(status)
	}
	switch sig {
	case 1:
		return "Hangup"
	case 2:
		return "Interrupt"
	case 9:
		return "Killed"
	case 13:
		return "Broken pipe"
	case 14:
		return "Alarm clock"
	case 15:
		return "Terminated"
	}
	return "Signal " + strconv.Itoa(sig)
}

func (m *maker) report(j *job, what string, ignored bool) {
	loc := j.current.loc
	where := loc.file + ":" + strconv.Itoa(loc.line) + ": " + j.t.name
	if j.t.recipe != nil && loc.file == "" {
		where = "<builtin>: " + j.t.name
	}
	m.t.Out.Flush()
	if ignored && m.silentAll {
		return
	}
	if ignored {
		m.complain("[%s] %s (ignored)", where, what)
		return
	}
	m.complain("*** [%s] %s", where, what)
}

// fail ends a job whose command failed.
func (m *maker) fail(j *job, status, sig int) {
	m.report(j, ending(status, sig), false)
	t := j.t
	t.job, t.state = nil, failed
	first := !m.broken
	m.broken = true
	if a, err := m.t.Stat(t.name); (m.deleteOnError || sig != 0) && !t.phony && !t.precious && !m.isPrecious(t.name) && err == nil && a.Mode.IsRegular() && (!t.exists || !a.Mtime.Equal(t.time)) {
		m.complain("*** Deleting file '%s'", t.name)
		m.t.Unlink(t.name)
	}
	if first && !m.keepGoing && len(m.running) > 0 {
		m.complain("*** Waiting for unfinished jobs....")
	}
}

// drain waits for the jobs that run.
func (m *maker) drain() {
	for len(m.running) > 0 {
		m.wait()
	}
}

// touchTarget is what -t does instead of a recipe.
func (m *maker) touchTarget(t *target) outcome {
	m.commands++
	if !m.silentAll {
		m.t.Out.WriteString("touch " + t.name + "\n")
	}
	if !m.dryRun {
		f, err := m.t.Process.Open(t.name, syscall.O_WRONLY|syscall.O_CREAT, 0o666)
		if err == nil {
			now := m.t.Now()
			err = f.SetAttr(vfs.SetAttr{Mtime: &now})
			f.Close()
		}
		if err != nil {
			m.complain("touch: %s: %s", t.name, tool.Strerror(err))
			t.state, m.broken = failed, true
			return failed
		}
	}
	t.made = true
	m.done(t)
	return t.state
}

// shell runs a command and returns what it prints, as one line.
func (m *maker) shell(text string) string {
	m.t.Out.Flush()
	args := m.argv(text)
	out, status, err := m.t.Output(maxOutput, args...)
	m.t.Check()
	if err != nil {
		m.complain("%s: %s", args[0], tool.Strerror(err))
		status = 127
	}
	m.set(".SHELLSTATUS", strconv.Itoa(status), fromOverride, false)
	s := strings.TrimRight(string(out), "\n")
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", " ")
}
