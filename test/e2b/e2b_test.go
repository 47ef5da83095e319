// Package e2b proves that E2B's own SDKs, unmodified, work against a server: every method of them, in JavaScript and in Python, the
// oldest versions that are supported and the newest that were looked at, told nothing but a key and two URLs. What the runs find is
// the table of docs/e2b.md.
//
// A suite is a program in the SDK's language that runs steps and writes a line for each. A step is named after the method that it
// looks at, "Sandbox.create: environment". A step that is known to fail stands in open.txt; when it works, it has to leave that list.
package e2b

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrun.dev/test/harness"
)

var update = flag.Bool("update", false, "write the table of docs/e2b.md, and open.txt, from this run")

// suiteTime bounds one run of a suite.
const suiteTime = 8 * time.Minute

// client is an SDK in one version and, in Python, one of its two faces.
type client struct {
	language string // js or py
	name     string // of the tool: js-old, js-new, python-old, python-new
	async    bool
}

func (c client) String() string {
	if c.async {
		return c.name + "-async"
	}
	return c.name
}

var clients = []client{{"js", "js-new", false}, {"py", "python-new", false}, {"js", "js-old", false}, {"py", "python-old", false}, {"py", "python-new", true}}

// outcome is how a step went.
type outcome struct {
	Step  string `json:"step"`
	Group string `json:"group"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
	MS    int    `json:"ms"`
}

// report is what a suite found.
type report struct {
	Client  string    `json:"client"`
	Version string    `json:"version"`
	Surface []string  `json:"surface"` // the methods that the SDK has
	Steps   []outcome `json:"steps"`

	done bool // it ran to its end
}

// TestSDKs runs every suite against one server, addressed as most will: both URLs are the main listener's.
func TestSDKs(t *testing.T) {
	s := harness.Start(t)
	key := newKey(t, s)
	env := []string{"E2B_API_KEY=" + key, "E2B_API_URL=" + s.API, "E2B_SANDBOX_URL=" + s.API, "E2B_VOLUME_API_URL=" + s.API}
	reports, limited := make([]*report, len(clients)), limits(t, s)
	turn := make(chan struct{}, 2) // suites wait much and reckon little; two at once fill a small machine
	var wait sync.WaitGroup
	for i, c := range clients {
		wait.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			reports[i] = run(t, c, slices.Concat(env, limited[i]))
		})
	}
	wait.Wait()
	open := readOpen(t)
	for i, c := range clients {
		t.Run(c.String(), func(t *testing.T) { open.judge(t, c, reports[i], true) })
	}
	if *update {
		open.write(t, reports)
	}
	checkDocument(t, reports, open)
	keep(t, reports)
}

// newKey makes a key of the form that E2B's SDKs accept, and the first sandbox of each template that exists by default: what is made ready
// for it once, interpreters among it, may take longer on a busy machine than the SDKs wait for an answer.
func newKey(t *testing.T, s *harness.Server, more ...string) string {
	t.Helper()
	cmd := exec.Command(harness.Binary(t), append([]string{"keys", "create", "--e2b"}, more...)...)
	cmd.Env = s.ClientEnv(t.TempDir())
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if m := regexp.MustCompile(`(?m)^(e2b_[0-9a-f]+)$`).FindSubmatch(out); err == nil && m != nil {
		for _, template := range []string{"code-interpreter-v1", "base"} {
			if len(more) == 0 { // else it is somebody's who may be limited
				firstSandbox(t, s, string(m[1]), template)
			}
		}
		return string(m[1])
	}
	t.Fatalf("agentrun keys create --e2b: %v\n%s%s", err, out, wrong.Bytes())
	return ""
}

// firstSandbox makes a sandbox and ends it.
func firstSandbox(t *testing.T, s *harness.Server, key, template string) {
	t.Helper()
	var sandbox struct{ SandboxID string }
	for _, q := range []struct{ method, path, body string }{{http.MethodPost, "/sandboxes", `{"templateID": "` + template + `", "timeout": 600}`}, {http.MethodDelete, "/sandboxes/", ""}} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, q.method, s.API+q.path+sandbox.SandboxID, strings.NewReader(q.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", key)
		answer, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		b, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode >= 300 {
			t.Fatalf("the first sandbox of %s: %s %s: %d %s, %v", template, q.method, q.path, answer.StatusCode, b, err)
		}
		if q.body != "" && json.Unmarshal(b, &sandbox) != nil {
			t.Fatalf("the first sandbox of %s: %s", template, b)
		}
	}
}

// run runs a client's suite, in a folder of its own, to its end and returns what it wrote.
func run(t *testing.T, c client, env []string) *report {
	t.Helper()
	r := runWith(t, c, harness.Tool(t, "e2b-"+c.name), env)
	if !r.done {
		t.Errorf("%s didn't run to its end", c)
	}
	return r
}

// runWith is run with a tool of another place.
func runWith(t *testing.T, c client, tool string, env []string) *report {
	t.Helper()
	dir, r := t.TempDir(), &report{Client: c.String()}
	results := filepath.Join(dir, "results")
	var cmd *exec.Cmd
	ctx, cancel := context.WithTimeout(context.Background(), suiteTime)
	defer cancel()
	switch c.language {
	case "js":
		copyInto(t, dir, filepath.Join(harness.Root(), "test", "e2b", "javascript", "*.mjs"))
		if err := os.Symlink(filepath.Dir(tool), filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		// What lies behind the link is found as if it were in this folder.
		cmd = exec.CommandContext(ctx, "node", "--preserve-symlinks", "--preserve-symlinks-main", "--disable-warning=ExperimentalWarning", "suite.mjs")
	default:
		copyInto(t, dir, filepath.Join(harness.Root(), "test", "e2b", "python", "*.py"))
		cmd = exec.CommandContext(ctx, tool, "suite.py")
	}
	cmd.Dir = dir
	for _, kv := range harness.Environ(dir) {
		if !strings.HasPrefix(kv, "E2B_API") && !strings.HasPrefix(kv, "E2B_DOMAIN") && !strings.HasPrefix(kv, "E2B_SANDBOX") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(append(cmd.Env, env...), "E2B_TEST_RESULTS="+results, "PYTHONDONTWRITEBYTECODE=1")
	if c.async {
		cmd.Env = append(cmd.Env, "E2B_TEST_MODE=async")
	}
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if out.Len() > 0 {
		t.Logf("%s says:\n%s", c, tail(out.String(), 3000))
	}
	if r.done = read(t, r, results); !r.done {
		t.Logf("%s: %v", c, err)
	}
	return r
}

// read reads a suite's lines. It tells whether they are complete.
func read(t *testing.T, r *report, file string) (done bool) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line struct {
			outcome
			report
			Done bool `json:"done"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		switch {
		case line.Done:
			done = true
		case line.Version != "":
			r.Version, r.Surface = line.Version, line.Surface
		default:
			r.Steps = append(r.Steps, line.outcome)
		}
	}
	slices.SortFunc(r.Steps, func(a, b outcome) int { return strings.Compare(a.Step, b.Step) })
	return done
}

