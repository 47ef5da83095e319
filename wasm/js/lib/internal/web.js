// Of the web: events, abort signals, blobs, streams.
'use strict';
const { argType } = require('internal/errors');
const { inspect, custom } = require('internal/inspect');
const out = module.exports;

if (typeof DOMException === 'undefined') {
  out.DOMException = class DOMException extends Error {
    constructor(message = '', name = 'Error') {
      super(message);
      Object.defineProperty(this, 'name', { value: typeof name === 'object' ? name.name || 'Error' : name, configurable: true });
      this.code = { AbortError: 20, InvalidCharacterError: 5, DataCloneError: 25, TimeoutError: 23 }[this.name] || 0;
    }
  };
}
const DOM = out.DOMException || DOMException;
class Event {
  #type; #o; #stop = false;
  constructor(type, o = {}) {
    this.#type = `${type}`;
    this.#o = o || {};
    this.target = null;
    this.currentTarget = null;
    this.defaultPrevented = false;
    Object.defineProperty(this, 'timeStamp', { value: performance_now(), enumerable: false });
    for (const k of ['target', 'currentTarget', 'defaultPrevented']) Object.defineProperty(this, k, { enumerable: false });
  }
  get type() { return this.#type; }
  get bubbles() { return !!this.#o.bubbles; }
  get cancelable() { return !!this.#o.cancelable; }
  get composed() { return !!this.#o.composed; }
  get srcElement() { return this.target; }
  get isTrusted() { return false; }
  get stopped() { return this.#stop; }
  preventDefault() { if (this.cancelable) this.defaultPrevented = true; }
  stopPropagation() {}
  stopImmediatePropagation() { this.#stop = true; }
  composedPath() { return this.target ? [this.target] : []; }
}
const performance_now = () => host.hr() / 1e6;
class CustomEvent extends Event {
  #detail;
  constructor(type, o) { super(type, o); this.#detail = o && o.detail !== undefined ? o.detail : null; }
  get detail() { return this.#detail; }
}
class EventTarget {
  #listeners = new Map();
  addEventListener(type, f, o) {
    if (!f) return;
    o = typeof o === 'boolean' ? { capture: o } : o || {};
    if (o.signal && o.signal.aborted) return;
    const list = this.#listeners.get(type) || [];
    if (list.some((l) => l.f === f && !!l.capture === !!o.capture)) return;
    list.push({ f, once: o.once, capture: o.capture });
    this.#listeners.set(type, list);
    if (o.signal) o.signal.addEventListener('abort', () => this.removeEventListener(type, f, o), { once: true });
  }
  removeEventListener(type, f) {
    const list = this.#listeners.get(type);
    const i = list ? list.findIndex((l) => l.f === f) : -1;
    if (i >= 0) list.splice(i, 1);
  }
  dispatchEvent(e) {
    if (!(e instanceof Event)) throw argType('event', 'Event', e);
    e.target = e.currentTarget = this;
    const h = this[`on${e.type}`];
    if (typeof h === 'function') report(() => h.call(this, e));
    for (const l of (this.#listeners.get(e.type) || []).slice()) {
      if (l.once) this.removeEventListener(e.type, l.f);
      report(() => typeof l.f === 'function' ? l.f.call(this, e) : l.f.handleEvent(e));
      if (e.stopped) break;
    }
    return !e.defaultPrevented;
  }
  get [Symbol.toStringTag]() { return 'EventTarget'; }
  [custom](depth, o) { return `${this.constructor.name} {}`; }
}
function report(f) { try { f(); } catch (e) { process.nextTick(() => { throw e; }); } }

let inside = false;
class AbortSignal extends EventTarget {
  #aborted = false; #reason = undefined;
  constructor() {
    super();
    if (!inside) throw new TypeError('Illegal constructor');
    Object.defineProperty(this, 'onabort', { value: null, writable: true, enumerable: false });
  }
  get aborted() { return this.#aborted; }
  get reason() { return this.#reason; }
  throwIfAborted() { if (this.#aborted) throw this.#reason; }
  get [Symbol.toStringTag]() { return 'AbortSignal'; }
  [custom](depth, o) { return `AbortSignal { aborted: ${this.aborted} }`; }
  static fire(s, reason) {
    if (s.#aborted) return;
    s.#aborted = true;
    s.#reason = reason === undefined ? new DOM('This operation was aborted', 'AbortError') : reason;
    s.dispatchEvent(new Event('abort'));
  }
  static make() { inside = true; try { return new AbortSignal(); } finally { inside = false; } }
  static abort(reason) { const s = AbortSignal.make(); fire(s, reason); return s; }
  static timeout(ms) {
    const s = AbortSignal.make();
    setTimeout(() => fire(s, new DOM('The operation was aborted due to timeout', 'TimeoutError')), ms).unref();
    return s;
  }
  static any(list) {
    const s = AbortSignal.make();
    for (const x of list) {
      if (x.aborted) { fire(s, x.reason); break; }
      x.addEventListener('abort', () => fire(s, x.reason), { once: true });
    }
    return s;
  }
}
const { fire, make } = AbortSignal;
delete AbortSignal.fire;
AbortSignal.make = make;
Object.defineProperty(AbortSignal, 'make', { enumerable: false });
class AbortController {
  #signal = AbortSignal.make();
  get signal() { return this.#signal; }
  abort(reason) { fire(this.#signal, reason); }
  get [Symbol.toStringTag]() { return 'AbortController'; }
  [custom](depth, o) { return `AbortController { signal: ${inspect(this.signal)} }`; }
}

const bytesOf = (p) => p instanceof Blob ? p.raw() : p instanceof ArrayBuffer ? new Uint8Array(p) : ArrayBuffer.isView(p) ? new Uint8Array(p.buffer, p.byteOffset, p.byteLength) : host.encode(`${p}`);
class Blob {
  #b; #type;
  constructor(parts = [], o = {}) {
    this.#b = Buffer.concat(Array.from(parts, bytesOf));
    this.#type = o && o.type ? `${o.type}`.toLowerCase() : '';
  }
  raw() { return this.#b; }
  get size() { return this.#b.length; }
  get type() { return this.#type; }
  async text() { return host.decode(this.#b, 0, this.#b.length, false); }
  async arrayBuffer() { return this.#b.buffer.slice(this.#b.byteOffset, this.#b.byteOffset + this.#b.byteLength); }
  async bytes() { return new Uint8Array(await this.arrayBuffer()); }
  slice(a, b, type) { return new Blob([this.#b.subarray(a, b)], { type }); }
  stream() { const b = this.#b; return new ReadableStream({ start(c) { c.enqueue(new Uint8Array(b)); c.close(); } }); }
  get [Symbol.toStringTag]() { return 'Blob'; }
  [custom]() { return `Blob { size: ${this.size}, type: '${this.type}' }`; }
}
class File extends Blob {
  #name; #time;
  constructor(parts, name, o = {}) { super(parts, o); this.#name = `${name}`; this.#time = o.lastModified ?? Date.now(); }
  get name() { return this.#name; }
  get lastModified() { return this.#time; }
  get [Symbol.toStringTag]() { return 'File'; }
}

// Streams of the web, without byte streams.
class ReadableStream {
  #queue = []; #waiting = []; #state = 'readable'; #error; #source; #pulling = false; #locked = false; #high;
  constructor(source = {}, strategy = {}) {
    this.#source = source;
    this.#high = strategy.highWaterMark ?? 1;
    const c = this.controller = {
      enqueue: (v) => {
        if (this.#state !== 'readable' || this.closing) throw new TypeError('Invalid state: Controller is already closed');
        const w = this.#waiting.shift();
        if (w) w.resolve({ value: v, done: false }); else this.#queue.push(v);
      },
      close: () => {
        this.closing = true;
        if (!this.#queue.length) this.#close();
      },
      error: (e) => {
        this.#state = 'errored';
        this.#error = e;
        this.#queue = [];
        for (const w of this.#waiting.splice(0)) w.reject(e);
      },
      get desiredSize() { return 1; },
    };
    for (const k of ['controller', 'closing']) Object.defineProperty(this, k, { enumerable: false, writable: true, value: this[k] });
    this.started = Promise.resolve(source.start && source.start(c)).then(() => this.#pull(), (e) => c.error(e));
    Object.defineProperty(this, 'started', { enumerable: false });
  }
  #close() {
    this.#state = 'closed';
    for (const w of this.#waiting.splice(0)) w.resolve({ value: undefined, done: true });
  }
  #pull() {
    if (!this.#source.pull || this.#pulling || this.#state !== 'readable' || this.closing || this.#queue.length >= this.#high && !this.#waiting.length) return;
    this.#pulling = true;
    Promise.resolve(this.#source.pull(this.controller)).then(() => { this.#pulling = false; this.#pull(); }, (e) => this.controller.error(e));
  }
  read() {
    if (this.#queue.length) {
      const value = this.#queue.shift();
      if (!this.#queue.length && this.closing) this.#close(); else this.started.then(() => this.#pull());
      return Promise.resolve({ value, done: false });
    }
    if (this.#state === 'closed') return Promise.resolve({ value: undefined, done: true });
    if (this.#state === 'errored') return Promise.reject(this.#error);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.started.then(() => this.#pull());
    });
  }
  get locked() { return this.#locked; }
  getReader() {
    if (this.#locked) throw new TypeError('Invalid state: ReadableStream is locked');
    this.#locked = true;
    return { read: () => this.read(), releaseLock: () => { this.#locked = false; }, cancel: (r) => this.cancel(r), closed: Promise.resolve() };
  }
  async cancel(reason) {
    this.#queue = [];
    this.#close();
    if (this.#source.cancel) await this.#source.cancel(reason);
  }
  async* [Symbol.asyncIterator]() {
    for (;;) {
      const { value, done } = await this.read();
      if (done) return;
      yield value;
    }
  }
  values() { return this[Symbol.asyncIterator](); }
  tee() {
    const all = [[], []], it = this[Symbol.asyncIterator]();
    const side = (i) => new ReadableStream({ async pull(c) {
      if (all[i].length) return c.enqueue(all[i].shift());
      const { value, done } = await it.next();
      if (done) { c.close(); return; }
      all[1 - i].push(value);
      c.enqueue(value);
    } });
    return [side(0), side(1)];
  }
  async pipeTo(w) { const writer = w.getWriter(); for await (const c of this) await writer.write(c); await writer.close(); }
  pipeThrough(t) { this.pipeTo(t.writable).catch(() => {}); return t.readable; }
  static from(it) {
    const i = (it[Symbol.asyncIterator] || it[Symbol.iterator]).call(it);
    return new ReadableStream({ async pull(c) { const { value, done } = await i.next(); if (done) c.close(); else c.enqueue(value); } });
  }
  get [Symbol.toStringTag]() { return 'ReadableStream'; }
}
class WritableStream {
  #sink; #last;
  constructor(sink = {}) {
    this.#sink = sink;
    this.#last = Promise.resolve(sink.start && sink.start({ error() {} }));
  }
  getWriter() {
    return {
      write: (c) => (this.#last = this.#last.then(() => this.#sink.write && this.#sink.write(c, {}))), close: () => (this.#last = this.#last.then(() => this.#sink.close && this.#sink.close())),
      abort: async (r) => { if (this.#sink.abort) await this.#sink.abort(r); }, releaseLock() {}, ready: Promise.resolve(), closed: Promise.resolve(), desiredSize: 1,
    };
  }
  get [Symbol.toStringTag]() { return 'WritableStream'; }
}
class TransformStream {
  constructor(t = {}) {
    let c;
    this.readable = new ReadableStream({ start(x) { c = x; if (t.start) return t.start(x); } });
    this.writable = new WritableStream({ async write(v) { if (t.transform) await t.transform(v, c); else c.enqueue(v); }, async close() { if (t.flush) await t.flush(c); c.close(); } });
  }
  get [Symbol.toStringTag]() { return 'TransformStream'; }
}
Object.assign(out, { Event, CustomEvent, EventTarget, AbortSignal, AbortController, Blob, File, ReadableStream, WritableStream, TransformStream });
out.navigator = { hardwareConcurrency: 1, language: 'en-US', languages: ['en-US'], platform: 'linux', userAgent: 'Node.js/20' };
delete out.navigator;
class MessageChannel {
  constructor() {
    const port = () => { const p = new (require('events'))(); p.postMessage = (m) => { const v = structuredClone(m); setImmediate(() => { p.other.emit('message', v); if (p.other.onmessage) p.other.onmessage({ data: v }); }); }; p.close = () => {}; p.ref = p.unref = p.start = () => {}; return p; };
    this.port1 = port();
    this.port2 = port();
    this.port1.other = this.port2;
    this.port2.other = this.port1;
  }
}
out.MessageChannel = MessageChannel;
