// Package settings keeps what the commands share between runs: the context, by which a command finds the server that was
// started last, and the credentials in a data directory.
package settings

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentrun.dev/errs"
)

// Context is what 'up' leaves in the user's configuration folder for the other commands.
type Context struct {
	Endpoint   string    `json:"endpoint"`
	S3Endpoint string    `json:"s3Endpoint"`
	Region     string    `json:"region"`
	APIKey     string    `json:"apiKey"`
	CACert     string    `json:"caCert,omitempty"`     // PEM, of a self-signed server
	CACertFile string    `json:"caCertFile,omitempty"` // the same, for programs that want a file
	Data       string    `json:"data"`
	PID        int       `json:"pid"`
	Started    time.Time `json:"started"`
}

// ContextFile returns where the context is, beneath the user's configuration folder.
func ContextFile(configDir string) string {
	return filepath.Join(configDir, "agentrun", "context.json")
}

// maxFile bounds what is read of a settings file.
const maxFile = 1 << 20

// ReadContext reads the context; a missing one is errs.NotFound.
func ReadContext(file string) (*Context, error) {
	var c Context
	if err := readJSON("read context", file, &c); err != nil {
		return nil, err
	}
	return &c, nil
}

// WriteContext writes the context, readable for its owner alone.
func WriteContext(file string, c *Context) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return errs.New(errs.Other, "write context", file, err)
	}
	return writeJSON("write context", file, c)
}

// RemoveContext removes the context if it is still that of the process and endpoint: a later server may have left its own.
func RemoveContext(file string, mine *Context) {
	if c, err := ReadContext(file); err == nil && c.PID == mine.PID && c.Endpoint == mine.Endpoint {
		_ = os.Remove(file)
	}
}

// RootKey is the key that may do everything.
type RootKey struct {
	ID     string `json:"accessKeyId"`
	Secret string `json:"secretAccessKey"`
}

// Token returns the key as the API takes it.
func (k RootKey) Token() string { return k.ID + "." + k.Secret }

// Check refuses a key that the protocols couldn't carry.
func (k RootKey) Check() error {
	bad := func(text string) error { return errs.Msg(errs.Invalid, "root key", "", text) }
	printable := func(s string) bool { return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) }
	switch {
	case k.ID == "" || k.Secret == "":
		return bad("AGENTRUN_ACCESS_KEY_ID and AGENTRUN_SECRET_ACCESS_KEY go together")
	case len(k.ID) < 3 || len(k.ID) > 128 || !printable(k.ID) || strings.ContainsAny(k.ID, "./,="):
		return bad("the access key id has 3 to 128 printable characters, without '.', '/', ',' and '='")
	case len(k.Secret) < 8 || len(k.Secret) > 256 || !printable(k.Secret):
		return bad("the secret has 8 to 256 printable characters")
	}
	return nil
}

// RootKeyFile is where a data directory keeps its root key.
const RootKeyFile = "root-key.json"

// LoadRootKey reads the root key of a data directory; without one, it makes one there.
func LoadRootKey(dir string) (RootKey, error) {
	file := filepath.Join(dir, RootKeyFile)
	var k RootKey
	err := readJSON("root key", file, &k)
	if errs.Is(err, errs.NotFound) {
		k = RootKey{ID: "AR" + random(18), Secret: strings.ToLower(random(40))}
		return k, writeJSON("root key", file, k)
	}
	if err != nil {
		return k, err
	}
	if err := k.Check(); err != nil {
		return k, errs.New(errs.Invalid, "root key", file, err).WithHint("remove the file, and a new key is made")
	}
	return k, nil
}

// LoadMasterKey reads the 32 bytes that seal the stored keys of a data directory; without them, it makes
// new ones there.
func LoadMasterKey(dir string) ([]byte, error) {
	file := filepath.Join(dir, "master-key")
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		key := make([]byte, 32)
		rand.Read(key)
		return key, writeFile("master key", file, []byte(hex.EncodeToString(key)+"\n"))
	}
	if err != nil {
		return nil, errs.New(errs.Other, "master key", file, err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(key) != 32 {
		return nil, errs.Msg(errs.Corrupt, "master key", file, "want 64 hexadecimal digits").
			WithHint("bring the file back from a backup; without it the stored access keys are lost")
	}
	return key, nil
}

// random returns n characters of base32, 5 random bits each.
func random(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return base32.StdEncoding.EncodeToString(b)[:n]
}

func readJSON(op, file string, v any) error {
	st, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return errs.New(errs.NotFound, op, file, nil)
	}
	if err == nil && st.Size() > maxFile {
		return errs.Msg(errs.TooLarge, op, file, "this isn't a settings file")
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(file)
	}
	if err != nil {
		return errs.New(errs.Other, op, file, err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return errs.New(errs.Invalid, op, file, err)
	}
	return nil
}

func writeJSON(op, file string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return errs.New(errs.Other, op, file, err)
	}
	return writeFile(op, file, append(b, '\n'))
}

// writeFile replaces a file whole, durably, readable for its owner alone: another process sees the old or the new one.
func writeFile(op, file string, b []byte) error {
	tmp := fmt.Sprintf("%s.%d", file, os.Getpid())
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return errs.New(errs.Other, op, file, err)
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(tmp, file)
	}
	if err != nil {
		_ = os.Remove(tmp)
		return errs.New(errs.Other, op, file, err)
	}
	return nil
}

// WriteNew writes a file that only its owner reads, unless it is there already: then that is what comes back.
func WriteNew(file string, b []byte) ([]byte, error) {
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return nil, errs.New(errs.Other, "write", file, err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close())
	if err == nil {
		err = os.Link(f.Name(), file) // fails where another was faster
	}
	if errors.Is(err, os.ErrExist) {
		b, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, errs.New(errs.Other, "write", file, err)
	}
	return b, nil
}
