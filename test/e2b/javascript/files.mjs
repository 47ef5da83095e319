// Files in every form.
import { assert, fails, group, sdk, shared, since, until } from './kit.mjs';

const { FileNotFoundError, FileType, FilesystemEventType, InvalidArgumentError } = sdk;
const bytes = (n, seed = 1) => { const b = new Uint8Array(n); for (let i = 0, x = seed; i < n; i++) { x = (x * 1103515245 + 12345) & 0x7fffffff; b[i] = x >> 16; } return b; };

group('files', (step) => {
  const box = shared({ timeoutMs: 240_000 });
  const home = '/home/user';

  step('Filesystem.write', async () => {
    const s = await box();
    const info = await s.files.write(`${home}/a/b/c.txt`, 'first');
    assert.equal(info.path, `${home}/a/b/c.txt`);
    assert.equal(info.name, 'c.txt');
    assert.equal(info.type, FileType.FILE);
    assert.equal(await s.files.read(`${home}/a/b/c.txt`), 'first');
    await s.files.write(`${home}/a/b/c.txt`, '2');
    assert.equal(await s.files.read(`${home}/a/b/c.txt`), '2', 'a shorter text replaces it');
    assert.equal((await s.commands.run(`stat -c '%U %a' ${home}/a/b/c.txt ${home}/a`)).stdout, 'user 644\nuser 755\n');
  });
  step('Filesystem.write: forms', async () => {
    const s = await box();
    const data = bytes(100_000);
    await s.files.write('forms/buffer', data.buffer);
    await s.files.write('forms/blob', new Blob([data]));
    await s.files.write('forms/stream', new Blob([data]).stream());
    await s.files.write('forms/empty', '');
    for (const n of ['buffer', 'blob', 'stream']) assert.deepEqual(await s.files.read(`forms/${n}`, { format: 'bytes' }), data, n);
    assert.equal(await s.files.read('forms/empty'), '');
    assert.equal((await s.commands.run(`ls ${home}/forms`)).stdout, 'blob\nbuffer\nempty\nstream\n', 'a relative path begins at home');
  });
  step('Filesystem.write: several', async () => {
    const s = await box();
    const infos = await s.files.write([{ path: `${home}/many/1`, data: 'one' }, { path: `${home}/many/deep/2`, data: new Blob(['two']) }]);
    assert.deepEqual(infos.map((i) => i.path), [`${home}/many/1`, `${home}/many/deep/2`]);
    assert.equal(await s.files.read(`${home}/many/deep/2`), 'two');
    assert.deepEqual(await s.files.write([]), []);
  });
  step('Filesystem.writeFiles', async () => {
    const s = await box();
    const infos = await s.files.writeFiles([{ path: 'w1', data: 'x' }, { path: 'w2', data: 'y' }]);
    assert.deepEqual(infos.map((i) => i.name), ['w1', 'w2']);
    assert.equal(await s.files.read('w2'), 'y');
  });
  step('Filesystem.write: octet stream', async () => {
    const s = await box();
    const data = bytes(300_000, 7);
    await s.files.write('octets', data.buffer, { useOctetStream: true });
    assert.deepEqual(await s.files.read('octets', { format: 'bytes' }), data);
  });
  step('Filesystem.write: gzip', async () => {
    const s = await box();
    const text = 'again and again '.repeat(20_000);
    await s.files.write('zipped.txt', text, { gzip: true });
    assert.equal((await s.files.getInfo('zipped.txt')).size, text.length);
    assert.equal(await s.files.read('zipped.txt', { gzip: true }), text);
  });
  step('Filesystem.write: metadata', async () => {
    const s = await box();
    const info = await s.files.write('tagged', 'x', { metadata: { author: 'suite' } });
    assert.deepEqual(info.metadata, { author: 'suite' });
    assert.deepEqual((await s.files.getInfo('tagged')).metadata, { author: 'suite' });
  });
  step('Filesystem.write: names', async () => {
    const s = await box();
    for (const name of ['with space.txt', 'ünï😀.txt', "quote'\"s", 'per%20cent+plus&and=', '-dash', '.hidden']) {
      await s.files.write(`${home}/names/${name}`, name);
      assert.equal(await s.files.read(`${home}/names/${name}`), name, name);
    }
    assert.equal((await s.files.list(`${home}/names`)).length, 6);
  });
  step('Filesystem.write: as root', async () => {
    const s = await box();
    await s.files.write('/root/secret', 'x', { user: 'root' });
    assert.equal((await s.files.getInfo('/root/secret', { user: 'root' })).owner, 'root');
    assert.equal((await s.commands.run('cat /root/secret', { user: 'root' })).stdout, 'x');
  });
  step('Filesystem.write: onto a directory', async () => {
    const s = await box();
    await fails(s.files.write('/tmp', 'x'), InvalidArgumentError);
  });
  step('Filesystem.read', async () => {
    const s = await box();
    await s.files.write('read', 'täxt');
    assert.equal(await s.files.read('read'), 'täxt');
    assert.equal(await s.files.read('read', { format: 'text' }), 'täxt');
    assert.deepEqual(await s.files.read('read', { format: 'bytes' }), new TextEncoder().encode('täxt'));
    assert.equal(await (await s.files.read('read', { format: 'blob' })).text(), 'täxt');
    assert.equal(await new Response(await s.files.read('read', { format: 'stream' })).text(), 'täxt');
  });
  step('Filesystem.read: missing', async () => {
    const s = await box();
    await fails(s.files.read('/no/such/file'), FileNotFoundError, /no\/such\/file/);
    await fails(s.files.read('/no/such/file', { format: 'stream' }), FileNotFoundError);
    await fails(s.files.read('/tmp'), InvalidArgumentError);
  });
  step('Filesystem.read: large', async () => {
    const s = await box();
    const data = bytes(16 << 20, 3);
    await s.files.write('large', data.buffer);
    const back = await s.files.read('large', { format: 'bytes' });
    assert.equal(Buffer.compare(Buffer.from(back), Buffer.from(data)), 0);
    let n = 0;
    for await (const part of await s.files.read('large', { format: 'stream' })) n += part.length;
    assert.equal(n, data.length);
  });

  step('Filesystem.makeDir', async () => {
    const s = await box();
    assert.equal(await s.files.makeDir('made/deep/down'), true);
    assert.equal(await s.files.makeDir('made/deep/down'), false);
    assert.equal((await s.files.getInfo('made/deep')).type, FileType.DIR);
    await s.files.write('made/file', '');
    await fails(s.files.makeDir('made/file'), InvalidArgumentError);
  });
  step('Filesystem.list', async () => {
    const s = await box();
    await s.files.write('ls/a/b/c', 'x');
    await s.files.write('ls/z', 'yy');
    const one = await s.files.list('ls');
    assert.deepEqual(one.map((e) => [e.name, e.type, e.path]), [['a', FileType.DIR, `${home}/ls/a`], ['z', FileType.FILE, `${home}/ls/z`]]);
    assert.equal(one[1].size, 2);
    assert.deepEqual((await s.files.list('ls', { depth: 2 })).map((e) => e.path.slice(home.length + 4)), ['a', 'a/b', 'z']);
    assert.equal((await s.files.list('ls', { depth: 9 })).length, 4);
    await fails(s.files.list('/no/such/dir'), FileNotFoundError);
    await fails(s.files.list('ls/z'), InvalidArgumentError);
    await s.files.makeDir('ls-empty');
    assert.deepEqual(await s.files.list('ls-empty'), []);
  });
  step('Filesystem.getInfo', async () => {
    const s = await box();
    await s.files.write('info', '12345');
    await s.commands.run(`chmod 640 ${home}/info; ln -s ${home}/info ${home}/link`);
    const i = await s.files.getInfo('info');
    assert.deepEqual([i.name, i.path, i.type, i.size, i.owner, i.group], ['info', `${home}/info`, FileType.FILE, 5, 'user', 'user']);
    assert.equal(i.mode & 0o777, 0o640);
    assert.match(i.permissions, /rw-r-----/);
    assert.ok(Math.abs(Date.now() - i.modifiedTime) < 600_000);
    assert.equal((await s.files.getInfo('link')).symlinkTarget, `${home}/info`);
    await fails(s.files.getInfo('nothing'), FileNotFoundError);
  });
  step('Filesystem.exists', async () => {
    const s = await box();
    assert.equal(await s.files.exists('/etc'), true);
    assert.equal(await s.files.exists('/etc/nothing'), false);
  });
  step('Filesystem.rename', async () => {
    const s = await box();
    await s.files.write('old/name', 'x');
    const i = await s.files.rename('old/name', 'new-name');
    assert.deepEqual([i.name, i.path, i.type], ['new-name', `${home}/new-name`, FileType.FILE]);
    assert.equal(await s.files.exists('old/name'), false);
    assert.equal(await s.files.read('new-name'), 'x');
    await fails(s.files.rename('nothing', 'else'), FileNotFoundError);
  });
  step('Filesystem.remove', async () => {
    const s = await box();
    await s.files.write('gone/deep/file', 'x');
    await s.files.remove('gone');
    assert.equal(await s.files.exists('gone'), false);
    await s.files.write('gone-file', 'x');
    await s.files.remove('gone-file');
    assert.equal(await s.files.exists('gone-file'), false);
  });

  step('Filesystem.watchDir', async () => {
    const s = await box();
    await s.files.makeDir('watched');
    await s.files.write('watched/before', 'x');
    const events = [];
    let exited = false;
    const h = await s.files.watchDir('watched', (e) => { events.push(e); }, { onExit: () => { exited = true; }, timeoutMs: 0 });
    const seen = (type, name) => until(`${type} of ${name}`, () => events.some((e) => e.type === type && e.name === name));
    await s.files.write('watched/new', 'x');
    await seen(FilesystemEventType.CREATE, 'new');
    await seen(FilesystemEventType.WRITE, 'new');
    await s.commands.run(`chmod 600 ${home}/watched/before`);
    await seen(FilesystemEventType.CHMOD, 'before');
    await s.files.rename('watched/new', 'watched/newer');
    await seen(FilesystemEventType.RENAME, 'new');
    await s.files.remove('watched/before');
    await seen(FilesystemEventType.REMOVE, 'before');
    await s.files.write('watched/sub/deep', 'x');
    await seen(FilesystemEventType.CREATE, 'sub');
    assert.ok(!events.some((e) => e.name.includes('deep')), 'not recursive');
    await h.stop();
    await until('onExit', () => exited);
  });
  step('Filesystem.watchDir: recursive', async () => {
    const s = await box();
    await s.files.makeDir('deep/a');
    const events = [];
    const h = await s.files.watchDir('deep', (e) => { events.push(e); }, { recursive: true });
    const seen = (type, name) => until(`${type} of ${name}`, () => events.some((e) => e.type === type && e.name === name));
    await s.files.write('deep/a/one', 'x');
    await seen(FilesystemEventType.CREATE, 'a/one');
    await s.files.makeDir('deep/b');
    await seen(FilesystemEventType.CREATE, 'b');
    await s.files.write('deep/b/two', 'x');
    await seen(FilesystemEventType.WRITE, 'b/two');
    await h.stop();
  });
  step('Filesystem.watchDir: entries', async () => {
    const s = await box();
    await s.files.makeDir('entries');
    const events = [];
    const h = await s.files.watchDir('entries', (e) => { events.push(e); }, { includeEntry: true });
    await s.files.write('entries/one', 'abc');
    const e = await until('an entry', () => events.find((x) => x.name === 'one' && x.entry?.size === 3));
    assert.equal(e.entry.path, `${home}/entries/one`);
    await h.stop();
  });
  step('WatchHandle.stop', async () => {
    const s = await box();
    await s.files.makeDir('stopped');
    const events = [];
    const h = await s.files.watchDir('stopped', (e) => { events.push(e); });
    await s.files.write('stopped/a', '');
    await until('an event', () => events.length > 0);
    await h.stop();
    const n = events.length;
    await s.files.write('stopped/b', '');
    assert.equal(events.filter((e) => e.name === 'b').length, 0, `${n}`);
    await fails(s.files.watchDir('/no/such/dir', () => {}), FileNotFoundError);
    await s.files.write('stopped-file', '');
    await fails(s.files.watchDir('stopped-file', () => {}), InvalidArgumentError);
  });
  step('Filesystem.read: twice at once', async () => {
    const s = await box();
    await Promise.all(Array.from({ length: 16 }, (_, i) => s.files.write(`par/${i}`, `${i}`)));
    const all = await Promise.all(Array.from({ length: 16 }, (_, i) => s.files.read(`par/${i}`)));
    assert.deepEqual(all, all.map((_, i) => `${i}`));
  });
  step('Filesystem.write: abort', async () => {
    const s = await box();
    const c = new AbortController();
    c.abort();
    await assert.rejects(s.files.write('aborted', 'x', { signal: c.signal }));
    assert.equal(await s.files.exists('aborted'), false);
  }, since('2.45.0'));
});
