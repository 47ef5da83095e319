// Deep equality, strict and loose.
'use strict';
const { brand, isError, typedNames } = require('internal/inspect');
module.exports = function equal(a, b, strict, memo = new Map()) {
  if (a === b) return a !== 0 || !strict || Object.is(a, b);
  if (strict) {
    if (typeof a !== 'object') return typeof a === 'number' && Number.isNaN(a) && Number.isNaN(b);
    if (typeof b !== 'object' || a === null || b === null) return false;
    if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  } else {
    if (a === null || typeof a !== 'object') return (b === null || typeof b !== 'object') && (a == b || Number.isNaN(a) && Number.isNaN(b)); // eslint-disable-line eqeqeq
    if (b === null || typeof b !== 'object') return false;
  }
  const ka = brand(a), kb = brand(b);
  if (ka !== kb) return false;
  if (ka === 'Array') {
    if (a.length !== b.length) return false;
  } else if (ka === 'Date') {
    if (!Object.is(a.getTime(), b.getTime())) return false;
  } else if (ka === 'RegExp') {
    if (a.source !== b.source || a.flags !== b.flags || a.lastIndex !== b.lastIndex) return false;
  } else if (isError(a)) {
    if (a.message !== b.message || a.name !== b.name) return false;
    if (Object.hasOwn(a, 'cause') !== Object.hasOwn(b, 'cause') || Object.hasOwn(a, 'cause') && !equal(a.cause, b.cause, strict, memo)) return false;
  } else if (typedNames.includes(ka)) {
    if (a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (strict ? !Object.is(a[i], b[i]) : a[i] !== b[i]) return false;
  } else if (ka === 'ArrayBuffer' || ka === 'DataView') {
    const x = new Uint8Array(a.buffer || a), y = new Uint8Array(b.buffer || b);
    if (x.length !== y.length || x.some((v, i) => v !== y[i])) return false;
  } else if (['Number', 'String', 'Boolean', 'Symbol', 'BigInt'].includes(ka)) {
    if (!Object.is(a.valueOf(), b.valueOf())) return false;
  } else if (ka === 'Map' || ka === 'Set') {
    if (a.size !== b.size) return false;
  } else if (ka === 'Promise' || ka === 'WeakMap' || ka === 'WeakSet') return false;
  let seen = memo.get(a);
  if (seen && seen.has(b)) return true;
  if (!seen) memo.set(a, seen = new Set());
  seen.add(b);
  const ok = keys(a, b, strict, memo, ka, typedNames.includes(ka)) && (ka !== 'Set' || sets(a, b, strict, memo)) && (ka !== 'Map' || maps(a, b, strict, memo));
  if (!ok) seen.delete(b);
  return ok;
};
const equal = module.exports;
function keys(a, b, strict, memo, kind, typed) {
  const own = (o) => { const k = Object.keys(o); return typed || kind === 'String' ? k.filter((x) => !/^\d+$/.test(x)) : k; };
  const x = own(a), y = own(b);
  if (x.length !== y.length) return false;
  for (const k of x) if (!Object.prototype.hasOwnProperty.call(b, k) || !Object.prototype.propertyIsEnumerable.call(b, k)) return false;
  if (strict) {
    const syms = (o) => Object.getOwnPropertySymbols(o).filter((s) => Object.prototype.propertyIsEnumerable.call(o, s));
    const s = syms(a), t = syms(b);
    if (s.length !== t.length) return false;
    for (const k of s) if (!t.includes(k) || !equal(a[k], b[k], strict, memo)) return false;
  }
  return x.every((k) => equal(a[k], b[k], strict, memo));
}
function sets(a, b, strict, memo) {
  const rest = [];
  for (const v of a) if (!b.has(v)) { if (strict && (v === null || typeof v !== 'object')) return false; rest.push(v); }
  const left = Array.from(b).filter((v) => !a.has(v));
  return rest.every((v) => { const i = left.findIndex((w) => equal(v, w, strict, memo)); if (i >= 0) left.splice(i, 1); return i >= 0; });
}
function maps(a, b, strict, memo) {
  const left = Array.from(b);
  for (const [k, v] of a) {
    if (b.has(k) && (k === null || typeof k !== 'object')) {
      if (!equal(v, b.get(k), strict, memo)) return false;
      continue;
    }
    const i = left.findIndex(([x, y]) => equal(k, x, strict, memo) && equal(v, y, strict, memo));
    if (i < 0) return false;
    left.splice(i, 1);
  }
  return true;
}
