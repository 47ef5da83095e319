package coreutils

import (
	"errors"
	"strings"
	"syscall"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

var mkdirSpec = tool.Spec{
	Usage: []string{"[OPTION]... DIRECTORY..."},
	About: "Create the DIRECTORY(ies), if they do not already exist.",
	Options: []getopt.Option{
		{Short: 'm', Long: "mode", Arg: getopt.Required, Name: "MODE", Help: "set file mode (as in chmod), not a=rwx - umask"},
		{Short: 'p', Long: "parents", Help: "no error if existing, make parent directories as needed"},
		{Short: 'v', Long: "verbose", Help: "print a message for each created directory"},
		{Short: 'Z', Help: "(ignored: there are no security contexts)"},
		{Long: "context", Key: 'Z', Arg: getopt.Optional, Name: "CTX"},
	},
	Package: tool.Coreutils,
}

// Mkdir makes directories.
func Mkdir(t *tool.T) int {
	opts, dirs := t.Parse(&mkdirSpec)
	var change *tool.ModeChange
	parents, verbose := false, false
	for _, o := range opts {
		switch o.Key {
		case 'm':
			var err error
			if change, err = tool.ParseMode(o.Arg); err != nil {
				t.Fatal(1, "invalid mode %s", tool.Quote(o.Arg))
			}
		case 'p':
			parents = true
		case 'v':
			verbose = true
		}
	}
	if len(dirs) == 0 {
		t.Missing(1)
	}
	made := func(dir string) {
		if verbose {
			t.Out.WriteString(t.Name + ": created directory " + tool.QuoteAF(dir) + "\n")
		}
	}
	failed := false
	for _, dir := range dirs {
		var err error
		failing := dir
		if parents {
			failing, err = makeAll(t, dir, made)
		} else if err = t.Mkdir(dir, 0o777); err == nil {
			made(dir)
		}
		if err == nil && change != nil {
			err = setMkdirMode(t, dir, change)
		}
		if err != nil {
			t.Warn("cannot create directory %s: %s", tool.Quote(failing), tool.Strerror(err))
			failed = true
		}
	}
	return status(failed)
}

func setMkdirMode(t *tool.T, dir string, change *tool.ModeChange) error {
	mask := t.Umask(0)
	t.Umask(mask)
	mode := change.Apply(vfs.ModeDir|0o777, mask)
	return t.SetAttr(dir, vfs.SetAttr{Mode: &mode}, true)
}

// makeAll makes a directory and its parents, as far as they are missing. Parents can be entered and written by their
// owner whatever the umask says. It returns the path that failed.
func makeAll(t *tool.T, dir string, made func(string)) (string, error) {
	for i := 1; i < len(dir); i++ {
		if dir[i] != '/' || dir[i-1] == '/' || strings.Trim(dir[i:], "/") == "" {
			continue
		}
		parent := dir[:i]
		mask := t.Umask(0)
		t.Umask(mask &^ 0o300)
		err := t.Mkdir(parent, 0o777)
		t.Umask(mask)
		if err == nil {
			made(parent)
		} else if !errors.Is(err, syscall.EEXIST) {
			return parent, err
		} else if a, err := t.Stat(parent); err == nil && !a.Mode.IsDir() {
			return parent, syscall.ENOTDIR
		}
	}
	err := t.Mkdir(dir, 0o777)
	if err == nil {
		made(dir)
	} else if a, serr := t.Stat(dir); errors.Is(err, syscall.EEXIST) && serr == nil && a.Mode.IsDir() {
		err = nil
	}
	return dir, err
}
