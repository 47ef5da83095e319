// Requests of http and https, over fetch. There are no servers.
'use strict';
const { Writable, Readable } = require('stream');
const EE = require('events');
const STATUS_CODES = { 100: 'Continue', 101: 'Switching Protocols', 200: 'OK', 201: 'Created', 202: 'Accepted', 204: 'No Content', 206: 'Partial Content', 301: 'Moved Permanently', 302: 'Found', 303: 'See Other', 304: 'Not Modified',
  307: 'Temporary Redirect', 308: 'Permanent Redirect', 400: 'Bad Request', 401: 'Unauthorized', 402: 'Payment Required', 403: 'Forbidden', 404: 'Not Found', 405: 'Method Not Allowed', 406: 'Not Acceptable', 408: 'Request Timeout',
  409: 'Conflict', 410: 'Gone', 411: 'Length Required', 412: 'Precondition Failed', 413: 'Payload Too Large', 415: 'Unsupported Media Type', 418: "I'm a Teapot", 422: 'Unprocessable Entity', 429: 'Too Many Requests',
  500: 'Internal Server Error', 501: 'Not Implemented', 502: 'Bad Gateway', 503: 'Service Unavailable', 504: 'Gateway Timeout' };
class ClientRequest extends Writable {
  #parts = []; #headers = {};
  constructor(protocol, url, o, cb) {
    super();
    if (typeof url === 'object' && !(url instanceof URL)) { cb = o; o = url; url = undefined; }
    if (typeof o === 'function') { cb = o; o = {}; }
    o = { ...o };
    if (url === undefined) {
      const host = o.hostname || (o.host || 'localhost').replace(/:\d+$/, '');
      url = `${o.protocol || protocol}//${o.auth ? `${o.auth}@` : ''}${host}${o.port ? `:${o.port}` : ''}${o.path || '/'}`;
    }
    this.url = String(url);
    this.method = (o.method || 'GET').toUpperCase();
    this.path = new URL(this.url).pathname;
    for (const k of Object.keys(o.headers || {})) this.setHeader(k, o.headers[k]);
    if (cb) this.once('response', cb);
  }
  setHeader(k, v) { this.#headers[k.toLowerCase()] = v; return this; }
  getHeader(k) { return this.#headers[k.toLowerCase()]; }
  removeHeader(k) { delete this.#headers[k.toLowerCase()]; }
  setTimeout(ms, cb) { if (cb) this.once('timeout', cb); return this; }
  setNoDelay() {} setSocketKeepAlive() {} flushHeaders() {}
  abort() { this.destroy(); }
  _write(c, e, cb) { this.#parts.push(c); cb(); }
  _final(cb) {
    const body = Buffer.concat(this.#parts);
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
    }, (e) => cb(e.cause || e));
  }
}
class Agent extends EE { constructor(o = {}) { super(); this.options = o; } destroy() {} }
const no = () => { throw require('internal/errors').notHere('a network server'); };
const make = (protocol) => ({
  STATUS_CODES, METHODS: ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'], Agent, globalAgent: new Agent(), ClientRequest, Server: no, createServer: no, IncomingMessage: Readable, ServerResponse: Writable, maxHeaderSize: 16384,
  request: (...a) => new ClientRequest(protocol, ...a), get: (...a) => { const r = new ClientRequest(protocol, ...a); r.end(); return r; }, validateHeaderName() {}, validateHeaderValue() {},
});
module.exports = make('http:');
internal.https = make('https:');
