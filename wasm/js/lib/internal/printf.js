// printf of C, for std of qjs.
'use strict';
exports.format = (f, ...args) => {
  let i = 0;
  return String(f).replace(/%([-+ 0#]*)(\*|\d+)?(?:\.(\*|\d+))?(?:hh?|ll?|[zjt])?([diouxXeEfFgGcs%])/g, (all, flags, width, prec, conv) => {
    if (conv === '%') return '%';
    if (width === '*') width = args[i++];
    if (prec === '*') prec = args[i++];
    let s, v = args[i++];
    const p = prec === undefined ? undefined : +prec;
    switch (conv) {
      case 'd': case 'i': s = typeof v === 'bigint' ? String(v) : String(Math.trunc(+v) || 0); if (p !== undefined) s = s.replace(/\d+/, (d) => d.padStart(p, '0')); break;
      case 'u': s = String(+v >>> 0); break;
      case 'o': s = (+v >>> 0).toString(8); break;
      case 'x': s = (+v >>> 0).toString(16); if (flags.includes('#')) s = '0x' + s; break;
      case 'X': s = (+v >>> 0).toString(16).toUpperCase(); break;
      case 'f': case 'F': s = (+v).toFixed(p ?? 6); break;
      case 'e': case 'E': s = (+v).toExponential(p ?? 6).replace(/e([+-])(\d)$/, 'e$10$2'); break;
      case 'g': case 'G': { s = (+v).toPrecision(p || (p === 0 ? 1 : 6)); if (!flags.includes('#') && s.includes('.')) s = s.replace(/\.?0+(?=e|$)/, ''); break; }
      case 'c': s = typeof v === 'number' ? String.fromCodePoint(v) : String(v).slice(0, 1); break;
      default: s = String(v); if (p !== undefined) s = s.slice(0, p);
    }
    if (/[diufFeEgG]/.test(conv) && !s.startsWith('-')) s = flags.includes('+') ? `+${s}` : flags.includes(' ') ? ` ${s}` : s;
    const w = +width || 0;
    if (flags.includes('-') || w < 0) return s.padEnd(Math.abs(w));
    if (flags.includes('0') && conv !== 's' && conv !== 'c') { const sign = /^[+-]/.test(s) ? s[0] : ''; return sign + s.slice(sign.length).padStart(w - sign.length, '0'); }
    return s.padStart(w);
  });
};
