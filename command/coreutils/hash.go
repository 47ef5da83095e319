package coreutils

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"

	"golang.org/x/crypto/blake2b"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const (
	keyTag = tool.KeyOwn + iota
	keyIgnoreMissing
	keyQuiet
	keyStatus
	keyStrict
)

// digest is one of the checksum commands.
type digest struct {
	label string
	size  int // bytes
	make  func() hash.Hash
}

func b2(bits int) func() hash.Hash {
	return func() hash.Hash {
		h, err := blake2b.New(bits/8, nil)
		if err != nil {
			h, _ = blake2b.New512(nil)
		}
		return h
	}
}

// Md5sum and the others print and check digests.
func Md5sum(t *tool.T) int    { return digestMain(t, digest{"MD5", 16, md5.New}) }
func Sha1sum(t *tool.T) int   { return digestMain(t, digest{"SHA1", 20, sha1.New}) }
func Sha224sum(t *tool.T) int { return digestMain(t, digest{"SHA224", 28, sha256.New224}) }
func Sha256sum(t *tool.T) int { return digestMain(t, digest{"SHA256", 32, sha256.New}) }
func Sha384sum(t *tool.T) int { return digestMain(t, digest{"SHA384", 48, sha512.New384}) }
func Sha512sum(t *tool.T) int { return digestMain(t, digest{"SHA512", 64, sha512.New}) }
func B2sum(t *tool.T) int     { return digestMain(t, digest{"BLAKE2b", 64, b2(512)}) }

func digestSpec(d digest) tool.Spec {
	s := tool.Spec{
		Usage: []string{"[OPTION]... [FILE]..."},
		About: fmt.Sprintf("Print or check %s (%d-bit) checksums.\n\nWith no FILE, or when FILE is -, read standard input.", d.label, d.size*8),
		Options: []getopt.Option{
			{Short: 'b', Long: "binary", Help: "read in binary mode"},
			{Short: 'c', Long: "check", Help: "read checksums from the FILEs and check them"},
			{Long: "tag", Key: keyTag, Help: "create a BSD-style checksum"},
			{Short: 't', Long: "text", Help: "read in text mode (default)"},
			{Short: 'z', Long: "zero", Help: "end each output line with NUL, not newline, and disable file name escaping"},
			{Long: "ignore-missing", Key: keyIgnoreMissing, Help: "don't fail or report status for missing files"},
			{Long: "quiet", Key: keyQuiet, Help: "don't print OK for each successfully verified file"},
			{Long: "status", Key: keyStatus, Help: "don't output anything, status code shows success"},
			{Long: "strict", Key: keyStrict, Help: "exit non-zero for improperly formatted checksum lines"},
			{Short: 'w', Long: "warn", Help: "warn about improperly formatted checksum lines"},
		},
		Package: tool.Coreutils,
	}
	if d.label == "BLAKE2b" {
		s.Options = append(s.Options, getopt.Option{Short: 'l', Long: "length", Arg: getopt.Required, Name: "BITS", Help: "digest length in bits; must not exceed the max for the algorithm and must be a multiple of 8"})
	}
	return s
}

type digester struct {
	t                                              *tool.T
	d                                              digest
	binary, tag, zero                              bool
	ignoreMissing, quiet, silent, strict, warnings bool
	detect                                         map[string]digest // cksum -c: the lines say which
}

func digestMain(t *tool.T, d digest) int {
	spec := digestSpec(d)
	opts, files := t.Parse(&spec)
	g := digester{t: t, d: d}
	check := false
	explicit := false // a way of reading was asked for
	for _, o := range opts {
		switch o.Key {
		case 'b', 't':
			g.binary, explicit = o.Key == 'b', true
		case 'c':
			check = true
		case 'l':
			n := blakeLength(t, o.Arg)
			if n > 0 && n != 512 {
				g.d = digest{fmt.Sprintf("BLAKE2b-%d", n), n / 8, b2(n)}
			}
		default:
			g.option(o)
		}
	}
	switch {
	case g.tag && check:
		t.UsageError(1, "the --tag option is meaningless when verifying checksums")
	case g.tag && explicit && !g.binary:
		t.UsageError(1, "--tag does not support --text mode")
	case g.zero && check:
		t.UsageError(1, "the --zero option is not supported when verifying checksums")
	case check && explicit:
		t.UsageError(1, "the --binary and --text options are meaningless when verifying checksums")
	}
	if !check {
		for _, o := range opts {
			if name := map[rune]string{keyIgnoreMissing: "ignore-missing", keyStatus: "status", 'w': "warn", keyQuiet: "quiet", keyStrict: "strict"}[o.Key]; name != "" {
				t.UsageError(1, "the --%s option is meaningful only when verifying checksums", name)
			}
		}
		return g.run(files)
	}
	failed := false
	for _, f := range names(files) {
		failed = !g.check(f) || failed
	}
	return status(failed)
}

// blakeLength reads a digest's length in bits.
func blakeLength(t *tool.T, arg string) int {
	n, err := strconv.Atoi(arg)
	reason := ""
	switch {
	case err != nil || n < 0:
		t.Fatal(1, "invalid length: %s", tool.Quote(arg))
	case n%8 != 0:
		reason = "length is not a multiple of 8"
	case n > 512:
		reason = "maximum digest length for ‘BLAKE2b’ is 512 bits"
	}
	if reason != "" {
		t.Warn("invalid length: %s", tool.Quote(arg))
		t.Fatal(1, "%s", reason)
	}
	return n
}

