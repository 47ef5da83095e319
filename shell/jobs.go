package shell

import (
	"strconv"
	"strings"

	"agentrun.dev/proc"
)

func builtinWait(sh *Shell, args []string) int {
	args = args[1:]
	any, force, varName := false, false, ""
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		opt := args[0]
		args = args[1:]
		if opt == "--" {
			break
		}
		switch {
		case opt == "-n":
			any = true
		case opt == "-f":
			force = true
		case opt == "-p" && len(args) > 0:
			varName, args = args[0], args[1:]
			sh.unset(varName)
		default:
			return sh.badOption("wait", opt, "wait [-fn] [-p var] [id ...]")
		}
	}
	sh.push(&jobWaitFrame{any: any, force: force, varName: varName, specs: args})
	return pushed
}

// jobWaitFrame is the builtin wait.
type jobWaitFrame struct {
	any     bool
	force   bool // jobs that stop are waited for, too
	varName string
	specs   []string // empty: all children
	i       int      // specs that were waited for
	status  int
}

func (f *jobWaitFrame) clone() frame {
	c := *f
	return &c
}

func (f *jobWaitFrame) step(sh *Shell) {
	wait := f.each
	switch {
	case f.any:
		wait = f.first
	case len(f.specs) == 0:
		wait = f.all
	}
	if wait(sh) {
		sh.pop()
		if len(sh.jobs) > 0 && !sh.opts.interactive {
			sh.notify()
		}
		sh.setStatus(f.status)
	}
}

// all waits for all children.
func (f *jobWaitFrame) all(sh *Shell) bool {
	for i := 0; i < len(sh.jobs); i++ {
		if !f.job(sh, sh.jobs[i]) {
			return f.status != 0
		}
	}
	if !sh.opts.interactive || !sh.opts.monitor { // else the prompt tells
		sh.notify()
		sh.jobs = nil
	}
	for len(sh.kids) > 0 {
		if !f.kid(sh, &sh.kids[0]) {
			return f.status != 0
		}
		sh.kids[0].collect(sh)
		sh.kids = sh.kids[1:]
	}
	f.status = 0
	return true
}

// each waits for those that are named.
func (f *jobWaitFrame) each(sh *Shell) bool {
	for ; f.i < len(f.specs); f.i++ {
		f.status = 0
		spec := f.specs[f.i]
		if j := sh.findJob(spec); j != nil {
			if !f.job(sh, j) {
				return f.status != 0
			}
			if f.status = j.status; f.varName != "" {
				sh.set(f.varName, strconv.Itoa(j.pid()))
			}
			if !sh.opts.interactive {
				sh.forgetJob(j)
			}
			continue
		}
		k := sh.findKid(spec)
		if st, ok := sh.pastStatus(spec); k == nil && ok {
			f.status = st
			continue
		}
		if k == nil {
			f.status = sh.noJob(spec)
			continue
		}
		if !f.kid(sh, k) {
			return f.status != 0
		}
		f.status, _ = k.collect(sh)
	}
	return true
}

// past is a job that was waited for: it is no job any more, but its status can be asked for again.
type past struct{ pid, status int }

// maxPast bounds how many are remembered.
const maxPast = 4096

func (sh *Shell) forgetJob(j *job) {
	sh.notify()
	if len(sh.pasts) >= maxPast {
		sh.pasts = sh.pasts[maxPast/2:]
	}
	sh.pasts = append(sh.pasts[:len(sh.pasts):len(sh.pasts)], past{j.pid(), j.status})
	sh.dropJob(j)
}

func (sh *Shell) pastStatus(spec string) (int, bool) {
	pid, err := strconv.Atoi(spec)
	for i := len(sh.pasts) - 1; i >= 0 && err == nil; i-- {
		if sh.pasts[i].pid == pid {
			return sh.pasts[i].status, true
		}
	}
	return 0, false
}

// first is wait -n: whichever ends first.
func (f *jobWaitFrame) first(sh *Shell) bool {
	for {
		sh.reap()
		var jobs []*job
		if len(f.specs) == 0 {
			jobs = append(jobs, sh.jobs...)
		}
		for _, s := range f.specs {
			if j := sh.findJob(s); j != nil {
				jobs = append(jobs, j)
			}
		}
		if len(jobs) == 0 {
			f.status = 127
			return true
		}
		var ps []*proc.Process
		for _, j := range jobs {
			if j.done {
				sh.forgetJob(j)
				if f.varName != "" {
					sh.set(f.varName, strconv.Itoa(j.pid()))
				}
				f.status = j.status
				return true
			}
			for i := range j.procs {
				if k := &j.procs[i]; !k.ended(sh) {
					ps = append(ps, k.proc)
					break
				}
			}
		}
		err := sh.rest(func() error {
			_, err := sh.p.WaitEvent(ps, proc.WaitKeep)
			return err
		})
		if err != nil && !f.goOn(sh) {
			return f.status != 0
		}
	}
}

