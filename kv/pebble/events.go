package pebble

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// logger keeps Pebble quiet and alive: Fatalf, which Pebble expects not to return, poisons the store instead.
type logger struct{ s *Store }

func (l logger) Infof(string, ...any)  {}
func (l logger) Errorf(string, ...any) {}

func (l logger) Fatalf(format string, args ...any) { l.s.poison(fmt.Errorf(format, args...)) }

// emptyTable is how Pebble reports a flush that succeeded and had nothing to write. It doesn't export the error.
const emptyTable = "pebble: empty table"

// listener watches flushes. Pebble repeats one that fails without end, and blocks commits for ever once its memtables
// are full; so commits are refused, with the cause, from the first failure until a flush succeeds.
func (s *Store) listener() *pebble.EventListener {
	return &pebble.EventListener{
		FlushEnd: func(i pebble.FlushInfo) {
			if i.Err == nil || i.Err.Error() == emptyTable {
				s.flushErr.Store(nil)
			} else if !vfs.IsNoSpaceError(i.Err) { // space deals with a full disk
				err := i.Err
				s.flushErr.Store(&err)
			}
		},
		BackgroundError:   func(error) {},
		DataCorruption:    func(pebble.DataCorruptionInfo) {},
		PossibleAPIMisuse: func(pebble.PossibleAPIMisuseInfo) {},
		DiskSlow:          func(pebble.DiskSlowInfo) {},
		WriteStallBegin:   func(pebble.WriteStallBeginInfo) {},
		WriteStallEnd:     func() {},
		CompactionBegin:   func(pebble.CompactionInfo) {},
		CompactionEnd:     func(pebble.CompactionInfo) {},
	}
}

// Metrics is a store's state at one moment, in bytes unless it says otherwise.
type Metrics struct {
	Disk        int64 // files of the store, ballast excluded
	WAL         int64 // of which the write-ahead log
	Cache       int64 // block cache in use
	MemTables   int64
	Free        int64 // of the disk, at the last look
	Files       int64 // tables
	ReadAmp     int   // tables that a read may have to look into
	Flushes     int64 // since Open
	Compactions int64 // since Open
	CacheHits   int64 // since Open
	CacheMisses int64 // since Open
	Full        bool  // commits are refused for want of space
}

// Metrics returns the store's state; zero after it failed or was closed.
func (s *Store) Metrics() Metrics {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed || s.cause.Load() != nil {
		return Metrics{}
	}
	m := s.db.Metrics()
	total := m.Total()
	out := Metrics{
		Disk: int64(m.DiskSpaceUsage()), WAL: int64(m.WAL.Size), Cache: m.BlockCache.Size, MemTables: int64(m.MemTable.Size),
		Files: total.TablesCount, ReadAmp: m.ReadAmp(), Flushes: m.Flush.Count, Compactions: m.Compact.Count,
		CacheHits: m.BlockCache.Hits, CacheMisses: m.BlockCache.Misses, Full: s.space.isFull(),
	}
	s.space.mu.Lock()
	out.Free = s.space.free
	s.space.mu.Unlock()
	return out
}
