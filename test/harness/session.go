package harness

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// commandTimeout bounds one command of a script, so that a server that hangs fails a step and not the whole run.
const commandTimeout = 3 * time.Minute

// Session runs command lines in a folder of their own with the environment that a user of the server would have.
type Session struct {
	Server *Server
	Dir    string // where commands run
	Env    []string
	t      testing.TB
}

// NewSession returns a session whose environment comes from the server: for AgentRun from `agentrun env`, as a user gets it.
func NewSession(t testing.TB, s *Server) *Session {
	t.Helper()
	home := t.TempDir()
	c := &Session{Server: s, Dir: filepath.Join(home, "work"), t: t}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c.Env = clean(home, s.config)
	if s.Kind == AgentRun {
		c.PrependPath(filepath.Dir(Binary(t)))
		// What the shell evaluates is what counts, not how it is quoted.
		cmd := exec.Command("bash", "-c", `set -e; vars=$(agentrun env); eval "$vars"; env -0`)
		cmd.Env = append(slices.Clone(c.Env), "AGENTRUN_ACCESS_KEY_ID="+s.AccessKey, "AGENTRUN_SECRET_ACCESS_KEY="+s.SecretKey)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("eval \"$(agentrun env)\": %v\n%s", err, stderr.Bytes())
		}
		for kv := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			if regexp.MustCompile(`^(AWS|AGENTRUN|TIGRIS)_`).MatchString(kv) {
				c.Env = append(c.Env, kv)
			}
		}
	} else {
		c.Env = append(c.Env, "AWS_ENDPOINT_URL="+s.Endpoint, "AWS_ENDPOINT_URL_S3="+s.Endpoint, "AWS_ENDPOINT_URL_IAM="+s.Endpoint,
			"AWS_ACCESS_KEY_ID="+s.AccessKey, "AWS_SECRET_ACCESS_KEY="+s.SecretKey, "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1")
	}
	return c
}

// clean returns the caller's environment without anything that configures a cloud client, with private folders.
func clean(home, config string) []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if regexp.MustCompile(`^(AWS|AGENTRUN|TIGRIS|RCLONE|S3|MINIO|BOTO|VGW|ROOT|SSH)_|^(HOME|XDG_.*|BASH_ENV|ENV)$`).MatchString(name) {
			continue
		}
		env = append(env, kv)
	}
	return append(env, "HOME="+home, "XDG_CONFIG_HOME="+config, "XDG_CACHE_HOME="+filepath.Join(home, ".cache"), "LC_ALL=C.UTF-8",
		"AWS_PAGER=", "AWS_MAX_ATTEMPTS=1", "AWS_EC2_METADATA_DISABLED=true", "TIGRIS_NO_TELEMETRY=1", "TIGRIS_NO_UPDATE_CHECK=1",
		"TIGRIS_FORCE_PATH_STYLE=1")
}

// For returns the same session speaking for another test, such as a subtest.
func (c *Session) For(t testing.TB) *Session {
	d := *c
	d.t, d.Env = t, slices.Clone(c.Env)
	return &d
}

// Set sets an environment variable of the session.
func (c *Session) Set(name, value string) { c.Env = append(c.Env, name+"="+value) }

// Get returns an environment variable of the session.
func (c *Session) Get(name string) string {
	for _, kv := range slices.Backward(c.Env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// PrependPath puts a folder in front of the session's PATH.
func (c *Session) PrependPath(dir string) {
	c.Set("PATH", dir+string(os.PathListSeparator)+c.Get("PATH"))
}

// Result is how a command ended.
type Result struct {
	Line   string // the command, for messages
	Stdout string
	Stderr string
	Exit   int
}

// Exec runs a command and returns how it ended; standard input is empty.
func (c *Session) Exec(name string, args ...string) Result {
	c.t.Helper()
	return c.exec("", name, args...)
}

func (c *Session) exec(stdin, name string, args ...string) Result {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = c.Dir, c.Env, strings.NewReader(stdin)
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	r := Result{Line: filepath.Base(name) + " " + strings.Join(args, " ")}
	err := cmd.Run()
	r.Stdout, r.Stderr, r.Exit = stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
	if ctx.Err() != nil {
		c.t.Fatalf("%s: not done within %v\n%s%s", r.Line, commandTimeout, r.Stdout, r.Stderr)
	}
	if err != nil && cmd.ProcessState == nil {
		c.t.Fatalf("%s: %v", r.Line, err)
	}
	return r
}

// Run runs a command that must succeed and returns its standard output.
func (c *Session) Run(name string, args ...string) string {
	c.t.Helper()
	return c.RunInput("", name, args...)
}

// RunInput is Run with a standard input.
func (c *Session) RunInput(stdin, name string, args ...string) string {
	c.t.Helper()
	r := c.exec(stdin, name, args...)
	if r.Exit != 0 {
		c.t.Fatalf("%s: exit status %d\n%s%s", r.Line, r.Exit, tail(r.Stdout, 4000), tail(r.Stderr, 4000))
	}
	return r.Stdout
}

// Fails runs a command that must fail and say each of the words.
func (c *Session) Fails(words []string, name string, args ...string) {
	c.t.Helper()
	r := c.exec("", name, args...)
	if r.Exit == 0 {
		c.t.Fatalf("%s: succeeded, should have failed with %q\n%s", r.Line, words, r.Stdout)
	}
	for _, w := range words {
		if !strings.Contains(r.Stdout+r.Stderr, w) {
			c.t.Fatalf("%s: failed without saying %q\n%s%s", r.Line, w, r.Stdout, r.Stderr)
		}
	}
}

// Write writes a file of the session's folder and dates it an hour back: a tool that compares times, as sync does, then sees
// a file that is older than its upload.
func (c *Session) Write(name string, content []byte) {
	c.t.Helper()
	path := filepath.Join(c.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		c.t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		c.t.Fatal(err)
	}
}

// Read reads a file of the session's folder.
func (c *Session) Read(name string) []byte {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join(c.Dir, name))
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

// Random returns n bytes that don't compress and are the same for the same seed.
func Random(seed uint64, n int) []byte {
	b := make([]byte, n)
	x := seed*0x9e3779b97f4a7c15 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x >> 32)
	}
	return b
}
