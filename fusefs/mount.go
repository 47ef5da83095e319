package fusefs

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"

	"agentrun.dev/errs"
)

// Mounted is a filesystem that this host's kernel has mounted.
type Mounted struct {
	raw    *raw
	server *fuse.Server
	dir    string
	serve  sync.WaitGroup
}

// MountOptions say how a filesystem is mounted.
type MountOptions struct {
	Options
	Source     string // what /proc/mounts shows
	AllowOther bool   // other users than this process' may enter; permissions are checked
}

// Mount mounts a filesystem on an empty directory: directly as root, else by fusermount3, which has to be installed.
// errs.Unavailable says what is missing.
func Mount(dir string, o MountOptions) (*Mounted, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, errs.New(errs.Invalid, "mount", dir, err)
	}
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		return nil, errs.New(errs.Unavailable, "mount", dir, err)
	} else {
		f.Close()
	}
	s := New(o.Options)
	mo := mountOptions()
	mo.FsName, mo.Name, mo.AllowOther = o.Source, "agentrun", o.AllowOther
	mo.DirectMountStrict = os.Geteuid() == 0
	mo.Options = []string{"default_permissions"}
	if o.ReadOnly {
		mo.Options = append(mo.Options, "ro")
	}
	server, err := fuse.NewServer(s.raw, dir, &mo)
	if err != nil {
		return nil, errs.New(errs.Unavailable, "mount", dir, err)
	}
	m := &Mounted{raw: s.raw, server: server, dir: dir}
	m.serve.Go(server.Serve)
	if err := server.WaitMount(); err != nil {
		m.serve.Wait()
		return nil, errs.New(errs.Unavailable, "mount", dir, err)
	}
	return m, nil
}

// Unmount takes it away; errs.Conflict is that it is in use.
func (m *Mounted) Unmount() error {
	if err := m.server.Unmount(); err != nil {
		return errs.New(errs.Conflict, "unmount", m.dir, err)
	}
	m.serve.Wait()
	m.raw.reset()
	return nil
}
