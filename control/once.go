package control

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// Bounds of requests that are done once.
const (
	OnceTime   = 24 * time.Hour // an answer is kept so long
	MaxOnceKey = 255            // bytes
	maxOnce    = 4 << 20        // bytes of an answer that is kept; a larger one isn't, and its request can't be repeated
)

// Answer is what a request was answered with, as its protocol has it.
type Answer struct {
	Status int
	Header map[string]string
	Body   []byte
	Secret bool // it is kept sealed
}

// ErrReused says that a key came with another request than the first time.
var ErrReused = errs.Msg(errs.Invalid, "idempotency key", "", "it was used for another request").
	WithHint("a key belongs to one request; repeat that as it was, or take a new key")

// once is what is known of a key. The records are c/o/, then time (when it may be forgotten) and hash, and c/k/, then hash.
type once struct {
	Print  []byte // of the request
	Until  int64  // Unix seconds
	Done   bool
	Made   string `json:",omitempty"` // the id or name of what was made: recorded in the same commit as that
	Answer Answer
}

// onces are the requests that are being done now.
type onces struct {
	mu  sync.Mutex
	now map[[32]byte]bool
}

// Once does something once for a caller's key: again within a day, with a request of the same print, it returns the first
// answer, and replayed. ErrReused is a key of another print; errs.Conflict says that the first is still being done, or
// that the server ended in the middle of it, so that nobody knows whether it was. What fails may be tried again. do must use the context
// that it is given: a sandbox or fork that it makes is recorded together with the key, so that after the server's end it is found again.
func (c *Control) Once(ctx context.Context, who *access.Caller, key string, print [32]byte,
	do func(ctx context.Context) (*Answer, error)) (a *Answer, replayed bool, err error) {
	if key == "" || len(key) > MaxOnceKey {
		return nil, false, errs.Msg(errs.Invalid, "idempotency key", "", fmt.Sprintf("want 1 to %d bytes", MaxOnceKey))
	}
	hash := sha256.Sum256([]byte(who.Principal.Name + "\x00" + key))
	busy := errs.Msg(errs.Conflict, "idempotency key", key, "the first request of this key is still being answered")
	if !c.onces.begin(hash) {
		return nil, false, busy
	}
	defer c.onces.end(hash)
	rec := append([]byte("c/k/"), hash[:]...)
	now := c.clock.now()
	a, made, err := c.answered(ctx, rec, print, now)
	if a != nil || err != nil {
		return a, a != nil, err
	}
	o := once{Print: print[:], Until: now.Add(OnceTime).Unix(), Made: made}
	due := dueKey(o.Until, hash)
	// Lazy: what do commits makes this durable too; if it commits nothing, nothing was done.
	b := &kv.Batch{Lazy: true}
	b.Put(rec, encodeOnce(&o))
	b.Put(due, nil)
	if err := c.o.KV.Commit(ctx, b); err != nil {
		return nil, false, err
	}
	s := &slot{key: rec, once: o, made: made}
	a, err = do(context.WithValue(ctx, slotKey{}, s))
	o.Made = cmp.Or(s.last, s.made)
	end := &kv.Batch{}
	if size := 0; err == nil {
		if size = len(a.Body); size <= maxOnce {
			o.Done, o.Answer = true, *a
			if a.Secret {
				if o.Answer.Body, err = c.sealer().Seal(string(rec), a.Body); err != nil {
					return nil, false, err
				}
			}
			end.Put(rec, encodeOnce(&o))
			// Who comes again after a crash that lost the answer is told of what was made, which is durable.
			end.Lazy = o.Made != ""
		}
	} else {
		end.Delete(rec)
		end.Delete(due)
	}
	// Even if the client has gone: it will come again.
	if cerr := c.o.KV.Commit(context.WithoutCancel(ctx), end); cerr != nil && err == nil && c.o.Log != nil {
		c.o.Log.Error("an answer can't be kept for its idempotency key", "error", cerr)
	}
	return a, false, err
}

// answered looks for the first answer.
func (c *Control) answered(ctx context.Context, rec []byte, print [32]byte, now time.Time) (a *Answer, made string, err error) {
	v, err := c.o.KV.Get(ctx, rec)
	if errs.Is(err, errs.NotFound) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	o, err := decodeOnce(v)
	switch {
	case err != nil:
		return nil, "", err
	case o.Until <= now.Unix():
		return nil, "", nil
	case !bytes.Equal(o.Print, print[:]):
		return nil, "", ErrReused
	case !o.Done && o.Made != "":
		return nil, o.Made, nil
	case !o.Done:
		return nil, "", errs.Msg(errs.Conflict, "idempotency key", "", "the first request of this key was cut off by the server's end, or its answer was too large to be kept").
			WithHint("look whether it did what it should, then take a new key")
	case o.Answer.Secret:
		if o.Answer.Body, err = c.sealer().Open(string(rec), o.Answer.Body); err != nil {
			return nil, "", err
		}
	}
	return &o.Answer, "", nil
}

// forgetOnces deletes answers whose time is over, at most some at once. It is called now and then.
func (c *Control) forgetOnces(ctx context.Context) error {
	const most = 10_000
	b := &kv.Batch{Lazy: true, Reclaim: true}
	now := c.clock.now()
	err := c.o.KV.Scan(ctx, kv.Range{Start: []byte("c/o/"), End: dueKey(now.Unix(), [32]byte{})}, func(key, _ []byte) error {
		if len(b.Deletes) >= most {
			return kv.Stop
		}
		b.Delete(bytes.Clone(key))
		return nil
	})
	if err != nil || b.Empty() {
		return err
	}
	for _, key := range b.Deletes[:len(b.Deletes):len(b.Deletes)] {
		rec := append([]byte("c/k/"), key[12:]...)
		v, err := c.o.KV.Get(ctx, rec)
		if err != nil {
			continue
		}
		// The key may have been used anew since; then it has a later time, too.
		if o, err := decodeOnce(v); err != nil || o.Until <= now.Unix() {
			b.Checks = append(b.Checks, kv.Check{Key: rec, Value: v})
			b.Delete(rec)
		}
	}
	return c.o.KV.Commit(ctx, b)
}

func dueKey(until int64, hash [32]byte) []byte {
	return append(binary.BigEndian.AppendUint64([]byte("c/o/"), uint64(max(until, 0))), hash[:]...)
}

func encodeOnce(o *once) []byte {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err) // of strings, bytes and numbers only
	}
	return append([]byte{1}, b...)
}

func decodeOnce(v []byte) (*once, error) {
	var o once
	if len(v) == 0 || v[0] != 1 || json.Unmarshal(v[1:], &o) != nil {
		return nil, errs.Msg(errs.Corrupt, "idempotency key", "", "a record that can't be read")
	}
	return &o, nil
}

func (o *onces) begin(hash [32]byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.now[hash] {
		return false
	}
	if o.now == nil {
		o.now = map[[32]byte]bool{}
	}
	o.now[hash] = true
	return true
}

func (o *onces) end(hash [32]byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.now, hash)
}
