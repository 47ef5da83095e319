// Command service runs in the bench: it runs `agentrun up` there, and does what a test outside asks of it over HTTP, as an operator with a
// shell would.
//
//	POST /up            start it, wait until it is ready
//	POST /down          SIGTERM, wait for its end
//	POST /crash         SIGKILL
//	GET  /log           what it wrote
//	GET  /machines      the VMM processes that run: [{"pid", "cpu" in ticks}]
//	POST /kill?pid=N    SIGKILL for one
//	POST /end           the bench ends
//
// Its API is at port 8080, SSH at port 8022; a page is at port 8081, for sandboxes to connect to.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	disk := flag.String("disk", "/dev/vda", "the device with images")
	images := flag.String("images", "/images", "where it is mounted")
	data := flag.String("data", "", "a folder, on a filesystem of its own in memory")
	flag.Parse()
	if err := run(*disk, *images, *data, flag.Args()); err != nil {
		fmt.Println("service:", err)
		os.Exit(1)
	}
}

func run(disk, images, data string, args []string) error {
	for _, m := range [][4]string{{disk, images, "erofs"}, {"tmpfs", data, "tmpfs", "size=3g"}} {
		flags := uintptr(0)
		if m[2] == "erofs" {
			flags = unix.MS_RDONLY
		}
		if err := errors.Join(os.MkdirAll(m[1], 0o755), unix.Mount(m[0], m[1], m[2], flags, m[3])); err != nil {
			return fmt.Errorf("mount %s: %w", m[1], err)
		}
	}
	s := &server{args: args, end: make(chan struct{})}
	mux := http.NewServeMux()
	for path, do := range map[string]func(*http.Request) (any, error){"POST /up": s.up, "POST /down": s.down, "POST /crash": s.crash, "GET /log": s.read,
		"GET /machines": machines, "POST /kill": kill} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			answer, err := do(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_ = json.NewEncoder(w).Encode(answer)
		})
	}
	mux.HandleFunc("POST /end", func(http.ResponseWriter, *http.Request) { s.once.Do(func() { close(s.end) }) })
	go func() {
		page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n, _ := strconv.Atoi(r.FormValue("zeros")); n > 0 {
				_, _ = w.Write(bytes.Repeat([]byte{'0'}, min(n, 1<<20)))
				return
			}
			fmt.Fprintln(w, "a page")
		})
		fmt.Println("service:", http.ListenAndServe(":8081", page))
	}()
	go func() { fmt.Println("service:", http.ListenAndServe(":8090", mux)) }()
	for port, to := range map[string]string{":8080": "127.0.0.1:7070", ":8022": "127.0.0.1:7022"} { // where it takes no TLS, and lets everybody in
		l, err := net.Listen("tcp", port)
		if err != nil {
			return err
		}
		go relay(l, to)
	}
	<-s.end
	_, err := s.down(nil)
	fmt.Printf("%s", s.log.Bytes())
	return err
}

// relay passes connections on.
func relay(l net.Listener, to string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			d, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer d.Close()
			go func() {
				_, _ = io.Copy(d, c)
				_ = d.(*net.TCPConn).CloseWrite()
			}()
			_, _ = io.Copy(c, d)
		}()
	}
}

// server is `agentrun up`.
type server struct {
	args []string
	once sync.Once
	end  chan struct{}

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
	err  error // of its end
	log  buffer
}

// buffer collects what is written while others read.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	os.Stdout.Write(p)
	return b.b.Write(p)
}

func (b *buffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.b.Bytes())
}

func (s *server) up(*http.Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return nil, errors.New("it is up")
	}
	cmd := exec.Command(s.args[0], s.args[1:]...)
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	s.cmd, s.done = cmd, done
	go func() {
		s.err = cmd.Wait()
		close(done)
	}()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); {
		if c, err := net.Dial("tcp", "127.0.0.1:7070"); err == nil {
			c.Close()
			return "up", nil
		}
		select {
		case <-done:
			s.cmd = nil
			return nil, fmt.Errorf("it ended: %w: %s", s.err, s.log.Bytes())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil, errors.New("it isn't up after 5 minutes")
}

func (s *server) down(*http.Request) (any, error) { return s.signal(unix.SIGTERM) }

func (s *server) crash(*http.Request) (any, error) {
	if answer, err := s.signal(unix.SIGKILL); err == nil {
		return answer, errors.New("it ended by itself")
	}
	return "down", nil
}

func (s *server) signal(sig unix.Signal) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return "down", nil
	}
	if err := s.cmd.Process.Signal(sig); err != nil {
		return nil, err
	}
	select {
	case <-s.done:
	case <-time.After(10 * time.Minute): // its sandboxes are written to the disk
		_ = s.cmd.Process.Signal(unix.SIGQUIT)
		<-s.done
		return nil, fmt.Errorf("it didn't end: %s", s.log.Bytes())
	}
	s.cmd = nil
	return "down", s.err
}

func (s *server) read(*http.Request) (any, error) { return string(s.log.Bytes()), nil }

// machine is a VMM process.
type machine struct {
	PID int   `json:"pid"`
	CPU int64 `json:"cpu"`
}

func machines(*http.Request) (any, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	found := []machine{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		i := bytes.LastIndexByte(b, ')')
		if err != nil || i < 0 {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		args, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		f := strings.Fields(string(b[i+1:]))
		if err != nil || len(f) < 13 || !bytes.HasPrefix(args, []byte("/proc/self/fd/")) || f[0] == "Z" {
			continue
		}
		var cpu int64
		for _, n := range f[11:13] {
			ticks, _ := strconv.ParseInt(n, 10, 64)
			cpu += ticks
		}
		found = append(found, machine{pid, cpu})
	}
	return found, err
}

func kill(r *http.Request) (any, error) {
	pid, err := strconv.Atoi(r.FormValue("pid"))
	if err != nil || pid < 2 {
		return nil, errors.New("which?")
	}
	return "killed", unix.Kill(pid, unix.SIGKILL)
}
