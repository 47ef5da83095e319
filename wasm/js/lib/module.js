'use strict';
const fs = require('fs');
const path = require('path');
const resolver = require('internal/resolve');

function Module(id = '', parent) {
  this.id = id;
  this.path = path.dirname(id);
  this.exports = {};
  Object.defineProperty(this, 'parent', { value: parent, writable: true, configurable: true, enumerable: false });
  this.filename = null;
  this.loaded = false;
  this.children = [];
  if (parent && parent.children) parent.children.push(this);
}
Module._cache = Object.create(null);
Module._pathCache = Object.create(null);
Module._extensions = Object.create(null);
Module.globalPaths = [];
Module.builtinModules = internal.builtins.filter((n) => n !== 'test');
Module.isBuiltin = internal.isBuiltin;
Module.Module = Module;
Module._debug = () => {};
Module.syncBuiltinESMExports = () => {};
Module.findSourceMap = () => undefined;
Module.register = () => {};
Module.enableCompileCache = () => ({ status: 3 });
Module._nodeModulePaths = (from) => {
  const out = [];
  for (let d = path.resolve(from); ; d = path.dirname(d)) {
    if (path.basename(d) !== 'node_modules') out.push(d === '/' ? '/node_modules' : `${d}/node_modules`);
    if (d === '/') return out;
  }
};
Module._resolveLookupPaths = (request, parent) => internal.isBuiltin(request) ? null : Module._nodeModulePaths(parent ? parent.path : '.');
Module._findPath = (request, paths) => {
  for (const p of paths || ['.']) {
    const f = resolver.file(path.resolve(p, request));
    if (f) return f;
  }
  return false;
};
Module._resolveFilename = (request, parent, isMain, options) => {
  if (internal.isBuiltin(request)) return request;
  if (request.startsWith('node:')) throw require('internal/errors').coded(Error, 'ERR_UNKNOWN_BUILTIN_MODULE', `No such built-in module: ${request}`);
  const bases = options && options.paths ? options.paths : [parent && parent.filename ? path.dirname(parent.filename) : process.cwd()];
  for (const base of bases) {
    const f = resolver.cjs(request, base);
    if (f && f.missing) {
      const e = new Error(`Cannot find module '${f.missing}'`);
      e.code = 'MODULE_NOT_FOUND';
      e.path = f.missing;
      throw e;
    }
    if (f) return f;
  }
  const stack = [];
  for (let m = parent; m; m = m.parent) stack.push(m.filename || m.id);
  let message = `Cannot find module '${request}'`;
  if (stack.length) message += `\nRequire stack:\n- ${stack.join('\n- ')}`;
  const e = new Error(message);
  e.code = 'MODULE_NOT_FOUND';
  e.requireStack = stack;
  throw e;
};
Module._load = (request, parent, isMain) => {
  if (internal.isBuiltin(request)) return internal.require(request);
  const filename = Module._resolveFilename(request, parent, isMain);
  const known = Module._cache[filename];
  if (known) {
    if (parent && parent.children && !parent.children.includes(known)) parent.children.push(known);
    return known.exports;
  }
  const m = new Module(filename, parent);
  if (isMain) {
    process.mainModule = m;
    m.id = '.';
  }
  Module._cache[filename] = m;
  let ok = false;
  try {
    m.load(filename);
    ok = true;
  } finally {
    if (!ok) {
      delete Module._cache[filename];
      const list = parent && parent.children;
      if (list && list.includes(m)) list.splice(list.indexOf(m), 1);
    }
  }
  return m.exports;
};
Module.prototype.load = function load(filename) {
  this.filename = filename;
  this.path = path.dirname(filename);
  this.paths = Module._nodeModulePaths(this.path);
  const ext = path.extname(filename);
  (Module._extensions[ext] || Module._extensions['.js'])(this, filename);
  this.loaded = true;
};
Module.prototype.require = function(id) {
  if (typeof id !== 'string') throw require('internal/errors').argType('id', 'string', id);
  if (id === '') throw require('internal/errors').argValue('id', id, 'must be a non-empty string');
  return Module._load(id, this, false);
};
function makeRequire(mod) {
  const r = function require(id) { return mod.require(id); };
  r.resolve = (request, options) => Module._resolveFilename(request, mod, false, options);
  r.resolve.paths = (request) => Module._resolveLookupPaths(request, mod);
  r.main = process.mainModule;
  r.extensions = Module._extensions;
  r.cache = Module._cache;
  return r;
}
Module.wrapper = ['(function (exports, require, module, __filename, __dirname) { ', '\n});'];
Module.wrap = (s) => Module.wrapper[0] + s + Module.wrapper[1];
Module.prototype._compile = function(content, filename) {
  if (content.charCodeAt(0) === 0xfeff) content = content.slice(1);
  if (content.startsWith('#!')) content = `//${content}`;
  let f;
  try {
    f = host.script(Module.wrap(content), filename, 0);
  } catch (e) {
    internal.explain(e, filename, content);
    throw e;
  }
  return Reflect.apply(f, this.exports, [this.exports, makeRequire(this), this, filename, path.dirname(filename)]);
};
Module._extensions['.js'] = (m, filename) => {
  const text = fs.readFileSync(filename, 'utf8');
  if (resolver.isModule(filename, text)) {
    m.exports = require('internal/esm').requireSync(filename);
    return;
  }
  m._compile(text, filename);
};
Module._extensions['.cjs'] = (m, filename) => m._compile(fs.readFileSync(filename, 'utf8'), filename);
Module._extensions['.mjs'] = (m, filename) => { m.exports = require('internal/esm').requireSync(filename); };
Module._extensions['.json'] = (m, filename) => {
  const text = fs.readFileSync(filename, 'utf8');
  try {
    m.exports = JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);
  } catch (e) {
    e.message = `${filename}: ${e.message}`;
    throw e;
  }
};
Module._extensions['.node'] = (m, filename) => {
  const e = new Error(`${filename}: native addons can't be loaded in this sandbox`);
  e.code = 'ERR_DLOPEN_FAILED';
  throw e;
};
Module.createRequire = (from) => {
  if (typeof from !== 'string' || from.startsWith('file:')) from = require('url').fileURLToPath(from);
  const m = new Module(from);
  m.filename = from;
  m.path = from.endsWith('/') ? from : path.dirname(from);
  return makeRequire(m);
};
Module.runMain = (main = process.argv[1]) => Module._load(main, null, true);
Module.makeRequire = makeRequire;
module.exports = Module;
