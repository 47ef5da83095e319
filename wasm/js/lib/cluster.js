'use strict';
const EventEmitter = require('events');
module.exports = Object.assign(new EventEmitter(), { isMaster: true, isPrimary: true, isWorker: false, workers: {}, settings: {}, fork: () => { throw require('internal/errors').notHere('a cluster'); }, setupPrimary() {}, setupMaster() {} });
