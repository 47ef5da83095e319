package wasm

import (
	"encoding/binary"
	"math"
	"syscall"
	"time"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// agentrunFunctions are the module "agentrun", as guests/agentrun.h declares it.
func agentrunFunctions() []hostFunc {
	list := append(fileFunctions(), processFunctions()...)
	return append(list, signalFunctions()...)
}

const (
	atCwd       = -100
	atNoFollow  = 0x100
	atRemoveDir = 0x200
	oCloexec    = syscall.O_CLOEXEC
)

// pathAt reads a path that is relative to a directory's descriptor or the process's directory.
func (in *Instance) pathAt(dir, ptr, n uint64) (string, error) {
	name, err := in.text(ptr, n)
	if err != nil {
		return "", err
	}
	for i := range len(name) {
		if name[i] == 0 {
			return "", syscall.EINVAL
		}
	}
	switch {
	case name == "":
		return "", syscall.ENOENT
	case fd(dir) == atCwd:
		return name, nil
	}
	return in.beneath(fd(dir), name)
}

func fileFunctions() []hostFunc {
	// at makes a function whose first arguments are a path's.
	at := func(f func(in *Instance, name string, s []uint64) error) func(*Instance, []uint64) error {
		return func(in *Instance, s []uint64) error {
			name, err := in.pathAt(s[0], s[1], s[2])
			if err != nil {
				return err
			}
			return f(in, name, s[3:])
		}
	}
	// two makes one with another path after it.
	two := func(f func(in *Instance, a, b string, s []uint64) error) func(*Instance, []uint64) error {
		return at(func(in *Instance, a string, s []uint64) error {
			b, err := in.pathAt(s[0], s[1], s[2])
			if err != nil {
				return err
			}
			return f(in, a, b, s[3:])
		})
	}
	file := func(f func(in *Instance, file vfs.File, s []uint64) error) func(*Instance, []uint64) error {
		return func(in *Instance, s []uint64) error {
			h, err := in.p.File(fd(s[0]))
			if err != nil {
				return err
			}
			return f(in, h, s[1:])
		}
	}
	return []hostFunc{
		{"open", "iiiiii", "i", at(agentrunOpen), nil},
		{"stat", "iiiii", "i", at(func(in *Instance, name string, s []uint64) error {
			stat := in.p.Stat
			if s[0]&atNoFollow != 0 {
				stat = in.p.Lstat
			}
			a, err := stat(name)
			if err != nil {
				return err
			}
			return in.putStat(s[1], a)
		}), nil},
		{"fstat", "ii", "i", file(func(in *Instance, f vfs.File, s []uint64) error {
			a, err := f.Attr()
			if err != nil {
				return err
			}
			return in.putStat(s[0], a)
		}), nil},
		{"access", "iiiii", "i", at(func(in *Instance, name string, s []uint64) error {
			if uint32(s[0]) > 7 {
				return syscall.EINVAL
			}
			return in.p.Access(name, int(uint32(s[0])))
		}), nil},
		{"mkdir", "iiii", "i", at(func(in *Instance, name string, s []uint64) error {
			return in.p.Mkdir(name, vfs.Mode(s[0])&vfs.ModePerm)
		}), nil},
		{"mknod", "iiiiI", "i", at(func(in *Instance, name string, s []uint64) error {
			return in.p.Mknod(name, vfs.Mode(s[0])&(vfs.ModeType|vfs.ModePerm), s[1])
		}), nil},
		{"unlink", "iiii", "i", at(func(in *Instance, name string, s []uint64) error {
			if s[0]&atRemoveDir != 0 {
				return in.p.Rmdir(name)
			}
			return in.p.Unlink(name)
		}), nil},
		{"rename", "iiiiii", "i", two(func(in *Instance, a, b string, _ []uint64) error { return in.p.Rename(a, b, 0) }), nil},
		{"link", "iiiiiii", "i", two(func(in *Instance, a, b string, s []uint64) (err error) {
			if s[0]&atNoFollow == 0 {
				if a, err = in.p.Realpath(a); err != nil {
					return err
				}
			}
			return in.p.Link(a, b)
		}), nil},
		{"symlink", "iiiii", "i", func(in *Instance, s []uint64) error {
			target, err := in.text(s[0], s[1])
			if err != nil {
				return err
			}
			name, err := in.pathAt(s[2], s[3], s[4])
			if err != nil {
				return err
			}
			return in.p.Symlink(target, name)
		}, nil},
		{"readlink", "iiiiii", "i", at(func(in *Instance, name string, s []uint64) error {
			target, err := in.p.Readlink(name)
			if err != nil {
				return err
			}
			b, err := in.bytes(s[0], uint64(min(uint32(s[1]), uint32(len(target)))))
			if err != nil {
				return err
			}
			return in.put32(s[2], uint32(copy(b, target)))
		}), nil},
		{"realpath", "iiiii", "i", func(in *Instance, s []uint64) error {
			name, err := in.pathAt(1<<32+atCwd, s[0], s[1])
			if err != nil {
				return err
			}
			if name, err = in.p.Realpath(name); err != nil {
				return err
			}
			return in.fill(name, s[2], s[3], s[4])
		}, nil},
		{"chmod", "iiiii", "i", at(func(in *Instance, name string, s []uint64) error {
			mode := vfs.Mode(s[0]) & vfs.ModePerm
			return in.p.SetAttr(name, vfs.SetAttr{Mode: &mode}, s[1]&atNoFollow == 0)
		}), nil},
		{"fchmod", "ii", "i", file(func(in *Instance, f vfs.File, s []uint64) error {
			mode := vfs.Mode(s[0]) & vfs.ModePerm
			return f.SetAttr(vfs.SetAttr{Mode: &mode})
		}), nil},
		{"chown", "iiiiii", "i", at(func(in *Instance, name string, s []uint64) error {
			return in.p.SetAttr(name, owner(s[0], s[1]), s[2]&atNoFollow == 0)
		}), nil},
		{"fchown", "iii", "i", file(func(in *Instance, f vfs.File, s []uint64) error { return f.SetAttr(owner(s[0], s[1])) }), nil},
		{"utimes", "iiiIIi", "i", at(func(in *Instance, name string, s []uint64) error {
			return in.p.SetAttr(name, times(s[0], s[1]), s[2]&atNoFollow == 0)
		}), nil},
		{"futimes", "iII", "i", file(func(in *Instance, f vfs.File, s []uint64) error { return f.SetAttr(times(s[0], s[1])) }), nil},
		{"statfs", "iii", "i", agentrunStatfs, nil},
		{"umask", "ii", "i", func(in *Instance, s []uint64) error {
			old := in.p.Umask(vfs.Mode(s[0]) & 0o777)
			return in.put32(s[1], uint32(old))
		}, nil},
		{"getcwd", "iii", "i", func(in *Instance, s []uint64) error { return in.fill(in.p.Getwd(), s[0], s[1], s[2]) }, nil},
		{"chdir", "ii", "i", func(in *Instance, s []uint64) error {
			name, err := in.pathAt(1<<32+atCwd, s[0], s[1])
			if err != nil {
				return err
			}
			return in.p.Chdir(name)
		}, nil},
		{"fchdir", "i", "i", func(in *Instance, s []uint64) error {
			dir, err := in.beneath(fd(s[0]), ".")
			if err != nil {
				return err
			}
			return in.p.Chdir(dir)
		}, nil},
	}
}

func agentrunOpen(in *Instance, name string, s []uint64) error {
	const known = syscall.O_ACCMODE | syscall.O_CREAT | syscall.O_EXCL | syscall.O_TRUNC | syscall.O_APPEND | syscall.O_NONBLOCK | syscall.O_DIRECTORY | syscall.O_NOFOLLOW
	flags := int(uint32(s[0]))
	n, err := in.open(name, flags&known, vfs.Mode(s[1])&vfs.ModePerm, 3)
	if err != nil {
		return err
	}
	for low := range 3 { // the lowest free one, as POSIX has it
		if _, err := in.p.File(low); err != nil {
			if k, err := in.p.Dup(n, low, true); err == nil {
				in.p.CloseFd(n)
				n = k
			}
			break
		}
	}
	in.p.SetCloseOnExec(n, flags&oCloexec != 0)
	if flags&syscall.O_NONBLOCK != 0 {
		fdSetFlags(in, []uint64{uint64(n), flagNonblock | uint64(flags&syscall.O_APPEND/syscall.O_APPEND*flagAppend)})
	}
	return in.put32(s[2], uint32(n))
}

// putStat writes a struct agentrun_stat.
func (in *Instance) putStat(ptr uint64, a vfs.Attr) error {
	b, err := in.bytes(ptr, 104)
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	le.PutUint64(b, a.Dev)
	le.PutUint64(b[8:], uint64(a.Ino))
	le.PutUint32(b[16:], uint32(a.Mode))
	le.PutUint32(b[20:], a.Nlink)
	le.PutUint32(b[24:], a.UID)
	le.PutUint32(b[28:], a.GID)
	le.PutUint64(b[32:], a.Rdev)
	le.PutUint64(b[40:], uint64(a.Size))
	le.PutUint64(b[48:], uint64(a.Blocks))
	le.PutUint32(b[56:], 4096)
	le.PutUint32(b[60:], 0)
	le.PutUint64(b[64:], unixNano(a.Atime))
	le.PutUint64(b[72:], unixNano(a.Mtime))
	le.PutUint64(b[80:], unixNano(a.Ctime))
	clear(b[88:])
	return nil
}

func owner(uid, gid uint64) (s vfs.SetAttr) {
	u, g := uint32(uid), uint32(gid)
	if u != math.MaxUint32 {
		s.UID = &u
	}
	if g != math.MaxUint32 {
		s.GID = &g
	}
	return s
}

func times(atime, mtime uint64) (s vfs.SetAttr) {
	at, mt := time.Unix(0, int64(atime)), time.Unix(0, int64(mtime))
	if int64(atime) != math.MinInt64 {
		s.Atime = &at
	}
	if int64(mtime) != math.MinInt64 {
		s.Mtime = &mt
	}
	return s
}

func agentrunStatfs(in *Instance, s []uint64) error {
	name, err := in.pathAt(1<<32+atCwd, s[0], s[1])
	if err != nil {
		return err
	}
	st, err := in.p.StatFS(name)
	if err != nil {
		return err
	}
	for i, v := range [8]uint64{st.BlockSize, st.Blocks, st.Free, st.Free, st.Files, st.FFree, vfs.MaxName, 0} {
		if err := in.put64(uint64(uint32(s[2])+8*uint32(i)), v); err != nil {
			return err
		}
	}
	return nil
}

// signalFunctions are the signals' and the call to the host's program.
func signalFunctions() []hostFunc {
	return []hostFunc{
		{"sigword", "i", "i", func(in *Instance, s []uint64) error {
			if _, err := in.bytes(s[0], 4); err != nil {
				return err
			}
			in.host.sigword = uint32(s[0])
			in.checkSignals()
			return nil
		}, nil},
		{"sigaction", "iii", "i", func(in *Instance, s []uint64) error {
			sig, set := fd(s[0]), int32(s[1])
			if sig < 1 || sig > proc.MaxSignal || set < -1 || set > 2 {
				return syscall.EINVAL
			}
			old := in.p.Disposition(sig)
			if set >= 0 {
				if _, err := in.p.SetSignal(sig, proc.Disposition(set)); err != nil {
					return err
				}
			}
			return in.put32(s[2], uint32(old))
		}, nil},
		{"sigtake", "i", "i", func(in *Instance, s []uint64) error {
			if _, err := in.bytes(s[0], 8); err != nil {
				return err
			}
			var bits uint64
			if in.host.forked {
				in.host.forked, bits = false, 1
			}
			for _, sig := range in.p.TakeSignals() {
				bits |= 1 << (sig & 63)
			}
			return in.put64(s[0], bits)
		}, nil},
		{"itimer", "IIi", "i", agentrunItimer, nil},
		{"call", "iiii", "i", func(in *Instance, s []uint64) error {
			if in.cfg.Call == nil {
				return syscall.ENOSYS
			}
			b, err := in.bytes(s[1], s[2])
			if err != nil {
				return err
			}
			in.host.reply = nil
			err = in.waits(func() (err error) {
				in.host.reply, err = in.cfg.Call(in.p, uint32(s[0]), b)
				return err
			})
			if err != nil {
				return err
			}
			return in.put32(s[3], uint32(len(in.host.reply)))
		}, nil},
		{"reply", "ii", "i", func(in *Instance, s []uint64) error {
			if uint64(len(in.host.reply)) > uint64(uint32(s[1])) {
				return syscall.ERANGE
			}
			b, err := in.bytes(s[0], uint64(len(in.host.reply)))
			copy(b, in.host.reply)
			return err
		}, nil},
	}
}
