package coreutils

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	keyShredSource = tool.KeyOwn + iota
	keyRemoveHow
)

var shredSpec = tool.Spec{
	Usage: []string{"[OPTION]... FILE..."},
	About: "Overwrite the specified FILE(s) repeatedly, in order to make it harder\nfor even very expensive hardware probing to recover the data.\n\nIf FILE is -, shred standard output.\n\nWhat snapshots and forks of a bucket hold is not overwritten.",
	Options: []getopt.Option{
		{Short: 'f', Long: "force", Help: "change permissions to allow writing if necessary"},
		{Short: 'n', Long: "iterations", Arg: getopt.Required, Name: "N", Help: "overwrite N times instead of the default (3)"},
		{Long: "random-source", Key: keyShredSource, Arg: getopt.Required, Name: "FILE", Help: "get random bytes from FILE"},
		{Short: 's', Long: "size", Arg: getopt.Required, Name: "N", Help: "shred this many bytes (suffixes like K, M, G accepted)"},
		{Short: 'u', Help: "deallocate and remove file after overwriting"},
		{Long: "remove", Key: keyRemoveHow, Arg: getopt.Optional, Name: "HOW", Help: "like -u but give control on HOW to delete: unlink, wipe or wipesync"},
		{Short: 'v', Long: "verbose", Help: "show progress"},
		{Short: 'x', Long: "exact", Help: "do not round file sizes up to the next full block; this is the default for non-regular files"},
		{Short: 'z', Long: "zero", Help: "add a final overwrite with zeros to hide shredding"},
	},
	Package: tool.Coreutils,
}

// shredBlock is what sizes are rounded up to.
const shredBlock = 4096

// shredPatterns fill the passes beyond the third, which are random.
var shredPatterns = []uint32{0x000000, 0xffffff, 0x555555, 0xaaaaaa, 0x249249, 0x492492, 0x6db6db, 0x924924, 0xb6db6d, 0xdb6db6, 0x111111, 0x222222, 0x333333,
	0x444444, 0x666666, 0x777777, 0x888888, 0x999999, 0xbbbbbb, 0xcccccc, 0xdddddd, 0xeeeeee}

// randomPass stands for a pass of random bytes.
const randomPass = ^uint32(0)

type shredder struct {
	t                           *tool.T
	force, verbose, exact, zero bool
	remove                      string
	passes                      int
	size                        int64 // -1: the file's
	source                      io.Reader
}

// Shred overwrites files, and perhaps removes them.
func Shred(t *tool.T) int {
	opts, files := t.Parse(&shredSpec)
	s := &shredder{t: t, passes: 3, size: -1, source: t.Rand()}
	for _, o := range opts {
		switch o.Key {
		case 'f':
			s.force = true
		case 'n':
			n, err := strconv.ParseUint(o.Arg, 10, 31)
			if err != nil {
				t.Fatal(1, "invalid number of passes: %s", tool.Quote(o.Arg))
			}
			s.passes = int(n)
		case 's':
			n, err := tool.ParseSize(o.Arg, "cbBkKMGTPEZY0")
			if err != nil || n > 1<<62 {
				t.Fatal(1, "invalid file size: %s", tool.Quote(o.Arg))
			}
			s.size = int64(n)
		case 'u':
			s.remove = "wipesync"
		case keyRemoveHow:
			words := []string{"unlink", "wipe", "wipesync"}
			s.remove = "wipesync"
			if o.Has {
				s.remove = words[t.Choice(1, "--remove", o.Arg, [][]string{words[:1], words[1:2], words[2:]})]
			}
		case 'v':
			s.verbose = true
		case 'x':
			s.exact = true
		case 'z':
			s.zero = true
		case keyShredSource:
			in, err := t.OpenFile(o.Arg)
			if err != nil {
				t.Fatal(1, "%s: %s", tool.QuoteF(o.Arg), tool.Strerror(err))
			}
			defer in.Close()
			s.source = in
		}
	}
	if len(files) == 0 {
		t.Warn("missing file operand")
		t.Try(1)
	}
	ok := true
	for _, name := range files {
		ok = s.shred(name) && ok
	}
	return status(!ok)
}

