// util.inspect and util.format, with Node's layout.
'use strict';
const custom = Symbol.for('nodejs.util.inspect.custom');
const defaults = {
  showHidden: false, depth: 2, colors: false, customInspect: true, showProxy: false, maxArrayLength: 100, maxStringLength: 10000, breakLength: 80,
  compact: 3, sorted: false, getters: false, numericSeparator: false,
};
const styles = Object.assign(Object.create(null), {
  special: 'cyan', number: 'yellow', bigint: 'yellow', boolean: 'yellow', undefined: 'grey', null: 'bold', string: 'green', symbol: 'green', date: 'magenta',
  regexp: 'red', module: 'underline',
});
const colors = Object.assign(Object.create(null), {
  reset: [0, 0], bold: [1, 22], dim: [2, 22], italic: [3, 23], underline: [4, 24], blink: [5, 25], inverse: [7, 27], hidden: [8, 28], strikethrough: [9, 29],
  black: [30, 39], red: [31, 39], green: [32, 39], yellow: [33, 39], blue: [34, 39], magenta: [35, 39], cyan: [36, 39], white: [37, 39], gray: [90, 39],
  grey: [90, 39], redBright: [91, 39], greenBright: [92, 39], yellowBright: [93, 39], blueBright: [94, 39], magentaBright: [95, 39], cyanBright: [96, 39],
  whiteBright: [97, 39], bgBlack: [40, 49], bgRed: [41, 49], bgGreen: [42, 49], bgYellow: [43, 49], bgBlue: [44, 49], bgMagenta: [45, 49], bgCyan: [46, 49],
  bgWhite: [47, 49],
});
const hasOwn = (o, k) => Object.prototype.hasOwnProperty.call(o, k);
const tagOf = (v) => Object.prototype.toString.call(v).slice(8, -1);
const identifier = /^[a-zA-Z_][a-zA-Z_0-9]*$/;
const escapes = { '\b': '\\b', '\t': '\\t', '\n': '\\n', '\f': '\\f', '\r': '\\r', '\\': '\\\\' };

function inspect(value, options) {
  const ctx = { ...defaults, budget: {}, indentationLvl: 0, seen: [], currentDepth: 0, stylize: plain, circular: undefined, userOptions: undefined };
  if (arguments.length > 1) {
    if (arguments.length > 2) {
      if (arguments[2] !== undefined) ctx.depth = arguments[2];
      if (arguments.length > 3 && arguments[3] !== undefined) ctx.colors = arguments[3];
    }
    if (typeof options === 'boolean') ctx.showHidden = options;
    else if (options) {
      for (const k of Object.keys(options)) if (hasOwn(defaults, k) || k === 'stylize') ctx[k] = options[k];
      ctx.userOptions = options;
    }
  }
  if (ctx.colors) ctx.stylize = colour;
  if (ctx.maxArrayLength === null) ctx.maxArrayLength = Infinity;
  if (ctx.maxStringLength === null) ctx.maxStringLength = Infinity;
  return formatValue(ctx, value, 0);
}
inspect.custom = custom;
inspect.styles = styles;
inspect.colors = colors;
Object.defineProperty(inspect, 'defaultOptions', {
  get: () => defaults,
  set(o) { Object.assign(defaults, o); },
});

const plain = (s) => s;
function colour(s, style) {
  const c = colors[styles[style]];
  return c ? `\u001b[${c[0]}m${s}\u001b[${c[1]}m` : s;
}

function quote(s) {
  let q = "'";
  if (s.includes("'")) {
    if (!s.includes('"')) q = '"';
    else if (!s.includes('`') && !s.includes('${')) q = '`';
  }
  // eslint-disable-next-line no-control-regex
  const body = s.replace(/[\u0000-\u001f'"`\\\u007f-\u009f]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, (c) => {
    if (c === "'" || c === '"' || c === '`') return c === q ? '\\' + c : c;
    const n = c.charCodeAt(0);
    return escapes[c] || (n > 255 ? '\\u' + n.toString(16).toUpperCase() : '\\x' + n.toString(16).toUpperCase().padStart(2, '0'));
  });
  return q + body + q;
}
function number(f, v, sep) {
  if (Object.is(v, -0)) return f('-0', 'number');
  let s = String(v);
  if (sep && /^-?\d+(\.\d+)?$/.test(s)) {
    const [i, d] = s.split('.');
    s = i.replace(/\B(?=(\d{3})+$)/g, '_') + (d ? '.' + d.replace(/(\d{3})(?=\d)/g, '$1_') : '');
  }
  return f(s, 'number');
}
function primitive(f, v, ctx) {
  switch (typeof v) {
    case 'string': {
      let trailer = '';
      if (v.length > ctx.maxStringLength) {
        const more = v.length - ctx.maxStringLength;
        v = v.slice(0, ctx.maxStringLength);
        trailer = `... ${more} more character${more > 1 ? 's' : ''}`;
      }
      if (ctx.compact !== true && v.length > 16 && v.length > ctx.breakLength - ctx.indentationLvl - 4)
        return v.split(/(?<=\n)/).map((line) => f(quote(line), 'string')).join(` +\n${' '.repeat(ctx.indentationLvl + 2)}`) + trailer;
      return f(quote(v), 'string') + trailer;
    }
    case 'number': return number(f, v, ctx.numericSeparator);
    case 'bigint': return f(`${v}n`, 'bigint');
    case 'boolean': return f(`${v}`, 'boolean');
    case 'undefined': return f('undefined', 'undefined');
    case 'symbol': return f(v.toString(), 'symbol');
  }
}

