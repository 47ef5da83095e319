package sigv4

import (
	"encoding/hex"
	"strings"

	"agentrun.dev/serve/s3/fault"
)

// ParseForm reads what the fields of a browser upload say about its signature.
func ParseForm(alg, credential, stamp string) (*Signature, error) {
	if alg != algorithm {
		return nil, fault.Argument("X-Amz-Algorithm", alg, "Only AWS4-HMAC-SHA256 is supported")
	}
	s := &Signature{stamp: stamp}
	if bad := s.parseCredential(credential); bad != "" {
		return nil, fault.Argument("x-amz-credential", credential, bad)
	}
	var ok bool
	if s.Time, ok = parseStamp(stamp); !ok {
		return nil, fault.Argument("X-Amz-Date", stamp, "X-Amz-Date must be formated via ISO8601 Long format")
	}
	if s.Date != stamp[:8] {
		return nil, fault.Argument("X-Amz-Date", stamp, "The date isn't the one of the credential")
	}
	return s, nil
}

// VerifyText checks a signature over a text as such, which for a browser upload is its policy in base64.
func (s *Signature) VerifyText(text, signature, secret string) error {
	if Equal(DeriveKey(secret, s.Credential).Sign([]byte(text)), signature) {
		return nil
	}
	return fault.SignatureDoesNotMatch.With("AWSAccessKeyId", s.AccessKey, "StringToSign", text, "SignatureProvided", signature,
		"StringToSignBytes", spaced(text))
}

// spaced writes bytes in hexadecimal with spaces, as S3 shows what it signed.
func spaced(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(hex.EncodeToString([]byte{text[i]}))
	}
	return b.String()
}
