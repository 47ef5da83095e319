'use strict';
const no = () => { throw require('internal/errors').notHere('a TLS socket'); };
module.exports = { connect: no, createServer: no, createSecureContext: () => ({}), TLSSocket: class TLSSocket extends require('net').Socket {}, rootCertificates: [], DEFAULT_MIN_VERSION: 'TLSv1.2', DEFAULT_MAX_VERSION: 'TLSv1.3', checkServerIdentity() {}, getCiphers: () => [] };