function formatValue(ctx, value, recurseTimes, typedArray) {
  if (typeof value !== 'object' && typeof value !== 'function') return primitive(ctx.stylize, value, ctx);
  if (value === null) return ctx.stylize('null', 'null');
  const proxy = host.proxy(value);
  const original = value;
  if (proxy) {
    if (proxy[0] === null) return ctx.stylize('<Revoked Proxy>', 'special');
    if (ctx.showProxy) {
      if (recurseTimes > ctx.depth && ctx.depth !== null) return ctx.stylize('Proxy [Array]', 'special');
      ctx.indentationLvl += 2;
      const out = [formatValue(ctx, proxy[0], recurseTimes + 1), formatValue(ctx, proxy[1], recurseTimes + 1)];
      ctx.indentationLvl -= 2;
      return reduce(ctx, out, '', ['Proxy [', ']'], 1, recurseTimes);
    }
    value = proxy[0];
    if (typeof value !== 'object' && typeof value !== 'function' || value === null) return primitive(ctx.stylize, value, ctx);
  }
  if (ctx.customInspect) {
    const f = value[custom];
    if (typeof f === 'function' && f !== inspect && !(value.constructor && value.constructor.prototype === value)) {
      const depth = ctx.depth === null ? null : ctx.depth - recurseTimes;
      const o = { ...ctx.userOptions, ...pick(ctx), depth, stylize: ctx.stylize };
      const r = f.call(original, depth, o, inspect);
      if (r !== original) return typeof r !== 'object' ? `${r}` : formatValue(ctx, r, recurseTimes).replaceAll('\n', `\n${' '.repeat(ctx.indentationLvl)}`);
    }
  }
  if (ctx.seen.includes(value)) {
    ctx.circular ||= new Map();
    let i = ctx.circular.get(value);
    if (i === undefined) ctx.circular.set(value, i = ctx.circular.size + 1);
    return ctx.stylize(`[Circular *${i}]`, 'special');
  }
  return formatRaw(ctx, value, recurseTimes, typedArray);
}
function pick(ctx) {
  const o = {};
  for (const k of Object.keys(defaults)) o[k] = ctx[k];
  return o;
}

function constructorName(obj, ctx, recurseTimes) {
  const first = obj;
  let depth = 0;
  while (obj) {
    const d = Object.getOwnPropertyDescriptor(obj, 'constructor');
    if (d !== undefined && typeof d.value === 'function' && d.value.name !== '' && isInstance(first, d.value)) return String(d.value.name);
    obj = Object.getPrototypeOf(obj);
    depth++;
  }
  return null;
}
function isInstance(o, f) { try { return o instanceof f; } catch { return false; } }

function prefix(name, tag, fallback, size = '') {
  if (name === null) {
    if (tag !== '' && fallback !== tag) return `[${fallback}${size}: null prototype] [${tag}] `;
    return `[${fallback}${size}: null prototype] `;
  }
  if (tag !== '' && name !== tag) return `${name}${size} [${tag}] `;
  return `${name}${size} `;
}

function keysOf(value, showHidden) {
  let keys;
  const symbols = Object.getOwnPropertySymbols(value);
  if (showHidden) {
    keys = Object.getOwnPropertyNames(value);
    return keys.concat(symbols);
  }
  try { keys = Object.keys(value); } catch { keys = []; }
  return keys.concat(symbols.filter((s) => Object.prototype.propertyIsEnumerable.call(value, s)));
}
const isIndex = (k) => typeof k === 'string' && /^(0|[1-9][0-9]{0,9})$/.test(k) && +k < 2 ** 32 - 1;

const typedNames = ['Uint8Array', 'Uint8ClampedArray', 'Uint16Array', 'Uint32Array', 'Int8Array', 'Int16Array', 'Int32Array', 'Float16Array', 'Float32Array', 'Float64Array',
  'BigInt64Array', 'BigUint64Array'];
