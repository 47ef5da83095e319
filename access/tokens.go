package access

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"

	"agentrun.dev/errs"
)

// maxToken bounds a token of Tokens, in bytes.
const maxToken = 1024

// Tokens are texts that nobody else can have made: each is what it says and an HMAC of that, under a key which is derived from the
// master key for one purpose. Nothing is stored of them: what ends their validity is for whoever opens them to see.
type Tokens struct{ key []byte }

// Tokens returns those of a purpose. Those of another don't open.
func (k *Keys) Tokens(purpose string) *Tokens {
	key, err := hkdf.Key(sha256.New, k.master, nil, "agentrun token: "+purpose, 32)
	if err != nil { // only for keys of impossible lengths
		panic(err)
	}
	return &Tokens{key}
}

// Mint makes the token of a text of at most 500 bytes: letters, digits, '-' and '_', always the same for the same text.
func (t *Tokens) Mint(text string) string {
	return base64.RawURLEncoding.EncodeToString(append(t.sum(text), text...))
}

// Open returns the text of a token, if it is one.
func (t *Tokens) Open(token string) (text string, ok bool) {
	if len(token) > maxToken {
		return "", false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) < sha256.Size {
		return "", false
	}
	text = string(b[sha256.Size:])
	return text, hmac.Equal(b[:sha256.Size], t.sum(text))
}

func (t *Tokens) sum(text string) []byte {
	m := hmac.New(sha256.New, t.key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// CallerFor is who acts as a principal, with at most a role of what that may ("": all of it), where it was proved by something made for it
// earlier than this request, and not by a key. A principal that is gone or disabled is errs.Unauthorized.
func (k *Keys) CallerFor(ctx context.Context, principal, role, remote, request string) (*Caller, error) {
	who, err := k.effective(ctx, principal)
	if errs.Is(err, errs.NotFound) || errs.Is(err, errs.Denied) {
		return nil, errs.New(errs.Unauthorized, "act as", printable(principal, 63), err)
	}
	if err != nil {
		return nil, err
	}
	if role != "" && rankOf(role) < rankOf(who.Role) {
		who.Role = role
	}
	return &Caller{Principal: *who, Remote: remote, Request: request}, nil
}
