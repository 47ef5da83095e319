// HTTP/1.1 as it goes over a connection: what both a server and a client read and write.
'use strict';
const { Readable } = require('stream');
const { coded } = require('internal/errors');
const maxHeaderSize = 16384;
const ONCE = new Set(['age', 'authorization', 'content-length', 'content-type', 'etag', 'expires', 'from', 'host', 'if-modified-since', 'if-unmodified-since', 'last-modified', 'location', 'max-forwards',
  'proxy-authorization', 'referer', 'retry-after', 'server', 'user-agent']);

class IncomingMessage extends Readable {
  constructor(socket) {
    super({ highWaterMark: 65536 });
    this.socket = this.connection = socket;
    this.httpVersion = '1.1';
    this.headers = {};
    this.rawHeaders = [];
    this.trailers = {};
    this.rawTrailers = [];
    this.complete = this.aborted = false;
    this.url = '';
    this.method = this.statusCode = this.statusMessage = null;
  }
  get httpVersionMajor() { return +this.httpVersion[0]; }
  get httpVersionMinor() { return +this.httpVersion[2]; }
  get headersDistinct() {
    const d = {};
    for (let i = 0; i < this.rawHeaders.length; i += 2) (d[this.rawHeaders[i].toLowerCase()] ||= []).push(this.rawHeaders[i + 1]);
    return d;
  }
  _read() { if (this.socket && !this.socket.destroyed && this.socket.isPaused() && this._paused) { this._paused = false; this.socket.resume(); } }
  _add(name, value, raw, to) {
    raw.push(name, value);
    const k = name.toLowerCase();
    if (k === 'set-cookie') (to[k] ||= []).push(value);
    else if (to[k] === undefined) to[k] = value;
    else if (!ONCE.has(k)) to[k] += `${k === 'cookie' ? '; ' : ', '}${value}`;
  }
  setTimeout(ms, cb) { if (this.socket) this.socket.setTimeout(ms, cb); return this; }
  _destroy(e, cb) {
    if (!this.complete && this.socket && !this.socket.destroyed && !this._quiet) this.socket.destroy();
    cb(e);
  }
}

const bad = (text, code = 'HPE_INVALID_CONSTANT') => Object.assign(new Error(`Parse Error: ${text}`), { code, reason: text });

// Parser reads messages. head(message) is told of each one's beginning and says whether it has a body at all; it may set parser.done to stop: what follows
// stays in parser.rest. With parser.hold set, nothing is read until it isn't any more and feed is called again.
class Parser {
  constructor(o) {
    Object.assign(this, { head: o.head, end: o.end, response: !!o.response, socket: o.socket, rest: Buffer.alloc(0), state: 'first', message: null, left: 0, done: false, hold: false });
  }
  feed(b) {
    this.rest = this.rest.length ? Buffer.concat([this.rest, b]) : b;
    while (!this.done && !this.hold && this[this.state]()) ;
  }
  // finish is for the end of the connection; false if something was cut off.
  finish() {
    if (this.state === 'all') { this.ended(); return true; }
    return this.state === 'first' && this.rest.length === 0;
  }
  lines() {
    const i = this.rest.indexOf('\r\n\r\n');
    if (i > maxHeaderSize || i < 0 && this.rest.length > maxHeaderSize) throw bad('Header overflow', 'HPE_HEADER_OVERFLOW');
    if (i < 0) return null;
    const list = this.rest.toString('latin1', 0, i).split('\r\n');
    this.rest = this.rest.subarray(i + 4);
    return list;
  }
  ['first']() {
    while (!this.response && this.rest.length >= 2 && this.rest[0] === 13 && this.rest[1] === 10) this.rest = this.rest.subarray(2);
    const list = this.lines();
    if (!list) return false;
    const m = this.message = new IncomingMessage(this.socket);
    const first = this.response ? /^HTTP\/(1\.[01]) (\d{3})(?: (.*))?$/.exec(list[0]) : /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\S+) HTTP\/(1\.[01])$/.exec(list[0]);
    if (!first) throw bad(this.response ? 'Expected HTTP/' : 'Invalid method encountered', 'HPE_INVALID_METHOD');
    if (this.response) [, m.httpVersion, m.statusCode, m.statusMessage] = [first[0], first[1], +first[2], first[3] || ''];
    else [, m.method, m.url, m.httpVersion] = first;
    for (const line of list.slice(1)) {
      const h = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/.exec(line);
      if (!h) throw bad('Invalid header token', 'HPE_INVALID_HEADER_TOKEN');
      m._add(h[1], h[2], m.rawHeaders, m.headers);
    }
    const coding = m.headers['transfer-encoding'], length = m.headers['content-length'];
    if (coding !== undefined && length !== undefined) throw bad("Content-Length can't be present with Transfer-Encoding", 'HPE_INVALID_CONTENT_LENGTH');
    if (length !== undefined && !/^\d+$/.test(length)) throw bad('Invalid character in Content-Length', 'HPE_INVALID_CONTENT_LENGTH');
    if (coding !== undefined && !/(^|,)\s*chunked$/i.test(coding) && !this.response) throw bad('Request has invalid `Transfer-Encoding`', 'HPE_INVALID_TRANSFER_ENCODING');
    this.left = +length || 0;
    const has = this.head(m);
    if (this.done) return false;
    if (this.interim) { this.interim = false; return true; }
    this.state = has === false ? 'none' : coding !== undefined ? 'size' : length !== undefined ? 'body' : this.response ? 'all' : 'none';
    if (this.state === 'none' || this.state === 'body' && this.left === 0) this.ended();
    return true;
  }
  push(b) {
    const m = this.message;
    if (!m.destroyed && !m.push(b) && !this.socket.destroyed) { m._paused = true; this.socket.pause(); }
  }
  ['body']() {
    if (!this.rest.length) return false;
    const b = this.rest.subarray(0, this.left);
    this.rest = this.rest.subarray(b.length);
    this.left -= b.length;
    this.push(b);
    if (this.left === 0) this.ended();
    return true;
  }
  ['all']() {
    if (this.rest.length) this.push(this.rest);
    this.rest = Buffer.alloc(0);
    return false;
  }
  line() {
    const i = this.rest.indexOf('\r\n');
    if (i > maxHeaderSize || i < 0 && this.rest.length > maxHeaderSize) throw bad('Chunk extensions overflow', 'HPE_CHUNK_EXTENSIONS_OVERFLOW');
    if (i < 0) return null;
    const s = this.rest.toString('latin1', 0, i);
    this.rest = this.rest.subarray(i + 2);
    return s;
  }
  ['size']() {
    const s = this.line();
    if (s === null) return false;
    const h = /^([0-9a-fA-F]{1,12})[ \t]*(;.*)?$/.exec(s);
    if (!h) throw bad('Invalid character in chunk size', 'HPE_INVALID_CHUNK_SIZE');
    this.left = parseInt(h[1], 16);
    this.state = this.left ? 'chunk' : 'trailer';
    return true;
  }
  ['chunk']() {
    if (this.left > 0) {
      if (!this.rest.length) return false;
      const b = this.rest.subarray(0, this.left);
      this.rest = this.rest.subarray(b.length);
      this.left -= b.length;
      this.push(b);
      return true;
    }
    if (this.rest.length < 2) return false;
    if (this.rest[0] !== 13 || this.rest[1] !== 10) throw bad('Expected LF after chunk data', 'HPE_STRICT');
    this.rest = this.rest.subarray(2);
    this.state = 'size';
    return true;
  }
  ['trailer']() {
    const s = this.line();
    if (s === null) return false;
    if (s === '') { this.ended(); return true; }
    const h = /^([^:\s]+):[ \t]*(.*?)[ \t]*$/.exec(s);
    if (h) this.message._add(h[1], h[2], this.message.rawTrailers, this.message.trailers);
    return true;
  }
  ['none']() { return false; }
  ended() {
    const m = this.message;
    this.state = 'first';
    m.complete = true;
    m.push(null);
    this.end(m);
  }
}

