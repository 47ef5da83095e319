package system_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// TestSudo has a user who may become another where root's sudoers says so, and nowhere else.
func TestSudo(t *testing.T) {
	set := command.NewSet(nil)
	s := commandtest.NewSandbox(t, set)
	root := vfs.Cred{}
	ns := s.Namespace()
	write := func(path, text string, uid uint32, mode vfs.Mode) {
		t.Helper()
		_ = ns.Mkdir(t.Context(), root, "", "/etc", 0o755)
		_ = ns.Unlink(t.Context(), root, "", path)
		f, err := ns.Open(t.Context(), root, "", path, vfs.O_WRONLY|vfs.O_CREAT|vfs.O_EXCL, mode)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := io.WriteString(f, text); err != nil {
			t.Fatal(err)
		}
		if err := f.SetAttr(vfs.SetAttr{UID: &uid, Mode: &mode}); err != nil {
			t.Fatal(err)
		}
	}
	write("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000:user:/home/user:/bin/bash\nother:x:1001:1001::/tmp:/bin/sh\n", 0, 0o644)
	write("/etc/group", "root:x:0:\nuser:x:1000:\nstaff:x:50:user\n", 0, 0o644)
	run := func(uid uint32, args ...string) (string, int) {
		t.Helper()
		var out bytes.Buffer
		p, err := s.NewProcess(proc.Root{Args: args, Env: []string{"PATH=/bin", "LC_ALL=C.UTF-8", "SECRET=1", "HOME=/home/user"}, Cred: vfs.Cred{UID: uid, GID: uid},
			Files: map[int]vfs.File{0: proc.NewInput(nil, false), 1: s.NewOutput(&out, false), 2: s.NewOutput(&out, false)}})
		if err != nil {
			t.Fatal(err)
		}
		prog, ok := set.Lookup(args[0])
		if !ok {
			t.Fatal(args[0])
		}
		p.Start(prog)
		<-p.Done()
		return out.String(), p.Status()
	}
	const all = "user ALL=(ALL:ALL) NOPASSWD: ALL\n"
	for name, c := range map[string]struct {
		text string
		uid  uint32
		mode vfs.Mode
		may  bool
	}{
		"as Debian has it": {"# comment\nDefaults env_reset\nroot ALL=(ALL:ALL) ALL\n" + all, 0, 0o440, true}, "without users": {"user ALL=NOPASSWD:ALL # all", 0, 0o644, true},
		"by group": {"%staff ALL = (ALL) NOPASSWD: ALL", 0, 0o440, true}, "by number": {"#1000 ALL=(ALL) NOPASSWD: ALL", 0, 0o440, true}, "everybody": {"ALL ALL=(ALL) NOPASSWD: ALL", 0, 0o440, true},
		"with a password": {"user ALL=(ALL:ALL) ALL", 0, 0o440, false}, "another": {"other ALL=(ALL) NOPASSWD: ALL", 0, 0o440, false}, "one command": {"user ALL=(ALL) NOPASSWD: /bin/ls", 0, 0o440, false},
		"another host": {"user web=(ALL) NOPASSWD: ALL", 0, 0o440, false}, "a comment": {"#user ALL=(ALL) NOPASSWD: ALL", 0, 0o440, false},
		"the user's own file": {all, 1000, 0o440, false}, "writable": {all, 0, 0o646, false}, "by the group": {all, 0, 0o664, false}, "empty": {"", 0, 0o440, false},
	} {
		write("/etc/sudoers", c.text, c.uid, c.mode)
		out, status := run(1000, "sudo", "id", "-u")
		if (out == "0\n" && status == 0) != c.may || !c.may && (status != 1 || !strings.Contains(out, "user is not in the sudoers file")) {
			t.Errorf("%s: %q (%d)", name, out, status)
		}
	}
	write("/etc/sudoers", all, 0, 0o440)
	for line, want := range map[string]string{
		"sudo -u other id -un": "other\n", "sudo -u #1001 -g staff id -g": "50\n", "sudo -n A=b printenv A SUDO_USER USER HOME": "b\nuser\nroot\n/root\n",
		"sudo -E printenv SECRET HOME": "1\n/home/user\n", "sudo -EH printenv HOME": "/root\n", "sudo printenv SECRET": "", "sudo -v": "", "sudo -D /etc pwd": "/etc\n",
		"sudo sudo -u user id -un": "user\n",
	} {
		if out, _ := run(1000, strings.Fields(line)...); out != want {
			t.Errorf("%s: %q, want %q", line, out, want)
		}
	}
	for line, want := range map[string]int{"sudo": 1, "sudo nothing-of-the-kind": 1, "sudo -u nobody-at-all id": 1, "sudo -g no-group id": 1, "sudo -D /nowhere id": 1, "sudo false": 1, "sudo -Z": 1} {
		if out, status := run(1000, strings.Fields(line)...); status != want || status != 0 && out == "" && line != "sudo false" {
			t.Errorf("%s: %q (%d)", line, out, status)
		}
	}
	if out, status := run(0, "sudo", "-u", "user", "id", "-un"); out != "user\n" || status != 0 {
		t.Errorf("%q (%d)", out, status)
	}
	if out, status := run(4242, "sudo", "id"); status != 1 || !strings.Contains(out, "do not exist") {
		t.Errorf("%q (%d)", out, status)
	}
}
