package git

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentrun.dev/command/services"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

// shelled adds a shell of one kind of line to the commands: words, of which the first two are a helper of git, or an answer.
type shelled struct{ commands }

func (s shelled) Lookup(name string) (proc.Program, bool) {
	if name != "sh" {
		return s.commands.Lookup(name)
	}
	return tool.Func(func(t *tool.T) int {
		words := strings.Fields(t.Args()[2])
		if words[0] == "echo" {
			t.Out.WriteString(strings.Join(words[1:2], " ") + "\n")
			return 0
		}
		child, err := t.Spawn(proc.Spawn{Args: words})
		if err != nil {
			t.Fatal(127, "%v", err)
		}
		status, _ := t.Wait(child)
		return status
	}), true
}

func TestCredentialStore(t *testing.T) {
	script(t, `
		credential-store get <<< protocol=https\nhost=example.com\n\n
		credential-store store <<< protocol=https\nhost=example.com\nusername=me\npassword=secret\n\n
		credential-store store <<< protocol=https\nhost=example.com\npath=a b/c.git\nusername=me@x\npassword=p:/@ %\n\n
		r ../home/.git-credentials
		credential-store get <<< protocol=https\nhost=example.com\n\n
		credential-store get <<< protocol=https\nhost=example.com\nusername=me\n\n
		credential-store get <<< protocol=http\nhost=example.com\n\n
		credential-store get <<< url=https://example.com/a%20b/c.git\n
		credential-store store <<< protocol=https\nhost=example.com\nusername=me\npassword=other\n\n
		credential-store store <<< protocol=https\nhost=example.com\nusername=me\n\n
		r ../home/.git-credentials
		credential-store --file other store <<< protocol=cert\npath=/a/file\nusername=u\npassword=p\n\n
		r other
		credential-store --file=other get <<< protocol=cert\npath=/a/file\n\n
		credential-store erase <<< protocol=https\nhost=example.com\nusername=me\n\n
		r ../home/.git-credentials
		credential-store erase <<< protocol=https\n\n
		r ../home/.git-credentials
		a ../home/.git-credentials # a comment\nhttps://u:p@host.example\nnonsense\nhttps://nobody@host.example\n
		credential-store get <<< protocol=https\nhost=host.example\n
		credential-store store <<< protocol=https\nhost=b\nusername=u\npassword=p\n
		r ../home/.git-credentials
		credential-store erase <<< \n
		r ../home/.git-credentials
		? credential-store
		? credential
		? credential frob
		? credential fill <<< nonsense\n
		credential fill <<< host=a\nusername=u\n\n
		credential fill <<< protocol=https\nusername=u\n\n
		credential fill <<< protocol=https\nhost=a\nusername=u\npassword=p\n\nignored=1\n
		e GIT_TERMINAL_PROMPT=0
		credential fill <<< protocol=https\nhost=a\npath=x y\n\n
		credential fill <<< protocol=https\nhost=a\nusername=u v\n\n
		credential fill <<< protocol=cert\npath=x y\nhost=\n\n
		config --global credential.username general
		config --global credential.https://a.example.username close
		config --global credential.https://*.wild.example.username wild
		credential fill <<< protocol=https\nhost=a.example\n\n
		credential fill <<< protocol=https\nhost=b.example\n\n
		credential fill <<< protocol=https\nhost=x.wild.example\n\n
		credential fill <<< protocol=https\nhost=x.y.wild.example\n\n
		config --global credential.https://a.example.useHttpPath true
		credential fill <<< protocol=https\nhost=a.example\npath=p\n\n
	`)
}

