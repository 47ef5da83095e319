// Package envd is the inside of a sandbox as E2B's SDKs ask for it at its port 49983: commands, files, changes of files.
//
// A command is what Start began, or what runs already and was taken up: it has a number (pid), perhaps a tag, and followers, the
// streams that are told of it from when they came. It goes on when they go, until the time that its starter gave it (Connect-Timeout-Ms)
// is over. What it ended with is kept a while for those who come late. A watcher is a place whose files are compared with what they were
// when they were last looked at: a stream's own (WatchDir), or a client's that asks from time to time (CreateWatcher).
//
// Requests act for a user of the sandbox, "user" or "root", named in Authorization (Basic, without a password) or in ?username=. As in
// E2B's sandboxes both may do everything with files, and what is made belongs to whom the request acts for. Paths that aren't absolute
// begin at that user's home.
//
// Streams don't hold the sandbox: it may hibernate or end meanwhile. Then the connection is cut, as one to a machine that is gone would be;
// clients ask /health what happened.
package envd

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"agentrun.dev/access"
	"agentrun.dev/api/gen/e2b/filesystem/filesystemconnect"
	"agentrun.dev/api/gen/e2b/process/processconnect"
	"agentrun.dev/control"
)

// Version is the protocol's that is spoken here.
const Version = "0.6.4"

// Limits of requests.
const (
	maxMessage  = 16 << 20 // bytes of a call's message
	maxStreams  = 4096     // at once
	maxUpload   = 64 << 30 // bytes of files in one request
	maxParts    = 10_000   // files in one request
	maxMetadata = 100      // of a file
)

// Options configure a handler. Use is required.
type Options struct {
	// Use begins a use of the sandbox that a request is for, by whoever was found to ask. errs.NotFound, errs.Conflict and errs.Unavailable
	// are that it doesn't run.
	Use func(r *http.Request, verb access.Verb) (*control.Session, error)
	// Defaults are the user whom requests act for that name none, and where their relative paths and commands begin; empty ones are
	// "user" and the user's home. nil: all are empty.
	Defaults func(s *control.Session) (user, dir string)
	Log      *slog.Logger  // nil: nothing is logged
	Patience time.Duration // how long a client may take to accept, or to send, the next bytes; a minute when 0
	Kept     time.Duration // how long it is remembered how a command ended; ten minutes when 0
}

// Handler answers requests for the inside of sandboxes.
type Handler struct {
	o        Options
	mux      *http.ServeMux
	streams  chan struct{}
	commands commands
	watchers watchers
	readers  readers
	buffers  sync.Pool // *[]byte of sendBuffer bytes
}

// New returns a handler.
func New(o Options) *Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Patience <= 0 {
		o.Patience = time.Minute
	}
	if o.Kept <= 0 {
		o.Kept = 10 * time.Minute
	}
	h := &Handler{o: o, mux: http.NewServeMux(), streams: make(chan struct{}, maxStreams)}
	h.commands.kept = o.Kept
	options := []connect.HandlerOption{connect.WithReadMaxBytes(maxMessage), connect.WithCompressMinBytes(1 << 20)}
	for _, add := range []func() (string, http.Handler){
		func() (string, http.Handler) { return processconnect.NewProcessHandler(processes{h: h}, options...) },
		func() (string, http.Handler) {
			return filesystemconnect.NewFilesystemHandler(filesystem{h: h}, options...)
		},
	} {
		path, handler := add()
		h.mux.Handle("POST "+path, h.known(handler))
	}
	h.mux.HandleFunc("GET /health", h.health)
	h.mux.HandleFunc("GET /files", h.plain(h.download))
	h.mux.HandleFunc("POST /files", h.plain(h.upload))
	h.mux.HandleFunc("POST /files/compose", h.plain(h.compose))
	h.mux.HandleFunc("/", unknown)
	return h
}

// requestKey finds a call's request in its context.
type requestKey struct{}

func (h *Handler) ServeHTTP(hw http.ResponseWriter, r *http.Request) {
	w := &patient{ResponseWriter: hw, rc: http.NewResponseController(hw), patience: h.o.Patience}
	defer w.done()
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &body{ReadCloser: r.Body, rc: w.rc, patience: h.patienceFor(r)}
	}
	ctx := context.WithValue(r.Context(), requestKey{}, r)
	h.mux.ServeHTTP(w, r.WithContext(ctx))
}

// patienceFor is how long a client may take for the next bytes of its request: streams of input last.
func (h *Handler) patienceFor(r *http.Request) time.Duration {
	if r.URL.Path == processconnect.ProcessStreamInputProcedure {
		return 24 * time.Hour
	}
	return h.o.Patience
}

// known answers calls that there are; others are told which version this is.
func (h *Handler) known(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !procedures[r.URL.Path] {
			unknown(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// procedures are the calls that there are.
var procedures = map[string]bool{
	processconnect.ProcessListProcedure: true, processconnect.ProcessStartProcedure: true, processconnect.ProcessConnectProcedure: true,
	processconnect.ProcessUpdateProcedure: true, processconnect.ProcessSendInputProcedure: true, processconnect.ProcessStreamInputProcedure: true,
	processconnect.ProcessCloseStdinProcedure: true, processconnect.ProcessSendSignalProcedure: true,
	filesystemconnect.FilesystemStatProcedure: true, filesystemconnect.FilesystemMakeDirProcedure: true, filesystemconnect.FilesystemMoveProcedure: true,
	filesystemconnect.FilesystemListDirProcedure: true, filesystemconnect.FilesystemRemoveProcedure: true, filesystemconnect.FilesystemWatchDirProcedure: true,
	filesystemconnect.FilesystemCreateWatcherProcedure: true, filesystemconnect.FilesystemGetWatcherEventsProcedure: true,
	filesystemconnect.FilesystemRemoveWatcherProcedure: true,
}

// unknown answers what isn't known: a newer client asks for it.
func unknown(w http.ResponseWriter, r *http.Request) {
	text := "this server doesn't know " + clip(r.Method+" "+r.URL.Path) + "; it speaks envd " + Version
	if strings.HasPrefix(r.URL.Path, "/process.") || strings.HasPrefix(r.URL.Path, "/filesystem.") {
		writeJSON(w, http.StatusNotFound, map[string]string{"code": connect.CodeUnimplemented.String(), "message": text})
		return
	}
	writeError(w, http.StatusNotFound, text)
}

// health answers that the sandbox runs.
func (h *Handler) health(w http.ResponseWriter, r *http.Request) {
	s, err := h.o.Use(r, access.SandboxGet)
	if err != nil {
		h.fail(w, r, ofUse(err))
		return
	}
	s.Close()
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
}

// stream takes a place among the streams.
func (h *Handler) stream() (give func(), err error) {
	select {
	case h.streams <- struct{}{}:
		return func() { <-h.streams }, nil
	default:
		return nil, connect.NewError(connect.CodeResourceExhausted, errTooManyStreams)
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"code":500,"message":"internal error"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

// writeError answers with an error as E2B's clients read it.
func writeError(w http.ResponseWriter, status int, text string) {
	writeJSON(w, status, struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{status, text})
}
