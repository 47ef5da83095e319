package rsync

import (
	"bytes"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"path"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"agentrun.dev/vfs"
)

// receiver puts files in place. Its generator asks for what is missing; a goroutine takes what comes.
type receiver struct {
	s       *session
	o       *options
	dest    string // directory that the names are relative to
	single  string // the name of the only file, if the destination named it
	mu      sync.Mutex
	redo    []*entry // whose data didn't have the right checksum
	root    bool     // we may change owners
	umask   vfs.Mode
	created map[string]bool // directories that a dry run would have made
	deletes int
	skipped int             // deletions over --max-delete
	newDest bool            // the destination was made
	failed  map[string]bool // directories that couldn't be made
	user    func(string) (uint32, bool)
	group   func(string) (uint32, bool)
	groups  func(gid uint32) bool
}

// receiveList reads the file list.
func (v *receiver) receiveList() error {
	l := &lister{o: v.o}
	for {
		e, err := l.receive(v.s.r)
		if err != nil {
			return err
		}
		if e == nil {
			break
		}
	}
	l.receiveIDs(v.s.r, v.user, v.group)
	if v.s.r.err != nil {
		return v.s.r.err
	}
	v.s.list = sorted(l.raw)
	return nil
}

// place finds out where the files go.
func (v *receiver) place(dest string) error {
	if dest == "" {
		dest = "."
	}
	slash := strings.HasSuffix(dest, "/")
	a, err := v.s.p.Stat(dest)
	switch {
	case err == nil && a.Mode.IsDir():
		v.dest = dest
		return nil
	case err == nil && (len(v.s.list) > 1 || slash):
		return &failure{codeSelect, "ERROR: destination must be a directory when copying more than 1 file"}
	case err == nil, len(v.s.list) == 1 && !slash && !v.s.list[0].isDir():
		v.dest, v.single = path.Dir(dest), path.Base(dest)
		return nil
	}
	v.dest = dest
	clean := strings.TrimSuffix(dest, "/")
	if v.o.dryRun {
		v.created["."] = true
	} else {
		if v.o.mkpath {
			for i := 1; i < len(clean); i++ {
				if clean[i] == '/' {
					v.s.p.Mkdir(clean[:i], 0o777)
				}
			}
		}
		if err := v.s.p.Mkdir(clean, 0o777); err != nil {
			return &failure{codeFileIO, "mkdir \"" + absolute(v.s, clean) + "\" failed: " + strerror(err) + " (" + errno(err) + ")"}
		}
	}
	v.newDest = true
	if v.o.verbose > 0 || v.o.itemize > 0 {
		v.s.say(msgInfo, "created directory "+clean+"\n")
	}
	return nil
}

// path is where an entry goes.
func (v *receiver) path(e *entry) string {
	if v.single != "" {
		return join(v.dest, v.single)
	}
	return join(v.dest, e.name)
}

func join(dir, name string) string {
	switch {
	case name == ".":
		return dir
	case dir == ".":
		return name
	}
	return strings.TrimSuffix(dir, "/") + "/" + name
}

// run asks for all that is missing, and takes it.
func (v *receiver) run() error {
	taken := make(chan error, 1)
	phase := make(chan struct{}, phases+2)
	go func() { taken <- v.take(phase) }()
	err := v.generate(phase, taken)
	if err != nil {
		select {
		case terr := <-taken:
			if terr != nil {
				return terr
			}
		default:
		}
		return err
	}
	if err := <-taken; err != nil {
		return err
	}
	v.finishDirs()
	if v.skipped > 0 {
		v.s.say(msgWarning, fmt.Sprintf("Deletions stopped due to --max-delete limit (%d skipped)\n", v.skipped))
		v.s.tooMany = true
	}
	v.s.w.ndx(done)
	return v.s.w.flush()
}

