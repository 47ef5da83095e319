package rest

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"agentrun.dev/access"
	"agentrun.dev/api"
	"agentrun.dev/control"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

// maxPath bounds a file's path, in bytes.
const maxPath = 4096

// files begins work on the files of the sandbox that the path names. u is to be closed.
func (s *server) files(r *request, verb access.Verb) (u *control.Session, f node.Files, err error) {
	if u, err = s.use(r, verb); err != nil {
		return nil, nil, err
	}
	if f, err = u.Files(r.Context()); err != nil {
		u.Close()
		return nil, nil, err
	}
	return u, f, nil
}

// filePath checks a path of a sandbox.
func filePath(name, p string) (string, error) {
	switch {
	case p == "" || strings.IndexByte(p, 0) >= 0 || !utf8.ValidString(p):
		return "", errs.Msg(errs.Invalid, "files", name, "want a path, without NUL bytes")
	case len(p) > maxPath:
		return "", errs.Msg(errs.Invalid, "files", name, fmt.Sprintf("a path has at most %d bytes", maxPath))
	}
	return p, nil
}

// readFile sends a file, or a part of it.
func (s *server) readFile(w http.ResponseWriter, r *request) error {
	p, err := filePath("path", r.text("path"))
	if err != nil {
		return err
	}
	u, files, err := s.files(r, access.SandboxRead)
	if err != nil {
		return err
	}
	defer u.Close()
	info, err := files.Stat(r.Context(), p)
	if err != nil {
		return err
	}
	from, length, status := int64(0), info.Size, http.StatusOK
	sized := info.Type == "file" && info.Size > 0 // files that the system makes up have no size
	if sized {
		var ok bool
		if from, length, ok = byteRange(r.Header.Get("Range"), info.Size); !ok {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", info.Size))
			p := s.problem(r, errs.Msg(errs.Invalid, "files", clip(p), fmt.Sprintf("the file has %d bytes", info.Size)), nil)
			p.Status, p.Title = http.StatusRequestedRangeNotSatisfiable, http.StatusText(http.StatusRequestedRangeNotSatisfiable)
			writeJSON(w, p.Status, api.ProblemJSON, p)
			return nil
		}
		if length < info.Size {
			status = http.StatusPartialContent
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, from+length-1, info.Size))
		}
	}
	body, info, err := files.Open(r.Context(), p, from)
	if err != nil {
		return err
	}
	defer body.Close()
	h := w.Header()
	h.Set("Content-Type", api.Bytes)
	h.Set("Content-Disposition", disposition(info.Name))
	h.Set("Last-Modified", info.Modified.UTC().Format(http.TimeFormat))
	h.Set("Accept-Ranges", "bytes")
	if sized {
		h.Set("Content-Length", strconv.FormatInt(length, 10))
	}
	r.begun = true
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return nil
	}
	src := io.Reader(body)
	if sized {
		src = io.LimitReader(body, length) // it may have grown
	}
	buf := s.sendBuffer(length)
	n, err := io.CopyBuffer(&patient{w: w, rc: http.NewResponseController(w), patience: s.patience}, src, *buf)
	if len(*buf) == sendBuffer {
		s.buffers.Put(buf)
	}
	if err != nil || sized && n < length {
		panic(http.ErrAbortHandler) // cuts the connection, so that the client sees that bytes are missing
	}
	return nil
}

// sendBuffer is how much of a file is sent at once, in bytes.
const sendBuffer = 256 << 10

// sendBuffer returns a buffer that so many bytes are sent through; one of sendBuffer bytes is given back to s.buffers.
func (s *server) sendBuffer(length int64) *[]byte {
	if length < sendBuffer {
		b := make([]byte, 32<<10)
		return &b
	}
	if b, ok := s.buffers.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, sendBuffer)
	return &b
}

// byteRange reads a Range header of one range; what it doesn't understand is no range, as RFC 9110, section 14.2, has it.
func byteRange(h string, size int64) (from, length int64, ok bool) {
	spec, isBytes := strings.CutPrefix(h, "bytes=")
	a, b, cut := strings.Cut(strings.TrimSpace(spec), "-")
	if !isBytes || !cut || strings.Contains(spec, ",") {
		return 0, size, true
	}
	first, err1 := strconv.ParseUint(a, 10, 63)
	last, err2 := strconv.ParseUint(b, 10, 63)
	switch {
	case a == "" && err2 == nil: // the last so many
		if last == 0 {
			return 0, 0, false
		}
		n := min(int64(last), size)
		return size - n, n, true
	case err1 != nil || b != "" && (err2 != nil || last < first):
		return 0, size, true
	case int64(first) >= size:
		return 0, 0, false
	case b == "" || int64(last) >= size:
		return int64(first), size - int64(first), true
	}
	return int64(first), int64(last-first) + 1, true
}

// disposition names a download.
func disposition(name string) string {
	if v := mime.FormatMediaType("attachment", map[string]string{"filename": name}); v != "" {
		return v
	}
	return "attachment"
}

