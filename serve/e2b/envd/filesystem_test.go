package envd_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"connectrpc.com/connect"

	filesystempb "agentrun.dev/api/gen/e2b/filesystem"
	"agentrun.dev/serve/e2b/envd"
)

func (s *sandbox) stat(path string) (*filesystempb.EntryInfo, error) {
	r, err := s.files.Stat(s.t.Context(), connect.NewRequest(&filesystempb.StatRequest{Path: path}))
	if err != nil {
		return nil, err
	}
	return r.Msg.GetEntry(), nil
}

func (s *sandbox) list(path string, depth uint32) (string, error) {
	r, err := s.files.ListDir(s.t.Context(), connect.NewRequest(&filesystempb.ListDirRequest{Path: path, Depth: depth}))
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, e := range r.Msg.GetEntries() {
		fmt.Fprintf(&out, "%s %s %d\n", e.GetPath(), e.GetPermissions(), e.GetType())
	}
	return out.String(), nil
}

// write writes a file as it is.
func (s *sandbox) write(path, text string, header ...string) {
	s.t.Helper()
	if code, _, body := s.do(http.MethodPost, "/files?path="+path, strings.NewReader(text), append([]string{"Content-Type", "application/octet-stream"}, header...)...); code != 200 {
		s.t.Fatalf("%s: %d %s", path, code, body)
	}
}

