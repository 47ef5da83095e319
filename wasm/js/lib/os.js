'use strict';
const { table } = require('internal/errors');
const signals = internal.signals;
const errno = {};
for (const n of Object.keys(table)) errno[table[n][0]] = +n;
const os = module.exports = {
  EOL: '\n', devNull: '/dev/null',
  constants: { UV_UDP_REUSEADDR: 4, dlopen: { RTLD_LAZY: 1, RTLD_NOW: 2, RTLD_GLOBAL: 256, RTLD_LOCAL: 0 }, errno, signals,
    priority: { PRIORITY_LOW: 19, PRIORITY_BELOW_NORMAL: 10, PRIORITY_NORMAL: 0, PRIORITY_ABOVE_NORMAL: -7, PRIORITY_HIGH: -14, PRIORITY_HIGHEST: -20 } },
  hostname: () => host.hostname(), platform: () => 'linux', type: () => 'Linux', arch: () => 'x64', machine: () => 'x86_64', release: () => '6.1.0-agentrun', version: () => '#1 AgentRun',
  endianness: () => 'LE', tmpdir: () => (process.env.TMPDIR || process.env.TMP || process.env.TEMP || '/tmp').replace(/(.)\/$/, '$1'), homedir: () => process.env.HOME || user().homedir,
  uptime: () => Math.floor(host.hr() / 1e9), loadavg: () => [0, 0, 0], totalmem: () => memory('MemTotal', 2 ** 30), freemem: () => memory('MemAvailable', 2 ** 29),
  cpus: () => [{ model: 'AgentRun', speed: 0, times: { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 } }], availableParallelism: () => 1, networkInterfaces: () => ({}),
  getPriority: () => 0, setPriority() {}, userInfo: () => user(),
};
function memory(name, otherwise) {
  try {
    const m = new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(require('fs').readFileSync('/proc/meminfo', 'utf8'));
    return m ? m[1] * 1024 : otherwise;
  } catch { return otherwise; }
}
function user() {
  const [, , uid, gid] = host.ids();
  try {
    for (const line of require('fs').readFileSync('/etc/passwd', 'utf8').split('\n')) {
      const f = line.split(':');
      if (+f[2] === uid && f.length > 6) return { uid, gid, username: f[0], homedir: f[5], shell: f[6] };
    }
  } catch { /* as below */ }
  return { uid, gid, username: process.env.USER || 'user', homedir: process.env.HOME || '/', shell: '/bin/sh' };
}
for (const k of ['hostname', 'homedir', 'tmpdir', 'platform', 'type', 'arch', 'release', 'endianness']) os[k][Symbol.toPrimitive] = () => os[k]();
