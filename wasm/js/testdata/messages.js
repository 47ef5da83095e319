const o = { a: {} };
function f() {
  o.a.missing(1, 2);
}
for (const g of [f, () => o.nope(), () => undefinedFn(), () => { const q = 5; q(); }, () => o.a.b.c.d(), () => null.foo, () => o.a(), () => [].reduce((a, b) => a), () => JSON.parse('{bad'),
  () => JSON.parse(''), () => JSON.parse('[1,]'), () => { const c = 1; c = 2; }, () => { 'use strict'; undefinedVar = 1; }, () => x1, () => { x2; let x2; }, () => new Array(-1), () => (1).toFixed(200), () => Symbol() + '', () => 1n + 1,
  () => ({}).x.y, () => { class B extends Object { constructor() { this.x = 1; } } new B(); }, () => { 'use strict'; Object.freeze({ a: 1 }).a = 2; }, () => { (function r() { r(); })(); }, () => structuredClone(() => {}),
  () => JSON.stringify({ a: 1n }), () => { let fn; fn(); }, () => { o.list.map((x) => x); }, () => missing.x, () => { throw { a: 1 }; }, () => { throw null; }, () => require('./nothing-here'), () => require('no-such-package'),
  () => fs.x, () => process.chdir('/no/such'), () => Buffer.alloc(-1), () => 'x'.repeat(3).nope.length]) {
  try { console.log('no error', g()); } catch (e) { console.log(e && e.name, '|', e && String(e.message).replaceAll(__dirname, 'DIR').replace(/'\/.* -> /, ''), e && e.code); }
}
class MyError extends Error { constructor(m) { super(m); this.name = 'MyError'; this.extra = 1; } }
const e = new MyError('own'); console.log(String(e), e instanceof MyError, e instanceof Error, e.stack.split('\n')[0], Object.keys(e), JSON.stringify(e), new Error('a', { cause: 'b' }).cause, new AggregateError([1], 'm').errors);
