package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentrun.dev/test/harness"
)

// remote is a server with SSH, and what OpenSSH's clients need to reach it.
type remote struct {
	*script
	options []string // of ssh; scp and sftp take them, too
	port    string
	bin     string // agentrun
}

// startSSH starts a server over a data folder with SSH on a port of its own, whose sessions fork the bucket "base".
func startSSH(t *testing.T, data, port string, more ...string) *remote {
	t.Helper()
	for _, tool := range []string{"ssh", "scp", "sftp", "rsync", "ssh-keygen"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%s isn't installed: run 'make setup' (or test/setup.sh ssh): %v", tool, err)
		}
	}
	args := append([]string{"--ssh-listen", "127.0.0.1:" + port, "--ssh-base", "base"}, more...)
	server := harness.StartKind(t, harness.AgentRun, data, args...)
	r := &remote{script: &script{harness.NewSession(t, server), t}, port: port, bin: harness.Binary(t)}
	// The host's key is learnt by the first connection, and another one is refused from then on.
	r.options = []string{"-F", "none", "-o", "StrictHostKeyChecking=accept-new", "-o", "UserKnownHostsFile=" + filepath.Join(data, "known_hosts"), "-o", "BatchMode=yes"}
	return r
}

// quiet and verbose are what ssh says on its standard error: what a user sees, or all that it does, for where only a failure
// shows it. Of two ssh takes the first.
var quiet, verbose = []string{"-o", "LogLevel=ERROR"}, []string{"-o", "LogLevel=DEBUG2"}

// port returns one that nothing listens on.
func port(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, p, _ := net.SplitHostPort(l.Addr().String())
	return p
}

func (r *remote) For(t *testing.T) *remote {
	c := *r
	c.script = &script{r.Session.For(t), t}
	return &c
}

func (r *remote) step(name string, f func(r *remote)) {
	r.t.Helper()
	r.t.Run(name, func(t *testing.T) { f(r.For(t)) })
}

// ssh is the command line of ssh up to the host.
func (r *remote) ssh(user string, more ...string) []string {
	return slices.Concat([]string{"-p", r.port}, r.options, more, quiet, []string{user + "@127.0.0.1"})
}

// copies is the command line of scp and sftp.
func (r *remote) copies(args ...string) []string {
	return slices.Concat([]string{"-P", r.port}, r.options, verbose, args)
}

// forks lists the buckets that sessions have.
func (r *remote) forks() (names []string) {
	var list struct{ Buckets []struct{ Name string } }
	if err := json.Unmarshal([]byte(r.Run(r.bin, "buckets", "list", "--json")), &list); err != nil {
		r.t.Fatal(err)
	}
	if len(list.Buckets) == 0 {
		r.t.Fatal("no buckets at all")
	}
	for _, b := range list.Buckets {
		if strings.HasPrefix(b.Name, "sandbox-") {
			names = append(names, b.Name)
		}
	}
	return names
}

// gone waits until no session's bucket is left.
func (r *remote) gone() {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); len(r.forks()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("still there after a minute: %v", r.forks())
		}
	}
}

