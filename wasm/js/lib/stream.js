'use strict';
const EE = require('events');
const { coded, argType, AbortError } = require('internal/errors');
const { StringDecoder } = require('string_decoder');

function Stream(o) { EE.call(this, o); }
Object.setPrototypeOf(Stream.prototype, EE.prototype);
Object.setPrototypeOf(Stream, EE);
Stream.prototype.pipe = function(dest, o) { return Readable.prototype.pipe.call(this, dest, o); };

const nop = () => {};
let defaultHigh = 16384, defaultObjects = 16;
const high = (o, objects, side) => o[`${side}HighWaterMark`] ?? o.highWaterMark ?? (objects ? defaultObjects : defaultHigh);

// What Readable and Writable share: being destroyed, once.
function destroy(err, cb) {
  const s = this._state;
  if (s.destroyed) {
    if (cb) cb(err);
    return this;
  }
  s.destroyed = true;
  if (err) s.errored ??= err;
  const go = () => {
    let done = false;
    const after = (e) => {
      if (done) return;
      done = true;
      if (e) s.errored ??= e;
      s.closed = true;
      if (cb) cb(e || err || null);
      process.nextTick(() => {
        const error = e || err;
        if (error && !s.errorEmitted) {
          s.errorEmitted = true;
          this.emit('error', error);
        }
        if (s.emitClose) {
          s.closeEmitted = true;
          this.emit('close');
        }
      });
    };
    try {
      this._destroy(err || null, after);
    } catch (e) {
      after(e);
    }
  };
  if (s.constructed) go(); else this.once(kConstruct, go);
  return this;
}
const kConstruct = Symbol('kConstruct');
function common(self, o) {
  const s = self._state ??= { destroyed: false, errored: null, errorEmitted: false, closed: false, closeEmitted: false, constructed: true };
  s.emitClose = o.emitClose !== false;
  s.autoDestroy = o.autoDestroy !== false;
  if (typeof o.destroy === 'function') self._destroy = o.destroy;
  if (typeof o.construct === 'function') self._construct = o.construct;
  if (o.signal) addAbortSignal(o.signal, self);
  return s;
}
function construct(self) {
  if (typeof self._construct !== 'function' || self._state.constructing) return;
  self._state.constructing = true;
  self._state.constructed = false;
  process.nextTick(() => {
    let called = false;
    const done = (e) => {
      if (called) return;
      called = true;
      self._state.constructed = true;
      if (self._state.destroyed) self.emit(kConstruct);
      else if (e) self.destroy(e);
      else process.nextTick(() => {
        self.emit(kConstruct);
        if (self._r && self._r.wants) readMore(self);
        if (self._w) pump(self);
      });
    };
    try { self._construct(done); } catch (e) { done(e); }
  });
}
function fail(self, e, sync) {
  if (self._state.autoDestroy) self.destroy(e);
  else if (!self._state.errorEmitted) {
    self._state.errored ??= e;
    self._state.errorEmitted = true;
    if (sync) process.nextTick(() => self.emit('error', e)); else self.emit('error', e);
  }
}

