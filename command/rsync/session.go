package rsync

import (
	"crypto/md5"
	"encoding/binary"
	"io"
	"strings"
	"syscall"

	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// Flags of what the receiver says and asks about a file.
const (
	itemChange      = 1 << 1
	itemSize        = 1 << 2
	itemTime        = 1 << 3
	itemPerms       = 1 << 4
	itemOwner       = 1 << 5
	itemGroup       = 1 << 6
	itemBasis       = 1 << 11
	itemXName       = 1 << 12
	itemNew         = 1 << 13
	itemLocal       = 1 << 14
	itemTransfer    = 1 << 15
	itemUnimportant = itemBasis | itemXName | itemLocal
)

// Exit statuses.
const (
	codeSyntax   = 1
	codeProtocol = 2
	codeSelect   = 3
	codeStart    = 5
	codeFileIO   = 11
	codeStream   = 12
	codePartial  = 23
	codeVanished = 24
	codeDelete   = 25
)

// session is one side of a transfer.
type session struct {
	p         *proc.Process
	o         *options
	r         *reader
	w         *writer
	seed      int32
	seedFirst bool // the seed goes before the block in a strong checksum
	server    bool
	list      []*entry
	literal   int64
	matched   int64
	ioError   int32 // errors while the list was made or files were sent
	tooMany   bool  // deletions were stopped
	problem   bool  // something went wrong that makes the exit status 23
	say       func(tag int, text string)
	log       func(e *entry, flags int, xname string) // what the sender did
	stats     counts
	deleted   func(name string)
}

// counts are for --stats.
type counts struct {
	files, regs, dirs, links, devs, specials int
	created, deletedFiles, sent              int
	size, sentSize                           int64
}

func (c *counts) add(e *entry) {
	c.files++
	switch e.mode & vfs.ModeType {
	case vfs.ModeRegular:
		c.regs++
		c.size += e.size
	case vfs.ModeDir:
		c.dirs++
	case vfs.ModeSymlink:
		c.links++
		c.size += e.size
	case vfs.ModeChar, vfs.ModeBlock:
		c.devs++
	default:
		c.specials++
	}
}

// newSession makes a session over two streams.
func newSession(p *proc.Process, o *options, in io.Reader, out io.Writer, server bool) *session {
	s := &session{p: p, o: o, r: newReader(in), w: newWriter(out), server: server}
	s.log = func(*entry, int, string) {}
	s.deleted = func(string) {}
	if server {
		s.say = func(tag int, text string) { s.w.message(tag, []byte(text)) }
	}
	return s
}

// Capabilities that a client may have and that a server answers with.
const (
	compatSymlinkTimes = 2
	compatSeedFirst    = 32
)

// greet agrees on a version and what goes with it; then everything is framed.
func (s *session) greet() error {
	s.w.int(protocol)
	if err := s.w.flush(); err != nil {
		return err
	}
	theirs := s.r.int()
	if s.r.err != nil {
		return s.r.err
	}
	if theirs < protocol || theirs > 1000 {
		return &failure{codeProtocol, "protocol version mismatch -- is your shell clean?\n(see the rsync manpage for an explanation)"}
	}
	if s.server {
		compat := int32(0)
		_, info, _ := strings.Cut(s.o.info, ".")
		if strings.Contains(info, "L") {
			compat |= compatSymlinkTimes
		}
		if strings.Contains(info, "C") {
			compat |= compatSeedFirst
		}
		s.seedFirst = compat&compatSeedFirst != 0
		s.w.varint(compat)
		if s.seed = s.o.seed; s.seed == 0 {
			var b [4]byte
			if _, err := io.ReadFull(s.p.Rand(), b[:]); err != nil {
				return err
			}
			s.seed = int32(binary.LittleEndian.Uint32(b[:])) | 1
		}
		s.w.int(s.seed)
		if err := s.w.flush(); err != nil {
			return err
		}
	} else {
		compat := s.r.varint()
		s.seedFirst = compat&compatSeedFirst != 0
		s.seed = s.r.int()
	}
	s.r.framed, s.w.framed = true, true
	s.r.message = s.message
	return s.r.err
}

// message handles a message of the other side.
func (s *session) message(tag int, text []byte) error {
	switch tag {
	case msgXfer, msgError:
		s.problem = true
		if s.say != nil {
			s.say(tag, string(text))
		}
	case msgInfo, msgWarning:
		if s.say != nil && !s.server {
			s.say(tag, string(text))
		}
	case msgIOError:
		if len(text) == 4 {
			s.ioError |= int32(binary.LittleEndian.Uint32(text))
		}
	case msgDeleted:
		s.deleted(string(text))
	case msgExit:
		if len(text) == 4 {
			return &failure{int(binary.LittleEndian.Uint32(text)) & 0xff, ""}
		}
	}
	return nil
}

// fileFailed reports an error of a file; the transfer goes on.
func (s *session) fileFailed(what, name string, err error) {
	s.problem = true
	s.say(msgXfer, "rsync: "+what+" \""+name+"\" failed: "+tool.Strerror(err)+" ("+errno(err)+")\n")
}

func errno(err error) string {
	n := vfs.Errno(err)
	return itoa(int64(n))
}

// digest computes the checksum of a whole file for --checksum.
func (s *session) digest(name string) []byte {
	f, err := s.p.Open(name, syscall.O_RDONLY, 0)
	if err != nil {
		return make([]byte, sumSize)
	}
	defer f.Close()
	h := md5.New()
	if _, err := io.Copy(h, f); err != nil {
		return make([]byte, sumSize)
	}
	return h.Sum(nil)
}

// writeItem writes an index with its flags.
func (s *session) writeItem(ndx int, flags int, xname string) {
	s.w.ndx(int32(ndx))
	s.w.short(uint16(flags))
	if flags&itemBasis != 0 {
		s.w.byte(0x80)
	}
	if flags&itemXName != 0 {
		s.w.vstring(xname)
	}
}

// readItem reads an index with its flags; the index is done at the end of a phase.
func (s *session) readItem() (ndx, flags int, xname string, err error) {
	n := s.r.ndx()
	if s.r.err != nil || n == done {
		return done, 0, "", s.r.err
	}
	if n < 0 {
		s.r.fail("unexpected index")
		return 0, 0, "", s.r.err
	}
	flags = int(s.r.short())
	if flags&itemBasis != 0 {
		s.r.byte()
	}
	if flags&itemXName != 0 {
		xname = s.r.vstring()
	}
	if s.r.err == nil && int(n) >= len(s.list) {
		s.r.fail("file index out of range")
	}
	return int(n), flags, xname, s.r.err
}
