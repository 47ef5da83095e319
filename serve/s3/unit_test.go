package s3

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentrun.dev/blob/dir"
	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/serve/s3/fault"
)

func TestParseRange(t *testing.T) {
	for _, tc := range []struct {
		text            string
		size, off, n    int64
		ok, satisfiable bool
	}{
		{"bytes=0-9", 100, 0, 10, true, true}, {"bytes=90-", 100, 90, 10, true, true}, {"bytes=-10", 100, 90, 10, true, true},
		{"bytes=0-999", 100, 0, 100, true, true}, {"bytes=-999", 100, 0, 100, true, true}, {"bytes=100-", 100, 0, 0, true, false},
		{"bytes=-0", 100, 0, 0, true, false}, {"bytes=9-0", 100, 0, 0, false, false}, {"bytes=a-b", 100, 0, 0, false, false},
		{"bytes=0-1,3-4", 100, 0, 0, false, false}, {"chars=0-1", 100, 0, 0, false, false}, {"bytes=", 100, 0, 0, false, false},
		{"bytes=-", 100, 0, 0, false, false}, {"bytes=0-", 0, 0, 0, true, false}, {"bytes=-5", 0, 0, 0, false, false},
		{"bytes=99999999999999999999-", 100, 0, 0, true, false}, {"bytes=0-99999999999999999999", 100, 0, 100, true, true},
	} {
		off, n, ok, sat := parseRange(tc.text, tc.size)
		if ok != tc.ok || sat != tc.satisfiable || sat && (off != tc.off || n != tc.n) {
			t.Errorf("%s of %d: %d+%d %v %v", tc.text, tc.size, off, n, ok, sat)
		}
	}
}

