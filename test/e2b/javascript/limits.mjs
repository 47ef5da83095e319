// Limits that a server really has, and the types that the SDK makes of them: so many sandboxes of a principal, watchers of a sandbox, bytes of a volume.
import { assert, create, fails, group, sdk, since, until } from './kit.mjs';

const { NotEnoughSpaceError, RateLimitError } = sdk;
const apiKey = process.env.E2B_TEST_LIMITED_KEY;
const small = process.env.E2B_TEST_SMALL;
const MANY = 64; // watchers that a sandbox may have

group('limits', (step) => {
  step('Sandbox.create: rate limit', async () => {
    const make = () => sdk.Sandbox.create({ timeoutMs: 120_000, apiKey });
    const have = [await make(), await make()];
    await fails(make(), RateLimitError, /2 sandboxes/);
    if (have[0].fork) await fails(have[0].fork(), RateLimitError, /2 sandboxes/);
    assert.equal((await have[1].commands.run('echo goes on')).stdout, 'goes on\n');
    await have.pop().kill();
    have.push(await until('room for another', make));
    for (const s of have) await s.kill();
  }, apiKey);
  step('Filesystem.watchDir: rate limit', async () => {
    const s = await create({ timeoutMs: 120_000 });
    await s.files.makeDir('watched');
    const watch = () => s.files.watchDir('watched', () => {});
    const handles = [];
    for (let i = 0; i < MANY; i++) handles.push(await watch());
    await fails(watch(), RateLimitError);
    await handles.pop().stop();
    handles.push(await until('room for another', watch));
    for (const h of handles) await h.stop();
    await s.kill();
  }, apiKey);
  step('Filesystem.write: not enough space', async () => {
    const s = await create(small, { timeoutMs: 120_000 });
    const data = 'x'.repeat(2_000_000), file = '/small/big';
    await fails(s.files.write(file, data), NotEnoughSpaceError, /no space left/);
    await fails(s.files.write([{ path: '/small/first', data: '1' }, { path: file, data }]), NotEnoughSpaceError);
    if (since('2.51.0')) await fails(s.files.write(file, data, { useOctetStream: true }), NotEnoughSpaceError);
    const e = await fails(s.commands.run(`head -c 2000000 /dev/zero >${file}`), sdk.CommandExitError);
    assert.match(e.stderr, /No space left on device/);
    await s.files.remove(file);
    await s.files.write(file, data.slice(0, 100_000));
    assert.equal(await s.files.read('/small/first'), '1');
    assert.equal((await s.commands.run(`ls -A /small; wc -c <${file}`)).stdout, 'big\nfirst\n100000\n');
    await s.kill();
  }, small);
});
