// Package buckettest has a store whose machine loses its power, for tests of what says that something is durable.
package buckettest

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"agentrun.dev/blob"
	"agentrun.dev/blob/faulty"
	"agentrun.dev/bucket"
	"agentrun.dev/kv/pebble"
)

// Machine is a computer with a store. Its disks keep what was synced, and nothing else.
type Machine struct {
	Store *bucket.Store

	disk  *vfs.MemFS
	blobs *faulty.Store
}

// NewMachine returns a machine with an empty store. It ends with the test.
func NewMachine(t testing.TB) *Machine {
	t.Helper()
	return boot(t, vfs.NewCrashableMem(), nil)
}

func boot(t testing.TB, disk *vfs.MemFS, blobs blob.Store) *Machine {
	t.Helper()
	f, err := faulty.New(blobs)
	if err != nil {
		t.Fatal(err)
	}
	k, err := pebble.Open("kv", pebble.Options{FS: disk, MemTableBytes: 1 << 20, CacheBytes: 1 << 20, FreeFloor: -1, Ballast: -1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := bucket.Open(context.Background(), bucket.Options{KV: k, Blobs: f})
	if err != nil {
		_ = k.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close() // which fails without power
		_ = k.Close()
	})
	return &Machine{Store: s, disk: disk, blobs: f}
}

// Restart cuts the power, and returns a machine with the same disks as they are then.
func (m *Machine) Restart(t testing.TB) *Machine {
	t.Helper()
	m.blobs.Cut() // first: no record that is written after can rest on payload that is lost
	disk := m.disk.CrashClone(vfs.CrashCloneCfg{})
	left, err := m.blobs.Survivors(faulty.Lost, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return boot(t, disk, left)
}
