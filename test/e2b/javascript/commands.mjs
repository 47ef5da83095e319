// Commands, their streams and signals, terminals.
import { assert, fails, group, pause, sdk, shared, until } from './kit.mjs';

const { CommandExitError, InvalidArgumentError, NotFoundError, TimeoutError } = sdk;

group('commands', (step) => {
  const box = shared({ envs: { FROM: 'sandbox' }, timeoutMs: 240_000 });

  step('Commands.run', async () => {
    const s = await box();
    const r = await s.commands.run('echo out; echo err >&2');
    assert.deepEqual([r.exitCode, r.stdout, r.stderr, r.error], [0, 'out\n', 'err\n', undefined]);
  });
  step('Commands.run: exit status', async () => {
    const s = await box();
    const e = await fails(s.commands.run('echo before; echo wrong >&2; exit 3'), CommandExitError);
    assert.deepEqual([e.exitCode, e.stdout, e.stderr], [3, 'before\n', 'wrong\n']);
    assert.equal((await fails(s.commands.run('no-such-command-here'), CommandExitError)).exitCode, 127);
  });
  step('Commands.run: directory', async () => {
    const s = await box();
    assert.equal((await s.commands.run('pwd')).stdout, '/home/user\n');
    assert.equal((await s.commands.run('pwd', { cwd: '/tmp' })).stdout, '/tmp\n');
    await fails(s.commands.run('pwd', { cwd: '/no/such/directory' }), InvalidArgumentError, /no\/such\/directory/);
  });
  step('Commands.run: environment', async () => {
    const s = await box();
    assert.equal((await s.commands.run('echo "$FROM $OWN"', { envs: { OWN: "it's 'own' $HOME" } })).stdout, "sandbox it's 'own' $HOME\n");
    assert.equal((await s.commands.run('echo "$FROM${OWN-}"', { envs: { FROM: 'call' } })).stdout, 'call\n');
    assert.equal((await s.commands.run('echo $E2B_SANDBOX $E2B_SANDBOX_ID')).stdout, `true ${s.sandboxId}\n`);
    assert.equal((await s.commands.run('echo $HOME $USER')).stdout, '/home/user user\n');
  });
  step('Commands.run: users', async () => {
    const s = await box();
    assert.equal((await s.commands.run('id -un')).stdout, 'user\n');
    assert.equal((await s.commands.run('id -u', { user: 'root' })).stdout, '0\n');
    assert.equal((await s.commands.run('pwd; echo $HOME', { user: 'root' })).stdout, '/root\n/root\n');
    await fails(s.commands.run('true', { user: 'nobody-of-this-name' }), Error, /nobody-of-this-name/);
  });
  step('Commands.run: streams', async () => {
    const s = await box();
    const got = [];
    let ended = false;
    const wrong = [];
    const r = s.commands.run('for i in 1 2 3; do echo line $i; until [ -e /tmp/seen ]; do sleep 0.1; done; done; echo bad >&2', { onStdout: (d) => got.push([d, ended]), onStderr: (d) => wrong.push(d) }).then((v) => { ended = true; return v; });
    await until('the first line', () => got.length > 0);
    assert.equal(ended, false, 'output comes while it runs');
    await s.files.write('/tmp/seen', '');
    assert.equal((await r).stdout, 'line 1\nline 2\nline 3\n');
    assert.equal(got.map((g) => g[0]).join(''), 'line 1\nline 2\nline 3\n');
    assert.ok(got.length >= 2, 'in several parts');
    assert.deepEqual(wrong.join(''), 'bad\n');
  });
  step('Commands.run: much output', async () => {
    const s = await box();
    const r = await s.commands.run('head -c 3000000 /dev/zero | tr "\\0" x; echo; printf "äöü€😀%.0s" $(seq 1 2000)');
    const [x, text] = r.stdout.split('\n');
    assert.equal(x.length, 3_000_000);
    assert.equal(text, 'äöü€😀'.repeat(2000));
  });
  step('Commands.run: timeout', async () => {
    const s = await box();
    const start = Date.now();
    await fails(s.commands.run('echo begun; sleep 50', { timeoutMs: 1000 }), TimeoutError);
    assert.ok(Date.now() - start < 20_000);
    await until('its end', async () => !(await s.commands.list()).some((p) => p.args.join(' ').includes('sleep 50')));
  });
  step('Commands.run: background', async () => {
    const s = await box();
    const h = await s.commands.run('echo begun; sleep 0.5; echo ended; exit 4', { background: true });
    assert.ok(h.pid > 0);
    assert.equal(h.exitCode, undefined);
    const e = await fails(h.wait(), CommandExitError);
    assert.equal(e.exitCode, 4);
    assert.deepEqual([h.stdout, h.stderr, h.exitCode], ['begun\nended\n', '', 4]);
  });
  step('CommandHandle.wait', async () => {
    const s = await box();
    const h = await s.commands.run('sleep 0.3; echo done', { background: true });
    assert.deepEqual(await h.wait(), { exitCode: 0, error: undefined, stdout: 'done\n', stderr: '' });
  });
  step('CommandHandle.kill', async () => {
    const s = await box();
    const h = await s.commands.run('echo up; sleep 100', { background: true });
    assert.equal(await h.kill(), true);
    const e = await fails(h.wait(), CommandExitError);
    assert.notEqual(e.exitCode, 0);
    assert.match(e.error ?? e.message, /kill/);
    assert.equal(await h.kill(), false, 'it has ended');
  });
  step('Commands.kill', async () => {
    const s = await box();
    const h = await s.commands.run('trap "" TERM; sleep 100', { background: true });
    assert.equal(await s.commands.kill(h.pid), true);
    assert.equal(await s.commands.kill(h.pid), false);
    assert.equal(await s.commands.kill(999_999), false);
    await fails(h.wait(), CommandExitError);
  });
  step('Commands.list', async () => {
    const s = await box();
    const h = await s.commands.run('sleep 77', { background: true, cwd: '/tmp', envs: { SEEN: 'yes' } });
    const p = (await s.commands.list()).find((x) => x.pid === h.pid);
    assert.ok(p, 'it is listed');
    assert.equal(p.cmd, '/bin/bash');
    assert.deepEqual(p.args, ['-l', '-c', 'sleep 77']);
    assert.equal(p.cwd, '/tmp');
    assert.equal(p.envs.SEEN, 'yes');
    await h.kill();
    await until('its end', async () => !(await s.commands.list()).some((x) => x.pid === h.pid));
  });
  step('Commands.sendStdin', async () => {
    const s = await box();
    const h = await s.commands.run('read a; echo "got $a"; read b; echo "and $b"', { background: true, stdin: true });
    await s.commands.sendStdin(h.pid, 'one\n');
    await until('the answer', () => h.stdout.includes('got one'));
    await s.commands.sendStdin(h.pid, new TextEncoder().encode('twø\n'));
    assert.equal((await h.wait()).stdout, 'got one\nand twø\n');
    await fails(s.commands.sendStdin(999_999, 'x'), NotFoundError);
  });
  step('Commands.closeStdin', async () => {
    const s = await box();
    const h = await s.commands.run('cat; echo at its end', { background: true, stdin: true });
    await s.commands.sendStdin(h.pid, 'text\n');
    await s.commands.closeStdin(h.pid);
    assert.equal((await h.wait()).stdout, 'text\nat its end\n');
  });
  step('CommandHandle.sendStdin', async () => {
    const s = await box();
    const h = await s.commands.run('cat', { background: true, stdin: true });
    await h.sendStdin('by the handle');
    await h.closeStdin();
    assert.equal((await h.wait()).stdout, 'by the handle');
  });
  step('CommandHandle.closeStdin', async () => {
    const s = await box();
    const h = await s.commands.run('wc -c', { background: true, stdin: true });
    await h.closeStdin();
    assert.equal((await h.wait()).stdout.trim(), '0');
  });
  step('Commands.run: no standard input', async () => {
    const s = await box();
    assert.equal((await s.commands.run('cat; echo end', { timeoutMs: 45_000 })).stdout, 'end\n');
  });
  step('Commands.connect', async () => {
    const s = await box();
    const h = await s.commands.run('while :; do echo tick; sleep 0.1; done', { background: true });
    const got = [];
    const again = await s.commands.connect(h.pid, { onStdout: (d) => got.push(d) });
    assert.equal(again.pid, h.pid);
    await until('output', () => got.join('').includes('tick'));
    assert.equal(await again.kill(), true);
    await fails(again.wait(), CommandExitError);
    await fails(h.wait(), CommandExitError);
    await fails(s.commands.connect(999_999), NotFoundError);
  });
  step('CommandHandle.disconnect', async () => {
    const s = await box();
    const h = await s.commands.run('while ! [ -e /tmp/go-on ]; do sleep 0.1; done; echo went on >/tmp/went', { background: true });
    await h.disconnect();
    await s.files.write('/tmp/go-on', '');
    await until('the command to go on', async () => (await s.files.exists('/tmp/went')) && (await s.files.read('/tmp/went')) === 'went on\n');
  });
  step('Commands.run: signals', async () => {
    const s = await box();
    const h = await s.commands.run('trap "echo caught; exit 9" TERM; echo ready; while :; do sleep 0.1; done', { background: true });
    await until('the trap', () => h.stdout.includes('ready'));
    await s.commands.run(`kill -TERM ${h.pid}`);
    const e = await fails(h.wait(), CommandExitError);
    assert.deepEqual([e.exitCode, e.stdout], [9, 'ready\ncaught\n']);
  });
  step('Commands.run: many at once', async () => {
    const s = await box();
    const all = await Promise.all(Array.from({ length: 12 }, (_, i) => s.commands.run(`sleep 0.2; echo ${i}`)));
    assert.deepEqual(all.map((r) => r.stdout), all.map((_, i) => `${i}\n`));
  });
  step('Commands.run: login shell', async () => {
    const s = await box();
    await s.files.write('/home/user/.profile', 'export FROM_PROFILE=read\n');
    assert.equal((await s.commands.run('echo $FROM_PROFILE')).stdout, 'read\n');
  });
});

