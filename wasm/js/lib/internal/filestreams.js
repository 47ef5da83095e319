'use strict';
let made;
module.exports = (fs, sync, pathOf) => made ||= (() => {
  const { Readable, Writable } = require('stream');
  class ReadStream extends Readable {
    constructor(path, o = {}) {
      if (typeof o === 'string') o = { encoding: o };
      super({ highWaterMark: o.highWaterMark || 65536, encoding: o.encoding, autoDestroy: o.autoClose !== false, emitClose: o.emitClose });
      this.path = path === null || path === undefined ? undefined : pathOf(path);
      this.fd = typeof o.fd === 'number' ? o.fd : o.fd && o.fd.fd !== undefined ? o.fd.fd : null;
      this.start = o.start;
      this.end = o.end ?? Infinity;
      this.pos = o.start;
      this.bytesRead = 0;
      this.own = this.fd === null || o.autoClose !== false;
      this.flags = o.flags || 'r';
      this.mode = o.mode;
      if (o.signal) require('stream').addAbortSignal(o.signal, this);
      if (this.fd === null) setImmediate(() => this._open());
      else this.pending = false;
    }
    _open() {
      if (this.destroyed) return;
      try {
        this.fd = sync.open(this.path, this.flags, this.mode);
      } catch (e) {
        this.destroy(e);
        return;
      }
      this.emit('open', this.fd);
      this.emit('ready');
      if (this.wants) this._read(this.wants);
    }
    _read(n) {
      if (this.fd === null) { this.wants = n; return; }
      this.wants = 0;
      if (this.start !== undefined || this.end !== Infinity) n = Math.min(n, this.end - (this.pos ?? 0) + 1);
      if (n <= 0) return void this.push(null);
      setImmediate(() => {
        if (this.destroyed) return;
        const b = Buffer.allocUnsafe(n);
        let r;
        try {
          r = sync.read(this.fd, b, 0, n, this.pos ?? (this.end !== Infinity ? 0 : null));
        } catch (e) {
          this.destroy(e);
          return;
        }
        if (this.pos !== undefined || this.end !== Infinity) this.pos = (this.pos ?? 0) + r;
        this.bytesRead += r;
        this.push(r === 0 ? null : b.subarray(0, r));
      });
    }
    _destroy(e, cb) {
      if (this.fd !== null && this.own && this.fd > 2) try { sync.close(this.fd); } catch (err) { e ||= err; }
      this.fd = null;
      setImmediate(() => cb(e));
    }
    close(cb) { if (cb) this.once('close', cb); this.destroy(); }
  }
  class WriteStream extends Writable {
    constructor(path, o = {}) {
      if (typeof o === 'string') o = { encoding: o };
      super({ highWaterMark: o.highWaterMark, decodeStrings: true, defaultEncoding: o.encoding || 'utf8', autoDestroy: o.autoClose !== false, emitClose: o.emitClose });
      this.path = path === null || path === undefined ? undefined : pathOf(path);
      this.fd = typeof o.fd === 'number' ? o.fd : o.fd && o.fd.fd !== undefined ? o.fd.fd : null;
      this.pos = o.start;
      this.bytesWritten = 0;
      this.own = this.fd === null || o.autoClose !== false;
      this.flags = o.flags || (o.start !== undefined ? 'r+' : 'w');
      this.mode = o.mode;
      if (o.signal) require('stream').addAbortSignal(o.signal, this);
    }
    _construct(cb) {
      if (this.fd !== null) return void process.nextTick(cb);
      setImmediate(() => {
        try {
          this.fd = sync.open(this.path, this.flags, this.mode);
        } catch (e) {
          return cb(e);
        }
        cb();
        this.emit('open', this.fd);
        this.emit('ready');
      });
    }
    _write(chunk, encoding, cb) {
      setImmediate(() => {
        try {
          for (let at = 0; at < chunk.length;) {
            const n = sync.write(this.fd, chunk, at, chunk.length - at, this.pos ?? null);
            if (this.pos !== undefined) this.pos += n;
            at += n;
          }
          this.bytesWritten += chunk.length;
        } catch (e) {
          return cb(e);
        }
        cb();
      });
    }
    _destroy(e, cb) {
      if (this.fd !== null && this.own && this.fd > 2) try { sync.close(this.fd); } catch (err) { e ||= err; }
      this.fd = null;
      setImmediate(() => cb(e));
    }
    close(cb) {
      if (cb) { if (this.closed) return void process.nextTick(cb); this.on('close', cb); }
      if (!this.own) this.on('finish', () => this.destroy());
      this.end();
    }
    destroySoon() { this.end(); }
    get pending() { return this.fd === null; }
  }
  return { ReadStream, WriteStream };
})();
