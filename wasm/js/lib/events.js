'use strict';
const { argType, coded, AbortError } = require('internal/errors');
const kCapture = Symbol('kCapture');

function EventEmitter(options) { EventEmitter.init.call(this, options); }
EventEmitter.prototype._events = undefined;
EventEmitter.prototype._eventsCount = 0;
EventEmitter.prototype._maxListeners = undefined;
EventEmitter.usingDomains = false;
EventEmitter.captureRejections = false;
EventEmitter.captureRejectionSymbol = Symbol.for('nodejs.rejection');
EventEmitter.errorMonitor = Symbol('events.errorMonitor');
let defaultMaxListeners = 10;
Object.defineProperty(EventEmitter, 'defaultMaxListeners', { enumerable: true, get: () => defaultMaxListeners, set(n) { defaultMaxListeners = n; } });
EventEmitter.init = function(options) {
  if (this._events === undefined || this._events === Object.getPrototypeOf(this)._events) {
    this._events = Object.create(null);
    this._eventsCount = 0;
  }
  this._maxListeners = this._maxListeners || undefined;
  this[kCapture] = options && options.captureRejections ? true : EventEmitter.prototype[kCapture];
};
EventEmitter.prototype[kCapture] = false;
Object.defineProperty(EventEmitter.prototype, kCapture, { value: false, writable: true, enumerable: false });
const P = EventEmitter.prototype;
P.setMaxListeners = function setMaxListeners(n) { this._maxListeners = n; return this; };
P.getMaxListeners = function getMaxListeners() { return this._maxListeners === undefined ? defaultMaxListeners : this._maxListeners; };
P.emit = function emit(type, ...args) {
  const events = this._events;
  if (type === 'error') {
    if (events !== undefined && events[EventEmitter.errorMonitor] !== undefined) this.emit(EventEmitter.errorMonitor, ...args);
    if (events === undefined || events.error === undefined) {
      const er = args[0];
      if (er instanceof Error) throw er;
      let text;
      try { text = require('internal/inspect').inspect(er); } catch { text = er; }
      const e = coded(Error, 'ERR_UNHANDLED_ERROR', `Unhandled error. (${text})`);
      e.context = er;
      throw e;
    }
  }
  const handler = events && events[type];
  if (handler === undefined) return false;
  if (typeof handler === 'function') {
    const r = handler.apply(this, args);
    if (this[kCapture] && r && typeof r.then === 'function') capture(this, r);
  } else {
    for (const f of handler.slice()) {
      const r = f.apply(this, args);
      if (this[kCapture] && r && typeof r.then === 'function') capture(this, r);
    }
  }
  return true;
};
function capture(self, p) { p.then(undefined, (e) => process.nextTick(() => self.emit('error', e))); }
function checkListener(f) { if (typeof f !== 'function') throw argType('listener', 'function', f); }
function add(target, type, listener, prepend) {
  checkListener(listener);
  if (target._events === undefined) {
    target._events = Object.create(null);
    target._eventsCount = 0;
  } else if (target._events.newListener !== undefined) target.emit('newListener', type, listener.listener ?? listener);
  const events = target._events;
  const existing = events[type];
  if (existing === undefined) {
    events[type] = listener;
    ++target._eventsCount;
    return target;
  }
  if (typeof existing === 'function') events[type] = prepend ? [listener, existing] : [existing, listener];
  else if (prepend) existing.unshift(listener); else existing.push(listener);
  const list = events[type], max = target.getMaxListeners();
  if (max > 0 && list.length > max && !list.warned) {
    list.warned = true;
    const w = new Error(`Possible EventEmitter memory leak detected. ${list.length} ${String(type)} listeners added to ${require('internal/inspect').inspect(target, { depth: -1 })}. MaxListeners is ${max}. Use emitter.setMaxListeners() to increase limit`);
    w.name = 'MaxListenersExceededWarning';
    w.emitter = target;
    w.type = type;
    w.count = list.length;
    process.emitWarning(w);
  }
  return target;
}
P.addListener = function addListener(type, f) { return add(this, type, f, false); };
P.on = P.addListener;
P.prependListener = function prependListener(type, f) { return add(this, type, f, true); };
function onceWrap(target, type, listener) {
  const state = { fired: false };
  const wrapped = function(...args) {
    if (state.fired) return undefined;
    target.removeListener(type, wrapped);
    state.fired = true;
    return listener.apply(target, args);
  };
  wrapped.listener = listener;
  return wrapped;
}
P.once = function once(type, f) { checkListener(f); this.on(type, onceWrap(this, type, f)); return this; };
P.prependOnceListener = function prependOnceListener(type, f) { checkListener(f); this.prependListener(type, onceWrap(this, type, f)); return this; };
P.removeListener = function removeListener(type, listener) {
  checkListener(listener);
  const events = this._events;
  const list = events && events[type];
  if (list === undefined) return this;
  if (list === listener || list.listener === listener) {
    delete events[type];
    this._eventsCount--;
    if (events.removeListener) this.emit('removeListener', type, list.listener || listener);
  } else if (typeof list !== 'function') {
    let i = list.length - 1;
    while (i >= 0 && list[i] !== listener && list[i].listener !== listener) i--;
    if (i < 0) return this;
    list.splice(i, 1);
    if (list.length === 1) events[type] = list[0];
    if (events.removeListener !== undefined) this.emit('removeListener', type, listener);
  }
  return this;
};
P.off = P.removeListener;
P.removeAllListeners = function removeAllListeners(type) {
  const events = this._events;
  if (events === undefined) return this;
  if (arguments.length === 0) {
    if (events.removeListener !== undefined) {
      for (const k of Reflect.ownKeys(events)) if (k !== 'removeListener') this.removeAllListeners(k);
      this.removeAllListeners('removeListener');
    }
    this._events = Object.create(null);
    this._eventsCount = 0;
    return this;
  }
  const list = events[type];
  if (list === undefined) return this;
  if (events.removeListener !== undefined) for (const f of [].concat(list).reverse()) this.removeListener(type, f);
  else {
    delete events[type];
    this._eventsCount--;
  }
  return this;
};
const listOf = (e, type) => { const l = e._events && e._events[type]; return l === undefined ? [] : [].concat(l); };
P.listeners = function listeners(type) { return listOf(this, type).map((f) => f.listener || f); };
P.rawListeners = function rawListeners(type) { return listOf(this, type); };
P.listenerCount = function listenerCount(type, f) { return f ? this.listeners(type).filter((g) => g === f).length : listOf(this, type).length; };
P.eventNames = function eventNames() { return this._events && this._eventsCount > 0 ? Reflect.ownKeys(this._events) : []; };
EventEmitter.listenerCount = (e, type) => e.listenerCount(type);
EventEmitter.EventEmitter = EventEmitter;

