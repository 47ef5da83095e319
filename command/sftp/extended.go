package sftp

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// extensions are those that OpenSSH's PROTOCOL describes, with the versions that it gives them.
var extensions = []struct{ name, version string }{
	{"posix-rename@openssh.com", "1"}, {"statvfs@openssh.com", "2"}, {"fstatvfs@openssh.com", "2"}, {"hardlink@openssh.com", "1"},
	{"fsync@openssh.com", "1"}, {"lsetstat@openssh.com", "1"}, {"limits@openssh.com", "1"}, {"expand-path@openssh.com", "1"},
	{"copy-data", "1"}, {"home-directory", "1"}, {"users-groups-by-id@openssh.com", "1"},
}

func (s *server) extended(id uint32, r *request) error {
	switch r.string() {
	case "posix-rename@openssh.com":
		return s.pair(r, func(from, to string) error { return s.t.Rename(from, to, 0) })
	case "hardlink@openssh.com":
		return s.pair(r, s.t.Link)
	case "statvfs@openssh.com":
		name := r.string()
		if r.bad {
			return errShort
		}
		return s.statvfs(id, name)
	case "fstatvfs@openssh.com":
		h, err := s.handle(r.string())
		if err != nil {
			return err
		}
		return s.statvfs(id, h.name)
	case "fsync@openssh.com":
		h, err := s.fileHandle(r.string())
		if err != nil {
			return err
		}
		return h.file.Sync()
	case "lsetstat@openssh.com":
		return s.setstat(r, false)
	case "limits@openssh.com":
		s.begin(fxpReply, id)
		for _, n := range []int{maxPacket, maxData, maxData, s.max} {
			s.uint64(uint64(n))
		}
		return nil
	case "expand-path@openssh.com":
		return s.realpath(id, r, s.expand)
	case "copy-data":
		return s.copyData(r)
	case "home-directory":
		return s.homeDirectory(id, r)
	case "users-groups-by-id@openssh.com":
		return s.accounts(id, r)
	}
	return errUnsupported
}

func (s *server) pair(r *request, f func(string, string) error) error {
	from, to := r.string(), r.string()
	if r.bad {
		return errShort
	}
	if s.readOnly {
		return errReadOnly
	}
	return f(from, to)
}

func (s *server) statvfs(id uint32, name string) error {
	st, err := s.t.StatFS(name)
	if err != nil {
		return err
	}
	s.begin(fxpReply, id)
	const flags, nameMax = 2, vfs.MaxName // ST_NOSUID
	for _, n := range []uint64{st.BlockSize, st.BlockSize, st.Blocks, st.Free, st.Free, st.Files, st.FFree, st.FFree, uint64(st.Type), flags, nameMax} {
		s.uint64(n)
	}
	return nil
}

// home finds a user's home directory: "" is the process's own.
func (s *server) home(user string) (string, bool) {
	if user == "" {
		if h := s.t.Getenv("HOME"); h != "" {
			return h, true
		}
		if u := s.t.Accounts().UserByID(s.t.Cred().UID); u != nil {
			return u.Home, true
		}
		return "", false
	}
	if u := s.t.Accounts().UserByName(user); u != nil {
		return u.Home, true
	}
	return "", false
}

// expand replaces "~" and "~user" at the beginning of a path.
func (s *server) expand(p string) string {
	rest, ok := strings.CutPrefix(p, "~")
	if !ok {
		return p
	}
	user, rest, _ := strings.Cut(rest, "/")
	if h, ok := s.home(user); ok {
		return path.Join(h, rest)
	}
	return p
}

func (s *server) homeDirectory(id uint32, r *request) error {
	user := r.string()
	if r.bad {
		return errShort
	}
	h, ok := s.home(user)
	if !ok {
		return syscall.ENOENT
	}
	s.name(id, h)
	return nil
}

// copyData copies between two open files without a way through the client. A length of 0 means up to the end.
func (s *server) copyData(r *request) error {
	fromName, off, n, toName, to := r.string(), r.uint64(), r.uint64(), r.string(), r.uint64()
	if r.bad {
		return errShort
	}
	from, err := s.fileHandle(fromName)
	if err != nil {
		return err
	}
	dst, err := s.fileHandle(toName)
	switch {
	case err != nil:
		return err
	case from == dst || dst.flags&syscall.O_APPEND != 0 || off > 1<<62 || to > 1<<62 || n > 1<<62:
		return syscall.EINVAL
	}
	buf := make([]byte, 128<<10)
	for toEnd := n == 0; toEnd || n > 0; {
		s.t.Check()
		part := buf
		if !toEnd {
			part = buf[:min(uint64(len(buf)), n)]
		}
		got, err := from.file.ReadAt(part, int64(off))
		if got > 0 {
			if _, err := dst.file.WriteAt(part[:got], int64(to)); err != nil {
				return err
			}
			off, to, n = off+uint64(got), to+uint64(got), n-min(n, uint64(got))
		}
		if err == io.EOF || err == nil && got == 0 {
			if toEnd {
				return nil
			}
			return io.EOF
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}

// accounts names users and groups: a blob of numbers each, answered by a blob of names each, "" for those without one.
func (s *server) accounts(id uint32, r *request) error {
	users, groups := &request{b: r.bytes()}, &request{b: r.bytes()}
	if r.bad || len(users.b)%4 != 0 || len(groups.b)%4 != 0 || len(users.b)+len(groups.b) > 16<<10 {
		return errShort
	}
	a := s.t.Accounts()
	names := func(r *request, name func(uint32) string) string {
		var out []byte
		for len(r.b) > 0 {
			n := r.uint32()
			text := name(n)
			if text == fmt.Sprint(n) {
				text = ""
			}
			out = append(out, byte(len(text)>>24), byte(len(text)>>16), byte(len(text)>>8), byte(len(text)))
			out = append(out, text...)
		}
		return string(out)
	}
	s.begin(fxpReply, id)
	s.string(names(users, a.UserName))
	s.string(names(groups, a.GroupName))
	return nil
}

// long is an entry as ls -l shows it. Clients show it as it stands, so what the terminal would take for a command isn't in
// it as such: OpenSSH's clients escape names themselves.
func long(t *tool.T, accounts *tool.Accounts, name string, a vfs.Attr) string {
	format := "Jan _2 15:04"
	if age := t.Now().Sub(a.Mtime); age > 182*24*time.Hour || age < 0 {
		format = "Jan _2  2006"
	}
	return fmt.Sprintf("%s %4d %-8s %-8s %8d %s %s", tool.FormatMode(a.Mode), a.Nlink, accounts.UserName(a.UID), accounts.GroupName(a.GID),
		a.Size, a.Mtime.In(t.Location()).Format(format), name)
}
