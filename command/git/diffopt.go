package git

import (
	"strconv"
	"strings"
)

// option reads one of the options that diff, log and show have in common; false if it isn't one.
func (r *repo) diffOption(d *diffOptions, o *options) bool {
	switch o.name {
	case "-p", "-u", "--patch":
		d.patch, d.none = true, false
	case "-s", "--no-patch":
		d.none, d.patch = true, false
	case "-U", "--unified":
		d.patch, d.context = true, o.number()
	case "--stat":
		d.stat = true
		d.statArgs(o.value)
	case "--stat-width":
		d.stat, d.statWidth = true, o.number()
	case "--stat-name-width":
		d.stat, d.statName = true, o.number()
	case "--stat-count":
		d.stat, d.statCount = true, o.number()
	case "--compact-summary":
		d.stat, d.compact = true, true
	case "--numstat":
		d.numstat = true
	case "--shortstat":
		d.shortstat = true
	case "--dirstat", "-X":
		r.fatal("%s isn't done here", o.name)
	case "--patch-with-stat":
		d.stat, d.patch = true, true
	case "--patch-with-raw":
		d.raw, d.patch = true, true
	case "--name-only":
		d.nameOnly = true
	case "--name-status":
		d.nameStatus = true
	case "--summary":
		d.summary = true
	case "--raw":
		d.raw = true
	case "--check":
		d.check = true
	case "--full-index":
		d.fullIndex = true
	case "--binary":
		d.patch, d.binary = true, true
	case "--abbrev":
		d.abbrev = 7
		if o.has {
			d.abbrev = o.number()
		}
	case "--no-abbrev":
		d.fullIndex = true
	case "-a", "--text":
		d.text = true
	case "-w", "--ignore-all-space":
		d.space = spaceNone
	case "-b", "--ignore-space-change":
		if d.space != spaceNone {
			d.space = spaceChange
		}
	case "--ignore-space-at-eol":
		if d.space == spaceAll {
			d.space = spaceEOL
		}
	case "--ignore-cr-at-eol":
		if d.space == spaceAll {
			d.space = spaceCR
		}
	case "--ignore-blank-lines":
		d.blank = true
	case "-W", "--function-context":
		d.patch, d.function = true, true
	case "-z":
		d.zero = true
	default:
		return r.diffOption2(d, o)
	}
	return true
}

func (r *repo) diffOption2(d *diffOptions, o *options) bool {
	switch o.name {
	case "-M", "--find-renames":
		d.renames, d.renamesSet = r.similarity(o.optional()), true
	case "-C", "--find-copies":
		d.renames, d.renamesSet = r.similarity(o.optional()), true
		d.harder = d.copies || d.harder
		d.copies = true
	case "--find-copies-harder":
		d.copies, d.harder = true, true
		if d.renames == 0 {
			d.renames = maxScore / 2
		}
	case "--no-renames":
		d.renames, d.renamesSet = 0, true
	case "--no-rename-empty", "--rename-empty", "--minimal", "--patience", "--histogram", "--indent-heuristic", "--no-indent-heuristic",
		"--no-ext-diff", "--ext-diff", "--no-textconv", "--textconv", "--no-color", "--no-color-moved", "--relative", "--no-relative", "--ita-invisible-in-index", "--full-diff-x":
	case "--color", "--color-moved", "--diff-algorithm", "--ignore-submodules", "--submodule", "--ws-error-highlight", "--anchored", "-l", "--color-moved-ws":
		if o.name == "--diff-algorithm" || o.name == "--anchored" || o.name == "-l" || o.name == "--ws-error-highlight" {
			o.arg()
		}
	case "-B", "--break-rewrites", "-O":
		o.optional()
	case "-R":
		d.reverse = true
	case "--no-prefix":
		d.noPrefix = true
	case "--default-prefix":
		d.noPrefix, d.srcPrefix, d.dstPrefix = false, "a/", "b/"
	case "--src-prefix":
		d.srcPrefix = o.arg()
	case "--dst-prefix":
		d.dstPrefix = o.arg()
	case "--line-prefix":
		d.linePrefix = o.arg()
	case "--inter-hunk-context":
		d.between = o.number()
	case "--diff-filter":
		d.filter = o.arg()
	case "--exit-code":
		d.exitCode = true
	case "--quiet":
		d.quiet, d.exitCode = true, true
	case "-S":
		d.pickaxe = o.arg()
	case "-G":
		d.grep = o.arg()
	case "--pickaxe-regex":
		d.pickaxeRegex = true
	case "--pickaxe-all":
		d.pickaxeAll = true
	case "--word-diff", "--color-words", "--word-diff-regex":
		r.fatal("%s isn't done here", o.name)
	case "--output-indicator-new":
		d.marks[1] = firstByte(o.arg(), '+')
	case "--output-indicator-old":
		d.marks[0] = firstByte(o.arg(), '-')
	case "--output-indicator-context":
		d.marks[2] = firstByte(o.arg(), ' ')
	case "-c", "--cc", "-m", "--diff-merges", "--no-diff-merges", "--combined-all-paths", "--remerge-diff":
		d.setMerges(o)
	default:
		return false
	}
	return true
}

func firstByte(s string, otherwise byte) byte {
	if s == "" {
		return otherwise
	}
	return s[0]
}

// setMerges says how merges are shown.
func (d *diffOptions) setMerges(o *options) {
	switch o.name {
	case "-c":
		d.merges = "combined"
	case "--cc":
		d.merges = "cc"
	case "-m":
		d.merges = "separate"
		return
	case "--no-diff-merges":
		d.merges = "off"
		return
	case "--diff-merges":
		switch v := o.arg(); v {
		case "off", "none":
			d.merges = "off"
		case "on", "m", "separate":
			d.merges = "separate"
		case "1", "first-parent":
			d.merges = "first"
		case "c", "combined":
			d.merges = "combined"
		case "cc", "dense-combined":
			d.merges = "cc"
		default:
			o.r.fatal("invalid value for '%s': '%s'", "--diff-merges", v)
		}
	default:
		return
	}
	if !d.formatted() {
		d.implied = true
	}
}

func (d *diffOptions) statArgs(v string) {
	for i, s := range strings.Split(v, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			continue
		}
		switch i {
		case 0:
			d.statWidth = n
		case 1:
			d.statName = n
		case 2:
			d.statCount = n
		}
	}
}

// similarity reads a threshold: "50%", "5" (0.5), "0.5"; nothing is half.
func (r *repo) similarity(s string) int {
	if s == "" {
		return maxScore / 2
	}
	num, scale, dot := int64(0), int64(1), false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '.' && !dot:
			scale, dot = 1, true
		case c == '%':
			if dot {
				scale *= 100
			} else {
				scale = 100
			}
			return int(min(num*maxScore/scale, maxScore))
		case c >= '0' && c <= '9':
			if scale < 100000 {
				scale *= 10
				num = num*10 + int64(c-'0')
			}
		default:
			r.die(129, "error: invalid argument to find-renames: %s", s)
		}
	}
	if num >= scale {
		return maxScore
	}
	return int(num * maxScore / scale)
}

// number is the current option's argument as a number.
func (o *options) number() int {
	v := o.arg()
	n, err := strconv.Atoi(v)
	if err != nil {
		if len(o.name) == 2 {
			o.r.die(129, "error: switch `%s' expects a numerical value", o.name[1:])
		}
		o.r.die(129, "error: option `%s' expects a numerical value", strings.TrimLeft(o.name, "-"))
	}
	return n
}
