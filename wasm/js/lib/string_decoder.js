'use strict';
const { encodingOf } = require('buffer');
class StringDecoder {
  #left = Buffer.alloc(0);
  constructor(encoding) {
    this.encoding = encodingOf(encoding);
    if (!this.encoding) throw require('internal/errors').coded(TypeError, 'ERR_UNKNOWN_ENCODING', `Unknown encoding: ${encoding}`);
  }
  write(b) {
    if (typeof b === 'string') return b;
    b = Buffer.from(b.buffer, b.byteOffset, b.byteLength);
    if (this.#left.length) b = Buffer.concat([this.#left, b]);
    const n = this.#whole(b);
    this.#left = Buffer.from(b.subarray(n));
    return b.toString(this.encoding, 0, n);
  }
  #whole(b) {
    switch (this.encoding) {
      case 'utf8': return require('internal/text').complete(b);
      case 'utf16le': {
        let n = b.length & ~1;
        if (n >= 2 && (b[n - 1] & 0xfc) === 0xd8) n -= 2;
        return n;
      }
      case 'base64': case 'base64url': return b.length - b.length % 3;
    }
    return b.length;
  }
  end(b) {
    let s = b === undefined ? '' : this.write(b);
    if (this.#left.length) s += this.encoding === 'utf8' ? '\ufffd' : this.#left.toString(this.encoding);
    this.#left = Buffer.alloc(0);
    return s;
  }
  get lastNeed() { return this.#left.length ? 1 : 0; }
}
exports.StringDecoder = StringDecoder;
