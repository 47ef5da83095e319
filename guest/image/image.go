// Package image makes roots of VMs out of OCI images: from a registry, a layout's folder or a tarball.
//
// An image is flattened, as its layers lie over one another, and written once as a filesystem (package erofs) that all machines share. What is
// read is checked against the image's own digests; device files and extended attributes stay out.
package image

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"agentrun.dev/errs"
	"agentrun.dev/guest/erofs"
)

// DefaultMax bounds an image's size, unpacked.
const DefaultMax = 16 << 30

// Options say where images come from. The zero value works.
type Options struct {
	Keychain  authn.Keychain    // credentials for registries; none when nil
	Transport http.RoundTripper // to registries; the library's when nil
	Max       int64             // bytes of an image, unpacked; DefaultMax when 0
}

// Config is what an image says about the programs in it.
type Config struct {
	Digest     string   `json:"digest"` // of the manifest
	Env        []string `json:"env,omitempty"`
	Dir        string   `json:"dir,omitempty"`
	User       string   `json:"user,omitempty"`
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
}

// Store keeps the filesystems of images in a folder, by their digests.
type Store struct {
	dir string
	o   Options
	mu  sync.Mutex
	now map[string]*sync.Mutex // by digest: one at a time is written
}

// NewStore opens the store of a folder, which is made if need be.
func NewStore(dir string, o Options) (*Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, errs.New(errs.Other, "image", dir, err)
	}
	sweep(dir)
	if o.Max <= 0 {
		o.Max = DefaultMax
	}
	if o.Keychain == nil {
		o.Keychain = authn.NewMultiKeychain()
	}
	return &Store{dir: dir, o: o, now: make(map[string]*sync.Mutex)}, nil
}

// sweep removes what was being written long ago by a process that was killed.
func sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, ".new-*"))
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(path)
		}
	}
}

// Root returns the filesystem of an image, which it pulls and writes unless it has it. ref is "oci:FOLDER[:TAG]" for a layout, "tar:FILE[:TAG]" for
// what docker save or podman save writes, anything else a name in a registry. errs.NotFound: there is none; errs.Corrupt: it isn't what its digests say.
func (s *Store) Root(ctx context.Context, ref string) (file string, c Config, err error) {
	img, done, err := s.open(ctx, ref)
	if err != nil {
		return "", c, err
	}
	defer done()
	digest, err := img.Digest()
	if err != nil {
		return "", c, wrap(ref, err)
	}
	lock := s.lock(digest.Hex)
	lock.Lock()
	defer lock.Unlock()
	file = filepath.Join(s.dir, digest.Hex+".erofs")
	if raw, err := os.ReadFile(file + ".json"); err == nil { // written last
		return file, c, json.Unmarshal(raw, &c)
	}
	cf, err := img.ConfigFile()
	if err != nil {
		return "", c, wrap(ref, err)
	}
	c = Config{Digest: digest.String(), Env: cf.Config.Env, Dir: cf.Config.WorkingDir, User: cf.Config.User, Entrypoint: cf.Config.Entrypoint, Cmd: cf.Config.Cmd}
	if err := s.write(ctx, file, ref, img, c); err != nil {
		return "", c, err
	}
	return file, c, nil
}

// Held returns the filesystem of an image that is in the store already, by the image's digest; errs.NotFound: it isn't.
func (s *Store) Held(digest string) (file string, c Config, err error) {
	h, err := v1.NewHash(digest)
	if err != nil {
		return "", c, errs.New(errs.Invalid, "image", digest, err)
	}
	file = filepath.Join(s.dir, h.Hex+".erofs")
	raw, err := os.ReadFile(file + ".json")
	if err != nil {
		return "", c, errs.New(errs.NotFound, "image", digest, err)
	}
	return file, c, json.Unmarshal(raw, &c)
}

func (s *Store) lock(digest string) *sync.Mutex {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now[digest] == nil {
		s.now[digest] = &sync.Mutex{}
	}
	return s.now[digest]
}

