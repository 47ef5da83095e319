package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentrun.dev/test/harness"
)

// The manifests of the guide to forkable sandboxes, as it prints them; line breaks that its text had lost are restored.
const (
	seedPool = `# pool.yaml
apiVersion: agentrun.dev/v1alpha1
kind: SandboxTemplate
metadata:
  name: python-agent
spec:
  image: python:3.12-slim
  init:
    - "pip install numpy pandas requests"
  resources:
    cpu: "1"
    memory: "512Mi"
  volumes:
    - name: workspace
      size: 5Gi
      forkPolicy: Snapshot
    - name: shared-data
      source:
        s3:
          bucket: my-datasets
          region: us-east-1
      readOnly: true
      forkPolicy: Share
  networkPolicy:
    egress: deny
    allow:
      - "api.openai.com:443"
      - "api.anthropic.com:443"
---
apiVersion: agentrun.dev/v1alpha1
kind: SandboxPool
metadata:
  name: python-agent-pool
spec:
  templateRef:
    name: python-agent
  replicas: 10
  snapshotAfter: Ready
`
	seedClaim = `# claim.yaml
apiVersion: agentrun.dev/v1alpha1
kind: SandboxClaim
metadata:
  name: agent-session-1
spec:
  poolRef:
    name: python-agent-pool
  env:
    - name: SESSION_ID
      value: "abc-123"
  secrets:
    - name: openai-key
      secretRef:
        name: agent-secrets
        key: OPENAI_API_KEY
`
	seedFork = `# fork.yaml
apiVersion: agentrun.dev/v1alpha1
kind: SandboxFork
metadata:
  name: parallel-attempt
spec:
  sourceRef:
    name: agent-session-1
  replicas: 3
`
)

// agentrun is a user of the sandbox service at the command line.
type agentrun struct {
	*harness.Session
	t   *testing.T
	bin string
}

func (a *agentrun) run(args ...string) string {
	a.t.Helper()
	return a.Run(a.bin, args...)
}

// prints runs a command whose output must match.
func (a *agentrun) prints(pattern string, args ...string) {
	a.t.Helper()
	if out := a.run(args...); !regexp.MustCompile(`(?m)` + pattern).MatchString(out) {
		a.t.Errorf("agentrun %s printed %q, want %q", strings.Join(args, " "), out, pattern)
	}
}

func (a *agentrun) step(name string, f func(a *agentrun)) {
	a.t.Helper()
	a.t.Run(name, func(t *testing.T) { f(&agentrun{a.For(t), t, a.bin}) })
}

func newAgentrun(t *testing.T, s *harness.Server) *agentrun {
	return &agentrun{harness.NewSession(t, s), t, harness.Binary(t)}
}

