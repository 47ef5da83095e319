// Making, finding and ending sandboxes, and the ways to one from outside.
import { assert, create, fails, fetchHost, group, Sandbox, sdk, shared, until, version } from './kit.mjs';

const { SandboxNotFoundError } = sdk;

group('sandbox', (step) => {
  const box = shared({ metadata: { suite: 'js', run: `${process.pid}` }, envs: { COLOUR: 'blue', EMPTY: '' }, timeoutMs: 240_000 });

  step('Sandbox.create', async () => {
    const s = await create();
    assert.match(s.sandboxId, /^[a-z0-9-]+$/);
    assert.ok(s.sandboxDomain, 'a domain');
    assert.ok(await s.isRunning());
    const info = await s.getInfo();
    const lives = info.endAt - info.startedAt;
    assert.ok(lives > 290_000 && lives < 310_000, `lives ${lives} ms unless told`);
    assert.equal(await s.kill(), true);
  });
  step('Sandbox.create: template', async () => {
    const s = await sdk.Sandbox.create('base', { timeoutMs: 60_000 });
    assert.equal((await s.getInfo()).name, 'base');
    await s.kill();
  });
  step('Sandbox.create: environment', async () => {
    const s = await box();
    assert.equal((await s.commands.run('echo "$COLOUR${EMPTY-unset}"')).stdout, 'blue\n');
    assert.equal((await s.commands.run('bash -c "echo $COLOUR"')).stdout, 'blue\n');
  });
  step('Sandbox.create: not secure', async () => {
    const s = await create({ secure: false, timeoutMs: 60_000 });
    assert.equal((await s.commands.run('echo $((6*7))')).stdout, '42\n');
    assert.equal(await s.kill(), true);
  });
  step('Sandbox.create: client of its own', async () => {
    const client = new sdk.E2B({ apiKey: process.env.E2B_API_KEY });
    const s = await client.Sandbox.create({ timeoutMs: 60_000 });
    assert.equal((await client.Sandbox.getInfo(s.sandboxId)).sandboxId, s.sandboxId);
    assert.equal(await client.Sandbox.kill(s.sandboxId), true);
  });

  step('Sandbox.getInfo', async () => {
    const s = await box();
    for (const info of [await s.getInfo(), await Sandbox.getInfo(s.sandboxId)]) {
      assert.equal(info.sandboxId, s.sandboxId);
      assert.ok(info.templateId);
      assert.deepEqual(info.metadata, { suite: 'js', run: `${process.pid}` });
      assert.equal(info.state, 'running');
      assert.ok(Math.abs(Date.now() - info.startedAt) < 600_000, `started at ${info.startedAt}`);
      const lives = info.endAt - info.startedAt;
      assert.ok(lives >= 239_000 && lives < 260_000, `lives ${lives} ms`);
      assert.ok(info.cpuCount >= 1 && info.memoryMB >= 64, `${info.cpuCount} CPUs, ${info.memoryMB} MB`);
      assert.match(info.envdVersion, /^\d+\.\d+\.\d+$/);
      assert.deepEqual(info.lifecycle, { onTimeout: 'kill', autoResume: false });
    }
  });
  step('Sandbox.getFullInfo', async () => {
    const s = await box();
    assert.equal((await Sandbox.getFullInfo(s.sandboxId)).sandboxId, s.sandboxId);
  });
  step('Sandbox.getInfo: unknown sandbox', async () => {
    await fails(Sandbox.getInfo('i0000000000000000000x'), SandboxNotFoundError, /i0000000000000000000x/);
  });

  step('Sandbox.list', async () => {
    const s = await box();
    const p = Sandbox.list({ query: { metadata: { suite: 'js', run: `${process.pid}` } } });
    assert.equal(p.hasNext, true);
    const found = await p.nextItems();
    assert.deepEqual(found.map((f) => f.sandboxId), [s.sandboxId]);
    assert.equal(found[0].state, 'running');
    assert.equal(found[0].metadata.run, `${process.pid}`);
    assert.equal(found[0].startedAt instanceof Date, true);
    assert.equal(p.hasNext, false);
    assert.deepEqual(await Sandbox.list({ query: { metadata: { suite: 'nobody' } } }).nextItems(), []);
    assert.deepEqual(await Sandbox.list({ query: { metadata: { run: `${process.pid}` }, state: ['paused'] } }).nextItems(), []);
  });
  step('SandboxPaginator.nextItems', async () => {
    const mark = `page-${process.pid}`;
    const three = await Promise.all([0, 1, 2].map(() => create({ metadata: { mark }, timeoutMs: 60_000 })));
    const p = Sandbox.list({ query: { metadata: { mark }, state: ['running'] }, limit: 2 });
    const ids = [];
    let pages = 0;
    while (p.hasNext) {
      const items = await p.nextItems();
      assert.ok(items.length <= 2, `${items.length} on a page of 2`);
      ids.push(...items.map((i) => i.sandboxId));
      assert.ok(++pages < 5);
    }
    assert.deepEqual(ids.sort(), three.map((s) => s.sandboxId).sort());
    assert.equal(pages, 2);
    await Promise.all(three.map((s) => s.kill()));
  });

  step('Sandbox.isRunning', async () => {
    const s = await create({ timeoutMs: 60_000 });
    assert.equal(await s.isRunning(), true);
    await s.kill();
    assert.equal(await s.isRunning(), false);
  });
  step('Sandbox.connect', async () => {
    const s = await box();
    await s.files.write('/home/user/connected', 'yes');
    const again = await Sandbox.connect(s.sandboxId);
    assert.equal(again.sandboxId, s.sandboxId);
    assert.equal(await again.files.read('/home/user/connected'), 'yes');
    assert.equal((await again.commands.run('echo hi')).stdout, 'hi\n');
    assert.ok((await s.getInfo()).endAt - Date.now() > 100_000, 'a shorter time isn’t taken over');
    await again.connect();
    assert.ok(await again.isRunning());
  });
  step('Sandbox.connect: unknown sandbox', async () => {
    await fails(Sandbox.connect('i0000000000000000000x'), SandboxNotFoundError);
  });
  step('Sandbox.setTimeout', async () => {
    const s = await create({ timeoutMs: 60_000 });
    await s.setTimeout(600_000);
    let left = (await s.getInfo()).endAt - Date.now();
    assert.ok(left > 580_000 && left <= 601_000, `longer: ${left} ms`);
    await Sandbox.setTimeout(s.sandboxId, 30_000);
    left = (await s.getInfo()).endAt - Date.now();
    assert.ok(left > 15_000 && left <= 31_000, `shorter: ${left} ms`);
    await s.kill();
  });
  step('Sandbox.kill', async () => {
    const s = await create({ timeoutMs: 60_000 });
    assert.equal(await s.kill(), true);
    assert.equal(await s.kill(), false);
    assert.equal(await Sandbox.kill(s.sandboxId), false);
    await fails(s.getInfo(), SandboxNotFoundError);
    await fails(s.commands.run('true'), sdk.SandboxError);
    await fails(s.files.read('/etc/passwd'), sdk.TimeoutError);
    assert.equal(await Sandbox.kill('i0000000000000000000x'), false);
  });

  step('Sandbox.getHost', async () => {
    const s = await box();
    assert.equal(s.getHost(8000), `8000-${s.sandboxId}.${s.sandboxDomain}`);
    await s.commands.run('mkdir -p /home/user/www && cd /home/user/www && echo served >index.txt');
    await s.commands.run('cd /home/user/www && python3 -m http.server 8000', { background: true, timeoutMs: 0 });
    const a = await until('the server in the sandbox', async () => { const r = await fetchHost(s.getHost(8000), '/index.txt'); return r.status === 200 && r; });
    assert.equal(a.text, 'served\n');
    assert.equal((await fetchHost(s.getHost(8000), '/nothing')).status, 404);
  });
  step('Sandbox.getHost: nothing listens', async () => {
    const s = await box();
    const a = await fetchHost(s.getHost(8001));
    assert.equal(a.status, 502);
    assert.match(a.text, /8001/);
  });

  step('Sandbox.downloadUrl', async () => {
    const s = await box();
    await s.files.write('/home/user/given.txt', 'from the sandbox');
    const a = await fetch(await s.downloadUrl('/home/user/given.txt'));
    assert.equal(a.status, 200);
    assert.equal(await a.text(), 'from the sandbox');
    assert.equal((await fetch(await s.downloadUrl('given.txt'))).status, 200, 'a path from home');
    assert.equal((await fetch(await s.downloadUrl('/home/user/given.txt', { user: 'root' }))).status, 200, 'as another user');
    assert.equal((await fetch(await s.downloadUrl('/home/user/none.txt'))).status, 404);
  });
  step('Sandbox.downloadUrl: expiration', async () => {
    const s = await box();
    await s.files.write('/home/user/given.txt', 'from the sandbox');
    const url = await s.downloadUrl('/home/user/given.txt', { useSignatureExpiration: 120 });
    assert.equal(await (await fetch(url)).text(), 'from the sandbox');
    const short = await s.downloadUrl('/home/user/given.txt', { useSignatureExpiration: -10 });
    assert.equal((await fetch(short)).status, 401, 'one that has expired');
    assert.equal((await fetch(url.replace(/given.txt/, 'other.txt'))).status, 401, 'a signature of another path');
    assert.equal((await fetch(url.replace(/signature=v1_.{4}/, 'signature=v1_AAAA'))).status, 401, 'a wrong signature');
  });
  step('Sandbox.uploadUrl', async () => {
    const s = await box();
    const form = new FormData();
    form.append('file', new Blob(['by form']), 'upload.txt');
    const url = await s.uploadUrl('/home/user/up.txt');
    assert.equal((await fetch(url, { method: 'POST', body: form })).status, 200);
    assert.equal(await s.files.read('/home/user/up.txt'), 'by form');
    assert.notEqual((await fetch(url.replace('up.txt', 'down.txt'), { method: 'POST', body: form })).status, 200);
    assert.equal(await s.files.exists('/home/user/down.txt'), false);
    const wide = new FormData();
    wide.append('file', new Blob(['anywhere']), '/home/user/anywhere.txt');
    assert.equal((await fetch(await s.uploadUrl(undefined, { useSignatureExpiration: 100 }), { method: 'POST', body: wide })).status, 200);
    assert.equal(await s.files.read('/home/user/anywhere.txt'), 'anywhere');
  });
  step('getSignature', async () => {
    const sig = await sdk.getSignature({ path: '/a', operation: 'read', user: 'user', envdAccessToken: 'token' });
    assert.match(sig.signature, /^v1_/);
  });

  step('Sandbox.getMetrics', async () => {
    const s = await box();
    const m = await until('a measurement', async () => { const l = await s.getMetrics(); return l.length > 0 && l; });
    const last = m.at(-1);
    assert.ok(last.timestamp instanceof Date && Math.abs(Date.now() - last.timestamp) < 120_000, `${last.timestamp}`);
    assert.ok(last.cpuCount >= 1 && last.cpuUsedPct >= 0, JSON.stringify(last));
    assert.ok(last.memTotal > 0 && last.memUsed >= 0 && last.memUsed <= last.memTotal, JSON.stringify(last));
    assert.ok(last.diskTotal > 0 && last.diskUsed >= 0, JSON.stringify(last));
    assert.deepEqual(await Sandbox.getMetrics(s.sandboxId, { start: new Date(Date.now() - 7_200_000), end: new Date(Date.now() - 3_600_000) }), []);
  });
  step('Sandbox.getMcpUrl', async () => {
    const s = await box();
    assert.match(s.getMcpUrl(), /^https:\/\/50005-/);
  });
  step('ConnectionConfig', async () => assert.ok(version));
});

