package web_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
	"agentrun.dev/command/services"
	"agentrun.dev/errs"
)

var commands = command.NewSet(nil)

// open are services that allow every connection.
func open() *services.Services {
	return &services.Services{Dial: (&net.Dialer{}).DialContext}
}

// echo tells what it was asked, with all fields in order of their names.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	text := boundary.ReplaceAllString(string(body), "BOUNDARY")
	fmt.Fprintf(w, "%s %s\nHost: %s\nLength: %d %v\n", r.Method, r.RequestURI, strings.Split(r.Host, ":")[0], r.ContentLength, r.TransferEncoding)
	for _, name := range []string{"Accept", "Accept-Encoding", "Authorization", "Content-Type", "Cookie", "Empty", "If-Modified-Since", "Range", "Referer",
		"User-Agent", "X-Custom", "If-None-Match"} {
		if v, ok := r.Header[name]; ok && name != "Accept-Encoding" {
			fmt.Fprintf(w, "%s: %q\n", name, boundary.ReplaceAllString(strings.Join(v, "|"), "BOUNDARY"))
		}
	}
	fmt.Fprintf(w, "\n%s\n", text)
}

var boundary = regexp.MustCompile(`-{20,}[0-9a-f]{16}`)

func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", echo)
	mux.HandleFunc("/up/", echo)
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		var code int
		fmt.Sscan(r.PathValue("code"), &code)
		w.WriteHeader(code)
		if code >= 200 && code != 204 && code != 304 {
			fmt.Fprintf(w, "status %d\n", code)
		}
	})
	mux.HandleFunc("/redirect/{n}", func(w http.ResponseWriter, r *http.Request) {
		var n int
		fmt.Sscan(r.PathValue("n"), &n)
		to := fmt.Sprintf("/redirect/%d", n-1)
		if n <= 1 {
			to = "../echo?from=redirect"
		}
		code := 302
		if s := r.URL.Query().Get("code"); s != "" {
			fmt.Sscan(s, &code)
		}
		w.Header().Set("Location", to)
		w.WriteHeader(code)
		fmt.Fprintln(w, "moved")
	})
	mux.HandleFunc("/cookies", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "1"})
		http.SetCookie(w, &http.Cookie{Name: "b", Value: "2", Path: "/", Expires: time.Date(2036, 1, 2, 3, 4, 5, 0, time.UTC), HttpOnly: true})
		fmt.Fprintln(w, "cookies:", r.Header.Get("Cookie"))
	})
	mux.HandleFunc("/chunks", func(w http.ResponseWriter, r *http.Request) {
		for i := range 3 {
			fmt.Fprintf(w, "chunk %d\n", i)
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("/file.txt", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "file.txt", time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC), strings.NewReader("0123456789abcdef\n"))
	})
	mux.HandleFunc("/attach", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="../../given.txt"`)
		fmt.Fprintln(w, "attached")
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("/short", func(w http.ResponseWriter, r *http.Request) {
		c, rw, _ := w.(http.Hijacker).Hijack()
		rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
		rw.Flush()
		c.Close()
	})
	mux.HandleFunc("/empty", func(w http.ResponseWriter, r *http.Request) {
		c, _, _ := w.(http.Hijacker).Hijack()
		c.Close()
	})
	mux.HandleFunc("/raw", func(w http.ResponseWriter, r *http.Request) {
		c, rw, _ := w.(http.Hijacker).Hijack()
		rw.WriteString("HTTP/1.1 200 Fine\r\nZebra: 1\r\nalpha: 2\r\nZebra: 3\r\nContent-Type: text/x\r\nConnection: close\r\n\r\nuntil the end\n")
		rw.Flush()
		c.Close()
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", "Mon, 01 Jan 2024 00:00:00 GMT")
		mux.ServeHTTP(w, r)
	})
}

var curlLines = []string{
	"-s URL/echo", "-s URL/echo?a=1&b=2", "-s -d a=1 URL/echo", "-s -d a=1 -d b=2 URL/echo", "-s -d @data.txt URL/echo", "-s --data-binary @data.txt URL/echo", "-s --data-raw @data.txt URL/echo",
	"-s --data-urlencode 'name=a b&c' URL/echo", "-s --data-urlencode 'a b' --data-urlencode =x=y --data-urlencode @data.txt --data-urlencode n@data.txt URL/echo",
	"-s -G -d a=1 --data-urlencode 'q=x y' URL/echo", "-s -G -d a=1 URL/echo?z=0", "-s --json '{\"a\":1}' URL/echo", "-s --json '{' --json '}' URL/echo", "-s -X PUT -d x URL/echo", "-s -X DELETE URL/echo",
	"-s -F a=b -F 'f=@data.txt' URL/echo", "-s -F 'f=@data.txt;type=text/x;filename=other.bin' -F 'g=<data.txt' -F 'h=v;type=text/html' URL/echo", "-s --form-string 'a=@x;type=y' URL/echo", "-s -F 'u=@none' URL/echo",
	"-s -H 'X-Custom: 1' -H 'User-Agent:' -H 'Empty;' URL/echo", "-s -H 'Accept: text/html' -H 'Host: other.example' URL/echo", "-s -H @headers.txt URL/echo", "-s -A agent/1 -e http://ref/ URL/echo", "-s -A '' URL/echo",
	"-s -u user:pass URL/echo", "-s -u user: URL/echo", "-s --oauth2-bearer tok URL/echo", "-s -b 'a=1; b=2' URL/echo", "-s -b jar.txt URL/echo", "-s -b jar.txt -b x=y URL/echo",
	"-s -c - URL/cookies", "-s -c out.jar URL/cookies URL/cookies", "-s -r 2-5 URL/file.txt", "-s -r -3 URL/file.txt", "-s -r 5- -i URL/file.txt", "-s -I URL/file.txt", "-s -i URL/file.txt", "-s -i URL/raw", "-s -D - -o body.txt URL/raw",
	"-s -D head.txt URL/raw URL/raw", "-s -o out.txt URL/file.txt", "-s -O URL/file.txt", "-s -OJ URL/attach", "-s -J -O URL/file.txt", "-s --output-dir d -O URL/file.txt", "-s --create-dirs -o n/m/x URL/file.txt", "-s -o /nonexistent/x URL/file.txt", "-O URL/",
	"-s -sS -O URL/", "-s -f URL/status/404", "-sS -f URL/status/404", "-sSf -o x URL/status/500", "-sS --fail-with-body URL/status/404", "-sS URL/status/404", "-s -i URL/status/204", "-sS -L URL/redirect/3", "-s URL/redirect/1", "-s -i -L URL/redirect/2",
	"-sS -L --max-redirs 2 URL/redirect/5", "-s -L -d a=1 URL/redirect/1", "-s -L -d a=1 URL/redirect/1?code=307", "-s -L -d a=1 URL/redirect/1?code=303", "-s -L --post302 -d a=1 URL/redirect/1", "-s -L -X PUT -d a=1 URL/redirect/1", "-s -LI URL/redirect/1",
	"-s -w '%{http_code} %{size_download} %{content_type} %{num_redirects} %{method} %{url} %{exitcode} %{scheme} %{num_headers} %{http_version} %{remote_ip}\\n' URL/raw",
	"-s -o /dev/null -w '%{http_code}\\t%{redirect_url}\\n' URL/redirect/1", "-s -L -o /dev/null -w '%{url_effective} %{num_redirects} %{size_header}' URL/redirect/2", "-s -w '%{foo}%%%{errormsg}|%{filename_effective}|%{urlnum}\\n' -o o.txt URL/raw",
	"-s -w '%header{zebra}' -o /dev/null URL/raw", "-s -w @fmt.txt -o /dev/null URL/raw", "-s -T data.txt URL/up/x", "-s -T data.txt URL/up/", "-s -T none URL/up/", "-s -C 4 -o part.txt URL/file.txt", "-s -C - -o part.txt URL/file.txt", "-sS -C 4 URL/raw",
	"-s -z 20210101 -w '%{http_code}' URL/file.txt", "-s -z data.txt URL/echo", "-s -R -o o.txt URL/file.txt", "-sS URL/short", "-sS URL/empty", "-sS -m 0.3 -o x URL/nothere", "-s URL/chunks", "-s -i URL/chunks", "-sS http://127.0.0.1:1/", "-sS foo://x", "-sS http://", "-sS", "", "--foo", "-sS -o",
	"-s URL/echo?n=[1-3]", "-s URL/echo?n={a,b} -o 'out_#1.txt'", "-s -g URL/echo?n=[1]", "-sS URL/echo?n=[3-1]", "-s URL/file.txt URL/file.txt -o a.txt", "-s URL/file.txt --next -d x URL/echo", "-s -K conf.txt", "-s --url URL/file.txt", "-sS -K none.txt", "-s --retry x URL/echo",
	"-s --path-as-is URL/up/../x", "-s URL/up/./a/../b", "-s --raw URL/file.txt", "-s --url-query q=1 URL/echo", "-s --resolve example.test:PORT:127.0.0.1 http://example.test:PORT/echo", "-s --connect-to ::127.0.0.1:PORT http://example.test/echo",
	"-sS file:///nonexistent", "-s --max-filesize 5 URL/file.txt", "-sS --max-filesize 5 URL/file.txt", "-s -X POST URL/echo", "-s -X POST -H 'Content-Type: application/json' -d '{}' URL/echo", "-sI -X GET URL/raw", "-s --head URL/raw", "-sd x -I URL/echo", "-s --request-target /echo?t URL/x", "-s --compressed URL/echo",
	"-s -o a.txt -o b.txt URL/file.txt URL/raw", "-s --remote-name-all URL/file.txt URL/raw", "-sS user@:80", "-s http://u:p@HOSTPORT/echo", "-sfL URL/status/404", "-s --no-clobber -o data.txt URL/raw", "-sS nonexistent.invalid", "-d x -I URL/echo", "-d x -F a=b URL/echo", "-T none URL/echo", "-s --etag-save e.txt URL/raw",
}

func TestCurl(t *testing.T) {
	server := httptest.NewServer(handler())
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	fill := strings.NewReplacer("URL", server.URL, "HOSTPORT", "127.0.0.1:"+port, "PORT", port)
	table := commandtest.Table{
		Services: open(),
		Setup: []string{"f data.txt line one\nline two\n", "f headers.txt X-Custom: from file\nAccept: x/y\n", "f part.txt 0123", "d d", "f fmt.txt %{http_code}\n",
			"f jar.txt # Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tin\tjar\n", fill.Replace("f conf.txt # options\nurl = \"URL/echo\"\n-d a=1\nuser-agent = \"from conf\"\nheader: \"X-Custom: a\\tb\"\n")},
	}
	for _, l := range curlLines {
		table.Lines = append(table.Lines, strings.TrimSpace("curl "+fill.Replace(l)))
	}
	commandtest.Run(t, commands, table)
}

// TestCurlDenied shows what a sandbox without network says, and one whose policy denies.
func TestCurlDenied(t *testing.T) {
	for _, c := range []struct {
		services *services.Services
		want     string
	}{
		{nil, "allows example.com:443"},
		{&services.Services{Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
			return nil, errs.Msg(errs.Denied, "connect", addr, "no rule allows it").WithHint("add the rule " + addr)
		}}, "add the rule example.com:443"},
	} {
		table := commandtest.Table{}
		if c.services != nil {
			table.Services = c.services
		}
		for _, words := range [][]string{{"curl", "-sS", "https://example.com/x"}, {"wget", "-q", "-O", "-", "https://example.com/x"}, {"wget", "https://example.com/x"}} {
			r := table.Sandbox(t, commands, words, "")
			if (words[0] == "curl" && r.Status != 7 || words[0] == "wget" && r.Status != 4) || words[1] != "-q" && !strings.Contains(r.Stderr, c.want) {
				t.Errorf("%q: %+v", words, r)
			}
		}
	}
}

// TestCurlTLS compares what both say about certificates.
func TestCurlTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(handler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{NextProtos: []string{"http/1.1"}}
	server.StartTLS()
	defer server.Close()
	commandtest.Run(t, commands, commandtest.Table{Services: open(), Lines: []string{
		"curl -k -s " + server.URL + "/echo", "curl -s " + server.URL + "/echo", "curl -sS " + server.URL + "/echo",
	}})
}

// TestCurlTimeout ends a transfer at its limit.
func TestCurlTimeout(t *testing.T) {
	server := httptest.NewServer(handler())
	defer server.Close()
	table := commandtest.Table{Services: open()}
	r := table.Sandbox(t, commands, []string{"curl", "-sS", "-m", "0.05", server.URL + "/slow"}, "")
	if r.Status != 28 || !strings.Contains(r.Stderr, "curl: (28) Operation timed out after") || !strings.Contains(r.Stderr, "with 0 out of 100 bytes received") {
		t.Errorf("%+v", r)
	}
}

// TestCurlRetry tries again what may pass.
func TestCurlRetry(t *testing.T) {
	left := 2
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if left--; left >= 0 {
			w.WriteHeader(503)
			return
		}
		io.WriteString(w, "at last\n")
	}))
	defer server.Close()
	table := commandtest.Table{Services: open()}
	r := table.Sandbox(t, commands, []string{"curl", "-sS", "--retry", "3", "--retry-delay", "0", "--retry-max-time", "60", "-o", "x", server.URL}, "")
	if r.Status != 0 || !strings.Contains(r.Tree, "at last") {
		t.Errorf("%+v", r)
	}
}
