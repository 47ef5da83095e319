package rest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"

	"agentrun.dev/access"
	"agentrun.dev/control"
	"agentrun.dev/errs"
)

// once answers a request that has an Idempotency-Key: it is done once, and answered so whenever it comes again within a day.
// See draft-ietf-httpapi-idempotency-key-header-07: 422 is a key of another request, 409 one whose first request is still
// being answered.
func (s *server) once(w http.ResponseWriter, r *request, rt *route) error {
	key := r.Header.Get("Idempotency-Key")
	if len(key) >= 2 && key[0] == '"' && key[len(key)-1] == '"' { // a string of structured fields
		key = key[1 : len(key)-1]
	}
	if len(r.Header.Values("Idempotency-Key")) > 1 || key == "" || len(key) > control.MaxOnceKey ||
		strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return errs.Msg(errs.Invalid, "read request", "idempotency-key", "want one, of 1 to 255 printable ASCII characters without spaces")
	}
	if s.Control == nil {
		return errs.Msg(errs.Unsupported, "read request", "idempotency-key", "this server has no sandbox service, which keeps the answers")
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	who := r.caller
	if who == nil {
		who = &access.Caller{}
		who.Principal.Name = "key:" + r.key.ID
	}
	h := sha256.New()
	for _, part := range []string{r.Method, r.URL.Path, r.URL.RawQuery, string(body)} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	var failed error
	a, replayed, err := s.Control.Once(r.Context(), who, key, [32]byte(h.Sum(nil)), func(ctx context.Context) (*control.Answer, error) {
		rec := &recorder{header: http.Header{}}
		r.Request = r.Request.WithContext(ctx) // what is made is recorded together with the key
		if failed = rt.handler(rec, r); failed != nil {
			return nil, failed
		}
		return &control.Answer{Status: rec.status, Header: map[string]string{"Content-Type": rec.header.Get("Content-Type"), "Location": rec.header.Get("Location")},
			Body: rec.body.Bytes(), Secret: rt.secret}, nil
	})
	switch {
	case errors.Is(err, control.ErrReused):
		p := s.problem(r, err, nil)
		p.Status, p.Title = http.StatusUnprocessableEntity, http.StatusText(http.StatusUnprocessableEntity)
		s.sendProblem(w, p)
		return nil
	case err != nil:
		return err
	}
	for name, v := range a.Header {
		if v != "" {
			w.Header().Set(name, v)
		}
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
