package e2b

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"agentrun.dev/test/harness"
)

// notServed are methods that no step is about, by the name that they have in JavaScript, and why.
var notServed = map[string]string{
	"Sandbox.getMcpToken":               "needs E2B's MCP gateway, which isn't in the sandbox; `agentrun mcp` serves MCP",
	"Template.addMcpServer":             "needs E2B's MCP gateway, which isn't in the sandbox; `agentrun mcp` serves MCP",
	"Template.betaDevContainerPrebuild": "needs E2B's dev container template",
	"Template.betaSetDevContainerStart": "needs E2B's dev container template",
	"Template.fromImage":                "images of registries need an engine for them; the base image is there",
	"Template.fromAWSRegistry":          "images of registries need an engine for them; the base image is there",
	"Template.fromGCPRegistry":          "images of registries need an engine for them; the base image is there",
	"Template.fromDebianImage":          "images of registries need an engine for them; the base image is there",
	"Template.fromUbuntuImage":          "images of registries need an engine for them; the base image is there",
	"Template.fromFedoraImage":          "images of registries need an engine for them; the base image is there",
	"Template.fromAlpineImage":          "images of registries need an engine for them; the base image is there",
	"Template.fromArchImage":            "images of registries need an engine for them; the base image is there",
	"Template.fromPythonImage":          "images of registries need an engine for them; the base image is there",
	"Template.fromNodeImage":            "images of registries need an engine for them; the base image is there",
	"Template.fromBunImage":             "images of registries need an engine for them; the base image is there",
	"Template.aptInstall":               "the base image has no apt; runs as a command where an image has it",
	"Template.bunInstall":               "the base image has no bun; runs as a command where an image has it",
	"Template.npmInstall":               "runs npm, which wants the network that a build's policy allows",
	"Template.pipInstall":               "runs pip, which wants the network that a build's policy allows",
	"Template.gitClone":                 "runs git, which wants the network that a build's policy allows",
}

// outside tells whether a method is one of notServed, and why.
func outside(language, method string) (why string, ok bool) {
	for name, why := range notServed {
		if language == "py" {
			name = snake(name)
		}
		if name == method {
			return why, true
		}
	}
	return "", false
}

// snake is how Python writes a method's name.
func snake(name string) string {
	class, method, _ := strings.Cut(name, ".")
	method = strings.ReplaceAll(strings.ReplaceAll(method, "AWS", "Aws"), "GCP", "Gcp")
	var b strings.Builder
	for _, r := range method {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return class + "." + b.String()
}

// begins is the line of docs/e2b.md after which its tables stand.
const begins = "<!-- What follows is written by `go test ./test/e2b -update`. -->\n"

// checkDocument compares the tables of docs/e2b.md with what was found, or writes them.
func checkDocument(t *testing.T, reports []*report, open openSteps) {
	t.Helper()
	file := filepath.Join(harness.Root(), "docs", "e2b.md")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(old), begins)
	if !ok {
		t.Fatalf("docs/e2b.md has no line %q", begins)
	}
	text := head + begins + tables(reports, open)
	if text == string(old) || t.Failed() && !*update {
		return // a failed run has nothing to say about the document
	}
	if !*update {
		t.Errorf("docs/e2b.md isn't what the runs found: run go test ./test/e2b -update")
		return
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tables writes the state of every method, a table for each language.
func tables(reports []*report, open openSteps) string {
	var b strings.Builder
	for _, language := range []struct{ key, title, name string }{{"js", "JavaScript and TypeScript", "npm"}, {"py", "Python", "PyPI"}} {
		var columns []int
		for i, c := range clients {
			if c.language == language.key {
				columns = append(columns, i)
			}
		}
		slices.SortFunc(columns, func(i, j int) int { return strings.Compare(order(clients[i]), order(clients[j])) })
		fmt.Fprintf(&b, "\n## %s\n\n| method |", language.title)
		for _, i := range columns {
			fmt.Fprintf(&b, " %s |", heading(clients[i], reports[i]))
		}
		b.WriteString(" what the steps look at |\n|-|" + strings.Repeat("-|", len(columns)+1) + "\n")
		steps := 0
		for _, m := range methods(columns, reports) {
			fmt.Fprintf(&b, "| `%s` |", m)
			aspects := map[string]bool{}
			for _, i := range columns {
				fmt.Fprintf(&b, " %s |", state(clients[i], reports[i], m, open, aspects))
			}
			fmt.Fprintf(&b, " %s |\n", remarks(language.key, m, columns, open, aspects))
		}
		for _, i := range columns {
			steps += len(reports[i].Steps)
		}
		fmt.Fprintf(&b, "\n%d steps in these columns.\n", steps)
	}
	return b.String()
}

func order(c client) string {
	return regexp.MustCompile(`.*-(old|new)(-async)?`).ReplaceAllStringFunc(c.String(), func(s string) string {
		return strings.NewReplacer("old", "1", "new", "2").Replace(s)
	})
}

func heading(c client, r *report) string {
	if c.async {
		return r.Version + " async"
	}
	return r.Version
}

// methods are those that any version has, and what else steps are about.
func methods(columns []int, reports []*report) []string {
	found := map[string]bool{}
	for _, i := range columns {
		for _, m := range reports[i].Surface {
			found[m] = true
		}
		for _, s := range reports[i].Steps {
			m, _, _ := strings.Cut(s.Step, ":")
			found[m] = true
		}
	}
	var out []string
	for m := range found {
		out = append(out, m)
	}
	slices.Sort(out)
	return out
}

// state is a method's state in one version. What the steps look at besides the method itself is added to aspects.
func state(c client, r *report, method string, open openSteps, aspects map[string]bool) string {
	works, fails := 0, 0
	for _, s := range r.Steps {
		m, aspect, _ := strings.Cut(s.Step, ": ")
		if m != method {
			continue
		}
		if aspect != "" {
			aspects[aspect] = true
		}
		if _, _, is := open.find(c, s.Step); is {
			fails++
		} else {
			works++
		}
	}
	switch {
	case works > 0 && fails > 0:
		return "partly"
	case works > 0:
		return "yes"
	case fails > 0:
		return "not yet"
	case slices.Contains(r.Surface, method):
		if _, out := outside(c.language, method); !out {
			return "not tried"
		}
		return "no"
	}
	return "–"
}

// remarks are a method's aspects, with what is open, or why it isn't served.
func remarks(language, method string, columns []int, open openSteps, aspects map[string]bool) string {
	if why, ok := outside(language, method); ok && len(aspects) == 0 {
		return why
	}
	var out []string
	for a := range aspects {
		out = append(out, a)
	}
	slices.Sort(out)
	for _, step := range append([]string{method}, prefixed(method+": ", out)...) {
		for _, i := range columns {
			if _, why, is := open.find(clients[i], step); is && why != "" {
				note := "open: " + strings.TrimPrefix(strings.TrimPrefix(step, method), ": ") + " (" + why + ")"
				if !slices.Contains(out, note) {
					out = append(out, note)
				}
			}
		}
	}
	return strings.Join(out, ", ")
}

func prefixed(prefix string, list []string) (out []string) {
	for _, s := range list {
		out = append(out, prefix+s)
	}
	return out
}
