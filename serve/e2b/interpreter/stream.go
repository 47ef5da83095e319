package interpreter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"agentrun.dev/node"
)

// maxPiece bounds what one line says of a stream.
const maxPiece = 64 << 10

// answer is the stream of lines of a text that runs. Its methods may be called at once.
type answer struct {
	w     http.ResponseWriter
	flush func() error
	mu    sync.Mutex
	last  time.Time // when something was written
	wrong bool      // an error was told
	over  chan struct{}
	wait  sync.WaitGroup
	parts []*part
}

// part is one of the two streams of text.
type part struct {
	a    *answer
	kind string
	held []byte // the beginning of a character whose end hasn't come
}

// begin begins an answer.
func begin(w http.ResponseWriter) *answer {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	a := &answer{w: w, flush: http.NewResponseController(w).Flush, last: time.Now(), over: make(chan struct{})}
	a.wait.Go(func() {
		tick := time.NewTicker(keepalive / 2)
		defer tick.Stop()
		for {
			select {
			case <-a.over:
				return
			case <-tick.C:
				a.mu.Lock()
				if time.Since(a.last) >= keepalive/2 {
					a.write(message{Type: "keepalive"})
				}
				a.mu.Unlock()
			}
		}
	})
	return a
}

// end ends an answer, once nothing writes to it any more.
func (a *answer) end() {
	close(a.over)
	a.wait.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.parts {
		p.rest()
	}
	a.write(message{Type: "end_of_execution"})
}

// write writes a line, of ASCII only: a client may read it in pieces that cut characters. mu is held.
func (a *answer) write(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		return
	}
	_, err = a.w.Write(append(ascii(b), '\n'))
	if err == nil {
		_ = a.flush() // the request's context says when the client has gone
	}
	a.last = time.Now()
}

func (a *answer) event(v any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.write(v)
}

// rich tells a message of the text.
func (a *answer) rich(m node.Rich) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.parts {
		p.rest()
	}
	switch {
	case m.Error != nil:
		a.error(m.Error)
	case m.Data != nil:
		a.write(result(m))
	case m.Count > 0:
		a.write(message{Type: "number_of_executions", Count: m.Count})
	}
}

// failed tells the text's error.
func (a *answer) failed(e *node.CodeError) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.error(e)
}

func (a *answer) error(e *node.CodeError) {
	a.wrong = true
	a.write(map[string]string{"type": "error", "name": e.Name, "value": e.Value, "traceback": e.Traceback})
}

// stream returns the writer of one of the two streams of text.
func (a *answer) stream(kind string) io.Writer {
	p := &part{a: a, kind: kind}
	a.parts = append(a.parts, p)
	return p
}

// Write tells what comes, without the beginning of a character at its end.
func (p *part) Write(b []byte) (int, error) {
	p.a.mu.Lock()
	defer p.a.mu.Unlock()
	n := len(b)
	if len(p.held) > 0 {
		b, p.held = append(p.held, b...), nil
	}
	for len(b) > 0 {
		k := min(len(b), maxPiece)
		whole := wholeRunes(b[:k])
		if whole == 0 && k == len(b) {
			p.held = bytes.Clone(b)
			break
		}
		if whole == 0 {
			whole = k
		}
		p.a.write(message{Type: p.kind, Text: string(bytes.ToValidUTF8(b[:whole], []byte("\uFFFD"))), Timestamp: now()})
		b = b[whole:]
	}
	return n, nil
}

// rest tells what was held back: nothing more comes.
func (p *part) rest() {
	if len(p.held) > 0 {
		p.a.write(message{Type: p.kind, Text: "\uFFFD", Timestamp: now()})
		p.held = nil
	}
}

// wholeRunes is how many bytes of b are left without the beginning of a character at its end.
func wholeRunes(b []byte) int {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if utf8.FullRune(b[i:]) {
				return len(b)
			}
			return i
		}
	}
	return len(b)
}

// ascii writes what isn't ASCII of JSON as escapes.
func ascii(b []byte) []byte {
	if !bytes.ContainsFunc(b, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return b
	}
	out := make([]byte, 0, len(b)+len(b)/2)
	for _, r := range string(b) {
		switch {
		case r < utf8.RuneSelf:
			out = append(out, byte(r))
		case r < 0x10000:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		}
	}
	return out
}

func statusText(n int) string { return strconv.Itoa(n) }
