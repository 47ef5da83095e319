package js_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentrun.dev/proc"
)

// TestNet has servers and clients in one program, which nothing may hold up.
func TestNet(t *testing.T) {
	b := newBox(t, proc.Limits{})
	for _, c := range []struct{ name, script, want string }{
		{"echo", `
const net = require('net');
const s = net.createServer((c) => { c.on('data', (d) => c.write(d.toString().toUpperCase())); c.on('end', () => c.end('bye')); });
s.listen(0, '127.0.0.1', () => {
  console.log(s.address().address, s.address().family, s.listening);
  const c = net.connect(s.address().port, 'localhost', () => { c.write('hello'); console.log(c.remoteAddress, c.remotePort === s.address().port); });
  c.setEncoding('utf8');
  let got = '';
  c.on('data', (d) => { got += d; if (got === 'HELLO') c.end(); });
  c.on('close', (had) => { console.log(got, had, c.bytesRead, c.bytesWritten); s.close(() => console.log('closed')); });
});`, "127.0.0.1 IPv4 true\n127.0.0.1 true\nHELLObye false 8 5\nclosed\n"},
		{"half open", `
const net = require('net');
const s = net.createServer({ allowHalfOpen: true }, (c) => { let n = 0; c.on('data', (d) => n += d.length); c.on('end', () => c.end('got ' + n)); }).listen(0);
const c = net.connect({ port: 1, allowHalfOpen: true });
c.on('error', (e) => {
  console.log(e.code, e.syscall, e.message);
  const d = net.connect({ port: s.address().port, allowHalfOpen: true });
  d.end(Buffer.alloc(1000000)); d.on('data', (x) => console.log(x.toString())); d.on('close', () => s.close());
});
try { net.connect(70000); } catch (e) { console.log(e.code); }`, "ERR_SOCKET_BAD_PORT\nECONNREFUSED connect connect ECONNREFUSED 127.0.0.1:1\ngot 1000000\n"},
		{"in use", `
const net = require('net');
const a = net.createServer().listen(8123, () => {
  const b = net.createServer();
  b.on('error', (e) => { console.log(e.code, e.message); a.close(); });
  b.listen(8123);
});`, "EADDRINUSE listen EADDRINUSE: address already in use :::8123\n"},
		{"http", `
const http = require('http');
const s = http.createServer(async (req, res) => {
  if (req.url === '/json') { let b = ''; for await (const c of req) b += c; res.writeHead(201, { 'Content-Type': 'application/json', 'X-A': ['1', '2'] }); res.end(JSON.stringify({ got: JSON.parse(b), method: req.method, type: req.headers['content-type'] })); return; }
  if (req.url === '/stream') { for (let i = 0; i < 3; i++) { res.write('part ' + i + '\n'); await new Promise((r) => setTimeout(r, 2)); } res.end(); return; }
  if (req.url === '/old') { res.statusCode = 302; res.setHeader('Location', '/new'); res.end(); return; }
  if (req.url === '/big') { res.end(Buffer.alloc(3000000, 'x')); return; }
  if (req.url === '/none') { res.writeHead(204).end(); return; }
  res.end(req.method + ' ' + req.url);
}).listen(3000, async () => {
  const at = 'http://localhost:' + s.address().port;
  let r = await fetch(at + '/json', { method: 'POST', body: JSON.stringify({ a: [1] }), headers: { 'content-type': 'application/json' } });
  console.log(r.status, r.statusText, r.headers.get('x-a'), await r.json());
  r = await fetch(at + '/stream'); console.log(r.headers.get('transfer-encoding'), await r.text());
  r = await fetch(at + '/old'); console.log(r.redirected, r.url, await r.text());
  r = await fetch(at + '/big'); console.log((await r.arrayBuffer()).byteLength, r.headers.get('content-length'));
  r = await fetch(at + '/none'); console.log(r.status, r.body);
  r = await fetch(at + '/x', { method: 'HEAD' }); console.log(r.status, r.headers.get('content-length'), (await r.text()).length);
  http.get(at + '/get?a=b', (m) => { let b = ''; m.on('data', (d) => b += d); m.on('end', () => { console.log(m.statusCode, m.headers['content-length'], b);
    const q = http.request({ port: 3000, path: '/json', method: 'PUT' }, (m) => { m.resume(); m.on('end', () => { console.log(m.statusCode, m.complete, s.listening); s.close(() => console.log('closed')); }); });
    q.write('[1'); q.end(']');
  }); });
});`, `201 Created 1, 2 { got: { a: [ 1 ] }, method: 'POST', type: 'application/json' }
chunked part 0
part 1
part 2

true http://localhost:3000/new GET /new
3000000 3000000
204 null
200 7 0
200 12 GET /get?a=b
201 true true
closed
`},
		{"wire", `
const net = require('net'), http = require('http');
const s = http.createServer((req, res) => { let b = ''; req.on('data', (d) => b += d); req.on('end', () => { res.sendDate = false; res.end(req.url + ' ' + b); }); });
s.on('upgrade', (req, socket, head) => { socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n' + head); socket.on('data', (d) => socket.write('re: ' + d)); socket.on('end', () => socket.end()); });
s.listen(0, async () => {
  const say = (text, parts = []) => new Promise((done) => { const c = net.connect(s.address().port); let b = ''; c.on('data', (d) => { b += d; if (parts.length) c.write(parts.shift()); }); c.on('close', () => done(b.replace(/\r\n/g, '|'))); c.write(text); });
  console.log(await say('GET /1 HTTP/1.1\r\nHost: x\r\n\r\nPOST /2 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: v\r\n\r\nGET /3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'));
  console.log(await say('GET /old HTTP/1.0\r\n\r\n'));
  console.log(await say('GARBAGE\r\n\r\n'));
  console.log(await say('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n'));
  console.log(await say('GET / HTTP/1.1\r\nX: ' + 'y'.repeat(20000) + '\r\n\r\n'));
  console.log(await say('POST /e HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n', ['ok']));
  const q = http.request({ port: s.address().port, headers: { Connection: 'Upgrade', Upgrade: 'x' } });
  q.on('upgrade', (res, socket) => { socket.on('data', (d) => { console.log(res.statusCode, d.toString()); socket.end(); }); socket.on('close', () => s.close()); socket.write('ping'); });
  q.end();
});`, `HTTP/1.1 200 OK|Content-Length: 3|Connection: keep-alive|Keep-Alive: timeout=5||/1 HTTP/1.1 200 OK|Content-Length: 8|Connection: keep-alive|Keep-Alive: timeout=5||/2 abcdeHTTP/1.1 200 OK|Content-Length: 3|Connection: close||/3 
HTTP/1.1 200 OK|Content-Length: 5|Connection: close||/old 
HTTP/1.1 400 Bad Request|Connection: close||
HTTP/1.1 400 Bad Request|Connection: close||
HTTP/1.1 431 Request Header Fields Too Large|Connection: close||
HTTP/1.1 100 Continue||HTTP/1.1 200 OK|Content-Length: 5|Connection: close||/e ok
101 re: ping
`},
		{"cut off", `
const net = require('net'), http = require('http');
const s = http.createServer((req, res) => { req.on('aborted', () => { console.log('aborted'); }); req.on('close', () => console.log('close', req.complete)); req.resume(); }).listen(0, () => {
  const c = net.connect(s.address().port, () => { c.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc'); setTimeout(() => c.destroy(), 20); });
  const t = net.createServer((k) => k.destroy()).listen(0, async () => {
    try { await fetch('http://127.0.0.1:' + t.address().port); } catch (e) { console.log(e.message, e.cause.code); }
    t.close(); setTimeout(() => s.close(), 100);
  });
});`, "fetch failed ECONNRESET\naborted\nclose false\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, errOut, status := b.run("/task", "setTimeout(() => { console.log('HANGS'); process.exit(9); }, 6000).unref();\n"+c.script, "node", "-")
			if out != c.want || status != 0 {
				t.Errorf("status %d\n%s\nwant\n%s\n%s", status, out, c.want, errOut)
			}
		})
	}
}

// TestHTTPServerFromOutside reaches a server of Node's through the sandbox's door, many times at once.
func TestHTTPServerFromOutside(t *testing.T) {
	b := newBox(t, proc.Limits{})
	p, _, _ := b.start("/task", `require('http').createServer((q, r) => setTimeout(() => r.end(q.url + ' ' + 'x'.repeat(100000)), 5)).listen(8000)`, "node", "-")
	c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return b.s.Dial(ctx, 8000) }}}
	var resp *http.Response
	var err error
	for range 1000 {
		if resp, err = c.Get("http://x/first"); err == nil {
			resp.Body.Close()
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	done := make(chan string)
	for range 10 {
		go func() {
			resp, err := c.Get("http://x/y")
			if err != nil {
				done <- err.Error()
				return
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil {
				done <- err.Error()
				return
			}
			done <- string(text)
		}()
	}
	for range 10 {
		if got := <-done; got != "/y "+strings.Repeat("x", 100000) {
			t.Errorf("%.100q", got)
		}
	}
	p.Post(proc.SIGKILL)
	<-p.Done()
}
