// The methods that the SDK offers, read from the types that it ships: public ones of the classes that a user gets.
import fs from 'node:fs';

// Where a class is part of another, or has a name inside, it counts as the one that users know.
const CLASSES = {
  Sandbox: 'Sandbox', SandboxApi: 'Sandbox', Filesystem: 'Filesystem', WatchHandle: 'WatchHandle', Commands: 'Commands', CommandHandle: 'CommandHandle', Pty: 'Pty',
  Git: 'Git', Volume: 'Volume', Secret: 'Secret', SandboxPaginator: 'SandboxPaginator', SnapshotPaginator: 'SnapshotPaginator', SecretPaginator: 'SecretPaginator',
  TemplateBase: 'Template',
};

export function surface() {
  const found = new Set();
  for (const name of ['e2b', '@e2b/code-interpreter']) {
    const text = fs.readFileSync(new URL(`./node_modules/${name}/dist/index.d.ts`, import.meta.url), 'utf8').replace(/\/\*\*[\s\S]*?\*\//g, '');
    for (const [, own, body] of text.matchAll(/^declare class (\w+)[^{]*\{\n([\s\S]*?)^\}/gm)) {
      const known = CLASSES[own];
      if (!known) continue;
      for (const [, how, method] of body.matchAll(/^  ((?:private |protected |static |readonly |abstract |get |set )*)(\w+)(?:<[^\n]*?>)?\(/gm)) {
        if (/private|protected|get |set /.test(how) || method === 'constructor') continue;
        found.add(`${known}.${method}`);
      }
    }
  }
  return [...found].sort();
}
