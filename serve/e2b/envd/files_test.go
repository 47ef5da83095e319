package envd_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"testing"

	"agentrun.dev/serve/e2b/envd"
)

// form makes a form of files as the SDKs do: the path is the file's name.
func form(t testing.TB, files ...string) (contentType string, body *bytes.Buffer) {
	t.Helper()
	body = &bytes.Buffer{}
	w := multipart.NewWriter(body)
	for i := 0; i < len(files); i += 2 {
		p, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name="file"; filename="%s"`, files[i])}, "Content-Type": {"application/octet-stream"}})
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(p, files[i+1])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), body
}

func zip(text string) *bytes.Buffer {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return &b
}

func TestUpload(t *testing.T) {
	s := newWorld(t, envd.Options{}).sandbox()
	kind, body := form(t, "a/b.txt", "one", "/opt/ü ö.txt", "two", "~/c", "")
	code, _, got := s.do(http.MethodPost, "/files", body, "Content-Type", kind, "X-Metadata-Made-By", "me")
	var list []struct {
		Name, Path, Type string
		Metadata         map[string]string
	}
	if err := json.Unmarshal([]byte(got), &list); err != nil || code != 200 || len(list) != 3 || list[0].Name != "b.txt" || list[0].Path != "/home/user/a/b.txt" || list[0].Type != "file" ||
		list[1].Path != "/opt/ü ö.txt" || list[2].Path != "/home/user/c" || list[2].Metadata["made-by"] != "me" {
		t.Fatalf("%d %s", code, got)
	}
	if x := s.run("cat a/b.txt '/opt/ü ö.txt'; stat -c '%U %a' c /opt"); x.out != "onetwouser 644\nroot 755\n" && x.out != "onetwouser 644\nuser 755\n" {
		t.Errorf("%+v", x)
	}
	kind, body = form(t, "ignored", "by path")
	if code, _, got := s.do(http.MethodPost, "/files?path=by-path", body, "Content-Type", kind); code != 200 || got != `[{"name":"by-path","path":"/home/user/by-path","type":"file"}]` {
		t.Errorf("%d %s", code, got)
	}
	kind, body = form(t, "root", "of root")
	if code, _, got := s.do(http.MethodPost, "/files?username=root", body, "Content-Type", kind); code != 200 || !strings.Contains(got, `"/root/root"`) {
		t.Errorf("%d %s", code, got)
	}
	// Metadata goes with what it was of.
	s.write("c", "anew")
	if e, err := s.stat("c"); err != nil || len(e.GetMetadata()) != 0 {
		t.Errorf("%v, %v", e, err)
	}
	if code, _, got := s.do(http.MethodPost, "/files?path=zipped", zip(strings.Repeat("z", 100_000)), "Content-Type", "application/octet-stream", "Content-Encoding", "gzip"); code != 200 {
		t.Errorf("%d %s", code, got)
	}
	if x := s.run("wc -c <zipped; chmod 600 zipped"); x.out != "100000\n" {
		t.Errorf("%+v", x)
	}
	s.write("zipped", "again")
	if x := s.run("stat -c %a zipped"); x.out != "600\n" {
		t.Errorf("the mode isn't kept: %+v", x)
	}
}

func TestUploadRefused(t *testing.T) {
	s := newWorld(t, envd.Options{}).sandbox()
	s.run("mkdir dir; ln -s /etc link; ln -s self self")
	twice, twiceBody := form(t, "x", "1", "./x", "2")
	cut, cutBody := form(t, "cut", strings.Repeat("text", 1000))
	cutBody.Truncate(3000)
	unnamed, unnamedBody := form(t, "", "1")
	for _, c := range []struct {
		name, query, kind string
		body              io.Reader
		header            []string
		code              int
	}{
		{"no path", "", "application/octet-stream", strings.NewReader("x"), nil, 400},
		{"an empty path", "?path=", "application/octet-stream", strings.NewReader("x"), nil, 400},
		{"a directory", "?path=dir", "application/octet-stream", strings.NewReader("x"), nil, 400},
		{"a loop", "?path=self", "application/octet-stream", strings.NewReader("x"), nil, 400},
		{"beneath a file", "?path=/etc/passwd/x", "application/octet-stream", strings.NewReader("x"), nil, 400},
		{"NUL", "?path=a%00b", "application/octet-stream", strings.NewReader("x"), nil, 400},
		{"not UTF-8", "?path=%ff", "application/octet-stream", strings.NewReader("x"), nil, 400},
		{"a long path", "?path=" + strings.Repeat("x", 5000), "application/octet-stream", strings.NewReader("x"), nil, 400},
		{"a long name", "?path=" + strings.Repeat("x", 300), "application/octet-stream", strings.NewReader("x"), nil, 400},
		{"another user", "?path=x&username=bob", "application/octet-stream", strings.NewReader("x"), nil, 401},
		{"not gzip", "?path=x", "application/octet-stream", strings.NewReader("x"), []string{"Content-Encoding", "gzip"}, 400},
		{"half of gzip", "?path=x", "application/octet-stream", bytes.NewReader(zip(strings.Repeat("abc", 1000)).Bytes()[:20]), []string{"Content-Encoding", "gzip"}, 400},
		{"another encoding", "?path=x", "application/octet-stream", strings.NewReader("x"), []string{"Content-Encoding", "br"}, 415},
		{"another type", "?path=x", "text/plain", strings.NewReader("x"), nil, 415},
		{"twice", "", twice, twiceBody, nil, 400},
		{"cut off", "", cut, cutBody, nil, 400},
		{"no name", "", unnamed, unnamedBody, nil, 400},
		{"no boundary", "", "multipart/form-data", strings.NewReader("x"), nil, 400},
		{"no form", "", "multipart/form-data; boundary=x", strings.NewReader("nothing"), nil, 400},
		{"the system", "?path=/proc/version", "application/octet-stream", strings.NewReader("x"), nil, 403},
	} {
		code, _, got := s.do(http.MethodPost, "/files"+c.query, c.body, append([]string{"Content-Type", c.kind}, c.header...)...)
		var e struct {
			Code    int
			Message string
		}
		if code != c.code || json.Unmarshal([]byte(got), &e) != nil || e.Code != code || e.Message == "" {
			t.Errorf("%s: %d %s", c.name, code, got)
		}
	}
	if x := s.run("ls -A | grep -v -e dir -e link -e self -e '^x$' -e bash; cat x"); x.out != "1" {
		t.Errorf("something was written: %+v", x)
	}
	if code, _, got := s.at("gone").do(http.MethodPost, "/files?path=x", strings.NewReader("x")); code != 502 || !strings.Contains(got, "was not found") {
		t.Errorf("%d %s", code, got)
	}
}

func TestDownload(t *testing.T) {
	s := newWorld(t, envd.Options{}).sandbox()
	text := strings.Repeat("0123456789", 10_000)
	s.write("big.txt", text)
	s.write("empty", "")
	s.write("page.html", "<script>")
	s.run("ln -s big.txt link; mkfifo fifo")
	get := func(path string, header ...string) (int, http.Header, string) {
		t.Helper()
		return s.do(http.MethodGet, "/files?path="+url.QueryEscape(path), nil, header...)
	}
	for _, name := range []string{"big.txt", "link", "/home/user/big.txt", "~/big.txt"} {
		if code, h, got := get(name, "Accept-Encoding", "gzip, deflate"); code != 200 || got != text || h.Get("Content-Length") != "100000" || h.Get("Content-Encoding") != "" {
			t.Errorf("%s: %d %v, %d bytes", name, code, h, len(got))
		}
	}
	code, h, got := get("big.txt", "Accept-Encoding", "gzip")
	if z, err := gzip.NewReader(strings.NewReader(got)); code != 200 || h.Get("Content-Encoding") != "gzip" || err != nil {
		t.Errorf("%d %v", code, h)
	} else if b, err := io.ReadAll(z); err != nil || string(b) != text {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if code, h, got := get("empty"); code != 200 || got != "" || h.Get("Content-Length") != "0" {
		t.Errorf("%d %v", code, h)
	}
	if code, h, got := get("/proc/version"); code != 200 || got == "" || h.Get("Accept-Ranges") == "" {
		t.Errorf("%d %v %q", code, h, got)
	}
	if code, h, _ := get("page.html"); code != 200 || !strings.HasPrefix(h.Get("Content-Type"), "text/plain") || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %v", code, h)
	}
	for r, want := range map[string]string{"bytes=0-4": "01234", "bytes=99998-": "89", "bytes=-3": "789", "bytes=5-5": "5"} {
		if code, h, got := get("big.txt", "Range", r, "Accept-Encoding", "gzip"); code != 206 || got != want || !strings.HasSuffix(h.Get("Content-Range"), "/100000") {
			t.Errorf("%s: %d %q %v", r, code, got, h)
		}
	}
	if code, _, _ := get("big.txt", "Range", "bytes=100000-"); code != 416 {
		t.Error(code)
	}
	if code, h, got := s.do(http.MethodHead, "/files?path=big.txt", nil); code != 200 || got != "" || h.Get("Content-Length") != "100000" {
		t.Errorf("%d %v", code, h)
	}
	for path, want := range map[string]string{"nothing": "404 path '/home/user/nothing' does not exist", "/etc": "400 path '/etc' is a directory", "": "400 path '/home/user' is a directory",
		"fifo": "400 ", "~bob/x": "400 ", "a\x00": "400 "} {
		code, _, got := get(path)
		var e struct{ Message string }
		_ = json.Unmarshal([]byte(got), &e)
		if !strings.HasPrefix(fmt.Sprintf("%d %s", code, e.Message), want) || e.Message == "" {
			t.Errorf("%q: %d %s", path, code, got)
		}
	}
}

func TestCompose(t *testing.T) {
	s := newWorld(t, envd.Options{}).sandbox()
	s.write("p1", "one ")
	s.write("p2", "two")
	post := func(body string) (int, string) {
		code, _, got := s.do(http.MethodPost, "/files/compose", strings.NewReader(body), "Content-Type", "application/json")
		return code, got
	}
	for body, want := range map[string]int{`{`: 400, `{}`: 400, `{"source_paths":["p1"]}`: 400, `{"source_paths":["p1","nothing"],"destination":"x"}`: 404, `{"source_paths":["p1"],"destination":"./p1"}`: 400, `{"source_paths":["/tmp"],"destination":"x"}`: 400} {
		if code, got := post(body); code != want {
			t.Errorf("%s: %d %s", body, code, got)
		}
	}
	if code, got := post(`{"source_paths":["p1","p2"],"destination":"sub/all","newer":1}`); code != 200 || got != `{"name":"all","path":"/home/user/sub/all","type":"file"}` {
		t.Errorf("%d %s", code, got)
	}
	if x := s.run("cat sub/all; ls p1 p2 2>/dev/null"); x.out != "one two" {
		t.Errorf("%+v", x)
	}
}

func TestUnknown(t *testing.T) {
	s := newWorld(t, envd.Options{}).sandbox()
	if code, _, _ := s.do(http.MethodGet, "/health", nil); code != 204 {
		t.Error(code)
	}
	for path, want := range map[string]string{"/process.Process/Freeze": `"code":"unimplemented"`, "/newer": `"code":404`, "/filesystem.Filesystem/": `"code":"unimplemented"`, "/": `"code":404`} {
		if code, _, got := s.do(http.MethodPost, path, strings.NewReader("{}"), "Content-Type", "application/json"); code != 404 || !strings.Contains(got, want) || !strings.Contains(got, "envd "+envd.Version) {
			t.Errorf("%s: %d %s", path, code, got)
		}
	}
	// Unknown fields are a newer client's.
	if code, _, got := s.do(http.MethodPost, "/filesystem.Filesystem/Stat", strings.NewReader(`{"path":"/tmp","newer":{"a":[1]}}`), "Content-Type", "application/json"); code != 200 || !strings.Contains(got, `"drwxrwxrwx`) && !strings.Contains(got, `dtrwxrwxrwx`) {
		t.Errorf("%d %s", code, got)
	}
	for _, c := range [][2]string{{"{", "application/json"}, {"\xff\xff", "application/proto"}, {strings.Repeat("[", 1000), "application/json"}} {
		if code, _, got := s.do(http.MethodPost, "/filesystem.Filesystem/Stat", strings.NewReader(c[0]), "Content-Type", c[1]); code != 400 {
			t.Errorf("%q: %d %s", c[0], code, got)
		}
	}
	if code, _, _ := s.do(http.MethodPost, "/filesystem.Filesystem/Stat", strings.NewReader("{}"), "Content-Type", "text/html"); code != 415 {
		t.Error(code)
	}
	for _, frame := range []string{"", "\x00", "\x00\x00\x00\x00\x09{}", "\x00\xff\xff\xff\xff{}", "\x02\x00\x00\x00\x00"} {
		code, _, got := s.do(http.MethodPost, "/process.Process/Start", strings.NewReader(frame), "Content-Type", "application/connect+json")
		if code != 200 || !strings.Contains(got, `"error"`) {
			t.Errorf("%q: %d %q", frame, code, got)
		}
	}
}

// A form of several files that is cut off in the last one: those before are there, and the answer is about the one that isn't.
func TestUploadCutOff(t *testing.T) {
	s := newWorld(t, envd.Options{}).sandbox()
	large := strings.Repeat("0123456789abcdef", 20_000)
	kind, body := form(t, "first", "one", "second", large)
	cut := bytes.NewReader(body.Bytes()[:body.Len()-len(large)/2])
	if code, _, got := s.do(http.MethodPost, "/files", cut, "Content-Type", kind); code != http.StatusBadRequest || !strings.Contains(got, "/home/user/second: the ") {
		t.Errorf("%d %s", code, got)
	}
	kind, body = form(t, "third", large, "fourth", large[1:])
	if code, _, got := s.do(http.MethodPost, "/files", body, "Content-Type", kind); code != http.StatusOK {
		t.Errorf("%d %s", code, got)
	}
	want := fmt.Sprintf("one\nno second\n%d third\n%d fourth\n", len(large), len(large)-1)
	if x := s.run("cat first; echo; [ -e second ] || echo no second; wc -c third fourth | grep -v total | sed 's/^ *//'"); x.out != want {
		t.Errorf("%+v", x)
	}
}
