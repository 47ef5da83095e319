package s3

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"

	"agentrun.dev/bucket"
	"agentrun.dev/serve/s3/fault"
)

// Limits of a bulk read.
const (
	maxBundleKeys = 10_000
	maxBundleBody = 16 << 20 // bytes of JSON
)

// bundle answers POST ?bundle: many objects, of one instant, as a tar stream.
func (c *call) bundle() error {
	h := c.r.Header
	if f := h.Get("X-Tigris-Bundle-Format"); f != "" && f != "tar" {
		return fault.Argument("X-Tigris-Bundle-Format", f, "want tar")
	}
	compression := strings.ToLower(h.Get("X-Tigris-Bundle-Compression"))
	if compression != "" && compression != "none" && compression != "gzip" && compression != "zstd" {
		return fault.Argument("X-Tigris-Bundle-Compression", compression, "want none, gzip or zstd")
	}
	onError := strings.ToLower(h.Get("X-Tigris-Bundle-On-Error"))
	if onError != "" && onError != "skip" && onError != "fail" {
		return fault.Argument("X-Tigris-Bundle-On-Error", onError, "want skip or fail")
	}
	var req struct {
		Keys []string `json:"keys"`
	}
	if err := c.readJSON(&req, maxBundleBody); err != nil {
		return err
	}
	if len(req.Keys) == 0 || len(req.Keys) > maxBundleKeys {
		return fault.Argument("keys", "", "want 1 to 10,000 keys")
	}
	v, err := c.view(c.r.Context())
	if err != nil {
		return err
	}
	defer v.Close()
	objects, err := c.bundled(v, req.Keys, onError == "fail")
	if err != nil {
		return err
	}
	types := map[string]string{"gzip": "application/gzip", "zstd": "application/zstd"}
	kind := types[compression]
	if kind == "" {
		kind = "application/x-tar"
	}
	c.w.Header()["Content-Type"] = []string{kind}
	var out io.Writer = &lazyWriter{c, http.StatusOK}
	var end io.Closer
	switch compression {
	case "gzip":
		z := gzip.NewWriter(out)
		out, end = z, z
	case "zstd":
		z, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
		if err != nil {
			return err
		}
		out, end = z, z
	}
	if err := c.writeTar(out, v, objects); err != nil {
		return err
	}
	if end != nil {
		return end.Close()
	}
	return nil
}

// bundled finds the objects; missing ones are left out, or fail the whole.
func (c *call) bundled(v *bucket.View, keys []string, strict bool) ([]*bucket.Object, error) {
	objects := make([]*bucket.Object, 0, len(keys))
	for _, key := range keys {
		o, err := c.find(c.r.Context(), v, key, "")
		if errors.Is(err, fault.NoSuchKey) && !strict {
			continue
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	return objects, nil
}

func (c *call) writeTar(out io.Writer, v *bucket.View, objects []*bucket.Object) error {
	tw := tar.NewWriter(out)
	for _, o := range objects {
		hdr := &tar.Header{Typeflag: tar.TypeReg, Name: o.Key, Size: o.Size, Mode: 0o644, ModTime: o.Modified, Format: tar.FormatPAX}
		if err := tw.WriteHeader(hdr); err != nil {
			return err
		}
		r, err := v.Open(c.r.Context(), o)
		if err != nil {
			return err
		}
		_, err = r.WriteTo(tw)
		r.Close()
		if err != nil {
			return err
		}
	}
	return tw.Close()
}