func TestEntries(t *testing.T) {
	s := newWorld(t, envd.Options{}).sandbox()
	s.write("dir/file", "text", "X-Metadata-Author", "me")
	s.run("cd dir; chmod 640 file; ln -s file link; ln -s link twice; ln -s /nowhere dangling; ln -s /tmp place; mkfifo fifo; mkdir -m 1777 sub; touch sub/x; ln -s loop loop; sleep 0")
	e, err := s.stat("dir/file")
	if err != nil {
		t.Fatal(err)
	}
	if e.GetName() != "file" || e.GetPath() != "/home/user/dir/file" || e.GetType() != filesystempb.FileType_FILE_TYPE_FILE || e.GetSize() != 4 || e.GetMode() != 0o640 ||
		e.GetPermissions() != "-rw-r-----" || e.GetOwner() != "user" || e.GetGroup() != "user" || e.GetModifiedTime().AsTime().IsZero() || e.SymlinkTarget != nil ||
		e.GetIsSymlink() || e.GetMetadata()["author"] != "me" {
		t.Errorf("%v", e)
	}
	for name, want := range map[string]string{
		"dir": "/home/user/dir 2 drwxr-xr-x 493  false", "dir/twice": "/home/user/dir/twice 1 Lrwxrwxrwx 416 /home/user/dir/file true",
		"dir/place": "/home/user/dir/place 2 Lrwxrwxrwx 511 /tmp true", "dir/dangling": "/home/user/dir/dangling 3 Lrwxrwxrwx 511 /home/user/dir/dangling true",
		"dir/loop": "/home/user/dir/loop 3 Lrwxrwxrwx 511 /home/user/dir/loop true", "~/dir/sub": "/home/user/dir/sub 2 dtrwxrwxrwx 511  false",
		"/etc/../etc": "/etc 2 drwxr-xr-x 493  false",
	} {
		e, err := s.stat(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := fmt.Sprint(e.GetPath(), " ", int(e.GetType()), " ", e.GetPermissions(), " ", e.GetMode(), " ", e.GetSymlinkTarget(), " ", e.GetIsSymlink()); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if e.GetType() == filesystempb.FileType_FILE_TYPE_DIRECTORY && !e.GetIsSymlink() && e.GetSize() == 0 {
			t.Errorf("%s has no size", name)
		}
	}
	got, err := s.list("dir", 0)
	if err != nil || strings.Count(got, "\n") != 8 || strings.Contains(got, "sub/x") {
		t.Errorf("%s, %v", got, err)
	}
	got, err = s.list("dir", 2)
	if err != nil || !strings.Contains(got, "/home/user/dir/sub dtrwxrwxrwx 2\n/home/user/dir/sub/x -rw-r--r-- 1\n/home/user/dir/twice ") {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := s.list("dir/place", 1); err != nil || strings.Contains(got, "/tmp") {
		t.Errorf("through a link: %s, %v", got, err)
	}
	for name, code := range map[string]connect.Code{"nothing": connect.CodeNotFound, "dir/file": connect.CodeInvalidArgument, "dir/dangling": connect.CodeNotFound, "~root/x": connect.CodeInvalidArgument} {
		if _, err := s.list(name, 1); connect.CodeOf(err) != code {
			t.Errorf("list %s: %v", name, err)
		}
	}
	for name, code := range map[string]connect.Code{"nothing": connect.CodeNotFound, "dir/file/x": connect.CodeNotFound, "a\x00b": connect.CodeInvalidArgument, strings.Repeat("x/", 3000): connect.CodeInvalidArgument} {
		if _, err := s.stat(name); connect.CodeOf(err) != code && connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("stat %.20s: %v", name, err)
		}
	}
}

func TestMakeMoveRemove(t *testing.T) {
	s := newWorld(t, envd.Options{}).sandbox()
	ctx := t.Context()
	mkdir := func(p string, header ...string) error {
		r := connect.NewRequest(&filesystempb.MakeDirRequest{Path: p})
		for i := 0; i < len(header); i += 2 {
			r.Header().Set(header[i], header[i+1])
		}
		m, err := s.files.MakeDir(ctx, r)
		if err == nil && m.Msg.GetEntry().GetType() != filesystempb.FileType_FILE_TYPE_DIRECTORY {
			t.Errorf("%v", m.Msg)
		}
		return err
	}
	move := func(from, to string) error {
		m, err := s.files.Move(ctx, connect.NewRequest(&filesystempb.MoveRequest{Source: from, Destination: to}))
		if err == nil && m.Msg.GetEntry().GetName() == "" {
			t.Errorf("%v", m.Msg)
		}
		return err
	}
	remove := func(p string) error {
		_, err := s.files.Remove(ctx, connect.NewRequest(&filesystempb.RemoveRequest{Path: p}))
		return err
	}
	s.write("file", "text")
	for _, c := range []struct {
		what string
		err  error
		code connect.Code
	}{
		{"make", mkdir("a/b"), 0}, {"make again", mkdir("a/b"), connect.CodeAlreadyExists}, {"make a file", mkdir("file"), connect.CodeInvalidArgument},
		{"make at the root", mkdir("/srv/x"), 0}, {"make as root", mkdir("x", "Authorization", asRoot), 0},
		{"move", move("file", "new/dir/file"), 0}, {"move nothing", move("file", "x"), connect.CodeNotFound}, {"move over it", move("a", "new"), connect.CodeFailedPrecondition},
		{"remove", remove("new"), 0}, {"remove nothing", remove("new"), 0}, {"remove the root", remove("/"), connect.CodePermissionDenied},
	} {
		if c.err != nil && connect.CodeOf(c.err) != c.code || c.err == nil && c.code != 0 {
			t.Errorf("%s: %v", c.what, c.err)
		}
	}
	if x := s.run("stat -c '%n %U' /srv/x a/b; ls"); x.out != "/srv/x user\na/b user\na\n" {
		t.Errorf("%+v", x)
	}
	if x := s.run("stat -c '%n %U' /root/x", "Authorization", asRoot); x.out != "/root/x root\n" {
		t.Errorf("%+v", x)
	}
}

func (s *sandbox) watch(path string, recursive bool) *connect.ServerStreamForClient[filesystempb.WatchDirResponse] {
	s.t.Helper()
	w, err := s.files.WatchDir(s.t.Context(), connect.NewRequest(&filesystempb.WatchDirRequest{Path: path, Recursive: recursive, IncludeEntry: true}))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { w.Close() })
	if !w.Receive() || w.Msg().GetStart() == nil {
		s.t.Fatalf("it doesn't begin: %v", w.Err())
	}
	return w
}

func names(list []*filesystempb.FilesystemEvent) string {
	var out []string
	for _, e := range list {
		kind := strings.ToLower(strings.TrimPrefix(e.GetType().String(), "EVENT_TYPE_"))
		if e.GetEntry() != nil {
			kind += "+"
		}
		out = append(out, kind+" "+e.GetName())
	}
	return strings.Join(out, ", ")
}

