package memfs_test

import (
	"testing"

	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
	"agentrun.dev/vfs/vfstest"
)

var config = vfstest.Config{New: func(testing.TB) vfs.FS { return memfs.New(memfs.Options{}) }}

func TestConformance(t *testing.T) { vfstest.Run(t, config) }
