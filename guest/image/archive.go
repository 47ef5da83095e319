package image

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"agentrun.dev/errs"
)

// fromTar finds the image of a tag, or the only one, in a file that docker save or podman save wrote. done removes what was unpacked to read it.
func (s *Store) fromTar(ref, rest string) (img v1.Image, done func(), err error) {
	path, tag := split(rest)
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, wrap(ref, err)
	}
	defer f.Close()
	docker, err := holds(f, "manifest.json")
	if err != nil {
		return nil, nil, wrap(ref, err)
	}
	if docker {
		img, err := fromDocker(ref, path, tag)
		return img, func() {}, err
	}
	dir, err := os.MkdirTemp(s.dir, ".new-*")
	if err != nil {
		return nil, nil, errs.New(errs.Other, "image", ref, err)
	}
	done = func() { _ = os.RemoveAll(dir) }
	if err = unpackLayout(f, dir, s.o.Max); err == nil {
		img, err = fromLayout(dir, tag)
	}
	if i := strings.LastIndexByte(tag, ':'); i >= 0 && errs.Is(err, errs.NotFound) { // some tools write the whole name, others the tag
		img, err = fromLayout(dir, tag[i+1:])
	}
	if err == nil {
		err = complete(img)
	}
	if err != nil {
		done()
		return nil, nil, named(ref, dir, err)
	}
	return img, done, nil
}

// fromDocker reads docker's own format, whose tags are whole names.
func fromDocker(ref, path, tag string) (v1.Image, error) {
	var t *name.Tag
	if tag != "" {
		parsed, err := name.NewTag(tag)
		if err != nil {
			return nil, errs.New(errs.Invalid, "image", ref, err)
		}
		t = &parsed
	}
	img, err := tarball.ImageFromPath(path, t)
	if err != nil {
		return nil, wrap(ref, err)
	}
	return img, nil
}

// holds reports whether an archive has a file of this name.
func holds(f *os.File, file string) (bool, error) {
	for t := tar.NewReader(f); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil || strings.TrimPrefix(h.Name, "./") == file {
			return err == nil, err
		}
	}
}

// ofLayout is what a layout consists of.
var ofLayout = regexp.MustCompile(`^(oci-layout|index\.json|blobs/[a-z0-9]+/[a-f0-9]+)$`)

// unpackLayout unpacks an OCI layout of at most max bytes.
func unpackLayout(f io.ReadSeeker, dir string, max int64) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	for t := tar.NewReader(f); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		file := strings.TrimPrefix(h.Name, "./")
		if h.Typeflag != tar.TypeReg || !ofLayout.MatchString(file) {
			continue
		}
		if max -= h.Size; max < 0 {
			return errs.Msg(errs.TooLarge, "image", file, "the archive holds more than an image's filesystem may")
		}
		if err := unpackFile(filepath.Join(dir, file), t); err != nil {
			return err
		}
	}
}

func unpackFile(path string, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, r)
	return errors.Join(err, out.Close())
}

// complete looks for the blobs of an image.
func complete(img v1.Image) error {
	_, err := img.ConfigFile()
	layers, errLayers := img.Layers()
	err = errors.Join(err, errLayers)
	for _, l := range layers {
		r, errLayer := l.Compressed()
		if errLayer == nil {
			errLayer = r.Close()
		}
		err = errors.Join(err, errLayer)
	}
	return err
}

// named gives an error of an unpacked layout the name by which the image was asked for, and a file's the one that it has in the archive.
func named(ref, dir string, err error) error {
	var file *fs.PathError
	if errors.As(err, &file) && errors.Is(err, fs.ErrNotExist) {
		return errs.Msg(errs.NotFound, "image", ref, "the archive has no "+strings.TrimPrefix(file.Path, dir+"/"))
	}
	var typed *errs.Error
	if !errors.As(err, &typed) {
		return wrap(ref, err)
	}
	return errs.New(typed.Kind, "image", ref, typed.Err)
}
