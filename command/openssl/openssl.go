// Package openssl is what scripts use of `openssl` 3.0 besides certificates: digests and their HMACs, random bytes, base64,
// and encryption by a password with AES. Keys, certificates and connections aren't there, and say so.
package openssl

import (
	"bufio"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/md5"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"

	"agentrun.dev/command/tool"
)

// maxInput bounds what enc and base64 read; digests have no bound.
const maxInput = 256 << 20

// digest is a hash by the name of its option, and as it is printed.
type digest struct {
	title string
	new   func() hash.Hash
}

func digests() map[string]digest {
	return map[string]digest{
		"md5": {"MD5", md5.New}, "sha1": {"SHA1", sha1.New}, "sha224": {"SHA2-224", sha256.New224}, "sha256": {"SHA2-256", sha256.New},
		"sha384": {"SHA2-384", sha512.New384}, "sha512": {"SHA2-512", sha512.New},
		"sha512-224": {"SHA2-512/224", sha512.New512_224}, "sha512-256": {"SHA2-512/256", sha512.New512_256},
		"sha3-224": {"SHA3-224", func() hash.Hash { return sha3.New224() }}, "sha3-256": {"SHA3-256", func() hash.Hash { return sha3.New256() }},
		"sha3-384": {"SHA3-384", func() hash.Hash { return sha3.New384() }}, "sha3-512": {"SHA3-512", func() hash.Hash { return sha3.New512() }},
	}
}

// command is one run.
type command struct {
	t    *tool.T
	name string // of the subcommand
}

// Openssl is the command.
func Openssl(t *tool.T) int {
	args := t.Args()[1:]
	if len(args) == 0 {
		args = []string{"help"}
	}
	c := &command{t, args[0]}
	switch name := args[0]; name {
	case "dgst":
		return c.digest("", args[1:])
	case "rand":
		return c.rand(args[1:])
	case "base64":
		return c.enc(append([]string{"-a"}, args[1:]...))
	case "enc":
		return c.enc(args[1:])
	case "version":
		t.Out.WriteString("OpenSSL 3.0.19 27 Jan 2026 (Library: AgentRun 1.0)\n")
		return 0
	case "help", "-help", "--help":
		fmt.Fprint(t.Stderr(), "help:\n\nCommands of this openssl: base64 dgst enc rand version, and digests by their names\n")
		return 0
	default:
		if _, ok := digests()[name]; ok {
			return c.digest(name, args[1:])
		}
		if _, ok := ciphers[name]; ok {
			return c.enc(append([]string{"-" + name}, args[1:]...))
		}
		if known[name] {
			t.Warn("%s isn't available in a sandbox; there are base64, dgst, enc, rand and version", name)
			return 1
		}
		fmt.Fprintf(t.Stderr(), "Invalid command '%s'; type \"help\" for a list.\n", name)
		return 1
	}
}

// known are commands that the real one has and this one hasn't.
var known = map[string]bool{"req": true, "x509": true, "genrsa": true, "genpkey": true, "rsa": true, "pkey": true, "s_client": true, "s_server": true, "ca": true, "verify": true,
	"pkcs12": true, "ecparam": true, "ec": true, "dhparam": true, "pkeyutl": true, "passwd": true, "prime": true, "speed": true, "crl": true, "ciphers": true, "smime": true, "cms": true}

func (c *command) warn(format string, args ...any) {
	c.t.Out.Flush()
	fmt.Fprintf(c.t.Stderr(), format+"\n", args...)
}

// misuse reports a mistake in the arguments.
func (c *command) misuse(format string, args ...any) int {
	c.warn("%s: "+format, append([]any{c.name}, args...)...)
	c.warn("%s: Use -help for summary.", c.name)
	return 1
}

// output is where -out says, else standard output.
func (c *command) output(name string) (io.Writer, func() error, error) {
	if name == "" {
		return c.t.Out, func() error { return nil }, nil
	}
	f, err := c.t.Create(name)
	if err != nil {
		c.warn("Can't open \"%s\" for writing, %s", name, tool.Strerror(err))
		return nil, nil, err
	}
	w := bufio.NewWriter(f)
	return w, func() error {
		err := w.Flush()
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		return err
	}, nil
}

