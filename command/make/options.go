package make

import (
	"runtime"
	"slices"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const (
	keyDebug = tool.KeyOwn + iota
	keyTrace
	keyNoPrintDirectory
	keyWarnUndefined
	keyNoSilent
	keyDirectory
)

var spec = tool.Spec{
	Usage: []string{"[options] [target] ..."},
	Options: []getopt.Option{
		{Short: 'b', Help: "Ignored for compatibility."}, {Short: 'm', Key: 'b', Hidden: true},
		{Short: 'B', Long: "always-make", Help: "Unconditionally make all targets."},
		{Short: 'C', Long: "directory", Arg: getopt.Required, Name: "DIRECTORY", Help: "Change to DIRECTORY before doing anything."},
		{Short: 'd', Help: "Print debugging information: why targets are made."},
		{Long: "debug", Key: keyDebug, Arg: getopt.Optional, Name: "FLAGS", Help: "Print debugging information: why targets are made."},
		{Short: 'e', Long: "environment-overrides", Help: "Environment variables override makefiles."},
		{Short: 'E', Long: "eval", Arg: getopt.Required, Name: "STRING", Help: "Evaluate STRING as a makefile statement."},
		{Short: 'f', Long: "file", Arg: getopt.Required, Name: "FILE", Help: "Read FILE as a makefile."},
		{Long: "makefile", Key: 'f', Arg: getopt.Required, Hidden: true},
		{Short: 'h', Long: "help", Help: "Print this message and exit."},
		{Short: 'i', Long: "ignore-errors", Help: "Ignore errors from recipes."},
		{Short: 'I', Long: "include-dir", Arg: getopt.Required, Name: "DIRECTORY", Help: "Search DIRECTORY for included makefiles."},
		{Short: 'j', Long: "jobs", Arg: getopt.Optional, Name: "N", Help: "Allow N jobs at once; infinite jobs with no arg."},
		{Short: 'k', Long: "keep-going", Help: "Keep going when some targets can't be made."},
		{Short: 'l', Long: "load-average", Arg: getopt.Optional, Name: "N", Help: "Accepted; the load of a sandbox isn't measured."},
		{Long: "max-load", Key: 'l', Arg: getopt.Optional, Hidden: true},
		{Short: 'L', Long: "check-symlink-times", Help: "Accepted; links are as new as their targets."},
		{Short: 'n', Long: "just-print", Help: "Don't actually run any recipe; just print them."},
		{Long: "dry-run", Key: 'n', Hidden: true}, {Long: "recon", Key: 'n', Hidden: true},
		{Short: 'o', Long: "old-file", Arg: getopt.Required, Name: "FILE", Help: "Consider FILE to be very old and don't remake it."},
		{Long: "assume-old", Key: 'o', Arg: getopt.Required, Hidden: true},
		{Short: 'O', Long: "output-sync", Arg: getopt.Optional, Name: "TYPE", Help: "Accepted; the output of jobs is not held back."},
		{Short: 'p', Long: "print-data-base", Help: "Print make's internal database."},
		{Short: 'q', Long: "question", Help: "Run no recipe; exit status says if up to date."},
		{Short: 'r', Long: "no-builtin-rules", Help: "Disable the built-in implicit rules."},
		{Short: 'R', Long: "no-builtin-variables", Help: "Disable the built-in variable settings."},
		{Short: 's', Long: "silent", Help: "Don't echo recipes."}, {Long: "quiet", Key: 's', Hidden: true},
		{Long: "no-silent", Key: keyNoSilent, Help: "Echo recipes (disable --silent mode)."},
		{Short: 'S', Long: "no-keep-going", Help: "Turns off -k."}, {Long: "stop", Key: 'S', Hidden: true},
		{Short: 't', Long: "touch", Help: "Touch targets instead of remaking them."},
		{Long: "trace", Key: keyTrace, Help: "Print tracing information."},
		{Short: 'v', Long: "version", Help: "Print the version number of make and exit."},
		{Short: 'w', Long: "print-directory", Help: "Print the current directory."},
		{Long: "no-print-directory", Key: keyNoPrintDirectory, Help: "Turn off -w, even if it was turned on implicitly."},
		{Short: 'W', Long: "what-if", Arg: getopt.Required, Name: "FILE", Help: "Consider FILE to be infinitely new."},
		{Long: "new-file", Key: 'W', Arg: getopt.Required, Hidden: true}, {Long: "assume-new", Key: 'W', Arg: getopt.Required, Hidden: true},
		{Long: "warn-undefined-variables", Key: keyWarnUndefined, Help: "Warn when an undefined variable is referenced."},
	},
	Fail: 2, NoHelp: true, Chatty: true,
}

// options are those of the command line and MAKEFLAGS.
type options struct {
	letters                                            map[rune]bool // BeikLnpqrRsStw and d
	always, envOverrides, ignoreErrors, keepGoing      bool
	dryRun, question, noRules, noVariables, touch      bool
	silentAll, trace, printData                        bool
	warnUndefined, printDir, noPrintDir, entered       bool
	jobs                                               int
	jobsSet                                            bool
	oldFiles, newFiles                                 map[string]bool
	includeDirs, makefileNames, dirs, evals, goalNames []string
	commandVars                                        []assignment
}

func machine() string {
	return map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH] + "-pc-linux-gnu"
}

