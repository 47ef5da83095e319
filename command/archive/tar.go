package archive

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command/codec"
	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	tarDelete = tool.KeyOwn + iota
	tarTestLabel
	tarAbsolute
	tarAnchored
	tarNoAnchored
	tarExclude
	tarExcludeVCS
	tarExcludeBackups
	tarExcludeCaches
	tarFormatKey
	tarFullTime
	tarGroup
	tarOwner
	tarMode
	tarMtime
	tarClamp
	tarHardDeref
	tarIgnoreCase
	tarNoIgnoreCase
	tarNoRecursion
	tarRecursion
	tarNewerMtime
	tarNoSameOwner
	tarSameOwner
	tarNoSamePerm
	tarNull
	tarNoNull
	tarNumeric
	tarOneFS
	tarOverwrite
	tarOverwriteDir
	tarNoOverwriteDir
	tarKeepNewer
	tarSkipOld
	tarPaxOption
	tarPosix
	tarOldArchive
	tarQuoting
	tarRecordSize
	tarRecursiveUnlink
	tarRemoveFiles
	tarShowNames
	tarSort
	tarStrip
	tarTotals
	tarTransform
	tarUTC
	tarVerbatim
	tarNoVerbatim
	tarWildcards
	tarNoWildcards
	tarMatchSlash
	tarNoMatchSlash
	tarZstd
	tarLzma
	tarUnsupported
	tarIgnored
	tarIgnoredArg
	tarAddFile
	tarOccurrence
	tarNoAuto
	tarIndexFile
	tarIgnoreFailed
	tarExcludeTag
	tarExcludeIgnore
	tarKeepDirLink
	tarToCommand
)

