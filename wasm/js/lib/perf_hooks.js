'use strict';
const EventTarget_ = require('internal/web').EventTarget;
const entries = [];
const observers = new Set();
class PerformanceEntry {
  constructor(name, entryType, startTime, duration, detail) { Object.assign(this, { name, entryType, startTime, duration }); if (detail !== undefined) this.detail = detail; }
  toJSON() { return { ...this }; }
}
class PerformanceMark extends PerformanceEntry { constructor(name, o = {}) { super(name, 'mark', o.startTime ?? performance.now(), 0, o.detail ?? null); } }
class PerformanceMeasure extends PerformanceEntry {}
function add(e) {
  entries.push(e);
  for (const o of observers) if (o.types.includes(e.entryType)) o.queue(e);
  return e;
}
class Performance extends EventTarget_ {
  now() { return (host.hr() - internal.timeOrigin()[1]) / 1e6; }
  get timeOrigin() { return internal.timeOrigin()[0]; }
  mark(name, o) { return add(new PerformanceMark(`${name}`, o)); }
  measure(name, a, b) {
    const at = (m, d) => {
      if (m === undefined) return d;
      if (typeof m === 'number') return m;
      const e = entries.findLast((x) => x.entryType === 'mark' && x.name === m);
      if (!e) throw new DOMException(`The "${m}" performance mark has not been set`, 'SyntaxError');
      return e.startTime;
    };
    let detail = null;
    if (a !== null && typeof a === 'object') ({ start: a, end: b, detail = null } = a);
    const start = at(a, 0), end = at(b, this.now());
    return add(new PerformanceMeasure(`${name}`, 'measure', start, end - start, detail));
  }
  getEntries() { return entries.slice(); }
  getEntriesByName(n, t) { return entries.filter((e) => e.name === n && (t === undefined || e.entryType === t)); }
  getEntriesByType(t) { return entries.filter((e) => e.entryType === t); }
  clearMarks(n) { for (let i = entries.length - 1; i >= 0; i--) if (entries[i].entryType === 'mark' && (n === undefined || entries[i].name === n)) entries.splice(i, 1); }
  clearMeasures(n) { for (let i = entries.length - 1; i >= 0; i--) if (entries[i].entryType === 'measure' && (n === undefined || entries[i].name === n)) entries.splice(i, 1); }
  timerify(f) { return f; }
  eventLoopUtilization() { return { idle: 0, active: 0, utilization: 0 }; }
  toJSON() { return { nodeTiming: {}, timeOrigin: this.timeOrigin, eventLoopUtilization: this.eventLoopUtilization() }; }
  get [Symbol.toStringTag]() { return 'Performance'; }
}
const performance = new Performance();
class PerformanceObserver {
  #f; #list = [];
  constructor(f) { this.#f = f; this.types = []; }
  observe(o) { this.types = o.entryTypes || [o.type]; observers.add(this); }
  disconnect() { observers.delete(this); }
  takeRecords() { return this.#list.splice(0); }
  queue(e) {
    this.#list.push(e);
    if (this.#list.length === 1) setImmediate(() => { const l = this.#list.splice(0); this.#f({ getEntries: () => l, getEntriesByName: (n) => l.filter((x) => x.name === n), getEntriesByType: (t) => l.filter((x) => x.entryType === t) }, this); });
  }
}
module.exports = { performance, Performance, PerformanceEntry, PerformanceMark, PerformanceMeasure, PerformanceObserver, constants: {},
  monitorEventLoopDelay: () => ({ enable() {}, disable() {}, min: 0, max: 0, mean: 0, stddev: 0, percentile: () => 0 }), createHistogram: () => ({ record() {}, min: 0, max: 0, mean: 0 }) };
