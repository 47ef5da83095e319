'use strict';
const path = require('path');
function toRegExp(pattern) {
  let s = '', depth = 0;
  for (let i = 0; i < pattern.length; i++) {
    const c = pattern[i];
    if (c === '*') {
      if (pattern[i + 1] === '*') {
        i++;
        if (pattern[i + 1] === '/') { i++; s += '(?:[^/]+/)*'; } else s += '.*';
      } else s += '[^/]*';
    } else if (c === '?') s += '[^/]';
    else if (c === '{') { s += '(?:'; depth++; } else if (c === '}' && depth) { s += ')'; depth--; } else if (c === ',' && depth) s += '|';
    else if (c === '[') {
      const end = pattern.indexOf(']', i + 2);
      if (end < 0) s += '\\[';
      else { s += '[' + pattern.slice(i + 1, end).replace(/^!/, '^').replace(/\\/g, '\\\\') + ']'; i = end; }
    } else s += c.replace(/[.+^$()|\\{}]/g, '\\$&');
  }
  return new RegExp(`^${s}$`, 's');
}
function* glob(patterns, o = {}) {
  const cwd = o.cwd ? path.resolve(String(o.cwd)) : process.cwd();
  for (const p of [].concat(patterns)) {
    const re = toRegExp(path.isAbsolute(p) ? p : path.normalize(p));
    const fixed = p.split('/').slice(0, Math.max(0, p.split('/').findIndex((x) => /[*?[{]/.test(x)))).join('/');
    const seen = function* (dir, rel) {
      const list = host.readdir(dir);
      if (typeof list === 'number') return;
      const names = [];
      for (let i = 0; i < list.length; i += 2) names.push([list[i], list[i + 1]]);
      names.sort((a, b) => a[0] < b[0] ? -1 : 1);
      for (const [n, t] of names) {
        const r = rel ? rel === '/' ? `/${n}` : `${rel}/${n}` : n;
        if (o.exclude && (typeof o.exclude === 'function' ? o.exclude(n) : [].concat(o.exclude).some((x) => toRegExp(x).test(r)))) continue;
        if (re.test(r)) yield r;
        if (t === 3) yield* seen(`${dir}/${n}`, r);
      }
    };
    if (!/[*?[{]/.test(p)) { if (Array.isArray(host.stat(path.resolve(cwd, p), false))) yield p; continue; }
    yield* seen(path.resolve(cwd, fixed), path.isAbsolute(p) ? fixed || '/' : fixed);
  }
}
module.exports = { toRegExp, glob };
