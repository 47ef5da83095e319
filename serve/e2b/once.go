package e2b

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"

	"agentrun.dev/control"
	"agentrun.dev/errs"
)

// once answers a request that has an Idempotency-Key: it is done once, and answered so whenever it comes again within a day. Another
// request with its key is 422, one that comes while the first is being answered 409.
func (h *Handler) once(w http.ResponseWriter, r *request) error {
	keys := r.Header.Values("Idempotency-Key")
	key := strings.Trim(keys[0], `"`)
	if len(keys) > 1 || key == "" || len(key) > control.MaxOnceKey || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return errs.Msg(errs.Invalid, "read request", "idempotency-key", "want one, of 1 to 255 printable ASCII characters without spaces")
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	print := sha256.New()
	for _, part := range []string{"e2b", r.Method, r.URL.Path, r.URL.RawQuery, string(body)} {
		print.Write([]byte(part))
		print.Write([]byte{0})
	}
	a, replayed, err := h.Control.Once(r.Context(), r.who, key, [32]byte(print.Sum(nil)), func(ctx context.Context) (*control.Answer, error) {
		rec := &recorder{header: http.Header{}}
		r.Request = r.Request.WithContext(ctx) // what is made is recorded together with the key
		if err := r.route.do(rec, r); err != nil {
			return nil, err
		}
		return &control.Answer{Status: rec.status, Header: map[string]string{"Content-Type": rec.header.Get("Content-Type")}, Body: rec.body.Bytes(), Secret: true}, nil
	})
	if errors.Is(err, control.ErrReused) {
		writeJSON(w, http.StatusUnprocessableEntity, apiError{Code: http.StatusUnprocessableEntity, Message: message(err)})
		return nil
	}
	if err != nil {
		return err
	}
	if t := a.Header["Content-Type"]; t != "" {
		w.Header().Set("Content-Type", t)
	}
	if replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body)
	return nil
}

// recorder keeps an answer instead of sending it.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}
