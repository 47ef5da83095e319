'use strict';
const ins = require('internal/inspect');
const { argType, coded, fn } = require('internal/errors');
const { TextEncoder, TextDecoder } = require('internal/text');
const types = require('util/types');
const kCustom = Symbol.for('nodejs.util.promisify.custom');
const kArgs = Symbol.for('nodejs.util.promisify.args');

function promisify(original) {
  fn(original, 'original');
  if (original[kCustom]) {
    const f = original[kCustom];
    return Object.defineProperty(f, kCustom, { value: f, configurable: true });
  }
  const names = original[kArgs];
  function f(...args) {
    return new Promise((resolve, reject) => {
      Reflect.apply(original, this, [...args, (err, ...values) => {
        if (err) return reject(err);
        if (names !== undefined && values.length > 1) {
          const o = {};
          names.forEach((n, i) => { o[n] = values[i]; });
          resolve(o);
        } else resolve(values[0]);
      }]);
    });
  }
  Object.setPrototypeOf(f, Object.getPrototypeOf(original));
  Object.defineProperty(f, kCustom, { value: f, configurable: true });
  return Object.defineProperties(f, Object.getOwnPropertyDescriptors(original));
}
promisify.custom = kCustom;
function callbackify(original) {
  fn(original, 'original');
  return function(...args) {
    const cb = args.pop();
    fn(cb, 'last argument');
    Reflect.apply(original, this, args).then((v) => process.nextTick(cb, null, v), (e) => {
      if (!e) {
        const r = coded(Error, 'ERR_FALSY_VALUE_REJECTION', 'Promise was rejected with falsy value');
        r.reason = e;
        e = r;
      }
      process.nextTick(cb, e);
    });
  };
}
function inherits(ctor, superCtor) {
  fn(ctor, 'ctor');
  fn(superCtor, 'superCtor');
  Object.defineProperty(ctor, 'super_', { value: superCtor, writable: true, configurable: true });
  Object.setPrototypeOf(ctor.prototype, superCtor.prototype);
}
const told = new Set();
function deprecate(f, message, code) {
  let warned = false;
  function deprecated(...args) {
    if (!warned) {
      warned = true;
      if (!code || !told.has(code)) {
        if (code) told.add(code);
        process.emitWarning(message, 'DeprecationWarning', code);
      }
    }
    return new.target ? Reflect.construct(f, args, new.target) : Reflect.apply(f, this, args);
  }
  Object.setPrototypeOf(deprecated, f);
  if (f.prototype) deprecated.prototype = f.prototype;
  return deprecated;
}
function debuglog(set) {
  let on;
  const log = (...args) => {
    on ??= new RegExp(`^(${(process.env.NODE_DEBUG || '').split(',').map((s) => s.trim().replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace('\\*', '.*')).filter(Boolean).join('|') || '(?!)'})$`, 'i').test(set);
    if (on) internal.stderr(`${set.toUpperCase()} ${process.pid}: ${ins.format(...args)}\n`);
  };
  Object.defineProperty(log, 'enabled', { get: () => new RegExp(`(^|,)${set}(,|$)`, 'i').test(process.env.NODE_DEBUG || '') });
  return log;
}
function styleText(format, text, o = {}) {
  const stream = o.stream || process.stdout;
  const plain = o.validateStream !== false && !(process.env.FORCE_COLOR !== undefined ? process.env.FORCE_COLOR !== '0' : stream.isTTY && process.env.NO_COLOR === undefined);
  let left = '', right = '';
  for (const k of [].concat(format)) {
    const c = ins.inspect.colors[k];
    if (!c) throw require('internal/errors').argValue('format', k, `must be one of: ${Object.keys(ins.inspect.colors).map((s) => `'${s}'`).join(', ')}`);
    left += `\u001b[${c[0]}m`;
    right = `\u001b[${c[1]}m` + right;
  }
  return plain ? text : left + text + right;
}
function parseEnv(text) {
  const out = {};
  const line = /^\s*(?:export\s+)?([\w.-]+)\s*=\s*("(?:[^"])*"|'(?:[^'])*'|`(?:[^`])*`|[^#\r\n]*)?.*$/gm;
  for (let m; (m = line.exec(text));) {
    let v = (m[2] || '').trim();
    const q = v[0];
    if ((q === '"' || q === "'" || q === '`') && v.length > 1 && v.endsWith(q)) {
      v = v.slice(1, -1);
      if (q === '"') v = v.replace(/\\n/g, '\n');
    }
    out[m[1]] = v;
  }
  return out;
}
const legacy = {
  isArray: Array.isArray, isBoolean: (v) => typeof v === 'boolean', isNull: (v) => v === null, isNullOrUndefined: (v) => v == null, isNumber: (v) => typeof v === 'number',
  isString: (v) => typeof v === 'string', isSymbol: (v) => typeof v === 'symbol', isUndefined: (v) => v === undefined, isRegExp: types.isRegExp,
  isObject: (v) => v !== null && typeof v === 'object', isDate: types.isDate, isError: (v) => v instanceof Error, isFunction: (v) => typeof v === 'function',
  isPrimitive: (v) => v === null || typeof v !== 'object' && typeof v !== 'function', isBuffer: (b) => Buffer.isBuffer(b),
  log: (...a) => console.log(new Date().toTimeString().slice(0, 8), ...a), _extend: (a, b) => Object.assign(a, b),
};
module.exports = {
  inspect: ins.inspect, format: ins.format, formatWithOptions: ins.formatWithOptions, promisify, callbackify, inherits, deprecate, debuglog, debug: debuglog, styleText, parseEnv,
  types, TextEncoder, TextDecoder, stripVTControlCharacters: ins.strip, ...legacy,
  toUSVString: (s) => `${s}`.toWellFormed(),
  isDeepStrictEqual: (a, b) => require('internal/equal')(a, b, true),
  getSystemErrorName: (n) => (require('internal/errors').table[-n] || [`Unknown system error ${n}`])[0],
  getSystemErrorMap: () => new Map(Object.entries(require('internal/errors').table).map(([n, v]) => [-n, v])),
  parseArgs: (o) => require('internal/parseargs')(o),
  aborted: (signal) => new Promise((r) => signal.aborted ? r() : signal.addEventListener('abort', () => r(), { once: true })),
  getCallSites: () => [], MIMEType: class MIMEType {}, transferableAbortController: () => new AbortController(),
};
