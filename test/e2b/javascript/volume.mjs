// Volumes and secrets.
import { assert, create, fails, group, Sandbox, sdk } from './kit.mjs';

const { Secret, SecretNotFoundError, Volume, VolumeNotFoundError, VolumePathNotFoundError } = sdk;

group('volumes', (step) => {
  let v;
  const name = `vol-js-${process.pid}`;
  step('Volume.create', async () => {
    v = await Volume.create(name);
    assert.equal(v.name, name);
    assert.ok(v.volumeId && v.token);
  });
  step('Volume.connect', async () => {
    const again = await Volume.connect(v.volumeId);
    assert.deepEqual([again.volumeId, again.name], [v.volumeId, name]);
    await fails(Volume.connect('no-such-volume'), VolumeNotFoundError);
  });
  step('Volume.list', async () => {
    assert.ok((await Volume.list()).some((i) => i.volumeId === v.volumeId && i.name === name));
    await v.writeFile('/list/a', 'x');
    assert.deepEqual((await v.list('/list')).map((e) => [e.name, e.type, e.size]), [['a', 'file', 1]]);
    assert.ok((await v.list('/', { depth: 2 })).some((e) => e.path === '/list/a'));
    await fails(v.list('/nothing'), VolumePathNotFoundError);
  });
  step('Volume.getInfo', async () => {
    assert.equal((await Volume.getInfo(v.volumeId)).name, name);
    await v.writeFile('/info', '12345');
    const i = await v.getInfo('/info');
    assert.deepEqual([i.name, i.path, i.type, i.size], ['info', '/info', 'file', 5]);
    assert.ok(Math.abs(Date.now() - i.mtime) < 600_000);
    await fails(Volume.getInfo('no-such-volume'), VolumeNotFoundError);
    await fails(v.getInfo('/nothing'), VolumePathNotFoundError);
  });
  step('Volume.makeDir', async () => {
    const d = await v.makeDir('/made');
    assert.deepEqual([d.type, d.path], ['directory', '/made']);
    await v.makeDir('/made/deep/down', { force: true });
    assert.equal((await v.getInfo('/made/deep/down')).type, 'directory');
  });
  step('Volume.writeFile', async () => {
    const i = await v.writeFile('/written', 'text', { mode: 0o600 });
    assert.deepEqual([i.path, i.size, i.mode & 0o777], ['/written', 4, 0o600]);
    await v.writeFile('/bytes', new Uint8Array([1, 2, 3]).buffer);
    await v.writeFile('/blob', new Blob(['blob']));
    await v.writeFile('/stream', new Blob(['stream']).stream());
    assert.equal(await v.readFile('/stream'), 'stream');
    assert.equal(await v.readFile('/blob'), 'blob');
  });
  step('Volume.readFile', async () => {
    assert.equal(await v.readFile('/written'), 'text');
    assert.deepEqual(await v.readFile('/bytes', { format: 'bytes' }), new Uint8Array([1, 2, 3]));
    assert.equal(await (await v.readFile('/written', { format: 'blob' })).text(), 'text');
    assert.equal(await new Response(await v.readFile('/written', { format: 'stream' })).text(), 'text');
    await fails(v.readFile('/nothing'), VolumePathNotFoundError);
  });
  step('Volume.exists', async () => {
    assert.equal(await v.exists('/written'), true);
    assert.equal(await v.exists('/nothing'), false);
  });
  step('Volume.updateMetadata', async () => {
    const i = await v.updateMetadata('/written', { mode: 0o640, uid: 1000, gid: 1000 });
    assert.deepEqual([i.mode & 0o777, i.uid, i.gid], [0o640, 1000, 1000]);
  });
  step('Volume.remove', async () => {
    await v.remove('/bytes');
    assert.equal(await v.exists('/bytes'), false);
    await fails(v.remove('/bytes'), VolumePathNotFoundError);
  });
  step('Sandbox.create: volume', async () => {
    const a = await create({ volumeMounts: { '/mnt/shared': v }, timeoutMs: 120_000 });
    assert.equal((await a.commands.run('cat /mnt/shared/written')).stdout, 'text');
    await a.commands.run('echo from a >/mnt/shared/a.txt');
    const b = await create({ volumeMounts: { '/data': name }, timeoutMs: 120_000 });
    assert.equal((await b.commands.run('cat /data/a.txt')).stdout, 'from a\n', 'another sandbox sees it');
    await b.commands.run('echo from b >/data/b.txt');
    assert.equal((await a.commands.run('cat /mnt/shared/b.txt')).stdout, 'from b\n', 'while both run');
    assert.deepEqual((await a.getInfo()).volumeMounts, [{ name, path: '/mnt/shared' }]);
    assert.equal(await v.readFile('/a.txt'), 'from a\n');
    await a.kill();
    await b.kill();
    assert.equal(await v.readFile('/b.txt'), 'from b\n', 'it outlives its sandboxes');
    await fails(Sandbox.create({ volumeMounts: { '/x': 'no-such-volume' } }), Error);
  });
  step('Volume.destroy', async () => {
    assert.equal(await Volume.destroy(v.volumeId), true);
    assert.equal(await Volume.destroy(v.volumeId), false);
    await fails(Volume.getInfo(v.volumeId), VolumeNotFoundError);
  });
});