// TestManifests: the guide's manifests on the embedded service, and what its user sees.
func TestManifests(t *testing.T) {
	t.Parallel()
	a := newAgentrun(t, harness.Start(t))
	a.Write("pool.yaml", []byte(seedPool))
	a.Write("claim.yaml", []byte(seedClaim))
	a.Write("fork.yaml", []byte(seedFork))
	a.step("what is missing is said", func(a *agentrun) {
		a.Fails([]string{"my-datasets"}, a.bin, "apply", "-f", "pool.yaml")
		a.Fails([]string{"python-agent-pool"}, a.bin, "apply", "-f", "claim.yaml", "--wait=false")
		a.Fails([]string{"nowhere.yaml"}, a.bin, "apply", "-f", "pool.yaml", "-f", "nowhere.yaml")
	})
	a.run("buckets", "create", "my-datasets")
	a.Write("data.csv", []byte("a,b\n1,2\n"))
	a.run("cp", "data.csv", "s3://my-datasets/data.csv")
	a.step("what the engine can't do is refused", func(a *agentrun) {
		const rated = "apiVersion: agentrun.dev/v1alpha1\nkind: SandboxTemplate\nmetadata: {name: rated}\nspec: {resources: {diskRate: {bytesPerSecond: 10Mi}}}\n"
		a.Write("rated.yaml", []byte(rated))
		a.Fails([]string{"the engine userspace doesn't bound what disks and networks do in a time; microvm does", "engine: microvm"}, a.bin, "apply", "-f", "rated.yaml")
		a.Write("rated.yaml", []byte(strings.Replace(rated, "10Mi", "10", 1)))
		a.Fails([]string{"resources.diskRate.bytesPerSecond", "want 4096 to"}, a.bin, "apply", "-f", "rated.yaml")
		a.Write("rated.yaml", []byte(strings.Replace(rated, "spec: {", "spec: {engine: microvm, ", 1)))
		a.Fails([]string{"no node runs sandboxes of this engine"}, a.bin, "apply", "-f", "rated.yaml")
	})
	a.step("a template whose init fails says why", func(a *agentrun) {
		// numpy needs an engine with a Linux userland; until there is one, this line of the guide can't work, and says so.
		r := a.Exec(a.bin, "apply", "-f", "pool.yaml")
		if r.Exit == 0 || !strings.Contains(r.Stderr, "pip install numpy pandas requests") {
			a.t.Errorf("status %d, %q", r.Exit, r.Stderr)
		}
		a.prints("pip install numpy pandas requests", "logs", "python-agent")
		a.prints(`^python-agent +[0-9]+ +Failed`, "get", "sandboxtemplate", "python-agent")
	})
	a.Write("pool.yaml", []byte(strings.Replace(seedPool, "pip install numpy pandas requests", "mkdir -p /workspace/plans && echo ready", 1)))
	a.step("a pool", func(a *agentrun) {
		a.prints(`^sandboxtemplate.agentrun.dev/python-agent configured\nsandboxpool.agentrun.dev/python-agent-pool (created|configured|unchanged)$`, "apply", "-f", "pool.yaml")
		a.prints(`^NAME +READY +SNAPSHOTS +AGE\npython-agent-pool +10 +10 +\d+[smh]$`, "get", "sandboxpool", "python-agent-pool")
		a.prints(`python-agent unchanged\n.*python-agent-pool unchanged`, "apply", "-f", "pool.yaml")
		a.prints("ready", "logs", "python-agent")
	})
	a.step("a claim", func(a *agentrun) {
		a.Fails([]string{"agent-secrets"}, a.bin, "apply", "-f", "claim.yaml")
		a.RunInput("sk-secret-1\n", a.bin, "secrets", "set", "agent-secrets", "OPENAI_API_KEY")
		a.prints(`^sandboxclaim.agentrun.dev/agent-session-1 created$`, "apply", "-f", "claim.yaml")
		a.prints(`^NAME +STATUS +ENDPOINT +AGE\nagent-session-1 +Ready +[0-9.]+:[0-9]+ +\d+s$`, "get", "sandboxclaim", "agent-session-1")
		a.prints(`^abc-123 sk-secret-1 plans$`, "exec", "agent-session-1", "--", `echo $SESSION_ID $OPENAI_API_KEY $(ls)`)
		a.prints(`^1,2$`, "exec", "agent-session-1", "--", "tail -1 /shared-data/data.csv")
		a.Fails([]string{"ead-only"}, a.bin, "exec", "agent-session-1", "--", "echo x > /shared-data/x")
		a.prints(`unchanged`, "apply", "-f", "claim.yaml")
	})
	a.step("forks of it", func(a *agentrun) {
		a.run("exec", "agent-session-1", "-l", "python", "plan = ['begin']")
		a.prints(`^sandboxfork.agentrun.dev/parallel-attempt created$`, "apply", "-f", "fork.yaml")
		a.prints(`^NAME +FORKS +STATUS +AGE\nparallel-attempt +3 +Ready +\d+s$`, "get", "sandboxfork", "parallel-attempt")
		for _, name := range []string{"parallel-attempt-1", "parallel-attempt-2", "parallel-attempt-3"} {
			a.run("exec", name, "-l", "python", "plan.append('"+name+"'); open('plan.txt', 'w').write(str(plan))")
			a.prints(`^\['begin', '`+name+`'\]$`, "exec", name, "--", "cat plan.txt")
		}
		a.Fails([]string{"plan.txt"}, a.bin, "exec", "agent-session-1", "--", "cat plan.txt")
		a.prints(`^A /workspace/plan.txt$`, "diff", "agent-session-1", "parallel-attempt-2")
		a.prints(`^M /workspace/plan.txt$`, "diff", "parallel-attempt-1", "parallel-attempt-2")
		a.prints(`1 added`, "merge", "parallel-attempt-2")
		a.prints(`parallel-attempt-2`, "exec", "agent-session-1", "--", "cat plan.txt")
		a.prints(`agent-session-1(.|\n)*├─ parallel-attempt-1(.|\n)*└─ parallel-attempt-3`, "sandboxes", "tree", "agent-session-1")
	})
	a.step("files in and out", func(a *agentrun) {
		a.Write("in/a.txt", []byte("one\n"))
		a.Write("in/deep/b.txt", []byte("two\n"))
		a.prints(`^copied 2 files, 8 B to agent-session-1:in`, "cp", "-r", "in", "agent-session-1:in")
		a.prints(`^one\ntwo$`, "exec", "agent-session-1", "--", "cat in/a.txt in/deep/b.txt; chmod 700 in/a.txt; ln -s /etc/passwd in/link")
		a.prints(`^copied 2 files`, "cp", "-r", "agent-session-1:/workspace/in", "out")
		if got := string(a.Read("out/deep/b.txt")); got != "two\n" {
			a.t.Errorf("it came back as %q", got)
		}
		a.prints(`^one$`, "cp", "agent-session-1:in/a.txt", "-")
		a.RunInput("three", a.bin, "cp", "-", "agent-session-1:c.txt")
		a.prints(`^three$`, "exec", "agent-session-1", "--", "cat c.txt")
		a.Fails([]string{"no such file"}, a.bin, "cp", "agent-session-1:none", ".")
		a.Fails([]string{"cp -r"}, a.bin, "cp", "in", "agent-session-1:")
	})
	a.step("sleep, and the use that wakes up", func(a *agentrun) {
		a.prints(`^hibernated agent-session-1$`, "sandboxes", "hibernate", "agent-session-1")
		a.prints(`^begin$`, "exec", "agent-session-1", "-l", "python", "print(plan[0])")
		a.prints(`^abc-123 sk-secret-1$`, "exec", "agent-session-1", "--", `echo $SESSION_ID $OPENAI_API_KEY`)
	})
	a.step("what has happened", func(a *agentrun) {
		a.prints(`(?s)claimed.*forked.*hibernated.*resumed`, "events", "--sandbox", "agent-session-1")
		a.prints(`sandbox.fork`, "audit", "list")
		a.prints(`all in their chain`, "audit", "verify")
		a.prints(`^cpu +[0-9.]+ s`, "usage", "agent-session-1")
	})
	a.step("the end", func(a *agentrun) {
		a.prints(`(?s)parallel-attempt deleted`, "delete", "-f", "fork.yaml")
		a.prints(`deleted`, "delete", "-f", "claim.yaml")
		a.Fails([]string{"agent-session-1"}, a.bin, "exec", "agent-session-1", "--", "true")
		a.prints(`deleted`, "delete", "-f", "pool.yaml")
	})
	// Nothing of the secret is anywhere on the disk.
	leak, _ := exec.Command("grep", "-rl", "sk-secret-1", a.Get("XDG_CONFIG_HOME")).CombinedOutput()
	if len(leak) > 0 {
		t.Errorf("the secret is in %s", leak)
	}
}