// TestSSH drives OpenSSH's clients and rsync against sandboxes.
func TestSSH(t *testing.T) {
	if k := harness.Under(t); k != harness.AgentRun {
		t.Skipf("%s has no SSH: this runs against AgentRun only", k)
	}
	t.Parallel()
	r := startSSH(t, t.TempDir(), port(t))
	r.Run(r.bin, "buckets", "create", "base")
	large := harness.Random(7, 5<<20)
	r.Write("seed/hello.txt", []byte("hello\n"))
	r.Write("seed/dir/large.bin", large)
	r.Write("seed/dir/ünï cødé", []byte("odd name"))
	r.Run(r.bin, "cp", "-r", "seed", "s3://base/")

	r.step("commands: output, status, standard input and error", func(r *remote) {
		equal(r.script, "output", r.Run("ssh", append(r.ssh("anybody"), "pwd; cat hello.txt")...), "/workspace\nhello\n")
		res := r.Exec("ssh", append(r.ssh("x"), "echo out; echo err >&2; exit 42")...)
		equal(r.script, "status", res.Exit, 42)
		equal(r.script, "stdout", res.Stdout, "out\n")
		equal(r.script, "stderr", res.Stderr, "err\n")
		equal(r.script, "stdin", r.RunInput(string(large), "ssh", append(r.ssh("x"), "sha256sum; cmp -n 0 /dev/null /dev/null")...), r.Run("sh", "-c", "sha256sum < seed/dir/large.bin"))
		equal(r.script, "a script on stdin", r.RunInput("x=1\necho $((x+1))\n", "ssh", append(r.ssh("x"), "bash", "-s")...), "2\n")
		equal(r.script, "killed", r.Exec("ssh", append(r.ssh("x"), "kill -9 $$")...).Exit, 255)
		equal(r.script, "large output", len(r.Run("ssh", append(r.ssh("x"), "cat dir/large.bin dir/large.bin")...)), 2*len(large))
		equal(r.script, "variables", r.Run("ssh", append(r.ssh("x", "-o", "SetEnv=LC_ALL=C LANG=de_DE.UTF-8"), "echo $LC_ALL $LANG")...), "C de_DE.UTF-8\n")
	})
	r.step("a terminal", func(r *remote) {
		out := r.RunInput("tty; echo $TERM; exit 3\n", "bash", append([]string{"-c", `ssh "$@"; echo status $?`, "ssh", "-tt"}, r.ssh("x")...)...)
		contains(r.script, "terminal", out, "on a fork of bucket base", "/dev/pts/0", "status 3")
	})
	r.step("forwarding is refused", func(r *remote) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			r.t.Fatal(err)
		}
		defer l.Close()
		r.Fails([]string{"open failed", "network policy"}, "ssh", append([]string{"-o", "LogLevel=INFO", "-W", l.Addr().String()}, r.ssh("x")...)...)
		r.Fails([]string{"forwarding failed"}, "ssh", append(append([]string{"-o", "LogLevel=INFO", "-R", "0:127.0.0.1:1", "-o", "ExitOnForwardFailure=yes"}, r.ssh("x")...), "true")...)
	})
	for _, mode := range []string{"-O", "-s"} {
		r.step("scp "+mode, func(r *remote) {
			to := "from" + mode
			r.Run("scp", r.copies(mode, "-rp", "x@127.0.0.1:dir", to)...)
			r.Run("diff", "-r", "seed/dir", to)
			r.Run("scp", r.copies(mode, "x@127.0.0.1:/workspace/hello.txt", to+".txt")...)
			equal(r.script, "one file", string(r.Read(to+".txt")), "hello\n")
			// What goes up is looked at on the same connection, since another one has another fork.
			control := r.master("base")
			defer r.Exec("ssh", append(control, "-O", "exit", "x@127.0.0.1")...)
			r.Run("scp", append(control, mode, "-rp", "seed", "x@127.0.0.1:up")...)
			r.Run("scp", append(control, mode, "seed/hello.txt", "x@127.0.0.1:up/again.txt")...)
			r.Run("rm", "-rf", "back")
			r.Run("scp", append(control, mode, "-rp", "x@127.0.0.1:up", "back")...)
			equal(r.script, "again", string(r.Read("back/again.txt")), "hello\n")
			r.Run("rm", "back/again.txt")
			r.Run("diff", "-r", "seed", "back")
			equal(r.script, "time", r.Run("stat", "-c", "%Y %a", "back/hello.txt"), r.Run("stat", "-c", "%Y %a", "seed/hello.txt"))
			r.Fails([]string{"o such file or directory"}, "scp", append(control, mode, "x@127.0.0.1:nope", "nope")...)
			r.Fails([]string{"o such file or directory"}, "scp", append(control, mode, "seed/hello.txt", "x@127.0.0.1:no/such/dir/x")...)
		})
	}
	r.step("sftp", func(r *remote) {
		batch := `pwd
put seed/hello.txt new.txt
put -r seed/dir dir2
rename new.txt newer.txt
ln -s newer.txt link
ln newer.txt hard
chmod 600 newer.txt
mkdir d
rmdir d
df
ls -l newer.txt
-rm nope
get newer.txt got.txt
get -r dir2 got2
reget dir/large.bin got.bin
copy newer.txt copied.txt
get copied.txt copied.txt
rm newer.txt
ls -1
`
		r.Run("rm", "-rf", "got.txt", "got2", "got.bin")
		r.Write("batch", []byte(batch))
		r.Write("got.bin", large[:1000])
		out := r.Run("sftp", r.copies("-b", "batch", "x@127.0.0.1")...)
		contains(r.script, "sftp", out, "Remote working directory: /workspace", "-rw-------", "copied.txt\ndir\ndir2\nhard\nhello.txt\nlink\n")
		equal(r.script, "got", string(r.Read("got.txt")), "hello\n")
		equal(r.script, "copied", string(r.Read("copied.txt")), "hello\n")
		r.Run("diff", "-r", "seed/dir", "got2")
		equal(r.script, "resumed", bytes.Equal(r.Read("got.bin"), large), true)
	})
	r.step("rsync, both ways", func(r *remote) {
		control := r.master("base")
		defer r.Exec("ssh", append(control, "-O", "exit", "x@127.0.0.1")...)
		shell := "ssh " + strings.Join(control, " ")
		r.Run("rsync", "-a", "-e", shell, "seed/", "x@127.0.0.1:synced")
		r.Run("rm", "-rf", "resynced")
		r.Run("rsync", "-a", "-e", shell, "x@127.0.0.1:synced/", "resynced")
		r.Run("diff", "-r", "seed", "resynced")
		equal(r.script, "nothing changed", r.Run("rsync", "-ai", "-e", shell, "seed/", "x@127.0.0.1:synced"), "")
	})
	r.step("a bucket by the user's name", func(r *remote) {
		r.Run(r.bin, "forks", "create", "base", "--name", "task-1")
		r.RunInput("for task 1\n", r.bin, "run", "--bucket", "task-1", "--", "cat > mine.txt")
		equal(r.script, "task-1", r.Run("ssh", append(r.ssh("task-1"), "cat mine.txt; rm mine.txt; echo x > hello.txt")...), "for task 1\n")
		equal(r.script, "task-1 is as it was", r.Run(r.bin, "run", "--bucket", "task-1", "--", "cat mine.txt hello.txt"), "for task 1\nhello\n")
	})
	r.step("forks go with their connections, or are kept", func(r *remote) {
		r.gone()
		res := r.Exec("ssh", append(r.ssh("x", "-o", "SetEnv=AGENTRUN_KEEP=1"), "echo work > result.txt")...)
		name := strings.TrimSpace(strings.TrimPrefix(res.Stderr, "agentrun: kept as bucket "))
		equal(r.script, "what was kept", r.Run(r.bin, "run", "--bucket", name, "--", "cat result.txt"), "work\n")
		equal(r.script, "and merged", r.Exec(r.bin, "merge", name).Exit, 0)
		equal(r.script, "into base", r.Run(r.bin, "run", "--bucket", "base", "--", "cat result.txt"), "work\n")
	})
	status, page := r.Server.Get("/metrics")
	equal(r.script, "metrics", status, 200)
	contains(r.script, "metrics", page, `agentrun_ssh_logins_total{result="accepted"}`, "agentrun_ssh_kept_total 1", `agentrun_ssh_sessions_total{kind="sftp"}`)
}