// job waits for a job; false when a signal came, or with job control when the job has stopped.
func (f *jobWaitFrame) job(sh *Shell, j *job) bool {
	for i := range j.procs {
		if j.done {
			return true
		}
		if !f.kid(sh, &j.procs[i]) {
			return false
		}
	}
	sh.poll(j)
	return true
}

// kid waits for a child to end; false when a signal came: a trapped one ends wait, with the status that it sets.
func (f *jobWaitFrame) kid(sh *Shell, k *kid) bool {
	flags := proc.WaitKeep
	if sh.controls() && !f.force {
		flags |= proc.WaitStopped
	}
	for !k.ended(sh) {
		if s := k.stopped(); s != 0 && flags&proc.WaitStopped != 0 {
			f.status = 128 + s
			if j := sh.findJob(strconv.Itoa(k.pid)); j != nil {
				sh.errorf("warning: wait_for_job: job %d is stopped", j.id)
			}
			return false
		}
		of := []*proc.Process{k.proc}
		err := sh.rest(func() error {
			_, err := sh.p.WaitEvent(of, flags)
			return err
		})
		if err != nil && !f.goOn(sh) {
			return false
		}
	}
	return true
}

// goOn takes signals in. A trapped one ends wait; SIGCHLD's trap runs, and wait begins again.
func (f *jobWaitFrame) goOn(sh *Shell) bool {
	if sig := sh.p.Killed(); sig != 0 {
		f.status = 128 + sig
		return false
	}
	sh.takeSignals()
	f.status = 0
	for _, sig := range sh.pending {
		if sig != proc.SIGCHLD {
			f.status = 128 + sig
			break
		}
	}
	return len(sh.pending) == 0
}

// findKid finds a child that is no job by its number.
func (sh *Shell) findKid(spec string) *kid {
	pid, err := strconv.Atoi(spec)
	for i := range sh.kids {
		if err == nil && sh.kids[i].pid == pid {
			return &sh.kids[i]
		}
	}
	return nil
}

func (sh *Shell) noJob(a string) int {
	if strings.HasPrefix(a, "%") {
		sh.errorf("wait: %s: no such job", a)
		return 127
	}
	pid, err := strconv.Atoi(a)
	if err != nil || pid < 0 {
		sh.errorf("wait: `%s': not a pid or valid job spec", a)
		return 1
	}
	sh.errorf("wait: pid %d is not a child of this shell", pid)
	return 127
}

const jobsUsage = "jobs [-lnprs] [jobspec ...] or jobs -x command [args]"

func builtinJobs(sh *Shell, args []string) int {
	var pids, long, running, stopped, changed bool
	args = args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		word := args[0]
		args = args[1:]
		if word == "--" {
			break
		}
		for _, c := range word[1:] {
			switch c {
			case 'p':
				pids = true
			case 'l':
				long = true
			case 'r':
				running = true
			case 's':
				stopped = true
			case 'n':
				changed = true
			case 'x':
				return sh.jobsRun(args)
			default:
				return sh.badOption("jobs", "-"+string(c), jobsUsage)
			}
		}
	}
	sh.reap()
	list := append([]*job(nil), sh.jobList()...)
	st := 0
	if len(args) > 0 {
		list = nil
		for _, a := range args {
			j := sh.findJob(a)
			if j == nil {
				sh.errorf("jobs: %s: no such job", a)
				st = 1
				continue
			}
			list = append(list, j)
		}
	}
	var text strings.Builder
	for _, j := range list {
		if stopped && j.stopped == 0 || running && (j.done || j.stopped != 0) || changed && j.told {
			continue
		}
		if pids {
			text.WriteString(strconv.Itoa(j.leader()) + "\n")
			continue
		}
		text.WriteString(sh.jobLine(j, long))
		j.told = true
	}
	sh.print(text.String())
	for _, j := range list {
		if j.done && j.told && sh.jobOf(j.id) == j {
			sh.dropJob(j)
		}
	}
	return st
}

// jobsRun is jobs -x: a command whose arguments that are jobs become their process groups.
func (sh *Shell) jobsRun(args []string) int {
	if len(args) == 0 {
		return 0
	}
	out := []string{"command"}
	for _, a := range args {
		if strings.HasPrefix(a, "%") {
			if j := sh.findJob(a); j != nil {
				a = strconv.Itoa(j.leader())
			}
		}
		out = append(out, a)
	}
	return builtinCommand(sh, out)
}

