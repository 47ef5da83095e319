package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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
	p := api.Problem{Type: api.ProblemType + strings.ReplaceAll(kind.String(), " ", "-"), Title: title(status), Status: status, Kind: kind.String(),
		Request: r.id, Merge: merge}
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
	if kind == errs.Denied && strings.Contains(p.Op, ".") { // a verb: the guard's word
		p.Rule = p.Cause
	}
	if status >= 500 && kind != errs.Unsupported {
		s.Log.Error("request failed", "request", r.id, "method", r.Method, "path", clip(r.URL.Path), "error", err)
		if kind == errs.Other {
			p.Op, p.Thing, p.Cause, p.Hint = "serve", "", "internal error", "the server's log tells more: request "+r.id
		}
	}
	p.Detail = (&errs.Error{Op: p.Op, Thing: p.Thing, Kind: kind, Err: errors.New(p.Cause)}).Error()
	return p
}

func title(status int) string {
	if status == 499 {
		return "Client Closed Request"
	}
	return http.StatusText(status)
}

// fail answers a request with an error.
func (s *server) fail(w http.ResponseWriter, r *request, err error, merge *api.MergeResult) {
	s.sendProblem(w, s.problem(r, err, merge))
}

func (s *server) sendProblem(w http.ResponseWriter, p api.Problem) {
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="agentrun"`)
	}
	if p.Status == http.StatusServiceUnavailable { // not for limits: most of them time alone doesn't lift
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, p.Status, api.ProblemJSON, p)
}

// answer sends what was asked for. Lists that are nil are sent as empty ones if v is a pointer.
func answer(w http.ResponseWriter, r *request, status int, v any) error {
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer {
		r.shapes.fill(rv)
	}
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
	b, err := readBody(w, r)
	if err != nil {
		return err
	}
	if len(b) == 0 {
		b = []byte("{}")
	} else if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != api.JSON {
		return errs.Msg(errs.Invalid, "read request", "content-type", "want "+api.JSON)
	}
	return r.shapes.decode(b, v)
}

// readBody reads the body of a request, once.
func readBody(w http.ResponseWriter, r *request) ([]byte, error) {
	if r.read {
		return r.body, nil
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(readDeadline))
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, api.MaxBody))
	_ = rc.SetReadDeadline(time.Time{})
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, errs.Msg(errs.TooLarge, "read request", "", fmt.Sprintf("the body has more than %d bytes", api.MaxBody))
	}
	if err != nil {
		return nil, errs.Msg(errs.Invalid, "read request", "", "the body was cut off")
	}
	r.body, r.read = b, true
	return b, nil
}

// decode decodes one JSON value and says where one is wrong.
func (c *shapes) decode(b []byte, v any) error {
	if !utf8.Valid(b) {
		at := 0
		for at < len(b) {
			c, n := utf8.DecodeRune(b[at:])
			if c == utf8.RuneError && n <= 1 {
				break
			}
			at += n
		}
		return errs.Msg(errs.Invalid, "read request", place(b, int64(at)), "not UTF-8")
	}
	if err := c.check(b, reflect.TypeOf(v)); err != nil {
		return err
	}
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
