package bucket

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"agentrun.dev/errs"
)

// regIn is what a client asks of one key. A value is named by the words that its body repeats; "" is no object.
type regIn struct {
	op    byte // r(ead), p(ut), d(elete)
	key   string
	val   string
	match string // only if the object has this value
	none  string // only if it hasn't; "*": only if there is none
}

// regOut is the answer: what was read, or the ETag of what was deleted; or the kind of refusal.
type regOut struct {
	val  string
	kind errs.Kind
}

// regBody makes a value's body: in the tree's record, in the log, or in a slot, by its number.
func regBody(val string) []byte {
	n := 10
	if i := strings.IndexByte(val, '.'); i >= 0 {
		n = []int{1, 90, 500, 7000}[val[i+1]%4]
	}
	return bytes.Repeat([]byte(val+" "), n)
}

func regETag(val string) string {
	sum := md5.Sum(regBody(val))
	return hex.EncodeToString(sum[:])
}

// refusal is how a condition fails for a value.
func (in regIn) refusal(val string) errs.Kind {
	switch {
	case in.match != "" && val == "":
		return errs.NotFound
	case in.match != "" && in.match != val:
		return errs.Precondition
	case in.none == "*" && val != "", in.none != "" && in.none == val:
		return errs.Precondition
	}
	return 0
}

// registers is the model: each key is a register of its own.
var registers = porcupine.Model{
	Init: func() any { return "" },
	Partition: func(all []porcupine.Operation) (parts [][]porcupine.Operation) {
		by := map[string][]porcupine.Operation{}
		for _, o := range all {
			k := o.Input.(regIn).key
			by[k] = append(by[k], o)
		}
		for _, p := range by {
			parts = append(parts, p)
		}
		return parts
	},
	Step: func(state, input, output any) (bool, any) {
		val, in, out := state.(string), input.(regIn), output.(regOut)
		if in.op == 'r' {
			return out.val == val, val
		}
		if kind := in.refusal(val); kind != out.kind {
			return false, val
		} else if kind != 0 {
			return true, val
		}
		if in.op == 'd' {
			return out.val == val, ""
		}
		return true, in.val
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %+v", in, out) },
}

// lab runs clients and keeps their history.
type lab struct {
	*rig
	start time.Time
	mu    sync.Mutex
	hist  []porcupine.Operation
	etags map[string]string // → value
}

func (l *lab) note(client int, in regIn, out regOut, call, ret time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hist = append(l.hist, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: int64(call), Return: int64(ret)})
}

// value reads a key in a view and makes sure that the bytes are those of one value, whole.
func (l *lab) value(ctx context.Context, v *View, key string) (string, error) {
	o, err := v.Get(ctx, key)
	if errs.Is(err, errs.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	rd, err := v.Open(ctx, o)
	if err != nil {
		return "", err
	}
	defer rd.Close()
	b, err := io.ReadAll(rd)
	if err != nil {
		return "", err
	}
	val, _, _ := strings.Cut(string(b), " ")
	if !bytes.Equal(b, regBody(val)) || o.ETag != regETag(val) {
		return "", fmt.Errorf("%s holds %d bytes that nobody wrote, of %q", key, len(b), val)
	}
	return val, nil
}

// do carries out one operation.
func (l *lab) do(ctx context.Context, b *Bucket, in regIn) (out regOut, at *Object, err error) {
	if in.op == 'r' {
		v, err := b.View(ctx)
		if err != nil {
			return out, nil, err
		}
		defer v.Close()
		out.val, err = l.value(ctx, v, in.key)
		return out, nil, err
	}
	op := Op{Kind: OpDelete, Key: in.key}
	if in.op == 'p' {
		body := regBody(in.val)
		p, err := l.s.Stage(ctx, bytes.NewReader(body), int64(len(body)))
		if err != nil {
			return out, nil, err
		}
		defer p.Discard()
		op.Kind, op.Payload = OpPut, p
	}
	switch {
	case in.match != "":
		op.Cond = &Condition{IfMatch: []string{regETag(in.match)}}
	case in.none == "*":
		op.Cond = &Condition{IfNoneMatch: []string{"*"}}
	case in.none != "":
		op.Cond = &Condition{IfNoneMatch: []string{regETag(in.none)}}
	}
	res, err := b.Apply(ctx, []Op{op}, ApplyOptions{})
	if k := errs.KindOf(err); err != nil && (k == errs.NotFound || k == errs.Precondition) {
		return regOut{kind: k}, nil, nil
	}
	if err != nil {
		return out, nil, err
	}
	if in.op == 'd' {
		if res[0] != nil {
			l.mu.Lock()
			out.val = l.etags[res[0].ETag]
			l.mu.Unlock()
		}
		return out, nil, nil
	}
	return out, res[0], nil
}

// client does operations on random keys, with conditions on what it saw last.
func (l *lab) client(id, n int) error {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(uint64(id), 7))
	seen := map[string]string{}
	for i := range n {
		b, err := l.s.Bucket(ctx, "base")
		if err != nil {
			return err
		}
		in := regIn{op: "rrppppd"[rng.IntN(7)], key: fmt.Sprint("key-", rng.IntN(3))}
		if in.op == 'p' {
			in.val = fmt.Sprintf("%d-%d.%d", id, i, rng.IntN(4))
			l.mu.Lock()
			l.etags[regETag(in.val)] = in.val
			l.mu.Unlock()
		}
		if in.op != 'r' {
			switch rng.IntN(5) {
			case 0:
				in.none = "*"
			case 1, 2:
				in.match = seen[in.key]
			case 3:
				in.none = seen[in.key]
			}
		}
		call := time.Since(l.start)
		out, o, err := l.do(ctx, b, in)
		ret := time.Since(l.start)
		if err != nil {
			return err
		}
		l.note(id, in, out, call, ret)
		if in.op == 'r' {
			seen[in.key] = out.val
		}
		if o == nil {
			continue
		}
		seen[in.key] = in.val
		if i%8 == 0 { // at the version that it got, the bucket shows it for ever
			v, err := b.ViewAt(ctx, o.Version)
			if err != nil {
				return err
			}
			got, err := l.value(ctx, v, in.key)
			v.Close()
			if err != nil || got != in.val {
				return fmt.Errorf("%s at the version of %q shows %q: %v", in.key, in.val, got, err)
			}
		}
	}
	return nil
}