// TestNodes: a service with two nodes that are processes of their own, of which one vanishes.
func TestNodes(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	listen := harness.FreePort(t)
	s := harness.StartKind(t, harness.AgentRun, data, "--node-listen", listen, "--no-local-node")
	a := newAgentrun(t, s)
	nodes := map[string]*exec.Cmd{}
	for _, name := range []string{"node-1", "node-2"} {
		file := filepath.Join(t.TempDir(), name+".pem")
		if err := os.WriteFile(file, []byte(a.run("nodes", "certificate", name, "--data", filepath.Join(data, "store"))), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(a.bin, "forkd", "--join", listen, "--certificate", file, "--listen", "127.0.0.1:0", "--data", t.TempDir())
		cmd.Env, cmd.Stderr = harness.Environ(t.TempDir()), &logged{t: t, name: name}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		nodes[name] = cmd
	}
	a.until(`(?s)node-1 +Ready.*node-2 +Ready`, "nodes", "list")
	a.Write("t.yaml", []byte("apiVersion: agentrun.dev/v1alpha1\nkind: SandboxTemplate\nmetadata: {name: plain}\nspec: {init: ['echo built > built.txt']}\n"))
	a.run("apply", "-f", "t.yaml")
	at := map[string][]string{}
	for range 6 {
		id := strings.TrimSpace(a.run("sandboxes", "create", "--template", "plain"))
		at[a.sandbox(id).Node] = append(at[a.sandbox(id).Node], id)
		a.prints(`^built$`, "exec", id, "--", "cat built.txt")
	}
	if len(at["node-1"]) == 0 || len(at["node-2"]) == 0 {
		t.Fatalf("sandboxes were placed so: %v", at)
	}
	far := at["node-1"][0]
	a.run("exec", far, "-l", "python", "x = 41")
	fork := strings.TrimSpace(a.run("sandboxes", "fork", far))
	a.prints(`^42$`, "exec", fork, "-l", "python", "print(x + 1)")
	if n := a.sandbox(fork).Node; n != "node-1" {
		t.Errorf("the fork is on %s", n)
	}
	_ = nodes["node-1"].Process.Kill()
	_ = nodes["node-1"].Wait()
	a.until(`node-1 +Lost`, "nodes", "list")
	a.untilState(far, "failed")
	a.Fails([]string{"node-1"}, a.bin, "exec", far, "--", "true")
	a.prints(`^built$`, "exec", at["node-2"][0], "--", "cat built.txt")
	a.prints(`node`, "events", "--kind", "node")
	id := strings.TrimSpace(a.run("sandboxes", "create", "--template", "plain"))
	a.prints(`^built$`, "exec", id, "--", "cat built.txt")
}

type sandboxView struct{ State, Node, Reason string }

func (a *agentrun) sandbox(id string) (v sandboxView) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(a.run("sandboxes", "info", id, "--json")), &v); err != nil {
		a.t.Fatal(err)
	}
	return v
}

// until runs a command again until what it prints matches.
func (a *agentrun) until(pattern string, args ...string) {
	a.t.Helper()
	var out string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if out = a.run(args...); regexp.MustCompile(pattern).MatchString(out) {
			return
		}
	}
	a.t.Fatalf("agentrun %s prints %q after a minute, want %q", strings.Join(args, " "), out, pattern)
}

func (a *agentrun) untilState(id, state string) {
	a.t.Helper()
	a.until(`"state": "`+state+`"`, "sandboxes", "info", id, "--json")
}

// logged shows what a process says, where a test fails.
type logged struct {
	t    *testing.T
	name string
}

func (l *logged) Write(b []byte) (int, error) {
	l.t.Logf("%s: %s", l.name, b)
	return len(b), nil
}
