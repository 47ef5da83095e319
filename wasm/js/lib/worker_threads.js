'use strict';
const { MessageChannel } = require('internal/web');
module.exports = {
  isMainThread: true, parentPort: null, workerData: null, threadId: 0, resourceLimits: {}, SHARE_ENV: Symbol.for('nodejs.worker_threads.SHARE_ENV'), MessageChannel, MessagePort: class MessagePort {},
  Worker: class Worker { constructor() { throw require('internal/errors').notHere('a worker thread'); } }, getEnvironmentData: () => undefined, setEnvironmentData() {}, markAsUntransferable() {},
  moveMessagePortToContext: (p) => p, receiveMessageOnPort: () => undefined, BroadcastChannel: class BroadcastChannel { postMessage() {} close() {} },
};
