package rsync

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"agentrun.dev/vfs"
)

// Flags of an entry of the file list.
const (
	xTopDir    = 1 << 0
	xSameMode  = 1 << 1
	xExtended  = 1 << 2
	xSameUID   = 1 << 3
	xSameGID   = 1 << 4
	xSameName  = 1 << 5
	xLongName  = 1 << 6
	xSameTime  = 1 << 7
	xSameMajor = 1 << 8 // of devices
	xNoContent = 1 << 8 // of directories
	xLinked    = 1 << 9
	xUserName  = 1 << 10
	xGroupName = 1 << 11
	xLinkFirst = 1 << 12
)

// Limits of what is received.
const (
	maxEntries = 10_000_000
	maxName    = 4096
)

// entry is a file of the list.
type entry struct {
	name     string // relative to the destination, without a leading "./"
	local    string // path by which the sender opens it
	mode     vfs.Mode
	size     int64
	mtime    int64
	uid, gid uint32
	rdev     uint64
	target   string // of a symbolic link
	sum      []byte // with --checksum
	top      bool   // named on the command line: deletion works in it
	noData   bool   // a directory whose content wasn't sent
	linked   bool
	first    *entry // of a group of hard links; nil for the first itself
	dup      bool   // the same name was there before
	ndx      int
	raw      int
}

func (e *entry) isDir() bool { return e.mode.IsDir() }

// device says whether a mode is one that has a device number on the wire.
func (o *options) device(m vfs.Mode) bool {
	switch m & vfs.ModeType {
	case vfs.ModeChar, vfs.ModeBlock:
		return o.devices
	case vfs.ModeFIFO, vfs.ModeSocket:
		return o.specials
	}
	return false
}

// lister writes and reads entries; each says only how it differs from the one before.
type lister struct {
	o         *options
	lastName  string
	mode      vfs.Mode
	mtime     int64
	uid, gid  uint32
	major     uint32
	raw       []*entry // as they were received
	uids      map[uint32]string
	gids      map[uint32]string
	bytesName int64
}

// send writes an entry.
func (l *lister) send(w *writer, e *entry) {
	flags := 0
	if e.isDir() {
		if e.top {
			flags |= xTopDir
		}
		if e.noData {
			flags |= xNoContent
		}
	}
	if e.mode == l.mode {
		flags |= xSameMode
	}
	major := uint32(0)
	dev := l.o.device(e.mode)
	if dev {
		major = majorOf(e.rdev)
		if major == l.major {
			flags |= xSameMajor
		}
	}
	if !l.o.owner || e.uid == l.uid && l.lastName != "" {
		flags |= xSameUID
	}
	if !l.o.group || e.gid == l.gid && l.lastName != "" {
		flags |= xSameGID
	}
	if e.mtime == l.mtime {
		flags |= xSameTime
	}
	prefix := 0
	for prefix < len(l.lastName) && prefix < len(e.name) && prefix < 255 && l.lastName[prefix] == e.name[prefix] {
		prefix++
	}
	rest := e.name[prefix:]
	if prefix > 0 {
		flags |= xSameName
	}
	if len(rest) > 255 {
		flags |= xLongName
	}
	if e.linked {
		flags |= xLinked
		if e.first == nil {
			flags |= xLinkFirst
		}
	}
	if flags == 0 && !e.isDir() {
		flags |= xTopDir
	}
	if flags&0xff00 != 0 || flags == 0 {
		flags |= xExtended
		w.short(uint16(flags))
	} else {
		w.byte(byte(flags))
	}
	if flags&xSameName != 0 {
		w.byte(byte(prefix))
	}
	if flags&xLongName != 0 {
		w.varint(int32(len(rest)))
	} else {
		w.byte(byte(len(rest)))
	}
	w.Write([]byte(rest))
	l.lastName = e.name
	if e.linked && e.first != nil {
		w.varint(int32(e.first.raw))
		return
	}
	l.sendAttributes(w, e, flags, dev, major)
}