// joinNumbers joins -j and -l with a number that follows as a word of its own.
func joinNumbers(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return append(out, args[i:]...)
		}
		short := len(a) > 1 && a[0] == '-' && a[1] != '-' && (strings.HasSuffix(a, "j") || strings.HasSuffix(a, "l")) && !strings.ContainsAny(a, "CfIoWE")
		if i+1 < len(args) && (short || a == "--jobs" || a == "--load-average" || a == "--max-load") {
			if _, err := strconv.ParseFloat(args[i+1], 64); err == nil {
				if i++; short {
					a += args[i]
				} else {
					a += "=" + args[i]
				}
			}
		}
		if a == "-C" || a == "-f" || a == "-I" || a == "-o" || a == "-W" || a == "-E" {
			if out = append(out, a); i+1 < len(args) {
				i++
				a = args[i]
			} else {
				continue
			}
		}
		out = append(out, a)
	}
	return out
}

// option applies one option.
func (m *maker) option(o getopt.Opt) {
	switch o.Key {
	case 'B':
		m.always = true
	case 'C':
		m.dirs = append(m.dirs, o.Arg)
	case 'e':
		m.envOverrides = true
	case 'E':
		m.evals = append(m.evals, o.Arg)
	case 'f':
		m.makefileNames = append(m.makefileNames, o.Arg)
	case 'i':
		m.ignoreErrors = true
	case 'I':
		m.includeDirs = append(m.includeDirs, o.Arg)
	case 'j':
		m.jobs, m.jobsSet = 1<<10, true
		if o.Has {
			n, err := strconv.Atoi(o.Arg)
			if err != nil || n < 1 {
				m.complain("the '-j' option requires a positive integer argument")
				m.t.Misused(&spec)
			}
			m.jobs = min(n, 1<<10)
		}
	case 'k':
		m.keepGoing = true
	case 'S':
		m.keepGoing = false
		delete(m.letters, 'k')
	case 'n':
		m.dryRun = true
	case 'o':
		m.oldFiles[clean(o.Arg)] = true
	case 'W':
		m.newFiles[clean(o.Arg)] = true
	case 'p':
		m.printData = true
	case 'q':
		m.question = true
	case 'r':
		m.noRules = true
	case 'R':
		m.noVariables, m.noRules = true, true
		m.letters['r'] = true
	case 's':
		m.silentAll = true
	case keyNoSilent:
		m.silentAll = false
		delete(m.letters, 's')
	case 't':
		m.touch = true
	case 'w':
		m.printDir = true
	case keyNoPrintDirectory:
		m.noPrintDir = true
	case keyTrace, 'd', keyDebug:
		m.trace = true
	case keyWarnUndefined:
		m.warnUndefined = true
	}
	if strings.ContainsRune("BeiknpqrRsStwL", o.Key) {
		m.letters[o.Key] = true
	}
}

// flagsFrom takes the options of MAKEFLAGS.
func (m *maker) flagsFrom(s string) {
	w := splitFlags(s)
	if len(w) == 0 {
		return
	}
	if !strings.HasPrefix(w[0], "-") && !strings.Contains(w[0], "=") {
		w[0] = "-" + w[0]
	}
	vars := []string(nil)
	if i := slices.Index(w, "--"); i >= 0 {
		w, vars = w[:i], w[i+1:]
	}
	opts, operands, err := getopt.Parse(spec.Options, joinNumbers(w), getopt.Permute)
	if err != nil {
		return // GNU ignores what it doesn't know here
	}
	for _, o := range opts {
		if o.Key != 'C' && o.Key != 'f' && o.Key != 'h' && o.Key != 'v' {
			m.option(o)
		}
	}
	for _, v := range append(operands, vars...) {
		if a, ok := parseAssignment(v); ok && m.global == nil {
			m.commandVars = append(m.commandVars, a)
		}
	}
}

// splitFlags splits at blanks that no backslash escapes.
func splitFlags(s string) []string {
	var out []string
	var b strings.Builder
	in := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
			in = true
		case c == ' ' || c == '\t' || c == '\n':
			if in {
				out = append(out, b.String())
			}
			b.Reset()
			in = false
		default:
			b.WriteByte(c)
			in = true
		}
	}
	if in {
		out = append(out, b.String())
	}
	return out
}

// flagsText is the value of MAKEFLAGS.
func (m *maker) flagsText() string {
	var b strings.Builder
	for _, l := range "BdeikLnpqrRsStw" {
		if m.letters[l] {
			b.WriteRune(l)
		}
	}
	for _, d := range m.includeDirs {
		b.WriteString(" -I" + escapeFlag(d))
	}
	if m.jobsSet {
		b.WriteString(" -j")
		if m.jobs < 1<<10 {
			b.WriteString(strconv.Itoa(m.jobs))
		}
	}
	if m.trace {
		b.WriteString(" --trace")
	}
	if m.noPrintDir {
		b.WriteString(" --no-print-directory")
	}
	if m.warnUndefined {
		b.WriteString(" --warn-undefined-variables")
	}
	if len(m.commandVars) > 0 {
		b.WriteString(" --")
		for i := len(m.commandVars) - 1; i >= 0; i-- {
			a := m.commandVars[i]
			b.WriteString(" " + escapeFlag(a.name+a.op+a.value))
		}
	}
	return b.String()
}

// mflags is the value of MFLAGS, with a dash.
func (m *maker) mflags() string {
	s, _, _ := strings.Cut(m.flagsText(), " -- ")
	if s != "" && s[0] != ' ' {
		s = "-" + s
	}
	return strings.TrimSpace(s)
}

func escapeFlag(s string) string {
	return strings.NewReplacer(`\`, `\\`, " ", `\ `, "\t", "\\\t").Replace(s)
}