const typedTag = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get;
// brand tells which of the built-in kinds an object is, whatever it says of itself.
const probes = [
  ['Map', (v) => Object.getOwnPropertyDescriptor(Map.prototype, 'size').get.call(v)], ['Set', (v) => Object.getOwnPropertyDescriptor(Set.prototype, 'size').get.call(v)],
  ['Date', (v) => Date.prototype.getTime.call(v)], ['WeakMap', (v) => WeakMap.prototype.has.call(v, {})], ['WeakSet', (v) => WeakSet.prototype.has.call(v, {})],
  ['ArrayBuffer', (v) => Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, 'byteLength').get.call(v)],
  ['SharedArrayBuffer', (v) => Object.getOwnPropertyDescriptor(SharedArrayBuffer.prototype, 'byteLength').get.call(v)],
  ['DataView', (v) => Object.getOwnPropertyDescriptor(DataView.prototype, 'buffer').get.call(v)],
  ['Number', (v) => Number.prototype.valueOf.call(v)], ['String', (v) => String.prototype.valueOf.call(v)], ['Boolean', (v) => Boolean.prototype.valueOf.call(v)],
  ['Symbol', (v) => Symbol.prototype.valueOf.call(v)], ['BigInt', (v) => BigInt.prototype.valueOf.call(v)], ['WeakRef', (v) => WeakRef.prototype.deref.call(v)],
];
const sourceGet = Object.getOwnPropertyDescriptor(RegExp.prototype, 'source').get;
function brand(v) {
  if (Array.isArray(v)) return 'Array';
  const t = typedTag.call(v);
  if (t) return t;
  const p = Object.getPrototypeOf(v);
  if (p === Object.prototype && v[Symbol.toStringTag] === undefined) return tagOf(v) === 'Arguments' ? 'Arguments' : 'Object';
  if (isError(v)) return 'Error';
  if (host.promise(v)[0] >= 0) return 'Promise';
  for (const [name, f] of probes) {
    try {
      f(v);
      return name;
    } catch { /* it isn't */ }
  }
  if (v !== RegExp.prototype) try { sourceGet.call(v); return 'RegExp'; } catch { /* it isn't */ }
  const tag = tagOf(v);
  if (tag === 'Arguments' || tag === 'Generator' || / Iterator$/.test(tag) || tag === 'Module') return tag;
  return 'Object';
}
const isError = (v) => Error.isError ? Error.isError(v) || v instanceof Error : v instanceof Error;

