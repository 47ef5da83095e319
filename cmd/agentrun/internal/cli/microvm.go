package cli

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"agentrun.dev/cmd/agentrun/internal/server"
	"agentrun.dev/engine/microvm"
	"agentrun.dev/manifest"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/jail"
)

// microVMs are the flags of what microVMs are made of.
type microVMs struct {
	c      *server.MicroVM
	memory string
	users  string
}

func microVMFlags(f *pflag.FlagSet, c *server.MicroVM) *microVMs {
	m := &microVMs{c: c}
	f.StringVar(&c.Kernel, "microvm-kernel", "", "`FILE` of the kernel of microVMs, bzImage or vmlinux (default: there are none)")
	f.StringVar(&c.Modules, "microvm-modules", "", "`DIR` of its modules (default: it has built in what it needs)")
	f.StringVar(&c.Images, "microvm-images", "",
		"`DIR` of images that templates name: an OCI layout NAME, or NAME.tar as docker save or podman save writes it; others are a registry's")
	f.StringVar(&c.Image, "microvm-image", "", "`IMAGE` of templates that name none: NAME[:TAG] of a registry, oci:DIR[:TAG] or tar:FILE")
	f.StringArrayVar(&c.Registries, "microvm-registry", nil, "a `HOST[:PORT]` that images may come from although its address isn't public (repeatable)")
	f.StringVar(&c.Store, "microvm-store", "", "`DIR` in which images are kept, unpacked (default DATA/microvm)")
	f.StringVar(&m.memory, "microvm-memory", "512Mi", "`SIZE` of the memory of templates that say nothing")
	f.IntVar(&c.VCPUs, "microvm-vcpus", 1, "`N` processors of templates that say nothing")
	f.StringVar(&m.users, "microvm-uids", fmt.Sprintf("%d-%d", jail.FirstUser, jail.FirstUser+jail.ManyUsers-1),
		"`FIRST-LAST` users and groups of which each VMM process gets one of its own, if agentrun is root's; none: it gets none")
	f.BoolVar(&c.Slow, "microvm-slow", false, "have them also where KVM emulates what their kernels do, with limits of time to match")
	return m
}

// uids reads a range of users.
func uids(s string) (first, count int, err error) {
	if s == "none" {
		return 0, 0, nil
	}
	a, b, _ := strings.Cut(s, "-")
	first, err = strconv.Atoi(a)
	last, err2 := strconv.Atoi(b)
	if err != nil || err2 != nil || first < 1 || last < first || last > 1<<31-1 {
		return 0, 0, usage("--microvm-uids "+s, "want FIRST-LAST, numbers from 1 to 2147483647, or none")
	}
	return first, last - first + 1, nil
}

// complete checks what was given.
func (m *microVMs) complete() (err error) {
	if m.c.Memory, err = manifest.Bytes(m.memory); err != nil {
		return usage("--microvm-memory "+m.memory, "want a size, such as 512Mi or 2Gi")
	}
	if m.c.Memory < microvm.MinMemory || m.c.Memory > microvm.MaxMemory {
		return usage("--microvm-memory "+m.memory, "want 64Mi to 64Gi")
	}
	if m.c.VCPUs < 1 || m.c.VCPUs > vmm.MaxVCPUs {
		return usage(fmt.Sprintf("--microvm-vcpus %d", m.c.VCPUs), fmt.Sprintf("want 1 to %d", vmm.MaxVCPUs))
	}
	if m.c.FirstUser, m.c.Users, err = uids(m.users); err != nil {
		return err
	}
	for _, path := range []*string{&m.c.Kernel, &m.c.Modules, &m.c.Images, &m.c.Store} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return usage(*path, err.Error())
		}
	}
	return nil
}
