package e2e

import (
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentrun.dev/test/harness"
)

// TestServer is about the process itself: its health, its keys, its data folder, and how it ends.
func TestServer(t *testing.T) {
	s := startAgentRun(t)
	aws := harness.Tool(t, "aws")
	s.step("health, readiness, metrics", func(s *script) {
		for _, path := range []string{"/healthz", "/readyz"} {
			status, _ := s.Server.Get(path)
			equal(s, path, status, 200)
		}
		s.Run(aws, "s3", "mb", "s3://counted")
		status, body := s.Server.Get("/metrics")
		equal(s, "/metrics", status, 200)
		contains(s, "metrics", body, "# TYPE agentrun_")
	})
	s.step("it prints where it listens and how to use it", func(s *script) {
		contains(s, "output", s.Server.Output(), s.Server.Host(), strings.TrimPrefix(s.Server.API, "http://"), "agentrun env")
		lacks(s, "output", s.Server.Output(), s.Server.SecretKey)
	})
	s.step("a second process on the same folder is told so", func(s *script) {
		s.Fails([]string{"in use by process"}, harness.Binary(s.t), "up", "--data", filepath.Join(s.Server.Data, "store"), "--listen", "127.0.0.1:0",
			"--s3-listen", "127.0.0.1:0")
	})
	s.step("an address in use is named", func(s *script) {
		s.Fails([]string{s.Server.Host()}, harness.Binary(s.t), "up", "--data", filepath.Join(s.t.TempDir(), "d"), "--listen", "127.0.0.1:0",
			"--s3-listen", s.Server.Host())
	})
	s.step("it doesn't listen for the world without TLS", func(s *script) {
		s.Fails([]string{"TLS"}, harness.Binary(s.t), "up", "--data", filepath.Join(s.t.TempDir(), "d"), "--listen", "127.0.0.1:0",
			"--s3-listen", "0.0.0.0:0")
	})
	s.step("wrong use is status 2", func(s *script) {
		equal(s, "unknown flag", s.Exec(harness.Binary(s.t), "up", "--no-such-flag").Exit, 2)
		equal(s, "unknown command", s.Exec(harness.Binary(s.t), "no-such-command").Exit, 2)
	})
}

// TestRestart stops a server and starts another on its folder: everything is still there.
func TestRestart(t *testing.T) {
	s := startAgentRun(t)
	aws := harness.Tool(t, "aws")
	s.Write("file", []byte("kept"))
	s.Run(aws, "s3", "mb", "s3://kept")
	s.Run(aws, "s3", "cp", "file", "s3://kept/file")
	s.Run(harness.Binary(t), "forks", "create", "kept", "--name", "kept-fork")
	s.Server.Stop()
	again := &script{harness.NewSession(t, harness.StartKind(t, harness.AgentRun, s.Server.Data)), t}
	equal(again, "object", again.Run(aws, "s3", "cp", "s3://kept/file", "-"), "kept")
	equal(again, "in the fork", again.Run(aws, "s3", "cp", "s3://kept-fork/file", "-"), "kept")
}

// TestGeneratedKey starts a server that isn't given a key: it makes one, keeps it from others, and keeps it.
func TestGeneratedKey(t *testing.T) {
	if k := harness.Under(t); k != harness.AgentRun {
		t.Skipf("%s makes no keys: this runs against AgentRun only", k)
	}
	t.Parallel()
	home := t.TempDir()
	data := filepath.Join(home, "data")
	env := append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"), "AGENTRUN_ACCESS_KEY_ID=", "AGENTRUN_SECRET_ACCESS_KEY=",
		"AGENTRUN_ENDPOINT=", "AGENTRUN_API_KEY=")
	var secrets []string
	for range 2 {
		cmd := exec.Command(harness.Binary(t), "up", "--data", data, "--listen", "127.0.0.1:0", "--s3-listen", "127.0.0.1:0")
		cmd.Env = env
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		secret := ""
		for deadline := time.Now().Add(30 * time.Second); secret == "" && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			vars := exec.Command(harness.Binary(t), "env")
			vars.Env = env
			text, _ := vars.Output() // until it is up, it has nothing to say
			if m := regexp.MustCompile(`AWS_SECRET_ACCESS_KEY=['"]?([^'"\n;]+)`).FindSubmatch(text); m != nil {
				secret = string(m[1])
			}
		}
		_ = cmd.Process.Signal(os.Interrupt)
		_ = out.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("agentrun up ended with %v after an interrupt", err)
		}
		if len(secret) < 32 {
			t.Fatalf("agentrun env gave no good secret: %q", secret)
		}
		secrets = append(secrets, secret)
	}
	if secrets[0] != secrets[1] {
		t.Error("another start, another key")
	}
	holders := 0
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if info, err := d.Info(); err == nil && strings.Contains(string(b), secrets[0]) {
			holders++
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s holds the secret with mode %v", path, info.Mode())
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if holders == 0 {
		t.Error("no file holds the key: another start could not have found it")
	}
}

// TestSlowClient leaves connections open in the middle of a request: the server serves others and ends in time.
func TestSlowClient(t *testing.T) {
	s := startAgentRun(t)
	aws := harness.Tool(t, "aws")
	var open []net.Conn
	for _, start := range []string{"", "GET / HT", "PUT /b/k HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\npart of it"} {
		c, err := net.Dial("tcp", s.Server.Host())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte(start)); err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	s.Run(aws, "s3", "mb", "s3://served")
	s.Server.Stop()
	equal(s, "connections", len(open), 3)
}
