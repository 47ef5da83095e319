package wasm

import (
	"encoding/binary"

	"agentrun.dev/proc"
)

func agentrunCloexec(in *Instance, s []uint64) error {
	n, set := fd(s[0]), int32(s[1])
	is, err := in.p.CloseOnExec(n)
	if err != nil {
		return err
	}
	if set >= 0 {
		in.p.SetCloseOnExec(n, set != 0)
	}
	v := uint32(0)
	if is {
		v = 1
	}
	return in.put32(s[2], v)
}

func agentrunWinsize(in *Instance, s []uint64) error {
	size, err := in.p.WindowSize(fd(s[0]))
	if err != nil {
		return err
	}
	if err := in.put32(s[1], uint32(size.Cols)); err != nil {
		return err
	}
	return in.put32(uint64(uint32(s[1])+4), uint32(size.Rows))
}

// A struct termios as Linux's C libraries have it: four words of flags, the line discipline, 32 control characters, and two speeds.
const (
	termiosSize   = 60
	termiosCc     = 17
	termiosIspeed = 52
	termiosOspeed = 56
)

func agentrunTcgetattr(in *Instance, s []uint64) error {
	t, err := in.p.Termios(fd(s[0]))
	if err != nil {
		return err
	}
	b, err := in.bytes(s[1], termiosSize)
	if err != nil {
		return err
	}
	clear(b)
	for i, v := range [4]uint32{t.Iflag, t.Oflag, t.Cflag, t.Lflag} {
		binary.LittleEndian.PutUint32(b[4*i:], v)
	}
	copy(b[termiosCc:], t.Cc[:])
	binary.LittleEndian.PutUint32(b[termiosIspeed:], proc.B38400)
	binary.LittleEndian.PutUint32(b[termiosOspeed:], proc.B38400)
	return nil
}

func agentrunTcsetattr(in *Instance, s []uint64) error {
	b, err := in.bytes(s[2], termiosSize)
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	t := proc.Termios{Iflag: le.Uint32(b), Oflag: le.Uint32(b[4:]), Cflag: le.Uint32(b[8:]), Lflag: le.Uint32(b[12:])}
	copy(t.Cc[:], b[termiosCc:])
	return in.waits(func() error { return in.p.SetTermios(fd(s[0]), t, int(int32(s[1]))) })
}

// agentrunRlimit gets and sets one of the process's limits.
func agentrunRlimit(in *Instance, s []uint64) error {
	what := int(int32(s[0]))
	old, err := in.p.Rlimit(what)
	if err != nil {
		return err
	}
	if uint32(s[1]) != 0 {
		b, err := in.bytes(s[1], 16)
		if err != nil {
			return err
		}
		l := proc.Rlimit{Soft: binary.LittleEndian.Uint64(b), Hard: binary.LittleEndian.Uint64(b[8:])}
		if err := in.p.SetRlimit(what, l); err != nil {
			return err
		}
	}
	if uint32(s[2]) == 0 {
		return nil
	}
	if err := in.put64(s[2], old.Soft); err != nil {
		return err
	}
	return in.put64(uint64(uint32(s[2])+8), old.Hard)
}