var tarSpec = tool.Spec{
	Usage: []string{"[OPTION...] [FILE]..."},
	About: "GNU 'tar' saves many files together into a single tape or disk archive, and can\nrestore individual files from the archive.\n\nExamples:\n" +
		"  tar -cf archive.tar foo bar  # Create archive.tar from files foo and bar.\n  tar -tvf archive.tar         # List all files in archive.tar verbosely.\n  tar -xf archive.tar          # Extract all files from archive.tar.",
	Options: []getopt.Option{
		{Short: 'A', Long: "catenate", Help: "append tar files to an archive"}, {Short: 'A', Long: "concatenate", Hidden: true},
		{Short: 'c', Long: "create", Help: "create a new archive"},
		{Short: 'd', Long: "diff", Help: "find differences between archive and file system"}, {Short: 'd', Long: "compare", Hidden: true},
		{Long: "delete", Key: tarDelete, Help: "delete from the archive"},
		{Short: 'r', Long: "append", Help: "append files to the end of an archive"},
		{Short: 't', Long: "list", Help: "list the contents of an archive"},
		{Short: 'u', Long: "update", Help: "only append files newer than copy in archive"},
		{Short: 'x', Long: "extract", Help: "extract files from an archive"}, {Short: 'x', Long: "get", Hidden: true},
		{Long: "test-label", Key: tarTestLabel},
		{Short: 'f', Long: "file", Arg: getopt.Required, Name: "ARCHIVE", Help: "use archive file ARCHIVE; - is standard input or output"},
		{Short: 'C', Long: "directory", Arg: getopt.Required, Name: "DIR", Help: "change to directory DIR"},
		{Short: 'T', Long: "files-from", Arg: getopt.Required, Name: "FILE", Help: "get names to extract or create from FILE"},
		{Short: 'X', Long: "exclude-from", Arg: getopt.Required, Name: "FILE", Help: "exclude patterns listed in FILE"},
		{Long: "exclude", Key: tarExclude, Arg: getopt.Required, Name: "PATTERN", Help: "exclude files, given as a PATTERN"},
		{Long: "exclude-vcs", Key: tarExcludeVCS, Help: "exclude version control system directories"},
		{Long: "exclude-backups", Key: tarExcludeBackups, Help: "exclude backup and lock files"},
		{Long: "exclude-caches", Key: tarExcludeCaches, Help: "exclude contents of directories containing CACHEDIR.TAG"},
		{Long: "exclude-tag", Key: tarExcludeTag, Arg: getopt.Required, Name: "FILE", Help: "exclude contents of directories containing FILE"},
		{Long: "exclude-ignore", Key: tarExcludeIgnore, Arg: getopt.Required}, {Long: "exclude-vcs-ignores", Key: tarIgnored},
		{Short: 'z', Long: "gzip", Help: "filter the archive through gzip"}, {Short: 'z', Long: "gunzip", Hidden: true}, {Short: 'z', Long: "ungzip", Hidden: true},
		{Short: 'j', Long: "bzip2", Help: "filter the archive through bzip2"},
		{Short: 'J', Long: "xz", Help: "filter the archive through xz"},
		{Long: "lzma", Key: tarLzma, Help: "filter the archive through lzma"},
		{Long: "zstd", Key: tarZstd, Help: "filter the archive through zstd"},
		{Short: 'a', Long: "auto-compress", Help: "use archive suffix to determine the compression program"},
		{Long: "no-auto-compress", Key: tarNoAuto},
		{Short: 'I', Long: "use-compress-program", Arg: getopt.Required, Name: "PROG", Help: "filter through PROG (must accept -d)"},
		{Short: 'v', Long: "verbose", Help: "verbosely list files processed"},
		{Short: 'k', Long: "keep-old-files", Help: "don't replace existing files when extracting, treat them as errors"},
		{Long: "skip-old-files", Key: tarSkipOld, Help: "don't replace existing files when extracting, silently skip over them"},
		{Long: "keep-newer-files", Key: tarKeepNewer, Help: "don't replace existing files that are newer than their archive copies"},
		{Long: "overwrite", Key: tarOverwrite, Help: "overwrite existing files when extracting"},
		{Long: "overwrite-dir", Key: tarOverwriteDir}, {Long: "no-overwrite-dir", Key: tarNoOverwriteDir}, {Long: "keep-directory-symlink", Key: tarKeepDirLink},
		{Short: 'U', Long: "unlink-first", Help: "remove each file prior to extracting over it"},
		{Long: "recursive-unlink", Key: tarRecursiveUnlink, Help: "empty hierarchies prior to extracting directory"},
		{Short: 'O', Long: "to-stdout", Help: "extract files to standard output"},
		{Long: "to-command", Key: tarToCommand, Arg: getopt.Required, Name: "COMMAND", Help: "pipe extracted files to another program"},
		{Short: 'm', Long: "touch", Help: "don't extract file modified time"},
		{Short: 'p', Long: "preserve-permissions", Help: "extract information about file permissions"}, {Short: 'p', Long: "same-permissions", Hidden: true},
		{Long: "no-same-permissions", Key: tarNoSamePerm, Help: "apply the user's umask when extracting permissions"},
		{Long: "same-owner", Key: tarSameOwner, Help: "try extracting files with the same ownership"},
		{Short: 'o', Key: 'o'}, {Long: "no-same-owner", Key: tarNoSameOwner, Help: "extract files as yourself"},
		{Short: 's', Long: "preserve-order", Key: tarIgnored}, {Long: "same-order", Key: tarIgnored}, {Long: "preserve", Key: 'p'},
		{Long: "strip-components", Key: tarStrip, Arg: getopt.Required, Name: "NUMBER", Help: "strip NUMBER leading components from file names on extraction"},
		{Long: "transform", Key: tarTransform, Arg: getopt.Required, Name: "EXPRESSION", Help: "use sed replace EXPRESSION to transform file names"}, {Long: "xform", Key: tarTransform, Arg: getopt.Required},
		{Long: "owner", Key: tarOwner, Arg: getopt.Required, Name: "NAME", Help: "force NAME as owner for added files"},
		{Long: "group", Key: tarGroup, Arg: getopt.Required, Name: "NAME", Help: "force NAME as group for added files"},
		{Long: "mode", Key: tarMode, Arg: getopt.Required, Name: "CHANGES", Help: "force (symbolic) mode CHANGES for added files"},
		{Long: "mtime", Key: tarMtime, Arg: getopt.Required, Name: "DATE-OR-FILE", Help: "set mtime for added files from DATE-OR-FILE"},
		{Long: "clamp-mtime", Key: tarClamp, Help: "only set time when the file is more recent than what was given with --mtime"},
		{Long: "numeric-owner", Key: tarNumeric, Help: "always use numbers for user/group names"},
		{Long: "sort", Key: tarSort, Arg: getopt.Required, Name: "ORDER", Help: "directory sorting order: none (default), name or inode"},
		{Short: 'H', Long: "format", Key: tarFormatKey, Arg: getopt.Required, Name: "FORMAT", Help: "create archive of the given format: gnu, oldgnu, pax, posix, ustar, v7"},
		{Long: "posix", Key: tarPosix}, {Long: "old-archive", Key: tarOldArchive}, {Long: "portability", Key: tarOldArchive},
		{Long: "pax-option", Key: tarPaxOption, Arg: getopt.Required, Name: "KEYWORD[[:]=VALUE][,...]", Help: "control pax keywords"},
		{Short: 'h', Long: "dereference", Help: "follow symlinks; archive and dump the files they point to"},
		{Long: "hard-dereference", Key: tarHardDeref, Help: "follow hard links; archive and dump the files they refer to"},
		{Short: 'S', Long: "sparse", Help: "handle sparse files efficiently"},
		{Long: "no-recursion", Key: tarNoRecursion, Help: "avoid descending automatically in directories"}, {Long: "recursion", Key: tarRecursion},
		{Long: "one-file-system", Key: tarOneFS, Help: "stay in local file system when creating archive"},
		{Short: 'P', Long: "absolute-names", Help: "don't strip leading '/'s from file names"},
		{Short: 'N', Long: "newer", Arg: getopt.Required, Name: "DATE-OR-FILE", Help: "only store files newer than DATE-OR-FILE"}, {Short: 'N', Long: "after-date", Arg: getopt.Required},
		{Long: "newer-mtime", Key: tarNewerMtime, Arg: getopt.Required},
		{Long: "add-file", Key: tarAddFile, Arg: getopt.Required}, {Long: "remove-files", Key: tarRemoveFiles, Help: "remove files after adding them to the archive"},
		{Long: "null", Key: tarNull, Help: "-T reads null-terminated names"}, {Long: "no-null", Key: tarNoNull},
		{Long: "verbatim-files-from", Key: tarVerbatim}, {Long: "no-verbatim-files-from", Key: tarNoVerbatim},
		{Long: "anchored", Key: tarAnchored}, {Long: "no-anchored", Key: tarNoAnchored}, {Long: "ignore-case", Key: tarIgnoreCase}, {Long: "no-ignore-case", Key: tarNoIgnoreCase},
		{Long: "wildcards", Key: tarWildcards, Help: "use wildcards"}, {Long: "no-wildcards", Key: tarNoWildcards},
		{Long: "wildcards-match-slash", Key: tarMatchSlash}, {Long: "no-wildcards-match-slash", Key: tarNoMatchSlash},
		{Long: "full-time", Key: tarFullTime, Help: "print file time to its full resolution"}, {Long: "utc", Key: tarUTC, Help: "print file modification times in UTC"},
		{Long: "show-transformed-names", Key: tarShowNames}, {Long: "show-stored-names", Key: tarShowNames},
		{Long: "quoting-style", Key: tarQuoting, Arg: getopt.Required}, {Long: "index-file", Key: tarIndexFile, Arg: getopt.Required},
		{Short: 'R', Long: "block-number", Help: "show block number within archive with each message"},
		{Long: "totals", Key: tarTotals, Arg: getopt.Optional, Help: "print total bytes after processing the archive"},
		{Long: "occurrence", Key: tarOccurrence, Arg: getopt.Optional},
		{Short: 'b', Long: "blocking-factor", Arg: getopt.Required, Name: "BLOCKS", Help: "BLOCKS x 512 bytes per record"},
		{Long: "record-size", Key: tarRecordSize, Arg: getopt.Required},
		{Short: 'i', Long: "ignore-zeros", Help: "ignore zeroed blocks in archive (means EOF)"},
		{Short: 'B', Long: "read-full-records", Key: tarIgnored}, {Short: 'W', Long: "verify", Key: tarIgnored}, {Short: 'w', Long: "interactive", Key: tarUnsupported}, {Long: "confirmation", Key: tarUnsupported},
		{Short: 'l', Long: "check-links", Key: tarIgnored}, {Short: 'n', Long: "seek", Key: tarIgnored}, {Long: "no-seek", Key: tarIgnored},
		{Long: "ignore-failed-read", Key: tarIgnoreFailed}, {Long: "ignore-command-error", Key: tarIgnored}, {Long: "no-check-device", Key: tarIgnored}, {Long: "check-device", Key: tarIgnored},
		{Long: "delay-directory-restore", Key: tarIgnored}, {Long: "no-delay-directory-restore", Key: tarIgnored}, {Long: "force-local", Key: tarIgnored},
		{Long: "acls", Key: tarIgnored}, {Long: "no-acls", Key: tarIgnored}, {Long: "selinux", Key: tarIgnored}, {Long: "no-selinux", Key: tarIgnored}, {Long: "xattrs", Key: tarIgnored}, {Long: "no-xattrs", Key: tarIgnored},
		{Long: "xattrs-include", Key: tarIgnoredArg, Arg: getopt.Required}, {Long: "xattrs-exclude", Key: tarIgnoredArg, Arg: getopt.Required}, {Long: "warning", Key: tarIgnoredArg, Arg: getopt.Required},
		{Long: "checkpoint", Key: tarIgnoredArg, Arg: getopt.Optional}, {Long: "checkpoint-action", Key: tarIgnoredArg, Arg: getopt.Required}, {Long: "atime-preserve", Key: tarIgnoredArg, Arg: getopt.Optional},
		{Long: "hole-detection", Key: tarIgnoredArg, Arg: getopt.Required}, {Long: "sparse-version", Key: tarIgnoredArg, Arg: getopt.Required}, {Long: "suffix", Key: tarIgnoredArg, Arg: getopt.Required},
		{Short: 'g', Long: "listed-incremental", Key: tarUnsupported, Arg: getopt.Required}, {Short: 'G', Long: "incremental", Key: tarUnsupported}, {Short: 'M', Long: "multi-volume", Key: tarUnsupported}, {Short: 'L', Long: "tape-length", Key: tarUnsupported, Arg: getopt.Required},
		{Short: 'V', Long: "label", Key: tarUnsupported, Arg: getopt.Required}, {Short: 'K', Long: "starting-file", Key: tarUnsupported, Arg: getopt.Required}, {Short: 'F', Long: "info-script", Key: tarUnsupported, Arg: getopt.Required},
		{Short: 'Z', Long: "compress", Key: tarUnsupported}, {Long: "lzip", Key: tarUnsupported}, {Long: "lzop", Key: tarUnsupported}, {Long: "backup", Key: tarUnsupported, Arg: getopt.Optional},
		{Short: '?', Key: '?'},
	},
	Package: "GNU tar) 1.34", Fail: 2, Order: getopt.InOrder,
}

