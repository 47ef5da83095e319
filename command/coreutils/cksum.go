package coreutils

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math/bits"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const (
	keyUntagged = tool.KeyOwn + 20 + iota
	keyDebug
)

var cksumSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]..."},
	About: "Print or verify checksums.\nBy default use the 32 bit CRC algorithm.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'a', Long: "algorithm", Arg: getopt.Required, Name: "TYPE", Help: "select the digest type to use: sysv, bsd, crc, md5, sha1, sha224, sha256, sha384, sha512, blake2b, sm3"},
		{Short: 'c', Long: "check", Help: "read checksums from the FILEs and check them"},
		{Short: 'l', Long: "length", Arg: getopt.Required, Name: "BITS", Help: "digest length in bits; must not exceed the max for the blake2 algorithm and must be a multiple of 8"},
		{Long: "tag", Key: keyTag, Help: "create a BSD-style checksum (the default)"},
		{Long: "untagged", Key: keyUntagged, Help: "create a reversed style checksum, without digest type"},
		{Short: 'z', Long: "zero", Help: "end each output line with NUL, not newline, and disable file name escaping"},
		{Long: "ignore-missing", Key: keyIgnoreMissing, Help: "don't fail or report status for missing files"},
		{Long: "quiet", Key: keyQuiet, Help: "don't print OK for each successfully verified file"},
		{Long: "status", Key: keyStatus, Help: "don't output anything, status code shows success"},
		{Long: "strict", Key: keyStrict, Help: "exit non-zero for improperly formatted checksum lines"},
		{Short: 'w', Long: "warn", Help: "warn about improperly formatted checksum lines"},
		{Long: "debug", Key: keyDebug, Help: "indicate which implementation used"},
	},
	Package: tool.Coreutils,
}

// algorithms are the digests that cksum -a names, with the label of tagged lines.
func algorithms() map[string]digest {
	return map[string]digest{"md5": {"MD5", 16, md5.New}, "sha1": {"SHA1", 20, sha1.New}, "sha224": {"SHA224", 28, sha256.New224}, "sha256": {"SHA256", 32, sha256.New},
		"sha384": {"SHA384", 48, sha512.New384}, "sha512": {"SHA512", 64, sha512.New}, "blake2b": {"BLAKE2b", 64, b2(512)}, "sm3": {"SM3", 32, newSM3}}
}

var cksumNames = [][]string{{"bsd"}, {"sysv"}, {"crc"}, {"md5"}, {"sha1"}, {"sha224"}, {"sha256"}, {"sha384"}, {"sha512"}, {"blake2b"}, {"sm3"}}

// Cksum prints checksums of several kinds.
func Cksum(t *tool.T) int {
	opts, files := t.Parse(&cksumSpec)
	g := digester{t: t, tag: true}
	algorithm, check, length := "crc", false, 0
	chosen := false
	for _, o := range opts {
		switch o.Key {
		case 'a':
			algorithm, chosen = cksumNames[t.Choice(1, "--algorithm", o.Arg, cksumNames)][0], true
		case 'l':
			length = blakeLength(t, o.Arg)
		case 'c':
			check = true
		case keyUntagged:
			g.tag = false
		case keyDebug:
		default:
			g.option(o)
		}
	}
	if length > 0 && algorithm != "blake2b" {
		t.Fatal(1, "--length is only supported with --algorithm=blake2b")
	}
	simple := algorithm == "crc" || algorithm == "bsd" || algorithm == "sysv"
	if check && chosen && simple {
		t.Fatal(1, "--check is not supported with --algorithm={bsd,sysv,crc}")
	}
	if check {
		if g.d = algorithms()[algorithm]; !chosen {
			g.detect = algorithms()
		}
		failed := false
		for _, f := range names(files) {
			failed = !g.check(f) || failed
		}
		return status(failed)
	}
	if simple {
		return sumFiles(t, files, algorithm)
	}
	if g.d = algorithms()[algorithm]; length > 0 && length != 512 {
		g.d = digest{fmt.Sprintf("BLAKE2b-%d", length), length / 8, b2(length)}
	}
	return g.run(files)
}

var sumSpec = tool.Spec{
	Usage:   []string{"[OPTION]... [FILE]..."},
	About:   "Print or check BSD (16-bit) checksums.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{{Short: 'r', Help: "use BSD sum algorithm (the default), use 1K blocks"}, {Short: 's', Long: "sysv", Help: "use System V sum algorithm, use 512 bytes blocks"}},
	Package: tool.Coreutils,
}

// Sum prints checksums of 16 bits.
func Sum(t *tool.T) int {
	opts, files := t.Parse(&sumSpec)
	kind := "bsd"
	for _, o := range opts {
		if kind = "bsd"; o.Key == 's' {
			kind = "sysv"
		}
	}
	return sumFiles(t, files, kind)
}