// digest is "openssl dgst" and the digests' own names.
func (c *command) digest(name string, args []string) int {
	explicit := name != ""
	var key, out string
	var binary, reverse, colons, keyed bool
	i := 0
	for ; i < len(args) && strings.HasPrefix(args[i], "-") && args[i] != "-"; i++ {
		a := strings.TrimPrefix(args[i][1:], "-")
		if _, ok := digests()[a]; ok {
			name, explicit = a, true
			continue
		}
		switch a {
		case "hex":
		case "c":
			colons = true
		case "r":
			reverse = true
		case "binary":
			binary = true
		case "hmac", "out":
			if i++; i >= len(args) {
				return c.misuse("Option -%s needs a value", a)
			}
			if a == "hmac" {
				key, keyed = args[i], true
			} else {
				out = args[i]
			}
		default:
			if c.name == "dgst" {
				return c.misuse("Unknown option or message digest: %s", a)
			}
			return c.misuse("Unknown option: -%s", a)
		}
	}
	if name == "" {
		name = "sha256"
	}
	d := digests()[name]
	title := d.title
	if !explicit {
		title = "SHA256"
	}
	if keyed {
		title = "HMAC-" + title
	}
	w, closeOut, err := c.output(out)
	if err != nil {
		return 1
	}
	files, status := args[i:], 0
	if len(files) == 0 {
		files = []string{""}
	}
	for _, f := range files {
		h := d.new()
		if keyed {
			h = hmac.New(d.new, []byte(key))
		}
		if err := c.hash(h, f); err != nil {
			c.warn("%s: %s", f, tool.Strerror(err))
			status = 1
			continue
		}
		printDigest(w, h.Sum(nil), f, title, binary, reverse, colons)
	}
	if closeOut() != nil {
		return 1
	}
	return status
}

func (c *command) hash(h hash.Hash, name string) error {
	if name == "" {
		_, err := io.Copy(h, c.t.Stdin())
		return err
	}
	in, err := c.t.OpenFile(name)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(h, in)
	return err
}

func printDigest(w io.Writer, sum []byte, file, title string, binary, reverse, colons bool) {
	text := hex.EncodeToString(sum)
	if colons {
		parts := make([]string, len(sum))
		for i, b := range sum {
			parts[i] = fmt.Sprintf("%02x", b)
		}
		text = strings.Join(parts, ":")
	}
	if file == "" {
		file = "stdin"
	}
	switch {
	case binary:
		w.Write(sum)
	case reverse:
		fmt.Fprintf(w, "%s *%s\n", text, file)
	default:
		fmt.Fprintf(w, "%s(%s)= %s\n", title, file, text)
	}
}

// maxRandom bounds "openssl rand".
const maxRandom = 1 << 30

// rand is "openssl rand".
func (c *command) rand(args []string) int {
	var asHex, as64 bool
	out, count := "", int64(-1)
	for i := 0; i < len(args); i++ {
		switch a := strings.TrimLeft(args[i], "-"); {
		case args[i] == "-hex":
			asHex = true
		case args[i] == "-base64":
			as64 = true
		case args[i] == "-out" && i+1 < len(args):
			i++
			out = args[i]
		case strings.HasPrefix(args[i], "-"):
			return c.misuse("Unknown option: -%s", a)
		default:
			n, err := strconv.ParseInt(args[i], 10, 64)
			if err != nil || n <= 0 || n > maxRandom || count >= 0 {
				c.warn("rand: Use -help for summary.")
				return 1
			}
			count = n
		}
	}
	if count < 0 {
		return c.misuse("a number of bytes is missing")
	}
	w, closeOut, err := c.output(out)
	if err != nil {
		return 1
	}
	in := io.LimitReader(c.t.Rand(), count)
	switch {
	case asHex:
		io.Copy(hex.NewEncoder(w), in)
		w.Write([]byte{'\n'})
	case as64:
		lines := &wrapper{w: w, width: 64}
		e := base64.NewEncoder(base64.StdEncoding, lines)
		io.Copy(e, in)
		e.Close()
		lines.end()
	default:
		io.Copy(w, in)
	}
	if closeOut() != nil {
		return 1
	}
	return 0
}

// wrapper breaks lines.
type wrapper struct {
	w     io.Writer
	width int // 0: never
	at    int
	some  bool
}

func (l *wrapper) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		n := len(p)
		if l.width > 0 {
			n = min(n, l.width-l.at)
		}
		if _, err := l.w.Write(p[:n]); err != nil {
			return 0, err
		}
		l.some = true
		p = p[n:]
		if l.at += n; l.width > 0 && l.at == l.width {
			l.w.Write([]byte{'\n'})
			l.at = 0
		}
	}
	return total, nil
}

func (l *wrapper) end() {
	if l.at > 0 || l.width == 0 && l.some {
		l.w.Write([]byte{'\n'})
	}
}

