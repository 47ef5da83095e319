package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"agentrun.dev/errs"
)

// pair connects a host with a guest that serves by h.
func pair(t *testing.T, h Handler) *Conn {
	t.Helper()
	a, b := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = Guest(b, h)
	}()
	c, err := Host(a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		<-served
	})
	return c
}

// echo sends back what it gets, until the end of input.
func echo(s *Stream, request []byte) error {
	for {
		f, err := s.Recv()
		switch {
		case err != nil:
			return err
		case f.Type == Close && len(request) > 0:
			return errs.Msg(errs.Conflict, "echo", "it", string(request))
		case f.Type == Close:
			return nil
		}
		if err := s.Data(Output, f.Payload); err != nil {
			return err
		}
	}
}

func TestStreams(t *testing.T) {
	c := pair(t, echo)
	done := make(chan error, 2*MaxStreams)
	for range 2 * MaxStreams { // more than may be open at once
		go func() {
			s, err := c.Open(t.Context(), nil)
			if err != nil {
				done <- err
				return
			}
			want := bytes.Repeat([]byte("x"), 1000)
			go func() {
				_ = s.Data(Input, want)
				_ = s.CloseChannel(Input)
			}()
			var got []byte
			for {
				f, err := s.Recv()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					done <- err
					return
				}
				got = append(got, f.Payload...)
			}
			if !bytes.Equal(got, want) {
				done <- errors.New("other bytes come back")
				return
			}
			done <- nil
		}()
	}
	for range 2 * MaxStreams {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func TestErrorsCross(t *testing.T) {
	c := pair(t, echo)
	s, err := c.Open(t.Context(), []byte("why not"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CloseChannel(Input); err != nil {
		t.Fatal(err)
	}
	if _, err = s.Recv(); errs.KindOf(err) != errs.Conflict || err.Error() != "echo: it: why not" {
		t.Errorf("%v", err)
	}
	for _, err := range []error{errors.New(strings.Repeat("\x00\xff", 1<<16)), errs.New(errs.Denied, strings.Repeat("\x01", 1<<16), strings.Repeat("\xff", 1<<16), io.EOF)} {
		b := encodeError(err)
		if got := decodeError(b); len(b) > maxError || errs.KindOf(got) != errs.KindOf(err) {
			t.Errorf("%d bytes, %v", len(b), got)
		}
	}
	if err := decodeError([]byte("{")); errs.KindOf(err) != errs.Corrupt {
		t.Errorf("an error that isn't one: %v", err)
	}
}

// TestCancel: the guest's handler is told, and the stream's place is free again when it has ended.
func TestCancel(t *testing.T) {
	told := make(chan error, 1)
	c := pair(t, func(s *Stream, _ []byte) error {
		<-s.Done()
		told <- s.Stopped()
		return nil
	})
	var all []*Stream
	for range MaxStreams {
		s, err := c.Open(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := c.Open(ctx, nil); errs.KindOf(err) != errs.Canceled {
		t.Errorf("one stream more: %v", err)
	}
	all[7].Cancel(io.ErrClosedPipe)
	if _, err := all[7].Recv(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Recv: %v", err)
	}
	if err := all[7].Data(Input, []byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Data: %v", err)
	}
	if err := <-told; errs.KindOf(err) != errs.Canceled {
		t.Errorf("the handler is told %v", err)
	}
	if _, err := c.Open(t.Context(), nil); err != nil {
		t.Errorf("the place isn't free: %v", err)
	}
	go func() { // the other handlers end with the connection
		for range told {
		}
	}()
	c.Close()
	if _, err := c.Open(t.Context(), nil); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("a closed connection: %v", err)
	}
}

func TestText(t *testing.T) {
	for _, s := range []string{"", "plain", "a\xffb", "\x00", `"<&>` + "\u2028", "{"} {
		b, err := json.Marshal(Text(s))
		var back Text
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		if err != nil || string(back) != s {
			t.Errorf("%q becomes %s, %q, %v", s, b, back, err)
		}
	}
}

// frame makes one by hand.
func frame(kind Type, channel uint8, stream uint32, payload string) string {
	h := header{kind: kind, channel: channel, stream: stream, length: uint32(len(payload))}
	return string(h.append(nil)) + payload
}

func greeting() string {
	return string(binary.LittleEndian.AppendUint16([]byte(magic), Version))
}

// TestHostileGuest: what a guest may not do breaks the connection, with errs.Corrupt.
func TestHostileGuest(t *testing.T) {
	big := strings.Repeat("x", MaxData)
	for name, bytes := range map[string]string{
		"no such type":         frame(9, 0, 1, ""),
		"type 0":               frame(0, 0, 1, ""),
		"opens":                frame(Open, 0, 2, "{}"),
		"cancels":              frame(Cancel, 0, 1, ""),
		"stream 0":             frame(Message, 0, 0, "{}"),
		"another stream":       frame(Message, 0, 2, "{}"),
		"ends twice":           frame(End, 0, 1, "") + frame(End, 0, 1, ""),
		"after the end":        frame(End, 0, 1, "") + frame(Data, 1, 1, "x"),
		"long message":         frame(Message, 0, 1, strings.Repeat("x", MaxMessage+1)),
		"long data":            frame(Data, 1, 1, big+"x"),
		"long error":           frame(End, 0, 1, strings.Repeat("x", maxError+1)),
		"endless length":       string(header{kind: Data, stream: 1, length: 1<<32 - 1}.append(nil)),
		"channel":              frame(Data, 3, 1, "x"),
		"channel of a message": frame(Message, 1, 1, "{}"),
		"no data":              frame(Data, 1, 1, ""),
		"reserved":             "\x04\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00",
		"credit for nothing":   frame(Credit, 0, 1, "\x01\x00\x00\x00"),
		"endless credit":       frame(Credit, 0, 1, "\xff\xff\xff\xff"),
		"no credit":            frame(Credit, 0, 1, "\x00\x00\x00\x00"),
		"more than its credit": strings.Repeat(frame(Data, 1, 1, big), Window/MaxData),
		"many small frames":    strings.Repeat(frame(Close, 1, 1, ""), Window/headerSize+1),
	} {
		t.Run(name, func(t *testing.T) {
			a, b := net.Pipe()
			go func() {
				defer b.Close()
				go func() { _, _ = io.WriteString(b, greeting()) }()
				_, _ = io.ReadFull(b, make([]byte, len(greeting())+headerSize)) // the stream is open now
				go io.Copy(io.Discard, b)
				_, _ = io.WriteString(b, bytes)
				<-t.Context().Done()
			}()
			c, err := Host(a)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			s, err := c.Open(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(time.Minute); c.Err() == nil && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			if errs.KindOf(c.Err()) != errs.Corrupt {
				t.Errorf("the connection ends with %v", c.Err())
			}
			if _, err := s.Recv(); err == nil {
				t.Error("the stream goes on")
			}
		})
	}
}

// TestHostileHost is the other way round: the agent survives, too.
func TestHostileHost(t *testing.T) {
	many := ""
	for i := range uint32(MaxStreams + 1) {
		many += frame(Open, 0, i+1, "")
	}
	for name, bytes := range map[string]string{
		"opens twice":      frame(Open, 0, 1, "") + frame(Open, 0, 1, ""),
		"opens backwards":  frame(Open, 0, 5, "") + frame(Open, 0, 4, ""),
		"opens too many":   many,
		"a stream to come": frame(Data, 0, 1, "x"),
		"ends":             frame(Open, 0, 1, "") + frame(End, 0, 1, ""),
		"long request":     frame(Open, 0, 1, strings.Repeat("x", MaxRequest+1)),
	} {
		t.Run(name, func(t *testing.T) {
			a, b := net.Pipe()
			go func() {
				go io.Copy(io.Discard, a)
				_, _ = io.WriteString(a, greeting())
				_, _ = io.WriteString(a, bytes)
			}()
			err := Guest(b, func(s *Stream, _ []byte) error { <-s.Done(); return nil })
			if errs.KindOf(err) != errs.Corrupt {
				t.Errorf("it ends with %v", err)
			}
			a.Close()
		})
	}
}

func TestHello(t *testing.T) {
	for name, k := range map[string]struct {
		said string
		kind errs.Kind
	}{
		"another program": {"SSH-2.0-x", errs.Corrupt},
		"another version": {magic + "\xff\xff", errs.Unsupported},
		"nothing":         {"", errs.Unavailable},
	} {
		a, b := net.Pipe()
		go func() {
			_, _ = io.ReadFull(b, make([]byte, len(greeting())))
			_, _ = io.WriteString(b, k.said)
			b.Close()
		}()
		if _, err := Host(a); errs.KindOf(err) != k.kind {
			t.Errorf("%s: %v, want %v", name, err, k.kind)
		}
	}
}

// fuzz feeds one side with anything; whatever it is, the side ends and all its goroutines with it.
func fuzz(f *testing.F, host bool) {
	f.Add([]byte(frame(Open, 0, 1, "{}") + frame(Data, 0, 1, "abc") + frame(Close, 0, 1, "")))
	f.Add([]byte(frame(Message, 0, 1, "{}") + frame(Data, 1, 1, "abc") + frame(End, 0, 1, `{"kind":"denied"}`)))
	f.Add([]byte(frame(Credit, 0, 1, "\x01\x00\x00\x00") + frame(Cancel, 0, 1, "")))
	f.Fuzz(func(t *testing.T, input []byte) {
		a, b := net.Pipe()
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.Copy(io.Discard, b)
		}()
		go func() {
			_, _ = io.WriteString(b, greeting())
			_, _ = b.Write(input)
			b.Close()
		}()
		if !host {
			_ = Guest(a, echo)
			<-read
			return
		}
		c, err := Host(a)
		if err != nil {
			<-read
			return
		}
		if s, err := c.Open(context.Background(), []byte("{}")); err == nil {
			for err == nil {
				_, err = s.Recv()
			}
		}
		c.Close()
		<-read
	})
}

func FuzzHost(f *testing.F)  { fuzz(f, true) }
func FuzzGuest(f *testing.F) { fuzz(f, false) }
