'use strict';
const { inspect, isError } = require('internal/inspect');
const { argType, coded } = require('internal/errors');
const equal = require('internal/equal');

const heads = {
  deepStrictEqual: 'Expected values to be strictly deep-equal:', strictEqual: 'Expected values to be strictly equal:', strictEqualObject: 'Expected "actual" to be reference-equal to "expected":',
  deepEqual: 'Expected values to be loosely deep-equal:', notDeepStrictEqual: 'Expected "actual" not to be strictly deep-equal to:', notStrictEqual: 'Expected "actual" to be strictly unequal to:',
  notStrictEqualObject: 'Expected "actual" not to be reference-equal to "expected":', notDeepEqual: 'Expected "actual" not to be loosely deep-equal to:', notIdentical: 'Values identical but not reference-equal:',
  notDeepEqualUnequal: 'Expected values not to be loosely deep-equal:',
};
const show = (v) => inspect(v, { compact: false, customInspect: false, depth: 1000, maxArrayLength: Infinity, showHidden: false, showProxy: false, sorted: true, getters: true, breakLength: Infinity });
function difference(actual, expected, operator, own) {
  const head = (k) => own ?? heads[k];
  let other = '', res = '', end = '', skipped = false;
  const a = show(actual).split('\n'), e = show(expected).split('\n');
  let indicator = '';
  if (operator === 'strictEqual' && (typeof actual === 'object' && actual !== null && typeof expected === 'object' && expected !== null || typeof actual === 'function' && typeof expected === 'function')) operator = 'strictEqualObject';
  if (a.length === 1 && e.length === 1 && a[0] !== e[0]) {
    const x = inspect(actual).length + inspect(expected).length;
    if (x <= 12) {
      if ((typeof actual !== 'object' || actual === null) && (typeof expected !== 'object' || expected === null) && (actual !== 0 || expected !== 0)) return `${head(operator)}\n\n${a[0]} !== ${e[0]}\n`;
    } else if (operator !== 'strictEqualObject' && x < 80) {
      let i = 0;
      while (a[0][i] === e[0][i]) i++;
      if (i > 2) indicator = `\n  ${' '.repeat(i)}^`;
    }
  }
  let x = a.at(-1), y = e.at(-1), i = 0;
  while (x === y) {
    if (i++ < 3) end = `\n  ${x}${end}`; else other = x;
    a.pop();
    e.pop();
    if (a.length === 0 || e.length === 0) break;
    x = a.at(-1);
    y = e.at(-1);
  }
  const max = Math.max(a.length, e.length);
  if (max === 0) {
    const lines = show(actual).split('\n');
    if (lines.length > 50) { lines[46] = '...'; while (lines.length > 47) lines.pop(); }
    return `${head('notIdentical')}\n\n${lines.join('\n')}\n`;
  }
  if (i >= 5) { end = `\n...${end}`; skipped = true; }
  if (other !== '') { end = `\n  ${other}${end}`; other = ''; }
  let printed = 0, identical = 0;
  const msg = `${head(operator)}\n+ actual - expected`;
  let lines = a, plus = '+', len = e.length;
  if (a.length < max) { lines = e; plus = '-'; len = a.length; }
  for (i = 0; i < max; i++) {
    if (len < i + 1) {
      if (identical > 2) {
        if (identical > 3) { if (identical > 4) { if (identical === 5) { res += `\n  ${lines[i - 3]}`; printed++; } else { res += '\n...'; skipped = true; } } res += `\n  ${lines[i - 2]}`; printed++; }
        res += `\n  ${lines[i - 1]}`;
        printed++;
      }
      identical = 0;
      if (plus === '+') res += `\n+ ${lines[i]}`; else other += `\n- ${lines[i]}`;
      printed++;
    } else {
      const el = e[i];
      let al = a[i];
      let diff = al !== el && (!al.endsWith(',') || al.slice(0, -1) !== el);
      if (diff && el.endsWith(',') && el.slice(0, -1) === al) { diff = false; al += ','; }
      if (diff) {
        if (identical > 2) {
          if (identical > 3) { if (identical > 4) { if (identical === 5) { res += `\n  ${a[i - 3]}`; printed++; } else { res += '\n...'; skipped = true; } } res += `\n  ${a[i - 2]}`; printed++; }
          res += `\n  ${a[i - 1]}`;
          printed++;
        }
        identical = 0;
        res += `\n+ ${al}`;
        other += `\n- ${el}`;
        printed += 2;
      } else {
        res += other;
        other = '';
        identical++;
        if (identical <= 2) { res += `\n  ${al}`; printed++; }
      }
    }
    if (printed > 50 && i < max - 2) return `${msg}${skipped ? ' ... Lines skipped' : ''}\n${res}\n...${other}\n...`;
  }
  return `${msg}${skipped ? ' ... Lines skipped' : ''}\n${res}${other}${end}${indicator}`;
}

