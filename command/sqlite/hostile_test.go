package sqlite_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentrun.dev/command/commandtest"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// TestEscapes tries to reach a file of the host by every name that SQL and dot commands take.
func TestEscapes(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "host.db")
	if err := os.WriteFile(secret, []byte{}, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, attack := range []string{
		"attach 'HOST' as h; create table h.pwned(a);",
		"attach 'file:HOST?vfs=os' as h; create table h.pwned(a);",
		"attach 'file:HOST?%76fs=os' as h; create table h.pwned(a);",
		"attach 'file:HOST?mode=rwc&vfs=os' as h; create table h.pwned(a);",
		"attach 'file:HOST?vfs=' as h; create table h.pwned(a);",
		"attach 'file:HOST?mode=rw#?&vfs=os' as h; create table h.pwned(a);",
		"attach 'file:'||'HOST?vfs=os' as h; create table h.pwned(a);",
		"attach (select 'file:HOST?vfs=os') as h; create table h.pwned(a);",
		"attach \"file:HOST?vfs=os\" as h; create table h.pwned(a);",
		".parameter set :f 'file:HOST?vfs=os'\nattach :f as h; create table h.pwned(a);",
		"create table x(a); vacuum into 'file:HOST?vfs=os';",
		"create table x(a); vacuum into 'file:'||'HOST?vfs=os';",
		".open file:HOST?vfs=os\ncreate table pwned(a);",
		".open file:HOST?%76fs=os\ncreate table pwned(a);",
		".backup file:HOST?vfs=os",
		".save HOST\n.save ../../../..HOST",
		"select load_extension('HOST');",
		".load HOST",
		"select writefile('HOST','pwned');",
		".output HOST\nselect 1;",
		".import HOST t",
		".read HOST",
		"pragma temp_store_directory='" + dir + "'; create temp table x(a);",
	} {
		table := commandtest.Table{}
		table.Survives(t, commands, "sqlite3", ":memory:", "select 1")
		table.Sandbox(t, commands, []string{"sqlite3", "x.db"}, strings.ReplaceAll(attack, "HOST", secret)+"\nselect 1;\n")
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%s: made files on the host: %v %v", attack, entries, err)
		}
		if b, err := os.ReadFile(secret); err != nil || len(b) > 0 {
			t.Fatalf("%s: wrote the host's file: %q %v", attack, b, err)
		}
	}
}

// TestHogs runs what would take all memory or never ends; it must fail alone.
func TestHogs(t *testing.T) {
	for _, sql := range []string{
		"create table t(a); with recursive c(x) as (select 1 union all select x+1 from c where x<1000) insert into t select zeroblob(1000000) from c; pragma temp_store=memory; create temp table u as select * from t;",
		"select zeroblob(900000000);",
		"select length(replace(hex(zeroblob(30000000)),'0','0123456789012345678901234567890123456789'));",
		"select printf('%.*c',2000000000,'x');",
		"with recursive c(x) as (select randomblob(1000000) union all select x||randomblob(1000000) from c) select count(distinct x) from c limit 1;",
		"select '" + strings.Repeat("(", 100000) + "';select " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000) + ";",
		"select json_valid('" + strings.Repeat("[", 100000) + "');",
		"select 'x' like '" + strings.Repeat("%a", 100000) + "';",
	} {
		table := commandtest.Table{}
		table.Survives(t, commands, "sqlite3", ":memory:", sql)
	}
}

// TestKilled kills endless queries.
func TestKilled(t *testing.T) {
	for _, sql := range []string{
		"with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c;",
		"with recursive c(x) as (select 1 union all select x+1 from c) select x from c where x<0;",
		".read /dev/zero",
	} {
		s := commandtest.NewSandbox(t, commands)
		prog, _ := commands.Lookup("sqlite3")
		p, err := s.NewProcess(proc.Root{Args: []string{"sqlite3", ":memory:", sql}, Dir: "/", Cred: vfs.Cred{Umask: 0o22},
			Files: map[int]vfs.File{0: proc.NewInput(strings.NewReader(""), false), 1: s.NewOutput(io.Discard, false), 2: s.NewOutput(io.Discard, false)}})
		if err != nil {
			t.Fatal(err)
		}
		p.Start(prog)
		p.Signal(p.Pid(), int(syscall.SIGKILL))
		<-p.Done()
		if p.Status() != 128+int(syscall.SIGKILL) {
			t.Errorf("%s: status %d", sql, p.Status())
		}
	}
}

// TestLocks has two processes of a sandbox write to one database at once.
func TestLocks(t *testing.T) {
	table := commandtest.Table{Stdin: "create table t(a);begin immediate;insert into t values(1);\n.shell other\ncommit;\n.shell other\nselect count(*) from t;\n"}
	set := map[string]proc.Program{}
	real, _ := commands.Lookup("sqlite3")
	set["sqlite3"] = real
	set["sh"] = proc.Func(func(p *proc.Process) int {
		p.SetArgs([]string{"sqlite3", "x.db", "insert into t values(2)"})
		return real.Run(p)
	})
	r := table.Sandbox(t, only(set), []string{"sqlite3", "x.db"}, table.Stdin)
	if r.Stdout != "2\n" || !strings.Contains(r.Stderr, "database is locked (5)") {
		t.Errorf("%+v", r)
	}
}

// only is a set of commands.
type only map[string]proc.Program

func (o only) Lookup(name string) (proc.Program, bool) { p, ok := o[name]; return p, ok }
func (o only) Names() []string                         { return []string{"sh", "sqlite3"} }
