package manifest_test

import (
	"reflect"
	"strings"
	"testing"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/manifest"
)

const whole = `
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
    diskRate: {bytesPerSecond: 20Mi, operationsPerSecond: 1k, burstBytes: 64Mi, burstOperations: 2k}
    networkInRate: {bytesPerSecond: 10M}
    networkOutRate: {operationsPerSecond: 500}
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
# a pool
apiVersion: agentrun.dev/v1alpha1
kind: SandboxPool
metadata: {name: python-agent-pool, labels: {team: red}}
spec:
  templateRef:
    name: python-agent
  replicas: 10
  snapshotAfter: Ready
---
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
---
apiVersion: agentrun.dev/v1alpha1
kind: SandboxFork
metadata:
  name: parallel-attempt
spec:
  sourceRef:
    name: agent-session-1
  replicas: 3
`

func TestRead(t *testing.T) {
	got, err := manifest.Read("pool.yaml", strings.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	want := []manifest.Object{
		{Kind: "SandboxTemplate", Name: "python-agent", File: "pool.yaml", Line: 2, Template: &api.TemplateSpec{
			Image: "python:3.12-slim", Init: []string{"pip install numpy pandas requests"}, Resources: api.Resources{CPU: 1, Memory: 512 << 20,
				DiskRate:      api.Rate{BytesPerSecond: 20 << 20, OperationsPerSecond: 1000, BurstBytes: 64 << 20, BurstOperations: 2000},
				NetworkInRate: api.Rate{BytesPerSecond: 10e6}, NetworkOutRate: api.Rate{OperationsPerSecond: 500}},
			Volumes: []api.Volume{{Name: "workspace", Size: 5 << 30, ForkPolicy: "Snapshot"},
				{Name: "shared-data", ReadOnly: true, ForkPolicy: "Share", Source: api.VolumeSource{Bucket: "my-datasets"}}},
			Network: api.NetworkPolicy{Egress: "deny", Allow: []string{"api.openai.com:443", "api.anthropic.com:443"}}}},
		{Kind: "SandboxPool", Name: "python-agent-pool", Labels: api.Labels{"team": "red"}, File: "pool.yaml", Line: 34,
			Pool: &api.PoolSpec{Template: "python-agent", Replicas: 10, Labels: api.Labels{"team": "red"}}},
		{Kind: "SandboxClaim", Name: "agent-session-1", File: "pool.yaml", Line: 43, Claim: &api.ClaimSpec{Pool: "python-agent-pool",
			Env:     map[string]string{"SESSION_ID": "abc-123"},
			Secrets: []api.SecretUse{{Name: "openai-key", Ref: api.SecretRef{Name: "agent-secrets", Key: "OPENAI_API_KEY"}}}}},
		{Kind: "SandboxFork", Name: "parallel-attempt", File: "pool.yaml", Line: 59, Fork: &api.ForkSpec{Source: "agent-session-1", Replicas: 3}},
	}
	for i := range got {
		if i >= len(want) || !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("object %d is %+v, want %+v", i, got[i], want[min(i, len(want)-1)])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d objects, want %d", len(got), len(want))
	}
}

func TestReadErrors(t *testing.T) {
	object := func(kind, spec string) string {
		return "apiVersion: agentrun.dev/v1alpha1\nkind: " + kind + "\nmetadata: {name: x}\nspec:\n" + spec
	}
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "# only a comment\n", "no object"},
		{"not an object", "- 1\n", "f.yaml:1: want an object"},
		{"broken", "a: [1\n", "line"},
		{"version", "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {}\n", `apiVersion: "v1" isn't known`},
		{"kind", object("SandboxPol", "  replicas: 1\n"), `kind: "SandboxPol" isn't known`},
		{"name", "apiVersion: agentrun.dev/v1alpha1\nkind: SandboxPool\nmetadata: {name: A_b}\nspec: {}\n", `metadata.name: "A_b"`},
		{"no spec", "apiVersion: agentrun.dev/v1alpha1\nkind: SandboxPool\nmetadata: {name: x}\n", "spec: it is missing"},
		{"field", object("SandboxPool", "  templateRef: {name: t}\n  replica: 3\n"), "f.yaml:6: SandboxPool x: spec.replica: no such field; there are maxSandboxes, replicas"},
		{"field within", object("SandboxTemplate", "  volumes:\n  - name: w\n    sise: 1Gi\n"), "f.yaml:7: SandboxTemplate x: spec.volumes[0].sise: no such field"},
		{"top field", "apiVersion: agentrun.dev/v1alpha1\nkind: SandboxPool\nspecs: {}\n", "f.yaml:3: specs: no such field"},
		{"quantity", object("SandboxTemplate", "  resources: {memory: 512Mo}\n"), `spec.resources.memory: "512Mo" isn't a quantity`},
		{"rate", object("SandboxTemplate", "  resources: {diskRate: {bytesPerSecond: fast}}\n"), `spec.resources.diskRate.bytesPerSecond: "fast" isn't a quantity`},
		{"rate's field", object("SandboxTemplate", "  resources: {diskRate: {iops: 1}}\n"), "diskRate.iops: no such field; there are burstBytes, burstOperations, bytesPerSecond, operationsPerSecond"},
		{"quantity of list", object("SandboxTemplate", "  resources: {memory: [1]}\n"), "want a quantity"},
		{"negative", object("SandboxTemplate", "  resources: {memory: -1}\n"), "isn't a quantity"},
		{"too large", object("SandboxTemplate", "  volumes: [{name: a, size: 99999999999Pi}]\n"), "is too large"},
		{"type", object("SandboxPool", "  templateRef: {name: t}\n  replicas: many\n"), "cannot unmarshal"},
		{"snapshotAfter", object("SandboxPool", "  templateRef: {name: t}\n  snapshotAfter: Boot\n"), "snapshotted when they are Ready"},
		{"both refs", object("SandboxClaim", "  poolRef: {name: a}\n  templateRef: {name: b}\n"), "want one of poolRef and templateRef"},
		{"env twice", object("SandboxClaim", "  poolRef: {name: a}\n  env: [{name: A, value: b}, {name: A, value: c}]\n"), "there twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := manifest.Read("f.yaml", strings.NewReader(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) || !errs.Is(err, errs.Invalid) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(whole)
	f.Add("a: &a [*a]\n")
	f.Add("apiVersion: agentrun.dev/v1alpha1\nkind: SandboxTemplate\nmetadata: {name: x}\nspec: {resources: {cpu: 1e999999999}}\n")
	f.Fuzz(func(t *testing.T, text string) {
		if objects, err := manifest.Read("f", strings.NewReader(text)); err == nil && len(objects) == 0 {
			t.Error("no objects and no error")
		}
	})
}
