package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/signer"

	"agentrun.dev/access"
	"agentrun.dev/blob"
	bmemory "agentrun.dev/blob/memory"
	"agentrun.dev/bucket"
	"agentrun.dev/kv/memory"
)

const (
	rootID     = "ROOTEXAMPLE"
	rootSecret = "rootsecretexample0123456789"
)

// server is a store behind the handler, with a root key.
type server struct {
	t     *testing.T
	store *bucket.Store
	keys  *access.Keys
	url   string
	http  *httptest.Server
	now   func() time.Time
}

type setup struct {
	blobs   blob.Store
	options Options
}

func start(t *testing.T) *server { return startWith(t, setup{}) }

func startWith(t *testing.T, o setup) *server {
	t.Helper()
	s := &server{t: t, now: time.Now}
	if o.blobs == nil {
		o.blobs = bmemory.New(bmemory.Options{})
	}
	kv := memory.New()
	var err error
	if s.store, err = bucket.Open(context.Background(), bucket.Options{KV: kv, Blobs: o.blobs}); err != nil {
		t.Fatal(err)
	}
	if s.keys, err = access.New(access.Options{KV: kv, MasterKey: bytes.Repeat([]byte{1}, 32), RootID: rootID, RootSecret: rootSecret}); err != nil {
		t.Fatal(err)
	}
	o.options.Now = func() time.Time { return s.now() }
	s.http = httptest.NewServer(New(s.store, s.keys, o.options))
	s.url = s.http.URL
	t.Cleanup(func() {
		s.http.Close()
		if err := s.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// client returns minio-go's client for a key.
func (s *server) client(id, secret string) *minio.Core {
	s.t.Helper()
	c, err := minio.NewCore(strings.TrimPrefix(s.url, "http://"), &minio.Options{Creds: credentials.NewStaticV4(id, secret, ""), Region: "us-east-1", TrailingHeaders: true})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *server) root() *minio.Core { return s.client(rootID, rootSecret) }

// req is a request by hand. Body's hash is signed unless a header says what to sign.
type req struct {
	method, path string
	header       map[string]string
	body         string
	id, secret   string // the root key if empty
	anonymous    bool
}

// answer is a response, read whole.
type answer struct {
	status int
	header http.Header
	body   string
	code   string // of an error document
}

func (s *server) do(q req) answer {
	s.t.Helper()
	r := s.request(q)
	resp, err := s.http.Client().Transport.RoundTrip(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", q.method, q.path, err)
	}
	return s.read(resp)
}

func (s *server) read(resp *http.Response) answer {
	s.t.Helper()
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, body: string(data)}
	var doc struct{ Code string }
	if xml.Unmarshal(data, &doc) == nil {
		a.code = doc.Code
	}
	return a
}

func (s *server) request(q req) *http.Request {
	s.t.Helper()
	if q.method == "" {
		q.method = "GET"
	}
	r, err := http.NewRequest(q.method, s.url+q.path, strings.NewReader(q.body))
	if err != nil {
		s.t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(q.body))
	r.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:]))
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	if q.anonymous {
		return r
	}
	if q.id == "" {
		q.id, q.secret = rootID, rootSecret
	}
	return signer.SignV4(*r, q.id, q.secret, "", "us-east-1")
}

// must fails the test unless the answer has the status.
func (s *server) must(status int, q req) answer {
	s.t.Helper()
	a := s.do(q)
	if a.status != status {
		s.t.Fatalf("%s %s: status %d, want %d: %s", q.method, q.path, a.status, status, a.body)
	}
	return a
}

// fails checks the code and status of an error.
func (s *server) fails(status int, code string, q req) answer {
	s.t.Helper()
	a := s.do(q)
	if a.status != status || a.code != code {
		s.t.Errorf("%s %s: %d %s, want %d %s: %s", q.method, q.path, a.status, a.code, status, code, a.body)
	}
	return a
}

func (s *server) mkBucket(name string) {
	s.t.Helper()
	s.must(200, req{method: "PUT", path: "/" + name})
}

func (s *server) put(path, body string) {
	s.t.Helper()
	s.must(200, req{method: "PUT", path: path, body: body})
}

// count returns how many objects a bucket holds.
func (s *server) count(name string) uint64 {
	s.t.Helper()
	info, err := s.store.Info(context.Background(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return info.Objects
}

// signHost signs a request whose Host isn't its URL's.
func signHost(r *http.Request) *http.Request {
	return signer.SignV4(*r, rootID, rootSecret, "", "auto")
}

func newForm(w io.Writer) *multipart.Writer { return multipart.NewWriter(w) }
