package jail

import (
	"hash/fnv"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agentrun.dev/errs"
)

// A process says its version to a parent that was built at another time, also where it can't read what that sends.
func TestAnotherParent(t *testing.T) {
	for _, setup := range []string{`{"Op":"setup","Setup":{"Memory":4096}}`, `{"Op":"setup","Version":"0-0","Setup":{"Memory":4096}}`,
		`{"Op":"setup","Version":"0-0","Setup":"of another kind"}`, `{"Op":"hello"}`} {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		theirs := os.NewFile(uintptr(fds[1]), "socket")
		c, err := newConn(os.NewFile(uintptr(fds[0]), "socket"))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "be-a-vmm")
		cmd.ExtraFiles = []*os.File{theirs}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		theirs.Close()
		if _, err := c.Write([]byte(setup)); err != nil {
			t.Fatal(err)
		}
		m, err := c.receive(make([]byte, maxPacket))
		if err != nil || m.Version != protocol() || m.Failed == nil || m.Failed.Kind != errs.Unsupported || !strings.Contains(m.Failed.Text, protocol()) {
			t.Errorf("%s: %+v, %v", setup, m, err)
		}
		c.Close()
		_ = cmd.Wait()
	}
}

// The version is that of what is said: another name, type or tag makes another one.
func TestVersionOfTypes(t *testing.T) {
	seen := map[uint64]string{}
	for name, v := range map[string]any{
		"a":      struct{ A int }{},
		"a name": struct{ B int }{},
		"a type": struct{ A string }{},
		"a tag": struct {
			A int `json:",omitempty"`
		}{},
		"a list":  struct{ A []int }{},
		"nested":  struct{ A struct{ A int } }{},
		"beside":  struct{ A, B int }{},
		"pointer": struct{ A *struct{ A int } }{},
	} {
		h := fnv.New64a()
		describeType(h, reflect.TypeOf(v), nil)
		if other, ok := seen[h.Sum64()]; ok {
			t.Errorf("%s is %s", name, other)
		}
		seen[h.Sum64()] = name
	}
	type list struct{ Next *list } // has an end
	describeType(fnv.New64a(), reflect.TypeFor[list](), nil)
	if protocol() != protocol() || protocol() == "" {
		t.Error("the version isn't one")
	}
}
