// Package initramfs writes the archive that a Linux kernel unpacks into its first root filesystem, and finds the kernel modules
// that go into it.
//
// The archive is a cpio of the "newc" kind (Documentation/driver-api/early-userspace/buffer-format.rst of the kernel). What is
// written depends on what was put in and on nothing else: no times, no inode numbers of the machine that it was made on.
package initramfs

import (
	"fmt"
	"io"
	"path"
	"strings"

	"agentrun.dev/errs"
)

// The types of a file, as they stand in the mode of an entry.
const (
	typeFile    = 0o100000
	typeDir     = 0o040000
	typeSymlink = 0o120000
	typeChar    = 0o020000
)

// Limits of the format: sizes are 8 hexadecimal digits; the kernel takes no names of PATH_MAX bytes or more.
const (
	maxSize = 1<<32 - 1
	maxName = 4095
)

// Writer writes one archive. Parents of what is put in are made as they are needed, 0755. It isn't safe for concurrent use.
type Writer struct {
	w     io.Writer
	at    int64
	inode uint32
	seen  map[string]bool
	err   error
}

// NewWriter returns a writer of an archive to w. The archive isn't compressed: the kernel then needs no time to unpack it.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, seen: make(map[string]bool)}
}

// Dir adds a folder. One that is there already stays as it is.
func (w *Writer) Dir(name string, perm uint32) error {
	clean, err := w.name("dir", name)
	if err != nil {
		return err
	}
	if w.seen[clean] {
		return nil
	}
	return w.entry(clean, typeDir|perm&0o7777, 0, 0, 0, nil)
}

// File adds a file of size bytes, which are read from r.
func (w *Writer) File(name string, perm uint32, size int64, r io.Reader) error {
	if size < 0 || size > maxSize {
		return errs.Msg(errs.TooLarge, "initramfs", name, "a file has at most 4 GiB")
	}
	return w.new(name, typeFile|perm&0o7777, 0, 0, size, r)
}

// Bytes adds a file that holds b.
func (w *Writer) Bytes(name string, perm uint32, b string) error {
	return w.File(name, perm, int64(len(b)), strings.NewReader(b))
}

// Symlink adds a symbolic link.
func (w *Writer) Symlink(name, target string) error {
	if target == "" || len(target) > maxName || strings.ContainsRune(target, 0) {
		return errs.Msg(errs.Invalid, "initramfs", name, "the target of a link has 1 to 4095 bytes")
	}
	return w.new(name, typeSymlink|0o777, 0, 0, int64(len(target)), strings.NewReader(target))
}

// Char adds a character device. The kernel makes /dev/console itself only where it was given no archive.
func (w *Writer) Char(name string, perm uint32, major, minor uint32) error {
	return w.new(name, typeChar|perm&0o7777, major, minor, 0, nil)
}

// Close ends the archive; it doesn't close what it was written to.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	w.inode = 0
	return w.header("TRAILER!!!", 0, 0, 0, 0)
}

// name checks a path and makes its parents. Paths are relative to the root, with or without a slash at the beginning.
func (w *Writer) name(op, name string) (string, error) {
	clean := strings.TrimPrefix(path.Clean("/"+name), "/")
	switch {
	case clean == "" || strings.ContainsRune(clean, 0) || len(clean) > maxName:
		return "", errs.Msg(errs.Invalid, "initramfs: "+op, name, "no path of a file")
	case clean == "TRAILER!!!":
		return "", errs.Msg(errs.Invalid, "initramfs: "+op, name, "the format uses this name itself")
	}
	if parent := path.Dir(clean); parent != "." && !w.seen[parent] {
		if err := w.Dir(parent, 0o755); err != nil {
			return "", err
		}
	}
	return clean, nil
}

func (w *Writer) new(name string, mode, major, minor uint32, size int64, r io.Reader) error {
	clean, err := w.name("add", name)
	if err != nil {
		return err
	}
	if w.seen[clean] {
		return errs.Msg(errs.Exists, "initramfs: add", name, "it is there already")
	}
	return w.entry(clean, mode, major, minor, size, r)
}

// entry writes one entry. After an error the archive is broken, and every later call returns the same error.
func (w *Writer) entry(name string, mode, major, minor uint32, size int64, r io.Reader) error {
	if w.err != nil {
		return w.err
	}
	w.seen[name] = true
	w.inode++
	if w.err = w.header(name, mode, major, minor, size); w.err != nil || size == 0 {
		return w.err
	}
	n, err := io.CopyN(w.w, r, size)
	w.at += n
	if err != nil {
		w.err = errs.New(errs.Other, "initramfs: add", name, err)
		return w.err
	}
	w.err = w.pad()
	return w.err
}

func (w *Writer) header(name string, mode, major, minor uint32, size int64) error {
	links := 1
	if mode&0o170000 == typeDir {
		links = 2
	}
	// Magic, inode, mode, uid, gid, links, time, size, device, device of the node, length of the name, checksum.
	if err := w.put(fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		w.inode, mode, 0, 0, links, 0, size, 0, 0, major, minor, len(name)+1, 0, name)); err != nil {
		return err
	}
	return w.pad()
}

// pad fills up to a multiple of four, where names, contents and entries begin.
func (w *Writer) pad() error {
	return w.put("\x00\x00\x00"[:-w.at&3])
}

func (w *Writer) put(s string) error {
	n, err := io.WriteString(w.w, s)
	w.at += int64(n)
	if err != nil {
		w.err = errs.New(errs.Other, "initramfs", "", err)
	}
	return w.err
}
