package shell

import (
	"strconv"
	"strings"
	"syscall"

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
	sh.flush()
	if any {
		return sh.waitAny(args, varName)
	}
	if len(args) == 0 {
		for len(sh.jobs) > 0 {
			j := sh.jobs[0]
			if st, ok := sh.waitJob(j); !ok {
				return st
			}
			sh.dropJob(j)
		}
		for _, k := range sh.kids {
			sh.p.Wait(k)
		}
		return 0
	}
	st := 0
	for _, a := range args {
		var ok bool
		j := sh.findJob(a)
		if j == nil {
			st = sh.noJob(a)
			continue
		}
		if st, ok = sh.waitJob(j); !ok {
			return st
		}
		if varName != "" {
			sh.set(varName, strconv.Itoa(j.pid()))
		}
	}
	return st
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
	for _, k := range sh.kids {
		if k.Pid() == pid {
			st, _ := sh.p.Wait(k)
			return st
		}
	}
	sh.errorf("wait: pid %d is not a child of this shell", pid)
	return 127
}

// waitJob waits for a job; ok is false when a trap interrupts, with the status to return.
func (sh *Shell) waitJob(j *job) (status int, ok bool) {
	for !j.done {
		last := j.procs[len(j.procs)-1]
		st, err := sh.p.Wait(last)
		switch err {
		case nil:
			j.status = st
			sh.endJob(j)
			j.status = st
		case syscall.EINTR:
			if st, stop := sh.interrupted(); stop {
				return st, false
			}
		default:
			j.done, j.status = true, last.Status()
		}
	}
	return j.status, true
}

// interrupted takes signals in during wait; a trapped one ends it.
func (sh *Shell) interrupted() (status int, stop bool) {
	if sig := sh.p.Killed(); sig != 0 {
		return 128 + sig, true
	}
	sh.takeSignals()
	for _, sig := range sh.pending {
		if sig != proc.SIGCHLD {
			return 128 + sig, true
		}
	}
	if len(sh.pending) > 0 {
		sh.runTraps()
	}
	return 0, false
}

// waitAny is wait -n: whichever ends first.
func (sh *Shell) waitAny(specs []string, varName string) int {
	for {
		var jobs []*job
		if len(specs) == 0 {
			jobs = append(jobs, sh.jobs...)
		}
		for _, s := range specs {
			if j := sh.findJob(s); j != nil {
				jobs = append(jobs, j)
			}
		}
		if len(jobs) == 0 {
			return 127
		}
		var ps []*proc.Process
		for _, j := range jobs {
			if j.done {
				sh.dropJob(j)
				if varName != "" {
					sh.set(varName, strconv.Itoa(j.pid()))
				}
				return j.status
			}
			ps = append(ps, j.procs[len(j.procs)-1])
		}
		if _, err := sh.p.WaitAny(ps); err != nil {
			if st, stop := sh.interrupted(); stop {
				return st
			}
			continue
		}
		sh.reap()
	}
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
			if sig := j.procs[len(j.procs)-1].Signaled(); sig != 0 {
				state = signalText(sig)
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
	st, ok := sh.waitJob(j)
	if ok {
		sh.dropJob(j)
	}
	return st
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
