package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// statuses says which HTTP status an error's kind is, when a target is dialled.
var statuses = map[errs.Kind]int{
	errs.Invalid: http.StatusBadRequest, errs.NotFound: http.StatusNotFound, errs.Conflict: http.StatusConflict, errs.Denied: http.StatusForbidden,
	errs.Unauthorized: http.StatusUnauthorized, errs.Limit: http.StatusTooManyRequests, errs.NoSpace: http.StatusInsufficientStorage,
	errs.Unavailable: http.StatusBadGateway, errs.Unsupported: http.StatusNotImplemented, errs.Canceled: 499, // nobody reads it; the log does
}

// refused answers a request whose target couldn't be dialled.
func (p *proxy) refused(w http.ResponseWriter, r *http.Request, t Target, err error) {
	where := fmt.Sprintf("port %d in sandbox %s", t.Port, t.Sandbox)
	kind := errs.KindOf(err)
	status, ok := statuses[kind]
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		status, err = http.StatusGatewayTimeout, errs.Msg(errs.Unavailable, "connect", where, "not within "+p.DialTime.String())
	case errors.Is(err, context.Canceled):
		err = errs.New(errs.Canceled, "connect", where, err)
	case kind == errs.Unavailable:
		err = errs.Msg(kind, "connect", "", "nothing listens on "+where+": "+cause(err)).
			WithHint("start a server there that listens on 127.0.0.1 or 0.0.0.0")
	case !ok:
		p.Log.Error("dial failed", "sandbox", t.Sandbox, "port", t.Port, "error", err)
		status, err = http.StatusInternalServerError, errs.Msg(errs.Other, "connect", where, "internal error")
	}
	p.problem(w, status, err)
}

// failed answers a request whose server failed before an answer began.
func (p *proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	t := exchangeOf(r.Context()).Target
	where := fmt.Sprintf("port %d in sandbox %s", t.Port, t.Sandbox)
	var late interface{ Timeout() bool }
	status, text := http.StatusBadGateway, "the server there gave no answer that is HTTP: "+clip(err.Error())
	switch {
	case r.Context().Err() != nil:
		status, text = 499, "the client went away"
	case errors.As(err, &late) && late.Timeout():
		status, text = http.StatusGatewayTimeout, "the server there didn't answer in time"
	}
	p.Log.Debug("server in sandbox failed", "sandbox", t.Sandbox, "port", t.Port, "error", err)
	p.problem(w, status, errs.Msg(errs.Unavailable, "connect", where, text))
}

// problem answers with an error.
func (p *proxy) problem(w http.ResponseWriter, status int, err error) {
	kind := errs.KindOf(err)
	out := api.Problem{Title: http.StatusText(status), Status: status, Kind: kind.String(), Detail: err.Error(), Hint: errs.HintOf(err),
		Cause: cause(err), Request: w.Header().Get("X-Request-Id")}
	var e *errs.Error
	if errors.As(err, &e) {
		out.Op, out.Thing = e.Op, e.Thing
	}
	b, err := json.Marshal(out)
	if err != nil { // no such value
		b = []byte("{}")
	}
	b = append(b, '\n')
	h := w.Header()
	h.Set("Content-Type", api.ProblemJSON)
	h.Set("Content-Length", strconv.Itoa(len(b)))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// cause is the last part of an error's text.
func cause(err error) string {
	var e *errs.Error
	if errors.As(err, &e) {
		if e.Err == nil {
			return e.Kind.String()
		}
		return cause(e.Err)
	}
	return clip(err.Error())
}

// clip shortens a text that comes from outside.
func clip(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}
