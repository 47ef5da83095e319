// The modules std and os of QuickJS, as far as scripts use them.
'use strict';
const loop = require('internal/loop');
const { format } = require('internal/printf');
const err = (r) => r < 0 ? r : r;
class FILE {
  constructor(fd) { this.fd = fd; this.buf = ''; this.end = false; }
  puts(...a) { internal.writeAll(this.fd, host.encode(a.map(String).join(''))); }
  printf(...a) { this.puts(format(...a)); }
  flush() {}
  close() { return host.close(this.fd); }
  fileno() { return this.fd; }
  eof() { return this.end && this.buf === ''; }
  #more() {
    const b = new Uint8Array(65536);
    const n = host.read(this.fd, b, 0, b.length, -1);
    if (n <= 0) { this.end = true; return false; }
    this.raw = (this.raw || new require('string_decoder').StringDecoder('utf8'));
    this.buf += this.raw.write(Buffer_from(b.subarray(0, n)));
    return true;
  }
  getline() {
    for (;;) {
      const i = this.buf.indexOf('\n');
      if (i >= 0) {
        const s = this.buf.slice(0, i);
        this.buf = this.buf.slice(i + 1);
        return s;
      }
      if (this.end || !this.#more()) {
        const s = this.buf;
        this.buf = '';
        return s === '' ? null : s;
      }
    }
  }
  readAsString() {
    while (!this.end) this.#more();
    const s = this.buf;
    this.buf = '';
    return s;
  }
  getByte() { const b = new Uint8Array(1); return host.read(this.fd, b, 0, 1, -1) === 1 ? b[0] : -1; }
  putByte(c) { internal.writeAll(this.fd, Uint8Array.of(c)); }
}
const { Buffer } = require('buffer');
const Buffer_from = (u) => Buffer.from(u);
const modes = { r: 0, w: 0x241, a: 0x441, 'r+': 2, 'w+': 0x242, 'a+': 0x442 };
const env = () => Object.fromEntries(host.environ().map((kv) => [kv.slice(0, kv.indexOf('=')), kv.slice(kv.indexOf('=') + 1)]));
const std = {
  exit: (n = 0) => host.exit(n), gc: () => host.gc(), FILE,
  in: new FILE(0), out: new FILE(1), err: new FILE(2),
  puts: (...a) => std.out.puts(...a), printf: (...a) => std.out.printf(...a), sprintf: format,
  open(name, mode = 'r', e) { const fd = host.open(name, modes[mode.replace('b', '')] ?? 0, 0o666); if (e) e.errno = fd < 0 ? -fd : 0; return fd < 0 ? null : new FILE(fd); },
  loadFile(name, o) {
    const fd = host.open(name, 0, 0);
    if (fd < 0) return null;
    const b = host.readAll(fd);
    host.close(fd);
    return typeof b === 'number' ? null : o && o.binary ? b : host.decode(b, 0, b.length, false);
  },
  writeFile(name, data) { const f = std.open(name, 'w'); if (typeof data === 'string') f.puts(data); else internal.writeAll(f.fd, new Uint8Array(data.buffer || data)); f.close(); },
  loadScript(name) { return host.script(std.loadFile(name), name, 0); },
  evalScript(text) { return host.script(text, '<evalScript>', 0); },
  getenv: (n) => env()[n], getenviron: env, strerror: (n) => (require('internal/errors').table[n] || ['', `Unknown error ${n}`])[1],
  parseExtJSON: (s) => JSON.parse(s), SEEK_SET: 0, SEEK_CUR: 1, SEEK_END: 2,
  Error: Object.fromEntries(Object.entries(require('internal/errors').table).map(([n, [c]]) => [c, +n])),
};
const os = {
  platform: 'linux', O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_APPEND: 0x400, O_CREAT: 0x40, O_EXCL: 0x80, O_TRUNC: 0x200, SIGINT: 2, SIGTERM: 15, WNOHANG: 1,
  S_IFMT: 0o170000, S_IFDIR: 0o040000, S_IFREG: 0o100000, S_IFLNK: 0o120000,
  open: (n, f, m = 0o666) => host.open(n, f, m), close: (fd) => host.close(fd),
  read: (fd, buf, off, len) => host.read(fd, new Uint8Array(buf), off, len, -1), write: (fd, buf, off, len) => host.write(fd, new Uint8Array(buf), off, len, -1),
  isatty: (fd) => host.isatty(fd), getcwd: () => [host.cwd(), 0], chdir: (d) => host.chdir(d), mkdir: (d, m = 0o777) => host.mkdir(d, m), getpid: () => host.ids()[0],
  remove: (n) => { const r = host.unlink(n, false); return r === -21 ? host.unlink(n, true) : r; }, rename: (a, b) => host.rename(a, b), symlink: (a, b) => host.symlink(a, b),
  readlink: (n) => { const r = host.readlink(n); return typeof r === 'string' ? [r, 0] : ['', -r]; },
  realpath: (n) => { const r = host.realpath(n); return typeof r === 'string' ? [r, 0] : ['', -r]; },
  readdir: (n) => { const r = host.readdir(n); return typeof r === 'number' ? [[], -r] : [['.', '..', ...r.filter((_, i) => i % 2 === 0)], 0]; },
  stat: (n) => statOf(host.stat(n, false)), lstat: (n) => statOf(host.stat(n, true)),
  utimes: (n, a, m) => host.utimes(n, a, m, false), sleep: (ms) => { host.poll([], ms); }, sleepAsync: (ms) => new Promise((r) => setTimeout(r, ms)),
  setTimeout: (f, ms) => setTimeout(f, ms), clearTimeout: (t) => clearTimeout(t), setInterval: (f, ms) => setInterval(f, ms), clearInterval: (t) => clearInterval(t),
  setReadHandler: (fd, f) => { if (f) loop.read(fd, () => f()); else loop.unread(fd); }, pipe: () => host.pipe(), kill: (p, s) => host.kill(p, s), now: () => host.hr() / 1e6,
  exec(args, o = {}) {
    const e = o.env ? Object.entries(o.env).map(([k, v]) => `${k}=${v}`) : null;
    const pid = host.spawn(o.file || args[0], args, e, o.cwd ?? null, [0, o.stdin ?? 0, 1, o.stdout ?? 1, 2, o.stderr ?? 2].reduce((a, _, i, l) => i % 2 ? a : [...a, l[i + 1], l[i]], []), o.usePath === false ? 0 : 1);
    if (pid < 0) return 127;
    if (o.block === false) return pid;
    const r = host.wait(pid, 0);
    return r[1] & 127 ? -(r[1] & 127) : r[1] >> 8;
  },
  waitpid: (pid, f = 0) => { const r = host.wait(pid, f); return typeof r === 'number' ? [r, 0] : r; },
};
function statOf(v) {
  if (typeof v === 'number') return [null, -v];
  const [dev, ino, mode, nlink, uid, gid, rdev, size, , blocks, atime, mtime, ctime] = v;
  return [{ dev, ino, mode, nlink, uid, gid, rdev, size, blocks, atime, mtime, ctime }, 0];
}
module.exports = { std, os };