// generate goes through the list.
func (v *receiver) generate(phase <-chan struct{}, taken chan error) error {
	if v.o.delete && !v.o.deleteAfter {
		v.deleteExtra()
	}
	for _, e := range v.s.list {
		if e.dup {
			continue
		}
		if v.s.p.Context().Err() != nil {
			return syscall.EINTR
		}
		if err := v.consider(e); err != nil {
			return err
		}
	}
	v.s.w.ndx(done)
	if err := v.s.w.flush(); err != nil {
		return err
	}
	if err := await(phase, taken); err != nil {
		return err
	}
	v.mu.Lock()
	redo := v.redo
	v.redo = nil
	v.mu.Unlock()
	for _, e := range redo {
		v.s.writeItem(e.ndx, itemTransfer, "")
		sumHead{}.send(v.s.w) // the whole file
	}
	v.s.w.ndx(done)
	if err := v.s.w.flush(); err != nil {
		return err
	}
	if err := await(phase, taken); err != nil {
		return err
	}
	v.linkAll()
	if v.o.delete && v.o.deleteAfter {
		v.deleteExtra()
	}
	v.s.w.ndx(done)
	return v.s.w.flush()
}

// await waits until the sender has answered the end of a phase.
func await(phase <-chan struct{}, taken chan error) error {
	select {
	case <-phase:
		return nil
	case err := <-taken:
		taken <- err
		if err == nil {
			return nil
		}
		return err
	}
}

// consider brings an entry up to date, or asks for it.
func (v *receiver) consider(e *entry) error {
	name := v.path(e)
	if v.failed[path.Dir(e.name)] {
		if e.isDir() {
			v.failed[e.name] = true
		}
		return nil
	}
	var old *vfs.Attr
	if !v.created[path.Dir(e.name)] || e.name == "." && !v.created["."] {
		if a, err := v.s.p.Lstat(name); err == nil {
			old = &a
		}
	}
	if !v.safe(e) {
		return nil
	}
	if old == nil && v.o.existing {
		if e.isDir() {
			v.failed[e.name] = true
		}
		return nil
	}
	if old != nil && v.o.ignoreExisting && !e.isDir() {
		return nil
	}
	switch e.mode & vfs.ModeType {
	case vfs.ModeDir:
		return v.directory(e, name, old)
	case vfs.ModeSymlink:
		if v.o.links {
			return v.symlink(e, name, old)
		}
	case vfs.ModeRegular:
		if e.linked && e.first != nil {
			return nil // linked at the end
		}
		return v.regular(e, name, old)
	default:
		if v.o.device(e.mode) {
			return v.special(e, name, old)
		}
	}
	return nil
}

// safe reports whether all directories above an entry are real ones: a link among them could lead anywhere.
func (v *receiver) safe(e *entry) bool {
	if v.o.keepDirlinks {
		return true
	}
	for dir := path.Dir(e.name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if a, err := v.s.p.Lstat(join(v.dest, dir)); err == nil && a.Mode.IsSymlink() {
			v.s.problem = true
			v.s.say(msgXfer, "rsync: refusing to follow the symbolic link \""+dir+"\" for \""+e.name+"\"\n")
			return false
		}
	}
	return true
}

// changes compares an entry with what is there.
func (v *receiver) changes(e *entry, old *vfs.Attr, flags int) int {
	if old == nil {
		return flags | itemNew
	}
	keepTime := v.o.times && !(e.isDir() && v.o.omitDirTimes) && !e.mode.IsSymlink()
	if e.mode.IsSymlink() && v.o.times {
		keepTime = true
	}
	if e.mode.IsRegular() && e.size != old.Size {
		flags |= itemSize
	}
	if keepTime && !v.sameTime(e.mtime, old.Mtime.Unix()) || !keepTime && flags&(itemTransfer|itemLocal) != 0 && !e.isDir() {
		flags |= itemTime
	}
	if v.o.perms && !e.mode.IsSymlink() && (e.mode^old.Mode)&0o7777 != 0 {
		flags |= itemPerms
	} else if v.o.executability && e.mode.IsRegular() && (e.mode&0o111 != 0) != (old.Mode&0o111 != 0) {
		flags |= itemPerms
	}
	if v.o.owner && v.root && e.uid != old.UID {
		flags |= itemOwner
	}
	if v.o.group && e.gid != old.GID && v.groups(e.gid) {
		flags |= itemGroup
	}
	return flags
}

func (v *receiver) sameTime(a, b int64) bool {
	d := a - b
	return max(d, -d) <= v.o.modifyWindow
}

