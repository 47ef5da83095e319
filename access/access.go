// Package access holds the keys that let a caller in, the principals that they act as, and decides what each of them may do.
//
// A key is an id and a secret. A root key may do everything, as the principal root. A principal's key acts as that principal, within
// its role. A key of neither kind has grants only: each names one bucket, by the identity that no later bucket shares, and lets the key
// read there, or read and write objects. A grant never reaches beyond the objects of its bucket: forking, snapshots, merging
// and settings are for root keys, and for principals that are operators. A token is a key's id and secret in one string, for protocols
// that send both.
//
// A principal is a user, an agent or a service. Its role says what it may do at all. Its parent, if any, is on whose behalf it acts: it
// never has more than the parent, whose things include its own. A caller is a principal in one request. The guard decides what a caller
// may do with a thing, by the verb and by how they are related: the caller's own, shown to one of its teams, shown to all, or another's. Each
// decision is in the audit log, a chain of hashes. A secret is values that sandboxes are given by name.
package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"
	"time"

	"agentrun.dev"
	"agentrun.dev/errs"
)

// Limits on keys; exceeding one is an errs.TooLarge or errs.Limit.
const (
	MaxName   = 255  // bytes in a key's name
	MaxGrants = 100  // grants of one key
	MaxKeys   = 1000 // keys of one principal
)

// Grant lets a key use the objects of one bucket. Name is what the bucket was called, for people to read.
type Grant struct {
	Bucket agentrun.RefID
	Name   string
	Write  bool // may change objects too, not only read them
}

// Key is a credential. Treat it as read-only: the same Key is given to many callers.
type Key struct {
	ID, Secret string
	Name       string // what people call it
	Root       bool   // may do everything
	Grants     []Grant
	Created    time.Time
	Expires    time.Time // zero: never

	// Principal is whom the key acts as, if it is one's: root keys act as RootPrincipal without saying so here.
	Principal string
	Role      string // at most this of the principal's role; "": all of it
	// Sandbox is the id of the one that the key was made for, with grants on its buckets. It ends with the sandbox.
	Sandbox string

	buckets bool // its principal may do everything with buckets
	looks   bool // its principal is a viewer
}

// MayRun reports whether the key may run commands, in sandboxes that are made for the purpose: all keys may, but those of viewers and of
// sandboxes.
func (k *Key) MayRun() bool { return k != nil && !k.looks && k.Sandbox == "" }

// Action is what a caller wants to do.
type Action uint8

const (
	Read   Action = iota + 1 // read a bucket's objects, list them, see that the bucket exists
	Write                    // put and delete objects
	Manage                   // all else: create, delete, fork, snapshot, merge, settings, keys
)

// String returns "read", "write" or "manage".
func (a Action) String() string {
	if a < Read || a > Manage {
		return "unknown"
	}
	return [...]string{"read", "write", "manage"}[a-1]
}

// Allows reports whether the key may do the action in a bucket. The zero bucket stands for the store as a whole, which
// only root keys and those of operators may touch.
func (k *Key) Allows(a Action, bucket agentrun.RefID) bool {
	if k == nil {
		return false
	}
	if k.Root || k.buckets {
		return true
	}
	if bucket.IsZero() || (a != Read && a != Write) {
		return false
	}
	for i := range k.Grants {
		if k.Grants[i].Bucket == bucket {
			return a == Read || k.Grants[i].Write
		}
	}
	return false
}

// Expired reports whether the key is past its time.
func (k *Key) Expired(now time.Time) bool { return !k.Expires.IsZero() && !now.Before(k.Expires) }

// CheckSecret compares a secret with the key's in a time that doesn't depend on where they differ.
func (k *Key) CheckSecret(secret string) bool {
	if k == nil || k.Secret == "" {
		return false
	}
	// Hashed first, so that the time doesn't tell the length either.
	a, b := sha256.Sum256([]byte(k.Secret)), sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// Token returns the key as one string, "<id>.<secret>", or without the dot for one that clients of E2B take.
func (k *Key) Token() string {
	if isHexID(k.ID) {
		return k.ID + k.Secret
	}
	return k.ID + "." + k.Secret
}

// ParseToken splits what Token returns. The secret is everything after the first dot.
func ParseToken(token string) (id, secret string, err error) {
	if strings.HasPrefix(token, hexPrefix) && !strings.Contains(token, ".") && len(token) <= 512 {
		return parseHexToken(token)
	}
	id, secret, ok := strings.Cut(token, ".")
	if !ok || id == "" || secret == "" || len(token) > 512 {
		return "", "", errs.Msg(errs.Unauthorized, "parse key", "", "want <id>.<secret>")
	}
	return id, secret, nil
}