func (l *lister) sendAttributes(w *writer, e *entry, flags int, dev bool, major uint32) {
	w.varlong(e.size, 3)
	if flags&xSameTime == 0 {
		w.varlong(e.mtime, 4)
	}
	if flags&xSameMode == 0 {
		w.int(int32(e.mode))
	}
	if l.o.owner && flags&xSameUID == 0 {
		w.varint(int32(e.uid))
	}
	if l.o.group && flags&xSameGID == 0 {
		w.varint(int32(e.gid))
	}
	if dev {
		if flags&xSameMajor == 0 {
			w.varint(int32(major))
		}
		w.varint(int32(minorOf(e.rdev)))
		l.major = major
	}
	if l.o.links && e.mode.IsSymlink() {
		w.varint(int32(len(e.target)))
		w.Write([]byte(e.target))
	}
	if l.o.checksum && e.mode.IsRegular() {
		sum := e.sum
		if len(sum) != sumSize {
			sum = make([]byte, sumSize)
		}
		w.Write(sum)
	}
	l.mode, l.mtime, l.uid, l.gid = e.mode, e.mtime, e.uid, e.gid
}

func majorOf(dev uint64) uint32 { return uint32(dev>>8&0xfff | dev>>32&^0xfff) }
func minorOf(dev uint64) uint32 { return uint32(dev&0xff | dev>>12&^0xff) }

func makeDev(major, minor uint32) uint64 {
	return uint64(minor&0xff) | uint64(major&0xfff)<<8 | uint64(minor&^0xff)<<12 | uint64(major&^0xfff)<<32
}

// receive reads an entry; nil at the end of the list.
func (l *lister) receive(r *reader) (*entry, error) {
	flags := int(r.byte())
	if r.err != nil || flags == 0 {
		return nil, r.err
	}
	if flags&xExtended != 0 {
		flags |= int(r.byte()) << 8
	}
	prefix := 0
	if flags&xSameName != 0 {
		prefix = int(r.byte())
	}
	n := 0
	if flags&xLongName != 0 {
		n = int(r.varint())
	} else {
		n = int(r.byte())
	}
	if prefix > len(l.lastName) || n < 0 || prefix+n > maxName {
		return nil, fmt.Errorf("overflow in the file list: %w", protocolError)
	}
	e := &entry{name: l.lastName[:prefix] + string(r.bytes(n)), raw: len(l.raw)}
	if r.err != nil {
		return nil, r.err
	}
	l.lastName = e.name
	if l.bytesName += int64(len(e.name)); len(l.raw) >= maxEntries || l.bytesName > 1<<30 {
		return nil, errors.New("the file list is too long")
	}
	if err := cleanName(e); err != nil {
		return nil, err
	}
	e.linked = flags&xLinked != 0
	if e.linked && flags&xLinkFirst == 0 {
		i := int(r.varint())
		if i < 0 || i >= len(l.raw) || !l.raw[i].linked || l.raw[i].first != nil {
			return nil, fmt.Errorf("hard link to nothing: %w", protocolError)
		}
		name, raw, first := e.name, e.raw, l.raw[i]
		*e = *first
		e.name, e.raw, e.first = name, raw, first
		l.raw = append(l.raw, e)
		l.mode, l.mtime, l.uid, l.gid = e.mode, e.mtime, e.uid, e.gid
		return e, r.err
	}
	if err := l.receiveAttributes(r, e, flags); err != nil {
		return nil, err
	}
	l.raw = append(l.raw, e)
	return e, r.err
}

func (l *lister) receiveAttributes(r *reader, e *entry, flags int) error {
	e.size = r.varlong(3)
	e.mtime, e.mode, e.uid, e.gid = l.mtime, l.mode, l.uid, l.gid
	if flags&xSameTime == 0 {
		e.mtime = r.varlong(4)
	}
	if flags&xSameMode == 0 {
		e.mode = vfs.Mode(uint32(r.int()) & 0o177777)
	}
	if l.o.owner && flags&xSameUID == 0 {
		e.uid = uint32(r.varint())
		if flags&xUserName != 0 {
			r.bytes(int(r.byte()))
		}
	}
	if l.o.group && flags&xSameGID == 0 {
		e.gid = uint32(r.varint())
		if flags&xGroupName != 0 {
			r.bytes(int(r.byte()))
		}
	}
	if l.o.device(e.mode) {
		if flags&xSameMajor == 0 {
			l.major = uint32(r.varint())
		}
		e.rdev = makeDev(l.major, uint32(r.varint()))
	}
	if l.o.links && e.mode.IsSymlink() {
		n := int(r.varint())
		if n <= 0 || n > maxName {
			return fmt.Errorf("overflow in a link's target: %w", protocolError)
		}
		e.target = string(r.bytes(n))
	}
	if l.o.checksum && e.mode.IsRegular() {
		e.sum = r.bytes(sumSize)
	}
	if e.size < 0 {
		return fmt.Errorf("negative size: %w", protocolError)
	}
	if e.isDir() {
		e.top = flags&xTopDir != 0
		e.noData = flags&xNoContent != 0
	}
	l.mode, l.mtime, l.uid, l.gid = e.mode, e.mtime, e.uid, e.gid
	return r.err
}

