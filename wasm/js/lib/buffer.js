'use strict';
const { argType, outOfRange, coded, argValue } = require('internal/errors');
const { custom } = require('internal/inspect');
const kMaxLength = 2 ** 32;

function encodingOf(e) {
  if (e === undefined || e === null || e === '') return 'utf8';
  switch (`${e}`.toLowerCase()) {
    case 'utf8': case 'utf-8': return 'utf8';
    case 'hex': return 'hex';
    case 'base64': return 'base64';
    case 'base64url': return 'base64url';
    case 'latin1': case 'binary': return 'latin1';
    case 'ascii': return 'ascii';
    case 'utf16le': case 'utf-16le': case 'ucs2': case 'ucs-2': return 'utf16le';
  }
}
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const values = new Int8Array(128).fill(-1);
for (let i = 0; i < 64; i++) values[alphabet.charCodeAt(i)] = i;
values[45] = 62;
values[95] = 63;

function fromBase64(s) {
  const out = new Uint8Array(Math.ceil(s.length * 3 / 4));
  let n = 0, bits = 0, acc = 0;
  for (let i = 0; i < s.length; i++) {
    const c = s.charCodeAt(i);
    if (c === 61) break;
    const v = c < 128 ? values[c] : -1;
    if (v < 0) continue;
    acc = (acc << 6 | v) & 0xffffff;
    bits += 6;
    if (bits >= 8) out[n++] = acc >> (bits -= 8) & 255;
  }
  return out.subarray(0, n);
}
function toBase64(b, url) {
  const parts = [];
  for (let from = 0; from < b.length; from += 6144) {
    const to = Math.min(from + 6144, b.length);
    let s = '';
    for (let i = from; i < to; i += 3) {
      const v = b[i] << 16 | (b[i + 1] || 0) << 8 | (b[i + 2] || 0);
      s += alphabet[v >> 18] + alphabet[v >> 12 & 63] + (i + 1 < b.length ? alphabet[v >> 6 & 63] : '=') + (i + 2 < b.length ? alphabet[v & 63] : '=');
    }
    parts.push(s);
  }
  const s = parts.join('');
  return url ? s.replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '') : s;
}
function encode(s, encoding) {
  switch (encoding) {
    case 'utf8': return host.encode(s);
    case 'hex': {
      const out = new Uint8Array(s.length >> 1);
      for (let i = 0; i < out.length; i++) {
        const t = s.substr(2 * i, 2);
        if (!/^[0-9a-fA-F]{2}$/.test(t)) return out.subarray(0, i);
        out[i] = parseInt(t, 16);
      }
      return out;
    }
    case 'base64': case 'base64url': return fromBase64(s);
    case 'latin1': case 'ascii': {
      const out = new Uint8Array(s.length);
      for (let i = 0; i < s.length; i++) out[i] = s.charCodeAt(i);
      return out;
    }
    case 'utf16le': {
      const out = new Uint8Array(2 * s.length);
      for (let i = 0; i < s.length; i++) {
        const c = s.charCodeAt(i);
        out[2 * i] = c;
        out[2 * i + 1] = c >> 8;
      }
      return out;
    }
  }
}
const hexes = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0'));
function decode(b, encoding) {
  switch (encoding) {
    case 'utf8': return host.decode(b, 0, b.length, false);
    case 'latin1': return host.decode(b, 0, b.length, true);
    case 'ascii': return host.decode(b.map((x) => x & 127), 0, b.length, true);
    case 'hex': {
      const parts = [];
      for (let i = 0; i < b.length; i++) parts.push(hexes[b[i]]);
      return parts.join('');
    }
    case 'base64': return toBase64(b, false);
    case 'base64url': return toBase64(b, true);
    case 'utf16le': return new (require('internal/text').TextDecoder)('utf-16le', { ignoreBOM: true }).decode(b);
  }
}
const unknown = (e) => coded(TypeError, 'ERR_UNKNOWN_ENCODING', `Unknown encoding: ${e}`);

