package rest

import (
	"bytes"
	"sync"
	"sync/atomic"

	"agentrun.dev/api"
)

// maxHeld bounds the output that is held for all results together, in bytes. Beyond it results are cut earlier.
const maxHeld = 512 << 20

// held counts what is held.
type held struct{ n atomic.Int64 }

// take reserves bytes, unless there are too many already.
func (h *held) take(n int) bool {
	if h.n.Add(int64(n)) > maxHeld {
		h.n.Add(int64(-n))
		return false
	}
	return true
}

// capture holds the first and the last half of a stream: of api.MaxOutput bytes, at most. It never refuses a write.
type capture struct {
	held *held

	mu    sync.Mutex
	head  []byte
	tail  []byte // a ring, once it is full
	at    int    // where the ring begins
	full  bool   // the tail doesn't grow any more
	taken int
	total int64
}

// step is how captures grow.
const step = 64 << 10

// Write implements io.Writer.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	c.total += int64(n)
	if len(c.tail) == 0 && !c.full {
		p = c.grow(&c.head, p)
	}
	if !c.full {
		if p = c.grow(&c.tail, p); len(p) > 0 {
			c.full = true
		}
	}
	if len(c.tail) == 0 {
		return n, nil
	}
	p = p[max(0, len(p)-len(c.tail)):]
	for len(p) > 0 {
		m := copy(c.tail[c.at:], p)
		c.at, p = (c.at+m)%len(c.tail), p[m:]
	}
	return n, nil
}

// grow appends what fits to a half, and returns the rest.
func (c *capture) grow(half *[]byte, p []byte) []byte {
	for len(p) > 0 && len(*half) < api.MaxOutput/2 {
		room := step - len(*half)%step
		if room == step && !c.reserve() {
			break
		}
		m := min(room, len(p))
		*half, p = append(*half, p[:m]...), p[m:]
	}
	return p
}

func (c *capture) reserve() bool {
	if !c.held.take(step) {
		return false
	}
	c.taken += step
	return true
}

// text returns what is held, with U+FFFD for what isn't UTF-8.
func (c *capture) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]byte, 0, len(c.head)+len(c.tail))
	all = append(all, c.head...)
	all = append(append(all, c.tail[c.at:]...), c.tail[:c.at]...)
	return string(bytes.ToValidUTF8(all, []byte("\ufffd")))
}

// cut reports whether something is missing.
func (c *capture) cut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total > int64(len(c.head)+len(c.tail))
}

// release gives back what the capture took. It isn't used any more.
func (c *capture) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held.n.Add(int64(-c.taken))
	c.head, c.tail, c.taken, c.at, c.full = nil, nil, 0, 0, true
}
