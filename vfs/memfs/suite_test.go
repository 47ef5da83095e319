package memfs_test

import (
	"testing"

	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
	"agentrun.dev/vfs/vfstest"
)

var config = vfstest.Config{New: func(testing.TB) vfs.FS { return memfs.New(memfs.Options{}) }}

func TestDifferential(t *testing.T) { vfstest.Differential(t, config) }