// tarName is an operand: a file to add, or a member to find, with the directory it belongs to.
type tarName struct {
	dir, name string
	recurse   bool
	match     matchFlags
	literal   bool // not a pattern
	found     int
}

// tar is a running tar.
type tar struct {
	t       *tool.T
	op      rune
	archive string
	dir     string // what -C has come to
	names   []*tarName

	format      tarFormat
	compression codec.Format
	program     string
	auto        bool
	noAuto      bool
	blocking    int
	ignoreZeros bool

	verbose, stripN, occurrence                            int
	stdout, keepOld, skipOld, keepNewer, overwrite, unlink bool
	recursiveUnlink, keepDirLink, noOverwriteDir           bool
	touch, samePerm, sameOwner, absolute, numeric          bool
	follow, hardDeref, sparse, oneFS, removeFiles          bool
	fullTime, utc, showNames, blockNumbers, totals         bool
	null, verbatim, ignoreFailed, clamp                    bool
	recurse                                                bool
	quoting, sortBy, toCommand                             string
	indexFile                                              *tool.FileWriter

	excludes   []exclusion
	match      matchFlags
	tags       []string
	caches     bool
	transforms []transform
	owner      *ownerSpec
	group      *ownerSpec
	mode       *tool.ModeChange
	mtime      *time.Time
	mtimeText  string // the date as --mtime gave it
	newer      *time.Time
	newerMtime bool
	enc        encoder

	status    int
	width     int // of owner and size in verbose lists
	dateWidth int
	stripped  map[string]bool // prefixes that were reported
	accounts  *tool.Accounts
	users     map[uint32]string
	groups    map[uint32]string
	useless   []string // positional options after the last name
}

