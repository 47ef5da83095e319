package bucket

import (
	"encoding/binary"
	"strings"

	"agentrun.dev"
)

// formatVersion is the version of everything that this package stores; docs/format.md describes it.
const formatVersion = 1

// Keys in kv begin with 'b' and one of these.
const (
	kFormat   = 'F' // → format version, store id, boundary key
	kRef      = 'R' // ref id → ref record
	kName     = 'N' // name → ref id
	kChild    = 'L' // parent ref id, child ref id → nothing
	kView     = 'V' // view id → view record
	kViewEdge = 'E' // view id, holder → nothing
	kDelta    = 'D' // delta id, version, index → log record
	kDeltEdge = 'G' // delta id, holder → nothing
	kPacked   = 'M' // delta id, version, index → the extent that a fold packed this payload into
	kSnap     = 'S' // ref id, version → snapshot record
	kHist     = 'H' // ref id, first version → history record
	kNode     = 'T' // node id → encoded tree node
	kPending  = 'P' // first node id → nothing: a tree being built; its nodes go if it isn't finished
	kEvent    = 'Q' // class, number → reference event
	kCount    = 'C' // space, group → counts
	kUpload   = 'U' // ref id, upload id → upload record
	kPart     = 'W' // ref id, upload id, part number → part record
	kIDs      = 'I' // counter → reserved up to
)

// Planes of a bucket's key space: the first byte of every key in a tree or delta.
const (
	planeObject  = 'o' // key → object
	planeVersion = 'v' // escaped key, inverted version → noncurrent object or delete marker
	planeDir     = 'd' // path → directory attributes
	planeExtent  = 'x' // object id, offset → extent of an object with many
	planeLink    = 'i' // object id → the names of an object with several
)

func kvKey(kind byte, parts ...[]byte) []byte {
	n := 2
	for _, p := range parts {
		n += len(p)
	}
	k := make([]byte, 2, n)
	k[0], k[1] = 'b', kind
	for _, p := range parts {
		k = append(k, p...)
	}
	return k
}

func be64(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func refKey(id agentrun.RefID) []byte           { return kvKey(kRef, id[:]) }
func nameKey(name string) []byte                { return kvKey(kName, []byte(name)) }
func viewKey(id uint64) []byte                  { return kvKey(kView, be64(id)) }
func nodeKey(id uint64) []byte                  { return kvKey(kNode, be64(id)) }
func childKey(p, c agentrun.RefID) []byte       { return kvKey(kChild, p[:], c[:]) }
func snapKey(r agentrun.RefID, v uint64) []byte { return kvKey(kSnap, r[:], be64(v)) }
func histKey(r agentrun.RefID, v uint64) []byte { return kvKey(kHist, r[:], be64(v)) }

// present is the value of keys that say something by being there.
func present() []byte { return []byte{formatVersion} }

// A holder is what an edge to a view or delta comes from.
const (
	heldByRef     = 'r' // a ref's own view or delta
	heldByOrigin  = 'o' // the view that a ref was forked from
	heldByMerge   = 'm' // the base for a ref's next merge with another: ref id, other's id
	heldByView    = 'v' // a view built on it
	heldBySnap    = 's' // a snapshot: ref id, version
	heldByHistory = 'h' // a ref's history: ref id, version
)

func holder(kind byte, id agentrun.RefID, more ...[]byte) []byte {
	h := append([]byte{kind}, id[:]...)
	for _, m := range more {
		h = append(h, m...)
	}
	return h
}

func viewHolder(id uint64) []byte { return append([]byte{heldByView}, be64(id)...) }

func viewEdge(view uint64, h []byte) []byte   { return kvKey(kViewEdge, be64(view), h) }
func deltaEdge(delta uint64, h []byte) []byte { return kvKey(kDeltEdge, be64(delta), h) }

func logKey(l logLoc) []byte {
	k := make([]byte, 2, 22)
	k[0], k[1] = 'b', kDelta
	k = binary.BigEndian.AppendUint64(k, l.delta)
	k = binary.BigEndian.AppendUint64(k, l.seq)
	return binary.BigEndian.AppendUint32(k, l.idx)
}

func packedKey(l logLoc) []byte {
	k := logKey(l)
	k[1] = kPacked
	return k
}

func uploadKey(r agentrun.RefID, id string) []byte { return kvKey(kUpload, r[:], []byte(id)) }
func partKey(r agentrun.RefID, id string, n int) []byte {
	return kvKey(kPart, r[:], []byte(id), []byte{0}, binary.BigEndian.AppendUint32(nil, uint32(n)))
}

// Plane keys are strings, because they live in the in-memory index of a delta.

func objectKey(key string) string { return "o" + key }
func dirKey(path string) string   { return "d" + path }

func extentPrefix(id ObjectID) string {
	b := make([]byte, 1, 25)
	b[0] = planeExtent
	b = binary.BigEndian.AppendUint64(b, id.Space)
	b = binary.BigEndian.AppendUint64(b, id.N)
	return string(b)
}

func extentKey(id ObjectID, off int64) string {
	b := make([]byte, 1, 25)
	b[0] = planeExtent
	b = binary.BigEndian.AppendUint64(b, id.Space)
	b = binary.BigEndian.AppendUint64(b, id.N)
	return string(binary.BigEndian.AppendUint64(b, uint64(off)))
}

func linkKey(id ObjectID) string {
	b := append(make([]byte, 0, 17), planeLink)
	b = binary.BigEndian.AppendUint64(b, id.Space)
	return string(binary.BigEndian.AppendUint64(b, id.N))
}

// versionPrefix begins all of a key's noncurrent versions. Escaping keeps the order of keys: 0 becomes 0 255, and the
// key ends with 0 1.
func versionPrefix(key string) string { return "v" + escapeKey(key) + "\x00\x01" }

func escapeKey(key string) string {
	if strings.IndexByte(key, 0) < 0 {
		return key
	}
	return strings.ReplaceAll(key, "\x00", "\x00\xff")
}

// versionKey sorts a key's versions from the newest on.
func versionKey(key string, v agentrun.Version) string {
	return versionPrefix(key) + string(be64(^uint64(v)))
}

// splitVersionKey is the inverse of versionKey.
func splitVersionKey(k string) (key string, v agentrun.Version, ok bool) {
	if len(k) < 11 || k[0] != planeVersion || k[len(k)-10:len(k)-8] != "\x00\x01" {
		return "", 0, false
	}
	key = strings.ReplaceAll(k[1:len(k)-10], "\x00\xff", "\x00")
	return key, agentrun.Version(^binary.BigEndian.Uint64([]byte(k[len(k)-8:]))), true
}

// stringEnd is the smallest string greater than all with the prefix, or "" if there is none.
func stringEnd(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return ""
}

// parseLogKey is the inverse of logKey.
func parseLogKey(k []byte) logLoc {
	if len(k) != 22 {
		return logLoc{}
	}
	return logLoc{binary.BigEndian.Uint64(k[2:]), binary.BigEndian.Uint64(k[10:]), binary.BigEndian.Uint32(k[18:])}
}
