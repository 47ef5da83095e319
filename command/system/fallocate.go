package system

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// block is what lengths of ranges that are inserted or removed must be multiples of.
const block = 4096

// fallocation is a run of fallocate.
type fallocation struct {
	t              *tool.T
	name           string
	file           vfs.File
	size           int64
	offset, length int64
	keep, verbose  bool
	mode           rune // c, d, i, p, z, x, or 0 to allocate
}

// Fallocate makes room in files. A filesystem of a sandbox keeps no room that is not written, so what is allocated reads as
// zeros, and a hole takes no more and no less than zeros do.
func Fallocate(t *tool.T) int {
	spec := tool.Spec{Usage: []string{"[options] <filename>"}, About: "\nPreallocate space to, or deallocate space from a file.", Package: utilLinux, Options: []getopt.Option{
		{Short: 'c', Long: "collapse-range", Help: "remove a range from the file"}, {Short: 'd', Long: "dig-holes", Help: "detect zeroes and replace with holes"}, {Short: 'i', Long: "insert-range", Help: "insert a hole at range, shifting existing data"},
		{Short: 'l', Long: "length", Arg: getopt.Required, Name: "num", Help: "length for range operations, in bytes"}, {Short: 'n', Long: "keep-size", Help: "maintain the apparent size of the file"}, {Short: 'o', Long: "offset", Arg: getopt.Required, Name: "num", Help: "offset for range operations, in bytes"},
		{Short: 'p', Long: "punch-hole", Help: "replace a range with a hole (implies -n)"}, {Short: 'z', Long: "zero-range", Help: "zero and ensure allocation of a range"}, {Short: 'x', Long: "posix", Help: "use posix_fallocate(3) instead of fallocate(2)"}, {Short: 'v', Long: "verbose", Help: "verbose mode"}},
		Notes: "<num> arguments may be followed by the suffixes for KiB, MiB, GiB, TiB, PiB, EiB (the \"iB\" is optional)."}
	opts, args := t.Parse(&spec)
	f := &fallocation{t: t, length: -2}
	for _, o := range opts {
		switch o.Key {
		case 'l':
			f.length = size(o.Arg)
		case 'o':
			if f.offset = size(o.Arg); f.offset < 0 {
				t.Fatal(1, "invalid offset value specified")
			}
		case 'n':
			f.keep = true
		case 'v':
			f.verbose = true
		default:
			if f.mode != 0 && f.mode != o.Key && f.mode != 'x' && o.Key != 'x' {
				t.Fatal(1, "mutually exclusive arguments: --collapse-range --dig-holes --punch-hole --zero-range")
			}
			if o.Key != 'x' || f.mode == 0 {
				f.mode = o.Key
			}
		}
	}
	switch {
	case len(args) == 0:
		t.Fatal(1, "no filename specified")
	case len(args) > 1:
		t.Warn("unexpected number of arguments")
		return 1
	case f.length == -2 && f.mode != 'd':
		t.Fatal(1, "no length argument specified")
	case f.length < 1 && f.length != -2:
		t.Fatal(1, "invalid length value specified")
	}
	f.name = args[0]
	return f.run()
}

