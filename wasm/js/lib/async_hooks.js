// AsyncLocalStorage follows promises, ticks and timers: each remembers the stores of when it was made.
'use strict';
let current = new Map();
const wrap = (f) => {
  const then = current;
  if (then.size === 0) return f;
  return function(...args) {
    const before = current;
    current = then;
    try { return Reflect.apply(f, this, args); } finally { current = before; }
  };
};
let hooked = false;
function hook() {
  if (hooked) return;
  hooked = true;
  const { then } = Promise.prototype;
  Object.defineProperty(Promise.prototype, 'then', { configurable: true, writable: true, value: function(a, b) { return Reflect.apply(then, this, [typeof a === 'function' ? wrap(a) : a, typeof b === 'function' ? wrap(b) : b]); } });
  for (const n of ['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask']) {
    const f = globalThis[n];
    const g = { [n](cb, ...a) { return f(typeof cb === 'function' ? wrap(cb) : cb, ...a); } }[n];
    for (const s of Object.getOwnPropertySymbols(f)) Object.defineProperty(g, s, Object.getOwnPropertyDescriptor(f, s));
    globalThis[n] = g;
  }
  const tick = process.nextTick;
  process.nextTick = (cb, ...a) => tick(typeof cb === 'function' ? wrap(cb) : cb, ...a);
}
class AsyncLocalStorage {
  #off = false;
  constructor(o) { this.o = o; Object.defineProperty(this, 'o', { enumerable: false }); }
  run(store, f, ...args) {
    hook();
    const before = current;
    current = new Map(before).set(this, store);
    try {
      const r = f(...args);
      return r;
    } finally { current = before; }
  }
  exit(f, ...args) {
    const before = current;
    current = new Map(before);
    current.delete(this);
    try { return f(...args); } finally { current = before; }
  }
  getStore() { return current.get(this); }
  enterWith(store) { hook(); current = new Map(current).set(this, store); }
  disable() { current = new Map(current); current.delete(this); }
  static bind(f) { return wrap(f); }
  static snapshot() { const then = current; return (f, ...a) => { const before = current; current = then; try { return f(...a); } finally { current = before; } }; }
}
class AsyncResource {
  #then = current;
  constructor(type) { this.type = type; }
  runInAsyncScope(f, self, ...args) { const before = current; current = this.#then; try { return Reflect.apply(f, self, args); } finally { current = before; } }
  emitDestroy() { return this; }
  asyncId() { return 1; }
  triggerAsyncId() { return 0; }
  bind(f) { return (...a) => this.runInAsyncScope(f, undefined, ...a); }
  static bind(f) { return wrap(f); }
}
module.exports = { AsyncLocalStorage, AsyncResource, createHook: () => ({ enable() { return this; }, disable() { return this; } }), executionAsyncId: () => 1, triggerAsyncId: () => 0, executionAsyncResource: () => ({}), asyncWrapProviders: {} };
