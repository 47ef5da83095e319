package node

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"io"
	"testing"

	"agentrun.dev/errs"
)

// TestSeal: what is sealed comes back, and nothing that was changed does.
func TestSeal(t *testing.T) {
	block, err := aes.NewCipher(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	a, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	seal := func(n int) []byte {
		var out bytes.Buffer
		s := newSealer(a, &out)
		text := bytes.Repeat([]byte("secret "), n/7+1)[:n]
		for len(text) > 0 {
			k := min(len(text), 1000)
			if _, err := s.Write(text[:k]); err != nil {
				t.Fatal(err)
			}
			text = text[k:]
		}
		if err := s.end(); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(out.Bytes(), []byte("secret")) {
			t.Error("it can be read")
		}
		return out.Bytes()
	}
	for _, n := range []int{0, 1, sealChunk - 1, sealChunk, sealChunk + 1, 3*sealChunk + 5} {
		sealed := seal(n)
		got, err := io.ReadAll(newOpener(a, bytes.NewReader(sealed)))
		if err != nil || len(got) != n {
			t.Errorf("%d bytes: %d came back, %v", n, len(got), err)
		}
		bad := func(what string, b []byte) {
			if _, err := io.ReadAll(newOpener(a, bytes.NewReader(b))); !errs.Is(err, errs.Corrupt) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%d bytes, %s: %v", n, what, err)
			}
		}
		for _, at := range []int{0, len(sealMagic) + 1, len(sealMagic) + 10, len(sealed) / 2, len(sealed) - 1} {
			b := bytes.Clone(sealed)
			b[at] ^= 1
			bad("a bit changed", b)
		}
		bad("cut off", sealed[:len(sealed)-1])
		bad("more behind it", append(bytes.Clone(sealed), 0))
		if head := len(sealMagic) + 8 + 4 + sealChunk + 16; len(sealed) > head {
			bad("whole chunks cut off", sealed[:head])
		}
	}
}
