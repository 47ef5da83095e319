package bucketfs

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"syscall"
	"time"

	"agentrun.dev/bucket"
	"agentrun.dev/vfs"
)

// GetXattr implements vfs.Xattrs.
func (f *FS) GetXattr(ctx context.Context, ino vfs.Ino, name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.get(ino)
	if err == nil {
		err = f.current(ctx, n)
	}
	if err != nil {
		return nil, err
	}
	v, ok := n.px.Xattrs[name]
	if !ok {
		return nil, syscall.ENODATA
	}
	return bytes.Clone(v), nil
}

// ListXattr implements vfs.Xattrs.
func (f *FS) ListXattr(ctx context.Context, ino vfs.Ino) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.get(ino)
	if err == nil {
		err = f.current(ctx, n)
	}
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(n.px.Xattrs)), nil
}

// SetXattr implements vfs.Xattrs.
func (f *FS) SetXattr(ctx context.Context, ino vfs.Ino, name string, value []byte, flags int) error {
	return f.editXattrs(ctx, ino, func(x map[string][]byte) error {
		_, have := x[name]
		switch {
		case have && flags&vfs.XattrCreate != 0:
			return syscall.EEXIST
		case !have && flags&vfs.XattrReplace != 0:
			return syscall.ENODATA
		}
		x[name] = append([]byte{}, value...)
		total := 0
		for k, v := range x {
			total += len(k) + len(v)
		}
		if total > maxMeta {
			return syscall.ENOSPC
		}
		return nil
	})
}

// RemoveXattr implements vfs.Xattrs.
func (f *FS) RemoveXattr(ctx context.Context, ino vfs.Ino, name string) error {
	return f.editXattrs(ctx, ino, func(x map[string][]byte) error {
		if _, ok := x[name]; !ok {
			return syscall.ENODATA
		}
		delete(x, name)
		return nil
	})
}

func (f *FS) editXattrs(ctx context.Context, ino vfs.Ino, edit func(x map[string][]byte) error) error {
	if f.b == nil {
		return syscall.EROFS
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.get(ino)
	if err == nil {
		err = f.current(ctx, n)
	}
	if err != nil {
		return err
	}
	x := maps.Clone(n.px.Xattrs)
	if x == nil {
		x = map[string][]byte{}
	}
	if err := edit(x); err != nil {
		return err
	}
	_, err = f.change(ctx, n, func(px *bucket.Posix, _ *time.Time) { px.Xattrs = x })
	return err
}

var _ vfs.Xattrs = (*FS)(nil)
