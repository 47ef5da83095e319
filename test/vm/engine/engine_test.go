package engine

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/command/services"
	"agentrun.dev/engine"
	"agentrun.dev/engine/enginetest"
	"agentrun.dev/engine/microvm"
	"agentrun.dev/errs"
	"agentrun.dev/guest/image"
	"agentrun.dev/vmm/jail"
	"agentrun.dev/volume"
)

// bench is where the bench's archive has what an engine needs.
const bench = "/microvm/"

// newEngine returns the engine of this test, which ends with it.
func newEngine(t testing.TB) *microvm.Engine {
	t.Helper()
	if _, err := os.Stat(bench); err != nil {
		t.Skip("IT RUNS IN THE BENCH ONLY: make vm")
	}
	runtime.GOMAXPROCS(8) // vCPUs hold some for a while
	images, err := image.NewStore(t.TempDir(), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	groups, users := bounds(t)
	e, err := microvm.New(microvm.Options{Balloon: true, Groups: groups, Users: users, Kernel: bench + "kernel", Modules: bench + "modules", Agent: bench + "agent", VMM: []string{bench + "vmm"},
		Images: images, Image: "tar:" + bench + "image.tar", Memory: 128 << 20, Shells: 1, Patience: 45 * time.Second,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if list, err := e.List(context.Background()); err != nil || len(list) != 0 {
			t.Errorf("at the end there are %v, %v", list, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if left, err := filepath.Glob("/sys/fs/cgroup/agentrun-vms/vm-*"); err != nil || len(left) != 0 || users.InUse() != 0 {
			t.Errorf("at the end there are %v, %v, and %d users", left, err, users.InUse())
			for _, dir := range left {
				procs, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
				events, _ := os.ReadFile(filepath.Join(dir, "cgroup.events"))
				t.Logf("%s: processes %q, %s", dir, procs, events)
				for pid := range strings.FieldsSeq(string(procs)) {
					status, _ := os.ReadFile("/proc/" + pid + "/status")
					stack, _ := os.ReadFile("/proc/" + pid + "/stack")
					t.Logf("%s\n%s", status, stack)
				}
			}
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		}
	})
	return e
}

// bounds are the groups and users of the VMM processes, which a bench's host can have.
func bounds(t testing.TB) (*jail.Groups, *jail.Users) {
	t.Helper()
	if err := os.MkdirAll("/run", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", "/sys/fs/cgroup", "cgroup2", 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
		t.Fatal(err)
	}
	groups, err := jail.OwnGroups()
	if err != nil {
		t.Fatal(err)
	}
	users, err := jail.NewUsers(jail.FirstUser, jail.ManyUsers)
	if err != nil {
		t.Fatal(err)
	}
	return groups, users
}

// TestSuite is what every engine does. One engine serves all of it: a kernel takes its time to boot here.
func TestSuite(t *testing.T) {
	e := newEngine(t)
	enginetest.Run(t, enginetest.Config{New: func(testing.TB) engine.Engine { return e }, Saves: true, Copies: true, Alone: true, Slow: 10, Forks: 4})
}

// TestNetwork fetches a page by a host's name, through the sandbox's services alone; a fork has the same network, under its own.
func TestNetwork(t *testing.T) {
	e := newEngine(t)
	dial := func(who string) *services.Services {
		return &services.Services{Dial: func(_ context.Context, network, addr string) (net.Conn, error) {
			if addr != "example.test:80" {
				return nil, errs.Msg(errs.Denied, "connect", addr, "no rule allows it")
			}
			near, far := net.Pipe()
			go func() {
				defer far.Close()
				if _, err := http.ReadRequest(bufio.NewReader(far)); err == nil {
					fmt.Fprintf(far, "HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(who), who)
				}
			}()
			return near, nil
		}}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	run := func(in engine.Instance, script, want string) {
		t.Helper()
		var out bytes.Buffer
		p, err := in.Exec(ctx, engine.Cmd{Args: []string{"sh", "-c", script}, Stdout: &out, Stderr: &out})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s: %q, want %q", in.ID(), script, out.String(), want)
		}
	}
	set, err := volume.Open(ctx, volume.Options{Owner: "parent", UID: 1000, GID: 1000}, nil)
	if err != nil {
		t.Fatal(err)
	}
	parent, err := e.Boot(ctx, engine.Spec{Identity: engine.Identity{ID: "parent", Services: dial("the parent")}})
	if err != nil {
		t.Fatal(err)
	}
	defer parent.Stop(ctx)
	run(parent, "wget -q -O - http://example.test/", "the parent")
	run(parent, "wget -O - http://other.test/", "403 Forbidden")
	kids, err := engine.Fork(ctx, parent, set, []engine.Identity{{ID: "child", Services: dial("the child")}}, engine.FreezeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer kids[0].End(ctx)
	run(kids[0].Instance, "wget -q -O - http://example.test/", "the child")
	run(kids[0].Instance, "cat /sys/class/net/eth0/address; ip route", "default via 100.64.0.1")
}
