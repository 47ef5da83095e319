package shell

import (
	"strconv"
	"strings"

	"agentrun.dev/proc"
)

func builtinWait(sh *Shell, args []string) int {
	args = args[1:]
	any, varName := false, ""
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
		case opt == "-p" && len(args) > 0:
			varName, args = args[0], args[1:]
			sh.unset(varName)
		default:
			return sh.badOption("wait", opt, "wait [-fn] [-p var] [id ...]")
		}
	}
	sh.push(&jobWaitFrame{any: any, varName: varName, specs: args})
	return pushed
}

// jobWaitFrame is the builtin wait.
type jobWaitFrame struct {
	any     bool
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
		sh.setStatus(f.status)
	}
}

// all waits for all children.
func (f *jobWaitFrame) all(sh *Shell) bool {
	for len(sh.jobs) > 0 {
		j := sh.jobs[0]
		if !f.job(sh, j) {
			return f.status != 0
		}
		sh.dropJob(j)
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
			continue
		}
		k := sh.findKid(spec)
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
				sh.dropJob(j)
				if f.varName != "" {
					sh.set(f.varName, strconv.Itoa(j.pid()))
				}
				f.status = j.status
				return true
			}
			ps = append(ps, j.procs[len(j.procs)-1].process(sh))
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

// job waits for a job; false when a signal came.
func (f *jobWaitFrame) job(sh *Shell, j *job) bool {
	if !j.done {
		if !f.kid(sh, &j.procs[len(j.procs)-1]) {
			return false
		}
		sh.endJob(j)
	}
	return true
}

// kid waits for a child to end; false when a signal came: a trapped one ends wait, with the status that it sets.
func (f *jobWaitFrame) kid(sh *Shell, k *kid) bool {
	for !k.ended(sh) {
		of := []*proc.Process{k.proc}
		err := sh.rest(func() error {
			_, err := sh.p.WaitEvent(of, proc.WaitKeep)
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

func builtinJobs(sh *Shell, args []string) int {
	pids, long, running, stopped := false, false, false, false
	args = args[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		for _, c := range args[0][1:] {
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
			default:
				return sh.badOption("jobs", "-"+string(c), "jobs [-lnprs] [jobspec ...] or jobs -x command [args]")
			}
		}
		args = args[1:]
	}
	sh.reap()
	list := append([]*job(nil), sh.jobs...)
	if sh.subshell > 0 && len(list) == 0 {
		for i := range sh.view {
			list = append(list, &sh.view[i])
		}
	}
	if len(args) > 0 {
		list = nil
		for _, a := range args {
			j := sh.findJob(a)
			if j == nil {
				sh.errorf("jobs: %s: no such job", a)
				return 1
			}
			list = append(list, j)
		}
	}
	for i, j := range list {
		if stopped || running && j.done {
			continue
		}
		if pids {
			sh.printf("%d\n", j.pid())
			continue
		}
		mark := " "
		switch i {
		case len(list) - 1:
			mark = "+"
		case len(list) - 2:
			mark = "-"
		}
		state, tail := "Running", " &"
		if j.done {
			state, tail = "Done", ""
			if j.sig != 0 {
				state = signalText(j.sig)
			} else if j.status != 0 {
				state = "Exit " + strconv.Itoa(j.status)
			}
		}
		if long {
			sh.printf("[%d]%s %d %-22s  %s%s\n", j.id, mark, j.pid(), state, j.text, tail)
		} else {
			sh.printf("[%d]%s  %-22s  %s%s\n", j.id, mark, state, j.text, tail)
		}
		if j.done {
			sh.dropJob(j)
		}
	}
	return 0
}

func builtinFg(sh *Shell, args []string) int {
	name := args[0]
	if !sh.opts.monitor {
		sh.errorf("%s: no job control", name)
		return 1
	}
	spec := "%+"
	if len(args) > 1 {
		spec = args[1]
	}
	j := sh.findJob(spec)
	if j == nil {
		sh.errorf("%s: %s: no such job", name, spec)
		return 1
	}
	if name == "bg" {
		sh.printf("[%d]+ %s &\n", j.id, j.text)
		return 0
	}
	sh.print(j.text + "\n")
	sh.flush()
	sh.push(&jobWaitFrame{specs: []string{strconv.Itoa(j.pid())}})
	return pushed
}

func builtinDisown(sh *Shell, args []string) int {
	args = args[1:]
	all, nohup := false, false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		all = all || strings.ContainsAny(args[0], "ar")
		nohup = nohup || strings.Contains(args[0], "h")
		args = args[1:]
	}
	if len(args) == 0 {
		if all {
			for _, j := range sh.jobs {
				sh.kids = append(sh.kids, j.procs...)
			}
			sh.jobs = nil
			return 0
		}
		args = []string{"%+"}
	}
	for _, a := range args {
		j := sh.findJob(a)
		if j == nil {
			sh.errorf("disown: %s: no such job", a)
			return 1
		}
		if !nohup {
			sh.kids = append(sh.kids, j.procs...)
			sh.dropJob(j)
		}
	}
	return 0
}