func TestWatchDir(t *testing.T) {
	s := newWorld(t, envd.Options{}).sandbox()
	s.run("mkdir -p w/sub; echo 1 >w/old")
	w := s.watch("w", true)
	s.write("w/sub/new", "text")
	s.write("w/old", "more")
	s.run("rm w/old; mv w/sub/new w/new; chmod 600 w/new")
	var all []*filesystempb.FilesystemEvent
	for !strings.HasSuffix(names(all), "chmod+ new") && w.Receive() {
		if e := w.Msg().GetFilesystem(); e != nil {
			all = append(all, e)
		}
	}
	got := names(all)
	if !strings.HasPrefix(got, "create+ sub/new, chmod+ sub/new, write+ sub/new, write+ old, ") || !strings.Contains(got, "remove old") || !strings.Contains(got, "rename sub/new") && !strings.Contains(got, "remove sub/new") {
		t.Error(got, w.Err())
	}
	for name, code := range map[string]connect.Code{"nothing": connect.CodeNotFound, "w/new": connect.CodeInvalidArgument} {
		stream, err := s.files.WatchDir(t.Context(), connect.NewRequest(&filesystempb.WatchDirRequest{Path: name}))
		if err == nil {
			stream.Receive()
			err = stream.Err()
			stream.Close()
		}
		if connect.CodeOf(err) != code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWatchers(t *testing.T) {
	s := newWorld(t, envd.Options{}).sandbox()
	ctx := t.Context()
	create := func(path string, recursive bool) (string, error) {
		m, err := s.files.CreateWatcher(ctx, connect.NewRequest(&filesystempb.CreateWatcherRequest{Path: path, Recursive: recursive}))
		if err != nil {
			return "", err
		}
		return m.Msg.GetWatcherId(), nil
	}
	get := func(s *sandbox, id string) (string, error) {
		m, err := s.files.GetWatcherEvents(ctx, connect.NewRequest(&filesystempb.GetWatcherEventsRequest{WatcherId: id}))
		if err != nil {
			return "", err
		}
		return names(m.Msg.GetEvents()), nil
	}
	s.run("mkdir -p w/sub")
	id, err := create("w", false)
	if err != nil {
		t.Fatal(err)
	}
	all, err := create("/", true)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want string) {
		t.Helper()
		if got, err := get(s, id); got != want || err != nil {
			t.Errorf("%q, want %q, %v", got, want, err)
		}
	}
	expect("")
	s.write("w/a", "text")
	s.write("w/sub/not", "seen")
	expect("create a, chmod a, write a")
	s.write("w/a", "other")
	s.run("touch w/empty; mkdir w/dir")
	expect("write a, create dir, chmod dir, create empty, chmod empty")
	s.run("mv w/a w/b")
	expect("rename a, create b")
	s.run("rm -r w")
	if got, err := get(s, id); err != nil || !strings.Contains(got, "remove sub, ") {
		t.Error(got, err)
	}
	s.run("mkdir w; echo x >w/again")
	expect("create again, chmod again, write again")
	if got, err := get(s, all); err != nil || !strings.Contains(got, "write home/user/w/again") || strings.Contains(got, " proc/") {
		t.Error(got, err)
	}
	if _, err := get(s.world.sandbox(), id); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("another sandbox's: %v", err)
	}
	for range 2 {
		_, err = s.files.RemoveWatcher(ctx, connect.NewRequest(&filesystempb.RemoveWatcherRequest{WatcherId: id}))
	}
	if _, err2 := get(s, id); connect.CodeOf(err) != connect.CodeNotFound || connect.CodeOf(err2) != connect.CodeNotFound {
		t.Errorf("removed: %v, %v", err, err2)
	}
	if _, err := create("nothing", false); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("nothing: %v", err)
	}
	for n := 0; err == nil || connect.CodeOf(err) != connect.CodeResourceExhausted; n++ {
		if _, err = create("w", false); n > 1000 {
			t.Fatal("there is no end of watchers")
		}
	}
}

// TestVanish has clients that go in the middle of everything: nothing of them is left.
func TestVanish(t *testing.T) {
	w := newWorld(t, envd.Options{})
	s := w.sandbox()
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		x := s.start(ctx, shell("sleep 1000"), "Connect-Timeout-Ms", "60000")
		stream, err := s.files.WatchDir(ctx, connect.NewRequest(&filesystempb.WatchDirRequest{Path: "/tmp"}))
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		stream.Close()
		x.stream.Close()
	}
	if x := s.run("echo there"); x.out != "there\n" {
		t.Errorf("%+v", x)
	}
	w.until("no stream of theirs is left", func() bool {
		all := make([]byte, 1<<20)
		all = all[:runtime.Stack(all, true)]
		return !bytes.Contains(all, []byte("envd.processes.follow(")) && !bytes.Contains(all, []byte("envd.filesystem.WatchDir("))
	})
}
