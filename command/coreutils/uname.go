package coreutils

import (
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var unameSpec = tool.Spec{
	Usage: []string{"[OPTION]..."}, About: "Print certain system information.  With no OPTION, same as -s.",
	Options: []getopt.Option{
		{Short: 'a', Long: "all", Help: "print all information, except omit -p and -i if unknown"},
		{Short: 's', Long: "kernel-name", Help: "print the kernel name"},
		{Short: 'n', Long: "nodename", Help: "print the network node hostname"},
		{Short: 'r', Long: "kernel-release", Help: "print the kernel release"},
		{Short: 'v', Long: "kernel-version", Help: "print the kernel version"},
		{Short: 'm', Long: "machine", Help: "print the machine hardware name"},
		{Short: 'p', Long: "processor", Help: "print the processor type (non-portable)"},
		{Short: 'i', Long: "hardware-platform", Help: "print the hardware platform (non-portable)"},
		{Short: 'o', Long: "operating-system", Help: "print the operating system"},
	},
	Package: tool.Coreutils,
}

// Uname prints what the sandbox says it is; nothing of the host shows.
func Uname(t *tool.T) int {
	opts, operands := t.Parse(&unameSpec)
	noOperands(t, operands)
	want := ""
	for _, o := range opts {
		if o.Key == 'a' {
			want += "snrvmo"
		} else {
			want += string(o.Key)
		}
	}
	if want == "" {
		want = "s"
	}
	var out []string
	for _, f := range []struct{ letter, text string }{{"s", "Linux"}, {"n", t.Sandbox().Hostname()}, {"r", "6.1.0-agentrun"}, {"v", "#1 SMP AgentRun"}, {"m", "x86_64"},
		{"p", "unknown"}, {"i", "unknown"}, {"o", "GNU/Linux"}} {
		if strings.Contains(want, f.letter) {
			out = append(out, f.text)
		}
	}
	t.Out.WriteString(strings.Join(out, " ") + "\n")
	return 0
}

var hostnameSpec = tool.Spec{Usage: []string{"[OPTION]..."}, About: "Print the name of this sandbox.", Options: []getopt.Option{
	{Short: 's', Long: "short", Help: "the short host name"}, {Short: 'f', Long: "fqdn", Help: "the long host name"}}, Package: tool.Own}

// Hostname prints the sandbox's name.
func Hostname(t *tool.T) int {
	_, operands := t.Parse(&hostnameSpec)
	if len(operands) > 0 {
		t.Fatal(1, "you must be root to change the host name")
	}
	t.Out.WriteString(t.Sandbox().Hostname() + "\n")
	return 0
}
