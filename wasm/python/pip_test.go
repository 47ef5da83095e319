package python_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sort"
	"strings"
	"testing"

	"agentrun.dev/proc"
)

// wheel makes a wheel of one module; requires are lines of its metadata.
func wheel(t testing.TB, name, version, code string, more map[string]string, requires ...string) []byte {
	t.Helper()
	info := name + "-" + version + ".dist-info/"
	files := map[string]string{
		name + ".py":      code,
		info + "METADATA": "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\nSummary: for tests\n" + strings.Join(requires, "\n") + "\n",
		info + "WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
	}
	for k, v := range more {
		files[strings.Replace(k, "INFO/", info, 1)] = v
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	var record strings.Builder
	add := func(name, text string) {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(text))
	}
	names := make([]string, 0, len(files))
	for n := range files {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		add(n, files[n])
		sum := sha256.Sum256([]byte(files[n]))
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", n, base64.RawURLEncoding.EncodeToString(sum[:]), len(files[n]))
	}
	add(info+"RECORD", record.String()+info+"RECORD,,\n")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sdist makes a source distribution.
func sdist(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	c := gzip.NewWriter(&b)
	a := tar.NewWriter(c)
	const text = "Metadata-Version: 2.1\nName: source\nVersion: 1\n"
	a.WriteHeader(&tar.Header{Name: "source-1/PKG-INFO", Mode: 0o644, Size: int64(len(text))})
	a.Write([]byte(text))
	if err := errors.Join(a.Close(), c.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func packages(t testing.TB) map[string][]byte {
	return map[string][]byte{
		"demo-1.0-py3-none-any.whl": wheel(t, "demo", "1.0", "def main(): print('old demo')\n", nil),
		"demo-1.2-py3-none-any.whl": wheel(t, "demo", "1.2", "import dep\ndef main(): print('demo with', dep.version)\n",
			map[string]string{"INFO/entry_points.txt": "[console_scripts]\ndemo = demo:main\n"},
			"Requires-Dist: dep>=1.0,<2", "Requires-Dist: windows; sys_platform == 'win32'", "Requires-Dist: more; extra == 'all'", "Provides-Extra: all"),
		"dep-0.9-py3-none-any.whl":                       wheel(t, "dep", "0.9", "version = '0.9'\n", nil),
		"dep-1.5-py3-none-any.whl":                       wheel(t, "dep", "1.5", "version = '1.5'\n", nil),
		"dep-2.0-py3-none-any.whl":                       wheel(t, "dep", "2.0", "version = '2.0'\n", nil),
		"more-3-py3-none-any.whl":                        wheel(t, "more", "3", "version = '3'\n", nil),
		"evil-1-py3-none-any.whl":                        wheel(t, "evil", "1", "", map[string]string{"../../../../../../../task/escaped": "x"}),
		"source-1.tar.gz":                                sdist(t),
		"tagged-1-cp311-cp311-manylinux_2_17_x86_64.whl": []byte("not for this platform"),
	}
}

// index serves packages as PEP 503 has it, or PEP 691 for those who ask.
func index(t testing.TB, files map[string][]byte) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/files/{file}", func(w http.ResponseWriter, r *http.Request) { w.Write(files[r.PathValue("file")]) })
	mux.HandleFunc("/{kind}/{name}/", func(w http.ResponseWriter, r *http.Request) {
		type file struct {
			Filename string            `json:"filename"`
			URL      string            `json:"url"`
			Hashes   map[string]string `json:"hashes"`
		}
		var list []file
		for n, data := range files {
			if strings.HasPrefix(n, r.PathValue("name")+"-") {
				list = append(list, file{n, "/files/" + n, map[string]string{"sha256": fmt.Sprintf("%x", sha256.Sum256(data))}})
			}
		}
		switch {
		case len(list) == 0:
			http.NotFound(w, r)
		case r.PathValue("kind") == "json":
			w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
			json.NewEncoder(w).Encode(map[string]any{"meta": map[string]string{"api-version": "1.0"}, "name": r.PathValue("name"), "files": list})
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<!DOCTYPE html><html><body>\n")
			for _, f := range list {
				fmt.Fprintf(w, "<a href=\"%s#sha256=%s\">%s</a>\n", f.URL, f.Hashes["sha256"], f.Filename)
			}
		}
	})
	return mux
}

// fields are the words of a command; brackets right behind "import" stand for a space.
func fields(args string) []string {
	words := strings.Fields(args)
	for i, w := range words {
		if rest, ok := strings.CutPrefix(w, "import("); ok {
			words[i] = "import " + strings.Replace(rest, ")", "", 1)
		}
	}
	return words
}

// TestPip runs pip against an index in this process, and with folders.
func TestPip(t *testing.T) {
	files := packages(t)
	plain, secure := httptest.NewServer(index(t, files)), httptest.NewTLSServer(index(t, files))
	defer plain.Close()
	defer secure.Close()
	to := map[string]string{"index.example:80": plain.Listener.Addr().String(), "secure.example.com:443": secure.Listener.Addr().String(),
		"elsewhere.test:443": secure.Listener.Addr().String()}
	s := sandboxWith(t, proc.Options{Services: dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		if to[addr] == "" {
			return nil, fmt.Errorf("asked for %s", addr)
		}
		return (&net.Dialer{}).DialContext(ctx, network, to[addr])
	})})
	write(t, s, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})))
	for name, data := range files {
		write(t, s, name, string(data))
	}
	write(t, s, "requirements.txt", "# what we need\ndemo[all]>=1.1 ; python_version >= '3.8'\ndep~=1.4\n")
	sum := fmt.Sprintf("%x", sha256.Sum256(files["dep-1.5-py3-none-any.whl"]))
	write(t, s, "hashes.txt", "dep==1.5 --hash=sha256:"+sum+"\n")
	write(t, s, "wrong.txt", "dep==1.5 --hash=sha256:"+strings.Repeat("0", 64)+"\n")
	const from = " --trusted-host index.example -i http://index.example/simple"
	for _, c := range []struct {
		args   string
		status int
		want   []string // in what it says
	}{
		{"pip --version", 0, []string{"pip 22.3.1 from /usr/lib/python3.11/site-packages/pip (python 3.11)"}},
		{"pip install demo" + from, 0, []string{"Successfully installed demo-1.2 dep-1.5"}},
		{"/home/user/.local/bin/demo", 0, []string{"demo with 1.5"}},
		{"python3 -m pip install demo" + from, 0, []string{"Requirement already satisfied: demo"}},
		{"pip list", 0, []string{"demo    1.2", "dep     1.5"}},
		{"pip list --format=json", 0, []string{`{"name": "demo", "version": "1.2"}`}},
		{"pip freeze", 0, []string{"demo==1.2\ndep==1.5\n"}},
		{"pip show -f demo", 0, []string{"Version: 1.2", "Requires: dep", "../../../bin/demo"}},
		{"pip check", 0, []string{"No broken requirements found."}},
		{"pip install dep==0.9 --no-index -f .", 0, []string{"demo 1.2 requires dep<2,>=1.0, but you have dep 0.9 which is incompatible", "Successfully installed dep-0.9"}},
		{"pip check", 1, []string{"demo 1.2 has requirement dep<2,>=1.0, but you have dep 0.9."}},
		{"pip install -U dep<2" + from, 0, []string{"Successfully installed dep-1.5"}},
		{"pip install --dry-run more" + from, 0, []string{"Would install more-3"}},
		{"pip install -r requirements.txt --trusted-host index.example -i http://index.example/json", 0, []string{"Successfully installed more-3"}},
		{"pip uninstall -y demo dep more", 0, []string{"Successfully uninstalled demo-1.2", "Successfully uninstalled dep-1.5"}},
		{"pip freeze", 0, nil},
		{"pip install -t lib --no-deps ./demo-1.2-py3-none-any.whl", 0, []string{"Successfully installed demo-1.2"}},
		{"pip install -r hashes.txt --require-hashes" + from, 0, []string{"Successfully installed dep-1.5"}},
		{"pip install --force-reinstall -r wrong.txt" + from, 1, []string{"THESE PACKAGES DO NOT MATCH THE HASHES"}},
		{"pip install -U demo --retries 0 -i https://secure.example.com/simple", 1, []string{"No matching distribution"}},
		{"pip install -U demo --retries 0 --cert ca.pem -i https://elsewhere.test/simple", 1, []string{"No matching distribution"}},
		{"pip install demo --cert ca.pem -i https://secure.example.com/simple", 0, []string{"Successfully installed demo-1.2"}},
		{"pip install more --trusted-host secure.example.com -i https://secure.example.com/json", 0, []string{"Successfully installed more-3"}},
		{"pip install absent" + from, 1, []string{"No matching distribution found for absent"}},
		{"pip install tagged" + from, 1, []string{"No matching distribution found for tagged"}},
		{"pip install source" + from, 1, []string{"only wheels can be installed (source-1.tar.gz isn't one)"}},
		{"python3 -m venv env", 0, nil},
		{"env/bin/pip --version", 0, []string{"from /task/env/lib/python3.11/site-packages/pip"}},
		{"env/bin/python -m pip install demo --no-index -f .", 0, []string{"Successfully installed demo-1.2 dep-1.5"}},
		{"env/bin/demo", 0, []string{"demo with 1.5"}},
		{"env/bin/python -c import(sys);print(sys.prefix,sys.executable)", 0, []string{"/task/env /task/env/bin/python\n"}},
		{"pip install ./evil-1-py3-none-any.whl", 1, []string{"outside", "target directory"}},
	} {
		out, errOut, status := run(t, s, "", fields(c.args)...)
		for _, want := range c.want {
			if !strings.Contains(out+errOut, want) {
				t.Errorf("%s: no %q in\n%s%s", c.args, want, out, errOut)
				break
			}
		}
		if status != c.status {
			t.Errorf("%s: status %d\n%s%s", c.args, status, out, errOut)
		}
	}
	if read(s, "escaped") != "" {
		t.Error("a wheel has escaped")
	}
}

