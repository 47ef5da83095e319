package sdk

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentrun.dev/test/harness"
)

// typescript is the SDK for TypeScript and JavaScript, being tested.
type typescript struct {
	modules string // the folder of pinned packages that it is built with
	work    string
	user    string // a project that has installed the package
}

func TestTypeScript(t *testing.T) {
	ts := &typescript{modules: filepath.Dir(filepath.Dir(harness.Tool(t, "sdk-typescript"))), work: t.TempDir()}
	if !t.Run("package", ts.build) {
		return
	}
	t.Run("types", ts.types)
	t.Run("unit", func(t *testing.T) {
		ts.nodeTest(t, filepath.Join(harness.Root(), "sdk", "typescript", "test"), harness.Environ(ts.work), 12)
	})
	t.Run("service", func(t *testing.T) {
		s := harness.Start(t)
		ts.nodeTest(t, filepath.Join(harness.Root(), "test", "sdk", "typescript"), s.ClientEnv(t.TempDir()), 7)
	})
}

// build makes the tarball and installs it, without the network, into a project of its own.
func (ts *typescript) build(t *testing.T) {
	sources := filepath.Join(ts.work, "agent-run")
	ts.run(t, ts.work, "cp", "-r", filepath.Join(harness.Root(), "sdk", "typescript"), sources)
	for _, made := range []string{"node_modules", "dist", ".cjs"} {
		if err := os.RemoveAll(filepath.Join(sources, made)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(ts.modules, filepath.Join(sources, "node_modules")); err != nil {
		t.Fatal(err)
	}
	ts.run(t, sources, "node", "build.mjs")
	list := ts.run(t, sources, "npm", "pack", "--pack-destination", ts.work)
	for _, want := range []string{"dist/esm/index.js", "dist/esm/index.d.ts", "dist/cjs/index.js", "dist/cjs/package.json", "src/index.ts", "README.md"} {
		if !strings.Contains(list, want) {
			t.Errorf("the package has no %s:\n%s", want, list)
		}
	}
	if regexp.MustCompile(`\btest/`).MatchString(list) {
		t.Errorf("the package has tests in it:\n%s", list)
	}
	ts.user = filepath.Join(ts.work, "user")
	if err := os.Mkdir(ts.user, 0o755); err != nil {
		t.Fatal(err)
	}
	ws := ts.run(t, filepath.Join(ts.modules, "ws"), "npm", "pack", "--silent", "--pack-destination", ts.work)
	ts.write(t, "package.json", `{"name": "user", "private": true}`)
	ts.run(t, ts.user, "npm", "install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", only(t, filepath.Join(ts.work, "agent-run-*.tgz")),
		filepath.Join(ts.work, strings.TrimSpace(ws)))
}

// types checks programs of users, as modules of both kinds, against the types that the package brings.
func (ts *typescript) types(t *testing.T) {
	const use = `
export async function main(): Promise<number> {
  const client = new AgentRun();
  const sandbox: Sandbox = await client.create("p", { env: { A: "b" } });
  const [a, b] = await sandbox.fork(2);
  for await (const e of a!.stream("ls")) if (e.type === "exit") return e.result.exitCode;
  const d = await a!.diff(b);
  return d.changes.length;
}
`
	ts.write(t, "esm.mts", `import { AgentRun, Sandbox } from "agent-run";`+use)
	ts.write(t, "cjs.cts", `import { AgentRun, Sandbox } from "agent-run";`+use)
	ts.write(t, "wrong.mts", "import { AgentRun } from 'agent-run';\nconst n: number = (await new AgentRun().create('p')).id;\nexport { n };\n")
	tsc := filepath.Join(ts.modules, "typescript", "bin", "tsc")
	options := []string{tsc, "--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--types", "node", "--typeRoots", filepath.Join(ts.modules, "@types")}
	ts.run(t, ts.user, "node", append(options, "esm.mts", "cjs.cts")...)
	out, err := ts.try(ts.user, harness.Environ(ts.work), "node", append(options, "wrong.mts")...)
	if err == nil || !strings.Contains(out, "Type 'string' is not assignable to type 'number'") {
		t.Errorf("a wrong type is found: %v\n%s", err, out)
	}
	ts.write(t, "use.cjs", "const { AgentRun } = require('agent-run'); console.log(typeof new AgentRun().create)")
	if out := ts.run(t, ts.user, "node", "use.cjs"); out != "function\n" {
		t.Errorf("as CommonJS: %q", out)
	}
}

// nodeTest runs a folder of tests in the user's project.
func (ts *typescript) nodeTest(t *testing.T, dir string, env []string, atLeast int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.test.mjs"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s holds no tests (%v)", dir, err)
	}
	passed := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ts.write(t, filepath.Base(file), string(text))
		out, err := ts.try(ts.user, env, "node", "--test", "--test-reporter", "tap", filepath.Base(file))
		m := regexp.MustCompile(`(?m)^# pass (\d+)$`).FindStringSubmatch(out)
		if err != nil || m == nil {
			t.Errorf("%s: %v\n%s", filepath.Base(file), err, out)
			continue
		}
		n, _ := strconv.Atoi(m[1])
		passed += n
	}
	if passed < atLeast && !t.Failed() {
		t.Errorf("%d tests passed, there are %d at least", passed, atLeast)
	}
}

func (ts *typescript) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(ts.user, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (ts *typescript) run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	out, err := ts.try(dir, harness.Environ(ts.work), name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func (ts *typescript) try(dir string, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(env, "NO_UPDATE_NOTIFIER=1", "npm_config_update_notifier=false")
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
