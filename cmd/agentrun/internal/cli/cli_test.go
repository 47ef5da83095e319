package cli

import (
	"os/exec"
	"strings"
	"testing"
)

func TestSize(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 10189: "10.0 KiB", 102400: "100 KiB", 1<<20 - 1: "1.0 MiB",
		1 << 20: "1.0 MiB", 1500 << 20: "1.5 GiB", 1 << 40: "1.0 TiB", 1<<64 - 1: "16.0 EiB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[uint64]string{0: "0 files", 1: "1 file", 999: "999 files", 1000: "1,000 files", 1234567: "1,234,567 files"} {
		if got := count(n, "file"); got != want {
			t.Errorf("count(%d) = %q, want %q", n, got, want)
		}
	}
}

// TestPrintable checks that no key can act on a terminal or look like several lines.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{"a/b c": "a/b c", "ü→": "ü→", "": "", "a\nb": `"a\nb"`, "\x1b[2J": `"\x1b[2J"`, "\xff": `"\xff"`,
		"\u009b31m": `"\u009b31m"`, "a\u202eb": `"a\u202eb"`, "tab\t": `"tab\t"`} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestLifetime(t *testing.T) {
	for in, want := range map[string]int64{"": 0, "1s": 1, "90m": 5400, "24h": 86400, "7d": 604800, "1.5d": 129600, "1500ms": 1} {
		if got, err := parseLifetime("--expires", in); err != nil || got != want {
			t.Errorf("%q: %d, %v", in, got, err)
		}
	}
	for _, in := range []string{"0", "0s", "-1h", "-1d", "d", "soon", "999ms", "1e9d", "NaNd", "7 d"} {
		if got, err := parseLifetime("--expires", in); err == nil {
			t.Errorf("%q is %d", in, got)
		}
	}
}

// FuzzQuote checks the quoting of 'env' against the shell itself.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "plain", "a b", "it's", `"$HOME"`, "`x`", `\`, "a\nb", "~", "*", "!", "ü", "-n", "'", "''", "#", "=x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsRune(s, 0) || len(s) > 1000 {
			t.Skip()
		}
		out, err := exec.Command("sh", "-c", "x="+quotePOSIX(s)+`; printf %s "$x"`).CombinedOutput()
		if err != nil || string(out) != s {
			t.Errorf("%q came out as %q, %v", s, out, err)
		}
	})
}

func TestPlaces(t *testing.T) {
	for in, want := range map[string]place{
		"a/b": {path: "a/b"}, "-": {path: "-"}, "s3://b": {bucket: "b"}, "s3://b/": {bucket: "b"}, "s3://b/k/l": {bucket: "b", key: "k/l"},
		"s3://b@5/k": {bucket: "b", at: "5", key: "k"}, "s3://b//k@x": {bucket: "b", key: "/k@x"},
		"s3://b@2026-11-21T10:00:00Z/k": {bucket: "b", at: "2026-11-21T10:00:00Z", key: "k"},
	} {
		if got, err := parsePlace(in); err != nil || got != want {
			t.Errorf("%q: %+v, %v", in, got, err)
		}
	}
}
