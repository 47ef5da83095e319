package userspace

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// Freeze implements engine.Instance.
func (s *Sandbox) Freeze(ctx context.Context, o engine.FreezeOptions) (engine.Frozen, error) {
	f, err := s.sb.Freeze(ctx, proc.FreezeOptions{Kill: o.Kill})
	if err != nil {
		return nil, err
	}
	s.frozen.Store(true)
	return &frozen{s: s, f: f}, nil
}

// frozen implements engine.Frozen.
type frozen struct {
	s    *Sandbox
	f    *proc.Frozen
	once sync.Once
}

func (f *frozen) Thaw() error {
	f.once.Do(func() {
		f.s.frozen.Store(false)
		f.f.Thaw()
	})
	return nil
}

// Capture implements engine.Frozen.
func (f *frozen) Capture(ctx context.Context) (engine.Image, error) {
	s := f.s
	im := &image{base: s.base, hostname: s.sb.Hostname(), own: s.engine}
	var err error
	// The table of mounts stays as it is now, whatever the sandbox mounts later.
	if im.ns, err = s.ns.Clone(func(m vfs.Mount) (vfs.Mount, error) { return m, nil }); err != nil {
		return nil, errs.New(errs.Other, "capture", s.id, err)
	}
	if s.root != nil {
		im.root = s.root.Clone()
	}
	if im.proc, err = f.f.Capture(); err != nil {
		return nil, err
	}
	return im, nil
}

// image implements engine.Image.
type image struct {
	base
	hostname string
	proc     *proc.Image
	ns       *vfs.Namespace // only its table counts
	root     *memfs.FS      // nil if the root is a volume
	own      *Engine        // whose instances start from it; may be nil
}

// Start implements engine.Image.
func (im *image) Start(ctx context.Context, id engine.Identity, volumes []engine.Volume) (engine.Instance, error) {
	s := &Sandbox{id: id.ID, base: im.base, started: time.Now(), commands: map[int]*Process{}}
	s.env = mergeEnv(im.base.env, id.Env)
	if im.root != nil {
		s.root = im.root.Clone()
	}
	own, network := &late{}, &network{outside: id.Services}
	var err error
	if s.ns, err = im.namespace(volumes, s.root, own, false); err != nil {
		return nil, errs.New(errs.Invalid, "start image", id.ID, err)
	}
	host := id.Hostname
	if host == "" {
		host = im.hostname
	}
	s.sb, err = im.proc.Start(proc.StartOptions{
		Namespace: s.ns, Commands: im.commands, Services: network.services(), Load: im.load, Hostname: host,
		Prepare: func(sb *proc.Sandbox) error { own.FS, network.sb = proc.NewProc(sb), sb; return nil },
	})
	if err != nil {
		return nil, err
	}
	if im.own != nil {
		im.own.add(s)
	}
	return s, nil
}

// late is a filesystem that is made after it was mounted, and before anybody looks.
type late struct{ vfs.FS }

// OpenSpecial lets /proc/self/fd/N be opened.
func (l *late) OpenSpecial(ctx context.Context, ino vfs.Ino, flags int, c vfs.Cred) (vfs.File, bool, error) {
	if s, ok := l.FS.(interface {
		OpenSpecial(context.Context, vfs.Ino, int, vfs.Cred) (vfs.File, bool, error)
	}); ok {
		return s.OpenSpecial(ctx, ino, flags, c)
	}
	return nil, false, nil
}

// namespace returns the image's tree with other filesystems in it. With fresh, what no volume is given for is empty.
func (im *image) namespace(volumes []engine.Volume, root *memfs.FS, procFS vfs.FS, fresh bool) (*vfs.Namespace, error) {
	given := make(map[string]engine.Volume, len(volumes))
	for _, v := range volumes {
		given[v.Path] = v
	}
	ns, err := im.ns.Clone(func(m vfs.Mount) (vfs.Mount, error) {
		v, ok := given[m.Path]
		switch {
		case ok:
			delete(given, m.Path)
			return openable(v), nil
		case m.Path == "/" && root != nil:
			m.FS = root
		case m.Type == "proc":
			m.FS = procFS
		case m.Type == "devtmpfs" || m.Type == "agentrun":
		case fresh:
			m.FS = memfs.New(memfs.Options{})
		default:
			return m, fmt.Errorf("no volume is given for %s", m.Path)
		}
		return m, nil
	})
	if err == nil && len(given) > 0 {
		for path := range given {
			err = fmt.Errorf("nothing was mounted at %s", path)
		}
	}
	return ns, err
}

