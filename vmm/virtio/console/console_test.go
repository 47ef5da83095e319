package console_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/virtio"
	"agentrun.dev/vmm/virtio/console"
	vt "agentrun.dev/vmm/virtio/virtiotest"
)

func TestOutput(t *testing.T) {
	dev := console.New(console.Options{Keep: 100})
	d := vt.New(t, dev, vt.Options{})
	followed := make(chan string, 1)
	go func() {
		var all []byte
		for pos := uint64(0); !bytes.HasSuffix(all, []byte("50\n")); {
			data, next, err := dev.Follow(context.Background(), pos)
			if err != nil || next < pos+uint64(len(data)) {
				t.Errorf("follow: %v, %d after %d", err, next, pos)
				break
			}
			all, pos = append(all, data...), next
		}
		followed <- string(all)
	}()
	for i := range 51 {
		d.Queues[1].Do([][]byte{[]byte("line "), []byte(fmt.Sprintln(i))})
	}
	want := "line 38\nline 39\nline 40\nline 41\nline 42\nline 43\nline 44\nline 45\nline 46\nline 47\nline 48\nline 49\nline 50\n"
	if got := string(dev.Tail(1000)); got != want[len(want)-100:] {
		t.Errorf("%q", got)
	}
	if got := string(dev.Tail(3)); got != "50\n" {
		t.Errorf("%q", got)
	}
	if got := <-followed; !strings.HasSuffix(got, "line 49\nline 50\n") {
		t.Errorf("%q", got)
	}
	d.Queues[1].Do([][]byte{bytes.Repeat([]byte("x"), 1000), []byte("!")})
	if got := string(dev.Tail(100)); got != strings.Repeat("x", 99)+"!" {
		t.Errorf("%q", got)
	}
	d.M.Write(vt.Config+8, []byte{'?', 0, 0, 0})
	if got := string(dev.Tail(2)); got != "!?" {
		t.Errorf("emergency output: %q", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := dev.Follow(ctx, 1<<40); !errors.Is(err, context.Canceled) {
		t.Errorf("follow from the future: %v", err)
	}
	if err := d.M.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := dev.Follow(context.Background(), 1<<40); !errs.Is(err, errs.Unavailable) {
		t.Errorf("follow of a closed console: %v", err)
	}
}

func TestInput(t *testing.T) {
	dev := console.New(console.Options{Columns: 80, Rows: 24})
	if n, err := dev.Write(bytes.Repeat([]byte("early"), console.MaxInput)); n != console.MaxInput || !errs.Is(err, errs.Limit) {
		t.Fatalf("%d bytes taken, %v", n, err)
	}
	d := vt.New(t, dev, vt.Options{})
	if c := d.Config(0, 8); !bytes.Equal(c, []byte{80, 0, 24, 0, 1, 0, 0, 0}) {
		t.Errorf("config %v", c)
	}
	q := d.Queues[0]
	var got []byte
	for len(got) < console.MaxInput {
		data, n := q.Do(nil, 3000, 96)
		got = append(got, data[:n]...)
	}
	if !bytes.Equal(got, bytes.Repeat([]byte("early"), console.MaxInput)[:console.MaxInput]) {
		t.Error("other bytes came")
	}
	r := q.Add(nil, 16) // before there is any
	q.Notify()
	if _, err := dev.Write([]byte("later")); err != nil {
		t.Fatal(err)
	}
	if q.Wait() != r || r.Written != 5 || string(q.Data(r)[:5]) != "later" {
		t.Error("what was typed later didn't come")
	}
	dev.Resize(132, 50)
	if c := d.Config(0, 4); c[0] != 132 || c[2] != 50 || d.Load(vt.Generation) == 0 || d.Load(vt.InterruptStatus)&2 == 0 {
		t.Errorf("config %v after a resize", c)
	}
}

// TestMidLife: input that the guest hasn't read moves with it; output is printed during pauses and comes after them.
func TestMidLife(t *testing.T) {
	dev := console.New(console.Options{Columns: 100, Rows: 30})
	d := vt.New(t, dev, vt.Options{})
	if _, err := dev.Write([]byte("typed ahead")); err != nil {
		t.Fatal(err)
	}
	next := console.New(console.Options{})
	d.Move(next)
	if data, n := d.Queues[0].Do(nil, 64); string(data[:n]) != "typed ahead" {
		t.Errorf("%q", data[:n])
	}
	if c := d.Config(0, 4); c[0] != 100 || c[2] != 30 {
		t.Errorf("config %v", c)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for {
			select {
			case <-stop:
				return
			default:
				d.M.Pause()
				before := len(next.Tail(1 << 20))
				if after := len(next.Tail(1 << 20)); before != after {
					t.Errorf("%d bytes printed during a pause", after-before)
				}
				d.M.Resume()
			}
		}
	}()
	for range 500 {
		d.Queues[1].Do([][]byte{[]byte("0123456789")})
	}
	close(stop)
	wg.Wait()
	if got := next.Tail(1 << 20); string(got) != strings.Repeat("0123456789", 500) {
		t.Errorf("%d bytes printed", len(got))
	}
}

func FuzzDevice(f *testing.F) {
	vt.Seed(f, []byte("hello"))
	f.Add([]byte{12, 1, 1, 5, 'h', 'e', 'l', 'l', 'o', 0, 12, 0, 0, 1, 3, 11, 8, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		vt.Fuzz(t, func() virtio.Device {
			d := console.New(console.Options{Keep: 64})
			_, _ = d.Write([]byte("typed before anybody listens"))
			return d
		}, data)
	})
}

// TestFree: while the device looks at what the guest prints, which may never end, what was printed can be read, and typed.
func TestFree(t *testing.T) {
	dev := console.New(console.Options{})
	d := vt.New(t, dev, vt.Options{})
	d.Queues[1].Do([][]byte{[]byte("before")})
	held, resume := d.RAM.HoldUp(12)
	d.Queues[1].Add([][]byte{[]byte("for a while!")})
	d.Queues[1].Notify()
	<-held
	done := make(chan error, 1)
	go func() {
		_, err := dev.Write([]byte("typed"))
		if got := string(dev.Tail(100)); got != "before" {
			err = errors.Join(err, fmt.Errorf("%q", got))
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(vt.Patience):
		t.Error("others wait for a guest that prints")
	}
	resume()
	d.Queues[1].Wait()
}
