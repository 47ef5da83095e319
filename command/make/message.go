package make

import (
	"fmt"
	"io"
	"path"
	"strconv"
)

// complain writes a message to standard error, after the command's name and level.
func (m *maker) complain(format string, args ...any) {
	m.t.Out.Flush()
	io.WriteString(m.t.Stderr(), m.name()+": "+fmt.Sprintf(format, args...)+"\n")
}

// out writes a message to standard output.
func (m *maker) out(format string, args ...any) {
	m.t.Out.WriteString(m.name() + ": " + fmt.Sprintf(format, args...) + "\n")
}

func (m *maker) name() string {
	n := path.Base(m.t.Name)
	if m.level > 0 {
		n += "[" + strconv.Itoa(m.level) + "]"
	}
	return n
}

// warn writes a message about a line of a makefile.
func (m *maker) warn(loc location, format string, args ...any) {
	m.t.Out.Flush()
	where := m.name() + ": "
	if loc.file != "" {
		where = fmt.Sprintf("%s:%d: ", loc.file, loc.line)
	}
	io.WriteString(m.t.Stderr(), where+fmt.Sprintf(format, args...)+"\n")
}

// fatal ends make for something in a makefile.
func (m *maker) fatal(loc location, format string, args ...any) {
	m.warn(loc, "*** "+format+".  Stop.", args...)
	m.exit(2)
}

func (m *maker) exit(status int) {
	m.drainQuietly()
	m.removeIntermediates()
	m.leave()
	m.t.Exit(status)
}

// drainQuietly waits for the jobs that still run when make ends.
func (m *maker) drainQuietly() {
	for len(m.running) > 0 {
		j := m.running[0]
		m.running = m.running[1:]
		m.t.WaitQuiet(j.child)
	}
}

func (m *maker) enter() {
	if m.printDir && !m.entered {
		m.entered = true
		m.out("Entering directory '%s'", m.t.Getwd())
	}
}

func (m *maker) leave() {
	if m.printDir && m.args.entered {
		m.out("Leaving directory '%s'", m.t.Getwd())
		m.args.entered = false
	}
}

// step counts work, and ends make when it has been killed.
func (m *maker) step() {
	if m.t.Step(1) != nil {
		m.t.Check()
	}
}
