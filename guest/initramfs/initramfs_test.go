package initramfs

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"agentrun.dev/errs"
)

// entry is one of an archive, as the kernel reads it.
type entry struct {
	name         string
	mode         uint64
	major, minor uint64
	data         string
}

// parse reads an archive as init/initramfs.c does: fields of 8 hexadecimal digits, names and data up to multiples of four.
func parse(t *testing.T, b []byte) (found []entry) {
	t.Helper()
	for at := 0; ; {
		if len(b) < at+110 || string(b[at:at+6]) != "070701" {
			t.Fatalf("no header at %d", at)
		}
		field := func(i int) uint64 {
			n, err := strconv.ParseUint(string(b[at+6+8*i:at+14+8*i]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		size, length := int(field(6)), int(field(11))
		name := string(b[at+110 : at+110+length-1])
		data := (at + 110 + length + 3) &^ 3
		if name == "TRAILER!!!" {
			if len(b) != data {
				t.Errorf("%d bytes after the end", len(b)-data)
			}
			return found
		}
		found = append(found, entry{name, field(1), field(9), field(10), string(b[data : data+size])})
		at = (data + size + 3) &^ 3
	}
}

func TestWriter(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	if err := errors.Join(w.Bytes("/init", 0o755, "#!"), w.Bytes("usr/bin/a", 0o4755, strings.Repeat("x", 4097)), w.Symlink("bin", "usr/bin"),
		w.Dir("usr", 0o700), w.Dir("tmp", 0o1777), w.Char("dev/console", 0o600, 5, 1), w.Bytes("empty", 0o644, ""), w.Close()); err != nil {
		t.Fatal(err)
	}
	want := []entry{
		{"init", 0o100755, 0, 0, "#!"},
		{"usr", 0o040755, 0, 0, ""},
		{"usr/bin", 0o040755, 0, 0, ""},
		{"usr/bin/a", 0o104755, 0, 0, strings.Repeat("x", 4097)},
		{"bin", 0o120777, 0, 0, "usr/bin"},
		{"tmp", 0o041777, 0, 0, ""},
		{"dev", 0o040755, 0, 0, ""},
		{"dev/console", 0o020600, 5, 1, ""},
		{"empty", 0o100644, 0, 0, ""},
	}
	got := parse(t, b.Bytes())
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("entry %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	w := NewWriter(io.Discard)
	if err := w.Bytes("a/b", 0o644, "1"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		err  error
		kind errs.Kind
	}{
		"twice":      {w.Bytes("/a//b", 0o644, "2"), errs.Exists},
		"no name":    {w.Bytes("..", 0o644, ""), errs.Invalid},
		"NUL":        {w.Bytes("a\x00b", 0o644, ""), errs.Invalid},
		"long":       {w.Bytes(strings.Repeat("n", 4096), 0o644, ""), errs.Invalid},
		"trailer":    {w.Bytes("TRAILER!!!", 0o644, ""), errs.Invalid},
		"large":      {w.File("c", 0o644, 1<<32, nil), errs.TooLarge},
		"negative":   {w.File("c", 0o644, -1, nil), errs.TooLarge},
		"empty link": {w.Symlink("d", ""), errs.Invalid},
	} {
		if errs.KindOf(c.err) != c.kind {
			t.Errorf("%s: %v, want %v", name, c.err, c.kind)
		}
	}
	// A file that is shorter than it was said to be breaks the archive for good.
	if err := w.File("short", 0o644, 10, strings.NewReader("x")); err == nil {
		t.Error("a short file is taken")
	}
	if err := w.Close(); err == nil {
		t.Error("a broken archive is closed without an error")
	}
}

// module makes an object file that has a section .modinfo and nothing else.
func module(info string) []byte {
	names := "\x00.modinfo\x00.shstrtab\x00"
	var b bytes.Buffer
	put := func(v ...any) {
		for _, x := range v {
			_ = binary.Write(&b, binary.LittleEndian, x)
		}
	}
	section := func(name, kind uint32, off, size int) {
		put(name, kind, uint64(0), uint64(0), uint64(off), uint64(size), uint32(0), uint32(0), uint64(1), uint64(0))
	}
	b.WriteString("\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9))
	put(uint16(1), uint16(62), uint32(1), uint64(0), uint64(0), uint64(64+len(info)+len(names)), uint32(0), uint16(64), uint16(0), uint16(0), uint16(64), uint16(3), uint16(2))
	b.WriteString(info + names)
	section(0, 0, 0, 0)
	section(1, 1, 64, len(info))
	section(10, 3, 64+len(info), len(names))
	return b.Bytes()
}

func TestModules(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) {
		t.Helper()
		file := filepath.Join(dir, "kernel", "drivers", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(module("license=GPL\x00depends=virtio,virtio-ring\x00")); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	write("virtio.ko", module("depends=\x00"))
	write("virtio_ring.ko", module("depends=virtio\x00name=x"))
	write("hw/virtio-rng.ko.gz", packed.Bytes())
	write("loop.ko", module("depends=pool\x00"))
	write("pool.ko", module("depends=loop\x00"))
	write("alone.ko", module("depends=nowhere\x00"))
	write("junk.ko", []byte("not ELF"))

	found, err := Modules(dir, "virtio_rng", "virtio")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range found {
		names = append(names, m.Name)
	}
	if got := strings.Join(names, " "); got != "virtio virtio_ring virtio_rng" {
		t.Errorf("order %q", got)
	}
	for name, kind := range map[string]errs.Kind{"loop": errs.Corrupt, "alone": errs.NotFound, "junk": errs.Corrupt, "none": errs.NotFound} {
		if _, err := Modules(dir, name); errs.KindOf(err) != kind {
			t.Errorf("%s: %v, want %v", name, err, kind)
		}
	}
	if _, err := Modules(filepath.Join(dir, "none"), "virtio"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("no folder: %v", err)
	}
	var b bytes.Buffer
	w := NewWriter(&b)
	if err := errors.Join(w.AddModules(found), w.Close()); err != nil {
		t.Fatal(err)
	}
	if got := parse(t, b.Bytes())[3].name; got != "modules/002-virtio_rng.ko" {
		t.Errorf("the last module is %s", got)
	}
}

// FuzzDependencies: a module may be anything, as long as it is an error.
func FuzzDependencies(f *testing.F) {
	f.Add(module("depends=a,b\x00"))
	f.Add(module(""))
	f.Add([]byte("\x7fELF"))
	f.Fuzz(func(t *testing.T, b []byte) {
		names, err := dependencies(b)
		for _, n := range names {
			if err != nil || n == "" || len(n) > len(b) {
				t.Fatalf("%q, %v", names, err)
			}
		}
	})
}
