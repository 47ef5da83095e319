// Errors as Node makes them: with codes, and those of the system.
'use strict';
const table = {
  1: ['EPERM', 'operation not permitted'], 2: ['ENOENT', 'no such file or directory'], 3: ['ESRCH', 'no such process'],
  4: ['EINTR', 'interrupted system call'], 5: ['EIO', 'i/o error'], 6: ['ENXIO', 'no such device or address'], 7: ['E2BIG', 'argument list too long'],
  8: ['ENOEXEC', 'exec format error'], 9: ['EBADF', 'bad file descriptor'], 10: ['ECHILD', 'no child processes'],
  11: ['EAGAIN', 'resource temporarily unavailable'], 12: ['ENOMEM', 'not enough memory'], 13: ['EACCES', 'permission denied'],
  14: ['EFAULT', 'bad address in system call argument'], 16: ['EBUSY', 'resource busy or locked'], 17: ['EEXIST', 'file already exists'],
  18: ['EXDEV', 'cross-device link not permitted'], 19: ['ENODEV', 'no such device'], 20: ['ENOTDIR', 'not a directory'],
  21: ['EISDIR', 'illegal operation on a directory'], 22: ['EINVAL', 'invalid argument'], 23: ['ENFILE', 'file table overflow'],
  24: ['EMFILE', 'too many open files'], 25: ['ENOTTY', 'inappropriate ioctl for device'], 26: ['ETXTBSY', 'text file is busy'],
  27: ['EFBIG', 'file too large'], 28: ['ENOSPC', 'no space left on device'], 29: ['ESPIPE', 'invalid seek'], 30: ['EROFS', 'read-only file system'],
  31: ['EMLINK', 'too many links'], 32: ['EPIPE', 'broken pipe'], 34: ['ERANGE', 'result too large'], 36: ['ENAMETOOLONG', 'name too long'],
  38: ['ENOSYS', 'function not implemented'], 39: ['ENOTEMPTY', 'directory not empty'], 40: ['ELOOP', 'too many symbolic links encountered'],
  75: ['EOVERFLOW', 'value too large for defined data type'], 95: ['ENOTSUP', 'operation not supported on socket'],
  97: ['EAFNOSUPPORT', 'address family not supported'], 98: ['EADDRINUSE', 'address already in use'], 101: ['ENETUNREACH', 'network is unreachable'],
  104: ['ECONNRESET', 'connection reset by peer'], 110: ['ETIMEDOUT', 'connection timed out'], 111: ['ECONNREFUSED', 'connection refused'],
  113: ['EHOSTUNREACH', 'host is unreachable'], 116: ['ESTALE', 'stale file handle'], 122: ['EDQUOT', 'disk quota exceeded'],
};
exports.table = table;

// system makes the error of a failed call; r is the negative errno.
exports.system = function system(r, syscall, path, dest) {
  const [code, text] = table[-r] || ['UNKNOWN', 'unknown error'];
  let message = `${code}: ${text}, ${syscall}`;
  if (path !== undefined) message += ` '${path}'`;
  if (dest !== undefined) message += ` -> '${dest}'`;
  const e = new Error(message);
  e.errno = r;
  e.code = code;
  e.syscall = syscall;
  if (path !== undefined) e.path = path;
  if (dest !== undefined) e.dest = dest;
  Error.captureStackTrace(e, system);
  return e;
};
exports.check = function check(r, syscall, path, dest) {
  if (typeof r === 'number' && r < 0) throw exports.system(r, syscall, path, dest);
  return r;
};

// coded makes an error with one of Node's codes.
function coded(Base, code, message, at) {
  const e = new Base(message);
  const name = e.name;
  Object.defineProperty(e, 'name', { value: `${name} [${code}]`, configurable: true, writable: true });
  Error.captureStackTrace(e, at || coded);
  delete e.name;
  e.code = code;
  return e;
}
exports.coded = coded;

function received(value) {
  if (value == null) return ` Received ${value}`;
  if (typeof value === 'function') return ` Received function ${value.name}`;
  if (typeof value === 'object') {
    if (value.constructor && value.constructor.name) return ` Received an instance of ${value.constructor.name}`;
    return ` Received ${internal.require('internal/inspect').inspect(value, { depth: -1 })}`;
  }
  let s = internal.require('internal/inspect').inspect(value, { colors: false });
  if (s.length > 28) s = s.slice(0, 25) + '...';
  return ` Received type ${typeof value} (${s})`;
}
const primitives = ['string', 'function', 'number', 'object', 'boolean', 'bigint', 'symbol', 'Function', 'Object'];
exports.argType = function argType(name, expected, value) {
  expected = [].concat(expected);
  const types = expected.filter((t) => primitives.includes(t)).map((t) => t.toLowerCase());
  const classes = expected.filter((t) => !primitives.includes(t) && /^([A-Z][a-z0-9]*)+$/.test(t));
  const other = expected.filter((t) => !primitives.includes(t) && !/^([A-Z][a-z0-9]*)+$/.test(t));
  const list = (a) => a.length > 2 ? `${a.slice(0, -1).join(', ')}, or ${a.at(-1)}` : a.join(' or ');
  const kind = name.endsWith(' argument') ? `The ${name}` : `The "${name}" ${name.includes('.') ? 'property' : 'argument'}`;
  const parts = [];
  if (types.length) parts.push((types.length > 1 ? 'one of type ' : 'of type ') + list(types));
  if (classes.length) parts.push('an instance of ' + list(classes));
  if (other.length) parts.push((other.length === 1 && /[A-Z]/.test(other[0]) ? 'an ' : '') + list(other));
  return coded(TypeError, 'ERR_INVALID_ARG_TYPE', `${kind} must be ${parts.join(' or ')}.${received(value)}`, argType);
};
exports.argValue = (name, value, reason = 'is invalid') => {
  const kind = name.includes('.') ? 'property' : 'argument';
  return coded(TypeError, 'ERR_INVALID_ARG_VALUE', `The ${kind} '${name}' ${reason}. Received ${internal.require('internal/inspect').inspect(value)}`, exports.argValue);
};
exports.outOfRange = (name, range, value) => {
  let v = typeof value === 'bigint' ? `${value}n` : internal.require('internal/inspect').inspect(value);
  if (Number.isInteger(value) && Math.abs(value) > 2 ** 32) v = String(value).replace(/\B(?=(\d{3})+$)/g, '_');
  return coded(RangeError, 'ERR_OUT_OF_RANGE', `The value of "${name}" is out of range. It must be ${range}. Received ${v}`, exports.outOfRange);
};
exports.string = (value, name) => { if (typeof value !== 'string') throw exports.argType(name, 'string', value); };
exports.fn = (value, name) => { if (typeof value !== 'function') throw exports.argType(name, 'function', value); };
exports.number = (value, name) => { if (typeof value !== 'number') throw exports.argType(name, 'number', value); };
exports.notHere = (what) => {
  const e = new Error(`${what} isn't available in this sandbox`);
  e.code = 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM';
  return e;
};
class AbortError extends Error {
  constructor(message = 'The operation was aborted', options) {
    super(message, options);
    this.code = 'ABORT_ERR';
    this.name = 'AbortError';
  }
}
exports.AbortError = AbortError;
