package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestRepair(t *testing.T) {
	code := make([]byte, len(note))
	for i, b := range note {
		if b == whatever {
			b = 0x42 + i
		}
		code[i] = byte(b)
	}
	before, after := []byte("\x89\xb3 before \x89"), []byte("after \x89\xb3")
	file := func(parts ...[]byte) string {
		path := filepath.Join(t.TempDir(), "qemu")
		if err := os.WriteFile(path, bytes.Join(parts, nil), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := file(before, code, after)
	if err := repair(path); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if want := bytes.Join([][]byte{before, nothing, code[len(nothing):], after}, nil); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%x, want %x, %v", got, want, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for what, path := range map[string]string{"repaired already": path, "twice": file(code, code), "cut off": file(before, code[:len(code)-1]), "empty": file()} {
		old, _ := os.ReadFile(path)
		if err := repair(path); err == nil {
			t.Errorf("%s: taken", what)
		}
		if now, _ := os.ReadFile(path); !bytes.Equal(now, old) {
			t.Errorf("%s: changed", what)
		}
	}
}
