package coreutils

import (
	"encoding/base32"
	"encoding/base64"
	"errors"
	"io"
	"strconv"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var baseSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]"},
	About: "Encode or decode FILE, or standard input, to standard output.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'd', Long: "decode", Help: "decode data"},
		{Short: 'D', Key: 'd'},
		{Short: 'i', Long: "ignore-garbage", Help: "when decoding, ignore non-alphabet characters"},
		{Short: 'w', Long: "wrap", Arg: getopt.Required, Name: "COLS", Help: "wrap encoded lines after COLS character (default 76).  Use 0 to disable line wrapping"},
	},
	Package: tool.Coreutils,
}

const (
	keyBase64 = tool.KeyOwn + iota
	keyBase64URL
	keyBase32
	keyBase32Hex
	keyBase16
	keyBase2MSB
	keyBase2LSB
	keyZ85
)

var basencSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]"},
	About: "basenc encode or decode FILE, or standard input, to standard output.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: append([]getopt.Option{
		{Long: "base64", Key: keyBase64, Help: "same as 'base64' program (RFC4648 section 4)"},
		{Long: "base64url", Key: keyBase64URL, Help: "file- and url-safe base64 (RFC4648 section 5)"},
		{Long: "base32", Key: keyBase32, Help: "same as 'base32' program (RFC4648 section 6)"},
		{Long: "base32hex", Key: keyBase32Hex, Help: "extended hex alphabet base32 (RFC4648 section 7)"},
		{Long: "base16", Key: keyBase16, Help: "hex encoding (RFC4648 section 8)"},
		{Long: "base2msbf", Key: keyBase2MSB, Help: "bit string with most significant bit (msb) first"},
		{Long: "base2lsbf", Key: keyBase2LSB, Help: "bit string with least significant bit (lsb) first"},
		{Long: "z85", Key: keyZ85, Help: "ascii85-like encoding (ZeroMQ spec:32/Z85)"},
	}, baseSpec.Options...),
	Package: tool.Coreutils,
}

// codec is an encoding of groups of bytes.
type codec struct {
	group, chars int // bytes of a group, and their characters
	encode       func(dst, src []byte)
	decode       func(dst, src []byte) (int, error)
	alphabet     string
}

const (
	alphabet64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	alphabet32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
)

// Base64 encodes and decodes base64.
func Base64(t *tool.T) int {
	return baseMain(t, codec{3, 4, base64.StdEncoding.Encode, base64.StdEncoding.Decode, alphabet64})
}

// Base32 encodes and decodes base32.
func Base32(t *tool.T) int {
	return baseMain(t, codec{5, 8, base32.StdEncoding.Encode, base32.StdEncoding.Decode, alphabet32})
}

func baseMain(t *tool.T, c codec) int {
	opts, files := t.Parse(&baseSpec)
	return c.run(t, opts, files)
}

// run reads the options that all encodings have, and encodes or decodes.
func (c *codec) run(t *tool.T, opts []getopt.Opt, files []string) int {
	decode, ignore, wrap := false, false, 76
	for _, o := range opts {
		switch o.Key {
		case 'd':
			decode = true
		case 'i':
			ignore = true
		case 'w':
			n, err := strconv.ParseUint(o.Arg, 10, 62)
			if err != nil {
				t.Fatal(1, "invalid wrap size: %s", tool.Quote(o.Arg))
			}
			wrap = int(n)
		}
	}
	if len(files) > 1 {
		t.Extra(1, files[1])
	}
	name := names(files)[0]
	in, err := t.Open(name)
	if err != nil {
		t.WarnFile(name, err)
		return 1
	}
	defer in.Close()
	if decode {
		err = c.decodeAll(t, in, ignore)
	} else {
		err = c.encodeAll(t, in, wrap)
	}
	if err != nil {
		t.Fatal(1, "read error: %s", tool.Strerror(err))
	}
	return 0
}

func (c *codec) encodeAll(t *tool.T, in io.Reader, wrap int) error {
	buf := make([]byte, c.group*8192)
	out := make([]byte, c.chars*8192)
	col := 0
	for {
		n, err := io.ReadFull(in, buf)
		if c.alphabet == alphabetZ85 && n%4 != 0 {
			t.Fatal(1, "invalid input (length must be multiple of 4 characters)")
		}
		chars := (n + c.group - 1) / c.group * c.chars
		c.encode(out[:chars], buf[:n])
		for rest := out[:chars]; len(rest) > 0; {
			k := len(rest)
			if wrap > 0 {
				k = min(k, wrap-col)
			}
			t.Out.Write(rest[:k])
			rest = rest[k:]
			if col += k; wrap > 0 && col == wrap {
				t.Out.WriteByte('\n')
				col = 0
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			if wrap > 0 && col > 0 {
				t.Out.WriteByte('\n')
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *codec) decodeAll(t *tool.T, in io.Reader, ignore bool) error {
	var valid [256]bool
	for i := range len(c.alphabet) {
		valid[c.alphabet[i]] = true
	}
	valid['='] = true
	buf := make([]byte, 32<<10)
	out := make([]byte, c.group)
	var group []byte
	for {
		n, err := in.Read(buf)
		for _, b := range buf[:n] {
			if b == '\n' || ignore && !valid[b] {
				continue
			}
			if group = append(group, b); len(group) < c.chars {
				continue
			}
			k, derr := c.decode(out, group)
			t.Out.Write(out[:k])
			if derr != nil {
				t.Fatal(1, "invalid input")
			}
			group = group[:0]
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if len(group) > 0 {
		// What is there of an incomplete group is still decoded.
		full := append([]byte{}, group...)
		for len(full) < c.chars {
			full = append(full, '=')
		}
		k, _ := c.decode(out, full)
		t.Out.Write(out[:k])
		t.Fatal(1, "invalid input")
	}
	return nil
}
