package vfs

import (
	"slices"
	"syscall"
)

// Kinds of access, as access(2) takes them.
const (
	Exists   = 0
	Exec     = 1
	Write    = 2
	Read     = 4
	modeSUID = Mode(syscall.S_ISUID)
	modeSGID = Mode(syscall.S_ISGID)
	modeVTX  = Mode(syscall.S_ISVTX)
)

// In reports whether the caller belongs to a group.
func (c Cred) In(gid uint32) bool { return c.GID == gid || slices.Contains(c.Groups, gid) }

// Allows reports whether the caller may do all of want (Read, Write, Exec) to a file with these attributes. Root may do
// everything, but execute a file only if somebody may.
func (c Cred) Allows(a Attr, want Mode) bool {
	if c.UID == 0 {
		return want&Exec == 0 || a.Mode.IsDir() || a.Mode&0o111 != 0
	}
	bits := a.Mode
	switch {
	case c.UID == a.UID:
		bits >>= 6
	case c.In(a.GID):
		bits >>= 3
	}
	return bits&want == want
}

// owns reports whether the caller may change a file's mode and times.
func (c Cred) owns(a Attr) bool { return c.UID == 0 || c.UID == a.UID }

// mayDelete checks whether the caller may take a name out of a directory: EACCES, or EPERM where the sticky bit forbids it.
func (c Cred) mayDelete(dir, victim Attr) error {
	if !c.Allows(dir, Write|Exec) {
		return syscall.EACCES
	}
	if dir.Mode&modeVTX != 0 && c.UID != 0 && c.UID != victim.UID && c.UID != dir.UID {
		return syscall.EPERM
	}
	return nil
}

// mayLink checks that a hard link gives the caller nothing that it doesn't have already.
func (c Cred) mayLink(a Attr) bool {
	return c.owns(a) || a.Mode.IsRegular() && withoutSetID(a.Mode) == a.Mode && c.Allows(a, Read|Write)
}

// Heir returns the mode and owner of a new inode in a directory: the umask is applied, and a set-group-id directory hands
// its group down, and itself to directories.
func (c Cred) Heir(dir Attr, mode Mode) (Mode, Cred) {
	mode = mode&ModeType | mode&ModePerm&^(c.Umask&0o777)
	if dir.Mode&modeSGID != 0 {
		if mode.IsDir() {
			mode |= modeSGID
		} else if mode&(modeSGID|0o010) == modeSGID|0o010 && c.UID != 0 && !c.In(dir.GID) {
			mode &^= modeSGID
		}
		c.GID = dir.GID
	}
	return mode, c
}

// checkSetAttr decides whether the caller may make the change, and adds what the kernel changes along with it: set-id bits
// go when the owner changes or somebody else writes.
func (c Cred) checkSetAttr(a Attr, s *SetAttr) error {
	if s.UID != nil || s.GID != nil {
		if err := c.checkChown(a, s); err != nil {
			return err
		}
	}
	if s.Mode != nil {
		if !c.owns(a) {
			return syscall.EPERM
		}
		m := *s.Mode & ModePerm
		gid := a.GID
		if s.GID != nil {
			gid = *s.GID
		}
		if c.UID != 0 && !c.In(gid) {
			m &^= modeSGID
		}
		s.Mode = &m
	}
	if (s.Atime != nil || s.Mtime != nil) && !c.owns(a) {
		return syscall.EPERM
	}
	if (s.AtimeNow || s.MtimeNow) && !c.owns(a) && !c.Allows(a, Write) {
		return syscall.EACCES
	}
	if s.Size != nil && *s.Size < 0 {
		return syscall.EINVAL
	}
	return nil
}

// checkChown is checkSetAttr's part for owners: only root gives files away; owners may choose among their groups.
func (c Cred) checkChown(a Attr, s *SetAttr) error {
	if c.UID != 0 {
		if c.UID != a.UID || (s.UID != nil && *s.UID != a.UID) || (s.GID != nil && *s.GID != a.GID && !c.In(*s.GID)) {
			return syscall.EPERM
		}
	}
	if s.Mode == nil && !a.Mode.IsDir() {
		if m := withoutSetID(a.Mode); m != a.Mode {
			m &= ModePerm
			s.Mode = &m
		}
	}
	return nil
}

// withoutSetID is the mode that remains after a file was written or given away. Without group execution the set-group-id
// bit once meant mandatory locking, so that it stays.
func withoutSetID(m Mode) Mode {
	m &^= modeSUID
	if m&0o010 != 0 {
		m &^= modeSGID
	}
	return m
}