// cleanName refuses names that lead out of the destination.
func cleanName(e *entry) error {
	if e.name == "" || strings.IndexByte(e.name, 0) >= 0 {
		return fmt.Errorf("ABORTING due to unsafe pathname from sender: %q", e.name)
	}
	if strings.HasPrefix(e.name, "/") {
		return fmt.Errorf("ABORTING due to unsafe pathname from sender: %s", e.name)
	}
	var parts []string
	for part := range strings.SplitSeq(e.name, "/") {
		switch part {
		case "", ".":
		case "..":
			return fmt.Errorf("ABORTING due to unsafe pathname from sender: %s", e.name)
		default:
			parts = append(parts, part)
		}
	}
	if e.name = strings.Join(parts, "/"); e.name == "" {
		e.name = "."
	}
	return nil
}

// sendIDs writes the names of the owners and groups in the list.
func (l *lister) sendIDs(w *writer) {
	if l.o.numericIDs {
		return
	}
	if l.o.owner {
		sendNames(w, l.uids)
	}
	if l.o.group {
		sendNames(w, l.gids)
	}
}

func sendNames(w *writer, names map[uint32]string) {
	for id, name := range names {
		if id != 0 && name != "" && len(name) < 256 {
			w.varint(int32(id))
			w.byte(byte(len(name)))
			w.Write([]byte(name))
		}
	}
	w.varint(0)
}

// receiveIDs reads them; user and group find an id by its name.
func (l *lister) receiveIDs(r *reader, user, group func(name string) (uint32, bool)) {
	if l.o.numericIDs {
		return
	}
	read := func(find func(string) (uint32, bool)) map[uint32]uint32 {
		m := map[uint32]uint32{}
		for r.err == nil {
			id := r.varint()
			if id == 0 {
				break
			}
			name := string(r.bytes(int(r.byte())))
			if own, ok := find(name); ok && len(m) < 1<<20 {
				m[uint32(id)] = own
			}
		}
		return m
	}
	if l.o.owner {
		m := read(user)
		for _, e := range l.raw {
			if own, ok := m[e.uid]; ok {
				e.uid = own
			}
		}
	}
	if l.o.group {
		m := read(group)
		for _, e := range l.raw {
			if own, ok := m[e.gid]; ok {
				e.gid = own
			}
		}
	}
}

// sorted orders a list as both sides must: in each directory its files first, then its directories with what is in them.
// Entries of a name that was there before are marked.
func sorted(list []*entry) []*entry {
	out := append([]*entry(nil), list...)
	sort.SliceStable(out, func(i, j int) bool { return compare(out[i], out[j]) < 0 })
	for i, e := range out {
		e.ndx = i
		if i == 0 {
			continue
		}
		at := i - 1
		for at > 0 && out[at].dup {
			at--
		}
		if before := out[at]; before.name == e.name {
			if e.isDir() && !before.isDir() {
				before.dup = true
			} else {
				before.top = before.top || e.top
				e.dup = true
			}
		}
	}
	return out
}

// compare orders two entries.
func compare(a, b *entry) int {
	if a.name == b.name {
		return 0
	}
	if a.name == "." {
		return -1
	}
	if b.name == "." {
		return 1
	}
	x, y := a.name, b.name
	for {
		c1, rest1, more1 := strings.Cut(x, "/")
		c2, rest2, more2 := strings.Cut(y, "/")
		dir1, dir2 := more1 || a.isDir(), more2 || b.isDir()
		if dir1 != dir2 {
			if dir2 {
				return -1
			}
			return 1
		}
		if c1 != c2 {
			if dir1 {
				c1, c2 = c1+"/", c2+"/"
			}
			return strings.Compare(c1, c2)
		}
		if !more1 || !more2 {
			switch {
			case more1:
				return 1
			case more2:
				return -1
			}
			return 0
		}
		x, y = rest1, rest2
	}
}
