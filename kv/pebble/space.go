package pebble

import (
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"agentrun.dev/errs"
)

const (
	ballastName = "BALLAST" // in the store's directory; Pebble ignores names that aren't its own
	checkBytes  = 1 << 20   // commits of so many bytes, or
	checkEvery  = 50 * time.Millisecond
)

// space keeps Pebble from ever meeting a full disk, because it can't go on after one. Commits are refused while less
// than floor is free. What other writers of the same disk take in spite of that is covered by the ballast: a file of
// allocated blocks that is given up at the first ENOSPC, so that the write which met it can be repeated with success.
type space struct {
	fs      vfs.FS // without OnDiskFull, else giving up the ballast would wait for itself
	dir     string
	floor   int64 // bytes
	ballast int64 // bytes

	mu      sync.Mutex
	held    bool // the ballast exists
	full    bool
	free    int64
	since   int64 // bytes committed since the last look
	checked time.Time
}

// newSpace measures the disk and lays the ballast if there is room for it.
func newSpace(fs vfs.FS, dir string, floor, ballast int64) *space {
	s := &space{fs: fs, dir: dir, floor: floor, ballast: ballast}
	if u, err := fs.GetDiskUsage(dir); err == nil && u.TotalBytes > 0 {
		onePercent := int64(u.TotalBytes / 100)
		if s.floor == 0 {
			s.floor = min(defaultFloor, onePercent)
		}
		if s.ballast == 0 {
			s.ballast = min(defaultBallast, onePercent)
		}
	}
	s.floor, s.ballast = max(s.floor, 0), max(s.ballast, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := fs.Stat(fs.PathJoin(dir, ballastName)); err == nil {
		s.held = s.lay() == nil // allocated already: this costs nothing, even on a full disk
	}
	s.look()
	return s
}

// admit refuses a commit of n bytes with errs.NoSpace when the disk is too full for it.
func (s *space) admit(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since += int64(n)
	if s.full || s.since >= checkBytes || time.Since(s.checked) >= checkEvery {
		s.look()
	}
	if !s.full {
		return nil
	}
	return errs.Msg(errs.NoSpace, "commit", s.dir, fmt.Sprintf("%d bytes are free, %d must stay free", s.free, s.floor)).
		WithHint("free space on the disk; writing goes on by itself then")
}

// look measures the disk; s.mu is held. An unmeasurable disk counts as one with room.
func (s *space) look() {
	s.checked, s.since = time.Now(), 0
	u, err := s.fs.GetDiskUsage(s.dir)
	if err != nil {
		s.full, s.held = false, true
		return
	}
	s.free = int64(u.AvailBytes)
	// The ballast is laid again only when commits would go on afterwards, with a little to spare against flapping.
	if !s.held && s.free >= s.floor+s.ballast+s.ballast/4 {
		if err := s.lay(); err == nil {
			s.held = true
			s.free -= s.ballast
		}
	}
	s.full = !s.held || s.free < s.floor
}

// lay allocates the ballast; s.mu is held.
func (s *space) lay() error {
	if s.ballast <= 0 {
		return nil
	}
	f, err := s.fs.OpenReadWrite(s.fs.PathJoin(s.dir, ballastName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if err = f.Preallocate(0, s.ballast); err != nil {
		_ = f.Close()
		_ = s.fs.Remove(s.fs.PathJoin(s.dir, ballastName))
		return err
	}
	return f.Close()
}

// exhausted gives up the ballast. It runs when a write of Pebble met ENOSPC, before that write is repeated.
func (s *space) exhausted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.fs.Remove(s.fs.PathJoin(s.dir, ballastName))
	s.held, s.full = false, true
}

// isFull reports what the last look saw.
func (s *space) isFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.full
}
