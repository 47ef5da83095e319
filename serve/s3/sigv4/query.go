package sigv4

import (
	"net/url"
	"slices"
	"strings"
)

// Query holds a URL's parameters in the order given.
type Query []Param

// Param is one parameter, decoded.
type Param struct{ Name, Value string }

// maxParams bounds the parameters of one request.
const maxParams = 1000

// ParseQuery decodes a raw query. ok is false if it is malformed or has more than 1,000 parameters.
func ParseQuery(raw string) (q Query, ok bool) {
	if raw == "" {
		return nil, true
	}
	if strings.Count(raw, "&") >= maxParams {
		return nil, false
	}
	q = make(Query, 0, 1+strings.Count(raw, "&"))
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil {
			return nil, false
		}
		if value, err = url.QueryUnescape(value); err != nil {
			return nil, false
		}
		q = append(q, Param{name, value})
	}
	return q, true
}

// Get returns the first value of a parameter, "" if there is none.
func (q Query) Get(name string) string {
	for i := range q {
		if q[i].Name == name {
			return q[i].Value
		}
	}
	return ""
}

// Has reports whether a parameter is there, with or without a value.
func (q Query) Has(name string) bool {
	for i := range q {
		if q[i].Name == name {
			return true
		}
	}
	return false
}

// appendCanonical appends the query as it is signed: encoded, sorted, without the signature itself.
func (q Query) appendCanonical(dst []byte) []byte {
	if len(q) == 0 {
		return dst
	}
	encoded := make([]Param, 0, len(q))
	for _, p := range q {
		if p.Name != "X-Amz-Signature" {
			encoded = append(encoded, Param{encode(p.Name), encode(p.Value)})
		}
	}
	slices.SortFunc(encoded, func(a, b Param) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(a.Value, b.Value)
	})
	for i, p := range encoded {
		if i > 0 {
			dst = append(dst, '&')
		}
		dst = append(dst, p.Name...)
		dst = append(dst, '=')
		dst = append(dst, p.Value...)
	}
	return dst
}

const upperHex = "0123456789ABCDEF"

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// encode escapes all but the unreserved characters of RFC 3986, as the specification of SigV4 has it.
func encode(s string) string {
	for i := 0; i < len(s); i++ {
		if !unreserved(s[i]) {
			return string(appendEncoded(nil, s, false))
		}
	}
	return s
}

func appendEncoded(dst []byte, s string, keepSlash bool) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; unreserved(c) || keepSlash && c == '/' {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst
}

// EncodePath escapes a path or key as S3 writes it in URLs: like a query value, but slashes stay.
func EncodePath(s string) string { return string(appendEncoded(nil, s, true)) }
