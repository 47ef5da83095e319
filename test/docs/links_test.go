package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"agentrun.dev/test/harness"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#{1,6} +(.*?)\s*$`)
)

// anchors returns the names by which a document's headings are linked to, as GitHub makes them.
func (d *document) anchors() map[string]bool {
	out := map[string]bool{}
	for _, line := range d.prose() {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, strings.ReplaceAll(m[1], "`", ""))
		out[name] = true
	}
	return out
}

// TestLinks checks that every relative link leads to a file of the tree and, where it names one, to a heading in it.
func TestLinks(t *testing.T) {
	docs := markdown(t)
	anchors := map[string]map[string]bool{}
	for _, d := range docs {
		anchors[d.path] = d.anchors()
	}
	links := 0
	for _, d := range docs {
		for i, line := range d.prose() {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				target, anchor, _ := strings.Cut(m[1], "#")
				if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
					continue
				}
				links++
				path := d.path
				if target != "" {
					path = filepath.Join(filepath.Dir(d.path), target)
				}
				if _, err := os.Stat(filepath.Join(harness.Root(), path)); err != nil {
					t.Errorf("%s:%d: the link %s leads nowhere", d.path, i+1, m[1])
				} else if known := anchors[path]; anchor != "" && known != nil && !known[anchor] {
					t.Errorf("%s:%d: %s has no heading #%s", d.path, i+1, path, anchor)
				}
			}
		}
	}
	if links < 10 {
		t.Errorf("found only %d links: has the way they are written changed?", links)
	}
}

// maxWidth is how long a line of a document may be, in characters; tables and generated pages need more.
const maxWidth = 160

func TestWidth(t *testing.T) {
	for _, d := range markdown(t) {
		for i, line := range d.lines {
			if n := len([]rune(line)); n > maxWidth && !strings.HasPrefix(line, "|") {
				t.Errorf("%s:%d: %d characters, want %d at most", d.path, i+1, n, maxWidth)
			}
		}
	}
}
