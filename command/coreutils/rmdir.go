package coreutils

import (
	"errors"
	"strings"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

const keyIgnoreNonEmpty = tool.KeyOwn

var rmdirSpec = tool.Spec{
	Usage: []string{"[OPTION]... DIRECTORY..."},
	About: "Remove the DIRECTORY(ies), if they are empty.",
	Options: []getopt.Option{
		{Long: "ignore-fail-on-non-empty", Key: keyIgnoreNonEmpty, Help: "ignore each failure that is solely because a directory is non-empty"},
		{Short: 'p', Long: "parents", Help: "remove DIRECTORY and its ancestors; e.g., 'rmdir -p a/b' is similar to 'rmdir a/b a'"},
		{Short: 'v', Long: "verbose", Help: "output a diagnostic for every directory processed"},
	},
	Package: tool.Coreutils,
}

// Rmdir removes empty directories.
func Rmdir(t *tool.T) int {
	opts, dirs := t.Parse(&rmdirSpec)
	var ignore, parents, verbose bool
	for _, o := range opts {
		switch o.Key {
		case keyIgnoreNonEmpty:
			ignore = true
		case 'p':
			parents = true
		case 'v':
			verbose = true
		}
	}
	if len(dirs) == 0 {
		t.Missing(1)
	}
	failed := false
	for _, dir := range dirs {
		for first := true; ; first = false {
			if verbose {
				t.Out.WriteString(t.Name + ": removing directory, " + tool.QuoteAF(dir) + "\n")
			}
			if err := t.Rmdir(dir); err != nil {
				if !(ignore && errors.Is(err, syscall.ENOTEMPTY)) {
					failed = true
					rmdirFailed(t, dir, err, first)
				}
				break
			}
			i := strings.LastIndexByte(strings.TrimRight(dir, "/"), '/')
			if !parents || i <= 0 {
				break
			}
			dir = strings.TrimRight(dir[:i], "/")
		}
	}
	return status(failed)
}

func rmdirFailed(t *tool.T, dir string, err error, first bool) {
	if trimmed := strings.TrimRight(dir, "/"); trimmed != dir && errors.Is(err, syscall.ENOTDIR) {
		if a, lerr := t.Lstat(trimmed); lerr == nil && a.Mode.IsSymlink() {
			t.Warn("failed to remove %s: Symbolic link not followed", tool.QuoteAF(dir))
			return
		}
	}
	what := "failed to remove directory %s: %s"
	if first {
		what = "failed to remove %s: %s"
	}
	t.Warn(what, tool.QuoteAF(dir), tool.Strerror(err))
}
