package pebble

import (
	"testing"

	"agentrun.dev/kv"
	"agentrun.dev/kv/kvtest"
)

func openDir(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	dirs := map[kv.Store]string{}
	open := func(t *testing.T) kv.Store {
		dir := t.TempDir()
		s := openDir(t, dir)
		dirs[s] = dir
		return s
	}
	kvtest.Run(t, open, func(t *testing.T, s kv.Store) kv.Store {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		next := openDir(t, dirs[s])
		dirs[next] = dirs[s]
		return next
	})
}
