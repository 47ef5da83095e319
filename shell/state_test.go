package shell_test

import (
	"bytes"
	"context"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/proc"
	"agentrun.dev/shell"
)

// scripts returns those that the shell is compared with bash by, and a few of its own, by name.
func scripts(t testing.TB) map[string]string {
	t.Helper()
	files, _ := filepath.Glob("../engine/userspace/testdata/*.sh")
	own, _ := filepath.Glob("testdata/state/*.sh")
	if files = append(files, own...); len(files) < 2 {
		t.Fatal("no scripts")
	}
	out := make(map[string]string)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split("\n"+string(data), "\n#### ")[1:] {
			name, script, _ := strings.Cut(part, "\n")
			out[filepath.Base(file)+"/"+name] = script
		}
	}
	return out
}

// perform runs a script in a sandbox of its own by the given programs.
func perform(t *testing.T, bash, sh proc.Program, script string) (out string, status int) {
	t.Helper()
	set := command.NewSet(map[string]proc.Program{"bash": bash, "sh": sh})
	s, err := userspace.New(context.Background(), userspace.Options{Commands: set, Env: []string{"TZ=UTC0"}, Rand: rand.NewChaCha8([32]byte{})})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(context.Background())
	var buf, errs bytes.Buffer
	status, err = s.Run(context.Background(), userspace.Cmd{Args: []string{"bash", "-c", script}, Stdout: &buf, Stderr: &errs})
	if err != nil {
		t.Fatal(err)
	}
	if d := s.Defect(); d != "" {
		t.Fatal(d)
	}
	return buf.String(), status
}

// A script that is moved into a copy of its shell wherever it rests, in one round through what Save writes, comes to the same
// as one that is left alone.
func TestMove(t *testing.T) {
	for name, script := range scripts(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, wantStatus := perform(t, shell.New(false), shell.New(true), script)
			h := fnv.New64()
			h.Write([]byte(name))
			for round, often := range []int{2, 5, 20} {
				var mu sync.Mutex
				rng := rand.New(rand.NewPCG(h.Sum64(), uint64(round)))
				move := func() bool {
					mu.Lock()
					defer mu.Unlock()
					return rng.IntN(often) == 0
				}
				fail := func(err error) { t.Error(err) }
				save := round == 1
				got, status := perform(t, shell.Moving(false, save, move, fail), shell.Moving(true, save, move, fail), script)
				if got != want || status != wantStatus {
					t.Errorf("moved one time in %d: status %d, want %d\ngot:\n%s\nwant:\n%s", often, status, wantStatus, got, want)
				}
			}
		})
	}
}

// Shells that share an array's values list them at the same time.
func TestSharedArray(t *testing.T) {
	const script = "a=(); for i in 9 3 7 5 900 100; do a[i]=$i; done; for n in 1 2 3 4 5 6 7 8; do (echo \"${a[*]} ${!a[*]}\") & done; wait"
	out, _ := perform(t, shell.New(false), shell.New(true), script)
	if want := strings.Repeat("3 5 7 9 100 900 3 5 7 9 100 900\n", 8); out != want {
		t.Errorf("got %q", out)
	}
}
