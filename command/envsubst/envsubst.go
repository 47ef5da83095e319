// Package envsubst is `envsubst` of GNU gettext 0.21: it replaces $NAME and ${NAME} in a text by variables of the
// environment, and nothing else: no defaults, no nesting, no escapes.
package envsubst

import (
	"io"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var spec = tool.Spec{
	Usage:   []string{"[OPTION] [SHELL-FORMAT]"},
	About:   "Substitutes the values of environment variables.",
	Package: "GNU gettext-runtime) 0.21",
	Options: []getopt.Option{{Short: 'v', Long: "variables", Help: "output the variables occurring in SHELL-FORMAT"}, {Short: 'h', Key: 'h'}, {Short: 'V', Key: 'V'}},
	Notes: "In normal operation mode, standard input is copied to standard output, with references to environment variables of the\n" +
		"form $VARIABLE or ${VARIABLE} being replaced with the corresponding values. If a SHELL-FORMAT is given, only those\n" +
		"environment variables that are referenced in SHELL-FORMAT are substituted.",
}

// maxInput bounds standard input, which is read before anything is written.
const maxInput = 256 << 20

// Envsubst is the command.
func Envsubst(t *tool.T) int {
	opts, operands := t.Parse(&spec)
	list := false
	for _, o := range opts {
		switch o.Key {
		case 'v':
			list = true
		case 'h':
			t.Help(&spec)
			return 0
		case 'V':
			t.Version(&spec)
			return 0
		}
	}
	if len(operands) > 1 {
		t.Fatal(1, "too many arguments")
	}
	if list {
		if len(operands) == 0 {
			t.Fatal(1, "missing arguments")
		}
		walk(operands[0], func(string) {}, func(name, _ string) { t.Out.WriteString(name + "\n") })
		return 0
	}
	var only map[string]bool
	if len(operands) == 1 {
		only = map[string]bool{}
		walk(operands[0], func(string) {}, func(name, _ string) { only[name] = true })
	}
	b, err := io.ReadAll(io.LimitReader(t.Stdin(), maxInput+1))
	if err != nil {
		t.Fatal(1, "error while reading \"standard input\": %s", tool.Strerror(err))
	}
	if len(b) > maxInput {
		t.Fatal(1, "standard input is too long")
	}
	walk(string(b), func(text string) { t.Out.WriteString(text) }, func(name, as string) {
		if only != nil && !only[name] {
			t.Out.WriteString(as)
			return
		}
		t.Out.WriteString(t.Getenv(name))
	})
	return 0
}

// walk splits a text into what is plain and references to variables, as they were written.
func walk(s string, plain func(text string), variable func(name, as string)) {
	start := 0
	for i := 0; i < len(s); i++ {
		if s[i] != '$' {
			continue
		}
		from := i + 1
		braces := from < len(s) && s[from] == '{'
		if braces {
			from++
		}
		end := from
		for end < len(s) && (letter(s[end]) || end > from && s[end] >= '0' && s[end] <= '9') {
			end++
		}
		if end == from || braces && (end == len(s) || s[end] != '}') {
			continue
		}
		next := end
		if braces {
			next++
		}
		plain(s[start:i])
		variable(s[from:end], s[i:next])
		start, i = next, next-1
	}
	plain(s[start:])
}

func letter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
