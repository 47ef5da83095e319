package sqlite

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// failure is an error of a statement.
type failure struct {
	phase string // "Parse error", "Runtime error" or ""
	text  string
	code  int
}

// full words the failure as for a statement of the command line.
func (f *failure) full() string {
	switch f.phase {
	case "Parse error":
		return "in prepare, " + f.text
	case "Runtime error":
		return "stepping, " + f.text
	}
	return f.text
}

// run runs all statements of a text.
func (s *shell) run(sql string) (fail *failure) {
	defer func() {
		// The library panics when its memory is used up, and where the compiled code traps.
		if r := recover(); r != nil {
			err, ok := r.(error)
			if !ok || s.t.Context().Err() != nil || !defect(err) {
				panic(r)
			}
			s.db.release()
			s.db = nil // what is left of it is garbage
			fail = &failure{text: "out of memory", code: 1}
		}
	}()
	for {
		sql = strings.TrimLeft(sql, " \t\r\n\f\v")
		if sql == "" {
			return nil
		}
		rest, f := s.one(sql)
		if f != nil {
			return f
		}
		sql = rest
	}
}

// defect reports whether a panic came out of the library, rather than from a T that unwinds.
func defect(err error) bool {
	s := err.Error()
	return strings.HasPrefix(s, "sqlite3: ") || strings.HasPrefix(s, "runtime error: ")
}

// one runs the first statement of a text and returns the others.
func (s *shell) one(sql string) (rest string, _ *failure) {
	s.db.sql = sql
	if wantsWAL.MatchString(sql) {
		s.db.Exec("PRAGMA locking_mode=EXCLUSIVE")
	}
	st, rest, err := s.db.Prepare(sql)
	if err != nil {
		return "", &failure{"Parse error", s.describe(err, sql), code(err)}
	}
	if st == nil {
		return rest, nil // only a comment
	}
	defer st.Close()
	if s.trace {
		fmt.Fprintf(s.out, "%s\n", strings.TrimSpace(st.SQL()[:len(sql)-len(rest)]))
	}
	s.bind(st)
	begin, used := time.Now(), s.t.CPU()
	if s.eqp && !isExplain(sql) {
		s.queryPlan("EXPLAIN QUERY PLAN " + sql[:len(sql)-len(rest)])
	}
	s.print(st, sql)
	err = st.Err()
	if s.timer {
		user := (s.t.CPU() - used).Seconds()
		fmt.Fprintf(s.out, "Run Time: real %.3f user %.6f sys %.6f\n", time.Since(begin).Seconds(), user, 0.0)
	}
	if err != nil {
		s.t.Check()
		text := s.describe(err, "")
		if c := code(err); c > 1 {
			text += " (" + strconv.Itoa(c) + ")"
		}
		return "", &failure{"Runtime error", text, code(err)}
	}
	return rest, nil
}

// describe words an error of a statement and shows where in it the error is.
func (s *shell) describe(err error, sql string) string {
	text := message(err)
	if sql == "" {
		return text
	}
	if c := code(err); c > 1 {
		text += " (" + strconv.Itoa(c) + ")"
	}
	e, ok := err.(*sqlite3.Error)
	if !ok || e.SQL() == "" {
		return text
	}
	offset := len(sql) - len(e.SQL())
	for offset > 50 {
		offset--
		sql = sql[1:]
		for sql != "" && sql[0]&0xc0 == 0x80 {
			sql = sql[1:]
			offset--
		}
	}
	if n := 78; len(sql) > n {
		for sql[n]&0xc0 == 0x80 {
			n--
		}
		sql = sql[:n]
	}
	sql = strings.Map(func(r rune) rune {
		if r >= '\t' && r <= '\r' {
			return ' '
		}
		return r
	}, sql)
	if offset < 25 {
		return fmt.Sprintf("%s\n  %s\n  %*s^--- error here", text, sql, offset, "")
	}
	return fmt.Sprintf("%s\n  %s\n  %*serror here ---^", text, sql, offset-14, "")
}

// bind gives a statement the parameters that .parameter set.
func (s *shell) bind(st *sqlite3.Stmt) {
	n := st.BindCount()
	if n == 0 || !s.params {
		return
	}
	q, _, err := s.db.Prepare("SELECT value FROM temp.sqlite_parameters WHERE key=?1")
	if err != nil || q == nil {
		return
	}
	defer q.Close()
	for i := 1; i <= n; i++ {
		name := st.BindName(i)
		if name == "" {
			name = "?" + strconv.Itoa(i)
		}
		q.Reset()
		if q.BindText(1, name) == nil && q.Step() {
			st.BindValue(i, q.ColumnValue(0))
		}
	}
}

func isExplain(sql string) bool {
	return len(sql) >= 7 && strings.EqualFold(sql[:7], "explain")
}

// isQueryPlan reports whether a statement prints a plan, which has a form of its own.
func isQueryPlan(sql string) bool {
	f := strings.Fields(sql)
	return len(f) > 3 && strings.EqualFold(f[0], "explain") && strings.EqualFold(f[1], "query") && strings.EqualFold(f[2], "plan")
}

// print prints the rows of a statement in the present mode.
func (s *shell) print(st *sqlite3.Stmt, sql string) {
	switch {
	case isQueryPlan(sql) && s.explain == "auto":
		s.printPlan(st)
	case isExplain(sql) && s.explain == "auto":
		s.printExplain(st)
	case s.columnar():
		s.printColumns(st)
	default:
		s.printRows(st)
	}
}

// queryPlan prints the plan of a statement.
func (s *shell) queryPlan(sql string) {
	st, _, err := s.db.Prepare(sql)
	if err != nil || st == nil {
		return
	}
	defer st.Close()
	s.printPlan(st)
}

type planNode struct {
	id, parent int
	text       string
}

// printPlan prints a query plan as a tree.
func (s *shell) printPlan(st *sqlite3.Stmt) {
	var nodes []planNode
	for st.Step() {
		nodes = append(nodes, planNode{st.ColumnInt(0), st.ColumnInt(1), st.ColumnText(3)})
	}
	if len(nodes) == 0 {
		return
	}
	s.out.WriteString("QUERY PLAN\n")
	s.planLevel(nodes, 0, "")
}

// maxPlanDepth bounds the depth of a plan's tree.
const maxPlanDepth = 100

func (s *shell) planLevel(nodes []planNode, parent int, prefix string) {
	var children []planNode
	for _, n := range nodes {
		if n.parent == parent {
			children = append(children, n)
		}
	}
	for i, n := range children {
		branch, deeper := "|--", "|  "
		if i == len(children)-1 {
			branch, deeper = "`--", "   "
		}
		fmt.Fprintf(s.out, "%s%s%s\n", prefix, branch, n.text)
		if len(prefix) < 3*maxPlanDepth && n.id != parent {
			s.planLevel(nodes, n.id, prefix+deeper)
		}
	}
}

// printExplain prints a program of the virtual machine.
func (s *shell) printExplain(st *sqlite3.Stmt) {
	s.out.WriteString("addr  opcode         p1    p2    p3    p4             p5  comment      \n")
	s.out.WriteString("----  -------------  ----  ----  ----  -------------  --  -------------\n")
	widths := []int{4, 13, 4, 4, 4, 13, 2, 13}
	for st.Step() {
		for i, w := range widths {
			if i >= st.ColumnCount() {
				break
			}
			fmt.Fprintf(s.out, "%-*s", w, st.ColumnText(i))
			if i < len(widths)-1 {
				s.out.WriteString("  ")
			}
		}
		s.out.WriteString("\n")
	}
}
