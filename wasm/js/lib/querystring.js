'use strict';
const escape = (s) => encodeURIComponent(typeof s === 'string' ? s : typeof s === 'object' ? String(s) : `${s}`);
const unescape = (s) => { try { return decodeURIComponent(s); } catch { return unescapeBuffer(s).toString(); } };
function unescapeBuffer(s) {
  const out = [];
  const b = Buffer.from(s);
  for (let i = 0; i < b.length; i++) {
    const h = b[i] === 37 ? b.toString('latin1', i + 1, i + 3) : '';
    if (/^[0-9a-fA-F]{2}$/.test(h)) { out.push(parseInt(h, 16)); i += 2; } else out.push(b[i]);
  }
  return Buffer.from(out);
}
const prim = (v) => typeof v === 'string' ? v : typeof v === 'number' && isFinite(v) || typeof v === 'bigint' || typeof v === 'boolean' ? `${v}` : '';
function stringify(o, sep = '&', eq = '=', options) {
  const enc = options && typeof options.encodeURIComponent === 'function' ? options.encodeURIComponent : exports.escape;
  if (o === null || typeof o !== 'object') return '';
  return Object.keys(o).map((k) => {
    const key = enc(prim(k)) + (eq || '=');
    return Array.isArray(o[k]) ? o[k].map((v) => key + enc(prim(v))).join(sep || '&') : key + enc(prim(o[k]));
  }).filter((s) => s !== '').join(sep || '&');
}
function parse(s, sep = '&', eq = '=', options = {}) {
  const out = Object.create(null);
  if (typeof s !== 'string' || s.length === 0) return out;
  const max = options && typeof options.maxKeys === 'number' ? options.maxKeys : 1000;
  const dec = options && typeof options.decodeURIComponent === 'function' ? options.decodeURIComponent : exports.unescape;
  let parts = s.split(sep || '&');
  if (max > 0 && parts.length > max) parts = parts.slice(0, max);
  for (const p of parts) {
    if (p === '') continue;
    const i = p.indexOf(eq || '=');
    const k = dec((i < 0 ? p : p.slice(0, i)).replaceAll('+', ' ')), v = i < 0 ? '' : dec(p.slice(i + (eq || '=').length).replaceAll('+', ' '));
    if (out[k] === undefined) out[k] = v;
    else if (Array.isArray(out[k])) out[k].push(v);
    else out[k] = [out[k], v];
  }
  return out;
}
Object.assign(exports, { escape, unescape, unescapeBuffer, stringify, parse, encode: stringify, decode: parse });
