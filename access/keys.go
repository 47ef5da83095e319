package access

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base32"
	"strings"
	"sync"
	"time"

	"agentrun.dev"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// Options configure Keys.
type Options struct {
	KV kv.Store
	// MasterKey, 32 bytes, seals every stored key with AES-256-GCM. Secrets are needed in the clear to check
	// signatures, so they can't be hashed: sealing means that a copy of the store (a backup, a stolen disk) gives
	// no credentials away, and that nobody who can only write the store can make or widen a key. It doesn't
	// protect from whoever can read the master key or this process' memory.
	MasterKey []byte
	// RootID and RootSecret make a root key that isn't stored. Empty: there is none.
	RootID, RootSecret string
	Now                func() time.Time // time.Now if nil
}

// Keys holds the keys of one store and is the only writer of their records. All methods may be called concurrently.
type Keys struct {
	kv   kv.Store
	seal cipher.AEAD
	root *Key
	now  func() time.Time

	mu     sync.RWMutex
	cache  map[string]*Key
	change uint64     // counts revocations and updates: a lookup that began before one must not be cached after it
	write  sync.Mutex // serialises changes
}

// maxCached bounds the cache; beyond it, the cache is emptied, which costs a lookup per key.
const maxCached = 10_000

// New returns the keys that a store holds.
func New(o Options) (*Keys, error) {
	if o.KV == nil {
		return nil, errs.Msg(errs.Invalid, "open keys", "", "no store")
	}
	if len(o.MasterKey) != 32 {
		return nil, errs.Msg(errs.Invalid, "open keys", "", "the master key must have 32 bytes")
	}
	if (o.RootID == "") != (o.RootSecret == "") || len(o.RootID) > maxID || len(o.RootSecret) > 256 {
		return nil, errs.Msg(errs.Invalid, "open keys", "", "a root key needs an id of at most 128 and a secret of at most 256 bytes")
	}
	block, err := aes.NewCipher(o.MasterKey)
	if err != nil {
		return nil, errs.New(errs.Invalid, "open keys", "", err)
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return nil, errs.New(errs.Invalid, "open keys", "", err)
	}
	k := &Keys{kv: o.KV, seal: seal, now: o.Now, cache: map[string]*Key{}}
	if k.now == nil {
		k.now = time.Now
	}
	if o.RootID != "" {
		k.root = &Key{ID: o.RootID, Secret: o.RootSecret, Name: "root", Root: true}
	}
	return k, nil
}

// NewKey are the choices for a new key.
type NewKey struct {
	Name    string
	Root    bool
	Grants  []Grant
	Expires time.Time // zero: never
	// Prefix begins the id, "AR" if empty. Some clients tell their own keys by it.
	Prefix string
}

// Create makes a key and returns it, the secret included.
func (k *Keys) Create(ctx context.Context, n NewKey) (*Key, error) {
	if err := checkKey("create key", n.Name, n.Grants, n.Root); err != nil {
		return nil, err
	}
	if n.Prefix == "" {
		n.Prefix = "AR"
	}
	key := &Key{ID: n.Prefix + random(base32.StdEncoding.EncodeToString, 18), Secret: newSecret(), Name: n.Name,
		Root: n.Root, Grants: append([]Grant(nil), n.Grants...), Created: k.now().UTC(), Expires: n.Expires}
	if len(key.ID) > maxID {
		return nil, errs.Msg(errs.TooLarge, "create key", n.Name, "the id's prefix is too long")
	}
	value, err := k.encode(key)
	if err != nil {
		return nil, err
	}
	b := &kv.Batch{Checks: []kv.Check{{Key: recordKey(key.ID)}}}
	b.Put(recordKey(key.ID), value)
	if err := k.kv.Commit(ctx, b); err != nil {
		return nil, errs.New(errs.KindOf(err), "create key", n.Name, err)
	}
	return key, nil
}

func checkKey(op, name string, grants []Grant, root bool) error {
	switch {
	case len(name) > MaxName:
		return errs.Msg(errs.TooLarge, op, "", "the name has more than 255 bytes")
	case len(grants) > MaxGrants:
		return errs.Msg(errs.Limit, op, name, "more than 100 grants")
	case root && len(grants) > 0:
		return errs.Msg(errs.Invalid, op, name, "a root key has no grants")
	}
	seen := make(map[agentrun.RefID]bool, len(grants))
	for _, g := range grants {
		if g.Bucket.IsZero() || seen[g.Bucket] {
			return errs.Msg(errs.Invalid, op, name, "a grant names no bucket, or one twice")
		}
		seen[g.Bucket] = true
	}
	return nil
}

