package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"mime"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// transfer copies files, several at once.
type transfer struct {
	s3    *minio.Core
	a     *app
	jobs  int
	meter *meter

	files, bytes, skipped atomic.Uint64
}

func (t *transfer) one(n int64) {
	t.bytes.Add(uint64(n))
	t.meter.update(api.Progress{Phase: "copied", Done: t.files.Add(1)})
}

// put uploads what r yields, n bytes or, at -1, as many as there are.
func (t *transfer) put(ctx context.Context, p place, key string, r io.Reader, n int64) error {
	o := minio.PutObjectOptions{ContentType: contentType(key)}
	if n < 0 {
		o.PartSize = 16 << 20 // what the client holds in memory
	}
	info, err := t.s3.Client.PutObject(ctx, p.bucket, key, r, n, o)
	if err != nil {
		return s3Error("upload", "s3://"+p.bucket+"/"+key, err)
	}
	t.one(info.Size)
	return nil
}

// contentType goes by the key's extension only: guessing by content would read the file twice.
func contentType(key string) string {
	if t := mime.TypeByExtension(path.Ext(key)); t != "" {
		return t
	}
	return "application/octet-stream"
}

// uploadOne copies one file or the standard input.
func (t *transfer) uploadOne(ctx context.Context, src, dst place) error {
	if src.path == "-" {
		if dst.key == "" || strings.HasSuffix(dst.key, "/") {
			return usage(dst.String(), "what comes from the standard input needs a whole key")
		}
		return t.put(ctx, dst, dst.key, t.a.Stdin, -1)
	}
	if dst.key == "" || strings.HasSuffix(dst.key, "/") {
		dst.key += filepath.Base(src.path)
	}
	f, err := os.Open(src.path)
	if err != nil {
		return fileError("upload", src.path, err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return fileError("upload", src.path, err)
	}
	if st.IsDir() {
		return usage(src.path, "it is a folder").WithHint("'agentrun cp -r' copies folders")
	}
	n := st.Size()
	if !st.Mode().IsRegular() {
		n = -1
	}
	return t.put(ctx, dst, dst.key, f, n)
}

// fileError words a failure of this machine's files.
func fileError(op, path string, err error) error {
	kind := errs.Other
	switch {
	case errors.Is(err, fs.ErrNotExist):
		kind = errs.NotFound
	case errors.Is(err, fs.ErrPermission):
		kind = errs.Denied
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return errs.New(kind, op, path, err)
}

// upload copies everything beneath a folder.
func (t *transfer) upload(ctx context.Context, src, dst place) error {
	if st, err := os.Stat(src.path); err != nil {
		return fileError("upload", src.path, err)
	} else if !st.IsDir() {
		return usage(src.path, "it isn't a folder").WithHint("leave out -r to copy one file")
	}
	root, err := os.OpenRoot(src.path) // a link that is swapped in meanwhile leads nowhere else
	if err != nil {
		return fileError("upload", src.path, err)
	}
	defer root.Close()
	prefix := dst.key
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(t.jobs)
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fileError("upload", filepath.Join(src.path, name), err)
		}
		if ctx.Err() != nil {
			return fs.SkipAll // the failed file's error comes from Wait
		}
		if d.IsDir() {
			return nil
		}
		if !d.Type().IsRegular() || !utf8.ValidString(name) {
			t.skipped.Add(1)
			return nil
		}
		g.Go(func() error {
			f, err := root.Open(name)
			if err != nil {
				return fileError("upload", filepath.Join(src.path, name), err)
			}
			defer f.Close()
			st, err := f.Stat()
			if err != nil {
				return fileError("upload", filepath.Join(src.path, name), err)
			}
			return t.put(ctx, dst, prefix+name, f, st.Size())
		})
		return nil
	})
	return errors.Join(err, g.Wait())
}

// get opens an object for reading.
func (t *transfer) get(ctx context.Context, src place, key, version string) (io.ReadCloser, int64, error) {
	o := minio.GetObjectOptions{}
	if version != "" {
		o.Set("X-Tigris-Snapshot-Version", version)
	}
	body, info, _, err := t.s3.GetObject(ctx, src.bucket, key, o)
	if err != nil {
		return nil, 0, s3Error("download", "s3://"+src.bucket+"/"+key, err)
	}
	return body, info.Size, nil
}

