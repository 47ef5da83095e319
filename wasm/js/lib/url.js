// URLs as the WHATWG's standard has them, and Node's older functions.
'use strict';
const { argType, coded } = require('internal/errors');
const { inspect, custom } = require('internal/inspect');
const special = { 'http:': '80', 'https:': '443', 'ftp:': '21', 'ws:': '80', 'wss:': '443', 'file:': '' };
const enc = (s, set) => s.replace(set, (c) => Array.from(host.encode(c), (b) => '%' + b.toString(16).toUpperCase().padStart(2, '0')).join(''));
const C0 = /[\u0000-\u001f\u007f]|[^\u0000-\u007e]/gu;
const FRAGMENT = /[\u0000-\u0020"<>`\u007f]|[^\u0000-\u007e]/gu;
const QUERY = /[\u0000-\u0020"#<>\u007f]|[^\u0000-\u007e]/gu;
const SQUERY = /[\u0000-\u0020"#'<>\u007f]|[^\u0000-\u007e]/gu;
const PATH = /[\u0000-\u0020"#<>?`{}\u007f^]|[^\u0000-\u007e]/gu;
const USER = /[\u0000-\u0020"#<>?`{}/:;=@[\\\]^|\u007f]|[^\u0000-\u007e]/gu;

function bad(input, base) {
  const e = coded(TypeError, 'ERR_INVALID_URL', 'Invalid URL', bad);
  e.input = input;
  if (base !== undefined) e.base = base;
  return e;
}
function ipv4(h) {
  const parts = h.split('.');
  if (parts.at(-1) === '' && parts.length > 1) parts.pop();
  if (!/^(0[xX][0-9a-fA-F]*|[0-9]+)$/.test(parts.at(-1))) return undefined;
  if (parts.length > 4) return null;
  const nums = [];
  for (const p of parts) {
    const n = /^0[xX][0-9a-fA-F]*$/.test(p) ? parseInt(p.slice(2) || '0', 16) : /^0[0-7]*$/.test(p) ? parseInt(p, 8) : /^[0-9]+$/.test(p) && p !== '' && !/^0/.test(p) ? +p : NaN;
    if (isNaN(n)) return null;
    nums.push(n);
  }
  for (let i = 0; i < nums.length - 1; i++) if (nums[i] > 255) return null;
  if (nums.at(-1) >= 256 ** (5 - nums.length)) return null;
  let v = nums.pop();
  nums.forEach((n, i) => { v += n * 256 ** (3 - i); });
  return [v / 2 ** 24 | 0, v / 65536 & 255, v / 256 & 255, v & 255].map((x) => x & 255).join('.');
}
function ipv6(h) {
  let tail = [];
  const m = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(h);
  if (m) {
    const b = m.slice(2).map(Number);
    if (b.some((x) => x > 255)) return null;
    tail = [b[0] << 8 | b[1], b[2] << 8 | b[3]];
    h = m[1].endsWith('::') ? m[1] : m[1].slice(0, -1);
  }
  const halves = h.split('::');
  if (halves.length > 2) return null;
  const read = (s) => s === '' ? [] : s.split(':').map((x) => /^[0-9a-fA-F]{1,4}$/.test(x) ? parseInt(x, 16) : NaN);
  let a = read(halves[0]), b = halves.length > 1 ? read(halves[1]) : [];
  if (halves.length > 1) b = b.concat(tail); else a = a.concat(tail);
  const n = a.length + b.length;
  if (halves.length === 1 ? n !== 8 : n > 7) return null;
  const all = [...a, ...new Array(8 - n).fill(0), ...b];
  if (all.some(isNaN)) return null;
  let best = -1, len = 1;
  for (let i = 0; i < 8; i++) {
    let j = i;
    while (j < 8 && all[j] === 0) j++;
    if (j - i > len) { best = i; len = j - i; }
  }
  if (best < 0) return all.map((x) => x.toString(16)).join(':');
  return `${all.slice(0, best).map((x) => x.toString(16)).join(':')}::${all.slice(best + len).map((x) => x.toString(16)).join(':')}`;
}
function hostOf(h, isSpecial) {
  if (h.startsWith('[')) {
    if (!h.endsWith(']')) return null;
    const a = ipv6(h.slice(1, -1));
    return a === null ? null : `[${a}]`;
  }
  if (!isSpecial) return /[\u0000\t\n\r #/<>?@[\\\]^|]/.test(h) ? null : enc(h, C0);
  let d;
  try { d = decodeURIComponent(h.replace(/%(?![0-9a-fA-F]{2})/g, '%25')); } catch { return null; }
  d = require('punycode').toASCII(d.normalize('NFKC').toLowerCase().replace(/[\u00ad\u200b\u2060\ufeff]/g, '').replace(/[\u3002\uff0e\uff61]/g, '.'));
  if (d === '' || /[\u0000-\u0020"#%/:<>?@[\\\]^`{|}\u007f]/.test(d)) return null;
  const four = ipv4(d);
  return four === undefined ? d : four;
}
function dots(path, isSpecial, isFile) {
  const out = [];
  const parts = path.split('/');
  parts.forEach((p, i) => {
    const last = i === parts.length - 1;
    if (/^(\.|%2e)(\.|%2e)$/i.test(p)) {
      if (!(isFile && out.length === 1 && /^[a-zA-Z]:$/.test(out[0]))) out.pop();
      if (last) out.push('');
    } else if (/^(\.|%2e)$/i.test(p)) {
      if (last) out.push('');
    } else out.push(p);
  });
  return out.join('/');
}
function parse(input, base) {
  input = input.replace(/^[\u0000-\u0020]+|[\u0000-\u0020]+$/g, '').replace(/[\t\n\r]/g, '');
  const u = { protocol: '', username: '', password: '', host: null, port: '', path: '', opaque: false, query: null, hash: null };
  let rest = input;
  const hash = rest.indexOf('#');
  if (hash >= 0) {
    u.hash = enc(rest.slice(hash + 1), FRAGMENT);
    rest = rest.slice(0, hash);
  }
  const m = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(rest);
  let relative = !m;
  if (m) {
    u.protocol = m[1].toLowerCase() + ':';
    rest = rest.slice(m[0].length);
    if (base && special[u.protocol] !== undefined && u.protocol === base.protocol && u.protocol !== 'file:' && !/^[/\\]/.test(rest)) relative = true;
  } else {
    if (!base) return null;
    u.protocol = base.protocol;
  }
  const isSpecial = special[u.protocol] !== undefined, isFile = u.protocol === 'file:';
  const takeQuery = () => {
    const q = rest.indexOf('?');
    if (q >= 0) {
      u.query = enc(rest.slice(q + 1), isSpecial ? SQUERY : QUERY);
      rest = rest.slice(0, q);
    }
  };
  if (relative && base && base.opaque) {
    if (rest !== '' || hash < 0) return null;
    return { ...base, hash: u.hash };
  }
  takeQuery();
  if (isSpecial) rest = rest.replaceAll('\\', '/');
  const authority = rest.startsWith('//') || !relative && isSpecial && !isFile;
  if (authority) {
    rest = isSpecial && !isFile ? rest.replace(/^\/+/, '') : rest.slice(2);
    let i = rest.indexOf('/');
    if (i < 0) i = rest.length;
    let a = rest.slice(0, i);
    rest = rest.slice(i);
    if (isFile) {
      if (/^[a-zA-Z][:|]$/.test(a)) { rest = `/${a}${rest}`; a = ''; }
      const h = a === '' ? '' : hostOf(a, true);
      if (h === null) return null;
      u.host = h === 'localhost' ? '' : h;
    } else {
      const at = a.lastIndexOf('@');
      if (at >= 0) {
        const cred = a.slice(0, at);
        const c = cred.indexOf(':');
        u.username = enc(c < 0 ? cred : cred.slice(0, c), USER);
        u.password = c < 0 ? '' : enc(cred.slice(c + 1), USER);
        a = a.slice(at + 1);
      }
      const pm = /:([^:\]]*)$/.exec(a);
      if (pm && !(a.startsWith('[') && !a.includes(']'))) {
        if (!/^[0-9]*$/.test(pm[1]) || +pm[1] > 65535) return null;
        u.port = pm[1] === '' ? '' : String(+pm[1]);
        a = a.slice(0, pm.index);
      }
      if (u.port === special[u.protocol]) u.port = '';
      if (a === '' && (isSpecial || at >= 0 || u.port)) return null;
      u.host = a === '' ? '' : hostOf(a, isSpecial);
      if (u.host === null) return null;
    }
    u.path = dots(enc(rest, PATH), isSpecial, isFile);
  } else if (relative) {
    Object.assign(u, { username: base.username, password: base.password, host: base.host, port: base.port });
    if (rest === '') {
      u.path = base.path;
      if (u.query === null) u.query = base.query;
    } else u.path = dots(enc(rest.startsWith('/') ? rest : base.path.slice(0, base.path.lastIndexOf('/') + 1) + rest, PATH), isSpecial, isFile);
  } else if (isFile) {
    u.host = '';
    if (base && base.protocol === 'file:') {
      u.host = base.host;
      u.path = rest === '' ? base.path : dots(enc(rest.startsWith('/') ? rest : base.path.slice(0, base.path.lastIndexOf('/') + 1) + rest, PATH), true, true);
      if (rest === '' && u.query === null) u.query = base.query;
    } else u.path = dots(enc(rest, PATH), true, true);
  } else if (rest.startsWith('/')) u.path = dots(enc(rest, PATH), false, false);
  else {
    u.opaque = true;
    u.path = enc(rest, C0);
  }
  if (!u.opaque && isSpecial && !u.path.startsWith('/')) u.path = `/${u.path}`;
  if (!u.opaque && u.host !== null && u.path !== '' && !u.path.startsWith('/')) u.path = `/${u.path}`;
  return u;
}
function href(u, noHash) {
  let s = u.protocol;
  if (u.host !== null) {
    s += '//';
    if (u.username || u.password) s += u.username + (u.password ? `:${u.password}` : '') + '@';
    s += u.host + (u.port !== '' ? `:${u.port}` : '');
  } else if (!u.opaque && u.path.startsWith('//')) s += '/.';
  s += u.path;
  if (u.query !== null) s += `?${u.query}`;
  if (u.hash !== null && !noHash) s += `#${u.hash}`;
  return s;
}

const formEncode = (s) => enc(s.toWellFormed ? s.toWellFormed() : s, /[^*\-.0-9A-Z_a-z ]/gu).replaceAll(' ', '+');
function formDecode(s) {
  s = s.replaceAll('+', ' ');
  if (!s.includes('%')) return s;
  const b = host.encode(s), out = new Uint8Array(b.length);
  let n = 0;
  for (let i = 0; i < b.length; i++) {
    const h = b[i] === 37 ? parseInt(String.fromCharCode(b[i + 1], b[i + 2]).replace(/[^0-9a-fA-F]/g, 'x'), 16) : NaN;
    if (b[i] === 37 && i + 2 < b.length && /^[0-9a-fA-F]{2}$/.test(String.fromCharCode(b[i + 1], b[i + 2]))) { out[n++] = h; i += 2; } else out[n++] = b[i];
  }
  return host.decode(out, 0, n, false);
}
class URLSearchParams {
  #list = []; #changed = null;
  constructor(init) {
    if (init === undefined || init === null) return;
    if (typeof init === 'object' || typeof init === 'function') {
      const it = init[Symbol.iterator];
      if (it !== undefined && it !== null) {
        if (typeof it !== 'function') throw coded(TypeError, 'ERR_ARG_NOT_ITERABLE', 'Query pairs must be iterable');
        for (const pair of init) {
          const p = pair !== null && typeof pair === 'object' ? Array.from(pair) : null;
          if (!p || p.length !== 2) throw coded(TypeError, 'ERR_INVALID_TUPLE', 'Each query pair must be an iterable [name, value] tuple');
          this.#list.push([`${p[0]}`, `${p[1]}`]);
        }
      } else for (const k of Reflect.ownKeys(init)) {
        if (typeof k === 'string' && Object.prototype.propertyIsEnumerable.call(init, k)) this.#list.push([k, `${init[k]}`]);
      }
      return;
    }
    this.#parse(`${init}`.replace(/^\?/, ''));
  }
  #parse(s) {
    this.#list = s.split('&').filter((p) => p !== '').map((p) => { const i = p.indexOf('='); return i < 0 ? [formDecode(p), ''] : [formDecode(p.slice(0, i)), formDecode(p.slice(i + 1))]; });
  }
  static bind(p, f) { p.#changed = f; }
  static set(p, s) { p.#parse(s); }
  #update() { if (this.#changed) this.#changed(this.toString()); }
  get size() { return this.#list.length; }
  append(k, v) { this.#list.push([`${k}`, `${v}`]); this.#update(); }
  delete(k, v) { this.#list = this.#list.filter(([a, b]) => a !== `${k}` || v !== undefined && b !== `${v}`); this.#update(); }
  get(k) { const e = this.#list.find(([a]) => a === `${k}`); return e ? e[1] : null; }
  getAll(k) { return this.#list.filter(([a]) => a === `${k}`).map((e) => e[1]); }
  has(k, v) { return this.#list.some(([a, b]) => a === `${k}` && (v === undefined || b === `${v}`)); }
  set(k, v) {
    const i = this.#list.findIndex(([a]) => a === `${k}`);
    if (i < 0) this.#list.push([`${k}`, `${v}`]);
    else {
      this.#list[i][1] = `${v}`;
      this.#list = this.#list.filter(([a], j) => j <= i || a !== `${k}`);
    }
    this.#update();
  }
  sort() { this.#list.sort((a, b) => a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0); this.#update(); }
  forEach(f, self) { if (typeof f !== 'function') throw argType('callback', 'function', f); for (const [k, v] of this.#list) f.call(self, v, k, this); }
  * entries() { for (const [k, v] of this.#list) yield [k, v]; }
  * keys() { for (const [k] of this.#list) yield k; }
  * values() { for (const [, v] of this.#list) yield v; }
  [Symbol.iterator]() { return this.entries(); }
  toString() { return this.#list.map(([k, v]) => `${formEncode(k)}=${formEncode(v)}`).join('&'); }
  get [Symbol.toStringTag]() { return 'URLSearchParams'; }
  [custom](depth, o) {
    if (typeof depth === 'number' && depth < 0) return '[Object]';
    const s = this.#list.map(([k, v]) => `${inspect(k, o)} => ${inspect(v, o)}`);
    const one = s.join(', ');
    return s.length === 0 ? 'URLSearchParams {}' : one.length <= 72 ? `URLSearchParams { ${one} }` : `URLSearchParams {\n  ${s.join(',\n  ')} }`;
  }
}
const { bind, set: reset } = URLSearchParams;
delete URLSearchParams.bind;
delete URLSearchParams.set;

class URL {
  #u; #params;
  constructor(input, base) {
    if (arguments.length === 0) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "url" argument must be specified');
    input = `${input}`;
    let b;
    if (base !== undefined) {
      b = parse(`${base}`);
      if (!b) throw bad(input, `${base}`);
    }
    this.#u = parse(input, b);
    if (!this.#u) throw bad(input, base === undefined ? undefined : `${base}`);
  }
  static canParse(input, base) {
    const b = base === undefined ? undefined : parse(`${base}`);
    return b !== null && parse(`${input}`, b) !== null;
  }
  static parse(input, base) { return URL.canParse(input, base) ? new URL(input, base) : null; }
  static createObjectURL() { throw require('internal/errors').notHere('URL.createObjectURL'); }
  static revokeObjectURL() {}
  get href() { return href(this.#u); }
  set href(v) { const u = parse(`${v}`); if (!u) throw bad(`${v}`); this.#u = u; this.#sync(); }
  #sync() { if (this.#params) reset(this.#params, this.#u.query || ''); }
  get origin() { const u = this.#u; return special[u.protocol] === undefined || u.protocol === 'file:' ? u.protocol === 'blob:' ? new URL(u.path).origin : 'null' : `${u.protocol}//${u.host}${u.port !== '' ? `:${u.port}` : ''}`; }
  get protocol() { return this.#u.protocol; }
  set protocol(v) {
    const m = /^([a-zA-Z][a-zA-Z0-9+.-]*):?/.exec(`${v}`);
    if (!m) return;
    const p = m[1].toLowerCase() + ':';
    if ((special[p] !== undefined) !== (special[this.#u.protocol] !== undefined)) return;
    this.#u.protocol = p;
    if (this.#u.port === special[p]) this.#u.port = '';
  }
  get username() { return this.#u.username; }
  set username(v) { if (this.#u.host) this.#u.username = enc(`${v}`, USER); }
  get password() { return this.#u.password; }
  set password(v) { if (this.#u.host) this.#u.password = enc(`${v}`, USER); }
  get host() { const u = this.#u; return u.host === null ? '' : u.host + (u.port !== '' ? `:${u.port}` : ''); }
  set host(v) {
    if (this.#u.opaque) return;
    const m = /^(\[[^\]]*\]|[^:/?#\\]*)(?::(\d*))?/.exec(`${v}`);
    const h = m[1] === '' ? null : hostOf(m[1], special[this.#u.protocol] !== undefined);
    if (h === null) return;
    this.#u.host = h;
    if (m[2]) this.port = m[2];
  }
  get hostname() { return this.#u.host === null ? '' : this.#u.host; }
  set hostname(v) {
    if (this.#u.opaque) return;
    const m = /^(\[[^\]]*\]|[^:/?#\\]*)/.exec(`${v}`);
    const h = m[1] === '' ? null : hostOf(m[1], special[this.#u.protocol] !== undefined);
    if (h !== null) this.#u.host = h;
  }
  get port() { return this.#u.port; }
  set port(v) {
    v = `${v}`;
    if (!this.#u.host || this.#u.protocol === 'file:') return;
    if (v === '') { this.#u.port = ''; return; }
    const m = /^\d+/.exec(v);
    if (m && +m[0] <= 65535) this.#u.port = String(+m[0]) === special[this.#u.protocol] ? '' : String(+m[0]);
  }
  get pathname() { return this.#u.path; }
  set pathname(v) {
    if (this.#u.opaque) return;
    v = `${v}`;
    const s = special[this.#u.protocol] !== undefined;
    if (s) v = v.replaceAll('\\', '/');
    v = enc(v, PATH);
    if (!v.startsWith('/') && (s || this.#u.host !== null)) v = `/${v}`;
    this.#u.path = dots(v, s, this.#u.protocol === 'file:');
  }
  get search() { return this.#u.query ? `?${this.#u.query}` : ''; }
  set search(v) {
    v = `${v}`;
    this.#u.query = v === '' ? null : enc(v.replace(/^\?/, ''), special[this.#u.protocol] !== undefined ? SQUERY : QUERY);
    this.#sync();
  }
  get searchParams() {
    if (!this.#params) {
      this.#params = new URLSearchParams(this.#u.query || '');
      bind(this.#params, (s) => { this.#u.query = s === '' ? null : s; });
    }
    return this.#params;
  }
  get hash() { return this.#u.hash ? `#${this.#u.hash}` : ''; }
  set hash(v) { v = `${v}`; this.#u.hash = v === '' ? null : enc(v.replace(/^#/, ''), FRAGMENT); }
  toString() { return this.href; }
  toJSON() { return this.href; }
  get [Symbol.toStringTag]() { return 'URL'; }
  [custom](depth, o) {
    if (typeof depth === 'number' && depth < 0) return this.toString();
    const v = {};
    for (const k of ['href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'searchParams', 'hash']) v[k] = this[k];
    return `URL ${inspect(v, o)}`;
  }
}
for (const k of Object.getOwnPropertyNames(URL.prototype)) if (k !== 'constructor') Object.defineProperty(URL.prototype, k, { enumerable: true });

function fileURLToPath(u) {
  if (typeof u === 'string') u = new URL(u);
  else if (!u || !u.href) throw argType('path', ['string', 'URL'], u);
  if (u.protocol !== 'file:') throw coded(TypeError, 'ERR_INVALID_URL_SCHEME', 'The URL must be of scheme file');
  if (u.hostname !== '') throw coded(TypeError, 'ERR_INVALID_FILE_URL_HOST', 'File URL host must be "localhost" or empty on linux');
  if (/%2f/i.test(u.pathname)) throw coded(TypeError, 'ERR_INVALID_FILE_URL_PATH', 'File URL path must not include encoded / characters');
  return decodeURIComponent(u.pathname);
}
function pathToFileURL(p) {
  const path = require('path');
  let r = path.resolve(p);
  if (p.endsWith('/') && r !== '/') r += '/';
  const u = new URL('file:///');
  u.pathname = r.replace(/%/g, '%25').replace(/\\/g, '%5C').replace(/\n/g, '%0A').replace(/\r/g, '%0D').replace(/\t/g, '%09').replace(/\?/g, '%3F').replace(/#/g, '%23');
  return u;
}

// The older interface.
function Url() { for (const k of ['protocol', 'slashes', 'auth', 'host', 'port', 'hostname', 'hash', 'search', 'query', 'pathname', 'path', 'href']) this[k] = null; }
function urlParse(s, query, slashesDenoteHost) {
  if (s instanceof Url) return s;
  if (typeof s !== 'string') throw argType('url', 'string', s);
  const u = new Url();
  let rest = s.trim();
  const h = rest.indexOf('#');
  if (h >= 0) { u.hash = rest.slice(h); rest = rest.slice(0, h); }
  const q = rest.indexOf('?');
  if (q >= 0) { u.search = rest.slice(q); u.query = rest.slice(q + 1); rest = rest.slice(0, q); }
  const m = /^([a-zA-Z][a-zA-Z0-9+.-]*:)/.exec(rest);
  if (m) { u.protocol = m[1].toLowerCase(); rest = rest.slice(m[1].length); }
  if (rest.startsWith('//') && (m || slashesDenoteHost) && u.protocol !== 'javascript:') {
    u.slashes = true;
    rest = rest.slice(2);
    const i = rest.search(/[/\\]/);
    let a = i < 0 ? rest : rest.slice(0, i);
    rest = i < 0 ? '' : rest.slice(i);
    const at = a.lastIndexOf('@');
    if (at >= 0) { u.auth = decodeURIComponent(a.slice(0, at)); a = a.slice(at + 1); }
    const p = /:(\d*)$/.exec(a);
    if (p) { if (p[1]) u.port = p[1]; a = a.slice(0, p.index); }
    u.hostname = a.toLowerCase().replace(/^\[|\]$/g, '');
    u.host = a.toLowerCase() + (u.port ? `:${u.port}` : '');
  }
  u.pathname = rest ? enc(rest.replaceAll('\\', '/'), /[\u0000-\u0020"'<>\\^`{|}\u007f]|[^\u0000-\u007e]/gu) : u.slashes && special[u.protocol] !== undefined ? '/' : null;
  if (query) u.query = Object.assign(Object.create(null), require('querystring').parse(u.query || ''));
  u.path = u.pathname || u.search ? (u.pathname || '') + (u.search || '') : null;
  u.href = urlFormat(u);
  return u;
}
function urlFormat(u, o = {}) {
  if (typeof u === 'string') u = urlParse(u);
  if (u instanceof URL) {
    const c = new URL(u.href);
    if (o.auth === false) { c.username = ''; c.password = ''; }
    if (o.fragment === false) c.hash = '';
    if (o.search === false) c.search = '';
    return c.href;
  }
  if (u === null || typeof u !== 'object') throw argType('urlObject', ['Object', 'string'], u);
  const protocol = u.protocol ? u.protocol.replace(/:?$/, ':') : '';
  let h = '';
  const auth = u.auth ? `${encodeURIComponent(u.auth).replace(/%3A/i, ':')}@` : '';
  if (u.host) h = auth + u.host;
  else if (u.hostname) h = auth + (u.hostname.includes(':') ? `[${u.hostname}]` : u.hostname) + (u.port ? `:${u.port}` : '');
  let query = '';
  if (u.query !== null && typeof u.query === 'object') query = require('querystring').stringify(u.query);
  let search = u.search || (query ? `?${query}` : '');
  if (search && !search.startsWith('?')) search = `?${search}`;
  let hash = u.hash || '';
  if (hash && !hash.startsWith('#')) hash = `#${hash}`;
  let pathname = u.pathname || '';
  if (u.slashes || (special[protocol] !== undefined || !protocol) && h !== '') {
    h = `//${h}`;
    if (pathname && !pathname.startsWith('/')) pathname = `/${pathname}`;
  }
  return protocol + h + pathname.replace(/[?#]/g, encodeURIComponent) + search.replace('#', '%23') + hash;
}
Url.prototype.parse = function(...a) { Object.assign(this, urlParse(...a)); };
Url.prototype.format = function() { return urlFormat(this); };
Url.prototype.resolve = function(r) { return resolve(this.href, r); };
function resolve(from, to) {
  const r = new URL(to, new URL(from, 'resolve://'));
  if (r.protocol === 'resolve:') return r.pathname + r.search + r.hash;
  return r.toString();
}
module.exports = {
  Url, parse: urlParse, resolve, resolveObject: (a, b) => urlParse(resolve(a, b)), format: urlFormat, URL, URLSearchParams, fileURLToPath, pathToFileURL,
  domainToASCII: (d) => hostOf(d, true) ?? '', domainToUnicode: (d) => require('punycode').toUnicode(d),
  urlToHttpOptions: (u) => ({ __proto__: null, protocol: u.protocol, hostname: u.hostname.replace(/^\[|\]$/g, ''), hash: u.hash, search: u.search, pathname: u.pathname, path: `${u.pathname}${u.search}`, href: u.href,
    ...(u.port !== '' ? { port: Number(u.port) } : {}), ...(u.username || u.password ? { auth: `${decodeURIComponent(u.username)}:${decodeURIComponent(u.password)}` } : {}) }),
};
