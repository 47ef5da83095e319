package diff

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const (
	keyDryRun = tool.KeyOwn + 200 + iota
	keyBinaryPatch
	keyVerbose
	keyBackupMismatch
	keyNoBackupMismatch
	keyPosixPatch
	keyQuoting
	keyFollow
	keyRejectFormat
	keyReadOnly
)

var patchSpec = tool.Spec{
	Usage: []string{"[OPTION]... [ORIGFILE [PATCHFILE]]"},
	About: "Apply what diff found to files: unified, context, normal and ed scripts, and git's extended headers.",
	Options: []getopt.Option{
		{Short: 'p', Long: "strip", Arg: getopt.Required, Name: "NUM", Help: "Strip NUM leading components from file names."},
		{Short: 'F', Long: "fuzz", Arg: getopt.Required, Name: "LINES", Help: "Set the fuzz factor to LINES for inexact matching."},
		{Short: 'l', Long: "ignore-whitespace", Help: "Ignore white space changes between patch and input."},
		{Short: 'c', Long: "context", Help: "Interpret the patch as a context difference."},
		{Short: 'e', Long: "ed", Help: "Interpret the patch as an ed script."},
		{Short: 'n', Long: "normal", Help: "Interpret the patch as a normal difference."},
		{Short: 'u', Long: "unified", Help: "Interpret the patch as a unified difference."},
		{Short: 'N', Long: "forward", Help: "Ignore patches that appear to be reversed or already applied."},
		{Short: 'R', Long: "reverse", Help: "Assume patches were created with old and new files swapped."},
		{Short: 'i', Long: "input", Arg: getopt.Required, Name: "PATCHFILE", Help: "Read patch from PATCHFILE instead of stdin."},
		{Short: 'o', Long: "output", Arg: getopt.Required, Name: "FILE", Help: "Output patched files to FILE."},
		{Short: 'r', Long: "reject-file", Arg: getopt.Required, Name: "FILE", Help: "Output rejects to FILE."},
		{Short: 'D', Long: "ifdef", Arg: getopt.Required, Name: "NAME", Help: "Make merged if-then-else output using NAME."},
		{Short: 'E', Long: "remove-empty-files", Help: "Remove output files that are empty after patching."},
		{Short: 'Z', Long: "set-utc", Help: "Set times of patched files, assuming diff uses UTC (GMT)."},
		{Short: 'T', Long: "set-time", Help: "Likewise, assuming local time."},
		{Long: "quoting-style", Key: keyQuoting, Arg: getopt.Required, Name: "WORD", Help: "output file names using quoting style WORD."},
		{Short: 'b', Long: "backup", Help: "Back up the original contents of each file."},
		{Long: "backup-if-mismatch", Key: keyBackupMismatch, Help: "Back up if the patch does not match exactly."},
		{Long: "no-backup-if-mismatch", Key: keyNoBackupMismatch, Help: "Back up mismatches only if otherwise requested."},
		{Short: 'V', Long: "version-control", Arg: getopt.Required, Name: "STYLE", Help: "Use STYLE version control: 'simple', 'numbered' or 'existing'."},
		{Short: 'B', Long: "prefix", Arg: getopt.Required, Name: "PREFIX", Help: "Prepend PREFIX to backup file names."},
		{Short: 'Y', Long: "basename-prefix", Arg: getopt.Required, Name: "PREFIX", Help: "Prepend PREFIX to backup file basenames."},
		{Short: 'z', Long: "suffix", Arg: getopt.Required, Name: "SUFFIX", Help: "Append SUFFIX to backup file names."},
		{Short: 'g', Long: "get", Arg: getopt.Required, Name: "NUM"},
		{Short: 't', Long: "batch", Help: "Ask no questions; skip bad-Prereq patches; assume reversed."},
		{Short: 'f', Long: "force", Help: "Like -t, but ignore bad-Prereq patches, and assume unreversed."},
		{Short: 's', Long: "quiet", Help: "Work silently unless an error occurs."},
		{Short: 's', Long: "silent", Hidden: true},
		{Long: "verbose", Key: keyVerbose, Help: "Output extra information about the work being done."},
		{Long: "dry-run", Key: keyDryRun, Help: "Do not actually change any files; just print what would happen."},
		{Long: "posix", Key: keyPosixPatch, Help: "Conform to the POSIX standard."},
		{Long: "binary", Key: keyBinaryPatch, Help: "Read and write data in binary mode."},
		{Long: "follow-symlinks", Key: keyFollow, Help: "Follow symbolic links to the input files."},
		{Long: "reject-format", Key: keyRejectFormat, Arg: getopt.Required, Name: "FORMAT", Help: "Create 'context' or 'unified' rejects."},
		{Long: "read-only", Key: keyReadOnly, Arg: getopt.Required, Name: "BEHAVIOR", Help: "How to handle read-only input files: 'ignore', 'warn' or 'fail'."},
		{Short: 'd', Long: "directory", Arg: getopt.Required, Name: "DIR", Help: "Change the working directory to DIR first."},
		{Short: 'v', Long: "version"},
	},
	Package: "GNU patch) 2.7.6", Fail: 2,
}

