package envd

import (
	"net/http"
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// FuzzPath holds paths of clients to what node.Files may be asked for.
func FuzzPath(f *testing.F) {
	for _, p := range []string{"", "a", "~", "~/x", "~bob", "/", "//x/../..", "../../../etc", "a\x00", "\xff", strings.Repeat("x/", 3000)} {
		f.Add(p)
	}
	u := user{name: "user", home: "/home/user", dir: "/work"}
	f.Fuzz(func(t *testing.T, p string) {
		got, err := u.path(p)
		if err != nil {
			return
		}
		if !path.IsAbs(got) || path.Clean(got) != got || len(got) > maxPath || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			t.Errorf("%q: %q", p, got)
		}
	})
}

// FuzzRange holds ranges to the file.
func FuzzRange(f *testing.F) {
	for _, r := range []string{"", "bytes=0-", "bytes=-5", "bytes=5-2", "bytes=9223372036854775807-", "bytes=-9223372036854775808", "bytes=1-2,3-4", "bytes=18446744073709551615-"} {
		f.Add(r, int64(10))
	}
	f.Fuzz(func(t *testing.T, r string, size int64) {
		if size <= 0 {
			return
		}
		from, length, ok := byteRange(r, size)
		if ok && (from < 0 || length <= 0 || from > size || length > size-from) {
			t.Errorf("%q of %d: %d, %d", r, size, from, length)
		}
		wantsGzip(r)
		typeOfFile(r)
		clip(r)
		alive(http.Header{"Keepalive-Ping-Interval": {r}})
		_, _ = timeLimit(http.Header{"Connect-Timeout-Ms": {r}})
		_, _ = metadataOf(http.Header{"X-Metadata-" + r: {r}})
	})
}

// FuzzChanges compares what two looks saw: every difference is told, and nothing else.
func FuzzChanges(f *testing.F) {
	f.Add("abc", "abd")
	f.Add("a1b2c1", "a2b2d1")
	f.Fuzz(func(t *testing.T, a, b string) {
		look := func(s string) map[string]seen {
			m := map[string]seen{}
			for i := 0; i+1 < len(s); i += 2 {
				m["/"+string(s[i]%26+'a')] = seen{kind: "fds"[s[i+1]%3], size: int64(s[i+1] % 5)}
			}
			return m
		}
		before, after := look(a), look(b)
		list := changes(before, after)
		told := map[string]bool{}
		for _, c := range list {
			told[c.path] = true
			_, was := before[c.path]
			_, is := after[c.path]
			if !was && !is {
				t.Errorf("%v was never there", c)
			}
		}
		for p, s := range before {
			if n, ok := after[p]; told[p] != (!ok || n != s && (n.kind != s.kind || n.kind == 'f')) {
				t.Errorf("%s: %v, %v: told %v", p, s, n, told[p])
			}
		}
		for p := range after {
			if _, ok := before[p]; !ok && !told[p] {
				t.Errorf("%s is new", p)
			}
		}
	})
}

func TestGzipOnly(t *testing.T) {
	for accept, want := range map[string]bool{"": false, "gzip": true, "GZIP;q=1.0": true, "gzip, deflate": false, "gzip;q=0": false, "gzip; q=0.5": true, "identity;q=0, gzip": true,
		"*": false, "br": false, "gzip;q=0.0": false, "gzip, identity": false} {
		if wantsGzip(accept) != want {
			t.Errorf("%q: %v", accept, !want)
		}
	}
}

func TestStreamsOfASandbox(t *testing.T) {
	var k commands
	for range maxFollowing {
		if err := k.enter("a"); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.enter("a"); !errs.Is(err, errs.Limit) {
		t.Errorf("one more: %v", err)
	}
	if err := k.enter("b"); err != nil {
		t.Errorf("another sandbox: %v", err)
	}
	for range maxFollowing {
		k.leave("a")
	}
	k.leave("b")
	if len(k.open) != 0 {
		t.Errorf("left: %v", k.open)
	}
}

func TestModes(t *testing.T) {
	for want, i := range map[string]api.FileInfo{"-rw-r--r--": {Type: "file", Mode: 0o644}, "drwxr-xr-x": {Type: "directory", Mode: 0o755}, "Lrwxrwxrwx": {Type: "symlink", Mode: 0o777},
		"urwxr-xr-x": {Type: "file", Mode: 0o4755}, "dtrwxrwxrwx": {Type: "directory", Mode: 0o1777}, "?rw-------": {Type: "other", Mode: 0o600}} {
		if got := modeOf(&i).String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
