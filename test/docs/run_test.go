package docs

import (
	"bufio"
	"flag"
	"fmt"
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

var update = flag.Bool("update", false, "replace the outputs in the documents by what the commands print")

// TestDocuments runs the blocks of every document that has some.
func TestDocuments(t *testing.T) {
	ran := 0
	for _, d := range markdown(t) {
		if d.path == "docs/cli.md" {
			continue // generated from the commands' own help; its examples have no buckets to work on
		}
		if strings.HasPrefix(d.path, "sdk/") || strings.HasPrefix(d.path, "test/sdk/") {
			continue // run by test/sdk, where the packages are installed
		}
		var todo []*block
		for _, b := range d.blocks {
			switch {
			case b.skip != "":
				t.Logf("not run: %s:%d: %s", d.path, b.line+1, b.skip)
			case b.file != "" || language(b.lang):
				todo = append(todo, b)
			}
		}
		if len(todo) == 0 {
			continue
		}
		ran++
		t.Run(strings.TrimSuffix(filepath.Base(d.path), ".md"), func(t *testing.T) { runDocument(t, d, todo) })
	}
	if ran < 3 {
		t.Errorf("only %d documents have something to run", ran)
	}
}

func language(lang string) bool {
	switch lang {
	case "sh", "console", "hidden", "python", "js", "go":
		return true
	}
	return false
}

// command is one unit of what is run: a command of a console, or a whole block of another language.
type command struct {
	line     int // in the document, from 0
	text     []string
	expected []string // what it prints, if the document says
	outLine  int      // where that begins
	compare  bool
	mayFail  bool // the next command asks for the exit status
	server   bool // runs in the background
}

var serves = regexp.MustCompile(`^(?:bin/)?agentrun up\b`)

// split makes commands of a block.
func (b *block) split() []*command {
	var out []*command
	add := func(i int, line string) *command {
		c := &command{line: b.line + i, text: []string{line}, server: serves.MatchString(line)}
		out = append(out, c)
		return c
	}
	if b.lang != "console" {
		var c *command
		for i, line := range b.text {
			if (b.lang == "sh" || b.lang == "hidden") && serves.MatchString(line) {
				add(i, line)
				c = nil
				continue
			}
			if c == nil {
				if strings.TrimSpace(line) == "" {
					continue
				}
				c = add(i, line)
			} else {
				c.text = append(c.text, line)
			}
		}
		return out
	}
	var c *command
	for i, line := range b.text {
		if rest, ok := strings.CutPrefix(line, "$ "); ok {
			if c != nil && strings.HasPrefix(rest, "echo $?") {
				c.mayFail, c.server, c.compare = true, false, true
			}
			c = add(i, rest)
			c.compare, c.outLine = !c.server, b.line+i+1
		} else if rest, ok := strings.CutPrefix(line, "> "); ok && c != nil && len(c.expected) == 0 {
			c.text = append(c.text, rest)
			c.outLine = b.line + i + 1
		} else if c != nil {
			c.expected = append(c.expected, line)
		}
	}
	return out
}

// session is a shell in which a document's commands run one after the other.
type session struct {
	t        *testing.T
	d        *document
	dir      string // for the units' scripts and outputs
	home     string
	work     string
	api, s3  string // the ports that stand for 7070 and 7071
	n        int
	stdin    *os.File
	answers  *bufio.Reader
	shell    *exec.Cmd
	ended    bool
	replaced []replacement
}

// replacement is an output that -update puts into the document.
type replacement struct {
	from, to int
	text     []string
}

func runDocument(t *testing.T, d *document, todo []*block) {
	s := newSession(t, d)
	defer s.rewrite()
	for _, b := range todo {
		if b.file != "" {
			s.write(b.file, b.text)
			continue
		}
		for _, c := range b.split() {
			if !s.run(b.lang, c) {
				return
			}
		}
	}
	s.stop()
}

func newSession(t *testing.T, d *document) *session {
	home := t.TempDir()
	s := &session{t: t, d: d, dir: t.TempDir(), home: home, work: filepath.Join(home, "work")}
	_, s.api, _ = strings.Cut(harness.FreePort(t), ":")
	_, s.s3, _ = strings.Cut(harness.FreePort(t), ":")
	bin := filepath.Join(s.work, "bin")
	for _, dir := range []string{bin, filepath.Join(home, ".config")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := func(name, text string) {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/bash\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// A server that isn't told where to listen takes the session's ports instead of the usual ones.
	script("agentrun", fmt.Sprintf(`if [ "$1" = up ]; then
  case " $* " in *" --listen"* | *--help*) ;; *) set -- "$@" --listen 127.0.0.1:%s ;; esac
  case " $* " in *" --s3-listen"* | *--help*) ;; *) set -- "$@" --s3-listen 127.0.0.1:%s ;; esac
fi
exec -a agentrun '%s' "$@"
`, s.api, s.s3, harness.Binary(t)))
	for _, tool := range []string{"aws", "python", "s3cmd", "rclone"} {
		// Python finds its packages beside the path that it is started by, so a link won't do.
		script(tool, "exec '"+harness.Tool(t, tool)+"' \"$@\"\n")
	}
	script("tigris", "exec '"+harness.Tool(t, "tigris")+"' \"$@\"\n")
	if err := os.Symlink(harness.NodeModules(t), filepath.Join(s.work, "node_modules")); err != nil {
		t.Fatal(err)
	}
	env := append(harness.Environ(home), "PATH="+bin+":"+os.Getenv("PATH"), "REPO="+harness.Root(), "NO_COLOR=1")
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} { // which lie in the real home
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(out)))
	}
	s.start(env)
	return s
}

