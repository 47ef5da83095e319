console.log('start');
setTimeout(() => console.log('timeout 0'), 0);
setImmediate(() => console.log('immediate'));
process.nextTick(() => console.log('tick 1')); Promise.resolve().then(() => console.log('micro 1')).then(() => { console.log('micro 2'); process.nextTick(() => console.log('tick in micro')); });
queueMicrotask(() => console.log('micro q')); process.nextTick((x) => { console.log('tick', x); Promise.resolve().then(() => console.log('micro in tick')); }, 2);
(async () => { console.log('async body'); await null; console.log('after await'); try { await Promise.reject(new Error('r')); } catch (e) { console.log('caught', e.message); } finally { console.log('finally'); } })();
process.on('exit', (c) => console.log('exit', c)); process.on('beforeExit', () => { if (!globalThis.once) { globalThis.once = 1; console.log('before exit'); } });
const { once, on, EventEmitter } = require('events'), util = require('util'), fs = require('fs'), stream = require('stream'), tp = require('timers/promises'); const sleep = util.promisify(setTimeout);
const ws0 = new stream.Writable({ highWaterMark: 3, write(c, e, cb) { setImmediate(cb); } }); console.log(ws0.write('ab'), ws0.write('cd'), ws0.writableLength, ws0.writableNeedDrain); ws0.destroy();
async function steps() {
  await sleep(20);
  await new Promise((done) => { let n = 0; const iv = setInterval(() => { console.log('interval', ++n); if (n === 3) { clearInterval(iv); done(); } }, 2); });
  const ee = new EventEmitter(); setTimeout(() => ee.emit('go', 'value'), 2); console.log('once', (await once(ee, 'go'))[0]);
  setTimeout(() => { ee.emit('e', 1); ee.emit('e', 2); }, 1); let k = 0; for await (const [v] of on(ee, 'e')) { console.log('on', v); if (++k === 2) break; }
  console.log(await sleep(1, 'slept'), await tp.setTimeout(1, 'val'), await tp.setImmediate('imm'));
  for await (const x of (async function* () { yield 1; yield 2; })()) console.log('gen', x);
  console.log(await Promise.all([1, sleep(1, 'two'), Promise.resolve(3)]), await Promise.race([sleep(500, 'slow'), sleep(2, 'fast')]), await Promise.allSettled([Promise.reject(1), 2]), await Promise.any([Promise.reject(1), 5]));
  const chunks = []; const t = new stream.Transform({ transform(c, e, cb) { cb(null, c.toString().toUpperCase()); }, flush(cb) { cb(null, '!'); } });
  await stream.promises.pipeline(stream.Readable.from(['a', 'b', 'c']), t, new stream.Writable({ write(c, e, cb) { chunks.push(c.toString()); cb(); } })); console.log('pipeline', chunks);
  const p = new stream.PassThrough(); p.on('data', (c) => console.log('data', c.toString())); p.on('end', () => console.log('end')); p.on('close', () => console.log('close')); p.write('one'); p.end('two'); await stream.promises.finished(p);
  const ws = new stream.Writable({ highWaterMark: 3, write(c, e, cb) { setImmediate(cb); }, final(cb) { console.log('final'); cb(); } }); ws.on('finish', () => console.log('finish')); console.log(ws.write('ab'), ws.write('cd')); await once(ws, 'drain'); console.log('drain'); ws.end(); await once(ws, 'close'); console.log(ws.writableFinished, ws.destroyed);
  await stream.promises.pipeline(stream.Readable.from(['x']), new stream.Transform({ transform(c, e, cb) { cb(new Error('broken')); } }), new stream.PassThrough()).catch((e) => console.log('rejected', e.message));
  console.log(await stream.Readable.from([1, 2, 3]).map((x) => x * 2).filter((x) => x > 2).toArray(), await require('stream/consumers').text(stream.Readable.from(['a', 'b'])));
  const r = new stream.Readable({ read() {} }); r.push('hello'); r.push(null); r.setEncoding('utf8'); for await (const c of r) console.log('chunk', c);
  const rs = new stream.Readable({ objectMode: true, read() { this.n = (this.n || 0) + 1; this.push(this.n > 3 ? null : { n: this.n }); } }); rs.on('readable', () => { let x; while ((x = rs.read()) !== null) console.log('read', x); }); await once(rs, 'end');
  const ac = new AbortController(); ac.signal.addEventListener('abort', () => console.log('aborted', ac.signal.reason.name)); setTimeout(() => ac.abort(), 1); await tp.setTimeout(1000, null, { signal: ac.signal }).catch((e) => console.log(e.name, e.code)); console.log(ac.signal.aborted, AbortSignal.abort('why').reason);
  const { AsyncLocalStorage } = require('async_hooks'); const als = new AsyncLocalStorage(); await als.run({ id: 7 }, () => sleep(1).then(() => console.log('store', als.getStore()))); console.log(als.getStore());
  const f = '/tmp/agentrun-async'; await new Promise((done) => fs.writeFile(f, 'data', (e) => { console.log('written', e); fs.readFile(f, 'utf8', (e, d) => { console.log('read', e, d); fs.readFile('/nope', (e) => { console.log(e.code); done(); }); }); }));
  fs.createReadStream(f, { encoding: 'utf8', start: 1, end: 2 }).on('data', (d) => console.log('stream', d)).on('error', console.log); await sleep(30); fs.createReadStream('/nope').on('error', (e) => console.log('stream error', e.code)); await sleep(30);
  const w = fs.createWriteStream(f, { flags: 'a' }); w.write(' and'); w.end(' more'); await once(w, 'close'); console.log(fs.readFileSync(f, 'utf8'), w.bytesWritten, w.path); fs.unlinkSync(f);
  const tt = setTimeout(() => {}, 100000); tt.unref(); console.log(typeof tt.ref, tt.hasRef(), typeof tt[Symbol.toPrimitive]());
  console.log(await new Promise((done) => process.nextTick(done, 'ticked')), await util.promisify(fs.stat)('/tmp').then((s) => s.isDirectory()), await import('fs').then((m) => typeof m.default.readFileSync));
  const { EventEmitter: E2 } = await import('events'); const em = new E2({ captureRejections: true }); em.on('error', (e) => console.log('captured', e.message)); em.on('x', async () => { throw new Error('async listener'); }); em.emit('x'); await sleep(5);
}
setTimeout(() => steps().then(() => console.log('all'), (e) => console.log('failed', e)), 50);
