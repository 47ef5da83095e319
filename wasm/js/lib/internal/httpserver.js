// Servers of HTTP/1.1.
'use strict';
const { Writable } = require('stream');
const net = require('net');
const { coded } = require('internal/errors');
const { IncomingMessage, Parser, outgoing } = require('internal/httpwire');

module.exports = (STATUS_CODES) => {
  class ServerResponse extends outgoing(Writable) {
    constructor(req) {
      super({ decodeStrings: true });
      this.req = req;
      this.socket = this.connection = req.socket;
      this.statusCode = 200;
      this.statusMessage = undefined;
      this.sendDate = true;
      this.chunked = this._silent = this.shouldClose = false;
      this.finished = false;
    }
    writeHead(status, message, headers) {
      if (this.headersSent) throw coded(Error, 'ERR_HTTP_HEADERS_SENT', 'Cannot write headers after they are sent to the client');
      if (typeof message !== 'string') { headers = message; message = undefined; }
      status = +status;
      if (!(status >= 100 && status <= 999)) throw coded(RangeError, 'ERR_HTTP_INVALID_STATUS_CODE', `Invalid status code: ${status}`);
      this.statusCode = status;
      if (message !== undefined) this.statusMessage = message;
      if (Array.isArray(headers)) for (let i = 0; i + 1 < headers.length; i += 2) this.appendHeader(headers[i], headers[i + 1]);
      else for (const k of Object.keys(headers || {})) this.setHeader(k, headers[k]);
      this._decided = true;
      return this;
    }
    // _head is the message's head; size is that of the whole body where it is known.
    _head(size) {
      const { req } = this, status = this.statusCode;
      const none = status === 204 || status === 304 || status < 200;
      this._silent = none || req.method === 'HEAD';
      const asked = `${this.getHeader('connection') ?? ''}`.toLowerCase();
      this.shouldClose = asked.includes('close') || (req.httpVersion === '1.0' ? !/keep-alive/i.test(req.headers.connection || '') : /close/i.test(req.headers.connection || '')) || !!this._last;
      if (!none && !this.hasHeader('content-length') && !this.hasHeader('transfer-encoding')) {
        if (size !== undefined) this._fields.set('content-length', ['Content-Length', size]);
        else if (req.httpVersion === '1.1') { this.chunked = true; this._fields.set('transfer-encoding', ['Transfer-Encoding', 'chunked']); } else this.shouldClose = true;
      } else if (/chunked/i.test(`${this.getHeader('transfer-encoding') ?? ''}`)) this.chunked = true;
      if (this.sendDate && !this.hasHeader('date')) this._fields.set('date', ['Date', new Date().toUTCString()]);
      if (!this.hasHeader('connection')) {
        this._fields.set('connection', ['Connection', this.shouldClose ? 'close' : 'keep-alive']);
        if (!this.shouldClose) this._fields.set('keep-alive', ['Keep-Alive', 'timeout=5']);
      }
      this.statusMessage ??= STATUS_CODES[status] || 'unknown';
      const head = `HTTP/1.1 ${status} ${this.statusMessage}\r\n${this._lines()}\r\n`;
      this.headersSent = true;
      return Buffer.from(head, 'latin1');
    }
    flushHeaders() { if (!this.headersSent) this.socket.write(this._head()); }
    write(...a) {
      if (!this.headersSent && !this.writableEnded) this.flushHeaders();
      return super.write(...a);
    }
    end(chunk, encoding, cb) {
      if (typeof chunk === 'function') { cb = chunk; chunk = undefined; } else if (typeof encoding === 'function') { cb = encoding; encoding = undefined; }
      if (!this.headersSent && !this.writableEnded) {
        const b = chunk === undefined || chunk === null ? null : typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk;
        const head = this._head(b ? b.length : 0);
        this.socket.write(b && !this._silent && !this.chunked ? Buffer.concat([head, b]) : head);
        chunk = b && this.chunked && !this._silent ? b : undefined;
      }
      this.finished = true;
      if (cb) this.once('finish', cb);
      if (chunk === undefined || chunk === null) super.end(); else super.end(chunk, encoding);
      return this;
    }
    _write(chunk, encoding, cb) {
      if (this.socket.destroyed) { cb(); return; }
      if (this._silent || !chunk.length) { cb(); return; }
      this.socket.write(this.chunked ? Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')]) : chunk, () => cb());
    }
    _final(cb) {
      if (this.chunked && !this._silent && !this.socket.destroyed) this.socket.write('0\r\n\r\n');
      cb();
    }
    writeContinue() { this.socket.write('HTTP/1.1 100 Continue\r\n\r\n'); }
    writeProcessing() { this.socket.write('HTTP/1.1 102 Processing\r\n\r\n'); }
    addTrailers() {}
    setTimeout(ms, cb) { this.socket.setTimeout(ms, cb); return this; }
    _destroy(e, cb) { if (!this.writableFinished && !this.socket.destroyed) this.socket.destroy(); cb(e); }
  }

  class Server extends net.Server {
    constructor(o, handler) {
      if (typeof o === 'function') { handler = o; o = {}; }
      super({ ...o, allowHalfOpen: true });
      this.timeout = this.headersTimeout = 0;
      this.keepAliveTimeout = 5000;
      this.requestTimeout = 300000;
      if (handler) this.on('request', handler);
      this.on('connection', (s) => serve(this, s));
    }
    setTimeout(ms, cb) { this.timeout = ms; if (cb) this.on('timeout', cb); return this; }
    closeIdleConnections() { for (const s of this._sockets) if (!s._busy) s.destroy(); }
    closeAllConnections() { for (const s of this._sockets) s.destroy(); }
    close(cb) {
      super.close(cb);
      this.closeIdleConnections();
      return this;
    }
  }

  // serve answers the requests of one connection, one after the other.
  function serve(server, socket) {
    let idle;
    socket._busy = false;
    const refuse = (e) => {
      if (server.listenerCount('clientError')) { server.emit('clientError', e, socket); return; }
      if (socket.writable) socket.write(`HTTP/1.1 ${e.code === 'HPE_HEADER_OVERFLOW' ? '431 Request Header Fields Too Large' : '400 Bad Request'}\r\nConnection: close\r\n\r\n`);
      socket.destroySoon();
    };
    const next = () => {
      socket._busy = false;
      if (server._closing) { socket.destroySoon(); return; }
      idle = setTimeout(() => socket.destroy(), server.keepAliveTimeout);
      idle.unref();
      parser.hold = false;
      if (socket._full) { socket._full = false; socket.resume(); }
      feed(Buffer.alloc(0));
    };
    const head = (req) => {
      clearTimeout(idle);
      socket._busy = true;
      if (req.httpVersion === '1.1' && req.headers.host === undefined) throw Object.assign(new Error('Missing Host header'), { code: 'HPE_INVALID_HEADER_TOKEN' });
      if (req.headers.upgrade && /upgrade/i.test(req.headers.connection || '') && server.listenerCount('upgrade')) {
        parser.done = true;
        socket.removeListener('data', data);
        socket.removeListener('end', over);
        process.nextTick(() => server.emit('upgrade', req, socket, parser.rest));
        return false;
      }
      const res = new ServerResponse(req);
      socket._response = res;
      let sent = false;
      res.once('finish', () => {
        sent = true;
        res.emit('close');
        if (res.shouldClose || socket._ended) { req._quiet = true; socket.destroySoon(); return; }
        if (req.complete) { next(); return; }
        req.resume(); // what nobody has read is thrown away
      });
      req._then = () => { if (sent && !socket.destroyed) process.nextTick(next); };
      process.nextTick(() => {
        if (/100-continue/i.test(req.headers.expect || '')) {
          if (server.listenerCount('checkContinue')) { server.emit('checkContinue', req, res); return; }
          res.writeContinue();
        }
        if (!server.emit('request', req, res)) res.writeHead(404).end();
      });
      return true;
    };
    const parser = new Parser({ socket, head, end: (req) => { parser.hold = true; req._then(); } });
    const feed = (b) => {
      try {
        parser.feed(b);
        // A request that comes before the last one was answered waits.
        if (parser.hold && parser.rest.length > 65536) { socket._full = true; socket.pause(); }
      } catch (e) {
        parser.done = true;
        refuse(e);
      }
    };
    const data = (b) => { if (!parser.done) feed(b); };
    const over = () => {
      socket._ended = true;
      if (!socket._busy) { socket.end(); return; }
      if (parser.message && !parser.message.complete) { parser.message.aborted = true; parser.message.emit('aborted'); socket.destroy(); }
    };
    socket.on('data', data);
    socket.on('end', over);
    socket.on('error', () => {});
    socket.on('close', () => {
      clearTimeout(idle);
      const req = parser.message, res = socket._response;
      if (req && !req.complete && !req.destroyed) {
        req.aborted = true;
        req.destroy(req.listenerCount('error') ? Object.assign(new Error('aborted'), { code: 'ECONNRESET' }) : undefined);
      }
      if (res && !res.writableFinished) { res.emit('close'); res.destroy(); }
    });
    socket.on('timeout', () => { if (!server.emit('timeout', socket)) socket.destroy(); });
    if (server.timeout) socket.setTimeout(server.timeout);
  }
  return { Server, ServerResponse, IncomingMessage };
};
