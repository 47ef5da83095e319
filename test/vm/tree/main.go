// Command tree runs in the bench: it mounts a filesystem and writes down what the kernel sees in it, a line of JSON for each file.
package main

import (
	"bufio"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// entry is a file; package main's like is in package vm of test.
type entry struct {
	Path  string
	Mode  uint32 // type and permissions, as the system has them
	UID   uint32
	GID   uint32
	Size  int64
	MTime int64
	Links uint64
	Inode uint64
	Text  string // a link's target, or a file's sum
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Println("tree:", err)
		os.Exit(1)
	}
}

func run(device, kind string) error {
	const at = "/tmp/mounted"
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(device, at, kind, unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	out := bufio.NewWriter(os.Stdout)
	enc := json.NewEncoder(out)
	sums := make(map[uint64]string) // by inode
	err := filepath.WalkDir(at, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		e := entry{Path: path[len(at):], Mode: st.Mode, UID: st.Uid, GID: st.Gid, Size: st.Size, MTime: st.Mtim.Sec, Links: st.Nlink, Inode: st.Ino}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFLNK:
			e.Text, err = os.Readlink(path)
		case unix.S_IFREG:
			if e.Text = sums[st.Ino]; e.Text == "" {
				e.Text, err = sum(path)
				sums[st.Ino] = e.Text
			}
		}
		return errors.Join(err, enc.Encode(e))
	})
	return errors.Join(err, out.Flush())
}

// sum reads a file, in pieces that don't end where blocks do.
func sum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := md5.New()
	_, err = io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{f}, make([]byte, 100_001))
	return hex.EncodeToString(h.Sum(nil)), err
}
