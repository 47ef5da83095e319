// Package dir is a blob.Store in a directory: a blob is a file, a slash in its name a folder.
package dir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"agentrun.dev/blob"
	"agentrun.dev/errs"
)

const (
	defaultReserve = 96 << 20
	// A look at the free space holds for so many bytes and so long.
	checkBytes = 1 << 20
	checkEvery = 50 * time.Millisecond
)

// Options tune a store. The zero value works.
type Options struct {
	// Reserve is how many bytes of the disk Append leaves free, for the records of the same disk that say what is garbage
	// and for the tables that Pebble must write. Zero means 96 MiB or 1.5 % of the disk, whichever is less; negative
	// means none.
	Reserve int64
}

// Store is a blob.Store in a directory.
type Store struct {
	root    string
	reserve int64

	mu      sync.Mutex // guards what follows
	checked time.Time
	since   int64 // bytes admitted since
	free    int64 // bytes that were free then
}

var (
	_ blob.Store    = (*Store)(nil)
	_ blob.Reopener = (*Store)(nil)
	_ blob.Puncher  = (*file)(nil)
)

// Open returns the store in a directory, which it makes if it is missing.
func Open(root string, o Options) (*Store, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, errs.New(errs.Invalid, "open", root, err)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, wrap("open", root, err)
	}
	s := &Store{root: root, reserve: o.Reserve}
	var st unix.Statfs_t
	if err := unix.Statfs(root, &st); err != nil {
		return nil, wrap("open", root, err)
	}
	if s.reserve == 0 {
		s.reserve = min(defaultReserve, int64(st.Blocks)*st.Bsize*3/200)
	}
	return s, syncDir(filepath.Dir(root))
}

func (s *Store) path(name string) string { return filepath.Join(s.root, filepath.FromSlash(name)) }

// Create implements blob.Store.
func (s *Store) Create(ctx context.Context, name string) (blob.Blob, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := blob.CheckName("create", name); err != nil {
		return nil, err
	}
	p := s.path(name)
	f, err := os.OpenFile(p, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err = s.mkdir(filepath.Dir(p)); err == nil {
			f, err = os.OpenFile(p, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		}
	}
	if err != nil {
		return nil, wrap("create", name, err)
	}
	return &file{s: s, f: f, name: name, writer: &writer{fresh: true}}, nil
}

// mkdir makes the folders above a blob, each of them durable before the next is put into it.
func (s *Store) mkdir(dir string) error {
	if dir == s.root {
		return nil
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := s.mkdir(filepath.Dir(dir)); err != nil {
			return err
		}
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return syncDir(filepath.Dir(dir))
}

// Open implements blob.Store.
func (s *Store) Open(ctx context.Context, name string) (blob.Blob, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := blob.CheckName("open", name); err != nil {
		return nil, err
	}
	f, err := openFile(s.path(name))
	if err != nil {
		return nil, wrap("open", name, err)
	}
	return &file{s: s, f: f, name: name}, nil
}

// openFile opens a plain file for reading and punching. A folder isn't a blob.
func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, unix.EISDIR) {
		return nil, fs.ErrNotExist
	}
	return f, err
}

// Reopen implements blob.Reopener.
func (s *Store) Reopen(ctx context.Context, name string, size int64) (blob.Blob, error) {
	b, err := s.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	f := b.(*file)
	have := f.Size()
	if have > size {
		if err := f.f.Truncate(size); err != nil {
			_ = f.Close()
			return nil, wrap("reopen", name, err)
		}
		have = size
	}
	f.writer = &writer{size: have, flushed: have, fresh: true}
	return f, nil
}

// List implements blob.Store.
func (s *Store) List(ctx context.Context, prefix string, f func(blob.Info) error) error {
	top := ""
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		top = prefix[:i+1]
		if blob.CheckName("list", prefix[:i]) != nil {
			return nil // no blob has such a name
		}
	}
	return s.walk(ctx, top, prefix, f)
}

func (s *Store) walk(ctx context.Context, dir, prefix string, f func(blob.Info) error) error {
	entries, err := os.ReadDir(s.path(dir))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return wrap("list", dir, err)
	}
	for _, e := range sorted(entries) {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := dir + e.Name()
		if e.IsDir() {
			name += "/"
			if strings.HasPrefix(name, prefix) || strings.HasPrefix(prefix, name) {
				if err := s.walk(ctx, name, prefix, f); err != nil {
					return err
				}
			}
			continue
		}
		if !strings.HasPrefix(name, prefix) || !e.Type().IsRegular() || blob.CheckName("list", name) != nil {
			continue // a stranger's file
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return wrap("list", name, err)
		}
		stored := info.Size()
		if st, ok := info.Sys().(*unixStat); ok {
			stored = st.Blocks * 512
		}
		if err := f(blob.Info{Name: name, Size: info.Size(), Stored: stored}); err != nil {
			return err
		}
	}
	return nil
}

// Remove implements blob.Store.
func (s *Store) Remove(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := blob.CheckName("remove", name); err != nil {
		return err
	}
	p := s.path(name)
	err := unix.Unlink(p)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return wrap("remove", name, err)
	}
	return wrap("remove", name, syncDir(filepath.Dir(p)))
}

// admit refuses n more bytes when they would eat into the reserve.
func (s *Store) admit(name string, n int64) error {
	if s.reserve <= 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since+n >= checkBytes || s.free-s.since-n < s.reserve || time.Since(s.checked) >= checkEvery {
		var st unix.Statfs_t
		if err := unix.Statfs(s.root, &st); err != nil {
			return wrap("append", name, err)
		}
		s.free, s.since, s.checked = int64(st.Bavail)*st.Bsize, 0, time.Now()
	}
	if s.free-s.since-n < s.reserve {
		return errs.Msg(errs.NoSpace, "append", name, "the disk is full").
			WithHint("free space on the disk; writing goes on by itself then")
	}
	s.since += n
	return nil
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// wrap gives an error of the system its kind; nil stays nil.
func wrap(op, thing string, err error) error {
	if err == nil {
		return nil
	}
	kind := errs.Other
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		kind = errs.NoSpace
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		kind = errs.NotFound
	case errors.Is(err, fs.ErrExist), errors.Is(err, unix.EISDIR):
		kind = errs.Exists
	case errors.Is(err, fs.ErrPermission):
		kind = errs.Denied
	case errors.Is(err, unix.EFBIG):
		kind = errs.TooLarge
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
		kind = errs.Unsupported
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		kind = errs.Limit
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err // the name is said already
	}
	return errs.New(kind, op, thing, err)
}
