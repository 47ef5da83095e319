// util.parseArgs.
'use strict';
const { coded, argType } = require('internal/errors');
module.exports = (config = {}) => {
  const args = config.args ?? process.argv.slice(process._eval ? 1 : 2);
  const options = config.options ?? {}, strict = config.strict ?? true, allow = config.allowPositionals ?? !strict;
  const values = Object.create(null), positionals = [], tokens = [];
  const byShort = (c) => Object.keys(options).find((k) => options[k].short === c);
  for (const k of Object.keys(options)) if (options[k].type !== 'string' && options[k].type !== 'boolean') throw argType(`options.${k}.type`, ["'string'", "'boolean'"], options[k].type);
  const store = (name, value, raw, index, inline) => {
    const o = options[name];
    tokens.push({ kind: 'option', name, rawName: raw, index, value, inlineValue: inline });
    if (strict) {
      if (!o) throw coded(TypeError, 'ERR_PARSE_ARGS_UNKNOWN_OPTION', `Unknown option '${raw}'${allow ? `. To specify a positional argument starting with a '-', place it at the end of the command after '--', as in '-- "${raw}"` : ''}`);
      const short = o.short ? `-${o.short}, ` : '';
      if (o.type === 'string' && typeof value !== 'string') throw coded(TypeError, 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE', `Option '${short}--${name} <value>' argument missing`);
      if (o.type === 'boolean' && value !== undefined) throw coded(TypeError, 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE', `Option '${short}--${name}' does not take an argument`);
    }
    const v = value ?? true;
    if (o && o.multiple) (values[name] ??= []).push(v); else values[name] = v;
  };
  const rest = args.slice();
  for (let i = 0; i < rest.length; i++) {
    const a = rest[i];
    if (a === '--') {
      tokens.push({ kind: 'option-terminator', index: i });
      for (let j = i + 1; j < rest.length; j++) { tokens.push({ kind: 'positional', index: j, value: rest[j] }); positionals.push(rest[j]); }
      break;
    }
    if (/^--[^=]+/.test(a)) {
      const eq = a.indexOf('=');
      let name = eq > 0 ? a.slice(2, eq) : a.slice(2), value = eq > 0 ? a.slice(eq + 1) : undefined;
      const raw = `--${name}`;
      if (config.allowNegative && name.startsWith('no-') && !options[name] && options[name.slice(3)]) { values[name.slice(3)] = false; continue; }
      const at = i;
      if (value === undefined && options[name] && options[name].type === 'string') {
        const next = rest[i + 1];
        if (strict && next !== undefined && next.startsWith('-') && next.length > 1) throw coded(TypeError, 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE', `Option '${raw}' argument is ambiguous.\nDid you forget to specify the option argument for '${raw}'?\nTo specify an option argument starting with a dash use '${raw}=-XYZ'.`);
        if (next !== undefined) { value = next; i++; }
      }
      store(name, value, raw, at, eq > 0 ? true : value === undefined ? undefined : false);
    } else if (/^-[^-]/.test(a)) {
      for (let k = 1; k < a.length; k++) {
        const name = byShort(a[k]) ?? a[k];
        if (options[name] && options[name].type === 'string') {
          let value = a.slice(k + 1) || undefined;
          const inline = value !== undefined;
          if (!inline && rest[i + 1] !== undefined) value = rest[++i];
          store(name, value, `-${a[k]}`, i, inline);
          break;
        }
        store(name, undefined, `-${a[k]}`, i, undefined);
      }
    } else {
      if (!allow) throw coded(TypeError, 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL', `Unexpected argument '${a}'. This command does not take positional arguments`);
      tokens.push({ kind: 'positional', index: i, value: a });
      positionals.push(a);
    }
  }
  for (const k of Object.keys(options)) if (options[k].default !== undefined && values[k] === undefined) values[k] = options[k].default;
  return config.tokens ? { values, positionals, tokens } : { values, positionals };
};