// downloadOne copies one object to a file or the standard output.
func (t *transfer) downloadOne(ctx context.Context, src, dst place) error {
	if src.key == "" || strings.HasSuffix(src.key, "/") {
		return usage(src.String(), "which object?").WithHint("'agentrun cp -r' copies everything beneath a prefix")
	}
	version, err := t.version(ctx, src)
	if err != nil {
		return err
	}
	body, n, err := t.get(ctx, src, src.key, version)
	if err != nil {
		return err
	}
	defer body.Close()
	if dst.path == "-" {
		if _, err := io.Copy(t.a.Stdout, body); err != nil {
			return errs.New(errs.Unavailable, "download", src.String(), err)
		}
		t.one(n)
		return nil
	}
	dir, name := filepath.Split(dst.path)
	if st, err := os.Stat(dst.path); name == "" || err == nil && st.IsDir() {
		dir, name = dst.path, path.Base(src.key)
	}
	root, err := os.OpenRoot(first(dir, "."))
	if err != nil {
		return fileError("download", dir, err)
	}
	defer root.Close()
	return t.write(root, name, dir, body, n)
}

func (t *transfer) version(ctx context.Context, src place) (string, error) {
	if src.at == "" {
		return "", nil
	}
	c, err := t.a.connect()
	if err != nil {
		return "", err
	}
	return t.a.pointVersion(ctx, c, src)
}

// write writes a file beneath root, under its name only once it is whole.
func (t *transfer) write(root *os.Root, name, dir string, body io.Reader, n int64) error {
	tmp := name + ".agentrun-" + strconv.Itoa(os.Getpid())
	f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return fileError("download", filepath.Join(dir, name), err)
	}
	_, err = io.Copy(f, body)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = root.Rename(tmp, name)
	}
	if err != nil {
		_ = root.Remove(tmp)
		return fileError("download", filepath.Join(dir, name), err)
	}
	t.one(n)
	return nil
}

// download copies everything beneath a prefix into a folder, which is made.
func (t *transfer) download(ctx context.Context, src, dst place) error {
	version, err := t.version(ctx, src)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dst.path, 0o777); err != nil {
		return fileError("download", dst.path, err)
	}
	root, err := os.OpenRoot(dst.path)
	if err != nil {
		return fileError("download", dst.path, err)
	}
	defer root.Close()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(t.jobs)
	if src.key != "" && !strings.HasSuffix(src.key, "/") {
		src.key += "/" // the folder "a" doesn't hold "ab"
	}
	err = t.list(gctx, src, version, func(key string) error {
		name := strings.TrimPrefix(key, src.key)
		if strings.HasSuffix(key, "/") || !filepath.IsLocal(name) || path.Clean(name) != name {
			t.skipped.Add(1)
			return nil
		}
		g.Go(func() error {
			body, n, err := t.get(gctx, src, key, version)
			if err != nil {
				return err
			}
			defer body.Close()
			if parent := path.Dir(name); parent != "." {
				if err := root.MkdirAll(parent, 0o777); err != nil {
					return fileError("download", filepath.Join(dst.path, name), err)
				}
			}
			return t.write(root, name, dst.path, body, n)
		})
		return nil
	})
	return errors.Join(g.Wait(), err)
}

// list calls f for each key that begins with the place's.
func (t *transfer) list(ctx context.Context, src place, version string, f func(key string) error) error {
	o := minio.ListObjectsOptions{Prefix: src.key, Recursive: true, MaxKeys: 1000}
	if version != "" {
		o.Set("X-Tigris-Snapshot-Version", version)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range t.s3.Client.ListObjects(ctx, src.bucket, o) {
		if i.Err != nil {
			if errors.Is(i.Err, context.Canceled) {
				return nil // a failed file's error tells more
			}
			return s3Error("list", src.String(), i.Err)
		}
		if err := f(i.Key); err != nil {
			return err
		}
	}
	return nil
}
