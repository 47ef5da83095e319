// Package machine is a VM from the inside: what its first process does to make a machine of it, and what the agent may do to it afterwards.
//
// The kernel starts with an archive (package initramfs) that holds the agent as /init, modules in /modules, loaded in the order of their names, and
// the Config. The root filesystem is an overlay: images below, which all machines share and none changes, and a layer of the machine's own on top.
package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
)

// ConfigFile is where the Config lies in the archive.
const ConfigFile = "/agentrun.json"

// Workload is the control group of what commands start.
const Workload = "/sys/fs/cgroup/workload"

// Config is what a machine starts with. What is different in each fork comes later, in wire.Renew.
type Config struct {
	// Lower are the images of the root, the topmost first; without any the archive itself is the root.
	Lower []wire.Mount `json:"lower,omitempty"` // their Path doesn't count
	// Upper holds what changes; in memory when nil.
	Upper    *wire.Mount      `json:"upper,omitempty"`
	Mounts   []wire.Mount     `json:"mounts,omitempty"` // volumes
	Hostname wire.Text        `json:"hostname,omitempty"`
	Links    []wire.Interface `json:"links,omitempty"`
	DNS      []wire.Text      `json:"dns,omitempty"`
	User     string           `json:"user,omitempty"` // of commands
	Dir      string           `json:"dir,omitempty"`
	Env      []string         `json:"env,omitempty"`
	// Device is the character device over which the agent serves, instead of vsock.
	Device string `json:"device,omitempty"`
	Port   uint32 `json:"port,omitempty"` // of vsock; 1024 when zero
}

// Boot makes a machine of what the kernel has started. It returns the first error; what was done until then stays.
func Boot(log func(string, ...any)) (*Config, error) {
	if err := system("/"); err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(ConfigFile)
	if err != nil {
		return nil, errs.New(errs.NotFound, "boot", ConfigFile, err)
	}
	var c Config
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, errs.New(errs.Invalid, "boot", ConfigFile, err)
	}
	if err := loadModules("/modules"); err != nil {
		return nil, err
	}
	reportSmall()
	if len(c.Lower) > 0 {
		if err := root(&c); err != nil {
			return nil, err
		}
	} else if err := program("/"); err != nil {
		return nil, err
	}
	if err := tools(); err != nil {
		return nil, err
	}
	m := Machine{}
	for _, v := range c.Mounts {
		if err := m.Mount(v); err != nil {
			return nil, err
		}
	}
	if err := names(c.Hostname, "", c.DNS); err != nil {
		return nil, err
	}
	if err := link(wire.Interface{Name: "lo", Address: "127.0.0.1/8"}); err != nil {
		log("loopback: %v", err) // a machine without a network is one, too
	}
	for _, l := range c.Links {
		if err := link(l); err != nil {
			return nil, err
		}
	}
	return &c, nil
}

