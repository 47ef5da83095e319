package envd

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"agentrun.dev/access"
	"agentrun.dev/api"
	filesystempb "agentrun.dev/api/gen/e2b/filesystem"
	"agentrun.dev/errs"
	"agentrun.dev/node"
)

const (
	metadataPrefix = "user.e2b."
	dirSize        = 4096 // as of the filesystems that clients know
	page           = 1000
	maxEntries     = 100_000 // of one listing
	maxDepth       = 256
)

// filesystem implements E2B's service of files.
type filesystem struct{ h *Handler }

// open begins work on files.
func (f filesystem) open(ctx context.Context, r connect.AnyRequest, verb access.Verb) (*work, node.Files, error) {
	w, err := f.h.begin(ctx, r.Header(), verb)
	if err != nil {
		return nil, nil, err
	}
	files, err := w.files(ctx)
	if err != nil {
		w.Close()
		return nil, nil, err
	}
	return w, files, nil
}

// Stat implements the service.
func (f filesystem) Stat(ctx context.Context, r *connect.Request[filesystempb.StatRequest]) (*connect.Response[filesystempb.StatResponse], error) {
	w, files, err := f.open(ctx, r, access.SandboxRead)
	if err != nil {
		return nil, f.h.wire(ctx, err)
	}
	defer w.Close()
	p, err := w.path(r.Msg.GetPath())
	var e *filesystempb.EntryInfo
	if err == nil {
		e, err = entry(ctx, files, p)
	}
	return answer(&filesystempb.StatResponse{Entry: e}, f.h.wire(ctx, err))
}

// entry describes a file.
func entry(ctx context.Context, files node.Files, p string) (*filesystempb.EntryInfo, error) {
	i, err := files.Stat(ctx, p)
	if errs.Is(err, errs.NotFound) {
		return nil, notFound("file not found: " + p)
	}
	if err != nil {
		return nil, err
	}
	all, err := entries(ctx, files, []api.FileInfo{*i})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// entries describe files.
func entries(ctx context.Context, files node.Files, list []api.FileInfo) ([]*filesystempb.EntryInfo, error) {
	if len(list) == 0 {
		return nil, nil
	}
	paths := make([]string, len(list))
	for i := range list {
		paths[i] = list[i].Path
	}
	details, err := files.Detail(ctx, paths, metadataPrefix)
	if err != nil {
		return nil, err
	}
	out := make([]*filesystempb.EntryInfo, len(list))
	for i := range list {
		out[i] = entryOf(&list[i], details[i])
	}
	return out, nil
}

// entryOf describes a file as clients of E2B read it: the type and the mode of a link are of what it leads to.
func entryOf(i *api.FileInfo, d node.FileDetail) *filesystempb.EntryInfo {
	e := &filesystempb.EntryInfo{Name: i.Name, Type: typeOf(i.Type), Path: i.Path, Size: i.Size, Mode: i.Mode & 0o777, Permissions: modeOf(i).String(),
		Owner: nameOf(i.UID, users), Group: nameOf(i.GID, groups), ModifiedTime: timestamppb.New(i.Modified), Metadata: d.Tags}
	switch i.Type {
	case "directory":
		e.Size = dirSize
	case "symlink":
		e.IsSymlink = true
		target := i.Path
		if d.Leads != nil {
			target, e.Type, e.Mode = d.Leads.Path, typeOf(d.Leads.Type), d.Leads.Mode&0o777
		}
		e.SymlinkTarget = &target
	}
	return e
}

func typeOf(t string) filesystempb.FileType {
	switch t {
	case "file":
		return filesystempb.FileType_FILE_TYPE_FILE
	case "directory":
		return filesystempb.FileType_FILE_TYPE_DIRECTORY
	case "symlink":
		return filesystempb.FileType_FILE_TYPE_SYMLINK
	}
	return filesystempb.FileType_FILE_TYPE_UNSPECIFIED
}

func modeOf(i *api.FileInfo) fs.FileMode {
	m := fs.FileMode(i.Mode & 0o777)
	for bit, as := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if i.Mode&bit != 0 {
			m |= as
		}
	}
	switch i.Type {
	case "directory":
		m |= fs.ModeDir
	case "symlink":
		m |= fs.ModeSymlink
	case "file":
	default:
		m |= fs.ModeIrregular
	}
	return m
}

// Names of users and groups, as sandboxes have them.
var (
	users  = map[uint32]string{0: "root", 1000: "user", 65534: "nobody"}
	groups = map[uint32]string{0: "root", 5: "tty", 1000: "user", 65534: "nogroup"}
)

func nameOf(id uint32, names map[uint32]string) string {
	if n, ok := names[id]; ok {
		return n
	}
	return strconv.FormatUint(uint64(id), 10)
}

// directory checks that there is a directory at a path.
func directory(ctx context.Context, files node.Files, p string) error {
	i, err := files.Stat(ctx, p)
	if err == nil && i.Type == "symlink" {
		var d []node.FileDetail
		if d, err = files.Detail(ctx, []string{p}, ""); err == nil {
			if i = d[0].Leads; i == nil {
				return notFound("path not found: " + p)
			}
		}
	}
	switch {
	case errs.Is(err, errs.NotFound):
		return notFound("directory not found: " + p)
	case err != nil:
		return err
	case i.Type != "directory":
		return invalid("path is not a directory: " + p)
	}
	return nil
}

