package js

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/md5"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"path"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/crypto/scrypt"

	"agentrun.dev/proc"
)

// Operations that the guest asks for by agentrun_call. All but the first get texts and bytes, each after its length (four bytes, little endian).
const (
	callSource = iota + 1 // a file of lib
	callHash
	callHMAC
	callPBKDF2
	callScrypt
	callHKDF
	callCipher
	callZlib
	callFetch
	callNet
)

const (
	maxAnswer = 256 << 20 // bytes
	maxWork   = 64 << 20  // bytes of memory that scrypt may use, four times that it may go through
	maxRounds = 2 << 20   // of PBKDF2's digest: what is computed here can't be interrupted
)

func (in *Interpreter) call(p *proc.Process, op uint32, b []byte) ([]byte, error) {
	if op == callSource {
		if name := path.Clean(string(b)); name == "bootstrap" {
			return lib.ReadFile("lib/internal/bootstrap.js")
		} else if text, err := lib.ReadFile("lib/" + name + ".js"); err == nil {
			return text, nil
		}
		return nil, syscall.ENOENT
	}
	a := arguments{b: b}
	start := time.Now()
	if op != callFetch && op != callNet {
		defer func() { p.AddCPU(time.Since(start)) }()
	}
	var out []byte
	var err error
	switch op {
	case callHash:
		out, err = digest(a.text(), nil, a.bytes(), false)
	case callHMAC:
		name, key := a.text(), a.bytes()
		out, err = digest(name, key, a.bytes(), true)
	case callPBKDF2, callScrypt, callHKDF:
		out, err = derive(op, &a)
	case callCipher:
		out, err = crypt(&a)
	case callZlib:
		kind, level, limit := a.text(), a.number(), a.number()
		out, err = convert(kind, level, limit, a.bytes())
	case callFetch:
		return in.fetch(p, a.bytes(), a.bytes())
	case callNet:
		return in.network(p, &a)
	default:
		return nil, syscall.ENOSYS
	}
	if err == nil && a.bad {
		err = syscall.EINVAL
	}
	return out, err
}

// arguments are those of an operation.
type arguments struct {
	b   []byte
	bad bool
}

func (a *arguments) bytes() []byte {
	if len(a.b) < 4 || uint64(binary.LittleEndian.Uint32(a.b)) > uint64(len(a.b)-4) {
		a.bad = true
		return nil
	}
	n := binary.LittleEndian.Uint32(a.b)
	v := a.b[4 : 4+n]
	a.b = a.b[4+n:]
	return v
}

func (a *arguments) text() string { return string(a.bytes()) }

func (a *arguments) number() int {
	n, err := strconv.Atoi(a.text())
	if err != nil {
		a.bad = true
	}
	return n
}

// hashes are the digests by their names; sha3's are of another type.
func hashes(name string) func() hash.Hash {
	switch name {
	case "md5":
		return md5.New
	case "sha1":
		return sha1.New
	case "sha224":
		return sha256.New224
	case "sha256":
		return sha256.New
	case "sha384":
		return sha512.New384
	case "sha512":
		return sha512.New
	case "sha512-224":
		return sha512.New512_224
	case "sha512-256":
		return sha512.New512_256
	case "sha3-224":
		return func() hash.Hash { return sha3.New224() }
	case "sha3-256":
		return func() hash.Hash { return sha3.New256() }
	case "sha3-384":
		return func() hash.Hash { return sha3.New384() }
	case "sha3-512":
		return func() hash.Hash { return sha3.New512() }
	}
	return nil
}

func digest(name string, key, data []byte, keyed bool) ([]byte, error) {
	f := hashes(name)
	if f == nil {
		return nil, syscall.EINVAL
	}
	h := f()
	if keyed {
		h = hmac.New(f, key)
	}
	h.Write(data)
	return h.Sum(nil), nil
}

func derive(op uint32, a *arguments) ([]byte, error) {
	if op == callScrypt {
		password, salt := a.bytes(), a.bytes()
		size, n, r, p := a.number(), a.number(), a.number(), a.number()
		if a.bad || size < 0 || size > 1<<20 || n < 2 || r < 1 || p < 1 || n > maxWork/128/r || p > 4*maxWork/128/r/n {
			return nil, syscall.EINVAL
		}
		return scrypt.Key(password, salt, n, r, p, size)
	}
	f, secret, salt := hashes(a.text()), a.bytes(), a.bytes()
	if f == nil {
		return nil, syscall.EINVAL
	}
	if op == callHKDF {
		info := a.text()
		size := a.number()
		if a.bad || size < 0 || size > 255*f().Size() {
			return nil, syscall.EINVAL
		}
		return hkdf.Key(f, secret, salt, info, size)
	}
	rounds, size := a.number(), a.number()
	if a.bad || rounds < 1 || size < 0 || size > 1<<20 || rounds > maxRounds || rounds*(size/f().Size()+1) > maxRounds {
		return nil, syscall.EINVAL
	}
	return pbkdf2.Key(f, string(secret), salt, rounds, size)
}

