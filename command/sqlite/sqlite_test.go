package sqlite_test

import (
	"os"
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
	"agentrun.dev/proc"
)

// commands has a shell that can only remove files.
var commands = command.NewSet(map[string]proc.Program{"sh": proc.Func(func(p *proc.Process) int {
	name, ok := strings.CutPrefix(p.Args()[2], "rm -f ")
	if !ok || p.Unlink(name) != nil {
		return 127
	}
	return 0
})})

const setup = "create table t(a int, b text, c real);\n" +
	"insert into t values(1,'x y',0.1),(2,null,1e20),(3,'it''s \"q\", z',-2.5),(4,'<b>&amp;',3);\n"

// TestModes compares all modes with the real shell.
func TestModes(t *testing.T) {
	var tables []commandtest.Table
	for _, mode := range []string{"list", "line", "column", "html", "insert", "insert foo", "quote", "tcl", "csv", "ascii", "json",
		"markdown", "table", "box", "qbox", "tabs", "box --wrap 3", "column --wrap 4 --wordwrap on", "table --quote", "foo", "c", "l", "t", ""} {
		for _, headers := range []string{"", ".headers on\n", ".headers off\n"} {
			tables = append(tables, commandtest.Table{
				Stdin: setup + headers + ".mode " + mode + "\nselect * from t;\nselect a,c as \"a b\" from t where 0;\nselect 1 as \"x y\", 'two\nlines' as z, '';\n.mode\n.show\n",
				Lines: []string{"sqlite3"},
			})
		}
	}
	commandtest.Run(t, commands, tables...)
}

