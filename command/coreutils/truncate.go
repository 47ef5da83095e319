package coreutils

import (
	"errors"
	"math"
	"strings"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

var truncateSpec = tool.Spec{
	Usage: []string{"OPTION... FILE..."},
	About: "Shrink or extend the size of each FILE to the specified size.\n\nA FILE argument that does not exist is created.",
	Options: []getopt.Option{
		{Short: 'c', Long: "no-create", Help: "do not create any files"},
		{Short: 'o', Long: "io-blocks", Help: "treat SIZE as number of IO blocks instead of bytes"},
		{Short: 'r', Long: "reference", Arg: getopt.Required, Name: "RFILE", Help: "base size on RFILE"},
		{Short: 's', Long: "size", Arg: getopt.Required, Name: "SIZE", Help: "set or adjust the file size by SIZE bytes: + extend, - reduce, < at most, > at least, / round down, % round up"},
	},
	Package: tool.Coreutils,
}

// truncater sets sizes.
type truncater struct {
	t        *tool.T
	noCreate bool
	blocks   bool
	mode     byte // 0, + - < > / %
	size     int64
	ref      int64 // -1: none
}

// Truncate sets the size of files.
func Truncate(t *tool.T) int {
	opts, files := t.Parse(&truncateSpec)
	x := truncater{t: t, ref: -1}
	hasSize, ref := false, ""
	for _, o := range opts {
		switch o.Key {
		case 'c':
			x.noCreate = true
		case 'o':
			x.blocks = true
		case 'r':
			ref = o.Arg
		case 's':
			x.parse(o.Arg)
			hasSize = true
		}
	}
	switch {
	case !hasSize && ref == "":
		t.UsageError(1, "you must specify either %s or %s", tool.Quote("--size"), tool.Quote("--reference"))
	case ref != "" && hasSize && x.mode == 0:
		t.UsageError(1, "you must specify a relative %s with %s", tool.Quote("--size"), tool.Quote("--reference"))
	case x.blocks && !hasSize:
		t.UsageError(1, "%s was specified but %s was not", tool.Quote("--io-blocks"), tool.Quote("--size"))
	case len(files) == 0:
		t.UsageError(1, "missing file operand")
	}
	if ref != "" {
		a, err := t.Stat(ref)
		if err != nil {
			t.Fatal(1, "cannot stat %s: %s", tool.QuoteAF(ref), tool.Strerror(err))
		}
		if x.ref = a.Size; !hasSize {
			x.mode, x.size = '+', 0
		}
	}
	failed := false
	for _, f := range files {
		failed = !x.file(f) || failed
	}
	return status(failed)
}

// parse reads SIZE with its sign.
func (x *truncater) parse(arg string) {
	s := strings.TrimLeft(arg, " \t\n\v\f\r")
	x.mode = 0
	if s != "" && strings.IndexByte("<>/%", s[0]) >= 0 {
		x.mode = s[0]
		s = strings.TrimLeft(s[1:], " \t\n\v\f\r")
	}
	if s != "" && (s[0] == '+' || s[0] == '-') {
		if x.mode != 0 {
			x.t.UsageError(1, "multiple relative modifiers specified")
		}
		x.mode = s[0]
		s = s[1:]
	}
	n, err := tool.ParseSize(s, "EgGkKmMPtTYZ0")
	if err == nil && n > math.MaxInt64 {
		err = tool.ErrRange
	}
	if s != "" && (s[0] == '+' || s[0] == ' ') {
		err = tool.ErrNotNumber
	}
	if errors.Is(err, tool.ErrRange) {
		x.t.Fatal(1, "Invalid number: %s: %s", tool.Quote(arg), tool.Strerror(err))
	} else if err != nil {
		x.t.Fatal(1, "Invalid number: %s", tool.Quote(arg))
	}
	if (x.mode == '/' || x.mode == '%') && n == 0 {
		x.t.Fatal(1, "division by zero")
	}
	x.size = int64(n)
}

func (x *truncater) file(name string) bool {
	flags := syscall.O_WRONLY | syscall.O_CREAT | syscall.O_NONBLOCK
	if x.noCreate {
		flags &^= syscall.O_CREAT
	}
	f, err := x.t.Process.Open(name, flags, 0o666)
	if err != nil {
		if x.noCreate && errors.Is(err, syscall.ENOENT) {
			return true
		}
		x.t.Warn("cannot open %s for writing: %s", tool.QuoteAF(name), tool.Strerror(err))
		return false
	}
	defer f.Close()
	a, err := f.Attr()
	if err != nil {
		x.t.Warn("cannot fstat %s: %s", tool.QuoteAF(name), tool.Strerror(err))
		return false
	}
	size, ok := x.target(a)
	if !ok {
		x.t.Warn("overflow extending size of file %s", tool.QuoteAF(name))
		return false
	}
	if err := f.SetAttr(vfs.SetAttr{Size: &size}); err != nil {
		x.t.Warn("failed to truncate %s at %d bytes: %s", tool.QuoteAF(name), size, tool.Strerror(err))
		return false
	}
	return true
}

// target computes the new size.
func (x *truncater) target(a vfs.Attr) (int64, bool) {
	n := x.size
	if x.blocks {
		if n > math.MaxInt64/4096 {
			return 0, false
		}
		n *= 4096
	}
	base := a.Size
	if x.ref >= 0 {
		base = x.ref
	}
	switch x.mode {
	case '+':
		if base > math.MaxInt64-n {
			return 0, false
		}
		return base + n, true
	case '-':
		return max(0, base-n), true
	case '<':
		return min(base, n), true
	case '>':
		return max(base, n), true
	case '/':
		return base / n * n, true
	case '%':
		r := base % n
		if r == 0 {
			return base, true
		}
		if base > math.MaxInt64-(n-r) {
			return 0, false
		}
		return base + n - r, true
	}
	return n, true
}
