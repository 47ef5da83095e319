package bucketfs

import (
	"slices"
	"strings"
	"testing"

	"agentrun.dev/vfs"
)

func TestNames(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		part     string
		shadowed bool
		want     []string
	}{
		{"plain", false, []string{"plain"}},
		{"50%", false, []string{"50%"}},
		{"a", true, []string{"a%="}},
		{"", false, []string{"%="}},
		{"", true, []string{"%=%="}},
		{".", false, []string{"%=%2E"}},
		{"..", true, []string{"%=%2E%2E%="}},
		{"a\x00b%", false, []string{"%=a%00b%25"}},
		{"%=", false, []string{"%=%25="}},
		{"a%=", false, []string{"%=a%25="}},
		{"a%=", true, []string{"%=a%25=%="}},
		{"%+x", false, []string{"%=%25+x"}},
		{long, false, []string{"%+" + long[:80], "%+" + long[:80], "%+" + long[:80], "%=" + long[:60]}},
		{long[:255], false, []string{long[:255]}},
		{long[:254], true, []string{"%+" + long[:80], "%+" + long[:80], "%+" + long[:80], "%=" + long[:14] + "%="}},
	} {
		if got := encode(c.part, c.shadowed); !slices.Equal(got, c.want) {
			t.Errorf("%q is shown as %q, want %q", c.part, got, c.want)
		}
		checkRound(t, c.part, c.shadowed)
	}
	for _, name := range []string{"%=plain", "a%=%=", "%+short", "%=%2e", "%=%2E%2E%2E", "%=a%"} {
		if d, ok := decode("", name); ok {
			t.Errorf("%q is read as %+v, but nothing is shown as that", name, d)
		}
	}
}

// checkRound walks the chain of names back to the part.
func checkRound(t *testing.T, part string, shadowed bool) {
	t.Helper()
	begun := ""
	chain := encode(part, shadowed)
	for i, name := range chain {
		if name == "" || name == "." || name == ".." || len(name) > vfs.MaxName || strings.ContainsAny(name, "/\x00") {
			t.Fatalf("%q is shown as %q, which is no name", part, name)
		}
		d, ok := decode(begun, name)
		if !ok {
			t.Fatalf("%q is shown as %q, which is read as nothing", part, chain)
		}
		if last := i == len(chain)-1; d.chunk == last || last && (d.part != part || d.shadowed != shadowed) {
			t.Fatalf("%q is shown as %q, which is read as %+v", part, chain, d)
		}
		begun = d.part
	}
}

func FuzzNames(f *testing.F) {
	for _, s := range []string{"", "a", ".", "..", "%", "%=", "%+", "%=%25", "a%=", "\x00", "%=%=", strings.Repeat("%", 256), strings.Repeat("long", 200)} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, part string, shadowed bool) {
		if strings.Contains(part, "/") {
			return
		}
		checkRound(t, part, shadowed)
		// A name that is read as something is what that is shown as, so no two names mean the same.
		if part == "" || part == "." || part == ".." || strings.Contains(part, "\x00") || len(part) > vfs.MaxName {
			return // never a name
		}
		if d, ok := decode("", part); ok && !d.chunk {
			if chain := encode(d.part, d.shadowed); len(chain) == 1 && chain[0] != part {
				t.Fatalf("%q is read as %+v, which is shown as %q", part, d, chain)
			}
		}
	})
}
