package access

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"

	"agentrun.dev/errs"
)

const (
	formatV2   = 2 // of what a Sealer seals
	saltSize   = 16
	masterSize = 32
)

// Sealer seals values with AES-256-GCM under keys that are derived from the master key. A value is bound to its place, a name
// that is authenticated with it: it doesn't open anywhere else, so that whoever can write the store can't exchange values.
//
// What it seals is a byte of format, a random salt of 16 bytes, from which HKDF-SHA-256 makes the value's own key, a random nonce of
// 12 bytes, and the ciphertext with its tag. Keys of their own let any number of values be sealed: with one key for all, random
// nonces would be good for 2^32 of them.
type Sealer struct {
	master []byte
	domain string
}

// Seal seals a value for a place.
func (s *Sealer) Seal(place string, plain []byte) ([]byte, error) {
	out := make([]byte, 1+saltSize, 1+saltSize+12+len(plain)+16)
	out[0] = formatV2
	rand.Read(out[1:])
	gcm, err := s.key(out[1:])
	if err != nil {
		return nil, errs.New(errs.Other, "seal", place, err)
	}
	nonce := make([]byte, gcm.NonceSize())
	rand.Read(nonce)
	out = append(out, nonce...)
	return gcm.Seal(out, nonce, plain, []byte(place)), nil
}

// Open returns what was sealed for the place. Anything else is errs.Corrupt.
func (s *Sealer) Open(place string, sealed []byte) ([]byte, error) {
	if len(sealed) < 1+saltSize || sealed[0] != formatV2 {
		return nil, errs.Msg(errs.Corrupt, "open", place, "unknown format of a sealed value")
	}
	gcm, err := s.key(sealed[1 : 1+saltSize])
	if err != nil {
		return nil, errs.New(errs.Other, "open", place, err)
	}
	sealed = sealed[1+saltSize:]
	n := gcm.NonceSize()
	if len(sealed) < n {
		return nil, errs.Msg(errs.Corrupt, "open", place, "a sealed value is cut short")
	}
	plain, err := gcm.Open(nil, sealed[:n], sealed[n:], []byte(place))
	if err != nil {
		return nil, errs.Msg(errs.Corrupt, "open", place, "the value doesn't open with this master key, or was sealed for another place")
	}
	return plain, nil
}

func (s *Sealer) key(salt []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, s.master, salt, "agentrun seal: "+s.domain, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Sealer returns what seals values of the service that aren't access' own, such as the environments of claims.
func (k *Keys) Sealer() *Sealer { return &Sealer{master: k.master, domain: "service"} }
