package coreutils

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const keyFiles0 = tool.KeyOwn

var wcSpec = tool.Spec{
	Usage: []string{"[OPTION]... [FILE]...", "[OPTION]... --files0-from=F"},
	About: "Print newline, word, and byte counts for each FILE, and a total line if\nmore than one FILE is specified.  A word is a non-zero-length sequence of\nprintable characters delimited by white space.\n\nWith no FILE, or when FILE is -, read standard input.",
	Options: []getopt.Option{
		{Short: 'c', Long: "bytes", Help: "print the byte counts"},
		{Short: 'm', Long: "chars", Help: "print the character counts"},
		{Short: 'l', Long: "lines", Help: "print the newline counts"},
		{Long: "files0-from", Key: keyFiles0, Arg: getopt.Required, Name: "F", Help: "read input from the files specified by NUL-terminated names in file F"},
		{Short: 'L', Long: "max-line-length", Help: "print the maximum display width"},
		{Short: 'w', Long: "words", Help: "print the word counts"},
	},
	Package: tool.Coreutils,
}

type counts struct{ lines, words, chars, bytes, width uint64 }

type wordCounter struct {
	t                                *tool.T
	lines, words, chars, bytes, wide bool
	column                           int
}

// Wc counts lines, words, characters and bytes.
func Wc(t *tool.T) int {
	w := wordCounter{t: t}
	opts, files := t.Parse(&wcSpec)
	list := ""
	for _, o := range opts {
		switch o.Key {
		case 'c':
			w.bytes = true
		case 'm':
			w.chars = true
		case 'l':
			w.lines = true
		case 'L':
			w.wide = true
		case 'w':
			w.words = true
		case keyFiles0:
			list = o.Arg
		}
	}
	if !(w.lines || w.words || w.chars || w.bytes || w.wide) {
		w.lines, w.words, w.bytes = true, true, true
	}
	if list != "" {
		if len(files) > 0 {
			t.Warn("extra operand %s", tool.QuoteAF(files[0]))
			t.Stderr().Write([]byte("file operands cannot be combined with --files0-from\n"))
			t.Try(1)
		}
		files = files0(t, list)
	} else if len(files) == 0 {
		files = []string{""} // standard input, without a name
	}
	w.column = w.width(files)
	var total counts
	failed := false
	for _, name := range files {
		c, err := w.file(name)
		if err != nil {
			t.WarnFile(name, err)
			failed = true
			if c == nil {
				continue
			}
		}
		w.print(*c, name)
		total.lines += c.lines
		total.words += c.words
		total.chars += c.chars
		total.bytes += c.bytes
		total.width = max(total.width, c.width)
	}
	if len(files) > 1 {
		w.print(total, "total")
	}
	return status(failed)
}

// files0 reads NUL-terminated names.
func files0(t *tool.T, list string) []string {
	in, err := t.Open(list)
	if err != nil {
		t.Fatal(1, "cannot open %s for reading: %s", tool.QuoteAF(list), tool.Strerror(err))
	}
	defer in.Close()
	l := tool.NewLines(in, 0)
	files := []string{}
	for {
		name, ok := l.Next()
		if !ok {
			return files
		}
		files = append(files, string(name))
	}
}

// width is that of the columns: as many digits as all sizes together have, seven if some size can't be known.
func (w *wordCounter) width(files []string) int {
	n := 0
	for _, on := range []bool{w.lines, w.words, w.chars, w.bytes, w.wide} {
		if on {
			n++
		}
	}
	if len(files) == 1 && n == 1 {
		return 1
	}
	width, least := 1, 1
	var total int64
	for _, name := range files {
		var err error
		in := &tool.Input{}
		if name == "" || name == "-" {
			in, err = w.t.Open("-")
		}
		a, aerr := in.Attr()
		if name != "" && name != "-" {
			a, aerr = w.t.Stat(name)
		}
		if err != nil || aerr != nil {
			continue
		}
		if a.Mode.IsRegular() {
			total += a.Size
		} else {
			least = 7
		}
	}
	if total > 0 {
		width = len(strconv.FormatInt(total, 10))
	}
	return max(width, least)
}

func (w *wordCounter) print(c counts, name string) {
	sep := ""
	for _, f := range []struct {
		on bool
		n  uint64
	}{{w.lines, c.lines}, {w.words, c.words}, {w.chars, c.chars}, {w.bytes, c.bytes}, {w.wide, c.width}} {
		if f.on {
			fmt.Fprintf(w.t.Out, "%s%*d", sep, w.column, f.n)
			sep = " "
		}
	}
	if name != "" {
		w.t.Out.WriteString(" " + strings.ReplaceAll(name, "\n", "'$'\\n''"))
	}
	w.t.Out.WriteByte('\n')
}

func (w *wordCounter) file(name string) (*counts, error) {
	if name == "" {
		name = "-"
	}
	in, err := w.t.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	c := &counts{}
	if !w.words && !w.chars && !w.wide {
		return c, w.fast(in, c)
	}
	return c, w.slow(in, c)
}

// fast counts bytes and newlines only; bytes alone of a file that can seek aren't read.
func (w *wordCounter) fast(in *tool.Input, c *counts) error {
	if a, err := in.Attr(); !w.lines && err == nil && a.Mode.IsRegular() && a.Size > 0 && in.File != nil {
		if at, err := in.File.Seek(0, io.SeekCurrent); err == nil {
			c.bytes = uint64(max(0, a.Size-at))
			in.File.Seek(0, io.SeekEnd)
			return nil
		}
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		c.bytes += uint64(n)
		if w.lines {
			c.lines += uint64(bytes.Count(buf[:n], []byte{'\n'}))
		}
		if err != nil {
			return notEOF(err)
		}
	}
}

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// slow decodes characters.
func (w *wordCounter) slow(in *tool.Input, c *counts) error {
	buf := make([]byte, 64<<10)
	kept := 0
	var pos uint64
	inWord := false
	for {
		n, err := in.Read(buf[kept:])
		c.bytes += uint64(n)
		b := buf[:kept+n]
		for len(b) > 0 {
			if b[0] >= utf8.RuneSelf && !utf8.FullRune(b) && err == nil {
				break
			}
			r, size := utf8.DecodeRune(b)
			b = b[size:]
			if r == utf8.RuneError && size == 1 {
				continue
			}
			c.chars++
			switch {
			case r == '\n':
				c.lines++
				c.width = max(c.width, pos)
				pos = 0
			case r == '\r', r == '\f':
				c.width = max(c.width, pos)
				pos = 0
			case r == '\t':
				pos += 8 - pos%8
			case r == ' ':
				pos++
			case r == '\v':
			default:
				if r < 0x20 || r == 0x7f || r >= 0x80 && !unicode.IsPrint(r) && !unicode.IsSpace(r) {
					continue
				}
				pos += uint64(tool.RuneWidth(r))
				if !unicode.IsSpace(r) {
					inWord = true
					continue
				}
			}
			if inWord {
				c.words++
				inWord = false
			}
		}
		kept = copy(buf, b)
		if err != nil {
			if inWord {
				c.words++
			}
			c.width = max(c.width, pos)
			return notEOF(err)
		}
	}
}
