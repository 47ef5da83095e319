package shell

import (
	"reflect"

	"agentrun.dev/proc"
)

// Moving returns a shell that, where it rests and move says so, puts in its own place a copy of itself that has been
// captured and resumed, and saved and restored if save is set. Its subshells do so, too.
func Moving(posix, save bool, move func() bool, fail func(error)) proc.Program {
	return moving{posix, save, move, fail}
}

type moving struct {
	posix, save bool
	move        func() bool
	fail        func(error)
}

func (m moving) Run(p *proc.Process) int {
	sh := newShell(p, m.posix)
	sh.begin = func(sh *Shell) { sh.main(p.Args()) }
	sh.probe = m.probe
	return p.RunAs(sh)
}

func (m moving) probe(sh *Shell) bool {
	if !m.move() {
		return false
	}
	st, err := sh.Capture()
	if err == nil && m.save {
		var data []byte
		if _, data, err = st.(proc.Saver).Save(); err == nil {
			st, err = Restore(data)
		}
	}
	if err == nil {
		var prog proc.Program
		if prog, err = st.Resume(sh.p); err == nil {
			seed, seeded := sh.seed, sh.seeded // a real copy makes other random numbers, which can't be compared
			*sh = *prog.(*Shell)
			sh.probe, sh.seed, sh.seeded = m.probe, seed, seeded
			return true
		}
	}
	m.fail(err)
	return false
}

// FrameKinds names the frames that a saved shell may have.
func FrameKinds() []string {
	var out []string
	for _, f := range frameKinds() {
		out = append(out, reflect.TypeOf(f).Elem().Name())
	}
	return out
}
