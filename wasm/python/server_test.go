package python_test

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

// TestServers: servers of the standard library, and clients of them, in one sandbox without any way out.
func TestServers(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"sockets", `
import os, select, socket
s = socket.socket()
print(s.getsockname(), s.fileno())
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", 0))
host, port = s.getsockname()
s.listen()
s.setblocking(False)
try: s.accept()
except BlockingIOError: print("nobody yet")
c = socket.create_connection(("localhost", port))
print(select.select([s], [], [], 5)[0] == [s])
a, peer = s.accept()
print(peer == c.getsockname(), a.getpeername() == peer, c.getpeername() == (host, port), a.getblocking())
c.sendall(b"question"); c.shutdown(socket.SHUT_WR)
f = a.makefile("rwb")
print(f.read()); f.write(b"answer"); f.flush(); f.close(); a.close()
print(c.recv(100), c.recv(100)); c.close()
print(c.fileno())
try: socket.create_connection(("127.0.0.1", 1))
except ConnectionRefusedError as e: print(e)
try: socket.socket().bind((host, port))
except OSError as e: print(e)
try: socket.socket().bind(("192.0.2.1", 1))
except OSError as e: print(e)
x, y = socket.socket(), socket.socket()
x.bind(("", 0)); x.listen(1); x.settimeout(0.02)
try: x.accept()
except TimeoutError as e: print(e)
y.connect(("0.0.0.0", x.getsockname()[1]))
z, _ = x.accept()
z.settimeout(0.02)
try: z.recv(1)
except TimeoutError as e: print(e)
y.close(); print(z.recv(1))
try: z.send(b"x"); z.send(b"x")
except BrokenPipeError: print("broken pipe")
d = socket.socket(fileno=x.detach())
print(x.fileno(), d.fileno() >= 0, d.family == socket.AF_INET); d.close()
six = socket.socket(socket.AF_INET6); six.bind(("::1", 0)); six.listen()
e = socket.create_connection(six.getsockname()[:2])
print(six.getsockname()[0], six.accept()[1] == e.getsockname(), e.family == socket.AF_INET6)
n = socket.socket(); n.setblocking(False); print(n.connect_ex(six.getsockname()[:2]) in (0, 111))
`, `('0.0.0.0', 0) -1
nobody yet
True
True True True True
b'question'
b'answer' b''
-1
[Errno 111] Connection refused
[Errno 98] Address already in use
[Errno 99] Cannot assign requested address
timed out
timed out
b''
broken pipe
-1 True True
::1 True True
True
`},
		{"http.server", `
import http.server, os, subprocess, sys, time, urllib.request
open("hello.txt", "w").write("hello\n")
p = subprocess.Popen([sys.executable, "-m", "http.server", "8000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
for _ in range(1000):
    try: print(urllib.request.urlopen("http://localhost:8000/hello.txt").read()); break
    except OSError: time.sleep(0.01)
print(b"hello.txt" in urllib.request.urlopen("http://127.0.0.1:8000/").read())
try: urllib.request.urlopen("http://[::1]:8000/")
except OSError as e: print(e)
p.kill(); p.wait()
`, "b'hello\\n'\nTrue\n<urlopen error [Errno 111] Connection refused>\n"},
		{"threading server", `
import http.server, json, os, subprocess, sys, time, urllib.request
open("app.py", "w").write('''
import http.server, json
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = json.dumps({"path": self.path, "got": json.loads(self.rfile.read(int(self.headers["Content-Length"])))}).encode()
        self.send_response(201); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *a): pass
with http.server.ThreadingHTTPServer(("", 8001), H) as s:
    print(s.server_address, flush=True); s.serve_forever()
''')
p = subprocess.Popen([sys.executable, "app.py"], stdout=subprocess.PIPE, text=True)
print(p.stdout.readline().strip())
import http.client
c = http.client.HTTPConnection("localhost", 8001)
for i in range(3):
    c.request("POST", "/x%d" % i, body=json.dumps({"i": i, "big": "x" * 100000 * i}))
    r = c.getresponse(); d = json.loads(r.read()); print(r.status, d["path"], d["got"]["i"], len(d["got"]["big"]))
c.close(); p.kill(); p.wait()
`, "('0.0.0.0', 8001)\n201 /x0 0 0\n201 /x1 1 100000\n201 /x2 2 200000\n"},
		{"socketserver", `
import socket, socketserver
class H(socketserver.StreamRequestHandler):
    def handle(self): self.wfile.write(self.rfile.readline().upper())
with socketserver.TCPServer(("localhost", 0), H) as s:
    c = socket.create_connection(s.server_address)
    c.sendall(b"shout\n")
    s.handle_request()
    print(c.recv(100))
`, "b'SHOUT\\n'\n"},
		{"asyncio", `
import asyncio
async def serve(r, w):
    while line := await r.readline():
        w.write(line.upper()); await w.drain()
    w.close()
async def client(i, port):
    r, w = await asyncio.open_connection("127.0.0.1", port)
    got = b""
    for j in range(20):
        w.write(b"line %d %d %s\n" % (i, j, b"x" * 5000)); await w.drain()
        got += await r.readline()
    w.write_eof(); assert await r.read() == b""
    w.close(); await w.wait_closed()
    return len(got)
async def main():
    s = await asyncio.start_server(serve, "localhost", 0)
    port = s.sockets[0].getsockname()[1]
    print(sum(await asyncio.gather(*(client(i, port) for i in range(20)))))
    big = b"y" * 3_000_000 + b"\n"
    r, w = await asyncio.open_connection("localhost", port, limit=1 << 23)
    w.write(big)
    print("big")
    w.close()
    s.close(); await s.wait_closed()
    loop = asyncio.get_running_loop()
    import socket
    k = socket.create_server(("127.0.0.1", 0)); k.setblocking(False)
    c = socket.socket(); c.setblocking(False)
    await loop.sock_connect(c, k.getsockname()); a, _ = await loop.sock_accept(k)
    await loop.sock_sendall(c, b"raw"); print(await loop.sock_recv(a, 10))
asyncio.run(main())
`, "2004400\nbig\nb'raw'\n"},
		{"wsgi", `
import subprocess, sys, urllib.request, xmlrpc.client
open("w.py", "w").write('''
from wsgiref.simple_server import make_server, WSGIRequestHandler
class Q(WSGIRequestHandler):
    def log_message(self, *a): pass
def app(e, start):
    start("200 OK", [("Content-Type", "text/plain")]); return [e["PATH_INFO"].encode(), b" ", e["wsgi.input"].read(int(e.get("CONTENT_LENGTH") or 0))]
s = make_server("127.0.0.1", 8002, app, handler_class=Q); print("up", flush=True); s.serve_forever()
''')
p = subprocess.Popen([sys.executable, "w.py"], stdout=subprocess.PIPE, text=True)
print(p.stdout.readline().strip())
print(urllib.request.urlopen("http://127.0.0.1:8002/a/b", data=b"body").read())
p.terminate(); print(p.wait())
`, "up\nb'/a/b body'\n-15\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sandbox(t, proc.Limits{})
			out, errOut, status := run(t, s, c.script, "python3", "-")
			if out != c.want || status != 0 {
				t.Errorf("status %d\n%s\nwant\n%s\n%s", status, out, c.want, errOut)
			}
		})
	}
}

// TestServerFromOutside reaches a server of Python's through the sandbox's door.
func TestServerFromOutside(t *testing.T) {
	s := sandbox(t, proc.Limits{})
	go run(t, s, "", "python3", "-m", "http.server", "--bind", "127.0.0.1", "8000")
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx, 8000) }}}
	var failed error
	for range 2000 {
		resp, err := client.Get("http://x/")
		if failed = err; err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || !strings.Contains(string(b), "Directory listing") {
			t.Errorf("%v %v\n%s", resp.Status, err, b)
		}
		break
	}
	if failed != nil {
		t.Error(failed)
	}
	for _, p := range s.Processes() {
		p.Post(proc.SIGKILL)
	}
}