// ciphers are those of enc: the length of the key, and the mode.
var ciphers = map[string]struct {
	key  int
	mode string
}{
	"aes-128-cbc": {16, "cbc"}, "aes-192-cbc": {24, "cbc"}, "aes-256-cbc": {32, "cbc"}, "aes128": {16, "cbc"}, "aes192": {24, "cbc"}, "aes256": {32, "cbc"},
	"aes-128-ctr": {16, "ctr"}, "aes-192-ctr": {24, "ctr"}, "aes-256-ctr": {32, "ctr"},
	"aes-128-ecb": {16, "ecb"}, "aes-192-ecb": {24, "ecb"}, "aes-256-ecb": {32, "ecb"},
}

// encoding is one run of enc.
type encoding struct {
	cipher                           string
	decrypt, ascii, oneLine          bool
	noSalt, stretch, noPad, print    bool
	in, out, password, salt, key, iv string
	md                               string
	rounds                           int
	hasPassword                      bool
}

func (c *command) parseEnc(args []string) (e encoding, status int) {
	e = encoding{md: "sha256", rounds: 10000}
	for i := 0; i < len(args); i++ {
		a := strings.TrimPrefix(strings.TrimPrefix(args[i], "-"), "-")
		texts := map[string]*string{"in": &e.in, "out": &e.out, "k": &e.password, "pass": &e.password, "S": &e.salt, "K": &e.key, "iv": &e.iv, "md": &e.md, "kfile": &e.password, "iter": nil}
		if p, ok := texts[a]; ok {
			if i++; i >= len(args) {
				return e, c.misuse("Option -%s needs a value", a)
			}
			switch a {
			case "iter":
				n, err := strconv.Atoi(args[i])
				if err != nil || n < 1 || n > 10_000_000 {
					return e, c.misuse("Non-positive number \"%s\" for option -iter", args[i])
				}
				e.rounds, e.stretch = n, true
			case "pass", "kfile":
				source := args[i]
				if a == "kfile" {
					source = "file:" + source
				}
				var ok bool
				if e.password, ok = c.secret(source); !ok {
					return e, 1
				}
				e.hasPassword = true
			default:
				*p = args[i]
				e.hasPassword = e.hasPassword || a == "k"
			}
			continue
		}
		switch a {
		case "d":
			e.decrypt = true
		case "e", "salt", "p", "P", "v":
		case "a", "base64":
			e.ascii = true
		case "A":
			e.oneLine = true
		case "nosalt":
			e.noSalt = true
		case "nopad":
			e.noPad = true
		case "pbkdf2":
			e.stretch = true
		default:
			if _, ok := ciphers[a]; !ok {
				if c.name == "enc" {
					return e, c.misuse("Unknown cipher: %s", a)
				}
				return e, c.misuse("Unknown option: -%s", a)
			}
			e.cipher = a
		}
	}
	return e, 0
}

// secret reads a password as -pass has it: pass:TEXT, env:NAME, file:PATH or stdin.
func (c *command) secret(source string) (string, bool) {
	kind, value, _ := strings.Cut(source, ":")
	switch kind {
	case "pass":
		return value, true
	case "env":
		return c.t.Getenv(value), true
	case "file":
		b, err := c.t.ReadFile(value, 1<<16)
		if err != nil {
			c.warn("Can't open file %s", value)
			return "", false
		}
		line, _, _ := strings.Cut(string(b), "\n")
		return strings.TrimSuffix(line, "\r"), true
	case "stdin":
		line, _ := tool.NewLines(c.t.Stdin(), '\n').Next()
		return string(line), true
	}
	c.warn("Invalid password argument, starting with \"%s\"", kind)
	return "", false
}

// enc is "openssl enc" and "openssl base64".
func (c *command) enc(args []string) int {
	e, status := c.parseEnc(args)
	if status != 0 {
		return status
	}
	name := e.in
	if name == "" {
		name = "-"
	}
	in, err := c.t.ReadFile(name, maxInput)
	if err != nil {
		c.warn("Can't open \"%s\" for reading, %s", e.in, tool.Strerror(err))
		return 1
	}
	if e.decrypt && e.ascii {
		in = decode64(in)
	}
	if e.cipher != "" {
		if in, status = c.crypt(&e, in); status != 0 {
			return status
		}
	}
	w, closeOut, err := c.output(e.out)
	if err != nil {
		return 1
	}
	if !e.decrypt && e.ascii {
		lines := &wrapper{w: w, width: 64}
		if e.oneLine {
			lines.width = 0
		}
		b := base64.NewEncoder(base64.StdEncoding, lines)
		b.Write(in)
		b.Close()
		if !e.oneLine {
			lines.end()
		}
	} else {
		w.Write(in)
	}
	if closeOut() != nil {
		return 1
	}
	return 0
}

// decode64 decodes what there is of base64, up to the first mistake.
func decode64(in []byte) []byte {
	clean := strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == ' ' || r == '\t' {
			return -1
		}
		return r
	}, string(in))
	out, err := base64.StdEncoding.DecodeString(clean)
	if err != nil {
		out = out[:0]
	}
	return out
}

