package s3

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/minio/crc64nvme"
	"github.com/zeebo/xxh3"

	"agentrun.dev/bucket"
	"agentrun.dev/serve/s3/fault"
)

// algorithm is a checksum that S3 knows.
type algorithm struct {
	name   string // as on the wire
	header string // canonical response header
	size   int    // bytes
	make   func() hash.Hash
	// Which checksums of a multipart upload there are: of the whole object, of the parts' checksums.
	full, composite bool
	poly            uint64 // of a CRC, reflected; 0 for others
	pool            sync.Pool
}

func (a *algorithm) get() hash.Hash {
	if h, ok := a.pool.Get().(hash.Hash); ok {
		h.Reset()
		return h
	}
	return a.make()
}

func (a *algorithm) put(h hash.Hash) { a.pool.Put(h) }

// algorithms are the ones that S3 knows, the default first. (Fixed; only their pools change.)
var algorithms = [...]*algorithm{
	{name: "CRC64NVME", header: "X-Amz-Checksum-Crc64nvme", size: 8, make: func() hash.Hash { return crc64nvme.New() }, full: true, poly: 0x9a6c9329ac4bc9b5},
	{name: "CRC32", header: "X-Amz-Checksum-Crc32", size: 4, make: func() hash.Hash { return crc32.NewIEEE() }, full: true, composite: true, poly: crc32.IEEE},
	{name: "CRC32C", header: "X-Amz-Checksum-Crc32c", size: 4, make: func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }, full: true, composite: true, poly: crc32.Castagnoli},
	{name: "SHA1", header: "X-Amz-Checksum-Sha1", size: 20, make: sha1.New, composite: true},
	{name: "SHA256", header: "X-Amz-Checksum-Sha256", size: 32, make: sha256.New, composite: true},
	{name: "SHA512", header: "X-Amz-Checksum-Sha512", size: 64, make: sha512.New, composite: true},
	{name: "MD5", header: "X-Amz-Checksum-Md5", size: 16, make: md5.New, composite: true},
	{name: "XXHASH64", header: "X-Amz-Checksum-Xxhash64", size: 8, make: func() hash.Hash { return xxhash.New() }, composite: true},
	{name: "XXHASH3", header: "X-Amz-Checksum-Xxhash3", size: 8, make: func() hash.Hash { return xxh3.New() }, composite: true},
	{name: "XXHASH128", header: "X-Amz-Checksum-Xxhash128", size: 16, make: func() hash.Hash { return &xxh128{xxh3.New()} }, composite: true},
}

// xxh128 makes the 128-bit sum the hash's own.
type xxh128 struct{ *xxh3.Hasher }

func (x *xxh128) Size() int { return 16 }

func (x *xxh128) Sum(b []byte) []byte {
	sum := x.Sum128().Bytes()
	return append(b, sum[:]...)
}

func findAlgorithm(name string) *algorithm {
	for _, a := range algorithms {
		if strings.EqualFold(a.name, name) {
			return a
		}
	}
	return nil
}

const checksumPrefix = "X-Amz-Checksum-"

// wanted is the checksum that a request announces.
type wanted struct {
	alg     *algorithm // nil: none was announced
	value   string     // base64, from a header; "" if it comes in a trailer
	trailer string     // lower-case name of the announced trailer
}

// wantChecksum reads what checksum a request announces, in a header or a trailer.
func wantChecksum(h http.Header) (w wanted, err error) {
	for name, values := range h {
		if !strings.HasPrefix(name, checksumPrefix) {
			continue
		}
		switch rest := name[len(checksumPrefix):]; rest {
		case "Mode", "Type", "Algorithm":
			continue
		default:
			a := findAlgorithm(rest)
			if a == nil {
				return w, fault.Request("The algorithm type you specified in x-amz-checksum- header is invalid.")
			}
			if w.alg != nil || len(values) > 1 {
				return w, multipleChecksums()
			}
			w.alg, w.value = a, values[0]
		}
	}
	if w.alg != nil && !w.alg.valid(w.value) {
		return w, fault.Request(fmt.Sprintf("Value for %s header is invalid.", strings.ToLower(w.alg.header)))
	}
	if t := h["X-Amz-Trailer"]; t != nil {
		name := strings.ToLower(strings.TrimSpace(t[0]))
		a := findAlgorithm(strings.TrimPrefix(name, strings.ToLower(checksumPrefix)))
		if a == nil || !strings.HasPrefix(name, "x-amz-checksum-") || len(t) > 1 {
			return w, fault.Request("The value specified in the x-amz-trailer header is not supported")
		}
		if w.alg != nil {
			return w, multipleChecksums()
		}
		w.alg, w.trailer = a, name
	}
	return w, w.checkSDK(h)
}

