'use strict';
const { formatWithOptions, inspect } = require('internal/inspect');

class Console {
  #indent = '';
  #counts = new Map();
  #times = new Map();
  #out;
  #err;
  #options;
  constructor(out, err, options) {
    if (out && typeof out.write !== 'function') ({ stdout: out, stderr: err, ...options } = out);
    this.#out = out;
    this.#err = err || out;
    this.#options = options || {};
    for (const k of Object.getOwnPropertyNames(Console.prototype)) if (k !== 'constructor' && typeof this[k] === 'function') this[k] = this[k].bind(this);
    this.debug = this.info = this.log;
    this.error = this.warn;
    this.groupCollapsed = this.group;
    this.dirxml = this.log;
  }
  #colors(s) {
    const mode = this.#options.colorMode;
    if (typeof mode === 'boolean') return { colors: mode };
    const o = this.#options.inspectOptions || {};
    if (!(s ? s.isTTY : internal.fdColors(this === internal.console && s === undefined ? 1 : 2))) return o;
    return { colors: true, ...o };
  }
  #write(err, args) {
    const fixed = this.#out === undefined;
    const fd = err ? 2 : 1;
    const colors = fixed ? (internal.fdColors(fd) ? { colors: true } : {}) : this.#colors(err ? this.#err : this.#out);
    let s = formatWithOptions(colors, ...args);
    if (this.#indent) s = this.#indent + s.replaceAll('\n', `\n${this.#indent}`);
    s += '\n';
    // Straight to the descriptor, unless somebody has put something else into the stream's place.
    if (fixed) internal.writeStd(fd, s);
    else (err ? this.#err : this.#out).write(s);
  }
  log(...args) { this.#write(false, args); }
  warn(...args) { this.#write(true, args); }
  dir(o, options) { this.#write(false, [inspect(o, { customInspect: false, ...options })]); }
  assert(ok, ...args) {
    if (ok) return;
    if (typeof args[0] === 'string') args[0] = `Assertion failed: ${args[0]}`;
    else args.unshift('Assertion failed');
    this.#write(true, args);
  }
  trace(...args) {
    const e = { name: 'Trace', message: args.length ? formatWithOptions({}, ...args) : '' };
    const err = new Error(e.message);
    err.name = 'Trace';
    Error.captureStackTrace(err, this.trace);
    this.#write(true, [err.stack]);
  }
  count(label = 'default') {
    label = `${label}`;
    const n = (this.#counts.get(label) || 0) + 1;
    this.#counts.set(label, n);
    this.#write(false, [`${label}: ${n}`]);
  }
  countReset(label = 'default') { this.#counts.delete(`${label}`); }
  group(...args) {
    if (args.length) this.#write(false, args);
    this.#indent += '  ';
  }
  groupEnd() { this.#indent = this.#indent.slice(0, -2); }
  time(label = 'default') {
    if (this.#times.has(`${label}`)) process.emitWarning(`Label '${label}' already exists for console.time()`);
    else this.#times.set(`${label}`, host.hr());
  }
  #elapsed(label, args, end) {
    label = `${label}`;
    const t = this.#times.get(label);
    if (t === undefined) {
      process.emitWarning(`No such label '${label}' for console.time${end ? 'End' : 'Log'}()`);
      return;
    }
    const ms = (host.hr() - t) / 1e6;
    const s = ms >= 3600000 ? `${Math.floor(ms / 3600000)}:${String(Math.floor(ms / 60000) % 60).padStart(2, '0')}:${String(Math.floor(ms / 1000) % 60).padStart(2, '0')} (h:mm:ss)` :
      ms >= 60000 ? `${Math.floor(ms / 60000)}:${(ms / 1000 % 60).toFixed(3).padStart(6, '0')} (m:ss.mmm)` : ms >= 1000 ? `${(ms / 1000).toFixed(3)}s` : `${Number(ms.toFixed(3))}ms`;
    this.#write(false, [`${label}: ${s}`, ...args]);
    if (end) this.#times.delete(label);
  }
  timeEnd(label = 'default') { this.#elapsed(label, [], true); }
  timeLog(label = 'default', ...args) { this.#elapsed(label, args, false); }
  table(data, columns) {
    if (data === null || typeof data !== 'object') return this.log(data);
    const show = (v) => inspect(v, { maxArrayLength: 3, breakLength: Infinity, depth: v !== null && typeof v === 'object' && !Array.isArray(v) && Object.keys(v).length > 2 ? -1 : 0 });
    const isMap = data instanceof Map, isSet = data instanceof Set;
    const indexName = isMap || isSet ? '(iteration index)' : '(index)';
    const rows = isMap ? Array.from(data, ([k, v], i) => [i, v, k]) : isSet ? Array.from(data, (v, i) => [i, v]) : Object.keys(data).map((k) => [k, data[k]]);
    const keys = [], cells = rows.map(() => ({}));
    const values = [];
    let hasValues = false;
    rows.forEach(([, v], i) => {
      const prim = v === null || typeof v !== 'object' && typeof v !== 'function';
      if (prim || isMap && false) {
        hasValues = true;
        values[i] = show(v);
        return;
      }
      for (const k of columns || Object.keys(v)) {
        if (!keys.includes(k)) keys.push(k);
        if (Object.prototype.hasOwnProperty.call(v, k)) cells[i][k] = show(v[k]);
      }
    });
    if (columns) for (const k of columns) if (!keys.includes(k)) keys.push(k);
    const head = [indexName, ...(isMap ? ['Key'] : []), ...keys, ...(hasValues ? ['Values'] : [])];
    const body = rows.map(([k, , key], i) => [String(k), ...(isMap ? [show(key)] : []), ...keys.map((c) => cells[i][c] ?? ''), ...(hasValues ? [values[i] ?? ''] : [])]);
    const { width } = require('internal/inspect');
    const w = head.map((h, c) => Math.max(width(h), ...body.map((r) => width(r[c]))) + 2);
    const line = (cells) => cells.map((s, c) => {
      return ` ${s}${' '.repeat(w[c] - width(s) - 1)}`;
    });
    const rule = w.map((n) => '─'.repeat(n));
    let s = `┌${rule.join('┬')}┐\n│${line(head).join('│')}│\n├${rule.join('┼')}┤\n`;
    for (const r of body) s += `│${line(r).join('│')}│\n`;
    this.log(`${s}└${rule.join('┴')}┘`);
  }
  profile() {}
  profileEnd() {}
  timeStamp() {}
}

// Whether a descriptor is a terminal that wants colours; asked once in a run.
let tty = [];
internal.atStart.push(() => { tty = []; });
internal.fdColors = (fd) => {
  if (tty[fd] === undefined) {
    const e = process.env;
    tty[fd] = e.FORCE_COLOR !== undefined ? e.FORCE_COLOR !== '0' : host.isatty(fd) && e.NO_COLOR === undefined && e.NODE_DISABLE_COLORS === undefined && e.TERM !== 'dumb';
  }
  return tty[fd];
};
internal.writeStd = (fd, s) => {
  const stream = internal.stdStreams && internal.stdStreams[fd];
  if (stream) {
    stream.write(s);
    return;
  }
  internal.writeAll(fd, host.encode(s));
};
const c = internal.console = new Console();
c.Console = Console;
c.context = () => c;
module.exports = c;
