'use strict';
const no = (what) => () => { throw require('internal/errors').notHere(what); };
const v4 = (s) => /^(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}$/.test(s);
const v6 = (s) => { if (!/:/.test(s)) return false; try { new URL(`http://[${s.replace(/%.*$/, '')}]/`); return true; } catch { return false; } };
module.exports = { isIP: (s) => v4(s) ? 4 : v6(`${s}`) ? 6 : 0, isIPv4: (s) => v4(s), isIPv6: (s) => v6(`${s}`), connect: no('a network socket'), createConnection: no('a network socket'), createServer: no('a network server'),
  Socket: class Socket extends require('stream').Duplex { connect() { throw require('internal/errors').notHere('a network socket'); } }, Server: class Server {} };
