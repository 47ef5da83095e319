package machine

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/guest/wire"
)

// Machine is what the agent may do to the machine; it implements agent.Machine.
type Machine struct{}

// Renew gives the machine entropy first: whatever the others draw from it is its own already.
func (m Machine) Renew(r wire.Renew) error {
	if err := reseed(r.Entropy); err != nil {
		return err
	}
	now := unix.NsecToTimespec(r.Time.UnixNano())
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &now); err != nil {
		return errs.New(errs.Other, "renew", "time", err)
	}
	if err := names(r.Hostname, r.MachineID, r.DNS); err != nil {
		return err
	}
	for _, l := range r.Links {
		if err := link(l); err != nil {
			return err
		}
	}
	return nil
}

// Sync implements agent.Machine.
func (Machine) Sync() { unix.Sync() }

// Mount implements agent.Machine.
func (Machine) Mount(m wire.Mount) error { return mount(m) }

// Unmount implements agent.Machine.
func (Machine) Unmount(path string) error {
	err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
	switch {
	case errors.Is(err, unix.EBUSY):
		return errs.New(errs.Conflict, "unmount", path, err)
	case err != nil:
		return errs.New(errs.NotFound, "unmount", path, err)
	}
	return nil
}

// endGrace is how long processes have to end when the machine goes off.
const endGrace = 2 * time.Second

// Off ends all processes, writes what is unwritten and turns the machine off.
func (Machine) Off() error {
	go func() {
		time.Sleep(50 * time.Millisecond) // the answer goes out first
		PowerOff()
	}()
	return nil
}

// PowerOff is Off at once; it doesn't return.
func PowerOff() {
	// A frozen process takes no signal but the last.
	_ = unix.Kill(-1, unix.SIGTERM)
	for end := time.Now().Add(endGrace); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if b, err := os.ReadFile(Workload + "/cgroup.events"); err != nil || strings.Contains(string(b), "populated 0") {
			break
		}
	}
	_ = unix.Kill(-1, unix.SIGKILL)
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART) // a machine that can't be turned off can be reset
	select {}
}

// Of linux/random.h.
const (
	addEntropy = 0x40085203 // RNDADDENTROPY
	reseedNow  = 0x5207     // RNDRESEEDCRNG
)

// reseed mixes bytes into the kernel's generator and has it drawn anew at once: until then, all forks of a machine would draw the same.
func reseed(seed []byte) error {
	f, err := os.OpenFile("/dev/urandom", os.O_WRONLY, 0)
	if err != nil {
		return errs.New(errs.Other, "renew", "entropy", err)
	}
	defer f.Close()
	// struct rand_pool_info: bits that it counts for, bytes, the bytes.
	b := binary.NativeEndian.AppendUint32(nil, uint32(len(seed)*8))
	b = binary.NativeEndian.AppendUint32(b, uint32(len(seed)))
	b = append(b, seed...)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), addEntropy, uintptr(unsafe.Pointer(&b[0]))); errno != 0 {
		return errs.New(errs.Other, "renew", "entropy", errno)
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), reseedNow, 0); errno != 0 {
		return errs.New(errs.Other, "renew", "entropy", errno)
	}
	return nil
}

// names sets what the machine is called, where that is given.
func names(hostname, machineID wire.Text, dns []wire.Text) error {
	if h := string(hostname); h != "" {
		if len(h) > 64 || strings.ContainsAny(h, " \t\n\x00/") {
			return errs.Msg(errs.Invalid, "hostname", h, "it has at most 64 bytes, without spaces")
		}
		if err := unix.Sethostname([]byte(h)); err != nil {
			return errs.New(errs.Other, "hostname", h, err)
		}
		hosts := "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\t" + h + "\n"
		if err := errors.Join(put("/etc/hostname", h+"\n"), put("/etc/hosts", hosts)); err != nil {
			return err
		}
	}
	if id := string(machineID); id != "" {
		if len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" {
			return errs.Msg(errs.Invalid, "machine-id", id, "it has 32 hexadecimal digits")
		}
		if err := put("/etc/machine-id", id+"\n"); err != nil {
			return err
		}
	}
	if len(dns) > 0 {
		var b strings.Builder
		for _, server := range dns {
			addr, err := netip.ParseAddr(string(server))
			if err != nil {
				return errs.New(errs.Invalid, "name server", string(server), err)
			}
			b.WriteString("nameserver " + addr.String() + "\n")
		}
		return put("/etc/resolv.conf", b.String())
	}
	return nil
}

// put gives a file of /etc its content. Every inode and name that is made takes pages of each fork: one that has the content stays as it is,
// and another is written over, which the frozen workload doesn't see happen. A link is replaced: it may be an image's, to nowhere.
func put(path, content string) error {
	if rewrite(path, content) {
		return nil
	}
	err := os.MkdirAll("/etc", 0o755)
	if err == nil {
		err = os.WriteFile(path+".new", []byte(content), 0o644)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return errs.New(errs.Other, "write", path, err)
	}
	return nil
}

