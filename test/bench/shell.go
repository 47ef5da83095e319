package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"agentrun.dev/engine/userspace"
)

// shellSetup makes the files that the scripts work on, by whoever runs them.
const shellSetup = `mkdir -p tree
seq 1 100000 | awk '{ x = ($1 * 7919) % 100003; printf "%d line %d of the file, key%d value\n", x, $1, x % 977 }' > big
for i in $(seq 1 100); do head -n 1000 big | sed "s/file/file $i/" > tree/f$i.txt; done
{ echo '['; awk 'NR > 1 { print "," } { printf "{\"id\": %d, \"name\": \"n%d\", \"tags\": [\"a\", \"b%d\"]}\n", NR, NR, NR % 7 } NR == 20000 { exit }' big; echo ']'; } > data.json`

// shellScripts are measured in this order. Those of the shell itself are to take no longer than in bash.
var shellScripts = []struct {
	name, script string
	own          bool // of the shell itself
}{
	{"command substitution, 2,000 of a builtin", `for ((i=0;i<2000;i++)); do x=$(echo $i); done`, true},
	{"pipelines, 500 of two builtins", `for ((i=0;i<500;i++)); do echo $i | read -r x; done`, true},
	{"commands started, 300", `for ((i=0;i<300;i++)); do cat /dev/null; done`, true},
	{"for ((…)), 200,000 rounds", `for ((i=0;i<200000;i++)); do :; done`, true},
	{"while [ … ], 100,000 rounds", `i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done`, true},
	{"function calls, 50,000", `f() { local x=$1; r=$((x+1)); }; for ((i=0;i<50000;i++)); do f $i; done`, true},
	{"recursive fib 17", `fib() { (( $1 < 2 )) && { r=$1; return; }; local a; fib $(( $1-1 )); a=$r; fib $(( $1-2 )); r=$((a+r)); }; fib 17`, true},
	{"s+=x, 100,000 times", `s=; for ((i=0;i<100000;i++)); do s+=x; done`, true},
	{"array appends and a walk, 50,000", `a=(); for ((i=0;i<50000;i++)); do a+=($i); done; for x in "${a[@]}"; do ((t+=x)); done`, true},
	{"map of 500, 50,000 writes", `declare -A m; for ((i=0;i<50000;i++)); do m[k$((i%500))]=$i; done`, true},
	{"expansions of strings, 100,000", `s=hello-world.tar.gz; for ((i=0;i<25000;i++)); do b=${s##*-}; c=${b%%.*}; d=${s/o/0}; e=${s:3:5}; done`, true},
	{"case, 50,000", `for ((i=0;i<50000;i++)); do case file$i.txt in *.c) ;; a*|b*) ;; *[0-5].txt) n=1;; *) n=2;; esac; done`, true},
	{"[[ =~ ]], 20,000", `for ((i=0;i<20000;i++)); do [[ "key$i=val" =~ ^([a-z]+)([0-9]+)=(.*)$ ]]; done`, true},
	{"read of 100,000 lines", `while IFS= read -r l; do n=$l; done < big`, true},
	{"mapfile of 100,000 lines", `mapfile -t a < big`, true},
	{"grep -r in 100 files, 8 MB", `grep -r key97 tree | wc -l`, false},
	{"grep -E without a literal, 100,000 lines", `grep -cE '[a-z]{3}[0-9]{4}|([xyz][0-9]+)+,' big || :`, false},
	{"sort -n, 100,000 lines", `sort -n big | tail -n 1`, false},
	{"sort | uniq -c, 100,000 lines", `cut -d' ' -f7 big | sort | uniq -c | sort -rn | head -n 1`, false},
	{"sed, 100,000 lines", `sed -E 's/key([0-9]+)/k<\1>/g; /line 5/d' big | wc -l`, false},
	{"awk, 100,000 lines", `awk '{ n[$7] += $1 } END { for (k in n) c++; print c }' big`, false},
	{"jq, 20,000 objects", `jq -c 'map(select(.id % 3 == 0) | {id, t: .tags[1]}) | group_by(.t) | map(length)' data.json`, false},
}

//go:embed justbash.mjs
var justBash []byte

