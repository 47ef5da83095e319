// The SDK against a real server: AGENTRUN_ENDPOINT and AGENTRUN_API_KEY, or the context, say where it is.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { AgentRun, ConflictError, MergeConflictError, NotFoundError, Sandbox } from "agent-run";

const client = new AgentRun();

before(async () => {
  await client.templates.put("python-agent", { image: "python:3.12-slim" });
  await client.templates.wait("python-agent");
  await client.pools.put("python-agent-pool", { template: "python-agent", replicas: 5 });
  await client.pools.wait("python-agent-pool");
});

test("the guide's example", async () => {
  const printed = [];
  const console = { log: (x) => printed.push(x) };
  // As printed, but for the import.
  const client = new AgentRun();
  const sandbox = await client.create('python-agent-pool');
  const result = await sandbox.exec('print(1 + 1)');
  console.log(result.stdout); // 2
  const [forkA, forkB] = await sandbox.fork(2);
  await forkA.exec("open('/workspace/a.txt', 'w').write('plan A')");
  await forkB.exec("open('/workspace/b.txt', 'w').write('plan B')");
  await sandbox.terminate();

  assert.deepEqual(printed, ["2\n"]);
  assert.equal(await forkA.files.read("a.txt"), "plan A");
  assert.equal(await forkA.files.exists("b.txt"), false);
  assert.equal(await forkB.files.read("/workspace/b.txt"), "plan B");
  await assert.rejects(sandbox.exec("true"), ConflictError);
  await Promise.all([forkA.terminate(), forkB.terminate()]);
});

test("exec in three languages, with state, streams and limits", async () => {
  const s = await Sandbox.create("python-agent-pool", { env: { WHO: "typescript" } });
  try {
    assert.equal((await s.exec("echo $WHO; pwd")).stdout, "typescript\n/workspace\n");
    await s.exec("x = 20");
    const r = await s.exec("x * 2 + 2");
    assert.equal(r.language, "python");
    assert.equal(r.result, "42");
    assert.equal((await s.exec("const y = 6; y * 7", { language: "javascript" })).result, "42");
    assert.equal((await s.exec("exit 3", { language: "shell" })).exitCode, 3);
    assert.equal((await s.exec(["printf", "%s|", "a b", "c"])).stdout, "a b|c|");
    assert.equal((await s.exec("cat", { stdin: "héllo" })).stdout, "héllo");
    const late = await s.exec("sleep 20", { language: "shell", timeout: 200 });
    assert.equal(late.exitCode, 124);
    assert.equal(late.timedOut, true);
    const seen = [];
    for await (const e of s.stream("for i in 1 2; do echo $i; until [ -e heard$i ]; do sleep 0.05; done; done; echo no >&2; false", { language: "shell" })) {
      if (e.type === "stdout") await s.files.write("heard" + e.text.trim(), "");
      seen.push(e.type === "exit" ? e.result.exitCode : e.type === "start" ? e.type : e.type + ":" + e.text);
    }
    assert.deepEqual(seen.filter((x) => x !== "start").join(""), "stdout:1\nstdout:2\nstderr:no\n1");
    const failed = await s.exec("1/0", { language: "python" });
    assert.equal(failed.exitCode, 1);
    assert.match(failed.stderr, /ZeroDivisionError/);
  } finally {
    await s.terminate();
  }
});

test("terminals, pipes and what runs in the background", async () => {
  const s = await client.create("python-agent-pool");
  try {
    const t = await s.pty({ cols: 100, rows: 30 });
    await t.write("stty size; echo done-$((40+2))\n");
    const text = await t.readUntil("done-42");
    assert.match(text, /30 100/);
    await t.write("exit 4\n");
    assert.equal(await t.wait(60_000), 4);
    t.close();
    const cat = await s.open(["cat"]);
    await cat.write("a".repeat(600_000));
    let n = 0;
    const reading = (async () => { for await (const o of cat) n += o.data.length; })();
    await cat.closeStdin();
    await reading;
    assert.equal(n, 600_000);
    assert.equal(await cat.wait(), 0);
    const pid = await s.start("echo begun; sleep 30", { language: "shell", log: "/tmp/log" });
    assert.ok((await s.processes()).some((p) => p.pid === pid));
    await s.kill(pid, "KILL");
  } finally {
    await s.terminate();
  }
});

test("files", async () => {
  const s = await client.create("python-agent-pool");
  try {
    const big = new Uint8Array(3 << 20).map((_, i) => i & 255);
    await s.files.write("dir/big.bin", big, { mode: 0o600 });
    assert.deepEqual(Buffer.from(await s.files.readBytes("dir/big.bin")), Buffer.from(big));
    assert.deepEqual([...await s.files.readBytes("dir/big.bin", { offset: 254, length: 4 })], [254, 255, 0, 1]);
    assert.equal((await s.files.stat("/workspace/dir/big.bin")).mode & 0o777, 0o600);
    await s.files.mkdir("a/b");
    await s.files.move("dir/big.bin", "a/b/c.bin");
    assert.deepEqual((await s.files.list("a", { depth: 3 })).map((f) => f.path), ["/workspace/a/b", "/workspace/a/b/c.bin"]);
    const watched = s.files.watch(".", { recursive: true });
    assert.equal((await watched.next()).value.kind, "ready");
    await s.exec("echo x > a/new.txt");
    const event = (await watched.next()).value;
    assert.equal(event.path, "/workspace/a/new.txt");
    await watched.return();
    await s.files.remove("a", { recursive: true });
    await assert.rejects(s.files.read("a/new.txt"), NotFoundError);
  } finally {
    await s.terminate();
  }
});