// filesystems are those of the kernel's that a system needs, in order.
var filesystems = []struct {
	kind, path string
	flags      uintptr
	options    string
}{
	{"proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
	{"sysfs", "sys", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
	{"devtmpfs", "dev", unix.MS_NOSUID, "mode=0755"},
	{"devpts", "dev/pts", unix.MS_NOSUID | unix.MS_NOEXEC, "gid=5,mode=0620,ptmxmode=0666"},
	{"tmpfs", "dev/shm", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
	{"tmpfs", "run", unix.MS_NOSUID | unix.MS_NODEV, "mode=0755"},
	{"cgroup2", "sys/fs/cgroup", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
}

// system mounts the kernel's filesystems, and makes the links of /dev that programs expect.
func system(at string) error {
	for _, f := range filesystems {
		path := filepath.Join(at, f.path)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return errs.New(errs.Other, "mount", path, err)
		}
		if err := unix.Mount(f.kind, path, f.kind, f.flags, f.options); err != nil && !errors.Is(err, unix.EBUSY) {
			return errs.New(errs.Other, "mount", path, err)
		}
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"} {
		path := filepath.Join(at, "dev", name)
		_ = os.Remove(path) // the kernel's own ptmx
		if err := os.Symlink(target, path); err != nil {
			return errs.New(errs.Other, "link", path, err)
		}
	}
	return nil
}

// loadModules loads all modules of a folder, in order of name.
func loadModules(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.ko"))
	if err != nil {
		return errs.New(errs.Other, "modules", dir, err)
	}
	slices.Sort(files)
	for _, file := range files {
		f, err := os.Open(file)
		if err == nil {
			if err = unix.FinitModule(int(f.Fd()), "", 0); errors.Is(err, unix.EEXIST) {
				err = nil
			}
			f.Close()
		}
		if err != nil {
			return errs.New(errs.Other, "module", filepath.Base(file), err)
		}
	}
	return os.RemoveAll(dir) // they take memory that every fork would have
}

// reportSmall has the kernel report free memory to the host (virtio's balloon) in pieces from 256 KiB on. By itself it takes 2 MiB, and reports
// nothing while there are fewer than 32 pieces: a small machine never would. A kernel that reports none hasn't the file.
func reportSmall() {
	if f, err := os.OpenFile("/sys/module/page_reporting/parameters/page_reporting_order", os.O_WRONLY, 0); err == nil {
		_, _ = f.WriteString("6")
		f.Close()
	}
}

// deviceTimeout is how long a disk may take to appear after its driver was loaded.
const deviceTimeout = 10 * time.Second

// root puts the root together and moves into it.
func root(c *Config) error {
	const base = "/run/root"
	var lower []string
	for i, l := range c.Lower {
		l.Path, l.Read = wire.Text(fmt.Sprintf("%s/lower%d", base, i)), true
		if err := mount(l); err != nil {
			return err
		}
		lower = append(lower, string(l.Path))
	}
	upper := wire.Mount{Type: "tmpfs", Source: "upper", Options: "mode=0755"}
	if c.Upper != nil {
		upper = *c.Upper
	}
	upper.Path = base + "/upper"
	if err := mount(upper); err != nil {
		return err
	}
	for _, dir := range []string{"/upper/data", "/upper/work", "/all"} {
		if err := os.MkdirAll(base+dir, 0o755); err != nil {
			return errs.New(errs.Other, "root", dir, err)
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s/upper/data,workdir=%s/upper/work", strings.Join(lower, ":"), base, base)
	if err := mount(wire.Mount{Type: "overlay", Source: "root", Path: base + "/all", Options: wire.Text(options)}); err != nil {
		return err
	}
	if err := errors.Join(inMemory(base+"/all/run", "mode=0755"), program(base+"/all")); err != nil {
		return err
	}
	// What the archive held takes memory: it is removed, then the overlay takes its place. /run moves along, as the layers lie in it.
	entries, err := os.ReadDir("/")
	if err != nil {
		return errs.New(errs.Other, "root", "/", err)
	}
	for _, top := range []string{"proc", "sys", "dev"} {
		to := filepath.Join(base, "all", top)
		if err := os.MkdirAll(to, 0o755); err != nil {
			return errs.New(errs.Other, "root", to, err)
		}
		if err := unix.Mount("/"+top, to, "", unix.MS_MOVE, ""); err != nil {
			return errs.New(errs.Other, "root", to, err)
		}
	}
	for _, e := range entries {
		if name := e.Name(); !slices.Contains([]string{"proc", "sys", "dev", "run"}, name) {
			_ = os.RemoveAll("/" + name)
		}
	}
	if err := os.Chdir(base + "/all"); err != nil {
		return errs.New(errs.Other, "root", base, err)
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return errs.New(errs.Other, "root", "/", err)
	}
	if err := errors.Join(unix.Chroot("."), os.Chdir("/")); err != nil {
		return errs.New(errs.Other, "root", "/", err)
	}
	// /run and /tmp of the new root are in memory; the old /run is out of sight now, but alive.
	return inMemory("/tmp", "mode=1777")
}

// inMemory mounts a filesystem in memory.
func inMemory(path, options string) error {
	return mount(wire.Mount{Type: "tmpfs", Source: "tmpfs", Path: wire.Text(path), Options: wire.Text(options)})
}

// mount mounts one filesystem; a disk may still have to appear.
func mount(m wire.Mount) error {
	if !filepath.IsAbs(string(m.Path)) || m.Type == "" {
		return errs.Msg(errs.Invalid, "mount", string(m.Path), "a type and an absolute path are needed")
	}
	if err := os.MkdirAll(string(m.Path), 0o755); err != nil {
		return errs.New(errs.Other, "mount", string(m.Path), err)
	}
	if strings.HasPrefix(string(m.Source), "/dev/") {
		for end := time.Now().Add(deviceTimeout); ; time.Sleep(time.Millisecond) {
			if _, err := os.Stat(string(m.Source)); err == nil {
				break
			} else if time.Now().After(end) {
				return errs.New(errs.NotFound, "mount", string(m.Source), err)
			}
		}
	}
	var flags uintptr
	if m.Read {
		flags = unix.MS_RDONLY
	}
	if err := unix.Mount(string(m.Source), string(m.Path), string(m.Type), flags, string(m.Options)); err != nil {
		return errs.New(errs.Other, "mount", string(m.Path), fmt.Errorf("%s %s: %w", m.Type, m.Source, err))
	}
	return nil
}
