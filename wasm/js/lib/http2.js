'use strict';
const no = () => { throw require('internal/errors').notHere('HTTP/2'); };
module.exports = { connect: no, createServer: no, createSecureServer: no, constants: {}, sensitiveHeaders: Symbol('nodejs.http2.sensitiveHeaders') };
