package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"agentrun.dev/errs"
)

// layer makes a layer of files.
func layer(t *testing.T, entries ...tar.Header) v1.Layer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		content := h.PAXRecords["content"]
		h.PAXRecords = nil
		h.Size = int64(len(content))
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func file(name, content string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, PAXRecords: map[string]string{"content": content}}
}

// sample is an image of two layers, of which the second changes the first.
func sample(t *testing.T) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image,
		layer(t, file("etc/kept", "kept"), file("etc/gone", "removed later"), file("dir/old", "old"), file("etc/changed", "old")),
		layer(t, file("etc/.wh.gone", ""), file("etc/changed", "NEWCONTENT"), file("dir/.wh..wh..opq", ""), file("dir/new", "new"),
			tar.Header{Name: "dev/null", Typeflag: tar.TypeChar}, tar.Header{Name: "etc/hard", Typeflag: tar.TypeLink, Linkname: "etc/changed"}))
	if err == nil {
		img, err = mutate.Config(img, v1.Config{Env: []string{"A=1"}, WorkingDir: "/w", User: "u", Cmd: []string{"sh"}})
	}
	if err == nil {
		var cf *v1.ConfigFile
		if cf, err = img.ConfigFile(); err == nil {
			cf = cf.DeepCopy()
			cf.OS, cf.Architecture = "linux", "amd64"
			img, err = mutate.ConfigFile(img, cf)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// check looks into a filesystem; package erofs tests the format itself.
func check(t *testing.T, path string, c Config) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kept", "NEWCONTENT", "hard"} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("%q isn't in the image", want)
		}
	}
	for _, gone := range []string{"removed later", ".wh.", "null"} {
		if bytes.Contains(b, []byte(gone)) {
			t.Errorf("%q is in the image", gone)
		}
	}
	if strings.Join(c.Env, " ") != "A=1" || c.Dir != "/w" || c.User != "u" || strings.Join(c.Cmd, " ") != "sh" || !strings.HasPrefix(c.Digest, "sha256:") {
		t.Errorf("config %+v", c)
	}
}

