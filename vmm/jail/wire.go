package jail

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/virtio/balloon"
)

// A message is one packet of JSON, with descriptors beside it. Both sides read it as input from an enemy.
const (
	maxPacket = 128 << 10
	maxFDs    = 1 + 64*(1+MaxOverlays) // a state, the layers of an image and of its disks; the kernel takes 253
	maxState  = 16 << 20
	maxText   = 4096 // of an error
)

// Orders of the parent, and what the VMM says.
const (
	opSetup   = "setup"   // the first, without an answer of its own; descriptors: those of the devices
	opReady   = "ready"   // VMM: prepared and confined
	opBoot    = "boot"    // descriptors: kernel, and initramfs when Initrd
	opRestore = "restore" // descriptors: state, layers, those of the disks
	opResume  = "resume"
	opPause   = "pause"
	opCapture = "capture" // answer's descriptors: state, layers, those of the disks; it goes on after Thaw
	opThaw    = "thaw"
	opInput   = "input"
	opTail    = "tail"    // answer: the console's end
	opBalloon = "balloon" // answer: its state
	opDial    = "dial"    // descriptor: a socket. The only order that others don't wait for
	opHangUp  = "hang up" // on the dial of the same ID, which is answered
	opEnded   = "ended"   // VMM: the guest has ended
)

// message is everything that is said. An answer has the order's ID.
type message struct {
	ID      uint64 `json:",omitempty"`
	Op      string
	Version string          `json:",omitempty"` // in setup and ready: see protocol
	Setup   *setup          `json:",omitempty"`
	Failed  *failure        `json:",omitempty"`
	Cmdline string          `json:",omitempty"`
	Initrd  bool            `json:",omitempty"`
	Input   []byte          `json:",omitempty"`
	Size    uint64          `json:",omitempty"` // of an image
	Extents extents         `json:",omitempty"`
	Layers  int             `json:",omitempty"` // of the image; descriptors beyond are the disks'
	Run     bool            `json:",omitempty"` // resume what is restored
	Port    uint32          `json:",omitempty"`
	Exit    *vmm.Exit       `json:",omitempty"`
	Target  *uint64         `json:",omitempty"` // of the balloon; nil: as it is
	Balloon *balloon.Status `json:",omitempty"`

	fds []int
}

// failure is an error on the wire.
type failure struct {
	Kind errs.Kind
	Text string
}

func newFailure(err error) *failure {
	if err == nil {
		return nil
	}
	text := err.Error()
	return &failure{Kind: errs.KindOf(err), Text: text[:min(len(text), maxText)]}
}

func (f *failure) err(op string) error {
	if f == nil {
		return nil
	}
	return errs.New(f.Kind, "vmm process", op, errors.New(f.Text[:min(len(f.Text), maxText)]))
}

// closeFDs closes the descriptors of a message that nobody wants.
func (m *message) closeFDs() {
	closeAll(m.fds)
	m.fds = nil
}

// conn is one end of the socket. send may be called by several, receive by one.
type conn struct{ *net.UnixConn }

// newConn takes over a socket of SOCK_SEQPACKET.
func newConn(f *os.File) (*conn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, errs.New(hostKind(err), "vmm process", "socket", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errs.Msg(errs.Invalid, "vmm process", "socket", "it isn't a unix socket")
	}
	return &conn{u}, nil
}

// send sends a message; its descriptors stay the caller's.
func (c *conn) send(m *message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return errs.New(errs.Other, "vmm process", "send", err)
	}
	if len(b) > maxPacket || len(m.fds) > maxFDs {
		return errs.Msg(errs.TooLarge, "vmm process", "send", fmt.Sprintf("a message of %d bytes and %d descriptors", len(b), len(m.fds)))
	}
	var oob []byte
	if len(m.fds) > 0 {
		oob = unix.UnixRights(m.fds...)
	}
	if _, _, err := c.WriteMsgUnix(b, oob, nil); err != nil {
		kind := errs.Unavailable
		if hostKind(err) == errs.Limit {
			kind = errs.Limit
		}
		return errs.New(kind, "vmm process", "send", err)
	}
	return nil
}

// receive reads a message; its descriptors are the caller's. buf has room for maxPacket. A message whose descriptors this process had
// no room for has failed, and none. One that can't be read is an error of kind Invalid, and what could be read of it, without descriptors.
func (c *conn) receive(buf []byte) (*message, error) {
	oob := make([]byte, unix.CmsgSpace(4*maxFDs))
	n, oobn, flags, _, err := c.ReadMsgUnix(buf, oob)
	if err != nil || n == 0 {
		return nil, errs.Msg(errs.Unavailable, "vmm process", "receive", "the other side has gone")
	}
	m := new(message)
	if m.fds, err = rights(oob[:oobn]); err == nil && flags&unix.MSG_TRUNC != 0 {
		err = errors.New("it is too long")
	}
	if err == nil {
		fds := m.fds
		err = json.Unmarshal(buf[:n], m) // what it could read it has, if the rest is of another protocol
		m.fds = fds
	}
	if err != nil {
		m.closeFDs()
		return m, errs.New(errs.Invalid, "vmm process", "receive", err)
	}
	if flags&unix.MSG_CTRUNC != 0 {
		m.closeFDs()
		m.Failed = newFailure(errs.Msg(errs.Limit, "vmm process", "receive", "the process that it is for has no descriptors left"))
	}
	return m, nil
}

// rights are the descriptors in control messages; those of a broken list are closed.
func rights(oob []byte) (fds []int, err error) {
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		more, err := unix.ParseUnixRights(&c)
		if err != nil {
			closeAll(fds)
			return nil, err
		}
		fds = append(fds, more...)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return fds, nil
}

// sealed puts bytes into a file in memory that nobody can change any more.
func sealed(b []byte) (int, error) {
	fd, err := unix.MemfdCreate("agentrun-state", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, errs.New(hostKind(err), "vmm process", "state", err)
	}
	for at := 0; at < len(b) && err == nil; {
		var n int
		n, err = unix.Pwrite(fd, b[at:], int64(at))
		at += n
		if err == unix.EINTR {
			err = nil
		}
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		unix.Close(fd)
		return -1, errs.New(hostKind(err), "vmm process", "state", err)
	}
	return fd, nil
}

// isSealed tells whether a descriptor is a file in memory that nobody can change, of ordinary pages: those that must be reserved
// can be missing when they are read.
func isSealed(fd int) bool {
	const want = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	var fs unix.Statfs_t
	return err == nil && seals&want == want && unix.Fstatfs(fd, &fs) == nil && fs.Type == unix.TMPFS_MAGIC
}

// contents reads a file that came over the socket, and closes it: at most limit bytes.
func contents(fd int, limit int64) ([]byte, error) {
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > limit {
		return nil, errs.Msg(errs.Invalid, "vmm process", "receive", "a descriptor isn't a file of a size that is taken")
	}
	b := make([]byte, st.Size)
	for at := 0; at < len(b); {
		n, err := unix.Pread(fd, b[at:], int64(at))
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return nil, errs.Msg(errs.Invalid, "vmm process", "receive", "a file is shorter than it says")
		}
		at += n
	}
	return b, nil
}
