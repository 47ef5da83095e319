// process.stdin, stdout and stderr.
'use strict';
const { Readable, Writable } = require('stream');
const loop = require('internal/loop');
const { system } = require('internal/errors');

internal.stdStreams = [];
internal.atStart.push(() => { internal.stdStreams = []; });

class Output extends Writable {
  constructor(fd) {
    super({ decodeStrings: true });
    this.fd = fd;
    this._type = host.isatty(fd) ? 'tty' : 'pipe';
    if (this._type === 'tty') {
      this.isTTY = true;
      this._size();
    }
    this._isStdio = true;
    this.destroySoon = this.destroy;
  }
  _size() {
    const s = host.winsize(this.fd);
    if (Array.isArray(s)) [this.columns, this.rows] = s;
  }
  _write(chunk, encoding, callback) {
    const r = internal.writeAll(this.fd, chunk);
    callback(r < 0 ? system(r, 'write') : null);
  }
  _destroy(e, callback) { callback(e); }
  getWindowSize() { this._size(); return [this.columns, this.rows]; }
  getColorDepth() { return this.isTTY ? 8 : 1; }
  hasColors(n = 16) { return !!this.isTTY && n <= 256; }
  cursorTo(x, y, f) { return require('readline').cursorTo(this, x, y, f); }
  moveCursor(x, y, f) { return require('readline').moveCursor(this, x, y, f); }
  clearLine(d, f) { return require('readline').clearLine(this, d, f); }
  clearScreenDown(f) { return require('readline').clearScreenDown(this, f); }
}

class Input extends Readable {
  constructor(fd) {
    super({ highWaterMark: 65536 });
    this.fd = fd;
    if (host.isatty(fd)) {
      this.isTTY = true;
      this.isRaw = false;
    }
    this.waits = false;
  }
  _read() {
    if (this.waits) return;
    this.waits = true;
    loop.read(this.fd, () => this._ready());
  }
  _ready() {
    const b = Buffer.allocUnsafe(65536);
    const r = host.read(this.fd, b, 0, b.length, -1);
    if (r === -11 || r === -4) return;
    this._stop();
    if (r < 0) this.destroy(system(r, 'read'));
    else this.push(r === 0 ? null : b.subarray(0, r));
  }
  _stop() {
    this.waits = false;
    loop.unread(this.fd);
  }
  setRawMode(on) {
    const r = host.raw(this.fd, !!on);
    if (r < 0) this.emit('error', system(r, 'setRawMode'));
    else this.isRaw = !!on;
    return this;
  }
  pause() {
    super.pause();
    this._stop();
    return this;
  }
  resume() {
    super.resume();
    return this;
  }
  ref() { loop.refRead(this.fd, true); return this; }
  unref() { loop.refRead(this.fd, false); return this; }
  _destroy(e, callback) {
    this._stop();
    callback(e);
  }
}
module.exports = (fd) => fd === 0 ? new Input(0) : internal.stdStreams[fd] = new Output(fd);
module.exports.Input = Input;
module.exports.Output = Output;
