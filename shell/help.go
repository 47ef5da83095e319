package shell

import (
	_ "embed"
	"strings"
)

// helpText has a line for each topic of help: name, synopsis and description, with tabs between them.
//
//go:embed help.txt
var helpText string

type topic struct{ name, synopsis, text string }

func topics() []topic {
	lines := strings.Split(strings.TrimSuffix(helpText, "\n"), "\n")
	out := make([]topic, len(lines))
	for i, l := range lines {
		f := strings.SplitN(l, "\t", 3)
		out[i] = topic{f[0], f[1], f[2]}
	}
	return out
}

const helpUsage = "help [-dms] [pattern ...]"

func builtinHelp(sh *Shell, args []string) int {
	args = args[1:]
	show := byte(0)
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		word := args[0]
		args = args[1:]
		if word == "--" {
			break
		}
		for _, c := range []byte(word[1:]) {
			if strings.IndexByte("dms", c) < 0 {
				return sh.badOption("help", "-"+string(c), helpUsage)
			}
			show = c
		}
	}
	if len(args) == 0 {
		sh.helpList()
		return 0
	}
	if strings.ContainsAny(args[0], "*?[") && args[0] != "[" && args[0] != "[[" {
		word := "keyword"
		if len(args) > 1 {
			word = "keywords"
		}
		sh.print("Shell commands matching " + word + " `" + strings.Join(args, ", ") + "'\n\n")
	}
	found := false
	for _, a := range args {
		for _, t := range sh.matchingTopics(a) {
			found = true
			sh.helpTopic(t, show)
		}
	}
	if !found {
		last := args[len(args)-1]
		sh.errorf("help: no help topics match `%s'.  Try `help help' or `man -k %s' or `info %s'.", last, last, last)
		return 1
	}
	return 0
}

// matchingTopics finds topics whose names match, or else begin with, what was asked for.
func (sh *Shell) matchingTopics(s string) []topic {
	var exact, prefixed []topic
	p := compilePattern(s, true, false, false)
	for _, t := range topics() {
		short := strings.TrimSuffix(strings.TrimSuffix(t.name, " }"), " ...")
		short = strings.TrimSuffix(strings.TrimSuffix(short, " ... ))"), " ... ]]")
		switch {
		case t.name == s || short == s || p.match(t.name):
			exact = append(exact, t)
		case strings.HasPrefix(t.name, s):
			prefixed = append(prefixed, t)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return prefixed
}

func (sh *Shell) helpTopic(t topic, show byte) {
	switch show {
	case 'd':
		sh.print(t.name + " - " + t.text + "\n")
	case 's':
		sh.print(t.name + ": " + t.synopsis + "\n")
	case 'm':
		sh.print("NAME\n    " + t.name + " - " + t.text + "\n\nSYNOPSIS\n    " + t.synopsis + "\n\nDESCRIPTION\n    " + t.text +
			"\n\nSEE ALSO\n    bash(1)\n\nIMPLEMENTATION\n    AgentRun's shell, which follows GNU bash, version " + Version + "\n\n")
	default:
		sh.print(t.name + ": " + t.synopsis + "\n    " + t.text + "\n")
	}
}

// helpList lists all topics in two columns.
func (sh *Shell) helpList() {
	sh.print("AgentRun's shell, which follows GNU bash, version " + Version + " (x86_64-pc-linux-gnu)\n" +
		"These shell commands are defined internally.  Type `help' to see this list.\n" +
		"Type `help name' to find out more about the function `name'.\n\n" +
		"A star (*) next to a name means that the command is disabled.\n\n")
	width := 80
	if n, ok := plainInt(sh.str("COLUMNS")); ok && n > 0 && n < 1000 {
		width = int(n)
	}
	if width /= 2; width <= 3 {
		width = 40
	}
	cell := func(t topic) string {
		mark := " "
		if sh.disabled[t.name] {
			mark = "*"
		}
		s := mark + t.synopsis
		if len(s) > width-3 {
			s = s[:width-3] + ">"
		}
		return s
	}
	all := topics()
	rows := (len(all) + 1) / 2
	for i := range rows {
		left := cell(all[i])
		if i+rows < len(all) {
			left += strings.Repeat(" ", max(1, width-len(left))) + cell(all[i+rows])
		}
		sh.print(left + "\n")
	}
}
