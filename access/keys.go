package access

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base32"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"agentrun.dev"
	"agentrun.dev/api"
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

// Keys holds the keys and principals of one store and is the only writer of their records. All methods may be called concurrently.
type Keys struct {
	kv     kv.Store
	seal   cipher.AEAD
	master []byte
	own    *Sealer // of records other than keys
	root   *bearer
	now    func() time.Time

	mu     sync.RWMutex
	cache  map[string]*bearer
	people map[string]*api.Principal // as stored; nil: there is none of that name
	change uint64                    // counts revocations and updates: a lookup that began before one must not be cached after it
	write  sync.Mutex                // serialises changes
}

// maxCached bounds each cache; beyond it, the cache is emptied, which costs a lookup per key.
const maxCached = 10_000

// bearer is a key as it is used, and whom it acts as: nil for one that has nothing but grants.
type bearer struct {
	key *Key
	who *api.Principal
}

// New returns the keys that a store holds.
func New(o Options) (*Keys, error) {
	if o.KV == nil {
		return nil, errs.Msg(errs.Invalid, "open keys", "", "no store")
	}
	if len(o.MasterKey) != masterSize {
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
	k := &Keys{kv: o.KV, seal: seal, master: append([]byte(nil), o.MasterKey...), now: o.Now,
		cache: map[string]*bearer{}, people: map[string]*api.Principal{}}
	k.own = &Sealer{master: k.master, domain: "access"}
	if k.now == nil {
		k.now = time.Now
	}
	if o.RootID != "" {
		k.root = &bearer{&Key{ID: o.RootID, Secret: o.RootSecret, Name: "root", Root: true}, rootPrincipal()}
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
	// E2B makes the key one that clients of E2B take: its token is "e2b_" and hexadecimal digits. Prefix is ignored.
	E2B bool
	// Principal is whom the key acts as; Role, if it isn't empty, is all that the key has of the principal's.
	Principal, Role string
	// Sandbox is the id of the sandbox that the key is made for. It has grants and no principal; see RevokeSandbox.
	Sandbox string

	id string // that it gets; "": a new one
}

// mint chooses the key's id.
func (n *NewKey) mint() {
	if n.E2B {
		n.id = hexPrefix + random(hex.EncodeToString, hexDigits)
		return
	}
	if n.Prefix == "" {
		n.Prefix = "AR"
	}
	n.id = n.Prefix + random(base32.StdEncoding.EncodeToString, 18)
}

// Create makes a key and returns it, the secret included. A principal that doesn't exist is errs.NotFound.
func (k *Keys) Create(ctx context.Context, n NewKey) (*Key, error) {
	key := &Key{Name: n.Name, Root: n.Root, Grants: append([]Grant(nil), n.Grants...), Created: k.now().UTC(), Expires: n.Expires,
		Principal: n.Principal, Role: n.Role, Sandbox: n.Sandbox}
	if err := checkKey("create key", key); err != nil {
		return nil, err
	}
	if n.id == "" {
		n.mint()
	}
	key.ID, key.Secret = n.id, newSecret(n.id)
	if len(key.ID) > maxID {
		return nil, errs.Msg(errs.TooLarge, "create key", n.Name, "the id's prefix is too long")
	}
	value, err := k.encode(key)
	if err != nil {
		return nil, err
	}
	b := &kv.Batch{Checks: []kv.Check{{Key: recordKey(key.ID)}}}
	b.Put(recordKey(key.ID), value)
	if index := indexKey(key); index != nil {
		b.Put(index, []byte{formatV1})
	}
	if n.Principal != "" {
		// Held for the whole: the principal must not be deleted meanwhile, nor the keys become too many.
		k.write.Lock()
		defer k.write.Unlock()
		if err := k.mayHold(ctx, n.Principal); err != nil {
			return nil, err
		}
	}
	if err := k.kv.Commit(ctx, b); err != nil {
		return nil, errs.New(errs.KindOf(err), "create key", n.Name, err)
	}
	return key, nil
}

// mayHold is nil if a principal exists and has room for one more key.
func (k *Keys) mayHold(ctx context.Context, principal string) error {
	if _, err := k.Principal(ctx, principal); err != nil {
		return err
	}
	ids, err := k.holds(ctx, principalKeys(principal))
	if err == nil && len(ids) >= MaxKeys {
		err = errs.Msg(errs.Limit, "create key", principal, "the principal has 1000 keys")
	}
	return err
}

func checkKey(op string, key *Key) error {
	name := key.Name
	switch {
	case len(name) > MaxName:
		return errs.Msg(errs.TooLarge, op, "", "the name has more than 255 bytes")
	case len(key.Grants) > MaxGrants:
		return errs.Msg(errs.Limit, op, name, "more than 100 grants")
	case key.Root && (len(key.Grants) > 0 || key.Principal != "" || key.Role != "" || key.Sandbox != ""):
		return errs.Msg(errs.Invalid, op, name, "a root key has no grants, and is no principal's or sandbox's")
	case key.Principal != "" && key.Sandbox != "":
		return errs.Msg(errs.Invalid, op, name, "a key is a principal's or a sandbox's")
	case key.Role != "" && (key.Principal == "" || rankOf(key.Role) == noRole):
		return errs.Msg(errs.Invalid, op, name, "role: want admin, operator, user or viewer, of a principal's key")
	case key.Sandbox != "" && !validID(key.Sandbox):
		return errs.Msg(errs.Invalid, op, name, "malformed id of a sandbox")
	}
	seen := make(map[agentrun.RefID]bool, len(key.Grants))
	for _, g := range key.Grants {
		if g.Bucket.IsZero() || seen[g.Bucket] {
			return errs.Msg(errs.Invalid, op, name, "a grant names no bucket, or one twice")
		}
		seen[g.Bucket] = true
	}
	return nil
}

// Get finds a key by its id. One that isn't known, or is past its time, is errs.Unauthorized, as is that of a principal who is disabled.
// The key is as it may be used: that of an administrator is a root key.
func (k *Keys) Get(ctx context.Context, id string) (*Key, error) {
	b, err := k.find(ctx, id)
	if err != nil {
		return nil, err
	}
	return b.key, nil
}

func (k *Keys) find(ctx context.Context, id string) (*bearer, error) {
	if k.root != nil && id == k.root.key.ID {
		return k.root, nil
	}
	k.mu.RLock()
	b, change := k.cache[id], k.change
	k.mu.RUnlock()
	if b == nil {
		key, err := k.load(ctx, id)
		if err != nil {
			return nil, err
		}
		if b, err = k.bearer(ctx, key); err != nil {
			return nil, err
		}
		k.mu.Lock()
		if k.change == change {
			if len(k.cache) >= maxCached {
				clear(k.cache)
			}
			k.cache[id] = b
		}
		k.mu.Unlock()
	}
	if b.key.Expired(k.now()) {
		return nil, errs.Msg(errs.Unauthorized, "get key", id, "expired")
	}
	return b, nil
}

// bearer finds whom a stored key acts as.
func (k *Keys) bearer(ctx context.Context, key *Key) (*bearer, error) {
	if key.Root {
		return &bearer{key, rootPrincipal()}, nil
	}
	if key.Principal == "" {
		return &bearer{key: key}, nil
	}
	who, err := k.effective(ctx, key.Principal)
	if errs.Is(err, errs.NotFound) || errs.Is(err, errs.Denied) {
		return nil, errs.New(errs.Unauthorized, "get key", key.ID, err)
	}
	if err != nil {
		return nil, err
	}
	if key.Role != "" && rankOf(key.Role) < rankOf(who.Role) {
		who.Role = key.Role
	}
	c := *key
	c.Root, c.buckets, c.looks = who.Role == api.RoleAdmin, rankOf(who.Role) >= operator, rankOf(who.Role) < user
	return &bearer{&c, who}, nil
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
	b, err := k.verify(ctx, token)
	if err != nil {
		return nil, err
	}
	return b.key, nil
}

func (k *Keys) verify(ctx context.Context, token string) (*bearer, error) {
	id, secret, err := ParseToken(token)
	if err != nil {
		return nil, err
	}
	b, err := k.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if !b.key.CheckSecret(secret) {
		return nil, errs.Msg(errs.Unauthorized, "verify key", id, "wrong secret")
	}
	return b, nil
}

// Caller is who a token stands for in a request, of which remote is the address it came from and request the id. Anything wrong with the
// token, its key or its principal is errs.Unauthorized.
func (k *Keys) Caller(ctx context.Context, token, remote, request string) (*Caller, error) {
	b, err := k.verify(ctx, token)
	if err != nil {
		return nil, err
	}
	return b.caller(remote, request), nil
}

// CallerOf is Caller for a key whose secret was proved in another way, by a signature for example.
func (k *Keys) CallerOf(ctx context.Context, id, remote, request string) (*Caller, error) {
	b, err := k.find(ctx, id)
	if err != nil {
		return nil, err
	}
	return b.caller(remote, request), nil
}

func (b *bearer) caller(remote, request string) *Caller {
	c := &Caller{Key: b.key, Remote: remote, Request: request}
	if b.who != nil {
		c.Principal = *b.who
	}
	return c
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
	return k.alter(ctx, "revoke key", id, func(b *kv.Batch, key *Key) error {
		k.drop(b, key)
		return nil
	})
}

// drop adds the deletion of a key to a batch.
func (k *Keys) drop(b *kv.Batch, key *Key) {
	b.Delete(recordKey(key.ID))
	if index := indexKey(key); index != nil {
		b.Delete(index)
	}
}

// RevokeSandbox ends all keys that were made for a sandbox, at once. That there are none is no error.
func (k *Keys) RevokeSandbox(ctx context.Context, sandbox string) error {
	if !validID(sandbox) {
		return errs.Msg(errs.Invalid, "revoke keys", "", "malformed id of a sandbox")
	}
	k.write.Lock()
	defer k.write.Unlock()
	b := &kv.Batch{Reclaim: true}
	ids, err := k.dropAll(ctx, b, sandboxKeys(sandbox))
	if err != nil || len(ids) == 0 {
		return err
	}
	err = k.kv.Commit(ctx, b)
	k.forget(ids...)
	if err != nil {
		return errs.New(errs.KindOf(err), "revoke keys", sandbox, err)
	}
	return nil
}

// dropAll adds the deletion of all keys under an index to a batch, and returns their ids.
func (k *Keys) dropAll(ctx context.Context, b *kv.Batch, index []byte) ([]string, error) {
	ids, err := k.holds(ctx, index)
	for _, id := range ids {
		b.Delete(recordKey(id))
		b.Delete(append(index[:len(index):len(index)], id...))
	}
	return ids, err
}

// holds returns the ids of the keys under an index.
func (k *Keys) holds(ctx context.Context, index []byte) (ids []string, err error) {
	err = k.kv.Scan(ctx, kv.Range{Start: index, End: kv.PrefixEnd(index)}, func(key, _ []byte) error {
		ids = append(ids, string(key[len(index):]))
		return nil
	})
	if err != nil {
		return nil, errs.New(errs.KindOf(err), "list keys", "", err)
	}
	return ids, nil
}

// forget empties the cache of some keys. It comes after each change, even one that failed: the error may have come after the commit.
func (k *Keys) forget(ids ...string) {
	k.mu.Lock()
	k.change++
	for _, id := range ids {
		delete(k.cache, id)
	}
	k.mu.Unlock()
}

// SetGrants replaces a key's grants, at once.
func (k *Keys) SetGrants(ctx context.Context, id string, root bool, grants []Grant) error {
	return k.alter(ctx, "set grants", id, func(b *kv.Batch, key *Key) error {
		c := *key
		c.Root, c.Grants = root, append([]Grant(nil), grants...)
		if err := checkKey("set grants", &c); err != nil {
			return err
		}
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
		c.Secret = newSecret(id)
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
	if k.root != nil && id == k.root.key.ID {
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
	k.forget(id)
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

// secretLen is how long the secrets are that are made here.
const secretLen = 40

// newSecret returns 200 or more random bits for the key of an id, in characters that no shell, URL or command line treats specially.
func newSecret(id string) string {
	if isHexID(id) {
		return hexText(hexSecret)
	}
	return strings.ToLower(random(base32.StdEncoding.EncodeToString, secretLen))
}

// RootID returns the id of the root key that isn't stored, or "".
func (k *Keys) RootID() string {
	if k.root == nil {
		return ""
	}
	return k.root.key.ID
}
