package envd

import (
	"compress/gzip"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"agentrun.dev/access"
	"agentrun.dev/errs"
)

// params are those of a request for files.
type params struct {
	path, username string
	hasPath        bool
}

func paramsOf(r *http.Request) params {
	q := r.URL.Query()
	p := params{path: q.Get("path"), username: q.Get("username"), hasPath: q.Has("path")}
	if p.username == "" { // as calls have it
		p.username, _, _ = r.BasicAuth()
	}
	return p
}

// download answers GET and HEAD /files: a file, or a part of it.
func (h *Handler) download(w http.ResponseWriter, r *http.Request) error {
	q := paramsOf(r)
	u, err := h.use(r, q.username, access.SandboxRead)
	if err != nil {
		return err
	}
	defer u.Close()
	p, err := u.path(q.path)
	if err != nil {
		return err
	}
	files, err := u.files(r.Context())
	if err != nil {
		return err
	}
	zipped := wantsGzip(r.Header.Get("Accept-Encoding")) && r.Header.Get("Range") == ""
	size, kind, err := sizeIn(r, files, p)
	if err != nil {
		return err
	}
	if kind == "directory" {
		return invalid(fmt.Sprintf("path '%s' is a directory", p))
	}
	head := w.Header()
	head.Set("Vary", "Accept-Encoding")
	from, length, status := int64(0), size, http.StatusOK
	if size > 0 && !zipped { // files that the system makes up have no size
		var ok bool
		if from, length, ok = byteRange(r.Header.Get("Range"), size); !ok {
			head.Set("Content-Range", fmt.Sprintf("bytes */%d", size))
			writeError(w, http.StatusRequestedRangeNotSatisfiable, fmt.Sprintf("the file has %d bytes", size))
			return nil
		}
		if length < size {
			status = http.StatusPartialContent
			head.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, from+length-1, size))
		}
	}
	content, info, err := files.Open(r.Context(), p, from)
	if errs.Is(err, errs.NotFound) {
		return notFound(fmt.Sprintf("path '%s' does not exist", p))
	}
	if err != nil {
		return err
	}
	defer content.Close()
	if v := mime.FormatMediaType("inline", map[string]string{"filename": path.Base(p)}); v != "" {
		head.Set("Content-Disposition", v)
	}
	head.Set("Content-Type", typeOfFile(p))
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Last-Modified", info.Modified.UTC().Format(http.TimeFormat))
	if zipped {
		head.Set("Content-Encoding", "gzip")
	} else {
		head.Set("Accept-Ranges", "bytes")
		if size > 0 || length == 0 && empty(content, &content) {
			head.Set("Content-Length", strconv.FormatInt(length, 10))
		}
	}
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return nil
	}
	if err := h.send(w, content, zipped, size, length); err != nil {
		panic(http.ErrAbortHandler) // so that the client sees that bytes are missing
	}
	return nil
}

// empty reads on to see whether there is nothing; what was read is put back.
func empty(r io.Reader, back *io.ReadCloser) bool {
	var b [1]byte
	n, _ := io.ReadFull(r, b[:])
	if n == 0 {
		return true
	}
	c := *back
	*back = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(strings.NewReader(string(b[:])), c), c}
	return false
}

// sendBuffer is how much of a file is sent at once.
const sendBuffer = 256 << 10

// buffer returns one that a file of so many bytes is sent through, and what to do with it then.
func (h *Handler) buffer(length int64) (b []byte, done func()) {
	if length < sendBuffer {
		return make([]byte, length+1), func() {}
	}
	p, ok := h.buffers.Get().(*[]byte)
	if !ok {
		b := make([]byte, sendBuffer)
		p = &b
	}
	return *p, func() { h.buffers.Put(p) }
}

// send sends a file's content.
func (h *Handler) send(w io.Writer, content io.Reader, zipped bool, size, length int64) error {
	if zipped {
		z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err != nil {
			return err
		}
		if _, err := io.Copy(z, content); err != nil {
			return err
		}
		return z.Close()
	}
	if size == 0 {
		_, err := io.Copy(w, content)
		return err
	}
	buf, done := h.buffer(length)
	defer done()
	n, err := io.CopyBuffer(w, io.LimitReader(content, length), buf) // it may have grown
	if err == nil && n < length {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// typeOfFile is a file's media type, by its name: HTML among them isn't shown, so that what a sandbox made doesn't run as this server's page.
func typeOfFile(p string) string {
	t := mime.TypeByExtension(path.Ext(p))
	kind, _, err := mime.ParseMediaType(t)
	if err != nil || strings.Contains(kind, "html") || strings.Contains(kind, "xml") || strings.Contains(kind, "script") || strings.Contains(kind, "pdf") {
		if kind != "" && err == nil {
			return "text/plain; charset=utf-8"
		}
		return "application/octet-stream"
	}
	return t
}

// wantsGzip tells whether a client asks for gzip and for nothing else: those that also take others, or take what comes, are served
// sooner without.
func wantsGzip(accept string) bool {
	asked := false
	for part := range strings.SplitSeq(accept, ",") {
		name, param, _ := strings.Cut(part, ";")
		zero := strings.HasPrefix(strings.ReplaceAll(param, " ", ""), "q=0") && strings.Trim(strings.ReplaceAll(param, " ", "")[3:], ".0") == ""
		switch name = strings.ToLower(strings.TrimSpace(name)); {
		case name == "gzip" && !zero:
			asked = true
		case name == "" || zero:
		default:
			return false
		}
	}
	return asked
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
		n := int64(min(last, uint64(size)))
		return size - n, n, true
	case err1 != nil || b != "" && (err2 != nil || last < first):
		return 0, size, true
	case first >= uint64(size):
		return 0, 0, false
	case b == "" || last >= uint64(size):
		return int64(first), size - int64(first), true
	}
	return int64(first), int64(last-first) + 1, true
}
