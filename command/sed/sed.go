// Package sed is the stream editor, as GNU sed 4.9.
//
// A script is parsed into commands with addresses (parse.go); an executor runs them for every line of the input (exec.go),
// which it calls the pattern space, beside a hold space. Substitutions are in subst.go.
package sed

import (
	"errors"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const (
	keyDebug = tool.KeyOwn + iota
	keyFollow
	keyPosix
	keySandbox
)

var spec = tool.Spec{
	Usage: []string{"[OPTION]... {script-only-if-no-other-script} [input-file]..."},
	Options: []getopt.Option{
		{Short: 'n', Long: "quiet", Help: "suppress automatic printing of pattern space"},
		{Long: "silent", Key: 'n'},
		{Long: "debug", Key: keyDebug, Help: "(accepted, without annotations)"},
		{Short: 'e', Long: "expression", Arg: getopt.Required, Name: "script", Help: "add the script to the commands to be executed"},
		{Short: 'f', Long: "file", Arg: getopt.Required, Name: "script-file", Help: "add the contents of script-file to the commands to be executed"},
		{Long: "follow-symlinks", Key: keyFollow, Help: "follow symlinks when processing in place"},
		{Short: 'i', Long: "in-place", Arg: getopt.Optional, Name: "SUFFIX", Help: "edit files in place (makes backup if SUFFIX supplied)"},
		{Short: 'l', Long: "line-length", Arg: getopt.Required, Name: "N", Help: "specify the desired line-wrap length for the `l' command"},
		{Long: "posix", Key: keyPosix, Help: "disable all GNU extensions."},
		{Short: 'E', Long: "regexp-extended", Help: "use extended regular expressions in the script (for portability use POSIX -E)."},
		{Short: 'r', Key: 'E'},
		{Short: 's', Long: "separate", Help: "consider files as separate rather than as a single continuous long stream."},
		{Long: "sandbox", Key: keySandbox, Help: "operate in sandbox mode (disable e/r/w commands)."},
		{Short: 'u', Long: "unbuffered", Help: "load minimal amounts of data from the input files and flush the output buffers more often"},
		{Short: 'z', Long: "null-data", Help: "separate lines by NUL characters"},
		{Long: "zero-terminated", Key: 'z'},
	},
	Notes:   "If no -e, --expression, -f, or --file option is given, then the first\nnon-option argument is taken as the sed script to interpret.  All\nremaining arguments are names of input files; if no input files are\nspecified, then the standard input is read.",
	Package: tool.Sed, Chatty: true,
}

// Exit statuses.
const (
	exitUsage = 1
	exitInput = 2
	exitPanic = 4
)

// options are those that commands need to know.
type options struct {
	quiet, extended, separate, sandbox, posix, unbuffered, follow bool
	inPlace                                                       bool
	suffix                                                        string
	wrap                                                          int
	delim                                                         byte
}

// maxScript bounds a script file.
const maxScript = 16 << 20

// Sed edits streams.
func Sed(t *tool.T) int {
	t.FailStatus(exitPanic)
	o := options{wrap: 70, delim: '\n', posix: false}
	if n, err := strconv.Atoi(t.Getenv("COLS")); err == nil && n > 1 {
		o.wrap = n - 1
	}
	var chunks []chunk
	opts, files := t.Parse(&spec)
	expressions := 0
	for _, x := range opts {
		switch x.Key {
		case 'n':
			o.quiet = true
		case 'e':
			expressions++
			chunks = append(chunks, chunk{name: "-e expression #" + strconv.Itoa(expressions), text: x.Arg})
		case 'f':
			chunks = append(chunks, scriptFile(t, x.Arg))
		case keyFollow:
			o.follow = true
		case 'i':
			o.inPlace, o.separate, o.suffix = true, true, x.Arg
		case 'l':
			n, err := strconv.ParseUint(x.Arg, 10, 31)
			if err != nil {
				t.Fatal(exitUsage, "invalid line length: %s", x.Arg)
			}
			o.wrap = int(n)
		case keyPosix:
			o.posix = true
		case 'E':
			o.extended = true
		case 's':
			o.separate = true
		case keySandbox:
			o.sandbox = true
		case 'u':
			o.unbuffered = true
		case 'z':
			o.delim = 0
		}
	}
	if len(chunks) == 0 {
		if len(files) == 0 {
			t.Misused(&spec)
		}
		chunks = []chunk{{name: "-e expression #1", text: files[0]}}
		files = files[1:]
	}
	p := newParser(chunks, o)
	prog, err := p.program()
	if errors.Is(err, errLabel) {
		t.Fatal(exitPanic, "%s", err)
	}
	if err != nil {
		t.Fatal(exitUsage, "%s", err)
	}
	if p.silent {
		o.quiet = true
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	x := &executor{t: t, o: o, prog: prog, in: input{t: t, files: files, o: &o}, states: make([]rangeState, p.ranges)}
	defer x.closeAll()
	x.out = &output{w: t.Out}
	x.std = x.out
	if err := x.openFiles(p.files); err != nil {
		t.Fatal(exitPanic, "%s", err)
	}
	return x.run()
}

func scriptFile(t *tool.T, name string) chunk {
	b, err := t.ReadFile(name, maxScript)
	if err != nil {
		t.Fatal(exitPanic, "couldn't open file %s: %s", name, tool.Strerror(err))
	}
	return chunk{name: name, text: strings.TrimSuffix(string(b), "\n"), file: true}
}
