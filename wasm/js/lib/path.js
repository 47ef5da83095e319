'use strict';
const { argType } = require('internal/errors');
const check = (v, name) => { if (typeof v !== 'string') throw argType(name, 'string', v); };

function normalizeParts(path, allowAbove) {
  const out = [];
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part === '..') {
      if (out.length && out.at(-1) !== '..') out.pop();
      else if (allowAbove) out.push('..');
    } else out.push(part);
  }
  return out.join('/');
}
function resolve(...args) {
  let path = '', absolute = false;
  for (let i = args.length - 1; i >= -1 && !absolute; i--) {
    const p = i >= 0 ? args[i] : process.cwd();
    if (i >= 0) check(p, `paths[${i}]`);
    if (p.length === 0) continue;
    path = `${p}/${path}`;
    absolute = p.charCodeAt(0) === 47;
  }
  path = normalizeParts(path, !absolute);
  if (absolute) return `/${path}`;
  return path || '.';
}
function normalize(path) {
  check(path, 'path');
  if (path.length === 0) return '.';
  const absolute = path[0] === '/', trailing = path.at(-1) === '/';
  let p = normalizeParts(path, !absolute);
  if (p.length === 0) {
    if (absolute) return '/';
    return trailing ? './' : '.';
  }
  if (trailing) p += '/';
  return absolute ? `/${p}` : p;
}
function isAbsolute(path) { check(path, 'path'); return path.length > 0 && path[0] === '/'; }
function join(...args) {
  let joined;
  for (const a of args) {
    check(a, 'path');
    if (a.length > 0) joined = joined === undefined ? a : `${joined}/${a}`;
  }
  return joined === undefined ? '.' : normalize(joined);
}
function relative(from, to) {
  check(from, 'from');
  check(to, 'to');
  if (from === to) return '';
  from = resolve(from);
  to = resolve(to);
  if (from === to) return '';
  const a = from.split('/').filter(Boolean), b = to.split('/').filter(Boolean);
  let i = 0;
  while (i < a.length && i < b.length && a[i] === b[i]) i++;
  return [...a.slice(i).map(() => '..'), ...b.slice(i)].join('/');
}
function dirname(path) {
  check(path, 'path');
  if (path.length === 0) return '.';
  const p = path.replace(/\/+$/, '');
  if (p === '') return '/';
  const i = p.lastIndexOf('/');
  if (i === -1) return '.';
  const d = p.slice(0, i).replace(/\/+$/, '');
  if (d === '') return path.startsWith('//') && i === 1 ? '//' : '/';
  return d;
}
function basename(path, suffix) {
  if (suffix !== undefined) check(suffix, 'suffix');
  check(path, 'path');
  let p = path.replace(/\/+$/, '');
  p = p.slice(p.lastIndexOf('/') + 1);
  if (suffix !== undefined && suffix.length && p.endsWith(suffix) && p !== suffix) p = p.slice(0, -suffix.length);
  return p;
}
function extname(path) {
  check(path, 'path');
  const b = basename(path);
  const i = b.lastIndexOf('.');
  if (i <= 0 || b === '..') return '';
  return b.slice(i);
}
function parse(path) {
  check(path, 'path');
  const r = { root: '', dir: '', base: '', ext: '', name: '' };
  if (path.length === 0) return r;
  if (path[0] === '/') r.root = '/';
  r.base = basename(path);
  r.ext = extname(path);
  r.name = r.ext ? r.base.slice(0, -r.ext.length) : r.base;
  const p = path.replace(/\/+$/, '');
  const i = p.lastIndexOf('/');
  r.dir = i === -1 ? '' : i === 0 ? '/' : p.slice(0, i);
  if (p === '') r.dir = '/';
  return r;
}
function format(o) {
  if (o === null || typeof o !== 'object') throw argType('pathObject', 'Object', o);
  const dir = o.dir || o.root;
  const base = o.base || `${o.name || ''}${o.ext ? `${o.ext[0] === '.' ? '' : '.'}${o.ext}` : ''}`;
  if (!dir) return base;
  return dir === o.root ? `${dir}${base}` : `${dir}/${base}`;
}
function matchesGlob(path, pattern) { return require('internal/glob').toRegExp(pattern).test(path); }
const posix = { resolve, normalize, isAbsolute, join, relative, toNamespacedPath: (p) => p, dirname, basename, extname, format, parse, matchesGlob, sep: '/', delimiter: ':', win32: null, posix: null };
posix.posix = posix;
posix.win32 = { ...posix, sep: '\\', delimiter: ';' };
posix.win32.win32 = posix.win32;
module.exports = posix;
