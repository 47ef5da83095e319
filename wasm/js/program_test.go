package js_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// tree is what TestPrograms runs things in, as files of /t.
var tree = map[string]string{
	"node_modules/cjs/package.json":  `{"name":"cjs","main":"./main.js","version":"1.2.3"}`,
	"node_modules/cjs/main.js":       "exports.name='cjs'; exports.f=()=>'f'; exports.dir=require('path').basename(__dirname);",
	"node_modules/esm/package.json":  `{"name":"esm","type":"module","exports":{".":"./i.js","./x":"./x.js"}}`,
	"node_modules/esm/i.js":          "export default 'esm default'; export const named = 1;",
	"node_modules/esm/x.js":          "export const x='x';",
	"node_modules/dual/package.json": `{"name":"dual","exports":{".":{"import":"./lib/i.mjs","require":"./lib/i.cjs"},"./*":"./lib/*.js"}}`,
	"node_modules/dual/lib/i.mjs":    "export default 'imported'",
	"node_modules/dual/lib/i.cjs":    "module.exports='required'",
	"node_modules/dual/lib/star.js":  "module.exports='star'",
	"node_modules/@s/p/index.js":     "module.exports='scoped'",
	"a.js":                           "exports.b=require('./b'); exports.done=true;",
	"b.js":                           "const a=require('./a'); exports.sawDone='done' in a; module.exports.x=1;",
	"sub/index.js":                   "module.exports={sub:true, parent: module.parent && require('path').basename(module.parent.filename)}; if (require.main === module) console.log('sub')",
	"data.json":                      `{"k":[1]}`,
	"pkg/package.json":               `{"name":"pkg","type":"module","imports":{"#in":"./in.js"}}`,
	"pkg/in.js":                      "export default 'by imports'",
	"pkg/main.js":                    "import v from '#in'; import self from 'node:path'; console.log(v, typeof self.join, typeof module)",
	"detect.js":                      "export const a = 1; console.log('a module by its syntax', typeof require)",
	"shebang.js":                     "#!/usr/bin/env node\nconsole.log('shebang', process.argv.slice(2))",
	"throw.js":                       "const a = 1;\nfunction f() { null.x; }\nf();",
	"syntax.js":                      "let x = {\n  a: 1,\n  b: ,\n}",
	"props.js":                       "const e = new Error('props'); e.code = 'X'; e.list = [1]; throw e",
	"custom.js":                      "class V extends Error {}; throw new V('custom')",
	"later.js":                       "setTimeout(() => { throw new RangeError('later') }); process.on('exit', (c) => console.log('code', c))",
	"rejected.js":                    "process.exitCode = 3; setTimeout(() => { Promise.reject(new TypeError('rejected')) }, 1)",
	"handled.js":                     "process.on('uncaughtException', (e) => console.log('handled', e.message)); setTimeout(() => console.log('after'), 5); throw new Error('u')",
	"unhandled.js":                   "process.on('unhandledRejection', (r) => console.log('uh', r)); Promise.reject(1)",
	"exit.js":                        "process.on('exit', (c) => { console.log('exit', c); process.exitCode = 9; }); process.exit(4)",
	"string.js":                      "throw 'string'",
	"pending.mjs":                    "await new Promise(() => {})",
	"modules.js": `console.log(require('cjs'), require('dual'), require('dual/star'), require('@s/p'), require('./a'), require('./sub'), require('./data'), require('cjs/package.json').version);
console.log(module.id, module.loaded, module.children.length, require.main === module, require.resolve('./a').endsWith('a.js'), this === module.exports, arguments.length);
for (const r of ['nope', './nope', 'cjs/nope', 'esm/nope', 'node:nope', '']) try { require(r); } catch (e) { console.log(e.code, e.message.split('\n')[0].replaceAll(__dirname, 'D')); }
import('esm').then((m) => { console.log(m.default, m.named, m); return import('./mod.mjs'); }).then((m) => console.log(Object.keys(m), m.default)).then(() => import('cjs')).then((m) => console.log(m.name, m.default.name)).then(() => import('./nope.mjs')).catch((e) => console.log(e.code, e.message.replaceAll(__dirname, 'D')));
console.log(require('module').builtinModules.includes('fs'), require('node:fs') === require('fs'), require('module').createRequire(__filename)('./data').k);`,
	"mod.mjs": `import fs, { readFileSync } from 'fs'; import * as path from 'node:path'; import cjs, { name } from 'cjs'; import esm, { named } from 'esm'; import { x } from 'esm/x'; import dual from 'dual'; import data from './data.json' with { type: 'json' }; import { createRequire } from 'module';
console.log(typeof fs.readFileSync, readFileSync === fs.readFileSync, path.join('a', 'b'), cjs.name, name, esm, named, x, dual, data, typeof require, this, typeof __filename);
console.log(import.meta.url.endsWith('/mod.mjs'), import.meta.filename.endsWith('mod.mjs'), import.meta.dirname.length > 1, import.meta.resolve('./a.js').endsWith('a.js'));
const v = await Promise.resolve(7); console.log('tla', v); export default v; export const other = 1; export function fn() {} export class K {} export { v as renamed }; export * from 'esm/x'; export * as ns from 'esm';
console.log(createRequire(import.meta.url)('./data.json').k[0]);`,
	"math.test.js": `const { test, describe, it, beforeEach, mock } = require('node:test'); const assert = require('assert'); let n = 0; describe('suite', () => { beforeEach(() => n++); it('inner', async () => { await 1; }); it('skipped', { skip: true }, () => {}); });
test('sub', async (t) => { await t.test('s1', () => assert.equal(n, 1)); }); test.todo('later'); const f = mock.fn((a) => a + 1); f(1); test('mock', () => assert.equal(f.mock.calls.length, 1));`,
}

