package volume

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"agentrun.dev/errs"
	"agentrun.dev/vfs/memfs"
)

// A saved cut is saveMagic, a header (four bytes of length, big endian, and JSON), and for each volume in memory, in order,
// what memfs saves, in pieces: four bytes of length before each, zero at the end. Buckets stay in the store, under the names
// in the header.
const saveMagic = "agentrun volumes 1\n"

// maxHeader and maxPiece bound what Load reads at once.
const (
	maxHeader = 1 << 20
	maxPiece  = 1 << 20
)

type header struct {
	Owner   string        `json:"owner"`
	Volumes []savedVolume `json:"volumes"`
}

type savedVolume struct {
	Spec
	Kind   string `json:"kind"`             // "memory", "bucket", "shared", "fresh"
	Stored string `json:"stored,omitempty"` // the bucket that holds the cut, or that is shared
}

// Save writes the cut so that Load, perhaps in another process over the same store, has it again. Volumes in memory that are
// shared with others can't be saved.
func (c *Cut) Save(w io.Writer) error {
	h := header{Owner: c.o.Owner}
	for _, m := range c.list {
		v := savedVolume{Spec: m.Spec}
		switch {
		case m.b == nil:
			v.Kind = "fresh"
		case m.b.bucket != nil:
			v.Kind, v.Stored = "bucket", m.b.bucket.Name()
			if m.Policy == Share {
				v.Kind = "shared"
			}
		case m.Policy == Share && m.Host != "":
			v.Kind = "shared"
		case m.Policy == Share:
			return errs.Msg(errs.Unsupported, "save volume", m.Name, "a shared volume in memory can't be hibernated; put it into a bucket")
		default:
			v.Kind = "memory"
		}
		h.Volumes = append(h.Volumes, v)
	}
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	out := append([]byte(saveMagic), binary.BigEndian.AppendUint32(nil, uint32(len(text)))...)
	if _, err := w.Write(append(out, text...)); err != nil {
		return err
	}
	for i, m := range c.list {
		if h.Volumes[i].Kind != "memory" {
			continue
		}
		p := pieces{w}
		if err := m.b.fs.(*memfs.FS).Save(p); err != nil {
			return err
		}
		if err := p.end(); err != nil {
			return err
		}
	}
	c.saved = true
	return nil
}

// Load reads what Save wrote. The cut keeps its buckets when closed; Discard deletes them.
func Load(ctx context.Context, o Options, r io.Reader) (*Cut, error) {
	h, err := readHeader(r)
	if err != nil {
		return nil, errs.New(errs.Corrupt, "load volumes", "", err)
	}
	o.Owner = h.Owner
	c := &Cut{o: o, saved: true}
	for _, v := range h.Volumes {
		b, err := o.load(ctx, v, r)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("load volume %s: %w", v.Name, err), c.Close(ctx))
		}
		c.list = append(c.list, &mounted{v.Spec, b})
	}
	return c, nil
}

func readHeader(r io.Reader) (h header, err error) {
	head := make([]byte, len(saveMagic)+4)
	if _, err := io.ReadFull(r, head); err != nil {
		return h, err
	}
	n := binary.BigEndian.Uint32(head[len(saveMagic):])
	if string(head[:len(saveMagic)]) != saveMagic || n > maxHeader {
		return h, errors.New("these aren't saved volumes of version 1")
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return h, err
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return h, err
	}
	for i := range h.Volumes {
		if h.Volumes[i].Spec, err = h.Volumes[i].normal(); err != nil {
			return h, err
		}
	}
	if len(h.Volumes) > MaxVolumes {
		return h, errors.New("too many volumes")
	}
	return h, nil
}

func (o Options) load(ctx context.Context, v savedVolume, r io.Reader) (*backing, error) {
	switch v.Kind {
	case "fresh":
		return nil, nil
	case "bucket":
		return o.bucket(ctx, v.Spec, v.Stored, true)
	case "shared":
		if v.Host != "" {
			return o.open(ctx, v.Spec)
		}
		return o.bucket(ctx, v.Spec, v.Stored, false)
	case "memory":
		p := &pieceReader{r: r}
		m := memfs.Options{Bytes: v.Size, UID: o.UID, GID: o.GID}
		fs, err := memfs.Load(p, m)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(io.Discard, p); err != nil {
			return nil, err
		}
		return &backing{fs: fs, refs: 1}, nil
	}
	return nil, errs.Msg(errs.Corrupt, "load volume", v.Name, fmt.Sprintf("what is %q?", v.Kind))
}

// pieces writes a stream of unknown length into another one.
type pieces struct{ w io.Writer }

func (p pieces) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		k := min(len(b), maxPiece)
		if _, err := p.w.Write(binary.BigEndian.AppendUint32(nil, uint32(k))); err != nil {
			return n, err
		}
		if _, err := p.w.Write(b[:k]); err != nil {
			return n, err
		}
		n, b = n+k, b[k:]
	}
	return n, nil
}

func (p pieces) end() error {
	_, err := p.w.Write(make([]byte, 4))
	return err
}

// pieceReader reads what pieces wrote, to its end and no further.
type pieceReader struct {
	r    io.Reader
	left int
	done bool
}

func (p *pieceReader) Read(b []byte) (int, error) {
	if p.done || len(b) == 0 {
		return 0, io.EOF
	}
	if p.left == 0 {
		var head [4]byte
		if _, err := io.ReadFull(p.r, head[:]); err != nil {
			return 0, io.ErrUnexpectedEOF
		}
		n := binary.BigEndian.Uint32(head[:])
		if n == 0 {
			p.done = true
			return 0, io.EOF
		}
		if n > maxPiece {
			return 0, errors.New("a piece is too long")
		}
		p.left = int(n)
	}
	n, err := p.r.Read(b[:min(len(b), p.left)])
	p.left -= n
	if err == io.EOF && (p.left > 0 || n == 0) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
