'use strict';
const os = require('os').constants;
module.exports = { ...os.errno, ...os.priority, ...os.signals, ...require('internal/constants').fs };
