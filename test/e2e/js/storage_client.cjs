// storage_client.cjs drives a server with @tigrisdata/storage and reports each step in a line, "ok NAME" or "not ok NAME: WHY".
//
// NODE_MODULES names the folder that holds the package; endpoint and keys come from the variables that the package reads.
const assert = require('node:assert/strict');
const { createRequire } = require('node:module');
const path = require('node:path');

const storage = createRequire(path.join(process.env.NODE_MODULES, 'x.cjs'))('@tigrisdata/storage');
const B = 'js-base';
const steps = [];
const step = (name, f) => steps.push([name, f]);

// must unwraps the { data, error } that every call answers with.
async function must(promise) {
  const { data, error } = await promise;
  if (error) throw error;
  return data;
}

// refused checks that a call is answered with an error, and returns it.
async function refused(promise) {
  const { error } = await promise;
  assert.ok(error, 'succeeded, should have been refused');
  return error;
}

const at = (bucket) => ({ config: { bucket } });
const text = (key, options) => must(storage.get(key, 'string', { ...at(B), ...options }));

step('create a bucket with snapshots', async () => {
  await must(storage.createBucket(B, { enableSnapshot: true }));
  const { buckets } = await must(storage.listBuckets());
  assert.ok(buckets.some((b) => b.name === B), JSON.stringify(buckets));
  const info = await must(storage.getBucketInfo(B));
  assert.equal(info.isSnapshotEnabled, true);
});

step('put, head, get, list, remove', async () => {
  const put = await must(storage.put('dir/file.txt', 'first', { ...at(B), contentType: 'text/plain', metadata: { who: 'js' } }));
  assert.equal(put.path, 'dir/file.txt');
  const head = await must(storage.head('dir/file.txt', at(B)));
  assert.equal(head.size, 5);
  assert.equal(head.contentType, 'text/plain');
  assert.equal(await text('dir/file.txt'), 'first');
  assert.equal(await text('dir/file.txt', { range: { start: 1, end: 3 } }), 'irs');
  await must(storage.put('dir/other.txt', Buffer.from('other'), at(B)));
  const list = await must(storage.list({ prefix: 'dir/', ...at(B) }));
  assert.deepEqual(list.items.map((i) => i.name), ['dir/file.txt', 'dir/other.txt']);
  await must(storage.remove('dir/other.txt', at(B)));
  assert.equal((await must(storage.head('dir/other.txt', at(B)))), undefined);
});

step('pages of a listing', async () => {
  for (let i = 0; i < 5; i++) await must(storage.put(`page/${i}`, `${i}`, at(B)));
  const names = [];
  let paginationToken;
  do {
    const page = await must(storage.list({ prefix: 'page/', limit: 2, paginationToken, ...at(B) }));
    names.push(...page.items.map((i) => i.name));
    paginationToken = page.hasMore ? page.paginationToken : undefined;
  } while (paginationToken);
  assert.deepEqual(names, [0, 1, 2, 3, 4].map((i) => `page/${i}`));
});

step('refuse to overwrite', async () => {
  await refused(storage.put('dir/file.txt', 'x', { ...at(B), allowOverwrite: false }));
  assert.equal(await text('dir/file.txt'), 'first');
});

step('upload in parts', async () => {
  const body = Buffer.alloc(11 << 20, 'parts ');
  await must(storage.put('large', body, { ...at(B), multipart: true, partSize: 5 << 20 }));
  const { size } = await must(storage.head('large', at(B)));
  assert.equal(size, body.length);
  assert.equal(await text('large'), body.toString());
});

step('copy and move', async () => {
  await must(storage.copy('dir/file.txt', 'dir/copy.txt', { src: B, dest: B, ...at(B) }));
  assert.equal(await text('dir/copy.txt'), 'first');
  await must(storage.move('dir/copy.txt', 'dir/moved.txt', at(B)));
  assert.equal(await text('dir/moved.txt'), 'first');
  assert.equal(await must(storage.head('dir/copy.txt', at(B))), undefined);
});

let snapshot;
step('take a snapshot, and read at it', async () => {
  ({ snapshotVersion: snapshot } = await must(storage.createBucketSnapshot(B, { name: 'before' })));
  assert.match(snapshot, /^\d+$/);
  await must(storage.put('dir/file.txt', 'second', at(B)));
  await must(storage.put('later.txt', 'later', at(B)));
  assert.equal(await text('dir/file.txt'), 'second');
  assert.equal(await text('dir/file.txt', { snapshotVersion: snapshot }), 'first');
  const { size } = await must(storage.head('dir/file.txt', { ...at(B), snapshotVersion: snapshot }));
  assert.equal(size, 5);
  const then = await must(storage.list({ snapshotVersion: snapshot, ...at(B) }));
  assert.ok(!then.items.some((i) => i.name === 'later.txt'), 'later.txt was not there');
  await refused(storage.get('later.txt', 'string', { ...at(B), snapshotVersion: snapshot }));
});

