package bucket

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentrun.dev"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// Lives of uploads: how long one may be in progress, and how long the result of a finished one is kept, so that a
// client that lost the answer can ask again.
const (
	uploadLife   = 7 * 24 * time.Hour
	finishedLife = 24 * time.Hour
	minPart      = 5 << 20 // bytes in each part but the last
)

// uploadRecord is an upload as stored. Once it is finished, version says which write it became.
type uploadRecord struct {
	key       string
	initiated time.Time
	meta      []byte // an encoded object
	finished  time.Time
	version   uint64
	digest    []byte // of the parts that it was finished with
}

func (u *uploadRecord) encode() []byte {
	e := enc{b: []byte{formatVersion}}
	e.str(u.key)
	e.time(u.initiated)
	e.bytes(u.meta)
	e.time(u.finished)
	e.u(u.version)
	e.bytes(u.digest)
	return e.b
}

func decodeUpload(b []byte) (*uploadRecord, error) {
	d := dec{b: b}
	if err := d.version("upload"); err != nil {
		return nil, err
	}
	u := &uploadRecord{key: d.str(), initiated: d.time(), meta: d.bytes(), finished: d.time(), version: d.u(), digest: d.bytes()}
	return u, d.end("upload")
}

// partRecord is a part as stored: what S3 says of it, and where its bytes are.
type partRecord struct {
	part    Part
	extents []extent
}

func (p *partRecord) encode() []byte {
	e := enc{b: []byte{formatVersion}}
	e.part(&p.part)
	for _, x := range p.extents {
		e.extent(x)
	}
	return e.b
}

func decodePart(b []byte) (*partRecord, error) {
	d := dec{b: b}
	if err := d.version("part"); err != nil {
		return nil, err
	}
	p := &partRecord{part: d.part()}
	for len(d.b) > 0 && !d.bad {
		p.extents = append(p.extents, d.extent())
	}
	return p, d.end("part")
}

