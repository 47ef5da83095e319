package shell

import (
	"fmt"
	"strconv"
	"strings"

	"agentrun.dev/proc"
)

// job is a pipeline in the background, or one that was stopped. With job control its processes are a group of their own.
type job struct {
	id      int
	pgid    int // 0 without a group of its own
	procs   []kid
	texts   []string // of each process; a single one stands for all
	text    string
	dir     string // where it was started
	done    bool
	status  int
	sig     int   // that ended it
	sts     []int // of its processes, when it is done
	stopped int   // the signal that has stopped it
	front   bool  // in the foreground
	told    bool  // its state was reported
	coproc  string
	fds     [2]int
	nohup   bool // it isn't told that the terminal hangs up
}

// pid is that of the last process, whose status is the job's; leader that of the first.
func (j *job) pid() int    { return j.procs[len(j.procs)-1].pid }
func (j *job) leader() int { return j.procs[0].pid }

// controls tells whether pipelines are process groups of their own.
func (sh *Shell) controls() bool { return sh.opts.monitor && sh.subshell == sh.controlAt }

// join puts a child that hasn't started into a job's group, whose leader it becomes if there is none yet.
func (sh *Shell) join(child *proc.Process, pgid *int, front bool) {
	if !sh.controls() {
		return
	}
	first := *pgid == 0
	if first {
		*pgid = child.Pid()
	}
	child.SetPgid(*pgid)
	if first && front {
		sh.toFront(*pgid)
	}
}

// toFront gives the terminal to a group.
func (sh *Shell) toFront(pgid int) {
	if !sh.controls() || sh.p.TTY() == nil {
		return
	}
	// Whoever isn't in the foreground may do it only if it ignores this.
	old, _ := sh.p.SetSignal(proc.SIGTTOU, proc.Ignore)
	for fd := range 3 {
		if sh.p.SetForeground(fd, pgid) == nil {
			break
		}
	}
	sh.p.SetSignal(proc.SIGTTOU, old)
}

// takeTerminal gives the terminal back to the shell.
func (sh *Shell) takeTerminal() {
	if sh.controls() && sh.p.TTY() != nil {
		sh.toFront(sh.p.Pgid())
	}
}

// addJob makes a job of processes.
func (sh *Shell) addJob(ps []kid, pgid int, texts []string) *job {
	if len(sh.jobs) == 0 {
		sh.nextJob = 1
	}
	j := &job{id: sh.nextJob, pgid: pgid, procs: ps, texts: texts, text: strings.Join(texts, " | "), dir: sh.p.Getwd()}
	sh.nextJob++
	sh.jobs = append(sh.jobs, j)
	return j
}

// markNew makes a job that was just started in the background the current one, unless that is stopped.
func (sh *Shell) markNew(j *job) {
	if c := sh.jobOf(sh.current); c != nil && c.stopped != 0 {
		sh.previous = j.id
		return
	}
	sh.mark(j)
}

// mark makes a job the current one.
func (sh *Shell) mark(j *job) {
	if sh.current != j.id {
		sh.previous, sh.current = sh.current, j.id
	}
}

// jobList is the shell's jobs; in a subshell without any, those that its parent had.
func (sh *Shell) jobList() []*job {
	if sh.subshell == 0 || len(sh.jobs) > 0 {
		return sh.jobs
	}
	list := make([]*job, len(sh.view))
	for i := range sh.view {
		list[i] = &sh.view[i]
	}
	return list
}

func (sh *Shell) jobOf(id int) *job {
	for _, j := range sh.jobList() {
		if j.id == id {
			return j
		}
	}
	return nil
}

// marks returns the current and the previous job: those that were marked, or else the newest that is stopped or running.
func (sh *Shell) marks() (current, previous *job) {
	pick := func(id int, not *job) *job {
		if j := sh.jobOf(id); j != nil && j != not {
			return j
		}
		var best *job
		for _, j := range sh.jobList() {
			if j != not && !j.done && (best == nil || j.stopped != 0 || best.stopped == 0) {
				best = j
			}
		}
		if best == nil {
			for _, j := range sh.jobList() {
				if j != not {
					best = j
				}
			}
		}
		return best
	}
	current = pick(sh.current, nil)
	if current == nil {
		return nil, nil
	}
	if sh.current != current.id {
		sh.current = current.id
		if sh.previous == current.id {
			sh.previous = 0
		}
	}
	return current, pick(sh.previous, current)
}

// poll takes in what has become of a job's processes.
func (sh *Shell) poll(j *job) {
	if j.done {
		return
	}
	ended, running, stop := true, false, 0
	for i := range j.procs {
		k := &j.procs[i]
		if k.ended(sh) {
			continue
		}
		ended = false
		if s := k.stopped(); s != 0 {
			stop = s
		} else {
			running = true
		}
	}
	switch {
	case ended:
		sh.endJob(j)
	case !sh.opts.monitor:
	case running && j.stopped != 0:
		j.stopped = 0
	case !running && j.stopped == 0:
		j.stopped, j.told = stop, false
		sh.mark(j)
	}
}

