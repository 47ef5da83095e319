"""What the tests stand on: a server that answers as each test says, and both halves of the SDK behind one face, so that every test runs
with the synchronous and with the asynchronous one."""

import asyncio
import inspect
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

import agent_run


class Request:
    def __init__(self, handler):
        u = urlsplit(handler.path)
        self.method, self.raw_path, self.path = handler.command, u.path, unquote(u.path)
        self.query = {k: v if len(v) > 1 else v[0] for k, v in parse_qs(u.query, keep_blank_values=True).items()}
        self.headers = {k.lower(): v for k, v in handler.headers.items()}
        self.body = self._read(handler)

    @staticmethod
    def _read(handler):
        if handler.headers.get("Transfer-Encoding") == "chunked":
            out = b""
            while True:
                n = int(handler.rfile.readline(), 16)
                out += handler.rfile.read(n)
                handler.rfile.readline()
                if n == 0:
                    return out
        return handler.rfile.read(int(handler.headers.get("Content-Length") or 0))

    @property
    def json(self):
        return json.loads(self.body)


class Answer:
    """An answer: JSON, or pieces that are sent one by one; with cut, the connection then breaks."""

    def __init__(self, value=None, status=200, headers=None, pieces=None, cut=False, content_type=None):
        self.status, self.headers, self.pieces, self.cut = status, headers or {}, pieces, cut
        self.data = value if isinstance(value, bytes) else b"" if value is None else json.dumps(value).encode()
        self.content_type = content_type or ("application/json" if status < 300 else "application/problem+json")


def problem(status, kind, detail="it: went wrong", **more):
    headers = more.pop("headers", None)
    return Answer({"title": "T", "status": status, "kind": kind, "detail": detail, "op": "it", "cause": "went wrong", **more}, status, headers)


def lines(*values, **options):
    return Answer(pieces=[json.dumps(v).encode() + b"\n" for v in values], content_type="application/x-ndjson", **options)


class Server:
    """Answers by `on(method, path, answers…)`: each request takes the next answer, the last one again and again. An answer may be a function
    of the request."""

    def __init__(self):
        self.requests, self.answers, self.connections = [], {}, 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16

            def setup(self):
                super().setup()
                outer.connections += 1

            def finish(self):
                super().finish()
                outer.connections -= 1

            def handle_one(self):
                r = Request(self)
                outer.requests.append(r)
                queue = outer.answers.get((r.method, r.path))
                a = problem(404, "not found", f"request: {r.method} {r.path}: no such operation")
                if queue:
                    a = queue.pop(0) if len(queue) > 1 else queue[0]
                if callable(a):
                    a = a(r)
                if a == "drop":
                    self.close_connection = True
                    return
                if not isinstance(a, Answer):
                    a = Answer(a)
                self.send_response(a.status)
                for k, v in a.headers.items():
                    self.send_header(k, v)
                self.send_header("Content-Type", a.content_type)
                if a.pieces is None:
                    self.send_header("Content-Length", str(len(a.data)))
                    self.end_headers()
                    self.wfile.write(a.data)
                    return
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for p in a.pieces:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(p), p))
                    self.wfile.flush()
                if a.cut:
                    self.close_connection = True
                else:
                    self.wfile.write(b"0\r\n\r\n")

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = handle_one

            def log_message(self, *args):
                pass

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.httpd.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.httpd.server_address[1]}"
        threading.Thread(target=self.httpd.serve_forever, args=(0.02,), daemon=True).start()

    def on(self, method, path, *answers):
        self.answers[(method, "/v1/" + path)] = list(answers)

    def seen(self, method, path):
        return [r for r in self.requests if (r.method, r.path) == (method, "/v1/" + path)]

    def close(self):
        self.httpd.shutdown()
        self.httpd.server_close()


@pytest.fixture
def server():
    s = Server()
    yield s
    s.close()


class Bridge:
    """An asynchronous object as a synchronous one: what it returns is awaited on an event loop in another thread."""

    def __init__(self, inner, loop):
        self.__dict__.update(_inner=inner, _loop=loop)

    def _run(self, f, *args, **kwargs):
        async def call():
            v = f(*args, **kwargs)
            return await v if inspect.isawaitable(v) else v

        args = [a._inner if isinstance(a, Bridge) else a for a in args]
        kwargs = {k: a._inner if isinstance(a, Bridge) else a for k, a in kwargs.items()}
        try:
            return wrap(asyncio.run_coroutine_threadsafe(call(), self._loop).result(30), self._loop)
        except StopAsyncIteration:
            raise StopIteration from None

    def __getattr__(self, name):
        v = getattr(self._inner, "aclose" if name == "close" else name)
        if inspect.ismethod(v) or inspect.isfunction(v):
            return lambda *a, **k: self._run(v, *a, **k)
        return wrap(v, self._loop)

    def __call__(self, *args, **kwargs):
        return self._run(self._inner, *args, **kwargs)

    def __eq__(self, other):
        return isinstance(other, Bridge) and self._inner == other._inner

    def __repr__(self):
        return repr(self._inner)

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return self._run(self._anext)
        except EndOfIteration:
            raise StopIteration from None

    async def _anext(self):
        try:
            return await self._inner.__anext__()
        except StopAsyncIteration:  # can't leave a future
            raise EndOfIteration from None

    def __enter__(self):
        return self._run(self._inner.__aenter__)

    def __exit__(self, *exc):
        return self._run(self._inner.__aexit__, *exc)


class EndOfIteration(Exception):
    pass


def wrap(v, loop):
    if isinstance(v, list):
        return [wrap(x, loop) for x in v]
    if type(v).__module__.startswith("agent_run._async") or (inspect.isclass(v) and v.__module__.startswith("agent_run._async")):
        return Bridge(v, loop)
    return v


class API:
    """The SDK, whichever half."""

    def __init__(self, loop=None):
        prefix = "" if loop is None else "Async"
        self.asynchronous = loop is not None
        for name in ("AgentRun", "Sandbox"):
            setattr(self, name, wrap(getattr(agent_run, prefix + name), loop))


@pytest.fixture(params=["sync", "async"])
def api(request):
    if request.param == "sync":
        yield API()
        return
    loop = asyncio.new_event_loop()
    t = threading.Thread(target=loop.run_forever, daemon=True)
    t.start()
    yield API(loop)
    loop.call_soon_threadsafe(loop.stop)
    t.join(10)
    loop.close()


@pytest.fixture
def client(api, server):
    with api.AgentRun(server.url, "id.secret", timeout=5, retry=agent_run.Retry(attempts=3, base=0.01, cap=0.02)) as c:
        yield c


BOX = {"id": "0193", "state": "running", "engine": "userspace", "root": "0193", "depth": 0, "epoch": 1, "lease": {"duration": 600},
       "created": "2026-11-21T18:00:00.123456789Z", "somethingNew": {"a": 1}}


@pytest.fixture
def box(client, server):
    server.on("GET", "sandboxes/0193", BOX)
    return client.get("0193")


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """Nothing of the caller's own: no server, no key, no proxy."""
    for name in ("AGENTRUN_ENDPOINT", "AGENTRUN_API_KEY", "AGENTRUN_CA_CERT", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
