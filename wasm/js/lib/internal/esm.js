// ES modules: names are paths, or node:NAME.
'use strict';
const resolver = require('internal/resolve');
const path = require('path');
const invalid = /^(?:arguments|await|break|case|catch|class|const|continue|debugger|default|delete|do|else|enum|eval|export|extends|false|finally|for|function|if|implements|import|in|instanceof|interface|let|new|null|package|private|protected|public|return|static|super|switch|this|throw|true|try|typeof|var|void|while|with|yield)$/;

const known = new Set();
internal.isESM = (f) => known.has(f);
const baseOf = (base) => base.startsWith('/') ? base : `${process.cwd()}/${base}`;
exports.resolve = (base, name) => {
  if (internal.isBuiltin(name)) return name.startsWith('node:') ? name : `node:${name}`;
  if (name.startsWith('node:')) throw require('internal/errors').coded(Error, 'ERR_UNKNOWN_BUILTIN_MODULE', `No such built-in module: ${name}`);
  if (name.startsWith('data:') || /^https?:/.test(name)) {
    if (name.startsWith('data:')) return name;
    throw require('internal/errors').coded(Error, 'ERR_UNSUPPORTED_ESM_URL_SCHEME', `Only URLs with a scheme in: file, data, and node are supported by the default ESM loader. Received protocol '${name.split(':')[0]}:'`);
  }
  const query = /[?#].*$/.exec(name);
  const f = resolver.esm(name, baseOf(base));
  return query && (name.startsWith('.') || name.startsWith('/') || name.startsWith('file:')) ? f + query[0] : f;
};
// exported returns what a CommonJS module's value looks like to import.
function exported(value) {
  const out = { default: value };
  if (value !== null && (typeof value === 'object' || typeof value === 'function')) {
    for (const k of Object.keys(value)) {
      if (k === 'default') { if (!value.__esModule) continue; }
      try { if (k !== 'default') out[k] = value[k]; } catch { /* a getter that throws */ }
    }
    if (Object.hasOwn(value, '__esModule')) out.__esModule = value.__esModule;
  }
  out['module.exports'] = value;
  return out;
}
exports.load = (name) => {
  if (name.startsWith('node:')) {
    const m = internal.require(name);
    const out = { default: m };
    for (const k of Object.keys(m)) if (k !== 'default') out[k] = m[k];
    if (name === 'node:process' || name === 'node:console') for (const k of ['on', 'once', 'emit', 'off', 'stdin', 'stdout', 'stderr']) if (m[k]) out[k] = m[k];
    return out;
  }
  if (name.startsWith('data:')) {
    const m = /^data:([^,;]*)((?:;[^,]*)?),(.*)$/s.exec(name);
    const text = m[2].includes('base64') ? Buffer.from(m[3], 'base64').toString() : decodeURIComponent(m[3]);
    return m[1] === 'application/json' ? { default: JSON.parse(text) } : text;
  }
  const file = name.replace(/[?#].*$/, '');
  if (file.endsWith('.json')) return { default: JSON.parse(require('fs').readFileSync(file, 'utf8')) };
  if (file.endsWith('.node')) throw require('internal/errors').notHere(`${file}: native code`);
  if (file.endsWith('.cjs')) return exported(require('module')._load(file, null, false));
  const text = require('fs').readFileSync(file, 'utf8');
  if (!resolver.isModule(file, text)) {
    const p = resolver.scope(file);
    if (file.endsWith('.js') || !(p && p.type === 'module')) return exported(require('module')._load(file, null, false));
  }
  return text.startsWith('#!') ? `//${text}` : text;
};
exports.meta = (meta, name) => {
  const file = name.replace(/[?#].*$/, '');
  if (file.startsWith('/')) {
    known.add(file);
    meta.dirname = path.dirname(file);
    meta.filename = file;
    meta.resolve = (s) => {
      const r = exports.resolve(file, s);
      return r.startsWith('/') ? require('url').pathToFileURL(r).href : r;
    };
    meta.url = require('url').pathToFileURL(file).href + name.slice(file.length);
  } else meta.url = name.startsWith('[') ? `file://${process.cwd()}/${name}` : name;
  if (name === internal.mainModuleName) meta.main = true;
};
// run starts a module by its path, and returns the promise of its end.
exports.run = (file, text = exports.load(file)) => {
  if (typeof text !== 'string') return Promise.resolve();
  internal.mainModuleName = file;
  return host.module(text, file);
};
exports.requireSync = (file) => {
  const wrapper = `import * as ns from ${JSON.stringify(file)}; globalThis[Symbol.for('agentrun.ns')] = ns;`;
  const p = host.module(wrapper, `${file}?require`);
  host.jobs();
  const [state, reason] = host.promise(p);
  if (state === 2) {
    p.catch(() => {});
    throw reason;
  }
  if (state === 0) throw require('internal/errors').coded(Error, 'ERR_REQUIRE_ASYNC_MODULE', 'require() cannot be used on an ESM graph with top-level await. Use import() instead.');
  return globalThis[Symbol.for('agentrun.ns')];
};
