package git

import (
	"context"
	"net"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentrun.dev/command/services"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

func TestRemotesLocal(t *testing.T) {
	_, b := script(t, `
		m a
		cd a
		init -q -b main
		w f 1\n2\n3\n
		add .
		commit -qm base
		tag v1
		tag -a v2 -m v2
		branch other
		cd .
		clone a b
		clone a b
		clone nope x
		clone --bare a c.git
		clone c.git d
		clone -b other a e
		clone -b nope a x
		cd b
		status
		branch -a
		branch -vv
		remote -v
		remote show origin
		log --oneline --decorate
		config --get remote.origin.fetch
		cd d
		remote set-url origin ../c.git
		w f 1\n2\n3\n4\n
		commit -qam four
		status
		push
		status
		push
		checkout -q -b feature
		push
		push -u origin feature
		status -sb
		tag v3
		push --tags
		push origin v3
		push origin :feature
		push origin --delete nope
		cd .
		clone -q c.git g
		cd g
		remote set-url origin ../c.git
		w f 0\n1\n2\n3\n4\n
		commit -qam zero
		push -q
		cd d
		checkout -q main
		w n n\n
		add n
		commit -qm n
		push
		fetch
		status
		push
		pull
		pull --no-rebase
		log --oneline --graph
		push
		cd g
		pull
		fetch
		pull
		w f x\n
		commit -qam x
		push origin HEAD
		cd d
		w f y\n
		commit -qam y
		pull --rebase
		status
		rebase --abort
		pull --no-rebase
		merge --abort
		reset -q --hard origin/main
		pull
		cd b
		remote add c ../c.git
		remote
		remote add c x
		fetch c
		branch -r
		remote rename c cc
		remote get-url cc
		remote set-url cc ../nope
		fetch cc
		remote remove cc
		branch -r
		remote rm nope
		ls-remote origin
		ls-remote --tags ../c.git
		push origin main
		commit -q --allow-empty -m e
		push origin main
		push origin HEAD:refs/heads/new
		push --force origin main~1:new
		fetch --prune
		push nope
		checkout other
		checkout -q main
		branch -d other
		pull origin other
		fetch origin nope
		fetch origin main
	`)
	for _, d := range []string{"/task/a", "/task/b", "/task/c.git", "/task/d", "/task/g"} {
		fsck(t, b, d)
	}
}

func TestShallow(t *testing.T) {
	_, b := script(t, `
		m a
		cd a
		init -q -b main
		commit -q --allow-empty -m one
		commit -q --allow-empty -m two
		commit -q --allow-empty -m three
		cd .
		clone -q --depth 1 file:///task/a b
		cd b
		rev-parse --is-shallow-repository
		log --oneline
		fetch -q --unshallow
		log --oneline
	`)
	fsck(t, b, "/task/b")
}

// server serves the repositories of a folder with the machine's own git.
func server(t *testing.T, root string) *httptest.Server {
	t.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Skip("git isn't installed here; this case runs where it is")
	}
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("git-http-backend isn't installed here; this case runs where it is")
	}
	h := &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=http.receivepack", "GIT_CONFIG_VALUE_0=true", "GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*"}}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func TestHTTP(t *testing.T) {
	root := t.TempDir()
	host := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = root, append(baseEnv(1), "HOME="+root)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	s := server(t, root)
	host("init", "-q", "-b", "main", "w")
	for i := range 30 {
		os.WriteFile(filepath.Join(root, "w", "f"), []byte(strings.Repeat("line\n", 200*(i+1))+strings.Repeat("x", i)), 0o644)
		host("-C", "w", "add", ".")
		host("-C", "w", "commit", "-qm", "commit")
	}
	host("-C", "w", "tag", "-a", "v1", "-m", "v1")
	host("clone", "-q", "--bare", "w", "r.git")
	host("-C", "r.git", "gc", "-q")
	ns := vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{})})
	box, err := proc.New(proc.Options{Namespace: ns, Commands: commands{}, Services: &services.Services{
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, addr)
		}}})
	if err != nil {
		t.Fatal(err)
	}
	b := boxWorld{t, box}
	b.file('m', "/task", "")
	run := func(want int, dir string, args ...string) string {
		t.Helper()
		o, e, status := b.git(args, baseEnv(5), dir, "")
		if status != want {
			t.Fatalf("git %q: status %d\n%s%s", args, status, o, e)
		}
		return o + e
	}
	url := s.URL + "/r.git"
	run(0, "", "clone", url, "c")
	if got := run(0, "c", "rev-list", "--count", "HEAD"); got != "30\n" {
		t.Errorf("%q commits", got)
	}
	fsck(t, b, "/task/c")
	b.file('w', "c/new", "new\n")
	run(0, "c", "add", ".")
	run(0, "c", "commit", "-qm", "from the sandbox")
	if got := run(0, "c", "push"); !strings.Contains(got, "main -> main") {
		t.Errorf("push says %q", got)
	}
	if got := host("-C", "r.git", "log", "-1", "--format=%s", "main"); got != "from the sandbox\n" {
		t.Errorf("the server has %q", got)
	}
	host("-C", "r.git", "fsck", "--full", "--strict")
	host("-C", "w", "pull", "-q", "../r.git", "main")
	host("-C", "w", "commit", "-q", "--allow-empty", "-m", "more")
	host("-C", "w", "push", "-q", "../r.git", "main")
	if got := run(0, "c", "pull"); !strings.Contains(got, "Fast-forward") {
		t.Errorf("pull says %q", got)
	}
	run(0, "", "clone", "-q", "--depth", "2", url, "s")
	if got := run(0, "s", "rev-list", "--count", "HEAD"); got != "2\n" {
		t.Errorf("shallow clone has %q commits", got)
	}
	fsck(t, b, "/task/s")
	run(0, "s", "fetch", "-q", "--unshallow")
	if got := run(0, "s", "rev-list", "--count", "HEAD"); got != "32\n" {
		t.Errorf("after unshallow %q commits", got)
	}
	if got := run(128, "", "clone", s.URL+"/nope.git", "x"); !strings.Contains(got, "not found") {
		t.Errorf("a missing repository: %q", got)
	}
	if got := run(0, "", "ls-remote", url); !strings.Contains(got, "refs/tags/v1^{}") {
		t.Errorf("ls-remote: %q", got)
	}
}

func TestNoNetwork(t *testing.T) {
	_, b := newWorlds(t)
	_, e, status := b.git([]string{"clone", "https://example.org/x"}, baseEnv(1), "", "")
	if status != 128 || !strings.Contains(e, "unable to access 'https://example.org/x/'") || !strings.Contains(e, "network") {
		t.Errorf("status %d: %s", status, e)
	}
}