// stopText is what lists say of a process that a signal has stopped.
func stopText(sig int) string {
	switch sig {
	case proc.SIGSTOP:
		return "Stopped (signal)"
	case proc.SIGTTIN:
		return "Stopped (tty input)"
	case proc.SIGTTOU:
		return "Stopped (tty output)"
	}
	return "Stopped"
}

// state is what jobs says of a process of a job, or of all of it.
func (j *job) state(i int) string {
	switch {
	case j.done && i < len(j.sts):
		return endText(j.sts[i], j.procs[i].sig)
	case j.done:
		return endText(j.status, j.sig)
	case j.stopped != 0:
		return stopText(j.stopped)
	}
	return "Running"
}

func endText(status, sig int) string {
	switch {
	case sig != 0:
		return signalText(sig)
	case status != 0:
		return "Exit " + strconv.Itoa(status)
	}
	return "Done"
}

// jobMark is what precedes a job in lists: + for the current, - for the previous one.
func (sh *Shell) jobMark(j *job) byte {
	current, previous := sh.marks()
	switch j {
	case current:
		return '+'
	case previous:
		return '-'
	}
	return ' '
}

// stateWidth is how wide lists show states.
const stateWidth = 24

// jobLines lists a job's processes: long with their numbers, otherwise as one line.
func (sh *Shell) jobLines(j *job, long bool) string {
	var b strings.Builder
	pad := func(s string, w int) string { return s + strings.Repeat(" ", max(0, w-len(s))) }
	last := len(j.texts) - 1
	if !long {
		s := j.state(len(j.procs) - 1)
		if j.stopped != 0 {
			s = "Stopped"
		}
		b.WriteString(" " + pad(s, stateWidth) + j.text)
	} else {
		first := j.state(0)
		for i, text := range j.texts {
			if i > 0 {
				b.WriteString("     ")
			}
			s := j.state(i)
			switch {
			case i > 0 && s == first:
				s = pad("", stateWidth-2)
			case last == 0:
				s = pad(j.state(len(j.procs)-1), stateWidth)
			default:
				s = pad(s, stateWidth)
			}
			if i > 0 {
				s += "| "
			}
			fmt.Fprintf(&b, "%5d %s%s", j.procs[i].pid, s, text)
			if i < last {
				b.WriteByte('\n')
			}
		}
	}
	if !j.done && j.stopped == 0 && !j.front {
		b.WriteString(" &")
	}
	if wd := sh.p.Getwd(); j.dir != "" && j.dir != wd {
		b.WriteString("  (wd: " + sh.politeDir(j.dir) + ")")
	}
	return b.String() + "\n"
}

// politeDir abbreviates the home directory.
func (sh *Shell) politeDir(dir string) string {
	home := sh.str("HOME")
	if rest, ok := strings.CutPrefix(dir, home); ok && len(home) > 1 && (rest == "" || rest[0] == '/') {
		return "~" + rest
	}
	return dir
}

func (sh *Shell) jobLine(j *job, long bool) string {
	return fmt.Sprintf("[%d]%c ", j.id, sh.jobMark(j)) + sh.jobLines(j, long)
}

// notify tells of jobs whose state has changed: an interactive shell before its prompt, others of those that signals have
// ended.
func (sh *Shell) notify() {
	if sh.subshell != sh.controlAt && len(sh.jobs) == 0 {
		return
	}
	var text strings.Builder
	var over []*job
	for _, j := range sh.jobs {
		if sh.poll(j); j.told || !j.done && j.stopped == 0 {
			continue
		}
		switch {
		case sh.opts.interactive && sh.opts.monitor:
			text.WriteString(sh.jobLine(j, false))
		case !sh.opts.interactive && j.done && j.sig != 0 && j.sig != proc.SIGINT && j.sig != proc.SIGPIPE && j.sig != proc.SIGTERM && !sh.hasTrap(j.sig):
			text.WriteString(sh.prefix() + sh.jobLines(j, true))
		case !sh.opts.interactive && sh.controls():
			text.WriteString(sh.jobLine(j, false))
		case !sh.opts.interactive:
			continue // wait and jobs tell
		}
		if j.told = true; j.done && sh.opts.interactive {
			over = append(over, j)
		}
	}
	if text.Len() > 0 {
		sh.stderr(text.String())
	}
	for _, j := range over {
		sh.dropJob(j)
	}
}

// warnOfJobs keeps an interactive shell from ending while jobs are stopped, the first time that it is asked to.
func (sh *Shell) warnOfJobs() bool {
	stopped := false
	for _, j := range sh.jobs {
		sh.poll(j)
		stopped = stopped || j.stopped != 0
	}
	if !stopped || sh.exitAsked > 0 {
		return false
	}
	sh.exitAsked = 2
	sh.stderr("There are stopped jobs.\n")
	return true
}
