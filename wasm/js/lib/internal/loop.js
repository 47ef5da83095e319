// The event loop: ticks, promises' jobs, timers, immediates, descriptors that are waited for, children, signals.
'use strict';
const loop = module.exports;

const ticks = [];
let immediates = [];
const timers = []; // a heap by time, then by number
let counter = 0;
const readers = new Map(); // descriptor → {callback, ref}
const children = new Map(); // pid → {callback, ref}
const signals = new Map(); // number → callback
let rejected = new Map(); // promise → reason, nobody handles it yet
const warned = new Set();
const SIGCHLD = 17;
let watching = false;

loop.now = () => Math.floor(host.hr() / 1e6);
loop.handlers = { uncaught(e) { throw e; }, rejection() { return false; }, late() {} };

loop.nextTick = (f, args) => { ticks.push(f, args); };

// guard runs a callback; an error is the program's end unless it handles that.
function guard(f, self, args) {
  try {
    f.apply(self, args);
  } catch (e) {
    loop.handlers.uncaught(e, 'uncaughtException');
  }
}
loop.guard = guard;

function jobs() {
  for (;;) {
    try {
      host.jobs();
      return;
    } catch (e) {
      loop.handlers.uncaught(e, 'uncaughtException');
    }
  }
}

// drain runs all ticks, then all jobs, until there are none.
function drain() {
  for (;;) {
    for (let i = 0; i < ticks.length; i += 2) {
      const f = ticks[i], args = ticks[i + 1];
      if (i > 2000) { ticks.splice(0, i + 2); i = -2; }
      guard(f, undefined, args);
    }
    ticks.length = 0;
    jobs();
    if (ticks.length) continue;
    if (rejected.size) {
      const list = rejected;
      rejected = new Map();
      for (const [promise, reason] of list) {
        warned.add(promise);
        loop.handlers.rejection(promise, reason);
      }
      continue;
    }
    return;
  }
}
loop.drain = drain;

loop.rejection = (promise, reason, handled) => {
  if (!handled) {
    rejected.set(promise, reason);
  } else if (!rejected.delete(promise) && warned.delete(promise)) {
    ticks.push(() => loop.handlers.late(promise), []);
  }
};

// Timers.
function before(a, b) { return a.at < b.at || a.at === b.at && a.seq < b.seq; }
function swap(i, j) {
  [timers[i], timers[j]] = [timers[j], timers[i]];
  timers[i].index = i;
  timers[j].index = j;
}
function up(i) {
  for (; i > 0; i = (i - 1) >> 1) {
    const p = (i - 1) >> 1;
    if (!before(timers[i], timers[p])) return;
    swap(i, p);
  }
}
function down(i) {
  for (;;) {
    let k = 2 * i + 1;
    if (k >= timers.length) return;
    if (k + 1 < timers.length && before(timers[k + 1], timers[k])) k++;
    if (!before(timers[k], timers[i])) return;
    swap(i, k);
    i = k;
  }
}
loop.addTimer = (t, ms) => {
  loop.removeTimer(t);
  t.at = loop.now() + ms;
  t.seq = counter++;
  t.index = timers.length;
  timers.push(t);
  up(t.index);
};
loop.removeTimer = (t) => {
  const i = t.index;
  if (i === undefined || timers[i] !== t) return;
  const last = timers.length - 1;
  if (i !== last) swap(i, last);
  timers.pop();
  t.index = undefined;
  if (i !== last) {
    down(i);
    up(i);
  }
};
function runTimers(slack = 0) {
  const now = loop.now() + slack;
  while (timers.length && timers[0].at <= now) {
    const t = timers[0];
    loop.removeTimer(t);
    guard(t.fire, t, []);
    drain();
  }
}

loop.addImmediate = (t) => { immediates.push(t); };
function runImmediates() {
  const list = immediates;
  immediates = [];
  for (const t of list) {
    if (t.cleared) continue;
    guard(t.fire, t, []);
    drain();
  }
}

// Descriptors, children, signals.
loop.read = (fd, callback, ref = true) => { readers.set(fd, { callback, ref }); };
loop.unread = (fd) => { readers.delete(fd); };
loop.refRead = (fd, ref) => { const r = readers.get(fd); if (r) r.ref = ref; };
loop.child = (pid, callback) => {
  children.set(pid, { callback, ref: true });
  if (!watching) {
    watching = true;
    host.sigaction(SIGCHLD, 2);
  }
};
loop.refChild = (pid, ref) => { const c = children.get(pid); if (c) c.ref = ref; };
loop.signal = (n, callback) => {
  if (callback) signals.set(n, callback); else signals.delete(n);
  if (n !== SIGCHLD) host.sigaction(n, callback ? 2 : 0);
};

// Signals that came while something else was waited for.
let held = [];
loop.holdSignals = () => { held.push(...host.sigtake()); };
function takeSignals() {
  const list = held.concat(host.sigtake());
  held = [];
  for (const n of list) {
    const f = signals.get(n);
    if (f) {
      guard(f, undefined, [n]);
      drain();
    }
  }
}
function reap() {
  for (const [pid, c] of children) {
    const r = host.wait(pid, 1);
    if (typeof r === 'number' ? r === -4 : r[0] === 0) continue;
    children.delete(pid);
    guard(c.callback, undefined, [typeof r === 'number' ? 0 : r[1]]);
    drain();
  }
}

function alive() {
  if (immediates.some((t) => t.alive !== false)) return true;
  for (const r of readers.values()) if (r.ref) return true;
  for (const c of children.values()) if (c.ref) return true;
  return timers.some((t) => t.alive !== false);
}

function poll() {
  let wait = -1;
  if (immediates.length || held.length) wait = 0;
  else if (timers.length) wait = Math.max(0, timers[0].at - host.hr() / 1e6);
  const fds = Array.from(readers.keys());
  const ready = host.poll(fds, wait);
  takeSignals();
  if (children.size) reap();
  if (typeof ready === 'number') {
    if (ready === -4 || ready === 0) return;
    for (const fd of fds) { // one of them is none any more: each is told by its own read
      const r = readers.get(fd);
      if (r) guard(r.callback, undefined, [fd]);
    }
    drain();
    return;
  }
  for (const fd of ready) {
    const r = readers.get(fd);
    if (!r) continue;
    guard(r.callback, undefined, [fd]);
    drain();
  }
}

// run goes on until nothing is left to wait for.
loop.run = () => {
  drain();
  // Starting takes Node a millisecond or more: what was set to fire at once is due then, before the first immediate.
  for (let slack = 1; alive(); slack = 0) {
    runTimers(slack);
    if (!alive()) break;
    poll();
    runImmediates();
  }
};
// until goes on until done says so, or nothing is left.
loop.until = (done) => {
  drain();
  while (!done() && alive()) {
    runTimers();
    if (done() || !alive()) break;
    poll();
    runImmediates();
  }
};
loop.pending = alive;
