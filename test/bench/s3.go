package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7/pkg/signer"
)

const (
	accessKey = "BENCHACCESSKEY000000"
	secretKey = "bench-secret-key-0123456789abcdefghijklm"
)

// server is an S3 server under test, a process of its own.
type server struct {
	name string
	addr string
	cmd  *exec.Cmd
}

func (s *server) stop() {
	if s == nil || s.cmd.Process == nil {
		return
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	s.cmd.Wait()
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func start(name, addr string, cmd *exec.Cmd) (*server, error) {
	var log bytes.Buffer
	cmd.Stderr = &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for range 200 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return &server{name, addr, cmd}, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	cmd.Process.Kill()
	return nil, fmt.Errorf("%s didn't start: %s", name, log.String())
}

// ours starts bin/agentrun on a data directory.
func (b *bench) ours(data string) (*server, error) {
	addr, err := freePort()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("bin/agentrun", "up", "--data", data, "--listen", "127.0.0.1:0", "--s3-listen", addr)
	cmd.Env = append(os.Environ(), "AGENTRUN_ACCESS_KEY_ID="+accessKey, "AGENTRUN_SECRET_ACCESS_KEY="+secretKey, "XDG_CONFIG_HOME="+filepath.Join(b.dir, "config"))
	return start("agentrun", addr, cmd)
}

// theirs starts versitygw's posix backend on a directory of the same disk.
func (b *bench) theirs(data string) (*server, error) {
	if b.versitygw == "" {
		return nil, errors.New("-versitygw names the rival's program; `make bench` installs it and does")
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	addr, err := freePort()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(b.versitygw, "--access", accessKey, "--secret", secretKey, "--port", addr, "--quiet", "--keep-alive", "posix", data)
	return start("versitygw", addr, cmd)
}

// request returns a signed request as bytes, so that the client costs next to nothing while time is taken.
func (s *server) request(method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequest(method, "http://"+s.addr+path, nil)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	req.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:]))
	req = signer.SignV4(*req, accessKey, secretKey, "", "us-east-1")
	var buf bytes.Buffer
	fmt.Fprintf(&buf, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", method, req.URL.RequestURI(), s.addr, len(body))
	if err := req.Header.Write(&buf); err != nil {
		return nil, err
	}
	buf.WriteString("\r\n")
	buf.Write(body)
	return buf.Bytes(), nil
}

// client is one connection.
type client struct {
	c net.Conn
	r *bufio.Reader
}

func (s *server) dial() (*client, error) {
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		return nil, err
	}
	return &client{c, bufio.NewReaderSize(c, 256<<10)}, nil
}

// do sends a request and reads the answer, whose status must be 200.
func (c *client) do(req []byte) error {
	if _, err := c.c.Write(req); err != nil {
		return err
	}
	status, err := c.r.ReadSlice('\n')
	if err != nil {
		return err
	}
	ok := bytes.HasPrefix(status, []byte("HTTP/1.1 200"))
	text := string(status)
	length := int64(0)
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if len(line) > 15 && bytes.EqualFold(line[:15], []byte("content-length:")) {
			if length, err = strconv.ParseInt(strings.TrimSpace(string(line[15:])), 10, 64); err != nil {
				return err
			}
		}
	}
	if !ok {
		body := make([]byte, min(length, 500))
		io.ReadFull(c.r, body)
		return errors.New(strings.TrimSpace(text) + " " + string(body))
	}
	n, err := io.CopyN(io.Discard, c.r, length)
	if n != length {
		return err
	}
	return nil
}

func (s *server) once(method, path string) error {
	req, err := s.request(method, path, nil)
	if err != nil {
		return err
	}
	c, err := s.dial()
	if err != nil {
		return err
	}
	defer c.c.Close()
	return c.do(req)
}