// patcher is a run of patch.
type patcher struct {
	t                              *tool.T
	strip, fuzz                    int
	reverse, forward, batch, force bool
	dry, removeEmpty, quiet, posix bool
	blanks, binary, follow         bool
	backup, mismatchBackup         bool
	version, prefix, base, suffix  string // of backups
	target, output, rejects, ifdef string
	format                         byte // 'u', 'c', 'n', 'e', or 0 if it is to be found out
	rejectFormat                   string
	readOnly                       string
	outputs                        map[string]bool // what -o and -r have written already
	lines                          []string        // the patch
	at                             int
	failed, found                  bool
}

// Patch applies the output of diff to files.
func Patch(t *tool.T) int {
	p := &patcher{t: t, strip: -1, fuzz: 2, mismatchBackup: true, outputs: map[string]bool{}}
	t.FailStatus(2)
	opts, files := t.Parse(&patchSpec)
	input, dir := "-", ""
	for _, o := range opts {
		switch o.Key {
		case 'i':
			input = o.Arg
		case 'd':
			dir = o.Arg
		case 'v':
			t.Version(&patchSpec)
			return 0
		default:
			p.option(o)
		}
	}
	if len(files) > 2 {
		t.Warn("%s: extra operand", files[2])
		t.Warn("Try '%s --help' for more information.", t.Name)
		return 2
	}
	if len(files) > 0 {
		p.target = files[0]
	}
	if len(files) > 1 {
		input = files[1]
	}
	if dir != "" {
		if err := t.Chdir(dir); err != nil {
			p.fatal("Can't change to directory %s : %s", tool.QuoteF(dir), tool.Strerror(err))
		}
	}
	text, err := t.ReadFile(input, maxFile)
	if err != nil {
		p.fatal("Can't open patch file %s : %s", tool.QuoteF(input), tool.Strerror(err))
	}
	p.lines = strings.SplitAfter(string(text), "\n")
	if p.lines[len(p.lines)-1] == "" {
		p.lines = p.lines[:len(p.lines)-1]
	}
	p.all()
	if p.failed {
		return 1
	}
	return 0
}

// all applies one patch after the other.
func (p *patcher) all() {
	for {
		p.t.Check()
		f := p.next()
		if f == nil {
			break
		}
		p.found = true
		p.apply(f)
	}
	if !p.found && len(p.lines) > 0 {
		p.fatal("Only garbage was found in the patch input.")
	}
}

// fatal ends the command.
func (p *patcher) fatal(format string, args ...any) {
	p.t.Fatal(2, "**** "+format, args...)
}