const token = (k) => { if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(k)) throw coded(TypeError, 'ERR_INVALID_HTTP_TOKEN', `Header name must be a valid HTTP token ["${k}"]`); };
const content = (k, v) => {
  if (v === undefined) throw coded(TypeError, 'ERR_HTTP_INVALID_HEADER_VALUE', `Invalid value "${v}" for header "${k}"`);
  for (const x of [].concat(v)) if (/[^\t\x20-\x7e\x80-\xff]/.test(x)) throw coded(TypeError, 'ERR_INVALID_CHAR', `Invalid character in header content ["${k}"]`);
};

// Headers are those of an outgoing message; a mixin.
const outgoing = (Base) => class extends Base {
  _fields = new Map();
  headersSent = false;
  setHeader(k, v) {
    if (this.headersSent) throw coded(Error, 'ERR_HTTP_HEADERS_SENT', 'Cannot set headers after they are sent to the client');
    token(`${k}`);
    content(k, v);
    this._fields.set(`${k}`.toLowerCase(), [`${k}`, v]);
    return this;
  }
  appendHeader(k, v) {
    const old = this.getHeader(k);
    return this.setHeader(k, old === undefined ? v : [].concat(old, v));
  }
  setHeaders(all) { for (const [k, v] of all) this.setHeader(k, v); return this; }
  getHeader(k) { const e = this._fields.get(`${k}`.toLowerCase()); return e && e[1]; }
  hasHeader(k) { return this._fields.has(`${k}`.toLowerCase()); }
  removeHeader(k) {
    if (this.headersSent) throw coded(Error, 'ERR_HTTP_HEADERS_SENT', 'Cannot remove headers after they are sent to the client');
    this._fields.delete(`${k}`.toLowerCase());
  }
  getHeaders() { return Object.assign(Object.create(null), Object.fromEntries([...this._fields].map(([k, e]) => [k, e[1]]))); }
  getHeaderNames() { return [...this._fields.keys()]; }
  getRawHeaderNames() { return [...this._fields.values()].map((e) => e[0]); }
  _lines() {
    let s = '';
    for (const [k, v] of this._fields.values()) for (const x of [].concat(v)) s += `${k}: ${x}\r\n`;
    return s;
  }
};
module.exports = { IncomingMessage, Parser, outgoing, maxHeaderSize, token, content };