group('secrets', (step) => {
  const name = `suite_js_${process.pid}`;
  let made;
  step('Secret.create', async () => {
    made = await Secret.create(name, 'first value', { metadata: { of: 'suite' } });
    assert.deepEqual([made.name, made.version, made.metadata], [name, 1, { of: 'suite' }]);
    assert.ok(made.secretId && made.createdAt instanceof Date);
  });
  step('Secret.getInfo', async () => {
    for (const key of [name, made.secretId]) {
      const i = await Secret.getInfo(key);
      assert.deepEqual([i.secretId, i.name], [made.secretId, name]);
      assert.ok(!JSON.stringify(i).includes('first value'), 'its value isn’t told');
    }
    await fails(Secret.getInfo('NO_SUCH'), SecretNotFoundError);
  });
  step('Secret.update', async () => {
    const i = await Secret.update(name, 'second value', { metadata: { of: 'update' } });
    assert.deepEqual([i.version, i.metadata], [2, { of: 'update' }]);
    await fails(Secret.update('NO_SUCH', 'x'), SecretNotFoundError);
  });
  step('Secret.list', async () => {
    const all = [];
    for (const p = Secret.list({ limit: 100 }); p.hasNext;) all.push(...await p.nextItems());
    assert.ok(all.some((i) => i.name === name));
  });
  step('SecretPaginator.nextItems', async () => {
    await Secret.create(`${name}_2`, 'x');
    const p = Secret.list({ limit: 1 });
    assert.equal((await p.nextItems()).length, 1);
    assert.equal(p.hasNext, true);
    assert.equal((await p.nextItems()).length, 1);
    assert.equal(await Secret.destroy(`${name}_2`), true);
  });
  step('Secret.exists', async () => {
    assert.equal(await Secret.exists(name), true);
    assert.equal(await Secret.exists('NO_SUCH'), false);
  });
  step('Secret.fill', async () => {
    assert.ok(Secret.fill(name).includes(name));
    // A secret goes into requests on their way out; the sandbox never has its value.
    const s = await create({ timeoutMs: 120_000, network: { allowOut: ['example.com'], denyOut: [sdk.ALL_TRAFFIC], rules: { 'example.com': [{ transform: { headers: { Authorization: `Bearer ${Secret.fill(name)}` } } }] } } });
    assert.ok(!(await s.commands.run('env')).stdout.includes('second value'));
    const { rules } = (await s.getInfo()).network;
    assert.ok(!JSON.stringify(rules).includes('second value') && 'example.com' in rules, JSON.stringify(rules));
    await s.kill();
  });
  step('Secret.iamToken', async () => {
    assert.deepEqual(Secret.iamToken({ audience: 'a', tokenType: 'JWT-SVID' }), { audience: 'a', tokenType: 'JWT-SVID' });
  });
  step('Secret.destroy', async () => {
    assert.equal(await Secret.destroy(name), true);
    assert.equal(await Secret.destroy(name), false);
    assert.equal(await Secret.exists(name), false);
  });
});
