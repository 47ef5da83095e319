package node

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/vfs"
)

// Limits of Watch. It looks at the files again and again, so that it also sees what came through S3, another sandbox of the same
// bucket, or a snapshot that was restored; what was there only between two looks it doesn't see.
const (
	maxWatched = 200_000 // files under one watch; of more there is an overflow
	maxEvents  = 10_000  // of one look; instead of more there is an overflow
	lookFirst  = 100 * time.Millisecond
	lookLast   = 5 * time.Second
	lookShare  = 20 // a look may take one part in so many of the time
)

// seen is what a look notes of a file.
type seen struct {
	dev       uint64
	ino       vfs.Ino
	size      int64
	mode      vfs.Mode
	uid, gid  uint32
	modified  int64
	directory bool
}

// watcher is one call of Watch.
type watcher struct {
	f         *files
	path      string
	recursive bool
	skip      map[string]bool // mounts that tell of the system
	full      bool            // there were too many
}

// Watch implements Files. ready is called once the first look is done. errs.Canceled is ctx's end, errs.Unavailable the
// sandbox's.
func (f *files) Watch(ctx context.Context, p string, recursive bool, ready func(), event func(api.FileEvent) error) error {
	const op = "watch"
	p, err := f.begin(ctx, op, p)
	if err != nil {
		return err
	}
	if _, err := f.ns.Stat(ctx, f.cred, "", p); err != nil {
		return fail(op, p, err)
	}
	w := &watcher{f: f, path: p, recursive: recursive, skip: map[string]bool{}}
	for _, m := range f.ns.Mounts() {
		if m.Path != p && (m.Type == "proc" || m.Type == "sysfs" || m.Type == "devtmpfs" || m.Type == "agentrun") {
			w.skip[m.Path] = true
		}
	}
	begun := time.Now()
	last, err := w.look(ctx)
	if err != nil {
		return fail(op, p, err)
	}
	ready()
	if w.full {
		if err := event(api.FileEvent{Kind: "overflow", Path: p}); err != nil {
			return err
		}
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(min(max(time.Since(begun)*lookShare, lookFirst), lookLast))
		select {
		case <-ctx.Done():
			return errs.New(errs.Canceled, op, p, ctx.Err())
		case <-f.s.done:
			return errs.Msg(errs.Unavailable, op, f.s.id, "the sandbox has ended")
		case <-timer.C:
		}
		begun = time.Now()
		was := w.full
		now, err := w.look(ctx)
		if err != nil {
			return fail(op, p, err)
		}
		select {
		case <-f.s.done: // what the look didn't find wasn't removed: the volumes are closed one after the other
			return errs.Msg(errs.Unavailable, op, f.s.id, "the sandbox has ended")
		default:
		}
		list := changes(last, now)
		took := time.Since(begun)
		if last = now; len(list) > maxEvents || w.full && !was {
			list = []api.FileEvent{{Kind: "overflow", Path: p}}
		}
		for _, e := range list {
			if err := event(e); err != nil {
				return err
			}
		}
		begun = time.Now().Add(-took) // a slow client isn't a slow look
	}
}

// look notes what is there. What can't be looked at isn't.
func (w *watcher) look(ctx context.Context) (map[string]seen, error) {
	all := make(map[string]seen)
	w.full = false
	a, err := w.f.ns.Stat(ctx, w.f.cred, "", w.path)
	if err != nil {
		return all, ctx.Err() // removed, and perhaps made again later
	}
	all[w.path] = seenOf(a)
	if a.Mode.IsDir() {
		w.dir(ctx, w.path, all)
	}
	return all, ctx.Err()
}

func seenOf(a vfs.Attr) seen {
	s := seen{dev: a.Dev, ino: a.Ino, size: a.Size, mode: a.Mode, uid: a.UID, gid: a.GID, modified: a.Mtime.UnixNano()}
	if a.Mode.IsDir() {
		s.size, s.modified = 0, 0 // its entries tell
	}
	return s
}

func (w *watcher) dir(ctx context.Context, dir string, all map[string]seen) {
	entries, err := w.f.ns.ReadDir(ctx, w.f.cred, "", dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return
		}
		p := path.Join(dir, e.Name)
		if !utf8.ValidString(e.Name) || hidden(e.Name) || w.skip[p] {
			continue
		}
		if len(all) >= maxWatched {
			w.full = true
			return
		}
		a, err := w.f.ns.Lstat(ctx, w.f.cred, "", p)
		if err != nil {
			continue
		}
		all[p] = seenOf(a)
		if w.recursive && a.Mode.IsDir() {
			w.dir(ctx, p, all)
		}
	}
}

// identity finds a file again under another name.
type identity struct {
	dev uint64
	ino vfs.Ino
}

// changes are the events between two looks: what was removed or has another name first, then what is new or different.
func changes(before, after map[string]seen) []api.FileEvent {
	var gone, made, out []api.FileEvent
	moved := make(map[identity]string)
	for p, s := range before {
		if _, ok := after[p]; !ok {
			moved[identity{s.dev, s.ino}] = p
		}
	}
	renamed := make(map[string]string) // by the former name
	for p, s := range after {
		old, was := before[p]
		from, has := moved[identity{s.dev, s.ino}]
		switch {
		case !was && has && sameFile(before[from], s) && renamed[from] == "":
			renamed[from] = p
		case !was:
			made = append(made, api.FileEvent{Kind: "create", Path: p})
		case old.changed(s):
			made = append(made, api.FileEvent{Kind: "write", Path: p})
		case old.mode != s.mode || old.uid != s.uid || old.gid != s.gid:
			made = append(made, api.FileEvent{Kind: "chmod", Path: p})
		}
	}
	for p := range before {
		if _, ok := after[p]; ok {
			continue
		}
		to := renamed[p]
		switch {
		case to == "":
			gone = append(gone, api.FileEvent{Kind: "remove", Path: p})
		case !inRenamed(renamed, p, to):
			gone = append(gone, api.FileEvent{Kind: "rename", Path: p, To: to})
		}
	}
	order := func(a, b api.FileEvent) int { return cmp.Compare(a.Path, b.Path) }
	slices.SortFunc(gone, func(a, b api.FileEvent) int { return -order(a, b) }) // files before their directories
	slices.SortFunc(made, order)
	return append(append(out, gone...), made...)
}

// inRenamed tells whether a file has another name because a directory above it has.
func inRenamed(renamed map[string]string, from, to string) bool {
	dir := path.Dir(from)
	up, ok := renamed[dir]
	return ok && strings.TrimSuffix(to, "/"+path.Base(from)) == up && path.Base(from) == path.Base(to)
}

func sameFile(a, b seen) bool {
	return a.directory == b.directory && a.mode&vfs.ModeType == b.mode&vfs.ModeType
}

// changed tells whether the content is another.
func (s seen) changed(t seen) bool {
	return s.size != t.size || s.modified != t.modified || s.mode&vfs.ModeType != t.mode&vfs.ModeType
}
