package vm

import (
	"archive/tar"
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"path"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// entry is what test/vm/tree writes of a file.
type entry struct {
	Path  string
	Mode  uint32
	UID   uint32
	GID   uint32
	Size  int64
	MTime int64
	Links uint64
	Inode uint64
	Text  string
}

// TestImage holds what a kernel sees in the filesystem that guest/image makes of a whole Debian against the image itself.
func TestImage(t *testing.T) {
	t.Parallel()
	want, links := debianFiles(t)
	r := Run(t, Program{Path: Build(t, "agentrun.dev/test/vm/tree", false), Args: []string{"/dev/vda", "erofs"}, Disks: []string{pythonRoot(t)},
		Modules: []string{"crc32c_generic", "erofs"}, Timeout: 5 * time.Minute})
	t.Logf("up in %v, all in %v", r.Booted, r.Took)
	if r.Status != 0 {
		t.Fatalf("status %d, output:\n%s", r.Status, tail(r.Output))
	}
	got := make(map[string]entry)
	for d := json.NewDecoder(bytes.NewReader(r.Output)); ; {
		var e entry
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		got[e.Path] = e
	}
	for name, first := range links {
		if got[name].Inode != got[first].Inode || got[name].Links < 2 {
			t.Errorf("%s isn't the same file as %s: %+v, %+v", name, first, got[name], got[first])
		}
		want[name] = want[first]
	}
	size := int64(0)
	for name, w := range want {
		g, ok := got[name]
		if !ok {
			t.Errorf("%s isn't there", name)
			continue
		}
		delete(got, name)
		g.Path, g.Inode, g.Links = w.Path, 0, 0
		if g.Mode>>12 == 4 { // a folder's size is the filesystem's own affair
			g.Size = 0
		}
		if g != w {
			t.Errorf("%s: the kernel sees %+v, want %+v", name, g, w)
		}
		size += g.Size
	}
	delete(got, "") // the root, which the archive needn't have
	for name := range got {
		t.Errorf("%s is there, and not in the image", name)
	}
	if len(want) < 3000 || size < 50<<20 {
		t.Errorf("a Debian of %d files, %d bytes?", len(want), size)
	}
	t.Logf("%d files, %d MB", len(want), size/1e6)
}

// debianFiles are the files of the image, and its hard links.
func debianFiles(t *testing.T) (files map[string]entry, links map[string]string) {
	t.Helper()
	dir, name := debianPython(t)
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != name {
		t.Fatalf("%+v, %v", manifest, err)
	}
	img, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	files, links = make(map[string]entry), make(map[string]string)
	for a := tar.NewReader(r); ; {
		h, err := a.Next()
		if errors.Is(err, io.EOF) {
			return files, links
		}
		if err != nil {
			t.Fatal(err)
		}
		name := path.Join("/", h.Name)
		e := entry{UID: uint32(h.Uid), GID: uint32(h.Gid), MTime: h.ModTime.Unix(), Mode: uint32(h.Mode) & 0o7777}
		switch h.Typeflag {
		case tar.TypeLink:
			links[name] = path.Join("/", h.Linkname)
			continue
		case tar.TypeDir:
			e.Mode |= 0o040000
		case tar.TypeSymlink:
			e.Mode, e.Text, e.Size = e.Mode|0o120000, h.Linkname, int64(len(h.Linkname))
		case tar.TypeReg:
			sum := md5.New()
			if e.Size, err = io.Copy(sum, a); err != nil {
				t.Fatal(err)
			}
			e.Mode, e.Text = e.Mode|0o100000, hex.EncodeToString(sum.Sum(nil))
		default: // devices come from the kernel
			continue
		}
		if name != "/" {
			files[name] = e
		}
	}
}
