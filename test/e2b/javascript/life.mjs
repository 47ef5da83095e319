// Sandboxes over time: pause and resume, their end, forks and snapshots.
import { assert, create, fails, group, pause, Sandbox, sdk, shared, until } from './kit.mjs';

const { SandboxNotFoundError } = sdk;
// counting starts a process whose memory tells whether it goes on: it counts up, and writes where it is.
const counting = (s, file = '/home/user/count') => s.commands.run(`n=100; while :; do n=$((n+1)); echo $n >${file}.new; mv ${file}.new ${file}; sleep 0.1; done`, { background: true, timeoutMs: 0 });
const count = async (s, file = '/home/user/count') => Number(await s.files.read(file));

group('pause', (step) => {
  step('Sandbox.pause', async () => {
    const s = await create({ timeoutMs: 120_000 });
    await counting(s);
    const before = await until('the count', async () => (await count(s)) > 102 && count(s));
    assert.equal(await s.pause(), true);
    assert.equal((await Sandbox.getInfo(s.sandboxId)).state, 'paused');
    assert.equal(await s.isRunning(), false);
    assert.equal(await Sandbox.pause(s.sandboxId), false, 'it is paused already');
    assert.ok((await Sandbox.list({ query: { state: ['paused'] } }).nextItems()).some((f) => f.sandboxId === s.sandboxId), 'listed as paused');
    await pause(1500);
    const again = await Sandbox.connect(s.sandboxId, { timeoutMs: 90_000 });
    assert.equal((await again.getInfo()).state, 'running');
    const left = (await again.getInfo()).endAt - Date.now();
    assert.ok(left > 60_000 && left < 92_000, `lives ${left} ms on`);
    const after = await count(again);
    assert.ok(after >= before && after < before + 50, `the process went on from ${before}: ${after}`);
    await until('the process to go on', async () => (await count(again)) > after);
    assert.equal((await s.commands.run('echo same')).stdout, 'same\n', 'the object from before works on');
    assert.equal(await again.kill(), true);
  });
  step('Sandbox.pause: without memory', async () => {
    const s = await create({ timeoutMs: 120_000 });
    await counting(s);
    await until('the count', async () => (await count(s)) > 102);
    await s.files.write('/home/user/kept', 'on disk');
    assert.equal(await s.pause({ keepMemory: false }), true);
    const again = await Sandbox.connect(s.sandboxId);
    assert.equal(await again.files.read('/home/user/kept'), 'on disk');
    assert.deepEqual((await again.commands.list()).filter((p) => p.args.some((a) => a.includes('count'))), []);
    await again.kill();
  });
  step('Sandbox.betaPause', async () => {
    const s = await create({ timeoutMs: 120_000 });
    assert.equal(await s.betaPause(), true);
    assert.equal(await Sandbox.betaPause(s.sandboxId), false);
    assert.equal(await s.kill(), true, 'a paused one can be ended');
    await fails(Sandbox.connect(s.sandboxId), SandboxNotFoundError);
  });
  step('Sandbox.pause: unknown sandbox', async () => {
    await fails(Sandbox.pause('i0000000000000000000x'), SandboxNotFoundError);
  });
  step('Sandbox.create: ends in time', async () => {
    const begun = Date.now();
    const s = await create({ timeoutMs: 2_000 });
    await until('its end', async () => { try { await s.getInfo(); return false; } catch (e) { return e instanceof SandboxNotFoundError; } });
    assert.ok(Date.now() >= begun + 2_000, 'not before its time');
    assert.equal(await s.isRunning(), false);
    await fails(s.commands.run('true'), sdk.SandboxError);
  });
  step('Sandbox.create: pauses in time', async () => {
    const s = await create({ timeoutMs: 120_000, lifecycle: { onTimeout: 'pause' } });
    await s.files.write('/home/user/kept', 'slept');
    assert.deepEqual((await s.getInfo()).lifecycle, { onTimeout: 'pause', autoResume: false });
    await s.setTimeout(1_000);
    await until('its sleep', async () => (await Sandbox.getInfo(s.sandboxId)).state === 'paused');
    await fails(s.commands.run('true'), sdk.SandboxError);
    assert.equal((await Sandbox.getInfo(s.sandboxId)).state, 'paused', 'a use doesn’t wake it');
    const again = await Sandbox.connect(s.sandboxId, { timeoutMs: 60_000 });
    assert.equal(await again.files.read('/home/user/kept'), 'slept');
    await again.kill();
  });
  step('Sandbox.create: resumes by itself', async () => {
    const s = await create({ timeoutMs: 2_000, lifecycle: { onTimeout: 'pause', autoResume: true } });
    await s.files.write('/home/user/kept', 'slept');
    assert.deepEqual((await s.getInfo()).lifecycle, { onTimeout: 'pause', autoResume: true });
    await until('its sleep', async () => (await Sandbox.getInfo(s.sandboxId)).state === 'paused');
    assert.equal((await s.commands.run('cat /home/user/kept')).stdout, 'slept');
    const info = await Sandbox.getInfo(s.sandboxId);
    assert.equal(info.state, 'running');
    const left = info.endAt - Date.now();
    assert.ok(left > 200_000 && left < 302_000, `five minutes then, where it was made for less: ${left} ms`);
    await s.kill();
  });
});

