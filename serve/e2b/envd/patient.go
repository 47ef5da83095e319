package envd

import (
	"io"
	"net/http"
	"time"
)

// patient is a response whose client must accept the next bytes in time.
type patient struct {
	http.ResponseWriter
	rc       *http.ResponseController
	patience time.Duration
}

func (p *patient) Write(b []byte) (int, error) {
	_ = p.rc.SetWriteDeadline(time.Now().Add(p.patience)) // a writer without deadlines has none
	return p.ResponseWriter.Write(b)
}

// Flush implements http.Flusher.
func (p *patient) Flush() {
	_ = p.rc.SetWriteDeadline(time.Now().Add(p.patience))
	_ = p.rc.Flush() // the next write tells
}

// Unwrap is for http.ResponseController.
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// done leaves the connection to the next request.
func (p *patient) done() {
	_ = p.rc.SetWriteDeadline(time.Time{})
	_ = p.rc.SetReadDeadline(time.Time{})
}

// body is a request's, which may take as long as it keeps moving.
type body struct {
	io.ReadCloser
	rc       *http.ResponseController
	patience time.Duration
	ended    bool
}

func (b *body) Read(p []byte) (int, error) {
	if !b.ended {
		_ = b.rc.SetReadDeadline(time.Now().Add(b.patience))
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil && !b.ended {
		b.ended = true
		_ = b.rc.SetReadDeadline(time.Time{}) // what watches whether the client goes must not run out of time
	}
	return n, err
}