// scripts run on the same files in both shells.
var scripts = []string{
	"selec;\nselect * from nope;\nselect 1;",
	"select 1,\n2,\n3;\n\n-- comment\nselect 4; select 5;\n/* c */ select 'a;b';\nselect 6",
	"create table t(a unique);\ninsert into t values(1);\ninsert into t values(1);\nselect count(*) from t;",
	"create table t(a,b);\ncreate trigger tr after insert on t begin select 1; select 2; end;\ninsert into t values(1,2);\nselect * from t;",
	"select 'abc\n.print no\n';\n.print yes 'a  b' \"c\\td\" e\\tf",
	"# comment\n.print hi\n#select 1;\nselect 2;",
	setup + ".schema\n.tables\n.dump\n.indexes\n.databases",
	"create table \"a b\"(x integer primary key, y text default 'q');create table 'q'(a);create view v as select 1 as one,2;create index i on \"a b\"(y);" +
		"create trigger tr after insert on \"a b\" begin select 1; end;insert into \"a b\" values(1,'a\nb\r\n');\n.schema\n.schema a%\n.schema *b\n.tables\n.dump\n.indexes\n.indexes \"a b\"\n" +
		".tables q%\n.dump q\n.schema --indent\n.fullschema",
	"create table s(a integer primary key autoincrement, b blob);insert into s values(null,x'00ff'),(7,1.5),(null,-1.5e3);\n.dump\n.schema sqlite_master",
	"create table longer_table_name(first_column integer not null primary key, second_column text default 'a, b', third real check(third > 0), foreign key(second_column) references x(y));\n.schema --indent",
	"create table t(a,b,c,d generated always as (a+1));insert into t values(1,2,3);\n.dump\n.mode insert t\nselect * from t;",
	".import i.csv t --csv\n.schema\nselect * from t;\n.mode csv\nselect * from t;",
	"create table t(a);\n.import i.csv t\nselect * from t;\n.mode csv\n.import i.csv t\n.import -v --skip 1 i.csv u\n.import /nope t\n.import\nselect * from t;",
	".mode csv\n.import i.csv x\n.headers on\nselect * from x order by 1 desc;\n.import quoted.csv q\n.mode json\nselect * from q;",
	".separator \"\\t\"\ncreate table tt(a,b);\n.import tabs.tsv tt\n.mode box\nselect * from tt;",
	".mode ascii\ncreate table tt(a,b);\n.import ascii.dat tt\n.mode list\nselect * from tt;",
	".output out.txt\nselect 1;\n.output\nselect 2;\n.once once.txt\nselect 3;\nselect 4;",
	".read a.sql\n.read nope.sql\nselect * from fromfile;",
	".headers on\n.mode column\n.width 10 -5 3\nselect 'a' as x, 'bb' as y, 'long text here' as z;\n.width\nselect 'naïve' as ü, 2;",
	".changes on\ncreate table t(a);\ninsert into t values(1),(2);\nupdate t set a=3;\ndelete from t;",
	".echo on\nselect 1;\n.print x\nselect\n2;",
	".bail on\nselect nope;\nselect 1;",
	".nullvalue NULL\nselect null, 1;\n.mode csv\nselect null,'';\n.mode box\nselect null;",
	".parameter set :x 4\n.parameter set @y 'hello'\nselect :x+1, @y;\n.parameter list\n.parameter unset :x\n.parameter list\n.parameter clear\nselect :x;",
	"explain query plan select * from sqlite_master order by name;\ncreate table t(a,b);create index i on t(a);\nexplain query plan select * from t where a=1 ",
	".eqp on\ncreate table t(a,b);\nselect * from t where a=1;",
	"select 1e100, 1.0, 100000000000000.0, 1e15, 1e16, 0.1+0.2, 1/3.0, 123456789.123456789, -0.0, 9e999, -9e999, 1e-5, 0.0001, 2.5e-7;\n.mode quote\nselect 0.1, 1e15, 1e25, 9e999  , 100.0, 1e-10;\n.mode json\nselect 0.1,1e15, 9e999;",
	"select typeof(1), hex('abc'), length('üü'), upper('abc'), substr('hello',2,3), round(2.567,1), coalesce(null,3), printf('%05d|%-5s|%.2f',42,'ab',3.14159);",
	"with recursive c(x) as (select 1 union all select x+1 from c where x<5) select x, sum(x) over (order by x) from c;",
	"select json_extract('{\"a\":[1,2,{\"b\":3}]}','$.a[2].b'), json('{\"x\": 1 }'), '{\"a\":5}'->>'a';\nselect key,value from json_each('[10,20]');",
	"select date('2024-02-28'), datetime(0,'unixepoch'), strftime('%Y-%W','2024-05-06'), julianday('2000-01-01');",
	"create virtual table f using fts5(x);insert into f values('hello world'),('goodbye world');select * from f where f match 'hello';",
	"select value from generate_series(1,10,3);\nselect 'abc' regexp '^a.c$';",
	"begin;create table t(a);insert into t values(1);rollback;\nselect * from t;\n.tables",
	"attach 'other.db' as o;create table o.x(a);insert into o.x values(5);select * from o.x;\n.tables\n.schema\ndetach o;\nattach 'other.db' as p;select * from p.x;",
	"pragma table_info(sqlite_master);\npragma foreign_keys;\nselect \"not a column\";",
	"select * from (select 1 as a) x join (select 1 as a, 2 as b) y using(a);\nselect count(*), max(3,5), group_concat(value,'-') from json_each('[1,2]');",
	".help .nope\n.foo\n.mode\n.headers\n.timer\n.cd\n.cd /nope\n.timeout 100\n.separator\n.print",
	".tables\n.schema nope\n.indexes nope\n.dump nope\n.databases",
	".backup b.db\n.open b.db\ncreate table z(a);insert into z values(9);\n.save c.db\n.open c.db\nselect * from z;\n.restore b.db\nselect * from z;\n.open --readonly c.db\ninsert into z values(1);",
	"select 1\n/\nselect 2\ngo\nselect 3;",
	"select 'unterminated;\n",
	"select (1;\n",
	"select 1;\n.exit 7\nselect 2;",
	"select 1;\n.quit\nselect 2;",
	"vacuum;select 1;vacuum into 'v.db';attach 'v.db' as v;select count(*) from v.sqlite_master;",
	"select writefile('w.txt','hello'), readfile('w.txt'), readfile('nope');",
	"insert into nope values(1);\ncreate table t(x);\ncreate table t(x);\ndrop table u;\nselect x, y from t;\nselect max(;\nselect * from t group by;",
	"select abs(-9223372036854775808);\nselect json('{');\nselect zeroblob(2000000000);\nselect 1 union select 2,3;",
	"create table t(a check(a>0), b not null, c references t(a));\ninsert into t values(-1,1,1);\ninsert into t values(1,null,1);\npragma foreign_keys=on;\ninsert into t values(1,1,99);",
}

var files = []string{
	`f i.csv a,b c,a\n1,"x ""y""",3\n4,5\n6,7,8,9\n`,
	`f quoted.csv id,text\n1,"two\nlines"\n2,""\n3,"a,b"\r\n4,un"quoted\n5,"last"`,
	`f tabs.tsv 1\ttwo words\n3\tfour\n`,
	`f ascii.dat 1` + "\x1f" + `a` + "\x1e" + `2` + "\x1f" + `b` + "\x1e",
	`f a.sql create table fromfile(x);\ninsert into fromfile values(1);\n.print read\nselect bad;\n`,
}