group('network', (step) => {
  step('Sandbox.create: no internet', async () => {
    const s = await create({ allowInternetAccess: false, timeoutMs: 120_000 });
    const r = await s.commands.run('curl -sS --max-time 20 http://192.0.2.1/ || echo "refused $?"');
    assert.match(r.stdout, /^refused [1-9]/, r.stdout + r.stderr);
    assert.equal((await s.getInfo()).allowInternetAccess, false);
    await s.kill();
  });
  step('Sandbox.create: network rules', async () => {
    const s = await create({ timeoutMs: 120_000, network: { denyOut: [sdk.ALL_TRAFFIC], allowOut: ['example.com', '198.51.100.7'] } });
    const { network } = await s.getInfo();
    assert.deepEqual(network.denyOut, [sdk.ALL_TRAFFIC]);
    assert.deepEqual([...network.allowOut].sort(), ['198.51.100.7', 'example.com']);
    const r = await s.commands.run('curl -sS --max-time 20 http://192.0.2.1/ || echo "refused $?"');
    assert.match(r.stdout, /^refused [1-9]/, r.stdout + r.stderr);
    await s.kill();
  });
  step('Sandbox.updateNetwork', async () => {
    const s = await create({ timeoutMs: 120_000 });
    await s.updateNetwork({ denyOut: [sdk.ALL_TRAFFIC], allowOut: ['example.org'] });
    let { network } = await s.getInfo();
    assert.deepEqual([network.denyOut, network.allowOut], [[sdk.ALL_TRAFFIC], ['example.org']]);
    const r = await s.commands.run('curl -sS --max-time 20 http://192.0.2.1/ || echo "refused $?"');
    assert.match(r.stdout, /^refused [1-9]/, r.stdout + r.stderr);
    await Sandbox.updateNetwork(s.sandboxId, { allowInternetAccess: false });
    assert.equal((await s.getInfo()).allowInternetAccess, false);
    await fails(Sandbox.updateNetwork('i0000000000000000000x', {}), Error);
    await s.kill();
  });
});