// sumFiles prints the checksums that aren't digests, with the sizes.
func sumFiles(t *tool.T, files []string, kind string) int {
	failed := false
	named := len(files) > 0
	for _, name := range names(files) {
		in, err := t.Open(name)
		var sum uint32
		var n uint64
		if err == nil {
			sum, n, err = simpleSum(in, kind)
			in.Close()
		}
		if err != nil {
			t.WarnFile(name, err)
			failed = true
			continue
		}
		switch kind {
		case "crc":
			fmt.Fprintf(t.Out, "%d %d", sum, n)
		case "bsd":
			fmt.Fprintf(t.Out, "%05d %5d", sum, (n+1023)/1024)
		default:
			fmt.Fprintf(t.Out, "%d %d", sum, (n+511)/512)
		}
		if named {
			t.Out.WriteString(" " + name)
		}
		t.Out.WriteByte('\n')
	}
	return status(failed)
}

func simpleSum(in io.Reader, kind string) (sum uint32, n uint64, err error) {
	buf := make([]byte, 64<<10)
	crc := ^uint32(0)
	for {
		k, err := in.Read(buf)
		n += uint64(k)
		switch kind {
		case "crc":
			crc = posixCRC(crc, buf[:k])
		case "bsd":
			for _, c := range buf[:k] {
				sum = (sum>>1 + sum&1<<15 + uint32(c)) & 0xffff
			}
		default:
			for _, c := range buf[:k] {
				sum += uint32(c)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, 0, err
		}
	}
	switch kind {
	case "crc":
		for l := n; l > 0; l >>= 8 { // the length belongs to the sum
			crc = posixCRC(crc, []byte{byte(l)})
		}
		return bits.Reverse32(crc), n, nil
	case "sysv":
		r := sum&0xffff + sum>>16
		sum = r&0xffff + r>>16
	}
	return sum, n, nil
}

// posixCRC goes on with POSIX' CRC, kept with its bits reversed and inverted: that is what crc32 computes, except that the
// register begins with zeros and that each byte's bits come in the other order.
func posixCRC(crc uint32, b []byte) uint32 {
	var chunk [4096]byte
	for len(b) > 0 {
		n := copy(chunk[:], b)
		for i, c := range chunk[:n] {
			chunk[i] = bits.Reverse8(c)
		}
		crc = crc32.Update(crc, crc32.IEEETable, chunk[:n])
		b = b[n:]
	}
	return crc
}

// sm3 is the hash of GB/T 32905-2016.
type sm3 struct {
	v     [8]uint32
	block [64]byte
	n     int
	total uint64
}

func newSM3() hash.Hash {
	s := &sm3{}
	s.Reset()
	return s
}

func (s *sm3) Reset() {
	*s = sm3{v: [8]uint32{0x7380166f, 0x4914b2b9, 0x172442d7, 0xda8a0600, 0xa96f30bc, 0x163138aa, 0xe38dee4d, 0xb0fb0e4e}}
}
func (s *sm3) Size() int      { return 32 }
func (s *sm3) BlockSize() int { return 64 }

func (s *sm3) Write(p []byte) (int, error) {
	total := len(p)
	s.total += uint64(total)
	for len(p) > 0 {
		n := copy(s.block[s.n:], p)
		p = p[n:]
		if s.n += n; s.n == 64 {
			s.compress()
			s.n = 0
		}
	}
	return total, nil
}

func (s *sm3) Sum(b []byte) []byte {
	c := *s
	c.Write(append([]byte{0x80}, make([]byte, (119-c.n%64)%64)...))
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], s.total*8)
	c.Write(length[:])
	for _, v := range c.v {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func (s *sm3) compress() {
	var w [68]uint32
	for i := range 16 {
		w[i] = binary.BigEndian.Uint32(s.block[i*4:])
	}
	rot := bits.RotateLeft32
	for i := 16; i < 68; i++ {
		x := w[i-16] ^ w[i-9] ^ rot(w[i-3], 15)
		w[i] = x ^ rot(x, 15) ^ rot(x, 23) ^ rot(w[i-13], 7) ^ w[i-6]
	}
	a, b, c, d, e, f, g, h := s.v[0], s.v[1], s.v[2], s.v[3], s.v[4], s.v[5], s.v[6], s.v[7]
	for i := range 64 {
		t := uint32(0x79cc4519)
		ff, gg := a^b^c, e^f^g
		if i >= 16 {
			t = 0x7a879d8a
			ff, gg = a&b|a&c|b&c, e&f|^e&g
		}
		ss1 := rot(rot(a, 12)+e+rot(t, i%32), 7)
		ss2 := ss1 ^ rot(a, 12)
		tt1 := ff + d + ss2 + (w[i] ^ w[i+4])
		tt2 := gg + h + ss1 + w[i]
		d, c, b, a = c, rot(b, 9), a, tt1
		h, g, f, e = g, rot(f, 19), e, tt2^rot(tt2, 9)^rot(tt2, 17)
	}
	for i, x := range [8]uint32{a, b, c, d, e, f, g, h} {
		s.v[i] ^= x
	}
}