// crypt enciphers or deciphers with AES: name, "e" or "d", "pad" or "", key, initialisation vector, further data, data.
func crypt(a *arguments) ([]byte, error) {
	name, encrypt, pad := a.text(), a.text() == "e", a.text() == "pad"
	key, iv, more, data := a.bytes(), a.bytes(), a.bytes(), a.bytes()
	if a.bad || len(name) < 3 {
		return nil, syscall.EINVAL
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, syscall.EINVAL
	}
	switch name[len(name)-3:] {
	case "gcm":
		if len(iv) == 0 {
			return nil, syscall.EINVAL
		}
		g, err := cipher.NewGCMWithNonceSize(block, len(iv))
		if err != nil {
			return nil, syscall.EINVAL
		}
		if encrypt {
			return g.Seal(nil, iv, data, more), nil
		}
		out, err := g.Open(nil, iv, data, more)
		if err != nil {
			return nil, syscall.EINVAL
		}
		return out, nil
	case "ctr":
		if len(iv) != aes.BlockSize {
			return nil, syscall.EINVAL
		}
		out := make([]byte, len(data))
		cipher.NewCTR(block, iv).XORKeyStream(out, data)
		return out, nil
	case "cbc", "ecb":
		return blocks(block, name[len(name)-3:], encrypt, pad, iv, data)
	}
	return nil, syscall.EINVAL
}

func blocks(block cipher.Block, mode string, encrypt, pad bool, iv, data []byte) ([]byte, error) {
	const size = aes.BlockSize
	if mode == "ecb" {
		iv = make([]byte, size)
	}
	out := bytes.Clone(data)
	if encrypt && pad {
		n := size - len(out)%size
		out = append(out, bytes.Repeat([]byte{byte(n)}, n)...)
	}
	if len(out)%size != 0 || len(iv) != size || !encrypt && pad && len(out) == 0 {
		return nil, syscall.EINVAL
	}
	switch {
	case mode == "ecb":
		for at := 0; at < len(out); at += size {
			if encrypt {
				block.Encrypt(out[at:], out[at:])
			} else {
				block.Decrypt(out[at:], out[at:])
			}
		}
	case encrypt:
		cipher.NewCBCEncrypter(block, iv).CryptBlocks(out, out)
	default:
		cipher.NewCBCDecrypter(block, iv).CryptBlocks(out, out)
	}
	if !encrypt && pad {
		n := int(out[len(out)-1])
		if n < 1 || n > size || !bytes.Equal(out[len(out)-n:], bytes.Repeat([]byte{byte(n)}, n)) {
			return nil, syscall.EINVAL
		}
		out = out[:len(out)-n]
	}
	return out, nil
}

// convert compresses or expands. The answer is 0 and the bytes, or 1 and a word for what is wrong; ENOBUFS if it would be more than limit.
func convert(kind string, level, limit int, data []byte) ([]byte, error) {
	if limit < 0 || limit > maxAnswer {
		limit = maxAnswer
	}
	if level < -1 || level > 9 {
		level = -1
	}
	out := &bounded{limit: limit}
	out.b.WriteByte(0)
	var w io.WriteCloser
	var r io.Reader
	var err error
	switch kind {
	case "gzip":
		w, err = gzip.NewWriterLevel(out, level)
	case "deflate":
		w, err = zlib.NewWriterLevel(out, level)
	case "deflateRaw":
		w, err = flate.NewWriter(out, level)
	case "gunzip":
		if r, err = gzip.NewReader(bytes.NewReader(data)); len(data) > 1 && !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
			err = gzip.ErrHeader
		}
	case "inflate":
		r, err = zlib.NewReader(bytes.NewReader(data))
	case "inflateRaw":
		r = flate.NewReader(bytes.NewReader(data))
	case "unzip":
		if r, err = gzip.NewReader(bytes.NewReader(data)); err == gzip.ErrHeader {
			r, err = zlib.NewReader(bytes.NewReader(data))
		}
	default:
		return nil, syscall.EINVAL
	}
	if err == nil && w != nil {
		_, err = w.Write(data)
		err = errors.Join(err, w.Close())
	} else if err == nil {
		_, err = io.Copy(out, r)
	}
	switch {
	case out.full:
		return nil, syscall.ENOBUFS
	case err == nil:
		return out.b.Bytes(), nil
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return []byte("\x01end"), nil
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, zlib.ErrHeader):
		return []byte("\x01header"), nil
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, zlib.ErrChecksum):
		return []byte("\x01sum"), nil
	}
	return []byte("\x01data"), nil
}

// bounded is a buffer that refuses to grow beyond its limit.
type bounded struct {
	b     bytes.Buffer
	limit int
	full  bool
}

func (o *bounded) Write(b []byte) (int, error) {
	if o.b.Len()+len(b) > o.limit+1 {
		o.full = true
		return 0, syscall.ENOBUFS
	}
	return o.b.Write(b)
}
