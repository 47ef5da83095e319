package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"hash"
	"sync"
)

// SigningKey signs for one access key, day, region and service.
type SigningKey struct {
	secret string
	pool   sync.Pool // of hash.Hash, set up with the derived key
}

// DeriveKey computes the signing key of a secret for a credential's scope.
func DeriveKey(secret string, c Credential) *SigningKey {
	sum := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	derived := sum([]byte("AWS4"+secret), c.Date)
	derived = sum(derived, c.Region)
	derived = sum(derived, c.Service)
	derived = sum(derived, terminal)
	k := &SigningKey{secret: secret}
	k.pool.New = func() any { return hmac.New(sha256.New, derived) }
	return k
}

// sign returns the signature of the text in hexadecimal.
func (k *SigningKey) sign(text []byte) [64]byte {
	h := k.pool.Get().(hash.Hash)
	h.Reset()
	h.Write(text)
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	k.pool.Put(h)
	var out [64]byte
	hex.Encode(out[:], sum[:])
	return out
}

// Sign returns the signature of the text in hexadecimal, as for a POST policy.
func (k *SigningKey) Sign(text []byte) string {
	sum := k.sign(text)
	return string(sum[:])
}

// Equal compares two signatures in constant time.
func Equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// Cache keeps derived keys of credentials that were proven; the zero Cache is ready. It saves four HMACs a request.
type Cache struct {
	mu   sync.RWMutex
	keys map[Credential]*SigningKey
}

// maxCachedKeys bounds the cache; beyond it the cache is emptied.
const maxCachedKeys = 4096

// key returns the cached key, or derives one. A cached key of another secret doesn't count.
func (c *Cache) key(secret string, cred Credential) (k *SigningKey, cached bool) {
	c.mu.RLock()
	k = c.keys[cred]
	c.mu.RUnlock()
	if k != nil && Equal(k.secret, secret) {
		return k, true
	}
	return DeriveKey(secret, cred), false
}

// add keeps a key whose signature was right, so that nobody without a secret can fill the cache.
func (c *Cache) add(cred Credential, k *SigningKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keys == nil || len(c.keys) >= maxCachedKeys {
		c.keys = make(map[Credential]*SigningKey)
	}
	c.keys[cred] = k
}
