package rsync

import (
	"fmt"
	"strconv"
	"strings"
)

// options say what is transferred and how.
type options struct {
	recursive, dirs, relative, noImplied          bool
	links, copyLinks, keepDirlinks, safeLinks     bool
	perms, times, owner, group, devices, specials bool
	omitDirTimes, executability, hardLinks        bool
	checksum, update, existing, ignoreExisting    bool
	sizeOnly, ignoreTimes, wholeFile, noWhole     bool
	inplace, appendTo, partial, backup            bool
	partialDir, backupDir, suffix                 string
	delete, deleteExcluded, deleteAfter, force    bool
	ignoreErrors, pruneEmpty, removeSource        bool
	maxDelete                                     int
	maxSize, minSize                              int64
	compress, compressX                           bool
	numericIDs, oneFS, dryRun, cvs                bool
	verbose, itemize, progress, stats, quiet      int
	human                                         int
	outFormat                                     string
	filter                                        filter
	filesFrom                                     string
	filesFromNul                                  bool
	modifyWindow                                  int64
	seed                                          int32
	server, sender, protect                       bool
	info                                          string // the client's capabilities
	chmod                                         string
	mkpath                                        bool
	listOnly                                      bool
	port                                          string
	rsh                                           string
	tempDir                                       string
}

// failure is an error with rsync's exit status.
type failure struct {
	code int
	text string
}

func (f *failure) Error() string { return f.text }

// optionsWithArgument are the long options that need one.
var optionsWithArgument = map[string]bool{"exclude": true, "include": true, "exclude-from": true, "include-from": true, "filter": true, "files-from": true,
	"backup-dir": true, "suffix": true, "partial-dir": true, "max-size": true, "min-size": true, "max-delete": true, "modify-window": true, "block-size": true,
	"timeout": true, "contimeout": true, "bwlimit": true, "out-format": true, "log-format": true, "log-file": true, "log-file-format": true, "info": true, "debug": true,
	"compress-level": true, "compress-choice": true, "zc": true, "zl": true, "checksum-choice": true, "cc": true, "checksum-seed": true, "chmod": true, "rsh": true,
	"rsync-path": true, "temp-dir": true, "compare-dest": true, "copy-dest": true, "link-dest": true, "protocol": true, "remote-option": true, "skip-compress": true, "outbuf": true,
	"max-alloc": true, "port": true, "usermap": true, "groupmap": true, "chown": true, "stop-after": true, "address": true, "sockopts": true, "password-file": true, "iconv": true, "stderr": true}

// parse reads a command line and returns what isn't an option.
func (o *options) parse(args []string, readFile func(string) (string, error)) (rest []string, err error) {
	o.maxDelete = -1
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return append(rest, args[i+1:]...), nil
		case strings.HasPrefix(a, "--"):
			name, value, has := strings.Cut(a[2:], "=")
			if optionsWithArgument[name] && !has {
				if i++; i >= len(args) {
					return nil, &failure{1, fmt.Sprintf("--%s: missing argument", name)}
				}
				value = args[i]
			}
			if err := o.long(name, value, readFile); err != nil {
				return nil, err
			}
		case strings.HasPrefix(a, "-") && a != "-":
			if i, err = o.letters(a[1:], args, i, readFile); err != nil {
				return nil, err
			}
		default:
			rest = append(rest, a)
		}
	}
	return rest, nil
}

// letters reads a word of short options.
func (o *options) letters(word string, args []string, i int, readFile func(string) (string, error)) (int, error) {
	for k := 0; k < len(word); k++ {
		c := word[k]
		if strings.IndexByte("efBTM@", c) >= 0 {
			value := word[k+1:]
			if o.server && c == 'e' {
				o.info = value
				return i, nil
			}
			if value == "" {
				if i++; i >= len(args) {
					return i, &failure{1, fmt.Sprintf("-%c: missing argument", c)}
				}
				value = args[i]
			}
			name := map[byte]string{'e': "rsh", 'f': "filter", 'B': "block-size", 'T': "temp-dir", 'M': "remote-option", '@': "modify-window"}[c]
			return i, o.long(name, strings.TrimPrefix(value, "="), readFile)
		}
		if !o.letter(c) {
			return i, &failure{1, fmt.Sprintf("-%c: unknown option", c)}
		}
	}
	return i, nil
}

// letter applies a short option without argument.
func (o *options) letter(c byte) bool {
	flags := map[byte]*bool{'r': &o.recursive, 'd': &o.dirs, 'R': &o.relative, 'l': &o.links, 'L': &o.copyLinks, 'K': &o.keepDirlinks, 'p': &o.perms, 't': &o.times,
		'o': &o.owner, 'g': &o.group, 'O': &o.omitDirTimes, 'E': &o.executability, 'H': &o.hardLinks, 'c': &o.checksum, 'u': &o.update, 'I': &o.ignoreTimes,
		'W': &o.wholeFile, 'b': &o.backup, 'm': &o.pruneEmpty, 'z': &o.compress, 'x': &o.oneFS, 'n': &o.dryRun, 'C': &o.cvs, 's': &o.protect}
	if f := flags[c]; f != nil {
		*f = true
		return true
	}
	switch c {
	case 'a':
		o.recursive, o.links, o.perms, o.times, o.group, o.owner, o.devices, o.specials = true, true, true, true, true, true, true, true
	case 'D':
		o.devices, o.specials = true, true
	case 'v':
		o.verbose++
	case 'q':
		o.quiet++
	case 'i':
		o.itemize++
	case 'h':
		o.human++
	case 'P':
		o.partial, o.progress = true, 1
	case 'k', 'S', 'y', '4', '6', 'J', 'U', '8', 'N':
	default:
		return false
	}
	return true
}

