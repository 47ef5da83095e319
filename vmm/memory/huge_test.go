package memory

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// hugeMapped is how many bytes of a memory are mapped as huge pages of a file.
func hugeMapped(t *testing.T, m *Memory) (bytes uint64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	base, inside := uint64(uintptr(m.base)), false
	for line := range strings.Lines(string(text)) {
		var from, to, n uint64
		if k, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); k == 2 {
			inside = from >= base && to <= base+m.size
		}
		if k, _ := fmt.Sscanf(line, "ShmemPmdMapped: %d kB", &n); k == 1 && inside {
			bytes += n << 10
		}
	}
	return bytes
}

// A child of a memory with huge pages still copies pages of 4 KiB, and neither it nor its parent sees the other's. Whether there are huge
// pages is up to the host, which may be out of them, so that no number of them is asked for.
func TestHugePages(t *testing.T) {
	const file = "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
	mode, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(mode), "[never]") || strings.Contains(string(mode), "[deny]") {
		t.Logf("HUGE PAGES ARE NOT TESTED HERE: %s is %q, %v (echo advise >%[1]s)", file, strings.TrimSpace(string(mode)), err)
	}
	m := fresh(t, 16*mib+3*PageSize)
	if uintptr(m.base)%hugePage != 0 {
		t.Errorf("the memory is at %p, where no huge page fits", m.base)
	}
	fillAll(m, 1)
	t.Logf("huge: %d KiB of the first", hugeMapped(t, m)>>10)
	c := child(t, capture(t, m))
	for off := 0; off < len(c.all()); off += PageSize {
		if c.all()[off] != 1 {
			t.Fatalf("%#x isn't the parent's", off)
		}
	}
	t.Logf("huge: %d KiB of a child that has read all", hugeMapped(t, c)>>10)
	for _, off := range []int{5 * mib, 5*mib + 2*PageSize, 9 * mib} {
		c.all()[off] = 2
	}
	t.Logf("huge: %d KiB of it after three writes", hugeMapped(t, c)>>10)
	if n, err := c.Dirty(); err != nil || n != 3*PageSize {
		t.Errorf("three pages written to: %d bytes, %v", n, err)
	}
	if c.all()[5*mib] != 2 || c.all()[5*mib+PageSize] != 1 || m.all()[5*mib] != 1 {
		t.Error("the child's page isn't a copy")
	}
	g := child(t, capture(t, c))
	if g.all()[5*mib] != 2 || g.all()[5*mib+PageSize] != 1 || g.all()[9*mib] != 2 {
		t.Error("a grandchild doesn't hold what its parent did")
	}
}
