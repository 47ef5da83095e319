package access

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/access.md's table and testdata/policy.txt anew")

var (
	ranks     = []rank{noRole, viewer, user, operator, admin}
	relations = []bond{{relation: notOne}, {relation: owned}, {delegated, "bot"}, {shownTeam, "red"}, {relation: shownAll}, {relation: unrelated}}
	relNames  = map[relation]string{notOne: "none", owned: "own", delegated: "delegated", shownTeam: "team", shownAll: "all", unrelated: "other"}
)

// TestPolicyWhole compares every verb, kind, role and relation with a list that people review.
func TestPolicyWhole(t *testing.T) {
	var b bytes.Buffer
	for _, p := range policy {
		kind, _, _ := strings.Cut(string(p.verb), ".")
		for _, r := range ranks {
			for _, rel := range relations {
				d := decide(r, p.verb, kind, rel)
				word := "hidden"
				if d.allowed {
					word = "allowed"
				} else if d.seen {
					word = "denied"
				}
				fmt.Fprintf(&b, "%-20s %-8s %-9s %-7s %s\n", p.verb, r, relNames[rel.relation], word, d.rule)
			}
		}
	}
	golden(t, "testdata/policy.txt", b.Bytes())
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			t.Fatalf("%s isn't current from line %d on: look at what changed, then go test ./access -update", file, i+1)
		}
	}
}

// TestPolicyDocs sees that the manual has the table.
func TestPolicyDocs(t *testing.T) {
	const file, begin, end = "../docs/access.md", "<!-- policy -->\n", "<!-- /policy -->"
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(doc), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("no place for the table")
	}
	golden(t, file, []byte(head+begin+Policy()+end+tail))
}

// verbs reads the constants of type Verb from the source.
func verbs(t *testing.T) (found []Verb) {
	f, err := parser.ParseFile(token.NewFileSet(), "caller.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.ValueSpec)
		if !ok || s.Type == nil || s.Type.(*ast.Ident).Name != "Verb" {
			return true
		}
		text, err := strconv.Unquote(s.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, Verb(text))
		return true
	})
	if len(found) < 30 {
		t.Fatalf("only %d verbs found", len(found))
	}
	return found
}

// TestPolicyLaws holds for any table worth having.
func TestPolicyLaws(t *testing.T) {
	seen := map[Verb]bool{}
	for _, p := range policy {
		if seen[p.verb] {
			t.Errorf("%s twice", p.verb)
		}
		seen[p.verb] = true
		kind, _, _ := strings.Cut(string(p.verb), ".")
		if sight(kind) == nil {
			t.Errorf("nothing says who sees a %s", kind)
		}
		for _, rel := range relations {
			before := decision{}
			for _, r := range ranks {
				d := decide(r, p.verb, kind, rel)
				name := fmt.Sprint(p.verb, " ", r, " ", relNames[rel.relation])
				switch {
				case before.allowed && !d.allowed || before.seen && !d.seen:
					t.Error(name, ": a higher role has less")
				case d.allowed && !d.seen:
					t.Error(name, ": allowed, but not seen")
				case r == noRole && d.allowed:
					t.Error(name, ": allowed to nobody")
				case r == admin && !d.allowed:
					t.Error(name, ": not for administrators")
				case r == viewer && d.allowed && !p.verb.Looks() && p.verb != KeyChange:
					t.Error(name, ": a viewer changes something")
				case d.rule == "":
					t.Error(name, ": no rule")
				}
				before = d
			}
		}
		// The closer, the more.
		for _, r := range ranks {
			if decide(r, p.verb, kind, bond{relation: unrelated}).allowed && !decide(r, p.verb, kind, bond{relation: owned}).allowed {
				t.Errorf("%s: %s may with others' things, but not with its own", p.verb, r)
			}
		}
	}
	for _, v := range verbs(t) {
		if !seen[v] {
			t.Errorf("the policy says nothing of %s", v)
		}
	}
	if d := decide(admin, "sandbox.fly", "sandbox", bond{relation: owned}); d.allowed || d.rule != "no verb sandbox.fly" {
		t.Errorf("an unknown verb: %+v", d)
	}
}
