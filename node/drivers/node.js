// The driver of JavaScript sessions. It reads requests from descriptor 3, and runs each in the global scope. See node/session.go.
'use strict';
(() => {
  const fs = require('fs'), vm = require('vm'), util = require('util'), path = require('path'), Module = require('module');
  const maxResult = 1 << 20;
  let cells = 0, current = null, size = 0, told = 0;
  const given = new Map(), rest = Buffer.alloc(1 << 16);

  const exactly = (n) => {
    const b = Buffer.alloc(n);
    for (let at = 0; at < n;) {
      const got = fs.readSync(3, b, at, n - at, null);
      if (got === 0) process.reallyExit ? process.reallyExit(0) : process.exit(0);
      at += got;
    }
    return b;
  };
  const receive = () => {
    const text = exactly(Number(exactly(9).toString('latin1'))).toString('utf8');
    const a = text.indexOf('\0'), b = text.indexOf('\0', a + 1), c = text.indexOf('\0', b + 1);
    const r = c > b + 1 ? JSON.parse(text.slice(b + 1, c)) : {};
    r.kind = text.slice(0, a);
    r.marker = text.slice(a + 1, b);
    r.text = text.slice(c + 1);
    return r;
  };
  const send = (fd, text) => { for (let b = Buffer.from(text, 'utf8'); b.length > 0;) b = b.subarray(fs.writeSync(fd, b)); };

  const setEnv = (k, v) => { if (v === undefined) delete process.env[k]; else process.env[k] = v; };
  // What a claim gave before goes; what it gives now comes.
  const claim = (now) => {
    for (const [k, v] of [...given]) if (!(k in now)) { setEnv(k, v); given.delete(k); }
    for (const k of Object.keys(now)) { if (!given.has(k)) given.set(k, process.env[k]); process.env[k] = now[k]; }
  };
  // Standard input is a file without a name: what is left of the call before is read away, what this call is given is appended.
  const stdin = (data) => {
    try {
      while (fs.readSync(0, rest, 0, rest.length, null) > 0);
      if (data) { const b = Buffer.from(data, 'base64'); size = fs.fstatSync(0).size; for (let at = 0; at < b.length;) at += fs.writeSync(0, b, at, b.length - at, size + at); }
    } catch { /* the program closed it */ }
    let stream;
    Object.defineProperty(process, 'stdin', { configurable: true, enumerable: true, get: () => stream ??= fs.createReadStream('', { fd: 0, autoClose: false }), set: (v) => { stream = v; } });
  };

  // Declarations at the beginning of a line may be made again by a later text, and imports work as in a module.
  const names = (s) => s.replace(/\bas\b/g, ':');
  const prepare = (text) => text
    .replace(/^import\s+(['"])(.+?)\1\s*;?[ \t]*$/gm, 'require("$2");')
    .replace(/^import\s+(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)|(\{[^}]*\}))?\s*from\s*(['"])(.+?)\4\s*;?[ \t]*$/gm, (all, d, ns, some, q, m) => {
      const r = `require(${JSON.stringify(m)})`, out = [];
      if (d) out.push(`var ${d} = ((m) => m && m.__esModule ? m.default : m)(${r});`);
      if (ns) out.push(`var ${ns} = ${r};`);
      if (some) out.push(`var ${names(some)} = ${r};`);
      return out.join(' ');
    })
    .replace(/^(?:let|const)(?=\s)/gm, 'var');
  // A text that awaits runs in a function; what it declares is global all the same, and its last expression is the result.
  const waiting = (text, name) => {
    const body = text.replace(/^(?:var|let|const)\s+([\w$]+)\s*=/gm, 'globalThis.$1 =').replace(/^(async\s+)?function(\s*\*?\s*)([\w$]+)/gm, 'globalThis.$3 = $1function$2$3')
      .replace(/^(?:var|let|const)\s+(\{[^}]*\}|\[[^\]]*\])\s*=([^\n]*?);?[ \t]*$/gm, (all, to, v) => `Object.assign(globalThis, ((${to}) => (${to.startsWith('[') ? `{${to.slice(1, -1)}}` : to.replace(/[\w$]+\s*:/g, '')}))(${v}));`);
    const lines = body.trimEnd().split('\n');
    let first = null;
    for (let n = 1; n <= lines.length; n++) {
      const tail = lines.slice(-n).join('\n').replace(/;\s*$/, '');
      try { return new vm.Script(`(async () => {${lines.slice(0, -n).join('\n')}\nreturn (${tail}\n)})()`, { filename: name }); } catch (e) { first ??= e; }
    }
    return new vm.Script(`(async () => {${body}\n})()`, { filename: name });
  };
  const compile = (text, name) => {
    const source = prepare(text);
    if (/^\s*\{[\s\S]*\}\s*;?\s*$/.test(source)) { // an object, as at a prompt
      try { return [new vm.Script(`(${source.trim().replace(/;$/, '')}\n)`, { filename: name }), false]; } catch { /* a block */ }
    }
    try { return [new vm.Script(source, { filename: name }), false]; } catch (e) {
      if (!/\bawait\b/.test(text)) throw e;
      try { return [waiting(source, name), true]; } catch { throw e; }
    }
  };
  // The first word, where the text is nothing but names, attributes, numbers and operators.
  const word = (text) => {
    if (!/^[\w$.\s;+\-*\/%<>!&|^~?:=]*$/.test(text) || /(^|[^=!<>])=([^=]|$)/.test(text)) return '';
    for (const line of text.split(/[;\n]/)) if (line.trim() !== '') { try { new vm.Script(`(${line}\n)`); } catch { return ''; } }
    const found = /^[^\s;&|<>()$]+/.exec(text.trim());
    return found ? found[0] : '';
  };

  // What is told richly goes as messages of media types, like those of a notebook's kernel.
  const tell = (message) => {
    let text = JSON.stringify(message);
    if (text.length > 12 << 20) text = JSON.stringify({ data: { 'text/plain': `a result of ${text.length} bytes, which is too large to be shown` }, main: message.main });
    send(1, `${current.request.marker}{"rich":${text}}\n`);
  };
  const FORMS = { _toHtml: 'text/html', _toMarkdown: 'text/markdown', _toSvg: 'image/svg+xml', _toPng: 'image/png', _toJpeg: 'image/jpeg', _toLatex: 'text/latex' };
  const bundle = (v) => {
    const data = {}, is = v !== null && (typeof v === 'object' || typeof v === 'function');
    const add = (f) => { try { f(); } catch (e) { process.stderr.write(`${e && e.stack || e}\n`); } };
    const own = is && v[Symbol.for('Jupyter.display')];
    if (typeof own === 'function') add(() => Object.assign(data, own.call(v)));
    if (is && typeof v._toMime === 'function') add(() => Object.assign(data, v._toMime()));
    for (const k of is ? Object.keys(FORMS) : []) if (typeof v[k] === 'function' && !(FORMS[k] in data)) add(() => { data[FORMS[k]] = v[k](); });
    for (const k of Object.keys(data)) if (data[k] instanceof Uint8Array) data[k] = Buffer.from(data[k]).toString('base64');
    if (!('text/plain' in data)) data['text/plain'] = util.inspect(v);
    return data;
  };
  const display = (...values) => {
    if (current && current.request.rich) for (const v of values) tell({ data: bundle(v) });
    else for (const v of values) process.stdout.write(util.inspect(v) + '\n');
  };

  const failed = (e) => {
    if (current && current.request.rich) {
      const known = e !== null && typeof e === 'object' && 'message' in e;
      const stack = known && typeof e.stack === 'string' ? e.stack : '';
      const lines = stack.split('\n').filter((l) => !/^\s+at /.test(l) || /<cell \d+>/.test(l));
      const head = known ? `${e.name}: ${e.message}` : util.inspect(e);
      tell({ error: { name: known ? String(e.name) : '', value: known ? String(e.message) : util.inspect(e), traceback: (stack.startsWith(String(known && e.name)) ? lines : [head, ...lines]).join('\n').trimEnd() } });
      current.status = 1;
      return;
    }
    let text;
    if (e !== null && typeof e === 'object' && typeof e.stack === 'string') {
      const lines = e.stack.split('\n'), end = lines.findIndex((l) => /^\s+at /.test(l) && /\[?(agentrun|evalmachine|eval)\]?[:)>]|node:|internal\//.test(l) && !/<cell \d+>/.test(l));
      text = (end >= 0 ? lines.slice(0, end) : lines).join('\n');
      const head = util.format('%s: %s', e.name, e.message);
      if (!text.startsWith(String(e.name))) text = `${head}\n${text}`;
    } else text = util.inspect(e);
    process.stderr.write(`Uncaught ${text.trimEnd().replace(/<cell \d+>/g, '<stdin>')}\n`);
    if (current) current.status = 1;
  };
  const finish = () => {
    const c = current;
    current = null;
    for (const [k, v] of c.before) setEnv(k, v);
    const code = process.exitCode;
    process.exitCode = undefined;
    answer(c.request, { status: c.status || Number(code) & 0xff || 0, result: c.result });
  };
  const answer = (r, a) => { send(2, r.marker + '\n'); send(1, r.marker + JSON.stringify(a) + '\n'); };
  const show = (v) => {
    if (v === undefined) return;
    globalThis._ = v;
    if (current.request.rich) {
      const data = bundle(v);
      current.result = String(data['text/plain']).slice(0, maxResult);
      return tell({ data, main: true });
    }
    const text = util.inspect(v);
    current.result = text.slice(0, maxResult);
    process.stdout.write(text + '\n');
  };

  const begin = (r) => {
    if (r.kind === 'sync') return answer(r, {});
    const name = `<cell ${cells + 1}>`;
    let script, async, wrong;
    try { [script, async] = compile(r.text, name); } catch (e) { wrong = e; }
    if (r.kind === 'auto' && wrong) return answer(r, { other: true });
    if (r.kind === 'auto') { const w = word(r.text); if (w) return answer(r, { word: w }); }
    cells++;
    current = { request: r, status: 0, result: '', before: [] };
    if (r.rich) {
      if (told > 0) r.dir = ''; // it is where the session begins
      if (r.text.trim() !== '') tell({ count: ++told });
    }
    if (r.claim) claim(r.claim);
    for (const k of Object.keys(r.env || {})) { current.before.push([k, process.env[k]]); process.env[k] = r.env[k]; }
    try {
      if (r.dir) process.chdir(r.dir);
      stdin(r.stdin);
      if (wrong) throw wrong;
      const v = script.runInThisContext({ displayErrors: false, breakOnSigint: true });
      if (async) v.then(show).catch(failed); else show(v);
    } catch (e) { failed(e); }
    return undefined;
  };

  const m = new Module('<stdin>', null);
  m.filename = path.join(process.cwd(), '<stdin>');
  m.paths = Module._nodeModulePaths(process.cwd());
  const put = (k, v) => Object.defineProperty(globalThis, k, { value: v, writable: true, configurable: true, enumerable: false });
  put('display', display);
  put('require', Module.createRequire(m.filename)); put('module', m); put('exports', m.exports);
  for (const b of Module.builtinModules) {
    if (!/[\/_:]/.test(b) && !(b in globalThis)) Object.defineProperty(globalThis, b, { configurable: true, enumerable: false, get: () => require(b), set: (v) => put(b, v) });
  }
  process.argv.length = 1;
  process.on('uncaughtException', failed);
  process.on('unhandledRejection', failed);
  // A call has ended when nothing is left to wait for: then the next one is read.
  process.on('beforeExit', () => {
    if (current) finish();
    const r = receive();
    send(1, r.marker + '\n');
    setImmediate(() => begin(r));
  });
})();