// rewrite writes over a file that has no other name; false: it isn't one, or can't be written to.
func rewrite(path, content string) bool {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOATIME|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 1 {
		return false
	}
	if st.Size == int64(len(content)) {
		b := make([]byte, len(content))
		if n, err := unix.Pread(fd, b, 0); err == nil && n == len(b) && string(b) == content {
			return true
		}
	}
	if n, err := unix.Pwrite(fd, []byte(content), 0); err != nil || n != len(content) {
		return false
	}
	return st.Size == int64(len(content)) || unix.Ftruncate(fd, int64(len(content))) == nil
}

// link sets a network interface and brings it up.
func link(l wire.Interface) error {
	fail := func(err error) error { return errs.New(errs.Other, "network", string(l.Name), err) }
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(fd)
	request := func(fill func(*unix.Ifreq) error, op uint) error {
		r, err := unix.NewIfreq(string(l.Name))
		if err == nil && fill != nil {
			err = fill(r)
		}
		if err == nil {
			err = unix.IoctlIfreq(fd, op, r)
		}
		return err
	}
	flags := func(v uint16) error {
		return request(func(r *unix.Ifreq) error { r.SetUint16(v); return nil }, unix.SIOCSIFFLAGS)
	}
	has := func(op uint, addr []byte) bool {
		r, err := unix.NewIfreq(string(l.Name))
		if err != nil || unix.IoctlIfreq(fd, op, r) != nil {
			return false
		}
		got, err := r.Inet4Addr()
		return err == nil && string(got) == string(addr)
	}
	if l.MAC != "" {
		mac, err := net.ParseMAC(string(l.MAC))
		if err != nil || len(mac) != 6 {
			return errs.Msg(errs.Invalid, "network", string(l.Name), "no hardware address of six bytes")
		}
		// Most cards take another address while they are up, which leaves everything else as it is.
		err = setMAC(fd, string(l.Name), mac)
		if errors.Is(err, unix.EBUSY) {
			err = errors.Join(flags(0), setMAC(fd, string(l.Name), mac))
		}
		if err != nil {
			return fail(err)
		}
	}
	if l.Address != "" {
		prefix, err := netip.ParsePrefix(string(l.Address))
		if err != nil || !prefix.Addr().Is4() {
			return errs.Msg(errs.Invalid, "network", string(l.Name), "no IPv4 address with the length of its prefix")
		}
		addr, mask := prefix.Addr().As4(), net.CIDRMask(prefix.Bits(), 32)
		// An address that is set once more takes all routes along: it stays if it is the one.
		if !has(unix.SIOCGIFADDR, addr[:]) || !has(unix.SIOCGIFNETMASK, mask) {
			if err := request(func(r *unix.Ifreq) error { return r.SetInet4Addr(addr[:]) }, unix.SIOCSIFADDR); err != nil {
				return fail(err)
			}
			if err := request(func(r *unix.Ifreq) error { return r.SetInet4Addr(mask) }, unix.SIOCSIFNETMASK); err != nil {
				return fail(err)
			}
		}
	}
	if err := flags(unix.IFF_UP | unix.IFF_RUNNING); err != nil {
		return fail(err)
	}
	if l.Gateway != "" {
		gw, err := netip.ParseAddr(string(l.Gateway))
		if err != nil || !gw.Is4() {
			return errs.Msg(errs.Invalid, "network", string(l.Name), "no IPv4 address of a gateway")
		}
		if err := defaultRoute(fd, gw); err != nil && !errors.Is(err, unix.EEXIST) {
			return fail(err)
		}
	}
	return nil
}

// setMAC fills in struct ifreq: 16 bytes of the name, then a sockaddr of family ARPHRD_ETHER.
func setMAC(fd int, name string, mac net.HardwareAddr) error {
	var r [40]byte
	copy(r[:15], name)
	binary.NativeEndian.PutUint16(r[16:], unix.ARPHRD_ETHER)
	copy(r[18:], mac)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFHWADDR, uintptr(unsafe.Pointer(&r))); errno != 0 {
		return errno
	}
	return nil
}

// defaultRoute fills in struct rtentry: three sockaddrs (destination, gateway, mask) after a long, then the flags.
func defaultRoute(fd int, gw netip.Addr) error {
	var r [120]byte
	addr := gw.As4()
	for i := range 3 {
		binary.NativeEndian.PutUint16(r[8+16*i:], unix.AF_INET)
	}
	copy(r[8+16+4:], addr[:])
	binary.NativeEndian.PutUint16(r[56:], unix.RTF_UP|unix.RTF_GATEWAY)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCADDRT, uintptr(unsafe.Pointer(&r))); errno != 0 {
		return errno
	}
	return nil
}
