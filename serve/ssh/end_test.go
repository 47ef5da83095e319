package ssh

import (
	"slices"
	"testing"

	"golang.org/x/crypto/ssh"
)

// told is a channel that notes what the client is told.
type told struct {
	ssh.Channel
	log []string
}

func (c *told) SendRequest(name string, _ bool, _ []byte) (bool, error) {
	c.log = append(c.log, name)
	return false, nil
}

func (c *told) CloseWrite() error {
	c.log = append(c.log, "EOF")
	return nil
}

// How a command ended is told before the end of its output. A client that gets that first may close the channel at once, as
// scp's and those of a shared connection do, and then never learns how it ended.
func TestEndOrder(t *testing.T) {
	c := &told{}
	s := &session{ch: &activity{Channel: c}}
	s.exit(3)
	s.end("exit-signal", nil)
	if want := []string{"exit-status", "EOF", "exit-signal", "EOF"}; !slices.Equal(c.log, want) {
		t.Errorf("the client was told %q, want %q", c.log, want)
	}
}