const saltMark = "Salted__"

// crypt encrypts or decrypts.
func (c *command) crypt(e *encoding, in []byte) ([]byte, int) {
	spec := ciphers[e.cipher]
	d, ok := digests()[e.md]
	if !ok {
		return nil, c.misuse("Unknown message digest: %s", e.md)
	}
	var key, iv, head []byte
	var err error
	switch {
	case e.key != "":
		if key, err = c.padHex(e.key, spec.key); err == nil && spec.mode != "ecb" {
			iv, err = c.padHex(e.iv, aes.BlockSize)
		}
		if err != nil {
			c.warn("invalid hex key value")
			return nil, 1
		}
	case !e.hasPassword:
		c.warn("enter a password with -k, -pass or -kfile: there is nobody to ask")
		return nil, 1
	default:
		var salt []byte
		if salt, head, in, err = c.salted(e, in); err != nil {
			c.warn("bad magic number")
			return nil, 1
		}
		if !e.stretch {
			c.warn("*** WARNING : deprecated key derivation used.\nUsing -iter or -pbkdf2 would be better.")
		}
		key, iv = derive(e, d, salt, spec.key)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, 1
	}
	out, ok := run(block, spec.mode, iv, in, e)
	if !ok {
		c.warn("bad decrypt")
		return nil, 1
	}
	return append(head, out...), 0
}

// padHex reads a key in hexadecimal digits, filled up with zeros.
func (c *command) padHex(s string, n int) ([]byte, error) {
	if len(s) < 2*n {
		c.warn("hex string is too short, padding with zero bytes to length")
	}
	if len(s)%2 == 1 {
		s += "0"
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		return nil, err
	}
	return append(b, make([]byte, n)...)[:n], nil
}

// salted finds or makes the salt, and takes it off the input.
func (c *command) salted(e *encoding, in []byte) (salt, head, rest []byte, err error) {
	switch {
	case e.noSalt:
		return nil, nil, in, nil
	case e.salt != "":
		salt, err = c.padHex(e.salt, 8)
		return salt, nil, in, err
	case e.decrypt:
		if len(in) < 16 || string(in[:8]) != saltMark {
			return nil, nil, nil, io.ErrUnexpectedEOF
		}
		return in[8:16], nil, in[16:], nil
	}
	salt = make([]byte, 8)
	if _, err := io.ReadFull(c.t.Rand(), salt); err != nil {
		return nil, nil, nil, err
	}
	return salt, append([]byte(saltMark), salt...), in, nil
}

// derive makes a key and an initialization vector of a password.
func derive(e *encoding, d digest, salt []byte, keyLen int) (key, iv []byte) {
	n := keyLen + aes.BlockSize
	var b []byte
	if e.stretch {
		b, _ = pbkdf2.Key(d.new, e.password, salt, e.rounds, n)
	} else {
		var last []byte
		for len(b) < n {
			h := d.new()
			h.Write(last)
			h.Write([]byte(e.password))
			h.Write(salt)
			last = h.Sum(nil)
			b = append(b, last...)
		}
	}
	return b[:keyLen], b[keyLen:n]
}

// run applies a cipher; ok is false where the padding is wrong.
func run(block cipher.Block, mode string, iv, in []byte, e *encoding) (out []byte, ok bool) {
	if mode == "ctr" {
		out = make([]byte, len(in))
		cipher.NewCTR(block, iv).XORKeyStream(out, in)
		return out, true
	}
	if !e.decrypt {
		if !e.noPad {
			n := aes.BlockSize - len(in)%aes.BlockSize
			in = append(append([]byte(nil), in...), strings.Repeat(string(rune(n)), n)...)
		}
	}
	if len(in)%aes.BlockSize != 0 || e.decrypt && len(in) == 0 && !e.noPad {
		return nil, false
	}
	out = make([]byte, len(in))
	switch {
	case mode == "cbc" && e.decrypt:
		cipher.NewCBCDecrypter(block, iv).CryptBlocks(out, in)
	case mode == "cbc":
		cipher.NewCBCEncrypter(block, iv).CryptBlocks(out, in)
	default:
		for i := 0; i < len(in); i += aes.BlockSize {
			if e.decrypt {
				block.Decrypt(out[i:], in[i:])
			} else {
				block.Encrypt(out[i:], in[i:])
			}
		}
	}
	if !e.decrypt || e.noPad {
		return out, true
	}
	n := int(out[len(out)-1])
	if n == 0 || n > aes.BlockSize {
		return nil, false
	}
	for _, b := range out[len(out)-n:] {
		if int(b) != n {
			return nil, false
		}
	}
	return out[:len(out)-n], true
}