function formatRaw(ctx, value, recurseTimes, typedArray) {
  let keys, protoProps;
  const name = constructorName(value, ctx, recurseTimes);
  let tag = value[Symbol.toStringTag];
  if (typeof tag !== 'string' || tag !== '' && (ctx.showHidden ? hasOwn : Object.prototype.propertyIsEnumerable.call.bind(Object.prototype.propertyIsEnumerable))(value, Symbol.toStringTag)) tag = '';
  let base = '', formatter = () => [], braces, extras = 0, noEntries = false;
  const kind = typeof value === 'function' ? 'Function' : brand(value);
  const visible = () => keysOf(value, ctx.showHidden);
  if (kind === 'Array') {
    keys = visible().filter((k) => !isIndex(k) && (k !== 'length' || !ctx.showHidden || true) && !(k === 'length' && !ctx.showHidden));
    const p = name !== 'Array' || tag !== '' ? prefix(name, tag, 'Array', `(${value.length})`) : '';
    braces = [`${p}[`, ']'];
    if (value.length === 0 && keys.length === 0) return `${braces[0]}]`;
    extras = 1;
    formatter = formatArray;
  } else if (kind === 'Set' || kind === 'Map') {
    keys = visible();
    braces = [`${prefix(name, tag, kind, `(${kind === 'Set' ? Set.prototype.values.call(value) && sizeOf(Set, value) : sizeOf(Map, value)})`)}{`, '}'];
    formatter = kind === 'Set' ? formatSet : formatMap;
    if (sizeOf(kind === 'Set' ? Set : Map, value) === 0 && keys.length === 0) return `${braces[0]}}`;
  } else if (typedNames.includes(kind)) {
    keys = visible().filter((k) => !isIndex(k));
    braces = [`${prefix(name, tag, kind, `(${value.length})`)}[`, ']'];
    if (value.length === 0 && keys.length === 0 && !ctx.showHidden) return `${braces[0]}]`;
    formatter = formatTyped;
    extras = 1;
  } else if (kind === 'Map Iterator' || kind === 'Set Iterator') {
    keys = visible();
    const list = host.entries(value);
    const both = list[0] === 2;
    braces = [both ? `[${kind.slice(0, 3)} Entries] {` : `[${tag || kind}] {`, '}'];
    formatter = (c, v, r) => {
      const out = [];
      c.indentationLvl += 2;
      for (let i = 1; i < list.length; i += 2) {
        const b = kind === 'Set Iterator' ? list[i] : list[i + 1];
        out.push(both ? `[ ${formatValue(c, list[i], r)}, ${formatValue(c, b, r)} ]` : formatValue(c, list[0] === 0 || kind === 'Set Iterator' ? list[i] : list[i + 1], r));
      }
      c.indentationLvl -= 2;
      return out;
    };
  } else if (/ Iterator$/.test(kind) && kind !== 'Iterator') {
    keys = visible();
    braces = [`[${tag}] {`, '}'];
    if (keys.length === 0) return `${name === null ? '[Object: null prototype] ' : 'Object '}[${kind}] {}`;
  } else noEntries = true;

  if (noEntries) {
    keys = visible();
    braces = ['{', '}'];
    if (kind === 'Function') {
      base = functionBase(value, name, tag);
      if (keys.length === 0) return ctx.stylize(base, 'special');
    } else if (kind === 'Arguments') {
      braces[0] = '[Arguments] {';
      if (keys.length === 0) return '[Arguments] {}';
    } else if (kind === 'Object' && name === 'Object') {
      if (tag !== '') braces[0] = `${prefix(name, tag, 'Object')}{`;
      if (keys.length === 0) return `${braces[0]}}`;
    } else if (kind === 'RegExp') {
      base = RegExp.prototype.toString.call(value);
      const p = prefix(name, tag, 'RegExp');
      if (p !== 'RegExp ') base = `${p}${base}`;
      if (keys.length === 0 || recurseTimes > ctx.depth && ctx.depth !== null) return ctx.stylize(base, 'regexp');
    } else if (kind === 'Date') {
      base = isNaN(Date.prototype.getTime.call(value)) ? 'Invalid Date' : Date.prototype.toISOString.call(value);
      const p = prefix(name, tag, 'Date');
      if (p !== 'Date ') base = `${p}${base}`;
      if (keys.length === 0) return ctx.stylize(base, 'date');
    } else if (kind === 'Error') {
      base = formatError(value, name, tag, ctx, keys);
      if (keys.length === 0) return base;
    } else if (kind === 'ArrayBuffer' || kind === 'SharedArrayBuffer') {
      braces[0] = `${prefix(name, tag, kind)}{`;
      if (typedArray === undefined) formatter = formatBuffer;
      else if (keys.length === 0) return `${braces[0]} byteLength: ${number(ctx.stylize, value.byteLength, false)} }`;
      keys.unshift('byteLength');
    } else if (kind === 'DataView') {
      braces[0] = `${prefix(name, tag, kind)}{`;
      keys.unshift('byteLength', 'byteOffset', 'buffer');
    } else if (kind === 'Promise') {
      braces[0] = `${prefix(name, tag, kind)}{`;
      formatter = formatPromise;
    } else if (kind === 'WeakSet' || kind === 'WeakMap') {
      braces[0] = `${prefix(name, tag, kind)}{`;
      formatter = (c) => [c.stylize('<items unknown>', 'special')];
    } else if (kind === 'WeakRef') {
      braces[0] = `${prefix(name, tag, kind)}{`;
      formatter = (c, v, r) => [formatValue(c, v.deref(), r)];
    } else if (kind === 'Module') {
      braces[0] = '[Module: null prototype] {';
    } else if (['Number', 'String', 'Boolean', 'Symbol', 'BigInt'].includes(kind)) {
      if (kind === 'String') keys = keys.filter((k) => !isIndex(k) && k !== 'length');
      base = `[${kind}${kind !== name ? name === null ? ' (null prototype)' : ` (${name})` : ''}: ${primitive(plain, value.valueOf(), ctx)}]`;
      if (tag !== '' && tag !== name) base += ` [${tag}]`;
      if (keys.length === 0) return ctx.stylize(base, kind.toLowerCase());
    } else {
      if (keys.length === 0) {
        if (kind === 'Generator') return `Object [Generator] {}`;
        return `${prefix(name, tag, 'Object')}{}`;
      }
      braces[0] = `${kind === 'Generator' ? 'Object [Generator] ' : prefix(name, tag, 'Object')}{`;
    }
  }
  if (recurseTimes > ctx.depth && ctx.depth !== null) {
    const n = prefix(name, tag, kind === 'Array' ? 'Array' : 'Object').slice(0, -1);
    return ctx.stylize(name !== null ? `[${n}]` : n, 'special');
  }
  recurseTimes += 1;
  ctx.seen.push(value);
  ctx.currentDepth = recurseTimes;
  const output = formatter(ctx, value, recurseTimes);
  for (const k of keys) output.push(formatProperty(ctx, value, recurseTimes, k, extras));
  if (ctx.circular !== undefined) {
    const i = ctx.circular.get(value);
    if (i !== undefined) {
      const ref = ctx.stylize(`<ref *${i}>`, 'special');
      if (ctx.compact !== true) base = base === '' ? ref : `${ref} ${base}`;
      else braces[0] = `${ref} ${braces[0]}`;
    }
  }
  ctx.seen.pop();
  if (ctx.sorted) {
    const cmp = ctx.sorted === true ? undefined : ctx.sorted;
    if (extras === 0) output.sort(cmp);
    else if (keys.length > 1) output.splice(output.length - keys.length, keys.length, ...output.slice(output.length - keys.length).sort(cmp));
  }
  return reduce(ctx, output, base, braces, extras, recurseTimes, value);
}
const sizeOf = (C, v) => Object.getOwnPropertyDescriptor(C.prototype, 'size').get.call(v);

