package coreutils

import (
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var pwdSpec = tool.Spec{
	Usage: []string{"[OPTION]..."},
	About: "Print the full filename of the current working directory.",
	Options: []getopt.Option{
		{Short: 'L', Long: "logical", Help: "use PWD from environment, even if it contains symlinks"},
		{Short: 'P', Long: "physical", Help: "avoid all symlinks"},
	},
	Package: tool.Coreutils,
}

// Pwd prints the working directory.
func Pwd(t *tool.T) int {
	opts, operands := t.Parse(&pwdSpec)
	logical := false
	for _, o := range opts {
		logical = o.Key == 'L'
	}
	if len(operands) > 0 {
		t.Warn("ignoring non-option arguments")
	}
	if wd := t.Getenv("PWD"); logical && strings.HasPrefix(wd, "/") && !strings.Contains(wd+"/", "/./") && !strings.Contains(wd+"/", "/../") {
		a, err1 := t.Stat(wd)
		b, err2 := t.Stat(".")
		if err1 == nil && err2 == nil && a.Ino == b.Ino && a.Dev == b.Dev {
			t.Out.WriteString(wd + "\n")
			return 0
		}
	}
	t.Out.WriteString(t.Getwd() + "\n")
	return 0
}
