// Servers of http; requests of it to servers of the sandbox over their own connections, others and those of https over fetch.
'use strict';
const { Writable, Readable } = require('stream');
const EE = require('events');
const net = require('net');
const wire = require('internal/httpwire');
const STATUS_CODES = { 100: 'Continue', 101: 'Switching Protocols', 200: 'OK', 201: 'Created', 202: 'Accepted', 204: 'No Content', 206: 'Partial Content', 301: 'Moved Permanently', 302: 'Found', 303: 'See Other', 304: 'Not Modified',
  307: 'Temporary Redirect', 308: 'Permanent Redirect', 400: 'Bad Request', 401: 'Unauthorized', 402: 'Payment Required', 403: 'Forbidden', 404: 'Not Found', 405: 'Method Not Allowed', 406: 'Not Acceptable', 408: 'Request Timeout',
  409: 'Conflict', 410: 'Gone', 411: 'Length Required', 412: 'Precondition Failed', 413: 'Payload Too Large', 415: 'Unsupported Media Type', 418: "I'm a Teapot", 422: 'Unprocessable Entity', 429: 'Too Many Requests',
  500: 'Internal Server Error', 501: 'Not Implemented', 502: 'Bad Gateway', 503: 'Service Unavailable', 504: 'Gateway Timeout' };
