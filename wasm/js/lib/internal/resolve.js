// Where modules are: paths, node_modules, package.json with main, exports and imports.
'use strict';
const path = require('path');
const { coded } = require('internal/errors');
const S_IFMT = 0o170000;

const type = (f) => { const st = host.stat(f, false); return typeof st === 'number' ? 0 : (st[2] & S_IFMT) === 0o040000 ? 2 : 1; };
const packages = new Map();
function readPackage(dir) {
  const file = dir === '/' ? '/package.json' : `${dir}/package.json`;
  if (packages.has(file)) return packages.get(file);
  let o = null;
  const fd = host.open(file, 0, 0);
  if (fd >= 0) {
    const b = host.readAll(fd);
    host.close(fd);
    try {
      o = JSON.parse(host.decode(b, 0, b.length, false));
    } catch (e) {
      throw coded(Error, 'ERR_INVALID_PACKAGE_CONFIG', `Invalid package config ${file}.${e.message ? ` ${e.message}` : ''}`);
    }
    if (o) Object.defineProperty(o, 'dir', { value: dir, enumerable: false });
  }
  packages.set(file, o);
  return o;
}
internal.atStart.push(() => packages.clear());

// scope returns the package.json that a file is subject to.
function scope(file) {
  for (let d = path.dirname(file); ; d = path.dirname(d)) {
    if (path.basename(d) !== 'node_modules') {
      const p = readPackage(d);
      if (p) return p;
    }
    if (d === '/' || d === '.') return null;
  }
}
const extensions = ['.js', '.json', '.node', '.cjs', '.mjs'];
function real(f) { const r = host.realpath(f); return typeof r === 'string' ? r : f; }

// file finds a file as require does: as it is, with an extension, or as a directory.
function file(f, slash = false) {
  const t = type(f);
  if (t === 1 && !slash) return real(f);
  if (!slash) for (const e of extensions.slice(0, 3)) if (type(f + e) === 1) return real(f + e);
  if (t !== 2) return null;
  const p = readPackage(f);
  if (p && typeof p.main === 'string') {
    const m = path.resolve(f, p.main);
    const found = type(m) === 1 ? real(m) : withExtension(m) || withExtension(`${m}/index`);
    if (found) return found;
  }
  return withExtension(`${f}/index`);
}
function withExtension(f) {
  for (const e of extensions.slice(0, 3)) if (type(f + e) === 1) return real(f + e);
  return null;
}

