package jail

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
	"agentrun.dev/vmm"
)

// The users of VMM processes, where nobody says others: no account has such a number, nor do containers get them.
const (
	FirstUser = 2_000_000_000
	ManyUsers = 65_536
)

// usersLock is the file by whose bytes processes agree on the users that they use.
const usersLock = "/run/agentrun-vmm-users"

// Users are numbers of users, and of groups alike, of which each VMM process gets one that no other has: so that one that was taken
// over can't do anything to its neighbours. Processes of this host that use the same numbers get along by locks of a file.
type Users struct {
	first, count int
	lock         *os.File

	mu   sync.Mutex
	next int // the one to try first: numbers come back late
	used map[int]struct{}
}

// NewUsers returns the users from first on. Unavailable says why this process can't give others these users: such a one confines its
// VMM processes by a user namespace around each, within which they are its own user.
func NewUsers(first, count int) (*Users, error) { return newUsers(first, count, usersLock) }

func newUsers(first, count int, lock string) (*Users, error) {
	if first < 1 || count < 1 || first+count-1 > 1<<31-1 {
		return nil, errs.Msg(errs.Invalid, "vmm process", "users", "they are numbers from 1 to 2147483647")
	}
	err := canBe(first, count)
	u := &Users{first: first, count: count, used: make(map[int]struct{})}
	if err == nil {
		u.lock, err = os.OpenFile(lock, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	}
	if err != nil {
		return nil, errs.New(errs.Unavailable, "vmm process", "users", err).WithHint(usersHint)
	}
	return u, nil
}

const usersHint = "VMM processes get users of their own if agentrun is started by root with all users (in a user namespace: with those of --microvm-uids)"

// canBe tells whether a process can be made another user's.
func canBe(first, count int) error {
	if os.Getuid() != 0 {
		return errors.New("only root gives processes other users")
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return err
	}
	for _, c := range []struct {
		bit  uint
		name string
	}{{unix.CAP_SETUID, "CAP_SETUID"}, {unix.CAP_SETGID, "CAP_SETGID"}, {unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}} {
		if have[0].Effective>>c.bit&1 == 0 {
			return errors.New("it lacks " + c.name)
		}
	}
	for _, file := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if !mapped(string(b), first, count) {
			return fmt.Errorf("the numbers %d to %d aren't in this user namespace", first, first+count-1)
		}
	}
	return nil
}

// mapped looks for a range in a user namespace's map.
func mapped(text string, first, count int) bool {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		from, err := strconv.Atoi(f[0])
		n, err2 := strconv.Atoi(f[2])
		if err == nil && err2 == nil && first >= from && first+count <= from+n {
			return true
		}
	}
	return false
}

// Close gives up what holds the users; no process that has one may be there any more.
func (u *Users) Close() error {
	if err := u.lock.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// InUse is how many processes have one.
func (u *Users) InUse() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.used)
}

// take returns a user that nobody has. errs.Limit: all are in use.
func (u *Users) take() (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for range u.count {
		id := u.first + u.next
		u.next = (u.next + 1) % u.count
		if _, ok := u.used[id]; ok {
			continue
		}
		switch err := u.flock(id, unix.F_WRLCK); err {
		case nil:
			u.used[id] = struct{}{}
			return id, nil
		case unix.EAGAIN, unix.EACCES: // another process's
		default:
			return 0, errs.New(errs.Other, "vmm process", "users", err)
		}
	}
	return 0, errs.Msg(errs.Limit, "vmm process", "users", fmt.Sprintf("all %d from %d on are in use", u.count, u.first))
}

// release gives a user back, whose processes have ended.
func (u *Users) release(id int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.used, id)
	_ = u.flock(id, unix.F_UNLCK) // fails only for a file that is closed, and with it unlocked
}

func (u *Users) flock(id int, kind int16) error {
	return unix.FcntlFlock(u.lock.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: int64(id), Len: 1})
}

// ExamineUsers looks at whether VMM processes can have users of their own.
func ExamineUsers(first, count int) vmm.Finding {
	f := vmm.Finding{Name: "users"}
	if err := canBe(first, count); err != nil {
		f.Text = fmt.Sprintf("VMM processes are this user, each in a user namespace: %v", err)
		f.Hint = usersHint
		return f
	}
	f.OK, f.Text = true, fmt.Sprintf("each VMM process is a user of its own, of %d to %d", first, first+count-1)
	return f
}