// Close implements engine.Image.
func (im *image) Close() error { return im.proc.Close() }

// A saved image is saveMagic, a header in JSON, the root in memory if there is one, and what proc saves, each with eight bytes
// of length before it, big endian.
const saveMagic = "agentrun userspace 1\n"

// maxSaved bounds a part of a saved image that is read at once.
const maxSaved = 4 << 30

type savedImage struct {
	Hostname string            `json:"hostname"`
	Env      []string          `json:"env"`
	Dir      string            `json:"dir"`
	Cred     vfs.Cred          `json:"cred"`
	Root     bool              `json:"root"` // the root is in memory, and follows
	Mounts   []vfs.MountRecord `json:"mounts"`
}

// Save implements engine.Image.
func (im *image) Save(ctx context.Context, w io.Writer, volumes []engine.Volume) error {
	// Volumes that start anew wherever the image does aren't among those of the cut.
	ns, err := im.namespace(volumes, im.root, &late{}, true)
	if err != nil {
		return errs.New(errs.Invalid, "save image", "", err)
	}
	text, err := json.Marshal(savedImage{Hostname: im.hostname, Env: im.base.env, Dir: im.dir, Cred: im.cred, Root: im.root != nil, Mounts: im.ns.Table()})
	if err != nil {
		return err
	}
	parts := [][]byte{text}
	if im.root != nil {
		var b bytes.Buffer
		if err := im.root.Save(&b); err != nil {
			return err
		}
		parts = append(parts, b.Bytes())
	}
	var b bytes.Buffer
	if err := im.proc.Save(&b, func(o vfs.OpenFile) (vfs.OpenFile, error) { return ns.Lasting(ctx, o) }); err != nil {
		return err
	}
	parts = append(parts, b.Bytes())
	if _, err := io.WriteString(w, saveMagic); err != nil {
		return err
	}
	for _, p := range parts {
		if _, err := w.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p)))); err != nil {
			return err
		}
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// load reads what Save wrote.
func load(r io.Reader, commands proc.Commands, restore func(kind string, data []byte) (proc.State, error)) (*image, error) {
	bad := func(err error) (*image, error) { return nil, errs.New(errs.Corrupt, "load image", "", err) }
	magic := make([]byte, len(saveMagic))
	if _, err := io.ReadFull(r, magic); err != nil {
		return bad(err)
	}
	if string(magic) != saveMagic {
		return bad(errors.New("this isn't a saved userspace image of version 1"))
	}
	text, err := part(r)
	if err != nil {
		return bad(err)
	}
	var h savedImage
	if err := json.Unmarshal(text, &h); err != nil {
		return bad(err)
	}
	im := &image{base: base{commands: commands, env: h.Env, dir: h.Dir, cred: h.Cred}, hostname: h.Hostname}
	if h.Root {
		b, err := part(r)
		if err != nil {
			return bad(err)
		}
		if im.root, err = memfs.Load(bytes.NewReader(b), memfs.Options{}); err != nil {
			return nil, err
		}
	}
	dev, bin := proc.NewDev(), proc.NewBin(commands)
	im.ns, err = vfs.NamespaceOf(h.Mounts, func(m vfs.Mount) vfs.Mount {
		switch m.Type {
		case "devtmpfs":
			m.FS = dev
		case "agentrun":
			m.FS = bin
			for _, with := range mountsOf(commands) {
				if with.Path == m.Path {
					m.FS = with.FS
				}
			}
		}
		return openable(m)
	})
	if err != nil {
		return bad(err)
	}
	b, err := part(r)
	if err != nil {
		return bad(err)
	}
	if im.proc, err = proc.LoadImage(bytes.NewReader(b), restore); err != nil {
		return nil, err
	}
	return im, nil
}

// part reads one length and what it says.
func part(r io.Reader) ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint64(head[:])
	if n > maxSaved {
		return nil, fmt.Errorf("a part of %d bytes", n)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
