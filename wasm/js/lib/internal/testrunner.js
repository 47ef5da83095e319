// node --test: each file is run by a node of its own, and what it reports is put together.
'use strict';
const path = require('path');
const { spawnSync } = require('child_process');
exports.main = (o) => {
  let files = o.rest;
  const isTest = (f) => /\.(?:[cm]?js)$/.test(f) && (/(^|[./_-])test\.[cm]?js$/.test(f) || /(^|\/)test-[^/]*$/.test(f) || /(^|\/)test\//.test(f) || /(^|\/)test\.[cm]?js$/.test(f));
  const walk = (dir, rel, all, out) => {
    const list = host.readdir(dir);
    if (typeof list === 'number') return;
    for (let i = 0; i < list.length; i += 2) {
      const r = rel ? `${rel}/${list[i]}` : list[i];
      if (list[i + 1] === 3) { if (list[i] !== 'node_modules' && !list[i].startsWith('.')) walk(`${dir}/${list[i]}`, r, all, out); } else if (isTest(r) || all && /\.[cm]?js$/.test(r)) out.push(r);
    }
  };
  if (!files.length) { const out = []; walk(process.cwd(), '', false, out); files = out.sort(); } else {
    files = files.flatMap((f) => {
      const st = host.stat(path.resolve(f), false);
      if (Array.isArray(st) && (st[2] & 0o170000) === 0o040000) { const out = []; walk(path.resolve(f), f.replace(/\/$/, ''), true, out); return out.sort(); }
      if (/[*?[{]/.test(f)) return [...require('internal/glob').glob(f)].sort();
      return [f];
    });
  }
  const total = { tests: 0, suites: 0, pass: 0, fail: 0, cancelled: 0, skipped: 0, todo: 0 };
  const start = host.hr();
  let bad = false, count = 0;
  const out = (s) => internal.writeStd(1, s);
  out('TAP version 13\n');
  for (const f of files) {
    const r = spawnSync(process.execPath, [...(o.pattern ? ['--test-name-pattern', o.pattern] : []), f], { encoding: 'utf8', env: { ...process.env, NODE_TEST_CONTEXT: 'child', NODE_TEST_PATTERN: o.pattern || '' }, stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 1 << 28 });
    let text = r.stdout || '', any = false;
    text = text.replace(/^TAP version 13\n/, '').replace(/^1\.\.\d+\n/m, (m) => '');
    text = text.replace(/^# (tests|suites|pass|fail|cancelled|skipped|todo) (\d+)\n/gm, (m, k, n) => { any = true; total[k] += +n; return ''; }).replace(/^# duration_ms .*\n/gm, '');
    if (!any) {
      const ok = r.status === 0;
      total.tests++;
      total[ok ? 'pass' : 'fail']++;
      text = `${text.split('\n').filter(Boolean).map((l) => `# ${l}\n`).join('')}# Subtest: ${f}\n${ok ? 'ok' : 'not ok'} 1 - ${f}\n  ---\n  duration_ms: 0\n${ok ? '' : `  failureType: 'testCodeFailure'\n  exitCode: ${r.status}\n  error: 'test failed'\n`}  ...\n`;
    }
    text = text.replace(/^(not ok|ok) \d+ - /gm, (m, s) => `${s} ${++count} - `);
    out(text);
    if (r.status !== 0) bad = true;
  }
  out(`1..${count}\n`);
  for (const k of Object.keys(total)) out(`# ${k} ${total[k]}\n`);
  out(`# duration_ms ${((host.hr() - start) / 1e6).toFixed(6)}\n`);
  process.exitCode = bad ? 1 : 0;
};
