// The client against a server of the test's own: what is sent, repeated, and made of answers.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { AgentRun, AgentRunError, BuildFailedError, CanceledError, CommandFailedError, ConflictError, ConnectionError, DeniedError, ExistsError, LimitExceededError,
  MergeConflictError, NotFoundError, Sandbox, ServerError, TimeoutError, UnavailableError } from "agent-run";

const servers = [];
after(() => servers.forEach((s) => { s.closeAllConnections?.(); s.close(); }));

/** Starts a server that answers by a function, and returns a client of it with the requests that it got. */
async function serve(answer, options = {}) {
  const seen = [];
  const server = createServer(async (req, res) => {
    const chunks = [];
    for await (const c of req) chunks.push(c);
    const r = { method: req.method, url: req.url, headers: req.headers, text: Buffer.concat(chunks).toString() };
    seen.push(r);
    await answer(r, res, seen.length);
  });
  servers.push(server);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = new AgentRun({ endpoint: `http://127.0.0.1:${server.address().port}`, apiKey: "ID.SECRET", retry: { base: 1, cap: 5 }, ...options });
  return { client, seen };
}

const json = (res, status, v, type = "application/json") => {
  res.writeHead(status, { "content-type": type });
  res.end(JSON.stringify(v));
};
const problem = (res, status, kind, more = {}) => json(res, status, { type: "x", title: "t", status, kind, detail: `op: thing: ${kind}`, ...more }, "application/problem+json");
const box = { id: "01-a", state: "running", engine: "userspace", root: "01-a", depth: 0, lease: {}, created: "2026-01-01T00:00:00Z", epoch: "1" };

test("a sandbox is claimed, with the key, once", async () => {
  const { client, seen } = await serve((r, res) => json(res, 201, { ...box, name: "one" }));
  const s = await client.create("pool", { name: "one", env: { A: "b" } });
  assert.ok(s instanceof Sandbox);
  assert.equal(s.id, "01-a");
  assert.equal(s.name, "one");
  assert.equal(seen[0].method + " " + seen[0].url, "POST /v1/sandboxes");
  assert.equal(seen[0].headers.authorization, "Bearer ID.SECRET");
  assert.match(seen[0].headers["idempotency-key"], /^[0-9a-f-]{36}$/);
  assert.deepEqual(JSON.parse(seen[0].text), { name: "one", env: { A: "b" }, pool: "pool" });
});

test("a name is a template's, too", async () => {
  const { client, seen } = await serve((r, res) => {
    if (r.url === "/v1/sandboxes") return r.text.includes('"template"') ? json(res, 201, box) : problem(res, 404, "not found");
    return r.url === "/v1/templates/t" ? json(res, 200, { name: "t" }) : problem(res, 404, "not found");
  });
  await client.create("t");
  assert.deepEqual(seen.map((r) => r.url), ["/v1/sandboxes", "/v1/pools/t", "/v1/templates/t", "/v1/sandboxes"]);
  await assert.rejects(client.create("u"), NotFoundError);
  await assert.rejects(client.create(), TypeError);
  await assert.rejects(client.create("t", { template: "t" }), TypeError);
});

test("errors are told apart", async () => {
  for (const [status, kind, cls] of [[404, "not found", NotFoundError], [403, "denied", DeniedError], [409, "exists", ExistsError], [409, "conflict", ConflictError],
    [500, "other", ServerError], [403, "", DeniedError], [418, "", ServerError]]) {
    const { client } = await serve((r, res) => problem(res, status, kind, { hint: "do that", rule: "a rule", request: "r1" }));
    await assert.rejects(client.get("x"), (e) => {
      assert.ok(e instanceof cls && e instanceof AgentRunError, `${status} ${kind}: ${e.constructor.name}`);
      assert.equal(e.status, status);
      assert.equal(e.hint, "do that");
      assert.equal(e.requestId, "r1");
      assert.match(e.message, /do that/);
      if (e instanceof DeniedError) assert.equal(e.rule, "a rule");
      return true;
    });
  }
  const { client } = await serve((r, res) => { res.writeHead(200); res.end("<html>"); });
  await assert.rejects(client.get("x"), UnavailableError);
});

