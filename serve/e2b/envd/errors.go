package envd

import (
	"context"
	"errors"
	"net/http"
	"unicode/utf8"

	"connectrpc.com/connect"

	"agentrun.dev/errs"
)

// gone is what clients take as: the sandbox has ended, or sleeps. They look for "was not found" in it.
const gone = "The sandbox was not found"

var errTooManyStreams = errors.New("too many streams are open")

// problem is an error as it is told, in both forms.
type problem struct {
	status int // of HTTP
	code   connect.Code
	text   string
}

func (p *problem) Error() string { return p.text }

func problemOf(status int, code connect.Code, text string) *problem {
	return &problem{status, code, text}
}

func invalid(text string) *problem {
	return problemOf(http.StatusBadRequest, connect.CodeInvalidArgument, text)
}

func notFound(text string) *problem {
	return problemOf(http.StatusNotFound, connect.CodeNotFound, text)
}

// ofUse is an error of beginning to use a sandbox: one that isn't there, has ended, or can't be used now, is gone.
func ofUse(err error) error {
	var p *problem
	if errors.As(err, &p) {
		return err
	}
	switch errs.KindOf(err) {
	case errs.NotFound, errs.Unavailable, errs.Conflict:
		return problemOf(http.StatusBadGateway, connect.CodeUnavailable, gone)
	}
	return err
}

// forms says how errors of each kind are told.
var forms = map[errs.Kind]problem{
	errs.Invalid: {status: http.StatusBadRequest, code: connect.CodeInvalidArgument}, errs.NotFound: {status: http.StatusNotFound, code: connect.CodeNotFound},
	errs.Exists: {status: http.StatusConflict, code: connect.CodeAlreadyExists}, errs.NotEmpty: {status: http.StatusBadRequest, code: connect.CodeFailedPrecondition},
	errs.Conflict: {status: http.StatusConflict, code: connect.CodeFailedPrecondition}, errs.Precondition: {status: http.StatusConflict, code: connect.CodeFailedPrecondition},
	errs.Denied: {status: http.StatusForbidden, code: connect.CodePermissionDenied}, errs.Unauthorized: {status: http.StatusUnauthorized, code: connect.CodeUnauthenticated},
	errs.TooLarge: {status: http.StatusRequestEntityTooLarge, code: connect.CodeResourceExhausted}, errs.Limit: {status: http.StatusTooManyRequests, code: connect.CodeResourceExhausted},
	// Calls have no code for a full disk: what clients take CodeResourceExhausted as is a rate limit, and E2B's own envd says this.
	errs.NoSpace:     {status: http.StatusInsufficientStorage, code: connect.CodeInternal},
	errs.Unavailable: {status: http.StatusBadGateway, code: connect.CodeUnavailable, text: gone}, errs.Unsupported: {status: http.StatusNotImplemented, code: connect.CodeUnimplemented},
	errs.Canceled: {status: 499, code: connect.CodeCanceled},
}

// told translates an error. What is the server's own fault is logged, and told without its cause: that may name what is the host's.
func (h *Handler) told(r *http.Request, err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return problemOf(http.StatusGatewayTimeout, connect.CodeDeadlineExceeded, "the time for it is over")
	}
	form, ok := forms[errs.KindOf(err)]
	if !ok {
		path := ""
		if r != nil {
			path = r.URL.Path
		}
		h.o.Log.Error("request failed", "path", clip(path), "error", err)
		return problemOf(http.StatusInternalServerError, connect.CodeInternal, "internal error")
	}
	if form.text == "" {
		form.text = err.Error()
	}
	return &form
}

// wire is an error of a call.
func (h *Handler) wire(ctx context.Context, err error) error {
	var c *connect.Error
	if err == nil || errors.As(err, &c) {
		return err
	}
	r, _ := ctx.Value(requestKey{}).(*http.Request)
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		err = context.DeadlineExceeded
	}
	p := h.told(r, err)
	return connect.NewError(p.code, errors.New(p.text))
}

// fail answers a request that isn't a call with an error.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := h.told(r, err)
	if p.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	writeError(w, p.status, p.text)
}

// plain is a handler whose error is answered for it.
func (h *Handler) plain(f func(w http.ResponseWriter, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := f(w, r); err != nil {
			h.fail(w, r, err)
		}
	}
}

// clip shortens what a client sent, for an error's text.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	s = s[:most]
	for len(s) > 0 && !utf8.ValidString(s[max(0, len(s)-4):]) && !utf8.RuneStart(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s + "…"
}
