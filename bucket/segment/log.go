package segment

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"

	"agentrun.dev/blob"
	"agentrun.dev/errs"
)

// The log of dead slots, version 1, named dead-<number>, hexadecimal. The newest one with a checkpoint counts.
//
//	log    = 16 bytes: magic "ARDEADLG", version u16, zero; then records
//	record = length of the body u32, CRC32C of the body u32, body: a kind byte, then uvarints
//	kind 1 = ids below the number may be in use by segments
//	kind 2 = dead slots: segment, generation, payload bytes of the slots, number of slots, then each slot's number less
//	         the one before it
//	kind 3 = end of the checkpoint: what came before is the state when the log was begun
//
// A record that can't be read ends the log.
const (
	logPrefix  = "dead-"
	logMagic   = "ARDEADLG"
	logHeadLen = 16
	kindIDs    = 1
	kindDead   = 2
	kindReady  = 3

	idChunk   = 1024    // segment ids that are reserved at a time
	maxRecord = 4 << 20 // bytes in a record's body
	logSlack  = 4 << 20 // a log is rewritten when it is so much, and four times, larger than its checkpoint
)

func logName(n uint64) string { return fmt.Sprintf("%s%016x", logPrefix, n) }

func parseLogName(name string) (n uint64, ok bool) {
	rest, _ := strings.CutPrefix(name, logPrefix)
	n, err := strconv.ParseUint(rest, 16, 64)
	return n, err == nil && logName(n) == name
}

// deadRecord is slots of one segment that were freed together.
type deadRecord struct {
	segment uint64
	gen     uint32
	bytes   int64
	slots   []uint32
}

func (r deadRecord) encode() []byte {
	p := []byte{kindDead}
	p = binary.AppendUvarint(p, r.segment)
	p = binary.AppendUvarint(p, uint64(r.gen))
	p = binary.AppendUvarint(p, uint64(r.bytes))
	p = binary.AppendUvarint(p, uint64(len(r.slots)))
	last := uint32(0)
	for _, slot := range r.slots {
		p = binary.AppendUvarint(p, uint64(slot-last))
		last = slot
	}
	return p
}

var errRecord = errors.New("malformed record")

// parseDead reads the body of a record of kind 2, its kind byte cut off.
func parseDead(p []byte) (r deadRecord, err error) {
	next := func(limit uint64) uint64 {
		v, n := binary.Uvarint(p)
		if n <= 0 || v > limit {
			err = errRecord
			return 0
		}
		p = p[n:]
		return v
	}
	r.segment = next(math.MaxUint64)
	r.gen = uint32(next(math.MaxUint32))
	r.bytes = int64(next(math.MaxInt64))
	n := next(maxSlots)
	if err != nil || n > uint64(len(p)) {
		return r, errRecord
	}
	r.slots = make([]uint32, 0, n)
	at := uint64(0)
	for i := range n {
		d := next(maxSlots)
		if at += d; err != nil || at >= maxSlots || i > 0 && d == 0 {
			return r, errRecord
		}
		r.slots = append(r.slots, uint32(at))
	}
	if len(p) > 0 {
		err = errRecord
	}
	return r, err
}

func frame(body []byte) []byte {
	p := make([]byte, 8, 8+len(body))
	le.PutUint32(p, uint32(len(body)))
	le.PutUint32(p[4:], checksum(body))
	return append(p, body...)
}

// replay is what a log says.
type replay struct {
	ids   uint64
	dead  []deadRecord
	ready bool // its checkpoint is whole
}