group('fork', (step) => {
  const parent = shared({ metadata: { role: 'parent' }, timeoutMs: 240_000 });
  step('Sandbox.fork', async () => {
    const s = await parent();
    await counting(s, '/home/user/forked');
    const before = await until('the count', async () => (await count(s, '/home/user/forked')) > 102 && count(s, '/home/user/forked'));
    const forks = await s.fork({ count: 2, timeoutMs: 60_000 });
    assert.equal(forks.length, 2);
    for (const f of forks) {
      assert.ok(f instanceof Sandbox, `${f}`);
      assert.notEqual(f.sandboxId, s.sandboxId);
      const now = await count(f, '/home/user/forked');
      assert.ok(now >= before, `${now} after ${before}`);
      await until('the process to go on', async () => (await count(f, '/home/user/forked')) > now);
      const left = (await f.getInfo()).endAt - Date.now();
      assert.ok(left > 20_000 && left < 62_000, `lives ${left} ms`);
    }
    await forks[0].files.write('/home/user/mine', 'a');
    assert.equal(await s.files.exists('/home/user/mine'), false, 'not in the parent');
    assert.equal(await forks[1].files.exists('/home/user/mine'), false, 'not in the other');
    assert.ok(await s.isRunning(), 'the parent goes on');
    for (const f of forks) assert.equal(await f.kill(), true);
  });
  step('Sandbox.fork: by id', async () => {
    const s = await parent();
    const [f] = await Sandbox.fork(s.sandboxId);
    assert.ok(f instanceof Sandbox, `${f}`);
    assert.equal((await f.commands.run('echo fork')).stdout, 'fork\n');
    await f.kill();
    await fails(Sandbox.fork('i0000000000000000000x'), SandboxNotFoundError);
  });
});

group('snapshots', (step) => {
  const parent = shared({ timeoutMs: 240_000 });
  const name = `snap-js-${process.pid}`;
  let snapshot;
  step('Sandbox.createSnapshot', async () => {
    const s = await parent();
    await counting(s);
    await until('the count', async () => (await count(s)) > 102);
    snapshot = await s.createSnapshot({ name });
    assert.ok(snapshot.snapshotId);
    assert.ok(snapshot.names.some((n) => n.includes(name)), JSON.stringify(snapshot));
    const at = await count(s);
    await until('the parent to go on', async () => (await count(s)) > at);
    await s.files.write('/home/user/later', 'not in it');
    const from = await create(snapshot.snapshotId, { timeoutMs: 60_000 });
    assert.equal(await from.files.exists('/home/user/later'), false);
    const now = await count(from);
    assert.ok(now >= 102, `${now}`);
    await until('the process to go on in the copy', async () => (await count(from)) > now);
    await from.kill();
    const byName = await create(name, { timeoutMs: 60_000 });
    assert.equal(await byName.files.exists('/home/user/later'), false);
    await byName.kill();
  });
  step('Sandbox.listSnapshots', async () => {
    const s = await parent();
    assert.deepEqual((await s.listSnapshots().nextItems()).map((i) => i.snapshotId), [snapshot.snapshotId]);
    const all = [];
    for (const p = Sandbox.listSnapshots({ limit: 50 }); p.hasNext;) all.push(...await p.nextItems());
    assert.ok(all.some((i) => i.snapshotId === snapshot.snapshotId));
    assert.deepEqual((await Sandbox.listSnapshots({ sandboxId: 'i0000000000000000000x' }).nextItems()), []);
  });
  step('SnapshotPaginator.nextItems', async () => {
    const s = await parent();
    const second = await s.createSnapshot();
    const p = s.listSnapshots({ limit: 1 });
    const ids = [];
    for (let i = 0; p.hasNext; i++) { assert.ok(i < 4); const page = await p.nextItems(); assert.ok(page.length <= 1); ids.push(...page.map((x) => x.snapshotId)); }
    assert.deepEqual(ids.sort(), [snapshot.snapshotId, second.snapshotId].sort());
    assert.equal(await Sandbox.deleteSnapshot(second.snapshotId), true);
  });
  step('Sandbox.deleteSnapshot', async () => {
    assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), true);
    assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), false);
    assert.deepEqual(await (await parent()).listSnapshots().nextItems(), []);
  });
});