// target resolves what exports or imports of a package say, for the conditions that hold.
function target(p, t, sub, conditions, internalNames) {
  if (typeof t === 'string') {
    if (!t.startsWith('./')) {
      if (internalNames && !t.startsWith('../') && !t.startsWith('/')) return bare(t.replaceAll('*', sub ?? '*'), `${p.dir}/package.json`, conditions);
      throw coded(Error, 'ERR_INVALID_PACKAGE_TARGET', `Invalid "exports" target "${t}" defined in the package config ${p.dir}/package.json`);
    }
    return path.join(p.dir, sub === null ? t : t.replaceAll('*', sub));
  }
  if (Array.isArray(t)) {
    for (const x of t) {
      const r = target(p, x, sub, conditions, internalNames);
      if (r) return r;
    }
    return null;
  }
  if (t && typeof t === 'object') {
    for (const c of Object.keys(t)) {
      if (c === 'default' || conditions.includes(c)) {
        const r = target(p, t[c], sub, conditions, internalNames);
        if (r !== undefined) return r;
      }
    }
    return undefined;
  }
  return t === null ? null : undefined;
}
function match(p, table, key, conditions, internalNames) {
  if (Object.prototype.hasOwnProperty.call(table, key) && !key.includes('*')) return target(p, table[key], null, conditions, internalNames);
  let best = '', sub;
  for (const k of Object.keys(table)) {
    const i = k.indexOf('*');
    if (i < 0) {
      if (k.endsWith('/') && key.startsWith(k) && k.length > best.length) return target(p, `${table[k]}*`, key.slice(k.length), conditions, internalNames);
      continue;
    }
    const head = k.slice(0, i), tail = k.slice(i + 1);
    if (key.startsWith(head) && key.length >= k.length && key.endsWith(tail) && head.length > best.indexOf('*')) {
      best = k;
      sub = key.slice(head.length, key.length - tail.length);
    }
  }
  return best ? target(p, table[best], sub, conditions, internalNames) : undefined;
}
function fromExports(p, name, sub, conditions) {
  let table = p.exports;
  if (typeof table === 'string' || Array.isArray(table) || !Object.keys(table).some((k) => k.startsWith('.'))) table = { '.': table };
  const r = match(p, table, sub, conditions, false);
  if (r) return r;
  if (sub === '.') throw coded(Error, 'ERR_PACKAGE_PATH_NOT_EXPORTED', `No "exports" main defined in ${p.dir}/package.json`);
  throw coded(Error, 'ERR_PACKAGE_PATH_NOT_EXPORTED', `Package subpath '${sub}' is not defined by "exports" in ${p.dir}/package.json`);
}
// bare finds a package's file, for the file that asks.
function bare(name, from, conditions, loose) {
  const m = /^((?:@[^/]+\/)?[^/]+)(\/.*)?$/.exec(name);
  if (!m) return null;
  const [, pkg, rest = ''] = m;
  const own = scope(from);
  if (own && own.name === pkg && own.exports !== undefined) return fromExports(own, pkg, `.${rest}`, conditions);
  const dirs = [];
  for (let d = path.dirname(from); ; d = path.dirname(d)) {
    if (path.basename(d) !== 'node_modules') dirs.push(d === '/' ? '/node_modules' : `${d}/node_modules`);
    if (d === '/' || d === '.') break;
  }
  if (process.env.NODE_PATH) dirs.push(...process.env.NODE_PATH.split(':').filter(Boolean));
  dirs.push('/usr/local/lib/node_modules', '/usr/lib/node_modules');
  for (const dir of dirs) {
    const root = `${dir}/${pkg}`;
    if (type(root) !== 2) {
      if (loose && type(dir) === 2) {
        const f = file(`${dir}/${name}`);
        if (f) return f;
      }
      continue;
    }
    const p = readPackage(root);
    if (p && p.exports !== undefined && p.exports !== null) return fromExports(p, pkg, `.${rest}`, conditions);
    const f = loose || rest === '' ? file(root + rest, rest.endsWith('/')) : type(root + rest) === 1 ? root + rest : null;
    if (f) return f;
  }
  return null;
}
const relative = (r) => r.startsWith('./') || r.startsWith('../') || r === '.' || r === '..' || r.startsWith('/');
exports.file = file;
exports.scope = scope;
exports.cjs = (request, dir) => {
  const conditions = ['require', 'node', 'module-sync'].slice(0, 2);
  if (relative(request)) return file(path.resolve(dir, request), /(^|\/)\.{0,2}$/.test(request) && request !== '/' || request.endsWith('/'));
  if (request.startsWith('#')) return imports(request, `${dir}/x`, conditions);
  const r = bare(request, `${dir}/x`, conditions, true);
  return r && (type(r) === 1 ? real(r) : file(r) || { missing: r });
};
function imports(request, from, conditions) {
  const p = scope(from);
  const r = p && p.imports && match(p, p.imports, request, conditions, true);
  if (!r) throw coded(TypeError, 'ERR_PACKAGE_IMPORT_NOT_DEFINED', `Package import specifier "${request}" is not defined${p ? ` in package ${p.dir}/package.json` : ''} imported from ${from}`);
  return r;
}
exports.esm = (request, from) => {
  const conditions = ['import', 'node'];
  const missing = (what, f) => {
    const e = coded(Error, 'ERR_MODULE_NOT_FOUND', `Cannot find ${what} '${f}' imported from ${from}`);
    if (what === 'module') e.url = require('url').pathToFileURL(f).href;
    return e;
  };
  let f;
  if (request.startsWith('file:')) f = require('url').fileURLToPath(request);
  else if (relative(request)) f = path.resolve(path.dirname(from), decodeURIComponent(request.replace(/[?#].*$/, '')));
  else if (request.startsWith('#')) f = imports(request, from, conditions);
  else {
    f = bare(request, from, conditions, false);
    if (!f) throw missing('package', request.match(/^(?:@[^/]+\/)?[^/]+/)[0]);
  }
  const t = type(f);
  if (t === 2) throw coded(Error, 'ERR_UNSUPPORTED_DIR_IMPORT', `Directory import '${f}' is not supported resolving ES modules imported from ${from}`);
  if (t !== 1) throw missing('module', f);
  return real(f);
};
// isModule tells whether a file is an ES module: by its name, its package, or else by its text.
exports.isModule = (f, text) => {
  if (f.endsWith('.mjs')) return true;
  if (f.endsWith('.cjs') || f.endsWith('.json')) return false;
  const p = scope(f);
  if (p && p.type === 'module') return true;
  if (p && p.type === 'commonjs') return false;
  return exports.looksLikeModule(text);
};
exports.looksLikeModule = (text) => {
  if (!/\b(?:import|export|await)\b/.test(text)) return false;
  if (!/^[ \t]*(?:import\s*(?:[\w$*{"']|$)|export\s*(?:[{*]|default\b|const\b|let\b|var\b|function\b|class\b|async\b))/m.test(text) && !/\bimport\.meta\b|(^|[^\w$.])await\b/m.test(text)) return false;
  try {
    host.script(`(function (exports, require, module, __filename, __dirname) { ${text.startsWith('#!') ? '//' : ''}${text}\n})`, 'probe', 32);
    return false;
  } catch {
    return /(^|[\n;}])\s*(?:import\b|export\b)/.test(text) || /\bimport\.meta\b|\bawait\b/.test(text);
  }
};
