// Package shell is a bash: the parser of mvdan.cc/sh, our interpreter on proc.
//
// A Shell is the state of one shell process. A statement is run by frames: each kind of compound command has one, which
// says what to do next when what it started has ended. So the state of a running script is explicit, loops can be
// stopped between any two commands, and deep recursion of a script doesn't take Go's stack. A subshell is a Process
// with a copy of the Shell, whose variables are shared until one side changes them. Nothing of the host is used.
//
// Control is what unwinds frames: break, continue, return, exit, and discard, which is what an expansion's error does to
// the rest of the line.
package shell

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"mvdan.cc/sh/v3/syntax"
)

// Version is what BASH_VERSION says: the bash whose behaviour this follows.
const Version = "5.2.15(1)-release"

type ctlKind uint8

const (
	ctlNone ctlKind = iota
	ctlBreak
	ctlContinue
	ctlReturn
	ctlDiscard
	ctlExit
)

// call is an entry of FUNCNAME, BASH_SOURCE and BASH_LINENO.
type call struct {
	name   string
	source string
	line   int // where it was called
}

// function is a defined function. It never changes.
type function struct {
	decl   *syntax.FuncDecl
	base   int    // lines before the text that the declaration was parsed from
	unit   *unit  // that text
	source string // file it was read from
	export bool
	ro     bool
}

// Shell is the state of one shell process. It belongs to the process's goroutine.
type Shell struct {
	p      *proc.Process
	posix  bool // run as sh
	name   string
	params []string
	pid    int // $$, also in subshells

	opts     options
	shopts   shopts
	scopes   []*scope
	funcs    map[string]*function // copied on change
	funcsOwn *owner
	aliases  map[string]string // copied on change
	tok      *owner
	env      []string
	envStale bool
	odd      []string // environment entries that aren't variables

	frames     []frame
	ctl        ctlKind
	ctlN       int // levels of break and continue
	status     int
	substSt    int // status of the last command substitution, -1 when there was none
	pipestatus []int
	noerr      int // > 0 where a failure doesn't count for set -e
	loops      int
	calls      []call
	depth      int   // function calls, sources and evals in progress
	base       int   // lines before the text that is being run
	unit       *unit // that text
	line       int
	source     string
	scriptFile string
	now        running
	traceLevel int // levels of text within text that the parent was in, for set -x
	subshell   int
	tail       bool // what is run now is the last thing this process does

	hist     history
	histOnly bool // the line that was expanded is to be shown only

	comps     map[string]*compSpec
	compNow   *compSpec // the specification by which is completed
	compName  string
	readline  readlineState
	kills     []string // what was killed in earlier lines
	noEditing bool
	commandNo int          // commands that were read, for \# in prompts
	plain     bool         // the builtin was called by command: its errors end nothing
	hard      map[int]bool // signals that were ignored from the start; never changed
	dying     int          // the signal that ends the shell after its EXIT trap
	toTop     bool         // what is discarded goes up to the script itself

	lastBg            int
	jobs              []*job
	pasts             []past       // replaced, not changed
	current, previous int          // jobs' numbers: those that %+ and %- were last
	controlAt         int          // the level of subshells that has job control
	stmtNow           *syntax.Stmt `save:"-"` // what was begun last
	nextJob           int
	kids              []kid    // of process substitutions, to be reaped
	procFds           []procFd // descriptors of process substitutions in use
	coprocs           map[string]*job
	traps             map[int]string
	inherit           map[int]string // what trap -p shows in a subshell
	inTrap            map[int]bool
	pending           []int
	trapStatus        int  // of the trap that ended last
	prior             int  // the status before return
	pastDebug         bool // the DEBUG trap has run for the command that begins
	traceFd           int
	getopts           int
	optPos            int
	hashed            map[string]hashEntry // copied on change
	hashOwn           *owner
	dirs              []string
	memory            memory
	disabled          map[string]bool // builtins, by enable -n

	undynamic   map[string]bool
	seed        uint32
	seeded      bool
	lastRandom  int
	secondsBase int64
	secondsFrom time.Time
	arithCache  map[string]*arithNode `save:"-"`
	arithDepth  int
	regexes     map[string]*regexp.Regexp `save:"-"`
	patterns    map[patternKey]*pattern   `save:"-"`
	exitTrap    bool                      // the EXIT trap has run
	exitAsked   int                       // prompts until an exit with stopped jobs is warned of again
	exitStatus  int
	out         []byte // what a builtin has written
	lastArg     string // $_
	bytes       bool   // the locale isn't UTF-8: a character is a byte
	view        []job  // the parent's jobs, which jobs shows in a subshell

	begin  func(*Shell) `save:"-"` // how the process begins; nil once it has
	pinned int          // > 0 in the middle of something that can't be captured
	try    attempt
	loose  []*unit           `save:"-"` // what the statement has read while it is expanded, and may start processes from
	probe  func(*Shell) bool `save:"-"` // of tests: called where the shell rests; true when it has put a copy in its place
}

// abort is what an expansion's error panics with; the loop recovers it.
type abort struct {
	kind   abortKind
	status int
}

