package microvm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/zeebo/blake3"

	"agentrun.dev/egress/uplink"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/fusefs"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
	"agentrun.dev/vmm/jail"
	"agentrun.dev/vmm/snapshot"
)

// A saved image is saveMagic, a header in JSON, what the server of each volume knew in the header's order, each with eight bytes of
// length before it, big endian, and the first 16 of its BLAKE3 hash, and the machine's snapshot. The kernel of the machine is in its RAM: another
// one of the engine's is no hindrance.
const (
	saveFormat  = "agentrun microvm "
	saveVersion = "2\n"
	saveMagic   = saveFormat + saveVersion
)

// partHead is what stands before a part.
const partHead = 8 + 16

func headOf(part []byte) []byte {
	sum := blake3.Sum256(part)
	return append(binary.BigEndian.AppendUint64(nil, uint64(len(part))), sum[:partHead-8]...)
}

// maxPart bounds a part of a saved image that is read at once.
const maxPart = 1 << 30

type savedImage struct {
	Kind     kind          `json:"kind"`
	Image    string        `json:"image"` // by whose name the root is looked for, if its digest isn't known
	Token    string        `json:"token"`
	Hostname string        `json:"hostname"`
	Env      []string      `json:"env"`
	Dir      string        `json:"dir"`
	Limits   engine.Limits `json:"limits"`
	Volumes  []savedVolume `json:"volumes"`
	Names    []uplink.Name `json:"names,omitempty"`
}

type savedVolume struct {
	Slot int    `json:"slot"`
	Path string `json:"path"`
}

// Save implements engine.Image.
func (im *Image) Save(ctx context.Context, w io.Writer, volumes []engine.Volume) error {
	if err := im.use("save image"); err != nil {
		return err
	}
	defer im.unuse()
	h := savedImage{Kind: im.shells.kind, Image: im.shells.root.ref, Token: im.token, Hostname: im.hostname, Env: im.env, Dir: im.dir, Limits: im.limits, Names: im.names}
	parts := [][]byte{nil}
	for i, v := range im.volumes {
		if v.path == "" {
			continue
		}
		h.Volumes = append(h.Volumes, savedVolume{i, v.path})
		state, err := v.state.Lasting(ctx, filesOf(volumes, v.path))
		if err != nil {
			return err
		}
		part, err := state.MarshalBinary()
		if err != nil {
			return err
		}
		parts = append(parts, part)
	}
	var err error
	if parts[0], err = json.Marshal(h); err != nil {
		return errs.New(errs.Other, "save image", "", err)
	}
	s, err := im.machine.Snapshot()
	if err != nil {
		return err
	}
	defer s.Close()
	out := &writer{ctx: ctx, w: w}
	_, _ = io.WriteString(out, saveMagic) // out keeps its error
	for _, p := range parts {
		_, _ = out.Write(headOf(p))
		_, _ = out.Write(p)
	}
	if out.err == nil {
		err = s.Write(out)
	}
	return cmp.Or(out.err, err)
}

// filesOf finds the files of a volume. One that starts anew wherever the image does isn't among those of the cut.
func filesOf(volumes []engine.Volume, path string) vfs.FS {
	if i := slices.IndexFunc(volumes, func(v engine.Volume) bool { return v.Path == path }); i >= 0 {
		return volumes[i].FS
	}
	return memfs.New(memfs.Options{})
}

// writer is w until an error or the end of ctx.
type writer struct {
	ctx context.Context
	w   io.Writer
	err error
}

func (w *writer) Write(b []byte) (int, error) {
	if w.err == nil && w.ctx.Err() != nil {
		w.err = errs.New(errs.Canceled, "save image", "", context.Cause(w.ctx))
	}
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.w.Write(b)
	if err != nil {
		w.err = errs.New(errs.Other, "save image", "", err)
	}
	return n, w.err
}

// Load implements engine.Engine. errs.Corrupt: it isn't what Save wrote; errs.Unsupported: this host can't run it; errs.NotFound: its
// root isn't here, nor where it came from.
func (e *Engine) Load(ctx context.Context, r io.Reader) (engine.Image, error) {
	im, err := e.load(ctx, r)
	if err != nil {
		return nil, err
	}
	return im, nil
}

func (e *Engine) load(ctx context.Context, r io.Reader) (_ *Image, err error) {
	h, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	im := &Image{e: e, token: h.Token, names: h.Names, nature: nature{env: h.Env, dir: h.Dir, hostname: h.Hostname, limits: h.Limits}}
	defer func() {
		if err != nil {
			err = errors.Join(err, im.discard())
		}
	}()
	for _, v := range h.Volumes {
		part, err := readPart(r)
		if err != nil {
			return nil, corrupt(err)
		}
		state := new(fusefs.State)
		if err := state.UnmarshalBinary(part); err != nil {
			return nil, err
		}
		im.volumes[v.Slot] = saved{v.Path, state}
	}
	s, err := snapshot.Read(r)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if m := s.Machine; m.Memory != h.Kind.Memory || m.VCPUs != h.Kind.VCPUs {
		return nil, corrupt(errors.New("its machine isn't of the kind that it says"))
	}
	root, err := e.roots.held(ctx, e.o.Images, h.Kind.Digest, h.Image)
	if err != nil {
		return nil, err
	}
	if im.shells, err = e.shells.hold(e, sort{h.Kind, ratesOf(h.Limits)}, root); err != nil {
		return nil, err
	}
	im.machine, err = jail.NewImage(s)
	return im, err
}

func corrupt(err error) error { return errs.New(errs.Corrupt, "load image", "", err) }

// readHeader reads what stands before the volumes.
func readHeader(r io.Reader) (h savedImage, err error) {
	magic := make([]byte, len(saveMagic))
	if _, err := io.ReadFull(r, magic); err != nil {
		return h, corrupt(err)
	}
	switch {
	case !strings.HasPrefix(string(magic), saveFormat):
		return h, corrupt(errors.New("this isn't a saved microVM"))
	case string(magic) != saveMagic:
		return h, errs.Msg(errs.Unsupported, "load image", "", "it is of another version of AgentRun's")
	}
	text, err := readPart(r)
	if err != nil {
		return h, corrupt(err)
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return h, corrupt(err)
	}
	if err := h.Kind.check("load image", ""); err != nil {
		return h, corrupt(err)
	}
	taken := make(map[any]bool)
	for _, v := range h.Volumes {
		if v.Slot < 0 || v.Slot >= Slots || v.Path == "" || taken[v.Slot] || taken[v.Path] {
			return h, corrupt(errors.New("its volumes aren't those of a machine"))
		}
		taken[v.Slot], taken[v.Path] = true, true
	}
	return h, nil
}

// readPart reads one length and what it says, as far as it comes.
func readPart(r io.Reader) ([]byte, error) {
	var head [partHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint64(head[:8])
	if n > maxPart {
		return nil, fmt.Errorf("a part of %d bytes", n)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return nil, err
	}
	if !bytes.Equal(headOf(b.Bytes()), head[:]) {
		return nil, errors.New("a part isn't what its checksum says")
	}
	return b.Bytes(), nil
}