function functionBase(value, name, tag) {
  const text = Function.prototype.toString.call(value);
  if (text.startsWith('class') && text.endsWith('}')) {
    let base = `[class ${hasOwn(value, 'name') && value.name ? value.name : '(anonymous)'}`;
    if (name !== 'Function' && name !== null) base += ` [${name}]`;
    if (tag !== '' && name !== tag) base += ` [${tag}]`;
    if (name !== null) {
      const s = Object.getPrototypeOf(value).name;
      if (s) base += ` extends ${s}`;
    } else base += ' extends null';
    return `${base}]`;
  }
  const own = Object.getPrototypeOf(value);
  let type = 'Function';
  const t = own && own[Symbol.toStringTag];
  if (t === 'GeneratorFunction' || t === 'AsyncFunction' || t === 'AsyncGeneratorFunction') type = t;
  let base = `[${type}`;
  if (name === null) base += ' (null prototype)';
  base += value.name === '' || typeof value.name !== 'string' ? ' (anonymous)' : `: ${value.name}`;
  base += ']';
  if (name !== type && name !== null && name !== 'Function') base += ` ${name}`;
  if (tag !== '' && name !== tag && tag !== type) base += ` [${tag}]`;
  return base;
}

function formatError(err, name, tag, ctx, keys) {
  let stack;
  try { stack = typeof err.stack === 'string' && err.stack ? err.stack : Error.prototype.toString.call(err); } catch { stack = 'Error'; }
  if (!ctx.showHidden && keys.length) {
    for (const k of ['name', 'message', 'stack']) {
      const i = keys.indexOf(k);
      if (i !== -1 && (typeof err[k] !== 'string' || stack.includes(err[k]))) keys.splice(i, 1);
    }
  }
  if ('cause' in err && hasOwn(err, 'cause') && !keys.includes('cause')) keys.push('cause');
  if (hasOwn(err, 'errors') && Array.isArray(err.errors) && !keys.includes('errors')) keys.push('errors');
  // The name of the class says more than the one of what it extends.
  let n = err.name != null ? String(err.name) : 'Error';
  const len = n.length;
  if (name === null || n.endsWith('Error') && stack.startsWith(n) && (stack.length === len || stack[len] === ':' || stack[len] === '\n')) {
    let fallback = 'Error';
    if (name === null) {
      const m = /^([A-Z][a-z_ A-Z0-9[\]()-]+)(?::|\n\s+at)/.exec(stack) || /^([a-z_A-Z0-9-]*Error)$/.exec(stack);
      fallback = m && m[1] || '';
      stack = `[${fallback || 'Error'}: null prototype]` + stack.slice(fallback.length);
    } else if (name && !name.includes(n) && !n.includes(name) || name && name !== n && name.includes(n)) {
      stack = name.includes(n) ? len === 0 ? `${name}: ${stack}` : `${name}${stack.slice(len)}` : `${name} [${n}]${stack.slice(len)}`;
    }
  }
  let pos = err.message && stack.indexOf(err.message) || -1;
  if (pos !== -1) pos += err.message.length;
  const at = stack.indexOf('\n    at', pos);
  if (at === -1) stack = `[${stack}]`;
  else {
    if (ctx.colors) stack = stack.slice(0, at) + stack.slice(at).replace(/^    at .*node:.*$/gm, (l) => `\u001b[90m${l}\u001b[39m`);
  }
  if (ctx.indentationLvl !== 0) stack = stack.replaceAll('\n', `\n${' '.repeat(ctx.indentationLvl)}`);
  return stack;
}