// long applies a long option.
func (o *options) long(name, value string, readFile func(string) (string, error)) error {
	if o.longFlag(name) {
		return nil
	}
	switch name {
	case "exclude":
		o.filter.append(rule{}, value)
	case "include":
		o.filter.append(rule{include: true}, value)
	case "filter":
		if strings.HasPrefix(value, "merge ") || strings.HasPrefix(value, ". ") {
			return o.ruleFile(value[strings.IndexByte(value, ' ')+1:], "", readFile)
		}
		if !o.filter.add(value) {
			return &failure{1, "Unknown filter rule: `" + value + "'"}
		}
	case "exclude-from":
		return o.ruleFile(value, "-", readFile)
	case "include-from":
		return o.ruleFile(value, "+", readFile)
	case "files-from":
		o.filesFrom = value
	case "backup-dir":
		o.backupDir, o.backup = value, true
	case "suffix":
		o.suffix = value
	case "partial-dir":
		o.partialDir, o.partial = value, true
	case "temp-dir":
		o.tempDir = value
	case "max-size", "min-size":
		n, ok := parseSize(value)
		if !ok {
			return &failure{1, fmt.Sprintf("--%s value is invalid: %s", name, value)}
		}
		if name == "max-size" {
			o.maxSize = n
		} else {
			o.minSize = n
		}
	case "max-delete":
		n, err := strconv.Atoi(value)
		if err != nil {
			return &failure{1, "--max-delete=" + value + ": invalid numeric value"}
		}
		o.maxDelete = n
	case "modify-window":
		o.modifyWindow, _ = strconv.ParseInt(value, 10, 32)
	case "checksum-seed":
		n, _ := strconv.ParseInt(value, 10, 32)
		o.seed = int32(n)
	case "out-format", "log-format":
		o.outFormat = value
		if strings.Contains(value, "%i") {
			o.itemize++
		}
	case "chmod":
		o.chmod = value
	case "rsh":
		o.rsh = value
	case "compress-choice", "zc":
		switch value {
		case "zlib":
			o.compress = true
		case "zlibx":
			o.compress, o.compressX = true, true
		case "none":
			o.compress = false
		case "auto":
		default:
			return &failure{4, "unknown compress name: " + value}
		}
	case "info":
		if strings.Contains(strings.ToLower(value), "progress") {
			o.progress = 1
		}
		if strings.Contains(strings.ToLower(value), "stats") {
			o.stats = 1
		}
	case "compare-dest", "copy-dest", "link-dest", "iconv", "usermap", "groupmap", "chown":
		return &failure{4, "--" + name + " isn't supported in a sandbox"}
	default:
		if optionsWithArgument[name] {
			return nil
		}
		return &failure{1, "--" + name + ": unknown option"}
	}
	return nil
}