class ClientRequest extends Writable {
  #parts = []; #headers = {};
  constructor(protocol, url, o, cb) {
    super({ autoDestroy: false });
    if (typeof url === 'object' && !(url instanceof URL)) { cb = o; o = url; url = undefined; }
    if (typeof o === 'function') { cb = o; o = {}; }
    o = { ...o };
    if (url === undefined) {
      const host = o.hostname || (o.host || 'localhost').replace(/:\d+$/, '');
      url = `${o.protocol || protocol}//${o.auth ? `${o.auth}@` : ''}${host}${o.port ? `:${o.port}` : ''}${o.path || '/'}`;
    }
    this.url = String(url);
    this.method = (o.method || 'GET').toUpperCase();
    const u = new URL(this.url);
    this.path = u.pathname + u.search;
    this.host = u.hostname;
    this.protocol = u.protocol;
    if (o.timeout) this._limit = o.timeout;
    if (o.auth || u.username) this.setHeader('Authorization', `Basic ${Buffer.from(o.auth || decodeURIComponent(`${u.username}:${u.password}`)).toString('base64')}`);
    this._local = u.protocol === 'http:' && internal.isLocal(u.hostname);
    if (o.signal) require('stream').addAbortSignal(o.signal, this);
    for (const k of Object.keys(o.headers || {})) this.setHeader(k, o.headers[k]);
    if (cb) this.once('response', cb);
  }
  setHeader(k, v) { this.#headers[k.toLowerCase()] = v; return this; }
  getHeader(k) { return this.#headers[k.toLowerCase()]; }
  removeHeader(k) { delete this.#headers[k.toLowerCase()]; }
  setTimeout(ms, cb) {
    if (cb) this.once('timeout', cb);
    this._limit = ms;
    if (this.socket) this.socket.setTimeout(ms);
    return this;
  }
  getHeaders() { return { ...this.#headers }; }
  hasHeader(k) { return k.toLowerCase() in this.#headers; }
  setNoDelay() {} setSocketKeepAlive() {} flushHeaders() {}
  abort() { this.destroy(); }
  _write(c, e, cb) { this.#parts.push(c); cb(); }
  _destroy(e, cb) {
    if (this._cancel) this._cancel();
    cb(e);
  }
  _final(cb) {
    const body = Buffer.concat(this.#parts);
    if (this._local) { this.#direct(body, cb); return; }
    fetch(this.url, { method: this.method, headers: Object.entries(this.#headers).flatMap(([k, v]) => [].concat(v).map((x) => [k, x])), body: body.length ? body : undefined, redirect: 'manual' }).then(async (r) => {
      const b = Buffer.from(await r.arrayBuffer());
      const m = Readable.from(b.length ? [b] : [], { objectMode: false });
      m.statusCode = r.status;
      m.statusMessage = r.statusText || STATUS_CODES[r.status] || '';
      m.headers = Object.fromEntries(r.headers);
      if (m.headers['set-cookie']) m.headers['set-cookie'] = [m.headers['set-cookie']];
      m.rawHeaders = [...r.headers].flat();
      m.httpVersion = '1.1';
      m.complete = true;
      m.req = this;
      cb();
      if (!this.emit('response', m)) m.resume();
      process.nextTick(() => this.emit('close'));
    }, (e) => cb(e.cause || e));
  }
  // direct asks a server of the sandbox.
  #direct(body, cb) {
    const u = new URL(this.url);
    const s = this.socket = this.connection = net.connect({ port: +u.port || 80, host: u.hostname, allowHalfOpen: true });
    const h = this.#headers;
    if (h.host === undefined) h.host = u.host;
    if (h.connection === undefined) h.connection = 'close';
    if (body.length || !['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'].includes(this.method)) if (h['transfer-encoding'] === undefined) h['content-length'] ??= body.length;
    delete h['transfer-encoding'];
    let text = `${this.method} ${u.pathname}${u.search} HTTP/1.1\r\n`;
    for (const [k, v] of Object.entries(h)) for (const x of [].concat(v)) { wire.token(k); wire.content(k, `${x}`); text += `${k}: ${x}\r\n`; }
    let answered = false;
    const failed = (e) => { if (!answered) { answered = true; this.destroy(e); } };
    const parser = new wire.Parser({
      socket: s, response: true, end: () => s.end(),
      head: (m) => {
        if (m.statusCode === 101) {
          answered = parser.done = true;
          s.removeAllListeners('data');
          s.removeAllListeners('end');
          process.nextTick(() => { if (!this.emit('upgrade', m, s, parser.rest)) s.destroy(); });
          return false;
        }
        if (m.statusCode < 200) { this.emit(m.statusCode === 100 ? 'continue' : 'information', m); parser.interim = true; return false; }
        answered = true;
        m.req = this;
        this.res = m;
        process.nextTick(() => { if (!this.emit('response', m)) m.resume(); });
        return !(this.method === 'HEAD' || m.statusCode === 204 || m.statusCode === 304);
      },
    });
    s.on('data', (b) => { if (!parser.done) try { parser.feed(b); } catch (e) { failed(e); s.destroy(); } });
    s.on('end', () => {
      const whole = parser.done || parser.finish();
      const m = parser.message;
      if (!answered) failed(Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }));
      else if (!whole && m && !m.complete) { m.aborted = true; m._quiet = true; m.destroy(Object.assign(new Error('aborted'), { code: 'ECONNRESET' })); }
      s.end();
    });
    s.on('error', (e) => failed(e));
    s.on('timeout', () => this.emit('timeout'));
    s.once('close', () => { if (!answered) failed(Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })); if (!this.destroyed) this.emit('close'); });
    if (this._limit) s.setTimeout(this._limit);
    this._cancel = () => { answered = true; s.destroy(); if (this.res && !this.res.complete) { this.res._quiet = true; this.res.destroy(Object.assign(new Error('aborted'), { code: 'ECONNRESET' })); } };
    this.emit('socket', s);
    s.write(Buffer.concat([Buffer.from(`${text}\r\n`, 'latin1'), body]));
    cb();
  }
}
class Agent extends EE { constructor(o = {}) { super(); this.options = o; } destroy() {} }
const { Server, ServerResponse, IncomingMessage } = require('internal/httpserver')(STATUS_CODES);
const no = () => { throw require('internal/errors').notHere('a network server with TLS'); };
const make = (protocol) => ({
  STATUS_CODES, METHODS: ['ACL', 'CONNECT', 'COPY', 'DELETE', 'GET', 'HEAD', 'LINK', 'LOCK', 'MERGE', 'MKCOL', 'MOVE', 'NOTIFY', 'OPTIONS', 'PATCH', 'POST', 'PROPFIND', 'PROPPATCH', 'PURGE', 'PUT', 'REPORT', 'SEARCH', 'SUBSCRIBE', 'TRACE', 'UNLINK', 'UNLOCK', 'UNSUBSCRIBE'], Agent, globalAgent: new Agent(), ClientRequest, Server: no, createServer: no, IncomingMessage, ServerResponse, OutgoingMessage: ServerResponse, maxHeaderSize: wire.maxHeaderSize,
  request: (...a) => new ClientRequest(protocol, ...a), get: (...a) => { const r = new ClientRequest(protocol, ...a); r.end(); return r; }, validateHeaderName: wire.token, validateHeaderValue: wire.content,
});
module.exports = { ...make('http:'), Server, createServer: (o, h) => new Server(o, h) };
internal.https = make('https:');
