'use strict';
const { brand } = require('internal/inspect');
const object = (v) => v !== null && typeof v === 'object';
const is = (k) => (v) => object(v) && brand(v) === k;
const tag = (t) => (v) => typeof v === 'function' && Object.prototype.toString.call(v) === `[object ${t}]`;
const types = module.exports = {
  isDate: is('Date'), isRegExp: is('RegExp'), isMap: is('Map'), isSet: is('Set'), isWeakMap: is('WeakMap'), isWeakSet: is('WeakSet'), isPromise: is('Promise'),
  isDataView: is('DataView'), isArrayBuffer: is('ArrayBuffer'), isSharedArrayBuffer: is('SharedArrayBuffer'), isNumberObject: is('Number'), isStringObject: is('String'),
  isBooleanObject: is('Boolean'), isSymbolObject: is('Symbol'), isBigIntObject: is('BigInt'), isArgumentsObject: is('Arguments'), isModuleNamespaceObject: is('Module'),
  isNativeError: (v) => object(v) && brand(v) === 'Error', isMapIterator: is('Map Iterator'), isSetIterator: is('Set Iterator'), isGeneratorObject: is('Generator'),
  isAnyArrayBuffer: (v) => object(v) && (brand(v) === 'ArrayBuffer' || brand(v) === 'SharedArrayBuffer'),
  isBoxedPrimitive: (v) => object(v) && ['Number', 'String', 'Boolean', 'Symbol', 'BigInt'].includes(brand(v)),
  isAsyncFunction: (v) => tag('AsyncFunction')(v) || tag('AsyncGeneratorFunction')(v), isGeneratorFunction: (v) => tag('GeneratorFunction')(v) || tag('AsyncGeneratorFunction')(v),
  isProxy: (v) => (object(v) || typeof v === 'function') && host.proxy(v) !== undefined, isTypedArray: (v) => ArrayBuffer.isView(v) && !(v instanceof DataView),
  isArrayBufferView: ArrayBuffer.isView, isExternal: () => false, isCryptoKey: () => false, isKeyObject: () => false,
};
for (const n of require('internal/inspect').typedNames) types[`is${n}`] = is(n);
