package access

import (
	"crypto/rand"
	"strings"

	"agentrun.dev/errs"
)

// Clients of E2B take only keys that match ^e2b_[0-9a-f]+$. Such a key is one like any other, whose id is "e2b_" and 24 digits and whose
// secret has no letter beyond f: its token is both, one after the other. It is also found by "<id>.<secret>".
const (
	hexPrefix = "e2b_"
	hexDigits = 24 // of the id
	hexID     = len(hexPrefix) + hexDigits
	hexSecret = 60 // 215 bits
	// hexAlphabet is what hexadecimal digits share with the secrets of other keys, so that logs hide both (see redact).
	hexAlphabet = "abcdef234567"
)

// isHexID reports whether an id is that of a key for clients of E2B.
func isHexID(id string) bool {
	return len(id) == hexID && strings.HasPrefix(id, hexPrefix) && isHex(id[len(hexPrefix):])
}

func isHex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return s != ""
}

// parseHexToken splits a token of that form.
func parseHexToken(token string) (id, secret string, err error) {
	if len(token) <= hexID || !isHexID(token[:hexID]) || !isHex(token[hexID:]) {
		return "", "", errs.Msg(errs.Unauthorized, "parse key", "", "want e2b_ and hexadecimal digits, all of those that the key was made with")
	}
	return token[:hexID], token[hexID:], nil
}

// hexText returns n random characters of hexAlphabet.
func hexText(n int) string {
	out := make([]byte, 0, n)
	var b [64]byte
	for len(out) < n {
		rand.Read(b[:])
		for _, c := range b {
			if c < 252 && len(out) < n { // 252 is 21 × 12: each character is as likely
				out = append(out, hexAlphabet[c%12])
			}
		}
	}
	return string(out)
}