// writeFile takes a file. It is in its place once all of it has come.
func (s *server) writeFile(w http.ResponseWriter, r *request) (any, error) {
	p, err := filePath("path", r.text("path"))
	if err != nil {
		return nil, err
	}
	mode, err := fileMode(r.text("mode"))
	if err != nil {
		return nil, err
	}
	tooLarge := errs.Msg(errs.TooLarge, "files", clip(p), fmt.Sprintf("a file that is sent has at most %d bytes", s.MaxUpload))
	if r.ContentLength > s.MaxUpload {
		return nil, tooLarge
	}
	u, files, err := s.files(r, access.SandboxExec)
	if err != nil {
		return nil, err
	}
	defer u.Close()
	body := &upload{r: http.MaxBytesReader(w, r.Body, s.MaxUpload), rc: http.NewResponseController(w)}
	info, err := files.Write(r.Context(), p, mode, body)
	_ = body.rc.SetReadDeadline(time.Time{})
	var limit *http.MaxBytesError
	switch {
	case errors.As(body.err, &limit):
		return nil, tooLarge
	case body.err != nil:
		return nil, errs.Msg(errs.Invalid, "files", clip(p), "the body was cut off: nothing has changed")
	}
	return info, err
}

// upload reads a body that may take as long as it keeps moving.
type upload struct {
	r   io.Reader
	rc  *http.ResponseController
	err error // that isn't the end
}

func (u *upload) Read(p []byte) (int, error) {
	_ = u.rc.SetReadDeadline(time.Now().Add(readDeadline))
	n, err := u.r.Read(p)
	if err != nil && err != io.EOF {
		u.err = err
	}
	return n, err
}

// fileMode reads permission bits in octal.
func fileMode(v string) (uint32, error) {
	if v == "" {
		return 0, nil
	}
	m, err := strconv.ParseUint(v, 8, 32)
	if err != nil || m > 0o7777 {
		return 0, errs.Msg(errs.Invalid, "files", "mode", "want octal digits, such as 0644")
	}
	return uint32(m), nil
}

func (s *server) removeFile(_ http.ResponseWriter, r *request) (any, error) {
	p, err := filePath("path", r.text("path"))
	if err != nil {
		return nil, err
	}
	u, files, err := s.files(r, access.SandboxExec)
	if err != nil {
		return nil, err
	}
	defer u.Close()
	return nil, files.Remove(r.Context(), p, r.flag("recursive"))
}

func (s *server) statFile(_ http.ResponseWriter, r *request) (any, error) {
	p, err := filePath("path", r.text("path"))
	if err != nil {
		return nil, err
	}
	u, files, err := s.files(r, access.SandboxRead)
	if err != nil {
		return nil, err
	}
	defer u.Close()
	return files.Stat(r.Context(), p)
}

func (s *server) listFiles(_ http.ResponseWriter, r *request) (any, error) {
	p, err := filePath("path", defaulted(r.text("path"), "."))
	if err != nil {
		return nil, err
	}
	after, err := r.place()
	if err != nil {
		return nil, err
	}
	depth, limit := int(r.number("depth")), int(r.number("limit"))
	if depth == 0 {
		depth = 1
	}
	if limit == 0 {
		limit = api.DefaultPage
	}
	u, files, err := s.files(r, access.SandboxRead)
	if err != nil {
		return nil, err
	}
	defer u.Close()
	list, more, err := files.List(r.Context(), p, depth, limit, after)
	if err != nil {
		return nil, err
	}
	out := &api.Files{Files: list}
	if more && len(list) > 0 {
		out.Next = cursorAt(list[len(list)-1].Path)
	}
	return out, nil
}

func defaulted(v, otherwise string) string {
	if v == "" {
		return otherwise
	}
	return v
}

// makeDirectory answers with what is there then.
func (s *server) makeDirectory(w http.ResponseWriter, r *request) (any, error) {
	var in api.FileAction
	if err := decode(w, r, &in); err != nil {
		return nil, err
	}
	p, err := filePath("path", in.Path)
	if err != nil {
		return nil, err
	}
	if in.To != "" || in.Mode > 0o7777 {
		return nil, errs.Msg(errs.Invalid, "files", "", "want a path and perhaps a mode of permission bits")
	}
	u, files, err := s.files(r, access.SandboxExec)
	if err != nil {
		return nil, err
	}
	defer u.Close()
	if err := files.Mkdir(r.Context(), p, in.Mode); err != nil {
		return nil, err
	}
	return files.Stat(r.Context(), p)
}

// moveFile answers with what is there then.
func (s *server) moveFile(w http.ResponseWriter, r *request) (any, error) {
	var in api.FileAction
	if err := decode(w, r, &in); err != nil {
		return nil, err
	}
	from, err := filePath("path", in.Path)
	if err != nil {
		return nil, err
	}
	to, err := filePath("to", in.To)
	if err != nil {
		return nil, err
	}
	if in.Mode != 0 {
		return nil, errs.Msg(errs.Invalid, "files", "mode", "what is moved keeps its mode")
	}
	u, files, err := s.files(r, access.SandboxExec)
	if err != nil {
		return nil, err
	}
	defer u.Close()
	if err := files.Move(r.Context(), from, to); err != nil {
		return nil, err
	}
	return files.Stat(r.Context(), to)
}

// watchFiles tells of changes until the client goes.
func (s *server) watchFiles(w http.ResponseWriter, r *request) error {
	p, err := filePath("path", r.text("path"))
	if err != nil {
		return err
	}
	u, files, err := s.files(r, access.SandboxRead)
	if err != nil {
		return err
	}
	defer u.Close()
	f := newFeed(s, w, r)
	event := func(e api.FileEvent) error { return f.send("", e.Kind, &e) }
	return f.end(files.Watch(r.Context(), p, r.flag("recursive"), func() { _ = event(api.FileEvent{Kind: "ready"}) }, event))
}
