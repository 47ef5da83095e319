package snapshot

import (
	"bytes"
	"os"
	"testing"

	"agentrun.dev/errs"
	"agentrun.dev/vmm/virtio/block"
)

// base is a file of a disk that nobody writes to.
func base(t testing.TB, content []byte) *os.File {
	t.Helper()
	f, err := block.NewTop()
	if err == nil {
		_, err = f.Write(content)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A disk's changes are in the file, those of zeros too, and nothing of its base.
func TestDisks(t *testing.T) {
	const size = 40<<20 + 512
	content := bytes.Repeat([]byte("base"), 10<<20)
	top, err := block.NewTop()
	if err != nil {
		t.Fatal(err)
	}
	o, err := block.NewOverlay(base(t, content), top, size)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	large := bytes.Repeat([]byte("x"), 3<<20)
	for off, b := range map[int64][]byte{4096 * 3: []byte("changed."), size - 512: []byte("the end."), 17<<20 + 100: large} {
		b = append(bytes.Clone(b), make([]byte, -len(b)&511)...)
		if err := o.WriteAt([][]byte{b}, off&^511); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Zero(8<<20, 1<<20); err != nil {
		t.Fatal(err)
	}
	want := make([]byte, size)
	if err := o.ReadAt([][]byte{want}, 0); err != nil {
		t.Fatal(err)
	}
	s := sample(t)
	s.Disks = make([]Disk, 2)
	other, err := block.NewTop()
	if err != nil {
		t.Fatal(err)
	}
	untouched, err := block.NewOverlay(nil, other, 8192)
	if err != nil {
		t.Fatal(err)
	}
	defer untouched.Close()
	for i, o := range []*block.Overlay{o, untouched} {
		s.Disks[i].Device = 4 + i
		if s.Disks[i], err = SealDisk(s.Disks[i].Device, o); err != nil {
			t.Fatal(err)
		}
	}
	b := file(t, s)
	if len(b) > 5<<20 {
		t.Errorf("4 MiB of changes take %d bytes", len(b))
	}
	got, err := Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if len(got.Disks) != 2 || got.Disks[0].Device != 4 || got.Disks[1].Device != 5 || len(got.Disks[1].Files) != 0 {
		t.Fatalf("the disks are %+v", got.Disks)
	}
	if top, err = block.NewTop(); err != nil {
		t.Fatal(err)
	}
	r, err := block.RestoreOverlay(got.Disks[0].State, append([]*os.File{base(t, content)}, got.Disks[0].Files...), top)
	got.Disks[0].Files = nil // they are the overlay's
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	have := make([]byte, size)
	if err := r.ReadAt([][]byte{have}, 0); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Error("the disk has another content")
	}
	for _, cut := range []int{1, 100, 1 << 20, 3 << 20} {
		if _, err := Read(bytes.NewReader(b[:len(b)-cut])); !errs.Is(err, errs.Corrupt) {
			t.Errorf("without its last %d bytes: %v", cut, err)
		}
	}
}
