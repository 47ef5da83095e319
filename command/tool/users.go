package tool

import (
	"strconv"
	"strings"
)

// User is a line of the sandbox's /etc/passwd.
type User struct {
	Name, Gecos, Home, Shell string
	UID, GID                 uint32
}

// Group is a line of the sandbox's /etc/group.
type Group struct {
	Name    string
	GID     uint32
	Members []string
}

// Accounts are the users and groups of a sandbox.
type Accounts struct {
	Users  []User
	Groups []Group
}

// accountsLimit bounds /etc/passwd and /etc/group.
const accountsLimit = 1 << 20

// Accounts reads the sandbox's users and groups. Missing files and wrong lines are left out; root and the process's own
// user, which every sandbox has, are there in any case.
func (t *T) Accounts() *Accounts {
	a := &Accounts{}
	if b, err := t.ReadFile("/etc/passwd", accountsLimit); err == nil {
		for _, line := range strings.Split(string(b), "\n") {
			f := strings.Split(line, ":")
			if len(f) < 7 {
				continue
			}
			uid, err1 := strconv.ParseUint(f[2], 10, 32)
			gid, err2 := strconv.ParseUint(f[3], 10, 32)
			if err1 == nil && err2 == nil {
				a.Users = append(a.Users, User{f[0], f[4], f[5], f[6], uint32(uid), uint32(gid)})
			}
		}
	}
	if b, err := t.ReadFile("/etc/group", accountsLimit); err == nil {
		for _, line := range strings.Split(string(b), "\n") {
			f := strings.Split(line, ":")
			if len(f) < 4 {
				continue
			}
			if gid, err := strconv.ParseUint(f[2], 10, 32); err == nil {
				g := Group{Name: f[0], GID: uint32(gid)}
				if f[3] != "" {
					g.Members = strings.Split(f[3], ",")
				}
				a.Groups = append(a.Groups, g)
			}
		}
	}
	if len(a.Users) == 0 {
		a.Users = []User{{Name: "root", Home: "/root", Shell: "/bin/bash"}, {Name: "user", Home: "/home/user", Shell: "/bin/bash", UID: 1000, GID: 1000}}
	}
	if len(a.Groups) == 0 {
		a.Groups = []Group{{Name: "root"}, {Name: "user", GID: 1000}}
	}
	return a
}

// UserName returns a user's name, or the number if it has none.
func (a *Accounts) UserName(uid uint32) string {
	if u := a.UserByID(uid); u != nil {
		return u.Name
	}
	return strconv.FormatUint(uint64(uid), 10)
}

// GroupName returns a group's name, or the number if it has none.
func (a *Accounts) GroupName(gid uint32) string {
	for i := range a.Groups {
		if a.Groups[i].GID == gid {
			return a.Groups[i].Name
		}
	}
	return strconv.FormatUint(uint64(gid), 10)
}

// UserByID returns a user, or nil.
func (a *Accounts) UserByID(uid uint32) *User {
	for i := range a.Users {
		if a.Users[i].UID == uid {
			return &a.Users[i]
		}
	}
	return nil
}

// UserByName returns a user, or nil.
func (a *Accounts) UserByName(name string) *User {
	for i := range a.Users {
		if a.Users[i].Name == name {
			return &a.Users[i]
		}
	}
	return nil
}

// LookupUID reads a user's name or number.
func (a *Accounts) LookupUID(s string) (uint32, bool) {
	if u := a.UserByName(s); u != nil {
		return u.UID, true
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(s, "+"), 10, 32)
	return uint32(n), err == nil
}

// LookupGID reads a group's name or number.
func (a *Accounts) LookupGID(s string) (uint32, bool) {
	for i := range a.Groups {
		if a.Groups[i].Name == s {
			return a.Groups[i].GID, true
		}
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(s, "+"), 10, 32)
	return uint32(n), err == nil
}
