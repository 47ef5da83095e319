package ssh

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"agentrun.dev/errs"
)

// HostKey reads the key by which clients recognise the server. Where there is none yet, a new one (Ed25519) is kept, readable
// for its owner alone: clients warn of a server whose key changes. Of two processes that make one at once, both get the same.
func HostKey(file string) (ssh.Signer, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeHostKey(file); err != nil {
			return nil, errs.New(errs.Other, "make host key", file, err)
		}
		b, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, errs.New(errs.Other, "read host key", file, err)
	}
	if st, err := os.Stat(file); err == nil && st.Mode().Perm()&0o077 != 0 {
		return nil, errs.Msg(errs.Invalid, "read host key", file, "others can read it").WithHint("chmod 600 " + file + ", or remove it if it may be known already: a new one is made")
	}
	key, err := ssh.ParsePrivateKey(b)
	if err != nil {
		return nil, errs.New(errs.Corrupt, "read host key", file, err).WithHint("bring the file back, or remove it: a new key is made, and clients warn of it")
	}
	return key, nil
}

// makeHostKey makes the file whole and durable, or not at all. One that is there already stays.
func makeHostKey(file string) error {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(key, "agentrun")
	if err != nil {
		return err
	}
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(file)+".*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(pem.EncodeToMemory(block))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), file); err != nil && !errors.Is(err, fs.ErrExist) { // unlike a rename, it replaces nothing
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
