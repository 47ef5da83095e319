package js

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
)

const (
	maxBody      = 64 << 20 // bytes of an answer's body
	fetchTimeout = 5 * time.Minute
)

// request is what the guest wants to be fetched; the body is apart.
type request struct {
	Method, URL, Redirect string
	Headers               [][2]string
}

// response is what it gets, with the body behind it. Error is set when there is none.
type response struct {
	Status     int         `json:"status,omitempty"`
	StatusText string      `json:"statusText,omitempty"`
	Headers    [][2]string `json:"headers,omitempty"`
	URL        string      `json:"url,omitempty"`
	Redirected bool        `json:"redirected,omitempty"`
	Error      string      `json:"error,omitempty"`
	Code       string      `json:"code,omitempty"`
}

// fetch makes one request in the process's name. The answer is the length of a response as JSON (four bytes, little endian), that, and the body.
func (in *Interpreter) fetch(p *proc.Process, head, body []byte) ([]byte, error) {
	var q request
	if err := json.Unmarshal(head, &q); err != nil {
		return nil, syscall.EINVAL
	}
	r, content := in.request(p, q, body)
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(text)+len(content)), uint32(len(text)))
	return append(append(out, text...), content...), nil
}

func (in *Interpreter) request(p *proc.Process, q request, body []byte) (response, []byte) {
	ctx, cancel := context.WithTimeout(p.Context(), fetchTimeout)
	defer cancel()
	failed := func(err error) (response, []byte) {
		code := "ECONNREFUSED"
		if errs.KindOf(err) == errs.Denied {
			code = "EACCES"
		}
		text := err.Error()
		var e *errs.Error
		if errors.As(err, &e) {
			text = e.Error()
			if e.Hint != "" {
				text += " (" + e.Hint + ")"
			}
		}
		return response{Error: text, Code: code}, nil
	}
	if in.o.Connect == nil {
		return failed(errs.Msg(errs.Denied, "connect", q.URL, "this sandbox has no network"))
	}
	t := &http.Transport{DialContext: in.o.Connect(p), DisableKeepAlives: true, MaxResponseHeaderBytes: 1 << 20}
	c := &http.Client{Transport: t, CheckRedirect: func(_ *http.Request, via []*http.Request) error {
		switch {
		case q.Redirect == "manual":
			return http.ErrUseLastResponse
		case q.Redirect == "error":
			return errors.New("unexpected redirect")
		case len(via) > 20:
			return errors.New("redirect count exceeded")
		}
		return nil
	}}
	hr, err := http.NewRequestWithContext(ctx, q.Method, q.URL, strings.NewReader(string(body)))
	if err != nil {
		return failed(err)
	}
	hr.Header.Set("Accept", "*/*")
	hr.Header.Set("User-Agent", "node")
	for _, h := range q.Headers {
		hr.Header.Add(h[0], h[1])
	}
	res, err := c.Do(hr)
	if err != nil {
		return failed(err)
	}
	defer res.Body.Close()
	content, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if err == nil && len(content) > maxBody {
		err = errs.Msg(errs.TooLarge, "fetch", q.URL, "the answer is larger than 64 MiB")
	}
	if err != nil {
		return failed(err)
	}
	r := response{Status: res.StatusCode, StatusText: http.StatusText(res.StatusCode), URL: res.Request.URL.String(), Redirected: res.Request.URL.String() != q.URL}
	for name, values := range res.Header {
		for _, v := range values {
			r.Headers = append(r.Headers, [2]string{strings.ToLower(name), v})
		}
	}
	return r, content
}