// ListDir implements the service: a directory comes right before what is in it.
func (f filesystem) ListDir(ctx context.Context, r *connect.Request[filesystempb.ListDirRequest]) (*connect.Response[filesystempb.ListDirResponse], error) {
	w, files, err := f.open(ctx, r, access.SandboxRead)
	if err != nil {
		return nil, f.h.wire(ctx, err)
	}
	defer w.Close()
	out := &filesystempb.ListDirResponse{}
	out.Entries, err = f.list(ctx, w, files, r.Msg)
	return answer(out, f.h.wire(ctx, err))
}

func (f filesystem) list(ctx context.Context, w *work, files node.Files, r *filesystempb.ListDirRequest) ([]*filesystempb.EntryInfo, error) {
	p, err := w.path(r.GetPath())
	if err != nil {
		return nil, err
	}
	if err := directory(ctx, files, p); err != nil {
		return nil, err
	}
	var all []*filesystempb.EntryInfo
	err = pages(ctx, files, p, int(min(max(r.GetDepth(), 1), maxDepth)), func(list []api.FileInfo) error {
		if len(all)+len(list) > maxEntries {
			return errs.Msg(errs.Limit, "list directory", p, fmt.Sprintf("it has more than %d entries: list parts of it", maxEntries))
		}
		more, err := entries(ctx, files, list)
		all = append(all, more...)
		return err
	})
	return all, err
}

// pages lists a directory a part at a time.
func pages(ctx context.Context, files node.Files, p string, depth int, each func([]api.FileInfo) error) error {
	for after := ""; ; {
		list, more, err := files.List(ctx, p, depth, page, after)
		if err != nil {
			return err
		}
		if err := each(list); err != nil {
			return err
		}
		if !more || len(list) == 0 {
			return nil
		}
		after = list[len(list)-1].Path
	}
}

// MakeDir implements the service: directories above are made too.
func (f filesystem) MakeDir(ctx context.Context, r *connect.Request[filesystempb.MakeDirRequest]) (*connect.Response[filesystempb.MakeDirResponse], error) {
	w, files, err := f.open(ctx, r, access.SandboxExec)
	if err != nil {
		return nil, f.h.wire(ctx, err)
	}
	defer w.Close()
	e, err := f.makeDir(ctx, w, files, r.Msg.GetPath())
	return answer(&filesystempb.MakeDirResponse{Entry: e}, f.h.wire(ctx, err))
}

func (f filesystem) makeDir(ctx context.Context, w *work, files node.Files, name string) (*filesystempb.EntryInfo, error) {
	p, err := w.path(name)
	if err != nil {
		return nil, err
	}
	err = files.Mkdir(ctx, p, 0)
	if errs.Is(err, errs.Exists) {
		if directory(ctx, files, p) != nil {
			return nil, invalid("path already exists but it is not a directory: " + p)
		}
		return nil, errs.Msg(errs.Exists, "make directory", p, "directory already exists")
	}
	if err != nil {
		return nil, err
	}
	f.h.watchers.nudge(ctx, w.Sandbox.ID, p)
	return entry(ctx, files, p)
}

// Move implements the service: directories above the destination are made, and what is there is replaced, as rename(2) does.
func (f filesystem) Move(ctx context.Context, r *connect.Request[filesystempb.MoveRequest]) (*connect.Response[filesystempb.MoveResponse], error) {
	w, files, err := f.open(ctx, r, access.SandboxExec)
	if err != nil {
		return nil, f.h.wire(ctx, err)
	}
	defer w.Close()
	e, err := f.move(ctx, w, files, r.Msg)
	return answer(&filesystempb.MoveResponse{Entry: e}, f.h.wire(ctx, err))
}

func (f filesystem) move(ctx context.Context, w *work, files node.Files, r *filesystempb.MoveRequest) (*filesystempb.EntryInfo, error) {
	from, err := w.path(r.GetSource())
	if err != nil {
		return nil, err
	}
	to, err := w.path(r.GetDestination())
	if err != nil {
		return nil, err
	}
	if _, err := files.Stat(ctx, from); errs.Is(err, errs.NotFound) {
		return nil, notFound("source file not found: " + from)
	}
	if err := files.Mkdir(ctx, path.Dir(to), 0); err != nil && !errs.Is(err, errs.Exists) {
		return nil, err
	}
	if err := files.Move(ctx, from, to); err != nil {
		return nil, err
	}
	f.h.watchers.nudge(ctx, w.Sandbox.ID, from, to)
	return entry(ctx, files, to)
}

// Remove implements the service: a directory goes with all that is in it, and what isn't there is fine.
func (f filesystem) Remove(ctx context.Context, r *connect.Request[filesystempb.RemoveRequest]) (*connect.Response[filesystempb.RemoveResponse], error) {
	w, files, err := f.open(ctx, r, access.SandboxExec)
	if err != nil {
		return nil, f.h.wire(ctx, err)
	}
	defer w.Close()
	p, err := w.path(r.Msg.GetPath())
	if err == nil {
		if err = files.Remove(ctx, p, true); errs.Is(err, errs.NotFound) {
			err = nil
		}
		f.h.watchers.nudge(ctx, w.Sandbox.ID, p)
	}
	return answer(&filesystempb.RemoveResponse{}, f.h.wire(ctx, err))
}

// beneath tells whether a path is a directory or in it.
func beneath(dir, p string) bool {
	return dir == "/" || p == dir || strings.HasPrefix(p, dir+"/")
}
