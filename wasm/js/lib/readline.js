'use strict';
const EE = require('events');
const { StringDecoder } = require('string_decoder');
const { AbortError } = require('internal/errors');
class Interface extends EE {
  #decoder = new StringDecoder('utf8'); #left = ''; #questions = []; #cr = false;
  constructor(input, output, completer, terminal) {
    super();
    let o = input;
    if (!input || typeof input.on === 'function') o = { input, output, completer, terminal };
    this.input = o.input;
    this.output = o.output;
    this.terminal = !!(o.terminal ?? (o.output && o.output.isTTY));
    this.line = '';
    this.cursor = 0;
    this.closed = false;
    this.history = o.history || [];
    this._prompt = o.prompt === undefined ? '> ' : `${o.prompt}`;
    this.crlfDelay = o.crlfDelay;
    Object.defineProperty(this, 'onData', { value: (c) => this.#data(c) });
    Object.defineProperty(this, 'onEnd', { value: () => { if (this.#left) this.#emit(this.#left); this.#left = ''; this.close(); } });
    Object.defineProperty(this, 'onError', { value: (e) => this.emit('error', e) });
    if (this.input) {
      this.input.on('data', this.onData);
      this.input.on('end', this.onEnd);
      if (this.terminal && this.input.isTTY) this.onInt = () => { if (this.listenerCount('SIGINT')) this.emit('SIGINT'); else this.close(); };
      this.input.resume();
    }
    if (o.signal) { const f = () => this.close(); if (o.signal.aborted) process.nextTick(f); else o.signal.addEventListener('abort', f, { once: true }); }
  }
  #data(c) {
    let s = this.#left + (typeof c === 'string' ? c : this.#decoder.write(c));
    if (this.#cr && s[0] === '\n') s = s.slice(1);
    this.#cr = s.endsWith('\r');
    const lines = s.split(/\r\n|\n|\r|\u2028|\u2029/);
    this.#left = lines.pop();
    for (let i = 0; i < lines.length; i++) {
      if (this.closed) return;
      if (this.paused) { this.#left = [...lines.slice(i), this.#left].join('\n'); return; }
      this.#emit(lines[i]);
    }
  }
  #emit(line) {
    this.line = '';
    if (line) this.history.unshift(line);
    const q = this.#questions.shift();
    if (q) q(line); else this.emit('line', line);
  }
  setPrompt(p) { this._prompt = p; }
  getPrompt() { return this._prompt; }
  prompt() { if (this.paused) this.resume(); if (this.output) this.output.write(this._prompt); }
  question(q, o, cb) {
    if (typeof o === 'function') { cb = o; o = {}; }
    if (this.closed) throw require('internal/errors').coded(Error, 'ERR_USE_AFTER_CLOSE', 'readline was closed');
    if (this.output) this.output.write(q);
    if (o && o.signal) o.signal.addEventListener('abort', () => { const i = this.#questions.indexOf(cb); if (i >= 0) this.#questions.splice(i, 1); }, { once: true });
    this.#questions.push(cb);
    if (this.paused) this.resume();
  }
  write(s) { if (this.paused) this.resume(); if (s != null) { if (this.terminal && this.output) this.output.write(s); this.#data(`${s}`); } }
  pause() { if (this.paused) return this; this.paused = true; this.input.pause(); this.emit('pause'); return this; }
  resume() {
    if (!this.paused) return this;
    this.paused = false;
    this.input.resume();
    this.emit('resume');
    const s = this.#left;
    if (s.includes('\n')) { this.#left = ''; process.nextTick(() => this.#data(s)); }
    return this;
  }
  close() {
    if (this.closed) return;
    this.closed = true;
    if (this.input) {
      this.input.removeListener('data', this.onData);
      this.input.removeListener('end', this.onEnd);
      this.input.pause();
    }
    this.emit('close');
  }
  getCursorPos() { return { rows: 0, cols: 0 }; }
  [Symbol.dispose || Symbol.for('nodejs.dispose')]() { this.close(); }
  [Symbol.asyncIterator]() {
    const lines = [], waiting = [];
    let done = this.closed;
    this.on('line', (l) => { const w = waiting.shift(); if (w) w({ value: l, done: false }); else lines.push(l); });
    this.on('close', () => { done = true; for (const w of waiting.splice(0)) w({ value: undefined, done: true }); });
    return {
      next: () => lines.length ? Promise.resolve({ value: lines.shift(), done: false }) : done ? Promise.resolve({ value: undefined, done: true }) : new Promise((r) => waiting.push(r)),
      return: () => { this.close(); return Promise.resolve({ value: undefined, done: true }); }, [Symbol.asyncIterator]() { return this; },
    };
  }
}
function OldInterface(...a) { return Reflect.construct(Interface, a, new.target || Interface); }
OldInterface.prototype = Interface.prototype;
Object.defineProperty(Interface.prototype.question, Symbol.for('nodejs.util.promisify.custom'), { value(q, o) { return new Promise((r) => this.question(q, o || {}, r)); } });
const esc = (s, f) => (stream, ...a) => { const cb = a.find((x) => typeof x === 'function'); const t = s(...a); if (stream && t) return stream.write(t, cb); if (cb) process.nextTick(cb, null); return true; };
const createInterface = (...a) => new Interface(...a);
class PromiseInterface extends Interface {
  question(q, o = {}) {
    return new Promise((resolve, reject) => {
      if (o.signal) { const f = () => reject(new AbortError(undefined, { cause: o.signal.reason })); if (o.signal.aborted) return f(); o.signal.addEventListener('abort', f, { once: true }); }
      super.question(q, o, resolve);
    });
  }
}
module.exports = {
  Interface: OldInterface, createInterface, cursorTo: esc((x, y) => typeof y === 'number' ? `\u001b[${y + 1};${x + 1}H` : `\u001b[${x + 1}G`),
  moveCursor: esc((x, y) => (x < 0 ? `\u001b[${-x}D` : x > 0 ? `\u001b[${x}C` : '') + (y < 0 ? `\u001b[${-y}A` : y > 0 ? `\u001b[${y}B` : '')),
  clearLine: esc((d) => d < 0 ? '\u001b[1K' : d > 0 ? '\u001b[0K' : '\u001b[2K'), clearScreenDown: esc(() => '\u001b[0J'),
  emitKeypressEvents(stream) {
    if (stream.keypresses) return;
    Object.defineProperty(stream, 'keypresses', { value: true });
    stream.on('data', (b) => {
      for (const s of b.toString().match(/\u001b\[[0-9;]*[A-Za-z~]|\u001bO[A-Z]|[\s\S]/gu) || []) {
        const n = { '\r': 'return', '\n': 'enter', '\t': 'tab', '\u007f': 'backspace', '\b': 'backspace', '\u001b': 'escape', ' ': 'space', '\u001b[A': 'up', '\u001b[B': 'down', '\u001b[C': 'right', '\u001b[D': 'left' }[s];
        const ctrl = s.length === 1 && s < ' ' && !n;
        stream.emit('keypress', s, { sequence: s, name: n || (ctrl ? String.fromCharCode(s.charCodeAt(0) + 96) : s.toLowerCase()), ctrl, meta: false, shift: /^[A-Z]$/.test(s) });
      }
    });
  },
};
module.exports.promises = { Interface: PromiseInterface, createInterface: (...a) => new PromiseInterface(...a) };
