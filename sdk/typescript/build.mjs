// Builds the package twice: as ECMAScript modules and as CommonJS. The second needs to be told what it is by a package.json of its own.
import { execFileSync } from "node:child_process";
import { mkdirSync, renameSync, rmSync, writeFileSync, cpSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
rmSync(join(here, "dist"), { recursive: true, force: true });
execFileSync(process.execPath, [tsc, "-p", here], { stdio: "inherit" });
// TypeScript takes a module's kind from the nearest package.json: the same sources, in a folder that says otherwise.
const copy = join(here, ".cjs");
rmSync(copy, { recursive: true, force: true });
mkdirSync(copy);
cpSync(join(here, "src"), join(copy, "src"), { recursive: true });
writeFileSync(join(copy, "package.json"), '{"type":"commonjs"}\n');
execFileSync(process.execPath, [tsc, "-p", writeConfig(copy)], { stdio: "inherit" });
renameSync(join(copy, "dist"), join(here, "dist", "cjs"));
writeFileSync(join(here, "dist", "cjs", "package.json"), '{"type":"commonjs"}\n');
rmSync(copy, { recursive: true, force: true });

function writeConfig(folder) {
  const file = join(folder, "tsconfig.json");
  writeFileSync(file, JSON.stringify({ extends: "../tsconfig.json", compilerOptions: { rootDir: "src", outDir: "dist" }, include: ["src"] }));
  return file;
}