type abortKind uint8

const (
	abortDiscard abortKind = iota // the rest of the line isn't run
	abortExit                     // the shell ends
	abortCommand                  // only the command fails
	abortAgain                    // nothing has failed: what was attempted begins again
)

// Bash is the program "bash"; SH is "sh", the same in POSIX mode.
type program struct{ posix bool }

// New returns the program behind bash, or sh if posix is set.
func New(posix bool) proc.Program { return program{posix} }

// Run implements proc.Program.
func (b program) Run(p *proc.Process) int {
	sh := newShell(p, b.posix)
	sh.begin = func(sh *Shell) { sh.main(p.Args()) }
	return p.RunAs(sh)
}

func newShell(p *proc.Process, posix bool) *Shell {
	tok := &owner{}
	sh := &Shell{p: p, posix: posix, name: "bash", pid: p.Pid(), tok: tok, funcsOwn: tok, substSt: -1, traceFd: 2, secondsFrom: p.Sandbox().Now(), nextJob: 1}
	sh.scopes = []*scope{{own: tok, vars: make(map[string]*variable)}}
	sh.funcs = make(map[string]*function)
	sh.shopts.on = shoptDefaults()
	sh.opts.hashall, sh.opts.braceexpand = true, true
	if posix {
		sh.opts.posix = true
		sh.shopts.set("expand_aliases", true)
	}
	sh.importEnv(p)
	sh.lastArg = sh.str("_")
	delete(sh.scopes[0].vars, "_")
	sh.initVars()
	sh.setLocale()
	return sh
}

// initVars sets what a shell sets when it starts.
func (sh *Shell) initVars() {
	def := func(name, value string, a attr) {
		sh.scopes[0].vars[name] = &variable{own: sh.tok, attr: a, set: true, str: value}
	}
	cred := sh.p.Cred()
	def("IFS", " \t\n", 0)
	def("OPTIND", "1", attrInteger)
	def("OPTERR", "1", 0)
	def("PS4", "+ ", 0)
	def("PPID", strconv.Itoa(sh.p.Ppid()), attrInteger|attrReadonly)
	def("UID", strconv.Itoa(int(cred.UID)), attrInteger|attrReadonly)
	def("EUID", strconv.Itoa(int(cred.UID)), attrInteger|attrReadonly)
	if !sh.posix {
		def("BASH", "/bin/bash", 0)
	} else {
		def("BASH", "/bin/sh", 0)
	}
	def("BASH_VERSION", Version, 0)
	def("HOSTNAME", sh.p.Sandbox().Hostname(), 0)
	def("HOSTTYPE", "x86_64", 0)
	def("MACHTYPE", "x86_64-pc-linux-gnu", 0)
	def("OSTYPE", "linux-gnu", 0)
	sh.scopes[0].vars["BASH_VERSINFO"] = &variable{own: sh.tok, attr: attrIndexed | attrReadonly, set: true,
		arr: &indexed{dense: []string{"5", "2", "15", "1", "release", "x86_64-pc-linux-gnu"}}}
	if _, ok := sh.get("PATH"); !ok {
		def("PATH", proc.DefaultPath, 0)
	}
	wd := sh.p.Getwd()
	if pwd := sh.str("PWD"); pwd == "" || !sh.sameDir(pwd, wd) {
		def("PWD", wd, attrExport)
	}
	if v, ok := sh.get("OLDPWD"); ok {
		if a, err := sh.p.Stat(v); err != nil || !a.Mode.IsDir() {
			delete(sh.scopes[0].vars, "OLDPWD")
		}
	} else {
		sh.scopes[0].vars["OLDPWD"] = &variable{own: sh.tok, attr: attrExport}
	}
	level, _ := strconv.Atoi(sh.str("SHLVL"))
	def("SHLVL", strconv.Itoa(level+1), attrExport)
	if _, ok := sh.get("TERM"); !ok {
		def("TERM", "dumb", 0)
	}
	if _, ok := sh.get("SHELL"); !ok {
		def("SHELL", "/bin/bash", 0)
	}
	if _, posix := sh.get("POSIXLY_CORRECT"); posix {
		sh.opts.posix = true
	} else if sh.opts.posix {
		def("POSIXLY_CORRECT", "y", 0)
	}
}

func (sh *Shell) sameDir(a, b string) bool {
	if !strings.HasPrefix(a, "/") {
		return false
	}
	x, err1 := sh.p.Stat(a)
	y, err2 := sh.p.Stat(b)
	return err1 == nil && err2 == nil && x.Dev == y.Dev && x.Ino == y.Ino
}

