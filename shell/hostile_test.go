package shell_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"agentrun.dev/command"
	"agentrun.dev/engine/userspace"
	"agentrun.dev/proc"
	"agentrun.dev/shell"
	"agentrun.dev/vfs"
)

// What would take all memory, time or processes is refused in words, and the shell or its parent goes on.
func TestHostile(t *testing.T) {
	for _, tc := range []struct{ name, script, want string }{
		{"fork bomb", `b() { b | b & }; b; sleep 0.2; echo alive`, "alive"},
		{"processes", `for i in {1..200}; do sleep 9 & done; echo alive; kill $(jobs -p)`, "Resource temporarily unavailable"},
		{"recursion", `f() { f; }; f; echo alive`, "maximum function nesting level exceeded"},
		{"eval", `f() { eval f; }; f; echo alive`, "nesting level exceeded"},
		{"source", `echo '. ./s' > s; . ./s; echo alive`, "maximum nesting level exceeded"},
		{"substitutions", `f() { x=$(f); }; f; echo alive`, "Resource temporarily unavailable"},
		{"nested substitutions", `printf -v x '%9000s'; x=${x// /'$('}; eval "echo $x"; echo alive`, "too deeply nested"},
		{"nested groups", `printf -v x '%50000s'; eval "${x// /(}"; echo alive`, "too deeply nested"},
		{"nested expansions", `printf -v x '%20000s'; eval "echo ${x// /'${a:-'}"; echo alive`, "too deeply nested"},
		{"arithmetic", `a=b; b=a; (echo $((a))); echo alive`, "expression recursion level exceeded"},
		{"nested arithmetic", `printf -v x '%20000s'; (echo $(( ${x// /(} ))); echo alive`, "alive"},
		{"subscripts", `a='a[a]'; (echo $((a))); echo alive`, "expression recursion level exceeded"},
		{"string", `(x=a; while :; do x=$x$x; done); echo alive`, "memory limit exceeded"},
		{"appended string", `(while :; do x+=0123456789012345678901234567890123456789012345678901234567890123456789; done); echo alive`, "memory limit exceeded"},
		{"array", `(while :; do a+=({1..10000}); done); echo alive`, "memory limit exceeded"},
		{"map", `(declare -A m; while :; do m[$((i++))]=xxxxxxxxxxxxxxxxxxxxxxx; done); echo alive`, "memory limit exceeded"},
		{"variables", `(while :; do declare v$((i++))=x; done); echo alive`, "memory limit exceeded"},
		{"parameters", `(set -- {1..100000}; while :; do set -- "$@" "$@"; done); echo alive`, "memory limit exceeded"},
		{"arguments", `(set -- {1..50000}; f() { f "$@"; }; f "$@"); echo alive`, "memory limit exceeded"},
		{"output", `(x=$(cat /dev/zero)); echo alive`, "memory limit exceeded"},
		{"lines", `(mapfile x < <(yes)); echo alive`, "memory limit exceeded"},
		{"line", `(read -r x < <(yes | tr -d '\n')); echo alive`, "memory limit exceeded"},
		{"copies", `a=({1..200000}); for i in {1..60}; do (a[0]=1; read -t 1 < <(sleep 1)) & done; wait; echo alive`, "memory limit exceeded"},
		{"sequence", `echo {1..1000000000}; echo alive`, "failed to allocate memory for 1000000000 elements"},
		{"braces", `echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b} | wc -c
echo alive`, "failed to allocate memory"},
		{"extended pattern", `shopt -s extglob; printf -v s '%20000sb'; s=${s// /a}; [[ $s == +(a|aa) ]]; echo "${s//+(a|aa)c/x}" | wc -c; echo alive`, "20002"},
		{"stars", `printf -v s '%20000sb'; echo "${s//*a*a*a*a*a*c/x}" | wc -c; echo alive`, "20002"},
		{"expression", `printf -v s '%20000sb'; s=${s// /a}; [[ $s =~ ^(a+)+c$ ]]; echo $?; [[ $s =~ ^(a|aa)+b$ ]]; echo $?; echo alive`, "1\n0\n"},
		{"widths", `printf '%9999999999d' 1 | wc -c; printf -v x '%.9999999999f' 1; echo alive`, "alive"},
		{"shifts", `echo $((1 << 9999)) $((2 ** 9999999)) $((-9223372036854775808 / -1)); echo alive`, "alive"},
		{"descriptors", `while exec {fd}<>/dev/null; do :; done; echo alive`, "Too many open files"},
		{"trap", `trap 'kill -USR1 $$' USR1; kill -USR1 $$; trap 'f' DEBUG; f() { f; }; : ; trap - DEBUG; echo alive`, "alive"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			set := command.NewSet(map[string]proc.Program{"bash": shell.New(false), "sh": shell.New(true)})
			s, err := userspace.New(context.Background(), userspace.Options{Commands: set,
				Limits: proc.Limits{Processes: 100, Depth: 1000, Memory: 8 << 20, SandboxMemory: 64 << 20, Files: 100}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop(context.Background())
			var out bytes.Buffer
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			// The script's last words may be those of the shell that it ends.
			script := strings.TrimSuffix(tc.script, "; echo alive")
			if _, err := s.Run(ctx, userspace.Cmd{Args: []string{"bash", "-c", "bash -c \"$0\" 2>&1 | tail -c 2000; echo alive", script}, Stdout: &out, Stderr: &out}); err != nil {
				t.Fatal(err)
			}
			if d := s.Defect(); d != "" {
				t.Fatal(d)
			}
			if got := out.String(); !strings.Contains(got, tc.want) || !strings.HasSuffix(got, "alive\n") {
				t.Errorf("want %q, got:\n%s", tc.want, got)
			}
		})
	}
}

// A shell ends when it is killed, whatever it is at, and its neighbour goes on.
func TestKill(t *testing.T) {
	for _, script := range []string{
		`while :; do :; done`,
		`for ((;;)); do ((i++)); done`,
		`until false; do x=$(:); done`,
		`f() { f; }; while :; do (f); done`,
		`shopt -s extglob; printf -v s '%100000sb'; s=${s// /a}; while :; do [[ $s == +(+(a)|+(aa)|!(aab))c ]]; done`,
		`printf -v s '%300000s' b; while :; do x=${s//*a*a*a*a*a*a*c/x}; done`,
		`printf -v s '%1000000s' b; while :; do [[ $s =~ ^(( +)+)+$ ]]; done`,
		`a=({1..200000}); while :; do b=("${a[@]}"); done`,
		`while :; do : {1..1000}{1..100}; done`,
		`while :; do : {1..8000000}; done`,
		`while :; do : a{1..1000000}; done`,
		`while :; do : {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}; done`,
		`read -r x < /dev/zero`,
		`mapfile -n 1 -s 1000000000 x < <(yes)`,
		`trap "" TERM INT HUP; while :; do trap : USR1; done`,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			defer w.close(t)
			p, err := w.s.NewProcess(proc.Root{Args: []string{"bash", "-c", script}, Env: []string{"PATH=/bin"}, Dir: "/tmp",
				Files: map[int]vfs.File{0: proc.NewInput(nil, false), 1: w.s.NewOutput(&output{}, false), 2: w.s.NewOutput(&output{}, false)}})
			if err != nil {
				t.Fatal(err)
			}
			p.Start(shell.New(false))
			time.Sleep(100 * time.Millisecond)
			select {
			case <-p.Done():
				t.Fatal("it has ended by itself")
			default:
			}
			begun := time.Now()
			p.Post(proc.SIGKILL)
			select {
			case <-p.Done():
				t.Logf("ended within %v", time.Since(begun))
			case <-time.After(20 * time.Second):
				t.Fatal("it goes on")
			}
			out := &output{}
			q := w.start(t, "echo next", out)
			if <-q.Done(); !strings.Contains(out.String(), "next") {
				t.Errorf("the neighbour says %q", out)
			}
		})
	}
}
