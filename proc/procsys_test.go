package proc_test

import (
	"regexp"
	"slices"
	"syscall"
	"testing"

	"agentrun.dev/proc"
	"agentrun.dev/vfs"
)

// /proc/sys tells of the sandbox and its boot, and takes nothing.
func TestProcSys(t *testing.T) {
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n$`)
	look := func(s *proc.Sandbox) (boot string) {
		p, _ := s.NewProcess(proc.Root{Args: []string{"look"}, Dir: "/", Cred: vfs.Cred{UID: 1000, GID: 100}})
		p.Start(proc.Func(func(p *proc.Process) int {
			read := func(name string) string {
				text, err := readFile(p, "/proc/sys/kernel/"+name)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				return text
			}
			for name, want := range map[string]string{"ostype": "Linux\n", "osrelease": "6.1.0-agentrun\n", "hostname": s.Hostname() + "\n", "pid_max": "4194304\n"} {
				if got := read(name); got != want {
					t.Errorf("%s: %q", name, got)
				}
			}
			boot = read("random/boot_id")
			one, two := read("random/uuid"), read("random/uuid")
			if !uuid.MatchString(boot) || !uuid.MatchString(one) || !uuid.MatchString(two) || one == two || read("random/boot_id") != boot {
				t.Errorf("%q, %q, %q", boot, one, two)
			}
			for dir, want := range map[string][]string{"/proc/sys": {"kernel"}, "/proc/sys/kernel/random": {"boot_id", "entropy_avail", "poolsize", "uuid"}} {
				list, err := p.ReadDir(dir)
				var names []string
				for _, e := range list {
					names = append(names, e.Name)
				}
				if slices.Sort(names); err != nil || !slices.Equal(names, want) {
					t.Errorf("%s: %q, %v", dir, names, err)
				}
			}
			for name, want := range map[string]error{"/proc/sys/kernel/none": syscall.ENOENT, "/proc/sys/kernel/ostype/x": syscall.ENOTDIR, "/proc/sys/none": syscall.ENOENT} {
				if _, err := readFile(p, name); vfs.Errno(err) != want {
					t.Errorf("%s: %v", name, err)
				}
			}
			if _, err := p.Open("/proc/sys/kernel/hostname", syscall.O_WRONLY, 0); err == nil {
				t.Error("it can be written")
			}
			return 0
		}))
		if st := wait(t, p); st != 0 {
			t.Errorf("status %d", st)
		}
		return boot
	}
	if one, two := look(sandbox(t, proc.Limits{})), look(sandbox(t, proc.Limits{})); one == two {
		t.Errorf("two boots with the id %q", one)
	}
}
