'use strict';
const { ReadableStream, WritableStream, TransformStream } = require('internal/web');
module.exports = { ReadableStream, WritableStream, TransformStream, CompressionStream: globalThis.CompressionStream, DecompressionStream: globalThis.DecompressionStream };
