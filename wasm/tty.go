package wasm

import "syscall"

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

// terminal checks that a descriptor is one.
func (in *Instance) terminal(fd int) error {
	if _, err := in.p.File(fd); err != nil {
		return err
	}
	if !in.p.IsTerminal(fd) {
		return syscall.ENOTTY
	}
	return nil
}

func agentrunWinsize(in *Instance, s []uint64) error {
	if err := in.terminal(fd(s[0])); err != nil {
		return err
	}
	return syscall.ENOTSUP
}

func agentrunTcgetattr(in *Instance, s []uint64) error {
	if err := in.terminal(fd(s[0])); err != nil {
		return err
	}
	return syscall.ENOTSUP
}

func agentrunTcsetattr(in *Instance, s []uint64) error {
	if err := in.terminal(fd(s[0])); err != nil {
		return err
	}
	return syscall.ENOTSUP
}

// agentrunRlimit tells of the one limit that a process has.
func agentrunRlimit(in *Instance, s []uint64) error {
	const nofile, infinity = 7, ^uint64(0)
	if uint32(s[0]) > 15 {
		return syscall.EINVAL
	}
	v := infinity
	if uint32(s[0]) == nofile {
		v = uint64(in.p.Sandbox().Limits().Files)
	}
	if uint32(s[1]) != 0 {
		return syscall.EPERM
	}
	if uint32(s[2]) == 0 {
		return nil
	}
	if err := in.put64(s[2], v); err != nil {
		return err
	}
	return in.put64(uint64(uint32(s[2])+8), v)
}
