package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
)

// still is a server that does nothing: it answers the calls of the group sdks with what the real one answers, as soon as it has read them.
// What an SDK takes for them is its own.
type still struct {
	l     net.Listener
	wg    sync.WaitGroup
	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newStill() (*still, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &still{l: l, conns: map[net.Conn]bool{}}
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[c] = true
			s.mu.Unlock()
			s.wg.Go(func() { s.serve(c) })
		}
	})
	return s, nil
}

func (s *still) endpoint() string { return "http://" + s.l.Addr().String() }

func (s *still) close() {
	_ = s.l.Close()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// serve answers requests until the client goes.
func (s *still) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReaderSize(c, 64<<10)
	buf := make([]byte, 256<<10)
	answers := stillAnswers()
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, req.Body, buf); err != nil {
			return
		}
		for _, a := range answers {
			if a.method != req.Method || !strings.HasPrefix(req.URL.Path, a.prefix) || !strings.HasSuffix(req.URL.Path, a.suffix) {
				continue
			}
			if _, err := c.Write(a.bytes); err != nil {
				return
			}
			break
		}
	}
}

// stillAnswer is what a call is answered with.
type stillAnswer struct {
	method, prefix, suffix string
	bytes                  []byte
}

// stillAnswers are those of the calls of the group sdks, in the form in which the real server answers them.
func stillAnswers() []stillAnswer {
	const (
		id      = "01a200b3-95f3-7f0f-80a4-b5d7cf30801c"
		common  = "X-Content-Type-Options: nosniff\r\nX-Request-Id: 2330dc1c02914410\r\nDate: Sun, 22 Nov 2026 00:41:39 GMT\r\n"
		json    = "Content-Type: application/json\r\nCache-Control: no-store\r\n" + common
		file    = "Accept-Ranges: bytes\r\nContent-Type: application/octet-stream\r\nLast-Modified: Sun, 22 Nov 2026 00:41:39 GMT\r\n" + common
		created = `{"sandboxID":"` + id + `","templateID":"base","alias":"base","clientID":"agentrun","envdVersion":"0.6.4","envdAccessToken":` +
			`"P63iHyryMnWfNDs2INYhiaBN5KdoP_1YlvMzZSN_LlBlbnZkIDAxYTIwMGIzLTk1ZjMtN2YwZi04MGE0LWI1ZDdjZjMwODAxYyByb290IGFkbWlu",` +
			`"trafficAccessToken":null,"domain":"localhost:7070"}`
		sandbox = `{"id":"` + id + `","state":"running","template":"base","version":1,"root":"` + id + `","depth":0,"owner":"root","visibility":"private",` +
			`"node":"local","engine":"userspace","endpoint":"127.0.0.1:7070","volumes":[{"name":"workspace","path":"/workspace","bucket":"sandbox-` + id +
			`-workspace","forkPolicy":"Snapshot"}],"network":{"egress":"allow"},"lease":{"duration":600,"extend":600,"onExpiry":"hibernate",` +
			`"sleep":2592000,"retention":604800},"created":"2026-11-22T00:41:39.613971536Z","claimed":"2026-11-22T00:41:39.613971536Z",` +
			`"expires":"2026-11-22T00:51:39.613971536Z","readyLatency":0.0012}`
		written = `{"path":"/home/user/bench","name":"bench","type":"file","size":1048576,"mode":420,"uid":1000,"gid":1000,` +
			`"modified":"2026-11-22T00:41:39.642110482Z"}` + "\n"
	)
	sized := func(status, head, body string) []byte {
		return fmt.Appendf(nil, "HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s", status, head, len(body), body)
	}
	data := string(bytes.Repeat(allBytes(), 4096))
	stream := []byte("HTTP/1.1 200 OK\r\nConnect-Accept-Encoding: gzip\r\nContent-Type: application/connect+json\r\n" + common + "Transfer-Encoding: chunked\r\n\r\n" +
		"22\r\n\x00\x00\x00\x00\x1d" + `{"event":{"start":{"pid":8}}}` + "\r\n" +
		"3f\r\n\x00\x00\x00\x00:" + `{"event":{"end":{"exited":true,"status":"exit status 0"}}}` + "\r\n7\r\n\x02\x00\x00\x00\x02{}\r\n0\r\n\r\n")
	return []stillAnswer{
		{http.MethodPost, "/v2/sandboxes", "", sized("201 Created", json, created)},
		{http.MethodPost, "/process.Process/Start", "", stream},
		{http.MethodPost, "/files", "", sized("200 OK", json, `[{"name":"bench","path":"/home/user/bench","type":"file"}]`+"\n")},
		{http.MethodGet, "/files", "", sized("200 OK", "Content-Disposition: inline; filename=bench\r\nVary: Accept-Encoding\r\n"+file, data)},
		{http.MethodDelete, "/sandboxes/", "", []byte("HTTP/1.1 204 No Content\r\nCache-Control: no-store\r\n" + common + "\r\n")},
		{http.MethodPost, "/v1/sandboxes", "/exec", sized("200 OK", json, `{"exitCode":0,"stdout":"","stderr":"","language":"shell","duration":0.000209925}`+"\n")},
		{http.MethodPost, "/v1/sandboxes", "", sized("201 Created", json+"Location: /v1/sandboxes/"+id+"\r\n", sandbox)},
		{http.MethodPut, "/v1/sandboxes/", "/files", sized("200 OK", json, written)},
		{http.MethodGet, "/v1/sandboxes/", "/files", sized("200 OK", "Content-Disposition: attachment; filename=bench\r\nCache-Control: no-store\r\n"+file, data)},
		{http.MethodDelete, "/v1/sandboxes/", "", sized("200 OK", json, strings.Replace(sandbox, "running", "ended", 1))},
	}
}

func allBytes() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}
