// Package interpreter serves what E2B's code interpreter SDKs ask of port 49999 of a sandbox: texts that run in contexts and whose
// results are rich.
//
// A context is an interpreter with a language, an id and a state that its texts share. There is one for each language without being
// asked for, the default contexts, whose ids are the languages' names. Others are made; what is known of one, its language and
// its directory, is a file of the sandbox, and its state is the memory of a session (see package node), so that a fork of the
// sandbox has both and a sandbox that slept has both still. A result is what a text shows, or its value, in all the forms that it
// has: text, HTML, images and so on; the forms are named as Jupyter does inside, and as E2B does on the wire.
//
// An answer is a stream of JSON objects, one a line: number_of_executions first, then stdout, stderr and result as they come, and
// error at the end where there is one. keepalive comes where nothing has come for some seconds, so that a client that went away is
// noticed: its text is interrupted then, and the context goes on.
package interpreter

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentrun.dev/access"
	"agentrun.dev/control"
	"agentrun.dev/errs"
)

// Bounds of requests.
const (
	maxBody   = 20 << 20 // bytes of a text with what goes with it
	keepalive = 5 * time.Second
)

// Options configure a handler. Use is required.
type Options struct {
	// Use begins the use of the sandbox that a request is for; see control.Use.
	Use func(r *http.Request, verb access.Verb) (*control.Session, error)
	Log *slog.Logger // nil: nothing is logged
}

// Handler answers requests for code.
type Handler struct {
	use func(r *http.Request, verb access.Verb) (*control.Session, error)
	log *slog.Logger
	mux *http.ServeMux

	mu sync.Mutex
	// counts are how many texts the contexts ran that don't count themselves, by sandbox and context.
	counts map[string]int
}

// New returns a handler.
func New(o Options) *Handler {
	h := &Handler{use: o.Use, log: o.Log, mux: http.NewServeMux(), counts: map[string]int{}}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	h.mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "\"OK\"") })
	h.mux.HandleFunc("POST /execute", h.answer(h.execute))
	h.mux.HandleFunc("GET /contexts", h.answer(h.list))
	h.mux.HandleFunc("POST /contexts", h.answer(h.create))
	h.mux.HandleFunc("DELETE /contexts/{id}", h.answer(h.remove))
	h.mux.HandleFunc("POST /contexts/{id}/restart", h.answer(h.restart))
	return h
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Pages may ask, as they may in E2B: what asks has to know the sandbox and its token.
	w.Header().Set("Access-Control-Allow-Origin", "*")
	if r.Method == http.MethodOptions {
		w.Header().Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
		w.Header().Set("Access-Control-Allow-Headers", "*")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// answer gives a handler the use of the request's sandbox, and answers its error, as text: that is what the SDKs show.
func (h *Handler) answer(f func(w http.ResponseWriter, r *http.Request, s *control.Session) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, err := h.use(r, access.SandboxExec)
		if err != nil {
			status := http.StatusBadGateway // there is no such sandbox, or it doesn't run: the SDKs say so
			switch errs.KindOf(err) {
			case errs.Unauthorized:
				status = http.StatusUnauthorized
			case errs.Denied:
				status = http.StatusForbidden
			case errs.Limit:
				status = http.StatusTooManyRequests
			}
			problem(w, status, err)
			return
		}
		defer s.Close()
		if err := f(w, r, s); err != nil && !errors.Is(err, context.Canceled) {
			problem(w, statusOf(err), err)
		}
	}
}

func statusOf(err error) int {
	switch errs.KindOf(err) {
	case errs.Invalid, errs.Unsupported:
		return http.StatusBadRequest
	case errs.NotFound:
		return http.StatusNotFound
	case errs.Denied:
		return http.StatusForbidden
	case errs.TooLarge:
		return http.StatusRequestEntityTooLarge
	case errs.Limit:
		return http.StatusTooManyRequests
	case errs.NoSpace:
		return http.StatusInsufficientStorage
	case errs.Unavailable:
		return http.StatusBadGateway
	}
	return http.StatusInternalServerError
}

func problem(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	io.WriteString(w, err.Error())
}

// decode reads a request's JSON. Fields that aren't known are left out: a newer client may send more.
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return errs.Msg(errs.TooLarge, "read request", "", "a request has at most "+strconv.Itoa(maxBody)+" bytes")
	}
	if err != nil {
		return errs.New(errs.Invalid, "read request", "", err)
	}
	if len(strings.TrimSpace(string(b))) == 0 {
		return nil
	}
	if err := json.Unmarshal(b, into); err != nil {
		return errs.New(errs.Invalid, "read request", "", err)
	}
	return nil
}

// count counts a text of a context whose session doesn't count.
func (h *Handler) count(sandbox, id string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.counts) > 10000 {
		clear(h.counts) // a number that clients show; no more hangs on it
	}
	h.counts[sandbox+"/"+id]++
	return h.counts[sandbox+"/"+id]
}