// longFlag applies a long option without argument; "no-" before it turns it off.
func (o *options) longFlag(name string) bool {
	on := true
	if rest, ok := strings.CutPrefix(name, "no-"); ok {
		on, name = false, rest
	}
	flags := map[string]*bool{"recursive": &o.recursive, "r": &o.recursive, "dirs": &o.dirs, "d": &o.dirs, "relative": &o.relative, "R": &o.relative, "links": &o.links, "l": &o.links,
		"copy-links": &o.copyLinks, "keep-dirlinks": &o.keepDirlinks, "safe-links": &o.safeLinks, "perms": &o.perms, "p": &o.perms, "times": &o.times, "t": &o.times,
		"owner": &o.owner, "o": &o.owner, "group": &o.group, "g": &o.group, "devices": &o.devices, "specials": &o.specials, "omit-dir-times": &o.omitDirTimes, "O": &o.omitDirTimes,
		"executability": &o.executability, "hard-links": &o.hardLinks, "H": &o.hardLinks, "checksum": &o.checksum, "c": &o.checksum, "update": &o.update, "u": &o.update,
		"existing": &o.existing, "ignore-non-existing": &o.existing, "ignore-existing": &o.ignoreExisting, "size-only": &o.sizeOnly, "ignore-times": &o.ignoreTimes,
		"whole-file": &o.wholeFile, "W": &o.wholeFile, "inplace": &o.inplace, "append": &o.appendTo, "append-verify": &o.appendTo, "partial": &o.partial, "backup": &o.backup,
		"delete": &o.delete, "del": &o.delete, "delete-before": &o.delete, "delete-during": &o.delete, "delete-excluded": &o.deleteExcluded, "force": &o.force,
		"force-delete": &o.force, "ignore-errors": &o.ignoreErrors, "prune-empty-dirs": &o.pruneEmpty, "remove-source-files": &o.removeSource, "compress": &o.compress, "z": &o.compress,
		"numeric-ids": &o.numericIDs, "one-file-system": &o.oneFS, "dry-run": &o.dryRun, "cvs-exclude": &o.cvs, "from0": &o.filesFromNul, "server": &o.server, "sender": &o.sender,
		"protect-args": &o.protect, "secluded-args": &o.protect, "s": &o.protect, "mkpath": &o.mkpath, "list-only": &o.listOnly}
	if f := flags[name]; f != nil {
		*f = on
		if name == "whole-file" || name == "W" {
			o.noWhole = !on
		}
		if name == "delete-excluded" && on {
			o.delete = true
		}
		return true
	}
	switch name {
	case "archive":
		o.letter('a')
	case "delete-after", "delete-delay":
		o.delete, o.deleteAfter = on, on
	case "D":
		o.devices, o.specials = on, on
	case "verbose", "v":
		o.verbose = map[bool]int{true: o.verbose + 1}[on]
	case "quiet":
		o.quiet++
	case "itemize-changes", "i":
		o.itemize = map[bool]int{true: o.itemize + 1}[on]
	case "progress":
		o.progress = map[bool]int{true: 1}[on]
	case "stats":
		o.stats = map[bool]int{true: 1}[on]
	case "human-readable", "h":
		o.human = map[bool]int{true: o.human + 1}[on]
	case "new-compress":
		o.compress, o.compressX = on, on
	case "old-compress":
		o.compress, o.compressX = on, false
	case "implied-dirs":
		o.noImplied = !on
	case "inc-recursive", "i-r", "sparse", "preallocate", "fuzzy", "motd", "trust-sender", "munge-links", "open-noatime", "fsync", "msgs2stderr", "blocking-io", "super",
		"ipv4", "ipv6", "8-bit-output", "delay-updates", "omit-link-times", "copy-unsafe-links", "copy-dirlinks", "old-args", "old-dirs", "ignore-missing-args", "use-qsort":
	default:
		return false
	}
	return true
}

// ruleFile reads rules from a file; kind is put before each line, unless it says itself.
func (o *options) ruleFile(name, kind string, readFile func(string) (string, error)) error {
	text, err := readFile(name)
	if err != nil {
		return &failure{11, fmt.Sprintf("failed to open exclude file %s: %s", name, err)}
	}
	sep := "\n"
	if o.filesFromNul {
		sep = "\x00"
	}
	for line := range strings.SplitSeq(text, sep) {
		line = strings.TrimRight(line, "\r")
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if kind == "" || strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "+ ") || line == "!" {
			if !o.filter.add(line) {
				return &failure{1, "Unknown filter rule: `" + line + "'"}
			}
			continue
		}
		o.filter.append(rule{include: kind == "+"}, line)
	}
	return nil
}

// parseSize reads a size such as 1.5m.
func parseSize(s string) (int64, bool) {
	factor := 1.0
	lower := strings.ToLower(s)
	for i, unit := range []string{"k", "m", "g", "t"} {
		base := lower
		step := 1024.0
		for suffix, st := range map[string]float64{unit: 1024, unit + "b": 1000, unit + "ib": 1024} {
			if b, ok := strings.CutSuffix(lower, suffix); ok && (b == "" || b[len(b)-1] <= '9') {
				base, step = b, st
				factor = 1
				for range i + 1 {
					factor *= step
				}
			}
		}
		if base != lower {
			lower = base
			break
		}
	}
	lower = strings.TrimSuffix(lower, "b")
	f, err := strconv.ParseFloat(lower, 64)
	if err != nil || f < 0 || f*factor > 1e18 {
		return 0, false
	}
	return int64(f * factor), true
}

// cvsRules are what -C leaves out.
const cvsRules = "RCS SCCS CVS CVS.adm RCSLOG cvslog.* tags TAGS .make.state .nse_depinfo *~ #* .#* ,* _$* *$ *.old *.bak *.BAK *.orig *.rej .del-* *.a *.olb *.o *.obj *.so *.exe *.Z *.elc *.ln core .svn/ .git/ .hg/ .bzr/"

// settle finishes the options when all are known.
func (o *options) settle() {
	if o.cvs {
		for p := range strings.FieldsSeq(cvsRules) {
			o.filter.append(rule{}, p)
		}
	}
	if o.suffix == "" && o.backupDir == "" {
		o.suffix = "~"
	}
	if o.filesFrom != "" {
		o.relative, o.dirs = !o.noImplied || o.relative, true
		o.relative = true
	}
	if o.deleteExcluded {
		o.delete = true
	}
	if o.quiet > 0 {
		o.verbose = 0
	}
	if o.backup && o.backupDir == "" {
		o.omitDirTimes = true // each backup changes its directory
	}
	if o.partialDir == "." {
		o.partialDir = ""
	}
}
