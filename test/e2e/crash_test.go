package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"agentrun.dev/test/harness"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/signer"
)

// crashRounds is how often TestCrash kills the server; `make soak` sets a larger number.
const crashRounds = 4

// TestCrash kills the real process with SIGKILL at random moments under load and starts it again. Whatever was acknowledged
// must be there: every object with its last acknowledged content (or that of the one request that was under way), every
// deletion, every fork with the content that it was made from.
func TestCrash(t *testing.T) {
	if k := harness.Under(t); k != harness.AgentRun {
		t.Skipf("%s doesn't promise this: it runs against AgentRun only", k)
	}
	t.Parallel()
	rounds := crashRounds
	if v := os.Getenv("AGENTRUN_CRASH_ROUNDS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		rounds = n
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := &crash{t: t, data: t.TempDir(), random: rand.New(rand.NewPCG(seed, 0)), forks: map[string]string{}}
	for i := range 8 {
		c.writers = append(c.writers, &crashWriter{name: fmt.Sprint("w", i), random: rand.New(rand.NewPCG(seed, uint64(i)+1)), keys: map[string]*crashKey{}})
	}
	for round := range rounds {
		if !t.Run(fmt.Sprint("round ", round), func(t *testing.T) { c.round(t, round) }) {
			return
		}
	}
	t.Run("fsck", func(t *testing.T) {
		s := harness.StartKind(t, harness.AgentRun, c.data)
		session := harness.NewSession(t, s)
		session.Run(harness.Binary(t), "fsck")
	})
	if c.acknowledged < 20*rounds {
		t.Errorf("only %d writes were acknowledged in %d rounds: this proves little", c.acknowledged, rounds)
	}
}

// crash is the model of what the server must hold.
type crash struct {
	t            *testing.T
	data         string
	random       *rand.Rand
	writers      []*crashWriter
	forks        map[string]string // fork → the marker's content when it was made
	acknowledged int
}

// crashWriter is one client with keys of its own, so that what it knows of them is exact.
type crashWriter struct {
	name         string
	random       *rand.Rand
	keys         map[string]*crashKey
	acknowledged int
}

// crashKey is what a writer knows of a key: nil is absent. While underWay, the content may be either.
type crashKey struct {
	content, pending []byte
	underWay         bool
}

// connect opens a client that doesn't try again, so that one request is one chance.
func (c *crash) connect(t *testing.T, s *harness.Server) *minio.Client {
	t.Helper()
	client, err := minio.New(s.Host(), &minio.Options{Creds: credentials.NewStaticV4(s.AccessKey, s.SecretKey, ""), Region: "us-east-1", MaxRetries: 1})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// round starts the server, checks what earlier rounds have left, and loads it until it is killed.
func (c *crash) round(t *testing.T, round int) {
	s := harness.StartKind(t, harness.AgentRun, c.data)
	client := c.connect(t, s)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if round == 0 {
		if err := client.MakeBucket(ctx, "crash", minio.MakeBucketOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.verify(ctx, t, client)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, w := range c.writers {
		wg.Go(func() { w.load(ctx, client, stop) })
	}
	wg.Go(func() { c.fork(ctx, client, s, round, stop) })
	time.Sleep(time.Duration(150+c.random.IntN(900)) * time.Millisecond) // the random moment
	s.Kill()
	close(stop)
	wg.Wait()
	for _, w := range c.writers {
		c.acknowledged += w.acknowledged
		w.acknowledged = 0
	}
}

// load writes, overwrites and deletes until a request fails, which the kill makes happen.
func (w *crashWriter) load(ctx context.Context, client *minio.Client, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		name := fmt.Sprintf("%s/%d", w.name, w.random.IntN(40))
		k := w.keys[name]
		if k == nil {
			k = &crashKey{}
			w.keys[name] = k
		}
		k.pending, k.underWay = nil, true
		var err error
		if w.random.IntN(5) == 0 {
			err = client.RemoveObject(ctx, "crash", name, minio.RemoveObjectOptions{})
		} else {
			// Small ones lie in the log, large ones in segments, and some are multipart.
			size := []int{0, 100, 5_000, 70_000, 300_000}[w.random.IntN(5)]
			if w.random.IntN(60) == 0 {
				size = 6 << 20
			}
			k.pending = harness.Random(w.random.Uint64(), size)
			_, err = client.PutObject(ctx, "crash", name, bytes.NewReader(k.pending), int64(size), minio.PutObjectOptions{PartSize: 5 << 20})
		}
		if err != nil {
			return // unknown: it may have happened or not
		}
		k.content, k.underWay = k.pending, false
		w.acknowledged++
	}
}

// fork changes the marker and forks the bucket, again and again.
func (c *crash) fork(ctx context.Context, client *minio.Client, s *harness.Server, round int, stop chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		name := fmt.Sprintf("crash-fork-%d-%d", round, n)
		if _, err := client.PutObject(ctx, "crash", "marker", bytes.NewReader([]byte(name)), int64(len(name)), minio.PutObjectOptions{}); err != nil {
			return
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, s.Endpoint+"/"+name, nil)
		if err != nil {
			return
		}
		req.Header.Set("X-Tigris-Fork-Source-Bucket", "crash")
		req.Header.Set("X-Amz-Content-Sha256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
		resp, err := http.DefaultClient.Do(signer.SignV4(*req, s.AccessKey, s.SecretKey, "", "us-east-1"))
		if err != nil {
			return
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			c.t.Errorf("fork %s: %s", name, resp.Status)
			return
		}
		c.forks[name] = name
	}
}

// verify reads everything back, and takes what it finds for what the model didn't know.
func (c *crash) verify(ctx context.Context, t *testing.T, client *minio.Client) {
	t.Helper()
	for _, w := range c.writers {
		for name, k := range w.keys {
			got, err := read(ctx, client, "crash", name)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			switch {
			case same(got, k.content):
			case k.underWay && same(got, k.pending):
				k.content = got
			default:
				t.Errorf("%s: holds %d bytes, acknowledged were %d (absent: %v)", name, len(got), len(k.content), k.content == nil)
			}
			k.underWay = false
		}
	}
	for fork, marker := range c.forks {
		got, err := read(ctx, client, fork, "marker")
		if err != nil || string(got) != marker {
			t.Errorf("fork %s: marker %q, %v", fork, got, err)
		}
	}
}

// same compares contents; nil is absent, which is not the same as empty.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// read returns an object's content; nil if there is none.
func read(ctx context.Context, client *minio.Client, bucket, name string) ([]byte, error) {
	o, err := client.GetObject(ctx, bucket, name, minio.GetObjectOptions{})
	if err != nil {
		return nil, err
	}
	defer o.Close()
	b, err := io.ReadAll(o)
	if minio.ToErrorResponse(err).Code == "NoSuchKey" {
		return nil, nil
	}
	if b == nil {
		b = []byte{}
	}
	return b, err
}

// TestDataIsFile starts the server on something that is no folder: it refuses.
func TestDataIsFile(t *testing.T) {
	if k := harness.Under(t); k != harness.AgentRun {
		t.Skipf("%s takes any folder: this runs against AgentRun only", k)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("not a folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startAgentRun(t)
	s.Fails(nil, harness.Binary(t), "up", "--data", filepath.Join(dir, "file"), "--listen", "127.0.0.1:0", "--s3-listen", "127.0.0.1:0")
}
