package agent

import (
	"os"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
)

// openTerminal makes a terminal that belongs to a user. The master's reads wait without a thread; the slave is a plain descriptor.
func openTerminal(size wire.Size, modes map[uint8]uint32, uid uint32) (*os.File, uintptr, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, errs.New(errs.Limit, "exec", "terminal", err)
	}
	slave := -1
	fail := func(err error) (*os.File, uintptr, error) {
		unix.Close(fd)
		if slave >= 0 {
			unix.Close(slave)
		}
		return nil, 0, errs.New(errs.Other, "exec", "terminal", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return fail(err)
	}
	// The slave is asked for by ioctl, not by its name: /dev/pts may be anything by now.
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return fail(errno)
	}
	slave = int(peer)
	if err := setModes(slave, modes); err != nil {
		return fail(err)
	}
	_ = unix.Fchown(slave, int(uid), -1) // fails where the agent isn't root, and needs no change
	_ = unix.Fchmod(slave, 0o620)
	master := os.NewFile(uintptr(fd), "terminal")
	if err := setSize(master, size); err != nil {
		master.Close()
		unix.Close(slave)
		return nil, 0, err
	}
	return master, uintptr(slave), nil
}

func setSize(master *os.File, size wire.Size) error {
	raw, err := master.SyscallConn()
	if err == nil {
		if cerr := raw.Control(func(fd uintptr) {
			err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols})
		}); cerr != nil {
			err = cerr
		}
	}
	if err != nil {
		return errs.New(errs.Unavailable, "resize", "", err)
	}
	return nil
}

// The opcodes of RFC 4254, section 8, as termios has them.
var (
	controlChars = map[uint8]int{1: unix.VINTR, 2: unix.VQUIT, 3: unix.VERASE, 4: unix.VKILL, 5: unix.VEOF, 6: unix.VEOL, 7: unix.VEOL2,
		8: unix.VSTART, 9: unix.VSTOP, 10: unix.VSUSP, 12: unix.VREPRINT, 13: unix.VWERASE, 14: unix.VLNEXT}
	inputFlags = map[uint8]uint32{30: unix.IGNPAR, 31: unix.PARMRK, 32: unix.INPCK, 33: unix.ISTRIP, 34: unix.INLCR, 35: unix.IGNCR, 36: unix.ICRNL,
		37: unix.IUCLC, 38: unix.IXON, 39: unix.IXANY, 40: unix.IXOFF, 41: unix.IMAXBEL, 42: unix.IUTF8}
	localFlags = map[uint8]uint32{50: unix.ISIG, 51: unix.ICANON, 52: unix.XCASE, 53: unix.ECHO, 54: unix.ECHOE, 55: unix.ECHOK, 56: unix.ECHONL,
		57: unix.NOFLSH, 58: unix.TOSTOP, 59: unix.IEXTEN, 60: unix.ECHOCTL, 61: unix.ECHOKE, 62: unix.PENDIN}
	outputFlags = map[uint8]uint32{70: unix.OPOST, 71: unix.OLCUC, 72: unix.ONLCR, 73: unix.OCRNL, 74: unix.ONOCR, 75: unix.ONLRET}
)

// setModes sets what the client's terminal has and ours can have. Speeds and parity mean nothing here.
func setModes(fd int, modes map[uint8]uint32) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Iflag |= unix.IUTF8
	flag := func(word *uint32, bit, value uint32) {
		if *word &^= bit; value != 0 {
			*word |= bit
		}
	}
	for op, value := range modes {
		if i, ok := controlChars[op]; ok {
			if value == 255 { // there is none
				value = 0
			}
			t.Cc[i] = uint8(value)
		} else if bit, ok := inputFlags[op]; ok {
			flag(&t.Iflag, bit, value)
		} else if bit, ok := localFlags[op]; ok {
			flag(&t.Lflag, bit, value)
		} else if bit, ok := outputFlags[op]; ok {
			flag(&t.Oflag, bit, value)
		}
	}
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}
