package agent

import (
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/errs"
)

// account is who a command runs as.
type account struct {
	uid, gid uint32
	groups   []uint32
	name     string
	home     string
	shell    string
}

// account looks a user up in /etc/passwd and /etc/group: by name, UID, or UID:GID, which need not stand there. Empty is the agent's default.
func (a *Agent) account(want string) (account, error) {
	if want == "" {
		want = a.o.User
	}
	if want == "" {
		want = strconv.Itoa(os.Getuid())
	}
	name, group, both := strings.Cut(want, ":")
	u, err := user.Lookup(name)
	if err != nil {
		u, err = user.LookupId(name)
	}
	who := account{name: name, home: "/", shell: "/bin/sh"}
	if err == nil {
		uid, uerr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gerr := strconv.ParseUint(u.Gid, 10, 32)
		if uerr != nil || gerr != nil {
			return who, errs.Msg(errs.Invalid, "exec", want, "its entry in /etc/passwd has no numbers")
		}
		who = account{uid: uint32(uid), gid: uint32(gid), name: u.Username, home: u.HomeDir, shell: "/bin/sh"}
		if ids, err := u.GroupIds(); err == nil && !both {
			for _, id := range ids {
				if n, err := strconv.ParseUint(id, 10, 32); err == nil {
					who.groups = append(who.groups, uint32(n))
				}
			}
		}
	} else {
		n, err := strconv.ParseUint(name, 10, 32)
		if err != nil {
			return who, errs.Msg(errs.NotFound, "exec", want, "there is no such user")
		}
		who.uid, who.gid = uint32(n), uint32(n)
	}
	if both {
		g, err := user.LookupGroup(group)
		if err == nil {
			group = g.Gid
		}
		n, err := strconv.ParseUint(group, 10, 32)
		if err != nil {
			return who, errs.Msg(errs.NotFound, "exec", want, "there is no such group")
		}
		who.gid = uint32(n)
	}
	return who, nil
}

// credential is nil for the agent's own user when it has no right to change it.
func (w account) credential() *syscall.Credential {
	if os.Getuid() != 0 && w.uid == uint32(os.Getuid()) {
		return nil
	}
	return &syscall.Credential{Uid: w.uid, Gid: w.gid, Groups: w.groups}
}