function formatArray(ctx, value, recurseTimes) {
  const out = [];
  const len = Math.min(Math.max(0, ctx.maxArrayLength), value.length);
  let i = 0, holes = 0;
  for (; out.length < len && i < value.length; i++) {
    if (hasOwn(value, i)) {
      out.push(formatProperty(ctx, value, recurseTimes, i, 1));
      continue;
    }
    holes = 0;
    while (i < value.length && !hasOwn(value, i)) { holes++; i++; }
    i--;
    out.push(ctx.stylize(`<${holes} empty item${holes > 1 ? 's' : ''}>`, 'undefined'));
  }
  const rest = value.length - i;
  if (rest > 0) out.push(`... ${rest} more item${rest > 1 ? 's' : ''}`);
  return out;
}
function formatTyped(ctx, value, recurseTimes) {
  const max = Math.min(Math.max(0, ctx.maxArrayLength), value.length);
  const out = new Array(max);
  const big = typeof value[0] === 'bigint';
  for (let i = 0; i < max; i++) out[i] = big ? ctx.stylize(`${value[i]}n`, 'bigint') : number(ctx.stylize, value[i], ctx.numericSeparator);
  const rest = value.length - max;
  if (rest > 0) out.push(`... ${rest} more item${rest > 1 ? 's' : ''}`);
  if (ctx.showHidden) {
    ctx.indentationLvl += 2;
    for (const k of ['BYTES_PER_ELEMENT', 'length', 'byteLength', 'byteOffset', 'buffer']) out.push(`[${k}]: ${formatValue(ctx, value[k], recurseTimes, true)}`);
    ctx.indentationLvl -= 2;
  }
  return out;
}
function formatBuffer(ctx, value) {
  const b = new Uint8Array(value);
  const n = Math.min(Math.max(0, ctx.maxArrayLength), b.length);
  let s = Array.from(b.subarray(0, n), (x) => x.toString(16).padStart(2, '0')).join(' ');
  if (b.length > n) s += ` ... ${b.length - n} more byte${b.length - n > 1 ? 's' : ''}`;
  return [`${ctx.stylize('[Uint8Contents]', 'special')}: <${s}>`];
}
function formatSet(ctx, value, recurseTimes) {
  const out = [];
  ctx.indentationLvl += 2;
  const max = Math.min(Math.max(0, ctx.maxArrayLength), sizeOf(Set, value));
  let i = 0;
  for (const v of Set.prototype.values.call(value)) {
    if (i++ >= max) break;
    out.push(formatValue(ctx, v, recurseTimes));
  }
  const rest = sizeOf(Set, value) - max;
  if (rest > 0) out.push(`... ${rest} more item${rest > 1 ? 's' : ''}`);
  ctx.indentationLvl -= 2;
  return out;
}
function formatMap(ctx, value, recurseTimes) {
  const out = [];
  ctx.indentationLvl += 2;
  const max = Math.min(Math.max(0, ctx.maxArrayLength), sizeOf(Map, value));
  let i = 0;
  for (const [k, v] of Map.prototype.entries.call(value)) {
    if (i++ >= max) break;
    out.push(`${formatValue(ctx, k, recurseTimes)} => ${formatValue(ctx, v, recurseTimes)}`);
  }
  const rest = sizeOf(Map, value) - max;
  if (rest > 0) out.push(`... ${rest} more item${rest > 1 ? 's' : ''}`);
  ctx.indentationLvl -= 2;
  return out;
}
function formatPromise(ctx, value, recurseTimes) {
  const [state, result] = host.promise(value);
  if (state === 0) return [ctx.stylize('<pending>', 'special')];
  ctx.indentationLvl += 2;
  const s = formatValue(ctx, result, recurseTimes);
  ctx.indentationLvl -= 2;
  return [state === 2 ? `${ctx.stylize('<rejected>', 'special')} ${s}` : s];
}

