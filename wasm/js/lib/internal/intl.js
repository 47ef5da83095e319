// The little of Intl that scripts use, for en-US; other locales are taken for it.
'use strict';
const months = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];
const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const symbols = { USD: '$', EUR: '€', GBP: '£', JPY: '¥', INR: '₹', CNY: 'CN¥', KRW: '₩', BRL: 'R$', CAD: 'CA$', AUD: 'A$', MXN: 'MX$', CHF: 'CHF ' };

function digits(v, o, defMin, defMax) {
  if (o.maximumSignificantDigits || o.minimumSignificantDigits) {
    let s = Number(v.toPrecision(o.maximumSignificantDigits || 21));
    return plain(s);
  }
  const min = o.minimumFractionDigits ?? Math.min(defMin, o.maximumFractionDigits ?? defMin);
  const max = Math.max(o.maximumFractionDigits ?? Math.max(defMax, min), min);
  let s = round(v, max);
  if (s.includes('.')) {
    let [i, f] = s.split('.');
    f = f.replace(/0+$/, '').padEnd(min, '0');
    s = f ? `${i}.${f}` : i;
  } else if (min > 0) s += '.' + '0'.repeat(min);
  return s;
}
// round is to the nearest, halves away from zero, of the number's shortest decimal.
function round(v, max) {
  const s = plain(v);
  const [i, f = ''] = s.split('.');
  if (f.length <= max) return s;
  let n = BigInt(i + f.slice(0, max));
  if (f[max] >= '5') n += 1n;
  const t = n.toString().padStart(max + 1, '0');
  return max ? `${t.slice(0, -max)}.${t.slice(-max)}` : t;
}
function plain(v) {
  let s = String(v);
  const m = /^(\d+)(?:\.(\d+))?e([+-]\d+)$/.exec(s);
  if (!m) return s;
  const all = m[1] + (m[2] || ''), at = m[1].length + +m[3];
  if (at <= 0) return `0.${'0'.repeat(-at)}${all}`;
  return at >= all.length ? all.padEnd(at, '0') : `${all.slice(0, at)}.${all.slice(at)}`;
}
function numberFormat(value, o = {}) {
  if (typeof value === 'bigint') {
    const s = value.toString();
    return o.useGrouping === false ? s : s.replace(/\B(?=(\d{3})+$)/g, ',');
  }
  let v = Number(value);
  if (isNaN(v)) return 'NaN';
  const negative = v < 0 || Object.is(v, -0);
  v = Math.abs(v);
  const style = o.style || 'decimal';
  let suffix = '', prefix = '';
  if (style === 'percent') { v *= 100; v = Number(v.toPrecision(15)); suffix = '%'; }
  let min = 0, max = style === 'percent' ? 0 : 3;
  if (style === 'currency') {
    const code = (o.currency || 'USD').toUpperCase();
    prefix = o.currencyDisplay === 'code' ? `${code}\u00a0` : o.currencyDisplay === 'name' ? '' : symbols[code] ?? `${code}\u00a0`;
    if (o.currencyDisplay === 'name') suffix = ` ${code === 'USD' ? 'US dollars' : code}`;
    min = max = code === 'JPY' || code === 'KRW' ? 0 : 2;
  }
  if (style === 'unit') {
    const names = { kilometer: ' km', meter: ' m', kilobyte: ' kB', megabyte: ' MB', gigabyte: ' GB', byte: ' byte', second: ' sec', minute: ' min', hour: ' hr', celsius: '°C', kilogram: ' kg', percent: '%', liter: ' L', mile: ' mi' };
    suffix = names[o.unit] ?? ` ${o.unit}`;
  }
  if (o.notation === 'compact') {
    const units = o.compactDisplay === 'long' ? ['', ' thousand', ' million', ' billion', ' trillion'] : ['', 'K', 'M', 'B', 'T'];
    let k = 0;
    while (v >= 999.5 && k < 4) { v /= 1000; k++; }
    suffix = units[k] + suffix;
    if (o.maximumFractionDigits === undefined && o.maximumSignificantDigits === undefined) { min = 0; max = v < 100 ? (v < 10 ? 1 : 0) : 0; if (v >= 10 && v < 100) max = 0; }
  }
  let s = isFinite(v) ? digits(v, o, min, max) : '∞';
  if (o.minimumIntegerDigits) { const [i, f] = s.split('.'); s = i.padStart(o.minimumIntegerDigits, '0') + (f ? `.${f}` : ''); }
  if (o.useGrouping !== false && o.useGrouping !== 'false') {
    const [i, f] = s.split('.');
    if (!(o.notation === 'compact' && i.length < 5)) s = i.replace(/\B(?=(\d{3})+$)/g, ',') + (f !== undefined ? `.${f}` : '');
  }
  const zero = /^[0.,]*$/.test(s);
  let sign = negative && !(zero && !Object.is(Number(value), -0) && o.signDisplay === 'negative') ? '-' : '';
  if (o.signDisplay === 'always' && !negative || o.signDisplay === 'exceptZero' && !negative && !zero) sign = '+';
  if (o.signDisplay === 'never') sign = '';
  const body = prefix + s + suffix;
  return o.currencySign === 'accounting' && sign === '-' ? `(${body})` : sign + body;
}

