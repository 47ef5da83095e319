package ssh_test

import (
	"fmt"
	"sync"
	"testing"

	xssh "golang.org/x/crypto/ssh"
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