// ownerSpec is an owner as --owner gives it.
type ownerSpec struct {
	name string
	id   int64
}

// Tar keeps archives.
func Tar(t *tool.T) int {
	t.Name = t.Name[strings.LastIndexByte(t.Name, '/')+1:]
	t.FailStatus(2)
	a := &tar{t: t, recurse: true, blocking: 20, width: 19, dateWidth: 16, stripped: map[string]bool{}, match: matchFlags{slash: true}, sortBy: "none",
		users: map[uint32]string{}, groups: map[uint32]string{}, samePerm: t.Cred().UID == 0, sameOwner: t.Cred().UID == 0}
	a.arguments()
	a.settle()
	switch a.op {
	case 'c':
		a.create()
	case 'r', 'u':
		a.appendTo()
	case 'A':
		a.catenate()
	case tarDelete:
		a.remove()
	case 't':
		a.list()
	case 'x':
		a.extract()
	case 'd':
		a.compare()
	}
	if a.status == 2 {
		t.Warn("Exiting with failure status due to previous errors")
	}
	return a.status
}

// oldStyle turns a first argument without a dash, such as cvf, into options: each letter that takes an argument takes
// the next word.
func (a *tar) oldStyle(args []string) []string {
	if len(args) == 0 || args[0] == "" || args[0][0] == '-' {
		return args
	}
	var out []string
	rest := args[1:]
	for _, c := range args[0] {
		takes := false
		for _, o := range tarSpec.Options {
			if o.Short == c && o.Arg == getopt.Required {
				takes = true
			}
		}
		if !takes {
			out = append(out, "-"+string(c))
			continue
		}
		if len(rest) == 0 {
			a.t.Warn("Old option '%c' requires an argument.", c)
			a.usage()
		}
		out = append(out, "-"+string(c), rest[0])
		rest = rest[1:]
	}
	return append(out, rest...)
}

func (a *tar) usage() {
	a.t.Out.Flush()
	fmt.Fprintf(a.t.Stderr(), "Try 'tar --help' or 'tar --usage' for more information.\n")
	a.t.Exit(2)
}

// fatal ends the command as tar does when it can't go on.
func (a *tar) fatal(format string, args ...any) {
	a.t.Warn(format, args...)
	a.t.Warn("Error is not recoverable: exiting now")
	a.t.Exit(2)
}

// fail reports an error; warn only a warning.
func (a *tar) fail(format string, args ...any) {
	a.t.Warn(format, args...)
	a.status = 2
}

func (a *tar) failFile(name, what string, err error) {
	a.fail("%s: %s: %s", tarQuote(name), what, tool.Strerror(err))
}

