package e2b

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// statuses says which HTTP status an error's kind is: those of which the SDKs make types of their own among them. What isn't
// supported is the client's to leave out.
var statuses = map[errs.Kind]int{
	errs.Invalid: http.StatusBadRequest, errs.NotFound: http.StatusNotFound, errs.Exists: http.StatusConflict,
	errs.NotEmpty: http.StatusConflict, errs.Conflict: http.StatusConflict, errs.Precondition: http.StatusConflict,
	errs.Denied: http.StatusForbidden, errs.Unauthorized: http.StatusUnauthorized, errs.TooLarge: http.StatusRequestEntityTooLarge,
	errs.Limit: http.StatusTooManyRequests, errs.NoSpace: http.StatusInsufficientStorage, errs.Unavailable: http.StatusServiceUnavailable,
	errs.Unsupported: http.StatusBadRequest, errs.Canceled: 499, // nobody reads it; the log does
}

// apiError is an error as the protocol has it. SandboxID is what the way to a sandbox adds.
type apiError struct {
	Code      int    `json:"code"`
	Message   string `json:"message"`
	SandboxID string `json:"sandboxId,omitempty"`
}

// errorOf translates an error. What is the server's own fault is logged, and told without its cause.
func (h *Handler) errorOf(r *request, err error) apiError {
	kind := errs.KindOf(err)
	status, ok := statuses[kind]
	if !ok {
		status = http.StatusInternalServerError
	}
	e := apiError{Code: status, Message: message(err)}
	if status >= 500 && status != http.StatusInsufficientStorage {
		h.Log.Error("request failed", "request", r.id, "method", r.Method, "path", clip(r.URL.Path), "error", err)
		if status == http.StatusInternalServerError {
			e.Message = "internal error; the server's log tells more: request " + r.id
		}
	}
	return e
}

// message is an error in words, with what to do about it.
func message(err error) string {
	text := err.Error()
	if hint := errs.HintOf(err); hint != "" {
		text += " (" + hint + ")"
	}
	return text
}

// fail answers a request with an error.
func (h *Handler) fail(w http.ResponseWriter, r *request, err error) {
	e := h.errorOf(r, err)
	if r.target.kind == within && (e.Code == http.StatusNotFound || e.Code == http.StatusServiceUnavailable) {
		// Clients take this as: the sandbox has ended, or sleeps.
		e.Code, e.SandboxID = http.StatusBadGateway, r.target.sandbox
		if e.SandboxID == "" {
			e.SandboxID = r.sandbox
		}
	}
	w.Header().Set("Cache-Control", "no-store")
	if e.Code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, e.Code, e)
}

// Deadlines of a client: to send the whole body of a request, and to accept what is written at once.
const (
	readDeadline  = 30 * time.Second
	writeDeadline = time.Minute
)

// writeJSON writes an answer. That it doesn't arrive is the client's loss, who went away.
func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"code":500,"message":"internal error"}`)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeDeadline))
	w.Header().Set("Content-Type", api.JSON)
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// decode reads the body of a request: one JSON value of at most api.MaxBody bytes. Fields that aren't known are accepted. An empty
// body is an empty value.
func decode(w http.ResponseWriter, r *request, v any) error {
	b, err := readBody(w, r)
	if err != nil || len(b) == 0 {
		return err
	}
	err = json.Unmarshal(b, v)
	var typ *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &typ):
		return errs.Msg(errs.Invalid, "read request", typ.Field, "want "+typ.Type.String()+", not "+typ.Value)
	}
	return errs.Msg(errs.Invalid, "read request", "", "the body isn't JSON: "+clip(err.Error()))
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