// cuts makes forks and snapshots until stopped: what each shows was read from the bucket while it was made.
func (l *lab) cuts(id int, stop chan struct{}) error {
	ctx := context.Background()
	for n := 0; ; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		ref := "base"
		call := time.Since(l.start)
		if n%2 == 0 {
			ref = fmt.Sprintf("fork-%d", n)
			if _, err := l.s.Fork(ctx, "base", ref, ForkOptions{}); err != nil {
				return err
			}
		} else {
			sn, err := l.s.TakeSnapshot(ctx, "base", SnapshotOptions{})
			if err != nil {
				return err
			}
			ref = fmt.Sprintf("base@%d", sn.Version)
		}
		ret := time.Since(l.start)
		name, at, err := l.s.Point(ctx, ref)
		if err != nil {
			return err
		}
		v, err := l.s.View(ctx, name, at)
		if err != nil {
			return err
		}
		for k := range 3 {
			in := regIn{op: 'r', key: fmt.Sprint("key-", k)}
			val, err := l.value(ctx, v, in.key)
			if err != nil {
				v.Close()
				return err
			}
			l.note(id, in, regOut{val: val}, call, ret)
		}
		v.Close()
		if n%2 == 0 {
			if err := l.s.Delete(ctx, ref, DeleteOptions{Force: true}); err != nil {
				return err
			}
		}
		if n%7 == 0 {
			if _, err := l.s.GC(ctx); err != nil {
				return err
			}
		}
		l.s.evict()
	}
}

// TestLinearizable lets clients loose on a few keys while the bucket is folded, forked and snapshotted, and looks for
// an order of their operations in which each key behaves as a register.
func TestLinearizable(t *testing.T) {
	n := 250
	if testing.Short() {
		n = 80
	}
	l := &lab{rig: newRig(t, Options{FoldMin: 300, OpenBuckets: 2}), start: time.Now(), etags: map[string]string{}}
	l.create("base")
	stop := make(chan struct{})
	var clients, others sync.WaitGroup
	run := func(wg *sync.WaitGroup, f func() error) {
		wg.Go(func() {
			if err := f(); err != nil {
				t.Error(err)
			}
		})
	}
	run(&others, func() error { return l.cuts(100, stop) })
	for i := range 5 {
		run(&clients, func() error { return l.client(i, n) })
	}
	clients.Wait()
	close(stop)
	others.Wait()
	if t.Failed() {
		return
	}
	if l.s.Metrics().Folds == 0 {
		t.Error("nothing was folded")
	}
	refused := 0
	for _, o := range l.hist {
		if o.Output.(regOut).kind != 0 {
			refused++
		}
	}
	if refused < n/10 {
		t.Errorf("only %d of %d operations were refused", refused, len(l.hist))
	}
	switch porcupine.CheckOperationsTimeout(registers, l.hist, time.Minute) {
	case porcupine.Illegal:
		t.Errorf("no order explains the %d operations", len(l.hist))
	case porcupine.Unknown:
		t.Errorf("no order was found in time for %d operations", len(l.hist))
	}
	sound(t, l.s)
}