// clone copies the shell for a subshell. Both sides get new tokens, so that each copies what it changes.
func (sh *Shell) clone() *Shell {
	c := *sh
	sh.tok, c.tok = &owner{}, &owner{}
	c.scopes = make([]*scope, len(sh.scopes))
	for i, s := range sh.scopes {
		d := *s
		c.scopes[i] = &d
	}
	c.frames, c.ctl, c.jobs, c.kids, c.procFds, c.pending, c.out = nil, ctlNone, nil, nil, nil, nil, nil
	c.calls = append([]call(nil), sh.calls...)
	c.dirs = append([]string(nil), sh.dirs...)
	c.pipestatus = append([]int(nil), sh.pipestatus...)
	c.arithCache, c.inTrap, c.arithDepth, c.loose, c.regexes, c.patterns = nil, nil, 0, nil, nil, nil
	c.inherit = sh.traps
	if sh.traps == nil {
		c.inherit = sh.inherit
	}
	c.traps = nil
	c.traceLevel = sh.level()
	c.hist.used, c.hist.kept = false, false
	for sig, cmd := range sh.traps {
		if cmd == "" || sig == sigDebug && sh.opts.functrace || sig == sigErr && sh.opts.errtrace || sig == sigReturn && sh.opts.functrace {
			c.setTrap(sig, cmd)
		}
	}
	for _, j := range sh.jobs {
		v := *j
		v.procs = copyKids(j.procs)
		c.view = append(c.view, v)
	}
	c.subshell++
	c.exitTrap, c.tail, c.dying = false, false, 0
	c.try, c.pinned, c.begin = attempt{}, 0, nil
	c.seeded = false
	c.memory.forked()
	c.loops = 0
	return &c
}

// Writing.

// errorf writes a message as bash words it: name, line, text.
func (sh *Shell) errorf(format string, args ...any) {
	sh.flush()
	text := fmt.Sprintf(format, args...)
	sh.stderr(sh.prefix() + text + "\n")
}

func (sh *Shell) prefix() string {
	name := sh.name
	if len(sh.calls) > 0 && sh.source != "" {
		name = sh.source
	}
	if sh.opts.interactive {
		return name + ": "
	}
	return fmt.Sprintf("%s: line %d: ", name, sh.lineno())
}

func (sh *Shell) lineno() int { return max(1, sh.line) }

func (sh *Shell) stderr(s string) {
	sh.touch()
	if f, err := sh.p.File(2); err == nil {
		sh.writeAll(f, []byte(s))
	}
}

// writeAll writes everything, also if handled signals interrupt it.
func (sh *Shell) writeAll(f io.Writer, b []byte) error {
	for {
		n, err := f.Write(b)
		b = b[n:]
		if err == syscall.EINTR && sh.p.Killed() == 0 {
			sh.takeSignals()
			continue
		}
		if err != nil || len(b) == 0 {
			return err
		}
	}
}

// print adds to what the running builtin writes.
func (sh *Shell) print(s string) { sh.out = append(sh.out, s...) }

func (sh *Shell) printf(format string, args ...any) { sh.out = fmt.Appendf(sh.out, format, args...) }

// maxBuiltinOut is when a builtin's output is written before the builtin ends.
const maxBuiltinOut = 64 << 10

// flush writes what the builtin printed; an error is the caller's to report.
func (sh *Shell) flush() error {
	if len(sh.out) == 0 {
		return nil
	}
	b := sh.out
	f, err := sh.p.File(1)
	if err == nil && sh.try.on && sh.try.kind == attemptOutput {
		write := func() error {
			n, err := f.Write(sh.out)
			sh.out = sh.out[n:]
			return err
		}
		for len(sh.out) > 0 && (err == nil || err == syscall.EINTR && sh.p.Killed() == 0) {
			if err = sh.rest(write); err == syscall.EINTR {
				sh.takeSignals()
			}
		}
	} else if err == nil {
		sh.out = nil
		err = sh.writeAll(f, b)
	}
	sh.out = b[:0]
	if cap(b) > maxBuiltinOut {
		sh.out = nil
	}
	return err
}

func strerror(err error) string { return vfs.Strerror(err) }

// exitNow makes the shell end at the next step.
func (sh *Shell) exitNow(status int) {
	sh.ctl, sh.status, sh.exitStatus = ctlExit, status, status
}

// homeOf returns a user's home from the sandbox's /etc/passwd, by name or, if that is empty, by number.
func (sh *Shell) homeOf(name string, uid int) (string, bool) {
	data, err := sh.readFile("/etc/passwd", 1<<20)
	if err != nil {
		return "", false
	}
	for _, line := range strings.Split(string(data), "\n") {
		f := strings.Split(line, ":")
		if len(f) >= 6 && (name != "" && f[0] == name || name == "" && f[2] == strconv.Itoa(uid)) {
			return f[5], true
		}
	}
	return "", false
}

// readFile reads a whole file of at most limit bytes: EFBIG.
func (sh *Shell) readFile(name string, limit int) ([]byte, error) {
	f, err := sh.p.Open(name, syscall.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return sh.readAll(f, limit)
}

func (sh *Shell) readAll(f io.Reader, limit int) ([]byte, error) {
	var out []byte
	buf := make([]byte, 32<<10)
	for {
		n, err := f.Read(buf)
		out = append(out, buf[:n]...)
		switch {
		case err == io.EOF:
			return out, nil
		case err == syscall.EINTR && sh.p.Killed() == 0:
			sh.takeSignals()
		case err != nil:
			return out, err
		case len(out) > limit:
			return out, syscall.EFBIG
		}
	}
}
