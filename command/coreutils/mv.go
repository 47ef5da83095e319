package coreutils

import (
	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
)

var mvSpec = tool.Spec{
	Usage: []string{"[OPTION]... [-T] SOURCE DEST", "[OPTION]... SOURCE... DIRECTORY", "[OPTION]... -t DIRECTORY SOURCE..."},
	About: "Rename SOURCE to DEST, or move SOURCE(s) to DIRECTORY.",
	Options: append([]getopt.Option{
		{Short: 'f', Long: "force", Help: "do not prompt before overwriting"},
		{Short: 'i', Long: "interactive", Help: "prompt before overwrite"},
		{Short: 'n', Long: "no-clobber", Help: "do not overwrite an existing file"},
		{Long: "strip-trailing-slashes", Key: keyStripSlashes, Help: "remove any trailing slashes from each SOURCE argument"},
		{Short: 'u', Long: "update", Help: "move only when the SOURCE file is newer than the destination file or when the destination file is missing"},
		{Short: 'Z', Long: "context", Help: "(ignored: there are no security contexts)"},
	}, append(backupOptions, targetOptions...)...),
	Package: tool.Coreutils,
}

// Mv moves files.
func Mv(t *tool.T) int {
	opts, files := t.Parse(&mvSpec)
	c := copier{t: t, move: true, follow: 'P'}
	var x transfer
	for _, o := range opts {
		switch o.Key {
		case 'f':
			c.force, c.interactive, c.noClob = true, false, false
		case 'i':
			c.force, c.interactive, c.noClob = false, true, false
		case 'n':
			c.force, c.interactive, c.noClob = false, false, true
		case 'u':
			c.update = true
		case 'v':
			c.verbose = true
		}
		x.option(t, o)
	}
	if c.noClob && x.backup {
		t.UsageError(1, "options --backup and --no-clobber are mutually exclusive")
	}
	c.backup, c.suffix = x.backups(t)
	x.run(t, files, func(src, dst string) { c.copy(src, dst, true) })
	return status(c.failed)
}
