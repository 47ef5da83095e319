// What scripts use of crypto: hashes, HMAC, random, key derivation. The host computes.
'use strict';
const { Transform } = require('stream');
const { coded, argType, argValue } = require('internal/errors');
const algorithms = ['md5', 'sha1', 'sha224', 'sha256', 'sha384', 'sha512', 'sha512-224', 'sha512-256', 'sha3-224', 'sha3-256', 'sha3-384', 'sha3-512'];
const OP = { hash: 2, hmac: 3, pbkdf2: 4, scrypt: 5, hkdf: 6, cipher: 7 };
// ask sends texts and bytes, each after its length.
function ask(op, ...parts) {
  const list = parts.map((p) => typeof p === 'string' ? host.encode(p) : typeof p === 'number' ? host.encode(String(p)) : p);
  const out = new Uint8Array(list.reduce((n, b) => n + 4 + b.length, 0));
  const view = new DataView(out.buffer);
  let at = 0;
  for (const b of list) {
    view.setUint32(at, b.length, true);
    out.set(b, at + 4);
    at += 4 + b.length;
  }
  const r = host.call(op, out);
  return typeof r === 'number' ? null : Buffer.from(r.buffer, r.byteOffset, r.byteLength);
}
internal.ask = ask;
const nameOf = (a) => { if (typeof a !== 'string') throw argType('algorithm', 'string', a); const n = a.toLowerCase().replace(/^rsa-/, '').replace(/^sha(?=(224|256|384|512)$)/, 'sha').replace(/^sha-/, 'sha').replace('rmd160', 'ripemd160').replace('sha512/', 'sha512-'); return n; };
const bytes = (d, e) => {
  if (typeof d === 'string') return Buffer.from(d, e);
  if (ArrayBuffer.isView(d)) return new Uint8Array(d.buffer, d.byteOffset, d.byteLength);
  if (d instanceof ArrayBuffer) return new Uint8Array(d);
  if (d && d.raw instanceof Uint8Array) return d.raw;
  throw argType('data', ['string', 'Buffer', 'TypedArray', 'DataView'], d);
};
const text = (b, e) => e && e !== 'buffer' ? b.toString(e) : b;
class Hash extends Transform {
  #parts = []; #done = false; #name; #key;
  constructor(name, key, parts) {
    super();
    this.#name = name;
    this.#key = key;
    if (parts) this.#parts = parts;
  }
  update(d, e) {
    if (this.#done) throw coded(Error, 'ERR_CRYPTO_HASH_FINALIZED', 'Digest already called');
    this.#parts.push(Buffer.from(bytes(d, e)));
    return this;
  }
  digest(e) {
    if (this.#done) throw coded(Error, 'ERR_CRYPTO_HASH_FINALIZED', 'Digest already called');
    this.#done = true;
    const all = Buffer.concat(this.#parts);
    return text(this.#key === undefined ? ask(OP.hash, this.#name, all) : ask(OP.hmac, this.#name, this.#key, all), e);
  }
  copy() { return new Hash(this.#name, this.#key, this.#parts.slice()); }
  _transform(c, e, cb) { this.update(c, e); cb(); }
  _flush(cb) { this.push(this.digest()); cb(); }
}
class Hmac extends Hash {}
function createHash(a) {
  const n = nameOf(a);
  if (!algorithms.includes(n)) { const e = new Error('Digest method not supported'); e.code = 'ERR_CRYPTO_INVALID_DIGEST'; throw e; }
  return new Hash(n);
}
function createHmac(a, key) {
  const n = nameOf(a);
  if (!algorithms.includes(n)) throw coded(Error, 'ERR_CRYPTO_INVALID_DIGEST', `Invalid digest: ${a}`);
  return new Hmac(n, Buffer.from(bytes(key)));
}
function randomBytes(n, cb) {
  if (typeof n !== 'number') throw argType('size', 'number', n);
  if (!(n >= 0 && n <= 2147483647)) throw require('internal/errors').outOfRange('size', '>= 0 && <= 2147483647', n);
  const b = Buffer.alloc(n);
  host.random(b, 0, n);
  if (cb) return void setImmediate(cb, null, b);
  return b;
}
function randomFillSync(b, off = 0, n) {
  const u = ArrayBuffer.isView(b) ? new Uint8Array(b.buffer, b.byteOffset, b.byteLength) : new Uint8Array(b);
  host.random(u, off, n ?? u.length - off);
  return b;
}
function randomUUID() {
  const b = randomBytes(16);
  b[6] = b[6] & 15 | 64;
  b[8] = b[8] & 63 | 128;
  const h = b.toString('hex');
  return `${h.slice(0, 8)}-${h.slice(8, 12)}-${h.slice(12, 16)}-${h.slice(16, 20)}-${h.slice(20)}`;
}
function randomInt(min, max, cb) {
  if (max === undefined || typeof max === 'function') { cb = max; max = min; min = 0; }
  if (!Number.isSafeInteger(min)) throw argType('min', 'a safe integer', min);
  if (!Number.isSafeInteger(max)) throw argType('max', 'a safe integer', max);
  if (max <= min) throw require('internal/errors').outOfRange('max', `greater than the value of "min" (${min})`, max);
  const range = max - min, limit = 2 ** 48 - 2 ** 48 % range;
  let v;
  do v = randomBytes(6).readUIntBE(0, 6); while (v >= limit);
  v = v % range + min;
  if (cb) return void process.nextTick(cb, undefined, v);
  return v;
}
function timingSafeEqual(a, b) {
  a = bytes(a);
  b = bytes(b);
  if (a.length !== b.length) throw coded(RangeError, 'ERR_CRYPTO_TIMING_SAFE_EQUAL_LENGTH', 'Input buffers must have the same byte length');
  let d = 0;
  for (let i = 0; i < a.length; i++) d |= a[i] ^ b[i];
  return d === 0;
}
const later = (f) => (...args) => {
  const cb = args.pop();
  let r;
  try { r = f(...args); } catch (e) { return void setImmediate(cb, e); }
  setImmediate(cb, null, r);
};
function pbkdf2Sync(password, salt, iterations, length, digest) {
  const n = nameOf(digest);
  if (!algorithms.includes(n)) throw coded(TypeError, 'ERR_CRYPTO_INVALID_DIGEST', `Invalid digest: ${digest}`);
  return ask(OP.pbkdf2, n, bytes(password), bytes(salt), iterations, length);
}
function scryptSync(password, salt, length, o = {}) {
  const r = ask(OP.scrypt, bytes(password), bytes(salt), length, o.N ?? o.cost ?? 16384, o.r ?? o.blockSize ?? 8, o.p ?? o.parallelization ?? 1);
  if (!r) throw coded(RangeError, 'ERR_CRYPTO_INVALID_SCRYPT_PARAMS', 'Invalid scrypt params: memory limit exceeded');
  return r;
}
const hkdfSync = (digest, key, salt, info, length) => { const r = ask(OP.hkdf, nameOf(digest), bytes(key), bytes(salt), bytes(info), length); return r.buffer.slice(r.byteOffset, r.byteOffset + r.length); };
class Cipher extends Transform {
  #name; #key; #iv; #encrypt; #parts = []; #aad = Buffer.alloc(0); #tag; #pad = true;
  constructor(name, key, iv, encrypt) {
    super();
    this.#name = name.toLowerCase();
    this.#key = bytes(key);
    this.#iv = iv == null ? new Uint8Array(0) : bytes(iv);
    this.#encrypt = encrypt;
    const m = /^aes-(128|192|256)-(cbc|ctr|gcm|ecb)$/.exec(this.#name);
    if (!m) throw coded(Error, 'ERR_CRYPTO_UNKNOWN_CIPHER', 'Unknown cipher');
    if (this.#key.length !== m[1] / 8) throw coded(RangeError, 'ERR_CRYPTO_INVALID_KEYLEN', 'Invalid key length');
    if (m[2] !== 'gcm' && m[2] !== 'ecb' && this.#iv.length !== 16) throw coded(TypeError, 'ERR_CRYPTO_INVALID_IV', 'Invalid initialization vector');
  }
  update(d, inEnc, outEnc) { this.#parts.push(Buffer.from(bytes(d, inEnc))); return text(Buffer.alloc(0), outEnc); }
  final(outEnc) {
    let data = Buffer.concat(this.#parts);
    if (!this.#encrypt && this.#name.endsWith('gcm')) data = Buffer.concat([data, this.#tag || Buffer.alloc(0)]);
    let r = ask(OP.cipher, this.#name, this.#encrypt ? 'e' : 'd', this.#pad ? 'pad' : '', this.#key, this.#iv, this.#aad, data);
    if (!r) throw this.#name.endsWith('gcm') ? new Error('Unsupported state or unable to authenticate data') : coded(Error, 'ERR_OSSL_BAD_DECRYPT', 'error:1C800064:Provider routines::bad decrypt');
    if (this.#encrypt && this.#name.endsWith('gcm')) { this.#tag = r.subarray(r.length - 16); r = r.subarray(0, r.length - 16); }
    return text(r, outEnc);
  }
  setAAD(b) { this.#aad = bytes(b); return this; }
  setAuthTag(b) { this.#tag = bytes(b); return this; }
  getAuthTag() { return this.#tag; }
  setAutoPadding(v = true) { this.#pad = v; return this; }
  _transform(c, e, cb) { this.update(c, e); cb(); }
  _flush(cb) { try { this.push(this.final()); cb(); } catch (e) { cb(e); } }
}
class KeyObject { constructor(raw) { this.raw = raw; this.type = 'secret'; } export() { return Buffer.from(this.raw); } get symmetricKeySize() { return this.raw.length; } }
const subtle = { digest: async (a, d) => { const r = ask(OP.hash, nameOf(typeof a === 'string' ? a : a.name), bytes(d)); return r.buffer.slice(r.byteOffset, r.byteOffset + r.length); } };
const webcrypto = { subtle, getRandomValues: (b) => randomFillSync(b), randomUUID };
const missing = (n) => () => { throw require('internal/errors').notHere(`crypto.${n}`); };
module.exports = {
  createHash, createHmac, Hash, Hmac, randomBytes, pseudoRandomBytes: randomBytes, randomUUID, randomInt, randomFillSync, randomFill: later(randomFillSync), timingSafeEqual, pbkdf2Sync, pbkdf2: later(pbkdf2Sync),
  scryptSync, scrypt: later(scryptSync), hkdfSync, hkdf: later(hkdfSync), getHashes: () => algorithms.slice(), getCiphers: () => ['aes-128-cbc', 'aes-192-cbc', 'aes-256-cbc', 'aes-128-ctr', 'aes-256-ctr', 'aes-128-gcm', 'aes-256-gcm'],
  createCipheriv: (n, k, iv) => new Cipher(n, k, iv, true), createDecipheriv: (n, k, iv) => new Cipher(n, k, iv, false), createSecretKey: (k, e) => new KeyObject(bytes(k, e)), KeyObject, getCurves: () => [],
  hash: (a, d, e = 'hex') => createHash(a).update(d).digest(e), webcrypto, subtle, getRandomValues: webcrypto.getRandomValues, constants: {}, getFips: () => 0,
};
for (const n of ['createSign', 'createVerify', 'sign', 'verify', 'generateKeyPair', 'generateKeyPairSync', 'createPrivateKey', 'createPublicKey', 'publicEncrypt', 'privateDecrypt', 'createDiffieHellman', 'createECDH']) module.exports[n] = missing(n);
