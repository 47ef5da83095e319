// fetch, through what the sandbox's network policy allows.
'use strict';
const OP = 9;
const { Blob } = require('internal/web');
const { inspect, custom } = require('internal/inspect');
class Headers {
  #m = new Map();
  constructor(init) {
    if (init instanceof Headers) for (const [k, v] of init) this.append(k, v);
    else if (Array.isArray(init) || init && typeof init[Symbol.iterator] === 'function') for (const [k, v] of init) this.append(k, v);
    else if (init) for (const k of Object.keys(init)) this.append(k, init[k]);
  }
  #key(k) { k = `${k}`.toLowerCase(); if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(k)) throw new TypeError(`Headers.append: ${k} is an invalid header name.`); return k; }
  append(k, v) { k = this.#key(k); v = `${v}`.trim(); this.#m.set(k, this.#m.has(k) && k !== 'set-cookie' ? `${this.#m.get(k)}, ${v}` : v); }
  set(k, v) { this.#m.set(this.#key(k), `${v}`.trim()); }
  get(k) { return this.#m.get(this.#key(k)) ?? null; }
  has(k) { return this.#m.has(this.#key(k)); }
  delete(k) { this.#m.delete(this.#key(k)); }
  getSetCookie() { return this.#m.has('set-cookie') ? [this.#m.get('set-cookie')] : []; }
  forEach(f, self) { for (const [k, v] of this) f.call(self, v, k, this); }
  * entries() { for (const k of [...this.#m.keys()].sort()) yield [k, this.#m.get(k)]; }
  * keys() { for (const [k] of this.entries()) yield k; }
  * values() { for (const [, v] of this.entries()) yield v; }
  [Symbol.iterator]() { return this.entries(); }
  get [Symbol.toStringTag]() { return 'Headers'; }
  [custom](d, o) { return `Headers ${inspect(Object.fromEntries(this), o)}`; }
}
class FormData {
  #l = [];
  append(k, v) { this.#l.push([`${k}`, v instanceof Blob ? v : `${v}`]); }
  set(k, v) { this.delete(k); this.append(k, v); }
  get(k) { const e = this.#l.find((x) => x[0] === k); return e ? e[1] : null; }
  getAll(k) { return this.#l.filter((x) => x[0] === k).map((x) => x[1]); }
  has(k) { return this.#l.some((x) => x[0] === k); }
  delete(k) { this.#l = this.#l.filter((x) => x[0] !== k); }
  * entries() { yield* this.#l; }
  [Symbol.iterator]() { return this.entries(); }
  get [Symbol.toStringTag]() { return 'FormData'; }
}
function bodyOf(b) {
  if (b === undefined || b === null) return [null, null];
  if (typeof b === 'string') return [Buffer.from(b), 'text/plain;charset=UTF-8'];
  if (b instanceof URLSearchParams) return [Buffer.from(b.toString()), 'application/x-www-form-urlencoded;charset=UTF-8'];
  if (b instanceof Blob) return [b.raw(), b.type || null];
  if (ArrayBuffer.isView(b)) return [Buffer.from(b.buffer, b.byteOffset, b.byteLength), null];
  if (b instanceof ArrayBuffer) return [Buffer.from(b), null];
  if (b instanceof FormData) {
    const mark = `----formdata-${Math.random().toString(36).slice(2)}`, parts = [];
    for (const [k, v] of b) parts.push(Buffer.from(`--${mark}\r\nContent-Disposition: form-data; name="${k}"${v instanceof Blob ? `; filename="${v.name || 'blob'}"\r\nContent-Type: ${v.type || 'application/octet-stream'}` : ''}\r\n\r\n`), v instanceof Blob ? v.raw() : Buffer.from(v), Buffer.from('\r\n'));
    parts.push(Buffer.from(`--${mark}--\r\n`));
    return [Buffer.concat(parts), `multipart/form-data; boundary=${mark}`];
  }
  return [Buffer.from(`${b}`), 'text/plain;charset=UTF-8'];
}
class Body {
  #b; #used = false;
  static init(o, b) { o.#b = b; }
  get bodyUsed() { return this.#used; }
  get body() { const b = this.#b; return b === null ? null : new (require('internal/web').ReadableStream)({ start(c) { if (b.length) c.enqueue(new Uint8Array(b)); c.close(); } }); }
  #take() {
    if (this.#used) throw new TypeError('Body is unusable: Body has already been read');
    this.#used = this.#b !== null;
    return this.#b || Buffer.alloc(0);
  }
  async text() { return this.#take().toString(); }
  async json() { return JSON.parse(this.#take().toString()); }
  async arrayBuffer() { const b = this.#take(); return b.buffer.slice(b.byteOffset, b.byteOffset + b.length); }
  async bytes() { return new Uint8Array(await this.arrayBuffer()); }
  async blob() { return new Blob([this.#take()], { type: this.headers.get('content-type') || '' }); }
  async formData() { const f = new FormData(); for (const [k, v] of new URLSearchParams(this.#take().toString())) f.append(k, v); return f; }
  raw() { return this.#b; }
}
Object.defineProperty(Body.prototype, 'raw', { enumerable: false });
const init = Body.init;
delete Body.init;
class Response extends Body {
  constructor(body = null, o = {}) {
    super();
    const [b, type] = bodyOf(body);
    init(this, b);
    this.status = o.status ?? 200;
    if (!(this.status >= 200 && this.status <= 599) && !o.internal) throw new RangeError('init["status"] must be in the range of 200 to 599, inclusive.');
    this.statusText = o.statusText ?? '';
    this.headers = new Headers(o.headers);
    if (type && !this.headers.has('content-type')) this.headers.set('content-type', type);
    this.ok = this.status >= 200 && this.status < 300;
    this.url = o.url ?? '';
    this.redirected = !!o.redirected;
    this.type = o.url ? 'basic' : 'default';
  }
  clone() { return new Response(this.raw(), this); }
  static json(v, o = {}) { const r = new Response(JSON.stringify(v), o); r.headers.set('content-type', 'application/json'); return r; }
  static error() { return new Response(null, { status: 0, internal: true }); }
  static redirect(u, status = 302) { return new Response(null, { status, headers: { location: `${u}` } }); }
  get [Symbol.toStringTag]() { return 'Response'; }
}
class Request extends Body {
  constructor(input, o = {}) {
    super();
    const from = input instanceof Request ? input : null;
    this.url = from ? from.url : new URL(`${input}`).href;
    this.method = (o.method ?? (from ? from.method : 'GET')).replace(/^(get|post|put|delete|head|options)$/i, (m) => m.toUpperCase());
    this.headers = new Headers(o.headers ?? (from ? from.headers : undefined));
    const [b, type] = o.body !== undefined ? bodyOf(o.body) : [from ? from.raw() : null, null];
    if (b && (this.method === 'GET' || this.method === 'HEAD')) throw new TypeError('Request with GET/HEAD method cannot have body.');
    init(this, b);
    if (type && !this.headers.has('content-type')) this.headers.set('content-type', type);
    this.signal = o.signal ?? (from ? from.signal : null);
    this.redirect = o.redirect ?? 'follow';
  }
  clone() { return new Request(this); }
  get [Symbol.toStringTag]() { return 'Request'; }
}
// isLocal tells whether a host is the sandbox itself, whose servers may be in this very process: then nothing may wait for them here.
function isLocal(host) {
  require('net');
  return internal.isLocal(host);
}
async function direct(q, u) {
  const headers = { accept: '*/*', 'accept-language': '*', 'user-agent': 'node', ...Object.fromEntries(q.headers) };
  let method = q.method, body = q.raw(), redirected = false;
  for (let i = 0; i <= 20; i++) {
    const m = await new Promise((resolve, reject) => {
      const r = require('http').request(u, { method, headers }, resolve);
      r.on('error', (cause) => reject(new TypeError('fetch failed', { cause })));
      if (q.signal) q.signal.addEventListener('abort', () => { r.destroy(); reject(q.signal.reason); });
      r.end(body || undefined);
    });
    const redirect = [301, 302, 303, 307, 308].includes(m.statusCode) && m.headers.location;
    if (!redirect || q.redirect === 'manual') {
      const parts = [];
      for await (const b of m) parts.push(b);
      const list = [];
      for (let j = 0; j < m.rawHeaders.length; j += 2) list.push([m.rawHeaders[j], m.rawHeaders[j + 1]]);
      return new Response([101, 204, 205, 304].includes(m.statusCode) ? null : Buffer.concat(parts), { status: m.statusCode, statusText: m.statusMessage, headers: list, url: u.href, redirected, internal: true });
    }
    m.resume();
    if (q.redirect === 'error') throw new TypeError('fetch failed', { cause: new Error('unexpected redirect') });
    if (m.statusCode === 303 && method !== 'HEAD' || m.statusCode < 303 && method === 'POST') {
      method = 'GET';
      body = null;
      for (const k of ['content-type', 'content-length', 'content-encoding']) delete headers[k];
    }
    u = new URL(m.headers.location, u);
    redirected = true;
    if (u.protocol !== 'http:' || !isLocal(u.hostname)) {
      delete headers.authorization;
      return fetch(u.href, { method, headers, body, redirect: q.redirect, signal: q.signal });
    }
  }
  throw new TypeError('fetch failed', { cause: new Error('redirect count exceeded') });
}
async function fetch(input, o) {
  const q = new Request(input, o);
  if (q.signal && q.signal.aborted) throw q.signal.reason;
  await new Promise((r) => setImmediate(r));
  const u = new URL(q.url);
  if (u.protocol === 'data:') {
    const m = /^data:([^,;]*)((?:;[^,]*)?),(.*)$/s.exec(q.url);
    return new Response(m[2].includes('base64') ? Buffer.from(m[3], 'base64') : decodeURIComponent(m[3]), { headers: { 'content-type': m[1] || 'text/plain;charset=US-ASCII' }, url: q.url });
  }
  if (u.protocol !== 'http:' && u.protocol !== 'https:') throw new TypeError('fetch failed', { cause: new Error('unknown scheme') });
  if (u.protocol === 'http:' && isLocal(u.hostname)) return direct(q, u);
  const r = internal.ask(OP, JSON.stringify({ method: q.method, url: q.url, headers: [...q.headers], redirect: q.redirect }), q.raw() || new Uint8Array(0));
  if (!r) throw new TypeError('fetch failed', { cause: new Error('the network is unreachable') });
  const n = r.readUInt32LE(0);
  const head = JSON.parse(r.toString('utf8', 4, 4 + n));
  if (head.error) {
    const cause = new Error(head.error);
    cause.code = head.code;
    cause.syscall = 'connect';
    throw new TypeError('fetch failed', { cause });
  }
  return new Response([101, 204, 205, 304].includes(head.status) ? null : r.subarray(4 + n), { ...head, internal: true });
}
module.exports = { fetch, Headers, FormData, Response, Request };
