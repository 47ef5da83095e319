// The program qjs: scripts and modules with the modules std and os, as QuickJS's own has them.
'use strict';
const loop = require('internal/loop');
const usage = `QuickJS-ng version 0.17.0
usage: qjs [options] [file [args]]
-h  --help         list options
-e  --eval EXPR    evaluate EXPR
-m  --module       load as ES module
    --script       load as a script
    --std          make 'std' and 'os' available to the loaded script
-q  --quit         do nothing
-v  --version      print the version
`;
function main(args) {
  let i = 1, expr, kind, std = false;
  for (; i < args.length; i++) {
    const a = args[i];
    if (a === '--') { i++; break; }
    if (!a.startsWith('-') || a === '-') break;
    if (a === '-h' || a === '--help') return internal.writeAll(1, host.encode(usage)), 0;
    if (a === '-v' || a === '--version') return internal.writeAll(1, host.encode('0.17.0\n')), 0;
    if (a === '-q' || a === '--quit') return 0;
    if (a === '-e' || a === '--eval') {
      if (args[++i] === undefined) return internal.stderr("qjs: missing expression for -e\n"), 2;
      expr = args[i];
    } else if (a === '-m' || a === '--module') kind = 'module';
    else if (a === '--script' || a === '-C') kind = 'script';
    else if (a === '--std') std = true;
    else return internal.stderr(`qjs: unknown option '${a}'\n${usage}`), 1;
  }
  const rest = args.slice(i);
  process.argv = [process.execPath = '/usr/bin/qjs', ...rest];
  const modules = require('internal/qjslib');
  globalThis.scriptArgs = expr === undefined ? rest : ['qjs', ...rest].slice(rest.length ? 1 : 0);
  globalThis.argv0 = args[0];
  globalThis.print = (...a) => { internal.writeAll(1, host.encode(a.map(String).join(' ') + '\n')); };
  for (const k of ['require', 'module', 'exports', 'process', 'Buffer', 'global']) delete globalThis[k];
  if (std) Object.assign(globalThis, modules);
  loop.handlers.uncaught = (e) => {
    const text = e !== null && typeof e === 'object' && typeof e.stack === 'string' ? e.stack : String(e);
    internal.stderr(`${text}\n`);
    host.exit(1);
  };
  loop.handlers.rejection = (p, e) => { internal.stderr('Possibly unhandled promise rejection: '); loop.handlers.uncaught(e); };
  try {
    let text = expr, name = '<cmdline>';
    if (text === undefined) {
      name = rest[0];
      if (name === undefined && host.isatty(0)) {
        globalThis.process = require('process');
        require('repl').start({ prompt: 'qjs > ', banner: 'QuickJS-ng - Type ".help" for help\n' });
        return internal.finish();
      }
      const b = name === undefined || name === '-' ? host.readAll(0) : modules.std.loadFile(name, { binary: true });
      if (typeof b === 'number' || b === null) return internal.stderr(`qjs: could not load '${name}'\n`), 1;
      text = host.decode(b, 0, b.length, false);
      name = name === undefined ? '<stdin>' : require('path').resolve(name);
    }
    if (text.startsWith('#!')) text = `//${text}`;
    if (kind === 'module' || kind !== 'script' && (name.endsWith('.mjs') || require('internal/resolve').looksLikeModule(text))) {
      host.module(text, name).catch((e) => process_uncaught(e));
    } else host.script(text, name, 0);
  } catch (e) {
    loop.handlers.uncaught(e);
  }
  loop.run();
  return 0;
}
const process_uncaught = (e) => loop.handlers.uncaught(e);
module.exports = main;
