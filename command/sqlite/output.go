package sqlite

import (
	"bufio"
	"syscall"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// sink is where results go: standard output, a file, or the input of a command.
type sink struct {
	*bufio.Writer
	name  string // as .show says; "" is standard output
	file  vfs.File
	child *proc.Process
}

// resetOutput goes back to standard output.
func (s *shell) resetOutput() {
	o := s.out
	if o.file == nil {
		return
	}
	o.Flush()
	o.file.Close()
	if o.child != nil {
		s.t.Wait(o.child)
	}
	s.out, s.once = &sink{Writer: s.t.Out}, false
}

// endOnce ends what .once began.
func (s *shell) endOnce() {
	if s.once {
		s.resetOutput()
	}
}

// redirect sends results to a file, or with a leading "|" to a command.
func (s *shell) redirect(to string) error {
	s.resetOutput()
	if to == "" || to == "stdout" {
		return nil
	}
	if to == "off" {
		to = "/dev/null"
	}
	if to[0] != '|' {
		f, err := s.t.Create(to)
		if err != nil {
			s.errorf("Error: cannot open \"%s\"\n", to)
			return err
		}
		s.out = &sink{Writer: bufio.NewWriter(f), name: to, file: f}
		return nil
	}
	s.t.Out.Flush()
	r, w, err := s.t.Pipe()
	if err != nil {
		return err
	}
	child, err := s.t.Spawn(proc.Spawn{Args: []string{"sh", "-c", to[1:]}, Files: map[int]vfs.File{0: r}})
	r.Close()
	if err != nil {
		w.Close()
		s.errorf("Error: cannot open pipe \"%s\"\n", to[1:])
		return err
	}
	s.out = &sink{Writer: bufio.NewWriter(w), name: to, file: w, child: child}
	return nil
}

// system runs a command of the sandbox's shell and reports a status that isn't 0.
func (s *shell) system(command string) {
	s.t.Out.Flush()
	child, err := s.t.Spawn(proc.Spawn{Args: []string{"sh", "-c", command}})
	if err != nil {
		s.errorf("System command returns %d\n", 127)
		return
	}
	if status, _ := s.t.Wait(child); status != 0 {
		s.errorf("System command returns %d\n", status<<8&0xff00)
	}
}

// pipeInput runs a command whose output is to be read.
func (s *shell) pipeInput(command string) (vfs.File, *proc.Process, error) {
	s.t.Out.Flush()
	r, w, err := s.t.Pipe()
	if err != nil {
		return nil, nil, err
	}
	null, err := s.t.Process.Open("/dev/null", syscall.O_RDONLY, 0)
	files := map[int]vfs.File{1: w}
	if err == nil {
		defer null.Close()
		files[0] = null
	}
	child, err := s.t.Spawn(proc.Spawn{Args: []string{"sh", "-c", command}, Files: files})
	w.Close()
	if err != nil {
		r.Close()
		return nil, nil, err
	}
	return r, child, nil
}