func builtinFg(sh *Shell, args []string) int {
	name := args[0]
	args = skipDashes(args[1:])
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && args[0] != "--" {
		usage := "fg [job_spec]"
		if name == "bg" {
			usage = "bg [job_spec ...]"
		}
		return sh.badOption(name, args[0][:2], usage)
	}
	if !sh.controls() {
		sh.errorf("%s: no job control", name)
		return 1
	}
	specs := args
	if len(specs) == 0 {
		specs = []string{"%+"}
	}
	if name == "fg" {
		return sh.foregroundJob(specs[0], len(args) == 0)
	}
	st := 0
	for _, spec := range specs {
		j := sh.askedJob("bg", spec, len(args) == 0)
		switch {
		case j == nil:
			st = 1
		case j.done:
			sh.errorf("bg: job has terminated")
			st = 1
		case j.stopped == 0:
			sh.errorf("bg: job %d already in background", j.id)
		default:
			mark := sh.jobMark(j)
			sh.printf("[%d]%c %s &\n", j.id, mark, j.text)
			sh.goOn(j)
		}
	}
	return st
}

// askedJob finds the job that fg or bg is told, and says so if there is none.
func (sh *Shell) askedJob(name, spec string, current bool) *job {
	sh.reap()
	switch j := sh.findJob(spec); {
	case j != nil:
		return j
	case sh.ambiguous(spec):
		sh.errorf("%s: %s: ambiguous job spec", name, strings.TrimPrefix(spec, "%"))
	case current:
		sh.errorf("%s: current: no such job", name)
	default:
		sh.errorf("%s: %s: no such job", name, spec)
	}
	return nil
}

// ambiguous tells whether a name begins the text of several jobs.
func (sh *Shell) ambiguous(spec string) bool {
	n := 0
	name := strings.TrimPrefix(spec, "%")
	for _, j := range sh.jobs {
		if rest, any := strings.CutPrefix(name, "?"); any && strings.Contains(j.text, rest) || !any && strings.HasPrefix(j.text, name) {
			n++
		}
	}
	return n > 1
}

// goOn lets a stopped job go on.
func (sh *Shell) goOn(j *job) {
	j.stopped, j.told = 0, false
	sh.signalJob(j, proc.SIGCONT)
}

// signalJob sends a signal to a job's group, or to its processes.
func (sh *Shell) signalJob(j *job, sig int) {
	if j.pgid != 0 {
		sh.p.Signal(-j.pgid, sig)
		return
	}
	for i := range j.procs {
		if p := j.procs[i].process(sh); p != nil {
			p.Post(sig)
		}
	}
}

func (sh *Shell) foregroundJob(spec string, current bool) int {
	j := sh.askedJob("fg", spec, current)
	if j == nil {
		return 1
	}
	if j.done {
		sh.errorf("fg: job has terminated")
		return 1
	}
	sh.print(j.text + "\n")
	sh.flush()
	j.front = true
	sh.mark(j)
	if j.pgid != 0 {
		sh.toFront(j.pgid)
	}
	sh.goOn(j)
	sh.push(&waitFrame{kids: copyKids(j.procs), then: afterBuiltin, fds: len(sh.procFds), last: -1, pgid: j.pgid, job: j.id})
	return pushed
}

func builtinDisown(sh *Shell, args []string) int {
	args = args[1:]
	var all, nohup, running bool
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		word := args[0]
		args = args[1:]
		if word == "--" {
			break
		}
		for _, c := range word[1:] {
			switch c {
			case 'a':
				all = true
			case 'r':
				running = true
			case 'h':
				nohup = true
			default:
				return sh.badOption("disown", "-"+string(c), "disown [-h] [-ar] [jobspec ... | pid ...]")
			}
		}
	}
	sh.reap()
	forget := func(j *job) {
		if nohup {
			j.nohup = true
			return
		}
		if j.stopped != 0 {
			sh.errorf("warning: deleting stopped job %d with process group %d", j.id, j.leader())
		}
		sh.kids = append(sh.kids, j.procs...)
		sh.dropJob(j)
	}
	if len(args) == 0 && (all || running) {
		for _, j := range append([]*job(nil), sh.jobs...) {
			if !running || !j.done && j.stopped == 0 {
				forget(j)
			}
		}
		return 0
	}
	st := 0
	if len(args) == 0 {
		args = []string{"%+"}
		if j := sh.findJob("%+"); j == nil {
			sh.errorf("disown: current: no such job")
			return 1
		}
	}
	for _, a := range args {
		j := sh.findJob(a)
		if j == nil {
			sh.errorf("disown: %s: no such job", a)
			st = 1
			continue
		}
		forget(j)
	}
	return st
}