// report tells the sender what becomes of an entry.
func (v *receiver) report(e *entry, flags int, xname string) {
	if flags&^itemUnimportant == 0 && v.o.verbose < 2 && v.o.itemize < 2 && xname == "" {
		return
	}
	if xname != "" {
		flags |= itemXName
	}
	v.s.writeItem(e.ndx, flags, xname)
}

func (v *receiver) directory(e *entry, name string, old *vfs.Attr) error {
	if old != nil && old.Mode.IsSymlink() && v.o.keepDirlinks {
		if a, err := v.s.p.Stat(name); err == nil && a.Mode.IsDir() {
			old = &a
		}
	}
	if e.name == "." && old != nil && old.Mode.IsSymlink() {
		if a, err := v.s.p.Stat(name); err == nil {
			old = &a
		}
	}
	if old != nil && !old.Mode.IsDir() {
		if !v.remove(name, e.name, *old) {
			v.failed[e.name] = true
			return nil
		}
		old = nil
	}
	flags := 0
	if old == nil {
		flags = itemLocal
	}
	flags = v.changes(e, old, flags)
	if e.name == "." && v.newDest {
		flags |= itemNew | itemLocal
	}
	v.report(e, flags, "")
	if v.o.dryRun {
		if old == nil {
			v.created[e.name] = true
		}
		return nil
	}
	if old == nil {
		// Writable until the end, when it gets its own mode.
		if err := v.s.p.Mkdir(name, v.newMode(e)|0o700); err != nil {
			v.s.fileFailed("recv_generator: mkdir", absolute(v.s, name), err)
			v.failed[e.name] = true
			return nil
		}
	}
	return v.own(e, name, old, false)
}

// newMode is the mode of a new file.
func (v *receiver) newMode(e *entry) vfs.Mode {
	if v.o.perms {
		return e.mode & 0o7777
	}
	return e.mode & 0o777 &^ v.umask
}

// own sets owner, mode and, if wanted, the time of a file that is in place.
func (v *receiver) own(e *entry, name string, old *vfs.Attr, stamp bool) error {
	var set vfs.SetAttr
	link := e.mode.IsSymlink()
	if v.o.owner && v.root && (old == nil || old.UID != e.uid) {
		set.UID = &e.uid
	}
	if v.o.group && (old == nil || old.GID != e.gid) && v.groups(e.gid) {
		set.GID = &e.gid
	}
	if set.UID != nil || set.GID != nil {
		if err := v.s.p.SetAttr(name, set, false); err != nil {
			v.s.fileFailed("chown", absolute(v.s, name), err)
		}
		set.UID, set.GID = nil, nil
	}
	if !link {
		mode := v.newMode(e)
		if e.isDir() {
			mode |= 0o700
		}
		switch {
		case v.o.perms, old == nil && v.o.chmod == "":
			set.Mode = &mode
		case v.o.executability && old != nil && e.mode.IsRegular():
			m := old.Mode & 0o7777 &^ 0o111
			if e.mode&0o111 != 0 {
				m |= m & 0o444 >> 2
			}
			set.Mode = &m
		case old != nil && e.mode.IsRegular() && stamp:
			m := old.Mode & 0o7777
			set.Mode = &m
		}
	}
	if v.o.times && stamp {
		at := time.Unix(e.mtime, 0)
		set.Mtime = &at
	}
	if set.Mode == nil && set.Mtime == nil {
		return nil
	}
	if err := v.s.p.SetAttr(name, set, false); err != nil {
		v.s.fileFailed("failed to set permissions on", absolute(v.s, name), err)
	}
	return nil
}

func (v *receiver) symlink(e *entry, name string, old *vfs.Attr) error {
	if v.o.safeLinks && unsafeLink(e.target, e.name) {
		if v.o.verbose > 0 {
			v.s.say(msgInfo, "ignoring unsafe symlink \""+e.name+"\" -> \""+e.target+"\"\n")
		}
		return nil
	}
	if old != nil && old.Mode.IsSymlink() {
		if target, err := v.s.p.Readlink(name); err == nil && target == e.target {
			v.report(e, v.changes(e, old, 0), "")
			if !v.o.dryRun {
				return v.own(e, name, old, true)
			}
			return nil
		}
	}
	flags := itemLocal
	if old != nil && old.Mode.IsSymlink() {
		flags |= itemChange
	}
	flags = v.changes(e, old, flags)
	if old != nil && !v.o.dryRun && !v.remove(name, e.name, *old) {
		return nil
	}
	if !v.o.dryRun {
		if err := v.s.p.Symlink(e.target, name); err != nil {
			v.s.fileFailed("symlink", absolute(v.s, name), err)
			return nil
		}
		v.own(e, name, nil, true)
	}
	v.report(e, flags, "")
	return nil
}

