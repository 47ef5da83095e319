// TextEncoder and TextDecoder.
'use strict';
class TextEncoder {
  get encoding() { return 'utf-8'; }
  encode(s = '') { return host.encode(`${s}`); }
  encodeInto(s, into) {
    let read = 0, written = 0;
    for (const c of `${s}`) {
      const b = host.encode(c);
      if (written + b.length > into.length) break;
      into.set(b, written);
      written += b.length;
      read += c.length;
    }
    return { read, written };
  }
}

// complete returns how many bytes of b are whole characters of UTF-8, but for one that is cut at the end.
function complete(b) {
  const n = b.length;
  for (let k = 1; k <= 3 && k <= n; k++) {
    const c = b[n - k];
    if ((c & 0xc0) === 0x80) continue;
    const need = c >= 0xf0 && c < 0xf5 ? 4 : c >= 0xe0 ? c < 0xf0 ? 3 : 0 : c >= 0xc2 ? 2 : 0;
    return need > k ? n - k : n;
  }
  return n;
}
const names = { 'utf-8': 'utf-8', utf8: 'utf-8', 'unicode-1-1-utf-8': 'utf-8', 'utf-16le': 'utf-16le', 'utf-16': 'utf-16le', 'ucs-2': 'utf-16le', latin1: 'windows-1252',
  'iso-8859-1': 'windows-1252', ascii: 'windows-1252', 'us-ascii': 'windows-1252', 'windows-1252': 'windows-1252' };
class TextDecoder {
  #left = new Uint8Array(0);
  #begun = false;
  constructor(label = 'utf-8', o = {}) {
    const name = names[`${label}`.trim().toLowerCase()];
    if (!name) {
      const e = new RangeError(`The "${label}" encoding is not supported`);
      e.code = 'ERR_ENCODING_NOT_SUPPORTED';
      throw e;
    }
    Object.defineProperty(this, 'encoding', { value: name, enumerable: true });
    Object.defineProperty(this, 'fatal', { value: !!o.fatal, enumerable: true });
    Object.defineProperty(this, 'ignoreBOM', { value: !!o.ignoreBOM, enumerable: true });
  }
  decode(input, o = {}) {
    let b = input === undefined ? new Uint8Array(0) : ArrayBuffer.isView(input) ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength) : new Uint8Array(input);
    if (this.#left.length) {
      const joined = new Uint8Array(this.#left.length + b.length);
      joined.set(this.#left);
      joined.set(b, this.#left.length);
      b = joined;
    }
    this.#left = new Uint8Array(0);
    const keep = this.encoding === 'utf-8' ? complete(b) : this.encoding === 'utf-16le' ? b.length & ~1 : b.length;
    if (o.stream && keep < b.length) {
      this.#left = b.slice(keep);
      b = b.subarray(0, keep);
    }
    let s;
    if (this.encoding === 'utf-8') {
      s = host.decode(b, 0, b.length, false);
      if (this.fatal && s.includes('\ufffd') && !same(host.encode(s), b)) {
        const e = new TypeError('The encoded data was not valid for encoding utf-8');
        e.code = 'ERR_ENCODING_INVALID_ENCODED_DATA';
        throw e;
      }
    } else if (this.encoding === 'utf-16le') {
      const parts = [];
      for (let i = 0; i + 1 < b.length; i += 8192) parts.push(String.fromCharCode(...Array.from({ length: Math.min(4096, (b.length - i) >> 1) }, (_, k) => b[i + 2 * k] | b[i + 2 * k + 1] << 8)));
      s = parts.join('');
    } else s = host.decode(b, 0, b.length, true);
    if (!this.ignoreBOM && !this.#begun && s.charCodeAt(0) === 0xfeff) s = s.slice(1);
    this.#begun = !!o.stream;
    return s;
  }
}
function same(a, b) {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
module.exports = { TextEncoder, TextDecoder, complete };
