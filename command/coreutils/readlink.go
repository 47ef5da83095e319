package coreutils

import (
	"errors"
	"path"
	"strings"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var readlinkSpec = tool.Spec{
	Usage: []string{"[OPTION]... FILE..."},
	About: "Print value of a symbolic link or canonical file name",
	Options: []getopt.Option{
		{Short: 'f', Long: "canonicalize", Help: "canonicalize by following every symlink in every component of the given name recursively; all but the last component must exist"},
		{Short: 'e', Long: "canonicalize-existing", Help: "likewise, all components must exist"},
		{Short: 'm', Long: "canonicalize-missing", Help: "likewise, without requirements on components existence"},
		{Short: 'n', Long: "no-newline", Help: "do not output the trailing delimiter"},
		{Short: 'q', Long: "quiet", Help: "suppress most error messages (on by default)"},
		{Short: 's', Long: "silent", Key: 'q'},
		{Short: 'v', Long: "verbose", Help: "report error messages"},
		{Short: 'z', Long: "zero", Help: "end each output line with NUL, not newline"},
	},
	Package: tool.Coreutils,
}

// Readlink prints where links point.
func Readlink(t *tool.T) int {
	opts, files := t.Parse(&readlinkSpec)
	mode, noNewline, verbose, end := byte(0), false, t.Getenv("POSIXLY_CORRECT") != "", "\n"
	for _, o := range opts {
		switch o.Key {
		case 'f', 'e', 'm':
			mode = byte(o.Key)
		case 'n':
			noNewline = true
		case 'q':
			verbose = false
		case 'v':
			verbose = true
		case 'z':
			end = "\x00"
		}
	}
	if len(files) == 0 {
		t.Missing(1)
	}
	if noNewline && len(files) > 1 {
		t.Warn("ignoring --no-newline with multiple arguments")
		noNewline = false
	}
	if noNewline {
		end = ""
	}
	failed := false
	for _, f := range files {
		var s string
		var err error
		if mode == 0 {
			s, err = t.Process.Readlink(f)
		} else {
			s, err = canonical(t, f, mode)
		}
		if err != nil {
			failed = true
			if verbose {
				t.WarnFile(f, err)
			}
			continue
		}
		t.Out.WriteString(s + end)
	}
	return status(failed)
}

// canonical resolves all links of a path: all components must exist (e), all but the last (f), or none (m).
func canonical(t *tool.T, name string, mode byte) (string, error) {
	if name == "" {
		return "", syscall.ENOENT
	}
	full := name
	if !strings.HasPrefix(full, "/") {
		full = joinPath(t.Getwd(), full)
	}
	needDir := strings.HasSuffix(name, "/")
	pending := strings.Split(full, "/")
	at := "/"
	links := 0
	for i := 0; i < len(pending); i++ {
		part := pending[i]
		switch part {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := joinPath(at, part)
		a, err := t.Lstat(next)
		last := strings.Trim(strings.Join(pending[i+1:], "/"), "/.") == ""
		switch {
		case err != nil && mode == 'm':
		case err != nil && mode == 'f' && last && errors.Is(err, syscall.ENOENT):
		case err != nil:
			return "", err
		case a.Mode.IsSymlink():
			if links++; links > 40 {
				return "", syscall.ELOOP
			}
			target, err := t.Readlink(next)
			if err != nil {
				return "", err
			}
			rest := append(strings.Split(target, "/"), pending[i+1:]...)
			if strings.HasPrefix(target, "/") {
				at = "/"
			}
			pending, i = rest, -1
			continue
		case !a.Mode.IsDir() && (!last || needDir) && mode != 'm':
			return "", syscall.ENOTDIR
		}
		at = next
	}
	return at, nil
}

var realpathSpec = tool.Spec{
	Usage: []string{"[OPTION]... FILE..."},
	About: "Print the resolved absolute file name;\nall but the last component must exist",
	Options: []getopt.Option{
		{Short: 'e', Long: "canonicalize-existing", Help: "all components of the path must exist"},
		{Short: 'm', Long: "canonicalize-missing", Help: "no path components need exist or be a directory"},
		{Short: 'L', Long: "logical", Help: "resolve '..' components before symlinks"},
		{Short: 'P', Long: "physical", Help: "resolve symlinks as encountered (default)"},
		{Short: 'q', Long: "quiet", Help: "suppress most error messages"},
		{Long: "relative-to", Key: tool.KeyOwn, Arg: getopt.Required, Name: "DIR", Help: "print the resolved path relative to DIR"},
		{Long: "relative-base", Key: tool.KeyOwn + 1, Arg: getopt.Required, Name: "DIR", Help: "print absolute paths unless paths below DIR"},
		{Short: 's', Long: "strip", Help: "don't expand symlinks"},
		{Long: "no-symlinks", Key: 's'},
		{Short: 'z', Long: "zero", Help: "end each output line with NUL, not newline"},
	},
	Package: tool.Coreutils,
}

// Realpath prints canonical names.
func Realpath(t *tool.T) int {
	opts, files := t.Parse(&realpathSpec)
	mode, logical, strip, quiet, end, to, base := byte('f'), false, false, false, "\n", "", ""
	for _, o := range opts {
		switch o.Key {
		case 'e', 'm':
			mode = byte(o.Key)
		case 'L':
			logical = true
		case 'P':
			logical, strip = false, false
		case 'q':
			quiet = true
		case 's':
			strip, logical = true, false
		case 'z':
			end = "\x00"
		case tool.KeyOwn:
			to = o.Arg
		case tool.KeyOwn + 1:
			base = o.Arg
		}
	}
	if len(files) == 0 {
		t.Missing(1)
	}
	resolve := func(name string) (string, error) {
		if name == "" {
			return "", syscall.ENOENT
		}
		if strip || logical {
			full := name
			if !strings.HasPrefix(full, "/") {
				full = joinPath(t.Getwd(), full)
			}
			full = path.Clean(full)
			if strip {
				if mode == 'e' {
					_, err := t.Lstat(full)
					return full, err
				}
				return full, nil
			}
			name = full
		}
		return canonical(t, name, mode)
	}
	dir := func(name string) string {
		if name == "" {
			return ""
		}
		d, err := resolve(name)
		if err != nil {
			t.Fatal(1, "%s: %s", tool.QuoteF(name), tool.Strerror(err))
		}
		if a, err := t.Stat(d); mode == 'e' && (err != nil || !a.Mode.IsDir()) {
			if err == nil {
				err = syscall.ENOTDIR
			}
			t.Fatal(1, "%s: %s", tool.QuoteF(name), tool.Strerror(err))
		}
		return d
	}
	to, base = dir(to), dir(base)
	if base != "" && to == "" {
		to = base
	}
	below := func(p string) bool {
		return base == "" || p == base || strings.HasPrefix(p, strings.TrimSuffix(base, "/")+"/")
	}
	failed := false
	for _, f := range files {
		p, err := resolve(f)
		if err != nil {
			failed = true
			if !quiet {
				t.WarnFile(f, err)
			}
			continue
		}
		if to != "" && below(p) && below(to) {
			p = relativePath(to, p)
		}
		t.Out.WriteString(p + end)
	}
	return status(failed)
}
