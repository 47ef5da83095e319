package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/client"
	"agentrun.dev/errs"
)

// inSandbox splits ID:PATH. What is a file of this machine isn't one, whatever it is called.
func inSandbox(s string) (id, at string, ok bool) {
	id, at, ok = strings.Cut(s, ":")
	if !ok || !api.ValidName(id) || strings.HasPrefix(at, "//") {
		return "", "", false
	}
	if _, err := os.Lstat(s); err == nil {
		return "", "", false
	}
	return id, first(at, "."), true
}

// sandboxCopy is a copy between this machine and a sandbox.
type sandboxCopy struct {
	a     *app
	c     *client.Client
	id    string
	done  copied
	meter *meter
}

// copySandbox copies if one side is a sandbox's; otherwise it says that it doesn't.
func (a *app) copySandbox(ctx context.Context, from, to string, recursive bool) (handled bool, err error) {
	srcID, src, out := inSandbox(from)
	dstID, dst, in := inSandbox(to)
	if !out && !in {
		return false, nil
	}
	if out && in || strings.HasPrefix(from, "s3://") || strings.HasPrefix(to, "s3://") {
		return true, usage("cp", "one side is a sandbox's, the other a path of this machine")
	}
	if recursive && (from == "-" || to == "-") {
		return true, usage("cp -r", "a stream isn't a folder")
	}
	c, err := a.connect()
	if err != nil {
		return true, err
	}
	x := &sandboxCopy{a: a, c: c, id: first(srcID, dstID), meter: a.out.meter()}
	begun := time.Now()
	switch {
	case out && recursive:
		err = x.downloadAll(ctx, src, to)
	case out:
		err = x.download(ctx, src, to)
	case recursive:
		err = x.uploadAll(ctx, from, dst)
	default:
		err = x.upload(ctx, from, dst)
	}
	x.meter.done()
	if err != nil {
		return true, a.advise(err)
	}
	x.done.Seconds = time.Since(begun).Seconds()
	switch {
	case to == "-":
		return true, nil
	case a.json:
		return true, a.out.json(x.done)
	case x.done.Skipped > 0:
		fmt.Fprintf(a.Stderr, "%s: passed over %s that aren't regular\n", a.Name, count(x.done.Skipped, "file"))
	}
	a.out.printf("copied %s, %s to %s in %.2f s\n", count(x.done.Files, "file"), size(x.done.Bytes), printable(to), x.done.Seconds)
	return true, nil
}

func (x *sandboxCopy) counted(n int64) {
	x.done.Files++
	x.done.Bytes += uint64(n)
	x.meter.update(api.Progress{Phase: "copied", Done: x.done.Files})
}

// upload copies one file. A target that ends in a slash, or is a directory, keeps its name.
func (x *sandboxCopy) upload(ctx context.Context, from, at string) error {
	if from == "-" {
		i, err := x.c.WriteFile(ctx, x.id, at, 0, x.a.Stdin, -1)
		if err == nil {
			x.counted(i.Size)
		}
		return err
	}
	st, err := os.Stat(from)
	if err != nil {
		return usage(from, fileError("open", from, err).Error())
	}
	if st.IsDir() {
		return usage(from, "it is a folder").WithHint("agentrun cp -r copies folders")
	}
	if strings.HasSuffix(at, "/") {
		at += filepath.Base(from)
	} else if i, err := x.c.StatFile(ctx, x.id, at); err == nil && i.Type == "directory" {
		at = path.Join(at, filepath.Base(from))
	} else if err != nil && !errs.Is(err, errs.NotFound) {
		return err
	}
	return x.put(ctx, from, at, st)
}

func (x *sandboxCopy) put(ctx context.Context, from, at string, st fs.FileInfo) error {
	f, err := os.Open(from)
	if err != nil {
		return fileError("open", from, err)
	}
	defer f.Close()
	if _, err := x.c.WriteFile(ctx, x.id, at, st.Mode().Perm(), f, st.Size()); err != nil {
		return err
	}
	x.counted(st.Size())
	return nil
}

// uploadAll copies what is beneath a folder.
func (x *sandboxCopy) uploadAll(ctx context.Context, from, at string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fileError("read", name, err)
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return errs.New(errs.Other, "copy", name, err)
		}
		to := path.Join(at, filepath.ToSlash(rel))
		switch {
		case d.IsDir():
			_, err = x.c.MakeDirectory(ctx, x.id, to)
			return err
		case !d.Type().IsRegular():
			x.done.Skipped++
			return nil
		}
		st, err := d.Info()
		if err != nil {
			return fileError("read", name, err)
		}
		return x.put(ctx, name, to, st)
	})
}

// download copies one file out. A target that ends in a slash, or is a folder, keeps its name.
func (x *sandboxCopy) download(ctx context.Context, at, to string) error {
	if to == "-" {
		r, err := x.c.ReadFile(ctx, x.id, at)
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = io.Copy(x.a.Stdout, r)
		return err
	}
	i, err := x.c.StatFile(ctx, x.id, at)
	if err != nil {
		return err
	}
	if i.Type == "directory" {
		return usage(at, "it is a directory").WithHint("agentrun cp -r copies directories")
	}
	if st, err := os.Stat(to); err == nil && st.IsDir() || strings.HasSuffix(to, "/") {
		to = filepath.Join(to, filepath.Base(filepath.FromSlash(i.Path)))
	}
	return x.take(ctx, i, to)
}

// take writes a file whole or not at all.
func (x *sandboxCopy) take(ctx context.Context, i *api.FileInfo, to string) (err error) {
	r, err := x.c.ReadFile(ctx, x.id, i.Path)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fileError("make", filepath.Dir(to), err)
	}
	f, err := os.CreateTemp(filepath.Dir(to), ".agentrun-*")
	if err != nil {
		return fileError("write", to, err)
	}
	defer os.Remove(f.Name()) // is gone when all went well
	n, err := io.Copy(f, r)
	if err == nil {
		err = f.Chmod(fs.FileMode(i.Mode) & 0o777)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), to)
	}
	if err != nil {
		return fileError("write", to, err)
	}
	x.counted(n)
	return nil
}

// downloadAll copies what is beneath a directory of the sandbox, and nothing elsewhere than beneath the target.
func (x *sandboxCopy) downloadAll(ctx context.Context, at, to string) error {
	top, err := x.c.StatFile(ctx, x.id, at)
	if err != nil {
		return err
	}
	if top.Type != "directory" {
		return x.download(ctx, at, to)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fileError("make", to, err)
	}
	const deep = 64
	return all(func(p client.Page) (string, error) {
		page, err := x.c.ListFiles(ctx, x.id, top.Path, deep, p)
		if err != nil {
			return "", err
		}
		for i := range page.Files {
			if err := x.takeBeneath(ctx, &page.Files[i], top.Path, to); err != nil {
				return "", err
			}
		}
		return page.Next, nil
	})
}

func (x *sandboxCopy) takeBeneath(ctx context.Context, i *api.FileInfo, top, to string) error {
	rel := filepath.FromSlash(strings.TrimPrefix(strings.TrimPrefix(i.Path, top), "/"))
	if !filepath.IsLocal(rel) {
		return errs.Msg(errs.Invalid, "copy", printable(i.Path), "it would lie outside of "+to)
	}
	target := filepath.Join(to, rel)
	switch i.Type {
	case "directory":
		if err := os.MkdirAll(target, 0o755); err != nil {
			return fileError("make", target, err)
		}
		return nil
	case "file":
		return x.take(ctx, i, target)
	}
	x.done.Skipped++
	return nil
}