// readLog reads a log up to its end or to the first record that a crash or damage has spoilt.
func readLog(p []byte) (replay, error) {
	var out replay
	if len(p) < logHeadLen || string(p[:8]) != logMagic {
		return out, nil
	}
	if v := le.Uint16(p[8:]); v != version {
		return out, errs.Msg(errs.Unsupported, "open", "log of dead slots", fmt.Sprintf("format version %d is not known here", v))
	}
	for p = p[logHeadLen:]; len(p) >= 8; {
		n, crc := le.Uint32(p), le.Uint32(p[4:])
		if n == 0 || n > maxRecord || uint64(n) > uint64(len(p)-8) || checksum(p[8:8+n]) != crc {
			break
		}
		body := p[8 : 8+n]
		p = p[8+n:]
		switch body[0] {
		case kindIDs:
			v, k := binary.Uvarint(body[1:])
			if k <= 0 {
				return out, nil
			}
			out.ids = max(out.ids, v)
		case kindDead:
			r, err := parseDead(body[1:])
			if err != nil {
				return out, nil
			}
			out.dead = append(out.dead, r)
		case kindReady:
			out.ready = true
		}
	}
	return out, nil
}

// deadLog is the log that is being written. Errors are kept until a checkpoint has replaced the log.
type deadLog struct {
	mu    sync.Mutex
	n     uint64
	w     blob.Blob
	base  int64 // size after the checkpoint
	dirty bool  // there are records that aren't durable
	err   error
}

// append adds a record; l.mu is held.
func (l *deadLog) append(body []byte) {
	if l.err == nil {
		_, l.err = l.w.Append(frame(body))
		l.dirty = true
	}
}

func (l *deadLog) dead(r deadRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.append(r.encode())
}

func (l *deadLog) sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.syncLocked()
}

func (l *deadLog) syncLocked() error {
	if l.err == nil && l.dirty {
		l.err = l.w.Sync()
		l.dirty = false
	}
	return l.err
}

// reserve makes durable that ids below n may be in use.
func (l *deadLog) reserve(n uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.append(binary.AppendUvarint([]byte{kindIDs}, n))
	return l.syncLocked()
}

// restoreLog writes the log anew if it failed, on a disk that was full, say: what it lacks would count as live when the
// set is opened again, although it has been punched.
func (s *Set) restoreLog(ctx context.Context) error {
	s.log.mu.Lock()
	failed := s.log.err != nil
	s.log.mu.Unlock()
	if !failed {
		return nil
	}
	return s.checkpoint(ctx)
}

func (l *deadLog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.syncLocked()
	if errs.Is(err, errs.NoSpace) {
		err = nil // leaks, no more
	}
	return errors.Join(err, l.w.Close())
}

// idSource gives out segment ids. No id is given twice, not even after a crash that made the segment vanish: the
// owner's list of what is to be freed may name it still. So they are reserved in the log before use.
type idSource struct {
	mu          sync.Mutex
	next, limit uint64
}

func (i *idSource) take(l *deadLog) (uint64, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.next >= i.limit {
		if err := l.reserve(i.next + idChunk); err != nil {
			return 0, err
		}
		i.limit = i.next + idChunk
	}
	i.next++
	return i.next - 1, nil
}

