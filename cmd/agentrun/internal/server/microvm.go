package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/cmd/agentrun/internal/parts"
	"agentrun.dev/egress"
	"agentrun.dev/engine"
	"agentrun.dev/engine/microvm"
	"agentrun.dev/errs"
	"agentrun.dev/guest/image"
	"agentrun.dev/node"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/jail"
)

// MicroVM says what microVMs are made of. Without a kernel there are none.
type MicroVM struct {
	Kernel     string   // file: bzImage or vmlinux
	Modules    string   // folder of the kernel's modules
	Store      string   // folder in which roots are kept, unpacked; DATA/microvm when empty
	Images     string   // folder of images that templates may name
	Image      string   // of templates that name none; as image.Store has it
	Registries []string // HOST[:PORT] that images may come from although their addresses aren't public
	Memory     int64    // bytes, of templates that say nothing
	VCPUs      int      // likewise
	FirstUser  int      // the first of the users of VMM processes
	Users      int      // how many there are; 0: they get none of their own
	Slow       bool     // also where KVM emulates what a machine's kernel does
}

// slowPatience is what guests get, instead of the engine's own, where their kernels are emulated.
const slowPatience = 10 * time.Minute

// requests is what a request to a node may take: a guest's answer, and more than that; 0 is what it takes elsewhere.
func (c MicroVM) requests() time.Duration {
	if c.Slow {
		return 2 * slowPatience
	}
	return 0
}

// machines is the engine of microVMs of a server or node, with what it is started from.
type machines struct {
	engine machine
	agent  *parts.Program
	vmm    *parts.Program
}

// openMachines gives a node the engine of microVMs, or the reason why it has none. Only options that can't be meant are an error.
func openMachines(c MicroVM, data string, o *node.Options, log *slog.Logger) (*machines, error) {
	if _, err := egress.Parse(c.Registries); err != nil {
		return nil, err
	}
	m, e, err := c.open(data, log)
	if err != nil {
		why := err.Error()
		if hint := errs.HintOf(err); hint != "" {
			why += " (" + hint + ")"
		}
		if c.Kernel != "" && log != nil {
			log.Warn("microVMs don't work here", "why", why)
		}
		o.Missing = map[string]string{api.MicroVM: why}
		return nil, nil
	}
	o.Engines = map[string]engine.Engine{api.MicroVM: e}
	return m, nil
}

// open makes the engine, and what nodes see of it.
func (c MicroVM) open(data string, log *slog.Logger) (m *machines, e engine.Engine, err error) {
	if c.Kernel == "" {
		return nil, nil, errs.Msg(errs.Unavailable, "microvm", "kernel", "none was given").
			WithHint("start the server with --microvm-kernel FILE and --microvm-modules DIR, such as those of Debian's package linux-image-cloud-amd64")
	}
	var patience time.Duration
	for _, f := range vmm.Examine() { // what is missing, the engine says
		switch {
		case !f.OK || !f.Slow:
		case !c.Slow:
			return nil, nil, errs.Msg(errs.Unavailable, "microvm", f.Name, f.Text).WithHint(f.Hint + "; --microvm-slow takes it as it is")
		default:
			patience = slowPatience
		}
	}
	if c.Store == "" {
		c.Store = filepath.Join(data, "microvm")
	}
	policy, err := egress.Parse(append([]string{"*"}, c.Registries...))
	if err != nil {
		return nil, nil, err
	}
	// Names of images are written by whoever makes templates: they lead to nothing but what is public, or the operator named.
	transport := &http.Transport{DialContext: egress.New(policy, egress.Options{}).Dial, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 30 * time.Second,
		ResponseHeaderTimeout: time.Minute, IdleConnTimeout: time.Minute}
	store, err := image.NewStore(c.Store, image.Options{Transport: transport})
	if err != nil {
		return nil, nil, err
	}
	m = new(machines)
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
			m = nil
		}
	}()
	if m.agent, err = parts.Open(parts.Agent); err != nil {
		return nil, nil, err
	}
	if m.vmm, err = parts.Open(parts.VMM); err != nil {
		return nil, nil, err
	}
	if m.engine, err = c.newEngine(m, store, patience, log); err != nil {
		return nil, nil, err
	}
	return m, named{m.engine, c.Images}, nil
}

