'use strict';
require('http');
module.exports = internal.https;