// Readable.
function Readable(o = {}) {
  if (!(this instanceof Readable)) return new Readable(o);
  EE.call(this, o);
  readableInit(this, o || {});
  construct(this);
}
Object.setPrototypeOf(Readable.prototype, Stream.prototype);
Object.setPrototypeOf(Readable, Stream);
function readableInit(self, o) {
  const objects = !!(o.objectMode || o.readableObjectMode);
  common(self, o);
  self._r = { objects, high: high(o, objects, 'readable'), buffer: [], length: 0, flowing: null, ended: false, endEmitted: false, reading: false, wants: false, sync: true, encoding: o.encoding || null,
    decoder: o.encoding ? new StringDecoder(o.encoding) : null, pipes: [], needReadable: false, emitted: false, resumeScheduled: false, readableListening: false, dataEmitted: false };
  if (typeof o.read === 'function') self._read = o.read;
  for (const k of ['_r', '_state']) Object.defineProperty(self, k, { enumerable: false, writable: true, configurable: true, value: self[k] });
}
const R = Readable.prototype;
R.destroy = destroy;
R._destroy = function(e, cb) { cb(e); };
R._read = function() { throw coded(Error, 'ERR_METHOD_NOT_IMPLEMENTED', 'The _read() method is not implemented'); };
R.push = function(chunk, encoding) { return add(this, chunk, encoding, false); };
R.unshift = function(chunk, encoding) { return add(this, chunk, encoding, true); };
function add(self, chunk, encoding, front) {
  const r = self._r;
  if (chunk === null) {
    r.reading = false;
    if (!r.ended) {
      r.ended = true;
      if (r.decoder) {
        const s = r.decoder.end();
        if (s) { r.buffer.push(s); r.length += r.objects ? 1 : s.length; }
      }
      emitReadable(self);
    }
    return false;
  }
  if (!r.objects) {
    if (typeof chunk === 'string') {
      encoding = encoding || 'utf8';
      if (r.encoding !== encoding || front) chunk = r.decoder && r.encoding === encoding ? chunk : Buffer.from(chunk, encoding);
    } else if (chunk instanceof Uint8Array) {
      if (!Buffer.isBuffer(chunk)) chunk = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    } else {
      fail(self, argType('chunk', ['string', 'Buffer', 'Uint8Array'], chunk));
      return false;
    }
  }
  if (!front) {
    if (r.ended) {
      fail(self, coded(Error, 'ERR_STREAM_PUSH_AFTER_EOF', 'stream.push() after EOF'));
      return false;
    }
    if (self._state.destroyed || self._state.errored) return false;
    r.reading = false;
    if (r.decoder && typeof chunk !== 'string' && !r.objects) chunk = r.decoder.write(chunk);
  }
  if (!r.objects && chunk.length === 0) {
    r.reading = false;
    maybeReadMore(self);
    return r.length < r.high;
  }
  if (r.flowing && r.length === 0 && !r.sync && self.listenerCount('data') > 0) {
    r.dataEmitted = true;
    self.emit('data', chunk);
  } else {
    r.length += r.objects ? 1 : chunk.length;
    if (front) r.buffer.unshift(chunk); else r.buffer.push(chunk);
    if (r.needReadable || r.flowing || r.readableListening) emitReadable(self);
  }
  maybeReadMore(self);
  return !r.ended && (r.length < r.high || r.length === 0);
}
function emitReadable(self) {
  const r = self._r;
  r.needReadable = false;
  if (r.emitted) return;
  r.emitted = true;
  process.nextTick(() => {
    r.emitted = false;
    if (!self._state.destroyed && !self._state.errored && (r.length || r.ended)) self.emit('readable');
    r.needReadable = !r.flowing && !r.ended && r.length <= r.high;
    flow(self);
    if (r.ended && r.length === 0 && (r.flowing || r.readableListening && false)) endReadable(self);
  });
}
function maybeReadMore(self) {
  const r = self._r;
  if (r.more || !self._state.constructed) return;
  r.more = true;
  process.nextTick(() => {
    r.more = false;
    while (!r.reading && !r.ended && !self._state.destroyed && (r.length < r.high || r.flowing && r.length === 0)) {
      const before = r.length;
      if (r.flowing === null && !r.readableListening && !r.started) break;
      if (r.flowing === false && r.length >= r.high) break;
      callRead(self);
      if (before === r.length) break;
    }
  });
}
function callRead(self) {
  const r = self._r;
  if (r.reading || r.ended || self._state.destroyed || self._state.errored) return;
  if (!self._state.constructed) { r.wants = true; return; }
  r.reading = true;
  r.started = true;
  r.sync = true;
  if (r.length === 0) r.needReadable = true;
  try {
    self._read(r.high);
  } catch (e) {
    fail(self, e, true);
  }
  r.sync = false;
}
function readMore(self) { self._r.wants = false; callRead(self); }
R.read = function(n) {
  const r = this._r;
  if (n === undefined) n = NaN;
  if (n !== 0) r.emittedOnce = false;
  if (n === 0 && r.needReadable && (r.length >= r.high && r.high !== 0 || r.ended)) {
    if (r.length === 0 && r.ended) endReadable(this); else emitReadable(this);
    return null;
  }
  if (n > r.high) r.high = Math.max(r.high, 1 << Math.ceil(Math.log2(n)));
  let want = isNaN(n) ? (r.flowing && r.length && !r.objects ? r.buffer[0].length : r.length) : n;
  if (r.objects) want = n === 0 ? 0 : Math.min(1, r.length);
  if (want > r.length) want = r.ended ? r.length : 0;
  if (want === 0 && r.ended) {
    if (r.length === 0) endReadable(this);
    return null;
  }
  if (r.length === 0 || r.length - want < r.high) callRead(this);
  if (isNaN(n) && !r.objects) want = r.flowing && r.length ? r.buffer[0].length : r.length;
  if (r.objects && n !== 0) want = Math.min(1, r.length);
  const ret = want > 0 ? take(r, want) : null;
  if (ret === null) {
    r.needReadable = r.length <= r.high;
  } else {
    r.length -= r.objects ? 1 : want;
    if (r.length === 0 && !r.ended) r.needReadable = true;
  }
  if (r.length === 0 && r.ended && (n !== 0 || ret !== null)) endReadable(this);
  if (ret !== null && !this._state.errored) {
    r.dataEmitted = true;
    this.emit('data', ret);
  }
  return ret;
};
function take(r, n) {
  if (r.objects) return r.buffer.shift();
  if (n >= r.length) {
    const all = r.decoder ? r.buffer.join('') : r.buffer.length === 1 ? r.buffer[0] : Buffer.concat(r.buffer);
    r.buffer = [];
    return all;
  }
  if (r.buffer[0].length === n) return r.buffer.shift();
  const all = r.decoder ? r.buffer.join('') : Buffer.concat(r.buffer);
  r.buffer = [all.slice(n)];
  return all.slice(0, n);
}
function endReadable(self) {
  const r = self._r;
  if (r.endEmitted || r.ending) return;
  r.ending = true;
  process.nextTick(() => {
    if (self._state.errored || self._state.closeEmitted || r.endEmitted || r.length) { r.ending = false; return; }
    r.endEmitted = true;
    self.readable = false;
    self.emit('end');
    if (self._w && self.allowHalfOpen === false) process.nextTick(() => { if (self.writable && !self._state.destroyed) self.end(); });
    else if (self._state.autoDestroy && (!self._w || self._w.finished || self._w.autoDestroyed)) self.destroy();
  });
}
function flow(self) {
  const r = self._r;
  while (r.flowing && self.read() !== null);
}
R.on = function(type, f) {
  EE.prototype.on.call(this, type, f);
  const r = this._r;
  if (type === 'data') {
    r.readableListening = this.listenerCount('readable') > 0;
    if (r.flowing !== false) this.resume();
  } else if (type === 'readable' && !r.endEmitted && !r.readableListening) {
    r.readableListening = r.needReadable = true;
    r.flowing = false;
    if (r.length) emitReadable(this);
    else if (!r.reading) process.nextTick(() => this.read(0));
  }
  return this;
};
R.addListener = R.on;
R.removeListener = function(type, f) {
  EE.prototype.removeListener.call(this, type, f);
  if (type === 'readable') process.nextTick(() => {
    this._r.readableListening = this.listenerCount('readable') > 0;
    if (!this._r.readableListening && this.listenerCount('data') > 0) this.resume();
  });
  return this;
};
R.off = R.removeListener;
R.resume = function() {
  const r = this._r;
  if (!r.flowing) {
    r.flowing = !r.readableListening;
    if (!r.resumeScheduled) {
      r.resumeScheduled = true;
      process.nextTick(() => {
        r.resumeScheduled = false;
        if (!r.reading) this.read(0);
        this.emit('resume');
        flow(this);
        if (r.flowing && !r.reading) this.read(0);
        if (r.flowing && r.ended && r.length === 0) endReadable(this);
      });
    }
  }
  r.paused = false;
  return this;
};
R.pause = function() {
  const r = this._r;
  if (r.flowing !== false) {
    r.flowing = false;
    this.emit('pause');
  }
  r.paused = true;
  return this;
};
R.isPaused = function() { return this._r.paused === true || this._r.flowing === false; };
R.setEncoding = function(encoding) {
  const r = this._r;
  r.decoder = new StringDecoder(encoding);
  r.encoding = r.decoder.encoding;
  let s = '';
  for (const b of r.buffer) s += r.decoder.write(b);
  r.buffer = s ? [s] : [];
  r.length = s.length;
  return this;
};
R.pipe = function(dest, o) {
  const src = this;
  const pipes = this._r ? this._r.pipes : [];
  pipes.push(dest);
  const end = (!o || o.end !== false) && dest !== process.stdout && dest !== process.stderr;
  const onData = (chunk) => {
    if (dest.write(chunk) === false) {
      src.pause();
      dest.once('drain', onDrain);
    }
  };
  const onDrain = () => { if (src.listenerCount('data')) src.resume(); };
  const onEnd = () => dest.end();
  const onClose = () => src.unpipe && src.unpipe(dest);
  const onError = (e) => {
    unpipe();
    if (dest.listenerCount('error') === 0) { if (dest._state && !dest._state.errorEmitted) dest.destroy(e); else dest.emit('error', e); }
  };
  const unpipe = () => {
    src.removeListener('data', onData);
    src.removeListener('end', onEnd);
    src.removeListener('end', unpipe);
    dest.removeListener('drain', onDrain);
    dest.removeListener('close', onClose);
    dest.removeListener('error', onError);
    dest.removeListener('unpipe', onUnpipe);
    const i = pipes.indexOf(dest);
    if (i >= 0) pipes.splice(i, 1);
  };
  const onUnpipe = (from) => { if (from === src) unpipe(); };
  src.on('data', onData);
  if (end) src.once('end', onEnd); else src.once('end', unpipe);
  dest.prependListener('error', onError);
  dest.once('close', onClose);
  dest.on('unpipe', onUnpipe);
  dest.emit('pipe', src);
  if (dest.writableNeedDrain === true) { src.pause(); dest.once('drain', onDrain); } else if (src._r && !src._r.flowing) src.resume();
  return dest;
};
R.unpipe = function(dest) {
  const list = dest ? [dest] : this._r.pipes.slice();
  if (!dest || this._r.pipes.includes(dest)) for (const d of list) d.emit('unpipe', this, { hasUnpiped: false });
  if (!this._r.pipes.length && this.listenerCount('data') === 0) this.pause();
  return this;
};
R.wrap = function(old) {
  old.on('data', (c) => { if (!this.push(c) && old.pause) old.pause(); });
  old.on('end', () => this.push(null));
  old.on('error', (e) => fail(this, e));
  this._read = () => { if (old.resume) old.resume(); };
  return this;
};
R[Symbol.asyncIterator] = function() { return iterate(this, {}); };
R.iterator = function(o) { return iterate(this, o || {}); };
async function* iterate(s, o) {
  let wake = nop, error;
  const next = () => { const f = wake; wake = nop; f(); };
  s.on('readable', next);
  const stop = finished(s, { writable: false }, (e) => { error = e ? e : null; next(); });
  try {
    for (;;) {
      const chunk = s.destroyed ? null : s.read();
      if (chunk !== null) yield chunk;
      else if (error) throw error;
      else if (error === null) return;
      else await new Promise((r) => { wake = r; });
    }
  } catch (e) {
    error = e;
    throw e;
  } finally {
    stop();
    if ((error || o.destroyOnReturn !== false) && (error === undefined || s._state.autoDestroy)) s.destroy(null);
    else s.off('readable', next);
  }
}
function getters(proto, table) {
  for (const k of Object.keys(table)) Object.defineProperty(proto, k, { configurable: true, enumerable: false, ...table[k] });
}
const state = {
  destroyed: { get() { return !!this._state && this._state.destroyed; }, set(v) { if (this._state) this._state.destroyed = v; } },
  closed: { get() { return !!this._state && this._state.closed; } },
  errored: { get() { return this._state ? this._state.errored : null; } },
};
const readableProps = {
  readable: { get() { return !!this._r && this._r.readable !== false && !this._state.destroyed && !this._state.errorEmitted && !this._r.endEmitted; }, set(v) { if (this._r) this._r.readable = !!v; } },
  readableFlowing: { get() { return this._r.flowing; }, set(v) { this._r.flowing = v; } }, readableHighWaterMark: { get() { return this._r.high; } },
  readableLength: { get() { return this._r.length; } }, readableObjectMode: { get() { return this._r.objects; } }, readableEncoding: { get() { return this._r.encoding; } },
  readableEnded: { get() { return this._r.endEmitted; } }, readableAborted: { get() { return (this._state.destroyed || !!this._state.errored) && !this._r.endEmitted; } },
  readableDidRead: { get() { return this._r.dataEmitted; } }, _readableState: { get() { return this._r && Object.assign(this._r, { objectMode: this._r.objects, highWaterMark: this._r.high, destroyed: this._state.destroyed }); } },
};
getters(R, { ...state, ...readableProps });
Readable.from = (source, o) => {
  if (typeof source === 'string' || source instanceof Uint8Array) {
    let done = false;
    return new Readable({ objectMode: true, ...o, read() { if (!done) { done = true; this.push(source); this.push(null); } } });
  }
  const it = source[Symbol.asyncIterator] ? source[Symbol.asyncIterator]() : source[Symbol.iterator] ? source[Symbol.iterator]() : null;
  if (!it) throw argType('iterable', ['Iterable'], source);
  const isAsync = !!source[Symbol.asyncIterator];
  let reading = false;
  const s = new Readable({ objectMode: true, highWaterMark: 1, ...o });
  s._read = function() { if (!reading) { reading = true; next(); } };
  s._destroy = function(e, cb) { Promise.resolve(e && it.throw ? it.throw(e) : it.return && it.return()).then(() => cb(e), (x) => cb(e || x)); };
  async function next() {
    for (;;) {
      try {
        const { value, done } = isAsync ? await it.next() : it.next();
        if (done) { s.push(null); return; }
        const v = value && typeof value.then === 'function' ? await value : value;
        if (v === null) throw coded(TypeError, 'ERR_STREAM_NULL_VALUES', 'May not write null values to stream');
        if (!s.push(v)) { reading = false; return; }
      } catch (e) {
        s.destroy(e);
        return;
      }
    }
  }
  return s;
};
Readable.fromWeb = (web, o) => Readable.from((async function* () {
  const r = web.getReader();
  for (;;) {
    const { value, done } = await r.read();
    if (done) return;
    yield value;
  }
})(), o);
// Helpers over all that a stream gives.
const helper = (f) => function(...args) { return Readable.from(f(this, ...args)); };
R.map = helper(async function* (s, f) { for await (const x of s) yield await f(x, {}); });
R.filter = helper(async function* (s, f) { for await (const x of s) if (await f(x, {})) yield x; });
R.flatMap = helper(async function* (s, f) { for await (const x of s) yield* await f(x, {}); });
R.take = helper(async function* (s, n) { if (n <= 0) return; for await (const x of s) { yield x; if (--n <= 0) return; } });
R.drop = helper(async function* (s, n) { for await (const x of s) if (n-- <= 0) yield x; });
R.asIndexedPairs = helper(async function* (s) { let i = 0; for await (const x of s) yield [i++, x]; });
R.forEach = async function(f) { for await (const x of this) await f(x, {}); };
R.toArray = async function() { const out = []; for await (const x of this) out.push(x); return out; };
R.some = async function(f) { for await (const x of this) if (await f(x, {})) return true; return false; };
R.every = async function(f) { for await (const x of this) if (!await f(x, {})) return false; return true; };
R.find = async function(f) { for await (const x of this) if (await f(x, {})) return x; return undefined; };
R.reduce = async function(f, ...init) {
  let has = init.length > 0, acc = init[0];
  for await (const x of this) if (has) acc = await f(acc, x, {}); else { acc = x; has = true; }
  if (!has) throw new TypeError('Reduce of an empty stream requires an initial value');
  return acc;
};

