// What a client sees when the server ends under it: run by TestRestart, which ends the server once this program says "running" and starts it again.
import fs from 'node:fs';
import { assert, pause, Sandbox, sdk, until } from './kit.mjs';

const say = (word) => fs.appendFileSync(process.env.E2B_TEST_RESULTS, word + '\n');
const s = await Sandbox.create({ timeoutMs: 300_000 });
const h = await s.commands.run('while :; do echo tick; sleep 0.1; done', { background: true, timeoutMs: 0 });
await until('output', () => h.stdout.includes('tick\ntick'));
const ended = h.wait().then(() => undefined, (e) => e);
const code = s.runCode('print("on", flush=True)\nimport time\ntime.sleep(600)', { timeoutMs: 0, onStdout: () => say('running') }).then(() => undefined, (e) => e);

const error = await ended;
assert.ok(error instanceof sdk.SandboxError, `the stream ends with the SDK's own error: ${error?.name}: ${error?.message}`);
assert.ok((await code) instanceof Error, 'so does a text that runs');
say('failed');
// The key is valid still, and what was told about the sandbox is either so or it is gone: nothing hangs.
await until('the server', async () => Array.isArray(await Sandbox.list().nextItems()), 90_000);
try {
  const again = await Sandbox.connect(s.sandboxId, { requestTimeoutMs: 30_000 });
  assert.equal((await again.commands.run('echo back')).stdout, 'back\n');
} catch (e) {
  assert.ok(e instanceof sdk.SandboxNotFoundError, `${e.name}: ${e.message}`);
}
const fresh = await Sandbox.create({ timeoutMs: 60_000 });
assert.equal((await fresh.commands.run('echo new')).stdout, 'new\n');
await fresh.kill();
say('done');
await pause(0);
process.exit(0);