// rate runs n requests over some connections and returns how many a second were answered, and how long each took.
func (s *server) rate(clients, n int, sign func(i int) ([]byte, error)) (perSecond float64, each times, err error) {
	reqs := make([][]byte, n)
	for i := range reqs {
		if reqs[i], err = sign(i); err != nil {
			return 0, nil, err
		}
	}
	conns := make([]*client, clients)
	for i := range conns {
		if conns[i], err = s.dial(); err != nil {
			return 0, nil, err
		}
		defer conns[i].c.Close()
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	start := time.Now()
	for i, c := range conns {
		wg.Go(func() {
			var own times
			for j := i; j < n; j += clients {
				t := time.Now()
				if e := c.do(reqs[j]); e != nil {
					mu.Lock()
					err = fmt.Errorf("%s: %w", s.name, e)
					mu.Unlock()
					return
				}
				own = append(own, time.Since(t))
			}
			mu.Lock()
			each = append(each, own...)
			mu.Unlock()
		})
	}
	wg.Wait()
	return float64(n) / time.Since(start).Seconds(), each, err
}

// s3 compares the server with versitygw on the same disk, in turn, so that the machine's moods meet both.
func s3(b *bench) error {
	a, err := b.ours(filepath.Join(b.dir, "s3-ours"))
	if err != nil {
		return err
	}
	defer a.stop()
	v, err := b.theirs(filepath.Join(b.dir, "s3-theirs"))
	if err != nil {
		return err
	}
	defer v.stop()
	for _, s := range []*server{a, v} {
		if err := s.once("PUT", "/bench"); err != nil {
			return fmt.Errorf("%s: create: %w", s.name, err)
		}
	}
	if err := b.s3Small(a, v); err != nil {
		return err
	}
	if err := b.s3Large(a, v); err != nil {
		return err
	}
	a.stop()
	v.stop()
	return b.s3Memory()
}

func (b *bench) s3Small(a, v *server) error {
	rounds, n := 5, 20_000
	if b.quick {
		rounds, n = 2, 2_000
	}
	body := make([]byte, 4096)
	rand.NewChaCha8([32]byte{2}).Read(body)
	type result struct{ put, get []float64 }
	var ra, rv result
	var one, oneV times
	for round := range rounds {
		for _, s := range []*server{a, v} {
			res, single := &ra, &one
			if s == v {
				res, single = &rv, &oneV
			}
			put := func(i int) ([]byte, error) {
				return s.request("PUT", fmt.Sprintf("/bench/p%d/%03d/%06d", round, i%100, i), body)
			}
			get := func(i int) ([]byte, error) {
				i = (i * 7919) % n
				return s.request("GET", fmt.Sprintf("/bench/p%d/%03d/%06d", round, i%100, i), nil)
			}
			r, _, err := s.rate(32, n, put)
			if err != nil {
				return err
			}
			res.put = append(res.put, r)
			if r, _, err = s.rate(32, n, get); err != nil {
				return err
			}
			res.get = append(res.get, r)
			_, each, err := s.rate(1, 500, func(i int) ([]byte, error) { return s.request("PUT", fmt.Sprintf("/bench/one/%d-%d", round, i), body) })
			if err != nil {
				return err
			}
			*single = append(*single, each...)
		}
	}
	floor, err := fsyncTime(b.dir)
	if err != nil {
		return err
	}
	r := median(ra.put) / median(rv.put)
	b.add(row{"4 KiB PUT, 32 clients, against versitygw (which doesn't sync)", perSecond(ra.put), perSecond(rv.put), r, "≥ 1", r >= 1})
	r = median(ra.get) / median(rv.get)
	b.add(row{"4 KiB GET, 32 clients, against versitygw", perSecond(ra.get), perSecond(rv.get), r, "≥ 1.5", r >= 1.5})
	r = ratio(one.p50(), floor.p50())
	b.add(row{"4 KiB PUT, 1 client, against one fsync", one.String(), floor.String(), r, "≤ 1.5", r <= 1.5})
	r = ratio(one.p50(), oneV.p50())
	b.add(row{"4 KiB PUT, 1 client, against versitygw (which doesn't sync)", one.String(), oneV.String(), r, "reported", true})
	return nil
}

func (b *bench) s3Large(a, v *server) error {
	rounds, size := 9, 64<<20
	if b.quick {
		rounds = 3
	}
	body := make([]byte, size)
	rand.NewChaCha8([32]byte{3}).Read(body)
	var put, get [2]times
	for round := range rounds {
		for i, s := range []*server{a, v} {
			path := fmt.Sprintf("/bench/large-%d", round)
			_, t, err := s.rate(1, 1, func(int) ([]byte, error) { return s.request("PUT", path, body) })
			if err != nil {
				return err
			}
			_, g, err := s.rate(1, 2, func(int) ([]byte, error) { return s.request("GET", path, nil) })
			if err != nil {
				return err
			}
			put[i], get[i] = append(put[i], t...), append(get[i], g...)
		}
	}
	speed := func(t times) string { return fmt.Sprintf("%.0f MB/s", float64(size)/1e6/t.p50().Seconds()) }
	r := ratio(put[1].p50(), put[0].p50())
	b.add(row{"64 MiB PUT, against versitygw (which doesn't sync)", speed(put[0]), speed(put[1]), r, "≥ 1", r >= 1})
	r = ratio(get[1].p50(), get[0].p50())
	b.add(row{"64 MiB GET, against versitygw", speed(get[0]), speed(get[1]), r, "≥ 1", r >= 1})
	return nil
}

// s3Memory measures what the server takes in memory with very many objects, after a burst of random reads.
func (b *bench) s3Memory() error {
	n := b.sizes()[len(b.sizes())-1]
	s, err := b.open("memory")
	if err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	if _, err := s.fill(b.ctx, "bench", n); err != nil {
		return err
	}
	if err := s.close(); err != nil {
		return err
	}
	srv, err := b.ours(s.dir)
	if err != nil {
		return err
	}
	defer srv.stop()
	if _, _, err := srv.rate(32, 50_000, func(int) ([]byte, error) {
		return srv.request("GET", "/bench/"+key(rand.IntN(n)), nil)
	}); err != nil {
		return err
	}
	rss, err := memory(srv.cmd.Process.Pid)
	if err != nil {
		return err
	}
	r := float64(rss) / 300e6
	b.add(row{fmt.Sprintf("resident memory with %d objects, after 50,000 random GETs", n), fmt.Sprintf("%.0f MB", float64(rss)/1e6), "300 MB", r, "≤ 1", r <= 1})
	return nil
}

// memory is a process's resident memory in bytes.
func memory(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			return kb * 1024, err
		}
	}
	return 0, errors.New("no VmRSS")
}

func median(v []float64) float64 {
	s := append([]float64(nil), v...)
	for i := range s {
		for j := i; j > 0 && s[j] < s[j-1]; j-- {
			s[j], s[j-1] = s[j-1], s[j]
		}
	}
	return s[len(s)/2]
}

func perSecond(v []float64) string { return fmt.Sprintf("%.0f/s", median(v)) }