// close ends what the node left. m may be nil.
func (m *machines) close() error {
	if m == nil {
		return nil
	}
	var all []error
	if m.engine != nil {
		all = append(all, m.engine.Close())
	}
	for _, p := range []*parts.Program{m.agent, m.vmm} {
		if p != nil {
			all = append(all, p.Close())
		}
	}
	return errors.Join(all...)
}

// machine is what the engine is to a server.
type machine interface {
	engine.Engine
	engine.Lacker
	engine.Patient
	Close() error
}

// named is the engine for specs whose images strangers have named: of this host's files, they reach those in one folder.
type named struct {
	machine
	dir string // empty: none
}

// Boot implements engine.Engine.
func (e named) Boot(ctx context.Context, s engine.Spec) (engine.Instance, error) {
	var err error
	if s.Image, err = localImage(e.dir, s.Image); err != nil {
		return nil, err
	}
	return e.machine.Boot(ctx, s)
}

// localImage finds an image in a folder by the name that it has in registries: NAME:TAG or NAME is a folder (an OCI layout), or with ".tar" what
// docker save or podman save writes. What isn't there is a registry's.
func localImage(dir, ref string) (string, error) {
	for _, scheme := range []string{"oci:", "tar:"} {
		if strings.HasPrefix(ref, scheme) {
			return "", errs.Msg(errs.Denied, "find image", ref, "a template's image is a name in a registry, or in the node's folder of images").
				WithHint("whoever runs the node puts it there: --microvm-images DIR")
		}
	}
	short := strings.TrimPrefix(strings.TrimPrefix(ref, "docker.io/"), "library/")
	if dir == "" || short == "" || !filepath.IsLocal(short) {
		return ref, nil
	}
	name, tag := short, ""
	if i := strings.LastIndexByte(short, '/'); strings.Contains(short[i+1:], ":") {
		at := i + 1 + strings.IndexByte(short[i+1:], ':')
		name, tag = short[:at], short[at:]
	}
	for _, c := range []struct{ file, tag string }{{short, ""}, {short + ".tar", ""}, {name, tag}, {name + ".tar", short[len(name):]}} {
		file := filepath.Join(dir, c.file)
		switch i, err := os.Stat(file); {
		case err != nil:
		case i.IsDir():
			if _, err := os.Stat(filepath.Join(file, "index.json")); err == nil {
				return "oci:" + file + c.tag, nil
			}
		case i.Mode().IsRegular() && strings.HasSuffix(c.file, ".tar"):
			if c.tag != "" {
				c.tag = ":" + name + c.tag // as docker save has it
			}
			return "tar:" + file + c.tag, nil
		}
	}
	return ref, nil
}

// newEngine makes the engine itself.
func (c MicroVM) newEngine(m *machines, store *image.Store, patience time.Duration, log *slog.Logger) (machine, error) {
	o := microvm.Options{Kernel: c.Kernel, Modules: c.Modules, Agent: m.agent.Path(), VMM: []string{m.vmm.Path()}, Images: store,
		Image: c.Image, Memory: uint64(max(0, c.Memory)), VCPUs: c.VCPUs, Patience: patience, Balloon: patience == 0, Log: log}
	if err := c.bound(&o); err != nil {
		return nil, err
	}
	e, err := microvm.New(o)
	if err != nil {
		if o.Users != nil {
			err = errors.Join(err, o.Users.Close())
		}
		return nil, err
	}
	return e, nil
}

// bound gives VMM processes control groups and users of their own, as far as this process may. Without them they are confined less, and
// the log says so.
func (c MicroVM) bound(o *microvm.Options) (err error) {
	warn := func(what string, err error) {
		if o.Log != nil {
			o.Log.Warn("microVMs run without "+what, "why", err, "hint", errs.HintOf(err))
		}
	}
	if o.Groups, err = jail.OwnGroups(); err != nil {
		o.Groups = nil
		warn("limits of the host's memory, threads and processors", err)
	} else if o.Log != nil {
		o.Log.Info("microVMs have control groups", "at", o.Groups.String())
	}
	if c.Users == 0 {
		return nil
	}
	o.Users, err = jail.NewUsers(c.FirstUser, c.Users)
	if errs.Is(err, errs.Invalid) {
		return err
	}
	if err != nil {
		o.Users = nil
		warn("users of their own, each in a user namespace", err)
	}
	return nil
}