// unsafeLink reports whether a link leads out of the tree.
func unsafeLink(target, name string) bool {
	if strings.HasPrefix(target, "/") {
		return true
	}
	depth := strings.Count(name, "/")
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "..":
			if depth--; depth < 0 {
				return true
			}
		case "", ".":
		default:
			depth++
		}
	}
	return false
}

func (v *receiver) special(e *entry, name string, old *vfs.Attr) error {
	if old != nil && old.Mode&vfs.ModeType == e.mode&vfs.ModeType && old.Rdev == e.rdev {
		v.report(e, v.changes(e, old, 0), "")
		return v.own(e, name, old, true)
	}
	flags := v.changes(e, old, itemLocal)
	if old != nil && !v.remove(name, e.name, *old) {
		return nil
	}
	if !v.o.dryRun {
		if err := v.s.p.Mknod(name, e.mode, e.rdev); err != nil {
			v.s.fileFailed("mknod", absolute(v.s, name), err)
			return nil
		}
		v.own(e, name, nil, true)
	}
	v.report(e, flags, "")
	return nil
}

// remove makes way for something of another kind.
func (v *receiver) remove(name, display string, a vfs.Attr) bool {
	if v.o.dryRun {
		return true
	}
	if v.o.backup && !a.Mode.IsDir() {
		if err := v.keep(&entry{name: display}, name); err != nil {
			v.s.fileFailed("backup", absolute(v.s, name), err)
			return false
		}
		return true
	}
	if a.Mode.IsDir() {
		if v.o.force || v.o.delete {
			v.deleteTree(name, display)
			return true
		}
		if err := v.s.p.Rmdir(name); err != nil {
			v.s.problem = true
			v.s.say(msgXfer, "cannot delete non-empty directory: "+display+"\ncould not make way for new regular file: "+display+"\n")
			return false
		}
		return true
	}
	if err := v.s.p.Unlink(name); err != nil {
		v.s.fileFailed("unlink", absolute(v.s, name), err)
		return false
	}
	return true
}

// regular asks for a file unless it is up to date.
func (v *receiver) regular(e *entry, name string, old *vfs.Attr) error {
	if v.o.maxSize > 0 && e.size > v.o.maxSize || v.o.minSize > 0 && e.size < v.o.minSize {
		return nil
	}
	if old != nil && !old.Mode.IsRegular() {
		if !v.remove(name, e.name, *old) {
			return nil
		}
		old = nil
	}
	if old != nil && v.o.update && old.Mtime.Unix() > e.mtime+v.o.modifyWindow {
		if v.o.verbose > 1 {
			v.s.say(msgInfo, e.name+" is newer\n")
		}
		return nil
	}
	if old != nil && v.upToDate(e, name, old) {
		v.report(e, v.changes(e, old, 0), "")
		if !v.o.dryRun {
			return v.own(e, name, old, true)
		}
		return nil
	}
	flags := itemTransfer
	if v.o.checksum && old != nil && old.Size == e.size {
		flags |= itemChange
	}
	v.s.writeItem(e.ndx, v.changes(e, old, flags), "")
	if v.o.dryRun {
		return nil
	}
	if old == nil || v.o.wholeFile || old.Size == 0 {
		sumHead{}.send(v.s.w)
		return nil
	}
	f, err := v.s.p.Open(name, syscall.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		sumHead{}.send(v.s.w)
		return nil
	}
	defer f.Close()
	return v.s.sendSums(f, headFor(old.Size))
}

// upToDate reports whether a file needs no transfer.
func (v *receiver) upToDate(e *entry, name string, old *vfs.Attr) bool {
	if old.Size != e.size {
		return false
	}
	switch {
	case v.o.checksum:
		return bytes.Equal(v.s.digest(name), e.sum)
	case v.o.sizeOnly:
		return true
	case v.o.ignoreTimes:
		return false
	}
	return v.sameTime(e.mtime, old.Mtime.Unix())
}

