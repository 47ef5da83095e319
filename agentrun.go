// Package agentrun holds the nouns of AgentRun; whoever has read this file knows what the other packages speak of.
//
// A bucket is a namespace of objects. A snapshot is a frozen view of a bucket. A fork is a new bucket that starts as a
// snapshot and shares all of its data. A sandbox is a running environment whose files are a fork. Every other package
// builds on these, and this one imports nothing but the standard library.
package agentrun

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
)

// RefID identifies a bucket for ever: 128 random bits, never reused, even if a later bucket takes the same name.
// Credentials and history name buckets by it.
type RefID [16]byte

// String returns the id in 32 lower-case hexadecimal digits.
func (id RefID) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether the id is unset.
func (id RefID) IsZero() bool { return id == RefID{} }

// ParseRefID reads what String writes.
func ParseRefID(s string) (id RefID, err error) {
	if len(s) != 2*len(id) {
		return id, fmt.Errorf("bucket id %q: want %d hexadecimal digits", s, 2*len(id))
	}
	_, err = hex.Decode(id[:], []byte(s))
	return id, err
}

// Version is a point in a bucket's life: nanoseconds since 1970 in UTC, strictly increasing over all writes of a store.
// Every write has one, and so every snapshot. Zero means now.
type Version uint64

// Time returns the moment that the version names.
func (v Version) Time() time.Time { return time.Unix(0, int64(v)).UTC() }

// String returns the version in decimal.
func (v Version) String() string { return strconv.FormatUint(uint64(v), 10) }

// VersionAt returns the version that names a moment.
func VersionAt(t time.Time) Version { return Version(t.UnixNano()) }