test("what may be repeated is", async () => {
  const { client, seen } = await serve((r, res, n) => (n < 3 ? problem(res, 503, "unavailable") : json(res, 200, box)));
  await client.get("x");
  assert.equal(seen.length, 3);
  const limited = await serve((r, res) => problem(res, 429, "limit exceeded"));
  await assert.rejects(limited.client.get("x"), LimitExceededError);
  assert.equal(limited.seen.length, 3);
  const cut = await serve((r, res, n) => (r.method === "POST" && n === 1 ? res.destroy() : r.url.endsWith("exec") ? res.destroy() : json(res, 201, box)));
  const s = await cut.client.create("pool"); // it has an Idempotency-Key: the same both times
  assert.equal(cut.seen.length, 2);
  assert.equal(cut.seen[0].headers["idempotency-key"], cut.seen[1].headers["idempotency-key"]);
  await assert.rejects(s.exec("date"), ConnectionError); // it may have been run
  assert.equal(cut.seen.length, 3);
});

test("nobody there, too slow, given up", async () => {
  const gone = createServer();
  await new Promise((resolve) => gone.listen(0, "127.0.0.1", resolve));
  const nobody = new AgentRun({ endpoint: `http://127.0.0.1:${gone.address().port}`, retry: { attempts: 1 } });
  await new Promise((resolve) => gone.close(resolve));
  await assert.rejects(nobody.get("x"), (e) => e instanceof ConnectionError && /agentrun up/.test(e.hint));
  const { client } = await serve(() => undefined, { timeout: 50 });
  await assert.rejects(client.get("x"), TimeoutError);
  const stop = new AbortController();
  const long = await serve(() => stop.abort());
  await assert.rejects(new Sandbox(long.client, box).exec("x", { signal: stop.signal }), CanceledError);
});

test("exec, and its streams", async () => {
  const lines = [{ type: "start", pid: 5 }, { type: "stdout", data: Buffer.from("hé").subarray(0, 2).toString("base64") },
    { type: "stdout", data: Buffer.from("hé").subarray(2).toString("base64") }, { type: "stderr", data: Buffer.from("no\n").toString("base64") },
    { type: "exit", result: { exitCode: 3, stdout: "", stderr: "", language: "shell", duration: 1 } }];
  const { client, seen } = await serve((r, res) => {
    if (r.headers.accept === "application/x-ndjson") {
      res.writeHead(200, { "content-type": "application/x-ndjson" });
      res.end("\n" + lines.map((l) => JSON.stringify(l) + "\n").join(""));
    } else json(res, 200, { exitCode: 3, stdout: "2\n", stderr: "boom\n", language: "python", duration: 0.1, result: "2" });
  });
  const s = new Sandbox(client, box);
  const r = await s.exec("1+1", { language: "python", env: { A: "b" }, cwd: "/", timeout: 1500 });
  assert.equal(r.stdout, "2\n");
  assert.equal(r.exitCode, 3);
  assert.deepEqual(JSON.parse(seen[0].text), { code: "1+1", language: "python", env: { A: "b" }, dir: "/", timeout: 1.5 });
  await assert.rejects(s.exec("x", { check: true }), (e) => e instanceof CommandFailedError && e.result.exitCode === 3 && /boom/.test(e.message));
  let out = "", problems = "";
  const streamed = await s.exec(["ls", "-l"], { onStdout: (t) => (out += t), onStderr: (t) => (problems += t) });
  assert.equal(out, "hé");
  assert.equal(problems, "no\n");
  assert.equal(streamed.stdout, "hé");
  assert.equal(streamed.exitCode, 3);
  assert.deepEqual(JSON.parse(seen.at(-1).text), { args: ["ls", "-l"] });
});

test("a stream that is cut off is an error", async () => {
  const { client } = await serve((r, res) => {
    res.writeHead(200, { "content-type": "application/x-ndjson" });
    res.write('{"type":"start","pid":5}\n');
    setTimeout(() => res.destroy(), 20);
  });
  await assert.rejects(async () => { for await (const _ of new Sandbox(client, box).stream("x")); }, ConnectionError);
  const quiet = await serve((r, res) => { res.writeHead(200); res.end('{"type":"start"}\n'); });
  await assert.rejects(async () => { for await (const _ of new Sandbox(quiet.client, box).stream("x")); }, ConnectionError);
});

