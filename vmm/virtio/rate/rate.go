// Package rate bounds what a device does in a time: bytes and requests, each by a bucket of tokens that fills at the rate, up to the burst.
//
// A request may be begun while there are tokens, and then takes what it costs; if that is more than there are, the bucket owes it, and the next
// request waits the longer. So a request of any size is served at some time, and over a while the rate is kept.
package rate

import (
	"context"
	"sync"
	"time"
)

// Limit is what may be done. The zero value is no limit.
type Limit struct {
	Bytes uint64 // in a second; 0: any number
	Ops   uint64 // requests, or frames, in a second; 0: any number
	// BurstBytes and BurstOps are what may be done at once after a rest; what may be done in a second when 0.
	BurstBytes, BurstOps uint64
}

// Limiter keeps a limit. nil keeps none. Its methods may be called at the same time.
type Limiter struct {
	mu         sync.Mutex
	bytes, ops bucket
}

// New returns a limiter whose buckets are full; nil if there is no limit.
func New(l Limit) *Limiter {
	if l.Bytes == 0 && l.Ops == 0 {
		return nil
	}
	now := time.Now()
	return &Limiter{bytes: newBucket(l.Bytes, l.BurstBytes, now), ops: newBucket(l.Ops, l.BurstOps, now)}
}

// Wait returns true when a request may begin, and false when ctx ends before. idle is called before it waits: for what others would wait
// for meanwhile. Whoever asks must hold nothing that a pause waits for.
func (l *Limiter) Wait(ctx context.Context, idle func()) bool {
	if l == nil {
		return true
	}
	for {
		l.mu.Lock()
		now := time.Now()
		d := max(l.bytes.due(now), l.ops.due(now))
		l.mu.Unlock()
		if d == 0 {
			return true
		}
		idle()
		timer := time.NewTimer(d)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

// Charge takes what a request of n bytes costs.
func (l *Limiter) Charge(n int) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.bytes.take(float64(n), now)
	l.ops.take(1, now)
}

// bucket holds tokens, fewer than none when it owes some.
type bucket struct {
	rate, burst, tokens float64 // a rate of 0 is no limit
	at                  time.Time
}

func newBucket(rate, burst uint64, now time.Time) bucket {
	if burst == 0 {
		burst = rate
	}
	return bucket{rate: float64(rate), burst: float64(burst), tokens: float64(burst), at: now}
}

// fill adds what has come since the last time. A clock that goes back adds nothing.
func (b *bucket) fill(now time.Time) {
	if d := now.Sub(b.at); d > 0 {
		b.tokens = min(b.tokens+b.rate*d.Seconds(), b.burst)
		b.at = now
	}
}

// maxWait is how long one waits before one looks again.
const maxWait = time.Minute

// due is how long it takes until there is a token; 0: there is one.
func (b *bucket) due(now time.Time) time.Duration {
	if b.rate == 0 {
		return 0
	}
	b.fill(now)
	if b.tokens >= 1 {
		return 0
	}
	d := (1 - b.tokens) / b.rate * float64(time.Second)
	return time.Duration(min(d, float64(maxWait))) + 1
}

func (b *bucket) take(n float64, now time.Time) {
	if b.rate != 0 {
		b.fill(now)
		b.tokens -= n
	}
}
