package harness

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"
)

// Proxy returns a handler that hands requests on to a server, as what stands before one in production does. rewrite, if any, changes
// what the server gets.
//
// Without the full duplex of HTTP/1, net/http closes a request's body as soon as the answer to it begins. Where the server is quick,
// the transport may still be about to find the end of that body; it fails then, and takes the answer's connection with it, so that
// about one answer in a few hundred is cut off.
func Proxy(t testing.TB, to string, rewrite func(*httputil.ProxyRequest)) http.Handler {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	p := &httputil.ReverseProxy{FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(u)
		if rewrite != nil {
			rewrite(r)
		}
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // it fails where there is nothing to enable
		p.ServeHTTP(w, r)
	})
}
