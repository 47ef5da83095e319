package userspace

import (
	"cmp"
	"context"
	"errors"
	"syscall"

	"agentrun.dev/errs"
	"agentrun.dev/proc"
	"agentrun.dev/vfs"
	"agentrun.dev/vfs/memfs"
)

const passwd = "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000:user:/home/user:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
const group = "root:x:0:\ntty:x:5:\nuser:x:1000:\nnogroup:x:65534:\n"
const osRelease = "PRETTY_NAME=\"AgentRun\"\nNAME=\"AgentRun\"\nID=agentrun\nID_LIKE=debian\nVERSION_ID=\"1\"\n"

// profile and bashrc are what interactive shells read, as Debian has it, but shorter.
const profile = "# read by login shells\n[ -z \"$PS1\" ] || [ -z \"$BASH_VERSION\" ] || [ ! -r ~/.bashrc ] || . ~/.bashrc\n"
const bashrc = `# read by interactive shells
PS1='\u@\h:\w\$ '
HISTCONTROL=ignoreboth
alias ls='ls --color=auto' grep='grep --color=auto' ll='ls -l'
`

// layout makes the tree: the root, what every Unix has unless the root has it already, the caller's volumes. own is the root
// in memory, if that is what there is.
func layout(ctx context.Context, o *Options) (ns *vfs.Namespace, own *memfs.FS, err error) {
	root := vfs.Mount{Source: "root", Type: "tmpfs"}
	mounts := make([]vfs.Mount, 1, len(o.Volumes)+2)
	mounts[0] = vfs.Mount{Path: "/dev", FS: proc.NewDev(), Source: "dev", Type: "devtmpfs"}
	for _, v := range o.Volumes {
		if v.Path == "/" {
			root = v
		} else {
			mounts = append(mounts, v)
		}
	}
	filled := false
	if root.FS == nil {
		if filled = o.pattern != nil; filled {
			own = o.pattern.Fresh(o.Clock)
		} else {
			own = memfs.New(memfs.Options{Now: o.Clock})
		}
		root.FS = own
	}
	root = openable(root)
	ns = vfs.NewNamespace(root)
	if !root.ReadOnly {
		if !filled {
			if err := fill(ctx, ns); err != nil {
				return nil, nil, err
			}
		}
		if err := write(ctx, ns, "/etc/hostname", cmp.Or(o.Hostname, "sandbox")+"\n"); err != nil {
			return nil, nil, errs.New(errs.Other, "make root", "/etc/hostname", err)
		}
	}
	if empty(ctx, ns, "/bin") {
		if o.bin == nil {
			o.bin = proc.NewBin(o.Commands)
		}
		mounts = append(mounts, vfs.Mount{Path: "/bin", FS: o.bin, Source: "bin", Type: "agentrun", ReadOnly: true})
	}
	for _, m := range mountsOf(o.Commands) {
		if empty(ctx, ns, m.Path) && makeDir(ctx, ns, m.Path) {
			mounts = append(mounts, m)
		}
	}
	for _, m := range mounts {
		if err := mount(ctx, ns, openable(m)); err != nil {
			return nil, nil, err
		}
	}
	return ns, own, nil
}

// makeDir makes a directory and those above it, and tells whether it is there now: a root that can't be written to may lack it.
func makeDir(ctx context.Context, ns *vfs.Namespace, dir string) bool {
	for i := 1; i <= len(dir); i++ {
		if i == len(dir) || dir[i] == '/' {
			ns.Mkdir(ctx, vfs.Cred{}, "", dir[:i], 0o755)
		}
	}
	_, err := ns.ReadDir(ctx, vfs.Cred{}, "", dir)
	return err == nil
}

// openable lets FIFOs and devices on a volume be opened.
func openable(m vfs.Mount) vfs.Mount {
	if m.Special == nil {
		m.Special = proc.OpenSpecial
	}
	return m
}

func mount(ctx context.Context, ns *vfs.Namespace, m vfs.Mount) error {
	if err := ns.Mount(ctx, m); err != nil {
		kind := errs.Invalid
		if errors.Is(err, syscall.EBUSY) {
			kind = errs.Conflict
		}
		return errs.New(kind, "mount", m.Path, err)
	}
	return nil
}

func empty(ctx context.Context, ns *vfs.Namespace, dir string) bool {
	list, err := ns.ReadDir(ctx, vfs.Cred{}, "", dir)
	return err != nil || len(list) == 0
}

// newPattern makes a root as fill does, of which those of many sandboxes are copies.
func newPattern() (*memfs.FS, error) {
	fs := memfs.New(memfs.Options{})
	return fs, fill(context.Background(), vfs.NewNamespace(openable(vfs.Mount{FS: fs})))
}

// fill makes the directories and files of a root that don't exist yet, but for those that differ between sandboxes.
func fill(ctx context.Context, ns *vfs.Namespace) error {
	var admin vfs.Cred
	user, group1 := uint32(UID), uint32(GID)
	for _, d := range []struct {
		path string
		mode vfs.Mode
		own  bool
	}{
		{"/bin", 0o755, false}, {"/dev", 0o755, false}, {"/etc", 0o755, false}, {"/home", 0o755, false}, {Home, 0o755, true}, {"/proc", 0o555, false},
		{"/root", 0o700, false}, {"/tmp", 0o1777, false}, {"/usr", 0o755, false}, {"/usr/local", 0o755, false}, {"/usr/local/bin", 0o755, false},
		{"/var", 0o755, false}, {"/var/tmp", 0o1777, false}, {Workspace, 0o755, true},
	} {
		switch err := ns.Mkdir(ctx, admin, "", d.path, d.mode); {
		case errors.Is(err, syscall.EEXIST):
			continue
		case err != nil:
			return errs.New(errs.Other, "make root", d.path, err)
		}
		if d.own {
			if err := ns.SetAttr(ctx, admin, "", d.path, vfs.SetAttr{UID: &user, GID: &group1}, true); err != nil {
				return errs.New(errs.Other, "make root", d.path, err)
			}
		}
	}
	for _, l := range [][2]string{{"/bin", "/usr/bin"}, {"/bin", "/sbin"}, {"/bin", "/usr/sbin"}} {
		if err := ns.Symlink(ctx, admin, "", l[0], l[1]); err != nil && !errors.Is(err, syscall.EEXIST) {
			return errs.New(errs.Other, "make root", l[1], err)
		}
	}
	for _, f := range [][2]string{{"/etc/passwd", passwd}, {"/etc/group", group}, {"/etc/os-release", osRelease}, {"/etc/hosts", "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"},
		{"/etc/profile", profile}, {Home + "/.bashrc", bashrc}} {
		if err := write(ctx, ns, f[0], f[1]); err != nil {
			return errs.New(errs.Other, "make root", f[0], err)
		}
	}
	if err := ns.SetAttr(ctx, admin, "", Home+"/.bashrc", vfs.SetAttr{UID: &user, GID: &group1}, true); err != nil {
		return errs.New(errs.Other, "make root", Home, err)
	}
	return nil
}

// write makes a file unless it exists.
func write(ctx context.Context, ns *vfs.Namespace, path, text string) error {
	f, err := ns.Open(ctx, vfs.Cred{}, "", path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, 0o644)
	if errors.Is(err, syscall.EEXIST) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := f.Write([]byte(text)); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