// Writable.
function Writable(o = {}) {
  if (!(this instanceof Writable) && !(this instanceof Duplex)) return new Writable(o);
  EE.call(this, o);
  writableInit(this, o || {});
  construct(this);
}
Object.setPrototypeOf(Writable.prototype, Stream.prototype);
Object.setPrototypeOf(Writable, Stream);
function writableInit(self, o) {
  const objects = !!(o.objectMode || o.writableObjectMode);
  common(self, o);
  self._w = { objects, high: high(o, objects, 'writable'), queue: [], length: 0, writing: false, corked: 0, ending: false, ended: false, finished: false, needDrain: false, sync: true, prefinished: false,
    decode: o.decodeStrings !== false, encoding: o.defaultEncoding || 'utf8', endCallbacks: [], pending: 0, autoDestroyed: false };
  if (typeof o.write === 'function') self._write = o.write;
  if (typeof o.writev === 'function') self._writev = o.writev;
  if (typeof o.final === 'function') self._final = o.final;
  for (const k of ['_w', '_state']) Object.defineProperty(self, k, { enumerable: false, writable: true, configurable: true, value: self[k] });
}
const W = Writable.prototype;
W.destroy = function(e, cb) {
  const w = this._w;
  if (!this._state.destroyed && (w.queue.length || w.endCallbacks.length)) process.nextTick(() => {
    const err = e || coded(Error, 'ERR_STREAM_DESTROYED', 'Cannot call write after a stream was destroyed');
    for (const [, , f] of w.queue.splice(0)) f(err);
    if (!w.finished) for (const f of w.endCallbacks.splice(0)) f(err);
  });
  return destroy.call(this, e, cb);
};
W._destroy = function(e, cb) { cb(e); };
W._write = function(chunk, encoding, cb) {
  if (this._writev) this._writev([{ chunk, encoding }], cb);
  else throw coded(Error, 'ERR_METHOD_NOT_IMPLEMENTED', 'The _write() method is not implemented');
};
W.pipe = function() { fail(this, coded(Error, 'ERR_STREAM_CANNOT_PIPE', 'Cannot pipe, not readable')); };
W.write = function(chunk, encoding, cb) {
  const w = this._w;
  if (typeof encoding === 'function') { cb = encoding; encoding = null; }
  cb = typeof cb === 'function' ? cb : nop;
  if (chunk === null) throw coded(TypeError, 'ERR_STREAM_NULL_VALUES', 'May not write null values to stream');
  encoding = encoding || w.encoding;
  if (!w.objects) {
    if (typeof chunk === 'string') {
      if (encoding !== 'buffer' && !Buffer.isEncoding(encoding)) throw coded(TypeError, 'ERR_UNKNOWN_ENCODING', `Unknown encoding: ${encoding}`);
      if (w.decode) { chunk = Buffer.from(chunk, encoding); encoding = 'buffer'; }
    } else if (chunk instanceof Uint8Array) {
      if (!Buffer.isBuffer(chunk)) chunk = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      encoding = 'buffer';
    } else throw argType('chunk', ['string', 'Buffer', 'Uint8Array'], chunk);
  }
  let e;
  if (w.ending) e = coded(Error, 'ERR_STREAM_WRITE_AFTER_END', 'write after end');
  else if (this._state.destroyed) e = coded(Error, 'ERR_STREAM_DESTROYED', 'Cannot call write after a stream was destroyed');
  if (e) {
    process.nextTick(cb, e);
    if (w.ending) fail(this, e, true);
    return false;
  }
  w.pending++;
  w.length += w.objects ? 1 : chunk.length;
  const more = w.length < w.high;
  if (!more) w.needDrain = true;
  w.queue.push([chunk, encoding, cb]);
  pump(this);
  return more && !this._state.errored && !this._state.destroyed;
};
function pump(self) {
  const w = self._w;
  if (w.writing || w.corked || !self._state.constructed || self._state.destroyed || self._state.errored) return;
  if (!w.queue.length) return void finishMaybe(self);
  w.writing = true;
  let list, size;
  if (self._writev && w.queue.length > 1) {
    list = w.queue.splice(0);
    size = list.reduce((n, [c]) => n + (w.objects ? 1 : c.length), 0);
  } else {
    list = [w.queue.shift()];
    size = w.objects ? 1 : list[0][0].length;
  }
  let sync = true, called = false;
  const done = (e) => {
    if (called) { fail(self, coded(Error, 'ERR_MULTIPLE_CALLBACK', 'Callback called multiple times')); return; }
    called = true;
    w.writing = false;
    w.length -= size;
    w.pending -= list.length;
    if (e) {
      self._state.errored ??= e;
      const go = () => {
        for (const [, , f] of list) f(e);
        fail(self, e);
      };
      if (sync) process.nextTick(go); else go();
      return;
    }
    if (w.queue.length) pump(self);
    const after = () => {
      const drain = !w.ending && !self._state.destroyed && w.length === 0 && w.needDrain;
      if (drain) {
        w.needDrain = false;
        self.emit('drain');
      }
      for (const [, , f] of list) f(null);
      finishMaybe(self);
    };
    if (sync) process.nextTick(after); else after();
  };
  try {
    if (self._writev && list.length > 1) self._writev(list.map(([chunk, encoding]) => ({ chunk, encoding })), done);
    else self._write(list[0][0], list[0][1], done);
  } catch (e) {
    if (called) throw e;
    done(e);
    if (!self._state.autoDestroy) throw e;
  }
  sync = false;
}
W.cork = function() { this._w.corked++; };
W.uncork = function() { if (this._w.corked) { this._w.corked--; pump(this); } };
W.setDefaultEncoding = function(e) { this._w.encoding = e.toLowerCase(); return this; };
W.end = function(chunk, encoding, cb) {
  const w = this._w;
  if (typeof chunk === 'function') { cb = chunk; chunk = null; } else if (typeof encoding === 'function') { cb = encoding; encoding = null; }
  let err;
  if (chunk !== null && chunk !== undefined) {
    if (w.ending) err = coded(Error, 'ERR_STREAM_WRITE_AFTER_END', 'write after end');
    this.write(chunk, encoding);
  }
  if (w.corked) { w.corked = 1; this.uncork(); }
  if (!err && !this._state.errored && !w.ending) {
    w.ending = true;
    finishMaybe(this);
    w.ended = true;
  } else if (w.finished) err = coded(Error, 'ERR_STREAM_ALREADY_FINISHED', 'Cannot call end after a stream was finished');
  else if (this._state.destroyed) err = coded(Error, 'ERR_STREAM_DESTROYED', 'Cannot call end after a stream was destroyed');
  if (typeof cb === 'function') {
    if (err) process.nextTick(cb, err);
    else if (w.finished) process.nextTick(cb);
    else w.endCallbacks.push(cb);
  }
  return this;
};
function finishMaybe(self) {
  const w = self._w;
  if (!w.ending || w.finished || w.writing || w.queue.length || w.length || self._state.destroyed || self._state.errored || !self._state.constructed || w.prefinished) return;
  w.prefinished = true;
  const finish = () => {
    if (self._state.errored || self._state.destroyed) return;
    w.finished = true;
    for (const f of w.endCallbacks.splice(0)) f(null);
    self.emit('finish');
    if (self._state.autoDestroy) {
      if (!self._r || self._r.endEmitted || self._r.readable === false) self.destroy();
      else w.autoDestroyed = true;
    }
  };
  const finalize = () => {
    if (typeof self._final === 'function') {
      let called = false;
      const done = (e) => {
        if (called) return;
        called = true;
        if (e) {
          for (const f of w.endCallbacks.splice(0)) f(e);
          fail(self, e);
        } else {
          self.emit('prefinish');
          process.nextTick(finish);
        }
      };
      try { self._final(done); } catch (e) { done(e); }
    } else {
      self.emit('prefinish');
      finish();
    }
  };
  process.nextTick(finalize);
}
const writableProps = {
  writable: { get() { return !!this._w && this._w.writable !== false && !this._state.destroyed && !this._state.errored && !this._w.ending && !this._w.ended; }, set(v) { if (this._w) this._w.writable = !!v; } },
  writableFinished: { get() { return this._w.finished; } }, writableEnded: { get() { return this._w.ending; } }, writableHighWaterMark: { get() { return this._w.high; } },
  writableLength: { get() { return this._w.length; } }, writableObjectMode: { get() { return this._w.objects; } }, writableCorked: { get() { return this._w.corked; } },
  writableNeedDrain: { get() { return !this._state.destroyed && !this._w.ending && this._w.needDrain; } }, writableAborted: { get() { return (this._state.destroyed || !!this._state.errored) && !this._w.finished; } },
  writableBuffer: { get() { return this._w.queue; } }, _writableState: { get() { return this._w && Object.assign(this._w, { objectMode: this._w.objects, highWaterMark: this._w.high }); } },
};
getters(W, { ...state, ...writableProps });

