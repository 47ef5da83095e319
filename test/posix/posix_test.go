// Package posix checks the sandbox against the Shell and Utilities volume of POSIX.1-2017 (XCU): every utility, option by
// option. Its table (table_test.go) is also what docs/posix.md is made of:
//
//	go test ./test/posix -update
//
// writes the document, and the test fails if it isn't what the table says.
package posix

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentrun.dev/command"
	"agentrun.dev/proc"
	"agentrun.dev/shell"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

var update = flag.Bool("update", false, "write docs/posix.md")

const document = "../../docs/posix.md"

// row is one line of the table: what is used, a script that uses it, and what it shall print (standard error too).
type row struct {
	feature, script string
	want            string
	pattern         bool // want is a regular expression
	status          int
	missing         string // why it doesn't conform; the script must not pass then
}

// utility is one of XCU's.
type utility struct {
	name, absent string // why it isn't there
	rows         []row
}

// parse reads the table. "= NAME" begins a utility, "= NAME ! REASON" one that isn't there. A row is
// "FEATURE :: SCRIPT => OUTPUT"; "=~" instead is a pattern; OUTPUT has Go's escapes, and [N] before it is an exit status.
// A row that ends in "!! REASON" is one that is known to differ.
func parse(t *testing.T, table string) (list []utility) {
	t.Helper()
	for _, line := range strings.Split(table, "\n") {
		switch {
		case strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, "= "):
			name, absent, _ := strings.Cut(line[2:], " ! ")
			list = append(list, utility{name: name, absent: absent})
		default:
			feature, rest, ok := strings.Cut(line, " :: ")
			r := row{feature: feature}
			rest, r.missing, _ = strings.Cut(rest, " !! ")
			script, want, plain := strings.Cut(rest, " => ")
			if !plain {
				if script, want, r.pattern = strings.Cut(rest, " =~ "); !r.pattern {
					if script, plain = strings.CutSuffix(rest, " =>"); !plain {
						t.Fatalf("no expectation: %s", line)
					}
				}
			}
			if m := regexp.MustCompile(`^\[(\d+)\] ?`).FindStringSubmatch(want); m != nil {
				r.status, _ = strconv.Atoi(m[1])
				want = want[len(m[0]):]
			}
			if !r.pattern {
				text, err := strconv.Unquote(`"` + strings.ReplaceAll(want, `"`, `\"`) + `"`)
				if err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				want = text
			}
			if r.script, r.want = script, want; !ok || len(list) == 0 {
				t.Fatalf("no row: %s", line)
			}
			u := &list[len(list)-1]
			u.rows = append(u.rows, r)
		}
	}
	return list
}

// run runs a script in a fresh sandbox.
func run(t *testing.T, script string) (string, int) {
	t.Helper()
	set := command.NewSet(map[string]proc.Program{"bash": shell.New(false), "sh": shell.New(true)})
	ns := vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{})})
	s, err := proc.New(proc.Options{Namespace: ns, Commands: set})
	if err != nil {
		t.Fatal(err)
	}
	for path, fs := range map[string]vfs.FS{"/dev": proc.NewDev(), "/proc": proc.NewProc(s), "/bin": proc.NewBin(set)} {
		if err := ns.Mount(t.Context(), vfs.Mount{Path: path, FS: fs}); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	p, err := s.NewProcess(proc.Root{Args: []string{"sh", "-c", "mkdir -p /tmp /w /etc; cd /w\n" + script}, Cred: vfs.Cred{Umask: 0o022}, Env: []string{"PATH=/bin", "LC_ALL=C.UTF-8", "TZ=UTC0", "HOME=/w", "TERM=xterm"},
		Files: map[int]vfs.File{0: proc.NewInput(strings.NewReader("standard input\n"), false), 1: s.NewOutput(&out, false), 2: s.NewOutput(&out, false)}})
	if err != nil {
		t.Fatal(err)
	}
	p.Start(shell.New(true))
	select {
	case <-p.Done():
	case <-time.After(30 * time.Second):
		p.Post(proc.SIGKILL)
		return "doesn't end", -1
	}
	return out.String(), p.Status()
}

func (r *row) passes(out string, status int) bool {
	out = strings.TrimSuffix(out, "\n")
	if status != r.status {
		return false
	}
	if r.pattern {
		ok, err := regexp.MatchString(r.want, out)
		return ok && err == nil
	}
	return out == strings.TrimSuffix(r.want, "\n")
}

func TestUtilities(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(intro)
	list := parse(t, table)
	there, rows, known := 0, 0, 0
	var body, absent strings.Builder
	for _, u := range list {
		if u.absent != "" {
			out, status := run(t, "command -v "+u.name)
			if status == 0 {
				t.Errorf("%s is there (%s), but the table says that it isn't", u.name, out)
			}
			fmt.Fprintf(&absent, "| `%s` | %s |\n", u.name, u.absent)
			continue
		}
		there++
		fmt.Fprintf(&body, "\n### %s\n\n| used | |\n|-|-|\n", u.name)
		for _, r := range u.rows {
			rows++
			out, status := run(t, r.script)
			ok := r.passes(out, status)
			switch {
			case ok && r.missing != "":
				t.Errorf("%s %s: passes, though the table says: %s", u.name, r.feature, r.missing)
			case !ok && r.missing == "":
				t.Errorf("%s %s: %s\n got [%d] %q\nwant [%d] %q", u.name, r.feature, r.script, status, out, r.status, r.want)
			}
			mark := "conforms"
			if r.missing != "" {
				known++
				mark = "**differs**: " + r.missing
			}
			fmt.Fprintf(&body, "| `%s` | %s |\n", strings.ReplaceAll(r.feature, "|", "\\|"), mark)
		}
	}
	fmt.Fprintf(&doc, "%d utilities are there, %d are not. %d uses are tested, of which %d are known to differ.\n\n## Not there\n\n| utility | why |\n|-|-|\n%s\n## Option by option\n%s", there, len(list)-there, rows, known, absent.String(), body.String())
	if *update {
		if err := os.WriteFile(document, []byte(doc.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(document)
	if err != nil || string(have) != doc.String() {
		t.Errorf("docs/posix.md isn't what the table says (%v): go test ./test/posix -update", err)
	}
}

const intro = `# Conformance to POSIX.1-2017

The Shell and Utilities volume (XCU) of POSIX.1-2017, utility by utility and option by option, in a userspace sandbox. This
document is written by ` + "`make posix`" + ` from the tests in test/posix; each row is a script that runs there and whose output and
exit status are compared with what the standard says.

`
