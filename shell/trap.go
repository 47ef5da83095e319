package shell

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/proc"
	"mvdan.cc/sh/v3/syntax"
)

// Traps that aren't signals have numbers beyond them.
const (
	sigExit   = 0
	sigDebug  = proc.MaxSignal + 1
	sigErr    = proc.MaxSignal + 2
	sigReturn = proc.MaxSignal + 3
)

func trapNumber(name string) (int, bool) {
	switch strings.ToUpper(strings.TrimPrefix(strings.ToUpper(name), "SIG")) {
	case "DEBUG":
		return sigDebug, true
	case "ERR":
		return sigErr, true
	case "RETURN":
		return sigReturn, true
	}
	return proc.SignalNumber(name)
}

func trapName(sig int) string {
	switch sig {
	case sigExit:
		return "EXIT"
	case sigDebug:
		return "DEBUG"
	case sigErr:
		return "ERR"
	case sigReturn:
		return "RETURN"
	}
	if n := proc.SignalName(sig); n != "" {
		return "SIG" + n
	}
	return strconv.Itoa(sig)
}

func (sh *Shell) hasTrap(sig int) bool { return sh.traps[sig] != "" }

// setTrap sets what a signal does: a command, "" to ignore it.
func (sh *Shell) setTrap(sig int, cmd string) {
	m := make(map[int]string, len(sh.traps)+1)
	for k, v := range sh.traps {
		m[k] = v
	}
	m[sig] = cmd
	sh.traps = m
}

func (sh *Shell) clearTrap(sig int) {
	m := make(map[int]string, len(sh.traps))
	for k, v := range sh.traps {
		if k != sig {
			m[k] = v
		}
	}
	sh.traps = m
}

// deadly are the signals that end a shell, which runs its EXIT trap before; 26 is VTALRM, 31 SYS.
var deadly = [...]int{proc.SIGHUP, proc.SIGINT, proc.SIGILL, proc.SIGTRAP, proc.SIGABRT, proc.SIGFPE, proc.SIGBUS, proc.SIGSEGV, 31, proc.SIGPIPE, proc.SIGALRM,
	proc.SIGTERM, proc.SIGXCPU, proc.SIGXFSZ, 26, proc.SIGUSR1, proc.SIGUSR2}

// exitSignals has deadly signals come to the shell if there is an EXIT trap to be run.
func (sh *Shell) exitSignals() {
	if sh.opts.interactive {
		return
	}
	d := proc.Default
	if sh.hasTrap(sigExit) {
		d = proc.Handle
	}
	for _, sig := range deadly {
		if _, own := sh.traps[sig]; !own && !sh.hard[sig] {
			sh.p.SetSignal(sig, d)
		}
	}
}

// dies tells whether a signal that has come ends the shell, after its EXIT trap.
func (sh *Shell) dies(sig int) bool {
	_, own := sh.traps[sig]
	return !own && !sh.opts.interactive && sh.hasTrap(sigExit) && slices.Contains(deadly[:], sig)
}

// die begins the end by a signal.
func (sh *Shell) die(sig int) {
	if sh.dying == 0 {
		sh.dying = sig
		sh.ctl, sh.exitStatus = ctlExit, sh.status
	}
}

// ignoredAtStart notes the signals that are ignored from the start: a script can't trap them.
func (sh *Shell) ignoredAtStart() {
	for sig := 1; sig <= proc.MaxSignal; sig++ {
		if sh.p.Disposition(sig) == proc.Ignore {
			if sh.hard == nil {
				sh.hard = make(map[int]bool)
			}
			sh.hard[sig] = true
			sh.setTrap(sig, "")
		}
	}
	if !sh.hard[proc.SIGQUIT] {
		sh.p.SetSignal(proc.SIGQUIT, proc.Handle) // which without a trap means nothing
	}
}

// applySignals makes the process's dispositions those of the traps, after a fork.
func (sh *Shell) applySignals() {
	for sig := 1; sig <= proc.MaxSignal; sig++ {
		if _, own := sh.traps[sig]; !own && sh.p.Disposition(sig) == proc.Handle {
			sh.p.SetSignal(sig, proc.Default)
		}
	}
	for sig, cmd := range sh.traps {
		if sig > 0 && sig <= proc.MaxSignal {
			d := proc.Handle
			if cmd == "" {
				d = proc.Ignore
			}
			sh.p.SetSignal(sig, d)
		}
	}
}

