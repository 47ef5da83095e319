// Errors: that they come as the SDK's own types, and that what is newer than the server is met with sense.
import { assert, create, fails, group, Sandbox, sdk } from './kit.mjs';

const api = process.env.E2B_API_URL ?? `https://api.${process.env.E2B_DOMAIN}`;
const key = process.env.E2B_API_KEY;
const ask = (path, { method = 'GET', body, headers = {} } = {}) =>
  fetch(api + path, { method, headers: { 'X-API-Key': key, 'Content-Type': 'application/json', ...headers }, body: body && JSON.stringify(body) });

group('errors', (step) => {
  step('Sandbox.create: wrong key', async () => {
    const wrong = { apiKey: `e2b_${'0'.repeat(40)}` };
    await fails(sdk.Sandbox.create(wrong), sdk.AuthenticationError);
    await fails(sdk.Sandbox.list(wrong).nextItems(), sdk.AuthenticationError);
    await fails(sdk.Sandbox.kill('i0000000000000000000x', wrong), sdk.AuthenticationError);
    await fails(sdk.Volume.list(wrong), sdk.AuthenticationError);
  });
  step('Sandbox.connect: a key of nobody', async () => {
    const s = await create({ timeoutMs: 60_000 });
    await fails(Sandbox.connect(s.sandboxId, { apiKey: `e2b_${'f'.repeat(40)}` }), sdk.AuthenticationError);
    await s.kill();
  });
  step('Sandbox.create: wrong token', async () => {
    const s = await create({ timeoutMs: 60_000 });
    for (const token of ['', 'wrong', s.envdAccessToken.slice(0, -2)]) {
      const other = new Sandbox({ sandboxId: s.sandboxId, sandboxDomain: s.sandboxDomain, envdVersion: '0.6.4', envdAccessToken: token });
      await fails(other.files.read('/etc/passwd'), sdk.AuthenticationError);
      await fails(other.commands.run('true'), sdk.AuthenticationError);
    }
    await s.kill();
  });
  step('Sandbox.create: unknown template', async () => {
    await fails(sdk.Sandbox.create('no-such-template-here'), sdk.SandboxError, /no-such-template-here/);
  });
  step('Sandbox.create: time', async () => {
    await fails(sdk.Sandbox.create({ timeoutMs: 400 * 24 * 3600_000 }), sdk.SandboxError);
  });
  step('Sandbox.setTimeout: unknown sandbox', async () => {
    await fails(Sandbox.setTimeout('i0000000000000000000x', 1000), sdk.NotFoundError);
  });
  step('protocol: unknown fields', async () => {
    const a = await ask('/v2/sandboxes', { method: 'POST', body: { templateID: 'base', timeout: 60, newer: { field: [1] }, autoPause: false } });
    assert.equal(a.status, 201);
    const s = await a.json();
    assert.ok(s.sandboxID && s.envdVersion && s.envdAccessToken);
    assert.equal((await ask(`/sandboxes/${s.sandboxID}?newer=1`)).status, 200);
    assert.equal((await ask(`/sandboxes/${s.sandboxID}`, { method: 'DELETE' })).status, 204);
  });
  step('protocol: unknown calls', async () => {
    for (const [path, method] of [['/v9/sandboxes', 'POST'], ['/v2/sandboxes/x/teleport', 'POST'], ['/v2/volumes', 'GET']]) {
      const a = await ask(path, { method });
      const text = await a.text();
      assert.equal(a.status, 404, `${path}: ${a.status} ${text}`);
      const b = JSON.parse(text);
      assert.equal(b.code, 404);
      assert.match(b.message, /version|v2|2\.\d+/i, b.message);
    }
  });
  step('protocol: bad requests', async () => {
    for (const body of [{ templateID: 7 }, { templateID: 'base', timeout: 'soon' }, { templateID: 'base', timeout: -5 }, []]) {
      const a = await ask('/v2/sandboxes', { method: 'POST', body });
      assert.equal(a.status, 400, JSON.stringify(body));
      assert.equal((await a.json()).code, 400);
    }
    const broken = await fetch(`${api}/v2/sandboxes`, { method: 'POST', headers: { 'X-API-Key': key, 'Content-Type': 'application/json' }, body: '{"templateID":' });
    assert.equal(broken.status, 400);
  });
  step('protocol: a newer SDK', async () => {
    const a = await ask('/v2/sandboxes', { headers: { 'User-Agent': 'e2b-js-sdk/9.1.0', 'X-Newer': '1' } });
    assert.equal(a.status, 200);
    assert.ok(Array.isArray(await a.json()));
  });
});