// TestNetwork: what the policy doesn't allow is denied, with what would allow it; the rest works as sockets do.
func TestNetwork(t *testing.T) {
	denied := sandbox(t, proc.Limits{})
	for _, args := range [][]string{
		{"pip", "install", "demo"}, {"pip", "install", "demo", "--trusted-host", "pypi.org", "-i", "http://pypi.org:443/simple"},
		{"python3", "-c", "import urllib.request; urllib.request.urlopen('https://pypi.org')"},
		{"python3", "-c", "import socket; socket.create_connection(('pypi.org', 443))"},
		{"python3", "-c", "import asyncio; asyncio.run(asyncio.open_connection('pypi.org', 443))"},
	} {
		out, errOut, status := run(t, denied, "", args...)
		if status == 0 || !strings.Contains(errOut, "network access is denied in this sandbox") || !strings.Contains(errOut, "a rule pypi.org:443 would allow it") {
			t.Errorf("%v: status %d\n%s%s", args, status, out, errOut)
		}
	}
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s %s", r.Method, r.URL) })
	server, secure := httptest.NewServer(echo), httptest.NewUnstartedServer(echo)
	defer server.Close()
	defer secure.Close()
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	s := sandboxWith(t, proc.Options{Services: dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		to := server
		if strings.HasSuffix(addr, ":443") {
			to = secure
		}
		return (&net.Dialer{}).DialContext(ctx, network, to.Listener.Addr().String())
	})})
	write(t, s, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})))
	out, errOut, status := run(t, s, `
import asyncio, http.client, select, socket, urllib.request
print(urllib.request.urlopen("http://a.example/x?y").read())
c = http.client.HTTPConnection("a.example")
for i in range(2):
    c.request("PUT", "/%d" % i)
    print(c.getresponse().read())
with socket.create_connection(("a.example", 80), timeout=5) as k:
    k.sendall(b"GET /raw HTTP/1.0\r\n\r\n")
    select.select([k], [], [])
    print(k.makefile("rb").read().split(b"\r\n\r\n")[1])
async def main():
    r, w = await asyncio.open_connection("a.example", 80)
    w.write(b"GET /async HTTP/1.0\r\n\r\n")
    print((await r.read()).split(b"\r\n\r\n")[1])
    w.close()
asyncio.run(main())
import ssl
for name, context in (("elsewhere.test", ssl.create_default_context(cafile="ca.pem")), ("secure.example", ssl.create_default_context())):
    try: context.wrap_socket(socket.create_connection((name, 443)), server_hostname=name)
    except ssl.SSLCertVerificationError as e: print(str(e)[:60])
with ssl.create_default_context(cafile="ca.pem").wrap_socket(socket.create_connection(("secure.example", 443)), server_hostname="example.com") as k:
    k.sendall(b"GET /tls HTTP/1.0\r\n\r\n")
    print(k.version(), k.makefile("rb").read().split(b"\r\n\r\n")[1], ("DNS", "example.com") in k.getpeercert()["subjectAltName"])
k = socket.socket()
k.settimeout(0.05)
k.connect(("a.example", 80))
try: k.recv(1)
except TimeoutError as e: print(repr(e))
try: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind(("", 80))
except PermissionError: print("only TCP")
`, "python3", "-")
	want := "b'GET /x?y'\nb'PUT /0'\nb'PUT /1'\nb'GET /raw'\nb'GET /async'\n" + strings.Repeat("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: \n", 2) + "TLSv1.3 b'GET /tls' True\nTimeoutError('timed out')\nonly TCP\n"
	if out != want || status != 0 {
		t.Errorf("status %d\n%s\nwant\n%s\n%s", status, out, want, errOut)
	}
}
