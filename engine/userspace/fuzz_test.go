package userspace

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
)

// FuzzScript runs scripts within tight limits: whatever they are, they end, and no defect shows as an abort.
func FuzzScript(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.sh")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range strings.Split(string(data), "\n#### ") {
			_, script, _ := strings.Cut(part, "\n")
			f.Add(script)
		}
	}
	for _, s := range []string{"${a&}", "cat <<${a}", "a=(1 [a b]=2)", "[[ x =~ ( ]]", "case x in", "$((", "f() { f; }; f", "x=$(x=$(", "trap 'exit' EXIT; exit", "exec {x}<&-", "printf %99999999d 1", "echo {1..99999999}",
		"declare -n a=a; a=1", "unset 'a[@]'", "umask u=,", "compgen -W '' -- x", "wait -n -p", "local -", "shift 99", "set -- {1..9}; echo ${@: -20:3}", "read -d '' -N 5 x", "a[9223372036854775807]=1; a+=(x)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		if len(script) > 4096 {
			return
		}
		s, err := New(context.Background(), Options{Limits: proc.Limits{Processes: 30, Steps: 3000, OutputBytes: 1 << 16, FileBytes: 1 << 20, Memory: 1 << 20, Depth: 50, Files: 64}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		var out bytes.Buffer
		_, err = s.Run(ctx, Cmd{Args: []string{"bash", "-c", script}, Stdout: &out, Stderr: &out})
		if err != nil && !errs.Is(err, errs.Canceled) && !errs.Is(err, errs.Limit) {
			t.Errorf("%v", err)
		}
		if what := s.sb.Defect(); what != "" {
			t.Errorf("a program failed: %s\n%s", what, out.String())
		}
		end, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		if err := s.Stop(end); err != nil {
			t.Errorf("a program doesn't end: %v", err)
		}
	})
}