// Duplex, Transform, PassThrough.
function Duplex(o = {}) {
  if (!(this instanceof Duplex)) return new Duplex(o);
  EE.call(this, o);
  o = o || {};
  readableInit(this, o);
  writableInit(this, o);
  this.allowHalfOpen = o.allowHalfOpen !== false;
  if (o.readable === false) { this._r.readable = false; this._r.ended = this._r.endEmitted = true; }
  if (o.writable === false) { this._w.writable = false; this._w.ending = this._w.ended = this._w.finished = true; }
  construct(this);
}
Object.setPrototypeOf(Duplex.prototype, Readable.prototype);
Object.setPrototypeOf(Duplex, Readable);
for (const k of ['write', '_write', 'end', 'cork', 'uncork', 'setDefaultEncoding', 'destroy']) Duplex.prototype[k] = W[k];
getters(Duplex.prototype, writableProps);
Object.defineProperty(Writable, Symbol.hasInstance, { value(o) { return Function.prototype[Symbol.hasInstance].call(this, o) || this === Writable && !!o && !!o._w; } });
Duplex.from = (x) => {
  if (x && x._r && x._w) return x;
  if (x && typeof x === 'object' && (x.readable || x.writable)) return compose2(x.writable, x.readable);
  return Readable.from(typeof x === 'function' ? x() : x);
};
function compose2(w, r) {
  const d = new Duplex({ objectMode: true, write(c, e, cb) { if (w.write(c, e)) cb(); else w.once('drain', cb); }, final(cb) { w.end(cb); }, read() { r.resume(); } });
  r.on('data', (c) => { if (!d.push(c)) r.pause(); });
  r.on('end', () => d.push(null));
  for (const s of [w, r]) s.on('error', (e) => d.destroy(e));
  return d;
}
function Transform(o = {}) {
  if (!(this instanceof Transform)) return new Transform(o);
  Duplex.call(this, o);
  o = o || {};
  Object.defineProperty(this, '_cb', { value: null, writable: true, enumerable: false });
  if (typeof o.transform === 'function') this._transform = o.transform;
  if (typeof o.flush === 'function') this._flush = o.flush;
  this._r.sync = false;
}
Object.setPrototypeOf(Transform.prototype, Duplex.prototype);
Object.setPrototypeOf(Transform, Duplex);
Transform.prototype._transform = function() { throw coded(Error, 'ERR_METHOD_NOT_IMPLEMENTED', 'The _transform() method is not implemented'); };
Transform.prototype._write = function(chunk, encoding, cb) {
  this._transform(chunk, encoding, (e, v) => {
    if (e) return cb(e);
    if (v != null) this.push(v);
    if (this._r.length < this._r.high || this._r.flowing && this._r.length === 0) cb(); else this._cb = cb;
  });
};
Transform.prototype._read = function() {
  if (!this._cb) return;
  const cb = this._cb;
  this._cb = null;
  cb();
};
Transform.prototype._final = function(cb) {
  if (typeof this._flush !== 'function') {
    this.push(null);
    return cb();
  }
  this._flush((e, v) => {
    if (e) return cb(e);
    if (v != null) this.push(v);
    this.push(null);
    cb();
  });
};
function PassThrough(o) {
  if (!(this instanceof PassThrough)) return new PassThrough(o);
  Transform.call(this, o);
}
Object.setPrototypeOf(PassThrough.prototype, Transform.prototype);
Object.setPrototypeOf(PassThrough, Transform);
PassThrough.prototype._transform = (c, e, cb) => cb(null, c);
for (const C of [Stream, Readable, Writable, Duplex, Transform, PassThrough]) Object.defineProperty(C.prototype, 'constructor', { value: C, writable: true, configurable: true });
for (const C of [Readable, Writable, Duplex, Transform]) for (const k of Object.keys(C.prototype)) Object.defineProperty(C.prototype, k, { enumerable: false });
const kAsyncDispose = Symbol.asyncDispose || Symbol.for('nodejs.asyncDispose');
for (const C of [Readable, Writable]) Object.defineProperty(C.prototype, kAsyncDispose, { value() { this.destroy(); return new Promise((r) => finished(this, () => r())); } });