func store(t *testing.T) *Store {
	t.Helper()
	s, err := NewStore(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRegistry(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	ref := strings.TrimPrefix(server.URL, "http://") + "/team/sample:1"
	tag, err := name.NewTag(ref)
	if err == nil {
		err = remote.Write(tag, sample(t))
	}
	if err != nil {
		t.Fatal(err)
	}
	s := store(t)
	var all sync.WaitGroup
	for range 4 { // at once: one writes, the others wait for it
		all.Go(func() {
			path, c, err := s.Root(t.Context(), ref)
			if err != nil {
				t.Error(err)
				return
			}
			check(t, path, c)
		})
	}
	all.Wait()
	if found, _ := filepath.Glob(s.dir + "/*"); len(found) != 2 {
		t.Errorf("the store holds %q", found)
	}
	for ref, kind := range map[string]errs.Kind{
		strings.Replace(ref, "sample:1", "sample:2", 1): errs.NotFound,
		"UPPER CASE": errs.Invalid,
	} {
		if _, _, err := s.Root(t.Context(), ref); errs.KindOf(err) != kind {
			t.Errorf("%s: %v, want %v", ref, err, kind)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Root(ctx, ref); errs.KindOf(err) != errs.Canceled {
		t.Errorf("given up: %v", err)
	}
}

func TestLayout(t *testing.T) {
	dir := t.TempDir()
	p, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = errors.Join(p.AppendImage(empty.Image, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: "arm64"})),
			p.AppendImage(sample(t), layout.WithAnnotations(map[string]string{refName: "two"})),
			p.AppendImage(sample(t), layout.WithAnnotations(map[string]string{refName: "example.org:5000/some/python:3.12"})),
			p.AppendImage(sample(t), layout.WithAnnotations(map[string]string{refName: "?", "io.containerd.image.name": "docker.io/library/python:3.13"})))
	}
	if err != nil {
		t.Fatal(err)
	}
	s := store(t)
	for _, tag := range []string{"", ":two", ":3.12", ":3.13"} {
		ref := "oci:" + dir + tag
		path, c, err := s.Root(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		check(t, path, c)
	}
	for _, ref := range []string{"oci:" + dir + ":three", "oci:" + dir + ":latest", "oci:" + dir + ":12", "oci:" + dir + "/none"} {
		if _, _, err := s.Root(t.Context(), ref); errs.KindOf(err) != errs.NotFound {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

// TestCorruptLayout: a layer that was changed on the disk isn't taken.
func TestCorruptLayout(t *testing.T) {
	dir := t.TempDir()
	img := sample(t)
	p, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = p.AppendImage(img)
	}
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	victim, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	other, err := layers[1].Digest()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "blobs", "sha256", other.Hex))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "blobs", "sha256", victim.Hex), b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := store(t)
	if _, _, err := s.Root(t.Context(), "oci:"+dir); errs.KindOf(err) != errs.Corrupt {
		t.Errorf("%v", err)
	}
	if found, _ := filepath.Glob(s.dir + "/*"); len(found) != 0 {
		t.Errorf("the store holds %q", found)
	}
}

// TestArchive: a layout in a tarball, as podman save --format oci-archive and skopeo write it.
func TestArchive(t *testing.T) {
	dir := t.TempDir()
	p, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = p.AppendImage(sample(t), layout.WithAnnotations(map[string]string{refName: "example.org/sample:1"}))
	}
	if err != nil {
		t.Fatal(err)
	}
	pack := func(prefix string, omit func(name string) bool) string {
		file := filepath.Join(t.TempDir(), "image.tar")
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		w := tar.NewWriter(f)
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			name := strings.TrimPrefix(strings.TrimPrefix(path, dir), "/")
			if err != nil || d.IsDir() || omit(name) {
				return err
			}
			b, err := os.ReadFile(path)
			if err == nil {
				err = w.WriteHeader(&tar.Header{Name: prefix + name, Mode: 0o600, Size: int64(len(b))})
			}
			if err == nil {
				_, err = w.Write(b)
			}
			return err
		})
		if err := errors.Join(err, w.WriteHeader(&tar.Header{Name: "../outside", Mode: 0o600}), w.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
		return file
	}
	s := store(t)
	none := func(string) bool { return false }
	for _, ref := range []string{"tar:" + pack("", none), "tar:" + pack("./", none) + ":1", "tar:" + pack("", none) + ":example.org/sample:1",
		"tar:" + pack("", none) + ":sample:1"} {
		file, c, err := s.Root(t.Context(), ref)
		if err != nil {
			t.Fatalf("%s: %v", ref, err)
		}
		check(t, file, c)
	}
	for what, c := range map[string]struct {
		ref  string
		kind errs.Kind
	}{
		"another tag":         {"tar:" + pack("", none) + ":2", errs.NotFound},
		"no index":            {"tar:" + pack("", func(name string) bool { return name == "index.json" }), errs.NotFound},
		"no blobs":            {"tar:" + pack("", func(name string) bool { return strings.HasPrefix(name, "blobs") }), errs.NotFound},
		"not an archive":      {"tar:" + filepath.Join(dir, "index.json"), errs.Corrupt},
		"no file of the name": {"tar:" + filepath.Join(dir, "none.tar"), errs.NotFound},
	} {
		s := store(t)
		_, _, err := s.Root(t.Context(), c.ref)
		if errs.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.ref) || strings.Contains(err.Error(), s.dir) {
			t.Errorf("%s: %v, want it %v and to name %s alone", what, err, c.kind, c.ref)
		}
		if found, _ := filepath.Glob(s.dir + "/*"); len(found) != 0 {
			t.Errorf("%s: the store holds %q", what, found)
		}
	}
	s = store(t)
	s.o.Max = 1 << 10
	if _, _, err := s.Root(t.Context(), "tar:"+pack("", none)); errs.KindOf(err) != errs.TooLarge {
		t.Errorf("an archive that is too large: %v", err)
	}
}

// TestLeftovers: what a killed process was writing doesn't stay for ever; what another writes now does.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	old, now := filepath.Join(dir, ".new-1"), filepath.Join(dir, ".new-2")
	for _, path := range []string{old, now} {
		if err := os.MkdirAll(filepath.Join(path, "blobs"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := NewStore(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if found, _ := filepath.Glob(dir + "/.*"); len(found) != 1 || found[0] != now {
		t.Errorf("%q are left, want %s", found, now)
	}
}

func TestTarball(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image.tar")
	tag, err := name.NewTag("sample:1")
	if err == nil {
		err = tarball.WriteToFile(path, tag, sample(t))
	}
	if err != nil {
		t.Fatal(err)
	}
	s := store(t)
	for _, ref := range []string{"tar:" + path, "tar:" + path + ":sample:1"} {
		file, c, err := s.Root(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		check(t, file, c)
	}
	s.o.Max = 1 << 10
	s.dir = t.TempDir()
	if _, _, err := s.Root(t.Context(), "tar:"+path); errs.KindOf(err) != errs.TooLarge {
		t.Errorf("an image that is too large: %v", err)
	}
}