function fields(d, zone) {
  // Zones other than UTC aren't known; the offset of a few that don't change could be, and isn't.
  const utc = zone !== undefined;
  const g = (n) => utc ? d[`getUTC${n}`]() : d[`get${n}`]();
  return { y: g('FullYear'), mo: g('Month'), d: g('Date'), wd: g('Day'), h: g('Hours'), mi: g('Minutes'), s: g('Seconds'), ms: g('Milliseconds') };
}
function dateFormat(d, o, what) {
  if (isNaN(d)) return 'Invalid Date';
  o = { ...o };
  const f = fields(d, o.timeZone);
  const two = (n) => String(n).padStart(2, '0');
  if (o.dateStyle || o.timeStyle) {
    const ds = o.dateStyle, ts = o.timeStyle;
    if (ds) Object.assign(o, { full: { weekday: 'long', year: 'numeric', month: 'long', day: 'numeric' }, long: { year: 'numeric', month: 'long', day: 'numeric' },
      medium: { year: 'numeric', month: 'short', day: 'numeric' }, short: { year: '2-digit', month: 'numeric', day: 'numeric' } }[ds]);
    if (ts) Object.assign(o, { hour: 'numeric', minute: '2-digit' }, ts !== 'short' ? { second: '2-digit' } : {}, ts === 'full' || ts === 'long' ? { timeZoneName: 'short' } : {});
  }
  const hasDate = o.weekday || o.year || o.month || o.day || o.era, hasTime = o.hour || o.minute || o.second || o.fractionalSecondDigits || o.dayPeriod;
  if (!hasDate && !hasTime) {
    if (what !== 'time') Object.assign(o, { year: 'numeric', month: 'numeric', day: 'numeric' });
    if (what !== 'date') Object.assign(o, { hour: 'numeric', minute: '2-digit', second: '2-digit' });
  } else if (what === 'date' && !hasDate) Object.assign(o, { year: 'numeric', month: 'numeric', day: 'numeric' });
  else if (what === 'time' && !hasTime) Object.assign(o, { hour: 'numeric', minute: '2-digit', second: '2-digit' });
  const year = o.year && (o.year === '2-digit' ? two(f.y % 100) : String(f.y));
  const day = o.day && (o.day === '2-digit' ? two(f.d) : String(f.d));
  const named = o.month === 'long' || o.month === 'short' || o.month === 'narrow';
  const month = o.month && (o.month === 'long' ? months[f.mo] : o.month === 'short' ? months[f.mo].slice(0, 3) : o.month === 'narrow' ? months[f.mo][0] : o.month === '2-digit' ? two(f.mo + 1) : String(f.mo + 1));
  const weekday = o.weekday && (o.weekday === 'long' ? days[f.wd] : days[f.wd].slice(0, o.weekday === 'narrow' ? 1 : 3));
  let date = '';
  if (named) {
    date = [month, day].filter(Boolean).join(' ');
    if (year) date += (day ? ', ' : ' ') + year;
  } else date = [month, day, year].filter(Boolean).join('/');
  if (weekday) date = date ? `${weekday}, ${date}` : weekday;
  let time = '';
  if (o.hour || o.minute || o.second || o.fractionalSecondDigits) {
    const h12 = o.hour12 ?? (o.hourCycle ? o.hourCycle === 'h12' || o.hourCycle === 'h11' : true);
    const parts = [];
    if (o.hour) {
      const h = h12 ? f.h % 12 || 12 : f.h;
      parts.push(o.hour === '2-digit' || !h12 ? two(o.hourCycle === 'h23' || f.h || h12 ? h : o.hour12 === false ? 24 : 0) : String(h));
    }
    if (o.minute) parts.push(o.hour || o.second ? two(f.mi) : o.minute === '2-digit' && false ? two(f.mi) : String(f.mi));
    if (o.second) parts.push(o.minute ? two(f.s) : String(f.s));
    time = parts.join(':');
    if (o.fractionalSecondDigits) time += `.${String(f.ms).padStart(3, '0').slice(0, o.fractionalSecondDigits)}`;
    if (o.hour && h12) time += ` ${f.h < 12 ? 'AM' : 'PM'}`;
    if (o.timeZoneName) time += ' UTC';
  } else if (o.timeZoneName) date += ', UTC';
  const long = named && (o.dateStyle === 'full' || o.dateStyle === 'long');
  return date && time ? `${date}${long ? ' at ' : ', '}${time}` : date || time;
}