func multipleChecksums() error {
	return fault.Request("Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.")
}

// checkSDK compares the announced algorithm with the one that the SDK says it uses.
func (w *wanted) checkSDK(h http.Header) error {
	sdk := h["X-Amz-Sdk-Checksum-Algorithm"]
	if sdk == nil || sdk[0] == "" {
		return nil
	}
	a := findAlgorithm(sdk[0])
	switch {
	case a == nil:
		return fault.Request("Value for x-amz-sdk-checksum-algorithm header is invalid.")
	case w.alg == nil:
		return fault.Request("x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer headers were found.")
	case a != w.alg:
		return fault.Request("Value for x-amz-sdk-checksum-algorithm header is invalid.")
	}
	return nil
}

// valid reports whether a value has the algorithm's form.
func (a *algorithm) valid(value string) bool {
	return a.raw(value) != nil
}

func (a *algorithm) raw(value string) []byte {
	b, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(b) != a.size {
		return nil
	}
	return b
}

// badDigest says that a checksum is another than the one announced.
func (a *algorithm) badDigest(given, computed string) error {
	return fault.BadDigest.Text(fmt.Sprintf("The %s you specified did not match the calculated checksum.", a.name)).
		With("ExpectedDigest", given, "CalculatedDigest", computed)
}

// compose returns the checksum of parts' checksums, as "value-N".
func (a *algorithm) compose(values []string) (string, bool) {
	h := a.get()
	defer a.put(h)
	for _, v := range values {
		raw := a.raw(v)
		if raw == nil {
			return "", false
		}
		h.Write(raw)
	}
	return base64.StdEncoding.EncodeToString(h.Sum(nil)) + "-" + strconv.Itoa(len(values)), true
}

// combine returns the CRC of parts put together, from their CRCs and sizes.
func (a *algorithm) combine(values []string, sizes []int64) (string, bool) {
	var sum uint64
	for i, v := range values {
		raw := a.raw(v)
		if raw == nil {
			return "", false
		}
		var wide [8]byte
		copy(wide[8-len(raw):], raw)
		part := binary.BigEndian.Uint64(wide[:])
		if i == 0 {
			sum = part
		} else {
			sum = crcShift(sum, sizes[i], a.poly, a.size*8) ^ part
		}
	}
	var wide [8]byte
	binary.BigEndian.PutUint64(wide[:], sum)
	return base64.StdEncoding.EncodeToString(wide[8-a.size:]), true
}

// crcShift returns the CRC of a text followed by n zero bytes, less the constants that cancel when CRCs are combined:
// crc · x^(8n) modulo the polynomial, in reflected bits.
func crcShift(crc uint64, n int64, poly uint64, width int) uint64 {
	top := uint64(1) << (width - 1)
	mul := func(a, b uint64) uint64 {
		var p uint64
		for m := top; m != 0; m >>= 1 {
			if a&m != 0 {
				p ^= b
			}
			if b&1 != 0 {
				b = b>>1 ^ poly
			} else {
				b >>= 1
			}
		}
		return p
	}
	power := top >> 8 // x^8
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			crc = mul(power, crc)
		}
		power = mul(power, power)
	}
	return crc
}

// setChecksums adds an object's checksums to the response.
func setChecksums(h http.Header, sums []bucket.Checksum) {
	for _, s := range sums {
		if a := findAlgorithm(s.Algorithm); a != nil && s.Value != "" {
			h[a.header] = []string{s.Value}
			h["X-Amz-Checksum-Type"] = []string{checksumType(s.Composite)}
		}
	}
}

func checksumType(composite bool) string {
	if composite {
		return "COMPOSITE"
	}
	return "FULL_OBJECT"
}

// checksums writes checksums as elements such as ChecksumCRC32.
func (x *xmlDoc) checksums(sums []bucket.Checksum, withType bool) {
	for _, s := range sums {
		x.text("Checksum"+s.Algorithm, s.Value)
		if withType {
			x.text("ChecksumType", checksumType(s.Composite))
		}
	}
}

func encodeSum(sum []byte) string { return base64.StdEncoding.EncodeToString(sum) }