// CreateUpload begins a multipart upload with an object's metadata. Uploads belong to the bucket and aren't forked.
func (b *Bucket) CreateUpload(ctx context.Context, key string, meta *Object) (*Upload, error) {
	op := []Op{{Kind: OpPut, Key: key, Object: meta}}
	if err := checkOps(op); err != nil {
		return nil, err
	}
	if meta == nil {
		meta = &Object{}
	}
	id, err := newRefID()
	if err != nil {
		return nil, err
	}
	now := b.s.clock.now().UTC()
	m := *meta
	m.data = content{}
	up := &uploadRecord{key: key, initiated: now, meta: encodeObject(&m, nil)}
	err = b.withUploads(ctx, func(t *txn) error {
		t.put(uploadKey(b.id, id.String()), up.encode())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return up.public(id.String())
}

func (u *uploadRecord) public(id string) (*Upload, error) {
	o, _, err := decodeObject(u.key, u.meta)
	return &Upload{ID: id, Key: u.key, Initiated: u.initiated, Object: o}, err
}

// withUploads commits a change of the bucket's uploads, one at a time.
func (b *Bucket) withUploads(ctx context.Context, f func(*txn) error) error {
	r, err := b.acquire(ctx)
	if err != nil {
		return err
	}
	defer b.s.release(r)
	b.s.barrier.RLock()
	defer b.s.barrier.RUnlock()
	r.uploads.Lock()
	defer r.uploads.Unlock()
	r.mu.Lock()
	err = r.ready()
	r.mu.Unlock()
	if err != nil {
		return err
	}
	t := &txn{}
	if err := f(t); err != nil {
		return err
	}
	return b.s.commits.commit(t)
}

func noUpload(id string) error {
	return errs.Msg(errs.NotFound, "upload", strconv.Quote(clip(id)), "no such upload")
}

func (b *Bucket) upload(ctx context.Context, key, id string) (*uploadRecord, error) {
	if len(id) != 32 {
		return nil, noUpload(id)
	}
	v, err := b.s.kv.Get(ctx, uploadKey(b.id, id))
	if errs.Is(err, errs.NotFound) {
		return nil, noUpload(id)
	}
	if err != nil {
		return nil, err
	}
	u, err := decodeUpload(v)
	if err == nil && u.key != key {
		err = noUpload(id)
	}
	return u, err
}

// Upload describes an upload in progress, or errs.NotFound.
func (b *Bucket) Upload(ctx context.Context, key, id string) (*Upload, error) {
	u, err := b.upload(ctx, key, id)
	if err == nil && !u.finished.IsZero() {
		err = noUpload(id)
	}
	if err != nil {
		return nil, err
	}
	return u.public(id)
}

func (b *Bucket) checkPart(number int) error {
	if number < 1 || number > MaxParts {
		return errs.Msg(errs.Invalid, "part", strconv.Itoa(number), "part numbers are 1 to 10,000")
	}
	return nil
}

// PutPart stores a part of an upload; an earlier one of the same number is replaced.
func (b *Bucket) PutPart(ctx context.Context, key, id string, number int, p *Payload, sum []Checksum) (*Part, error) {
	if err := b.checkPart(number); err != nil {
		return nil, err
	}
	xs := p.extents
	if len(xs) == 0 && p.Size > 0 {
		x, err := b.s.putStaged(ctx, p.inline)
		if err != nil {
			return nil, err
		}
		xs = []extent{x}
		p.extents, p.inline = xs, nil
	}
	if err := b.s.segments.Sync(ctx); err != nil {
		return nil, err
	}
	rec := &partRecord{part: Part{Number: number, Size: p.Size, ETag: hex.EncodeToString(p.MD5[:]), Checksum: sum}, extents: xs}
	err := b.putPart(ctx, key, id, rec)
	p.settle(err)
	if err != nil {
		return nil, err
	}
	return &rec.part, nil
}

// CopyPart makes a part of n bytes of an existing object, from off on, without copying them if they are in slots.
func (b *Bucket) CopyPart(ctx context.Context, key, id string, number int, src *Object, off, n int64) (*Part, error) {
	if err := b.checkPart(number); err != nil {
		return nil, err
	}
	if off < 0 || n < 0 || off+n > src.Size || n > MaxPart {
		return nil, errs.Msg(errs.Invalid, "copy part", strconv.Quote(clip(src.Key)), "the range isn't within the source")
	}
	rec := &partRecord{part: Part{Number: number, Size: n}}
	own := &Payload{s: b.s}
	defer own.Discard()
	small, ok, err := b.s.small(ctx, src)
	if err != nil {
		return nil, err
	}
	if ok {
		if n > 0 {
			x, err := b.s.putStaged(ctx, small[off:off+n])
			if err != nil {
				return nil, err
			}
			rec.extents = []extent{x}
			own.extents = rec.extents
			if err := b.s.segments.Sync(ctx); err != nil {
				return nil, err
			}
		}
		sum := md5.Sum(small[off : off+n])
		rec.part.ETag = hex.EncodeToString(sum[:])
	} else {
		err := b.s.extentsIn(ctx, src, off, off+n, func(at int64, x extent) error {
			lo, hi := max(off-at, 0), min(off+n-at, x.n)
			rec.extents = append(rec.extents, extent{x.seg, x.slot, x.off + lo, hi - lo})
			return nil
		})
		if err != nil {
			return nil, err
		}
		// The bytes aren't read for it, so the ETag is one of the source's and the range.
		sum := md5.Sum(fmt.Appendf(nil, "%s %d %d", src.ETag, off, n))
		rec.part.ETag = hex.EncodeToString(sum[:])
	}
	err = b.putPart(ctx, key, id, rec)
	own.settle(err)
	if err != nil {
		return nil, err
	}
	return &rec.part, nil
}

func (b *Bucket) putPart(ctx context.Context, key, id string, rec *partRecord) error {
	rec.part.Modified = b.s.clock.now().UTC()
	err := b.withUploads(ctx, func(t *txn) error {
		if _, err := b.Upload(ctx, key, id); err != nil {
			return err
		}
		k := partKey(b.id, id, rec.part.Number)
		if err := b.dropPart(ctx, t, k); err != nil {
			return err
		}
		t.put(k, rec.encode())
		return t.gain(b.s, rec.extents)
	})
	return err
}

// gain and lose queue that something holds, or no longer holds, the slots of some extents.
func (t *txn) gain(s *Store, xs []extent) error { return t.slots(s, gainSlots, xs) }
func (t *txn) lose(s *Store, xs []extent) error { return t.slots(s, loseSlots, xs) }

func (t *txn) slots(s *Store, kind eventKind, xs []extent) error {
	for refs := range slices.Chunk(refsOf(xs), maxSlotsPerEvent) {
		if err := t.event(s, event{kind: kind, slots: refs}); err != nil {
			return err
		}
	}
	return nil
}

// maxSlotsPerEvent keeps an event's record small.
const maxSlotsPerEvent = 64 << 10

func (b *Bucket) dropPart(ctx context.Context, t *txn, k []byte) error {
	v, err := b.s.kv.Get(ctx, k)
	if errs.Is(err, errs.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	old, err := decodePart(v)
	if err != nil {
		return err
	}
	return t.lose(b.s, old.extents)
}

// Parts lists the parts of an upload in progress, by number.
func (b *Bucket) Parts(ctx context.Context, key, id string) ([]Part, error) {
	if _, err := b.Upload(ctx, key, id); err != nil {
		return nil, err
	}
	recs, err := b.s.parts(ctx, b.id, id)
	parts := make([]Part, len(recs))
	for i, r := range recs {
		parts[i] = r.part
	}
	return parts, err
}

func (s *Store) parts(ctx context.Context, ref agentrun.RefID, id string) (list []*partRecord, err error) {
	err = s.kv.Scan(ctx, prefixRange(kvKey(kPart, ref[:], []byte(id), []byte{0})), func(_, v []byte) error {
		p, err := decodePart(append([]byte(nil), v...))
		list = append(list, p)
		return err
	})
	return list, err
}

// Uploads lists the uploads in progress whose keys have the prefix, by key and then by initiation.
func (b *Bucket) Uploads(ctx context.Context, prefix string) ([]*Upload, error) {
	var list []*Upload
	base := kvKey(kUpload, b.id[:])
	err := b.s.kv.Scan(ctx, prefixRange(base), func(k, v []byte) error {
		u, err := decodeUpload(append([]byte(nil), v...))
		if err != nil || !u.finished.IsZero() || !strings.HasPrefix(u.key, prefix) {
			return err
		}
		p, err := u.public(string(k[len(base):]))
		list = append(list, p)
		return err
	})
	slices.SortStableFunc(list, func(a, b *Upload) int {
		if c := strings.Compare(a.Key, b.Key); c != 0 {
			return c
		}
		return a.Initiated.Compare(b.Initiated)
	})
	return list, err
}

// Complete makes an object of an upload's parts. Repeated within 24 hours it returns the same object, if that is still
// current. sum are the object's own checksums, already verified against the parts' by the caller.
func (b *Bucket) Complete(ctx context.Context, key, id string, parts []CompletePart, sum []Checksum, cond *Condition) (*Object, error) {
	r, err := b.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer b.s.release(r)
	digest := completeDigest(parts)
	r.room()
	b.s.barrier.RLock()
	defer b.s.barrier.RUnlock()
	r.uploads.Lock()
	defer r.uploads.Unlock()
	u, err := b.upload(ctx, key, id)
	if err != nil {
		return nil, err
	}
	if !u.finished.IsZero() {
		return b.completedBefore(ctx, r, u, id, digest)
	}
	o, xs, unused, err := b.assemble(ctx, u, id, parts)
	if err != nil {
		return nil, err
	}
	if len(sum) > 0 {
		o.Checksum = sum
	}
	return b.s.finishUpload(ctx, r, u, id, digest, o, xs, unused, cond)
}

func completeDigest(parts []CompletePart) []byte {
	h := md5.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d %s\n", p.Number, strings.Trim(p.ETag, `"`))
	}
	return h.Sum(nil)
}

func (b *Bucket) completedBefore(ctx context.Context, r *ref, u *uploadRecord, id string, digest []byte) (*Object, error) {
	if string(u.digest) == string(digest) {
		o, err := r.pub.Load().getObject(ctx, u.key)
		if err != nil {
			return nil, err
		}
		if o != nil && uint64(o.Version) == u.version {
			return o, nil
		}
	}
	return nil, noUpload(id)
}

// assemble checks the caller's parts against those stored. unused are the extents of parts that it leaves out.
func (b *Bucket) assemble(ctx context.Context, u *uploadRecord, id string, parts []CompletePart) (o *Object, xs, unused []extent, err error) {
	stored, err := b.s.parts(ctx, b.id, id)
	if err != nil {
		return nil, nil, nil, err
	}
	bad := func(kind errs.Kind, n int, why string) error {
		return errs.Msg(kind, "complete", "part "+strconv.Itoa(n), why)
	}
	byNumber := make(map[int]*partRecord, len(stored))
	for _, p := range stored {
		byNumber[p.part.Number] = p
	}
	if o, _, err = decodeObject(u.key, u.meta); err != nil {
		return nil, nil, nil, err
	}
	if len(parts) == 0 {
		return nil, nil, nil, errs.Msg(errs.Invalid, "complete", strconv.Quote(clip(u.key)), "no parts")
	}
	h := md5.New()
	last := 0
	for i, want := range parts {
		if want.Number <= last {
			return nil, nil, nil, bad(errs.Conflict, want.Number, "parts aren't in ascending order")
		}
		last = want.Number
		p, ok := byNumber[want.Number]
		if !ok || want.ETag != "" && strings.Trim(want.ETag, `"`) != p.part.ETag {
			return nil, nil, nil, bad(errs.Precondition, want.Number, "no such part, or its ETag is another")
		}
		if !sumsMatch(want.Checksum, p.part.Checksum) {
			return nil, nil, nil, bad(errs.Precondition, want.Number, "its checksum is another")
		}
		if i < len(parts)-1 && p.part.Size < minPart {
			return nil, nil, nil, bad(errs.TooLarge, want.Number, "smaller than 5 MiB, and not the last part")
		}
		raw, err := hex.DecodeString(p.part.ETag)
		if err != nil {
			return nil, nil, nil, bad(errs.Corrupt, want.Number, "malformed ETag")
		}
		h.Write(raw)
		part := p.part
		part.Offset = o.Size
		o.Parts = append(o.Parts, part)
		if o.Size += part.Size; o.Size > MaxObject {
			return nil, nil, nil, bad(errs.TooLarge, want.Number, "an object has at most 5 TiB")
		}
		xs = append(xs, p.extents...)
		delete(byNumber, want.Number)
	}
	for _, p := range byNumber {
		unused = append(unused, p.extents...)
	}
	o.ETag = hex.EncodeToString(h.Sum(nil)) + "-" + strconv.Itoa(len(parts))
	return o, xs, unused, nil
}

func sumsMatch(want, have []Checksum) bool {
	for _, w := range want {
		ok := slices.ContainsFunc(have, func(h Checksum) bool { return h.Algorithm == w.Algorithm && sameSum(h.Value, w.Value) })
		if !ok {
			return false
		}
	}
	return true
}

func sameSum(a, b string) bool {
	x, err1 := base64.StdEncoding.DecodeString(a)
	y, err2 := base64.StdEncoding.DecodeString(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}

// finishUpload publishes the object. Its extents pass from the upload to the log: the upload's hold is given up only
// after the log's has been counted.
func (s *Store) finishUpload(ctx context.Context, r *ref, u *uploadRecord, id string, digest []byte, o *Object, xs, unused []extent, cond *Condition) (*Object, error) {
	t, res, err := func() (*txn, *Object, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if err := r.ready(); err != nil {
			return nil, nil, err
		}
		w := r.writer()
		p := &Payload{Size: o.Size, s: s, extents: xs}
		if len(xs) == 0 {
			p.inline = []byte{}
		}
		res, err := w.do(ctx, &Op{Kind: OpPut, Key: u.key, Object: o, Payload: p, Cond: cond})
		if err != nil {
			return nil, nil, err
		}
		t := &txn{}
		done := *u
		done.finished, done.version, done.digest, done.meta = s.clock.now().UTC(), w.seq, digest, nil
		t.put(uploadKey(r.id, id), done.encode())
		stored, err := s.parts(ctx, r.id, id)
		if err != nil {
			return nil, nil, err
		}
		for _, p := range stored {
			t.del(partKey(r.id, id, p.part.Number))
		}
		if err := t.lose(s, append(slices.Clone(xs), unused...)); err != nil {
			return nil, nil, err
		}
		return t, res, w.queue(t)
	}()
	if err == nil {
		err = t.wait()
	}
	if err != nil {
		return nil, err
	}
	s.ledger.poke()
	s.folds.consider(r)
	return res, nil
}

// Abort ends an upload and gives back its parts.
func (b *Bucket) Abort(ctx context.Context, key, id string) error {
	err := b.withUploads(ctx, func(t *txn) error {
		if _, err := b.Upload(ctx, key, id); err != nil {
			return err
		}
		return b.s.dropUpload(ctx, t, b.id, id)
	})
	b.s.ledger.poke()
	return err
}

func (s *Store) dropUpload(ctx context.Context, t *txn, ref agentrun.RefID, id string) error {
	parts, err := s.parts(ctx, ref, id)
	if err != nil {
		return err
	}
	for _, p := range parts {
		t.del(partKey(ref, id, p.part.Number))
		if err := t.lose(s, p.extents); err != nil {
			return err
		}
	}
	t.del(uploadKey(ref, id))
	return nil
}

func (s *Store) dropUploads(ctx context.Context, t *txn, ref agentrun.RefID) error {
	base := kvKey(kUpload, ref[:])
	var ids []string
	err := s.kv.Scan(ctx, prefixRange(base), func(k, _ []byte) error {
		ids = append(ids, string(k[len(base):]))
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.dropUpload(ctx, t, ref, id); err != nil {
			return err
		}
	}
	return nil
}

// expireUploads ends uploads that were abandoned, and forgets finished ones.
func (s *Store) expireUploads(ctx context.Context, now time.Time) error {
	type due struct {
		ref agentrun.RefID
		id  string
		key string
		fin bool
	}
	var list []due
	err := s.kv.Scan(ctx, prefixRange(kvKey(kUpload)), func(k, v []byte) error {
		u, err := decodeUpload(v)
		if err != nil {
			return err
		}
		d := due{id: string(k[18:]), key: u.key, fin: !u.finished.IsZero()}
		copy(d.ref[:], k[2:])
		if d.fin && now.Sub(u.finished) > finishedLife || !d.fin && now.Sub(u.initiated) > uploadLife {
			list = append(list, d)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, d := range list {
		b := &Bucket{s: s, id: d.ref}
		if !d.fin {
			if err := b.Abort(ctx, d.key, d.id); err != nil && !errs.Is(err, errs.NotFound) {
				return err
			}
			continue
		}
		t := &txn{batch: kv.Batch{Reclaim: true}, lazy: true}
		t.del(uploadKey(d.ref, d.id))
		if err := s.commits.commit(t); err != nil {
			return err
		}
	}
	return nil
}