class FastBuffer extends Uint8Array {}
function Buffer(arg, encoding, length) {
  if (typeof arg === 'number') return Buffer.alloc(arg);
  return Buffer.from(arg, encoding, length);
}
Object.setPrototypeOf(Buffer, Uint8Array);
Buffer.prototype = FastBuffer.prototype;
Object.defineProperty(Buffer.prototype, 'constructor', { value: Buffer, writable: true, configurable: true });
Object.defineProperty(Buffer, Symbol.species, { configurable: true, get: () => FastBuffer });
Buffer.poolSize = 8192;
const wrap = (u) => { const b = new FastBuffer(u.buffer, u.byteOffset, u.byteLength); return b; };

Buffer.from = function from(value, encoding, length) {
  if (typeof value === 'string') {
    const e = encodingOf(encoding);
    if (!e) throw unknown(encoding);
    return wrap(encode(value, e));
  }
  if (typeof value === 'object' && value !== null) {
    if (value instanceof ArrayBuffer || typeof SharedArrayBuffer !== 'undefined' && value instanceof SharedArrayBuffer) {
      const off = encoding === undefined ? 0 : +encoding || 0;
      if (off > value.byteLength) throw coded(RangeError, 'ERR_BUFFER_OUT_OF_BOUNDS', '"offset" is outside of buffer bounds');
      if (length !== undefined && off + +length > value.byteLength) throw coded(RangeError, 'ERR_BUFFER_OUT_OF_BOUNDS', '"length" is outside of buffer bounds');
      return new FastBuffer(value, off, length === undefined ? value.byteLength - off : Math.max(0, +length || 0));
    }
    if (ArrayBuffer.isView(value) || Array.isArray(value)) return wrap(Uint8Array.from(value));
    if (value.type === 'Buffer' && Array.isArray(value.data)) return wrap(Uint8Array.from(value.data));
    const v = value.valueOf && value.valueOf();
    if (v != null && v !== value && (typeof v === 'string' || typeof v === 'object')) return Buffer.from(v, encoding, length);
    if (value.length !== undefined) return typeof value.length !== 'number' ? wrap(new Uint8Array(0)) : wrap(Uint8Array.from(value));
    if (typeof value[Symbol.toPrimitive] === 'function') {
      const p = value[Symbol.toPrimitive]('string');
      if (typeof p === 'string') return Buffer.from(p, encoding);
    }
  }
  throw argType('first argument', ['string', 'Buffer', 'ArrayBuffer', 'Array', 'Array-like Object'], value);
};
function size(n) {
  if (typeof n !== 'number') throw argType('size', 'number', n);
  if (!(n >= 0 && n <= kMaxLength)) throw outOfRange('size', `>= 0 && <= ${kMaxLength}`, n);
}
Buffer.alloc = function alloc(n, fill, encoding) {
  size(n);
  const b = new FastBuffer(n);
  if (fill !== undefined && fill !== 0 && n > 0) b.fill(fill, encoding);
  return b;
};
Buffer.allocUnsafe = function allocUnsafe(n) { size(n); return new FastBuffer(n); };
Buffer.allocUnsafeSlow = Buffer.allocUnsafe;
Buffer.of = (...items) => wrap(Uint8Array.of(...items));
Buffer.isBuffer = (b) => b instanceof Buffer;
Buffer.isEncoding = (e) => typeof e === 'string' && e.length !== 0 && encodingOf(e) !== undefined;
Buffer.compare = (a, b) => {
  const n = Math.min(a.length, b.length);
  for (let i = 0; i < n; i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
  return a.length < b.length ? -1 : a.length > b.length ? 1 : 0;
};
Buffer.byteLength = function byteLength(s, encoding) {
  if (typeof s !== 'string') {
    if (ArrayBuffer.isView(s) || s instanceof ArrayBuffer) return s.byteLength;
    throw argType('string', ['string', 'Buffer', 'ArrayBuffer'], s);
  }
  switch (encodingOf(encoding)) {
    case 'latin1': case 'ascii': return s.length;
    case 'utf16le': return 2 * s.length;
    case 'hex': return s.length >> 1;
    case 'base64': case 'base64url': return fromBase64(s).length;
  }
  let n = 0;
  for (let i = 0; i < s.length; i++) {
    const c = s.charCodeAt(i);
    if (c < 0x80) n++;
    else if (c < 0x800) n += 2;
    else if (c >= 0xd800 && c < 0xdc00 && (s.charCodeAt(i + 1) & 0xfc00) === 0xdc00) { n += 4; i++; } else n += 3;
  }
  return n;
};
Buffer.concat = function concat(list, total) {
  if (!Array.isArray(list)) throw argType('list', 'Array', list);
  if (total === undefined) total = list.reduce((n, b) => n + b.length, 0);
  const out = Buffer.alloc(total);
  let at = 0;
  for (let i = 0; i < list.length; i++) {
    let b = list[i];
    if (!(b instanceof Uint8Array)) throw argType(`list[${i}]`, ['Buffer', 'Uint8Array'], b);
    if (at + b.length > total) b = b.subarray(0, total - at);
    out.set(b, at);
    at += b.length;
  }
  return out;
};

const P = Buffer.prototype;
P.toString = function toString(encoding, start, end) {
  if (arguments.length === 0) return host.decode(this, 0, this.length, false);
  start = Math.max(0, start | 0);
  end = end === undefined ? this.length : Math.min(this.length, end | 0);
  if (end <= start) return '';
  const e = encodingOf(encoding);
  if (!e) throw unknown(encoding);
  return decode(Uint8Array.prototype.subarray.call(this, start, end), e);
};
P.toLocaleString = P.toString;
P.toJSON = function toJSON() { return { type: 'Buffer', data: Array.from(this) }; };
P.equals = function equals(b) {
  if (!(b instanceof Uint8Array)) throw argType('otherBuffer', ['Buffer', 'Uint8Array'], b);
  return Buffer.compare(this, b) === 0;
};
P.compare = function compare(b, ts = 0, te = b.length, ss = 0, se = this.length) { return Buffer.compare(this.subarray(ss, se), b.subarray(ts, te)); };
P.slice = function slice(start, end) { return wrap(Uint8Array.prototype.subarray.call(this, start, end)); };
P.subarray = P.slice;
P.copy = function copy(target, ts = 0, ss = 0, se = this.length) {
  const n = Math.min(se - ss, target.length - ts, this.length - ss);
  if (n <= 0) return 0;
  Uint8Array.prototype.set.call(target, Uint8Array.prototype.subarray.call(this, ss, ss + n), ts);
  return n;
};
P.write = function write(s, offset, length, encoding) {
  if (typeof s !== 'string') throw argType('argument', 'string', s);
  if (typeof offset === 'string') { encoding = offset; offset = 0; length = undefined; } else if (typeof length === 'string') { encoding = length; length = undefined; }
  offset = offset === undefined ? 0 : offset;
  if (offset < 0 || offset > this.length) throw outOfRange('offset', `>= 0 && <= ${this.length}`, offset);
  const room = Math.min(length === undefined ? Infinity : length, this.length - offset);
  const e = encodingOf(encoding);
  if (!e) throw unknown(encoding);
  let b = encode(s, e);
  if (b.length > room) b = b.subarray(0, e === 'utf8' ? require('internal/text').complete(b.subarray(0, room)) : e === 'utf16le' ? room & ~1 : room);
  this.set(b, offset);
  return b.length;
};
P.fill = function fill(value, start, end, encoding) {
  if (typeof value === 'string') {
    if (typeof start === 'string') { encoding = start; start = undefined; } else if (typeof end === 'string') { encoding = end; end = undefined; }
    const e = encodingOf(encoding);
    if (!e) throw unknown(encoding);
    value = encode(value, e);
    if (value.length === 0) value = 0;
  }
  start = start === undefined ? 0 : start;
  end = end === undefined ? this.length : end;
  if (start < 0 || start > this.length) throw outOfRange('offset', `>= 0 && <= ${this.length}`, start);
  if (end < 0 || end > this.length) throw outOfRange('end', `>= 0 && <= ${this.length}`, end);
  if (typeof value === 'object' && value !== null) {
    if (value.length === 0) throw argValue('value', value);
    for (let i = start; i < end; i++) this[i] = value[(i - start) % value.length];
    return this;
  }
  Uint8Array.prototype.fill.call(this, typeof value === 'boolean' ? +value : value & 255, start, end);
  return this;
};
function search(b, value, offset, encoding, last) {
  if (typeof offset === 'string') { encoding = offset; offset = undefined; }
  if (typeof value === 'number') {
    value &= 255;
    return last ? Uint8Array.prototype.lastIndexOf.call(b, value, offset === undefined ? b.length - 1 : offset) : Uint8Array.prototype.indexOf.call(b, value, offset);
  }
  if (typeof value === 'string') value = encode(value, encodingOf(encoding) || 'utf8');
  else if (!(value instanceof Uint8Array)) throw argType('value', ['number', 'string', 'Buffer', 'Uint8Array'], value);
  offset = offset === undefined || isNaN(offset) ? last ? b.length : 0 : Math.trunc(+offset);
  if (offset < 0) offset += b.length;
  if (offset < 0) { if (last) return -1; offset = 0; }
  const max = b.length - value.length;
  for (let i = last ? Math.min(offset, max) : offset; last ? i >= 0 : i <= max; i += last ? -1 : 1) {
    let k = 0;
    while (k < value.length && b[i + k] === value[k]) k++;
    if (k === value.length) return i;
  }
  return -1;
}
P.indexOf = function indexOf(v, o, e) { return search(this, v, o, e, false); };
P.lastIndexOf = function lastIndexOf(v, o, e) { return search(this, v, o, e, true); };
P.includes = function includes(v, o, e) { return search(this, v, o, e, false) !== -1; };
function swapper(n) {
  return function swap() {
    if (this.length % n) throw coded(RangeError, 'ERR_INVALID_BUFFER_SIZE', `Buffer size must be a multiple of ${8 * n}-bits`);
    for (let i = 0; i < this.length; i += n) Uint8Array.prototype.subarray.call(this, i, i + n).reverse();
    return this;
  };
}
P.swap16 = swapper(2);
P.swap32 = swapper(4);
P.swap64 = swapper(8);
for (const [name, e] of [['utf8', 'utf8'], ['hex', 'hex'], ['base64', 'base64'], ['base64url', 'base64url'], ['latin1', 'latin1'], ['ascii', 'ascii'], ['ucs2', 'utf16le'], ['utf16le', 'utf16le']]) {
  P[`${name}Slice`] = function(s, t) { return this.toString(e, s, t); };
  P[`${name}Write`] = function(s, o, n) { return this.write(s, o, n, e); };
}
Object.defineProperty(P, 'parent', { get() { return this.buffer; }, configurable: true });
Object.defineProperty(P, 'offset', { get() { return this.byteOffset; }, configurable: true });
P[custom] = function(depth, ctx) {
  const max = module.exports.INSPECT_MAX_BYTES;
  let s = Array.from(Uint8Array.prototype.subarray.call(this, 0, max), (x) => hexes[x]).join(' ');
  if (this.length > max) s += ` ... ${this.length - max} more byte${this.length - max > 1 ? 's' : ''}`;
  return `<${this.constructor.name === 'FastBuffer' ? 'Buffer' : this.constructor.name}${s ? ' ' + s : ''}>`;
};
Object.defineProperty(P, custom, { enumerable: false });

// Numbers.
function at(b, off, n) {
  if (off === undefined) off = 0;
  if (typeof off !== 'number') throw argType('offset', 'number', off);
  if (!Number.isInteger(off)) throw outOfRange('offset', 'an integer', off);
  if (off < 0 || off + n > b.length) {
    if (b.length - n < 0) throw coded(RangeError, 'ERR_BUFFER_OUT_OF_BOUNDS', 'Attempt to access memory outside buffer bounds');
    throw outOfRange('offset', `>= 0 and <= ${b.length - n}`, off);
  }
  return off;
}
const view = (b) => new DataView(b.buffer, b.byteOffset, b.byteLength);
function numbers(name, bytes, method, min, max, alias) {
  for (const [suffix, little] of bytes === 1 ? [['', true]] : [['LE', true], ['BE', false]]) {
    const read = function(off) { off = at(this, off, bytes); return view(this)[`get${method}`](off, little); };
    const write = function(v, off) {
      if (min !== undefined) {
        if (typeof v !== typeof min) v = typeof min === 'bigint' ? BigInt(v) : +v;
        if (v > max || v < min) {
          const n = typeof min === 'bigint' ? 'n' : '';
          throw outOfRange('value', bytes > 4 || bytes > 2 && true ? bytes * 8 > 32 || bytes === 4 ? range(min, max, bytes, n) : `>= ${min}${n} and <= ${max}${n}` : `>= ${min}${n} and <= ${max}${n}`, v);
        }
      }
      off = at(this, off, bytes);
      view(this)[`set${method}`](off, v, little);
      return off + bytes;
    };
    P[`read${name}${suffix}`] = read;
    P[`write${name}${suffix}`] = write;
    if (alias) {
      P[`read${alias}${suffix}`] = read;
      P[`write${alias}${suffix}`] = write;
    }
  }
}
const range = (min, max, bytes, n) => min == 0 ? `>= 0${n} and <= ${bytes === 4 ? max : `2${n} ** ${bytes * 8}${n}`}` : bytes === 4 ? `>= ${min} and <= ${max}` : `>= -(2${n} ** ${bytes * 8 - 1}${n}) and < 2${n} ** ${bytes * 8 - 1}${n}`;
numbers('UInt8', 1, 'Uint8', 0, 255, 'Uint8');
numbers('Int8', 1, 'Int8', -128, 127);
numbers('UInt16', 2, 'Uint16', 0, 65535, 'Uint16');
numbers('Int16', 2, 'Int16', -32768, 32767);
numbers('UInt32', 4, 'Uint32', 0, 4294967295, 'Uint32');
numbers('Int32', 4, 'Int32', -2147483648, 2147483647);
numbers('BigUInt64', 8, 'BigUint64', 0n, 2n ** 64n - 1n, 'BigUint64');
numbers('BigInt64', 8, 'BigInt64', -(2n ** 63n), 2n ** 63n - 1n);
numbers('Float', 4, 'Float32');
numbers('Double', 8, 'Float64');
for (const little of [true, false]) {
  const s = little ? 'LE' : 'BE';
  for (const signed of [true, false]) {
    const names = signed ? [`Int${s}`] : [`UInt${s}`, `Uint${s}`];
    for (const n of names) {
      P[`read${n}`] = function(off, bytes) {
        off = at(this, off, bytes);
        let v = 0;
        for (let i = 0; i < bytes; i++) v = v * 256 + this[little ? off + bytes - 1 - i : off + i];
        return signed && v >= 2 ** (8 * bytes - 1) ? v - 2 ** (8 * bytes) : v;
      };
      P[`write${n}`] = function(v, off, bytes) {
        off = at(this, off, bytes);
        let w = v < 0 ? v + 2 ** (8 * bytes) : v;
        for (let i = 0; i < bytes; i++) {
          this[little ? off + i : off + bytes - 1 - i] = w % 256;
          w = Math.floor(w / 256);
        }
        return off + bytes;
      };
    }
  }
}
for (const k of Object.keys(P)) Object.defineProperty(P, k, { enumerable: false });

function btoa(s) {
  s = `${s}`;
  for (let i = 0; i < s.length; i++) if (s.charCodeAt(i) > 255) throw new DOMException('Invalid character', 'InvalidCharacterError');
  return toBase64(encode(s, 'latin1'), false);
}
function atob(s) {
  s = `${s}`.replace(/[\t\n\f\r ]/g, '');
  if (s.length % 4 === 0) s = s.replace(/==?$/, '');
  if (s.length % 4 === 1 || /[^A-Za-z0-9+/]/.test(s)) throw new DOMException('The string to be decoded is not correctly encoded.', 'InvalidCharacterError');
  return decode(fromBase64(s), 'latin1');
}
module.exports = {
  Buffer, SlowBuffer: Buffer, INSPECT_MAX_BYTES: 50, kMaxLength, kStringMaxLength: 536870888, constants: { MAX_LENGTH: kMaxLength, MAX_STRING_LENGTH: 536870888 }, btoa, atob,
  isUtf8: (b) => Buffer.compare(host.encode(decode(new Uint8Array(b.buffer || b, b.byteOffset, b.byteLength), 'utf8')), new Uint8Array(b.buffer || b, b.byteOffset, b.byteLength)) === 0,
  isAscii: (b) => new Uint8Array(b.buffer || b, b.byteOffset, b.byteLength).every((x) => x < 128),
  transcode: (b, from, to) => Buffer.from(Buffer.from(b).toString(from), to),
  encodingOf,
  get Blob() { return require('internal/web').Blob; }, get File() { return require('internal/web').File; },
};
