package userspace

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentrun.dev/engine"
	"agentrun.dev/proc"
	"agentrun.dev/vfs/hostfs"
)

// token is in a file of the host beside the folder that the sandbox has, and in the host's environment. It must not show.
const token = "token-of-the-host-7f3a"

// prison is a sandbox on a folder of the host, with links in it that lead out.
type prison struct {
	s       *Sandbox
	outside string // the folder around the sandbox's
}

func imprison(t *testing.T, l proc.Limits) *prison {
	t.Helper()
	t.Setenv("ESCAPE_TOKEN", token)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(dir, "inside")
	secret := filepath.Join(dir, "secret")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.Mkdir(inside, 0o777))
	check(os.WriteFile(secret, []byte(token+"\n"), 0o644))
	check(os.Symlink("../secret", filepath.Join(inside, "rel")))
	check(os.Symlink(secret, filepath.Join(inside, "abs")))
	check(os.Symlink(dir, filepath.Join(inside, "dir")))
	check(os.Symlink("..", filepath.Join(inside, "up")))
	check(os.Symlink("/proc/self/root", filepath.Join(inside, "root")))
	fs, err := hostfs.New(inside, hostfs.Options{UID: UID, GID: GID})
	check(err)
	t.Cleanup(func() { fs.Close() })
	s, err := New(context.Background(), Options{Volumes: []engine.Volume{{Path: "/home/agent", FS: fs}}, Dir: "/home/agent", Limits: l})
	check(err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return &prison{s, dir}
}

// TestEscape tries to get at the host. SECRET in a script is the path of the secret on the host, PID this process, PORT a
// listener of the host.
func TestEscape(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	called := make(chan struct{}, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			called <- struct{}{}
			c.Close()
		}
	}()
	for name, script := range map[string]string{
		"dot-dot":                `cat ../secret ../../secret /home/agent/../../../../../../SECRET; cd ..; cat secret; cd ../..; ls -la`,
		"an absolute path":       `cat SECRET; ls -la $(dirname SECRET); head -c 100 < SECRET; . SECRET; source SECRET`,
		"links of the host":      `cat rel abs dir/secret up/secret root/SECRET; ls -la dir/ up/ root/; cp -rL . /tmp/x; tar -chf - . | strings; readlink -f rel abs dir`,
		"links of its own":       `ln -s ../secret a; ln -s SECRET b; ln -s / c; cat a b c/SECRET; echo x > b; echo x >> a; cp /dev/null b; mv b d; cat d`,
		"hard links":             `ln rel h1; ln -L rel h2; ln SECRET h3; ln abs h4; cat h1 h2 h3 h4`,
		"a race of links":        `for i in {1..200}; do ln -sfn .. swap; mkdir -p real; ln -sfn real swap; done & for i in {1..200}; do cat swap/secret; done 2>/dev/null; wait`,
		"rename out":             `mkdir m; mv m ../m; mv rel ../rel2; mv -T up ../../up2; touch ../made ../../made2; rm -rf ../secret ../../secret dir/secret up/secret`,
		"proc":                   `cat /proc/self/environ /proc/1/environ /proc/PID/environ; ls -la /proc/self/cwd/ /proc/self/root/ /proc/PID/root/; cat /proc/self/root/SECRET /proc/PID/root/SECRET /proc/self/cwd/../secret /proc/self/maps /proc/self/mem /proc/kcore /proc/keys`,
		"descriptors":            `ls -la /proc/self/fd /dev/fd; for i in {0..300}; do cat /proc/self/fd/$i/../secret /dev/fd/$i/secret; cat <&$i; done </dev/null 2>/dev/null | head -c 1000`,
		"devices":                `cat /dev/mem /dev/kmem /dev/sda /dev/vda /dev/kmsg /dev/kvm /dev/fuse; mknod x b 8 0; mknod y c 1 1; cat x y; ls -la /dev`,
		"the environment":        `env; printenv; export -p; set; awk 'BEGIN{for (k in ENVIRON) print k, ENVIRON[k]}'; jq -n env; jq -n '$ENV'; xargs --show-limits </dev/null; ps e; ps auxe`,
		"other programs' files":  `awk 'BEGIN{while ((getline l < "SECRET") > 0) print l; while (("cat SECRET" | getline l) > 0) print l; print "x" > "../secret"}'; sed -n 'r SECRET' rel; echo | sed 'r SECRET'; echo | sed '1e cat SECRET'; echo x | sed 'w ../secret'; sort SECRET -o ../secret; find / -name secret; grep -r token / ; rg token /; diff SECRET /dev/null; tar cf - SECRET | strings; date -f SECRET; comm SECRET SECRET; od -c SECRET`,
		"sqlite":                 `sqlite3 :memory: "ATTACH 'SECRET' AS x; SELECT * FROM x.sqlite_master;" "SELECT readfile('SECRET');" "SELECT load_extension('SECRET');" ".shell cat SECRET" ".read SECRET" ".import SECRET t" "SELECT writefile('../secret','x');"`,
		"signals":                `kill -9 PID; kill -0 PID && echo reached; kill -TERM -PID; pkill -9 .; kill -9 1 2 3`,
		"the network":            `exec 3<>/dev/tcp/127.0.0.1/PORT; echo x > /dev/tcp/localhost/PORT; curl -s --max-time 3 http://127.0.0.1:PORT/; wget -q -O- -T 3 http://localhost:PORT/; echo x > /dev/udp/127.0.0.1/PORT`,
		"other commands by path": `/bin/../bin/sh -c 'cat SECRET'; /usr/bin/cat SECRET; /lib64/ld-linux-x86-64.so.2 SECRET; exec SECRET; env -i /bin/cat SECRET; printf '#!SECRET\n' > s; chmod +x s; ./s; printf '#!/usr/bin/python3.11 -c print(open("SECRET").read())\n' > p; chmod +x p; ./p`,
		"who is there":           `hostname -f; uname -a; id; whoami; who; cat /etc/passwd /etc/hostname /etc/hosts /etc/resolv.conf /proc/mounts /proc/self/mountinfo /proc/version; df; mount; getent passwd; ps -ef; uptime; logname; tty; pwd -P; stat -f .; realpath rel abs dir`,
	} {
		t.Run(name, func(t *testing.T) {
			p := imprison(t, proc.Limits{OutputBytes: 64 << 20})
			_, port, _ := net.SplitHostPort(l.Addr().String())
			script := strings.NewReplacer("SECRET", filepath.Join(p.outside, "secret"), "PID", strconv.Itoa(os.Getpid()), "PORT", port).Replace(script)
			out, errOut, _, err := run(t, p.s, bash(script))
			if err != nil {
				t.Logf("ended: %v", err)
			}
			// What the script itself says of the path is no leak; the secret is.
			if all := out + errOut; strings.Contains(all, token) {
				t.Errorf("the secret shows:\n%.2000s", all)
			}
			if strings.Contains(out, "reached") {
				t.Error("a process of the host can be signaled")
			}
			if b, err := os.ReadFile(filepath.Join(p.outside, "secret")); err != nil || string(b) != token+"\n" {
				t.Errorf("the host's file was changed: %q, %v", b, err)
			}
			entries, err := os.ReadDir(p.outside)
			if err != nil || len(entries) != 2 {
				t.Errorf("something was made on the host: %v, %v", entries, err)
			}
			select {
			case <-called:
				t.Error("a port of the host was reached")
			default:
			}
		})
	}
}