func copyInto(t *testing.T, dir, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files (%v)", pattern, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(file)), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// keep writes what was found where a reader may look at it, with times.
func keep(t *testing.T, reports []*report) {
	t.Helper()
	b, err := json.MarshalIndent(reports, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(harness.Root(), "bin", "e2b-results.json"), append(b, '\n'), 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}

// openSteps are the steps that are known to fail, as "js Sandbox.create: environment", each with the reason.
type openSteps map[string]string

func readOpen(t *testing.T) openSteps {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(harness.Root(), "test", "e2b", "open.txt"))
	if err != nil {
		t.Fatal(err)
	}
	open := openSteps{}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, why, _ := strings.Cut(line, " | ")
		open[strings.TrimSpace(name)] = strings.TrimSpace(why)
	}
	return open
}

// find returns why a client's step is open: for its language, or for this client only.
func (o openSteps) find(c client, step string) (key, why string, ok bool) {
	for _, key := range []string{c.language + " " + step, c.String() + " " + step} {
		if why, ok := o[key]; ok {
			return key, why, true
		}
	}
	return "", "", false
}

// judge makes each step of a report a subtest and, where all of them ran, looks for methods that no step is about.
func (o openSteps) judge(t *testing.T, c client, r *report, all bool) {
	if r == nil || len(r.Steps) == 0 {
		t.Fatal("no steps")
	}
	about := map[string]bool{}
	for _, s := range r.Steps {
		method, _, _ := strings.Cut(s.Step, ":")
		about[method] = true
		key, why, open := o.find(c, s.Step)
		t.Run(s.Step, func(t *testing.T) {
			switch {
			case s.OK && open && !*update:
				t.Errorf("it works now: take %q out of open.txt", key)
			case !s.OK && *update:
				t.Logf("OPEN: %s", firstLine(s.Error))
			case !s.OK && open:
				t.Logf("OPEN: %s (%s)", firstLine(s.Error), why)
			case !s.OK:
				t.Errorf("%s\nafter %d ms", s.Error, s.MS)
			}
		})
	}
	for _, m := range r.Surface {
		if !all {
			break
		}
		if _, out := outside(c.language, m); !about[m] && !out && c.name != "python-old" { // of which the table says what wasn't tried
			t.Errorf("the SDK has a method that no step is about: %s", m)
		}
	}
}

// write writes open.txt anew: what works goes, what fails comes.
func (o openSteps) write(t *testing.T, reports []*report) {
	t.Helper()
	failed := map[string]map[string]bool{} // step → client → failed
	works := map[string]bool{}
	for i, r := range reports {
		for _, s := range r.Steps {
			name := clients[i].language + " " + s.Step
			if s.OK {
				works[clients[i].String()+" "+s.Step] = true
				continue
			}
			if failed[name] == nil {
				failed[name] = map[string]bool{}
			}
			failed[name][clients[i].String()] = true
		}
	}
	var lines []string
	for name, by := range failed {
		language, step, _ := strings.Cut(name, " ")
		all := true
		for _, c := range clients {
			all = all && (c.language != language || !works[c.String()+" "+step])
		}
		if all {
			lines = append(lines, strings.TrimSpace(name+" | "+o[name]))
			continue
		}
		for c := range by {
			lines = append(lines, strings.TrimSpace(c+" "+step+" | "+o[c+" "+step]))
		}
	}
	slices.Sort(lines)
	text := "# Steps of E2B's SDKs that don't work yet, and why: \"js\" and \"py\" mean every version, \"js-old\" and the like that one.\n"
	for _, l := range lines {
		text += l + "\n"
	}
	clear(o)
	if err := os.WriteFile(filepath.Join(harness.Root(), "test", "e2b", "open.txt"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for k, v := range readOpen(t) {
		o[k] = v
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	if len(line) > 200 {
		line = line[:200] + "…"
	}
	return line
}

func tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}