// Get finds a key by its id. One that isn't known, or is past its time, is errs.Unauthorized.
func (k *Keys) Get(ctx context.Context, id string) (*Key, error) {
	if k.root != nil && id == k.root.ID {
		return k.root, nil
	}
	k.mu.RLock()
	key, change := k.cache[id], k.change
	k.mu.RUnlock()
	if key == nil {
		var err error
		if key, err = k.load(ctx, id); err != nil {
			return nil, err
		}
		k.mu.Lock()
		if k.change == change {
			if len(k.cache) >= maxCached {
				clear(k.cache)
			}
			k.cache[id] = key
		}
		k.mu.Unlock()
	}
	if key.Expired(k.now()) {
		return nil, errs.Msg(errs.Unauthorized, "get key", id, "expired")
	}
	return key, nil
}

func (k *Keys) load(ctx context.Context, id string) (*Key, error) {
	if !validID(id) {
		return nil, errs.Msg(errs.Unauthorized, "get key", "", "malformed id")
	}
	value, err := k.kv.Get(ctx, recordKey(id))
	if errs.Is(err, errs.NotFound) {
		return nil, errs.Msg(errs.Unauthorized, "get key", id, "no such key")
	}
	if err != nil {
		return nil, errs.New(errs.KindOf(err), "get key", id, err)
	}
	return k.decode(id, value)
}

// Verify finds the key that a token names and checks its secret; anything wrong with it is errs.Unauthorized.
func (k *Keys) Verify(ctx context.Context, token string) (*Key, error) {
	id, secret, err := ParseToken(token)
	if err != nil {
		return nil, err
	}
	key, err := k.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if !key.CheckSecret(secret) {
		return nil, errs.Msg(errs.Unauthorized, "verify key", id, "wrong secret")
	}
	return key, nil
}

// List calls f for each stored key in order of id, expired ones included.
func (k *Keys) List(ctx context.Context, f func(*Key) error) error {
	r := kv.Range{Start: []byte(prefix), End: kv.PrefixEnd([]byte(prefix))}
	return k.kv.Scan(ctx, r, func(key, value []byte) error {
		rec, err := k.decode(string(key[len(prefix):]), value)
		if err != nil {
			return err
		}
		return f(rec)
	})
}

// Revoke ends a key at once: no Get that begins afterwards finds it. Revoking a missing key is errs.NotFound.
func (k *Keys) Revoke(ctx context.Context, id string) error {
	return k.alter(ctx, "revoke key", id, func(b *kv.Batch, _ *Key) error {
		b.Delete(recordKey(id))
		return nil
	})
}

// SetGrants replaces a key's grants, at once.
func (k *Keys) SetGrants(ctx context.Context, id string, root bool, grants []Grant) error {
	return k.alter(ctx, "set grants", id, func(b *kv.Batch, key *Key) error {
		if err := checkKey("set grants", key.Name, grants, root); err != nil {
			return err
		}
		c := *key
		c.Root, c.Grants = root, append([]Grant(nil), grants...)
		value, err := k.encode(&c)
		b.Put(recordKey(id), value)
		return err
	})
}

// Rotate gives a key a new secret and returns it; the old one is void at once.
func (k *Keys) Rotate(ctx context.Context, id string) (*Key, error) {
	var c Key
	err := k.alter(ctx, "rotate key", id, func(b *kv.Batch, key *Key) error {
		c = *key
		c.Secret = newSecret()
		value, err := k.encode(&c)
		b.Put(recordKey(id), value)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &c, nil
}

// alter commits a change of one stored key and forgets what is cached of it.
func (k *Keys) alter(ctx context.Context, op, id string, f func(*kv.Batch, *Key) error) error {
	k.write.Lock()
	defer k.write.Unlock()
	if k.root != nil && id == k.root.ID {
		return errs.Msg(errs.Denied, op, id, "the root key is set where the server is started")
	}
	key, err := k.load(ctx, id)
	if errs.Is(err, errs.Unauthorized) {
		return errs.New(errs.NotFound, op, id, nil)
	}
	if err != nil {
		return err
	}
	b := &kv.Batch{}
	if err := f(b, key); err != nil {
		return err
	}
	err = k.kv.Commit(ctx, b)
	// Forgotten even after an error: it may have come after the commit.
	k.mu.Lock()
	k.change++
	delete(k.cache, id)
	k.mu.Unlock()
	if err != nil {
		return errs.New(errs.KindOf(err), op, id, err)
	}
	return nil
}

// random returns n characters of random bytes in an encoding.
func random(encode func([]byte) string, n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails: crypto/rand ends the process instead
	return encode(b)[:n]
}

// newSecret returns 200 random bits in characters that no shell, URL or command line treats specially.
func newSecret() string { return strings.ToLower(random(base32.StdEncoding.EncodeToString, 40)) }

// RootID returns the id of the root key that isn't stored, or "".
func (k *Keys) RootID() string {
	if k.root == nil {
		return ""
	}
	return k.root.ID
}