// TestNoHostNames looks for what would tell of the host in what a sandbox is shown.
func TestNoHostNames(t *testing.T) {
	p := imprison(t, proc.Limits{})
	out, errOut, _, _ := run(t, p.s, bash(`hostname; uname -a; cat /proc/*/* /etc/* 2>/dev/null; df; mount; stat -f /home/agent; ls -la /home/agent; findmnt; realpath . ; pwd -P; cat nothing; ls dir/; cd dir; mkdir -p up/x; touch abs/y; rm -r nothing; mv rel/x y`))
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for what, name := range map[string]string{"host's name": host, "temporary folder": filepath.Dir(p.outside), "working directory": must(os.Getwd())} {
		// Links of the host's own making show where they lead: they are the folder's contents.
		shown := out + errOut
		for _, link := range []string{"abs -> " + p.outside + "/secret", "dir -> " + p.outside} {
			shown = strings.ReplaceAll(shown, link, "")
		}
		if len(name) > 3 && strings.Contains(shown, name) {
			i := strings.Index(shown, name)
			t.Errorf("the %s shows: …%.200s", what, shown[max(0, i-100):])
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestArchives unpacks archives that want to write elsewhere.
func TestArchives(t *testing.T) {
	names := []string{"../made", "/home/made", "a/../../made", "link/made", "..\\made", "ok"}
	var tb, zb bytes.Buffer
	tw, zw := tar.NewWriter(&tb), zip.NewWriter(&zb)
	for _, target := range []string{"..", "/home"} {
		if err := tw.WriteHeader(&tar.Header{Name: "link", Linkname: target, Typeflag: tar.TypeSymlink, Mode: 0o777}); err != nil {
			t.Fatal(err)
		}
	}
	h := &zip.FileHeader{Name: "link"}
	h.SetMode(os.ModeSymlink | 0o777)
	w, _ := zw.CreateHeader(h)
	fmt.Fprint(w, "..")
	for _, n := range names {
		tw.WriteHeader(&tar.Header{Name: n, Mode: 0o644, Size: 4, Typeflag: tar.TypeReg})
		tw.Write([]byte("evil"))
		w, _ := zw.Create(n)
		fmt.Fprint(w, "evil")
	}
	tw.WriteHeader(&tar.Header{Name: "hard", Linkname: "../../etc/passwd", Typeflag: tar.TypeLink, Mode: 0o644})
	if tw.Close() != nil || zw.Close() != nil {
		t.Fatal("archives")
	}
	p := imprison(t, proc.Limits{})
	inside := filepath.Join(p.outside, "inside")
	for name, b := range map[string][]byte{"x.tar": tb.Bytes(), "x.zip": zb.Bytes()} {
		if err := os.WriteFile(filepath.Join(inside, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, errOut, _, err := run(t, p.s, bash(`mkdir t z; (cd t; tar xf ../x.tar); (cd z; unzip -o ../x.zip </dev/null); find / -name 'made*' -not -path '/proc/*'; cat t/ok z/ok; test t/hard -ef /etc/passwd && echo linked`))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		if strings.HasSuffix(line, "made\n") && !strings.HasPrefix(line, "/home/agent/t/") && !strings.HasPrefix(line, "/home/agent/z/") && strings.HasPrefix(line, "/") {
			t.Errorf("written outside: %s", line)
		}
	}
	if !strings.Contains(out, "evilevil") || strings.Contains(out, "linked") {
		t.Errorf("%s\n%s", out, errOut)
	}
	if entries, err := os.ReadDir(p.outside); err != nil || len(entries) != 2 {
		t.Errorf("something was made on the host: %v, %v", entries, err)
	}
}

// TestHogs lets programs take all they can. They end with an error, and the sandbox and its neighbour go on.
func TestHogs(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: takes half a minute and two gigabytes; `make unit` runs it")
	}
	neighbour := imprison(t, proc.Limits{})
	for name, script := range map[string]string{
		"variables":        `x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done`,
		"awk strings":      `awk 'BEGIN{x="aaaaaaaaaaaaaaaa"; while(1) x = x x}'`,
		"awk arrays":       `awk 'BEGIN{x=sprintf("%1000s",""); while(1) a[i++]=x i}'`,
		"jq":               `jq -n '[range(1e10)]'`,
		"sed":              `sed ':a;N;ba' < <(yes)`,
		"tac":              `yes | tac`,
		"a line":           `yes | tr -d '\n' | grep x`,
		"recursion":        `f() { f; }; f`,
		"fork bomb":        `:() { : | : & }; :; wait; false`,
		"arithmetic":       `echo $(( $(printf '(%.0s' {1..100000}) ))`,
		"regular expr.":    `printf 'a%.0s' {1..40} | grep -E '^(a|a)*(a|aa)*b$'`,
		"globs":            `x=$(printf 'a%.0s' {1..200}); [[ $x == +(a|aa|aaa)+(a|aa)b ]]`,
		"files":            `for ((i=0;;i++)); do echo > f$i || exit 1; [ $i -gt 20000 ] && exit 1; done`,
		"sparse":           `truncate -s 8E big && cat big | head -c 1G | sort > /tmp/sorted`,
		"sqlite":           `sqlite3 :memory: "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT group_concat(hex(randomblob(1000))) FROM c;"`,
		"sqlite recursion": `sqlite3 :memory: "SELECT length(zeroblob(2000000000) || zeroblob(2000000000));"`,
	} {
		t.Run(name, func(t *testing.T) {
			p := imprison(t, proc.Limits{SandboxMemory: 256 << 20, Memory: 64 << 20, OutputBytes: 16 << 20, FileBytes: 256 << 20, Processes: 64})
			_, errOut, status, err := run(t, p.s, bash("ulimit -t 10; timeout 5 bash -c '"+strings.ReplaceAll(script, "'", `'\''`)+"'"))
			if err == nil && status == 0 {
				t.Errorf("it went well? %.300s", errOut)
			}
			t.Logf("status %d, %v, %.200s", status, err, errOut)
			for who, s := range map[string]*Sandbox{"the sandbox": p.s, "its neighbour": neighbour.s} {
				if out, errOut, status, err := run(t, s, bash("echo alive | cat")); who != "the sandbox" && (out != "alive\n" || status != 0 || err != nil) {
					t.Errorf("%s: %q %q %d %v", who, out, errOut, status, err)
				}
			}
		})
	}
}