// take receives what the sender sends, to the end of the last phase.
func (v *receiver) take(phase chan<- struct{}) error {
	for n := 0; ; {
		ndx, flags, _, err := v.s.readItem()
		if err != nil {
			return err
		}
		if ndx == done {
			if n++; n > phases {
				return nil
			}
			phase <- struct{}{}
			continue
		}
		if flags&itemTransfer == 0 || v.o.dryRun {
			continue
		}
		e := v.s.list[ndx]
		if !e.mode.IsRegular() || n == phases {
			return fmt.Errorf("data for what isn't a file: %w", protocolError)
		}
		if err := v.receiveFile(e, n > 0); err != nil {
			return err
		}
	}
}

// receiveFile takes a file's data into a temporary file and puts it in place.
func (v *receiver) receiveFile(e *entry, last bool) error {
	h, err := receiveHead(v.s.r)
	if err != nil {
		return err
	}
	name := v.path(e)
	var basis vfs.File
	var old *vfs.Attr
	if v.safe(e) {
		if a, err := v.s.p.Lstat(name); err == nil && a.Mode.IsRegular() {
			old = &a
			if h.count > 0 {
				if basis, err = v.s.p.Open(name, syscall.O_RDONLY|syscall.O_NOFOLLOW, 0); err == nil {
					defer basis.Close()
				}
			}
		}
	}
	temp, f, ferr := v.temporary(e, name)
	ok, err := v.data(e, h, basis, f)
	if err != nil {
		if f != nil {
			f.Close()
			v.abandon(e, temp, name)
		}
		return err
	}
	if ferr != nil {
		v.s.fileFailed("mkstemp", absolute(v.s, name), ferr)
		return nil
	}
	cerr := f.Close()
	switch {
	case cerr != nil:
		v.s.fileFailed("close", absolute(v.s, name), cerr)
		v.s.p.Unlink(temp)
		return nil
	case !ok:
		v.s.p.Unlink(temp)
		if last {
			v.s.problem = true
			v.s.say(msgXfer, "ERROR: "+e.name+" failed verification -- update discarded.\n")
			return nil
		}
		v.mu.Lock()
		v.redo = append(v.redo, e)
		v.mu.Unlock()
		return nil
	}
	return v.install(e, temp, name, old)
}

// abandon keeps what came of a file if the user wants that.
func (v *receiver) abandon(e *entry, temp, name string) {
	switch {
	case v.o.partialDir != "" && !strings.HasPrefix(v.o.partialDir, "/"):
		dir := join(path.Dir(name), v.o.partialDir)
		v.s.p.Mkdir(dir, 0o700)
		v.s.p.Rename(temp, join(dir, path.Base(name)), 0)
	case v.o.partial:
		v.s.p.Rename(temp, name, 0)
	default:
		v.s.p.Unlink(temp)
	}
}