// shells measures scripts in a sandbox, in bash with GNU's tools on the same files, and in just-bash if it is installed.
func shells(b *bench) error {
	rounds := 5
	if b.quick {
		rounds = 1
	}
	dir := filepath.Join(b.dir, "shell")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	native := func(script string) error {
		cmd := exec.CommandContext(b.ctx, "bash", "-c", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "LC_ALL=C.UTF-8")
		out, err := cmd.CombinedOutput()
		return wrap(err, out)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	guests := userspace.NewGuests(userspace.GuestOptions{CacheDir: filepath.Join(cache, "agentrun", "wasm")})
	defer guests.Close()
	s, err := userspace.New(b.ctx, userspace.Options{Dir: "/tmp", Env: []string{"LC_ALL=C.UTF-8"}, Commands: guests})
	if err != nil {
		return err
	}
	defer s.Stop(context.WithoutCancel(b.ctx))
	ours := func(script string) error {
		var out bytes.Buffer
		status, err := s.Run(b.ctx, userspace.Cmd{Args: []string{"bash", "-c", script}, Stdout: &out, Stderr: &out})
		if err == nil && status != 0 {
			err = fmt.Errorf("status %d", status)
		}
		return wrap(err, out.Bytes())
	}
	if err := errors.Join(native(shellSetup), ours(shellSetup)); err != nil {
		return err
	}
	rival, err := b.justBash(dir)
	if err != nil {
		return err
	}
	for _, x := range shellScripts {
		t1, err1 := best(rounds, ours, x.script)
		t2, err2 := best(rounds, native, x.script)
		if err := errors.Join(err1, err2); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
		other := "bash " + short(t2)
		if ms, ok := rival[x.name]; ok {
			if other += "; just-bash "; ms < 0 {
				other += "fails"
			} else {
				other += short(time.Duration(ms * float64(time.Millisecond)))
			}
		}
		r := row{Name: "shell: " + x.name, Ours: short(t1), Other: other, Ratio: float64(t1) / float64(t2), Target: "-", Met: true}
		if x.own {
			r.Target, r.Met = "≤ 1", t1 <= t2
		}
		b.add(r)
	}
	return nil
}

func wrap(err error, out []byte) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out[:min(len(out), 500)]))
}

// best is the shortest of several rounds.
func best(rounds int, run func(string) error, script string) (time.Duration, error) {
	var out time.Duration
	for range rounds {
		start := time.Now()
		if err := run(script); err != nil {
			return 0, err
		}
		if t := time.Since(start); out == 0 || t < out {
			out = t
		}
	}
	return out, nil
}

// justBashLimit bounds what just-bash takes for all scripts: each runs once.
const justBashLimit = 5 * time.Minute

// justBash runs the scripts in just-bash of npm, within one process of node, and returns their times in milliseconds: -1 for
// those that fail, none for those that it doesn't come to.
func (b *bench) justBash(dir string) (map[string]float64, error) {
	if b.rival == "" || b.quick {
		return nil, nil
	}
	if _, err := os.Stat(filepath.Join(b.rival, "node_modules", "just-bash")); err != nil {
		fmt.Fprintln(os.Stderr, "bench: just-bash isn't installed (test/setup.sh just-bash): its times are missing")
		return nil, nil
	}
	type script struct {
		Name   string `json:"name"`
		Script string `json:"script"`
	}
	var job struct {
		Dir     string   `json:"dir"`
		Scripts []script `json:"scripts"`
	}
	job.Dir = dir
	for _, x := range shellScripts {
		job.Scripts = append(job.Scripts, script{x.name, x.script})
	}
	in, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	program := filepath.Join(b.dir, "justbash.mjs")
	if err := os.WriteFile(program, justBash, 0o600); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(b.ctx, justBashLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", program, b.rival)
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &stderr
	text, err := cmd.Output()
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("just-bash: %w: %s", err, stderr.String())
	}
	out := map[string]float64{}
	for line := range bytes.Lines(text) {
		var r struct {
			Name string
			MS   float64
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("just-bash: %w", err)
		}
		out[r.Name] = r.MS
	}
	return out, nil
}
