// Globals of Node that the language doesn't have.
'use strict';
const loop = require('internal/loop');
const define = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
const lazy = (name, get) => Object.defineProperty(globalThis, name, {
  configurable: true, enumerable: false, get, set(v) { Object.defineProperty(globalThis, name, { value: v, writable: true, configurable: true, enumerable: true }); },
});

define('global', globalThis);
const timers = require('timers');
for (const n of ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'clearImmediate']) {
  Object.defineProperty(globalThis, n, { value: timers[n], writable: true, configurable: true, enumerable: true });
}
define('queueMicrotask', function queueMicrotask(f) {
  if (typeof f !== 'function') throw require('internal/errors').argType('callback', 'function', f);
  Promise.resolve().then(() => loop.guard(f, undefined, []));
});

const { Buffer } = require('buffer');
define('Buffer', Buffer);
define('atob', require('buffer').atob);
define('btoa', require('buffer').btoa);
const { TextEncoder, TextDecoder } = require('internal/text');
define('TextEncoder', TextEncoder);
define('TextDecoder', TextDecoder);
const web = require('internal/web');
for (const k of Object.keys(web)) define(k, web[k]);
const { URL, URLSearchParams } = require('url');
define('URL', URL);
define('URLSearchParams', URLSearchParams);
define('structuredClone', require('internal/clone'));
define('process', require('process'));
define('console', require('console'));
define('performance', require('perf_hooks').performance);
const fetching = require('internal/fetch');
for (const k of Object.keys(fetching)) define(k, fetching[k]);
// What compresses takes all before it gives anything.
const compression = (kinds) => class {
  constructor(format) {
    const kind = kinds[format];
    if (!kind) throw new TypeError(`Unsupported compression format: '${format}'`);
    const parts = [];
    const t = new TransformStream({ transform(c) { parts.push(Buffer.from(c)); }, flush(c) { c.enqueue(new Uint8Array(require('zlib')[`${kind}Sync`](Buffer.concat(parts)))); } });
    this.readable = t.readable;
    this.writable = t.writable;
  }
};
define('CompressionStream', compression({ gzip: 'gzip', deflate: 'deflate', 'deflate-raw': 'deflateRaw' }));
define('DecompressionStream', compression({ gzip: 'gunzip', deflate: 'inflate', 'deflate-raw': 'inflateRaw' }));
define('BroadcastChannel', require('worker_threads').BroadcastChannel);
lazy('crypto', () => require('crypto').webcrypto);
require('internal/intl');

Object.defineProperty(process, Symbol.toStringTag, { value: 'process', configurable: true });
Object.defineProperty(globalThis, Symbol.toStringTag, { value: 'global', configurable: true });
