'use strict';
const loop = require('internal/loop');
const { argType } = require('internal/errors');

let ids = 1;
const known = new Map(); // by number, for those who kept that
class Timeout {
  constructor(callback, ms, args, repeat) {
    ms = +ms;
    if (!(ms >= 1 && ms <= 2147483647)) ms = 1;
    this._idleTimeout = ms;
    this._onTimeout = callback;
    this._timerArgs = args;
    this._repeat = repeat ? ms : null;
    this._destroyed = false;
    for (const k of ['at', 'seq', 'index', 'id', 'alive']) hide(this, k, undefined);
    loop.addTimer(this, Math.floor(ms));
  }
  fire() {
    const f = this._onTimeout;
    if (this._repeat) loop.addTimer(this, this._repeat);
    else this._destroyed = true;
    f.apply(this, this._timerArgs || []);
  }
  ref() { this.alive = true; return this; }
  unref() { this.alive = false; return this; }
  hasRef() { return this.alive !== false; }
  refresh() { loop.addTimer(this, this._idleTimeout); this._destroyed = false; return this; }
  close() { clearTimeout(this); return this; }
  [Symbol.toPrimitive]() {
    if (!this.id) known.set(this.id = ids++, this);
    return this.id;
  }
  [Symbol.dispose || Symbol.for('nodejs.dispose')]() { clearTimeout(this); }
}
function hide(o, k, v) { Object.defineProperty(o, k, { value: v, writable: true, configurable: true, enumerable: false }); }
class Immediate {
  constructor(callback, args) {
    this._onImmediate = callback;
    this._argv = args;
    hide(this, 'cleared', false);
    hide(this, 'alive', true);
    loop.addImmediate(this);
  }
  fire() { this.cleared = true; this._onImmediate.apply(this, this._argv || []); }
  ref() { this.alive = true; return this; }
  unref() { this.alive = false; return this; }
  hasRef() { return this.alive !== false; }
}

function check(f) { if (typeof f !== 'function') throw argType('callback', 'function', f); }
function setTimeout(callback, ms, ...args) { check(callback); return new Timeout(callback, ms, args, false); }
function setInterval(callback, ms, ...args) { check(callback); return new Timeout(callback, ms, args, true); }
function setImmediate(callback, ...args) { check(callback); return new Immediate(callback, args); }
function clearTimeout(t) {
  if (typeof t === 'number' || typeof t === 'string') t = known.get(+t);
  if (!(t instanceof Timeout)) return;
  if (t.id) known.delete(t.id);
  t._destroyed = true;
  t._repeat = null;
  loop.removeTimer(t);
}
function clearImmediate(t) { if (t instanceof Immediate) t.cleared = true; }

module.exports = { setTimeout, clearTimeout, setInterval, clearInterval: clearTimeout, setImmediate, clearImmediate, Timeout, Immediate };

// util.promisify(setTimeout) and timers/promises.
const kCustom = Symbol.for('nodejs.util.promisify.custom');
function aborted(signal, reject, stop) {
  if (!signal) return () => {};
  const f = () => { stop(); reject(new (require('internal/errors').AbortError)(undefined, { cause: signal.reason })); };
  if (signal.aborted) { f(); return () => {}; }
  signal.addEventListener('abort', f, { once: true });
  return () => signal.removeEventListener('abort', f);
}
const promises = {
  setTimeout: (ms, value, options) => new Promise((resolve, reject) => {
    const t = setTimeout(() => { done(); resolve(value); }, ms);
    if (options && options.ref === false) t.unref();
    const done = aborted(options && options.signal, reject, () => clearTimeout(t));
  }),
  setImmediate: (value, options) => new Promise((resolve, reject) => {
    const t = setImmediate(() => { done(); resolve(value); });
    const done = aborted(options && options.signal, reject, () => clearImmediate(t));
  }),
  async* setInterval(ms, value, options) {
    for (;;) {
      await promises.setTimeout(ms, undefined, options);
      yield value;
    }
  },
};
promises.scheduler = { wait: (ms, o) => promises.setTimeout(ms, undefined, o), yield: () => promises.setImmediate() };
Object.defineProperty(setTimeout, kCustom, { enumerable: true, value: promises.setTimeout });
Object.defineProperty(setImmediate, kCustom, { enumerable: true, value: promises.setImmediate });
module.exports.promises = promises;