// Command lines of node do what they do with Node: output, status, and errors but for frames within Node.
func TestPrograms(t *testing.T) {
	b := newBox(t, proc.Limits{})
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("NO NODE HERE: nothing to compare with; install Node 20")
	}
	if v, _ := exec.Command(node, "--version").Output(); !strings.HasPrefix(string(v), "v20.") {
		t.Skipf("NOT NODE 20: %s", v)
	}
	dir := t.TempDir()
	for name, text := range tree {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for i, c := range name {
			if c == '/' {
				b.s.Namespace().Mkdir(t.Context(), vfs.Cred{}, "/", "/t/"+name[:i], 0o755)
			}
		}
		put(t, b.s.Namespace(), "/t/"+name, text)
	}
	// What differs for good: places, and the frames of what is Node's own.
	clean := func(s string) string {
		s = strings.ReplaceAll(s, dir, "/t")
		s = regexp.MustCompile(`(?m)^( +at .*|node:internal.*|  throw .*|duration_ms.*|.*duration_ms.*| *)\n`).ReplaceAllString(s, "")
		return regexp.MustCompile(`(?m)^ *\^+$\n`).ReplaceAllString(s, "")
	}
	const text = "line one\nline two\n"
	for _, args := range [][]string{
		{"modules.js"}, {"mod.mjs"}, {"pkg/main.js"}, {"detect.js"}, {"shebang.js", "a", "b"}, {"sub"}, {"a"}, {"nofile.js"}, {"throw.js"}, {"syntax.js"}, {"props.js"}, {"custom.js"}, {"later.js"},
		{"rejected.js"}, {"handled.js"}, {"unhandled.js"}, {"exit.js"}, {"string.js"}, {"pending.mjs"}, {"math.test.js"}, {"--version"}, {"-e", "console.log(process.argv.slice(1), __filename, require.main === module)", "a", "b"},
		{"-p", "[1,2].map(x=>x*2)"}, {"-p", "os.EOL + path.sep"}, {"-pe", "1+1"}, {"--eval=console.log(1)"}, {"-c", "syntax.js"}, {"-c", "modules.js"}, {"-r", "./a.js", "-e", "console.log(1)"},
		{"--input-type=module", "-e", "import fs from 'fs'; console.log(typeof fs)"}, {"-e", "await 1; console.log(2)"}, {"-e", "import fs from 'fs'; console.log(typeof fs)"}, {"--bogus"}, {"-e", "throw new Error(1)"},
		{"-e", "process.exit(300)"}, {"-e", "console.log(require('fs').readFileSync(0, 'utf8'))"}, {"-e", "process.stdin.pipe(process.stdout)"}, {"-e", "console.warn('w'); process.emitWarning('careful')", "--"}, {"-p", "process.argv.length", "--", "-x"},
	} {
		cmd := exec.Command(node, args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(text)
		var o, e bytes.Buffer
		cmd.Stdout, cmd.Stderr = &o, &e
		cmd.Run()
		out, errOut, status := b.run("/t", text, append([]string{"node"}, args...)...)
		wantOut, wantErr := clean(o.String()), clean(e.String())
		pid := regexp.MustCompile(`\(node:\d+\)`)
		out, errOut = clean(out), pid.ReplaceAllString(clean(errOut), "(node)")
		wantErr = strings.ReplaceAll(pid.ReplaceAllString(wantErr, "(node)"), node+": bad", "node: bad")
		if out != wantOut || status != cmd.ProcessState.ExitCode() {
			t.Errorf("%q: status %d, Node's is %d\n%s", args, status, cmd.ProcessState.ExitCode(), difference(out, wantOut))
		}
		if errOut != wantErr {
			t.Errorf("%q: errors: %s", args, difference(errOut, wantErr))
		}
	}
}

