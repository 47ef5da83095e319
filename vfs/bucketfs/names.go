package bucketfs

import (
	"strings"

	"agentrun.dev/vfs"
)

const (
	escapePrefix = "%="
	chunkPrefix  = "%+"
	objectSuffix = "%=" // of an object beside a directory of the same name
	chunkBytes   = 80   // raw bytes of a long part in one directory; escaped they are 240 at most
)

// escapes reports whether a part of a key can't be a name as it is.
func escapes(part string) bool {
	return part == "" || part == "." || part == ".." || strings.IndexByte(part, 0) >= 0 ||
		strings.HasPrefix(part, escapePrefix) || strings.HasPrefix(part, chunkPrefix) || strings.HasSuffix(part, objectSuffix)
}

// quote escapes the bytes that mean something in an escaped name.
func quote(part string) string {
	if part == "." || part == ".." {
		return strings.Repeat("%2E", len(part))
	}
	if strings.IndexByte(part, '%') < 0 && strings.IndexByte(part, 0) < 0 {
		return part
	}
	return strings.NewReplacer("%", "%25", "\x00", "%00").Replace(part)
}

// unquote is the inverse of quote, for more than quote returns: encode tells whether the escape was the right one.
func unquote(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	return strings.NewReplacer("%25", "%", "%00", "\x00", "%2E", ".").Replace(s)
}

// encode returns the name of a key's part, or the chain of names if it is long. shadowed is an object beside a directory.
func encode(part string, shadowed bool) []string {
	name, suffix := part, ""
	if escapes(part) {
		name = escapePrefix + quote(part)
	}
	if shadowed {
		suffix = objectSuffix
	}
	if len(name)+len(suffix) <= vfs.MaxName {
		return []string{name + suffix}
	}
	var chain []string
	for len(part) > chunkBytes {
		chain = append(chain, chunkPrefix+quoteBytes(part[:chunkBytes]))
		part = part[chunkBytes:]
	}
	return append(chain, escapePrefix+quoteBytes(part)+suffix)
}

// quoteBytes is quote for a piece of a long part, where dots mean nothing.
func quoteBytes(s string) string {
	return strings.NewReplacer("%", "%25", "\x00", "%00").Replace(s)
}

// decoded is what a name in a directory can stand for.
type decoded struct {
	part     string // of the key; of a chunk, the part's beginning
	shadowed bool
	chunk    bool
}

// decode reads a name. begun is the beginning of a long part, in whose directory the name stands; ok is false if no key
// appears there under this name.
func decode(begun, name string) (d decoded, ok bool) {
	if begun == "" && !strings.HasPrefix(name, escapePrefix) && !strings.HasPrefix(name, chunkPrefix) && !strings.HasSuffix(name, objectSuffix) {
		return decoded{part: name}, true // what nearly all names are
	}
	rest, chunk := strings.CutPrefix(name, chunkPrefix)
	if chunk {
		raw := unquote(rest)
		return decoded{part: begun + raw, chunk: true}, len(raw) == chunkBytes && quoteBytes(raw) == rest
	}
	// With one suffix more than the part's own, the object is meant; escapes end neither in "%" nor in "=" after one.
	body, shadowed := name, false
	if len(name) > len(escapePrefix) || begun == "" && !strings.HasPrefix(name, escapePrefix) {
		body, shadowed = strings.CutSuffix(name, objectSuffix)
	}
	d = decoded{part: body, shadowed: shadowed}
	if rest, escaped := strings.CutPrefix(body, escapePrefix); escaped {
		d.part = begun + unquote(rest)
	} else if begun != "" {
		return d, false
	}
	chain := encode(d.part, shadowed)
	return d, chain[len(chain)-1] == name && len(chain) == len(begun)/chunkBytes+1
}