function formatProperty(ctx, value, recurseTimes, key, type) {
  let s, extra = ' ';
  const d = Object.getOwnPropertyDescriptor(value, key) || { value: value[key], configurable: true, enumerable: true };
  if (d.value !== undefined) {
    const diff = ctx.compact !== true || type !== 0 ? 2 : 3;
    ctx.indentationLvl += diff;
    s = formatValue(ctx, d.value, recurseTimes);
    if (diff === 3 && ctx.breakLength < len(ctx, s)) extra = `\n${' '.repeat(ctx.indentationLvl)}`;
    ctx.indentationLvl -= diff;
  } else if (d.get !== undefined) {
    const label = d.set !== undefined ? 'Getter/Setter' : 'Getter';
    if (ctx.getters && (ctx.getters === true || ctx.getters === 'get' && !d.set || ctx.getters === 'set' && d.set)) {
      try {
        const v = d.get.call(value);
        ctx.indentationLvl += 2;
        s = v === null || typeof v !== 'object' ? `${ctx.stylize(`[${label}:`, 'special')} ${v === null ? 'null' : formatValue(ctx, v, recurseTimes)}${ctx.stylize(']', 'special')}` :
          `${ctx.stylize(`[${label}]`, 'special')} ${formatValue(ctx, v, recurseTimes)}`;
        ctx.indentationLvl -= 2;
      } catch (e) {
        s = ctx.stylize(`[${label}: <Inspection threw (${e.message})>]`, 'special');
      }
    } else s = ctx.stylize(`[${label}]`, 'special');
  } else if (d.set !== undefined) s = ctx.stylize('[Setter]', 'special');
  else s = ctx.stylize('undefined', 'undefined');
  if (type === 1 && (typeof key === 'number' || isIndex(key))) return s;
  let name;
  if (typeof key === 'symbol') name = `[${ctx.stylize(key.toString(), 'symbol')}]`;
  else if (key === '__proto__') name = "['__proto__']";
  else if (d.enumerable === false) name = `[${key}]`;
  else if (identifier.test(key)) name = ctx.stylize(key, 'name');
  else name = ctx.stylize(quote(key), 'string');
  return `${name}:${extra}${s}`;
}

// eslint-disable-next-line no-control-regex
const ansi = /[\u001B\u009B][[\]()#;?]*(?:(?:(?:[a-zA-Z\d]*(?:;[-a-zA-Z\d/#&.:=?%@~_]+)*)?\u0007)|(?:(?:\d{1,4}(?:;\d{0,4})*)?[\dA-PR-TZcf-ntqry=><~]))/g;
const strip = (s) => s.replace(ansi, '');
const len = (ctx, s) => ctx.colors ? strip(s).length : s.length;

function group(ctx, output, value) {
  let total = 0, max = 0, i = 0;
  let n = output.length;
  if (ctx.maxArrayLength < output.length) n--; // the last one says how many more there are
  const lens = new Array(n);
  for (; i < n; i++) {
    const l = ctx.colors ? width(strip(output[i])) : width(output[i]);
    lens[i] = l;
    total += l + 2;
    if (max < l) max = l;
  }
  const actual = max + 2;
  if (actual * 3 + ctx.indentationLvl < ctx.breakLength && (total / actual > 5 || max <= 6)) {
    const bias = Math.sqrt(actual - total / output.length);
    const biased = Math.max(actual - 3 - bias, 1);
    const columns = Math.min(Math.round(Math.sqrt(2.5 * biased * n) / biased), Math.floor((ctx.breakLength - ctx.indentationLvl) / actual), ctx.compact * 4, 15);
    if (columns <= 1) return output;
    const out = [], most = [];
    for (let c = 0; c < columns; c++) {
      let line = 0;
      for (let j = c; j < n; j += columns) if (lens[j] > line) line = lens[j];
      most.push(line + 2);
    }
    let order = String.prototype.padStart;
    if (value !== undefined) {
      for (let k = 0; k < output.length; k++) {
        if (typeof value[k] !== 'number' && typeof value[k] !== 'bigint') {
          order = String.prototype.padEnd;
          break;
        }
      }
    }
    for (let k = 0; k < n; k += columns) {
      const last = Math.min(k + columns, n);
      let s = '', j = k;
      for (; j < last - 1; j++) s += order.call(`${output[j]}, `, most[j - k] + output[j].length - lens[j], ' ');
      if (order === String.prototype.padStart) s += output[j].padStart(most[j - k] + output[j].length - lens[j] - 2, ' ');
      else s += output[j];
      out.push(s);
    }
    if (ctx.maxArrayLength < output.length) out.push(output[n]);
    output = out;
  }
  return output;
}

function reduce(ctx, output, base, braces, extras, recurseTimes, value) {
  if (ctx.compact !== true) {
    if (typeof ctx.compact === 'number' && ctx.compact >= 1) {
      const entries = output.length;
      if (extras === 1 && entries > 6) output = group(ctx, output, value);
      if (ctx.currentDepth - recurseTimes < ctx.compact && entries === output.length) {
        const start = output.length + ctx.indentationLvl + braces[0].length + base.length + 10;
        if (fits(ctx, output, start, base)) {
          const joined = output.join(', ');
          if (!joined.includes('\n')) return `${base ? `${base} ` : ''}${braces[0]} ${joined} ${braces[1]}`;
        }
      }
    }
    const indent = `\n${' '.repeat(ctx.indentationLvl)}`;
    return `${base ? `${base} ` : ''}${braces[0]}${indent}  ${output.join(`,${indent}  `)}${indent}${braces[1]}`;
  }
  if (fits(ctx, output, 0, base)) return `${braces[0]}${base ? ` ${base}` : ''} ${output.join(', ')} ${braces[1]}`;
  const indent = `\n${' '.repeat(ctx.indentationLvl)}`;
  const ln = base === '' && braces[0].length === 1 ? ' ' : `${base ? ` ${base}` : ''}\n${indent}  `;
  return `${braces[0]}${ln}${output.join(`,${indent}  `)} ${braces[1]}`;
}
function fits(ctx, output, start, base) {
  let total = output.length + start;
  if (total + output.length > ctx.breakLength) return false;
  for (const s of output) {
    total += len(ctx, s);
    if (total > ctx.breakLength) return false;
  }
  return base === '' || !base.includes('\n');
}

// width is how many columns a text takes on a terminal.
function width(s) {
  // eslint-disable-next-line no-control-regex
  if (/^[\u0020-\u007e]*$/.test(s)) return s.length;
  let n = 0;
  for (const c of s.normalize('NFC')) {
    const p = c.codePointAt(0);
    if (p < 32 || p >= 0x7f && p < 0xa0 || /\p{Mn}|\p{Me}|\p{Cf}/u.test(c)) continue;
    n += p >= 0x1100 && (p <= 0x115f || p >= 0x2e80 && p <= 0xa4cf && p !== 0x303f || p >= 0xac00 && p <= 0xd7a3 || p >= 0xf900 && p <= 0xfaff ||
      p >= 0xfe30 && p <= 0xfe6f || p >= 0xff00 && p <= 0xff60 || p >= 0xffe0 && p <= 0xffe6 || p >= 0x1f300 && p <= 0x1f64f || p >= 0x1f900 && p <= 0x1f9ff ||
      p >= 0x20000 && p <= 0x3fffd) ? 2 : 1;
  }
  return n;
}

function builtinOrNoToString(v) {
  if (typeof v.toString !== 'function') return true;
  if (hasOwn(v, 'toString')) return false;
  let p = v;
  do p = Object.getPrototypeOf(p); while (p && !hasOwn(p, 'toString'));
  if (!p) return true;
  const d = Object.getOwnPropertyDescriptor(p, 'constructor');
  return d !== undefined && typeof d.value === 'function' && builtins.has(d.value.name);
}
const builtins = new Set(Object.getOwnPropertyNames(globalThis).filter((n) => /^[A-Z][a-zA-Z0-9]+$/.test(n)));

function format(...args) { return formatWithOptions({}, ...args); }
function formatWithOptions(options, ...args) {
  const first = args[0];
  let a = 0, str = '', join = '';
  if (typeof first === 'string') {
    if (args.length === 1) return first;
    let temp, last = 0;
    for (let i = 0; i < first.length - 1; i++) {
      if (first.charCodeAt(i) !== 37) continue;
      const next = first.charCodeAt(++i);
      if (a + 1 !== args.length) {
        const v = args[a + 1];
        switch (next) {
          case 115: // s
            if (typeof v === 'number') temp = number(plain, v, false);
            else if (typeof v === 'bigint') temp = `${v}n`;
            else if (typeof v !== 'object' || v === null || !builtinOrNoToString(v)) temp = String(v);
            else temp = inspect(v, { ...options, compact: 3, colors: false, depth: 0 });
            a++;
            break;
          case 106: // j
            try { temp = JSON.stringify(v); } catch (e) {
              if (!/circular/i.test(e.message)) throw e;
              temp = '[Circular]';
            }
            a++;
            break;
          case 100: // d
            temp = typeof v === 'bigint' ? `${v}n` : typeof v === 'symbol' ? number(plain, NaN, false) : number(plain, Number(v), false);
            a++;
            break;
          case 79: temp = inspect(v, options); a++; break;
          case 111: temp = inspect(v, { ...options, showHidden: true, showProxy: true, depth: 4 }); a++; break;
          case 105: // i
            temp = typeof v === 'bigint' ? `${v}n` : typeof v === 'symbol' ? 'NaN' : number(plain, parseInt(v), false);
            a++;
            break;
          case 102: temp = typeof v === 'symbol' ? 'NaN' : number(plain, parseFloat(v), false); a++; break;
          case 99: temp = ''; a++; break;
          case 37:
            str += first.slice(last, i);
            last = i + 1;
            continue;
          default: continue;
        }
        if (last !== i - 1) str += first.slice(last, i - 1);
        str += temp;
        last = i + 1;
      } else if (next === 37) {
        str += first.slice(last, i);
        last = i + 1;
      }
    }
    if (last !== 0) {
      a++;
      join = ' ';
      if (last < first.length) str += first.slice(last);
    }
  }
  for (; a < args.length; a++) {
    const v = args[a];
    str += join + (typeof v !== 'string' ? inspect(v, options) : v);
    join = ' ';
  }
  return str;
}

module.exports = { inspect, format, formatWithOptions, strip, width, custom, brand, isError, typedNames };
