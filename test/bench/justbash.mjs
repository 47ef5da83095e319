// Runs scripts in just-bash: reads {"dir": FOLDER, "scripts": [{"name", "script"}]} from its input, and writes a line for each
// when it has ended: {"name", "ms"}, ms being -1 for one that failed.
import { createRequire } from "node:module";
import { readFileSync, readdirSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(process.argv[2] + "/");
const { Bash } = await import(pathToFileURL(require.resolve("just-bash")));
const job = JSON.parse(readFileSync(0, "utf8"));
const limit = 1e9;
const files = {};
for (const name of readdirSync(job.dir, { recursive: true })) {
  const path = join(job.dir, name);
  if (statSync(path).isFile()) files["/home/user/" + name] = readFileSync(path, "utf8");
}
const bash = new Bash({
  files,
  cwd: "/home/user",
  executionLimits: { maxCommandCount: limit, maxLoopIterations: limit, maxCallDepth: 10000, maxAwkIterations: limit, maxSedIterations: limit, maxJqIterations: limit },
});
for (const { name, script } of job.scripts) {
  const begun = performance.now();
  let status;
  try {
    status = (await bash.exec(script)).exitCode;
  } catch {
    status = 1;
  }
  const ms = status === 0 ? performance.now() - begun : -1;
  writeSync(1, JSON.stringify({ name, ms }) + "\n");
}
