// Package sftp is sftp-server: the side of SFTP that has the files.
//
// It speaks version 3 of the protocol (draft-ietf-secsh-filexfer-02) with the extensions of OpenSSH on its standard input
// and output, as sshd starts it for the subsystem "sftp". It is a command like others: whoever starts it decides by the
// process's credentials, working directory, umask and limits what it may do. Handles are its own, not descriptors.
package sftp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"strconv"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// Limits, OpenSSH's. A packet that is longer ends the session.
const (
	maxPacket  = 256 << 10
	maxData    = maxPacket - 1024 // bytes of one read or write
	maxHandles = 1000
	maxNames   = 100 // entries in one answer to READDIR
)

// keyHelp is what sftp-server's -h is here, which no other command has under that letter.
var spec = tool.Spec{
	Usage: []string{"[-ehR] [-d start_directory] [-u umask]"},
	About: "Serve SFTP, version 3, on standard input and output. Sessions of SSH start it.",
	Options: []getopt.Option{
		{Short: 'd', Arg: getopt.Required, Name: "DIR", Help: "start in DIR; %u is the user's name, %d the home directory"},
		{Short: 'e', Help: "write messages to standard error, as always here"},
		{Short: 'f', Arg: getopt.Required, Name: "FACILITY", Help: "(accepted)"},
		{Short: 'h', Help: "display this help"},
		{Short: 'l', Arg: getopt.Required, Name: "LEVEL", Help: "(accepted)"},
		{Short: 'R', Help: "refuse everything that changes files"},
		{Short: 'u', Arg: getopt.Required, Name: "UMASK", Help: "set the umask"},
	},
}

// server is one session.
type server struct {
	t        *tool.T
	readOnly bool
	version  bool // INIT was seen
	handles  map[uint32]*handle
	next     uint32
	max      int
	out      []byte // the answer that is being made
}

// handle is an open file, or a directory that is being listed.
type handle struct {
	name  string
	file  vfs.File
	flags int
	dir   bool
	list  []vfs.DirEntry
	read  bool // list was read
}

// Server is the command sftp-server.
func Server(t *tool.T) int {
	s := &server{t: t, handles: map[uint32]*handle{}, max: maxHandles}
	s.options()
	if l, err := t.Rlimit(proc.LimitNofile); err == nil && l.Soft < maxHandles+8 {
		s.max = max(int(l.Soft)-8, 1)
	}
	defer s.closeAll()
	in := bufio.NewReaderSize(flushing{t}, 64<<10)
	var packet []byte
	for {
		var head [4]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return 0
		}
		n := binary.BigEndian.Uint32(head[:])
		if n == 0 || n > maxPacket {
			t.Warn("a packet of %d bytes; 1 to %d are possible", n, maxPacket)
			return 11
		}
		if cap(packet) < int(n) {
			packet = make([]byte, n)
		}
		packet = packet[:n]
		if _, err := io.ReadFull(in, packet); err != nil {
			return 0
		}
		t.Check()
		if !s.answer(packet) {
			t.Warn("the client doesn't begin as SFTP does")
			return 255
		}
		binary.BigEndian.PutUint32(s.out, uint32(len(s.out)-4))
		t.Out.Write(s.out)
	}
}

func (s *server) options() {
	t := s.t
	opts, rest := t.Parse(&spec)
	if len(rest) > 0 {
		t.Extra(1, rest[0])
	}
	for _, o := range opts {
		switch o.Key {
		case 'd':
			if err := t.Chdir(startDir(t, o.Arg)); err != nil {
				t.Fatal(255, "%s: %s", o.Arg, tool.Strerror(err))
			}
		case 'h':
			t.Help(&spec)
			t.Exit(0)
		case 'R':
			s.readOnly = true
		case 'u':
			m, err := strconv.ParseUint(o.Arg, 8, 32)
			if err != nil || m > 0o777 {
				t.Fatal(1, "Invalid umask \"%s\"", o.Arg)
			}
			t.Umask(vfs.Mode(m))
		}
	}
}

// startDir expands -d's %d, %u and %%.
func startDir(t *tool.T, arg string) string {
	var out []byte
	for i := 0; i < len(arg); i++ {
		if arg[i] != '%' || i+1 == len(arg) {
			out = append(out, arg[i])
			continue
		}
		i++
		switch arg[i] {
		case 'd':
			out = append(out, t.Getenv("HOME")...)
		case 'u':
			out = append(out, t.Accounts().UserName(t.Cred().UID)...)
		default:
			out = append(out, arg[i])
		}
	}
	return string(out)
}

// flushing sends what was answered before it waits for more requests.
type flushing struct{ t *tool.T }

func (f flushing) Read(b []byte) (int, error) {
	f.t.Out.Flush()
	return f.t.Stdin().Read(b)
}

func (s *server) closeAll() {
	for _, h := range s.handles {
		if h.file != nil {
			h.file.Close()
		}
	}
}

// open remembers a handle and answers with its number.
func (s *server) open(id uint32, h *handle) {
	s.next++
	s.handles[s.next] = h
	s.begin(fxpHandle, id)
	s.uint32(4)
	s.uint32(s.next)
}

// full fails when there are as many handles as may be.
func (s *server) full() error {
	if len(s.handles) >= s.max {
		return syscall.EMFILE
	}
	return nil
}

// handle finds the handle that a request names.
func (s *server) handle(b string) (*handle, error) {
	if len(b) == 4 {
		if h := s.handles[binary.BigEndian.Uint32([]byte(b))]; h != nil {
			return h, nil
		}
	}
	return nil, errHandle
}

// errHandle says that there is no such handle. OpenSSH answers so with FAILURE.
var errHandle = errors.New("no such handle")

// fileHandle is handle for requests that only files have.
func (s *server) fileHandle(b string) (*handle, error) {
	h, err := s.handle(b)
	if err == nil && h.dir {
		return nil, errHandle
	}
	return h, err
}
