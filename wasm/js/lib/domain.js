'use strict';
class Domain extends require('events') {
  run(f, ...a) { try { return f(...a); } catch (e) { this.emit('error', e); } return undefined; }
  add() {} remove() {} enter() {} exit() {} dispose() {}
  bind(f) { return (...a) => this.run(f, ...a); }
  intercept(f) { return (e, ...a) => { if (e) this.emit('error', e); else this.run(f, ...a); }; }
}
module.exports = { Domain, create: () => new Domain(), createDomain: () => new Domain(), active: null };