// openLog reads the logs, marks the slots that they say are dead, and begins a new one. next is the first id that no
// segment has.
func (s *Set) openLog(ctx context.Context, names []string, next uint64) error {
	var use replay
	for i := len(names) - 1; i >= 0 && !use.ready; i-- {
		r, err := s.readLogBlob(ctx, names[i])
		if err != nil {
			return err
		}
		if r.ready || i == 0 {
			use = r
		}
	}
	for _, r := range use.dead {
		if err := s.bury(ctx, r); err != nil {
			return err
		}
	}
	s.ids.next = max(next, use.ids)
	number := uint64(1)
	if len(names) > 0 {
		last, _ := parseLogName(names[len(names)-1])
		number = last + 1
	}
	l, err := s.writeLog(ctx, number)
	if errs.Is(err, errs.NoSpace) && use.ready {
		// The disk is full. Reading must go on; the first Free makes room.
		s.log = &deadLog{n: number, w: nopBlob{}, err: err}
		return nil
	}
	if err != nil {
		return err
	}
	s.log = l
	for _, name := range names {
		if err := s.blobs.Remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// nopBlob stands for a log that couldn't be begun.
type nopBlob struct{ blob.Blob }

func (nopBlob) Close() error { return nil }

func (s *Set) readLogBlob(ctx context.Context, name string) (replay, error) {
	b, err := s.blobs.Open(ctx, name)
	if err != nil {
		return replay{}, err
	}
	defer b.Close()
	p, err := io.ReadAll(io.NewSectionReader(b, 0, b.Size()))
	if err != nil {
		return replay{}, err
	}
	return readLog(p)
}

// bury marks the slots of a record dead, at Open. A record of another generation, or of a segment that was scanned,
// may name slots that aren't there any more, and one may stand twice: then the table decides.
func (s *Set) bury(ctx context.Context, r deadRecord) error {
	g := s.segs[r.segment]
	if g == nil || g.state == damaged {
		return nil
	}
	known := r.gen == g.gen && !g.scanned
	for _, slot := range r.slots {
		known = known && int(slot) < g.slots && !g.dead.has(slot)
	}
	var entries []entry
	if !known {
		var err error
		if entries = g.entries; entries == nil {
			if entries, err = s.table(ctx, g, g.head, g.name); err != nil {
				return nil //nolint:nilerr // Verify reports the damage; the slots are leaked
			}
		}
		r.bytes = 0
	}
	for _, slot := range r.slots {
		if !known && (int(slot) >= len(entries) || !entries[slot].present()) || !g.dead.add(slot) {
			continue
		}
		g.fresh = append(g.fresh, slot)
		if !known {
			r.bytes += int64(entries[slot].size)
		}
	}
	g.deadBytes += r.bytes
	return nil
}

// writeLog makes a log with a checkpoint of the present state, durable. Nobody takes ids meanwhile.
func (s *Set) writeLog(ctx context.Context, number uint64) (*deadLog, error) {
	name := logName(number)
	if err := s.blobs.Remove(ctx, name); err != nil {
		return nil, err
	}
	w, err := s.blobs.Create(ctx, name)
	if err != nil {
		return nil, err
	}
	p := make([]byte, logHeadLen, 4096)
	copy(p, logMagic)
	le.PutUint16(p[8:], version)
	s.ids.limit = max(s.ids.limit, s.ids.next+idChunk)
	p = append(p, frame(binary.AppendUvarint([]byte{kindIDs}, s.ids.limit))...)
	for _, g := range s.all() {
		g.mu.RLock()
		if g.dead.n > 0 && g.state != removed {
			r := deadRecord{segment: g.id, gen: g.gen, bytes: g.deadBytes}
			g.dead.each(func(slot uint32) { r.slots = append(r.slots, slot) })
			p = append(p, frame(r.encode())...)
		}
		g.mu.RUnlock()
	}
	p = append(p, frame([]byte{kindReady})...)
	if _, err = w.Append(p); err == nil {
		err = w.Sync()
	}
	if err != nil {
		_ = w.Close()
		_ = s.blobs.Remove(context.WithoutCancel(ctx), name)
		return nil, err
	}
	return &deadLog{n: number, w: w, base: int64(len(p))}, nil
}

// checkpoint replaces the log by a new one. Slots freed meanwhile are in the new one: they wait for l.mu, and are
// marked before they are logged.
func (s *Set) checkpoint(ctx context.Context) error {
	s.ids.mu.Lock() // before the log's, as in take
	defer s.ids.mu.Unlock()
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	next, err := s.writeLog(ctx, l.n+1)
	if err != nil {
		return err
	}
	_ = l.w.Close()
	old := logName(l.n)
	l.n, l.w, l.base, l.dirty, l.err = next.n, next.w, next.base, false, nil
	return s.blobs.Remove(ctx, old)
}

// trimLog replaces the log when most of it is history.
func (s *Set) trimLog(ctx context.Context) error {
	s.log.mu.Lock()
	large := s.log.err == nil && s.log.w.Size() > logSlack+4*s.log.base
	s.log.mu.Unlock()
	if !large {
		return nil
	}
	return s.checkpoint(ctx)
}
