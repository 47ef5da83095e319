'use strict';
module.exports = { createSocket: () => { throw require('internal/errors').notHere('a datagram socket'); }, Socket: class Socket {} };