// master starts a connection that others share, and returns the options by which they do.
func (r *remote) master(user string) []string {
	r.t.Helper()
	socket := filepath.Join(r.t.TempDir(), "c")
	if len(socket) > 90 { // a socket's path has 108 bytes, and ssh adds to it
		dir, err := os.MkdirTemp("", "ssh")
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { os.RemoveAll(dir) })
		socket = filepath.Join(dir, "c")
	}
	options := slices.Concat([]string{"-o", "ControlPath=" + socket, "-o", "Port=" + r.port}, r.options, verbose)
	var said bytes.Buffer
	cmd := exec.Command("ssh", append(append([]string{"-N", "-M"}, options...), user+"@127.0.0.1")...)
	cmd.Dir, cmd.Env, cmd.Stderr = r.Dir, r.Env, &said
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	t := r.t
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("the shared connection:\n%s", said.Bytes()[max(0, said.Len()-8000):])
		}
	})
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			return options
		}
		if time.Now().After(end) {
			r.t.Fatal("ssh -M made no socket")
		}
	}
}

// TestSSHKeys logs in by keys: a line of authorized_keys, an access key behind a line, an API key as the password.
func TestSSHKeys(t *testing.T) {
	if k := harness.Under(t); k != harness.AgentRun {
		t.Skipf("%s has no SSH: this runs against AgentRun only", k)
	}
	t.Parallel()
	data := t.TempDir()
	for _, name := range []string{"owner", "bound", "stranger"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", filepath.Join(data, name)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v\n%s", err, out)
		}
	}
	authorized := filepath.Join(data, "authorized_keys")
	r := startSSH(t, data, port(t), "--ssh-auth", "keys", "--ssh-authorized-keys", authorized)
	for _, name := range []string{"base", "task", "secret"} {
		r.Run(r.bin, "buckets", "create", name)
		r.RunInput(name+"\n", r.bin, "run", "--bucket", name, "--", "cat > name")
	}
	var key struct{ ID, APIKey string }
	if err := json.Unmarshal([]byte(r.Run(r.bin, "keys", "create", "--bucket", "task:ro", "--json")), &key); err != nil || key.ID == "" {
		t.Fatalf("%v, %+v", err, key)
	}
	public := func(name string) string {
		b, err := os.ReadFile(filepath.Join(data, name+".pub"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if err := os.WriteFile(authorized, fmt.Appendf(nil, "%saccess-key=%q %s", public("owner"), key.ID, public("bound")), 0o600); err != nil {
		t.Fatal(err)
	}
	as := func(identity, user string) []string {
		return append(r.ssh(user, "-o", "IdentitiesOnly=yes", "-i", filepath.Join(data, identity)), "cat name")
	}
	r.step("who is let in, and to what", func(r *remote) {
		r.Fails([]string{"Permission denied"}, "ssh", as("stranger", "base")...)
		for _, c := range [][3]string{{"owner", "secret", "secret\n"}, {"owner", "nobody", "base\n"}, {"bound", "task", "task\n"}, {"bound", "secret", "base\n"}} {
			equal(r.script, c[0]+" as "+c[1], r.Run("ssh", as(c[0], c[1])...), c[2])
		}
	})
	r.step("an API key as the password", func(r *remote) {
		// ssh asks a program for the password where there is no terminal.
		ask := filepath.Join(t.TempDir(), "ask")
		if err := os.WriteFile(ask, []byte("#!/bin/sh\necho '"+key.APIKey+"'\n"), 0o700); err != nil {
			r.t.Fatal(err)
		}
		r.Set("SSH_ASKPASS", ask)
		r.Set("SSH_ASKPASS_REQUIRE", "force")
		args := append([]string{"-o", "BatchMode=no", "-o", "PubkeyAuthentication=no", "-o", "NumberOfPasswordPrompts=1"}, r.ssh("task")...)
		equal(r.script, "password", r.Run("ssh", append(args, "cat name")...), "task\n")
	})
	r.step("a revoked key", func(r *remote) {
		r.Run(r.bin, "keys", "revoke", key.ID)
		r.Fails([]string{"Permission denied"}, "ssh", as("bound", "task")...)
		equal(r.script, "the owner", r.Run("ssh", as("owner", "task")...), "task\n")
	})
}

// TestSSHCrash kills the server while sessions run: the next one deletes what they had, keeps the host key, and goes on.
func TestSSHCrash(t *testing.T) {
	if k := harness.Under(t); k != harness.AgentRun {
		t.Skipf("%s has no SSH: this runs against AgentRun only", k)
	}
	t.Parallel()
	data, p := t.TempDir(), port(t)
	r := startSSH(t, data, p)
	r.Run(r.bin, "buckets", "create", "base")
	var sessions []*exec.Cmd
	for i := range 5 {
		cmd := exec.Command("ssh", append(r.ssh("x"), fmt.Sprintf("echo %d > mine; echo ready; sleep 1000", i))...)
		cmd.Env = r.Env
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, cmd)
		buf := make([]byte, 6)
		if _, err := out.Read(buf); err != nil {
			t.Fatal(err)
		}
	}
	equal(r.script, "forks while they run", len(r.forks()), 5)
	r.Server.Kill()
	for _, cmd := range sessions {
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 255 {
			t.Errorf("a session of a killed server: %v", err)
		}
	}
	r = startSSH(t, data, p)
	equal(r.script, "forks after the crash", len(r.forks()), 0)
	equal(r.script, "and it goes on", r.Run("ssh", append(r.ssh("x"), "echo on")...), "on\n")
}
