package rest

import (
	"bufio"
	"encoding/json"
	"net/http"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/bucket"
)

// flushEvery is how long a line of a stream may wait for its neighbours.
const flushEvery = 200 * time.Millisecond

// stream answers with lines or, where the client doesn't accept them, with the result alone. Nothing is sent before the
// first line, so what fails early has its own status.
type stream[I, R any] struct {
	s       *server
	w       http.ResponseWriter
	r       *request
	lines   bool
	begun   bool
	buf     *bufio.Writer
	enc     *json.Encoder
	flushed time.Time
}

func newStream[I, R any](s *server, w http.ResponseWriter, r *request, lines bool) *stream[I, R] {
	st := &stream[I, R]{s: s, w: w, r: r, lines: lines, buf: bufio.NewWriterSize(w, 32<<10)}
	st.enc = json.NewEncoder(st.buf)
	st.enc.SetEscapeHTML(false)
	return st
}

// send writes a line, and sees that it isn't held back for long.
func (st *stream[I, R]) send(line api.Line[I, R], flush bool) error {
	if !st.begun {
		st.begun, st.r.begun = true, true
		st.w.Header().Set("Content-Type", api.NDJSON)
		st.w.WriteHeader(http.StatusOK)
	}
	rc := http.NewResponseController(st.w)
	now := time.Now()
	flush = flush || now.Sub(st.flushed) >= flushEvery
	// The deadline holds while something is being written, not while the next line is being found.
	_ = rc.SetWriteDeadline(now.Add(st.s.patience))
	defer rc.SetWriteDeadline(time.Time{})
	if err := st.enc.Encode(line); err != nil || !flush {
		return err
	}
	st.flushed = now
	if err := st.buf.Flush(); err != nil {
		return err
	}
	return rc.Flush()
}

func (st *stream[I, R]) item(i *I) error { return st.send(api.Line[I, R]{Item: i}, false) }

// progress passes on how far something has come, not more often than a person can read. That the client has gone is
// seen by the context.
func (st *stream[I, R]) progress(p bucket.Progress) {
	if !st.lines || time.Since(st.flushed) < flushEvery {
		return
	}
	_ = st.send(api.Line[I, R]{Progress: &api.Progress{Phase: p.Phase, Done: p.Done, Total: p.Total}}, true)
}

// end answers with the result, or with the error. merge goes with an error.
func (st *stream[I, R]) end(res *R, err error, merge *api.MergeResult) error {
	switch {
	case err != nil && !st.begun:
		st.s.fail(st.w, st.r, err, merge)
	case err != nil:
		p := st.s.problem(st.r, err, merge)
		_ = st.send(api.Line[I, R]{Error: &p}, true)
	case st.lines:
		_ = st.send(api.Line[I, R]{Result: res}, true)
	default:
		return answer(st.w, st.r, http.StatusOK, res)
	}
	return nil
}