// write writes an image's filesystem and what belongs to it. Each file appears under its name when it is whole.
func (s *Store) write(ctx context.Context, file, ref string, img v1.Image, c Config) error {
	f, err := os.CreateTemp(s.dir, ".new-*")
	if err != nil {
		return errs.New(errs.Other, "image", ref, err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	size, err := Flatten(ctx, img, f, s.o.Max)
	if err != nil {
		return wrap(ref, err)
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return errs.New(errs.Other, "image", ref, err)
	}
	if err := errors.Join(f.Truncate(size), f.Chmod(0o444), f.Sync(), os.Rename(f.Name(), file), os.WriteFile(file+".json.new", raw, 0o444),
		os.Rename(file+".json.new", file+".json")); err != nil {
		return errs.New(errs.Other, "image", ref, err)
	}
	return nil
}

// open finds an image by its name; done is called when it was read.
func (s *Store) open(ctx context.Context, ref string) (img v1.Image, done func(), err error) {
	done = func() {}
	switch kind, rest, _ := strings.Cut(ref, ":"); kind {
	case "oci":
		img, err = fromLayout(split(rest))
		return img, done, err
	case "tar":
		return s.fromTar(ref, rest)
	}
	r, err := name.ParseReference(ref)
	if err != nil {
		return nil, nil, errs.New(errs.Invalid, "image", ref, err)
	}
	opts := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(s.o.Keychain), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "amd64"})}
	if s.o.Transport != nil {
		opts = append(opts, remote.WithTransport(s.o.Transport))
	}
	img, err = remote.Image(r, opts...)
	if err != nil {
		return nil, nil, wrap(ref, err)
	}
	return img, done, nil
}

// split takes a tag, which may be an image's whole name, from the end of a path that doesn't exist with it.
func split(rest string) (path, tag string) {
	for end := len(rest); end > 0; end = strings.LastIndexByte(rest[:end], ':') {
		if _, err := os.Stat(rest[:end]); err == nil {
			return rest[:end], strings.TrimPrefix(rest[end:], ":")
		}
	}
	path, tag, _ = strings.Cut(rest, ":") // there is neither
	return path, tag
}

// refName is the annotation by which a layout names its images.
const refName = "org.opencontainers.image.ref.name"

// fromLayout finds the image of a tag, or the only one for this machine.
func fromLayout(path, tag string) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(path)
	if err != nil {
		return nil, wrap(path, err)
	}
	return choose(index, path, tag, 0)
}

// tagged reports whether an image of a layout is the one of a tag. Tools write the tag, or the image's whole name: under refName or as containerd
// (and so docker save) does.
func tagged(a map[string]string, tag string) bool {
	if tag == "" || a[refName] == tag {
		return true
	}
	for _, key := range []string{refName, "io.containerd.image.name"} {
		if t, err := name.NewTag(a[key]); err == nil && strings.HasSuffix(a[key], ":"+tag) && t.TagStr() == tag {
			return true
		}
	}
	return false
}

// choose finds an image in an index, which may hold others.
func choose(index v1.ImageIndex, path, tag string, depth int) (v1.Image, error) {
	if depth > 4 {
		return nil, errs.Msg(errs.Corrupt, "image", path, "indexes in indexes without an end")
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, wrap(path, err)
	}
	for _, d := range manifest.Manifests {
		if !tagged(d.Annotations, tag) {
			continue
		}
		if p := d.Platform; p != nil && (p.OS != "linux" || p.Architecture != "amd64") {
			continue
		}
		if d.MediaType.IsIndex() {
			sub, err := index.ImageIndex(d.Digest)
			if err != nil {
				return nil, wrap(path, err)
			}
			return choose(sub, path, "", depth+1)
		}
		if d.MediaType.IsImage() {
			img, err := index.Image(d.Digest)
			if err != nil {
				return nil, wrap(path, err)
			}
			return img, nil
		}
	}
	return nil, errs.Msg(errs.NotFound, "image", path, "it holds no image of this name for linux/amd64")
}

