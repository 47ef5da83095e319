package coreutils

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"

	"agentrun.dev/command/tool"
)

// errBase says that a group of characters decodes to nothing.
var errBase = errors.New("invalid input")

// codecs are the encodings of basenc by the key of their options.
func codecs() map[rune]codec {
	const hexAlphabet = "0123456789ABCDEF"
	url, hex32 := base64.URLEncoding, base32.HexEncoding
	return map[rune]codec{
		keyBase64:    {3, 4, base64.StdEncoding.Encode, base64.StdEncoding.Decode, alphabet64},
		keyBase64URL: {3, 4, url.Encode, url.Decode, strings.NewReplacer("+", "-", "/", "_").Replace(alphabet64)},
		keyBase32:    {5, 8, base32.StdEncoding.Encode, base32.StdEncoding.Decode, alphabet32},
		keyBase32Hex: {5, 8, hex32.Encode, hex32.Decode, "0123456789ABCDEFGHIJKLMNOPQRSTUV"},
		keyBase16: {1, 2, func(dst, src []byte) {
			for i, c := range src {
				dst[2*i], dst[2*i+1] = hexAlphabet[c>>4], hexAlphabet[c&15]
			}
		}, func(dst, src []byte) (int, error) {
			if strings.Trim(string(src), hexAlphabet) != "" {
				return 0, errBase
			}
			return hex.Decode(dst, src)
		}, hexAlphabet},
		keyBase2MSB: {1, 8, base2(func(i int) int { return 7 - i }), unbase2(func(i int) int { return 7 - i }), "01"},
		keyBase2LSB: {1, 8, base2(func(i int) int { return i }), unbase2(func(i int) int { return i }), "01"},
		keyZ85:      {4, 5, encodeZ85, decodeZ85, alphabetZ85},
	}
}

// base2 writes a byte's bits; bit says which comes at a place.
func base2(bit func(int) int) func(dst, src []byte) {
	return func(dst, src []byte) {
		for i, c := range src {
			for j := range 8 {
				dst[8*i+j] = '0' + c>>bit(j)&1
			}
		}
	}
}

func unbase2(bit func(int) int) func(dst, src []byte) (int, error) {
	return func(dst, src []byte) (int, error) {
		dst[0] = 0
		for i, c := range src {
			if c != '0' && c != '1' {
				return 0, errBase
			}
			dst[0] |= (c - '0') << bit(i)
		}
		return 1, nil
	}
}

const alphabetZ85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

func encodeZ85(dst, src []byte) {
	for ; len(src) >= 4; src, dst = src[4:], dst[5:] {
		v := binary.BigEndian.Uint32(src)
		for i := 4; i >= 0; i-- {
			dst[i] = alphabetZ85[v%85]
			v /= 85
		}
	}
}

func decodeZ85(dst, src []byte) (int, error) {
	v := uint64(0)
	for _, c := range src {
		i := strings.IndexByte(alphabetZ85, c)
		if i < 0 {
			return 0, errBase
		}
		v = v*85 + uint64(i)
	}
	if v > 1<<32-1 {
		return 0, errBase
	}
	binary.BigEndian.PutUint32(dst, uint32(v))
	return 4, nil
}

// Basenc encodes and decodes several encodings.
func Basenc(t *tool.T) int {
	opts, files := t.Parse(&basencSpec)
	var c codec
	all := codecs()
	for _, o := range opts {
		if found, ok := all[o.Key]; ok {
			c = found
		}
	}
	if c.group == 0 {
		t.UsageError(1, "missing encoding type")
	}
	return c.run(t, opts, files)
}