// arguments reads the command line; many options only count for the names after them.
func (a *tar) arguments() {
	t := a.t
	args := a.oldStyle(t.Args()[1:])
	found, _, err := getopt.Parse(append(append([]getopt.Option{}, tarSpec.Options...), getopt.Option{Long: "help", Key: -2}, getopt.Option{Long: "usage", Key: -2}, getopt.Option{Long: "version", Key: -3}), args, getopt.InOrder)
	for _, o := range found {
		switch o.Key {
		case -2, '?':
			t.Help(&tarSpec)
			t.Exit(0)
		case -3:
			t.Out.WriteString("tar (GNU tar) 1.34\nThis is AgentRun's own implementation, which behaves like the version above.\n")
			t.Exit(0)
		}
	}
	if err != nil {
		t.Warn("%s", err)
		t.Stderr().Write([]byte("Try 'tar --help' or 'tar --usage' for more information.\n"))
		t.Exit(64)
	}
	for _, o := range found {
		a.option(o)
	}
}

// setOp sets what is done; two different things are an error.
func (a *tar) setOp(op rune) {
	if a.op != 0 && a.op != op {
		a.t.Warn("You may not specify more than one '-Acdtrux', '--delete' or  '--test-label' option")
		a.usage()
	}
	a.op = op
}

func (a *tar) setFilter(f codec.Format, program string) {
	if a.compression != codec.None && a.compression != f || a.program != "" {
		a.t.Warn("Conflicting compression options")
		a.usage()
	}
	a.compression, a.program = f, program
}

func (a *tar) option(o getopt.Opt) {
	switch o.Key {
	case getopt.Operand:
		a.addName(o.Arg)
		a.useless = nil
	case 'A', 'c', 'd', 'r', 't', 'u', 'x', tarDelete:
		a.setOp(o.Key)
	case 'f':
		a.archive = o.Arg
	case 'C':
		a.dir = joinDir(a.dir, o.Arg)
	case 'T':
		a.filesFrom(o.Arg)
	case 'z':
		a.setFilter(codec.Gzip, "")
	case 'j':
		a.setFilter(codec.Bzip2, "")
	case 'J':
		a.setFilter(codec.Xz, "")
	case tarLzma:
		a.setFilter(codec.Lzma, "")
	case tarZstd:
		a.setFilter(codec.Zstd, "")
	case 'a':
		a.auto = true
	case tarNoAuto:
		a.auto = false
	case 'I':
		a.setFilter(codec.None, o.Arg)
	case 'v':
		a.verbose++
	case 'k':
		a.keepOld = true
	case 'U':
		a.unlink = true
	case 'O':
		a.stdout = true
	case 'm':
		a.touch = true
	case 'p':
		a.samePerm = true
	case 'o':
		a.sameOwner = false
		if a.op == 'c' {
			a.format = formatV7
		}
	case 'h':
		a.follow = true
	case 'S':
		a.sparse = true
	case 'P':
		a.absolute = true
	case 'R':
		a.blockNumbers = true
	case 'i':
		a.ignoreZeros = true
	case 'b':
		n, err := strconv.Atoi(o.Arg)
		if err != nil || n < 1 || n > 1<<16 {
			a.t.Warn("%s: Invalid blocking factor", o.Arg)
			a.usage()
		}
		a.blocking = n
	case tarRecordSize:
		n, err := tool.ParseSize(o.Arg, tool.SizeSuffixes)
		if err != nil || n == 0 || n%blockSize != 0 || n > 1<<25 {
			a.t.Warn("Record size must be a multiple of %d.", blockSize)
			a.usage()
		}
		a.blocking = int(n / blockSize)
	case tarUnsupported:
		a.t.Fatal(2, "%s: this option isn't supported here", o.As)
	default:
		a.selectOption(o)
	}
}

