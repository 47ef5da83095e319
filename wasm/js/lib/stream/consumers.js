'use strict';
async function buffer(s) {
  const list = [];
  for await (const c of s) list.push(typeof c === 'string' ? Buffer.from(c) : c);
  return Buffer.concat(list);
}
const text = async (s) => new TextDecoder().decode(await buffer(s));
module.exports = {
  buffer, text, json: async (s) => JSON.parse(await text(s)), blob: async (s) => new Blob([await buffer(s)]),
  arrayBuffer: async (s) => { const b = await buffer(s); return b.buffer.slice(b.byteOffset, b.byteOffset + b.byteLength); },
};