func (p *patcher) option(o getopt.Opt) {
	switch o.Key {
	case 'p':
		p.strip = p.number("strip count", o.Arg)
	case 'F':
		p.fuzz = p.number("fuzz factor", o.Arg)
	case 'l':
		p.blanks = true
	case 'c', 'e', 'n', 'u':
		p.format = byte(o.Key)
	case 'N':
		p.forward = true
	case 'R':
		p.reverse = true
	case 'o':
		p.output = o.Arg
	case 'r':
		p.rejects = o.Arg
	case 'D':
		p.ifdef = o.Arg
	case 'E':
		p.removeEmpty = true
	case 't':
		p.batch = true
	case 'f':
		p.force = true
	case 's':
		p.quiet = true
	case keyDryRun:
		p.dry = true
	case keyPosixPatch:
		p.posix = true
	case keyBinaryPatch:
		p.binary = true
	case keyFollow:
		p.follow = true
	case keyRejectFormat:
		p.rejectFormat = o.Arg
		if o.Arg != "context" && o.Arg != "unified" {
			p.t.UsageError(2, "invalid argument '%s' for '--reject-format'", o.Arg)
		}
	case keyReadOnly:
		p.readOnly = o.Arg
	default:
		p.backupOption(o)
	}
}

func (p *patcher) backupOption(o getopt.Opt) {
	switch o.Key {
	case 'b':
		p.backup = true
	case keyBackupMismatch:
		p.mismatchBackup = true
	case keyNoBackupMismatch:
		p.mismatchBackup = false
	case 'V':
		styles := [][]string{{"none", "off"}, {"simple", "never"}, {"existing", "nil"}, {"numbered", "t"}}
		p.version = styles[p.t.Choice(2, "--version-control or -V option", o.Arg, styles)][0]
	case 'B':
		p.prefix = o.Arg
	case 'Y':
		p.base = o.Arg
	case 'z':
		p.suffix = o.Arg
	}
}

func (p *patcher) number(what, s string) int {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		p.fatal("%s %s is not a number", what, s)
	}
	return int(n)
}

// say writes a message: to standard output, unless the result goes there.
func (p *patcher) say(format string, args ...any) {
	if p.output == "-" {
		fmt.Fprintf(p.t.Stderr(), format, args...)
		return
	}
	fmt.Fprintf(p.t.Out, format, args...)
}

// tell is say unless -s is in force.
func (p *patcher) tell(format string, args ...any) {
	if !p.quiet {
		p.say(format, args...)
	}
}

// ask asks the user, if one sits at a terminal; else the answer is empty.
func (p *patcher) ask(format string, args ...any) string {
	p.say(format, args...)
	p.t.Out.Flush()
	if p.t.IsTerminal(1) {
		if tty, err := p.t.Process.Open("/dev/tty", syscall.O_RDONLY, 0); err == nil {
			defer tty.Close()
			var b [512]byte
			n, err := tty.Read(b[:])
			if err == nil || err == io.EOF {
				return strings.TrimSpace(string(b[:n]))
			}
		}
	}
	p.say("\n")
	return ""
}

// reversible asks what to do with a patch that seems to be applied already. It reports whether to apply it the other
// way round, and whether to skip it.
func (p *patcher) reversible(format string, args ...any) (turn, skip bool) {
	if p.forward || !(p.force && p.quiet) {
		p.say(format, args...)
	}
	switch {
	case p.forward:
		p.say("  Skipping patch.\n")
		return false, true
	case p.force:
		p.tell("  Applying it anyway.\n")
		return false, false
	case p.batch:
		if p.reverse {
			p.say("  Ignoring -R.\n")
		} else {
			p.say("  Assuming -R.\n")
		}
		return true, false
	}
	question := "  Assume -R? [n] "
	if p.reverse {
		question = "  Ignore -R? [n] "
	}
	if strings.HasPrefix(p.ask("%s", question), "y") {
		return true, false
	}
	if strings.HasPrefix(p.ask("Apply anyway? [n] "), "y") {
		return false, false
	}
	p.tell("Skipping patch.\n")
	return false, true
}
