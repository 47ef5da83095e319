// Punycode, of RFC 3492.
'use strict';
const adapt = (delta, n, first) => {
  delta = first ? Math.floor(delta / 700) : delta >> 1;
  delta += Math.floor(delta / n);
  let k = 0;
  for (; delta > 455; k += 36) delta = Math.floor(delta / 35);
  return Math.floor(k + 36 * delta / (delta + 38));
};
function decode(input) {
  const out = [];
  let basic = input.lastIndexOf('-');
  for (let j = 0; j < basic; j++) out.push(input.charCodeAt(j));
  let n = 128, i = 0, bias = 72;
  for (let at = basic > 0 ? basic + 1 : 0; at < input.length;) {
    const old = i;
    for (let w = 1, k = 36; ; k += 36) {
      if (at >= input.length) throw new RangeError('Invalid input');
      const c = input.charCodeAt(at++);
      const d = c >= 48 && c < 58 ? 26 + c - 48 : c >= 65 && c < 91 ? c - 65 : c >= 97 && c < 123 ? c - 97 : 36;
      if (d >= 36 || d > Math.floor((2 ** 31 - 1 - i) / w)) throw new RangeError('Invalid input');
      i += d * w;
      const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
      if (d < t) break;
      w *= 36 - t;
    }
    bias = adapt(i - old, out.length + 1, old === 0);
    n += Math.floor(i / (out.length + 1));
    i %= out.length + 1;
    out.splice(i++, 0, n);
  }
  return String.fromCodePoint(...out);
}
function encode(input) {
  const points = Array.from(input, (c) => c.codePointAt(0));
  let out = points.filter((c) => c < 128).map((c) => String.fromCharCode(c)).join('');
  const basic = out.length;
  let h = basic, n = 128, delta = 0, bias = 72;
  if (basic) out += '-';
  const digit = (d) => String.fromCharCode(d < 26 ? d + 97 : d + 22);
  while (h < points.length) {
    const m = Math.min(...points.filter((c) => c >= n));
    delta += (m - n) * (h + 1);
    n = m;
    for (const c of points) {
      if (c < n) delta++;
      if (c !== n) continue;
      let q = delta;
      for (let k = 36; ; k += 36) {
        const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
        if (q < t) break;
        out += digit(t + (q - t) % (36 - t));
        q = Math.floor((q - t) / (36 - t));
      }
      out += digit(q);
      bias = adapt(delta, h + 1, h === basic);
      delta = 0;
      h++;
    }
    delta++;
    n++;
  }
  return out;
}
const map = (s, f) => s.split('.').map(f).join('.');
module.exports = {
  version: '2.1.0', encode, decode, toASCII: (s) => map(s, (l) => /[^\0-\x7f]/.test(l) ? `xn--${encode(l)}` : l), toUnicode: (s) => map(s, (l) => l.startsWith('xn--') ? decode(l.slice(4).toLowerCase()) : l),
  ucs2: { decode: (s) => Array.from(s, (c) => c.codePointAt(0)), encode: (a) => String.fromCodePoint(...a) },
};
