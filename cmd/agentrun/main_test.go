package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	program := func() { os.Exit(run()) }
	testscript.Main(m, map[string]func(){"agentrun": program, "tigris": program})
}

// TestScripts runs the transcripts in testdata: the specification of the command line. Each has a home of its own, so no
// script finds another's server.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			e.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
			e.Setenv("XDG_DATA_HOME", filepath.Join(home, ".local", "share"))
			e.Setenv("SHELL", "/bin/sh")
			e.Values[serverKey{}] = &running{}
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"up": up, "down": down, "status": status, "fetch": fetch, "generate": generate, "capture": capture, "sleepless": waitFile,
		},
		RequireUniqueNames: true,
	})
}

type serverKey struct{}

// running is a script's server.
type running struct {
	cmd    *exec.Cmd
	stderr strings.Builder
}

// announced is what 'up --json' prints.
type announced struct {
	Endpoint   string `json:"endpoint"`
	S3Endpoint string `json:"s3Endpoint"`
	Data       string `json:"data"`
}

// up [ARG...] starts a server in $WORK/data on free ports and waits until it is ready. It sets $API, $S3 and $SERVER_PID.
func up(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("use '! exec agentrun up' for a server that doesn't come up")
	}
	r := ts.Value(serverKey{}).(*running)
	if r.cmd != nil {
		ts.Fatalf("there is a server already")
	}
	args = append([]string{"up", "--json", "--listen", "127.0.0.1:0", "--s3-listen", "127.0.0.1:0", "--data", ts.MkAbs("data")}, args...)
	r.cmd = exec.Command(program(ts, "agentrun"), args...)
	r.cmd.Env = environ(ts)
	r.cmd.Stderr = &r.stderr
	out, err := r.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(r.cmd.Start())
	ts.Defer(func() { stop(ts) })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = r.cmd.Wait()
		text := r.stderr.String()
		r.cmd = nil
		ts.Fatalf("the server didn't come up: %s", text)
	}
	var a announced
	ts.Check(json.Unmarshal([]byte(line), &a))
	ts.Setenv("API", a.Endpoint)
	ts.Setenv("S3", a.S3Endpoint)
	ts.Setenv("SERVER_PID", strconv.Itoa(r.cmd.Process.Pid))
}

// down ends the server as a service manager would, and checks that it ends well.
func down(ts *testscript.TestScript, neg bool, args []string) {
	if err := stop(ts); err != nil {
		ts.Fatalf("the server ended badly: %v", err)
	}
}

func stop(ts *testscript.TestScript) error {
	r := ts.Value(serverKey{}).(*running)
	if r.cmd == nil {
		return nil
	}
	cmd := r.cmd
	r.cmd = nil
	_ = cmd.Process.Signal(syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if r.stderr.Len() > 0 {
			ts.Logf("server: %s", r.stderr.String())
		}
		return err
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		<-ended
		return errors.New("it didn't end within a minute")
	}
}

func program(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if p := filepath.Join(dir, name); isFile(p) {
			return p
		}
	}
	ts.Fatalf("%s isn't in PATH", name)
	return ""
}

func isFile(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.Mode().IsRegular()
}

func environ(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "PATH", "WORK", "TMPDIR", "GOCOVERDIR",
		"AGENTRUN_ACCESS_KEY_ID", "AGENTRUN_SECRET_ACCESS_KEY"} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// status N COMMAND [ARG...] runs a program and checks its exit status, which 'exec' can't.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// fetch STATUS URL [FILE] makes a request and checks its status; the body goes to a file.
func fetch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fetch STATUS URL [FILE]")
	}
	resp, err := http.Get(args[1])
	ts.Check(err)
	defer resp.Body.Close()
	if strconv.Itoa(resp.StatusCode) != args[0] {
		ts.Fatalf("%s: %s, want %s", args[1], resp.Status, args[0])
	}
	if len(args) > 2 {
		var b strings.Builder
		_, err := bufio.NewReader(resp.Body).WriteTo(&b)
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(b.String()), 0o600))
	}
}

// generate DIR N makes N small files, a hundred to a folder.
func generate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: generate DIR N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	for i := range n {
		file := filepath.Join(ts.MkAbs(args[0]), fmt.Sprintf("d%03d/f%05d.txt", i/100, i))
		ts.Check(os.MkdirAll(filepath.Dir(file), 0o755))
		ts.Check(os.WriteFile(file, fmt.Appendf(nil, "file %d\n", i), 0o644))
	}
}

// capture NAME FIELD reads a field of the JSON that the last command printed into a variable; a number picks from a list.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture NAME FIELD[.FIELD...]")
	}
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	for _, field := range strings.Split(args[1], ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[field]
		case []any:
			i, err := strconv.Atoi(field)
			ts.Check(err)
			v = x[i]
		}
	}
	if v == nil {
		ts.Fatalf("no %s in the output", args[1])
	}
	ts.Setenv(args[0], fmt.Sprint(v))
}

// waitFile FILE waits until a file is there.
func waitFile(ts *testscript.TestScript, neg bool, args []string) {
	for range 600 {
		if isFile(ts.MkAbs(args[0])) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("%s didn't come", args[0])
}
