package settings

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"agentrun.dev/errs"
)

func TestContext(t *testing.T) {
	file := ContextFile(t.TempDir())
	if _, err := ReadContext(file); !errs.Is(err, errs.NotFound) {
		t.Errorf("a missing context: %v", err)
	}
	mine := &Context{Endpoint: "http://127.0.0.1:7070", APIKey: "id.secret", PID: 5}
	if err := WriteContext(file, mine); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	c, err := ReadContext(file)
	if err != nil || *c != *mine {
		t.Errorf("%+v, %v", c, err)
	}
	// A later server's context isn't ours to remove.
	theirs := &Context{Endpoint: "http://127.0.0.1:8080", PID: 6}
	if err := WriteContext(file, theirs); err != nil {
		t.Fatal(err)
	}
	RemoveContext(file, mine)
	if c, err := ReadContext(file); err != nil || *c != *theirs {
		t.Errorf("after the removal of ours: %+v, %v", c, err)
	}
	RemoveContext(file, theirs)
	if _, err := ReadContext(file); !errs.Is(err, errs.NotFound) {
		t.Errorf("after the removal of theirs: %v", err)
	}
	if left, _ := filepath.Glob(file + "*"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	for _, bad := range []string{"{", `{"pid":"x"}`, ""} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadContext(file); !errs.Is(err, errs.Invalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := os.WriteFile(file, bytes.Repeat([]byte(" "), maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadContext(file); !errs.Is(err, errs.TooLarge) {
		t.Errorf("a huge file: %v", err)
	}
}

func TestKeys(t *testing.T) {
	dir := t.TempDir()
	k, err := LoadRootKey(dir)
	if err != nil || k.Check() != nil || len(k.Secret) != 40 {
		t.Fatalf("%+v, %v", k, err)
	}
	if again, err := LoadRootKey(dir); err != nil || again != k {
		t.Errorf("another key: %v", err)
	}
	m, err := LoadMasterKey(dir)
	if err != nil || len(m) != 32 {
		t.Fatal(err)
	}
	if again, err := LoadMasterKey(dir); err != nil || !bytes.Equal(again, m) {
		t.Errorf("another master key: %v", err)
	}
	for _, name := range []string{RootKeyFile, "master-key"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, RootKeyFile), []byte(`{"accessKeyId":"x","secretAccessKey":""}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadRootKey(dir); !errs.Is(err, errs.Invalid) {
		t.Errorf("a damaged root key: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "master-key"), []byte("1234"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadMasterKey(dir); !errs.Is(err, errs.Corrupt) {
		t.Errorf("a damaged master key: %v", err)
	}
}