// What a script can do to itself is its own end, and no one else's.
func TestContained(t *testing.T) {
	b := newBox(t, proc.Limits{SandboxMemory: 1 << 30})
	p, _, _ := b.start("/task", "", "node", "-e", "for (;;);")
	time.Sleep(100 * time.Millisecond)
	p.Post(proc.SIGTERM)
	<-p.Done()
	if p.Status() != 128+proc.SIGTERM {
		t.Errorf("an endless loop: status %d", p.Status())
	}
	for name, script := range map[string]string{
		"memory":     "const a = []; for (;;) a.push(new Array(1e5).fill(a.length))",
		"recursion":  "(function f() { f(); })()",
		"regex":      "try { new RegExp('('.repeat(1e5)) } catch (e) { process.exit(1) }",
		"promises":   "process.on('exit', () => {}); throw 1",
		"bad fd":     "require('fs').closeSync(77)",
		"deep parse": "eval('['.repeat(3e5))",
	} {
		if _, errOut, status := b.run("/task", "", "node", "-e", script); status == 0 || errOut == "" && name != "regex" {
			t.Errorf("%s: status %d, %q", name, status, errOut)
		}
	}
	if out, _, status := b.run("/task", "", "node", "-p", "1 + 1"); out != "2\n" || status != 0 {
		t.Errorf("afterwards: %q, status %d", out, status)
	}
	if u := b.s.Usage(); u.Memory != 0 {
		t.Errorf("%d bytes are still charged", u.Memory)
	}
}

// Runs are apart: what one leaves in its memory no other sees, and randomness differs.
func TestApart(t *testing.T) {
	b := newBox(t, proc.Limits{})
	script := "console.log(globalThis.left, Object.prototype.left, process.env.LEFT, Math.random(), require('crypto').randomUUID()); globalThis.left = 1; Object.prototype.left = 2; process.env.LEFT = 3; require('fs').left = 4"
	seen := map[string]bool{}
	for range 5 {
		out, errOut, _ := b.run("/task", "", "node", "-e", script)
		if !strings.HasPrefix(out, "undefined undefined undefined ") || seen[out] {
			t.Errorf("%q, %q", out, errOut)
		}
		seen[out] = true
	}
}

func TestQJS(t *testing.T) {
	b := newBox(t, proc.Limits{})
	for _, c := range []struct {
		args []string
		out  string
	}{
		{[]string{"-e", "print(1 + 1, typeof require, typeof Buffer)"}, "2 undefined undefined\n"},
		{[]string{"--std", "-e", "std.out.puts('x\\n'); print(os.getcwd()[0]); std.printf('%05.1f|%-4s|%x\\n', 3.14159, 'ab', 255)"}, "x\n/task\n003.1|ab  |ff\n"},
		{[]string{"-m", "-e", "print(import.meta.url.length > 0)"}, "true\n"},
		{[]string{"--version"}, "0.17.0\n"},
	} {
		if out, errOut, status := b.run("/task", "", append([]string{"qjs"}, c.args...)...); out != c.out || status != 0 {
			t.Errorf("%q: %q, %q, status %d", c.args, out, errOut, status)
		}
	}
	if _, errOut, status := b.run("/task", "", "qjs", "-e", "throw new Error('no')"); status != 1 || !strings.HasPrefix(errOut, "Error: no\n    at ") {
		t.Errorf("%q, status %d", errOut, status)
	}
}

func BenchmarkNode(b *testing.B) {
	box := newBox(b, proc.Limits{})
	box.run("/task", "", "node", "-p", "1")
	for b.Loop() {
		box.run("/task", "", "node", "-p", "1")
	}
}