// TestAlgorithms compares with values that AWS' own clients send.
func TestAlgorithms(t *testing.T) {
	for name, want := range map[string]string{"CRC32": "MSpqpg==", "CRC32C": "5if0QQ==", "CRC64NVME": "SmzZ/LTp1CA=", "SHA1": "L7XhNBn8iSRoZeejJPR27GJOh0A=",
		"SHA256": "fRpUEnsiJQL1t5tfsIAwYRUqRPkrN+I8ZSe69mXU2po=", "MD5": "esZsDxSN6VGbi9JkMSxNZA==", "XXHASH64": "GGCUDikCgi0=", "XXHASH3": "WkDcP9RMBS8=",
		"XXHASH128": "Kq/YOGmlnDE/55jA7aptxg==", "SHA512": "1xakGIVptoqxtt+sF45XARTN8Oo6HMDjFIbD5BJBvGp2Qk6MN6sm8Jb8he+YhsjLY0GH9P3f9kX7CZ8f9UxrjA=="} {
		a := findAlgorithm(strings.ToLower(name))
		for range 2 { // the second time with a hash that was used before
			h := a.get()
			io.WriteString(h, "abcdefg")
			if got := encodeSum(h.Sum(nil)); got != want || !a.valid(got) || len(h.Sum(nil)) != a.size {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
			a.put(h)
		}
	}
}

func TestCombineCRC(t *testing.T) {
	data := randomBytes(1, 300_000)
	for _, a := range algorithms {
		if !a.full {
			continue
		}
		sum := func(b []byte) string { h := a.make(); h.Write(b); return encodeSum(h.Sum(nil)) }
		for _, cuts := range [][]int{{0, 300_000}, {0, 1, 300_000}, {0, 100, 100, 65_536, 299_999, 300_000}} {
			var values []string
			var sizes []int64
			for i := 1; i < len(cuts); i++ {
				values = append(values, sum(data[cuts[i-1]:cuts[i]]))
				sizes = append(sizes, int64(cuts[i]-cuts[i-1]))
			}
			if got, ok := a.combine(values, sizes); !ok || got != sum(data) {
				t.Errorf("%s at %v: %s, want %s", a.name, cuts, got, sum(data))
			}
		}
	}
	if crc32.IEEE != 0xedb88320 {
		t.Error("polynomials aren't reflected")
	}
}

func TestKinds(t *testing.T) {
	for kind, want := range map[errs.Kind]string{errs.Other: "InternalError", errs.NoSpace: "InsufficientStorage", errs.Corrupt: "InternalError", errs.Limit: "SlowDown",
		errs.Unavailable: "SlowDown", errs.Denied: "AccessDenied", errs.Precondition: "PreconditionFailed", errs.TooLarge: "EntityTooLarge", errs.Unsupported: "NotImplemented"} {
		if f := toFault(errs.Msg(kind, "op", "secret thing", "inner details")); f.Code != want {
			t.Errorf("%v: %s", kind, f.Code)
		} else if (kind == errs.Other || kind == errs.Corrupt) && strings.Contains(f.Message, "inner") {
			t.Errorf("%v tells %q", kind, f.Message)
		}
	}
	if f := toFault(errors.Join(errors.New("x"), fault.NoSuchKey)); f.Code != "NoSuchKey" {
		t.Error(f)
	}
}

func FuzzXML(f *testing.F) {
	f.Add([]byte(`<Delete><Object><Key>a</Key><VersionId>null</VersionId></Object><Quiet>true</Quiet></Delete>`))
	f.Add([]byte(`<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"x"</ETag></Part></CompleteMultipartUpload>`))
	f.Add([]byte(`<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>`))
	f.Add([]byte(`<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>`))
	f.Add([]byte(`<!DOCTYPE x [<!ENTITY a "b">]><Delete>&a;</Delete>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var d deleteRequest
		if decodeXML(data, &d) == nil && d.XMLName.Local != "Delete" {
			t.Fatalf("%q is taken for a Delete", data)
		}
		var c completeRequest
		if decodeXML(data, &c) == nil {
			pickParts(&c, nil, &bucket.Upload{}, false, algorithms[0])
		}
		var tg tagging
		if decodeXML(data, &tg) == nil {
			if tags, err := tg.tags(maxObjectTags, ""); err == nil && len(tags) > maxObjectTags {
				t.Fatal("too many tags")
			}
		}
		var cfg corsConfig
		if decodeXML(data, &cfg) == nil && cfg.check() == nil {
			text, err := cfg.document()
			var again corsConfig
			if err != nil || decodeXML([]byte(text), &again) != nil || len(again.Rules) != len(cfg.Rules) {
				t.Fatalf("rules don't come back from %q", text)
			}
		}
		var a aclRequest
		if decodeXML(data, &a) == nil {
			a.wellFormed()
		}
	})
}

func FuzzNames(f *testing.F) {
	for _, s := range []string{"bucket/key", "/bucket/a%20b?versionId=null", "bytes=0-9", "a=b&c=d", "%", "../x", "a\x00<&>\"'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if name, key, _, err := copySource(s); err == nil && (bucket.CheckName(name) != nil || key == "" || checkKey(key) != nil) {
			t.Fatalf("%q names %q and %q", s, name, key)
		}
		if off, n, ok, sat := parseRange(s, 100); ok && sat && (off < 0 || n < 1 || off+n > 100) {
			t.Fatalf("%q is %d+%d of 100", s, off, n)
		}
		if off, n, err := copyRange(s, 100); err == nil && (off < 0 || off+n > 100) {
			t.Fatalf("%q is %d+%d of 100", s, off, n)
		}
		if tags, err := headerTags(s); err == nil && len(tags) > maxObjectTags {
			t.Fatalf("%q has %d tags", s, len(tags))
		}
		if token, err := readToken(writeToken(s + "x")); err == nil && token != s+"x" {
			t.Fatalf("the token of %q is %q", s+"x", token)
		}
		versionID(s)
		// Whatever a key holds, a document with it stays well formed for XML 1.1's characters.
		var x xmlDoc
		x.text("K", s)
		if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0xfffe }) {
			var got struct {
				K string `xml:",chardata"`
			}
			if err := xml.Unmarshal(x.buf, &got); err != nil || got.K != strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD") && len(got.K) == 0 && s != "" {
				t.Fatalf("%q becomes %q: %v", s, x.buf, err)
			}
		}
	})
}

// zeros yields n bytes that aren't quite zeros.
type zeros struct{ n int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.n == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), z.n))
	for i := range p[:n] {
		p[i] = byte(i)
	}
	z.n -= int64(n)
	return n, nil
}

// TestBoundedMemory streams 400 MB in and out at once with others: the heap must not grow with the object.
func TestBoundedMemory(t *testing.T) {
	blobs, err := dir.Open(t.TempDir(), dir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := startWith(t, setup{blobs: blobs})
	s.mkBucket("bkt")
	const size = 400 << 20
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	base, peak := m.HeapAlloc, atomic.Uint64{}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak.Store(max(peak.Load(), m.HeapAlloc))
			}
		}
	}()
	r := s.request(req{method: "PUT", path: "/bkt/big", header: map[string]string{"X-Amz-Content-Sha256": "UNSIGNED-PAYLOAD"}})
	r.Body, r.ContentLength = io.NopCloser(&zeros{size}), size
	resp, err := s.http.Client().Transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if a := s.read(resp); a.status != 200 {
		t.Fatal(a)
	}
	resp, err = s.http.Client().Transport.RoundTrip(s.request(req{path: "/bkt/big"}))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(err)
	}
	sum := md5.New()
	n, err := io.Copy(sum, resp.Body)
	resp.Body.Close()
	if err != nil || n != size || !strings.Contains(resp.Header.Get("ETag"), hex.EncodeToString(sum.Sum(nil))) {
		t.Fatalf("%d bytes, %v, %x", n, err, sum.Sum(nil))
	}
	close(stop)
	<-done
	if grown := int64(peak.Load()) - int64(base); grown > 64<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}
