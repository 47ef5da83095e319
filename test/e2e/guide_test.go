package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentrun.dev/test/harness"
)

// guide is what the guide to agent sandboxes on forked buckets prints, line by line, with the line breaks of its loop and its
// pipeline restored. Only the endpoint is another one, and `process` and run_eval.py are stand-ins, as the guide says.
var guide = []struct{ name, script string }{
	{"fork the base environment for a new agent", `
tigris forks create agent-base --name agent-task-42
`},
	{"snapshot the current state, fork once per agent", `
tigris snapshots take agent-base
# Fork once per agent
for i in $(seq 1 10); do
tigris forks create agent-base --name "agent-run-${i}"
done
`},
	{"each agent reads and writes its own fork", `
export AWS_ENDPOINT_URL="$ENDPOINT"
aws s3 cp s3://agent-run-1/data/input.json - | process | \
aws s3 cp - s3://agent-run-1/results/output.json
`},
	{"update the base image, take a new snapshot", `
# Update the base image
aws s3 sync ./updated-deps s3://agent-base/deps/
# Take a new snapshot
tigris snapshots take agent-base
# All new forks automatically get the updated dependencies
tigris forks create agent-base --name agent-next-task
`},
	{"fork for eval, run it, clean up", `
# Fork for eval
tigris forks create eval-dataset --name eval-run-20240315
# Run evaluation
python run_eval.py --bucket eval-run-20240315
# Clean up
tigris forks delete eval-run-20240315
`},
}

// TestGuide runs the guide's shell lines as printed, with AgentRun's binary installed under the name tigris.
func TestGuide(t *testing.T) {
	s := startAgentRun(t)
	bin := t.TempDir()
	for name, target := range map[string]string{"tigris": harness.Binary(t), "aws": harness.Tool(t, "aws"), "python": harness.Tool(t, "python")} {
		// Python finds its packages beside the path that it is started by, so a link won't do.
		script := "#!/bin/sh\nexec '" + target + "' \"$@\"\n"
		if name == "tigris" {
			if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(bin, "process"), []byte("#!/bin/sh\ntr a-z A-Z\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.PrependPath(bin)
	s.Set("ENDPOINT", s.Server.Endpoint)
	s.Write("updated-deps/lib/a.txt", []byte("new library"))
	s.Write("run_eval.py", []byte(`import boto3, sys
bucket = sys.argv[sys.argv.index("--bucket") + 1]
s3 = boto3.client("s3")
rows = s3.get_object(Bucket=bucket, Key="rows.csv")["Body"].read()
s3.put_object(Bucket=bucket, Key="score.txt", Body=str(rows.count(b"\n")).encode())
print("score", s3.get_object(Bucket=bucket, Key="score.txt")["Body"].read().decode())
`))
	sh := func(s *script, line string) string { return s.Run("bash", "-euo", "pipefail", "-c", line) }
	sh(s, `agentrun buckets create agent-base && agentrun buckets create eval-dataset
printf '{"ask":"hello"}' | aws s3 cp - s3://agent-base/data/input.json
printf 'a,1\nb,2\n' | aws s3 cp - s3://eval-dataset/rows.csv`)

	for _, part := range guide {
		s.step(part.name, func(s *script) { sh(s, part.script) })
	}
	s.step("what the lines have done", func(s *script) {
		for bucket, want := range map[string]string{
			"agent-task-42":   "data/input.json",
			"agent-run-1":     "data/input.json results/output.json",
			"agent-run-10":    "data/input.json",
			"agent-next-task": "data/input.json deps/lib/a.txt",
			"agent-base":      "data/input.json deps/lib/a.txt",
			"eval-dataset":    "rows.csv",
		} {
			out := sh(s, "aws s3api list-objects-v2 --bucket "+bucket+" --query 'Contents[].Key' --output text")
			equal(s, bucket, strings.Join(strings.Fields(out), " "), want)
		}
		equal(s, "output", sh(s, "aws s3 cp s3://agent-run-1/results/output.json -"), `{"ASK":"HELLO"}`)
		s.Fails([]string{"NoSuchBucket"}, "bash", "-c", "aws s3 ls s3://eval-run-20240315")
	})
}
