package sqlite

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"
	"github.com/ncruces/go-sqlite3/ext/rtree"
	sqlitevfs "github.com/ncruces/go-sqlite3/vfs"

	"agentrun.dev/command/tool"
)

// Limits of one connection.
const (
	maxValue     = 64 << 20 // bytes of a string, blob or row
	maxPattern   = 10000    // bytes of a LIKE or GLOB pattern
	maxVMOps     = 5000000
	stepsOfTick  = 1000 // instructions of the database's virtual machine between two looks at the clock
	maxMemory    = 96 << 20
	minMemory    = 8 << 20
	maxWriteFile = 1 << 30
)

// ticker is a context that the virtual machine asks every thousand instructions: it counts them, and ends a query when
// the process is killed or out of steps. Its Err is the only method that the library calls while a query runs.
type ticker struct {
	context.Context
	t *tool.T
}

// Err implements context.Context.
func (k ticker) Err() error {
	if err := k.Context.Err(); err != nil {
		return err
	}
	return k.t.Step(stepsOfTick)
}

// database is an open connection.
type database struct {
	*sqlite3.Conn
	fsName  string // under which the library knows our file system
	charged int64
	sql     string // of the statement being prepared, for the authorizer
	path    string // as the user wrote it
	t       *tool.T
}

// open opens a database file of the sandbox; "" and ":memory:" are in memory.
//
// The library finds file systems by their names in a table of the whole process. Ours has a name that can't be guessed,
// and authorize refuses every name that SQL brings.
func open(t *tool.T, path string, flags sqlite3.OpenFlag) (*database, error) {
	db := &database{t: t, path: path}
	var random [16]byte
	if _, err := io.ReadFull(secret, random[:]); err != nil {
		return nil, err
	}
	db.fsName = "agentrun-" + hex.EncodeToString(random[:])
	memory := int64(maxMemory)
	for t.Charge(memory) != nil {
		if memory /= 2; memory < minMemory {
			return nil, syscall.ENOMEM
		}
	}
	db.charged = memory
	sqlitevfs.Register(db.fsName, &fileSystem{t})
	ctx := sqlite3.WithMaxMemory(context.Background(), memory)
	err := db.connect(ctx, path, flags)
	if err != nil {
		db.release()
		return nil, err
	}
	return db, nil
}

// uri returns the library's name of a file in the sandbox. What the user gives as a URI keeps only harmless parameters.
func (db *database) uri(path string) (string, error) {
	query := "?vfs=" + db.fsName
	switch {
	case path == ":memory:":
		return "file::memory:" + query, nil
	case path == "":
		return "file:" + query, nil
	case strings.HasPrefix(path, "file:"):
		if !harmlessURI(path) {
			return "", sqlite3.CANTOPEN
		}
		base, params, _ := strings.Cut(path, "?")
		params, _, _ = strings.Cut(params, "#")
		if params != "" {
			query += "&" + params
		}
		return base + query, nil
	}
	u := url.URL{Path: path}
	escaped := u.EscapedPath()
	if !strings.HasPrefix(path, "/") {
		escaped = strings.TrimPrefix(escaped, "./")
	}
	return "file:" + strings.ReplaceAll(escaped, "?", "%3F") + query, nil
}

// harmless are the parameters of a URI that change neither the file system nor where its files are.
var harmless = map[string]bool{"mode": true, "cache": true, "immutable": true, "nolock": true, "psow": true}

// harmlessURI reports whether a file URI has only harmless parameters, literally: an escaped name isn't.
func harmlessURI(uri string) bool {
	uri, _, _ = strings.Cut(uri, "#")
	_, query, ok := strings.Cut(uri, "?")
	if !ok {
		return true
	}
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		if !harmless[name] {
			return false
		}
	}
	return true
}

func (db *database) connect(ctx context.Context, path string, flags sqlite3.OpenFlag) error {
	name, err := db.uri(path)
	if err != nil {
		return err
	}
	c, err := openFlags(ctx, name, flags)
	if err != nil {
		return err
	}
	db.Conn = c
	c.SetInterrupt(ticker{db.t.Context(), db.t})
	for _, set := range []struct {
		op sqlite3.DBConfig
		on bool
	}{
		{sqlite3.DBCONFIG_DQS_DML, true}, {sqlite3.DBCONFIG_DQS_DDL, true}, {sqlite3.DBCONFIG_ENABLE_FKEY, false},
		{sqlite3.DBCONFIG_TRUSTED_SCHEMA, true},
	} {
		if _, err := c.Config(set.op, set.on); err != nil {
			return err
		}
	}
	c.Limit(sqlite3.LIMIT_LENGTH, maxValue)
	c.Limit(sqlite3.LIMIT_LIKE_PATTERN_LENGTH, maxPattern)
	c.Limit(sqlite3.LIMIT_VDBE_OP, maxVMOps)
	if err := errors.Join(fts5.Register(c), rtree.Register(c), db.functions()); err != nil {
		return err
	}
	return c.SetAuthorizer(db.authorize)
}