// size reads a number with a unit; -1 is none.
func size(s string) int64 {
	digits := strings.TrimLeft(s, "0123456789.")
	unit, factor := digits, 1.0
	if unit != "" {
		i := strings.IndexByte("KMGTPEZY", unit[0]&^0x20)
		base := 1024.0
		switch {
		case i < 0 || len(unit) > 3:
			return -1
		case unit[1:] == "B":
			base = 1000
		case unit[1:] != "" && unit[1:] != "iB":
			return -1
		}
		factor = math.Pow(base, float64(i+1))
	}
	number := s[:len(s)-len(digits)]
	if n, err := strconv.ParseInt(number, 10, 64); err == nil && factor == 1 {
		return n
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n*factor >= math.MaxInt64 {
		return -1
	}
	return int64(n * factor)
}

func (f *fallocation) run() int {
	t := f.t
	flags := syscall.O_RDWR
	if !f.keep && (f.mode == 0 || f.mode == 'x' || f.mode == 'z') {
		flags |= syscall.O_CREAT
	}
	file, err := t.Process.Open(f.name, flags, 0o666)
	if err != nil {
		t.Fatal(1, "cannot open %s: %s", f.name, tool.Strerror(err))
	}
	defer file.Close()
	f.file = file
	attr, err := file.Attr()
	if err != nil {
		t.Fatal(1, "%s: %s", f.name, tool.Strerror(err))
	}
	if !attr.Mode.IsRegular() {
		t.Fatal(1, "fallocate failed: %s", tool.Strerror(syscall.ENODEV))
	}
	f.size = attr.Size
	done := "allocated"
	switch f.mode {
	case 'd':
		done, f.length = "converted to sparse holes", 0
	case 'p':
		done, f.keep, err = "hole created", true, f.zero()
	case 'z':
		done, err = "zeroed", f.zero()
	case 'c':
		done, err = "removed", f.shift()
	case 'i':
		done, err = "inserted", f.shift()
	default:
		if end := f.offset + f.length; !f.keep || f.mode == 'x' {
			err = f.grow(end)
		}
	}
	if err != nil {
		t.Fatal(1, "fallocate failed: %s", tool.Strerror(err))
	}
	if f.verbose {
		fmt.Fprintf(t.Out, "%s: %s (%d bytes) %s.\n", f.name, inWords(f.length), f.length, done)
	}
	return 0
}

// inWords is a size as "1.5 KiB".
func inWords(n int64) string {
	units, v := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}, float64(n)
	i := 0
	for ; v >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	return strconv.FormatFloat(math.Floor(v*10+0.5)/10, 'f', -1, 64) + " " + units[i]
}

// grow makes the file as long as end, at least.
func (f *fallocation) grow(end int64) error {
	if end < 0 {
		return syscall.EFBIG
	}
	if end <= f.size {
		return nil
	}
	return f.file.SetAttr(vfs.SetAttr{Size: &end})
}

// zero overwrites the range by zeros, up to the end of the file.
func (f *fallocation) zero() error {
	end := f.offset + f.length
	if end < 0 {
		return syscall.EFBIG
	}
	zeros := make([]byte, 64<<10)
	for at := f.offset; at < min(end, f.size); {
		f.t.Check()
		n, err := f.file.WriteAt(zeros[:min(int64(len(zeros)), min(end, f.size)-at)], at)
		if err != nil {
			return err
		}
		at += int64(n)
	}
	if f.keep {
		return nil
	}
	return f.grow(end)
}

// shift removes the range, or inserts one of zeros, and moves what follows.
func (f *fallocation) shift() error {
	switch {
	case f.offset%block != 0 || f.length%block != 0 || f.keep:
		return syscall.EINVAL
	case f.mode == 'c' && f.length >= f.size-f.offset || f.mode == 'i' && f.offset >= f.size:
		return syscall.EINVAL
	case f.mode == 'i' && f.size+f.length < 0:
		return syscall.EFBIG
	}
	if f.mode == 'c' {
		for at := f.offset + f.length; at < f.size; at += block {
			if err := f.move(at, at-f.length); err != nil {
				return err
			}
		}
		rest := f.size - f.length
		return f.file.SetAttr(vfs.SetAttr{Size: &rest})
	}
	if err := f.grow(f.size + f.length); err != nil {
		return err
	}
	for at := (f.size - 1) / block * block; at >= f.offset; at -= block {
		if err := f.move(at, at+f.length); err != nil {
			return err
		}
	}
	f.size += f.length
	return f.zero()
}

// move copies one block, or what there is of it.
func (f *fallocation) move(from, to int64) error {
	f.t.Check()
	var b [block]byte
	n, err := f.file.ReadAt(b[:min(block, f.size-from)], from)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, err = f.file.WriteAt(b[:n], to)
	return err
}