// temporary opens the file that the data goes to: beside its place, under a name that starts with a dot.
func (v *receiver) temporary(e *entry, name string) (string, vfs.File, error) {
	if !v.safe(e) {
		return "", nil, syscall.ELOOP
	}
	dir, base := path.Dir(name), path.Base(name)
	if len(base) > 240 {
		base = base[:240]
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	for range 100 {
		var b [6]byte
		if _, err := io.ReadFull(v.s.p.Rand(), b[:]); err != nil {
			return "", nil, err
		}
		for i := range b {
			b[i] = letters[int(b[i])%len(letters)]
		}
		temp := join(dir, "."+base+"."+string(b[:]))
		f, err := v.s.p.Open(temp, syscall.O_RDWR|syscall.O_CREAT|syscall.O_EXCL, 0o600)
		if !errors.Is(err, syscall.EEXIST) {
			return temp, f, err
		}
	}
	return "", nil, syscall.EEXIST
}

// data puts a file together and reports whether its checksum is right. Without f the data is only read.
func (v *receiver) data(e *entry, h sumHead, basis, f vfs.File) (ok bool, err error) {
	whole := md5.New()
	src := v.o.source()
	var werr error
	write := func(p []byte) {
		whole.Write(p)
		if f != nil && werr == nil {
			_, werr = f.Write(p)
		}
	}
	for {
		p, err := src.next(v.s.r)
		if err != nil {
			return false, err
		}
		if p.end {
			break
		}
		if p.data != nil {
			write(p.data)
			continue
		}
		if p.block < 0 || p.block >= h.count {
			return false, fmt.Errorf("invalid block number %d: %w", p.block, protocolError)
		}
		b := make([]byte, h.size(p.block))
		if basis != nil {
			basis.ReadAt(b, int64(p.block)*int64(h.length)) // what is short shows in the checksum
		}
		if err := src.copied(b); err != nil {
			return false, err
		}
		write(b)
	}
	sum := v.s.r.bytes(sumSize)
	if v.s.r.err != nil {
		return false, v.s.r.err
	}
	if werr != nil {
		v.s.fileFailed("write", absolute(v.s, v.path(e)), werr)
		return false, nil
	}
	return bytes.Equal(sum, whole.Sum(nil)), nil
}

// install renames a file that is complete to its place.
func (v *receiver) install(e *entry, temp, name string, old *vfs.Attr) error {
	if old != nil && v.o.backup {
		if err := v.keep(e, name); err != nil {
			v.s.fileFailed("backup", absolute(v.s, name), err)
		}
	}
	v.own(e, temp, old, true)
	if v.o.inplace && old != nil {
		if err := v.overwrite(temp, name); err != nil {
			v.s.fileFailed("write", absolute(v.s, name), err)
		}
		v.s.p.Unlink(temp)
		return v.own(e, name, old, true)
	}
	if err := v.s.p.Rename(temp, name, 0); err != nil {
		v.s.fileFailed("rename", absolute(v.s, temp)+"\" -> \""+name, err)
		v.s.p.Unlink(temp)
	}
	return nil
}

// overwrite copies a file over another that keeps its inode (--inplace).
func (v *receiver) overwrite(temp, name string) error {
	in, err := v.s.p.Open(temp, syscall.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := v.s.p.Open(name, syscall.O_WRONLY|syscall.O_TRUNC|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}

// keep renames the former file (--backup).
func (v *receiver) keep(e *entry, name string) error {
	to := name + v.o.suffix
	if v.o.backupDir != "" {
		dir := v.o.backupDir
		if !strings.HasPrefix(dir, "/") {
			dir = join(v.dest, dir)
		}
		to = join(dir, e.name) + v.o.suffix
		for i := 1; i < len(to); i++ {
			if to[i] == '/' {
				v.s.p.Mkdir(to[:i], 0o777)
			}
		}
	}
	return v.s.p.Rename(name, to, 0)
}

// linkAll makes the hard links.
func (v *receiver) linkAll() {
	for _, e := range v.s.list {
		if e.dup || !e.linked || e.first == nil {
			continue
		}
		name, first := v.path(e), v.path(e.first)
		if !v.safe(e) || !v.safe(e.first) {
			continue
		}
		a, aerr := v.s.p.Lstat(first)
		b, berr := v.s.p.Lstat(name)
		if aerr == nil && berr == nil && a.Ino == b.Ino && a.Dev == b.Dev {
			continue
		}
		flags := itemLocal
		if berr != nil {
			flags |= itemNew
		} else {
			flags |= itemChange
		}
		v.report(e, flags, e.first.name)
		if v.o.dryRun {
			continue
		}
		if berr == nil && !v.remove(name, e.name, b) {
			continue
		}
		if err := v.s.p.Link(first, name); err != nil {
			v.s.fileFailed("link", absolute(v.s, name), err)
		}
	}
}

// finishDirs gives directories the modes and times that they shall have, the deepest first.
func (v *receiver) finishDirs() {
	if v.o.dryRun {
		return
	}
	for i := len(v.s.list) - 1; i >= 0; i-- {
		e := v.s.list[i]
		if e.dup || !e.isDir() || v.failed[e.name] {
			continue
		}
		name := v.path(e)
		a, err := v.s.p.Stat(name)
		if err != nil || !a.Mode.IsDir() {
			continue
		}
		var set vfs.SetAttr
		if mode := v.newMode(e); v.o.perms && a.Mode&0o7777 != mode {
			set.Mode = &mode
		}
		if v.o.times && !v.o.omitDirTimes && a.Mtime.Unix() != e.mtime {
			at := time.Unix(e.mtime, 0)
			set.Mtime = &at
		}
		if set.Mode != nil || set.Mtime != nil {
			v.s.p.SetAttr(name, set, true)
		}
	}
}

// deleteExtra deletes what the sender doesn't have, in the directories whose content was sent.
func (v *receiver) deleteExtra() {
	if v.s.ioError != 0 && !v.o.ignoreErrors {
		v.s.say(msgInfo, "IO error encountered -- skipping file deletion\n")
		return
	}
	have := map[string]bool{}
	for _, e := range v.s.list {
		have[e.name] = true
	}
	for _, e := range v.s.list {
		if e.dup || !e.isDir() || e.noData || !v.o.recursive && !(v.o.dirs && e.name == ".") || !v.safe(e) {
			continue
		}
		name := v.path(e)
		if a, err := v.s.p.Lstat(name); err != nil || !a.Mode.IsDir() && e.name != "." {
			continue
		}
		entries, err := v.s.p.ReadDir(name)
		if err != nil {
			continue
		}
		sort.Slice(entries, func(i, j int) bool { return entries[i].Name > entries[j].Name })
		for _, d := range entries {
			if d.Name == "." || d.Name == ".." {
				continue
			}
			display := d.Name
			if e.name != "." {
				display = e.name + "/" + d.Name
			}
			if have[display] {
				continue
			}
			v.deleteOne(join(name, d.Name), display)
		}
	}
}

// deleteOne deletes a file or a whole directory unless a rule protects it.
func (v *receiver) deleteOne(name, display string) {
	a, err := v.s.p.Lstat(name)
	if err != nil {
		return
	}
	if !v.o.deleteExcluded && v.o.filter.excluded(display, a.Mode.IsDir(), false) || v.o.deleteExcluded && v.protected(display, a.Mode.IsDir()) {
		return
	}
	if v.o.partialDir != "" && path.Base(display) == v.o.partialDir {
		return
	}
	if a.Mode.IsDir() {
		v.deleteTree(name, display)
		return
	}
	if !v.mayDelete() {
		return
	}
	if !v.o.dryRun {
		if err := v.s.p.Unlink(name); err != nil {
			v.s.fileFailed("delete_file: unlink", absolute(v.s, name), err)
			return
		}
	}
	v.tellDeleted(display, false)
}

// protected reports whether a P rule names a file.
func (v *receiver) protected(name string, dir bool) bool {
	for i := range v.o.filter.rules {
		if r := &v.o.filter.rules[i]; r.protects && r.match(name, dir) {
			return !r.include
		}
	}
	return false
}

// deleteTree deletes a directory with all that is in it and isn't protected.
func (v *receiver) deleteTree(name, display string) {
	entries, err := v.s.p.ReadDir(name)
	if err != nil {
		v.s.fileFailed("opendir", absolute(v.s, name), err)
		return
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name > entries[j].Name })
	for _, d := range entries {
		if d.Name != "." && d.Name != ".." {
			v.deleteOne(join(name, d.Name), display+"/"+d.Name)
		}
	}
	if !v.mayDelete() {
		return
	}
	if !v.o.dryRun {
		if err := v.s.p.Rmdir(name); err != nil {
			if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
				v.s.say(msgInfo, "cannot delete non-empty directory: "+display+"\n")
			} else {
				v.s.fileFailed("delete_file: rmdir", absolute(v.s, name), err)
			}
			return
		}
	}
	v.tellDeleted(display, true)
}

func (v *receiver) mayDelete() bool {
	if v.o.maxDelete >= 0 && v.deletes >= v.o.maxDelete {
		v.skipped++
		return false
	}
	v.deletes++
	return true
}

// tellDeleted tells the other side of a deletion; a directory's name ends with a zero byte.
func (v *receiver) tellDeleted(display string, dir bool) {
	if v.o.verbose == 0 && v.o.itemize == 0 && v.s.server && v.o.stats == 0 {
		return
	}
	if dir {
		display += "\x00"
	}
	v.s.w.message(msgDeleted, []byte(display))
}
