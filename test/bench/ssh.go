package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"agentrun.dev/bucket"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/node"
	"agentrun.dev/serve/ssh"
	"agentrun.dev/volume"
)

// sshLogin is what one of the clients has measured.
type sshLogin struct{ Connected, First time.Duration }

// sshSessions connects many clients of another process at once, each with a shell at a terminal on a fork of its own.
func sshSessions(b *bench) (err error) {
	st, err := b.open("ssh")
	if err != nil {
		return err
	}
	defer st.close()
	if _, err := st.fill(b.ctx, "base", 1000); err != nil {
		return err
	}
	count := 1000
	if b.quick {
		count = 200
	}
	n := node.New(node.Options{Engine: userspace.NewEngine(userspace.EngineOptions{}), Store: st.Store, UID: userspace.UID, GID: userspace.GID})
	key, err := ssh.HostKey(filepath.Join(b.dir, "ssh-host-key"))
	if err != nil {
		return err
	}
	a := &ssh.Access{Store: st.Store, Base: "base", Open: true}
	srv := ssh.New(ssh.Options{Node: n, HostKey: key, Login: a.Login, Open: true})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	defer func() { err = errors.Join(err, srv.Close(b.ctx), <-served, n.Close(b.ctx)) }()

	before := resident()
	cmd := exec.Command(os.Args[0], "-ssh-clients", fmt.Sprintf("%s %d", l.Addr(), count))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Wait()
	var logins []sshLogin
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &logins)
	}
	if err != nil {
		in.Close()
		return fmt.Errorf("the clients: %w", err)
	}
	took := time.Since(start)
	if got := len(n.List()); got != count {
		return fmt.Errorf("%d sandboxes of %d clients", got, count)
	}
	each := (resident() - before) / int64(count)
	var connected, first times
	for _, l := range logins {
		connected, first = append(connected, l.Connected), append(first, l.First)
	}
	name := fmt.Sprintf("SSH, %d sessions at once", count)
	b.add(row{Name: name + ": all have a prompt's worth of output, 32 logging in at a time", Ours: short(took), Other: fmt.Sprintf("%.0f/s", float64(count)/took.Seconds()), Target: "-", Met: true})
	b.add(row{Name: name + ": connection and key exchange", Ours: connected.String(), Other: "-", Target: "-", Met: true})
	b.add(row{Name: name + ": durable fork, terminal, shell, first command", Ours: first.String(), Other: "-", Target: "-", Met: true})
	b.add(row{Name: name + ": memory of the server for each", Ours: fmt.Sprintf("%.0f KB", float64(each)/1e3), Other: "-", Target: "-", Met: true})
	start = time.Now()
	in.Close() // the clients go
	for left := count; left > 0; time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > node.EndTimeout {
			return fmt.Errorf("%d forks are left a minute after their clients went", left)
		}
		left = 0
		err := st.List(b.ctx, func(i *bucket.Info) error {
			if i.Attributes[volume.Attribute] != "" {
				left++
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	gone := time.Since(start)
	b.add(row{Name: name + ": all clients leave at once, until the last fork is deleted", Ours: short(gone), Other: "target 1 min", Ratio: gone.Minutes(), Target: "≤ 1", Met: gone <= time.Minute})
	return nil
}

// sshClients is the other process: it prints what it has measured, and stays connected until its input ends.
func sshClients(arg string) error {
	var addr string
	var count int
	if _, err := fmt.Sscan(arg, &addr, &count); err != nil {
		return err
	}
	logins := make([]sshLogin, count)
	failed := make([]error, 32)
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range failed {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(count) && failed[w] == nil; i = next.Add(1) - 1 {
				logins[i], failed[w] = sshLogIn(addr)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(logins); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// sshLogIn opens a shell that stays, as that of a client who is thinking.
func sshLogIn(addr string) (l sshLogin, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	start := time.Now()
	c, err := xssh.Dial("tcp", addr, &xssh.ClientConfig{User: "bench", HostKeyCallback: xssh.InsecureIgnoreHostKey()})
	if err != nil {
		return l, err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	l.Connected = time.Since(start)
	start = time.Now()
	s, err := c.NewSession()
	if err != nil {
		return l, err
	}
	in, _ := s.StdinPipe()
	out, _ := s.StdoutPipe()
	if err = s.RequestPty("xterm", 24, 80, xssh.TerminalModes{}); err == nil {
		err = s.Shell()
	}
	if err == nil {
		_, err = io.WriteString(in, "echo re''ady\n")
	}
	var seen strings.Builder
	buf := make([]byte, 4096)
	for err == nil && !strings.Contains(seen.String(), "ready\r\n") {
		var n int
		n, err = out.Read(buf)
		seen.Write(buf[:n])
	}
	l.First = time.Since(start)
	return l, err
}
