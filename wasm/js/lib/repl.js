// A REPL, line by line: the terminal edits the line.
'use strict';
const loop = require('internal/loop');
const { inspect } = require('internal/inspect');
function start(o = {}) {
  if (typeof o === 'string') o = { prompt: o };
  const prompt = o.prompt ?? '> ';
  const tty = host.isatty(0);
  const Module = require('module');
  if (o.version) console.log(`Welcome to Node.js ${internal.version}.\nType ".help" for more information.`);
  if (o.banner) internal.writeStd(1, o.banner);
  const m = new Module('<repl>', null);
  m.filename = null;
  m.path = process.cwd();
  m.paths = Module._nodeModulePaths(m.path);
  const put = (k, v) => Object.defineProperty(globalThis, k, { value: v, writable: true, configurable: true, enumerable: true });
  if (globalThis.process) { put('module', m); put('exports', m.exports); put('require', Module.makeRequire(m)); }
  for (const b of internal.builtins) if (!b.includes('/') && b !== 'test' && !(b in globalThis)) Object.defineProperty(globalThis, b, { configurable: true, get: () => internal.require(b), set: (v) => put(b, v) });
  const rl = require('readline').createInterface({ input: require('process').stdin, output: undefined });
  const show = (s) => internal.writeStd(1, s);
  let buffer = '', n = 0;
  const print = (v) => { if (v !== undefined || globalThis.process) show(`${inspect(v, { colors: internal.fdColors(1) })}\n`); };
  const error = (e) => { const s = e instanceof Error ? (e.stack || String(e)).split('\n').filter((l) => !/^\s+at/.test(l) || !/node:|REPL\d+:|\(<anonymous>\)/.test(l)).join('\n') : inspect(e); show(`Uncaught ${s}\n`); globalThis._error = e; };
  loop.handlers.uncaught = (e) => { error(e); show(prompt); };
  const ask = () => { if (tty || o.always) show(buffer ? '... ' : prompt); };
  const incomplete = (e) => e instanceof SyntaxError && /unexpected end|unterminated (template|string|comment)|Unexpected end|expecting '[})\]]'|unexpected token in expression: ''|got end of file|end of input/i.test(e.message);
  rl.on('line', (line) => {
    const t = line.trim();
    if (!buffer && /^\.[a-z]+/.test(t)) {
      const [cmd, arg] = t.split(/\s+/);
      if (cmd === '.exit') return process_exit();
      if (cmd === '.help') show('.break    Sometimes you get stuck, this gets you out\n.clear    Alias for .break\n.exit     Exit the REPL\n.help     Print this help message\n.load     Load JS from a file into the REPL session\n.save     Save all evaluated commands in this REPL session to a file\n\nPress Ctrl+C to abort current expression, Ctrl+D to exit the REPL\n');
      else if (cmd === '.load') { try { print(host.script(require('fs').readFileSync(arg, 'utf8'), arg, 0)); } catch (e) { error(e); } } else if (!['.break', '.clear', '.save', '.editor'].includes(cmd)) show('Invalid REPL keyword\n');
      return ask();
    }
    if (cmdBreak(t)) { buffer = ''; return ask(); }
    const text = buffer ? `${buffer}\n${line}` : line;
    if (text.trim() === '') { buffer = ''; return ask(); }
    const name = `REPL${++n}`;
    let v, async = false;
    try {
      const body = /^\s*\{[\s\S]*\}\s*$/.test(text) ? `(${text})` : text;
      try {
        host.script(body, name, 32);
        v = host.script(body.replace(/^(\s*)(const|let)\s/gm, (a, s, k) => n === 0 ? a : `${s}var `), name, 0);
      } catch (e) {
        if (e instanceof SyntaxError && body !== text) v = host.script(text, name, 0);
        else if (e instanceof SyntaxError && /\bawait\b/.test(text) && !incomplete(e)) { v = host.script(text.replace(/^(\s*)(const|let)\s+(\w+)\s*=/, '$1globalThis.$3 ='), name, 128); async = true; } else throw e;
      }
    } catch (e) {
      if (incomplete(e)) { buffer = text; return ask(); }
      buffer = '';
      error(e);
      return ask();
    }
    buffer = '';
    if (async) {
      rl.pause();
      v.then((r) => print(r && typeof r === 'object' && 'value' in r ? r.value : r), error).finally(() => { ask(); rl.resume(); });
      return undefined;
    }
    globalThis._ = v;
    print(v);
    ask();
  });
  const cmdBreak = (t) => buffer && (t === '.break' || t === '.clear');
  const process_exit = () => require('process').exit(0);
  rl.on('close', () => { if (tty) show('\n'); if (buffer) { try { host.script(buffer, `REPL${n}`, 0); } catch (e) { error(e); } } });
  ask();
  return rl;
}
module.exports = { start, REPLServer: class REPLServer {}, builtinModules: internal.builtins, REPL_MODE_SLOPPY: Symbol('repl-sloppy'), REPL_MODE_STRICT: Symbol('repl-strict') };