step('list snapshots', async () => {
  const { snapshots } = await must(storage.listBucketSnapshots(B));
  const found = snapshots.find((x) => x.version === snapshot);
  assert.ok(found, JSON.stringify(snapshots));
  assert.equal(found.name, 'before');
});

step('forks of now and of a snapshot', async () => {
  await must(storage.createBucket('js-now', { sourceBucketName: B }));
  await must(storage.createBucket('js-then', { sourceBucketName: B, sourceBucketSnapshot: snapshot }));
  assert.equal(await text('dir/file.txt', at('js-now')), 'second');
  assert.equal(await text('dir/file.txt', at('js-then')), 'first');
  const { forks } = await must(storage.listForks(B));
  assert.deepEqual(forks.map((f) => f.name).sort(), ['js-now', 'js-then']);
  const info = await must(storage.getBucketInfo('js-then'));
  assert.equal(info.forkInfo.parents[0].bucketName, B);
  await refused(storage.createBucket('js-none', { sourceBucketName: 'no-such-bucket' }));
});

step('a fork of a fork', async () => {
  await must(storage.createBucketSnapshot('js-then'));
  await must(storage.createBucket('js-deep', { sourceBucketName: 'js-then' }));
  await must(storage.put('deep.txt', 'deep', at('js-deep')));
  assert.equal(await text('dir/file.txt', at('js-deep')), 'first');
  await refused(storage.get('deep.txt', 'string', at('js-then')));
});

step('merge a fork, and rebase it', async () => {
  await must(storage.put('result.txt', 'result', at('js-now')));
  await refused(storage.get('result.txt', 'string', at(B)));
  await must(storage.mergeFork('js-now', B));
  assert.equal(await text('result.txt'), 'result');
  await must(storage.put('news.txt', 'news', at(B)));
  await must(storage.rebaseFork('js-now'));
  assert.equal(await text('news.txt', at('js-now')), 'news');
});

step('a bundle of objects', async () => {
  const { body } = await must(storage.bundle(['dir/file.txt', 'result.txt'], at(B)));
  const chunks = [];
  for await (const c of body) chunks.push(Buffer.from(c));
  const tar = Buffer.concat(chunks).toString('latin1');
  assert.ok(tar.includes('dir/file.txt') && tar.includes('second') && tar.includes('result.txt'), tar.slice(0, 600));
});

step('presigned links', async () => {
  const { url } = await must(storage.getPresignedUrl('result.txt', { operation: 'get', expiresIn: 60, ...at(B) }));
  assert.equal(await (await fetch(url)).text(), 'result');
  const { url: up } = await must(storage.getPresignedUrl('by-link.txt', { operation: 'put', expiresIn: 60, ...at(B) }));
  const answer = await fetch(up, { method: 'PUT', body: 'by link' });
  assert.equal(answer.status, 200, await answer.text());
  assert.equal(await text('by-link.txt'), 'by link');
});

step('delete a snapshot', async () => {
  const { snapshotVersion } = await must(storage.createBucketSnapshot(B, { name: 'short' }));
  await must(storage.deleteBucketSnapshot(B, snapshotVersion));
  const { snapshots } = await must(storage.listBucketSnapshots(B));
  assert.ok(!snapshots.some((x) => x.version === snapshotVersion), JSON.stringify(snapshots));
});

step('remove the base while its forks live, then the forks', async () => {
  await must(storage.removeBucket(B, { force: true }));
  assert.equal(await text('dir/file.txt', at('js-deep')), 'first');
  for (const b of ['js-now', 'js-then', 'js-deep']) await must(storage.removeBucket(b, { force: true }));
  const { buckets } = await must(storage.listBuckets());
  assert.deepEqual(buckets, []);
});

(async () => {
  let bad = 0;
  for (const [name, f] of steps) {
    try {
      await f();
      console.log(`ok ${name}`);
    } catch (e) {
      bad++;
      const where = /storage_client\.cjs:(\d+)/.exec(e.stack || '')?.[1] ?? '?';
      console.log(`not ok ${name}: line ${where}: ${e.message ?? e}`.replaceAll('\n', '\\n'));
    }
  }
  process.exit(bad > 0 ? 1 : 0);
})();