test("forks of forks, compared and merged; sleep and wake", async () => {
  const s = await client.create("python-agent-pool", { name: "ts-parent" });
  await s.exec("n = 1; open('shared.txt', 'w').write('base')");
  const [a, b] = await s.fork(2, { name: "ts-try" });
  assert.equal(a.name, "ts-try-1");
  await a.exec("n += 1; open('shared.txt', 'w').write('a')");
  await b.exec("open('shared.txt', 'w').write('b'); open('only-b.txt', 'w').write('b')");
  const [deep] = await a.fork();
  assert.equal((await deep.exec("print(n)")).stdout, "2\n");
  const d = await a.diff(b);
  assert.deepEqual(d.changes.map((c) => c.kind + " " + c.path).sort(), ["added /workspace/only-b.txt", "modified /workspace/shared.txt"]);
  assert.equal((await a.merge()).modified, 1);
  await assert.rejects(b.merge(), (e) => e instanceof MergeConflictError && e.conflicts.includes("/workspace/shared.txt"));
  await b.merge(undefined, { conflicts: "theirs" });
  assert.equal(await s.files.read("shared.txt"), "b");
  assert.equal((await s.hibernate()).state, "hibernated");
  assert.equal((await s.exec("print(n)")).stdout, "1\n");
  const tree = await deep.tree({ root: true });
  assert.equal(tree.sandbox.id, s.id);
  assert.equal(tree.children.length, 2);
  const volume = await client.volumes.create("ts-volume");
  const mounted = await client.create(undefined, { template: s.info.template, volumes: [{ volume: volume.id, path: "/data" }] });
  await mounted.files.write("/data/f", "kept");
  assert.equal((await client.volumes.get("ts-volume")).sandboxes.length, 1);
  let measured = [];
  for (let i = 0; i < 600 && !measured.length; i++, await new Promise((f) => setTimeout(f, 100))) measured = await mounted.metrics();
  assert.ok(measured.length > 0);
  await mounted.terminate();
  await client.volumes.delete(volume.id);
  const whole = await s.snapshot("whole", { memory: true });
  const twin = await client.create(undefined, { snapshot: whole });
  assert.equal((await twin.exec("print(n)")).stdout, "1\n");
  await twin.terminate();
  await client.snapshots.delete(whole.id);
  const kept = await s.snapshot("kept");
  await s.terminate();
  const again = await client.create(undefined, { snapshot: kept });
  assert.equal(await again.files.read("only-b.txt"), "b");
  const usage = await again.usage();
  assert.ok(usage.seconds >= 0);
  await Promise.all([a, b, deep, again].map((x) => x.terminate()));
  await client.snapshots.delete(kept.id);
  const kinds = [];
  for await (const e of client.events({ sandbox: s.id, follow: false })) kinds.push(e.kind);
  for (const kind of ["claimed", "forked", "hibernated", "resumed", "ended"]) assert.ok(kinds.includes(kind), `${kind} of ${kinds}`);
});

test("a server inside", async () => {
  const s = await client.create("python-agent-pool");
  try {
    await s.files.write("index.html", "hello from inside");
    await s.start("python3 -m http.server 8000", { language: "shell" });
    let text = "";
    for (let i = 0; i < 600 && !text; i++) {
      const r = await fetch(await s.url(8000, "/index.html"), { headers: await s.headers() });
      if (r.ok) text = await r.text();
      else await new Promise((f) => setTimeout(f, 100));
    }
    assert.equal(text, "hello from inside");
  } finally {
    await s.terminate();
  }
});

test("everything else has its say", async () => {
  assert.equal((await client.me()).role, "admin");
  assert.ok((await client.server()).version);
  assert.ok((await client.nodes()).length >= 1);
  await client.secrets.put("keys", { data: { TOKEN: "t0p" } });
  const s = await client.create("python-agent-pool", { secrets: [{ secretRef: { name: "keys", key: "TOKEN" } }], labels: { team: "red" } });
  assert.equal((await s.exec("echo $TOKEN")).stdout, "t0p\n");
  assert.deepEqual((await client.list({ labels: { team: "red" } })).map((x) => x.id), [s.id]);
  await client.agents.put("coder", { mode: "fresh-per-chat", pool: "python-agent-pool" });
  const c = await client.conversations.attach("chat-1", { agent: "coder" });
  assert.ok(c.sandbox);
  await client.conversations.end("chat-1");
  assert.ok((await client.audit.verify()).entries > 0);
  await s.terminate();
});