// selectOption handles the options about which files, and under which names.
func (a *tar) selectOption(o getopt.Opt) {
	switch o.Key {
	case tarExclude:
		a.exclude(o.Arg)
		a.useless = append(a.useless, "--exclude "+tool.Quote(o.Arg))
	case 'X':
		b, err := a.t.ReadFile(o.Arg, maxMeta)
		if err != nil {
			a.fatal("%s: Cannot open: %s", tarQuote(o.Arg), tool.Strerror(err))
		}
		for line := range strings.SplitSeq(string(b), "\n") {
			if line = strings.TrimRight(line, " \t\r"); line != "" {
				a.exclude(line)
			}
		}
	case tarExcludeVCS:
		for _, p := range vcsNames {
			a.excludes = append(a.excludes, exclusion{pattern: p, flags: matchFlags{anchored: false, slash: true}, wild: true})
		}
	case tarExcludeBackups:
		for _, p := range []string{".#*", "*~", "#*#"} {
			a.excludes = append(a.excludes, exclusion{pattern: p, flags: matchFlags{slash: true}, wild: true})
		}
	case tarExcludeCaches:
		a.caches = true
	case tarExcludeTag:
		a.tags = append(a.tags, o.Arg)
	case tarAnchored:
		a.match.anchored = true
	case tarNoAnchored:
		a.match.anchored = false
		a.match.floating = true
	case tarIgnoreCase:
		a.match.fold = true
	case tarNoIgnoreCase:
		a.match.fold = false
	case tarWildcards:
		a.match.wild = 1
	case tarNoWildcards:
		a.match.wild = -1
	case tarMatchSlash:
		a.match.slash = true
	case tarNoMatchSlash:
		a.match.slash = false
	case tarNoRecursion, tarRecursion:
		a.recurse = o.Key == tarRecursion
	case tarNull, tarNoNull:
		a.null = o.Key == tarNull
		a.verbatim = a.verbatim || a.null
	case tarVerbatim, tarNoVerbatim:
		a.verbatim = o.Key == tarVerbatim
	case tarAddFile:
		a.addName(o.Arg)
	case tarTransform:
		list, err := parseTransforms(o.Arg)
		if err != nil {
			a.fatalUsage("%s", err)
		}
		a.transforms = append(a.transforms, list...)
	case tarStrip:
		n, err := strconv.Atoi(o.Arg)
		if err != nil || n < 0 {
			a.fatalUsage("%s: Invalid number of elements", o.Arg)
		}
		a.stripN = n
	case 'N', tarNewerMtime:
		at := a.date(o.Arg)
		a.newer, a.newerMtime = &at, o.Key == tarNewerMtime
	case tarSort:
		switch o.Arg {
		case "none", "name", "inode":
			a.sortBy = o.Arg
		default:
			a.fatalUsage("invalid argument %s for %s", tool.Quote(o.Arg), tool.Quote("--sort"))
		}
	default:
		a.attributeOption(o)
	}
}

func (a *tar) fatalUsage(format string, args ...any) {
	a.t.Warn(format, args...)
	a.usage()
}

// attributeOption handles the options about members' attributes and the rest.
func (a *tar) attributeOption(o getopt.Opt) {
	switch o.Key {
	case tarOwner:
		a.owner = a.ownerArg(o.Arg, "owner", func(s string) (uint32, bool) { return a.account().LookupUID(s) }, stdUsers)
	case tarGroup:
		a.group = a.ownerArg(o.Arg, "group", func(s string) (uint32, bool) { return a.account().LookupGID(s) }, stdGroups)
	case tarMode:
		m, err := tool.ParseMode(o.Arg)
		if err != nil {
			a.fatalUsage("Invalid mode given on option")
		}
		a.mode = m
	case tarMtime:
		at := a.date(o.Arg)
		a.mtime = &at
		if o.Arg != "" && o.Arg[0] != '/' && o.Arg[0] != '.' {
			a.mtimeText = o.Arg
		}
	case tarClamp:
		a.clamp = true
	case tarNumeric:
		a.numeric = true
	case tarSameOwner, tarNoSameOwner:
		a.sameOwner = o.Key == tarSameOwner
	case tarNoSamePerm:
		a.samePerm = false
	case tarFormatKey:
		f, ok := map[string]tarFormat{"gnu": formatGNU, "oldgnu": formatOldGNU, "pax": formatPax, "posix": formatPax, "ustar": formatUstar, "v7": formatV7}[o.Arg]
		if !ok {
			a.fatalUsage("%s: Invalid archive format", tarQuote(o.Arg))
		}
		a.format = f
	case tarPosix:
		a.format = formatPax
	case tarOldArchive:
		a.format = formatV7
	case tarPaxOption:
		a.paxOption(o.Arg)
	case tarHardDeref:
		a.hardDeref = true
	case tarOneFS:
		a.oneFS = true
	case tarOverwrite:
		a.overwrite = true
	case tarNoOverwriteDir:
		a.noOverwriteDir = true
	case tarKeepDirLink:
		a.keepDirLink = true
	case tarKeepNewer:
		a.keepNewer = true
	case tarSkipOld:
		a.skipOld = true
	case tarRecursiveUnlink:
		a.recursiveUnlink = true
	case tarRemoveFiles:
		a.removeFiles = true
	case tarShowNames:
		a.showNames = true
	case tarFullTime:
		a.fullTime, a.dateWidth = true, 19
	case tarUTC:
		a.utc = true
	case tarTotals:
		a.totals = true
	case tarQuoting:
		a.quoting = o.Arg
	case tarOccurrence:
		a.occurrence = 1
		if n, err := strconv.Atoi(o.Arg); o.Has && err == nil && n > 0 {
			a.occurrence = n
		}
	case tarIgnoreFailed:
		a.ignoreFailed = true
	case tarToCommand:
		a.toCommand = o.Arg
	case tarIndexFile:
		f, err := a.t.Create(o.Arg)
		if err != nil {
			a.fatal("%s: Cannot open: %s", tarQuote(o.Arg), tool.Strerror(err))
		}
		a.indexFile = tool.NewFileWriter(f)
	}
}

func (a *tar) account() *tool.Accounts {
	if a.accounts == nil {
		a.accounts = a.t.Accounts()
	}
	return a.accounts
}

