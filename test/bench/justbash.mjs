// Runs scripts in just-bash: reads {"setup": SCRIPT, "scripts": [{"name", "script"}]} from its input, and writes a line for each
// when it has ended: {"name", "ms"}, ms being -1 for one that failed.
import { createRequire } from "node:module";
import { readFileSync, writeSync } from "node:fs";
import { pathToFileURL } from "node:url";

const require = createRequire(process.argv[2] + "/");
const { Bash } = await import(pathToFileURL(require.resolve("just-bash")));
const job = JSON.parse(readFileSync(0, "utf8"));
const limit = 1e9;
const bash = new Bash({
  executionLimits: { maxCommandCount: limit, maxLoopIterations: limit, maxCallDepth: 10000, maxAwkIterations: limit, maxSedIterations: limit, maxJqIterations: limit },
});
const made = await bash.exec(job.setup);
if (made.exitCode !== 0) throw new Error(made.stderr);
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
