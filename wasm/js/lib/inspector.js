'use strict';
module.exports = { open() {}, close() {}, url: () => undefined, waitForDebugger() {}, console, Session: class Session extends require('events') { connect() { throw require('internal/errors').notHere('the inspector'); } } };