func builtinTrap(sh *Shell, args []string) int {
	args = args[1:]
	print := false
	if len(args) > 0 && args[0] == "-l" {
		return listSignals(sh)
	}
	if len(args) > 0 && args[0] == "-p" {
		print, args = true, args[1:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 || print {
		if print && len(args) == 0 && sh.opts.posix {
			return sh.printAllTraps()
		}
		return sh.printTraps(args)
	}
	cmd := args[0]
	reset := cmd == "-"
	names := args[1:]
	if len(args) == 1 {
		reset, names = true, args
		if _, ok := trapNumber(args[0]); !ok {
			sh.stderr("trap: usage: trap [-lp] [[arg] signal_spec ...]\n")
			return 2
		}
	} else if n, err := strconv.Atoi(cmd); err == nil && n >= 0 && n <= proc.MaxSignal {
		reset, names = true, args
	}
	st := 0
	for _, name := range names {
		sig, ok := trapNumber(name)
		if !ok {
			sh.errorf("trap: %s: invalid signal specification", name)
			st = 1
			continue
		}
		sh.inherit = nil
		if sh.hard[sig] && !sh.opts.interactive {
			continue
		}
		if reset {
			sh.clearTrap(sig)
		} else {
			sh.setTrap(sig, cmd)
		}
		if sig > 0 && sig <= proc.MaxSignal {
			d := proc.Handle
			switch {
			case reset:
				d = proc.Default
			case cmd == "":
				d = proc.Ignore
			}
			sh.p.SetSignal(sig, d)
		}
	}
	sh.exitSignals()
	return st
}

func (sh *Shell) printTraps(names []string) int {
	traps := sh.traps
	if sh.inherit != nil {
		traps = sh.inherit
	}
	var sigs []int
	for s := range traps {
		sigs = append(sigs, s)
	}
	sort.Ints(sigs)
	st := 0
	if len(names) > 0 {
		sigs = nil
		for _, n := range names {
			s, ok := trapNumber(n)
			if !ok {
				sh.errorf("trap: %s: invalid signal specification", n)
				st = 1
				continue
			}
			if _, set := traps[s]; set {
				sigs = append(sigs, s)
			}
		}
	}
	for _, s := range sigs {
		sh.printf("trap -- %s %s\n", quoteSingle(traps[s]), sh.trapShown(s))
	}
	return st
}

// trapShown names a trap; in POSIX mode without SIG.
func (sh *Shell) trapShown(sig int) string {
	if name := trapName(sig); sh.opts.posix {
		return strings.TrimPrefix(name, "SIG")
	} else {
		return name
	}
}

// printAllTraps is trap -p in POSIX mode: what isn't trapped is shown, too.
func (sh *Shell) printAllTraps() int {
	for sig := 0; sig <= sigReturn; sig++ {
		cmd, set := sh.traps[sig]
		if cmd = quoteSingle(cmd); !set {
			cmd = "-"
		}
		sh.printf("trap -- %s %s\n", cmd, sh.trapShown(sig))
	}
	return 0
}

// takeSignals moves handled signals from the process to the shell.
func (sh *Shell) takeSignals() { sh.pending = append(sh.pending, sh.p.TakeSignals()...) }

func (sh *Shell) signalsWaiting() bool {
	sh.takeSignals()
	return len(sh.pending) > 0
}

// runTraps runs the traps of the signals that came, in the middle of something else.
func (sh *Shell) runTraps() {
	for len(sh.pending) > 0 && sh.ctl == ctlNone {
		sig := sh.pending[0]
		sh.pending = sh.pending[1:]
		sh.runTrap(sig)
	}
}

// pushTraps pushes the frames of the traps of the signals that came; that of the first one runs first.
func (sh *Shell) pushTraps() {
	for i := len(sh.pending) - 1; i >= 0; i-- {
		if sig := sh.pending[i]; sh.traps[sig] != "" && !sh.inTrap[sig] {
			sh.push(&trapFrame{sig: sig})
		} else if sh.dies(sig) {
			sh.die(sig)
		} else if sig == proc.SIGINT && sh.opts.interactive && sh.subshell == 0 && !sh.inTrap[sig] {
			if _, ignored := sh.traps[sig]; !ignored {
				sh.status, sh.ctl, sh.toTop = 128+sig, ctlDiscard, true
			}
		}
	}
	sh.pending = nil
}

// trapFrame runs a trap's command and keeps the status of before it.
type trapFrame struct {
	byReturn bool // RETURN after the builtin, whose status the trap doesn't see
	sig      int
	begun    bool
	status   int
	line     int
	pipes    []int
}

func (f *trapFrame) step(sh *Shell) {
	cmd := sh.traps[f.sig]
	if f.begun || cmd == "" || sh.inTrap[f.sig] {
		sh.pop()
		return
	}
	f.begun, f.status, f.line, f.pipes = true, sh.status, sh.line, sh.pipestatus
	if f.byReturn {
		sh.status = sh.prior
	}
	sh.enterTrap(f.sig)
	t := sh.trapText(cmd)
	if f.sig <= proc.MaxSignal {
		t.r.base = 0 // a signal has no line
	}
	sh.push(t)
}

func (f *trapFrame) leave(sh *Shell) {
	if !f.begun {
		return
	}
	sh.leaveTrap(f.sig)
	sh.trapStatus = sh.status
	if sh.ctl != ctlExit && sh.ctl != ctlReturn {
		sh.status, sh.line, sh.pipestatus = f.status, f.line, f.pipes
	}
	if f.sig == sigErr {
		sh.errexit()
	}
}

// exitFrame runs the EXIT trap; the shell's status stays, unless the trap exits with one.
type exitFrame struct{ status int }

func (f *exitFrame) step(sh *Shell) { sh.pop() }

func (f *exitFrame) leave(sh *Shell) {
	if sh.ctl != ctlExit {
		sh.status = f.status
	}
}

// inTrap is replaced, not changed: copies of the shell share it.
func (sh *Shell) enterTrap(sig int) {
	m := map[int]bool{sig: true}
	for k := range sh.inTrap {
		m[k] = true
	}
	sh.inTrap = m
}

func (sh *Shell) leaveTrap(sig int) {
	m := map[int]bool{}
	for k := range sh.inTrap {
		if k != sig {
			m[k] = true
		}
	}
	sh.inTrap = m
}

// runTrap runs one trap's command, keeping the status.
func (sh *Shell) runTrap(sig int) {
	cmd := sh.traps[sig]
	if cmd == "" || sh.inTrap[sig] {
		return
	}
	sh.enterTrap(sig)
	status, line, pipes := sh.status, sh.line, sh.pipestatus
	sh.evalText(cmd)
	sh.leaveTrap(sig)
	sh.trapStatus = sh.status
	if sh.ctl != ctlExit && sh.ctl != ctlReturn {
		sh.status, sh.line, sh.pipestatus = status, line, pipes
	}
}

// evalText runs text to its end, in the middle of something else.
func (sh *Shell) evalText(text string) {
	sh.nested(func() { sh.push(sh.trapText(text)) })
}

// running is the command that runs, as BASH_COMMAND says.
type running struct {
	node   syntax.Node
	redirs []*syntax.Redirect
	unit   *unit
	text   string // if node is nil
}

// nowRuns notes what runs, but not what traps run.
func (sh *Shell) nowRuns(n syntax.Node, redirs []*syntax.Redirect) {
	if len(sh.inTrap) == 0 {
		sh.now = running{node: n, redirs: redirs, unit: sh.unit}
	}
}

// bashCommand is BASH_COMMAND.
func (sh *Shell) bashCommand() string {
	n := sh.now.node
	if n == nil {
		return sh.now.text
	}
	if c, ok := n.(syntax.Command); ok && len(sh.now.redirs) > 0 {
		n = &syntax.Stmt{Cmd: c, Redirs: sh.now.redirs}
	}
	u := sh.unit
	sh.unit = sh.now.unit
	text := sh.commandText(n)
	sh.unit = u
	return text
}

// debugTrap runs the DEBUG trap before a command, nil for the simple one that was noted.
func (sh *Shell) debugTrap(n syntax.Node) {
	if n != nil {
		sh.nowRuns(n, nil)
	}
	if !sh.hasTrap(sigDebug) || sh.inTrap[sigDebug] {
		return
	}
	if n != nil {
		sh.setLine(n.Pos())
	}
	sh.runTrap(sigDebug)
}

// pushReturnTrap pushes the frame of the RETURN trap; false when there is none.
func (sh *Shell) pushReturnTrap(byReturn bool) bool {
	if !sh.hasTrap(sigReturn) || sh.inTrap[sigReturn] {
		return false
	}
	sh.push(&trapFrame{sig: sigReturn, byReturn: byReturn})
	return true
}

// debugFrame runs the DEBUG trap and then the simple command that it precedes.
type debugFrame struct {
	cmd    *syntax.CallExpr
	redirs []*syntax.Redirect
	ran    bool // the trap
}

func (f *debugFrame) clone() frame {
	c := *f
	return &c
}

func (f *debugFrame) step(sh *Shell) {
	if !f.ran {
		f.ran = true
		sh.push(&trapFrame{sig: sigDebug})
		return
	}
	if sh.shopts.get("extdebug") && sh.trapStatus != 0 {
		sh.pop()
		sh.status = 0
		if sh.trapStatus == 2 && len(sh.calls) > 0 {
			sh.ctl = ctlReturn
		}
		return
	}
	sh.pop()
	if t := sh.attemptAt(attemptSimple); sh.pinned == 0 {
		t.cmd, t.redirs = f.cmd, f.redirs
	}
	sh.simpleNow(f.cmd, f.redirs, false)
}

// hideTraps takes away what a function doesn't inherit, and returns it.
func (sh *Shell) hideTraps() map[int]string {
	var hidden map[int]string
	for _, sig := range []int{sigDebug, sigErr, sigReturn} {
		if sig == sigErr && sh.opts.errtrace || sig != sigErr && sh.opts.functrace {
			continue
		}
		if cmd, ok := sh.traps[sig]; ok {
			if hidden == nil {
				hidden = make(map[int]string)
			}
			hidden[sig] = cmd
			sh.clearTrap(sig)
		}
	}
	return hidden
}

func (sh *Shell) restoreTraps(hidden map[int]string) {
	for sig, cmd := range hidden {
		if _, set := sh.traps[sig]; !set {
			sh.setTrap(sig, cmd)
		}
	}
}

// pushExitTrap pushes the frame of the EXIT trap, once; false when there is none.
func (sh *Shell) pushExitTrap() bool {
	sh.exitTrap = true
	cmd := sh.traps[sigExit]
	if cmd == "" {
		return false
	}
	sh.noerr = 0
	sh.push(&exitFrame{status: sh.status})
	f := sh.trapText(cmd)
	f.flat = true
	sh.enterTrap(sigExit)
	sh.push(f)
	return true
}

func signalText(sig int) string {
	switch sig {
	case proc.SIGHUP:
		return "Hangup"
	case proc.SIGINT:
		return "Interrupt"
	case proc.SIGQUIT:
		return "Quit"
	case proc.SIGABRT:
		return "Aborted"
	case proc.SIGKILL:
		return "Killed"
	case proc.SIGUSR1:
		return "User defined signal 1"
	case proc.SIGUSR2:
		return "User defined signal 2"
	case proc.SIGPIPE:
		return "Broken pipe"
	case proc.SIGALRM:
		return "Alarm clock"
	case proc.SIGTERM:
		return "Terminated"
	case proc.SIGSEGV:
		return "Segmentation fault"
	case proc.SIGXCPU:
		return "CPU time limit exceeded"
	case proc.SIGXFSZ:
		return "File size limit exceeded"
	}
	return fmt.Sprintf("Signal %d", sig)
}

func listSignals(sh *Shell) int {
	col := 0
	for n := 1; n <= proc.MaxSignal; n++ {
		name := proc.SignalName(n)
		if name == "" {
			continue
		}
		sh.printf("%2d) SIG%s", n, name)
		if col++; col%5 == 0 {
			sh.print("\n")
		} else {
			sh.print("\t")
		}
	}
	sh.print("\n")
	return 0
}

func builtinKill(sh *Shell, args []string) int {
	args = args[1:]
	sig := proc.SIGTERM
	if len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "--" {
		opt := args[0]
		args = args[1:]
		switch {
		case opt == "-l" || opt == "-L":
			return killList(sh, args)
		case opt == "-s" || opt == "-n":
			if len(args) == 0 {
				sh.errorf("kill: %s: option requires an argument", opt)
				return 1
			}
			opt, args = "-"+args[0], args[1:]
			fallthrough
		default:
			n, ok := proc.SignalNumber(opt[1:])
			if !ok {
				sh.errorf("kill: %s: invalid signal specification", opt[1:])
				return 1
			}
			sig = n
		}
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		sh.stderr("kill: usage: kill [-s sigspec | -n signum | -sigspec] pid | jobspec ... or kill -l [sigspec]\n")
		return 2
	}
	st := 0
	for _, a := range args {
		if strings.HasPrefix(a, "%") {
			j := sh.findJob(a)
			if j == nil || j.done {
				sh.errorf("kill: %s: no such job", a)
				st = 1
				continue
			}
			sh.signalJob(j, sig)
			if sh.poll(j); j.stopped != 0 && (sig == proc.SIGTERM || sig == proc.SIGHUP) {
				sh.signalJob(j, proc.SIGCONT)
			}
			continue
		}
		pid, err := strconv.Atoi(a)
		if err != nil {
			sh.errorf("kill: %s: arguments must be process or job IDs", a)
			st = 1
			continue
		}
		if j := sh.findJob(a); j != nil && j.done {
			err = syscall.ESRCH
		} else {
			err = sh.p.Signal(pid, sig)
		}
		if err != nil {
			sh.errorf("kill: (%d) - %s", pid, strerror(err))
			st = 1
		}
	}
	sh.reap()
	return st
}

func killList(sh *Shell, args []string) int {
	if len(args) == 0 {
		return listSignals(sh)
	}
	st := 0
	for _, a := range args {
		if n, err := strconv.Atoi(a); err == nil {
			if n > 128 {
				n -= 128
			}
			if name := proc.SignalName(n); name != "" {
				sh.print(name + "\n")
				continue
			}
			if n == 0 {
				sh.print("EXIT\n")
				continue
			}
		} else if n, ok := proc.SignalNumber(a); ok {
			sh.printf("%d\n", n)
			continue
		}
		sh.errorf("kill: %s: invalid signal specification", a)
		st = 1
	}
	return st
}