class AssertionError extends Error {
  constructor(o) {
    if (o === null || typeof o !== 'object') throw argType('options', 'Object', o);
    const { message, operator, actual, expected } = o;
    let text;
    if (message != null) text = operator === 'deepStrictEqual' || operator === 'strictEqual' ? difference(actual, expected, operator, String(message)) : String(message);
    else if (operator === 'deepStrictEqual' || operator === 'strictEqual') text = difference(actual, expected, operator);
    else if (operator === 'notDeepStrictEqual' || operator === 'notStrictEqual') {
      let base = heads[operator];
      const res = show(actual).split('\n');
      if (operator === 'notStrictEqual' && (typeof actual === 'object' && actual !== null || typeof actual === 'function')) base = heads.notStrictEqualObject;
      if (res.length > 50) { res[46] = '...'; while (res.length > 47) res.pop(); }
      text = res.length === 1 ? `${base}${res[0].length > 5 ? '\n\n' : ' '}${res[0]}` : `${base}\n\n${res.join('\n')}\n`;
    } else {
      let r = show(actual), e = show(expected);
      if (operator === 'notDeepEqual' || operator === 'notEqual') {
        r = `${heads[operator] || ''}\n\n${r}`.replace(/^\n\n/, '');
        text = operator === 'notEqual' ? `${show(actual)} != ${e}` : r;
        if (operator === 'notDeepEqual' && r.length > 1024) text = `${r.slice(0, 1021)}...`;
      } else {
        if (r.length > 512) r = `${r.slice(0, 509)}...`;
        if (e.length > 512) e = `${e.slice(0, 509)}...`;
        text = operator === 'deepEqual' ? `${heads.deepEqual}\n\n${r}\n\nshould loosely deep-equal\n\n${e}` : operator === '==' ? `${r} == ${e}` : operator === '!=' ? `${r} != ${e}` : `${r} ${operator} ${e}`;
      }
    }
    super(text);
    this.generatedMessage = !message;
    Object.defineProperty(this, 'name', { value: 'AssertionError [ERR_ASSERTION]', enumerable: false, writable: true, configurable: true });
    this.code = 'ERR_ASSERTION';
    this.actual = actual;
    this.expected = expected;
    this.operator = operator;
    Error.captureStackTrace(this, o.stackStartFn || o.stackStartFunction || AssertionError);
    this.name = 'AssertionError';
  }
  toString() { return `${this.name} [${this.code}]: ${this.message}`; }
  [Symbol.for('nodejs.util.inspect.custom')](depth, ctx) {
    const r = {};
    const { actual, expected } = this;
    return inspect(this, { ...ctx, customInspect: false, depth: 0 });
  }
}
function fail(o) {
  if (o.message instanceof Error) throw o.message;
  throw new AssertionError(o);
}
function textOf(f) {
  // The expression that failed, from the source of the caller.
  const m = /\n\s+at (?:.*\()?(\/.*|\[eval\]|\[stdin\]):(\d+):(\d+)\)?/.exec('\n' + (new Error().stack || '').split('\n').slice(1).filter((l) => !l.includes('node:')).join('\n'));
  if (!m) return null;
  let text = internal.texts && internal.texts.get(m[1]);
  if (text === undefined) try { text = require('fs').readFileSync(m[1], 'utf8'); } catch { return null; }
  const line = text.split('\n')[m[2] - 1] || '';
  const call = /\b(assert(?:\.\w+)*\(.*\))\s*;?/.exec(line) || /\b(\w+\(.*\))\s*;?/.exec(line);
  return call ? balanced(call[1]) : null;
}
function balanced(s) {
  let n = 0;
  for (let i = 0; i < s.length; i++) {
    if (s[i] === '(') n++;
    else if (s[i] === ')' && --n === 0) return s.slice(0, i + 1);
  }
  return s;
}
function ok(fn, n, value, message) {
  if (value) return;
  let generated = false;
  if (n === 0) {
    generated = true;
    message = 'No value argument passed to `assert.ok()`';
  } else if (message == null) {
    generated = true;
    const t = textOf(fn);
    message = t ? `The expression evaluated to a falsy value:\n\n  ${t}\n` : 'The expression evaluated to a falsy value';
  } else if (message instanceof Error) throw message;
  const e = new AssertionError({ actual: value, expected: true, message, operator: '==', stackStartFn: fn });
  e.generatedMessage = generated;
  throw e;
}
function assert(...args) { ok(assert, args.length, ...args); }
assert.ok = function(...args) { ok(assert.ok, args.length, ...args); };
Object.defineProperty(assert.ok, 'name', { value: 'ok' });
assert.AssertionError = AssertionError;
assert.fail = function(a, e, m, op) {
  if (a instanceof Error && arguments.length <= 1) throw a;
  const err = new AssertionError({ message: arguments.length <= 1 ? a ?? 'Failed' : m, actual: arguments.length > 1 ? a : undefined, expected: arguments.length > 1 ? e : undefined, operator: op || (arguments.length <= 1 ? 'fail' : '!='), stackStartFn: assert.fail });
  if (a === undefined) err.generatedMessage = true;
  throw err;
};
const compare = (name, operator, f) => {
  assert[name] = { [name](actual, expected, message) {
    if (arguments.length < 2) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "actual" and "expected" arguments must be specified');
    if (!f(actual, expected)) fail({ actual, expected, message, operator, stackStartFn: assert[name] });
  } }[name];
};
compare('equal', '==', (a, b) => a == b || Number.isNaN(a) && Number.isNaN(b)); // eslint-disable-line eqeqeq
compare('notEqual', '!=', (a, b) => a != b && !(Number.isNaN(a) && Number.isNaN(b))); // eslint-disable-line eqeqeq
compare('strictEqual', 'strictEqual', (a, b) => Object.is(a, b));
compare('notStrictEqual', 'notStrictEqual', (a, b) => !Object.is(a, b));
compare('deepEqual', 'deepEqual', (a, b) => equal(a, b, false));
compare('notDeepEqual', 'notDeepEqual', (a, b) => !equal(a, b, false));
compare('deepStrictEqual', 'deepStrictEqual', (a, b) => equal(a, b, true));
compare('notDeepStrictEqual', 'notDeepStrictEqual', (a, b) => !equal(a, b, true));
function matches(e, expected, message, fn) {
  if (expected === undefined) return;
  if (typeof expected === 'function') {
    if (expected.prototype !== undefined && e instanceof expected) return;
    if (Object.prototype.isPrototypeOf.call(Error, expected)) {
      if (!message) message = isError(e) ? `The error is expected to be an instance of "${expected.name}". Received "${e.constructor && e.constructor.name || e.name}"\n\nError message:\n\n${e.message}` : `The error is expected to be an instance of "${expected.name}". Received "${inspect(e, { depth: -1 })}"`;
      fail({ actual: e, expected, message, operator: fn.name, stackStartFn: fn });
    }
    if (Reflect.apply(expected, {}, [e]) === true) return;
    fail({ actual: e, expected, message: message ?? `The ${expected.name ? `"${expected.name}" ` : ''}validation function is expected to return "true". Received ${inspect(false)}\n\nCaught error:\n\n${e}`, operator: fn.name, stackStartFn: fn });
  }
  if (expected instanceof RegExp) {
    if (expected.exec(String(e)) !== null) return;
    fail({ actual: e, expected, message: message ?? `The input did not match the regular expression ${inspect(expected)}. Input:\n\n${inspect(String(e))}\n`, operator: fn.name, stackStartFn: fn });
  }
  if (typeof expected !== 'object' || expected === null) throw argType('expected', ['function', 'Error', 'RegExp', 'Object'], expected);
  const keys = Object.keys(expected);
  if (expected instanceof Error) keys.push('name', 'message');
  for (const k of keys) {
    if (typeof e[k] === 'string' && expected[k] instanceof RegExp && expected[k].exec(e[k]) !== null) continue;
    if (!(k in Object(e)) || !equal(e[k], expected[k], true)) {
      if (!message) {
        const pick = (o) => { const r = {}; for (const x of keys) if (x in o) r[x] = typeof e[x] === 'string' && expected[x] instanceof RegExp && o === e && expected[x].test(e[x]) ? expected[x] : o[x]; return r; };
        const err = new AssertionError({ actual: pick(e), expected: pick(expected), operator: 'deepStrictEqual', stackStartFn: fn });
        err.actual = e;
        err.expected = expected;
        err.operator = fn.name;
        throw err;
      }
      fail({ actual: e, expected, message, operator: fn.name, stackStartFn: fn });
    }
  }
}
const NONE = {};
const run = (f) => { if (typeof f !== 'function') throw argType('fn', 'function', f); try { f(); } catch (e) { return e; } return NONE; };
const runAsync = async (p) => {
  if (typeof p === 'function') {
    p = p();
    if (!p || typeof p.then !== 'function') throw coded(TypeError, 'ERR_INVALID_RETURN_VALUE', 'Expected instance of Promise to be returned from the "promiseFn" function but got undefined.');
  } else if (!p || typeof p.then !== 'function') throw argType('promiseFn', ['function', 'Promise'], p);
  try { await p; } catch (e) { return e; }
  return NONE;
};
function thrown(fn, got, expected, message) {
  if (typeof expected === 'string') { message = expected; expected = undefined; }
  if (got === NONE) {
    let d = '';
    if (expected && expected.name) d += ` (${expected.name})`;
    d += message ? `: ${message}` : '.';
    fail({ actual: undefined, expected, operator: fn.name, message: message instanceof Error ? message : `Missing expected ${fn === assert.rejects ? 'rejection' : 'exception'}${d}`, stackStartFn: fn });
  }
  matches(got, expected, message, fn);
}
function notThrown(fn, got, expected, message) {
  if (got === NONE) return;
  if (typeof expected === 'string') { message = expected; expected = undefined; }
  if (!expected || got instanceof expected) fail({ actual: got, expected, operator: fn.name, message: `Got unwanted ${fn === assert.doesNotReject ? 'rejection' : 'exception'}${message ? `: ${message}` : '.'}\nActual message: "${got && got.message}"`, stackStartFn: fn });
  throw got;
}
assert.throws = function throws(f, ...a) { thrown(assert.throws, run(f), ...a); };
assert.rejects = async function rejects(p, ...a) { thrown(assert.rejects, await runAsync(p), ...a); };
assert.doesNotThrow = function doesNotThrow(f, ...a) { notThrown(assert.doesNotThrow, run(f), ...a); };
assert.doesNotReject = async function doesNotReject(p, ...a) { notThrown(assert.doesNotReject, await runAsync(p), ...a); };
assert.ifError = function ifError(e) {
  if (e === null || e === undefined) return;
  let message = 'ifError got unwanted exception: ';
  message += typeof e === 'object' && typeof e.message === 'string' ? e.message.length === 0 && e.constructor ? e.constructor.name : e.message : inspect(e);
  const err = new AssertionError({ actual: e, expected: null, operator: 'ifError', message, stackStartFn: assert.ifError });
  err.generatedMessage = true;
  throw err;
};
const match = (name, want) => {
  assert[name] = { [name](s, re, message) {
    if (!(re instanceof RegExp)) throw argType('regexp', 'RegExp', re);
    if (typeof s === 'string' && (re.exec(s) !== null) === want) return;
    if (message instanceof Error) throw message;
    const generated = !message;
    message ||= typeof s !== 'string' ? `The "string" argument must be of type string. Received type ${typeof s} (${inspect(s)})` : `${want ? 'The input did not match the regular expression ' : 'The input was expected to not match the regular expression '}${inspect(re)}. Input:\n\n${inspect(s)}\n`;
    const e = new AssertionError({ actual: s, expected: re, message, operator: name, stackStartFn: assert[name] });
    e.generatedMessage = generated;
    throw e;
  } }[name];
};
match('match', true);
match('doesNotMatch', false);
assert.partialDeepStrictEqual = function partialDeepStrictEqual(a, e, message) {
  const part = (x, y) => y !== null && typeof y === 'object' && !Array.isArray(y) && Object.getPrototypeOf(y) === Object.prototype ? x !== null && typeof x === 'object' && Object.keys(y).every((k) => k in x && part(x[k], y[k])) : equal(x, y, true);
  if (!part(a, e)) fail({ actual: a, expected: e, message, operator: 'deepStrictEqual', stackStartFn: assert.partialDeepStrictEqual });
};
assert.strict = Object.assign((...args) => ok(assert.strict, args.length, ...args), assert, { equal: assert.strictEqual, deepEqual: assert.deepStrictEqual, notEqual: assert.notStrictEqual, notDeepEqual: assert.notDeepStrictEqual });
assert.strict.strict = assert.strict;
module.exports = assert;