func TestScripts(t *testing.T) {
	setup := make([]string, len(files))
	for i, f := range files {
		setup[i] = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r").Replace(f)
	}
	var tables []commandtest.Table
	for _, s := range scripts {
		tables = append(tables, commandtest.Table{Setup: setup, Stdin: s, Lines: []string{"sqlite3"}})
	}
	for i, table := range tables {
		t.Run(strings.SplitN(scripts[i], "\n", 2)[0], func(t *testing.T) { runWithout(t, table) })
	}
}

// runWithout compares all but the bytes of databases, which hold the version of the library that wrote them.
func runWithout(t *testing.T, table commandtest.Table) {
	for _, d := range []string{"other.db", "b.db", "c.db", "v.db"} {
		if strings.Contains(table.Stdin, d) {
			table.Stdin += "\n.shell rm -f " + d + "\n"
		}
	}
	commandtest.Run(t, commands, table)
}

func TestCommandLine(t *testing.T) {
	commandtest.Run(t, commands, commandtest.Table{
		Setup: []string{"f q.sql select 'from file';\n", "f bad.db this is not a database at all, only text of some length that goes on\n"},
		Lines: []string{
			"sqlite3 :memory: 'select 1'", "sqlite3 :memory: 'select 1; select 2' 'select 3'", "sqlite3 :memory: 'selec'", "sqlite3 :memory: 'select nope from x'",
			"sqlite3 -json :memory: 'select 1 as a, null as b'", "sqlite3 -csv -header :memory: 'select 1 as a, 2 as b'", "sqlite3 --box :memory: 'select 1 as a'",
			"sqlite3 -separator , :memory: 'select 1,2'", "sqlite3 -nullvalue N :memory: 'select null'", "sqlite3 -newline X :memory: 'select 1 union select 2'",
			"sqlite3 -line :memory: 'select 1 as abc'", "sqlite3 -column :memory: 'select 1 as abc, 2'", "sqlite3 -column -header :memory: 'select 1 as abc, 2'",
			"sqlite3 -markdown :memory: 'select 1 as abc, 2'", "sqlite3 -table :memory: 'select 1 as abc, 2'", "sqlite3 -html -header :memory: 'select 1 as abc'",
			"sqlite3 -quote :memory: \"select 'a', null, 1.5\"", "sqlite3 -tabs :memory: 'select 1,2'", "sqlite3 -ascii :memory: 'select 1,2'",
			"sqlite3 -cmd '.mode json' :memory: 'select 1 as x'", "sqlite3 -cmd 'select 5' :memory: 'select 6'", "sqlite3 -init q.sql :memory: 'select 1'", "sqlite3 :memory: '.read q.sql'",
			"sqlite3 :memory: .foo", "sqlite3 :memory: .tables .databases", "sqlite3 -foo", "sqlite3 -separator", "sqlite3 /nonexistent/dir/x 'select 1'", "sqlite3 bad.db 'select * from t'",
			"sqlite3 -readonly nope.db 'select 1'", "sqlite3 -bail :memory: 'select nope' 'select 1'", "sqlite3 :memory: 'select nope' 'select 1'", "sqlite3 -echo :memory: 'select 1'",
			"sqlite3 -batch :memory: '.print a b'", "sqlite3 '' 'select 1'", "sqlite3 :memory: '.exit 3' 'select 1'", "sqlite3 :memory: ''", "sqlite3 :memory: '-- nothing'",
			"sqlite3 < q.sql", "sqlite3 :memory: < q.sql", "sqlite3 -noheader -csv :memory: 'select 1 as a'",
		},
	})
}

// TestPersistence checks that what one run writes another reads, as bytes of the real tool's own file too.
func TestPersistence(t *testing.T) {
	table := commandtest.Table{Stdin: "create table t(a);insert into t values(1),(2);\n"}
	if r := table.Sandbox(t, commands, []string{"sqlite3", "x.db"}, table.Stdin); r.Status != 0 || !strings.Contains(r.Tree, "x.db 100644 \"SQLite format 3") {
		t.Errorf("%+v", r)
	}
	real, err := os.ReadFile("testdata/real.db")
	if err != nil {
		t.Fatal(err)
	}
	table.Setup = []string{"f real.db " + string(real)}
	r := table.Sandbox(t, commands, []string{"sqlite3", "real.db", "select * from t; pragma integrity_check; insert into t values(9); select count(*) from t"}, "")
	if r.Stdout != "1|one\n2|two\nok\n" || !strings.Contains(r.Stderr, "2 columns but 1 values") {
		t.Errorf("%+v", r)
	}
}
