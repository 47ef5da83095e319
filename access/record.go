package access

import (
	"crypto/rand"
	"encoding/json"
	"time"

	"agentrun.dev"
	"agentrun.dev/errs"
)

// A record lies at prefix ‖ id: one byte of format, 12 of nonce, then the sealed JSON of a record. The record's own key
// is authenticated with it, so that a record can't be moved to another id.
const (
	prefix   = "a/k/"
	formatV1 = 1
	maxID    = 128
)

type record struct {
	Secret  string        `json:"secret"`
	Name    string        `json:"name,omitempty"`
	Root    bool          `json:"root,omitempty"`
	Grants  []recordGrant `json:"grants,omitempty"`
	Created time.Time     `json:"created"`
	Expires time.Time     `json:"expires,omitzero"`

	Principal string `json:"principal,omitempty"`
	Role      string `json:"role,omitempty"`
	Sandbox   string `json:"sandbox,omitempty"`
}

type recordGrant struct {
	Bucket string `json:"bucket"`
	Name   string `json:"name,omitempty"`
	Write  bool   `json:"write,omitempty"`
}

// indexKey returns where a key is listed under its principal or sandbox; nil if it has neither.
func indexKey(key *Key) []byte {
	switch {
	case key.Principal != "":
		return append(principalKeys(key.Principal), key.ID...)
	case key.Sandbox != "":
		return append(sandboxKeys(key.Sandbox), key.ID...)
	}
	return nil
}

func principalKeys(name string) []byte { return []byte("a/i/p/" + name + "/") }
func sandboxKeys(id string) []byte     { return []byte("a/i/s/" + id + "/") }

func recordKey(id string) []byte { return append([]byte(prefix), id...) }

// validID keeps arbitrary bytes of a request out of the store's keys.
func validID(id string) bool {
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' || c == '/' || c == '.' {
			return false
		}
	}
	return id != "" && len(id) <= maxID
}

func (k *Keys) encode(key *Key) ([]byte, error) {
	r := record{Secret: key.Secret, Name: key.Name, Root: key.Root, Created: key.Created, Expires: key.Expires,
		Principal: key.Principal, Role: key.Role, Sandbox: key.Sandbox}
	for _, g := range key.Grants {
		r.Grants = append(r.Grants, recordGrant{g.Bucket.String(), g.Name, g.Write})
	}
	plain, err := json.Marshal(r)
	if err != nil {
		return nil, errs.New(errs.Other, "encode key", key.ID, err)
	}
	if !validID(key.ID) {
		return nil, errs.Msg(errs.Invalid, "encode key", "", "malformed id")
	}
	out := make([]byte, 1+k.seal.NonceSize(), 1+k.seal.NonceSize()+len(plain)+k.seal.Overhead())
	out[0] = formatV1
	rand.Read(out[1:])
	return k.seal.Seal(out, out[1:], plain, recordKey(key.ID)), nil
}

func (k *Keys) decode(id string, value []byte) (*Key, error) {
	n := 1 + k.seal.NonceSize()
	if len(value) < n || value[0] != formatV1 {
		return nil, errs.Msg(errs.Corrupt, "read key", id, "unknown record format")
	}
	plain, err := k.seal.Open(nil, value[1:n], value[n:], recordKey(id))
	if err != nil {
		return nil, errs.Msg(errs.Corrupt, "read key", id, "the record doesn't open with this master key")
	}
	var r record
	if err := json.Unmarshal(plain, &r); err != nil {
		return nil, errs.New(errs.Corrupt, "read key", id, err)
	}
	key := &Key{ID: id, Secret: r.Secret, Name: r.Name, Root: r.Root, Created: r.Created, Expires: r.Expires,
		Principal: r.Principal, Role: r.Role, Sandbox: r.Sandbox}
	for _, g := range r.Grants {
		ref, err := agentrun.ParseRefID(g.Bucket)
		if err != nil {
			return nil, errs.New(errs.Corrupt, "read key", id, err)
		}
		key.Grants = append(key.Grants, Grant{ref, g.Name, g.Write})
	}
	return key, nil
}