EventEmitter.once = (emitter, name, options) => new Promise((resolve, reject) => {
  const signal = options && options.signal;
  if (signal && signal.aborted) return reject(new AbortError(undefined, { cause: signal.reason }));
  if (typeof emitter.addEventListener === 'function' && !emitter.on) return emitter.addEventListener(name, (...args) => resolve(args), { once: true });
  const onError = (e) => { emitter.removeListener(name, on); reject(e); };
  const on = (...args) => { emitter.removeListener('error', onError); resolve(args); };
  emitter.once(name, on);
  if (name !== 'error') emitter.once('error', onError);
  if (signal) signal.addEventListener('abort', () => {
    emitter.removeListener(name, on);
    emitter.removeListener('error', onError);
    reject(new AbortError(undefined, { cause: signal.reason }));
  }, { once: true });
});
EventEmitter.on = (emitter, name, options = {}) => {
  const values = [], waiting = [];
  let error = null, finished = false;
  const on = (...args) => { const w = waiting.shift(); if (w) w.resolve({ value: args, done: false }); else values.push(args); };
  const fail = (e) => { const w = waiting.shift(); if (w) w.reject(e); else error = e; it.return(); };
  const it = {
    next() {
      if (values.length) return Promise.resolve({ value: values.shift(), done: false });
      if (error) { const p = Promise.reject(error); error = null; return p; }
      if (finished) return Promise.resolve({ value: undefined, done: true });
      return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
    },
    return() {
      emitter.removeListener(name, on);
      emitter.removeListener('error', fail);
      finished = true;
      for (const w of waiting.splice(0)) w.resolve({ value: undefined, done: true });
      return Promise.resolve({ value: undefined, done: true });
    },
    throw(e) { fail(e); },
    [Symbol.asyncIterator]() { return this; },
  };
  emitter.on(name, on);
  if (name !== 'error') emitter.on('error', fail);
  for (const end of options.close || []) emitter.on(end, () => it.return());
  if (options.signal) options.signal.addEventListener('abort', () => fail(new AbortError(undefined, { cause: options.signal.reason })), { once: true });
  return it;
};
EventEmitter.getEventListeners = (e, type) => e.listeners ? e.listeners(type) : [];
EventEmitter.setMaxListeners = (n = defaultMaxListeners, ...targets) => {
  if (targets.length === 0) defaultMaxListeners = n;
  for (const t of targets) if (t.setMaxListeners) t.setMaxListeners(n);
};
EventEmitter.getMaxListeners = (e) => e.getMaxListeners ? e.getMaxListeners() : 0;
EventEmitter.addAbortListener = (signal, f) => {
  signal.addEventListener('abort', f, { once: true });
  return { [Symbol.dispose || Symbol.for('nodejs.dispose')]() { signal.removeEventListener('abort', f); } };
};
class EventEmitterAsyncResource extends EventEmitter {}
EventEmitter.EventEmitterAsyncResource = EventEmitterAsyncResource;
module.exports = EventEmitter;
