// Names are resolved outside, by whoever connects; there is nothing to ask here.
'use strict';
const failed = (name, syscall) => Object.assign(new Error(`${syscall} ENOTFOUND ${name}`), { errno: -3008, code: 'ENOTFOUND', syscall, hostname: name });
const local = (name) => name === 'localhost' || require('net').isIP(name);
function lookup(name, o, cb) {
  if (typeof o === 'function') { cb = o; o = {}; }
  const family = require('net').isIP(name) || 4, address = require('net').isIP(name) ? name : '127.0.0.1';
  setImmediate(() => !local(name) ? cb(failed(name, 'getaddrinfo')) : o && o.all ? cb(null, [{ address, family }]) : cb(null, address, family));
}
const resolve = (syscall) => (name, ...a) => { const cb = a.pop(); setImmediate(() => cb(failed(name, syscall))); };
module.exports = { lookup, resolve: resolve('queryA'), resolve4: resolve('queryA'), resolve6: resolve('queryAaaa'), resolveMx: resolve('queryMx'), resolveTxt: resolve('queryTxt'), resolveCname: resolve('queryCname'), resolveNs: resolve('queryNs'),
  resolveSrv: resolve('querySrv'), reverse: resolve('getHostByAddr'), lookupService: resolve('getnameinfo'), getServers: () => [], setServers() {}, setDefaultResultOrder() {}, getDefaultResultOrder: () => 'verbatim', NOTFOUND: 'ENOTFOUND', ADDRCONFIG: 32, V4MAPPED: 8, ALL: 16 };
module.exports.promises = { lookup: (name, o) => new Promise((y, n) => lookup(name, o || {}, (e, address, family) => e ? n(e) : y(o && o.all ? address : { address, family }))) };
for (const k of ['resolve', 'resolve4', 'resolve6', 'resolveMx', 'resolveTxt', 'resolveCname', 'resolveNs', 'resolveSrv', 'reverse']) module.exports.promises[k] = (name) => new Promise((y, n) => module.exports[k](name, (e, v) => e ? n(e) : y(v)));
