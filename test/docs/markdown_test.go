package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentrun.dev/test/harness"
)

// document is a Markdown file.
type document struct {
	path   string // from the top of the tree
	lines  []string
	blocks []*block
}

// block is a fenced block, or commands in a comment.
type block struct {
	line int    // of its first line of content, from 0
	lang string // the fence's info string; "hidden" for commands in a comment
	text []string
	skip string // why it can't run, if it can't
	file string // where its text goes instead of being run
}

// markdown returns all documents of the tree: those that git knows or would take, or, without git, all there are.
func markdown(t *testing.T) []*document {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md")
	cmd.Dir = harness.Root()
	var names []string
	if out, err := cmd.Output(); err == nil {
		names = strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	} else {
		top := harness.Root()
		for _, glob := range []string{"*.md", "*/*.md", "*/*/*.md"} {
			found, err := filepath.Glob(filepath.Join(top, glob))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				name, _ := filepath.Rel(top, f)
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	var docs []*document
	for _, name := range slices.Compact(names) {
		if d := read(t, name); d != nil {
			docs = append(docs, d)
		}
	}
	if len(docs) < 5 {
		t.Fatalf("found only %d documents: %q", len(docs), names)
	}
	return docs
}

// read reads a document; one that was deleted but is still known to git is nil.
func read(t *testing.T, name string) *document {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(harness.Root(), name))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	d := &document{path: name, lines: strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")}
	d.parse(t)
	return d
}

const mark = "<!-- test: "

// parse finds the blocks. A mark belongs to the block that follows it.
func (d *document) parse(t *testing.T) {
	t.Helper()
	var skip, file string
	for i := 0; i < len(d.lines); i++ {
		line := d.lines[i]
		switch {
		case strings.HasPrefix(line, mark):
			word, rest, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(line, mark), " -->"), " ")
			switch word {
			case "skip:":
				skip = rest
			case "file":
				file = rest
			case "run":
				end := d.find(t, i, "-->")
				d.blocks = append(d.blocks, &block{line: i + 1, lang: "hidden", text: d.lines[i+1 : end]})
				i = end
			default:
				t.Errorf("%s:%d: no such mark: %s", d.path, i+1, word)
			}
		case strings.HasPrefix(line, "```"):
			end := d.find(t, i, "```")
			d.blocks = append(d.blocks, &block{line: i + 1, lang: strings.TrimLeft(line, "`"), text: d.lines[i+1 : end], skip: skip, file: file})
			skip, file = "", ""
			i = end
		}
	}
}

// find returns the line that ends what begins at a line.
func (d *document) find(t *testing.T, from int, end string) int {
	t.Helper()
	for i := from + 1; i < len(d.lines); i++ {
		if d.lines[i] == end {
			return i
		}
	}
	t.Fatalf("%s:%d: no %s ends this", d.path, from+1, end)
	return 0
}

// prose returns the lines outside of blocks and comments, the others empty.
func (d *document) prose() []string {
	out := slices.Clone(d.lines)
	for _, b := range d.blocks {
		for i := range b.text {
			out[b.line+i] = ""
		}
	}
	return out
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// code returns every code span of the prose and every line of the blocks of commands, with its line number from 1.
func (d *document) code(f func(line int, text string)) {
	for i, line := range d.prose() {
		for _, m := range codeSpan.FindAllStringSubmatch(line, -1) {
			f(i+1, m[1])
		}
	}
	for _, b := range d.blocks {
		for i, line := range b.text {
			switch b.lang {
			case "sh", "hidden":
				f(b.line+i+1, line)
			case "console":
				if rest, ok := strings.CutPrefix(line, "$ "); ok {
					f(b.line+i+1, rest)
				}
			}
		}
	}
}
