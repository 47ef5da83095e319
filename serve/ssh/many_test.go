package ssh_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	xssh "golang.org/x/crypto/ssh"

	"agentrun.dev/serve/ssh"
)

// TestManySessions holds a thousand sessions in one process at once, each in its own sandbox, and lets all go at once.
func TestManySessions(t *testing.T) {
	count := 1000
	if testing.Short() { // under the race detector
		count = 100
	}
	h := start(t, nil)
	clients := make([]*xssh.Client, count)
	var wg sync.WaitGroup
	limit := make(chan struct{}, 64)
	for i := range clients {
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			c, err := h.dial(fmt.Sprint("user-", i))
			if err != nil {
				t.Error(err)
				return
			}
			clients[i] = c
			s, err := c.NewSession()
			if err == nil {
				err = s.Run(fmt.Sprintf("echo %d > mine", i))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	if n := len(h.buckets()); n != count {
		t.Errorf("%d forks of %d sessions", n, count)
	}
	for i, c := range clients {
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			s, err := c.NewSession()
			if err != nil {
				t.Error(err)
				return
			}
			if out, err := s.Output("cat mine hello.txt"); err != nil || string(out) != fmt.Sprintf("%d\nhello from base\n", i) {
				t.Errorf("session %d: %q, %v", i, out, err)
			}
			c.Close()
		})
	}
	wg.Wait()
	h.gone()
}

const publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJLCB5ktFPZzd4HHjcTzbDO0TIAFYKpAeRUiqnUOFyCD me"

// TestOptions checks which lines let somebody in: those of which every option is understood.
func TestOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "authorized_keys")
	for options, want := range map[string]int{
		"": 1, `access-key="AR1" `: 1, `ACCESS-KEY="AR1" `: 1, `no-agent-forwarding `: 1, `access-key="AR1",no-user-rc `: 1, `access-key="" `: 0, `access-key=AR1 `: 0,
		`access-key `: 0, `access-key="a",access-key="b" `: 0, `from="10.0.0.1" `: 0, `command="ls" `: 0, `restrict `: 0, `cert-authority `: 0, "nonsense ": 0, "# ": -1,
	} {
		if err := os.WriteFile(file, []byte(options+publicKey+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		n, bad, err := ssh.CheckAuthorized(file)
		if n != max(want, 0) || len(bad) != map[int]int{1: 0, 0: 1, -1: 0}[want] || err != nil {
			t.Errorf("%s: %d let in, %v, %v", options, n, bad, err)
		}
	}
}

// FuzzAuthorized reads arbitrary files of authorized keys.
func FuzzAuthorized(f *testing.F) {
	for _, s := range []string{publicKey, `access-key="AR1" ` + publicKey, "# " + publicKey, `access-key="\x00" ` + publicKey, publicKey[:40], "\"", `a="`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(t.TempDir(), "authorized_keys")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		n, bad, err := ssh.CheckAuthorized(file)
		if err != nil || n+len(bad) > strings.Count(text, "\n")+1 {
			t.Errorf("%d keys, %d errors, %v", n, len(bad), err)
		}
	})
}
