package vsock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"agentrun.dev/errs"
)

// Bridge joins a device to sockets of the host, as Firecracker does: who connects to the listener sends "CONNECT port\n", gets
// "OK port\n" with the host's port once the guest has answered, and is then connected with the guest; what the guest connects
// to, and no Listener has, is dialled.
type Bridge struct {
	// Dial returns what the guest's connection to a port of the host is joined with, such as a unix socket whose name ends with
	// the port. An error refuses the connection. Nil refuses all.
	Dial func(ctx context.Context, port uint32) (net.Conn, error)
	// Handshake is how long a client has for its line and the guest for its answer; 0 is 10 s.
	Handshake time.Duration
}

// MaxBridged is the number of connections that a bridge carries at a time.
const MaxBridged = 512

// Serve bridges until ctx ends or the listener fails, and returns when all its connections have ended. It closes the listener,
// which may be nil if only the guest connects. A device has one bridge at a time; a second is Exists.
func (b *Bridge) Serve(ctx context.Context, d *Device, ln net.Listener) error {
	guest, err := d.listenAny()
	if err != nil {
		if ln != nil {
			_ = ln.Close()
		}
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &bridging{Bridge: b, d: d, slots: make(chan struct{}, MaxBridged)}
	stop := context.AfterFunc(ctx, func() {
		_ = guest.Close()
		if ln != nil {
			_ = ln.Close()
		}
	})
	defer stop()
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		defer cancel()
		for {
			c, err := guest.next()
			if err != nil {
				return
			}
			s.do(ctx, c, s.fromGuest)
		}
	}()
	if ln != nil {
		err = s.accept(ctx, ln)
		cancel()
	}
	<-ctx.Done()
	s.wg.Wait()
	return err
}

type bridging struct {
	*Bridge
	d     *Device
	wg    sync.WaitGroup
	slots chan struct{}
}

func (s *bridging) accept(ctx context.Context, ln net.Listener) error {
	for {
		c, err := ln.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = c.Close()
			}
			return nil
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ECONNABORTED):
			select { // until descriptors are free again
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		case err != nil:
			return errs.New(errs.Other, "vsock", "bridge", err)
		default:
			s.do(ctx, c, s.fromHost)
		}
	}
}

// do serves a connection on a goroutine; too many are closed.
func (s *bridging) do(ctx context.Context, c net.Conn, serve func(context.Context, net.Conn)) {
	select {
	case s.slots <- struct{}{}:
	default:
		_ = c.Close()
		return
	}
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		defer func() { <-s.slots }()
		defer c.Close()
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		defer stop()
		serve(ctx, c)
	}()
}

func (s *bridging) patience() time.Duration {
	if s.Handshake > 0 {
		return s.Handshake
	}
	return 10 * time.Second
}

func (s *bridging) fromGuest(ctx context.Context, c net.Conn) {
	guest := c.(*Conn)
	if s.Dial == nil {
		return
	}
	dial, cancel := context.WithTimeout(ctx, s.patience())
	host, err := s.Dial(dial, guest.key.host)
	cancel()
	if err != nil {
		return // Close refuses the connection, which wasn't accepted yet
	}
	s.d.mu.Lock()
	guest.accept()
	s.d.mu.Unlock()
	Join(ctx, guest, host)
}

func (s *bridging) fromHost(ctx context.Context, host net.Conn) {
	_ = host.SetDeadline(time.Now().Add(s.patience()))
	port, err := readConnect(host)
	if err != nil {
		return
	}
	dial, cancel := context.WithTimeout(ctx, s.patience())
	guest, err := s.d.Dial(dial, port)
	cancel()
	if err != nil {
		return
	}
	if _, err := fmt.Fprintf(host, "OK %d\n", guest.key.host); err != nil {
		_ = guest.Close()
		return
	}
	_ = host.SetDeadline(time.Time{})
	Join(ctx, guest, host)
}

// readConnect reads a client's line, byte by byte: what follows belongs to the guest.
func readConnect(r io.Reader) (port uint32, err error) {
	var line []byte
	for b := []byte{0}; len(line) < 32; line = append(line, b[0]) {
		if _, err := io.ReadFull(r, b); err != nil {
			return 0, err
		}
		if b[0] == '\n' {
			word, number, _ := strings.Cut(strings.TrimSuffix(string(line), "\r"), " ")
			if !strings.EqualFold(word, "CONNECT") {
				break
			}
			n, err := strconv.ParseUint(number, 10, 32)
			return uint32(n), err
		}
	}
	return 0, errs.Msg(errs.Invalid, "vsock", "bridge", "the line isn't CONNECT and a port")
}

// Join copies both ways until both ends are done or ctx ends, passing on that one of them is, and closes both.
func Join(ctx context.Context, a, b net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = a.Close(); _ = b.Close() })
	defer stop()
	defer a.Close()
	defer b.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		pump(a, b)
	}()
	pump(b, a)
	<-done
}

// pump copies until the end. After an error neither direction can be trusted, and both are closed.
func pump(dst, src net.Conn) {
	buf := make([]byte, 32<<10)
	if _, err := io.CopyBuffer(struct{ io.Writer }{dst}, struct{ io.Reader }{src}, buf); err == nil {
		if half, ok := dst.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			return
		}
	}
	_ = dst.Close()
	_ = src.Close()
}

// listenAny returns a listener for all ports that no other has. Its connections aren't accepted yet.
func (d *Device) listenAny() (*Listener, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errClosed
	}
	if d.any != nil {
		return nil, errs.Msg(errs.Exists, "vsock", "bridge", "the device has one already")
	}
	d.any = d.newListener(0)
	return d.any, nil
}