// TestCredentialHelpers asks git of the host and ours for credentials that are stored, by way of the helper.
func TestCredentialHelpers(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git isn't installed here; this case runs where it is")
	}
	_, b := shelledWorld(t, nil)
	run := func(want int, stdin string, args ...string) string {
		t.Helper()
		o, e, status := b.git(args, append(baseEnv(1), "GIT_TERMINAL_PROMPT=0"), "", stdin)
		if status != want {
			t.Fatalf("git %q: status %d\n%s%s", args, status, o, e)
		}
		return o + e
	}
	run(0, "", "config", "--global", "credential.helper", "store")
	run(0, "protocol=https\nhost=example.com\nusername=u\npassword=p\n\n", "credential", "approve")
	if got := run(0, "protocol=https\nhost=example.com\n\n", "credential", "fill"); got != "protocol=https\nhost=example.com\nusername=u\npassword=p\n" {
		t.Errorf("fill says %q", got)
	}
	run(0, "url=https://u@example.com\n\n", "credential", "reject")
	if got := run(128, "protocol=https\nhost=example.com\n\n", "credential", "fill"); got != "fatal: could not read Username for 'https://example.com': terminal prompts disabled\n" {
		t.Errorf("after reject, fill says %q", got)
	}
	run(0, "", "config", "--global", "core.askPass", "echo said")
	if got := run(0, "protocol=https\nhost=example.com\n\n", "credential", "fill"); !strings.HasSuffix(got, "username=said\npassword=said\n") {
		t.Errorf("the program that asks: %q", got)
	}
}

// shelledWorld is a sandbox whose git has a shell for its helpers, and a network.
func shelledWorld(t *testing.T, dial func(ctx context.Context, network, addr string) (net.Conn, error)) (*proc.Sandbox, boxWorld) {
	t.Helper()
	ns := vfs.NewNamespace(vfs.Mount{FS: memfs.New(memfs.Options{})})
	box, err := proc.New(proc.Options{Namespace: ns, Commands: shelled{}, Services: &services.Services{Dial: dial}})
	if err != nil {
		t.Fatal(err)
	}
	b := boxWorld{t, box}
	for _, d := range []string{"../task", "../home", "../tmp", "../bin"} {
		b.file('m', d, "")
	}
	for _, name := range []string{"sh", "git"} {
		b.file('w', "../bin/"+name, "#!agentrun "+name+"\n")
		b.file('x', "../bin/"+name, "")
	}
	return box, b
}

// TestHTTPAuthentication clones from a server that wants to know who asks.
func TestHTTPAuthentication(t *testing.T) {
	root := t.TempDir()
	s := server(t, root)
	guarded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != "me" || p != "right" {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		s.Config.Handler.ServeHTTP(w, r)
	}))
	defer guarded.Close()
	if out, err := exec.Command("git", "init", "-q", "--bare", filepath.Join(root, "r.git")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, b := shelledWorld(t, new(net.Dialer).DialContext)
	host := strings.TrimPrefix(guarded.URL, "http://")
	try := func(want int, url string) string {
		t.Helper()
		o, e, status := b.git([]string{"ls-remote", url}, append(baseEnv(1), "GIT_TERMINAL_PROMPT=0"), "", "")
		if status != want {
			t.Fatalf("%s: status %d\n%s%s", url, status, o, e)
		}
		return o + e
	}
	url := guarded.URL + "/r.git"
	if got := try(128, url); !strings.Contains(got, "could not read Username for '"+guarded.URL+"': terminal prompts disabled") {
		t.Errorf("without a credential: %q", got)
	}
	try(0, "http://me:right@"+host+"/r.git")
	if got := try(128, "http://me:wrong@"+host+"/r.git"); !strings.Contains(got, "Authentication failed for '"+url+"/'") {
		t.Errorf("with a wrong one: %q", got)
	}
	b.file('w', "../home/.gitconfig", "[credential]\n\thelper = store\n")
	b.file('w', "../home/.git-credentials", "http://me:right@"+host+"\n")
	try(0, url)
	b.file('w', "../home/.git-credentials", "http://me:stale@"+host+"\n")
	if got := try(128, url); !strings.Contains(got, "Authentication failed") {
		t.Errorf("with one that was true once: %q", got)
	}
	if got := b.file('r', "../home/.git-credentials", ""); got != "" {
		t.Errorf("a refused one stays: %q", got)
	}
}
