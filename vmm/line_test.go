package vmm

import (
	"sync"
	"testing"
)

// Edges of an interrupt line follow each other, whoever raises it: each is one.
func TestEdges(t *testing.T) {
	var high bool
	edges := 0
	l := &line{set: func(to bool) error { // as a kernel would: without this lock, the race detector would tell as well
		if to && high {
			t.Error("an edge is lost")
		}
		if to {
			edges++
		}
		high = to
		return nil
	}}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				if err := l.edge(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if edges != 4000 || high {
		t.Errorf("%d edges; high: %v", edges, high)
	}
}

// What a console's driver hasn't heard of when the VM was captured, it hears after.
func TestConsoleResumes(t *testing.T) {
	raised := 0
	c := newConsole(100, nil, func() error { raised++; return nil })
	c.resume()
	if raised != 0 {
		t.Error("an interrupt without a reason")
	}
	if _, err := c.Input([]byte("x")); err != nil || raised != 0 {
		t.Error(err, raised)
	}
	c.uart.ier = ierRecv
	c.resume()
	if raised != 1 {
		t.Error("input that waits isn't told of")
	}
}
