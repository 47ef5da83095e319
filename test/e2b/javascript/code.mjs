// The code interpreter: contexts and rich results.
import { assert, create, fails, group, sdk, shared, until } from './kit.mjs';

group('code', (step) => {
  const box = shared({ envs: { FROM: 'sandbox' }, timeoutMs: 240_000 });

  step('Sandbox.runCode', async () => {
    const s = await box();
    const r = await s.runCode('x = 20\nprint("said")\nx + 1');
    assert.equal(r.text, '21');
    assert.deepEqual(r.logs, { stdout: ['said\n'], stderr: [] });
    assert.equal(r.error, undefined);
    assert.equal(r.results.length, 1);
    assert.equal(r.results[0].isMainResult, true);
    assert.equal((await s.runCode('x * 2')).text, '40', 'it remembers');
    const none = await s.runCode('y = 1');
    assert.deepEqual([none.results, none.text], [[], undefined]);
    assert.ok(none.executionCount > r.executionCount, 'calls are counted');
  });
  step('Sandbox.runCode: streams', async () => {
    const s = await box();
    const out = [], err = [];
    let ended = false;
    const run = s.runCode('import sys, time\nfor i in range(3):\n    print("line", i, flush=True)\n    time.sleep(0.4)\nprint("wrong", file=sys.stderr)', {
      onStdout: (m) => out.push([m.line, m.error, ended, m.timestamp]), onStderr: (m) => err.push([m.line, m.error]),
    }).then((r) => { ended = true; return r; });
    await until('the first line', () => out.length > 0);
    assert.equal(out[0][2], false, 'while it runs');
    const r = await run;
    assert.equal(r.logs.stdout.join(''), 'line 0\nline 1\nline 2\n');
    assert.deepEqual(err.map((e) => e[0]).join(''), 'wrong\n');
    assert.deepEqual([out[0][1], err[0][1]], [false, true]);
  });
  step('Sandbox.runCode: errors', async () => {
    const s = await box();
    const seen = [];
    const r = await s.runCode('print("before")\ndef f(n):\n    return 1 / n\nf(0)', { onError: (e) => seen.push(e.name) });
    assert.equal(r.error.name, 'ZeroDivisionError');
    assert.equal(r.error.value, 'division by zero');
    assert.match(r.error.traceback, /ZeroDivisionError/);
    assert.match(r.error.traceback, /1 \/ n/);
    assert.match(r.error.traceback, /f\(0\)/);
    assert.deepEqual(r.logs.stdout, ['before\n']);
    assert.deepEqual(seen, ['ZeroDivisionError']);
    const e = await s.runCode('for = 1');
    assert.equal(e.error.name, 'SyntaxError');
    assert.equal((await s.runCode('undefined_name')).error.value, "name 'undefined_name' is not defined");
    assert.equal((await s.runCode('1 + 1')).text, '2', 'it goes on');
  });
  step('Sandbox.runCode: rich results', async () => {
    const s = await box();
    const r = await s.runCode(`
class Rich:
    def __repr__(self): return "plain"
    def _repr_html_(self): return "<b>rich</b>"
    def _repr_markdown_(self): return "**rich**"
    def _repr_svg_(self): return "<svg/>"
    def _repr_latex_(self): return "$x$"
    def _repr_json_(self): return {"a": [1, 2]}
    def _repr_javascript_(self): return "alert(1)"
    def _repr_png_(self): return b"\\x89PNG\\r\\n\\x1a\\n"
    def _repr_jpeg_(self): return b"\\xff\\xd8\\xff"
    def _repr_pdf_(self): return b"%PDF-1"
Rich()`);
    const [x] = r.results;
    assert.deepEqual([x.text, x.html, x.markdown, x.svg, x.latex, x.javascript], ['plain', '<b>rich</b>', '**rich**', '<svg/>', '$x$', 'alert(1)']);
    assert.deepEqual(x.json, { a: [1, 2] });
    assert.deepEqual(['png', 'jpeg', 'pdf'].map((k) => Buffer.from(x[k], 'base64').toString('latin1')), ['\x89PNG\r\n\x1a\n', '\xff\xd8\xff', '%PDF-1']);
    assert.deepEqual(x.formats().filter((f) => f !== 'text').sort(), ['html', 'javascript', 'jpeg', 'json', 'latex', 'markdown', 'pdf', 'png', 'svg'].sort());
  });
  step('Sandbox.runCode: display', async () => {
    const s = await box();
    const seen = [];
    const r = await s.runCode('from IPython.display import display, HTML, Markdown\ndisplay(HTML("<i>one</i>"))\ndisplay("two", Markdown("*three*"))\n4', { onResult: (x) => seen.push(x.isMainResult) });
    assert.deepEqual(r.results.map((x) => [x.isMainResult, x.html ?? x.markdown ?? x.text]), [[false, '<i>one</i>'], [false, 'two'], [false, '*three*'], [true, '4']]);
    assert.deepEqual(seen, [false, false, false, true]);
    assert.equal((await s.runCode('display({"a": 1})')).results[0].text, "{'a': 1}", 'display is there without an import');
  });
  step('Sandbox.runCode: environment', async () => {
    const s = await box();
    assert.equal((await s.runCode('import os; os.environ["FROM"] + os.environ["OWN"]', { envs: { OWN: ' call' } })).text, 'sandbox call');
    assert.equal((await s.runCode('os.environ.get("OWN")')).results.length, 0, 'of one call only');
  });
  step('Sandbox.runCode: timeout', async () => {
    const s = await box();
    await s.runCode('kept = 1');
    await fails(s.runCode('import time\nwhile True: time.sleep(0.1)', { timeoutMs: 1500 }), sdk.TimeoutError);
    assert.equal((await s.runCode('kept + 1', { timeoutMs: 60_000 })).text, '2', 'the state is kept');
  });
  step('Sandbox.runCode: javascript', async () => {
    const s = await box();
    const r = await s.runCode('const a = 5; console.log("js", a); a * 2', { language: 'javascript' });
    assert.equal(r.text, '10');
    assert.equal(r.logs.stdout.join(''), 'js 5\n');
    assert.equal((await s.runCode('a + 1', { language: 'javascript' })).text, '6');
    const e = await s.runCode('throw new TypeError("bad one")', { language: 'javascript' });
    assert.deepEqual([e.error.name, e.error.value], ['TypeError', 'bad one']);
    assert.equal((await s.runCode('await Promise.resolve(3)', { language: 'js' })).text, '3');
  });
  step('Sandbox.runCode: typescript', async () => {
    const s = await box();
    const r = await s.runCode('interface P { x: number }\nconst p: P = { x: 4 };\nfunction f<T>(v: T): T { return v }\nf(p.x) as number', { language: 'typescript' });
    assert.equal(r.error, undefined, JSON.stringify(r.error));
    assert.equal(r.text, '4');
  });
  step('Sandbox.runCode: bash', async () => {
    const s = await box();
    const r = await s.runCode('V=7; echo "bash $V"; echo wrong >&2', { language: 'bash' });
    assert.equal(r.logs.stdout.join(''), 'bash 7\n');
    assert.equal(r.logs.stderr.join(''), 'wrong\n');
    assert.equal((await s.runCode('echo $V', { language: 'bash' })).logs.stdout.join(''), '7\n');
  });
  step('Sandbox.runCode: languages that aren’t there', async () => {
    const s = await box();
    for (const language of ['r', 'java', 'cobol']) {
      const e = await fails(s.runCode('1', { language }), sdk.SandboxError);
      assert.ok(!(e instanceof sdk.TimeoutError), e.message);
    }
    await fails(s.runCode('1', { context: { id: 'no-such-context' } }), sdk.NotFoundError);
  });
  step('Sandbox.createCodeContext', async () => {
    const s = await box();
    const c = await s.createCodeContext({ cwd: '/tmp' });
    assert.deepEqual([c.language, c.cwd], ['python', '/tmp']);
    assert.ok(c.id);
    assert.equal((await s.runCode('import os; os.getcwd()', { context: c })).text, '/tmp');
    await s.runCode('mine = 1', { context: c });
    assert.equal((await s.runCode('mine')).error.name, 'NameError', 'others don’t see it');
    assert.equal((await s.runCode('mine', { context: c })).text, '1');
    const js = await s.createCodeContext({ language: 'javascript' });
    assert.equal(js.language, 'javascript');
    assert.equal((await s.runCode('[1, 2].map((n) => n * 2)', { context: js })).text, '[ 2, 4 ]');
    assert.equal((await s.runCode('import os; os.getcwd()')).text, '/home/user');
  });
  step('Sandbox.listCodeContexts', async () => {
    const s = await box();
    const c = await s.createCodeContext({ cwd: '/tmp' });
    const list = await s.listCodeContexts();
    assert.deepEqual(list.find((x) => x.id === c.id), c);
    assert.ok(list.length >= 2, 'the default one, too');
  });
  step('Sandbox.restartCodeContext', async () => {
    const s = await box();
    const c = await s.createCodeContext();
    await s.runCode('lost = 1', { context: c });
    await s.restartCodeContext(c);
    assert.equal((await s.runCode('lost', { context: c })).error.name, 'NameError');
    await s.restartCodeContext(c.id);
    await fails(s.restartCodeContext('no-such-context'), sdk.NotFoundError);
  });
  step('Sandbox.removeCodeContext', async () => {
    const s = await box();
    const c = await s.createCodeContext();
    await s.runCode('1', { context: c });
    await s.removeCodeContext(c);
    assert.ok(!(await s.listCodeContexts()).some((x) => x.id === c.id));
    await fails(s.runCode('1', { context: c }), sdk.NotFoundError);
    await fails(s.removeCodeContext(c), sdk.NotFoundError);
  });
  step('Sandbox.fork: contexts', async () => {
    const s = await box();
    const c = await s.createCodeContext({ cwd: '/tmp' });
    await s.runCode('state = [1]', { context: c });
    await s.runCode('main_state = "kept"');
    const [f] = await s.fork();
    assert.equal((await f.runCode('state.append(2); state', { context: c })).text, '[1, 2]');
    assert.equal((await f.runCode('main_state')).text, 'kept');
    assert.equal((await s.runCode('state', { context: c })).text, '[1]');
    await f.kill();
  });
  step('Sandbox.pause: contexts', async () => {
    const s = await create({ timeoutMs: 120_000 });
    const c = await s.createCodeContext({ cwd: '/tmp' });
    await s.runCode('state = {"n": 1}', { context: c });
    await s.pause();
    await s.connect({ timeoutMs: 60_000 });
    assert.equal((await s.runCode('state["n"] += 1; state', { context: c })).text, "{'n': 2}");
    assert.deepEqual((await s.listCodeContexts()).find((x) => x.id === c.id), c);
    await s.kill();
  });
  step('Sandbox.runCode: await and cells', async () => {
    const s = await box();
    assert.equal((await s.runCode('import asyncio\nawait asyncio.sleep(0.01, "awaited")')).text, 'awaited');
    assert.equal((await s.runCode('_ + "!"')).text, 'awaited!');
    assert.deepEqual((await s.runCode('3;')).results, [], 'a semicolon keeps it silent');
    assert.equal((await s.runCode('"a" "ü😀"')).text, 'aü😀');
    assert.match((await s.runCode('!echo from a shell')).logs.stdout.join(''), /from a shell/);
  });
});