// option takes an option that cksum and the digests share.
func (g *digester) option(o getopt.Opt) {
	switch o.Key {
	case keyTag:
		g.tag = true
	case 'z':
		g.zero = true
	case keyIgnoreMissing:
		g.ignoreMissing = true
	case keyQuiet:
		g.quiet = true
	case keyStatus:
		g.silent = true
	case keyStrict:
		g.strict = true
	case 'w':
		g.warnings = true
	}
}

// run prints the digests of files.
func (g *digester) run(files []string) int {
	failed := false
	for _, f := range names(files) {
		sum, err := g.sum(f)
		if err != nil {
			g.t.WarnFile(f, err)
			failed = true
			continue
		}
		g.print(f, sum)
	}
	return status(failed)
}

func (g *digester) sum(name string) (string, error) {
	in, err := g.t.Open(name)
	if err != nil {
		return "", err
	}
	defer in.Close()
	h := g.d.make()
	if _, err := io.CopyBuffer(h, struct{ io.Reader }{in}, make([]byte, 64<<10)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (g *digester) print(name, sum string) {
	w := g.t.Out
	end := "\n"
	if g.zero {
		end = "\x00"
	} else if strings.ContainsAny(name, "\\\n\r") {
		w.WriteByte('\\')
		name = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`).Replace(name)
	}
	switch {
	case g.tag:
		fmt.Fprintf(w, "%s (%s) = %s%s", g.d.label, name, sum, end)
	case g.binary:
		fmt.Fprintf(w, "%s *%s%s", sum, name, end)
	default:
		fmt.Fprintf(w, "%s  %s%s", sum, name, end)
	}
}

// choose takes the digest that a tagged line names, if lines may choose.
func (g *digester) choose(line string) {
	if g.detect == nil {
		return
	}
	g.d = digest{}
	label, _, _ := strings.Cut(strings.TrimPrefix(line, `\`), " ")
	for _, d := range g.detect {
		if d.label == label {
			g.d = d
		}
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(label, "BLAKE2b-")); err == nil && n > 0 && n%8 == 0 && n < 512 {
		g.d = digest{label, n / 8, b2(n)}
	}
}

// parseLine reads a line of a checksum file in either style.
func (g *digester) parseLine(line string) (sum, name string, ok bool) {
	escaped := strings.HasPrefix(line, `\`)
	line = strings.TrimSuffix(strings.TrimPrefix(line, `\`), "\r")
	if g.d.size == 0 {
		return "", "", false
	}
	if rest, tagged := strings.CutPrefix(line, g.d.label+" ("); tagged {
		i := strings.LastIndex(rest, ") = ")
		if i < 0 {
			return "", "", false
		}
		name, sum = rest[:i], rest[i+4:]
	} else {
		n := g.d.size * 2
		line = strings.TrimLeft(line, " \t")
		if len(line) < n+3 || line[n] != ' ' || line[n+1] != ' ' && line[n+1] != '*' {
			return "", "", false
		}
		sum, name = line[:n], line[n+2:]
	}
	if len(sum) != g.d.size*2 {
		return "", "", false
	}
	if _, err := hex.DecodeString(sum); err != nil {
		return "", "", false
	}
	if escaped {
		name = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r").Replace(name)
	}
	return strings.ToLower(sum), name, true
}

func (g *digester) check(list string) bool {
	t := g.t
	in, err := t.Open(list)
	if err != nil {
		t.WarnFile(list, err)
		return false
	}
	defer in.Close()
	if list == "-" {
		list = "standard input"
	}
	l := tool.NewLines(in, '\n')
	var bad, good, wrong, unreadable, matched, n int
	for {
		b, ok := l.Next()
		if !ok {
			break
		}
		n++
		line := string(b)
		if line == "" || line[0] == '#' {
			continue
		}
		g.choose(line)
		sum, name, ok := g.parseLine(line)
		if !ok || name == "-" && list == "standard input" {
			bad++
			if g.warnings {
				t.Warn("%s: %d: improperly formatted %s checksum line", tool.QuoteF(list), n, g.d.label)
			}
			continue
		}
		good++
		got, err := g.sum(name)
		switch {
		case err != nil && g.ignoreMissing && tool.IsNotExist(err):
			continue
		case err != nil:
			unreadable++
			t.WarnFile(name, err)
			if !g.silent {
				fmt.Fprintf(t.Out, "%s: FAILED open or read\n", tool.QuoteShell(name))
			}
		case got != sum:
			wrong++
			if !g.silent {
				fmt.Fprintf(t.Out, "%s: FAILED\n", tool.QuoteShell(name))
			}
		default:
			matched++
			if !g.silent && !g.quiet {
				fmt.Fprintf(t.Out, "%s: OK\n", tool.QuoteShell(name))
			}
		}
	}
	return g.summary(list, bad, good, wrong, unreadable, matched)
}

func (g *digester) summary(list string, bad, good, wrong, unreadable, matched int) bool {
	t := g.t
	if l := good; l == 0 {
		t.Warn("%s: no properly formatted checksum lines found", tool.QuoteF(list))
		return false
	}
	say := func(n int, one, many string) {
		if n == 1 {
			t.Warn("WARNING: 1 %s", one)
		} else if n > 1 {
			t.Warn("WARNING: %d %s", n, many)
		}
	}
	if !g.silent {
		say(bad, "line is improperly formatted", "lines are improperly formatted")
		say(unreadable, "listed file could not be read", "listed files could not be read")
		say(wrong, "computed checksum did NOT match", "computed checksums did NOT match")
		if g.ignoreMissing && matched == 0 {
			t.Warn("%s: no file was verified", tool.QuoteF(list))
		}
	}
	return wrong == 0 && unreadable == 0 && !(g.strict && bad > 0) && !(g.ignoreMissing && matched == 0)
}
