// structuredClone.
'use strict';
const { brand, typedNames, isError } = require('internal/inspect');
module.exports = function structuredClone(value) {
  if (arguments.length === 0) throw require('internal/errors').coded(TypeError, 'ERR_MISSING_ARGS', 'The "value" argument must be specified');
  const seen = new Map();
  const refuse = (v) => { throw new DOMException(`${typeof v === 'symbol' ? v.toString() : typeof v === 'function' ? String(v) : '#<Object>'} could not be cloned.`, 'DataCloneError'); };
  const copy = (v) => {
    if (typeof v === 'symbol' || typeof v === 'function') refuse(v);
    if (v === null || typeof v !== 'object') return v;
    if (seen.has(v)) return seen.get(v);
    const note = (c) => { seen.set(v, c); return c; };
    const kind = brand(v);
    if (typedNames.includes(kind)) {
      const b = copy(v.buffer);
      return note(new globalThis[kind](b, v.byteOffset, v.length));
    }
    switch (kind) {
      case 'Array': {
        const a = note(new Array(v.length));
        for (const k of Object.keys(v)) a[k] = copy(v[k]);
        return a;
      }
      case 'Date': return note(new Date(v.getTime()));
      case 'RegExp': return note(new RegExp(v.source, v.flags));
      case 'Map': { const m = note(new Map()); for (const [a, b] of Array.from(v)) m.set(copy(a), copy(b)); return m; }
      case 'Set': { const s = note(new Set()); for (const a of Array.from(v)) s.add(copy(a)); return s; }
      case 'ArrayBuffer': return note(v.slice(0));
      case 'DataView': return note(new DataView(copy(v.buffer), v.byteOffset, v.byteLength));
      case 'Number': case 'String': case 'Boolean': case 'BigInt': return note(Object(v.valueOf()));
      case 'Promise': case 'WeakMap': case 'WeakSet': case 'WeakRef': case 'Generator': return refuse(v);
      case 'Error': {
        const C = { EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError }[v.name] || Error;
        const e = note(Object.create(C.prototype, {}));
        const n = new C(v.message);
        seen.set(v, n);
        Object.defineProperty(n, 'stack', { value: v.stack, writable: true, configurable: true, enumerable: false });
        if (Object.hasOwn(v, 'cause')) Object.defineProperty(n, 'cause', { value: copy(v.cause), writable: true, configurable: true, enumerable: false });
        return n;
      }
    }
    const o = note({});
    for (const k of Object.keys(v)) o[k] = copy(v[k]);
    return o;
  };
  return copy(value);
};
