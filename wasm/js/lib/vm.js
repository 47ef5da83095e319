// Scripts in this realm; a context is an object whose properties its scripts see as variables.
'use strict';
const contexts = new WeakSet();
class Script {
  #text; #name;
  constructor(text, o) {
    this.#text = `${text}`;
    this.#name = typeof o === 'string' ? o : o && o.filename || 'evalmachine.<anonymous>';
    host.script(this.#text, this.#name, 32);
  }
  runInThisContext() { return host.script(this.#text, this.#name, 0); }
  runInContext(c) { return runInContext(this.#text, c, this.#name); }
  runInNewContext(c = {}) { return runInContext(this.#text, createContext(c), this.#name); }
  createCachedData() { return Buffer.alloc(0); }
}
const language = ['Object', 'Array', 'String', 'Number', 'Boolean', 'Symbol', 'BigInt', 'Math', 'JSON', 'Date', 'RegExp', 'Error', 'TypeError', 'RangeError', 'SyntaxError', 'ReferenceError', 'EvalError', 'URIError', 'Map',
  'Set', 'WeakMap', 'WeakSet', 'WeakRef', 'Promise', 'Proxy', 'Reflect', 'Function', 'parseInt', 'parseFloat', 'isNaN', 'isFinite', 'NaN', 'Infinity', 'undefined', 'ArrayBuffer', 'DataView', 'Uint8Array', 'Int8Array',
  'Uint16Array', 'Int16Array', 'Uint32Array', 'Int32Array', 'Float32Array', 'Float64Array', 'encodeURIComponent', 'decodeURIComponent', 'encodeURI', 'decodeURI', 'escape', 'unescape', 'Intl', 'eval', 'AggregateError'];
function createContext(o = {}) { contexts.add(o); return o; }
function runInContext(text, c, name = 'evalmachine.<anonymous>') {
  if (typeof name === 'object') name = name && name.filename || 'evalmachine.<anonymous>';
  host.script(`${text}`, name, 32);
  const outer = new Proxy(c, {
    has: (t, k) => k !== '__t' && k !== 'eval',
    get(t, k) { if (k === Symbol.unscopables) return undefined; if (k === 'globalThis') return t; if (k in t) return t[k]; if (language.includes(k)) return globalThis[k]; throw new ReferenceError(`${String(k)} is not defined`); },
    set(t, k, v) { t[k] = v; return true; },
  });
  // Names that the script declares become properties of the context, as they do there.
  const body = `${text}`.replace(/^(\s*)(?:var|let|const)\s+([A-Za-z_$][\w$]*)\s*=/gm, '$1$2 =').replace(/^(\s*)(async\s+)?function\s*(\*?)\s*([A-Za-z_$][\w$]*)/gm, '$1$4 = $2function$3 $4');
  return host.script('(function (__c, __t) { with (__c) { return eval(__t); } })', name, 0)(outer, body);
}
module.exports = {
  Script, createContext, isContext: (o) => contexts.has(o), runInContext, runInNewContext: (t, c = {}, o) => runInContext(t, createContext(c), o),
  runInThisContext: (t, o) => host.script(`${t}`, typeof o === 'string' ? o : o && o.filename || 'evalmachine.<anonymous>', 0), createScript: (t, o) => new Script(t, o),
  compileFunction: (t, params = [], o = {}) => host.script(`(function (${params.join(', ')}) {${t}\n})`, o.filename || '', 0), constants: {}, measureMemory: async () => ({}),
};
