const { isMainThread } = require('worker_threads'); console.log(isMainThread);

console.log(typeof require('zlib').createGzip, require('util').inspect(new URLSearchParams('a=1')), new Blob(['x']).size, typeof ReadableStream, typeof WebSocket, typeof navigator, typeof Event, typeof BroadcastChannel, typeof CompressionStream, typeof FormData, typeof Headers, typeof localStorage);
(async () => { const r = new Response('{"a":1}', { headers: { 'content-type': 'application/json' } }); console.log(r.status, r.ok, await r.json(), r.headers.get('content-type')); const rs = new ReadableStream({ start(c) { c.enqueue('a'); c.enqueue('b'); c.close(); } }); for await (const x of rs) console.log(x); const b = new Blob(['hello ', 'world']); console.log(await b.text(), await b.slice(0, 5).text()); const f = new FormData(); f.append('a', '1'); console.log(f.get('a'), [...f]); })();
const et = new EventTarget(); et.addEventListener('x', (e) => console.log(e.type, e instanceof Event, e.detail), { once: true }); et.dispatchEvent(new CustomEvent('x', { detail: 5 })); et.dispatchEvent(new Event('x'));
console.log(require('os').userInfo().username.length > 0, require('dns') && 1);