// Users and groups of a Debian system that scripts name although the sandbox may not list them.
var (
	stdUsers  = map[string]int64{"root": 0, "daemon": 1, "bin": 2, "sys": 3, "nobody": 65534}
	stdGroups = map[string]int64{"root": 0, "daemon": 1, "bin": 2, "sys": 3, "adm": 4, "tty": 5, "disk": 6, "wheel": 10, "staff": 50, "users": 100, "nogroup": 65534}
)

// ownerArg reads NAME, NUMBER, +NUMBER or NAME:NUMBER.
func (a *tar) ownerArg(s, what string, lookup func(string) (uint32, bool), std map[string]int64) *ownerSpec {
	name, id, both := strings.Cut(s, ":")
	if both {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil || n < 0 {
			a.fatal("%s: Invalid %s ID", tarQuote(id), what)
		}
		return &ownerSpec{name, n}
	}
	if n, err := strconv.ParseInt(strings.TrimPrefix(s, "+"), 10, 64); err == nil && n >= 0 {
		return &ownerSpec{"", n}
	}
	if n, ok := lookup(s); ok {
		return &ownerSpec{s, int64(n)}
	}
	if n, ok := std[s]; ok {
		return &ownerSpec{s, n}
	}
	// An unknown name is kept, with the number of each file.
	return &ownerSpec{s, -1}
}

// date reads a date, or a file whose time counts.
func (a *tar) date(s string) time.Time {
	if s != "" && (s[0] == '/' || s[0] == '.') {
		at, err := a.t.Stat(s)
		if err != nil {
			a.fatal("%s: Cannot stat: %s", tarQuote(s), tool.Strerror(err))
		}
		return at.Mtime
	}
	at, err := a.t.ParseDate(s, a.t.Now())
	if err != nil {
		a.fatalUsage("Invalid date %s", tool.Quote(s))
	}
	return at
}

// paxOption reads --pax-option's list.
func (a *tar) paxOption(s string) {
	for item := range strings.SplitSeq(s, ",") {
		key, value, has := strings.Cut(item, "=")
		key = strings.TrimSuffix(key, ":")
		switch {
		case key == "exthdr.name":
			a.enc.paxName = value
		case key == "delete":
			if a.enc.deleted == nil {
				a.enc.deleted = map[string]bool{}
			}
			for _, k := range []string{"path", "linkpath", "uname", "gname", "uid", "gid", "size", "mtime", "atime", "ctime"} {
				if tool.Glob(value, k, 0) {
					a.enc.deleted[k] = true
				}
			}
		case has && key != "globexthdr.name" && key != "exthdr.mtime" && key != "globexthdr.mtime":
			a.enc.globals += paxRecord(key, value)
		}
	}
}

// joinDir is a directory relative to another one; "" is the current one.
func joinDir(dir, name string) string {
	if dir == "" || strings.HasPrefix(name, "/") {
		return name
	}
	return strings.TrimSuffix(dir, "/") + "/" + name
}

func (a *tar) addName(name string) {
	a.names = append(a.names, &tarName{dir: a.dir, name: name, recurse: a.recurse, match: a.match})
}

// filesFrom adds the names in a file, which may hold -C and other options unless told otherwise.
func (a *tar) filesFrom(file string) {
	b, err := a.t.ReadFile(file, 64<<20)
	if err != nil {
		a.fatal("%s: Cannot open: %s", tarQuote(file), tool.Strerror(err))
	}
	sep := "\n"
	if a.null {
		sep = "\x00"
	} else if strings.Contains(string(b), "\x00") {
		a.t.Warn("%s: file name read contains nul character", tarQuote(file))
	}
	lines := strings.Split(strings.TrimSuffix(string(b), sep), sep)
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case line == "" || len(a.names) >= maxNames:
		case a.verbatim || a.null || line[0] != '-':
			a.addName(line)
		case line == "-C" && i+1 < len(lines):
			i++
			a.dir = joinDir(a.dir, lines[i])
		case strings.HasPrefix(line, "-C"):
			a.dir = joinDir(a.dir, strings.TrimLeft(line[2:], " "))
		case strings.HasPrefix(line, "--exclude="):
			a.exclude(line[len("--exclude="):])
		case strings.HasPrefix(line, "--add-file="):
			a.addName(line[len("--add-file="):])
		default:
			a.fatal("%s: unrecognized option in a list of files", tarQuote(line))
		}
	}
	if len(a.names) == 0 {
		a.names = []*tarName{} // an empty list is a list
	}
}

