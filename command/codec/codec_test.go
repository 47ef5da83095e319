package codec

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os/exec"
	"strings"
	"testing"
)

// samples are inputs of different kinds: random, text of few words, long runs, and sizes around the window's.
func samples() map[string][]byte {
	r := rand.New(rand.NewSource(1))
	random := make([]byte, 100_000)
	r.Read(random)
	var text bytes.Buffer
	words := strings.Fields("the quick brown fox jumps over a lazy dog while agents fork the world and merge it again")
	for text.Len() < 500_000 {
		text.WriteString(words[r.Intn(len(words))])
		if r.Intn(9) == 0 {
			text.WriteByte('\n')
		} else {
			text.WriteByte(' ')
		}
		if r.Intn(40) == 0 {
			fmt.Fprint(&text, r.Intn(1e9))
		}
	}
	mixed := append(append(append([]byte{}, text.Bytes()[:70_000]...), random[:40_000]...), bytes.Repeat([]byte("x"), 200_000)...)
	return map[string][]byte{"empty": {}, "one": []byte("a"), "hello": []byte("hello\n"), "random": random, "text": text.Bytes(), "mixed": mixed,
		"zeros": make([]byte, 300_000), "window": text.Bytes()[:winSize*2], "window+1": text.Bytes()[:winSize*2+1], "slide": text.Bytes()[:winSize*2-minLook+1], "short": text.Bytes()[:1000]}
}

func pack(t *testing.T, f Format, level int, in []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(f, &b, level)
	if err != nil {
		t.Fatal(err)
	}
	for len(in) > 0 { // in odd pieces
		n := min(len(in), 12345)
		if _, err := w.Write(in[:n]); err != nil {
			t.Fatal(err)
		}
		in = in[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unpack(f Format, in []byte) ([]byte, error) {
	r, err := NewReader(f, NewCounter(bytes.NewReader(in)))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

var formats = []Format{Gzip, Bzip2, Xz, Lzma, Zstd}

func TestRoundTrip(t *testing.T) {
	for name, in := range samples() {
		for _, f := range formats {
			packed := pack(t, f, -1, in)
			if len(packed) > 0 && Detect(packed[:min(len(packed), HeadSize)]) != f {
				t.Errorf("%s %s: detected as %v", f, name, Detect(packed[:HeadSize]))
			}
			if out, err := unpack(f, packed); err != nil || !bytes.Equal(out, in) {
				t.Errorf("%s %s: %d bytes of %d, %v", f, name, len(out), len(in), err)
			}
		}
	}
}

// Concatenated members are one stream; what is cut is io.ErrUnexpectedEOF or, in the last bytes, never success.
func TestMembersAndCuts(t *testing.T) {
	in := samples()["short"]
	for _, f := range []Format{Gzip, Bzip2, Xz, Zstd} {
		one := pack(t, f, -1, in)
		out, err := unpack(f, append(append([]byte{}, one...), one...))
		if err != nil || len(out) != 2*len(in) {
			t.Errorf("%s twice: %d bytes, %v", f, len(out), err)
		}
		for cut := 1; cut < len(one); cut += 7 {
			if _, err := unpack(f, one[:cut]); err == nil {
				t.Errorf("%s cut at %d is read without an error", f, cut)
			}
		}
		_, err = unpack(f, append(append([]byte{}, one...), "garbage!"...))
		if f == Gzip && !errors.Is(err, ErrTrailing) || err == nil {
			t.Errorf("%s with garbage: %v", f, err)
		}
	}
}

// The compressor's output has the bytes of gzip's.
func TestDeflateAsGzip(t *testing.T) {
	if _, err := exec.LookPath("gzip"); err != nil {
		t.Skip("gzip isn't installed here; this case runs where it is")
	}
	for name, in := range samples() {
		for level := 1; level <= 9; level++ {
			cmd := exec.Command("gzip", "-nc", fmt.Sprint("-", level))
			cmd.Stdin = bytes.NewReader(in)
			want, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			got := pack(t, Gzip, level, in)
			if !bytes.Equal(got, want) {
				t.Errorf("%s -%d: %d bytes, gzip has %d", name, level, len(got), len(want))
			}
		}
	}
}

func FuzzDeflate(f *testing.F) {
	for _, in := range samples() {
		f.Add(in[:min(len(in), 2000)], 6)
	}
	f.Fuzz(func(t *testing.T, in []byte, level int) {
		level = 1 + int(uint(level)%9)
		var b bytes.Buffer
		w := NewDeflater(&b, level)
		w.Write(in)
		w.Close()
		out, err := io.ReadAll(flate.NewReader(&b))
		if err != nil || !bytes.Equal(out, in) {
			t.Fatalf("%d bytes of %d: %v", len(out), len(in), err)
		}
	})
}

func FuzzReaders(f *testing.F) {
	for _, format := range formats {
		var b bytes.Buffer
		w, _ := NewWriter(format, &b, 1)
		io.WriteString(w, "hello, hello, hello")
		w.Close()
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, format := range formats {
			r, err := NewReader(format, NewCounter(bytes.NewReader(in)))
			if err == nil {
				io.Copy(io.Discard, io.LimitReader(r, 1<<20))
				r.Close()
			}
		}
		XzList(bytes.NewReader(in), int64(len(in)))
	})
}
