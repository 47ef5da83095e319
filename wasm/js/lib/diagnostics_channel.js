'use strict';
const channels = new Map();
class Channel {
  #list = [];
  constructor(name) { this.name = name; }
  get hasSubscribers() { return this.#list.length > 0; }
  subscribe(f) { this.#list.push(f); }
  unsubscribe(f) { const i = this.#list.indexOf(f); if (i >= 0) this.#list.splice(i, 1); return i >= 0; }
  publish(m) { for (const f of this.#list.slice()) try { f(m, this.name); } catch (e) { process.nextTick(() => { throw e; }); } }
  runStores(d, f, self, ...a) { this.publish(d); return Reflect.apply(f, self, a); }
  bindStore() {}
}
const channel = (n) => channels.get(n) || (channels.set(n, new Channel(n)), channels.get(n));
module.exports = { Channel, channel, hasSubscribers: (n) => channels.has(n) && channel(n).hasSubscribers, subscribe: (n, f) => channel(n).subscribe(f), unsubscribe: (n, f) => channel(n).unsubscribe(f),
  tracingChannel: (n) => { const o = {}; for (const k of ['start', 'end', 'asyncStart', 'asyncEnd', 'error']) o[k] = channel(`tracing:${n}:${k}`); o.traceSync = (f, c, self, ...a) => Reflect.apply(f, self, a); o.tracePromise = o.traceSync; return o; } };