// shred does one file.
func (s *shredder) shred(name string) bool {
	t := s.t
	shown := tool.QuoteF(name)
	f, err := vfs.File(nil), error(nil)
	if name == "-" {
		if f, err = t.File(1); err == nil && f.Flags()&syscall.O_APPEND != 0 {
			t.Warn("%s: cannot shred append-only file descriptor", shown)
			return false
		}
	} else if f, err = t.Process.Open(name, syscall.O_WRONLY, 0); err == syscall.EACCES && s.force {
		mode := vfs.Mode(0o200)
		if a, serr := t.Stat(name); serr == nil {
			mode |= a.Mode & 0o7777
		}
		if err = t.SetAttr(name, vfs.SetAttr{Mode: &mode}, true); err == nil {
			f, err = t.Process.Open(name, syscall.O_WRONLY, 0)
		}
	}
	if err != nil {
		t.Warn("%s: failed to open for writing: %s", shown, tool.Strerror(err))
		return false
	}
	if name != "-" {
		defer f.Close()
	}
	a, err := f.Attr()
	if err != nil {
		t.Warn("%s: fstat failed: %s", shown, tool.Strerror(err))
		return false
	}
	if !a.Mode.IsRegular() && (s.size < 0 || a.Mode&vfs.ModeType != vfs.ModeChar) {
		t.Warn("%s: invalid file type", shown)
		return false
	}
	n := s.size
	if n < 0 {
		if n = a.Size; !s.exact {
			n += (shredBlock - n%shredBlock) % shredBlock
		}
	}
	if !s.overwrite(f, shown, n) {
		return false
	}
	if s.remove == "" || name == "-" {
		return true
	}
	zero := int64(0)
	if err := f.SetAttr(vfs.SetAttr{Size: &zero}); err != nil {
		t.Warn("%s: error truncating: %s", shown, tool.Strerror(err))
		return false
	}
	return s.wipe(name)
}

// overwrite writes all passes.
func (s *shredder) overwrite(f vfs.File, shown string, n int64) bool {
	total := s.passes
	if s.zero {
		total++
	}
	if n == 0 {
		return true
	}
	for pass := range total {
		pattern := randomPass
		switch last := pass == s.passes-1; {
		case pass == s.passes:
			pattern = 0
		case s.passes > 3 && pass != 0 && !last && pass != s.passes/2:
			k := pass - 1
			if pass > s.passes/2 {
				k--
			}
			pattern = shredPatterns[k%len(shredPatterns)]
		}
		if s.verbose {
			what := "random"
			if pattern != randomPass {
				what = fmt.Sprintf("%06x", pattern)
			}
			s.t.Warn("%s: pass %d/%d (%s)...", shown, pass+1, total, what)
		}
		if err := s.pass(f, n, pattern); err != nil {
			s.t.Warn("%s: error writing at offset 0: %s", shown, tool.Strerror(err))
			return false
		}
	}
	return true
}

// pass writes n bytes of a pattern from the start on.
func (s *shredder) pass(f vfs.File, n int64, pattern uint32) error {
	b := make([]byte, min(n, 48<<10)) // a multiple of three, the pattern's length
	if pattern != randomPass {
		copy(b, bytes.Repeat([]byte{byte(pattern >> 16), byte(pattern >> 8), byte(pattern)}, len(b)/3+1))
	}
	for at := int64(0); at < n; {
		s.t.Check()
		part := b[:min(int64(len(b)), n-at)]
		if pattern == randomPass {
			if _, err := io.ReadFull(s.source, part); err != nil {
				return syscall.EIO
			}
		}
		w, err := f.WriteAt(part, at)
		if err == syscall.ESPIPE {
			w, err = f.Write(part)
		}
		if err != nil {
			return err
		}
		at += int64(w)
	}
	return nil
}

// wipe removes a file, after it has been renamed to ever shorter names.
func (s *shredder) wipe(name string) bool {
	t := s.t
	shown, at := tool.QuoteF(name), name
	if s.verbose {
		t.Warn("%s: removing", shown)
	}
	if s.remove != "unlink" {
		slash := strings.LastIndexByte(name, '/') + 1
		for n := len(name) - slash; n > 0; n-- {
			to := name[:slash] + strings.Repeat("0", n)
			if t.Rename(at, to, vfs.RenameNoReplace) != nil {
				continue
			}
			if s.verbose {
				t.Warn("%s: renamed to %s", tool.QuoteF(at), to)
			}
			at = to
		}
	}
	if err := t.Unlink(at); err != nil {
		t.Warn("%s: failed to remove: %s", shown, tool.Strerror(err))
		return false
	}
	if s.verbose {
		t.Warn("%s: removed", shown)
	}
	return true
}
