'use strict';
const { Transform } = require('stream');
const { coded, argType } = require('internal/errors');
const OP = 8;
const constants = { Z_NO_FLUSH: 0, Z_PARTIAL_FLUSH: 1, Z_SYNC_FLUSH: 2, Z_FULL_FLUSH: 3, Z_FINISH: 4, Z_OK: 0, Z_STREAM_END: 1, Z_DATA_ERROR: -3, Z_BUF_ERROR: -5, Z_NO_COMPRESSION: 0, Z_BEST_SPEED: 1, Z_BEST_COMPRESSION: 9,
  Z_DEFAULT_COMPRESSION: -1, Z_DEFAULT_STRATEGY: 0, Z_DEFAULT_WINDOWBITS: 15, Z_MIN_LEVEL: -1, Z_MAX_LEVEL: 9, Z_DEFAULT_LEVEL: -1 };
const bytes = (d) => typeof d === 'string' ? host.encode(d) : ArrayBuffer.isView(d) ? new Uint8Array(d.buffer, d.byteOffset, d.byteLength) : d instanceof ArrayBuffer ? new Uint8Array(d) : undefined;
const errors = { header: ['Z_DATA_ERROR', -3, 'incorrect header check'], data: ['Z_DATA_ERROR', -3, 'invalid stored block lengths'], end: ['Z_BUF_ERROR', -5, 'unexpected end of file'], sum: ['Z_DATA_ERROR', -3, 'incorrect data check'] };
function convert(kind, data, o = {}) {
  const b = bytes(data);
  if (!b) throw argType('buffer', ['string', 'Buffer', 'TypedArray', 'DataView', 'ArrayBuffer'], data);
  const max = o.maxOutputLength ?? 1 << 30;
  const r = internal.ask(OP, kind, String(o.level ?? -1), String(max), b);
  if (!r) throw coded(RangeError, 'ERR_BUFFER_TOO_LARGE', `Cannot create a Buffer larger than ${max} bytes`);
  if (r[0] === 0) return r.subarray(1);
  const [code, errno, message] = errors[r.subarray(1).toString()] || errors.data;
  const e = new Error(message);
  e.errno = errno;
  e.code = code;
  throw e;
}
class Zlib extends Transform {
  #parts = []; #kind; #o;
  constructor(kind, o) { super(o); this.#kind = kind; this.#o = o || {}; this.bytesWritten = 0; }
  _transform(c, e, cb) { this.#parts.push(c); this.bytesWritten += c.length; cb(); }
  _flush(cb) { try { this.push(convert(this.#kind, Buffer.concat(this.#parts), this.#o)); cb(); } catch (e) { cb(e); } }
  flush(k, cb) { if (typeof k === 'function') cb = k; if (cb) process.nextTick(cb); }
  close(cb) { if (cb) process.nextTick(cb); this.destroy(); }
  params(l, s, cb) { process.nextTick(cb); }
  reset() { this.#parts = []; }
}
module.exports = { constants, codes: constants, ...constants };
for (const [C, f] of [['Gzip', 'gzip'], ['Gunzip', 'gunzip'], ['Deflate', 'deflate'], ['Inflate', 'inflate'], ['DeflateRaw', 'deflateRaw'], ['InflateRaw', 'inflateRaw'], ['Unzip', 'unzip'], ['BrotliCompress', 'brotliCompress'], ['BrotliDecompress', 'brotliDecompress']]) {
  const brotli = f.startsWith('brotli');
  const check = () => { if (brotli) throw require('internal/errors').notHere(`zlib.${f}`); };
  const K = { [C]: class extends Zlib { constructor(o) { check(); super(f, o); } } }[C];
  module.exports[C] = K;
  module.exports[`create${C}`] = (o) => new K(o);
  module.exports[`${f}Sync`] = (d, o) => { check(); return convert(f, d, o); };
  module.exports[f] = (d, o, cb) => {
    if (typeof o === 'function') { cb = o; o = {}; }
    let r;
    try { check(); r = convert(f, d, o); } catch (e) { if (e.code === 'ERR_INVALID_ARG_TYPE') throw e; return void setImmediate(cb, e); }
    setImmediate(cb, null, r);
  };
}
let table;
module.exports.crc32 = (d, v = 0) => {
  table ||= Uint32Array.from({ length: 256 }, (_, n) => { for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ n >>> 1 : n >>> 1; return n >>> 0; });
  let c = ~v;
  for (const b of bytes(d)) c = table[(c ^ b) & 255] ^ c >>> 8;
  return ~c >>> 0;
};
