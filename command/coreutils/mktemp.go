package coreutils

import (
	"errors"
	"io"
	"path"
	"strings"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var mktempSpec = tool.Spec{
	Usage: []string{"[OPTION]... [TEMPLATE]"},
	About: "Create a temporary file or directory, safely, and print its name.\nTEMPLATE must contain at least 3 consecutive 'X's in last component.",
	Options: []getopt.Option{
		{Short: 'd', Long: "directory", Help: "create a directory, not a file"},
		{Short: 'u', Long: "dry-run", Help: "do not create anything; merely print a name (unsafe)"},
		{Short: 'q', Long: "quiet", Help: "suppress diagnostics about file/dir-creation failure"},
		{Long: "suffix", Key: tool.KeyOwn, Arg: getopt.Required, Name: "SUFF", Help: "append SUFF to TEMPLATE; SUFF must not contain a slash"},
		{Short: 'p', Arg: getopt.Required, Name: "DIR", Help: "interpret TEMPLATE relative to DIR"},
		{Long: "tmpdir", Key: tool.KeyOwn + 1, Arg: getopt.Optional, Name: "DIR", Help: "likewise; without DIR use $TMPDIR if set, else /tmp"},
		{Short: 't', Help: "interpret TEMPLATE as a single file name component, relative to a directory"},
	},
	Package: tool.Coreutils,
}

// Mktemp makes a temporary file or directory.
func Mktemp(t *tool.T) int {
	opts, args := t.Parse(&mktempSpec)
	var dir, dry, quiet, inTmp bool
	suffix, base := "", ""
	for _, o := range opts {
		switch o.Key {
		case 'd':
			dir = true
		case 'u':
			dry = true
		case 'q':
			quiet = true
		case tool.KeyOwn:
			suffix = o.Arg
		case 'p', tool.KeyOwn + 1:
			inTmp, base = true, o.Arg
		case 't':
			inTmp = true
		}
	}
	if len(args) > 1 {
		t.UsageError(1, "too many templates")
	}
	template := "tmp.XXXXXXXXXX"
	if len(args) == 1 {
		template = args[0]
	} else {
		inTmp = true
	}
	given := template
	end := strings.LastIndexByte(template, 'X') + 1
	if suffix == "" {
		template, suffix = template[:end], template[end:]
	} else if end != len(template) {
		t.Fatal(1, "with --suffix, template %s must end in X", tool.Quote(given))
	}
	prefix := strings.TrimRight(template, "X")
	count := len(template) - len(prefix)
	if count < 3 {
		t.Fatal(1, "too few X's in template %s", tool.Quote(given))
	}
	if strings.Contains(suffix, "/") {
		t.Fatal(1, "invalid suffix %s, contains directory separator", tool.Quote(suffix))
	}
	if inTmp {
		if base == "" {
			if base = t.Getenv("TMPDIR"); base == "" {
				base = "/tmp"
			}
		}
		if path.IsAbs(prefix) {
			t.Fatal(1, "invalid template, %s; with --tmpdir, it may not be absolute", tool.Quote(given))
		}
		prefix, given = joinPath(base, prefix), joinPath(base, given)
	}
	name, err := makeTemp(t, prefix, suffix, count, dir, dry)
	if err != nil {
		if !quiet {
			kind := "file"
			if dir {
				kind = "directory"
			}
			t.Warn("failed to create %s via template %s: %s", kind, tool.Quote(given), tool.Strerror(err))
		}
		return 1
	}
	t.Out.WriteString(name + "\n")
	return 0
}

func makeTemp(t *tool.T, prefix, suffix string, count int, dir, dry bool) (string, error) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	b := make([]byte, count)
	for range 100 {
		if _, err := io.ReadFull(t.Rand(), b); err != nil {
			return "", err
		}
		for i := range b {
			b[i] = letters[int(b[i])%len(letters)]
		}
		name := prefix + string(b) + suffix
		var err error
		switch {
		case dry:
			if _, err = t.Lstat(name); tool.IsNotExist(err) {
				return name, nil
			}
			err = syscall.EEXIST
		case dir:
			err = t.Mkdir(name, 0o700)
		default:
			f, oerr := t.Process.Open(name, syscall.O_RDWR|syscall.O_CREAT|syscall.O_EXCL, 0o600)
			if err = oerr; err == nil {
				f.Close()
			}
		}
		if !errors.Is(err, syscall.EEXIST) {
			return name, err
		}
	}
	return "", syscall.EEXIST
}