// openFlags is the library's OpenFlags with a context that holds the memory limit: it has only OpenContext for that,
// which takes the flags from the URI.
func openFlags(ctx context.Context, name string, flags sqlite3.OpenFlag) (*sqlite3.Conn, error) {
	if flags&sqlite3.OPEN_READONLY != 0 && !strings.Contains(name, "&mode=") {
		name += "&mode=ro"
	}
	return sqlite3.OpenContext(ctx, name)
}

// emptyAttach is the one statement whose file name may be empty for the authorizer: it can't tell ” from an expression,
// whose value it doesn't know.
var emptyAttach = regexp.MustCompile(`(?is)^\s*(VACUUM\b|ATTACH\s+(DATABASE\s+)?(''|"")\s+AS\b)`)

// authorize refuses what would leave the sandbox: databases on other file systems.
func (db *database) authorize(action sqlite3.AuthorizerActionCode, arg, _, _, _ string) sqlite3.AuthorizerReturnCode {
	if action != sqlite3.AUTH_ATTACH {
		return sqlite3.AUTH_OK
	}
	switch {
	case arg == "":
		if !emptyAttach.MatchString(db.sql) {
			return sqlite3.AUTH_DENY
		}
	case strings.HasPrefix(arg, "file:") && !harmlessURI(arg):
		return sqlite3.AUTH_DENY
	}
	return sqlite3.AUTH_OK
}

// functions adds those that the shell has and the library doesn't.
func (db *database) functions() error {
	c := db.Conn
	return errors.Join(
		c.CreateFunction("readfile", 1, sqlite3.DIRECTONLY, func(ctx sqlite3.Context, arg ...sqlite3.Value) {
			b, err := db.t.ReadFile(arg[0].Text(), maxValue)
			switch {
			case errors.Is(err, syscall.EFBIG):
				ctx.ResultError(sqlite3.TOOBIG)
			case err != nil:
				ctx.ResultNull()
			default:
				ctx.ResultBlob(b)
			}
		}),
		c.CreateFunction("writefile", 2, sqlite3.DIRECTONLY, func(ctx sqlite3.Context, arg ...sqlite3.Value) {
			f, err := db.t.Create(arg[0].Text())
			if err != nil {
				ctx.ResultError(fmt.Errorf("failed to open file: %s", arg[0].Text()))
				return
			}
			defer f.Close()
			n, err := f.Write(arg[1].Blob(nil))
			if err != nil {
				ctx.ResultError(fmt.Errorf("failed to write file: %s", arg[0].Text()))
				return
			}
			ctx.ResultInt(n)
		}),
		c.CreateFunction("load_extension", -1, sqlite3.DIRECTONLY, func(ctx sqlite3.Context, _ ...sqlite3.Value) {
			ctx.ResultError(errors.New("not authorized"))
		}),
		c.CreateFunction("usleep", 1, sqlite3.DIRECTONLY, func(ctx sqlite3.Context, arg ...sqlite3.Value) {
			if d := time.Duration(arg[0].Int64()) * time.Microsecond; d > 0 {
				db.t.Sleep(min(d, time.Hour))
			}
			ctx.ResultInt64(arg[0].Int64())
		}))
}

// close closes the connection; what was charged for it is given back.
func (db *database) close() {
	if db == nil {
		return
	}
	if db.Conn != nil {
		db.SetInterrupt(context.Background())
		for s := range db.Stmts() {
			s.Close()
		}
		db.Conn.Close()
	}
	db.release()
}

func (db *database) release() {
	sqlitevfs.Unregister(db.fsName)
	if db.charged > 0 {
		db.t.Charge(-db.charged)
		db.charged = 0
	}
}

// text runs a query of one value and returns it.
func (db *database) text(sql string, args ...string) (string, error) {
	rows, err := db.rows(sql, args...)
	if err != nil || len(rows) == 0 || len(rows[0]) == 0 {
		return "", err
	}
	return rows[0][0], nil
}

// rows runs a query of the shell's own, with its arguments bound, and returns what it yields as text.
func (db *database) rows(sql string, args ...string) (rows [][]string, err error) {
	db.sql = sql
	s, _, err := db.Prepare(sql)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for i, a := range args {
		if err := s.BindText(i+1, a); err != nil {
			return nil, err
		}
	}
	for s.Step() {
		row := make([]string, s.ColumnCount())
		for i := range row {
			row[i] = s.ColumnText(i)
		}
		rows = append(rows, row)
	}
	return rows, s.Err()
}

// message words an error as the C library does.
func message(err error) string {
	s := strings.TrimPrefix(err.Error(), "sqlite3: ")
	// The library puts the general name of the code before the specific message.
	var e *sqlite3.Error
	if errors.As(err, &e) {
		if general := strings.TrimPrefix(e.ExtendedCode().Error(), "sqlite3: "); strings.HasPrefix(s, general+": ") {
			s = s[len(general)+2:]
		}
	}
	return s
}

// code returns an error's primary result code.
func code(err error) int {
	var c sqlite3.ErrorCode
	if errors.As(err, &c) {
		return int(c)
	}
	return 1
}
