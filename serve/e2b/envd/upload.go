package envd

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"connectrpc.com/connect"

	"agentrun.dev/access"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// written tells of a file that was written.
type written struct {
	Name     string            `json:"name"`
	Path     string            `json:"path"`
	Type     string            `json:"type"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// sizeIn returns the size and the type of what a path leads to.
func sizeIn(r *http.Request, files node.Files, p string) (int64, string, error) {
	i, err := files.Stat(r.Context(), p)
	if errs.Is(err, errs.NotFound) {
		return 0, "", notFound(fmt.Sprintf("path '%s' does not exist", p))
	}
	if err != nil {
		return 0, "", err
	}
	if i.Type == "symlink" {
		d, err := files.Detail(r.Context(), []string{p}, "")
		if err != nil {
			return 0, "", err
		}
		if i = d[0].Leads; i == nil {
			return 0, "", notFound(fmt.Sprintf("path '%s' does not exist", p))
		}
	}
	return i.Size, i.Type, nil
}

// upload answers POST /files: files in a form, or one as it is.
func (h *Handler) upload(w http.ResponseWriter, r *http.Request) error {
	q := paramsOf(r)
	u, err := h.use(r, q.username, access.SandboxExec)
	if err != nil {
		return err
	}
	defer u.Close()
	files, err := u.files(r.Context())
	if err != nil {
		return err
	}
	metadata, err := metadataOf(r.Header)
	if err != nil {
		return err
	}
	content, err := contentOf(w, r)
	if err != nil {
		return err
	}
	up := &uploading{h: h, u: u, files: files, params: q, metadata: metadata, content: content}
	kind, param, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil && r.Header.Get("Content-Type") != "":
		return invalid("Content-Type: " + err.Error())
	case kind == "multipart/form-data":
		err = up.form(r.Context(), param["boundary"])
	case kind == "application/octet-stream" || kind == "":
		if !q.hasPath {
			return invalid("path query parameter is required for raw body upload")
		}
		err = up.one(r.Context(), q.path, content)
	default:
		return problemOf(http.StatusUnsupportedMediaType, connect.CodeInvalidArgument, "want multipart/form-data or application/octet-stream")
	}
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, up.list)
	return nil
}

// content is a request's body, unpacked, which is so long at most.
type content struct {
	r    io.Reader
	left int64
	err  error // that isn't the end
}

var errTooLong = errors.New("the body is too long")

// contentOf unpacks a body.
func contentOf(w http.ResponseWriter, r *http.Request) (*content, error) {
	c := &content{r: http.MaxBytesReader(w, r.Body, maxUpload), left: maxUpload}
	switch v := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))); v {
	case "", "identity":
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(c.r)
		if err != nil {
			return nil, invalid("the body isn't gzip")
		}
		c.r = z
	default:
		return nil, problemOf(http.StatusUnsupportedMediaType, connect.CodeInvalidArgument, "Content-Encoding: want gzip or none")
	}
	return c, nil
}

func (c *content) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.left -= int64(n); c.left < 0 {
		n, err = 0, errTooLong
	}
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

// uploading is one request's work.
type uploading struct {
	h        *Handler
	u        *work
	files    node.Files
	params   params
	metadata map[string]string
	content  *content
	list     []written
}

// form writes the files of a form: those in its fields named "file".
func (up *uploading) form(ctx context.Context, boundary string) error {
	if boundary == "" || len(boundary) > 70 {
		return invalid("the form has no boundary")
	}
	up.list = []written{}
	in := up.h.readers.get(up.content)
	defer up.h.readers.put(in)
	m := multipart.NewReader(in, boundary)
	for n := 0; ; n++ {
		part, err := m.NextRawPart()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return up.cutOff("the form", err)
		}
		if n >= maxParts {
			return errs.Msg(errs.Limit, "upload", "", fmt.Sprintf("a form has %d parts at most", maxParts))
		}
		name, file, err := partName(part)
		if err != nil {
			return err
		}
		if name != "file" {
			continue
		}
		if up.params.hasPath {
			file = up.params.path
		}
		if err := up.one(ctx, file, whole{part}); err != nil {
			return err
		}
	}
}

// formBuffer is how much of a form is read at once: package multipart, which looks for boundaries, asks for 4 KiB at a time.
const formBuffer = 64 << 10

// readers keeps the buffers that forms are read through.
type readers struct{ pool sync.Pool }

func (p *readers) get(r io.Reader) *bufio.Reader {
	b, ok := p.pool.Get().(*bufio.Reader)
	if !ok {
		return bufio.NewReaderSize(r, formBuffer)
	}
	b.Reset(r)
	return b
}

func (p *readers) put(b *bufio.Reader) {
	b.Reset(nil)
	p.pool.Put(b)
}

// whole reads as much as is asked for: a file is written in the pieces that it is read in.
type whole struct{ r io.Reader }

func (w whole) Read(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var k int
		k, err = w.r.Read(p[n:])
		n += k
	}
	return n, err
}

// partName reads which field a part is, and the path of its file: multipart.Part's own FileName has no directories.
func partName(part *multipart.Part) (name, file string, err error) {
	_, param, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil {
		return "", "", invalid("a part of the form has no name")
	}
	return param["name"], param["filename"], nil
}

// one writes a file.
func (up *uploading) one(ctx context.Context, name string, r io.Reader) error {
	if name == "" {
		return invalid("a file needs a path")
	}
	p, err := up.u.path(name)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(up.list, func(w written) bool { return w.Path == p }) {
		return invalid(fmt.Sprintf("you cannot upload multiple files to the same path '%s' in one upload request, only the first specified file was uploaded", p))
	}
	_, err = up.files.Write(ctx, p, 0, r)
	switch {
	case err != nil && up.content.err != nil: // this file's, and not one's that follows
		return up.cutOff(p, up.content.err)
	case errs.Is(err, errs.Invalid) && directory(ctx, up.files, p) == nil:
		return invalid("path is a directory: " + p)
	case err != nil:
		return err
	}
	w := written{Name: path.Base(p), Path: p, Type: "file"}
	if len(up.metadata) > 0 {
		if err := up.files.SetTags(ctx, p, metadataPrefix, up.metadata); errs.Is(err, errs.NoSpace) {
			return err
		}
		d, err := up.files.Detail(ctx, []string{p}, metadataPrefix)
		if err != nil {
			return err
		}
		w.Metadata = d[0].Tags // what the filesystem keeps
	}
	up.list = append(up.list, w)
	up.h.watchers.nudge(ctx, up.u.Sandbox.ID, p)
	return nil
}

// cutOff is a body that can't be read to its end.
func (up *uploading) cutOff(what string, err error) error {
	var limit *http.MaxBytesError
	if errors.As(err, &limit) || errors.Is(err, errTooLong) {
		return problemOf(http.StatusRequestEntityTooLarge, connect.CodeResourceExhausted, fmt.Sprintf("a request has at most %d bytes", int64(maxUpload)))
	}
	return invalid(what + ": the body is malformed, or was cut off: nothing has changed there")
}

// metadataOf are the X-Metadata-* headers, without their prefix, in lower case.
func metadataOf(h http.Header) (map[string]string, error) {
	const prefix = "X-Metadata-"
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		key, ok := strings.CutPrefix(http.CanonicalHeaderKey(name), prefix)
		if !ok || key == "" || len(h[name]) == 0 {
			continue
		}
		v := h[name][0]
		for _, c := range []byte(v) {
			if c < 0x20 || c > 0x7e {
				return nil, invalid("metadata are printable ASCII")
			}
		}
		if len(metadataPrefix)+len(key) > 255 || len(out) == maxMetadata {
			return nil, invalid(fmt.Sprintf("a file has at most %d metadata, whose keys are short", maxMetadata))
		}
		out[strings.ToLower(key)] = v
	}
	return out, nil
}

// compose answers POST /files/compose: one file of several, which are removed.
func (h *Handler) compose(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		SourcePaths []string `json:"source_paths"`
		Destination string   `json:"destination"`
		Username    *string  `json:"username"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, maxMessage)).Decode(&in); err != nil {
		return invalid("invalid request body")
	}
	switch {
	case len(in.SourcePaths) == 0:
		return invalid("source_paths must not be empty")
	case len(in.SourcePaths) > maxParts:
		return invalid(fmt.Sprintf("want %d source_paths at most", maxParts))
	case in.Destination == "":
		return invalid("destination is required")
	}
	name := ""
	if in.Username != nil {
		name = *in.Username
	}
	u, err := h.use(r, name, access.SandboxExec)
	if err != nil {
		return err
	}
	defer u.Close()
	files, err := u.files(r.Context())
	if err != nil {
		return err
	}
	to, err := u.path(in.Destination)
	if err != nil {
		return err
	}
	j := &joined{ctx: r.Context(), files: files}
	for _, name := range in.SourcePaths {
		p, err := u.path(name)
		switch {
		case err != nil:
			return err
		case p == to:
			return invalid(fmt.Sprintf("source path %q cannot be the same as destination", clip(name)))
		}
		_, kind, err := sizeIn(r, files, p)
		switch {
		case errs.Is(err, errs.NotFound), err != nil:
			return err
		case kind != "file":
			return invalid("source path is not a regular file: " + clip(name))
		}
		j.paths = append(j.paths, p)
	}
	sources := j.paths
	_, err = files.Write(r.Context(), to, 0, j)
	j.close()
	if err != nil {
		return err
	}
	for _, p := range sources {
		if err := files.Remove(r.Context(), p, false); err != nil && !errs.Is(err, errs.NotFound) {
			return err
		}
	}
	h.watchers.nudge(r.Context(), u.Sandbox.ID, append(sources, to)...)
	writeJSON(w, http.StatusOK, written{Name: path.Base(to), Path: to, Type: "file"})
	return nil
}

// joined reads files one after another.
type joined struct {
	ctx   context.Context
	files node.Files
	paths []string
	now   io.ReadCloser
}

func (j *joined) Read(p []byte) (int, error) {
	for {
		if j.now == nil {
			if len(j.paths) == 0 {
				return 0, io.EOF
			}
			var err error
			if j.now, _, err = j.files.Open(j.ctx, j.paths[0], 0); err != nil {
				return 0, err
			}
			j.paths = j.paths[1:]
		}
		n, err := j.now.Read(p)
		if err == io.EOF {
			j.close()
			err = nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

func (j *joined) close() {
	if j.now != nil {
		_ = j.now.Close() // it was read only
		j.now = nil
	}
}
