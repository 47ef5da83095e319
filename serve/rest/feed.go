package rest

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// heartbeat is how often a stream of server-sent events shows that it lives.
const heartbeat = 15 * time.Second

// accepts reports whether the client asks for a media type by its name.
func accepts(r *request, types ...string) bool {
	for _, v := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(v, ",") {
			t, p, err := mime.ParseMediaType(part)
			if err != nil || p["q"] == "0" {
				continue
			}
			for _, want := range types {
				if t == want {
					return true
				}
			}
		}
	}
	return false
}

// feed is an answer that goes on: server-sent events, or lines of JSON. What is sent is written at once, and a client that
// doesn't read it holds up whoever sends, for a while, and is cut off then: nothing is kept for it.
type feed struct {
	s   *server
	w   http.ResponseWriter
	r   *request
	rc  *http.ResponseController
	sse bool

	mu    sync.Mutex
	buf   bytes.Buffer
	begun bool
	err   error // of the first write that failed
	stop  chan struct{}
	beats sync.WaitGroup
}

// newFeed makes a feed of the kind that the client asks for. Nothing is sent before the first item or begin.
func newFeed(s *server, w http.ResponseWriter, r *request) *feed {
	return &feed{s: s, w: w, r: r, rc: http.NewResponseController(w), sse: accepts(r, api.EventStream), stop: make(chan struct{})}
}

// begin sends the header, so that the client knows that the stream stands.
func (f *feed) begin() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open()
}

func (f *feed) open() error {
	if f.begun {
		return f.err
	}
	f.begun, f.r.begun = true, true
	f.w.Header().Set("Content-Type", f.mediaType())
	if f.sse {
		f.w.Header().Set("X-Accel-Buffering", "no")
		f.beats.Go(f.beat)
	}
	f.w.WriteHeader(http.StatusOK)
	return f.write(nil)
}

// beat shows that the stream lives, until it is closed.
func (f *feed) beat() {
	t := time.NewTicker(heartbeat)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			f.mu.Lock()
			_ = f.write([]byte(":\n\n")) // whoever sends next learns of a failure
			f.mu.Unlock()
		case <-f.stop:
			return
		}
	}
}

// send writes an item. id and event are for server-sent events; id may be empty.
func (f *feed) send(id, event string, v any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.open(); err != nil {
		return err
	}
	f.buf.Reset()
	if f.sse {
		if id != "" {
			f.buf.WriteString("id: " + id + "\n")
		}
		f.buf.WriteString("event: " + event + "\ndata: ")
	}
	enc := json.NewEncoder(&f.buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	if f.sse {
		f.buf.WriteByte('\n')
	}
	err := f.write(f.buf.Bytes())
	if f.buf.Cap() > 1<<20 {
		f.buf = bytes.Buffer{}
	}
	return err
}

// write sends bytes now. f.mu is held.
func (f *feed) write(b []byte) error {
	if f.err != nil {
		return f.err
	}
	_ = f.rc.SetWriteDeadline(time.Now().Add(f.s.patience))
	defer f.rc.SetWriteDeadline(time.Time{})
	if _, f.err = f.w.Write(b); f.err == nil {
		f.err = f.rc.Flush()
	}
	return f.err
}

// end closes the feed. An error before the first item is answered as any other; later it is an event, or a line {"error":…} and the cut of
// the lines after it, so that it can't be taken for the end.
func (f *feed) end(err error) error {
	close(f.stop)
	f.beats.Wait()
	switch {
	case !f.begun && err != nil:
		return err
	case !f.begun:
		f.begun, f.r.begun = true, true
		f.w.Header().Set("Content-Type", f.mediaType())
		f.w.WriteHeader(http.StatusOK)
		return nil
	case err == nil || f.err != nil || f.r.Context().Err() != nil:
		return nil
	case f.sse:
		p := f.s.problem(f.r, err, nil)
		_ = f.send("", "error", &p)
		return nil
	}
	// Lines have no names: the last one says what went wrong, and the cut that it isn't the end.
	p := f.s.problem(f.r, err, nil)
	_ = f.send("", "", api.Line[api.None, api.None]{Error: &p})
	panic(http.ErrAbortHandler)
}

// started reports whether the header was sent.
func (f *feed) started() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.begun
}

func (f *feed) mediaType() string {
	if f.sse {
		return api.EventStream
	}
	return api.NDJSON
}

// lastEvent is where a client wants to go on.
func lastEvent(r *request) (n uint64, ok bool, err error) {
	if len(r.Header.Values("Last-Event-ID")) == 0 {
		return 0, false, nil
	}
	n, err = strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 64)
	if err != nil {
		return 0, false, errs.Msg(errs.Invalid, "read request", "last-event-id", "want the id of an event")
	}
	return n, true, nil
}