const localeOf = () => 'en-US';
class NumberFormat {
  #o;
  constructor(locale, o) { this.#o = { ...o }; this.format = (v) => numberFormat(v, this.#o); }
  formatToParts(v) { return [{ type: 'literal', value: this.format(v) }]; }
  resolvedOptions() { return { locale: localeOf(), numberingSystem: 'latn', style: 'decimal', ...this.#o }; }
  static supportedLocalesOf(l) { return [].concat(l); }
}
class DateTimeFormat {
  #o;
  constructor(locale, o) { this.#o = { ...o }; this.format = (v) => dateFormat(v === undefined ? new Date() : new Date(v), this.#o, this.#o.hour || this.#o.minute || this.#o.timeStyle ? 'any' : 'date'); }
  formatToParts(v) {
    const s = this.format(v), out = [];
    const f = fields(v === undefined ? new Date() : new Date(v), this.#o.timeZone);
    const order = ['month', 'day', 'year', 'hour', 'minute', 'second'].filter((k) => this.#o[k] || !Object.keys(this.#o).some((x) => ['month', 'day', 'year', 'hour', 'minute', 'second'].includes(x)) && ['month', 'day', 'year'].includes(k));
    let i = 0;
    for (const m of s.matchAll(/(\d+)|(AM|PM)|([A-Za-z]+)|([^A-Za-z\d]+)/g)) {
      if (m[1]) out.push({ type: order[i++] || 'literal', value: m[1] });
      else if (m[2]) out.push({ type: 'dayPeriod', value: m[2] });
      else if (m[3]) { const isMonth = months.some((x) => x.startsWith(m[3])); if (isMonth && order[i] === 'month') i++; out.push({ type: isMonth ? 'month' : 'weekday', value: m[3] }); } else out.push({ type: 'literal', value: m[4] });
    }
    return out;
  }
  formatRange(a, b) { return `${this.format(a)} – ${this.format(b)}`; }
  resolvedOptions() { return { locale: localeOf(), calendar: 'gregory', numberingSystem: 'latn', timeZone: process.env.TZ || 'UTC', ...this.#o }; }
  static supportedLocalesOf(l) { return [].concat(l); }
}
const fold = (s) => s.normalize('NFD').replace(/\p{Mn}/gu, '');
function compare(a, b, o = {}) {
  a = `${a}`;
  b = `${b}`;
  if (o.numeric) {
    const split = (s) => s.match(/\d+|\D+/g) || [];
    const x = split(a), y = split(b);
    for (let i = 0; i < Math.min(x.length, y.length); i++) {
      const c = /^\d/.test(x[i]) && /^\d/.test(y[i]) ? Math.sign(Number(x[i]) - Number(y[i])) : collate(x[i], y[i], o);
      if (c) return c;
    }
    return Math.sign(x.length - y.length);
  }
  return collate(a, b, o);
}
// Letters sort after digits, those after everything else; accents and case count only between words that are else equal, small letters first.
const weight = (c) => /\p{L}/u.test(c) ? 3 : /\p{N}/u.test(c) ? 2 : /\s/.test(c) ? 0 : 1;
const punctuation = '_-,;:!?.\'"()[]{}@*/\\&#%`^+<=>|~$';
function collate(a, b, o) {
  const x = Array.from(fold(a).toLowerCase()), y = Array.from(fold(b).toLowerCase());
  for (let i = 0; i < Math.min(x.length, y.length); i++) {
    if (x[i] === y[i]) continue;
    const d = weight(x[i]) - weight(y[i]);
    if (d) return Math.sign(d);
    const p = punctuation.indexOf(x[i]), q = punctuation.indexOf(y[i]);
    if (p >= 0 && q >= 0) return p < q ? -1 : 1;
    return x[i] < y[i] ? -1 : 1;
  }
  if (x.length !== y.length) return x.length < y.length ? -1 : 1;
  const s = o.sensitivity || 'variant';
  if (s === 'base') return 0;
  if (s !== 'case') { const m = a.normalize('NFD').toLowerCase(), n = b.normalize('NFD').toLowerCase(); if (m !== n) return m < n ? -1 : 1; }
  if (s === 'accent') return 0;
  for (let i = 0; i < Math.min(a.length, b.length); i++) if (a[i] !== b[i]) return (a[i] === a[i].toLowerCase()) === (o.caseFirst !== 'upper') ? -1 : 1;
  return 0;
}
class Collator {
  #o;
  constructor(l, o) { this.#o = { ...o }; this.compare = (a, b) => compare(a, b, this.#o); }
  resolvedOptions() { return { locale: localeOf(), usage: 'sort', sensitivity: 'variant', ...this.#o }; }
}
class PluralRules {
  #o;
  constructor(l, o = {}) { this.#o = o; }
  select(n) {
    if (this.#o.type !== 'ordinal') return n === 1 ? 'one' : 'other';
    const a = n % 10, b = n % 100;
    return a === 1 && b !== 11 ? 'one' : a === 2 && b !== 12 ? 'two' : a === 3 && b !== 13 ? 'few' : 'other';
  }
}
class ListFormat {
  #o;
  constructor(l, o = {}) { this.#o = o; }
  format(list) {
    const a = Array.from(list), word = this.#o.type === 'disjunction' ? 'or' : this.#o.type === 'unit' ? '' : this.#o.style === 'short' ? '&' : 'and';
    if (a.length < 2) return a.join('');
    if (!word) return a.join(', ');
    return a.length === 2 ? `${a[0]} ${word} ${a[1]}` : `${a.slice(0, -1).join(', ')}, ${word} ${a.at(-1)}`;
  }
}
class RelativeTimeFormat {
  #o;
  constructor(l, o = {}) { this.#o = o; }
  format(n, unit) {
    unit = unit.replace(/s$/, '');
    if (this.#o.numeric === 'auto') {
      const w = { day: { '-1': 'yesterday', 0: 'today', 1: 'tomorrow' }, second: { 0: 'now' } }[unit];
      if (w && w[n] !== undefined) return w[n];
      if (['year', 'month', 'week', 'quarter'].includes(unit) && Math.abs(n) <= 1) return n === 0 ? `this ${unit}` : n < 0 ? `last ${unit}` : `next ${unit}`;
    }
    const t = `${numberFormat(Math.abs(n))} ${unit}${Math.abs(n) === 1 ? '' : 's'}`;
    return n < 0 || Object.is(n, -0) ? `${t} ago` : `in ${t}`;
  }
}
class Segmenter {
  #o;
  constructor(l, o = {}) { this.#o = o; }
  segment(s) {
    const g = this.#o.granularity || 'grapheme';
    const re = g === 'word' ? /[\p{L}\p{N}\p{M}_']+|\s+|./gsu : g === 'sentence' ? /[^.!?]+[.!?]*\s*/gsu : /\r\n|\p{RI}\p{RI}|(?:\p{Emoji}(?:\p{EMod}|\ufe0f\u20e3?)?(?:\u200d\p{Emoji}(?:\p{EMod}|\ufe0f)?)*|.)\p{M}*/gsu;
    const list = Array.from(s.matchAll(re), (m) => ({ segment: m[0], index: m.index, input: s, ...(g === 'word' ? { isWordLike: /[\p{L}\p{N}]/u.test(m[0]) } : {}) }));
    return { [Symbol.iterator]: () => list[Symbol.iterator](), containing: (i) => list.findLast((x) => x.index <= i) };
  }
}
const callable = (C) => new Proxy(C, { apply: (t, self, a) => new t(...a) });
const Intl = { NumberFormat: callable(NumberFormat), DateTimeFormat: callable(DateTimeFormat), Collator: callable(Collator), PluralRules, ListFormat, RelativeTimeFormat, Segmenter,
  getCanonicalLocales: (l) => l === undefined ? [] : [].concat(l), supportedValuesOf: () => [],
  Locale: class Locale { constructor(t) { this.baseName = t; [this.language, this.region] = t.split('-'); } toString() { return this.baseName; } },
  DisplayNames: class DisplayNames { of(c) { return c; } } };
Object.defineProperty(Intl, Symbol.toStringTag, { value: 'Intl', configurable: true });
Object.defineProperty(globalThis, 'Intl', { value: Intl, writable: true, configurable: true, enumerable: false });
const put = (o, k, f) => Object.defineProperty(o, k, { value: f, writable: true, configurable: true, enumerable: false });
// The name of the zone is part of a date's text; there is only UTC.
for (const k of ['toString', 'toTimeString']) {
  const native = Date.prototype[k];
  put(Date.prototype, k, { [k]() { const s = native.call(this); return s.endsWith('+0000') ? `${s} (Coordinated Universal Time)` : s; } }[k]);
}
put(Number.prototype, 'toLocaleString', function toLocaleString(l, o) { return numberFormat(Number(this), o); });
put(BigInt.prototype, 'toLocaleString', function toLocaleString(l, o) { return numberFormat(BigInt(this), o); });
put(Date.prototype, 'toLocaleString', function toLocaleString(l, o) { return dateFormat(this, o, 'any'); });
put(Date.prototype, 'toLocaleDateString', function toLocaleDateString(l, o) { return dateFormat(this, o, 'date'); });
put(Date.prototype, 'toLocaleTimeString', function toLocaleTimeString(l, o) { return dateFormat(this, o, 'time'); });
put(String.prototype, 'localeCompare', function localeCompare(b, l, o) { return compare(this, b, o); });
put(String.prototype, 'toLocaleUpperCase', function toLocaleUpperCase() { return String(this).toUpperCase(); });
put(String.prototype, 'toLocaleLowerCase', function toLocaleLowerCase() { return String(this).toLowerCase(); });
