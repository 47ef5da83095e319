package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// statuses says which HTTP status an error's kind is.
var statuses = map[errs.Kind]int{
	errs.Invalid: http.StatusBadRequest, errs.NotFound: http.StatusNotFound, errs.Exists: http.StatusConflict,
	errs.NotEmpty: http.StatusConflict, errs.Conflict: http.StatusConflict, errs.Precondition: http.StatusPreconditionFailed,
	errs.Denied: http.StatusForbidden, errs.Unauthorized: http.StatusUnauthorized, errs.TooLarge: http.StatusRequestEntityTooLarge,
	errs.Limit: http.StatusTooManyRequests, errs.NoSpace: http.StatusInsufficientStorage, errs.Unavailable: http.StatusServiceUnavailable,
	errs.Unsupported: http.StatusNotImplemented, errs.Canceled: 499, // nobody reads it; the log does
}

// problem translates an error. What is the server's own fault is logged, and told without its cause, which may name paths
// and addresses of the host.
func (s *server) problem(r *request, err error, merge *api.MergeResult) api.Problem {
	kind := errs.KindOf(err)
	status, ok := statuses[kind]
	if !ok {
		status = http.StatusInternalServerError
	}
	p := api.Problem{Title: http.StatusText(status), Status: status, Kind: kind.String(), Request: r.id, Merge: merge}
	var e *errs.Error
	if errors.As(err, &e) {
		p.Op, p.Thing = e.Op, e.Thing
		if e.Err != nil {
			p.Cause = e.Err.Error()
		}
	}
	if p.Cause == "" {
		p.Cause = kind.String()
	}
	p.Hint = errs.HintOf(err)
	if status >= 500 && kind != errs.Unsupported {
		s.Log.Error("request failed", "request", r.id, "method", r.Method, "path", clip(r.URL.Path), "error", err)
		if kind == errs.Other {
			p.Op, p.Thing, p.Cause, p.Hint = "serve", "", "internal error", "the server's log tells more: request "+r.id
		}
	}
	p.Detail = (&errs.Error{Op: p.Op, Thing: p.Thing, Kind: kind, Err: errors.New(p.Cause)}).Error()
	return p
}

// fail answers a request with an error.
func (s *server) fail(w http.ResponseWriter, r *request, err error, merge *api.MergeResult) {
	p := s.problem(r, err, merge)
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="agentrun"`)
	}
	if p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, p.Status, api.ProblemJSON, p)
}

func answer(w http.ResponseWriter, status int, v any) error {
	writeJSON(w, status, api.JSON, v)
	return nil
}

// Deadlines of a client: to send the whole body of a request, and to accept what is written at once.
const (
	readDeadline  = 30 * time.Second
	writeDeadline = time.Minute
)

// writeJSON writes an answer. That it doesn't arrive is the client's loss, who went away.
func writeJSON(w http.ResponseWriter, status int, contentType string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte("{}")
	}
	b = append(b, '\n')
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeDeadline))
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// decode reads the body of a request: one JSON value of at most api.MaxBody bytes, without fields that aren't known. An
// empty body is an empty value.
func decode(w http.ResponseWriter, r *request, v any) error {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(readDeadline))
	body := http.MaxBytesReader(w, r.Body, api.MaxBody)
	b, err := io.ReadAll(body)
	_ = rc.SetReadDeadline(time.Time{})
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return errs.Msg(errs.TooLarge, "read request", "", fmt.Sprintf("the body has more than %d bytes", api.MaxBody))
	}
	if err != nil {
		return errs.Msg(errs.Invalid, "read request", "", "the body was cut off")
	}
	if len(b) == 0 {
		return nil
	}
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != api.JSON {
		return errs.Msg(errs.Invalid, "read request", "content-type", "want "+api.JSON)
	}
	return decodeStrict(b, v)
}

// decodeStrict decodes one JSON value and says where one is wrong.
func decodeStrict(b []byte, v any) error {
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil {
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return errs.Msg(errs.Invalid, "read request", place(b, dec.InputOffset()), "something follows the JSON value")
		}
		return nil
	}
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return errs.Msg(errs.Invalid, "read request", place(b, syntax.Offset-1), syntax.Error())
	case errors.As(err, &typ):
		where := place(b, typ.Offset)
		if typ.Field != "" {
			where = typ.Field + ", " + where
		}
		return errs.Msg(errs.Invalid, "read request", where, "want "+typ.Type.String()+", not "+typ.Value)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errs.Msg(errs.Invalid, "read request", place(b, int64(len(b))), "the JSON ends in the middle")
	}
	return errs.Msg(errs.Invalid, "read request", place(b, dec.InputOffset()), strings.TrimPrefix(clip(err.Error()), "json: "))
}

// place says where an offset is.
func place(b []byte, offset int64) string {
	offset = max(0, min(offset, int64(len(b))))
	before := string(b[:offset])
	line := strings.Count(before, "\n")
	return fmt.Sprintf("line %d, column %d", line+1, len(before)-strings.LastIndexByte(before, '\n'))
}

// query returns a request's query, in which nothing but the named parameters may stand, each once.
func query(r *request, names ...string) (map[string]string, error) {
	out := make(map[string]string, len(names))
	values := r.URL.Query()
next:
	for name, vs := range values {
		for _, n := range names {
			if n == name {
				if len(vs) != 1 {
					return nil, errs.Msg(errs.Invalid, "read request", name, "given more than once")
				}
				out[name] = vs[0]
				continue next
			}
		}
		return nil, errs.Msg(errs.Invalid, "read request", clip(name), "no such parameter here")
	}
	return out, nil
}

// boolean reads a parameter that is true or false.
func boolean(name, value string) (bool, error) {
	if value == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(value)
	if err != nil {
		return false, errs.Msg(errs.Invalid, "read request", name, "want true or false")
	}
	return b, nil
}