test("forks, differences, merges", async () => {
  const { client, seen } = await serve((r, res) => {
    if (r.url.endsWith("/fork")) return json(res, 201, { name: "f", source: "01-a", count: 2, state: "ready", created: "", sandboxes: [{ ...box, id: "b" }, { ...box, id: "c" }] });
    if (r.url.includes("/diff")) return res.end('{"item":{"path":"/a","kind":"added","newSize":3}}\n{"result":{"from":"b","to":"c","added":1,"modified":0,"deleted":0,"metadata":0}}\n');
    return r.text.includes("theirs") ? json(res, 200, { source: "b", target: "c", added: 1, modified: 0, deleted: 0, metadata: 0 })
      : json(res, 200, { source: "b", target: "c", added: 0, modified: 0, deleted: 0, metadata: 0, conflicts: ["/x"], moreConflicts: 2 });
  });
  const [b, c] = await new Sandbox(client, box).fork(2, { name: "f" });
  assert.equal(b.id + c.id, "bc");
  assert.deepEqual(JSON.parse(seen[0].text), { count: 2, name: "f" });
  const d = await b.diff(c, { path: "/workspace" });
  assert.equal(seen[1].url, "/v1/sandboxes/b/diff?to=c&path=%2Fworkspace");
  assert.equal(d.added, 1);
  assert.deepEqual(d.changes, [{ path: "/a", kind: "added", newSize: 3 }]);
  await assert.rejects(b.merge(c), (e) => e instanceof MergeConflictError && e.conflicts[0] === "/x" && e.moreConflicts === 2);
  assert.equal((await b.merge(c, { conflicts: "theirs" })).added, 1);
});

test("files", async () => {
  const { client, seen } = await serve((r, res) => {
    if (r.method === "PUT") return json(res, 201, { path: "/workspace/é", size: r.text.length });
    if (r.url.includes("/list")) return json(res, 200, r.url.includes("cursor") ? { files: [{ name: "b" }] } : { files: [{ name: "a" }], next: "n" });
    if (r.headers.range === "bytes=9-") return problem(res, 416, "invalid");
    res.writeHead(200);
    res.end("text");
  });
  const f = new Sandbox(client, box).files;
  await f.write("é", "12345", { mode: 0o755 });
  assert.equal(seen[0].url, "/v1/sandboxes/01-a/files?path=%C3%A9&mode=0755");
  assert.equal(seen[0].text, "12345");
  await f.write("x", new Uint8Array([0x31, 0x32]));
  assert.equal(seen[1].text, "12");
  assert.equal(await f.read("x"), "text");
  assert.equal((await f.readBytes("x", { offset: 9 })).length, 0);
  assert.deepEqual((await f.list("/")).map((i) => i.name), ["a", "b"]);
});

test("events go on where the connection broke", async () => {
  const { client, seen } = await serve((r, res, n) => {
    res.writeHead(200, { "content-type": "application/x-ndjson" });
    res.end(n === 1 ? '{"seq":"9007199254740993","kind":"created","time":""}\n\n' : '{"seq":"9007199254740993","kind":"created"}\n{"seq":"9007199254740994","kind":"ended"}\n');
  });
  const kinds = [];
  for await (const e of client.events()) {
    kinds.push(e.kind);
    if (e.kind === "ended") break;
  }
  assert.deepEqual(kinds, ["created", "ended"]);
  assert.match(seen[1].url, /after=9007199254740993/);
});

test("a build that fails shows its log", async () => {
  const { client } = await serve((r, res) => (r.url.includes("/log") ? res.end('{"time":"","text":"no such package"}\n')
    : json(res, 200, { name: "t", version: 2, state: "failed", error: "init line 1", spec: {}, progress: 0, created: "" })));
  await assert.rejects(client.templates.wait("t"), (e) => e instanceof BuildFailedError && e.log[0] === "no such package" && /init line 1/.test(e.message));
});

test("paths are escaped", async () => {
  const { client, seen } = await serve((r, res) => json(res, 200, box));
  await client.get("a/../b c");
  assert.deepEqual(seen.map((r) => r.url), ["/v1/sandboxes/a%2F..%2Fb%20c"]);
  for (const name of ["", ".", ".."]) await assert.rejects(client.get(name), TypeError);
});