group('pty', (step) => {
  const box = shared({ timeoutMs: 240_000 });
  const open = async (s, opts) => {
    const seen = { text: '' };
    const decoder = new TextDecoder();
    const h = await s.pty.create({ cols: 80, rows: 24, onData: (d) => { seen.text += decoder.decode(d, { stream: true }); }, timeoutMs: 0, ...opts });
    const type = (text) => s.pty.sendInput(h.pid, new TextEncoder().encode(text));
    return { h, seen, type };
  };
  step('Pty.create', async () => {
    const s = await box();
    const { h, seen, type } = await open(s, { envs: { INSIDE: 'pty' }, cwd: '/tmp' });
    assert.ok(h.pid > 0);
    await type('echo "$INSIDE:$PWD:$TERM"; tty; exit 5\n');
    const e = await fails(h.wait(), CommandExitError);
    assert.equal(e.exitCode, 5);
    assert.match(seen.text, /pty:\/tmp:xterm/);
    assert.match(seen.text, /\/dev\//);
  });
  step('Pty.sendInput', async () => {
    const s = await box();
    const { h, seen, type } = await open(s);
    await type('cat\n');
    await type('typed\n');
    await until('the echo and the answer', () => (seen.text.match(/typed/g) ?? []).length >= 2);
    await type('\x04');
    await type('bash -c \'trap "echo interr""upted; exit" INT; echo wait""ing; while :; do sleep 0.1; done\'\n');
    await until('a program', () => seen.text.includes('waiting'));
    await type('\x03');
    await until('its end', () => seen.text.includes('interrupted'));
    await type('echo after-$((40+2))\n');
    await until('the shell after Ctrl-C', () => seen.text.includes('after-42'));
    await type('exit\n');
    await h.wait().catch(() => {});
    await fails(s.pty.sendInput(999_999, new Uint8Array([10])), NotFoundError);
  });
  step('Pty.resize', async () => {
    const s = await box();
    const { h, seen, type } = await open(s);
    await type('stty size\n');
    await until('the first size', () => seen.text.includes('24 80'));
    await s.pty.resize(h.pid, { cols: 132, rows: 43 });
    await type('stty size\n');
    await until('the second size', () => seen.text.includes('43 132'));
    await s.pty.kill(h.pid);
  });
  step('Pty.connect', async () => {
    const s = await box();
    const { h, type } = await open(s);
    await h.disconnect();
    let text = '';
    const again = await s.pty.connect(h.pid, { onData: (d) => { text += new TextDecoder().decode(d); } });
    assert.equal(again.pid, h.pid);
    await type('echo again-$((1+1))\n');
    await until('output', () => text.includes('again-2'));
    await s.pty.kill(h.pid);
  });
  step('Pty.kill', async () => {
    const s = await box();
    const { h } = await open(s);
    assert.equal(await s.pty.kill(h.pid), true);
    await fails(h.wait(), CommandExitError);
    assert.equal(await s.pty.kill(h.pid), false);
    await pause(0);
  });
});