// settle checks the options against each other.
func (a *tar) settle() {
	if a.op == 0 {
		a.t.Warn("You must specify one of the '-Acdtrux', '--delete' or '--test-label' options")
		a.usage()
	}
	if a.op == 'c' && a.names == nil {
		a.t.Warn("Cowardly refusing to create an empty archive")
		a.usage()
	}
	a.enc.format = a.format
	if a.archive == "" {
		a.archive = a.t.Getenv("TAPE")
		if a.archive == "" {
			a.archive = "-"
		}
	}
	if a.op == 'c' && len(a.useless) > 0 && len(a.names) > 0 {
		a.t.Warn("The following options were used after any non-optional arguments in archive create or update mode.  These options are positional and affect only arguments that follow them.  Please, rearrange them properly.")
		for _, u := range a.useless {
			a.t.Warn("%s has no effect", u)
		}
		a.status = 2
		a.excludes = a.excludes[:len(a.excludes)-len(a.useless)]
	}
	if a.verbose > 0 && a.mtimeText != "" {
		a.t.Warn("Option --mtime: Treating date '%s' as %s", a.mtimeText, a.zone(*a.mtime).Format("2006-01-02 15:04:05"))
	}
	if a.op == 't' || a.op == 'x' || a.op == 'd' {
		for _, n := range a.names {
			if n.match.wild == 0 && strings.ContainsAny(n.name, "*?[") {
				a.t.Warn("Pattern matching characters used in file names")
				a.t.Warn("Use --wildcards to enable pattern matching, or --no-wildcards to suppress this warning")
				break
			}
		}
	}
	if a.dir != "" {
		if s, err := a.t.Stat(a.dir); err == nil && !s.Mode.IsDir() {
			err = syscall.ENOTDIR
			a.fatal("%s: Cannot open: %s", tarQuote(a.dir), tool.Strerror(err))
		} else if err != nil {
			a.fatal("%s: Cannot open: %s", tarQuote(a.dir), tool.Strerror(err))
		}
	}
	if (a.op == 'c' || a.op == 'r' || a.op == 'u') && a.auto && a.compression == codec.None && a.program == "" {
		a.compression = codecOf(a.archive)
	}
}

// codecOf tells the compression from an archive's name.
func codecOf(name string) codec.Format {
	for _, s := range []struct {
		suffixes string
		f        codec.Format
	}{{".gz .tgz .taz", codec.Gzip}, {".bz2 .tbz .tbz2 .tz2", codec.Bzip2}, {".xz .txz", codec.Xz}, {".lzma .tlz", codec.Lzma}, {".zst .tzst", codec.Zstd}} {
		for suffix := range strings.SplitSeq(s.suffixes, " ") {
			if strings.HasSuffix(name, suffix) {
				return s.f
			}
		}
	}
	return codec.None
}

// userName and groupName remember what they look up.
func (a *tar) userName(uid uint32) string {
	if _, ok := a.users[uid]; !ok {
		a.users[uid] = ""
		if u := a.account().UserByID(uid); u != nil {
			a.users[uid] = u.Name
		}
	}
	return a.users[uid]
}

func (a *tar) groupName(gid uint32) string {
	if _, ok := a.groups[gid]; !ok {
		name := a.account().GroupName(gid)
		if name == strconv.FormatUint(uint64(gid), 10) {
			name = ""
		}
		a.groups[gid] = name
	}
	return a.groups[gid]
}

// tarQuote escapes a name for lists and messages.
func tarQuote(s string) string { return tool.EscapeC(s, "") }

// safeName strips what leads out of the directory from a name, and reports each kind of prefix once.
func (a *tar) safeName(name string, link bool) string {
	if a.absolute {
		return name
	}
	n := 0
	for i := 0; i < len(name); {
		if strings.HasPrefix(name[i:], "..") && (i+2 == len(name) || name[i+2] == '/') {
			n = i + 2
		}
		j := strings.IndexByte(name[i:], '/')
		if j < 0 {
			break
		}
		i += j + 1
	}
	for n < len(name) && name[n] == '/' {
		n++
	}
	if n > 0 {
		what, key := "member names", "m"
		if link {
			what, key = "hard link targets", "l"
		}
		if key += name[:n]; !a.stripped[key] && len(a.stripped) < maxNames {
			a.stripped[key] = true
			a.t.Warn("Removing leading `%s' from %s", tarQuote(name[:n]), what)
		}
		name = name[n:]
	}
	if name == "" {
		if n == 0 {
			a.t.Warn("Substituting `.' for empty member name")
		}
		return "."
	}
	return name
}

func hasDotDot(name string) bool {
	for c := range strings.SplitSeq(name, "/") {
		if c == ".." {
			return true
		}
	}
	return false
}

// strip removes leading components; false if none is left.
func (a *tar) strip(name string) (string, bool) {
	for range a.stripN {
		name = strings.TrimLeft(name, "/")
		i := strings.IndexByte(name, '/')
		if i < 0 {
			return "", false
		}
		name = strings.TrimLeft(name[i+1:], "/")
	}
	return name, name != ""
}

var errNoMember = errors.New("Not found in archive")

// attrTime is a file's time in the zone that lists show.
func (a *tar) zone(at time.Time) time.Time {
	if a.utc {
		return at.UTC()
	}
	return at.In(a.t.Location())
}

var _ = vfs.ModeDir
