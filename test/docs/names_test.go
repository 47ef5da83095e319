package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentrun.dev/test/harness"
)

// commands reads from docs/cli.md, which is generated, what commands there are and which flags each has.
func commands(t *testing.T) map[string]map[string]bool {
	t.Helper()
	d := read(t, "docs/cli.md")
	if d == nil {
		t.Fatal("docs/cli.md isn't there")
	}
	all, everywhere := map[string]map[string]bool{}, map[string]bool{"--help": true, "-h": true, "--version": true, "-v": true}
	flag := regexp.MustCompile("`(--?[a-z0-9-]+)")
	current := everywhere
	for _, line := range d.lines {
		switch {
		case strings.HasPrefix(line, "## agentrun "):
			current = map[string]bool{}
			all[strings.TrimPrefix(line, "## agentrun ")] = current
		case strings.HasPrefix(line, "## "):
			current = everywhere
		case strings.HasPrefix(line, "| `-"):
			cell, _, _ := strings.Cut(line[2:], " | ")
			for _, m := range flag.FindAllStringSubmatch(cell, -1) {
				current[m[1]] = true
			}
		}
	}
	if len(all) < 15 || len(everywhere) < 6 {
		t.Fatalf("docs/cli.md has only %d commands, %d flags for all", len(all), len(everywhere))
	}
	for _, flags := range all {
		for f := range everywhere {
			flags[f] = true
		}
	}
	return all
}

var (
	invocation = regexp.MustCompile(`(?:^|[\s('"$(=])(?:bin/)?agentrun((?: [^\s|;&<>)'"]+)*)`)
	longFlag   = regexp.MustCompile(`^--[a-z][a-z0-9-]*`)
)

// TestCommands checks every command line of the documents that calls agentrun: the command is there, and so are its flags.
func TestCommands(t *testing.T) {
	all := commands(t)
	seen := 0
	for _, d := range markdown(t) {
		d.code(func(line int, text string) {
			for _, m := range invocation.FindAllStringSubmatch(text, -1) {
				words := strings.Fields(m[1])
				for len(words) > 0 && strings.HasPrefix(words[0], "-") { // flags of all commands come first
					words = words[1:]
				}
				if len(words) == 0 || !regexp.MustCompile(`^[a-z]+$`).MatchString(words[0]) {
					continue
				}
				seen++
				name := words[0]
				if name == "help" || name == "completion" { // cobra's own
					continue
				}
				if len(words) > 1 && all[name+" "+words[1]] != nil {
					name += " " + words[1]
				}
				flags, ok := all[name]
				if !ok {
					t.Errorf("%s:%d: no such command: agentrun %s", d.path, line, name)
					continue
				}
				for _, w := range words[1:] {
					if w == "--" || w == "#" {
						break
					}
					if f := longFlag.FindString(w); f != "" && !flags[f] {
						t.Errorf("%s:%d: agentrun %s has no flag %s", d.path, line, name, f)
					}
				}
			}
		})
	}
	if seen < 30 {
		t.Errorf("found only %d command lines", seen)
	}
}

// TestTargets checks that every target of make that a document names is in the Makefile.
func TestTargets(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(harness.Root(), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9]+):`).FindAllStringSubmatch(string(b), -1) {
		targets[m[1]] = true
	}
	call := regexp.MustCompile(`^make ([a-z0-9]+)`)
	for _, d := range markdown(t) {
		d.code(func(line int, text string) {
			if m := call.FindStringSubmatch(text); m != nil && !targets[m[1]] {
				t.Errorf("%s:%d: no such target: make %s", d.path, line, m[1])
			}
		})
	}
}

// TestFiles checks that every file and folder of the tree that the prose names is there: paths that begin at the top, and
// names of source files.
func TestFiles(t *testing.T) {
	top := map[string]bool{}
	names := map[string]bool{}
	err := filepath.WalkDir(harness.Root(), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(harness.Root(), path)
		if e.IsDir() && (rel == ".git" || rel == "bin" || e.Name() == "node_modules") {
			return fs.SkipDir
		}
		if e.IsDir() && filepath.Dir(rel) == "." {
			top[rel] = true
		}
		names[e.Name()] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	path := regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*/?$`)
	source := regexp.MustCompile(`^[A-Za-z0-9_-]+\.(go|md|sh)$`)
	seen := 0
	for _, d := range markdown(t) {
		for i, line := range d.prose() {
			for _, m := range codeSpan.FindAllStringSubmatch(line, -1) {
				text := m[1]
				if !path.MatchString(text) {
					continue
				}
				first, _, nested := strings.Cut(text, "/")
				switch {
				case nested && top[first]:
					seen++
					if _, err := os.Stat(filepath.Join(harness.Root(), text)); err != nil {
						t.Errorf("%s:%d: there is no %s", d.path, i+1, text)
					}
				case source.MatchString(text):
					seen++
					if !names[text] {
						t.Errorf("%s:%d: there is no file %s in the tree", d.path, i+1, text)
					}
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("found only %d names of files", seen)
	}
}