// start starts the shell; it takes the names of scripts and answers with exit statuses.
func (s *session) start(env []string) {
	s.shell = exec.Command("bash", "--norc")
	s.shell.Dir, s.shell.Env = s.work, env
	in, stdin, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	answers, out, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.shell.Stdin, s.shell.Stderr, s.shell.ExtraFiles = in, os.Stderr, []*os.File{out}
	if err := s.shell.Start(); err != nil {
		s.t.Fatal(err)
	}
	in.Close()
	out.Close()
	s.stdin, s.answers = stdin, bufio.NewReader(answers)
	s.t.Cleanup(func() {
		if !s.ended {
			s.send("[ -z \"$__server\" ] || kill $__server 2>/dev/null; exit\n")
			s.stdin.Close()
			_ = s.shell.Wait()
		}
		answers.Close()
	})
	s.send("stop_server() { [ -z \"$__server\" ] || { kill -${1:-TERM} $__server; wait $__server; local s=$?; __server=; return $s; }; }\n__s=0\n")
}

func (s *session) send(text string) {
	if _, err := s.stdin.WriteString(text); err != nil {
		s.t.Errorf("%s: the shell has ended: %v", s.d.path, err)
	}
}

// write puts a block's text into a file of the session's folder.
func (s *session) write(name string, text []string) {
	path := filepath.Join(s.work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(s.ports(strings.Join(text, "\n"))+"\n"), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// ports puts the session's ports in the place of the usual ones.
func (s *session) ports(text string) string {
	return strings.NewReplacer(":7070", ":"+s.api, ":7071", ":"+s.s3).Replace(text)
}

// run runs a command and checks how it ended. It returns false if what follows can't work.
func (s *session) run(lang string, c *command) bool {
	s.n++
	file := filepath.Join(s.dir, strconv.Itoa(s.n))
	text := s.ports(strings.Join(c.text, "\n"))
	switch lang {
	case "python":
		text = "python - <<'END_OF_BLOCK'\n" + text + "\nEND_OF_BLOCK"
	case "js":
		text = "cat >.block.mjs <<'END_OF_BLOCK'\n" + text + "\nEND_OF_BLOCK\nnode .block.mjs"
	case "go":
		// Run from the top of this module, whose versions of the libraries it takes.
		text = "mkdir -p .block; cat >.block/main.go <<'END_OF_BLOCK'\n" + text + "\nEND_OF_BLOCK\n" +
			"(file=$PWD/.block/main.go; cd \"$REPO\" && go run \"$file\")"
	}
	if (lang == "sh" || lang == "hidden") && !c.server {
		text = "set -e\n" + text + "\nset +e"
	}
	if err := os.WriteFile(file, []byte(text+"\n"), 0o644); err != nil {
		s.t.Fatal(err)
	}
	if c.server {
		s.send(fmt.Sprintf("sed -i 's/^/exec /' %[1]s; bash %[1]s >%[1]s.out 2>&1 </dev/null & __server=$!; echo up >&3\n", file))
		_, _ = s.answers.ReadString('\n')
		return s.await(c, file+".out")
	}
	s.send(fmt.Sprintf("(exit $__s); . %[1]s >%[1]s.out 2>&1 </dev/null; __s=$?; set +e; echo $__s >&3\n", file))
	answer, err := s.answers.ReadString('\n')
	out, readErr := os.ReadFile(file + ".out")
	if readErr != nil {
		s.t.Fatal(readErr)
	}
	if err != nil {
		s.ended = true
		_ = s.shell.Wait()
		s.t.Errorf("%s:%d: failed:\n%s\n%s", s.d.path, c.line+1, strings.Join(c.text, "\n"), out)
		return false
	}
	if status := strings.TrimSpace(answer); status != "0" && !c.mayFail {
		s.t.Errorf("%s:%d: exit status %s (a command that should fail is followed by $ echo $?):\n%s\n%s",
			s.d.path, c.line+1, status, strings.Join(c.text, "\n"), out)
		return false
	}
	if c.compare {
		s.compare(c, string(out))
	}
	return true
}

// await waits until a server says that it is up.
func (s *session) await(c *command, file string) bool {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		out, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(out), "AgentRun is up") && strings.Contains(string(out), "Ctrl-C") {
			c.compare = len(c.expected) > 0
			if c.compare {
				s.compare(c, string(out))
			}
			return true
		}
	}
	out, _ := os.ReadFile(file)
	s.t.Errorf("%s:%d: the server isn't up after 30 s:\n%s", s.d.path, c.line+1, out)
	return false
}

// stop ends the server as a user would, and the shell.
func (s *session) stop() {
	s.send("stop_server; echo $? >&3; exit\n")
	answer, err := s.answers.ReadString('\n')
	if err != nil || strings.TrimSpace(answer) != "0" {
		s.t.Errorf("%s: the server ended with status %s (%v)", s.d.path, strings.TrimSpace(answer), err)
	}
	s.stdin.Close()
	_ = s.shell.Wait() // its own status says nothing more
	s.ended = true
}