// finished tells when a stream is done with, either way.
function finished(s, o, cb) {
  if (typeof o === 'function') { cb = o; o = {}; }
  o = o || {};
  let done = false;
  const once = (e) => {
    if (done) return;
    done = true;
    stop();
    cb.call(s, e);
  };
  const r = o.readable ?? !!(s._r || s.readable && !s._w), w = o.writable ?? !!(s._w || s.writable && !s._r);
  const readDone = () => !r || (s._r ? s._r.endEmitted || s._r.readable === false : !s.readable), writeDone = () => !w || (s._w ? s._w.finished : !s.writable);
  const look = () => { if (readDone() && writeDone()) once(); };
  const onError = (e) => once(e);
  const onClose = () => {
    if (s._state && s._state.errored) return once(s._state.errored);
    if (!readDone() || !writeDone()) return once(coded(Error, 'ERR_STREAM_PREMATURE_CLOSE', 'Premature close'));
    once();
  };
  const stop = () => {
    s.removeListener('end', look);
    s.removeListener('finish', look);
    s.removeListener('error', onError);
    s.removeListener('close', onClose);
  };
  s.on('end', look);
  s.on('finish', look);
  if (o.error !== false) s.on('error', onError);
  s.on('close', onClose);
  if (s._state && s._state.closed || s._state && s._state.destroyed && s._state.closeEmitted) process.nextTick(onClose);
  else if (s._state && readDone() && writeDone() && (r || w)) process.nextTick(look);
  if (o.signal) {
    const abort = () => once(new AbortError(undefined, { cause: o.signal.reason }));
    if (o.signal.aborted) process.nextTick(abort); else o.signal.addEventListener('abort', abort, { once: true });
  }
  return stop;
}
function pipeline(...streams) {
  const cb = typeof streams.at(-1) === 'function' && streams.length > 1 && typeof streams.at(-2) !== 'undefined' && !isGenerator(streams.at(-1)) ? streams.pop() : nop;
  return pipelineImpl(streams, {}, cb);
}
const isGenerator = (f) => /GeneratorFunction|AsyncFunction/.test(Object.prototype.toString.call(f));
function pipelineImpl(streams, o, cb) {
  if (streams.length === 1 && Array.isArray(streams[0])) streams = streams[0];
  if (streams.length < 2) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "streams" argument must be specified');
  let value, error, left = 0, over = false;
  const all = [];
  const finish = (e) => {
    if (e && (!error || error.code === 'ERR_STREAM_PREMATURE_CLOSE')) error = e;
    if (e) for (const s of all) if (!s.destroyed) s.destroy(error);
    if (--left === 0 || e) {
      if (over) return;
      if (e && e.code === 'ERR_STREAM_PREMATURE_CLOSE' && left > 0) { process.nextTick(() => { if (!over) { over = true; cb(error); } }); return; }
      over = true;
      process.nextTick(() => cb(error, value));
    }
  };
  const watch = (s, reading, writing) => {
    left++;
    all.push(s);
    finished(s, { readable: reading, writable: writing }, finish);
  };
  let current;
  streams.forEach((s, i) => {
    const last = i === streams.length - 1;
    if (typeof s === 'function') {
      const r = s(i === 0 ? undefined : current && current._r ? current : current, { signal: o.signal });
      if (last && r && typeof r.then === 'function' && !r[Symbol.asyncIterator]) {
        left++;
        r.then((v) => { value = v; finish(); }, finish);
        current = null;
        return;
      }
      if (last) {
        const sink = Readable.from(r);
        left++;
        (async () => { for await (const x of sink); })().then(() => finish(), finish);
        return;
      }
      current = Readable.from(r);
      watch(current, true, false);
      return;
    }
    if (!s._r && !s._w && !s.pipe && !s.write) s = Readable.from(s);
    if (i > 0) {
      if (current && current.pipe) current.pipe(s, { end: o.end !== false || !last });
    }
    watch(s, !last && !!s._r, i > 0);
    current = s;
  });
  if (o.signal) addAbortSignal(o.signal, all[0]);
  return current;
}
function addAbortSignal(signal, s) {
  const f = () => s.destroy(new AbortError(undefined, { cause: signal.reason }));
  if (signal.aborted) f(); else signal.addEventListener('abort', f, { once: true });
  return s;
}
const promises = {
  pipeline: (...streams) => new Promise((resolve, reject) => {
    let o = {};
    const l = streams.at(-1);
    if (l && typeof l === 'object' && !l._r && !l._w && !l.pipe && !l[Symbol.iterator] && !l[Symbol.asyncIterator] && !l.write) o = streams.pop();
    pipelineImpl(streams, o, (e, v) => e ? reject(e) : resolve(v));
  }),
  finished: (s, o) => new Promise((resolve, reject) => finished(s, o || {}, (e) => e ? reject(e) : resolve())),
};
for (const [f, p] of [[pipeline, promises.pipeline], [finished, promises.finished]]) Object.defineProperty(f, Symbol.for('nodejs.util.promisify.custom'), { value: p, enumerable: true });

module.exports = Object.assign(Stream, {
  Stream, Readable, Writable, Duplex, Transform, PassThrough, pipeline, finished, addAbortSignal, promises, destroy: (s, e) => s.destroy(e),
  compose: (...list) => list.length === 1 ? list[0] : compose2(list[0], list.reduce((a, b) => a.pipe(b))),
  getDefaultHighWaterMark: (o) => o ? defaultObjects : defaultHigh, setDefaultHighWaterMark: (o, n) => { if (o) defaultObjects = n; else defaultHigh = n; },
  isReadable: (s) => !!s && s.readable === true, isErrored: (s) => !!(s && s.errored), isDisturbed: (s) => !!(s && s._r && s._r.dataEmitted), _isUint8Array: (v) => v instanceof Uint8Array,
  isDestroyed: (s) => !!(s && s.destroyed), isWritable: (s) => !!s && s.writable === true,
});
