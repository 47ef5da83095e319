package rest_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
	"agentrun.dev/serve/rest"
)

// TestFiles sends files in and out.
func TestFiles(t *testing.T) {
	s := newService(t, rest.Options{MaxUpload: 1 << 20})
	s.template("plain", api.TemplateSpec{})
	s.sandbox("one")
	ctx := t.Context()
	data := bytes.Repeat([]byte("0123456789"), 10_000)
	info, err := s.WriteFile(ctx, "one", "dir/sub/ä b.txt", 0o640, bytes.NewReader(data), int64(len(data)))
	if err != nil || info.Size != int64(len(data)) || info.Mode != 0o640 || info.Path != "/workspace/dir/sub/ä b.txt" || info.Type != "file" {
		t.Fatalf("write: %+v, %v", info, err)
	}
	read := func(offset, length int64) string {
		t.Helper()
		r, err := s.ReadFileAt(ctx, "one", "/workspace/dir/sub/ä b.txt", offset, length)
		if err != nil {
			t.Error(err)
			return ""
		}
		defer r.Close()
		b, err := io.ReadAll(r)
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	if read(0, -1) != string(data) || read(5, 7) != "5678901" || read(99_998, 100) != "89" || read(99_999, -1) != "9" {
		t.Error("what is read isn't what was written")
	}
	if _, err := s.ReadFileAt(ctx, "one", "dir/sub/ä b.txt", 100_000, -1); !errs.Is(err, errs.Invalid) {
		t.Errorf("beyond the end: %v", err)
	}
	r := s.do("GET", "/v1/sandboxes/one/files?path=dir/sub/%C3%A4%20b.txt", "", "Range", "bytes=-3")
	if text := body(t, r); r.StatusCode != 206 || text != "789" || r.Header.Get("Content-Range") != "bytes 99997-99999/100000" ||
		!strings.HasPrefix(r.Header.Get("Content-Disposition"), "attachment; filename*=utf-8''") || r.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("a range: %s %q %v", r.Status, text, r.Header)
	}
	r = s.do("HEAD", "/v1/sandboxes/one/files?path=dir/sub/%C3%A4%20b.txt", "")
	if body(t, r) != "" || r.StatusCode != 200 || r.ContentLength != 100_000 {
		t.Errorf("head: %s, %d", r.Status, r.ContentLength)
	}
	for _, p := range []string{"a", "b", "c"} {
		if _, err := s.WriteFile(ctx, "one", "many/"+p, 0, strings.NewReader(p), 1); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for p := (client.Page{Limit: 2}); ; {
		page, err := s.ListFiles(ctx, "one", "many", 1, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range page.Files {
			names = append(names, f.Name)
		}
		if p.Cursor = page.Next; p.Cursor == "" {
			break
		}
	}
	if strings.Join(names, "") != "abc" {
		t.Errorf("list: %v", names)
	}
	if info, err := s.MoveFile(ctx, "one", "many/a", "many/z"); err != nil || info.Name != "z" {
		t.Errorf("move: %+v, %v", info, err)
	}
	if info, err := s.MakeDirectory(ctx, "one", "new/deep"); err != nil || info.Type != "directory" {
		t.Errorf("mkdir: %+v, %v", info, err)
	}
	if err := s.RemoveFile(ctx, "one", "many", false); !errs.Is(err, errs.NotEmpty) {
		t.Errorf("remove a directory: %v", err)
	}
	if err := s.RemoveFile(ctx, "one", "many", true); err != nil {
		t.Error(err)
	}
	if _, err := s.StatFile(ctx, "one", "many"); !errs.Is(err, errs.NotFound) {
		t.Errorf("stat: %v", err)
	}
	big := bytes.NewReader(make([]byte, 1<<20+1))
	if _, err := s.WriteFile(ctx, "one", "big", 0, big, int64(big.Len())); !errs.Is(err, errs.TooLarge) {
		t.Errorf("too large: %v", err)
	}
	if _, err := s.WriteFile(ctx, "one", "big", 0, io.LimitReader(zeros{}, 1<<20+1), -1); !errs.Is(err, errs.TooLarge) {
		t.Errorf("too large, and doesn't say so: %v", err)
	}
	if _, err := s.StatFile(ctx, "one", "big"); !errs.Is(err, errs.NotFound) {
		t.Errorf("something is left of it: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// TestWatch sees a change that a command makes.
func TestWatch(t *testing.T) {
	s := newService(t, rest.Options{})
	s.template("plain", api.TemplateSpec{})
	s.sandbox("one")
	err := s.WatchFiles(t.Context(), "one", ".", true, func(e *api.FileEvent) error {
		if e.Kind == "ready" {
			if _, err := s.Run(t.Context(), "one", api.Run{Code: "echo x >seen"}); err != nil {
				return err
			}
		}
		if e.Path == "/workspace/seen" {
			return io.EOF
		}
		return nil
	})
	if err != io.EOF {
		t.Error(err)
	}
}

// TestTruncatedUpload cuts the connection in the middle of a file: nothing of it is there.
func TestTruncatedUpload(t *testing.T) {
	s := newService(t, rest.Options{})
	s.template("plain", api.TemplateSpec{})
	s.sandbox("one")
	if _, err := s.WriteFile(t.Context(), "one", "f", 0, strings.NewReader("old"), 3); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "PUT /v1/sandboxes/one/files?path=f HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\nnew", rootKey)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(conn)
	conn.Close()
	if !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
		t.Errorf("answer: %.200s", answer)
	}
	r, err := s.ReadFile(t.Context(), "one", "f")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if b, _ := io.ReadAll(r); string(b) != "old" {
		t.Errorf("the file is %q", b)
	}
}