// wrap gives the library's errors their kind.
func wrap(ref string, err error) error {
	var typed *errs.Error
	if errors.As(err, &typed) {
		return err
	}
	kind := errs.Unavailable
	var te *transport.Error
	switch {
	case errors.As(err, &te) && te.StatusCode == http.StatusNotFound, errors.Is(err, os.ErrNotExist):
		kind = errs.NotFound
	case errors.As(err, &te) && (te.StatusCode == http.StatusUnauthorized || te.StatusCode == http.StatusForbidden):
		kind = errs.Denied
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		kind = errs.Canceled
	case errors.Is(err, tar.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF):
		kind = errs.Corrupt
	}
	return errs.New(kind, "image", ref, err)
}

// Flatten writes an image as a filesystem of at most max bytes. It returns its size.
func Flatten(ctx context.Context, img v1.Image, w io.WriterAt, max int64) (int64, error) {
	checked := &checkedImage{Image: img}
	r := mutate.Extract(checked)
	defer r.Close()
	out := erofs.NewWriter(w, max)
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = put(out, h, t)
		}
		if err != nil {
			return 0, errors.Join(checked.failure(), err)
		}
	}
	// The layers are read to their ends by now, all but the last one's padding.
	if _, err := io.Copy(io.Discard, r); err != nil {
		return 0, errs.New(errs.Corrupt, "image", "", err)
	}
	if err := checked.failure(); err != nil {
		return 0, err
	}
	return out.Close()
}

// put adds one entry.
func put(out *erofs.Writer, h *tar.Header, r io.Reader) error {
	m := erofs.Meta{Perm: uint32(h.Mode) & 0o7777, UID: uint32(h.Uid), GID: uint32(h.Gid), MTime: h.ModTime}
	switch h.Typeflag {
	case tar.TypeReg:
		return out.File(h.Name, m, h.Size, r)
	case tar.TypeDir:
		return out.Dir(h.Name, m)
	case tar.TypeSymlink:
		return out.Symlink(h.Name, h.Linkname, m)
	case tar.TypeLink:
		return out.Link(h.Name, h.Linkname)
	case tar.TypeFifo:
		return out.FIFO(h.Name, m)
	}
	return nil // devices come from the kernel
}

// checkedImage is an image whose layers are held against the digests of its configuration.
type checkedImage struct {
	v1.Image
	mu  sync.Mutex
	err error
}

func (c *checkedImage) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *checkedImage) Layers() ([]v1.Layer, error) {
	layers, err := c.Image.Layers()
	if err != nil {
		return nil, err
	}
	cf, err := c.Image.ConfigFile()
	if err != nil {
		return nil, err
	}
	if len(cf.RootFS.DiffIDs) != len(layers) {
		return nil, errs.Msg(errs.Corrupt, "image", "", "its manifest and its configuration have different layers")
	}
	out := make([]v1.Layer, len(layers))
	for i, l := range layers {
		out[i] = checkedLayer{l, c, cf.RootFS.DiffIDs[i]}
	}
	return out, nil
}

type checkedLayer struct {
	v1.Layer
	c    *checkedImage
	want v1.Hash
}

func (l checkedLayer) Uncompressed() (io.ReadCloser, error) {
	r, err := l.Layer.Uncompressed()
	if err != nil {
		return nil, err
	}
	return &checkedReader{r: r, l: l, sum: sha256.New()}, nil
}

type checkedReader struct {
	r   io.ReadCloser
	l   checkedLayer
	sum hash.Hash
}

func (c *checkedReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.sum.Write(b[:n])
	return n, err
}

// Close reads what the archive's reader has left, and checks the sum.
func (c *checkedReader) Close() error {
	_, err := io.Copy(c.sum, c.r)
	if got := hex.EncodeToString(c.sum.Sum(nil)); err == nil && (c.l.want.Algorithm != "sha256" || got != c.l.want.Hex) {
		err = fmt.Errorf("a layer isn't what its digest %s says", c.l.want)
	}
	if err != nil {
		c.l.c.mu.Lock()
		defer c.l.c.mu.Unlock()
		if c.l.c.err == nil {
			c.l.c.err = errs.New(errs.Corrupt, "image", "", err)
		}
	}
	return errors.Join(err, c.r.Close())
}
