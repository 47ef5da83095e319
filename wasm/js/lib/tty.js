'use strict';
const { Input, Output } = require('internal/stdio');
module.exports = { isatty: (fd) => Number.isInteger(fd) && fd >= 0 && host.isatty(fd), ReadStream: Input, WriteStream: Output };
